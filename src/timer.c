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
 * The thread sleeps on `kick` until the wheel's next moment; whoever adds an earlier one
 * changes it. It counts as a guest of the pool, so the pool ends after it.
 *
 * Edges          from                       to                      carries
 *   timer.made   release store, timers_of() acquire load            the record
 *   timer.ahead  acq_rel CAS, timer_ahead() the same                how far (aged builds)
 *   timer.kick   release add, timer_kick()  acquire load, the thread  the earlier moment
 */
#include "pool.h"
#include "wheel.h"

#include <stdio.h>

/* fj_timer.kind */
#define KIND_TASK 0u
#define KIND_TIMEOUT 1u /* of a future that has been submitted */
#define KIND_OVER 2u    /* the same, and it has fired: nothing of the pool is needed any more */

struct fji_timers {
    FJ_ALIGNAS(FJI_APART) fji_lock lock;
    fj_pool *pool;
    fji_wheel wheel;
    bool thread;      /* has been started */
    int64_t sleeps;   /* until then, as it has promised; INT64_MIN: awake */
    uint64_t waiting; /* in the wheel */
    uint64_t moving;  /* on the way from there into a queue, or being cancelled */
    FJ_ALIGNAS(FJI_APART) uint32_t kick;
};

/* An allocated timer that calls fn(arg). */
struct timer_call {
    fj_timer timer;
    fj_call *call;
    fj_action *action;
    void *arg;
};

/* A future with a limit: submitted, and a timer for the limit beside it. */
struct timeout_call {
    struct timer_call call; /* its timer's future is the one; its moment the limit */
    void (*on_timeout)(fj_future *f, void *arg);
};

FJ_STATIC_ASSERT(sizeof(fji_moment) == sizeof(int64_t) + 3 * sizeof(void *) + 8,
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
#if FJI_AGED
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

/* A timer is due: into the pool, or, of a limit, what happens then. */
static void timer_fire(fj_timer *t, fj_pool *p);

/* With the lock. Fires all that is due; it is let go of while one is fired. */
static void timers_fire(struct fji_timers *ts, int64_t now)
{
    fji_moment *m;

    while (!fji_pool_stopping(ts->pool) && (m = fji_wheel_take(&ts->wheel, now)) != NULL) {
        fj_timer *t = timer_of(m);
        if (t->kind == KIND_TIMEOUT) fji_store_relaxed(&t->kind, KIND_OVER); /* relaxed: the lock */
        ts->waiting--;
        ts->moving++;
        fji_lock_drop(&ts->lock);
        timer_fire(t, ts->pool); /* a limit's own reference goes along */
        fji_lock_take(&ts->lock);
        ts->moving--;
    }
}

static void timers_main(void *arg)
{
    struct fji_timers *ts = arg;
    fj_pool *p = ts->pool;

    fji_lock_take(&ts->lock);
    while (!fji_pool_stopping(p)) {
        ts->sleeps = INT64_MIN;
        timers_fire(ts, timer_now());
        /* [timer.kick] acquire <- release in timer_kick(): under the lock, so none is missed. */
        uint32_t seen = fji_load_acquire(&ts->kick);
        int64_t next = fji_wheel_next(&ts->wheel);
        ts->sleeps = next;
        fji_lock_drop(&ts->lock);
        /* relaxed: or told by a kick. */
        if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) fji_pool_try_terminate(p, false);
        if (!fji_pool_stopping(p) && timer_now() < next)
            (void)fji_plat_wait(&ts->kick, seen, timer_deadline(next));
        fji_lock_take(&ts->lock);
    }
    ts->thread = false;
    fji_lock_drop(&ts->lock);
    fji_pool_leave(p);
}

/* With the lock: a thread, counted as a guest before it is there. */
static int timers_start(struct fji_timers *ts)
{
    fj_pool *p = ts->pool;
    char name[16];
    fji_creator how = {.stack_bytes = 0};

    if (ts->thread) return FJ_OK;
    fji_lock_take(&p->lock);
    fji_count(&p->guests, 1); /* under the lock; read by fj_pool_dump() */
    fji_lock_drop(&p->lock);
    (void)snprintf(name, sizeof name, "%s-timer", p->name);
    ts->thread = true;
    if (fji_plat_thread_start(timers_main, ts, &how, name)) return FJ_OK;
    ts->thread = false;
    fji_lock_take(&p->lock);
    fji_count(&p->guests, (uint32_t)-1); /* under the lock */
    fji_pool_end_if_over(p);
    fji_lock_drop(&p->lock);
    return FJ_EAGAIN;
}

/* The record of p, made if need be. */
static struct fji_timers *timers_of(fj_pool *p)
{
    struct fji_timers *ts = timers_if(p);

