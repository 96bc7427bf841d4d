/* SPDX-License-Identifier: MIT */
/*
 * prefix.h - work of which each part needs what all parts left of it come to
 *
 * Running totals and filters are this. A part is emitted when its prefix is known: what stands
 * before it. To know that of later parts sooner, parts are folded first: that gives what a part
 * adds to the prefix, in less time than emitting it takes. prefix.c says who does what.
 */
#ifndef FJI_ALGO_PREFIX_H
#define FJI_ALGO_PREFIX_H

#include "job.h"

/* Takes lo <= i < hi into *acc; may leave something in the part's note for its emission. */
typedef int fji_prefix_fold(void *context, size_t lo, size_t hi, void *acc, uint64_t *note);

/* Makes the results of lo <= i < hi. *acc: the prefix; afterwards that of hi, which matters only
 * if `note` is NULL. note: as fold has left it; NULL if the part was not folded. */
typedef int fji_prefix_emit(void *context, size_t lo, size_t hi, void *acc, uint64_t *note);

typedef struct fji_prefix_loop {
    fji_job job;
    fji_prefix_fold *fold;
    fji_prefix_emit *emit;
    void *context;
    fj_combine_fn *combine;
    void *arg;            /* of combine */
    const void *identity; /* `size` bytes */
    size_t size;          /* of an accumulator, of which */
    size_t
        extra; /* so many more bytes follow, for fold and emit to use, if size > FJI_PREFIX_INLINE_BYTES */
    size_t stride;  /* bytes that an element touches; 0: few */
    bool has_notes; /* a part has a note of one bit for each element */
} fji_prefix_loop;

/* Accumulators up to this size are on the stack of whoever uses them. */
#define FJI_PREFIX_INLINE_BYTES 256

/*
 * Runs c from begin to end as `how` says; *total, unless NULL, gets the prefix of `end` on
 * FJ_OK. Everything but c->job is set, and that by fji_job_init(). begin <= end.
 */
int fji_prefix_run(fji_prefix_loop *c, const fj_algo_options *how, size_t begin, size_t end,
                   void *total);

#endif /* FJI_ALGO_PREFIX_H */
