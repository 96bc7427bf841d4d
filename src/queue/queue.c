/* SPDX-License-Identifier: MIT */
/*
 * queue.c - a worker's queue: memory, the owner's side, the thieves' side
 *
 * queue.h explains the protocol.
 */

#include "queue/queue.h"

#define QUEUE_FLOOR_MAX UINTPTR_MAX
/* Passed as `root` to fji_queue_steal_for(): take any task that is not typed. */
#define QUEUE_UNTYPED ((uintptr_t)1)

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Number of END cells: two below cells[0] and one above the last cell. */
#define QUEUE_ENDS 3u

bool fji_queue_init(fji_queue *q, uint32_t first, uint32_t limit, bool asymmetric)
{
    /* If the system refuses addresses for `limit` cells, the range has a lower limit: the queue
     * works, but it can grow less or not at all. */
    if (!fji_range_init(&q->range, sizeof(fj_cell), QUEUE_ENDS, first, limit)) return false;
    q->capacity = first;
    q->asymmetric = asymmetric;
    q->cells = (fj_cell *)(void *)q->range.start + 2;
    q->first = q->cells;
    q->shown = q->cells;
    q->cells[-2].item = FJI_END;
    q->cells[-1].item = FJI_END;
    q->cells[first].item = FJI_END;
    q->fast.top = q->cells;
    q->typed_hint = q->cells;
    q->fast.floor = asymmetric ? (uintptr_t)q->cells : QUEUE_FLOOR_MAX;
    q->openings = q->barriers = FJI_START_64;
    q->base = fji_base_make(FJI_START_EPOCH, 0, asymmetric ? FJI_BASE_CLOSED : FJI_BASE_OPEN);
    q->limit = 0;
    return true;
}

void fji_queue_fini(fji_queue *q)
{
    fji_range_fini(&q->range);
}

void fji_queue_reset(fji_queue *q)
{
    uint64_t b = fji_load_relaxed(&q->base); /* relaxed: the process has no other thread */

    for (uint32_t i = 0; i < q->capacity; i++) {
        q->cells[i].item = FJI_FREE;
        q->cells[i].state = 0;
    }
    q->tombstones = 0;
    q->pops_since_steal = 0;
    q->last_index = 0;
    q->opening = 0;
    q->fast.top = q->cells;
    q->shown = q->cells;
    q->typed_hint = q->cells;
    q->fast.floor = q->asymmetric ? (uintptr_t)q->cells : QUEUE_FLOOR_MAX;
    q->base = fji_base_make(fji_base_epoch(b) + 1, 0,
                            q->asymmetric ? FJI_BASE_CLOSED : FJI_BASE_OPEN);
    q->limit = 0;
}

static bool queue_grow(fji_queue *q)
{
    uint32_t old = q->capacity;
    uint32_t now = fji_range_grow(&q->range, old);

    if (now == old) return false;
    /* relaxed: another thread may read this cell in fji_queue_count(), which stops at END and at
     * FREE. So it does not matter which of the two it reads. */
    fji_store_relaxed(&q->cells[now].item, FJI_END);
    fji_store_relaxed(&q->capacity, now); /* relaxed: other threads read it as a statistic */
    /* relaxed: FREE replaces END, and both tell a thief that the cell has no task. */
    fji_store_relaxed(&q->cells[old].item, FJI_FREE);
    return true;
}

/* ---- The owner's side: where the boundary is ------------------------------------------------- */

static uintptr_t cell_item(const fj_cell *c)
{
    /* relaxed: only the owner writes items, and the owner calls this function. Another thread calls
     * it only in fji_queue_valid(), while no thread changes the queue. */
    return fji_load_relaxed(&c->item);
}

static void cell_set(fj_cell *c, uintptr_t item)
{
    /* relaxed: where the order of this store matters, the caller then executes a fence, or a CAS or
     * release store on base */
    fji_store_relaxed(&c->item, item);
}

