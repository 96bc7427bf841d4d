/* SPDX-License-Identifier: MIT */
/*
 * pool.c - making, resizing and ending a pool
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
#include "pool.h"
#include "check.h"

#include <stdio.h>
#include <string.h>

void fji_pool_barrier(fj_pool *p)
{
    /* [idle.dekker] the heavy half, for fji_idle_wait(). It is there if it was promised, also
     * where the system has come to refuse it: see plat.h. */
    if (!p->asymmetric || !fji_plat_barrier()) fji_fence_full();
}

void fji_pool_log(const fj_pool *p, int level, const char *text)
{
    if (p->options.log != NULL) p->options.log(level, text, p->options.arg);
}

/* ---- Making --------------------------------------------------------------------------------------- */

static int options_check(const fj_pool_options *o)
{
    if (o->parallelism < 0 || o->parallelism > FJ_MAX_WORKERS) return FJ_EINVAL;
    if ((o->flags & ~(FJ_POOL_FIFO | FJ_POOL_CALLER_HELPS | FJ_POOL_SYMMETRIC)) != 0)
        return FJ_EINVAL;
    if (o->max_threads < 0 || o->min_runnable < 0 || o->min_runnable > FJ_MAX_WORKERS)
        return FJ_EINVAL;
    if (o->max_threads != 0 && o->max_threads < o->parallelism) return FJ_EINVAL;
    if (o->max_threads != 0 && o->max_threads < o->min_runnable) return FJ_EINVAL;
    if (o->keep_alive_ns < 0 || o->spin_ns < -1) return FJ_EINVAL;
    if (o->interrupt_signal < 0 || o->cpus_bytes > 65536) return FJ_EINVAL;
    for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
        if (o->reserved[i] != 0) return FJ_EINVAL;
    return FJ_OK;
}

/* Copies the caller's options, or the defaults if `from` is NULL, and checks them. */
int fji_options_read(fj_pool_options *o, const fj_pool_options *from)
{
    *o = from != NULL ? *from : (fj_pool_options){0};
    return options_check(o);
}

static uint32_t submission_queues_for(int parallelism)
{
    uint32_t n = 2;

    while (n < (uint32_t)parallelism && n < FJI_MAX_SUBMISSION_QUEUES) n *= 2;
    return n;
}

/* Most threads of p with a parallelism of n: what was given, else some more than n. */
static int pool_most(const fj_pool *p, int n)
{
    int most = p->options.max_threads != 0 ? p->options.max_threads : n + FJI_SPARES;

    if (most < p->min_runnable) most = p->min_runnable;
    return most < FJ_MAX_WORKERS ? most : FJ_MAX_WORKERS;
}

/* Whether the heavy fence may be relied on: asked once for the process. */
static bool pool_has_barrier(void)
{
    static uint32_t known;                 /* 1 yes, 2 no */
    uint32_t k = fji_load_relaxed(&known); /* relaxed: every writer finds the same */

    if (k == 0) {
        const char *fences = fji_plat_env("FORKJOIN_FENCES");
        bool no = fences != NULL && strcmp(fences, "symmetric") == 0;
        k = !no && fji_plat_has_barrier() ? 1 : 2;
        fji_store_relaxed(&known, k); /* relaxed: as above */
    }
    return k == 1;
}

