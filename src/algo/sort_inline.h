/* SPDX-License-Identifier: MIT */
/*
 * sort_inline.h - what both typed sorts begin with, and their merges
 */
#ifndef FJI_ALGO_SORT_INLINE_H
#define FJI_ALGO_SORT_INLINE_H

#include <forkjoin/sort.h>

#include "job.h"

/* Swaps two elements, which may be the same. */
void fji_sort_swap(char *x, char *y, size_t size);

/* Exchanges two stretches, which do not overlap. */
void fji_sort_exchange(char *x, char *y, size_t bytes);

/* The elements in the opposite order. */
void fji_sort_reverse(char *a, size_t n, size_t size);

/* Whether all is sorted, or was in strictly descending order and now is. Ends as soon as one
 * pair says otherwise, or the job does: false. */
bool fji_sort_presorted(fji_job *j, const fji_sort_kind *kind, char *a, size_t n);

/* Two sorted runs and where they go; out overlaps neither. */
typedef struct fji_sort_merge {
    fj_task task;
    const fji_sort_kind *kind;
    fji_job *job;
    const char *a, *b;
    size_t na, nb;
    char *out;
    size_t leaf;          /* elements that are merged by one worker at once; 0: some thousand */
    bool counts_progress; /* as the progress of the job */
} fji_sort_merge;

/* Merges them, by as many workers as want to. Not complete if the job has a code afterwards. */
void fji_sort_merge_range(fji_sort_merge m);

/* Cuts where the middle of the longer run belongs: *m becomes what lies left of it; returns the
 * rest. na + nb > 1. m->out may be NULL. */
fji_sort_merge fji_sort_merge_split(fji_sort_merge *m);

#endif /* FJI_ALGO_SORT_INLINE_H */
