/* SPDX-License-Identifier: MIT */
/*
 * quiesce.h - waits until a pool is quiescent
 */
#ifndef FJI_QUIESCE_H
#define FJI_QUIESCE_H

#include "sched/pool.h"

/* Returns whether p is quiescent at this moment. A pool that stops counts as quiescent. Any thread
 * may call it; the caller holds no lock. */
bool fji_quiesce_now(fj_pool *p);

/*
 * Waits until p is quiescent or stops. Returns FJ_OK then, or FJ_ETIMEDOUT if the deadline passes
 * first. If the deadline is FJ_FOREVER, the caller runs tasks of p while it waits, if it is a
 * worker or a guest of p, if it works for no pool and p->caller_helps is set, or while p is
 * threadless and no thread can be started. Any thread may call it; the caller holds no lock.
 */
int fji_quiesce_await(fj_pool *p, int64_t deadline);

#endif /* FJI_QUIESCE_H */
