/* SPDX-License-Identifier: MIT */
/*
 * future.h - the functions that the files of this folder share
 *
 * future.c has the state word of a future and explains its bits and transitions. future_wait.c
 * queues, runs and awaits one future, future_many.c several. future_call.c, completer.c and timer.c
 * are kinds of futures.
 *
 * Any thread may call these functions, unless a comment names the thread. No lock is needed.
 */
#ifndef FJI_FUTURE_H
#define FJI_FUTURE_H

#include "sched/await.h"
#include "sched/pool.h"

/* ---- Running --------------------------------------------------------------------------------- */

/* Runs the body of f under the token of f and returns its code. w: the calling worker, or NULL. */
int fji_future_body(fj_future *f, fji_worker *w);

/* Called by the runner after its body has returned `code`, or was not run. Sets the outcome, unless
 * f is resolved or `code` is FJ_PENDING, and releases f. LAST TOUCH of *f. */
void fji_future_finish(fj_future *f, int code);

/* Runs the body as fji_future_body() does. If f is resolved or was discarded, the body does not run
 * and the call returns FJ_ECANCELED. w: the calling worker, or NULL. */
int fji_future_execute(fj_future *f, fji_worker *w);

/* Drops one reference to f. The last one frees it. Does nothing if f is embedded. */
void fji_future_drop(fj_future *f);

/* ---- The outcome ----------------------------------------------------------------------------- */

/*
 * Resolves f: sets its outcome to `result` and `code`. `bits` is FJI_FAILED, FJI_CANCELLED or 0.
 * `how` has any of these flags:
 *
 *   INTERRUPTS   interruptible waits inside the body end
 *   QUIETLY      f ends by itself, so its token is not set; unless `bits` is FJI_CANCELLED
 *   REPORTS      sets FJI_REPORTED
 *   HOLDS        with REPORTS: f becomes DONE only in fji_future_publish_held(). The caller calls
 *                fji_future_hold() first. Until then only the calling thread sees f as done.
 *
 * Returns false if f was resolved before. LAST TOUCH of *f if it returns true, except with HOLDS.
 */
#define FJI_RESOLVE_INTERRUPTS 1u
#define FJI_RESOLVE_QUIETLY 2u
#define FJI_RESOLVE_REPORTS 4u
#define FJI_RESOLVE_HOLDS 8u
bool fji_future_resolve(fj_future *f, uint32_t bits, void *result, int code, unsigned how);

/* A future that a thread has resolved with HOLDS and not published yet. The record is on the stack
 * of that thread, and the records of one thread form a list. */
typedef struct fji_held {
    fj_future *future;
    struct fji_held *outer;
} fji_held;

/* After fji_future_resolve() with HOLDS: the calling thread sees f as done from now on. */
void fji_future_hold(fj_future *f, fji_held *held);

/* Makes the future DONE for all threads and wakes its waiters. Called by the thread that holds it,
 * in reverse order of the holds. LAST TOUCH of the future. */
void fji_future_publish_held(fji_held *held);

/* Sets REPORTED if f is done and failed or was cancelled. Returns true if this call was the first
 * to set it; then the caller reports the failure to the parents. */
bool fji_future_claim_report(fj_future *f);

/* ---- Reading --------------------------------------------------------------------------------- */

/* The state word, with DONE added if the calling thread holds f. */
uint32_t fji_future_word(const fj_future *f);

/* Waits while another thread resolves f (COMPLETING). Returns whether f is done. f is no completer. */
bool fji_future_await_resolver(const fj_future *f);

/* Waits while another thread resolves f (COMPLETING). Returns whether f is done. f is not a
 * completer. Called by any thread. */
bool fji_future_await_resolver(const fj_future *f);

/* Whether the calling thread holds f. */
bool fji_future_is_held(const fj_future *f);

/* Whether a queue, the wheel or a worker has f, so that its memory must not be freed. */
bool fji_future_is_in_use(const fj_future *f);

/* fj_future.fail_seq of a future that failed while a thread waited for one of several futures: this
 * flag, and a number of 31 bits that grows with each failure. 0 if the future has not failed so. */
#define FJI_FAIL_SEQ_VALID 0x80000000u

/* The code of a future that is done. */
int fji_future_code(const fj_future *f);

/* f was queued in the parent process of this process, so no thread runs it: cancels it, unless it
 * is resolved, and releases it. */
void fji_future_orphan(fj_future *f);

/* ---- Queueing and waiting -------------------------------------------------------------------- */

/* Whether f can be queued: it is not NULL, has a body, and was neither queued nor run since it was
 * initialised. */
bool fji_future_may_queue(const fj_future *f);

/* The pool that f was submitted to or scheduled in, or NULL. */
fj_pool *fji_future_pool(const fj_future *f);

/*
 * Queues f, which may be queued, in p. `outside`: in a submission queue even if the caller is a
 * worker of p. `wake`: wakes a worker. The library has a reference to an allocated future while it
 * is queued or runs. Returns FJ_OK, FJ_EREJECTED or FJ_ENOMEM.
 */
int fji_future_queue(fj_pool *p, fj_future *f, bool outside, bool wake);

/* The deadline of a wait with this timeout: FJI_ONLY_LOOK, do not wait, if timeout_ns is not
 * positive. */
#define FJI_ONLY_LOOK INT64_MIN
int64_t fji_future_deadline(int64_t timeout_ns);

/* Waits until the word of f has one of the bits how->done. Returns FJ_OK, FJ_ETIMEDOUT, or
 * FJ_ECANCELED if how->interruptible is set and the task of the calling worker is interrupted. */
int fji_future_await(fj_future *f, const fji_wait *how);

/* ---- Completers ------------------------------------------------------------------------------ */

/* The address of the root if f is a completer, otherwise 0. */
static inline uintptr_t fji_completer_root(const fj_future *f)
{
    return (f->flags & FJI_FUTURE_COMPLETER) != 0 ? (uintptr_t)((const fj_completer *)f)->root : 0;
}

/* Whether f is a completer with a parent. Such a completer uses the token of its root. */
static inline bool fji_completer_is_child(const fj_future *f)
{
    uintptr_t root = fji_completer_root(f);
    return root != 0 && root != (uintptr_t)f;
}

#endif /* FJI_FUTURE_H */
