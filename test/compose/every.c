/* SPDX-License-Identifier: MIT */
/*
 * every.c - fj_broadcast() and fj_safepoint(): who takes part, when, and the codes
 */
#include <forkjoin/block.h>
#include <pthread.h>
#include <semaphore.h>

#include "every.h"

/* ---- Idle and busy workers ------------------------------------------------------------------- */

static int wait_nothing(void)
{
    /* All n run at the same time, so that the pool starts n threads. */
    while (atomic_load(&crowd_in) < 3) sched_yield();
    return FJ_OK;
}

FJ_TEST(broadcast_calls_fn_once_on_every_idle_worker, 20)
{
    EACH_KIND(flags)
    {
        fj_pool *pool = pool_of(3, flags);
        crowd_begin(pool, 3, wait_nothing);
        crowd_end(pool);
        for (int i = 0; i < 5; i++) broadcast_visits(pool, 3);
        fjt_sleep_us(2000); /* the workers sleep now */
        broadcast_visits(pool, 3);
        fjt_destroy(pool);
    }
}

FJ_TEST(broadcast_calls_fn_once_on_every_worker_that_calls_safepoint, 20)
{
    EACH_KIND(flags)
    {
        fj_pool *pool = pool_of(3, flags);
        crowd_begin(pool, 3, wait_busy);
        for (int i = 0; i < 5; i++) broadcast_visits(pool, 3);
        crowd_end(pool);
        CHECK_EQ(atomic_load(&crowd_out), 3);
        fjt_destroy(pool);
    }
}

static int wait_sleeping_until_stop(void)
{
    while (fj_sleep_ns(3600000000000) == FJ_OK) continue;
    return FJ_OK;
}

FJ_TEST(worker_that_sleeps_for_a_time_takes_part, 20)
{
    fj_pool *pool = pool_of(2, 0);

    crowd_begin(pool, 2, wait_sleeping_until_stop);
    fjt_sleep_us(2000);
    broadcast_visits(pool, 2);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Joins of stolen tasks ------------------------------------------------------------------- */

static atomic_int stolen_runs, stolen_ends;

static int stolen_leaf(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&stolen_runs, 1);
    while (atomic_load(&stolen_ends) == 0) {
        fj_safepoint();
        CHECK_EQ(atomic_load(&stopped), 0);
    }
    return 7;
}

static int stolen_root(fj_task *t)
{
    fj_task leaf;

    (void)t;
    fj_task_init(&leaf, stolen_leaf);
    fj_fork(&leaf);
    while (atomic_load(&stolen_runs) == 0) fj_safepoint();
    CHECK_EQ(fj_join(&leaf), 7);
    return FJ_OK;
}

FJ_TEST(joiner_of_a_stolen_task_takes_part, 20)
{
    EACH_KIND(flags)
    {
        fj_pool *pool = pool_of(2, flags);
        fj_task root;
        atomic_store(&stolen_runs, 0);
        atomic_store(&stolen_ends, 0);
        fj_task_init(&root, stolen_root);
        CHECK_EQ(fj_submit(pool, &root), FJ_OK);
        while (atomic_load(&stolen_runs) == 0) sched_yield();
        fjt_sleep_us(1000); /* the joiner sleeps now, on most machines */
        broadcast_visits(pool, 2);
        atomic_store(&stolen_ends, 1);
        CHECK_EQ(fj_join(&root), FJ_OK);
        fjt_destroy(pool);
    }
}

/* ---- Other waits ----------------------------------------------------------------------------- */

static fj_future *awaited;
static atomic_int awaiting;

static int wait_future(void)
{
    atomic_fetch_add(&awaiting, 1);
    CHECK_EQ(fj_future_wait(awaited, FJ_FOREVER), FJ_OK);
    return FJ_OK;
}

static int wait_any(void)
{
    fj_future *all[1] = {awaited};
    size_t which;

    atomic_fetch_add(&awaiting, 1);
    CHECK_EQ(fj_future_wait_any(all, 1, FJ_FOREVER, &which), FJ_OK);
    return FJ_OK;
}

static int wait_future_for_a_time(void)
{
    atomic_fetch_add(&awaiting, 1);
    CHECK_EQ(fj_future_wait(awaited, 3600000000000), FJ_OK);
    return FJ_OK;
}

static int wait_quietly(void)
{
    atomic_fetch_add(&awaiting, 1);
    (void)fj_future_wait_quietly(awaited, FJ_FOREVER);
    return FJ_OK;
}

