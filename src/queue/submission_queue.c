/* SPDX-License-Identifier: MIT */
/*
 * submission_queue.c - a submission queue: a push needs the lock, a steal does not
 *
 * submission_queue.h and queue.h explain the protocol. A push executes no fence. If its caller
 * submit_into() wakes a worker, submit_into() executes the fence that orders the store to the slot
 * before the load of the control word.
 */

#include "queue/submission_queue.h"

#include <string.h>

bool fji_submission_queue_init(fji_submission_queue *q, uint32_t first, uint32_t limit)
{
    if (!fji_range_init(&q->range, sizeof(fji_slot), 1, first, limit)) return false;
    q->capacity = first;
    q->slots = (fji_slot *)(void *)q->range.start;
    q->first = q->slots;
    q->slots[first].item = FJI_END;
    q->top = FJI_START_SLOT(first);
    q->pushed = FJI_START_64;
    q->base = fji_base_make(FJI_START_EPOCH, q->top, FJI_BASE_OPEN);
    return true;
}

void fji_submission_queue_fini(fji_submission_queue *q)
{
    fji_range_fini(&q->range);
}

void fji_submission_queue_reset(fji_submission_queue *q)
{
    uint64_t epoch = fji_base_epoch(q->base);

    memset(q->slots, 0, q->capacity * sizeof *q->slots);
    /* `shifted` grows, so that fji_submission_queue_remove() does not find a task that was queued
     * before the reset. */
    q->shifted += q->top;
    q->top = 0;
    fji_lock_reset(&q->lock);
    q->base = fji_base_make(epoch + 1, 0, FJI_BASE_OPEN);
}

static bool submissions_grow(fji_submission_queue *q)
{
    uint32_t old = q->capacity;
    uint32_t now = fji_range_grow(&q->range, old);

    if (now == old) return false;
    /* relaxed: another thread may read this slot in fji_submission_queue_count(), which stops at
     * END and at FREE. So it does not matter which of the two it reads. */
    fji_store_relaxed(&q->slots[now].item, FJI_END);
    fji_store_relaxed(&q->capacity, now); /* relaxed: other threads read it as a hint */
    /* relaxed: FREE replaces END, and both tell a thief that the slot has no task. */
    fji_store_relaxed(&q->slots[old].item, FJI_FREE);
    return true;
}

static void slot_fill(fji_slot *s, uintptr_t item, uintptr_t fn, uintptr_t arg, uintptr_t token)
{
    /* relaxed: the release store of `item` below publishes fn, arg and token. A thief that has read
     * an older base may read them at the same time, but its CAS fails. */
    fji_store_relaxed(&s->fn, fn);
    fji_store_relaxed(&s->arg, arg); /* relaxed: as above */
    /* An ACTION has no token. relaxed: the store of `item` publishes the token. */
    if (item != FJI_ACTION) fji_store_relaxed(&s->token, token);
    /* [queue.publish] release -> acquire in slot_read(): the task, fn, arg and token. */
    fji_store_release(&s->item, item);
}

static void slot_move(fji_slot *to, const fji_slot *from)
{
    /* relaxed: the caller holds the lock, and only the holder writes to slots */
    slot_fill(to, fji_load_relaxed(&from->item), from->fn, from->arg, from->token);
}

static void submissions_set_top(fji_submission_queue *q, uint32_t top)
{
    fji_store_relaxed(&q->top, top); /* relaxed: other threads read it as an estimate */
}

/* Called by the holder of the lock. Sets the state of base to LOCKED, so that no thief takes a task
 * until submissions_unlock(), and increments the epoch. Returns the value that base had before. */
static uint64_t submissions_lock(fji_submission_queue *q)
{
    /* [queue.base] acquire <- the CAS in submissions_steal(): thieves have read all slots below the
     * index that is seen here. */
    uint64_t b = fji_load_acquire(&q->base);

    for (;;) {
        uint64_t locked = fji_base_make(fji_base_epoch(b) + 1, fji_base_index(b), FJI_BASE_LOCKED);
        /* [queue.base] acq_rel: if a thief has read an older base, its CAS fails from here on. A
         * thief that reads LOCKED takes nothing. */
        if (fji_cas_acq_rel_64(&q->base, &b, locked)) return b;
    }
}

