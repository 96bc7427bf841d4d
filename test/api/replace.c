/* SPDX-License-Identifier: MIT */
/*
 * replace.c - while a worker is blocked, another worker runs in its place
 */
#include "gate.h"

enum { WORKERS = 4, BLOCKED = 3 };

static struct gate gate;
static atomic_int waiting, met;

static int waits(void *arg)
{
    void (*wait)(struct gate *) = gate_waits[*(int *)arg];

    atomic_fetch_add(&waiting, 1);
    wait(&gate);
    atomic_fetch_sub(&waiting, 1);
    return FJ_OK;
}

/* Returns when WORKERS of these tasks run at the same time. */
static int meets(void *arg)
{
    (void)arg;
    atomic_fetch_add(&met, 1);
    while (atomic_load(&met) < WORKERS) sched_yield();
    return FJ_OK;
}

static void await(const atomic_int *count, int n)
{
    while (atomic_load(count) != n) fjt_sleep_us(100);
}

/* Three of four workers wait in this way, and still four other tasks run at the same time. */
static void full_strength(int how)
{
    fj_pool *elsewhere = fjt_pool(BLOCKED, 0), *p = fjt_pool(WORKERS, 0);

    atomic_store(&waiting, 0);
    atomic_store(&met, 0);
    gate_close(&gate, true, elsewhere);
    for (int i = 0; i < BLOCKED; i++) CHECK_EQ(fj_execute(p, waits, &how), FJ_OK);
    await(&waiting, BLOCKED);
    fjt_sleep_us(20000); /* usually all are asleep by now; if not, the test checks less */
    for (int i = 0; i < WORKERS; i++) CHECK_EQ(fj_execute(p, meets, NULL), FJ_OK);
    await(&met, WORKERS);
    gate_open(&gate, BLOCKED);
    await(&waiting, 0);
    fjt_destroy(p);
    fjt_destroy(elsewhere);
    gate_end(&gate);
}

FJ_TEST(pool_runs_at_full_strength_while_workers_are_blocked, 120)
{
    for (int i = 0; i < GATE_WAITS; i++) full_strength(i);
}

/* The same, but the tasks are queued before the workers block, and nothing is submitted later. */
static fj_pool *pool;
static int way;

static int waits_with_a_task(fj_task *t)
{
    (void)t;
    CHECK_EQ(fj_execute(pool, meets, NULL), FJ_OK);
    return waits(&way);
}

FJ_TEST(tasks_queued_before_a_worker_blocks_are_run, 120)
{
    for (way = 0; way < GATE_WAITS; way++) {
        fj_pool *elsewhere = fjt_pool(WORKERS, 0);
        fj_task task[WORKERS];

        pool = fjt_pool(WORKERS, 0);
        atomic_store(&waiting, 0);
        atomic_store(&met, 0);
        gate_close(&gate, true, elsewhere);
        for (int i = 0; i < WORKERS; i++) {
            fj_task_init(&task[i], waits_with_a_task);
            CHECK_EQ(fj_submit(pool, &task[i]), FJ_OK);
        }
        await(&met, WORKERS);
        gate_open(&gate, WORKERS);
        for (int i = 0; i < WORKERS; i++) CHECK_EQ(fj_join(&task[i]), FJ_OK);
        fjt_destroy(pool);
        fjt_destroy(elsewhere);
        gate_end(&gate);
    }
}

/* ---- Joins ----------------------------------------------------------------------------------- */

static atomic_int a_runs, b_ran;

static int polls_for_b(fj_task *t)
{
    (void)t;
    atomic_store(&a_runs, 1);
    while (!atomic_load(&b_ran)) sched_yield();
    return 3;
}

static int is_b(fj_task *t)
{
    (void)t;
    atomic_store(&b_ran, 1);
    return 4;
}

/* The joiner of a sleeps while b is queued. Because a does not end before b has run, another worker
 * has to run b. */
static int joins_a_before_b(fj_task *t)
{
    fj_task a, b;

    (void)t;
    fj_task_init(&a, polls_for_b);
    fj_task_init(&b, is_b);
    fj_fork(&a);
    while (!atomic_load(&a_runs)) sched_yield();
    fj_fork(&b);
    CHECK_EQ(fj_join(&a), 3);
    return fj_join(&b);
}

FJ_TEST(joiner_that_sleeps_is_replaced, 30)
{
    for (int n = 2; n <= 3; n++) {
        fj_pool *p = fjt_pool(n, 0);
        fj_task t;

        atomic_store(&a_runs, 0);
        atomic_store(&b_ran, 0);
        fj_task_init(&t, joins_a_before_b);
        CHECK_EQ(fj_invoke(p, &t), 4);
        fjt_destroy(p);
    }
}

/* ---- No unnecessary threads ------------------------------------------------------------------ */

static uint64_t started(fj_pool *p)
{
    fj_stats s;

    CHECK_EQ(fj_pool_stats(p, &s), FJ_OK);
    return s.started;
}

FJ_TEST(no_thread_is_started_for_a_blocked_worker_while_nothing_is_queued, 60)
{
    for (int i = 0; i < GATE_WAITS; i++) {
        fj_pool *elsewhere = fjt_pool(1, 0), *p = fjt_pool(1, 0);

        atomic_store(&waiting, 0);
        gate_close(&gate, true, elsewhere);
        CHECK_EQ(fj_execute(p, waits, &i), FJ_OK);
        await(&waiting, 1);
        fjt_sleep_us(5000);
        CHECK_EQ(started(p), 1);
        gate_open(&gate, 1);
        await(&waiting, 0);
        fjt_destroy(p);
        fjt_destroy(elsewhere);
        gate_end(&gate);
    }
}

/* The first round starts a second worker. Later rounds find this worker idle and wake it. */
FJ_TEST(no_thread_is_started_for_a_blocked_worker_while_one_is_idle, 60)
{
    fj_pool *p = fjt_pool(1, 0);
    int how = 3;

    for (int i = 0; i < 20; i++) {
        atomic_store(&waiting, 0);
        atomic_store(&met, WORKERS - 1);
        gate_close(&gate, false, NULL);
        CHECK_EQ(fj_execute(p, waits, &how), FJ_OK);
        await(&waiting, 1);
        CHECK_EQ(fj_execute(p, meets, NULL), FJ_OK);
        await(&met, WORKERS);
        gate_open(&gate, 1);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        gate_end(&gate);
        CHECK(started(p) <= 2);
    }
    fjt_destroy(p);
}
