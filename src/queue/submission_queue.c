/* SPDX-License-Identifier: MIT */
/*
 * submission_queue.c - a submission queue: tasks are pushed with a lock and taken without it
 *
 * submission_queue.h and queue.h explain the protocol. A push executes no fence: its caller
 * submit_into() orders the store to the slot before the load of the control word.
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
    q->shifted += q->top; /* no task with an earlier number is found */
    q->top = 0;
    fji_lock_reset(&q->lock);
    q->base = fji_base_make(epoch + 1, 0, FJI_BASE_OPEN);
}

static bool submissions_grow(fji_submission_queue *q)
{
    uint32_t old = q->capacity;
    uint32_t now = fji_range_grow(&q->range, old);

    if (now == old) return false;
    /* relaxed: fji_submission_queue_count() may read this far; it stops at END and at FREE. */
    fji_store_relaxed(&q->slots[now].item, FJI_END);
    fji_store_relaxed(&q->capacity, now); /* relaxed: without the lock it is a hint */
    /* relaxed: END and FREE mean the same to a thief: no task. */
    fji_store_relaxed(&q->slots[old].item, FJI_FREE);
    return true;
}

static void slot_fill(fji_slot *s, uintptr_t item, uintptr_t fn, uintptr_t arg, uintptr_t token)
{
    /* relaxed: the release store below publishes them. A thief with an old base may read them at
     * the same time; its CAS fails. */
    fji_store_relaxed(&s->fn, fn);
    fji_store_relaxed(&s->arg, arg); /* relaxed: as above */
    /* An ACTION has no token. relaxed: as above */
    if (item != FJI_ACTION) fji_store_relaxed(&s->token, token);
    /* [queue.publish] release -> acquire load in slot_read(): the task. */
    fji_store_release(&s->item, item);
}

static void slot_move(fji_slot *to, const fji_slot *from)
{
    /* relaxed: the caller holds the lock */
    slot_fill(to, fji_load_relaxed(&from->item), from->fn, from->arg, from->token);
}

static void submissions_set_top(fji_submission_queue *q, uint32_t top)
{
    fji_store_relaxed(&q->top, top); /* relaxed: without the lock it is an estimate */
}

/* Makes base LOCKED. Returns base as it was before. */
static uint64_t submissions_lock(fji_submission_queue *q)
{
    /* [queue.base] acquire <- the CAS of a thief. */
    uint64_t b = fji_load_acquire(&q->base);

    for (;;) {
        uint64_t locked = fji_base_make(fji_base_epoch(b) + 1, fji_base_index(b), FJI_BASE_LOCKED);
        /* [queue.base] acq_rel: from here on the CAS of a thief fails. */
        if (fji_cas_acq_rel_64(&q->base, &b, locked)) return b;
    }
}

/* Makes base OPEN again, with index 0. b: what submissions_lock() returned. */
static void submissions_unlock(fji_submission_queue *q, uint64_t b)
{
    /* [queue.base] release -> acquire in submissions_steal(): the slots as they are now. The
     * submitter then wakes a worker, for a worker that has met LOCKED. */
    fji_store_release(&q->base, fji_base_make(fji_base_epoch(b) + 2, 0, FJI_BASE_OPEN));
}

/* Moves the queued tasks to the front. All of them move by the same distance, which is added to
 * `shifted`, so their numbers stay valid. */
static void submissions_compact(fji_submission_queue *q)
{
    uint64_t b = submissions_lock(q);
    uint32_t from = fji_base_index(b), n = q->top - from;

    if (from != 0) {
        for (uint32_t i = 0; i < n; i++) slot_move(&q->slots[i], &q->slots[from + i]);
        for (uint32_t i = n; i < q->top; i++)
            /* [queue.base] release -> acquire in fji_submission_queue_maybe(), which then reads
             * LOCKED. */
            fji_store_release(&q->slots[i].item, FJI_FREE);
    }
    q->shifted += from;
    submissions_set_top(q, n);
    submissions_unlock(q, b);
}

/* Returns the number of dead slots at the front, whose tasks were taken. It may grow meanwhile. */
static uint32_t submissions_dead(const fji_submission_queue *q)
{
    return fji_base_index(fji_load_relaxed(&q->base)); /* relaxed: thieves only raise index */
}

