/* SPDX-License-Identifier: MIT */
/*
 * pool.c - scenarios of submissions, threads that cannot be started, blocked workers, the size of a
 * pool, guests, and statistics
 */
#include <pthread.h>

#include "actions.h"

/* ---- Submissions ----------------------------------------------------------------------------- */

FJ_TEST(actions_of_two_outsiders_all_run, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct sender a = {pool, 3, 0}, b = {pool, 3, 0};
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&t, NULL, send_actions, &a), 0);
    send_actions(&b);
    pthread_join(t, NULL);
    fjt_destroy(pool);
    CHECK_EQ(a.accepted + b.accepted, 6);
    CHECK_EQ(atomic_load(&runs), 6);
}

/* Submits tasks one by one and waits for each. The worker may sleep before each of them; then the
 * waiter has woken it, and sleeps without spinning. */
static void *joins_one_by_one(void *arg)
{
    for (int i = 1; i <= 3; i++) {
        struct scenario_leaf *l = scenario_leaf(&runs, i);
        CHECK_EQ(fj_submit(arg, &l->task), FJ_OK);
        CHECK_EQ(fj_join(&l->task), i);
        free(l);
    }
    return NULL;
}

FJ_TEST(waiters_outside_that_wake_a_worker_get_their_codes, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&t, NULL, joins_one_by_one, pool), 0);
    joins_one_by_one(pool);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&runs), 6);
    fjt_destroy(pool);
}

/* The joiner takes back each task that no worker has begun, while the workers take tasks from
 * the same queue. */
FJ_TEST(submitted_task_is_run_by_a_worker_or_taken_back, 10)
{
    fj_pool *pool = scenario_pool(2, FJ_POOL_CALLER_HELPS);

    atomic_store(&runs, 0);
    for (int i = 0; i < 2; i++) {
        struct scenario_leaf *l[3];
        for (int j = 0; j < 3; j++) {
            l[j] = scenario_leaf(&runs, j + 1);
            CHECK_EQ(fj_submit(pool, &l[j]->task), FJ_OK);
        }
        for (int j = 3; j-- > 0;) {
            int at = (j + (int)(sim_random() % 2)) % 3;
            if (l[at] == NULL) at = j;
            if (l[at] == NULL) continue;
            CHECK_EQ(fj_join(&l[at]->task), at + 1);
            free(l[at]);
            l[at] = NULL;
        }
        for (int j = 0; j < 3; j++) {
            if (l[j] == NULL) continue;
            CHECK_EQ(fj_join(&l[j]->task), j + 1);
            free(l[j]);
        }
    }
    CHECK_EQ(atomic_load(&runs), 6);
    fjt_destroy(pool);
}

/* The submitter takes the older of two submissions back while the only worker searches for the
 * first time or goes to sleep. The worker must not miss the younger submission behind it. */
FJ_TEST(submission_behind_one_that_is_taken_back_is_run, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.spin_ns = -1;
    o.keep_alive_ns = FJ_FOREVER;
    fj_pool *pool = fjt_pool_with(&o);
    for (uint32_t i = 1; i <= 3; i++) {
        struct scenario_leaf *l = scenario_leaf(&runs, 1);
        CHECK_EQ(fj_submit(pool, &l->task), FJ_OK);
        CHECK_EQ(fj_execute(pool, tell, NULL), FJ_OK);
        if (!fj_unfork(&l->task)) CHECK_EQ(fj_join(&l->task), 1);
        free(l);
        scenario_await(&told, i);
    }
    fjt_destroy(pool);
}

/* A worker takes several actions in one batch. The task between the actions must not be part of
 * it. */
FJ_TEST(task_between_actions_is_run_once, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct scenario_leaf *l = scenario_leaf(&runs, 7);

    atomic_store(&runs, 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    CHECK_EQ(fj_submit(pool, &l->task), FJ_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    CHECK_EQ(fj_join(&l->task), 7);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 5);
    free(l);
}

/* A body may return any code. No code has a meaning for the library itself. */
FJ_TEST(any_code_of_a_submitted_task_reaches_its_joiner, 10)
{
    static const int codes[] = {INT32_MIN, FJ_PENDING, -1};
    fj_pool *pool = scenario_pool(1, 0);
    struct scenario_leaf *l[3];

    atomic_store(&runs, 0);
    for (int i = 0; i < 3; i++) {
        l[i] = scenario_leaf(&runs, codes[i]);
        CHECK_EQ(fj_submit(pool, &l[i]->task), FJ_OK);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_join(&l[i]->task), codes[i]);
        free(l[i]);
    }
    CHECK_EQ(atomic_load(&runs), 3);
    fjt_destroy(pool);
}

