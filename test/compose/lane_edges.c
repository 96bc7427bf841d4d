/* SPDX-License-Identifier: MIT */
/*
 * lane_edges.c - lanes: nested actions, refused turns, pools that stop in the middle of a call
 */
#include "lane.h"

/* ---- Order and deadlock of actions inside actions ---------------------------------------------- */

static char begun[64];
static atomic_int begun_n;

static int note(void *arg)
{
    begun[atomic_fetch_add(&begun_n, 1)] = *(const char *)arg;
    return FJ_OK;
}

FJ_TEST(actions_begin_in_order_in_a_common_pool_without_workers, 10)
{
    static const char letters[] = "abcdef";

    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "0", 1), 0);
    for (uint32_t width = 0; width < 4; width++) {
        fj_lane *l = lane_with(NULL, width, 0, FJ_LANE_WAITS);
        atomic_store(&begun_n, 0);
        CHECK_EQ(fj_lane_pause(l), FJ_OK);
        for (int i = 0; i < 6; i++) CHECK_EQ(fj_lane_execute(l, note, (void *)&letters[i]), FJ_OK);
        CHECK_EQ(fj_lane_resume(l), FJ_OK);
        CHECK_EQ(fj_lane_drain(l, FJ_FOREVER), FJ_OK);
        begun[6] = 0;
        CHECK_EQ(strcmp(begun, letters), 0);
        CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    }
    CHECK_EQ(fj_common_parallelism(), 0);
}

struct nest {
    fj_lane *lane;
    atomic_int depth, refused, n;
};

/* Fills the lane, and so runs the next action in the same thread. */
static int nest_run(void *arg)
{
    struct nest *s = arg;
    int err = FJ_OK;

    if (atomic_fetch_add(&s->depth, 1) < 2) {
        CHECK_EQ(fj_lane_execute(s->lane, nest_run, s), FJ_OK); /* takes the only place */
        err = fj_lane_execute(s->lane, count, &s->n);
    }
    if (err == FJ_EDEADLK) atomic_fetch_add(&s->refused, 1);
    return FJ_OK;
}

FJ_TEST(a_caller_that_runs_all_actions_of_the_width_does_not_wait_for_room, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct nest s = {.lane = lane_with(pool, 2, 1, FJ_LANE_CALLER_RUNS)};

    CHECK_EQ(fj_lane_execute(s.lane, nest_run, &s), FJ_OK);
    CHECK_EQ(fj_lane_drain(s.lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&s.refused), 1);
    CHECK_EQ(fj_lane_destroy(s.lane), FJ_OK);
    fjt_destroy(pool);
}
