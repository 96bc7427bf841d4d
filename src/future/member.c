/* SPDX-License-Identifier: MIT */
/*
 * member.c - members of a root: bare tasks that the waiters of a root may run
 *
 * A completer is large, because it is a future, and the completers below a root report to their
 * parents. A member needs neither. It is an fj_task of 32 bytes, and the code that queues it counts
 * it. The cell or slot that holds a member has the tag FUTURE and the address of the root, as that
 * of a completer does. So the queues treat a member like a completer below the root: a thread that
 * waits for the root takes it, and a pool that stops discards it.
 *
 * The function of a member, fj_task.fn, calls fji_member_run(), which enters the scope of the
 * root's token. The function is called exactly once for each time that the member was queued, also
 * if the member was discarded. `state` of a member is 0, or DISCARDED if a thread took the member
 * out of a queue in order not to run it.
 *
 * A root with members has no body and is never queued. Its member `cell` names the pool of the
 * members, so that a waiter finds that pool. The pending count of the root is 0: the code that
 * counts the members calls fj_completer_try_complete() when the last one has finished.
 */
#include "future/future.h"
#include "pool/common_pool.h"
#include "pool/submit.h"
#include "sched/own_queue.h"
#include "sched/scope.h"
#include "sched/steal.h"

int fji_root_init(fj_completer *root, fj_pool *pool, const fj_token *token)
{
    const fji_worker *w = fji_worker_self();
    fj_pool *p = pool == NULL && w != NULL ? w->pool : fji_pool_or_common(pool);

    if (p == NULL) return FJ_ENOMEM;
    fj_completer_init(root, NULL, 0, NULL, NULL, NULL);
    fj_token_init(&root->future.token, token);
    fji_task_mark_unqueued(&root->future.task, p->submitted_cell);
    return FJ_OK;
}

fj_pool *fji_root_pool(const fj_completer *root)
{
    return fji_cell_pool(root->future.task.cell);
}

int fji_member_queue(fj_completer *root, fj_task *t)
{
    fj_cell *submitted = root->future.task.cell;

    t->state = 0;
    /* A worker or guest of the pool of the root has the same sentinel as the root. */
    if (FJI_LIKELY(fji_self->submitted_cell == submitted) && fji_push_future(t, (uintptr_t)root))
        return FJ_OK;
    return fji_submit_future(fji_cell_pool(submitted), t, (uintptr_t)root, false, true);
}

/* Returns whether w, which has just run a member, may steal another one before it looks for other
 * work. It may not in a FIFO pool, in which older submissions come first, and not if the pool has an
 * on_reset, which comes between two stolen tasks. */
static bool member_may_steal(const fji_worker *w)
{
    return !w->pool->fifo && w->pool->options.on_reset == NULL;
}

fj_task *fji_member_take(const fj_completer *root, int steals)
{
    fji_worker *w = fji_worker_self();
    fji_taken taken;

    if (w == NULL) return NULL;
    /* In an empty queue, and while typed code runs, the item of this cell is END. */
    fj_cell *c = w->q.fast.top - 1;
    bool of_root = fji_item_is_task(c->item) && fji_item_is_future(c->item) &&
                   fji_cell_words(c)[0] == (uintptr_t)root;
    fj_task *t = of_root ? fji_worker_take_future(w) : NULL;
    if (t != NULL || steals == 0 || !member_may_steal(w)) return t;
    bool got = fji_steal_root(w, (uintptr_t)root, &taken) == FJI_STEAL_SUCCESS;
    return got ? fji_item_task(taken.item) : NULL;
}

int fji_member_run(fj_task *t, fj_completer *root, fji_member_fn *body)
{
    fji_worker *w = fji_worker_self();
    /* relaxed: only the thread that took t out of its queue sets DISCARDED, and that is this
     * thread. */
    int discarded = (fji_load_relaxed(&t->state) & FJI_DISCARDED) != 0;
    fji_scope_saved saved = {0};

    if (w != NULL && !discarded) saved = fji_scope_enter_stolen(w, &root->future.token);
    body(t, discarded); /* LAST TOUCH of *t and *root: it may have been the last member. */
    if (w != NULL && !discarded) fji_scope_leave(w, saved);
    return FJI_COMPLETES_ITSELF;
}
