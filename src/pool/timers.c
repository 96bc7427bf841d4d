/* SPDX-License-Identifier: MIT */
/*
 * timers.c - the waiting timers of a pool: the wheel, its lock and its threads
 *
 * The first timer of a pool, or the first refused start of a worker (see below), creates a record
 * (struct fji_timers) with a wheel, which holds the waiting timers, and starts a thread. The wheel
 * changes only with the lock of the record.
 * future/timer.c adds timers, and provides the functions that run them (fji_timer_ops). A timer
 * leaves the wheel in one of three ways:
 *
 *   fire      A timer thread finds that the timer is due. It takes the timer out of the wheel,
 *             releases the lock and calls fire(). The timer is counted in `moving` until fire(),
 *             which queues it, has returned, so that a pool that is shut down does not end
 *             meanwhile.
 *   withdraw  A thread resolves the future of the timer (future/future.c). That thread sets
 *             COMPLETING first. If the timer is in the wheel, it takes the timer out. Then no queue
 *             and no worker has the timer, and the resolving thread releases it. A thread that adds
 *             a timer checks COMPLETING with the lock. So either the resolving thread finds the
 *             timer in the wheel, or the timer is not added.
 *   shutdown  The thread that shuts the pool down takes all timers out of the wheel, one by one. It
 *             discards those that the pool does not run any more, without the lock and counted in
 *             `moving`. It puts the others back at the end. A thread that resolves a future in that
 *             time does not find the timer in the wheel. So before the shutdown puts a timer back,
 *             it checks whether a thread has resolved the future or is resolving it.
 *
 * Limits. A limit is the timer of a future with a timeout. fj_submit_with_timeout() submits the
 * future first and adds its limit to the wheel afterwards. `kind` of the limit changes only with
 * the lock:
 *
 *     NEW -> LIMIT (in the wheel) -> EXPIRED: it has fired
 *      |       |
 *      +-------+-> UNNEEDED: a thread resolves the future while the limit is not in the wheel
 *
 * Threads. One thread, the keeper, keeps the wheel: it fires the timers that are due, and sleeps on
 * `kick` until the next time in the wheel. A thread that adds an earlier time changes `kick`. Tasks
 * of timers run in the pool, but the on_timeout callback of a limit runs in the keeper, because all
 * workers may be busy. While on_timeout runs, another thread keeps the wheel:
 *
 *     keeper                                      spare thread, sleeps on `turn`
 *     with the lock: kept = false; turn + 1       wakes up
 *     without the lock: on_timeout()              takes the lock; kept is false: becomes the keeper
 *     takes the lock; kept is true:
 *     becomes the spare thread, or exits if there is one
 *
 * If the callback is short, the keeper takes the lock first and stays the keeper. If there is no
 * spare thread, the keeper starts one. If no thread can be started, the wheel waits for the end of
 * the callback. So a callback delays other timers by at most the time to wake or start a thread.
 * Each timer thread counts as a guest of the pool. So the pool ends only after the thread exits.
 *
 * The keeper has a second duty. If a start of a worker is refused, and no worker is active, the
 * keeper tries again, with pauses, while the pool is short of a worker (fji_timers_watch()).
 *
 * Edges          from                               to                                carries
 *   timer.made   release store, fji_timers_of()     acquire, fji_timers_if_made()     the record
 *   timer.made   full fence, fji_timers_of()        full fence, fji_pool_shutdown()   record
 *                                                                                     against run
 *   timer.made   release, fji_task_mark_unqueued()  acquire, fji_timers_withdraw()    the record
 *   task.done    full fence, fji_timers_withdraw()  full fence, timer_schedule()      state word
 *                                                                                     against cell
 *   timer.kick   release add, timer_kick()          acquire load, timers_keep()       a new time
 *   timer.turn   release add, timers_turn()         acquire load, timers_stand_by()   the turn
 *   timer.ahead  acq_rel CAS, timer_ahead()         the same                          the offset
 */

#include "pool/timers.h"

#include <stdio.h>

#include "sched/lifetime.h"
#include "sched/spawn.h"
#include "sched/wake.h"

/* The record of the common pool's timers. It is static, because a thread that has not noticed the
 * end of the common pool may take the lock of the record. */
