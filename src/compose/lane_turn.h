/* SPDX-License-Identifier: MIT */
/*
 * lane_turn.h - the record of a lane, and the turns in which threads run its actions
 *
 * lane.c has the public functions, lane_turn.c the turns. A lane has one callback, its turn, which
 * it queues in the pool when an action may begin. The worker that is called runs actions of the
 * lane. All state is protected by one lock, which a thread holds for a few instructions, never while
 * it runs an action, calls a callback or queues the turn. Each action needs the lock when it is given
 * to the lane, and again when the action before it in the same turn has returned, or once for all
 * actions of a window.
 *
 * State
 *   ring       the waiting actions, at the positions head to tail - 1
 *   running    how many actions run; at most width
 *   offered    the turn is queued in the pool, or about to be
 *   pauses     calls of fj_lane_pause() without their fj_lane_resume(); no action begins
 *   window     actions that a thread has taken out of the ring together; they still wait, until the
 *              thread begins them one by one: see below
 *   cancelling how many threads cancel waiting actions now; no action begins
 *   callers    calls that wait, or that run actions because the lane is full
 *   producers  the calls that wait for room, oldest first, each with its action
 *   drainers   the calls that wait until the lane is empty; ender: the call of fj_lane_destroy()
 *
 * Transitions, each with the lock
 *   put        tail + 1, or the action waits with its producer          lane.c
 *   begin      head + 1, running + 1; then admit                        lane_turn.c
 *   end        running - 1                                              lane_turn.c
 *   offer      offered becomes true; the caller queues the turn         lane_turn.c
 *   turn       offered becomes false; the called thread begins actions  lane_turn.c
 *   open       up to FJI_LANE_WINDOW actions leave the ring as the window lane_turn.c
 *   revoke     the waiting actions of the window return to the ring     lane_turn.c
 *   admit      actions of producers move to the ring while it has room  lane_turn.c
 *   settle     if the lane is empty, drainers and ender are released    lane_turn.c
 *
 * Invariants, whenever the lock is free
 *   L1  running <= width. At most `capacity` actions wait, if capacity is not 0.
 *   L2  If an action may begin (one waits, running < width, pauses and cancelling are 0), offered is
 *       true, or a thread serves the lane and looks again before it stops.
 *   L3  A producer waits only while the ring has no room.
 *   L4  While offered, running, cancelling or callers is not 0, ender is not released. So a thread
 *       that is counted in one of them may use the lane without the lock.
 *
 * One turn is enough for every width. A thread that begins an action while others wait and the
 * width allows more offers the turn again, before it runs the action. So if the action blocks,
 * another worker continues. While the lane is busy, an offered turn is usually queued already, and
 * most actions need no call of the pool.
 *
 * Windows. The thread that serves a lane of width 1 without a capacity takes several actions out of
 * the ring at once, into an array on its stack, and then needs no lock until it has run them. `cursor`
 * is the index of the next action of the array. The thread claims an action by a CAS that adds 1.
 * Another thread that pauses or cancels revokes the window, with the lock: its CAS sets `cursor` to
 * FJI_LANE_REVOKED, so the thread claims no more, and it puts the actions from the old cursor on back
 * to the front of the ring, whose cells are kept free for them. The thread that serves leaves its array
 * only after it has revoked the window itself, with the lock. Wider lanes have no windows, because
 * actions of a second window would begin before earlier ones of the first. Lanes with a capacity have
 * none, because each action that begins makes room.
 *
 * A thread that cannot queue the turn, because there is no memory or the pool is shut down, serves
 * the lane itself (L2). If the pool has stopped, lane_serve() cancels the waiting actions instead.
 *
 * Ordering. The lock orders everything: what an action did before the next action of a lane of width
 * 1, and before the return of fj_lane_drain() (plat/lock.c).
 */
#ifndef FJI_LANE_TURN_H
#define FJI_LANE_TURN_H

#include <forkjoin/lane.h>
#include <stdbool.h>

#include "plat/plat.h"

/* A waiting action, or a future. */
typedef struct fji_lane_cell {
    fj_action_fn *action; /* NULL: `arg` is an fj_future */
    void *arg;
} fji_lane_cell;

/* A call that waits. The struct is a local variable of the waiting thread. A thread that releases
 * the call takes the struct out of its list with the lock, and later runs `future`, which is done
 * then. */
