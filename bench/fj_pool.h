/* SPDX-License-Identifier: MIT */
/*
 * fj_pool.h - what fj.c, fj_typed.c and fj_trip.c share: the pool and the submissions
 *
 * The programs differ in how they fork and join, and in how the main thread waits for a task. All
 * of them create a pool with exactly the requested number of workers. The main thread sleeps while
 * the pool works. fj.c and fj_typed.c submit with fj_execute().
 */
#ifndef BENCH_FJ_POOL_H
#define BENCH_FJ_POOL_H

#include <forkjoin.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

static fj_pool *pool;

/* An error of the library ends the benchmark program. */
static inline void must(int code)
{
    if (code == FJ_OK) return;
    fprintf(stderr, "forkjoin: %s: %s\n", fj_error_name(code), fj_strerror(code));
    exit(1);
}

/* `outside` is ignored, because the caller is never one of the workers. */
static void start(int workers, bool outside)
{
    fj_pool_options o = {0};

    (void)outside;
    o.parallelism = workers;
    must(fj_pool_create(&pool, &o));
}

static void stop(void)
{
    must(fj_pool_destroy(pool));
}

/*
 * The submitted body. A process submits always the same body, with different arguments. Because
 * the body is stored here, a submission need not allocate memory for the body and its argument.
 */
static bench_body *submitted;

static int run_submitted(void *arg)
{
    /* relaxed: the value was stored before the submission, which orders the store before this
     * load; and every thread stores the same value. */
    __atomic_load_n(&submitted, __ATOMIC_RELAXED)(arg);
    return FJ_OK;
}

static inline void submit(bench_body *body, void *arg)
{
    bench_body *known = __atomic_load_n(&submitted, __ATOMIC_RELAXED);

    if (known != body) {
        if (known != NULL) must(FJ_EINVAL);
        __atomic_store_n(&submitted, body, __ATOMIC_RELAXED);
    }
    must(fj_execute(pool, run_submitted, arg));
}

/* The task of a round trip. */
struct trip {
    fj_task task;
    bench_body *body;
    void *arg;
};

static inline int trip_run(fj_task *t)
{
    struct trip *trip = (struct trip *)t;

    trip->body(trip->arg);
    return FJ_OK;
}

#endif
