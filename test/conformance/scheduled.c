/* SPDX-License-Identifier: MIT */
/*
 * scheduled.c - conformance with Java: delayed and periodic tasks
 *
 * There is one test for each method of ScheduledExecutorTest that has a meaning in C, and for each
 * method of ForkJoinPool20Test and ExecutorsTest that concerns time. It is named after the method.
 * The tests of ScheduledExecutorTest use one worker and timers that are embedded in structs of the
 * test. The others use allocated timers, on pools of every size.
 *
 * Times have only lower bounds. Whether a series drifts is checked with the times at which its runs
 * were due, which do not depend on how late the machine runs them.
 */
#include "conformance.h"

/* ---- Tasks that record when they ran --------------------------------------------------------- */

enum { BEATS = 8, OVER = 71 };

/* Returns OVER in run number `last` and FJ_OK in every other run; if `last` is 0, it never ends the
 * series. The result is the beat itself. */
struct beat {
    fj_timer timer;
    fj_future *f; /* the future of the timer, or the allocated one; its remaining time is read */
    int last;
    atomic_int runs, released;
    int64_t begun[BEATS], ended[BEATS];
    int64_t due_low[BEATS], due_high[BEATS]; /* each run was due between these two times */
};

static int beat_once(struct beat *b)
{
    int n = atomic_load(&b->runs);

    if (n < BEATS) {
        b->begun[n] = fjt_now();
        if (n % 2 == 0) fjt_sleep_us(300); /* a delay that a drifting series would accumulate */
        if (b->f != NULL) {
            int64_t before = fjt_now(), left = fj_timer_remaining(b->f);
            b->due_low[n] = before + left;
            b->due_high[n] = fjt_now() + left;
            CHECK(left <= 0);
        }
        b->ended[n] = fjt_now();
    }
    atomic_store(&b->runs, n + 1);
    return n + 1 == b->last ? OVER : FJ_OK;
}

static int beat_action(void *arg)
{
    return beat_once(arg);
}

static int beat_call(void *arg, void **result)
{
    *result = arg;
    return beat_once(arg);
}

static int beat_run(fj_task *t)
{
    struct beat *b = (struct beat *)t;

    b->timer.future.result = b;
    return beat_once(b);
}

static void beat_released(fj_future *f)
{
    atomic_fetch_add(&((struct beat *)f)->released, 1);
}

static void beat_init(struct beat *b, int last)
{
    memset(b, 0, sizeof *b);
    fj_timer_init(&b->timer, beat_run);
    fj_future_set_release_fn(&b->timer.future, beat_released);
    b->f = &b->timer.future;
    b->last = last;
}

/* Waits until the library no longer uses the timer. Checks that the release function was called
 * once, after `runs` runs. */
static void beat_release(struct beat *b, int runs)
{
    fj_future_fini(&b->timer.future);
    UNTIL(atomic_load(&b->released) == 1);
    CHECK_EQ(atomic_load(&b->runs), runs);
}

/* ---- Checks for both classes ----------------------------------------------------------------- */

static const int64_t delays[] = {-1, 0, 1, MS, 13 * MS};
enum { DELAYS = 5 };

static void call_is_not_early(fj_pool *p)
{
    for (int i = 0; i < DELAYS; i++) {
        struct beat b = {.last = 0};
        fj_future *f;
        void *result = NULL;
        int64_t start = fjt_now();
        CHECK_EQ(fj_schedule_call(p, beat_call, &b, delays[i], &f), FJ_OK);
        CHECK_EQ(fj_future_get(f, LONG_NS, &result), FJ_OK);
        CHECK(result == &b);
        CHECK(b.begun[0] - start >= delays[i]);
        CHECK(fj_timer_remaining(f) <= 0);
        check_normal(f, &b);
        fj_future_unref(f);
        CHECK_EQ(atomic_load(&b.runs), 1);
    }
    CHECK_EQ(fj_pool_delayed_count(p), 0);
}

static void action_is_not_early(fj_pool *p)
{
    for (int i = 0; i < DELAYS; i++) {
        struct beat b = {.last = 0};
        fj_future *f;
        int64_t start = fjt_now();
        CHECK_EQ(fj_schedule_action(p, beat_action, &b, delays[i], &f), FJ_OK);
        CHECK_EQ(fj_future_join(f), FJ_OK);
        CHECK(b.begun[0] - start >= delays[i]);
        check_normal(f, NULL);
        fj_future_unref(f);
        CHECK_EQ(atomic_load(&b.runs), 1);
    }
    CHECK_EQ(fj_pool_delayed_count(p), 0);
}

static void embedded_is_not_early(fj_pool *p)
{
    for (int i = 0; i < DELAYS; i++) {
        struct beat b;
        beat_init(&b, 0);
        int64_t start = fjt_now();
        CHECK_EQ(fj_schedule(p, &b.timer, delays[i]), FJ_OK);
        CHECK_EQ(fj_future_join(&b.timer.future), FJ_OK);
        CHECK(b.begun[0] - start >= delays[i]);
        CHECK(b.due_high[0] - start >= delays[i]);
        check_normal(&b.timer.future, &b);
        beat_release(&b, 1);
    }
    CHECK_EQ(fj_pool_delayed_count(p), 0);
}

typedef int series_start(fj_pool *pool, fj_timer *t, int64_t delay_ns, int64_t period_ns);

typedef int series_start_action(fj_pool *pool, fj_action_fn *action, void *arg, int64_t delay_ns,
                                int64_t period_ns, fj_future **f);

/* The first run comes after the delay. The next one is due in an hour, so the series waits and can
 * be cancelled. */
static void first_run_is_not_early(fj_pool *p, series_start_action *start_series)
{
    for (int i = 0; i < DELAYS; i++) {
        struct beat b = {.last = 0};
        fj_future *f;
        int64_t start = fjt_now();
        CHECK_EQ(start_series(p, beat_action, &b, delays[i], LONG_NS, &f), FJ_OK);
        UNTIL(atomic_load(&b.runs) == 1);
        UNTIL(fj_pool_delayed_count(p) == 1);
        CHECK(b.begun[0] - start >= delays[i]);
        CHECK(fj_timer_remaining(f) > 0);
        state_check_stuck(f);
        CHECK_EQ(fj_future_cancel(f, 0), 1);
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        check_cancelled(f);
        fj_future_unref(f);
        CHECK_EQ(atomic_load(&b.runs), 1);
    }
}

/* Run i of a series is due at start + i * period, even if run i - 1 was late. */
static void rate_is_kept(fj_pool *p, int64_t period)
{
    struct beat b;

    beat_init(&b, BEATS);
    int64_t before = fjt_now();
    CHECK_EQ(fj_schedule_at_fixed_rate(p, &b.timer, period, period), FJ_OK);
    int64_t after = fjt_now();
    CHECK_EQ(fj_future_join(&b.timer.future), OVER);
    check_failed(&b.timer.future, OVER);
    beat_release(&b, BEATS);
    for (int i = 0; i < BEATS; i++) {
        CHECK(b.begun[i] - before >= (i + 1) * period);
        CHECK(b.due_high[i] >= before + (i + 1) * period);
        CHECK(b.due_low[i] <= after + (i + 1) * period);
        if (i > 0) CHECK(b.begun[i] >= b.ended[i - 1]);
    }
    CHECK(b.begun[BEATS - 1] - before >= BEATS * period);
}

