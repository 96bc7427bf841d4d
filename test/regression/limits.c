/* SPDX-License-Identifier: MIT */
/*
 * limits.c - a pool that stops before the timeout of a future, and timers without a thread
 *
 * The first test stops a pool while the body of a future with a timeout still runs. The second test
 * destroys a pool that can start no thread while its timers fire.
 */
#include "regression.h"

static atomic_int begun, may_end;

static int until_told(void *arg, void **result)
{
    (void)arg, (void)result;
    atomic_store(&begun, 1);
    UNTIL(atomic_load(&may_end));
    return FJ_OK;
}

/* The body is still running and the timeout is one hour away, so the stop has to cancel the
 * future. */
FJ_TEST(call_with_a_limit_is_over_when_its_pool_stops_though_its_body_is_not, 60)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f = NULL;

    CHECK_EQ(fj_submit_with_timeout(p, until_told, NULL, (int64_t)3600 * 1000000000, NULL, &f),
             FJ_OK);
    UNTIL(atomic_load(&begun));
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
    atomic_store(&may_end, 1);
    fj_future_unref(f);
    fjt_destroy(p);
}

static int never_mind(void *arg)
{
    (void)arg;
    return FJ_OK;
}

/* A refused thread start counts as a thread for a moment. A thread that waits for the end of the
 * pool at that moment must not rely on this count. */
FJ_TEST(pool_that_gets_no_thread_ends_though_its_timers_ask_for_one, 60)
{
    uint64_t random = fjt_seed();

    for (long i = fjt_rounds(20); i > 0; i--) {
        fj_pool_options o = {0};
        fj_future *f[3];
        o.parallelism = 1;
        o.stack_bytes = SIZE_MAX / 2; /* no system grants such a stack */
        fj_pool *p = fjt_pool_with(&o);
        for (int k = 0; k < 3; k++) {
            int64_t delay = (int64_t)(fjt_random(&random) % 40000);
            CHECK_EQ(fj_schedule_action(p, never_mind, NULL, delay, &f[k]), FJ_OK);
        }
        if (i % 2 == 0) fjt_spin_us((int64_t)(fjt_random(&random) % 40));
        fjt_destroy(p);
        for (int k = 0; k < 3; k++) fj_future_unref(f[k]);
    }
}
