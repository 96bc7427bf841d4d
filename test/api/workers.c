/* SPDX-License-Identifier: MIT */
/*
 * workers.c - the threads of a pool: names, stacks, signals, hooks, refused threads
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crowd.h"

#define MS ((int64_t)1000000)

static int ok_run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

static int ok_action(void *arg)
{
    (void)arg;
    return FJ_OK;
}

/* ---- Names and numbers ---------------------------------------------------------------------- */

struct seen {
    char name[16];
    int index;
    fj_pool *pool;
};

static void look(void *arg)
{
    struct seen *s = arg;

    pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    s->index = fj_current_worker();
    s->pool = fj_current_pool();
}

FJ_TEST(workers_are_named_after_the_pool_and_their_number, 10)
{
    static const struct {
        const char *name, *prefix;
    } names[] = {
        {NULL, "fj-"}, {"x", "x-"}, {"eight888", "eight888-"}, {"longer than that", "longer t-"}};

    for (int i = 0; i < 4; i++) {
        fj_pool_options o = {0};
        struct seen s = {.index = -1};
        char want[32];
        o.name = names[i].name;
        o.parallelism = 1;
        fj_pool *pool = fjt_pool_with(&o);
        inside(pool, look, &s);
        snprintf(want, sizeof want, "%s%d", names[i].prefix, s.index);
        CHECK(strcmp(s.name, want) == 0);
        CHECK(s.pool == pool);
        fjt_destroy(pool);
    }
}

static atomic_int index_used[64];

static int index_run(fj_task *t)
{
    int i = fj_current_worker();

    CHECK(i >= 0 && i < 64);
    CHECK_EQ(atomic_fetch_add(&index_used[i], 1), 0); /* no other worker has this index now */
    crowd_run(t);
    atomic_fetch_sub(&index_used[i], 1);
    return FJ_OK;
}

