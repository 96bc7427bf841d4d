/* SPDX-License-Identifier: MIT */
/*
 * steps.c - fj_invoke_functions(): calls each function once, and none after one has failed
 */
#include <forkjoin/block.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"

enum { MOST = 300 };

struct call {
    atomic_int times;
    int code;
};

static int call_once(void *arg)
{
    struct call *c = arg;

    CHECK(fj_current_worker() >= 0);
    atomic_fetch_add(&c->times, 1);
    return c->code;
}

static int call_blocks(void *arg)
{
    CHECK_EQ(fj_sleep_ns(100000), FJ_OK);
    return call_once(arg);
}

static void calls_init(struct call *c, fj_function *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        atomic_store(&c[i].times, 0);
        c[i].code = FJ_OK;
        s[i] = (fj_function){i % 50 == 49 ? call_blocks : call_once, &c[i]};
    }
}

static void every_number(fj_pool *pool, void *arg)
{
    struct call c[MOST];
    fj_function s[MOST] = {{NULL, NULL}};

    (void)arg;
    for (size_t n = 0; n <= MOST; n += n < 40 ? 1 : 20) {
        calls_init(c, s, n);
        CHECK_EQ(fj_invoke_functions(s, n, &(fj_algo_options){.pool = pool, .grain = n % 4}),
                 FJ_OK);
        for (size_t i = 0; i < n; i++) CHECK_EQ(atomic_load(&c[i].times), 1);
    }
}

FJ_TEST(every_step_is_called_once, 20)
{
    place_workers(every_number, NULL);
    place_everywhere(every_number, NULL);
}

static void fail_anywhere(fj_pool *pool, void *arg)
{
    static const int codes[] = {1, INT_MAX, -1, INT_MIN, FJ_ECANCELED, FJ_EINVAL, 77};
    struct call c[40];
    fj_function s[40];

    (void)arg;
    for (size_t k = 0; k < 40; k++) {
        calls_init(c, s, 40);
        c[k].code = codes[k % 7];
        CHECK_EQ(fj_invoke_functions(s, 40, &(fj_algo_options){.pool = pool}), codes[k % 7]);
        CHECK_EQ(atomic_load(&c[k].times), 1);
        for (size_t i = 0; i < 40; i++) CHECK(atomic_load(&c[i].times) <= 1);
    }
}

FJ_TEST(the_code_of_a_step_is_returned, 20)
{
    place_workers(fail_anywhere, NULL);
    place_everywhere(fail_anywhere, NULL);
}

FJ_TEST(with_one_worker_steps_run_in_order_up_to_the_first_that_fails, 20)
{
    fj_pool *p = fjt_pool(1, 0);
    struct call c[40];
    fj_function s[40];

    for (size_t k = 0; k < 40; k++) {
        calls_init(c, s, 40);
        for (size_t i = k; i < 40; i++) c[i].code = (int)i + 1;
        CHECK_EQ(fj_invoke_functions(s, 40, &(fj_algo_options){.pool = p}), (int)k + 1);
        for (size_t i = 0; i < 40; i++) CHECK_EQ(atomic_load(&c[i].times), i <= k ? 1 : 0);
    }
    fjt_destroy(p);
}

/* The two functions wait for each other, so each of them must get a task of its own. */
static atomic_int arrived;

static int meet(void *arg)
{
    (void)arg;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < 2) fjt_sleep_us(10);
    return FJ_OK;
}

FJ_TEST(two_steps_run_at_the_same_time, 20)
{
    const fj_function two[2] = {{meet, NULL}, {meet, NULL}};
    fj_pool *p = fjt_pool(2, 0), *helped = fjt_pool(1, FJ_POOL_CALLER_HELPS);

    for (long i = fjt_rounds(200); i-- > 0;) {
        atomic_store(&arrived, 0);
        CHECK_EQ(fj_invoke_functions(two, 2, &(fj_algo_options){.pool = i % 2 == 0 ? p : helped}),
                 FJ_OK);
        CHECK_EQ(atomic_load(&arrived), 2);
    }
    fjt_destroy(helped);
    fjt_destroy(p);
}

FJ_TEST(steps_that_cannot_be_meant_call_nothing, 10)
{
    struct call c[3];
    fj_function s[3];

    calls_init(c, s, 3);
    CHECK_EQ(fj_invoke_functions(NULL, 3, NULL), FJ_EINVAL);
    s[2].fn = NULL;
    CHECK_EQ(fj_invoke_functions(s, 3, NULL), FJ_EINVAL);
    for (int i = 0; i < 3; i++) CHECK_EQ(atomic_load(&c[i].times), 0);
    CHECK_EQ(fj_invoke_functions(s, 2, NULL), FJ_OK);
    CHECK_EQ(fj_invoke_functions(s, 0, NULL), FJ_OK);
    CHECK_EQ(fj_invoke_functions(NULL, 0, NULL), FJ_OK);
}
