/* SPDX-License-Identifier: MIT */
/*
 * timer.c - delayed and periodic tasks, and futures with a limit
 *
 *     new -> waiting (in the wheel) -> queued -> running -> done
 *                ^                                 |
 *                +-------- periodic ---------------+
 *
 * pool/timers.c keeps the wheel. This file puts timers into it, runs them, and puts periodic ones in again.
 */

#include "future/future.h"
#include "plat/wait.h"
#include "pool/common_pool.h"
#include "pool/create.h"
#include "pool/submit.h"
#include "pool/timers.h"
#include "sched/hold.h"
#include "sched/lifetime.h"

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

/* ---- Scheduling --------------------------------------------------------------------------------------- */

static const fji_timer_ops timer_ops;

static int timer_schedule(fj_pool *p, fj_timer *t, int64_t delay_ns)
{
    struct fji_timers *ts = fji_timers_of(p);
    int err = FJ_OK;
    bool over = false; /* resolved before, and released at once */

    if (ts == NULL) return FJ_ENOMEM;
    fji_pool_needs_worker(p);
    int64_t when = fji_timers_later(fji_timers_now(), delay_ns);
    fji_lock_take(&ts->lock);
    /* relaxed: shutdown looks at the wheel under the lock, after it has set the bit. */
    if ((fji_load_relaxed(&p->run) & (FJI_RUN_SHUTDOWN | FJI_RUN_CLOSING)) != 0)
        err = FJ_EREJECTED;
    else if (!fji_timers_have_thread(ts))
        err = FJ_EAGAIN;
    if (err == FJ_OK) {
        fji_task_mark_unqueued(&t->future.task, p->submitted_cell);
        /* [task.done] the cell above, the word below; partner: fji_future_resolve(), which reads the
         * cell after it has set COMPLETING. */
        fji_fence_full();
        over = !fji_task_is_unresolved(&t->future.task);
        if (!over) fji_timers_add(ts, t, when, &timer_ops);
    }
    fji_lock_drop(&ts->lock);
    /* Into the next common pool, if it is that one which takes no work. */
    if (err == FJ_EREJECTED && (err = fji_common_again(p)) == FJ_OK)
        return timer_schedule(p, t, delay_ns);
    if (over) fji_future_finish(&t->future, FJ_ECANCELED);
    return err;
}

/* After a run of a series. False: it is over, or about to be. */
static bool timer_rearm(fj_timer *t)
{
    fj_pool *p = fji_cell_pool(t->future.task.cell);
    struct fji_timers *ts = fji_timers_if_made(p);
    uint32_t *word = &t->future.task.state;
    int64_t now = fji_timers_now();

    /* [task.done] acq_rel: forgets who ran it. Who has seen it signallable is deciding. */
    (void)fji_and_acq_rel(word, ~(FJI_THIEF_MASK | FJI_SIGNALLABLE));
    fji_lock_take(&ts->lock);
    /* [task.done] acquire <- acq_rel of whoever decides: it takes the lock after that. */
    bool again = (fji_load_acquire(word) & (FJI_DONE | FJI_COMPLETING)) == 0;
    /* relaxed: as in timer_schedule(). */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) again = false;
    if (again) again = fji_timers_have_thread(ts); /* it is gone after fork() */
    if (again) {
        int64_t from = t->period > 0 ? t->when : now;
        int64_t by = t->period > 0 ? t->period : -t->period;
        fji_timers_add(ts, t, fji_timers_later(from, by), &timer_ops);
    }
    fji_lock_drop(&ts->lock); /* LAST TOUCH of *t if it waits again. */
    return again;
}

/* ---- Running ------------------------------------------------------------------------------------------ */

static int timer_run(fj_task *t)
{
    fj_timer *timer = (fj_timer *)t;
    fj_future *f = &timer->future;
    uint32_t generation = fji_fork_generation;
    int code = fji_future_execute(f, fji_worker_self());

    if (generation != fji_fork_generation) return FJI_COMPLETES_ITSELF; /* see pool/atfork.c */
    if (timer->period == 0) {
        fji_future_finish(f, code);
    } else if (code != FJ_OK || !timer_rearm(timer)) {
        fji_future_finish(f, code == FJ_OK ? FJ_ECANCELED : code);
    }
    return FJI_COMPLETES_ITSELF;
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
    fji_taken it = {.item = FJI_FUTURE_ITEM(&t->future.task)};
    if (fji_submit_after_shutdown(p, &it) != FJ_OK)
        fji_future_finish(&t->future, FJ_ECANCELED); /* the pool stops, or there is no memory */
}

