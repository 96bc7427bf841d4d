/* SPDX-License-Identifier: MIT */
/*
 * nothing.c - NULL where a thing should be: refused, or nothing happens; never a crash
 */
#include "inside.h"

FJ_TEST(no_future_is_in_no_state, 10)
{
    void *result = &result;

    CHECK_EQ(fj_future_is_done(NULL), 0);
    CHECK_EQ(fj_future_is_normal(NULL), 0);
    CHECK_EQ(fj_future_is_abnormal(NULL), 0);
    CHECK_EQ(fj_future_is_cancelled(NULL), 0);
    CHECK_EQ(fj_future_state(NULL), FJ_STATE_RUNNING);
    CHECK_EQ(fj_future_result(NULL, &result), FJ_EINVAL);
    CHECK(result == &result);
}

FJ_TEST(no_future_cannot_be_decided, 10)
{
    CHECK_EQ(fj_future_complete(NULL, NULL), 0);
    CHECK_EQ(fj_future_complete_quietly(NULL), 0);
    CHECK_EQ(fj_future_fail(NULL, 1), 0);
    CHECK_EQ(fj_future_cancel(NULL, 1), 0);
    CHECK(fj_future_retain(NULL) == NULL);
    fj_future_release(NULL);
    fj_token_cancel(NULL);
}

FJ_TEST(no_future_cannot_be_queued_or_waited_for, 10)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *none[2] = {NULL, NULL};
    size_t which = 7;

    CHECK_EQ(fj_future_fork(NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_submit(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_external_submit(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_lazy_submit(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke(NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_in(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_join(NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_wait(NULL, 0), FJ_EINVAL);
    CHECK_EQ(fj_future_wait_quietly(NULL, 0), FJ_EINVAL);
    CHECK_EQ(fj_future_get(NULL, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_reinit(NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_wait_all(none, 2, 0), FJ_EINVAL);
    CHECK_EQ(fj_future_wait_any(none, 2, 0, &which), FJ_EINVAL);
    CHECK_EQ(fj_future_wait_any(none, 0, 0, &which), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_any(p, none, 2, 0, &which), FJ_EINVAL);
    CHECK_EQ(which, 7);
    fjt_destroy(p);
}

FJ_TEST(no_function_and_no_place_for_the_future_are_refused, 10)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f = NULL;
    fj_token token;

    CHECK_EQ(fj_submit_call(p, NULL, NULL, &f), FJ_EINVAL);
    CHECK_EQ(fj_submit_action(p, NULL, NULL, NULL, &f), FJ_EINVAL);
    CHECK_EQ(fj_adapt_call(NULL, NULL, 0, &f), FJ_EINVAL);
    CHECK_EQ(fj_adapt_action(NULL, NULL, NULL, 0, &f), FJ_EINVAL);
    CHECK(f == NULL);
    fj_token_init(&token, NULL);
    CHECK_EQ(fj_invoke_with(p, NULL, &token), FJ_EINVAL);
    fjt_destroy(p);
}

FJ_TEST(timers_that_never_come_again_are_refused, 10)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_timer t;

    fj_timer_init(&t, inside_run);
    CHECK_EQ(fj_schedule_at_fixed_rate(p, &t, 0, 0), FJ_EINVAL);
    CHECK_EQ(fj_schedule_with_fixed_delay(p, &t, 0, 0), FJ_EINVAL);
    CHECK_EQ(fj_schedule_with_fixed_delay(p, &t, 0, -1), FJ_EINVAL);
    CHECK_EQ(fj_timer_remaining(NULL), 0);
    fjt_destroy(p);
}
