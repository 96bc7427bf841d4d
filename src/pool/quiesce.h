/* SPDX-License-Identifier: MIT */
/*
 * quiesce.h - waits until a pool is quiescent
 */
#ifndef FJI_QUIESCE_H
#define FJI_QUIESCE_H

#include "sched/pool.h"

/* Whether p is quiescent at this moment. A pool that stops counts as quiescent. Any thread may call
 * it, without a lock. */
bool fji_quiesce_now(fj_pool *p);

/*
 * Waits until p is quiescent. Without a deadline (FJ_FOREVER) the caller runs tasks of p meanwhile,
 * if it is a worker or a guest of p, or a thread outside all pools and callers help in p. Any
 * thread may call it, without a lock. Returns FJ_OK, or FJ_ETIMEDOUT if the deadline comes first.
 */
int fji_quiesce_await(fj_pool *p, int64_t deadline);

#endif /* FJI_QUIESCE_H */
