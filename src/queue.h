/* SPDX-License-Identifier: MIT */
/*
 * queue.h - the queues: a worker's stack of cells, and the submission queue
 *
 * One owner pushes and takes at one end, any number of thieves take at the other.
 * The array is one run of addresses that never moves (address space is reserved,
 * memory comes as it grows), so a position is an address and stays valid.
 *
 *     cells[-1]   END, and another below: what hot.top says under typed code has one below it too
 *     cells[0] ..            oldest task            <- thieves, at base.index
 *     ..                     youngest task
 *     ..  FREE FREE FREE     the boundary           <- the owner
 *     cells[capacity] END
 *
 * What a cell says (`what`, written by the owner alone)
 *     FREE   no task; all cells above are FREE as well
 *     TOMB   its task was joined while younger ones were there
 *     CLAIM  the owner is about to find out whether it may have the task
 *     END    a sentinel
 *     else   a task: a pointer with tags, or ACTION. Below base.index: stolen, and not
 *            yet joined unless it is detached (ACTIONs are; so are tasks that complete
 *            by themselves). The cell of a detached one may be used again as soon as
 *            index has passed it, so a thief copies what it needs before its CAS.
 *
 * The thieves' word, changed by CAS only
 *
 *      63                          30 29                    2 1      0
 *     +------------------------------+-----------------------+--------+
 *     |            epoch             |         index         | state  |
 *     +------------------------------+-----------------------+--------+
 *
 *     CLOSED  no thief inside: the owner takes with plain loads and stores
 *     OPEN    thieves take by moving index; the owner fences
 *     LOCKED  the owner is moving tasks: thieves come again later
 *
 * The owner's word `floor`: the lowest cell it may take without asking. Thieves
 * store MAX into it to be let in; a needless MAX costs time and nothing else.
 *
 * Push    cell = task (release); light fence; look at the pool's control word.
 *
 * Take    by the owner, of any cell c it has pushed, topmost or not:
 *           c.item = FREE if nothing is above it, else CLAIM (and TOMB once it is ours:
 *           not before, since a thief drops a TOMB)
 *           light fence; c >= floor: it is ours.          -- the whole fast path
 *           else, after a full fence, by what base says; any CAS failure: look again
 *             index > c          stolen: c.item as it was, wait, give the cell back
 *             CLOSED             a thief has asked: CAS to OPEN, look again
 *             OPEN, index == c   CAS to epoch+1: the epoch, not the index, shuts out
 *                                a thief that is about to take c
 *             OPEN, index < c    ours: a thief that comes to c sees it FREE or CLAIM
 *
 * Steal   read base, then the cell at index (acquire):
 *             FREE, END          NONE, but only if base has not changed; else RETRY
 *             LOCKED, CLAIM      RETRY
 *             CLOSED             floor = MAX; wait a moment for the owner to come by
 *                                and open; if it does not (a long leaf): heavy fence,
 *                                read the cell again, CAS {index+1, epoch, OPEN}
 *             OPEN               full fence, read the cell again, CAS {index+1, epoch, OPEN}
 *             a TOMB is taken like a task and dropped: go on with the next
 *
 * Settle  when TOMBs lie directly below the boundary the owner frees those that are no
 *         longer counted on (plain code: all; typed code, which keeps positions in
 *         registers: those at or above the position of its next fork):
 *           what = FREE for all of them, then CAS {min(index, lowest), epoch+1, OPEN}.
 *         While there are TOMBs the queue is OPEN and is not closed, so every take
 *         comes by here.
 *
 * Give back  a cell c < index whose task is done. If nothing is above it: what = FREE,
 *         then CAS index down to it with epoch+1, same state; CLOSED: floor = that cell
 *         before, MAX on failure. Otherwise: what = TOMB.
 *
 * Close   after FJI_CLOSE_AFTER takes without a steal: floor = cell at index, then
 *         CAS {index, epoch+1, CLOSED}; on failure floor = MAX. In this order, and
 *         never another store to floor that lowers it without such a CAS behind.
 *
 * Invariants
 *   I1  what != FREE for every position below index.
 *   I2  A task is taken once: by its owner's take, or by the thief whose CAS moved
 *       index over it; the two exclude each other by floor (CLOSED) or epoch (OPEN).
 *   I3  index goes down only with a new epoch, so a thief's CAS with an old view of a
 *       cell that was used again since fails.
 *   I4  A position is used again only after index <= position.
 *   I5  A cell's state is 0 unless its task was stolen and is not yet given back.
 *
 * Why take and steal exclude each other
 *   CLOSED  the thief stores floor = MAX, then the heavy fence, then reads the cell. If
 *           the owner's load of floor came before the fence took effect on it, so did
 *           its store to the cell, and the thief reads FREE or CLAIM. Otherwise the
 *           owner sees MAX, finds CLOSED and changes base before it takes: the
 *           thief's CAS fails.
 *   OPEN    index < c at the owner's read: whoever moves index to c does so later, and
 *           a thief that reads that index reads the cell after its full fence, hence
 *           after the owner's store before its own. index == c: the two CAS decide.
 *
 * Edges            from                          to                         carries
 *   queue.publish  release store of a push       acquire load in steal      the task
 *   queue.take     light fence in fji_pop()      heavy fence, queue_open()  cell against floor
 *   queue.take     full fence, queue_decide()    thief's fence, queue_steal_open()  cell against base
 *   queue.base     acq_rel CAS on base           acquire load of base       cells freed, floor
 *   queue.link     acquire load in steal_for     acq_rel completion, join.c  not done yet
 *
 * Model: test/model/queue.pml, with store buffers and with mutations that fail.
 */
