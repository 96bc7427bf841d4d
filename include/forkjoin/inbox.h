/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/inbox.h - hands callbacks from any thread to the thread of an event loop
 *
 * An inbox is a queue of callbacks. Any thread posts a callback, and the thread of the loop runs it.
 * The inbox has a file descriptor, which is readable while callbacks wait. The loop polls this
 * descriptor together with its other ones, and calls fj_inbox_run() when it is readable:
 *
 *     static void show(fj_future *f, void *arg) // runs in the thread of the loop
 *     {
 *         struct page *page = arg;
 *         page->done = fj_future_succeeded(f);
 *     }
 *
 *     fj_inbox *inbox;
 *     fj_future *f;
 *     int err = fj_inbox_create(NULL, &inbox);
 *     if (err == FJ_OK) err = fj_submit_call(NULL, render, &page, &f); // a worker calls render()
 *     if (err == FJ_OK) err = fj_future_notify(f, inbox, show, &page);
 *     struct pollfd ready = {.fd = fj_inbox_fd(inbox), .events = POLLIN};
 *     while (!page.done)
 *         if (poll(&ready, 1, -1) == 1) fj_inbox_run(inbox, 0);
 *     fj_future_unref(f);
 *     fj_inbox_destroy(inbox);
 *
 * A loop that has its own way to be woken, and cannot poll a descriptor, gives the inbox a notify()
 * callback. The inbox has no descriptor then.
 *
 * Wake-ups
 *   A post makes a system call, or calls notify(), only if the inbox is empty and the loop may be
 *   asleep. So one wake-up serves all callbacks that are posted until the loop has run them, and a
 *   loop that always finds callbacks causes no wake-up at all.
 *
 *   After fj_inbox_run() the descriptor is readable if callbacks are left, otherwise it is not. It
 *   may also be readable once although no callback waits; fj_inbox_run() returns 0 then. Never read
 *   from the descriptor or write to it. With edge-triggered polling (EPOLLET) call fj_inbox_run()
 *   until it returns 0.
 *
 * Order
 *   Callbacks run one at a time, in the order in which they were posted. What a thread did before
 *   its post happens before the callback.
 *
 * Memory
 *   fj_inbox_post() and fj_future_notify() take a cell of the inbox and allocate only if all cells
 *   are in use. The inbox keeps its cells until it is freed: as many as were in use at the same
 *   time, rounded up to the next doubling. fj_inbox_post_item() uses memory of the caller instead.
 *
 * The end of an inbox
 *   fj_inbox_close() drops the callbacks that have not run: they never run, and the inbox passes
 *   each of them to its drop() callback, so that the program can free what belongs to it. A post
 *   into a closed inbox returns FJ_EREJECTED. If a future is done after the inbox was closed, the
 *   callback that fj_future_notify() has registered is dropped in the same way, by the thread that
 *   decides the outcome of the future.
 *
 *   An inbox is freed when its last reference is dropped. fj_inbox_create() makes one reference, and
 *   fj_inbox_destroy() drops it. Every registered fj_future_notify() has a reference, so the program
 *   may destroy an inbox while futures are not done. A thread that calls fj_inbox_post() at a time
 *   at which another thread may destroy the inbox needs a reference of its own: fj_inbox_ref().
 *
 * fork()
 *   A child process made by fork() shares the descriptor with its parent and has no thread that
 *   posts. In the child, fj_inbox_run() and fj_inbox_close() return FJ_EREJECTED and change nothing,
 *   and a callback that the child posts never runs. fj_inbox_destroy() closes the descriptor of the
 *   child and calls no callback; it does not affect the parent.
 */
#ifndef FORKJOIN_INBOX_H
#define FORKJOIN_INBOX_H

#include <forkjoin.h>

FJI_EXTERN_C_BEGIN

typedef struct fj_inbox fj_inbox; /* opaque */

/* A callback of an inbox. */
typedef void fj_inbox_fn(void *arg);

/* A callback that was dropped: `fn` was posted, or `done` was registered by fj_future_notify() for
 * `future`. The other pointers are NULL. */
