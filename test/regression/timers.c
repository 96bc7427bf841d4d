/* SPDX-License-Identifier: MIT */
/*
 * timers.c - moments at which a timer is lost, runs once too often, or uses freed memory
 *
 * The thread that cancels a timer, the timer thread, the worker that runs it and a shutdown can all
 * remove it. The last of them releases its memory. unit/wheel.c tests the order in which the timing
 * wheel returns timers, without threads.
 *
 * "TRAPS n" refers to row n of docs/traps.md. In this file the comment above a test describes what
 * must hold.
 */
#define _GNU_SOURCE
#include <forkjoin/block.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "regression.h"

#define MS ((int64_t)1000000)
#define LONG_NS (3600 * 1000 * MS)

static int count_call(void *arg, void **result)
{
    *result = arg;
    return regression_count(arg);
}

/* ---- Timers on the heap ---------------------------------------------------------------------- */

/* A timer on the heap. Its release function overwrites and frees it. */
struct loose {
    fj_timer timer;
    atomic_int *runs, *released;
};

static int loose_run(fj_task *t)
{
    atomic_fetch_add(((struct loose *)t)->runs, 1);
    return FJ_OK;
}

static void loose_released(fj_future *f)
{
    atomic_int *released = ((struct loose *)f)->released;

    memset(f, 0xA5, sizeof(struct loose));
    free(f);
    atomic_fetch_add(released, 1);
}

static struct loose *loose_make(atomic_int *runs, atomic_int *released)
{
    struct loose *l = malloc(sizeof *l);

    CHECK(l != NULL);
    fj_timer_init(&l->timer, loose_run);
    fj_future_set_release_fn(&l->timer.future, loose_released);
    l->runs = runs;
    l->released = released;
    return l;
}

/* ---- TRAPS 15 -------------------------------------------------------------------------------- */

struct waiter {
    fj_future *f;
    int how, code;
};

static void *wait_for_timer(void *arg)
{
    struct waiter *w = arg;
    size_t which;

    if (w->how == 0) w->code = fj_future_join(w->f);
    if (w->how == 1) w->code = fj_future_get(w->f, LONG_NS, NULL);
    if (w->how == 2) w->code = fj_future_wait_any(&w->f, 1, FJ_FOREVER, &which);
    if (w->how == 3) w->code = fj_future_wait_all(&w->f, 1, LONG_NS);
    return NULL;
}

static atomic_int held_begun;

static int held(void *go)
{
    atomic_fetch_add(&held_begun, 1);
    UNTIL(atomic_load((atomic_int *)go) || fj_is_stopping());
    return FJ_OK;
}

static int held_call(void *go, void **result)
{
    *result = go;
    return held(go);
}

/* TRAPS 15: when the pool stops, every thread that waits for a timer returns. The timers are one
 * that waits, a series between two runs, one that is queued, and the timeout of a future. */
FJ_TEST(stop_wakes_those_who_wait_for_timers, 60)
{
    enum { KINDS = 5, WAYS = 4 };

    for (long round = fjt_rounds(40); round > 0; round--) {
        fj_pool *p = fjt_pool(1, 0);
        atomic_int runs = 0, go = 0;
        fj_future *f[KINDS];
        struct waiter w[KINDS * WAYS];
        pthread_t t[KINDS * WAYS];
        CHECK_EQ(fj_schedule_action_at_fixed_rate(p, regression_count, &runs, 0, LONG_NS, &f[0]),
                 FJ_OK);
        UNTIL(atomic_load(&runs) == 1);
        UNTIL(fj_pool_delayed_count(p) == 1);
        atomic_store(&held_begun, 0);
        CHECK_EQ(fj_execute(p, held, &go), FJ_OK);
        UNTIL(atomic_load(&held_begun)); /* the only worker is occupied, so nothing else runs */
        CHECK_EQ(fj_schedule_action(p, regression_count, &runs, LONG_NS, &f[1]), FJ_OK);
        CHECK_EQ(fj_schedule_action(p, regression_count, &runs, INT64_MAX, &f[2]), FJ_OK);
        CHECK_EQ(fj_submit_with_timeout(p, count_call, &runs, LONG_NS, NULL, &f[3]), FJ_OK);
        CHECK_EQ(fj_schedule_action(p, regression_count, &runs, 0, &f[4]), FJ_OK); /* queued soon */
        for (int i = 0; i < KINDS * WAYS; i++) {
            w[i] = (struct waiter){.f = f[i % KINDS], .how = i / KINDS};
            t[i] = regression_thread(wait_for_timer, &w[i]);
        }
        /* In odd rounds the stop comes at any moment. */
        if (round % 2 == 0) UNTIL(fj_pool_delayed_count(p) == 4);
        CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
        for (int i = 0; i < KINDS * WAYS; i++) {
            pthread_join(t[i], NULL);
            CHECK_EQ(w[i].code, w[i].how < 2 ? FJ_ECANCELED : FJ_OK);
        }
        for (int i = 0; i < KINDS; i++) {
            CHECK(fj_future_is_cancelled(f[i]));
            fj_future_unref(f[i]);
        }
        fjt_destroy(p);
        CHECK_EQ(atomic_load(&runs), 1);
    }
}

