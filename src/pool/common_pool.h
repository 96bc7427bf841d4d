/* SPDX-License-Identifier: MIT */
/*
 * common_pool.h - the common pool
 */
#ifndef FJI_COMMON_POOL_H
#define FJI_COMMON_POOL_H

#include "sched/pool.h"

/* The common pool, or NULL if it does not exist at this moment. */
fj_pool *fji_common_if_made(void);

/* p, or the common pool if p is NULL, which is made on first use; NULL: no memory. */
fj_pool *fji_pool_or_common(const fj_pool *p);

/*
 * p takes no work. If p is the common pool and its end does not wait for the caller, waits for the end and
 * makes the next common pool. Returns FJ_OK if p takes work again, FJ_EREJECTED or FJ_ENOMEM.
 */
int fji_common_again(const fj_pool *p);

/* Makes the calling thread a guest of p, or of the next common pool if p is one that has ended. */
fji_worker *fji_common_guest_enter(fj_pool *p);

#endif /* FJI_COMMON_POOL_H */
