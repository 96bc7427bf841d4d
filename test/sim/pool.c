/* SPDX-License-Identifier: MIT */
/*
 * pool.c - scenarios of submitting, sleeping, waking, leaving, shutting down
 */
#include <forkjoin/block.h>
#include <pthread.h>

#include "sched/pool.h"
#include "scenario.h"

static atomic_int runs;

static int action(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

/* ---- Submissions ------------------------------------------------------------------------------------- */

struct sender {
    fj_pool *pool;
    int n, accepted;
};

static void *send_actions(void *arg)
{
    struct sender *s = arg;

    for (int i = 0; i < s->n; i++)
        if (fj_execute(s->pool, action, NULL) == FJ_OK) s->accepted++;
    return NULL;
}

static void *send_one(void *arg)
{
    CHECK_EQ(fj_execute(arg, action, NULL), FJ_OK);
    return NULL;
}

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

/* One after the other: each finds the pool asleep, or about to be. */
FJ_TEST(each_submission_wakes_a_sleeping_pool, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    for (int i = 1; i <= 4; i++) {
        struct scenario_leaf *l = scenario_leaf(&runs, i);
        int64_t began = sim_now();
        CHECK_EQ(fj_submit(pool, &l->task), FJ_OK);
        CHECK_EQ(fj_join(&l->task), i);
        /* Whoever was not woken looks by itself after a quarter of a second. */
        if (!sim_jumps()) CHECK(sim_now() - began < 200000000);
        free(l);
    }
    CHECK_EQ(atomic_load(&runs), 4);
    fjt_destroy(pool);
}

/* Nobody waits, and the submitter only looks: what is lost is never run. */
static void *send_and_look(void *arg)
{
    fj_pool *pool = arg;

    for (int i = 0; i < 3; i++) {
        int before = atomic_load(&runs);
        CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
        while (atomic_load(&runs) == before) sim_sleep_until(sim_now() + 1000000);
    }
    return NULL;
}

FJ_TEST(action_that_nobody_waits_for_is_run_soon, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    send_and_look(pool);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 3);
}

/* The same where nobody sleeps with a limit, and the next comes while the only worker is on its
 * way to sleep. */
static uint32_t told;

static int tell(void *arg)
{
    (void)arg;
    scenario_add(&told);
    return FJ_OK;
}

FJ_TEST(action_wakes_the_only_worker_that_goes_to_sleep, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.flags = sim_random() % 2 == 0 ? FJ_POOL_SYMMETRIC : 0;
    o.spin_ns = -1;
    o.keep_alive_ns = FJ_FOREVER;
    fj_pool *pool = fjt_pool_with(&o);
    for (uint32_t i = 1; i <= 4; i++) {
        CHECK_EQ(fj_execute(pool, tell, NULL), FJ_OK);
        scenario_await(&told, i);
        for (uint32_t n = sim_random() % 20; n > 0; n--) sim_yield();
    }
    fjt_destroy(pool);
}

/* And where the one that waits is a worker, which sleeps until it is woken. */
static int slow_leaf_run(fj_task *t)
{
    int code = scenario_leaf_run(t);

    for (uint32_t n = sim_random() % 40; n > 0; n--) sim_yield();
    return code;
}

static int joins_what_it_submits(void *arg)
{
    for (int i = 1; i <= 2; i++) {
        struct scenario_leaf *l = scenario_leaf(&runs, i);
        fj_task_init(&l->task, slow_leaf_run);
        CHECK_EQ(fj_submit(arg, &l->task), FJ_OK);
        while (atomic_load(&runs) < i) sim_yield();
        CHECK_EQ(fj_join(&l->task), i);
        free(l);
    }
    return tell(NULL);
}

FJ_TEST(worker_that_joins_what_another_runs_is_woken, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    CHECK_EQ(fj_execute(pool, joins_what_it_submits, pool), FJ_OK);
    scenario_await(&told, 1);
    fjt_destroy(pool);
}

