/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/listen.h - calling a function when a future is done
 *
 * Included by <forkjoin.h>. A thread that has to continue after a future need not wait for it. The
 * thread registers a function, and the library calls the function once, however the future ends:
 *
 *     static void loaded(fj_future *f, void *arg)
 *     {
 *         window *w = arg;
 *         window_post(w, fj_future_error(f)); // f is done: this returns its code
 *     }
 *
 *     int err = fj_future_on_done(f, loaded, w);
 *
 * Which thread calls
 *   The thread that decides the outcome of the future: a worker that has run the body or has taken
 *   the future out of its queue; or the thread that has called fj_future_complete(),
 *   fj_future_fail() or fj_future_cancel(); or a timer thread of the pool, if a time limit has
 *   expired; or the thread that ends the pool. If the future is done already, the calling thread of
 *   fj_future_on_done() calls the function before fj_future_on_done() returns.
 *
 * When it calls
 *   When the future is done. Threads that wait for the future may return before the function is
 *   called, or while it runs. The functions of one future are called one after the other, in the
 *   order in which they were registered. If a function decides the outcome of another future, the
 *   functions of that future are called by the same thread after the first function has returned.
 *   So a chain of futures, each of which decides the next one, uses no more stack than one of them.
 *
 * What the function may do
 *   The thread that calls the function has other work to do, so the function should be short. It
 *   may call every function of this library that does not wait, also on other futures. It must not
 *   wait for a future, a task or a pool. It may drop references, and it may free the fj_listener
 *   that it was registered with. It must not free an embedded future `f` and must not call
 *   fj_future_fini(f): the library uses `f` until all functions have returned.
 *
 * How long the future lives
 *   An allocated future has a reference while the library calls functions. The owner of an embedded
 *   future calls fj_future_fini() before it frees the future or uses it again: fj_future_fini()
 *   also waits until the functions of a done future have returned. The function of
 *   fj_future_set_release_fn() is called after them. If the last reference to an allocated future
 *   is dropped before the future is done, no thread can decide its outcome any more, so the library
 *   cancels it, and calls the functions. If an embedded future is never done, its functions are
 *   never called.
 *
 * A function does not wait for its future, and so runs no task. If the common pool has a parallelism
 * of 0, a thread has to wait for something, so that the futures in that pool run.
 *
 * After fork() of the process, the functions of a future are called in the child process if the
 * future becomes done there. A future that a thread of the parent process had queued becomes done in
 * the child process when a thread waits for it or cancels it.
 */
#ifndef FORKJOIN_LISTEN_H
#define FORKJOIN_LISTEN_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

FJI_EXTERN_C_BEGIN

/* A function that is called when `f` is done. fj_future_result(), fj_future_error() and
 * fj_future_state() return the outcome of `f`. */
typedef void fj_done_fn(fj_future *f, void *arg);

/* A registered function. The members are private. */
typedef struct fj_listener {
    struct fj_listener *next;
    fj_done_fn *fn;
    void *arg;
    fj_future *future;
    uint32_t flags;
    uint32_t spare;
} fj_listener;

/*
 * Registers fn(f, arg), to be called once when `f` is done. If `f` is done already, calls it now.
 *
 * The library allocates memory for the registration if `f` is not done.
 *
 *   from     any thread, also a function that is called because a future is done.
 *   order    everything that led to the outcome of `f`, and what the caller did before this call,
 *            happen before the call of fn().
 *   owns     an embedded future `f` stays valid until fn() has returned: see the head of this file.
 *   returns  FJ_OK. FJ_EINVAL if `f` or `fn` is NULL, or if `f` is a completer that has a parent,
 *            because such a completer does not become done when it succeeds. FJ_ENOMEM. After an
 *            error fn() is not called.
 *   Java     CompletableFuture.whenComplete().
 */
FJ_API FJ_NODISCARD int fj_future_on_done(fj_future *f, fj_done_fn *fn, void *arg);

/*
 * Registers fn(f, arg) as fj_future_on_done() does, with the memory of the caller. Allocates
 * nothing.
 *
 *   owns     the library owns *l until it calls fn(). fn() may free *l or register it again.
 *   returns  FJ_OK. FJ_EINVAL as fj_future_on_done(), and if `l` is NULL. After an error fn() is
 *            not called.
 */
FJ_API FJ_NODISCARD int fj_future_listen(fj_future *f, fj_listener *l, fj_done_fn *fn, void *arg);

FJI_EXTERN_C_END

#endif /* FORKJOIN_LISTEN_H */