static struct fji_timers timers_common;

/* The pool of which the calling thread is a timer thread, or NULL. */
static __thread const fj_pool *timers_self;

FJI_STATIC_ASSERT(sizeof(fji_moment) == sizeof(int64_t) + 3 * sizeof(void *) + 8,
                  "fj_timer has a fji_moment inside");

/* Returns the element of the wheel for t: the members `when` to `place` of a timer are laid out as
 * a fji_moment. */
static fji_moment *moment_of(fj_timer *t)
{
    return (fji_moment *)(void *)&t->when;
}

static fj_timer *timer_of(fji_moment *m)
{
    return (fj_timer *)(void *)((char *)m - offsetof(fj_timer, when));
}

/* ---- The clock ------------------------------------------------------------------------------- */

/* Returns the offset of the timers' clock from the clock of the system, ns: 0, except in a
 * FJI_WRAP_TEST build. There the timers' clock starts shortly before a time at which nearly all
 * wheels of queue/wheel.c turn. */
static int64_t timer_ahead(void)
{
#if FJI_WRAP_TEST
    static int64_t ahead;
    int64_t none = 0, mine = FJI_START_CLOCK - fji_plat_now();

    /* [timer.ahead] acq_rel: the first call sets the offset, and every other call reads that value.
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

/* Converts a time of the timers' clock to a deadline for fji_plat_wait(). */
static int64_t timer_deadline(int64_t when)
{
    return when == INT64_MAX ? FJ_FOREVER : when - timer_ahead();
}

int64_t fji_timers_later(int64_t now, int64_t by)
{
    if (by <= 0) return now;
    return by > INT64_MAX - now ? INT64_MAX : now + by;
}

/* ---- The threads ----------------------------------------------------------------------------- */

struct fji_timers *fji_timers_if_made(const fj_pool *p)
{
    /* [timer.made] acquire <- release in fji_timers_of(): the contents of the record. */
    return fji_load_acquire(&p->timers);
}

/* Makes the keeper check the wheel and the run state again, even if it sleeps or is about to
 * sleep. */
static void timer_kick(struct fji_timers *ts)
{
    /* [timer.kick] release -> acquire in timers_keep(): the wheel or the run state, which the
     * caller has changed before. */
    fji_add_acq_rel(&ts->kick, 1);
    fji_plat_wake_one(&ts->kick);
}

/* Wakes the spare thread. It becomes the keeper if there is none, exits if the pool stops, and
 * otherwise becomes the spare thread again. Called with ts->lock, while there is a spare thread. */
static void timers_turn(struct fji_timers *ts)
{
    ts->spare = false;
    ts->coming = true;
    /* [timer.turn] release -> acquire in timers_stand_by(): that `spare` and `coming` have changed.
     * timers_stand_by() reads `turn` with ts->lock before it sleeps, so it misses no change. */
    fji_add_acq_rel(&ts->turn, 1);
    fji_plat_wake_all(&ts->turn);
}

static void timers_main(void *arg);

/* With ts->lock: starts one more timer thread and counts it as a guest of the pool. Returns false
 * if the system refuses the thread; then it is not counted. */
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

/* With ts->lock, called by the keeper before it runs on_timeout of a limit: it stops being keeper.
 * Wakes the spare thread, or starts a timer thread if there is no spare one; does neither if a
 * woken or started thread has not taken ts->lock yet. If no thread can be started, the caller
 * becomes the keeper again after the callback. */
static void timers_hand_over(struct fji_timers *ts)
{
    ts->kept = false;
    if (ts->coming) return;
    if (ts->spare)
        timers_turn(ts);
    else
        (void)timers_start(ts);
}

/* With ts->lock: adds n to ts->waiting, and to ts->series if t is periodic. n is 1 if t was added
 * to the wheel, and -1 modulo 2^64 if t has left it. */
static void timers_count(struct fji_timers *ts, const fj_timer *t, uint64_t n)
{
    ts->waiting += n;
    if (t->period != 0) ts->series += n;
}

/* If p is shut down and nothing keeps it from ending any more, stops p. Called by a timer thread
 * without ts->lock before it sleeps or exits, because the end of p may have waited for a timer or
 * for a callback of this thread. */
static void timers_try_end(fj_pool *p)
{
    /* relaxed: if this thread does not see the bit yet, the shutdown kicks the keeper after it has
     * set the bit, and the keeper checks again. */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) p->hooks->try_terminate(p, false);
}

