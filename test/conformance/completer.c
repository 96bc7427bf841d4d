/* SPDX-License-Identifier: MIT */
/*
 * completer.c - CountedCompleterTest: pending counts, callbacks, and all that other tasks do
 */
#include "tree_checks.h"

/* ---- Counts and callbacks ------------------------------------------------------------------------- */

/* A completer that is never queued. Only the calls of the test change it. */
struct hand {
    fj_completer c;
    int completions, errors, code;
    fj_completer *caller;
};

static int hand_completion(fj_completer *c, fj_completer *caller)
{
    struct hand *h = (struct hand *)c;

    h->completions++;
    h->caller = caller;
    return FJ_OK;
}

static int hand_error(fj_completer *c, int code, fj_completer *caller)
{
    struct hand *h = (struct hand *)c;

    h->errors++;
    h->code = code;
    h->caller = caller;
    return 1;
}

static int hand_run(fj_task *t)
{
    (void)t;
    CHECK(!"a completer runs that was never queued");
    return FJ_OK;
}

static void hand_init(struct hand *h, struct hand *parent, int32_t pending)
{
    memset(h, 0, sizeof *h);
    fj_completer_init(&h->c, parent != NULL ? &parent->c : NULL, pending, hand_run, hand_completion,
                      hand_error);
    state_check_stuck(&h->c.future);
    CHECK_EQ(fj_completer_pending(&h->c), pending);
}

static void hand_check(struct hand *h, int completions, int errors, int32_t pending)
{
    CHECK_EQ(h->completions, completions);
    CHECK_EQ(h->errors, errors);
    CHECK_EQ(fj_completer_pending(&h->c), pending);
}

static void hand_check_open(struct hand *h, int32_t pending)
{
    hand_check(h, 0, 0, pending);
    state_check_open(&h->c.future);
}

static const struct tree_how by_hand = {.kind = TREE_COMPLETER};

static const int32_t counts[] = {0, 1, 42, -1, INT32_MAX, INT32_MIN};

#define COUNTS (int)(sizeof counts / sizeof counts[0])

static void complete_one(int32_t pending, void *value)
{
    struct hand c, parent;

    hand_init(&c, NULL, pending);
    fj_completer_complete(&c.c, value);
    hand_check(&c, 1, 0, pending);
    CHECK(c.caller == &c.c);
    state_check_done(&c.c.future, FJ_OK, value);

    for (int32_t waits_for = 0; waits_for < 2; waits_for++) {
        hand_init(&parent, NULL, waits_for);
        hand_init(&c, &parent, pending);
        fj_completer_complete(&c.c, value);
        hand_check(&c, 1, 0, pending);
        state_check_done(&c.c.future, FJ_OK, value);
        if (waits_for != 0) {
            hand_check_open(&parent, 0);
            continue;
        }
        hand_check(&parent, 1, 0, 0);
        CHECK(parent.caller == &parent.c); /* complete() calls try_complete() of the parent */
        state_check_done(&parent.c.future, FJ_OK, NULL);
    }
}

static void step_complete_whatever_the_count(const struct tree_how *how)
{
    int value;

    (void)how;
    for (int i = 0; i < COUNTS; i++) {
        complete_one(counts[i], NULL);
        complete_one(counts[i], &value);
    }
}

FJ_TEST(CountedCompleterTest__testComplete, 30)
{
    tree_run(step_complete_whatever_the_count, by_hand);
}

static void fail_one(int32_t pending, int given, int code)
{
    struct hand c;

    hand_init(&c, NULL, pending);
    fj_completer_fail(&c.c, given);
    hand_check(&c, 0, 1, pending);
    CHECK_EQ(c.code, code);
    CHECK(c.caller == &c.c);
    state_check_done(&c.c.future, code, NULL);
}

