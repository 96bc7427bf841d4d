/* SPDX-License-Identifier: MIT */
/*
 * timer.c - delayed and periodic tasks, and deadlines
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
 *   timer.made   release store, timers_of() acquire load            the record
 *   timer.ahead  acq_rel CAS, timer_ahead() the same                how far (aged builds)
 *   timer.kick   release add, timer_kick()  acquire load, the thread  the earlier moment
 *   timer.turn   release add, timers_turn() acquire load, timers_stand_by()  whose turn it is
 */
#include "pool.h"
#include "wheel.h"

#include <stdio.h>

/* fj_timer.kind */
#define KIND_TASK 0u
#define KIND_TIMEOUT 1u  /* of a future that has been submitted */
#define KIND_EXPIRED 2u  /* the same, and it has fired: nothing of the pool is needed any more */
#define KIND_FRESH 3u    /* the same, and it is not in the wheel yet */
#define KIND_UNNEEDED 4u /* the same, and its future was decided first */

struct fji_timers {
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock;
    fj_pool *pool;
    fji_wheel wheel;
    uint32_t threads; /* that have been started */
    bool kept;        /* by one of them, which looks after the wheel */
    bool spare;       /* another sleeps until it is called */
    bool coming;      /* one was called, or started, and has not had the lock since */
    int64_t sleeps;   /* until then, as it has promised; INT64_MIN: awake */
    uint64_t waiting; /* in the wheel */
    uint64_t series;  /* those of them that run again and again */
    uint64_t moving;  /* on the way from there into a queue, being cancelled, or acted upon */
    int64_t watch;    /* when to look whether the pool is short of a worker; INT64_MAX: never */
    int64_t pause;    /* since the last look, ns */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t kick;
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t turn;
};

/* Of the common pool: its lock is taken by threads that have not seen its end. */
static struct fji_timers timers_common;
/* The pool whose timers the calling thread looks after. */
static __thread const fj_pool *timers_self;

/* An allocated timer that calls fn(arg). */
struct timer_call {
    fj_timer timer;
    fj_call_fn *call;
    fj_action_fn *action;
    void *arg;
};

/* A future with a limit: submitted, and a timer for the limit beside it. */
struct timeout_call {
    struct timer_call call; /* its timer's future is the one; its moment the limit */
    void (*on_timeout)(fj_future *f, void *arg);
};

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

static int64_t timer_now(void)
{
    return fji_plat_now() + timer_ahead();
}

/* A moment of that clock for fji_plat_wait(). */
static int64_t timer_deadline(int64_t when)
{
    return when == INT64_MAX ? FJ_FOREVER : when - timer_ahead();
}

static int64_t later(int64_t now, int64_t by)
{
    if (by <= 0) return now;
    return by > INT64_MAX - now ? INT64_MAX : now + by;
}

/* ---- The record and its thread -------------------------------------------------------------------- */

static struct fji_timers *timers_if(const fj_pool *p)
{
    /* [timer.made] acquire <- release in timers_of(). */
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
    fji_count(&p->guests, 1); /* under the lock; read by fj_pool_dump() */
    fji_lock_drop(&p->lock);
    (void)snprintf(name, sizeof name, "%s-timer", p->name);
    ts->threads++;
    ts->coming = true;
    if (fji_plat_thread_start(timers_main, ts, &how, name)) return true;
    ts->threads--;
    ts->coming = false;
    fji_lock_take(&p->lock);
    fji_count(&p->guests, (uint32_t)-1); /* under the lock */
    fji_pool_end_if_over(p);
    fji_lock_drop(&p->lock);
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

/* A timer is due: into the pool, or, of a limit, what happens then. */
static void timer_fire(fj_timer *t, fj_pool *p);

/* With the lock: t has come into the wheel, or gone out of it. */
static void timers_count(struct fji_timers *ts, const fj_timer *t, uint64_t n)
{
    ts->waiting += n;
    if (t->period != 0) ts->series += n;
}

static bool timer_acts(const fj_timer *t)
{
    return t->kind == KIND_EXPIRED && ((const struct timeout_call *)t)->on_timeout != NULL;
}

/* What has fired may have been the last that a pool which is shut down waited for. */
static void timers_try_end(fj_pool *p)
{
    /* relaxed: or told by a kick; a shutdown takes the lock after it has set the bit. */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) fji_pool_try_terminate(p, false);
}

