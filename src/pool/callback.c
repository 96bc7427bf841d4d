/* SPDX-License-Identifier: MIT */
/*
 * callback.c - callbacks with a priority (forkjoin/callback.h)
 *
 * A callback is queued as the item of a future, because the function of a future is called in both
 * cases: if a thread runs the item, and if the pool stops and discards it. Unlike a future, a
 * callback has no outcome, so no thread waits for it, and no thread takes it back.
 *
 * Callbacks of normal priority are in the ordinary submission queues. Those of high and background
 * priority are in the ranked ones, which sched/steal.c visits first and last.
 */

#include "pool/common_pool.h"
#include "pool/submit.h"
#include "sched/guest.h"
#include "sched/run.h"
#include "sched/scope.h"

/* The function of the item: calls the function of the callback, without a token. */
static int callback_run(fj_task *t)
{
    fj_callback *c = (fj_callback *)t;
    fji_worker *w = fji_worker_self();
    /* relaxed: only the thread that took the item sets DISCARDED, and that is this thread. */
    bool discarded = (fji_load_relaxed(&t->state) & FJI_DISCARDED) != 0;
    bool scoped = w != NULL && fji_scope_token(w) != NULL;
    fji_scope_saved saved;

    if (scoped) saved = fji_scope_enter_stolen(w, NULL);
    c->fn(c, discarded ? FJ_ECANCELED : FJ_OK); /* LAST TOUCH of *c: it may be queued again. */
    if (scoped) fji_scope_leave(w, saved);
    return FJI_COMPLETES_ITSELF;
}

void fj_callback_init(fj_callback *c, fj_callback_fn *fn)
{
    if (c == NULL) return;
    *c = (fj_callback){.task.fn = callback_run, .fn = fn};
}

static bool callback_priority_ok(enum fj_priority priority)
{
    return priority == FJ_PRIORITY_NORMAL || priority == FJ_PRIORITY_HIGH ||
           priority == FJ_PRIORITY_BACKGROUND;
}

int fj_callback_submit(fj_pool *pool, fj_callback *c, enum fj_priority priority)
{
    if (c == NULL || c->fn == NULL || !callback_priority_ok(priority)) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    fji_taken it = {.item = FJI_FUTURE_ITEM(&c->task)};
    fji_store_relaxed(&c->task.state, 0u); /* relaxed: the push of c publishes the store */
    fji_task_mark_unqueued(&c->task, p->submitted_cell);
    /* If the parallelism is 0, no worker would make the call: the caller makes it as a guest. */
    bool here = fji_worker_in(p) == NULL && fji_pool_parallelism(p) == 0;
    fji_worker *g = here ? fji_common_guest_enter(p) : NULL;
    if (g == NULL) return fji_inject_ranked(p, &it, priority);
    fji_run_taken(p, g, &it);
    fji_guest_leave(g);
    return FJ_OK;
}

static bool callback_waits(const fj_pool *p, uint32_t i)
{
    const fji_submission_queue *q = fji_pool_submissions(p, i);

    return q != NULL && fji_submission_queue_maybe(q);
}

int fj_pool_has_work_before(const fj_pool *pool, enum fj_priority priority)
{
    const fj_pool *p = pool != NULL ? pool : fji_common_if_made();

    if (p == NULL || !callback_priority_ok(priority) || priority == FJ_PRIORITY_HIGH) return 0;
    if (callback_waits(p, fji_pool_ranked(p, FJI_RANK_HIGH))) return 1;
    if (priority == FJ_PRIORITY_NORMAL) return 0;
    for (uint32_t i = 0; i < p->nsubmissions; i++)
        if (callback_waits(p, i)) return 1;
    const fji_worker *w = fji_worker_in(p);
    return w != NULL && fji_queue_maybe(&w->q);
}

/* ---- For modules with queues of their own ---------------------------------------------------- */

void fji_report(int code)
{
    fji_worker *w = fji_worker_self();

    if (w != NULL) fji_pool_report(w->pool, code);
}

uint32_t fji_generation(void)
{
    return fji_fork_generation;
}