/* A completer that has succeeded cannot fail any more, and its ancestors are not notified. */
static void fail_after_success(void)
{
    struct hand c, parent;

    hand_init(&parent, NULL, 1);
    hand_init(&c, &parent, 0);
    fj_completer_complete(&c.c, NULL);
    hand_check_open(&parent, 0);
    fj_completer_fail(&c.c, TREE_CODE);
    hand_check(&c, 1, 0, 0);
    state_check_done(&c.c.future, FJ_OK, NULL);
    hand_check_open(&parent, 0);
}

static void step_fail(const struct tree_how *how)
{
    (void)how;
    for (int i = 0; i < COUNTS; i++) fail_one(counts[i], TREE_CODE, TREE_CODE);
    fail_after_success();
}

FJ_TEST(CountedCompleterTest__testCompleteExceptionally, 30)
{
    tree_run(step_fail, by_hand);
}

static void step_fail_without_a_code(const struct tree_how *how)
{
    (void)how;
    for (int i = 0; i < COUNTS; i++) fail_one(counts[i], 0, FJ_EFAILED);
}

FJ_TEST(CountedCompleterTest__testCompleteExceptionally_null, 30)
{
    tree_run(step_fail_without_a_code, by_hand);
}

static void step_set_pending(const struct tree_how *how)
{
    struct hand c;

    (void)how;
    hand_init(&c, NULL, 0);
    for (int i = 0; i < COUNTS; i++) {
        fj_completer_set_pending(&c.c, counts[i]);
        hand_check_open(&c, counts[i]);
        hand_init(&c, NULL, counts[i]);
    }
}

FJ_TEST(CountedCompleterTest__testSetPendingCount, 30)
{
    tree_run(step_set_pending, by_hand);
}

static void step_add_pending(const struct tree_how *how)
{
    static const int32_t add[] = {1, 27, -28, -1, -99, 100, 0, INT32_MAX, INT32_MIN, 1};
    struct hand c;
    int32_t sum = 0;

    (void)how;
    hand_init(&c, NULL, 0);
    for (size_t i = 0; i < sizeof add / sizeof add[0]; i++) {
        fj_completer_add_pending(&c.c, add[i]);
        sum += add[i];
        hand_check_open(&c, sum);
    }
}

FJ_TEST(CountedCompleterTest__testAddToPendingCount, 30)
{
    tree_run(step_add_pending, by_hand);
}

static void step_decrement(const struct tree_how *how)
{
    struct hand c;

    (void)how;
    hand_init(&c, NULL, 2);
    for (int32_t n = 2; n >= 0; n--) CHECK_EQ(fj_completer_decrement(&c.c), n);
    CHECK_EQ(fj_completer_decrement(&c.c), 0);
    hand_check_open(&c, 0);
    fj_completer_set_pending(&c.c, -17);
    CHECK_EQ(fj_completer_decrement(&c.c), -17);
    hand_check_open(&c, -18);
    fj_completer_set_pending(&c.c, INT32_MAX);
    CHECK_EQ(fj_completer_decrement(&c.c), INT32_MAX);
    hand_check_open(&c, INT32_MAX - 1);
}

FJ_TEST(CountedCompleterTest__testDecrementPendingCountUnlessZero, 30)
{
    tree_run(step_decrement, by_hand);
}

static void step_cas_pending(const struct tree_how *how)
{
    struct hand c;
    int32_t now = 0;

    (void)how;
    hand_init(&c, NULL, 0);
    for (int i = 0; i < COUNTS; i++) {
        CHECK_EQ(fj_completer_cas_pending(&c.c, now + 7, 5), 0);
        hand_check_open(&c, now);
        CHECK_EQ(fj_completer_cas_pending(&c.c, now, counts[i]), 1);
        now = counts[i];
        hand_check_open(&c, now);
        if (now == INT32_MAX) {
            CHECK_EQ(fj_completer_cas_pending(&c.c, INT32_MAX, 3), 1);
            now = 3;
        }
    }
}

FJ_TEST(CountedCompleterTest__testCompareAndSetPendingCount, 30)
{
    tree_run(step_cas_pending, by_hand);
}

