/* SPDX-License-Identifier: MIT */
/*
 * queue.h - the queues: a worker's stack of cells, and the submission queue
 *
 * One owner pushes and takes at one end, any number of thieves take at the other.
 * The array is one run of addresses that never moves (address space is reserved,
 * memory comes as it grows), so a position is an address and stays valid.
 *
 *     cells[-1]   END, and another below: what fast.top says under typed code has one below it too
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
#include "queue/base.h"
#include "queue/item.h"

typedef struct fji_queue {
    /* The owner's line. fast.floor alone is written by others too. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fj_worker fast;
    fj_cell *cells;            /* position 0 */
    fj_cell *typed_hint;       /* near the boundary while typed code runs (fast.top is END then) */
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

/* Owner. Whether typed code runs. It keeps the boundary in a register, and fast.top is the END below
 * cell 0, so that the plain tier takes its slow paths. */
static inline bool fji_queue_in_typed(const fji_queue *q)
{
    return q->fast.top < q->cells;
}

/* Owner. Stores b, which is the boundary after a take or a give-back. */
static inline void fji_queue_set_boundary(fji_queue *q, fj_cell *b)
{
    if (fji_queue_in_typed(q))
        q->typed_hint = b;
    else
        q->fast.top = fji_queue_reclaim(q, b, q->cells);
}

static inline uint32_t fji_queue_position(const fji_queue *q, const fj_cell *c)
{
    return (uint32_t)(c - q->cells);
}

#endif /* FJI_QUEUE_H */