/* ---- Order and memory of submissions --------------------------------------------------------- */

static atomic_int order_next;

static int in_order(void *arg)
{
    CHECK_EQ(atomic_fetch_add(&order_next, 1), (int)(intptr_t)arg);
    return FJ_OK;
}

/* Takes the locks of the submission queues, so that the submitter finds them held. */
static void *order_meddler(void *pool)
{
    for (int i = 0; i < 3; i++) {
        struct scenario_leaf *l = scenario_leaf(&runs, 1);
        CHECK_EQ(fj_submit(pool, &l->task), FJ_OK);
        if (!fj_unfork(&l->task)) CHECK_EQ(fj_join(&l->task), 1);
        free(l);
    }
    return NULL;
}

FJ_TEST(submissions_of_one_thread_are_run_in_order, 10)
{
    fj_pool *pool = scenario_pool(1, FJ_POOL_FIFO);
    pthread_t t;

    atomic_store(&order_next, 0);
    CHECK_EQ(pthread_create(&t, NULL, order_meddler, pool), 0);
    for (int i = 0; i < 6; i++) CHECK_EQ(fj_execute(pool, in_order, (void *)(intptr_t)i), FJ_OK);
    pthread_join(t, NULL);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&order_next), 6);
}

/* The worker gives memory of the submission queue back when it goes to sleep, while other
 * threads submit. */
FJ_TEST(memory_of_an_empty_submission_queue_is_given_back, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct sender a = {pool, 7, 0}, b = {pool, 7, 0};
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&t, NULL, send_actions, &a), 0);
    send_actions(&b);
    pthread_join(t, NULL);
    while (atomic_load(&runs) < 14) sim_sleep_until(sim_now() + 1000000);
    CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 15);
}

/* ---- Threads that cannot be started ---------------------------------------------------------- */

FJ_TEST(pool_without_a_thread_runs_what_is_joined, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    fji_fault_set(FJI_FAULT_THREAD, 1 + (long)(sim_random() % 2), 1000000);
    for (int i = 1; i <= 2; i++) {
        struct scenario_leaf *l = scenario_leaf(&runs, i);
        CHECK_EQ(fj_submit(pool, &l->task), FJ_OK);
        CHECK_EQ(fj_join(&l->task), i);
        free(l);
    }
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 2);
}

/* The start of the first thread, or of the first two, is refused. The counts of the pool must
 * stay correct, so that two workers are active in the end. */
static atomic_int asked;

static int ask(void *arg)
{
    (void)arg;
    atomic_fetch_add(&asked, 1);
    return FJ_OK;
}

FJ_TEST(threads_refused_for_a_while_come_later, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&here, 0);
    atomic_store(&runs, 0);
    atomic_store(&asked, 0);
    fji_fault_set(FJI_FAULT_THREAD, 1, 1 + (long)(sim_random() % 2));
    CHECK_EQ(fj_execute(pool, meet, NULL), FJ_OK);
    CHECK_EQ(fj_execute(pool, meet, NULL), FJ_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_execute(pool, ask, NULL), FJ_OK);
        sim_sleep_until(sim_now() + 1000000);
    }
    while (atomic_load(&runs) < 2 || atomic_load(&asked) < 3) sim_sleep_until(sim_now() + 1000000);
    fjt_destroy(pool);
}

/* The first start is refused, and the next one succeeds. From then on every fork that finds too
 * few active workers asks for a thread, as before the refusal. */
static uint32_t staying, may_leave;

static int stays(fj_task *t)
{
    (void)t;
    scenario_add(&staying);
    scenario_await(&may_leave, 1);
    return FJ_OK;
}

static int forks_one_by_one(void *arg)
{
    fj_task t[4];

    (void)arg;
    memset(t, 0, sizeof t);
    fji_fault_set(FJI_FAULT_THREAD, 1, 1);
    for (uint32_t i = 0; i < 4; i++) {
        fj_task_init(&t[i], stays);
        fj_fork(&t[i]);
        if (i > 0) scenario_await(&staying, i + 1);
    }
    scenario_add(&may_leave);
    for (int i = 4; i-- > 0;) CHECK_EQ(fj_join(&t[i]), FJ_OK);
    return tell(NULL);
}

