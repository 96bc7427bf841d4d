/* SPDX-License-Identifier: MIT */
/*
 * submit.h - work from outside
 */
#ifndef FJI_SUBMIT_H
#define FJI_SUBMIT_H

#include "sched/pool.h"

/* Queues an item in a submission queue of p and wakes a worker, if `wake`. */
int fji_inject(fj_pool *p, const fji_taken *it, bool wake);

/* The same even after a shutdown, until the pool stops. */
int fji_submit_after_shutdown(fj_pool *p, const fji_taken *it);

/* A fork that finds no space in the worker's queue: t goes to a submission queue, with its token. Returns
 * false if there is no space either. */
bool fji_submit_fork(fji_worker *w, fj_task *t);

/* Queues a future. root: of a completer, or 0. */
int fji_submit_future(fj_pool *p, fj_task *t, uintptr_t root, bool outside, bool wake);

/* Takes t back out of the queue that it is in, if the caller may and no thread has it. tag: 0, or
 * FJI_TAG_FUTURE. */
bool fji_submit_take_back(fj_pool *p, fj_task *t, uintptr_t tag);

/* Whether the calling thread works for p itself while it waits for p. */
bool fji_submit_caller_works(const fj_pool *p, bool helps);

/* Waits for t, which was submitted to p, and returns its code. helps: the caller may work for p meanwhile. */
int fji_submit_join(fj_pool *p, fj_task *t, bool helps);

/* Whether t, whose cell was `cell`, is a submission of the calling thread that is not done. */
bool fji_submit_is_pending(const fj_task *t, const fj_cell *cell);

#endif /* FJI_SUBMIT_H */