static int open_ended(void *arg, void **result)
{
    (void)arg;
    (void)result;
    return FJ_PENDING;
}

/* TRAPS 15: a body that returns FJ_PENDING leaves its future open. The timeout still ends it. */
FJ_TEST(limit_ends_what_its_body_left_open, 20)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_future *f;

    CHECK_EQ(fj_submit_with_timeout(p, open_ended, NULL, 40 * MS, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_ETIMEDOUT);
    fj_future_unref(f);
    CHECK_EQ(fj_pool_delayed_count(p), 0);
    fjt_destroy(p);
}

/* ---- TRAPS 35 -------------------------------------------------------------------------------- */

static void fail_with_9(fj_future *f, void *arg)
{
    (void)arg;
    CHECK_EQ(fj_future_fail(f, 9), 1);
}

static int nine_at_last(void *arg)
{
    return atomic_fetch_add((atomic_int *)arg, 1) == 4 ? 9 : FJ_OK;
}

static int sleeps_long(void *arg, void **result)
{
    (void)arg;
    (void)result;
    return fj_sleep_ns(LONG_NS);
}

/* TRAPS 35: a pool without workers gets one for its timers. Every kind of timer works there, and
 * the callers only wait. */
FJ_TEST(common_pool_of_no_workers_runs_every_kind_of_timer, 30)
{
    atomic_int runs = 0;
    fj_future *f;

    setenv("FORKJOIN_PARALLELISM", "0", 1);
    CHECK_EQ(fj_common_parallelism(), 0);
    CHECK_EQ(fj_schedule_call(NULL, count_call, &runs, MS, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fj_future_unref(f);
    CHECK_EQ(fj_schedule_action_at_fixed_rate(NULL, nine_at_last, &runs, 0, 1000, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), 9);
    fj_future_unref(f);
    CHECK_EQ(atomic_load(&runs), 5);
    CHECK_EQ(fj_submit_with_timeout(NULL, sleeps_long, NULL, MS, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_ETIMEDOUT);
    fj_future_unref(f);
    CHECK_EQ(fj_submit_with_timeout(NULL, sleeps_long, NULL, MS, fail_with_9, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), 9);
    fj_future_unref(f);
    CHECK_EQ(fj_pool_delayed_count(NULL), 0);
}

static atomic_int refusals;

static int refuse_some(fj_pool *pool, void *arg)
{
    (void)pool;
    (void)arg;
    return atomic_fetch_sub(&refusals, 1) <= 0;
}

/* TRAPS 35: no timer is lost while the pool is refused workers. A timer that fires without a worker
 * runs when a worker starts. */
FJ_TEST(timers_outlast_the_refusal_of_workers, 60)
{
    fj_pool_options o = {0};
    atomic_int runs = 0;
    fj_future *f, *g;

    o.parallelism = 2;
    o.allow_thread = refuse_some;
    atomic_store(&refusals, 3);
    fj_pool *p = fjt_pool_with(&o);
    CHECK_EQ(fj_schedule_action(p, regression_count, &runs, 0, &f), FJ_OK);
    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, nine_at_last, &runs, MS, MS, &g), FJ_OK);
    while (!fj_future_is_done(f)) { /* each of these fires and requests a worker again */
        fj_future *h;
        CHECK_EQ(fj_schedule_action(p, regression_count, &runs, MS, &h), FJ_OK);
        fj_future_unref(h);
        fjt_sleep_us(2000);
    }
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fj_future_unref(f);
    CHECK_EQ(fj_future_cancel(g, 0) || fj_future_is_done(g), 1);
    fj_future_unref(g);
    fjt_destroy(p);
}

/* ---- TRAPS 54 -------------------------------------------------------------------------------- */

struct one {
    fj_timer timer;
    int64_t not_before;
    atomic_int runs, early;
    bool far, gone;
};

static int one_run(fj_task *t)
{
    struct one *o = (struct one *)t;

    if (fjt_now() < o->not_before) atomic_store(&o->early, 1);
    atomic_fetch_add(&o->runs, 1);
    return FJ_OK;
}

/* TRAPS 54: many of the near and far timers are cancelled in the middle. Every near timer fires,
 * although others are hours away. No timer fires early or twice. */
FJ_TEST(timers_taken_out_of_the_middle_hide_none, 120)
{
    enum { N = 4000 };
    static struct one o[N];
    fj_pool *p = fjt_pool(2, 0);
    uint64_t seed = fjt_seed();

    for (long round = fjt_rounds(10); round > 0; round--) {
        for (int i = 0; i < N; i++) {
            memset(&o[i], 0, sizeof o[i]);
            fj_timer_init(&o[i].timer, one_run);
            o[i].far = regression_below(&seed, 4) == 0;
            int64_t delay = regression_below(&seed, 8 << regression_below(&seed, 20));
            if (o[i].far) delay += LONG_NS;
            o[i].not_before = fjt_now() + delay;
            CHECK_EQ(fj_schedule(p, &o[i].timer, delay), FJ_OK);
            struct one *other = &o[regression_below(&seed, i + 1)];
            if (regression_below(&seed, 3) == 0 && !fj_future_is_done(&other->timer.future)) {
                int mine = fj_future_cancel(&other->timer.future, 0);
                other->gone = other->gone || mine;
            }
        }
        for (int i = 0; i < N; i++)
            if (o[i].far && !o[i].gone) CHECK_EQ(fj_future_cancel(&o[i].timer.future, 0), 1);
        for (int i = 0; i < N; i++) {
            bool gone = o[i].far || o[i].gone;
            CHECK_EQ(fj_future_join(&o[i].timer.future), gone ? FJ_ECANCELED : FJ_OK);
            fj_future_fini(&o[i].timer.future);
            CHECK(atomic_load(&o[i].runs) == !gone || (o[i].gone && !o[i].far));
            CHECK(atomic_load(&o[i].runs) <= 1);
            CHECK_EQ(atomic_load(&o[i].early), 0);
        }
        CHECK_EQ(fj_pool_delayed_count(p), 0);
    }
    fjt_destroy(p);
}

/* ---- TRAPS 55 -------------------------------------------------------------------------------- */

/* TRAPS 55: delays and timeouts at the ends of their range, with timers that are due at once in
 * between. */
FJ_TEST(times_at_the_edges_do_not_wrap, 30)
{
    static const int64_t never[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2 + 1, INT64_MAX / 2};
    static const int64_t now[] = {0, -1, INT64_MIN, INT64_MIN + 1};
    fj_pool *p = fjt_pool(2, 0);
    fj_future *f[4], *limited[4], *g;
    atomic_int runs = 0;

    for (int i = 0; i < 4; i++) {
        CHECK_EQ(fj_schedule_action(p, regression_count, &runs, never[i], &f[i]), FJ_OK);
        CHECK(fj_timer_remaining(f[i]) > INT64_MAX / 4);
        CHECK_EQ(fj_schedule_action(p, regression_count, &runs, now[i], &g), FJ_OK);
        CHECK_EQ(fj_future_join(g), FJ_OK);
        CHECK(fj_timer_remaining(g) <= 0);
        fj_future_unref(g);
        CHECK_EQ(atomic_load(&runs), i + 1);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(fj_submit_with_timeout(p, count_call, &runs, never[i], NULL, &limited[i]), FJ_OK);
        CHECK_EQ(fj_future_join(limited[i]), FJ_OK);
        fj_future_unref(limited[i]);
        CHECK_EQ(fj_submit_with_timeout(p, sleeps_long, NULL, now[i], NULL, &g), FJ_OK);
        CHECK_EQ(fj_future_join(g), FJ_ETIMEDOUT);
        fj_future_unref(g);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(fj_timer_remaining(f[i]) > INT64_MAX / 4);
        CHECK_EQ(fj_future_cancel(f[i], 0), 1);
        fj_future_unref(f[i]);
    }
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&runs), 8);
}

