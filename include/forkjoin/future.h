/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/future.h - tasks that any thread may wait for, cancel or complete
 *
 * Included by <forkjoin.h>. Only the thread that forked an fj_task may join it. A future has no
 * such restriction. Any number of threads may wait for a future, with or without a timeout. Any
 * thread may cancel a future, complete it or make it fail. The first of these calls, or the return
 * of the body, decides the outcome of the future; later calls have no effect.
 *
 *     struct load { fj_future future; const char *path; long bytes; };
 *
 *     static int load_run(fj_task *t)
 *     {
 *         struct load *l = (struct load *)t;
 *         l->bytes = read_file(l->path);
 *         return l->bytes < 0 ? 1 : FJ_OK;
 *     }
 *
 *     struct load l = {.path = "map.png"};
 *     fj_future_init(&l.future, load_run);
 *     int err = fj_future_submit(NULL, &l.future);
 *     if (err == FJ_OK) err = fj_future_get(&l.future, 50 * 1000000, NULL); // at most 50 ms
 *     fj_future_fini(&l.future); // waits until it runs no more
 *
 * Life of a future
 *   A future is new, then queued, then running, then done. A future can become done in any of the
 *   earlier states, in one of three ways: its body returns; or a thread calls fj_future_complete(),
 *   fj_future_fail() or fj_future_cancel(); or its pool stops before the body begins.
 *
 *   "Done" releases the waiters. The library may still use the memory of the future after that, for
 *   example if the future was cancelled while it was queued. Call fj_future_fini() before you free
 *   or reuse the memory of an embedded future.
 *
 * Embedded and allocated futures
 *   An embedded future is the first member of a struct of the caller. fj_future_init() sets up an
 *   embedded future. The library makes an allocated future, for example in fj_submit_call(). An
 *   allocated future has a reference count, and fj_future_unref() drops one reference.
 *
 * Cancelled and interrupted tasks
 *   fj_is_cancelled() returns 1 in a cancelled task. The library does not stop the task: its body
 *   chooses when to return.
 *
 *   A task is also interrupted if its future was cancelled with `interrupt`, if a token that it
 *   runs under was cancelled by fj_token_cancel(), or if its pool stops. The following waits return
 *   FJ_ECANCELED in an interrupted task: fj_future_get(), fj_future_wait(), fj_future_wait_all(),
 *   fj_future_wait_any(), fj_future_invoke_all(), fj_future_invoke_any(), fj_sleep_ns() and
 *   fj_managed_block(). If the pool has an `interrupt_signal`, fj_block_read(), fj_block_write()
 *   and fj_block_poll() return FJ_ECANCELED too.
 */
#ifndef FORKJOIN_FUTURE_H
#define FORKJOIN_FUTURE_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

FJI_EXTERN_C_BEGIN

/* ---- Tokens ------------------------------------------------------------------------------ */

/*
 * A cancellation token: a request to stop that all tasks of a computation can check.
 *
 * Initialise a token by fj_token_init() and pass it to fj_invoke_token(). The invoked task runs
 * under the token. Every task that is forked and joined below the invoked task also runs under the
 * token, even if a thief runs it. fj_is_cancelled() checks the token of the calling task.
 *
 * Actions, submitted tasks and futures do not inherit the token of the task that queues them.
 * Every future has a token of its own. Actions and submitted tasks have none.
 *
 * The members are private.
 */
typedef struct fj_token {
    const struct fj_token *parent;
    uint32_t word;
    uint32_t spare;
} fj_token;

/*
 * Initialises `token` as not cancelled.
 *
 * If `parent` is not NULL, `token` counts as cancelled as soon as `parent` is cancelled.
 *
 *   owns     the caller owns `token`. `parent` must outlive `token`.
 */
FJ_API void fj_token_init(fj_token *token, const fj_token *parent);

/*
 * Cancels `token` and interrupts all tasks that run under it or under a token below it.
 *
 * A cancel cannot be undone. The head of this file lists the waits that an interrupt ends.
 */
FJ_API void fj_token_cancel(fj_token *token);

/*
 * Returns 1 if `token` or a token above it was cancelled, else 0.
 *
 *   order    if the call returns 1, what the cancelling thread did before the cancel happens before
 *            the return.
 */
FJ_API int fj_token_is_cancelled(const fj_token *token);

