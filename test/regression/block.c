/* SPDX-License-Identifier: MIT */
/*
 * block.c - the pool replaces workers that wait, and bounds the number of replacements
 *
 * A worker waits when it joins a task that another worker runs, or when it invokes a task in
 * another pool. The pool must then run its other tasks on another thread. It must not add threads
 * without bound, and the added threads must end when they are no longer needed.
 */
#define _GNU_SOURCE
#include "regression.h"

/* ---- Pools that wait for each other ----------------------------------------------------- */

struct ping {
    fj_task task;
    fj_pool *pool[2];
    int depth, reached;
};

static int ping_run(fj_task *t)
{
    struct ping *p = (struct ping *)t;

    p->reached = p->depth;
    if (p->depth > 0) {
        struct ping next = {.pool = {p->pool[1], p->pool[0]}, .depth = p->depth - 1};
        fj_task_init(&next.task, ping_run);
        CHECK_EQ(fj_invoke(next.pool[0], &next.task), p->depth - 1);
        CHECK_EQ(next.reached, p->depth - 1);
    }
    return p->depth;
}

static void ping_pong(unsigned flags)
{
    fj_pool *a = fjt_pool(1, flags), *b = fjt_pool(1, flags);

    for (long i = fjt_rounds(50); i > 0; i--) {
        struct ping p = {.pool = {a, b}, .depth = 50};
        fj_task_init(&p.task, ping_run);
        CHECK_EQ(fj_invoke(a, &p.task), 50);
    }
    CHECK(regression_started(a) <= 52 && regression_started(b) <= 52);
    regression_rest(a);
    regression_rest(b);
    fjt_destroy(a);
    fjt_destroy(b);
}

FJ_TEST(two_pools_may_wait_for_each_other, 60)
{
    ping_pong(0);
}

FJ_TEST(two_fifo_pools_may_wait_for_each_other, 60)
{
    ping_pong(FJ_POOL_FIFO);
}

/* ---- Blocked for longer than the keep-alive time ---------------------------------------- */

struct held {
    fj_task task, inner;
    fj_pool *other;
    atomic_int *released, *began;
};

static int held_inner(fj_task *t)
{
    struct held *h = (struct held *)(void *)((char *)t - offsetof(struct held, inner));
    atomic_fetch_add(h->began, 1);
    UNTIL(atomic_load(h->released));
    return FJ_OK;
}

/* Waits for a task of another pool, so it has nothing to help with. */
static int held_run(fj_task *t)
{
    struct held *h = (struct held *)t;

    fj_task_init(&h->inner, held_inner);
    return fj_invoke(h->other, &h->inner);
}

/* Blocks `blocked` of `workers` workers until the idle ones have ended, then executes actions. */
static void submit_beside_blocked(int workers, int blocked)
{
    fj_pool *p = fjt_pool(workers, 0), *other = fjt_pool(blocked, 0);
    struct held h[8];
    atomic_int released = 0, began = 0;

    p->keep_alive_ns = 1000000;
    for (int i = 0; i < blocked; i++) {
        h[i] = (struct held){.other = other, .released = &released, .began = &began};
        fj_task_init(&h[i].task, held_run);
        CHECK_EQ(fj_submit(p, &h[i].task), FJ_OK);
    }
    UNTIL(atomic_load(&began) == blocked);
    for (int i = 0; i < 5; i++) {
        atomic_int ran = 0;
        fjt_sleep_us(5000);
        CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
        UNTIL(atomic_load(&ran));
    }
    atomic_store(&released, 1);
    for (int i = 0; i < blocked; i++) CHECK_EQ(fj_join(&h[i].task), FJ_OK);
    regression_rest(p);
    regression_all_at_once(p, workers);
    regression_rest(p);
    fjt_destroy(p);
    fjt_destroy(other);
}

FJ_TEST(work_is_run_while_all_workers_but_one_are_blocked, 60)
{
    for (long i = fjt_rounds(10); i > 0; i--) submit_beside_blocked(4, 3);
}

FJ_TEST(work_is_run_while_all_workers_are_blocked, 60)
{
    for (long i = fjt_rounds(10); i > 0; i--) submit_beside_blocked(4, 4);
}

FJ_TEST(work_is_run_while_the_only_worker_is_blocked, 60)
{
    for (long i = fjt_rounds(10); i > 0; i--) submit_beside_blocked(1, 1);
}

/* ---- Idle for longer than the keep-alive time ------------------------------------------- */

/* After the first worker has ended, the others end soon, in whatever order they fell asleep. */
FJ_TEST(all_idle_workers_leave, 120)
{
    fj_pool_options o = {0};
    o.parallelism = 64;
    o.keep_alive_ns = 1; /* below the minimum, so the pool uses its minimum */
    fj_pool *p = fjt_pool_with(&o);

    for (long i = fjt_rounds(15); i > 0; i--) {
        regression_all_at_once(p, 64);
        UNTIL(regression_total(p) == 0);
    }
    regression_rest(p);
    fjt_destroy(p);
}

