/* SPDX-License-Identifier: MIT */
/*
 * priority.c - scenarios of callbacks and lanes with a priority
 */
#include <forkjoin/lane.h>

#include "scenario.h"

static fj_lane *priority_lane(fj_pool *pool, enum fj_priority priority)
{
    fj_lane_options o = {.pool = pool, .width = 1, .priority = priority};
    fj_lane *l;

    CHECK_EQ(fj_lane_create(&l, &o), FJ_OK);
    return l;
}

static char order[16];
static atomic_int order_n, hold_begun, hold_end;

static int note(void *arg)
{
    order[atomic_fetch_add(&order_n, 1)] = *(const char *)arg;
    return FJ_OK;
}

static int hold(void *arg)
{
    (void)arg;
    atomic_store(&hold_begun, 1);
    scenario_until(&hold_end);
    return FJ_OK;
}

/* While the only worker is busy, actions of all priorities arrive, in any order. */
FJ_TEST(one_worker_takes_the_highest_priority_first, 10)
{
    static const char *const names[] = {"h", "n", "b"};
    static const enum fj_priority priorities[] = {FJ_PRIORITY_HIGH, FJ_PRIORITY_NORMAL,
                                                  FJ_PRIORITY_BACKGROUND};
    fj_pool *pool = scenario_pool(1, 0);
    fj_lane *l[3];

    memset(order, 0, sizeof order);
    atomic_store(&order_n, 0);
    atomic_store(&hold_begun, 0);
    atomic_store(&hold_end, 0);
    CHECK_EQ(fj_execute(pool, hold, NULL), FJ_OK);
    scenario_until(&hold_begun);
    uint32_t first = sim_random() % 3;
    for (uint32_t i = 0; i < 3; i++) l[i] = priority_lane(pool, priorities[i]);
    for (uint32_t i = first; i < first + 3; i++)
        CHECK_EQ(fj_lane_execute(l[i % 3], note, (void *)(uintptr_t)names[i % 3]), FJ_OK);
    atomic_store(&hold_end, 1);
    for (uint32_t i = 0; i < 3; i++) CHECK_EQ(fj_lane_destroy(l[2 - i]), FJ_OK);
    CHECK_EQ(strcmp(order, "hnb"), 0);
    fjt_destroy(pool);
}

/* The only worker queues actions in its own queue, and then an action of high priority. Before that
 * action it runs none of its own. */
static fj_pool *own_pool;

static int queue_some(void *arg)
{
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(own_pool, note, "o"), FJ_OK);
    CHECK_EQ(fj_lane_execute(arg, note, "h"), FJ_OK);
    return FJ_OK;
}

FJ_TEST(a_high_callback_goes_before_the_own_queue, 10)
{
    fj_pool_options o = {.parallelism = 1};
    fj_lane *l;

    own_pool = fjt_pool_with(&o);
    l = priority_lane(own_pool, FJ_PRIORITY_HIGH);
    memset(order, 0, sizeof order);
    atomic_store(&order_n, 0);
    CHECK_EQ(fj_execute(own_pool, queue_some, l), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(own_pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(strcmp(order, "hoo"), 0);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    fjt_destroy(own_pool);
}

/* Actions that submit themselves again keep the worker busy until the other action has run. */
static fj_lane *flooding;

static int flood(void *arg)
{
    if (atomic_load(&order_n) == 0) CHECK_EQ(fj_lane_execute(flooding, flood, arg), FJ_OK);
    return FJ_OK;
}

FJ_TEST(a_lower_priority_moves_while_a_higher_one_floods, 10)
{
    static const enum fj_priority priorities[] = {FJ_PRIORITY_HIGH, FJ_PRIORITY_NORMAL,
                                                  FJ_PRIORITY_BACKGROUND};
    fj_pool *pool = scenario_pool(1, 0);
    uint32_t high = sim_random() % 2;
    fj_lane *low = priority_lane(pool, priorities[high + 1 + sim_random() % (2 - high)]);

    memset(order, 0, sizeof order);
    atomic_store(&order_n, 0);
    flooding = priority_lane(pool, priorities[high]);
    CHECK_EQ(fj_lane_execute(flooding, flood, NULL), FJ_OK);
    CHECK_EQ(fj_lane_execute(low, note, "l"), FJ_OK);
    CHECK_EQ(fj_lane_drain(low, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_lane_drain(flooding, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_lane_destroy(low), FJ_OK);
    CHECK_EQ(fj_lane_destroy(flooding), FJ_OK);
    fjt_destroy(pool);
}

static uint32_t ran;

static int tell(void *arg)
{
    (void)arg;
    scenario_add(&ran);
    return FJ_OK;
}

/* The worker sleeps, or is about to: it must find a callback in any queue. */
FJ_TEST(a_sleeping_worker_is_woken_for_every_priority, 10)
{
    static const enum fj_priority priorities[] = {FJ_PRIORITY_HIGH, FJ_PRIORITY_NORMAL,
                                                  FJ_PRIORITY_BACKGROUND};
    fj_pool *pool = scenario_pool(1 + (int)(sim_random() % 2), 0);

    ran = 0;
    for (uint32_t i = 0; i < 3; i++) {
        fj_lane *l = priority_lane(pool, priorities[sim_random() % 3]);
        CHECK_EQ(fj_lane_execute(l, tell, NULL), FJ_OK);
        scenario_await(&ran, i + 1);
        CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    }
    fjt_destroy(pool);
}
