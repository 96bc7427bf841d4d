/* SPDX-License-Identifier: MIT */
/*
 * await.h - waiting for a task that another thread runs
 */
#ifndef FJI_AWAIT_H
#define FJI_AWAIT_H

#include "sched/pool.h"

/* How to wait. The waiter is the thread that calls fji_await_task() or fji_await_cell(). */
typedef struct fji_wait {
    uint32_t done; /* the wait ends when the state word has one of these bits */
    /* The wait also ends if the task that the waiter runs is interrupted (fji_interrupted()). Has
     * no effect if the waiter works for no pool. */
    bool interruptible;
    int64_t deadline;      /* a time of fji_plat_now(); FJ_FOREVER: the wait has no deadline */
    void *root;            /* root of the awaited completer, or NULL; see fji_help_once() */
    const fj_token *token; /* the token of the awaited future, or NULL */
    bool guest;            /* the waiter is a guest without a task; it is QUIET while it sleeps */
} fji_wait;
/* Waits for DONE, without a deadline, and cannot be interrupted. */
#define FJI_WAIT_DONE ((fji_wait){.done = FJI_DONE, .deadline = FJ_FOREVER})

/* Returns whether the waiter may run tasks while it waits: only if the wait has no deadline. With a
 * deadline it may not, because it could not stop the body of such a task when the deadline
 * expires. */
static inline bool fji_wait_may_run(const fji_wait *how)
{
    return how->deadline == FJ_FOREVER;
}

/*
 * Waits until the state word of t has one of the bits how->done, or t is orphaned.
 *   w      the calling worker or guest, or NULL if the calling thread works for no pool
 *   pool   the pool that t was submitted to; if t was not submitted, the pool of w or NULL
 *
 * A worker or guest of `pool` helps if `how` has no deadline. If `pool` is not NULL, a waiter that
 * is not a worker of `pool` wakes up every FJI_THREADLESS_POLL_NS while it sleeps, and checks
 * whether `pool` has tasks and no thread. If so, the waiter asks for a thread. If no thread starts
 * and `how` has no deadline, the waiter runs the tasks of `pool` (threadless.h).
 *
 * Returns FJ_OK if a bit is set or t is orphaned (the caller checks which), FJ_ETIMEDOUT if the
 * deadline has passed, and FJ_ECANCELED if the wait was interrupted.
 */
int fji_await_task(fji_worker *w, fj_pool *pool, fj_task *t, const fji_wait *how);

/* Called by w. Waits for the stolen task of cell c of w's queue, then resets the state word of the
 * cell to 0. Returns true if the task is done. Returns false if the task is orphaned: this is the
 * child process after a fork(), in which the thief does not exist. */
bool fji_await_cell(fji_worker *w, fj_cell *c);

#endif /* FJI_AWAIT_H */