#ifndef FJI_QUEUE_H
#define FJI_QUEUE_H

#include "plat/atomic.h"
#include "plat/config.h"
#include "plat/plat.h"

#define FJI_CLAIM ((uintptr_t)24)

/* A `what` of its own: fire and forget, function and argument stand in the cell. */
#define FJI_ACTION ((uintptr_t)32 | FJI_TAG_DETACHED)

/*
 * fj_task.location of a task that completes in its own state: which submission queue, or which
 * position in a worker's queue; and when it was put there, in times that this process or
 * those it comes from were made by fork().
 */
#define FJI_LOCATION_LOCAL 0x80000000u
#define FJI_LOCATION_POSITION 0x001fffffu
#define FJI_LOCATION_NONE FJI_LOCATION_POSITION /* not in a queue yet */
#define FJI_LOCATION_GENERATION_SHIFT 21
#define FJI_LOCATION_GENERATION 1023u

/* ---- The thieves' word --------------------------------------------------------------------- */

#define FJI_BASE_CLOSED 0u
#define FJI_BASE_OPEN 1u
#define FJI_BASE_LOCKED 2u
#define FJI_BASE_INDEX_SHIFT 2
#define FJI_BASE_INDEX_BITS 28
#define FJI_BASE_INDEX_MASK ((1u << FJI_BASE_INDEX_BITS) - 1)
#define FJI_BASE_EPOCH_SHIFT 30

static inline unsigned fji_base_state(uint64_t b)
{
    return (unsigned)(b & 3u);
}

static inline uint32_t fji_base_index(uint64_t b)
{
    return (uint32_t)(b >> FJI_BASE_INDEX_SHIFT) & FJI_BASE_INDEX_MASK;
}

static inline uint64_t fji_base_epoch(uint64_t b)
{
    return b >> FJI_BASE_EPOCH_SHIFT;
}

/* The epoch wraps at 2^34 by being shifted out. */
static inline uint64_t fji_base_make(uint64_t epoch, uint32_t index, unsigned state)
{
    return epoch << FJI_BASE_EPOCH_SHIFT | (uint64_t)index << FJI_BASE_INDEX_SHIFT | state;
}

/* ---- A worker's queue ------------------------------------------------------------------------ */