/*
 * Runs `t` as fj_invoke() does, under `token`.
 *
 *   owns     `t` and `token` must stay valid until the call returns.
 *   returns  what fj_invoke() returns. FJ_ECANCELED if `token` is cancelled before the body begins;
 *            the body then does not run. FJ_EINVAL if `t` or `token` is NULL, or if `t` has no
 *            body.
 */
FJ_API FJ_NODISCARD int fj_invoke_token(fj_pool *pool, fj_task *t, fj_token *token);

/*
 * Returns 1 if the calling task should return early, else 0. The call costs a few loads.
 *
 * fj_is_cancelled() returns 1 in these cases:
 *   - The pool of the calling worker stops.
 *   - The token that the task runs under, or a token above it, was cancelled.
 *   - The task belongs to a future, and that future was cancelled, or was completed or made to fail
 *     by a thread other than the one that runs its body. The result of the body is discarded in
 *     this case.
 *   - The task belongs to a completer (forkjoin/completer.h), and the root of that completer was
 *     cancelled, or was completed or made to fail by a thread other than the one that runs the body
 *     of the root.
 * A task belongs to a future if it is the body, or if it is forked and joined below the body.
 *
 *   from     any thread. Returns 0 in a thread that runs no task of a pool, for example in
 *            fj_future_run() outside a pool.
 *   Java     Thread.interrupted() in a task, but fj_is_cancelled() clears nothing.
 */
FJ_API int fj_is_cancelled(void);

/*
 * Returns the token that the calling task runs under; in the body of a future, that future's own
 * token.
 *
 * Code outside the subtree of the calling task can check the token by fj_token_is_cancelled(). The
 * task can pass the token to fj_token_init() as the parent of a new token.
 *
 *   from     any thread.
 *   owns     the caller does not own the token. The token is valid until the calling task returns.
 *            In the body of a completer the token is valid until the body completes the completer.
 *   returns  the token; NULL if the task has no token, and in a thread outside a pool.
 */
FJ_API const fj_token *fj_current_token(void);

/* ---- Futures ----------------------------------------------------------------------------- */

typedef struct fj_future fj_future;

/*
 * A future: the first member of a struct of the caller, or allocated by the library.
 *
 * The body may set `result`, and fj_future_get() returns it. The other members are private.
 */
struct fj_future {
    fj_task task;
    fj_task_fn *fn; /* the body */
    void *result;   /* the result: any pointer; the body may set it */
    uint32_t flags;
    uint32_t tag;
    uint32_t pending;  /* the pending count, if the future is part of a completer */
    uint32_t fail_seq; /* the order of failures, for fj_future_invoke_any() */
    fj_token token;
    /* fj_future_init() does not initialise the members below, to save stores. The library writes
     * each of them before it reads it. */
    uint32_t refs;         /* references to an allocated future */
    int32_t external_code; /* the code of the outcome and */
    union {
        void *external; /* its result, if a call other than the body resolved the future */
        struct fj_listener *listeners; /* the functions to call when the future is done */
    };
    void (*released)(fj_future *f); /* valid if FJI_FUTURE_RELEASES is set */
    void *runner;                   /* the worker that runs the body, if that worker may be
                                     * signalled */
};

/* Internal: the bits of `flags`, and the function by which the queues run a future. */
#define FJI_FUTURE_ALLOCATED 1u
#define FJI_FUTURE_NOT_BY_CALLERS 2u /* a waiting thread outside the pool does not run the future */
#define FJI_FUTURE_COMPLETER 4u      /* the first member of an fj_completer */
#define FJI_FUTURE_TIMER 8u          /* the first member of an fj_timer */
#define FJI_FUTURE_LIMIT 16u         /* a timer that is the time limit of the future */
#define FJI_FUTURE_RELEASES 32u      /* `released` is set */
#define FJI_FUTURE_NO_BODY 64u
FJ_API int fji_future_run(fj_task *t);

/* Internal, for modules that keep futures in queues of their own, or queue them later.
 *
 * fji_future_adopt() makes `f` a future that is queued in `pool` (NULL: the common pool), but in no
 * queue of the pool. `f` cannot be queued a second time. A thread that waits for `f` finds the pool
 * and does not run `f`. If `f` is allocated, the library gets a reference. The caller then calls
 * exactly one of f->task.fn(&f->task), fji_future_discard() and fji_future_disown(). Returns FJ_OK;
 * FJ_EINVAL if `f` cannot be queued, or is a completer or a timer; FJ_ENOMEM if there is no memory
 * for the common pool.
 *
 * fji_future_disown() ends the adoption: the caller may queue `f`. fji_future_discard() cancels `f`,
 * unless it is done, and releases it, which is the LAST TOUCH of *f. */
