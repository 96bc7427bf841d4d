/* SPDX-License-Identifier: MIT */
/*
 * define.c - the bodies of the tasks in parts.h
 */
#include "parts.h"

FJ_TASK_DEFINE(long, parts_fib, long, n)
{
    if (n < 2) return n;
    parts_fib_task a;
    parts_fib_fork(FJ, &a, n - 1);
    long y = parts_fib_call(FJ, n - 2);
    return parts_fib_join(FJ, &a) + y;
}

FJ_TASK_DEFINE(int, parts_none)
{
    return 7;
}

FJ_VOID_TASK_DEFINE(parts_fill, int *, to, int, n, int, value)
{
    if (n == 1) {
        *to = value;
        return;
    }
    parts_fill_task half;
    parts_fill_fork(FJ, &half, to, n / 2, value);
    parts_fill_call(FJ, to + n / 2, n - n / 2, value);
    parts_fill_join(FJ, &half);
}

FJ_TASK_DEFINE(int, parts_even, int, n)
{
    if (n == 0) return 1;
    parts_odd_task t;
    parts_odd_fork(FJ, &t, n - 1);
    return parts_odd_join(FJ, &t);
}

FJ_TASK_DEFINE(int, parts_odd, int, n)
{
    return n == 0 ? 0 : parts_even_call(FJ, n - 1);
}
