/* SPDX-License-Identifier: MIT */
/*
 * halves.c - a cancel between the fork and the start of a task is not missed
 *
 * A call has two halves. Each step of the call in turn cancels the call or shuts the pool down, and
 * then sleeps long enough for the other worker to take the second half. That half is then skipped.
 * If the call did not check for this afterwards, it would return FJ_OK with an incomplete result.
 */
#include <forkjoin/sort.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "places.h"

static atomic_long steps;
static long ends_at;  /* the step that ends the call; -1: none */
static fj_pool *stop; /* the pool that it shuts down; NULL: it cancels the token */
static fj_token token;

static void step(void)
{
    if (atomic_fetch_add(&steps, 1) != ends_at) return;
    if (stop != NULL)
        CHECK_EQ(fj_pool_shutdown_now(stop), FJ_OK);
    else
        fj_token_cancel(&token);
    fjt_sleep_us(300);
}

/* ---- The calls ------------------------------------------------------------------------------ */

enum { N = 128 };

static unsigned data[N], merged[N];
static atomic_int times[2];

/* Makes a call that has two chunks. If the code is FJ_OK, checks that the result is complete. */
typedef int call(const fj_algo_options *how);

static int body(size_t begin, size_t end, void *arg)
{
    (void)arg;
    for (size_t i = begin; i < end; i++) atomic_fetch_add(&times[i], 1);
    step();
    return FJ_OK;
}

static int by_for(const fj_algo_options *how)
{
    memset(times, 0, sizeof times);
    int code = fj_for(0, 2, body, NULL, how);
    if (code == FJ_OK) CHECK(atomic_load(&times[0]) == 1 && atomic_load(&times[1]) == 1);
    return code;
}

static int fold(size_t begin, size_t end, void *acc, void *arg)
{
    (void)arg;
    *(size_t *)acc += end - begin;
    step();
    return FJ_OK;
}

static int add(void *left, const void *right, void *arg)
{
    (void)arg;
    *(size_t *)left += *(const size_t *)right;
    return FJ_OK;
}

static int emit(size_t begin, size_t end, void *acc, void *arg)
{
    (void)acc;
    return body(begin, end, arg);
}

static int by_reduce(const fj_algo_options *how)
{
    size_t none = 0, sum = 7;
    int code = fj_reduce(0, 2, fold, add, &none, sizeof none, NULL, &sum, how);
    CHECK_EQ(sum, code == FJ_OK ? 2 : 7);
    return code;
}

static int by_reduce_fixed(const fj_algo_options *how)
{
    size_t none = 0, sum = 7;
    int code = fj_reduce_deterministic(0, 2, fold, add, &none, sizeof none, NULL, &sum, how);
    CHECK_EQ(sum, code == FJ_OK ? 2 : 7);
    return code;
}

static int by_scan(const fj_algo_options *how)
{
    size_t none = 0, sum = 7;
    memset(times, 0, sizeof times);
    int code = fj_scan(0, 2, fold, add, emit, &none, sizeof none, 0, NULL, &sum, how);
    if (code == FJ_OK) CHECK(atomic_load(&times[0]) == 1 && atomic_load(&times[1]) == 1);
    return code;
}

static int compare(const void *x, const void *y, void *arg)
{
    unsigned a = *(const unsigned *)x, b = *(const unsigned *)y;

    (void)arg;
    step();
    return (a > b) - (a < b);
}

static inline int less(unsigned x, unsigned y)
{
    step();
    return x < y;
}

FJ_SORT(quick, unsigned, less);
FJ_STABLE_SORT(stable, unsigned, less);
FJ_MERGE(merge, unsigned, less);

static void check_sorted(const unsigned *a)
{
    for (unsigned i = 0; i < N; i++) CHECK_EQ(a[i], i);
}

static void shuffle(void)
{
    for (unsigned i = 0; i < N; i++) data[i] = i * 37 % N;
}

static int sorted(int code)
{
    if (code == FJ_OK) check_sorted(data);
    return code;
}

static int by_sort(const fj_algo_options *how)
{
    shuffle();
    return sorted(fj_sort(data, N, sizeof *data, compare, NULL, how));
}

static int by_stable_sort(const fj_algo_options *how)
{
    shuffle();
    return sorted(fj_stable_sort(data, N, sizeof *data, compare, NULL, how));
}

static int by_quick(const fj_algo_options *how)
{
    shuffle();
    return sorted(quick(data, N, how));
}

static int by_stable(const fj_algo_options *how)
{
    shuffle();
    return sorted(stable(data, N, how));
}

/* Makes two runs whose elements alternate in the merged result. */
static void split_runs(void)
{
    for (unsigned i = 0; i < N; i++) data[i] = i < N / 2 ? 2 * i : 2 * i - N + 1;
    memset(merged, 0, sizeof merged);
}

static int by_merge(const fj_algo_options *how)
{
    split_runs();
    int code = fj_merge(data, N / 2, data + N / 2, N / 2, sizeof *data, merged, compare, NULL, how);
    if (code == FJ_OK) check_sorted(merged);
    return code;
}

static int by_typed_merge(const fj_algo_options *how)
{
    split_runs();
    int code = merge(data, N / 2, data + N / 2, N / 2, merged, how);
    if (code == FJ_OK) check_sorted(merged);
    return code;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

/* Runs the call and ends it at step `at`. Returns the number of steps. */
static long one_end(call *run, size_t grain, bool stops, long at, long *ended)
{
    fj_pool *pool = fjt_pool(2, 0);

    atomic_store(&steps, 0);
    ends_at = at;
    stop = stops ? pool : NULL;
    fj_token_init(&token, NULL);
    int code = run(&(fj_algo_options){.pool = pool, .token = &token, .grain = grain});
    CHECK(code == FJ_OK || (code == FJ_ECANCELED && at >= 0));
    *ended += code != FJ_OK;
    fjt_destroy(pool);
    return atomic_load(&steps);
}

static void end_at_each_step(call *run, size_t grain)
{
    long ended = 0;

    for (int stops = 0; stops < 2; stops++) {
        long all = one_end(run, grain, stops, -1, &ended);
        for (long at = 0; at < all; at += 1 + all / 200)
            (void)one_end(run, grain, stops, at, &ended);
    }
    CHECK(ended > 0);
}

FJ_TEST(half_of_a_loop, 30)
{
    end_at_each_step(by_for, 1);
}

FJ_TEST(half_of_a_reduction, 30)
{
    end_at_each_step(by_reduce, 1);
    end_at_each_step(by_reduce_fixed, 1);
}

FJ_TEST(half_of_a_scan, 30)
{
    end_at_each_step(by_scan, 1);
}

FJ_TEST(half_of_a_sort, 30)
{
    end_at_each_step(by_sort, N / 4);
    end_at_each_step(by_stable_sort, N / 4);
}

FJ_TEST(half_of_a_typed_sort, 30)
{
    end_at_each_step(by_quick, N / 4);
    end_at_each_step(by_stable, N / 4);
}

FJ_TEST(half_of_a_merge, 30)
{
    end_at_each_step(by_merge, N / 8);
    end_at_each_step(by_typed_merge, N / 2);
}