static void step_parent(const struct tree_how *how)
{
    struct hand c[3];

    (void)how;
    for (int i = 0; i < 3; i++) hand_init(&c[i], i == 0 ? NULL : &c[i - 1], 0);
    CHECK(fj_completer_parent(&c[0].c) == NULL);
    CHECK(fj_completer_parent(&c[1].c) == &c[0].c);
    CHECK(fj_completer_parent(&c[2].c) == &c[1].c);
}

FJ_TEST(CountedCompleterTest__testGetCompleter, 30)
{
    tree_run(step_parent, by_hand);
}

static void step_root(const struct tree_how *how)
{
    struct hand c[3];

    (void)how;
    for (int i = 0; i < 3; i++) hand_init(&c[i], i == 0 ? NULL : &c[i - 1], 0);
    for (int i = 0; i < 3; i++) CHECK(fj_completer_root(&c[i].c) == &c[0].c);
}

FJ_TEST(CountedCompleterTest__testGetRoot, 30)
{
    tree_run(step_root, by_hand);
}

/* Counts down to zero, then calls once more. Only the last call completes the completer. */
static void count_down(void (*call)(fj_completer *c), int calls_back)
{
    struct hand parent, c;

    hand_init(&parent, NULL, 3);
    for (int32_t n = 3; n > 0; n--) {
        call(&parent.c);
        hand_check_open(&parent, n - 1);
    }
    call(&parent.c);
    hand_check(&parent, calls_back, 0, 0);
    if (calls_back) CHECK(parent.caller == &parent.c);
    state_check_done(&parent.c.future, FJ_OK, NULL);

    hand_init(&parent, NULL, 1);
    hand_init(&c, &parent, 0);
    call(&c.c);
    hand_check(&c, calls_back, 0, 0);
    hand_check_open(&parent, 0);
    call(&c.c);
    hand_check(&c, 2 * calls_back, 0, 0);
    hand_check(&parent, calls_back, 0, 0);
    if (calls_back) CHECK(parent.caller == &c.c);
    state_check_done(&parent.c.future, FJ_OK, NULL);
}

static void step_try_complete(const struct tree_how *how)
{
    (void)how;
    count_down(fj_completer_try_complete, 1);
}

FJ_TEST(CountedCompleterTest__testTryComplete, 30)
{
    tree_run(step_try_complete, by_hand);
}

static void step_propagate(const struct tree_how *how)
{
    (void)how;
    count_down(fj_completer_propagate, 0);
}

FJ_TEST(CountedCompleterTest__testPropagateCompletion, 30)
{
    tree_run(step_propagate, by_hand);
}

static void step_first(const struct tree_how *how)
{
    struct hand c;

    (void)how;
    hand_init(&c, NULL, 2);
    CHECK(fj_completer_first(&c.c) == NULL);
    hand_check_open(&c, 1);
    CHECK(fj_completer_first(&c.c) == NULL);
    hand_check_open(&c, 0);
    for (int i = 0; i < 3; i++) {
        CHECK(fj_completer_first(&c.c) == &c.c);
        hand_check_open(&c, 0);
    }
}

FJ_TEST(CountedCompleterTest__testFirstComplete, 30)
{
    tree_run(step_first, by_hand);
}

static void step_next(const struct tree_how *how)
{
    struct hand root, c;

    (void)how;
    hand_init(&root, NULL, 2);
    hand_init(&c, &root, 5);
    for (int32_t n = 2; n > 0; n--) {
        CHECK(fj_completer_next(&c.c) == NULL);
        hand_check_open(&root, n - 1);
    }
    CHECK(fj_completer_next(&c.c) == &root.c);
    hand_check_open(&root, 0);
    hand_check_open(&c, 5); /* its own count is not used */
    CHECK(fj_completer_next(&root.c) == NULL);
    hand_check(&root, 0, 0, 0);
    state_check_done(&root.c.future, FJ_OK, NULL);
    hand_check_open(&c, 5);
}

