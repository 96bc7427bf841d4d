/* SPDX-License-Identifier: MIT */
/*
 * queue.c - a worker's queue: memory, the owner's side, the thieves' side
 *
 * queue.h explains the protocol.
 */

#include "queue/queue.h"

#define QUEUE_FLOOR_MAX UINTPTR_MAX
#define QUEUE_UNTYPED ((uintptr_t)1) /* in place of a root: any task that is not typed */

/* ---- Memory ---------------------------------------------------------------------------------- */

/* ENDs: two below the cells and one above them. */
#define QUEUE_ENDS 3u

bool fji_queue_init(fji_queue *q, uint32_t first, uint32_t limit, bool asymmetric)
{
    /* If the address space is small, the queue works, but it can grow less or not at all. */
    if (!fji_range_init(&q->range, sizeof(fj_cell), QUEUE_ENDS, first, limit)) return false;
    q->capacity = first;
    q->asymmetric = asymmetric;
    q->cells = (fj_cell *)(void *)q->range.start + 2;
    q->first = q->cells;
    q->cells[-2].item = FJI_END;
    q->cells[-1].item = FJI_END;
    q->cells[first].item = FJI_END;
    q->fast.top = q->cells;
    q->typed_hint = q->cells;
    q->fast.floor = asymmetric ? (uintptr_t)q->cells : QUEUE_FLOOR_MAX;
    q->openings = q->barriers = FJI_START_64;
    q->base = fji_base_make(FJI_START_EPOCH, 0, asymmetric ? FJI_BASE_CLOSED : FJI_BASE_OPEN);
    return true;
}

void fji_queue_fini(fji_queue *q)
{
    fji_range_fini(&q->range);
}

void fji_queue_reset(fji_queue *q)
{
    uint64_t b = fji_load_relaxed(&q->base); /* relaxed: no other thread exists */

    for (uint32_t i = 0; i < q->capacity; i++) {
        q->cells[i].item = FJI_FREE;
        q->cells[i].state = 0;
    }
    q->tombstones = 0;
    q->pops_since_steal = 0;
    q->last_index = 0;
    q->opening = 0;
    q->fast.top = q->cells;
    q->typed_hint = q->cells;
    q->fast.floor = q->asymmetric ? (uintptr_t)q->cells : QUEUE_FLOOR_MAX;
    q->base = fji_base_make(fji_base_epoch(b) + 1, 0,
                            q->asymmetric ? FJI_BASE_CLOSED : FJI_BASE_OPEN);
}

static bool queue_grow(fji_queue *q)
{
    uint32_t old = q->capacity;
    uint32_t now = fji_range_grow(&q->range, old);

    if (now == old) return false;
    /* relaxed: fji_queue_count() may read this far; it stops at END and at FREE. */
    fji_store_relaxed(&q->cells[now].item, FJI_END);
    q->capacity = now;
    /* relaxed: END and FREE mean the same to a thief: no task. */
    fji_store_relaxed(&q->cells[old].item, FJI_FREE);
    return true;
}

/* ---- The owner's side: where the boundary is ------------------------------------------------- */

static uintptr_t cell_item(const fj_cell *c)
{
    return fji_load_relaxed(&c->item); /* relaxed: the owner reads its own store */
}

static void cell_set(fj_cell *c, uintptr_t item)
{
    /* relaxed: where the order matters, a fence or a CAS follows */
    fji_store_relaxed(&c->item, item);
}

/* Whether there is no task above c. */
static bool cell_is_topmost(const fj_cell *c)
{
    uintptr_t above = cell_item(c + 1);
    return above == FJI_FREE || above == FJI_END;
}

fj_cell *fji_queue_boundary(fji_queue *q, fj_cell *near)
{
    fj_cell *p = near >= q->cells && near <= q->cells + q->capacity ? near : q->typed_hint;

    while (cell_item(p) != FJI_FREE && cell_item(p) != FJI_END) p++;
    while (cell_item(p - 1) == FJI_FREE) p--;
    return p;
}

/* ---- The owner's side: opening and closing --------------------------------------------------- */

