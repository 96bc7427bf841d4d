/* SPDX-License-Identifier: MIT */
/*
 * stats.c - inspecting a pool: single figures, all statistics, the description, the dump
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

static fj_stats stats_of(fj_pool *pool)
{
    fj_stats s;

    CHECK_EQ(fj_pool_stats(pool, &s), FJ_OK);
    return s;
}

/* hold() submits n tasks that run until let_go() is called. */
static atomic_int begun, may_end;

static int held_run(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&begun, 1);
    until(&may_end);
    return FJ_OK;
}

static void hold(fj_pool *pool, fj_task *t, int n)
{
    atomic_store(&begun, 0);
    atomic_store(&may_end, 0);
    for (int i = 0; i < n; i++) {
        fj_task_init(&t[i], held_run);
        CHECK_EQ(fj_submit(pool, &t[i]), FJ_OK);
    }
}

static void until_begun(int n)
{
    while (atomic_load(&begun) < n) fjt_sleep_us(50);
}

static void let_go(fj_task *t, int n)
{
    atomic_store(&may_end, 1);
    for (int i = 0; i < n; i++) CHECK_EQ(fj_join(&t[i]), FJ_OK);
}

/* ---- Figures -------------------------------------------------------------------------------- */

FJ_TEST(new_pool_shows_nothing_but_its_size, 10)
{
    fj_pool *pool = fjt_pool(5, FJ_POOL_FIFO);
    fj_stats s = stats_of(pool);

    CHECK_EQ(s.parallelism, 5);
    CHECK(s.threads == 0 && s.active == 0 && s.running == 0 && s.idle == 0 && s.blocked == 0);
    CHECK(s.steals == 0 && s.queued == 0 && s.submitted == 0 && s.started == 0 && s.parks == 0);
    CHECK_EQ(fj_pool_parallelism(pool), 5);
    CHECK_EQ(fj_pool_thread_count(pool), 0);
    CHECK_EQ(fj_pool_active_count(pool), 0);
    CHECK_EQ(fj_pool_running_count(pool), 0);
    CHECK_EQ(fj_pool_steal_count(pool), 0);
    CHECK_EQ(fj_pool_queued_task_count(pool), 0);
    CHECK_EQ(fj_pool_queued_submission_count(pool), 0);
    CHECK(!fj_pool_has_queued_submissions(pool));
    CHECK(fj_pool_is_fifo(pool));
    fjt_destroy(pool);
}

FJ_TEST(busy_workers_are_active_and_running, 20)
{
    for (int n = 1; n <= 4; n++) {
        fj_pool *pool = fjt_pool(4, 0);
        fj_task t[4];
        hold(pool, t, n);
        until_begun(n);
        /* Other workers may still search for a task. Wait until they sleep. */
        while (fj_pool_active_count(pool) != n) fjt_sleep_us(100);
        fj_stats s = stats_of(pool);
        CHECK_EQ(s.active, n);
        CHECK_EQ(s.running, n);
        CHECK_EQ(fj_pool_running_count(pool), n);
        CHECK(s.threads >= n && s.threads <= 4);
        CHECK_EQ(s.idle, s.threads - n);
        CHECK_EQ(s.blocked, 0);
        CHECK_EQ(s.submitted, 0);
        CHECK(!fj_pool_has_queued_submissions(pool));
        let_go(t, n);
        fjt_destroy(pool);
    }
}

FJ_TEST(submissions_that_wait_are_counted, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_task t[21];

    hold(pool, t, 1);
    until_begun(1);
    for (int i = 1; i <= 20; i++) {
        fj_task_init(&t[i], held_run);
        CHECK_EQ(fj_submit(pool, &t[i]), FJ_OK);
        CHECK_EQ(fj_pool_queued_submission_count(pool), i);
        CHECK(fj_pool_has_queued_submissions(pool));
    }
    CHECK_EQ(stats_of(pool).submitted, 20);
    CHECK_EQ(stats_of(pool).queued, 0);
    let_go(t, 21);
    CHECK_EQ(fj_pool_queued_submission_count(pool), 0);
    CHECK(!fj_pool_has_queued_submissions(pool));
    fjt_destroy(pool);
}

