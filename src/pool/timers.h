/* SPDX-License-Identifier: MIT */
/*
 * timers.h - the waiting timers of a pool: the wheel, its lock and its threads
 *
 * future/timer.c schedules timers and runs them. "The lock" is fji_timers.lock. Unless stated
 * otherwise, any thread may call a function, without the lock and without the lock of the pool.
 */
#ifndef FJI_TIMERS_H
#define FJI_TIMERS_H

#include "queue/wheel.h"
#include "sched/pool.h"

/* fj_timer.kind. It changes only with the lock: NEW -> LIMIT -> EXPIRED, or NEW or LIMIT ->
 * UNNEEDED. */
#define FJI_TIMER_TASK 0u     /* the timer is a task of its own */
#define FJI_TIMER_LIMIT 1u    /* the timer is the limit of a submitted future */
#define FJI_TIMER_EXPIRED 2u  /* the limit has fired, and does not use the pool any more */
#define FJI_TIMER_NEW 3u      /* the limit is not in the wheel yet */
#define FJI_TIMER_UNNEEDED 4u /* the future was resolved while its limit was not in the wheel */

struct fji_timers {
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock;
    fj_pool *pool;
    const struct fji_timer_ops *ops;
    fji_wheel wheel;
    uint32_t threads;     /* number of timer threads */
    bool kept;            /* one of them, the keeper, keeps the wheel */
    bool spare;           /* another one, the spare thread, sleeps until its turn */
    bool coming;          /* a thread was woken or started, and has not taken the lock since */
    int64_t asleep_until; /* when the keeper wakes up; INT64_MIN: it is awake */
    uint64_t waiting;     /* number of timers in the wheel */
    uint64_t series;      /* number of periodic timers in the wheel */
    uint64_t moving;      /* number of timers that are being fired or discarded */
    int64_t watch; /* when to check whether the pool is short of a worker; INT64_MAX: never */
    int64_t pause; /* the last pause between two such checks, ns */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t kick; /* the keeper sleeps on it */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t turn; /* the spare thread sleeps on it */
};

/* What future/timer.c does with a timer that has left the wheel. fire() and discard() are called
 * without the lock, acts() with it. */
typedef struct fji_timer_ops {
    void (*fire)(fj_timer *t, fj_pool *p); /* t is due */
    /* A shutdown has removed t. `unneeded`: t is a limit, and its future is being resolved. */
    void (*discard)(fj_timer *t, bool unneeded);
    bool (*acts)(const fj_timer *t); /* whether fire() calls a callback of the user */
} fji_timer_ops;

/* Returns the time of the timers' clock, ns. */
int64_t fji_timers_now(void);

/* Returns the time `by` ns after `now`. Returns `now` if `by` is negative, and INT64_MAX if the sum
 * overflows. */
int64_t fji_timers_later(int64_t now, int64_t by);

/* Returns the timers of p, or NULL if p has no record of timers yet, or if p is NULL. */
struct fji_timers *fji_timers_if_made(const fj_pool *p);

/* Returns the timers of p. Creates the record on first use; returns NULL if there is no memory. */
struct fji_timers *fji_timers_of(fj_pool *p);

/* With the lock: starts a timer thread if there is none. Returns false if the system refuses it. */
bool fji_timers_have_thread(struct fji_timers *ts);

/* With the lock: adds t to the wheel, to fire at `when`. Wakes the keeper if it would sleep longer
 * than that. */
void fji_timers_add(struct fji_timers *ts, fj_timer *t, int64_t when, const fji_timer_ops *ops);

/*
 * Takes f, a timer or a future with a limit, out of the wheel. The caller resolves f: either it has
 * set COMPLETING, or it is the worker that has run f. Returns
 *   FJI_TIMER_NOT_WAITING   f was not in the wheel;
 *   FJI_TIMER_WAITED        f was a waiting timer. No queue and no worker has it, so the caller
 *                           releases it;
 *   FJI_TIMER_LIMIT_WAITED  the limit of f was in the wheel. The caller drops the reference of the
 *                           limit.
 */
enum fji_withdrawn { FJI_TIMER_NOT_WAITING, FJI_TIMER_WAITED, FJI_TIMER_LIMIT_WAITED };
enum fji_withdrawn fji_timers_withdraw(fj_future *f);

/* Called when the start of a worker was refused. From now on the timer thread wakes or starts
 * workers, with growing pauses, until p is not short of a worker any more. Does nothing if p stops,
 * or if there is no memory or no thread for it. */
void fji_timers_watch(fj_pool *p);

/* Whether the calling thread is a timer thread of p. */
bool fji_timers_is_own_thread(const fj_pool *p);

/* Called after SHUTDOWN or STOP was set: cancels the timers that p does not run any more, and wakes
 * the timer threads. */
void fji_timers_shutdown(fj_pool *p);

/* Whether p has timers that keep it from ending after a shutdown. Does not wait. */
bool fji_timers_wait(const fj_pool *p);

/* Frees the record of timers. p has ended and is not the common pool. */
void fji_timers_free(fj_pool *p);

/* Called when the common pool p is created again, without the lock: takes and releases the lock, as
 * fji_pool_make_common() requires. */
void fji_timers_renew(fj_pool *p);

/* In the child process after fork(): removes all timers, and resets the lock. */
void fji_timers_in_child(fj_pool *p);

#endif /* FJI_TIMERS_H */
