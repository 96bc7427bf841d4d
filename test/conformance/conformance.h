/* SPDX-License-Identifier: MIT */
/*
 * conformance.h - helpers of the conformance tests of the pool
 *
 * It has pools whose size and order the environment selects (FJT_WORKERS, FJT_FIFO), checks of the
 * state of a future, jobs that a test controls, callers that can be interrupted, and checks of the
 * bulk calls that several test classes of Java require.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/inside.h"
#include "fjtest.h"
#include "state_checks.h"

/* ---- Waiting ----------------------------------------------------------------------------- */

/* Waits for a condition. Only the time limit of the test ends the wait. */
#define UNTIL(cond) \
    for (int until_turn = 0; !(cond); until_turn++) until_give_way(until_turn)

static inline void until_give_way(int turn)
{
    if (turn < 100)
        sched_yield();
    else
        fjt_sleep_us(50);
}

static inline pthread_t conformance_thread(void *(*run)(void *), void *arg)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, run, arg), 0);
    return t;
}

static inline void *conformance_thread_end(pthread_t t)
{
    void *result;
    CHECK_EQ(pthread_join(t, &result), 0);
    return result;
}

/* ---- Pools ------------------------------------------------------------------------------- */

/* A pool with exactly n workers, in the order that the environment selects. */
static inline fj_pool *conformance_pool_of(int n)
{
    return fjt_pool(n, conformance_flags());
}

/* A pool with at least n workers, for jobs that have to run at the same time. */
static inline fj_pool *conformance_pool_for(int n)
{
    return conformance_pool_of(conformance_workers_for(n));
}

static inline fj_pool *conformance_pool(void)
{
    return conformance_pool_of(conformance_workers());
}

/* A pool whose callers help, so that they run their own tasks if possible. */
static inline fj_pool *conformance_direct_pool(void)
{
    return fjt_pool(conformance_workers(), conformance_flags() | FJ_POOL_CALLER_HELPS);
}

static inline void check_pool_runs(fj_pool *p)
{
    CHECK(!fj_pool_is_shutdown(p));
    CHECK(!fj_pool_is_terminating(p));
    CHECK(!fj_pool_is_terminated(p));
}

static inline void check_pool_ended(fj_pool *p)
{
    CHECK(fj_pool_is_shutdown(p));
    CHECK(!fj_pool_is_terminating(p));
    CHECK(fj_pool_is_terminated(p));
    CHECK_EQ(fj_pool_thread_count(p), 0);
    CHECK_EQ(fj_pool_active_count(p), 0);
    CHECK_EQ(fj_pool_await_termination(p, 0), FJ_OK);
}

/* ---- The state of a future --------------------------------------------------------------- */

static inline void check_normal(fj_future *f, void *value)
{
    state_check_done(f, FJ_OK, value);
}

static inline void check_failed(fj_future *f, int code)
{
    state_check_done(f, code, NULL);
}

static inline void check_cancelled(fj_future *f)
{
    state_check_done(f, FJ_ECANCELED, NULL);
}

/* ---- Jobs -------------------------------------------------------------------------------- */

/* A future whose body does what the other fields say. Its result is the job itself. */
struct job {
    fj_future f;
    int code;       /* the code that the body returns */
    bool polls;     /* if may_end is 0, the body also ends when fj_is_cancelled() returns 1 */
    fj_future *nap; /* if not NULL, the body first waits for this; an interrupt ends the wait */
    atomic_int begun, may_end, ended;
    atomic_int cancelled; /* the body has seen fj_is_cancelled() */
    atomic_int stopping;  /* the body has seen fj_is_stopping() */
    atomic_int woken;     /* what the wait for `nap` returned; 1 if it has not returned */
};

static inline int job_run(fj_task *t)
{
    struct job *j = (struct job *)t;

    atomic_fetch_add(&j->begun, 1);
    if (j->nap != NULL) atomic_store(&j->woken, fj_future_wait(j->nap, FJ_FOREVER));
    UNTIL(atomic_load(&j->may_end) || (j->polls && fj_is_cancelled()));
    j->f.result = j;
    atomic_store(&j->cancelled, fj_is_cancelled());
    atomic_store(&j->stopping, fj_is_stopping());
    atomic_fetch_add(&j->ended, 1);
    return j->code;
}

/* A job that ends at once with `code`. */
static inline void job_init(struct job *j, int code)
{
    memset(j, 0, sizeof *j);
    fj_future_init(&j->f, job_run);
    j->code = code;
    atomic_init(&j->may_end, 1);
    atomic_init(&j->woken, 1);
}

/* A job that ends when the test sets may_end. */
static inline void job_init_held(struct job *j)
{
    job_init(j, FJ_OK);
    atomic_init(&j->may_end, 0);
}

