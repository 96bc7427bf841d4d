/* SPDX-License-Identifier: MIT */
/*
 * future_many.c - waiting for several futures: for all of them, or for one
 *
 * A wait for all waits for one future after the other.
 *
 * A wait for one of several futures sleeps in a wait bucket that all such waits of the process
 * share. The waiter first sets OBSERVED_ANY in the word of every future. A thread that resolves a
 * future and finds the bit notifies the bucket:
 *
 *     waiter                             resolving thread
 *     1 sets OBSERVED_ANY                1 sets DONE
 *     2 seen = *bucket                   2 if OBSERVED_ANY was set: ++*bucket, wakes all sleepers
 *     3 reads the words
 *     4 sleeps while *bucket == seen
 *
 * Either the resolving thread finds the bit, or the waiter reads DONE. If the bucket changes after
 * the waiter has read it, the sleep does not begin or ends.
 *
 * The waiter normally runs no task: it would have to finish the body of one future while another
 * future is done already. A worker whose place no other worker takes runs one of the futures
 * itself, because otherwise no thread might run them.
 *
 * Edges             from                                    to                        carries
 *   task.done       acq_rel or, futures_observe()           acq_rel, future.c         OBSERVED_ANY
 *   task.done       acq_rel, future.c                       acquire, any_find()       outcome
 *   cancel.bucket   acq_rel add, fji_wait_bucket_notify()   acquire load, any_wait()  that a future
 *                                                                                     is done
 */

#include "future/future.h"
#include "plat/wait.h"
#include "pool/create.h"
#include "pool/submit.h"
#include "sched/compensate.h"
#include "sched/interrupt.h"
#include "sched/threadless.h"
#include "sched/wake.h"

/* ---- All of them ----------------------------------------------------------------------------- */

/* Whether f has n elements and none of them is NULL. */
static bool futures_there(fj_future *const *f, size_t n)
{
    if (n != 0 && !fji_structs_ok(f, n, sizeof *f, sizeof *f)) return false;
    for (size_t i = 0; i < n; i++)
        if (f[i] == NULL) return false;
    return true;
}

static int all_wait(fj_future *const *f, size_t n, int64_t deadline, bool interruptible)
{
    int err = FJ_OK;

    for (size_t i = 0; i < n && err == FJ_OK; i++) {
        fji_wait how = {.done = FJI_DONE,
                        .interruptible = interruptible,
                        .deadline = deadline,
                        .root = (void *)fji_completer_root(f[i])};
        err = fji_future_await(f[i], &how);
    }
    return err;
}

int fj_future_wait_all(fj_future *const *f, size_t n, int64_t timeout_ns)
{
    if (!futures_there(f, n)) return FJ_EINVAL;
    return all_wait(f, n, fji_future_deadline(timeout_ns), true);
}

/* ---- One of them ----------------------------------------------------------------------------- */

/* The index of the first future that `accept` accepts; n if there is none. */
static size_t any_find(fj_future *const *f, size_t n, int (*accept)(const fj_future *))
{
    size_t i = 0;

    while (i < n && !accept(f[i])) i++;
    return i;
}

/* For each future that is not done: wakes a worker if tasks of its pool were queued without a
 * wake-up, gets a worker for a pool that has none, and cancels the future if it is orphaned.
 * may_run: the calling thread may run tasks of a pool that has no threads. */
static void any_get_workers(fj_future *const *f, size_t n, bool may_run)
{
    for (size_t i = 0; i < n; i++) {
        if ((fji_future_word(f[i]) & FJI_DONE) != 0 || !fji_future_is_in_use(f[i])) continue;
        fj_pool *p = fji_future_pool(f[i]);
        fji_wake_for_lazy(p);
        if (!may_run) fji_pool_needs_worker(p);
        fji_run_threadless(p, may_run);
        if (fji_task_is_orphaned(&f[i]->task)) fji_future_orphan(f[i]);
    }
}

static void futures_observe(fj_future *const *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        /* [task.done] acq_rel: f[i] is done, or the thread that resolves it finds the bit. */
        (void)fji_or_acq_rel(&f[i]->task.state, FJI_OBSERVED_ANY);
}

/* Runs one future that is not done and is queued in the pool of w where w may take it. Returns
 * false if there is none. Called by w. */
static bool any_run_own(const fji_worker *w, fj_future *const *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((fji_future_word(f[i]) & FJI_DONE) != 0 || !fji_future_is_in_use(f[i])) continue;
        if (fji_future_pool(f[i]) != w->pool) continue;
        if (!fji_submit_take_back(w->pool, &f[i]->task, FJI_TAG_FUTURE)) continue;
        (void)f[i]->task.fn(&f[i]->task);
        return true;
    }
    return false;
}

/* Whether no worker of p is active and none is being started. The caller itself does not count. */
static bool any_none_active(const fj_pool *p)
{
    return fji_pool_active(p, fji_pool_ctl_hint(p)) <= 0; /* a hint: any_wait() checks again */
}

/* Waits until `accept` accepts a future, or all are done. *which is the index of that future, or n.
 * Returns FJ_OK, FJ_ETIMEDOUT or FJ_ECANCELED. */
