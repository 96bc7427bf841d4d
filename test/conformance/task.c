/* SPDX-License-Identifier: MIT */
/*
 * task.c - ForkJoinTaskTest: futures that their children complete
 *
 * No body of these trees waits. It forks two children and returns FJ_PENDING. A child that is done
 * reports to its parent, and the second of the two completes the parent, and so on up to the root.
 * Only the step that started the tree waits, for the root. In a pool with one worker, that worker
 * has to run the rest of the tree while it waits.
 */
#include "task_tree.h"

/* ---- A tree that is completed from the leaves upwards ----------------------------------- */

/* No other thread ends these nodes, so each of these calls must succeed. */
static void node_done(struct node *x, long value)
{
    for (;;) {
        CHECK_EQ(fj_future_complete(&x->f, number(value)), 1);
        x = x->parent;
        if (x == NULL) return;
        atomic_fetch_add(&x->sum, value);
        if (atomic_fetch_add(&x->arrived, 1) == 0) return; /* the sibling continues from here */
        value = atomic_load(&x->sum);
    }
}

/* One leaf fails, and with it all its ancestors at once, while the rest of the tree continues. */
static void node_failed(struct node *x)
{
    for (; x != NULL; x = x->parent) CHECK_EQ(fj_future_fail(&x->f, CODE), 1);
}

static int node_run(fj_task *t)
{
    struct node *x = (struct node *)t;

    atomic_fetch_add(&x->begun, 1);
    if (x->n > 1) {
        struct node *left = node_make(x, x->n - 1, x->fails), *right = node_make(x, x->n - 2, 0);
        CHECK_EQ(fj_future_fork(&left->f), FJ_OK);
        CHECK_EQ(fj_future_fork(&right->f), FJ_OK);
    } else if (x->fails) {
        node_failed(x);
    } else {
        node_done(x, x->n);
    }
    return FJ_PENDING;
}

/* ---- This kind of future ---------------------------------------------------------------- */

static const struct kind async = {
    .make = node_make_root,
    .fork = fj_future_fork,
    .invoke = fj_future_run,
    .begun = node_begun,
    .drop = node_drop,
    .alive = &nodes_alive,
};

/* ---- The methods of ForkJoinTaskTest ---------------------------------------------------- */

FJ_TEST(ForkJoinTaskTest__testInvoke, 30)
{
    on_workers(&async, step_invoke);
}

FJ_TEST(ForkJoinTaskTest__testQuietlyInvoke, 30)
{
    on_workers(&async, step_quietly_invoke);
}

FJ_TEST(ForkJoinTaskTest__testForkJoin, 30)
{
    on_workers(&async, step_fork_join);
}

FJ_TEST(ForkJoinTaskTest__testForkGet, 30)
{
    on_workers(&async, step_fork_get);
}

FJ_TEST(ForkJoinTaskTest__testForkTimedGet, 30)
{
    on_workers(&async, step_fork_timed_get);
}

FJ_TEST(ForkJoinTaskTest__testForkQuietlyJoin, 30)
{
    on_workers(&async, step_fork_quietly_join);
}

FJ_TEST(ForkJoinTaskTest__testForkHelpQuiesce, 30)
{
    on_workers(&async, step_fork_help_quiesce);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalInvoke, 30)
{
    on_workers(&async, step_abnormal_invoke);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalQuietlyInvoke, 30)
{
    on_workers(&async, step_abnormal_quietly_invoke);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalForkJoin, 30)
{
    on_workers(&async, step_abnormal_fork_join);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalForkGet, 30)
{
    on_workers(&async, step_abnormal_fork_get);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalForkTimedGet, 30)
{
    on_workers(&async, step_abnormal_fork_timed_get);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalForkQuietlyJoin, 30)
{
    on_workers(&async, step_abnormal_fork_quietly_join);
}

FJ_TEST(ForkJoinTaskTest__testCancelledInvoke, 30)
{
    on_workers(&async, step_cancelled_invoke);
}

FJ_TEST(ForkJoinTaskTest__testCancelledForkJoin, 30)
{
    on_workers(&async, step_cancelled_fork_join);
}

