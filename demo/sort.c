/* SPDX-License-Identifier: MIT */
/*
 * sort.c - a merge sort that sorts and merges in parallel
 *
 * A merge of two large runs is split in two: at the middle element of the longer run, and at the
 * position of that element in the other run. Otherwise one worker would do the last merges, which
 * are the largest, while all others have no work.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

enum {
    INSERTION = 24,      /* up to this number of elements: insertion sort */
    SORT_CUTOFF = 8192,  /* up to this number of elements: serial sort */
    MERGE_CUTOFF = 32768 /* up to this number of elements: serial merge */
};

typedef uint32_t number;

static struct {
    size_t n;
    number *serial, *parallel, *spare;
    uint64_t sum; /* of all numbers before the sort */
} numbers;

/* ---- serial pieces ---- */

static void insertion_sort(number *a, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        number x = a[i];
        size_t j = i;
        for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

static void merge_serial(const number *a, size_t na, const number *b, size_t nb, number *out)
{
    const number *a_end = a + na, *b_end = b + nb;

    /* No branch depends on the order of x and y, because it would often be mispredicted. */
    while (a < a_end && b < b_end) {
        number x = *a, y = *b;
        bool from_b = y < x;
        *out++ = from_b ? y : x;
        b += from_b;
        a += !from_b;
    }
    memcpy(out, a, (size_t)(a_end - a) * sizeof *a);
    out += a_end - a;
    memcpy(out, b, (size_t)(b_end - b) * sizeof *b);
}

/* Sorts a[0..n). The result is in `spare` if to_spare is true, otherwise in `a`. The contents of
 * the other array are undefined afterwards. */
static void sort_serial(number *a, number *spare, size_t n, bool to_spare)
{
    if (n <= INSERTION) {
        insertion_sort(a, n);
        if (to_spare) memcpy(spare, a, n * sizeof *a);
        return;
    }
    size_t half = n / 2;
    sort_serial(a, spare, half, !to_spare);
    sort_serial(a + half, spare + half, n - half, !to_spare);
    number *from = to_spare ? a : spare, *to = to_spare ? spare : a;
    merge_serial(from, half, from + half, n - half, to);
}

/* Splits the array as the tasks do, so that it reports the same steps. */
static void sort_all_serial(number *a, number *spare, size_t n, bool to_spare)
{
    if (n <= SORT_CUTOFF) {
        sort_serial(a, spare, n, to_spare);
        demo_step(n);
        return;
    }
    size_t half = n / 2;
    sort_all_serial(a, spare, half, !to_spare);
    sort_all_serial(a + half, spare + half, n - half, !to_spare);
    number *from = to_spare ? a : spare, *to = to_spare ? spare : a;
    merge_serial(from, half, from + half, n - half, to);
}

/* Returns the number of elements of the sorted run a[0..n) that are less than x. */
static size_t rank_of(number x, const number *a, size_t n)
{
    size_t low = 0;

    while (n > 0) {
        size_t half = n / 2;
        if (a[low + half] < x) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* ---- tasks ---- */

FJ_VOID_TASK(merge, const number *, a, size_t, na, const number *, b, size_t, nb, number *, out)
{
    if (na + nb <= MERGE_CUTOFF) {
        merge_serial(a, na, b, nb, out);
        return;
    }
    if (na < nb) {
        merge_call(FJ, b, nb, a, na, out);
        return;
    }
    size_t half = na / 2, rank = rank_of(a[half], b, nb);
    merge_task low;
    merge_fork(FJ, &low, a, half, b, rank, out);
    merge_call(FJ, a + half, na - half, b + rank, nb - rank, out + half + rank);
    merge_join(FJ, &low);
}

FJ_VOID_TASK(sort, number *, a, number *, spare, size_t, n, int, to_spare)
{
    if (n <= SORT_CUTOFF) {
        sort_serial(a, spare, n, to_spare != 0);
        demo_step(n);
        return;
    }
    size_t half = n / 2;
    sort_task low;
    sort_fork(FJ, &low, a, spare, half, !to_spare);
    sort_call(FJ, a + half, spare + half, n - half, !to_spare);
    sort_join(FJ, &low);
    number *from = to_spare ? a : spare, *to = to_spare ? spare : a;
    merge_call(FJ, from, half, from + half, n - half, to);
}

/* ---- the demo ---- */

static uint64_t prepare(const demo_options *o, char *what, size_t cap)
{
    uint64_t x = 1;

    numbers.n = o->quick ? 4000000 : 10000000;
    numbers.serial = demo_alloc(numbers.n, sizeof(number));
    numbers.parallel = demo_alloc(numbers.n, sizeof(number));
    numbers.spare = demo_alloc(numbers.n, sizeof(number));
    numbers.sum = 0;
    for (size_t i = 0; i < numbers.n; i++) {
        /* A linear congruential generator; its upper bits are random enough here. */
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        numbers.serial[i] = numbers.parallel[i] = (number)(x >> 32);
        numbers.sum += numbers.serial[i];
    }
    memset(numbers.spare, 0, numbers.n * sizeof(number));
    snprintf(what, cap, "%zu numbers", numbers.n);
    return numbers.n;
}

static void run_serial(void)
{
    sort_all_serial(numbers.serial, numbers.spare, numbers.n, false);
}

static int run_parallel(void)
{
    return sort_invoke(NULL, numbers.parallel, numbers.spare, numbers.n, 0);
}

static bool finish(const demo_options *o, char *note, size_t cap)
{
    bool right = memcmp(numbers.serial, numbers.parallel, numbers.n * sizeof(number)) == 0;
    uint64_t sum = numbers.parallel[0];

    (void)o, (void)note, (void)cap;
    for (size_t i = 1; i < numbers.n; i++) {
        if (numbers.parallel[i - 1] > numbers.parallel[i]) right = false;
        sum += numbers.parallel[i];
    }
    free(numbers.serial);
    free(numbers.parallel);
    free(numbers.spare);
    return right && sum == numbers.sum;
}

const demo demo_sort = {"merge sort", prepare, run_serial, run_parallel, finish};
