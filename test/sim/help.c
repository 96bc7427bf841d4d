/* SPDX-License-Identifier: MIT */
/*
 * help.c - scenarios of workers that help while they wait, and of the tasks that they must not run
 */
#include "scenario.h"

/* ---- A waiter helps no task that began before the one it waits for --------------------------- */

/*
 *   v   forks X and F, and joins X, which u has stolen. It helps with T, which X has forked. T
 *       waits for F, so v takes F back and runs it.
 *   w   waits for F. The worker v runs F and joins X at the same time, but F has begun later. So
 *       the task G, which X has forked, does not belong to F, and w must not run it.
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
    scenario_until(&cross->w_waits);
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
    scenario_until(&cross->f_over);
    CHECK_EQ(fj_join(&cross->g), FJ_OK);
    CHECK_EQ(fj_join(&cross->t), FJ_OK);
    return FJ_OK;
}

static int w_run(void *arg)
{
    (void)arg;
    atomic_store_explicit(&cross->w_runs, 1, memory_order_release);
    scenario_until(&cross->f_runs);
    waits_for_f = true;
    atomic_store_explicit(&cross->w_waits, 1, memory_order_release);
    CHECK_EQ(fj_future_wait(&cross->f, FJ_FOREVER), FJ_OK);
    waits_for_f = false;
    return FJ_OK;
}

static void v_runs(void *arg)
{
    (void)arg;
    scenario_until(&cross->w_runs);
    fj_task_init(&cross->x, x_run);
    fj_future_init(&cross->f, f_run);
    fj_fork(&cross->x);
    CHECK_EQ(fj_future_fork(&cross->f), FJ_OK);
    scenario_until(&cross->forked);
    CHECK_EQ(fj_join(&cross->x), FJ_OK);
}

FJ_TEST(waiter_helps_nothing_that_began_before_what_it_waits_for, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    cross = malloc(sizeof *cross);
    memset(cross, 0, sizeof *cross);
    CHECK_EQ(fj_execute(pool, w_run, NULL), FJ_OK);
    scenario_inside(pool, v_runs, NULL);
    fjt_destroy(pool);
    free(cross);
}

/* ---- A joiner does not follow the join in which the thief took the task ---------------------- */

/*
 *   v   forks X and joins it. While it waits it helps: it steals T from u.
 *   r   steals X, forks Y and joins Y. While it waits it helps: it steals H from u, and H forks G.
 *   u   steals Y, forks H and T, and joins T, which v runs. The worker v still joins X, whose cell
 *       is directly below what T would fork. G does not belong to T, so u must not run it.
 */
struct beside {
    fj_task x, y, h, t, g;
    atomic_int y_runs, h_runs, t_runs, t_awaited, t_over;
};

static struct beside *beside;
static _Thread_local bool joins_t;

static int beside_g(fj_task *t)
{
    (void)t;
    CHECK(!joins_t);
    return FJ_OK;
}

static int beside_h(fj_task *t)
{
    (void)t;
    fj_task_init(&beside->g, beside_g);
    fj_fork(&beside->g);
    atomic_store_explicit(&beside->h_runs, 1, memory_order_release);
    scenario_until(&beside->t_over);
    return fj_join(&beside->g);
}

static int beside_t(fj_task *t)
{
    (void)t;
    atomic_store_explicit(&beside->t_runs, 1, memory_order_release);
    scenario_until(&beside->t_awaited);
    for (int i = 0; i < 20; i++) sim_yield();
    atomic_store_explicit(&beside->t_over, 1, memory_order_release);
    return FJ_OK;
}

static int beside_y(fj_task *t)
{
    (void)t;
    fj_task_init(&beside->h, beside_h);
    fj_task_init(&beside->t, beside_t);
    fj_fork(&beside->h);
    fj_fork(&beside->t);
    atomic_store_explicit(&beside->y_runs, 1, memory_order_release);
    scenario_until(&beside->h_runs);
    scenario_until(&beside->t_runs);
    joins_t = true;
    atomic_store_explicit(&beside->t_awaited, 1, memory_order_release);
    CHECK_EQ(fj_join(&beside->t), FJ_OK);
    joins_t = false;
    return fj_join(&beside->h);
}

static int beside_x(fj_task *t)
{
    (void)t;
    fj_task_init(&beside->y, beside_y);
    fj_fork(&beside->y);
    scenario_until(&beside->y_runs);
    return fj_join(&beside->y);
}

