/* SPDX-License-Identifier: MIT */
/*
 * submit.c - work from outside: where it is queued and how it is waited for
 *
 * A thread that is not a worker of the pool pushes into a submission queue. Under the queue's lock it checks
 * whether the pool still takes work, and wakes a worker before it unlocks:
 *
 *   - The end of a pool examines every submission queue under its lock. So a task is either seen by it or
 *     rejected.
 *   - A thread that destroys the pool takes every lock once more. So a submitter that has pushed can still wake
 *     a worker, even if its task has already run.
 *
 * A pool that takes no work may be the common pool, which ends and is made again. The submitter then waits for
 * the end and submits to the next common pool.
 *
 * Edges            from                            to                                  carries
 *   pool.record    release store, submit_into()    acquire in fji_submit_take_back()   the queue
 */

#include "pool/submit.h"

#include "pool/common_pool.h"
#include "sched/await.h"
#include "sched/guest.h"
#include "sched/own_queue.h"
#include "sched/run.h"
#include "sched/scope.h"
#include "sched/submissions.h"
#include "sched/wake.h"

/* With the lock of q, which is queue i, and lets go of it. Refuses if `run` has one of the bits. */
static int submit_into(fj_pool *p, fji_submission_queue *q, uint32_t i, const fji_taken *it,
                       bool wake, uint32_t refuses)
{
    fj_task *t = it->item != FJI_ACTION ? fji_item_task(it->item) : NULL;
    int err = FJ_OK;

    /* relaxed: the lock orders it against the sweep of a pool that ends. */
    if (FJI_UNLIKELY((fji_load_relaxed(&p->run) & refuses) != 0)) {
        err = FJ_EREJECTED;
    } else {
        /* [pool.record] release -> acquire in fji_submit_take_back(): queue i, which another
         * thread may have made; a timer is waited for before it is queued. */
        if (t != NULL) fji_store_release(&t->location, i | fji_location_stamp());
        if (!fji_submission_queue_push(q, it, t != NULL ? &t->number : NULL)) err = FJ_ENOMEM;
    }
    if (err == FJ_OK && wake) {
        /* [idle.dekker] the slot above, ctl below; partner: the barrier in fji_idle_wait(), which
         * reaches every thread of the process. Without one the fence must be full here. */
        FJI_LIGHT_FENCE();
        if (!p->asymmetric) fji_fence_full();
        fji_wake_one(p);
    } else if (err == FJ_OK) {
        fji_pool_note_lazy(p);
    }
    fji_lock_drop(&q->lock); /* LAST TOUCH of *p: whoever destroys it takes the lock first. */
    return err;
}

static int submit_put(fj_pool *p, const fji_taken *it, bool wake, uint32_t refuses);

/* The pool takes no work; into the next common pool, if it is that one. */
static FJI_COLD int submit_refused(fj_pool *p, const fji_taken *it, bool wake, uint32_t refuses)
{
    int err = fji_common_again(p);

    return err == FJ_OK ? submit_put(p, it, wake, refuses) : err;
}

/* Queue i has no room: another may have some. Nothing was pushed, so the pool is still there. */
static FJI_COLD int submit_elsewhere(fj_pool *p, uint32_t i, const fji_taken *it, bool wake,
                                     uint32_t refuses)
{
    int err = FJ_ENOMEM;

    for (uint32_t k = 0; err == FJ_ENOMEM && !p->fifo && k < p->nsubmissions; k++) {
        fji_submission_queue *q = k != i ? fji_submissions_get(p, k, &err) : NULL;
        if (q == NULL) continue;
        fji_lock_take(&q->lock);
        err = submit_into(p, q, k, it, wake, refuses);
    }
    return err;
}

