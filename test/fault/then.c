/* SPDX-License-Identifier: MIT */
/*
 * then.c - derived futures and listeners while memory and threads are refused, one request after
 * the other
 */
#include <forkjoin/then.h>

#include "sweep.h"

#define CHAINS 3

static int give(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

static int pass(int code, void *value, void *arg, void **result)
{
    CHECK_EQ(code, FJ_OK);
    CHECK(value == arg);
    *result = value;
    return FJ_OK;
}

static void count(fj_future *f, void *arg)
{
    CHECK(fj_future_is_done(f));
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* A chain is a future, what follows from it, and a listener of that. */
struct chain {
    fj_future *first, *next;
    atomic_int called;
    int listeners;
};

static void chain_make(fj_pool *pool, struct chain *c)
{
    int err;

    CHECK_MAY(err = fj_submit_call(pool, give, c, &c->first));
    if (err != FJ_OK) return;
    CHECK_MAY(err = fj_future_then_in(pool, c->first, FJ_THEN_SUCCESS, pass, c, &c->next));
    if (err != FJ_OK) CHECK(c->next == NULL);
    if (c->next == NULL) return;
    CHECK_MAY(err = fj_future_on_done(c->next, count, &c->called));
    if (err == FJ_OK) c->listeners++;
}

static void run(int round)
{
    fj_pool_options o = {.parallelism = 1};
    struct chain c[CHAINS];
    fj_future *inputs[CHAINS], *all = NULL, *any = NULL;
    fj_pool *pool;
    size_t n = 0;
    int err;

    (void)round;
    memset(c, 0, sizeof c);
    CHECK_MAY(err = fj_pool_create(&pool, &o));
    if (err != FJ_OK) return;
    for (int i = 0; i < CHAINS; i++) {
        chain_make(pool, &c[i]);
        if (c[i].next != NULL) inputs[n++] = c[i].next;
    }
    CHECK_MAY(err = fj_future_all_of(inputs, n, &all));
    CHECK_EQ(all != NULL, err == FJ_OK);
    if (n != 0) CHECK_MAY(fj_future_any_of(inputs, n, &any));
    for (int i = 0; i < CHAINS; i++) {
        if (c[i].next == NULL) continue;
        CHECK_MAY(err = fj_future_get(c[i].next, FJ_FOREVER, NULL));
    }
    /* All inputs are done, so the worker has called the listeners or is calling them. */
    if (all != NULL) CHECK_MAY(fj_future_get(all, FJ_FOREVER, NULL));
    if (any != NULL) CHECK_MAY(fj_future_get(any, FJ_FOREVER, NULL));
    for (int i = 0; i < CHAINS; i++) {
        if (c[i].first != NULL) CHECK_MAY(fj_future_get(c[i].first, FJ_FOREVER, NULL));
        fj_future_unref(c[i].first);
        fj_future_unref(c[i].next);
    }
    fj_future_unref(all);
    fj_future_unref(any);
    CHECK_EQ(fj_pool_destroy(pool), FJ_OK);
    for (int i = 0; i < CHAINS; i++) CHECK_EQ(atomic_load(&c[i].called), c[i].listeners);
}

FJ_TEST(every_listener_is_called_whatever_is_refused, 60)
{
    sweep("then", run);
}
