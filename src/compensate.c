/* SPDX-License-Identifier: MIT */
/*
 * compensate.c - compensation: while a worker is blocked, another worker may run in its place
 *
 * A worker that is about to wait leaves the active count, so the pool is one worker short. It is
 * counted in `blocked` instead, and the pool may have that many threads more.
 *
 *     blocking worker                           producer
 *     1 blocked+1; CAS ctl: active-1            1 store the task into a cell
 *     2 heavy fence                             2 light fence
 *     3 a task in any queue: wake-up            3 ctl wants a worker: wake-up
 *     4 wait; blocked-1; CAS ctl: active+1
 *
 * This is the handshake of idle.c. Either the producer's step 3 sees step 1 of the blocking worker,
 * or the blocking worker's step 3 sees step 1 of the producer. The wake-up wakes an idle worker if
 * there is one. If there is none and max_threads allows it, it starts a thread. So a thread is
 * started only if a task is queued and no worker is idle. The blocking worker skips steps 2 and 3
 * if the control word wants no worker after step 1: none is missing, or none can be added.
 *
 * Invariants
 *   B1  `blocked` is the number of workers between steps 1 and 4. Every path that begins a wait
 *       also ends it.
 *   B2  While a task is queued and fewer than `parallelism` workers are active, at least one of
 *       these holds: no worker is idle and no thread may be added; a wake-up is in progress; the
 *       start of a thread was refused.
 *
 * Refused threads. If the start of a thread is refused, the pool stays one worker short, and the
 * control word still wants a worker. So every later submission tries again, and some of the later
 * forks. A pool that is not called again must recover, too. Two kinds of threads therefore try
 * again by themselves, with growing pauses:
 *   - a blocked worker whose wait the library controls (fji_compensate_retry());
 *   - the timer thread, if no worker is active (fji_timers_watch()).
 * Both continue while the pool is short: a task is queued, and the control word wants a worker or a
 * start is in progress. A start in progress hides that a worker is missing, because the control
 * word counts the new worker as active until the start is refused. So `starts` counts the starts in
 * progress and the refusals, and a thread that asks whether the pool is short reads it twice:
 *
 *     starting thread                      asking thread
 *     1 starts: in progress +1             1 a = starts
 *     2 CAS ctl: active+1, total+1         2 ctl wants a worker: short
 *     3 refused: CAS ctl: -1, -1           3 b = starts: one in progress, or b != a: short
 *     4 starts: in progress -1, refused +1
 *
 * If the asking thread reads ctl between the starting thread's 2 and 3, it reads b after 1. So b
 * shows the start in progress, or the change of 4. If b shows 4, then a differs from b: had the
 * asking thread read a after 4, it would have read ctl after 3.
 *
 * Edges               from                        to                           carries
 *   compensate.starts acq_rel add, idle_spawn()   acquire, compensate_read()   the changes of ctl
 */
#include "pool.h"

/* Whether fewer than min_runnable workers stay active if one blocks now, and none can be woken or
 * added. */
static bool compensate_saturated(const fj_pool *p, uint64_t c)
{
    fji_sizes s = fji_pool_sizes(p);

    return fji_ctl_top(c) == 0 && fji_ctl_deficit(c) <= 0 && fji_ctl_total(c) >= s.most &&
           fji_ctl_deficit(c) + s.parallelism <= p->min_runnable;
}

/* Adds n to the active count. Returns whether the control word wants a worker afterwards. */
static bool compensate_add_active(fj_pool *p, int n)
{
    /* [ctl.idle] acquire/acq_rel: as every change of ctl. */
    uint64_t c = fji_load_acquire(&p->ctl);
    uint32_t lost = 0;

    while (!fji_pool_move(p, &c, fji_ctl_add_active(c, n))) fji_pool_lost(p, &c, &lost);
    /* relaxed: it reads the change above, or a later one. */
    return (fji_load_relaxed(&p->ctl) & FJI_CTL_CALL) != 0;
}

int fji_compensate_try_begin(fji_worker *w)
{
    fj_pool *p = w->pool;
    const fj_pool_options *o = &p->options;

    if (w->alive != FJI_ALIVE_WORKER) return FJI_BLOCKED_NO; /* a guest is in no count */
    /* relaxed: with any order the answer may be old by the time the worker waits. */
    if (o->allow_saturation != NULL && compensate_saturated(p, fji_load_relaxed(&p->ctl)) &&
        !o->allow_saturation(p, o->arg))
        return FJI_BLOCKED_REFUSED;
    fji_add_relaxed(&p->blocked, 1);                 /* relaxed: ctl is changed after it */
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_YES); /* relaxed: for monitoring and child.c */
    if (!compensate_add_active(p, -1)) return FJI_BLOCKED_YES;
    /* [idle.dekker] ctl above, the queues below; partner: the light fence in fj_fork(). */
    fji_pool_barrier(p);
    if (fji_idle_sees_work(p)) fji_signal(p);
    return FJI_BLOCKED_YES;
}

/* For waits that cannot fail: the worker blocks even if the saturation callback refuses. */
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

/*
 * Reads the control word and the number of starts in progress, which the control word counts as
 * active workers. Returns false if a start has begun or ended meanwhile.
 */
static bool compensate_read(const fj_pool *p, uint64_t *c, int *under_way)
{
    /* [compensate.starts] acquire <- acq_rel in idle_spawn(). */
    uint32_t before = fji_load_acquire(&p->starts);
    /* [ctl.idle] acquire <- the CAS that wrote it, and the change of `starts` before that CAS. */
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

    return (!same || under_way != 0 || (c & FJI_CTL_CALL) != 0) && fji_idle_sees_work(p);
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

    /* A guest may be a worker or a guest of other pools further up its stack. All of
     * them wait. */
    for (; w != NULL; w = fji_worker_outer(w)) {
        if (!fji_compensate_is_short(w->pool)) continue;
        is_short = true;
        if (*pause != 0) fji_signal(w->pool);
    }
    if (!is_short) return FJ_FOREVER;
    *pause = *pause == 0                      ? FJI_RETRY_LEAST_NS
             : *pause < FJI_RETRY_MOST_NS / 2 ? *pause * 2
                                              : FJI_RETRY_MOST_NS;
    return fji_plat_now() + *pause;
}
