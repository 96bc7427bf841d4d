/* SPDX-License-Identifier: MIT */
/*
 * future.c - scenarios of futures, waits for them, and cancel and interrupt by a token
 */
#include <forkjoin/block.h>
#include <pthread.h>

#include "scenario.h"

static atomic_int runs, released;

/* ---- Outcome and release --------------------------------------------------------------------- */

struct promise {
    fj_future future;
    int value;
};

static int promise_run(fj_task *t)
{
    struct promise *p = (struct promise *)t;

    atomic_fetch_add(&runs, 1);
    p->value = 42;
    return FJ_OK;
}

static void promise_released(fj_future *f)
{
    atomic_fetch_add(&released, 1);
    free(f);
}

static struct promise *promise(void)
{
    struct promise *p = malloc(sizeof *p);

    memset(p, 0, sizeof *p);
    fj_future_init(&p->future, promise_run);
    return p;
}

static void *wait_for_it(void *arg)
{
    struct promise *p = arg;

    CHECK_EQ(fj_future_wait(&p->future, FJ_FOREVER), FJ_OK);
    CHECK_EQ(p->value, 42);
    return NULL;
}

FJ_TEST(two_outsiders_wait_for_one_future, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct promise *p = promise();
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(fj_future_submit(pool, &p->future), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, wait_for_it, p), 0);
    wait_for_it(p);
    pthread_join(t, NULL);
    fjt_destroy(pool);
    free(p);
    CHECK_EQ(atomic_load(&runs), 1);
}

static void *cancel_it(void *arg)
{
    struct promise *p = arg;

    (void)fj_future_cancel(&p->future, (int)(sim_random() % 2));
    return NULL;
}

/* Either the runner or the cancelling thread resolves the future, and a later join returns the
 * same outcome. */
FJ_TEST(cancel_and_run_decide_once, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct promise *p = promise();
    pthread_t t;

    atomic_store(&runs, 0);
    CHECK_EQ(fj_future_submit(pool, &p->future), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, cancel_it, p), 0);
    int code = fj_future_join(&p->future);
    CHECK(code == FJ_OK || code == FJ_ECANCELED);
    if (code == FJ_OK) CHECK_EQ(p->value, 42);
    pthread_join(t, NULL);
    CHECK_EQ(fj_future_join(&p->future), code);
    fjt_destroy(pool);
    CHECK(atomic_load(&runs) <= 1);
    free(p);
}

static atomic_int may_go;

static int waits_to_go(void *arg)
{
    (void)arg;
    while (atomic_load(&may_go) == 0) sim_yield();
    return FJ_OK;
}

/* The future is cancelled while the only worker runs something else, so its body must never run. */
FJ_TEST(future_cancelled_while_queued_never_runs, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct promise *p = promise();

    atomic_store(&runs, 0);
    atomic_store(&may_go, 0);
    CHECK_EQ(fj_execute(pool, waits_to_go, NULL), FJ_OK);
    CHECK_EQ(fj_future_submit(pool, &p->future), FJ_OK);
    CHECK_EQ(fj_future_cancel(&p->future, 0), 1);
    atomic_store(&may_go, 1);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 0);
    free(p);
}

static void *complete_it(void *arg)
{
    struct promise *p = arg;

    (void)fj_future_complete(&p->future, NULL);
    return NULL;
}

FJ_TEST(complete_and_cancel_decide_once, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct promise *p = promise();
    pthread_t a, b;

    atomic_store(&runs, 0);
    CHECK_EQ(fj_future_submit(pool, &p->future), FJ_OK);
    CHECK_EQ(pthread_create(&a, NULL, cancel_it, p), 0);
    CHECK_EQ(pthread_create(&b, NULL, complete_it, p), 0);
    int code = fj_future_join(&p->future);
    CHECK(code == FJ_OK || code == FJ_ECANCELED);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    CHECK_EQ(fj_future_join(&p->future), code);
    fjt_destroy(pool);
    free(p);
}

/* fj_future_fini() returns when the library no longer uses the future. Then the memory may be
 * freed, although the pool still runs. */
