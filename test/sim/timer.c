/* SPDX-License-Identifier: MIT */
/*
 * timer.c - scenarios of the timing wheel and of the threads that keep it
 */
#include <forkjoin/block.h>
#include <pthread.h>

#include "scenario.h"

#define SECOND ((int64_t)1000000000)
#define LONG_AFTER (1000 * SECOND) /* if a scenario waits this long, it has failed */

/* A thread that waits for the end of a pool and is not woken checks the pool after 250 ms. */
#define LATE (SECOND / 5)

static uint32_t ran;

static int tick(fj_task *t)
{
    (void)t;
    scenario_add(&ran);
    return FJ_OK;
}

static fj_timer *timer(fj_task_fn *fn)
{
    fj_timer *t = malloc(sizeof *t);

    memset(t, 0, sizeof *t);
    fj_timer_init(t, fn);
    return t;
}

static void yield_some(uint32_t most)
{
    for (uint32_t n = sim_random() % most; n > 0; n--) sim_yield();
}

/* ---- When timers fire ------------------------------------------------------------------------ */

struct alarm {
    fj_timer timer;
    int64_t due, ran;
};

static int alarm_run(fj_task *t)
{
    struct alarm *a = (struct alarm *)t;

    a->ran = sim_now();
    CHECK(a->ran >= a->due);
    scenario_add(&ran);
    return FJ_OK;
}

#define ALARMS 5

/* Some of the alarms are cancelled, and freed at once. The others may be late by less than
 * `near`. */
static void alarms_ring(const int64_t *delays, uint32_t n, int64_t near)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct alarm *a[ALARMS];
    uint32_t left = ALARMS;

    ran = 0;
    for (int i = 0; i < ALARMS; i++) {
        a[i] = malloc(sizeof *a[i]);
        memset(a[i], 0, sizeof *a[i]);
        fj_timer_init(&a[i]->timer, alarm_run);
        int64_t delay = delays[sim_random() % n];
        a[i]->due = sim_now() + delay;
        CHECK_EQ(fj_schedule(pool, &a[i]->timer, delay), FJ_OK);
    }
    for (int i = 0; i < ALARMS; i++) {
        if (sim_random() % 3 != 0 || fj_future_cancel(&a[i]->timer.future, 0) == 0) continue;
        fj_future_fini(&a[i]->timer.future);
        left -= a[i]->ran == 0; /* its body may have begun before the cancel */
        free(a[i]);
        a[i] = NULL;
    }
    scenario_await(&ran, left);
    for (int i = 0; i < ALARMS; i++) {
        if (a[i] == NULL) continue;
        CHECK_EQ(fj_future_join(&a[i]->timer.future), FJ_OK);
        if (!sim_jumps()) CHECK(a[i]->ran - a[i]->due < near);
        fj_future_fini(&a[i]->timer.future);
        free(a[i]);
    }
    fjt_destroy(pool);
    CHECK_EQ(ran, left);
}

/* Times in all lower wheels. Some are after 30 ms: nearly all wheels of an aged build turn then. */
FJ_TEST(timers_of_any_distance_run_when_they_are_due, 10)
{
    static const int64_t delays[] = {0,         300000,     1500000,      3000000,
                                     28000000,  32000000,   33000000,     90000000,
                                     100000000, 7 * SECOND, 300 * SECOND, 36000 * SECOND};

    alarms_ring(delays, sizeof delays / sizeof delays[0], 500000);
}

/* The first tick ends after a little more than 0.6 ms, so these times are in one tick. */
FJ_TEST(timers_of_one_tick_run_when_they_are_due, 10)
{
    static const int64_t delays[] = {100000, 200000, 300000, 400000, 500000, 600000};

    alarms_ring(delays, sizeof delays / sizeof delays[0], 90000);
}

/* ---- Periodic timers ------------------------------------------------------------------------- */

#define PERIOD ((int64_t)2000000)

struct series {
    fj_timer timer;
    int64_t next; /* the next run must not begin before */
    int runs;
    bool rate;
};

