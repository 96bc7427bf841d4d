/* SPDX-License-Identifier: MIT */
/*
 * timers.h - the waiting timers of a pool: the wheel, its lock and its threads
 *
 * future/timer.c schedules timers and runs them. A limit is the timer that belongs to a future with
 * a timeout (fj_submit_with_timeout()): when it fires, the future fails with FJ_ETIMEDOUT, or the
 * callback on_timeout is called. Any thread may call these functions. The caller holds neither
 * fji_timers.lock nor the lock of the pool, except where a comment begins with "With ts->lock".
 */
#ifndef FJI_TIMERS_H
#define FJI_TIMERS_H

#include "queue/wheel.h"
#include "sched/pool.h"

/* Values of fj_timer.kind. A thread changes `kind` only while it holds fji_timers.lock: NEW ->
 * LIMIT -> EXPIRED, or NEW or LIMIT -> UNNEEDED. TASK does not change. */
#define FJI_TIMER_TASK 0u     /* not a limit: the body runs when the timer fires */
#define FJI_TIMER_LIMIT 1u    /* a limit that was added to the wheel and has not fired */
#define FJI_TIMER_EXPIRED 2u  /* a limit that has left the wheel because it was due */
#define FJI_TIMER_NEW 3u      /* a limit that was not added to the wheel yet */
#define FJI_TIMER_UNNEEDED 4u /* a thread resolves the future, and the limit was not in the wheel */

struct fji_timers {
    /* A thread that reads or changes the other members holds this lock, except for `pool`, `kick`
     * and `turn`. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock;
    fj_pool *pool;                   /* the pool to which the timers belong */
    const struct fji_timer_ops *ops; /* functions of future/timer.c; NULL before the first add */
    fji_wheel wheel;                 /* the waiting timers, by the time at which they fire */
    uint32_t threads;                /* number of timer threads */
    bool kept;                       /* a timer thread, the keeper, serves the wheel */
    bool spare;                      /* another timer thread, the spare thread, sleeps on `turn` */
    bool coming; /* a timer thread was woken or started, and has not taken `lock` yet */
    /* The time (fji_timers_now()) until which the keeper sleeps. INT64_MIN: it does not sleep, or
     * no thread has been the keeper yet. INT64_MAX: it sleeps until `kick` changes. */
    int64_t asleep_until;
    uint64_t waiting; /* number of timers in the wheel, or that a shutdown is going to put back */
    uint64_t series;  /* how many of the timers counted in `waiting` are periodic */
    uint64_t moving;  /* number of timers in fire() or discard(), out of the wheel */
    /* The time (fji_timers_now()) at which the keeper checks next whether the pool is short of a
     * worker. INT64_MAX: no check is planned. fji_timers_watch() plans one after a refused
     * start. */
    int64_t watch;
    int64_t pause; /* the pause, ns, between the last planning of such a check and the check */
    FJI_ALIGNAS(FJI_CACHE_PAIR)
    uint32_t kick; /* the keeper sleeps on this word; a change wakes it */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t turn; /* as `kick`, for the spare thread */
};

/* The functions of future/timer.c for a timer that has left the wheel. fire() and discard() are
 * called without fji_timers.lock, acts() with it. */
typedef struct fji_timer_ops {
    /* The time of t, a timer of p, has come: queues t, or if t is a limit, fails its future or
     * calls on_timeout. */
    void (*fire)(fj_timer *t, fj_pool *p);
    /* A shutdown has removed t from the wheel, and t will not fire. `unneeded`: t is a limit, and
     * another thread resolves its future. */
    void (*discard)(fj_timer *t, bool unneeded);
    bool (*acts)(const fj_timer *t); /* whether fire() may run user code for t */
} fji_timer_ops;

/* Returns the time of the timers' clock, ns: fji_plat_now(), plus an offset in a FJI_WRAP_TEST
 * build. */
int64_t fji_timers_now(void);