/* A job that ends when it is cancelled or when the test sets may_end. It polls
 * fj_is_cancelled(). */
static inline void job_init_polls(struct job *j)
{
    job_init_held(j);
    j->polls = true;
}

/* A job that ends when it is interrupted. It sleeps in the library, and another worker replaces
 * it. */
static inline void job_init_sleeps(struct job *j, fj_future *never)
{
    job_init(j, FJ_OK);
    fj_future_init(never, NULL);
    j->nap = never;
}

static inline void job_begun(struct job *j)
{
    UNTIL(atomic_load(&j->begun));
}

/* Lets the job end, waits until the library no longer uses it, and checks the number of runs. */
static inline void job_release(struct job *j, int runs)
{
    atomic_store(&j->may_end, 1);
    fj_future_fini(&j->f);
    CHECK_EQ(atomic_load(&j->begun), runs);
    CHECK_EQ(atomic_load(&j->ended), runs);
}

/* The same for a job that may have been cancelled before it began. */
static inline void job_release_loser(struct job *j)
{
    atomic_store(&j->may_end, 1);
    fj_future_fini(&j->f);
    CHECK(atomic_load(&j->begun) <= 1);
    CHECK_EQ(atomic_load(&j->ended), atomic_load(&j->begun));
}

/* Occupies one worker until job_release(). */
static inline void job_occupy(fj_pool *p, struct job *j)
{
    job_init_held(j);
    CHECK_EQ(fj_future_submit(p, &j->f), FJ_OK);
    job_begun(j);
}

/* An action that counts its runs. */
static inline int action_count(void *counter)
{
    atomic_fetch_add((atomic_int *)counter, 1);
    return FJ_OK;
}