FJ_TEST(forks_ask_for_threads_again_when_one_has_come, 10)
{
    fj_pool *pool = scenario_pool(5, 0);

    CHECK_EQ(fj_execute(pool, forks_one_by_one, NULL), FJ_OK);
    scenario_await(&told, 1);
    fjt_destroy(pool);
}

/* Fails in the first *arg threads. A thread whose on_start callback fails ends, and another
 * thread must run the tasks for which it was started. */
static int start_or_not(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker;
    return atomic_fetch_sub((atomic_int *)arg, 1) > 0 ? 5 : FJ_OK;
}

FJ_TEST(threads_that_end_in_their_hook_are_replaced, 10)
{
    atomic_int fails = 1 + (int)(sim_random() % 2);
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.on_start = start_or_not;
    o.arg = &fails;
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&here, 0);
    atomic_store(&runs, 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(pool, meet, NULL), FJ_OK);
    while (atomic_load(&runs) < 2) sim_sleep_until(sim_now() + 1000000);
    fjt_destroy(pool);
}

/* ---- Blocked workers ------------------------------------------------------------------------- */

FJ_TEST(blocked_worker_is_replaced, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    for (int i = 1; i <= 2; i++) {
        atomic_store(&opened, 0);
        atomic_store(&runs, 0);
        CHECK_EQ(fj_execute(pool, waits_at_the_gate, NULL), FJ_OK);
        CHECK_EQ(fj_execute(pool, opens_the_gate, NULL), FJ_OK);
        while (atomic_load(&runs) < 1) sim_sleep_until(sim_now() + 1000000);
    }
    fjt_destroy(pool);
}

static void *open_later(void *arg)
{
    (void)arg;
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    atomic_store(&opened, 1);
    return NULL;
}

/* No thread may be added, so no other worker runs in place of the blocked one. The queued action
 * runs when the worker is no longer blocked. */
FJ_TEST(blocked_worker_without_a_replacement_goes_on, 10)
{
    fj_pool_options o = {0};
    pthread_t t;

    o.parallelism = 1;
    o.max_threads = 1;
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    for (int i = 1; i <= 2; i++) {
        atomic_store(&opened, 0);
        atomic_store(&runs, 0);
        CHECK_EQ(fj_execute(pool, waits_at_the_gate, NULL), FJ_OK);
        CHECK_EQ(pthread_create(&t, NULL, open_later, NULL), 0);
        CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
        while (atomic_load(&runs) < 2) sim_sleep_until(sim_now() + 1000000);
        pthread_join(t, NULL);
        CHECK(fj_pool_thread_count(pool) <= 1);
    }
    fjt_destroy(pool);
}

static void joins_elsewhere(void *arg)
{
    struct scenario_leaf *l = scenario_leaf(&runs, 5);

    CHECK_EQ(fj_submit(arg, &l->task), FJ_OK);
    CHECK_EQ(fj_join(&l->task), 5);
    free(l);
}

/* A worker that waits for a task of another pool counts as blocked in its own pool. */
FJ_TEST(worker_waits_for_a_task_of_another_pool, 10)
{
    fj_pool *a = scenario_pool(1, 0), *b = scenario_pool(1, 0);

    atomic_store(&runs, 0);
    scenario_inside(a, joins_elsewhere, b);
    CHECK_EQ(atomic_load(&runs), 1);
    fjt_destroy(a);
    fjt_destroy(b);
}

static atomic_int live;

static int counts_in(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker, (void)arg;
    CHECK(atomic_fetch_add(&live, 1) < 3);
    return FJ_OK;
}

static void counts_out(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker, (void)arg;
    atomic_fetch_sub(&live, 1);
}

/* All three threads are blocked and tasks are queued. A fourth thread could run them, but
 * max_threads does not allow it. */
FJ_TEST(blocked_workers_bring_no_more_threads_than_allowed, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.max_threads = 3;
    o.on_start = counts_in;
    o.on_stop = counts_out;
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&opened, 0);
    atomic_store(&runs, 0);
    atomic_store(&live, 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(fj_execute(pool, waits_at_the_gate, NULL), FJ_OK);
        sim_sleep_until(sim_now() + 20000);
    }
    atomic_store(&opened, 1);
    while (atomic_load(&runs) < 5) sim_sleep_until(sim_now() + 1000000);
    fjt_destroy(pool);
}

/* ---- Size ------------------------------------------------------------------------------------ */