/* Returns whether c is the topmost cell in use: the cell above it is FREE or END. */
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

/* Called by the owner. If the queue is CLOSED, makes it OPEN. Sets floor to MAX in any case. */
static void queue_open_by_owner(fji_queue *q)
{
    /* relaxed: only the owner reads floor, and MAX is correct in every state of the queue. */
    fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX);
    /* [queue.base] acquire <- the CAS in fji_queue_steal_for(): thieves have read the items and the
     * words of all cells below the index that is seen here. */
    uint64_t b = fji_load_acquire(&q->base);
    while (fji_base_state(b) == FJI_BASE_CLOSED) {
        /* [queue.base] acq_rel, as every CAS on base. A thief may change base at the same time,
         * also by CAS. If the owner and the thief start from the same value, only one of the two
         * succeeds. */
        if (fji_cas_acq_rel_64(&q->base, &b, (b & ~(uint64_t)3) | FJI_BASE_OPEN)) {
            fji_add_relaxed(&q->openings, 1); /* relaxed: a statistic */
            return;
        }
    }
}

/* Called by the owner before a CAS on base whose new state is CLOSED: from position `limit` on, the
 * owner takes without reading base, and thieves have to open the queue. */
static void queue_set_limit(fji_queue *q, uint32_t limit)
{
    /* relaxed: the CAS of the caller publishes both. queue.h explains under Close why the CAS comes
     * later. */
    fji_store_relaxed(&q->fast.floor, (uintptr_t)(q->cells + limit));
    fji_store_relaxed(&q->limit, limit);
}

/* Called by the owner after it has taken the topmost cell, at position pos, of an OPEN queue. Closes
 * the queue, because a take from a CLOSED queue needs no full fence, in two cases. If at least
 * FJI_SPLIT_MIN tasks are left, thieves keep the lower half of them. If there are fewer, and index
 * has not changed during the last FJI_CLOSE_AFTER such takes, thieves keep none. Does nothing if the
 * queue may not be CLOSED (`asymmetric` is false) or has TOMBSTONEs. b is the value of base that the
 * take has read, or has stored by its CAS. */
static void queue_maybe_close(fji_queue *q, uint64_t b, uint32_t pos)
{
    uint32_t index = fji_base_index(b), limit = index;

    if (!q->asymmetric || q->tombstones != 0) return;
    if (index != q->last_index) {
        q->last_index = index;
        q->pops_since_steal = 0;
    }
    if (pos - index >= FJI_SPLIT_MIN)
        limit += (pos - index) / 2;
    else if (++q->pops_since_steal < FJI_CLOSE_AFTER)
        return;
    q->pops_since_steal = 0;
    queue_set_limit(q, limit);
    uint64_t closed = fji_base_make(fji_base_epoch(b) + 1, index, FJI_BASE_CLOSED);
    /* [queue.base] release -> acquire in fji_queue_steal_for(): the stores to floor and limit. So if
     * a thief reads CLOSED and then stores MAX into floor, MAX comes after the owner's store and is
     * not overwritten by it. */
    if (!fji_cas_acq_rel_64(&q->base, &b, closed))
        fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX); /* relaxed: only the owner loads it */
}

/*
 * The slow half of a take, after the owner has stored FREE or CLAIM into the cell at position pos.
 * Returns true if the task of this cell is the owner's, and false if a thief has taken it.
 * `may_close`: whether the queue may be closed after the take. It is false if the cell will become
 * a TOMBSTONE, because a queue with TOMBSTONEs stays OPEN.
 */