/* A gap lasts from the end of one run to the start of the next. */
static void gaps_are_kept(fj_pool *p, int64_t gap)
{
    struct beat b;

    beat_init(&b, BEATS);
    int64_t start = fjt_now();
    CHECK_EQ(fj_schedule_with_fixed_delay(p, &b.timer, 0, gap), FJ_OK);
    CHECK_EQ(fj_future_join(&b.timer.future), OVER);
    check_failed(&b.timer.future, OVER);
    beat_release(&b, BEATS);
    for (int i = 1; i < BEATS; i++) {
        CHECK(b.begun[i] - b.ended[i - 1] >= gap);
        CHECK(b.due_high[i] - b.ended[i - 1] >= gap);
    }
    CHECK(b.begun[BEATS - 1] - start >= (BEATS - 1) * gap);
}

/* The series ends when the pool is closed, and not before. */
static void series_ends_with_shutdown(fj_pool *p, series_start_action *start_series)
{
    struct beat b = {.last = 0};
    fj_future *f;

    CHECK_EQ(start_series(p, beat_action, &b, 0, 1, &f), FJ_OK);
    UNTIL(atomic_load(&b.runs) >= BEATS);
    state_check_open(f);
    CHECK_EQ(fj_pool_close(p), FJ_OK);
    check_pool_ended(p);
    check_cancelled(f);
    int runs = atomic_load(&b.runs);
    fj_future_unref(f);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&b.runs), runs);
}

/* A series that is never due again does not delay other timers. */
static void overflow_is_harmless(fj_pool *p)
{
    static const int64_t huge[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, INT64_MAX / 1000};
    struct beat often[8], later;
    fj_future *f[8];

    for (int i = 0; i < 8; i++) {
        memset(&often[i], 0, sizeof often[i]);
        CHECK_EQ((i % 2 == 0 ? fj_schedule_action_with_fixed_delay
                             : fj_schedule_action_at_fixed_rate)(p, beat_action, &often[i], 0,
                                                                 huge[i / 2], &f[i]),
                 FJ_OK);
    }
    for (int i = 0; i < 8; i++) UNTIL(atomic_load(&often[i].runs) == 1);
    UNTIL(fj_pool_delayed_count(p) == 8);
    for (int i = 0; i < 8; i++) CHECK(fj_timer_remaining(f[i]) > LONG_NS);
    beat_init(&later, 3);
    CHECK_EQ(fj_schedule_with_fixed_delay(p, &later.timer, MS, MS), FJ_OK);
    CHECK_EQ(fj_future_join(&later.timer.future), OVER);
    beat_release(&later, 3);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(fj_future_join(f[i]), FJ_ECANCELED);
        fj_future_unref(f[i]);
        CHECK_EQ(atomic_load(&often[i].runs), 1);
    }
    fjt_destroy(p);
}

/* Passes NULL for each argument that must not be NULL. */
static void schedule_nothing(void *arg)
{
    fj_pool *p = arg;
    fj_future *untouched = (fj_future *)(void *)p, *f = untouched;
    struct beat b = {.last = 0};
    fj_timer bodiless;

    CHECK_EQ(fj_schedule(p, NULL, 0), FJ_EINVAL);
    CHECK_EQ(fj_schedule_at_fixed_rate(p, NULL, 0, 1), FJ_EINVAL);
    CHECK_EQ(fj_schedule_with_fixed_delay(p, NULL, 0, 1), FJ_EINVAL);
    fj_timer_init(&bodiless, NULL);
    CHECK_EQ(fj_schedule(p, &bodiless, 0), FJ_EINVAL);
    CHECK_EQ(fj_schedule_at_fixed_rate(p, &bodiless, 0, 1), FJ_EINVAL);
    CHECK_EQ(fj_schedule_with_fixed_delay(p, &bodiless, 0, 1), FJ_EINVAL);
    CHECK_EQ(fj_schedule_call(p, NULL, &b, 0, &f), FJ_EINVAL);
    CHECK_EQ(fj_schedule_action(p, NULL, &b, 0, &f), FJ_EINVAL);
    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, NULL, &b, 0, 1, &f), FJ_EINVAL);
    CHECK_EQ(fj_schedule_action_with_fixed_delay(p, NULL, &b, 0, 1, &f), FJ_EINVAL);
    CHECK_EQ(fj_submit_with_timeout(p, NULL, &b, 0, NULL, &f), FJ_EINVAL);
    CHECK_EQ(fj_schedule_call(p, beat_call, &b, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_schedule_action(p, beat_action, &b, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, beat_action, &b, 0, 1, NULL), FJ_EINVAL);
    CHECK_EQ(fj_schedule_action_with_fixed_delay(p, beat_action, &b, 0, 1, NULL), FJ_EINVAL);
    CHECK_EQ(fj_submit_with_timeout(p, beat_call, &b, 0, NULL, NULL), FJ_EINVAL);
    for (int64_t period = 0; period >= -1; period--) {
        CHECK_EQ(fj_schedule_action_at_fixed_rate(p, beat_action, &b, 0, period, &f), FJ_EINVAL);
        CHECK_EQ(fj_schedule_action_with_fixed_delay(p, beat_action, &b, 0, period, &f), FJ_EINVAL);
    }
    CHECK(f == untouched);
    CHECK_EQ(fj_pool_delayed_count(p), 0);
    CHECK_EQ(atomic_load(&b.runs), 0);
}

/* Every scheduling call is refused and has no other effect. */
static void schedule_is_refused(fj_pool *p)
{
    fj_future *untouched = (fj_future *)(void *)p, *f = untouched;
    struct beat b;

    memset(&b, 0, sizeof b);
    CHECK_EQ(fj_schedule_call(p, beat_call, &b, 0, &f), FJ_EREJECTED);
    CHECK_EQ(fj_schedule_action(p, beat_action, &b, LONG_NS, &f), FJ_EREJECTED);
    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, beat_action, &b, 0, 1, &f), FJ_EREJECTED);
    CHECK_EQ(fj_schedule_action_with_fixed_delay(p, beat_action, &b, 0, 1, &f), FJ_EREJECTED);
    CHECK_EQ(fj_submit_with_timeout(p, beat_call, &b, LONG_NS, NULL, &f), FJ_EREJECTED);
    CHECK(f == untouched);
    beat_init(&b, 0);
    CHECK_EQ(fj_schedule(p, &b.timer, 0), FJ_EREJECTED);
    CHECK_EQ(fj_schedule_at_fixed_rate(p, &b.timer, 0, 1), FJ_EREJECTED);
    CHECK_EQ(fj_schedule_with_fixed_delay(p, &b.timer, 0, 1), FJ_EREJECTED);
    state_check_stuck(&b.timer.future);
    CHECK_EQ(atomic_load(&b.runs), 0);
    fj_pool *other = conformance_pool_of(1);
    CHECK_EQ(fj_schedule(other, &b.timer, 0), FJ_OK); /* it can be scheduled on another pool */
    beat_release(&b, 1);
    fjt_destroy(other);
}

