/* SPDX-License-Identifier: MIT */
/*
 * spawn.h - starting threads, and what happens if a start is refused
 *
 * The control word counts a thread before it is started: one CAS adds 1 to the active workers and 1
 * to the threads. The start is refused if the system, the allow_thread callback or the
 * create_thread callback refuses it, if no record can be created, or if the pool stops. Then the
 * starting thread subtracts both again, which also sets the wake-up bit again. After that every
 * push into a submission queue, unless it is lazy, and some pushes of a worker into its own queue
 * (fork_may_wake()) try to start a thread again.
 *
 * A pool must recover even if the program calls no further function of it. So two kinds of threads
 * try again by themselves, with growing pauses:
 *   - a blocked worker or waiting guest whose wait the library controls (fji_compensate_retry());
 *   - the timer thread, if no worker is active (the hook `watch`).
 * They try while the pool is short of a worker: a task is queued, and the wake-up bit is set or a
 * start is under way. A start under way hides that a worker is missing, because the control word
 * counts the new worker as active until the start is refused. So `starts` counts the starts under
 * way and the refused starts, and a thread that asks whether the pool is short reads it twice:
 *
 *     starting thread (fji_spawn)            asking thread (spawn_read)
 *     1 starts: under way + 1                a = starts
 *     2 CAS ctl: active + 1, total + 1       read ctl; wake-up bit set: short
 *     3 refused: CAS ctl: - 1, - 1           b = starts; a start under way, or b != a: short
 *     4 starts: under way - 1, refused + 1
 *
 * Suppose that the asking thread reads ctl between steps 2 and 3 of the starting thread. Then it
 * reads b after step 1. So b shows the start under way, or the result of step 4. If b shows the
 * result of step 4, a differs from b: if the asking thread had read a after step 4, it would have
 * read ctl after step 3.
 *
 * A thread whose on_start callback returns an error exits at once. It does not count as a refused
 * start. After FJI_FAILED_STARTS such threads in a row no thread is started for FJI_FAILED_WAIT_NS.
 *
 * Edges               from                       to                        carries
 *   compensate.starts acq_rel adds, fji_spawn()  acquire, spawn_read()     the changes of ctl
 */
#ifndef FJI_SPAWN_H
#define FJI_SPAWN_H

#include "sched/pool.h"

/* Returns whether a thread may be added to a pool with the control word c: the parallelism and
 * max_threads allow it, and on_start has not just returned an error in FJI_FAILED_STARTS threads in
 * a row. Any thread may call it. */
bool fji_spawn_allowed(const fj_pool *p, uint64_t c);

/*
 * Counts a thread in the control word and starts it. Returns false if the control word is not *c
 * any more: no thread was counted, *c becomes the new value, and *started becomes false. Otherwise
 * returns true and sets *started to whether the start succeeded. The rules of fji_wake_one() for
 * the calling thread and its locks apply.
 */
bool fji_spawn(fj_pool *p, uint64_t *c, bool *started);

/* Called by a started thread whose on_start callback has returned an error. Adds 1 to failed_starts
 * of p. If failed_starts is then at least FJI_FAILED_STARTS, fji_spawn_allowed() returns false for
 * the next FJI_FAILED_WAIT_NS, or until on_start succeeds in another thread. */
void fji_spawn_failed(fj_pool *p);

/* Returns whether p is short of a worker: a task is queued, and the wake-up bit is set or a start
 * is under way. Also returns true if a task is queued and a start has begun or ended during the
 * call. Any thread may call it. */
bool fji_spawn_is_short(fj_pool *p);

/* Returns whether p is short of a worker and no worker is active. A worker whose start is under way
 * does not count as active here. Any thread may call it. */
bool fji_spawn_is_stuck(fj_pool *p);

#endif /* FJI_SPAWN_H */
