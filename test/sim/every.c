/* SPDX-License-Identifier: MIT */
/*
 * every.c - scenarios of broadcasts: workers arrive, sleep, start, retire, ask and leave meanwhile
 *
 * In each scenario `stopped` is not 0 from the first call of fn to its last return, and no task that
 * was queued before may run then. A thread that is not woken, or is counted and does not arrive,
 * shows as a deadlock. `stopped` and the counters are accessed in the order in which the broadcast
 * orders them, so a missing order shows as a wrong value too.
 */
#include <forkjoin/every.h>
#include <pthread.h>

#include "actions.h"

static atomic_int stopped, calls, inner;
static int written; /* written by the tasks and by fn, without atomics */
static __thread int in_fn;

/* Called by every task that is not forked in fn. */
static void outside_world(void)
{
    CHECK_EQ(atomic_load_explicit(&stopped, memory_order_relaxed), 0);
}

static int visit(void *arg)
{
    CHECK_EQ(in_fn, 0);
    in_fn = 1;
    atomic_fetch_add_explicit(&stopped, 1, memory_order_relaxed);
    atomic_fetch_add(&calls, 1);
    if (arg != NULL) sim_yield();
    atomic_fetch_sub_explicit(&stopped, 1, memory_order_relaxed);
    in_fn = 0;
    return FJ_OK;
}

static int inner_leaf(fj_task *t)
{
    (void)t;
    CHECK(atomic_load_explicit(&stopped, memory_order_relaxed) > 0);
    atomic_fetch_add(&inner, 1);
    return 3;
}

/* Forks two tasks and joins them in the wrong order. */
static int visit_and_fork(void *arg)
{
    fj_task a, b;

    (void)arg;
    atomic_fetch_add_explicit(&stopped, 1, memory_order_relaxed);
    atomic_fetch_add(&calls, 1);
    fj_task_init(&a, inner_leaf);
    fj_task_init(&b, inner_leaf);
    fj_fork(&a);
    fj_fork(&b);
    int codes[2] = {fj_join(&a), fj_join(&b)};
    /* A pool that stops cancels the tasks of its queues. */
    for (int i = 0; i < 2; i++)
        CHECK(codes[i] == 3 || (fj_is_stopping() && codes[i] == FJ_ECANCELED));
    atomic_fetch_sub_explicit(&stopped, 1, memory_order_relaxed);
    return FJ_OK;
}

static int inner_future(fj_task *t)
{
    return inner_leaf(t) - 3;
}

/* Forks two futures, so that a helper may take them and their cells are left in the queue. */
static int visit_and_fork_futures(void *arg)
{
    fj_future f[2];

    (void)arg;
    atomic_fetch_add_explicit(&stopped, 1, memory_order_relaxed);
    atomic_fetch_add(&calls, 1);
    for (int i = 0; i < 2; i++) {
        fj_future_init(&f[i], inner_future);
        CHECK_EQ(fj_future_fork(&f[i]), FJ_OK);
    }
    sim_yield();
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_future_wait_quietly(&f[i], FJ_FOREVER), FJ_OK);
    for (int i = 0; i < 2; i++) fj_future_fini(&f[i]);
    atomic_fetch_sub_explicit(&stopped, 1, memory_order_relaxed);
    return FJ_OK;
}

static unsigned any_flags(void)
{
    static const unsigned flags[] = {0, FJ_POOL_FIFO, FJ_POOL_SYMMETRIC};

    return flags[sim_random() % 3];
}

static void reset(void)
{
    atomic_store(&stopped, 0);
    atomic_store(&calls, 0);
    atomic_store(&inner, 0);
    atomic_store(&runs, 0);
    written = 0;
}

/* ---- Idle, starting and retiring workers ----------------------------------------------------- */

static int short_action(void *arg)
{
    (void)arg;
    outside_world();
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(broadcast_reaches_workers_that_start_run_and_sleep, 10)
{
    fj_pool *pool = scenario_pool(2, any_flags());

    reset();
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_execute(pool, short_action, NULL), FJ_OK);
        CHECK_EQ(fj_broadcast(pool, visit, pool), FJ_OK);
    }
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 2);
    CHECK(atomic_load(&calls) <= 6);
}