/* Takes back what nobody has begun, while a worker is after it. */
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

/* The older of two submissions is taken back while the only worker looks for the first time, or goes
 * to sleep: the younger one behind it must not be overlooked. */
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

/* A worker takes several actions at once, but not the task between them. */
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

/* Inside: a worker's own forks while others sleep. What is forked and not joined at once has
 * to be taken by somebody if the forker waits for it without joining. */
struct flag {
    fj_task task;
    atomic_int ran;
};

static int flag_run(fj_task *t)
{
    atomic_store_explicit(&((struct flag *)t)->ran, 1, memory_order_release);
    return FJ_OK;
}

static void waits_for_a_thief(void *arg)
{
    struct flag f;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        memset(&f, 0, sizeof f);
        fj_task_init(&f.task, flag_run);
        fj_fork(&f.task);
        while (atomic_load_explicit(&f.ran, memory_order_acquire) == 0)
            sim_sleep_until(sim_now() + 1000000);
        CHECK_EQ(fj_join(&f.task), FJ_OK);
        /* Long enough for the thief to go to sleep again, or nearly. */
        for (uint32_t n = sim_random() % 40; n > 0; n--) sim_yield();
    }
}

FJ_TEST(fork_wakes_a_worker_that_goes_to_sleep, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    scenario_inside(pool, waits_for_a_thief, NULL);
    fjt_destroy(pool);
}

FJ_TEST(fork_wakes_a_worker_of_three, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    scenario_inside(pool, waits_for_a_thief, NULL);
    fjt_destroy(pool);
}

/* The same for what nobody can join: the worker that has queued it computes on. */
static void waits_for_another(void *arg)
{
    for (int i = 0; i < 2; i++) {
        int before = atomic_load(&runs);
        CHECK_EQ(fj_execute(arg, action, NULL), FJ_OK);
        while (atomic_load(&runs) == before) sim_sleep_until(sim_now() + 1000000);
        for (uint32_t n = sim_random() % 40; n > 0; n--) sim_yield();
    }
}

FJ_TEST(action_of_a_worker_that_computes_is_run_by_another, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    atomic_store(&runs, 0);
    scenario_inside(pool, waits_for_another, pool);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 2);
}

/* Two tasks that need each other: both workers have to come. */
static atomic_int here;

