/* SPDX-License-Identifier: MIT */
/*
 * codes.c - a join returns the code of the body unchanged, whatever the number and the thread
 */
#include <limits.h>
#include <stdatomic.h>

#include "inside.h"

static const int codes[] = {
    1,           INT_MAX,      -1,           -5,           -1000,         INT_MIN,
    INT_MIN + 1, FJ_EAGAIN,    FJ_ENOMEM,    FJ_EBUSY,     FJ_EINVAL,     FJ_EDEADLK,
    FJ_ENOTSUP,  FJ_ETIMEDOUT, FJ_ECANCELED, FJ_EREJECTED, FJ_ESATURATED, FJ_EFAILED,
    FJ_PENDING};

enum { CODES = sizeof codes / sizeof codes[0] };

struct coded {
    fj_task task;
    int code;
    atomic_int begun;
};

static int coded_run(fj_task *t)
{
    struct coded *c = (struct coded *)t;

    atomic_store(&c->begun, 1);
    return c->code;
}

static struct coded *coded_init(struct coded *c, int code)
{
    fj_task_init(&c->task, coded_run);
    c->code = code;
    atomic_store(&c->begun, 0);
    return c;
}

/* ---- Structured tasks ------------------------------------------------------------------------ */

static void forks_and_joins(void *arg)
{
    struct coded c, d;

    (void)arg;
    for (int i = 0; i < CODES; i++) {
        fj_fork(&coded_init(&c, codes[i])->task);
        CHECK_EQ(fj_join(&c.task), codes[i]);
        fj_fork(&coded_init(&c, codes[i])->task);
        CHECK_EQ(fj_join_stolen(&c.task), codes[i]);
        CHECK_EQ(fj_invoke_both(&coded_init(&c, codes[i])->task, &coded_init(&d, 0)->task),
                 codes[i]);
        CHECK_EQ(fj_invoke_both(&coded_init(&c, 0)->task, &coded_init(&d, codes[i])->task),
                 codes[i]);
        CHECK_EQ(fj_invoke_array(coded_init(&c, codes[i]), 1, sizeof c), codes[i]);
    }
}

FJ_TEST(code_of_a_task_that_its_forker_runs_is_unchanged, 20)
{
    fj_pool *p = fjt_pool(1, 0);

    inside(p, forks_and_joins, NULL);
    fjt_destroy(p);
    forks_and_joins(NULL);
}

static void forks_and_is_robbed(void *arg)
{
    struct coded c;

    (void)arg;
    for (int i = 0; i < CODES; i++) {
        fj_fork(&coded_init(&c, codes[i])->task);
        while (!atomic_load(&c.begun)) fjt_sleep_us(10);
        CHECK_EQ(fj_join(&c.task), codes[i]);
    }
}

FJ_TEST(code_of_a_stolen_task_is_unchanged, 20)
{
    fj_pool *p = fjt_pool(2, 0);

    inside(p, forks_and_is_robbed, NULL);
    fjt_destroy(p);
}

static void submits(fj_pool *p)
{
    struct coded c;
    fj_token token;

    fj_token_init(&token, NULL);
    for (int i = 0; i < CODES; i++) {
        CHECK_EQ(fj_submit(p, &coded_init(&c, codes[i])->task), FJ_OK);
        CHECK_EQ(fj_join(&c.task), codes[i]);
        CHECK_EQ(fj_submit_external(p, &coded_init(&c, codes[i])->task), FJ_OK);
        CHECK_EQ(fj_join(&c.task), codes[i]);
        CHECK_EQ(fj_submit_lazy(p, &coded_init(&c, codes[i])->task), FJ_OK);
        CHECK_EQ(fj_join(&c.task), codes[i]);
        CHECK_EQ(fj_invoke(p, &coded_init(&c, codes[i])->task), codes[i]);
        CHECK_EQ(fj_invoke_mode(p, &c.task, FJ_CALLER_HELPS), codes[i]);
        CHECK_EQ(fj_invoke_mode(p, &c.task, FJ_CALLER_BLOCKS), codes[i]);
        CHECK_EQ(fj_invoke_token(p, &c.task, &token), codes[i]);
    }
}

