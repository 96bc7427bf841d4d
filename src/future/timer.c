/* SPDX-License-Identifier: MIT */
/*
 * timer.c - timers: futures that run after a delay or periodically, and futures with a limit
 *
 *     new -> waiting (in the wheel) -> queued -> running -> done
 *                ^                                  |
 *                +----------- periodic -------------+
 *
 * The lock is that of the pool's timers (fji_timers.lock). The state word is that of the future.
 *
 *   schedule   With the lock, the caller puts the timer into the wheel, if the pool accepts work.
 *   fire       A timer thread takes the timer out of the wheel (pool/timers.c) and calls
 *              timer_fire(), which puts the timer into a submission queue. For a limit see below.
 *   rearm      The thread that ran a periodic timer, and got FJ_OK from its body, puts the timer
 *              into the wheel again, with the lock, unless the state word has DONE or COMPLETING,
 *              the pool is shut down, or the pool has no timer thread and cannot start one.
 *   resolve    The resolving thread (future.c) sets COMPLETING, then takes the lock and takes the
 *              timer out of the wheel if it is there. So either the resolving thread finds the
 *              timer in the wheel, or timer_rearm() sees COMPLETING.
 *
 * A thread that resolves a timer which is not scheduled yet does not know the pool of the timer and
 * cannot take the lock. In this case two full fences order the accesses. timer_schedule() stores
 * the pool in the member `cell` of the task, then reads the state word. The resolving thread sets
 * COMPLETING, then reads `cell` (fji_timers_withdraw()). Either timer_schedule() sees COMPLETING
 * and does not use the wheel, or the resolving thread sees the pool and takes the lock.
 *
 * A limit is the timer of a future with a timeout (fj_submit_with_timeout()). The future is
 * submitted first and the limit is added to the wheel afterwards. So if the submission is refused,
 * no limit has to be removed, and on_timeout is not called. fj_timer.kind of a limit changes only
 * with the lock:
 *
 *     NEW -> LIMIT (in the wheel) -> EXPIRED: it fires and fails the future, or calls on_timeout
 *      |       |
 *      +-------+-> UNNEEDED: a thread resolves or finishes the future, or the pool stops, while the
 *                            limit is not in the wheel
 *
 * While the caller of fj_submit_with_timeout() adds the limit, the caller counts as a guest of the
 * pool. Otherwise the body could have ended already, and the pool could end and be freed.
 *
 * Edges         from                           to                                 carries
 *   task.done   full fence, timer_schedule()   full fence, fji_timers_withdraw()  `cell` against
 *                                                                                 state word
 *   task.done   acq_rel and, timer_rearm()     acq_rel CAS, future_claim()        no SIGNALLABLE
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

/* An allocated timer that calls a function of the program with one argument. */
struct timer_call {
    fj_timer timer;
    fj_call_fn *call;     /* NULL if `action` is set */
    fj_action_fn *action; /* NULL if `call` is set */
    void *arg;
};

/* An allocated future with a limit. */
struct timeout_call {
    struct timer_call call; /* the future is call.timer.future, its limit is call.timer */
    void (*on_timeout)(fj_future *f, void *arg);
};

/* ---- Scheduling ------------------------------------------------------------------------------ */

static const fji_timer_ops timer_ops;

/* Puts t into the wheel of p, to fire after delay_ns nanoseconds, at once if delay_ns is negative.
 * If the parallelism of p is 0, changes it to 1. If t is resolved already, releases t instead.
 * Returns FJ_OK; FJ_EREJECTED if p is shut down; FJ_ENOMEM; FJ_EAGAIN if the system refuses the
 * timer thread. If p is the common pool and ends, waits for the end and uses the next common pool;
 * returns FJ_EREJECTED if that end waits for the calling thread. */
