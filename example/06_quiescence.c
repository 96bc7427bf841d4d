/* SPDX-License-Identifier: MIT */
/*
 * 06_quiescence.c - waiting until a pool has no work left
 *
 * Each action submits further actions, and no thread joins any of them. Their number is not known
 * in advance. The work is done when the pool is quiescent: no task is running or queued.
 */
#include <forkjoin.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

static fj_pool *pool;
static atomic_int visited, lost;

/* The Collatz tree, from 1 upwards: which numbers reach 1 without exceeding the limit? */
enum { LIMIT = 20000 };

static int visit(void *arg);

static void go_to(uintptr_t n)
{
    /* A worker of the pool pushes the action to its own queue. */
    if (n <= LIMIT && fj_execute(pool, visit, (void *)n) != FJ_OK) atomic_fetch_add(&lost, 1);
}

static int visit(void *arg)
{
    uintptr_t n = (uintptr_t)arg;

    atomic_fetch_add(&visited, 1);
    go_to(2 * n);                                /* 2n is halved to n */
    if (n % 6 == 4 && n > 4) go_to((n - 1) / 3); /* an odd (n-1)/3 is tripled to n */
    return FJ_OK;
}

/* The same count without a pool. */
static int count(uintptr_t n)
{
    if (n > LIMIT) return 0;
    return 1 + count(2 * n) + (n % 6 == 4 && n > 4 ? count((n - 1) / 3) : 0);
}

int main(void)
{
    fj_pool_options o = {0};

    if (fj_pool_create(&pool, &o) != FJ_OK) return 1;
    go_to(1);
    if (fj_pool_await_quiescence(pool, FJ_FOREVER) != FJ_OK) return 1;
    if (!fj_pool_is_quiescent(pool)) return 1;
    printf("%d of the numbers up to %d\n", visited, LIMIT);

    if (fj_pool_destroy(pool) != FJ_OK) return 1;
    return lost == 0 && visited == count(1) ? 0 : 1;
}