FJ_API int fji_future_adopt(fj_pool *pool, fj_future *f);
FJ_API void fji_future_disown(fj_future *f);
FJ_API void fji_future_discard(fj_future *f);

/* Internal: four neighbouring members of fj_future. A compiler does not always combine four
 * assignments into few stores, so fji_future_init_head() copies these members as one block. */
struct fji_future_middle {
    uint32_t flags, tag, pending, fail_seq;
};

FJI_INLINE void fji_future_init_head(fj_future *f, fj_task_fn *run, fj_task_fn *fn, uint32_t flags,
                                     uint32_t pending)
{
    const uint32_t all = fn != NULL ? flags : flags | FJI_FUTURE_NO_BODY;
    const struct fji_future_middle middle = {all, 0, pending, 0};

    f->task.fn = run;
    __builtin_memset(&f->task.cell, 0, offsetof(fj_task, code) - offsetof(fj_task, cell));
    fji_store_two(&f->fn, (uintptr_t)fn, 0); /* fn and result */
    __builtin_memcpy(&f->flags, &middle, sizeof middle);
}

FJI_INLINE void fji_future_init(fj_future *f, fj_task_fn *run, fj_task_fn *fn, uint32_t flags)
{
    fji_future_init_head(f, run, fn, flags, 0);
    __builtin_memset(&f->token, 0, sizeof f->token);
}

/* The state of a future. Java: Future.State. */
enum fj_future_state {
    FJ_FUTURE_RUNNING = 0, /* not done: new, queued or running */
    FJ_FUTURE_SUCCESS = 1,
    FJ_FUTURE_FAILED = 2,
    FJ_FUTURE_CANCELLED = 3
};

/*
 * Initialises `f` as a new embedded future with the body `fn`.
 *
 * The return value of the body decides the outcome. 0 is success. FJ_ECANCELED cancels the future.
 * Any other code is a failure with that code. The exception is FJ_PENDING: the future stays open
 * after the body has returned, until a thread completes it, fails it or cancels it.
 *
 * If `fn` is NULL the future has no body. Such a future cannot be queued or run; a thread decides
 * its outcome by fj_future_complete(), fj_future_fail() or fj_future_cancel().
 *
 *   Java     the constructors of RecursiveTask and RecursiveAction, ForkJoinTask.adapt().
 */
FJI_INLINE void fj_future_init(fj_future *f, fj_task_fn *fn)
{
    if (FJ_CHECKED && f == 0) return;
    fji_future_init(f, fji_future_run, fn, 0);
}

/*
 * Sets a function that the library calls when it no longer uses the memory of `f`.
 *
 * The library calls released(f) once, after its last access to `f`, whatever the outcome is. The
 * thread that calls released() is the thread that ran the body, the thread that removed `f` from
 * its queue without running it, or the thread that decided the outcome of a waiting timer. If the
 * body returns FJ_PENDING, the library calls released() when the body has returned, although `f` is
 * not done yet. If `f` has functions of fj_future_on_done() (forkjoin/listen.h), the library calls
 * released() after they have returned, in one of the threads named above or in the thread that
 * called them; but if the body returns FJ_PENDING before `f` is done, it does not wait for them.
 *
 * released() may free the memory of `f` if no thread uses `f` any more. So if released() frees the
 * memory, do not wait for `f`, and do not call fj_future_run(), fj_future_invoke() or
 * fj_future_fini() on it.
 *
 * Set the function before you queue `f`. NULL removes the function. The library does not call
 * released() for completers.
 */
FJ_API void fj_future_set_release_fn(fj_future *f, void (*released)(fj_future *f));

/*
 * Puts `f` into the queue of the calling worker. In a thread outside a pool, the call queues `f` in
 * the common pool.
 *
 * If there is no memory for one more queued task, the calling worker runs `f` before the call
 * returns.
 *
 *   order    what the caller did before the call happens before the body runs.
 *   owns     the library owns `f` until fj_future_fini() has returned.
 *   returns  FJ_OK. FJ_EINVAL if `f` is NULL, has no body, or was queued before and not initialised
 *            again since. In a thread outside a pool also FJ_EREJECTED if the common pool takes no
 *            work, and FJ_ENOMEM if there is no memory.
 *   Java     fork().
 */
