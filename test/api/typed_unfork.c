/* SPDX-License-Identifier: MIT */
/*
 * typed_unfork.c - typed tasks that are taken back, and the state of a forked typed task
 */
#include <string.h>

#include "inside.h"

static atomic_int runs;

FJ_TASK(int, leaf, int, n)
{
    atomic_fetch_add(&runs, 1);
    return n;
}

/* Takes a call back in a pool of one worker, where no other worker can steal it. */
FJ_TASK(int, takes_back, int, rounds)
{
    for (int i = 0; i < rounds; i++) {
        leaf_task a, b, c;
        leaf_fork(FJ, &a, 1);
        leaf_fork(FJ, &b, 2);
        leaf_fork(FJ, &c, 3);
        CHECK_EQ(leaf_state(FJ, &b), FJ_FORKED_QUEUED);
        CHECK_EQ(leaf_unfork(FJ, &b), 1); /* not the youngest */
        CHECK_EQ(leaf_unfork(FJ, &c), 1);
        leaf_fork(FJ, &b, 5); /* a handle that was taken back is free */
        CHECK_EQ(leaf_unfork(FJ, &a), 1);
        CHECK_EQ(leaf_join(FJ, &b), 5);
        leaf_fork(FJ, &a, 6);
        CHECK_EQ(leaf_join(FJ, &a), 6);
    }
    return 0;
}

static void takes_back_in(unsigned flags)
{
    fj_pool *pool = fjt_pool(1, flags);
    int r, rounds = (int)fjt_rounds(100);

    atomic_store(&runs, 0);
    CHECK_EQ(takes_back_invoke(pool, &r, rounds), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 2 * rounds);
    fjt_destroy(pool);
}

FJ_TEST(call_that_was_taken_back_does_not_run, 20)
{
    takes_back_in(0);
    takes_back_in(FJ_POOL_FIFO);
    takes_back_in(FJ_POOL_SYMMETRIC);
}

/* ---- A thief ---------------------------------------------------------------------------------- */

static atomic_int begun, may_end;

FJ_TASK(long, stolen, long, n)
{
    atomic_store(&begun, 1);
    until(&may_end);
    return n * 2;
}

FJ_TASK(int, has_a_thief, int, unused)
{
    stolen_task t;

    (void)unused;
    stolen_fork(FJ, &t, 21);
    until(&begun);
    CHECK_EQ(stolen_state(FJ, &t), FJ_FORKED_STOLEN);
    CHECK_EQ(stolen_unfork(FJ, &t), 0);
    CHECK_EQ(stolen_unfork(FJ, &t), 0); /* again: nothing has changed */
    atomic_store(&may_end, 1);
    while (stolen_state(FJ, &t) != FJ_FORKED_DONE) sched_yield();
    CHECK_EQ(stolen_unfork(FJ, &t), 0);
    CHECK_EQ(stolen_state(FJ, &t), FJ_FORKED_DONE);
    CHECK_EQ(stolen_join(FJ, &t), 42);
    return 0;
}

static void with_a_thief(unsigned flags)
{
    fj_pool *pool = fjt_pool(2, flags);
    int r;

    atomic_store(&begun, 0);
    atomic_store(&may_end, 0);
    CHECK_EQ(has_a_thief_invoke(pool, &r, 0), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(stolen_call_is_not_taken_back_and_tells_when_it_is_done, 20)
{
    with_a_thief(0);
    with_a_thief(FJ_POOL_FIFO);
    with_a_thief(FJ_POOL_SYMMETRIC);
}

/* ---- Random trees ----------------------------------------------------------------------------- */

/* Each node takes some children back and calls them, joins others, and spawns one. */
FJ_TASK(long, tree, uint64_t, seed, int, depth)
{
    uint64_t s = seed;
    long sum = 1;
    tree_task t[4];
    uint64_t of[4];
    int n = depth > 0 ? (int)(fjt_random(&s) % 5) : 0, order[4];

    for (int i = 0; i < n; i++) {
        of[i] = fjt_random(&s);
        tree_fork(FJ, &t[i], of[i], depth - 1);
        order[i] = i;
    }
    for (int i = n; i > 1; i--) { /* any order */
        int k = (int)(fjt_random(&s) % (uint64_t)i), keep = order[k];
        order[k] = order[i - 1];
        order[i - 1] = keep;
    }
    for (int i = 0; i < n; i++) {
        int k = order[i];
        bool try = fjt_random(&s) % 2 == 0;
        if (try) CHECK(tree_state(FJ, &t[k]) <= FJ_FORKED_DONE);
        if (try && tree_unfork(FJ, &t[k]))
            sum += tree_call(FJ, of[k], depth - 1);
        else
            sum += tree_join(FJ, &t[k]);
    }
    return sum;
}

static long tree_oracle(uint64_t seed, int depth)
{
    uint64_t s = seed;
    int n = depth > 0 ? (int)(fjt_random(&s) % 5) : 0;
    long sum = 1;

    for (int i = 0; i < n; i++) sum += tree_oracle(fjt_random(&s), depth - 1);
    return sum;
}

static void random_trees(fj_pool *pool)
{
    uint64_t state = fjt_seed();

    for (long round = 0; round < fjt_rounds(30); round++) {
        uint64_t seed = fjt_random(&state);
        long r = -1;
        CHECK_EQ(tree_invoke(pool, &r, seed, 7), FJ_OK);
        CHECK_EQ(r, tree_oracle(seed, 7));
    }
}

FJ_TEST(random_trees_of_calls_taken_back_and_joined, 60)
{
    on_pools_and_common(random_trees);
}

/* ---- Without a pool --------------------------------------------------------------------------- */

FJ_TASK(int, without_pool, int, n)
{
    leaf_task t;

    leaf_fork(FJ, &t, n);
    bool inside_pool = fj_current_pool() != NULL;
    if (!inside_pool) { /* the fork has run the call */
        CHECK_EQ(leaf_state(FJ, &t), FJ_FORKED_DONE);
        CHECK_EQ(leaf_unfork(FJ, &t), 0);
    }
    return leaf_join(FJ, &t);
}

FJ_TEST(call_that_was_run_at_its_fork_is_done, 20)
{
    fji_typed_saved saved;
    fj_cell *p = fji_typed_enter(fji_self, &saved); /* typed code in a thread outside a pool */

    CHECK_EQ(without_pool_call(fji_self, &p, 5), 5);
    fji_typed_leave(fji_self, &saved);
}