/* ---- TRAPS 56 -------------------------------------------------------------------------------- */

/* TRAPS 56: a shutdown while timers fire. Every accepted timer runs once, and the pool waits for
 * it. A series does not keep the pool alive, whether it waits, is queued or runs. */
FJ_TEST(shutdown_while_timers_fire_loses_none, 120)
{
    uint64_t seed = fjt_seed();

    for (long round = fjt_rounds(2000); round > 0; round--) {
        fj_pool *p = fjt_pool(1 + (int)(round % 2), 0);
        atomic_int once = 0, often = 0;
        fj_future *f[4], *series;
        CHECK_EQ((round % 4 < 2 ? fj_schedule_action_at_fixed_rate
                                : fj_schedule_action_with_fixed_delay)(p, regression_count, &often,
                                                                       0, 1, &series),
                 FJ_OK);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(fj_schedule_action(p, regression_count, &once, regression_below(&seed, 120000),
                                        &f[i]),
                     FJ_OK);
        regression_spin_ns(regression_below(&seed, 150000));
        CHECK_EQ(fj_pool_close(p), FJ_OK);
        CHECK_EQ(atomic_load(&once), 4);
        CHECK(fj_future_is_cancelled(series));
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        for (int i = 0; i < 4; i++) {
            CHECK(fj_future_succeeded(f[i]));
            fj_future_unref(f[i]);
        }
        int runs = atomic_load(&often);
        fj_future_unref(series);
        fjt_destroy(p);
        CHECK_EQ(atomic_load(&often), runs);
    }
}