/* ---- ForkJoinPool20Test ---------------------------------------------------------------------- */

FJ_TEST(ForkJoinPool20Test__testSchedule1, 30)
{
    fj_pool *p = conformance_pool();

    call_is_not_early(p);
    fjt_destroy(p);
}

/* The only worker is occupied until fj_pool_shutdown() has returned, so the task always runs after
 * it. */
FJ_TEST(ForkJoinPool20Test__testSchedule1b, 60)
{
    for (int i = 0; i < DELAYS; i++) {
        fj_pool *p = conformance_pool_of(1);
        struct job j;
        struct beat b = {.last = 0};
        fj_future *f;
        job_occupy(p, &j);
        int64_t start = fjt_now();
        CHECK_EQ(fj_schedule_call(p, beat_call, &b, delays[i], &f), FJ_OK);
        CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        CHECK(!fj_pool_is_terminated(p));
        state_check_open(f);
        job_release(&j, 1);
        CHECK_EQ(fj_future_join(f), FJ_OK);
        check_normal(f, &b);
        CHECK(b.begun[0] - start >= delays[i]);
        CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
        check_pool_ended(p);
        fj_future_unref(f);
        fjt_destroy(p);
        CHECK_EQ(atomic_load(&b.runs), 1);
    }
}

FJ_TEST(ForkJoinPool20Test__testSchedule3, 30)
{
    fj_pool *p = conformance_pool();

    action_is_not_early(p);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPool20Test__testSchedule4, 30)
{
    fj_pool *p = conformance_pool();

    first_run_is_not_early(p, fj_schedule_action_at_fixed_rate);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPool20Test__testSchedule4a, 30)
{
    fj_pool *p = conformance_pool();
    struct beat b = {.last = 2};
    fj_future *f;
    int64_t start = fjt_now();

    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, beat_action, &b, 0, 9 * MS, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), OVER);
    CHECK(b.begun[1] - start >= 9 * MS);
    check_failed(f, OVER);
    fj_future_unref(f);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&b.runs), 2);
}

FJ_TEST(ForkJoinPool20Test__testSchedule5, 30)
{
    fj_pool *p = conformance_pool();

    first_run_is_not_early(p, fj_schedule_action_with_fixed_delay);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPool20Test__testSchedule5a, 30)
{
    fj_pool *p = conformance_pool();
    struct beat b = {.last = 2};
    fj_future *f;

    CHECK_EQ(fj_schedule_action_with_fixed_delay(p, beat_action, &b, 0, 9 * MS, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), OVER);
    CHECK(b.begun[1] - b.ended[0] >= 9 * MS);
    check_failed(f, OVER);
    fj_future_unref(f);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&b.runs), 2);
}

FJ_TEST(ForkJoinPool20Test__testFixedRateSequence, 60)
{
    fj_pool *p = conformance_pool();

    for (int64_t period = 1000; period <= 4 * MS; period *= 8) rate_is_kept(p, period);
    series_ends_with_shutdown(p, fj_schedule_action_at_fixed_rate);
}

FJ_TEST(ForkJoinPool20Test__testFixedDelaySequence, 60)
{
    fj_pool *p = conformance_pool();

    for (int64_t gap = 1000; gap <= 4 * MS; gap *= 8) gaps_are_kept(p, gap);
    series_ends_with_shutdown(p, fj_schedule_action_with_fixed_delay);
}

FJ_TEST(ForkJoinPool20Test__testScheduleWithFixedDelay_overflow, 30)
{
    overflow_is_harmless(conformance_pool());
}

FJ_TEST(ForkJoinPool20Test__testShutdownNow_delayedTasks, 60)
{
    enum { N = 30 };
    fj_pool *p = conformance_pool();
    struct beat b = {.last = 0};
    fj_future *f[N];

    for (int i = 0; i < N; i += 3) {
        CHECK_EQ(fj_schedule_call(p, beat_call, &b, LONG_NS + i, &f[i]), FJ_OK);
        CHECK_EQ(fj_schedule_action_at_fixed_rate(p, beat_action, &b, LONG_NS, MS, &f[i + 1]),
                 FJ_OK);
        CHECK_EQ(fj_schedule_action_with_fixed_delay(p, beat_action, &b, LONG_NS, MS, &f[i + 2]),
                 FJ_OK);
    }
    CHECK_EQ(fj_pool_delayed_count(p), N);
    for (int i = 0; i < N; i++) state_check_stuck(f[i]);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    for (int i = 0; i < N; i++) check_cancelled(f[i]); /* already before the pool has ended */
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    check_pool_ended(p);
    CHECK_EQ(fj_pool_delayed_count(p), 0);
    for (int i = 0; i < N; i++) fj_future_unref(f[i]);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&b.runs), 0);
}

/* A body that runs longer than its timeout. */
struct overdue {
    bool stubborn; /* ends only when may_end is set, not when it is cancelled */
    atomic_int may_end, saw;
    _Atomic int64_t saw_at;
    /* Used by the on_timeout function. */
    fj_pool *pool;
    int code;
    atomic_int acted;
    _Atomic int64_t acted_at;
};

static int overdue_call(void *arg, void **result)
{
    struct overdue *o = arg;

    UNTIL(atomic_load(&o->may_end) || (!o->stubborn && fj_is_cancelled()));
    atomic_store(&o->saw_at, fjt_now());
    atomic_store(&o->saw, fj_is_cancelled());
    *result = o;
    return FJ_OK;
}

static void overdue_act(fj_future *f, void *arg)
{
    struct overdue *o = arg;

    atomic_store(&o->acted_at, fjt_now());
    CHECK(fj_current_pool() == NULL); /* the timer thread */
    CHECK_EQ(o->code == FJ_OK ? fj_future_complete(f, &o->code) : fj_future_fail(f, o->code), 1);
    atomic_fetch_add(&o->acted, 1);
}