static bool queue_decide(fji_queue *q, uint32_t pos, bool may_close)
{
    /* [queue.take] the cell above, base below; partners: the thief's fence in queue_steal_open()
     * and the heavy fence in queue_open(). Either the owner sees that index has reached this cell,
     * or a thief that reaches the cell sees FREE or CLAIM in it. */
    fji_fence_full();
    /* [queue.base] acquire <- the CAS in fji_queue_steal_for(): thieves have read the items and the
     * words of all cells below the index that is seen here. */
    uint64_t b = fji_load_acquire(&q->base);
    for (;;) {
        uint32_t index = fji_base_index(b);
        if (index > pos) return false;
        uint64_t next;
        if (fji_base_state(b) == FJI_BASE_CLOSED) {
            /* relaxed: only the owner reads floor. While the queue is OPEN, floor is MAX. */
            fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX);
            next = (b & ~(uint64_t)3) | FJI_BASE_OPEN;
        } else if (index == pos) {
            next = fji_base_make(fji_base_epoch(b) + 1, index, FJI_BASE_OPEN);
        } else {
            if (may_close) queue_maybe_close(q, b, pos);
            return true;
        }
        /* [queue.base] acq_rel, as every CAS on base. A thief may change base at the same time,
         * also by CAS. If the owner and the thief start from the same value, only one of the two
         * succeeds. */
        if (!fji_cas_acq_rel_64(&q->base, &b, next)) continue;
        if (fji_base_state(b) == FJI_BASE_CLOSED) {
            fji_add_relaxed(&q->openings, 1); /* relaxed: a statistic */
            b = next;
            continue;
        }
        if (may_close) queue_maybe_close(q, next, pos);
        return true;
    }
}

/* ---- The owner's side: taking and giving back ------------------------------------------------ */

/* Called by the owner after it has freed lo and all cells above lo. Lowers index to the position of
 * lo, if index is above it, and increments the epoch in any case. If the queue is CLOSED, floor and
 * limit follow index. */
static void queue_lower(fji_queue *q, fj_cell *lo)
{
    uint32_t pos = fji_queue_position(q, lo);
    /* [queue.base] acquire <- the CAS in fji_queue_steal_for(): thieves have read the items and the
     * words of all cells below the index that is seen here. */
    uint64_t b = fji_load_acquire(&q->base);

    for (;;) {
        uint32_t index = fji_base_index(b) < pos ? fji_base_index(b) : pos;
        unsigned state = fji_base_state(b);
        if (state == FJI_BASE_CLOSED) queue_set_limit(q, index);
        /* [queue.base] acq_rel -> acquire in fji_queue_steal_for(): a thief that reads the new base
         * sees that the cells are FREE. If a thief has read an older base, its CAS fails, because
         * the epoch has changed. */
        uint64_t next = fji_base_make(fji_base_epoch(b) + 1, index, state);
        if (fji_cas_acq_rel_64(&q->base, &b, next)) return;
        if (state == FJI_BASE_CLOSED) /* relaxed: only the owner reads floor */
            fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX);
    }
}

fj_cell *fji_queue_reclaim(fji_queue *q, fj_cell *b, fj_cell *low)
{
    fj_cell *lo = b;

    if (q->tombstones == 0) return b;
    if (low < q->shown) low = q->shown; /* the cells below are hidden */
    while (lo > low && cell_item(lo - 1) == FJI_TOMBSTONE) cell_set(--lo, FJI_FREE);
    if (lo == b) return b;
    q->tombstones -= (uint32_t)(b - lo);
    queue_lower(q, lo);
    return lo;
}

/* Stores TOMBSTONE into cell c. The owner has taken its task, or the task was stolen, and is done
 * or is detached. Opens the queue first, because a queue with TOMBSTONEs is OPEN. */
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
        /* [queue.take] the cell above, floor below; partner: the heavy fence in queue_open().
         * Either the owner sees that floor is MAX, or the thief sees FREE or CLAIM in the cell. */
        FJI_LIGHT_FENCE();
        /* relaxed: the light fence orders this load after the store to the cell */
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
        /* The search for the boundary starts at fast.top, the boundary that was stored last, and
         * not at c, because many cells may lie between c and the boundary. Under typed code
         * fast.top is an END below cell 0, and the search starts at typed_hint. */
        return fji_queue_boundary(q, q->fast.top);
    }
    cell_set(c, FJI_FREE);
    queue_lower(q, c);
    return c;
}