static void beside_v(void *arg)
{
    (void)arg;
    fj_task_init(&beside->x, beside_x);
    fj_fork(&beside->x);
    scenario_until(&beside->y_runs);
    CHECK_EQ(fj_join(&beside->x), FJ_OK);
}

FJ_TEST(joiner_does_not_follow_the_join_of_its_helper, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    beside = malloc(sizeof *beside);
    memset(beside, 0, sizeof *beside);
    scenario_inside(pool, beside_v, NULL);
    fjt_destroy(pool);
    free(beside);
}

/* ---- A waiter runs no action ----------------------------------------------------------------- */

/*
 * Another worker than the joiner runs the task X. Either X queues an action itself, or its child Y
 * does. If the joiner helps, it runs Y, and then the action is in the joiner's own queue. An action
 * may wait for anything, so the joiner must not run it.
 */
struct act {
    fj_task x, y;
    fj_pool *pool;
    atomic_int forked, y_ran, acted;
    bool child;
};

static struct act *act;
static _Thread_local bool joins_x;

static int act_run(void *arg)
{
    (void)arg;
    CHECK(!joins_x);
    atomic_fetch_add(&act->acted, 1);
    return FJ_OK;
}

static int act_y(fj_task *t)
{
    (void)t;
    CHECK_EQ(fj_execute(act->pool, act_run, NULL), FJ_OK);
    atomic_store_explicit(&act->y_ran, 1, memory_order_release);
    return FJ_OK;
}

static int act_x(fj_task *t)
{
    (void)t;
    if (act->child) {
        fj_task_init(&act->y, act_y);
        fj_fork(&act->y);
    } else {
        CHECK_EQ(fj_execute(act->pool, act_run, NULL), FJ_OK);
    }
    atomic_store_explicit(&act->forked, 1, memory_order_release);
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    if (act->child) {
        scenario_until(&act->y_ran);
        for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
        CHECK_EQ(fj_join(&act->y), FJ_OK);
    }
    return FJ_OK;
}

static void act_joins(void *arg)
{
    (void)arg;
    fj_task_init(&act->x, act_x);
    fj_fork(&act->x);
    scenario_until(&act->forked);
    joins_x = true;
    CHECK_EQ(fj_join(&act->x), FJ_OK);
    joins_x = false;
}

FJ_TEST(waiter_leaves_actions_to_others, 10)
{
    act = malloc(sizeof *act);
    memset(act, 0, sizeof *act);
    act->pool = scenario_pool(2, 0);
    act->child = sim_random() % 2 == 0;
    scenario_inside(act->pool, act_joins, NULL);
    fjt_destroy(act->pool);
    CHECK_EQ(atomic_load(&act->acted), 1);
    free(act);
}

/* ---- A waiter does not sleep while only it can run a task ------------------------------------ */

/*
 * The pool has two workers and can have no more. One runs X, which forks Y, and only the joiner of
 * X can run Y. Y submits Z, which is then in the joiner's own queue, and X waits for Z.
 */
struct left {
    fj_task x, y, z;
    fj_pool *pool;
    atomic_int forked, y_ran;
};

static struct left *left;

static int left_z(fj_task *t)
{
    (void)t;
    return 3;
}

static int left_y(fj_task *t)
{
    (void)t;
    fj_task_init(&left->z, left_z);
    CHECK_EQ(fj_submit(left->pool, &left->z), FJ_OK);
    atomic_store_explicit(&left->y_ran, 1, memory_order_release);
    return 2;
}

static int left_x(fj_task *t)
{
    (void)t;
    fj_task_init(&left->y, left_y);
    fj_fork(&left->y);
    atomic_store_explicit(&left->forked, 1, memory_order_release);
    scenario_until(&left->y_ran);
    CHECK_EQ(fj_join(&left->y), 2);
    CHECK_EQ(fj_join(&left->z), 3);
    return 1;
}

static void left_joins(void *arg)
{
    (void)arg;
    fj_task_init(&left->x, left_x);
    fj_fork(&left->x);
    scenario_until(&left->forked);
    CHECK_EQ(fj_join(&left->x), 1);
}

FJ_TEST(waiter_runs_what_only_it_can_run, 10)
{
    fj_pool_options o = {0};

    left = malloc(sizeof *left);
    memset(left, 0, sizeof *left);
    o.parallelism = o.max_threads = 2;
    o.spin_ns = -1;
    left->pool = fjt_pool_with(&o);
    scenario_inside(left->pool, left_joins, NULL);
    fjt_destroy(left->pool);
    free(left);
}

