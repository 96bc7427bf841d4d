/* SPDX-License-Identifier: MIT */
/*
 * run.c - running and cancelling a task that was taken
 *
 * The only two places that dispatch on the kind of a task. Each kind completes in its own way:
 *
 *     ACTION      no completion; its code goes to the on_error callback of the pool
 *     FUTURE      its function completes it
 *     DETACHED    a submitted task: DONE in the state word of the task
 *     TYPED       the result is stored in the cell; DONE in the state word of the cell
 *     plain       the code is stored in the task; DONE in the state word of the cell. If the owner has
 *                 taken it out of its own queue, there is no cell, and no thread waits for it
 *
 * If the body calls fork(), the child process continues with the body, but the thread that waits for the task
 * does not exist there. So nothing of the task is touched after its body: see pool/atfork.c.
 */

#include "sched/run.h"

#include "sched/scope.h"

int fji_run_body(fji_worker *w, fj_task *t)
{
    if (w == NULL) return t->fn(t);
    uint32_t from = fji_worker_position(w);
    int code = t->fn(t);
    /* The body itself may have been the first to set check_body. */
    if (FJI_UNLIKELY(w->check_body != NULL) && !fji_queue_in_typed(&w->q)) w->check_body(w, from);
    return code;
}

/* Says in the word of a task that w runs it. */
static void run_claim(fji_worker *w, uint32_t *state, uint32_t *child_base)
{
    if (w != NULL) fji_task_claim(state, child_base, w->index, fji_worker_position(w));
}

static void run_detached(fji_worker *w, fj_task *t)
{
    uint32_t generation = fji_fork_generation;

    run_claim(w, &t->state, &t->child_base);
    int code = fji_run_body(w, t);
    if (generation == fji_fork_generation) fji_task_complete(t, code);
}

static void run_plain(fji_worker *w, fj_task *t, fj_cell *c)
{
    uint32_t generation = fji_fork_generation;

    if (c == NULL) {
        (void)t->fn(t);
        return;
    }
    run_claim(w, &c->state, &c->child_base);
    int code = fji_run_body(w, t);
    if (generation != fji_fork_generation) return;
    t->code = code;
    fji_cell_complete(c);
}

static void run_typed(fji_worker *w, const fj_type *type, fj_cell *c)
{
    run_claim(w, &c->state, &c->child_base);
    type->run(fji_self, c->args);
    fji_cell_complete(c);
}

static void run_by_kind(fj_pool *p, fji_worker *w, const fji_taken *taken)
{
    uintptr_t item = taken->item;
    fj_task *t = fji_item_task(item);

    if (item == FJI_ACTION) {
        int code = ((fj_action_fn *)taken->fn)((void *)taken->arg);
        if (p != NULL) fji_pool_report(p, code);
    } else if (fji_item_is_future(item)) {
        (void)t->fn(t); /* LAST TOUCH of *t: it completes itself. */
    } else if (fji_item_is_detached(item)) {
        run_detached(w, t);
    } else if (fji_item_is_typed(item)) {
        run_typed(w, fji_item_type(item), taken->cell);
    } else {
        run_plain(w, t, taken->cell);
    }
}

void fji_run_taken(fj_pool *p, fji_worker *w, const fji_taken *taken)
{
    if (w == NULL || taken->token == fji_scope_token(w) || fji_item_is_future(taken->item)) {
        run_by_kind(p, w, taken);
        return;
    }
    fji_scope_saved saved = fji_scope_enter_stolen(w, taken->token);
    run_by_kind(p, w, taken);
    fji_scope_leave(w, saved);
}

void fji_cancel_taken(const fji_taken *taken)
{
    uintptr_t item = taken->item;
    fj_task *t = fji_item_task(item);

    if (item == FJI_ACTION) return;
    if (fji_item_is_future(item)) {
        fji_or_relaxed(&t->state, FJI_DISCARDED); /* relaxed: only this thread reads it */
        (void)t->fn(t);
    } else if (fji_item_is_detached(item)) {
        fji_task_complete(t, FJ_ECANCELED);
    } else if (fji_item_is_typed(item)) {
        /* A typed task has no code that could be FJ_ECANCELED, so it is run. */
        run_typed(NULL, fji_item_type(item), taken->cell);
    } else if (taken->cell != NULL) {
        t->code = FJ_ECANCELED;
        fji_cell_complete(taken->cell);
    }
}
