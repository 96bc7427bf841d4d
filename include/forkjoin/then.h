/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/then.h - futures that follow from other futures
 *
 * A program that has to do several things one after the other, each of which is a future, need not
 * wait for any of them. It says what follows, and waits for the end or for nothing:
 *
 *     static int parse(int code, void *value, void *arg, void **result)
 *     {
 *         (void)code, (void)arg;           // the code of the future before: FJ_OK
 *         *result = document_parse(value); // and its result
 *         return *result != NULL ? FJ_OK : 1;
 *     }
 *
 *     fj_future *loaded, *parsed;
 *     int err = fj_submit_call(pool, load, path, &loaded);
 *     if (err == FJ_OK) {
 *         err = fj_future_then(loaded, parse, NULL, &parsed);
 *         fj_future_unref(loaded);
 *     }
 *
 * Each call makes an allocated future, the derived future, from one or more futures, its inputs. No
 * thread waits for an input. A worker runs the function of a derived future as a task, when the
 * inputs are done. An input is any future: embedded or allocated, queued or not, with or without a
 * body, a timer, a root completer, or a derived future.
 *
 * Errors and cancel
 *   If an input fails or is cancelled, the derived future gets the same code and its function does
 *   not run, unless it was made by fj_future_handle(). So a failure passes along a chain to its
 *   end. It does so without recursion, however long the chain is.
 *   Cancelling a derived future does not cancel its inputs, because other futures may follow from
 *   them too. Its function does not run if it has not begun.
 *
 * Memory
 *   The caller owns one reference to each derived future and drops it by fj_future_unref(). It may
 *   do so at once: the library has a reference of its own until the inputs are done and the
 *   function has returned. The library has no reference to an input, and an embedded input must be
 *   valid until it is done and fj_future_fini() has returned for it (forkjoin/listen.h).
 *   If the last reference to an allocated input is dropped before it is done, it is cancelled.
 *
 * A derived future belongs to no queue until its inputs are done. A worker that waits for it runs no
 * task meanwhile, and another worker may run in its place (forkjoin/block.h). If a pool has no thread
 * and cannot start one, a thread that waits for a future of fj_future_all_of() or fj_future_any_of()
 * runs tasks of the common pool only, so a program for such a system waits for the inputs instead.
 */
#ifndef FORKJOIN_THEN_H
#define FORKJOIN_THEN_H

#include <forkjoin.h>

FJI_EXTERN_C_BEGIN

/*
 * The function of a derived future.
 *
 * `code` and `value` are the outcome of the input: FJ_OK and its result; or FJ_ECANCELED or the code
 * of the failure, and NULL. *result is NULL when the library calls the function. The function
 * returns 0 and may store its result in *result, or it returns another code, which has the same
 * meaning as a code of the body of a future.
 */
typedef int fj_then_fn(int code, void *value, void *arg, void **result);

/* When the function of a derived future runs. */
enum fj_then_when {
    FJ_THEN_SUCCESS = 0, /* if the input succeeds */
    FJ_THEN_ALWAYS = 1   /* when the input is done, whatever its outcome is */
};

/*
 * Makes the future *next. When `f` has succeeded, fn() runs as a task, and its result and code are
 * those of *next. If `f` fails or is cancelled, fn() does not run, and *next fails with the same
 * code or is cancelled.
 *
 * If a worker makes the call, fn() runs in the pool of that worker. Otherwise fn() runs in the
 * common pool. fj_future_then_in() takes a pool.
 *
 * If fn() returns FJ_PENDING, *next stays open. fn() can pass *next on to another future by
 * fj_future_forward(): *next is stored before fn() can run.
 *
 *   from     any thread.
 *   order    everything that led to the outcome of `f`, and what the caller did before the call,
 *            happen before fn().
 *   owns     the caller gets one reference in *next. The pool must not be destroyed before `f` is
 *            done.
 *   returns  FJ_OK. FJ_EINVAL if `f`, `fn` or `next` is NULL, or if `f` is a completer that has a
 *            parent. FJ_ENOMEM. After an error nothing was registered and *next is unchanged.
 *            If `f` succeeds and fn() cannot be queued, *next fails with FJ_EREJECTED or FJ_ENOMEM:
 *            see fj_future_submit().
 *   Java     CompletableFuture.thenApplyAsync().
 */