FJ_API FJ_NODISCARD int fj_future_fork(fj_future *f);

/*
 * Queues `f` in `pool` (NULL: the common pool). A worker of the pool puts `f` into its own queue.
 * Any other thread puts `f` into a submission queue.
 *
 *   order    what the caller did before the call happens before the body runs.
 *   owns     the library owns `f` until fj_future_fini() has returned.
 *   returns  FJ_OK. FJ_EINVAL as fj_future_fork(). FJ_EREJECTED if the pool is shut down and the
 *            caller is not one of its workers. FJ_ENOMEM if there is no memory.
 *   Java     submit().
 */
FJ_API FJ_NODISCARD int fj_future_submit(fj_pool *pool, fj_future *f);

/*
 * Queues `f` as fj_future_submit() does, but always in a submission queue, behind the earlier
 * submissions in that queue.
 *
 *   returns  as fj_future_submit(), but FJ_EREJECTED also for workers of a pool that is shut down.
 *   Java     externalSubmit().
 */
FJ_API FJ_NODISCARD int fj_future_submit_external(fj_pool *pool, fj_future *f);

/*
 * Queues `f` as fj_future_submit() does, but wakes no worker. A worker that is awake may find and
 * run `f`. Otherwise the first thread that waits for a task of the pool wakes a worker.
 *
 *   returns  as fj_future_submit().
 *   Java     lazySubmit().
 */
FJ_API FJ_NODISCARD int fj_future_submit_lazy(fj_pool *pool, fj_future *f);

/*
 * Runs the body of `f` in the calling thread, then waits as fj_future_join() does.
 *
 * If `f` is done or queued, the call only waits. Call fj_future_reinit() before you queue or run
 * the same future again.
 *
 *   returns  as fj_future_join(). FJ_EINVAL also if `f` has no body and is not done.
 *   Java     ForkJoinTask.invoke().
 */
FJ_API int fj_future_run(fj_future *f);

/*
 * Runs `f` in `pool` (NULL: the common pool) and waits until `f` is done.
 *
 *   from     any thread. fj_invoke() says which thread runs the body.
 *   returns  as fj_future_join(). FJ_EINVAL as fj_future_fork(). FJ_EREJECTED if the pool is shut
 *            down and the caller is not one of its workers. FJ_ENOMEM if there is no memory.
 *   Java     ForkJoinPool.invoke().
 */
FJ_API int fj_future_invoke(fj_pool *pool, fj_future *f);

/*
 * Waits until `f` is done.
 *
 * A worker of the pool that `f` is queued in runs `f` itself if `f` is in the worker's own queue or
 * in a submission queue. If another worker runs `f`, the caller runs tasks that the body of `f` has
 * forked. If there are no such tasks, the caller sleeps, and another worker may run in its place
 * (forkjoin/block.h).
 *
 * A thread outside the pool runs tasks in the same way on the common pool and on a pool with
 * FJ_POOL_CALLER_HELPS, unless `f` is an allocated future that only workers may run: see
 * fj_submit_call(). Otherwise a thread outside the pool sleeps, and runs tasks only while the pool
 * has no thread and cannot start one.
 *
 * An interrupt of the calling task does not end the wait.
 *
 *   order    everything that led to the outcome happens before the return.
 *   returns  the code that the body returned; the code that fj_future_fail() was given;
 *            FJ_ECANCELED if `f` was cancelled; FJ_EINVAL if `f` is NULL.
 *   Java     join().
 */
FJ_API int fj_future_join(fj_future *f);

/*
 * Waits at most timeout_ns until `f` is done, and stores its result.
 *
 * If timeout_ns is FJ_FOREVER, the wait has no limit and works as fj_future_join(). If timeout_ns
 * is 0 or less, the call does not wait. If the call returns FJ_OK and `result` is not NULL, it
 * stores the result in *result.
 *
 * An interrupt of the calling task ends the wait: the call returns FJ_ECANCELED, unless `f` is
 * done.
 *
 * A wait with a limit runs no task in the calling thread, because the wait could not stop the task
 * at the end of the limit. No call of the library that takes a timeout runs tasks during a limited
 * wait. Another worker runs in place of a waiting worker. But if all threads of a pool wait and the
 * pool has max_threads threads, `f` does not begin before the end of the limit.
 *
 *   order    if `f` is done, everything that led to the outcome happens before the return.
 *   returns  as fj_future_join(). FJ_ETIMEDOUT if `f` is not done after timeout_ns. FJ_ECANCELED
 *            also if the calling task is interrupted.
 *   Java     get(), get(timeout).
 */
