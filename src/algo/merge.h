/* SPDX-License-Identifier: MIT */
/*
 * merge.h - an order of elements, and merges of two sorted runs, sequential and parallel
 *
 * A run is a sorted array. A merge does not write to its two runs, and `out` overlaps neither of
 * them. If a merge is not completed, the caller can therefore repeat or abandon it.
 *
 * The user's comparison may contradict itself. Whatever it returns, a completed merge copies
 * every element of both runs to `out` exactly once, and passes only addresses of elements to the
 * comparison. The lengths of the runs limit which memory is accessed, not the results of
 * comparisons.
 */
#ifndef FJI_ALGO_MERGE_H
#define FJI_ALGO_MERGE_H

#include "job.h"

/* How elements are copied and compared. The inner loops are compiled separately for each kind. */
enum fji_kind {
    FJI_KIND_4,        /* exactly 4 bytes */
    FJI_KIND_8,        /* exactly 8 bytes */
    FJI_KIND_INDIRECT, /* exactly 8 bytes; the elements are probably pointers to what the comparison
                        * reads, so the memory at these addresses is prefetched */
    FJI_KIND_16,       /* 9 to 16 bytes */
    FJI_KIND_32,       /* 17 to 32 bytes */
    FJI_KIND_ANY,      /* any size */
    FJI_KIND_PTR,      /* pointers to the elements are moved; the elements, which the comparison
                        * gets, are stored elsewhere and are not moved */
};

typedef struct fji_order {
    fj_compare_fn *cmp;
    void *arg;
    size_t size; /* bytes of an element or, with FJI_KIND_PTR, of a pointer to an element */
    enum fji_kind kind;
} fji_order;

/* Two sorted runs, a with na elements and b with nb elements, and the array that they are merged
 * to: `out` has space for na + nb elements. */
typedef struct fji_run_pair {
    const unsigned char *a, *b;
    unsigned char *out;
    size_t na, nb;
} fji_run_pair;

/* Returns whether *p is valid for elements of `size` bytes: `size` is not 0, no array is larger
 * than PTRDIFF_MAX bytes, no array is NULL unless it has no elements, and `out` overlaps neither
 * run. */
bool fji_run_pair_args_ok(const fji_run_pair *p, size_t size);

/* Returns the kind for elements of `size` bytes that are moved themselves, not by pointers to them.
 * Never returns FJI_KIND_INDIRECT or FJI_KIND_PTR. */
enum fji_kind fji_kind_of(size_t size);

/* Returns how many of the first n elements of the merged result come from run a, n <= na + nb. Of
 * equal elements, those of run a come first. */
size_t fji_merge_rank(const fji_order *o, const fji_run_pair *p, size_t n);

/* Merges the runs of *p into p->out, on the calling thread. Changes *p: afterwards na and nb are 0,
 * and the pointers in *p are no longer the original ones. */
void fji_merge_sequential(const fji_order *o, fji_run_pair *p);

/* What the tasks of a parallel merge share. */
typedef struct fji_merge_context {
    fji_order order;
    fji_job *job;
    size_t chunk;         /* about how many elements a worker merges before it tests again whether
                           * the job has ended and whether there is demand */
    bool parallel;        /* true: a task that merges a half may be forked; false: one worker
                           * merges everything */
    bool counts_progress; /* true: merged elements are added to the progress of the job */
} fji_merge_context;

/* Merges the runs of *p into p->out, and does not change *p. If m->parallel is true, there is
 * demand and more than two chunks are left, forks a task that merges a half of them. If the code of
 * the job is not FJ_OK afterwards, the merge may be incomplete. */
void fji_merge_parallel(const fji_merge_context *m, const fji_run_pair *p);

/*
 * Returns how many comparisons take about FJI_CHUNK_TICKS, at least 1 and at most `max`. Calls the
 * comparison a few times with the first two of the n elements at `first`, and measures the time. If
 * n < 2, compares nothing and returns `max`.
 */
size_t fji_order_chunk_size(const fji_order *o, const void *first, size_t n, size_t max);

#endif /* FJI_ALGO_MERGE_H */
