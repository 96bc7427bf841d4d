/* SPDX-License-Identifier: MIT */
/*
 * prefix.h - loops in which each chunk needs the combined value of all chunks left of it
 *
 * Scans and filters are such loops. The caller supplies the functions that are named here.
 *
 *   prefix   of a chunk: the combined value of all elements left of the chunk
 *   fold     combine the elements of one chunk. The result, the fold of the chunk, is combined with
 *            the prefix of the chunk to get the prefix of the next chunk.
 *   emit     write the results of one chunk. This needs the prefix of the chunk. It also yields the
 *            prefix of the next chunk, if the chunk was not folded before.
 *   note     of a chunk: one bit for each element, which the fold stores and the emit reads.
 *            Filters have notes, and scans have none.
 *
 * A worker folds chunks whose prefix is not known yet, so that the prefixes of later chunks are
 * known sooner. prefix.c has the protocol.
 */
#ifndef FJI_ALGO_PREFIX_H
#define FJI_ALGO_PREFIX_H

#include "job.h"

/* Folds the chunk lo <= i < hi: combines its elements into *acc, which is the identity at first. If
 * the loop has notes, stores one bit for each element in `note`; otherwise does not use `note`.
 * Returns FJ_OK, or a code that ends the job. */
typedef int fji_prefix_fold(void *context, size_t lo, size_t hi, void *acc, uint64_t *note);

/*
 * Emits the chunk lo <= i < hi: writes its results. *acc is the combined value of all elements left
 * of lo. `note` is NULL if the chunk was not folded; the function then has to change *acc to the
 * combined value of all elements left of hi. If the chunk was folded, `note` is not NULL. It is
 * what the fold has stored if the loop has notes, and must not be read otherwise; the value that
 * the function leaves in *acc is ignored. Returns FJ_OK, or a code that ends the job.
 */
typedef int fji_prefix_emit(void *context, size_t lo, size_t hi, void *acc, uint64_t *note);

typedef struct fji_prefix_loop {
    fji_job job;
    fji_prefix_fold *fold;
    fji_prefix_emit *emit;
    void *context;
    fj_combine_fn *combine;
    void *arg;            /* the last argument of combine */
    const void *identity; /* the value of an accumulator before any element is combined */
    size_t size;          /* bytes of an accumulator */
    size_t extra;         /* bytes that fold and emit may use behind an accumulator that is larger
                           * than FJI_PREFIX_INLINE_BYTES; behind a smaller one they use none */
    size_t stride;        /* bytes of memory that emit accesses for one element; 0: as 1. Limits the
                           * size of a chunk if the options set no grain */
    bool has_notes;       /* true: a fold stores a note, one bit for each element */
} fji_prefix_loop;

/* An accumulator of at most this many bytes is on the stack of a thread when it is passed to fold
 * or emit. A larger accumulator is in allocated memory and is passed from there. */
#define FJI_PREFIX_INLINE_BYTES 256

/*
 * Runs the loop over begin <= i < end, begin <= end, in the pool and under the token that `how`
 * selects. The caller has set all members of *loop, and loop->job by fji_job_init(). If the
 * function returns FJ_OK and `total` is not NULL, *total is the combined value of all elements: the
 * identity if the range is empty.
 *
 *   returns  FJ_ENOMEM if an accumulator has more than FJI_PREFIX_INLINE_BYTES bytes and there is
 *            no memory for the first one. FJ_OK if the range is empty. Otherwise what fji_job_run()
 *            returns.
 */
int fji_prefix_run(fji_prefix_loop *loop, const fj_algo_options *how, size_t begin, size_t end,
                   void *total);

#endif /* FJI_ALGO_PREFIX_H */