    if (ts != NULL) return ts;
    fji_lock_take(&p->lock);
    ts = p->timers;
    if (ts == NULL && (ts = fji_plat_alloc(sizeof *ts)) != NULL) {
        ts->pool = p;
        ts->sleeps = INT64_MIN;
        fji_wheel_init(&ts->wheel, timer_now());
        ts->kick = FJI_START_32;
        /* [timer.made] release -> acquire in timers_if(): the record. */
        fji_store_release(&p->timers, ts);
        /* [timer.made] the record above, run below; partner: the fence in pool_shutdown(). */
        fji_fence_full();
    }
    fji_lock_drop(&p->lock);
    return ts;
}

/* ---- Into the wheel ------------------------------------------------------------------------------- */

/* With the lock: whether the thread has to be told. */
static bool timers_add(struct fji_timers *ts, fj_timer *t, int64_t when)
{
    /* relaxed: also read without the lock, by fj_timer_remaining(). */
    fji_store_relaxed(&t->when, when);
    fji_wheel_add(&ts->wheel, moment_of(t));
    ts->waiting++;
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
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0)
        err = FJ_EREJECTED;
    else
        err = timers_start(ts);
    if (err == FJ_OK) {
        fji_submit_mark(p, &t->future.task);
        /* [task.done] the cell above, the word below; partner: future_decide(), which reads the
         * cell after it has set COMPLETING. */
        fji_fence_full();
        over = !fji_future_undecided(&t->future);
        if (!over) kick = timers_add(ts, t, when);
    }
    if (kick) timer_kick(ts);
    fji_lock_drop(&ts->lock);
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
    if (again) again = timers_start(ts) == FJ_OK; /* it is gone after fork() */
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
    uint32_t times = fji_child_times;
    int code;

    if (w != NULL) fji_worker_claim(w, &t->state, &t->mark);
    /* relaxed: only by this thread. */
    bool dropped = (fji_load_relaxed(&t->state) & FJI_DROPPED) != 0;
    if (dropped || !fji_future_undecided(f)) {
        fji_future_finish(f, FJ_ECANCELED);
    } else if (timer->period == 0) {
        code = fji_future_body(f, w);
        if (times == fji_child_times) fji_future_finish(f, code); /* else: see child.c */
    } else {
        code = fji_future_body(f, w);
        if (times != fji_child_times) return FJI_GONE;
        if (code == FJ_OK && timer_rearm(timer)) return FJI_GONE;
        fji_future_finish(f, code == FJ_OK ? FJ_ECANCELED : code);
    }
    return FJI_GONE;
}

/* The limit of a future is over, and there is something to be called. */
static int timeout_action(void *arg)
{
    struct timeout_call *c = arg;
    fj_future *f = &c->call.timer.future;

    if (!fj_future_is_done(f)) c->on_timeout(f, c->call.arg);
    fj_future_release(f);
    return FJ_OK;
}

/*
 * The same without: at once, as whoever runs it may have the only worker. And where an action
 * cannot be queued: nothing of the caller's is run here.
 */
static void timeout_cancel(struct timeout_call *c)
{
    fj_future *f = &c->call.timer.future;

    (void)fj_future_cancel(f, 1);
    fj_future_release(f);
}

/* The action was dropped by a pool that stops, or by hand. */
void fji_timer_action_dropped(uintptr_t fn, uintptr_t arg)
{
    if (fn == (uintptr_t)timeout_action) timeout_cancel((struct timeout_call *)arg);
}

static void timer_fire(fj_timer *t, fj_pool *p)
{
    if ((t->future.flags & FJI_FUTURE_LIMIT) != 0) {
        struct timeout_call *c = (struct timeout_call *)t;
        bool acts = c->on_timeout != NULL;
        if (!acts || fji_submit_anyway(p, FJI_ACTION, timeout_action, t) != FJ_OK)
            timeout_cancel(c);
        return;
    }
    uintptr_t what = (uintptr_t)&t->future.task | FJI_TAG_SELF;
    if (fji_submit_anyway(p, what, NULL, NULL) != FJ_OK)
        fji_future_finish(&t->future, FJ_ECANCELED); /* the pool stops, or there is no memory */
}

/* ---- Out of the wheel ------------------------------------------------------------------------------ */

/* Takes t out; false: it was not waiting. */
static bool timers_remove(struct fji_timers *ts, fj_timer *t)
{
    fji_lock_take(&ts->lock);
    bool waited = fji_moment_waits(moment_of(t));
    if (waited) {
        fji_wheel_remove(&ts->wheel, moment_of(t));
        ts->waiting--;
        /* relaxed: a shutdown that comes later looks itself. One that waits for this timer may
         * end now; it takes the lock before that. */
        if ((fji_load_relaxed(&ts->pool->run) & FJI_RUN_SHUTDOWN) != 0) timer_kick(ts);
    }
    fji_lock_drop(&ts->lock); /* LAST TOUCH of *ts and its pool. */
    return waited;
}