/*
 * With the lock, which is let go of meanwhile: fires t. False: this thread does not keep the wheel
 * any more; `*gone`: nor is it a thread of the timers, as the action has called fork().
 */
static bool timers_fire_one(struct fji_timers *ts, fj_timer *t, bool *gone)
{
    bool acts = timer_acts(t);
    uint32_t generation = fji_fork_generation;

    timers_count(ts, t, (uint64_t)-1);
    ts->moving++;
    if (acts) timers_hand_over(ts);
    fji_lock_drop(&ts->lock);
    timer_fire(t, ts->pool); /* a limit's own reference goes along */
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
        if (t->kind == KIND_TIMEOUT)
            fji_store_relaxed(&t->kind, KIND_EXPIRED); /* relaxed: the lock */
        if (!timers_fire_one(ts, t, gone)) return false;
    }
    return true;
}

/* With the lock. From now on, after a pause, the thread looks whether the pool is short. */
static bool timers_watch_after(struct fji_timers *ts, int64_t pause)
{
    ts->pause = pause < FJI_RETRY_MAX_NS ? pause : FJI_RETRY_MAX_NS;
    ts->watch = later(timer_now(), ts->pause);
    return ts->watch < ts->sleeps;
}

/* With the lock, which is let go of meanwhile. Signals if it is time to, and the pool is short. */
static void timers_look(struct fji_timers *ts)
{
    if (timer_now() < ts->watch) return;
    ts->watch = INT64_MAX; /* before the look, for a start that is refused after it */
    fji_lock_drop(&ts->lock);
    bool is_short = fji_compensate_is_short(ts->pool);
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
        if (!timers_fire(ts, timer_now(), gone)) return;
        timers_look(ts);
        /* [timer.kick] acquire <- release in timer_kick(): under the lock, so none is missed. */
        uint32_t seen = fji_load_acquire(&ts->kick);
        int64_t next = fji_wheel_next(&ts->wheel);
        if (ts->watch < next) next = ts->watch;
        ts->sleeps = next;
        fji_lock_drop(&ts->lock);
        timers_try_end(p);
        if (!fji_pool_stopping(p) && timer_now() < next)
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
static bool timers_have_thread(struct fji_timers *ts)
{
    return ts->threads != 0 || timers_start(ts);
}

/* The record of p, made if need be. */
static struct fji_timers *timers_of(fj_pool *p)
{
    struct fji_timers *ts = timers_if(p);

    if (ts != NULL) return ts;
    fji_lock_take(&p->lock);
    ts = p->timers;
    if (ts == NULL && (ts = p->is_common ? &timers_common : fji_plat_alloc(sizeof *ts)) != NULL) {
        ts->pool = p;
        ts->sleeps = INT64_MIN;
        ts->watch = INT64_MAX;
        fji_wheel_init(&ts->wheel, timer_now());
        ts->kick = ts->turn = FJI_START_32;
        /* [timer.made] release -> acquire in timers_if(): the record. */
        fji_store_release(&p->timers, ts);
        /* [timer.made] the record above, run below; partner: the fence in pool_shutdown(). */
        fji_fence_full();
    }
    fji_lock_drop(&p->lock);
    return ts;
}

void fji_timers_watch(fj_pool *p)
{
    struct fji_timers *ts = fji_pool_stopping(p) ? NULL : timers_of(p);

    if (ts == NULL) return;
    fji_lock_take(&ts->lock);
    if (ts->watch == INT64_MAX && timers_have_thread(ts) &&
        timers_watch_after(ts, FJI_RETRY_MIN_NS))
        timer_kick(ts);
    fji_lock_drop(&ts->lock);
}

/* ---- Into the wheel ------------------------------------------------------------------------------- */

/* With the lock: whether the thread has to be told. */
static bool timers_add(struct fji_timers *ts, fj_timer *t, int64_t when)
{
    /* relaxed: also read without the lock, by fj_timer_remaining(). */
    fji_store_relaxed(&t->when, when);
    fji_wheel_add(&ts->wheel, moment_of(t));
    timers_count(ts, t, 1);
    return when < ts->sleeps;
}

static int timers_schedule(fj_pool *p, fj_timer *t, int64_t delay_ns)
{
    struct fji_timers *ts = timers_of(p);
    int err = FJ_OK;
    bool kick = false, over = false; /* over: decided before, and let go of at once */

    if (ts == NULL) return FJ_ENOMEM;
    fji_pool_needs_worker(p);
    int64_t when = later(timer_now(), delay_ns);
    fji_lock_take(&ts->lock);
    /* relaxed: shutdown looks at the wheel under the lock, after it has set the bit. */
    if ((fji_load_relaxed(&p->run) & (FJI_RUN_SHUTDOWN | FJI_RUN_CLOSING)) != 0)
        err = FJ_EREJECTED;
    else if (!timers_have_thread(ts))
        err = FJ_EAGAIN;
    if (err == FJ_OK) {
        fji_task_mark_unqueued(p, &t->future.task);
        /* [task.done] the cell above, the word below; partner: fji_future_resolve(), which reads the
         * cell after it has set COMPLETING. */
        fji_fence_full();
        over = !fji_future_unresolved(&t->future);
        if (!over) kick = timers_add(ts, t, when);
    }
    if (kick) timer_kick(ts);
    fji_lock_drop(&ts->lock);
    /* Into the next common pool, if it is that one which takes no work. */
    if (err == FJ_EREJECTED && (err = fji_common_again(p)) == FJ_OK)
        return timers_schedule(p, t, delay_ns);
    if (over) fji_future_finish(&t->future, FJ_ECANCELED);
    return err;
}

/* After a run of a series. False: it is over, or about to be. */
static bool timer_rearm(fj_timer *t)
{
    fj_pool *p = *(fj_pool **)(void *)t->future.task.cell->args;
    struct fji_timers *ts = timers_if(p);
    uint32_t *word = &t->future.task.state;
    int64_t now = timer_now();
    bool kick = false;

    /* [task.done] acq_rel: forgets who ran it. Who has seen it signallable is deciding. */
    (void)fji_and_acq_rel(word, ~(FJI_THIEF_MASK | FJI_SIGNALLABLE));
    fji_lock_take(&ts->lock);
    /* [task.done] acquire <- acq_rel of whoever decides: it takes the lock after that. */
    bool again = (fji_load_acquire(word) & (FJI_DONE | FJI_COMPLETING)) == 0;
    /* relaxed: as in timers_schedule(). */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) again = false;
    if (again) again = timers_have_thread(ts); /* it is gone after fork() */
    if (again) {
        int64_t from = t->period > 0 ? t->when : now;
        kick = timers_add(ts, t, later(from, t->period > 0 ? t->period : -t->period));
    }
    if (kick) timer_kick(ts);
    fji_lock_drop(&ts->lock); /* LAST TOUCH of *t if it waits again. */
    return again;
}

