/* SPDX-License-Identifier: MIT */
/*
 * timers.c - the timers of a pool: the wheel, its threads, its lock
 *
 * A pool that has timers has a record with a lock, a wheel and a thread. What is in the wheel
 * is changed under the lock only. A timer is in one of these:
 *
 *     new -> waiting (in the wheel) -> queued -> running -> done
 *                ^                                 |
 *                +-------- periodic ---------------+
 *
 *   schedule   submitter: under the lock, if the pool still takes work.
 *   fire       timer thread: under the lock out of the wheel; then into a submission queue;
 *              counted in `moving` meanwhile, so that a pool that is shut down does not end.
 *   rearm      the worker that ran it, under the lock, unless it is decided or being decided
 *              (COMPLETING), or the pool is shut down.
 *   cancel     whoever decides the future (future.c) has set COMPLETING before: takes the lock,
 *              and if it is in the wheel, out of it: then no queue and no worker has it, and
 *              it is let go. So either cancel finds it in the wheel, or rearm sees COMPLETING.
 *
 * A limit is put into the wheel after its future was submitted, so that a submission that is
 * refused leaves nothing behind and no action has been called for it:
 *
 *     fresh -> waiting (in the wheel) -> over
 *       |         |
 *       +---------+-> unneeded: its future is decided while it is out of the wheel. Under the lock.
 *
 * The submitter counts as a guest meanwhile: the body may have ended, and with it the pool.
 *
 * The thread that keeps the wheel sleeps on `kick` until the wheel's next moment; whoever adds an
 * earlier one changes it. The action of a limit is called by that thread, at once. Before it calls
 * one it stops keeping the wheel, and wakes the spare thread, which sleeps on `turn`, or starts a
 * new one. Whichever of the two has the lock first keeps the wheel from then on: the spare, while
 * the action runs, or the caller of a short action again. So an action delays other timers by no
 * more than it takes to wake or start a thread. The other thread becomes the spare, or leaves if
 * there is a spare. If no thread can be started the wheel waits for the end of the action. Each
 * thread counts as a guest of the pool, so the pool ends after it.
 *
 * Edges          from                       to                      carries
 *   timer.made   release store, fji_timers_of() acquire load            the record
 *   timer.ahead  acq_rel CAS, timer_ahead() the same                how far (aged builds)
 *   timer.kick   release add, timer_kick()  acquire load, the thread  the earlier moment
 *   timer.turn   release add, timers_turn() acquire load, timers_stand_by()  whose turn it is
 */

#include "pool/timers.h"

#include <stdio.h>

#include "sched/lifetime.h"
#include "sched/spawn.h"
#include "sched/wake.h"

/* Of the common pool: its lock is taken by threads that have not seen its end. */
static struct fji_timers timers_common;
/* The pool whose timers the calling thread looks after. */
static __thread const fj_pool *timers_self;

FJI_STATIC_ASSERT(sizeof(fji_moment) == sizeof(int64_t) + 3 * sizeof(void *) + 8,
                  "fj_timer has a fji_moment inside");

static fji_moment *moment_of(fj_timer *t)
{
    return (fji_moment *)(void *)&t->when;
}

static fj_timer *timer_of(fji_moment *m)
{
    return (fj_timer *)(void *)((char *)m - offsetof(fj_timer, when));
}

/* ---- The clock ---------------------------------------------------------------------------------------- */

/*
 * How far the timers' clock is ahead of the system's: not at all, but in an aged build, where it
 * comes to a turn of nearly all the wheels soon after the first timer.
 */
static int64_t timer_ahead(void)
{
#if FJI_WRAP_TEST
    static int64_t ahead;
    int64_t none = 0, mine = FJI_START_CLOCK - fji_plat_now();

    /* [timer.ahead] acq_rel: one alone sets it, and all have the same.
     * [timer.ahead] both ends are here. */
    return fji_cas_acq_rel_64((uint64_t *)&ahead, (uint64_t *)&none, (uint64_t)mine) ? mine : none;
#else
    return 0;
#endif
}

int64_t fji_timers_now(void)
{
    return fji_plat_now() + timer_ahead();
}

/* A moment of that clock for fji_plat_wait(). */
static int64_t timer_deadline(int64_t when)
{
    return when == INT64_MAX ? FJ_FOREVER : when - timer_ahead();
}

