/* SPDX-License-Identifier: MIT */
/*
 * typed.c - the slow paths of the typed tier: forkjoin/typed.h has the fast ones
 */

#include "sched/await.h"
#include "sched/overflow.h"
#include "sched/pool.h"

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
    fast->top = w->q.cells - 1; /* END: the plain tier asks from now on */
    return p;
}

void fji_typed_leave(fj_worker *fast, const fji_typed_saved *saved)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) {
        /* Every fork of this task is joined: its cells are in the list, and the positions that
         * point to them are gone with its frames. Those of the frames below are in saved->low. */
        fji_overflow_leave(saved->low);
        return;
    }
    /* What was left behind lies above: TOMBs, which are garbage now, and tasks that nobody
     * joins, which raise the boundary. */
    fast->top = saved->top;
    w->q.typed_low = saved->low;
    w->q.typed_count = saved->count;
    if (saved->top >= w->q.cells)
        fast->top = fji_queue_reclaim(&w->q, fji_queue_boundary(&w->q, saved->top), saved->top);
}

/* p is where typed code would fork next: TOMBs from there up are garbage. */
fj_cell *fji_typed_room(fj_worker *fast, fj_cell *p)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) return NULL;
    if (p >= w->q.cells && p < w->q.cells + w->q.capacity)
        p = fji_queue_reclaim(&w->q, fji_queue_boundary(&w->q, p), p);
    return fji_queue_room(&w->q, p);
}

fj_cell *fji_typed_overflow(fj_worker *fast)
{
    return fji_overflow_take(fji_worker_of(fast));
}

/* Where the task's body is to be run, NULL: it is done, by a thief or at its fork. */
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

void fji_typed_release(fj_worker *fast, fj_cell *c)
{
    fji_worker *w = fji_worker_of(fast);

    if (fji_overflow_is(c))
        fji_overflow_return(w, c);
    else
        (void)fji_queue_give_back(&w->q, c);
}