/* Sets the state of base to OPEN and index to 0, and increments the epoch again. b is the result of
 * submissions_lock(). */
static void submissions_unlock(fji_submission_queue *q, uint64_t b)
{
    /* [queue.base] release -> acquire in submissions_steal(): the slots as they are now. A thief
     * that has read LOCKED gets RETRY and searches again. */
    fji_store_release(&q->base, fji_base_make(fji_base_epoch(b) + 2, 0, FJI_BASE_OPEN));
}

/* Called by the holder of the lock. Moves the queued tasks to the front of the array. All of them
 * move down by the same distance, which is added to `shifted`, so fj_task.number minus `shifted`
 * remains the position of each task. */
static void submissions_compact(fji_submission_queue *q)
{
    uint64_t b = submissions_lock(q);
    uint32_t from = fji_base_index(b), n = q->top - from;

    if (from != 0) {
        for (uint32_t i = 0; i < n; i++) slot_move(&q->slots[i], &q->slots[from + i]);
        for (uint32_t i = n; i < q->top; i++)
            /* [queue.base] release -> acquire of the item in fji_submission_queue_maybe(): a thread
             * that reads this FREE also sees that base is LOCKED, or a later base. */
            fji_store_release(&q->slots[i].item, FJI_FREE);
    }
    q->shifted += from;
    submissions_set_top(q, n);
    submissions_unlock(q, b);
}

/* Returns the number of dead slots: the slots below index, whose tasks were taken or removed.
 * Thieves may increase it at any time. */
static uint32_t submissions_dead(const fji_submission_queue *q)
{
    /* relaxed: the caller holds the lock, so other threads only raise index, and the result is a
     * lower bound */
    return fji_base_index(fji_load_relaxed(&q->base));
}

/* Makes space for a push into a full queue. If at most half of the slots are dead (see
 * submissions_dead()), grows the queue. If more are dead, or if the queue cannot grow, compacts it,
 * provided that more than 1/64 of the slots are dead. Compacting for fewer would cost more than it
 * gains. Returns true if it has grown or compacted the queue, so that there is space; otherwise
 * returns false. Called by the holder of the lock. */
static bool submissions_make_space(fji_submission_queue *q)
{
    if (submissions_dead(q) <= q->capacity / 2 && submissions_grow(q)) return true;
    if (submissions_dead(q) <= q->capacity / 64) return false;
    submissions_compact(q);
    return true;
}

bool fji_submission_queue_push(fji_submission_queue *q, const fji_taken *it, uint32_t *number)
{
    uint32_t top = q->top;

    if (FJI_UNLIKELY(top == q->capacity)) {
        if (!submissions_make_space(q)) return false;
        top = q->top;
    }
    if (number != NULL) fji_store_relaxed(number, top + q->shifted); /* relaxed: published next */
    slot_fill(&q->slots[top], it->item, it->fn, it->arg, (uintptr_t)it->token);
    submissions_set_top(q, top + 1);
    q->pushed++;
    return true;
}

bool fji_submission_queue_is_large(const fji_submission_queue *q)
{
    return fji_load_relaxed(&q->capacity) > FJI_SUBMISSIONS_KEPT; /* relaxed: a hint */
}

