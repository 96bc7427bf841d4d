/* SPDX-License-Identifier: MIT */
/*
 * timed.c - a wait with a time limit runs no task, so that it can return in time
 *
 * Every body here ends only after the wait with a limit has returned. If the waiting thread ran
 * such a body, the wait would never return. No test depends on how long a wait takes.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "fjtest.h"

#define LIMIT ((int64_t)3000000)

static atomic_int returned; /* the wait has returned */
static atomic_int begun;    /* bodies that have begun */

static int stubborn(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&returned)) fjt_sleep_us(100);
    return FJ_OK;
}

/* ---- The calls ------------------------------------------------------------------------------- */

static int by_get(fj_future *f)
{
    return fj_future_get(f, LIMIT, NULL);
}

static int by_wait(fj_future *f)
{
    return fj_future_wait(f, LIMIT);
}

static int by_wait_quietly(fj_future *f)
{
    return fj_future_wait_quietly(f, LIMIT);
}

static int by_wait_all(fj_future *f)
{
    return fj_future_wait_all(&f, 1, LIMIT);
}

static int by_wait_any(fj_future *f)
{
    size_t which;
    return fj_future_wait_any(&f, 1, LIMIT, &which);
}

static int by_quiescence(fj_future *f)
{
    (void)f;
    return fj_pool_await_quiescence(fj_current_pool(), LIMIT);
}

static int (*const calls[])(fj_future *f) = {
    by_get, by_wait, by_wait_quietly, by_wait_all, by_wait_any, by_quiescence,
};

enum { CALLS = sizeof calls / sizeof calls[0] };

/* ---- Where the awaited task is --------------------------------------------------------------- */

/* A future or a completer that is waited for, with its children. */
struct awaited {
    fj_future future;
    fj_completer root, child[2];
    fj_future *f; /* the future to wait for */
};

static int completer_child(fj_task *t)
{
    (void)stubborn(t);
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

static struct awaited *present;

static int completer_root(fj_task *t)
{
    fj_completer *c = (fj_completer *)t;
    struct awaited *a = present;

    fj_completer_set_pending(c, 2);
    for (int i = 0; i < 2; i++) {
        fj_completer_init(&a->child[i], c, 0, completer_child, NULL, NULL);
        CHECK_EQ(fj_completer_fork(&a->child[i]), FJ_OK);
    }
    fj_completer_try_complete(c);
    return FJ_OK;
}

/* A body that forks a stubborn task and joins it. */
static int forks_stubborn(fj_task *t)
{
    fj_task child;

    (void)t;
    fj_task_init(&child, stubborn);
    fj_fork(&child);
    return fj_join(&child);
}

static void put_own_queue(struct awaited *a)
{
    fj_future_init(&a->future, stubborn);
    CHECK_EQ(fj_future_fork(&a->future), FJ_OK);
}

static void put_submission_queue(struct awaited *a)
{
    fj_future_init(&a->future, stubborn);
    CHECK_EQ(fj_future_submit_external(fj_current_pool(), &a->future), FJ_OK);
}

static void put_lazily(struct awaited *a)
{
    fj_future_init(&a->future, stubborn);
    CHECK_EQ(fj_future_submit_lazy(fj_current_pool(), &a->future), FJ_OK);
}

static void put_parent_of_a_task(struct awaited *a)
{
    fj_future_init(&a->future, forks_stubborn);
    CHECK_EQ(fj_future_fork(&a->future), FJ_OK);
}

static void put_completer(struct awaited *a)
{
    present = a;
    fj_completer_init(&a->root, NULL, 0, completer_root, NULL, NULL);
    a->f = &a->root.future;
    CHECK_EQ(fj_completer_fork(&a->root), FJ_OK);
}

static void (*const places[])(struct awaited *a) = {
    put_own_queue, put_submission_queue, put_lazily, put_parent_of_a_task, put_completer,
};

enum { PLACES = sizeof places / sizeof places[0] };

/* ---- All combinations ------------------------------------------------------------------------ */

struct trial {
    fj_task task;
    int call, place;
};

static int trial_run(fj_task *t)
{
    const struct trial *trial = (struct trial *)t;
    struct awaited a;

    a.f = &a.future;
    places[trial->place](&a);
    CHECK_EQ(calls[trial->call](a.f), FJ_ETIMEDOUT);
    atomic_store(&returned, 1);
    CHECK_EQ(fj_future_join(a.f), FJ_OK);
    fj_future_fini(a.f);
    return FJ_OK;
}

/* Runs on a worker of the pool. If `helps` is true, runs on the calling thread as a guest. */
static void all_trials(const fj_pool_options *o, bool helps)
{
    fj_pool *p = fjt_pool_with(o);

    for (int call = 0; call < CALLS; call++)
        for (int place = 0; place < PLACES; place++) {
            struct trial t = {.call = call, .place = place};
            atomic_store(&returned, 0);
            fj_task_init(&t.task, trial_run);
            CHECK_EQ(fj_invoke_mode(p, &t.task, helps ? FJ_CALLER_HELPS : FJ_CALLER_BLOCKS), FJ_OK);
        }
    fjt_destroy(p);
}

FJ_TEST(worker_that_waits_with_a_limit_keeps_it, 120)
{
    for (int n = 1; n <= 3; n++) {
        fj_pool_options o = {0};
        o.parallelism = n;
        all_trials(&o, false);
    }
}

FJ_TEST(worker_without_a_replacement_keeps_its_limit, 120)
{
    for (int n = 1; n <= 3; n++) {
        fj_pool_options o = {0};
        o.parallelism = o.max_threads = n;
        all_trials(&o, false);
    }
}

FJ_TEST(caller_that_helps_keeps_its_limit, 120)
{
    for (int n = 1; n <= 2; n++) {
        fj_pool_options o = {0};
        o.parallelism = n;
        o.flags = FJ_POOL_CALLER_HELPS;
        all_trials(&o, true);
    }
}

FJ_TEST(fifo_worker_keeps_its_limit, 120)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.flags = FJ_POOL_FIFO;
    all_trials(&o, false);
}

