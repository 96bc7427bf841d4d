/* SPDX-License-Identifier: MIT */
/*
 * job.h - what all tasks of one call of an algorithm share
 *
 * The problem: a call forks tasks, and any of them may fail or find that the call is cancelled. The
 * other tasks must then stop soon, and the call returns the first error.
 *
 * A job holds one code, which is FJ_OK until something ends the job. The first task that sets the
 * code wins; later attempts have no effect. Every task tests the code before it begins a chunk. The
 * job is part of a record on the stack of the caller, which returns only after all tasks of the
 * call are joined.
 *
 * A task takes part in a job as long as its forker has not joined it. Tasks write only `code`; the
 * other members are constant while tasks run.
 *
 * Edges         from                         to                    carries
 *   algo.code   none. The code orders no other data. What a task did becomes visible to its forker
 *               by the join.
 */
#ifndef FJI_ALGO_JOB_H
#define FJI_ALGO_JOB_H

#include <forkjoin/algo.h>
#include <stdbool.h>

#include "plat/atomic.h"

typedef struct fji_job {
    fj_progress *progress;  /* NULL: no progress is reported */
    size_t grain;           /* elements of a chunk; 0: measured, from min_grain to max_grain */
    size_t min_grain;       /* at least 1 */
    size_t max_grain;       /* SIZE_MAX: no limit */
    int code;               /* FJ_OK, or why the job ends */
    const fj_token *caller; /* the token of the calling task, if the tasks of the call run under
                             * another token; else NULL */
} fji_job;

/*
 * Checks the options and sets up *j. Adds `amount` to the total of a progress that was initialized
 * without a total.
 *
 *   returns  FJ_OK; FJ_EINVAL if an option is invalid.
 */
int fji_job_init(fji_job *j, const fj_algo_options *how, uint64_t amount);

/*
 * Runs the task `root` in the pool and with the token that `how` selects. If the token or the
 * calling task is already cancelled, `root` does not run.
 *
 *   returns  the code of the job or, if that is FJ_OK, the code of the task.
 */
int fji_job_run(fji_job *j, const fj_algo_options *how, fj_task *root);

/* Ends the job with `code`. Returns false if the job had already ended. */
bool fji_job_fail(fji_job *j, int code);

/* Returns whether another chunk may begin. Ends the job if the call is cancelled. */
bool fji_job_should_continue(fji_job *j);

/* Reports that n elements are done. */
static inline void fji_job_add_progress(fji_job *j, size_t n)
{
    if (FJI_UNLIKELY(j->progress != NULL)) fj_progress_add(j->progress, n);
}

/*
 * Ends a fork. If no thief has taken the task `t`, the task is removed from the queue and the
 * function returns false: the caller has to do the work of the task. Otherwise the function waits
 * until the thief has finished the task and returns true. An error of the task ends the job.
 */
static inline bool fji_job_join(fji_job *j, fj_task *t)
{
    if (fj_unfork(t)) return false;
    int code = fj_join_stolen(t);
    if (code != FJ_OK) fji_job_fail(j, code);
    return true;
}

/* Returns the grain of the job or, if it has none, n within the bounds that the options set. */
static inline size_t fji_job_chunk_size(const fji_job *j, size_t n)
{
    if (j->grain != 0) return j->grain;
    return n < j->min_grain ? j->min_grain : n > j->max_grain ? j->max_grain : n;
}

/* Returns whether the calling thread may process a short call itself, without a pool: it is in no
 * pool, and `how` selects neither a pool nor a token. */
static inline bool fji_job_may_skip_pool(const fj_algo_options *how)
{
    return (how == NULL || (how->pool == NULL && how->token == NULL)) && fj_current_pool() == NULL;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

/* Returns whether an object of n elements of `size` bytes can exist. */
static inline bool fji_fits(size_t n, size_t size)
{
    size_t bytes;
    return !__builtin_mul_overflow(n, size, &bytes) && bytes <= PTRDIFF_MAX;
}

/* Returns whether `a` can be an array of n elements of `size` bytes. NULL is valid if n is 0. */
static inline bool fji_array_ok(const void *a, size_t n, size_t size)
{
    return (a != NULL || n == 0) && fji_fits(n, size);
}

/* Returns whether two memory areas have a byte in common. */
static inline bool fji_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes != 0 && b_bytes != 0 && (x <= y ? y - x < a_bytes : x - y < b_bytes);
}

static inline size_t fji_min(size_t x, size_t y)
{
    return x < y ? x : y;
}

/* Returns n / d, rounded up. */
static inline size_t fji_div_up(size_t n, size_t d)
{
    return n / d + (n % d != 0);
}

#endif /* FJI_ALGO_JOB_H */