FJ_TEST(CountedCompleterTest__testNextComplete, 30)
{
    tree_run(step_next, by_hand);
}

static void step_complete_root(const struct tree_how *how)
{
    (void)how;
    for (int from = 0; from < 3; from++) {
        struct hand c[3];
        for (int i = 0; i < 3; i++) hand_init(&c[i], i == 0 ? NULL : &c[i - 1], 4);
        fj_completer_complete_root(&c[from].c);
        hand_check(&c[0], 0, 0, 4);
        state_check_done(&c[0].c.future, FJ_OK, NULL);
        for (int i = 1; i < 3; i++) hand_check_open(&c[i], 4);
    }
}

FJ_TEST(CountedCompleterTest__testQuietlyCompleteRoot, 30)
{
    tree_run(step_complete_root, by_hand);
}

/* A call, and then a body that fails. The failure reaches every ancestor, and each error callback
 * is called once. */
static void step_fail_upwards(const struct tree_how *how)
{
    struct hand c[3];

    for (int i = 0; i < 3; i++) hand_init(&c[i], i == 0 ? NULL : &c[i - 1], 8);
    fj_completer_fail(&c[2].c, TREE_CODE);
    for (int i = 0; i < 3; i++) {
        hand_check(&c[i], 0, 1, 8);
        CHECK_EQ(c[i].code, TREE_CODE);
        CHECK(c[i].caller == &c[i == 2 ? 2 : i + 1].c);
        state_check_done(&c[i].c.future, TREE_CODE, NULL);
    }
    struct tree_node *n = tree_new(how->kind, TREE_N, TREE_CODE);
    CHECK_EQ(tree_fork(n), FJ_OK);
    CHECK_EQ(tree_join(n), TREE_CODE);
    CHECK_EQ(n->error, TREE_CODE);
    CHECK(n->caller == &n->child[0]->head.completer);
    tree_check_ran(n);
    tree_drop(n);
}

FJ_TEST(CountedCompleterTest__testCompleteExceptionally2, 30)
{
    tree_run(step_fail_upwards, by_hand);
}

FJ_TEST(CountedCompleterTest__testCompleteExceptionallySingleton, 30)
{
    tree_run_alone(step_fail_upwards, by_hand, conformance_flags());
}

/* ---- Running, forking, waiting --------------------------------------------------------------------- */

FJ_TEST(CountedCompleterTest__testInvoke, 30)
{
    tree_run(step_invoke, (struct tree_how){.kind = TREE_COMPLETER});
}

FJ_TEST(CountedCompleterTest__testQuietlyInvoke, 30)
{
    tree_run(step_quietly_invoke, (struct tree_how){.kind = TREE_COMPLETER});
}

FJ_TEST(CountedCompleterTest__testForkJoin, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_join});
}

FJ_TEST(CountedCompleterTest__testForkGet, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_get});
}

FJ_TEST(CountedCompleterTest__testForkTimedGet, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_timed});
}

FJ_TEST(CountedCompleterTest__testForkQuietlyJoin, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_quiet});
}

FJ_TEST(CountedCompleterTest__testForkHelpQuiesce, 30)
{
    tree_run(step_fork_help_quiesce, (struct tree_how){.kind = TREE_COMPLETER});
}

FJ_TEST(CountedCompleterTest__testAbnormalInvoke, 30)
{
    tree_run(step_invoke, (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE});
}

FJ_TEST(CountedCompleterTest__testAbnormalQuietlyInvoke, 30)
{
    tree_run(step_quietly_invoke, (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE});
}

FJ_TEST(CountedCompleterTest__testAbnormalForkJoin, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .wait = tree_join});
}

FJ_TEST(CountedCompleterTest__testAbnormalForkGet, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .wait = tree_wait_get});
}

FJ_TEST(CountedCompleterTest__testAbnormalForkTimedGet, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .wait = tree_wait_timed});
}

