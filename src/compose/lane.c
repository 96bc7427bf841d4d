/* SPDX-License-Identifier: MIT */
/*
 * lane.c - lanes: giving actions to a lane, waiting for it, pausing, cancelling, ending it
 *
 * lane_turn.h explains the state of a lane, and lane_turn.c runs the actions.
 *
 * A call that waits, for room or for an empty lane, is a local struct in a list of the lane, with a
 * future. The thread that makes room moves the action of the oldest such call to the ring itself, so
 * the calls keep their order, and a call that is released needs no second attempt. The future belongs
 * to the pool, so the wait is a managed block: it is interruptible, a waiting worker is replaced, and
 * a thread that waits for a pool without threads runs the tasks of the pool.
 */
#include "compose/lane_turn.h"

#include "plat/atomic.h"
#include "plat/config.h"
#include "plat/memory.h"

/* The largest number of cells. */
#define RING_MOST (SIZE_MAX / 2 / sizeof(fji_lane_cell))

/* ---- Creation -------------------------------------------------------------------------------- */

static bool options_ok(const fj_lane_options *o)
{
    for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
        if (o->reserved[i] != 0) return false;
    if (o->full != FJ_LANE_WAITS && o->full != FJ_LANE_REFUSES && o->full != FJ_LANE_CALLER_RUNS)
        return false;
    return o->priority == FJ_PRIORITY_NORMAL || o->priority == FJ_PRIORITY_HIGH ||
           o->priority == FJ_PRIORITY_BACKGROUND;
}

/* Allocates a ring of `size` cells. Returns NULL if there is no memory. */
static fji_lane_cell *lane_ring(fj_pool *pool, size_t size)
{
    return fji_pool_block(pool, FJI_MEMORY_OTHER, size * sizeof(fji_lane_cell));
}

int fj_lane_create(fj_lane **lane, const fj_lane_options *o)
{
    const fj_lane_options defaults = {0};

    if (o == NULL) o = &defaults;
    if (lane == NULL || !options_ok(o)) return FJ_EINVAL;
    fj_lane *l = fji_pool_block(o->pool, FJI_MEMORY_OTHER, sizeof *l);
    fji_lane_cell *ring = lane_ring(o->pool, FJI_LANE_FIRST);
    if (l == NULL || ring == NULL) {
        fji_block_free(ring);
        fji_block_free(l);
        return FJ_ENOMEM;
    }
    fj_callback_init(&l->turn, fji_lane_turn);
    l->options = *o;
    l->width = o->width != 0 ? o->width : UINT32_MAX;
    l->ring = ring;
    l->size = FJI_LANE_FIRST;
    l->producers_end = &l->producers;
    *lane = l;
    return FJ_OK;
}

/* ---- Calls that wait ------------------------------------------------------------------------- */

static int waiter_run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

/* Prepares the wait of the calling thread. With the lock. */
static void waiter_init(fj_lane *l, fji_lane_waiter *w)
{
    l->callers++;
    w->next = NULL;
    w->released = false;
    w->inside = 0;
    w->err = FJ_OK;
    /* A thread outside the pool does not become a guest: the pool may end while the lane is
     * paused. */
    fji_future_init(&w->future, fji_future_run, waiter_run, FJI_FUTURE_NOT_BY_CALLERS);
    /* Without memory for the common pool the wait works too, but it does not run the tasks of a pool
     * that has no thread. */
    (void)fji_future_adopt(l->options.pool, &w->future);
}

/* Drops the lock and releases the calls that the state allows to return. Returns `err`. LAST TOUCH
 * of *l. */
static int lane_leave(fj_lane *l, int err)
{
    fji_lane_waiter *released = fji_lane_settle(l);

    fji_lock_drop(&l->lock);
    fji_lane_release(released);
    return err;
}

static void waiter_remove(fji_lane_waiter **list, fji_lane_waiter *w)
{
    while (*list != w) list = &(*list)->next;
    *list = w->next;
}

/* Removes `w` from the producers. */
static void producer_remove(fj_lane *l, fji_lane_waiter *w)
{
    waiter_remove(&l->producers, w);
    l->producers_end = &l->producers;
    while (*l->producers_end != NULL) l->producers_end = &(*l->producers_end)->next;
    l->waits_inside -= w->inside;
}

/* Waits until `w`, a producer or a drainer, is released, at most timeout_ns. Without the lock.
 * Returns w->err, or FJ_ETIMEDOUT or FJ_ECANCELED; then `w` is in no list any more. */
static int waiter_wait(fj_lane *l, fji_lane_waiter *w, int64_t timeout_ns, bool producer)
{
    int err = fj_future_wait(&w->future, timeout_ns);

    fji_lock_take(&l->lock);
    bool released = w->released;
    if (released)
        err = w->err;
    else if (producer)
        producer_remove(l, w);
    else
        waiter_remove(&l->drainers, w);
    l->callers--;
    (void)lane_leave(l, FJ_OK);
    /* If the wait has ended early, the thread that releases `w` may still use it. */
    if (released)
        (void)fj_future_wait_quietly(&w->future, FJ_FOREVER);
    else
        fji_future_disown(&w->future);
    return err;
}