/* This works also if the body occupies the only worker, because the timeout needs none. */
FJ_TEST(ForkJoinPool20Test__testSubmitWithTimeoutCancels, 30)
{
    fj_pool *p = conformance_pool();
    struct overdue polls = {.stubborn = false}, stubborn = {.stubborn = true};
    fj_future *f;

    int64_t start = fjt_now();
    CHECK_EQ(fj_submit_with_timeout(p, overdue_call, &polls, 6 * MS, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_ETIMEDOUT); /* Java reports it as cancelled */
    state_check_done(f, FJ_ETIMEDOUT, NULL);
    CHECK(fjt_now() - start >= 6 * MS);
    fj_future_unref(f);
    CHECK_EQ(fj_submit_with_timeout(p, overdue_call, &stubborn, 6 * MS, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_ETIMEDOUT);
    atomic_store(&stubborn.may_end, 1);
    state_check_done(f, FJ_ETIMEDOUT, NULL);
    fj_future_unref(f);
    CHECK_EQ(fj_pool_close(p), FJ_OK);
    CHECK(atomic_load(&polls.saw_at) == 0 || atomic_load(&polls.saw));
    CHECK(atomic_load(&polls.saw_at) == 0 || atomic_load(&polls.saw_at) - start >= 6 * MS);
    fjt_destroy(p);
}

/* The on_timeout function ends the future. It needs no worker, so the body may occupy the only
 * one. */
static void limit_acts(int code)
{
    fj_pool *p = conformance_pool();
    struct overdue o = {.stubborn = true, .pool = p, .code = code};
    void *result = NULL;
    fj_future *f;

    int64_t start = fjt_now();
    CHECK_EQ(fj_submit_with_timeout(p, overdue_call, &o, 6 * MS, overdue_act, &f), FJ_OK);
    CHECK_EQ(fj_future_get(f, LONG_NS, &result), code);
    CHECK(result == (code == FJ_OK ? (void *)&o.code : NULL));
    CHECK(atomic_load(&o.acted_at) - start >= 6 * MS);
    state_check_done(f, code, &o.code);
    atomic_store(&o.may_end, 1);
    CHECK_EQ(fj_pool_close(p), FJ_OK);
    state_check_done(f, code, &o.code); /* the result of the body comes too late */
    CHECK_EQ(atomic_load(&o.acted), 1);
    CHECK_EQ(atomic_load(&o.saw), 1); /* the body has seen that its result is discarded */
    fj_future_unref(f);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPool20Test__testSubmitWithCompleterTimeoutCompletes, 30)
{
    limit_acts(FJ_OK);
}

FJ_TEST(ForkJoinPool20Test__testSubmitWithTimeoutThrows, 30)
{
    limit_acts(77);
}

FJ_TEST(ForkJoinPool20Test__testSubmitWithTimeout_NoTimeout, 30)
{
    fj_pool *p = conformance_pool();
    struct overdue o = {.stubborn = true, .pool = p, .code = 77};
    int fails = 76;
    fj_future *f;

    atomic_store(&o.may_end, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_submit_with_timeout(p, i == 2 ? call_fail : overdue_call,
                                        i == 2 ? (void *)&fails : &o, LONG_NS,
                                        i == 1 ? overdue_act : NULL, &f),
                 FJ_OK);
        CHECK_EQ(fj_future_join(f), i == 2 ? 76 : FJ_OK);
        UNTIL(fj_pool_delayed_count(p) == 0); /* no timer is left that could cancel it */
        state_check_done(f, i == 2 ? 76 : FJ_OK, &o);
        fj_future_unref(f);
    }
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&o.acted), 0);
    CHECK_EQ(atomic_load(&o.saw), 0);
}

FJ_TEST(ForkJoinPool20Test__testCancelDelayedTasksOnShutdown, 30)
{
    fj_pool *p = conformance_pool();
    struct beat b = {.last = 0};
    fj_future *f;

    CHECK_EQ(fj_pool_cancel_delayed_on_shutdown(p), FJ_OK);
    CHECK_EQ(fj_schedule_call(p, beat_call, &b, LONG_NS, &f), FJ_OK);
    state_check_stuck(f); /* the setting itself cancels nothing */
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    check_cancelled(f);
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    check_pool_ended(p);
    fj_future_unref(f);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&b.runs), 0);
}

FJ_TEST(ForkJoinPool20Test__testInitialScheduleAfterShutdown, 30)
{
    for (int now = 0; now < 2; now++) {
        fj_pool *p = conformance_pool();
        CHECK_EQ(now ? fj_pool_shutdown_now(p) : fj_pool_shutdown(p), FJ_OK);
        schedule_is_refused(p);
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
        check_pool_ended(p);
        schedule_is_refused(p);
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        fjt_destroy(p);
    }
}

/* ---- ExecutorsTest --------------------------------------------------------------------------- */

FJ_TEST(ExecutorsTest__testNewSingleThreadScheduledExecutor, 30)
{
    fj_pool *p = conformance_pool_of(1);

    call_is_not_early(p);
    fjt_destroy(p);
}

/* Several timers, each with its own delay. */
FJ_TEST(ExecutorsTest__testNewScheduledThreadPool, 30)
{
    enum { N = 20 };
    fj_pool *p = conformance_pool_of(2);
    struct beat b[N];
    fj_future *f[N];
    int64_t start = fjt_now();

    memset(b, 0, sizeof b);
    for (int i = 0; i < N; i++)
        CHECK_EQ(fj_schedule_call(p, beat_call, &b[i], (N - i) * MS, &f[i]), FJ_OK);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(fj_future_join(f[i]), FJ_OK);
        CHECK(b[i].begun[0] - start >= (N - i) * MS);
        check_normal(f[i], &b[i]);
        fj_future_unref(f[i]);
    }
    fjt_destroy(p);
}

/* ---- ScheduledExecutorTest: delayed and periodic --------------------------------------------- */

FJ_TEST(ScheduledExecutorTest__testExecute, 30)
{
    fj_pool *p = conformance_pool_of(1);
    atomic_int ran = 0;

    CHECK_EQ(fj_execute(p, action_count, &ran), FJ_OK);
    UNTIL(atomic_load(&ran) == 1);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&ran), 1);
}

FJ_TEST(ScheduledExecutorTest__testSchedule1, 30)
{
    fj_pool *p = conformance_pool_of(1);

    embedded_is_not_early(p);
    call_is_not_early(p);
    fjt_destroy(p);
}

FJ_TEST(ScheduledExecutorTest__testSchedule3, 30)
{
    fj_pool *p = conformance_pool_of(1);

    action_is_not_early(p);
    fjt_destroy(p);
}

/* As first_run_is_not_early(), with a timer that is embedded in a struct of the test. */
static void embedded_first_run(fj_pool *p, series_start *start_series)
{
    for (int i = 0; i < DELAYS; i++) {
        struct beat b;
        beat_init(&b, 0);
        int64_t start = fjt_now();
        CHECK_EQ(start_series(p, &b.timer, delays[i], LONG_NS), FJ_OK);
        CHECK_EQ(start_series(p, &b.timer, delays[i], LONG_NS), FJ_EINVAL); /* already scheduled */
        UNTIL(atomic_load(&b.runs) == 1);
        UNTIL(fj_pool_delayed_count(p) == 1);
        CHECK(b.begun[0] - start >= delays[i]);
        state_check_stuck(&b.timer.future);
        CHECK_EQ(atomic_load(&b.released), 0);
        CHECK_EQ(fj_future_cancel(&b.timer.future, 1), 1);
        check_cancelled(&b.timer.future);
        beat_release(&b, 1);
    }
}