static int timer_schedule(fj_pool *p, fj_timer *t, int64_t delay_ns)
{
    struct fji_timers *ts = fji_timers_of(p);
    int err = FJ_OK;
    bool resolved = false;

    if (ts == NULL) return FJ_ENOMEM;
    fji_pool_needs_worker(p);
    int64_t when = fji_timers_later(fji_timers_now(), delay_ns);
    fji_lock_take(&ts->lock);
    /* relaxed: ts->lock orders the load. A shutdown sets its bit of `run` first, and then takes
     * this lock to empty the wheel. */
    if ((fji_load_relaxed(&p->run) & (FJI_RUN_SHUTDOWN | FJI_RUN_CLOSING)) != 0)
        err = FJ_EREJECTED;
    else if (!fji_timers_have_thread(ts))
        err = FJ_EAGAIN;
    if (err == FJ_OK) {
        fji_task_mark_unqueued(&t->future.task, p->submitted_cell);
        /* [task.done] the member `cell` of the task above, the state word below; partner: the fence
         * in fji_timers_withdraw(). Either this thread sees COMPLETING and does not add the timer,
         * or the resolving thread sees `cell` and finds the timer in the wheel. */
        fji_fence_full();
        resolved = !fji_task_is_unresolved(&t->future.task);
        if (!resolved) fji_timers_add(ts, t, when, &timer_ops);
    }
    fji_lock_drop(&ts->lock);
    /* If p is the common pool and ends, fji_common_again() waits for the end and creates the next
     * common pool, in the same record p. */
    if (err == FJ_EREJECTED && (err = fji_common_again(p)) == FJ_OK)
        return timer_schedule(p, t, delay_ns);
    if (resolved) fji_future_finish(&t->future, FJ_ECANCELED);
    return err;
}

/* Called by the thread that has run the periodic timer t: puts t into the wheel again and returns
 * true. Returns false if t was resolved, if the pool is shut down, or if the pool has no timer
 * thread and the system refuses one; then the caller finishes t. */
static bool timer_rearm(fj_timer *t)
{
    fj_pool *p = fji_cell_pool(t->future.task.cell);
    struct fji_timers *ts = fji_timers_if_made(p);
    uint32_t *word = &t->future.task.state;
    int64_t now = fji_timers_now();

    /* [task.done] acq_rel -> acq_rel CAS in future_claim(): that no worker runs the body any more.
     * A resolving thread that has seen SIGNALLABLE before has set COMPLETING, which is checked
     * below. */
    (void)fji_and_acq_rel(word, ~(FJI_THIEF_MASK | FJI_SIGNALLABLE));
    fji_lock_take(&ts->lock);
    /* [task.done] acquire <- acq_rel in future_claim(): COMPLETING. A resolving thread that sets
     * COMPLETING after this load takes ts->lock after this thread, and finds t in the wheel. */
    bool again = (fji_load_acquire(word) & (FJI_DONE | FJI_COMPLETING)) == 0;
    /* relaxed: ts->lock orders the load. A shutdown sets SHUTDOWN first, then takes this lock. */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) again = false;
    /* In a child process after fork() the pool may have no timer thread yet. Then one is started
     * here. */
    if (again) again = fji_timers_have_thread(ts);
    if (again) {
        int64_t from = t->period > 0 ? t->when : now;
        int64_t by = t->period > 0 ? t->period : -t->period;
        fji_timers_add(ts, t, fji_timers_later(from, by), &timer_ops);
    }
    fji_lock_drop(&ts->lock); /* LAST TOUCH of *t if it is in the wheel. */
    return again;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* fj_task.fn of a timer, and of a future with a limit: a thread that has taken it out of a queue,
 * or runs it directly, calls this function. Runs the body. Then puts a periodic timer into the
 * wheel again, if the body returned FJ_OK; in all other cases finishes the future with the code of
 * the body. A periodic timer that cannot be put into the wheel is cancelled, unless it is resolved
 * already. */
static int timer_run(fj_task *t)
{
    fj_timer *timer = (fj_timer *)t;
    fj_future *f = &timer->future;
    uint32_t generation = fji_fork_generation;
    int code = fji_future_execute(f, fji_worker_self());

    /* If the body has called fork() and this is the child process, f must not be accessed any more:
     * its memory may belong to a thread that exists only in the parent process (pool/atfork.c). */
    if (generation != fji_fork_generation) return FJI_COMPLETES_ITSELF;
    if (timer->period == 0) {
        fji_future_finish(f, code);
    } else if (code != FJ_OK || !timer_rearm(timer)) {
        fji_future_finish(f, code == FJ_OK ? FJ_ECANCELED : code);
    }
    return FJI_COMPLETES_ITSELF;
}

/* Called by a timer thread when the limit of the future in *c has expired: fails the future with
 * FJ_ETIMEDOUT, or calls on_timeout if that is not NULL and the future is not done. Drops the
 * reference that the limit has to the future. After the limit has expired, every call that resolves
 * the future also interrupts its body: see future_limit_expired(). */