/*
 * Fires t, which the keeper has taken out of the wheel. Called by the keeper with ts->lock;
 * releases the lock while it calls fire(). Returns true if the caller is still the keeper, and
 * false if another thread has become the keeper. In both cases the caller holds the lock again.
 *
 * If on_timeout has called fork(), this function returns in the child process as well. There it
 * sets *forked and returns false without ts->lock: the child process does not count this thread as
 * a timer thread.
 */
static bool timers_fire_one(struct fji_timers *ts, fj_timer *t, bool *forked)
{
    const fji_timer_ops *ops = ts->ops; /* read with ts->lock */
    bool acts = ops->acts(t);
    uint32_t generation = fji_fork_generation;

    timers_count(ts, t, (uint64_t)-1);
    ts->moving++;
    if (acts) timers_hand_over(ts);
    fji_lock_drop(&ts->lock);
    ops->fire(t, ts->pool); /* LAST TOUCH of *t: after fire() another thread may free it. */
    *forked = generation != fji_fork_generation;
    if (*forked) return false;
    fji_lock_take(&ts->lock);
    ts->moving--;
    bool still_keeper = !acts || !ts->kept;
    ts->kept = true;
    return still_keeper;
}

/* Fires the timers that are due at the time `now`, until none is left, the pool stops, or another
 * thread has become the keeper. Called by the keeper with ts->lock, which is released while fire()
 * runs. Returns true if the caller is still the keeper, and false if another thread is. If
 * on_timeout has called fork(), in the child process sets *forked and returns false without
 * ts->lock. */
static bool timers_fire(struct fji_timers *ts, int64_t now, bool *forked)
{
    fji_moment *m;

    while (!fji_pool_stopping(ts->pool) && (m = fji_wheel_take(&ts->wheel, now)) != NULL) {
        fj_timer *t = timer_of(m);
        if (t->kind == FJI_TIMER_LIMIT)
            fji_store_relaxed(&t->kind, FJI_TIMER_EXPIRED); /* relaxed: ts->lock orders it */
        if (!timers_fire_one(ts, t, forked)) return false;
    }
    return true;
}

/* With ts->lock: sets ts->watch, the time at which the keeper checks next whether the pool is short
 * of a worker, and ts->pause. The time is `pause` ns from now, or FJI_RETRY_MAX_NS from now if
 * `pause` is greater. Returns whether the keeper would sleep beyond that time, so that the caller
 * has to wake it. */
static bool timers_watch_after(struct fji_timers *ts, int64_t pause)
{
    ts->pause = pause < FJI_RETRY_MAX_NS ? pause : FJI_RETRY_MAX_NS;
    ts->watch = fji_timers_later(fji_timers_now(), ts->pause);
    return ts->watch < ts->asleep_until;
}

/* Called by the keeper with ts->lock, which is released during the check. ts->watch is the time of
 * the next check. It is INT64_MAX, so that this function does nothing, until fji_timers_watch()
 * sets it after a refused start of a worker. When the time has come, checks whether the pool is
 * short of a worker. If it is, tries to wake or start a worker, and plans the next check after a
 * pause that is twice as long. If it is not, ts->watch stays INT64_MAX, and no check follows until
 * a start is refused again. */
static void timers_check_pool(struct fji_timers *ts)
{
    if (fji_timers_now() < ts->watch) return;
    /* Before the check: during it a refused start calls fji_timers_watch(), which sets both. */
    int64_t pause = ts->pause;
    ts->watch = INT64_MAX;
    fji_lock_drop(&ts->lock);
    bool is_short = fji_spawn_is_short(ts->pool);
    if (is_short) fji_wake_one(ts->pool);
    fji_lock_take(&ts->lock);
    if (is_short) (void)timers_watch_after(ts, 2 * pause);
}

/* Called with ts->lock by a thread that becomes the keeper. Returns with ts->lock when another
 * thread has become the keeper, or the pool stops. If on_timeout has called fork(), in the child
 * process sets *forked and returns without ts->lock. */