/* Waits until the lane has room for the action, or is closed. With the lock, which it drops. */
static int lane_wait_for_room(fj_lane *l, fji_lane_cell cell)
{
    fji_lane_waiter w;
    uint32_t inside = fji_lane_depth(l);

    if (inside != 0 && l->waits_inside + inside >= l->width) {
        fji_lock_drop(&l->lock);
        return FJ_EDEADLK;
    }
    waiter_init(l, &w);
    w.cell = cell;
    w.inside = inside;
    l->waits_inside += inside;
    *l->producers_end = &w;
    l->producers_end = &w.next;
    fji_lock_drop(&l->lock);
    return waiter_wait(l, &w, FJ_FOREVER, true);
}

/* ---- Giving actions to a lane ---------------------------------------------------------------- */

/* Doubles the ring, whose size was `size`, unless another thread has done so. Without the lock.
 * Returns false if there is no memory. */
static bool lane_grow(fj_lane *l, size_t size)
{
    if (size > RING_MOST) return false;
    fji_lane_cell *ring = lane_ring(l->options.pool, 2 * size);

    if (ring == NULL) return false;
    fji_lock_take(&l->lock);
    if (l->size == size) {
        for (uint64_t i = l->head; i != l->tail; i++)
            ring[i & (2 * size - 1)] = l->ring[i & (size - 1)];
        fji_lane_cell *old = l->ring;
        l->ring = ring;
        l->size = 2 * size;
        ring = old;
    }
    fji_lock_drop(&l->lock);
    fji_block_free(ring);
    return true;
}

/* Offers the turn if necessary and releases calls, after a change of the state. With the lock, which
 * it drops. LAST TOUCH of *l, unless the caller knows that the lane is in use. */
static void lane_changed(fj_lane *l)
{
    fji_lane_waiter *released = fji_lane_settle(l);
    bool offer = fji_lane_must_offer(l);

    fji_lock_drop(&l->lock);
    fji_lane_release(released);
    if (offer) fji_lane_offer(l);
}

/* Called after fji_lane_must_offer() has returned true: queues the turn for the action at position
 * `at`. If that fails and the lane has no other action, takes the action back and returns the error.
 * Otherwise serves the lane. Without the lock. */
static int lane_offer_for(fj_lane *l, uint64_t at)
{
    int err = fj_callback_submit(l->options.pool, &l->turn, l->options.priority);

    if (err == FJ_OK) return FJ_OK;
    fji_lock_take(&l->lock);
    if (l->head == at && l->tail == at + 1) {
        l->tail = at;
        l->offered = false;
        lane_changed(l); /* a call that waited for room may take the place of the action */
        return err;
    }
    fji_lock_drop(&l->lock);
    fji_lane_serve(l);
    return FJ_OK;
}

/* Returns whether the lane refuses an action: it is closed, or its pool is shut down and the caller
 * does not work for the pool. With the lock. */
static bool lane_refuses(const fj_lane *l)
{
    const fj_pool *p = l->options.pool;

    return l->closed || (p != NULL && fj_pool_is_shutdown(p) && fj_current_pool() != p);
}

/* Called if the lane is full and its option is FJ_LANE_CALLER_RUNS: runs the oldest action, which
 * may begin. With the lock, which it drops meanwhile. Returns false in a child process, without the
 * lock. */
static bool lane_serve_for_room(fj_lane *l)
{
    l->callers++;
    if (!fji_lane_serve_one(l)) return false;
    fji_lock_take(&l->lock);
    l->callers--;
    return true;
}

/* Makes a free cell in the ring. With the lock, which it drops meanwhile. */
static bool lane_make_cell(fj_lane *l)
{
    size_t size = l->size;

    l->callers++;
    fji_lock_drop(&l->lock);
    bool grown = lane_grow(l, size);
    fji_lock_take(&l->lock);
    l->callers--;
    return grown;
}

/* Appends the action, for which there is a cell, and offers the turn if necessary. With the lock,
 * which it drops. */
static int lane_append(fj_lane *l, fji_lane_cell cell)
{
    uint64_t at = l->tail;

    fji_lane_push(l, cell);
    bool offer = fji_lane_must_offer(l);
    fji_lock_drop(&l->lock);
    return offer ? lane_offer_for(l, at) : FJ_OK;
}