/* Makes space for a push: compacts if more than half of the slots are dead, otherwise grows. If it
 * cannot grow, compacts if that gains enough slots to pay for the moves. */
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
    if (number != NULL) fji_store_relaxed(number, top + q->shifted); /* relaxed: published below */
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
    /* relaxed in what follows: base is LOCKED, and END and FREE mean the same to a thief */
    for (uint32_t i = 0; i < FJI_SUBMISSIONS_KEPT && i < q->top; i++)
        fji_store_relaxed(&q->slots[i].item, FJI_FREE); /* relaxed: see above */
    q->shifted += q->top;
    if (fji_range_shrink(&q->range, q->capacity, FJI_SUBMISSIONS_KEPT)) {
        fji_store_relaxed(&q->slots[FJI_SUBMISSIONS_KEPT].item, FJI_END); /* relaxed: see above */
        fji_store_relaxed(&q->capacity, FJI_SUBMISSIONS_KEPT);            /* relaxed: see above */
    } else {
        for (uint32_t i = FJI_SUBMISSIONS_KEPT; i < q->top; i++)
            fji_store_relaxed(&q->slots[i].item, FJI_FREE); /* relaxed: see above */
    }
    submissions_set_top(q, 0);
    submissions_unlock(q, b);
}

/* Decides whether the holder of the lock has the task of slot pos, which is already FREE or CLAIM.
 * See queue_decide() in queue.c. */
static bool submissions_decide(fji_submission_queue *q, uint32_t pos)
{
    /* [queue.take] the slot above, base below; partner: the thief's fence in
     * submissions_steal(). */
    fji_fence_full();
    /* [queue.base] acquire <- the CAS of a thief. */
    uint64_t b = fji_load_acquire(&q->base);
    for (;;) {
        uint32_t index = fji_base_index(b);
        if (index > pos) return false;
        if (index < pos) return true;
        /* [queue.base] acq_rel: partner is the thief's CAS on the same word. */
        uint64_t next = fji_base_make(fji_base_epoch(b) + 1, index, FJI_BASE_OPEN);
        if (fji_cas_acq_rel_64(&q->base, &b, next)) return true;
    }
}

/* Frees the TOMBSTONEs at the end. */
static void submissions_drop_end(fji_submission_queue *q)
{
    /* relaxed in what follows: the caller holds the lock, and submissions_decide() fences */
    while (q->top > submissions_dead(q) &&
           fji_load_relaxed(&q->slots[q->top - 1].item) == FJI_TOMBSTONE) {
        fji_slot *s = &q->slots[q->top - 1];
        fji_store_relaxed(&s->item, FJI_FREE); /* relaxed: see above */
        if (!submissions_decide(q, q->top - 1)) {
            fji_store_relaxed(&s->item, FJI_TOMBSTONE); /* relaxed: a thief has skipped it */
            return;
        }
        submissions_set_top(q, q->top - 1);
    }
}

/* Moves index over the TOMBSTONEs at the front, as a thief does. */
static void submissions_drop_front(fji_submission_queue *q)
{
    /* [queue.base] acquire <- the CAS of a thief. */
    uint64_t b = fji_load_acquire(&q->base);

    for (;;) {
        uint32_t index = fji_base_index(b);
        /* relaxed: the caller holds the lock */
        if (index >= q->top || fji_load_relaxed(&q->slots[index].item) != FJI_TOMBSTONE) return;
        uint64_t next = fji_base_make(fji_base_epoch(b), index + 1, FJI_BASE_OPEN);
        /* [queue.base] acq_rel: as the CAS of a thief. */
        if (fji_cas_acq_rel_64(&q->base, &b, next)) b = next;
    }
}

bool fji_submission_queue_remove(fji_submission_queue *q, uintptr_t item, uint32_t number)
{
    uint32_t pos = number - q->shifted;

    /* relaxed: the caller holds the lock */
    if (pos >= q->top || fji_load_relaxed(&q->slots[pos].item) != item) return false;
    bool newest = pos + 1 == q->top;
    /* relaxed: submissions_decide() fences */
    fji_store_relaxed(&q->slots[pos].item, newest ? FJI_FREE : FJI_CLAIM);
    bool ours = submissions_decide(q, pos);
    if (ours && newest) {
        submissions_set_top(q, pos);
        submissions_drop_end(q);
    } else {
        /* relaxed: a thief that still reads CLAIM tries again; below index no thief reads */
        fji_store_relaxed(&q->slots[pos].item, FJI_TOMBSTONE);
        if (ours) submissions_drop_front(q);
    }
    return ours;
}

