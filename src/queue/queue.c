/* SPDX-License-Identifier: MIT */
/*
 * queue.c - a worker's queue: memory, the owner's side, the thieves' side
 *
 * queue.h explains the protocol.
 */

#include "queue/queue.h"

#define QUEUE_FLOOR_MAX UINTPTR_MAX
#define QUEUE_UNTYPED ((uintptr_t)1) /* in place of a root: anything but a typed task */

/* ---- Memory ------------------------------------------------------------------------------------------- */

/* Bytes of a queue of n cells, the ENDs below and above them included. */
static size_t queue_bytes(uint32_t n)
{
    size_t page = fji_plat_page();
    size_t bytes = ((size_t)n + 3) * sizeof(fj_cell);
    return (bytes + page - 1) / page * page;
}

bool fji_queue_init(fji_queue *q, uint32_t first, uint32_t limit, bool asymmetric)
{
    void *range = NULL;

    /* A small address space gets a small queue: it can run, only not grow. */
    for (; limit >= first; limit /= 2) {
        range = fji_plat_reserve(queue_bytes(limit));
        if (range != NULL || limit == first) break;
    }
    if (range == NULL) return false;
    if (!fji_plat_commit(range, queue_bytes(first))) {
        fji_plat_release(range, queue_bytes(limit));
        return false;
    }
    q->range = range;
    q->range_bytes = queue_bytes(limit);
    q->limit = limit;
    q->capacity = first;
    q->asymmetric = asymmetric;
    q->cells = (fj_cell *)range + 2;
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
    if (q->range != NULL) fji_plat_release(q->range, q->range_bytes);
    q->range = NULL;
}

void fji_queue_reset(fji_queue *q)
{
    uint64_t b = fji_load_relaxed(&q->base); /* relaxed: nobody else is there */

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
    uint32_t now = old > q->limit / 2 ? q->limit : old * 2;

    if (now == old || !fji_plat_commit(q->range, queue_bytes(now))) return false;
    /* relaxed: a look along the queue may come this far; END and FREE mean the same to it. */
    fji_store_relaxed(&q->cells[now].item, FJI_END);
    q->capacity = now;
    /* relaxed: END and FREE mean the same to a thief, nothing is there. */
    fji_store_relaxed(&q->cells[old].item, FJI_FREE);
    return true;
}

/* ---- The owner's side: where the boundary is ---------------------------------------------------------- */

/* relaxed in all that follows on `what`: only the owner writes it, so it reads its own. */
static uintptr_t cell_item(const fj_cell *c)
{
    return fji_load_relaxed(&c->item); /* relaxed: see above */
}

static void cell_set(fj_cell *c, uintptr_t item)
{
    fji_store_relaxed(&c->item, item); /* relaxed: a fence or a CAS follows where it matters */
}

/* Nothing above c: the array may also end there. */
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

/* ---- The owner's side: opening and closing ------------------------------------------------------------ */

/* Leaves the queue OPEN with floor MAX. */
static void queue_open_by_owner(fji_queue *q)
{
    /* relaxed: MAX is always safe, and only we read floor as data. */
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

/* After a take in OPEN: closes once that has become cheaper than staying open. */
static void queue_close_if_quiet(fji_queue *q, uint64_t b)
{
    uint32_t index = fji_base_index(b);

    if (!q->asymmetric || q->tombstones != 0) return;
    if (index != q->last_index) {
        q->last_index = index;
        q->pops_since_steal = 0;
    }
    if (++q->pops_since_steal < FJI_CLOSE_AFTER) return;
    q->pops_since_steal = 0;
    /* relaxed: the CAS publishes it; see Close in queue.h for the order of the two. */
    fji_store_relaxed(&q->fast.floor, (uintptr_t)(q->cells + index));
    uint64_t closed = fji_base_make(fji_base_epoch(b) + 1, index, FJI_BASE_CLOSED);
    /* [queue.base] acq_rel: a thief that reads CLOSED sees floor, and stores MAX after it. */
    if (!fji_cas_acq_rel_64(&q->base, &b, closed))
        fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX); /* relaxed: only we read it */
}