FJ_API FJ_NODISCARD int fj_future_get(fj_future *f, int64_t timeout_ns, void **result);

/*
 * Waits at most timeout_ns until `f` is done, as fj_future_get() does, but does not return the
 * outcome.
 *
 *   order    if `f` is done, everything that led to the outcome happens before the return.
 *   returns  FJ_OK if `f` is done, whatever its outcome is. FJ_ETIMEDOUT if `f` is not done after
 *            timeout_ns. FJ_ECANCELED if `f` is not done and the calling task is interrupted.
 *            FJ_EINVAL if `f` is NULL.
 *   Java     quietlyJoin(timeout).
 */
FJ_API int fj_future_wait(fj_future *f, int64_t timeout_ns);

/*
 * Waits as fj_future_wait() does, but an interrupt of the calling task does not end the wait.
 *
 *   returns  FJ_OK if `f` is done, whatever its outcome is. FJ_ETIMEDOUT if `f` is not done after
 *            timeout_ns. FJ_EINVAL if `f` is NULL.
 *   Java     quietlyJoinUninterruptibly().
 */
FJ_API int fj_future_wait_quietly(fj_future *f, int64_t timeout_ns);

/*
 * fj_future_is_done(), fj_future_succeeded(), fj_future_failed(), fj_future_is_cancelled() and
 * fj_future_state() return the state of `f` at the moment of the call. These functions do not wait.
 * If one of them reports that `f` is done, everything that led to the outcome happens before its
 * return. If `f` is NULL, they return 0.
 */

/* Returns 1 if `f` is done, else 0. Java: isDone(). */
FJ_API int fj_future_is_done(const fj_future *f);

/* Returns 1 if `f` is done and succeeded, else 0. Java: isCompletedNormally(). */
FJ_API int fj_future_succeeded(const fj_future *f);

/* Returns 1 if `f` is done and failed or was cancelled, else 0. Java: isCompletedAbnormally(). */
FJ_API int fj_future_failed(const fj_future *f);

/* Returns 1 if `f` is done and was cancelled, else 0. Java: isCancelled(). */
FJ_API int fj_future_is_cancelled(const fj_future *f);

/* Returns the state of `f`. A cancelled future is FJ_FUTURE_CANCELLED, not FJ_FUTURE_FAILED. Java:
 * state(). */
FJ_API enum fj_future_state fj_future_state(const fj_future *f);

/*
 * Stores the result of `f` in *result without waiting. `result` may be NULL.
 *
 *   returns  FJ_OK if `f` succeeded. Otherwise *result is unchanged, and the call returns the code
 *            of the failure; FJ_ECANCELED if `f` was cancelled; FJ_EBUSY if `f` is not done;
 *            FJ_EINVAL if `f` is NULL.
 *   Java     resultNow().
 */
FJ_API int fj_future_result(const fj_future *f, void **result);

/*
 * Returns the error code of `f` without waiting.
 *
 *   returns  the code of the failure; FJ_ECANCELED if `f` was cancelled; FJ_OK if `f` succeeded or
 *            is not done; FJ_EINVAL if `f` is NULL.
 *   Java     exceptionNow(), getException().
 */
FJ_API int fj_future_error(const fj_future *f);

/*
 * fj_future_complete(), fj_future_complete_quietly(), fj_future_fail() and fj_future_cancel()
 * decide the outcome of `f`, unless it is decided already. Any thread may call these functions,
 * also the thread that runs the body of `f`.
 *
 * If `f` is queued, its body never runs.
 *
 * If the body is running, it is not stopped. The result of the body is discarded, and
 * fj_is_cancelled() returns 1 in the body and in the tasks that are forked and joined below it.
 * Only fj_future_cancel() with `interrupt` interrupts the body. For a future of
 * fj_submit_with_timeout(), each of the four functions interrupts the body if it decides the
 * outcome after the limit.
 *
 * A body may complete or fail its own future and continue: if the thread that runs the body makes
 * the call, fj_is_cancelled() still returns 0 in the body. A call from a stolen task below the body
 * is a call from another thread.
 */

