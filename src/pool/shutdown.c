/* SPDX-License-Identifier: MIT */
/*
 * shutdown.c - ending a pool
 *
 * The run state only gains bits:
 *
 *     0 -> SHUTDOWN -> STOP -> TERMINATED
 *
 *   SHUTDOWN    by fj_pool_shutdown(). Submitters look at it under their queue's lock,
 *               guests under the pool's.
 *   STOP        by shutdown_now, or by whoever finds a pool that is shut down quiescent:
 *               the caller of shutdown, a worker that goes idle, a guest that leaves. Idle
 *               workers are woken, what is queued is cancelled, workers leave.
 *   TERMINATED  under the pool's lock, by whoever finds STOP, no thread counted in ctl and no
 *               guest. `run` is the word that is waited on.
 *
 * After TERMINATED nobody touches the pool but: the last thread, which is joined by destroy;
 * a guest or submitter that lets go of a lock, which destroy takes once more.
 *
 *   CLOSING     of the common pool, while fj_common_shutdown() looks whether it can be stopped:
 *               then SHUTDOWN and STOP come at once, else CLOSING goes again. Submitters look at
 *               it as at SHUTDOWN, and wait for the outcome.
 *
 * The record of the common pool is static (common.c): the bits are reset when it is made again.
 *
 * Edges        from                    to                              carries
 *   pool.end   release or of the bit   acquire load in await, is_...   all that was done
 */

#include "pool/shutdown.h"

#include "plat/wait.h"
#include "pool/timers.h"
#include "sched/check.h"
#include "sched/compensate.h"
#include "sched/interrupt.h"
#include "sched/lifetime.h"
#include "sched/quiescent.h"
#include "sched/run.h"
#include "sched/threadless.h"
#include "sched/wake.h"

/* Cancels what nobody has begun. Typed tasks are left to their owners, who run them. */
static void shutdown_cancel_queued(fj_pool *p)
{
    fji_taken taken;
    uint32_t n = fji_pool_nworkers(p);

    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q == NULL) continue;
        fji_lock_take(&q->lock); /* whoever pushes holds it: none comes after this */
        while (fji_submission_queue_maybe(q))
            if (fji_submission_queue_steal(q, &taken) == FJI_STEAL_SUCCESS)
                fji_cancel_taken(&taken);
        fji_lock_drop(&q->lock);
    }
    for (uint32_t i = 0; i < n; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        while (w != NULL && fji_queue_steal_untyped(&w->q, &taken) == FJI_STEAL_SUCCESS)
            fji_cancel_taken(&taken);
    }
}

/*
 * Sets STOP if nothing is left to do, or `now`; false: not yet. *run is what it was before. A guest
 * comes with the lock held: one that came after the look is looked at again, one that comes
 * later finds the pool stopped.
 */
static bool shutdown_stop(fj_pool *p, bool now, uint32_t *run)
{
    for (;;) {
        /* [pool.activity] acquire <- acq_rel in fji_guest_enter(). */
        uint64_t activity = fji_load_acquire(&p->activity_epoch);
        /* A timer that fires meanwhile is in a queue before it stops counting as waiting. */
        if (!now && (fji_timers_wait(p) || !fji_pool_quiescent(p, true))) return false;
        fji_lock_take(&p->lock);
        bool same = now || fji_load_relaxed(&p->activity_epoch) == activity; /* relaxed: the lock */
        /* [pool.end] acq_rel: one stops it, the others see that it is stopped. The common pool
         * has not been shut down before. */
        if (same) *run = fji_or_acq_rel(&p->run, FJI_RUN_SHUTDOWN | FJI_RUN_STOP);
        fji_lock_drop(&p->lock);
        if (same) return true;
    }
}

/* STOP was set by the caller, in whose hands the rest is; run: what it was before. */
static void shutdown_stopped(fj_pool *p, bool now, uint32_t run)
{
    /* [pool.end] run above, ctl below; partner: the barrier in fji_idle_wait(), after which
     * a worker that goes idle looks at run.
     * [common.hold] and the holds; partner: the fence in fji_pool_hold(). */
    fji_fence_full();
    if ((run & FJI_RUN_STOP) != 0) return;
    shutdown_cancel_queued(p);
    if (now) fji_pool_interrupt(p); /* else nothing runs */
    fji_timers_shutdown(p);
}

void fji_pool_try_terminate(fj_pool *p, bool now)
{
    /* [pool.end] acquire <- whoever set the bits. */
    uint32_t run = fji_load_acquire(&p->run);

    if ((run & FJI_RUN_STOP) == 0) {
        if ((run & FJI_RUN_SHUTDOWN) == 0) return;
        if (!shutdown_stop(p, now, &run)) {
            /* What was queued lazily has woken nobody, and now it must be run. */
            if (fji_pool_has_work(p)) fji_wake_one(p);
            return;
        }
        shutdown_stopped(p, now, run);
    }
    fji_wake_all_idle(p);
    fji_lock_take(&p->lock);
    fji_pool_end_if_over(p);
    fji_lock_drop(&p->lock);
}

