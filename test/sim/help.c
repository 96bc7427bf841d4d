/* SPDX-License-Identifier: MIT */
/*
 * help.c - scenes of helping across several waits
 */
#include "scene.h"

/* ---- A waiter helps no task that began below the one it waits for ---------------------------------- */

/*
 *   v   forks X and F, joins X, which u has stolen; helps with T, which X has forked; T waits for
 *       F, so v takes F back and runs it.
 *   w   waits for F. The worker v runs F and joins X at the same time, but F has begun later: what
 *       X has forked (G) does not belong to F.
 */
struct cross {
    fj_task x, t, g;
    fj_future f;
    atomic_int w_runs, forked, f_runs, w_waits, f_over;
};

static struct cross *cross;
static _Thread_local bool waits_for_f;

static int g_run(fj_task *t)
{
    (void)t;
    CHECK(!waits_for_f);
    return FJ_OK;
}

static int t_run(fj_task *t)
{
    (void)t;
    CHECK(!waits_for_f);
    CHECK_EQ(fj_future_wait(&cross->f, FJ_FOREVER), FJ_OK);
    return FJ_OK;
}

static int f_run(fj_task *t)
{
    (void)t;
    atomic_store_explicit(&cross->f_runs, 1, memory_order_release);
    scene_until(&cross->w_waits);
    for (int i = 0; i < 12; i++) sim_yield();
    atomic_store_explicit(&cross->f_over, 1, memory_order_release);
    return FJ_OK;
}

static int x_run(fj_task *t)
{
    (void)t;
    fj_task_init(&cross->t, t_run);
    fj_task_init(&cross->g, g_run);
    fj_fork(&cross->t);
    fj_fork(&cross->g);
    atomic_store_explicit(&cross->forked, 1, memory_order_release);
    scene_until(&cross->f_over);
    CHECK_EQ(fj_join(&cross->g), FJ_OK);
    CHECK_EQ(fj_join(&cross->t), FJ_OK);
    return FJ_OK;
}

static int w_run(void *arg)
{
    (void)arg;
    atomic_store_explicit(&cross->w_runs, 1, memory_order_release);
    scene_until(&cross->f_runs);
    waits_for_f = true;
    atomic_store_explicit(&cross->w_waits, 1, memory_order_release);
    CHECK_EQ(fj_future_wait(&cross->f, FJ_FOREVER), FJ_OK);
    waits_for_f = false;
    return FJ_OK;
}

static void v_runs(void *arg)
{
    (void)arg;
    scene_until(&cross->w_runs);
    fj_task_init(&cross->x, x_run);
    fj_future_init(&cross->f, f_run);
    fj_fork(&cross->x);
    CHECK_EQ(fj_future_fork(&cross->f), FJ_OK);
    scene_until(&cross->forked);
    CHECK_EQ(fj_join(&cross->x), FJ_OK);
}

FJ_TEST(waiter_helps_nothing_that_began_before_what_it_waits_for, 10)
{
    fj_pool *pool = scene_pool(3, 0);

    cross = malloc(sizeof *cross);
    memset(cross, 0, sizeof *cross);
    CHECK_EQ(fj_execute(pool, w_run, NULL), FJ_OK);
    scene_inside(pool, v_runs, NULL);
    fjt_destroy(pool);
    free(cross);
}