FJ_TEST(CountedCompleterTest__testAbnormalForkQuietlyJoin, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .wait = tree_wait_quiet});
}

FJ_TEST(CountedCompleterTest__testCancelledInvoke, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_COMPLETER});
}

FJ_TEST(CountedCompleterTest__testCancelledForkJoin, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_join});
}

FJ_TEST(CountedCompleterTest__testCancelledForkGet, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_get});
}

FJ_TEST(CountedCompleterTest__testCancelledForkTimedGet, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_timed});
}

FJ_TEST(CountedCompleterTest__testCancelledForkQuietlyJoin, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_quiet});
}

FJ_TEST(CountedCompleterTest__testGetPool, 30)
{
    tree_run(step_pool_of_a_body, (struct tree_how){.kind = TREE_COMPLETER});
}

FJ_TEST(CountedCompleterTest__testGetPool2, 30)
{
    tree_run_outside(TREE_COMPLETER);
}

FJ_TEST(CountedCompleterTest__testInForkJoinPool, 30)
{
    tree_run(step_worker_of_a_body, (struct tree_how){.kind = TREE_COMPLETER});
}

FJ_TEST(CountedCompleterTest__testInForkJoinPool2, 30)
{
    tree_run_outside(TREE_COMPLETER);
}

FJ_TEST(CountedCompleterTest__testSetRawResult, 30)
{
    tree_run(step_set_result, (struct tree_how){.kind = TREE_COMPLETER});
}

FJ_TEST(CountedCompleterTest__testInvokeAll2, 30)
{
    tree_run(step_invoke_all,
             (struct tree_how){.kind = TREE_COMPLETER, .many = 2, .form = TREE_BOTH});
}

FJ_TEST(CountedCompleterTest__testInvokeAll1, 30)
{
    tree_run(step_invoke_all,
             (struct tree_how){.kind = TREE_COMPLETER, .many = 1, .form = TREE_ARRAY});
}

FJ_TEST(CountedCompleterTest__testInvokeAll3, 30)
{
    tree_run(step_invoke_all,
             (struct tree_how){.kind = TREE_COMPLETER, .many = 3, .form = TREE_ARRAY});
}

FJ_TEST(CountedCompleterTest__testInvokeAllCollection, 30)
{
    tree_run(step_invoke_all,
             (struct tree_how){.kind = TREE_COMPLETER, .many = TREE_MOST, .form = TREE_COLLECTION});
}

FJ_TEST(CountedCompleterTest__testInvokeAllNPE, 30)
{
    tree_run(step_invoke_all_null, (struct tree_how){.kind = TREE_COMPLETER});
}

FJ_TEST(CountedCompleterTest__testAbnormalInvokeAll2, 30)
{
    tree_run(
        step_invoke_all,
        (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .many = 2, .form = TREE_BOTH});
}

FJ_TEST(CountedCompleterTest__testAbnormalInvokeAll1, 30)
{
    tree_run(step_invoke_all,
             (struct tree_how){
                 .kind = TREE_COMPLETER, .code = TREE_CODE, .many = 1, .form = TREE_ARRAY});
}

FJ_TEST(CountedCompleterTest__testAbnormalInvokeAll3, 30)
{
    tree_run(step_invoke_all,
             (struct tree_how){
                 .kind = TREE_COMPLETER, .code = TREE_CODE, .many = 3, .form = TREE_ARRAY});
}

FJ_TEST(CountedCompleterTest__testAbnormalInvokeAllCollection, 30)
{
    tree_run(step_invoke_all, (struct tree_how){.kind = TREE_COMPLETER,
                                                .code = TREE_CODE,
                                                .many = TREE_MOST,
                                                .form = TREE_COLLECTION});
}

FJ_TEST(CountedCompleterTest__testTryUnfork, 30)
{
    tree_run_alone(step_unfork, (struct tree_how){.kind = TREE_COMPLETER}, conformance_flags());
}

