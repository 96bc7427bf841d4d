/* SPDX-License-Identifier: MIT */
/*
 * future.h - the functions that the files of this folder share
 *
 * future.c has the state word of a future and explains its bits and transitions. future_wait.c
 * queues one future, runs it and waits for it; future_many.c does so with several futures. listen.c
 * registers listeners, which are the functions that are called when a future is done, and
 * listeners.c calls them. future_read.c reads the state of a future. future_call.c, completer.c and
 * timer.c contain kinds of futures.
 *
 * Any thread may call these functions, unless a comment names the thread. The caller needs no lock.
 */
#ifndef FJI_FUTURE_H
#define FJI_FUTURE_H

#include "sched/await.h"
#include "sched/pool.h"

/* ---- Running --------------------------------------------------------------------------------- */

/* Runs the body of f and returns its code. w: the calling worker or guest, or NULL if the calling
 * thread works for no pool; if w is not NULL, the body runs in the scope of f's token. The caller
 * has checked that f is not resolved. In a pool with an interrupt_signal this function checks it
 * again: if a thread has resolved f meanwhile or is resolving it, the body does not run and the
 * function returns FJ_ECANCELED. */
int fji_future_body(fj_future *f, fji_worker *w);

/* Called by the finishing thread (future.c) when the body of f has returned `code`, or when the
 * thread does not run the body; `code` is FJ_ECANCELED then. f is not a completer. Waits while
 * another thread resolves f. Sets the outcome, unless f is resolved already or `code` is
 * FJ_PENDING: FJ_OK is success, FJ_ECANCELED is a cancel, any other code is a failure. In all cases
 * releases f, calls its release function, and drops the library's reference if f is allocated. LAST
 * TOUCH of *f. */
void fji_future_finish(fj_future *f, int code);

/* Called by the thread that has taken f out of a queue. Runs the body as fji_future_body() does and
 * returns its code. Does not run the body and returns FJ_ECANCELED if f is resolved, if another
 * thread is resolving f, or if the caller has set DISCARDED in the state word (fji_cancel_taken()).
 * w: the calling worker or guest, or NULL if the calling thread works for no pool; if w is not
 * NULL, the state word says from now on that w runs f. */
int fji_future_execute(fj_future *f, fji_worker *w);

/* Drops one reference to f, and frees f if it was the last one. If f is not done then and has
 * listeners, cancels f first, so that the listeners are called. Does nothing if f is not allocated
 * by the library. */
void fji_future_drop(fj_future *f);

/* ---- Listeners ------------------------------------------------------------------------------- */

/* Bits of fj_listener.flags: the library allocated the listener; it is the last one of its
 * future. */
#define FJI_LISTENER_ALLOCATED 1u
#define FJI_LISTENER_LAST 2u

/* A function that is called when the last listener of f has returned. */
typedef void fji_listeners_end(fj_future *f, uint32_t flags);

/*
 * Called by the thread that has set DONE in the state word of a future, if the old word had
 * LISTENED. `last` is the list of the listeners: the one that was registered last, which points to
 * the first. Calls the listeners in the order of registration, then end() with the flags of `last`,
 * which contain `flags`. But if the calling thread is in a listener, only appends them to the queue
 * of the thread, and all this happens when that listener has returned. The bits of `flags` are above
 * those of fj_listener.flags. All calls pass the same `end`.
 */
void fji_listeners_call(fj_listener *last, uint32_t flags, fji_listeners_end *end);

/* Called in a thread that is about to wait until the state word of a future has CALLED. If the
 * thread is in a listener, calls the listeners in the queue of the thread now: the awaited ones may
 * be among them. */
void fji_listeners_call_deferred(void);

/* ---- The outcome ----------------------------------------------------------------------------- */

