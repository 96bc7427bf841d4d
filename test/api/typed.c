/* SPDX-License-Identifier: MIT */
/*
 * typed.c - typed tasks: types of arguments and results, orders of joins, depth
 *
 * Every task is invoked in pools of several kinds and in the common pool.
 */
#include <math.h>
#include <string.h>

#include "inside.h"

/* ---- Values --------------------------------------------------------------------------------- */

FJ_TASK(long, fib, int, n)
{
    if (n < 2) return n;
    fib_task a;
    fib_fork(FJ, &a, n - 1);
    long y = fib_call(FJ, n - 2);
    return fib_join(FJ, &a) + y;
}

static void check_fib(fj_pool *pool)
{
    long want = 0, next = 1, r;

    for (int n = 0; n <= 22; n++) {
        r = -1;
        CHECK_EQ(fib_invoke(pool, &r, n), FJ_OK);
        CHECK_EQ(r, want);
        long sum = want + next;
        want = next;
        next = sum;
    }
}

FJ_TEST(typed_fib_is_right, 30)
{
    on_pools_and_common(check_fib);
}

struct triple {
    double x, y, z;
};

FJ_TASK(signed char, one_arg, signed char, a)
{
    return (signed char)-a;
}

FJ_TASK(double, two_args, float, a, int, b)
{
    return (double)a * b;
}

FJ_TASK(struct triple, three_args, double, a, char, b, float, c)
{
    return (struct triple){a, b, (double)c};
}

FJ_TASK(uint64_t, four_args, uint8_t, a, uint16_t, b, uint32_t, c, uint64_t, d)
{
    return (uint64_t)a + b + c + d;
}

FJ_TASK(const char *, five_args, const char *, a, _Bool, b, short, c, long, d, char, e)
{
    return a + b + c + d + e;
}

FJ_TASK(long double, six_args, int, a, int, b, int, c, int, d, int, e, int, f)
{
    return (long double)a + b * 10 + c * 100 + d * 1000 + e * 10000 + f * 100000;
}

/* Uses all 48 bytes of a cell: five arguments and a result of 8 bytes each. */
FJ_TASK(long, full_args, long, a, long, b, long, c, long, d, long, e)
{
    return a ^ b ^ c ^ d ^ e;
}

FJ_TASK(struct triple, struct_arg, struct triple, a)
{
    return (struct triple){a.y, a.z, a.x};
}

/* Forks and joins a task of each kind, and calls one directly. */
FJ_TASK(int, all_arities, int, rounds)
{
    static const char text[] = "0123456789abcdef";

    for (int i = 1; i <= rounds; i++) {
        one_arg_task t1;
        two_args_task t2;
        three_args_task t3;
        four_args_task t4;
        five_args_task t5;
        six_args_task t6;
        full_args_task t7;
        struct_arg_task t8;
        int k = i % 100;

        one_arg_fork(FJ, &t1, (signed char)k);
        two_args_fork(FJ, &t2, 0.5f, i);
        three_args_fork(FJ, &t3, i + 0.25, (char)k, 1.5f);
        four_args_fork(FJ, &t4, 255, 65535, UINT32_MAX, (uint64_t)i << 32);
        five_args_fork(FJ, &t5, text, i % 2 == 0, 3, 4, 1);
        six_args_fork(FJ, &t6, 1, 2, 3, 4, 5, k % 10);
        full_args_fork(FJ, &t7, i, 1l << 40, 1l << 50, -1, i);
        struct_arg_fork(FJ, &t8, (struct triple){i, 2, 3});

        struct triple s = struct_arg_join(FJ, &t8);
        CHECK(s.x == 2 && s.y == 3 && s.z == i);
        CHECK_EQ(full_args_join(FJ, &t7), ~(1l << 40 | 1l << 50));
        CHECK(six_args_join(FJ, &t6) == (long double)(54321 + k % 10 * 100000));
        CHECK(five_args_join(FJ, &t5) == text + 8 + (i % 2 == 0));
        CHECK(four_args_join(FJ, &t4) == 255ull + 65535 + UINT32_MAX + ((uint64_t)i << 32));
        s = three_args_join(FJ, &t3);
        CHECK(s.x == i + 0.25 && s.y == k && s.z == 1.5);
        CHECK(two_args_join(FJ, &t2) == 0.5 * i);
        CHECK_EQ(one_arg_join(FJ, &t1), -k);
        CHECK_EQ(one_arg_call(FJ, (signed char)k), -k);
    }
    return rounds;
}