/* Runs three times. Each run takes half a period, and the third one ends the series. */
static int series_run(fj_task *t)
{
    struct series *s = (struct series *)t;
    int64_t began = sim_now();

    CHECK(began >= s->next);
    if (!sim_jumps()) CHECK(began - s->next < PERIOD / 4);
    CHECK_EQ(fj_sleep_ns(PERIOD / 2), FJ_OK);
    s->next = (s->rate ? s->next : sim_now()) + PERIOD;
    return ++s->runs < 3 ? FJ_OK : 5;
}

FJ_TEST(series_keeps_its_rate_or_its_delay, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct series *s = malloc(sizeof *s);

    memset(s, 0, sizeof *s);
    s->rate = sim_random() % 2 == 0;
    fj_timer_init(&s->timer, series_run);
    s->next = sim_now() + 1000;
    CHECK_EQ(s->rate ? fj_schedule_at_fixed_rate(pool, &s->timer, 1000, PERIOD)
                     : fj_schedule_with_fixed_delay(pool, &s->timer, 1000, PERIOD),
             FJ_OK);
    CHECK_EQ(fj_future_join(&s->timer.future), 5);
    CHECK_EQ(s->runs, 3);
    fj_future_fini(&s->timer.future);
    free(s);
    fjt_destroy(pool);
}

/* A cancelled series must not go back into the wheel, because the cancelling thread would not
 * take it out again. */
FJ_TEST(series_that_is_cancelled_while_it_runs_is_let_go, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = timer(tick);
    int64_t began = sim_now();

    ran = 0;
    CHECK_EQ(fj_schedule_at_fixed_rate(pool, t, 0, LONG_AFTER), FJ_OK);
    yield_some(120);
    CHECK_EQ(fj_future_cancel(&t->future, 0), 1);
    fj_future_fini(&t->future);
    free(t);
    fjt_destroy(pool);
    if (!sim_jumps()) CHECK(sim_now() - began < LONG_AFTER / 2);
}

/* Between two runs of a series no worker runs it. The worker of the first run then runs an
 * action, which forks a child. The worker that waits for the series must not run this child. */
static uint32_t waiter_steps, child_forked;
static _Thread_local bool waits_for_a_series;

static int second_run_ends(fj_task *t)
{
    (void)t;
    return scenario_add(&ran) == 1 ? FJ_OK : 5;
}

static int child_of_another(fj_task *t)
{
    (void)t;
    CHECK(!waits_for_a_series);
    return FJ_OK;
}

static int forks_between_the_runs(void *arg)
{
    fj_task child;

    (void)arg;
    memset(&child, 0, sizeof child);
    fj_task_init(&child, child_of_another);
    fj_fork(&child);
    scenario_add(&child_forked);
    yield_some(60);
    return fj_join(&child);
}

static int waits_for_the_series(void *t)
{
    scenario_add(&waiter_steps);
    scenario_await(&child_forked, 1);
    waits_for_a_series = true;
    CHECK_EQ(fj_future_join(t), 5);
    waits_for_a_series = false;
    scenario_add(&waiter_steps);
    return FJ_OK;
}

FJ_TEST(waiter_for_a_series_runs_nothing_of_its_last_runner, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_timer *t = timer(second_run_ends);

    ran = 0;
    CHECK_EQ(fj_execute(pool, waits_for_the_series, t), FJ_OK);
    scenario_await(&waiter_steps, 1);
    CHECK_EQ(fj_schedule_at_fixed_rate(pool, t, 0, PERIOD), FJ_OK);
    scenario_await(&ran, 1);
    CHECK_EQ(fj_execute(pool, forks_between_the_runs, NULL), FJ_OK);
    scenario_await(&waiter_steps, 2);
    fj_future_fini(&t->future);
    free(t);
    fjt_destroy(pool);
}

/* ---- Cancel, and shutdown -------------------------------------------------------------------- */

static void *cancel(void *arg)
{
    fj_timer *t = arg;

    yield_some(60);
    if (sim_random() % 4 == 0) sim_sleep_until(sim_now() + 50000); /* until all others sleep */
    (void)fj_future_cancel(&t->future, 0);
    return NULL;
}

/* The timer is resolved before it is scheduled, so it must not get into the wheel. */
FJ_TEST(timer_that_was_cancelled_before_is_let_go_at_once, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = timer(tick);
    int64_t began = sim_now();

    CHECK_EQ(fj_future_cancel(&t->future, 0), 1);
    CHECK_EQ(fj_schedule(pool, t, LONG_AFTER), FJ_OK);
    fj_future_fini(&t->future);
    free(t);
    fjt_destroy(pool);
    if (!sim_jumps()) CHECK(sim_now() - began < LONG_AFTER / 2);
}