typedef struct fji_queue {
    /* The owner's line. hot.floor alone is written by others too. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fj_worker fast;
    fj_cell *cells;            /* position 0 */
    fj_cell *typed_hint;       /* near the boundary while typed code runs (hot.top is END then) */
    fj_cell *typed_low;        /* then: where the plain tasks forked under it begin */
    uint32_t typed_count;      /* then: how many of them are not joined */
    uint32_t capacity;         /* cells before the END */
    uint32_t tombstones;       /* TOMBs not yet freed */
    uint32_t wait;             /* calls of fji_queue_room() until it may compact again */
    uint32_t pops_since_steal; /* takes since the last steal, while OPEN */
    uint32_t last_index;       /* index at the last of them */

    /* The thieves' line. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t base;
    uint64_t openings; /* CLOSED -> OPEN, by whomever */
    uint64_t barriers; /* heavy fences by thieves of this queue */
    uint32_t opening;  /* a thief is about it: the others come again, one heavy fence is enough */
    fj_cell *first;    /* == cells, for thieves */

    /* Set up once. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) void *range; /* reserved addresses */
    size_t range_bytes;
    uint32_t limit;  /* most cells */
    bool asymmetric; /* may be CLOSED: there is a heavy fence, and it is not FIFO */
} fji_queue;

/* What a steal got. */
typedef enum fji_steal_result {
    FJI_STEAL_EMPTY,
    FJI_STEAL_RETRY,
    FJI_STEAL_SUCCESS
} fji_steal_result;

/* A task that was taken: `what` as it stood in the cell, the cell (NULL: it came from a
 * submission queue, or from the own one), and function and argument of an ACTION; of a task
 * that completes itself `fn` is its root, or 0. The token is filled in by the taker. */
typedef struct fji_taken {
    uintptr_t item;
    fj_cell *cell;
    uintptr_t fn, arg;
    const fj_token *token;
} fji_taken;

/*
 * Makes an empty queue with room for `first` cells that can grow to `limit`. Takes
 * less if the system gives less. False without memory for even `first`.
 */
bool fji_queue_init(fji_queue *q, uint32_t first, uint32_t limit, bool asymmetric);

/* Gives the memory back. Nobody may look at it any more. */
void fji_queue_fini(fji_queue *q);

/* Forgets everything, as after fork() in the child: empty, no thief. Owner's side only. */
void fji_queue_reset(fji_queue *q);

/*
 * Owner. The boundary, wherever it is: from `near` up over occupied cells or down over
 * free ones. May be the END.
 */
fj_cell *fji_queue_boundary(fji_queue *q, fj_cell *near);

/*
 * Owner. A free cell at the boundary; grows or compacts if need be. NULL: there is no room. The cost
 * of a call does not depend on the length of the queue, on average.
 */
fj_cell *fji_queue_room(fji_queue *q, fj_cell *near);

/*
 * Owner, with an empty queue, not under typed code. In FIFO order positions creep upwards; when
 * half of the room is gone they begin anew, before typed code, under which nothing may move,
 * comes to the end and makes it grow. The boundary.
 */
fj_cell *fji_queue_rewind(fji_queue *q, fj_cell *b);

/* Owner, not under typed code. Gives memory of an empty queue back. */
void fji_queue_shrink(fji_queue *q);

/*
 * Owner. Frees the TOMBs directly below the boundary b, down to `low` at most; returns the
 * new boundary.
 */
fj_cell *fji_queue_reclaim(fji_queue *q, fj_cell *b, fj_cell *low);

/*
 * Owner. Tries to take the task `what` in c, which the owner has pushed and not joined.
 * `popped`: fji_pop() has set c FREE and then met floor. True: it is the owner's, and
 * *boundary is where the next push goes. False: a thief has it, and c says `what` again;
 * *boundary is untouched.
 */
bool fji_queue_take(fji_queue *q, fj_cell *c, uintptr_t item, bool popped, fj_cell **boundary);

/* Owner. c holds a stolen task, and that is over. The boundary. */
fj_cell *fji_queue_give_back(fji_queue *q, fj_cell *c);

/* Owner: what stands in a cell beside `what`, before it is published. */
void fji_cell_put_action(fj_cell *c, fj_action_fn *fn, void *arg);

/* Thief. One attempt at the oldest task. */
fji_steal_result fji_queue_steal(fji_queue *q, fji_taken *taken);

