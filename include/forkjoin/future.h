/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/future.h - tasks that anybody may wait for, cancel or complete
 *
 * Included by <forkjoin.h>. A structured fj_task is joined by the one who forked it; a
 * future is for everything else: any thread waits for it, any number of them, with or
 * without a limit; anybody may cancel it, complete it or let it fail, and exactly one
 * outcome wins.
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
 *   new -> submitted -> running -> done, and done from any of them: by its body, by
 *   fj_future_complete(), fj_future_fail() or fj_future_cancel(), or when its pool stops.
 *   Done is when waiters return. The library may still know a future that was cancelled
 *   while it was queued or running, so call fj_future_fini() before you free the memory of
 *   an embedded future or use it again.
 *
 * Futures made by fj_submit_call() and fj_submit_action() are allocated. They have a reference
 * count: fj_future_unref() drops one reference.
 */
#ifndef FORKJOIN_FUTURE_H
#define FORKJOIN_FUTURE_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

FJI_EXTERN_C_BEGIN

/* ---- Tokens ------------------------------------------------------------------------------ */

/*
 * A request to stop that a whole computation looks at. Set it up by fj_token_init(), give it
 * to fj_invoke_token(); every structured task below, stolen ones included, sees it by
 * fj_is_cancelled(). Futures have a token of their own; actions and submitted tasks have none.
 * Members are private.
 */
typedef struct fj_token {
    const struct fj_token *parent;
    uint32_t word;
    uint32_t spare;
} fj_token;

/* parent: cancelled with it, may be NULL; must outlive the token. */
FJ_API void fj_token_init(fj_token *token, const fj_token *parent);

/*
 * Asks everything that runs with `token`, or one below it, to stop, for good. Waits of the
 * library inside these tasks (fj_future_get(), fj_sleep_ns(), ...) return FJ_ECANCELED; fj_block_read(),
 * fj_block_write() and fj_block_poll() do so if their pool has an `interrupt_signal`.
 */
FJ_API void fj_token_cancel(fj_token *token);

/* Whether it, or one above it, was cancelled. */
FJ_API int fj_token_is_cancelled(const fj_token *token);

/*
 * As fj_invoke(), with `token` for the task and all that it forks.
 *
 *   returns  as fj_invoke(); FJ_ECANCELED without running it if `token` was cancelled before.
 */
FJ_API FJ_NODISCARD int fj_invoke_token(fj_pool *pool, fj_task *t, fj_token *token);

/*
 * Whether the calling task should give up: its token was cancelled; its future was cancelled, or
 * completed or failed by another thread, so that its result is not wanted; the root of its
 * completer was; or its pool stops. The same for all tasks below it that are joined. A few loads.
 *
 *   from     a body; outside it is 0.
 *   Java     Thread.interrupted() in a task, without clearing anything.
 */
FJ_API int fj_is_cancelled(void);

/*
 * The token that the calling task runs with, its future's own included: to look at it from where
 * the task's own tasks do not run, or to make one below it by fj_token_init().
 *
 *   from     a body; outside, and where there is none, it is NULL.
 *   owns     the library; it is there until the calling task returns.
 */
FJ_API const fj_token *fj_current_token(void);

/* ---- Futures ----------------------------------------------------------------------------- */

typedef struct fj_future fj_future;

/*
 * The first member of your own struct, or allocated by the library. Members are private but
 * `result`, which the body may set: it is what fj_future_get() hands out.
 */
struct fj_future {
    fj_task task;
    fj_task_fn *fn; /* the body */
    void *result;   /* the body's, any pointer */
    uint32_t flags;
    uint32_t tag;
    uint32_t pending; /* of a completer */
    uint32_t spare;
    fj_token token;
    /* What follows is written before it is read, so that making a future costs no more stores
     * than it must. */
    uint32_t refs;                  /* of an allocated one */
    int32_t given_code;             /* the code and */
    void *given;                    /* the result, when somebody else has completed it */
    void (*released)(fj_future *f); /* with FJI_FUTURE_RELEASES */
    void *runner;                   /* the worker that may be signalled */
};

/* Internal: what the library knows of a future, and how the queues run one. */
#define FJI_FUTURE_ALLOCATED 1u
#define FJI_FUTURE_NOT_BY_CALLERS 2u /* a thread from outside that waits does not run it */
#define FJI_FUTURE_COMPLETER 4u      /* the head of an fj_completer */
#define FJI_FUTURE_TIMER 8u          /* the head of an fj_timer */
#define FJI_FUTURE_LIMIT 16u         /* the same, and its moment is a limit */
#define FJI_FUTURE_RELEASES 32u      /* has somebody to call when it is let go */
#define FJI_FUTURE_NO_BODY 64u
FJ_API int fji_future_run(fj_task *t);