struct canceller {
    fj_future *f;
    atomic_int *go;
};

static void *cancel_when_told(void *arg)
{
    struct canceller *c = arg;

    while (!atomic_load(c->go)) {}
    (void)fj_future_cancel(c->f, 0);
    return NULL;
}

/* TRAPS 56: the pool waits only for its timers, and they are cancelled while it is being destroyed.
 * The cancelling thread does not use the pool once the pool may end. */
FJ_TEST(cancelling_the_last_timers_of_a_pool_that_goes, 120)
{
    for (long round = fjt_rounds(1500); round > 0; round--) {
        fj_pool *p = fjt_pool(1, 0);
        atomic_int runs = 0, go = 0;
        struct canceller c[2];
        fj_future *f[2];
        pthread_t t[2];
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(fj_schedule_action(p, regression_count, &runs, LONG_NS, &f[i]), FJ_OK);
            c[i] = (struct canceller){.f = f[i], .go = &go};
            t[i] = regression_thread(cancel_when_told, &c[i]);
        }
        if (round % 2 == 0) CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        atomic_store(&go, 1);
        fjt_destroy(p);
        for (int i = 0; i < 2; i++) {
            pthread_join(t[i], NULL);
            CHECK(fj_future_is_cancelled(f[i]));
            fj_future_unref(f[i]);
        }
        CHECK_EQ(atomic_load(&runs), 0);
    }
}

/* ---- TRAPS 57 -------------------------------------------------------------------------------- */

/* TRAPS 57: a million timers of one hour, each cancelled at once, leave nothing in the count of
 * timers or in memory. One timer that stayed would cost at least 150 bytes. */
FJ_TEST(cancelled_timers_do_not_pile_up, 120)
{
    long n = fjt_rounds(1000000), warm = n / 100;
    fj_pool *p = fjt_pool(1, 0);
    size_t before = 0;
    atomic_int runs = 0;
    fj_future *f;

    for (long i = 0; i < n; i++) {
        if (i == warm) before = mallinfo2().uordblks;
        CHECK_EQ(fj_schedule_action(p, regression_count, &runs, LONG_NS + i, &f), FJ_OK);
        CHECK_EQ(fj_future_cancel(f, 0), 1);
        fj_future_unref(f);
    }
    CHECK_EQ(fj_pool_delayed_count(p), 0);
    if (!fjt_sanitized()) CHECK(mallinfo2().uordblks <= before + 100000);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&runs), 0);
}