typedef struct fji_lane_waiter {
    fj_future future;
    struct fji_lane_waiter *next;
    fji_lane_cell cell; /* of a producer: its action */
    int err;            /* what the call returns */
    uint32_t inside;    /* of a producer: how many actions of the lane its thread runs */
    bool released;      /* it is in no list any more */
} fji_lane_waiter;

struct fj_lane {
    fj_callback turn; /* first: lane_turn() casts it to the lane */
    fj_lane_options options;
    uint32_t width; /* options.width, or UINT32_MAX for no limit */

    _Alignas(64) fji_lock lock; /* protects the members below */
    uint32_t running;
    uint32_t pauses;
    uint32_t cancelling;
    uint32_t callers;
    uint32_t waits_inside; /* sum of `inside` of the producers */
    bool offered, closed;
    fji_lane_cell *ring; /* the action at position i is in cell i % size */
    size_t size;         /* number of cells, a power of two */
    uint64_t head, tail;
    fji_lane_waiter *producers, **producers_end, *drainers, *ender;
    fji_lane_cell *window; /* NULL: there is no window */
    uint32_t window_n;     /* number of actions that the window had, if there is one, else 0 */

    _Alignas(64) uint32_t cursor; /* changed by CAS */
};

#define FJI_LANE_REVOKED UINT32_MAX /* a value of `cursor` */

/* Returns the number of actions in the ring. With the lock. */
static inline size_t fji_lane_count(const fj_lane *l)
{
    return (size_t)(l->tail - l->head);
}

/* Returns whether the ring has a free cell that is not kept for the window. With the lock. */
static inline bool fji_lane_has_cell(const fj_lane *l)
{
    return fji_lane_count(l) + l->window_n < l->size;
}

/* Returns whether one more action may wait. With the lock. */
static inline bool fji_lane_has_room(const fj_lane *l)
{
    return l->options.capacity == 0 || fji_lane_count(l) < l->options.capacity;
}

/* Appends an action. With the lock; the ring has a free cell. */
static inline void fji_lane_push(fj_lane *l, fji_lane_cell cell)
{
    l->ring[l->tail++ & (l->size - 1)] = cell;
}

/* Returns whether the oldest waiting action may begin. With the lock. */
static inline bool fji_lane_may_begin(const fj_lane *l)
{
    return l->head != l->tail && l->running < l->width && l->pauses == 0 && l->cancelling == 0;
}

/* If an action may begin and the turn is not offered, sets `offered` and returns true: the caller
 * drops the lock and calls fji_lane_offer(). With the lock. */
static inline bool fji_lane_must_offer(fj_lane *l)
{
    if (l->offered || !fji_lane_may_begin(l)) return false;
    return l->offered = true;
}

/* Returns how many actions of `l` the calling thread runs, one inside the other. It is above 1 only if
 * an action has filled a lane with FJ_LANE_CALLER_RUNS. */
uint32_t fji_lane_depth(const fj_lane *l);

/* The function of the turn. */
void fji_lane_turn(fj_callback *c, int err);

/* Called after fji_lane_must_offer() has returned true, without the lock: queues the turn in the
 * pool. If that fails, serves the lane. */
void fji_lane_offer(fj_lane *l);

/* Runs the waiting actions in the calling thread, as long as they may begin. Called after
 * fji_lane_must_offer() has returned true, if the turn could not be queued. Without the lock. LAST
 * TOUCH of *l, unless the caller knows that the lane is in use. */
void fji_lane_serve(fj_lane *l);

/* Begins and runs one action, which may begin, in the calling thread, which is counted in
 * l->callers. Called with the lock; returns without it. Returns false in a child process that the
 * action has made by fork(), where the lane must not be used. */
bool fji_lane_serve_one(fj_lane *l);

/* Takes the waiting actions of the window back into the ring, if there is a window. With the
 * lock. */
void fji_lane_revoke(fj_lane *l);

/* Cancels the actions that wait now. With the lock, but drops it while it cancels an action. Returns
 * their number. */
size_t fji_lane_discard(fj_lane *l);

/* Moves actions of producers to the ring while it has room, or refuses them if the lane is closed.
 * If the lane is empty then, takes drainers and ender out of their lists as well. Returns the list of
 * the calls to release. With the lock. */
fji_lane_waiter *fji_lane_settle(fj_lane *l);

/* Releases the calls of the list: they return. Without the lock. */
void fji_lane_release(fji_lane_waiter *list);

#endif /* FJI_LANE_TURN_H */