FJ_TEST(broadcast_does_not_wait_for_workers_that_retire, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.spin_ns = -1;
    o.keep_alive_ns = 20000000;
    fj_pool *pool = fjt_pool_with(&o);
    reset();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_execute(pool, short_action, NULL), FJ_OK);
        sim_sleep_until(sim_now() + 20000000 + (int64_t)(sim_random() % 8000));
        CHECK_EQ(fj_broadcast(pool, visit, NULL), FJ_OK);
    }
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 3);
}

static void *asks_once(void *pool)
{
    int err = fj_broadcast(pool, visit_and_fork, NULL);

    CHECK(err == FJ_OK || err == FJ_EREJECTED);
    return NULL;
}

FJ_TEST(pool_stops_during_a_broadcast, 10)
{
    fj_pool *pool = scenario_pool(2, any_flags());
    pthread_t t;

    reset();
    CHECK_EQ(fj_execute(pool, short_action, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, asks_once, pool), 0);
    CHECK_EQ(fj_execute(pool, short_action, NULL), FJ_OK);
    if (sim_random() % 2 == 0)
        CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    else
        CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    pthread_join(t, NULL);
    fjt_destroy(pool);
    CHECK(atomic_load(&inner) <= 2 * atomic_load(&calls));
}

/* ---- Joins ----------------------------------------------------------------------------------- */

/* The body of a stolen task: it has safepoints, so the joiner is the last to arrive. */
static int busy_leaf(fj_task *t)
{
    (void)t;
    for (int i = 0; i < 3; i++) {
        outside_world();
        written++;
        fj_safepoint();
        sim_yield();
    }
    return 5;
}

static void joins_one(void *arg)
{
    fj_task leaf;

    (void)arg;
    fj_task_init(&leaf, busy_leaf);
    fj_fork(&leaf);
    sim_yield();
    CHECK_EQ(fj_join(&leaf), 5);
    outside_world();
    CHECK_EQ(written, 3);
}

FJ_TEST(joiner_that_sleeps_takes_part, 10)
{
    fj_pool *pool = scenario_pool(2, any_flags());
    pthread_t t;

    reset();
    CHECK_EQ(pthread_create(&t, NULL, asks_once, pool), 0);
    scenario_inside(pool, joins_one, NULL);
    pthread_join(t, NULL);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&inner), 2 * atomic_load(&calls));
}

/* ---- Workers that ask ------------------------------------------------------------------------ */

static int asking_leaf(fj_task *t)
{
    (void)t;
    outside_world();
    CHECK_EQ(fj_broadcast(fj_current_pool(), visit_and_fork, NULL), FJ_OK);
    outside_world();
    return 5;
}

/* Both workers ask, each with a task in its queue, and one of them joins the other's task. */
static void asks_and_joins(void *arg)
{
    fj_task a, b;

    (void)arg;
    fj_task_init(&a, asking_leaf);
    fj_task_init(&b, asking_leaf);
    fj_fork(&a);
    fj_fork(&b);
    CHECK_EQ(fj_broadcast(fj_current_pool(), visit_and_fork, NULL), FJ_OK);
    CHECK_EQ(fj_join(&b), 5);
    CHECK_EQ(fj_join(&a), 5);
}

FJ_TEST(two_workers_ask_with_tasks_in_their_queues, 10)
{
    fj_pool *pool = scenario_pool(2, any_flags());

    reset();
    scenario_inside(pool, asks_and_joins, NULL);
    fjt_destroy(pool);
    CHECK(atomic_load(&calls) >= 3);
    CHECK_EQ(atomic_load(&inner), 2 * atomic_load(&calls));
}

static void asks_with_futures(void *arg)
{
    fj_task a;

    (void)arg;
    fj_task_init(&a, asking_leaf);
    fj_fork(&a);
    CHECK_EQ(fj_broadcast(fj_current_pool(), visit_and_fork_futures, NULL), FJ_OK);
    CHECK_EQ(fj_broadcast(fj_current_pool(), visit_and_fork_futures, NULL), FJ_OK);
    CHECK_EQ(fj_join(&a), 5);
}