/* ---- Running -------------------------------------------------------------------------------------- */

static int timer_run(fj_task *t)
{
    fj_timer *timer = (fj_timer *)t;
    fj_future *f = &timer->future;
    fji_worker *w = fji_worker_self();
    uint32_t generation = fji_fork_generation;
    int code;

    if (w != NULL) fji_worker_claim(w, &t->state, &t->child_base);
    /* relaxed: only by this thread. */
    bool dropped = (fji_load_relaxed(&t->state) & FJI_DISCARDED) != 0;
    if (dropped || !fji_future_unresolved(f)) {
        fji_future_finish(f, FJ_ECANCELED);
    } else if (timer->period == 0) {
        code = fji_future_body(f, w);
        if (generation == fji_fork_generation) fji_future_finish(f, code); /* else: see child.c */
    } else {
        code = fji_future_body(f, w);
        if (generation != fji_fork_generation) return FJI_COMPLETES_ITSELF;
        if (code == FJ_OK && timer_rearm(timer)) return FJI_COMPLETES_ITSELF;
        fji_future_finish(f, code == FJ_OK ? FJ_ECANCELED : code);
    }
    return FJI_COMPLETES_ITSELF;
}

bool fji_timer_has_expired(const fj_future *f)
{
    /* relaxed: set before the action is called, which leads to whoever decides because of it. */
    return fji_load_relaxed(&((const fj_timer *)f)->kind) == KIND_EXPIRED;
}