static void submits_inside(void *arg)
{
    submits(arg);
}

FJ_TEST(code_of_a_submitted_task_is_unchanged, 20)
{
    fj_pool *p = fjt_pool(2, 0), *helped = fjt_pool(1, FJ_POOL_CALLER_HELPS);

    submits(p);
    submits(helped);
    submits(NULL);
    inside(p, submits_inside, p);
    inside(p, submits_inside, helped);
    fjt_destroy(p);
    fjt_destroy(helped);
}

static int refuse(fj_pool *pool, void *arg)
{
    (void)pool, (void)arg;
    return 0;
}

FJ_TEST(code_of_a_task_that_was_taken_by_hand_is_unchanged, 20)
{
    fj_pool_options o = {0};
    struct coded c;
    fj_taken taken;

    o.parallelism = 1;
    o.allow_thread = refuse;
    fj_pool *p = fjt_pool_with(&o);
    for (int i = 0; i < CODES; i++) {
        CHECK_EQ(fj_submit(p, &coded_init(&c, codes[i])->task), FJ_OK);
        CHECK_EQ(fj_pool_drain(p, &taken, 1), 1);
        fj_taken_run(&taken);
        CHECK_EQ(fj_join(&c.task), codes[i]);
    }
    fjt_destroy(p);
}

/* ---- Actions --------------------------------------------------------------------------------- */

static atomic_int told, told_times;

static void on_error(fj_pool *pool, int code, void *arg)
{
    (void)pool, (void)arg;
    atomic_store(&told, code);
    atomic_fetch_add(&told_times, 1);
}

static int coded_action(void *arg)
{
    return *(const int *)arg;
}

FJ_TEST(code_of_an_action_reaches_on_error_unchanged, 20)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.on_error = on_error;
    fj_pool *p = fjt_pool_with(&o);
    for (int i = 0; i < CODES; i++) {
        CHECK_EQ(fj_execute(p, coded_action, (void *)(uintptr_t)&codes[i]), FJ_OK);
        while (atomic_load(&told_times) == i) fjt_sleep_us(10);
        CHECK_EQ(atomic_load(&told), codes[i]);
    }
    fjt_destroy(p);
}

/* ---- Futures and timers ---------------------------------------------------------------------- */

struct future {
    fj_future future;
    int code;
};

static int future_run(fj_task *t)
{
    return ((struct future *)t)->code;
}

/* Checks the outcome. If the body has left the future open, completes it first. */
static void check_future(fj_future *f, int code)
{
    if (code == FJ_PENDING) {
        CHECK_EQ(fj_future_wait(f, 1000000), FJ_ETIMEDOUT);
        CHECK_EQ(fj_future_fail(f, INT_MIN), 1);
        code = INT_MIN;
    }
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, NULL), code);
    CHECK_EQ(fj_future_join(f), code);
    CHECK_EQ(fj_future_error(f), code);
    CHECK_EQ(fj_future_state(f), code == FJ_ECANCELED ? FJ_FUTURE_CANCELLED : FJ_FUTURE_FAILED);
    fj_future_fini(f);  /* for an embedded future; else does nothing */
    fj_future_unref(f); /* for an allocated future; else does nothing */
}

static fj_future *future_init(struct future *f, int code)
{
    fj_future_init(&f->future, future_run);
    f->code = code;
    return &f->future;
}