/*
 * Resolves f: sets its outcome to `result` and `code`. `bits` is FJI_FAILED, FJI_CANCELLED, or 0
 * for success. `how` is 0 or has some of these flags:
 *
 *   INTERRUPTS   ends the interruptible waits of all tasks that run with the token of f, and sends
 *                the interrupt_signal of the pool, if it has one, to the worker that runs the body
 *   QUIETLY      does not cancel the token of f. Used for a root when the body of the root and all
 *                completers below it have finished, so that no task has to see a cancel. Has no
 *                effect if `bits` is FJI_CANCELLED
 *   REPORTS      only for completers: sets REPORTED, EXTERNAL and `bits` in the state word together
 *                with COMPLETING, before DONE
 *   HOLDS        only with REPORTS: does not make f DONE. The caller calls fji_future_hold() next,
 *                and fji_future_publish_held() later, which makes f DONE. In between only the
 *                calling thread sees f as done.
 *
 * If another thread is resolving f, waits until that thread has made f DONE; but if that thread has
 * passed REPORTS, does not wait. Returns true if this call resolved f, and false if another call or
 * the body did. LAST TOUCH of *f if it returns true, except with HOLDS.
 */
#define FJI_RESOLVE_INTERRUPTS 1u
#define FJI_RESOLVE_QUIETLY 2u
#define FJI_RESOLVE_REPORTS 4u
#define FJI_RESOLVE_HOLDS 8u
bool fji_future_resolve(fj_future *f, uint32_t bits, void *result, int code, unsigned how);

/* A future that a thread has resolved with FJI_RESOLVE_HOLDS and not made DONE yet: the future is
 * held. (The holds of sched/hold.h are something else.) The struct is a local variable of that
 * thread, and the structs of one thread form a list. */
typedef struct fji_held {
    fj_future *future;
    struct fji_held *outer; /* the struct that the thread added to the list before, or NULL */
} fji_held;

/* Called after fji_future_resolve() with FJI_RESOLVE_HOLDS, by the same thread: fills *held and
 * adds it to the list of the thread's held futures. From now on the calling thread, and no other
 * one, sees f as done. */
void fji_future_hold(fj_future *f, fji_held *held);

/* Makes the future of *held DONE for all threads and wakes its waiters. Called by the thread that
 * called fji_future_hold() for the future. A thread that did so for several futures publishes them
 * in the reverse order of fji_future_hold(). LAST TOUCH of the future. */
void fji_future_publish_held(fji_held *held);

/* f is a completer with a parent. If f is done and has failed or was cancelled, sets REPORTED in
 * its state word. Returns true if REPORTED was not set before; then the caller reports the failure
 * to the parent of f. Returns false if f is not done, has succeeded, or had REPORTED. */
bool fji_future_claim_report(fj_future *f);

/* ---- Reading --------------------------------------------------------------------------------- */

/* Returns the value of the state word of f. If the calling thread holds f (fji_future_is_held()),
 * the returned value has the bit DONE, although the state word does not have it yet. */
uint32_t fji_future_word(const fj_future *f);

/* If another thread is resolving f, that is, if the state word of f has COMPLETING, waits until f
 * is done. Returns true if f is done, and false if f is not resolved and no thread was resolving
 * it. f is not a completer, because such a wait could have to wait for user code (on_error). */
bool fji_future_await_resolver(const fj_future *f);

/* Returns whether the calling thread holds f: it has called fji_future_hold() for f, and has not
 * called fji_future_publish_held() yet. */
bool fji_future_is_held(const fj_future *f);

/* Returns whether f was queued or scheduled and RELEASED is not set in its state word: a queue, the
 * wheel or a worker may have f, so that the memory of f must not be freed. Two exceptions: a
 * completer with a parent never gets RELEASED, so the result stays true after it was queued. And
 * the result is false while fj_future_run() runs a future that was never queued. */
bool fji_future_is_in_use(const fj_future *f);

/* The flag of fj_future.fail_seq. Consider a thread that waits until one of several futures is
 * done. If one of these futures fails after the wait has begun, its fail_seq becomes this flag and
 * a number of 31 bits. The number comes from a counter of the process, which each such failure
 * increases by 1. So a greater number, modulo 2^31, means a later failure
 * (fj_future_invoke_any()). A fail_seq without the flag is 0 and has no number. */