FJ_TEST(worker_that_waits_for_a_future_takes_part, 20)
{
    int (*const waits[])(void) = {wait_future, wait_any, wait_future_for_a_time, wait_quietly};

    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        fj_pool *pool = pool_of(2, 0);
        fj_future f;
        fj_future_init(&f, NULL);
        awaited = &f;
        atomic_store(&awaiting, 0);
        crowd_begin(pool, 2, waits[i]);
        while (atomic_load(&awaiting) < 2) sched_yield();
        fjt_sleep_us(500);
        broadcast_visits(pool, 2);
        broadcast_visits(pool, 2);
        CHECK_EQ(fj_future_complete(&f, NULL), 1);
        crowd_end(pool);
        fj_future_fini(&f);
        fjt_destroy(pool);
    }
}

static int wait_quiescence(void)
{
    atomic_fetch_add(&awaiting, 1);
    return fj_pool_await_quiescence(fj_current_pool(),
                                    atomic_load(&awaiting) % 2 ? FJ_FOREVER : 3600000000000);
}

static int wait_busy_last(void)
{
    return atomic_load(&crowd_in) == 3 ? wait_busy() : wait_quiescence();
}

FJ_TEST(worker_that_waits_for_quiescence_takes_part, 20)
{
    fj_pool *pool = pool_of(3, 0);

    atomic_store(&awaiting, 0);
    crowd_begin(pool, 3, wait_busy_last);
    /* A worker that waits for quiescence may run another of the actions meanwhile. */
    for (int i = 0; i < 3; i++) broadcast_visits(pool, 0);
    crowd_end(pool);
    fjt_destroy(pool);
}

static sem_t section;
static atomic_int section_in;

static int wait_section(void)
{
    atomic_fetch_add(&section_in, 1);
    CHECK_EQ(fj_block_sem_wait(&section, FJ_FOREVER), FJ_OK);
    atomic_fetch_add(&section_in, -1);
    return FJ_OK;
}

static void *posts_later(void *arg)
{
    (void)arg;
    fjt_sleep_us(3000);
    sem_post(&section);
    return NULL;
}

/* Not visits(): the worker that has waited is in no section any more when fn runs. */
static int checks_section(void *arg)
{
    CHECK_EQ(atomic_load(&section_in), 0);
    return visits(arg);
}

FJ_TEST(broadcast_waits_for_a_worker_in_a_blocking_section, 20)
{
    fj_pool *pool = pool_of(2, 0);
    struct visit v = visit_new();
    pthread_t t;

    sem_init(&section, 0, 0);
    atomic_store(&section_in, 0);
    crowd_begin(pool, 1, wait_section);
    CHECK_EQ(pthread_create(&t, NULL, posts_later, NULL), 0);
    CHECK_EQ(fj_broadcast(pool, checks_section, &v), FJ_OK);
    CHECK(atomic_load(&v.calls) >= 1);
    pthread_join(t, NULL);
    crowd_end(pool);
    fjt_destroy(pool);
}

/* ---- Threads that come and go ---------------------------------------------------------------- */

static void guest_body(void *pool)
{
    /* The caller is a guest: the only participant, or one of them. */
    struct visit v = visit_new();

    CHECK_EQ(fj_broadcast(pool, visits, &v), FJ_OK);
    CHECK(atomic_load(&v.calls) >= 1);
    CHECK_EQ(last_visit, v.id);
}

static int guest_run(fj_task *t)
{
    struct inside *i = (struct inside *)t;

    i->body(i->arg);
    return FJ_OK;
}

FJ_TEST(helping_caller_takes_part, 20)
{
    fj_pool *pool = pool_of(2, FJ_POOL_CALLER_HELPS);
    struct inside i = {.body = guest_body, .arg = pool};

    crowd_begin(pool, 2, wait_busy);
    for (int k = 0; k < 3; k++) {
        fj_task_init(&i.task, guest_run);
        CHECK_EQ(fj_invoke_mode(pool, &i.task, FJ_CALLER_HELPS), FJ_OK);
    }
    broadcast_visits(pool, 2); /* the guest has left */
    crowd_end(pool);
    fjt_destroy(pool);
}

static fj_pool *other_pool;

static int nested_run(fj_task *t)
{
    struct inside *i = (struct inside *)t;
    struct visit v = visit_new();

    /* This thread is a worker of the first pool and a guest of the other one. */
    CHECK(fj_current_pool() == other_pool);
    CHECK_EQ(fj_broadcast(i->arg, visits, &v), FJ_OK);
    CHECK_EQ(atomic_load(&v.calls), 1);
    CHECK(fj_current_pool() == other_pool);
    v = visit_new();
    CHECK_EQ(fj_broadcast(other_pool, visits, &v), FJ_OK);
    CHECK_EQ(atomic_load(&v.calls), 1);
    return FJ_OK;
}