static int meet(void *arg)
{
    (void)arg;
    atomic_fetch_add(&here, 1);
    while (atomic_load(&here) < 2) sim_sleep_until(sim_now() + 1000000);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(two_submissions_bring_two_workers, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    for (int i = 0; i < 2; i++) {
        atomic_store(&here, 0);
        atomic_store(&runs, 0);
        CHECK_EQ(fj_execute(pool, meet, NULL), FJ_OK);
        CHECK_EQ(fj_execute(pool, meet, NULL), FJ_OK);
        while (atomic_load(&runs) < 2) sim_sleep_until(sim_now() + 1000000);
    }
    fjt_destroy(pool);
}

/* What was queued without a wake goes with the next: whoever takes one and sees more signals. */
static int meet_task(fj_task *t)
{
    (void)t;
    return meet(NULL);
}

FJ_TEST(lazily_queued_task_goes_with_the_next_one, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_task t;

    for (int i = 0; i < 2; i++) {
        memset(&t, 0, sizeof t);
        fj_task_init(&t, meet_task);
        atomic_store(&here, 0);
        atomic_store(&runs, 0);
        CHECK_EQ(fj_submit_lazy(pool, &t), FJ_OK);
        CHECK_EQ(fj_execute(pool, meet, NULL), FJ_OK);
        while (atomic_load(&runs) < 2) sim_sleep_until(sim_now() + 1000000);
        CHECK_EQ(fj_join(&t), FJ_OK);
    }
    fjt_destroy(pool);
}

/* Workers that are held until they are let go of. Nobody waits by looking: the fewer steps, the
 * likelier it is that somebody is held up at a given one. */
enum { HOLDS = 5 };

static uint32_t held[HOLDS], let_go[HOLDS], come;

static int hold(void *arg)
{
    int i = (int)(intptr_t)arg;

    scenario_add(&held[i]);
    scenario_await(&let_go[i], 1);
    return FJ_OK;
}

static void hold_one(fj_pool *pool, int i)
{
    CHECK_EQ(fj_execute(pool, hold, (void *)(intptr_t)i), FJ_OK);
    scenario_await(&held[i], 1);
}

static void let_one_sleep(int i)
{
    scenario_add(&let_go[i]);
    sim_sleep_until(sim_now() + 50000);
}

static int meet_three(void *arg)
{
    (void)arg;
    scenario_add(&come);
    scenario_await(&come, 3);
    return FJ_OK;
}

/* One that wakes the top of the stack is held up between its look and its take. Meanwhile the two
 * that were on it are woken, the third goes to sleep and the top again above it: what it has seen
 * is there again, but for who is below. */
FJ_TEST(idle_stack_of_three_loses_nobody, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    pthread_t t;

    for (int i = 0; i < 3; i++) hold_one(pool, i);
    let_one_sleep(0);
    let_one_sleep(1);
    CHECK_EQ(pthread_create(&t, NULL, send_one, pool), 0);
    hold_one(pool, 3);
    hold_one(pool, 4);
    let_one_sleep(2);
    let_one_sleep(3);
    pthread_join(t, NULL);
    let_one_sleep(4);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_execute(pool, meet_three, NULL), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Many who signal at once ------------------------------------------------------------------------------ */

static atomic_int wanted, met; /* so many are to meet, and have met */

static int meet_all(void *arg)
{
    (void)arg;
    atomic_fetch_add(&here, 1);
    while (atomic_load(&here) < atomic_load(&wanted)) sim_sleep_until(sim_now() + 1000000);
    atomic_fetch_add(&met, 1);
    return FJ_OK;
}

static void *send_to_meet(void *arg)
{
    struct sender *s = arg;

    for (int i = 0; i < s->n; i++) CHECK_EQ(fj_execute(s->pool, meet_all, NULL), FJ_OK);
    return NULL;
}

/* Sends some of its own, which go into its queue, and joins what it has forked. */
static int meet_task_of_all(fj_task *t)
{
    (void)t;
    return meet_all(NULL);
}

static int meet_and_send(void *arg)
{
    struct sender own = {arg, 1, 0};
    fj_task t;

    memset(&t, 0, sizeof t);
    fj_task_init(&t, meet_task_of_all);
    send_to_meet(&own);
    fj_fork(&t);
    (void)meet_all(NULL);
    return fj_join(&t);
}

/* Each of them waits for all: so every one must be begun by a worker of its own, though most
 * signals are left to those who search already. */
static void meet_in(fj_pool *pool, int outsiders, int each, int inside)
{
    struct sender s[2] = {{pool, each, 0}, {pool, each, 0}};
    pthread_t t[2];

    atomic_store(&here, 0);
    atomic_store(&met, 0);
    atomic_store(&wanted, outsiders * each + 3 * inside);
    for (int i = 0; i < outsiders; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, send_to_meet, &s[i]), 0);
    for (int i = 0; i < inside; i++) CHECK_EQ(fj_execute(pool, meet_and_send, pool), FJ_OK);
    for (int i = 0; i < outsiders; i++) pthread_join(t[i], NULL);
    while (atomic_load(&met) < atomic_load(&wanted)) sim_sleep_until(sim_now() + 1000000);
}

/* Until they are all idle, or for a moment. */
static void let_them_rest(fj_pool *pool)
{
    if (sim_random() % 4 != 0) CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    for (uint32_t n = sim_random() % 100; n > 0; n--) sim_yield();
}

FJ_TEST(submissions_of_two_outsiders_bring_four_workers, 10)
{
    fj_pool *pool = scenario_pool(4, 0);

    for (int i = 0; i < 4; i++) {
        meet_in(pool, 2, 2, 0);
        let_them_rest(pool);
    }
    fjt_destroy(pool);
}

/* Nobody was there before: each of them is started by somebody who has left it at that. */
FJ_TEST(threads_just_started_bring_the_others, 10)
{
    fj_pool *pool = scenario_pool(8, 0);

    meet_in(pool, 2, 4, 0);
    fjt_destroy(pool);
}

FJ_TEST(tasks_of_workers_and_outsiders_bring_five_workers, 10)
{
    fj_pool *pool = scenario_pool(5, 0);

    for (int i = 0; i < 3; i++) {
        meet_in(pool, 1, 2, 1);
        let_them_rest(pool);
    }
    fjt_destroy(pool);
}

/* Four are at work; two of them end and go idle, while the other two fork a task each, which they
 * do not take back. What was forked before anybody was idle is found by those who go idle: they
 * have to come to both, though one of them may be woken by the other on its way. */
static int end_or_fork(void *arg)
{
    fj_task t;

    scenario_add(&come);
    scenario_await(&come, 4);
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    if ((intptr_t)arg < 2) return FJ_OK;
    memset(&t, 0, sizeof t);
    fj_task_init(&t, meet_task_of_all);
    fj_fork(&t);
    (void)meet_all(NULL);
    return fj_join(&t);
}

FJ_TEST(two_that_go_idle_together_come_to_two_tasks, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 4;
    o.spin_ns = 1; /* they wait for each other's heavy fences, and hardly search before */
    fj_pool *pool = fjt_pool_with(&o);
    for (int i = 0; i < 2; i++) {
        __atomic_store_n(&come, 0, __ATOMIC_RELEASE);
        atomic_store(&here, 0);
        atomic_store(&met, 0);
        atomic_store(&wanted, 4);
        for (intptr_t n = 0; n < 4; n++) CHECK_EQ(fj_execute(pool, end_or_fork, (void *)n), FJ_OK);
        while (atomic_load(&met) < 4) sim_sleep_until(sim_now() + 1000000);
        let_them_rest(pool);
    }
    fjt_destroy(pool);
}

/*
 * The parallelism is lowered from 3 to 2 while three workers run. Two of them go idle and the
 * third forks a task, which it does not take back. When the first has gone idle, two workers are
 * still active, so the fork wakes no worker. The second worker that goes idle must see the task in
 * its rescan. The heavy fence of the first is enough for that only if the fence began after the
 * second worker was on the idle stack.
 */
static uint32_t smaller, forked_ran;

static int ran_by_another(fj_task *t)
{
    (void)t;
    scenario_add(&forked_ran);
    return FJ_OK;
}

static int ends_or_waits_for_a_thief(void *arg)
{
    fj_task t;

    scenario_add(&come);
    scenario_await(&smaller, 1);
    sim_sleep_until(sim_now() + (int64_t)(sim_random() % 1000));
    if (arg == NULL) return FJ_OK;
    memset(&t, 0, sizeof t);
    fj_task_init(&t, ran_by_another);
    fj_fork(&t);
    scenario_await(&forked_ran, 1);
    return fj_join(&t);
}

FJ_TEST(fork_that_wakes_no_worker_is_seen_by_the_next_idle_one, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 3;
    o.spin_ns = 1; /* they wait for each other's heavy fences, and hardly search before */
    o.keep_alive_ns = FJ_FOREVER;
    fj_pool *pool = fjt_pool_with(&o);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(fj_execute(pool, ends_or_waits_for_a_thief, i == 0 ? pool : NULL), FJ_OK);
    scenario_await(&come, 3);
    CHECK_EQ(fj_pool_set_parallelism(pool, 2), 3);
    scenario_add(&smaller);
    scenario_await(&forked_ran, 1);
    fjt_destroy(pool);
}

/* ---- Leaving for lack of work --------------------------------------------------------------------------- */

FJ_TEST(submission_that_meets_a_leaving_worker_is_run, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
        /* About as long as workers are kept. */
        sim_sleep_until(sim_now() + 19990000 + (int64_t)(sim_random() % 20000));
    }
    while (atomic_load(&runs) < 3) sim_sleep_until(sim_now() + 1000000);
    fjt_destroy(pool);
}

