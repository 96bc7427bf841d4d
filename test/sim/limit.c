/* SPDX-License-Identifier: MIT */
/*
 * limit.c - scenarios of timers, and of submissions with a time limit
 *
 * The callback on_timeout of a limit runs on the thread of the timers. Meanwhile another thread has
 * to keep the wheel, so that a slow callback delays no timer.
 */
#include <forkjoin/block.h>
#include <pthread.h>

#include "scenario.h"

static atomic_int runs;

/* ---- Timers ---------------------------------------------------------------------------------- */

static int tick(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(timer_fires_once_or_is_cancelled, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = malloc(sizeof *t);

    atomic_store(&runs, 0);
    memset(t, 0, sizeof *t);
    fj_timer_init(t, tick);
    CHECK_EQ(fj_schedule(pool, t, 1000), FJ_OK);
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    int cancelled = fj_future_cancel(&t->future, 0);
    int code = fj_future_join(&t->future);
    CHECK_EQ(code, cancelled == 1 ? FJ_ECANCELED : FJ_OK);
    fjt_destroy(pool);
    if (code == FJ_OK) CHECK_EQ(atomic_load(&runs), 1);
    free(t);
}

/* The time of the timer is an hour away. If it is cancelled, the library must release it at
 * once. */
FJ_TEST(cancelled_timer_is_free_at_once, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = malloc(sizeof *t);
    int64_t began = sim_now();

    atomic_store(&runs, 0);
    memset(t, 0, sizeof *t);
    fj_timer_init(t, tick);
    CHECK_EQ(fj_schedule(pool, t, 3600000000000), FJ_OK);
    int cancelled = fj_future_cancel(&t->future, 0);
    fj_future_fini(&t->future);
    free(t);
    if (!sim_jumps()) CHECK(cancelled == 1 && sim_now() - began < 1000000000);
    fjt_destroy(pool);
}

FJ_TEST(timers_in_any_order_all_fire, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_timer *t[3];

    atomic_store(&runs, 0);
    for (int i = 0; i < 3; i++) {
        t[i] = malloc(sizeof *t[i]);
        memset(t[i], 0, sizeof *t[i]);
        fj_timer_init(t[i], tick);
        CHECK_EQ(fj_schedule(pool, t[i], (int64_t)(sim_random() % 3) * 2000000), FJ_OK);
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_future_wait(&t[i]->future, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 3);
    fjt_destroy(pool);
    for (int i = 0; i < 3; i++) free(t[i]);
}

FJ_TEST(shutdown_decides_every_timer, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t[2];

    atomic_store(&runs, 0);
    for (int i = 0; i < 2; i++) {
        t[i] = malloc(sizeof *t[i]);
        memset(t[i], 0, sizeof *t[i]);
        fj_timer_init(t[i], tick);
    }
    CHECK_EQ(fj_schedule(pool, t[0], 1000), FJ_OK);
    CHECK_EQ(fj_schedule_at_fixed_rate(pool, t[1], 1000, 1000000), FJ_OK);
    for (uint32_t n = sim_random() % 100; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    CHECK(fj_future_is_done(&t[0]->future));
    CHECK(fj_future_is_done(&t[1]->future));
    fjt_destroy(pool);
    free(t[0]);
    free(t[1]);
}

/* ---- Limits and their callbacks -------------------------------------------------------------- */

static int sleeps_for_ever(void *arg, void **result)
{
    int code = FJ_OK;

    (void)arg, (void)result;
    while (code == FJ_OK) code = fj_sleep_ns(FJ_FOREVER);
    return code;
}

static void act_fails(fj_future *f, void *arg)
{
    (void)arg;
    (void)fj_future_fail(f, 7);
}

/* The body occupies the only worker, and sleeps until it is interrupted. */
FJ_TEST(limit_ends_a_body_that_sleeps, 10)
{
    bool acts = sim_random() % 2 == 0;
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f;

    CHECK_EQ(fj_submit_with_timeout(pool, sleeps_for_ever, NULL, 1000, acts ? act_fails : NULL, &f),
             FJ_OK);
    CHECK_EQ(fj_future_join(f), acts ? 7 : FJ_ETIMEDOUT);
    fj_future_unref(f);
    fjt_destroy(pool);
}

/* Two of these callbacks wait for each other, and then for a timer that fires later. */
static uint32_t inside_actions, timer_ran;

static void act_waits(fj_future *f, void *arg)
{
    (void)arg;
    scenario_add(&inside_actions);
    scenario_await(&inside_actions, 2);
    scenario_await(&timer_ran, 1);
    (void)fj_future_fail(f, 7);
}

static int open_ended(void *arg, void **result)
{
    (void)arg, (void)result;
    return FJ_PENDING;
}

static int lets_go(void *arg)
{
    (void)arg;
    scenario_await(&inside_actions, 2);
    scenario_add(&timer_ran);
    return FJ_OK;
}

FJ_TEST(slow_actions_at_limits_delay_no_timer, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f[3];

    inside_actions = timer_ran = 0;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(fj_submit_with_timeout(pool, open_ended, NULL, 1000, act_waits, &f[i]), FJ_OK);
    CHECK_EQ(fj_schedule_action(pool, lets_go, NULL, 1000000, &f[2]), FJ_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_future_join(f[i]), i < 2 ? 7 : FJ_OK);
        fj_future_unref(f[i]);
    }
    fjt_destroy(pool);
}

/* The callbacks run one after the other. The second one wakes the spare thread, which ends with
 * its pool. */
FJ_TEST(actions_at_limits_come_one_after_the_other, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f, *g;

    inside_actions = 1; /* lets_go() waits for two callbacks, but act_waits() runs once here */
    timer_ran = 0;
    CHECK_EQ(fj_submit_with_timeout(pool, open_ended, NULL, 1000, act_fails, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), 7);
    fj_future_unref(f);
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    CHECK_EQ(fj_submit_with_timeout(pool, open_ended, NULL, 1000, act_waits, &f), FJ_OK);
    CHECK_EQ(fj_schedule_action(pool, lets_go, NULL, 1000000, &g), FJ_OK);
    CHECK_EQ(fj_future_join(f), 7);
    CHECK_EQ(fj_future_join(g), FJ_OK);
    fj_future_unref(f);
    fj_future_unref(g);
    fjt_destroy(pool);
}

/* ---- Limits and the end of the body or of the pool ------------------------------------------- */

static int at_once(void *arg, void **result)
{
    (void)arg, (void)result;
    return FJ_OK;
}

/* The body ends before its limit is in the wheel, or just afterwards. */
FJ_TEST(limit_of_what_is_over_holds_up_no_pool, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f;

    CHECK_EQ(fj_submit_with_timeout(pool, at_once, NULL, FJ_FOREVER, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    CHECK_EQ(fj_pool_delayed_count(pool), 0);
    fj_future_unref(f);
    fjt_destroy(pool); /* a limit in the wheel would make it wait forever */
}

/* The shutdown takes the limit out of the wheel while the body ends. Then it must not put the
 * limit back. */
FJ_TEST(limit_in_the_hands_of_a_shutdown_holds_up_no_pool, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *series[2];
    fj_future *f;

    for (int i = 0; i < 2;
         i++) { /* the shutdown cancels one before it reaches the limit, one after */
        series[i] = malloc(sizeof *series[i]);
        memset(series[i], 0, sizeof *series[i]);
        fj_timer_init(series[i], tick);
        CHECK_EQ(fj_schedule_at_fixed_rate(pool, series[i], FJ_FOREVER, 1000000), FJ_OK);
        if (i == 0)
            CHECK_EQ(fj_submit_with_timeout(pool, at_once, NULL, FJ_FOREVER, NULL, &f), FJ_OK);
    }
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fj_future_unref(f);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    fjt_destroy(pool);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_future_join(&series[i]->future), FJ_ECANCELED);
        free(series[i]);
    }
}

/* The body leaves its future open, so only the limit could resolve it. If the pool stops before
 * the limit is in the wheel, it must cancel the future. */
static void *stops(void *arg)
{
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_shutdown_now(arg), FJ_OK);
    return NULL;
}

FJ_TEST(limit_on_its_way_into_a_pool_that_stops_is_decided, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f = NULL;
    pthread_t t;

    CHECK_EQ(pthread_create(&t, NULL, stops, pool), 0);
    int err = fj_submit_with_timeout(pool, open_ended, NULL, FJ_FOREVER, NULL, &f);
    CHECK(err == FJ_OK || err == FJ_EREJECTED);
    pthread_join(t, NULL);
    if (err == FJ_OK) CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
    if (err == FJ_OK) fj_future_unref(f);
    fjt_destroy(pool);
}
