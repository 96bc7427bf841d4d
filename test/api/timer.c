/* SPDX-License-Identifier: MIT */
/*
 * timer.c - delayed and periodic tasks: never early, never after a cancel, never lost
 *
 * No test requires that something happens soon, because that depends on the machine.
 */
#include <forkjoin/block.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fjtest.h"
#include "plat/atomic.h"
#include "plat/plat.h"

#define MS ((int64_t)1000000)
#define HOUR ((int64_t)3600 * 1000 * MS)

#define UNTIL(condition)                       \
    do {                                       \
        while (!(condition)) fjt_sleep_us(50); \
    } while (0)

static int note_time(void *arg)
{
    atomic_store((_Atomic int64_t *)arg, fjt_now());
    return FJ_OK;
}

static int count_up(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    return FJ_OK;
}

static int give_arg(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

FJ_TEST(delayed_task_is_not_early, 30)
{
    static const int64_t delays[] = {INT64_MIN, -1, 0, 1, 1000, MS, 7 * MS, 80 * MS};
    fj_pool *p = fjt_pool(2, 0);
    fj_future *f[8];
    _Atomic int64_t at[8];
    int64_t start[8];

    for (int i = 0; i < 8; i++) {
        start[i] = fjt_now();
        CHECK_EQ(fj_schedule_action(p, note_time, &at[i], delays[i], &f[i]), FJ_OK);
    }
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(fj_future_join(f[i]), FJ_OK);
        CHECK(atomic_load(&at[i]) - start[i] >= delays[i] || delays[i] < 0);
        CHECK(fj_timer_remaining(f[i]) <= 0);
        fj_future_unref(f[i]);
    }
    CHECK_EQ(fj_pool_delayed_count(p), 0);
    fjt_destroy(p);
}

FJ_TEST(delayed_call_gives_its_result, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f;
    void *result = NULL;

    CHECK_EQ(fj_schedule_call(p, give_arg, &f, 2 * MS, &f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == &f);
    fj_future_unref(f);
    fjt_destroy(p);
}

FJ_TEST(misuse_of_timers_is_answered, 20)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f = NULL;
    fj_timer t;

    fj_timer_init(&t, NULL);
    CHECK_EQ(fj_schedule(p, &t, 0), FJ_EINVAL);
    CHECK_EQ(fj_schedule(p, NULL, 0), FJ_EINVAL);
    CHECK_EQ(fj_schedule_call(p, NULL, NULL, 0, &f), FJ_EINVAL);
    CHECK_EQ(fj_schedule_action(p, count_up, NULL, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, count_up, NULL, 0, 0, &f), FJ_EINVAL);
    CHECK_EQ(fj_schedule_action_with_fixed_delay(p, count_up, NULL, 0, -1, &f), FJ_EINVAL);
    CHECK_EQ(fj_submit_with_timeout(p, NULL, NULL, 0, NULL, &f), FJ_EINVAL);
    CHECK_EQ(fj_pool_cancel_delayed_on_shutdown(NULL), FJ_EINVAL);
    CHECK_EQ(fj_pool_cancel_delayed_on_shutdown(fj_common_pool()), FJ_ENOTSUP);
    CHECK(f == NULL);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    CHECK_EQ(fj_schedule_action(p, count_up, NULL, 0, &f), FJ_EREJECTED);
    fjt_destroy(p);
}

/* ---- Series ---------------------------------------------------------------------------------- */

struct series {
    atomic_int runs, inside, overlaps;
    int64_t begun[64], ended[64];
    int stop_at, code;
    fj_future *self;
};

static int series_run(void *arg)
{
    struct series *s = arg;
    int n = atomic_load(&s->runs);

    if (atomic_fetch_add(&s->inside, 1) != 0) atomic_fetch_add(&s->overlaps, 1);
    if (n < 64) s->begun[n] = fjt_now();
    if (n % 3 == 0) fjt_sleep_us(300);
    if (n < 64) s->ended[n] = fjt_now();
    atomic_fetch_sub(&s->inside, 1);
    atomic_fetch_add(&s->runs, 1);
    return n + 1 == s->stop_at ? s->code : FJ_OK;
}

