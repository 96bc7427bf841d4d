/* SPDX-License-Identifier: MIT */
/*
 * quiescent.h - whether a pool has nothing to do
 *
 * quiescent.c explains the sweep. A calling thread outside p needs a hold (hold.h), or has another
 * count or lock that keeps p from ending.
 */
#ifndef FJI_QUIESCENT_H
#define FJI_QUIESCENT_H

#include "sched/pool.h"

/* Whether a queue of p may have a task. A queue that is being changed counts as one with a task. */
bool fji_pool_has_work(const fj_pool *p);

/*
 * Whether p is quiescent: all workers idle, all guests quiet, all queues empty. `ending`: the
 * caller is about to stop p. Then the lock of each submission queue is taken, under which
 * submitters check the run state, and a worker or guest that waits for quiescence keeps p from
 * ending.
 */
bool fji_pool_quiescent(fj_pool *p, bool ending);

/*
 * Sets the park word of w, the worker or guest of the calling thread. QUIET: w waits for
 * quiescence and has found no task, or is a guest that sleeps in a join. ACTIVE: it continues. It
 * becomes ACTIVE before it takes a task.
 */
void fji_quiesce_turn(fji_worker *w, uint32_t park);

#endif /* FJI_QUIESCENT_H */