static void timers_keep(struct fji_timers *ts, bool *forked)
{
    fj_pool *p = ts->pool;

    ts->kept = true;
    while (!fji_pool_stopping(p)) {
        ts->asleep_until = INT64_MIN;
        if (!timers_fire(ts, fji_timers_now(), forked)) return;
        timers_check_pool(ts);
        /* [timer.kick] acquire <- release in timer_kick(): what the kicking thread has changed.
         * `kick` is read with ts->lock and before `run`. So if another thread changes the wheel or
         * `run` later, its kick changes the word, and this thread does not sleep. */
        uint32_t seen = fji_load_acquire(&ts->kick);
        int64_t next = fji_wheel_next(&ts->wheel);
        if (ts->watch < next) next = ts->watch;
        ts->asleep_until = next;
        fji_lock_drop(&ts->lock);
        timers_try_end(p);
        if (!fji_pool_stopping(p) && fji_timers_now() < next)
            (void)fji_plat_wait(&ts->kick, seen, timer_deadline(next));
        fji_lock_take(&ts->lock);
    }
    ts->kept = false;
}

/* Called with ts->lock by a thread that becomes the spare thread. Releases the lock and sleeps
 * until `turn` changes or the pool stops. Returns with the lock. */
static void timers_stand_by(struct fji_timers *ts)
{
    ts->spare = true;
    /* [timer.turn] acquire <- release in timers_turn(): all earlier changes of `turn`. If `turn`
     * changes later, this thread does not sleep, or wakes up. */
    uint32_t seen = fji_load_acquire(&ts->turn);
    fji_lock_drop(&ts->lock);
    timers_try_end(ts->pool); /* the pool's end may have waited for a callback of this thread */
    if (!fji_pool_stopping(ts->pool)) (void)fji_plat_wait(&ts->turn, seen, FJ_FOREVER);
    fji_lock_take(&ts->lock);
    /* [timer.turn] acquire <- release in timers_turn(): if `turn` has changed, `spare` was cleared
     * there. Another thread may be the spare thread by now, so this thread must not clear it. */
    if (fji_load_acquire(&ts->turn) == seen)
        ts->spare = false;
    else
        ts->coming = false;
}

/* The function of a timer thread of the pool of arg, a struct fji_timers. The thread becomes the
 * keeper if there is none. Otherwise it becomes the spare thread if there is none. Otherwise it
 * exits. It also exits if the pool stops. */
static void timers_main(void *arg)
{
    struct fji_timers *ts = arg;
    fj_pool *p = ts->pool;
    bool forked = false;

    timers_self = p;
    fji_lock_take(&ts->lock);
    ts->coming = false;
    while (!fji_pool_stopping(p) && !forked) {
        if (!ts->kept)
            timers_keep(ts, &forked);
        else if (!ts->spare)
            timers_stand_by(ts);
        else
            break;
    }
    if (forked) return; /* this is the child process, whose pool does not count this thread */
    ts->threads--;
    fji_lock_drop(&ts->lock);
    timers_try_end(p);
    fji_pool_leave(p);
}

bool fji_timers_is_own_thread(const fj_pool *p)
{
    return timers_self == p;
}

bool fji_timers_have_thread(struct fji_timers *ts)
{
    return ts->threads != 0 || timers_start(ts);
}

/* Returns a zeroed record: of the common pool the static one. Returns NULL if there is no memory. */
static struct fji_timers *timers_new(fj_pool *p)
{
    if (p->is_common) return &timers_common;
    return fji_memory_alloc(p->memory, FJI_MEMORY_TIMERS, sizeof(struct fji_timers));
}

struct fji_timers *fji_timers_of(fj_pool *p)
{
    struct fji_timers *ts = fji_timers_if_made(p);