/* TRAPS 57: the same for the timeouts of calls that ended in time. */
FJ_TEST(limits_that_were_kept_do_not_pile_up, 120)
{
    long n = fjt_rounds(50000), warm = n / 10;
    fj_pool *p = fjt_pool(2, 0);
    size_t before = 0;
    atomic_int runs = 0;
    fj_future *f;

    for (long i = 0; i < n; i++) {
        if (i == warm) before = mallinfo2().uordblks;
        CHECK_EQ(fj_submit_with_timeout(p, count_call, &runs, LONG_NS, NULL, &f), FJ_OK);
        CHECK_EQ(fj_future_join(f), FJ_OK);
        CHECK_EQ(fj_pool_delayed_count(p), 0); /* a future that is done has no timeout any more */
        fj_future_unref(f);
    }
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    if (!fjt_sanitized()) CHECK(mallinfo2().uordblks <= before + 100000);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&runs), n);
}

/* TRAPS 57: many timers are cancelled in an order that does not depend on their times. */
FJ_TEST(crowd_of_timers_leaves_in_any_order, 60)
{
    enum { N = 20000 };
    static struct one o[N];
    fj_pool *p = fjt_pool(1, 0);
    uint64_t seed = fjt_seed();

    for (int i = 0; i < N; i++) {
        memset(&o[i], 0, sizeof o[i]);
        fj_timer_init(&o[i].timer, one_run);
        int64_t delay = LONG_NS + (int64_t)(fjt_random(&seed) >> (1 + regression_below(&seed, 60)));
        CHECK_EQ(fj_schedule(p, &o[i].timer, delay < 0 ? INT64_MAX : delay), FJ_OK);
    }
    CHECK_EQ(fj_pool_delayed_count(p), N);
    for (long i = 0; i < N; i++) {
        fj_future *f = &o[i * 7919 % N].timer.future;
        CHECK_EQ(fj_future_cancel(f, 0), 1);
        fj_future_fini(f);
        CHECK_EQ(fj_pool_delayed_count(p), N - 1 - i);
    }
    fjt_destroy(p);
}

/* ---- TRAPS 58 -------------------------------------------------------------------------------- */

struct readers {
    fj_pool *pool;
    fj_future **f;
    int n;
    atomic_int over;
    atomic_long looks;
};

static void *read_times(void *arg)
{
    struct readers *r = arg;

    while (!atomic_load(&r->over)) {
        for (int i = 0; i < r->n; i++) {
            int64_t left = fj_timer_remaining(r->f[i]);
            CHECK(left <= 2 * LONG_NS);
            (void)fj_future_is_done(r->f[i]);
        }
        CHECK(fj_pool_delayed_count(r->pool) <= (uint64_t)r->n);
        atomic_fetch_add(&r->looks, 1);
    }
    return NULL;
}

/* TRAPS 58: threads read times and counts while timers fire, run, are armed again and are
 * cancelled. The test is mainly for ThreadSanitizer. */
FJ_TEST(times_are_read_while_timers_work, 60)
{
    enum { N = 12 };
    fj_pool *p = fjt_pool(2, 0);
    atomic_int runs = 0;
    fj_future *f[N];
    struct readers r = {.pool = p, .f = f, .n = N};
    pthread_t t[2];

    for (int i = 0; i < N; i++)
        CHECK_EQ(i % 3 == 0 ? fj_schedule_action(p, regression_count, &runs, i * MS, &f[i])
                            : (i % 3 == 1 ? fj_schedule_action_at_fixed_rate
                                          : fj_schedule_action_with_fixed_delay)(
                                  p, regression_count, &runs, 0, 1000 + i * 5000, &f[i]),
                 FJ_OK);
    for (int i = 0; i < 2; i++) t[i] = regression_thread(read_times, &r);
    UNTIL(atomic_load(&runs) > 500 && atomic_load(&r.looks) > 100);
    for (int i = 0; i < N; i++) (void)fj_future_cancel(f[i], i % 2);
    atomic_store(&r.over, 1);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < N; i++) fj_future_unref(f[i]);
    fjt_destroy(p);
}

/* TRAPS 58: a timer is released while it may be cancelled, fired and run. The library calls the
 * release function once, and does not use the memory after that. */
