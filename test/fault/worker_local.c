/* SPDX-License-Identifier: MIT */
/*
 * worker_local.c - values of workers while memory and threads are refused, one request after the
 * other
 */
#include <forkjoin/block.h>
#include <forkjoin/worker_local.h>
#include <semaphore.h>

#include "sweep.h"

#define TASKS 6

static atomic_int made, dropped;

static int value_make(void *value, void *arg)
{
    (void)arg;
    CHECK_EQ(*(long *)value, 0);
    atomic_fetch_add(&made, 1);
    return FJ_OK;
}

static void value_drop(void *value, void *arg)
{
    (void)value, (void)arg;
    atomic_fetch_add(&dropped, 1);
}

struct part {
    fj_task task;
    fj_local *local;
    fj_pool *pool;
    atomic_int *sum;
};

/* A refused value is tried again; a task that an outside thread runs has none. */
static int part_run(fj_task *t)
{
    struct part *p = (struct part *)t;
    long *v = fj_local_get(p->local);

    CHECK(v != NULL || no_memory() || fj_current_pool() != p->pool);
    (void)fj_sleep_ns(100000); /* so that spare threads start */
    if (v == NULL) v = fj_local_get(p->local);
    CHECK(v == NULL || fj_local_get(p->local) == v);
    if (v != NULL) {
        ++*v;
        atomic_fetch_add(p->sum, 1);
    }
    return FJ_OK;
}

static int value_add(void *value, void *into)
{
    *(long *)into += *(long *)value;
    return FJ_OK;
}

static void run(int round)
{
    fj_pool_options po = {.parallelism = 2};
    fj_local_options o = {.bytes = sizeof(long), .make = value_make, .drop = value_drop};
    struct part part[TASKS];
    atomic_int sum = 0;
    long folded = 0;
    fj_pool *pool;
    fj_local l;
    int err;

    (void)round;
    atomic_store(&made, 0);
    atomic_store(&dropped, 0);
    CHECK_MAY(err = fj_pool_create(&pool, &po));
    if (err != FJ_OK) return;
    o.pool = pool;
    CHECK_EQ(fj_local_init(&l, &o), FJ_OK);
    for (int i = 0; i < TASKS; i++) {
        part[i] = (struct part){.local = &l, .pool = pool, .sum = &sum};
        fj_task_init(&part[i].task, part_run);
        CHECK_MAY(err = fj_submit(pool, &part[i].task));
        if (err != FJ_OK) part[i].local = NULL;
    }
    for (int i = 0; i < TASKS; i++)
        if (part[i].local != NULL) CHECK_EQ(fj_join(&part[i].task), FJ_OK);
    CHECK_EQ(fj_local_each(&l, value_add, &folded), FJ_OK);
    CHECK_EQ(folded, atomic_load(&sum));
    CHECK_EQ(fj_local_fini(&l), FJ_OK);
    CHECK_EQ(atomic_load(&dropped), atomic_load(&made));
    CHECK_EQ(fj_pool_destroy(pool), FJ_OK);
}

FJ_TEST(every_value_is_made_or_refused_and_dropped_once, 60)
{
    sweep("worker_local", run);
}
