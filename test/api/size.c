/* SPDX-License-Identifier: MIT */
/*
 * size.c - the number of threads of a pool: keep-alive time, change of the parallelism
 */
#include "crowd.h"

#define MS ((int64_t)1000000)

static int ok_run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

/* ---- Exit of idle workers -------------------------------------------------------------------- */

FJ_TEST(idle_workers_all_leave_after_keep_alive, 60)
{
    fj_pool_options o = {0};

    o.parallelism = 16;
    o.keep_alive_ns = 20 * MS;
    fj_pool *pool = fjt_pool_with(&o);
    for (int round = 0; round < 3; round++) {
        struct crowd c;
        crowd_start(pool, &c, 16);
        crowd_wait(16);
        CHECK_EQ(fj_pool_thread_count(pool), 16);
        crowd_end(&c);
        until_size(pool, 0);
        CHECK(fj_pool_is_quiescent(pool));
    }
    fjt_destroy(pool);
}

FJ_TEST(idle_workers_stay_for_keep_alive, 20)
{
    fj_pool_options o = {0};
    fj_stats s;
    struct crowd c;

    o.parallelism = 4;
    o.keep_alive_ns = FJ_FOREVER;
    fj_pool *pool = fjt_pool_with(&o);
    crowd_start(pool, &c, 4);
    crowd_wait(4);
    crowd_end(&c);
    fjt_sleep_us(100000);
    CHECK_EQ(fj_pool_thread_count(pool), 4);
    CHECK_EQ(fj_pool_stats(pool, &s), FJ_OK);
    CHECK_EQ(s.started, 4);
    fjt_destroy(pool);
}

FJ_TEST(pool_works_again_after_all_have_left, 60)
{
    fj_pool_options o = {0};
    fj_task t;

    o.parallelism = 2;
    o.keep_alive_ns = 1; /* raised to the minimum, 20 ms */
    fj_pool *pool = fjt_pool_with(&o);
    fj_task_init(&t, ok_run);
    for (long i = fjt_rounds(20); i-- > 0;) {
        CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
        until_size(pool, 0);
    }
    fjt_destroy(pool);
}

/* Submits at about the time when idle workers exit. */
FJ_TEST(no_submission_is_lost_while_workers_leave, 60)
{
    fj_pool_options o = {0};
    uint64_t random = fjt_seed();
    fj_task t;

    o.parallelism = 3;
    o.keep_alive_ns = 20 * MS;
    fj_pool *pool = fjt_pool_with(&o);
    fj_task_init(&t, ok_run);
    for (long i = fjt_rounds(60); i-- > 0;) {
        CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
        fjt_sleep_us(19500 + (int64_t)(fjt_random(&random) % 3000));
    }
    fjt_destroy(pool);
}

/* ---- Change of the parallelism --------------------------------------------------------------- */

FJ_TEST(set_parallelism_returns_the_old_one_and_checks_its_range, 10)
{
    fj_pool *pool = fjt_pool(3, 0);

    CHECK_EQ(fj_pool_set_parallelism(pool, 5), 3);
    CHECK_EQ(fj_pool_parallelism(pool), 5);
    CHECK_EQ(fj_pool_set_parallelism(pool, 0), FJ_EINVAL);
    CHECK_EQ(fj_pool_set_parallelism(pool, -1), FJ_EINVAL);
    CHECK_EQ(fj_pool_set_parallelism(pool, FJ_MAX_WORKERS + 1), FJ_EINVAL);
    CHECK_EQ(fj_pool_parallelism(pool), 5);
    CHECK_EQ(fj_pool_set_parallelism(pool, FJ_MAX_WORKERS), 5);
    CHECK_EQ(fj_pool_set_parallelism(pool, 1), FJ_MAX_WORKERS);
    CHECK_EQ(fj_pool_set_parallelism(pool, 1), 1);
    fjt_destroy(pool);
}

FJ_TEST(set_parallelism_above_max_threads_is_refused, 20)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.max_threads = 2;
    fj_pool *pool = fjt_pool_with(&o);
    CHECK_EQ(fj_pool_set_parallelism(pool, 3), FJ_EINVAL);
    CHECK_EQ(fj_pool_set_parallelism(pool, FJ_MAX_WORKERS), FJ_EINVAL);
    CHECK_EQ(fj_pool_parallelism(pool), 1);
    CHECK_EQ(fj_pool_set_parallelism(pool, 2), 1);
    CHECK_EQ(fj_pool_set_parallelism(pool, 3), FJ_EINVAL);
    CHECK_EQ(fj_pool_set_parallelism(pool, 1), 2);
    CHECK_EQ(fj_pool_set_parallelism(pool, 2), 1);
    CHECK_EQ(fj_pool_parallelism(pool), 2);
    fjt_destroy(pool);
    o.parallelism = o.max_threads = FJ_MAX_WORKERS;
    pool = fjt_pool_with(&o);
    CHECK_EQ(fj_pool_set_parallelism(pool, FJ_MAX_WORKERS + 1), FJ_EINVAL);
    CHECK_EQ(fj_pool_set_parallelism(pool, 1), FJ_MAX_WORKERS);
    CHECK_EQ(fj_pool_set_parallelism(pool, FJ_MAX_WORKERS), 1);
    fjt_destroy(pool);
}