/* As few stores as possible: a compiler that sees neighbours being set one by one does not
 * always take them together. What is left out is written before it is read. */
struct fji_future_middle {
    uint32_t flags, tag, pending, spare;
};

FJI_INLINE void fji_future_init_head(fj_future *f, fj_task_fn *run, fj_task_fn *fn, uint32_t flags,
                                     uint32_t pending)
{
    const uint32_t all = fn != NULL ? flags : flags | FJI_FUTURE_NO_BODY;
    const struct fji_future_middle middle = {all, 0, pending, 0};

    f->task.fn = run;
    __builtin_memset(&f->task.cell, 0, offsetof(fj_task, code) - offsetof(fj_task, cell));
    fji_store_two(&f->fn, (uintptr_t)fn, 0); /* and result */
    __builtin_memcpy(&f->flags, &middle, sizeof middle);
}

FJI_INLINE void fji_future_init(fj_future *f, fj_task_fn *run, fj_task_fn *fn, uint32_t flags)
{
    fji_future_init_head(f, run, fn, flags, 0);
    __builtin_memset(&f->token, 0, sizeof f->token);
}

/* How a future stands. Java: Future.State. */
enum fj_future_state {
    FJ_FUTURE_RUNNING = 0, /* or not begun */
    FJ_FUTURE_SUCCESS = 1,
    FJ_FUTURE_FAILED = 2,
    FJ_FUTURE_CANCELLED = 3
};

/*
 * Makes `f` a new future whose body is `fn`; NULL if it is only ever completed by hand. What
 * the body returns is the outcome: 0 success, FJ_ECANCELED cancelled, any other code a failure
 * with that code. A body that returns FJ_PENDING leaves it open: another call completes it.
 *
 *   Java     the constructors of RecursiveTask, RecursiveAction; ForkJoinTask.adapt().
 */
FJI_INLINE void fj_future_init(fj_future *f, fj_task_fn *fn)
{
    if (FJ_CHECKED && f == 0) return;
    fji_future_init(f, fji_future_run, fn, 0);
}

/*
 * `released` is called when the library has let go of a future that was submitted or forked:
 * once, however it ended, by whichever thread that was, as the last thing. It may free the
 * memory. Set it before submitting.
 */
FJ_API void fj_future_set_release_fn(fj_future *f, void (*released)(fj_future *f));

/*
 * Queue `f`: by fork in the own queue of the calling worker (outside: in the common pool);
 * by the others in `pool` (NULL: the common pool) as fj_submit(), fj_submit_external() and
 * fj_submit_lazy() do.
 *
 *   owns     the library, until it is done and released.
 *   returns  FJ_OK; FJ_EINVAL for NULL, or if it was queued before and not made anew since;
 *            FJ_EREJECTED, FJ_ENOMEM.
 *   Java     fork(), submit(), externalSubmit(), lazySubmit().
 */
FJ_API FJ_NODISCARD int fj_future_fork(fj_future *f);
FJ_API FJ_NODISCARD int fj_future_submit(fj_pool *pool, fj_future *f);
FJ_API FJ_NODISCARD int fj_future_submit_external(fj_pool *pool, fj_future *f);
FJ_API FJ_NODISCARD int fj_future_submit_lazy(fj_pool *pool, fj_future *f);

/*
 * Runs the body in the calling thread, unless `f` is done, then waits as fj_future_join().
 * For a future that is not queued.
 *
 *   Java     ForkJoinTask.invoke().
 */
FJ_API int fj_future_run(fj_future *f);

/*
 * Runs `f` in the pool and waits for it, as fj_invoke() does.
 *
 *   Java     ForkJoinPool.invoke().
 */
FJ_API int fj_future_invoke(fj_pool *pool, fj_future *f);

/*
 * Waits until `f` is done. A worker runs `f` itself if it is still in the worker's own queue.
 * If another worker of the same pool runs `f`, the caller runs tasks that the body of `f` has
 * forked. If there are none it sleeps, and another worker runs in its place (forkjoin/block.h).
 * It takes no notice of being cancelled itself.
 *
 *   order    what led to the outcome happens before the return.
 *   returns  what the body returned, or what fj_future_fail() was given, or FJ_ECANCELED.
 *   Java     join().
 */
FJ_API int fj_future_join(fj_future *f);

