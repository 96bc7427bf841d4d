/* SPDX-License-Identifier: MIT */
/*
 * scenario.h - helpers of the scenarios
 *
 * A scenario is as small as its protocol allows, because every step multiplies the number of
 * schedules. Tasks are allocated, and freed as soon as the contract of the library allows it. So
 * the simulator sees an access that comes too late. In the runs that use freed addresses again at
 * once, it also sees a task that is mistaken for another one.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <stdatomic.h>
#include <string.h>

#include "fjtest.h"
#include "plat/plat.h"
#include "plat/sim/sim.h"

/* A pool whose workers go to sleep at once or after 200 ns, so that waking is part of every
 * scenario. */
static inline fj_pool *scenario_pool(int n, unsigned flags)
{
    fj_pool_options o = {0};

    o.parallelism = n;
    o.max_threads = n + 2;
    o.flags = flags;
    o.spin_ns = sim_random() % 2 == 0 ? -1 : 200;
    o.keep_alive_ns = 20000000;
    return fjt_pool_with(&o);
}

/* A task on the heap that counts its runs and returns `code`. */
struct scenario_leaf {
    fj_task task;
    atomic_int *runs;
    int code;
};

static inline int scenario_leaf_run(fj_task *t)
{
    struct scenario_leaf *l = (struct scenario_leaf *)t;

    atomic_fetch_add_explicit(l->runs, 1, memory_order_relaxed);
    return l->code;
}

static inline struct scenario_leaf *scenario_leaf(atomic_int *runs, int code)
{
    struct scenario_leaf *l = malloc(sizeof *l);

    memset(l, 0, sizeof *l);
    fj_task_init(&l->task, scenario_leaf_run);
    l->runs = runs;
    l->code = code;
    return l;
}

/* Runs body(arg) as a task of the pool, and waits for it. */
struct scenario_call {
    fj_task task;
    void (*body)(void *arg);
    void *arg;
};

static inline int scenario_call_run(fj_task *t)
{
    struct scenario_call *c = (struct scenario_call *)t;

    c->body(c->arg);
    return FJ_OK;
}

static inline void scenario_inside(fj_pool *pool, void (*body)(void *), void *arg)
{
    struct scenario_call c;

    memset(&c, 0, sizeof c);
    fj_task_init(&c.task, scenario_call_run);
    c.body = body;
    c.arg = arg;
    CHECK_EQ(fj_invoke(pool, &c.task), FJ_OK);
}

/* Waits until the flag is set, and lets other threads run meanwhile. */
static inline void scenario_until(atomic_int *flag)
{
    while (atomic_load_explicit(flag, memory_order_acquire) == 0) sim_yield();
}

/* Counters that threads sleep on. If all threads sleep, a lost wake-up shows at once, as a
 * deadlock. scenario_add() increments the counter and returns its new value; scenario_await()
 * waits until it is at least n. */
static inline uint32_t scenario_add(uint32_t *word)
{
    uint32_t now = __atomic_add_fetch(word, 1, __ATOMIC_ACQ_REL);

    fji_plat_wake_all(word);
    return now;
}

static inline void scenario_await(uint32_t *word, uint32_t n)
{
    uint32_t seen;

    while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < n)
        fji_plat_wait(word, seen, FJ_FOREVER);
}

#endif /* SIM_SCENARIO_H */