static void futures(fj_pool *p)
{
    struct future f;
    fj_future *made;

    for (int i = 0; i < CODES; i++) {
        CHECK_EQ(fj_future_submit(p, future_init(&f, codes[i])), FJ_OK);
        check_future(&f.future, codes[i]);
        CHECK_EQ(fj_future_fork(future_init(&f, codes[i])), FJ_OK);
        check_future(&f.future, codes[i]);
        if (codes[i] != FJ_PENDING) {
            CHECK_EQ(fj_future_run(future_init(&f, codes[i])), codes[i]);
            check_future(&f.future, codes[i]);
            CHECK_EQ(fj_future_invoke(p, future_init(&f, codes[i])), codes[i]);
            check_future(&f.future, codes[i]);
        }
        CHECK_EQ(fj_submit_action(p, coded_action, (void *)(uintptr_t)&codes[i], NULL, &made),
                 FJ_OK);
        check_future(made, codes[i]);
    }
}

static void futures_inside(void *arg)
{
    futures(arg);
}

FJ_TEST(code_of_a_future_is_unchanged, 60)
{
    fj_pool *p = fjt_pool(2, 0);

    futures(p);
    inside(p, futures_inside, p);
    fjt_destroy(p);
}

FJ_TEST(code_of_a_future_that_its_forker_joins_is_unchanged, 20)
{
    fj_pool *p = fjt_pool(1, 0);

    inside(p, futures_inside, p);
    fjt_destroy(p);
}

FJ_TEST(future_fails_with_any_code_but_0, 20)
{
    struct future f;

    for (int i = 0; i < CODES; i++) {
        CHECK_EQ(fj_future_fail(future_init(&f, 0), codes[i]), 1);
        CHECK_EQ(fj_future_join(&f.future), codes[i]);
    }
    CHECK_EQ(fj_future_fail(future_init(&f, 0), 0), 1);
    CHECK_EQ(fj_future_join(&f.future), FJ_EFAILED);
}

FJ_TEST(code_of_a_timer_is_unchanged, 60)
{
    fj_pool *p = fjt_pool(1, 0);

    for (int i = 0; i < CODES; i++) {
        fj_future *f;
        void *arg = (void *)(uintptr_t)&codes[i];
        CHECK_EQ(fj_schedule_action(p, coded_action, arg, 1, &f), FJ_OK);
        check_future(f, codes[i]);
        CHECK_EQ(fj_schedule_action_at_fixed_rate(p, coded_action, arg, 1, 1000, &f), FJ_OK);
        check_future(f, codes[i]);
        CHECK_EQ(fj_schedule_action_with_fixed_delay(p, coded_action, arg, 1, 1000, &f), FJ_OK);
        check_future(f, codes[i]);
    }
    fjt_destroy(p);
}

/* ---- Completers ------------------------------------------------------------------------------ */

struct completer {
    fj_completer c;
    int code, later;
};

static int completer_run(fj_task *t)
{
    struct completer *c = (struct completer *)t;
    int code = c->code;

    if (code == FJ_OK) fj_completer_try_complete(&c->c);
    return code;
}

static int completes(fj_completer *c, fj_completer *caller)
{
    (void)caller;
    return ((struct completer *)c)->later;
}

FJ_TEST(code_of_a_completer_is_unchanged, 20)
{
    fj_pool *p = fjt_pool(2, 0);
    struct completer root, child;

    for (int i = 0; i < 3 * CODES; i++) {
        int code = codes[i / 3];
        root.code = i % 3 == 0 ? code : FJ_OK;
        root.later = i % 3 == 1 ? code : FJ_OK;
        fj_completer_init(&root.c, NULL, i % 3 == 2, completer_run, completes, NULL);
        if (i % 3 == 2) {
            child.code = code;
            fj_completer_init(&child.c, &root.c, 0, completer_run, NULL, NULL);
            CHECK_EQ(fj_completer_submit(p, &child.c), FJ_OK);
            CHECK_EQ(fj_completer_join(&root.c), code);
        } else {
            CHECK_EQ(fj_completer_invoke(p, &root.c), code);
        }
        CHECK_EQ(fj_future_state(&root.c.future),
                 code == FJ_ECANCELED ? FJ_FUTURE_CANCELLED : FJ_FUTURE_FAILED);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    }
    fjt_destroy(p);
}