/* Puts it into a queue unless `run` has one of the bits `refuses`. */
static int submit_put(fj_pool *p, const fji_taken *it, bool wake, uint32_t refuses)
{
    uint32_t i;
    int err;
    fji_submission_queue *q = fji_submissions_lock_one(p, &i, &err);

    if (q == NULL) return err == FJ_EREJECTED ? submit_refused(p, it, wake, refuses) : err;
    err = submit_into(p, q, i, it, wake, refuses);
    if (FJI_UNLIKELY(err == FJ_ENOMEM)) err = submit_elsewhere(p, i, it, wake, refuses);
    return FJI_UNLIKELY(err == FJ_EREJECTED) ? submit_refused(p, it, wake, refuses) : err;
}

int fji_inject(fj_pool *p, const fji_taken *it, bool wake)
{
    return submit_put(p, it, wake, FJI_RUN_SHUTDOWN | FJI_RUN_CLOSING);
}

int fji_submit_after_shutdown(fj_pool *p, const fji_taken *it)
{
    return submit_put(p, it, true, FJI_RUN_STOP);
}

/* Into the own queue of a worker of p, or if it has no space, or from outside, into a submission queue. */
static int submit_item(fj_pool *p, const fji_taken *it, bool outside, bool wake)
{
    fji_worker *w = outside ? NULL : fji_worker_in(p);

    if (w == NULL) return fji_inject(p, it, wake);
    if (fji_worker_push(w, it->item, (fj_action_fn *)it->fn, (void *)it->arg, wake) >= 0)
        return FJ_OK;
    return fji_submit_after_shutdown(p, it) == FJ_OK ? FJ_OK : FJ_ENOMEM;
}

static void submit_prepare(fj_pool *p, fj_task *t)
{
    /* relaxed: published by the push. */
    fji_store_relaxed(&t->state, 0u);
    t->code = FJ_OK;
    t->cell = p->submitted_cell;
}

static int submit_task(fj_pool *pool, fj_task *t, bool outside, bool wake)
{
    if (t == NULL || t->fn == NULL) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    submit_prepare(p, t);
    fji_taken it = {.item = (uintptr_t)t | FJI_TAG_DETACHED};
    int err = submit_item(p, &it, outside, wake);
    if (FJI_UNLIKELY(err != FJ_OK)) t->cell = NULL; /* it is as before */
    return err;
}

bool fji_submit_fork(fji_worker *w, fj_task *t)
{
    fji_taken it = {.item = (uintptr_t)t | FJI_TAG_DETACHED, .token = fji_scope_token(w)};

    submit_prepare(w->pool, t);
    return fji_submit_after_shutdown(w->pool, &it) == FJ_OK;
}

int fji_submit_future(fj_pool *p, fj_task *t, uintptr_t root, bool outside, bool wake)
{
    fji_taken it = {.item = FJI_FUTURE_ITEM(t), .fn = root};

    fji_task_mark_unqueued(t, p->submitted_cell);
    int err = submit_item(p, &it, outside, wake);
    if (err != FJ_OK) fji_store_relaxed(&t->cell, (fj_cell *)NULL); /* relaxed: the caller's */
    return err;
}

int fj_submit(fj_pool *pool, fj_task *t)
{
    return submit_task(pool, t, false, true);
}

int fj_submit_external(fj_pool *pool, fj_task *t)
{
    return submit_task(pool, t, true, true);
}

int fj_submit_lazy(fj_pool *pool, fj_task *t)
{
    return submit_task(pool, t, false, false);
}

int fj_execute(fj_pool *pool, fj_action_fn *action, void *arg)
{
    fji_taken it = {.item = FJI_ACTION, .fn = (uintptr_t)action, .arg = (uintptr_t)arg};

    if (action == NULL) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    /* In a pool without workers the caller runs it. */
    bool here = fji_worker_in(p) == NULL && fji_pool_parallelism(p) == 0;
    fji_worker *g = here ? fji_common_guest_enter(p) : NULL;
    if (g == NULL) return submit_item(p, &it, false, true);
    fji_run_taken(p, g, &it);
    fji_guest_leave(g);
    return FJ_OK;
}

