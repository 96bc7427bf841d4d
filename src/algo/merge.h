/* SPDX-License-Identifier: MIT */
/*
 * merge.h - an order of elements, and merges of two sorted runs, sequential and parallel
 *
 * A run is a sorted array. A merge does not write to its two runs, and `out` overlaps neither of
 * them. If a merge is not completed, the caller can therefore repeat or abandon it.
 *
 * The caller's comparison may contradict itself. Whatever it returns, a completed merge copies
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
    FJI_KIND_INDIRECT, /* 8 bytes; the elements are probably pointers to what the comparison
                        * reads */
    FJI_KIND_16,       /* 9 to 16 bytes */
    FJI_KIND_32,       /* 17 to 32 bytes */
    FJI_KIND_ANY,      /* any size */
    FJI_KIND_PTR,      /* pointers to the elements are moved; the elements are stored elsewhere */
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

/* Returns whether the arguments are valid for elements of `size` bytes: no array is missing or too
 * large, and `out` overlaps neither run. */
bool fji_run_pair_args_ok(const fji_run_pair *p, size_t size);

/* Returns the kind for elements of `size` bytes that are moved directly, not through pointers. */
enum fji_kind fji_kind_of(size_t size);

/* Returns how many of the first n elements of the merged result come from run a. n <= na + nb. */
size_t fji_merge_rank(const fji_order *o, const fji_run_pair *p, size_t n);

/* Merges *p on the calling thread. Both runs of *p are empty afterwards. */
void fji_merge_sequential(const fji_order *o, fji_run_pair *p);

/* What the tasks of a parallel merge share. */
typedef struct fji_merge_context {
    fji_order order;
    fji_job *job;
    size_t chunk;         /* how many elements, about, are merged between two tests of the job */
    bool parallel;        /* true: a task that merges a half may be forked */
    bool counts_progress; /* true: merged elements are added to the progress of the job */
} fji_merge_context;

/* Merges *p. If there is demand, forks tasks that merge halves. If the code of the job is not FJ_OK
 * afterwards, the merge may be incomplete. */
void fji_merge_parallel(const fji_merge_context *m, const fji_run_pair *p);

/*
 * Returns how many comparisons take about FJI_CHUNK_TICKS, at least 1 and at most `max`. Measures a
 * few comparisons of the first two of the n elements at `first`. If n < 2, returns `max`.
 */
size_t fji_order_chunk_size(const fji_order *o, const void *first, size_t n, size_t max);

#endif /* FJI_ALGO_MERGE_H */