static void pool_set(fj_pool *p, const fj_pool_options *o, bool common)
{
    int cpus = fj_available_parallelism();
    int n = o->parallelism;
    int64_t keep = o->keep_alive_ns != 0 ? o->keep_alive_ns : FJI_KEEP_ALIVE_NS;

    p->options = *o;
    fji_store_relaxed(&p->parallelism, n); /* relaxed: a limit, not a count */
    p->min_runnable = o->min_runnable != 0 ? o->min_runnable : 1;
    p->max_threads = pool_most(p, n);
    p->keep_alive_ns = keep < FJI_KEEP_ALIVE_MIN_NS ? FJI_KEEP_ALIVE_MIN_NS : keep;
    p->spin_ns = o->spin_ns != 0 ? o->spin_ns : FJI_SPIN_NS;
    if (p->spin_ns > FJI_SPIN_MAX_NS) p->spin_ns = FJI_SPIN_MAX_NS;
    p->max_spinners = (uint32_t)(cpus / 2);
    p->fence_waits = p->spin_ns > 0 && n <= cpus;
    p->fifo = (o->flags & FJ_POOL_FIFO) != 0;
    p->activity_epoch = p->started = FJI_START_64;
    p->fence_begun = p->fence_done = FJI_START_32;
    p->nsearching = p->shrinking = p->failed_starts = p->spawn_refused = p->starts = p->blocked = 0;
    fji_sizes sizes = fji_pool_sizes(p);
    p->ctl = fji_ctl_normalize(fji_ctl_add_active(FJI_CTL_NONE, -n), &sizes);
    (void)snprintf(p->name, sizeof p->name, "%s",
                   o->name != NULL ? o->name
                   : common        ? "common"
                                   : "fj");
    p->options.name = p->name;
    p->asymmetric = (o->flags & FJ_POOL_SYMMETRIC) == 0 && pool_has_barrier();
}

/* What stays when the common pool is made again: others may look at it at any time. */
static void pool_set_for_good(fj_pool *p, const fj_pool_options *o, bool common)
{
    int cpus = fj_available_parallelism();

    p->caller_helps = common || (o->flags & FJ_POOL_CALLER_HELPS) != 0;
    p->is_common = common;
    p->nsubmissions = submission_queues_for(common && cpus > o->parallelism ? cpus
                                                                            : o->parallelism);
    for (int i = 0; i < 2; i++) p->submitted_cell[i].item = FJI_END;
    p->submitted_cell[0].kind = FJI_CELL_SUBMITTED;
    memcpy(p->submitted_cell[0].args, &p, sizeof p);
}

/* All that hangs on the record but the submission queues and the timers. */
static void pool_free_workers(fj_pool *p)
{
    for (uint32_t i = 0; i < p->workers; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        if (w == NULL) continue;
        fji_queue_fini(&w->q);
        fji_scope_fini(w);
        fji_overflow_free(w->overflow_cells);
        fji_plat_free(w);
    }
    for (uint32_t i = 0; i < FJI_CHUNKS; i++) {
        fji_plat_free(p->chunk[i]);
        p->chunk[i] = NULL;
    }
    p->workers = 0;
    fji_plat_free(p->cpus);
    p->cpus = NULL;
}

static void pool_free(fj_pool *p)
{
    pool_free_workers(p);
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        if (p->submissions[i] == NULL) continue;
        fji_submission_queue_fini(p->submissions[i]);
        fji_plat_free(p->submissions[i]);
    }
    fji_timers_free(p);
    fji_plat_free(p);
}

/* The contents of a record; false: no memory, and it is as it was. */
static bool pool_fill(fj_pool *p, const fj_pool_options *o, bool common)
{
    if (o->cpus != NULL && o->cpus_bytes != 0) {
        p->cpus = fji_plat_alloc(o->cpus_bytes);
        if (p->cpus == NULL) return false;
        memcpy(p->cpus, o->cpus, o->cpus_bytes);
    }
    fji_lock_take(&p->lock);
    pool_set(p, o, common);
    /* A record to begin with: whoever has to run what nobody else can is never without one. */
    bool ok = fji_worker_reserve(p);
    if (!ok) pool_free_workers(p);
    fji_lock_drop(&p->lock);
    return ok;
}

static int pool_make(fj_pool **out, const fj_pool_options *o)
{
    fj_pool *p = fji_plat_alloc(sizeof *p);

    if (p == NULL) return FJ_ENOMEM;
    pool_set_for_good(p, o, false);
    if (!pool_fill(p, o, false)) {
        fji_plat_free(p);
        return FJ_ENOMEM;
    }
    fji_registry_add(p);
    *out = p;
    return FJ_OK;
}

