/* SPDX-License-Identifier: MIT */
/*
 * callback.c - callbacks: each submission leads to one call, by priority, also if the pool stops
 */
#include <forkjoin/algo.h>
#include <string.h>

#include "inside.h"

struct call {
    fj_callback callback;
    char name;
    atomic_int runs, cancels;
    int again; /* how often it submits itself again */
    fj_pool *pool;
};

static char order[64];
static atomic_int order_n;

static void call_made(fj_callback *c, int err)
{
    struct call *call = (struct call *)c;

    if (err != FJ_OK) {
        CHECK_EQ(err, FJ_ECANCELED);
        atomic_fetch_add(&call->cancels, 1);
        return;
    }
    order[atomic_fetch_add(&order_n, 1)] = call->name;
    atomic_fetch_add(&call->runs, 1);
    if (call->again-- > 0) CHECK_EQ(fj_callback_submit(call->pool, c, FJ_PRIORITY_NORMAL), FJ_OK);
}

static void submit(fj_pool *pool, struct call *c, char name, enum fj_priority priority)
{
    memset(c, 0, sizeof *c);
    fj_callback_init(&c->callback, call_made);
    c->name = name;
    c->pool = pool;
    CHECK_EQ(fj_callback_submit(pool, &c->callback, priority), FJ_OK);
}

/* Keeps the only worker of a pool busy. */
static atomic_int held, go;

static int hold(void *arg)
{
    (void)arg;
    atomic_store(&held, 1);
    while (!atomic_load(&go)) sched_yield();
    return FJ_OK;
}

static fj_pool *held_pool(void)
{
    fj_pool *pool = fjt_pool(1, 0);

    CHECK_EQ(fj_execute(pool, hold, NULL), FJ_OK);
    until(&held);
    return pool;
}

FJ_TEST(callbacks_are_called_by_priority_and_then_in_order, 10)
{
    static const char names[] = "bBnhH";
    static struct call c[5];
    fj_pool *pool = held_pool();

    for (int i = 0; i < 5; i++)
        submit(pool, &c[i], names[i],
               i < 2    ? FJ_PRIORITY_BACKGROUND
               : i == 2 ? FJ_PRIORITY_NORMAL
                        : FJ_PRIORITY_HIGH);
    CHECK_EQ(fj_pool_has_work_before(pool, FJ_PRIORITY_HIGH), 0);
    CHECK_EQ(fj_pool_has_work_before(pool, FJ_PRIORITY_NORMAL), 1);
    CHECK_EQ(fj_pool_has_work_before(pool, FJ_PRIORITY_BACKGROUND), 1);
    CHECK_EQ(fj_pool_queued_submission_count(pool), 5);
    atomic_store(&go, 1);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(strcmp(order, "hHnbB"), 0);
    CHECK_EQ(fj_pool_has_work_before(pool, FJ_PRIORITY_BACKGROUND), 0);
    fjt_destroy(pool);
}

FJ_TEST(a_callback_may_submit_itself_again_also_after_a_shutdown, 10)
{
    static struct call c;
    fj_pool *pool = held_pool();

    submit(pool, &c, 'a', FJ_PRIORITY_HIGH);
    c.again = 10;
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_callback_submit(pool, &c.callback, FJ_PRIORITY_HIGH), FJ_EREJECTED);
    atomic_store(&go, 1);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&c.runs), 11);
    CHECK_EQ(atomic_load(&c.cancels), 0);
}

FJ_TEST(a_stopped_pool_calls_each_queued_callback_as_cancelled, 10)
{
    static struct call c[3];
    fj_pool *pool = held_pool();

    submit(pool, &c[0], 'h', FJ_PRIORITY_HIGH);
    submit(pool, &c[1], 'n', FJ_PRIORITY_NORMAL);
    submit(pool, &c[2], 'b', FJ_PRIORITY_BACKGROUND);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(atomic_load(&c[i].cancels), 1);
        CHECK_EQ(fj_callback_submit(pool, &c[i].callback, FJ_PRIORITY_HIGH), FJ_EREJECTED);
    }
    atomic_store(&go, 1);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&order_n), 0);
}

FJ_TEST(a_callback_that_was_taken_is_run_or_cancelled, 10)
{
    static struct call c[2];
    fj_pool *pool = held_pool();
    fj_taken taken[3];

    submit(pool, &c[0], 'h', FJ_PRIORITY_HIGH);
    submit(pool, &c[1], 'b', FJ_PRIORITY_BACKGROUND);
    CHECK_EQ(fj_pool_drain(pool, taken, 3), 2);
    fj_taken_run(&taken[0]);
    fj_taken_cancel(&taken[1]);
    CHECK_EQ(c[0].runs + c[1].runs, 1);
    CHECK_EQ(c[0].cancels + c[1].cancels, 1);
    atomic_store(&go, 1);
    fjt_destroy(pool);
}

static void check_token(fj_callback *c, int err)
{
    CHECK_EQ(err, FJ_OK);
    CHECK(fj_current_token() == NULL);
    CHECK_EQ(fj_is_cancelled(), 0);
    atomic_fetch_add(&((struct call *)c)->runs, 1);
}

static int take_under_token(fj_task *t)
{
    fj_taken taken;

    (void)t;
    CHECK(fj_current_token() != NULL);
    CHECK_EQ(fj_take_submission(&taken), 1);
    fj_taken_run(&taken);
    CHECK(fj_current_token() != NULL);
    return FJ_OK;
}

FJ_TEST(a_callback_runs_without_a_token, 10)
{
    static struct call c;
    fj_pool *pool = held_pool();
    fj_future f;

    fj_callback_init(&c.callback, check_token);
    fj_future_init(&f, take_under_token);
    CHECK_EQ(fj_future_submit(pool, &f), FJ_OK);
    CHECK_EQ(fj_callback_submit(pool, &c.callback, FJ_PRIORITY_BACKGROUND), FJ_OK);
    atomic_store(&go, 1);
    CHECK_EQ(fj_future_join(&f), FJ_OK);
    fj_future_fini(&f);
    CHECK_EQ(atomic_load(&c.runs), 1);
    fjt_destroy(pool);
}

FJ_TEST(a_wrong_priority_is_refused, 10)
{
    fj_callback c;

    fj_callback_init(&c, call_made);
    CHECK_EQ(fj_callback_submit(NULL, &c, (enum fj_priority)FJ_STAGE_SERIAL), FJ_EINVAL);
    CHECK_EQ(fj_pool_has_work_before(NULL, (enum fj_priority)3), 0);
}
