/* SPDX-License-Identifier: MIT */
/*
 * future_checks.h - how a future must look before and after its end, and the steps that bring
 * it there, for every kind of future
 *
 * A kind says how a task that computes fib(n) is made, queued and run: by futures that are
 * completed by their children, by futures that join, by completers. The steps are the same
 * for all of them, and after each one everything that can be asked of a future is asked.
 *
 * FJT_WORKERS: workers where a test needs no certain number, default 4. FJT_FIFO=1: their
 * pools run oldest first.
 */
#ifndef FJT_FUTURE_CHECKS_H
#define FJT_FUTURE_CHECKS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fjtest.h"

/* What a task that fails fails with. */
#define CODE 4711

/* Longer than any test may take. */
#define LONG_NS ((int64_t)3600 * 1000000000)

/* A result is a number that is never followed as a pointer. */
static inline void *number(long n)
{
    return (void *)(intptr_t)n;
}

struct kind {
    /* A new task for fib(n), on the heap; one that fails with CODE if so asked. */
    fj_future *(*make)(int n, int fails);
    int (*fork)(fj_future *f);
    int (*invoke)(fj_future *f);
    /* How often its own body has begun. */
    int (*begun)(const fj_future *f);
    /* The tag it must have when it stands so; NULL: 0. code: FJ_EBUSY while it is open. */
    int16_t (*tag)(const fj_future *f, int code);
    /* The end of it. What it has forked may still run. */
    void (*drop)(fj_future *f);
    /* Tasks of this kind whose memory is not freed; after the pool is gone there are none. */
    atomic_int *alive;
};

/*
 * The step counts on the queue of its only worker: nothing is called that lets another thread
 * in. Waiting for one of several does, even if there is nothing to wait for.
 */
static bool stage_alone;

/* ---- How a future stands ---------------------------------------------------------------- */

static inline void check_tag(const struct kind *k, const fj_future *f, int code)
{
    CHECK_EQ(fj_future_tag(f), k->tag != NULL ? k->tag(f, code) : 0);
}

/* Not done, and nobody can make it so meanwhile: looking at it must not make a difference. */
static inline void check_open(const struct kind *k, fj_future *f)
{
    static const int64_t past[] = {0, -1, INT64_MIN};
    void *result = &result;
    size_t which = 7;
    int begun = k->begun(f);

    CHECK_EQ(fj_future_is_done(f), 0);
    CHECK_EQ(fj_future_succeeded(f), 0);
    CHECK_EQ(fj_future_failed(f), 0);
    CHECK_EQ(fj_future_is_cancelled(f), 0);
    CHECK_EQ(fj_future_state(f), FJ_FUTURE_RUNNING);
    CHECK_EQ(fj_future_error(f), FJ_OK);
    CHECK_EQ(fj_future_result(f, &result), FJ_EBUSY);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_future_get(f, past[i], &result), FJ_ETIMEDOUT);
        CHECK_EQ(fj_future_wait(f, past[i]), FJ_ETIMEDOUT);
        CHECK_EQ(fj_future_wait_quietly(f, past[i]), FJ_ETIMEDOUT);
        CHECK_EQ(fj_future_wait_all(&f, 1, past[i]), FJ_ETIMEDOUT);
        if (!stage_alone) CHECK_EQ(fj_future_wait_any(&f, 1, past[i], &which), FJ_ETIMEDOUT);
    }
    CHECK(result == &result); /* untouched */
    CHECK_EQ(which, 7);
    CHECK_EQ(fj_future_is_done(f), 0);
    CHECK_EQ(k->begun(f), begun);
    check_tag(k, f, FJ_EBUSY);
}

static inline void check_flags(const fj_future *f, int code)
{
    int cancelled = code == FJ_ECANCELED;

    CHECK_EQ(fj_future_is_done(f), 1);
    CHECK_EQ(fj_future_succeeded(f), code == FJ_OK);
    CHECK_EQ(fj_future_failed(f), code != FJ_OK);
    CHECK_EQ(fj_future_is_cancelled(f), cancelled);
    CHECK_EQ(fj_future_state(f), code == FJ_OK ? FJ_FUTURE_SUCCESS
                                 : cancelled   ? FJ_FUTURE_CANCELLED
                                               : FJ_FUTURE_FAILED);
    CHECK_EQ(fj_future_error(f), code);
}

