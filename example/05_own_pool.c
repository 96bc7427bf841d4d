/* SPDX-License-Identifier: MIT */
/*
 * 05_own_pool.c - the life of a pool that the program creates itself
 *
 * fj_execute() submits an action, for which no thread waits. After fj_pool_shutdown() the pool
 * rejects new actions, runs those that are queued and then terminates.
 */
#include <forkjoin.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ACTIONS = 1000, FAILING = 10 };

struct tally {
    atomic_int done, failed, started, stopped;
};

static int act(void *arg)
{
    struct tally *t = arg;
    /* Every hundredth action fails. The pool passes its code to on_error(). */
    return atomic_fetch_add(&t->done, 1) % (ACTIONS / FAILING) == 0 ? 1 : FJ_OK;
}

static int on_start(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker;
    atomic_fetch_add(&((struct tally *)arg)->started, 1);
    return FJ_OK;
}

static void on_stop(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker;
    atomic_fetch_add(&((struct tally *)arg)->stopped, 1);
}

static void on_error(fj_pool *pool, int code, void *arg)
{
    (void)pool, (void)code;
    atomic_fetch_add(&((struct tally *)arg)->failed, 1);
}

int main(void)
{
    struct tally t = {0};
    fj_pool *pool;
    fj_pool_options o = {0}; /* 0 and NULL mean the default */
    o.parallelism = 3;
    o.name = "mine";
    o.arg = &t;
    o.on_start = on_start;
    o.on_stop = on_stop;
    o.on_error = on_error;

    if (fj_pool_create(&pool, &o) != FJ_OK) return 1;
    for (int i = 0; i < ACTIONS; i++)
        if (fj_execute(pool, act, &t) != FJ_OK) return 1;

    fj_pool_shutdown(pool);
    if (fj_execute(pool, act, &t) != FJ_EREJECTED) return 1;
    if (fj_pool_await_termination(pool, INT64_C(10000000000)) != FJ_OK) return 1;
    if (fj_pool_destroy(pool) != FJ_OK) return 1;

    printf("%d actions, %d failed; %d workers started, %d stopped\n", t.done, t.failed, t.started,
           t.stopped);
    return t.done == ACTIONS && t.failed == FAILING && t.started == t.stopped ? 0 : 1;
}