/* Makes the queue OPEN, with floor MAX. */
static void queue_open_by_owner(fji_queue *q)
{
    /* relaxed: MAX is always safe, and only the owner reads floor. */
    fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX);
    /* [queue.base] acquire <- the CAS of a thief. */
    uint64_t b = fji_load_acquire(&q->base);
    while (fji_base_state(b) == FJI_BASE_CLOSED) {
        /* [queue.base] acq_rel: partner is the thief's CAS on the same word. */
        if (fji_cas_acq_rel_64(&q->base, &b, (b & ~(uint64_t)3) | FJI_BASE_OPEN)) {
            fji_add_relaxed(&q->openings, 1); /* relaxed: a counter */
            return;
        }
    }
}

/* After a take in OPEN: closes the queue if there were FJI_CLOSE_AFTER takes without a steal. From
 * then on a CLOSED queue is cheaper. b: base as it was at the take. */
static void queue_maybe_close(fji_queue *q, uint64_t b)
{
    uint32_t index = fji_base_index(b);

    if (!q->asymmetric || q->tombstones != 0) return;
    if (index != q->last_index) {
        q->last_index = index;
        q->pops_since_steal = 0;
    }
    if (++q->pops_since_steal < FJI_CLOSE_AFTER) return;
    q->pops_since_steal = 0;
    /* relaxed: the CAS publishes it; queue.h, Close, explains the order of the two. */
    fji_store_relaxed(&q->fast.floor, (uintptr_t)(q->cells + index));
    uint64_t closed = fji_base_make(fji_base_epoch(b) + 1, index, FJI_BASE_CLOSED);
    /* [queue.base] acq_rel: a thief that reads CLOSED sees this floor and stores MAX later. */
    if (!fji_cas_acq_rel_64(&q->base, &b, closed))
        fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX); /* relaxed: only the owner reads it */
}

/*
 * The slow half of a take: decides whether the owner has the task at position pos, whose cell is
 * already FREE or CLAIM. `may_close` is false if the cell will become a TOMBSTONE, because a queue
 * with TOMBSTONEs stays OPEN.
 */
static bool queue_decide(fji_queue *q, uint32_t pos, bool may_close)
{
    /* [queue.take] the cell above, base below; partners: the thief's fence in
     * queue_steal_open() and the heavy fence in queue_open(). */
    fji_fence_full();
    /* [queue.base] acquire <- the CAS of a thief. */
    uint64_t b = fji_load_acquire(&q->base);
    for (;;) {
        uint32_t index = fji_base_index(b);
        if (index > pos) return false;
        uint64_t next;
        if (fji_base_state(b) == FJI_BASE_CLOSED) {
            next = (b & ~(uint64_t)3) | FJI_BASE_OPEN;
        } else if (index == pos) {
            next = fji_base_make(fji_base_epoch(b) + 1, index, FJI_BASE_OPEN);
        } else {
            if (may_close) queue_maybe_close(q, b);
            return true;
        }
        /* [queue.base] acq_rel: partner is the thief's CAS on the same word. */
        if (!fji_cas_acq_rel_64(&q->base, &b, next)) continue;
        if (fji_base_state(b) == FJI_BASE_CLOSED) {
            fji_add_relaxed(&q->openings, 1); /* relaxed: a counter */
            b = next;
            continue;
        }
        if (may_close) queue_maybe_close(q, next);
        return true;
    }
}

/* ---- The owner's side: taking and giving back ------------------------------------------------ */

/* Lowers index to cell lo, if it is above lo, and makes a new epoch. lo and all cells above it are
 * FREE. */
