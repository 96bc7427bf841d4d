/* SPDX-License-Identifier: MIT */
/*
 * completer_ends.c - completers that fail, help or are asked for the impossible; map and reduce
 */
#include <string.h>

#include "config.h"
#include "inside.h"
#include "plat/plat.h"

/* ---- Failing --------------------------------------------------------------------------------- */

static int fails(fj_completer *c, fj_completer *caller)
{
    (void)c, (void)caller;
    return 31;
}

static int tries(fj_task *t)
{
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

static int completes(fj_task *t)
{
    fj_completer_complete((fj_completer *)t, NULL);
    return FJ_OK;
}

static void fail_by(fj_fn *fn)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_completer root, child;

    fj_completer_init(&root, NULL, 0, fn, fails, NULL);
    CHECK_EQ(fj_completer_invoke_in(p, &root), 31);
    CHECK(fj_future_is_abnormal(&root.future));
    fj_future_release(&root.future);

    /* That of a child is that of its root. */
    fj_completer_init(&root, NULL, 1, NULL, NULL, NULL);
    fj_completer_init(&child, &root, 0, fn, fails, NULL);
    CHECK_EQ(fj_completer_submit(p, &child), FJ_OK);
    CHECK_EQ(fj_completer_join(&root), 31);
    fjt_destroy(p);
}

FJ_TEST(code_of_on_completion_fails_the_completer_and_its_parents, 30)
{
    fail_by(tries);
}

FJ_TEST(code_of_on_completion_fails_one_that_is_completed_by_hand, 30)
{
    fail_by(completes);
}

FJ_TEST(failure_ends_at_a_parent_that_is_done, 30)
{
    fj_completer root, middle, leaf;

    fj_completer_init(&root, NULL, 1, NULL, NULL, NULL);
    fj_completer_init(&middle, &root, 1, NULL, NULL, NULL);
    fj_completer_init(&leaf, &middle, 0, NULL, NULL, NULL);
    CHECK_EQ(fj_future_complete(&middle.future, NULL), 1);
    fj_completer_fail(&leaf, 9);
    CHECK_EQ(fj_future_error(&leaf.future), 9);
    CHECK(fj_future_is_normal(&middle.future));
    CHECK(!fj_future_is_done(&root.future));
}

/* ---- Helping --------------------------------------------------------------------------------- */

struct child {
    fj_completer c;
    int *runs;
};

static int child_run(fj_task *t)
{
    struct child *c = (struct child *)t;

    ++*c->runs;
    fj_completer_try_complete(&c->c);
    return FJ_OK;
}

#define CHILDREN 5

static void help_with_some(void *arg)
{
    fj_completer root, other;
    struct child child[CHILDREN], stranger;
    int runs = 0, strange = 0;

    (void)arg;
    fj_completer_init(&other, NULL, 0, NULL, NULL, NULL);
    fj_completer_init(&root, NULL, 0, NULL, NULL, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        fj_completer_init(&child[i].c, &root, 0, child_run, NULL, NULL);
        child[i].runs = &runs;
    }
    fj_completer_init(&stranger.c, &other, 0, child_run, NULL, NULL);
    stranger.runs = &strange;
    CHECK_EQ(fj_completer_fork_all(&root, child, CHILDREN, sizeof child[0]), FJ_OK);
    CHECK_EQ(fj_completer_fork(&stranger.c), FJ_OK);

    CHECK_EQ(fj_completer_help(&root, 0), 0);
    CHECK_EQ(runs, 0);
    CHECK_EQ(fj_completer_help(&root, 2), 2);
    CHECK_EQ(runs, 2);
    CHECK_EQ(fj_completer_help(&root, 100), CHILDREN - 2);
    CHECK_EQ(strange, 0);
    CHECK_EQ(fj_completer_help(&root, 100), 0);
    CHECK_EQ(fj_completer_join(&root), FJ_OK);
    CHECK_EQ(fj_completer_join(&other), FJ_OK);
    CHECK_EQ(strange, 1);
    for (int i = 0; i < CHILDREN; i++) fj_future_release(&child[i].c.future);
    fj_future_release(&stranger.c.future);
}

FJ_TEST(help_runs_as_many_as_asked_of_its_root_and_no_stranger, 30)
{
    fj_pool *p = fjt_pool(1, 0);

    inside(p, help_with_some, NULL);
    fjt_destroy(p);
}

FJ_TEST(outside_a_pool_nobody_helps, 30)
{
    fj_completer root;

    fj_completer_init(&root, NULL, 1, NULL, NULL, NULL);
    CHECK_EQ(fj_completer_help(&root, 10), 0);
}

/* ---- Map and reduce -------------------------------------------------------------------------- */

#define BIG 200 /* more bytes than are kept on the stack */

struct sums {
    long of[BIG]; /* of[i]: of the numbers n with n % BIG == i */
};

static int map_sums(size_t begin, size_t end, void *out, void *arg)
{
    struct sums *s = out;

    (void)arg;
    memset(s, 0, sizeof *s);
    for (size_t n = begin; n < end; n++) s->of[n % BIG] += (long)n;
    return FJ_OK;
}

static int add_sums(void *into, const void *right, void *arg)
{
    struct sums *a = into;
    const struct sums *b = right;

    (void)arg;
    for (int i = 0; i < BIG; i++) a->of[i] += b->of[i];
    return FJ_OK;
}

static const fj_map_reduce sums_how = {
    .grain = 16, .bytes = sizeof(struct sums), .map = map_sums, .combine = add_sums};