/* ---- A waiter runs no task that it has queued before the wait -------------------------------- */

static fj_future elsewhere;
static fj_task queued_before;
static atomic_int elsewhere_runs;
static _Thread_local bool waits_elsewhere;

static int elsewhere_run(fj_task *t)
{
    (void)t;
    atomic_store_explicit(&elsewhere_runs, 1, memory_order_release);
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    return FJ_OK;
}

static int queued_run(fj_task *t)
{
    (void)t;
    CHECK(!waits_elsewhere);
    return 5;
}

static void waits_for_another_worker(void *arg)
{
    fj_task_init(&queued_before, queued_run);
    scenario_until(&elsewhere_runs);
    CHECK_EQ(fj_submit(arg, &queued_before), FJ_OK);
    waits_elsewhere = true;
    CHECK_EQ(fj_future_wait(&elsewhere, FJ_FOREVER), FJ_OK);
    waits_elsewhere = false;
    CHECK_EQ(fj_join(&queued_before), 5);
}

FJ_TEST(waiter_runs_nothing_that_it_queued_before, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&elsewhere_runs, 0);
    fj_future_init(&elsewhere, elsewhere_run);
    CHECK_EQ(fj_future_submit(pool, &elsewhere), FJ_OK);
    scenario_inside(pool, waits_for_another_worker, pool);
    fjt_destroy(pool);
}

/* ---- Two bodies that fj_future_run() has begun ----------------------------------------------- */

static fj_future *awaited, *unrelated;
static atomic_int begun, ended, waiter;

/* A child of the unrelated body. The worker that waits for the other future must not run it. */
static int unrelated_child(fj_task *t)
{
    (void)t;
    CHECK(atomic_load(&waiter) != fj_current_worker());
    return FJ_OK;
}

static int awaited_body(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 60; i++) sim_yield();
    return FJ_OK;
}

static int unrelated_body(fj_task *t)
{
    fj_task child;

    (void)t;
    memset(&child, 0, sizeof child);
    fj_task_init(&child, unrelated_child);
    fj_fork(&child);
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 60; i++) sim_yield();
    return fj_join(&child);
}

static int runs_a_future(void *f)
{
    CHECK_EQ(fj_future_run(f), FJ_OK);
    atomic_fetch_add(&ended, 1);
    return FJ_OK;
}

static int waits_for_the_awaited(void *arg)
{
    (void)arg;
    while (atomic_load(&begun) < 2) sim_yield();
    atomic_store(&waiter, fj_current_worker());
    CHECK_EQ(fj_future_wait(awaited, FJ_FOREVER), FJ_OK);
    atomic_store(&waiter, -1);
    atomic_fetch_add(&ended, 1);
    return FJ_OK;
}

FJ_TEST(waiter_helps_the_body_that_it_waits_for_and_no_other, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    atomic_store(&waiter, -1);
    awaited = malloc(sizeof *awaited);
    unrelated = malloc(sizeof *unrelated);
    fj_future_init(awaited, awaited_body);
    fj_future_init(unrelated, unrelated_body);
    CHECK_EQ(fj_execute(pool, runs_a_future, unrelated), FJ_OK);
    CHECK_EQ(fj_execute(pool, runs_a_future, awaited), FJ_OK);
    CHECK_EQ(fj_execute(pool, waits_for_the_awaited, NULL), FJ_OK);
    while (atomic_load(&ended) < 3) sim_sleep_until(sim_now() + 100000);
    fjt_destroy(pool);
    free(awaited);
    free(unrelated);
}

/* ---- A waiter takes nothing below a stolen task ---------------------------------------------- */

/*
 *   r   runs the future, whose body forks two tasks.
 *   a   forks U, then waits for the future and helps with one of the two tasks.
 *   w   waits for the future. If it finds a before r, it may take what the stolen task forks there,
 *       but not U, which lies below.
 */
static int below_u(fj_task *t)
{
    (void)t;
    CHECK(atomic_load(&waiter) != fj_current_worker());
    return FJ_OK;
}

static int below_child(fj_task *t)
{
    (void)t;
    for (int i = 0; i < 20; i++) sim_yield();
    return FJ_OK;
}

static int below_body(fj_task *t)
{
    fj_task child[2];

    (void)t;
    memset(child, 0, sizeof child);
    for (int i = 0; i < 2; i++) fj_task_init(&child[i], below_child);
    for (int i = 0; i < 2; i++) fj_fork(&child[i]);
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 40; i++) sim_yield();
    CHECK_EQ(fj_join(&child[1]), FJ_OK);
    return fj_join(&child[0]);
}

