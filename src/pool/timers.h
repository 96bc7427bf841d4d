/* SPDX-License-Identifier: MIT */
/*
 * timers.h - the timers of a pool: the wheel, its threads, its lock
 */
#ifndef FJI_TIMERS_H
#define FJI_TIMERS_H

#include "queue/wheel.h"
#include "sched/pool.h"

/* fj_timer.kind */
#define FJI_TIMER_TASK 0u
#define FJI_TIMER_LIMIT 1u   /* the limit of a future that was submitted */
#define FJI_TIMER_EXPIRED 2u /* the same, and it has fired: it needs nothing of the pool any more */
#define FJI_TIMER_NEW 3u     /* the same, and it is not in the wheel yet */
#define FJI_TIMER_UNNEEDED 4u /* the same, and its future was resolved first */

struct fji_timers {
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock;
    fj_pool *pool;
    const struct fji_timer_ops *ops;
    fji_wheel wheel;
    uint32_t threads; /* that have been started */
    bool kept;        /* one of them keeps the wheel */
    bool spare;       /* another one sleeps until it is called */
    bool coming;      /* a thread was called or started, and has not had the lock since */
    int64_t sleeps;   /* until when the keeper sleeps; INT64_MIN: it is awake */
    uint64_t waiting; /* timers in the wheel */
    uint64_t series;  /* those of them that are periodic */
    uint64_t moving;  /* timers that are being queued, cancelled or fired */
    int64_t watch;    /* when to check whether the pool is short of a worker; INT64_MAX: never */
    int64_t pause;    /* the last pause between two such checks, ns */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t kick; /* the keeper sleeps on it */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t turn; /* the spare thread sleeps on it */
};

/* What timer.c does with a timer that leaves the wheel. Called without the lock. */
typedef struct fji_timer_ops {
    void (*fire)(fj_timer *t, fj_pool *p);       /* it is due */
    void (*discard)(fj_timer *t, bool unneeded); /* a shutdown removes it */
    bool (*acts)(const fj_timer *t);             /* fire() calls a function of the user */
} fji_timer_ops;

/* The time of the timers' clock, and a time of that clock as a deadline of fji_plat_wait(). */
int64_t fji_timers_now(void);
/* `by` ns after `now`; INT64_MAX if the sum overflows. */
int64_t fji_timers_later(int64_t now, int64_t by);

/* The timers of p, or NULL if it has none yet; and made on first use, NULL: no memory. */
struct fji_timers *fji_timers_if_made(const fj_pool *p);
struct fji_timers *fji_timers_of(fj_pool *p);

/* With the lock: whether there is a timer thread; starts one if there is none. */
bool fji_timers_have_thread(struct fji_timers *ts);

/* With the lock: puts t into the wheel. Wakes the keeper if t is due before it wakes up. */
void fji_timers_add(struct fji_timers *ts, fj_timer *t, int64_t when, const fji_timer_ops *ops);

/*
 * f, a timer or a future with a limit, is being resolved: takes it out of the wheel. Returns what it was:
 * NOT_WAITING; WAITED: no other thread has the timer, and the caller releases it; LIMIT: the limit of f
 * waited, and the caller drops its reference.
 */
enum fji_withdrawn { FJI_TIMER_NOT_WAITING, FJI_TIMER_WAITED, FJI_TIMER_LIMIT_WAITED };
enum fji_withdrawn fji_timers_withdraw(fj_future *f);

/* The timer thread wakes workers, with growing pauses, while the pool is short of one. */
void fji_timers_watch(fj_pool *p);

/* Whether the calling thread is a timer thread of p. */
bool fji_timers_is_own_thread(const fj_pool *p);

/* The pool was shut down, or stops: cancels the timers that are not run any more. */
void fji_timers_shutdown(fj_pool *p);

/* Whether timers wait that a pool still runs after a shutdown. */
bool fji_timers_wait(const fj_pool *p);

void fji_timers_free(fj_pool *p);
void fji_timers_renew(fj_pool *p);    /* the common pool is made again */
void fji_timers_in_child(fj_pool *p); /* in the child process after fork() */

#endif /* FJI_TIMERS_H */