static int any_wait(fj_future *const *f, size_t n, int64_t deadline,
                    int (*accept)(const fj_future *), size_t *which)
{
    fji_worker *w = fji_worker_self();
    uint32_t *bucket = fji_wait_bucket(NULL);
    bool may_run = deadline == FJ_FOREVER; /* it could not stop a task at the deadline */
    int err = FJ_OK;

    if ((*which = any_find(f, n, accept)) < n) return FJ_OK;
    futures_observe(f, n);
    fji_compensation c = w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED;
    /* Whether w may run one of the futures: no other worker runs in its place. */
    bool run_own = c != FJI_INACTIVE || any_none_active(w->pool);
    int64_t pause = 0;
    if (w != NULL) fji_interruptible_begin(w, bucket);
    for (;;) {
        /* [cancel.bucket] acquire <- acq_rel in fji_wait_bucket_notify(): which future is done. */
        uint32_t seen = fji_load_acquire(bucket);
        if ((*which = any_find(f, n, accept)) < n) break;
        size_t not_done = 0;
        for (size_t i = 0; i < n; i++) not_done += !fj_future_is_done(f[i]);
        if (not_done == 0) { /* the last ones may have become done after the search above */
            *which = any_find(f, n, accept);
            break;
        }
        if (w != NULL && fji_interrupted(w)) {
            err = FJ_ECANCELED;
            break;
        }
        if (w != NULL && run_own && may_run && any_run_own(w, f, n)) {
            fji_interruptible_begin(w, bucket); /* the task may have had such a wait, too */
            continue;
        }
        any_get_workers(f, n, may_run);
        int64_t now = fji_plat_now();
        if (now >= deadline) {
            err = FJ_ETIMEDOUT;
            break;
        }
        int64_t check_at = now + FJI_THREADLESS_POLL_NS;
        int64_t retry = w != NULL ? fji_compensate_retry(w, &pause) : FJ_FOREVER;
        int64_t until = retry < check_at ? retry : check_at;
        (void)fji_plat_wait(bucket, seen, until < deadline ? until : deadline);
        /* After a long wait the worker runs one itself, even if other workers are active. */
        run_own = run_own || fji_plat_now() >= check_at;
    }
    if (w != NULL) fji_interruptible_end(w);
    if (w != NULL) fji_compensate_end(w, c);
    return err;
}

int fj_future_wait_any(fj_future *const *f, size_t n, int64_t timeout_ns, size_t *which)
{
    size_t found;

    if (n == 0 || which == NULL || !futures_there(f, n)) return FJ_EINVAL;
    int err = any_wait(f, n, fji_future_deadline(timeout_ns), fj_future_is_done, &found);
    if (err == FJ_OK) *which = found;
    return err;
}

/* ---- Submitting and waiting ------------------------------------------------------------------ */

/* Cancels, with interrupt, the futures that are not done. */
static void futures_cancel(fj_future *const *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fj_future_is_done(f[i])) (void)fj_future_cancel(f[i], 1);
}

/* Submits the last future first, so that a worker that waits for them in order finds each on top of
 * its own queue. */
static int futures_submit(fj_pool *pool, fj_future *const *f, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        int err = fj_future_submit(pool, f[i]);
        if (err != FJ_OK) return err;
    }
    return FJ_OK;
}

/* Whether f has n elements that can all be queued. */
static bool futures_new(fj_future *const *f, size_t n)
{
    if (!futures_there(f, n)) return false;
    for (size_t i = 0; i < n; i++)
        if (!fji_future_may_queue(f[i])) return false;
    return true;
}

static int invoke_all(fj_pool *pool, fj_future *const *f, size_t n, int64_t deadline,
                      bool interruptible)
{
    if (!futures_new(f, n)) return FJ_EINVAL;
    int err = futures_submit(pool, f, n);
    if (err == FJ_OK) err = all_wait(f, n, deadline, interruptible);
    if (err != FJ_OK) futures_cancel(f, n);
    /* If a call has resolved a future, its body may still run. */
    for (size_t i = 0; i < n; i++)
        if (!fj_future_is_cancelled(f[i])) fj_future_fini(f[i]);
    return err;
}

int fj_future_invoke_all(fj_pool *pool, fj_future *const *f, size_t n, int64_t timeout_ns)
{
    int err = invoke_all(pool, f, n, fji_future_deadline(timeout_ns), true);

    for (size_t i = 0; i < n && err == FJ_OK; i++) err = fj_future_error(f[i]);
    return err;
}

int fj_future_invoke_all_quietly(fj_pool *pool, fj_future *const *f, size_t n)
{
    return invoke_all(pool, f, n, FJ_FOREVER, false);
}

/* None of the futures has succeeded: returns the code of the one that failed last, or FJ_ECANCELED
 * if all were cancelled. */
static int any_code(fj_future *const *f, size_t n)
{
    const fj_future *last = NULL;

    for (size_t i = 0; i < n; i++) {
        if (fj_future_state(f[i]) != FJ_FUTURE_FAILED) continue;
        uint32_t a = fji_load_relaxed(&f[i]->fail_seq); /* relaxed: f[i] is done */
        uint32_t b = last != NULL ? fji_load_relaxed(&last->fail_seq) : 0; /* relaxed: as a */
        bool later = (b & FJI_FAIL_SEQ_VALID) == 0 ||
                     ((a & FJI_FAIL_SEQ_VALID) != 0 && (int32_t)((a - b) << 1) > 0);
        if (last == NULL || later) last = f[i];
    }
    return last != NULL ? fji_future_code(last) : FJ_ECANCELED;
}

int fj_future_invoke_any(fj_pool *pool, fj_future *const *f, size_t n, int64_t timeout_ns,
                         size_t *which)
{
    size_t found = n;
    int64_t deadline = fji_future_deadline(timeout_ns);

    if (n == 0 || which == NULL || !futures_new(f, n)) return FJ_EINVAL;
    futures_observe(f, n); /* before the first one can fail, so that every failure is numbered */
    int err = futures_submit(pool, f, n);
    if (err == FJ_OK) err = any_wait(f, n, deadline, fj_future_succeeded, &found);
    futures_cancel(f, n);
    if (err != FJ_OK) return err;
    if (found == n) return any_code(f, n);
    *which = found;
    return FJ_OK;
}
