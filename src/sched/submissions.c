/* SPDX-License-Identifier: MIT */
/*
 * submissions.c - the submission queues of a pool
 *
 * A pool has several submission queues, so that submitting threads seldom wait for one another.
 * Each thread has a number that chooses its queue. If another thread holds the lock of that queue,
 * the submitting thread changes its number and tries another queue. In a FIFO pool it waits for the
 * lock instead, so that its tasks stay in order. There its number is one that never changes, because the
 * other number may change when the thread submits to another pool.
 *
 * The submission queues of the common pool are static, because a thread that has not noticed the
 * end of the common pool may still take their locks.
 *
 * Edges           from                                  to                               carries
 *   pool.record   release store, fji_submissions_get()  acquire, fji_pool_submissions()  the queue
 *   pool.end      full fence, fji_submissions_get()     full fences, fji_pool_shutdown(),  queue
 *                                                         shutdown_stopped(),              against
 *                                                         fji_pool_stop_common()           run
 */

#include "sched/submissions.h"

/* The number by which the calling thread chooses a queue; 0 before its first submission. */
static __thread uint32_t submissions_probe;

/* The queues of the common pool. */
static fji_submission_queue submissions_common[FJI_MAX_SUBMISSION_QUEUES + FJI_RANKS];

static uint32_t submissions_number(const fj_pool *p)
{
    if (p->fifo) return fji_plat_thread_hash();
    if (submissions_probe == 0) submissions_probe = fji_plat_thread_hash() | 1;
    return submissions_probe;
}

static fji_submission_queue *submissions_new(const fj_pool *p, uint32_t i)
{
    if (p->is_common) return &submissions_common[i];
    return fji_memory_alloc(p->memory, FJI_MEMORY_SUBMISSIONS, sizeof(fji_submission_queue));
}

static void submissions_free_one(const fj_pool *p, fji_submission_queue *q)
{
    if (!p->is_common) fji_memory_free(p->memory, FJI_MEMORY_SUBMISSIONS, q, sizeof *q);
}

fji_submission_queue *fji_submissions_get(fj_pool *p, uint32_t i, int *err)
{
    fji_submission_queue *q = fji_pool_submissions(p, i);

    if (q != NULL) return q;
    fji_lock_take(&p->lock);
    /* The common pool frees the slots of its queues when it ends, so no queue may be created after
     * STOP is set. */
    if (p->is_common && fji_pool_stopping(p)) {
        fji_lock_drop(&p->lock);
        *err = FJ_EREJECTED;
        return NULL;
    }
    *err = FJ_ENOMEM;
    q = p->submissions[i];
    if (q == NULL && (q = submissions_new(p, i)) != NULL) {
        if (fji_submission_queue_init(q, FJI_SUBMISSIONS_FIRST, FJI_SUBMISSIONS_RESERVED)) {
            /* [pool.record] release -> acquire in fji_pool_submissions(): the initialised queue. */
            fji_store_release(&p->submissions[i], q);
            /* [pool.end] the pointer to the queue above, the run state in submit_into() below;
             * partners: the fences in fji_pool_shutdown(), shutdown_stopped() and
             * fji_pool_stop_common(). Either the thread that ends the pool sees the queue, or this
             * thread sees that the pool ends. */
            fji_fence_full();
        } else {
            submissions_free_one(p, q);
            q = NULL;
        }
    }
    fji_lock_drop(&p->lock);
    return q;
}

bool fji_submissions_renew(fj_pool *p)
{
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
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
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++)
        if (p->submissions[i] != NULL) fji_submission_queue_fini(p->submissions[i]);
}

fji_submission_queue *fji_submissions_lock_one(fj_pool *p, uint32_t *i, int *err)
{
    for (uint32_t tries = 0;; tries++) {
        /* The number is shifted, because the lowest bit of a thread's first number is always 1. */
        *i = (submissions_number(p) >> 1) & (p->nsubmissions - 1);
        fji_submission_queue *q = fji_submissions_get(p, *i, err);
        if (q == NULL) return NULL;
        if (fji_lock_try(&q->lock)) return q;
        /* Waits for the lock of this queue if the pool is FIFO, where a thread uses one queue only,
         * or if the lock was held in nsubmissions attempts before this one. */
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
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q == NULL || !fji_submission_queue_is_large(q) || !fji_lock_try(&q->lock)) continue;
        fji_submission_queue_shrink(q);
        fji_lock_drop(&q->lock);
    }
}

void fji_submissions_free(fj_pool *p)
{
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        if (p->submissions[i] == NULL) continue;
        fji_submission_queue_fini(p->submissions[i]);
        submissions_free_one(p, p->submissions[i]);
    }
}
