/* SPDX-License-Identifier: MIT */
/*
 * crowd.h - tasks that all run at the same time, each on a worker of its own
 */
#ifndef FJT_CROWD_H
#define FJT_CROWD_H

#include "inside.h"

/* n submitted tasks. When crowd_begun is n, all of them run at the same time. */
struct crowd {
    fj_task task[16];
    int n;
};

static atomic_int crowd_begun, crowd_may_end;
static _Thread_local volatile int in_crowd; /* read by a signal handler */

static inline int crowd_run(fj_task *t)
{
    (void)t;
    in_crowd = 1;
    atomic_fetch_add(&crowd_begun, 1);
    until(&crowd_may_end);
    in_crowd = 0;
    return FJ_OK;
}

static inline void crowd_start(fj_pool *pool, struct crowd *c, int n)
{
    atomic_store(&crowd_begun, 0);
    atomic_store(&crowd_may_end, 0);
    c->n = n;
    for (int i = 0; i < n; i++) {
        fj_task_init(&c->task[i], crowd_run);
        CHECK_EQ(fj_submit(pool, &c->task[i]), FJ_OK);
    }
}

static inline void crowd_wait(int n)
{
    while (atomic_load(&crowd_begun) < n) fjt_sleep_us(50);
}

static inline void crowd_end(struct crowd *c)
{
    atomic_store(&crowd_may_end, 1);
    for (int i = 0; i < c->n; i++) CHECK_EQ(fj_join(&c->task[i]), FJ_OK);
}

/* Waits until the pool has n threads. */
static inline void until_size(fj_pool *pool, int n)
{
    while (fj_pool_thread_count(pool) != n) fjt_sleep_us(500);
}

#endif /* FJT_CROWD_H */