    if (ts != NULL) return ts;
    fji_lock_take(&p->lock);
    ts = p->timers;
    if (ts == NULL && (ts = timers_new(p)) != NULL) {
        ts->pool = p;
        ts->asleep_until = INT64_MIN;
        ts->watch = INT64_MAX;
        fji_wheel_init(&ts->wheel, fji_timers_now());
        ts->kick = ts->turn = FJI_START_32;
        /* [timer.made] release -> acquire in fji_timers_if_made(): the contents of the record. */
        fji_store_release(&p->timers, ts);
        /* [timer.made] p->timers above, run below; partners: the fences in fji_pool_shutdown() and
         * fji_pool_stop_common(). Either the thread that shuts the pool down sees the record, or
         * the thread that adds a timer sees SHUTDOWN or CLOSING. */
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

/* ---- Adding and removing --------------------------------------------------------------------- */

void fji_timers_add(struct fji_timers *ts, fj_timer *t, int64_t when, const fji_timer_ops *ops)
{
    ts->ops = ops;
    /* relaxed: fj_timer_remaining() reads `when` without ts->lock, as an estimate. */
    fji_store_relaxed(&t->when, when);
    fji_wheel_add(&ts->wheel, moment_of(t));
    timers_count(ts, t, 1);
    if (when < ts->asleep_until) timer_kick(ts);
}

/* Takes t out of the wheel and returns true. Returns false if t was not in the wheel. Then, if t is
 * a limit that another thread is about to add, t becomes UNNEEDED, and that thread does not add it.
 * The other thread is the one that submits the future, or a shutdown that puts t back. Takes
 * ts->lock. */
static bool timers_remove(struct fji_timers *ts, fj_timer *t)
{
    fji_lock_take(&ts->lock);
    bool waited = fji_moment_waits(moment_of(t));
    if (waited) {
        fji_wheel_remove(&ts->wheel, moment_of(t));
        timers_count(ts, t, (uint64_t)-1);
        /* If the pool is shut down, its end may have waited for this timer. The keeper then checks
         * whether the pool can end.
         * relaxed: a shutdown that sets SHUTDOWN later checks the wheel afterwards, with
         * ts->lock. */
        if ((fji_load_relaxed(&ts->pool->run) & FJI_RUN_SHUTDOWN) != 0) timer_kick(ts);
    } else if (t->kind == FJI_TIMER_NEW || t->kind == FJI_TIMER_LIMIT) {
        fji_store_relaxed(&t->kind, FJI_TIMER_UNNEEDED); /* relaxed: ts->lock orders it */
    }
    fji_lock_drop(&ts->lock); /* LAST TOUCH of *ts and its pool. */
    return waited;
}

enum fji_withdrawn fji_timers_withdraw(fj_future *f)
{
    fj_timer *t = (fj_timer *)f;

    /* [task.done] COMPLETING, which the caller has set, above, the member `cell` of the task below;
     * partner: the fence in timer_schedule(). Either this thread sees in `cell` that the timer was
     * scheduled, and finds it in the wheel; or timer_schedule() sees COMPLETING and does not add
     * it.
     * [timer.expired] COMPLETING above, `kind` below; partner: the fence in timeout_fire(). Either
     * this thread sees EXPIRED, or the timer thread sees COMPLETING. */
    fji_fence_full();
    /* [timer.made] acquire <- release in fji_task_mark_unqueued(): the record of the pool's
     * timers. */
    fj_cell *submitted = fji_load_acquire(&f->task.cell);

    if (submitted == NULL || fji_task_is_orphaned(&f->task)) return FJI_TIMER_NOT_WAITING;
    /* The pool must not be accessed if it may have ended and be freed. That is possible if f is a
     * timer whose body has returned FJ_PENDING (RELEASED), or if f has a limit that is EXPIRED or
     * UNNEEDED. In all other cases a thread of the pool still has to run or discard f. That thread
     * waits until COMPLETING is cleared, so the pool does not end before.
     * relaxed: RELEASED, EXPIRED and UNNEEDED are final. */
    uint32_t kind = fji_load_relaxed(&t->kind);
    bool open = (fji_load_relaxed(&f->task.state) & FJI_RELEASED) != 0; /* relaxed: as above */
    if (kind == FJI_TIMER_EXPIRED || kind == FJI_TIMER_UNNEEDED || (kind == FJI_TIMER_TASK && open))
        return FJI_TIMER_NOT_WAITING;
    fj_pool *p = fji_cell_pool(submitted);
    if (!timers_remove(fji_timers_if_made(p), t)) return FJI_TIMER_NOT_WAITING;
    return kind == FJI_TIMER_TASK ? FJI_TIMER_WAITED : FJI_TIMER_LIMIT_WAITED;
}

/* ---- Shutdown -------------------------------------------------------------------------------- */

/* With ts->lock: returns whether t stays in the wheel after a shutdown. `stops`: the run state of
 * the pool has STOP. `all`: timers that run once are cancelled too. A limit stays unless `stops` is
 * true, because the body of its future may still run. A timer that runs once stays unless `all` is
 * true. A periodic timer does not stay. */
static bool timer_stays(const fj_timer *t, bool all, bool stops)
{
    if (t->kind == FJI_TIMER_LIMIT) return !stops;
    return !all && t->period == 0;
}

/* Discards t, which the caller has taken out of the wheel. Called with ts->lock, which is released
 * while discard() runs. */
static void timers_drop(struct fji_timers *ts, fj_timer *t)
{
    const fji_timer_ops *ops = ts->ops;            /* read with ts->lock */
    bool unneeded = t->kind == FJI_TIMER_UNNEEDED; /* another thread resolves the future */

    timers_count(ts, t, (uint64_t)-1);
    ts->moving++;
    fji_lock_drop(&ts->lock);
    ops->discard(t, unneeded);
    fji_lock_take(&ts->lock);
    ts->moving--;
}

/* Called without ts->lock by a thread that shuts the pool down. Cancels the periodic timers in the
 * wheel, and if `all` is true also the timers that run once. If the pool stops, also cancels the
 * futures whose limits are in the wheel. */
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
        /* A thread that has resolved the future of t since t left the wheel above, or is resolving
         * it, has not found t in the wheel. So t must not be put back. */
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
    /* relaxed: a thread that sets cancel_delayed and then sees SHUTDOWN calls this function. */
    bool all = fji_pool_stopping(p) || fji_load_relaxed(&p->cancel_delayed) != 0;
    timers_cancel(ts, all);
    timer_kick(ts);
    fji_lock_take(&ts->lock);
    if (ts->spare) timers_turn(ts); /* if the pool stops, the spare thread exits */
    fji_lock_drop(&ts->lock);
}

bool fji_timers_wait(const fj_pool *p)
{
    struct fji_timers *ts = fji_timers_if_made(p);

    if (ts == NULL) return false;
    fji_lock_take(&ts->lock);
    uint64_t some = ts->waiting + ts->moving;
    /* The periodic timers of the common pool are cancelled when it stops, so they do not keep it
     * from ending. In any other pool the shutdown has cancelled them already. */
    if (p->is_common) some -= ts->series;
    fji_lock_drop(&ts->lock);
    return some != 0;
}

/* ---- The record ------------------------------------------------------------------------------ */

void fji_timers_free(fj_pool *p)
{
    fji_memory_free(p->memory, FJI_MEMORY_TIMERS, p->timers, sizeof *p->timers);
}

void fji_timers_renew(fj_pool *p)
{
    if (p->timers == NULL) return;
    /* A thread that has not noticed the end of the previous common pool may hold this lock. */
    fji_lock_take(&p->timers->lock);
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
    ts->asleep_until = INT64_MIN;
    ts->waiting = ts->series = 0;
    ts->moving = 0;
    ts->watch = INT64_MAX;
}

/* ---- Public calls ---------------------------------------------------------------------------- */

int fj_pool_cancel_delayed_on_shutdown(fj_pool *pool)
{
    if (pool == NULL) return FJ_EINVAL;
    if (pool->is_common) return FJ_ENOTSUP;
    fji_store_relaxed(&pool->cancel_delayed, 1u); /* relaxed: the fence below orders the store */
    /* [pool.end] the flag above, run below; partner: the fence in fji_pool_shutdown(). Either the
     * shutdown sees the flag, or this thread sees SHUTDOWN. */
    fji_fence_full();
    /* [pool.end] acquire <- release in fji_pool_shutdown(): what it did before it set SHUTDOWN. */
    if ((fji_load_acquire(&pool->run) & FJI_RUN_SHUTDOWN) != 0) {
        fji_timers_shutdown(pool);
        pool->hooks->try_terminate(pool, false);
    }
    return FJ_OK;
}
