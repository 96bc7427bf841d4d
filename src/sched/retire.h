/* SPDX-License-Identifier: MIT */
/*
 * retire.h - idle workers that exit because they are not needed
 *
 * This is the third step of the idle protocol; idle.h is the first and search.h the second.
 *
 * A worker that stays idle for the keep-alive time may exit. When a worker goes to sleep, it sleeps
 * with a deadline only if it is on top of the idle stack, and if no worker is active or the pool
 * has more threads than its parallelism. If the worker is still on top when its deadline passes, it
 * takes itself off the stack with one CAS and exits. If another worker was pushed on top of it
 * meanwhile, it sleeps again without a deadline. Before a retiring worker exits, it makes the
 * worker below it compute its deadline again, because that worker is on top now:
 *
 *     retiring worker (fji_retire)             worker below it (idle_sleep)
 *     CAS ctl: the worker below is on top      CAS park: IDLE -> PARKED
 *     full fence                               full fence
 *     park is PARKED: set IDLE and wake it     reads ctl: on top? then it sleeps with a deadline
 *
 * Either the worker below sees itself on top, or the retiring worker sees PARKED. After a worker
 * has retired, and until a worker is woken, the deadline is FJI_RETIRE_NEXT_NS away instead of the
 * keep-alive time (`shrinking` of the pool is 1).
 *
 * The retiring worker counts as a thread until its on_stop callback has returned, so that the pool
 * does not end earlier. The producer of a task that is queued in that time cannot wake the retiring
 * worker, and may be unable to start a thread in its place. So after the retiring worker has
 * subtracted itself from the number of threads, it executes a heavy fence, tests the queues and
 * calls fji_wake_one() if a queue has a task (worker_main() in worker.c).
 *
 * Edges          from                               to                          carries
 *   idle.retire  full fence, retire_reconsider()    full fence, idle_sleep()    ctl, park
 */
#ifndef FJI_RETIRE_H
#define FJI_RETIRE_H

#include "sched/pool.h"

/* Called by the thread of the idle worker w: returns the time at which its sleep has to end so that
 * w can retire. Returns FJ_FOREVER if w is not on top of the idle stack, if the pool needs w (a
 * worker is active, and the pool has at most as many threads as its parallelism), or if the
 * keep-alive time is FJ_FOREVER or so long that the sum would overflow. */
int64_t fji_retire_deadline(fji_worker *w);

/* Called by the thread of the idle worker w when its deadline has passed. If w is on top of the
 * idle stack, takes w off the stack, makes the worker below compute its deadline again, and returns
 * true: w has to exit. Returns false, without any change, if w is not on top; w then stays idle, or
 * another thread has just woken it. */
bool fji_retire(fji_worker *w);

#endif /* FJI_RETIRE_H */
