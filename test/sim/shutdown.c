/* SPDX-License-Identifier: MIT */
/*
 * shutdown.c - scenarios of the shutdown, the end and the destruction of a pool
 */
#include <pthread.h>

#include "actions.h"

/* ---- Accepted work --------------------------------------------------------------------------- */

FJ_TEST(shutdown_runs_what_was_accepted, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct sender a = {pool, 3, 0};
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&t, NULL, send_actions, &a), 0);
    for (uint32_t n = sim_random() % 30; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    pthread_join(t, NULL);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), a.accepted);
    fjt_destroy(pool);
}

/* No worker was woken for the task, so the shutdown must find it. */
FJ_TEST(shutdown_runs_what_was_queued_lazily, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct scenario_leaf *l = scenario_leaf(&runs, 7);

    atomic_store(&runs, 0);
    CHECK_EQ(fj_submit_lazy(pool, &l->task), FJ_OK);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 1);
    free(l);
}

/* The same with a worker that sleeps: the shutdown must wake it. */
FJ_TEST(shutdown_wakes_a_worker_for_what_was_queued_lazily, 10)
{
    fj_pool *pool = kept_pool(0);
    struct scenario_leaf *l = scenario_leaf(&runs, 7);

    atomic_store(&runs, 0);
    let_the_worker_sleep(pool);
    CHECK_EQ(fj_submit_lazy(pool, &l->task), FJ_OK);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 1);
    free(l);
}

/* No thread can be started, so the thread that destroys the pool must run the actions. */
FJ_TEST(end_of_a_pool_without_a_thread_runs_what_was_accepted, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    fji_fault_set(FJI_FAULT_THREAD, 1, 1000000);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 2);
}

/* Counts in `accepted` the tasks that have run. */
static void *submit_and_join(void *arg)
{
    struct sender *s = arg;

    for (int i = 0; i < s->n; i++) {
        struct scenario_leaf *l = scenario_leaf(&runs, 7);
        int err = fj_submit(s->pool, &l->task);
        if (err == FJ_OK) {
            int code = fj_join(&l->task);
            CHECK(code == 7 || code == FJ_ECANCELED);
            if (code == 7) s->accepted++;
        } else {
            CHECK_EQ(err, FJ_EREJECTED);
        }
        free(l);
    }
    return NULL;
}

FJ_TEST(shutdown_now_ends_every_wait, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct sender a = {pool, 3, 0};
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&t, NULL, submit_and_join, &a), 0);
    for (uint32_t n = sim_random() % 40; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&runs), a.accepted);
    fjt_destroy(pool);
}

/* The pool stops and cancels the queued tasks. Then its last running action submits a task,
 * which must be cancelled as well. */
static struct scenario_leaf *late;

static int submits_after_the_stop(void *pool)
{
    scenario_add(&told);
    while (!fj_is_stopping()) sim_yield();
    CHECK_EQ(fj_submit(pool, &late->task), FJ_OK);
    scenario_add(&told);
    return FJ_OK;
}

FJ_TEST(task_that_a_stopped_worker_submits_is_cancelled, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    late = scenario_leaf(&runs, 7);
    CHECK_EQ(fj_execute(pool, submits_after_the_stop, pool), FJ_OK);
    scenario_await(&told, 1);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    scenario_await(&told, 2);
    CHECK_EQ(fj_join(&late->task), FJ_ECANCELED);
    fjt_destroy(pool);
    free(late);
}

/* ---- Guests, and submitters that leave ------------------------------------------------------- */

/* The task of a submitter has run and the pool is destroyed, while the submitter still holds the
 * lock of the submission queue. */
FJ_TEST(pool_is_destroyed_while_a_submitter_lets_go, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&t, NULL, send_one, pool), 0);
    while (atomic_load(&runs) == 0) sim_yield();
    fjt_destroy(pool);
    pthread_join(t, NULL);
}

/* The same with a guest, which works for the pool until its call ends. */
FJ_TEST(pool_is_destroyed_while_a_guest_leaves, 10)
{
    fj_pool *pool = scenario_pool(1, FJ_POOL_CALLER_HELPS);
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&t, NULL, invoke_and_leave, pool), 0);
    while (atomic_load(&runs) == 0) sim_yield();
    fjt_destroy(pool);
    pthread_join(t, NULL);
}

/* A guest belongs to the pool during its call. Either it enters the pool before the shutdown and
 * the pool does not stop while its task runs, or its call is refused. */