FJ_TEST(ScheduledExecutorTest__testSchedule4, 30)
{
    fj_pool *p = conformance_pool_of(1);

    embedded_first_run(p, fj_schedule_at_fixed_rate);
    fjt_destroy(p);
}

FJ_TEST(ScheduledExecutorTest__testSchedule5, 30)
{
    fj_pool *p = conformance_pool_of(1);

    embedded_first_run(p, fj_schedule_with_fixed_delay);
    fjt_destroy(p);
}

/* At a fixed rate the second run is due one period after the first one was due, not after it
 * ended. */
FJ_TEST(ScheduledExecutorTest__testFixedRateSequence, 60)
{
    fj_pool *p = conformance_pool_of(1);
    struct beat b;

    for (int64_t period = 1; period <= 4 * MS; period *= 16) rate_is_kept(p, period);
    beat_init(&b, 0);
    CHECK_EQ(fj_schedule_at_fixed_rate(p, &b.timer, 0, LONG_NS), FJ_OK);
    int64_t after = fjt_now();
    UNTIL(atomic_load(&b.runs) == 1);
    UNTIL(fj_pool_delayed_count(p) == 1);
    int64_t before = fjt_now();
    CHECK(before + fj_timer_remaining(&b.timer.future) <= after + LONG_NS);
    CHECK_EQ(fj_future_cancel(&b.timer.future, 0), 1);
    beat_release(&b, 1);
    series_ends_with_shutdown(p, fj_schedule_action_at_fixed_rate);
}

FJ_TEST(ScheduledExecutorTest__testFixedDelaySequence, 60)
{
    fj_pool *p = conformance_pool_of(1);
    struct beat b;

    for (int64_t gap = 1; gap <= 4 * MS; gap *= 16) gaps_are_kept(p, gap);
    beat_init(&b, 0);
    CHECK_EQ(fj_schedule_with_fixed_delay(p, &b.timer, 0, LONG_NS), FJ_OK);
    UNTIL(atomic_load(&b.runs) == 1);
    UNTIL(fj_pool_delayed_count(p) == 1);
    int64_t left = fj_timer_remaining(&b.timer.future);
    CHECK(fjt_now() + left >= b.ended[0] + LONG_NS);
    CHECK_EQ(fj_future_cancel(&b.timer.future, 0), 1);
    beat_release(&b, 1);
    series_ends_with_shutdown(p, fj_schedule_action_with_fixed_delay);
}

FJ_TEST(ScheduledExecutorTest__testScheduleWithFixedDelay_overflow, 30)
{
    overflow_is_harmless(conformance_pool_of(1));
}

FJ_TEST(ScheduledExecutorTest__testNullTaskSubmission, 30)
{
    fj_pool *p = conformance_pool_of(1);
    fj_future *untouched = (fj_future *)(void *)p, *f = untouched;

    schedule_nothing(p);
    inside(p, schedule_nothing, p);
    CHECK_EQ(fj_execute(p, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_submit_call(p, NULL, NULL, &f), FJ_EINVAL);
    CHECK_EQ(fj_submit_action(p, NULL, NULL, NULL, &f), FJ_EINVAL);
    CHECK_EQ(fj_future_submit(p, NULL), FJ_EINVAL);
    CHECK(f == untouched);
    fjt_destroy(p);
}

static void submit_is_refused(fj_pool *p)
{
    fj_future *untouched = (fj_future *)(void *)p, *f = untouched;
    atomic_int ran = 0;
    struct job j;

    CHECK_EQ(fj_execute(p, action_count, &ran), FJ_EREJECTED);
    CHECK_EQ(fj_submit_call(p, call_identity, &ran, &f), FJ_EREJECTED);
    CHECK_EQ(fj_submit_action(p, action_count, &ran, NULL, &f), FJ_EREJECTED);
    CHECK(f == untouched);
    job_init(&j, FJ_OK);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_EREJECTED);
    CHECK_EQ(fj_future_submit_external(p, &j.f), FJ_EREJECTED);
    CHECK_EQ(fj_future_submit_lazy(p, &j.f), FJ_EREJECTED);
    job_release(&j, 0);
    CHECK_EQ(atomic_load(&ran), 0);
    schedule_is_refused(p);
}

FJ_TEST(ScheduledExecutorTest__testSubmittedTasksRejectedWhenShutdown, 60)
{
    for (int now = 0; now < 2; now++) {
        for (int used = 0; used < 2; used++) { /* with and without an earlier timer */
            fj_pool *p = conformance_pool_of(1);
            struct job j;
            struct beat b;
            if (used) {
                beat_init(&b, 0);
                CHECK_EQ(fj_schedule(p, &b.timer, 0), FJ_OK);
                beat_release(&b, 1);
            }
            job_occupy(p, &j);
            CHECK_EQ(now ? fj_pool_shutdown_now(p) : fj_pool_shutdown(p), FJ_OK);
            submit_is_refused(p);
            CHECK_EQ(fj_pool_await_termination(p, MS), FJ_ETIMEDOUT);
            CHECK(!fj_pool_is_terminated(p));
            job_release(&j, 1);
            CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
            check_pool_ended(p);
            submit_is_refused(p);
            fjt_destroy(p);
        }
    }
}

/* ---- ScheduledExecutorTest: what the pool reports -------------------------------------------- */

/* A job that a timer starts. The timer thread does not count as a thread of the pool. */
struct late_job {
    fj_timer timer;
    bool polls;
    atomic_int begun, may_end, cancelled;
};

static int late_job_run(fj_task *t)
{
    struct late_job *j = (struct late_job *)t;

    atomic_fetch_add(&j->begun, 1);
    UNTIL(atomic_load(&j->may_end) || (j->polls && fj_is_cancelled()));
    atomic_store(&j->cancelled, fj_is_cancelled());
    return FJ_OK;
}

static void late_job_start(fj_pool *p, struct late_job *j, int64_t delay)
{
    memset(j, 0, sizeof *j);
    fj_timer_init(&j->timer, late_job_run);
    CHECK_EQ(fj_schedule(p, &j->timer, delay), FJ_OK);
}

static void late_job_release(struct late_job *j, int runs)
{
    atomic_store(&j->may_end, 1);
    fj_future_fini(&j->timer.future);
    CHECK_EQ(atomic_load(&j->begun), runs);
}

FJ_TEST(ScheduledExecutorTest__testGetActiveCount, 30)
{
    fj_pool *p = conformance_pool_of(2);
    struct late_job j;

    CHECK_EQ(fj_pool_active_count(p), 0);
    late_job_start(p, &j, MS);
    UNTIL(atomic_load(&j.begun));
    UNTIL(fj_pool_active_count(p) == 1); /* another worker may be searching */
    late_job_release(&j, 1);
    UNTIL(fj_pool_active_count(p) == 0);
    fjt_destroy(p);
}

