/* SPDX-License-Identifier: MIT */
/*
 * sort_inline.h - what the sorts and merges with an inlined comparison have in common
 *
 * FJ_SORT, FJ_STABLE_SORT and FJ_MERGE (forkjoin/sort.h) expand to functions for one type, with the
 * comparison inlined. An fji_sort_kind holds pointers to these functions, and the size and
 * alignment of the type. The files sort_inline*.c know the type only through an fji_sort_kind: they
 * call its functions, and copy elements as bytes.
 */
#ifndef FJI_ALGO_SORT_INLINE_H
#define FJI_ALGO_SORT_INLINE_H

#include <forkjoin/sort.h>

#include "job.h"

/* Checks the array and the options of a sort of n elements, and initializes its job. Returns FJ_OK,
 * or FJ_EINVAL if an argument is invalid. */
int fji_sort_init(fji_job *j, const fji_sort_kind *kind, const void *a, size_t n,
                  const fj_algo_options *how);

/* Returns the most elements of a range that one worker sorts: the grain of the job or, if the
 * grain is 0, 2048, but at least kind->at_once. */
size_t fji_sort_leaf(const fji_job *j, const fji_sort_kind *kind);

/*
 * Returns true if all n elements are in order, and also if they are strictly descending: then it
 * reverses them. Returns false for any other order, or if the job ends; nothing has moved then.
 */
bool fji_sort_presorted(fji_job *j, const fji_sort_kind *kind, char *a, size_t n);

/* A merge of two sorted runs, of na elements at a and nb elements at b, into `out`, which has space
 * for na + nb elements and overlaps neither run. */
typedef struct fji_sort_merge {
    fj_task task;
    const fji_sort_kind *kind;
    fji_job *job;
    const char *a, *b;
    size_t na, nb;
    char *out;
    size_t leaf;          /* a merge of at most this many elements is not divided; 0: 8192 elements;
                           * 1 counts as 2 */
    bool counts_progress; /* true: merged elements are added to the progress of the job */
} fji_sort_merge;

/* Merges m. A merge of more than m.leaf elements is divided into a left and a right merge. If there
 * is demand, the right one is forked. If m.job->code is not FJ_OK afterwards, the merge may be
 * incomplete. */
void fji_sort_merge_range(fji_sort_merge m);

/*
 * Divides a merge of na + nb > 1 elements into two merges whose results follow each other in `out`.
 * The element in the middle of the longer run, or of run a if both have the same length, becomes
 * the first one of its run in the right merge. *m becomes the left merge. Returns the right merge.
 * If m->out is NULL, `out` is NULL in both merges.
 */
fji_sort_merge fji_sort_merge_split(fji_sort_merge *m);

#endif /* FJI_ALGO_SORT_INLINE_H */
