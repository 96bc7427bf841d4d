/* SPDX-License-Identifier: MIT */
/*
 * future_checks.h - checks of a future's state and the steps that change it, for several kinds
 *
 * A kind says how a task that computes fib(n) is created, queued and run. There are futures that
 * their children complete, futures that join their children, and completers. The steps are the same
 * for all kinds. After each step the test calls every function that returns something about a
 * future.
 */
#ifndef FJT_FUTURE_CHECKS_H
#define FJT_FUTURE_CHECKS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fjtest.h"
#include "state_checks.h"

/* The code of a task that fails. */
#define CODE 4711

/* A result is a number, which is never dereferenced. */
static inline void *number(long n)
{
    return (void *)(intptr_t)n;
}

struct kind {
    /* Returns a new task for fib(n), on the heap. If `fails` is not 0, it fails with CODE. */
    fj_future *(*make)(int n, int fails);
    int (*fork)(fj_future *f);
    int (*invoke)(fj_future *f);
    /* Returns how often the body of f has begun. */
    int (*begun)(const fj_future *f);
    /* Returns the tag that f must have; NULL means 0. `code` is FJ_EBUSY while f is not done. */
    int16_t (*tag)(const fj_future *f, int code);
    /* Frees f. Tasks that it has forked may still run. */
    void (*drop)(fj_future *f);
    /* Number of tasks of this kind that are not freed. It is 0 after the pool is destroyed. */
    atomic_int *alive;
};

/*
 * The step depends on the queue of its only worker, so it makes no call that lets another thread
 * run in the pool. fj_future_wait_any() does so even if there is nothing to wait for.
 */
static bool stage_alone;

/* ---- The state of a future -------------------------------------------------------------- */

static inline void check_tag(const struct kind *k, const fj_future *f, int code)
{
    CHECK_EQ(fj_future_tag(f), k->tag != NULL ? k->tag(f, code) : 0);
}

/* Checks that f is not done. No thread can end it meanwhile, and the checks must not change it. */
static inline void check_open(const struct kind *k, fj_future *f)
{
    static const int64_t past[] = {0, -1, INT64_MIN};
    size_t which = 7;
    int begun = k->begun(f);

    state_check_stuck(f);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_future_wait_all(&f, 1, past[i]), FJ_ETIMEDOUT);
        if (!stage_alone) CHECK_EQ(fj_future_wait_any(&f, 1, past[i], &which), FJ_ETIMEDOUT);
    }
    CHECK_EQ(which, 7);
    CHECK_EQ(fj_future_is_done(f), 0);
    CHECK_EQ(k->begun(f), begun);
    check_tag(k, f, FJ_EBUSY);
}

/* The waits for several futures return at once, too. */
static inline void check_group_waits(fj_future *f)
{
    static const int64_t limits[] = {FJ_FOREVER, LONG_NS, 1, 0, -1, INT64_MIN};
    size_t which = 7;

    for (int i = 0; i < 6; i++) {
        CHECK_EQ(fj_future_wait_all(&f, 1, limits[i]), FJ_OK);
        if (stage_alone) continue;
        CHECK_EQ(fj_future_wait_any(&f, 1, limits[i], &which), FJ_OK);
        CHECK_EQ(which, 0);
    }
}

/* Checks that f is done with `code`, and with `value` if that is FJ_OK. No call changes that. */
static inline void check_done(const struct kind *k, fj_future *f, int code, void *value)
{
    int begun = k->begun(f);

    for (int i = 0; i < 2; i++) {
        state_check_done(f, code, value);
        check_group_waits(f);
        check_tag(k, f, code);
        CHECK_EQ(k->invoke(f), code);
    }
    state_check_flags(f, code);
    state_check_waits(f, code, value);
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

/* Checks that f was cancelled before its body began. */
static inline void check_cancelled(const struct kind *k, fj_future *f)
{
    check_done(k, f, FJ_ECANCELED, NULL);
    CHECK_EQ(k->begun(f), 0);
}

/* ---- Where the steps run ---------------------------------------------------------------- */

typedef void step_fn(const struct kind *k);

struct stage {
    fj_task task;
    const struct kind *k;
    step_fn *step;
};

/* The pool that runs the step. NULL if a thread outside any pool runs it. */
static fj_pool *stage_pool;

static inline int stage_run(fj_task *t)
{
    struct stage *s = (struct stage *)t;

    s->step(s->k);
    return FJ_OK;
}

/* Runs step(k) on a worker of a new pool, which is destroyed afterwards. */
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
    on_pool(conformance_workers(), conformance_flags(), k, step);
}