void fji_cell_put_action(fj_cell *c, fj_action_fn *fn, void *arg)
{
    uintptr_t *words = fji_cell_words(c);
    /* relaxed: the release store of `item` by the caller publishes the two words. A thief that has
     * read an older base may read the words at the same time, but its CAS fails. */
    fji_store_relaxed(&words[0], (uintptr_t)fn);
    fji_store_relaxed(&words[1], (uintptr_t)arg); /* relaxed: as above */
}

/* ---- The owner's side: space ----------------------------------------------------------------- */

/* Returns whether compaction must leave the task of cell c where it is. If c is below index, the
 * task was stolen: if it is not detached, it stays, because its thief completes it in this cell. If
 * c is at or above index, the task is queued: if it is typed, it stays, because typed code keeps
 * the address of the cell. Returns false for a TOMBSTONE, which is no task. */
static bool cell_is_pinned(const fji_queue *q, const fj_cell *c, uint32_t index)
{
    uintptr_t item = cell_item(c);

    if (item == FJI_TOMBSTONE) return false;
    if (fji_queue_position(q, c) < index) return !fji_item_is_detached(item);
    return fji_item_is_typed(item);
}

/* Moves the queued task of cell `from` to the cell `to`. Called by the owner while base is LOCKED,
 * so that no thief takes a task. */
static void cell_move(fji_queue *q, fj_cell *from, fj_cell *to)
{
    uintptr_t item = cell_item(from);

    if (to == from) return;
    if (item != FJI_ACTION) {
        fj_task *t = fji_item_task(item);
        if (t->cell == from) t->cell = to;
        uint32_t keep = fji_item_is_detached(item) ? t->location & ~FJI_LOCATION_POSITION : 0;
        /* relaxed: a thread that reads the position looks at this position of its own queue. If
         * the thread is the owner of q, it has stored the position itself, and finds t. Any other
         * worker may read the old or the new position; its own queue does not hold t at either. */
        fji_store_relaxed(&t->location, keep | fji_queue_position(q, to));
    }
    /* relaxed: base is LOCKED, so no thief takes a task; the release store to base in
     * queue_compact() publishes the words. */
    fji_store_relaxed(&fji_cell_words(to)[0], fji_cell_words(from)[0]);
    fji_store_relaxed(&fji_cell_words(to)[1], fji_cell_words(from)[1]); /* relaxed: as above */
    cell_set(to, item);
}

/*
 * Frees the dead cells, which are TOMBSTONEs and cells of stolen detached tasks, and moves the
 * queued tasks down into the gaps. Does this only above the topmost cell whose task must stay in
 * its cell (cell_is_pinned()), up to the boundary `end`. Base is LOCKED meanwhile, and OPEN
 * afterwards. Returns the new boundary. Called by the owner, not under typed code.
 */
static fj_cell *queue_compact(fji_queue *q, fj_cell *end)
{
    queue_open_by_owner(q);
    /* [queue.base] acquire <- the CAS in fji_queue_steal_for(): thieves have read the items and the
     * words of all cells below the index that is seen here. */
    uint64_t b = fji_load_acquire(&q->base);
    uint64_t locked;
    do {
        locked = fji_base_make(fji_base_epoch(b) + 1, fji_base_index(b), FJI_BASE_LOCKED);
        /* [queue.base] acq_rel: if a thief has read an older base, its CAS fails from here on. A
         * thief that reads LOCKED takes nothing. */
    } while (!fji_cas_acq_rel_64(&q->base, &b, locked));

    uint32_t index = fji_base_index(b);
    fj_cell *low = end;
    while (low > q->shown && !cell_is_pinned(q, low - 1, index)) low--;
    fj_cell *to = low;
    for (fj_cell *c = low; c < end; c++) {
        if (cell_item(c) == FJI_TOMBSTONE) {
            q->tombstones--;
            continue;
        }
        if (fji_queue_position(q, c) >= index) cell_move(q, c, to++);
    }
    for (fj_cell *c = to; c < end; c++)
        /* [queue.base] release -> acquire of the item in fji_queue_maybe(): a thread that reads
         * this FREE also sees that base is LOCKED, or a later base. */
        fji_store_release(&c->item, FJI_FREE);
    if (index > fji_queue_position(q, low)) index = fji_queue_position(q, low);
    /* [queue.base] release -> acquire in fji_queue_steal_for(): the cells as they are now. A thief
     * that has read LOCKED gets RETRY and searches again. */
    fji_store_release(&q->base, fji_base_make(fji_base_epoch(locked) + 1, index, FJI_BASE_OPEN));
    return to;
}

