/* SPDX-License-Identifier: MIT */
/*
 * steal.h - taking tasks from other queues
 */
#ifndef FJI_STEAL_H
#define FJI_STEAL_H

#include "sched/pool.h"

/*
 * Only the worker or guest w may call the functions with the parameter w. They add the number of
 * tasks that they take to the statistic `steals` of w, except fji_steal_own(). They set *taken if
 * they return SUCCESS or true.
 */

/*
 * Visits the queues of all other workers and all submission queues once, beginning with a random
 * one, but in a pool with ranked queues in the order of their ranks (steal.c), and takes the oldest
 * task of the first queue that has a task. Then calls fji_wake_after_find(), which wakes another
 * worker if that queue has more tasks. From a submission queue this may take several actions;
 * *taken is the first of them, and the others are pushed into w's queue, or run at once if that
 * queue has no space. Returns SUCCESS if it took a task, RETRY if it took none but a queue may hold
 * one, and EMPTY otherwise.
 */
fji_steal_result fji_steal_any(fji_worker *w, fji_taken *taken);

/* As fji_steal_any(), but takes the oldest task of a queue only if it is a completer with this
 * root, which is not 0. Takes one task at most and wakes no worker. */
fji_steal_result fji_steal_root(fji_worker *w, uintptr_t root, fji_taken *taken);

/* Tries once to take the oldest task of each submission queue, beginning with a random queue, but
 * in a pool with ranked queues in the order of their ranks (steal.c), until it has taken a task.
 * Wakes no worker. Returns whether it took a task. */
bool fji_steal_submission(fji_worker *w, fji_taken *taken);

/* Called by w before it takes a task of its own queue, in a pool with ranked queues. Tries once to
 * take the oldest task of the high queue, except when the turn of another queue has come (steal.c).
 * Wakes no worker. Returns whether it took a task. */
bool fji_steal_high(fji_worker *w, fji_taken *taken);

/* Takes the oldest task of v's queue if it is at position `from` or above, is not an action, and
 * each of the n words in `links` still has the value that w has read (fji_queue_steal_for()). n is
 * at least 1. */
fji_steal_result fji_steal_descendant(fji_worker *w, fji_worker *v, uint32_t from,
                                      const fji_link *links, int n, fji_taken *taken);

/* Takes the oldest task of w's own queue, in the same way as a thief. Returns EMPTY or SUCCESS. */
fji_steal_result fji_steal_own(fji_worker *w, fji_taken *taken);

/* Takes the oldest task of the first submission queue that has one. Returns whether it took a task.
 * Called by a thread that works for p or has a hold of p (hold.h). */
bool fji_steal_any_submission(fj_pool *p, fji_taken *taken);

/* Takes the oldest task of the first worker's queue that has one. Returns whether it took a task.
 * Called by a thread that works for p or has a hold of p (hold.h). */
bool fji_steal_any_queued(fj_pool *p, fji_taken *taken);

#endif /* FJI_STEAL_H */
