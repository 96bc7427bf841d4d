/* SPDX-License-Identifier: MIT */
/*
 * hide.c - hides the tasks of a queue from the thieves, and shows them again
 *
 * The owner of a queue runs a function during which no thread may take the tasks that are in the
 * queue already, while thieves may take the tasks that the function forks (sched/safepoint.c). The
 * owner pushes a TOMBSTONE as a separator and moves index above it:
 *
 *     before               hidden                          shown again
 *     .. FREE              .. FREE     <- the owner        .. FREE
 *     cell 5   task        cell 6      <- index, shown     cell 5   task
 *     cell 4   task        cell 5   task                   cell 4   task  <- index
 *     cell 3   stolen      ..                              cell 3   stolen
 *                          (the separator is in cell 6, and shown and index are at cell 7)
 *
 * Thieves take from index upwards, so they see only the cells from `shown` on. The owner does not
 * touch a cell below `shown` meanwhile: a take of such a cell does not occur, because the frames
 * that forked these tasks are below the function on the stack; reclaiming and compaction end at
 * `shown`; fji_worker_take_back() refuses positions below it. The item of the separator equals no
 * task, so no fast path finds a hidden task directly below the boundary. `tombstones` does not count
 * the separator, so the queue can be CLOSED while tasks are hidden.
 *
 * If the queue has no free cell for the separator, the owner uses the state of typed code: fast.top
 * is the END below cell 0, so every fork takes its slow path, finds no space and runs its task.
 *
 * When the owner shows the tasks again, every task joined through its cell is done. Detached tasks
 * may be left above the separator. The cells of those that thieves have taken become TOMBSTONEs,
 * because index goes down below them. base is LOCKED during this change.
 *
 * Edges          from                                  to                               carries
 *   queue.base   acq_rel CAS, fji_queue_hide()         acquire, fji_queue_steal_for()   index
 *   queue.base   release store, fji_queue_show()       acquire, fji_queue_steal_for()   the cells
 */

#include "queue/queue.h"

/* Changes base to this index, this state and a new epoch, and returns its old value. floor becomes
 * MAX, which is correct in every state. Called by the owner. */
static uint64_t hide_change(fji_queue *q, uint32_t index, unsigned state, bool keep_index)
{
    /* relaxed: only the owner reads floor. */
    fji_store_relaxed(&q->fast.floor, UINTPTR_MAX);
    /* [queue.base] acquire <- the CAS in fji_queue_steal_for(): thieves have read the items and the
     * words of all cells below the index that is seen here. */
    uint64_t b = fji_load_acquire(&q->base);
    uint64_t next;

    do {
        next = fji_base_make(fji_base_epoch(b) + 1, keep_index ? fji_base_index(b) : index, state);
        /* [queue.base] acq_rel -> acquire in fji_queue_steal_for(): index. If a thief has read an
         * older base, its CAS fails. */
    } while (!fji_cas_acq_rel_64(&q->base, &b, next));
    return b;
}

/* Pushes the separator. Returns the cell above it, or NULL if the queue has no space. */
static fj_cell *hide_separate(fji_queue *q)
{
    fj_cell *p = fji_queue_room(q, fji_queue_in_typed(q) ? q->typed_hint : q->fast.top);

    if (p == NULL) return NULL;
    fji_store_relaxed(&p->item, FJI_TOMBSTONE); /* relaxed: the CAS on base follows */
    return p + 1;
}

void fji_queue_hide(fji_queue *q, fji_hidden *h)
{
    *h = (fji_hidden){.top = q->fast.top, .low = q->typed_low, .count = q->typed_count};
    fj_cell *above = hide_separate(q);
    fj_cell *b = above != NULL ? above : fji_queue_boundary(q, q->fast.top);

    h->separated = above != NULL;
    q->typed_hint = b;
    q->typed_low = b;
    q->typed_count = 0;
    q->fast.top = above != NULL ? b : q->cells - 1;
    q->shown = b;
    uint32_t index = fji_base_index(hide_change(q, fji_queue_position(q, b), FJI_BASE_OPEN, false));
    /* A thief may have taken the separator, as it takes every TOMBSTONE. */
    uint32_t most = fji_queue_position(q, b) - (above != NULL ? 1 : 0);
    q->hidden_index = index < most ? index : most;
}

/* Called while base is LOCKED: the cells from `shown` up to `index`, whose detached tasks were
 * stolen, become TOMBSTONEs. The separator becomes FREE if no cell above it is in use, otherwise a
 * TOMBSTONE that is counted. b is the boundary. Returns the new boundary. */
static fj_cell *hide_clean(fji_queue *q, const fji_hidden *h, uint32_t index, fj_cell *b)
{
    fj_cell *first = q->shown;

    for (fj_cell *c = first; c < q->cells + index; c++) {
        if (fji_load_relaxed(&c->item) == FJI_TOMBSTONE) continue; /* relaxed: the owner wrote it */
        fji_store_relaxed(&c->item, FJI_TOMBSTONE); /* relaxed: the store of base publishes it */
        q->tombstones++;
    }
    if (!h->separated) return b;
    if (b > first) {
        q->tombstones++;
        return b;
    }
    fji_store_relaxed(&(first - 1)->item, FJI_FREE); /* relaxed: the store of base publishes it */
    return first - 1;
}

bool fji_queue_show(fji_queue *q, const fji_hidden *h)
{
    fj_cell *b = fji_queue_boundary(q, fji_queue_in_typed(q) ? q->typed_hint : q->fast.top);
    uint64_t old = hide_change(q, 0, FJI_BASE_LOCKED, true);
    fj_cell *boundary = hide_clean(q, h, fji_base_index(old), b);

    q->shown = q->cells;
    q->typed_low = h->low;
    q->typed_count = h->count;
    q->typed_hint = boundary;
    /* [queue.base] release -> acquire in fji_queue_steal_for(): the cells as they are now. A thief
     * that has read LOCKED gets RETRY and searches again. */
    fji_store_release(&q->base,
                      fji_base_make(fji_base_epoch(old) + 2, q->hidden_index, FJI_BASE_OPEN));
    q->fast.top = h->top;
    if (h->top >= q->cells) q->fast.top = fji_queue_reclaim(q, boundary, q->cells);
    return q->cells + q->hidden_index < boundary;
}
