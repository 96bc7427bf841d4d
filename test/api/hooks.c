/* SPDX-License-Identifier: MIT */
/*
 * hooks.c - how the creator of a pool controls its threads
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fjtest.h"

#define UNTIL(condition)                       \
    do {                                       \
        while (!(condition)) fjt_sleep_us(50); \
    } while (0)

static atomic_int resets, runs, created, refused;
static _Thread_local int left_behind;

/* ---- Reset ---------------------------------------------------------------------------------- */

static void reset(fj_pool *p, int worker, void *arg)
{
    CHECK(p != NULL && arg == &resets);
    CHECK_EQ(fj_current_worker(), worker);
    left_behind = 0;
    atomic_fetch_add(&resets, 1);
}

static int leaves_something(fj_task *t)
{
    fj_task a, b;

    (void)t;
    left_behind++;
    atomic_fetch_add(&runs, 1);
    if (left_behind > 1) return FJ_OK;
    fj_task_init(&a, leaves_something);
    fj_task_init(&b, leaves_something);
    fj_fork(&a);
    fj_fork(&b);
    return fj_join(&b) + fj_join(&a);
}

/* on_reset is called once for each submitted task, after everything that the task forked. */
FJ_TEST(workers_are_reset_after_each_run_from_outside, 30)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.on_reset = reset;
    o.arg = &resets;
    fj_pool *p = fjt_pool_with(&o);
    for (int i = 0; i < 50; i++) {
        fj_task t;
        fj_task_init(&t, leaves_something);
        CHECK_EQ(fj_invoke_mode(p, &t, FJ_CALLER_BLOCKS), FJ_OK);
        CHECK_EQ(atomic_load(&runs), 3 * (i + 1));
        UNTIL(atomic_load(&resets) == i + 1);
    }
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&resets), 50);
}

/* ---- Threads created by the user ------------------------------------------------------------- */

/* Larger than the default, so that glibc cannot reuse the stack of a thread that it did not make
 * for this: it keeps the stacks of ended threads and gives them to requests for smaller ones. */
enum { STACK_BYTES = 24 << 20 };

static int create(fj_pool *p, void *(*entry)(void *), void *entry_arg, void *arg)
{
    pthread_attr_t attr;
    pthread_t id;

    CHECK(p != NULL);
    if (arg != NULL && atomic_fetch_add(&refused, 1) % 2 == 0) return 1;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int err = pthread_create(&id, &attr, entry, entry_arg);
    pthread_attr_destroy(&attr);
    if (err == 0) atomic_fetch_add(&created, 1);
    return err;
}

static int has_signals_blocked(void *arg)
{
    sigset_t set;
    char name[16];

    (void)arg;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    CHECK(sigismember(&set, SIGTERM) && sigismember(&set, SIGUSR2));
    CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
    CHECK(strncmp(name, "mine-", 5) == 0);
    CHECK(fj_stack_left() > STACK_BYTES / 4 * 3 && fj_stack_left() < STACK_BYTES);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(threads_may_be_made_by_the_owner_of_the_pool, 30)
{
    fj_pool_options o = {0};

    o.parallelism = 3;
    o.name = "mine";
    o.create_thread = create;
    fj_pool *p = fjt_pool_with(&o);
    for (int i = 0; i < 100; i++) CHECK_EQ(fj_execute(p, has_signals_blocked, NULL), FJ_OK);
    UNTIL(atomic_load(&runs) == 100);
    CHECK(atomic_load(&created) >= 1);
    CHECK_EQ(fj_pool_thread_count(p), atomic_load(&created));
    fjt_destroy(p);
}

FJ_TEST(refused_threads_cost_no_tasks, 30)
{
    fj_pool_options o = {0};

    o.parallelism = 4;
    o.name = "mine";
    o.create_thread = create;
    o.arg = &refused;
    for (long i = fjt_rounds(50); i > 0; i--) {
        fj_pool *p = fjt_pool_with(&o);
        atomic_store(&runs, 0);
        for (int k = 0; k < 20; k++) CHECK_EQ(fj_execute(p, has_signals_blocked, NULL), FJ_OK);
        fjt_destroy(p);
        CHECK_EQ(atomic_load(&runs), 20);
    }
}

static atomic_int asked;

static int refuse_all(fj_pool *pool, void *arg)
{
    (void)pool;
    (void)arg;
    atomic_fetch_add(&asked, 1);
    return 0;
}

/* Only the pool itself asks again here: after 0.1, 0.2, 0.4 ... ms, and later every 100 ms. In 400 ms
 * these are 14 times; with a constant pause of 0.2 ms they are 2000. */
FJ_TEST(refused_threads_are_asked_for_with_growing_pauses, 30)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.allow_thread = refuse_all;
    fj_pool *p = fjt_pool_with(&o);
    int64_t began = fjt_now();
    CHECK_EQ(fj_execute(p, has_signals_blocked, NULL), FJ_OK);
    UNTIL(atomic_load(&asked) >= 6);
    fjt_sleep_us(400000);
    int times = atomic_load(&asked);
    CHECK(times <= 30 + (fjt_now() - began) / 50000000);
    fj_pool_shutdown_now(p);
    fjt_destroy(p);
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

static int looks_where_it_is(void *arg)
{
    cpu_set_t *set = arg;

    CHECK_EQ(sched_getaffinity(0, sizeof *set, set), 0);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(workers_run_on_the_cpus_they_are_given, 30)
{
    fj_pool_options o = {0};
    cpu_set_t all, one, seen;
    size_t cpu = 0;

    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(cpu, &all)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    o.parallelism = 1;
    o.cpus = &one;
    o.cpus_bytes = sizeof one;
    fj_pool *p = fjt_pool_with(&o);
    CPU_ZERO(&one); /* the pool has copied it */
    CHECK_EQ(fj_execute(p, looks_where_it_is, &seen), FJ_OK);
    UNTIL(atomic_load(&runs) == 1);
    CHECK_EQ(CPU_COUNT(&seen), 1);
    CHECK(CPU_ISSET(cpu, &seen));
    fjt_destroy(p);
}

/* ---- The common pool ------------------------------------------------------------------------- */

static void count_error(fj_pool *p, int code, void *arg)
{
    CHECK(p == fj_common_pool());
    CHECK_EQ(code, 5);
    atomic_fetch_add((atomic_int *)arg, 1);
}

static int fails(void *arg)
{
    (void)arg;
    return 5;
}

FJ_TEST(common_pool_is_configured_before_its_first_use, 30)
{
    fj_pool_options o = {0};
    atomic_int errors = 0;

    o.parallelism = -1;
    CHECK_EQ(fj_common_configure(&o), FJ_EINVAL);
    CHECK_EQ(fj_common_configure(NULL), FJ_EINVAL);
    o.parallelism = 3;
    o.on_error = count_error;
    o.arg = &errors;
    unsetenv("FORKJOIN_PARALLELISM");
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    CHECK_EQ(fj_common_parallelism(), 3);
    CHECK_EQ(fj_common_configure(&o), FJ_EBUSY);
    CHECK_EQ(fj_execute(NULL, fails, NULL), FJ_OK);
    UNTIL(atomic_load(&errors) == 1);
}

FJ_TEST(environment_comes_before_the_configuration, 30)
{
    fj_pool_options o = {0};

    o.parallelism = 3;
    setenv("FORKJOIN_PARALLELISM", "2", 1);
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    CHECK_EQ(fj_common_parallelism(), 2);
}
