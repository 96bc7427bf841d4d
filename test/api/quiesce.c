/* SPDX-License-Identifier: MIT */
/*
 * quiesce.c - quiescence of a pool: testing for it, waiting for it, helping to reach it
 */
#include <pthread.h>
#include <string.h>

#include "crowd.h"

/* hold() keeps n workers busy until may_end is set. */
static atomic_int begun, may_end;

static int held_action(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    until(&may_end);
    return FJ_OK;
}

static void hold(fj_pool *pool, int n)
{
    atomic_store(&begun, 0);
    atomic_store(&may_end, 0);
    for (int i = 0; i < n; i++) CHECK_EQ(fj_execute(pool, held_action, NULL), FJ_OK);
    while (atomic_load(&begun) < n) fjt_sleep_us(50);
}

static atomic_long done;

static int count_action(void *arg)
{
    fjt_spin_us((int)(intptr_t)arg);
    atomic_fetch_add(&done, 1);
    return FJ_OK;
}

/* ---- Testing --------------------------------------------------------------------------------- */

FJ_TEST(new_pool_is_quiescent, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(3, flags);
        CHECK(fj_pool_is_quiescent(pool));
        CHECK_EQ(fj_pool_await_quiescence(pool, 0), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
        fjt_destroy(pool);
    }
    CHECK(fj_pool_is_quiescent(NULL));
}

FJ_TEST(pool_with_a_running_task_is_not_quiescent, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(3, flags);
        hold(pool, 1);
        for (int i = 0; i < 1000; i++) CHECK(!fj_pool_is_quiescent(pool));
        CHECK_EQ(fj_pool_await_quiescence(pool, 0), FJ_ETIMEDOUT);
        CHECK_EQ(fj_pool_await_quiescence(pool, -1), FJ_ETIMEDOUT);
        CHECK_EQ(fj_pool_await_quiescence(pool, INT64_MIN), FJ_ETIMEDOUT);
        atomic_store(&may_end, 1);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
        CHECK(fj_pool_is_quiescent(pool));
        fjt_destroy(pool);
    }
}

static int count_run(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&done, 1);
    return 4;
}

FJ_TEST(pool_with_a_queued_task_is_not_quiescent, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(1, flags);
        fj_task t;
        fj_task_init(&t, count_run);
        CHECK_EQ(fj_submit_lazy(pool, &t), FJ_OK);
        CHECK(!fj_pool_is_quiescent(pool));
        CHECK_EQ(fj_unfork(&t), 1);
        CHECK(fj_pool_is_quiescent(pool));
        fjt_destroy(pool);
    }
    CHECK_EQ(atomic_load(&done), 0);
}

FJ_TEST(await_quiescence_sees_to_lazy_submissions, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(1, flags);
        fj_task t;
        fj_task_init(&t, count_run);
        CHECK_EQ(fj_submit_lazy(pool, &t), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&done), flags + 1);
        CHECK_EQ(fj_join(&t), 4);
        fjt_destroy(pool);
    }
}

static void look_inside(void *arg)
{
    for (int i = 0; i < 100; i++) CHECK(!fj_pool_is_quiescent(arg));
}

FJ_TEST(pool_is_not_quiescent_for_its_own_task, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(2, flags);
        struct inside i = {.body = look_inside, .arg = pool};
        inside(pool, look_inside, pool);
        fj_task_init(&i.task, inside_run);
        CHECK_EQ(fj_invoke_mode(pool, &i.task, FJ_CALLER_HELPS), FJ_OK);
        fjt_destroy(pool);
    }
}

FJ_TEST(ended_pool_is_quiescent, 10)
{
    fj_pool *pool = fjt_pool(2, 0);

    CHECK_EQ(fj_execute(pool, count_action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_close(pool), FJ_OK);
    CHECK(fj_pool_is_quiescent(pool));
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Waiting -------------------------------------------------------------------------------- */

FJ_TEST(await_quiescence_waits_for_all_actions, 30)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(3, flags);
        for (int round = 1; round <= 50; round++) {
            atomic_store(&done, 0);
            for (int i = 0; i < 20; i++)
                CHECK_EQ(fj_execute(pool, count_action, (void *)(intptr_t)(i % 7)), FJ_OK);
            CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
            CHECK_EQ(atomic_load(&done), 20);
        }
        fjt_destroy(pool);
    }
}

