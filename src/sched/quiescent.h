/* SPDX-License-Identifier: MIT */
/*
 * quiescent.h - whether a pool has nothing to do
 *
 * quiescent.c explains how this is found out. A thread that calls these functions and does not work
 * for p needs a hold (hold.h), or another count or lock that keeps p from ending.
 */
#ifndef FJI_QUIESCENT_H
#define FJI_QUIESCENT_H

#include "sched/pool.h"

/* Returns whether a queue of p may have a task. A queue that another thread is changing counts as
 * one that has a task. */
bool fji_pool_has_work(const fj_pool *p);

/*
 * Returns whether p is quiescent: all workers are idle or quiet, all guests are quiet, and all
 * queues are empty. `ending`: the caller is about to stop p. If `ending` is true, there are two
 * differences. The call takes the lock of each submission queue in turn, because a submitter checks
 * the run state with that lock. In the common pool it does not wait for a lock: if another thread
 * holds one, a submission is in progress, and the result is false. The second difference: a quiet
 * worker or guest makes the result false, because it continues its task later.
 */
bool fji_pool_quiescent(fj_pool *p, bool ending);

/*
 * Sets the park word of w, the worker or guest of the calling thread, to `park`. Also sets the park
 * words of the other records in the same pool that the thread used before it became the guest w.
 * QUIET: w waits for quiescence and has found no task, or w is a guest that is about to sleep while
 * it waits for a task. ACTIVE: w continues. A quiet worker or guest calls this function with ACTIVE
 * before it takes a task.
 */
void fji_quiesce_turn(fji_worker *w, uint32_t park);

#endif /* FJI_QUIESCENT_H */
