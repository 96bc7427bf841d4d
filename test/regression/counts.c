/* SPDX-License-Identifier: MIT */
/*
 * counts.c - the counts in the control word, after every event that changes them
 *
 * When the pool is at rest, `active` is 0, `total` is the number of live threads, and the idle
 * stack holds each worker once. regression_rest() waits for this state, so a test hangs if a count
 * is wrong. If a count is wrong for good, the pool also can no longer have all its workers busy at
 * the same time; regression_all_at_once() checks that.
 */
#define _GNU_SOURCE
#include "regression.h"

/* ---- Workers go idle, end and start again ----------------------------------------------- */

/* Executes bursts of actions. Between bursts the workers are idle, and some of them end. */
static void idle_trim_regrow(fj_pool *p, int n, long rounds)
{
    uint64_t seed = fjt_seed();
    atomic_int ran = 0;
    int sent = 0;

    for (long i = 0; i < rounds; i++) {
        for (int k = regression_below(&seed, 2 * n); k >= 0; k--, sent++)
            CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
        UNTIL(atomic_load(&ran) == sent);
        fjt_sleep_us(regression_below(&seed, 10) == 0 ? regression_below(&seed, 5000)
                                                      : regression_below(&seed, 300));
        if (i % 10 == 0) regression_rest(p);
    }
    regression_rest(p);
    regression_all_at_once(p, n);
    regression_rest(p);
    CHECK(regression_started(p) > (uint64_t)n);
    fjt_destroy(p);
}

FJ_TEST(counts_agree_after_many_workers_came_and_went, 60)
{
    fj_pool *p = fjt_pool(6, 0);

    p->keep_alive_ns = 50000; /* below the minimum of the options */
    idle_trim_regrow(p, 6, fjt_rounds(4000));
}

FJ_TEST(counts_agree_after_a_single_worker_came_and_went, 60)
{
    fj_pool *p = fjt_pool(1, 0);

    p->keep_alive_ns = 20000;
    idle_trim_regrow(p, 1, fjt_rounds(8000));
}

FJ_TEST(counts_agree_with_the_smallest_keep_alive, 60)
{
    fj_pool_options o = {0};
    o.parallelism = 8;
    o.keep_alive_ns = 1;
    fj_pool *p = fjt_pool_with(&o);

    for (long i = fjt_rounds(30); i > 0; i--) {
        regression_all_at_once(p, 8);
        UNTIL(regression_total(p) == 0);
        regression_rest(p);
    }
    fjt_destroy(p);
}

/* ---- Threads that do not start ---------------------------------------------------------- */

#define DEPTH 8

struct link {
    fj_task task;
    int depth;
    atomic_int *ran;
};

/* Sleeps so that another worker can steal the child, then blocks in the join. */
static int link_run(fj_task *t)
{
    struct link *l = (struct link *)t;
    struct link child = {.depth = l->depth - 1, .ran = l->ran};

    atomic_fetch_add(l->ran, 1);
    if (l->depth > 0) {
        fj_task_init(&child.task, link_run);
        fj_fork(&child.task);
        fjt_sleep_us(30);
        CHECK_EQ(fj_join(&child.task), FJ_OK);
    } else {
        fjt_sleep_us(100); /* longer than a joiner spins */
    }
    return FJ_OK;
}

static void blocking_joins(fj_pool *p)
{
    struct link root = {.depth = DEPTH};
    atomic_int ran = 0;

    root.ran = &ran;
    fj_task_init(&root.task, link_run);
    CHECK_EQ(fj_invoke(p, &root.task), FJ_OK);
    CHECK_EQ(atomic_load(&ran), DEPTH + 1);
}

static void full_strength(fj_pool *p, int n)
{
    regression_rest(p);
    regression_all_at_once(p, n);
    regression_rest(p);
}

struct gate {
    atomic_int asked;
    atomic_bool open;
};

