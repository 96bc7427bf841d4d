/* SPDX-License-Identifier: MIT */
/*
 * help_future.c - a worker that waits for a future helps its body, however the body was started
 *
 * The pool has two workers and may not start more threads. One worker runs the body, which forks a
 * task and waits until the task has run before it joins it. The other worker waits for the future.
 * If it did not help, no worker would run the task, and both workers would wait forever.
 */
#include <sched.h>
#include <stdatomic.h>

#include "fjtest.h"

static fj_future future;
static atomic_int ran, here;

static int child(fj_task *t)
{
    (void)t;
    atomic_store(&ran, 1);
    return FJ_OK;
}

static void meet(void)
{
    atomic_fetch_add(&here, 1);
    while (atomic_load(&here) < 2) sched_yield();
}

static int body(fj_task *t)
{
    fj_task c;

    (void)t;
    fj_task_init(&c, child);
    fj_fork(&c);
    meet();
    while (!atomic_load(&ran)) sched_yield();
    return fj_join(&c);
}

/* ---- Ways to start the body ------------------------------------------------------------------ */

static int invokes(void *arg)
{
    (void)arg;
    return fj_future_run(&future);
}

static int forks_and_joins(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_future_fork(&future), FJ_OK);
    return fj_future_join(&future);
}

static int submits_and_gets(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_future_submit(fj_current_pool(), &future), FJ_OK);
    return fj_future_get(&future, FJ_FOREVER, NULL);
}

static int nested(fj_task *t)
{
    (void)t;
    return fj_future_run(&future);
}

/* Runs the future in the body of another future. */
static int invokes_below(void *arg)
{
    fj_future outer;

    (void)arg;
    fj_future_init(&outer, nested);
    return fj_future_run(&outer);
}

static fj_action_fn *const begins[] = {invokes, forks_and_joins, submits_and_gets, invokes_below,
                                       NULL};

enum { BEGINS = sizeof begins / sizeof begins[0] };

/* ---- Ways to wait for the future ------------------------------------------------------------- */

static int waits(fj_future *f)
{
    return fj_future_wait(f, FJ_FOREVER);
}

static int waits_quietly(fj_future *f)
{
    return fj_future_wait_quietly(f, FJ_FOREVER);
}

static int waits_for_all(fj_future *f)
{
    return fj_future_wait_all(&f, 1, FJ_FOREVER);
}

static int (*const ways[])(fj_future *f) = {waits, waits_quietly, waits_for_all, fj_future_join};

enum { WAYS = sizeof ways / sizeof ways[0] };

static int helper(void *way)
{
    meet();
    return ways[*(int *)way](&future);
}

static int ignore(fj_pool *p, void *arg)
{
    (void)p, (void)arg;
    return 1;
}

FJ_TEST(worker_that_waits_for_a_future_helps_it_however_it_was_begun, 60)
{
    for (int b = 0; b < BEGINS; b++)
        for (int way = 0; way < WAYS; way++) {
            fj_pool_options o = {0};

            o.parallelism = o.max_threads = 2;
            o.allow_saturation = ignore;
            fj_pool *p = fjt_pool_with(&o);
            atomic_store(&ran, 0);
            atomic_store(&here, 0);
            fj_future_init(&future, body);
            CHECK_EQ(fj_execute(p, helper, &way), FJ_OK);
            if (begins[b] != NULL)
                CHECK_EQ(fj_execute(p, begins[b], NULL), FJ_OK);
            else
                CHECK_EQ(fj_future_submit(p, &future), FJ_OK);
            CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
            CHECK_EQ(fj_future_error(&future), FJ_OK);
            CHECK(fj_future_is_done(&future));
            fj_future_fini(&future);
            fjt_destroy(p);
        }
}