FJ_TEST(size_changed_under_load_loses_nothing, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
        CHECK(fj_pool_set_parallelism(pool, 1 + i % 3) > 0);
        CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    }
    while (atomic_load(&runs) < 6) sim_sleep_until(sim_now() + 1000000);
    fjt_destroy(pool);
}

FJ_TEST(size_stays_within_the_threads_that_are_allowed, 10)
{
    fj_pool *pool = scenario_pool(1, 0); /* max_threads is 3 */

    atomic_store(&runs, 0);
    CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_set_parallelism(pool, 4), FJ_EINVAL);
    CHECK_EQ(fj_pool_set_parallelism(pool, 3), 1);
    for (int i = 0; i < 4; i++) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    while (atomic_load(&runs) < 5) sim_sleep_until(sim_now() + 1000000);
    CHECK(fj_pool_thread_count(pool) <= 3);
    CHECK_EQ(fj_pool_set_parallelism(pool, 1), 3);
    fjt_destroy(pool);
}

static void *change_size(void *pool)
{
    for (int i = 0; i < 2; i++)
        CHECK(fj_pool_set_parallelism(pool, 1 + (int)(sim_random() % 3)) > 0);
    return NULL;
}

/* The scenarios run with the checked library, which checks the counts of a pool when it ends. */
FJ_TEST(two_threads_change_the_size_at_once, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&t, NULL, change_size, pool), 0);
    CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    change_size(pool);
    pthread_join(t, NULL);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 1);
}

/* Queues itself again until `opened` is set, so that the queue of its worker is never empty. */
static int chained(void *pool)
{
    for (int i = 0; i < 3; i++) sim_yield();
    atomic_fetch_add(&runs, 1);
    if (!atomic_load(&opened)) CHECK_EQ(fj_execute(pool, chained, pool), FJ_OK);
    return FJ_OK;
}

FJ_TEST(submission_is_run_though_the_own_queue_is_never_empty, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    atomic_store(&opened, 0);
    atomic_store(&runs, 0);
    CHECK_EQ(fj_execute(pool, chained, pool), FJ_OK);
    while (atomic_load(&runs) == 0) sim_yield();
    CHECK_EQ(fj_execute(pool, opens_the_gate, NULL), FJ_OK);
    fjt_destroy(pool);
}

/* Both workers have such a queue. If the parallelism is lowered to 1, one of them must stop. */
FJ_TEST(worker_too_many_stops_though_its_queue_is_never_empty, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&opened, 0);
    atomic_store(&runs, 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(pool, chained, pool), FJ_OK);
    while (fj_pool_active_count(pool) < 2) sim_yield();
    CHECK_EQ(fj_pool_set_parallelism(pool, 1), 2);
    while (fj_pool_active_count(pool) > 1) sim_yield();
    atomic_store(&opened, 1);
    fjt_destroy(pool);
}

/* ---- Guests ---------------------------------------------------------------------------------- */

static void *invoke_some(void *pool)
{
    for (int i = 0; i < 3; i++) invoke_and_leave(pool);
    return NULL;
}

/* A guest takes the record that another guest has left. Two guests must not use one record at
 * the same time. */
FJ_TEST(guests_that_come_and_go_have_their_records_alone, 10)
{
    fj_pool *pool = scenario_pool(1, FJ_POOL_CALLER_HELPS);
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&t, NULL, invoke_some, pool), 0);
    invoke_some(pool);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&runs), 6);
    fjt_destroy(pool);
}

/* ---- Statistics ------------------------------------------------------------------------------ */

FJ_TEST(figures_of_a_pool_at_rest_are_right, 10)
{
    fj_pool *pool = kept_pool(0);
    fj_stats s;

    for (int i = 0; i < 3; i++) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_stats(pool, &s), FJ_OK);
    CHECK(s.threads <= 1 && s.active <= 1 && s.queued <= 3 && s.submitted <= 3);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_pool_stats(pool, &s), FJ_OK);
    CHECK_EQ(s.threads, 1);
    CHECK_EQ(s.idle, 1);
    CHECK_EQ(s.active, 0);
    CHECK_EQ(s.running + s.blocked, 0);
    CHECK_EQ(s.queued + s.submitted, 0);
    CHECK_EQ(s.steals, 3);
    CHECK_EQ(s.started, 1);
    CHECK(s.parks < 1000); /* spurious wake-ups count as well */
    CHECK_EQ(s.state, 0);
    fjt_destroy(pool);
}
