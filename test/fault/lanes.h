/* SPDX-License-Identifier: MIT */
/*
 * lanes.h - a program that uses lanes, to be run while calls are refused (programs.h)
 */
#ifndef LANES_H
#define LANES_H

#include <forkjoin/lane.h>

static atomic_int lane_ran, lane_cancelled;

static int lane_action(void *arg)
{
    (void)arg;
    atomic_fetch_add(&lane_ran, 1);
    return FJ_OK;
}

static void lane_drop(fj_lane *l, fj_action_fn *action, void *action_arg, void *arg)
{
    (void)action_arg;
    CHECK(l != NULL && action == lane_action && arg == NULL);
    atomic_fetch_add(&lane_cancelled, 1);
}

static int lane_call(void *arg, void **result)
{
    *result = NULL;
    return lane_action(arg);
}

/* Gives actions to the lane and returns how many it has accepted. */
static int lane_fill(fj_lane *l, int n)
{
    int accepted = 0;

    for (int i = 0; i < n; i++) {
        int err = fj_lane_execute(l, lane_action, NULL);
        CHECK_MAY(err);
        accepted += err == FJ_OK;
    }
    return accepted;
}

static int lane_future(fj_lane *l)
{
    fj_future *f;
    int err = fj_lane_call(l, lane_call, NULL, &f);

    CHECK_MAY(err);
    if (err != FJ_OK) return 0;
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fj_future_unref(f);
    return 1;
}

static void run_lanes(int n)
{
    static const enum fj_priority priorities[] = {FJ_PRIORITY_NORMAL, FJ_PRIORITY_HIGH,
                                                  FJ_PRIORITY_BACKGROUND};
    fj_pool *p = pool_of(1 + n % 2, n % 5 == 0 ? FJ_POOL_FIFO : 0);
    fj_lane_options o = {.pool = p, .width = (uint32_t)(n % 3), .priority = priorities[n / 3 % 3]};
    fj_lane *l;

    if (p == NULL) return;
    atomic_store(&lane_ran, 0);
    atomic_store(&lane_cancelled, 0);
    o.capacity = n % 4 == 0 ? 3 : 0;
    o.full = n % 8 == 0 ? FJ_LANE_CALLER_RUNS : FJ_LANE_WAITS;
    o.on_cancel = lane_drop;
    int err = fj_lane_create(&l, &o);
    CHECK_MAY(err);
    if (err == FJ_OK) {
        int accepted = lane_fill(l, 70) + lane_future(l);
        CHECK_EQ(fj_lane_drain(l, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&lane_ran), accepted);
        if (n % 2 == 0) calm();
        CHECK_EQ(fj_lane_pause(l), FJ_OK);
        accepted += lane_fill(l, 3);
        if (n % 3 == 0) CHECK_EQ(fj_lane_resume(l), FJ_OK);
        if (n % 3 == 0) accepted += lane_future(l);
        CHECK_EQ(fj_lane_destroy(l), FJ_OK);
        CHECK_EQ(atomic_load(&lane_ran) + atomic_load(&lane_cancelled), accepted);
    }
    fjt_destroy(p);
}

#endif /* LANES_H */
