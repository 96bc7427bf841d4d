/* SPDX-License-Identifier: MIT */
/*
 * submissions.h - the submission queues of a pool
 */
#ifndef FJI_SUBMISSIONS_H
#define FJI_SUBMISSIONS_H

#include "sched/pool.h"

/* Queue i of p, made on first use. Returns NULL and sets *err: FJ_ENOMEM, or FJ_EREJECTED if p is the
 * common pool and stops. */
fji_submission_queue *fji_submissions_get(fj_pool *p, uint32_t i, int *err);

/* A queue with its lock held; *i is its index. NULL: as above. */
fji_submission_queue *fji_submissions_lock_one(fj_pool *p, uint32_t *i, int *err);

/* Gives memory of empty queues back to the system. */
void fji_submissions_shrink(fj_pool *p);

/* The queues of the common pool stay, without their slots, when the pool ends. Renew returns false if
 * there is no memory. */
bool fji_submissions_renew(fj_pool *p);
void fji_submissions_clear(fj_pool *p);

/* Frees the queues of a pool that is not the common one. */
void fji_submissions_free(fj_pool *p);

#endif /* FJI_SUBMISSIONS_H */
