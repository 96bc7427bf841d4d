/* SPDX-License-Identifier: MIT */
/*
 * compensate.c - compensation: while a worker is blocked, another one may run in its place
 *
 * A worker that is about to wait takes itself out of the active count, so that the pool is one
 * worker short. It is counted in `blocked` instead: the pool may have that many threads more.
 *
 *     blocker                                   producer
 *     1 blocked+1; CAS ctl: active-1            1 cell = task
 *     2 heavy fence                             2 light fence
 *     3 a task in any queue: signal             3 ctl < 0: signal
 *     4 waits; blocked-1; CAS ctl: active+1
 *
 * This is the handshake of idle.c. Either the producer's 3 sees the blocker's 1, or the blocker's
 * 3 sees the producer's 1. The signal wakes an idle worker if there is one, and starts a thread if
 * there is none and max_threads allows it. So a thread is started only when a task is queued and no
 * worker is idle. Steps 2 and 3 are left out if the control word says, after 1, that no worker is
 * missing or none can be had.
 *
 * Invariants
 *   B1  blocked == workers between 1 and 4. What begin takes, end gives back, on every path.
 *   B2  While a task is queued and fewer than `parallelism` workers are active, either no worker is
 *       idle and no thread may be added, or a signal is under way, or a start was refused.
 *
 * Refused threads. If the start of a thread is refused the pool stays one worker short, so that the
 * control word asks every later submission, and forks now and then, to try again. So that a pool
 * that is not called again recovers too, two others try, with growing pauses:
 *   - a blocked worker whose wait the library controls (fji_compensate_retry());
 *   - the thread of the timers, if no worker is active (fji_timers_watch()).
 * Both go on while the pool is short: a task is queued, and the control word asks for a worker or a
 * start is under way. While one is under way the control word does not ask, and if it is refused it
 * asks again; so `starts` counts both, and is read before and after:
 *
 *     starter                              looker
 *     1 starts: under way +1               1 a = starts
 *     2 CAS ctl: active+1, total+1         2 ctl asks: short
 *     3 refused: CAS ctl: -1, -1           3 b = starts: under way, or not a: short
 *     4 starts: under way -1, refused +1
 *
 * A looker that reads ctl between 2 and 3 reads `starts` after 1, and sees 1 or 4 in b. If it sees 4
 * it saw something else in a, since after 4 it would have read ctl after 3.
 *
 * Edges          from                        to                        carries
 *   compensate.starts acq_rel add, idle_spawn()   acquire, block_is_short()  what ctl said meanwhile
 */
#include "pool.h"

/* Whether a worker that blocks now leaves fewer than min_runnable, and nothing can be done. */
static bool compensate_saturated(const fj_pool *p, uint64_t c)
{
    fji_sizes s = fji_pool_sizes(p);

    return fji_ctl_top(c) == 0 && fji_ctl_deficit(c) <= 0 && fji_ctl_total(c) >= s.most &&
           fji_ctl_deficit(c) + s.parallelism <= p->min_runnable;
}

/* Adds n to the active count. Returns whether the control word asks for a worker afterwards. */
static bool compensate_add_active(fj_pool *p, int n)
{
    /* [ctl.idle] acquire/acq_rel: as every change of ctl. */
    uint64_t c = fji_load_acquire(&p->ctl);
    uint32_t failures = 0;

    while (!fji_ctl_cas(p, &c, fji_ctl_add_active(c, n))) fji_ctl_backoff(p, &c, &failures);
    /* relaxed: this thread's own change, or a later one. */
    return (fji_load_relaxed(&p->ctl) & FJI_CTL_WAKE_WANTED) != 0;
}

int fji_compensate_try_begin(fji_worker *w)
{
    fj_pool *p = w->pool;
    const fj_pool_options *o = &p->options;

    if (w->alive != FJI_ALIVE_WORKER) return FJI_BLOCKED_NO; /* a guest is in no count */
    /* relaxed: the answer may be old by the time the worker waits, whatever the order. */
    if (o->allow_saturation != NULL && compensate_saturated(p, fji_load_relaxed(&p->ctl)) &&
        !o->allow_saturation(p, o->arg))
        return FJI_BLOCKED_REFUSED;
    fji_add_relaxed(&p->blocked, 1);                 /* relaxed: ctl is changed after it */
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_YES); /* relaxed: for monitoring and child.c */
    if (!compensate_add_active(p, -1)) return FJI_BLOCKED_YES;
    /* [idle.dekker] ctl above, the queues below; partner: the light fence in fj_fork(). */
    fji_pool_barrier(p);
    if (fji_pool_has_work(p)) fji_wake_one(p);
    return FJI_BLOCKED_YES;
}

/* For waits that cannot fail: they block whatever the saturation callback says. */
int fji_compensate_begin(fji_worker *w)
{
    int token = fji_compensate_try_begin(w);

    if (token != FJI_BLOCKED_REFUSED) return token;
    fji_add_relaxed(&w->pool->blocked, 1);           /* relaxed: as above */
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_YES); /* relaxed: as above */
    (void)compensate_add_active(w->pool, -1);        /* no thread may be added */
    return FJI_BLOCKED_YES;
}

void fji_compensate_end(fji_worker *w, int token)
{
    if (token != FJI_BLOCKED_YES) return;
    fji_add_relaxed(&w->pool->blocked, (uint32_t)-1); /* relaxed: ctl is changed after it */
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_NO);   /* relaxed: as above */
    (void)compensate_add_active(w->pool, 1);
}

/* The control word, and how many starts are under way that it counts as active. False: one may have
 * ended meanwhile. */
static bool compensate_read(const fj_pool *p, uint64_t *c, int *under_way)
{
    /* [compensate.starts] acquire <- acq_rel in idle_spawn(). */
    uint32_t before = fji_load_acquire(&p->starts);
    /* [ctl.idle] acquire <- the last CAS on it: also `starts` before that. */
    *c = fji_load_acquire(&p->ctl);
    /* [compensate.starts] acquire <- acq_rel in idle_spawn(). */
    uint32_t after = fji_load_acquire(&p->starts);

    *under_way = (int)(after & FJI_STARTS_UNDER_WAY);
    return after == before;
}

bool fji_compensate_is_short(fj_pool *p)
{
    uint64_t c;
    int under_way;
    bool same = compensate_read(p, &c, &under_way);

    return (!same || under_way != 0 || (c & FJI_CTL_WAKE_WANTED) != 0) && fji_pool_has_work(p);
}

bool fji_compensate_is_stuck(fj_pool *p)
{
    int target = fji_load_relaxed(&p->parallelism); /* relaxed: a limit, not a count */
    uint64_t c;
    int under_way;
    bool same = compensate_read(p, &c, &under_way);

    return (!same || fji_ctl_deficit(c) + target - under_way <= 0) && fji_compensate_is_short(p);
}

void fji_compensate_refused(fj_pool *p)
{
    if (fji_compensate_is_stuck(p)) fji_timers_watch(p);
}

int64_t fji_compensate_retry(fji_worker *w, int64_t *pause)
{
    bool is_short = false;

    /* What the thread was before it became a guest is blocked as well. */
    for (; w != NULL; w = fji_worker_outer(w)) {
        if (!fji_compensate_is_short(w->pool)) continue;
        is_short = true;
        if (*pause != 0) fji_wake_one(w->pool);
    }
    if (!is_short) return FJ_FOREVER;
    *pause = *pause == 0                     ? FJI_RETRY_MIN_NS
             : *pause < FJI_RETRY_MAX_NS / 2 ? *pause * 2
                                             : FJI_RETRY_MAX_NS;
    return fji_plat_now() + *pause;
}