/* The shutdown takes all timers out of the wheel, and puts the timer in the middle back unless
 * it was cancelled meanwhile. If it is cancelled later, the pool ends then. */
FJ_TEST(timer_that_is_cancelled_during_a_shutdown_holds_up_no_pool, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *series[2] = {timer(tick), timer(tick)}, *once = timer(tick);
    int64_t began = sim_now();
    pthread_t other;

    CHECK_EQ(fj_schedule_at_fixed_rate(pool, series[0], LONG_AFTER, LONG_AFTER), FJ_OK);
    CHECK_EQ(fj_schedule(pool, once, LONG_AFTER), FJ_OK);
    CHECK_EQ(fj_schedule_at_fixed_rate(pool, series[1], LONG_AFTER, LONG_AFTER), FJ_OK);
    CHECK_EQ(pthread_create(&other, NULL, cancel, once), 0);
    yield_some(60);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    pthread_join(other, NULL);
    /* The thread that keeps the wheel wakes by itself when the wheels turn after 30 ms. */
    if (!sim_jumps()) CHECK(sim_now() - began < LATE / 10);
    fjt_destroy(pool);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_future_join(&series[i]->future), FJ_ECANCELED);
    for (int i = 0; i < 2; i++) free(series[i]);
    free(once);
}

static void *awaits_the_end(void *arg)
{
    CHECK_EQ(fj_pool_await_termination(arg, FJ_FOREVER), FJ_OK);
    scenario_add(&ran);
    return NULL;
}

static void is_released(fj_future *f)
{
    (void)f;
    yield_some(40);
    CHECK_EQ(__atomic_load_n(&ran, __ATOMIC_ACQUIRE), 0);
}

static int nothing(void *arg)
{
    (void)arg;
    return FJ_OK;
}

/* A worker goes idle while the shutdown is about to release the series. The worker must not end
 * the pool before that. */
FJ_TEST(pool_ends_after_the_series_that_its_shutdown_cancels, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = timer(tick);
    pthread_t other;

    ran = 0;
    fj_future_set_release_fn(&t->future, is_released);
    CHECK_EQ(fj_schedule_at_fixed_rate(pool, t, FJ_FOREVER, LONG_AFTER), FJ_OK);
    CHECK_EQ(pthread_create(&other, NULL, awaits_the_end, pool), 0);
    CHECK_EQ(fj_execute(pool, nothing, NULL), FJ_OK);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    pthread_join(other, NULL);
    fjt_destroy(pool);
    free(t);
}

