/* SPDX-License-Identifier: MIT */
/*
 * queue.h - a worker's queue: the owner pushes and takes at one end, thieves take at the other
 *
 * Most tasks are taken back by their owner, so a push and a take have to cost only a few plain
 * instructions. The owner of a closed queue therefore executes only light fences, which cost
 * nothing at run time. The first thief opens the queue, and the owner closes it again after many
 * takes without a steal. If the queue holds many tasks, the owner closes only the upper half, so
 * that thieves take from the lower half and the two do not disturb each other. In a pool without the
 * heavy fence, and in a FIFO pool, a queue is never closed.
 *
 * The cells are one range of addresses that never moves: the addresses are reserved at once, and
 * memory is added as the queue grows. So the address of a cell stays valid.
 *
 *     cells[-2]  cells[-1]   END, END. fast.top normally points to the boundary. Under typed code,
 *                            that is, while the owner runs functions that FJ_TASK generates, it
 *                            points to cells[-1]. The owner also reads the cell below fast.top
 *     cells[0] ..            the oldest task            <- thieves, at base.index
 *     ..                     the youngest task
 *     ..  FREE FREE FREE     the first FREE cell is the boundary  <- the owner
 *     cells[capacity]        END
 *
 * The word `item` of a cell (only the owner writes it)
 *     FREE       no task; all cells above are FREE as well
 *     TOMBSTONE  no task; its task was joined or taken out while a cell above it was in use
 *     CLAIM      the owner wants the task and does not know yet whether a thief has taken it
 *     END        a sentinel
 *     else       a task: a pointer with tags, or ACTION (item.h). Below base.index the task was
 *                stolen. The item of a stolen task stays in the cell until the task is joined. If
 *                the task is detached, the owner may use its cell again as soon as index is above
 *                the cell. So the thief of a detached task copies what it needs before its CAS.
 *
 * The word `base` (changed by CAS; while it is LOCKED, only the owner changes it, by a store)
 *
 *      63                          30 29                    2 1      0
 *     +------------------------------+-----------------------+--------+
 *     |            epoch             |         index         | state  |
 *     +------------------------------+-----------------------+--------+
 *
 *     CLOSED  from position `limit` on: a thief has to open the queue to take a task, and the owner
 *             takes with plain loads and stores. Below `limit` as OPEN, but the owner opens the
 *             queue before it takes such a cell. Only in a pool that has the heavy fence and is not
 *             FIFO. index <= limit
 *     OPEN    thieves take by incrementing index; the owner executes a full fence at each take
 *     LOCKED  the owner moves tasks to other cells; thieves take nothing and try again later
 *
 * The word `floor`: the lowest cell that the owner may take without reading base. A thief stores
 * MAX to make the owner read base. An unnecessary MAX costs the owner time and has no other effect.
 *
 * Push    c.item = task (release); light fence; read the pool's control word.
 *
 * Take    by the owner, of any cell c that it has pushed, topmost or not:
 *           c.item = FREE if c is topmost, else CLAIM. The owner replaces CLAIM by TOMBSTONE only
 *           when it has the task, because a thief skips a TOMBSTONE.
 *           light fence; if c >= floor, the task is the owner's.   -- this is the whole fast path
 *           Otherwise a full fence, and the owner reads base. If a CAS below fails, it reads base
 *           again and decides again.
 *             index > c          stolen: restore c.item, wait for the thief, give the cell back
 *             CLOSED             a thief has stored MAX, or c is below limit: floor = MAX, CAS to
 *                                OPEN, decide again
 *             OPEN, index == c   CAS to epoch+1. The new epoch, not the index, makes the CAS of a
 *                                thief that is about to take c fail.
 *             OPEN, index < c    the owner's: a thief that reaches c reads FREE or CLAIM in c
 *
 * Steal   read base, then the cell at index (acquire):
 *             FREE, END          EMPTY if base has not changed, else RETRY
 *             LOCKED, CLAIM      RETRY
 *             CLOSED,            as OPEN, but the CAS leaves the state CLOSED
 *               index < limit
 *             CLOSED             RETRY if another thief is opening the queue. Otherwise
 *                                floor = MAX; wait a short time for the owner to open the queue. If
 *                                base changes: RETRY. If not, for example because the owner runs a
 *                                long body: heavy fence, read the cell again,
 *                                CAS {index+1, epoch, OPEN}
 *             OPEN               thief's fence, read the cell again, CAS {index+1, epoch, OPEN}.
 *                                The fence is fji_fence_thief(): full, except on x86-64.
 *             If the CAS fails, or the second read finds no task: RETRY. The thief takes a
 *             TOMBSTONE like a task, and then continues with the next cell.
 *
 * Reclaim  The owner frees the TOMBSTONEs directly below the boundary. Plain code frees all of
 *         them. Typed code keeps positions in registers, so it frees only the TOMBSTONEs at or
 *         above the position of its next fork.
 *           item = FREE in each of these cells, then
 *           CAS {min(index, position of the lowest freed cell), epoch+1, OPEN}
 *         While the queue has TOMBSTONEs it is OPEN and is not closed. So every take uses the slow
 *         path, and the caller reclaims after it.
 *
 * Give back  The owner frees a cell c < index, whose task was stolen, and is done or is detached.
 *         If c is topmost: item = FREE, then CAS {position of c, epoch+1, state unchanged}. If the
 *         state is CLOSED, floor = c and limit = the position of c before the CAS, and floor = MAX
 *         if the CAS fails. If c is not topmost: item = TOMBSTONE.
 *
 * Close   after a take of a topmost cell c from an OPEN queue that may be CLOSED and has no
 *         TOMBSTONE. If FJI_SPLIT_MIN or more cells lie between index and c, limit = the middle
 *         between the two. If not, but FJI_CLOSE_AFTER such takes have left index unchanged,
 *         limit = index. Then floor = the cell at limit, and CAS {index, epoch+1, CLOSED}; if the
 *         CAS fails, floor = MAX. Every store that lowers floor is followed by a CAS on base. So a
 *         thief that reads CLOSED stores MAX after that store, and MAX is not overwritten. limit
 *         changes only while the queue is OPEN or, in a give-back, before a CAS with a new epoch. So
 *         if a thief reads a limit that does not belong to the base it has read, its CAS fails.
 *
 * Invariants
 *   I1  item != FREE in every cell below index, except during a take, a reclaim or a give-back.
 *   I2  A task is taken once: by its owner's take, or by the thief whose CAS moved index over it.
 *       From limit on, while the queue is CLOSED, floor makes the two exclude each other; otherwise
 *       the epoch does.
 *   I3  index goes down only with a new epoch. So if a cell is used again after a thief has read
 *       base, the CAS of this thief fails.
 *   I4  A position is used again only when index <= position.
 *   I5  `state` of a cell is 0 unless its task was stolen and the cell is not yet given back.
 *
 * Why take and steal exclude each other
 *   CLOSED  The thief stores floor = MAX, executes the heavy fence and then reads the cell. The
 *           heavy fence takes effect on the owner's CPU at some moment. If the owner has loaded
 *           floor before that moment, it has stored to the cell before that moment too, and the
 *           thief reads FREE or CLAIM. Otherwise the owner loads MAX, finds CLOSED and changes base
 *           before it takes the task, so the thief's CAS fails.
 *   OPEN    If index < c when the owner reads base, index reaches c only later. A thief that then
 *           reads index == c reads the cell after its own fence. So it sees the owner's store to
 *           the cell, which came before the owner's full fence. If index == c when the owner reads
 *           base, the owner and the thief both need a CAS on base, and one of the two fails.
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
    fj_cell *cells; /* the cell at position 0 */
    /* Used under typed code, while fast.top points to an END instead of the boundary: */
    fj_cell *typed_hint; /* a cell near the boundary: the search for the boundary starts here */
    /* The lowest cell of the plain tasks forked under typed code. A join of such a task frees no
     * TOMBSTONE below this cell. */
    fj_cell *typed_low;
    uint32_t typed_count; /* number of plain tasks forked under typed code and not joined */
    /* The owner touches no cell below this one: `cells`, or a higher cell while the tasks below it
     * are hidden (hide.c). */
    fj_cell *shown;
    uint32_t hidden_index; /* while tasks are hidden: index of base when they were hidden */
    /* Used under typed code and otherwise: */
    uint32_t capacity;   /* number of cells, without the END cells below and above them */
    uint32_t tombstones; /* number of cells that hold TOMBSTONE */
    uint32_t wait;       /* how many compactions to skip, because the last one freed few cells */
    /* How many topmost cells the owner has taken from the OPEN queue since index last changed. */
    uint32_t pops_since_steal;
    uint32_t last_index; /* index of base at the last take that pops_since_steal counts */

    /* Used by thieves. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t base;
    uint64_t openings; /* statistic: changes from CLOSED to OPEN, by the owner or a thief */
    uint64_t barriers; /* statistic: heavy fences that thieves executed for this queue */
    uint32_t limit;    /* while the queue is CLOSED: thieves take freely below this position */
    uint32_t opening;  /* 1 while a thief opens the queue; other thieves get RETRY meanwhile */
    fj_cell *first;    /* equal to `cells`, but in the cache line that thieves read */

    /* Set by fji_queue_init(). */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_range range; /* the addresses of the cells */
    bool asymmetric; /* the queue may be CLOSED: there is a heavy fence, and the pool is not FIFO */
} fji_queue;