/* The limit of a future is over. Whoever decides it now interrupts its body: see is_over(). */
static void timeout_fire(struct timeout_call *c)
{
    fj_future *f = &c->call.timer.future;

    if (c->on_timeout == NULL)
        (void)fj_future_fail(f, FJ_ETIMEDOUT);
    else if (!fj_future_is_done(f))
        c->on_timeout(f, c->call.arg);
    fj_future_unref(f);
}

static void timer_fire(fj_timer *t, fj_pool *p)
{
    if ((t->future.flags & FJI_FUTURE_LIMIT) != 0) {
        timeout_fire((struct timeout_call *)t);
        return;
    }
    uintptr_t item = (uintptr_t)&t->future.task | FJI_TAG_FUTURE;
    if (fji_submit_after_shutdown(p, item, NULL, NULL) != FJ_OK)
        fji_future_finish(&t->future, FJ_ECANCELED); /* the pool stops, or there is no memory */
}

/* ---- Out of the wheel ------------------------------------------------------------------------------ */

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
    } else if (t->kind == KIND_FRESH || t->kind == KIND_TIMEOUT) {
        fji_store_relaxed(&t->kind, KIND_UNNEEDED); /* relaxed: the lock */
    }
    fji_lock_drop(&ts->lock); /* LAST TOUCH of *ts and its pool. */
    return waited;
}

bool fji_timer_remove(fj_future *f)
{
    fj_timer *t = (fj_timer *)f;

    /* [task.done] COMPLETING, set by the caller, above, the cell below; partner: the fence in
     * timers_schedule(). Either we find the timer in the wheel, or it is not put there. */
    fji_fence_full();
    /* [timer.made] acquire <- release in fji_task_mark_unqueued(): the timers of the pool. */
    fj_cell *submitted = fji_load_acquire(&f->task.cell);

    if (submitted == NULL || fji_task_is_orphaned(&f->task)) return false;
    /* What its body has left open, and a limit that is over: the pool may be gone. Otherwise it
     * cannot go before whoever runs or drops it has seen the outcome, which is being decided.
     * relaxed: LET_GO, OVER and UNNEEDED only ever come. */
    uint32_t kind = fji_load_relaxed(&t->kind);
    bool open = (fji_load_relaxed(&f->task.state) & FJI_RELEASED) != 0; /* relaxed: as above */
    if (kind == KIND_EXPIRED || kind == KIND_UNNEEDED || (kind == KIND_TASK && open)) return false;
    fj_pool *p = *(fj_pool **)(void *)submitted->args;
    if (!timers_remove(timers_if(p), t)) return false;
    if (kind == KIND_TASK) return true;
    fji_future_unref(f); /* the timer's; whoever decides has one */
    return false;
}