/* All that waits returns at once with the outcome, however short its time is. */
static inline void check_waits(fj_future *f, int code, void *value)
{
    static const int64_t times[] = {FJ_FOREVER, LONG_NS, 1, 0, -1, INT64_MIN};
    void *result = &result, *want = code == FJ_OK ? value : (void *)&result;
    size_t which = 7;

    CHECK_EQ(fj_future_result(f, NULL), code);
    CHECK_EQ(fj_future_result(f, &result), code);
    CHECK(result == want);
    for (int i = 0; i < 6; i++) {
        result = &result;
        CHECK_EQ(fj_future_join(f), code);
        CHECK_EQ(fj_future_get(f, times[i], NULL), code);
        CHECK_EQ(fj_future_get(f, times[i], &result), code);
        CHECK(result == want);
        CHECK_EQ(fj_future_wait(f, times[i]), FJ_OK);
        CHECK_EQ(fj_future_wait_quietly(f, times[i]), FJ_OK);
        CHECK_EQ(fj_future_wait_all(&f, 1, times[i]), FJ_OK);
        if (stage_alone) continue;
        CHECK_EQ(fj_future_wait_any(&f, 1, times[i], &which), FJ_OK);
        CHECK_EQ(which, 0);
    }
}

/* Done with `code`, with `value` if that is FJ_OK; and whatever is tried, it stays so. */
static inline void check_done(const struct kind *k, fj_future *f, int code, void *value)
{
    int begun = k->begun(f);

    for (int i = 0; i < 2; i++) {
        check_flags(f, code);
        check_waits(f, code, value);
        check_tag(k, f, code);
        CHECK_EQ(fj_future_cancel(f, i), code == FJ_ECANCELED);
        CHECK_EQ(fj_future_complete(f, &begun), 0);
        CHECK_EQ(fj_future_complete_quietly(f), 0);
        CHECK_EQ(fj_future_fail(f, CODE + 1), 0);
        CHECK_EQ(fj_future_fail(f, 0), 0);
        CHECK_EQ(k->invoke(f), code);
    }
    check_flags(f, code);
    check_waits(f, code, value);
    CHECK_EQ(k->begun(f), begun);
}

static inline void check_normal(const struct kind *k, fj_future *f, long value)
{
    check_done(k, f, FJ_OK, number(value));
}

static inline void check_failed(const struct kind *k, fj_future *f)
{
    check_done(k, f, CODE, NULL);
}

/* Cancelled before it began. */
static inline void check_cancelled(const struct kind *k, fj_future *f)
{
    check_done(k, f, FJ_ECANCELED, NULL);
    CHECK_EQ(k->begun(f), 0);
}

/* ---- Where the steps run ---------------------------------------------------------------- */

static inline int env_workers(void)
{
    const char *n = getenv("FJT_WORKERS");
    int workers = n != NULL ? atoi(n) : 4;

    return workers >= 1 ? workers : 1;
}

static inline unsigned env_flags(void)
{
    const char *fifo = getenv("FJT_FIFO");

    return fifo != NULL && strcmp(fifo, "1") == 0 ? FJ_POOL_FIFO : 0;
}

typedef void step_fn(const struct kind *k);

struct stage {
    fj_task task;
    const struct kind *k;
    step_fn *step;
};

/* The pool that the step is on; NULL: it was started outside. */
static fj_pool *stage_pool;

static inline int stage_run(fj_task *t)
{
    struct stage *s = (struct stage *)t;

    s->step(s->k);
    return FJ_OK;
}

/* step(k) by a worker of a new pool, which is ended after it. */
static inline void on_pool(int workers, unsigned flags, const struct kind *k, step_fn *step)
{
    struct stage s = {.k = k, .step = step};

    stage_pool = fjt_pool(workers, flags);
    fj_task_init(&s.task, stage_run);
    CHECK_EQ(fj_invoke_mode(stage_pool, &s.task, FJ_CALLER_BLOCKS), FJ_OK);
    fjt_destroy(stage_pool);
    CHECK_EQ(atomic_load(k->alive), 0);
}