static int lane_put(fj_lane *l, fji_lane_cell cell)
{
    fji_lock_take(&l->lock);
    for (;;) {
        if (FJI_UNLIKELY(lane_refuses(l))) return lane_leave(l, FJ_EREJECTED);
        if (fji_lane_has_room(l)) {
            if (FJI_LIKELY(fji_lane_has_cell(l))) return lane_append(l, cell);
            if (!lane_make_cell(l)) return lane_leave(l, FJ_ENOMEM);
            continue;
        }
        if (l->options.full == FJ_LANE_REFUSES) return lane_leave(l, FJ_EBUSY);
        if (l->options.full == FJ_LANE_WAITS || !fji_lane_may_begin(l))
            return lane_wait_for_room(l, cell);
        if (!lane_serve_for_room(l)) return FJ_ECANCELED;
    }
}

int fj_lane_execute(fj_lane *l, fj_action_fn *action, void *arg)
{
    if (l == NULL || action == NULL) return FJ_EINVAL;
    return lane_put(l, (fji_lane_cell){action, arg});
}

int fj_lane_submit(fj_lane *l, fj_future *f)
{
    if (l == NULL || f == NULL) return FJ_EINVAL;
    int err = fji_future_adopt(l->options.pool, f);
    if (err != FJ_OK) return err;
    err = lane_put(l, (fji_lane_cell){NULL, f});
    if (err != FJ_OK) fji_future_disown(f);
    return err;
}

int fj_lane_call(fj_lane *l, fj_call_fn *call, void *arg, fj_future **f)
{
    fj_future *made;

    if (l == NULL || f == NULL) return FJ_EINVAL;
    int err = fj_future_new_call(call, arg, fj_current_pool() == NULL, &made);
    if (err != FJ_OK) return err;
    err = fj_lane_submit(l, made);
    if (err == FJ_OK)
        *f = made;
    else
        fj_future_unref(made);
    return err;
}

/* ---- Control --------------------------------------------------------------------------------- */

int fj_lane_pause(fj_lane *l)
{
    if (l == NULL) return FJ_EINVAL;
    fji_lock_take(&l->lock);
    l->pauses++;
    fji_lane_revoke(l);
    fji_lock_drop(&l->lock);
    return FJ_OK;
}

int fj_lane_resume(fj_lane *l)
{
    if (l == NULL) return FJ_EINVAL;
    fji_lock_take(&l->lock);
    bool paused = l->pauses != 0;
    if (paused) l->pauses--;
    lane_changed(l);
    return paused ? FJ_OK : FJ_EINVAL;
}

size_t fj_lane_cancel(fj_lane *l)
{
    if (l == NULL) return 0;
    fji_lock_take(&l->lock);
    size_t n = fji_lane_discard(l);
    lane_changed(l);
    return n;
}

int fj_lane_close(fj_lane *l)
{
    if (l == NULL) return FJ_EINVAL;
    fji_lock_take(&l->lock);
    l->closed = true;
    lane_changed(l);
    return FJ_OK;
}

static bool lane_is_empty(const fj_lane *l)
{
    return l->head == l->tail && l->running == 0 && l->cancelling == 0;
}

int fj_lane_drain(fj_lane *l, int64_t timeout_ns)
{
    fji_lane_waiter w;

    if (l == NULL) return FJ_EINVAL;
    if (fji_lane_depth(l) != 0) return FJ_EDEADLK;
    fji_lock_take(&l->lock);
    bool empty = lane_is_empty(l);
    if (empty || timeout_ns <= 0) {
        fji_lock_drop(&l->lock);
        return empty ? FJ_OK : FJ_ETIMEDOUT;
    }
    waiter_init(l, &w);
    w.next = l->drainers;
    l->drainers = &w;
    fji_lock_drop(&l->lock);
    return waiter_wait(l, &w, timeout_ns, false);
}

int fj_lane_destroy(fj_lane *l)
{
    fji_lane_waiter w;

    if (l == NULL) return FJ_OK;
    if (fji_lane_depth(l) != 0) return FJ_EDEADLK;
    fji_lock_take(&l->lock);
    l->closed = true;
    if (l->pauses != 0) (void)fji_lane_discard(l);
    l->pauses = 0;
    if (lane_is_empty(l) && !l->offered && l->callers == 0) {
        fji_lock_drop(&l->lock);
    } else {
        waiter_init(l, &w);
        l->callers--; /* this call does not keep the lane from ending */
        l->ender = &w;
        lane_changed(l);
        (void)fj_future_wait_quietly(&w.future, FJ_FOREVER);
    }
    fji_block_free(l->ring);
    fji_block_free(l);
    return FJ_OK;
}

size_t fj_lane_pending(fj_lane *l)
{
    if (l == NULL) return 0;
    fji_lock_take(&l->lock);
    size_t n = fji_lane_count(l);
    /* relaxed: the thread that serves may begin an action meanwhile, so the number is a snapshot */
    if (l->window != NULL) n += l->window_n - fji_load_relaxed(&l->cursor);
    fji_lock_drop(&l->lock);
    return n;
}

size_t fj_lane_running(fj_lane *l)
{
    if (l == NULL) return 0;
    fji_lock_take(&l->lock);
    size_t n = l->running;
    fji_lock_drop(&l->lock);
    return n;
}