FJ_TEST(fixed_rate_keeps_its_times, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    static struct series s;
    fj_future *f;
    int64_t start = fjt_now();

    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, series_run, &s, MS, MS, &f), FJ_OK);
    UNTIL(atomic_load(&s.runs) >= 20);
    CHECK_EQ(fj_future_cancel(f, 0), 1);
    CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
    for (int i = 0; i < 20; i++) CHECK(s.begun[i] - start >= (i + 1) * MS);
    fj_future_unref(f);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&s.overlaps), 0);
}

FJ_TEST(fixed_delay_counts_from_the_end, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    static struct series s;
    fj_future *f;

    CHECK_EQ(fj_schedule_action_with_fixed_delay(p, series_run, &s, 0, MS, &f), FJ_OK);
    UNTIL(atomic_load(&s.runs) >= 20);
    CHECK_EQ(fj_future_cancel(f, 1), 1);
    for (int i = 1; i < 20; i++) CHECK(s.begun[i] - s.ended[i - 1] >= MS);
    fj_future_unref(f);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&s.overlaps), 0);
}

FJ_TEST(series_ends_with_the_first_error, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    static struct series s = {.stop_at = 5, .code = 9};
    fj_future *f;

    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, series_run, &s, 0, 1000, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), 9);
    CHECK_EQ(fj_future_state(f), FJ_FUTURE_FAILED);
    CHECK_EQ(fj_future_cancel(f, 1), 0);
    fj_future_unref(f);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&s.runs), 5);
}

static int cancels_itself(void *arg)
{
    struct series *s = arg;

    UNTIL(fji_load_acquire(&s->self) != NULL);
    atomic_fetch_add(&s->runs, 1);
    CHECK_EQ(fj_future_cancel(s->self, 1), 1);
    return FJ_OK;
}

FJ_TEST(series_cancelled_from_inside_runs_once, 60)
{
    fj_pool *p = fjt_pool(2, 0);

    for (long i = fjt_rounds(300); i > 0; i--) {
        struct series s;
        fj_future *f;
        memset(&s, 0, sizeof s);
        CHECK_EQ(fj_schedule_action_at_fixed_rate(p, cancels_itself, &s, 0, 1, &f), FJ_OK);
        fji_store_release(&s.self, f);
        CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
        UNTIL(fj_pool_is_quiescent(p));
        CHECK_EQ(atomic_load(&s.runs), 1);
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        fj_future_unref(f);
    }
    fjt_destroy(p);
}

/* A series may be cancelled at any moment, also while a run ends or while its timer is set again.
 * Afterwards it does not run. */
FJ_TEST(series_cancelled_at_any_moment_is_over, 120)
{
    fj_pool *p = fjt_pool(2, 0);
    uint64_t random = fjt_seed();

    for (long i = fjt_rounds(20000); i > 0; i--) {
        fj_future *f;
        atomic_int runs = 0;
        CHECK_EQ(fj_schedule_action_at_fixed_rate(p, count_up, &runs, 0, 1, &f), FJ_OK);
        for (uint64_t k = fjt_random(&random) % 4096; k > 0; k--) __asm__ volatile("");
        CHECK_EQ(fj_future_cancel(f, (int)(i % 2)), 1);
        CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
        UNTIL(fji_load_acquire(&f->refs) == 1); /* the library has dropped its reference */
        int n = atomic_load(&runs);
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        CHECK_EQ(atomic_load(&runs), n);
        fj_future_unref(f);
    }
    fjt_destroy(p);
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

FJ_TEST(cancelled_timers_leave_at_once, 60)
{
    enum { N = 20000 };
    fj_pool *p = fjt_pool(1, 0);
    atomic_int runs = 0;
    fj_future *f;

    for (int i = 0; i < N; i++) {
        CHECK_EQ(fj_schedule_action(p, count_up, &runs, HOUR + i * MS, &f), FJ_OK);
        CHECK(fj_timer_remaining(f) > HOUR / 2);
        CHECK_EQ(fj_pool_delayed_count(p), 1);
        CHECK_EQ(fj_future_cancel(f, i % 2), 1);
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        CHECK_EQ(f->refs, 1); /* the library has dropped its reference */
        fj_future_unref(f);
    }
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&runs), 0);
}