static inline void on_workers(const struct kind *k, step_fn *step)
{
    on_pool(env_workers(), env_flags(), k, step);
}

static inline void on_one(const struct kind *k, step_fn *step)
{
    on_pool(1, env_flags(), k, step);
}

/* The same on a worker that no other thread takes from, in this order. */
static inline void on_alone(unsigned flags, const struct kind *k, step_fn *step)
{
    stage_alone = true;
    on_pool(1, flags, k, step);
}

/* step(k) by this thread: what it forks goes to the common pool. */
static inline void outside(const struct kind *k, step_fn *step)
{
    stage_pool = NULL;
    step(k);
    CHECK_EQ(fj_pool_await_quiescence(NULL, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(k->alive), 0);
}

/* ---- Steps: run to the end -------------------------------------------------------------- */

static inline fj_future *made(const struct kind *k, int n, int fails)
{
    fj_future *f = k->make(n, fails);

    CHECK_EQ(k->begun(f), 0);
    check_open(k, f);
    return f;
}

static inline fj_future *forked(const struct kind *k, int n, int fails)
{
    fj_future *f = made(k, n, fails);

    CHECK_EQ(k->fork(f), FJ_OK);
    return f;
}

/* Done, its body has run once, and it cannot be queued again as it is. */
static inline void end_of_forked(const struct kind *k, fj_future *f, int code, long value)
{
    check_done(k, f, code, number(value));
    CHECK_EQ(k->begun(f), 1);
    CHECK_EQ(k->fork(f), FJ_EINVAL);
    check_done(k, f, code, number(value));
    k->drop(f);
}

static inline void step_invoke(const struct kind *k)
{
    fj_future *f = made(k, 8, 0);

    CHECK_EQ(k->invoke(f), FJ_OK);
    check_normal(k, f, 21);
    CHECK_EQ(k->begun(f), 1);
    k->drop(f);
}

static inline void step_quietly_invoke(const struct kind *k)
{
    fj_future *f = made(k, 8, 0);

    (void)k->invoke(f);
    CHECK_EQ(fj_future_is_done(f), 1);
    check_normal(k, f, 21);
    k->drop(f);
}

static inline void step_fork_join(const struct kind *k)
{
    fj_future *f = forked(k, 8, 0);

    CHECK_EQ(k->fork(f), FJ_EINVAL); /* it is there once */
    CHECK_EQ(fj_future_join(f), FJ_OK);
    end_of_forked(k, f, FJ_OK, 21);
}

static inline void step_fork_get(const struct kind *k)
{
    fj_future *f = forked(k, 8, 0);
    void *result = NULL;

    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == number(21));
    end_of_forked(k, f, FJ_OK, 21);
}

static inline void step_fork_timed_get(const struct kind *k)
{
    fj_future *f = forked(k, 8, 0);
    void *result = NULL;

    CHECK_EQ(fj_future_get(f, LONG_NS, &result), FJ_OK);
    CHECK(result == number(21));
    end_of_forked(k, f, FJ_OK, 21);
}

static inline void step_fork_quietly_join(const struct kind *k)
{
    fj_future *f = forked(k, 8, 0), *g = forked(k, 7, 0);

    CHECK_EQ(fj_future_wait_quietly(f, FJ_FOREVER), FJ_OK);
    end_of_forked(k, f, FJ_OK, 21);
    CHECK_EQ(fj_future_wait(g, LONG_NS), FJ_OK);
    end_of_forked(k, g, FJ_OK, 13);
}

static inline void step_fork_help_quiesce(const struct kind *k)
{
    fj_future *f = forked(k, 8, 0);

    fj_help_quiesce();
    CHECK_EQ(fj_future_is_done(f), 1);
    CHECK_EQ(fj_worker_queued(), 0);
    end_of_forked(k, f, FJ_OK, 21);
}

/* ---- Steps: failing --------------------------------------------------------------------- */

static inline void step_abnormal_invoke(const struct kind *k)
{
    fj_future *f = made(k, 8, 1);

    CHECK_EQ(k->invoke(f), CODE);
    CHECK_EQ(fj_future_cancel(f, 1), 0);
    check_failed(k, f);
    k->drop(f);
}

