/* SPDX-License-Identifier: MIT */
/*
 * future_many.c - waiting for several futures: for all of them, or for one
 *
 * A wait for all futures waits for one future after the other.
 *
 * A wait for one of several futures sleeps in a wait bucket that all such waits of the process
 * share. The waiter first sets OBSERVED_ANY in the state word of every future. A thread that
 * makes a future done, as resolving or as finishing thread, and finds the bit notifies the bucket:
 *
 *     waiter                             resolving or finishing thread
 *     1 sets OBSERVED_ANY                1 sets DONE
 *     2 seen = *bucket                   2 if OBSERVED_ANY was set: ++*bucket, wakes all sleepers
 *     3 reads the state words
 *     4 sleeps while *bucket == seen
 *
 * Either the other thread finds OBSERVED_ANY, or the waiter reads DONE. If the bucket changes
 * after step 2 of the waiter, the waiter does not fall asleep, or it wakes up.
 *
 * The waiter normally runs no task, because it could not return while it runs the body of one
 * future, even if another future is done already. There are two exceptions, both only in a wait
 * without a deadline. A worker or guest runs one of the futures itself, if that future is in its
 * own queue or in a submission queue of its pool, because otherwise possibly no thread runs it. A
 * guest does so at once, and so does a worker if no other worker of its pool is active; any other
 * worker does so after it has slept for FJI_THREADLESS_POLL_NS. The second exception: any waiter
 * runs the queued tasks of a pool that has no thread and cannot start one.
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
#include "sched/safepoint.h"
#include "sched/threadless.h"
#include "sched/wake.h"

/* ---- All of them ----------------------------------------------------------------------------- */

/* Returns whether f is an array of n pointers to futures, none of them NULL. Returns true if n is
 * 0, even if f is NULL. */
static bool futures_there(fj_future *const *f, size_t n)
{
    if (n != 0 && !fji_structs_ok(f, n, sizeof *f, sizeof *f)) return false;
    for (size_t i = 0; i < n; i++)
        if (f[i] == NULL) return false;
    return true;
}

/* Waits until all n futures are done, but not longer than the deadline (fji_future_deadline()).
 * Returns FJ_OK if all are done or n is 0; FJ_ETIMEDOUT; or FJ_ECANCELED if `interruptible` is true
 * and the task that the calling worker or guest runs is interrupted. */
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

/* Returns the index in f of the first future for which `accept` returns true, or n if there is
 * none. */
static size_t any_find(fj_future *const *f, size_t n, int (*accept)(const fj_future *))
{
    size_t i = 0;

    while (i < n && !accept(f[i])) i++;
    return i;
}

/* For each future that is not done and is in use (fji_future_is_in_use()), makes sure that a thread
 * can run it. If tasks of the future's pool are lazy, wakes a worker. If the pool has tasks and no
 * thread, tries to start one; if none is started and may_run is true, runs the queued tasks of the
 * pool in the calling thread. If may_run is false and the parallelism of the pool is 0, changes the
 * parallelism to 1. If the future is orphaned, cancels it. */
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

/* Sets OBSERVED_ANY in the state words of all n futures. */
static void futures_observe(fj_future *const *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        /* [task.done] acq_rel -> acq_rel in fji_future_finish(), future_publish(): OBSERVED_ANY. If
         * the thread that resolves f[i] does not find the bit, it has set DONE before, and this
         * thread reads DONE in any_find(). */
        (void)fji_or_acq_rel(&f[i]->task.state, FJI_OBSERVED_ANY);
}

/* Called by w: takes one of the futures that are not done out of w's own queue or out of a
 * submission queue of w's pool, and runs it. Returns true if it ran one, and false if no future is
 * in one of these queues. */
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

/* Returns whether no worker of p is active and none is being started. The caller is a blocked
 * worker of p, which does not count as active. */
static bool any_none_active(const fj_pool *p)
{
    return fji_pool_active(p, fji_pool_ctl_hint(p)) <= 0; /* a hint; see run_own below */
}

/* Waits until `accept` returns true for one of the n futures, or until all futures are done. Then
 * returns FJ_OK and sets *which to the index of that future in f, or to n if all are done and
 * `accept` returns true for none. Returns FJ_ETIMEDOUT if the deadline (fji_future_deadline())
 * passes first, and FJ_ECANCELED if the task that the calling worker or guest runs is
 * interrupted. */
