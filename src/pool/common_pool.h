/* SPDX-License-Identifier: MIT */
/*
 * common_pool.h - creates and ends the common pool
 *
 * Any thread may call these functions. The caller holds no lock of the library.
 */
#ifndef FJI_COMMON_POOL_H
#define FJI_COMMON_POOL_H

#include "sched/pool.h"

/* Returns the common pool, or NULL if it does not exist at this moment. A common pool that is being
 * ended exists until its memory is freed. */
fj_pool *fji_common_if_made(void);

/* Returns p, or the common pool if p is NULL. Creates the common pool if it is needed and does not
 * exist. Returns NULL if there is no memory for it. */
fj_pool *fji_pool_or_common(const fj_pool *p);

/*
 * Called after p has refused work. If p is the common pool and a thread ends it, waits for the end
 * and creates the next common pool, in the same record. If the attempt to end the common pool has
 * failed, only waits for the end of the attempt. Returns FJ_OK if the caller may try p again.
 * Returns FJ_EREJECTED if p is not the common pool, or if the end of the common pool cannot be
 * waited for: the calling thread ends it, is a worker, guest or timer thread of it, or has a hold.
 * Returns FJ_ENOMEM if there is no memory for the next common pool.
 */
int fji_common_again(const fj_pool *p);

/* Makes the calling thread a guest of p, and returns the guest. If p is the common pool and ends,
 * waits for the end and enters the next common pool. Returns NULL if p is another pool that is shut
 * down, if fji_common_again() fails, or if there is no memory for the record of the guest. */
fji_worker *fji_common_guest_enter(fj_pool *p);

#endif /* FJI_COMMON_POOL_H */
