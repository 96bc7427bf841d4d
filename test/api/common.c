/* SPDX-License-Identifier: MIT */
/*
 * common.c - the common pool under several environments, with few workers or none
 *
 * The environment is read when the pool is first used. Each test runs in a new process that has not
 * used the library before, so it sets the variables that it needs before its first call.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

static void parallelism(const char *value)
{
    if (value == NULL)
        unsetenv("FORKJOIN_PARALLELISM");
    else
        setenv("FORKJOIN_PARALLELISM", value, 1);
}

static int default_parallelism(void)
{
    int n = fj_available_parallelism() - 1;
    return n < 1 ? 1 : n;
}

/* ---- Everything works ----------------------------------------------------------------------- */

struct fib {
    fj_task task;
    int n;
    long result;
};

static long fib(int n);

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;

    CHECK(fj_current_pool() == fj_common_pool());
    f->result = fib(f->n);
    return FJ_OK;
}

static long fib(int n)
{
    struct fib a = {.n = n - 1};

    if (n < 2) return n;
    fj_task_init(&a.task, fib_run);
    fj_fork(&a.task);
    long y = fib(n - 2);
    CHECK_EQ(fj_join(&a.task), FJ_OK);
    return a.result + y;
}

FJ_TASK(long, typed_fib, int, n)
{
    if (n < 2) return n;
    typed_fib_task a;
    typed_fib_fork(FJ, &a, n - 1);
    long y = typed_fib_call(FJ, n - 2);
    return typed_fib_join(FJ, &a) + y;
}

static atomic_int actions;

static int count_action(void *arg)
{
    CHECK(fj_current_pool() == fj_common_pool());
    atomic_fetch_add(&actions, (int)(intptr_t)arg);
    return FJ_OK;
}

static void invoke_everything(void)
{
    struct fib f = {.n = 15};
    long r = 0;

    fj_task_init(&f.task, fib_run);
    CHECK_EQ(fj_invoke(NULL, &f.task), FJ_OK);
    CHECK_EQ(f.result, 610);
    CHECK_EQ(fj_invoke(fj_common_pool(), &f.task), FJ_OK);
    CHECK_EQ(fj_invoke_mode(NULL, &f.task, FJ_CALLER_HELPS), FJ_OK);
    CHECK_EQ(fj_invoke_mode(NULL, &f.task, FJ_CALLER_BLOCKS), FJ_OK);
    CHECK_EQ(typed_fib_invoke(NULL, &r, 15), FJ_OK);
    CHECK_EQ(r, 610);
    CHECK_EQ(fib(12), 144); /* forks and joins on a thread outside the pool */
}

