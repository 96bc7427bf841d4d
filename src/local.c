/* SPDX-License-Identifier: MIT */
/*
 * local.c - looking into queues, and taking from them by hand
 *
 * A task that was taken is a fji_taken in the caller's hands: whoever waits for it goes on
 * waiting until it is run or cancelled. One that its forker would have joined from its own
 * queue cannot be taken by the forker itself but by fj_unfork(): poll_local leaves the tasks
 * of frames on the stack alone.
 */
#include <string.h>

#include "pool.h"

FJI_STATIC_ASSERT(sizeof(fj_taken) == sizeof(fji_taken), "fj_taken holds a fji_taken");

/* ---- Looking --------------------------------------------------------------------------------------- */

int fj_worker_queued(void)
{
    const fji_worker *w = fji_worker_self();
    return w != NULL ? (int)fji_queue_count(&w->q) : 0;
}

/* The more workers are idle, the more tasks one should have lying about for them. */
int fj_worker_surplus(void)
{
    const fji_worker *w = fji_worker_self();

    if (w == NULL) return 0;
    int target = fji_load_relaxed(&w->pool->parallelism); /* relaxed: an estimate */
    int active = fji_ctl_deficit(fji_load_relaxed(&w->pool->ctl)) + target; /* relaxed: same */
    int allowance = active > target / 2    ? 0
                    : active > target / 4  ? 1
                    : active > target / 8  ? 2
                    : active > target / 16 ? 4
                                           : 8;
    if (allowance > target) allowance = target; /* nobody else would come */
    return fj_worker_queued() - allowance;
}

static fj_task *item_task(uintptr_t item)
{
    if (item <= FJI_SPECIAL || item == FJI_ACTION || (item & FJI_TAG_TYPED) != 0) return NULL;
    return (fj_task *)(item & ~FJI_TAG_MASK);
}

const void *fj_peek_local(void)
{
    fji_worker *w = fji_worker_self();

    if (w == NULL) return NULL;
    /* relaxed: only compared. */
    uint32_t index = fji_base_index(fji_load_relaxed(&w->q.base));
    const fj_cell *b = fji_worker_boundary(w);
    if (fji_queue_position(&w->q, b) <= index) return NULL;
    const fj_cell *c = w->pool->fifo ? w->q.cells + index : b - 1;
    return item_task(fji_load_relaxed(&c->item)); /* relaxed: as above */
}

/* ---- Taking ---------------------------------------------------------------------------------------- */

static int taken_put(fj_taken *taken, const fji_taken *found)
{
    memcpy(taken, found, sizeof *found);
    return 1;
}

/* The topmost of the own queue if nobody joins it through its cell; FIFO: the oldest. */
static bool local_take(fji_worker *w, fji_taken *found)
{
    fji_queue *q = &w->q;
    bool typed = q->fast.top < q->cells;
    fj_cell *b = fji_worker_boundary(w), *c = b - 1;

    if (w->pool->fifo) {
        fji_steal_result got;
        while ((got = fji_queue_steal(q, found)) == FJI_STEAL_RETRY) fji_pause();
        if (got == FJI_STEAL_SUCCESS) found->token = fji_scope_of_stolen(w, found);
        return got == FJI_STEAL_SUCCESS;
    }
    if (c < q->cells || c->item <= FJI_SPECIAL || (c->item & FJI_TAG_DETACHED) == 0) return false;
    const uintptr_t *at = (const uintptr_t *)(void *)c->args;
    *found = (fji_taken){.item = c->item, .fn = at[0], .arg = at[1]};
    bool ours = fji_queue_take(q, c, found->item, false, &b);
    if (!ours) b = fji_queue_give_back(q, c); /* its thief does not use the cell */
    if (typed)
        q->typed_hint = b;
    else
        q->fast.top = fji_queue_reclaim(q, b, q->cells);
    return ours;
}

int fj_take_local(fj_taken *taken)
{
    fji_worker *w = fji_worker_self();
    fji_taken found;

    if (w == NULL || taken == NULL || !local_take(w, &found)) return 0;
    return taken_put(taken, &found);
}

