/* SPDX-License-Identifier: MIT */
/*
 * compensate.c - while a worker is blocked, another one may run in its place
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
 * Refused threads: see spawn.h.
 */

#include "sched/compensate.h"

#include "sched/quiescent.h"
#include "sched/spawn.h"
#include "sched/wake.h"

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
    fji_ctl_add(p, n, 0);
    /* relaxed: this thread's own change, or a later one. */
    return (fji_pool_ctl_hint(p) & FJI_CTL_WAKE_WANTED) != 0;
}

fji_compensation fji_compensate_try_begin(fji_worker *w)
{
    fj_pool *p = w->pool;
    const fj_pool_options *o = &p->options;

    if (w->alive != FJI_ALIVE_WORKER) return FJI_KEPT_SLOT; /* a guest is in no count */
    /* relaxed: the answer may be old by the time the worker waits, whatever the order. */
    if (o->allow_saturation != NULL && compensate_saturated(p, fji_pool_ctl_hint(p)) &&
        !o->allow_saturation(p, o->arg))
        return FJI_SATURATED;
    fji_add_relaxed(&p->blocked, 1);                 /* relaxed: ctl is changed after it */
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_YES); /* relaxed: for monitoring and child.c */
    if (!compensate_add_active(p, -1)) return FJI_RELEASED_SLOT;
    /* [idle.dekker] ctl above, the queues below; partner: the light fence in fj_fork(). */
    fji_pool_barrier(p);
    if (fji_pool_has_work(p)) fji_wake_one(p);
    return FJI_RELEASED_SLOT;
}

/* For waits that cannot fail: they block whatever the saturation callback says. */
fji_compensation fji_compensate_begin(fji_worker *w)
{
    fji_compensation c = fji_compensate_try_begin(w);

    if (c != FJI_SATURATED) return c;
    fji_add_relaxed(&w->pool->blocked, 1);           /* relaxed: as above */
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_YES); /* relaxed: as above */
    (void)compensate_add_active(w->pool, -1);        /* no thread may be added */
    return FJI_RELEASED_SLOT;
}

void fji_compensate_end(fji_worker *w, fji_compensation c)
{
    if (c != FJI_RELEASED_SLOT) return;
    fji_add_relaxed(&w->pool->blocked, (uint32_t)-1); /* relaxed: ctl is changed after it */
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_NO);   /* relaxed: as above */
    (void)compensate_add_active(w->pool, 1);
}

int64_t fji_compensate_retry(fji_worker *w, int64_t *pause)
{
    bool is_short = false;

    /* What the thread was before it became a guest is blocked as well. */
    for (; w != NULL; w = fji_worker_outer(w)) {
        if (!fji_spawn_is_short(w->pool)) continue;
        is_short = true;
        if (*pause != 0) fji_wake_one(w->pool);
    }
    if (!is_short) return FJ_FOREVER;
    *pause = *pause == 0                     ? FJI_RETRY_MIN_NS
             : *pause < FJI_RETRY_MAX_NS / 2 ? *pause * 2
                                             : FJI_RETRY_MAX_NS;
    return fji_plat_now() + *pause;
}