static int not_cancelled(fj_task *t)
{
    (void)t;
    CHECK_EQ(fj_is_cancelled(), 0);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static void *invoke_one(void *arg)
{
    fj_task t;

    memset(&t, 0, sizeof t);
    fj_task_init(&t, not_cancelled);
    int err = fj_invoke(arg, &t);
    CHECK(err == FJ_OK || err == FJ_EREJECTED);
    return NULL;
}

FJ_TEST(guest_that_comes_during_a_shutdown_is_served_or_refused, 10)
{
    fj_pool *pool = scenario_pool(1, FJ_POOL_CALLER_HELPS);
    pthread_t t;

    CHECK_EQ(pthread_create(&t, NULL, invoke_one, pool), 0);
    for (uint32_t n = sim_random() % 20; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    pthread_join(t, NULL);
    fjt_destroy(pool);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void *await_end(void *arg)
{
    CHECK_EQ(fj_pool_await_termination(arg, FJ_FOREVER), FJ_OK);
    return NULL;
}

static void *close_pool(void *arg)
{
    CHECK_EQ(fj_pool_close(arg), FJ_OK);
    return NULL;
}

/* Each of the threads may join a worker, but not the same one, and not before the worker has said
 * which thread it is. */
FJ_TEST(two_threads_close_a_pool_whose_workers_start, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    pthread_t t;

    CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, close_pool, pool), 0);
    CHECK_EQ(fj_pool_close(pool), FJ_OK);
    pthread_join(t, NULL);
    fjt_destroy(pool);
}

FJ_TEST(everybody_who_waits_for_the_end_is_told, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    pthread_t t;

    CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, await_end, pool), 0);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    pthread_join(t, NULL);
    fjt_destroy(pool);
}

/* No thread waits for the end: the caller only reads the state. So the last worker or the last
 * guest must end the pool. */
FJ_TEST(pool_that_is_shut_down_ends_by_itself, 10)
{
    fj_pool *pool = kept_pool(FJ_POOL_CALLER_HELPS);
    pthread_t t;

    atomic_store(&runs, 0);
    if (sim_random() % 2 == 0) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, invoke_one, pool), 0);
    for (uint32_t n = sim_random() % 40; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    while (!fj_pool_is_terminated(pool)) sim_sleep_until(sim_now() + 1000000);
    pthread_join(t, NULL);
    fjt_destroy(pool);
}

/* The start of a thread is refused while the pool ends. The pool must not wait for that thread. */
FJ_TEST(pool_ends_soon_though_a_thread_is_refused, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct sender a = {pool, 2, 0};
    bool now = sim_random() % 2 == 0, joins = sim_random() % 2 == 0;
    pthread_t t;

    atomic_store(&runs, 0);
    fji_fault_set(FJI_FAULT_THREAD, 2, 1000000);
    CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, joins ? submit_and_join : send_actions, &a), 0);
    for (uint32_t n = sim_random() % 40; n > 0; n--) sim_yield();
    int64_t began = sim_now();
    CHECK_EQ(now ? fj_pool_shutdown_now(pool) : fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    if (!sim_jumps()) CHECK(sim_now() - began < 200000000);
    pthread_join(t, NULL);
    fjt_destroy(pool);
}

/*
 * The same with a starting thread that belongs to no pool and holds no lock: it joins a lazily
 * queued task. (A submitter holds the lock of its queue while it starts a thread, so the thread
 * that stops the pool waits for it.) While allow_thread runs, the pool stops. The control word
 * still counts the thread that is about to be refused, so the thread that stops the pool cannot end
 * it. The starting thread has to end the pool after the refusal, because the pool has no other
 * thread. The test does not wait for the end with fj_pool_await_termination(), because that call
 * checks the pool every 250 ms and would end it.
 */
static uint32_t start_asked, start_answered;

static int refuses_when_told(fj_pool *pool, void *arg)
{
    (void)pool, (void)arg;
    scenario_add(&start_asked);
    scenario_await(&start_answered, 1);
    return 0;
}

static void *joins_a_lazily_queued_task(void *pool)
{
    struct scenario_leaf *l = scenario_leaf(&runs, 7);

    CHECK_EQ(fj_submit_lazy(pool, &l->task), FJ_OK);
    CHECK_EQ(fj_join(&l->task), FJ_ECANCELED);
    free(l);
    return NULL;
}

FJ_TEST(thread_whose_start_is_refused_in_a_stopped_pool_ends_the_pool, 10)
{
    fj_pool_options o = {0};
    pthread_t t;

    o.parallelism = 1;
    o.allow_thread = refuses_when_told;
    fj_pool *pool = fjt_pool_with(&o);
    CHECK_EQ(pthread_create(&t, NULL, joins_a_lazily_queued_task, pool), 0);
    scenario_await(&start_asked, 1);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK(!fj_pool_is_terminated(pool));
    scenario_add(&start_answered);
    pthread_join(t, NULL);
    CHECK(fj_pool_is_terminated(pool));
    fjt_destroy(pool);
}