/* There is no other to take it, and none can be added while this one is counted. */
FJ_TEST(submission_that_meets_the_only_worker_leaving_is_run, 10)
{
    fj_pool_options o = {0};

    o.parallelism = o.max_threads = 1;
    o.spin_ns = -1;
    o.keep_alive_ns = 20000000;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&runs, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
        sim_sleep_until(sim_now() + 20000000 + (int64_t)(sim_random() % 5000));
    }
    while (atomic_load(&runs) < 2) sim_sleep_until(sim_now() + 1000000);
    fjt_destroy(pool);
}

/* The last one too, whichever way their sleeps and their leaving fall together. */
FJ_TEST(idle_pool_gives_all_its_threads_back, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    atomic_store(&runs, 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    while (atomic_load(&runs) < 3) sim_sleep_until(sim_now() + 1000000);
    while (fj_pool_thread_count(pool) != 0) sim_sleep_until(sim_now() + 100000000);
    fjt_destroy(pool);
}

/* The worker on top of the idle stack retires while the worker below it parks. The worker below is
 * on top afterwards, so it must sleep with a limit and retire as well. */
FJ_TEST(worker_that_falls_asleep_below_one_that_leaves_is_given_back, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.spin_ns = -1;
    o.keep_alive_ns = 20000000;
    fj_pool *pool = fjt_pool_with(&o);
    for (int i = 0; i < 2; i++) hold_one(pool, i);
    for (int i = 0; i < 2; i++) scenario_add(&let_go[i]);
    sim_sleep_until(sim_now() + (int64_t)(sim_random() % 2000));
    sim_work(o.keep_alive_ns);
    for (int n = 0; fj_pool_thread_count(pool) != 0; n++) {
        CHECK(n < 2000); /* the simulator may hold a thread up for some hundred of these turns */
        sim_sleep_until(sim_now() + 100000000);
    }
    fjt_destroy(pool);
}

/* ---- Shutdown --------------------------------------------------------------------------------------------- */

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

/* Nobody has been woken for it: whoever shuts the pool down has to find it. */
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

/* The task of a submitter has run, and the pool goes, while it is still about to let go. */
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

/* The same with one that works for the pool until its call is over. */
static int counts(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static void *invoke_and_leave(void *arg)
{
    fj_task t;

    memset(&t, 0, sizeof t);
    fj_task_init(&t, counts);
    CHECK_EQ(fj_invoke(arg, &t), FJ_OK);
    return NULL;
}

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

/* A caller that helps becomes part of the pool for its call: it comes before the end, or not. */
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

static void *await_end(void *arg)
{
    CHECK_EQ(fj_pool_await_termination(arg, FJ_FOREVER), FJ_OK);
    return NULL;
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

/* ---- Threads that do not come ---------------------------------------------------------------------------------- */

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

/* Some come and some do not: the counts must stay right, so that in the end two can meet. */
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

/* A start is refused, and the next one is not. From then on every fork that finds too few workers asks
 * for one, as before the refusal. */
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

/* The start of a thread is refused while the pool ends: the pool does not wait for that thread. */
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

/* Each that ends in its hook leaves what it was started for to the next. */
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

/* ---- Blocking --------------------------------------------------------------------------------------------------- */

static atomic_int opened;

static int gate_ready(void *arg)
{
    (void)arg;
    return atomic_load(&opened);
}

static int gate_block(void *arg)
{
    (void)arg;
    sim_sleep_until(sim_now() + 100000);
    return atomic_load(&opened);
}

static int waits_at_the_gate(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_managed_block(gate_ready, gate_block, NULL), FJ_OK);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static int opens_the_gate(void *arg)
{
    (void)arg;
    atomic_store(&opened, 1);
    return FJ_OK;
}

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

/* No thread may be added: nothing was given away, so nothing is taken back. */
static void *open_later(void *arg)
{
    (void)arg;
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    atomic_store(&opened, 1);
    return NULL;
}

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

/* A worker that waits for another pool's task is a blocked one. */
static void joins_elsewhere(void *arg)
{
    struct scenario_leaf *l = scenario_leaf(&runs, 5);

    CHECK_EQ(fj_submit(arg, &l->task), FJ_OK);
    CHECK_EQ(fj_join(&l->task), 5);
    free(l);
}

FJ_TEST(worker_waits_for_a_task_of_another_pool, 10)
{
    fj_pool *a = scenario_pool(1, 0), *b = scenario_pool(1, 0);

    atomic_store(&runs, 0);
    scenario_inside(a, joins_elsewhere, b);
    CHECK_EQ(atomic_load(&runs), 1);
    fjt_destroy(a);
    fjt_destroy(b);
}

/* Whichever way a worker stops to search: what counts the searching is as it was. */
FJ_TEST(nobody_is_counted_as_searching_when_all_rest, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    for (int i = 0; i < 2; i++) {
        atomic_store(&opened, 0);
        atomic_store(&runs, 0);
        CHECK_EQ(fj_execute(pool, waits_at_the_gate, NULL), FJ_OK);
        CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
        CHECK(fj_pool_set_parallelism(pool, 1 + (int)(sim_random() % 4)) > 0);
        CHECK_EQ(fj_execute(pool, opens_the_gate, NULL), FJ_OK);
        CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
        while (atomic_load(&runs) < 3) sim_sleep_until(sim_now() + 1000000);
        for (int n = 0;
             (__atomic_load_n(&pool->nsearching, __ATOMIC_RELAXED) & ~FJI_WAKE_DEFERRED) != 0;
             n++) {
            CHECK(n < 1000);
            sim_sleep_until(sim_now() + 1000000);
        }
    }
    fjt_destroy(pool);
}

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

/* ---- Codes and limits ------------------------------------------------------------------------------ */

/* Whatever a body returns: no code means anything to the library itself. */
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

FJ_TEST(size_stays_within_the_threads_that_are_allowed, 10)
{
    fj_pool *pool = scenario_pool(1, 0); /* and two spares */

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

/* ---- Order and memory of submissions ------------------------------------------------------------------------ */

static atomic_int order_next;

static int in_order(void *arg)
{
    CHECK_EQ(atomic_fetch_add(&order_next, 1), (int)(intptr_t)arg);
    return FJ_OK;
}

/* Takes the locks of the queues, so that the submitter meets them. */
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

/* The worker gives memory back while it goes to sleep and others submit. */
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

/* ---- Sizes -------------------------------------------------------------------------------------------- */

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

/* All three threads are blocked, and tasks are queued: a fourth thread would be of use, and is not
 * allowed. */
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

static void *change_size(void *pool)
{
    for (int i = 0; i < 2; i++)
        CHECK(fj_pool_set_parallelism(pool, 1 + (int)(sim_random() % 3)) > 0);
    return NULL;
}

/* The counts are what the check of a pool at its end looks at. */
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

static void grows_and_waits_for_a_thief(void *pool)
{
    CHECK_EQ(fj_pool_set_parallelism(pool, 2), 1);
    waits_for_a_thief(NULL);
}

/* The fork is the only call after the change: the control word has to ask for the thread. */
FJ_TEST(fork_in_a_pool_that_has_grown_brings_a_second_worker, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    scenario_inside(pool, grows_and_waits_for_a_thief, pool);
    fjt_destroy(pool);
}

static int chained(void *pool)
{
    for (int i = 0; i < 3; i++) sim_yield();
    atomic_fetch_add(&runs, 1);
    if (!atomic_load(&opened)) CHECK_EQ(fj_execute(pool, chained, pool), FJ_OK);
    return FJ_OK;
}

/* Each task of the worker queues the next one: it never has an empty queue. */
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

/* Two workers with such a queue each: one of them has to stop when only one is wanted. */
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

/* ---- The end, without a caller that looks for it ------------------------------------------------------- */

static fj_pool *kept_pool(unsigned flags)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.flags = flags;
    o.spin_ns = -1;
    o.keep_alive_ns = FJ_FOREVER;
    return fjt_pool_with(&o);
}

/* The caller only reads the state. The last worker, or the last guest, has to end the pool. */
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

/* The worker is asleep, and is kept: the caller has to wake it for what was queued lazily. */
static void let_the_worker_sleep(fj_pool *pool)
{
    CHECK_EQ(fj_execute(pool, tell, NULL), FJ_OK);
    scenario_await(&told, 1);
    sim_sleep_until(sim_now() + 50000);
}

FJ_TEST(joiner_of_a_lazily_queued_task_wakes_a_worker, 10)
{
    fj_pool *pool = kept_pool(0);
    struct scenario_leaf *l = scenario_leaf(&runs, 7);

    let_the_worker_sleep(pool);
    CHECK_EQ(fj_submit_lazy(pool, &l->task), FJ_OK);
    CHECK_EQ(fj_join(&l->task), 7);
    fjt_destroy(pool);
    free(l);
}

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

FJ_TEST(end_of_a_pool_without_a_thread_runs_what_was_accepted, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    fji_fault_set(FJI_FAULT_THREAD, 1, 1000000);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 2);
}

/* The last task of a worker submits after the sweep over the queues. */
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

/* ---- Figures --------------------------------------------------------------------------------------------- */

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
    CHECK(s.parks < 1000); /* a sleep that ends for no reason counts too */
    CHECK_EQ(s.state, 0);
    fjt_destroy(pool);
}

/* ---- Records and permits ------------------------------------------------------------------------------- */

static void *invoke_some(void *pool)
{
    for (int i = 0; i < 3; i++) invoke_and_leave(pool);
    return NULL;
}

/* The record that one guest leaves is taken by the other. */
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

static int chained_without_a_permit(void *pool)
{
    CHECK(!fji_worker_self()->searching);
    for (int i = 0; i < 3; i++) sim_yield();
    if (!atomic_load(&opened)) CHECK_EQ(fj_execute(pool, chained_without_a_permit, pool), FJ_OK);
    return FJ_OK;
}

/* Two of three workers are sent to sleep with tasks in their queues, and are woken to search. */
FJ_TEST(worker_that_was_sent_to_sleep_runs_its_tasks_without_a_permit, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    atomic_store(&opened, 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_execute(pool, chained_without_a_permit, pool), FJ_OK);
    for (uint32_t n = sim_random() % 100; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_set_parallelism(pool, 1), 3);
    while (fj_pool_active_count(pool) > 1) sim_yield();
    CHECK_EQ(fj_pool_set_parallelism(pool, 3), 1);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    for (uint32_t n = sim_random() % 100; n > 0; n--) sim_yield();
    atomic_store(&opened, 1);
    fjt_destroy(pool);
}

/* One worker takes the two that need each other, the other worker the third: it may have gone to sleep
 * again when the second comes into the queue of the first worker. */
FJ_TEST(batch_of_submissions_brings_both_workers, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    for (int i = 0; i < 2; i++) {
        atomic_store(&here, 0);
        atomic_store(&runs, 0);
        for (int n = 0; n < 2; n++) CHECK_EQ(fj_execute(pool, meet, NULL), FJ_OK);
        CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
        while (atomic_load(&runs) < 3) sim_sleep_until(sim_now() + 1000000);
        let_them_rest(pool);
    }
    fjt_destroy(pool);
}