static void queue_lower(fji_queue *q, fj_cell *lo)
{
    uint32_t pos = fji_queue_position(q, lo);
    /* [queue.base] acquire <- the CAS of a thief. */
    uint64_t b = fji_load_acquire(&q->base);

    for (;;) {
        uint32_t index = fji_base_index(b) < pos ? fji_base_index(b) : pos;
        unsigned state = fji_base_state(b);
        if (state == FJI_BASE_CLOSED) /* relaxed: the CAS publishes it */
            fji_store_relaxed(&q->fast.floor, (uintptr_t)(q->cells + index));
        /* [queue.base] acq_rel -> acquire in fji_queue_steal_for(): a thief that reads the new base
         * sees the cells FREE; the CAS of a thief that has read an old base fails on the epoch. */
        uint64_t next = fji_base_make(fji_base_epoch(b) + 1, index, state);
        if (fji_cas_acq_rel_64(&q->base, &b, next)) return;
        if (state == FJI_BASE_CLOSED) /* relaxed: only the owner reads it */
            fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX);
    }
}

fj_cell *fji_queue_reclaim(fji_queue *q, fj_cell *b, fj_cell *low)
{
    fj_cell *lo = b;

    if (q->tombstones == 0) return b;
    while (lo > low && cell_item(lo - 1) == FJI_TOMBSTONE) cell_set(--lo, FJI_FREE);
    if (lo == b) return b;
    q->tombstones -= (uint32_t)(b - lo);
    queue_lower(q, lo);
    return lo;
}

/* Makes c, whose task is taken or done, a TOMBSTONE. */
static void queue_bury(fji_queue *q, fj_cell *c)
{
    q->tombstones++;
    if (q->asymmetric) queue_open_by_owner(q);
    cell_set(c, FJI_TOMBSTONE);
}

bool fji_queue_take(fji_queue *q, fj_cell *c, uintptr_t item, bool popped, fj_cell **boundary)
{
    bool topmost = popped || cell_is_topmost(c);
    bool ours = false;

    if (!popped) {
        cell_set(c, topmost ? FJI_FREE : FJI_CLAIM);
        /* [queue.take] as in fji_pop_topmost(): the cell above, floor below; partner: the heavy
         * fence in queue_open(). */
        FJI_LIGHT_FENCE();
        /* relaxed: the fence orders it */
        ours = (uintptr_t)c >= fji_load_relaxed(&q->fast.floor);
    }
    if (!ours) ours = queue_decide(q, fji_queue_position(q, c), topmost);
    if (!ours) {
        cell_set(c, item);
        return false;
    }
    if (topmost)
        *boundary = c;
    else
        queue_bury(q, c);
    return true;
}

fj_cell *fji_queue_give_back(fji_queue *q, fj_cell *c)
{
    if (!cell_is_topmost(c)) {
        queue_bury(q, c);
        /* The search starts at the last boundary, not at c: many cells may lie between them. */
        return fji_queue_boundary(q, q->fast.top);
    }
    cell_set(c, FJI_FREE);
    queue_lower(q, c);
    return c;
}

void fji_cell_put_action(fj_cell *c, fj_action_fn *fn, void *arg)
{
    uintptr_t *words = fji_cell_words(c);
    /* relaxed: the release store of `item` publishes them. A thief with an old base may read them
     * at the same time; its CAS fails. */
    fji_store_relaxed(&words[0], (uintptr_t)fn);
    fji_store_relaxed(&words[1], (uintptr_t)arg); /* relaxed: as above */
}

/* ---- The owner's side: space ----------------------------------------------------------------- */

/* Whether compaction must not move cell c: below index, because its task was stolen and its thief
 * completes it in the cell; otherwise, because typed code has the address of the cell. */
static bool cell_is_pinned(const fji_queue *q, const fj_cell *c, uint32_t index)
{
    uintptr_t item = cell_item(c);

    if (item == FJI_TOMBSTONE) return false;
    if (fji_queue_position(q, c) < index) return !fji_item_is_detached(item);
    return fji_item_is_typed(item);
}

static void cell_move(fji_queue *q, fj_cell *from, fj_cell *to)
{
    uintptr_t item = cell_item(from);

    if (to == from) return;
    if (item != FJI_ACTION) {
        fj_task *t = fji_item_task(item);
        if (t->cell == from) t->cell = to;
        uint32_t keep = fji_item_is_detached(item) ? t->location & ~FJI_LOCATION_POSITION : 0;
        /* relaxed: a reader only compares the task with the cell at this position of its own
         * queue. */
        fji_store_relaxed(&t->location, keep | fji_queue_position(q, to));
    }
    /* relaxed: base is LOCKED */
    fji_store_relaxed(&fji_cell_words(to)[0], fji_cell_words(from)[0]);
    fji_store_relaxed(&fji_cell_words(to)[1], fji_cell_words(from)[1]); /* relaxed: as above */
    cell_set(to, item);
}