static int every_second(fj_pool *pool, void *arg)
{
    struct gate *g = arg;
    (void)pool;
    return atomic_fetch_add(&g->asked, 1) % 2 == 1 || atomic_load(&g->open);
}

FJ_TEST(refused_workers_cost_no_count, 60)
{
    struct gate gate = {.asked = 0};
    fj_pool_options o = {0};
    o.parallelism = 4;
    o.arg = &gate;
    o.allow_thread = every_second;
    fj_pool *p = fjt_pool_with(&o);

    p->keep_alive_ns = 100000;
    for (long i = fjt_rounds(1000); i > 0; i--) {
        blocking_joins(p);
        if (i % 16 == 0) regression_rest(p);
    }
    CHECK(atomic_load(&gate.asked) > 4);
    atomic_store(&gate.open, true);
    full_strength(p, 4);
    fjt_destroy(p);
}

static void need_faults(fj_pool *p)
{
    atomic_int ran = 0;

    CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
    UNTIL(atomic_load(&ran));
    if (fji_fault_calls(FJI_FAULT_THREAD) == 0) {
        fjt_destroy(p);
        fjt_skip("built without faults");
    }
}

FJ_TEST(threads_that_fail_to_start_cost_no_count, 60)
{
    fj_pool *p = fjt_pool(4, 0);
    uint64_t seed = fjt_seed();

    p->keep_alive_ns = 100000;
    need_faults(p);
    for (long i = fjt_rounds(1000); i > 0; i--) {
        fji_fault_set(FJI_FAULT_THREAD, 1 + regression_below(&seed, 3),
                      1 + regression_below(&seed, 3));
        blocking_joins(p);
        if (i % 16 == 0) regression_rest(p);
    }
    fji_fault_set(FJI_FAULT_THREAD, 1, 0);
    full_strength(p, 4);
    fjt_destroy(p);
}

static int start_badly(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker;
    return atomic_fetch_add((atomic_int *)arg, 1) % 2 == 0 ? 5 : FJ_OK;
}

FJ_TEST(workers_that_end_in_their_start_hook_cost_no_count, 60)
{
    atomic_int calls = 0;
    fj_pool_options o = {0};
    o.parallelism = 4;
    o.arg = &calls;
    o.on_start = start_badly;
    fj_pool *p = fjt_pool_with(&o);

    p->keep_alive_ns = 100000;
    for (long i = fjt_rounds(500); i > 0; i--) {
        blocking_joins(p);
        if (i % 16 == 0) regression_rest(p);
    }
    regression_rest(p);
    fjt_destroy(p);
}

/* A failed thread start must not block the caller forever. */
FJ_TEST(a_task_is_run_though_the_first_thread_failed, 60)
{
    for (int helps = 0; helps < 2; helps++) {
        fj_pool *p = fjt_pool(2, helps ? FJ_POOL_CALLER_HELPS : 0);
        need_faults(p);
        fjt_destroy(p);
        p = fjt_pool(2, helps ? FJ_POOL_CALLER_HELPS : 0);
        fji_fault_set(FJI_FAULT_THREAD, 1, 1);
        blocking_joins(p);
        fji_fault_set(FJI_FAULT_THREAD, 1, 1000000);
        blocking_joins(p);
        fji_fault_set(FJI_FAULT_THREAD, 1, 0);
        fjt_destroy(p);
    }
}

FJ_TEST(a_task_is_run_though_no_thread_ever_starts, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    struct link a = {.depth = 2}, b = {.depth = 2};
    atomic_int ran = 0;

    need_faults(p);
    fjt_destroy(p);
    p = fjt_pool(2, 0);
    fji_fault_set(FJI_FAULT_THREAD, 1, 1000000);
    blocking_joins(p);
    a.ran = b.ran = &ran;
    fj_task_init(&a.task, link_run);
    fj_task_init(&b.task, link_run);
    CHECK_EQ(fj_submit(p, &a.task), FJ_OK);
    CHECK_EQ(fj_submit(p, &b.task), FJ_OK);
    CHECK_EQ(fj_join(&b.task), FJ_OK);
    CHECK_EQ(fj_join(&a.task), FJ_OK);
    CHECK_EQ(atomic_load(&ran), 6);
    fjt_destroy(p);
}