/*
 * As fj_future_join(), at most timeout_ns (FJ_FOREVER: no limit; <= 0: only looks), and
 * *result, if not NULL, becomes the result when that is FJ_OK. Inside a task that was itself
 * cancelled with `interrupt`, or whose pool stops, it returns FJ_ECANCELED at once unless
 * `f` is done.
 *
 * A wait with a limit runs no task in the calling thread, because it could not stop the task
 * when its time is over. This holds for every call of the library that takes a limit. A worker
 * that waits is replaced, and its replacement runs the task. In a pool whose threads all wait and
 * that has reached max_threads the task does not run before the limit is over.
 *
 *   returns  as fj_future_join(); FJ_ETIMEDOUT.
 *   Java     get(), get(timeout).
 */
FJ_API FJ_NODISCARD int fj_future_get(fj_future *f, int64_t timeout_ns, void **result);

/*
 * Waits, and says only whether it is done.
 *
 *   returns  FJ_OK: done, whatever the outcome; FJ_ETIMEDOUT; FJ_ECANCELED as
 *            fj_future_get() when the caller was interrupted.
 *   Java     quietlyJoin(timeout).
 */
FJ_API int fj_future_wait(fj_future *f, int64_t timeout_ns);

/* As fj_future_wait(), not disturbed by an interrupt. Java: quietlyJoinUninterruptibly(). */
FJ_API int fj_future_wait_quietly(fj_future *f, int64_t timeout_ns);

/* One look. Java: isDone(), isCompletedNormally(), isCompletedAbnormally(), isCancelled(),
 * state(). */
FJ_API int fj_future_is_done(const fj_future *f);
FJ_API int fj_future_succeeded(const fj_future *f);
FJ_API int fj_future_failed(const fj_future *f);
FJ_API int fj_future_is_cancelled(const fj_future *f);
FJ_API enum fj_future_state fj_future_state(const fj_future *f);

/*
 * The outcome of a future that is done.
 *
 *   returns  result: FJ_OK and *result, the code of a failure, FJ_ECANCELED, or FJ_EBUSY if
 *            it is not done; *result is then untouched. error: the code of a failure,
 *            FJ_ECANCELED, or FJ_OK if it went well or is not done. NULL: FJ_EINVAL, both.
 *   Java     resultNow(), exceptionNow(), getException().
 */
FJ_API int fj_future_result(const fj_future *f, void **result);
FJ_API int fj_future_error(const fj_future *f);

/*
 * Decide the outcome, unless it is decided: success with `result`, success with the result
 * that the body has set so far, failure with `code` (0 stands for FJ_EFAILED), cancelled.
 * A body that is queued never runs. One that runs is not stopped, but fj_is_cancelled() becomes 1 in
 * it and in the tasks below it, as its result is not wanted. Its waits are broken only by
 * fj_future_cancel() with `interrupt`, and after the limit of fj_submit_with_timeout(). A body
 * that completes or fails its own future, in its own thread, does not see that as a request to
 * stop: fj_is_cancelled() stays 0. A task of it that another thread has stolen counts as another.
 *
 *   from     any thread, the body itself included.
 *   returns  1 if this call decided it, else 0; fj_future_cancel(): 1 if it is cancelled, by
 *            this call or another.
 *   Java     complete(), quietlyComplete(), completeExceptionally(), cancel().
 */
FJ_API int fj_future_complete(fj_future *f, void *result);
FJ_API int fj_future_complete_quietly(fj_future *f);
FJ_API int fj_future_fail(fj_future *f, int code);

/*
 * interrupt: also breaks the library's waits inside the body and in the tasks below it that are
 * joined, in any pool, under any number of tokens between them and the future: they return
 * FJ_ECANCELED. If the pool has an `interrupt_signal`, sends it to the thread that runs the body,
 * and to other threads that wait in fj_block_read(), fj_block_write() or fj_block_poll() in a task below it; a
 * system call of your own in a stolen task is not broken. Neither reaches any other task. With and
 * without, the body can see it by fj_is_cancelled().
 */
FJ_API int fj_future_cancel(fj_future *f, int interrupt);

/*
 * Makes a future that is done new again, with the same body; its result stays, its tag
 * becomes 0.
 *
 *   returns  FJ_OK; FJ_EBUSY if it is not done, or still queued or running.
 *   Java     reinitialize().
 */
FJ_API int fj_future_reinit(fj_future *f);

/*
 * A number that goes with the future, for the caller's own use.
 *
 *   returns  set: the old one; cas: 1 if it was `expected` and is now `tag`, else 0.
 *   Java     getForkJoinTaskTag(), setForkJoinTaskTag(), compareAndSetForkJoinTaskTag().
 */
FJ_API int16_t fj_future_tag(const fj_future *f);
FJ_API int16_t fj_future_set_tag(fj_future *f, int16_t tag);
FJ_API int fj_future_cas_tag(fj_future *f, int16_t expected, int16_t tag);