FJ_TEST(timers_are_let_go_once_by_the_last, 120)
{
    fj_pool *p = fjt_pool(2, 0);
    uint64_t seed = fjt_seed();
    atomic_int runs = 0, released = 0;
    long n = fjt_rounds(20000);

    for (long i = 0; i < n; i++) {
        struct loose *l[3];
        /* 0 is cancelled before it is scheduled, 1 fires, 2 is cancelled while it waits. */
        for (int k = 0; k < 3; k++) {
            l[k] = loose_make(&runs, &released);
            if (k == 0) continue;
            CHECK_EQ(fj_schedule(p, &l[k]->timer, k == 1 ? regression_below(&seed, 3000) : LONG_NS),
                     FJ_OK);
        }
        CHECK_EQ(fj_future_cancel(&l[0]->timer.future, 0), 1); /* before it was scheduled */
        CHECK_EQ(fj_future_cancel(&l[2]->timer.future, 1), 1); /* LAST TOUCH */
        /* It never belonged to the library. */
        loose_released(&l[0]->timer.future);
    }
    UNTIL(atomic_load(&released) == 3 * n);
    CHECK_EQ(atomic_load(&runs), n);
    CHECK_EQ(fj_pool_delayed_count(p), 0);
    fjt_destroy(p);
}

/* ---- TRAPS 59 -------------------------------------------------------------------------------- */

struct series {
    fj_timer timer;
    atomic_int runs, at_end, released, inside;
};

static int series_run(fj_task *t)
{
    struct series *s = (struct series *)t;

    CHECK_EQ(atomic_fetch_add(&s->inside, 1), 0); /* never two runs at a time */
    atomic_fetch_add(&s->runs, 1);
    atomic_fetch_sub(&s->inside, 1);
    atomic_store(&s->at_end, 1); /* after this the series is armed again */
    return FJ_OK;
}

static void series_released(fj_future *f)
{
    atomic_fetch_add(&((struct series *)f)->released, 1);
}

struct end_race {
    struct series *s;
    pthread_barrier_t line;
    long rounds;
};

static void *cancel_at_end(void *arg)
{
    struct end_race *r = arg;

    for (long i = r->rounds; i > 0; i--) {
        pthread_barrier_wait(&r->line);
        UNTIL(atomic_load(&r->s->at_end));
        CHECK_EQ(fj_future_cancel(&r->s->timer.future, (int)(i % 2)), 1);
        pthread_barrier_wait(&r->line);
    }
    return NULL;
}

/* TRAPS 59: two threads cancel a series at the end of a run, while it is armed again. It has one
 * outcome, is released once, and does not run after that. Its memory is reused at once. */
FJ_TEST(series_cancelled_at_the_end_of_a_run_is_over, 240)
{
    fj_pool *p = fjt_pool(2, 0);
    struct series s;
    struct end_race r = {.s = &s, .rounds = fjt_rounds(10000)};
    uint64_t seed = fjt_seed();

    CHECK_EQ(pthread_barrier_init(&r.line, NULL, 2), 0);
    memset(&s, 0, sizeof s);
    pthread_t t = regression_thread(cancel_at_end, &r);
    for (long i = r.rounds; i > 0; i--) {
        memset(&s, 0, sizeof s);
        fj_timer_init(&s.timer, series_run);
        fj_future_set_release_fn(&s.timer.future, series_released);
        CHECK_EQ((i % 3 == 0 ? fj_schedule_with_fixed_delay
                             : fj_schedule_at_fixed_rate)(p, &s.timer, 0, i % 5 == 0 ? LONG_NS : 1),
                 FJ_OK);
        pthread_barrier_wait(&r.line);
        UNTIL(atomic_load(&s.at_end));
        regression_spin_ns(regression_below(&seed, 2000));
        CHECK_EQ(fj_future_cancel(&s.timer.future, 0), 1);
        pthread_barrier_wait(&r.line);
        fj_future_fini(&s.timer.future);
        UNTIL(atomic_load(&s.released) == 1);
        int runs = atomic_load(&s.runs);
        CHECK(fj_future_is_cancelled(&s.timer.future));
        CHECK_EQ(fj_pool_delayed_count(p), 0);
        CHECK_EQ(atomic_load(&s.runs), runs);
    }
    pthread_join(t, NULL);
    pthread_barrier_destroy(&r.line);
    fjt_destroy(p);
}

