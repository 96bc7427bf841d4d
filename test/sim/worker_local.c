/* SPDX-License-Identifier: MIT */
/*
 * worker_local.c - scenarios of values of workers: first use against growth of the table, against
 * a visit of all values, and against the end
 */
#include <forkjoin/worker_local.h>
#include <pthread.h>

#include "scenario.h"

#define TASKS 4

static fj_local local;
static uint32_t arrived; /* counts the tasks that have their value */
static atomic_int made, dropped;

/* Two words that `make` sets one after the other, so that a visitor may see one of them. */
struct value {
    long first, second;
    long sum;
};

static int value_make(void *at, void *arg)
{
    struct value *v = at;

    (void)arg;
    CHECK(v->first == 0 && v->second == 0 && v->sum == 0);
    v->first = 11;
    v->second = 22;
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    return FJ_OK;
}

static void value_drop(void *at, void *arg)
{
    struct value *v = at;

    (void)arg;
    CHECK(v->first == 11 && v->second == 22);
    v->first = 0;
    atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

static void begin(fj_pool *pool)
{
    fj_local_options o;

    memset(&o, 0, sizeof o);
    o.pool = pool;
    o.bytes = sizeof(struct value);
    o.make = value_make;
    o.drop = value_drop;
    atomic_store(&made, 0);
    atomic_store(&dropped, 0);
    __atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
    CHECK_EQ(fj_local_init(&local, &o), FJ_OK);
}

static void end(void)
{
    CHECK_EQ(fj_local_fini(&local), FJ_OK);
    CHECK_EQ(atomic_load(&dropped), atomic_load(&made));
}

static int value_check(void *at, void *arg)
{
    struct value *v = at;

    CHECK(v->first == 11 && v->second == 22);
    ++*(int *)arg;
    return FJ_OK;
}

static int value_sum(void *at, void *arg)
{
    *(long *)arg += ((struct value *)at)->sum;
    return FJ_OK;
}

/* Each task waits until all tasks have a value, so that every one runs on another thread. The
 * entries of the third and the later threads are in the second array of the table. */
static int meets(fj_task *t)
{
    struct value *v = fj_local_get(&local);

    (void)t;
    CHECK(v != NULL);
    v->sum++;
    scenario_add(&arrived);
    scenario_await(&arrived, TASKS);
    CHECK(fj_local_get(&local) == v);
    CHECK_EQ(v->sum, 1);
    return FJ_OK;
}

static void meet(fj_pool *pool, fj_task *t)
{
    for (int i = 0; i < TASKS; i++) {
        memset(&t[i], 0, sizeof t[i]);
        fj_task_init(&t[i], meets);
        CHECK_EQ(fj_submit(pool, &t[i]), FJ_OK);
    }
}

FJ_TEST(workers_make_their_values_while_the_table_grows, 10)
{
    fj_pool *pool = scenario_pool(TASKS, 0);
    fj_task t[TASKS];
    long sum = 0;

    begin(pool);
    meet(pool, t);
    for (int i = 0; i < TASKS; i++) CHECK_EQ(fj_join(&t[i]), FJ_OK);
    CHECK_EQ(atomic_load(&made), TASKS);
    CHECK_EQ(fj_local_each(&local, value_sum, &sum), FJ_OK);
    CHECK_EQ(sum, TASKS);
    end();
    fjt_destroy(pool);
}

/* Each visit sees whole values, and not fewer than the visit before. */
FJ_TEST(visitor_sees_whole_values_while_workers_make_them, 10)
{
    fj_pool *pool = scenario_pool(TASKS, 0);
    fj_task t[TASKS];
    int before = 0;

    begin(pool);
    meet(pool, t);
    for (int i = 0; i < 4; i++) {
        int seen = 0;
        CHECK_EQ(fj_local_each(&local, value_check, &seen), FJ_OK);
        CHECK(seen >= before && seen <= TASKS);
        before = seen;
        sim_yield();
    }
    for (int i = 0; i < TASKS; i++) CHECK_EQ(fj_join(&t[i]), FJ_OK);
    end();
    fjt_destroy(pool);
}

/* A visitor and a thread that wants to end the values. The end is refused during the visit. */
static int value_slow(void *at, void *arg)
{
    struct value *v = at;

    for (int i = 0; i < 3; i++) {
        CHECK(v->first == 11 && v->second == 22);
        sim_yield();
    }
    ++*(int *)arg;
    return FJ_OK;
}

static void *visits(void *arg)
{
    int seen = 0, code = fj_local_each(&local, value_slow, &seen);

    (void)arg;
    CHECK(code == FJ_OK || code == FJ_EINVAL);
    CHECK_EQ(seen, code == FJ_OK ? atomic_load(&made) : 0);
    return NULL;
}

static int gets(fj_task *t)
{
    (void)t;
    CHECK(fj_local_get(&local) != NULL);
    return FJ_OK;
}

FJ_TEST(end_waits_for_no_visitor_and_takes_nothing_from_it, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_task t;
    pthread_t visitor;
    int code;

    begin(pool);
    memset(&t, 0, sizeof t);
    fj_task_init(&t, gets);
    CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
    CHECK_EQ(pthread_create(&visitor, NULL, visits, NULL), 0);
    while ((code = fj_local_fini(&local)) == FJ_EBUSY) sim_yield();
    CHECK_EQ(code, FJ_OK);
    CHECK_EQ(atomic_load(&dropped), 1);
    pthread_join(visitor, NULL);
    fjt_destroy(pool);
}

/* Two outside threads are guests of the pool, in turn or at the same time. A guest that gets the index
 * of an earlier one finds the value as that one left it. */
static int adds_one(fj_task *t)
{
    struct value *v = fj_local_get(&local);

    (void)t;
    CHECK(v->first == 11 && v->second == 22);
    v->sum++;
    return FJ_OK;
}

static void *is_a_guest(void *pool)
{
    fj_task t;

    for (int i = 0; i < 2; i++) {
        memset(&t, 0, sizeof t);
        fj_task_init(&t, adds_one);
        CHECK_EQ(fj_invoke_mode(pool, &t, FJ_CALLER_HELPS), FJ_OK);
    }
    return NULL;
}

FJ_TEST(guests_share_the_value_of_their_index, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t other;
    long sum = 0;

    begin(pool);
    CHECK_EQ(pthread_create(&other, NULL, is_a_guest, pool), 0);
    (void)is_a_guest(pool);
    pthread_join(other, NULL);
    CHECK_EQ(fj_local_each(&local, value_sum, &sum), FJ_OK);
    CHECK_EQ(sum, 4);
    end();
    fjt_destroy(pool);
}
