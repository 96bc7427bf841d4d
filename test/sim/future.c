/* SPDX-License-Identifier: MIT */
/*
 * future.c - scenarios of futures, completers, tokens and timers
 */
#include <forkjoin/block.h>
#include <pthread.h>

#include "scenario.h"

static atomic_int runs, released;

/* ---- Futures -------------------------------------------------------------------------------------------- */

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

/* Exactly one outcome, whoever comes first; released once, after everybody is through. */
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

/* Cancelled while the only worker has something else to do: its body is never seen. */
static atomic_int may_go;

static int waits_to_go(void *arg)
{
    (void)arg;
    while (atomic_load(&may_go) == 0) sim_yield();
    return FJ_OK;
}

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

/* Let go of by the library, though its pool goes on: free at once. */
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

/* The library frees it through the callback: nobody of the library touches it afterwards. */
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
    /* Joined by the forker: released when whoever ran it has let go. */
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

/* ---- A wait runs nothing that does not belong to it -------------------------------------------------- */

/* The worker that runs the younger still has the older in its queue: whoever waits for the
 * younger may help with what that has forked, and with nothing else. */
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

/* A worker that waits so that it could be interrupted is woken by the outcome as well. */
static uint32_t got_it;

static int gets_it(void *arg)
{
    struct promise *p = arg;

    CHECK_EQ(fj_future_get(&p->future, FJ_FOREVER, NULL), FJ_OK);
    scenario_add(&got_it);
    return FJ_OK;
}

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

/* ---- Interrupts ------------------------------------------------------------------------------------------- */

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
    CHECK_EQ(fj_sleep_ns(1000), FJ_OK); /* the interrupt was another's */
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

/* ---- Limits ------------------------------------------------------------------------------------------ */

static atomic_int limit_over;

static int ends_after_the_limit(fj_task *t)
{
    (void)t;
    while (!atomic_load(&limit_over)) sim_yield();
    return FJ_OK;
}

/* The body ends only after the wait has: the thread that waits must not run it. */
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

/* ---- Helping a body that no queue has run ----------------------------------------------------------- */

static fj_future inline_run;
static atomic_int inline_child, inline_met, inline_below;

static int inline_child_run(fj_task *t)
{
    (void)t;
    atomic_store(&inline_child, 1);
    return FJ_OK;
}

/* Only its own joiner may run it while the future is not done. */
static int inline_below_run(fj_task *t)
{
    (void)t;
    CHECK(fj_future_is_done(&inline_run));
    return FJ_OK;
}

/* Unless the waiter cannot reach its child, because an older task is below it in the queue, it does
 * not end before the waiter has run the child. */
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

/* However many tokens lie between. */
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

/* ---- Not wanted any more ---------------------------------------------------------------------------------- */

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

/* The thread that runs it has decided it: that is not told. */
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

/* A thief is another thread, though it runs a task of the body. */
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

/* ---- Any and all ------------------------------------------------------------------------------------------- */

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
    /* Whoever was not woken looks by itself after a quarter of a second. */
    if (!sim_jumps()) CHECK(sim_now() - began < 200000000);
    CHECK(fj_future_is_done(f[which]));
    CHECK_EQ(fj_future_wait_all(f, 2, FJ_FOREVER), FJ_OK);
    fjt_destroy(pool);
    free(p[0]);
    free(p[1]);
}

/* ---- Completers --------------------------------------------------------------------------------------------- */

struct count {
    fj_completer completer;
    int depth;
    struct count *child[2];
};

static int count_through(fj_completer *c, fj_completer *caller)
{
    struct count *n = (struct count *)c;

    (void)caller;
    if (n->depth == 0) return FJ_OK;
    free(n->child[0]);
    free(n->child[1]);
    return FJ_OK;
}

static int count_run(fj_task *t)
{
    struct count *c = (struct count *)t;

    atomic_fetch_add(&runs, 1);
    if (c->depth > 0) {
        fj_completer_set_pending(&c->completer, 2);
        for (int i = 0; i < 2; i++) {
            struct count *n = c->child[i] = malloc(sizeof *n);
            memset(n, 0, sizeof *n);
            fj_completer_init(&n->completer, &c->completer, 0, count_run, count_through, NULL);
            n->depth = c->depth - 1;
        }
        for (int i = 0; i < 2; i++) CHECK_EQ(fj_completer_fork(&c->child[i]->completer), FJ_OK);
    }
    fj_completer_try_complete(&c->completer);
    return FJ_OK;
}