static atomic_int nap_begun, nap_code;

static int naps(void *arg)
{
    (void)arg;
    atomic_store(&nap_code, 1);
    atomic_store(&nap_begun, 1);
    atomic_store(&nap_code, fj_sleep_ns(LONG_NS));
    return FJ_OK;
}

/* TRAPS 59: an interrupt reaches the current run and ends the series. */
FJ_TEST(series_is_interrupted_in_its_run, 60)
{
    fj_pool *p = fjt_pool(1, 0);

    for (long i = fjt_rounds(200); i > 0; i--) {
        fj_future *f;
        atomic_store(&nap_begun, 0);
        CHECK_EQ(fj_schedule_action_with_fixed_delay(p, naps, NULL, 0, 1, &f), FJ_OK);
        UNTIL(atomic_load(&nap_begun));
        CHECK_EQ(fj_future_cancel(f, 1), 1);
        CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
        fj_future_unref(f);
        UNTIL(atomic_load(&nap_code) != 1);
        CHECK_EQ(atomic_load(&nap_code), FJ_ECANCELED);
    }
    fjt_destroy(p);
}

/* ---- TRAPS 60 -------------------------------------------------------------------------------- */

struct blocking {
    fj_pool *pool;
    atomic_int inside, go;
};

static void blocks_at_limit(fj_future *f, void *arg)
{
    struct blocking *b = arg;

    CHECK(fj_current_pool() == NULL); /* the timer thread, not a worker */
    CHECK(fj_current_worker() < 0);
    atomic_fetch_add(&b->inside, 1);
    UNTIL(atomic_load(&b->go));
    /* Has no effect if the body, which waits for the same flag, has already ended the future. */
    (void)fj_future_complete(f, b);
}

static int blocks(void *arg)
{
    struct blocking *b = arg;

    atomic_fetch_add(&b->inside, 1);
    UNTIL(atomic_load(&b->go));
    return FJ_OK;
}

static int blocks_call(void *arg, void **result)
{
    (void)result;
    return blocks(arg);
}

/* TRAPS 60: an action of a timer blocks at most one worker, and an on_timeout function blocks no
 * worker. As long as another worker is free, the other timers run. */
FJ_TEST(blocking_actions_delay_no_other_timer, 60)
{
    fj_pool *p = fjt_pool(4, 0);
    struct blocking b = {.pool = p};
    atomic_int runs = 0;
    fj_future *f[3];

    CHECK_EQ(fj_submit_with_timeout(p, blocks_call, &b, MS, blocks_at_limit, &f[0]), FJ_OK);
    CHECK_EQ(fj_schedule_action(p, blocks, &b, 0, &f[1]), FJ_OK);
    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, blocks, &b, 0, 1, &f[2]), FJ_OK);
    UNTIL(atomic_load(&b.inside) == 4);
    for (int i = 0; i < 50; i++) {
        fj_future *g;
        CHECK_EQ(fj_schedule_action(p, regression_count, &runs, i * 10000, &g), FJ_OK);
        CHECK_EQ(fj_future_join(g), FJ_OK);
        fj_future_unref(g);
    }
    CHECK_EQ(atomic_load(&runs), 50);
    /* A late series does not start a second run at the same time. */
    CHECK_EQ(atomic_load(&b.inside), 4);
    atomic_store(&b.go, 1);
    CHECK_EQ(fj_future_join(f[0]), FJ_OK);
    CHECK_EQ(fj_future_join(f[1]), FJ_OK);
    CHECK_EQ(fj_future_cancel(f[2], 0), 1);
    for (int i = 0; i < 3; i++) fj_future_unref(f[i]);
    fjt_destroy(p);
}

struct nested {
    fj_pool *pool;
    int depth, code;
};

static int waits_for_a_timer(void *arg)
{
    struct nested *n = arg, next = {.pool = n->pool, .depth = n->depth - 1};
    fj_future *f;

    if (n->depth == 0) return FJ_OK;
    CHECK_EQ(fj_schedule_action(n->pool, waits_for_a_timer, &next, 1000, &f), FJ_OK);
    n->code = fj_future_join(f);
    fj_future_unref(f);
    return n->code;
}

