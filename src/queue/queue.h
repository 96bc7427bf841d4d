/* SPDX-License-Identifier: MIT */
/*
 * queue.h - a worker's queue: the owner pushes and takes at one end, thieves take at the other
 *
 * Most tasks are taken back by their owner, so push and take have to cost a few plain instructions.
 * The owner therefore executes no fence while no thief is interested. The first thief opens the
 * queue, and the owner closes it again after many takes without a steal.
 *
 * The cells are one range of addresses that never moves: the addresses are reserved at once, and
 * memory is added as the queue grows. So the address of a cell stays valid.
 *
 *     cells[-2]  cells[-1]   END, END (under typed code fast.top is cells[-1]; the owner also
 *                            reads the cell below fast.top)
 *     cells[0] ..            the oldest task            <- thieves, at base.index
 *     ..                     the youngest task
 *     ..  FREE FREE FREE     the first is the boundary  <- the owner
 *     cells[capacity]        END
 *
 * The word `item` of a cell (only the owner writes it)
 *     FREE       no task; all cells above are FREE as well
 *     TOMBSTONE  its task was joined while younger tasks were queued
 *     CLAIM      the owner wants the task and does not know yet whether a thief has taken it
 *     END        a sentinel
 *     else       a task: a pointer with tags, or ACTION (item.h). Below base.index it is stolen. A
 *                stolen task stays there until it is joined. If it is detached (an action, or a
 *                task that completes itself), the owner may use its cell again as soon as index is
 *                above it. So a thief copies what it needs of the cell before its CAS.
 *
 * The word `base` (changed by CAS; only the owner that has set LOCKED stores to it)
 *
 *      63                          30 29                    2 1      0
 *     +------------------------------+-----------------------+--------+
 *     |            epoch             |         index         | state  |
 *     +------------------------------+-----------------------+--------+
 *
 *     CLOSED  no thief takes tasks: the owner takes with plain loads and stores
 *     OPEN    thieves take by moving index; the owner executes a full fence at each take
 *     LOCKED  the owner moves tasks: thieves try again later
 *
 * The word `floor`: the lowest cell that the owner may take without reading base. A thief stores
 * MAX to make the owner read base. An unnecessary MAX costs the owner time and has no other effect.
 *
 * Push    c.item = task (release); light fence; read the pool's control word.
 *
 * Take    by the owner, of any cell c that it has pushed, topmost or not:
 *           c.item = FREE if c is topmost, else CLAIM. CLAIM becomes TOMBSTONE when the owner has
 *           the task, but not earlier, because a thief skips a TOMBSTONE.
 *           light fence; if c >= floor, the task is the owner's.   -- this is the whole fast path
 *           Otherwise a full fence; then base decides. After a failed CAS the owner reads it again.
 *             index > c          stolen: restore c.item, wait for the thief, give the cell back
 *             CLOSED             a thief has stored MAX: CAS to OPEN, decide again
 *             OPEN, index == c   CAS to epoch+1. The new epoch, not the index, makes the CAS of a
 *                                thief that is about to take c fail.
 *             OPEN, index < c    the owner's: a thief that reaches c reads FREE or CLAIM there
 *
 * Steal   read base, then the cell at index (acquire):
 *             FREE, END          EMPTY if base has not changed, else RETRY
 *             LOCKED, CLAIM      RETRY
 *             CLOSED             floor = MAX; wait a short time for the owner to open the queue
 *                                (then RETRY). If it does not, because it runs a long leaf: heavy
 *                                fence, read the cell again, CAS {index+1, epoch, OPEN}
 *             OPEN               thief's fence, read the cell again, CAS {index+1, epoch, OPEN}.
 *                                The fence is fji_fence_thief(): full, except on x86-64.
 *             A TOMBSTONE is taken like a task and dropped; the thief continues with the next cell.
 *
 * Reclaim  The owner frees TOMBSTONEs directly below the boundary. Plain code frees all of them.
 *         Typed code keeps positions in registers, so it frees only those at or above the position
 *         of its next fork.
 *           item = FREE in all of them, then CAS {min(index, lowest of them), epoch+1, OPEN}
 *         While the queue has TOMBSTONEs it is OPEN and is not closed. So every take uses the slow
 *         path, which reclaims.
 *
 * Give back  a cell c < index whose task is done. If c is topmost: item = FREE, then CAS index down
 *         to c with epoch+1 and the same state. If the state is CLOSED, floor = c before the CAS,
 *         and MAX if the CAS fails. If c is not topmost: item = TOMBSTONE.
 *
 * Close   after FJI_CLOSE_AFTER takes without a steal: floor = the cell at index, then
 *         CAS {index, epoch+1, CLOSED}; if the CAS fails, floor = MAX. A store that lowers floor
 *         is always followed by such a CAS, in this order.
 *
 * Invariants
 *   I1  item != FREE in every cell below index.
 *   I2  A task is taken once: by its owner's take, or by the thief whose CAS moved index over it.
 *       The two exclude each other by floor (CLOSED) or by the epoch (OPEN).
 *   I3  index goes down only with a new epoch. So the CAS of a thief with an old view of a cell
 *       that was used again fails.
 *   I4  A position is used again only when index <= position.
 *   I5  `state` of a cell is 0 unless its task was stolen and the cell is not yet given back.
 *
 * Why take and steal exclude each other
 *   CLOSED  The thief stores floor = MAX, executes the heavy fence and then reads the cell. The
 *           heavy fence takes effect on the owner's CPU at some moment. If the owner has loaded
 *           floor before that moment, it has stored to the cell before it too, and the thief reads
 *           FREE or CLAIM. Otherwise the owner loads MAX, finds CLOSED and changes base before it
 *           takes the task, so the thief's CAS fails.
 *   OPEN    If index < c when the owner reads base, a thief moves index to c only later. A thief
 *           that reads that index reads the cell after the thief's fence, so it sees the owner's
 *           store to the cell, which came before the owner's full fence. If index == c, the owner
 *           and the thief both need a CAS on base, and one of the two fails.
 *
 * Edges            from                          to                         carries
 *   queue.publish  release store of a push       acquire load in a steal    the task
 *   queue.take     light fence in a pop          heavy fence, queue_open()  cell against floor
 *   queue.take     full fence, queue_decide()    fence, queue_steal_open()  cell against base
 *   queue.base     acq_rel CAS on base           acquire load of base       freed cells, floor
 *   queue.link     acq_rel completion (task.h)   acquire load, links_hold() DONE
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
#include "queue/range.h"

typedef struct fji_queue {
    /* Used by the owner. Thieves write only fast.floor. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fj_worker fast;
    fj_cell *cells;            /* position 0 */
    fj_cell *typed_hint;       /* under typed code, a cell near the boundary (fast.top is END) */
    fj_cell *typed_low;        /* under typed code, where the plain tasks forked under it begin */
    uint32_t typed_count;      /* under typed code, how many of these are not joined */
    uint32_t capacity;         /* cells below the END */
    uint32_t tombstones;       /* TOMBSTONEs that are not reclaimed */
    uint32_t wait;             /* compactions to skip, because the last one gained little */
    uint32_t pops_since_steal; /* takes since the last steal, while OPEN */
    uint32_t last_index;       /* index at the last of them */

    /* Used by thieves. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t base;
    uint64_t openings; /* changes from CLOSED to OPEN, by the owner or a thief */
    uint64_t barriers; /* heavy fences by thieves of this queue */
    uint32_t opening;  /* 1 while a thief opens the queue; the others retry: one fence is enough */
    fj_cell *first;    /* == cells, for thieves */

    /* Set by fji_queue_init(). */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_range range; /* the addresses of the cells */
    bool asymmetric; /* it may be CLOSED: there is a heavy fence, and the order is not FIFO */
} fji_queue;