FJ_TEST(CountedCompleterTest__testGetSurplusQueuedTaskCount, 30)
{
    tree_run_alone(step_surplus, (struct tree_how){.kind = TREE_COMPLETER}, conformance_flags());
}

FJ_TEST(CountedCompleterTest__testPeekNextLocalTask, 30)
{
    tree_run_alone(step_peek, (struct tree_how){.kind = TREE_COMPLETER}, 0);
}

FJ_TEST(CountedCompleterTest__testPollNextLocalTask, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_COMPLETER, .poll = fj_take_local}, 0);
}

FJ_TEST(CountedCompleterTest__testPollTask, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_COMPLETER, .poll = fj_take_task}, 0);
}

FJ_TEST(CountedCompleterTest__testPeekNextLocalTaskAsync, 30)
{
    tree_run_alone(step_peek, (struct tree_how){.kind = TREE_COMPLETER}, FJ_POOL_FIFO);
}

FJ_TEST(CountedCompleterTest__testPollNextLocalTaskAsync, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_COMPLETER, .poll = fj_take_local},
                   FJ_POOL_FIFO);
}

FJ_TEST(CountedCompleterTest__testPollTaskAsync, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_COMPLETER, .poll = fj_take_task},
                   FJ_POOL_FIFO);
}

FJ_TEST(CountedCompleterTest__testInvokeSingleton, 30)
{
    tree_run_alone(step_invoke, (struct tree_how){.kind = TREE_COMPLETER}, conformance_flags());
}

