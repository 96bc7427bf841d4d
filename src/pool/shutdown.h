/* SPDX-License-Identifier: MIT */
/*
 * shutdown.h - ends a pool: shutdown, stop, termination
 *
 * shutdown.c describes the run state and its bits SHUTDOWN, STOP and TERMINATED. The caller of
 * these functions holds no lock of the pool.
 */
#ifndef FJI_SHUTDOWN_H
#define FJI_SHUTDOWN_H

#include "sched/pool.h"

/*
 * Takes one step towards the end of p; does nothing if p is not shut down. Sets STOP if `now` is
 * true, or if p is quiescent and no timer keeps it from ending. The thread that sets STOP also
 * cancels the queued tasks and the timers, and if `now` is true interrupts the running tasks. If p
 * has STOP now, wakes its idle workers, and sets TERMINATED if p has no thread and no guest. If p
 * does not have STOP and a task is queued, wakes a worker. Any thread may call it while p exists,
 * any number of times.
 */
void fji_pool_try_terminate(fj_pool *p, bool now);

/* Sets SHUTDOWN and cancels the timers that p does not run any more (fji_timers_shutdown()). Then
 * calls fji_pool_try_terminate(p, now), which sets STOP if `now` is true, or if p is quiescent and
 * no timer keeps it from ending. Does not wait for the end. p is not the common pool. */
void fji_pool_shutdown(fj_pool *p, bool now);

/* Returns whether the calling thread is a worker, a guest or a timer thread of p. A thread that is
 * a guest of several pools, one inside the other, belongs to each of them. Such a thread must not
 * wait for the end of p, because the end waits for the thread. */
bool fji_pool_is_own_thread(const fj_pool *p);

/* Waits until p has TERMINATED. Returns true then, and false if the deadline passes first. If the
 * deadline is FJ_FOREVER, the caller runs the tasks of p while p has no threads and the system
 * refuses to start one. fji_pool_is_own_thread(p) is false for the caller. */
bool fji_pool_await_end(fj_pool *p, int64_t deadline);

/* Calls fji_pool_shutdown(p, false), and waits until p has TERMINATED, as fji_pool_await_end()
 * does. */
void fji_pool_close(fj_pool *p);

/* Called once, by one thread, after TERMINATED was set: waits until no other thread accesses p any
 * more. */
void fji_pool_join(fj_pool *p);

/* If the common pool p is quiescent, no worker or guest of it is quiet, and no timer keeps it from
 * ending, sets SHUTDOWN and STOP in one step and returns true. Otherwise returns false, and the
 * pool accepts work as before. The caller holds fji_common_lock. */
bool fji_pool_stop_common(fj_pool *p);

/* Called after fji_pool_stop_common() has returned true, without fji_common_lock. Makes the threads
 * of the common pool p exit, and waits until p has TERMINATED and no other thread accesses it any
 * more. */
void fji_pool_end_common(fj_pool *p);

#endif /* FJI_SHUTDOWN_H */