void fji_pool_shutdown(fj_pool *p, bool now)
{
    /* [pool.end] release -> acquire in is_shutdown. */
    fji_or_release(&p->run, FJI_RUN_SHUTDOWN);
    /* [pool.end] run above, who is quiet below; partner: the fence in fji_pool_maybe_terminate().
     * [timer.made] and the timers, if there are some; partner: the fence in fji_timers_of(). */
    fji_fence_full();
    fji_timers_shutdown(p);
    fji_pool_try_terminate(p, now);
}

/* The waiter has to look now and then, as there may be no thread that ends the pool. One that is
 * counted may be a start that the system is about to refuse. False: the time is over. */
static bool shutdown_wait_a_while(fj_pool *p, uint32_t run, int64_t deadline, int64_t retry)
{
    int64_t look = fji_plat_now() + FJI_THREADLESS_POLL_NS;

    if (retry < look) look = retry;
    if (deadline <= look) return fji_plat_wait(&p->run, run, deadline);
    fji_plat_wait(&p->run, run, look);
    return true;
}

bool fji_pool_is_own_thread(const fj_pool *p)
{
    return fji_worker_in(p) != NULL || fji_timers_is_own_thread(p);
}

bool fji_pool_await_end(fj_pool *p, int64_t deadline)
{
    fji_worker *w = fji_worker_self();
    fji_compensation c = w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED;
    int64_t pause = 0;
    bool in_time = true;
    uint32_t run;

    /* [pool.end] acquire <- release in fji_pool_end_if_over(). */
    while (((run = fji_load_acquire(&p->run)) & FJI_RUN_TERMINATED) == 0 && in_time) {
        fji_run_threadless(p, deadline == FJ_FOREVER);
        fji_pool_try_terminate(p, false);
        int64_t retry = w != NULL ? fji_compensate_retry(w, &pause) : FJ_FOREVER;
        in_time = shutdown_wait_a_while(p, run, deadline, retry);
    }
    if (w != NULL) fji_compensate_end(w, c);
    return (run & FJI_RUN_TERMINATED) != 0;
}

/* With the lock: every thread that was counted has been uncounted. */
static bool shutdown_is_empty(const fj_pool *p)
{
    uint64_t c = fji_pool_ctl(p);

    return fji_ctl_total(c) == 0 && fji_ctl_top(c) == 0 && p->guests == 0 && p->blocked == 0 &&
           fji_ctl_deficit(c) + p->parallelism == 0;
}

/* After its end: nobody touches it any more when this returns. */
void fji_pool_join(fj_pool *p)
{
    /* Whoever still holds a lock is on its way out and lets go of it last. */
    fji_lock_take(&p->lock);
    bool last_exited = p->has_last_exited;
    p->has_last_exited = false;
    fji_lock_drop(&p->lock);
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q == NULL) continue;
        fji_lock_take(&q->lock);
        fji_lock_drop(&q->lock);
    }
    /* One that has left may still signal, in vain, for what it saw before the end. */
    if (last_exited) fji_plat_thread_join(p->last_exited);
    fji_lock_take(&p->lock);
    fji_check(p, shutdown_is_empty(p));
    fji_lock_drop(&p->lock);
}

/* ---- The end of the common pool ----------------------------------------------------------------------- */

bool fji_pool_stop_common(fj_pool *p)
{
    uint32_t run;

    /* The caller joins the threads, also in a destructor that runs after common_at_exit(). */
    fji_lock_take(&p->lock);
    p->leavers_detach = false;
    fji_lock_drop(&p->lock);
    /* [pool.end] acq_rel: whoever submits looks at it under the lock of its queue. */
    fji_or_acq_rel(&p->run, FJI_RUN_CLOSING);
    /* [pool.end] run above, the queues below; partner: the fence in fji_submissions_get().
     * [timer.made] and the timers, if there are some; partner: the fence in fji_timers_of(). */
    fji_fence_full();
    if (shutdown_stop(p, false, &run)) return true;
    /* [pool.end] acq_rel: it takes work again. */
    fji_and_acq_rel(&p->run, ~FJI_RUN_CLOSING);
    return false;
}

void fji_pool_end_common(fj_pool *p)
{
    uint32_t run;

    shutdown_stopped(p, false, 0);
    /* [pool.end] acquire <- release in fji_pool_end_if_over(). */
    while (((run = fji_load_acquire(&p->run)) & FJI_RUN_TERMINATED) == 0) {
        fji_pool_try_terminate(p, false);
        (void)shutdown_wait_a_while(p, run, FJ_FOREVER, FJ_FOREVER);
    }
    fji_pool_join(p);
}