/*
 * Threads that have found the last one stopped may hold the locks: each is taken after the contents
 * were written and before the bits of the end go, so that whoever finds them gone sees the contents.
 */
bool fji_pool_make_common(const fj_pool_options *o, bool fixed_size)
{
    fj_pool *p = &fji_common_record;

    if (!p->is_common) pool_set_for_good(p, o, true);
    if (!pool_fill(p, o, true)) return false;
    if (!fji_submit_renew(p)) {
        pool_free_workers(p);
        return false;
    }
    fji_timers_renew(p);
    /* Last: a guest, which holds this lock when it finds the bits gone, scans the queues. */
    fji_lock_take(&p->lock);
    p->fixed_size = fixed_size;
    fji_lock_drop(&p->lock);
    fji_registry_add(p);
    /* [pool.end] release -> acquire in is_shutdown. */
    fji_store_release(&p->run, 0u);
    return true;
}

int fj_pool_create(fj_pool **pool, const fj_pool_options *options)
{
    fj_pool_options o;
    int err = fji_options_read(&o, options);

    if (pool == NULL) return FJ_EINVAL;
    if (err != FJ_OK) return err;
    if (o.parallelism == 0) o.parallelism = fj_available_parallelism();
    if (o.max_threads != 0 && o.max_threads < o.parallelism) return FJ_EINVAL;
    fji_atfork_prepare();
    return pool_make(pool, &o);
}

int fj_pool_set_parallelism(fj_pool *pool, int n)
{
    fj_pool *p = fji_pool_or_common(pool);

    if (p == NULL) return FJ_ENOMEM;
    fji_lock_take(&p->lock);
    if (p->is_common && fji_pool_stopping(p)) { /* the next one has a size of its own */
        fji_lock_drop(&p->lock);
        int err = fji_common_again(p);
        return err == FJ_OK ? fj_pool_set_parallelism(pool, n) : err;
    }
    int old = p->parallelism;
    if (p->fixed_size)
        old = FJ_ENOTSUP;
    else if (n < 1 || n > FJ_MAX_WORKERS || n > pool_most(p, n))
        old = FJ_EINVAL;
    if (old < 0) {
        fji_lock_drop(&p->lock);
        return old;
    }
    /* relaxed: a limit, not a count; ctl is changed after it. */
    fji_store_relaxed(&p->max_threads, pool_most(p, n));
    fji_store_relaxed(&p->parallelism, n); /* relaxed: a limit, not a count */
    /* [ctl.idle] acquire/acq_rel: as every change of ctl. */
    uint64_t c = fji_load_acquire(&p->ctl);
    while (!fji_ctl_cas(p, &c, fji_ctl_add_active(c, old - n))) {}
    fji_lock_drop(&p->lock);
    return old;
}

void fji_pool_needs_worker(fj_pool *p)
{
    if (fji_load_relaxed(&p->parallelism) != 0) return; /* relaxed: only ever leaves 0 */
    fji_lock_take(&p->lock);
    if (p->parallelism == 0 && !fji_pool_stopping(p)) {
        fji_store_relaxed(&p->parallelism, 1); /* relaxed: a limit; ctl is changed after it */
        /* [ctl.idle] acquire: as every change of ctl. */
        uint64_t c = fji_load_acquire(&p->ctl);
        while (!fji_ctl_cas(p, &c, fji_ctl_add_active(c, -1))) {}
    }
    fji_lock_drop(&p->lock);
}

void fji_pool_start_failed(fj_pool *p)
{
    /* relaxed: hints for idle_may_spawn(). */
    fji_store_relaxed(&p->failed_retry_ns, fji_plat_now() + FJI_FAILED_WAIT_NS);
    fji_add_relaxed(&p->failed_starts, 1); /* relaxed: as above */
}

/* ---- Ending --------------------------------------------------------------------------------------- */

