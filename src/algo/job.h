/* SPDX-License-Identifier: MIT */
/*
 * job.h - what all tasks of one call of an algorithm share
 *
 * The problem: a call forks tasks, and any of them may fail or find that the call is cancelled. The
 * other tasks must then stop soon, and the call returns the first error.
 *
 * A job holds one code, which is FJ_OK until an error, a cancellation, or the match of a search
 * ends the job. The first task that sets the code wins; later attempts have no effect. Every task
 * tests the code before it begins a chunk. The job is on the stack of the thread that made the
 * call, which returns only after all tasks of the call are joined. A loop inside of an algorithm
 * has a job of its own (fji_split_init_nested()), on the stack of the worker that runs the loop.
 *
 * A task may use the job until its forker has joined the task. Tasks write only `code`; the other
 * members are constant while tasks run.
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
    fj_progress *progress; /* NULL: no progress is reported */
    size_t grain;          /* elements in a chunk; 0: the algorithm chooses, from min_grain to
                            * max_grain */
    size_t min_grain; /* if grain is 0: a chunk should have at least this many elements; not 0 */
    size_t max_grain; /* if grain is 0: a chunk should have at most this many; SIZE_MAX: no limit */
    int code;         /* FJ_OK, or the error code that has ended the call of the algorithm */
    const fj_token *caller; /* the token of the calling task, if it has one and the tasks of the
                             * call run under another token or under none; else NULL */
} fji_job;

/*
 * Checks the options and sets up *j. If `how` is NULL, every option has its default. If the options
 * have an fj_progress that was initialized with the total 0, adds `amount`, a number of elements,
 * to its total.
 *
 *   returns  FJ_OK; FJ_EINVAL if a reserved option is not 0, or if min_grain > max_grain > 0. In
 *            that case *j is not set.
 */
int fji_job_init(fji_job *j, const fj_algo_options *how, uint64_t amount);

/*
 * Runs the task `root` in the pool and under the token that `how` selects, and waits for it. If
 * `how` is NULL, or selects no pool, this is the pool of the calling thread or, outside a pool, the
 * common pool. If the token or the calling task is already cancelled, `root` does not run.
 *
 *   returns  the code of the job if it is not FJ_OK. Otherwise the code that `root` returned or, if
 *            `root` did not run, the reason: FJ_ECANCELED, FJ_EREJECTED if the pool is shut down,
 *            FJ_ENOMEM, or another error of fj_invoke().
 */
int fji_job_run(fji_job *j, const fj_algo_options *how, fj_task *root);

/* Ends the job with `code`, which is not FJ_OK, and returns true. If the job had already ended,
 * changes nothing and returns false. */
bool fji_job_fail(fji_job *j, int code);

/* Returns whether the calling task may begin another chunk: the job has not ended. If the calling
 * task is cancelled (fj_is_cancelled(), also because its pool stops), or if the token j->caller is
 * cancelled, ends the job with FJ_ECANCELED and returns false. */
bool fji_job_should_continue(fji_job *j);

/* Adds n elements to the fj_progress of the options, if they have one. */
static inline void fji_job_add_progress(fji_job *j, size_t n)
{
    if (FJI_UNLIKELY(j->progress != NULL)) fj_progress_add(j->progress, n);
}

/*
 * Joins the task `t`, which the caller has forked. If `t` is still in the queue, removes `t` from
 * the queue without running it and returns false: the caller has to do the work of `t`. Otherwise a
 * thief has taken `t`, or fj_fork() has run `t` at once because it had no memory. The function then
 * waits until `t` is finished and returns true. If the code of `t` is not FJ_OK, ends the job with
 * that code.
 */
static inline bool fji_job_join(fji_job *j, fj_task *t)
{
    if (fj_unfork(t)) return false;
    int code = fj_join_stolen(t);
    if (code != FJ_OK) fji_job_fail(j, code);
    return true;
}

/* Returns how many elements a chunk has: the grain if the options set one. Otherwise n, the number
 * that the algorithm has chosen, but at least min_grain and at most max_grain of the options. */
static inline size_t fji_job_chunk_size(const fji_job *j, size_t n)
{
    if (j->grain != 0) return j->grain;
    return n < j->min_grain ? j->min_grain : n > j->max_grain ? j->max_grain : n;
}

/* Returns whether the calling thread may run a short algorithm itself, without a pool: it is not a
 * worker or guest of a pool, and `how` selects neither a pool nor a token. */
static inline bool fji_job_may_skip_pool(const fj_algo_options *how)
{
    return (how == NULL || (how->pool == NULL && how->token == NULL)) && fj_current_pool() == NULL;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

/* Returns whether n * size does not overflow and is at most PTRDIFF_MAX, as for any object of C. */
static inline bool fji_fits(size_t n, size_t size)
{
    size_t bytes;
    return !__builtin_mul_overflow(n, size, &bytes) && bytes <= PTRDIFF_MAX;
}

/* Returns whether `a` can be an array of n elements of `size` bytes: n * size is at most
 * PTRDIFF_MAX and does not overflow, and `a` is not NULL unless n is 0. */
static inline bool fji_array_ok(const void *a, size_t n, size_t size)
{
    return (a != NULL || n == 0) && fji_fits(n, size);
}

/* Returns whether the a_bytes bytes at `a` and the b_bytes bytes at `b` have a byte in common. */
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
