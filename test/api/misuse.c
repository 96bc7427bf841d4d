/* SPDX-License-Identifier: MIT */
/*
 * misuse.c - a join without a fork, and a second fork, are detected in every build
 */
#include <stdatomic.h>

#include "fjtest.h"

static atomic_int runs;

static int count(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&runs, 1);
    return 7;
}

static void in_pool(fj_task_fn *body)
{
    for (int n = 1; n <= 2; n++) {
        fj_pool *p = fjt_pool(n, 0);
        fj_task t;

        atomic_store(&runs, 0);
        fj_task_init(&t, body);
        CHECK_EQ(fj_invoke(p, &t), FJ_OK);
        fjt_destroy(p);
    }
}

/* ---- Joins without a fork -------------------------------------------------------------------- */

static int joins_without_forks(fj_task *t)
{
    fj_task a, b;

    (void)t;
    fj_task_init(&a, count);
    CHECK_EQ(fj_join(&a), FJ_EINVAL);
    CHECK_EQ(fj_unfork(&a), 0);
    CHECK_EQ(fj_join_stolen(&a), FJ_EINVAL);
    fj_task_init(&b, count);
    fj_fork(&b);
    CHECK_EQ(fj_join(&a), FJ_EINVAL); /* with another task in the queue */
    CHECK_EQ(fj_join(&b), 7);
    CHECK_EQ(fj_join(&b), FJ_EINVAL); /* already joined */
    fj_fork(&b);                      /* a joined task may be forked again */
    CHECK_EQ(fj_join(&b), 7);
    CHECK_EQ(atomic_load(&runs), 2);
    return FJ_OK;
}

FJ_TEST(join_of_a_task_that_is_not_forked_is_refused, 20)
{
    fj_task t;

    in_pool(joins_without_forks);
    fj_task_init(&t, count);
    CHECK_EQ(fj_join(&t), FJ_EINVAL); /* outside a pool */
    CHECK_EQ(fj_unfork(&t), 0);
}

/* ---- Second forks ---------------------------------------------------------------------------- */

static atomic_int forked_twice;

/* The body of a task that is submitted and then forked. fj_fork() cannot distinguish a submitted
 * task that is done from a task that was joined, so the body waits until the second call has
 * returned. */
static int count_after_the_second_fork(fj_task *t)
{
    while (!atomic_load(&forked_twice)) fjt_sleep_us(10);
    return count(t);
}

static int forks_twice(fj_task *t)
{
    fj_task a, b;

    (void)t;
    atomic_store(&runs, 0);
    fj_task_init(&a, count);
    fj_task_init(&b, count);
    fj_fork(&a);
    fj_fork(&a);
    fj_fork(&b);
    fj_fork(&a); /* with another task above it */
    fj_fork(&b);
    CHECK_EQ(fj_join(&b), 7);
    CHECK_EQ(fj_join(&a), 7);
    CHECK_EQ(atomic_load(&runs), 2);
    CHECK_EQ(fj_worker_queued(), 0);
    atomic_store(&forked_twice, 0);
    fj_task_init(&a, count_after_the_second_fork);
    CHECK_EQ(fj_submit(fj_current_pool(), &a), FJ_OK);
    fj_fork(&a); /* already queued */
    atomic_store(&forked_twice, 1);
    CHECK_EQ(fj_join(&a), 7);
    CHECK_EQ(atomic_load(&runs), 3);
    return FJ_OK;
}

FJ_TEST(second_fork_of_a_task_does_nothing, 20)
{
    in_pool(forks_twice);
}

/* Outside a pool, fj_fork() submits to the common pool. */
FJ_TEST(second_fork_outside_a_pool_does_nothing, 20)
{
    fj_task t;

    for (int i = 0; i < 200; i++) {
        atomic_store(&runs, 0);
        atomic_store(&forked_twice, 0);
        fj_task_init(&t, count_after_the_second_fork);
        fj_fork(&t);
        fj_fork(&t);
        atomic_store(&forked_twice, 1);
        CHECK_EQ(fj_join(&t), 7);
        CHECK_EQ(atomic_load(&runs), 1);
        fj_fork(&t); /* after a join, the caller owns the task again */
        if (!fj_unfork(&t)) CHECK_EQ(fj_join_stolen(&t), 7);
        fj_fork(&t);
        CHECK_EQ(fj_join(&t), 7);
    }
}

/* Forks that are allowed: a task is forked again after each kind of end, at other depths, by other
 * workers and in other pools. */
static fj_task again;

static int forks_again(fj_task *t)
{
    fj_task below[3];

    (void)t;
    for (int i = 0; i < 3; i++) {
        fj_task_init(&below[i], count);
        fj_fork(&below[i]);
        fj_fork(&again);
        CHECK_EQ(fj_join(&again), 7);
        fj_fork(&again);
        if (!fj_unfork(&again)) CHECK_EQ(fj_join_stolen(&again), 7);
    }
    for (int i = 3; i-- > 0;) {
        fj_fork(&again);
        CHECK_EQ(fj_join(&again), 7);
        CHECK_EQ(fj_join(&below[i]), 7);
    }
    CHECK_EQ(fj_submit_external(fj_current_pool(), &again), FJ_OK);
    if (!fj_unfork(&again)) CHECK_EQ(fj_join(&again), 7);
    fj_fork(&again);
    CHECK_EQ(fj_join(&again), 7);
    return FJ_OK;
}

FJ_TEST(task_is_forked_again_wherever_it_was_before, 60)
{
    fj_task_init(&again, count);
    for (long i = 0; i < fjt_rounds(50); i++) in_pool(forks_again);
}
