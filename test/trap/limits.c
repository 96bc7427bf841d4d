/* SPDX-License-Identifier: MIT */
/*
 * limits.c - calls with a limit whose pool ends before the limit is over
 */
#include "trap.h"

static atomic_int begun, may_end;

static int until_told(void *arg, void **result)
{
    (void)arg, (void)result;
    atomic_store(&begun, 1);
    UNTIL(atomic_load(&may_end));
    return FJ_OK;
}

/* The limit is the only one who could still decide it: the stop has to. */
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
    fj_future_release(f);
    fjt_destroy(p);
}