void fji_pool_end_if_over(fj_pool *p)
{
    /* relaxed: the lock orders it. */
    uint32_t run = fji_load_relaxed(&p->run);
    /* [ctl.idle] acquire <- the last worker's exit. */
    int total = fji_ctl_total(fji_load_acquire(&p->ctl));

    if ((run & (FJI_RUN_STOP | FJI_RUN_TERMINATED)) != FJI_RUN_STOP) return;
    if (total != 0 || p->guests != 0) return;
    /* [pool.end] release -> acquire in fj_pool_await_termination(). */
    fji_or_release(&p->run, FJI_RUN_TERMINATED);
    fji_plat_wake_all(&p->run);
}

/* Cancels what nobody has begun. Typed tasks are left to their owners, who run them. */
static void pool_cancel_queued(fj_pool *p)
{
    fji_taken taken;
    /* [pool.record] acquire <- release in worker_new_record(). */
    uint32_t n = fji_load_acquire(&p->workers);

    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        /* [pool.record] acquire <- release in submit_queue(). */
        fji_submission_queue *q = fji_load_acquire(&p->submissions[i]);
        if (q == NULL) continue;
        fji_lock_take(&q->lock); /* whoever pushes holds it: none comes after this */
        while (fji_submission_queue_maybe(q))
            if (fji_submission_queue_steal(q, &taken) == FJI_STEAL_SUCCESS)
                fji_taken_cancel(&taken);
        fji_lock_drop(&q->lock);
    }
    for (uint32_t i = 0; i < n; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        while (w != NULL && fji_queue_steal_untyped(&w->q, &taken) == FJI_STEAL_SUCCESS)
            fji_taken_cancel(&taken);
    }
}

/*
 * Sets STOP if nothing is left to do, or `now`; false: not yet. *run is what it was before. A guest
 * comes with the lock held: one that came after the look is looked at again, one that comes
 * later finds the pool stopped.
 */