int64_t fji_timers_later(int64_t now, int64_t by)
{
    if (by <= 0) return now;
    return by > INT64_MAX - now ? INT64_MAX : now + by;
}

/* ---- The threads -------------------------------------------------------------------------------------- */

struct fji_timers *fji_timers_if_made(const fj_pool *p)
{
    /* [timer.made] acquire <- release in fji_timers_of(). */
    return p != NULL ? fji_load_acquire(&p->timers) : NULL;
}

static void timer_kick(struct fji_timers *ts)
{
    /* [timer.kick] release -> acquire in the thread: what to look at. */
    fji_add_acq_rel(&ts->kick, 1);
    fji_plat_wake_one(&ts->kick);
}

/* With the lock, if there is a spare thread: it wakes up and looks. */
static void timers_turn(struct fji_timers *ts)
{
    ts->spare = false;
    ts->coming = true;
    /* [timer.turn] release -> acquire in timers_stand_by(): under the lock, so none is missed. */
    fji_add_acq_rel(&ts->turn, 1);
    fji_plat_wake_all(&ts->turn);
}

static void timers_main(void *arg);

/* With the lock: one more thread, counted as a guest before it is there. */
static bool timers_start(struct fji_timers *ts)
{
    fj_pool *p = ts->pool;
    char name[16];
    fji_creator how = {.stack_bytes = 0};

    fji_lock_take(&p->lock);
    fji_pool_add_guest(p);
    fji_lock_drop(&p->lock);
    (void)snprintf(name, sizeof name, "%s-timer", p->name);
    ts->threads++;
    ts->coming = true;
    if (fji_plat_thread_start(timers_main, ts, &how, name)) return true;
    ts->threads--;
    ts->coming = false;
    fji_pool_remove_guest(p);
    return false;
}

/* With the lock: leaves the wheel to the next thread that has the lock, and sees that one comes. */
static void timers_hand_over(struct fji_timers *ts)
{
    ts->kept = false;
    if (ts->coming) return;
    if (ts->spare)
        timers_turn(ts);
    else
        (void)timers_start(
            ts); /* or there is none, and this one goes on with it after the action */
}

/* With the lock: t has come into the wheel, or gone out of it. */
static void timers_count(struct fji_timers *ts, const fj_timer *t, uint64_t n)
{
    ts->waiting += n;
    if (t->period != 0) ts->series += n;
}

/* What has fired may have been the last that a pool which is shut down waited for. */
static void timers_try_end(fj_pool *p)
{
    /* relaxed: or told by a kick; a shutdown takes the lock after it has set the bit. */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) p->hooks->try_terminate(p, false);
}

/*
 * With the lock, which is let go of meanwhile: fires t. False: this thread does not keep the wheel
 * any more; `*gone`: nor is it a thread of the timers, as the action has called fork().
 */
static bool timers_fire_one(struct fji_timers *ts, fj_timer *t, bool *gone)
{
    const fji_timer_ops *ops = ts->ops; /* read under the lock */
    bool acts = ops->acts(t);
    uint32_t generation = fji_fork_generation;

    timers_count(ts, t, (uint64_t)-1);
    ts->moving++;
    if (acts) timers_hand_over(ts);
    fji_lock_drop(&ts->lock);
    ops->fire(t, ts->pool); /* a limit's own reference goes along */
    *gone = generation != fji_fork_generation;
    if (*gone) return false;
    fji_lock_take(&ts->lock);
    ts->moving--;
    bool keeps = !acts || !ts->kept;
    ts->kept = true;
    return keeps;
}

/* With the lock: fires all that is due. As timers_fire_one(). */
static bool timers_fire(struct fji_timers *ts, int64_t now, bool *gone)
{
    fji_moment *m;

    while (!fji_pool_stopping(ts->pool) && (m = fji_wheel_take(&ts->wheel, now)) != NULL) {
        fj_timer *t = timer_of(m);
        if (t->kind == FJI_TIMER_LIMIT)
            fji_store_relaxed(&t->kind, FJI_TIMER_EXPIRED); /* relaxed: the lock */
        if (!timers_fire_one(ts, t, gone)) return false;
    }
    return true;
}