static inline int call_identity(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

/* Returns the code that `arg` points to. */
static inline int call_fail(void *arg, void **result)
{
    (void)result;
    return *(int *)arg;
}

/* ---- Inside a pool ----------------------------------------------------------------------- */

/* Runs body(arg) on a worker of a new pool, which is then destroyed. */
static inline void inside_pool(void (*body)(void *arg), void *arg)
{
    fj_pool *p = conformance_pool();

    inside(p, body, arg);
    fjt_destroy(p);
}

/* ---- Callers that can be interrupted ----------------------------------------------------- */

/*
 * In this library only a task can be interrupted, so a task takes the place of the thread that Java
 * interrupts. It belongs to a pool of its own, so that an interrupt does not affect the pool that
 * it calls.
 */
struct caller {
    fj_future f;
    fj_pool *home;
    void (*body)(void *arg);
    void *arg;
    bool before; /* the body waits for the interrupt before it starts */
    atomic_int begun;
};

static inline int caller_run(fj_task *t)
{
    struct caller *c = (struct caller *)t;

    atomic_store(&c->begun, 1);
    if (c->before) UNTIL(fj_is_cancelled());
    c->body(c->arg);
    CHECK(fj_is_cancelled() || !c->before); /* nothing clears the interrupt */
    return FJ_OK;
}

static inline void caller_start(struct caller *c, void (*body)(void *arg), void *arg, bool before)
{
    memset(c, 0, sizeof *c);
    fj_future_init(&c->f, caller_run);
    c->home = conformance_pool_of(1);
    c->body = body;
    c->arg = arg;
    c->before = before;
    CHECK_EQ(fj_future_submit(c->home, &c->f), FJ_OK);
    UNTIL(atomic_load(&c->begun));
}

static inline void caller_interrupt(struct caller *c)
{
    CHECK_EQ(fj_future_cancel(&c->f, 1), 1);
}

/* Waits until the body has returned, and destroys the caller. */
static inline void caller_end(struct caller *c)
{
    fj_future_fini(&c->f);
    check_cancelled(&c->f);
    fjt_destroy(c->home);
}

/* Runs body(arg) on a caller that is already interrupted. */
static inline void interrupted_before(void (*body)(void *arg), void *arg)
{
    struct caller c;

    caller_start(&c, body, arg, true);
    caller_interrupt(&c);
    caller_end(&c);
}

/* ---- Any of several ---------------------------------------------------------------------- */

/* Each of these checks is made with and without a timeout. */

static inline void any_refuses_null_list(fj_pool *p, int64_t limit)
{
    size_t which = 77;

    CHECK_EQ(fj_future_invoke_any(p, NULL, 1, limit, &which), FJ_EINVAL);
    CHECK_EQ(which, 77);
}

static inline void any_refuses_empty_list(fj_pool *p, int64_t limit)
{
    fj_future *none[1] = {NULL};
    size_t which = 77;

    CHECK_EQ(fj_future_invoke_any(p, none, 0, limit, &which), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_any(p, NULL, 0, limit, &which), FJ_EINVAL);
    CHECK_EQ(which, 77);
}

/* A refused call has no effect: the future beside the NULL can still be used. */
static inline void any_refuses_null_element(fj_pool *p, int64_t limit)
{
    for (int at = 0; at < 2; at++) {
        struct job j;
        job_init(&j, FJ_OK);
        fj_future *f[2] = {&j.f, &j.f};
        size_t which = 77;
        f[at] = NULL;
        CHECK_EQ(fj_future_invoke_any(p, f, 2, limit, &which), FJ_EINVAL);
        CHECK_EQ(which, 77);
        state_check_stuck(&j.f);
        CHECK_EQ(fj_future_invoke(p, &j.f), FJ_OK);
        job_release(&j, 1);
    }
}

static inline void any_reports_failure(fj_pool *p, int64_t limit)
{
    struct job j[3];
    fj_future *f[3];
    size_t which = 77;

    for (int i = 0; i < 3; i++) {
        job_init(&j[i], 31);
        f[i] = &j[i].f;
    }
    CHECK_EQ(fj_future_invoke_any(p, f, 3, limit, &which), 31);
    CHECK_EQ(which, 77);
    for (int i = 0; i < 3; i++) {
        job_release(&j[i], 1);
        check_failed(&j[i].f, 31);
    }
}

static inline void any_gives_a_value(fj_pool *p, int64_t limit)
{
    struct job j[3];
    fj_future *f[3];
    size_t which = 77;

    for (int i = 0; i < 3; i++) {
        job_init(&j[i], i == 1 ? 31 : FJ_OK);
        f[i] = &j[i].f;
    }
    CHECK_EQ(fj_future_invoke_any(p, f, 3, limit, &which), FJ_OK);
    CHECK(which == 0 || which == 2);
    check_normal(f[which], &j[which]);
    for (int i = 0; i < 3; i++) {
        CHECK(fj_future_is_done(f[i]));
        job_release_loser(&j[i]);
    }
}

/* ---- All of several ---------------------------------------------------------------------- */

static inline void all_refuses_null_list(fj_pool *p, int64_t limit)
{
    CHECK_EQ(fj_future_invoke_all(p, NULL, 1, limit), FJ_EINVAL);
}

static inline void all_of_none_is_done(fj_pool *p, int64_t limit)
{
    fj_future *none[1] = {NULL};

    CHECK_EQ(fj_future_invoke_all(p, none, 0, limit), FJ_OK);
    CHECK_EQ(fj_future_invoke_all(p, NULL, 0, limit), FJ_OK);
}

static inline void all_refuses_null_element(fj_pool *p, int64_t limit)
{
    for (int at = 0; at < 2; at++) {
        struct job j;
        job_init(&j, FJ_OK);
        fj_future *f[2] = {&j.f, &j.f};
        f[at] = NULL;
        CHECK_EQ(fj_future_invoke_all(p, f, 2, limit), FJ_EINVAL);
        state_check_stuck(&j.f);
        CHECK_EQ(fj_future_invoke(p, &j.f), FJ_OK);
        job_release(&j, 1);
    }
}

/* Five jobs, of which those with an odd index fail, each with a different code. */
static inline void all_keeps_failures_apart(fj_pool *p, int64_t limit)
{
    struct job j[5];
    fj_future *f[5];

    for (int i = 0; i < 5; i++) {
        job_init(&j[i], i % 2 == 0 ? FJ_OK : 40 + i);
        f[i] = &j[i].f;
    }
    CHECK_EQ(fj_future_invoke_all(p, f, 5, limit), 41);
    for (int i = 0; i < 5; i++) {
        state_check_done(f[i], j[i].code, &j[i]);
        job_release(&j[i], 1);
    }
}

static inline void all_gives_all_values(fj_pool *p, int64_t limit)
{
    struct job j[20];
    fj_future *f[20];

    for (int i = 0; i < 20; i++) {
        job_init(&j[i], FJ_OK);
        f[i] = &j[i].f;
    }
    CHECK_EQ(fj_future_invoke_all(p, f, 20, limit), FJ_OK);
    for (int i = 0; i < 20; i++) {
        check_normal(f[i], &j[i]);
        job_release(&j[i], 1);
    }
}

/* ---- On a pool --------------------------------------------------------------------------- */

/* One of the checks above. */
typedef void bulk_check(fj_pool *p, int64_t limit);

static inline void on_a_pool(bulk_check *check, int64_t limit)
{
    fj_pool *p = conformance_pool();

    check(p, limit);
    fjt_destroy(p);
}

/* The same on a pool whose callers help. */
static inline void on_a_direct_pool(bulk_check *check, int64_t limit)
{
    fj_pool *p = conformance_direct_pool();

    check(p, limit);
    fjt_destroy(p);
}

#endif /* CONFORMANCE_H */