/*
 * The slow half of a take: whose is position pos, which has just been set FREE or CLAIM?
 * `may_close` unless it is to be a TOMB.
 */
static bool queue_decide(fji_queue *q, uint32_t pos, bool may_close)
{
    /* [queue.take] the cell above, base below. Partner: the full fence in
     * queue_steal_open() and the heavy one in queue_open(). */
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
            if (may_close) queue_close_if_quiet(q, b);
            return true;
        }
        /* [queue.base] acq_rel: partner is the thief's CAS on the same word. */
        if (!fji_cas_acq_rel_64(&q->base, &b, next)) continue;
        if (fji_base_state(b) == FJI_BASE_CLOSED) {
            fji_add_relaxed(&q->openings, 1); /* relaxed: a counter */
            b = next;
            continue;
        }
        if (may_close) queue_close_if_quiet(q, next);
        return true;
    }
}

/* ---- The owner's side: taking and giving back --------------------------------------------------------- */

/* Lowers index to at most the cell lo, all above lo being FREE, with a new epoch. */
static void queue_lower(fji_queue *q, fj_cell *lo)
{
    uint32_t pos = fji_queue_position(q, lo);
    /* [queue.base] acquire <- the CAS of a thief. */
    uint64_t b = fji_load_acquire(&q->base);

    for (;;) {
        uint32_t index = fji_base_index(b) < pos ? fji_base_index(b) : pos;
        unsigned state = fji_base_state(b);
        if (state == FJI_BASE_CLOSED) /* relaxed: the CAS publishes it. */
            fji_store_relaxed(&q->fast.floor, (uintptr_t)(q->cells + index));
        /* [queue.base] acq_rel -> acquire in fji_queue_steal(): whoever sees the new base
         * sees the cells FREE; whoever saw an old one fails on the epoch. */
        uint64_t next = fji_base_make(fji_base_epoch(b) + 1, index, state);
        if (fji_cas_acq_rel_64(&q->base, &b, next)) return;
        if (state == FJI_BASE_CLOSED)
            fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX); /* relaxed: only we read it */
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
        /* [queue.take] as in fji_pop(): the cell above, floor below; partner: the heavy
         * fence in queue_open(). */
        FJI_LIGHT_FENCE();
        /* relaxed: the fence orders it. */
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
        /* From where it was last, not from c: there may be many in between. */
        return fji_queue_boundary(q, q->fast.top);
    }
    cell_set(c, FJI_FREE);
    queue_lower(q, c);
    return c;
}

void fji_cell_put_action(fj_cell *c, fj_action_fn *fn, void *arg)
{
    uintptr_t *at = fji_cell_words(c);
    /* relaxed: published by the release store of `what`; a thief late with an older base
     * may read them meanwhile, and its CAS fails. */
    fji_store_relaxed(&at[0], (uintptr_t)fn);
    fji_store_relaxed(&at[1], (uintptr_t)arg); /* relaxed: as above */
}

/* ---- The owner's side: space -------------------------------------------------------------------------- */

/* A cell that compaction must leave where it is, index being where thieves are. */
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
        /* relaxed: others compare it with what they find in their own queue. */
        fji_store_relaxed(&t->location, keep | fji_queue_position(q, to));
    }
    /* relaxed: thieves are locked out. */
    fji_store_relaxed(&fji_cell_words(to)[0], fji_cell_words(from)[0]);
    fji_store_relaxed(&fji_cell_words(to)[1], fji_cell_words(from)[1]); /* relaxed: as above */
    cell_set(to, item);
}

/*
 * Moves what is above the last pinned cell down over what is dead there: TOMBs of tasks
 * joined out of order, and detached tasks that were taken. Returns the new boundary.
 */
