/* SPDX-License-Identifier: MIT */
/*
 * submit.c - work from outside: where it is put and who waits for it
 *
 * A thread that is not a worker of the pool pushes into one of the submission queues,
 * chosen by a number of the thread and changed when its lock is held by another. Under
 * that lock it looks whether the pool still takes work, and signals before it lets go:
 *
 *   - the end of a pool looks at every submission queue under its lock, so a task is
 *     either seen by it or refused;
 *   - whoever destroys the pool takes every lock once more, so a submitter that has
 *     pushed can still signal even if its task has run meanwhile.
 *
 * Edges            from                         to                       carries
 *   pool.record    release store, submit_queue()  acquire in fji_worker_scan()  the queue
 *   pool.record    release store, submit_put()    acquire in fji_submit_take_back()  the same
 *   submit.lazy    release store, fji_pool_note_lazy()  acq_rel swap, fji_wake_for_lazy()  the task
 */
#include "pool.h"

/* This thread's number for choosing a queue; moves on when it meets another. */
static __thread uint32_t submit_probe;

/* Those of the common pool: their locks are taken by threads that have not seen its end. */
static fji_submission_queue submit_common[FJI_MAX_SUBMISSION_QUEUES];

static uint32_t submit_number(void)
{
    if (submit_probe == 0) submit_probe = fji_plat_thread_hash() | 1;
    return submit_probe;
}

static fji_submission_queue *submit_new_queue(const fj_pool *p, uint32_t i)
{
    return p->is_common ? &submit_common[i] : fji_plat_alloc(sizeof(fji_submission_queue));
}

/* Queue i of p, made on first use; NULL and *err: no memory, or a common pool that ends. */
static fji_submission_queue *submit_queue(fj_pool *p, uint32_t i, int *err)
{
    /* [pool.record] acquire <- release below. */
    fji_submission_queue *q = fji_load_acquire(&p->submissions[i]);

    if (q != NULL) return q;
    fji_lock_take(&p->lock);
    if (p->is_common && fji_pool_stopping(p)) { /* what it has is freed, and no more may come */
        fji_lock_drop(&p->lock);
        *err = fji_common_again(p);
        return *err == FJ_OK ? submit_queue(p, i, err) : NULL;
    }
    *err = FJ_ENOMEM;
    q = p->submissions[i];
    if (q == NULL && (q = submit_new_queue(p, i)) != NULL) {
        if (fji_submission_queue_init(q, FJI_SUBMISSIONS_FIRST, FJI_SUBMISSIONS_RESERVED)) {
            /* [pool.record] release -> acquire in fji_worker_scan() and above. */
            fji_store_release(&p->submissions[i], q);
            /* [pool.end] the queue above, run below in fji_inject(); partner: the
             * fence in fji_pool_try_terminate(). It is swept, or we see that it was. */
            fji_fence_full();
        } else {
            if (!p->is_common) fji_plat_free(q);
            q = NULL;
        }
    }
    fji_lock_drop(&p->lock);
    return q;
}

bool fji_submit_renew(fj_pool *p)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        fji_submission_queue *q = p->submissions[i];
        if (q == NULL) continue;
        fji_lock_take(&q->lock);
        bool ok = fji_submission_queue_init(q, FJI_SUBMISSIONS_FIRST, FJI_SUBMISSIONS_RESERVED);
        fji_lock_drop(&q->lock);
        if (!ok) {
            fji_submit_clear(p);
            return false;
        }
    }
    return true;
}

void fji_submit_clear(fj_pool *p)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++)
        if (p->submissions[i] != NULL) fji_submission_queue_fini(p->submissions[i]);
}

/* A queue with its lock held; *i is its number. In FIFO order a thread keeps to one queue. NULL: see
 * above. */
static fji_submission_queue *submit_lock_some(fj_pool *p, uint32_t *i, int *err)
{
    for (uint32_t tries = 0;; tries++) {
        *i = (submit_number() >> 1) &
             (p->nsubmissions - 1); /* the lowest bit is always set at first */
        fji_submission_queue *q = submit_queue(p, *i, err);
        if (q == NULL) return NULL;
        if (fji_lock_try(&q->lock)) return q;
        if (p->fifo || tries >= p->nsubmissions) {
            fji_lock_take(&q->lock);
            return q;
        }
        submit_probe = submit_probe * 1664525u + 1013904223u;
        if (submit_probe == 0) submit_probe = 1;
    }
}