/*
 * Moves the tasks above the last pinned cell down over the dead cells there: TOMBSTONEs, and stolen
 * detached tasks. `end` is the boundary; returns the new one.
 */
static fj_cell *queue_compact(fji_queue *q, fj_cell *end)
{
    queue_open_by_owner(q);
    /* [queue.base] acquire <- the CAS of a thief. */
    uint64_t b = fji_load_acquire(&q->base);
    uint64_t locked;
    do {
        locked = fji_base_make(fji_base_epoch(b) + 1, fji_base_index(b), FJI_BASE_LOCKED);
        /* [queue.base] acq_rel: from here on the CAS of a thief fails. */
    } while (!fji_cas_acq_rel_64(&q->base, &b, locked));

    uint32_t index = fji_base_index(b);
    fj_cell *low = end;
    while (low > q->cells && !cell_is_pinned(q, low - 1, index)) low--;
    fj_cell *to = low;
    for (fj_cell *c = low; c < end; c++) {
        if (cell_item(c) == FJI_TOMBSTONE) {
            q->tombstones--;
            continue;
        }
        if (fji_queue_position(q, c) >= index) cell_move(q, c, to++);
    }
    for (fj_cell *c = to; c < end; c++)
        /* [queue.base] release -> acquire in fji_queue_maybe(), which then reads LOCKED. */
        fji_store_release(&c->item, FJI_FREE);
    if (index > fji_queue_position(q, low)) index = fji_queue_position(q, low);
    /* [queue.base] release -> acquire in fji_queue_steal_for(): the cells as they are now. The push
     * that follows reads the control word, for a worker that has met LOCKED. */
    fji_store_release(&q->base, fji_base_make(fji_base_epoch(locked) + 1, index, FJI_BASE_OPEN));
    return to;
}

/*
 * The same, to get space for a push. If a compaction of a long queue gains at most `enough` cells,
 * the next `enough` compactions are skipped. So the average cost of a push does not depend on the
 * length of the queue, even if compactions gain little.
 */
static fj_cell *queue_compact_for_space(fji_queue *q, fj_cell *end)
{
    if (q->wait != 0) {
        q->wait--;
        return end;
    }
    fj_cell *p = queue_compact(q, end);
    /* Compacting a short queue costs little. */
    uint32_t enough = q->capacity > FJI_QUEUE_KEPT ? q->capacity / 64 : 0;
    if (end - p <= (ptrdiff_t)enough) q->wait = enough;
    return p;
}

fj_cell *fji_queue_rewind(fji_queue *q, fj_cell *b)
{
    return fji_queue_position(q, b) >= q->capacity / 2 ? queue_compact(q, b) : b;
}

fj_cell *fji_queue_room(fji_queue *q, fj_cell *near)
{
    fj_cell *p = fji_queue_boundary(q, near);

    if (cell_item(p) == FJI_FREE) return p;
    bool typed = fji_queue_in_typed(q); /* typed code keeps positions: no task may be moved */
    /* relaxed: only the owner lowers index, so at least this many cells are stolen or TOMBSTONEs */
    uint32_t dead = fji_base_index(fji_load_relaxed(&q->base)) + q->tombstones;
    if (!typed && dead >= q->capacity / 2) p = queue_compact_for_space(q, p);
    if (cell_item(p) == FJI_FREE || queue_grow(q)) return p;
    if (!typed && dead != 0) p = queue_compact_for_space(q, p);
    return cell_item(p) == FJI_FREE ? p : NULL;
}