static inline void on_one(const struct kind *k, step_fn *step)
{
    on_pool(1, conformance_flags(), k, step);
}

/* The same on a worker whose queue no other thread takes from, in the order that `flags`
 * selects. */
static inline void on_alone(unsigned flags, const struct kind *k, step_fn *step)
{
    stage_alone = true;
    on_pool(1, flags, k, step);
}

/* Runs step(k) in the calling thread. Its forks go to the common pool. */
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

/* Checks that f is done, that its body has run once, and that it cannot be forked again. */
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

    CHECK_EQ(k->fork(f), FJ_EINVAL); /* it is already queued */
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

/* A failure without a code gets FJ_EFAILED, and the body does not run. */
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
    fj_future_fini(g); /* returns after a worker has taken it */
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
    fj_future_fini(f); /* if it was queued, returns after a worker has taken it */
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

/* ---- Steps: completed by a call --------------------------------------------------------- */

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

/* A stored result can be read back. While the task is not done, the getters do not return it. */
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

/* ---- Steps: reset and run again --------------------------------------------------------- */

/* Six rounds, alternately run here and forked. After each one the future is reset, whether it
 * failed or not. */
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
        if (!fails) CHECK(f->result == number(21)); /* kept until the next result is stored */
    }
    k->drop(f);
}

/* A future that was cancelled, completed or failed by a call can be reset as well, and then
 * runs. */
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
    CHECK_EQ(fj_future_reinit(f), FJ_EBUSY); /* it is not done */
    check_open(k, f);
    k->drop(f);
}

static inline void step_reinit_abnormal(const struct kind *k)
{
    reinit_rounds(k, 1);
}

/* ---- Steps: several futures ------------------------------------------------------------- */

/* A structured task that runs a future and returns its code. */
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

/* Computes fib(7), fib(8) and fib(9). The one with the index `failing` fails. */
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

/* Every future is done, also if another one has failed. */
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

/* Futures instead of tasks: the call returns the first error, and each future has its own code. */
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

/* A list of n with NULL at `hole` is refused. No body has begun, so all futures can still be
 * used. */
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

/* ---- Steps: in which pool a body runs --------------------------------------------------- */

/* Completes itself with its current pool as the result. */
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

/* In a thread that belongs to no pool. */
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
    CHECK_EQ(fj_future_join(f), FJ_OK); /* unchanged by the wait */
    CHECK(fj_current_pool() != NULL);
    CHECK(fj_current_worker() >= 0);
    end_of_forked(k, f, FJ_OK, 21);
}

/* The thread belongs to no pool, also after it has helped the common pool. */
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

    check_open(k, f); /* checking a queued future does not run it */
    CHECK_EQ(fj_worker_queued(), 2);
    CHECK_EQ(fj_future_unfork(f), 1);
    CHECK_EQ(fj_worker_queued(), 1);
    CHECK_EQ(fj_future_unfork(f), 0);
    fj_help_quiesce();
    check_open(k, f);
    CHECK_EQ(k->begun(f), 0);
    end_of_forked(k, g, FJ_OK, 34);
    CHECK_EQ(k->fork(f), FJ_OK); /* it can be forked again */
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

/* `newest` says whether the worker runs its newest task first. */
static inline void peek_round(const struct kind *k, bool newest)
{
    CHECK(fj_peek_local() == NULL);
    fj_future *g = forked(k, 9, 0), *f = forked(k, 8, 0);

    CHECK(fj_peek_local() == (newest ? f : g));
    CHECK(fj_peek_local() == (newest ? f : g)); /* peeking does not take it */
    CHECK_EQ(fj_worker_queued(), 2);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    check_normal(k, f, 21);
    fj_help_quiesce();
    CHECK(fj_peek_local() == NULL);
    end_of_forked(k, f, FJ_OK, 21);
    end_of_forked(k, g, FJ_OK, 34);
}

/* The round with `run` comes last, because its wait lets a second thread run in the pool, which may
 * then steal. */
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
