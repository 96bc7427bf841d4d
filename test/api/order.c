/* SPDX-License-Identifier: MIT */
/*
 * order.c - the promises of order in the head of <forkjoin.h>
 */
#include <forkjoin/block.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "inside.h"

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

/* ---- A thread that also submits to another pool ------------------------------------------------ */

/* The submitters of a pool that is not FIFO change their queues when they meet. This must not change the
 * queue of the thread in the FIFO pool. */
static int does_nothing(void *arg)
{
    (void)arg;
    return FJ_OK;
}

static void *submits_elsewhere(void *pool)
{
    while (atomic_load(&meddles)) CHECK_EQ(fj_execute(pool, does_nothing, NULL), FJ_OK);
    return NULL;
}

FJ_TEST(order_is_kept_by_a_thread_that_also_submits_to_another_pool, 60)
{
    fj_pool *p = fjt_pool(1, FJ_POOL_FIFO), *other = fjt_pool(4, 0);
    pthread_t t[3];

    atomic_store(&next_number, 0);
    atomic_store(&wrong, 0);
    atomic_store(&meddles, 1);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&t[i], NULL, submits_elsewhere, other), 0);
    for (long i = 0; i < fjt_rounds(20000); i++) {
        CHECK_EQ(fj_execute(p, number_action, (void *)(intptr_t)i), FJ_OK);
        CHECK_EQ(fj_execute(other, does_nothing, NULL), FJ_OK);
    }
    atomic_store(&meddles, 0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    fjt_destroy(p);
    fjt_destroy(other);
    CHECK_EQ(atomic_load(&wrong), 0);
}

/* ---- Several threads -------------------------------------------------------------------------- */

/* Each submission has the number of its thread and its place among the submissions of that thread. */
enum { THREADS = 3 };
static atomic_long next_of[THREADS];

static int place_action(void *arg)
{
    long word = (long)(intptr_t)arg, thread = word % THREADS, place = word / THREADS;

    if (atomic_fetch_add(&next_of[thread], 1) != place) atomic_fetch_add(&wrong, 1);
    return FJ_OK;
}

struct submitter {
    fj_pool *pool;
    int number;
    long n;
};

static void *submits_in_order(void *arg)
{
    struct submitter *s = arg;

    for (long i = 0; i < s->n; i++)
        CHECK_EQ(fj_execute(s->pool, place_action, (void *)(intptr_t)(i * THREADS + s->number)),
                 FJ_OK);
    return NULL;
}

FJ_TEST(each_of_several_threads_keeps_its_own_order, 60)
{
    fj_pool *p = fjt_pool(1, FJ_POOL_FIFO);
    struct submitter s[THREADS];
    pthread_t t[THREADS];

    atomic_store(&wrong, 0);
    for (int i = 0; i < THREADS; i++) {
        atomic_store(&next_of[i], 0);
        s[i] = (struct submitter){p, i, fjt_rounds(10000)};
        CHECK_EQ(pthread_create(&t[i], NULL, submits_in_order, &s[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    fjt_destroy(p);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(atomic_load(&next_of[i]), s[i].n);
    CHECK_EQ(atomic_load(&wrong), 0);
}

/* ---- Workers ---------------------------------------------------------------------------------- */

/* A worker of a FIFO pool submits, while it is the only worker. */
static void submits_to_its_own_queue(void *arg)
{
    long n = *(long *)arg;
    fj_pool *p = fj_current_pool();

    for (long i = 0; i < n; i++) CHECK_EQ(fj_execute(p, number_action, (void *)(intptr_t)i), FJ_OK);
}

FJ_TEST(only_worker_runs_its_own_submissions_in_order, 60)
{
    fj_pool *p = fjt_pool(1, FJ_POOL_FIFO);
    long n = fjt_rounds(3000);

    atomic_store(&next_number, 0);
    atomic_store(&wrong, 0);
    inside(p, submits_to_its_own_queue, &n);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&next_number), n);
    CHECK_EQ(atomic_load(&wrong), 0);
}

/* A worker submits with fj_submit_external(), between submissions of the thread outside. */
struct external {
    struct numbered *all;
    long n;
};

static void submits_externally(void *arg)
{
    struct external *e = arg;
    fj_pool *p = fj_current_pool();

    for (long i = 0; i < e->n; i++) {
        e->all[i].number = i;
        fj_task_init(&e->all[i].as.task, numbered_run);
        CHECK_EQ(fj_submit_external(p, &e->all[i].as.task), FJ_OK);
    }
    for (long i = e->n; i-- > 0;) CHECK_EQ(fj_execute(p, does_nothing, NULL), FJ_OK);
}

FJ_TEST(external_submissions_of_a_worker_are_run_in_order, 60)
{
    fj_pool *p = fjt_pool(1, FJ_POOL_FIFO);
    struct external e = {.n = fjt_rounds(3000)};

    e.all = calloc((size_t)e.n, sizeof *e.all);
    CHECK(e.all != NULL);
    atomic_store(&next_number, 0);
    atomic_store(&wrong, 0);
    inside(p, submits_externally, &e);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&next_number), e.n);
    CHECK_EQ(atomic_load(&wrong), 0);
    fjt_destroy(p);
    free(e.all);
}

/* ---- Several workers, and tasks that block ----------------------------------------------------- */

/* Each action draws the next number when it begins. A task that begins late may draw a later number, but
 * the workers take the submissions in order: at most as many as there are workers are out of place. */
static int near_action(void *arg)
{
    long number = (long)(intptr_t)arg, drawn = atomic_fetch_add(&next_number, 1);

    if (number > drawn + 1) atomic_fetch_add(&wrong, 1);
    return FJ_OK;
}

FJ_TEST(two_workers_take_submissions_in_order, 60)
{
    fj_pool_options o = {.parallelism = 2, .max_threads = 2, .flags = FJ_POOL_FIFO};
    fj_pool *p = fjt_pool_with(&o);
    long n = fjt_rounds(20000);

    atomic_store(&next_number, 0);
    atomic_store(&wrong, 0);
    for (long i = 0; i < n; i++) CHECK_EQ(fj_execute(p, near_action, (void *)(intptr_t)i), FJ_OK);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&next_number), n);
    CHECK_EQ(atomic_load(&wrong), 0);
}

/* The first action blocks, and a spare thread runs the next ones: they begin in order. */
static atomic_int begun;

static int blocks_first(void *arg)
{
    fj_blocking b;

    CHECK_EQ(check_number((long)(intptr_t)arg), FJ_OK);
    atomic_fetch_add(&begun, 1);
    CHECK_EQ(fj_block_begin(&b), FJ_OK);
    until(&go);
    fj_block_end(&b);
    return FJ_OK;
}

FJ_TEST(tasks_begin_in_order_while_an_earlier_one_blocks, 60)
{
    fj_pool *p = fjt_pool(1, FJ_POOL_FIFO);

    atomic_store(&go, 0);
    atomic_store(&begun, 0);
    atomic_store(&next_number, 0);
    atomic_store(&wrong, 0);
    for (long i = 0; i < 20; i++)
        CHECK_EQ(fj_execute(p, i % 5 == 0 ? blocks_first : number_action, (void *)(intptr_t)i),
                 FJ_OK);
    while (atomic_load(&next_number) < 20) fjt_sleep_us(100); /* all have begun, four are blocked */
    CHECK_EQ(atomic_load(&begun), 4);
    atomic_store(&go, 1);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&wrong), 0);
}