static atomic_int now_running, most_running;

static int count_action(void *arg)
{
    int n = atomic_fetch_add(&now_running, 1) + 1, most = atomic_load(&most_running);

    (void)arg;
    while (n > most && !atomic_compare_exchange_weak(&most_running, &most, n)) {}
    fjt_sleep_us(500);
    atomic_fetch_sub(&now_running, 1);
    return FJ_OK;
}

FJ_TEST(refused_parallelism_brings_no_worker, 20)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.max_threads = 2;
    fj_pool *pool = fjt_pool_with(&o);
    CHECK_EQ(fj_pool_set_parallelism(pool, 4), FJ_EINVAL);
    for (int i = 0; i < 32; i++) CHECK_EQ(fj_execute(pool, count_action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&most_running), 1);
    CHECK_EQ(fj_pool_set_parallelism(pool, 2), 1);
    for (int i = 0; i < 32; i++) CHECK_EQ(fj_execute(pool, count_action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK(atomic_load(&most_running) <= 2);
    fjt_destroy(pool);
}

FJ_TEST(raised_parallelism_brings_workers_with_the_work, 20)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct crowd c;

    crowd_start(pool, &c, 1);
    crowd_wait(1);
    CHECK_EQ(fj_pool_thread_count(pool), 1);
    crowd_end(&c);
    CHECK_EQ(fj_pool_set_parallelism(pool, 8), 1);
    crowd_start(pool, &c, 8);
    crowd_wait(8);
    CHECK_EQ(fj_pool_thread_count(pool), 8);
    crowd_end(&c);
    fjt_destroy(pool);
}

/* After the parallelism was lowered and the pool was quiescent, at most that number of tasks run at
 * the same time. */
static int count_run(fj_task *t)
{
    (void)t;
    return count_action(NULL);
}

FJ_TEST(lowered_parallelism_puts_workers_to_sleep, 20)
{
    fj_pool *pool = fjt_pool(8, 0);
    struct crowd c;
    fj_task t[64];

    crowd_start(pool, &c, 8);
    crowd_wait(8);
    CHECK_EQ(fj_pool_set_parallelism(pool, 2), 8);
    crowd_end(&c);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    for (int i = 0; i < 64; i++) {
        fj_task_init(&t[i], count_run);
        CHECK_EQ(fj_submit(pool, &t[i]), FJ_OK);
    }
    for (int i = 0; i < 64; i++) CHECK_EQ(fj_join(&t[i]), FJ_OK);
    CHECK(atomic_load(&most_running) <= 2);
    fjt_destroy(pool);
}

static long tree(int n);

struct fib {
    fj_task task;
    int n;
    long result;
};

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;

    f->result = tree(f->n);
    return FJ_OK;
}

static long tree(int n)
{
    struct fib a = {.n = n - 1};

    if (n < 2) return n;
    fj_task_init(&a.task, fib_run);
    fj_fork(&a.task);
    long y = tree(n - 2);
    CHECK_EQ(fj_join(&a.task), FJ_OK);
    return a.result + y;
}

FJ_TEST(parallelism_changes_under_load, 60)
{
    for (unsigned flags = 0; flags < 2; flags++) {
        fj_pool *pool = fjt_pool(4, flags);
        uint64_t random = fjt_seed();
        for (long round = fjt_rounds(10); round-- > 0;) {
            struct fib f[6];
            for (int i = 0; i < 6; i++) {
                f[i] = (struct fib){.n = 18};
                fj_task_init(&f[i].task, fib_run);
                CHECK_EQ(fj_submit(pool, &f[i].task), FJ_OK);
            }
            for (int i = 0; i < 20; i++) {
                CHECK(fj_pool_set_parallelism(pool, (int)(fjt_random(&random) % 8) + 1) >= 1);
                fjt_sleep_us(200);
            }
            for (int i = 0; i < 6; i++) {
                CHECK_EQ(fj_join(&f[i].task), FJ_OK);
                CHECK_EQ(f[i].result, 2584);
            }
        }
        fjt_destroy(pool);
    }
}
