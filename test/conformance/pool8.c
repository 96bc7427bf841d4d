/* SPDX-License-Identifier: MIT */
/*
 * pool8.c - ForkJoinPool8Test: tasks of a thread that belongs to no pool
 *
 * These tasks run in the common pool or in the calling thread. FJT_WORKERS, if set, is the
 * parallelism of the common pool, and may be 0. A test cannot select the order of the common pool,
 * so FJT_FIFO applies only to the pools that the tests create.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "future_checks.h"

/* Runs before the test framework starts a test, and so before the common pool is created. */
__attribute__((constructor)) static void common_size(void)
{
    const char *n = getenv("FJT_WORKERS");

    if (n != NULL) setenv("FORKJOIN_PARALLELISM", n, 1);
}

/* ---- Futures that join ------------------------------------------------------------------ */

struct fib {
    fj_future f;
    int n, fails;
    atomic_int begun;
    long r;
};

static atomic_int fibs_alive;

static int fib_run(fj_task *t);

static void fib_init(struct fib *x, int n, int fails)
{
    fj_future_init(&x->f, fib_run);
    x->n = n;
    x->fails = fails;
    x->r = 0;
    atomic_init(&x->begun, 0);
}

static int fib_split(struct fib *x)
{
    struct fib a, b;

    fib_init(&a, x->n - 1, x->fails);
    fib_init(&b, x->n - 2, x->fails);
    CHECK_EQ(fj_future_fork(&a.f), FJ_OK);
    int code_b = fj_future_run(&b.f);
    int code_a = fj_future_join(&a.f);
    fj_future_fini(&a.f);
    CHECK_EQ(code_a, code_b);
    x->r = a.r + b.r;
    return code_a;
}

static int fib_run(fj_task *t)
{
    struct fib *x = (struct fib *)t;

    atomic_fetch_add(&x->begun, 1);
    x->r = x->n;
    int code = x->n > 1 ? fib_split(x) : x->fails ? CODE : FJ_OK;
    if (code == FJ_OK) x->f.result = number(x->r);
    return code;
}

static fj_future *joining_make(int n, int fails)
{
    struct fib *x = malloc(sizeof *x);

    CHECK(x != NULL);
    fib_init(x, n, fails);
    atomic_fetch_add(&fibs_alive, 1);
    return &x->f;
}

static int joining_begun(const fj_future *f)
{
    return atomic_load(&((struct fib *)(uintptr_t)f)->begun);
}

static void joining_drop(fj_future *f)
{
    fj_future_fini(f);
    free(f);
    atomic_fetch_sub(&fibs_alive, 1);
}

static const struct kind joining = {
    .make = joining_make,
    .fork = fj_future_fork,
    .invoke = fj_future_run,
    .begun = joining_begun,
    .drop = joining_drop,
    .alive = &fibs_alive,
};

/* ---- Completers ------------------------------------------------------------------------- */

struct counted {
    fj_completer c;
    int n, fails;
    atomic_int begun;
    long r;
    struct counted *child;          /* array of two */
    _Atomic(struct counted *) pair; /* in a root: list of all pairs below it */
    struct counted *next;           /* in the first of a pair: the next pair */
};

static atomic_int counted_alive;

static int counted_run(fj_task *t);
static int counted_done(fj_completer *c, fj_completer *caller);

static void counted_init(struct counted *x, struct counted *parent, int n, int fails)
{
    fj_completer_init(&x->c, parent != NULL ? &parent->c : NULL, 0, counted_run, counted_done,
                      NULL);
    x->n = n;
    x->fails = fails;
}

/* The root keeps all pairs until the end, because after a failure other nodes still run and access
 * their parents. */
static struct counted *counted_pair(struct counted *x)
{
    struct counted *root = (struct counted *)fj_completer_root(&x->c);
    struct counted *two = calloc(2, sizeof *two);