static int empty_run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

static void count_own(void *arg)
{
    fj_pool *pool = arg;
    fj_task t[30];

    for (int i = 0; i < 30; i++) {
        CHECK_EQ(fj_pool_queued_task_count(pool), i);
        fj_task_init(&t[i], empty_run);
        fj_fork(&t[i]);
    }
    for (int i = 30; i-- > 0;) {
        CHECK_EQ(fj_pool_queued_task_count(pool), i + 1);
        CHECK_EQ(fj_join(&t[i]), FJ_OK);
    }
}

FJ_TEST(forked_tasks_that_wait_are_counted, 10)
{
    for (unsigned flags = 0; flags < 2; flags++) {
        fj_pool *pool = fjt_pool(1, flags);
        inside(pool, count_own, pool);
        CHECK_EQ(fj_pool_queued_task_count(pool), 0);
        fjt_destroy(pool);
    }
}

FJ_TEST(pool_at_rest_has_nobody_active, 10)
{
    fj_pool *pool = fjt_pool(4, 0);
    fj_task t[4];

    hold(pool, t, 4);
    until_begun(4);
    let_go(t, 4);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    fj_stats s = stats_of(pool);
    CHECK(s.active == 0 && s.running == 0 && s.blocked == 0 && s.queued == 0 && s.submitted == 0);
    CHECK_EQ(s.threads, 4);
    CHECK_EQ(s.idle, 4);
    CHECK_EQ(s.started, 4);
    CHECK_EQ(s.steals, 4);
    CHECK_EQ(s.state, 0);
    fjt_destroy(pool);
}

FJ_TEST(ended_pool_has_no_threads, 10)
{
    fj_pool *pool = fjt_pool(4, 0);
    fj_task t[4];

    hold(pool, t, 4);
    until_begun(4);
    let_go(t, 4);
    CHECK_EQ(fj_pool_close(pool), FJ_OK);
    fj_stats s = stats_of(pool);
    CHECK(s.threads == 0 && s.active == 0 && s.running == 0 && s.idle == 0 && s.blocked == 0);
    CHECK_EQ(s.started, 4);
    CHECK_EQ(s.steals, 4);
    CHECK_EQ(s.state, 3);
    fjt_destroy(pool);
}

/* A submission is run by a worker and not by its submitter, so it counts as a steal. */
FJ_TEST(steals_are_counted_and_never_less, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_task t;

    fj_task_init(&t, empty_run);
    for (uint64_t i = 1; i <= 200; i++) {
        CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
        CHECK_EQ(fj_pool_steal_count(pool), i);
    }
    fjt_destroy(pool);
}

static void join_blocked(void *arg)
{
    fj_pool *pool = arg;
    fj_task t;

    atomic_store(&begun, 0);
    atomic_store(&may_end, 0);
    fj_task_init(&t, held_run);
    fj_fork(&t);
    until(&begun);
    CHECK(pool == fj_current_pool());
    CHECK_EQ(fj_join(&t), FJ_OK);
}