FJ_TEST(ForkJoinTaskTest__testCancelledForkGet, 30)
{
    on_workers(&async, step_cancelled_fork_get);
}

FJ_TEST(ForkJoinTaskTest__testCancelledForkTimedGet, 30)
{
    on_workers(&async, step_cancelled_fork_timed_get);
}

FJ_TEST(ForkJoinTaskTest__testCancelledForkQuietlyJoin, 30)
{
    on_workers(&async, step_cancelled_fork_quietly_join);
}

FJ_TEST(ForkJoinTaskTest__testGetPool, 30)
{
    on_workers(&async, step_get_pool);
}

FJ_TEST(ForkJoinTaskTest__testGetPool2, 30)
{
    outside(&async, step_get_pool_outside);
}

FJ_TEST(ForkJoinTaskTest__testInForkJoinPool, 30)
{
    on_workers(&async, step_in_pool);
}

FJ_TEST(ForkJoinTaskTest__testInForkJoinPool2, 30)
{
    outside(&async, step_in_no_pool);
}

FJ_TEST(ForkJoinTaskTest__testSetRawResult, 30)
{
    on_workers(&async, step_set_raw_result);
}

FJ_TEST(ForkJoinTaskTest__testCompleteExceptionally, 30)
{
    on_workers(&async, step_complete_exceptionally);
}

FJ_TEST(ForkJoinTaskTest__testCompleteExceptionally_null, 30)
{
    on_workers(&async, step_complete_exceptionally_null);
}

FJ_TEST(ForkJoinTaskTest__testInvokeAll2, 30)
{
    on_workers(&async, step_invoke_all_2);
}

FJ_TEST(ForkJoinTaskTest__testInvokeAll1, 30)
{
    on_workers(&async, step_invoke_all_1);
}

FJ_TEST(ForkJoinTaskTest__testInvokeAll3, 30)
{
    on_workers(&async, step_invoke_all_3);
}

FJ_TEST(ForkJoinTaskTest__testInvokeAllCollection, 30)
{
    on_workers(&async, step_invoke_all_futures);
}

FJ_TEST(ForkJoinTaskTest__testInvokeAllNPE, 30)
{
    on_workers(&async, step_invoke_all_null);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalInvokeAll2, 30)
{
    on_workers(&async, step_abnormal_invoke_all_2);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalInvokeAll1, 30)
{
    on_workers(&async, step_abnormal_invoke_all_1);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalInvokeAll3, 30)
{
    on_workers(&async, step_abnormal_invoke_all_3);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalInvokeAllCollection, 30)
{
    on_workers(&async, step_abnormal_invoke_all_futures);
}

FJ_TEST(ForkJoinTaskTest__testTryUnfork, 30)
{
    on_alone(conformance_flags(), &async, step_try_unfork);
}

FJ_TEST(ForkJoinTaskTest__testGetSurplusQueuedTaskCount, 30)
{
    on_alone(conformance_flags(), &async, step_surplus);
}

FJ_TEST(ForkJoinTaskTest__testPeekNextLocalTask, 30)
{
    on_alone(0, &async, step_peek_lifo);
}

FJ_TEST(ForkJoinTaskTest__testPollNextLocalTask, 30)
{
    on_alone(0, &async, step_poll_local_lifo);
}

FJ_TEST(ForkJoinTaskTest__testPollTask, 30)
{
    on_alone(0, &async, step_poll_task_lifo);
}

FJ_TEST(ForkJoinTaskTest__testPeekNextLocalTaskAsync, 30)
{
    on_alone(FJ_POOL_FIFO, &async, step_peek_fifo);
}

FJ_TEST(ForkJoinTaskTest__testPollNextLocalTaskAsync, 30)
{
    on_alone(FJ_POOL_FIFO, &async, step_poll_local_fifo);
}

FJ_TEST(ForkJoinTaskTest__testPollTaskAsync, 30)
{
    on_alone(FJ_POOL_FIFO, &async, step_poll_task_fifo);
}

