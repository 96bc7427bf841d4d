/* SPDX-License-Identifier: MIT */
/*
 * order.c - a FIFO pool with one worker runs the submissions of each thread in order
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "fjtest.h"

static atomic_long next_number;
static atomic_int wrong;

static int check_number(long number)
{
    if (atomic_fetch_add(&next_number, 1) != number) atomic_fetch_add(&wrong, 1);
    return FJ_OK;
}

static int number_action(void *arg)
{
    return check_number((long)(intptr_t)arg);
}

struct numbered {
    union {
        fj_task task;
        fj_future future;
    } as;
    long number;
};

static int numbered_run(fj_task *t)
{
    return check_number(((struct numbered *)t)->number);
}

/* Submits a mix of actions, tasks and futures while the worker runs them. */
FJ_TEST(one_worker_runs_the_submissions_of_one_thread_in_order, 60)
{
    long n = fjt_rounds(20000);
    struct numbered *all = calloc((size_t)n, sizeof *all);
    fj_pool *p = fjt_pool(1, FJ_POOL_FIFO);
    uint64_t random = fjt_seed();

    CHECK(all != NULL);
    atomic_store(&next_number, 0);
    atomic_store(&wrong, 0);
    for (long i = 0; i < n; i++) {
        all[i].number = i;
        switch (fjt_random(&random) % 3) {
            case 0: CHECK_EQ(fj_execute(p, number_action, (void *)(intptr_t)i), FJ_OK); break;
            case 1:
                fj_task_init(&all[i].as.task, numbered_run);
                CHECK_EQ(fj_submit(p, &all[i].as.task), FJ_OK);
                break;
            default:
                fj_future_init(&all[i].as.future, numbered_run);
                CHECK_EQ(fj_future_submit(p, &all[i].as.future), FJ_OK);
                break;
        }
        if (fjt_random(&random) % 4096 == 0) fjt_sleep_us(200);
    }
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&next_number), n);
    CHECK_EQ(atomic_load(&wrong), 0);
    fjt_destroy(p);
    free(all);
}

/* The submissions are queued while the worker is busy, so that it finds many of them at once. */
static atomic_int go;

static int waits_for_go(void *arg)
{
    (void)arg;
    while (!atomic_load(&go)) fjt_sleep_us(100);
    return FJ_OK;
}

FJ_TEST(submissions_that_have_piled_up_are_run_in_order, 60)
{
    for (int n = 1; n <= 1000; n = n * 3 + 1) {
        fj_pool *p = fjt_pool(1, FJ_POOL_FIFO);

        atomic_store(&go, 0);
        atomic_store(&next_number, 0);
        atomic_store(&wrong, 0);
        CHECK_EQ(fj_execute(p, waits_for_go, NULL), FJ_OK);
        for (long i = 0; i < n; i++)
            CHECK_EQ(fj_execute(p, number_action, (void *)(intptr_t)i), FJ_OK);
        atomic_store(&go, 1);
        fjt_destroy(p);
        CHECK_EQ(atomic_load(&next_number), n);
        CHECK_EQ(atomic_load(&wrong), 0);
    }
}

/* Another thread takes its own tasks back and reads queue lengths. The order does not change. */
static atomic_int meddles;

static int nothing(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

static void *meddler(void *pool)
{
    while (atomic_load(&meddles)) {
        fj_task t;
        fj_task_init(&t, nothing);
        CHECK_EQ(fj_submit(pool, &t), FJ_OK);
        if (!fj_unfork(&t)) CHECK_EQ(fj_join(&t), FJ_OK);
        (void)fj_pool_queued_submission_count(pool);
    }
    return NULL;
}

FJ_TEST(order_is_kept_beside_another_thread, 60)
{
    fj_pool *p = fjt_pool(1, FJ_POOL_FIFO);
    pthread_t t;

    atomic_store(&next_number, 0);
    atomic_store(&wrong, 0);
    atomic_store(&meddles, 1);
    CHECK_EQ(pthread_create(&t, NULL, meddler, p), 0);
    for (long i = 0; i < fjt_rounds(20000); i++)
        CHECK_EQ(fj_execute(p, number_action, (void *)(intptr_t)i), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER) == FJ_OK, 1);
    atomic_store(&meddles, 0);
    pthread_join(t, NULL);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&wrong), 0);
}