static bool pool_stop(fj_pool *p, bool now, uint32_t *run)
{
    for (;;) {
        /* [pool.activity] acquire <- acq_rel in fji_guest_enter(). */
        uint64_t activity = fji_load_acquire(&p->activity_epoch);
        if (!now && !fji_pool_quiescent(p, true)) return false;
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
static void pool_stopped(fj_pool *p, bool now, uint32_t run)
{
    /* [pool.end] run above, ctl below; partner: the barrier in fji_idle_wait(), after which
     * a worker that goes idle looks at run.
     * [common.hold] and the holds; partner: the fence in fji_pool_hold(). */
    fji_fence_full();
    if ((run & FJI_RUN_STOP) != 0) return;
    pool_cancel_queued(p);
    if (now) fji_pool_interrupt(p); /* else nothing runs */
    fji_timers_shutdown(p);
}

void fji_pool_try_terminate(fj_pool *p, bool now)
{
    /* [pool.end] acquire <- whoever set the bits. */
    uint32_t run = fji_load_acquire(&p->run);

    if ((run & FJI_RUN_STOP) == 0) {
        if ((run & FJI_RUN_SHUTDOWN) == 0) return;
        if (!pool_stop(p, now, &run)) {
            /* What was queued lazily has woken nobody, and now it must be run. */
            if (fji_pool_has_work(p)) fji_wake_one(p);
            return;
        }
        pool_stopped(p, now, run);
    }
    fji_idle_release_all(p);
    fji_lock_take(&p->lock);
    fji_pool_end_if_over(p);
    fji_lock_drop(&p->lock);
}

void fji_pool_maybe_terminate(fj_pool *p)
{
    /* [pool.end] what has changed above, run below; partner: the fence in pool_shutdown(). Either
     * the shutdown finds the pool quiet, or we see the shutdown. */
    fji_fence_full();
    /* relaxed: the fence orders it. */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) fji_pool_try_terminate(p, false);
}

bool fji_pool_last_thread(fj_pool *p, fji_thread *before)
{
    bool join = p->has_last_exited;

    if (p->leavers_detach) {
        fji_plat_thread_detach(fji_plat_thread_self());
        return false;
    }
    if (join) *before = p->last_exited;
    p->has_last_exited = true;
    p->last_exited = fji_plat_thread_self();
    return join;
}

void fji_pool_leave(fj_pool *p)
{
    fji_thread before;

    fji_lock_take(&p->lock);
    bool join = fji_pool_last_thread(p, &before);
    fji_lock_drop(&p->lock);
    if (join) fji_plat_thread_join(before);
    fji_lock_take(&p->lock);
    fji_count(&p->guests, (uint32_t)-1); /* under the lock */
    fji_pool_end_if_over(p);
    fji_lock_drop(&p->lock); /* LAST TOUCH of *p: whoever destroys it takes the lock first. */
}

static int pool_shutdown(fj_pool *p, bool now)
{
    if (p == NULL) return FJ_EINVAL;
    if (p->is_common) return FJ_ENOTSUP;
    /* [pool.end] release -> acquire in is_shutdown. */
    fji_or_release(&p->run, FJI_RUN_SHUTDOWN);
    /* [pool.end] run above, who is quiet below; partner: the fence in fji_pool_maybe_terminate().
     * [timer.made] and the timers, if there are some; partner: the fence in timers_of(). */
    fji_fence_full();
    fji_timers_shutdown(p);
    fji_pool_try_terminate(p, now);
    return FJ_OK;
}

int fj_pool_shutdown(fj_pool *pool)
{
    return pool_shutdown(pool, false);
}

int fj_pool_shutdown_now(fj_pool *pool)
{
    return pool_shutdown(pool, true);
}

/* The waiter has to look now and then, as there may be no thread that ends the pool. One that is
 * counted may be a start that the system is about to refuse. False: the time is over. */
static bool pool_wait_a_while(fj_pool *p, uint32_t run, int64_t deadline, int64_t retry)
{
    int64_t look = fji_plat_now() + FJI_THREADLESS_POLL_NS;

    if (retry < look) look = retry;
    if (deadline <= look) return fji_plat_wait(&p->run, run, deadline);
    fji_plat_wait(&p->run, run, look);
    return true;
}

int fj_pool_await_termination(fj_pool *pool, int64_t timeout_ns)
{
    fj_pool *p = fji_pool_or_common(pool);
    fji_worker *w = fji_worker_self();

    if (p == NULL) return FJ_ENOMEM;
    if (p->is_common) {
        (void)!fj_pool_await_quiescence(p, timeout_ns);
        return FJ_ETIMEDOUT;
    }
    if ((w != NULL && w->pool == p) || fji_timers_is_own_thread(p)) return FJ_EDEADLK;
    int64_t deadline = fji_deadline(timeout_ns);
    int token = w != NULL ? fji_compensate_begin(w) : 0;
    int64_t pause = 0;
    bool in_time = true;
    uint32_t run;
    /* [pool.end] acquire <- release in fji_pool_end_if_over(). */
    while (((run = fji_load_acquire(&p->run)) & FJI_RUN_TERMINATED) == 0 && in_time) {
        fji_run_threadless(p, deadline == FJ_FOREVER);
        fji_pool_try_terminate(p, false);
        int64_t retry = w != NULL ? fji_compensate_retry(w, &pause) : FJ_FOREVER;
        in_time = pool_wait_a_while(p, run, deadline, retry);
    }
    if (w != NULL) fji_compensate_end(w, token);
    return (run & FJI_RUN_TERMINATED) != 0 ? FJ_OK : FJ_ETIMEDOUT;
}

int fj_pool_close(fj_pool *pool)
{
    fji_worker *w = fji_worker_self();

    if (pool == NULL) return FJ_EINVAL;
    if (pool->is_common) return FJ_ENOTSUP;
    if ((w != NULL && w->pool == pool) || fji_timers_is_own_thread(pool)) return FJ_EDEADLK;
    (void)pool_shutdown(pool, false);
    return fj_pool_await_termination(pool, FJ_FOREVER);
}

/* With the lock: every thread that was counted has been uncounted. */
static bool pool_is_empty(const fj_pool *p)
{
    /* [ctl.idle] acquire <- the last worker's exit. */
    uint64_t c = fji_load_acquire(&p->ctl);

    return fji_ctl_total(c) == 0 && fji_ctl_top(c) == 0 && p->guests == 0 && p->blocked == 0 &&
           fji_ctl_deficit(c) + p->parallelism == 0;
}

/* After its end: nobody touches it any more when this returns. */
static void pool_join(fj_pool *p)
{
    /* Whoever still holds a lock is on its way out and lets go of it last. */
    fji_lock_take(&p->lock);
    bool last_exited = p->has_last_exited;
    p->has_last_exited = false;
    fji_lock_drop(&p->lock);
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        /* [pool.record] acquire <- release in submit_queue(). */
        fji_submission_queue *q = fji_load_acquire(&p->submissions[i]);
        if (q == NULL) continue;
        fji_lock_take(&q->lock);
        fji_lock_drop(&q->lock);
    }
    /* One that has left may still signal, in vain, for what it saw before the end. */
    if (last_exited) fji_plat_thread_join(p->last_exited);
    fji_lock_take(&p->lock);
    fji_check(p, pool_is_empty(p));
    fji_lock_drop(&p->lock);
}

