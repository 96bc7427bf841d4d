/* SPDX-License-Identifier: MIT */
/*
 * common_pool.h - creates and ends the common pool
 *
 * Any thread may call these functions. The caller holds no lock of the library.
 */
#ifndef FJI_COMMON_POOL_H
#define FJI_COMMON_POOL_H

#include "sched/pool.h"

/* Returns the common pool, or NULL if it does not exist at this moment. */
fj_pool *fji_common_if_made(void);

/* Returns p, or the common pool if p is NULL. The common pool is created if it does not exist.
 * Returns NULL if there is no memory for it. */
fj_pool *fji_pool_or_common(const fj_pool *p);

/*
 * Called when p has refused work. If p is the common pool, waits for its end and creates the next
 * common pool. Returns FJ_OK if p accepts work again. Returns FJ_EREJECTED if p is another pool, or
 * if the end of the common pool waits for the calling thread. Returns FJ_ENOMEM if there is no
 * memory.
 */
int fji_common_again(const fj_pool *p);

/* Makes the calling thread a guest of p; if p is the common pool and has ended, of the next common
 * pool. Returns NULL if p refuses or if there is no memory. */
fji_worker *fji_common_guest_enter(fj_pool *p);

#endif /* FJI_COMMON_POOL_H */
