/* SPDX-License-Identifier: MIT */
/*
 * future.h - the state word of a future, as its modules use it
 */
#ifndef FJI_FUTURE_H
#define FJI_FUTURE_H

#include "sched/await.h"
#include "sched/pool.h"

/* Runs the body with its token. w: the calling worker, or NULL. */
int fji_future_body(fj_future *f, fji_worker *w);

/* The runner has finished: sets the outcome, unless the future is resolved, and releases the future. */
void fji_future_finish(fj_future *f, int code);

/* Runs the body unless the future is resolved or was discarded. w: the calling worker, or NULL. */
int fji_future_execute(fj_future *f, fji_worker *w);

/* Drops a reference, if f is an allocated future. */
void fji_future_drop(fj_future *f);

/*
 * Sets the outcome. `bits`: FAILED, CANCELLED, or none. Returns false if the future was resolved before.
 *
 *   INTERRUPTS   interruptible waits inside the body end
 *   QUIETLY      the future ends by itself: its body is not notified
 *   REPORTS      sets REPORTED
 *   HOLDS        with REPORTS: it is DONE only after fji_future_hold() and fji_future_publish_held(). In
 *                between only the calling thread sees it as done.
 */
#define FJI_RESOLVE_INTERRUPTS 1u
#define FJI_RESOLVE_QUIETLY 2u
#define FJI_RESOLVE_REPORTS 4u
#define FJI_RESOLVE_HOLDS 8u
bool fji_future_resolve(fj_future *f, uint32_t bits, void *result, int code, unsigned how);

typedef struct fji_held {
    fj_future *future;
    struct fji_held *outer;
} fji_held;
void fji_future_hold(fj_future *f, fji_held *held);
void fji_future_publish_held(fji_held *held);

/* Of a future that is done: whether it failed by a call, and this is the first to set REPORTED. */
bool fji_future_claim_report(fj_future *f);

/* The state word, with DONE if the calling thread holds the future. */
uint32_t fji_future_word(const fj_future *f);

/* Whether the calling thread holds f. */
bool fji_future_is_held(const fj_future *f);

/* Whether a queue or a worker has the future, so that its memory must not be freed. */
bool fji_future_is_in_use(const fj_future *f);

/* fj_task.fail_seq of a future that failed while a thread waited for one of several: the flag, and 31 bits
 * of a number that grows with each failure. Otherwise the field is a child_base, which is smaller. */
#define FJI_FAIL_SEQ_VALID 0x80000000u

/* The code of a future that is done. */
int fji_future_code(const fj_future *f);

/* f was queued in the parent process: no other thread resolves it. */
void fji_future_orphan(fj_future *f);

/* Whether f can be queued: it has a body, and is neither queued nor done. */
bool fji_future_may_queue(const fj_future *f);

/* The pool that f was submitted to, or NULL. */
fj_pool *fji_future_pool(const fj_future *f);

/* Queues f in p. */
int fji_future_queue(fj_pool *p, fj_future *f, bool outside, bool wake);

/* The deadline of a wait: FJI_ONLY_LOOK if timeout_ns is not positive. */
#define FJI_ONLY_LOOK INT64_MIN
int64_t fji_future_deadline(int64_t timeout_ns);

/* Waits until f has one of the bits how->done. Returns FJ_OK, FJ_ETIMEDOUT or FJ_ECANCELED. */
int fji_future_await(fj_future *f, const fji_wait *how);

/* The root of a completer; 0 if f is no completer. And whether f is a completer with a parent. */
static inline uintptr_t fji_completer_root(const fj_future *f)
{
    return (f->flags & FJI_FUTURE_COMPLETER) != 0 ? (uintptr_t)((const fj_completer *)f)->root : 0;
}

static inline bool fji_completer_is_child(const fj_future *f)
{
    uintptr_t root = fji_completer_root(f);
    return root != 0 && root != (uintptr_t)f;
}

#endif /* FJI_FUTURE_H */