FJ_TEST(completers_tell_their_root_when_all_are_through, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct count *root = malloc(sizeof *root);

    atomic_store(&runs, 0);
    memset(root, 0, sizeof *root);
    fj_completer_init(&root->completer, NULL, 0, count_run, count_through, NULL);
    root->depth = 2;
    CHECK_EQ(fj_completer_invoke(pool, &root->completer), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 7);
    fjt_destroy(pool);
    free(root);
}

/* Both fail; one of them decides the root, calls its on_error, and then lets the waiter go. */
struct failing {
    fj_completer completer;
    atomic_int told;
    int seen, over;
};

static int fails(fj_task *t)
{
    (void)t;
    return 5;
}

static int failing_told(fj_completer *c, int code, fj_completer *caller)
{
    struct failing *f = (struct failing *)c;

    CHECK(caller != c);
    CHECK_EQ(atomic_fetch_add(&f->told, 1), 0);
    f->seen = fj_future_error(&c->future) == code && fj_future_is_done(&c->future);
    for (uint32_t n = sim_random() % 8; n > 0; n--) sim_yield();
    f->over = 1;
    return 1;
}

FJ_TEST(on_error_is_called_once_before_waiters_return, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct failing *root = malloc(sizeof *root);
    fj_completer *child[2];

    memset(root, 0, sizeof *root);
    fj_completer_init(&root->completer, NULL, 2, NULL, NULL, failing_told);
    for (int i = 0; i < 2; i++) {
        child[i] = malloc(sizeof *child[i]);
        memset(child[i], 0, sizeof *child[i]);
        fj_completer_init(child[i], &root->completer, 0, fails, NULL, NULL);
        CHECK_EQ(fj_completer_submit(pool, child[i]), FJ_OK);
    }
    CHECK_EQ(fj_completer_join(&root->completer), 5);
    CHECK_EQ(root->over, 1);
    CHECK_EQ(root->seen, 1);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&root->told), 1);
    free(root);
    for (int i = 0; i < 2; i++) free(child[i]);
}

/* Who decides it meanwhile does not wait for on_error, which waits for that thread. */
static void *decides_too_late(void *arg)
{
    fj_completer *c = arg;

    CHECK_EQ(fj_future_cancel(&c->future, 1), 0);
    fj_completer_fail(c, 8);
    return NULL;
}

static int told_waits(fj_completer *c, int code, fj_completer *caller)
{
    pthread_t t;

    (void)code, (void)caller;
    CHECK_EQ(pthread_create(&t, NULL, decides_too_late, c), 0);
    pthread_join(t, NULL);
    return 1;
}

FJ_TEST(on_error_may_wait_for_who_decides_too_late, 10)
{
    fj_completer *root = malloc(sizeof *root);

    memset(root, 0, sizeof *root);
    fj_completer_init(root, NULL, 0, NULL, NULL, told_waits);
    fj_completer_fail(root, 5);
    CHECK_EQ(fj_future_error(&root->future), 5);
    free(root);
}

/* Failed by hand, and by its code: passed on once, by whoever is first. */
static int fails_by_hand(fj_task *t)
{
    (void)fj_future_fail((fj_future *)t, 4);
    return 5;
}

FJ_TEST(failure_by_hand_is_passed_on_by_the_code, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct failing *root = malloc(sizeof *root);
    fj_completer *child = malloc(sizeof *child);

    memset(root, 0, sizeof *root);
    memset(child, 0, sizeof *child);
    fj_completer_init(&root->completer, NULL, 1, NULL, NULL, failing_told);
    fj_completer_init(child, &root->completer, 0, fails_by_hand, NULL, NULL);
    CHECK_EQ(fj_completer_submit(pool, child), FJ_OK);
    CHECK_EQ(fj_completer_join(&root->completer), 5);
    fjt_destroy(pool);
    CHECK_EQ(fj_future_error(&child->future), 4);
    free(root);
    free(child);
}

