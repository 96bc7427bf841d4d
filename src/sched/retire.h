/* SPDX-License-Identifier: MIT */
/*
 * retire.h - idle workers that exit because they are not needed
 *
 * This is the third step of the idle protocol; idle.h is the first and search.h the second.
 *
 * A worker that stays idle for the keep-alive time exits. Only the worker on top of the idle stack
 * sleeps with a deadline, and only if no worker is active or the pool has more threads than its
 * parallelism. So an idle pool has one timed sleep in all. If the worker is still on top when its
 * deadline passes, it takes itself off the stack with one CAS and exits. It makes the worker below
 * it compute its deadline again, because that worker is on top now:
 *
 *     retiring worker (fji_retire)             worker below it (idle_sleep)
 *     CAS ctl: the worker below is on top      CAS park: IDLE -> PARKED
 *     full fence                               full fence
 *     park is PARKED: set IDLE and wake it     reads ctl: on top? then it sleeps with a deadline
 *
 * Either the worker below sees itself on top, or the retiring worker sees PARKED. After the first
 * worker has retired, and until a worker is woken, the deadline is FJI_RETIRE_NEXT_NS away
 * (`shrinking`).
 *
 * The retiring worker still counts as a thread until its on_stop callback has returned, so that the
 * pool does not end before. A task that is queued in that time can neither wake nor replace it. So
 * after it has given its count back, it executes a heavy fence, tests the queues and calls
 * fji_wake_one() if one has a task (worker_main() in worker.c).
 *
 * Edges          from                               to                          carries
 *   idle.retire  full fence, retire_reconsider()    full fence, idle_sleep()    ctl, park
 */
#ifndef FJI_RETIRE_H
#define FJI_RETIRE_H

#include "sched/pool.h"

/* Until when w may sleep, for the thread of w. Returns FJ_FOREVER unless w is on top of the idle
 * stack and the pool does not need it. */
int64_t fji_retire_deadline(fji_worker *w);

/* Takes w off the idle stack if it is on top, and makes the worker below it compute its deadline
 * again. Called by the thread of w when its deadline has passed. Returns false if w is not on top:
 * then it stays idle. */
bool fji_retire(fji_worker *w);

#endif /* FJI_RETIRE_H */
