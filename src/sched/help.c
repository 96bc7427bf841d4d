/* SPDX-License-Identifier: MIT */
/*
 * help.c - a waiting worker runs tasks that the awaited task or its descendants have forked
 *
 * The problem. A worker that waits must not run arbitrary tasks. Such a task could take much longer
 * than the awaited one. It could wait for a task whose body is below it on the stack of the same
 * thread and cannot continue (a deadlock). And it could make the stack grow without bound.
 *
 * The idea. The waiter runs only descendants of the awaited task: tasks that it has forked, that
 * these have forked, and so on. Until the awaited task is done, its thief runs only the awaited
 * task and its descendants. So every task in the thief's queue at position child_base or above is a
 * descendant of the awaited task. If the thief's queue has no such task, and the thief itself waits
 * for a stolen task (`joining`) that it has forked at child_base or above, the waiter continues
 * with the thief of that stolen task. The waiter examines at most HELP_HOPS queues in this way:
 *
 *     waiter W          thief T                thief U
 *     joins task a      runs a, joins b        runs b, has forked c
 *       |-- a.state names T; T's queue has no task at a.child_base or above
 *       |-- T.joining is b; b.state names U; U's queue has c at b.child_base: W takes c
 *
 * While the waiter follows this chain (here a, b), a task of the chain may finish, and its thief
 * may begin another task. So fji_queue_steal_for() checks the state words of the chain again after
 * its last read of the cell of c and before the CAS that takes c.
 *
 * The waiter first examines its own queue. Tasks that the waiter has run during this wait may have
 * queued detached tasks there, above the boundary at which the wait began. While the waiter sleeps,
 * other workers may be unable to take them. The waiter does not run actions, because no thread
 * waits for an action.
 *
 * A waiter for a completer runs any queued task that has the same root as the completer. A worker
 * does not help if half of its stack is used, unless the size of the stack is unknown.
 *
 * Edges         from                          to                          carries
 *   join.thief  release or, fji_task_claim()  acquire load, help_thief()  child_base
 *   join.chain  release store, await_done()   acquire load, help_thief()  the joined cell
 */

#include "sched/help.h"

#include "sched/own_queue.h"
#include "sched/run.h"
#include "sched/scope.h"
#include "sched/steal.h"

/* How many queues of other workers a waiter examines: that of the awaited task's thief, that of the
 * thief of the task that this thief waits for, and so on. */
#define HELP_HOPS 4

/* Called by w. Returns whether less than half of its stack is used. Returns true if the size of the
 * stack is unknown. The first call asks the system, which takes longer than the start of a worker
 * may, and in the main thread much longer. */
static bool help_has_stack(fji_worker *w)
{
    uintptr_t low;
    size_t bytes;

    if (w->stack_half == UINTPTR_MAX)
        w->stack_half = fji_plat_stack(&low, &bytes) ? low + bytes / 2 : 0;
    return (uintptr_t)__builtin_frame_address(0) > w->stack_half;
}

/*
 * Returns the worker that runs the task whose state word had the value s, or NULL if no such worker
 * is found or if it is w itself. Sets *from to the position in the queue of that worker at which
 * the forks of the task begin. child_base: that member of the task or of its cell. token: the token
 * of the future if the task is a future; otherwise NULL. The state word of a future may name no
 * worker, for example if a join runs the body. The worker is then found by the token.
 */
static fji_worker *help_find_runner(fji_worker *w, uint32_t s, const uint32_t *child_base,
                                    const fj_token *token, uint32_t *from)
{
    uint32_t thief = s & FJI_THIEF_MASK;

    if (thief == 0) return token != NULL ? fji_scope_runner(w->pool, w, token, from) : NULL;
    /* relaxed: the caller has read the state word with acquire, [join.thief], after the thief had
     * set child_base. */
    *from = fji_load_relaxed(child_base);
    fji_worker *v = fji_pool_worker(w->pool, thief - 1);
    return v != w ? v : NULL;
}

/* Takes and runs one task from the queue of the awaited task's thief, or of a later thief of the
 * chain that the head of this file describes. state, child_base, token: as in fji_awaited. s: the
 * last value of *state, read with acquire. Returns as fji_help_once(). */