static int below_helps(void *arg)
{
    fj_task u;

    (void)arg;
    while (atomic_load(&begun) < 1) sim_yield();
    memset(&u, 0, sizeof u);
    fj_task_init(&u, below_u);
    fj_fork(&u);
    CHECK_EQ(fj_future_wait(awaited, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_join(&u), FJ_OK);
    atomic_fetch_add(&ended, 1);
    return FJ_OK;
}

static int below_waits(void *arg)
{
    (void)arg;
    while (atomic_load(&begun) < 1) sim_yield();
    atomic_store(&waiter, fj_current_worker());
    CHECK_EQ(fj_future_wait(awaited, FJ_FOREVER), FJ_OK);
    atomic_store(&waiter, -1);
    atomic_fetch_add(&ended, 1);
    return FJ_OK;
}

FJ_TEST(waiter_takes_nothing_below_a_stolen_task, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    atomic_store(&waiter, -1);
    awaited = malloc(sizeof *awaited);
    fj_future_init(awaited, below_body);
    CHECK_EQ(fj_execute(pool, below_helps, NULL), FJ_OK);
    CHECK_EQ(fj_execute(pool, runs_a_future, awaited), FJ_OK);
    CHECK_EQ(fj_execute(pool, below_waits, NULL), FJ_OK);
    while (atomic_load(&ended) < 3) sim_sleep_until(sim_now() + 100000);
    fjt_destroy(pool);
    free(awaited);
}

/* ---- A joiner follows no thief after the joined task has ended ------------------------------- */

/*
 *   j   forks X and joins it.
 *   v   takes X and runs it. Then it forks Z, at the same position of its queue, and joins Z.
 *   u   takes Z, which forks two tasks. The joiner v helps with the first of them, which does not
 *       end before the join of X has returned.
 * The joiner j may see that v runs X, then be stopped for a while, and then see that v joins Z and
 * that the second task of Z is in the queue of u. But X is done by then, and this task does not
 * belong to X.
 */
static fj_task chain_x, chain_z, chain_of_z[2];
static uint32_t chain_workers, x_forked, x_begun, x_joined, z_forked, z_begun;
static _Thread_local bool joins_chain_x;

static int chain_x_run(fj_task *t)
{
    (void)t;
    scenario_add(&x_begun);
    sim_sleep_until(sim_now() + (int64_t)(sim_random() % 300));
    return FJ_OK;
}

static int chain_of_z_run(fj_task *t)
{
    (void)t;
    CHECK(!joins_chain_x);
    scenario_await(&x_joined, 1);
    return FJ_OK;
}

static int chain_z_run(fj_task *t)
{
    (void)t;
    CHECK(!joins_chain_x);
    for (int i = 0; i < 2; i++) {
        fj_task_init(&chain_of_z[i], chain_of_z_run);
        fj_fork(&chain_of_z[i]);
    }
    scenario_add(&z_begun);
    scenario_await(&x_joined, 1);
    for (int i = 2; i-- > 0;) CHECK_EQ(fj_join(&chain_of_z[i]), FJ_OK);
    return FJ_OK;
}

static void chain_takes_one(uint32_t *forked)
{
    fj_taken taken;

    scenario_await(forked, 1);
    if (fj_take_task(&taken)) fj_taken_run(&taken);
}

static int chain_worker(void *which)
{
    scenario_add(&chain_workers);
    scenario_await(&chain_workers, 3);
    switch ((intptr_t)which) {
        case 0: /* j */
            fj_task_init(&chain_x, chain_x_run);
            fj_fork(&chain_x);
            scenario_add(&x_forked);
            scenario_await(&x_begun, 1);
            joins_chain_x = true;
            CHECK_EQ(fj_join(&chain_x), FJ_OK);
            joins_chain_x = false;
            scenario_add(&x_joined);
            return FJ_OK;
        case 1: /* v */
            chain_takes_one(&x_forked);
            fj_task_init(&chain_z, chain_z_run);
            fj_fork(&chain_z);
            scenario_add(&z_forked);
            scenario_await(&z_begun, 1);
            return fj_join(&chain_z);
        default: /* u */ chain_takes_one(&z_forked); return FJ_OK;
    }
}

FJ_TEST(waiter_follows_no_thief_after_its_task_has_ended, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    for (intptr_t i = 0; i < 3; i++) CHECK_EQ(fj_execute(pool, chain_worker, (void *)i), FJ_OK);
    fjt_destroy(pool);
}
