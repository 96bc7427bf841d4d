/* SPDX-License-Identifier: MIT */
/*
 * typed.c - the slow paths of fork and join of typed tasks
 *
 * forkjoin/typed.h has the fast paths. Typed code is the body of a typed task, and what it calls.
 * It keeps the address of the cell for its next fork in a register. While typed code runs, fast.top
 * of the worker's queue points to the END below cell 0. So every fast path of the plain tier takes
 * its slow path, which searches the boundary from typed_hint on (plain.c).
 *
 * NAME_sync() has no handle: it joins the call in the cell directly below the position of the typed
 * code. A spawn that cannot use the cell at its position breaks this rule: the call is in an
 * overflow cell, or in a cell further up, because detached or plain tasks are between. Such a spawn
 * makes a link. A link is a pair of overflow cells, and the position after the spawn is the second
 * cell of the pair. So NAME_sync() finds the first cell, whose item END is not the item of a call.
 * The second cell holds the position before the spawn and the address of the call's cell. If the
 * call itself is in an overflow cell, its own pair is the link.
 *
 * A typed task has no error code, so its join cannot fail. In the child process after a fork(), the
 * thief of a typed task may not exist. The join then runs the body itself.
 *
 * Edges         from                             to                              carries
 *   task.done   acq_rel or, fji_cell_complete()  acquire load, fji_await_cell()  the result
 *                                                  fji_typed_state()
 */

#include "sched/await.h"
#include "sched/overflow.h"
#include "sched/pool.h"

#include <string.h>

/* Called before typed code runs. fast: fji_self of the calling thread. Saves fast->top, typed_low
 * and typed_count of the worker's queue in *saved, and sets them for the typed code. Returns the
 * cell for the first fork of the typed code: the boundary of the queue. If the calling thread works
 * for no pool, saves its list of free overflow cells instead, and returns a cell with the item END,
 * so that every fork takes its slow path. */
fj_cell *fji_typed_enter(fj_worker *fast, fji_typed_saved *saved)
{
    fji_worker *w = fji_worker_of(fast);

    saved->top = fast->top;
    if (w == NULL) {
        saved->low = fji_overflow_enter();
        return fast->top;
    }
    fj_cell *p = fji_worker_boundary(w);
    saved->low = w->q.typed_low;
    saved->count = w->q.typed_count;
    w->q.typed_hint = p;
    w->q.typed_low = p;
    w->q.typed_count = 0;
    /* The END below cell 0: the fast paths of the plain tier read END there and call their slow
     * paths. */
    fast->top = w->q.cells - 1;
    return p;
}

/* Called after the typed code has returned. fast: fji_self of the calling thread. Restores what
 * fji_typed_enter() has saved in *saved. */
void fji_typed_leave(fj_worker *fast, const fji_typed_saved *saved)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) {
        /* Every fork of the typed task is joined, so all its overflow cells are free, and the
         * frames that kept the addresses of these cells have returned. saved->low is the list of
         * free overflow cells that the thread had before fji_typed_enter(). It belongs to a typed
         * task that called this one, or is NULL. */
        fji_overflow_leave(saved->low);
        return;
    }
    /* If saved->top points to the END below cell 0, fji_typed_enter() was called while other typed
     * code was on the stack of this thread. It is still there, so fast->top has to point to the END
     * again. Otherwise no typed code is left on the stack, and fast->top has to be the boundary:
     * the typed code may have left tombstones and detached tasks above saved->top. The tombstones
     * directly below the boundary are reclaimed; the detached tasks remain in the queue. */
    fast->top = saved->top;
    w->q.typed_low = saved->low;
    w->q.typed_count = saved->count;
    if (saved->top >= w->q.cells)
        fast->top = fji_queue_reclaim(&w->q, fji_queue_boundary(&w->q, saved->top), saved->top);
}

/* Called if the fast path of a fork finds that p, the cell at which the typed code would fork, is
 * not FREE. fast: fji_self of the calling thread. Returns the free cell at the boundary, or NULL if
 * the queue is full and cannot grow, or the calling thread works for no pool. Reclaims the
 * tombstones directly below the boundary, but none below p, because other frames of typed code keep
 * the addresses of cells below p in registers. */
fj_cell *fji_typed_room(fj_worker *fast, fj_cell *p)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) return NULL;
    if (p >= w->q.cells && p < w->q.cells + w->q.capacity)
        p = fji_queue_reclaim(&w->q, fji_queue_boundary(&w->q, p), p);
    return fji_queue_room(&w->q, p);
}

/* Returns an overflow cell for the result of a typed task that is run at its fork. If there is no
 * memory, waits until there is. fast: fji_self of the calling thread. */
