/* SPDX-License-Identifier: MIT */
/*
 * idle.c - scenarios of workers that go to sleep, are woken, search for tasks and retire
 *
 * In each scenario a task is queued while workers go idle, and a worker has to run the task. If the
 * wake-up is lost, the run ends in a deadlock or does not end, or a wait takes 250 ms.
 */
#include <pthread.h>

#include "actions.h"
#include "sched/pool.h"

/* ---- Submissions ----------------------------------------------------------------------------- */

/* Each submission finds the pool asleep, or about to fall asleep. */
FJ_TEST(each_submission_wakes_a_sleeping_pool, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    for (int i = 1; i <= 4; i++) {
        struct scenario_leaf *l = scenario_leaf(&runs, i);
        int64_t began = sim_now();
        CHECK_EQ(fj_submit(pool, &l->task), FJ_OK);
        CHECK_EQ(fj_join(&l->task), i);
        /* A joiner that is not woken checks the pool again after 250 ms. */
        if (!sim_jumps()) CHECK(sim_now() - began < 200000000);
        free(l);
    }
    CHECK_EQ(atomic_load(&runs), 4);
    fjt_destroy(pool);
}

/* No thread waits in the library for these actions. So a wake-up that is lost is not repaired by
 * a waiter. */
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

/* All threads sleep without a time limit, and each action is submitted while the only worker is
 * about to sleep. */
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

/* Takes a random time after it has counted its run, so that its joiner may fall asleep
 * meanwhile. */
static int slow_leaf_run(fj_task *t)
{
    int code = scenario_leaf_run(t);

    for (uint32_t n = sim_random() % 40; n > 0; n--) sim_yield();
    return code;
}

/* A worker that joins tasks of another worker. It sleeps until it is woken. */
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

static int meet_task(fj_task *t)
{
    (void)t;
    return meet(NULL);
}

/* A task that was queued without a wake-up runs together with the next one: a worker that takes
 * a task and sees another one wakes the next worker. */
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

/* The worker sleeps. The joiner must wake it, because the lazy submission did not. */
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

/* ---- Forks and actions of a worker ----------------------------------------------------------- */

struct flag {
    fj_task task;
    atomic_int ran;
};

static int flag_run(fj_task *t)
{
    atomic_store_explicit(&((struct flag *)t)->ran, 1, memory_order_release);
    return FJ_OK;
}

/* Forks while the other workers sleep, and polls until the task has run. So a thief has to take
 * the task. */
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
        /* Meanwhile the thief goes to sleep again, or is about to. */
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

/* The fork is the only call after the change of the size. So the change must set the wake-up bit
 * of the control word. */
static void grows_and_waits_for_a_thief(void *pool)
{
    CHECK_EQ(fj_pool_set_parallelism(pool, 2), 1);
    waits_for_a_thief(NULL);
}

FJ_TEST(fork_in_a_pool_that_has_grown_brings_a_second_worker, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    scenario_inside(pool, grows_and_waits_for_a_thief, pool);
    fjt_destroy(pool);
}

/* The same for an action, which no thread can join, while the worker that queued it continues to
 * compute. */
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

/* ---- The idle stack -------------------------------------------------------------------------- */

/* Actions that hold their worker until the test releases them. No thread polls: the fewer steps
 * a run has, the more likely the simulator stops a thread at a given step. */
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

/* A thread that wakes the worker on top of the idle stack is stopped between its load of the
 * control word and its CAS. Meanwhile both workers of the stack are woken, the third worker goes
 * to sleep, and then the former top goes to sleep above it. The control word has the same top as
 * before, but another worker is below it. */
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

/* ---- Several wake-ups at once ---------------------------------------------------------------- */

/* How many actions wait for each other, and how many of them have ended. */
static atomic_int wanted, met;

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

static int meet_task_of_all(fj_task *t)
{
    (void)t;
    return meet_all(NULL);
}

/* Queues an action and forks a task, both in the queue of its own worker, and joins the task. */
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

/* Each action waits until all have begun. So each one needs a worker of its own, although most
 * wake-ups are left to workers that already search. */
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

/* Waits until all workers are idle, or only for a moment. */
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

/* The pool has no thread yet. Each thread that is started may have to start the next one,
 * because a submitter that has started a thread leaves further wake-ups to it. */
FJ_TEST(threads_just_started_bring_the_others, 10)
{
    fj_pool *pool = scenario_pool(8, 0);

    meet_in(pool, 2, 4, 0);
    fjt_destroy(pool);
}

/* Lets worker i continue, and waits until it is parked: it is on the idle stack and has rescanned
 * the queues. */