/* ---- From outside ---------------------------------------------------------------------------- */

static void from_outside(fj_pool *p)
{
    for (int call = 0; call < CALLS; call++) {
        fj_future f;

        if (calls[call] == by_quiescence) continue;
        atomic_store(&returned, 0);
        fj_future_init(&f, stubborn);
        CHECK_EQ(fj_future_submit(p, &f), FJ_OK);
        CHECK_EQ(calls[call](&f), FJ_ETIMEDOUT);
        atomic_store(&returned, 1);
        CHECK_EQ(fj_future_join(&f), FJ_OK);
        fj_future_fini(&f);
    }
    fj_future f;
    atomic_store(&returned, 0);
    fj_future_init(&f, stubborn);
    CHECK_EQ(fj_future_submit(p, &f), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(p, LIMIT), FJ_ETIMEDOUT);
    atomic_store(&returned, 1);
    CHECK_EQ(fj_future_join(&f), FJ_OK);
    fj_future_fini(&f);
}

FJ_TEST(thread_outside_keeps_its_limit, 60)
{
    fj_pool *helped = fjt_pool(1, FJ_POOL_CALLER_HELPS), *other = fjt_pool(1, 0);

    from_outside(helped);
    from_outside(other);
    fjt_destroy(helped);
    fjt_destroy(other);
}

FJ_TEST(thread_outside_the_common_pool_keeps_its_limit, 60)
{
    from_outside(NULL);
    from_outside(fj_common_pool());
}

/* The pool has no worker that would run the task, so it starts one. */
FJ_TEST(limit_is_kept_in_a_common_pool_without_workers, 60)
{
    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "0", 1), 0);
    CHECK_EQ(fj_common_parallelism(), 0);
    from_outside(NULL);
    fj_future f;
    atomic_store(&returned, 1);
    fj_future_init(&f, stubborn);
    CHECK_EQ(fj_future_submit(NULL, &f), FJ_OK);
    while (fj_future_get(&f, LIMIT, NULL) == FJ_ETIMEDOUT) {}
    fj_future_fini(&f);
}

/* ---- Calls that submit and wait -------------------------------------------------------------- */

static void invoke_several(fj_pool *p, bool any)
{
    fj_future f[3], *all[3];
    size_t which;

    atomic_store(&returned, 0);
    for (int i = 0; i < 3; i++) {
        fj_future_init(&f[i], stubborn);
        all[i] = &f[i];
    }
    if (any)
        CHECK_EQ(fj_future_invoke_any(p, all, 3, LIMIT, &which), FJ_ETIMEDOUT);
    else
        CHECK_EQ(fj_future_invoke_all(p, all, 3, LIMIT), FJ_ETIMEDOUT);
    atomic_store(&returned, 1);
    for (int i = 0; i < 3; i++) {
        CHECK(fj_future_is_cancelled(&f[i]));
        fj_future_fini(&f[i]);
    }
}

static int invoke_several_inside(fj_task *t)
{
    (void)t;
    invoke_several(fj_current_pool(), false);
    invoke_several(fj_current_pool(), true);
    return FJ_OK;
}

FJ_TEST(calls_that_submit_and_wait_keep_their_limit, 60)
{
    for (int n = 1; n <= 2; n++)
        for (int bounded = 0; bounded < 2; bounded++) {
            fj_pool_options o = {0};
            fj_task t;

            o.parallelism = n;
            if (bounded) o.max_threads = n;
            fj_pool *p = fjt_pool_with(&o);
            fj_task_init(&t, invoke_several_inside);
            CHECK_EQ(fj_invoke(p, &t), FJ_OK);
            invoke_several(p, false);
            invoke_several(p, true);
            fjt_destroy(p);
        }
}

/* A pool without threads terminates only after its tasks have run. A thread that waits for this
 * with a limit must not run them. */
static int refuses(fj_pool *p, void *arg)
{
    (void)p;
    return atomic_load((atomic_int *)arg);
}

static int stubborn_action(void *arg)
{
    return stubborn(arg);
}

FJ_TEST(wait_for_the_end_of_a_pool_keeps_its_limit, 60)
{
    fj_pool_options o = {0};
    atomic_int may = 0;

    o.parallelism = 1;
    o.allow_thread = refuses;
    o.arg = &may;
    fj_pool *p = fjt_pool_with(&o);
    atomic_store(&returned, 0);
    CHECK_EQ(fj_execute(p, stubborn_action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(p, LIMIT), FJ_ETIMEDOUT);
    atomic_store(&returned, 1);
    atomic_store(&may, 1);
    fjt_destroy(p);
}
