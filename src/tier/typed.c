/* SPDX-License-Identifier: MIT */
/*
 * typed.c - the slow paths of fork and join of typed tasks
 *
 * forkjoin/typed.h has the fast paths. Typed code keeps the boundary of the queue, its position, in
 * a register. While it runs, fast.top is the END below cell 0. So every fast path of the plain tier
 * takes its slow path, which finds the boundary from typed_hint (plain.c).
 *
 * A typed task has no error code, so its join cannot fail. If the thief of a typed task does not
 * exist any more (this is the child process after a fork()), the join runs the body itself.
 *
 * Edges         from                             to                              carries
 *   task.done   acq_rel or, fji_cell_complete()  acquire load, fji_await_cell()  the result
 */

#include "sched/await.h"
#include "sched/overflow.h"
#include "sched/pool.h"

/* Called before typed code runs. Saves the state of the plain tier in *saved. Returns the position
 * at which the typed code forks first: the boundary, or an END if the thread works for no pool. */
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
    fast->top = w->q.cells - 1; /* END: the plain tier takes its slow paths */
    return p;
}

/* Called after the typed code has returned. Restores the state of the plain tier. */
void fji_typed_leave(fj_worker *fast, const fji_typed_saved *saved)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) {
        /* Every fork of the typed task is joined, so all its overflow cells are free, and the
         * frames that held positions in them have returned. saved->low has the cells of the typed
         * task further below on the stack. */
        fji_overflow_leave(saved->low);
        return;
    }
    /* Above saved->top the typed code may have left tombstones, which are reclaimed now, and
     * detached tasks, which raise the boundary. */
    fast->top = saved->top;
    w->q.typed_low = saved->low;
    w->q.typed_count = saved->count;
    if (saved->top >= w->q.cells)
        fast->top = fji_queue_reclaim(&w->q, fji_queue_boundary(&w->q, saved->top), saved->top);
}

/* The fast path of a fork found no free cell at its position p. Returns a free cell, or NULL if
 * there is no space. Reclaims the tombstones directly below the boundary, but none below p: frames
 * of typed code keep positions below p in registers. */
fj_cell *fji_typed_room(fj_worker *fast, fj_cell *p)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) return NULL;
    if (p >= w->q.cells && p < w->q.cells + w->q.capacity)
        p = fji_queue_reclaim(&w->q, fji_queue_boundary(&w->q, p), p);
    return fji_queue_room(&w->q, p);
}

/* Returns an overflow cell for the result of a task that is run at its fork. */
fj_cell *fji_typed_overflow(fj_worker *fast)
{
    return fji_overflow_take(fji_worker_of(fast));
}

/*
 * Joins the task in cell c. popped: the fast path has set c FREE, but a thief may have taken the
 * task before. Returns the position with which the caller has to run the body. Returns NULL if the
 * task is done, by a thief or at its fork: the caller copies the result and calls
 * fji_typed_release().
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

/* Frees cell c of a task that is done, after the caller has copied the result. */
void fji_typed_release(fj_worker *fast, fj_cell *c)
{
    fji_worker *w = fji_worker_of(fast);

    if (fji_overflow_is(c))
        fji_overflow_return(w, c);
    else
        (void)fji_queue_give_back(&w->q, c);
}