/* Whether a shutdown leaves t waiting: what runs once, unless told otherwise; limits of what
 * still runs, until the pool stops. */
static bool timer_stays(const fj_timer *t, bool all, bool stops)
{
    if (t->kind == KIND_TIMEOUT) return !stops;
    return !all && t->period == 0;
}

/* With the lock, which is let go of meanwhile: t is out of the wheel, and over. */
static void timers_drop(struct fji_timers *ts, fj_timer *t)
{
    fj_future *f = &t->future;
    bool unneeded = t->kind == KIND_UNNEEDED; /* it is being decided, by whoever has run it */

    timers_count(ts, t, (uint64_t)-1);
    ts->moving++;
    fji_lock_drop(&ts->lock);
    if ((f->flags & FJI_FUTURE_LIMIT) != 0) {
        /* What it was the limit of may be open for ever. */
        if (!unneeded) (void)fj_future_cancel(f, 0);
        fj_future_unref(f);
    } else {
        fji_future_finish(f, FJ_ECANCELED);
    }
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
        if (t->kind != KIND_UNNEEDED && fji_future_unresolved(&t->future))
            fji_wheel_add(&ts->wheel, m);
        else
            timers_drop(ts, t);
    }
    fji_lock_drop(&ts->lock);
}

void fji_timers_shutdown(fj_pool *p)
{
    struct fji_timers *ts = timers_if(p);

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
    struct fji_timers *ts = timers_if(p);

    if (ts == NULL) return false;
    fji_lock_take(&ts->lock);
    uint64_t some = ts->waiting + ts->moving;
    /* A shutdown has cancelled them in the others; here they go when the pool stops. */
    if (p->is_common) some -= ts->series;
    fji_lock_drop(&ts->lock);
    return some != 0;
}

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
    fji_wheel_init(&ts->wheel, timer_now());
    ts->threads = 0;
    ts->kept = ts->spare = ts->coming = false;
    ts->sleeps = INT64_MIN;
    ts->waiting = ts->series = 0;
    ts->moving = 0;
    ts->watch = INT64_MAX;
}

/* ---- Calls ----------------------------------------------------------------------------------------- */

void fj_timer_init(fj_timer *t, fj_task_fn *fn)
{
    if (t == NULL) return;
    fji_future_init(&t->future, timer_run, fn, FJI_FUTURE_TIMER);
    t->when = 0;
    t->place = 0;
    t->kind = KIND_TASK;
    t->period = 0;
}

static int schedule(fj_pool *pool, fj_timer *t, int64_t delay_ns, int64_t period)
{
    if (t == NULL || t->future.fn == NULL || t->future.task.cell != NULL) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    t->period = period;
    int err = timers_schedule(p, t, delay_ns);
    if (err != FJ_OK) fji_store_relaxed(&t->future.task.cell, (fj_cell *)NULL); /* relaxed: ours */
    return err;
}

int fj_schedule(fj_pool *pool, fj_timer *t, int64_t delay_ns)
{
    return schedule(pool, t, delay_ns, 0);
}

int fj_schedule_at_fixed_rate(fj_pool *pool, fj_timer *t, int64_t delay_ns, int64_t period_ns)
{
    return period_ns > 0 ? schedule(pool, t, delay_ns, period_ns) : FJ_EINVAL;
}

int fj_schedule_with_fixed_delay(fj_pool *pool, fj_timer *t, int64_t delay_ns, int64_t period_ns)
{
    return period_ns > 0 ? schedule(pool, t, delay_ns, -period_ns) : FJ_EINVAL;
}

static int timer_call_run(fj_task *t)
{
    struct timer_call *c = (struct timer_call *)t;

    if (c->action != NULL) return c->action(c->arg);
    return c->call(c->arg, &c->timer.future.result);
}