/*
 * Completes `f`: `f` succeeds with `result`.
 *
 *   returns  1 if this call decided the outcome of `f`; 0 if the outcome was decided before.
 *   Java     complete().
 */
FJ_API int fj_future_complete(fj_future *f, void *result);

/*
 * Completes `f` with the value that f->result has at the moment of the call.
 *
 *   from     any thread. The body must not write f->result at the same time.
 *   returns  1 if this call decided the outcome of `f`; 0 if the outcome was decided before.
 *   Java     quietlyComplete().
 */
FJ_API int fj_future_complete_quietly(fj_future *f);

/*
 * Makes `f` fail with `code`.
 *
 * If `code` is 0, the code of the failure is FJ_EFAILED. If `code` is FJ_ECANCELED, the call is the
 * same as fj_future_cancel(f, 0), also in its return value.
 *
 *   returns  1 if this call decided the outcome of `f`; 0 if the outcome was decided before.
 *   Java     completeExceptionally().
 */
FJ_API int fj_future_fail(fj_future *f, int code);

/*
 * Cancels `f`. If `interrupt` is not 0, the call also interrupts the tasks of `f`.
 *
 * An interrupt reaches the body and the tasks that are forked and joined below the body. An
 * interrupt also reaches tasks that run, in any pool, under a token that has the token of `f` above
 * it. It reaches no other task. The head of this file lists the waits that an interrupt ends.
 *
 * If the pool has an `interrupt_signal`, an interrupt sends the signal to the worker that runs the
 * body. The signal is also sent to workers that wait in fj_block_read(), fj_block_write() or
 * fj_block_poll() in a task below the body. A system call that a stolen task makes without these
 * functions is not interrupted.
 *
 *   returns  1 if `f` is cancelled, by this call or an earlier one; 0 if `f` has another outcome.
 *   Java     cancel().
 */
FJ_API int fj_future_cancel(fj_future *f, int interrupt);

/*
 * Makes the future `f`, which is done, new again, with the same body.
 *
 * `result` keeps its value. The tag becomes 0.
 *
 *   from     a thread that has `f` to itself: no other thread uses `f` during the call.
 *   returns  FJ_OK. FJ_EBUSY if `f` is not done; if `f` is done but still queued or running; or if
 *            a function of fj_future_on_done() is still to be called for `f`, or runs.
 *            FJ_EINVAL if `f` is NULL.
 *   Java     reinitialize().
 */
FJ_API int fj_future_reinit(fj_future *f);

/*
 * Returns the tag of `f`: a number for the caller's own use. The tag of a new future is 0.
 *
 *   order    what a thread did before it set the tag happens before the return of that tag.
 *   Java     getForkJoinTaskTag().
 */
FJ_API int16_t fj_future_tag(const fj_future *f);

/*
 * Sets the tag of `f`.
 *
 *   order    as fj_future_tag().
 *   returns  the tag before the call.
 *   Java     setForkJoinTaskTag().
 */
FJ_API int16_t fj_future_set_tag(fj_future *f, int16_t tag);

/*
 * Sets the tag of `f` to `tag` if the tag is `expected`, in one atomic step.
 *
 *   order    as fj_future_tag().
 *   returns  1 if the tag was `expected` and is now `tag`, else 0.
 *   Java     compareAndSetForkJoinTaskTag().
 */
FJ_API int fj_future_cas_tag(fj_future *f, int16_t expected, int16_t tag);

/*
 * Waits until the library no longer uses the memory of the embedded future `f`. The caller may then
 * free `f` or initialise it again.
 *
 * If `f` was never queued, the call returns at once. If `f` is queued and its outcome is decided,
 * the call waits until a worker has removed `f` from the queue. Otherwise the call waits until the
 * body has returned. A body that returns FJ_PENDING leaves the outcome open, and fj_future_fini()
 * does not wait until the outcome is decided. In that case call fj_future_wait() before
 * fj_future_fini(). If `f` is done and has functions of fj_future_on_done(), the call also waits
 * until they have returned.
 *
 * The call does nothing for an allocated future, and for a completer that has a parent.
 *
 *   from     any thread. The body of `f` must not call fj_future_fini(f), because it would wait for
 *            itself. The same is true of a function of fj_future_on_done() that was registered
 *            for `f`.
 *   order    what the body did happens before the return.
 */