FJ_TEST(future_that_is_let_go_is_not_touched_again, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    for (int i = 0; i < 2; i++) {
        struct promise *p = promise();
        CHECK_EQ(fj_future_submit(pool, &p->future), FJ_OK);
        CHECK_EQ(fj_future_join(&p->future), FJ_OK);
        fj_future_fini(&p->future);
        free(p);
    }
    fjt_destroy(pool);
}

/* The release callback frees the future, so the library must not touch it afterwards. */
FJ_TEST(released_future_is_not_touched_again, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    atomic_store(&released, 0);
    for (int i = 0; i < 3; i++) {
        struct promise *p = promise();
        fj_future_set_release_fn(&p->future, promise_released);
        CHECK_EQ(fj_future_submit(pool, &p->future), FJ_OK);
    }
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 3);
    CHECK_EQ(atomic_load(&released), 3);
}

static int answer(void *arg, void **result)
{
    *result = arg;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(counted_future_is_freed_once, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_future *f;
    void *got;

    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_submit_call(pool, answer, &runs, &f), FJ_OK);
        if (i == 1) (void)fj_future_cancel(f, 1);
        int code = i == 2 ? FJ_OK : fj_future_get(f, FJ_FOREVER, &got);
        if (i == 0) CHECK_EQ(code, FJ_OK);
        if (i == 0) CHECK(got == &runs);
        fj_future_unref(f);
    }
    fjt_destroy(pool);
}

static void forks_futures(void *arg)
{
    struct promise *p[3];

    (void)arg;
    for (int i = 0; i < 3; i++) {
        p[i] = promise();
        CHECK_EQ(fj_future_fork(&p[i]->future), FJ_OK);
    }
    for (int i = 0; i < 3; i++) {
        int at = (i + 1) % 3;
        CHECK_EQ(fj_future_join(&p[at]->future), FJ_OK);
        CHECK_EQ(p[at]->value, 42);
    }
    /* A join returns when the future is done. fj_future_fini() waits until a thief that ran it
     * has released it. */
    fj_help_quiesce();
    for (int i = 0; i < 3; i++) fj_future_fini(&p[i]->future);
    for (int i = 0; i < 3; i++) free(p[i]);
}

FJ_TEST(futures_forked_inside_run_once, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    atomic_store(&runs, 0);
    scenario_inside(pool, forks_futures, NULL);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 3);
}

/* ---- A waiter runs no task that does not belong to its future -------------------------------- */

/* The worker that runs the younger future still has the older one in its queue. A thread that
 * waits for the younger future may help with the tasks that it has forked, but must not run the
 * older one. */
struct two {
    fj_future older, younger;
    atomic_int forked;
};

static _Thread_local bool waits;

