/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/local.h - inspecting the queues of a pool, and taking tasks out of them
 *
 * Included by <forkjoin.h>. These functions are for schedulers on top of the pool, and for tasks
 * that split their work only while few tasks are queued.
 */
#ifndef FORKJOIN_LOCAL_H
#define FORKJOIN_LOCAL_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

FJI_EXTERN_C_BEGIN

/*
 * Returns an estimate of the number of tasks in the queue of the calling worker.
 *
 *   returns  the number; 0 in a thread outside a pool.
 *   Java     ForkJoinTask.getQueuedTaskCount().
 */
FJ_API int fj_worker_queued(void);

/*
 * Returns an estimate of how many tasks the calling worker has queued beyond those that idle
 * workers may steal soon. A divide-and-conquer task may use the surplus to choose whether to split,
 * for example: split while the surplus is less than 3.
 *
 *   returns  the surplus, negative if too few tasks are queued; 0 in a thread outside a pool.
 *   Java     ForkJoinTask.getSurplusQueuedTaskCount().
 */
FJ_API int fj_worker_surplus(void);

/*
 * Returns the address of the task that the calling worker would take next from its own queue: the
 * youngest, or with FJ_POOL_FIFO the oldest. Only compare the address with a pointer that you have,
 * and do not access the task, because another thread may run and free the task at any time.
 *
 *   returns  the address of the fj_task; NULL if the queue is empty, if the task is an action or a
 *            typed task, which have no address, or in a thread outside a pool.
 *   Java     ForkJoinTask.peekNextLocalTask().
 */
FJ_API const void *fj_peek_local(void);

/*
 * Takes the queued future `f` back if no thread has begun to run `f` and `f` is not done.
 *
 *   from     any thread, if `f` is in a submission queue. If `f` is in the queue of a worker, only
 *            that worker can take it back; in other threads the call returns 0.
 *   owns     if the call returns 1, the caller owns `f` and may submit it again. If the call
 *            returns 0, the library still owns `f`.
 *   returns  1 if the future was taken back, otherwise 0.
 *   Java     ForkJoinTask.tryUnfork().
 */
FJ_API int fj_future_unfork(fj_future *f);

/*
 * A task that was taken out of a queue. The members are private. A thread that joins the task waits
 * until fj_taken_run() or fj_taken_cancel() is called for it, so the thread that took the task must
 * call one of these two functions.
 */
typedef struct fj_taken {
    uintptr_t word[5];
} fj_taken;

/*
 * Takes the youngest task out of the calling worker's own queue, if that task is an action, a
 * future, a completer or a submitted task. The call takes nothing if the youngest task was forked
 * by fj_fork() or is a typed task, because the function that forked such a task joins it.
 *
 * In a pool with FJ_POOL_FIFO the call takes the oldest task of the queue, of whatever kind. If a
 * function further up the caller's stack forked that task, call fj_taken_run() before you return to
 * that function, because that function joins the task.
 *
 *   owns     the caller owns the task in *taken.
 *   returns  1 if the call took a task; 0 if it took none, or in a thread outside a pool.
 *   Java     ForkJoinTask.pollNextLocalTask().
 */
FJ_API int fj_take_local(fj_taken *taken);

/*
 * Takes a task as fj_take_local() does. If fj_take_local() would take none, the call takes a task
 * from the queue of another worker of the caller's pool or from a submission queue of that pool.
 *
 *   owns     the caller owns the task in *taken.
 *   returns  1 if the call took a task; 0 if it took none, or in a thread outside a pool.
 *   Java     ForkJoinTask.pollTask().
 */
FJ_API int fj_take_task(fj_taken *taken);

/*
 * Takes a task from a submission queue of the calling worker's pool.
 *
 *   owns     the caller owns the task in *taken.
 *   returns  1 if the call took a task; 0 if it took none, or in a thread outside a pool.
 *   Java     ForkJoinTask.pollSubmission().
 */
FJ_API int fj_take_submission(fj_taken *taken);

/*
 * Takes at most n tasks out of the queues of `pool` (NULL: the common pool): first from the
 * submission queues, then from the queues of the workers.
 *
 *   from     any thread.
 *   owns     the caller owns the tasks in taken[0] to taken[k - 1], where k is the return value.
 *   returns  the number of tasks that the call took.
 *   Java     ForkJoinPool.drainTasksTo().
 */
FJ_API size_t fj_pool_drain(fj_pool *pool, fj_taken *taken, size_t n);

/* Returns the address of the fj_task of a taken task; NULL for an action and for a typed task. */
FJ_API fj_task *fj_taken_task(const fj_taken *taken);

/*
 * Runs a taken task in the calling thread. If the task is an action and returns a code other than
 * 0, the code goes to `on_error` of the pool that the calling thread works for; in a thread outside
 * a pool the code is discarded. A second call for the same task does nothing.
 */
FJ_API void fj_taken_run(fj_taken *taken);

/*
 * Cancels a taken task, as fj_pool_shutdown_now() cancels a queued task: its joiner gets
 * FJ_ECANCELED, and an action is not run. A typed task cannot be cancelled, so fj_taken_cancel()
 * runs it. A second call for the same task does nothing.
 */
FJ_API void fj_taken_cancel(fj_taken *taken);

FJI_EXTERN_C_END

#endif /* FORKJOIN_LOCAL_H */