static void let_one_park(fj_pool *pool, int i)
{
    const fji_worker *w = fji_pool_worker(pool, (uint32_t)i);

    scenario_add(&let_go[i]);
    while (__atomic_load_n(&w->park, __ATOMIC_ACQUIRE) != FJI_PARK_PARKED)
        sim_sleep_until(sim_now() + 1000);
}

/* Clears `stops_next_start`. If it was set, waits until the test has set start_may_go_on. */
static uint32_t start_stopped, start_may_go_on;
static atomic_int stops_next_start;

static int stops_one_start(fj_pool *pool, void *arg)
{
    (void)pool, (void)arg;
    if (atomic_exchange(&stops_next_start, 0) != 0) {
        scenario_add(&start_stopped);
        scenario_await(&start_may_go_on, 1);
    }
    return 1;
}

enum { MEETING = 5 };

static int meets_the_others(void *arg)
{
    (void)arg;
    scenario_add(&come);
    scenario_await(&come, MEETING);
    return FJ_OK;
}

static void *sends_one_to_meet(void *pool)
{
    CHECK_EQ(fj_execute(pool, meets_the_others, NULL), FJ_OK);
    return NULL;
}

static int waits_for_the_meeting(fj_task *t)
{
    (void)t;
    scenario_await(&come, MEETING);
    return FJ_OK;
}

/*
 * Creates a pool with these options and `held` workers. Worker 0 is woken with a searching slot,
 * takes *first, whose body is fn, and sees a second task in the same queue. It starts a thread, and
 * is stopped in allow_thread while it holds the slot. Meanwhile worker 1 takes the second task and
 * goes to sleep. The other workers stay held.
 */
static fj_pool *pool_with_a_stopped_start(fj_pool_options *o, int held, fj_task *first,
                                          fj_task_fn *fn)
{
    o->spin_ns = -1;
    o->keep_alive_ns = FJ_FOREVER;
    o->allow_thread = stops_one_start;
    fj_pool *pool = fjt_pool_with(o);
    for (int i = 0; i < held; i++) hold_one(pool, i);
    let_one_park(pool, 0);
    atomic_store(&stops_next_start, 1);
    memset(first, 0, sizeof *first);
    fj_task_init(first, fn);
    CHECK_EQ(fj_submit_lazy(pool, first), FJ_OK);
    CHECK_EQ(fj_execute(pool, tell, NULL), FJ_OK);
    scenario_await(&start_stopped, 1);
    let_one_park(pool, 1);
    return pool;
}

/*
 * Worker 0 is woken with a searching slot, takes `first`, and sees a second task in the same queue.
 * No worker is idle, so it starts a thread, and is stopped in allow_thread while it holds the slot.
 * Meanwhile worker 1 takes the second task and goes to sleep. Then five submitters see an idle
 * worker and a slot in use, and leave their wake-ups to worker 0. Their actions are in five queues,
 * because a thread chooses its queue by a hash, which the simulator computes from consecutive
 * numbers. So a thief sees no further task in the queue from which it takes an action. Worker 0
 * starts one thread and wakes worker 1 with a slot. Worker 1 starts two threads. So one of the
 * started threads has to start the thread for the fifth action.
 */
FJ_TEST(thread_started_in_place_of_a_wake_up_brings_the_next, 10)
{
    fj_pool_options o = {0};
    fj_task first;
    pthread_t t[MEETING];

    o.parallelism = MEETING + 1; /* above FJI_UNTHROTTLED_WORKERS */
    fj_pool *pool = pool_with_a_stopped_start(&o, 2, &first, waits_for_the_meeting);
    CHECK_EQ(__atomic_load_n(&told, __ATOMIC_ACQUIRE), 1);
    for (int i = 0; i < MEETING; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, sends_one_to_meet, pool), 0);
    for (int i = 0; i < MEETING; i++) pthread_join(t[i], NULL);
    scenario_add(&start_may_go_on);
    scenario_await(&come, MEETING);
    CHECK_EQ(fj_join(&first), FJ_OK);
    fjt_destroy(pool);
}

static int waits_if_fourth(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)arg;
    if (worker >= 3) scenario_await(&come, 1);
    return FJ_OK;
}

static int comes(void *arg)
{
    (void)arg;
    scenario_add(&come);
    return FJ_OK;
}

static int waits_for_one_to_come(fj_task *t)
{
    (void)t;
    scenario_await(&come, 1);
    return FJ_OK;
}