int fj_take_task(fj_taken *taken)
{
    fji_worker *w = fji_worker_self();
    fji_taken found;
    fji_steal_result got;

    if (w == NULL || taken == NULL) return 0;
    if (local_take(w, &found)) return taken_put(taken, &found);
    while ((got = fji_worker_scan(w, &found)) == FJI_STEAL_RETRY) fji_pause();
    return got == FJI_STEAL_SUCCESS ? taken_put(taken, &found) : 0;
}

static bool pool_take_submission(fj_pool *p, fji_taken *found)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        /* [pool.record] acquire <- release in submit_queue(). */
        fji_submission_queue *s = fji_load_acquire(&p->submissions[i]);
        fji_steal_result got = FJI_STEAL_EMPTY;
        while (s != NULL && (got = fji_submission_queue_steal(s, found)) == FJI_STEAL_RETRY)
            fji_pause();
        if (got == FJI_STEAL_SUCCESS) return true;
    }
    return false;
}

static bool pool_take_queued(fj_pool *p, fji_taken *found)
{
    /* [pool.record] acquire <- release in worker_new_record(). */
    uint32_t n = fji_load_acquire(&p->workers);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *v = fji_pool_worker(p, i);
        fji_steal_result got = FJI_STEAL_EMPTY;
        while (v != NULL && (got = fji_queue_steal(&v->q, found)) == FJI_STEAL_RETRY) fji_pause();
        if (got != FJI_STEAL_SUCCESS) continue;
        found->token = fji_scope_of_stolen(v, found);
        return true;
    }
    return false;
}

int fj_take_submission(fj_taken *taken)
{
    fji_worker *w = fji_worker_self();
    fji_taken found;

    if (w == NULL || taken == NULL || !pool_take_submission(w->pool, &found)) return 0;
    return taken_put(taken, &found);
}

size_t fj_pool_drain(fj_pool *pool, fj_taken *taken, size_t n)
{
    fji_taken found;
    size_t got = 0;

    if (taken == NULL) return 0;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL || !fji_pool_hold(p)) return 0;
    while (got < n && (pool_take_submission(p, &found) || pool_take_queued(p, &found)))
        (void)taken_put(&taken[got++], &found);
    fji_pool_drop_hold(p);
    return got;
}

int fj_future_unfork(fj_future *f)
{
    if (f == NULL || f->task.cell == NULL || fj_future_is_done(f)) return 0;
    fj_pool *p = *(fj_pool **)(void *)f->task.cell->args;
    if (!fji_submit_take_back(p, &f->task, FJI_TAG_FUTURE)) return 0;
    fji_store_relaxed(&f->task.cell, (fj_cell *)NULL); /* relaxed: the caller's again */
    fji_future_unref(f);
    return 1;
}

/* ---- Running what was taken -------------------------------------------------------------------------- */

fj_task *fj_taken_task(const fj_taken *taken)
{
    return taken != NULL ? item_task(taken->word[0]) : NULL;
}

/* By a thread that works for no pool. */
static void taken_run_without_worker(const fji_taken *found)
{
    fj_task *t = item_task(found->item);

    if (found->item == FJI_ACTION) {
        (void)((fj_action_fn *)found->fn)((void *)found->arg);
    } else if (t == NULL) {
        const fj_type *type = (const fj_type *)(found->item - FJI_TAG_TYPED);
        type->run(fji_self, found->cell->args);
        fji_cell_complete(found->cell);
    } else if ((found->item & FJI_TAG_FUTURE) != 0) {
        (void)t->fn(t); /* completes itself */
    } else if (found->cell == NULL || (found->item & FJI_TAG_DETACHED) != 0) {
        fji_task_complete(t, t->fn(t));
    } else {
        t->code = t->fn(t);
        fji_cell_complete(found->cell);
    }
}

void fj_taken_run(fj_taken *taken)
{
    fji_worker *w = fji_worker_self();
    fji_taken found;

    if (taken == NULL || taken->word[0] == 0) return;
    memcpy(&found, taken, sizeof found);
    taken->word[0] = 0;
    if (w != NULL)
        fji_worker_run(w, &found);
    else
        taken_run_without_worker(&found);
}

void fj_taken_cancel(fj_taken *taken)
{
    fji_taken found;

    if (taken == NULL || taken->word[0] == 0) return;
    memcpy(&found, taken, sizeof found);
    taken->word[0] = 0;
    fji_taken_cancel(&found);
}