FJ_API void fj_future_fini(fj_future *f);

/*
 * Adds a reference to the allocated future `f`. The call does nothing if `f` is an embedded future.
 *
 *   returns  `f`.
 */
FJ_API fj_future *fj_future_ref(fj_future *f);

/*
 * Drops a reference to the allocated future `f`. The call that drops the last reference frees `f`.
 * The call does nothing if `f` is an embedded future.
 */
FJ_API void fj_future_unref(fj_future *f);

/*
 * Makes an allocated future with the body `fn`, in `size` bytes of memory. The future is the first
 * member of a struct of the caller, and `size` is the size of that struct. The bytes after the
 * future are 0. The last fj_future_unref() frees the memory.
 *
 * If `fn` is NULL the future has no body, as in fj_future_init(): a thread decides its outcome.
 *
 *   owns     the caller gets one reference in *f and drops it by fj_future_unref(). The library has
 *            a reference of its own while the future is queued or runs.
 *   returns  FJ_OK. FJ_EINVAL if `f` is NULL or `size` is less than sizeof(fj_future). FJ_ENOMEM.
 *            After an error *f is unchanged.
 *   Java     new CompletableFuture(), if `fn` is NULL.
 */
FJ_API FJ_NODISCARD int fj_future_new(size_t size, fj_task_fn *fn, fj_future **f);

/* ---- fn(arg) ----------------------------------------------------------------------------- */

/*
 * A function that produces a result. *result is NULL when the library calls the function. The
 * function returns 0 and may store its result in *result, or it returns another code, which has the
 * same meaning as a code of the body of a future.
 */
typedef int fj_call_fn(void *arg, void **result);

/*
 * Queues call(arg) in `pool` (NULL: the common pool) as an allocated future.
 *
 * If a thread outside a pool submits the future, a waiting thread outside the pool never runs
 * call(), so that an interrupt of the future does not affect that thread. The exception is a pool
 * without workers, in which waiting threads run everything.
 *
 *   order    what the caller did before fj_submit_call() happens before call().
 *   owns     the caller gets one reference in *f and drops it by fj_future_unref().
 *   returns  FJ_OK. FJ_EINVAL if `call` or `f` is NULL. FJ_EREJECTED if the pool is shut down and
 *            the caller is not one of its workers. FJ_ENOMEM if there is no memory. After an error
 *            *f is unchanged.
 *   Java     submit(Callable).
 */
FJ_API FJ_NODISCARD int fj_submit_call(fj_pool *pool, fj_call_fn *call, void *arg, fj_future **f);

/*
 * Queues action(arg) as fj_submit_call() does. If action() returns 0, the future succeeds with
 * `result`.
 *
 *   owns     as fj_submit_call(). The library stores the pointer `result` and does not access what
 *            it points to.
 *   returns  as fj_submit_call().
 *   Java     submit(Runnable, T), submit(Runnable).
 */
FJ_API FJ_NODISCARD int fj_submit_action(fj_pool *pool, fj_action_fn *action, void *arg,
                                         void *result, fj_future **f);

/*
 * Makes an allocated future for call(arg) and does not queue it. Pass the future to
 * fj_future_fork(), fj_future_submit() or fj_future_invoke().
 *
 * If `interruptible` is not 0, a waiting thread outside the pool never runs call(), except in a
 * pool without workers, as fj_submit_call() describes.
 *
 *   owns     the caller gets one reference in *f and drops it by fj_future_unref().
 *   returns  FJ_OK. FJ_EINVAL if `call` or `f` is NULL. FJ_ENOMEM. After an error *f is unchanged.
 *   Java     adapt(Callable); with `interruptible` adaptInterruptible().
 */
FJ_API FJ_NODISCARD int fj_future_new_call(fj_call_fn *call, void *arg, int interruptible,
                                           fj_future **f);

/*
 * Makes an allocated future for action(arg), as fj_future_new_call() does. If action() returns 0,
 * the future succeeds with `result`.
 *
 *   owns     as fj_future_new_call().
 *   returns  as fj_future_new_call().
 *   Java     adapt(Runnable, T); with `interruptible` adaptInterruptible().
 */
FJ_API FJ_NODISCARD int fj_future_new_action(fj_action_fn *action, void *arg, void *result,
                                             int interruptible, fj_future **f);

