/* SPDX-License-Identifier: MIT */
/*
 * help.c - a waiting worker runs tasks that the awaited task waits for
 *
 * Helping is restricted to what the awaited task waits for. A task that its thief has pushed at `child_base` or
 * above, while the awaited task is not done, is a descendant of it. If the thief's queue has none and the thief
 * itself waits for a stolen task, the thief of that task is examined in the same way, up to HELP_HOPS times. A
 * completer is helped by running any queued task with the same root. A worker whose stack is half used does not
 * help.
 *
 * Edges         from                          to                          carries
 *   join.thief  release or, fji_task_claim()  acquire load, help_thief()  child_base
 *   join.chain  release store, join_await()   acquire load, help_thief()  the joined cell
 */

#include "sched/help.h"

#include "sched/own_queue.h"
#include "sched/run.h"
#include "sched/scope.h"
#include "sched/steal.h"

#define HELP_HOPS 4

static bool help_has_stack(const fji_worker *w)
{
    return (uintptr_t)__builtin_frame_address(0) > w->stack_half;
}

/* Who runs the task with the word s, as just read, and from which position on the tasks of that run
 * are in its queue. The token is that of a future: its body may have been begun by a join or an
 * invoke, which leave no number in its word. */
static fji_worker *help_find_runner(fji_worker *w, uint32_t s, const uint32_t *child_base,
                                    const fj_token *token, uint32_t *from)
{
    uint32_t thief = s & FJI_THIEF_MASK;

    if (thief == 0) return token != NULL ? fji_scope_runner(w->pool, w, token, from) : NULL;
    *from = fji_load_relaxed(child_base); /* relaxed: [join.thief] with s */
    fji_worker *v = fji_pool_worker(w->pool, thief - 1);
    return v != w ? v : NULL;
}

/* Takes one of the thief of the task waited for. s: its word as just read, not done. RETRY: there may
 * be one. */
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
        /* [join.chain] acquire <- release in join_await(): the cell v waits for. Cells are
         * never freed before the pool, and the links are checked again before a take. */
        fj_cell *c = fji_load_acquire(&v->joining);
        if (c == NULL || fji_queue_position(&v->q, c) < from) return FJI_STEAL_EMPTY;
        state = &c->state;
        child_base = &c->child_base;
        /* [join.thief] acquire <- release in fji_worker_claim(): child_base. */
        s = fji_load_acquire(state);
    }
    return FJI_STEAL_EMPTY;
}

/* Whether a task of the own queue may be run by a waiting worker: one of this root, or without
 * a root anything but an action, which nobody waits for. */
static bool help_may(const fji_taken *taken, uintptr_t root)
{
    if (taken->item <= FJI_SPECIAL || !fji_item_is_detached(taken->item)) return false;
    if (root == 0) return taken->item != FJI_ACTION;
    return fji_item_is_future(taken->item) && taken->fn == root;
}

/* From the own queue, at `low` or above, the youngest first: takes and runs a task. */
static bool help_local(fji_worker *w, fj_cell *low, uintptr_t root)
{
    fji_queue *q = &w->q;
    fj_cell *c = fji_worker_boundary(w);
    /* relaxed: only a bound; the take finds out. */
    fj_cell *base = q->cells + fji_base_index(fji_load_relaxed(&q->base));
    fji_taken taken = {0};

    if (low < base) low = base;
    do {
        if (c-- <= low) return false;
        taken.item = c->item;
        taken.fn = fji_cell_words(c)[0];
    } while (!help_may(&taken, root));
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

/*
 * Runs one task that belongs to the one waited for. What it has left in the own queue comes first,
 * at `from` or above: others may not reach it, under what lies below, while this worker sleeps.
 */
fji_steal_result fji_help_once(fji_worker *w, const fji_awaited *a, uint32_t s, fj_cell *from)
{
    if (help_has_stack(w) && help_local(w, from, 0)) return FJI_STEAL_SUCCESS;
    if (a->root != NULL) return fji_help_root(w, (uintptr_t)a->root);
    return help_thief(w, a->state, s, a->child_base, a->token);
}