/* ---- Waiting for what was submitted ------------------------------------------------------------------- */

bool fji_submit_is_pending(const fj_task *t, const fj_cell *cell)
{
    const fji_worker *w = fji_worker_self();
    const fj_pool *p = w != NULL ? w->pool : fji_common_if_made();

    if (p == NULL || cell != p->submitted_cell) return false;
    /* relaxed: its own word; a task that is not done was not joined. */
    return (fji_load_relaxed(&t->state) & FJI_DONE) == 0;
}

bool fji_submit_take_back(fj_pool *p, fj_task *t, uintptr_t tag)
{
    /* [pool.record] acquire <- release in submit_into(): the queue that it names. */
    uint32_t location = fji_load_acquire(&t->location);
    uint32_t at = location & FJI_LOCATION_POSITION;

    if ((location & FJI_LOCATION_LOCAL) != 0) {
        fji_worker *w = fji_worker_in(p);
        return w != NULL && fji_worker_take_back(w, at, (uintptr_t)t | FJI_TAG_DETACHED | tag);
    }
    if (at == FJI_LOCATION_NONE) return false;
    fji_submission_queue *q = fji_pool_submissions(p, at);
    fji_lock_take(&q->lock);
    /* relaxed: the lock. The common pool that had it may have ended, and the slots with it. The mark is
     * its number, or was written by who has it: then it is not found. */
    bool ours = (fji_load_relaxed(&p->run) & FJI_RUN_TERMINATED) == 0 &&
                fji_submission_queue_remove(q, (uintptr_t)t | FJI_TAG_DETACHED | tag,
                                            fji_load_relaxed(&t->number));
    fji_lock_drop(&q->lock);
    return ours;
}

/* What a worker of the pool would have left: a second join finds it done. */
static int join_run_here(fji_worker *w, fj_task *t)
{
    t->code = fji_run_body(w, t);
    fji_store_relaxed(&t->state, FJI_DONE); /* relaxed: the task is the caller's alone */
    return t->code;
}

/* Left behind in the parent of this process: nobody runs it any more. */
static int join_orphaned(fj_task *t)
{
    t->code = FJ_ECANCELED;
    fji_store_relaxed(&t->state, FJI_DONE); /* relaxed: the task is the caller's alone */
    return t->code;
}

/* Whether this thread works for p itself while it waits for it. A pool without workers
 * leaves no choice; otherwise a worker of another pool keeps to its own. */
bool fji_submit_caller_works(const fj_pool *p, bool helps)
{
    if (fji_pool_parallelism(p) == 0) return true;
    return helps && fji_worker_self() == NULL;
}

int fji_submit_join(fj_pool *p, fj_task *t, bool helps)
{
    fji_worker *w = fji_worker_self();

    /* [task.done] acquire <- release in fji_task_complete(): result and code. */
    if ((fji_load_acquire(&t->state) & FJI_DONE) != 0) return t->code;
    if (fji_task_is_orphaned(t)) return join_orphaned(t);
    bool works = fji_submit_caller_works(p, helps);
    fji_worker *g = works && fji_worker_in(p) == NULL ? fji_guest_enter(p, true, NULL) : NULL;
    /* Without memory for a guest it is left to the workers: its forks belong into this pool. */
    fji_worker *own = fji_worker_in(p); /* the guest, if there is one */
    if (own != NULL && fji_submit_take_back(p, t, 0)) {
        (void)join_run_here(own, t);
    } else {
        fji_wait how = {.done = FJI_DONE, .deadline = FJ_FOREVER, .guest = g != NULL};
        fji_wake_for_lazy(p);
        (void)fji_await_task(g != NULL ? g : w, p, t, &how);
    }
    /* relaxed: awaited above; lost if a task that was run meanwhile has forked the process. */
    int code = (fji_load_relaxed(&t->state) & FJI_DONE) != 0 ? t->code : join_orphaned(t);
    if (g != NULL) fji_guest_leave(g);
    return code;
}
