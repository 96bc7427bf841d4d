/* SPDX-License-Identifier: MIT */
/*
 * future_many.c - waiting for several futures: for all of them, or for one
 */

#include "future/future.h"
#include "plat/wait.h"
#include "pool/create.h"
#include "pool/submit.h"
#include "sched/compensate.h"
#include "sched/interrupt.h"
#include "sched/threadless.h"
#include "sched/wake.h"

/* ---- All of them -------------------------------------------------------------------------------------- */

static bool futures_there(fj_future *const *f, size_t n)
{
    if (n != 0 && !fji_array_ok(f, n, sizeof *f, sizeof *f)) return false;
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

/* ---- One of them -------------------------------------------------------------------------------------- */

/* The first for which `good` holds; n if there is none. */
static size_t any_find(fj_future *const *f, size_t n, int (*good)(const fj_future *))
{
    size_t i = 0;

    while (i < n && !good(f[i])) i++;
    return i;
}

/* Lets the threads of the pools of f run what is queued lazily or stranded. */
static void any_move(fj_future *const *f, size_t n, bool may_run)
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
        /* [task.done] acq_rel: it is either done by now, or whoever decides sees the bit. */
        (void)fji_or_acq_rel(&f[i]->task.state, FJI_OBSERVED_ANY);
}

/* A worker that nobody stands in for runs one of them itself, or nobody might. */
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

/* Whether no other worker is active, nor is one being started. */
static bool any_alone(const fj_pool *p)
{
    return fji_pool_active(p, fji_pool_ctl_hint(p)) <= 0; /* checked again after a while */
}

/*
 * Until one is good, or all are done. Nobody helps who need not: it would be stuck in one of
 * them when another is done.
 */
static int any_wait(fj_future *const *f, size_t n, int64_t deadline, int (*good)(const fj_future *),
                    size_t *which)
{
    fji_worker *w = fji_worker_self();
    uint32_t *bucket = fji_wait_bucket(NULL);
    bool may_run = deadline == FJ_FOREVER; /* it could not stop when its time is over */
    int err = FJ_OK;

    if ((*which = any_find(f, n, good)) < n) return FJ_OK;
    futures_observe(f, n);
    fji_compensation c = w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED;
    bool alone = c != FJI_INACTIVE || any_alone(w->pool);
    int64_t pause = 0;
    if (w != NULL) fji_interruptible_begin(w, bucket);
    for (;;) {
        /* [cancel.bucket] acquire <- acq_rel in fji_wait_bucket_notify(): what has changed is seen below. */
        uint32_t seen = fji_load_acquire(bucket);
        if ((*which = any_find(f, n, good)) < n) break;
        size_t left = 0;
        for (size_t i = 0; i < n; i++) left += !fj_future_is_done(f[i]);
        if (left == 0) { /* all have come to their end since the look above: it was too early */
            *which = any_find(f, n, good);
            break;
        }
        if (w != NULL && fji_interrupted(w)) {
            err = FJ_ECANCELED;
            break;
        }
        if (w != NULL && alone && may_run && any_run_own(w, f, n)) {
            fji_interruptible_begin(w, bucket); /* it may have napped elsewhere */
            continue;
        }
        any_move(f, n, may_run);
        int64_t now = fji_plat_now();
        if (now >= deadline) {
            err = FJ_ETIMEDOUT;
            break;
        }
        int64_t look = now + FJI_THREADLESS_POLL_NS;
        int64_t retry = w != NULL ? fji_compensate_retry(w, &pause) : FJ_FOREVER;
        int64_t until = retry < look ? retry : look;
        (void)fji_plat_wait(bucket, seen, until < deadline ? until : deadline);
        alone = alone || fji_plat_now() >= look;
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

/* ---- Submitting and waiting --------------------------------------------------------------------------- */

static void futures_cancel(fj_future *const *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fj_future_is_done(f[i])) (void)fj_future_cancel(f[i], 1);
}

/* Youngest first, so that a worker that joins in order finds them in its own queue. */
static int futures_submit(fj_pool *pool, fj_future *const *f, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        int err = fj_future_submit(pool, f[i]);
        if (err != FJ_OK) return err;
    }
    return FJ_OK;
}

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
    /* One that was completed by hand may still run. */
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

/* The code of the last that failed, rather than of one that was cancelled. */
static int any_code(fj_future *const *f, size_t n)
{
    const fj_future *last = NULL;

    for (size_t i = 0; i < n; i++) {
        if (fj_future_state(f[i]) != FJ_FUTURE_FAILED) continue;
        uint32_t a = fji_load_relaxed(&f[i]->task.fail_seq); /* relaxed: it is done */
        uint32_t b = last != NULL ? fji_load_relaxed(&last->task.fail_seq) : 0; /* relaxed: same */
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
    futures_observe(f, n); /* before the first can fail: which was the last is to be known */
    int err = futures_submit(pool, f, n);
    if (err == FJ_OK) err = any_wait(f, n, deadline, fj_future_succeeded, &found);
    futures_cancel(f, n);
    if (err != FJ_OK) return err;
    if (found == n) return any_code(f, n);
    *which = found;
    return FJ_OK;
}
