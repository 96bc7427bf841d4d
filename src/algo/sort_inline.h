/* SPDX-License-Identifier: MIT */
/*
 * sort_inline.h - what the sorts and merges with an inlined comparison have in common
 *
 * FJ_SORT, FJ_STABLE_SORT and FJ_MERGE (forkjoin/sort.h) expand to functions for one type, with the
 * comparison inlined. An fji_sort_kind holds pointers to them. The files sort_inline*.c know only
 * these functions and the size of an element.
 */
#ifndef FJI_ALGO_SORT_INLINE_H
#define FJI_ALGO_SORT_INLINE_H

#include <forkjoin/sort.h>

#include "job.h"

/* Checks the arguments of a sort and initializes its job. */
int fji_sort_init(fji_job *j, const fji_sort_kind *kind, const void *a, size_t n,
                  const fj_algo_options *how);

/* Returns the elements of a range that one worker sorts: the grain or LEAF, at least at_once. */
size_t fji_sort_leaf(const fji_job *j, const fji_sort_kind *kind);

/*
 * Returns whether all n elements are in order. Reverses them first if they are strictly descending.
 * Returns false at the first pair that breaks the order, or if the job ends.
 */
bool fji_sort_presorted(fji_job *j, const fji_sort_kind *kind, char *a, size_t n);

/* Two sorted runs and where they are merged to. `out` overlaps neither run. */
typedef struct fji_sort_merge {
    fj_task task;
    const fji_sort_kind *kind;
    fji_job *job;
    const char *a, *b;
    size_t na, nb;
    char *out;
    size_t leaf;          /* elements that one worker merges; 0: a default */
    bool counts_progress; /* the elements count as progress of the job */
} fji_sort_merge;

/* Merges m, and forks its right side if there is demand. If the job has a code afterwards, the
 * merge may be incomplete. */
void fji_sort_merge_range(fji_sort_merge m);

/*
 * Divides a merge of na + nb > 1 elements, at the middle of the longer run, into two merges whose
 * results follow each other. *m becomes the left merge. Returns the right merge. m->out may be
 * NULL.
 */
fji_sort_merge fji_sort_merge_split(fji_sort_merge *m);

#endif /* FJI_ALGO_SORT_INLINE_H */