void fji_submission_queue_shrink(fji_submission_queue *q)
{
    if (!fji_submission_queue_is_large(q) || submissions_dead(q) != q->top) return;
    uint64_t b = submissions_lock(q);
    /* While base is LOCKED, no thief takes a task, so the stores below are relaxed. END and FREE
     * both tell a thief that the slot has no task. */
    for (uint32_t i = 0; i < FJI_SUBMISSIONS_KEPT && i < q->top; i++)
        fji_store_relaxed(&q->slots[i].item, FJI_FREE); /* relaxed: base is LOCKED */
    q->shifted += q->top;
    if (fji_range_shrink(&q->range, q->capacity, FJI_SUBMISSIONS_KEPT)) {
        /* relaxed: the state of base is LOCKED, so no thief takes a task */
        fji_store_relaxed(&q->slots[FJI_SUBMISSIONS_KEPT].item, FJI_END);
        /* relaxed: other threads read it as a hint */
        fji_store_relaxed(&q->capacity, FJI_SUBMISSIONS_KEPT);
    } else {
        for (uint32_t i = FJI_SUBMISSIONS_KEPT; i < q->top; i++)
            fji_store_relaxed(&q->slots[i].item, FJI_FREE); /* relaxed: base is LOCKED */
    }
    submissions_set_top(q, 0);
    submissions_unlock(q, b);
}

/* Called after the caller, which holds the lock, has stored FREE or CLAIM into the slot at position
 * pos. Returns true if the task of this slot is now the caller's, and false if a thief has taken
 * it. Corresponds to queue_decide() in queue.c. */
static bool submissions_decide(fji_submission_queue *q, uint32_t pos)
{
    /* [queue.take] the slot above, base below; partner: the thief's fence in submissions_steal().
     * Either this thread sees that index has reached this slot, or a thief that reaches the slot
     * sees FREE or CLAIM in it. */
    fji_fence_full();
    /* [queue.base] acquire <- the CAS in submissions_steal(): thieves have read all slots below the
     * index that is seen here. */
    uint64_t b = fji_load_acquire(&q->base);
    for (;;) {
        uint32_t index = fji_base_index(b);
        if (index > pos) return false;
        if (index < pos) return true;
        /* [queue.base] acq_rel, as every CAS on base. A thief may change base at the same time,
         * also by CAS. If this thread and the thief start from the same value, only one of the two
         * succeeds. */
        uint64_t next = fji_base_make(fji_base_epoch(b) + 1, index, FJI_BASE_OPEN);
        if (fji_cas_acq_rel_64(&q->base, &b, next)) return true;
    }
}

/* Called by the holder of the lock. Frees the TOMBSTONEs directly below `top` and lowers `top`. */
static void submissions_drop_end(fji_submission_queue *q)
{
    /* relaxed: only the holder of the lock, which is the caller, writes items */
    while (q->top > submissions_dead(q) &&
           fji_load_relaxed(&q->slots[q->top - 1].item) == FJI_TOMBSTONE) {
        fji_slot *s = &q->slots[q->top - 1];
        fji_store_relaxed(&s->item, FJI_FREE); /* relaxed: submissions_decide() has a fence */
        if (!submissions_decide(q, q->top - 1)) {
            fji_store_relaxed(&s->item, FJI_TOMBSTONE); /* relaxed: it is below index */
            return;
        }
        submissions_set_top(q, q->top - 1);
    }
}

/* Called by the holder of the lock. Moves index over the TOMBSTONEs at the front of the queue, as a
 * thief does. */
static void submissions_drop_front(fji_submission_queue *q)
{
    /* [queue.base] acquire <- the CAS in submissions_steal(): thieves have read all slots below the
     * index that is seen here. */
    uint64_t b = fji_load_acquire(&q->base);

    for (;;) {
        uint32_t index = fji_base_index(b);
        /* relaxed: only the holder of the lock, which is the caller, writes items */
        if (index >= q->top || fji_load_relaxed(&q->slots[index].item) != FJI_TOMBSTONE) return;
        uint64_t next = fji_base_make(fji_base_epoch(b), index + 1, FJI_BASE_OPEN);
        /* [queue.base] acq_rel, as every CAS on base. A thief may change base at the same time,
         * also by CAS. If this thread and the thief start from the same value, only one of the two
         * succeeds. */
        if (fji_cas_acq_rel_64(&q->base, &b, next)) b = next;
    }
}

