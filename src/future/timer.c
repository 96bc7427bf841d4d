/* SPDX-License-Identifier: MIT */
/*
 * timer.c - timers: futures that run after a delay or periodically, and futures with a limit
 *
 *     new -> waiting (in the wheel) -> queued -> running -> done
 *                ^                                  |
 *                +----------- periodic -------------+
 *
 *   schedule   The caller puts the timer into the wheel, under the lock of the timers, if the pool
 *              takes work.
 *   fire       A timer thread takes it out of the wheel (pool/timers.c) and calls timer_fire(),
 *              which puts it into a submission queue.
 *   rearm      The worker that ran a periodic timer puts it into the wheel again, under the lock,
 *              unless the word is DONE or COMPLETING, or the pool is shut down.
 *   cancel     The resolving thread (future.c) sets COMPLETING, then takes the lock and takes the
 *              timer out of the wheel if it is there. So either it finds the timer in the wheel, or
 *              timer_rearm() sees COMPLETING.
 *
 * Before a timer is scheduled, a resolving thread does not know its pool and cannot take the lock.
 * Two full fences decide there. timer_schedule() stores the pool in the cell of the task, then
 * reads the word. The resolving thread sets COMPLETING, then reads the cell
 * (fji_timers_withdraw()). Either the first sees COMPLETING and does not use the wheel, or the
 * second sees the pool and waits for the lock.
 *
 * A limit is the timer of a future that was submitted already. The future is submitted first, so
 * that a refused submission leaves nothing behind and its on_timeout is not called. fj_timer.kind:
 *
 *     NEW -> LIMIT (in the wheel) -> EXPIRED: it fires and resolves the future, or calls on_timeout
 *      |       |
 *      +-------+-> UNNEEDED: the future is resolved while the limit is not in the wheel
 *
 * All changes of the kind are made under the lock of the timers. While the caller of
 * fj_submit_with_timeout() adds the limit it counts as a guest of the pool, because the body may
 * have ended already, and the pool with it.
 *
 * Edges         from                           to                                 carries
 *   task.done   full fence, timer_schedule()   full fence, fji_timers_withdraw()  cell against word
 *   task.done   acq_rel and, timer_rearm()     acq_rel CAS, future_claim()        no runner
 *
 * The wheel and its threads are in pool/timers.c.
 */

#include "future/future.h"
#include "plat/wait.h"
#include "pool/common_pool.h"
#include "pool/create.h"
#include "pool/submit.h"
#include "pool/timers.h"
#include "sched/hold.h"
#include "sched/lifetime.h"

/* An allocated timer that calls a function of the caller with one argument. */
struct timer_call {
    fj_timer timer;
    fj_call_fn *call;     /* NULL if `action` is set */
    fj_action_fn *action; /* NULL if `call` is set */
    void *arg;
};

/* An allocated future with a limit. */
struct timeout_call {
    struct timer_call call; /* its future is submitted; its timer is the limit */
    void (*on_timeout)(fj_future *f, void *arg);
};

/* ---- Scheduling ------------------------------------------------------------------------------ */

static const fji_timer_ops timer_ops;

/* Puts t into the wheel of p. If t is resolved already, releases it instead. Returns FJ_OK;
 * FJ_EREJECTED if p takes no work; FJ_ENOMEM; FJ_EAGAIN if the system refuses the timer thread. */
static int timer_schedule(fj_pool *p, fj_timer *t, int64_t delay_ns)
{
    struct fji_timers *ts = fji_timers_of(p);
    int err = FJ_OK;
    bool resolved = false;

    if (ts == NULL) return FJ_ENOMEM;
    fji_pool_needs_worker(p);
    int64_t when = fji_timers_later(fji_timers_now(), delay_ns);
    fji_lock_take(&ts->lock);
    /* relaxed: a shutdown sets the bit and then takes the lock to empty the wheel. */
    if ((fji_load_relaxed(&p->run) & (FJI_RUN_SHUTDOWN | FJI_RUN_CLOSING)) != 0)
        err = FJ_EREJECTED;
    else if (!fji_timers_have_thread(ts))
        err = FJ_EAGAIN;
    if (err == FJ_OK) {
        fji_task_mark_unqueued(&t->future.task, p->submitted_cell);
        /* [task.done] the cell above, the word below; partner: the fence in fji_timers_withdraw(),
         * which reads the cell after COMPLETING was set. */
        fji_fence_full();
        resolved = !fji_task_is_unresolved(&t->future.task);
        if (!resolved) fji_timers_add(ts, t, when, &timer_ops);
    }
    fji_lock_drop(&ts->lock);
    /* If p is the common pool and has ended, the timer goes to the next common pool. */
    if (err == FJ_EREJECTED && (err = fji_common_again(p)) == FJ_OK)
        return timer_schedule(p, t, delay_ns);
    if (resolved) fji_future_finish(&t->future, FJ_ECANCELED);
    return err;
}

