/* SPDX-License-Identifier: MIT */
/*
 * sort_inline.c - what the sorts with an inlined comparison have in common
 */
#include "sort_inline.h"

#include "swap.h"

enum {
    LEAF = 2048, /* the most elements of a range that one worker sorts, if no grain is set */
    CHECK_EVERY = 1 << 16, /* fji_sort_presorted() compares this many pairs of neighbours, and then
                            * tests whether the job has ended */
};

int fji_sort_init(fji_job *j, const fji_sort_kind *kind, const void *a, size_t n,
                  const fj_algo_options *how)
{
    return fji_array_ok(a, n, kind->size) ? fji_job_init(j, how, n) : FJ_EINVAL;
}

size_t fji_sort_leaf(const fji_job *j, const fji_sort_kind *kind)
{
    size_t leaf = j->grain != 0 ? j->grain : LEAF;

    return leaf < kind->at_once ? kind->at_once : leaf;
}

bool fji_sort_presorted(fji_job *j, const fji_sort_kind *kind, char *a, size_t n)
{
    int first = 0, descending = 0;

    for (size_t at = 0; n - at > 1;) {
        size_t pairs = fji_min(n - at - 1, CHECK_EVERY);
        size_t run = kind->run(a + at * kind->size, pairs + 1, &descending);
        if (at == 0) first = descending;
        if (descending != first || run != pairs + 1 || !fji_job_should_continue(j)) return false;
        at += pairs;
    }
    if (first) fji_reverse(a, n, kind->size);
    return true;
}