#define FJI_FAIL_SEQ_VALID 0x80000000u

/* Returns the code of f, which is done: FJ_OK if f has succeeded, FJ_ECANCELED if f was cancelled,
 * otherwise the code of the failure. */
int fji_future_code(const fj_future *f);

/* Called in the child process after fork(), for a future that was queued, scheduled or run in the
 * parent process, so that no thread of this process runs or finishes it. Cancels f, unless f is
 * resolved, and sets RELEASED in its state word. Does not drop the library's reference to f, and
 * does not call the release function. */
void fji_future_orphan(fj_future *f);

/* ---- Queueing and waiting -------------------------------------------------------------------- */

/* Returns whether f can be queued: f is not NULL, has a body, and was neither queued nor run since
 * it was initialised or reinitialised. A future that fj_future_unfork() has taken back out of its
 * queue can be queued again. */
bool fji_future_may_queue(const fj_future *f);

/* Returns the pool in which f was forked, submitted or scheduled, or NULL if f was never queued or
 * scheduled, or was taken back by fj_future_unfork(). The pool may have been freed, unless f is
 * still in use (fji_future_is_in_use()). */
fj_pool *fji_future_pool(const fj_future *f);

/*
 * Queues f in p. The caller has checked f with fji_future_may_queue(). If the caller is a worker or
 * guest of p and `outside` is false, f goes into the caller's own queue if that has space, even if
 * p is shut down. Otherwise f goes into a submission queue. If `wake` is true, wakes a worker;
 * otherwise f is lazy. If f is allocated, the library has a reference to f while f is queued or
 * runs. Returns FJ_OK; FJ_EREJECTED if p is shut down and f would go into a submission queue;
 * FJ_ENOMEM if no queue has space. If p is the common pool and is shut down, waits for its end and
 * queues f in the next common pool instead; returns FJ_EREJECTED only if that end waits for the
 * calling thread. After an error f is not queued and the caller may queue it again.
 */
int fji_future_queue(fj_pool *p, fj_future *f, bool outside, bool wake);

/* Returns the deadline of a wait that begins now and lasts at most timeout_ns: a time of
 * fji_plat_now(), or FJ_FOREVER if the sum overflows, as it does if timeout_ns is FJ_FOREVER. If
 * timeout_ns is not positive, the deadline is FJI_ONLY_LOOK: the call that waits checks once and
 * does not wait. */
#define FJI_ONLY_LOOK INT64_MIN
int64_t fji_future_deadline(int64_t timeout_ns);

/* Waits until the state word of f has one of the bits how->done. If the wait has no deadline, the
 * calling thread may run f and other tasks meanwhile (future_wait.c). The members `token` and
 * `guest` of *how are ignored. Returns FJ_OK if a bit is set; if f is orphaned, cancels f and
 * returns FJ_OK. Returns FJ_ETIMEDOUT if the deadline passes, or at once if the deadline is
 * FJI_ONLY_LOOK. Returns FJ_ECANCELED if how->interruptible is true, the caller is a worker or
 * guest, and the task that it runs is interrupted. */
int fji_future_await(fj_future *f, const fji_wait *how);

/* ---- Completers ------------------------------------------------------------------------------ */

/* Returns the address of the root if f is a completer, otherwise 0. */
static inline uintptr_t fji_completer_root(const fj_future *f)
{
    return (f->flags & FJI_FUTURE_COMPLETER) != 0 ? (uintptr_t)((const fj_completer *)f)->root : 0;
}

/* Returns whether f is a completer with a parent. Such a completer uses the token of its root. */
static inline bool fji_completer_is_child(const fj_future *f)
{
    uintptr_t root = fji_completer_root(f);
    return root != 0 && root != (uintptr_t)f;
}

#endif /* FJI_FUTURE_H */
