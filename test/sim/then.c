/* SPDX-License-Identifier: MIT */
/*
 * then.c - scenarios of derived futures
 */
#include <forkjoin/then.h>
#include <pthread.h>

#include "scenario.h"

static atomic_int runs;

struct data {
    int value;
};

static int give(void *arg, void **result)
{
    struct data *d = arg;

    d->value = 1;
    *result = d;
    return FJ_OK;
}

static int follow(int code, void *value, void *arg, void **result)
{
    struct data *d = value;

    CHECK_EQ(code, FJ_OK);
    CHECK_EQ(d->value, 1);
    d->value = 2;
    (void)arg;
    *result = d;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static fj_future *promise(void)
{
    fj_future *f = NULL;

    CHECK_EQ(fj_future_new(sizeof *f, NULL, &f), FJ_OK);
    return f;
}

/* The caller drops its reference to the input while a worker runs it. */
FJ_TEST(what_follows_runs_once_after_its_input, 10)
{
    fj_pool *pool = scenario_pool(1 + (int)(sim_random() % 2), 0);
    struct data *d = malloc(sizeof *d);
    fj_future *f, *next;
    void *result = NULL;

    atomic_store(&runs, 0);
    CHECK_EQ(fj_submit_call(pool, give, d, &f), FJ_OK);
    CHECK_EQ(fj_future_then_in(pool, f, FJ_THEN_SUCCESS, follow, NULL, &next), FJ_OK);
    fj_future_unref(f);
    CHECK_EQ(fj_future_get(next, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == d && d->value == 2);
    fj_future_unref(next);
    fjt_destroy(pool);
    free(d);
    CHECK_EQ(atomic_load(&runs), 1);
}

static void *cancel_and_unref(void *arg)
{
    (void)fj_future_cancel(arg, 0);
    fj_future_unref(arg);
    return NULL;
}

/* One thread decides the input. Another one has the only reference to what follows, cancels it and
 * drops the reference. */
FJ_TEST(cancel_of_what_follows_meets_the_end_of_its_input, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct data *d = malloc(sizeof *d);
    fj_future *f = promise(), *next;
    pthread_t t;

    atomic_store(&runs, 0);
    d->value = 1;
    CHECK_EQ(fj_future_then_in(pool, f, FJ_THEN_SUCCESS, follow, NULL, &next), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, cancel_and_unref, next), 0);
    CHECK_EQ(fj_future_complete(f, d), 1);
    fj_future_unref(f);
    pthread_join(t, NULL);
    fjt_destroy(pool);
    free(d);
    CHECK(atomic_load(&runs) <= 1);
}

static void *fail_it(void *arg)
{
    CHECK_EQ(fj_future_fail(arg, 5), 1);
    fj_future_unref(arg);
    return NULL;
}

/* Two threads decide the inputs. The derived future is decided once, by the later thread. */
FJ_TEST(all_of_sees_the_outcomes_of_all, 10)
{
    fj_future *f[2] = {promise(), promise()}, *all;
    pthread_t t;

    CHECK_EQ(fj_future_all_of(f, 2, &all), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, fail_it, f[0]), 0);
    CHECK_EQ(fj_future_fail(f[1], 6), 1);
    fj_future_unref(f[1]);
    CHECK_EQ(fj_future_join(all), 5);
    fj_future_unref(all);
    pthread_join(t, NULL);
}

FJ_TEST(any_of_is_decided_once_and_freed_after_the_last_input, 10)
{
    fj_future *f[2] = {promise(), promise()}, *any;
    bool succeeds = sim_random() % 2 == 0;
    pthread_t t;

    CHECK_EQ(fj_future_any_of(f, 2, &any), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, fail_it, f[0]), 0);
    CHECK_EQ(succeeds ? fj_future_complete(f[1], NULL) : fj_future_cancel(f[1], 0), 1);
    fj_future_unref(f[1]);
    CHECK_EQ(fj_future_join(any), succeeds ? FJ_OK : 5);
    fj_future_unref(any);
    pthread_join(t, NULL);
}
