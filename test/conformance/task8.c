/* SPDX-License-Identifier: MIT */
/*
 * task8.c - ForkJoinTask8Test: as task.c, with the tag of a future as the state of a node
 *
 * Only the tag says which children have ended. If a tag were lost, set twice or seen too early, a
 * node would end twice, never, or with half of its sum.
 *
 *     NEW -> HALF -> FULL     one child is done, then both; a leaf goes from NEW to FULL
 *     NEW, HALF -> BROKEN     a node below has failed
 */
#include <pthread.h>

#include "task_tree.h"

#define NEW ((int16_t)0)
#define HALF ((int16_t)-21)
#define FULL INT16_MAX
#define BROKEN INT16_MIN

/* ---- A tree that is completed from the leaves upwards ----------------------------------- */

/*
 * Stores the result of the child on this side. Returns true if this child is the second to arrive;
 * then *value is the sum. The change of the tag makes the result of the other child visible.
 */
static bool node_arrive(struct node *x, int side, long *value)
{
    x->given[side] = *value;
    if (fj_future_cas_tag(&x->f, NEW, HALF)) return false;
    if (!fj_future_cas_tag(&x->f, HALF, FULL)) {
        CHECK_EQ(fj_future_tag(&x->f), BROKEN);
        return false;
    }
    *value = x->given[0] + x->given[1];
    return true;
}

static int node_side(const struct node *x)
{
    return x->n == x->parent->n - 1 ? 0 : 1;
}

static void node_done(struct node *x, long value)
{
    CHECK_EQ(fj_future_set_tag(&x->f, FULL), NEW);
    for (;;) {
        x->f.result = number(value);
        CHECK_EQ(fj_future_complete_quietly(&x->f), 1);
        if (x->parent == NULL || !node_arrive(x->parent, node_side(x), &value)) return;
        x = x->parent;
    }
}

/* All leaves fail. The first failure below a node sets its tag to BROKEN. */
static void node_failed(struct node *x)
{
    for (; x != NULL; x = x->parent) {
        while (!fj_future_cas_tag(&x->f, NEW, BROKEN) && !fj_future_cas_tag(&x->f, HALF, BROKEN))
            if (fj_future_tag(&x->f) == BROKEN) return;
        CHECK_EQ(fj_future_fail(&x->f, CODE), 1);
        CHECK_EQ(fj_future_tag(&x->f), BROKEN);
    }
}

static int node_run(fj_task *t)
{
    struct node *x = (struct node *)t;

    atomic_fetch_add(&x->begun, 1);
    if (x->n > 1) {
        struct node *left = node_make(x, x->n - 1, x->fails);
        struct node *right = node_make(x, x->n - 2, x->fails);
        CHECK_EQ(fj_future_fork(&right->f), FJ_OK);
        CHECK_EQ(fj_future_fork(&left->f), FJ_OK);
    } else if (x->fails) {
        node_failed(x);
    } else {
        node_done(x, x->n);
    }
    return FJ_PENDING;
}

/* ---- The functions of this kind --------------------------------------------------------- */

/* An outcome that a call has set does not change the tag. */
static int16_t tagged_tag(const fj_future *f, int code)
{
    if (node_begun(f) == 0 || code == FJ_EBUSY) return NEW;
    return code == FJ_OK ? FULL : BROKEN;
}

static const struct kind tagged = {
    .make = node_make_root,
    .fork = fj_future_fork,
    .invoke = fj_future_run,
    .begun = node_begun,
    .tag = tagged_tag,
    .drop = node_drop,
    .alive = &nodes_alive,
};

/* ---- The methods of ForkJoinTask8Test --------------------------------------------------- */

FJ_TEST(ForkJoinTask8Test__testInvoke, 30)
{
    on_workers(&tagged, step_invoke);
}

FJ_TEST(ForkJoinTask8Test__testInvoke_Singleton, 30)
{
    on_one(&tagged, step_invoke);
}

FJ_TEST(ForkJoinTask8Test__testQuietlyInvoke, 30)
{
    on_workers(&tagged, step_quietly_invoke);
}

FJ_TEST(ForkJoinTask8Test__testQuietlyInvoke_Singleton, 30)
{
    on_one(&tagged, step_quietly_invoke);
}

FJ_TEST(ForkJoinTask8Test__testForkJoin, 30)
{
    on_workers(&tagged, step_fork_join);
}

FJ_TEST(ForkJoinTask8Test__testForkJoin_Singleton, 30)
{
    on_one(&tagged, step_fork_join);
}

FJ_TEST(ForkJoinTask8Test__testForkGet, 30)
{
    on_workers(&tagged, step_fork_get);
}

FJ_TEST(ForkJoinTask8Test__testForkGet_Singleton, 30)
{
    on_one(&tagged, step_fork_get);
}

