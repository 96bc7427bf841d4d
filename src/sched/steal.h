/* SPDX-License-Identifier: MIT */
/*
 * steal.h - taking tasks from other queues
 */
#ifndef FJI_STEAL_H
#define FJI_STEAL_H

#include "sched/pool.h"

/* One round over all queues from a random start. RETRY: a queue may hold a task. */
fji_steal_result fji_steal_any(fji_worker *w, fji_taken *taken);

/* The same, but takes only a future with this root, and wakes no further worker. */
fji_steal_result fji_steal_root(fji_worker *w, uintptr_t root, fji_taken *taken);

/* One attempt at each submission queue from a random start. Returns whether it took a task. */
bool fji_steal_submission(fji_worker *w, fji_taken *taken);

/* Takes the oldest task of v if it is at position `from` or above and none of the n words has changed. */
fji_steal_result fji_steal_descendant(fji_worker *w, fji_worker *v, uint32_t from,
                                      const fji_link *links, int n, fji_taken *taken);

/* The oldest task of w's own queue, as a thief takes it. */
fji_steal_result fji_steal_own(fji_worker *w, fji_taken *taken);

/* By any thread that holds p: the oldest task of a submission queue, or of a worker's queue. */
bool fji_steal_any_submission(fj_pool *p, fji_taken *taken);
bool fji_steal_any_queued(fj_pool *p, fji_taken *taken);

#endif /* FJI_STEAL_H */
