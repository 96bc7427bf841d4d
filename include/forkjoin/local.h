/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/local.h - looking into queues, and taking from them by hand
 *
 * Included by <forkjoin.h>. For schedulers on top of the pool, and for tasks that decide by
 * what is queued whether to split further.
 */
#ifndef FORKJOIN_LOCAL_H
#define FORKJOIN_LOCAL_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

FJI_EXTERN_C_BEGIN

/*
 * Tasks in the calling worker's queue, about; how many more that is than idle workers could
 * take soon (negative: too few; a divide-and-conquer task may split while it is below 3); 0
 * outside.
 *
 *   Java     getQueuedTaskCount(), getSurplusQueuedTaskCount().
 */
FJ_API int fj_worker_queued(void);
FJ_API int fj_worker_surplus(void);

/*
 * The task that the calling worker would run next of its own queue, only to be compared with
 * a pointer one has: it may be run and freed at any moment. NULL if there is none, or if it
 * is one of a kind that has no address (typed ones, actions).
 *
 *   Java     peekNextLocalTask().
 */
FJ_API const void *fj_peek_local(void);

/*
 * Takes a future back that the calling worker has forked, or that waits in a submission
 * queue, if nobody has begun to run it.
 *
 *   owns     1: the caller; it is as new. 0: the library, as before.
 *   Java     tryUnfork().
 */
FJ_API int fj_future_unfork(fj_future *f);

/* A task that was taken out of a queue. The members are private. */
typedef struct fj_taken {
    uintptr_t word[5];
} fj_taken;

/*
 * Take the next task of the calling worker's own queue, if it is not one that a frame below
 * has forked and will join (in FIFO order also such a one: run it, its joiner waits); of that, or else of any other queue
 * of its pool; a submission of its pool; or, from any thread, submissions and then other
 * tasks of `pool` (NULL: the common pool), up to n of them.
 *
 *   owns     the caller of what it got: whoever waits for it waits until fj_taken_run() or
 *            fj_taken_cancel() is called on it, once.
 *   returns  1 or 0, the number taken; 0 outside a pool.
 *   Java     pollNextLocalTask(), pollTask(), pollSubmission(), drainTasksTo().
 */
FJ_API int fj_take_local(fj_taken *taken);
FJ_API int fj_take_task(fj_taken *taken);
FJ_API int fj_take_submission(fj_taken *taken);
FJ_API size_t fj_pool_drain(fj_pool *pool, fj_taken *taken, size_t n);

/* The address of its fj_task; NULL for typed ones and actions. */
FJ_API fj_task *fj_taken_task(const fj_taken *taken);

/* Runs it in the calling thread; or ends it without running, as shutdown_now does. The code of an
 * action goes to the `on_error` of the pool whose worker runs it; outside a pool it is dropped. */
FJ_API void fj_taken_run(fj_taken *taken);
FJ_API void fj_taken_cancel(fj_taken *taken);

FJI_EXTERN_C_END

#endif /* FORKJOIN_LOCAL_H */