/* "Owner" and "thief" at the beginning of a comment say which thread may call the function. No
 * function takes a lock. */

/*
 * Initialises an empty queue of `first` cells that can grow to `limit` cells, or to fewer if the
 * system refuses to reserve that many addresses. *q is zeroed. Returns false if there is no memory
 * for `first` cells. Called before other threads know q.
 */
bool fji_queue_init(fji_queue *q, uint32_t first, uint32_t limit, bool asymmetric);

/* Frees the cells. No other thread may use q any more. */
void fji_queue_fini(fji_queue *q);

/* Empties the queue, in the child process after fork(), where no thief exists. */
void fji_queue_reset(fji_queue *q);

/*
 * Owner. Returns the boundary, which may be the END. It searches from `near`, up over cells in use
 * or down over free ones; from typed_hint if `near` is not a cell of the queue.
 */
fj_cell *fji_queue_boundary(fji_queue *q, fj_cell *near);

/*
 * Owner. Returns the free cell at the boundary, or NULL if there is no space. Grows the queue if it
 * is full, or compacts it, which moves tasks (never under typed code). `near` is as for
 * fji_queue_boundary(). The average cost does not depend on the length of the queue.
 */
fj_cell *fji_queue_room(fji_queue *q, fj_cell *near);

/*
 * Owner, if the queue has no task to take and typed code does not run. b is the boundary; returns
 * the new one. In FIFO order the positions creep upwards. If b is in the upper half, the queue is
 * compacted here, so that the positions begin at 0 again. Otherwise typed code, under which no task
 * may be moved, would reach the end and make the queue grow.
 */