/* After a run of a periodic timer: puts it into the wheel again. Returns false if its runs have
 * ended; then the caller finishes it. */
static bool timer_rearm(fj_timer *t)
{
    fj_pool *p = fji_cell_pool(t->future.task.cell);
    struct fji_timers *ts = fji_timers_if_made(p);
    uint32_t *word = &t->future.task.state;
    int64_t now = fji_timers_now();

    /* [task.done] acq_rel: clears the runner. A thread that has seen SIGNALLABLE before has set
     * COMPLETING, which is checked below. */
    (void)fji_and_acq_rel(word, ~(FJI_THIEF_MASK | FJI_SIGNALLABLE));
    fji_lock_take(&ts->lock);
    /* [task.done] acquire <- acq_rel in future_claim(). A resolving thread that sets COMPLETING
     * after this takes the lock later, and finds t in the wheel. */
    bool again = (fji_load_acquire(word) & (FJI_DONE | FJI_COMPLETING)) == 0;
    /* relaxed: as in timer_schedule(). */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) again = false;
    if (again) again = fji_timers_have_thread(ts); /* after fork() it has to be started */
    if (again) {
        int64_t from = t->period > 0 ? t->when : now;
        int64_t by = t->period > 0 ? t->period : -t->period;
        fji_timers_add(ts, t, fji_timers_later(from, by), &timer_ops);
    }
    fji_lock_drop(&ts->lock); /* LAST TOUCH of *t if it is in the wheel. */
    return again;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* The queues call this to run a timer. */
static int timer_run(fj_task *t)
{
    fj_timer *timer = (fj_timer *)t;
    fj_future *f = &timer->future;
    uint32_t generation = fji_fork_generation;
    int code = fji_future_execute(f, fji_worker_self());

    /* If the body has called fork(), the child process does not access f after it: see atfork.c. */
    if (generation != fji_fork_generation) return FJI_COMPLETES_ITSELF;
    if (timer->period == 0) {
        fji_future_finish(f, code);
    } else if (code != FJ_OK || !timer_rearm(timer)) {
        fji_future_finish(f, code == FJ_OK ? FJ_ECANCELED : code);
    }
    return FJI_COMPLETES_ITSELF;
}

/* The limit of a future has expired: fails the future, or calls on_timeout. A call that resolves
 * the future from now on interrupts its body: see future_limit_expired(). */
static void timeout_fire(struct timeout_call *c)
{
    fj_future *f = &c->call.timer.future;

    if (c->on_timeout == NULL) {
        (void)fj_future_fail(f, FJ_ETIMEDOUT);
    } else {
        /* [timer.expired] EXPIRED above, the state word below; partner: the fence in
         * fji_timers_withdraw(). Either a thread that resolves f sees that the limit has expired, and
         * does not use the pool; or this thread sees COMPLETING and waits, so the pool cannot end. */
        fji_fence_full();
        if (!fji_future_await_resolver(f)) c->on_timeout(f, c->call.arg);
    }
    fj_future_unref(f);
}

/* t is due and out of the wheel. Called by a timer thread without the lock. */
static void timer_fire(fj_timer *t, fj_pool *p)
{
    if ((t->future.flags & FJI_FUTURE_LIMIT) != 0) {
        timeout_fire((struct timeout_call *)t);
        return;
    }
    fji_taken it = {.item = FJI_FUTURE_ITEM(&t->future.task)};
    if (fji_submit_after_shutdown(p, &it) != FJ_OK)
        fji_future_finish(&t->future, FJ_ECANCELED); /* p stops, or there is no memory */
}

/* Whether timer_fire() calls on_timeout, which is user code. Called with the lock. */
static bool timer_acts(const fj_timer *t)
{
    return t->kind == FJI_TIMER_EXPIRED && ((const struct timeout_call *)t)->on_timeout != NULL;
}

