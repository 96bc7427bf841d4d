/* SPDX-License-Identifier: MIT */
/*
 * lane_turn.c - the turns of a lane: threads run its actions, one after the other
 *
 * lane_turn.h explains the state of a lane, its transitions and invariants.
 */
#include "compose/lane_turn.h"

#include "plat/atomic.h"
#include "plat/config.h"
#include "plat/ticks.h"

/* The lanes whose actions the calling thread runs now, innermost first. */
typedef struct frame {
    const fj_lane *lane;
    struct frame *outer;
} frame;
static __thread frame *lane_here;

uint32_t fji_lane_depth(const fj_lane *l)
{
    uint32_t n = 0;

    for (const frame *f = lane_here; f != NULL; f = f->outer) n += f->lane == l;
    return n;
}

/* ---- Calls that wait ------------------------------------------------------------------------- */

/* Takes the oldest producer out of its list and puts it into *list. */
static void lane_take_producer(fj_lane *l, fji_lane_waiter **list, int err)
{
    fji_lane_waiter *w = l->producers;

    l->producers = w->next;
    if (l->producers == NULL) l->producers_end = &l->producers;
    l->waits_inside -= w->inside;
    w->err = err;
    w->released = true;
    w->next = *list;
    *list = w;
}

static void lane_take_waiter(fji_lane_waiter **from, fji_lane_waiter **list)
{
    fji_lane_waiter *w = *from;

    *from = w->next;
    w->released = true;
    w->next = *list;
    *list = w;
}

fji_lane_waiter *fji_lane_settle(fj_lane *l)
{
    fji_lane_waiter *list = NULL;

    while (l->producers != NULL && (l->closed || fji_lane_has_room(l))) {
        if (!l->closed) fji_lane_push(l, l->producers->cell);
        lane_take_producer(l, &list, l->closed ? FJ_EREJECTED : FJ_OK);
    }
    if (l->head != l->tail || l->running != 0 || l->cancelling != 0) return list;
    while (l->drainers != NULL) lane_take_waiter(&l->drainers, &list);
    if (l->ender != NULL && !l->offered && l->callers == 0) lane_take_waiter(&l->ender, &list);
    return list;
}