/* "Owner", "Thief" or "Any thread" at the beginning of a comment says which thread may call the
 * function. No function takes a lock. */

/*
 * Initialises *q, which is zeroed, as an empty queue of `first` cells. It can grow to `limit`
 * cells, or to fewer if the system refuses to reserve that many addresses. `asymmetric`: whether
 * the queue may be CLOSED; then it is CLOSED at first, otherwise it is OPEN. Returns false if there
 * is no memory for `first` cells. Called before other threads know q.
 */
bool fji_queue_init(fji_queue *q, uint32_t first, uint32_t limit, bool asymmetric);

/* Frees the cells. No other thread may use q any more. */
void fji_queue_fini(fji_queue *q);

/* Empties the queue and forgets its tasks. Called in the child process after fork(), where no other
 * thread exists. */
void fji_queue_reset(fji_queue *q);

/*
 * Owner. Returns the boundary, or the END above the last cell if no cell is free. Searches from the
 * cell `near`, up over cells in use or down over free cells. If `near` is neither a cell of the
 * queue nor the END above the last cell, searches from typed_hint.
 */
fj_cell *fji_queue_boundary(fji_queue *q, fj_cell *near);

/*
 * Owner. Returns the boundary, which is a free cell, or NULL if the queue is full and cannot get
 * space. If the queue is full, compacts it, which moves tasks, or grows it. Under typed code it
 * only grows the queue, because no task may be moved. The search for the boundary starts at `near`,
 * as in fji_queue_boundary(). The average cost of a call does not depend on the length of the
 * queue.
 */