static void nested_body(void *pool)
{
    struct inside i = {.arg = pool};

    fj_task_init(&i.task, nested_run);
    CHECK_EQ(fj_invoke_mode(other_pool, &i.task, FJ_CALLER_HELPS), FJ_OK);
}

FJ_TEST(guest_of_another_pool_takes_part_for_its_own_pool, 20)
{
    fj_pool *pool = pool_of(1, 0);

    other_pool = pool_of(1, FJ_POOL_CALLER_HELPS);
    inside(pool, nested_body, pool);
    fjt_destroy(pool);
    fjt_destroy(other_pool);
}

static atomic_int asked_often;

static void *asks_often(void *pool)
{
    for (long i = fjt_rounds(100); i > 0; i--) {
        struct visit v = visit_new();
        int err = fj_broadcast(pool, visits, &v);
        CHECK(err == FJ_OK || err == FJ_EREJECTED);
        CHECK_EQ(atomic_load(&v.twice), 0);
        atomic_fetch_add(&asked_often, 1);
    }
    return NULL;
}

static int short_action(void *arg)
{
    (void)arg;
    CHECK_EQ(atomic_load(&stopped), 0);
    return FJ_OK;
}

FJ_TEST(threads_start_and_retire_during_broadcasts, 30)
{
    fj_pool_options o = {0};
    pthread_t t[2];

    o.parallelism = 3;
    o.keep_alive_ns = 20000;
    fj_pool *pool = fjt_pool_with(&o);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, asks_often, pool), 0);
    for (long i = fjt_rounds(200); i > 0; i--) {
        for (int k = 0; k < 3; k++) CHECK_EQ(fj_execute(pool, short_action, NULL), FJ_OK);
        fjt_sleep_us(i % 64 == 0 ? 25000 : 30); /* the keep-alive time is 20 ms at least */
    }
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    fjt_destroy(pool);
}

FJ_TEST(pool_may_shut_down_during_broadcasts, 30)
{
    for (long i = fjt_rounds(10); i > 0; i--) {
        fj_pool *pool = pool_of(2, 0);
        pthread_t t;
        CHECK_EQ(fj_execute(pool, short_action, NULL), FJ_OK);
        atomic_store(&asked_often, 0);
        CHECK_EQ(pthread_create(&t, NULL, asks_often, pool), 0);
        while (atomic_load(&asked_often) == 0) sched_yield();
        CHECK_EQ(fj_execute(pool, short_action, NULL), FJ_OK);
        CHECK_EQ(i % 2 != 0 ? fj_pool_shutdown(pool) : fj_pool_shutdown_now(pool), FJ_OK);
        pthread_join(t, NULL);
        CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(fj_broadcast(pool, visits, NULL), FJ_EREJECTED);
        fjt_destroy(pool);
    }
}

/* ---- Codes ----------------------------------------------------------------------------------- */

static int asks_inside(void *pool)
{
    CHECK_EQ(fj_broadcast(pool, visits, NULL), FJ_EDEADLK);
    CHECK_EQ(fj_broadcast(NULL, visits, NULL), FJ_EDEADLK);
    fj_safepoint();
    return 5;
}

FJ_TEST(broadcast_returns_the_code_of_fn_and_refuses_itself, 10)
{
    fj_pool *pool = pool_of(2, 0);

    CHECK_EQ(fj_broadcast(pool, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_broadcast(pool, asks_inside, pool), FJ_OK); /* no thread yet: no call */
    crowd_begin(pool, 2, wait_busy);
    CHECK_EQ(fj_broadcast(pool, asks_inside, pool), 5);
    crowd_end(pool);
    fj_safepoint(); /* outside a pool: nothing happens */
    fjt_destroy(pool);
}

static int token_fn(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_is_cancelled(), 0);
    return FJ_OK;
}

static int token_body(fj_task *t)
{
    fj_future *f = (fj_future *)t;

    CHECK_EQ(fj_future_cancel(f, 0), 1);
    CHECK_EQ(fj_is_cancelled(), 1);
    CHECK_EQ(fj_broadcast(fj_current_pool(), token_fn, NULL), FJ_OK);
    CHECK_EQ(fj_is_cancelled(), 1);
    return FJ_OK;
}

static void token_inside(void *arg)
{
    fj_future f;

    (void)arg;
    fj_future_init(&f, token_body);
    CHECK_EQ(fj_future_fork(&f), FJ_OK);
    (void)fj_future_join(&f);
    fj_future_fini(&f);
}

FJ_TEST(fn_runs_without_the_token_of_the_task, 10)
{
    inside_pools(token_inside, NULL);
}
