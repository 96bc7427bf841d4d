/* SPDX-License-Identifier: MIT */
/*
 * every.h - an oracle for broadcasts, and workers that run actions at the same time
 */
#ifndef FJT_EVERY_H
#define FJT_EVERY_H

#include <forkjoin/every.h>

#include "../api/inside.h"

/* ---- The oracle ------------------------------------------------------------------------------ */

/* What the calls of fn in one broadcast have in common. */
struct visit {
    int id;             /* of this broadcast */
    atomic_int calls;   /* calls of fn */
    atomic_int twice;   /* calls of fn in a thread that has called it before */
    atomic_int workers; /* one bit for each index of a worker that has called it */
};

static __thread int last_visit; /* the id of the last broadcast that the thread took part in */
static atomic_int visit_ids;

static inline struct visit visit_new(void)
{
    struct visit v = {.id = atomic_fetch_add(&visit_ids, 1) + 1};
    return v;
}

/* Not 0 from the first call of fn to its last return: no older task runs then. */
static atomic_int stopped;

static inline int visits(void *arg)
{
    struct visit *v = arg;

    atomic_fetch_add(&stopped, 1);
    atomic_fetch_add(&v->calls, 1);
    if (last_visit == v->id) atomic_fetch_add(&v->twice, 1);
    last_visit = v->id;
    CHECK(fj_current_worker() >= 0);
    CHECK_EQ(atomic_fetch_or(&v->workers, 1 << fj_current_worker()) >> fj_current_worker() & 1, 0);
    sched_yield();
    atomic_fetch_sub(&stopped, 1);
    return FJ_OK;
}

/* Runs a broadcast and checks that n threads took part, each once; any number if n is 0. */
static inline void broadcast_visits(fj_pool *pool, int n)
{
    struct visit v = visit_new();

    CHECK_EQ(fj_broadcast(pool, visits, &v), FJ_OK);
    if (n > 0) CHECK_EQ(atomic_load(&v.calls), n);
    CHECK_EQ(atomic_load(&v.twice), 0);
}

/* ---- Workers that run n actions at the same time --------------------------------------------- */

static atomic_int crowd_in, crowd_open, crowd_out;
static int (*crowd_wait)(void);

static inline int crowd_action(void *arg)
{
    (void)arg;
    atomic_fetch_add(&crowd_in, 1);
    int code = crowd_wait();
    CHECK_EQ(atomic_load(&stopped), 0);
    atomic_fetch_add(&crowd_out, 1);
    return code;
}

/* Makes n workers of the pool run an action that calls wait(). Returns when all n run. */
static inline void crowd_begin(fj_pool *pool, int n, int (*wait)(void))
{
    atomic_store(&crowd_in, 0);
    atomic_store(&crowd_out, 0);
    atomic_store(&crowd_open, 0);
    crowd_wait = wait;
    for (int i = 0; i < n; i++) CHECK_EQ(fj_execute(pool, crowd_action, NULL), FJ_OK);
    while (atomic_load(&crowd_in) < n) sched_yield();
}

static inline void crowd_end(fj_pool *pool)
{
    atomic_store(&crowd_open, 1);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
}

static inline int wait_busy(void)
{
    while (atomic_load(&crowd_open) == 0) {
        fj_safepoint();
        CHECK_EQ(atomic_load(&stopped), 0);
    }
    return FJ_OK;
}

static inline fj_pool *pool_of(int n, unsigned flags)
{
    fj_pool_options o = {0};

    o.parallelism = n;
    o.max_threads = n;
    o.flags = flags;
    o.keep_alive_ns = FJ_FOREVER;
    return fjt_pool_with(&o);
}

static const unsigned flags_of_pools[] = {0, FJ_POOL_FIFO, FJ_POOL_SYMMETRIC};
#define EACH_KIND(flags)                                                           \
    for (size_t kind = 0; kind < sizeof flags_of_pools / sizeof(unsigned); kind++) \
        for (unsigned flags = flags_of_pools[kind], once = 1; once; once = 0)

#endif /* FJT_EVERY_H */
