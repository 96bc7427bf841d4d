/* SPDX-License-Identifier: MIT */
/*
 * run.c - running and cancelling a task that was taken
 *
 * The two dispatchers on the kind of a task: fji_run_taken() and fji_cancel_taken(). Each kind of
 * task completes in its own way:
 *
 *     ACTION      does not complete; its code goes to the on_error callback of the pool
 *     FUTURE      its function completes it
 *     DETACHED    a submitted task: the code is stored in the task, DONE in the task's state word
 *     TYPED       the result is stored in the cell, DONE in the cell's state word
 *     plain       the code is stored in the task, DONE in the cell's state word. If the owner
 *                 itself has taken the task out of its queue, there is no cell, and no thread
 *                 waits for the task
 *
 * If the body calls fork(), the child process continues with the body. The thread that waits for
 * the task does not exist there, and the memory of the task may have been freed. So the child
 * process, which recognizes itself by the changed fork generation, does not touch the task after
 * its body. A typed task is an exception: its result is stored in a cell of a record that the child
 * process never uses (pool/atfork.c).
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
    /* Read after the body, because a fork in the body may have set it. */
    if (FJI_UNLIKELY(w->check_body != NULL) && !fji_queue_in_typed(&w->q)) w->check_body(w, from);
    return code;
}

/* Stores in the state word of a task that w runs it, so that the waiter can help. */
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

/* An action. Its code goes to p, unless p is NULL. */
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
        (void)t->fn(t); /* LAST TOUCH of *t: it completes itself. */
    else if (fji_item_is_detached(item))
        run_detached(w, t);
    else if (fji_item_is_typed(item))
        run_typed(w, fji_item_type(item), taken->cell);
    else
        run_plain(w, t, taken->cell);
}

/* Enters the scope of the token, unless w runs with it already or the task is a future, which enters
 * its own scope. */
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
    /* The common case of a service: an action, and the worker runs no task. */
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
        fji_or_relaxed(&t->state, FJI_DISCARDED); /* relaxed: only this thread reads the bit */
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