fj_cell *fji_queue_room(fji_queue *q, fj_cell *near);

/*
 * Owner, if the queue has no task to take and typed code does not run. If the boundary b is in the
 * upper half of the queue, compacts the queue. Returns the new boundary. In a FIFO pool thieves and
 * the owner take at the low end, so the positions of the queued tasks only rise. Without this call,
 * typed code, under which no task may be moved, would reach the END and make the queue grow.
 */
fj_cell *fji_queue_rewind(fji_queue *q, fj_cell *b);

/* Owner, not under typed code. Does nothing if the queue has at most FJI_QUEUE_KEPT cells.
 * Otherwise compacts the queue and stores the new boundary in fast.top. If the queue is empty then,
 * keeps FJI_QUEUE_KEPT cells and returns the memory of the others to the system. If the system
 * refuses that, the queue keeps all cells. */
void fji_queue_shrink(fji_queue *q);

/*
 * Owner. Frees the TOMBSTONEs directly below the boundary b, but none below `low`. Returns the new
 * boundary.
 */
fj_cell *fji_queue_reclaim(fji_queue *q, fj_cell *b, fj_cell *low);

/*
 * Owner. Tries to take the task `item` of cell c, which the owner has pushed and not joined.
 * `popped` is true if c was topmost, and fji_pop_topmost() has already stored FREE into c and then
 * found that floor is above c. Returns true if the task is the owner's. If c was topmost, c is then
 * FREE and *boundary is c; otherwise c is a TOMBSTONE and *boundary is unchanged. Returns false if
 * a thief has the task; c then holds `item` again and *boundary is unchanged.
 */
bool fji_queue_take(fji_queue *q, fj_cell *c, uintptr_t item, bool popped, fj_cell **boundary);

/* Owner. Frees cell c, whose task was stolen and is done; the owner has set c->state to 0. A
 * detached task need not be done, because its thief does not use the cell. If c is not topmost, it
 * becomes a TOMBSTONE. Returns the boundary. */
fj_cell *fji_queue_give_back(fji_queue *q, fj_cell *c);

