/* SPDX-License-Identifier: MIT */
/*
 * await.h - waiting for a task that another thread runs
 */
#ifndef FJI_AWAIT_H
#define FJI_AWAIT_H

#include "sched/pool.h"

/* How to wait. */
typedef struct fji_wait {
    uint32_t done;         /* until the word has one of these bits */
    bool interruptible;    /* the wait ends if the waiter's own task is interrupted */
    int64_t deadline;      /* FJ_FOREVER: none. With a deadline the waiter runs nothing */
    void *root;            /* helps only tasks with this root, unless NULL */
    const fj_token *token; /* of the future that is waited for, or NULL */
    bool guest;            /* the waiter is a guest without a task: asleep, it counts as QUIET */
} fji_wait;
#define FJI_WAIT_DONE ((fji_wait){.done = FJI_DONE, .deadline = FJ_FOREVER})

/* Whether the waiter may run tasks meanwhile. With a deadline it may not: it could not stop them. */
static inline bool fji_wait_may_run(const fji_wait *how)
{
    return how->deadline == FJ_FOREVER;
}

/*
 * Waits until t, which was submitted to `pool` (NULL: to none), is done or orphaned. w: the waiter, or
 * NULL outside. A worker of that pool helps. Other threads only sleep, and run the pool's tasks if the
 * pool turns out to have no threads. Returns FJ_OK, FJ_ETIMEDOUT or FJ_ECANCELED.
 */
int fji_await_task(fji_worker *w, fj_pool *pool, fj_task *t, const fji_wait *how);

/* Waits for the stolen task of cell c, then resets the cell's word. Returns false if its thief was lost in
 * a fork() of the process. */
bool fji_await_cell(fji_worker *w, fj_cell *c);

#endif /* FJI_AWAIT_H */