fj_cell *fji_queue_rewind(fji_queue *q, fj_cell *b);

/* Owner, not under typed code. If the queue is empty and has more than FJI_QUEUE_KEPT cells,
 * returns the memory of the further cells to the system. Stores the boundary in fast.top. */
void fji_queue_shrink(fji_queue *q);

/*
 * Owner. Frees the TOMBSTONEs directly below the boundary b, but none below `low`. Returns the new
 * boundary.
 */
fj_cell *fji_queue_reclaim(fji_queue *q, fj_cell *b, fj_cell *low);

/*
 * Owner. Tries to take the task `item` of cell c, which the owner has pushed and not joined.
 * `popped`: c was topmost, and fji_pop() has set it FREE and then found that floor is above c.
 * Returns true if the task is the owner's. c is then FREE and *boundary is c, or c is a TOMBSTONE
 * and *boundary is unchanged. Returns false if a thief has the task; c then holds `item` again and
 * *boundary is unchanged.
 */
bool fji_queue_take(fji_queue *q, fj_cell *c, uintptr_t item, bool popped, fj_cell **boundary);

/* Owner. Frees cell c, whose task was stolen and is done; c->state is 0. A detached task need not
 * be done, because its thief does not use the cell. Returns the boundary. */
fj_cell *fji_queue_give_back(fji_queue *q, fj_cell *c);

/* Owner. Stores function and argument of an action, or the root of a future, in the free cell c.
 * The caller publishes them by storing the item. */
void fji_cell_put_action(fj_cell *c, fj_action_fn *fn, void *arg);

/* Thief. Tries once to take the oldest task. */
fji_steal_result fji_queue_steal(fji_queue *q, fji_taken *taken);

/* A word that a waiting thief has read, and its value. */
typedef struct fji_link {
    const uint32_t *word;
    uint32_t seen;
} fji_link;

/*
 * Thief that waits for a task and may run only tasks that the awaited task waits for. Takes the
 * oldest task of the queue if it is at position `from` or above and if the n words in `links` still
 * have the values that the thief has read. The words are read again between the last read of the
 * cell and the CAS: so the task that is taken was in the queue while the words had these values. If
 * n is not 0, actions are not taken. If root is not 0, only a future with this root is taken.
 */
fji_steal_result fji_queue_steal_for(fji_queue *q, uint32_t from, const fji_link *links, int n,
                                     uintptr_t root, fji_taken *taken);

/* Thief. As fji_queue_steal(), but returns EMPTY if the oldest task is typed. */
fji_steal_result fji_queue_steal_untyped(fji_queue *q, fji_taken *taken);

/* Any thread. Returns false if the queue had no task to take; true if it may have one, and always
 * while it is LOCKED. */
bool fji_queue_maybe(const fji_queue *q);

/* Any thread. Returns the number of queued tasks; an estimate, unless the queue does not change. */
uint32_t fji_queue_count(const fji_queue *q);

/* Owner, while no thief changes the queue; for FJI_CHECKED builds and tests. Returns whether the
 * invariants hold, as far as they can be checked at rest. */
bool fji_queue_valid(const fji_queue *q);

/* Owner. Returns whether typed code runs. It keeps the boundary in a register, and fast.top is the
 * END below cell 0, so that the plain tier takes its slow paths. */
static inline bool fji_queue_in_typed(const fji_queue *q)
{
    return q->fast.top < q->cells;
}

/* Owner. Stores b, the boundary after a take or a give-back. */
static inline void fji_queue_set_boundary(fji_queue *q, fj_cell *b)
{
    if (fji_queue_in_typed(q))
        q->typed_hint = b;
    else
        q->fast.top = fji_queue_reclaim(q, b, q->cells);
}

/* Any thread. Returns the position of cell c. */
static inline uint32_t fji_queue_position(const fji_queue *q, const fj_cell *c)
{
    return (uint32_t)(c - q->cells);
}

#endif /* FJI_QUEUE_H */