FJ_TEST(await_quiescence_gives_up_in_time_and_not_before, 20)
{
    for (unsigned flags = 0; flags <= FJ_POOL_CALLER_HELPS; flags += FJ_POOL_CALLER_HELPS) {
        fj_pool *pool = fjt_pool(1, flags);
        hold(pool, 1);
        for (int64_t ns = 100000; ns <= 20000000; ns *= 10) {
            int64_t start = fjt_now();
            CHECK_EQ(fj_pool_await_quiescence(pool, ns), FJ_ETIMEDOUT);
            CHECK(fjt_now() - start >= ns);
        }
        atomic_store(&may_end, 1);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER - 1), FJ_OK);
        fjt_destroy(pool);
    }
}

/* Waits on a worker of the pool, which runs the queued actions while it waits. */
static void await_inside(void *arg)
{
    fj_pool *pool = arg;

    for (int round = 0; round < 20; round++) {
        atomic_store(&done, 0);
        for (int i = 0; i < 30; i++)
            CHECK_EQ(fj_execute(pool, count_action, (void *)(intptr_t)(i % 3)), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&done), 30);
        CHECK_EQ(fj_pool_await_quiescence(pool, 0), FJ_OK);
    }
}

/* A submitter may still wake a worker until fj_submit() returns. The task waits for that moment. */
struct after_submission {
    fj_task task;
    fj_pool *pool;
    atomic_int submitted;
};

static int await_after_submission(fj_task *t)
{
    struct after_submission *a = (struct after_submission *)t;

    while (!atomic_load(&a->submitted)) fjt_sleep_us(20);
    await_inside(a->pool);
    return FJ_OK;
}

FJ_TEST(worker_does_the_work_while_it_awaits_quiescence, 20)
{
    for (unsigned flags = 0; flags < 8; flags++)
        for (int n = 1; n <= 3; n++) {
            struct after_submission a = {.pool = fjt_pool(n, flags)};
            fj_task_init(&a.task, await_after_submission);
            CHECK_EQ(fj_submit(a.pool, &a.task), FJ_OK);
            atomic_store(&a.submitted, 1);
            CHECK_EQ(fj_join(&a.task), FJ_OK);
            fjt_destroy(a.pool);
        }
}

/* The submitter helps while it waits. When it sleeps in its join it has no task of its own, so it
 * does not keep the task from seeing a quiescent pool. */
FJ_TEST(joined_task_may_wait_for_a_pool_whose_callers_help, 20)
{
    fj_pool *pool = fjt_pool(1, FJ_POOL_CALLER_HELPS);

    for (long i = fjt_rounds(50); i > 0; i--) {
        struct after_submission a = {.pool = pool};
        fj_task_init(&a.task, await_after_submission);
        CHECK_EQ(fj_submit(pool, &a.task), FJ_OK);
        fjt_sleep_us((int)(i % 5) * 50); /* so that often the worker begins the task */
        atomic_store(&a.submitted, 1);
        CHECK_EQ(fj_join(&a.task), FJ_OK);
    }
    fjt_destroy(pool);
}

static void await_timed_inside(void *arg)
{
    int64_t start = fjt_now();

    CHECK_EQ(fj_pool_await_quiescence(arg, 2000000), FJ_ETIMEDOUT);
    CHECK(fjt_now() - start >= 2000000);
    CHECK_EQ(fj_pool_await_quiescence(arg, 0), FJ_ETIMEDOUT);
    atomic_store(&may_end, 1);
    CHECK_EQ(fj_pool_await_quiescence(arg, FJ_FOREVER), FJ_OK);
}

FJ_TEST(worker_gives_up_awaiting_quiescence_in_time, 10)
{
    fj_pool *pool = fjt_pool(2, 0);

    hold(pool, 1);
    inside(pool, await_timed_inside, pool);
    fjt_destroy(pool);
}

static void await_other(void *arg)
{
    CHECK_EQ(fj_pool_await_quiescence(arg, 1000000), FJ_ETIMEDOUT);
    atomic_store(&may_end, 1);
    CHECK_EQ(fj_pool_await_quiescence(arg, FJ_FOREVER), FJ_OK);
    CHECK(fj_pool_is_quiescent(arg));
}

FJ_TEST(worker_awaits_the_quiescence_of_another_pool, 10)
{
    fj_pool *here = fjt_pool(1, 0), *there = fjt_pool(1, 0);

    hold(there, 1);
    inside(here, await_other, there);
    fjt_destroy(here);
    fjt_destroy(there);
}

/* ---- Helping -------------------------------------------------------------------------------- */

/* k of n workers call fj_help_quiesce() at the same time, each after queueing `work` actions. */
static struct {
    fj_pool *pool;
    atomic_int here, early;
    int k, work;
} helpers;

