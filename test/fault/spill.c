/* SPDX-License-Identifier: MIT */
/*
 * spill.c - more typed forks than there are cells, without any memory
 *
 * A typed fork cannot fail. If its queue has no space, the fork runs the task at once and keeps its
 * result in an overflow cell. If there is no memory for that cell, the fork takes one of
 * FJI_OVERFLOW_RESERVE cells that all threads share. If those are used up, the fork waits for memory.
 */
#include <pthread.h>

#include "faulty.h"

enum { MANY = 700 };

static atomic_int runs, forked;

FJ_TASK(long, square, int, n)
{
    atomic_fetch_add(&runs, 1);
    return (long)n * n;
}

/* Spawns all calls, then joins them. */
FJ_TASK(long, spawn_many, int, n)
{
    long sum = 0;

    for (int i = 0; i < n; i++) {
        square_spawn(FJ, i);
        atomic_fetch_add(&forked, 1);
    }
    for (int i = n; i-- > 0;) {
        long got = square_sync(FJ);
        CHECK_EQ(got, (long)i * i);
        sum += got;
    }
    return sum;
}

/* Forks all tasks, then joins them: oldest first (order 0), youngest first (1), in a mixed order
 * (2). */
FJ_TASK(long, many, int, order)
{
    square_task h[MANY];
    long sum = 0;

    for (int i = 0; i < MANY; i++) {
        square_fork(FJ, &h[i], i);
        atomic_fetch_add(&forked, 1);
    }
    for (int i = 0; i < MANY; i++) {
        int k = order == 0 ? i : order == 1 ? MANY - 1 - i : i * 9 % MANY;
        long got = square_join(FJ, &h[k]);
        CHECK_EQ(got, (long)k * k);
        sum += got;
    }
    return sum;
}

static long sum_of_squares(void)
{
    long sum = 0;

    for (long i = 0; i < MANY; i++) sum += i * i;
    return sum;
}

static void refuse_memory(void)
{
    set_fault(FJI_FAULT_ALLOC, 1, FOR_EVER);
    set_fault(FJI_FAULT_COMMIT, 1, FOR_EVER);
    set_fault(FJI_FAULT_RESERVE, 1, FOR_EVER);
}

static int all; /* tasks that are forked in this round */

/*
 * Makes memory available again once a fork waits for it. Each fork requests memory once; it repeats
 * the request only if the reserve is used up too. There are more tasks than cells, so some fork
 * must wait before all tasks are forked.
 */
static void *gives_memory_back(void *arg)
{
    long begin = *(const long *)arg;

    while (fji_fault_calls(FJI_FAULT_ALLOC) < begin + 4 * (long)all && atomic_load(&forked) < all)
        fjt_sleep_us(100);
    CHECK(atomic_load(&forked) < all);
    calm();
    return NULL;
}

static int nothing(void *arg)
{
    (void)arg;
    return FJ_OK;
}

/* A pool with one worker, so that no thief takes from its queue. The worker is started, and the
 * submission queue of this thread is created, while there is memory. */
static fj_pool *pool_of_one(void)
{
    fj_pool_options o = {0};

    o.parallelism = o.max_threads = 1;
    o.keep_alive_ns = FJ_FOREVER;
    fj_pool *pool = fjt_pool_with(&o);
    CHECK_EQ(fj_execute(pool, nothing, NULL), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    return pool;
}

/* order: as in `many`, or 3 to spawn the calls. */
static void invoke_many(fj_pool *pool, int order)
{
    long sum = 0;

    if (order == 3)
        CHECK_EQ(spawn_many_invoke(pool, &sum, MANY), FJ_OK);
    else
        CHECK_EQ(many_invoke(pool, &sum, order), FJ_OK);
    CHECK_EQ(sum, sum_of_squares());
}

FJ_TEST(typed_forks_without_memory_use_the_reserve_and_then_wait, 30)
{
    need_faults();
    all = MANY;
    for (int round = 0; round < 8; round++) {
        fj_pool *pool = pool_of_one();
        pthread_t other;
        long begin = fji_fault_calls(FJI_FAULT_ALLOC);
        atomic_store(&runs, 0);
        atomic_store(&forked, 0);
        refuse_memory();
        CHECK_EQ(pthread_create(&other, NULL, gives_memory_back, &begin), 0);
        invoke_many(pool, round % 4);
        CHECK_EQ(pthread_join(other, NULL), 0);
        CHECK_EQ(atomic_load(&runs), all);
        fjt_destroy(pool);
    }
}

static atomic_int ready, go;

static void *invokes_many(void *arg)
{
    fj_pool *pool = pool_of_one();

    atomic_fetch_add(&ready, 1);
    while (atomic_load(&go) == 0) fjt_sleep_us(50);
    invoke_many(pool, *(const int *)arg);
    fjt_destroy(pool);
    return NULL;
}

/* All threads share the reserve. The workers of two pools request its cells at the same time. */
FJ_TEST(typed_forks_of_two_pools_without_memory_share_the_reserve, 30)
{
    need_faults();
    all = 2 * MANY;
    for (int round = 0; round < 8; round++) {
        pthread_t other, pool[2];
        int order[2] = {round % 4, (round + 1) % 4};
        long begin;
        atomic_store(&runs, 0);
        atomic_store(&forked, 0);
        atomic_store(&ready, 0);
        atomic_store(&go, 0);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(pthread_create(&pool[i], NULL, invokes_many, &order[i]), 0);
        while (atomic_load(&ready) < 2) fjt_sleep_us(50);
        begin = fji_fault_calls(FJI_FAULT_ALLOC);
        refuse_memory();
        atomic_store(&go, 1);
        CHECK_EQ(pthread_create(&other, NULL, gives_memory_back, &begin), 0);
        CHECK_EQ(pthread_join(other, NULL), 0);
        for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(pool[i], NULL), 0);
        CHECK_EQ(atomic_load(&runs), all);
    }
}