static fji_steal_result help_thief(fji_worker *w, const uint32_t *state, uint32_t s,
                                   const uint32_t *child_base, const fj_token *token)
{
    fji_link links[HELP_HOPS];
    fji_taken taken;

    if (!help_has_stack(w)) return FJI_STEAL_EMPTY;
    for (int n = 0; n < HELP_HOPS; n++, token = NULL) {
        uint32_t from;
        if ((s & FJI_DONE) != 0) return FJI_STEAL_EMPTY;
        fji_worker *v = help_find_runner(w, s, child_base, token, &from);
        if (v == NULL) return FJI_STEAL_EMPTY;
        links[n] = (fji_link){state, s};
        fji_steal_result got = fji_steal_descendant(w, v, from, links, n + 1, &taken);
        if (got == FJI_STEAL_SUCCESS) fji_run_taken(w->pool, w, &taken);
        if (got != FJI_STEAL_EMPTY) return got;
        /* [join.chain] acquire <- release in await_done(): the cell that v waits for. w may read
         * the cell even if v does not wait any more, because cells are freed only with the pool.
         * Before w takes a task, fji_queue_steal_for() checks the words in `links` again. */
        fj_cell *c = fji_load_acquire(&v->joining);
        if (c == NULL || fji_queue_position(&v->q, c) < from) return FJI_STEAL_EMPTY;
        state = &c->state;
        child_base = &c->child_base;
        /* [join.thief] acquire <- release in fji_task_claim(): child_base of the cell. */
        s = fji_load_acquire(state);
    }
    return FJI_STEAL_EMPTY;
}

/* Returns whether a waiting worker may run the task in a cell of its own queue. taken->item is the
 * item of the cell, and taken->fn the first word of its arguments, which holds the root of a
 * completer. If `root` is not 0, the worker may run only a completer with this root. If `root` is
 * 0, it may run any detached task except an action. */
static bool help_is_allowed(const fji_taken *taken, uintptr_t root)
{
    if (taken->item <= FJI_SPECIAL || !fji_item_is_detached(taken->item)) return false;
    if (root == 0) return taken->item != FJI_ACTION;
    return fji_item_is_future(taken->item) && taken->fn == root;
}

/* Takes and runs the youngest task in w's own queue that is in the cell `low` or above and that
 * help_is_allowed() accepts. Returns whether it ran a task. */
static bool help_local(fji_worker *w, fj_cell *low, uintptr_t root)
{
    fji_queue *q = &w->q;
    fj_cell *c = fji_worker_boundary(w);
    /* relaxed: only a lower bound for the search; fji_worker_take_detached() finds out whether a
     * thief has the task. */
    fj_cell *base = q->cells + fji_base_index(fji_load_relaxed(&q->base));
    fji_taken taken = {0};

    if (low < base) low = base;
    do {
        if (c-- <= low) return false;
        taken.item = c->item;
        taken.fn = fji_cell_words(c)[0];
    } while (!help_is_allowed(&taken, root));
    if (!fji_worker_take_detached(w, c)) return false;
    fji_run_taken(w->pool, w, &taken);
    return true;
}

fji_steal_result fji_help_root(fji_worker *w, uintptr_t root)
{
    fji_taken taken;

    if (!help_has_stack(w)) return FJI_STEAL_EMPTY;
    if (help_local(w, w->q.cells, root)) return FJI_STEAL_SUCCESS;
    fji_steal_result got = fji_steal_root(w, root, &taken);
    if (got == FJI_STEAL_SUCCESS) fji_run_taken(w->pool, w, &taken);
    return got;
}

fji_steal_result fji_help_once(fji_worker *w, const fji_awaited *a, uint32_t s, fj_cell *from)
{
    if (help_has_stack(w) && help_local(w, from, 0)) return FJI_STEAL_SUCCESS;
    if (a->root != NULL) return fji_help_root(w, (uintptr_t)a->root);
    return help_thief(w, a->state, s, a->child_base, a->token);
}
