/* SPDX-License-Identifier: MIT */
/*
 * submissions.h - the submission queues of a pool; queue/submission_queue.h explains one of them
 */
#ifndef FJI_SUBMISSIONS_H
#define FJI_SUBMISSIONS_H

#include "sched/pool.h"

/* Returns submission queue i of p, which is created on first use. If that fails, returns NULL and
 * sets *err to FJ_ENOMEM, or to FJ_EREJECTED if p is the common pool and stops. Any thread may call
 * it; it takes the lock of p to create a queue. */
fji_submission_queue *fji_submissions_get(fj_pool *p, uint32_t i, int *err);

/* Chooses a submission queue for the calling thread and takes its lock. Sets *i to the index of the
 * queue. Returns NULL as fji_submissions_get(). Any thread may call it. */
fji_submission_queue *fji_submissions_lock_one(fj_pool *p, uint32_t *i, int *err);

/* Gives memory of empty queues back to the system, except of those whose lock is held. Called by a
 * worker of p. */
void fji_submissions_shrink(fj_pool *p);

/* Called when the common pool is created again: initializes the queues that exist. Takes the lock
 * of each queue. Returns false if there is no memory. */
bool fji_submissions_renew(fj_pool *p);

/* Called when the common pool ends: frees the slots of its queues. The queues themselves are
 * static. */
void fji_submissions_clear(fj_pool *p);

/* Frees the queues of a pool that is not the common pool. No thread may use them any more. */
void fji_submissions_free(fj_pool *p);

#endif /* FJI_SUBMISSIONS_H */