/* TRAPS 60: the only worker waits in an action for a timer. Another worker replaces it. */
FJ_TEST(action_waits_for_a_timer_of_its_own_pool, 60)
{
    fj_pool *p = fjt_pool(1, 0);
    struct nested n = {.pool = p, .depth = 20};
    fj_future *f;

    CHECK_EQ(fj_schedule_action(p, waits_for_a_timer, &n, 0, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fj_future_unref(f);
    fjt_destroy(p);
}

/* TRAPS 60: a timeout ends the future that occupies the only worker, because it needs no worker
 * itself. */
FJ_TEST(limit_reaches_what_keeps_the_only_worker, 20)
{
    fj_pool *p = fjt_pool(1, 0);
    atomic_int go = 0;
    fj_future *f;

    CHECK_EQ(fj_submit_with_timeout(p, held_call, &go, 40 * MS, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_ETIMEDOUT);
    atomic_store(&go, 1);
    fj_future_unref(f);
    fjt_destroy(p);
}

/* TRAPS 56: a shutdown removes the timers that keep waiting from the wheel for a moment. If a
 * thread cancels such a timer at that moment, the pool must not wait until the timer would fire. */
struct cancelling {
    pthread_t thread;
    fj_future *f[16];
};

static atomic_int go_cancelling;

static void *cancel_them(void *arg)
{
    struct cancelling *c = arg;

    UNTIL(atomic_load(&go_cancelling));
    for (int i = 0; i < 16; i++) CHECK_EQ(fj_future_cancel(c->f[i], 0), 1);
    return NULL;
}

FJ_TEST(cancelling_while_a_shutdown_sorts_the_timers_holds_up_nobody, 60)
{
    for (long round = fjt_rounds(2000); round > 0; round--) {
        fj_pool *p = fjt_pool(1, 0);
        struct cancelling c;
        fj_future *series[16];
        atomic_int ran = 0;
        atomic_store(&go_cancelling, 0);
        for (int i = 0; i < 16; i++) {
            int64_t hour = 3600 * (int64_t)1000000000;
            CHECK_EQ(fj_schedule_action(p, regression_count, &ran, hour + i, &c.f[i]), FJ_OK);
            CHECK_EQ(
                fj_schedule_action_at_fixed_rate(p, regression_count, &ran, hour, hour, &series[i]),
                FJ_OK);
        }
        c.thread = regression_thread(cancel_them, &c);
        atomic_store(&go_cancelling, 1);
        CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        pthread_join(c.thread, NULL);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        for (int i = 0; i < 16; i++) {
            fj_future_unref(c.f[i]);
            fj_future_unref(series[i]);
        }
        fjt_destroy(p);
        CHECK_EQ(atomic_load(&ran), 0);
    }
}

static int left_open(fj_task *t)
{
    (void)t;
    return FJ_PENDING;
}

static int left_open_call(void *arg, void **result)
{
    (void)arg;
    (void)result;
    return FJ_PENDING;
}

static void looks_on(fj_future *f, void *arg)
{
    (void)f;
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* TRAPS 58: a future that outlives its pool does not refer to that pool. */
FJ_TEST(timer_left_open_is_decided_after_its_pool_is_gone, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_timer t;
    fj_future *limited, *stopped;
    atomic_int over = 0;

    fj_timer_init(&t, left_open);
    CHECK_EQ(fj_schedule(p, &t, 0), FJ_OK);
    CHECK_EQ(fj_submit_with_timeout(p, left_open_call, &over, 1000, looks_on, &limited), FJ_OK);
    UNTIL(atomic_load(&over) == 1);
    fjt_destroy(p);
    CHECK_EQ(fj_future_cancel(&t.future, 1), 1);
    CHECK_EQ(fj_future_cancel(limited, 1), 1);
    fj_future_fini(&t.future);
    fj_future_unref(limited);
    p = fjt_pool(1, 0); /* a stop ends a future whose timeout never comes */
    CHECK_EQ(fj_submit_with_timeout(p, left_open_call, NULL, FJ_FOREVER, NULL, &stopped), FJ_OK);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    fjt_destroy(p);
    CHECK_EQ(fj_future_join(stopped), FJ_ECANCELED);
    fj_future_unref(stopped);
}