FJ_TEST(all_idle_workers_leave_while_some_are_woken, 120)
{
    fj_pool *p = fjt_pool(16, 0);
    uint64_t seed = fjt_seed();

    p->keep_alive_ns = 100000;
    for (long i = fjt_rounds(60); i > 0; i--) {
        atomic_int ran = 0;
        int sent = 0;
        regression_all_at_once(p, 16);
        for (; sent < 30; sent++) {
            CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
            regression_spin_ns(regression_below(&seed, 300000));
        }
        UNTIL(atomic_load(&ran) == sent);
        UNTIL(regression_total(p) == 0);
    }
    regression_rest(p);
    fjt_destroy(p);
}

/* ---- The number of threads is bounded --------------------------------------------------- */

#define DEPTH 12

struct branch {
    fj_task task;
    int depth;
    unsigned path;
    long leaves;
};

/* Joins the oldest child first. Some leaves take so long that their joiner blocks. */
static int branch_run(fj_task *t)
{
    struct branch *b = (struct branch *)t;
    struct branch l = {.depth = b->depth - 1, .path = 2 * b->path};
    struct branch r = {.depth = b->depth - 1, .path = 2 * b->path + 1};

    if (b->depth == 0) {
        if (b->path % 64 == 0) fjt_sleep_us(100);
        b->leaves = 1;
        return FJ_OK;
    }
    fj_task_init(&l.task, branch_run);
    fj_task_init(&r.task, branch_run);
    fj_fork(&l.task);
    fj_fork(&r.task);
    CHECK_EQ(fj_join(&l.task), FJ_OK);
    CHECK_EQ(fj_join(&r.task), FJ_OK);
    b->leaves = l.leaves + r.leaves;
    return FJ_OK;
}

static void grow_tree(fj_pool *p)
{
    struct branch root = {.depth = DEPTH, .path = 1};

    fj_task_init(&root.task, branch_run);
    CHECK_EQ(fj_invoke(p, &root.task), FJ_OK);
    CHECK_EQ(root.leaves, 1 << DEPTH);
}

FJ_TEST(joins_in_the_bad_order_start_few_threads, 60)
{
    fj_pool *p = fjt_pool(4, 0);

    for (long i = fjt_rounds(100); i > 0; i--) grow_tree(p);
    CHECK(regression_started(p) <= 4 + DEPTH);
    fjt_destroy(p);
}

FJ_TEST(spare_threads_leave_after_their_use, 60)
{
    fj_pool_options o = {0};
    o.parallelism = 4;
    o.keep_alive_ns = 1;
    fj_pool *p = fjt_pool_with(&o);

    for (long i = fjt_rounds(10); i > 0; i--) {
        grow_tree(p);
        UNTIL(regression_total(p) <= 4);
    }
    fjt_destroy(p);
}

/* The threads that replaced blocked workers end even while the pool has work. */
FJ_TEST(spare_threads_leave_while_others_work, 60)
{
    fj_pool *p = fjt_pool(2, 0), *other = fjt_pool(6, 0);
    struct held h[6];
    atomic_int released = 0, began = 0, enough = 0;

    p->keep_alive_ns = 2000000;
    for (int i = 0; i < 6; i++) {
        h[i] = (struct held){.other = other, .released = &released, .began = &began};
        fj_task_init(&h[i].task, held_run);
        CHECK_EQ(fj_submit(p, &h[i].task), FJ_OK);
    }
    UNTIL(atomic_load(&began) == 6);
    CHECK(regression_total(p) >= 6);
    struct held busy = {.released = &enough, .began = &began};
    fj_task_init(&busy.inner, held_inner);
    CHECK_EQ(fj_submit(p, &busy.inner), FJ_OK);
    UNTIL(atomic_load(&began) == 7);
    atomic_store(&released, 1);
    for (int i = 0; i < 6; i++) CHECK_EQ(fj_join(&h[i].task), FJ_OK);
    UNTIL(regression_total(p) <= 2);
    atomic_store(&enough, 1);
    CHECK_EQ(fj_join(&busy.inner), FJ_OK);
    regression_rest(p);
    fjt_destroy(p);
    fjt_destroy(other);
}

static int count_saturation(fj_pool *pool, void *arg)
{
    (void)pool;
    atomic_fetch_add((atomic_int *)arg, 1);
    return 0;
}

/* The pool may not add a thread, so a worker that has to wait blocks without a replacement. */
FJ_TEST(at_the_limit_of_threads_joins_still_give_results, 60)
{
    atomic_int asked = 0;
    fj_pool_options o = {0};
    o.parallelism = 2;
    o.max_threads = 2;
    o.arg = &asked;
    o.allow_saturation = count_saturation;
    fj_pool *p = fjt_pool_with(&o);

    for (long i = fjt_rounds(100); i > 0; i--) grow_tree(p);
    CHECK(regression_started(p) <= 2);
    regression_rest(p);
    fjt_destroy(p);
}
