/* SPDX-License-Identifier: MIT */
/*
 * regression.h - helpers that several regression tests use
 *
 * UNTIL() waits for a condition; the time limit of the test is its only limit. Other helpers read
 * the counts of a pool, wait until all its workers are idle, and give actions that count their runs
 * or wait for each other.
 */
#ifndef REGRESSION_H
#define REGRESSION_H

#include <fjtest.h>
#include <pthread.h>
#include <sched.h>
#include <sched/pool.h>
#include <stdatomic.h>
#include <task/wait_bucket.h>

/* ---- Waiting ---------------------------------------------------------------------------- */

/* Returns at once in the first 50 turns, then yields, and sleeps from turn 2000 on. The thread that
 * makes the condition true may need this CPU. */
static inline void regression_give_way(int turn)
{
    if (turn < 50) return;
    if (turn < 2000)
        sched_yield();
    else
        fjt_sleep_us(50);
}

#define UNTIL(cond) \
    for (int regression_turn = 0; !(cond); regression_turn++) regression_give_way(regression_turn)

/* Spins for about `ns` nanoseconds without a call into the library. */
static inline void regression_spin_ns(int64_t ns)
{
    int64_t end = fjt_now() + ns;
    while (ns > 0 && fjt_now() < end) {}
}

static inline int regression_below(uint64_t *seed, int n)
{
    return (int)(fjt_random(seed) % (uint64_t)n);
}

/* ---- Threads of the test ---------------------------------------------------------------- */

static inline pthread_t regression_thread(void *(*run)(void *), void *arg)
{
    pthread_t t;
    int err = pthread_create(&t, NULL, run, arg);
    if (err != 0) fjt_fail(__FILE__, __LINE__, "pthread_create: %d", err);
    return t;
}

/* ---- A pool at rest --------------------------------------------------------------------- */

static inline uint64_t regression_ctl(const fj_pool *p)
{
    return fji_load_acquire(&p->ctl);
}

static inline int regression_total(const fj_pool *p)
{
    return fji_ctl_total(regression_ctl(p));
}

/*
 * Returns whether all workers are idle and the counts agree: active == 0, total == number of
 * threads alive, and the idle stack holds each worker once. (If a worker were on the stack twice,
 * the list would be a cycle.)
 */
static inline bool regression_is_at_rest(const fj_pool *p)
{
    uint64_t c = regression_ctl(p);
    int total = fji_ctl_total(c), alive = 0, listed = 0;

    if (fji_ctl_deficit(c) != -fji_load_relaxed(&p->parallelism)) return false;
    for (uint32_t i = 0; i < fji_load_acquire(&p->workers); i++) {
        const fji_worker *w = fji_pool_worker(p, i);
        if (w != NULL && fji_load_acquire(&w->alive) == FJI_ALIVE_WORKER) alive++;
    }
    for (uint32_t top = fji_ctl_top(c); top != 0;) {
        const fji_worker *w = fji_pool_worker(p, top - 1);
        if (w == NULL || ++listed > total) return false;
        uint32_t park = fji_load_acquire(&w->park);
        if (park != FJI_PARK_IDLE && park != FJI_PARK_PARKED) return false;
        top = fji_load_relaxed(&w->next_idle);
    }
    return listed == total && alive == total && regression_ctl(p) == c;
}

static inline void regression_rest(const fj_pool *p)
{
    UNTIL(regression_is_at_rest(p));
}

static inline uint64_t regression_started(const fj_pool *p)
{
    fj_stats s;
    CHECK_EQ(fj_pool_stats(p, &s), FJ_OK);
    return s.started;
}

/* ---- Actions ---------------------------------------------------------------------------- */

static inline int regression_count(void *counter)
{
    atomic_fetch_add((atomic_int *)counter, 1);
    return FJ_OK;
}

struct regression_meeting {
    int n;
    atomic_int here, gone;
};

static inline int regression_meet(void *arg)
{
    struct regression_meeting *m = arg;

    atomic_fetch_add(&m->here, 1);
    UNTIL(atomic_load(&m->here) >= m->n);
    atomic_fetch_add(&m->gone, 1);
    return FJ_OK;
}

/* Runs n actions that wait for each other. It returns only if n workers run them at once. */
static inline void regression_all_at_once(fj_pool *p, int n)
{
    struct regression_meeting m = {.n = n};

    for (int i = 0; i < n; i++) CHECK_EQ(fj_execute(p, regression_meet, &m), FJ_OK);
    UNTIL(atomic_load(&m.gone) == n);
}

#endif /* REGRESSION_H */