static void help(void *arg)
{
    (void)arg;
    for (int i = 0; i < helpers.work; i++)
        CHECK_EQ(fj_execute(helpers.pool, count_action, (void *)(intptr_t)(i % 5)), FJ_OK);
    atomic_fetch_add(&helpers.here, 1);
    while (atomic_load(&helpers.here) < helpers.k) fjt_sleep_us(20);
    fj_help_quiesce();
    if (atomic_load(&done) != (long)helpers.k * helpers.work) atomic_fetch_add(&helpers.early, 1);
}

static void help_at_once(int n, int k, int work, unsigned flags)
{
    struct inside task[8];

    helpers.pool = fjt_pool(n, flags);
    helpers.k = k;
    helpers.work = work;
    atomic_store(&helpers.here, 0);
    atomic_store(&helpers.early, 0);
    atomic_store(&done, 0);
    for (int i = 0; i < k; i++) {
        task[i] = (struct inside){.body = help};
        fj_task_init(&task[i].task, inside_run);
        CHECK_EQ(fj_submit(helpers.pool, &task[i].task), FJ_OK);
    }
    for (int i = 0; i < k; i++) CHECK_EQ(fj_join(&task[i].task), FJ_OK);
    CHECK_EQ(atomic_load(&done), (long)k * work);
    CHECK_EQ(atomic_load(&helpers.early), 0);
    fjt_destroy(helpers.pool);
}

FJ_TEST(workers_help_to_quiesce_at_the_same_time, 60)
{
    for (int n = 1; n <= 4; n++)
        for (int k = 1; k <= n; k++)
            for (int work = 0; work <= 50; work += 25)
                for (unsigned flags = 0; flags < 2; flags++) help_at_once(n, k, work, flags);
}

/* fj_help_quiesce() also runs the tasks that its caller has forked. The joins find them done. */
static void help_with_forks(void *arg)
{
    fj_task t[10];

    (void)arg;
    for (int round = 0; round < 50; round++) {
        atomic_store(&done, 0);
        for (int k = 0; k < 10; k++) {
            fj_task_init(&t[k], count_run);
            fj_fork(&t[k]);
        }
        fj_help_quiesce();
        CHECK_EQ(atomic_load(&done), 10);
        for (int k = 0; k < 10; k++) CHECK_EQ(fj_join(&t[round % 2 == 0 ? k : 9 - k]), 4);
        CHECK_EQ(atomic_load(&done), 10);
    }
}

FJ_TEST(help_quiesce_runs_the_forks_of_the_caller, 20)
{
    inside_pools(help_with_forks, NULL);
}

FJ_TEST(help_quiesce_from_outside_empties_the_common_pool, 20)
{
    for (int round = 0; round < 50; round++) {
        atomic_store(&done, 0);
        for (int i = 0; i < 20; i++)
            CHECK_EQ(fj_execute(NULL, count_action, (void *)(intptr_t)2), FJ_OK);
        fj_help_quiesce();
        CHECK_EQ(atomic_load(&done), 20);
        CHECK(fj_pool_is_quiescent(NULL));
    }
}

/* ---- Never too early ------------------------------------------------------------------------ */

/* At least one task is alive at any time: each task submits the next one and then ends. */
#define HOPS 20000

static struct hops {
    fj_pool *pool;
    fj_task task[HOPS];
    long next;       /* of task[]: only the newest task uses it */
    uint64_t random; /* only the newest task uses it */
    bool own;        /* submit to the own queue only, which a pool that is shut down allows */
    atomic_long begun;
    atomic_int over;
} hops;

static void hop(void)
{
    uint64_t r = fjt_random(&hops.random);
    long next = hops.next++;

    atomic_store(&hops.begun, next);
    if (next >= HOPS || (!hops.own && next >= fjt_rounds(HOPS)))
        atomic_store(&hops.over, 1);
    else if (r % 2 == 0 && !hops.own)
        CHECK_EQ(fj_submit_external(hops.pool, &hops.task[next]), FJ_OK);
    else
        CHECK_EQ(fj_submit(hops.pool, &hops.task[next]), FJ_OK);
    /* In 15 of 16 cases, waits until the next task has begun, but at most 50 microseconds. */
    for (int64_t end = fjt_now() + 50000; r % 16 != 0 && !atomic_load(&hops.over);)
        if (atomic_load(&hops.begun) > next || fjt_now() > end) return;
}

static int hop_run(fj_task *t)
{
    (void)t;
    hop();
    return FJ_OK;
}

static int hop_action(void *arg)
{
    (void)arg;
    hop();
    return FJ_OK;
}

