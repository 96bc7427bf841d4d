/* SPDX-License-Identifier: MIT */
/*
 * ends.c - scenarios in which two outcomes of a future compete, or an outcome and the end of a pool
 */
#include <pthread.h>

#include "scenario.h"

static atomic_int runs;

/* ---- A child that fails twice ---------------------------------------------------------------- */

struct family {
    fj_completer root, bad, good;
};

static int root_failures, bad_failures; /* calls of on_error */

static int count_root(fj_completer *c, int code, fj_completer *caller)
{
    (void)c, (void)caller;
    CHECK(code == 7 || code == 8);
    root_failures++;
    return 1;
}

static int count_bad(fj_completer *c, int code, fj_completer *caller)
{
    (void)c, (void)caller;
    CHECK(code == 7 || code == 8);
    bad_failures++;
    return 1;
}

/* It resolves its own future as failed, and then also returns an error code. */
static int bad_run(fj_task *t)
{
    fj_completer *c = (fj_completer *)t;

    CHECK_EQ(fj_future_fail(&c->future, 7), 1);
    return 8;
}

static int good_run(fj_task *t)
{
    atomic_fetch_add(&runs, 1);
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

static int family_run(fj_task *t)
{
    struct family *f = (struct family *)t;

    fj_completer_set_pending(&f->root, 2);
    CHECK_EQ(fj_completer_fork(&f->bad), FJ_OK);
    CHECK_EQ(fj_completer_fork(&f->good), FJ_OK);
    fj_completer_try_complete(&f->root);
    return FJ_OK;
}

FJ_TEST(child_that_fails_itself_and_by_its_code_ends_its_root_once, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct family *f = malloc(sizeof *f);

    atomic_store(&runs, 0);
    root_failures = bad_failures = 0;
    memset(f, 0, sizeof *f);
    fj_completer_init(&f->root, NULL, 0, family_run, NULL, count_root);
    fj_completer_init(&f->bad, &f->root, 0, bad_run, NULL, count_bad);
    fj_completer_init(&f->good, &f->root, 0, good_run, NULL, NULL);
    int code = fj_completer_invoke(pool, &f->root);
    CHECK(code == 7 || code == 8);
    fjt_destroy(pool);
    CHECK_EQ(fj_future_state(&f->root.future), FJ_FUTURE_FAILED);
    CHECK_EQ(fj_future_error(&f->bad.future), 7);
    CHECK_EQ(root_failures, 1);
    CHECK(bad_failures <= 1);
    CHECK(atomic_load(&runs) <= 1);
    free(f);
}

/* ---- A timer and the end of its pool --------------------------------------------------------- */

static int tick(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static void *shut_down(void *pool)
{
    for (uint32_t n = sim_random() % 80; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    return NULL;
}

/* The timers are due at once, or nearly. The pool must run each timer that it has accepted
 * before it ends. */
FJ_TEST(accepted_timer_runs_though_the_pool_is_shut_down, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t[2];
    int code[2];
    pthread_t other;
    int accepted = 0;

    atomic_store(&runs, 0);
    CHECK_EQ(pthread_create(&other, NULL, shut_down, pool), 0);
    for (int i = 0; i < 2; i++) {
        t[i] = malloc(sizeof *t[i]);
        memset(t[i], 0, sizeof *t[i]);
        fj_timer_init(t[i], tick);
        code[i] = fj_schedule(pool, t[i], 1000);
        CHECK(code[i] == FJ_OK || code[i] == FJ_EREJECTED);
        accepted += code[i] == FJ_OK;
    }
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), accepted);
    for (int i = 0; i < 2; i++) {
        if (code[i] == FJ_OK) CHECK_EQ(fj_future_state(&t[i]->future), FJ_FUTURE_SUCCESS);
    }
    fjt_destroy(pool);
    free(t[0]);
    free(t[1]);
}

/* ---- The last of several failures ------------------------------------------------------------ */

struct late {
    fj_future future;
    const fj_future *before; /* this future fails first; or NULL */
    int code;
};

static int late_run(fj_task *t)
{
    const struct late *l = (struct late *)t;

    while (l->before != NULL && !fj_future_is_done(l->before)) sim_yield();
    return l->code;
}

/* Failures are numbered, so that the last one is known. The number wraps within the second pair. */
FJ_TEST(any_of_gives_the_code_of_the_last_to_fail, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    for (int round = 0; round < 2; round++) {
        struct late *l = malloc(2 * sizeof *l);
        fj_future *f[2] = {&l[0].future, &l[1].future};
        uint32_t last = sim_random() % 2;
        size_t which;
        memset(l, 0, 2 * sizeof *l);
        for (int i = 0; i < 2; i++) {
            fj_future_init(f[i], late_run);
            l[i].code = 1 + i;
        }
        l[last].before = f[1 - last];
        CHECK_EQ(fj_future_invoke_any(pool, f, 2, FJ_FOREVER, &which), l[last].code);
        for (int i = 0; i < 2; i++) fj_future_fini(f[i]);
        free(l);
    }
    fjt_destroy(pool);
}

/* ---- A future that is queued when its pool stops --------------------------------------------- */

static int until_the_stop(void *arg)
{
    (void)arg;
    while (!fj_is_stopping()) sim_yield();
    return FJ_OK;
}

FJ_TEST(future_that_is_queued_at_a_stop_never_runs, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f = malloc(sizeof *f);

    atomic_store(&runs, 0);
    fj_future_init(f, tick);
    CHECK_EQ(fj_execute(pool, until_the_stop, NULL), FJ_OK);
    while (fj_pool_has_queued_submissions(pool)) sim_yield();
    CHECK_EQ(fj_future_submit(pool, f), FJ_OK);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK_EQ(fj_future_wait(f, FJ_FOREVER), FJ_OK);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 0);
    CHECK_EQ(fj_future_state(f), FJ_FUTURE_CANCELLED);
    fj_future_fini(f);
    free(f);
}
