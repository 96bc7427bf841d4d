/* SPDX-License-Identifier: MIT */
/*
 * spawn.h - starting threads, and what happens if a start is refused
 *
 * The control word counts a thread before it is started: one CAS adds 1 to the active workers and
 * to the threads. The system, the allow_thread callback or the create_thread callback may refuse
 * the start. Then the counts are given back, and the wake-up bit is set again. Every later
 * submission then tries again, and some of the later forks (fji_wake_slow()).
 *
 * A pool that is not called again must recover, too. So two kinds of threads try again by
 * themselves, with growing pauses:
 *   - a blocked worker whose wait the library controls (fji_compensate_retry());
 *   - the timer thread, if no worker is active (the hook `watch`).
 * They try while the pool is short of a worker: a task is queued, and the wake-up bit is set or a
 * start is under way. A start under way hides that a worker is missing, because the control word
 * counts the new worker as active until the start is refused. So `starts` counts the starts under
 * way and the refused starts, and a thread that asks whether the pool is short reads it twice:
 *
 *     starting thread (fji_spawn)            asking thread (spawn_read)
 *     1 starts: under way + 1                1 a = starts
 *     2 CAS ctl: active + 1, total + 1       2 read ctl; wake-up bit set: short
 *     3 refused: CAS ctl: - 1, - 1           3 b = starts; a start under way, or b != a: short
 *     4 starts: under way - 1, refused + 1
 *
 * If the asking thread reads ctl between 2 and 3, it reads b after 1. So b shows the start under
 * way, or the change of 4. If b shows 4, then a differs from b: if the asking thread had read a
 * after 4, it would have read ctl after 3.
 *
 * A thread that its on_start callback ends is not a refused start. After FJI_FAILED_STARTS of these
 * in a row no thread is started for FJI_FAILED_WAIT_NS.
 *
 * Edges               from                       to                        carries
 *   compensate.starts acq_rel adds, fji_spawn()  acquire, spawn_read()     the changes of ctl
 */
#ifndef FJI_SPAWN_H
#define FJI_SPAWN_H

#include "sched/pool.h"

/* Whether a thread may be added, given the control word c: the parallelism and max_threads allow
 * it, and on_start has not just ended FJI_FAILED_STARTS threads in a row. Any thread may call
 * it. */
bool fji_spawn_allowed(const fj_pool *p, uint64_t c);

/*
 * Counts a thread in the control word and starts it. Returns false if the control word has changed
 * from *c: nothing was done, and *c is the new value. Otherwise returns true, and *started is
 * whether the start succeeded. May be called as fji_wake_one().
 */
bool fji_spawn(fj_pool *p, uint64_t *c, bool *started);

/* Called by a started thread that its on_start callback ends. */
void fji_spawn_failed(fj_pool *p);

/* Whether p is short of a worker: a task is queued, and the wake-up bit is set or a start is under
 * way. Also returns true if a task is queued and a start has begun or ended during the call. Any
 * thread may call it. */
bool fji_spawn_is_short(fj_pool *p);

/* Whether p is short of a worker and no worker is active. Starts under way do not count as active
 * here. Any thread may call it. */
bool fji_spawn_is_stuck(fj_pool *p);

#endif /* FJI_SPAWN_H */
