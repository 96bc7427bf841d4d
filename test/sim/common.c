/* SPDX-License-Identifier: MIT */
/*
 * common.c - scenarios of the end of the common pool while other threads use it
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

static int task(fj_task *t)
{
    (void)t;
    return action(NULL);
}

/* Configures a common pool of n workers that go to sleep at once. */
static void configure(int n)
{
    fj_pool_options o = {0};

    o.parallelism = n;
    o.max_threads = n + 1;
    o.spin_ns = -1;
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
}

/* Ends the common pool while `main` runs in another thread, and once more afterwards. Then
 * everything that was submitted must have run: `wanted` bodies. */
static void end_beside(void *(*main)(void *), int wanted)
{
    pthread_t thread;

    configure(1);
    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&thread, NULL, main, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), wanted);
}

static void *submits(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(NULL, action, NULL), FJ_OK);
    return NULL;
}

FJ_TEST(submitter_meets_the_end_of_the_common_pool, 10)
{
    end_beside(submits, 2);
}

/* One submitter may create the next pool while the other one still uses the record of the old
 * pool. */
FJ_TEST(two_submitters_meet_the_end_of_the_common_pool, 10)
{
    pthread_t thread[2];

    configure(1);
    atomic_store(&runs, 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&thread[i], NULL, submits, NULL), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(thread[i], NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 4);
}

static void *joins(void *arg)
{
    fj_task t;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        fj_task_init(&t, task);
        CHECK_EQ(fj_invoke_mode(NULL, &t, FJ_CALLER_BLOCKS), FJ_OK);
    }
    return NULL;
}

FJ_TEST(joiner_meets_the_end_of_the_common_pool, 10)
{
    end_beside(joins, 2);
}

static void *joins_lazily(void *arg)
{
    fj_task t;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        fj_task_init(&t, task);
        CHECK_EQ(fj_submit_lazy(NULL, &t), FJ_OK);
        CHECK_EQ(fj_join(&t), FJ_OK);
    }
    return NULL;
}

FJ_TEST(joiner_of_a_lazily_queued_task_meets_the_end_of_the_common_pool, 10)
{
    end_beside(joins_lazily, 2);
}

/* The task is taken back, or it has run in a pool that may have ended. */
static void *takes_back(void *arg)
{
    fj_task t;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        fj_task_init(&t, task);
        fj_fork(&t);
        if (i == 1) sim_yield();
        if (fj_unfork(&t))
            (void)task(&t);
        else
            CHECK_EQ(fj_join_stolen(&t), FJ_OK);
    }
    return NULL;
}

FJ_TEST(task_that_is_taken_back_meets_the_end_of_the_common_pool, 10)
{
    end_beside(takes_back, 2);
}

static void *visits(void *arg)
{
    fj_task t;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        fj_task_init(&t, task);
        CHECK_EQ(fj_invoke_mode(NULL, &t, FJ_CALLER_HELPS), FJ_OK);
    }
    return NULL;
}

FJ_TEST(guest_meets_the_end_of_the_common_pool, 10)
{
    end_beside(visits, 2);
}

static void *waits_for_future(void *arg)
{
    fj_future f;

    (void)arg;
    fj_future_init(&f, task);
    CHECK_EQ(fj_future_submit(NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_wait(&f, FJ_FOREVER), FJ_OK);
    fj_future_fini(&f);
    return NULL;
}

FJ_TEST(future_meets_the_end_of_the_common_pool, 10)
{
    end_beside(waits_for_future, 1);
}

static void *schedules(void *arg)
{
    fj_future *f;

    (void)arg;
    CHECK_EQ(fj_schedule_action(NULL, action, NULL, 1000, &f), FJ_OK);
    CHECK_EQ(fj_future_wait(f, FJ_FOREVER), FJ_OK);
    fj_future_unref(f);
    return NULL;
}

FJ_TEST(timer_meets_the_end_of_the_common_pool, 10)
{
    end_beside(schedules, 1);
}

static int call(void *arg, void **result)
{
    *result = NULL;
    return action(arg);
}

static void *submits_with_a_limit(void *arg)
{
    fj_future *f;
    void *result;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_submit_with_timeout(NULL, call, NULL, FJ_FOREVER, NULL, &f), FJ_OK);
        CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
        fj_future_unref(f);
    }
    return NULL;
}