    CHECK(two != NULL);
    two->next = atomic_load(&root->pair);
    while (!atomic_compare_exchange_weak(&root->pair, &two->next, two)) {}
    counted_init(&two[0], x, x->n - 1, x->fails);
    counted_init(&two[1], x, x->n - 2, 0); /* one leaf of the tree fails */
    return two;
}

static int counted_done(fj_completer *c, fj_completer *caller)
{
    struct counted *x = (struct counted *)c;

    CHECK(caller == c || (x->child != NULL && fj_completer_parent(caller) == c));
    if (x->child != NULL) x->r = x->child[0].r + x->child[1].r;
    x->c.future.result = number(x->r);
    return FJ_OK;
}

static int counted_run(fj_task *t)
{
    struct counted *x = (struct counted *)t;

    atomic_fetch_add(&x->begun, 1);
    if (x->n <= 1 && x->fails) return CODE;
    x->r = x->n;
    if (x->n > 1) {
        struct counted *two = counted_pair(x);
        x->child = two;
        fj_completer_set_pending(&x->c, 2);
        CHECK_EQ(fj_completer_fork(&two[0].c), FJ_OK);
        CHECK_EQ(fj_completer_fork(&two[1].c), FJ_OK);
    }
    fj_completer_try_complete(&x->c);
    return FJ_OK;
}

static fj_future *counted_make(int n, int fails)
{
    struct counted *x = calloc(1, sizeof *x);

    CHECK(x != NULL);
    counted_init(x, NULL, n, fails);
    atomic_fetch_add(&counted_alive, 1);
    return &x->c.future;
}

static int counted_fork(fj_future *f)
{
    return fj_completer_fork((fj_completer *)f);
}

static int counted_invoke(fj_future *f)
{
    return fj_completer_run((fj_completer *)f);
}

static int counted_begun(const fj_future *f)
{
    return atomic_load(&((struct counted *)(uintptr_t)f)->begun);
}

/* Frees the tree after all tasks below it have ended. */
static void counted_drop(fj_future *f)
{
    struct counted *x = (struct counted *)f;

    fj_future_fini(f);
    CHECK_EQ(fj_pool_await_quiescence(NULL, FJ_FOREVER), FJ_OK);
    for (struct counted *two = atomic_load(&x->pair), *next; two != NULL; two = next) {
        next = two->next;
        free(two);
    }
    free(x);
    atomic_fetch_sub(&counted_alive, 1);
}

static const struct kind counted = {
    .make = counted_make,
    .fork = counted_fork,
    .invoke = counted_invoke,
    .begun = counted_begun,
    .drop = counted_drop,
    .alive = &counted_alive,
};

/* ---- The common pool itself ------------------------------------------------------------- */

FJ_TEST(ForkJoinPool8Test__testCommonPoolParallelism, 30)
{
    int n = fj_common_parallelism();
    const char *wanted = getenv("FORKJOIN_PARALLELISM");

    CHECK(fj_common_pool() != NULL);
    CHECK(fj_common_pool() == fj_common_pool());
    CHECK_EQ(fj_pool_parallelism(fj_common_pool()), n);
    CHECK_EQ(fj_pool_parallelism(NULL), n);
    CHECK_EQ(fj_common_parallelism(), n);
    if (wanted != NULL) CHECK_EQ(n, atoi(wanted));
}

static void check_common_runs(void)
{
    fj_pool *const by[] = {NULL, fj_common_pool()};

    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_pool_is_shutdown(by[i]), 0);
        CHECK_EQ(fj_pool_is_terminating(by[i]), 0);
        CHECK_EQ(fj_pool_is_terminated(by[i]), 0);
    }
    outside(&joining, step_fork_join);
}

FJ_TEST(ForkJoinPool8Test__testCommonPoolShutDown, 30)
{
    fj_pool *p = fj_common_pool();

    check_common_runs();
    CHECK_EQ(fj_pool_shutdown(p), FJ_ENOTSUP);
    check_common_runs();
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_ENOTSUP);
    check_common_runs();
    CHECK_EQ(fj_pool_close(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_destroy(p), FJ_ENOTSUP);
    check_common_runs();
}

