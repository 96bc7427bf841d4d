/* SPDX-License-Identifier: MIT */
/*
 * load.h - the loads, each with the pool that it runs on
 *
 * A thread outside all pools calls each load. The load uses the given pool, waits for the result
 * and checks it. Several loads run at the same time, on the same pools. Everything that runs has a
 * number of the ledger.
 */
#ifndef SOAK_LOAD_H
#define SOAK_LOAD_H

#include "soak.h"

#define US ((int64_t)1000)
#define MS ((int64_t)1000000)

/* Tasks that wait for each other may deadlock in a pool whose threads are limited. Loads with such
 * tasks use only the pools below POOL_LIMITED. */
#define POOL_LIMITED 4
#define POOL_COMMON 5

/* load_task.c: structured tasks and actions */
void load_tree(fj_pool *p);
void load_typed(fj_pool *p);
void load_token(fj_pool *p);    /* a tree; one of its tasks cancels it */
void load_actions(fj_pool *p);  /* no thread waits for them; they are counted at the next rest */
void load_blocking(fj_pool *p); /* the outside thread releases the blocked tasks, one by one */
void load_nested(fj_pool *p);   /* from pool to pool and back */
void load_quiesce(fj_pool *p);  /* needs a pool that has nothing else to do */
void load_stop(fj_pool *p);     /* stops the pool while it has work */

/* load_future.c: futures, completers and timers */
void load_futures(fj_pool *p);
void load_cancel(fj_pool *p);
void load_any(fj_pool *p);   /* waits for any of several futures; the others are cancelled */
void load_calls(fj_pool *p); /* futures that the library allocates */
void load_completers(fj_pool *p);
void load_reduce(fj_pool *p);
void load_timers(fj_pool *p);
void load_limits(fj_pool *p); /* futures with a timeout */

#endif /* SOAK_LOAD_H */