bool fji_submission_queue_remove(fji_submission_queue *q, uintptr_t item, uint32_t number)
{
    uint32_t pos = number - q->shifted;

    /* relaxed: only the holder of the lock, which is the caller, writes items */
    if (pos >= q->top || fji_load_relaxed(&q->slots[pos].item) != item) return false;
    bool newest = pos + 1 == q->top;
    /* relaxed: the full fence in submissions_decide() orders this store before the load of base */
    fji_store_relaxed(&q->slots[pos].item, newest ? FJI_FREE : FJI_CLAIM);
    bool ours = submissions_decide(q, pos);
    if (ours && newest) {
        submissions_set_top(q, pos);
        submissions_drop_end(q);
    } else {
        /* relaxed: if the task is the caller's, a thief that still reads CLAIM gets RETRY.
         * Otherwise the slot is below index, where no thief reads. */
        fji_store_relaxed(&q->slots[pos].item, FJI_TOMBSTONE);
        if (ours) submissions_drop_front(q);
    }
    return ours;
}

/* Called by a thief that has read base. Copies slot s to *taken, with a `cell` of NULL. Returns
 * false if the slot is FREE or END; otherwise it holds a task, TOMBSTONE or CLAIM. */
static bool slot_read(const fji_slot *s, fji_taken *taken)
{
    /* [queue.publish] acquire <- release in slot_fill(): the task, fn, arg and token. */
    taken->item = fji_load_acquire(&s->item);
    /* relaxed: the acquire load of the item makes fn, arg and token visible. If the slot is used
     * again meanwhile, they may belong to another task, but then the thief's CAS fails. */
    taken->fn = fji_load_relaxed(&s->fn);
    taken->arg = fji_load_relaxed(&s->arg); /* relaxed: as above */
    taken->cell = NULL;
    /* relaxed: as fn and arg */
    taken->token = taken->item != FJI_ACTION ? (const fj_token *)fji_load_relaxed(&s->token) : NULL;
    return taken->item != FJI_FREE && taken->item != FJI_END;
}

/*
 * Called after the thief has read slot s into taken[0]. Returns the number of tasks to take, and
 * copies them to `taken`. If taken[0] is the first of k ACTIONs in a row, the result is half of the
 * k, rounded up, but at most `max`. If taken[0] is not an ACTION, the result is 1. Tasks other than
 * ACTIONs are not taken together, because fji_submission_queue_remove() could remove one of them
 * meanwhile: a removal above index does not change base, so the thief's CAS would not fail. An
 * ACTION is never removed.
 */
static uint32_t submissions_read_batch(const fji_slot *s, fji_taken *taken, uint32_t max)
{
    uint32_t seen = 1;

    if (taken[0].item != FJI_ACTION) return 1;
    while (seen < 2 * max) {
        fji_taken next;
        if (!slot_read(s + seen, &next) || next.item != FJI_ACTION) break;
        if (seen < max) taken[seen] = next;
        seen++;
    }
    return (seen + 1) / 2;
}

/*
 * Tries once to take the oldest task. If root is not 0, takes only a completer with this root, and
 * returns EMPTY if the oldest task is another one. If max is greater than 1, may take up to `max`
 * ACTIONs; see submissions_read_batch(). After SUCCESS, `taken` holds the tasks, and *n is their
 * number.
 */
