/* SPDX-License-Identifier: MIT */
/*
 * load_future.c - loads of futures, completers and timers
 */
#define _GNU_SOURCE
#include <forkjoin/block.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <forkjoin/algo.h>

#include "load.h"

/* ---- Futures -------------------------------------------------------------------------------- */

struct job {
    fj_future future;
    uint64_t id;
    int kind;
    atomic_int runs;
};

enum { JOB_SHORT, JOB_FORKS, JOB_FAILS, JOB_SLEEPS, JOB_SPINS, JOB_OPEN };

#define JOB_CODE 77
#define JOBS 24

static int job_run(fj_task *t);

static void job_init(struct job *j, int kind)
{
    j->id = ledger_issue();
    j->kind = kind;
    atomic_store(&j->runs, 0);
    fj_future_init(&j->future, job_run);
}

/* Checks a finished job. It ran once, or it was cancelled before it began; then this function
 * reports its number as done. */
static void job_over(struct job *j)
{
    fj_future_fini(&j->future);
    SOAK_CHECK(fj_future_is_done(&j->future));
    int runs = atomic_load(&j->runs);
    SOAK_CHECK(runs == 1 || (runs == 0 && fj_future_failed(&j->future)));
    if (runs == 0) ledger_done(j->id);
}

static int job_forks(void)
{
    struct job inner[3];

    for (int i = 0; i < 3; i++) {
        job_init(&inner[i], i == 0 ? JOB_FAILS : JOB_SHORT);
        SOAK_CHECK(fj_future_fork(&inner[i].future) == FJ_OK);
    }
    for (int i = 2; i >= 0; i--) {
        int code = fj_future_join(&inner[i].future);
        SOAK_CHECK(code == (i == 0 ? JOB_CODE : FJ_OK) || code == FJ_ECANCELED);
    }
    for (int i = 0; i < 3; i++) job_over(&inner[i]);
    return FJ_OK;
}

static int job_run(fj_task *t)
{
    struct job *j = (struct job *)t;

    ledger_done(j->id);
    atomic_fetch_add(&j->runs, 1);
    if (j->kind == JOB_FORKS) return job_forks();
    if (j->kind == JOB_SLEEPS) return fj_sleep_ns((int64_t)soak_below(1000) * US);
    int64_t end = soak_now() + 200 * US;
    while (j->kind == JOB_SPINS && soak_now() < end && !fj_is_cancelled()) {}
    return j->kind == JOB_FAILS ? JOB_CODE : j->kind == JOB_OPEN ? FJ_PENDING : FJ_OK;
}

static void job_submit(fj_pool *p, struct job *j)
{
    uint32_t how = soak_below(3);

    SOAK_CHECK((how == 0   ? fj_future_submit(p, &j->future)
                : how == 1 ? fj_future_submit_external(p, &j->future)
                           : fj_future_submit_lazy(p, &j->future)) == FJ_OK);
}

static int job_expected(const struct job *j)
{
    return j->kind == JOB_FAILS ? JOB_CODE : FJ_OK;
}

void load_futures(fj_pool *p)
{
    struct job job[JOBS];
    fj_future *all[JOBS];
    size_t which = JOBS;

    for (int i = 0; i < JOBS; i++) {
        job_init(&job[i], (int)soak_below(JOB_OPEN + 1));
        all[i] = &job[i].future;
        job_submit(p, &job[i]);
    }
    SOAK_CHECK(fj_future_wait_any(all, JOBS, FJ_FOREVER, &which) == FJ_OK && which < JOBS);
    for (int i = 0; i < JOBS; i++)
        if (job[i].kind == JOB_OPEN) (void)fj_future_complete(all[i], NULL);
    if (soak_below(2) == 0) SOAK_CHECK(fj_future_wait_all(all, JOBS, FJ_FOREVER) == FJ_OK);
    for (int i = 0; i < JOBS; i++) {
        int err = fj_future_get(all[i], (int64_t)soak_below(100) * US, NULL);
        if (err == FJ_ETIMEDOUT) err = fj_future_join(all[i]);
        SOAK_CHECK(err == job_expected(&job[i]));
        /* A future that was completed before its body began never runs. */
        if (job[i].kind != JOB_OPEN) {
            job_over(&job[i]);
            continue;
        }
        fj_future_fini(all[i]);
        if (atomic_load(&job[i].runs) == 0) ledger_done(job[i].id);
    }
}