fj_cell *fji_typed_overflow(fj_worker *fast)
{
    return fji_overflow_take(fji_worker_of(fast));
}

/* Called after a spawn whose call is not in the cell at `position`, the position of the typed code
 * before the spawn. c: the cell or overflow cell of the call. fast: fji_self of the calling thread.
 * Makes a link, and returns the position after the spawn. */
fj_cell *fji_typed_link(fj_worker *fast, fj_cell *position, fj_cell *c)
{
    fj_cell *link = fji_overflow_is(c) ? c : fji_typed_overflow(fast);
    fji_typed_linked linked = {position, c};

    memcpy(link[1].args, &linked, sizeof linked);
    return link + 1;
}

/* Called by NAME_sync() if the cell below its position has no call: c is the first cell of a link.
 * Returns what the link holds. Frees the link if the call is in another cell. fast: fji_self of the
 * calling thread. */
fji_typed_linked fji_typed_unlink(fj_worker *fast, fj_cell *c)
{
    fji_typed_linked linked;

    memcpy(&linked, c[1].args, sizeof linked);
    if (linked.cell != c) fji_overflow_return(fji_worker_of(fast), c);
    return linked;
}

/*
 * The slow path of joining the typed task `item` in cell c. fast: fji_self of the calling thread.
 * popped: 1 if the fast path has already set c FREE and then found that a thief may have taken the
 * task; 0 if it has changed nothing. Returns NULL if the task is done, because a thief has run it
 * or because it was run at its fork; the caller then copies the result out of c and calls
 * fji_typed_release(). Otherwise the caller has to run the body itself, because no thief has taken
 * the task, or because the thief does not exist in this child process; the function then returns
 * the cell at which the body begins to fork, and c holds the arguments of the task.
 */
fj_cell *fji_typed_join(fj_worker *fast, fj_cell *c, uintptr_t item, int popped)
{
    fji_worker *w = fji_worker_of(fast);

    if (!popped && fji_overflow_is(c)) return NULL;
    fj_cell *p = popped ? c + 1 : fji_queue_boundary(&w->q, c + 1);
    if (fji_queue_take(&w->q, c, item, popped != 0, &p)) return p;
    w->q.typed_hint = p;
    if (fji_await_cell(w, c)) return NULL;
    return fji_queue_give_back(&w->q, c);
}

/* Frees c, the cell or overflow cell of a typed task that is done. Called after the caller has
 * copied the result out of c. fast: fji_self of the calling thread. */
void fji_typed_release(fj_worker *fast, fj_cell *c)
{
    fji_worker *w = fji_worker_of(fast);

    if (fji_overflow_is(c))
        fji_overflow_return(w, c);
    else
        (void)fji_queue_give_back(&w->q, c);
}

/*
 * The slow path of NAME_unfork(), for the typed task `item` in cell c. fast: fji_self of the calling
 * thread. popped: as in fji_typed_join(). Returns 1 if the task is the caller's. Returns 0, and leaves
 * the task for NAME_join(), if a thief has it, or if c is an overflow cell: the task was run at its
 * fork.
 */
int fji_typed_unfork(fj_worker *fast, fj_cell *c, uintptr_t item, int popped)
{
    fji_worker *w = fji_worker_of(fast);
    fj_cell *boundary; /* not used: the next fork searches from c on */

    if (!popped && fji_overflow_is(c)) return 0;
    return fji_queue_take(&w->q, c, item, popped != 0, &boundary);
}

/*
 * Returns how far the typed task in cell c is, which the caller has forked and not joined: a value of
 * enum fj_forked. A task without a result, because its thief exists only in the parent process, counts
 * as queued: its join runs it. fast: fji_self of the calling thread.
 */
int fji_typed_state(fj_worker *fast, const fj_cell *c)
{
    const fji_worker *w = fji_worker_of(fast);

    /* A thread outside a pool has no queue: its typed tasks were run at their fork. */
    if (w == NULL || fji_overflow_is(c)) return FJ_FORKED_DONE;
    const fji_queue *q = &w->q;
    /* [task.done] acquire <- acq_rel or in fji_cell_complete(): the result, so that a program that
     * reads DONE sees what the body did. */
    uint32_t state = fji_load_acquire(&c->state);
    if ((state & FJI_ORPHANED) != 0) return FJ_FORKED_QUEUED;
    if ((state & FJI_DONE) != 0) return FJ_FORKED_DONE;
    /* relaxed: only the value is used. A thief that has moved the index over the cell has the task,
     * also if it has not written its own index into the state word yet. */
    uint32_t index = fji_base_index(fji_load_relaxed(&q->base));
    return index > fji_queue_position(q, c) ? FJ_FORKED_STOLEN : FJ_FORKED_QUEUED;
}
