/* SPDX-License-Identifier: MIT */
/*
 * future.h - the functions that the files of this folder share
 *
 * future.c has the state word of a future and explains its bits and transitions. future_wait.c
 * queues one future, runs it and waits for it; future_many.c does so with several futures.
 * future_call.c, completer.c and timer.c contain kinds of futures.
 *
 * Any thread may call these functions, unless a comment names the thread. The caller needs no lock.
 */
#ifndef FJI_FUTURE_H
#define FJI_FUTURE_H

#include "sched/await.h"
#include "sched/pool.h"

/* ---- Running --------------------------------------------------------------------------------- */

/* Runs the body of f and returns its code. w: the calling worker or guest, or NULL; if it is not
 * NULL, the body runs in the scope of f's token. If the pool of w has an interrupt_signal and f is
 * resolved already, does not run the body and returns FJ_ECANCELED. */
int fji_future_body(fj_future *f, fji_worker *w);

/* Called by the finishing thread (future.c) when the body of f has returned `code`, or when the
 * thread has decided not to run the body. Sets the outcome, unless f is resolved already or `code`
 * is FJ_PENDING, and releases f. LAST TOUCH of *f. */
void fji_future_finish(fj_future *f, int code);

/* Runs the body as fji_future_body() does and returns its code. If f is resolved or was discarded,
 * does not run the body and returns FJ_ECANCELED. w: the calling worker or guest, or NULL. */
int fji_future_execute(fj_future *f, fji_worker *w);

/* Drops one reference to f, and frees f if it was the last one. Does nothing if f is not allocated
 * by the library. */
void fji_future_drop(fj_future *f);

/* ---- The outcome ----------------------------------------------------------------------------- */

/*
 * Resolves f: sets its outcome to `result` and `code`. `bits` is FJI_FAILED, FJI_CANCELLED, or 0
 * for success. `how` is 0 or has some of these flags:
 *
 *   INTERRUPTS   the interruptible waits inside the body of f end
 *   QUIETLY      the token of f is not set. For a root of which all tasks have reported, so that
 *                none of them has to see a cancel. Has no effect if `bits` is FJI_CANCELLED
 *   REPORTS      sets FJI_REPORTED
 *   HOLDS        only with REPORTS: does not make f DONE. The caller calls fji_future_hold() next,
 *                and fji_future_publish_held() later, which makes f DONE. In between only the
 *                calling thread sees f as done.
 *
 * Returns true if it resolved f, and false if f was resolved before. LAST TOUCH of *f if it returns
 * true, except with HOLDS.
 */
#define FJI_RESOLVE_INTERRUPTS 1u
#define FJI_RESOLVE_QUIETLY 2u
#define FJI_RESOLVE_REPORTS 4u
#define FJI_RESOLVE_HOLDS 8u
bool fji_future_resolve(fj_future *f, uint32_t bits, void *result, int code, unsigned how);

/* A future that a thread has resolved with HOLDS and not published yet: the thread holds the
 * future. The record is on the stack of that thread, and the records of one thread form a list. */
typedef struct fji_held {
    fj_future *future;
    struct fji_held *outer; /* the record that the thread made before this one, or NULL */
} fji_held;

/* Called after fji_future_resolve() with HOLDS, by the same thread: fills *held and adds it to the
 * list of the thread. From now on the calling thread sees f as done. */
void fji_future_hold(fj_future *f, fji_held *held);

/* Makes the future of *held DONE for all threads and wakes its waiters. Called by the thread that
 * called fji_future_hold() for the future. A thread that did so for several futures publishes them
 * in the reverse order of fji_future_hold(). LAST TOUCH of the future. */
void fji_future_publish_held(fji_held *held);

/* If f is done and has failed or was cancelled, sets REPORTED. Returns true if REPORTED was not set
 * before; then the caller reports the failure to the parents of f. Otherwise returns false. */
bool fji_future_claim_report(fj_future *f);

/* ---- Reading --------------------------------------------------------------------------------- */

/* Returns the state word of f, with DONE added if the calling thread has resolved f with
 * FJI_RESOLVE_HOLDS and not published it yet: only that thread sees f as done then. */
uint32_t fji_future_word(const fj_future *f);

/* Waits while another thread resolves f (COMPLETING). Returns whether f is done then. f is not a
 * completer, because a wait for a completer could have to wait for user code (on_error). */
bool fji_future_await_resolver(const fj_future *f);

/* Returns whether the calling thread has resolved f with FJI_RESOLVE_HOLDS and has not called
 * fji_future_publish_held() for it yet. */
bool fji_future_is_held(const fj_future *f);

/* Returns whether a queue, the wheel or a worker has f, so that the memory of f must not be
 * freed. */
bool fji_future_is_in_use(const fj_future *f);

/* The flag of fj_future.fail_seq. Consider a thread that waits until one of several futures is
 * done. If one of these futures fails during the wait, its fail_seq becomes this flag and a number
 * of 31 bits. The number comes from a counter of the process, which each such failure increases by
 * 1. The fail_seq of every other future is 0. */
#define FJI_FAIL_SEQ_VALID 0x80000000u

/* Returns the code of f, which is done. */
int fji_future_code(const fj_future *f);

/* Called for a future that was queued in the parent process, so that no thread of this process runs
 * it: cancels f, unless f is resolved, and releases it. */
void fji_future_orphan(fj_future *f);

/* ---- Queueing and waiting -------------------------------------------------------------------- */

/* Returns whether f can be queued: f is not NULL, has a body, and was neither queued nor run since
 * it was initialised. */
bool fji_future_may_queue(const fj_future *f);

/* Returns the pool in which f was forked, submitted or scheduled, or NULL if f was never queued or
 * scheduled. */
fj_pool *fji_future_pool(const fj_future *f);

/*
 * Queues f in p. The caller has checked f with fji_future_may_queue(). If `outside` is true, f goes
 * into a submission queue even if the caller is a worker of p. If `wake` is true, wakes a worker.
 * If f is allocated, the library has a reference to f while f is queued or runs. Returns FJ_OK,
 * FJ_EREJECTED or FJ_ENOMEM.
 */
int fji_future_queue(fj_pool *p, fj_future *f, bool outside, bool wake);

/* Returns the deadline of a wait with the timeout timeout_ns. If timeout_ns is not positive, the
 * deadline is FJI_ONLY_LOOK: the call checks once and does not wait. */
#define FJI_ONLY_LOOK INT64_MIN
int64_t fji_future_deadline(int64_t timeout_ns);

/* Waits until the state word of f has one of the bits how->done. Returns FJ_OK, FJ_ETIMEDOUT, or
 * FJ_ECANCELED if how->interruptible is set and the task of the calling worker is interrupted. */
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
