/* SPDX-License-Identifier: MIT */
/*
 * own_queue.h - what a worker does with its own queue, apart from fork and join
 *
 * Only the worker w itself may call these functions. queue/queue.h explains the protocol of the
 * queue.
 */
#ifndef FJI_OWN_QUEUE_H
#define FJI_OWN_QUEUE_H

#include "sched/pool.h"

/* A free cell at the boundary of the own queue, or NULL if there is no space. Called by w. */
static inline fj_cell *fji_worker_find_space(fji_worker *w)
{
    fji_queue *q = &w->q;

    return fji_queue_room(q, fji_queue_in_typed(q) ? q->typed_hint : q->fast.top);
}

/* Stores the item into p, a free cell at the boundary, and moves the boundary up. Thieves may take the
 * item from now on; the caller then wakes a worker if one is wanted. Called by w. */
static inline void fji_worker_publish(fji_worker *w, fj_cell *p, uintptr_t item)
{
    fji_queue *q = &w->q;

    if (fji_queue_in_typed(q))
        q->typed_hint = p + 1;
    else
        q->fast.top = p + 1;
    /* [queue.publish] release -> acquire in fji_queue_steal_for(): the task. */
    fji_store_release(&p->item, item);
    /* [idle.dekker] the cell above, ctl below; partner: the heavy fence in idle_lead(). */
    FJI_LIGHT_FENCE();
}

/*
 * Queues a detached task or an action. fn: the function of an action, or the root of a future. arg:
 * the argument of an action. If `wake` is false, no worker is woken; the next thread that waits for
 * the pool does that (fji_wake_for_lazy()). Returns the position, or -1 if the queue has no space.
 */
int64_t fji_worker_push(fji_worker *w, uintptr_t item, fj_action_fn *fn, void *arg, bool wake);

/*
 * Takes the youngest task of the queue, in a FIFO pool the oldest. Only for a worker that has no
 * task on its stack, because no frame joins what it takes. Returns whether it took a task.
 */
bool fji_worker_take_local(fji_worker *w, fji_taken *taken);

/* Takes the detached task in cell c of the queue. Returns false if a thief has it. In both
 * cases the cell holds no task afterwards. */
bool fji_worker_take_detached(fji_worker *w, fj_cell *c);

/* Takes the detached task `item` back from this position of the queue. Returns false if it is not
 * there, or if a thief has it. */
bool fji_worker_take_back(fji_worker *w, uint32_t position, uintptr_t item);

/* Called after fji_pop() has returned -1 for the topmost cell c, which held the detached `item`.
 * Returns true if w has taken the task, and false if a thief has it. The cell is free in both
 * cases. */
bool fji_worker_finish_pop(fji_worker *w, fj_cell *c, uintptr_t item);

/* Sets fast.location_base, from which fji_push_future() computes fj_task.location. Also called by
 * the thread that creates the record, and in the child process after fork(), because the location
 * contains the fork generation. */
void fji_worker_set_location(fji_worker *w);

/* The fast path of queueing the future t with this root; it has the same steps as fj_fork().
 * Returns false, without any change, if the cell at fast->top is not FREE. */
static inline bool fji_push_future(fj_task *t, uintptr_t root)
{
    fj_worker *fast = fji_self;
    fj_cell *p = fast->top;

    if (p->item != FJI_FREE) return false; /* also if the thread works for no pool */
    /* relaxed: published below. A thread that already waits for t may miss it, and then only
     * sleeps. */
    fji_store_relaxed(&t->cell, fast->submitted_cell);
    /* relaxed: as above */
    fji_store_relaxed(&t->location, fast->location_base + (uint32_t)((uintptr_t)p / sizeof *p));
    /* relaxed: published below. A thief with an old value of base may read it; its CAS fails. */
    fji_store_relaxed(fji_cell_words(p), root);
    fast->top = p + 1;
    /* [queue.publish] release -> acquire in fji_queue_steal_for(): the task. */
    fji_store_release(&p->item, FJI_FUTURE_ITEM(t));
    /* [idle.dekker] the cell above, ctl below; partner: the heavy fence in idle_lead(). */
    FJI_LIGHT_FENCE();
    if (FJI_UNLIKELY(FJI_RELAXED_NEGATIVE(fast->ctl))) fji_wake_slow(fast);
    return true;
}

/* The fast path of taking the future t back, if it is the topmost task of the queue. Returns false
 * if it is not, or if a thief has it. */
static inline bool fji_pop_future(fj_worker *fast, const fj_task *t)
{
    fj_cell *c = fast->top - 1;
    uintptr_t item = FJI_FUTURE_ITEM(t);

    if (c->item != item) return false; /* also if the thread works for no pool */
    int got = fji_pop(fast, c);
    if (got > 0) fast->top = c;
    return got > 0 || (got < 0 && fji_worker_finish_pop(fji_worker_of(fast), c, item));
}

/* The fast path of fji_worker_take_local(): takes the topmost task if it is a future. Returns NULL
 * if it is not, if a thief has it, if the pool is FIFO, or if the queue has tombstones. */
static inline fj_task *fji_worker_take_future(fji_worker *w)
{
    fji_queue *q = &w->q;
    fj_cell *c = q->fast.top - 1; /* the END if the queue is empty */
    uintptr_t item = c->item;

    if ((item & FJI_TAG_MASK) != (FJI_TAG_DETACHED | FJI_TAG_FUTURE)) return NULL;
    if (w->pool->fifo || q->tombstones != 0) return NULL;
    int got = fji_pop(&q->fast, c);
    if (got > 0) q->fast.top = c;
    bool ours = got > 0 || (got < 0 && fji_worker_finish_pop(w, c, item));
    return ours ? fji_item_task(item) : NULL;
}

#endif /* FJI_OWN_QUEUE_H */
