/* SPDX-License-Identifier: MIT */
/*
 * submit.h - submits tasks to a pool, and waits for them
 *
 * Any thread may call these functions, unless stated otherwise. The caller holds no lock of the
 * pool. A function that queues something and returns an int returns FJ_OK, FJ_EREJECTED or
 * FJ_ENOMEM.
 */
#ifndef FJI_SUBMIT_H
#define FJI_SUBMIT_H

#include "sched/pool.h"

/* Queues an item in a submission queue of p, unless p is shut down. Wakes a worker if `wake` is
 * true. */
int fji_inject(fj_pool *p, const fji_taken *it, bool wake);

/* The same, but p accepts the item until it stops, even if it is shut down. Always wakes a
 * worker. */
int fji_submit_after_shutdown(fj_pool *p, const fji_taken *it);

/* A fork of w has found no space in w's queue: queues t in a submission queue, with the token that
 * it runs with. w is the calling worker. Returns false if there is no space there either, or if the
 * pool stops. */
bool fji_submit_fork(fji_worker *w, fj_task *t);

/*
 * Queues the future t: in the own queue, if the caller is a worker of p and `outside` is false, or
 * else in a submission queue. root: the root of a completer, or 0. Wakes a worker if `wake` is
 * true. After an error t is as before.
 */
int fji_submit_future(fj_pool *p, fj_task *t, uintptr_t root, bool outside, bool wake);

/*
 * Takes t, which was submitted to p, back out of its queue, so that the caller can run it. tag: 0,
 * or FJI_TAG_FUTURE for a future. Returns false if another thread has taken t, if t is in no queue
 * yet, or if t is in the queue of another worker.
 */
bool fji_submit_take_back(fj_pool *p, fj_task *t, uintptr_t tag);

/*
 * Whether the calling thread runs tasks of p while it waits for p. `helps`: it is allowed to. If p
 * has a parallelism of 0, every waiter runs its tasks, because no worker does. Otherwise a worker
 * of another pool does not.
 */
bool fji_submit_caller_works(const fj_pool *p, bool helps);

/* Waits for t, which was submitted to p, and returns its code; FJ_ECANCELED if t is orphaned.
 * `helps`: the caller may run tasks of p meanwhile. */
int fji_submit_join(fj_pool *p, fj_task *t, bool helps);

/* Whether t, whose cell was `cell`, was submitted to the pool of the calling thread and is not
 * done. Outside all pools that pool is the common pool. */
bool fji_submit_is_pending(const fj_task *t, const fj_cell *cell);

#endif /* FJI_SUBMIT_H */
