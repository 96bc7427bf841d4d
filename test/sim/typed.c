/* SPDX-License-Identifier: MIT */
/*
 * typed.c - scenarios of typed tasks that are taken back beside thieves
 */
#include "scenario.h"

static atomic_int runs;
static int written[4]; /* by the body, without an atomic operation */

FJ_TASK(int, scenario_call, int, n)
{
    written[n] = n;
    atomic_fetch_add_explicit(&runs, 1, memory_order_relaxed);
    return n;
}

/* Each call is run once by a thief, or is taken back and not run by another thread. The state only
 * moves forward. In the first round the calls are taken back in the reverse order, so that each is the
 * topmost one. */
FJ_TASK(int, scenario_takes_back, int, rounds)
{
    static const int orders[2][3] = {{2, 1, 0}, {1, 2, 0}};
    int taken = 0;

    for (int i = 0; i < rounds; i++) {
        scenario_call_task t[3];
        for (int k = 0; k < 3; k++) scenario_call_fork(FJ, &t[k], k + 1);
        int first = scenario_call_state(FJ, &t[0]);
        sim_yield();
        CHECK(scenario_call_state(FJ, &t[0]) >= first);
        for (int j = 0; j < 3; j++) {
            int k = orders[i % 2][j];
            if (scenario_call_state(FJ, &t[k]) == FJ_FORKED_DONE) {
                CHECK_EQ(written[k + 1], k + 1); /* what the body did is visible before the join */
                CHECK_EQ(scenario_call_unfork(FJ, &t[k]), 0);
            }
            if (scenario_call_unfork(FJ, &t[k])) {
                taken++;
            } else {
                CHECK(scenario_call_state(FJ, &t[k]) != FJ_FORKED_QUEUED);
                CHECK_EQ(scenario_call_join(FJ, &t[k]), k + 1);
            }
        }
    }
    return taken;
}

static void takes_back(void *arg)
{
    int taken = 0;

    (void)arg;
    atomic_store(&runs, 0);
    CHECK_EQ(scenario_takes_back_invoke(fj_current_pool(), &taken, 2), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 6 - taken);
}

FJ_TEST(typed_call_is_taken_back_or_run_by_a_thief, 10)
{
    fj_pool *pool = scenario_pool(2, sim_random() % 2 == 0 ? 0 : FJ_POOL_SYMMETRIC);

    scenario_inside(pool, takes_back, NULL);
    fjt_destroy(pool);
}
