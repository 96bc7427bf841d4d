/* SPDX-License-Identifier: MIT */
/*
 * quiesce.c - scenarios of threads that ask whether a pool is quiescent, or wait until it is
 */
#include <pthread.h>

#include "scenario.h"

static atomic_int runs;

static int action(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static int spawns_two(void *arg)
{
    fj_pool *pool = arg;

    CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(quiescence_is_not_told_too_early, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    for (int i = 1; i <= 2; i++) {
        atomic_store(&runs, 0);
        CHECK_EQ(fj_execute(pool, spawns_two, pool), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&runs), 3);
    }
    fjt_destroy(pool);
}

static int pass_by(void *arg)
{
    (void)arg;
    sim_yield();
    return FJ_OK;
}

/* A quiescent pool stays quiescent until it is given work: no worker wakes without a reason. */
FJ_TEST(quiescent_pool_stays_so, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.flags = FJ_POOL_CALLER_HELPS;
    o.spin_ns = -1;
    o.keep_alive_ns = FJ_FOREVER;
    fj_pool *pool = fjt_pool_with(&o);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++) CHECK_EQ(fj_execute(pool, pass_by, NULL), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
        for (int k = 0; k < 20; k++) {
            CHECK(fj_pool_is_quiescent(pool));
            sim_yield();
        }
    }
    fjt_destroy(pool);
}

/* The task itself finds the pool quiescent. From then on no worker may wake, although the thread
 * outside that joins the task begins to wait at any moment. That thread may wake a worker only
 * while it submits. */
struct alone {
    fj_task task;
    fj_pool *pool;
    atomic_int submitted;
};

static int alone_run(fj_task *t)
{
    struct alone *a = (struct alone *)t;

    scenario_until(&a->submitted);
    CHECK_EQ(fj_execute(a->pool, pass_by, NULL), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(a->pool, FJ_FOREVER), FJ_OK);
    for (int k = 0; k < 10; k++) CHECK_EQ(fj_pool_await_quiescence(a->pool, 0), FJ_OK);
    return FJ_OK;
}

FJ_TEST(joiner_outside_wakes_no_worker_of_a_quiescent_pool, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.spin_ns = -1;
    o.keep_alive_ns = FJ_FOREVER;
    struct alone a = {.pool = fjt_pool_with(&o)};
    fj_task_init(&a.task, alone_run);
    for (int i = 0; i < 3; i++) {
        atomic_store(&a.submitted, 0);
        CHECK_EQ(fj_submit(a.pool, &a.task), FJ_OK);
        atomic_store(&a.submitted, 1);
        CHECK_EQ(fj_join(&a.task), FJ_OK);
    }
    fjt_destroy(a.pool);
}

/* An action is submitted while the only worker goes to sleep. The submitter takes the worker off
 * the idle stack and then sets its park word. A check may read the park word between these
 * steps, and the queue after the worker has taken the action. It must not find the pool
 * quiescent. */
static int slow_action(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) sim_yield();
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(worker_about_to_be_active_is_not_quiet, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    atomic_store(&runs, 0);
    for (int i = 1; i <= 2; i++) {
        CHECK_EQ(fj_execute(pool, slow_action, NULL), FJ_OK);
        for (uint32_t n = sim_random() % 20; n > 0; n--) sim_yield();
        CHECK_EQ(fj_execute(pool, slow_action, NULL), FJ_OK);
        while (!fj_pool_is_quiescent(pool)) sim_yield();
        CHECK_EQ(atomic_load(&runs), 2 * i);
    }
    fjt_destroy(pool);
}

/* Two workers pass a task to each other, and the worker without the task is idle. A check that
 * reads one worker after the other may find each of them idle. A worker keeps the task for about
 * as long as such a check takes. */
enum { PASSES = 10 };

static uint32_t passed;

static int pass_on(void *arg)
{
    uint32_t now = scenario_add(&passed);

    if (now == PASSES) return FJ_OK;
    sim_sleep_until(sim_now() + 900 + 10 * (int64_t)(sim_random() % 40));
    CHECK_EQ(fj_execute(arg, pass_on, arg), FJ_OK);
    scenario_await(&passed, now + 1);
    return FJ_OK;
}

FJ_TEST(pool_whose_workers_take_turns_is_not_quiet, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.flags = FJ_POOL_FIFO; /* FIFO queues are always open, so no thief has to open one first */
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    CHECK_EQ(fj_execute(pool, pass_on, pool), FJ_OK);
    while (!fj_pool_is_quiescent(pool)) sim_yield();
    CHECK_EQ(__atomic_load_n(&passed, __ATOMIC_ACQUIRE), PASSES);
    fjt_destroy(pool);
}