static inline void step_abnormal_quietly_invoke(const struct kind *k)
{
    fj_future *f = made(k, 8, 1);

    (void)k->invoke(f);
    CHECK_EQ(fj_future_error(f), CODE);
    check_failed(k, f);
    k->drop(f);
}

static inline void step_abnormal_fork_join(const struct kind *k)
{
    fj_future *f = forked(k, 8, 1);

    CHECK_EQ(fj_future_join(f), CODE);
    end_of_forked(k, f, CODE, 0);
}

static inline void step_abnormal_fork_get(const struct kind *k)
{
    fj_future *f = forked(k, 8, 1);
    void *result = &result;

    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), CODE);
    CHECK(result == &result);
    end_of_forked(k, f, CODE, 0);
}

static inline void step_abnormal_fork_timed_get(const struct kind *k)
{
    fj_future *f = forked(k, 8, 1);
    void *result = &result;

    CHECK_EQ(fj_future_get(f, LONG_NS, &result), CODE);
    CHECK(result == &result);
    end_of_forked(k, f, CODE, 0);
}

static inline void step_abnormal_fork_quietly_join(const struct kind *k)
{
    fj_future *f = forked(k, 8, 1);

    CHECK_EQ(fj_future_wait_quietly(f, LONG_NS), FJ_OK);
    CHECK_EQ(fj_future_error(f), CODE);
    end_of_forked(k, f, CODE, 0);
}

/* The code that a failure without one is given, and no run. */
static inline void step_complete_exceptionally_null(const struct kind *k)
{
    fj_future *f = made(k, 8, 0);

    CHECK_EQ(fj_future_fail(f, 0), 1);
    CHECK_EQ(k->invoke(f), FJ_EFAILED);
    check_done(k, f, FJ_EFAILED, NULL);
    CHECK_EQ(k->begun(f), 0);
    k->drop(f);
}

static inline void step_complete_exceptionally(const struct kind *k)
{
    fj_future *f = made(k, 8, 0), *g = made(k, 8, 0);

    CHECK_EQ(fj_future_fail(f, CODE), 1);
    CHECK_EQ(k->invoke(f), CODE);
    check_failed(k, f);
    CHECK_EQ(k->begun(f), 0);
    k->drop(f);
    CHECK_EQ(fj_future_fail(g, CODE), 1);
    CHECK_EQ(k->fork(g), FJ_OK);
    CHECK_EQ(fj_future_join(g), CODE);
    fj_future_fini(g); /* by now it has been in the hands of a worker */
    check_failed(k, g);
    CHECK_EQ(k->begun(g), 0);
    k->drop(g);
}

/* ---- Steps: cancelled before it began --------------------------------------------------- */

static inline fj_future *cancelled(const struct kind *k)
{
    fj_future *f = made(k, 8, 0);

    CHECK_EQ(fj_future_cancel(f, 1), 1);
    check_cancelled(k, f);
    return f;
}

static inline fj_future *cancelled_forked(const struct kind *k)
{
    fj_future *f = cancelled(k);

    CHECK_EQ(k->fork(f), FJ_OK);
    return f;
}

static inline void end_of_cancelled(const struct kind *k, fj_future *f)
{
    check_cancelled(k, f);
    fj_future_fini(f); /* by now a worker has had it, if it was queued */
    check_cancelled(k, f);
    k->drop(f);
}

static inline void step_cancelled_invoke(const struct kind *k)
{
    fj_future *f = cancelled(k);

    CHECK_EQ(k->invoke(f), FJ_ECANCELED);
    end_of_cancelled(k, f);
}

static inline void step_cancelled_fork_join(const struct kind *k)
{
    fj_future *f = cancelled_forked(k);

    CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
    end_of_cancelled(k, f);
}

static inline void step_cancelled_fork_get(const struct kind *k)
{
    fj_future *f = cancelled_forked(k);
    void *result = &result;

    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_ECANCELED);
    CHECK(result == &result);
    end_of_cancelled(k, f);
}

static inline void step_cancelled_fork_timed_get(const struct kind *k)
{
    fj_future *f = cancelled_forked(k);

    CHECK_EQ(fj_future_get(f, LONG_NS, NULL), FJ_ECANCELED);
    end_of_cancelled(k, f);
}

