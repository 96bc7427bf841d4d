/* SPDX-License-Identifier: MIT */
/*
 * names.c - LESS may be a macro that uses the caller's variables, whatever their names are
 */
#include <forkjoin/sort.h>

#include "fjtest.h"

/* Variables of the caller have the same names as variables inside the macros, on purpose. */
#pragma GCC diagnostic ignored "-Wshadow"

enum { N = 300 };

static unsigned x[N], y[N], a[N], n = 1, i = 1;

#define BY_RANK(p, q) (x[p] * n + y[p] + a[p] * i < x[q] * n + y[q] + a[q] * i)

FJ_SORT(sort_ranked, unsigned, BY_RANK);
FJ_STABLE_SORT(stable_ranked, unsigned, BY_RANK);
FJ_MERGE(merge_ranked, unsigned, BY_RANK);

static void check_ranked(const unsigned *v)
{
    for (unsigned k = 0; k < N; k++) CHECK_EQ(v[k], N - 1 - k);
}

FJ_TEST(variables_of_the_user_are_meant_in_comparisons, 10)
{
    unsigned all[N], out[N];

    for (unsigned k = 0; k < N; k++) x[k] = N - k;
    for (unsigned k = 0; k < N; k++) all[k] = k * 7 % N;
    CHECK_EQ(sort_ranked(all, N, NULL), FJ_OK);
    check_ranked(all);

    for (unsigned k = 0; k < N; k++) all[k] = k * 7 % N;
    CHECK_EQ(stable_ranked(all, N, NULL), FJ_OK);
    check_ranked(all);

    for (unsigned k = 0; k < N; k++) all[k] = k < N / 2 ? N - 1 - 2 * k : 2 * (N - 1 - k);
    CHECK_EQ(merge_ranked(all, N / 2, all + N / 2, N / 2, out, NULL), FJ_OK);
    check_ranked(out);
}