static int older_run(fj_task *t)
{
    (void)t;
    CHECK(!waits);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static int younger_run(fj_task *t)
{
    (void)t;
    for (int i = 0; i < 4; i++) sim_yield();
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static int fork_two(void *arg)
{
    struct two *two = arg;

    CHECK_EQ(fj_future_fork(&two->older), FJ_OK);
    CHECK_EQ(fj_future_fork(&two->younger), FJ_OK);
    atomic_store_explicit(&two->forked, 1, memory_order_release);
    return FJ_OK;
}

static void wait_for_the_younger(void *arg)
{
    struct two *two = arg;

    scenario_until(&two->forked);
    waits = true;
    CHECK_EQ(fj_future_join(&two->younger), FJ_OK);
    waits = false;
}

FJ_TEST(waiter_runs_nothing_older_than_what_it_waits_for, 10)
{
    fj_pool *pool = scenario_pool(1, FJ_POOL_CALLER_HELPS);
    struct two *two = malloc(sizeof *two);

    atomic_store(&runs, 0);
    memset(two, 0, sizeof *two);
    fj_future_init(&two->older, older_run);
    fj_future_init(&two->younger, younger_run);
    CHECK_EQ(fj_execute(pool, fork_two, two), FJ_OK);
    scenario_inside(pool, wait_for_the_younger, two);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 2);
    free(two);
}

/* ---- A waiter helps a body that a join or fj_future_run() has begun -------------------------- */

static fj_future inline_run;
static atomic_int inline_child, inline_met, inline_below;

static int inline_child_run(fj_task *t)
{
    (void)t;
    atomic_store(&inline_child, 1);
    return FJ_OK;
}

/* This task is below the future in the queue of the runner. A waiter for the future must not run
 * it, so it runs only after the future is done. */
static int inline_below_run(fj_task *t)
{
    (void)t;
    CHECK(fj_future_is_done(&inline_run));
    return FJ_OK;
}

/* If no older task is below the child in the queue, the waiter can reach the child. Then the
 * body ends only after the child has run, and only the waiter can run it. */
static int inline_body(fj_task *t)
{
    fj_task c;

    (void)t;
    fj_task_init(&c, inline_child_run);
    fj_fork(&c);
    atomic_fetch_add(&inline_met, 1);
    while (atomic_load(&inline_met) < 2) sim_yield();
    while (!atomic_load(&inline_below) && !atomic_load(&inline_child)) sim_yield();
    return fj_join(&c);
}

static int inline_begin(void *arg)
{
    fj_task below;

    fj_task_init(&below, inline_below_run);
    if (atomic_load(&inline_below)) fj_fork(&below);
    if (*(int *)arg == 0) {
        CHECK_EQ(fj_future_run(&inline_run), FJ_OK);
    } else {
        CHECK_EQ(fj_future_fork(&inline_run), FJ_OK);
        CHECK_EQ(fj_future_join(&inline_run), FJ_OK);
    }
    return atomic_load(&inline_below) ? fj_join(&below) : FJ_OK;
}

static int inline_wait(void *arg)
{
    (void)arg;
    atomic_fetch_add(&inline_met, 1);
    while (atomic_load(&inline_met) < 2) sim_yield();
    return fj_future_join(&inline_run);
}

FJ_TEST(waiter_helps_a_body_that_was_begun_by_a_join, 10)
{
    fj_pool_options o = {0};
    int how = (int)(sim_random() % 2);

    o.parallelism = o.max_threads = 2;
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&inline_child, 0);
    atomic_store(&inline_met, 0);
    atomic_store(&inline_below, (int)(sim_random() % 2));
    fj_future_init(&inline_run, inline_body);
    CHECK_EQ(fj_execute(pool, inline_wait, NULL), FJ_OK);
    CHECK_EQ(fj_execute(pool, inline_begin, &how), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    fj_future_fini(&inline_run);
    fjt_destroy(pool);
}

/* ---- A wait with a limit --------------------------------------------------------------------- */

static atomic_int limit_over;

static int ends_after_the_limit(fj_task *t)
{
    (void)t;
    while (!atomic_load(&limit_over)) sim_yield();
    return FJ_OK;
}

/* The body ends only after the wait has timed out, so the waiting thread must not run the body. */
static void waits_with_a_limit(void *arg)
{
    fj_future f;

    fj_future_init(&f, ends_after_the_limit);
    if (*(int *)arg == 0)
        CHECK_EQ(fj_future_fork(&f), FJ_OK);
    else
        CHECK_EQ(fj_future_submit_external(fj_current_pool(), &f), FJ_OK);
    CHECK_EQ(fj_future_get(&f, 1000, NULL), FJ_ETIMEDOUT);
    atomic_store(&limit_over, 1);
    CHECK_EQ(fj_future_join(&f), FJ_OK);
    fj_future_fini(&f);
}

FJ_TEST(wait_with_a_limit_runs_nothing, 10)
{
    fj_pool_options o = {0};
    int how = (int)(sim_random() % 2);

    o.parallelism = 1;
    o.max_threads = 1 + (int)(sim_random() % 2);
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&limit_over, 0);
    scenario_inside(pool, waits_with_a_limit, &how);
    fjt_destroy(pool);
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static uint32_t got_it;

static int gets_it(void *arg)
{
    struct promise *p = arg;

    CHECK_EQ(fj_future_get(&p->future, FJ_FOREVER, NULL), FJ_OK);
    scenario_add(&got_it);
    return FJ_OK;
}

/* A worker whose wait can be interrupted must also be woken when the future is resolved. */
FJ_TEST(worker_that_may_be_interrupted_is_told_of_the_outcome, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct promise *p = promise();

    CHECK_EQ(fj_execute(pool, gets_it, p), FJ_OK);
    for (uint32_t n = sim_random() % 100; n > 0; n--) sim_yield();
    CHECK_EQ(fj_future_complete(&p->future, NULL), 1);
    scenario_await(&got_it, 1);
    fjt_destroy(pool);
    free(p);
}

static int sleeps_long(fj_task *t)
{
    int code = FJ_OK;

    (void)t;
    while (code == FJ_OK) code = fj_sleep_ns(FJ_FOREVER);
    CHECK_EQ(code, FJ_ECANCELED);
    atomic_fetch_add(&runs, 1);
    return code;
}

static int next_task(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_is_cancelled(), 0);
    CHECK_EQ(fj_sleep_ns(1000), FJ_OK); /* the interrupt was for the other task */
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(interrupt_breaks_the_sleep_of_its_task_only, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct promise *p = promise();

    atomic_store(&runs, 0);
    fj_future_init(&p->future, sleeps_long);
    CHECK_EQ(fj_future_submit(pool, &p->future), FJ_OK);
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    CHECK_EQ(fj_future_cancel(&p->future, 1), 1);
    CHECK_EQ(fj_execute(pool, next_task, NULL), FJ_OK);
    fjt_destroy(pool);
    CHECK(atomic_load(&runs) == 1 || atomic_load(&runs) == 2);
    free(p);
}

/* The same if two other tokens are between the token of the future and the sleep. */
static int sleeps_under_tokens(fj_task *t)
{
    fj_token outer, inner;
    fj_task below;

    (void)t;
    memset(&below, 0, sizeof below);
    fj_task_init(&below, sleeps_long);
    fj_token_init(&outer, fj_current_token());
    fj_token_init(&inner, &outer);
    CHECK_EQ(fj_invoke_token(fj_current_pool(), &below, &inner), FJ_ECANCELED);
    return FJ_OK;
}

FJ_TEST(interrupt_breaks_a_sleep_under_tokens_below_its_own, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct promise *p = promise();

    atomic_store(&runs, 0);
    fj_future_init(&p->future, sleeps_under_tokens);
    CHECK_EQ(fj_future_submit(pool, &p->future), FJ_OK);
    for (uint32_t n = sim_random() % 80; n > 0; n--) sim_yield();
    CHECK_EQ(fj_future_cancel(&p->future, 1), 1);
    fjt_destroy(pool);
    CHECK(atomic_load(&runs) <= 1);
    free(p);
}

/* ---- A body whose result is discarded -------------------------------------------------------- */

static int until_not_wanted(fj_task *t)
{
    (void)t;
    while (!fj_is_cancelled()) sim_yield();
    return 3;
}

FJ_TEST(body_sees_that_another_has_completed_it, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct promise *p = promise();

    fj_future_init(&p->future, until_not_wanted);
    CHECK_EQ(fj_future_submit(pool, &p->future), FJ_OK);
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    CHECK_EQ(sim_random() % 2 == 0 ? fj_future_complete(&p->future, NULL)
                                   : fj_future_fail(&p->future, 9),
             1);
    fj_future_fini(&p->future);
    free(p);
    fjt_destroy(pool);
}

/* The thread that runs the body resolves the future itself, so the body must not see a cancel. */
static int completes_itself(fj_task *t)
{
    CHECK_EQ(fj_future_complete((fj_future *)t, NULL), 1);
    CHECK(!fj_is_cancelled());
    return FJ_OK;
}

static void forks_one_that_completes_itself(void *arg)
{
    struct promise *p = arg;

    CHECK_EQ(fj_future_fork(&p->future), FJ_OK);
    CHECK_EQ(fj_future_join(&p->future), FJ_OK);
    fj_future_fini(&p->future);
}

FJ_TEST(body_that_completes_itself_is_not_told, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct promise *p = promise();

    fj_future_init(&p->future, completes_itself);
    scenario_inside(pool, forks_one_that_completes_itself, p);
    fjt_destroy(pool);
    free(p);
}

/* A thief that runs a task of the body resolves the future. It is another thread than the
 * runner, so the body must see the cancel. */
static atomic_int thief_has_it;

static int completes_its_forker(fj_task *t)
{
    struct promise *p = *(struct promise **)(void *)(t + 1);

    atomic_store(&thief_has_it, 1);
    CHECK_EQ(fj_future_complete(&p->future, NULL), 1);
    return FJ_OK;
}

static int is_completed_by_a_thief(fj_task *t)
{
    struct {
        fj_task task;
        struct promise *of;
    } child;

    memset(&child, 0, sizeof child);
    fj_task_init(&child.task, completes_its_forker);
    child.of = (struct promise *)t;
    fj_fork(&child.task);
    scenario_until(&thief_has_it);
    CHECK_EQ(fj_join(&child.task), FJ_OK);
    CHECK(fj_is_cancelled());
    return FJ_OK;
}

FJ_TEST(body_sees_that_a_thief_has_completed_it, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct promise *p = promise();

    atomic_store(&thief_has_it, 0);
    fj_future_init(&p->future, is_completed_by_a_thief);
    CHECK_EQ(fj_future_submit(pool, &p->future), FJ_OK);
    fj_future_fini(&p->future);
    free(p);
    fjt_destroy(pool);
}

/* ---- Several futures ------------------------------------------------------------------------- */

FJ_TEST(waiting_for_any_and_for_all_ends, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct promise *p[2] = {promise(), promise()};
    fj_future *f[2] = {&p[0]->future, &p[1]->future};
    int64_t began = sim_now();
    size_t which;

    atomic_store(&runs, 0);
    CHECK_EQ(fj_future_submit(pool, f[0]), FJ_OK);
    CHECK_EQ(fj_future_submit(pool, f[1]), FJ_OK);
    CHECK_EQ(fj_future_wait_any(f, 2, FJ_FOREVER, &which), FJ_OK);
    /* A waiter that is not woken checks the pool again after 250 ms. */
    if (!sim_jumps()) CHECK(sim_now() - began < 200000000);
    CHECK(fj_future_is_done(f[which]));
    CHECK_EQ(fj_future_wait_all(f, 2, FJ_FOREVER), FJ_OK);
    fjt_destroy(pool);
    free(p[0]);
    free(p[1]);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static int until_cancelled(fj_task *t)
{
    (void)t;
    while (!fj_is_cancelled()) sim_yield();
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static int forks_until_cancelled(fj_task *t)
{
    fj_task a, b;

    (void)t;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    fj_task_init(&a, until_cancelled);
    fj_task_init(&b, until_cancelled);
    fj_fork(&a);
    fj_fork(&b);
    CHECK_EQ(fj_join(&b), FJ_OK);
    CHECK_EQ(fj_join(&a), FJ_OK);
    return FJ_OK;
}

static void *cancel_token(void *arg)
{
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    fj_token_cancel(arg);
    return NULL;
}

FJ_TEST(token_reaches_every_task_of_its_tree, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_token token;
    fj_task root;
    pthread_t t;

    atomic_store(&runs, 0);
    memset(&root, 0, sizeof root);
    fj_token_init(&token, NULL);
    fj_task_init(&root, forks_until_cancelled);
    CHECK_EQ(pthread_create(&t, NULL, cancel_token, &token), 0);
    int code = fj_invoke_token(pool, &root, &token);
    CHECK(code == FJ_OK || code == FJ_ECANCELED);
    pthread_join(t, NULL);
    if (code == FJ_OK) CHECK_EQ(atomic_load(&runs), 2);
    fjt_destroy(pool);
}