FJ_TEST(worker_that_waits_is_blocked_and_not_running, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct inside i = {.body = join_blocked, .arg = pool};

    fj_task_init(&i.task, inside_run);
    CHECK_EQ(fj_submit(pool, &i.task), FJ_OK);
    while (stats_of(pool).blocked != 1) fjt_sleep_us(100);
    while (fj_pool_active_count(pool) != 1) fjt_sleep_us(100);
    fj_stats s = stats_of(pool);
    CHECK_EQ(s.blocked, 1);
    CHECK_EQ(s.running, 1);
    atomic_store(&may_end, 1);
    CHECK_EQ(fj_join(&i.task), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(stats_of(pool).blocked, 0);
    fjt_destroy(pool);
}

FJ_TEST(no_pool_means_the_common_one, 10)
{
    fj_task t;

    fj_task_init(&t, empty_run);
    CHECK_EQ(fj_invoke(NULL, &t), FJ_OK);
    CHECK_EQ(fj_pool_parallelism(NULL), fj_common_parallelism());
    CHECK_EQ(fj_pool_parallelism(NULL), fj_pool_parallelism(fj_common_pool()));
    CHECK_EQ(stats_of(NULL).parallelism, fj_common_parallelism());
    CHECK(!fj_pool_is_fifo(NULL));
    CHECK(fj_pool_thread_count(NULL) >= 0);
    CHECK(!fj_pool_is_shutdown(NULL) && !fj_pool_is_terminating(NULL));
    CHECK(!fj_pool_is_terminated(NULL));
}

/* ---- All statistics -------------------------------------------------------------------------- */

FJ_TEST(stats_are_written_whole_and_nothing_behind_them, 10)
{
    fj_pool *pool = fjt_pool(3, 0);
    struct {
        fj_stats s;
        unsigned char more[64];
    } u;

    memset(&u, 0x5a, sizeof u);
    CHECK_EQ(fj_pool_stats(pool, &u.s), FJ_OK);
    CHECK_EQ(u.s.parallelism, 3);
    CHECK_EQ(u.s.state, FJ_POOL_STATE_RUNNING);
    CHECK_EQ(u.s.parks, 0);
    for (size_t i = 0; i < 8; i++) CHECK_EQ(u.s.reserved[i], 0);
    for (size_t i = 0; i < sizeof u.more; i++) CHECK_EQ(u.more[i], 0x5a);
    CHECK_EQ(fj_pool_stats(pool, NULL), FJ_EINVAL);
    fjt_destroy(pool);
}

/* ---- Texts ---------------------------------------------------------------------------------- */

FJ_TEST(text_is_one_line_and_tells_its_length, 10)
{
    fj_pool_options o = {0};
    char whole[1024], part[1024];

    o.parallelism = 7;
    o.name = "mypool";
    fj_pool *pool = fjt_pool_with(&o);
    int n = fj_pool_describe(pool, whole, sizeof whole);
    CHECK(n > 0 && n < (int)sizeof whole);
    CHECK_EQ(strlen(whole), n);
    CHECK(strchr(whole, '\n') == NULL);
    CHECK(strstr(whole, "mypool") != NULL && strstr(whole, "7") != NULL);
    CHECK_EQ(fj_pool_describe(pool, NULL, 0), n);
    for (size_t cap = 1; cap <= (size_t)n + 5; cap++) {
        memset(part, 0x5a, sizeof part);
        CHECK_EQ(fj_pool_describe(pool, part, cap), n);
        size_t len = cap - 1 < (size_t)n ? cap - 1 : (size_t)n;
        CHECK(memcmp(part, whole, len) == 0);
        CHECK_EQ(part[len], '\0');
        for (size_t i = cap; i < sizeof part; i++) CHECK_EQ(part[i], 0x5a);
    }
    fjt_destroy(pool);
}

FJ_TEST(text_follows_the_state, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    char before[1024], after[1024];

    fj_pool_describe(pool, before, sizeof before);
    CHECK_EQ(fj_pool_close(pool), FJ_OK);
    fj_pool_describe(pool, after, sizeof after);
    CHECK(strcmp(before, after) != 0);
    CHECK(strstr(after, "terminated") != NULL);
    fjt_destroy(pool);
}

struct lines {
    int n, with_newline, workers;
};

static void count_line(const char *text, void *arg)
{
    struct lines *l = arg;

    l->n++;
    if (strchr(text, '\n') != NULL) l->with_newline++;
    if (strstr(text, "worker ") != NULL) l->workers++;
}

FJ_TEST(dump_has_a_line_for_every_worker, 10)
{
    fj_pool *pool = fjt_pool(3, 0);
    struct lines l = {0, 0, 0};
    fj_task t[3];

    fj_pool_dump(pool, count_line, &l);
    CHECK(l.n >= 1 && l.workers == 0);
    hold(pool, t, 3);
    until_begun(3);
    l = (struct lines){0, 0, 0};
    fj_pool_dump(pool, count_line, &l);
    CHECK_EQ(l.workers, 3);
    CHECK_EQ(l.with_newline, 0);
    let_go(t, 3);
    fj_pool_dump(pool, NULL, NULL);
    fjt_destroy(pool);
    fj_pool_dump(NULL, count_line, &l);
}

/* ---- Inspecting a busy pool ------------------------------------------------------------------ */

struct fib {
    fj_task task;
    int n;
    long result;
};

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t, a = {.n = f->n - 1}, b = {.n = f->n - 2};

    f->result = f->n;
    if (f->n < 2) return FJ_OK;
    fj_task_init(&a.task, fib_run);
    fj_task_init(&b.task, fib_run);
    int err = fj_invoke_both(&a.task, &b.task);
    f->result = a.result + b.result;
    return err;
}