void load_cancel(fj_pool *p)
{
    struct job job[JOBS];

    for (int i = 0; i < JOBS; i++) {
        job_init(&job[i], (int)soak_below(JOB_OPEN));
        job_submit(p, &job[i]);
    }
    if (soak_below(2) == 0) soak_sleep_us(soak_below(300));
    for (int i = 0; i < JOBS; i++)
        if (soak_below(3) != 0) (void)fj_future_cancel(&job[i].future, (int)soak_below(2));
    for (int i = 0; i < JOBS; i++) {
        int code = fj_future_join(&job[i].future);
        SOAK_CHECK(code == job_expected(&job[i]) || code == FJ_ECANCELED);
        job_over(&job[i]);
    }
}

/* Waits for any of several futures; the others are cancelled. */
void load_any(fj_pool *p)
{
    struct job job[6];
    fj_future *all[6];
    size_t which = 6;
    bool can = false;

    for (int i = 0; i < 6; i++) {
        job_init(&job[i], soak_below(2) == 0 ? JOB_FAILS : (int)soak_below(JOB_OPEN));
        can = can || job[i].kind != JOB_FAILS;
        all[i] = &job[i].future;
    }
    int err = fj_future_invoke_any(p, all, 6, FJ_FOREVER, &which);
    SOAK_CHECK(err == (can ? FJ_OK : JOB_CODE));
    for (int i = 0; i < 6; i++) job_over(&job[i]);
}

static int call_run(void *arg, void **result)
{
    ledger_done((uint64_t)(uintptr_t)arg);
    *result = arg;
    return FJ_OK;
}

/* Uses futures that the library allocates. */
void load_calls(fj_pool *p)
{
    fj_future *f[JOBS];
    uint64_t id[JOBS];

    for (int i = 0; i < JOBS; i++) {
        id[i] = ledger_issue();
        SOAK_CHECK(fj_submit_call(p, call_run, (void *)(uintptr_t)id[i], &f[i]) == FJ_OK);
    }
    for (int i = 0; i < JOBS; i++) {
        void *result = NULL;
        SOAK_CHECK(fj_future_get(f[i], FJ_FOREVER, &result) == FJ_OK);
        SOAK_CHECK(result == (void *)(uintptr_t)id[i]);
        fj_future_unref(f[i]);
    }
}

/* ---- Completers ----------------------------------------------------------------------------- */

struct part {
    fj_completer c;
    uint64_t id;
    int depth;
    atomic_long size;
};

static int part_run(fj_task *t);

static int part_complete(fj_completer *c, fj_completer *caller)
{
    struct part *up = (struct part *)fj_completer_parent(c), *p = (struct part *)c;

    (void)caller;
    if (up == NULL) return FJ_OK;
    atomic_fetch_add(&up->size, atomic_load(&p->size));
    return FJ_OK;
}

static void part_init(struct part *p, struct part *parent, int depth)
{
    p->id = ledger_issue();
    p->depth = depth;
    atomic_store(&p->size, 1);
    fj_completer_init(&p->c, parent != NULL ? &parent->c : NULL, 0, part_run, part_complete, NULL);
}

/* All nodes of a tree are in one array, which is freed when the root is done. */
static int part_run(fj_task *t)
{
    struct part *p = (struct part *)t;

    ledger_done(p->id);
    if (p->depth > 0) {
        struct part *left = p + 1, *right = p + (1 << p->depth);
        part_init(left, p, p->depth - 1);
        part_init(right, p, p->depth - 1);
        fj_completer_set_pending(&p->c, 2);
        SOAK_CHECK(fj_completer_fork(&left->c) == FJ_OK);
        SOAK_CHECK(fj_completer_fork(&right->c) == FJ_OK);
    }
    fj_completer_try_complete(&p->c);
    return FJ_OK;
}

void load_completers(fj_pool *p)
{
    int depth = (int)soak_below(9);
    long all = (2l << depth) - 1;
    struct part *tree = malloc((size_t)all * sizeof *tree);

    SOAK_CHECK(tree != NULL);
    part_init(tree, NULL, depth);
    SOAK_CHECK(fj_completer_invoke(p, &tree->c) == FJ_OK);
    fj_future_fini(&tree->c.future);
    SOAK_CHECK(atomic_load(&tree->size) == all);
    free(tree);
}

