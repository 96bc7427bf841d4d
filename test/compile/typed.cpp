// SPDX-License-Identifier: MIT
//
// typed.cpp - typed and plain tasks in C++: they compile, link and return the right results

#include <forkjoin.h>

#include <cstdio>

FJ_TASK(long, fib, long, n)
{
    if (n < 2) return n;
    fib_task a;
    fib_fork(FJ, &a, n - 1);
    long y = fib_call(FJ, n - 2);
    return fib_join(FJ, &a) + y;
}

// Two tasks without a result that fork each other.
FJ_VOID_TASK_DECLARE(fill_odd, int *, to, int, n);

FJ_VOID_TASK(fill_even, int *, to, int, n)
{
    if (n <= 0) return;
    fill_odd_task rest;
    fill_odd_fork(FJ, &rest, to + 1, n - 1);
    *to = 0;
    fill_odd_join(FJ, &rest);
}

FJ_VOID_TASK_BODY(fill_odd, int *, to, int, n)
{
    if (n <= 0) return;
    fill_even_task rest;
    fill_even_fork(FJ, &rest, to + 1, n - 1);
    *to = 1;
    fill_even_join(FJ, &rest);
}

// Plain tasks: fj_task is the base class.
struct sum : fj_task {
    long from, to, result;
};

static int sum_run(fj_task *t)
{
    sum *s = static_cast<sum *>(t);
    if (s->to - s->from <= 4) {
        s->result = 0;
        for (long i = s->from; i < s->to; i++) s->result += i;
        return FJ_OK;
    }
    sum left = *s, right = *s;
    left.to = right.from = s->from + (s->to - s->from) / 2;
    fj_task_init(&left, sum_run);
    fj_task_init(&right, sum_run);
    fj_fork(&left);
    int err = sum_run(&right);
    int other = fj_join(&left);
    s->result = left.result + right.result;
    return err != FJ_OK ? err : other;
}

static bool check(const char *what, bool right)
{
    if (!right) std::printf("wrong: %s\n", what);
    return right;
}

int main()
{
    fj_pool_options o = {};
    fj_pool *pool = nullptr;
    bool right = true;

    o.parallelism = 2;
    if (!check("fj_pool_create", fj_pool_create(&pool, &o) == FJ_OK)) return 1;

    long r = 0;
    int err = fib_invoke(pool, &r, 20);
    right &= check("fib", err == FJ_OK && r == 6765);

    int cells[10] = {};
    err = fill_even_invoke(pool, cells, 10);
    right &= check("fill_even", err == FJ_OK && cells[8] == 0 && cells[9] == 1);

    sum root{};
    root.to = 1000;
    fj_task_init(&root, sum_run);
    err = fj_invoke(pool, &root);
    right &= check("sum", err == FJ_OK && root.result == 499500);

    right &= check("fj_pool_destroy", fj_pool_destroy(pool) == FJ_OK);
    return right ? 0 : 1;
}