static void check_arities(fj_pool *pool)
{
    int rounds = (int)fjt_rounds(2000), r = 0;

    CHECK_EQ(all_arities_invoke(pool, &r, rounds), FJ_OK);
    CHECK_EQ(r, rounds);
}

FJ_TEST(typed_tasks_take_one_to_six_arguments_of_any_type, 30)
{
    on_pools_and_common(check_arities);
}

static void check_invoke_arities(fj_pool *pool)
{
    signed char r1 = 0;
    double r2 = 0;
    struct triple r3 = {0, 0, 0};
    uint64_t r4 = 0;
    long double r6 = 0;
    long r7 = 0;

    CHECK_EQ(one_arg_invoke(pool, &r1, 5), FJ_OK);
    CHECK_EQ(two_args_invoke(pool, &r2, 0.5f, 3), FJ_OK);
    CHECK_EQ(three_args_invoke(pool, &r3, 1, 2, 3), FJ_OK);
    CHECK_EQ(four_args_invoke(pool, &r4, 1, 2, 3, 4), FJ_OK);
    CHECK_EQ(six_args_invoke(pool, &r6, 1, 2, 3, 4, 5, 6), FJ_OK);
    CHECK_EQ(full_args_invoke(pool, &r7, 1, 2, 4, 8, 16), FJ_OK);
    CHECK(r1 == -5 && r2 == 1.5 && r3.z == 3 && r4 == 10 && r6 == 654321 && r7 == 31);
}

FJ_TEST(typed_invoke_takes_arguments_of_any_type, 10)
{
    on_pools_and_common(check_invoke_arities);
}

/* ---- Without a result ----------------------------------------------------------------------- */

FJ_VOID_TASK(fill, int *, to, int, n, int, value)
{
    if (n == 1) {
        *to += value;
        return;
    }
    fill_task left, right;
    fill_fork(FJ, &left, to, n / 2, value);
    fill_fork(FJ, &right, to + n / 2, n - n / 2, value);
    fill_join(FJ, &right);
    fill_call(FJ, to + n / 2, 1, 0);
    fill_join(FJ, &left);
}

static void check_void(fj_pool *pool)
{
    static int cells[5000];

    memset(cells, 0, sizeof cells);
    for (int n = 1; n <= 5000; n = n * 3 / 2 + 1) {
        CHECK_EQ(fill_invoke(pool, cells, n, 1), FJ_OK);
        CHECK_EQ(fill_invoke(pool, cells, n, -1), FJ_OK);
        CHECK_EQ(fill_invoke(pool, cells, n, n), FJ_OK);
        for (int i = 0; i < n; i++) CHECK_EQ(cells[i], n);
        memset(cells, 0, sizeof cells);
    }
}

FJ_TEST(typed_tasks_without_result_do_their_work, 30)
{
    on_pools_and_common(check_void);
}

/* ---- Without arguments ---------------------------------------------------------------------- */

static atomic_int begun, ended;

FJ_TASK(long, answer)
{
    atomic_fetch_add(&begun, 1);
    return 42;
}

FJ_VOID_TASK(count)
{
    atomic_fetch_add(&begun, 1);
    atomic_fetch_add(&ended, 1);
}

/* If `stolen` is not 0, waits until another worker has taken both tasks. */
FJ_TASK(long, ask_both, int, stolen)
{
    answer_task a;
    count_task b;

    atomic_store(&begun, 0);
    answer_fork(FJ, &a);
    count_fork(FJ, &b);
    while (stolen && atomic_load(&begun) < 2) fjt_sleep_us(10);
    count_join(FJ, &b);
    long r = answer_join(FJ, &a);
    count_call(FJ);
    return r + answer_call(FJ);
}

static void check_no_arguments(fj_pool *pool)
{
    long r = 0;

    for (int i = 0; i < 200; i++) {
        atomic_store(&ended, 0);
        CHECK_EQ(ask_both_invoke(pool, &r, 0), FJ_OK);
        CHECK_EQ(r, 84);
        CHECK_EQ(atomic_load(&ended), 2);
        CHECK_EQ(answer_invoke(pool, &r), FJ_OK);
        CHECK_EQ(r, 42);
        CHECK_EQ(count_invoke(pool), FJ_OK);
        CHECK_EQ(atomic_load(&ended), 3);
    }
}

FJ_TEST(typed_tasks_need_no_arguments, 30)
{
    on_pools_and_common(check_no_arguments);
}