int fj_pool_destroy(fj_pool *pool)
{
    if (pool == NULL) return FJ_OK;
    int err = fj_pool_close(pool);
    if (err != FJ_OK) return err;
    pool_join(pool);
    fji_registry_remove(pool);
    pool_free(pool);
    return FJ_OK;
}

/* ---- The end of the common pool -------------------------------------------------------------------- */

bool fji_pool_stop_common(fj_pool *p)
{
    uint32_t run;

    /* The caller joins the threads, also in a destructor that runs after common_at_exit(). */
    fji_lock_take(&p->lock);
    p->leavers_detach = false;
    fji_lock_drop(&p->lock);
    /* [pool.end] acq_rel: whoever submits looks at it under the lock of its queue. */
    fji_or_acq_rel(&p->run, FJI_RUN_CLOSING);
    /* [pool.end] run above, the queues below; partner: the fence in submit_queue().
     * [timer.made] and the timers, if there are some; partner: the fence in timers_of(). */
    fji_fence_full();
    if (pool_stop(p, false, &run)) return true;
    /* [pool.end] acq_rel: it takes work again. */
    fji_and_acq_rel(&p->run, ~FJI_RUN_CLOSING);
    return false;
}

void fji_pool_end_common(fj_pool *p)
{
    uint32_t run;

    pool_stopped(p, false, 0);
    /* [pool.end] acquire <- release in fji_pool_end_if_over(). */
    while (((run = fji_load_acquire(&p->run)) & FJI_RUN_TERMINATED) == 0) {
        fji_pool_try_terminate(p, false);
        (void)pool_wait_a_while(p, run, FJ_FOREVER, FJ_FOREVER);
    }
    pool_join(p);
}

void fji_pool_free_common(fj_pool *p)
{
    fji_registry_remove(p);
    pool_free_workers(p);
    fji_submit_clear(p);
}

void fji_pool_common_in_child(fj_pool *p)
{
    fji_lock_reset(&p->lock);
    for (uint32_t i = 0; i < p->nsubmissions; i++)
        if (p->submissions[i] != NULL) fji_lock_reset(&p->submissions[i]->lock);
    fji_timers_in_child(p);
}

static uint32_t pool_run(const fj_pool *pool)
{
    const fj_pool *p = pool != NULL ? pool : fji_common_if_made();

    /* [pool.end] acquire <- release of the bits. */
    return p != NULL ? fji_load_acquire(&p->run) : 0;
}

int fj_pool_is_shutdown(const fj_pool *pool)
{
    return (pool_run(pool) & FJI_RUN_SHUTDOWN) != 0;
}

int fj_pool_is_terminating(const fj_pool *pool)
{
    return (pool_run(pool) & (FJI_RUN_STOP | FJI_RUN_TERMINATED)) == FJI_RUN_STOP;
}

int fj_pool_is_terminated(const fj_pool *pool)
{
    return (pool_run(pool) & FJI_RUN_TERMINATED) != 0;
}