/* fj_pool_await_quiescence() must not return FJ_OK before the last task has run. */
static void *await_hops(void *arg)
{
    (void)arg;
    while (!atomic_load(&hops.over))
        if (fj_pool_await_quiescence(hops.pool, 300000) == FJ_OK) CHECK(atomic_load(&hops.over));
    return NULL;
}

static void watch_hops(int n, unsigned flags, int64_t spin_ns)
{
    fj_pool_options o = {0};
    struct crowd all;
    pthread_t thread;

    o.parallelism = n;
    o.flags = flags;
    o.spin_ns = spin_ns;
    memset(&hops, 0, sizeof hops);
    hops.pool = fjt_pool_with(&o);
    hops.random = fjt_seed();
    for (int i = 0; i < HOPS; i++) fj_task_init(&hops.task[i], hop_run);
    crowd_start(hops.pool, &all, n); /* starts n workers, so that each may get the next task */
    crowd_wait(n);
    crowd_end(&all);
    CHECK_EQ(fj_execute(hops.pool, hop_action, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&thread, NULL, await_hops, NULL), 0);
    while (!atomic_load(&hops.over))
        if (fj_pool_is_quiescent(hops.pool)) CHECK(atomic_load(&hops.over));
    pthread_join(thread, NULL);
    CHECK_EQ(fj_pool_await_quiescence(hops.pool, FJ_FOREVER), FJ_OK);
    fjt_destroy(hops.pool);
}

FJ_TEST(pool_with_a_hopping_task_is_never_quiescent, 120)
{
    for (int n = 1; n <= 4; n++) watch_hops(n, 0, 0);
}

FJ_TEST(pool_with_a_hopping_task_is_never_quiescent_in_fifo_order, 120)
{
    for (int n = 1; n <= 4; n++) watch_hops(n, FJ_POOL_FIFO, 0);
}

FJ_TEST(pool_with_a_hopping_task_is_never_quiescent_when_callers_help, 120)
{
    for (int n = 1; n <= 4; n++) watch_hops(n, FJ_POOL_CALLER_HELPS, 0);
}

/* A worker does not search, so it sleeps after each of its tasks. Each task finds another worker
 * idle and wakes it. */
FJ_TEST(pool_with_a_hopping_task_is_never_quiescent_though_nobody_searches, 120)
{
    for (int n = 2; n <= 16; n *= 2)
        for (int i = 0; i < 5; i++) watch_hops(n, i % 2 == 0 ? 0 : FJ_POOL_FIFO, -1);
}

/* The pool terminates only after the last task is done. */
FJ_TEST(pool_with_a_hopping_task_does_not_end, 60)
{
    for (long round = fjt_rounds(200); round-- > 0;) {
        memset(&hops, 0, sizeof hops);
        hops.pool = fjt_pool((int)(round % 3) + 1, round % 2 == 0 ? 0 : FJ_POOL_FIFO);
        hops.random = fjt_seed() + (uint64_t)round;
        hops.own = true;
        hops.next = HOPS - 20;
        for (int i = HOPS - 20; i < HOPS; i++) fj_task_init(&hops.task[i], hop_run);
        CHECK_EQ(fj_execute(hops.pool, hop_action, NULL), FJ_OK);
        fjt_destroy(hops.pool);
        CHECK(atomic_load(&hops.over));
    }
}

/* ---- A pool without threads ------------------------------------------------------------------ */

static fj_future opened;

static int open_run(fj_task *t)
{
    (void)t;
    return FJ_PENDING;
}

static int quiet_action(void *arg)
{
    (void)arg;
    fj_help_quiesce();
    fj_future_complete(&opened, NULL);
    return FJ_OK;
}

static int none_may_start(fj_pool *pool, void *arg)
{
    (void)pool;
    (void)arg;
    return 0;
}

/* The pool has no threads, so the thread that waits for the future runs the queued tasks. One of
 * them waits for quiescence. That inner wait must not wait for the end of the outer one. */
FJ_TEST(wait_for_quiescence_does_not_wait_for_the_wait_around_it, 30)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.allow_thread = none_may_start;
    for (unsigned flags = 0; flags < 4; flags++) {
        o.flags = flags;
        fj_pool *pool = fjt_pool_with(&o);
        fj_future_init(&opened, open_run);
        CHECK_EQ(fj_future_submit(pool, &opened), FJ_OK);
        CHECK_EQ(fj_execute(pool, quiet_action, NULL), FJ_OK);
        CHECK_EQ(fj_future_join(&opened), FJ_OK);
        fj_future_fini(&opened);
        fjt_destroy(pool);
    }
}