static void timeout_fire(struct timeout_call *c)
{
    fj_future *f = &c->call.timer.future;

    if (c->on_timeout == NULL) {
        (void)fj_future_fail(f, FJ_ETIMEDOUT);
    } else {
        /* [timer.expired] `kind`, which this thread has set to EXPIRED (timers_fire()), above, the
         * state word below; partner: the fence in fji_timers_withdraw(). Either a thread that
         * resolves f sees EXPIRED and does not use the pool, or this thread sees COMPLETING and
         * waits, so that the pool does not end meanwhile. */
        fji_fence_full();
        if (!fji_future_await_resolver(f)) c->on_timeout(f, c->call.arg);
    }
    fj_future_unref(f);
}

/* fji_timer_ops.fire: called by a timer thread without fji_timers.lock, for a timer t of p that is
 * due and was taken out of the wheel. Queues t in a submission queue of p, or cancels t if that is
 * not possible. If t is a limit, calls timeout_fire(). */
static void timer_fire(fj_timer *t, fj_pool *p)
{
    if ((t->future.flags & FJI_FUTURE_LIMIT) != 0) {
        timeout_fire((struct timeout_call *)t);
        return;
    }
    fji_taken it = {.item = FJI_FUTURE_ITEM(&t->future.task)};
    if (fji_submit_after_shutdown(p, &it) != FJ_OK)
        fji_future_finish(&t->future, FJ_ECANCELED); /* t is not queued: p stops, or no memory */
}

/* fji_timer_ops.acts: returns whether timer_fire() may run user code for t: on_timeout or listeners.
 * t has left the wheel because it was due. Called with fji_timers.lock. */
static bool timer_acts(const fj_timer *t)
{
    if (t->kind != FJI_TIMER_EXPIRED) return false;
    /* relaxed: a hint. If a listener is added later, it only delays other timers while it runs. */
    return ((const struct timeout_call *)t)->on_timeout != NULL ||
           (fji_load_relaxed(&t->future.task.state) & FJI_LISTENED) != 0;
}

/* fji_timer_ops.discard: called without fji_timers.lock by the thread that shuts the pool down and
 * has taken t out of the wheel. If t is a timer, finishes it with FJ_ECANCELED. If t is a limit,
 * cancels its future, unless that is resolved, and drops the reference that the limit has to the
 * future. `unneeded`: t is a limit, and another thread has resolved or finished its future or is
 * doing so; then the future is not cancelled here. */
