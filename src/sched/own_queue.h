/* SPDX-License-Identifier: MIT */
/*
 * own_queue.h - what a worker does with its own queue, apart from fork and join
 */
#ifndef FJI_OWN_QUEUE_H
#define FJI_OWN_QUEUE_H

#include "sched/pool.h"

/* Queues a detached task or an action. Returns its position, or -1 if there is no space. */
int64_t fji_worker_push(fji_worker *w, uintptr_t item, fj_action_fn *fn, void *arg, bool wake);

/*
 * The youngest task of the own queue (FIFO: the oldest), for a worker with no task on its stack: no frame
 * on its stack will join what it takes.
 */
bool fji_worker_take_local(fji_worker *w, fji_taken *taken);

/* The topmost task of the own queue if it is a future and no thief interferes; otherwise NULL. It is the
 * short path of fji_worker_take_local(). */
fj_task *fji_worker_take_future(fji_worker *w);

/* Takes the detached task in cell c of the own queue. Returns false if a thief has it. */
bool fji_worker_take_detached(fji_worker *w, fj_cell *c);

/* Takes the detached task `item` back from this position of the own queue. */
bool fji_worker_take_back(fji_worker *w, uint32_t position, uintptr_t item);

/* After fji_pop() of the topmost cell c, which held a detached item, has met a thief. Returns whether the
 * owner has the task. The cell is free in both cases. */
bool fji_worker_finish_pop(fji_worker *w, fj_cell *c, uintptr_t item);

/* Sets what fj_task.location of a future in the own queue is computed from. */
void fji_worker_set_location(fji_worker *w);

/*
 * The fast path of queueing a future, as fj_fork(). Returns false if nothing was done.
 */
static inline bool fji_push_future(fj_task *t, uintptr_t root)
{
    fj_worker *fast = fji_self;
    fj_cell *p = fast->top;

    if (p->item != FJI_FREE) return false; /* also if the thread works for no pool */
    /* relaxed: published below; a thread that waits already only sleeps. */
    fji_store_relaxed(&t->cell, fast->submitted_cell);
    /* relaxed: as above */
    fji_store_relaxed(&t->location, fast->location_base + (uint32_t)((uintptr_t)p / sizeof *p));
    /* relaxed: a thief with an old view of base may read it, and its CAS fails. */
    fji_store_relaxed(fji_cell_words(p), root);
    fast->top = p + 1;
    /* [queue.publish] release -> acquire load in steal: the task. */
    fji_store_release(&p->item, FJI_FUTURE_ITEM(t));
    /* [idle.dekker] as in fj_fork(). */
    FJI_LIGHT_FENCE();
    if (FJI_UNLIKELY(FJI_RELAXED_NEGATIVE(fast->ctl))) fji_wake_slow(fast);
    return true;
}

/* The fast path of taking t back, if it is the topmost task of the own queue. Returns false if it is
 * not, or if a thief has it. */
static inline bool fji_pop_future(fj_worker *fast, const fj_task *t)
{
    fj_cell *c = fast->top - 1;
    uintptr_t item = FJI_FUTURE_ITEM(t);

    if (c->item != item) return false; /* also if the thread works for no pool */
    int got = fji_pop(fast, c);
    if (got > 0) fast->top = c;
    return got > 0 || (got < 0 && fji_worker_finish_pop(fji_worker_of(fast), c, item));
}

#endif /* FJI_OWN_QUEUE_H */
