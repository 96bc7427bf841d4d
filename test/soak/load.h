/* SPDX-License-Identifier: MIT */
/*
 * load.h - the loads, each with the pool that it is put on
 *
 * Each is called by a thread that belongs to no pool, does something with the pool it is given,
 * waits for it and checks what came of it. Several run at the same time, on the same pools.
 * Whatever runs has a number of the ledger.
 */
#ifndef SOAK_LOAD_H
#define SOAK_LOAD_H

#include "soak.h"

#define US ((int64_t)1000)
#define MS ((int64_t)1000000)

/* Those with a limit to their threads may deadlock if their tasks wait for each other: no load
 * that does so is put on them. */
#define POOL_LIMITED 4
#define POOL_COMMON 5

/* load_task.c: structured tasks and actions */
void load_tree(fj_pool *p);
void load_typed(fj_pool *p);
void load_token(fj_pool *p);    /* a tree that somebody in it cancels */
void load_actions(fj_pool *p);  /* nobody waits for them: they are missed at the next rest */
void load_blocking(fj_pool *p); /* the thread outside lets them go on, one by one */
void load_nested(fj_pool *p);   /* from pool to pool and back */
void load_quiesce(fj_pool *p);  /* in a pool that has nothing else to do */
void load_stop(fj_pool *p);     /* the pool is stopped in the middle of it */

/* load_future.c: what completes itself */
void load_futures(fj_pool *p);
void load_cancel(fj_pool *p);
void load_any(fj_pool *p);   /* any of several: the rest is cancelled */
void load_calls(fj_pool *p); /* futures that the library allocates */
void load_completers(fj_pool *p);
void load_reduce(fj_pool *p);
void load_timers(fj_pool *p);
void load_limits(fj_pool *p); /* futures with a time limit */

#endif /* SOAK_LOAD_H */