FJ_API FJ_NODISCARD int fj_future_then(fj_future *f, fj_then_fn *fn, void *arg, fj_future **next);

/*
 * Makes the future *next as fj_future_then() does, but fn() runs whatever the outcome of `f` is. fn()
 * gets the code of `f` and may return FJ_OK.
 *
 *   returns  as fj_future_then().
 *   Java     CompletableFuture.handleAsync().
 */
FJ_API FJ_NODISCARD int fj_future_handle(fj_future *f, fj_then_fn *fn, void *arg, fj_future **next);

/*
 * Makes the future *next as fj_future_then() or fj_future_handle() does. fn() runs in `pool` (NULL:
 * the common pool).
 *
 *   returns  as fj_future_then(). FJ_EINVAL also if `when` is not a value of enum fj_then_when.
 *   Java     CompletableFuture.thenApplyAsync(fn, executor), handleAsync(fn, executor).
 */
FJ_API FJ_NODISCARD int fj_future_then_in(fj_pool *pool, fj_future *f, enum fj_then_when when,
                                          fj_then_fn *fn, void *arg, fj_future **next);

/*
 * Gives `to` the outcome of `f` when `f` is done: the result, the failure or the cancellation. If
 * `to` is done before, nothing happens. No task runs: the thread that decides `f` decides `to`.
 *
 *   from     any thread.
 *   owns     the library has a reference to `to` until `f` is done, if `to` is allocated. Otherwise
 *            `to` must be valid until `f` is done and its functions have returned
 *            (forkjoin/listen.h).
 *   returns  FJ_OK. FJ_EINVAL if `f` or `to` is NULL, if they are the same future, or if one of them
 *            is a completer that has a parent. FJ_ENOMEM. After an error nothing was registered.
 *   Java     CompletableFuture.thenCompose(), with a function that returns FJ_PENDING.
 */
FJ_API FJ_NODISCARD int fj_future_forward(fj_future *f, fj_future *to);

/*
 * Makes the future *all, which is done when all n futures are done. It succeeds with the result NULL
 * if all have succeeded. Otherwise it fails with the code of the first future in the array that has
 * failed or was cancelled; if that one was cancelled, *all is cancelled.
 *
 * If n is 0, *all has succeeded when the call returns. The same future may be in the array twice.
 *
 *   from     any thread.
 *   owns     the caller gets one reference in *all. The library does not use the array after the
 *            call.
 *   returns  FJ_OK. FJ_EINVAL if `all` is NULL; or if n is not 0, and `f` or one of its elements is
 *            NULL or is a completer that has a parent. FJ_ENOMEM. After an error nothing was
 *            registered and *all is unchanged.
 *   Java     CompletableFuture.allOf().
 */
FJ_API FJ_NODISCARD int fj_future_all_of(fj_future *const *f, size_t n, fj_future **all);

/*
 * Makes the future *any, which is done when one of n futures has succeeded, or when all are done. Its
 * result is the index in `f` of the first future that has succeeded: (size_t)(uintptr_t)result. If
 * none succeeds, *any fails with the code of the future that has failed last, and is cancelled if
 * all were cancelled.
 *
 * The other futures are not cancelled when one has succeeded.
 *
 *   from     any thread.
 *   owns     as fj_future_all_of().
 *   returns  FJ_OK. FJ_EINVAL if n is 0, and where fj_future_all_of() returns FJ_EINVAL. FJ_ENOMEM.
 *            After an error nothing was registered and *any is unchanged.
 *   Java     CompletableFuture.anyOf(), which ends with the first failure, too.
 */
FJ_API FJ_NODISCARD int fj_future_any_of(fj_future *const *f, size_t n, fj_future **any);

FJI_EXTERN_C_END

#endif /* FORKJOIN_THEN_H */
