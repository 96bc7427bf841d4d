/* SPDX-License-Identifier: MIT */
/*
 * await.h - waiting for a task that another thread runs
 */
#ifndef FJI_AWAIT_H
#define FJI_AWAIT_H

#include "sched/pool.h"

/* How to wait. */
typedef struct fji_wait {
    uint32_t done;         /* the wait ends when the state word has one of these bits */
    bool interruptible;    /* the wait ends if the waiter's own task is interrupted */
    int64_t deadline;      /* FJ_FOREVER: none. With a deadline the waiter runs no tasks */
    void *root;            /* the root of a completer: the waiter runs tasks with it; or NULL */
    const fj_token *token; /* the token of the awaited future, or NULL */
    bool guest;            /* the waiter is a guest without a task: asleep, it counts as QUIET */
} fji_wait;
#define FJI_WAIT_DONE ((fji_wait){.done = FJI_DONE, .deadline = FJ_FOREVER})

/* Returns whether the waiter may run tasks while it waits. With a deadline it may not, because it
 * could not stop a running body when the deadline expires. */
static inline bool fji_wait_may_run(const fji_wait *how)
{
    return how->deadline == FJ_FOREVER;
}

/*
 * Waits until the state word of t has one of the bits how->done, or t is orphaned. pool: the pool
 * that t was submitted to, or NULL. w: the calling worker or guest, or NULL if the calling thread
 * works for no pool. A worker or guest of `pool` helps. A waiter that `pool` does not count as a
 * worker checks every FJI_THREADLESS_POLL_NS whether the pool has threads, and otherwise runs its
 * tasks (threadless.h). Returns FJ_OK, FJ_ETIMEDOUT or FJ_ECANCELED; FJ_OK also if t is orphaned,
 * which the caller checks.
 */
int fji_await_task(fji_worker *w, fj_pool *pool, fj_task *t, const fji_wait *how);

/* Waits for the stolen task of cell c of w's queue, then resets the state word of the cell to 0.
 * Called by w. Returns false if the task is orphaned: this is the child process after a fork(), in
 * which the thief does not exist. */
bool fji_await_cell(fji_worker *w, fj_cell *c);

#endif /* FJI_AWAIT_H */