FJ_TEST(ForkJoinTaskTest__testInvokeSingleton, 30)
{
    on_one(&async, step_invoke);
}

FJ_TEST(ForkJoinTaskTest__testQuietlyInvokeSingleton, 30)
{
    on_one(&async, step_quietly_invoke);
}

FJ_TEST(ForkJoinTaskTest__testForkJoinSingleton, 30)
{
    on_one(&async, step_fork_join);
}

FJ_TEST(ForkJoinTaskTest__testForkGetSingleton, 30)
{
    on_one(&async, step_fork_get);
}

FJ_TEST(ForkJoinTaskTest__testForkTimedGetSingleton, 30)
{
    on_one(&async, step_fork_timed_get);
}

FJ_TEST(ForkJoinTaskTest__testForkQuietlyJoinSingleton, 30)
{
    on_one(&async, step_fork_quietly_join);
}

FJ_TEST(ForkJoinTaskTest__testForkHelpQuiesceSingleton, 30)
{
    on_one(&async, step_fork_help_quiesce);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalInvokeSingleton, 30)
{
    on_one(&async, step_abnormal_invoke);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalQuietlyInvokeSingleton, 30)
{
    on_one(&async, step_abnormal_quietly_invoke);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalForkJoinSingleton, 30)
{
    on_one(&async, step_abnormal_fork_join);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalForkGetSingleton, 30)
{
    on_one(&async, step_abnormal_fork_get);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalForkTimedGetSingleton, 30)
{
    on_one(&async, step_abnormal_fork_timed_get);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalForkQuietlyJoinSingleton, 30)
{
    on_one(&async, step_abnormal_fork_quietly_join);
}

FJ_TEST(ForkJoinTaskTest__testCancelledInvokeSingleton, 30)
{
    on_one(&async, step_cancelled_invoke);
}

FJ_TEST(ForkJoinTaskTest__testCancelledForkJoinSingleton, 30)
{
    on_one(&async, step_cancelled_fork_join);
}

FJ_TEST(ForkJoinTaskTest__testCancelledForkGetSingleton, 30)
{
    on_one(&async, step_cancelled_fork_get);
}

FJ_TEST(ForkJoinTaskTest__testCancelledForkTimedGetSingleton, 30)
{
    on_one(&async, step_cancelled_fork_timed_get);
}

FJ_TEST(ForkJoinTaskTest__testCancelledForkQuietlyJoinSingleton, 30)
{
    on_one(&async, step_cancelled_fork_quietly_join);
}

FJ_TEST(ForkJoinTaskTest__testCompleteExceptionallySingleton, 30)
{
    on_one(&async, step_complete_exceptionally);
}

FJ_TEST(ForkJoinTaskTest__testInvokeAll2Singleton, 30)
{
    on_one(&async, step_invoke_all_2);
}

FJ_TEST(ForkJoinTaskTest__testInvokeAll1Singleton, 30)
{
    on_one(&async, step_invoke_all_1);
}

FJ_TEST(ForkJoinTaskTest__testInvokeAll3Singleton, 30)
{
    on_one(&async, step_invoke_all_3);
}

FJ_TEST(ForkJoinTaskTest__testInvokeAllCollectionSingleton, 30)
{
    on_one(&async, step_invoke_all_futures);
}

FJ_TEST(ForkJoinTaskTest__testInvokeAllNPESingleton, 30)
{
    on_one(&async, step_invoke_all_null);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalInvokeAll2Singleton, 30)
{
    on_one(&async, step_abnormal_invoke_all_2);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalInvokeAll1Singleton, 30)
{
    on_one(&async, step_abnormal_invoke_all_1);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalInvokeAll3Singleton, 30)
{
    on_one(&async, step_abnormal_invoke_all_3);
}

FJ_TEST(ForkJoinTaskTest__testAbnormalInvokeAllCollectionSingleton, 30)
{
    on_one(&async, step_abnormal_invoke_all_futures);
}

FJ_TEST(ForkJoinTaskTest__testQuietlyComplete, 30)
{
    on_workers(&async, step_quietly_complete);
}
