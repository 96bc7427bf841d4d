/* SPDX-License-Identifier: MIT */
/*
 * submit.c - submits tasks to a pool, and waits for them
 *
 * A worker or guest of the pool pushes into its own queue if that has space. Every other thread
 * pushes into a submission queue. While it holds the lock of that queue, it checks whether the pool
 * accepts work, pushes the task, and wakes a worker:
 *
 *   - A thread that ends the pool takes the lock of each submission queue and checks the queue. So
 *     either that thread finds the task, or the submitter finds that the pool is shut down and
 *     returns FJ_EREJECTED.
 *   - A thread that destroys the pool takes the lock of each submission queue once more before it
 *     frees the pool. So the submitter can still wake a worker after it has pushed the task, even
 *     if the task has already run and the pool ends.
 *
 * If the common pool refuses the task because the pool ends, the submitter waits for the end and
 * submits to the next common pool (fji_common_again()).
 *
 * Edges           from                            to                              carries
 *   pool.record   release store, submit_into()    acquire, fji_submit_take_back() the queue
 *   idle.dekker   light fence, submit_into()      heavy fence, idle_lead()        slot against ctl
 *   task.done     release or, fji_task_complete() acquire, fji_submit_join()      result and code
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

/* ---- Submitting ------------------------------------------------------------------------------ */

/* Pushes *it into q, which is submission queue i of p, and wakes a worker if `wake` is true.
 * Returns FJ_OK; FJ_EREJECTED if `run` of the pool has one of the bits in `refuses`; or FJ_ENOMEM
 * if q has no space. The caller holds the lock of q; this function releases it. */
static int submit_into(fj_pool *p, fji_submission_queue *q, uint32_t i, const fji_taken *it,
                       bool wake, uint32_t refuses)
{
    fj_task *t = it->item != FJI_ACTION ? fji_item_task(it->item) : NULL;
    int err = FJ_OK;

    /* relaxed: the lock of q orders the load. A thread that ends the pool sets the bit first, and
     * then takes the lock to check q. */
    if (FJI_UNLIKELY((fji_load_relaxed(&p->run) & refuses) != 0)) {
        err = FJ_EREJECTED;
    } else {
        /* [pool.record] release -> acquire in fji_submit_take_back(): submission queue i, which
         * another thread may have created. A thread that waits for a timer may read `location` at
         * any time, even while the keeper queues the timer here. */
        if (t != NULL) fji_store_release(&t->location, i | fji_location_stamp());
        if (!fji_submission_queue_push(q, it, t != NULL ? &t->number : NULL)) err = FJ_ENOMEM;
    }
    if (err == FJ_OK && wake) {
        /* [idle.dekker] the slot above, ctl below; partner: the heavy fence in idle_lead(), which
         * acts as a full fence in all threads. Either the idle worker finds the slot, or this
         * thread finds the idle worker in ctl. If the pool does not use heavy fences, this thread
         * executes a full fence. */
        FJI_LIGHT_FENCE();
        if (!p->asymmetric) fji_fence_full();
        fji_wake_one(p);
    } else if (err == FJ_OK) {
        fji_pool_note_lazy(p);
    }
    fji_lock_drop(&q->lock); /* LAST TOUCH of *p: a thread that destroys p takes the lock first. */
    return err;
}

static int submit_put(fj_pool *p, const fji_taken *it, bool wake, uint32_t refuses);

/* Called after p has refused *it with FJ_EREJECTED. If p is the common pool, waits for its end, or
 * until the attempt to end it has failed, and submits *it again. Returns FJ_OK, FJ_ENOMEM, or
 * FJ_EREJECTED if p is not the common pool or the calling thread must not wait for its end. */
static FJI_COLD int submit_refused(fj_pool *p, const fji_taken *it, bool wake, uint32_t refuses)
{
    int err = fji_common_again(p);

    return err == FJ_OK ? submit_put(p, it, wake, refuses) : err;
}

/* Called if submission queue i has no space: tries the other queues until one of them accepts or
 * rejects *it. Returns as submit_into(), and FJ_ENOMEM if no queue has space. In a FIFO pool a
 * thread uses only one queue, so the function returns FJ_ENOMEM without a try. The function may
 * access p until a push succeeds. After that *it may have run, and a thread that waited for it may
 * destroy p. */
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