static fj_cell *queue_compact(fji_queue *q, fj_cell *end)
{
    queue_open_by_owner(q);
    /* [queue.base] acquire <- the CAS of a thief. */
    uint64_t b = fji_load_acquire(&q->base);
    uint64_t locked;
    do {
        locked = fji_base_make(fji_base_epoch(b) + 1, fji_base_index(b), FJI_BASE_LOCKED);
        /* [queue.base] acq_rel: from here on a thief's CAS fails. */
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
        /* [queue.base] release -> acquire in fji_queue_maybe(), which then sees LOCKED. */
        fji_store_release(&c->item, FJI_FREE);
    if (index > fji_queue_position(q, low)) index = fji_queue_position(q, low);
    /* [queue.base] release -> acquire in fji_queue_steal(): the cells as they are now.
     * The push that follows looks at the control word, for a worker that met the lock. */
    fji_store_release(&q->base, fji_base_make(fji_base_epoch(locked) + 1, index, FJI_BASE_OPEN));
    return to;
}

/*
 * The same for more room, unless it was tried a short while ago and gained little: so the cost of one
 * more push does not depend on the length of the queue, however little there is to gain.
 */
static fj_cell *queue_compact_for_room(fji_queue *q, fj_cell *end)
{
    if (q->wait != 0) {
        q->wait--;
        return end;
    }
    fj_cell *p = queue_compact(q, end);
    uint32_t enough = q->capacity > FJI_QUEUE_KEPT ? q->capacity / 64
                                                   : 0; /* short ones cost little */
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
    bool typed = fji_queue_in_typed(q); /* it counts on positions: nothing may move */
    /* relaxed: index only grows but for us, so at least this much is stolen or dead. */
    uint32_t dead = fji_base_index(fji_load_relaxed(&q->base)) + q->tombstones;
    if (!typed && dead >= q->capacity / 2) p = queue_compact_for_room(q, p);
    if (cell_item(p) == FJI_FREE || queue_grow(q)) return p;
    if (!typed && dead != 0) p = queue_compact_for_room(q, p);
    return cell_item(p) == FJI_FREE ? p : NULL;
}

void fji_queue_shrink(fji_queue *q)
{
    if (q->capacity <= FJI_QUEUE_KEPT) return;
    if (q->fast.top != q->cells) q->fast.top = queue_compact(q, q->fast.top);
    if (q->fast.top != q->cells) return; /* it is not empty */
    size_t kept = queue_bytes(FJI_QUEUE_KEPT);
    /* relaxed: END and FREE mean the same to a thief, nothing is there. */
    fji_store_relaxed(&q->cells[FJI_QUEUE_KEPT].item, FJI_END);
    if (fji_plat_discard((char *)q->range + kept, queue_bytes(q->capacity) - kept)) {
        q->capacity = FJI_QUEUE_KEPT;
        q->typed_hint = q->cells;
    } else {
        fji_store_relaxed(&q->cells[FJI_QUEUE_KEPT].item, FJI_FREE); /* relaxed: as above */
    }
}

/* ---- The thieves' side -------------------------------------------------------------------------------- */

static bool queue_open_alone(fji_queue *q, uint64_t b, const fj_cell *c, uintptr_t *item)
{
    /* relaxed: the barrier below orders it against the owner's loads of floor. */
    fji_store_relaxed(&q->fast.floor, QUEUE_FLOOR_MAX);
    for (int i = 0; i < FJI_SHARE_SPINS; i++) {
        fji_pause();
        if (fji_load_relaxed(&q->base) != b) return false; /* relaxed: a hint to come again */
    }
    fji_add_relaxed(&q->barriers, 1); /* relaxed: a counter */
    /* [queue.take] floor above, the cell below; partner: the light fence in fji_pop(). */
    if (!fji_plat_barrier()) return false;
    /* [queue.publish] acquire <- release in fj_fork(): the task. */
    *item = fji_load_acquire(&c->item);
    return fji_item_is_task(*item) || *item == FJI_TOMBSTONE;
}

/*
 * A CLOSED queue with a task in sight: asks the owner to open, and if it does not come by,
 * makes sure by the heavy fence that it cannot pass unseen. *what is then the cell as it
 * was after the fence. False: base has changed, or there is nothing after all, or another thief
 * is about it: where many search, all of them see the one queue with a task.
 */
static bool queue_open(fji_queue *q, uint64_t b, const fj_cell *c, uintptr_t *item)
{
    /* relaxed: it only saves fences. */
    if (fji_load_relaxed(&q->opening) != 0 || fji_or_relaxed(&q->opening, 1u) != 0) return false;
    bool open = queue_open_alone(q, b, c, item);
    fji_store_relaxed(&q->opening, 0u); /* relaxed: as above */
    return open;
}

/* The same for an OPEN queue: a full fence, and the cell read after it. */
static bool queue_steal_open(const fj_cell *c, uintptr_t *item)
{
    /* [queue.take] base was read above, the cell is read below; partner: the full fence in
     * queue_decide(). */
    fji_fence_thief();
    /* [queue.publish] acquire <- release in fj_fork(): the task. */
    *item = fji_load_acquire(&c->item);
    return fji_item_is_task(*item) || *item == FJI_TOMBSTONE;
}

/* Whether a thief that may run only some tasks may run this one; fn: what stands beside it. */
static bool item_is_wanted(uintptr_t item, uintptr_t fn, uintptr_t root)
{
    if (root == 0 || item == FJI_TOMBSTONE) return true;
    if (root == QUEUE_UNTYPED) return !fji_item_is_typed(item);
    return fji_item_is_future(item) && fn == root;
}

static bool links_hold(const fji_link *links, int n)
{
    for (int i = 0; i < n; i++)
        /* [queue.link] acquire: keeps the look behind the read of the cell before it. */
        if (fji_load_acquire(links[i].word) != links[i].seen) return false;
    return true;
}

fji_steal_result fji_queue_steal_for(fji_queue *q, uint32_t from, const fji_link *links, int n,
                                     uintptr_t root, fji_taken *taken)
{
    for (;;) {
        /* [queue.base] acquire <- the owner's CAS: the cells it has freed or moved. */
        uint64_t b = fji_load_acquire(&q->base);
        uint32_t index = fji_base_index(b);
        if (fji_base_state(b) == FJI_BASE_LOCKED) return FJI_STEAL_RETRY;
        if (index < from) return FJI_STEAL_EMPTY;
        fj_cell *c = q->first + index;
        /* [queue.publish] acquire: also keeps the second look at base behind it. */
        uintptr_t item = fji_load_acquire(&c->item);
        if (item == FJI_FREE || item == FJI_END)
            /* [queue.base] acquire <- the owner's CAS: nothing only if index stayed. */
            return fji_load_acquire(&q->base) == b ? FJI_STEAL_EMPTY : FJI_STEAL_RETRY;
        bool closed = fji_base_state(b) == FJI_BASE_CLOSED;
        if (!(closed ? queue_open(q, b, c, &item) : queue_steal_open(c, &item)))
            return FJI_STEAL_RETRY;
        if (!links_hold(links, n)) return FJI_STEAL_EMPTY;
        if (n > 0 && item == FJI_ACTION) return FJI_STEAL_EMPTY; /* nobody waits for it */
        if (item == FJI_ACTION || fji_item_is_future(item)) {
            const uintptr_t *at = fji_cell_words(c);
            taken->fn = fji_load_relaxed(&at[0]);  /* relaxed: [queue.publish] carries them */
            taken->arg = fji_load_relaxed(&at[1]); /* relaxed: torn only if the CAS fails */
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
    /* [queue.publish] acquire: also keeps the second look at base behind it. */
    uintptr_t item = fji_load_acquire(&q->first[fji_base_index(b)].item);
    if (item != FJI_FREE && item != FJI_END) return true;
    /* [queue.base] acquire <- the owner's CAS: index may have been lowered meanwhile. */
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
    uint64_t b = fji_load_relaxed(&q->base); /* relaxed: at rest */
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