FJ_TEST(limit_meets_the_end_of_the_common_pool, 10)
{
    end_beside(submits_with_a_limit, 2);
}

/* Much longer than a run of the scenario. A series that is always due would leave no quiescent
 * moment. */
#define PERIOD_NS 1000000000ll

/* The series is cancelled by the end of the pool or by this thread, and must be released once. */
static void *repeats(void *arg)
{
    fj_future *f;

    (void)arg;
    CHECK_EQ(fj_schedule_action_at_fixed_rate(NULL, action, NULL, 0, PERIOD_NS, &f), FJ_OK);
    sim_yield();
    (void)fj_future_cancel(f, 1);
    CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
    fj_future_unref(f);
    atomic_store(&runs, 0);
    return NULL;
}

FJ_TEST(series_meets_the_end_of_the_common_pool, 10)
{
    pthread_t thread;

    configure(1);
    CHECK_EQ(pthread_create(&thread, NULL, repeats, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
}

/* fj_pool_steal_count() reads the records of the workers, which are freed when the pool ends.
 * fj_pool_thread_count() would read only the static record of the pool. */
static void *looks(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_execute(NULL, action, NULL), FJ_OK);
        (void)fj_pool_steal_count(NULL);
        (void)fj_pool_is_quiescent(NULL);
    }
    return NULL;
}

FJ_TEST(look_meets_the_end_of_the_common_pool, 10)
{
    end_beside(looks, 2);
}

static void *ends(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_execute(NULL, action, NULL), FJ_OK);
    return NULL;
}

FJ_TEST(end_meets_the_end_of_the_common_pool, 10)
{
    configure(1);
    CHECK_EQ(fj_execute(NULL, action, NULL), FJ_OK);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, ends, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 2);
}

/* If the attempt to end the pool fails, no submission is refused. */
static void *tries(void *arg)
{
    (void)arg;
    int err = fj_common_shutdown(0);
    CHECK(err == FJ_OK || err == FJ_ETIMEDOUT);
    return NULL;
}

static int worker_gives(void *arg)
{
    struct scenario_leaf *l = arg;

    CHECK_EQ(fj_submit_external(NULL, &l->task), FJ_OK);
    return action(NULL);
}

FJ_TEST(attempt_to_end_the_common_pool_refuses_its_worker_nothing, 10)
{
    pthread_t thread;
    struct scenario_leaf *l = scenario_leaf(&runs, 0);

    configure(1);
    atomic_store(&runs, 0);
    CHECK_EQ(fj_execute(NULL, worker_gives, l), FJ_OK);
    CHECK_EQ(pthread_create(&thread, NULL, tries, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 2);
    free(l);
}

/* The end of the pool waits for this callback. So the submission must be refused instead of
 * waiting for the end. */
static void gives_at_its_end(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker, (void)arg;
    struct scenario_leaf *l = scenario_leaf(&runs, 0);
    CHECK_EQ(fj_submit_external(NULL, &l->task), FJ_EREJECTED);
    free(l);
}

FJ_TEST(callback_meets_the_end_of_the_common_pool, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.keep_alive_ns = FJ_FOREVER; /* otherwise the worker may retire before the pool ends */
    o.on_stop = gives_at_its_end;
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    atomic_store(&runs, 0);
    CHECK_EQ(fj_execute(NULL, action, NULL), FJ_OK);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 1);
}

/* Both threads use the common pool for the first time. */
FJ_TEST(two_threads_make_the_common_pool_once, 10)
{
    pthread_t thread;

    configure(1);
    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&thread, NULL, submits, NULL), 0);
    (void)submits(NULL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 4);
}

/* The pool is created either with these options or with the default ones, but not with a
 * mixture. */
static void *configures(void *arg)
{
    fj_pool_options o = {0};

    (void)arg;
    o.parallelism = 1;
    o.name = "other";
    int err = fj_common_configure(&o);
    CHECK(err == FJ_OK || err == FJ_EBUSY);
    return NULL;
}