/* With the lock. From now on, after a pause, the thread looks whether the pool is short. */
static bool timers_watch_after(struct fji_timers *ts, int64_t pause)
{
    ts->pause = pause < FJI_RETRY_MAX_NS ? pause : FJI_RETRY_MAX_NS;
    ts->watch = fji_timers_later(fji_timers_now(), ts->pause);
    return ts->watch < ts->sleeps;
}

/* With the lock, which is let go of meanwhile. Signals if it is time to, and the pool is short. */
static void timers_look(struct fji_timers *ts)
{
    if (fji_timers_now() < ts->watch) return;
    ts->watch = INT64_MAX; /* before the look, for a start that is refused after it */
    fji_lock_drop(&ts->lock);
    bool is_short = fji_spawn_is_short(ts->pool);
    if (is_short) fji_wake_one(ts->pool);
    fji_lock_take(&ts->lock);
    if (is_short) (void)timers_watch_after(ts, 2 * ts->pause);
}

/* With the lock: looks after the wheel until another thread does, or the pool stops. */
static void timers_keep(struct fji_timers *ts, bool *gone)
{
    fj_pool *p = ts->pool;

    ts->kept = true;
    while (!fji_pool_stopping(p)) {
        ts->sleeps = INT64_MIN;
        if (!timers_fire(ts, fji_timers_now(), gone)) return;
        timers_look(ts);
        /* [timer.kick] acquire <- release in timer_kick(): under the lock, so none is missed. */
        uint32_t seen = fji_load_acquire(&ts->kick);
        int64_t next = fji_wheel_next(&ts->wheel);
        if (ts->watch < next) next = ts->watch;
        ts->sleeps = next;
        fji_lock_drop(&ts->lock);
        timers_try_end(p);
        if (!fji_pool_stopping(p) && fji_timers_now() < next)
            (void)fji_plat_wait(&ts->kick, seen, timer_deadline(next));
        fji_lock_take(&ts->lock);
    }
    ts->kept = false;
}

/* With the lock: sleeps, as the spare, until it is this thread's turn. */
static void timers_stand_by(struct fji_timers *ts)
{
    ts->spare = true;
    /* [timer.turn] acquire <- release in timers_turn(). */
    uint32_t seen = fji_load_acquire(&ts->turn);
    fji_lock_drop(&ts->lock);
    timers_try_end(ts->pool); /* after its action */
    if (!fji_pool_stopping(ts->pool)) (void)fji_plat_wait(&ts->turn, seen, FJ_FOREVER);
    fji_lock_take(&ts->lock);
    /* [timer.turn] acquire <- as above. If it was called, another may be the spare by now. */
    if (fji_load_acquire(&ts->turn) == seen)
        ts->spare = false;
    else
        ts->coming = false;
}

static void timers_main(void *arg)
{
    struct fji_timers *ts = arg;
    fj_pool *p = ts->pool;
    bool gone = false;

    timers_self = p;
    fji_lock_take(&ts->lock);
    ts->coming = false;
    while (!fji_pool_stopping(p) && !gone) {
        if (!ts->kept)
            timers_keep(ts, &gone);
        else if (!ts->spare)
            timers_stand_by(ts);
        else
            break;
    }
    if (gone) return; /* in the child of fork(), whose pool does not count it */
    ts->threads--;
    fji_lock_drop(&ts->lock);
    timers_try_end(p);
    fji_pool_leave(p);
}

bool fji_timers_is_own_thread(const fj_pool *p)
{
    return timers_self == p;
}

/* With the lock: whether there is a thread. */
bool fji_timers_have_thread(struct fji_timers *ts)
{
    return ts->threads != 0 || timers_start(ts);
}

/* The record of p, made if need be. */
struct fji_timers *fji_timers_of(fj_pool *p)
{
    struct fji_timers *ts = fji_timers_if_made(p);

    if (ts != NULL) return ts;
    fji_lock_take(&p->lock);
    ts = p->timers;
    if (ts == NULL && (ts = p->is_common ? &timers_common : fji_plat_alloc(sizeof *ts)) != NULL) {
        ts->pool = p;
        ts->sleeps = INT64_MIN;
        ts->watch = INT64_MAX;
        fji_wheel_init(&ts->wheel, fji_timers_now());
        ts->kick = ts->turn = FJI_START_32;
        /* [timer.made] release -> acquire in fji_timers_if_made(): the record. */
        fji_store_release(&p->timers, ts);
        /* [timer.made] the record above, run below; partner: the fence in pool_shutdown(). */
        fji_fence_full();
    }
    fji_lock_drop(&p->lock);
    return ts;
}