FJ_TEST(CountedCompleterTest__testQuietlyInvokeSingleton, 30)
{
    tree_run_alone(step_quietly_invoke, (struct tree_how){.kind = TREE_COMPLETER},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testForkJoinSingleton, 30)
{
    tree_run_alone(step_fork, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_join},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testForkGetSingleton, 30)
{
    tree_run_alone(step_fork, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_get},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testForkTimedGetSingleton, 30)
{
    tree_run_alone(step_fork, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_timed},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testForkQuietlyJoinSingleton, 30)
{
    tree_run_alone(step_fork, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_quiet},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testForkHelpQuiesceSingleton, 30)
{
    tree_run_alone(step_fork_help_quiesce, (struct tree_how){.kind = TREE_COMPLETER},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testAbnormalInvokeSingleton, 30)
{
    tree_run_alone(step_invoke, (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testAbnormalQuietlyInvokeSingleton, 30)
{
    tree_run_alone(step_quietly_invoke,
                   (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testAbnormalForkJoinSingleton, 30)
{
    tree_run_alone(step_fork,
                   (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .wait = tree_join},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testAbnormalForkGetSingleton, 30)
{
    tree_run_alone(
        step_fork,
        (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .wait = tree_wait_get},
        conformance_flags());
}

FJ_TEST(CountedCompleterTest__testAbnormalForkTimedGetSingleton, 30)
{
    tree_run_alone(
        step_fork,
        (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .wait = tree_wait_timed},
        conformance_flags());
}

FJ_TEST(CountedCompleterTest__testAbnormalForkQuietlyJoinSingleton, 30)
{
    tree_run_alone(
        step_fork,
        (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .wait = tree_wait_quiet},
        conformance_flags());
}

FJ_TEST(CountedCompleterTest__testCancelledInvokeSingleton, 30)
{
    tree_run_alone(step_cancelled, (struct tree_how){.kind = TREE_COMPLETER}, conformance_flags());
}

FJ_TEST(CountedCompleterTest__testCancelledForkJoinSingleton, 30)
{
    tree_run_alone(step_cancelled, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_join},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testCancelledForkGetSingleton, 30)
{
    tree_run_alone(step_cancelled, (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_get},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testCancelledForkTimedGetSingleton, 30)
{
    tree_run_alone(step_cancelled,
                   (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_timed},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testCancelledForkQuietlyJoinSingleton, 30)
{
    tree_run_alone(step_cancelled,
                   (struct tree_how){.kind = TREE_COMPLETER, .wait = tree_wait_quiet},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testInvokeAll2Singleton, 30)
{
    tree_run_alone(step_invoke_all,
                   (struct tree_how){.kind = TREE_COMPLETER, .many = 2, .form = TREE_BOTH},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testInvokeAll1Singleton, 30)
{
    tree_run_alone(step_invoke_all,
                   (struct tree_how){.kind = TREE_COMPLETER, .many = 1, .form = TREE_ARRAY},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testInvokeAll3Singleton, 30)
{
    tree_run_alone(step_invoke_all,
                   (struct tree_how){.kind = TREE_COMPLETER, .many = 3, .form = TREE_ARRAY},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testInvokeAllCollectionSingleton, 30)
{
    tree_run_alone(
        step_invoke_all,
        (struct tree_how){.kind = TREE_COMPLETER, .many = TREE_MOST, .form = TREE_COLLECTION},
        conformance_flags());
}

FJ_TEST(CountedCompleterTest__testInvokeAllNPESingleton, 30)
{
    tree_run_alone(step_invoke_all_null, (struct tree_how){.kind = TREE_COMPLETER},
                   conformance_flags());
}

FJ_TEST(CountedCompleterTest__testAbnormalInvokeAll2Singleton, 30)
{
    tree_run_alone(
        step_invoke_all,
        (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .many = 2, .form = TREE_BOTH},
        conformance_flags());
}

FJ_TEST(CountedCompleterTest__testAbnormalInvokeAll1Singleton, 30)
{
    tree_run_alone(
        step_invoke_all,
        (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .many = 1, .form = TREE_ARRAY},
        conformance_flags());
}

FJ_TEST(CountedCompleterTest__testAbnormalInvokeAll3Singleton, 30)
{
    tree_run_alone(
        step_invoke_all,
        (struct tree_how){.kind = TREE_COMPLETER, .code = TREE_CODE, .many = 3, .form = TREE_ARRAY},
        conformance_flags());
}

FJ_TEST(CountedCompleterTest__testAbnormalInvokeAllCollectionSingleton, 30)
{
    tree_run_alone(
        step_invoke_all,
        (struct tree_how){
            .kind = TREE_COMPLETER, .code = TREE_CODE, .many = TREE_MOST, .form = TREE_COLLECTION},
        conformance_flags());
}

/* ---- Ways to split ---------------------------------------------------------------------------------- */

/* Visits every element of an array once. The nodes are freed together when the root is done. */
struct visits {
    struct visit *node;
    atomic_int *seen;
    size_t most;
    atomic_size_t nodes, completions;
};

/* A node that visits [lo, lo + n). */
struct visit {
    fj_completer c;
    struct visits *all;
    size_t lo, n;
};

static int visit_completion(fj_completer *c, fj_completer *caller)
{
    CHECK(caller == c || fj_completer_parent(caller) == c);
    atomic_fetch_add(&((struct visit *)c)->all->completions, 1);
    return FJ_OK;
}

static int32_t visit_log2(size_t n)
{
    int32_t k = 0;

    while ((n /= 2) != 0) k++;
    return k;
}

static int visit_set_log2(fj_task *t);

static struct visit *visit_new(struct visits *all, fj_completer *parent, size_t lo, size_t n,
                               fj_task_fn *fn)
{
    size_t i = atomic_fetch_add(&all->nodes, 1);

    CHECK(i < all->most);
    struct visit *v = &all->node[i];
    *v = (struct visit){.all = all, .lo = lo, .n = n};
    fj_completer_init(&v->c, parent, fn == visit_set_log2 ? visit_log2(n) : 0, fn, visit_completion,
                      NULL);
    return v;
}

static void visit_fork(struct visit *v, size_t lo, size_t n)
{
    CHECK_EQ(fj_completer_fork(&visit_new(v->all, &v->c, lo, n, v->c.future.fn)->c), FJ_OK);
}

static void visit_leaf(const struct visit *v)
{
    if (v->n != 0) atomic_fetch_add(&v->all->seen[v->lo], 1);
}

/* Forks both halves, with a pending count of 2. */
static int visit_set_2(fj_task *t)
{
    struct visit *v = (struct visit *)t;
    size_t half = v->n / 2;

    if (v->n >= 2) {
        fj_completer_set_pending(&v->c, 2);
        visit_fork(v, v->lo, half);
        visit_fork(v, v->lo + half, v->n - half);
    } else {
        visit_leaf(v);
    }
    fj_completer_try_complete(&v->c);
    return FJ_OK;
}

/* Forks one half and calls the other, with a pending count of 1. The half that ends first
 * decrements the count. */
static int visit_set_1(fj_task *t)
{
    struct visit *v = (struct visit *)t;
    size_t half = v->n / 2;

    if (v->n >= 2) {
        struct visit *left = visit_new(v->all, &v->c, v->lo, half, visit_set_1);
        fj_completer_set_pending(&v->c, 1);
        visit_fork(v, v->lo + half, v->n - half);
        return visit_set_1(&left->c.future.task);
    }
    visit_leaf(v);
    fj_completer_try_complete(&v->c);
    return FJ_OK;
}

/* Forks upper halves until one element is left, and increments the pending count for each. */
static int visit_add_1(fj_task *t)
{
    struct visit *v = (struct visit *)t;

    for (; v->n >= 2; v->n /= 2) {
        fj_completer_add_pending(&v->c, 1);
        visit_fork(v, v->lo + v->n / 2, v->n - v->n / 2);
    }
    visit_leaf(v);
    fj_completer_try_complete(&v->c);
    return FJ_OK;
}

/* The same with a pending count that is set in advance. It completes without callbacks. */
static int visit_set_log2(fj_task *t)
{
    struct visit *v = (struct visit *)t;

    for (; v->n >= 2; v->n /= 2) visit_fork(v, v->lo + v->n / 2, v->n - v->n / 2);
    visit_leaf(v);
    fj_completer_propagate(&v->c);
    return FJ_OK;
}

/* Runs the visit in the pool, or in the calling thread if pool is NULL. */
static void visit_all(fj_pool *pool, fj_task_fn *fn, size_t n)
{
    struct visits all = {.most = 2 * n + 1};

    all.node = calloc(all.most, sizeof *all.node);
    all.seen = calloc(n + 1, sizeof *all.seen);
    CHECK(all.node != NULL && all.seen != NULL);
    fj_completer *root = &visit_new(&all, NULL, 0, n, fn)->c;
    CHECK_EQ(pool != NULL ? fj_completer_invoke(pool, root) : fj_completer_run(root), FJ_OK);
    state_check_done(&root->future, FJ_OK, NULL);
    CHECK_EQ(fj_completer_pending(root), 0);
    for (size_t i = 0; i < n; i++) CHECK_EQ(atomic_load(&all.seen[i]), 1);
    CHECK_EQ(atomic_load(&all.completions), fn == visit_set_log2 ? 0 : atomic_load(&all.nodes));
    free(all.seen);
    free(all.node);
}

static void visit_sizes(fj_pool *pool)
{
    static fj_task_fn *const ways[] = {visit_set_2, visit_set_1, visit_add_1, visit_set_log2};

    for (int way = 0; way < 4; way++) {
        for (size_t n = 0; n < 8; n++) visit_all(pool, ways[way], n);
        for (size_t n = 8; n < 6000; n = n * 5 / 3) visit_all(pool, ways[way], n);
    }
}

static void step_visit(const struct tree_how *how)
{
    (void)how;
    visit_sizes(NULL);
}

FJ_TEST(CountedCompleter8Test__testRecursiveDecomposition, 60)
{
    fj_pool *pool = fjt_pool(conformance_workers(), conformance_flags());

    visit_sizes(pool);
    fjt_destroy(pool);
    tree_run(step_visit, by_hand);
}