FJ_TEST(workers_have_different_numbers, 20)
{
    fj_pool *pool = fjt_pool(8, 0);
    fj_task t[8];

    for (int i = 0; i < 8; i++) {
        fj_task_init(&t[i], index_run);
        CHECK_EQ(fj_submit(pool, &t[i]), FJ_OK);
    }
    crowd_wait(8);
    for (int i = 0; i < 8; i++) CHECK_EQ(atomic_load(&index_used[i]), 1);
    atomic_store(&crowd_may_end, 1);
    for (int i = 0; i < 8; i++) CHECK_EQ(fj_join(&t[i]), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(index_of_a_worker_is_below_the_limit, 20)
{
    fj_pool *pool = fjt_pool(3, 0);
    struct seen s = {.index = -1};

    CHECK(fj_pool_worker_limit(pool) >= 0);
    for (int i = 0; i < 20; i++) {
        inside(pool, look, &s);
        CHECK(s.index >= 0 && s.index < fj_pool_worker_limit(pool));
    }
    CHECK(fj_pool_worker_limit(pool) <= FJ_MAX_WORKERS);
    fjt_destroy(pool);
}

FJ_TEST(thread_outside_is_in_no_pool, 10)
{
    CHECK(fj_current_pool() == NULL);
    CHECK_EQ(fj_current_worker(), -1);
    CHECK(!fj_is_stopping());
    CHECK(fj_stack_left() > 1000);
}

static __attribute__((noinline)) void measure_stack(void *arg)
{
    size_t *left = arg;
    char frame[20000];

    __asm__ __volatile__("" ::"r"(frame) : "memory"); /* keeps the frame */
    *left = fj_stack_left();
}

static void stack_shrinks(void *arg)
{
    size_t here = fj_stack_left(), below = 0, want = *(size_t *)arg;

    measure_stack(&below);
    if (here == SIZE_MAX) fjt_skip("the stack is not known here");
    CHECK(here <= want + (64u << 10) && here > want / 2);
    CHECK(below + 20000 <= here);
}

FJ_TEST(workers_have_the_stack_asked_for, 10)
{
    static size_t sizes[] = {2u << 20, 16u << 20, 64u << 20};

    for (int i = 0; i < 3; i++) {
        fj_pool_options o = {0};
        o.parallelism = 1;
        o.stack_bytes = sizes[i];
        fj_pool *pool = fjt_pool_with(&o);
        inside(pool, stack_shrinks, &sizes[i]);
        fjt_destroy(pool);
    }
}

static void default_stack(void *arg)
{
    (void)arg;
    CHECK(fj_stack_left() >= (1u << 20) - (64u << 10));
}

FJ_TEST(workers_have_a_mebibyte_of_stack_at_least, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    inside(pool, default_stack, NULL);
    fjt_destroy(pool);
}

static atomic_int signals;

static void on_signal(int number)
{
    (void)number;
    CHECK(!in_crowd);
    atomic_fetch_add(&signals, 1);
}

FJ_TEST(signals_go_to_other_threads_than_workers, 20)
{
    fj_pool *pool = fjt_pool(4, 0);
    struct crowd c;

    signal(SIGUSR1, on_signal);
    crowd_start(pool, &c, 4);
    crowd_wait(4);
    for (int i = 1; i <= 100; i++) {
        kill(getpid(), SIGUSR1);
        while (atomic_load(&signals) < i) fjt_sleep_us(10);
    }
    crowd_end(&c);
    fjt_destroy(pool);
}

/* ---- Hooks ---------------------------------------------------------------------------------- */

struct hooks {
    atomic_int started[64], stopped[64], asked, errors, code;
    fj_pool *pool;
    int fail;  /* what on_start returns */
    int every; /* allow_thread refuses one of `every` calls; 0: none */
    int first; /* the first call that it refuses */
};

static int hook_start(fj_pool *pool, int worker, void *arg)
{
    struct hooks *h = arg;

    CHECK(worker >= 0 && worker < 64);
    CHECK(fj_current_pool() == pool);
    CHECK_EQ(fj_current_worker(), worker);
    CHECK_EQ(atomic_fetch_add(&h->started[worker], 1), atomic_load(&h->stopped[worker]));
    return h->fail;
}

static void hook_stop(fj_pool *pool, int worker, void *arg)
{
    struct hooks *h = arg;

    CHECK(fj_current_pool() == pool);
    CHECK_EQ(fj_current_worker(), worker);
    atomic_fetch_add(&h->stopped[worker], 1);
    CHECK_EQ(atomic_load(&h->stopped[worker]), atomic_load(&h->started[worker]));
}

static int hook_may_start(fj_pool *pool, void *arg)
{
    struct hooks *h = arg;
    int n = atomic_fetch_add(&h->asked, 1);

    CHECK(fj_pool_thread_count(pool) >= 0);
    return h->every == 0 || n % h->every != h->first;
}

static void hook_error(fj_pool *pool, int code, void *arg)
{
    struct hooks *h = arg;

    CHECK(pool != NULL);
    atomic_store(&h->code, code);
    atomic_fetch_add(&h->errors, 1);
}

static fj_pool *hooked(struct hooks *h, int n, unsigned flags)
{
    fj_pool_options o = {0};

    o.parallelism = n;
    o.flags = flags;
    o.arg = h;
    o.allow_thread = hook_may_start;
    o.on_start = hook_start;
    o.on_stop = hook_stop;
    o.on_error = hook_error;
    o.keep_alive_ns = 20 * MS;
    return fjt_pool_with(&o);
}

static int sum(const atomic_int *a)
{
    int n = 0;

    for (int i = 0; i < 64; i++) n += atomic_load(&a[i]);
    return n;
}

FJ_TEST(start_and_stop_hooks_come_in_pairs, 20)
{
    for (unsigned flags = 0; flags < 2; flags++) {
        struct hooks h = {.fail = 0};
        struct crowd c;
        fj_pool *pool = hooked(&h, 6, flags);
        CHECK_EQ(sum(h.started), 0);
        crowd_start(pool, &c, 6);
        crowd_wait(6);
        CHECK_EQ(sum(h.started), 6);
        CHECK_EQ(sum(h.stopped), 0);
        crowd_end(&c);
        until_size(pool, 0);
        crowd_start(pool, &c, 3);
        crowd_wait(3);
        crowd_end(&c);
        fjt_destroy(pool);
        CHECK(sum(h.started) >= 9);
        for (int i = 0; i < 64; i++)
            CHECK_EQ(atomic_load(&h.started[i]), atomic_load(&h.stopped[i]));
        CHECK_EQ(atomic_load(&h.errors), 0);
        CHECK(atomic_load(&h.asked) >= sum(h.started));
    }
}

/* A worker whose start hook fails runs no task and exits. The pool can still be terminated. */
FJ_TEST(worker_whose_start_hook_fails_ends_after_its_stop_hook, 20)
{
    struct hooks h = {.fail = 77};
    fj_pool *pool = hooked(&h, 3, 0);
    fj_task t[10];

    for (int i = 0; i < 10; i++) {
        fj_task_init(&t[i], ok_run);
        CHECK_EQ(fj_submit(pool, &t[i]), FJ_OK);
    }
    while (sum(h.stopped) == 0) fjt_sleep_us(100);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(fj_join(&t[i]), FJ_ECANCELED);
    fjt_destroy(pool);
    CHECK_EQ(sum(h.started), sum(h.stopped));
    CHECK_EQ(atomic_load(&h.errors), sum(h.started));
    CHECK_EQ(atomic_load(&h.code), 77);
}

static int hook_start_later(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker;
    return atomic_fetch_sub((atomic_int *)arg, 1) > 0 ? 77 : FJ_OK;
}

static int mark(void *arg)
{
    atomic_store((atomic_int *)arg, 1);
    return FJ_OK;
}

/* No other call reaches the pool. A worker that exits without having run a task starts another. */
FJ_TEST(task_waits_for_no_other_call_when_its_thread_fails_to_start, 20)
{
    for (int fails = 1; fails < 3; fails++) {
        atomic_int left = fails, *ran = calloc(1, sizeof *ran);
        fj_pool_options o = {0};
        o.parallelism = 2;
        o.on_start = hook_start_later;
        o.arg = &left;
        fj_pool *pool = fjt_pool_with(&o);
        CHECK(ran != NULL);
        CHECK_EQ(fj_execute(pool, mark, ran), FJ_OK);
        while (!atomic_load(ran)) fjt_sleep_us(1000);
        fjt_destroy(pool);
        free(ran);
    }
}

/* After three failed starts in a row, the pool tries the next one 100 ms later. */
FJ_TEST(threads_that_fail_to_start_are_not_asked_for_without_end, 20)
{
    enum { N = 2, TENTH = 100000000 };
    struct hooks h = {.fail = 77};
    fj_pool *pool = hooked(&h, N, 0);
    int64_t began = fjt_now();
    fj_task t[200];

    for (int i = 0; i < 200; i++) {
        fj_task_init(&t[i], ok_run);
        CHECK_EQ(fj_submit(pool, &t[i]), FJ_OK);
        fjt_sleep_us(200);
    }
    while (sum(h.stopped) < 3) fjt_sleep_us(1000);
    int64_t tenths = (fjt_now() - began) / TENTH;
    CHECK(sum(h.started) <= 3 + N + (tenths + 1) * N);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    for (int i = 0; i < 200; i++) CHECK_EQ(fj_join(&t[i]), FJ_ECANCELED);
    fjt_destroy(pool);
}

FJ_TEST(guests_call_no_hooks, 20)
{
    struct hooks h = {.every = 1};
    fj_pool *pool = hooked(&h, 2, FJ_POOL_CALLER_HELPS);
    fj_task t;

    fj_task_init(&t, ok_run);
    for (int i = 0; i < 10; i++) CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
    fjt_destroy(pool);
    CHECK_EQ(sum(h.started), 0);
    CHECK_EQ(sum(h.stopped), 0);
}

/* ---- Refused threads ------------------------------------------------------------------------- */

FJ_TEST(pool_that_may_start_nobody_runs_on_its_callers, 20)
{
    struct hooks h = {.every = 1};
    fj_pool *pool = hooked(&h, 4, FJ_POOL_CALLER_HELPS);
    fj_task t, list[5];

    fj_task_init(&t, ok_run);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
        for (int k = 0; k < 5; k++) {
            fj_task_init(&list[k], ok_run);
            CHECK_EQ(fj_submit(pool, &list[k]), FJ_OK);
        }
        for (int k = 0; k < 5; k++) CHECK_EQ(fj_join(&list[k]), FJ_OK);
    }
    CHECK(atomic_load(&h.asked) > 0);
    CHECK_EQ(fj_pool_thread_count(pool), 0);
    CHECK_EQ(fj_execute(pool, ok_action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(pool_that_may_start_nobody_can_be_stopped, 20)
{
    struct hooks h = {.every = 1};
    fj_pool *pool = hooked(&h, 4, 0);
    fj_task t;

    fj_task_init(&t, ok_run);
    CHECK_EQ(fj_submit(pool, &t), FJ_OK);
    CHECK_EQ(fj_execute(pool, ok_action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK_EQ(fj_join(&t), FJ_ECANCELED);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(pool_that_may_start_every_second_worker_runs_everything, 30)
{
    for (int first = 0; first < 2; first++) {
        struct hooks h = {.every = 2, .first = first};
        fj_pool *pool = hooked(&h, 4, 0);
        fj_task t[50];
        for (int round = 0; round < 20; round++) {
            for (int i = 0; i < 50; i++) {
                fj_task_init(&t[i], ok_run);
                CHECK_EQ(fj_submit(pool, &t[i]), FJ_OK);
            }
            for (int i = 0; i < 50; i++) CHECK_EQ(fj_join(&t[i]), FJ_OK);
            if (round % 5 == 4) until_size(pool, 0);
        }
        fjt_destroy(pool);
        CHECK_EQ(sum(h.started), sum(h.stopped));
    }
}

/* After many refusals the counts are still correct: the pool reaches its parallelism. */
FJ_TEST(refusals_cost_no_workers_later, 30)
{
    struct hooks h = {.every = 1};
    fj_pool *pool = hooked(&h, 4, FJ_POOL_CALLER_HELPS);
    struct crowd c;
    fj_task t;

    fj_task_init(&t, ok_run);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(fj_submit(pool, &t), FJ_OK);
        CHECK_EQ(fj_join(&t), FJ_OK);
    }
    h.every = 0;
    crowd_start(pool, &c, 4);
    crowd_wait(4);
    CHECK_EQ(fj_pool_thread_count(pool), 4);
    crowd_end(&c);
    fjt_destroy(pool);
}