/*
 * As queue_compact(), for a push that finds no free cell. If the queue has more than FJI_QUEUE_KEPT
 * cells and compaction frees at most capacity / 64 of them, the next capacity / 64 calls return
 * `end` without compacting. So the average cost of a push does not depend on the length of the
 * queue, even if each compaction frees few cells.
 */
static fj_cell *queue_compact_for_space(fji_queue *q, fj_cell *end)
{
    if (q->wait != 0) {
        q->wait--;
        return end;
    }
    fj_cell *p = queue_compact(q, end);
    /* If this compaction has freed at most `enough` cells, the next `enough` calls do not compact.
     * For a short queue `enough` is 0: compacting it costs little, so every call compacts. */
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
    /* Typed code keeps the addresses of cells, so no task may be moved while it runs. */
    bool typed = fji_queue_in_typed(q);
    /* relaxed: an estimate of the cells that compaction may free: all cells below index, and the
     * TOMBSTONEs. Thieves may raise index at any time. */
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
    /* relaxed: END and FREE both tell a thief that the cell has no task. */
    fji_store_relaxed(&q->cells[FJI_QUEUE_KEPT].item, FJI_END);
    if (fji_range_shrink(&q->range, q->capacity, FJI_QUEUE_KEPT)) {
        fji_store_relaxed(&q->capacity, FJI_QUEUE_KEPT); /* relaxed: as in queue_grow() */
        q->typed_hint = q->cells;
    } else {
        /* relaxed: END and FREE both tell a thief that the cell has no task. */
        fji_store_relaxed(&q->cells[FJI_QUEUE_KEPT].item, FJI_FREE);
    }
}

/* ---- The thieves' side ----------------------------------------------------------------------- */

/*
 * Called by a thief that has read b from base, whose state is CLOSED, and an item other than FREE
 * and END in c, the cell at index. Stores MAX into floor, so that the owner opens the queue at its
 * next take, and waits a short time for that. If the owner does not open the queue, the thief
 * executes the heavy fence. Then either the owner reads MAX at its take, or the thief reads what
 * the owner has stored into c. Returns true if the thief may try its CAS; *item is then the item of
 * c, read after the fence. Returns false if base has changed, if the system refuses the heavy
 * fence, or if c holds neither a task nor a TOMBSTONE.
 */
static bool queue_open(fji_queue *q, uint64_t b, const fj_cell *c, uintptr_t *item)
{
    /* relaxed: the heavy fence below orders this store against the owner's loads of floor */
    fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX);
    for (int i = 0; i < FJI_SHARE_SPINS; i++) {
        fji_pause();
        /* relaxed: only compared with b; the thief's next attempt to steal loads base again */
        if (fji_load_relaxed(&q->base) != b) return false;
    }
    fji_add_relaxed(&q->barriers, 1); /* relaxed: a statistic */
    /* [queue.take] floor above, the cell below; partners: the light fences in fji_pop_topmost() and
     * fji_queue_take(). Either the owner sees that floor is MAX, or this thief sees FREE or CLAIM
     * in the cell. */
    if (!fji_plat_barrier()) return false;
    /* [queue.publish] acquire <- release in fj_fork(): the task. */
    *item = fji_load_acquire(&c->item);
    return fji_item_is_task(*item) || *item == FJI_TOMBSTONE;
}

