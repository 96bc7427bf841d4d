/* SPDX-License-Identifier: MIT */
/*
 * forms.c - typed tasks with 0 to 6 arguments, in C and C++, with one and with two workers
 */
#include <forkjoin.h>
#include <string.h>

static int runs;

FJ_TASK(int, none)
{
    return __atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED) > 0;
}

FJ_VOID_TASK(nothing)
{
    (void)__atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED);
}

FJ_TASK_DECLARE(long, later);
FJ_VOID_TASK_DECLARE(later_void);

FJ_TASK(int, one, int, a)
{
    none_task x;
    nothing_task y;
    none_fork(FJ, &x);
    nothing_fork(FJ, &y);
    nothing_call(FJ);
    nothing_join(FJ, &y);
    return none_call(FJ) + none_join(FJ, &x) + a;
}

FJ_VOID_TASK(one_void, int *, a)
{
    later_task x;
    later_void_task y;
    later_void_fork(FJ, &y);
    later_fork(FJ, &x);
    *a += (int)later_join(FJ, &x);
    later_void_join(FJ, &y);
    later_void_call(FJ);
}

FJ_TASK_BODY(long, later)
{
    one_task x;
    one_fork(FJ, &x, 5);
    return one_join(FJ, &x);
}

FJ_VOID_TASK_BODY(later_void)
{
    nothing_task y;
    nothing_fork(FJ, &y);
    nothing_join(FJ, &y);
}

FJ_TASK(int, two, int, a, int, b)
{
    return a - b;
}

FJ_TASK(int, three, int, a, int, b, int, c)
{
    return two_call(FJ, a, b) * c;
}

FJ_TASK(int, four, int, a, int, b, int, c, int, d)
{
    return three_call(FJ, a, b, c) - d;
}

FJ_TASK(int, five, int, a, int, b, int, c, int, d, int, e)
{
    return four_call(FJ, a, b, c, d) * e;
}

FJ_TASK(int, six, int, a, int, b, int, c, int, d, int, e, int, f)
{
    five_task x;
    five_fork(FJ, &x, a, b, c, d, e);
    return five_join(FJ, &x) - f;
}

FJ_VOID_TASK(six_void, int, a, int, b, int, c, int, d, int, e, int *, f)
{
    *f = five_call(FJ, a, b, c, d, e);
}

static int with(fj_pool *pool)
{
    int r = 0, v = 0;

    if (none_invoke(pool, &r) != FJ_OK || r != 1) return 1;
    if (nothing_invoke(pool) != FJ_OK) return 2;
    if (one_invoke(pool, &r, 7) != FJ_OK || r != 9) return 3;
    if (one_void_invoke(pool, &v) != FJ_OK || v != 7) return 4;
    if (six_invoke(pool, &r, 9, 4, 3, 5, 2, 1) != FJ_OK || r != 19) return 5;
    if (six_void_invoke(pool, 9, 4, 3, 5, 2, &v) != FJ_OK || v != 20) return 6;
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