static inline void step_cancelled_fork_quietly_join(const struct kind *k)
{
    fj_future *f = cancelled_forked(k);

    CHECK_EQ(fj_future_wait_quietly(f, LONG_NS), FJ_OK);
    end_of_cancelled(k, f);
}

/* ---- Steps: completed by hand ----------------------------------------------------------- */

static inline void step_complete(const struct kind *k)
{
    fj_future *f = made(k, 8, 0), *g = made(k, 8, 1);

    CHECK_EQ(fj_future_complete(f, number(5)), 1);
    check_normal(k, f, 5);
    CHECK_EQ(k->invoke(f), FJ_OK);
    check_normal(k, f, 5);
    CHECK_EQ(k->begun(f), 0);
    k->drop(f);
    CHECK_EQ(fj_future_complete(g, NULL), 1);
    CHECK_EQ(k->fork(g), FJ_OK);
    CHECK_EQ(fj_future_join(g), FJ_OK);
    fj_future_fini(g);
    check_normal(k, g, 0);
    CHECK_EQ(k->begun(g), 0);
    k->drop(g);
}

static inline void step_quietly_complete(const struct kind *k)
{
    fj_future *f = made(k, 8, 0), *g = made(k, 8, 0);

    CHECK_EQ(fj_future_complete_quietly(f), 1);
    check_normal(k, f, 0);
    CHECK_EQ(k->begun(f), 0);
    k->drop(f);
    g->result = number(6);
    CHECK_EQ(fj_future_complete_quietly(g), 1);
    check_normal(k, g, 6);
    CHECK_EQ(k->begun(g), 0);
    k->drop(g);
}

/* What is stored is what is read; while the task is open it cannot be had as an outcome. */
static inline void step_set_raw_result(const struct kind *k)
{
    fj_future *f = made(k, 8, 0);

    CHECK(f->result == NULL);
    for (long i = 3; i < 6; i++) {
        f->result = number(i);
        CHECK(f->result == number(i));
        check_open(k, f);
    }
    CHECK_EQ(fj_future_complete_quietly(f), 1);
    check_normal(k, f, 5);
    CHECK(f->result == number(5));
    k->drop(f);
}

/* ---- Steps: again ----------------------------------------------------------------------- */

/* Three times, run here and queued in turn; failing or not, it is new again each time. */
static inline void reinit_rounds(const struct kind *k, int fails)
{
    fj_future *f = made(k, 8, fails);
    int code = fails ? CODE : FJ_OK;

    for (int i = 0; i < 6; i++) {
        check_open(k, f);
        CHECK_EQ(fj_future_set_tag(f, 9), 0);
        CHECK_EQ(fj_future_set_tag(f, 0), 9);
        if (i % 2 == 0) {
            CHECK_EQ(k->invoke(f), code);
        } else {
            CHECK_EQ(k->fork(f), FJ_OK);
            CHECK_EQ(fj_future_join(f), code);
            fj_future_fini(f);
        }
        check_done(k, f, code, number(21));
        CHECK_EQ(k->begun(f), i + 1);
        (void)fj_future_set_tag(f, 9);
        CHECK_EQ(fj_future_reinit(f), FJ_OK);
        CHECK_EQ(fj_future_error(f), FJ_OK);
        if (!fails) CHECK(f->result == number(21)); /* stays until there is another */
    }
    k->drop(f);
}

/* What was cancelled or completed by hand is new again, too, and then runs. */
static inline void step_reinit(const struct kind *k)
{
    reinit_rounds(k, 0);
    for (int i = 0; i < 3; i++) {
        fj_future *f = made(k, 8, 0);
        if (i == 0) CHECK_EQ(fj_future_cancel(f, 1), 1);
        if (i == 1) CHECK_EQ(fj_future_complete(f, number(5)), 1);
        if (i == 2) CHECK_EQ(fj_future_fail(f, CODE), 1);
        CHECK_EQ(fj_future_reinit(f), FJ_OK);
        check_open(k, f);
        CHECK_EQ(k->fork(f), FJ_OK);
        CHECK_EQ(fj_future_join(f), FJ_OK);
        end_of_forked(k, f, FJ_OK, 21);
    }
    fj_future *f = made(k, 8, 0);
    CHECK_EQ(fj_future_reinit(f), FJ_EBUSY); /* it is new */
    check_open(k, f);
    k->drop(f);
}