static int any_wait(fj_future *const *f, size_t n, int64_t deadline,
                    int (*accept)(const fj_future *), size_t *which)
{
    fji_worker *w = fji_worker_self();
    uint32_t *bucket = fji_wait_bucket(NULL);
    /* With a deadline the caller runs no task: it could not stop the task at the deadline. */
    bool may_run = deadline == FJ_FOREVER;
    int err = FJ_OK;

    if ((*which = any_find(f, n, accept)) < n) return FJ_OK;
    futures_observe(f, n);
    fji_compensation c = w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED;
    /* Whether w may run one of the futures itself: w is a guest, in whose place no worker becomes
     * active, or no worker of its pool is active. */
    bool run_own = c != FJI_INACTIVE || any_none_active(w->pool);
    int64_t pause = 0;
    if (w != NULL) fji_interruptible_begin(w, bucket);
    for (;;) {
        if (fji_called(w)) {
            fji_interruptible_end(w);
            c = fji_safepoint_blocked(w, c);
            fji_interruptible_begin(w, bucket);
        }
        /* [cancel.bucket] acquire <- acq_rel in fji_wait_bucket_notify(): that a future is done, or
         * that the task of w is interrupted. */
        uint32_t seen = fji_load_acquire(bucket);
        if ((*which = any_find(f, n, accept)) < n) break;
        size_t not_done = 0;
        for (size_t i = 0; i < n; i++) not_done += !fj_future_is_done(f[i]);
        if (not_done == 0) { /* some may have become done after the search above */
            *which = any_find(f, n, accept);
            break;
        }
        if (w != NULL && fji_interrupted(w)) {
            err = FJ_ECANCELED;
            break;
        }
        if (w != NULL && run_own && may_run && any_run_own(w, f, n)) {
            /* An interruptible wait inside the task may have cleared w->wait_bucket. */
            fji_interruptible_begin(w, bucket);
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
        (void)fji_safepoint_sleep(w, bucket, seen, until < deadline ? until : deadline);
        /* If this sleep has lasted FJI_THREADLESS_POLL_NS, w may run one of the futures itself from
         * the next turn of the loop on, even if other workers are active. */
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

/* Cancels the futures that are not done, and interrupts their bodies. */
static void futures_cancel(fj_future *const *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fj_future_is_done(f[i])) (void)fj_future_cancel(f[i], 1);
}

/* Submits all n futures to `pool` (NULL: the common pool), the last one first, so that a worker of
 * the pool that then waits for them in order finds each of them on top of its own queue. Returns
 * FJ_OK, or the error of the first submission that fails; the remaining futures are not submitted
 * then. */
static int futures_submit(fj_pool *pool, fj_future *const *f, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        int err = fj_future_submit(pool, f[i]);
        if (err != FJ_OK) return err;
    }
    return FJ_OK;
}

/* Returns whether f is an array of n pointers to futures that can all be queued. */
static bool futures_new(fj_future *const *f, size_t n)
{
    if (!futures_there(f, n)) return false;
    for (size_t i = 0; i < n; i++)
        if (!fji_future_may_queue(f[i])) return false;
    return true;
}

/* Submits all n futures to `pool` (NULL: the common pool) and waits until they are done. Returns
 * FJ_OK if they are, whatever their outcomes are. Returns FJ_EINVAL, without any other effect, if f
 * is not an array of n futures that can be queued. If a submission or the wait fails, cancels the
 * futures that are not done, interrupts their bodies, and returns the error. */
static int invoke_all(fj_pool *pool, fj_future *const *f, size_t n, int64_t deadline,
                      bool interruptible)
{
    if (!futures_new(f, n)) return FJ_EINVAL;
    int err = futures_submit(pool, f, n);
    if (err == FJ_OK) err = all_wait(f, n, deadline, interruptible);
    if (err != FJ_OK) futures_cancel(f, n);
    /* If another call has resolved a future, the future is done but its body may still run. So this
     * thread waits until the library does not use the future any more. The contract of
     * fj_future_invoke_all() excepts cancelled futures. */
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

/* Called if all futures are done and none has succeeded: returns the code of the future that failed
 * last, or FJ_ECANCELED if all were cancelled. */
static int any_code(fj_future *const *f, size_t n)
{
    const fj_future *last = NULL;

    for (size_t i = 0; i < n; i++) {
        if (fj_future_state(f[i]) != FJ_FUTURE_FAILED) continue;
        /* relaxed: f[i] and *last are done, so fail_seq does not change any more */
        uint32_t a = fji_load_relaxed(&f[i]->fail_seq);
        uint32_t b = last != NULL ? fji_load_relaxed(&last->fail_seq) : 0;
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
    futures_observe(f, n); /* before a future can fail, so that each failure gets its fail_seq */
    int err = futures_submit(pool, f, n);
    if (err == FJ_OK) err = any_wait(f, n, deadline, fj_future_succeeded, &found);
    futures_cancel(f, n);
    if (err != FJ_OK) return err;
    if (found == n) return any_code(f, n);
    *which = found;
    return FJ_OK;
}