static fji_steal_result submissions_steal(fji_submission_queue *q, fji_taken *taken, uint32_t max,
                                          uint32_t *n, uintptr_t root)
{
    for (;;) {
        /* [queue.base] acquire <- the CAS or release store to base by the holder of the lock: the
         * slots that the holder has freed or moved. */
        uint64_t b = fji_load_acquire(&q->base);
        uint32_t index = fji_base_index(b);
        if (fji_base_state(b) == FJI_BASE_LOCKED) return FJI_STEAL_RETRY;
        /* [queue.take] base above, the slots below; partner: the full fence in
         * submissions_decide(). Either the thread that removes a task sees that index has reached
         * its slot, or this thief sees FREE or CLAIM in the slot. */
        fji_fence_thief();
        fji_slot *s = &q->first[index];
        if (!slot_read(s, taken))
            /* [queue.base] acquire <- the CAS or release store to base by the holder of the lock:
             * whether base has changed. If it has, the slot at the new index may have a task. */
            return fji_load_acquire(&q->base) == b ? FJI_STEAL_EMPTY : FJI_STEAL_RETRY;
        if (taken->item == FJI_CLAIM) return FJI_STEAL_RETRY;
        bool of_root = fji_item_is_future(taken->item) && taken->fn == root;
        if (root != 0 && taken->item != FJI_TOMBSTONE && !of_root) return FJI_STEAL_EMPTY;
        *n = max > 1 ? submissions_read_batch(s, taken, max) : 1;
        uint64_t next = fji_base_make(fji_base_epoch(b), index + *n, FJI_BASE_OPEN);
        /* [queue.base] acq_rel -> acquire in submissions_lock() and submissions_decide(): this
         * thief has finished its reads of the slots. If the holder of the lock changes base by CAS
         * at the same time, only one of the two succeeds. */
        if (!fji_cas_acq_rel_64(&q->base, &b, next)) return FJI_STEAL_RETRY;
        if (taken->item != FJI_TOMBSTONE) return FJI_STEAL_SUCCESS;
    }
}

fji_steal_result fji_submission_queue_steal(fji_submission_queue *q, fji_taken *taken)
{
    uint32_t n;
    return submissions_steal(q, taken, 1, &n, 0);
}

fji_steal_result fji_submission_queue_steal_root(fji_submission_queue *q, uintptr_t root,
                                                 fji_taken *taken)
{
    uint32_t n;
    return submissions_steal(q, taken, 1, &n, root);
}

fji_steal_result fji_submission_queue_steal_some(fji_submission_queue *q, fji_taken *taken,
                                                 uint32_t *n)
{
    return submissions_steal(q, taken, FJI_SUBMISSIONS_BATCH, n, 0);
}

bool fji_submission_queue_maybe(const fji_submission_queue *q)
{
    /* [queue.base] acquire <- the CAS or release store to base by the holder of the lock: the slots
     * that the holder has freed or moved. */
    uint64_t b = fji_load_acquire(&q->base);
    if (fji_base_state(b) == FJI_BASE_LOCKED) return true;
    /* [queue.publish] acquire <- release in slot_fill(): the task. The acquire also orders the
     * second load of base below after this load. */
    uintptr_t item = fji_load_acquire(&q->first[fji_base_index(b)].item);
    if (item != FJI_FREE && item != FJI_END) return true;
    /* [queue.base] acquire <- the CAS or release store to base by the holder of the lock: whether
     * base has changed. If it has, the slot at the new index may have a task. */
    return fji_load_acquire(&q->base) != b;
}

size_t fji_submission_queue_bytes(const fji_submission_queue *q)
{
    return fji_range_bytes(&q->range, fji_load_relaxed(&q->capacity)); /* relaxed: a statistic */
}

uint32_t fji_submission_queue_count(const fji_submission_queue *q)
{
    uint32_t i = fji_base_index(fji_load_relaxed(&q->base)); /* relaxed: an estimate */
    uint32_t top = fji_load_relaxed(&q->top);                /* relaxed: an estimate */
    uint32_t n = 0;

    /* In a long queue TOMBSTONEs are counted as tasks, because reading every slot would take too
     * long. */
    if (top > i && top - i > FJI_SUBMISSIONS_KEPT) return top - i;
    for (;; i++) {
        uintptr_t item = fji_load_relaxed(&q->first[i].item); /* relaxed: an estimate */
        if (item == FJI_FREE || item == FJI_END) return n;
        if (item != FJI_TOMBSTONE) n++;
    }
}