void fji_timers_watch(fj_pool *p)
{
    struct fji_timers *ts = fji_pool_stopping(p) ? NULL : fji_timers_of(p);

    if (ts == NULL) return;
    fji_lock_take(&ts->lock);
    if (ts->watch == INT64_MAX && fji_timers_have_thread(ts) &&
        timers_watch_after(ts, FJI_RETRY_MIN_NS))
        timer_kick(ts);
    fji_lock_drop(&ts->lock);
}

/* ---- Into the wheel and out of it --------------------------------------------------------------------- */

void fji_timers_add(struct fji_timers *ts, fj_timer *t, int64_t when, const fji_timer_ops *ops)
{
    ts->ops = ops;
    /* relaxed: also read without the lock, by fj_timer_remaining(). */
    fji_store_relaxed(&t->when, when);
    fji_wheel_add(&ts->wheel, moment_of(t));
    timers_count(ts, t, 1);
    if (when < ts->sleeps) timer_kick(ts);
}

/* Takes t out; false: it was not waiting. A limit that is on its way into the wheel, for the first
 * time or from the hands of a shutdown, stays out of it. */
static bool timers_remove(struct fji_timers *ts, fj_timer *t)
{
    fji_lock_take(&ts->lock);
    bool waited = fji_moment_waits(moment_of(t));
    if (waited) {
        fji_wheel_remove(&ts->wheel, moment_of(t));
        timers_count(ts, t, (uint64_t)-1);
        /* relaxed: a shutdown that comes later looks itself. One that waits for this timer may
         * end now; it takes the lock before that. */
        if ((fji_load_relaxed(&ts->pool->run) & FJI_RUN_SHUTDOWN) != 0) timer_kick(ts);
    } else if (t->kind == FJI_TIMER_NEW || t->kind == FJI_TIMER_LIMIT) {
        fji_store_relaxed(&t->kind, FJI_TIMER_UNNEEDED); /* relaxed: the lock */
    }
    fji_lock_drop(&ts->lock); /* LAST TOUCH of *ts and its pool. */
    return waited;
}

enum fji_withdrawn fji_timers_withdraw(fj_future *f)
{
    fj_timer *t = (fj_timer *)f;

    /* [task.done] COMPLETING, set by the caller, above, the cell below; partner: the fence in
     * timer_schedule(). Either we find the timer in the wheel, or it is not put there. */
    fji_fence_full();
    /* [timer.made] acquire <- release in fji_task_mark_unqueued(): the timers of the pool. */
    fj_cell *submitted = fji_load_acquire(&f->task.cell);

    if (submitted == NULL || fji_task_is_orphaned(&f->task)) return FJI_TIMER_NOT_WAITING;
    /* What its body has left open, and a limit that is over: the pool may be gone. Otherwise it
     * cannot go before whoever runs or drops it has seen the outcome, which is being decided.
     * relaxed: LET_GO, OVER and UNNEEDED only ever come. */
    uint32_t kind = fji_load_relaxed(&t->kind);
    bool open = (fji_load_relaxed(&f->task.state) & FJI_RELEASED) != 0; /* relaxed: as above */
    if (kind == FJI_TIMER_EXPIRED || kind == FJI_TIMER_UNNEEDED || (kind == FJI_TIMER_TASK && open))
        return FJI_TIMER_NOT_WAITING;
    fj_pool *p = fji_cell_pool(submitted);
    if (!timers_remove(fji_timers_if_made(p), t)) return FJI_TIMER_NOT_WAITING;
    return kind == FJI_TIMER_TASK ? FJI_TIMER_WAITED : FJI_TIMER_LIMIT_WAITED;
}

/* ---- Shutdown ----------------------------------------------------------------------------------------- */

/* Whether a shutdown leaves t waiting: what runs once, unless told otherwise; limits of what
 * still runs, until the pool stops. */
