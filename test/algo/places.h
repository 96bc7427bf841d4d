/* SPDX-License-Identifier: MIT */
/*
 * places.h - runs a test function in pools of several kinds, from outside and from a task
 */
#ifndef PLACES_H
#define PLACES_H

#include <forkjoin/algo.h>

#include "fjtest.h"

/* A function that calls algorithms on `pool`. `pool` may be NULL. */
typedef void place_fn(fj_pool *pool, void *arg);

struct place_task {
    fj_task task;
    place_fn *fn;
    fj_pool *pool;
    void *arg;
};

static int place_run(fj_task *t)
{
    struct place_task *p = (struct place_task *)t;

    CHECK(fj_current_pool() != NULL);
    p->fn(p->pool, p->arg);
    return FJ_OK;
}

/* Calls fn(named, arg) in a task of pool `in`. */
static inline void place_inside(fj_pool *in, place_fn *fn, fj_pool *named, void *arg)
{
    struct place_task t = {.fn = fn, .pool = named, .arg = arg};

    fj_task_init(&t.task, place_run);
    CHECK_EQ(fj_invoke(in, &t.task), FJ_OK);
}

/* Calls fn(pool, arg) from outside, on pools of 1, 2, 4 and 8 workers. */
static inline void place_workers(place_fn *fn, void *arg)
{
    static const int counts[] = {1, 2, 4, 8};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        fj_pool *p = fjt_pool(counts[i], 0);
        fn(p, arg);
        fjt_destroy(p);
    }
}

static inline void place_everywhere(place_fn *fn, void *arg)
{
    fj_pool *own = fjt_pool(3, 0), *other = fjt_pool(2, 0);
    fj_pool *fifo = fjt_pool(2, FJ_POOL_FIFO), *helped = fjt_pool(2, FJ_POOL_CALLER_HELPS);

    fn(NULL, arg);
    fn(own, arg);
    fn(fifo, arg);
    fn(helped, arg);
    place_inside(own, fn, NULL, arg);
    place_inside(own, fn, own, arg);
    place_inside(fifo, fn, NULL, arg);
    place_inside(helped, fn, helped, arg);
    place_inside(NULL, fn, NULL, arg);
    place_inside(other, fn, own, arg);
    place_inside(other, fn, helped, arg);
    place_inside(NULL, fn, fifo, arg);
    fjt_destroy(helped);
    fjt_destroy(fifo);
    fjt_destroy(other);
    fjt_destroy(own);
}

#endif /* PLACES_H */
