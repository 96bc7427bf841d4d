/* SPDX-License-Identifier: MIT */
/*
 * steal.h - taking tasks from other queues
 */
#ifndef FJI_STEAL_H
#define FJI_STEAL_H

#include "sched/pool.h"

/*
 * Only worker or guest w may call the functions with the parameter w. Each success is counted as a
 * steal of w, except in fji_steal_own().
 */

/*
 * Visits all other worker queues and all submission queues once, from a random one on, and takes
 * the first task that it finds. If there are more tasks, wakes another worker. From a submission
 * queue it may take several actions; all but the first go into w's queue. Returns RETRY if it took
 * no task, but a queue may hold one.
 */
fji_steal_result fji_steal_any(fji_worker *w, fji_taken *taken);

/* The same, but takes only a future with this root, and wakes no worker. */
fji_steal_result fji_steal_root(fji_worker *w, uintptr_t root, fji_taken *taken);

/* Tries each submission queue once, from a random one on, and wakes no worker. Returns whether it
 * took a task. */
bool fji_steal_submission(fji_worker *w, fji_taken *taken);

/* Takes the oldest task of v's queue if it is at position `from` or above, is not an action, and
 * none of the n linked words has changed since it was read (fji_queue_steal_for()). */
fji_steal_result fji_steal_descendant(fji_worker *w, fji_worker *v, uint32_t from,
                                      const fji_link *links, int n, fji_taken *taken);

/* Takes the oldest task of w's own queue, as a thief does. Returns EMPTY or SUCCESS. */
fji_steal_result fji_steal_own(fji_worker *w, fji_taken *taken);

/* Takes the oldest task of the first submission queue that has one. Returns whether it took a task.
 * Any thread may call it that works for p or holds it (hold.h). */
bool fji_steal_any_submission(fj_pool *p, fji_taken *taken);

/* The same for the queues of the workers. */
bool fji_steal_any_queued(fj_pool *p, fji_taken *taken);

#endif /* FJI_STEAL_H */
