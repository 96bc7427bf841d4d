/* SPDX-License-Identifier: MIT */
/*
 * helping.c - which tasks a worker may run while it waits, if several waits are nested
 */
#include "inside.h"

/*
 * There are three workers, u, v and w.
 *
 *   v   forks X and F and joins X, which u has stolen. While v waits, it helps with T (`helped`),
 *       which X has forked. T waits for F, so v takes F back from its queue and runs it.
 *   w   waits for F. At this time v both runs F and joins X. But F began after the join of X, so G,
 *       which X has forked, does not belong to F, and w must not run G.
 */
static fj_task x, helped, g;
static fj_future f;
static atomic_int w_runs, forked, f_runs, w_waits, f_over;
static _Thread_local int waits_for_f;

static int g_run(fj_task *task)
{
    (void)task;
    CHECK_EQ(waits_for_f, 0);
    return FJ_OK;
}

static int helped_run(fj_task *task)
{
    (void)task;
    CHECK_EQ(waits_for_f, 0);
    CHECK_EQ(fj_future_wait(&f, FJ_FOREVER), FJ_OK);
    return FJ_OK;
}

static int f_run(fj_task *task)
{
    (void)task;
    atomic_store(&f_runs, 1);
    until(&w_waits);
    fjt_sleep_us(300); /* w searches for a task, then sleeps */
    atomic_store(&f_over, 1);
    return FJ_OK;
}

static int x_run(fj_task *task)
{
    (void)task;
    fj_task_init(&helped, helped_run);
    fj_task_init(&g, g_run);
    fj_fork(&helped);
    fj_fork(&g);
    atomic_store(&forked, 1);
    until(&f_over);
    CHECK_EQ(fj_join(&g), FJ_OK);
    CHECK_EQ(fj_join(&helped), FJ_OK);
    return FJ_OK;
}

static int w_run(void *arg)
{
    (void)arg;
    atomic_store(&w_runs, 1);
    until(&f_runs);
    waits_for_f = 1;
    atomic_store(&w_waits, 1);
    CHECK_EQ(fj_future_wait(&f, FJ_FOREVER), FJ_OK);
    waits_for_f = 0;
    return FJ_OK;
}

static void v_runs(void *arg)
{
    (void)arg;
    until(&w_runs);
    fj_task_init(&x, x_run);
    fj_future_init(&f, f_run);
    fj_fork(&x);
    CHECK_EQ(fj_future_fork(&f), FJ_OK);
    until(&forked);
    CHECK_EQ(fj_join(&x), FJ_OK);
}

FJ_TEST(waiter_helps_nothing_that_began_before_what_it_waits_for, 20)
{
    fj_pool *pool = fjt_pool(3, 0);

    for (long round = fjt_rounds(200); round > 0; round--) {
        atomic_int *flags[] = {&w_runs, &forked, &f_runs, &w_waits, &f_over};
        for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) atomic_store(flags[i], 0);
        CHECK_EQ(fj_execute(pool, w_run, NULL), FJ_OK);
        inside(pool, v_runs, NULL);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    }
    fjt_destroy(pool);
}