/*
 * Waits until the library no longer uses the memory of the embedded future `f`. The caller may
 * then free it. If `f` was never queued, the call returns at once. If `f` is queued and not
 * done, the call waits until it is done. Does nothing for an allocated future.
 */
FJ_API void fj_future_fini(fj_future *f);

/*
 * Adds a reference to the allocated future `f`. Does nothing for an embedded future.
 *
 *   returns  `f`.
 */
FJ_API fj_future *fj_future_ref(fj_future *f);

/*
 * Drops a reference to the allocated future `f`. The last one frees it. Does nothing for an
 * embedded future.
 */
FJ_API void fj_future_unref(fj_future *f);

/* ---- fn(arg) ----------------------------------------------------------------------------- */

/* A function with a result: sets *result (which is NULL) or returns a code other than 0. */
typedef int fj_call_fn(void *arg, void **result);

/*
 * Runs call(arg), or action(arg) with a fixed result, some time in `pool` (NULL: the common
 * pool), as an allocated future. Submitted from outside it is never run by a thread that
 * waits for it, since cancelling would interrupt that; unless the pool has no workers.
 *
 *   owns     the caller has one reference in *f: fj_future_unref(). `result` is stored,
 *            not copied.
 *   returns  FJ_OK; FJ_EINVAL for NULL; FJ_EREJECTED; FJ_ENOMEM. *f only if FJ_OK.
 *   Java     submit(Callable), submit(Runnable, T), submit(Runnable).
 */
FJ_API FJ_NODISCARD int fj_submit_call(fj_pool *pool, fj_call_fn *call, void *arg, fj_future **f);
FJ_API FJ_NODISCARD int fj_submit_action(fj_pool *pool, fj_action_fn *action, void *arg,
                                         void *result, fj_future **f);

/*
 * The same, made but not submitted: for fj_future_fork(), _submit(), _invoke().
 *
 *   Java     adapt(Callable), adapt(Runnable, T); with `interruptible` adaptInterruptible().
 */
FJ_API FJ_NODISCARD int fj_future_new_call(fj_call_fn *call, void *arg, int interruptible,
                                           fj_future **f);
FJ_API FJ_NODISCARD int fj_future_new_action(fj_action_fn *action, void *arg, void *result,
                                             int interruptible, fj_future **f);

/* ---- Several of them ---------------------------------------------------------------------- */

/*
 * Wait until all, or one, of n futures are done. n == 0: all FJ_OK, one FJ_EINVAL.
 *
 *   returns  FJ_OK; FJ_ETIMEDOUT; FJ_ECANCELED as fj_future_get(); FJ_EINVAL for NULL.
 *            any: *which is the index of one that is done.
 */
FJ_API FJ_NODISCARD int fj_future_wait_all(fj_future *const *f, size_t n, int64_t timeout_ns);
FJ_API FJ_NODISCARD int fj_future_wait_any(fj_future *const *f, size_t n, int64_t timeout_ns,
                                           size_t *which);

/*
 * Submits n futures to `pool` and waits until all are done. If the time is over, if one
 * could not be submitted, or if the calling task is interrupted, those that are not done are
 * cancelled with interrupt. On return every one is done, and released but for those
 * cancelled: these may still be running (fj_future_fini()).
 *
 * fj_future_invoke_all_quietly() has no limit, is not interrupted, and does not report how the
 * futures ended.
 *
 *   returns  FJ_OK; the first error in the order of the array (all: not quietly); FJ_ETIMEDOUT;
 *            FJ_ECANCELED; FJ_EINVAL for NULL pointers, before any was submitted;
 *            FJ_EREJECTED; FJ_ENOMEM.
 *   Java     invokeAll(), timed and not. _quietly: invokeAllUninterruptibly().
 */
FJ_API FJ_NODISCARD int fj_future_invoke_all(fj_pool *pool, fj_future *const *f, size_t n,
                                             int64_t timeout_ns);
FJ_API FJ_NODISCARD int fj_future_invoke_all_quietly(fj_pool *pool, fj_future *const *f, size_t n);

/*
 * Submits n futures and waits until one has succeeded, or all have failed. The rest is
 * cancelled with interrupt.
 *
 *   returns  FJ_OK and *which; the code of the last to fail; FJ_ETIMEDOUT; FJ_ECANCELED if
 *            the pool stopped or the caller was interrupted; FJ_EINVAL for NULL or n == 0;
 *            FJ_EREJECTED, FJ_ENOMEM.
 *   Java     invokeAny(), timed and not.
 */
FJ_API FJ_NODISCARD int fj_future_invoke_any(fj_pool *pool, fj_future *const *f, size_t n,
                                             int64_t timeout_ns, size_t *which);

FJI_EXTERN_C_END

#endif /* FORKJOIN_FUTURE_H */
