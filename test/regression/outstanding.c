/* SPDX-License-Identifier: MIT */
/*
 * outstanding.c - more queued tasks than a worker's queue has cells
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "plat/config.h"
#include "regression.h"

static atomic_long ran;
static long wanted;

/* Returns more than the number of cells of a worker's queue. */
static long many(void)
{
    return (long)FJI_QUEUE_RESERVED + fjt_rounds(200000);
}

static int count_action(void *arg)
{
    (void)arg;
    atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
    return FJ_OK;
}

static int count_task(fj_task *t)
{
    (void)t;
    return count_action(NULL);
}

static void in_pool_of_one(fj_task_fn *body)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_task t;

    wanted = many();
    atomic_store(&ran, 0);
    fj_task_init(&t, body);
    CHECK_EQ(fj_invoke(p, &t), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&ran), wanted);
    fjt_destroy(p);
}

static int executes(fj_task *t)
{
    (void)t;
    for (long i = 0; i < wanted; i++)
        CHECK_EQ(fj_execute(fj_current_pool(), count_action, NULL), FJ_OK);
    return FJ_OK;
}

FJ_TEST(worker_has_more_actions_than_its_queue_has_cells, 120)
{
    in_pool_of_one(executes);
}

/* The same above the tombstones of two joined tasks, which the queue cannot compact away. */
static int executes_above_tombs(fj_task *t)
{
    fj_task a[3];

    for (int i = 0; i < 3; i++) {
        fj_task_init(&a[i], count_task);
        fj_fork(&a[i]);
    }
    CHECK_EQ(fj_join(&a[0]), FJ_OK);
    CHECK_EQ(fj_join(&a[1]), FJ_OK);
    wanted -= 3;
    (void)executes(t);
    wanted += 3;
    return fj_join(&a[2]);
}

FJ_TEST(worker_has_more_actions_than_cells_above_joined_tasks, 120)
{
    in_pool_of_one(executes_above_tombs);
}

/* Forks tasks and joins them oldest first or youngest first. */
static int forks(long step)
{
    fj_task *a = calloc((size_t)wanted, sizeof *a);

    CHECK(a != NULL);
    for (long i = 0; i < wanted; i++) {
        fj_task_init(&a[i], count_task);
        fj_fork(&a[i]);
    }
    for (long i = 0; i < wanted; i++) CHECK_EQ(fj_join(&a[step > 0 ? i : wanted - 1 - i]), FJ_OK);
    free(a);
    return FJ_OK;
}

static int forks_joined_youngest_first(fj_task *t)
{
    (void)t;
    return forks(-1);
}

static int forks_joined_oldest_first(fj_task *t)
{
    (void)t;
    return forks(1);
}

FJ_TEST(worker_has_more_forks_than_its_queue_has_cells, 120)
{
    in_pool_of_one(forks_joined_youngest_first);
    in_pool_of_one(forks_joined_oldest_first);
}

/* Queues futures that the worker forks or submits itself. */
static int submits(fj_task *t)
{
    fj_future *f = calloc((size_t)wanted, sizeof *f);

    (void)t;
    CHECK(f != NULL);
    for (long i = 0; i < wanted; i++) {
        fj_future_init(&f[i], count_task);
        CHECK_EQ(i % 2 == 0 ? fj_future_fork(&f[i]) : fj_future_submit(fj_current_pool(), &f[i]),
                 FJ_OK);
    }
    for (long i = wanted; i-- > 0;) {
        CHECK_EQ(fj_future_join(&f[i]), FJ_OK);
        fj_future_fini(&f[i]);
    }
    free(f);
    return FJ_OK;
}

FJ_TEST(worker_has_more_futures_than_its_queue_has_cells, 120)
{
    in_pool_of_one(submits);
}

/* The token of a call also reaches tasks beyond the last cell of the queue. */
static fj_token token;
static atomic_long cancelled;

static int sees_its_token(fj_task *t)
{
    (void)t;
    if (fj_current_token() == &token) atomic_fetch_add(&cancelled, 1);
    return count_action(NULL);
}

static int forks_with_a_token(fj_task *t)
{
    fj_task *a = calloc((size_t)wanted, sizeof *a);

    (void)t;
    CHECK(a != NULL);
    for (long i = 0; i < wanted; i++) {
        fj_task_init(&a[i], sees_its_token);
        fj_fork(&a[i]);
    }
    while (atomic_load(&ran) == 0) sched_yield(); /* the other worker has begun to steal */
    for (long i = wanted; i-- > 0;) CHECK_EQ(fj_join(&a[i]), FJ_OK);
    free(a);
    return FJ_OK;
}

FJ_TEST(token_reaches_tasks_beyond_the_queue, 120)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_task t;

    wanted = many();
    atomic_store(&ran, 0);
    atomic_store(&cancelled, 0);
    fj_token_init(&token, NULL);
    fj_task_init(&t, forks_with_a_token);
    CHECK_EQ(fj_invoke_token(p, &t, &token), FJ_OK);
    CHECK_EQ(atomic_load(&cancelled), wanted);
    fjt_destroy(p);
}

/* Submissions from outside the pool: 4.2 million of them, after which the memory is returned. */
static atomic_int open_gate;

static int gate(void *arg)
{
    (void)arg;
    while (!atomic_load(&open_gate)) fjt_sleep_us(100);
    return FJ_OK;
}

FJ_TEST(memory_of_many_submissions_is_given_back, 120)
{
    long n = 4200000 + fjt_rounds(100000), pages = 0;
    fj_pool *p = fjt_pool(1, 0);

    for (int round = 0; round < 2; round++) {
        atomic_store(&ran, 0);
        atomic_store(&open_gate, 0);
        CHECK_EQ(fj_execute(p, gate, NULL), FJ_OK);
        for (long i = 0; i < n; i++) CHECK_EQ(fj_execute(p, count_action, NULL), FJ_OK);
        atomic_store(&open_gate, 1);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&ran), n);
        for (int k = 0; k < 200; k++) { /* the worker returns the memory before it goes to sleep */
            FILE *f = fopen("/proc/self/statm", "r");
            long all, resident = 0;
            if (f == NULL || fscanf(f, "%ld %ld", &all, &resident) != 2) resident = 0;
            if (f != NULL) fclose(f);
            pages = resident;
            if (pages * 4096 < 60000000) break;
            fjt_sleep_us(20000);
        }
        if (!fjt_sanitized()) CHECK(pages * 4096 < 60000000); /* the queued actions used 134 MB */
    }
    fjt_destroy(p);
}