/* ---- Several futures ---------------------------------------------------------------------- */

/*
 * Waits at most timeout_ns until all of n futures are done. timeout_ns has the same meaning as in
 * fj_future_get().
 *
 *   returns  FJ_OK if all futures are done, whatever their outcomes are, and if n is 0.
 *            FJ_ETIMEDOUT if a future is not done after timeout_ns. FJ_ECANCELED if a future is not
 *            done and the calling task is interrupted. FJ_EINVAL if n is not 0 and `f` or one of
 *            its elements is NULL.
 */
FJ_API FJ_NODISCARD int fj_future_wait_all(fj_future *const *f, size_t n, int64_t timeout_ns);

/*
 * Waits at most timeout_ns until one of n futures is done.
 *
 *   returns  FJ_OK, and *which is the index in `f` of a future that is done. FJ_ETIMEDOUT if no
 *            future is done after timeout_ns. FJ_ECANCELED if no future is done and the calling
 *            task is interrupted. FJ_EINVAL if n is 0, or if `which`, `f` or one of its elements is
 *            NULL.
 */
FJ_API FJ_NODISCARD int fj_future_wait_any(fj_future *const *f, size_t n, int64_t timeout_ns,
                                           size_t *which);

/*
 * Submits n futures to `pool` (NULL: the common pool) and waits until all of them are done.
 *
 * In three cases the call cancels the futures that are not done, with interrupt: timeout_ns has
 * passed, a future cannot be submitted, or the calling task is interrupted.
 *
 * On return every future is done, unless no future was submitted. The library no longer uses the
 * memory of embedded futures, with two exceptions: a cancelled future may still be queued or
 * running, and functions of fj_future_on_done() may still be running. Call fj_future_fini() for such
 * a future before you free it.
 *
 *   returns  FJ_OK if all futures succeeded, and if n is 0. Otherwise one of these:
 *            FJ_EINVAL if `f` is NULL, or if one of its elements is NULL, has no body or was queued
 *            before; no future was submitted.
 *            FJ_EINVAL if the array has a future twice; the second submission of that future fails.
 *            FJ_EREJECTED or FJ_ENOMEM if a future could not be submitted.
 *            FJ_ETIMEDOUT if one is not done after timeout_ns.
 *            FJ_ECANCELED if the calling task is interrupted.
 *            The code of the first future in the array that failed or was cancelled.
 *   Java     invokeAll(), invokeAll(timeout).
 */
FJ_API FJ_NODISCARD int fj_future_invoke_all(fj_pool *pool, fj_future *const *f, size_t n,
                                             int64_t timeout_ns);

/*
 * Submits n futures and waits for them as fj_future_invoke_all() does, without a timeout. An
 * interrupt of the calling task does not end the wait.
 *
 *   returns  FJ_OK if all futures are done, whatever their outcomes are. FJ_EINVAL, FJ_EREJECTED
 *            and FJ_ENOMEM as fj_future_invoke_all().
 *   Java     invokeAllUninterruptibly().
 */
FJ_API FJ_NODISCARD int fj_future_invoke_all_quietly(fj_pool *pool, fj_future *const *f, size_t n);

/*
 * Submits n futures to `pool` (NULL: the common pool) and waits until one future has succeeded or
 * all futures are done.
 *
 * Before it returns, the call cancels the futures that are not done, with interrupt. A cancelled
 * future may still be queued or running. Call fj_future_fini() before you free it.
 *
 *   returns  FJ_OK if a future succeeded; *which is the index of that future in `f`. Otherwise one
 *            of these:
 *            FJ_EINVAL if n is 0, if `which` is NULL, and where fj_future_invoke_all() returns
 *            FJ_EINVAL.
 *            FJ_EREJECTED or FJ_ENOMEM if a future could not be submitted.
 *            FJ_ETIMEDOUT if no future has succeeded after timeout_ns and some are not done.
 *            FJ_ECANCELED if the calling task is interrupted, or if all futures were cancelled.
 *            The code of the future that failed last, if all futures are done and none succeeded.
 *   Java     invokeAny(), invokeAny(timeout).
 */
FJ_API FJ_NODISCARD int fj_future_invoke_any(fj_pool *pool, fj_future *const *f, size_t n,
                                             int64_t timeout_ns, size_t *which);

FJI_EXTERN_C_END

#endif /* FORKJOIN_FUTURE_H */