static inline void step_reinit_abnormal(const struct kind *k)
{
    reinit_rounds(k, 1);
}

/* ---- Steps: several --------------------------------------------------------------------- */

/* A structured task that runs a future and returns how that ended. */
struct runner {
    fj_task task;
    const struct kind *k;
    fj_future *f;
};

static inline int runner_run(fj_task *t)
{
    struct runner *r = (struct runner *)t;

    return r->k->invoke(r->f);
}

/* fib(7), fib(8), fib(9); the one at `failing` fails. */
struct several {
    struct runner runner[3];
    fj_task *task[3];
    fj_future *f[3];
    int n, failing;
};

static inline void several_make(struct several *s, const struct kind *k, int n, int failing)
{
    s->n = n;
    s->failing = failing;
    for (int i = 0; i < n; i++) {
        s->f[i] = made(k, 7 + i, i == failing);
        s->runner[i] = (struct runner){.k = k, .f = s->f[i]};
        fj_task_init(&s->runner[i].task, runner_run);
        s->task[i] = &s->runner[i].task;
    }
}

/* Every one of them is done, also beside one that has failed. */
static inline void several_end(struct several *s, const struct kind *k)
{
    static const long fib[] = {13, 21, 34};

    for (int i = 0; i < s->n; i++) CHECK_EQ(fj_future_is_done(s->f[i]), 1);
    for (int i = 0; i < s->n; i++) {
        check_done(k, s->f[i], i == s->failing ? CODE : FJ_OK, number(fib[i]));
        CHECK_EQ(k->begun(s->f[i]), 1);
        k->drop(s->f[i]);
    }
}

static inline void both_round(const struct kind *k, int failing)
{
    struct several s;

    several_make(&s, k, 2, failing);
    CHECK_EQ(fj_invoke_both(s.task[0], s.task[1]), failing < 0 ? FJ_OK : CODE);
    several_end(&s, k);
}

static inline void list_round(const struct kind *k, int n, int failing)
{
    struct several s;

    several_make(&s, k, n, failing);
    CHECK_EQ(fj_invoke_all(s.task, (size_t)n), failing < 0 ? FJ_OK : CODE);
    several_end(&s, k);
    several_make(&s, k, n, failing);
    CHECK_EQ(fj_invoke_array(s.runner, (size_t)n, sizeof s.runner[0]), failing < 0 ? FJ_OK : CODE);
    several_end(&s, k);
}

/* Futures themselves: the call returns the first error, each of them has its own. */
static inline void futures_round(const struct kind *k, int failing)
{
    struct several s;

    several_make(&s, k, 3, failing);
    CHECK_EQ(fj_future_invoke_all(stage_pool, s.f, 3, FJ_FOREVER), failing >= 0 ? CODE : FJ_OK);
    several_end(&s, k);
    several_make(&s, k, 3, failing);
    CHECK_EQ(fj_future_invoke_all(stage_pool, s.f, 3, LONG_NS), failing >= 0 ? CODE : FJ_OK);
    several_end(&s, k);
    several_make(&s, k, 3, failing);
    CHECK_EQ(fj_future_invoke_all_quietly(stage_pool, s.f, 3), FJ_OK);
    several_end(&s, k);
}

static inline void step_invoke_all_2(const struct kind *k)
{
    both_round(k, -1);
}

static inline void step_invoke_all_1(const struct kind *k)
{
    list_round(k, 1, -1);
}

static inline void step_invoke_all_3(const struct kind *k)
{
    list_round(k, 3, -1);
}

static inline void step_invoke_all_futures(const struct kind *k)
{
    futures_round(k, -1);
}

static inline void step_abnormal_invoke_all_2(const struct kind *k)
{
    for (int i = 0; i < 2; i++) both_round(k, i);
}

static inline void step_abnormal_invoke_all_1(const struct kind *k)
{
    list_round(k, 1, 0);
}

static inline void step_abnormal_invoke_all_3(const struct kind *k)
{
    for (int i = 0; i < 3; i++) list_round(k, 3, i);
}

static inline void step_abnormal_invoke_all_futures(const struct kind *k)
{
    for (int i = 0; i < 3; i++) futures_round(k, i);
}