FJ_TEST(ForkJoinTask8Test__testForkTimedGet, 30)
{
    on_workers(&tagged, step_fork_timed_get);
}

FJ_TEST(ForkJoinTask8Test__testForkTimedGet_Singleton, 30)
{
    on_one(&tagged, step_fork_timed_get);
}

FJ_TEST(ForkJoinTask8Test__testForkTimedGetNullTimeUnit_Singleton, 30)
{
    on_one(&tagged, step_fork_timed_get);
}

FJ_TEST(ForkJoinTask8Test__testForkQuietlyJoin, 30)
{
    on_workers(&tagged, step_fork_quietly_join);
}

FJ_TEST(ForkJoinTask8Test__testForkQuietlyJoin_Singleton, 30)
{
    on_one(&tagged, step_fork_quietly_join);
}

FJ_TEST(ForkJoinTask8Test__testForkHelpQuiesce, 30)
{
    on_workers(&tagged, step_fork_help_quiesce);
}

FJ_TEST(ForkJoinTask8Test__testForkHelpQuiesce_Singleton, 30)
{
    on_one(&tagged, step_fork_help_quiesce);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalInvoke, 30)
{
    on_workers(&tagged, step_abnormal_invoke);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalInvoke_Singleton, 30)
{
    on_one(&tagged, step_abnormal_invoke);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalQuietlyInvoke, 30)
{
    on_workers(&tagged, step_abnormal_quietly_invoke);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalQuietlyInvoke_Singleton, 30)
{
    on_one(&tagged, step_abnormal_quietly_invoke);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalForkJoin, 30)
{
    on_workers(&tagged, step_abnormal_fork_join);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalForkJoin_Singleton, 30)
{
    on_one(&tagged, step_abnormal_fork_join);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalForkGet, 30)
{
    on_workers(&tagged, step_abnormal_fork_get);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalForkGet_Singleton, 30)
{
    on_one(&tagged, step_abnormal_fork_get);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalForkTimedGet, 30)
{
    on_workers(&tagged, step_abnormal_fork_timed_get);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalForkTimedGet_Singleton, 30)
{
    on_one(&tagged, step_abnormal_fork_timed_get);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalForkQuietlyJoin, 30)
{
    on_workers(&tagged, step_abnormal_fork_quietly_join);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalForkQuietlyJoin_Singleton, 30)
{
    on_one(&tagged, step_abnormal_fork_quietly_join);
}

FJ_TEST(ForkJoinTask8Test__testGetPool, 30)
{
    on_workers(&tagged, step_get_pool);
}

FJ_TEST(ForkJoinTask8Test__testGetPool_Singleton, 30)
{
    on_one(&tagged, step_get_pool);
}

FJ_TEST(ForkJoinTask8Test__testGetPool2, 30)
{
    outside(&tagged, step_get_pool_outside);
}

FJ_TEST(ForkJoinTask8Test__testInForkJoinPool, 30)
{
    on_workers(&tagged, step_in_pool);
}

FJ_TEST(ForkJoinTask8Test__testInForkJoinPool_Singleton, 30)
{
    on_one(&tagged, step_in_pool);
}

FJ_TEST(ForkJoinTask8Test__testInForkJoinPool2, 30)
{
    outside(&tagged, step_in_no_pool);
}

FJ_TEST(ForkJoinTask8Test__testSetRawResult, 30)
{
    on_workers(&tagged, step_set_raw_result);
}

FJ_TEST(ForkJoinTask8Test__testCompleteExceptionally, 30)
{
    on_workers(&tagged, step_complete_exceptionally);
}

FJ_TEST(ForkJoinTask8Test__testCompleteExceptionally_Singleton, 30)
{
    on_one(&tagged, step_complete_exceptionally);
}

FJ_TEST(ForkJoinTask8Test__testInvokeAll1, 30)
{
    on_workers(&tagged, step_invoke_all_1);
}

FJ_TEST(ForkJoinTask8Test__testInvokeAll1_Singleton, 30)
{
    on_one(&tagged, step_invoke_all_1);
}

FJ_TEST(ForkJoinTask8Test__testInvokeAll2, 30)
{
    on_workers(&tagged, step_invoke_all_2);
}

FJ_TEST(ForkJoinTask8Test__testInvokeAll2_Singleton, 30)
{
    on_one(&tagged, step_invoke_all_2);
}

FJ_TEST(ForkJoinTask8Test__testInvokeAll3, 30)
{
    on_workers(&tagged, step_invoke_all_3);
}

FJ_TEST(ForkJoinTask8Test__testInvokeAll3_Singleton, 30)
{
    on_one(&tagged, step_invoke_all_3);
}