static int fold_count(size_t begin, size_t end, void *acc, void *arg)
{
    (void)arg;
    ledger_done(ledger_issue());
    *(size_t *)acc += end - begin;
    return FJ_OK;
}

static int combine_count(void *into, const void *right, void *arg)
{
    (void)arg;
    *(size_t *)into += *(const size_t *)right;
    return FJ_OK;
}

void load_reduce(fj_pool *p)
{
    fj_algo_options options = {.pool = p};
    size_t n = 1 + soak_below(5000), zero = 0, got = 0;

    SOAK_CHECK(fj_reduce(0, n, fold_count, combine_count, &zero, sizeof zero, NULL, &got,
                         &options) == FJ_OK);
    SOAK_CHECK(got == n);
}

/* ---- Timers --------------------------------------------------------------------------------- */

struct alarm {
    fj_timer timer;
    uint64_t id;
    atomic_int runs;
};

static int alarm_run(fj_task *t)
{
    struct alarm *a = (struct alarm *)t;

    if (atomic_fetch_add(&a->runs, 1) == 0) ledger_done(a->id);
    return FJ_OK;
}

static void alarm_init(struct alarm *a)
{
    a->id = ledger_issue();
    atomic_store(&a->runs, 0);
    fj_timer_init(&a->timer, alarm_run);
}

static void alarm_over(struct alarm *a)
{
    fj_future_fini(&a->timer.future);
    SOAK_CHECK(fj_future_is_done(&a->timer.future));
    if (atomic_load(&a->runs) == 0) ledger_done(a->id);
}

void load_timers(fj_pool *p)
{
    enum { N = 12 };
    struct alarm once[N], series;

    for (int i = 0; i < N; i++) {
        alarm_init(&once[i]);
        SOAK_CHECK(fj_schedule(p, &once[i].timer, (int64_t)soak_below(3000) * US) == FJ_OK);
    }
    alarm_init(&series);
    SOAK_CHECK((soak_below(2) == 0
                    ? fj_schedule_at_fixed_rate(p, &series.timer, 0, 300 * US)
                    : fj_schedule_with_fixed_delay(p, &series.timer, 0, 300 * US)) == FJ_OK);
    for (int i = 0; i < N; i++) {
        if (soak_below(3) == 0) (void)fj_future_cancel(&once[i].timer.future, 0);
        int code = fj_future_join(&once[i].timer.future);
        SOAK_CHECK(code == FJ_OK || code == FJ_ECANCELED);
        alarm_over(&once[i]);
        SOAK_CHECK(atomic_load(&once[i].runs) <= 1);
        SOAK_CHECK(code == FJ_ECANCELED || atomic_load(&once[i].runs) == 1);
    }
    (void)fj_future_cancel(&series.timer.future, 0);
    SOAK_CHECK(fj_future_join(&series.timer.future) == FJ_ECANCELED);
    alarm_over(&series);
}

struct limited {
    uint64_t id;
    atomic_int runs;
};

static int limited_run(void *arg, void **result)
{
    struct limited *l = arg;

    ledger_done(l->id);
    atomic_fetch_add(&l->runs, 1);
    *result = l;
    return fj_sleep_ns((int64_t)soak_below(600) * US);
}

void load_limits(fj_pool *p)
{
    enum { N = 8 };
    struct limited l[N];
    fj_future *f[N];

    for (int i = 0; i < N; i++) {
        l[i].id = ledger_issue();
        atomic_store(&l[i].runs, 0);
        int64_t limit = (int64_t)soak_below(1500) * US;
        SOAK_CHECK(fj_submit_with_timeout(p, limited_run, &l[i], limit, NULL, &f[i]) == FJ_OK);
    }
    for (int i = 0; i < N; i++) {
        int code = fj_future_join(f[i]);
        SOAK_CHECK(code == FJ_OK || code == FJ_ETIMEDOUT);
        fj_future_unref(f[i]);
    }
    /* A task that exceeded its timeout may still be queued or running, and it uses l. */
    SOAK_CHECK(fj_pool_await_quiescence(p, FJ_FOREVER) == FJ_OK);
    for (int i = 0; i < N; i++) {
        SOAK_CHECK(atomic_load(&l[i].runs) <= 1);
        if (atomic_load(&l[i].runs) == 0) ledger_done(l[i].id);
    }
}