FJ_TEST(ScheduledExecutorTest__testGetPoolSize, 30)
{
    fj_pool *p = conformance_pool_of(1);
    struct late_job j, waits;

    CHECK_EQ(fj_pool_thread_count(p), 0);
    late_job_start(p, &waits, LONG_NS);
    CHECK_EQ(fj_pool_thread_count(p), 0); /* no worker is needed yet */
    late_job_start(p, &j, MS);
    UNTIL(atomic_load(&j.begun));
    CHECK_EQ(fj_pool_thread_count(p), 1);
    late_job_release(&j, 1);
    CHECK_EQ(fj_future_cancel(&waits.timer.future, 0), 1);
    late_job_release(&waits, 0);
    CHECK_EQ(fj_pool_close(p), FJ_OK);
    check_pool_ended(p);
    fjt_destroy(p);
}

FJ_TEST(ScheduledExecutorTest__testIsShutdown, 30)
{
    fj_pool *p = conformance_pool_of(1);
    struct late_job j;

    CHECK(!fj_pool_is_shutdown(p));
    late_job_start(p, &j, 0);
    UNTIL(atomic_load(&j.begun));
    CHECK(!fj_pool_is_shutdown(p));
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    CHECK(fj_pool_is_shutdown(p));
    late_job_release(&j, 1);
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    CHECK(fj_pool_is_shutdown(p));
    fjt_destroy(p);
}

/* The pool has not ended while a timer waits or runs. */
FJ_TEST(ScheduledExecutorTest__testIsTerminated, 30)
{
    fj_pool *p = conformance_pool_of(1);
    struct late_job j, waits;

    late_job_start(p, &j, 0);
    late_job_start(p, &waits, LONG_NS);
    UNTIL(atomic_load(&j.begun));
    CHECK(!fj_pool_is_terminated(p));
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    CHECK(!fj_pool_is_terminated(p));
    late_job_release(&j, 1);
    CHECK_EQ(fj_pool_await_termination(p, 5 * MS), FJ_ETIMEDOUT);
    CHECK(!fj_pool_is_terminated(p));
    CHECK_EQ(fj_future_cancel(&waits.timer.future, 0), 1);
    late_job_release(&waits, 0);
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    CHECK(fj_pool_is_terminated(p));
    fjt_destroy(p);
}

FJ_TEST(ScheduledExecutorTest__testIsTerminating, 30)
{
    fj_pool *p = conformance_pool_of(1);
    struct late_job j;

    CHECK(!fj_pool_is_terminating(p));
    late_job_start(p, &j, 0);
    UNTIL(atomic_load(&j.begun));
    CHECK(!fj_pool_is_terminating(p));
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    CHECK(!fj_pool_is_terminating(p)); /* it is shut down, but not stopped */
    late_job_release(&j, 1);
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    CHECK(fj_pool_is_terminated(p));
    CHECK(!fj_pool_is_terminating(p));
    fjt_destroy(p);
}

FJ_TEST(ScheduledExecutorTest__testPurge, 30)
{
    enum { N = 60 };
    fj_pool *p = conformance_pool_of(1);
    struct beat b[N];

    for (int i = 0; i < N; i++) {
        beat_init(&b[i], 0);
        CHECK_EQ(i % 3 == 0   ? fj_schedule(p, &b[i].timer, LONG_NS)
                 : i % 3 == 1 ? fj_schedule_at_fixed_rate(p, &b[i].timer, LONG_NS, MS)
                              : fj_schedule_with_fixed_delay(p, &b[i].timer, LONG_NS, MS),
                 FJ_OK);
        CHECK_EQ(fj_pool_delayed_count(p), i + 1);
    }
    for (int i = 0, left = N; i < N; i++) { /* visits all in steps of seven */
        struct beat *gone = &b[i * 7 % N];
        CHECK_EQ(fj_future_cancel(&gone->timer.future, i % 2), 1);
        CHECK_EQ(fj_pool_delayed_count(p), --left);
        beat_release(gone, 0);
    }
    fjt_destroy(p);
}

/* ---- ScheduledExecutorTest: shutdown --------------------------------------------------------- */

/* As many jobs run as there are workers. The others are queued or wait for their time. */
FJ_TEST(ScheduledExecutorTest__testShutdownNow, 60)
{
    enum { MOST = 64 };
    int n = conformance_workers() < MOST / 4 ? conformance_workers() : MOST / 4;
    fj_pool *p = conformance_pool_of(n);
    static struct late_job j[MOST];
    int begun = 0, ended = 0, cancelled = 0;

    for (int i = 0; i < 4 * n; i++) {
        memset(&j[i], 0, sizeof j[i]);
        fj_timer_init(&j[i].timer, late_job_run);
        j[i].polls = true;
        CHECK_EQ(fj_schedule(p, &j[i].timer, i < 3 * n ? 0 : LONG_NS), FJ_OK);
    }
    do {
        begun = 0;
        for (int i = 0; i < 4 * n; i++) begun += atomic_load(&j[i].begun);
        fjt_sleep_us(50);
    } while (begun < n || fj_pool_delayed_count(p) > (uint64_t)n);
    CHECK_EQ(begun, n);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    check_pool_ended(p);
    begun = 0;
    for (int i = 0; i < 4 * n; i++) {
        bool ran = atomic_load(&j[i].begun) != 0;
        begun += ran;
        ended += fj_future_succeeded(&j[i].timer.future);
        cancelled += fj_future_is_cancelled(&j[i].timer.future);
        CHECK_EQ(atomic_load(&j[i].cancelled), ran);
        late_job_release(&j[i], ran);
    }
    CHECK_EQ(begun, n);
    CHECK_EQ(ended + cancelled, 4 * n);
    CHECK(cancelled >= 3 * n);
    fjt_destroy(p);
}

FJ_TEST(ScheduledExecutorTest__testShutdownNow_delayedTasks, 30)
{
    enum { N = 30 };
    fj_pool *p = conformance_pool_of(1);
    struct beat b[N];

    for (int i = 0; i < N; i++) {
        beat_init(&b[i], 0);
        CHECK_EQ(i % 3 == 0   ? fj_schedule(p, &b[i].timer, LONG_NS)
                 : i % 3 == 1 ? fj_schedule_at_fixed_rate(p, &b[i].timer, LONG_NS, 1)
                              : fj_schedule_with_fixed_delay(p, &b[i].timer, LONG_NS, 1),
                 FJ_OK);
    }
    CHECK_EQ(fj_pool_delayed_count(p), N);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    CHECK_EQ(fj_pool_delayed_count(p), 0);
    for (int i = 0; i < N; i++) {
        check_cancelled(&b[i].timer.future);
        beat_release(&b[i], 0);
    }
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    check_pool_ended(p);
    fjt_destroy(p);
}

/*
 * With the default, and with the setting that cancels waiting timers. The only worker is occupied
 * until fj_pool_shutdown() has returned, so that no timer except `ran` runs before.
 */
