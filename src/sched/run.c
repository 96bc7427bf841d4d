/* SPDX-License-Identifier: MIT */
/*
 * run.c - running and cancelling a task that was taken
 *
 * The two dispatchers on the kind of a task: fji_run_taken() and fji_cancel_taken(). Each kind of
 * task completes in its own way:
 *
 *     ACTION      does not complete; a code other than FJ_OK goes to the on_error callback of the
 *                 pool
 *     FUTURE      its function completes it
 *     DETACHED    a submitted task: the code is stored in the task, DONE in the task's state word
 *     TYPED       the result is stored in the cell, DONE in the cell's state word
 *     plain       the code is stored in the task, DONE in the cell's state word. If the owner has
 *                 taken the task back from its own queue, `cell` of fji_taken is NULL; no thread
 *                 waits for the task then, and its code is discarded
 *
 * If the body calls fork(), the child process continues with the body. The thread that waits for
 * the task does not exist in the child process, and the memory of the task may have been freed. So
 * the child process, which recognizes itself by the changed fork generation, does not touch the
 * task after its body. A typed task is an exception: its result is stored in a cell of a record
 * that the child process never uses (pool/atfork.c).
 *
 * Edges         from                                to                        carries
 *   join.thief  release or, fji_task_claim()        acquire load, a waiter    child_base
 *   task.done   acq_rel or, fji_task_complete(),    acquire load, a waiter    result and code
 *                 fji_cell_complete()
 */

#include "sched/run.h"

#include "sched/scope.h"

int fji_run_body(fji_worker *w, fj_task *t)
{
    if (w == NULL) return t->fn(t);
    uint32_t from = fji_worker_position(w);
    int code = t->fn(t);
    /* check_body is read after the body, because a fork in the body may have set it. */
    if (FJI_UNLIKELY(w->check_body != NULL) && !fji_queue_in_typed(&w->q)) w->check_body(w, from);
    return code;
}

/* Stores in *state, the state word of a task, that w runs the task, so that a thread that waits for
 * the task can help w. *child_base becomes the position at which the forks of the task begin. Does
 * nothing if w is NULL. */
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

/* Runs an action. If its code is not FJ_OK and p is not NULL, passes the code to the on_error
 * callback of p. */
static void run_action(fj_pool *p, const fji_taken *taken)
{
    int code = ((fj_action_fn *)taken->fn)((void *)taken->arg);

    if (p != NULL) fji_pool_report(p, code);
}

static void run_by_kind(fj_pool *p, fji_worker *w, const fji_taken *taken)
{
    uintptr_t item = taken->item;
    fj_task *t = fji_item_task(item);

    if (item == FJI_ACTION)
        run_action(p, taken);
    else if (fji_item_is_future(item))
        (void)t->fn(t); /* LAST TOUCH of *t: the function completes the future. */
    else if (fji_item_is_detached(item))
        run_detached(w, t);
    else if (fji_item_is_typed(item))
        run_typed(w, fji_item_type(item), taken->cell);
    else
        run_plain(w, t, taken->cell);
}

/* Runs the taken task in the scope of its token. Enters no scope if w is NULL, if w runs with this
 * token already, or if the task is a future, whose function enters a scope itself. */
static __attribute__((noinline)) void run_in_scope(fj_pool *p, fji_worker *w,
                                                   const fji_taken *taken)
{
    if (w == NULL || taken->token == fji_scope_token(w) || fji_item_is_future(taken->item)) {
        run_by_kind(p, w, taken);
        return;
    }
    fji_scope_saved saved = fji_scope_enter_stolen(w, taken->token);
    run_by_kind(p, w, taken);
    fji_scope_leave(w, saved);
}

void fji_run_taken(fj_pool *p, fji_worker *w, const fji_taken *taken)
{
    /* The common case of a program that submits actions: w has no token, so no scope is entered. */
    if (taken->item == FJI_ACTION && w != NULL && fji_scope_token(w) == NULL)
        run_action(p, taken);
    else
        run_in_scope(p, w, taken);
}

void fji_cancel_taken(const fji_taken *taken)
{
    uintptr_t item = taken->item;
    fj_task *t = fji_item_task(item);

    if (item == FJI_ACTION) return;
    if (fji_item_is_future(item)) {
        fji_or_relaxed(&t->state, FJI_DISCARDED); /* relaxed: only t->fn() below reads the bit */
        (void)t->fn(t);
    } else if (fji_item_is_detached(item)) {
        fji_task_complete(t, FJ_ECANCELED);
    } else if (fji_item_is_typed(item)) {
        run_typed(NULL, fji_item_type(item), taken->cell);
    } else if (taken->cell != NULL) {
        t->code = FJ_ECANCELED;
        fji_cell_complete(taken->cell);
    }
}