/* ---- Resizing --------------------------------------------------------------------------- */

struct load {
    fj_pool *pool;
    atomic_bool over;
};

static void *keep_loaded(void *arg)
{
    struct load *l = arg;
    while (!atomic_load(&l->over)) blocking_joins(l->pool);
    return NULL;
}

FJ_TEST(resizing_under_load_costs_no_count, 60)
{
    fj_pool_options o = {0};
    o.parallelism = 2;
    o.max_threads = 12;
    fj_pool *p = fjt_pool_with(&o);
    struct load load = {.pool = p};
    pthread_t t[2];
    uint64_t seed = fjt_seed();

    p->keep_alive_ns = 300000;
    for (int i = 0; i < 2; i++) t[i] = regression_thread(keep_loaded, &load);
    for (long i = fjt_rounds(4000); i > 0; i--) {
        int n = 1 + regression_below(&seed, 12);
        int before = fj_pool_set_parallelism(p, n);
        CHECK(before >= 1 && before <= 12);
        CHECK_EQ(fj_pool_parallelism(p), n);
        fjt_sleep_us(regression_below(&seed, 300));
    }
    atomic_store(&load.over, true);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    CHECK(fj_pool_set_parallelism(p, 5) > 0);
    full_strength(p, 5);
    fjt_destroy(p);
}

/* The default limit of threads changes with the parallelism; a limit set in the options does
 * not. */
FJ_TEST(default_limit_of_threads_follows_the_size, 10)
{
    fj_pool_options o = {0};
    fj_pool *p = fjt_pool(2, 0);

    CHECK_EQ(p->max_threads, 2 + FJI_SPARES);
    CHECK_EQ(fj_pool_set_parallelism(p, 300), 2);
    CHECK_EQ(p->max_threads, 300 + FJI_SPARES);
    CHECK_EQ(fj_pool_set_parallelism(p, FJ_MAX_WORKERS - 1), 300);
    CHECK_EQ(p->max_threads, FJ_MAX_WORKERS);
    CHECK_EQ(fj_pool_set_parallelism(p, 1), FJ_MAX_WORKERS - 1);
    CHECK_EQ(p->max_threads, 1 + FJI_SPARES);
    fjt_destroy(p);
    o.parallelism = 2;
    o.min_runnable = 1000;
    p = fjt_pool_with(&o);
    CHECK_EQ(p->max_threads, 1000);
    CHECK_EQ(fj_pool_set_parallelism(p, 1), 2);
    CHECK_EQ(p->max_threads, 1000);
    fjt_destroy(p);
    o.min_runnable = 0;
    o.max_threads = 9;
    p = fjt_pool_with(&o);
    CHECK_EQ(fj_pool_set_parallelism(p, 9), 2);
    CHECK_EQ(p->max_threads, 9);
    CHECK_EQ(fj_pool_set_parallelism(p, 10), FJ_EINVAL);
    CHECK_EQ(p->max_threads, 9);
    fjt_destroy(p);
}

/* ---- The largest parallelism ------------------------------------------------------------ */

static int at_most_four(fj_pool *pool, void *arg)
{
    (void)arg;
    return fj_pool_thread_count(pool) <= 4; /* the count includes the requested thread */
}

FJ_TEST(the_largest_parallelism_is_counted_right, 60)
{
    fj_pool_options o = {0};
    o.parallelism = FJ_MAX_WORKERS;
    o.allow_thread = at_most_four;
    fj_pool *p = fjt_pool_with(&o);

    p->keep_alive_ns = 200000;
    for (long i = fjt_rounds(300); i > 0; i--) {
        blocking_joins(p);
        regression_rest(p);
    }
    fjt_destroy(p);
}
