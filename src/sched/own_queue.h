/* SPDX-License-Identifier: MIT */
/*
 * own_queue.h - what a worker does with its own queue, apart from fork and join
 *
 * Only the worker w itself may call these functions. queue/queue.h explains the protocol of the
 * queue. FREE and END are special items: FREE is the item of a free cell, and END is the item of
 * the cells before the first cell of a queue and of the cell after its last one.
 */
#ifndef FJI_OWN_QUEUE_H
#define FJI_OWN_QUEUE_H

#include "sched/pool.h"

/* Returns the free cell at the boundary of w's queue. If the queue is full, first compacts or grows
 * it. Returns NULL if it stays full. */
static inline fj_cell *fji_worker_find_space(fji_worker *w)
{
    fji_queue *q = &w->q;

    return fji_queue_room(q, fji_queue_in_typed(q) ? q->typed_hint : q->fast.top);
}

/* Stores the item into p, the free cell at the boundary, and moves the boundary up. Thieves may
 * take the item from now on. The caller then calls fji_wake_slow(), which wakes a worker if one is
 * wanted; if the task is lazy, it calls fji_pool_note_lazy() instead. */
static inline void fji_worker_publish(fji_worker *w, fj_cell *p, uintptr_t item)
{
    fji_queue *q = &w->q;

    if (fji_queue_in_typed(q))
        q->typed_hint = p + 1;
    else
        q->fast.top = p + 1;
    /* [queue.publish] release -> acquire in fji_queue_steal_for(): the contents of the task. */
    fji_store_release(&p->item, item);
    /* [idle.dekker] the cell above, ctl below; partner: the heavy fence in idle_lead(). Either this
     * thread sees that a worker is idle, or the rescan of that worker sees the task. In a pool
     * without the heavy fence, fji_wake_slow() executes a full fence. */
    FJI_LIGHT_FENCE();
}

/*
 * Queues a detached task or an action in w's queue. fn: the function of an action; of a completer,
 * its root; of another future, 0; of another task it is not used. arg: the argument of an action.
 * If `wake` is false, no worker is woken now; the next thread that waits for a task of the pool
 * wakes one (fji_wake_for_lazy()). Returns the position of the cell, or -1 if the queue has no
 * space.
 */
int64_t fji_worker_push(fji_worker *w, uintptr_t item, fj_action_fn *fn, void *arg, bool wake);

/*
 * Takes the youngest task of w's queue, or in a FIFO pool the oldest. Only while no task that w
 * runs is on the stack: such a task could still join the task that is taken here. Returns true and
 * sets *taken if it took a task. Returns false if the queue has no task, or if the topmost cell is
 * still used by the thief of a stolen task; *taken then has no meaning.
 */
bool fji_worker_take_local(fji_worker *w, fji_taken *taken);

/* Takes the detached task in cell c of w's queue. Returns false if a thief has the task. In both
 * cases cell c holds no task afterwards. */
bool fji_worker_take_detached(fji_worker *w, fj_cell *c);

/* Takes the detached task `item` back from this position of w's queue. Returns false if the cell at
 * that position does not hold `item`, or if a thief has the task. */
bool fji_worker_take_back(fji_worker *w, uint32_t position, uintptr_t item);

/* Called after fji_pop() has returned -1 for c, the topmost cell of w's queue: fji_pop() has freed
 * the cell, but a thief may have taken the detached task `item` that it held. Returns true if w has
 * taken the task, and false if a thief has it. The cell is free in both cases. */
bool fji_worker_finish_pop(fji_worker *w, fj_cell *c, uintptr_t item);

/* Sets fast.location_base, from which fji_push_future() computes fj_task.location. Called by the
 * thread that creates the record of w. Called again in the child process after fork(), because the
 * location contains the fork generation. */
void fji_worker_set_location(fji_worker *w);

/* The fast path of queueing the future t in the queue of the calling worker, with the same steps as
 * fj_fork(). root: the root of a completer, or 0 for another future. Returns false, without any
 * change, if the cell at fast->top is not FREE: the queue is full, typed code is on the stack of
 * the calling thread, or the thread works for no pool. */
static inline bool fji_push_future(fj_task *t, uintptr_t root)
{
    fj_worker *fast = fji_self;
    fj_cell *p = fast->top;

    if (p->item != FJI_FREE) return false; /* the item is END if the thread works for no pool */
    /* relaxed: the release store of the item below publishes it. A thread that already waits for t
     * may read the old value. It then sleeps until t is done, instead of running t itself. */
    fji_store_relaxed(&t->cell, fast->submitted_cell);
    /* relaxed: as above */
    fji_store_relaxed(&t->location, fast->location_base + (uint32_t)((uintptr_t)p / sizeof *p));
    /* relaxed: the release store of the item below publishes it. A thief with an old value of base
     * may read the cell while this store is made; the CAS of that thief fails. */
    fji_store_relaxed(fji_cell_words(p), root);
    fast->top = p + 1;
    /* [queue.publish] release -> acquire in fji_queue_steal_for(): the future and its root. */
    fji_store_release(&p->item, FJI_FUTURE_ITEM(t));
    /* [idle.dekker] the cell above, ctl below; partner: the heavy fence in idle_lead(). Either this
     * thread sees that a worker is idle, or the rescan of that worker sees the future. */
    FJI_LIGHT_FENCE();
    if (FJI_UNLIKELY(FJI_RELAXED_NEGATIVE(fast->ctl))) fji_wake_slow(fast);
    return true;
}

/* The fast path of taking the future t back from the queue of the calling worker, if t is the
 * topmost task. fast: fji_self of the calling thread. Returns false if t is not the topmost task,
 * or if a thief has it. */
static inline bool fji_pop_future(fj_worker *fast, const fj_task *t)
{
    fj_cell *c = fast->top - 1;
    uintptr_t item = FJI_FUTURE_ITEM(t);

    if (c->item != item) return false; /* the item is END if the thread works for no pool */
    int got = fji_pop(fast, c);
    if (got > 0) fast->top = c;
    return got > 0 || (got < 0 && fji_worker_finish_pop(fji_worker_of(fast), c, item));
}

/* The fast path of fji_worker_take_local(): takes the topmost task of w's queue if it is a future,
 * and returns it. Returns NULL if the topmost task is not a future or a thief has it, if the queue
 * has no task or has tombstones, or if the pool is FIFO. */
static inline fj_task *fji_worker_take_future(fji_worker *w)
{
    fji_queue *q = &w->q;
    fj_cell *c = q->fast.top - 1; /* in an empty queue: the cell before cell 0, item END */
    uintptr_t item = c->item;

    if ((item & FJI_TAG_MASK) != (FJI_TAG_DETACHED | FJI_TAG_FUTURE)) return NULL;
    if (w->pool->fifo || q->tombstones != 0) return NULL;
    int got = fji_pop(&q->fast, c);
    if (got > 0) q->fast.top = c;
    bool ours = got > 0 || (got < 0 && fji_worker_finish_pop(w, c, item));
    return ours ? fji_item_task(item) : NULL;
}

#endif /* FJI_OWN_QUEUE_H */