/* fj_pool_cancel_delayed_on_shutdown() may be called before the shutdown or after it. */
FJ_TEST(delayed_timers_are_cancelled_by_a_shutdown_that_is_told_to, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = timer(tick);
    bool before = sim_random() % 2 == 0;
    int64_t began = sim_now();

    CHECK_EQ(fj_schedule(pool, t, LONG_AFTER), FJ_OK);
    if (before) CHECK_EQ(fj_pool_cancel_delayed_on_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    yield_some(40);
    if (!before) CHECK_EQ(fj_pool_cancel_delayed_on_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    if (!sim_jumps()) CHECK_EQ(fj_future_join(&t->future), FJ_ECANCELED);
    if (!sim_jumps()) CHECK(sim_now() - began < LONG_AFTER / 2);
    fjt_destroy(pool);
    free(t);
}

/* ---- Resolved after the end of the pool ------------------------------------------------------ */

static int stays_open(fj_task *t)
{
    (void)t;
    scenario_add(&ran);
    return FJ_PENDING;
}

static int call_stays_open(void *arg, void **result)
{
    (void)arg, (void)result;
    return FJ_PENDING;
}

static void act_leaves_it(fj_future *f, void *arg)
{
    (void)f, (void)arg;
    scenario_add(&ran);
}

FJ_TEST(timer_and_limit_left_open_are_completed_after_their_pool, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = timer(stays_open);
    fj_future *f;

    ran = 0;
    CHECK_EQ(fj_schedule(pool, t, 1000), FJ_OK);
    CHECK_EQ(fj_submit_with_timeout(pool, call_stays_open, NULL, 1000, act_leaves_it, &f), FJ_OK);
    scenario_await(&ran, 2);
    fjt_destroy(pool);
    CHECK_EQ(fj_future_complete(&t->future, NULL), 1);
    CHECK_EQ(fj_future_complete(f, NULL), 1);
    fj_future_unref(f);
    free(t);
}

static void *completes(void *arg)
{
    (void)fj_future_complete(arg, NULL);
    return NULL;
}

/* The limit of the future expires while another thread completes the future, and nothing else keeps
 * the pool. The completing thread must not use the pool after its end. */
FJ_TEST(future_that_is_completed_when_its_limit_expires_uses_no_pool_that_has_ended, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t thread;
    fj_future *f;

    ran = 0;
    CHECK_EQ(fj_submit_with_timeout(pool, call_stays_open, NULL, 1000, act_leaves_it, &f), FJ_OK);
    pthread_create(&thread, NULL, completes, f);
    fjt_destroy(pool);
    pthread_join(thread, NULL);
    CHECK(fj_future_is_done(f));
    fj_future_unref(f);
}

/* ---- The threads of the timers --------------------------------------------------------------- */

static void *schedules_one(void *arg)
{
    fj_timer *t = timer(tick);

    CHECK_EQ(fj_schedule(arg, t, 1000), FJ_OK);
    CHECK_EQ(fj_future_join(&t->future), FJ_OK);
    fj_future_fini(&t->future);
    free(t);
    return NULL;
}

FJ_TEST(two_threads_schedule_the_first_timers_of_a_pool, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t other;

    ran = 0;
    CHECK_EQ(pthread_create(&other, NULL, schedules_one, pool), 0);
    schedules_one(pool);
    pthread_join(other, NULL);
    CHECK_EQ(ran, 2);
    fjt_destroy(pool);
}

/* The system refuses the thread for the first timer. The next timer asks for it again. */
FJ_TEST(refused_thread_of_the_timers_leaves_nothing_behind, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = timer(tick);
    int err;

    ran = 0;
    fji_fault_set(FJI_FAULT_THREAD, 1 + (long)(sim_random() % 2), 1 + (long)(sim_random() % 2));
    while ((err = fj_schedule(pool, t, 1000)) != FJ_OK) CHECK_EQ(err, FJ_EAGAIN);
    fji_fault_set(FJI_FAULT_THREAD, 0, 0);
    CHECK_EQ(fj_future_join(&t->future), FJ_OK);
    fj_future_fini(&t->future);
    free(t);
    fjt_destroy(pool);
}

/* The first callback on_timeout may find no thread that keeps the wheel meanwhile, because its
 * start is refused. The second callback waits for a later timer, so a thread must keep the wheel
 * then. */
static void act_fails(fj_future *f, void *arg)
{
    (void)arg;
    (void)fj_future_fail(f, 7);
}

static void act_waits(fj_future *f, void *arg)
{
    scenario_await(&ran, 1);
    act_fails(f, arg);
}

FJ_TEST(action_after_one_whose_thread_was_refused_delays_no_timer, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = timer(tick);
    fj_future *f;

    ran = 0;
    CHECK_EQ(fj_submit_with_timeout(pool, call_stays_open, NULL, 100000, act_fails, &f), FJ_OK);
    fji_fault_set(FJI_FAULT_THREAD, 1 + (long)(sim_random() % 2), 1);
    CHECK_EQ(fj_future_join(f), 7);
    fj_future_unref(f);
    yield_some(40);
    fji_fault_set(FJI_FAULT_THREAD, 0, 0);
    CHECK_EQ(fj_submit_with_timeout(pool, call_stays_open, NULL, 1000, act_waits, &f), FJ_OK);
    CHECK_EQ(fj_schedule(pool, t, 1000000), FJ_OK);
    CHECK_EQ(fj_future_join(f), 7);
    CHECK_EQ(fj_future_join(&t->future), FJ_OK);
    fj_future_unref(f);
    fj_future_fini(&t->future);
    free(t);
    fjt_destroy(pool);
}

/* The first callback starts a spare thread. The second and the third wake the spare one. */
FJ_TEST(third_action_at_a_limit_delays_no_timer, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = timer(tick);
    fj_future *f;

    ran = 0;
    for (int i = 0; i < 3; i++) {
        yield_some(30);
        CHECK_EQ(fj_submit_with_timeout(pool, call_stays_open, NULL, 1000,
                                        i < 2 ? act_fails : act_waits, &f),
                 FJ_OK);
        if (i == 2) CHECK_EQ(fj_schedule(pool, t, 1000000), FJ_OK);
        CHECK_EQ(fj_future_join(f), 7);
        fj_future_unref(f);
    }
    CHECK_EQ(fj_future_join(&t->future), FJ_OK);
    fj_future_fini(&t->future);
    free(t);
    fjt_destroy(pool);
}

/* The earlier timer is added while the thread that keeps the wheel goes to sleep until a later
 * time. */
FJ_TEST(earlier_timer_wakes_the_keeper_of_the_wheel, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *late = timer(tick), *early = timer(tick);

    ran = 0;
    CHECK_EQ(fj_schedule(pool, late, FJ_FOREVER), FJ_OK);
    yield_some(40);
    CHECK_EQ(fj_schedule(pool, early, 1000), FJ_OK);
    scenario_await(&ran, 1);
    CHECK_EQ(fj_future_cancel(&late->future, 0), 1);
    fjt_destroy(pool);
    free(late);
    free(early);
}

/* The worker may be idle, and never active again, before the timer counts as fired. Then the
 * thread that has fired the timer must end the pool. */
FJ_TEST(last_timer_of_a_pool_that_is_shut_down_ends_it, 10)
{
    fj_pool_options o = {0};
    bool acts = sim_random() % 2 == 0;
    fj_timer *t = timer(tick);
    fj_future *f = NULL;

    o.parallelism = 1;
    o.spin_ns = -1;
    o.keep_alive_ns = FJ_FOREVER;
    fj_pool *pool = fjt_pool_with(&o);
    ran = 0;
    if (acts)
        CHECK_EQ(fj_submit_with_timeout(pool, call_stays_open, NULL, 2000, act_fails, &f), FJ_OK);
    else
        CHECK_EQ(fj_schedule(pool, t, 2000), FJ_OK);
    int64_t began = sim_now();
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    if (!sim_jumps()) CHECK(sim_now() - began < LATE);
    if (acts) CHECK_EQ(fj_future_join(f), 7);
    CHECK_EQ(ran, acts ? 0 : 1);
    fj_future_unref(f);
    fjt_destroy(pool);
    free(t);
}

static void *stops_and_awaits_the_end(void *arg)
{
    yield_some(60);
    CHECK_EQ(fj_pool_shutdown_now(arg), FJ_OK);
    return awaits_the_end(arg);
}

/* The submitter counts as a guest during its call, so it may be the last one to leave. Then it
 * must end the pool. */
FJ_TEST(pool_that_stops_ends_when_the_submitter_of_a_limit_has_left, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f = NULL;
    int64_t began = sim_now();
    pthread_t other;

    ran = 0;
    CHECK_EQ(pthread_create(&other, NULL, stops_and_awaits_the_end, pool), 0);
    int err = fj_submit_with_timeout(pool, call_stays_open, NULL, FJ_FOREVER, NULL, &f);
    CHECK(err == FJ_OK || err == FJ_EREJECTED);
    pthread_join(other, NULL);
    if (!sim_jumps()) CHECK(sim_now() - began < LATE);
    fj_future_unref(f);
    fjt_destroy(pool);
}

/* Either the scheduling thread sees that the timer is resolved, or the cancelling thread finds
 * it in the wheel. */
FJ_TEST(timer_that_is_cancelled_while_it_is_scheduled_is_let_go, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = timer(tick);
    int64_t began = sim_now();
    pthread_t other;

    CHECK_EQ(pthread_create(&other, NULL, cancel, t), 0);
    yield_some(60);
    CHECK_EQ(fj_schedule(pool, t, LONG_AFTER), FJ_OK);
    pthread_join(other, NULL);
    fj_future_fini(&t->future);
    if (!sim_jumps()) CHECK_EQ(fj_future_join(&t->future), FJ_ECANCELED);
    free(t);
    fjt_destroy(pool);
    if (!sim_jumps()) CHECK(sim_now() - began < LONG_AFTER / 2);
}