/* A shutdown has taken t out of the wheel. `unneeded`: t is a limit, and its future is being
 * resolved. Called without the lock. */
static void timer_discard(fj_timer *t, bool unneeded)
{
    fj_future *f = &t->future;

    if ((f->flags & FJI_FUTURE_LIMIT) == 0) {
        fji_future_finish(f, FJ_ECANCELED);
        return;
    }
    if (!unneeded) (void)fj_future_cancel(f, 0); /* without a limit its body might never end */
    fj_future_unref(f);
}

static const fji_timer_ops timer_ops = {
    .fire = timer_fire,
    .discard = timer_discard,
    .acts = timer_acts,
};

/* ---- Public calls: timers -------------------------------------------------------------------- */

void fj_timer_init(fj_timer *t, fj_task_fn *fn)
{
    if (t == NULL) return;
    fji_future_init(&t->future, timer_run, fn, FJI_FUTURE_TIMER);
    t->when = 0;
    t->place = 0;
    t->kind = FJI_TIMER_TASK;
    t->period = 0;
}

/* Checks t and schedules it. period: as fj_timer.period. */
static int schedule(fj_pool *pool, fj_timer *t, int64_t delay_ns, int64_t period)
{
    if (t == NULL || t->future.fn == NULL || t->future.task.cell != NULL) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    t->period = period;
    int err = timer_schedule(p, t, delay_ns);
    if (err != FJ_OK)
        fji_store_relaxed(&t->future.task.cell, (fj_cell *)NULL); /* relaxed: caller's */
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

/* The body: calls the function. */
static int timer_call_run(fj_task *t)
{
    struct timer_call *c = (struct timer_call *)t;

    if (c->action != NULL) return c->action(c->arg);
    return c->call(c->arg, &c->timer.future.result);
}

/* Allocates a copy of `made` and schedules it. The caller gets a reference in *f. */
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
    int64_t when = fji_load_relaxed(&((const fj_timer *)f)->when); /* relaxed: a hint */
    return when == INT64_MAX ? INT64_MAX : when - fji_timers_now();
}

uint64_t fj_pool_delayed_count(const fj_pool *pool)
{
    const fj_pool *p = pool != NULL ? pool : fji_common_if_made();
    struct fji_timers *ts = p != NULL ? fji_timers_if_made(p) : NULL;

    if (ts == NULL) return 0;
    fji_lock_take(&ts->lock);
    uint64_t n = ts->waiting;
    fji_lock_drop(&ts->lock);
    return n;
}

/* ---- Public calls: limits -------------------------------------------------------------------- */

/* Makes a future with a limit that is not in the wheel yet. Returns NULL if there is no memory. */
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

/* Makes sure that the pool takes work, and that it has a worker and a timer thread. If it returns
 * FJ_OK, the caller is counted as a guest of the pool. A pool that stops takes no further guest,
 * because its end waits only for the guests that were counted before the stop. */
static int timeout_prepare(struct fji_timers *ts)
{
    fj_pool *p = ts->pool;
    int err = FJ_OK;

    fji_pool_needs_worker(p);
    fji_lock_take(&ts->lock);
    /* relaxed: the submission checks it again. */
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

/* The future was submitted: puts its limit into the wheel, unless the future is resolved or the
 * pool stops. If the limit is not put there, drops its reference. */
static void timeout_begin(struct fji_timers *ts, fj_timer *t, int64_t when)
{
    fji_lock_take(&ts->lock);
    bool is_new = t->kind == FJI_TIMER_NEW;
    bool stops = fji_pool_stopping(ts->pool); /* then no thread fires or discards the limit */
    bool add = is_new && !stops;
    /* relaxed: under the lock */
    if (is_new) fji_store_relaxed(&t->kind, stops ? FJI_TIMER_UNNEEDED : FJI_TIMER_LIMIT);
    if (add) fji_timers_add(ts, t, when, &timer_ops);
    fji_lock_drop(&ts->lock);
    if (is_new && stops) (void)fj_future_cancel(&t->future, 0);
    if (!add) fji_future_drop(&t->future);
}

/* Submits the future of t and begins its limit. The caller has a hold on the pool. Returns
 * FJ_EREJECTED if the pool takes no work. */
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
    fj_future *made = &c->call.timer.future; /* after the submission it may be freed */
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