static int schedule_made(fj_pool *pool, struct timer_call made, int64_t delay_ns, int64_t period,
                         fj_future **f)
{
    if (f == NULL || (made.call == NULL && made.action == NULL)) return FJ_EINVAL;
    struct timer_call *c = fji_plat_alloc(sizeof *c);
    if (c == NULL) return FJ_ENOMEM;
    *c = made;
    fj_timer_init(&c->timer, timer_call_run);
    c->timer.future.flags |= FJI_FUTURE_ALLOCATED | FJI_FUTURE_NOT_BY_CALLERS;
    c->timer.future.refs = 2; /* the caller's and the library's */
    int err = schedule(pool, &c->timer, delay_ns, period);
    if (err != FJ_OK)
        fji_plat_free(c);
    else
        *f = &c->timer.future;
    return err;
}

int fj_schedule_call(fj_pool *pool, fj_call_fn *call, void *arg, int64_t delay_ns, fj_future **f)
{
    return schedule_made(pool, (struct timer_call){.call = call, .arg = arg}, delay_ns, 0, f);
}

int fj_schedule_action(fj_pool *pool, fj_action_fn *action, void *arg, int64_t delay_ns,
                       fj_future **f)
{
    return schedule_made(pool, (struct timer_call){.action = action, .arg = arg}, delay_ns, 0, f);
}

int fj_schedule_action_at_fixed_rate(fj_pool *pool, fj_action_fn *action, void *arg,
                                     int64_t delay_ns, int64_t period_ns, fj_future **f)
{
    struct timer_call made = {.action = action, .arg = arg};

    return period_ns > 0 ? schedule_made(pool, made, delay_ns, period_ns, f) : FJ_EINVAL;
}

int fj_schedule_action_with_fixed_delay(fj_pool *pool, fj_action_fn *action, void *arg,
                                        int64_t delay_ns, int64_t period_ns, fj_future **f)
{
    struct timer_call made = {.action = action, .arg = arg};

    return period_ns > 0 ? schedule_made(pool, made, delay_ns, -period_ns, f) : FJ_EINVAL;
}

int64_t fj_timer_remaining(const fj_future *f)
{
    if (f == NULL || (f->flags & FJI_FUTURE_TIMER) == 0) return 0;
    if (fj_future_is_done(f)) return 0;
    int64_t when = fji_load_relaxed(&((const fj_timer *)f)->when); /* relaxed: a look */
    return when == INT64_MAX ? INT64_MAX : when - timer_now();
}

static struct timeout_call *timeout_make(fj_call_fn *call, void *arg,
                                         void (*on_timeout)(fj_future *f, void *arg))
{
    struct timeout_call *c = fji_plat_alloc(sizeof *c);

    if (c == NULL) return NULL;
    c->call = (struct timer_call){.call = call, .arg = arg};
    c->on_timeout = on_timeout;
    fj_timer_init(&c->call.timer, timer_call_run);
    fj_future *made = &c->call.timer.future;
    made->flags |= FJI_FUTURE_ALLOCATED | FJI_FUTURE_NOT_BY_CALLERS | FJI_FUTURE_LIMIT;
    made->refs = 3; /* the caller's, the queue's and the timer's */
    c->call.timer.kind = KIND_FRESH;
    return c;
}

/* All that a limit needs, but for its place in the wheel. If it returns FJ_OK, the caller is counted
 * as a guest of p. A pool that stops takes no further guest: the end waits only for those counted
 * before the stop. */
static int timeout_prepare(struct fji_timers *ts)
{
    fj_pool *p = ts->pool;
    int err = FJ_OK;

    fji_pool_needs_worker(p);
    fji_lock_take(&ts->lock);
    /* relaxed: the submission looks again. */
    if ((fji_load_relaxed(&p->run) & (FJI_RUN_SHUTDOWN | FJI_RUN_CLOSING)) != 0)
        err = FJ_EREJECTED;
    else if (!timers_have_thread(ts))
        err = FJ_EAGAIN;
    fji_lock_drop(&ts->lock);
    if (err != FJ_OK) return err;
    fji_lock_take(&p->lock);
    if (fji_pool_stopping(p))
        err = FJ_EREJECTED;
    else
        fji_count(&p->guests, 1); /* under the lock */
    fji_lock_drop(&p->lock);
    return err;
}

