/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - typed tasks without handles: NAME_spawn() and NAME_sync()
 *
 * Every task is invoked in pools of several kinds, in the common pool, and in a thread that works
 * for no pool.
 */
#include <string.h>

#include "inside.h"

/* ---- Trees ---------------------------------------------------------------------------------- */

FJ_TASK(long, leaves, int, depth, int, arity)
{
    long sum = 0;

    if (depth == 0) return 1;
    for (int i = 1; i < arity; i++) leaves_spawn(FJ, depth - 1, arity);
    sum += leaves_call(FJ, depth - 1, arity);
    for (int i = 1; i < arity; i++) sum += leaves_sync(FJ);
    return sum;
}

static void check_leaves(fj_pool *pool)
{
    long r = 0;

    CHECK_EQ(leaves_invoke(pool, &r, 12, 2), FJ_OK);
    CHECK_EQ(r, 4096);
    CHECK_EQ(leaves_invoke(pool, &r, 3, 20), FJ_OK);
    CHECK_EQ(r, 8000);
}

FJ_TEST(tree_of_spawned_calls_counts_its_leaves, 30)
{
    on_pools_and_common(check_leaves);
}

FJ_VOID_TASK(mark, char *, at)
{
    (*at)++;
}

FJ_VOID_TASK(mark_all, char *, at, int, n)
{
    for (int i = 0; i < n; i++) mark_spawn(FJ, at + i);
    for (int i = 0; i < n; i++) mark_sync(FJ);
}

static void check_marks(fj_pool *pool)
{
    static char marks[30000]; /* more than the first cells of a queue */

    memset(marks, 0, sizeof marks);
    CHECK_EQ(mark_all_invoke(pool, marks, (int)sizeof marks), FJ_OK);
    for (size_t i = 0; i < sizeof marks; i++) CHECK_EQ(marks[i], 1);
}

FJ_TEST(many_spawned_calls_run_once_each, 30)
{
    on_pools_and_common(check_marks);
}

/* ---- Together with forks of other kinds ------------------------------------------------------ */

FJ_TASK(long, triple, long, n)
{
    for (volatile long i = 0; i < n % 20; i++) {}
    return 3 * n;
}

FJ_TASK(long, negate, long, n)
{
    return -n;
}

struct plain {
    fj_task task;
    long n, result;
};

static int plain_run(fj_task *t)
{
    struct plain *p = (struct plain *)t;

    p->result = p->n + 1;
    return FJ_OK;
}

/*
 * Forks calls and tasks of random kinds until `left` is 0, then joins all in the reverse order and
 * returns the number of right results. A plain task between two spawns moves the second one away
 * from its position. The recursion is the stack of what has to be joined.
 */
FJ_TASK(int, mixture, int, left, uint64_t, random)
{
    int right = 0;

    if (left == 0) return 0;
    long n = (long)(fjt_random(&random) % 1000);
    struct plain plain = {.n = n};
    triple_task handle = {0};
    int kind = (int)(fjt_random(&random) % 5);

    fj_task_init(&plain.task, plain_run);
    if (kind == 0) triple_spawn(FJ, n);
    if (kind == 1) negate_spawn(FJ, n);
    if (kind == 2) triple_fork(FJ, &handle, n);
    if (kind == 3) fj_fork(&plain.task);
    if (kind == 4) { /* several, on both sides of a plain task */
        triple_spawn(FJ, n);
        triple_spawn(FJ, n + 1);
        fj_fork(&plain.task);
        triple_spawn(FJ, n + 2);
        negate_spawn(FJ, n + 3);
    }
    right += mixture_call(FJ, left - 1, random + 1);
    if (kind == 0) right += triple_sync(FJ) == 3 * n;
    if (kind == 1) right += negate_sync(FJ) == -n;
    if (kind == 2) right += triple_join(FJ, &handle) == 3 * n;
    if (kind == 3) right += fj_join(&plain.task) == FJ_OK && plain.result == n + 1;
    if (kind == 4) {
        bool all = negate_sync(FJ) == -(n + 3);
        all = triple_sync(FJ) == 3 * (n + 2) && all;
        if (n % 2 == 0) all = fj_join(&plain.task) == FJ_OK && all;
        all = triple_sync(FJ) == 3 * (n + 1) && all;
        all = triple_sync(FJ) == 3 * n && all;
        if (n % 2 != 0) all = fj_join(&plain.task) == FJ_OK && all;
        right += all && plain.result == n + 1;
    }
    return right;
}

static void check_mixtures(fj_pool *pool)
{
    for (int i = 0; i < (int)fjt_rounds(300); i++) {
        int r = -1;
        CHECK_EQ(mixture_invoke(pool, &r, i % 60, fjt_seed() + (uint64_t)i), FJ_OK);
        CHECK_EQ(r, i % 60);
    }
}

FJ_TEST(spawns_and_forks_of_all_kinds_give_their_results, 60)
{
    on_pools_and_common(check_mixtures);
}

/* Joins out of order leave tombstones; the spawns come after them. */
FJ_TASK(long, after_tombstones, int, rounds)
{
    long sum = 0;

    for (int i = 0; i < rounds; i++) {
        triple_task a, b, c;
        triple_fork(FJ, &a, 1);
        triple_fork(FJ, &b, 2);
        triple_fork(FJ, &c, 3);
        sum += triple_join(FJ, &a);
        triple_spawn(FJ, 4);
        triple_spawn(FJ, 5);
        sum += triple_sync(FJ);
        sum += triple_sync(FJ);
        sum += triple_join(FJ, &b);
        sum += triple_join(FJ, &c);
    }
    return sum;
}

static void check_after_tombstones(fj_pool *pool)
{
    long r = 0, rounds = fjt_rounds(500);

    CHECK_EQ(after_tombstones_invoke(pool, &r, (int)rounds), FJ_OK);
    CHECK_EQ(r, 45 * rounds);
}

FJ_TEST(spawns_after_joins_out_of_order_give_their_results, 30)
{
    on_pools_and_common(check_after_tombstones);
}

/* ---- Without a pool ------------------------------------------------------------------------- */

/* A thread that works for no pool has no queue, so every spawn runs its call at once. */
FJ_TEST(spawned_calls_run_in_a_thread_outside_all_pools, 10)
{
    struct leaves_fji_frame tree = {.depth = 4, .arity = 5};
    struct mixture_fji_frame mix = {.left = 20, .random = fjt_seed()};

    leaves_fji_run(fji_self, &tree);
    CHECK_EQ(tree.fj_r, 625);
    mixture_fji_run(fji_self, &mix);
    CHECK_EQ(mix.fj_r, 20);
}
