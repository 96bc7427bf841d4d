/* SPDX-License-Identifier: MIT */
/*
 * trap.h - what several of the trap tests need
 *
 * Waiting without a limit of its own (the time limit of the test is the only one), a look at
 * the pool's counts and its idle stack at rest, and actions that count or meet each other.
 */
#ifndef TRAP_H
#define TRAP_H

#include <fjtest.h>
#include <pool.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* ---- Waiting ---------------------------------------------------------------------------- */

/* Gives way more and more: the one waited for may need this core. */
static inline void trap_give_way(int turn)
{
    if (turn < 50) return;
    if (turn < 2000)
        sched_yield();
    else
        fjt_sleep_us(50);
}

#define UNTIL(cond) \
    for (int trap_turn = 0; !(cond); trap_turn++) trap_give_way(trap_turn)

/* Busy for about `ns`, without a call into the library. */
static inline void trap_spin_ns(int64_t ns)
{
    int64_t end = fjt_now() + ns;
    while (ns > 0 && fjt_now() < end) {}
}

static inline int trap_below(uint64_t *seed, int n)
{
    return (int)(fjt_random(seed) % (uint64_t)n);
}

/* ---- Threads of the test ---------------------------------------------------------------- */

static inline pthread_t trap_thread(void *(*run)(void *), void *arg)
{
    pthread_t t;
    int err = pthread_create(&t, NULL, run, arg);
    if (err != 0) fjt_fail(__FILE__, __LINE__, "pthread_create: %d", err);
    return t;
}

/* ---- A pool at rest --------------------------------------------------------------------- */

static inline uint64_t trap_ctl(const fj_pool *p)
{
    return fji_load_acquire(&p->ctl);
}

static inline int trap_total(const fj_pool *p)
{
    return fji_ctl_total(trap_ctl(p));
}

/*
 * Whether everybody is idle and the books agree: active == 0, total == threads alive, and
 * the idle stack holds each of them once. (A worker that is twice on it makes it endless.)
 */
static inline bool trap_is_at_rest(const fj_pool *p)
{
    uint64_t c = trap_ctl(p);
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
    return listed == total && alive == total && trap_ctl(p) == c;
}

static inline void trap_rest(const fj_pool *p)
{
    UNTIL(trap_is_at_rest(p));
}

static inline uint64_t trap_started(const fj_pool *p)
{
    fj_stats s;
    CHECK_EQ(fj_pool_stats(p, &s), FJ_OK);
    return s.started;
}

/* ---- Actions ---------------------------------------------------------------------------- */

static inline int trap_count(void *counter)
{
    atomic_fetch_add((atomic_int *)counter, 1);
    return FJ_OK;
}

struct trap_meeting {
    int n;
    atomic_int here, gone;
};

static inline int trap_meet(void *arg)
{
    struct trap_meeting *m = arg;

    atomic_fetch_add(&m->here, 1);
    UNTIL(atomic_load(&m->here) >= m->n);
    atomic_fetch_add(&m->gone, 1);
    return FJ_OK;
}

/* n actions that all run at one moment: ends only if the pool really has n workers. */
static inline void trap_all_at_once(fj_pool *p, int n)
{
    struct trap_meeting m = {.n = n};

    for (int i = 0; i < n; i++) CHECK_EQ(fj_execute(p, trap_meet, &m), FJ_OK);
    UNTIL(atomic_load(&m.gone) == n);
}

#endif /* TRAP_H */