/*
 * As queue_open(), but returns false if another thief is in queue_open() for this queue at the
 * moment. If many workers search, all of them may find the same queue, and one heavy fence is
 * enough for all of them.
 */
static bool queue_try_open(fji_queue *q, uint64_t b, const fj_cell *c, uintptr_t *item)
{
    /* relaxed: `opening` publishes no data. An outdated value only costs an unnecessary heavy fence
     * or a failed attempt to steal. */
    if (fji_load_relaxed(&q->opening) != 0 || fji_or_relaxed(&q->opening, 1u) != 0) return false;
    bool open = queue_open(q, b, c, item);
    fji_store_relaxed(&q->opening, 0u); /* relaxed: `opening` publishes no data */
    return open;
}

/* Called by a thief that has read an OPEN base and an item other than FREE and END in c, the cell
 * at index. Executes the thief's fence, and then reads the item of c again, into *item. Returns
 * true if the thief may try its CAS, and false if c holds neither a task nor a TOMBSTONE. */
static bool queue_steal_open(const fj_cell *c, uintptr_t *item)
{
    /* [queue.take] base above, the cell below; partner: the full fence in queue_decide(). Either
     * the owner sees that index has reached this cell, or this thief sees FREE or CLAIM in the
     * cell. */
    fji_fence_thief();
    /* [queue.publish] acquire <- release in fj_fork(): the task. */
    *item = fji_load_acquire(&c->item);
    return fji_item_is_task(*item) || *item == FJI_TOMBSTONE;
}

/* Returns whether a thief that passed `root` to fji_queue_steal_for() may take the item of a cell.
 * If `root` is 0, it may take any item. If `root` is QUEUE_UNTYPED, it may take any item that is
 * not a typed task. Otherwise it may take only completers with this root. A thief may always take a
 * TOMBSTONE. fn: if the item is a future, its root, which is the first of the two words stored
 * beside the item in the cell. For other items fn is not used. */
static bool item_is_wanted(uintptr_t item, uintptr_t fn, uintptr_t root)
{
    if (root == 0 || item == FJI_TOMBSTONE) return true;
    if (root == QUEUE_UNTYPED) return !fji_item_is_typed(item);
    return fji_item_is_future(item) && fn == root;
}

/* Returns whether the n words of `links` still have the values that the thief has seen. */
static bool links_hold(const fji_link *links, int n)
{
    for (int i = 0; i < n; i++)
        /* [queue.link] acquire <- acq_rel in fji_cell_complete(): DONE. The thief has already read
         * the task in the cell by an acquire load. So if the victim pushed that task after it had
         * set DONE in this word, this load reads DONE. */
        if (fji_load_acquire(links[i].word) != links[i].seen) return false;
    return true;
}

