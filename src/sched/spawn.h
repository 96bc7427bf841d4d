/* SPDX-License-Identifier: MIT *
 * The control word reserves a thread before it is started: active + 1 and total + 1 in one CAS. If the start
 * is refused, the same CAS backwards gives the counts back, so that the control word asks every later
 * submission, and some later forks, to try again. A pool that is not called again recovers too, because two
 * threads try again with growing pauses:
 *   - a blocked worker whose wait the library controls (fji_compensate_retry());
 *   - the timer thread, if no worker is active (the hook `watch`).
 * Both continue while the pool is short of a worker: a task is queued, and the control word asks for a worker
 * or a start is under way. While a start is under way the control word does not ask, and if it is refused it
 * asks again. So `starts` counts starts that are under way and starts that were refused, and is read twice:
 *
 *     starter                              observer
 *     1 starts: under way + 1              1 a = starts
 *     2 CAS ctl: active + 1, total + 1     2 ctl asks for a worker: short
 *     3 refused: CAS ctl: - 1, - 1         3 b = starts: under way, or b != a: short
 *     4 starts: under way - 1, refused + 1
 *
 * An observer that reads ctl between 2 and 3 reads b after step 1, so it sees step 1 or step 4 in b. If it
 * sees step 4, it saw something else in a, because after step 4 it would have read ctl after step 3.
 *
 * Edges               from                       to                         carries
 *   compensate.starts acq_rel add, fji_spawn()   acquire, spawn_read()      what ctl was meanwhile
 *
 * The control word reserves a thread before it is started: active + 1 and total + 1 in one CAS. If the start
 * is refused, the same CAS backwards gives the counts back, so that the control word asks every later
 * submission, and some later forks, to try again. A pool that is not called again recovers too, because two
 * threads try again with growing pauses:
 *   - a blocked worker whose wait the library controls (fji_compensate_retry());
 *   - the timer thread, if no worker is active (the hook `watch`).
 * Both continue while the pool is short of a worker: a task is queued, and the control word asks for a worker
 * or a start is under way. While a start is under way the control word does not ask, and if it is refused it
 * asks again. So `starts` counts starts that are under way and starts that were refused, and is read twice:
 *
 *     starter                              observer
 *     1 starts: under way + 1              1 a = starts
 *     2 CAS ctl: active + 1, total + 1     2 ctl asks for a worker: short
 *     3 refused: CAS ctl: - 1, - 1         3 b = starts: under way, or b != a: short
 *     4 starts: under way - 1, refused + 1
 *
 * An observer that reads ctl between 2 and 3 reads b after step 1, so it sees step 1 or step 4 in b. If it
 * sees step 4, it saw something else in a, because after step 4 it would have read ctl after step 3.
 *
 * Edges               from                       to                         carries
 *   compensate.starts acq_rel add, fji_spawn()   acquire, spawn_read()      what ctl was meanwhile
 *
 * The control word reserves a thread before it is started: active + 1 and total + 1 in one CAS. If the start
 * is refused, the same CAS backwards gives the counts back, so that the control word asks every later
 * submission, and some later forks, to try again. A pool that is not called again recovers too, because two
 * threads try again with growing pauses:
 *   - a blocked worker whose wait the library controls (fji_compensate_retry());
 *   - the timer thread, if no worker is active (the hook `watch`).
 * Both continue while the pool is short of a worker: a task is queued, and the control word asks for a worker
 * or a start is under way. While a start is under way the control word does not ask, and if it is refused it
 * asks again. So `starts` counts starts that are under way and starts that were refused, and is read twice:
 *
 *     starter                              observer
 *     1 starts: under way + 1              1 a = starts
 *     2 CAS ctl: active + 1, total + 1     2 ctl asks for a worker: short
 *     3 refused: CAS ctl: - 1, - 1         3 b = starts: under way, or b != a: short
 *     4 starts: under way - 1, refused + 1
 *
 * An observer that reads ctl between 2 and 3 reads b after step 1, so it sees step 1 or step 4 in b. If it
 * sees step 4, it saw something else in a, because after step 4 it would have read ctl after step 3.
 *
 * Edges               from                       to                         carries
 *   compensate.starts acq_rel add, fji_spawn()   acquire, spawn_read()      what ctl was meanwhile
 */
/*
 * spawn.h - starting threads, and what happens when a start is refused
 */
#ifndef FJI_SPAWN_H
#define FJI_SPAWN_H

#include "sched/pool.h"

/* Whether a thread may be added, and the last starts did not all fail just now. */
bool fji_spawn_allowed(const fj_pool *p, uint64_t c);

/* Counts a thread in the control word and starts it. Returns false if *c has changed; then nothing
 * was done. *started: whether the start succeeded. */
bool fji_spawn(fj_pool *p, uint64_t *c, bool *started);

/* The on_start callback has ended a thread. */
void fji_spawn_failed(fj_pool *p);

/* Whether p is short of a worker: a task is queued, and a worker that could run it is missing although
 * there may be one; a wake-up is under way, or a start was refused. */
bool fji_spawn_is_short(fj_pool *p);

/* Whether p is short of a worker, and no worker is active. */
bool fji_spawn_is_stuck(fj_pool *p);

#endif /* FJI_SPAWN_H */
