/* SPDX-License-Identifier: MIT */
/*
 * fj_pool.h - what fj.c and fj_typed.c share: the pool, its roots and submissions
 *
 * The two programs differ in how they fork and join. Both run on a pool of exactly the workers
 * asked for, whose callers sleep, and both submit by fj_execute().
 */
#ifndef BENCH_FJ_POOL_H
#define BENCH_FJ_POOL_H

#include <forkjoin.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

static fj_pool *pool;

/* A benchmark has nothing to fall back on: an error of the library ends it. */
static inline void must(int code)
{
    if (code == FJ_OK) return;
    fprintf(stderr, "forkjoin: %s: %s\n", fj_error_name(code), fj_strerror(code));
    exit(1);
}

/* `outside` changes nothing: the caller is never one of the workers. */
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
 * What is submitted. A process submits one body throughout, only its argument changes; kept here
 * it need not be allocated together with that argument for every task.
 */
static bench_body *submitted;

static int run_submitted(void *arg)
{
    /* relaxed: set before the submission, which orders it; and always to the same value. */
    __atomic_load_n(&submitted, __ATOMIC_RELAXED)(arg);
    return FJ_OK;
}

static void submit(bench_body *body, void *arg)
{
    bench_body *known = __atomic_load_n(&submitted, __ATOMIC_RELAXED);

    if (known != body) {
        if (known != NULL) must(FJ_EINVAL);
        __atomic_store_n(&submitted, body, __ATOMIC_RELAXED);
    }
    must(fj_execute(pool, run_submitted, arg));
}

#endif
