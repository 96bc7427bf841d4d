/* SPDX-License-Identifier: MIT */
/*
 * shutdown.h - ends a pool: shutdown, stop, termination
 *
 * shutdown.c describes the run state. The caller of these functions holds no lock of the pool.
 */
#ifndef FJI_SHUTDOWN_H
#define FJI_SHUTDOWN_H

#include "sched/pool.h"

/*
 * One step towards the end of p, if p is shut down. Sets STOP if p is quiescent, or if `now`. If p
 * has STOP, wakes its idle workers, and sets TERMINATED if p has no thread and no guest. Any thread
 * may call it while p exists, and more than once.
 */
void fji_pool_try_terminate(fj_pool *p, bool now);

/* Sets SHUTDOWN, and with `now` also STOP, and takes the first step towards the end. Does not wait.
 * p is not the common pool. */
void fji_pool_shutdown(fj_pool *p, bool now);

/* Whether the calling thread is a worker, a guest or a timer thread of p, in any of its roles.
 * Such a thread must not wait for the end of p, because it would wait for itself. */
bool fji_pool_is_own_thread(const fj_pool *p);

/* Waits until p has TERMINATED. A caller without a deadline runs the tasks of p if p has no threads
 * and gets none. Returns false if the deadline comes first. The caller is not a thread of p. */
bool fji_pool_await_end(fj_pool *p, int64_t deadline);

/* After TERMINATED: returns when no other thread accesses p any more. One thread calls it, once. */
void fji_pool_join(fj_pool *p);

/* Stops the common pool if it is quiescent: sets SHUTDOWN and STOP in one step. Returns false if it
 * is not quiescent; the pool then accepts work as before. The caller holds fji_common_lock. */
bool fji_pool_stop_common(fj_pool *p);

/* After fji_pool_stop_common() has returned true, and without fji_common_lock: waits until the
 * common pool has TERMINATED, and until no other thread accesses it any more. */
void fji_pool_end_common(fj_pool *p);

#endif /* FJI_SHUTDOWN_H */
