/* SPDX-License-Identifier: MIT */
/*
 * recursive_task.c - RecursiveTaskTest: recursive tasks with a result
 */
#include "tree_checks.h"

FJ_TEST(RecursiveTaskTest__testInvoke, 30)
{
    tree_run(step_invoke, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testQuietlyInvoke, 30)
{
    tree_run(step_quietly_invoke, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testForkJoin, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_VALUE, .wait = tree_join});
}

FJ_TEST(RecursiveTaskTest__testForkGet, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_VALUE, .wait = tree_wait_get});
}

FJ_TEST(RecursiveTaskTest__testForkTimedGet, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_VALUE, .wait = tree_wait_timed});
}

FJ_TEST(RecursiveTaskTest__testForkQuietlyJoin, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_VALUE, .wait = tree_wait_quiet});
}

FJ_TEST(RecursiveTaskTest__testForkHelpQuiesce, 30)
{
    tree_run(step_fork_help_quiesce, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testAbnormalInvoke, 30)
{
    tree_run(step_invoke, (struct tree_how){.kind = TREE_VALUE, .code = TREE_CODE});
}

FJ_TEST(RecursiveTaskTest__testAbnormalQuietlyInvoke, 30)
{
    tree_run(step_quietly_invoke, (struct tree_how){.kind = TREE_VALUE, .code = TREE_CODE});
}

FJ_TEST(RecursiveTaskTest__testAbnormalForkJoin, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_VALUE, .code = TREE_CODE, .wait = tree_join});
}

FJ_TEST(RecursiveTaskTest__testAbnormalForkGet, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_VALUE, .code = TREE_CODE, .wait = tree_wait_get});
}

FJ_TEST(RecursiveTaskTest__testAbnormalForkTimedGet, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_VALUE, .code = TREE_CODE, .wait = tree_wait_timed});
}

FJ_TEST(RecursiveTaskTest__testAbnormalForkQuietlyJoin, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_VALUE, .code = TREE_CODE, .wait = tree_wait_quiet});
}

FJ_TEST(RecursiveTaskTest__testCancelledInvoke, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testCancelledForkJoin, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_VALUE, .wait = tree_join});
}

FJ_TEST(RecursiveTaskTest__testCancelledForkGet, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_VALUE, .wait = tree_wait_get});
}

FJ_TEST(RecursiveTaskTest__testCancelledForkTimedGet, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_VALUE, .wait = tree_wait_timed});
}

FJ_TEST(RecursiveTaskTest__testCancelledForkQuietlyJoin, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_VALUE, .wait = tree_wait_quiet});
}

FJ_TEST(RecursiveTaskTest__testGetPool, 30)
{
    tree_run(step_pool_of_a_body, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testGetPool2, 30)
{
    tree_run_outside(TREE_VALUE);
}

FJ_TEST(RecursiveTaskTest__testInForkJoinPool, 30)
{
    tree_run(step_worker_of_a_body, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testInForkJoinPool2, 30)
{
    tree_run_outside(TREE_VALUE);
}

FJ_TEST(RecursiveTaskTest__testSetRawResult, 30)
{
    tree_run(step_set_result, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testReinitialize, 30)
{
    tree_run(step_reinit, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testReinitializeAbnormal, 30)
{
    tree_run(step_reinit, (struct tree_how){.kind = TREE_VALUE, .code = TREE_CODE});
}

FJ_TEST(RecursiveTaskTest__testCompleteExceptionally, 30)
{
    tree_run(step_complete_exceptionally, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testComplete, 30)
{
    tree_run(step_complete, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testInvokeAll2, 30)
{
    tree_run(step_invoke_all, (struct tree_how){.kind = TREE_VALUE, .many = 2, .form = TREE_BOTH});
}

FJ_TEST(RecursiveTaskTest__testInvokeAll1, 30)
{
    tree_run(step_invoke_all, (struct tree_how){.kind = TREE_VALUE, .many = 1, .form = TREE_ARRAY});
}

FJ_TEST(RecursiveTaskTest__testInvokeAll3, 30)
{
    tree_run(step_invoke_all, (struct tree_how){.kind = TREE_VALUE, .many = 3, .form = TREE_ARRAY});
}

FJ_TEST(RecursiveTaskTest__testInvokeAllCollection, 30)
{
    tree_run(step_invoke_all,
             (struct tree_how){.kind = TREE_VALUE, .many = TREE_MOST, .form = TREE_COLLECTION});
}

FJ_TEST(RecursiveTaskTest__testInvokeAllNPE, 30)
{
    tree_run(step_invoke_all_null, (struct tree_how){.kind = TREE_VALUE});
}

FJ_TEST(RecursiveTaskTest__testAbnormalInvokeAll2, 30)
{
    tree_run(
        step_invoke_all,
        (struct tree_how){.kind = TREE_VALUE, .code = TREE_CODE, .many = 2, .form = TREE_BOTH});
}

FJ_TEST(RecursiveTaskTest__testAbnormalInvokeAll1, 30)
{
    tree_run(
        step_invoke_all,
        (struct tree_how){.kind = TREE_VALUE, .code = TREE_CODE, .many = 1, .form = TREE_ARRAY});
}

FJ_TEST(RecursiveTaskTest__testAbnormalInvokeAll3, 30)
{
    tree_run(
        step_invoke_all,
        (struct tree_how){.kind = TREE_VALUE, .code = TREE_CODE, .many = 3, .form = TREE_ARRAY});
}

FJ_TEST(RecursiveTaskTest__testAbnormalInvokeAllCollection, 30)
{
    tree_run(step_invoke_all, (struct tree_how){.kind = TREE_VALUE,
                                                .code = TREE_CODE,
                                                .many = TREE_MOST,
                                                .form = TREE_COLLECTION});
}

FJ_TEST(RecursiveTaskTest__testTryUnfork, 30)
{
    tree_run_alone(step_unfork, (struct tree_how){.kind = TREE_VALUE}, conformance_flags());
}

FJ_TEST(RecursiveTaskTest__testGetSurplusQueuedTaskCount, 30)
{
    tree_run_alone(step_surplus, (struct tree_how){.kind = TREE_VALUE}, conformance_flags());
}

FJ_TEST(RecursiveTaskTest__testPeekNextLocalTask, 30)
{
    tree_run_alone(step_peek, (struct tree_how){.kind = TREE_VALUE}, 0);
}

FJ_TEST(RecursiveTaskTest__testPollNextLocalTask, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_VALUE, .poll = fj_take_local}, 0);
}

FJ_TEST(RecursiveTaskTest__testPollTask, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_VALUE, .poll = fj_take_task}, 0);
}

FJ_TEST(RecursiveTaskTest__testPeekNextLocalTaskAsync, 30)
{
    tree_run_alone(step_peek, (struct tree_how){.kind = TREE_VALUE}, FJ_POOL_FIFO);
}

FJ_TEST(RecursiveTaskTest__testPollNextLocalTaskAsync, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_VALUE, .poll = fj_take_local},
                   FJ_POOL_FIFO);
}

FJ_TEST(RecursiveTaskTest__testPollTaskAsync, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_VALUE, .poll = fj_take_task},
                   FJ_POOL_FIFO);
}
