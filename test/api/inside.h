/* SPDX-License-Identifier: MIT */
/*
 * inside.h - runs part of a test on a worker
 */
#ifndef FJT_INSIDE_H
#define FJT_INSIDE_H

#include <sched.h>
#include <stdatomic.h>

#include "fjtest.h"

struct inside {
    fj_task task;
    void (*body)(void *arg);
    void *arg;
};

static inline int inside_run(fj_task *t)
{
    struct inside *i = (struct inside *)t;

    i->body(i->arg);
    return FJ_OK;
}

/* Runs body(arg) on a worker of the pool and returns when it has ended. */
static inline void inside(fj_pool *pool, void (*body)(void *arg), void *arg)
{
    struct inside i = {.body = body, .arg = arg};

    fj_task_init(&i.task, inside_run);
    CHECK_EQ(fj_invoke_mode(pool, &i.task, FJ_CALLER_BLOCKS), FJ_OK);
}

/* Does the same in a new pool for each of eight combinations of size, order and fences. */
static inline void inside_pools(void (*body)(void *arg), void *arg)
{
    static const struct {
        int workers;
        unsigned flags;
    } kinds[] = {{1, 0},
                 {2, 0},
                 {8, 0},
                 {1, FJ_POOL_FIFO},
                 {2, FJ_POOL_FIFO},
                 {8, FJ_POOL_FIFO},
                 {1, FJ_POOL_SYMMETRIC},
                 {3, FJ_POOL_SYMMETRIC}};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        fj_pool *pool = fjt_pool(kinds[i].workers, kinds[i].flags);
        inside(pool, body, arg);
        fjt_destroy(pool);
    }
}

/* Calls check() with a new pool for each of eight combinations of size, order, fences and helping.
 * The pool is quiescent before it is destroyed. */
static inline void on_pools(void (*check)(fj_pool *pool))
{
    static const struct {
        int workers;
        unsigned flags;
    } kinds[] = {{1, 0},
                 {2, 0},
                 {8, 0},
                 {1, FJ_POOL_FIFO},
                 {2, FJ_POOL_FIFO},
                 {8, FJ_POOL_FIFO},
                 {3, FJ_POOL_SYMMETRIC},
                 {2, FJ_POOL_CALLER_HELPS}};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        fj_pool *pool = fjt_pool(kinds[i].workers, kinds[i].flags);
        check(pool);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
        fjt_destroy(pool);
    }
}

/* As on_pools(), and then calls check(NULL): in the common pool. */
static inline void on_pools_and_common(void (*check)(fj_pool *pool))
{
    on_pools(check);
    check(NULL);
}

/* Waits until another thread sets the flag. Uses no pool. */
static inline void until(atomic_int *flag)
{
    for (int i = 0; atomic_load(flag) == 0; i++) {
        if (i < 100)
            sched_yield();
        else
            fjt_sleep_us(100);
    }
}

#endif /* FJT_INSIDE_H */