void fji_queue_shrink(fji_queue *q)
{
    if (q->capacity <= FJI_QUEUE_KEPT) return;
    if (q->fast.top != q->cells) q->fast.top = queue_compact(q, q->fast.top);
    if (q->fast.top != q->cells) return; /* the queue is not empty */
    /* relaxed: END and FREE mean the same to a thief: no task. */
    fji_store_relaxed(&q->cells[FJI_QUEUE_KEPT].item, FJI_END);
    if (fji_range_shrink(&q->range, q->capacity, FJI_QUEUE_KEPT)) {
        q->capacity = FJI_QUEUE_KEPT;
        q->typed_hint = q->cells;
    } else {
        fji_store_relaxed(&q->cells[FJI_QUEUE_KEPT].item, FJI_FREE); /* relaxed: as above */
    }
}

/* ---- The thieves' side ----------------------------------------------------------------------- */

/*
 * For a thief that has read a task in c, the cell at index, and CLOSED in base. Makes the owner
 * open the queue at its next take, and waits a short time for that. If the owner does not open it,
 * the heavy fence ensures that either the owner reads MAX at its take, or the thief reads what the
 * owner has stored into the cell. Returns true if the thief may try its CAS; *item is then the item
 * as read after the fence. Returns false if base has changed, or if c holds neither a task nor a
 * TOMBSTONE any more.
 */
static bool queue_open(fji_queue *q, uint64_t b, const fj_cell *c, uintptr_t *item)
{
    /* relaxed: the heavy fence below orders it against the owner's loads of floor */
    fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX);
    for (int i = 0; i < FJI_SHARE_SPINS; i++) {
        fji_pause();
        if (fji_load_relaxed(&q->base) != b) return false; /* relaxed: a hint to try again */
    }
    fji_add_relaxed(&q->barriers, 1); /* relaxed: a counter */
    /* [queue.take] floor above, the cell below; partner: the light fence in fji_pop_topmost(). */
    if (!fji_plat_barrier()) return false;
    /* [queue.publish] acquire <- release in fj_fork(): the task. */
    *item = fji_load_acquire(&c->item);
    return fji_item_is_task(*item) || *item == FJI_TOMBSTONE;
}

/*
 * As queue_open(), but returns false if another thief opens the queue at the moment. If many
 * workers search, all of them may find the same queue, and one heavy fence is enough.
 */
static bool queue_try_open(fji_queue *q, uint64_t b, const fj_cell *c, uintptr_t *item)
{
    /* relaxed: `opening` only saves fences */
    if (fji_load_relaxed(&q->opening) != 0 || fji_or_relaxed(&q->opening, 1u) != 0) return false;
    bool open = queue_open(q, b, c, item);
    fji_store_relaxed(&q->opening, 0u); /* relaxed: as above */
    return open;
}

/* The same for an OPEN queue: the thief's fence, and the cell read after it. */
static bool queue_steal_open(const fj_cell *c, uintptr_t *item)
{
    /* [queue.take] base above, the cell below; partner: the full fence in queue_decide(). */
    fji_fence_thief();
    /* [queue.publish] acquire <- release in fj_fork(): the task. */
    *item = fji_load_acquire(&c->item);
    return fji_item_is_task(*item) || *item == FJI_TOMBSTONE;
}

/* Whether a thief that is restricted by `root` may take the item; fn: the word beside the item. */
static bool item_is_wanted(uintptr_t item, uintptr_t fn, uintptr_t root)
{
    if (root == 0 || item == FJI_TOMBSTONE) return true;
    if (root == QUEUE_UNTYPED) return !fji_item_is_typed(item);
    return fji_item_is_future(item) && fn == root;
}

static bool links_hold(const fji_link *links, int n)
{
    for (int i = 0; i < n; i++)
        /* [queue.link] acquire <- the completion of the task with this word. If the task in the
         * cell was pushed after DONE was set, this load reads DONE, because the cell was read
         * before. */
        if (fji_load_acquire(links[i].word) != links[i].seen) return false;
    return true;
}