/* With the lock of q, which is queue i, and lets go of it. Refuses if `run` has one of the bits. */
static int submit_into(fj_pool *p, fji_submission_queue *q, uint32_t i, const fji_taken *it,
                       bool wake, uint32_t refuses)
{
    fj_task *t = it->item != FJI_ACTION ? (fj_task *)(it->item & ~FJI_TAG_MASK) : NULL;
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
        fji_submission_queue *q = k != i ? submit_queue(p, k, &err) : NULL;
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
    fji_submission_queue *q = submit_lock_some(p, &i, &err);

    if (q == NULL) return err;
    err = submit_into(p, q, i, it, wake, refuses);
    if (FJI_UNLIKELY(err == FJ_ENOMEM)) err = submit_elsewhere(p, i, it, wake, refuses);
    return FJI_UNLIKELY(err == FJ_EREJECTED) ? submit_refused(p, it, wake, refuses) : err;
}

void fji_submissions_shrink(fj_pool *p)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        /* [pool.record] acquire <- release in submit_queue(). */
        fji_submission_queue *q = fji_load_acquire(&p->submissions[i]);
        if (q == NULL || !fji_submission_queue_is_large(q) || !fji_lock_try(&q->lock)) continue;
        fji_submission_queue_shrink(q);
        fji_lock_drop(&q->lock);
    }
}

int fji_inject(fj_pool *p, uintptr_t item, fj_action_fn *fn, void *arg, bool wake)
{
    fji_taken it = {.item = item, .fn = (uintptr_t)fn, .arg = (uintptr_t)arg};

    return submit_put(p, &it, wake, FJI_RUN_SHUTDOWN | FJI_RUN_CLOSING);
}

int fji_submit_after_shutdown(fj_pool *p, uintptr_t item, fj_action_fn *fn, void *arg)
{
    fji_taken it = {.item = item, .fn = (uintptr_t)fn, .arg = (uintptr_t)arg};

    return submit_put(p, &it, true, FJI_RUN_STOP);
}

void fji_wake_for_lazy(fj_pool *p)
{
    /* relaxed: 0 was written by a thread that signals after it, and for all tasks queued before. */
    if (fji_load_relaxed(&p->lazy) == 0 || !fji_pool_hold(p)) return;
    /* [submit.lazy] acq_rel <- release in fji_pool_note_lazy(): the task, before the signal. */
    if (fji_swap_acq_rel(&p->lazy, 0u) != 0) {
        /* [idle.dekker] the task above, ctl below; partner: the barrier in fji_idle_wait(). */
        fji_fence_full();
        fji_wake_one(p);
    }
    fji_pool_drop_hold(p);
}

void fji_task_mark_unqueued(fj_pool *p, fj_task *t)
{
    t->code = FJ_OK;
    /* relaxed: published below. */
    fji_store_relaxed(&t->location, FJI_LOCATION_NONE | fji_location_stamp());
    /* [timer.made] release -> acquire in fji_timer_remove(): the timers of the pool. */
    fji_store_release(&t->cell, p->submitted_cell);
}

/* The calling worker if it belongs to p. */
static fji_worker *submit_own_worker(const fj_pool *p)
{
    fji_worker *w = fji_worker_self();
    return w != NULL && w->pool == p ? w : NULL;
}

static void submit_prepare(fj_pool *p, fj_task *t)
{
    /* relaxed: published by the push. */
    fji_store_relaxed(&t->state, 0u);
    t->code = FJ_OK;
    t->cell = p->submitted_cell;
}

/* What the queue of a worker has no room for. */
static int submit_overflow(fj_pool *p, uintptr_t item, fj_action_fn *fn, void *arg)
{
    return fji_submit_after_shutdown(p, item, fn, arg) == FJ_OK ? FJ_OK : FJ_ENOMEM;
}

static int submit_task(fj_pool *pool, fj_task *t, bool outside, bool wake)
{
    if (t == NULL || t->fn == NULL) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    fji_worker *w = outside ? NULL : submit_own_worker(p);
    int err = FJ_OK;
    submit_prepare(p, t);
    if (w == NULL)
        err = fji_inject(p, (uintptr_t)t, NULL, NULL, wake);
    else if (fji_worker_push(w, (uintptr_t)t | FJI_TAG_DETACHED, NULL, NULL, wake) < 0)
        err = submit_overflow(p, (uintptr_t)t, NULL, NULL);
    if (FJI_UNLIKELY(err != FJ_OK)) t->cell = NULL; /* it is as new */
    return err;
}

