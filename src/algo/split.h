/* SPDX-License-Identifier: MIT */
/*
 * split.h - the loop that forks its right half when another worker would take it
 *
 * The problem: a loop has to be divided among workers before it is known how long a body takes, how
 * uneven the bodies are, and how many workers are idle. A short loop must not pay for any of this.
 *
 * The idea: divide on demand, and measure while the loop runs. Loops, reductions, searches and
 * histograms are all this loop; only fj_reduce_deterministic() has a loop of its own. A step
 * function processes a chunk of the range, and adds what it finds to an accumulator, if the loop
 * has accumulators.
 *
 * A worker processes its range from the left, chunk by chunk. Before a chunk it tests whether other
 * workers would take a task. If so, it forks the right half of the rest and continues with the left
 * half. When the left half is done, the worker takes the right half back, unless a thief has taken
 * it. If no thief takes anything, a range therefore costs at most one fork for each halving, and
 * its chunks are processed in order, into one accumulator. Only a half that a thief takes has an
 * accumulator of its own. The forker combines the accumulator of the thief with the accumulator of
 * the left half.
 *
 *     range of one worker    |done...|chunk|......rest......|......right half, forked......|
 *
 * If the options set no grain, the size of a chunk is computed from the time that the chunk before
 * it took. A chunk should take a 64th of the time for the rest, but at least FJI_CHUNK_TICKS and at
 * most four times FJI_CHUNK_TICKS. The first chunk has one element, or min_grain elements. A half
 * is forked only if the rest of the range takes longer than FJI_FORK_MIN_TICKS. A short loop
 * therefore only calls its body and reads the tick counter a few times. If the options set a grain,
 * nothing is measured, and a half may be forked if the rest is more than one chunk. Before every
 * chunk a worker tests for a cancellation and, if the rest is long enough, for demand.
 *
 * FJI_FORK_MIN_TICKS is the price of waking a worker. If a worker is searching for a task already,
 * a fork costs much less, and FJI_FORK_AWAKE_TICKS is enough. A program that runs one short loop
 * after the other would never get there, because no single loop wakes a worker. So the loop also
 * forks if the loops that this thread has run recently took several times FJI_FORK_MIN_TICKS
 * together: the worker that this wakes searches for a while after it has taken part, and is still
 * awake when the next loops come.
 */
#ifndef FJI_ALGO_SPLIT_H
#define FJI_ALGO_SPLIT_H

#include "job.h"

/* A step function: processes the elements lo <= i < hi and adds the result to *acc. Returns FJ_OK,
 * or a code that ends the job. `acc` is NULL if the loop has no accumulators. */
typedef int fji_step(void *context, size_t lo, size_t hi, void *acc);

typedef struct fji_split {
    fji_job job;
    fji_step *step;
    void *context;          /* the first argument of step */
    fj_combine_fn *combine; /* NULL: the loop has no accumulators */
    void *arg;              /* the last argument of combine */
    const void *identity;   /* the initial value of a thief's accumulator; NULL: all bytes are 0 */
    size_t size;            /* bytes of an accumulator */
} fji_split;

/*
 * Runs the loop for begin <= i < end, with the pool and the token that `how` selects. The loop adds
 * its result to *acc, which the caller has initialized; `acc` is NULL if the loop has no
 * accumulators. The caller has set all members of *s, and s->job by fji_job_init(). Returns FJ_OK
 * if begin == end, and otherwise what fji_job_run() returns.
 */
int fji_split_run(fji_split *s, const fj_algo_options *how, size_t begin, size_t end, void *acc);

/*
 * Sets up *s as a loop without accumulators inside of an algorithm whose job is `outer`. The loop
 * has a job of its own. It is cancelled when the algorithm is cancelled, but an error of `outer`
 * does not end it, and an error of the loop does not end `outer`. Of *how, which must be valid, the
 * loop uses grain, min_grain, max_grain and progress. The loop runs in the pool of the calling
 * worker, so the caller passes NULL as `how` to fji_split_run().
 */
void fji_split_init_nested(fji_split *s, const fji_job *outer, fji_step *step, void *context,
                           const fj_algo_options *how);

/* Sets up a nested loop as fji_split_init_nested() does, without progress, and runs it for
 * 0 <= i < n with the given grain; grain 0 means that the chunk size is measured. Returns what
 * fji_split_run() returns. */
int fji_split_run_nested(const fji_job *outer, fji_step *step, void *context, size_t n,
                         size_t grain);

/* Durations in ticks, which are about nanoseconds. If the options set no grain, a chunk should take
 * at least FJI_CHUNK_TICKS, and a range is divided between workers only if it takes longer than
 * FJI_FORK_MIN_TICKS, or than FJI_FORK_AWAKE_TICKS if a worker is searching for a task: such a
 * worker steals a task within a microsecond, while a sleeping one first has to be woken. */
#define FJI_CHUNK_TICKS ((uint64_t)16000)
#define FJI_FORK_MIN_TICKS ((uint64_t)12000)
#define FJI_FORK_AWAKE_TICKS ((uint64_t)2200)

/* Returns whether another worker would soon take a task that is forked now. */
static inline bool fji_has_demand(void)
{
    return fj_worker_surplus() <= 0;
}

#endif /* FJI_ALGO_SPLIT_H */