fji_steal_result fji_queue_steal_for(fji_queue *q, uint32_t from, const fji_link *links, int n,
                                     uintptr_t root, fji_taken *taken)
{
    for (;;) {
        /* [queue.base] acquire <- the owner's CAS: the cells that it has freed or moved. */
        uint64_t b = fji_load_acquire(&q->base);
        uint32_t index = fji_base_index(b);
        if (fji_base_state(b) == FJI_BASE_LOCKED) return FJI_STEAL_RETRY;
        if (index < from) return FJI_STEAL_EMPTY;
        fj_cell *c = q->first + index;
        /* [queue.publish] acquire: also keeps the second load of base after it. */
        uintptr_t item = fji_load_acquire(&c->item);
        if (item == FJI_FREE || item == FJI_END)
            /* [queue.base] acquire <- the owner's CAS: EMPTY only if index has not changed. */
            return fji_load_acquire(&q->base) == b ? FJI_STEAL_EMPTY : FJI_STEAL_RETRY;
        bool closed = fji_base_state(b) == FJI_BASE_CLOSED;
        if (!(closed ? queue_try_open(q, b, c, &item) : queue_steal_open(c, &item)))
            return FJI_STEAL_RETRY;
        if (!links_hold(links, n)) return FJI_STEAL_EMPTY;
        if (n > 0 && item == FJI_ACTION) return FJI_STEAL_EMPTY; /* no thread waits for it */
        if (item == FJI_ACTION || fji_item_is_future(item)) {
            const uintptr_t *words = fji_cell_words(c);
            taken->fn = fji_load_relaxed(&words[0]);  /* relaxed: [queue.publish] carries them */
            taken->arg = fji_load_relaxed(&words[1]); /* relaxed: if they are torn, the CAS fails */
        }
        if (!item_is_wanted(item, taken->fn, root)) return FJI_STEAL_EMPTY;
        uint64_t next = fji_base_make(fji_base_epoch(b), index + 1, FJI_BASE_OPEN);
        /* [queue.base] acq_rel: partner is the owner's CAS on the same word. */
        if (!fji_cas_acq_rel_64(&q->base, &b, next)) return FJI_STEAL_RETRY;
        if (closed) fji_add_relaxed(&q->openings, 1); /* relaxed: a counter */
        if (item == FJI_TOMBSTONE) continue;
        taken->item = item;
        taken->cell = c;
        taken->token = NULL;
        return FJI_STEAL_SUCCESS;
    }
}

fji_steal_result fji_queue_steal(fji_queue *q, fji_taken *taken)
{
    return fji_queue_steal_for(q, 0, NULL, 0, 0, taken);
}

fji_steal_result fji_queue_steal_untyped(fji_queue *q, fji_taken *taken)
{
    return fji_queue_steal_for(q, 0, NULL, 0, QUEUE_UNTYPED, taken);
}

bool fji_queue_maybe(const fji_queue *q)
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

uint32_t fji_queue_count(const fji_queue *q)
{
    /* relaxed: an estimate. */
    uint32_t i = fji_base_index(fji_load_relaxed(&q->base));
    uint32_t n = 0;

    for (;; i++) {
        uintptr_t item = fji_load_relaxed(&q->first[i].item); /* relaxed: an estimate */
        if (item == FJI_FREE || item == FJI_END) return n;
        if (fji_item_is_task(item)) n++;
    }
}

bool fji_queue_valid(const fji_queue *q)
{
    uint64_t b = fji_load_relaxed(&q->base); /* relaxed: the queue is at rest */
    uint32_t index = fji_base_index(b), tombstones = 0, i = 0;

    if (fji_base_state(b) == FJI_BASE_LOCKED || index > q->capacity) return false;
    for (; i < q->capacity && cell_item(&q->cells[i]) != FJI_FREE; i++)
        if (cell_item(&q->cells[i]) == FJI_TOMBSTONE) tombstones++;
    if (index > i || tombstones != q->tombstones) return false;
    if (tombstones != 0 && fji_base_state(b) != FJI_BASE_OPEN) return false;
    for (; i < q->capacity; i++)
        if (cell_item(&q->cells[i]) != FJI_FREE || q->cells[i].state != 0) return false;
    return cell_item(&q->cells[q->capacity]) == FJI_END && cell_item(&q->cells[-1]) == FJI_END;
}