bool fji_submit_fork(fji_worker *w, fj_task *t)
{
    fji_taken it = {.item = (uintptr_t)t, .token = fji_scope_token(w)};

    submit_prepare(w->pool, t);
    return submit_put(w->pool, &it, true, FJI_RUN_STOP) == FJ_OK;
}

int fji_submit_future(fj_pool *p, fj_task *t, uintptr_t root, bool outside, bool wake)
{
    fji_worker *w = outside ? NULL : submit_own_worker(p);
    uintptr_t item = (uintptr_t)t | FJI_TAG_FUTURE;
    fj_action_fn *second = (fj_action_fn *)root; /* the second word of its cell or slot */
    int err = FJ_OK;

    fji_task_mark_unqueued(p, t);
    if (w == NULL)
        err = fji_inject(p, item, second, NULL, wake);
    else if (fji_worker_push(w, item | FJI_TAG_DETACHED, second, NULL, wake) < 0)
        err = submit_overflow(p, item, second, NULL);
    if (err != FJ_OK) fji_store_relaxed(&t->cell, (fj_cell *)NULL); /* relaxed: as above */
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
    if (action == NULL) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    fji_worker *w = submit_own_worker(p);
    if (w == NULL) {
        /* relaxed: a setting. Where there are no workers the caller runs it. */
        fji_worker *g = fji_load_relaxed(&p->parallelism) == 0 ? fji_guest_enter(p, false) : NULL;
        if (g == NULL) return fji_inject(p, FJI_ACTION, action, arg, true);
        fji_taken taken = {.item = FJI_ACTION, .fn = (uintptr_t)action, .arg = (uintptr_t)arg};
        fji_worker_run(g, &taken);
        fji_guest_leave(g);
        return FJ_OK;
    }
    if (fji_worker_push(w, FJI_ACTION, action, arg, true) >= 0) return FJ_OK;
    return submit_overflow(p, FJI_ACTION, action, arg);
}

/* ---- Waiting for what was submitted ------------------------------------------------------------------ */

/* From the own queue of w, if it is there and nobody has it. */
static bool take_back_local(fji_worker *w, uint32_t position, uintptr_t item)
{
    fj_cell *c = w->q.cells + position;

    if (position >= w->q.capacity || c->item != item) return false;
    fj_cell *boundary = fji_worker_boundary(w);
    bool typed = w->q.fast.top < w->q.cells;
    bool ours = fji_queue_take(&w->q, c, c->item, false, &boundary);
    /* A detached task's thief does not use the cell: it is free at once. */
    if (!ours) boundary = fji_queue_give_back(&w->q, c);
    if (typed)
        w->q.typed_hint = boundary;
    else
        w->q.fast.top = fji_queue_reclaim(&w->q, boundary, w->q.cells);
    return ours;
}

bool fji_submit_take_back(fj_pool *p, fj_task *t, uintptr_t tag)
{
    /* [pool.record] acquire <- release in submit_put(): the queue that it names. */
    uint32_t location = fji_load_acquire(&t->location);
    uint32_t at = location & FJI_LOCATION_POSITION;

    if ((location & FJI_LOCATION_LOCAL) != 0) {
        fji_worker *w = submit_own_worker(p);
        return w != NULL && take_back_local(w, at, (uintptr_t)t | FJI_TAG_DETACHED | tag);
    }
    if (at == FJI_LOCATION_NONE) return false;
    /* [pool.record] acquire <- release in submit_queue(): whoever waits may not be who queued. */
    fji_submission_queue *q = fji_load_acquire(&p->submissions[at]);
    fji_lock_take(&q->lock);
    /* relaxed: the lock. The common pool that had it may have ended, and the slots with it. The mark is
     * its number, or was written by who has it: then it is not found. */
    bool ours = (fji_load_relaxed(&p->run) & FJI_RUN_TERMINATED) == 0 &&
                fji_submission_queue_remove(q, (uintptr_t)t | tag, fji_load_relaxed(&t->number));
    fji_lock_drop(&q->lock);
    return ours;
}

/* What a worker of the pool would have left: a second join finds it done. */
static int join_run_here(fji_worker *w, fj_task *t)
{
    t->code = fji_run_body(w, t, fji_queue_position(&w->q, fji_worker_boundary(w)));
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
    /* relaxed: a setting. */
    if (fji_load_relaxed(&p->parallelism) == 0) return true;
    return helps && fji_worker_self() == NULL;
}