FJ_TEST(futures_that_fn_forks_run_once, 10)
{
    fj_pool *pool = scenario_pool(2, any_flags());

    reset();
    scenario_inside(pool, asks_with_futures, NULL);
    fjt_destroy(pool);
    CHECK(atomic_load(&calls) >= 3);
    CHECK_EQ(atomic_load(&inner), 2 * atomic_load(&calls));
}

/* ---- Older tasks ----------------------------------------------------------------------------- */

static uint32_t ran;

static int telling_leaf(fj_task *t)
{
    (void)t;
    outside_world();
    scenario_add(&ran);
    return FJ_OK;
}

/* After the broadcast this worker only sleeps, so another one has to run its tasks. It forks and
 * joins nothing that could wake another worker, and its sleep is no wait of the library. */
static void forks_and_sleeps(void *arg)
{
    fj_task a, b;

    (void)arg;
    fj_task_init(&a, telling_leaf);
    fj_task_init(&b, telling_leaf);
    fj_fork(&a);
    fj_fork(&b);
    CHECK_EQ(fj_broadcast(fj_current_pool(), visit, NULL), FJ_OK);
    scenario_await(&ran, 2);
    CHECK_EQ(fj_join(&b), FJ_OK);
    CHECK_EQ(fj_join(&a), FJ_OK);
}

FJ_TEST(older_tasks_are_run_by_another_worker_after_the_broadcast, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.spin_ns = -1;
    o.keep_alive_ns = FJ_FOREVER;
    o.flags = sim_random() % 2 == 0 ? FJ_POOL_SYMMETRIC : 0;
    fj_pool *pool = fjt_pool_with(&o);
    reset();
    ran = 0;
    CHECK_EQ(fj_execute(pool, short_action, NULL), FJ_OK);
    scenario_inside(pool, forks_and_sleeps, NULL);
    fjt_destroy(pool);
}

/* ---- Guests ---------------------------------------------------------------------------------- */

static int inner_guest(fj_task *t)
{
    (void)t;
    return short_action(NULL);
}

static int guest_body(fj_task *t)
{
    (void)t;
    outside_world();
    written++; /* the guests run one after the other, and fn does not write */
    fj_safepoint();
    outside_world();
    return FJ_OK;
}

static int checks_guest(void *arg)
{
    int before = written;

    visit(arg);
    CHECK_EQ(written, before);
    return FJ_OK;
}

static void *asks_twice(void *pool)
{
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_broadcast(pool, checks_guest, pool), FJ_OK);
    return NULL;
}

/* A guest that leaves gives its record back before it finds out whether it was called, and the other
 * guest may take the same record then. */
static void *enters_often(void *pool)
{
    for (int i = 0; i < 3; i++) {
        fj_task task;
        fj_task_init(&task, inner_guest);
        CHECK_EQ(fj_invoke_mode(pool, &task, FJ_CALLER_HELPS), FJ_OK);
    }
    return NULL;
}

FJ_TEST(guests_leave_and_enter_with_the_same_record, 10)
{
    fj_pool *pool = scenario_pool(1, FJ_POOL_CALLER_HELPS);
    pthread_t t[2];

    reset();
    CHECK_EQ(pthread_create(&t[0], NULL, enters_often, pool), 0);
    CHECK_EQ(pthread_create(&t[1], NULL, enters_often, pool), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_broadcast(pool, visit, NULL), FJ_OK);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 6);
}

FJ_TEST(guest_enters_and_leaves_during_broadcasts, 10)
{
    fj_pool *pool = scenario_pool(1, FJ_POOL_CALLER_HELPS);
    pthread_t t;

    reset();
    CHECK_EQ(fj_execute(pool, short_action, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, asks_twice, pool), 0);
    for (int i = 0; i < 3; i++) {
        fj_task task;
        fj_task_init(&task, guest_body);
        CHECK_EQ(fj_invoke_mode(pool, &task, FJ_CALLER_HELPS), FJ_OK);
    }
    pthread_join(t, NULL);
    fjt_destroy(pool);
    CHECK_EQ(written, 3);
}
