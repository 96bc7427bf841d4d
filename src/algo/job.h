/* SPDX-License-Identifier: MIT */
/*
 * job.h - what all parts of one call of an algorithm share
 *
 * A job has a code, FJ_OK until something ends it: the first to set it wins, and whoever is
 * about to begin a part looks at it. It is part of a struct on the stack of the caller, who
 * stays until every part has ended.
 *
 * Edges         from                         to                    carries
 *   algo.code   nothing: the code alone is read; what a part did reaches the caller through
 *               the join of its task
 */
#ifndef FJI_ALGO_JOB_H
#define FJI_ALGO_JOB_H

#include <forkjoin/algo.h>
#include <stdbool.h>

#include "../atomic.h"

typedef struct fji_job {
    fj_progress *progress;  /* may be NULL */
    size_t grain;           /* elements of a part; 0: to be found, between */
    size_t min_grain;       /* this, at least 1, and */
    size_t max_grain;       /* this */
    int code;               /* FJ_OK, or why it ends */
    const fj_token *caller; /* of the calling task, where its parts do not run with it */
} fji_job;

/*
 * Looks at the options and sets up *j. `amount` is what is added to the total of a progress
 * that counts for itself.
 *
 *   returns  FJ_OK, FJ_EINVAL.
 */
int fji_job_init(fji_job *j, const fj_algo_options *how, uint64_t amount);

/*
 * Runs the task where `how` says, with its token, and returns how the job ended: its code, or
 * else the task's. The task is not run if the job or the calling task is cancelled already.
 */
int fji_job_run(fji_job *j, const fj_algo_options *how, fj_task *root);

/* Ends the job with `code`, unless it has one: false. */
bool fji_job_fail(fji_job *j, int code);

/* Whether another part may be begun; says so to the others if the caller is cancelled. */
bool fji_job_should_continue(fji_job *j);

/* A part of n elements is done. */
static inline void fji_job_add_progress(fji_job *j, size_t n)
{
    if (FJI_UNLIKELY(j->progress != NULL)) fj_progress_add(j->progress, n);
}

/* Whether n elements of `size` bytes can lie in memory, both not 0. */
static inline bool fji_fits(size_t n, size_t size)
{
    size_t bytes;
    return !__builtin_mul_overflow(n, size, &bytes) && bytes <= PTRDIFF_MAX;
}

/* Whether two stretches of memory have a byte in common. */
static inline bool fji_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes != 0 && b_bytes != 0 && (x <= y ? y - x < a_bytes : x - y < b_bytes);
}

#endif /* FJI_ALGO_JOB_H */
