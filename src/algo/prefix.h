/* SPDX-License-Identifier: MIT */
/*
 * prefix.h - loops in which each chunk needs the combined value of all chunks left of it
 *
 * Scans and filters are such loops. The prefix of a chunk is the combined value of all elements
 * left of it. A chunk can be emitted, which means that its results are written, when its prefix is
 * known. In order to know the prefixes of later chunks sooner, workers fold chunks ahead: to fold a
 * chunk is to compute what it adds to the prefix, which takes less time than to emit it.
 * prefix.c has the protocol.
 */
#ifndef FJI_ALGO_PREFIX_H
#define FJI_ALGO_PREFIX_H

#include "job.h"

/* Folds lo <= i < hi into *acc. May store one bit for each element in `note`, for the emission.
 * Returns FJ_OK, or a code that ends the job. */
typedef int fji_prefix_fold(void *context, size_t lo, size_t hi, void *acc, uint64_t *note);

/*
 * Emits lo <= i < hi. *acc is the prefix of lo. `note` is what the fold has stored, or NULL if the
 * chunk was not folded. If `note` is NULL, the function has to change *acc to the prefix of hi.
 */
typedef int fji_prefix_emit(void *context, size_t lo, size_t hi, void *acc, uint64_t *note);

typedef struct fji_prefix_loop {
    fji_job job;
    fji_prefix_fold *fold;
    fji_prefix_emit *emit;
    void *context;
    fj_combine_fn *combine;
    void *arg;            /* the last argument of combine */
    const void *identity; /* the first value of an accumulator */
    size_t size;          /* bytes of an accumulator */
    size_t extra;         /* bytes that fold and emit may use behind an accumulator that is larger
                           * than FJI_PREFIX_INLINE_BYTES */
    size_t stride;        /* bytes of memory that are accessed for one element; 0: few */
    bool has_notes;       /* a fold stores one bit for each element */
} fji_prefix_loop;

/* An accumulator of at most this size is copied to the stack of the worker that uses it. A larger
 * accumulator is used in place, in allocated memory. */
#define FJI_PREFIX_INLINE_BYTES 256

/*
 * Runs the loop from begin to end, begin <= end, as `how` selects. If it returns FJ_OK and `total`
 * is not NULL, *total is the prefix of `end`. The caller has set all members of *loop, and
 * loop->job by fji_job_init().
 */
int fji_prefix_run(fji_prefix_loop *loop, const fj_algo_options *how, size_t begin, size_t end,
                   void *total);

#endif /* FJI_ALGO_PREFIX_H */