/* Reads slot s; the caller has read base before. Returns false if the slot holds no task. */
static bool slot_read(const fji_slot *s, fji_taken *taken)
{
    /* [queue.publish] acquire <- release in slot_fill(): the task. */
    taken->item = fji_load_acquire(&s->item);
    taken->fn = fji_load_relaxed(&s->fn);   /* relaxed: [queue.publish] carries them */
    taken->arg = fji_load_relaxed(&s->arg); /* relaxed: if they are torn, the CAS fails */
    taken->cell = NULL;
    /* relaxed: as above */
    taken->token = taken->item != FJI_ACTION ? (const fj_token *)fji_load_relaxed(&s->token) : NULL;
    return taken->item != FJI_FREE && taken->item != FJI_END;
}

/*
 * Returns how many tasks to take, and reads them into `taken`; the first is already there. The
 * result is half of the ACTIONs in a row from s on, or 1 if the first task is not an ACTION. A
 * thief takes several tasks only if all are ACTIONs, because an ACTION cannot be removed: the
 * removal of another task above index does not change base, so the thief's CAS would not fail.
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

static fji_steal_result submissions_steal(fji_submission_queue *q, fji_taken *taken, uint32_t max,
                                          uint32_t *n, uintptr_t root)
{
    for (;;) {
        /* [queue.base] acquire <- the owner's CAS: the slots that it has freed or moved. */
        uint64_t b = fji_load_acquire(&q->base);
        uint32_t index = fji_base_index(b);
        if (fji_base_state(b) == FJI_BASE_LOCKED) return FJI_STEAL_RETRY;
        /* [queue.take] base above, the slots below; partner: submissions_decide(). */
        fji_fence_thief();
        fji_slot *s = &q->first[index];
        if (!slot_read(s, taken))
            /* [queue.base] acquire <- the owner's CAS: EMPTY only if index has not changed. */
            return fji_load_acquire(&q->base) == b ? FJI_STEAL_EMPTY : FJI_STEAL_RETRY;
        if (taken->item == FJI_CLAIM) return FJI_STEAL_RETRY;
        bool of_root = fji_item_is_future(taken->item) && taken->fn == root;
        if (root != 0 && taken->item != FJI_TOMBSTONE && !of_root) return FJI_STEAL_EMPTY;
        *n = max > 1 ? submissions_read_batch(s, taken, max) : 1;
        uint64_t next = fji_base_make(fji_base_epoch(b), index + *n, FJI_BASE_OPEN);
        /* [queue.base] acq_rel: partner is the owner's CAS on the same word. */
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
    /* [queue.base] acquire <- the owner's CAS. */
    uint64_t b = fji_load_acquire(&q->base);
    if (fji_base_state(b) == FJI_BASE_LOCKED) return true;
    /* [queue.publish] acquire: also keeps the second load of base after it. */
    uintptr_t item = fji_load_acquire(&q->first[fji_base_index(b)].item);
    if (item != FJI_FREE && item != FJI_END) return true;
    /* [queue.base] acquire <- the owner's CAS: the owner may have lowered index meanwhile. */
    return fji_load_acquire(&q->base) != b;
}

uint32_t fji_submission_queue_count(const fji_submission_queue *q)
{
    uint32_t i = fji_base_index(fji_load_relaxed(&q->base)); /* relaxed: an estimate */
    uint32_t top = fji_load_relaxed(&q->top);                /* relaxed: an estimate */
    uint32_t n = 0;

    /* Of a long queue the TOMBSTONEs are counted too, because reading every slot takes long. */
    if (top > i && top - i > FJI_SUBMISSIONS_KEPT) return top - i;
    for (;; i++) {
        uintptr_t item = fji_load_relaxed(&q->first[i].item); /* relaxed: an estimate */
        if (item == FJI_FREE || item == FJI_END) return n;
        if (item != FJI_TOMBSTONE) n++;
    }
}