/* ---- Interrupts ------------------------------------------------------------------------- */

/*
 * A thread that belongs to no pool cannot be interrupted, so a task takes its place. The task
 * cancels itself, so that it is interrupted before its first wait and stays so.
 */
static int interrupted_run(fj_task *t)
{
    const struct kind *k = &joining;
    static fj_future never;

    CHECK_EQ(fj_future_cancel((fj_future *)t, 1), 1);
    CHECK_EQ(fj_is_cancelled(), 1);
    fj_future_init(&never, NULL);
    CHECK_EQ(fj_future_get(&never, FJ_FOREVER, NULL), FJ_ECANCELED);
    CHECK_EQ(fj_future_wait(&never, FJ_FOREVER), FJ_ECANCELED);
    CHECK_EQ(fj_future_wait_quietly(&never, 1000), FJ_ETIMEDOUT);
    for (int fails = 0; fails < 2; fails++) {
        /* Not made(), because its checks include interruptible waits. */
        fj_future *f = k->make(8, fails), *g = k->make(8, fails);
        CHECK_EQ(k->fork(f), FJ_OK);
        CHECK_EQ(k->fork(g), FJ_OK);
        CHECK_EQ(fj_future_join(f), fails ? CODE : FJ_OK);
        CHECK_EQ(fj_future_wait_quietly(g, FJ_FOREVER), FJ_OK);
        end_of_forked(k, f, fails ? CODE : FJ_OK, 21); /* an interrupt does not hide an outcome */
        end_of_forked(k, g, fails ? CODE : FJ_OK, 21);
    }
    fj_future *f = k->make(8, 0);
    CHECK_EQ(fj_future_cancel(f, 0), 1);
    CHECK_EQ(k->fork(f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
    CHECK_EQ(fj_future_wait_quietly(f, FJ_FOREVER), FJ_OK);
    end_of_cancelled(k, f);
    CHECK_EQ(fj_is_cancelled(), 1);
    return FJ_OK;
}

FJ_TEST(ForkJoinPool8Test__testJoinIgnoresInterrupts, 30)
{
    fj_future f;

    fj_future_init(&f, interrupted_run);
    CHECK_EQ(fj_future_submit(NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(&f), FJ_ECANCELED);
    fj_future_fini(&f);
    CHECK_EQ(atomic_load(&fibs_alive), 0);
}

/* ---- Futures and completers ------------------------------------------------------------- */

FJ_TEST(ForkJoinPool8Test__testInvoke, 30)
{
    outside(&joining, step_invoke);
}

FJ_TEST(ForkJoinPool8Test__testQuietlyInvoke, 30)
{
    outside(&joining, step_quietly_invoke);
}

FJ_TEST(ForkJoinPool8Test__testForkJoin, 30)
{
    outside(&joining, step_fork_join);
}

FJ_TEST(ForkJoinPool8Test__testForkGet, 30)
{
    outside(&joining, step_fork_get);
}

FJ_TEST(ForkJoinPool8Test__testForkTimedGet, 30)
{
    outside(&joining, step_fork_timed_get);
}

FJ_TEST(ForkJoinPool8Test__testForkQuietlyJoin, 30)
{
    outside(&joining, step_fork_quietly_join);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalInvoke, 30)
{
    outside(&joining, step_abnormal_invoke);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalQuietlyInvoke, 30)
{
    outside(&joining, step_abnormal_quietly_invoke);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalForkJoin, 30)
{
    outside(&joining, step_abnormal_fork_join);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalForkGet, 30)
{
    outside(&joining, step_abnormal_fork_get);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalForkTimedGet, 30)
{
    outside(&joining, step_abnormal_fork_timed_get);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalForkQuietlyJoin, 30)
{
    outside(&joining, step_abnormal_fork_quietly_join);
}

FJ_TEST(ForkJoinPool8Test__testCancelledInvoke, 30)
{
    outside(&joining, step_cancelled_invoke);
}

FJ_TEST(ForkJoinPool8Test__testCancelledForkJoin, 30)
{
    outside(&joining, step_cancelled_fork_join);
}

FJ_TEST(ForkJoinPool8Test__testCancelledForkGet, 30)
{
    outside(&joining, step_cancelled_fork_get);
}

FJ_TEST(ForkJoinPool8Test__testCancelledForkTimedGet, 30)
{
    outside(&joining, step_cancelled_fork_timed_get);
}

FJ_TEST(ForkJoinPool8Test__testCancelledForkQuietlyJoin, 30)
{
    outside(&joining, step_cancelled_fork_quietly_join);
}

FJ_TEST(ForkJoinPool8Test__testInForkJoinPool2, 30)
{
    outside(&joining, step_in_no_pool);
}

FJ_TEST(ForkJoinPool8Test__testReinitialize, 30)
{
    outside(&joining, step_reinit);
}

FJ_TEST(ForkJoinPool8Test__testReinitializeAbnormal, 30)
{
    outside(&joining, step_reinit_abnormal);
}

FJ_TEST(ForkJoinPool8Test__testCompleteExceptionally, 30)
{
    outside(&joining, step_complete_exceptionally);
}

FJ_TEST(ForkJoinPool8Test__testComplete, 30)
{
    outside(&joining, step_complete);
}

FJ_TEST(ForkJoinPool8Test__testInvokeAll2, 30)
{
    outside(&joining, step_invoke_all_2);
}

FJ_TEST(ForkJoinPool8Test__testInvokeAll1, 30)
{
    outside(&joining, step_invoke_all_1);
}

FJ_TEST(ForkJoinPool8Test__testInvokeAll3, 30)
{
    outside(&joining, step_invoke_all_3);
}

FJ_TEST(ForkJoinPool8Test__testInvokeAllCollection, 30)
{
    outside(&joining, step_invoke_all_futures);
}

FJ_TEST(ForkJoinPool8Test__testInvokeAllNPE, 30)
{
    outside(&joining, step_invoke_all_null);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalInvokeAll2, 30)
{
    outside(&joining, step_abnormal_invoke_all_2);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalInvokeAll1, 30)
{
    outside(&joining, step_abnormal_invoke_all_1);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalInvokeAll3, 30)
{
    outside(&joining, step_abnormal_invoke_all_3);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalInvokeAllCollection, 30)
{
    outside(&joining, step_abnormal_invoke_all_futures);
}

FJ_TEST(ForkJoinPool8Test__testInvokeCC, 30)
{
    outside(&counted, step_invoke);
}

FJ_TEST(ForkJoinPool8Test__testQuietlyInvokeCC, 30)
{
    outside(&counted, step_quietly_invoke);
}

FJ_TEST(ForkJoinPool8Test__testForkJoinCC, 30)
{
    outside(&counted, step_fork_join);
}

FJ_TEST(ForkJoinPool8Test__testForkGetCC, 30)
{
    outside(&counted, step_fork_get);
}

FJ_TEST(ForkJoinPool8Test__testForkTimedGetCC, 30)
{
    outside(&counted, step_fork_timed_get);
}

FJ_TEST(ForkJoinPool8Test__testForkQuietlyJoinCC, 30)
{
    outside(&counted, step_fork_quietly_join);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalInvokeCC, 30)
{
    outside(&counted, step_abnormal_invoke);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalQuietlyInvokeCC, 30)
{
    outside(&counted, step_abnormal_quietly_invoke);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalForkJoinCC, 30)
{
    outside(&counted, step_abnormal_fork_join);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalForkGetCC, 30)
{
    outside(&counted, step_abnormal_fork_get);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalForkTimedGetCC, 30)
{
    outside(&counted, step_abnormal_fork_timed_get);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalForkQuietlyJoinCC, 30)
{
    outside(&counted, step_abnormal_fork_quietly_join);
}

FJ_TEST(ForkJoinPool8Test__testCancelledInvokeCC, 30)
{
    outside(&counted, step_cancelled_invoke);
}

FJ_TEST(ForkJoinPool8Test__testCancelledForkJoinCC, 30)
{
    outside(&counted, step_cancelled_fork_join);
}

FJ_TEST(ForkJoinPool8Test__testCancelledForkGetCC, 30)
{
    outside(&counted, step_cancelled_fork_get);
}

FJ_TEST(ForkJoinPool8Test__testCancelledForkTimedGetCC, 30)
{
    outside(&counted, step_cancelled_fork_timed_get);
}

FJ_TEST(ForkJoinPool8Test__testCancelledForkQuietlyJoinCC, 30)
{
    outside(&counted, step_cancelled_fork_quietly_join);
}

static int completer_pool_run(fj_task *t)
{
    ((fj_future *)t)->result = fj_current_pool();
    CHECK_EQ(fj_current_worker(), -1);
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

FJ_TEST(ForkJoinPool8Test__testGetPool2CC, 30)
{
    fj_completer c;
    void *pool = &pool;

    fj_completer_init(&c, NULL, 0, completer_pool_run, NULL, NULL);
    CHECK_EQ(fj_completer_run(&c), FJ_OK);
    CHECK_EQ(fj_future_get(&c.future, 0, &pool), FJ_OK);
    CHECK(pool == NULL);
    CHECK(fj_current_pool() == NULL);
}

FJ_TEST(ForkJoinPool8Test__testInForkJoinPool2CC, 30)
{
    outside(&counted, step_in_no_pool);
}

FJ_TEST(ForkJoinPool8Test__testSetRawResultCC, 30)
{
    fj_completer c;

    outside(&counted, step_set_raw_result);
    fj_completer_init(&c, NULL, 3, counted_run, NULL, NULL);
    c.future.result = number(5);
    fj_completer_complete(&c, number(6)); /* regardless of the pending count */
    state_check_flags(&c.future, FJ_OK);
    state_check_waits(&c.future, FJ_OK, number(6));
    CHECK(c.future.result == number(6));
}

static void step_completer_fail(const struct kind *k)
{
    fj_future *f = made(k, 8, 0);

    fj_completer_fail((fj_completer *)f, CODE);
    CHECK_EQ(k->invoke(f), CODE);
    check_failed(k, f);
    CHECK_EQ(k->begun(f), 0);
    k->drop(f);
}

FJ_TEST(ForkJoinPool8Test__testCompleteExceptionally2CC, 30)
{
    outside(&counted, step_complete_exceptionally);
    outside(&counted, step_completer_fail);
}

FJ_TEST(ForkJoinPool8Test__testInvokeAll2CC, 30)
{
    outside(&counted, step_invoke_all_2);
}

FJ_TEST(ForkJoinPool8Test__testInvokeAll1CC, 30)
{
    outside(&counted, step_invoke_all_1);
}

FJ_TEST(ForkJoinPool8Test__testInvokeAll3CC, 30)
{
    outside(&counted, step_invoke_all_3);
}

FJ_TEST(ForkJoinPool8Test__testInvokeAllCollectionCC, 30)
{
    outside(&counted, step_invoke_all_futures);
}

FJ_TEST(ForkJoinPool8Test__testInvokeAllNPECC, 30)
{
    outside(&counted, step_invoke_all_null);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalInvokeAll2CC, 30)
{
    outside(&counted, step_abnormal_invoke_all_2);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalInvokeAll1CC, 30)
{
    outside(&counted, step_abnormal_invoke_all_1);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalInvokeAll3CC, 30)
{
    outside(&counted, step_abnormal_invoke_all_3);
}

FJ_TEST(ForkJoinPool8Test__testAbnormalInvokeAllCollectionCC, 30)
{
    outside(&counted, step_abnormal_invoke_all_futures);
}

/* ---- Quiescence ------------------------------------------------------------------------- */

struct job {
    fj_future f;
    fj_future *child;
    atomic_int seen_quiet;
};

/* The pool is not quiescent while this runs. */
static int job_run(fj_task *t)
{
    struct job *j = (struct job *)t;

    atomic_fetch_add(&j->seen_quiet, fj_pool_is_quiescent(fj_current_pool()));
    j->child = joining.make(8, 0);
    CHECK_EQ(fj_future_fork(j->child), FJ_OK);
    return FJ_OK;
}

static void job_check(struct job *j)
{
    CHECK_EQ(fj_future_is_done(&j->f), 1);
    CHECK_EQ(atomic_load(&j->seen_quiet), 0);
    CHECK_EQ(fj_future_is_done(j->child), 1);
    end_of_forked(&joining, j->child, FJ_OK, 21);
    fj_future_fini(&j->f);
}

/* The pool is quiescent, but a worker that was woken without need may still search. */
static void check_pool_comes_to_rest(fj_pool *p)
{
    while (!fj_pool_is_quiescent(p) || fj_pool_active_count(p) != 0) fjt_sleep_us(20);
    CHECK_EQ(fj_pool_queued_task_count(p), 0);
    CHECK_EQ(fj_pool_queued_submission_count(p), 0);
    CHECK_EQ(fj_pool_has_queued_submissions(p), 0);
    CHECK_EQ(fj_pool_is_shutdown(p), 0);
    CHECK_EQ(fj_pool_is_terminating(p), 0);
    CHECK_EQ(fj_pool_is_terminated(p), 0);
}

static int waits_for_quiet(fj_task *t)
{
    struct job j = {.child = NULL};

    (void)t;
    fj_future_init(&j.f, job_run);
    CHECK_EQ(fj_future_fork(&j.f), FJ_OK);
    CHECK(fj_current_pool() == stage_pool);
    CHECK_EQ(fj_pool_is_quiescent(stage_pool), 0);
    CHECK_EQ(fj_pool_await_quiescence(stage_pool, LONG_NS), FJ_OK);
    job_check(&j);
    CHECK_EQ(fj_worker_queued(), 0);
    CHECK_EQ(fj_pool_is_quiescent(stage_pool), 0); /* this task is still running */
    return FJ_OK;
}

FJ_TEST(ForkJoinPool8Test__testAwaitQuiescence1, 30)
{
    fj_future f;

    stage_pool = fjt_pool(conformance_workers(), conformance_flags());
    CHECK_EQ(fj_pool_is_quiescent(stage_pool), 1);
    fj_future_init(&f, waits_for_quiet);
    CHECK_EQ(fj_future_submit(stage_pool, &f), FJ_OK);
    while (!fj_future_is_done(&f)) fjt_sleep_us(20);
    check_pool_comes_to_rest(stage_pool);
    CHECK_EQ(fj_future_join(&f), FJ_OK);
    fj_future_fini(&f);
    fjt_destroy(stage_pool);
    CHECK_EQ(atomic_load(&fibs_alive), 0);
}

static void quiet_round(fj_pool *p)
{
    struct job j = {.child = NULL};

    fj_future_init(&j.f, job_run);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(p, LONG_NS), FJ_OK);
    job_check(&j);
    check_pool_comes_to_rest(p);
}

FJ_TEST(ForkJoinPool8Test__testAwaitQuiescence2, 30)
{
    fj_pool *p = fjt_pool(conformance_workers(), conformance_flags());

    for (int i = 0; i < 20; i++) {
        quiet_round(p);
        quiet_round(NULL);
    }
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&fibs_alive), 0);
}