static void submit_everything(void)
{
    struct fib f[6];

    for (int i = 0; i < 6; i++) {
        f[i] = (struct fib){.n = 10};
        fj_task_init(&f[i].task, fib_run);
    }
    CHECK_EQ(fj_submit(NULL, &f[0].task), FJ_OK);
    CHECK_EQ(fj_submit_external(NULL, &f[1].task), FJ_OK);
    CHECK_EQ(fj_submit_lazy(NULL, &f[2].task), FJ_OK);
    fj_fork(&f[3].task);
    fj_fork(&f[4].task);
    if (fj_unfork(&f[4].task))
        CHECK_EQ(fj_invoke(NULL, &f[4].task), FJ_OK);
    else
        CHECK_EQ(fj_join_stolen(&f[4].task), FJ_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(fj_join(&f[i].task), FJ_OK);
    CHECK_EQ(fj_submit(NULL, &f[5].task), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(NULL, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_join(&f[5].task), FJ_OK);
    for (int i = 0; i < 6; i++) CHECK_EQ(f[i].result, 55);
}

static void bulk_everything(void)
{
    struct fib f[20];
    fj_task *list[20];

    for (int i = 0; i < 20; i++) {
        f[i] = (struct fib){.n = i};
        fj_task_init(&f[i].task, fib_run);
        list[i] = &f[i].task;
    }
    CHECK_EQ(fj_invoke_both(list[10], list[11]), FJ_OK);
    CHECK(f[10].result == 55 && f[11].result == 89);
    CHECK_EQ(fj_invoke_all(list, 20), FJ_OK);
    CHECK_EQ(fj_invoke_array(f, 20, sizeof f[0]), FJ_OK);
    CHECK_EQ(f[19].result, 4181);
}

static void execute_everything(void)
{
    atomic_store(&actions, 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(fj_execute(NULL, count_action, (void *)(intptr_t)1), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(fj_common_pool(), FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&actions), 100);
    CHECK_EQ(fj_execute(NULL, count_action, (void *)(intptr_t)1), FJ_OK);
    fj_help_quiesce();
    CHECK_EQ(atomic_load(&actions), 101);
}

static void *everything(void *arg)
{
    (void)arg;
    for (int round = 0; round < 10; round++) {
        invoke_everything();
        submit_everything();
        bulk_everything();
    }
    return NULL;
}

/* Runs everything() on this thread, and then on four threads at the same time. */
static void everything_works(void)
{
    pthread_t threads[4];

    fjt_watch(fj_common_pool());
    everything(NULL);
    execute_everything();
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, everything, NULL), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    execute_everything();
}

static void submit_from_other(void *arg)
{
    struct fib f = {.n = 10};

    (void)arg;
    fj_task_init(&f.task, fib_run);
    CHECK_EQ(fj_invoke(NULL, &f.task), FJ_OK);
    CHECK_EQ(fj_submit(NULL, &f.task), FJ_OK);
    CHECK_EQ(fj_join(&f.task), FJ_OK);
    CHECK_EQ(f.result, 55);
    CHECK_EQ(fj_execute(NULL, count_action, (void *)(intptr_t)1), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(NULL, FJ_FOREVER), FJ_OK);
}

static void other_pool_works(void)
{
    fj_pool *other = fjt_pool(1, 0);

    for (int i = 0; i < 10; i++) inside(other, submit_from_other, NULL);
    fjt_destroy(other);
}

FJ_TEST(common_pool_works_as_it_is, 30)
{
    everything_works();
    other_pool_works();
}

FJ_TEST(common_pool_without_workers_works, 30)
{
    parallelism("0");
    CHECK_EQ(fj_common_parallelism(), 0);
    everything_works();
    CHECK_EQ(fj_pool_thread_count(NULL), 0);
}

FJ_TEST(common_pool_without_workers_works_for_other_pools, 30)
{
    parallelism("0");
    other_pool_works();
    CHECK_EQ(fj_pool_thread_count(NULL), 0);
}

FJ_TEST(common_pool_with_one_worker_works, 30)
{
    parallelism("1");
    CHECK_EQ(fj_common_parallelism(), 1);
    everything_works();
    other_pool_works();
}

FJ_TEST(common_pool_with_three_workers_works, 30)
{
    parallelism("3");
    CHECK_EQ(fj_common_parallelism(), 3);
    everything_works();
    other_pool_works();
}

FJ_TEST(common_pool_with_symmetric_fences_works, 30)
{
    setenv("FORKJOIN_FENCES", "symmetric", 1);
    parallelism("2");
    everything_works();
    other_pool_works();
}

FJ_TEST(common_pool_that_does_not_search_works, 30)
{
    setenv("FORKJOIN_SPIN_US", "0", 1);
    parallelism("2");
    everything_works();
}

FJ_TEST(common_pool_without_spares_works, 30)
{
    setenv("FORKJOIN_MAX_SPARES", "0", 1);
    parallelism("1");
    everything_works();
}

/* ---- Sizes ---------------------------------------------------------------------------------- */

FJ_TEST(available_parallelism_is_at_least_one, 10)
{
    CHECK(fj_available_parallelism() >= 1);
    CHECK(fj_available_parallelism() <= FJ_MAX_WORKERS);
}

FJ_TEST(common_pool_leaves_one_cpu_to_its_callers, 10)
{
    parallelism(NULL);
    CHECK_EQ(fj_common_parallelism(), default_parallelism());
    CHECK_EQ(fj_pool_parallelism(NULL), default_parallelism());
    CHECK(fj_common_pool() != NULL);
    CHECK(fj_common_pool() == fj_common_pool());
}

FJ_TEST(common_pool_has_a_worker_on_one_cpu, 20)
{
    cpu_set_t all, one;

    parallelism(NULL);
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    if (fj_available_parallelism() != 1) fjt_skip("the affinity mask is ignored here");
    CHECK_EQ(fj_common_parallelism(), 1);
    everything_works();
}

FJ_TEST(largest_common_pool_is_accepted, 10)
{
    parallelism("32767");
    CHECK_EQ(fj_common_parallelism(), FJ_MAX_WORKERS);
    invoke_everything();
}

static void ignored(const char *value)
{
    parallelism(value);
    CHECK_EQ(fj_common_parallelism(), default_parallelism());
    invoke_everything();
}

FJ_TEST(empty_size_of_the_common_pool_is_ignored, 10)
{
    ignored("");
}

FJ_TEST(size_of_the_common_pool_that_is_no_number_is_ignored, 10)
{
    ignored("many");
}

FJ_TEST(size_of_the_common_pool_with_a_tail_is_ignored, 10)
{
    ignored("3x");
}

FJ_TEST(negative_size_of_the_common_pool_is_ignored, 10)
{
    ignored("-1");
}

FJ_TEST(size_of_the_common_pool_that_is_too_large_is_ignored, 10)
{
    ignored("40000");
}

FJ_TEST(size_of_the_common_pool_that_overflows_is_ignored, 10)
{
    ignored("99999999999999999999999");
}

FJ_TEST(other_variables_that_cannot_be_read_are_ignored, 20)
{
    setenv("FORKJOIN_MAX_SPARES", "-5", 1);
    setenv("FORKJOIN_KEEP_ALIVE_MS", "soon", 1);
    setenv("FORKJOIN_SPIN_US", "99999999999999", 1);
    setenv("FORKJOIN_FENCES", "none", 1);
    ignored("x");
    everything_works();
}

FJ_TEST(size_from_the_environment_cannot_be_changed, 10)
{
    parallelism("3");
    CHECK_EQ(fj_pool_set_parallelism(NULL, 2), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_set_parallelism(fj_common_pool(), 2), FJ_ENOTSUP);
    CHECK_EQ(fj_common_parallelism(), 3);
}

FJ_TEST(size_zero_from_the_environment_cannot_be_changed, 10)
{
    parallelism("0");
    CHECK_EQ(fj_pool_set_parallelism(NULL, 2), FJ_ENOTSUP);
    CHECK_EQ(fj_common_parallelism(), 0);
}

FJ_TEST(default_size_of_the_common_pool_can_be_changed, 10)
{
    parallelism(NULL);
    CHECK_EQ(fj_pool_set_parallelism(NULL, 4), default_parallelism());
    CHECK_EQ(fj_common_parallelism(), 4);
    everything_works();
}

FJ_TEST(max_spares_bound_the_size_of_the_common_pool, 10)
{
    int n = default_parallelism();

    setenv("FORKJOIN_MAX_SPARES", "2", 1);
    parallelism(NULL);
    CHECK_EQ(fj_pool_set_parallelism(NULL, n + 3), FJ_EINVAL);
    CHECK_EQ(fj_common_parallelism(), n);
    CHECK_EQ(fj_pool_set_parallelism(NULL, n + 2), n);
    CHECK_EQ(fj_pool_set_parallelism(NULL, 1), n + 2);
    CHECK_EQ(fj_pool_set_parallelism(NULL, n + 3), FJ_EINVAL);
    everything_works();
}

FJ_TEST(configured_max_threads_bound_the_size_of_the_common_pool, 10)
{
    fj_pool_options o = {0};

    unsetenv("FORKJOIN_PARALLELISM");
    o.parallelism = 2;
    o.max_threads = 3;
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    CHECK_EQ(fj_pool_set_parallelism(NULL, 4), FJ_EINVAL);
    CHECK_EQ(fj_pool_set_parallelism(NULL, 3), 2);
    everything_works();
}

FJ_TEST(max_threads_below_the_default_size_of_the_common_pool_are_refused, 10)
{
    fj_pool_options o = {0};

    o.max_threads = default_parallelism() - 1;
    if (o.max_threads > 0) CHECK_EQ(fj_common_configure(&o), FJ_EINVAL);
    o.max_threads = default_parallelism();
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
}

/* ---- Other pools ---------------------------------------------------------------------------- */

FJ_TEST(environment_does_not_size_other_pools, 10)
{
    parallelism("3");
    fj_pool *pool = fjt_pool_with(NULL);
    CHECK_EQ(fj_pool_parallelism(pool), fj_available_parallelism());
    CHECK_EQ(fj_pool_set_parallelism(pool, 2), fj_available_parallelism());
    fjt_destroy(pool);
}

/* In a common pool without workers, a worker of another pool becomes a guest of it for a call. */
static int close_from_inside(fj_task *t)
{
    struct {
        fj_task task;
        fj_pool *pool;
    } *c = (void *)t;

    CHECK(fj_current_pool() == fj_common_pool());
    CHECK_EQ(fj_pool_await_termination(c->pool, FJ_FOREVER), FJ_EDEADLK);
    CHECK_EQ(fj_pool_close(c->pool), FJ_EDEADLK);
    return FJ_OK;
}

static int invoke_in_common(fj_task *t)
{
    struct {
        fj_task task;
        fj_pool *pool;
    } inner = {.pool = fj_current_pool()};

    (void)t;
    fj_task_init(&inner.task, close_from_inside);
    return fj_invoke(NULL, &inner.task);
}

FJ_TEST(worker_that_is_a_guest_elsewhere_cannot_wait_for_the_end_of_its_pool, 10)
{
    fj_task t;

    parallelism("0");
    fj_pool *pool = fjt_pool(1, 0);
    fj_task_init(&t, invoke_in_common);
    CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
    CHECK(!fj_pool_is_shutdown(pool));
    fjt_destroy(pool);
}

/* If several threads create the common pool at the same time, all of them get the same pool. */
static void *get_common(void *arg)
{
    (void)arg;
    return fj_common_pool();
}

FJ_TEST(common_pool_is_one_for_all_threads, 10)
{
    pthread_t threads[16];
    void *pool;

    for (int i = 0; i < 16; i++) CHECK_EQ(pthread_create(&threads[i], NULL, get_common, NULL), 0);
    for (int i = 0; i < 16; i++) {
        pthread_join(threads[i], &pool);
        CHECK(pool == fj_common_pool());
    }
}

/* Idle workers of the common pool exit after the keep-alive time, as in other pools. */
FJ_TEST(idle_workers_of_the_common_pool_leave, 30)
{
    setenv("FORKJOIN_KEEP_ALIVE_MS", "20", 1);
    parallelism("2");
    for (int i = 0; i < 20; i++) CHECK_EQ(fj_execute(NULL, count_action, NULL), FJ_OK);
    while (fj_pool_steal_count(NULL) == 0 && fj_pool_thread_count(NULL) == 0) fjt_sleep_us(100);
    while (fj_pool_thread_count(NULL) != 0) fjt_sleep_us(1000);
    invoke_everything();
}

FJ_TEST(process_ends_while_the_common_pool_is_busy, 10)
{
    for (int i = 0; i < 1000; i++) CHECK_EQ(fj_execute(NULL, count_action, NULL), FJ_OK);
}