FJ_TEST(configuration_meets_the_first_use_of_the_common_pool, 10)
{
    pthread_t thread;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&thread, NULL, configures, NULL), 0);
    (void)submits(NULL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 2);
}

/* Each of the two threads that end the pool returns only after the pool has ended. */
static atomic_int started, stopped;

static int is_started(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker, (void)arg;
    atomic_fetch_add(&started, 1);
    return FJ_OK;
}

static void is_stopped(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker, (void)arg;
    atomic_fetch_add(&stopped, 1);
}

static void *ends_once(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&stopped), atomic_load(&started));
    CHECK(!fj_pool_is_shutdown(NULL)); /* there is no pool, and the next one is not created yet */
    return NULL;
}

FJ_TEST(second_end_of_the_common_pool_waits_for_the_first, 10)
{
    fj_pool_options o = {0};
    pthread_t thread;

    o.parallelism = 1;
    o.keep_alive_ns = FJ_FOREVER;
    o.on_start = is_started;
    o.on_stop = is_stopped;
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    atomic_store(&started, 0);
    atomic_store(&stopped, 0);
    CHECK_EQ(fj_execute(NULL, action, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&thread, NULL, ends_once, NULL), 0);
    (void)ends_once(NULL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* fj_pool_describe() and fj_pool_dump() read the name and the records of the workers. */
static void reads_line(const char *text, void *arg)
{
    *(size_t *)arg += strlen(text);
}

static void *describes(void *arg)
{
    char text[300];
    size_t all = 0;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_execute(NULL, action, NULL), FJ_OK);
        CHECK(fj_pool_describe(NULL, text, sizeof text) > 0);
        fj_pool_dump(NULL, reads_line, &all);
    }
    return NULL;
}

FJ_TEST(text_meets_the_end_of_the_common_pool, 10)
{
    end_beside(describes, 2);
}

/* The calling thread runs the action that it has drained. */
static void *drains(void *arg)
{
    fj_taken taken;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_execute(NULL, action, NULL), FJ_OK);
        if (fj_pool_drain(NULL, &taken, 1) == 1) fj_taken_run(&taken);
    }
    return NULL;
}

FJ_TEST(drain_meets_the_end_of_the_common_pool, 10)
{
    end_beside(drains, 2);
}

/* No worker was ever started. So the full fence of the stop itself is the only one that can
 * order it with the readers. The readers read the first record of a worker, which the pool reserves
 * when it is created, and which is freed when the pool ends. */
static void *only_looks(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) (void)fj_pool_steal_count(NULL);
    return NULL;
}

FJ_TEST(look_meets_the_end_of_a_common_pool_without_threads, 10)
{
    pthread_t thread;

    configure(1);
    CHECK(fj_common_pool() != NULL);
    CHECK_EQ(pthread_create(&thread, NULL, only_looks, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
}

/* ---- The next common pool -------------------------------------------------------------------- */

/* A thread asks for a figure of the common pool while that pool ends and another one is created in
 * the same record. */
static void next_while(void *(*asks)(void *))
{
    pthread_t thread;

    configure(1);
    CHECK(fj_common_pool() != NULL);
    CHECK_EQ(pthread_create(&thread, NULL, asks, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK(fj_common_pool() != NULL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
}

static void *asks_for_steals(void *arg)
{
    (void)fj_pool_steal_count(NULL);
    return arg;
}

FJ_TEST(look_meets_the_next_common_pool, 10)
{
    next_while(asks_for_steals);
}

static void *asks_for_the_limit(void *arg)
{
    (void)fj_pool_worker_limit(NULL);
    return arg;
}

FJ_TEST(limit_meets_the_next_common_pool, 10)
{
    next_while(asks_for_the_limit);
}

static void *asks_for_the_searching(void *arg)
{
    (void)fj_pool_searching_count(NULL);
    return arg;
}

FJ_TEST(searching_count_meets_the_next_common_pool, 10)
{
    next_while(asks_for_the_searching);
}
