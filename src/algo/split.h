/* SPDX-License-Identifier: MIT */
/*
 * split.h - the loop that hands out its second half when somebody is there to take it
 *
 * Loops, reductions and searches are all this one: a step does a part of the range, and what
 * it finds goes into an accumulator.
 *
 * A worker goes through its range from the left, part by part. Before each part it looks
 * whether the others have too little to do: then it forks the right half of what is left, and
 * goes on with the left one. When that is done it takes the right half back, unless somebody
 * has it by then: so a range that nobody helps with costs one fork for each halving, and its
 * parts are done in order, into one accumulator. Only a half that was taken has an accumulator
 * of its own, combined with the left one by whoever forked it.
 *
 *     range of one worker    |done...|part|......left......|......forked......|
 *
 * Without a given grain a part is as large as takes FJI_CHUNK_TICKS, or a small share of what is
 * left if that is more, up to four times that, by the time that the last one took; the first is
 * of one element. A half is forked only if what is left is worth the waking of a worker. So a
 * short loop is only the calls of its body and a few looks at the time, and no worker waits
 * longer for work, nor a cancel for its effect, than a part takes.
 */
#ifndef FJI_ALGO_SPLIT_H
#define FJI_ALGO_SPLIT_H

#include "job.h"

/* Does lo <= i < hi. acc: the accumulator, NULL if there are none. */
typedef int fji_step(void *context, size_t lo, size_t hi, void *acc);

typedef struct fji_split {
    fji_job job;
    fji_step *step;
    void *context;
    /* If not NULL there are accumulators of `size` bytes, which begin as *identity, or as zeros. */
    fj_combine_fn *combine;
    void *arg;            /* of combine */
    const void *identity; /* NULL: zeros */
    size_t size;
} fji_split;

/* Runs s from begin to end as `how` says, into *acc, which has its first value. Everything but
 * s->job is set, and that by fji_job_init(). begin <= end. */
int fji_split_run(fji_split *s, const fj_algo_options *how, size_t begin, size_t end, void *acc);

/* About nanoseconds: how long a part takes, and what is worth to be taken by somebody else. */
#define FJI_CHUNK_TICKS ((uint64_t)16000)
#define FJI_FORK_MIN_TICKS ((uint64_t)12000)

/* Whether others would take what is forked now. */
static inline bool fji_has_demand(void)
{
    return fj_worker_surplus() <= 0;
}

#endif /* FJI_ALGO_SPLIT_H */