static bool timer_acts(const fj_timer *t)
{
    return t->kind == FJI_TIMER_EXPIRED && ((const struct timeout_call *)t)->on_timeout != NULL;
}

/* A shutdown has taken t out of the wheel. `unneeded`: t is a limit, and its future is being resolved. */
static void timer_discard(fj_timer *t, bool unneeded)
{
    fj_future *f = &t->future;

    if ((f->flags & FJI_FUTURE_LIMIT) == 0) {
        fji_future_finish(f, FJ_ECANCELED);
        return;
    }
    if (!unneeded) (void)fj_future_cancel(f, 0); /* its body may never end by itself */
    fj_future_unref(f);
}

static const fji_timer_ops timer_ops = {
    .fire = timer_fire,
    .discard = timer_discard,
    .acts = timer_acts,
};

/* ---- Public calls: timers ----------------------------------------------------------------------------- */

void fj_timer_init(fj_timer *t, fj_task_fn *fn)
{
    if (t == NULL) return;
    fji_future_init(&t->future, timer_run, fn, FJI_FUTURE_TIMER);
    t->when = 0;
    t->place = 0;
    t->kind = FJI_TIMER_TASK;
    t->period = 0;
}

static int schedule(fj_pool *pool, fj_timer *t, int64_t delay_ns, int64_t period)
{
    if (t == NULL || t->future.fn == NULL || t->future.task.cell != NULL) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    t->period = period;
    int err = timer_schedule(p, t, delay_ns);
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
    return when == INT64_MAX ? INT64_MAX : when - fji_timers_now();
}

uint64_t fj_pool_delayed_count(const fj_pool *pool)
{
    struct fji_timers *ts = fji_timers_if_made(pool != NULL ? pool : fji_common_if_made());

    if (ts == NULL) return 0;
    fji_lock_take(&ts->lock);
    uint64_t n = ts->waiting;
    fji_lock_drop(&ts->lock);
    return n;
}

/* ---- Public calls: limits ----------------------------------------------------------------------------- */

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
    c->call.timer.kind = FJI_TIMER_NEW;
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
    else if (!fji_timers_have_thread(ts))
        err = FJ_EAGAIN;
    fji_lock_drop(&ts->lock);
    if (err != FJ_OK) return err;
    fji_lock_take(&p->lock);
    if (fji_pool_stopping(p))
        err = FJ_EREJECTED;
    else
        fji_pool_add_guest(p);
    fji_lock_drop(&p->lock);
    return err;
}

/* The future is in a queue, or was by now: its limit begins, unless it is decided. */
static void timeout_begin(struct fji_timers *ts, fj_timer *t, int64_t when)
{
    fji_lock_take(&ts->lock);
    bool fresh = t->kind == FJI_TIMER_NEW;
    bool stops = fji_pool_stopping(ts->pool); /* nobody would fire it, nor drop it */
    bool waits = fresh && !stops;
    /* relaxed: the lock */
    if (fresh) fji_store_relaxed(&t->kind, stops ? FJI_TIMER_UNNEEDED : FJI_TIMER_LIMIT);
    if (waits) fji_timers_add(ts, t, when, &timer_ops);
    fji_lock_drop(&ts->lock);
    if (fresh && stops) (void)fj_future_cancel(&t->future, 0);
    if (!waits) fji_future_drop(&t->future);
}

/* FJ_EREJECTED: p takes no work. The caller holds p, and does not wait for its end meanwhile. */
static int timeout_submit(struct fji_timers *ts, fj_timer *t, int64_t when)
{
    fj_pool *p = ts->pool;
    int err = timeout_prepare(ts);

    if (err != FJ_OK) return err;
    err = fji_submit_future(p, &t->future.task, 0, false, true);
    if (err == FJ_OK) timeout_begin(ts, t, when);
    fji_pool_remove_guest(p);
    return err;
}

int fj_submit_with_timeout(fj_pool *pool, fj_call_fn *call, void *arg, int64_t timeout_ns,
                           void (*on_timeout)(fj_future *f, void *arg), fj_future **f)
{
    if (call == NULL || f == NULL) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    struct fji_timers *ts = p != NULL ? fji_timers_of(p) : NULL;
    struct timeout_call *c = ts != NULL ? timeout_make(call, arg, on_timeout) : NULL;
    if (c == NULL) return FJ_ENOMEM;
    int64_t when = fji_timers_later(fji_timers_now(), timeout_ns);
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