/* Pushes *it into a submission queue of p and wakes a worker if `wake` is true. If `run` of the
 * pool has one of the bits in `refuses`, p rejects *it. Then, if p is the common pool, waits for
 * its end and pushes *it into the next common pool. Returns FJ_OK, FJ_EREJECTED or FJ_ENOMEM. */
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

/* Pushes *it into submission queue i of p, or into another one if queue i has no space, and wakes a
 * worker. Returns as submit_put(). */
static int submit_ranked(fj_pool *p, uint32_t i, const fji_taken *it, uint32_t refuses)
{
    int err;
    fji_submission_queue *q = fji_submissions_get(p, i, &err);

    if (q != NULL) {
        fji_lock_take(&q->lock);
        err = submit_into(p, q, i, it, true, refuses);
        if (err == FJ_ENOMEM) err = submit_elsewhere(p, i, it, true, refuses);
    }
    if (err != FJ_EREJECTED) return err;
    err = fji_common_again(p);
    return err == FJ_OK ? submit_ranked(p, i, it, refuses) : err;
}

int fji_inject_ranked(fj_pool *p, const fji_taken *it, enum fj_priority priority)
{
    uint32_t refuses = fji_worker_in(p) != NULL ? FJI_RUN_STOP : FJI_RUN_SHUTDOWN | FJI_RUN_CLOSING;
    uint32_t rank = priority == FJ_PRIORITY_HIGH ? FJI_RANK_HIGH : FJI_RANK_BACKGROUND;

    if (priority == FJ_PRIORITY_NORMAL) return submit_put(p, it, true, refuses);
    return submit_ranked(p, fji_pool_ranked(p, rank), it, refuses);
}

int fji_submit_after_shutdown(fj_pool *p, const fji_taken *it)
{
    return submit_put(p, it, true, FJI_RUN_STOP);
}

/* Queues *it. If the caller is a worker or guest of p and `outside` is false, *it goes into the own
 * queue of the caller, and a worker is woken if `wake` is true. If that queue has no space, *it
 * goes into a submission queue, even if p is shut down, and a worker is woken even if `wake` is
 * false; but if p stops or there is no memory, returns FJ_ENOMEM. If the caller does not work for p
 * or `outside` is true, *it goes into a submission queue by fji_inject(), which wakes a worker if
 * `wake` is true, and the function returns what fji_inject() returns. */
static int submit_item(fj_pool *p, const fji_taken *it, bool outside, bool wake)
{
    fji_worker *w = outside ? NULL : fji_worker_in(p);

    if (w == NULL) return fji_inject(p, it, wake);
    if (fji_worker_push(w, it->item, (fj_action_fn *)it->fn, (void *)it->arg, wake) >= 0)
        return FJ_OK;
    return fji_submit_after_shutdown(p, it) == FJ_OK ? FJ_OK : FJ_ENOMEM;
}

/* Initialises the members of t that its waiters and the thread that completes it use. */
static void submit_prepare(fj_pool *p, fj_task *t)
{
    /* relaxed: the push of t publishes the store. */
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
    if (FJI_UNLIKELY(err != FJ_OK)) t->cell = NULL; /* because t was not submitted */
    return err;
}

bool fji_submit_fork(fji_worker *w, fj_task *t)
{
    fji_taken it = {.item = (uintptr_t)t | FJI_TAG_DETACHED, .token = fji_scope_token(w)};

    /* In a broadcast no thread takes from the submission queues. */
    if (w->q.shown != w->q.cells) return false;
    submit_prepare(w->pool, t);
    return fji_submit_after_shutdown(w->pool, &it) == FJ_OK;
}

int fji_submit_future(fj_pool *p, fj_task *t, uintptr_t root, bool outside, bool wake)
{
    fji_taken it = {.item = FJI_FUTURE_ITEM(t), .fn = root};

    fji_task_mark_unqueued(t, p->submitted_cell);
    int err = submit_item(p, &it, outside, wake);
    if (err != FJ_OK) fji_store_relaxed(&t->cell, (fj_cell *)NULL); /* relaxed: no queue has t */
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
    /* If the parallelism is 0, no worker would run the action: the caller runs it as a guest. */
    bool here = fji_worker_in(p) == NULL && fji_pool_parallelism(p) == 0;
    fji_worker *g = here ? fji_common_guest_enter(p) : NULL;
    if (g == NULL) return submit_item(p, &it, false, true);
    fji_run_taken(p, g, &it);
    fji_guest_leave(g);
    return FJ_OK;
}