typedef struct fj_inbox_dropped {
    fj_inbox_fn *fn;
    fj_done_fn *done;
    fj_future *future;
    void *arg; /* the argument of fn or done */
} fj_inbox_dropped;

/* Options of an inbox. 0 in each member selects its default. */
typedef struct fj_inbox_options {
    /*
     * NULL, or a function that wakes the loop, so that the loop calls fj_inbox_run(). The inbox then
     * has no file descriptor. A thread that posts calls notify(notify_arg), and so does
     * fj_inbox_run() if it leaves callbacks. So several threads may call it at the same time.
     * notify() must not wait for the thread of the loop, and must not call fj_inbox_run(),
     * fj_inbox_close() or fj_inbox_destroy(). When fj_inbox_close() has returned, the inbox does not
     * call notify() any more.
     */
    void (*notify)(void *notify_arg);
    void *notify_arg;
    /*
     * NULL, or a function that gets each callback that will never run. The thread that closes the
     * inbox calls it, and later any thread that decides the outcome of a future with a registered
     * callback. It should free what belongs to the callback. dropped->future is valid during the
     * call.
     */
    void (*drop)(const fj_inbox_dropped *dropped, void *drop_arg);
    void *drop_arg;
    uint64_t reserved[4];
} fj_inbox_options;

/* A callback in memory of the caller, for fj_inbox_post_item(). The members are private. */
typedef struct fj_inbox_item {
    struct fj_inbox_item *next;
    fj_inbox_fn *fn;
    void *arg;
    uint32_t kind;
    uint32_t posted;
} fj_inbox_item;

/*
 * Creates an inbox. If `options` is NULL, all options have their defaults.
 *
 *   owns     the caller owns the inbox and frees it by fj_inbox_destroy().
 *   returns  FJ_OK. FJ_EINVAL if `inbox` is NULL or a reserved member is not 0. FJ_ENOMEM if there
 *            is no memory. FJ_EAGAIN if the system refuses the file descriptor. After an error
 *            *inbox is unchanged.
 */
FJ_API FJ_NODISCARD int fj_inbox_create(const fj_inbox_options *options, fj_inbox **inbox);

/*
 * Returns the file descriptor of the inbox, which is readable while callbacks wait. It belongs to
 * the inbox and is valid until fj_inbox_destroy().
 *
 *   returns  the descriptor. FJ_EINVAL, which is negative, if `inbox` is NULL or has a notify()
 *            callback.
 */
FJ_API int fj_inbox_fd(const fj_inbox *inbox);

/*
 * Posts fn(arg): the thread of the loop calls it in fj_inbox_run().
 *
 *   from     any thread, also from a callback of the inbox. The call never waits.
 *   order    what the caller did before the call happens before fn().
 *   returns  FJ_OK. FJ_EINVAL if `inbox` or `fn` is NULL. FJ_EREJECTED if the inbox is closed.
 *            FJ_ENOMEM if all cells are in use and there is no memory for more. After an error fn()
 *            is not called, and drop() is not called either.
 *   Java     Executor.execute() of an event loop.
 */
FJ_API FJ_NODISCARD int fj_inbox_post(fj_inbox *inbox, fj_inbox_fn *fn, void *arg);

/* Initialises `item` with the callback fn(arg). It is not posted. If `fn` is NULL, the item has no
 * callback and cannot be posted. */
FJ_API void fj_inbox_item_init(fj_inbox_item *item, fj_inbox_fn *fn, void *arg);

/*
 * Posts the callback of `item` as fj_inbox_post() does. The call needs no memory.
 *
 *   from     any thread, but two threads must not post the same item at the same time.
 *   order    what the caller did before the call happens before the callback.
 *   owns     the inbox owns `item` until it calls the callback, or passes it to drop(). The callback
 *            may free the item or post it again.
 *   returns  FJ_OK. FJ_EINVAL if `inbox` or `item` is NULL, or if the item has no callback.
 *            FJ_EREJECTED if the inbox is closed. FJ_EBUSY if the item is posted already.
 */
FJ_API FJ_NODISCARD int fj_inbox_post_item(fj_inbox *inbox, fj_inbox_item *item);