FJ_TEST(ForkJoinTask8Test__testInvokeAllCollection, 30)
{
    on_workers(&tagged, step_invoke_all_futures);
}

FJ_TEST(ForkJoinTask8Test__testInvokeAllCollection_Singleton, 30)
{
    on_one(&tagged, step_invoke_all_futures);
}

FJ_TEST(ForkJoinTask8Test__testInvokeAllNullTask, 30)
{
    on_workers(&tagged, step_invoke_all_null);
}

FJ_TEST(ForkJoinTask8Test__testInvokeAllNullTask_Singleton, 30)
{
    on_one(&tagged, step_invoke_all_null);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalInvokeAll1, 30)
{
    on_workers(&tagged, step_abnormal_invoke_all_1);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalInvokeAll1_Singleton, 30)
{
    on_one(&tagged, step_abnormal_invoke_all_1);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalInvokeAll2, 30)
{
    on_workers(&tagged, step_abnormal_invoke_all_2);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalInvokeAll2_Singleton, 30)
{
    on_one(&tagged, step_abnormal_invoke_all_2);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalInvokeAll3, 30)
{
    on_workers(&tagged, step_abnormal_invoke_all_3);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalInvokeAll3_Singleton, 30)
{
    on_one(&tagged, step_abnormal_invoke_all_3);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalInvokeAllCollection, 30)
{
    on_workers(&tagged, step_abnormal_invoke_all_futures);
}

FJ_TEST(ForkJoinTask8Test__testAbnormalInvokeAllCollection_Singleton, 30)
{
    on_one(&tagged, step_abnormal_invoke_all_futures);
}

FJ_TEST(ForkJoinTask8Test__testTryUnfork, 30)
{
    on_alone(conformance_flags(), &tagged, step_try_unfork);
}

FJ_TEST(ForkJoinTask8Test__testGetSurplusQueuedTaskCount, 30)
{
    on_alone(conformance_flags(), &tagged, step_surplus);
}

FJ_TEST(ForkJoinTask8Test__testPeekNextLocalTask, 30)
{
    on_alone(0, &tagged, step_peek_lifo);
}

FJ_TEST(ForkJoinTask8Test__testPollNextLocalTask, 30)
{
    on_alone(0, &tagged, step_poll_local_lifo);
}

FJ_TEST(ForkJoinTask8Test__testPollTask, 30)
{
    on_alone(0, &tagged, step_poll_task_lifo);
}

FJ_TEST(ForkJoinTask8Test__testPeekNextLocalTaskAsync, 30)
{
    on_alone(FJ_POOL_FIFO, &tagged, step_peek_fifo);
}

FJ_TEST(ForkJoinTask8Test__testPollNextLocalTaskAsync, 30)
{
    on_alone(FJ_POOL_FIFO, &tagged, step_poll_local_fifo);
}

FJ_TEST(ForkJoinTask8Test__testPollTaskAsync, 30)
{
    on_alone(FJ_POOL_FIFO, &tagged, step_poll_task_fifo);
}

FJ_TEST(ForkJoinTask8Test__testQuietlyComplete, 30)
{
    on_workers(&tagged, step_quietly_complete);
}

static atomic_int worker_waits, submitted;
static fj_future *submission;

static void *submit_main(void *pool)
{
    while (!atomic_load(&worker_waits)) fjt_sleep_us(20);
    CHECK_EQ(fj_future_submit(pool, submission), FJ_OK);
    atomic_store(&submitted, 1);
    return NULL;
}

/* Runs on the only worker, so that the submission stays queued. */
static void step_poll_submission(const struct kind *k)
{
    fj_taken taken;
    pthread_t t;

    submission = made(k, 8, 0);
    CHECK_EQ(fj_take_submission(&taken), 0);
    CHECK_EQ(pthread_create(&t, NULL, submit_main, stage_pool), 0);
    atomic_store(&worker_waits, 1);
    while (!atomic_load(&submitted)) fjt_sleep_us(20);
    CHECK_EQ(fj_pool_has_queued_submissions(stage_pool), 1);
    CHECK_EQ(fj_take_submission(&taken), 1);
    CHECK(fj_taken_task(&taken) == (fj_task *)submission);
    CHECK_EQ(fj_future_is_done(submission), 0);
    CHECK_EQ(k->begun(submission), 0);
    CHECK_EQ(fj_pool_has_queued_submissions(stage_pool), 0);
    CHECK_EQ(fj_take_submission(&taken), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    fj_taken_run(&taken);
    CHECK_EQ(fj_future_join(submission), FJ_OK);
    end_of_forked(k, submission, FJ_OK, 21);
}

FJ_TEST(ForkJoinTask8Test__testPollSubmission, 30)
{
    on_alone(conformance_flags(), &tagged, step_poll_submission);
}