static void helps_until_quiet(void *arg)
{
    fj_pool *pool = arg;

    CHECK_EQ(fj_execute(pool, spawns_two, pool), FJ_OK);
    fj_help_quiesce();
    CHECK_EQ(atomic_load(&runs), 3);
}

FJ_TEST(helping_until_quiet_runs_everything, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    atomic_store(&runs, 0);
    scenario_inside(pool, helps_until_quiet, pool);
    fjt_destroy(pool);
}

/* Two workers go idle at the same time. One of them may be woken while it waits for the heavy
 * fence of the other, and then waits until the pool is quiescent. */
static uint32_t come;

static int come_together(void *arg)
{
    (void)arg;
    scenario_add(&come);
    scenario_await(&come, 2);
    return FJ_OK;
}

static int wait_for_quiet(void *arg)
{
    (void)arg;
    fj_help_quiesce();
    return FJ_OK;
}

FJ_TEST(worker_woken_early_is_quiet_when_it_waits, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.spin_ns = 1; /* workers wait for each other's heavy fences, and spin for 1 ns only */
    fj_pool *pool = fjt_pool_with(&o);
    for (int i = 0; i < 3; i++) {
        __atomic_store_n(&come, 0, __ATOMIC_RELEASE);
        for (int k = 0; k < 2; k++) CHECK_EQ(fj_execute(pool, come_together, NULL), FJ_OK);
        scenario_await(&come, 2);
        for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
        CHECK_EQ(fj_execute(pool, wait_for_quiet, NULL), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    }
    fjt_destroy(pool);
}

/* ---- Submissions that are moved -------------------------------------------------------------- */

/* A lazy submission wakes no worker, so it stays queued. The next submission moves it to the
 * front of the queue. The pool must not look quiescent meanwhile. */
static void *looks_whether_it_is_quiet(void *arg)
{
    for (int i = 0; i < 4; i++) CHECK(!fj_pool_is_quiescent(arg));
    return NULL;
}

FJ_TEST(pool_is_not_quiet_while_a_submission_is_moved, 10)
{
    fj_pool_options o = {0};
    struct scenario_leaf *l[5];
    pthread_t t;

    o.parallelism = 1;
    o.spin_ns = -1;
    o.keep_alive_ns = FJ_FOREVER;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&runs, 0);
    for (int i = 0; i < 5; i++) l[i] = scenario_leaf(&runs, i);
    /* The queue grows to four slots, and three of them are used up. */
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_submit_lazy(pool, &l[i]->task), FJ_OK);
    CHECK_EQ(fj_submit(pool, &l[2]->task), FJ_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_join(&l[i]->task), i);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_submit_lazy(pool, &l[3]->task), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, looks_whether_it_is_quiet, pool), 0);
    CHECK_EQ(fj_submit_lazy(pool, &l[4]->task), FJ_OK);
    pthread_join(t, NULL);
    for (int i = 3; i < 5; i++) CHECK_EQ(fj_join(&l[i]->task), i);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 5);
    for (int i = 0; i < 5; i++) free(l[i]);
}

/* Two guests take turns, so that one of them is always in the pool. A check that reads one
 * record after the other may find each of them free. */
enum { VISITS = 8 };

static uint32_t visits;

static int visit_until_the_next(fj_task *t)
{
    uint32_t now = scenario_add(&visits);

    (void)t;
    if (now < VISITS) scenario_await(&visits, now + 1);
    return FJ_OK;
}

static void *visits_by_turns(void *pool)
{
    for (int i = 0; i < VISITS / 2; i++) {
        fj_task t;
        memset(&t, 0, sizeof t);
        fj_task_init(&t, visit_until_the_next);
        CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
    }
    return NULL;
}

FJ_TEST(pool_whose_guests_take_turns_is_not_quiet, 10)
{
    fj_pool *pool = scenario_pool(1, FJ_POOL_CALLER_HELPS);
    pthread_t t[2];

    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, visits_by_turns, pool), 0);
    scenario_await(&visits, 1);
    while (!fj_pool_is_quiescent(pool)) sim_yield();
    CHECK_EQ(__atomic_load_n(&visits, __ATOMIC_ACQUIRE), VISITS);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    fjt_destroy(pool);
}