FJ_TEST(results_larger_than_the_stack_has_room_for_are_combined, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    struct sums got, want;

    CHECK_EQ(fj_map_reduce_run(p, 0, 5000, &sums_how, &got), FJ_OK);
    (void)map_sums(0, 5000, &want, NULL);
    CHECK_EQ(memcmp(&got, &want, sizeof got), 0);
    fjt_destroy(p);
}

FJ_TEST(no_memory_for_a_result_is_told, 30)
{
    if (!FJI_FAULTS) fjt_skip("built without faults");
    fj_pool *p = fjt_pool(1, 0);
    struct sums got;

    CHECK_EQ(fj_map_reduce_run(p, 0, 100, &sums_how, &got), FJ_OK);
    fji_fault_set(FJI_FAULT_ALLOC, 1, 1000000);
    CHECK_EQ(fj_map_reduce_run(p, 0, 100, &sums_how, &got), FJ_ENOMEM);
    fji_fault_set(FJI_FAULT_ALLOC, 1, 0);
    CHECK_EQ(fj_map_reduce_run(p, 0, 100, &sums_how, &got), FJ_OK);
    fjt_destroy(p);
}

/* Fails for pieces that hold one of two numbers, each with its own code. */
static int map_fails(size_t begin, size_t end, void *out, void *arg)
{
    const size_t *bad = arg;

    *(int *)out = 0;
    for (int i = 0; i < 2; i++)
        if (begin <= bad[i] && bad[i] < end) return 50 + i;
    return FJ_OK;
}

static int combine_ints(void *into, const void *right, void *arg)
{
    (void)arg;
    *(int *)into += *(const int *)right;
    return FJ_OK;
}

FJ_TEST(first_code_in_the_order_of_the_range_is_the_result, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_map_reduce how = {
        .grain = 1, .bytes = sizeof(int), .map = map_fails, .combine = combine_ints};
    size_t both[] = {10, 90}, turned[] = {90, 10}, right[] = {90, 1000};
    int got;

    how.arg = both;
    CHECK_EQ(fj_map_reduce_run(p, 0, 100, &how, &got), 50);
    how.arg = turned;
    CHECK_EQ(fj_map_reduce_run(p, 0, 100, &how, &got), 51);
    how.arg = right;
    CHECK_EQ(fj_map_reduce_run(p, 0, 100, &how, &got), 50);
    fjt_destroy(p);
}

static int map_cancels(size_t begin, size_t end, void *out, void *arg)
{
    (void)begin, (void)end;
    *(int *)out = 0;
    fj_token_cancel(arg);
    return FJ_OK;
}

struct cancelled {
    fj_task task;
    fj_map_reduce how;
};

static int cancelled_run(fj_task *t)
{
    int got;

    return fj_map_reduce_run(fj_current_pool(), 0, 100, &((struct cancelled *)t)->how, &got);
}

FJ_TEST(cancelled_token_ends_a_map_and_reduce, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_token token;
    struct cancelled c = {.how = {.grain = 1,
                                  .bytes = sizeof(int),
                                  .map = map_cancels,
                                  .combine = combine_ints,
                                  .arg = &token}};

    fj_token_init(&token, NULL);
    fj_task_init(&c.task, cancelled_run);
    CHECK_EQ(fj_invoke_with(p, &c.task, &token), FJ_ECANCELED);
    fjt_destroy(p);
}

FJ_TEST(range_that_is_none_and_missing_parts_are_refused, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_map_reduce how = sums_how;
    struct sums got;

    CHECK_EQ(fj_map_reduce_run(p, 5, 5, &how, &got), FJ_EINVAL);
    CHECK_EQ(fj_map_reduce_run(p, 0, 5, NULL, &got), FJ_EINVAL);
    CHECK_EQ(fj_map_reduce_run(p, 0, 5, &how, NULL), FJ_EINVAL);
    how.bytes = 0;
    CHECK_EQ(fj_map_reduce_run(p, 0, 5, &how, &got), FJ_EINVAL);
    how = sums_how;
    how.map = NULL;
    CHECK_EQ(fj_map_reduce_run(p, 0, 5, &how, &got), FJ_EINVAL);
    how = sums_how;
    how.combine = NULL;
    CHECK_EQ(fj_map_reduce_run(p, 0, 5, &how, &got), FJ_EINVAL);
    fjt_destroy(p);
}

/* ---- The impossible -------------------------------------------------------------------------- */

FJ_TEST(completers_that_are_none_are_refused, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_completer root;
    struct child child[2];

    fj_completer_init(&root, NULL, 0, NULL, NULL, NULL);
    CHECK_EQ(fj_completer_fork(NULL), FJ_EINVAL);
    CHECK_EQ(fj_completer_submit(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_completer_submit(p, &root), FJ_EINVAL); /* without a body */
    CHECK_EQ(fj_completer_invoke(NULL), FJ_EINVAL);
    CHECK_EQ(fj_completer_invoke_in(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_completer_join(NULL), FJ_EINVAL);
    CHECK_EQ(fj_completer_fork_all(NULL, child, 2, sizeof child[0]), FJ_EINVAL);
    CHECK_EQ(fj_completer_fork_all(&root, NULL, 2, sizeof child[0]), FJ_EINVAL);
    CHECK_EQ(fj_completer_fork_all(&root, child, 0, sizeof child[0]), FJ_EINVAL);
    CHECK_EQ(fj_completer_fork_all(&root, child, (size_t)1 << 40, sizeof child[0]), FJ_EINVAL);
    CHECK_EQ(fj_completer_fork_all(&root, child, 2, 8), FJ_EINVAL);
    fjt_destroy(p);
}