FJ_TEST(looking_at_a_busy_pool_gives_sensible_figures, 30)
{
    fj_pool_options o = {0};
    struct lines l = {0, 0, 0};
    uint64_t steals = 0, started = 0;
    char text[1024];

    o.parallelism = 4;
    o.max_threads = 20;
    o.keep_alive_ns = 20000000;
    fj_pool *pool = fjt_pool_with(&o);
    for (long round = fjt_rounds(30); round-- > 0;) {
        struct fib f = {.n = 18};
        fj_task_init(&f.task, fib_run);
        CHECK_EQ(fj_submit(pool, &f.task), FJ_OK);
        for (int i = 0; i < 50; i++) {
            fj_stats s = stats_of(pool);
            CHECK(s.threads >= 0 && s.threads <= 20);
            CHECK(s.active >= 0 && s.active <= 20);
            CHECK(s.running >= 0 && s.running <= 20);
            CHECK(s.steals >= steals && s.started >= started);
            CHECK(s.queued < 10000 && s.submitted <= 1);
            steals = s.steals;
            started = s.started;
            CHECK(fj_pool_describe(pool, text, sizeof text) > 0);
            fj_pool_dump(pool, count_line, &l);
        }
        CHECK_EQ(fj_join(&f.task), FJ_OK);
        CHECK_EQ(f.result, 2584);
    }
    fjt_destroy(pool);
}

/* ---- Searching workers ----------------------------------------------------------------------- */

static int does_nothing(void *arg)
{
    (void)arg;
    return FJ_OK;
}

/* A worker spins for a while after its last task, if there are at least two CPUs, and then sleeps.
 * The loop submits a task again if the test has slept so long that the worker sleeps too. */
FJ_TEST(searching_workers_are_counted_until_they_sleep, 60)
{
    fj_pool_options o = {0};
    cpu_set_t cpus;
    fj_stats s;

    CHECK_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    o.parallelism = 1;
    o.spin_ns = 20000000;
    fj_pool *pool = fjt_pool_with(&o);
    CHECK_EQ(fj_pool_searching_count(pool), 0);
    CHECK_EQ(fj_execute(pool, does_nothing, NULL), FJ_OK);
    while (CPU_COUNT(&cpus) > 1 && fj_pool_searching_count(pool) != 1) {
        fjt_sleep_us(10);
        CHECK_EQ(fj_pool_stats(pool, &s), FJ_OK);
        if (s.idle == 1) CHECK_EQ(fj_execute(pool, does_nothing, NULL), FJ_OK);
    }
    do {
        fjt_sleep_us(100);
        CHECK_EQ(fj_pool_stats(pool, &s), FJ_OK);
    } while (s.idle != 1);
    CHECK_EQ(fj_pool_searching_count(pool), 0);
    fjt_destroy(pool);
}