fji_steal_result fji_queue_steal_for(fji_queue *q, uint32_t from, const fji_link *links, int n,
                                     uintptr_t root, fji_taken *taken)
{
    for (;;) {
        /* [queue.base] acquire <- the owner's CAS or release store to base: the cells that the
         * owner has freed or moved. */
        uint64_t b = fji_load_acquire(&q->base);
        uint32_t index = fji_base_index(b);
        if (fji_base_state(b) == FJI_BASE_LOCKED) return FJI_STEAL_RETRY;
        if (index < from) return FJI_STEAL_EMPTY;
        fj_cell *c = q->first + index;
        /* [queue.publish] acquire <- release in fj_fork(): the task. The acquire also orders the
         * second load of base below after this load. */
        uintptr_t item = fji_load_acquire(&c->item);
        if (item == FJI_FREE || item == FJI_END)
            /* [queue.base] acquire <- the owner's CAS: whether base has changed. If it has, the
             * owner may have lowered index, and the cell at the new index may have a task. */
            return fji_load_acquire(&q->base) == b ? FJI_STEAL_EMPTY : FJI_STEAL_RETRY;
        unsigned state = fji_base_state(b);
        /* relaxed: limit changes only while base is OPEN, or before a CAS of the owner that makes
         * the CAS below fail. */
        bool closed = state == FJI_BASE_CLOSED && index >= fji_load_relaxed(&q->limit);
        if (!(closed ? queue_try_open(q, b, c, &item) : queue_steal_open(c, &item)))
            return FJI_STEAL_RETRY;
        if (!links_hold(links, n)) return FJI_STEAL_EMPTY;
        if (n > 0 && item == FJI_ACTION) return FJI_STEAL_EMPTY; /* no task waits for an action */
        if (item == FJI_ACTION || fji_item_is_future(item)) {
            const uintptr_t *words = fji_cell_words(c);
            /* relaxed: the acquire load of the item makes the words visible. If the owner uses the
             * cell again meanwhile, the words may belong to another task, but then the CAS
             * fails. */
            taken->fn = fji_load_relaxed(&words[0]);
            taken->arg = fji_load_relaxed(&words[1]); /* relaxed: as above */
        }
        if (!item_is_wanted(item, taken->fn, root)) return FJI_STEAL_EMPTY;
        uint64_t next = fji_base_make(fji_base_epoch(b), index + 1, closed ? FJI_BASE_OPEN : state);
        /* [queue.base] acq_rel -> acquire in queue_decide() and queue_lower(): this thief has
         * finished its reads of the item and the words of the cell. If the owner changes base by
         * CAS at the same time, only one of the two succeeds. */
        if (!fji_cas_acq_rel_64(&q->base, &b, next)) return FJI_STEAL_RETRY;
        if (closed) fji_add_relaxed(&q->openings, 1); /* relaxed: a statistic */
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
    /* [queue.base] acquire <- the owner's CAS or release store to base: the cells that the owner
     * has freed or moved. */
    uint64_t b = fji_load_acquire(&q->base);
    if (fji_base_state(b) == FJI_BASE_LOCKED) return true;
    /* [queue.publish] acquire <- release in fj_fork(): the task. The acquire also orders the second
     * load of base below after this load. */
    uintptr_t item = fji_load_acquire(&q->first[fji_base_index(b)].item);
    if (item != FJI_FREE && item != FJI_END) return true;
    /* [queue.base] acquire <- the owner's CAS: whether base has changed. If it has, the owner may
     * have lowered index, and the cell at the new index may have a task. */
    return fji_load_acquire(&q->base) != b;
}

size_t fji_queue_bytes(const fji_queue *q)
{
    return fji_range_bytes(&q->range, fji_load_relaxed(&q->capacity)); /* relaxed: a statistic */
}

uint32_t fji_queue_count(const fji_queue *q)
{
    /* relaxed: the result is an estimate */
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
    uint64_t b = fji_load_relaxed(&q->base); /* relaxed: no other thread changes the queue */
    uint32_t index = fji_base_index(b), tombstones = 0, i = 0;

    if (fji_base_state(b) == FJI_BASE_LOCKED || index > q->capacity) return false;
    for (; i < q->capacity && cell_item(&q->cells[i]) != FJI_FREE; i++)
        if (cell_item(&q->cells[i]) == FJI_TOMBSTONE) tombstones++;
    if (index > i || tombstones != q->tombstones) return false;
    if (tombstones != 0 && fji_base_state(b) != FJI_BASE_OPEN) return false;
    if (fji_base_state(b) == FJI_BASE_CLOSED && index > q->limit) return false;
    for (; i < q->capacity; i++)
        if (cell_item(&q->cells[i]) != FJI_FREE || q->cells[i].state != 0) return false;
    return cell_item(&q->cells[q->capacity]) == FJI_END && cell_item(&q->cells[-1]) == FJI_END;
}