/* Returns the time `by` ns after `now`. Returns `now` if `by` is negative, and INT64_MAX if the sum
 * overflows. */
int64_t fji_timers_later(int64_t now, int64_t by);

/* Returns the timers of p, or NULL if p has no record of timers yet. */
struct fji_timers *fji_timers_if_made(const fj_pool *p);

/* Returns the record of the timers of p. Creates it if p has none yet. Returns NULL if there is no
 * memory. Takes the lock of p if it creates the record. */
struct fji_timers *fji_timers_of(fj_pool *p);

/* With ts->lock: starts a timer thread if there is none. Returns true if there is a timer thread
 * now, and false if the system refuses it. Takes the lock of the pool if it starts a thread. */
bool fji_timers_have_thread(struct fji_timers *ts);

/* With ts->lock: adds t to the wheel, to fire at the time `when` of the timers' clock. Wakes the
 * keeper if it would sleep longer than that. `ops`: the functions for all timers of the pool. */
void fji_timers_add(struct fji_timers *ts, fj_timer *t, int64_t when, const fji_timer_ops *ops);

/*
 * Takes the timer of f out of the wheel. f is a timer, or a future with a limit. The caller has set
 * COMPLETING in order to resolve f, or has run the body of f and is about to finish f. Returns
 *   FJI_TIMER_NOT_WAITING   the timer was not in the wheel. If it is a limit that another thread
 *                           is about to add, that thread does not add it any more;
 *   FJI_TIMER_WAITED        f was a timer in the wheel. No queue and no worker has f, so the caller
 *                           releases it;
 *   FJI_TIMER_LIMIT_WAITED  the limit of f was in the wheel. The caller drops the reference to f
 *                           that the limit had.
 */
enum fji_withdrawn { FJI_TIMER_NOT_WAITING, FJI_TIMER_WAITED, FJI_TIMER_LIMIT_WAITED };
enum fji_withdrawn fji_timers_withdraw(fj_future *f);

/* Called when a start of a worker of p was refused, and p is short of a worker and has no active
 * one. From now on the keeper tries again and again to wake or start a worker, with pauses of at
 * most FJI_RETRY_MAX_NS, until p is not short of a worker any more. Does nothing if the keeper does
 * so already, if p stops, if there is no memory for the record of the timers, or if no timer thread
 * can be started. */
void fji_timers_watch(fj_pool *p);

/* Returns whether the calling thread is a timer thread of p. */
bool fji_timers_is_own_thread(const fj_pool *p);

/* Called after SHUTDOWN or STOP was set in the run state of p: cancels the timers that p does not
 * run any more, and wakes the keeper and the spare thread. It cancels the periodic timers. It also
 * cancels the timers that run once, if STOP is set or fj_pool_cancel_delayed_on_shutdown() was
 * called for p. If STOP is set, it also cancels the futures whose limits are in the wheel. Does
 * nothing if p has no record of timers. */
void fji_timers_shutdown(fj_pool *p);

/* Returns whether p has timers that keep it from ending after a shutdown: timers in the wheel, and
 * timers that have left it and are not yet queued or finished. The periodic timers of the common
 * pool do not count. Does not wait for the timers. */
bool fji_timers_wait(const fj_pool *p);

/* Frees the record of the timers. p has ended and is not the common pool. */
void fji_timers_free(fj_pool *p);

/* Called when the common pool p is created again, before its run state is cleared: takes and
 * releases fji_timers.lock, if p has a record of timers. So a thread that holds this lock and finds
 * the run state cleared sees everything that the caller wrote before this call. */
void fji_timers_renew(fj_pool *p);

/* Called in the child process after fork(): removes all timers of p from the wheel without
 * resolving them, sets the number of timer threads to 0, and resets fji_timers.lock. Does nothing
 * if p has no record of timers. */
void fji_timers_in_child(fj_pool *p);

#endif /* FJI_TIMERS_H */
