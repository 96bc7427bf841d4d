/* SPDX-License-Identifier: MIT */
/*
 * submissions.h - the submission queues of a pool; queue/submission_queue.h explains one of them
 */
#ifndef FJI_SUBMISSIONS_H
#define FJI_SUBMISSIONS_H

#include "sched/pool.h"

/* Returns submission queue number i of p, and creates the queue on first use. If there is no memory
 * for the queue, returns NULL and sets *err to FJ_ENOMEM. If p is the common pool and stops,
 * creates no queue, returns NULL and sets *err to FJ_EREJECTED. Takes the lock of p to create a
 * queue. Any thread may call it. */
fji_submission_queue *fji_submissions_get(fj_pool *p, uint32_t i, int *err);

/* Chooses a submission queue of p for the calling thread, takes the lock of the queue and returns
 * the queue. Sets *i to the number of the queue. If the queue cannot be created, takes no lock,
 * returns NULL and sets *err as fji_submissions_get() does. Any thread may call it. */
fji_submission_queue *fji_submissions_lock_one(fj_pool *p, uint32_t *i, int *err);

/* Gives memory of submission queues of p back to the system: each queue that is empty and has more
 * than FJI_SUBMISSIONS_KEPT slots keeps only that many. Skips each queue whose lock another thread
 * holds. Called by a worker of p. */
void fji_submissions_shrink(fj_pool *p);

/* Called when the common pool p is created again: initializes the submission queues that were
 * created before p ended. Takes the lock of each queue. Returns false if there is no memory; the
 * slots of all queues are freed then. */
bool fji_submissions_renew(fj_pool *p);

/* Called when the common pool p has ended or could not be created again: frees the slots of its
 * submission queues. The queues themselves are static and remain. */
void fji_submissions_clear(fj_pool *p);

/* Frees the submission queues of p, which is not the common pool. No thread may use them any
 * more. */
void fji_submissions_free(fj_pool *p);

#endif /* FJI_SUBMISSIONS_H */