static atomic_int released;

static void on_released(fj_future *f)
{
    (void)f;
    atomic_fetch_add(&released, 1);
}

static int never_run(fj_task *t)
{
    (void)t;
    fjt_fail(__FILE__, __LINE__, "a cancelled timer has run");
}

FJ_TEST(embedded_timer_is_released_once_when_it_is_cancelled, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_timer t;

    for (int i = 0; i < 100; i++) {
        fj_timer_init(&t, never_run);
        fj_future_set_release_fn(&t.future, on_released);
        CHECK_EQ(fj_schedule(p, &t, i % 2 == 0 ? HOUR : INT64_MAX), FJ_OK);
        CHECK_EQ(fj_schedule(p, &t, HOUR), FJ_EINVAL);
        CHECK_EQ(fj_future_reinit(&t.future), FJ_EBUSY);
        CHECK_EQ(fj_future_cancel(&t.future, 0), 1);
        CHECK_EQ(atomic_load(&released), i + 1);
        fj_future_fini(&t.future);
    }
    fjt_destroy(p);
}

/* Timers with huge delays do not delay other timers, and may be cancelled like them. */
FJ_TEST(overflowing_times_harm_nobody, 30)
{
    static const int64_t huge[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, INT64_MAX / 3};
    fj_pool *p = fjt_pool(1, 0);
    fj_future *never[4], *f;
    atomic_int runs = 0;

    for (int i = 0; i < 4; i++)
        CHECK_EQ(
            fj_schedule_action_with_fixed_delay(p, count_up, &runs, huge[i], huge[i], &never[i]),
            FJ_OK);
    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, count_up, &runs, 0, INT64_MAX, &f), FJ_OK);
    UNTIL(atomic_load(&runs) == 1);
    UNTIL(fj_pool_delayed_count(p) == 5);
    CHECK_EQ(fj_future_cancel(f, 0), 1);
    fj_future_unref(f);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(fj_future_cancel(never[i], 0), 1);
        fj_future_unref(never[i]);
    }
    CHECK_EQ(atomic_load(&runs), 1);
    fjt_destroy(p);
}

/* ---- Shutdown -------------------------------------------------------------------------------- */

FJ_TEST(shutdown_runs_what_is_due_once_and_ends_what_repeats, 60)
{
    for (long i = fjt_rounds(50); i > 0; i--) {
        fj_pool *p = fjt_pool(2, 0);
        atomic_int once = 0, often = 0;
        fj_future *a, *b;
        CHECK_EQ(fj_schedule_action(p, count_up, &once, 3 * MS, &a), FJ_OK);
        CHECK_EQ(fj_schedule_action_at_fixed_rate(p, count_up, &often, MS, MS, &b), FJ_OK);
        if (i % 2 == 0) UNTIL(atomic_load(&often) > 0);
        CHECK_EQ(fj_pool_close(p), FJ_OK);
        CHECK_EQ(atomic_load(&once), 1);
        CHECK(fj_future_succeeded(a) && fj_future_is_cancelled(b));
        int n = atomic_load(&often);
        fjt_sleep_us(2000);
        CHECK_EQ(atomic_load(&often), n);
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        fj_future_unref(a);
        fj_future_unref(b);
        fjt_destroy(p);
    }
}