/*
 * Thief that waits for a task and may run only what belongs to it: takes the oldest task
 * if it is at position `from` or above, and if none of the words has changed since it was
 * seen. They are looked at between the last read of the cell and the CAS, so that a task
 * found while they stood is what gets taken. root: only a task with this root, unless 0.
 */
typedef struct fji_link {
    const uint32_t *word;
    uint32_t seen;
} fji_link;

fji_steal_result fji_queue_steal_for(fji_queue *q, uint32_t from, const fji_link *links, int n,
                                     uintptr_t root, fji_taken *taken);

/* Thief. As fji_queue_steal(), but leaves a typed task, and what is above it, where it is. */
fji_steal_result fji_queue_steal_untyped(fji_queue *q, fji_taken *taken);

/* Anybody. Whether there may be a task: true while LOCKED. */
bool fji_queue_maybe(const fji_queue *q);

/* Anybody. Tasks in it, about; `scan` bounds the work. */
uint32_t fji_queue_count(const fji_queue *q);

/* Owner, FJI_CHECKED builds and tests: the invariants that can be seen at rest. */
bool fji_queue_valid(const fji_queue *q);

static inline uint32_t fji_queue_position(const fji_queue *q, const fj_cell *c)
{
    return (uint32_t)(c - q->cells);
}

/* ---- A submission queue ------------------------------------------------------------------------ */

/*
 * The same protocol, always OPEN, with slots that hold an fj_task or an ACTION and a
 * lock for whoever pushes or takes back. Positions creep upwards: when the end is
 * reached, what is left is moved to the front under LOCKED, or the array grows. A task knows its
 * number, from which its position follows however often that was done.
 */
typedef struct fji_slot {
    uintptr_t item;
    uintptr_t fn, arg; /* of an ACTION; fn: the root of a task that completes itself */
    uintptr_t token;   /* that the task runs with, or 0 */
} fji_slot;

typedef struct fji_submission_queue {
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock; /* holders are the owner in the sense above */
    uint32_t top;
    uint32_t capacity;
    fji_slot *slots;
    uint32_t shifted; /* by how much positions have been lowered, in all */
    uint64_t pushed;  /* ever */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t base;
    fji_slot *first;
    FJI_ALIGNAS(FJI_CACHE_PAIR) void *range;
    size_t range_bytes;
    uint32_t limit;
} fji_submission_queue;

bool fji_submission_queue_init(fji_submission_queue *q, uint32_t first, uint32_t limit);
void fji_submission_queue_fini(fji_submission_queue *q);

/* With the lock: forgets everything, after fork(). */
void fji_submission_queue_reset(fji_submission_queue *q);

/* With the lock: appends a task, or an ACTION with function and argument. On average its cost does not
 * depend on the length. *number, unless NULL, becomes its number, to find it again. False: no room,
 * nothing was changed. */
bool fji_submission_queue_push(fji_submission_queue *q, const fji_taken *it, uint32_t *number);

/* With the lock: takes back what was pushed with this number. False: a thief has it. */
bool fji_submission_queue_remove(fji_submission_queue *q, uintptr_t item, uint32_t number);

/* With the lock: gives memory of an empty queue back. */
void fji_submission_queue_shrink(fji_submission_queue *q);

/* Without the lock: whether it has more memory than it keeps. */
bool fji_submission_queue_is_large(const fji_submission_queue *q);

/* Thief, no lock: the oldest. loot->cell is NULL. */
fji_steal_result fji_submission_queue_steal(fji_submission_queue *q, fji_taken *taken);

/* Thief, no lock: the oldest, if it has this root. */
fji_steal_result fji_submission_queue_steal_root(fji_submission_queue *q, uintptr_t root,
                                                 fji_taken *taken);

/*
 * Thief, no lock: the same, and if it is an ACTION, up to half of the ACTIONs that follow
 * with it, at most FJI_SUBMISSIONS_BATCH in all; *n says how many.
 */
fji_steal_result fji_submission_queue_steal_some(fji_submission_queue *q, fji_taken *taken,
                                                 uint32_t *n);

/* Anybody. */
bool fji_submission_queue_maybe(const fji_submission_queue *q);
uint32_t fji_submission_queue_count(const fji_submission_queue *q);

#endif /* FJI_QUEUE_H */