void fji_lane_release(fji_lane_waiter *list)
{
    while (list != NULL) {
        fji_lane_waiter *w = list;
        list = w->next;
        (void)w->future.task.fn(&w->future.task); /* LAST TOUCH of *w: its call returns. */
    }
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

static fji_lane_cell lane_pop(fj_lane *l)
{
    return l->ring[l->head++ & (l->size - 1)];
}

static void lane_cancel_cell(fj_lane *l, const fji_lane_cell *c)
{
    const fj_lane_options *o = &l->options;

    if (c->action == NULL)
        fji_future_discard(c->arg);
    else if (o->on_cancel != NULL)
        o->on_cancel(l, c->action, c->arg, o->arg);
}

void fji_lane_revoke(fj_lane *l)
{
    if (l->window == NULL) return;
    uint32_t from = fji_load_relaxed(&l->cursor); /* relaxed: the CAS decides */
    /* relaxed: each change of `cursor` is one atomic step. The lock, which was held when the window
     * was opened, orders the array. */
    while (!fji_cas_relaxed(&l->cursor, &from, FJI_LANE_REVOKED)) {}
    for (uint32_t i = l->window_n; i-- > from;) l->ring[--l->head & (l->size - 1)] = l->window[i];
    l->window = NULL;
    l->window_n = 0;
}

size_t fji_lane_discard(fj_lane *l)
{
    size_t n = 0;

    fji_lane_revoke(l);
    uint64_t end = l->tail;
    /* `cancelling` keeps other threads from beginning these actions, and the lane from being
     * freed. Another thread that cancels at the same time may take some of them. */
    l->cancelling++;
    for (; (int64_t)(end - l->head) > 0; n++) {
        fji_lane_cell c = lane_pop(l);
        fji_lane_waiter *released = fji_lane_settle(l);
        fji_lock_drop(&l->lock);
        fji_lane_release(released);
        lane_cancel_cell(l, &c);
        fji_lock_take(&l->lock);
    }
    l->cancelling--;
    return n;
}

/* Called when the pool has stopped: cancels the waiting actions and refuses those of producers. With
 * the lock. */
static void lane_stop(fj_lane *l)
{
    fji_lane_waiter *refused = NULL;

    while (l->producers != NULL) lane_take_producer(l, &refused, FJ_EREJECTED);
    l->cancelling++;
    fji_lock_drop(&l->lock);
    fji_lane_release(refused);
    fji_lock_take(&l->lock);
    l->cancelling--;
    (void)fji_lane_discard(l);
}

/* Returns whether the pool has stopped: nothing that waits shall run. A thread outside the pool may
 * ask too, also a worker of another pool that stops. The common pool stops only when no task is left
 * in it, and is replaced by the next one, so there only its own threads count: those in on_stop. */
static bool lane_is_stopped(const fj_lane *l)
{
    const fj_pool *p = l->options.pool;

    if (p == NULL && !fj_is_stopping()) return false;
    return fj_pool_is_terminating(p) || fj_pool_is_terminated(p);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Runs the action, and reports its error. Returns false if this is a child process that the action
 * has made by fork(): the lane must not be used there, because the thread that holds its lock may not
 * exist. */
static bool lane_run(fj_lane *l, const fji_lane_cell *c)
{
    const fj_lane_options *o = &l->options;
    uint32_t generation = fji_generation();

    if (c->action == NULL) {
        fj_task *t = &((fj_future *)c->arg)->task;
        (void)t->fn(t); /* LAST TOUCH of the future: the function completes it. */
        return generation == fji_generation();
    }
    int code = c->action(c->arg);
    if (generation != fji_generation()) return false;
    if (FJI_LIKELY(code == FJ_OK)) return true;
    if (o->on_error != NULL)
        o->on_error(l, code, o->arg);
    else
        fji_report(code);
    return true;
}

/* Queues the turn. Called after `offered` was set, without the lock. Returns whether it succeeded. */
static bool lane_submit_turn(fj_lane *l)
{
    return fj_callback_submit(l->options.pool, &l->turn, l->options.priority) == FJ_OK;
}

/* How long a thread runs actions. */
typedef struct stint {
    bool limited;   /* only for the length of a turn */
    bool over;      /* the turn has ended */
    uint32_t n;     /* actions that have begun */
    uint64_t began; /* in ticks */
} stint;

static bool stint_is_over(const fj_lane *l, const stint *s)
{
    const fj_lane_options *o = &l->options;

    if (!s->limited) return false;
    return s->n >= FJI_LANE_ACTIONS || fji_ticks() - s->began > FJI_LANE_TICKS ||
           fj_pool_has_work_before(o->pool, o->priority);
}

/* Begins the oldest action and runs it. Called with the lock, returns with the lock, except if it
 * returns false, in a child process (lane_run()). */
static bool lane_step(fj_lane *l, stint *s)
{
    frame here = {l, lane_here};
    /* If this thread runs an action of the lane already, the turn is not offered: in a pool without
     * workers, the offer would run the next action on the same stack. */
    bool nested = fji_lane_depth(l) != 0;
    fji_lane_cell c = lane_pop(l);

    l->running++;
    fji_lane_waiter *released = fji_lane_settle(l);
    bool offer = !nested && fji_lane_must_offer(l);
    fji_lock_drop(&l->lock);
    lane_here = &here;
    fji_lane_release(released);
    bool refused = offer && !lane_submit_turn(l);
    bool same = lane_run(l, &c);
    lane_here = here.outer;
    if (!same) return false;
    s->n++;
    s->over = stint_is_over(l, s);
    fji_lock_take(&l->lock);
    l->running--;
    if (refused) l->offered = false; /* L2: the caller looks again */
    return true;
}

/* Opens a window and runs its actions. Called with the lock, returns with the lock, except if it
 * returns false, in a child process (lane_run()). */
static bool lane_run_window(fj_lane *l, stint *s)
{
    fji_lane_cell cells[FJI_LANE_WINDOW];
    frame here = {l, lane_here};
    uint32_t n = 0;
    bool same = true;

    while (n < FJI_LANE_WINDOW && l->head != l->tail) cells[n++] = lane_pop(l);
    l->window = cells;
    l->window_n = n;
    fji_store_relaxed(&l->cursor, 0u); /* relaxed: another thread changes it with the lock only */
    l->running++;
    fji_lock_drop(&l->lock);
    lane_here = &here;
    for (uint32_t i = 0; i < n && same && !s->over && !lane_is_stopped(l); i++) {
        uint32_t at = i;
        /* relaxed: it decides only which thread has the action; this thread wrote the array */
        if (!fji_cas_relaxed(&l->cursor, &at, i + 1)) break;
        same = lane_run(l, &cells[i]);
        s->n++;
        s->over = stint_is_over(l, s);
    }
    lane_here = here.outer;
    if (!same) return false;
    fji_lock_take(&l->lock);
    fji_lane_revoke(l);
    l->running--;
    return true;
}

/* Runs actions, with the lock, which it drops meanwhile. `limited`: only for the length of a turn.
 * Returns false in a child process, without the lock. */
static bool lane_run_some(fj_lane *l, bool limited)
{
    stint s = {.limited = limited, .began = limited ? fji_ticks() : 0};

    while (!s.over && fji_lane_may_begin(l)) {
        if (lane_is_stopped(l)) {
            lane_stop(l);
            return true;
        }
        bool windows = l->width == 1 && l->options.capacity == 0;
        if (windows ? !lane_run_window(l, &s) : !lane_step(l, &s)) return false;
    }
    return true;
}

/* Ends a turn: offers the next one if actions may begin, and releases the calls that wait for an
 * empty lane. With the lock, which it drops. Returns false if the turn could not be queued: `offered`
 * is still set, and the caller continues to serve. LAST TOUCH of *l if it returns true. */
static bool lane_end_turn(fj_lane *l)
{
    fji_lane_waiter *released = fji_lane_settle(l);
    bool offer = fji_lane_must_offer(l);

    fji_lock_drop(&l->lock);
    fji_lane_release(released);
    return !offer || lane_submit_turn(l);
}

/* Runs actions. `offered` is set: this thread has the turn, or could not queue it. `limited`: see
 * lane_run_some(). */
static void lane_serve(fj_lane *l, bool limited)
{
    do {
        fji_lock_take(&l->lock);
        l->offered = false;
        if (!lane_run_some(l, limited)) return;
        limited = false; /* if the next turn cannot be queued, this thread continues */
    } while (!lane_end_turn(l));
}

void fji_lane_serve(fj_lane *l)
{
    lane_serve(l, false);
}

bool fji_lane_serve_one(fj_lane *l)
{
    stint s = {0};

    if (!lane_step(l, &s)) return false;
    if (!lane_end_turn(l)) lane_serve(l, false);
    return true;
}

void fji_lane_offer(fj_lane *l)
{
    if (!lane_submit_turn(l)) lane_serve(l, false);
}

void fji_lane_turn(fj_callback *c, int err)
{
    fj_lane *l = (fj_lane *)(void *)c; /* `turn` is the first member */

    if (err == FJ_OK) {
        /* In a pool without workers the turn runs in the thread that offers it, which would offer it
         * again from inside: it is not limited there. */
        lane_serve(l, fj_pool_parallelism(l->options.pool) > 0);
        return;
    }
    fji_lock_take(&l->lock);
    /* Again, because actions may be given to the lane meanwhile. A paused lane keeps its actions. */
    while (l->head != l->tail && l->pauses == 0) lane_stop(l);
    l->offered = false;
    fji_lane_waiter *released = fji_lane_settle(l);
    fji_lock_drop(&l->lock);
    fji_lane_release(released);
}
