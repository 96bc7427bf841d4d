/* SPDX-License-Identifier: MIT */
/*
 * lane.h - what the tests of lanes share
 */
#ifndef FJT_LANE_H
#define FJT_LANE_H

#include <forkjoin/block.h>
#include <forkjoin/lane.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../api/inside.h"
#include "compose/lane_turn.h"

static inline fj_lane *lane_with(fj_pool *pool, uint32_t width, size_t capacity,
                                 enum fj_lane_full full)
{
    fj_lane_options o = {.pool = pool, .width = width, .capacity = capacity, .full = full};
    fj_lane *l;

    CHECK_EQ(fj_lane_create(&l, &o), FJ_OK);
    return l;
}

static inline fj_lane *lane_at(fj_pool *pool, uint32_t width, enum fj_priority priority)
{
    fj_lane_options o = {.pool = pool, .width = width, .priority = priority};
    fj_lane *l;

    CHECK_EQ(fj_lane_create(&l, &o), FJ_OK);
    return l;
}

static inline int count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    return FJ_OK;
}

static inline int answer(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

/* A gate: actions that have arrived wait until it is opened. */
struct gate {
    atomic_int arrived, open;
};

static inline int gate_wait(void *arg)
{
    struct gate *g = arg;

    atomic_fetch_add(&g->arrived, 1);
    while (!atomic_load(&g->open)) (void)fj_sleep_ns(100000);
    return FJ_OK;
}

static inline void gate_await(struct gate *g, int n)
{
    while (atomic_load(&g->arrived) < n) fjt_sleep_us(50);
}

/* Waits until a call waits for room in the lane. */
static inline void await_producer(fj_lane *l)
{
    for (bool waits = false; !waits;) {
        fjt_sleep_us(50);
        fji_lock_take(&l->lock);
        waits = l->producers != NULL;
        fji_lock_drop(&l->lock);
    }
}

#endif /* FJT_LANE_H */