FJ_TEST(typed_tasks_without_arguments_are_stolen, 30)
{
    fj_pool *pool = fjt_pool(2, 0);
    long r = 0;

    for (int i = 0; i < 200; i++) {
        CHECK_EQ(ask_both_invoke(pool, &r, 1), FJ_OK);
        CHECK_EQ(r, 84);
    }
    fjt_destroy(pool);
}

/* ---- Mutual recursion ------------------------------------------------------------------------ */

FJ_TASK_DECLARE(long, even, int, n);
FJ_TASK_DECLARE(long, odd, int, n);
FJ_VOID_TASK_DECLARE(ping, int, n, atomic_long *, sum);
FJ_VOID_TASK_DECLARE(pong, int, n, atomic_long *, sum);

FJ_TASK_BODY(long, even, int, n)
{
    if (n == 0) return 1;
    odd_task a, b;
    odd_fork(FJ, &a, n - 1);
    odd_fork(FJ, &b, n - 1);
    long x = odd_join(FJ, &a);
    return x + odd_join(FJ, &b);
}

FJ_TASK_BODY(long, odd, int, n)
{
    if (n == 0) return 0;
    even_task a;
    even_fork(FJ, &a, n - 1);
    return even_join(FJ, &a);
}

FJ_VOID_TASK_BODY(ping, int, n, atomic_long *, sum)
{
    pong_task a, b;
    atomic_fetch_add(sum, n);
    if (n == 0) return;
    pong_fork(FJ, &a, n - 1, sum);
    pong_fork(FJ, &b, n - 1, sum);
    pong_join(FJ, &a);
    pong_join(FJ, &b);
}

FJ_VOID_TASK_BODY(pong, int, n, atomic_long *, sum)
{
    ping_task a;
    if (n == 0) return;
    ping_fork(FJ, &a, n - 1, sum);
    ping_join(FJ, &a);
}

static void check_mutual(fj_pool *pool)
{
    atomic_long sum = 0;
    long r = 0, want = 0;

    CHECK_EQ(even_invoke(pool, &r, 20), FJ_OK);
    CHECK_EQ(r, 1 << 10);
    CHECK_EQ(even_invoke(pool, &r, 21), FJ_OK);
    CHECK_EQ(r, 0);
    CHECK_EQ(ping_invoke(pool, 20, &sum), FJ_OK);
    for (int n = 20, many = 1; n >= 0; n -= 2, many *= 2) want += (long)n * many;
    CHECK_EQ(atomic_load(&sum), want);
}

FJ_TEST(typed_tasks_call_each_other, 20)
{
    on_pools_and_common(check_mutual);
}

/* ---- Orders of joins ------------------------------------------------------------------------ */

FJ_TASK(long, square, long, n, int, work)
{
    for (volatile int i = 0; i < work; i++) {}
    return n * n;
}

/* Joins three tasks in one of the six orders. */
FJ_TASK(long, three_in_order, int, order, int, rounds)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    square_task h[3];

    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 3; k++) square_fork(FJ, &h[k], i + k, i % 50);
        for (int k = 0; k < 3; k++) {
            int at = orders[order][k];
            CHECK_EQ(square_join(FJ, &h[at]), (long)(i + at) * (i + at));
        }
    }
    return rounds;
}

static void check_three(fj_pool *pool)
{
    long r = 0;

    for (int order = 0; order < 6; order++)
        CHECK_EQ(three_in_order_invoke(pool, &r, order, (int)fjt_rounds(3000)), FJ_OK);
}

FJ_TEST(typed_tasks_are_joined_in_any_order, 30)
{
    on_pools_and_common(check_three);
}

/* Joins n tasks: youngest first (order 0), oldest first (1), in random order (2). */
FJ_TASK(long, loop, int, n, int, order, uint64_t, random)
{
    square_task h[200];
    int at[200];

    for (int i = 0; i < n; i++) {
        square_fork(FJ, &h[i], i, 20);
        at[i] = order == 0 ? n - 1 - i : i;
    }
    for (int i = n - 1; order == 2 && i > 0; i--) {
        int k = (int)(fjt_random(&random) % (uint64_t)(i + 1)), keep = at[i];
        at[i] = at[k];
        at[k] = keep;
    }
    for (int i = 0; i < n; i++) CHECK_EQ(square_join(FJ, &h[at[i]]), (long)at[i] * at[i]);
    return n;
}

FJ_TASK(long, all_loops, int, order)
{
    for (int n = 1; n <= 200; n++) CHECK_EQ(loop_call(FJ, n, order, fjt_seed() + (uint64_t)n), n);
    return 0;
}