/* Not even memory for a guest: the submissions are run by this thread as it is. What they
 * fork goes to the common pool, or is run at its fork. */
static void threadless_run_without_worker(fj_pool *p)
{
    fji_taken taken;

    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        /* [pool.record] acquire <- release in submit_queue(). */
        fji_submission_queue *q = fji_load_acquire(&p->submissions[i]);
        while (q != NULL && fji_submission_queue_steal(q, &taken) == FJI_STEAL_SUCCESS) {
            fj_task *t = (fj_task *)(taken.item & ~FJI_TAG_MASK);
            if (taken.item != FJI_ACTION) {
                int code = t->fn(t); /* LAST TOUCH of *t if it completes itself. */
                if ((taken.item & FJI_TAG_FUTURE) == 0) fji_task_complete(t, code);
                continue;
            }
            int code = ((fj_action_fn *)taken.fn)((void *)taken.arg);
            if (code != FJ_OK && p->options.on_error != NULL)
                p->options.on_error(p, code, p->options.arg);
        }
    }
}

static void threadless_run(fj_pool *p, bool may_run)
{
    fji_taken taken;

    /* relaxed: looked at again by whoever waits. */
    if (fji_ctl_total(fji_load_relaxed(&p->ctl)) != 0 || fji_pool_quiescent(p, false)) return;
    /* After starts that came to nothing there is no point in waiting for another. */
    if (fji_load_relaxed(&p->failed_starts) == 0) fji_wake_one(p);         /* relaxed: a hint */
    if (fji_ctl_total(fji_load_relaxed(&p->ctl)) != 0 || !may_run) return; /* relaxed: as above */
    fji_worker *g = fji_guest_enter(p, true);
    if (g == NULL) {
        /* Without memory; what is left in a pool that stops is cancelled. */
        if (!fji_pool_stopping(p)) threadless_run_without_worker(p);
        return;
    }
    while (!fji_pool_stopping(p) && fji_worker_scan(g, &taken) == FJI_STEAL_SUCCESS)
        fji_worker_run(g, &taken);
    fji_guest_leave(g);
}

void fji_run_threadless(fj_pool *p, bool may_run)
{
    if (!fji_pool_hold(p)) return;
    threadless_run(p, may_run);
    fji_pool_drop_hold(p);
}

static int join_submitted(fj_pool *p, fj_task *t, bool helps)
{
    fji_worker *w = fji_worker_self();

    /* [task.done] acquire <- release in fji_task_complete(): result and code. */
    if ((fji_load_acquire(&t->state) & FJI_DONE) != 0) return t->code;
    if (fji_task_is_orphaned(t)) return join_orphaned(t);
    bool works = fji_submit_caller_works(p, helps);
    fji_worker *g = works && submit_own_worker(p) == NULL ? fji_guest_enter(p, true) : NULL;
    /* Without memory for a guest it is left to the workers: its forks belong into this pool. */
    fji_worker *own = submit_own_worker(p); /* the guest, if there is one */
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

int fji_join_submitted(fj_task *t)
{
    fj_pool *p = *(fj_pool **)(void *)t->cell->args;

    return join_submitted(p, t, p->caller_helps);
}

int fj_invoke_mode(fj_pool *pool, fj_task *t, enum fj_caller caller)
{
    bool known = caller == FJ_CALLER_DEFAULT || caller == FJ_CALLER_HELPS ||
                 caller == FJ_CALLER_BLOCKS;

    if (t == NULL || t->fn == NULL || !known) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    fji_worker *w = submit_own_worker(p);
    if (w != NULL) return fji_run_body(w, t, fji_queue_position(&w->q, fji_worker_boundary(w)));
    bool helps = caller == FJ_CALLER_HELPS || (caller == FJ_CALLER_DEFAULT && p->caller_helps);
    if (fji_submit_caller_works(p, helps)) {
        fji_worker *g = fji_guest_enter(p, false);
        if (g != NULL) {
            int code = fji_run_body(g, t, fji_queue_position(&g->q, fji_worker_boundary(g)));
            fji_guest_leave(g);
            return code;
        }
    }
    int err = submit_task(p, t, true, true);
    return err != FJ_OK ? err : join_submitted(p, t, helps);
}

int fj_invoke(fj_pool *pool, fj_task *t)
{
    return fj_invoke_mode(pool, t, FJ_CALLER_DEFAULT);
}