/*
 * Runs at most `max` of the callbacks that were posted before the call, in their order. If `max` is
 * 0, it runs all of them. A callback that is posted during the call runs in a later call, so a
 * callback may post itself again.
 *
 *   from     the thread of the loop. Another thread may call it later, but not at the same time. A
 *            callback may call it, for example from a nested loop: this inner call runs callbacks
 *            that the outer call has not run yet.
 *   order    what one call did happens before the next call, also if another thread makes it.
 *   returns  the number of callbacks that this call has run. 0 if none was there, and if the inbox
 *            is closed. FJ_EINVAL if `inbox` is NULL or `max` is negative. FJ_EBUSY if another thread
 *            is in fj_inbox_run(), fj_inbox_close() or fj_inbox_destroy() of this inbox. FJ_EREJECTED
 *            in the child of a fork() of the process.
 *   Java     the inner loop of an event loop.
 */
FJ_API int fj_inbox_run(fj_inbox *inbox, int max);

/*
 * Closes the inbox: it drops the callbacks that have not run, and accepts no new ones. The head of
 * this file says more. A second call does nothing.
 *
 * If another thread is in notify(), the call waits until notify() has returned. Otherwise it does
 * not wait.
 *
 *   from     any thread, also a callback of the inbox.
 *   returns  FJ_OK. FJ_EINVAL if `inbox` is NULL. FJ_EBUSY if another thread is in fj_inbox_run(),
 *            fj_inbox_close() or fj_inbox_destroy() of this inbox. FJ_EDEADLK from notify().
 *            FJ_EREJECTED in the child of a fork() of the process. After an error nothing has
 *            changed.
 */
FJ_API int fj_inbox_close(fj_inbox *inbox);

/*
 * Closes the inbox as fj_inbox_close() does, and drops the reference that fj_inbox_create() has
 * made. The loop must have stopped polling the descriptor. If a callback of the inbox makes the
 * call, the reference is dropped when fj_inbox_run() has finished. If `inbox` is NULL, the call does
 * nothing.
 *
 *   from     any thread, also a callback of the inbox.
 *   owns     the caller must not use the inbox any more, unless it has a reference of fj_inbox_ref().
 *   returns  FJ_OK. FJ_EBUSY and FJ_EDEADLK as fj_inbox_close(); nothing has changed then. FJ_EINVAL
 *            if a callback destroys the inbox a second time.
 */
FJ_API int fj_inbox_destroy(fj_inbox *inbox);

/*
 * Adds a reference to the inbox, so that it is not freed before fj_inbox_unref().
 *
 *   from     any thread that has a reference, or that knows that another thread keeps one meanwhile.
 *   returns  `inbox`.
 */
FJ_API fj_inbox *fj_inbox_ref(fj_inbox *inbox);

/* Drops a reference that fj_inbox_ref() has added. The call that drops the last reference frees the
 * inbox. */
FJ_API void fj_inbox_unref(fj_inbox *inbox);

/*
 * Posts done(f, arg) when `f` is done, whatever its outcome is. If `f` is done already, the call
 * posts it at once. The thread of the loop calls done() in fj_inbox_run(), so that
 * fj_future_result() in it does not wait. A future may have any number of such callbacks.
 *
 *   from     any thread.
 *   order    everything that led to the outcome happens before done().
 *   owns     an allocated future stays valid until done() has returned; the inbox has a reference to
 *            it. An embedded future must stay valid until done() or drop() is called. The worker may
 *            still use it then, so done() calls fj_future_fini() before it frees it.
 *   returns  FJ_OK: done() is called once, or drop() if the inbox is closed before. FJ_EINVAL if `f`,
 *            `inbox` or `done` is NULL, and where fj_future_on_done() returns it. FJ_EREJECTED if
 *            the inbox is closed. FJ_ENOMEM if there is no memory. After an error neither done()
 *            nor drop() is called.
 *   Java     CompletableFuture.whenCompleteAsync() with the executor of an event loop.
 */
FJ_API FJ_NODISCARD int fj_future_notify(fj_future *f, fj_inbox *inbox, fj_done_fn *done,
                                         void *arg);

FJI_EXTERN_C_END

#endif /* FORKJOIN_INBOX_H */