/* ---- Waiting for a submitted task ------------------------------------------------------------ */

bool fji_submit_is_pending(const fj_task *t, const fj_cell *cell)
{
    const fji_worker *w = fji_worker_self();
    const fj_pool *p = w != NULL ? w->pool : fji_common_if_made();

    if (p == NULL || cell != p->submitted_cell) return false;
    /* relaxed: only the bit DONE is used, and no result of t is read. A submitted task that is done
     * counts as joined. */
    return (fji_load_relaxed(&t->state) & FJI_DONE) == 0;
}

bool fji_submit_take_back(fj_pool *p, fj_task *t, uintptr_t tag)
{
    /* [pool.record] acquire <- release in submit_into(): the submission queue that `location`
     * names. */
    uint32_t location = fji_load_acquire(&t->location);
    uint32_t at = location & FJI_LOCATION_POSITION;

    if ((location & FJI_LOCATION_LOCAL) != 0) {
        fji_worker *w = fji_worker_in(p);
        return w != NULL && fji_worker_take_back(w, at, (uintptr_t)t | FJI_TAG_DETACHED | tag);
    }
    if (at == FJI_LOCATION_NONE) return false;
    fji_submission_queue *q = fji_pool_submissions(p, at);
    fji_lock_take(&q->lock);
    /* If p is the common pool, it may have ended after t was queued. Its slots are freed then, and
     * t is in none of them.
     * relaxed: q->lock orders `run`. t->number is the number of t in the submission queue. Only a
     * thief that has taken t may have stored child_base over it, because both are in one union. No
     * slot holds t then, so nothing is removed, whatever number is read here. */
    bool ours = (fji_load_relaxed(&p->run) & FJI_RUN_TERMINATED) == 0 &&
                fji_submission_queue_remove(q, (uintptr_t)t | FJI_TAG_DETACHED | tag,
                                            fji_load_relaxed(&t->number));
    fji_lock_drop(&q->lock);
    return ours;
}

/* Runs t, which the calling worker w has taken back, and sets DONE, so that a second join of t
 * returns at once. Returns the code of t. */
static int join_run_here(fji_worker *w, fj_task *t)
{
    t->code = fji_run_body(w, t);
    fji_store_relaxed(&t->state, FJI_DONE); /* relaxed: only the caller uses t */
    return t->code;
}

/* Completes t, which was submitted in the parent process, with FJ_ECANCELED: no thread of this
 * process runs t. Returns FJ_ECANCELED. */
static int join_orphaned(fj_task *t)
{
    t->code = FJ_ECANCELED;
    fji_store_relaxed(&t->state, FJI_DONE); /* relaxed: only the caller uses t */
    return t->code;
}

bool fji_submit_caller_works(const fj_pool *p, bool helps)
{
    if (fji_pool_parallelism(p) == 0) return true;
    return helps && fji_worker_self() == NULL;
}

int fji_submit_join(fj_pool *p, fj_task *t, bool helps)
{
    fji_worker *w = fji_worker_self();

    /* [task.done] acquire <- release in fji_task_complete(): the result and the code of t. */
    if ((fji_load_acquire(&t->state) & FJI_DONE) != 0) return t->code;
    if (fji_task_is_orphaned(t)) return join_orphaned(t);
    bool works = fji_submit_caller_works(p, helps);
    fji_worker *g = works && fji_worker_in(p) == NULL ? fji_guest_enter(p, true, NULL) : NULL;
    /* NULL if the calling thread does not work for p and has not become a guest above. Such a
     * thread does not run t, because the forks of t have to go to p: a worker of p runs t. */
    fji_worker *own = fji_worker_in(p);
    if (own != NULL && fji_submit_take_back(p, t, 0)) {
        (void)join_run_here(own, t);
    } else {
        fji_wait how = {.done = FJI_DONE, .deadline = FJ_FOREVER, .guest = g != NULL};
        fji_wake_for_lazy(p);
        (void)fji_await_task(g != NULL ? g : w, p, t, &how);
    }
    /* relaxed: the wait above has read DONE with acquire. If DONE is not set, a task that this
     * thread ran during the wait has called fork(), this is the child process, and t is
     * orphaned. */
    int code = (fji_load_relaxed(&t->state) & FJI_DONE) != 0 ? t->code : join_orphaned(t);
    if (g != NULL) fji_guest_leave(g);
    return code;
}