/* The future is in a queue, or was by now: its limit begins, unless it is decided. */
static void timeout_begin(struct fji_timers *ts, fj_timer *t, int64_t when)
{
    fji_lock_take(&ts->lock);
    bool fresh = t->kind == KIND_FRESH;
    bool stops = fji_pool_stopping(ts->pool); /* nobody would fire it, nor drop it */
    bool waits = fresh && !stops;
    /* relaxed: the lock */
    if (fresh) fji_store_relaxed(&t->kind, stops ? KIND_UNNEEDED : KIND_TIMEOUT);
    if (waits && timers_add(ts, t, when)) timer_kick(ts);
    fji_lock_drop(&ts->lock);
    if (fresh && stops) (void)fj_future_cancel(&t->future, 0);
    if (!waits) fji_future_unref(&t->future);
}

static void timeout_leave(fj_pool *p)
{
    fji_lock_take(&p->lock);
    fji_count(&p->guests, (uint32_t)-1); /* under the lock */
    fji_pool_end_if_over(p);
    fji_lock_drop(&p->lock); /* LAST TOUCH of *p: whoever destroys it takes the lock first. */
}

/* FJ_EREJECTED: p takes no work. The caller holds p, and does not wait for its end meanwhile. */
static int timeout_submit(struct fji_timers *ts, fj_timer *t, int64_t when)
{
    fj_pool *p = ts->pool;
    int err = timeout_prepare(ts);

    if (err != FJ_OK) return err;
    err = fji_submit_future(p, &t->future.task, 0, false, true);
    if (err == FJ_OK) timeout_begin(ts, t, when);
    timeout_leave(p);
    return err;
}

int fj_submit_with_timeout(fj_pool *pool, fj_call_fn *call, void *arg, int64_t timeout_ns,
                           void (*on_timeout)(fj_future *f, void *arg), fj_future **f)
{
    if (call == NULL || f == NULL) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    struct fji_timers *ts = p != NULL ? timers_of(p) : NULL;
    struct timeout_call *c = ts != NULL ? timeout_make(call, arg, on_timeout) : NULL;
    if (c == NULL) return FJ_ENOMEM;
    int64_t when = later(timer_now(), timeout_ns);
    fj_future *made = &c->call.timer.future; /* may be freed by the caller once it is known */
    int err = FJ_EREJECTED;
    if (fji_pool_hold(p)) {
        err = timeout_submit(ts, &c->call.timer, when);
        fji_pool_drop_hold(p);
    }
    if (err == FJ_OK) {
        *f = made;
        return FJ_OK;
    }
    fji_plat_free(c);
    if (err == FJ_EREJECTED && (err = fji_common_again(p)) == FJ_OK)
        return fj_submit_with_timeout(pool, call, arg, timeout_ns, on_timeout, f);
    return err;
}

int fj_pool_cancel_delayed_on_shutdown(fj_pool *pool)
{
    if (pool == NULL) return FJ_EINVAL;
    if (pool->is_common) return FJ_ENOTSUP;
    fji_store_relaxed(&pool->cancel_delayed, 1u); /* relaxed: a flag */
    if (fj_pool_is_shutdown(pool)) {
        fji_timers_shutdown(pool);
        fji_pool_try_terminate(pool, false);
    }
    return FJ_OK;
}

uint64_t fj_pool_delayed_count(const fj_pool *pool)
{
    struct fji_timers *ts = timers_if(pool != NULL ? pool : fji_common_if_made());

    if (ts == NULL) return 0;
    fji_lock_take(&ts->lock);
    uint64_t n = ts->waiting;
    fji_lock_drop(&ts->lock);
    return n;
}