FJ_TEST(ScheduledExecutorTest__testShutdown_cancellation, 60)
{
    for (int cancels = 0; cancels < 2; cancels++) {
        fj_pool *p = conformance_pool_of(1);
        struct beat queued, once, rate, delay, ran;
        struct job j;
        if (cancels) CHECK_EQ(fj_pool_cancel_delayed_on_shutdown(p), FJ_OK);
        beat_init(&ran, 0); /* a series that has run once and waits for its next run */
        CHECK_EQ(fj_schedule_at_fixed_rate(p, &ran.timer, 0, LONG_NS), FJ_OK);
        UNTIL(atomic_load(&ran.runs) == 1);
        UNTIL(fj_pool_delayed_count(p) == 1);
        job_occupy(p, &j);
        beat_init(&queued, 0); /* a timer that has fired and is queued */
        CHECK_EQ(fj_schedule(p, &queued.timer, 0), FJ_OK);
        UNTIL(fj_pool_delayed_count(p) == 1);
        beat_init(&once, 0);
        CHECK_EQ(fj_schedule(p, &once.timer, cancels ? LONG_NS : 15 * MS), FJ_OK);
        beat_init(&rate, 0);
        CHECK_EQ(fj_schedule_at_fixed_rate(p, &rate.timer, LONG_NS, MS), FJ_OK);
        beat_init(&delay, 0);
        CHECK_EQ(fj_schedule_with_fixed_delay(p, &delay.timer, LONG_NS, MS), FJ_OK);
        CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        check_cancelled(&ran.timer.future);
        check_cancelled(&rate.timer.future);
        check_cancelled(&delay.timer.future);
        if (cancels)
            check_cancelled(&once.timer.future);
        else
            state_check_open(&once.timer.future);
        state_check_open(&queued.timer.future);
        schedule_is_refused(p);
        CHECK(!fj_pool_is_terminated(p));
        job_release(&j, 1);
        CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
        check_pool_ended(p);
        check_normal(&queued.timer.future, &queued);
        if (!cancels) check_normal(&once.timer.future, &once);
        beat_release(&queued, 1);
        beat_release(&once, !cancels);
        beat_release(&rate, 0);
        beat_release(&delay, 0);
        beat_release(&ran, 1);
        fjt_destroy(p);
    }
}

/* ---- ScheduledExecutorTest: submitting ------------------------------------------------------- */

