/* SPDX-License-Identifier: MIT */
/*
 * plain.c - the slow paths of the plain tier: fork and join; forkjoin/inline.h has the fast ones
 */

#include "pool/submit.h"
#include "sched/await.h"
#include "sched/pool.h"
#include "sched/run.h"

/*
 * After a join of the plain tier: b is the boundary. Under typed code only what lies above
 * the first of the plain tasks is garbage: typed code counts on the places below.
 */
static void join_over(fji_worker *w, fj_cell *b)
{
    fji_queue *q = &w->q;

    if (!fji_queue_in_typed(&w->q)) {
        q->fast.top = fji_queue_reclaim(q, b, q->cells);
        return;
    }
    q->typed_count--;
    q->typed_hint = fji_queue_reclaim(q, b, q->typed_low);
}

static int join_misuse(const fji_worker *w, const char *text)
{
    if (w != NULL) fji_pool_log(w->pool, FJ_LOG_ERROR, text);
    return FJ_EINVAL;
}

/* Whether t was forked and not joined. before: its cell. w: the calling worker, or NULL. */
static bool fork_is_second(const fji_worker *w, const fj_task *t, const fj_cell *before)
{
    if (before == NULL) return false;
    if (fji_submit_is_pending(t, before)) return true;
    if (w == NULL) return false;
    const fji_queue *q = &w->q;
    if (before == fji_cell_under_typed) before = q->cells + t->location;
    return before >= q->cells && before < q->cells + q->capacity && before->item == (uintptr_t)t;
}

/* The topmost task at `from` or above that was forked to be joined through its cell; or NULL. */
static fj_cell *left_find(fji_worker *w, uint32_t from)
{
    for (fj_cell *c = fji_worker_boundary(w); c-- > w->q.cells + from;)
        if (c->item > FJI_SPECIAL && !fji_item_is_detached(c->item)) return c;
    return NULL;
}

/* A body has returned without joining what it had forked, whose memory may be gone. What no thief
 * has is taken out and not run; for what one has, this waits. */
static void left_remove(fji_worker *w, uint32_t from)
{
    fj_cell *c;

    while ((c = left_find(w, from)) != NULL) {
        fj_cell *b = fji_worker_boundary(w);
        (void)join_misuse(w, "a body returned without joining a task that it had forked");
        if (!fji_queue_take(&w->q, c, c->item, false, &b)) {
            (void)fji_await_cell(w, c);
            b = fji_queue_give_back(&w->q, c);
        }
        w->q.fast.top = fji_queue_reclaim(&w->q, b, w->q.cells);
    }
}

void fji_fork_checked(fj_task *t)
{
    fji_worker *w = fji_worker_self();

    if (t == NULL || t->fn == NULL) {
        (void)join_misuse(w, "fork of NULL, or of a task without a body");
        return;
    }
    if (w != NULL) w->check_body = left_remove;
    fji_fork_slow(t, t->cell);
}

void fji_fork_slow(fj_task *t, fj_cell *before)
{
    fji_worker *w = fji_worker_self();

    if (fork_is_second(w, t, before)) {
        t->cell = before; /* the first fork counts */
        (void)join_misuse(w, "fork of a task that is forked already");
        return;
    }
    if (w == NULL) {
        if (fj_submit(NULL, t) == FJ_OK) return;
        t->code = t->fn(t);
        t->cell = fji_cell_ran;
        return;
    }
    bool typed = fji_queue_in_typed(&w->q);
    fj_cell *p = fji_queue_room(&w->q, typed ? w->q.typed_hint : w->q.fast.top);
    if (p == NULL && fji_submit_fork(w, t)) return;
    if (p == NULL) {
        t->code = t->fn(t);
        t->cell = fji_cell_ran;
        return;
    }
    t->cell = typed ? fji_cell_under_typed : p;
    t->location = fji_queue_position(&w->q, p);
    if (typed) {
        if (w->q.typed_count++ == 0) w->q.typed_low = p;
        w->q.typed_hint = p + 1;
    } else {
        w->q.fast.top = p + 1;
    }
    /* [queue.publish] release -> acquire load in steal: the task. */
    fji_store_release(&p->item, (uintptr_t)t);
    /* [idle.dekker] as in fj_fork(). */
    FJI_LIGHT_FENCE();
    fji_wake_slow(&w->q.fast);
}

/* The cell of a task forked by w, NULL if it is not in w's queue. */
static fj_cell *join_cell_of(fji_worker *w, const fj_task *t, bool popped)
{
    fj_cell *c = t->cell;

    if (c == fji_cell_under_typed) c = w->q.cells + t->location;
    if (c < w->q.cells || c >= w->q.cells + w->q.capacity) return NULL;
    if (!popped && c->item != (uintptr_t)t) return NULL;
    return c;
}

/* Takes t back from the own queue. 1: ours; 0: a thief has it; an error if it is not
 * there at all. */
static int join_take(fji_worker *w, fj_task *t, bool popped, fj_cell **cell)
{
    fj_cell *c = join_cell_of(w, t, popped);
    fj_cell *boundary = fji_worker_boundary(w);

    if (c == NULL) return join_misuse(w, "join of a task that this worker has not forked");
    *cell = c;
    if (!fji_queue_take(&w->q, c, (uintptr_t)t, popped, &boundary)) return 0;
    join_over(w, boundary);
    return 1;
}

int fji_join_slow(fj_task *t, int popped)
{
    fji_worker *w = fji_worker_self();
    fj_cell *c = t != NULL ? t->cell : NULL;

    if (c == NULL) return join_misuse(w, "join of a task that is not forked");
    if (!popped && c->item == FJI_END) {
        if (c->kind == FJI_CELL_RAN) return t->code;
        if (c->kind == FJI_CELL_SUBMITTED) {
            fj_pool *p = fji_cell_pool(c);
            return fji_submit_join(p, t, p->caller_helps);
        }
    }
    if (w == NULL) return FJ_EINVAL;
    int got = join_take(w, t, popped != 0, &c);
    if (got < 0) return got;
    if (got > 0) return fji_run_body(w, t);
    int code = fji_await_cell(w, c) ? t->code : FJ_ECANCELED;
    join_over(w, fji_queue_give_back(&w->q, c));
    return code;
}

int fji_unfork_slow(fj_task *t, int popped)
{
    fji_worker *w = fji_worker_self();
    fj_cell *c = t != NULL ? t->cell : NULL;

    if (c == NULL) return 0;
    if (!popped && c->item == FJI_END) {
        if (c->kind != FJI_CELL_SUBMITTED) {
            if (c->kind == FJI_CELL_RAN || w == NULL) return 0;
        } else {
            if (!fji_submit_take_back(fji_cell_pool(c), t, 0)) return 0;
            t->cell = NULL; /* as new */
            return 1;
        }
    }
    if (w == NULL) return 0;
    return join_take(w, t, popped != 0, &c) > 0;
}