static bool timer_stays(const fj_timer *t, bool all, bool stops)
{
    if (t->kind == FJI_TIMER_LIMIT) return !stops;
    return !all && t->period == 0;
}

/* With the lock, which is let go of meanwhile: t is out of the wheel, and over. */
static void timers_drop(struct fji_timers *ts, fj_timer *t)
{
    const fji_timer_ops *ops = ts->ops; /* read under the lock */
    bool unneeded = t->kind == FJI_TIMER_UNNEEDED; /* it is being decided, by whoever has run it */

    timers_count(ts, t, (uint64_t)-1);
    ts->moving++;
    fji_lock_drop(&ts->lock);
    ops->discard(t, unneeded);
    fji_lock_take(&ts->lock);
    ts->moving--;
}

/* Cancels what waits: all, or only what runs again and again. */
static void timers_cancel(struct fji_timers *ts, bool all)
{
    bool stops = fji_pool_stopping(ts->pool);
    fji_moment *m, *kept = NULL;

    fji_lock_take(&ts->lock);
    while ((m = fji_wheel_take_any(&ts->wheel)) != NULL) {
        if (timer_stays(timer_of(m), all, stops)) {
            m->child = kept;
            kept = m;
        } else {
            timers_drop(ts, timer_of(m));
        }
    }
    while ((m = kept) != NULL) {
        kept = m->child;
        fj_timer *t = timer_of(m);
        /* Whoever has decided it meanwhile, or is about to, has not found it in the wheel. */
        if (t->kind != FJI_TIMER_UNNEEDED && fji_task_is_unresolved(&t->future.task))
            fji_wheel_add(&ts->wheel, m);
        else
            timers_drop(ts, t);
    }
    fji_lock_drop(&ts->lock);
}

void fji_timers_shutdown(fj_pool *p)
{
    struct fji_timers *ts = fji_timers_if_made(p);

    if (ts == NULL) return;
    /* relaxed: a flag; whoever sets it calls this afterwards. */
    bool all = fji_pool_stopping(p) || fji_load_relaxed(&p->cancel_delayed) != 0;
    timers_cancel(ts, all);
    timer_kick(ts);
    fji_lock_take(&ts->lock);
    if (ts->spare) timers_turn(ts); /* which ends with its pool */
    fji_lock_drop(&ts->lock);
}

bool fji_timers_wait(const fj_pool *p)
{
    struct fji_timers *ts = fji_timers_if_made(p);

    if (ts == NULL) return false;
    fji_lock_take(&ts->lock);
    uint64_t some = ts->waiting + ts->moving;
    /* A shutdown has cancelled them in the others; here they go when the pool stops. */
    if (p->is_common) some -= ts->series;
    fji_lock_drop(&ts->lock);
    return some != 0;
}

/* ---- The record --------------------------------------------------------------------------------------- */

void fji_timers_free(fj_pool *p)
{
    fji_plat_free(p->timers);
}

void fji_timers_renew(fj_pool *p)
{
    if (p->timers == NULL) return;
    fji_lock_take(&p->timers->lock); /* as fji_pool_make_common() says */
    fji_lock_drop(&p->timers->lock);
}

void fji_timers_in_child(fj_pool *p)
{
    struct fji_timers *ts = p->timers;

    if (ts == NULL) return;
    fji_lock_reset(&ts->lock);
    fji_wheel_init(&ts->wheel, fji_timers_now());
    ts->threads = 0;
    ts->kept = ts->spare = ts->coming = false;
    ts->sleeps = INT64_MIN;
    ts->waiting = ts->series = 0;
    ts->moving = 0;
    ts->watch = INT64_MAX;
}

/* ---- Public calls ------------------------------------------------------------------------------------- */

int fj_pool_cancel_delayed_on_shutdown(fj_pool *pool)
{
    if (pool == NULL) return FJ_EINVAL;
    if (pool->is_common) return FJ_ENOTSUP;
    fji_store_relaxed(&pool->cancel_delayed, 1u); /* relaxed: a flag */
    /* [pool.end] acquire <- release of the bits. */
    if ((fji_load_acquire(&pool->run) & FJI_RUN_SHUTDOWN) != 0) {
        fji_timers_shutdown(pool);
        pool->hooks->try_terminate(pool, false);
    }
    return FJ_OK;
}