/*
 * As in the scenario before, worker 0 is stopped in allow_thread while it holds a searching slot,
 * and worker 1 sleeps. The test submits an action and so sets FJI_WAKE_DEFERRED. Worker 2 runs this
 * action, goes idle, and clears the bit in its rescan. At this moment the test submits `comes`. The
 * test sees an idle worker and a slot in use, so it leaves the wake-up to worker 0. Either worker 2
 * sees `comes` in its rescan, or worker 0 sees the bit when it returns its slot. No other worker
 * runs `comes`: the thread that worker 0 starts waits in on_start until the action has run.
 */
FJ_TEST(wake_up_deferred_during_a_rescan_is_made, 10)
{
    fj_pool_options o = {0};
    fj_task first;

    o.parallelism = 6; /* above FJI_UNTHROTTLED_WORKERS */
    o.on_start = waits_if_fourth;
    fj_pool *pool = pool_with_a_stopped_start(&o, 3, &first, waits_for_one_to_come);
    CHECK_EQ(fj_execute(pool, tell, NULL), FJ_OK);
    CHECK((__atomic_load_n(&pool->nsearching, __ATOMIC_RELAXED) & FJI_WAKE_DEFERRED) != 0);
    const fji_worker *w = fji_pool_worker(pool, 2);
    scenario_add(&let_go[2]);
    while (__atomic_load_n(&w->park, __ATOMIC_ACQUIRE) == FJI_PARK_ACTIVE) sim_yield();
    for (uint32_t n = sim_random() % 40; n > 0; n--) sim_yield();
    CHECK_EQ(fj_execute(pool, comes, NULL), FJ_OK);
    while (__atomic_load_n(&w->park, __ATOMIC_ACQUIRE) != FJI_PARK_PARKED)
        sim_sleep_until(sim_now() + 1000);
    scenario_add(&start_may_go_on);
    scenario_await(&come, 1);
    CHECK_EQ(fj_join(&first), FJ_OK);
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

/* One worker takes the two actions that wait for each other as a batch, and the other worker
 * takes the third. The other worker may be asleep again when the first one puts the second
 * action into its own queue. Then it must be woken. */
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

/* Four workers run this action. Two of them end it and go idle. The other two fork a task each
 * and do not take it back. If no worker is idle yet when a task is forked, a worker that goes
 * idle must find it in its rescan. The two workers must run both tasks, although one may wake
 * the other before that one has rescanned the queues. */
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
    o.spin_ns = 1; /* workers wait for each other's heavy fences, and spin for 1 ns only */
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
    o.spin_ns = 1; /* workers wait for each other's heavy fences, and spin for 1 ns only */
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

/* A worker that stops searching returns its searching slot: if it finds a task, if it goes idle,
 * if it is surplus. So no slot is in use when all workers are idle. */
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

/* Queues itself again until `opened` is set. A worker that runs a task must not hold a searching
 * slot. */
static int chained_without_a_permit(void *pool)
{
    CHECK(!fji_worker_self()->searching);
    for (int i = 0; i < 3; i++) sim_yield();
    if (!atomic_load(&opened)) CHECK_EQ(fj_execute(pool, chained_without_a_permit, pool), FJ_OK);
    return FJ_OK;
}

/* Two of three workers become surplus and go to sleep while their queues hold tasks. Then they
 * are woken in order to search, and run their own tasks first. */
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

/* ---- Retiring -------------------------------------------------------------------------------- */

FJ_TEST(submission_that_meets_a_leaving_worker_is_run, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
        /* About the keep-alive time of the workers. */
        sim_sleep_until(sim_now() + 19990000 + (int64_t)(sim_random() % 20000));
    }
    while (atomic_load(&runs) < 3) sim_sleep_until(sim_now() + 1000000);
    fjt_destroy(pool);
}

/* No other worker can take the action, and no thread can be added while the retiring worker is
 * counted. */
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

/* Every worker retires, also the last one, in whatever order they sleep and retire. */
FJ_TEST(idle_pool_gives_all_its_threads_back, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    atomic_store(&runs, 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_execute(pool, action, NULL), FJ_OK);
    while (atomic_load(&runs) < 3) sim_sleep_until(sim_now() + 1000000);
    while (fj_pool_thread_count(pool) != 0) sim_sleep_until(sim_now() + 100000000);
    fjt_destroy(pool);
}

/* The worker on top of the idle stack retires while the worker below it parks. The worker below
 * is on top afterwards, so it must sleep with a limit and retire as well. */
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
        CHECK(n < 2000); /* the simulator may stop a thread for some hundred of these rounds */
        sim_sleep_until(sim_now() + 100000000);
    }
    fjt_destroy(pool);
}
