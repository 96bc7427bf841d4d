/* SPDX-License-Identifier: MIT */
/*
 * compensate.c - compensation: while a worker is blocked, another worker may run in its place
 *
 * The problem. A worker that waits uses no core. If all workers wait, queued tasks do not run,
 * although the workers may wait for exactly these tasks. In this case the pool needs more threads
 * than its parallelism. But most waits are short, and a thread is expensive: the pool must not
 * start one for each wait.
 *
 * The idea. A worker that is about to wait leaves the active count, so the pool is one worker
 * short. The worker is counted in `blocked` of the pool instead, and for each blocked worker the
 * pool may have one thread more.
 *
 *     blocking worker                          producer
 *     1 blocked + 1; CAS ctl: active - 1       1 store the task into a cell
 *     2 heavy fence                            2 light fence
 *     3 a task in any queue: fji_wake_one()    3 wake-up bit set: fji_wake_one()
 *     4 wait
 *     5 blocked - 1; CAS ctl: active + 1
 *
 * The wake-up bit is FJI_CTL_WAKE_WANTED of ctl. Steps 1 to 3 are the handshake of idle.h. Either
 * the producer's step 3 sees step 1 of the blocking worker, or the blocking worker's step 3 sees
 * step 1 of the producer. In a pool without the heavy fence, both fences are full fences.
 * fji_wake_one() wakes an idle worker if there is one. If there is none and the pool may have one
 * more thread (fji_ctl_may_spawn()), fji_wake_one() starts a thread. So a thread is started only if
 * a task is queued and no worker is idle. The blocking worker skips steps 2 and 3 if the wake-up
 * bit is clear after step 1: no worker is missing, or no worker can be woken or added. A worker that
 * waits for a task shares its heavy fence with the workers that become idle ("One heavy fence for
 * several workers" in idle.h). If the task is done before that fence, the worker skips step 3, and
 * step 5 follows at once.
 *
 * After step 5 more workers than the parallelism may be active for a short time. A worker checks
 * between two tasks whether too many are active, and then becomes idle (worker.c).
 *
 * Invariants
 *   B1  `blocked` is the number of workers between steps 1 and 5. Every path that begins a wait
 *       also ends it.
 *   B2  While a task is queued and fewer workers are active than the parallelism, at least one of
 *       these holds: no worker is idle and no thread may be added; a wake-up is in progress; the
 *       start of a thread was refused.
 *
 * spawn.h explains how the pool recovers if a thread is refused.
 *
 * Edges          from                      to                                      carries
 *   idle.dekker  light fence, fj_fork()    heavy fence, compensate_fence()         task, ctl
 */

#include "sched/compensate.h"

#include "sched/quiescent.h"
#include "sched/spawn.h"
#include "sched/wake.h"

/* Returns whether p, with the control word c, would be saturated if one active worker blocked now:
 * fewer than min_runnable workers would stay active, no worker is idle, p has at least max_threads
 * threads, and not more workers are active than the parallelism. */
static bool compensate_saturated(const fj_pool *p, uint64_t c)
{
    fji_sizes s = fji_pool_sizes(p);

    return fji_ctl_top(c) == 0 && fji_ctl_deficit(c) <= 0 && fji_ctl_total(c) >= s.most &&
           fji_ctl_deficit(c) + s.parallelism <= p->min_runnable;
}

/* Adds n to the active count. Returns whether the wake-up bit is set afterwards. */
static bool compensate_add_active(fj_pool *p, int n)
{
    fji_ctl_add(p, n, 0);
    /* relaxed: this thread has just changed ctl by fji_ctl_add(). With any memory order, its load
     * returns the value that it has written, or a later one. */
    return (fji_pool_ctl_hint(p) & FJI_CTL_WAKE_WANTED) != 0;
}

/* Step 2 of the head of this file. done: see fji_compensate_begin_wait(), or NULL. Returns false if
 * *done has ended the wait. */
static bool compensate_fence(fj_pool *p, const fji_fence_stop *done)
{
    if (done != NULL) return fji_idle_fence(p, done);
    /* [idle.dekker] ctl in compensate_release() above, the queues below; partner: the light fence in
     * fj_fork(). Either this worker sees the queued task, or the forking thread sees the wake-up
     * bit. */
    fji_pool_barrier(p);
    return true;
}

/* Steps 1 to 3 of the head of this file: w does not count as active any more. Wakes or starts
 * another worker if one is missing and a task is queued. done: as for compensate_fence(). */
static fji_compensation compensate_release(fji_worker *w, const fji_fence_stop *done)
{
    fj_pool *p = w->pool;

    /* relaxed: the CAS of ctl in compensate_add_active() publishes the new count. */
    fji_add_relaxed(&p->blocked, 1);
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_YES); /* relaxed: for dumps, selfcheck.c, atfork.c */
    if (!compensate_add_active(p, -1)) return FJI_INACTIVE;
    if (compensate_fence(p, done) && fji_pool_has_work(p)) fji_wake_one(p);
    return FJI_INACTIVE;
}

/* As fji_compensate_try_begin(). done: as for compensate_fence(). */
static fji_compensation compensate_try(fji_worker *w, const fji_fence_stop *done)
{
    fj_pool *p = w->pool;
    const fj_pool_options *o = &p->options;

    if (w->alive != FJI_ALIVE_WORKER) return FJI_UNCOUNTED;
    /* relaxed: a hint. With any memory order, ctl may change between this load and the wait of
     * w. */
    if (o->allow_saturation != NULL && compensate_saturated(p, fji_pool_ctl_hint(p)) &&
        !o->allow_saturation(p, o->arg))
        return FJI_SATURATED;
    return compensate_release(w, done);
}

fji_compensation fji_compensate_try_begin(fji_worker *w)
{
    return compensate_try(w, NULL);
}

fji_compensation fji_compensate_begin_wait(fji_worker *w, const fji_fence_stop *done)
{
    fji_compensation c = compensate_try(w, done);

    /* SATURATED: w blocks although the callback has refused. compensate_release() wakes a worker if
     * one has become idle during the callback and a task is queued. */
    return c == FJI_SATURATED ? compensate_release(w, done) : c;
}

fji_compensation fji_compensate_begin(fji_worker *w)
{
    return fji_compensate_begin_wait(w, NULL);
}

void fji_compensate_end(fji_worker *w, fji_compensation c)
{
    if (c != FJI_INACTIVE) return;
    /* relaxed: the CAS of ctl in compensate_add_active() publishes the new count. */
    fji_add_relaxed(&w->pool->blocked, (uint32_t)-1);
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_NO); /* relaxed: for dumps, selfcheck.c, atfork.c */
    (void)compensate_add_active(w->pool, 1);
}

int64_t fji_compensate_retry(fji_worker *w, int64_t *pause)
{
    bool is_short = false;

    /* If w is a guest, its thread may be a worker or guest of another pool (`outer`). While w
     * sleeps, the thread cannot run tasks of that pool either, so that pool is checked too. */
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