/* ---- Tokens --------------------------------------------------------------------------------------------------- */

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

/* ---- Timers ----------------------------------------------------------------------------------------------------- */

static int tick(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(timer_fires_once_or_is_cancelled, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = malloc(sizeof *t);

    atomic_store(&runs, 0);
    memset(t, 0, sizeof *t);
    fj_timer_init(t, tick);
    CHECK_EQ(fj_schedule(pool, t, 1000), FJ_OK);
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    int cancelled = fj_future_cancel(&t->future, 0);
    int code = fj_future_join(&t->future);
    CHECK_EQ(code, cancelled == 1 ? FJ_ECANCELED : FJ_OK);
    fjt_destroy(pool);
    if (code == FJ_OK) CHECK_EQ(atomic_load(&runs), 1);
    free(t);
}

/* One that waits for an hour is let go of at once. */
FJ_TEST(cancelled_timer_is_free_at_once, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t = malloc(sizeof *t);
    int64_t began = sim_now();

    atomic_store(&runs, 0);
    memset(t, 0, sizeof *t);
    fj_timer_init(t, tick);
    CHECK_EQ(fj_schedule(pool, t, 3600000000000), FJ_OK);
    int cancelled = fj_future_cancel(&t->future, 0);
    fj_future_fini(&t->future);
    free(t);
    if (!sim_jumps()) CHECK(cancelled == 1 && sim_now() - began < 1000000000);
    fjt_destroy(pool);
}

FJ_TEST(timers_in_any_order_all_fire, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_timer *t[3];

    atomic_store(&runs, 0);
    for (int i = 0; i < 3; i++) {
        t[i] = malloc(sizeof *t[i]);
        memset(t[i], 0, sizeof *t[i]);
        fj_timer_init(t[i], tick);
        CHECK_EQ(fj_schedule(pool, t[i], (int64_t)(sim_random() % 3) * 2000000), FJ_OK);
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_future_wait(&t[i]->future, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 3);
    fjt_destroy(pool);
    for (int i = 0; i < 3; i++) free(t[i]);
}

FJ_TEST(shutdown_decides_every_timer, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *t[2];

    atomic_store(&runs, 0);
    for (int i = 0; i < 2; i++) {
        t[i] = malloc(sizeof *t[i]);
        memset(t[i], 0, sizeof *t[i]);
        fj_timer_init(t[i], tick);
    }
    CHECK_EQ(fj_schedule(pool, t[0], 1000), FJ_OK);
    CHECK_EQ(fj_schedule_at_fixed_rate(pool, t[1], 1000, 1000000), FJ_OK);
    for (uint32_t n = sim_random() % 100; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    CHECK(fj_future_is_done(&t[0]->future));
    CHECK(fj_future_is_done(&t[1]->future));
    fjt_destroy(pool);
    free(t[0]);
    free(t[1]);
}

/* ---- Limits ----------------------------------------------------------------------------------------------------- */

static int sleeps_for_ever(void *arg, void **result)
{
    int code = FJ_OK;

    (void)arg, (void)result;
    while (code == FJ_OK) code = fj_sleep_ns(FJ_FOREVER);
    return code;
}

static void act_fails(fj_future *f, void *arg)
{
    (void)arg;
    (void)fj_future_fail(f, 7);
}

/* The body keeps the only worker, and sleeps until it is interrupted. */
FJ_TEST(limit_ends_a_body_that_sleeps, 10)
{
    bool acts = sim_random() % 2 == 0;
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f;

    CHECK_EQ(fj_submit_with_timeout(pool, sleeps_for_ever, NULL, 1000, acts ? act_fails : NULL, &f),
             FJ_OK);
    CHECK_EQ(fj_future_join(f), acts ? 7 : FJ_ETIMEDOUT);
    fj_future_unref(f);
    fjt_destroy(pool);
}

/* Two actions that end when a later timer has run, each other's included. */
static uint32_t inside_actions, timer_ran;

static void act_waits(fj_future *f, void *arg)
{
    (void)arg;
    scenario_add(&inside_actions);
    scenario_await(&inside_actions, 2);
    scenario_await(&timer_ran, 1);
    (void)fj_future_fail(f, 7);
}

static int open_ended(void *arg, void **result)
{
    (void)arg, (void)result;
    return FJ_PENDING;
}

static int lets_go(void *arg)
{
    (void)arg;
    scenario_await(&inside_actions, 2);
    scenario_add(&timer_ran);
    return FJ_OK;
}

FJ_TEST(slow_actions_at_limits_delay_no_timer, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f[3];

    inside_actions = timer_ran = 0;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(fj_submit_with_timeout(pool, open_ended, NULL, 1000, act_waits, &f[i]), FJ_OK);
    CHECK_EQ(fj_schedule_action(pool, lets_go, NULL, 1000000, &f[2]), FJ_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_future_join(f[i]), i < 2 ? 7 : FJ_OK);
        fj_future_unref(f[i]);
    }
    fjt_destroy(pool);
}

/* One after the other: the spare thread is called again, and ends with its pool. */
FJ_TEST(actions_at_limits_come_one_after_the_other, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f, *g;

    inside_actions = 1; /* the second action waits for a timer only */
    timer_ran = 0;
    CHECK_EQ(fj_submit_with_timeout(pool, open_ended, NULL, 1000, act_fails, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), 7);
    fj_future_unref(f);
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    CHECK_EQ(fj_submit_with_timeout(pool, open_ended, NULL, 1000, act_waits, &f), FJ_OK);
    CHECK_EQ(fj_schedule_action(pool, lets_go, NULL, 1000000, &g), FJ_OK);
    CHECK_EQ(fj_future_join(f), 7);
    CHECK_EQ(fj_future_join(g), FJ_OK);
    fj_future_unref(f);
    fj_future_unref(g);
    fjt_destroy(pool);
}

static int at_once(void *arg, void **result)
{
    (void)arg, (void)result;
    return FJ_OK;
}

/* The body is over before its limit is in the wheel, or just after. */
FJ_TEST(limit_of_what_is_over_holds_up_no_pool, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f;

    CHECK_EQ(fj_submit_with_timeout(pool, at_once, NULL, FJ_FOREVER, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    CHECK_EQ(fj_pool_delayed_count(pool), 0);
    fj_future_unref(f);
    fjt_destroy(pool); /* or it would wait for ever */
}

/* The shutdown has it out of the wheel while its body ends: it does not put it back. */
FJ_TEST(limit_in_the_hands_of_a_shutdown_holds_up_no_pool, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_timer *series[2];
    fj_future *f;

    for (int i = 0; i < 2; i++) { /* one is dropped before it, one after it */
        series[i] = malloc(sizeof *series[i]);
        memset(series[i], 0, sizeof *series[i]);
        fj_timer_init(series[i], tick);
        CHECK_EQ(fj_schedule_at_fixed_rate(pool, series[i], FJ_FOREVER, 1000000), FJ_OK);
        if (i == 0)
            CHECK_EQ(fj_submit_with_timeout(pool, at_once, NULL, FJ_FOREVER, NULL, &f), FJ_OK);
    }
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fj_future_unref(f);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    fjt_destroy(pool);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_future_join(&series[i]->future), FJ_ECANCELED);
        free(series[i]);
    }
}

/* A pool that stops while a limit is on its way decides what only that could have. */
static void *stops(void *arg)
{
    for (uint32_t n = sim_random() % 60; n > 0; n--) sim_yield();
    CHECK_EQ(fj_pool_shutdown_now(arg), FJ_OK);
    return NULL;
}

FJ_TEST(limit_on_its_way_into_a_pool_that_stops_is_decided, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f = NULL;
    pthread_t t;

    CHECK_EQ(pthread_create(&t, NULL, stops, pool), 0);
    int err = fj_submit_with_timeout(pool, open_ended, NULL, FJ_FOREVER, NULL, &f);
    CHECK(err == FJ_OK || err == FJ_EREJECTED);
    pthread_join(t, NULL);
    if (err == FJ_OK) CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
    if (err == FJ_OK) fj_future_unref(f);
    fjt_destroy(pool);
}