FJ_TEST(shutdown_cancels_what_waits_if_it_was_told_to, 60)
{
    for (int after = 0; after < 2; after++) {
        fj_pool *p = fjt_pool(2, 0);
        atomic_int runs = 0;
        fj_future *f;
        CHECK_EQ(fj_schedule_action(p, count_up, &runs, HOUR, &f), FJ_OK);
        if (!after) CHECK_EQ(fj_pool_cancel_delayed_on_shutdown(p), FJ_OK);
        CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        if (after) CHECK_EQ(fj_pool_await_termination(p, MS), FJ_ETIMEDOUT);
        if (after) CHECK_EQ(fj_pool_cancel_delayed_on_shutdown(p), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        CHECK(fj_future_is_cancelled(f));
        CHECK_EQ(atomic_load(&runs), 0);
        fj_future_unref(f);
        fjt_destroy(p);
    }
}

FJ_TEST(pool_that_waits_for_a_timer_ends_when_that_is_cancelled, 60)
{
    for (long i = fjt_rounds(50); i > 0; i--) {
        fj_pool *p = fjt_pool(2, 0);
        fj_future *f;
        CHECK_EQ(fj_schedule_action(p, count_up, NULL, HOUR, &f), FJ_OK);
        CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        CHECK_EQ(fj_pool_is_terminated(p), 0);
        CHECK_EQ(fj_future_cancel(f, 0), 1);
        fj_future_unref(f);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        fjt_destroy(p);
    }
}

static fj_pool *race_pool;
static atomic_int race_go, race_runs;

static void *race_main(void *arg)
{
    (void)arg;
    UNTIL(atomic_load(&race_go));
    CHECK_EQ(atomic_load(&race_go) == 1 ? fj_pool_shutdown(race_pool)
                                        : fj_pool_shutdown_now(race_pool),
             FJ_OK);
    return NULL;
}

/* Each timer is run, cancelled or rejected; none is lost. */
FJ_TEST(timers_race_with_shutdown, 120)
{
    for (long i = fjt_rounds(1000); i > 0; i--) {
        fj_future *f[40];
        int n = 0, ran = 0, gone = 0;
        pthread_t t;
        race_pool = fjt_pool(2, 0);
        atomic_store(&race_go, 0);
        atomic_store(&race_runs, 0);
        pthread_create(&t, NULL, race_main, NULL);
        for (int k = 0; k < 40; k++) {
            if (k == 20) atomic_store(&race_go, 1 + (int)(i % 2));
            int err = fj_schedule_action(race_pool, count_up, &race_runs, k % 4 * 20000, &f[n]);
            CHECK(err == FJ_OK || err == FJ_EREJECTED);
            if (err == FJ_OK) n++;
        }
        pthread_join(t, NULL);
        for (int k = 0; k < n; k++) {
            int code = fj_future_join(f[k]);
            CHECK(code == FJ_OK || code == FJ_ECANCELED);
            if (code == FJ_OK)
                ran++;
            else
                gone++;
            fj_future_unref(f[k]);
        }
        CHECK_EQ(ran + gone, n);
        fjt_destroy(race_pool);
        CHECK_EQ(atomic_load(&race_runs), ran);
    }
}

/* ---- Time limits ----------------------------------------------------------------------------- */

static int sleeps_long(void *arg, void **result)
{
    (void)arg;
    (void)result;
    return fj_sleep_ns(HOUR);
}

static void completes(fj_future *f, void *arg)
{
    CHECK_EQ(fj_future_complete(f, arg), 1);
}

FJ_TEST(submission_with_a_limit_fails_after_it, 60)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f;
    void *result = NULL;
    int x;

    CHECK_EQ(fj_submit_with_timeout(p, sleeps_long, &x, 2 * MS, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_ETIMEDOUT);
    /* The future has failed. It is not cancelled, and it is not just this wait that timed out. */
    CHECK_EQ(fj_future_state(f), FJ_FUTURE_FAILED);
    CHECK_EQ(fj_future_error(f), FJ_ETIMEDOUT);
    CHECK_EQ(fj_future_wait(f, 0), FJ_OK);
    CHECK_EQ(fj_future_cancel(f, 0), 0);
    fj_future_unref(f);
    CHECK_EQ(fj_submit_with_timeout(p, sleeps_long, &x, 2 * MS, completes, &f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == &x);
    fj_future_unref(f);
    fjt_destroy(p); /* no body sleeps any more */
    p = fjt_pool(1, 0);
    CHECK_EQ(fj_submit_with_timeout(p, give_arg, &x, HOUR, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    UNTIL(fj_pool_delayed_count(p) == 0); /* disarmed */
    fj_future_unref(f);
    fjt_destroy(p);
}

FJ_TEST(limit_and_end_may_come_together, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    uint64_t random = fjt_seed();

    for (long i = fjt_rounds(5000); i > 0; i--) {
        fj_future *f;
        int64_t limit = (int64_t)(fjt_random(&random) % 60000);
        CHECK_EQ(fj_submit_with_timeout(p, give_arg, &i, limit, NULL, &f), FJ_OK);
        int code = fj_future_join(f);
        CHECK(code == FJ_OK || code == FJ_ETIMEDOUT);
        fj_future_unref(f);
    }
    UNTIL(fj_pool_delayed_count(p) == 0);
    fjt_destroy(p);
}

/* ---- Special pools and processes ------------------------------------------------------------- */

FJ_TEST(common_pool_without_workers_runs_timers, 30)
{
    fj_future *f;
    atomic_int runs = 0;

    setenv("FORKJOIN_PARALLELISM", "0", 1);
    CHECK_EQ(fj_common_parallelism(), 0);
    CHECK_EQ(fj_schedule_action(NULL, count_up, &runs, MS, &f), FJ_OK);
    UNTIL(atomic_load(&runs) == 1);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fj_future_unref(f);
}

FJ_TEST(child_of_fork_has_no_timers_of_its_parent, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_future *f, *g;
    atomic_int runs = 0;
    int status;

    if (FJI_TSAN) fjt_skip("ThreadSanitizer knows no threads after fork()");
    if (FJI_ASAN) fjt_skip("AddressSanitizer's allocator keeps the locks of threads that are gone");
    CHECK_EQ(fj_schedule_action(p, count_up, &runs, 40 * MS, &f), FJ_OK);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
        CHECK_EQ(fj_schedule_action(p, count_up, &runs, 60 * MS, &g), FJ_OK);
        CHECK_EQ(fj_future_join(g), FJ_OK);
        CHECK_EQ(atomic_load(&runs), 1);
        CHECK_EQ(fj_pool_destroy(p), FJ_OK);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fj_future_unref(f);
    fjt_destroy(p);
}

FJ_TEST(first_timer_without_memory_or_thread_gets_a_code, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_future *f = NULL;
    atomic_int runs = 0;

    long before = fji_fault_calls(FJI_FAULT_ALLOC);
    CHECK_EQ(fj_schedule_action(p, count_up, &runs, HOUR, &f), FJ_OK);
    if (fji_fault_calls(FJI_FAULT_ALLOC) == before) fjt_skip("built without faults");
    CHECK_EQ(fj_future_cancel(f, 0), 1);
    fj_future_unref(f);
    fjt_destroy(p);
    for (int n = 1; n <= 2; n++) {
        p = fjt_pool(2, 0);
        f = NULL;
        fji_fault_set(FJI_FAULT_ALLOC, n, 1);
        CHECK_EQ(fj_schedule_action(p, count_up, &runs, 0, &f), FJ_ENOMEM);
        fji_fault_set(FJI_FAULT_ALLOC, 1, 0);
        fji_fault_set(FJI_FAULT_THREAD, 1, 1);
        CHECK_EQ(fj_schedule_action(p, count_up, &runs, 0, &f), FJ_EAGAIN);
        fji_fault_set(FJI_FAULT_THREAD, 1, 0);
        CHECK(f == NULL);
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        CHECK_EQ(fj_schedule_action(p, count_up, &runs, 0, &f), FJ_OK);
        CHECK_EQ(fj_future_join(f), FJ_OK);
        fj_future_unref(f);
        fjt_destroy(p);
    }
    CHECK_EQ(atomic_load(&runs), 2);
}

FJ_TEST(timer_thread_sleeps_while_nothing_is_due, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f[100];

    for (int i = 0; i < 100; i++)
        CHECK_EQ(fj_schedule_action(p, count_up, NULL, HOUR + i * HOUR / 7, &f[i]), FJ_OK);
    fjt_sleep_us(20000);
    int64_t cpu = fjt_cpu();
    fjt_sleep_us(200000);
    CHECK(fjt_cpu() - cpu < 20 * MS);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(fj_future_cancel(f[i], 0), 1);
        fj_future_unref(f[i]);
    }
    fjt_destroy(p);
}