/* NULL at `hole` of n: refused, and nothing has begun, so that all can be used afterwards. */
static inline void null_round(const struct kind *k, int n, int hole)
{
    struct several s;
    fj_task *task[3];
    fj_future *f[3];

    several_make(&s, k, n, -1);
    for (int i = 0; i < n; i++) {
        task[i] = i == hole ? NULL : s.task[i];
        f[i] = i == hole ? NULL : s.f[i];
    }
    if (n == 2) CHECK_EQ(fj_invoke_both(task[0], task[1]), FJ_EINVAL);
    CHECK_EQ(fj_invoke_all(task, (size_t)n), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_all(stage_pool, f, (size_t)n, FJ_FOREVER), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_all(stage_pool, f, (size_t)n, 0), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_all_quietly(stage_pool, f, (size_t)n), FJ_EINVAL);
    CHECK_EQ(fj_worker_queued(), 0);
    for (int i = 0; i < n; i++) {
        check_open(k, s.f[i]);
        CHECK_EQ(k->begun(s.f[i]), 0);
    }
    CHECK_EQ(fj_future_invoke_all(stage_pool, s.f, (size_t)n, FJ_FOREVER), FJ_OK);
    several_end(&s, k);
}

static inline void step_invoke_all_null(const struct kind *k)
{
    CHECK_EQ(fj_invoke_both(NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_invoke_all(NULL, 1), FJ_EINVAL);
    CHECK_EQ(fj_invoke_array(NULL, 1, sizeof(struct runner)), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_all(stage_pool, NULL, 1, FJ_FOREVER), FJ_EINVAL);
    for (int n = 1; n <= 3; n++)
        for (int hole = 0; hole < n; hole++) null_round(k, n, hole);
}

/* ---- Steps: where am I ------------------------------------------------------------------ */

/* Completes itself with the pool it finds itself in. */
static inline int pool_run(fj_task *t)
{
    fj_future *f = (fj_future *)t;

    CHECK_EQ(fj_current_worker() >= 0, fj_current_pool() != NULL);
    CHECK_EQ(fj_future_complete(f, fj_current_pool()), 1);
    return FJ_PENDING;
}

static inline void pool_seen_by(int (*run)(fj_future *f), fj_pool *want)
{
    fj_future f;
    void *pool = &pool;

    fj_future_init(&f, pool_run);
    CHECK_EQ(run(&f), FJ_OK);
    CHECK_EQ(fj_future_get(&f, FJ_FOREVER, &pool), FJ_OK);
    CHECK(pool == want);
    fj_future_fini(&f);
}

static inline void step_get_pool(const struct kind *k)
{
    (void)k;
    CHECK(stage_pool != NULL && fj_current_pool() == stage_pool);
    pool_seen_by(fj_future_run, stage_pool);
    pool_seen_by(fj_future_fork, stage_pool);
}

/* By a thread of no pool. */
static inline void step_get_pool_outside(const struct kind *k)
{
    (void)k;
    CHECK(fj_current_pool() == NULL);
    pool_seen_by(fj_future_run, NULL);
    CHECK(fj_current_pool() == NULL);
}

static inline void step_in_pool(const struct kind *k)
{
    fj_future *f = forked(k, 8, 0);

    CHECK(fj_current_pool() != NULL);
    CHECK(fj_current_worker() >= 0);
    CHECK_EQ(fj_future_join(f), FJ_OK); /* still so after a wait */
    CHECK(fj_current_pool() != NULL);
    CHECK(fj_current_worker() >= 0);
    end_of_forked(k, f, FJ_OK, 21);
}

/* Also after the thread has worked for the common pool for a while. */
static inline void step_in_no_pool(const struct kind *k)
{
    fj_future *f;

    CHECK(fj_current_pool() == NULL);
    CHECK_EQ(fj_current_worker(), -1);
    f = forked(k, 8, 0);
    CHECK(fj_current_pool() == NULL);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    CHECK(fj_current_pool() == NULL);
    CHECK_EQ(fj_current_worker(), -1);
    end_of_forked(k, f, FJ_OK, 21);
}

/* ---- Steps: queues, on a pool with one worker ------------------------------------------- */

static inline void step_try_unfork(const struct kind *k)
{
    fj_future *g = forked(k, 9, 0), *f = forked(k, 8, 0);

    check_open(k, f); /* a look at what is queued here does not run it */
    CHECK_EQ(fj_worker_queued(), 2);
    CHECK_EQ(fj_future_unfork(f), 1);
    CHECK_EQ(fj_worker_queued(), 1);
    CHECK_EQ(fj_future_unfork(f), 0);
    fj_help_quiesce();
    check_open(k, f);
    CHECK_EQ(k->begun(f), 0);
    end_of_forked(k, g, FJ_OK, 34);
    CHECK_EQ(k->fork(f), FJ_OK); /* it is as new */
    CHECK_EQ(fj_future_join(f), FJ_OK);
    CHECK_EQ(fj_future_unfork(f), 0);
    end_of_forked(k, f, FJ_OK, 21);
}

static inline void step_surplus(const struct kind *k)
{
    fj_future *h = forked(k, 7, 0), *g = forked(k, 9, 0), *f = forked(k, 8, 0);

    CHECK(fj_worker_surplus() > 0);
    CHECK_EQ(fj_worker_queued(), 3);
    fj_help_quiesce();
    CHECK_EQ(fj_worker_surplus(), 0);
    CHECK_EQ(fj_worker_queued(), 0);
    end_of_forked(k, f, FJ_OK, 21);
    end_of_forked(k, g, FJ_OK, 34);
    end_of_forked(k, h, FJ_OK, 13);
}

/* newest: whether the worker runs its newest task first. */
static inline void peek_round(const struct kind *k, bool newest)
{
    CHECK(fj_peek_local() == NULL);
    fj_future *g = forked(k, 9, 0), *f = forked(k, 8, 0);

    CHECK(fj_peek_local() == (newest ? f : g));
    CHECK(fj_peek_local() == (newest ? f : g)); /* it was not taken */
    CHECK_EQ(fj_worker_queued(), 2);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    check_normal(k, f, 21);
    fj_help_quiesce();
    CHECK(fj_peek_local() == NULL);
    end_of_forked(k, f, FJ_OK, 21);
    end_of_forked(k, g, FJ_OK, 34);
}

/* run: last of all, as a wait lets a second thread in, which then takes its share of a queue. */
static inline void poll_round(const struct kind *k, bool newest, int (*take)(fj_taken *), bool run)
{
    fj_future *g = forked(k, 9, 0), *f = forked(k, 8, 0);
    fj_future *first = newest ? f : g, *other = newest ? g : f;
    fj_taken taken;

    CHECK_EQ(take(&taken), 1);
    CHECK(fj_taken_task(&taken) == (fj_task *)first);
    CHECK_EQ(fj_worker_queued(), 1);
    fj_help_quiesce();
    CHECK_EQ(fj_future_is_done(first), 0);
    CHECK_EQ(k->begun(first), 0);
    end_of_forked(k, other, FJ_OK, newest ? 34 : 21);
    if (run) {
        fj_taken_run(&taken);
        CHECK_EQ(fj_future_join(first), FJ_OK);
        end_of_forked(k, first, FJ_OK, newest ? 21 : 34);
    } else {
        fj_taken_cancel(&taken);
        end_of_cancelled(k, first);
    }
    CHECK_EQ(take(&taken), 0);
}

static inline void step_peek_lifo(const struct kind *k)
{
    peek_round(k, true);
}

static inline void step_peek_fifo(const struct kind *k)
{
    peek_round(k, false);
}

static inline void step_poll_local_lifo(const struct kind *k)
{
    poll_round(k, true, fj_take_local, false);
    poll_round(k, true, fj_take_local, true);
}

static inline void step_poll_local_fifo(const struct kind *k)
{
    poll_round(k, false, fj_take_local, false);
    poll_round(k, false, fj_take_local, true);
}

static inline void step_poll_task_lifo(const struct kind *k)
{
    poll_round(k, true, fj_take_task, false);
    poll_round(k, true, fj_take_task, true);
}

static inline void step_poll_task_fifo(const struct kind *k)
{
    poll_round(k, false, fj_take_task, false);
    poll_round(k, false, fj_take_task, true);
}

#endif /* FJT_FUTURE_CHECKS_H */
