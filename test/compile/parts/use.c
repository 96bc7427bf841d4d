/* SPDX-License-Identifier: MIT */
/*
 * use.c - forks, joins, takes back and invokes the tasks of parts.h
 */
#include <string.h>

#include "parts.h"

/* A task of this file that forks tasks of the other file, and reads their states. */
FJ_TASK(long, all, int, n)
{
    parts_fib_task a, b, c;
    parts_none_task d;
    long sum;

    parts_fib_fork(FJ, &a, n);
    parts_fib_fork(FJ, &b, n + 1);
    parts_fib_fork(FJ, &c, n + 2);
    parts_none_fork(FJ, &d);
    parts_fib_spawn(FJ, n);
    sum = parts_fib_sync(FJ);
    sum += parts_none_join(FJ, &d);
    sum += parts_fib_unfork(FJ, &c) ? parts_fib_call(FJ, n + 2) : parts_fib_join(FJ, &c);
    while (parts_fib_state(FJ, &b) == FJ_FORKED_STOLEN) {}
    sum += parts_fib_join(FJ, &b);
    return sum + parts_fib_join(FJ, &a);
}

static int with(fj_pool *pool)
{
    int cells[100], yes = 0;
    long r = 0;

    memset(cells, 0, sizeof cells);
    if (parts_fib_invoke(pool, &r, 18) != FJ_OK || r != 2584) return 1;
    if (parts_fill_invoke(pool, cells, 100, 3) != FJ_OK) return 2;
    for (int i = 0; i < 100; i++)
        if (cells[i] != 3) return 3;
    if (parts_even_invoke(pool, &yes, 40) != FJ_OK || yes != 1) return 4;
    if (all_invoke(pool, &r, 10) != FJ_OK || r != 55 + 7 + 144 + 89 + 55) return 5;
    return 0;
}

int main(void)
{
    int failed = with(NULL);

    for (int n = 1; n <= 2 && failed == 0; n++) {
        fj_pool_options o;
        fj_pool *pool;
        memset(&o, 0, sizeof o);
        o.parallelism = n;
        if (fj_pool_create(&pool, &o) != FJ_OK) return 9;
        failed = with(pool);
        if (fj_pool_destroy(pool) != FJ_OK) return 10;
    }
    return failed;
}
