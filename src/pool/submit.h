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

/* Queues *it in a submission queue of p and wakes a worker if `wake` is true. If p is shut down,
 * returns FJ_EREJECTED; but if p is the common pool, waits for its end and queues *it in the next
 * common pool. If the end of the common pool waits for the calling thread (fji_common_again()),
 * returns FJ_EREJECTED as well. Returns FJ_ENOMEM if there is no space for *it, or no memory for
 * the next common pool. */
int fji_inject(fj_pool *p, const fji_taken *it, bool wake);

/* As fji_inject(), with a wake-up, but a worker or guest of p may queue *it even if p is shut down,
 * unless p stops. `priority` chooses an ordinary or a ranked submission queue. If that queue has no
 * space, *it goes into another one. */
int fji_inject_ranked(fj_pool *p, const fji_taken *it, enum fj_priority priority);

/* As fji_inject(), but queues *it even if p is shut down, unless the run state of p has STOP.
 * Always wakes a worker. */
int fji_submit_after_shutdown(fj_pool *p, const fji_taken *it);

/* Called by w if its own queue has no space for a fork. Queues t in a submission queue of w's pool,
 * with the token that w's running task has. Returns false if the submission queues have no space
 * either, or if the pool stops. */
bool fji_submit_fork(fji_worker *w, fj_task *t);

/*
 * Queues the future t. If the caller is a worker or guest of p, `outside` is false and the caller's
 * own queue has space, t goes into that queue, otherwise into a submission queue. `root` is the
 * root if t is a completer, or else 0. Wakes a worker if `wake` is true, or if the caller's own
 * queue has no space. If an error is returned, t does not count as submitted and can be queued
 * again.
 */
int fji_submit_future(fj_pool *p, fj_task *t, uintptr_t root, bool outside, bool wake);

/*
 * Takes t, which was submitted to p, back out of its queue, so that the caller can run it. tag: 0,
 * or FJI_TAG_FUTURE if t is a future. Returns true if the caller has t now. Returns false if
 * another thread has taken t, if t is in no queue yet, if t is in the own queue of a worker or
 * guest other than the caller, or if p is the common pool and has ended.
 */
bool fji_submit_take_back(fj_pool *p, fj_task *t, uintptr_t tag);

/*
 * Returns whether the calling thread runs tasks of p while it waits for a task of p. The result is
 * true if the parallelism of p is 0, because p then has no worker. Otherwise two conditions must
 * hold: `helps` is true (the caller may run tasks), and the calling thread works for no pool.
 */
bool fji_submit_caller_works(const fj_pool *p, bool helps);

/* Waits for t, which was submitted to p. Returns the code of t, or FJ_ECANCELED if t is orphaned.
 * If the caller is a worker or guest of p, or if fji_submit_caller_works(p, helps) is true, the
 * caller may run t itself, and other tasks of p while it waits. */
int fji_submit_join(fj_pool *p, fj_task *t, bool helps);

/* Called in a fork of t, to find out whether t is already submitted and the fork is a mistake.
 * Returns whether t was submitted to the pool of the calling thread and is not done. For a thread
 * that works for no pool this is the common pool. `cell` is the value of t->cell before the fork,
 * because fj_fork() overwrites t->cell before it takes its slow path. */
bool fji_submit_is_pending(const fj_task *t, const fj_cell *cell);

#endif /* FJI_SUBMIT_H */