static void check_loops(fj_pool *pool)
{
    long r = 0;

    for (int order = 0; order < 3; order++) CHECK_EQ(all_loops_invoke(pool, &r, order), FJ_OK);
}

FJ_TEST(loop_of_handles_is_joined_in_any_order, 60)
{
    on_pools_and_common(check_loops);
}

/* A sliding window: 16 tasks are forked and not yet joined, and the oldest is joined next. */
FJ_TASK(long, slide, int, rounds)
{
    square_task h[16];
    long sum = 0;

    for (int i = 0; i < rounds; i++) {
        if (i >= 16) sum += square_join(FJ, &h[i % 16]);
        square_fork(FJ, &h[i % 16], i, 10);
    }
    for (int i = rounds; i < rounds + 16; i++) sum += square_join(FJ, &h[i % 16]);
    return sum;
}

static void check_slide(fj_pool *pool)
{
    long n = fjt_rounds(5000) + 16, r = 0;

    CHECK_EQ(slide_invoke(pool, &r, (int)n), FJ_OK);
    CHECK_EQ(r, (n - 1) * n * (2 * n - 1) / 6);
}

FJ_TEST(window_of_handles_slides, 30)
{
    on_pools_and_common(check_slide);
}

/* Joins out of order at every level of a tree: tombstones lie below the tasks of other frames. */
FJ_TASK(long, crooked, int, n)
{
    if (n < 2) return 1;
    crooked_task a, b, c;
    crooked_fork(FJ, &a, n - 1);
    crooked_fork(FJ, &b, n - 2);
    long x = crooked_join(FJ, &a);
    crooked_fork(FJ, &c, n - 2);
    x += crooked_call(FJ, n - 2);
    x += crooked_join(FJ, &b);
    return x + crooked_join(FJ, &c);
}

static long crooked_serial(int n)
{
    return n < 2 ? 1 : crooked_serial(n - 1) + 3 * crooked_serial(n - 2);
}

static void check_crooked(fj_pool *pool)
{
    for (int n = 0; n <= 13; n++) {
        long r = 0;
        CHECK_EQ(crooked_invoke(pool, &r, n), FJ_OK);
        CHECK_EQ(r, crooked_serial(n));
    }
}

FJ_TEST(typed_tree_with_joins_out_of_order_gives_its_sum, 60)
{
    on_pools_and_common(check_crooked);
}

/* ---- Depth ---------------------------------------------------------------------------------- */

FJ_TASK(long, deep, int, n)
{
    if (n == 0) return 0;
    square_task a;
    square_fork(FJ, &a, 1, 0);
    long below = deep_call(FJ, n - 1);
    return below + square_join(FJ, &a);
}

static void check_deep(fj_pool *pool)
{
    static const int depths[] = {1,   62,  63,   64,   65,   66,   127,
                                 128, 129, 1000, 4095, 4096, 4097, 6000};
    long r = 0;

    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        CHECK_EQ(deep_invoke(pool, &r, depths[i]), FJ_OK);
        CHECK_EQ(r, depths[i]);
    }
}

FJ_TEST(typed_recursion_goes_deeper_than_the_first_cells, 30)
{
    on_pools_and_common(check_deep);
}

/* ---- Pools that end -------------------------------------------------------------------------- */

FJ_TEST(typed_invoke_on_a_pool_that_is_shut_down_is_rejected, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    long r = 12345;

    CHECK_EQ(fib_invoke(pool, &r, 5), FJ_OK);
    CHECK_EQ(r, 5);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    r = 12345;
    CHECK_EQ(fib_invoke(pool, &r, 5), FJ_EREJECTED);
    CHECK_EQ(r, 12345);
    fjt_destroy(pool);
}

FJ_TASK(long, stopped, fj_pool *, pool, int, n)
{
    square_task h[100];
    long sum = 0;

    for (int i = 0; i < 100; i++) square_fork(FJ, &h[i], i, 0);
    if (n == 0) CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    for (int i = 0; i < 100; i++) sum += square_join(FJ, &h[n % 2 == 0 ? i : 99 - i]);
    return n == 0 ? sum : sum + stopped_call(FJ, pool, n - 1);
}

FJ_TEST(typed_tasks_run_though_the_pool_is_stopped, 10)
{
    for (int n = 1; n <= 4; n++) {
        fj_pool *pool = fjt_pool(n, 0);
        long r = 0;
        CHECK_EQ(stopped_invoke(pool, &r, pool, 5), FJ_OK);
        CHECK_EQ(r, 6 * 328350);
        fjt_destroy(pool);
    }
}