static void timer_discard(fj_timer *t, bool unneeded)
{
    fj_future *f = &t->future;

    if ((f->flags & FJI_FUTURE_LIMIT) == 0) {
        fji_future_finish(f, FJ_ECANCELED);
        return;
    }
    /* f is cancelled, because without its limit the body of f might never end. */
    if (!unneeded) (void)fj_future_cancel(f, 0);
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

/* Checks t and schedules it in `pool`, or in the common pool if `pool` is NULL. `period`, stored in
 * fj_timer.period, is 0 if t runs once, the period in ns if t runs at a fixed rate, and the
 * negative delay between two runs in ns if t runs with a fixed delay. Returns FJ_EINVAL if t is
 * NULL, has no body or was scheduled before; otherwise as timer_schedule(). After an error t can be
 * scheduled again. */
static int schedule(fj_pool *pool, fj_timer *t, int64_t delay_ns, int64_t period)
{
    if (t == NULL || t->future.fn == NULL || t->future.task.cell != NULL) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    t->period = period;
    int err = timer_schedule(p, t, delay_ns);
    /* relaxed: only the caller uses t */
    if (err != FJ_OK) fji_store_relaxed(&t->future.task.cell, (fj_cell *)NULL);
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

/* The body of a struct timer_call: calls `action` if it is set and `call` otherwise, and returns the
 * code of that function. */
static int timer_call_run(fj_task *t)
{
    struct timer_call *c = (struct timer_call *)t;

    if (c->action != NULL) return c->action(c->arg);
    return c->call(c->arg, &c->timer.future.result);
}

/* Allocates a copy of `made` and schedules it in `pool`, or in the common pool if `pool` is NULL.
 * `period` is as in schedule(). Stores the future in *f, with a reference for the caller, and
 * returns FJ_OK. Returns FJ_EINVAL if f or the function in `made` is NULL, and the errors of
 * schedule(); after an error nothing stays allocated and *f is unchanged. */
static int schedule_made(fj_pool *pool, struct timer_call made, int64_t delay_ns, int64_t period,
                         fj_future **f)
{
    if (f == NULL || (made.call == NULL && made.action == NULL)) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    struct timer_call *c = p != NULL ? fji_pool_block(p, FJI_MEMORY_FUTURES, sizeof *c) : NULL;
    if (c == NULL) return FJ_ENOMEM;
    *c = made;
    fj_timer_init(&c->timer, timer_call_run);
    c->timer.future.flags |= FJI_FUTURE_ALLOCATED | FJI_FUTURE_NOT_BY_CALLERS;
    c->timer.future.refs = 2; /* references: of the caller and of the library */
    int err = schedule(pool, &c->timer, delay_ns, period);
    if (err != FJ_OK)
        fji_block_free(c);
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

/* Allocates a future with a limit from the memory of p. The future is not submitted, and the limit
 * is not in the wheel. Returns NULL if there is no memory. */
static struct timeout_call *timeout_make(fj_pool *p, fj_call_fn *call, void *arg,
                                         void (*on_timeout)(fj_future *f, void *arg))
{
    struct timeout_call *c = fji_pool_block(p, FJI_MEMORY_FUTURES, sizeof *c);

    if (c == NULL) return NULL;
    c->call = (struct timer_call){.call = call, .arg = arg};
    c->on_timeout = on_timeout;
    fj_timer_init(&c->call.timer, timer_call_run);
    fj_future *made = &c->call.timer.future;
    made->flags |= FJI_FUTURE_ALLOCATED | FJI_FUTURE_NOT_BY_CALLERS | FJI_FUTURE_LIMIT;
    made->refs = 3; /* references: of the caller, of the queue and of the limit */
    c->call.timer.kind = FJI_TIMER_NEW;
    return c;
}

/* Called before a future with a limit is submitted to the pool of ts. If the parallelism of the
 * pool is 0, changes it to 1. Starts a timer thread if there is none. Returns FJ_OK; FJ_EREJECTED
 * if the pool is shut down or stops; or FJ_EAGAIN if the system refuses the timer thread. If it
 * returns FJ_OK, the caller is counted as a guest of the pool. A pool that stops accepts no further
 * guest, because its end waits only for the guests that were counted before the stop. */
static int timeout_prepare(struct fji_timers *ts)
{
    fj_pool *p = ts->pool;
    int err = FJ_OK;

    fji_pool_needs_worker(p);
    fji_lock_take(&ts->lock);
    /* relaxed: the submission checks the bits again. */
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

/* Called after the future of t was submitted: puts t, its limit, into the wheel, to fire at the
 * time `when`, a time of fji_timers_now(). If a thread has resolved or finished the future already,
 * does not add t to the wheel. If the pool stops, cancels the future and does not add t. If t is
 * not added, drops the reference that the limit has to the future. */
static void timeout_begin(struct fji_timers *ts, fj_timer *t, int64_t when)
{
    fji_lock_take(&ts->lock);
    bool is_new = t->kind == FJI_TIMER_NEW;
    bool stops = fji_pool_stopping(ts->pool); /* if so, no thread would fire or discard t */
    bool add = is_new && !stops;
    /* relaxed: `kind` changes only with ts->lock */
    if (is_new) fji_store_relaxed(&t->kind, stops ? FJI_TIMER_UNNEEDED : FJI_TIMER_LIMIT);
    if (add) fji_timers_add(ts, t, when, &timer_ops);
    fji_lock_drop(&ts->lock);
    if (is_new && stops) (void)fj_future_cancel(&t->future, 0);
    if (!add) fji_future_drop(&t->future);
}

/* Submits the future of t to the pool of ts and puts t, its limit, into the wheel, to fire at the
 * time `when`, a time of fji_timers_now(). The caller has a hold on the pool (sched/hold.h).
 * Returns FJ_OK; FJ_EREJECTED if the pool is shut down, also if it is the common pool (the caller
 * then tries the next common pool); FJ_ENOMEM; or FJ_EAGAIN if the system refuses the timer
 * thread. */
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
    struct timeout_call *c = ts != NULL ? timeout_make(p, call, arg, on_timeout) : NULL;
    if (c == NULL) return FJ_ENOMEM;
    int64_t when = fji_timers_later(fji_timers_now(), timeout_ns);
    fj_future *made = &c->call.timer.future; /* stored in *f after a success */
    int err = FJ_EREJECTED;
    if (fji_pool_hold(p)) {
        err = timeout_submit(ts, &c->call.timer, when);
        fji_pool_drop_hold(p);
    }
    if (err == FJ_OK) {
        *f = made;
        return FJ_OK;
    }
    fji_block_free(c);
    if (err == FJ_EREJECTED && (err = fji_common_again(p)) == FJ_OK)
        return fj_submit_with_timeout(pool, call, arg, timeout_ns, on_timeout, f);
    return err;
}