/* A worker waits until the pool is quiescent and then continues with its task. The pool must not
 * end before that. */
static int goes_on_after_quiet(void *pool)
{
    fj_help_quiesce();
    CHECK(!fj_is_stopping());
    CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    return action(NULL);
}

FJ_TEST(worker_that_waits_for_quiet_keeps_its_pool, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    CHECK_EQ(fj_execute(pool, goes_on_after_quiet, pool), FJ_OK);
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 2);
}

FJ_TEST(only_worker_runs_its_own_tasks_until_quiet, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    atomic_store(&runs, 0);
    scenario_inside(pool, helps_until_quiet, pool);
    fjt_destroy(pool);
}

/* A worker in fj_help_quiesce() that runs a task is not quiet, even if the other worker is. */
static int helps_beside(void *pool)
{
    CHECK_EQ(fj_execute(pool, slow_action, NULL), FJ_OK);
    CHECK_EQ(fj_execute(pool, slow_action, NULL), FJ_OK);
    fj_help_quiesce();
    CHECK(atomic_load(&runs) >= 2);
    return FJ_OK;
}

FJ_TEST(helper_that_runs_a_task_is_not_quiet, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    CHECK_EQ(fj_execute(pool, helps_beside, pool), FJ_OK);
    CHECK_EQ(fj_execute(pool, slow_action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 3);
    fjt_destroy(pool);
}

/* The helper waits for quiescence while the other worker runs an action. It has to be active
 * before it takes a task. Otherwise a check may find the queue empty and the helper still quiet. */
static atomic_int may_end;

static int stays(void *arg)
{
    (void)arg;
    scenario_until(&may_end);
    return FJ_OK;
}

static int helps(void *arg)
{
    (void)arg;
    fj_help_quiesce();
    return FJ_OK;
}

FJ_TEST(helper_is_active_before_it_takes_a_task, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    atomic_store(&may_end, 0);
    CHECK_EQ(fj_execute(pool, stays, NULL), FJ_OK);
    CHECK_EQ(fj_execute(pool, helps, NULL), FJ_OK);
    for (uint32_t n = sim_random() % 100; n > 0; n--) sim_yield();
    CHECK_EQ(fj_execute(pool, slow_action, NULL), FJ_OK);
    atomic_store(&may_end, 1);
    while (!fj_pool_is_quiescent(pool)) sim_yield();
    CHECK_EQ(atomic_load(&runs), 1);
    fjt_destroy(pool);
}

/* The worker sleeps without a time limit, so the thread that waits for quiescence must wake it. */
static uint32_t begun;

static int tells(void *arg)
{
    (void)arg;
    scenario_add(&begun);
    return FJ_OK;
}

FJ_TEST(lazily_queued_task_is_run_for_the_caller_that_waits_for_quiet, 10)
{
    fj_pool_options o = {0};
    struct scenario_leaf *l = scenario_leaf(&runs, 7);

    o.parallelism = 1;
    o.spin_ns = -1;
    o.keep_alive_ns = FJ_FOREVER;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&runs, 0);
    CHECK_EQ(fj_execute(pool, tells, NULL), FJ_OK);
    scenario_await(&begun, 1);
    sim_sleep_until(sim_now() + 50000);
    CHECK_EQ(fj_submit_lazy(pool, &l->task), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 1);
    fjt_destroy(pool);
    free(l);
}

/* The guest joins a task that waits until the pool is quiescent. The guest runs no task itself,
 * so it must not keep the pool from being quiescent. */
static int task_helps_until_quiet(fj_task *t)
{
    (void)t;
    fj_help_quiesce();
    return FJ_OK;
}

FJ_TEST(guest_that_has_joined_a_task_does_not_keep_it_from_quiet, 10)
{
    fj_pool *pool = scenario_pool(2, FJ_POOL_CALLER_HELPS);
    fj_future f;
    fj_task t;

    for (int i = 0; i < 2; i++) {
        fj_task_init(&t, task_helps_until_quiet);
        CHECK_EQ(fj_submit(pool, &t), FJ_OK);
        for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
        CHECK_EQ(fj_join(&t), FJ_OK);
        fj_future_init(&f, task_helps_until_quiet);
        CHECK_EQ(fj_future_submit(pool, &f), FJ_OK);
        for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
        CHECK_EQ(fj_future_join(&f), FJ_OK);
        fj_future_fini(&f);
    }
    fjt_destroy(pool);
}