FJ_TEST(ScheduledExecutorTest__testSubmitCallable, 30)
{
    fj_pool *p = conformance_pool_of(1);
    void *result = NULL;
    fj_future *f;

    CHECK_EQ(fj_submit_call(p, call_identity, &f, &f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == &f);
    check_normal(f, &f);
    fj_future_unref(f);
    fjt_destroy(p);
}

static void submit_action(void *given)
{
    fj_pool *p = conformance_pool_of(1);
    atomic_int ran = 0;
    fj_future *f;

    CHECK_EQ(fj_submit_action(p, action_count, &ran, given, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    CHECK_EQ(atomic_load(&ran), 1);
    check_normal(f, given);
    fj_future_unref(f);
    fjt_destroy(p);
}

FJ_TEST(ScheduledExecutorTest__testSubmitRunnable, 30)
{
    submit_action(NULL);
}

FJ_TEST(ScheduledExecutorTest__testSubmitRunnable2, 30)
{
    int given;

    submit_action(&given);
}

/* ---- ScheduledExecutorTest: bulk calls ------------------------------------------------------- */

/* Makes a check on a pool in which a timer waits. The timer is not affected. */
static void beside_a_timer(bulk_check *check, int64_t limit)
{
    fj_pool *p = conformance_pool_of(1);
    struct beat b;

    beat_init(&b, 0);
    CHECK_EQ(fj_schedule(p, &b.timer, LONG_NS), FJ_OK);
    check(p, limit);
    CHECK_EQ(fj_pool_delayed_count(p), 1);
    CHECK_EQ(fj_future_cancel(&b.timer.future, 0), 1);
    beat_release(&b, 0);
    fjt_destroy(p);
}

FJ_TEST(ScheduledExecutorTest__testInvokeAny1, 30)
{
    beside_a_timer(any_refuses_null_list, FJ_FOREVER);
}

FJ_TEST(ScheduledExecutorTest__testInvokeAny2, 30)
{
    beside_a_timer(any_refuses_empty_list, FJ_FOREVER);
}

FJ_TEST(ScheduledExecutorTest__testInvokeAny3, 30)
{
    beside_a_timer(any_refuses_null_element, FJ_FOREVER);
}

FJ_TEST(ScheduledExecutorTest__testInvokeAny4, 30)
{
    beside_a_timer(any_reports_failure, FJ_FOREVER);
}

FJ_TEST(ScheduledExecutorTest__testInvokeAny5, 30)
{
    beside_a_timer(any_gives_a_value, FJ_FOREVER);
}

FJ_TEST(ScheduledExecutorTest__testInvokeAll1, 30)
{
    beside_a_timer(all_refuses_null_list, FJ_FOREVER);
}

FJ_TEST(ScheduledExecutorTest__testInvokeAll2, 30)
{
    beside_a_timer(all_of_none_is_done, FJ_FOREVER);
}

FJ_TEST(ScheduledExecutorTest__testInvokeAll3, 30)
{
    beside_a_timer(all_refuses_null_element, FJ_FOREVER);
}

FJ_TEST(ScheduledExecutorTest__testInvokeAll4, 30)
{
    beside_a_timer(all_keeps_failures_apart, FJ_FOREVER);
}

FJ_TEST(ScheduledExecutorTest__testInvokeAll5, 30)
{
    beside_a_timer(all_gives_all_values, FJ_FOREVER);
}

FJ_TEST(ScheduledExecutorTest__testTimedInvokeAny1, 30)
{
    beside_a_timer(any_refuses_null_list, LONG_NS);
}

FJ_TEST(ScheduledExecutorTest__testTimedInvokeAny2, 30)
{
    beside_a_timer(any_refuses_empty_list, LONG_NS);
}

FJ_TEST(ScheduledExecutorTest__testTimedInvokeAny3, 30)
{
    beside_a_timer(any_refuses_null_element, LONG_NS);
}

FJ_TEST(ScheduledExecutorTest__testTimedInvokeAny4, 30)
{
    beside_a_timer(any_reports_failure, LONG_NS);
}

FJ_TEST(ScheduledExecutorTest__testTimedInvokeAny5, 30)
{
    beside_a_timer(any_gives_a_value, LONG_NS);
}

FJ_TEST(ScheduledExecutorTest__testTimedInvokeAll1, 30)
{
    beside_a_timer(all_refuses_null_list, LONG_NS);
}

FJ_TEST(ScheduledExecutorTest__testTimedInvokeAll2, 30)
{
    beside_a_timer(all_of_none_is_done, LONG_NS);
}

FJ_TEST(ScheduledExecutorTest__testTimedInvokeAll3, 30)
{
    beside_a_timer(all_refuses_null_element, LONG_NS);
}

FJ_TEST(ScheduledExecutorTest__testTimedInvokeAll4, 30)
{
    beside_a_timer(all_keeps_failures_apart, LONG_NS);
}

FJ_TEST(ScheduledExecutorTest__testTimedInvokeAll5, 30)
{
    beside_a_timer(all_gives_all_values, LONG_NS);
}

/*
 * On a loaded machine the timeout may expire before the short jobs have ended. The round then
 * proves nothing about them and is repeated with a longer timeout.
 */
FJ_TEST(ScheduledExecutorTest__testTimedInvokeAll6, 60)
{
    bool in_time = false;

    for (int64_t limit = 10 * MS; !in_time; limit *= 2) {
        fj_pool *p = conformance_pool_of(2);
        struct job j[3];
        fj_future *f[3];
        job_init(&j[0], FJ_OK);
        job_init(&j[1], FJ_OK);
        job_init_polls(&j[2]);
        for (int i = 0; i < 3; i++) f[i] = &j[i].f;
        int64_t begin = fjt_now();
        CHECK_EQ(fj_future_invoke_all(p, f, 3, limit), FJ_ETIMEDOUT);
        CHECK(fjt_now() - begin >= limit);
        check_cancelled(f[2]);
        for (int i = 0; i < 3; i++) fj_future_fini(f[i]);
        in_time = !fj_future_is_cancelled(f[0]) && !fj_future_is_cancelled(f[1]);
        for (int i = 0; i < 2; i++)
            if (in_time) check_normal(f[i], &j[i]);
        CHECK_EQ(atomic_load(&j[2].cancelled), atomic_load(&j[2].begun));
        fjt_destroy(p);
    }
}

/* ---- Tests without a counterpart in these classes -------------------------------------------- */

/* A timer with a longer delay has more time left, in whatever order the timers were scheduled. */
FJ_TEST(remaining_times_have_the_order_of_the_delays, 30)
{
    enum { N = 50 };
    fj_pool *p = conformance_pool();
    static struct beat b[N];
    int64_t left[N];

    int64_t before = fjt_now();
    for (int i = 0; i < N; i++) {
        struct beat *one = &b[i * 7 % N];
        beat_init(one, 0);
        CHECK_EQ(fj_schedule(p, &one->timer, LONG_NS + i * 7 % N * LONG_NS), FJ_OK);
    }
    int64_t after = fjt_now();
    for (int i = 0; i < N; i++) {
        int64_t low = fjt_now();
        left[i] = fj_timer_remaining(&b[i].timer.future);
        int64_t high = fjt_now();
        CHECK(high + left[i] >= before + LONG_NS + i * LONG_NS);
        CHECK(low + left[i] <= after + LONG_NS + i * LONG_NS);
    }
    for (int i = 1; i < N; i++) CHECK(left[i] - left[i - 1] > 0);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    for (int i = 0; i < N; i++) beat_release(&b[i], 0);
    fjt_destroy(p);
}

/* A timer that is done has no next run and no remaining time. */
FJ_TEST(no_time_remains_of_what_is_done, 30)
{
    fj_pool *p = conformance_pool();
    fj_future plain;
    struct beat b[3];

    fj_future_init(&plain, NULL);
    CHECK_EQ(fj_timer_remaining(&plain), 0);
    for (int i = 0; i < 3; i++) {
        beat_init(&b[i], 0);
        CHECK_EQ(fj_schedule(p, &b[i].timer, LONG_NS), FJ_OK);
        CHECK(fj_timer_remaining(&b[i].timer.future) > 0);
        CHECK_EQ(i == 0   ? fj_future_cancel(&b[i].timer.future, 0)
                 : i == 1 ? fj_future_complete(&b[i].timer.future, p)
                          : fj_future_fail(&b[i].timer.future, 5),
                 1);
        CHECK(fj_timer_remaining(&b[i].timer.future) <= 0);
        beat_release(&b[i], 0);
    }
    fjt_destroy(p);
}

/* Each waiting timer of any kind counts once. A timer that is queued or runs does not count. */
FJ_TEST(delayed_count_is_of_those_that_wait, 30)
{
    fj_pool *p = conformance_pool_of(1), *other = conformance_pool_of(1);
    struct beat b[3], queued;
    struct job j;

    CHECK_EQ(fj_pool_delayed_count(p), 0);
    job_occupy(p, &j);
    beat_init(&queued, 0);
    CHECK_EQ(fj_schedule(p, &queued.timer, 0), FJ_OK);
    for (int i = 0; i < 3; i++) beat_init(&b[i], 0);
    CHECK_EQ(fj_schedule(p, &b[0].timer, LONG_NS), FJ_OK);
    CHECK_EQ(fj_schedule_at_fixed_rate(p, &b[1].timer, LONG_NS, 1), FJ_OK);
    CHECK_EQ(fj_schedule_with_fixed_delay(p, &b[2].timer, INT64_MAX, 1), FJ_OK);
    UNTIL(fj_pool_delayed_count(p) == 3);
    CHECK_EQ(fj_pool_delayed_count(other), 0);
    state_check_open(&queued.timer.future);
    job_release(&j, 1);
    beat_release(&queued, 1);
    /* Completed by a call, so it no longer waits. */
    CHECK_EQ(fj_future_complete(&b[0].timer.future, &j), 1);
    CHECK_EQ(fj_pool_delayed_count(p), 2);
    check_normal(&b[0].timer.future, &j);
    CHECK_EQ(fj_future_fail(&b[1].timer.future, 5), 1);
    CHECK_EQ(fj_pool_delayed_count(p), 1);
    check_failed(&b[1].timer.future, 5);
    CHECK_EQ(fj_future_cancel(&b[2].timer.future, 1), 1);
    CHECK_EQ(fj_pool_delayed_count(p), 0);
    for (int i = 0; i < 3; i++) beat_release(&b[i], 0);
    fjt_destroy(other);
    fjt_destroy(p);
}

/* A timer that is done can be reset and then scheduled as another kind. */
FJ_TEST(timer_made_new_is_scheduled_again, 30)
{
    fj_pool *p = conformance_pool();
    struct beat b;

    for (int i = 0; i < 6; i++) {
        beat_init(&b, i < 3 ? 0 : 4);
        for (int again = 0; again < 4; again++) {
            bool series = again % 2 == 1;
            atomic_store(&b.runs, 0);
            atomic_store(&b.released, 0);
            CHECK_EQ(!series ? fj_schedule(p, &b.timer, i % 3 * MS)
                             : fj_schedule_with_fixed_delay(p, &b.timer, 0, i < 3 ? LONG_NS : 1),
                     FJ_OK);
            if (series && i < 3) {
                UNTIL(atomic_load(&b.runs) == 1);
                CHECK_EQ(fj_future_reinit(&b.timer.future), FJ_EBUSY);
                CHECK_EQ(fj_future_cancel(&b.timer.future, 0), 1);
            }
            CHECK_EQ(fj_future_join(&b.timer.future), !series ? FJ_OK
                                                      : i < 3 ? FJ_ECANCELED
                                                              : OVER);
            beat_release(&b, !series || i < 3 ? 1 : 4);
            CHECK_EQ(fj_future_reinit(&b.timer.future), FJ_OK);
        }
    }
    fjt_destroy(p);
}
