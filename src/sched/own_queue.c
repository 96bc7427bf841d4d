/* SPDX-License-Identifier: MIT */
/*
 * own_queue.c - what a worker does with its own queue, apart from fork and join; see own_queue.h
 */

#include "sched/own_queue.h"

#include "sched/wake.h"

int64_t fji_worker_push(fji_worker *w, uintptr_t item, fj_action_fn *fn, void *arg, bool wake)
{
    fji_queue *q = &w->q;
    fj_cell *p = fji_worker_find_space(w);

    if (p == NULL) return -1;
    if (item == FJI_ACTION || fji_item_is_future(item)) fji_cell_put_action(p, fn, arg);
    int64_t position = fji_queue_position(q, p);
    if (fji_item_is_detached(item) && item != FJI_ACTION)
        /* relaxed: fji_worker_publish() publishes it with the item. A thread that reads `location`
         * earlier only looks for the task at a wrong place and does not find it there. */
        fji_store_relaxed(&(fji_item_task(item))->location,
                          FJI_LOCATION_LOCAL | fji_location_stamp() | (uint32_t)position);
    fji_worker_publish(w, p, item);
    if (wake)
        fji_wake_slow(&q->fast);
    else
        fji_pool_note_lazy(w->pool);
    return position;
}

bool fji_worker_finish_pop(fji_worker *w, fj_cell *c, uintptr_t item)
{
    fj_cell *b = c + 1;
    bool ours = fji_queue_take(&w->q, c, item, true, &b);

    if (!ours) b = fji_queue_give_back(&w->q, c);
    w->q.fast.top = fji_queue_reclaim(&w->q, b, w->q.cells);
    return ours;
}

/* Frees c, the topmost cell of w's queue. Its task, `item`, was stolen, and no task on w's stack
 * will join it. Returns false, without any change, if the thief still uses the cell. The thief of a
 * detached task does not use the cell. */
static bool worker_free_stolen(fji_worker *w, fj_cell *c, uintptr_t item)
{
    if (!fji_item_is_detached(item)) {
        /* [task.done] acquire <- acq_rel in fji_cell_complete(): everything that the thief wrote to
         * the cell. The thief does not use the cell after that. */
        if ((fji_load_acquire(&c->state) & FJI_DONE) == 0) return false;
        fji_store_relaxed(&c->state, 0u); /* relaxed: no other thread uses the cell now */
    }
    w->q.fast.top = fji_queue_reclaim(&w->q, fji_queue_give_back(&w->q, c), w->q.cells);
    return true;
}

bool fji_worker_take_local(fji_worker *w, fji_taken *taken)
{
    fji_queue *q = &w->q;

    if (w->pool->fifo) {
        fji_steal_result got;
        while ((got = fji_queue_steal(q, taken)) == FJI_STEAL_RETRY) fji_pause();
        if (got == FJI_STEAL_EMPTY && !fji_queue_in_typed(&w->q))
            q->fast.top = fji_queue_rewind(q, q->fast.top);
        return got == FJI_STEAL_SUCCESS;
    }
    while (q->fast.top > q->cells) {
        fj_cell *c = q->fast.top - 1;
        const uintptr_t *at = fji_cell_words(c);
        *taken = (fji_taken){.item = c->item, .fn = at[0], .arg = at[1]};
        if (taken->item <= FJI_SPECIAL) return false;
        if (fji_item_is_detached(taken->item)) {
            int got = fji_pop(&q->fast, c);
            if (got > 0) q->fast.top = q->tombstones == 0 ? c : fji_queue_reclaim(q, c, q->cells);
            if (got > 0 || (got < 0 && fji_worker_finish_pop(w, c, taken->item))) return true;
            if (got < 0) continue;
        }
        fj_cell *top = q->fast.top;
        if (fji_queue_take(q, c, taken->item, false, &top)) {
            q->fast.top = fji_queue_reclaim(q, top, q->cells);
            return true;
        }
        if (!worker_free_stolen(w, c, taken->item)) return false;
    }
    return false;
}

bool fji_worker_take_detached(fji_worker *w, fj_cell *c)
{
    fj_cell *boundary = fji_worker_boundary(w);
    bool ours = fji_queue_take(&w->q, c, c->item, false, &boundary);

    /* The thief of a detached task does not use its cell, so the cell is free at once. */
    if (!ours) boundary = fji_queue_give_back(&w->q, c);
    fji_queue_set_boundary(&w->q, boundary);
    return ours;
}

bool fji_worker_take_back(fji_worker *w, uint32_t position, uintptr_t item)
{
    fj_cell *c = w->q.cells + position;

    /* A cell below `shown` is hidden: its task stays in the queue until it is shown again. */
    return position < w->q.capacity && c >= w->q.shown && c->item == item &&
           fji_worker_take_detached(w, c);
}

void fji_worker_set_location(fji_worker *w)
{
    uint32_t first = (uint32_t)((uintptr_t)w->q.cells / sizeof *w->q.cells);

    w->q.fast.location_base = (FJI_LOCATION_LOCAL | fji_location_stamp()) - first;
}
