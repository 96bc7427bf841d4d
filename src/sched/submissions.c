/* SPDX-License-Identifier: MIT */
/*
 * submissions.c - the submission queues of a pool
 *
 * A thread chooses a queue by a number of its own, and another queue when it finds the lock of its queue held.
 * The queues of the common pool are static: a thread that has not noticed the pool's end may take their locks.
 *
 * Edges           from                                  to                               carries
 *   pool.record   release store, fji_submissions_get()  acquire, fji_pool_submissions()  the queue
 *   pool.end      full fence, fji_submissions_get()     full fence, shutdown_stopped()   queue against run
 */

#include "sched/submissions.h"

/* This thread's number for choosing a queue; moves on when it meets another. */
static __thread uint32_t submissions_probe;

/* Those of the common pool: their locks are taken by threads that have not seen its end. */
static fji_submission_queue submissions_common[FJI_MAX_SUBMISSION_QUEUES];

static uint32_t submissions_number(void)
{
    if (submissions_probe == 0) submissions_probe = fji_plat_thread_hash() | 1;
    return submissions_probe;
}

static fji_submission_queue *submissions_new(const fj_pool *p, uint32_t i)
{
    return p->is_common ? &submissions_common[i] : fji_plat_alloc(sizeof(fji_submission_queue));
}

/* Queue i of p, made on first use; NULL and *err: no memory, or a common pool that ends. */
fji_submission_queue *fji_submissions_get(fj_pool *p, uint32_t i, int *err)
{
    /* [pool.record] acquire <- release below. */
    fji_submission_queue *q = fji_pool_submissions(p, i);

    if (q != NULL) return q;
    fji_lock_take(&p->lock);
    if (p->is_common && fji_pool_stopping(p)) { /* what it has is freed, and no more may come */
        fji_lock_drop(&p->lock);
        *err = FJ_EREJECTED;
        return NULL;
    }
    *err = FJ_ENOMEM;
    q = p->submissions[i];
    if (q == NULL && (q = submissions_new(p, i)) != NULL) {
        if (fji_submission_queue_init(q, FJI_SUBMISSIONS_FIRST, FJI_SUBMISSIONS_RESERVED)) {
            /* [pool.record] release -> acquire in fji_worker_scan() and above. */
            fji_store_release(&p->submissions[i], q);
            /* [pool.end] the queue above, run below in submit_into(); partner: the
             * fence in fji_pool_try_terminate(). It is swept, or we see that it was. */
            fji_fence_full();
        } else {
            if (!p->is_common) fji_plat_free(q);
            q = NULL;
        }
    }
    fji_lock_drop(&p->lock);
    return q;
}

bool fji_submissions_renew(fj_pool *p)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        fji_submission_queue *q = p->submissions[i];
        if (q == NULL) continue;
        fji_lock_take(&q->lock);
        bool ok = fji_submission_queue_init(q, FJI_SUBMISSIONS_FIRST, FJI_SUBMISSIONS_RESERVED);
        fji_lock_drop(&q->lock);
        if (!ok) {
            fji_submissions_clear(p);
            return false;
        }
    }
    return true;
}

void fji_submissions_clear(fj_pool *p)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++)
        if (p->submissions[i] != NULL) fji_submission_queue_fini(p->submissions[i]);
}

/* A queue with its lock held; *i is its number. In FIFO order a thread keeps to one queue. NULL: see
 * above. */
fji_submission_queue *fji_submissions_lock_one(fj_pool *p, uint32_t *i, int *err)
{
    for (uint32_t tries = 0;; tries++) {
        *i = (submissions_number() >> 1) &
             (p->nsubmissions - 1); /* the lowest bit is always set at first */
        fji_submission_queue *q = fji_submissions_get(p, *i, err);
        if (q == NULL) return NULL;
        if (fji_lock_try(&q->lock)) return q;
        if (p->fifo || tries >= p->nsubmissions) {
            fji_lock_take(&q->lock);
            return q;
        }
        submissions_probe = submissions_probe * 1664525u + 1013904223u;
        if (submissions_probe == 0) submissions_probe = 1;
    }
}

void fji_submissions_shrink(fj_pool *p)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q == NULL || !fji_submission_queue_is_large(q) || !fji_lock_try(&q->lock)) continue;
        fji_submission_queue_shrink(q);
        fji_lock_drop(&q->lock);
    }
}

void fji_submissions_free(fj_pool *p)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        if (p->submissions[i] == NULL) continue;
        fji_submission_queue_fini(p->submissions[i]);
        fji_plat_free(p->submissions[i]);
    }
}
