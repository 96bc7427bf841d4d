/* SPDX-License-Identifier: MIT */
/*
 * local.c - scenarios of tasks that a thread takes from the queues by hand, while workers run
 */
#include <pthread.h>

#include "scenario.h"
#include "sched/pool.h"

static atomic_int runs;

static int action(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

/* ---- Taken by a thread outside the pool ------------------------------------------------------ */

static void *drains_and_runs(void *pool)
{
    fj_taken taken[2];

    for (int i = 0; i < 3; i++) {
        size_t n = fj_pool_drain(pool, taken, 2);
        CHECK(n <= 2);
        for (size_t k = 0; k < n; k++) {
            if (sim_random() % 2 == 0)
                fj_taken_run(&taken[k]);
            else
                fj_taken_cancel(&taken[k]);
            fj_taken_run(&taken[k]); /* has no effect: the task is no longer in it */
        }
        sim_yield();
    }
    return NULL;
}

/* Each task runs once, or is cancelled by the thread that has drained it. */
FJ_TEST(submission_is_taken_by_a_worker_or_by_a_drain, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct scenario_leaf *l[4];
    int ran = 0;
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&t, NULL, drains_and_runs, pool), 0);
    for (int i = 0; i < 4; i++) {
        l[i] = scenario_leaf(&runs, i + 1);
        CHECK_EQ(fj_submit(pool, &l[i]->task), FJ_OK);
    }
    for (int i = 0; i < 4; i++) {
        int code = fj_join(&l[i]->task);
        CHECK(code == i + 1 || code == FJ_ECANCELED);
        ran += code == i + 1;
        free(l[i]);
    }
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&runs), ran);
    fjt_destroy(pool);
}

/* fj_pool_drain() also takes forked tasks. The join then waits until the draining thread has run
 * or cancelled the task. */
static void forks_some(void *pool)
{
    struct scenario_leaf *l[3];
    pthread_t t;

    CHECK_EQ(pthread_create(&t, NULL, drains_and_runs, pool), 0);
    for (int i = 0; i < 3; i++) {
        l[i] = scenario_leaf(&runs, i + 1);
        fj_fork(&l[i]->task);
    }
    for (int i = 0; i < 4; i++) sim_yield();
    for (int i = 3; i-- > 0;) {
        int code = fj_join(&l[i]->task);
        CHECK(code == i + 1 || code == FJ_ECANCELED);
        free(l[i]);
    }
    pthread_join(t, NULL);
}

FJ_TEST(forked_task_is_taken_by_a_drain, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    scenario_inside(pool, forks_some, pool);
    fjt_destroy(pool);
}

/* ---- Taken by a worker ----------------------------------------------------------------------- */

/* When the pool is quiescent, no worker has a cell in use, also if its tasks were taken by hand
 * or stolen. */
static void check_empty(fj_pool *pool)
{
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    for (uint32_t i = 0; i < __atomic_load_n(&pool->workers, __ATOMIC_ACQUIRE); i++) {
        const fji_worker *w = fji_pool_worker(pool, i);
        if (w != NULL) CHECK(w->q.fast.top == w->q.cells);
    }
}

/* fj_take_local() must leave the task that this frame has forked. It takes the actions above it,
 * unless a thief does. */
static void polls_its_queue(void *pool)
{
    struct scenario_leaf *l = scenario_leaf(&runs, 5);
    fj_taken taken;

    for (int round = 0; round < 2; round++) {
        fj_task_init(&l->task, scenario_leaf_run);
        fj_fork(&l->task);
        for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
        while (fj_take_local(&taken)) {
            CHECK(fj_taken_task(&taken) == NULL);
            fj_taken_run(&taken);
        }
        CHECK_EQ(fj_join(&l->task), 5);
    }
    free(l);
}

FJ_TEST(worker_polls_its_queue_beside_a_thief, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    scenario_inside(pool, polls_its_queue, pool);
    check_empty(pool);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 6);
}

/* The same for tasks that the worker takes back with fj_unfork(). */
static void takes_back(void *pool)
{
    for (int round = 0; round < 2; round++) {
        struct scenario_leaf *l[2];
        for (int i = 0; i < 2; i++) {
            l[i] = scenario_leaf(&runs, i + 1);
            CHECK_EQ(fj_submit(pool, &l[i]->task), FJ_OK);
        }
        for (int i = 0; i < 2; i++) {
            if (fj_unfork(&l[i]->task))
                (void)scenario_leaf_run(&l[i]->task);
            else
                CHECK_EQ(fj_join_stolen(&l[i]->task), i + 1);
            free(l[i]);
        }
    }
}

FJ_TEST(worker_takes_back_what_it_has_submitted_beside_a_thief, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    scenario_inside(pool, takes_back, pool);
    check_empty(pool);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 4);
}

/* A task that is taken by hand runs with the token of its forker. */
static fj_token token;
static atomic_int taken_run;

static int has_token(fj_task *t)
{
    (void)t;
    CHECK(fj_current_token() == &token);
    atomic_store(&taken_run, 1);
    return FJ_OK;
}

static int forks_under_a_token(fj_task *t)
{
    fj_task child;

    (void)t;
    memset(&child, 0, sizeof child);
    fj_task_init(&child, has_token);
    fj_fork(&child);
    while (!atomic_load(&taken_run)) sim_yield();
    return fj_join(&child);
}

static int takes_by_hand(void *pool)
{
    fj_taken taken;

    while (!atomic_load(&taken_run)) {
        if (fj_pool_drain(pool, &taken, 1) == 1) fj_taken_run(&taken);
        sim_yield();
    }
    CHECK(fj_current_token() == NULL);
    return FJ_OK;
}

FJ_TEST(task_that_is_drained_by_a_worker_has_its_token, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_task root;

    atomic_store(&taken_run, 0);
    fj_token_init(&token, NULL);
    memset(&root, 0, sizeof root);
    fj_task_init(&root, forks_under_a_token);
    CHECK_EQ(fj_execute(pool, takes_by_hand, pool), FJ_OK);
    CHECK_EQ(fj_invoke_token(pool, &root, &token), FJ_OK);
    fjt_destroy(pool);
}

/* The future has a reference count. It runs, or fj_future_unfork() makes it as new; the last
 * fj_future_unref() frees it. */
static int call(void *arg, void **result)
{
    *result = arg;
    return action(NULL);
}

FJ_TEST(counted_future_is_taken_back_or_run, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    for (int i = 0; i < 3; i++) {
        fj_future *f;
        void *result;
        atomic_store(&runs, 0);
        CHECK_EQ(fj_submit_call(pool, call, &runs, &f), FJ_OK);
        if (i == 1) sim_yield();
        if (fj_future_unfork(f)) CHECK_EQ(fj_future_submit(pool, f), FJ_OK);
        CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
        CHECK(result == &runs);
        CHECK_EQ(atomic_load(&runs), 1);
        fj_future_unref(f);
    }
    fjt_destroy(pool);
}
