/* SPDX-License-Identifier: MIT */
/*
 * actions.h - helpers that pool.c, idle.c and shutdown.c share: actions that count their runs,
 * threads that use a pool, a gate at which workers block, and a pool whose only worker sleeps
 */
#ifndef SIM_ACTIONS_H
#define SIM_ACTIONS_H

#include <forkjoin/block.h>

#include "scenario.h"

/* ---- Actions ------------------------------------------------------------------------------- */

static atomic_int runs;

static inline int action(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

/* Number of calls of tell(). Tests sleep on this word with scenario_await(). */
static uint32_t told;

static inline int tell(void *arg)
{
    (void)arg;
    scenario_add(&told);
    return FJ_OK;
}

static atomic_int here;

/* Two of these actions wait for each other, so they need two workers. */
static inline int meet(void *arg)
{
    (void)arg;
    atomic_fetch_add(&here, 1);
    while (atomic_load(&here) < 2) sim_sleep_until(sim_now() + 1000000);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

/* ---- Threads that use a pool ----------------------------------------------------------------- */

struct sender {
    fj_pool *pool;
    int n, accepted;
};

static inline void *send_actions(void *arg)
{
    struct sender *s = arg;

    for (int i = 0; i < s->n; i++)
        if (fj_execute(s->pool, action, NULL) == FJ_OK) s->accepted++;
    return NULL;
}

static inline void *send_one(void *arg)
{
    CHECK_EQ(fj_execute(arg, action, NULL), FJ_OK);
    return NULL;
}

static inline int counts(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static inline void *invoke_and_leave(void *arg)
{
    fj_task t;

    memset(&t, 0, sizeof t);
    fj_task_init(&t, counts);
    CHECK_EQ(fj_invoke(arg, &t), FJ_OK);
    return NULL;
}

/* ---- A gate ---------------------------------------------------------------------------------- */

/* Whether the gate is open. A worker that waits at the closed gate counts as blocked. */
static atomic_int opened;

static inline int gate_ready(void *arg)
{
    (void)arg;
    return atomic_load(&opened);
}

static inline int gate_block(void *arg)
{
    (void)arg;
    sim_sleep_until(sim_now() + 100000);
    return atomic_load(&opened);
}

static inline int waits_at_the_gate(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_managed_block(gate_ready, gate_block, NULL), FJ_OK);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static inline int opens_the_gate(void *arg)
{
    (void)arg;
    atomic_store(&opened, 1);
    return FJ_OK;
}

/* ---- A pool whose worker sleeps -------------------------------------------------------------- */

/* One worker, which goes to sleep at once and never retires. */
static inline fj_pool *kept_pool(unsigned flags)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.flags = flags;
    o.spin_ns = -1;
    o.keep_alive_ns = FJ_FOREVER;
    return fjt_pool_with(&o);
}

/* Starts the worker of such a pool with one action, and waits until it sleeps again. */
static inline void let_the_worker_sleep(fj_pool *pool)
{
    CHECK_EQ(fj_execute(pool, tell, NULL), FJ_OK);
    scenario_await(&told, 1);
    sim_sleep_until(sim_now() + 50000);
}

#endif /* SIM_ACTIONS_H */