bool fji_timer_forget(fj_future *f)
{
    fj_timer *t = (fj_timer *)f;
    fj_cell *away = fji_load_relaxed(&f->task.cell); /* relaxed: NULL only if never scheduled */

    if (away == NULL || fji_child_lost(&f->task)) return false;
    /* What its body has left open, and a limit that is over: the pool may be gone. Otherwise it
     * cannot go before whoever runs or drops it has seen the outcome, which is being decided.
     * relaxed: LET_GO and OVER only ever come. */
    uint32_t kind = fji_load_relaxed(&t->kind);
    bool open = (fji_load_relaxed(&f->task.state) & FJI_LET_GO) != 0; /* relaxed: as above */
    if (kind == KIND_OVER || (kind == KIND_TASK && open)) return false;
    fj_pool *p = *(fj_pool **)(void *)away->args;
    if (!timers_remove(timers_if(p), t)) return false;
    if (kind != KIND_TIMEOUT) return true;
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

    ts->waiting--;
    ts->moving++;
    fji_lock_drop(&ts->lock);
    if (t->kind == KIND_TIMEOUT) {
        (void)fj_future_cancel(f, 0); /* what it was the limit of may be open for ever */
        fj_future_release(f);
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
        /* Whoever has decided it meanwhile has not found it in the wheel. */
        if (fji_future_undecided(&timer_of(m)->future))
            fji_wheel_add(&ts->wheel, m);
        else
            timers_drop(ts, timer_of(m));
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
}

bool fji_timers_wait(const fj_pool *p)
{
    struct fji_timers *ts = timers_if(p);

    if (ts == NULL) return false;
    fji_lock_take(&ts->lock);
    bool some = ts->waiting + ts->moving != 0;
    fji_lock_drop(&ts->lock);
    return some;
}

void fji_timers_free(fj_pool *p)
{
    fji_plat_free(p->timers);
}

void fji_timers_forget(fj_pool *p)
{
    struct fji_timers *ts = p->timers;

    if (ts == NULL) return;
    fji_lock_reset(&ts->lock);
    fji_wheel_init(&ts->wheel, timer_now());
    ts->thread = false;
    ts->sleeps = INT64_MIN;
    ts->waiting = 0;
    ts->moving = 0;
}

/* ---- Calls ----------------------------------------------------------------------------------------- */

void fj_timer_init(fj_timer *t, fj_fn *fn)
{
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
    t->kind = KIND_TASK;
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

int fj_schedule_call(fj_pool *pool, fj_call *call, void *arg, int64_t delay_ns, fj_future **f)
{
    return schedule_made(pool, (struct timer_call){.call = call, .arg = arg}, delay_ns, 0, f);
}

int fj_schedule_action(fj_pool *pool, fj_action *action, void *arg, int64_t delay_ns, fj_future **f)
{
    return schedule_made(pool, (struct timer_call){.action = action, .arg = arg}, delay_ns, 0, f);
}

int fj_schedule_action_at_fixed_rate(fj_pool *pool, fj_action *action, void *arg, int64_t delay_ns,
                                     int64_t period_ns, fj_future **f)
{
    struct timer_call made = {.action = action, .arg = arg};

    return period_ns > 0 ? schedule_made(pool, made, delay_ns, period_ns, f) : FJ_EINVAL;
}

int fj_schedule_action_with_fixed_delay(fj_pool *pool, fj_action *action, void *arg,
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

int fj_submit_with_timeout(fj_pool *pool, fj_call *call, void *arg, int64_t timeout_ns,
                           void (*on_timeout)(fj_future *f, void *arg), fj_future **f)
{
    fj_pool *p = fji_pool_or_common(pool);

    if (call == NULL || f == NULL) return FJ_EINVAL;
    if (p == NULL) return FJ_ENOMEM;
    struct timeout_call *c = fji_plat_alloc(sizeof *c);
    if (c == NULL) return FJ_ENOMEM;
    c->call = (struct timer_call){.call = call, .arg = arg};
    c->on_timeout = on_timeout;
    fj_timer_init(&c->call.timer, timer_call_run);
    fj_future *made = &c->call.timer.future;
    made->flags |= FJI_FUTURE_ALLOCATED | FJI_FUTURE_NOT_BY_CALLERS | FJI_FUTURE_LIMIT;
    made->refs = 3; /* the caller's, the queue's and the timer's */
    c->call.timer.kind = KIND_TIMEOUT;
    int err = timers_schedule(p, &c->call.timer, timeout_ns);
    if (err != FJ_OK) {
        fji_plat_free(c);
        return err;
    }
    err = fji_submit_self(p, &made->task, 0, false, true);
    if (err == FJ_OK) {
        *f = made;
        return FJ_OK;
    }
    /* Decided, so that a shutdown that has it in its hands does not let it wait on. */
    (void)fj_future_cancel(made, 0);
    fji_future_unref(made);
    fji_future_unref(made); /* the last, unless the limit acts on it at the moment */
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