/* Owner. Stores fn and arg into the two words beside the item of the free cell c. For an action
 * they are its function and its argument. For a future, fn is the root of a completer, or NULL. The
 * caller then publishes the words by a release store of the item. */
void fji_cell_put_action(fj_cell *c, fj_action_fn *fn, void *arg);

/* Thief. Tries once to take the oldest task of the queue. Sets *taken if it returns SUCCESS. If it
 * returns EMPTY or RETRY, taken->fn and taken->arg may have changed. */
fji_steal_result fji_queue_steal(fji_queue *q, fji_taken *taken);

/* A state word that a waiting thief has read, and the value that the thief has read from it. */
typedef struct fji_link {
    const uint32_t *word;
    uint32_t seen;
} fji_link;

/*
 * Thief, with conditions, for a thread that waits for a task and may run only tasks that the
 * awaited task waits for. Tries once to take the oldest task of the queue, if it is at position
 * `from` or above and if the n words in `links` still have the values that the thief has seen. The
 * words are read again after the last read of the item in the cell and before the CAS. So the task
 * that is taken was in the queue while the words had these values. If n is not 0, no action is
 * taken. If root is not 0, only a completer with this root is taken. Returns EMPTY if the oldest
 * task does not meet the conditions. Otherwise as fji_queue_steal().
 */
fji_steal_result fji_queue_steal_for(fji_queue *q, uint32_t from, const fji_link *links, int n,
                                     uintptr_t root, fji_taken *taken);

/* Thief. As fji_queue_steal(), but returns EMPTY if the oldest task is typed. */
fji_steal_result fji_queue_steal_untyped(fji_queue *q, fji_taken *taken);

/* What fji_queue_hide() saves for fji_queue_show(). */
typedef struct fji_hidden {
    fj_cell *top;   /* fast.top */
    fj_cell *low;   /* typed_low */
    uint32_t count; /* typed_count */
    bool separated; /* the queue had space for the separator */
} fji_hidden;

/*
 * Owner, while no task of its queue is hidden. Hides the tasks of the queue: until fji_queue_show(),
 * thieves take only tasks that the owner forks from now on. The owner may fork and join as usual,
 * but must not join the hidden tasks. It is not under typed code meanwhile, whether it was before or
 * not. hide.c explains the protocol.
 */
void fji_queue_hide(fji_queue *q, fji_hidden *h);

/* Owner. Ends fji_queue_hide(). The owner has joined all tasks that it has forked since then;
 * detached tasks may be left in the queue. Returns whether the queue has a task to take. The caller
 * then wakes a worker, as after a push. */
bool fji_queue_show(fji_queue *q, const fji_hidden *h);

/* Any thread. Returns false if the queue had no task to take. Returns true if it may have one, and
 * always while base is LOCKED. */
bool fji_queue_maybe(const fji_queue *q);

/* Any thread. Returns the number of queued tasks. It is an estimate if another thread changes the
 * queue meanwhile. */
uint32_t fji_queue_count(const fji_queue *q);

/* Any thread. Returns how many bytes of memory the cells have. */
size_t fji_queue_bytes(const fji_queue *q);

/* Any thread, while no other thread changes the queue. For FJI_CHECKED builds and tests. Returns
 * whether the invariants hold that can be checked in a queue that does not change. */
bool fji_queue_valid(const fji_queue *q);

/* Owner, or any thread while the owner does not run a task. Returns whether the owner runs typed
 * code. Typed code keeps the boundary in a register. Meanwhile fast.top points to the END below
 * cell 0, so that the plain tier takes its slow paths. */
static inline bool fji_queue_in_typed(const fji_queue *q)
{
    return q->fast.top < q->cells;
}

/* Owner, after a take or a give-back; b is the boundary. Under typed code, stores b in typed_hint.
 * Otherwise reclaims the TOMBSTONEs directly below b, and stores the boundary that results in
 * fast.top. */
static inline void fji_queue_set_boundary(fji_queue *q, fj_cell *b)
{
    if (fji_queue_in_typed(q))
        q->typed_hint = b;
    else
        q->fast.top = fji_queue_reclaim(q, b, q->cells);
}

/* Any thread. Returns the position of cell c in the queue. */
static inline uint32_t fji_queue_position(const fji_queue *q, const fj_cell *c)
{
    return (uint32_t)(c - q->cells);
}

#endif /* FJI_QUEUE_H */
