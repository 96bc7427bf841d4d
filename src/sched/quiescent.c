/* SPDX-License-Identifier: MIT */
/*
 * quiescent.c - whether a pool has nothing to do
 *
 * A pool is quiescent if at one moment every thread that is counted in ctl is idle or quiet, every
 * guest is quiet or has left, and every queue is empty. There is no counter of tasks, because each
 * fork would have to change it. Instead a thread sweeps over the records:
 *
 *     read ctl and activity_epoch
 *       first pass: all workers idle or quiet, all guests quiet, and their queues empty
 *       all submission queues empty
 *       second pass: all workers idle or quiet, all guests quiet
 *     full fence
 *     ctl and activity_epoch unchanged: quiescent; otherwise sweep again
 *
 * If ctl and activity_epoch are the same before and after the sweep, the pool was quiescent:
 *   - A worker that becomes idle changes ctl (the version), and so does a thread that pops one from
 *     the idle stack. So if ctl is unchanged, no worker became idle or was woken during the sweep,
 *     and the queue of an idle worker did not change.
 *   - A worker may be popped before the sweep, and its park word may become ACTIVE only during the
 *     sweep. The first pass still finds it idle. Then it takes a task from a queue, and the sweep
 *     finds that queue empty. So the park words are read a second time, after the queues: a worker
 *     that has taken a task is ACTIVE then, or has become idle again and has changed ctl.
 *   - A thread that is being started is counted in ctl, but the sweep does not find it idle.
 *   - activity_epoch counts the changes that ctl does not show: a guest enters or leaves, a worker
 *     or guest that waits for quiescence becomes QUIET or ACTIVE, and a guest without a task of its
 *     own becomes QUIET before it sleeps in a wait for a task, and ACTIVE after that. The sleeping
 *     guest has to count as quiet, because the task that it waits for may itself wait until the
 *     pool is quiescent.
 *   - Submissions can only be added during the sweep, because no worker and no guest is active. So
 *     a submission queue that the sweep finds empty was empty when the sweep began. The start of
 *     the sweep is the moment at which the pool was quiescent.
 *   - A worker counts as idle only after the wake-up of its rescan (`rescanning`, see idle.h).
 *
 * When a pool ends, no task may be added after the sweep. So the sweep of a thread that is about to
 * stop the pool takes the lock of each submission queue. A submitter checks the run state with that
 * lock.
 *
 * Edges            from                                to                            carries
 *   pool.alive     release stores in record.c          acquire, quiesce_worker()     park, queue
 *   pool.activity  acq_rel adds in guest.c             acquire, fji_pool_quiescent() guests
 *   pool.activity  acq_rel add, fji_quiesce_turn()     acquire, fji_pool_quiescent() park
 *   idle.rescan    release store, fji_idle_wait()      acquire, quiesce_worker()     its wake-up
 *   ctl.idle       acq_rel CAS, idle_push()            acquire, fji_pool_quiescent() an empty queue
 */

#include "sched/quiescent.h"

bool fji_pool_has_work(const fj_pool *p)
{
    uint32_t n = fji_pool_nworkers(p);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *v = fji_pool_worker(p, i);
        if (v != NULL && fji_queue_maybe(&v->q)) return true;
    }
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        fji_submission_queue *s = fji_pool_submissions(p, i);
        if (s != NULL && fji_submission_queue_maybe(s)) return true;
    }
    return false;
}

/* ---- Quiescence ------------------------------------------------------------------------------ */

/* Returns whether the worker or guest of record w is idle or quiet, or no thread uses the record.
 * Adds 1 to *idle if a worker, not a guest, uses the record. It does so even if the result is
 * false; the caller needs *idle only if the result is true for all records. ending: see
 * fji_pool_quiescent(); if it is true, a QUIET worker or guest counts as active. */
static bool quiesce_worker(fji_worker *w, bool ending, int *idle)
{
    /* [pool.alive] acquire <- release in fji_record_take(): park and rescanning as initialised.
     * [pool.alive] acquire <- release in fji_record_give_back(): the empty queue of w. */
    uint32_t alive = fji_load_acquire(&w->alive);

    if (alive != FJI_ALIVE_WORKER && alive != FJI_ALIVE_GUEST) return true;
    /* [idle.park] acquire <- release in idle_push() and fji_quiesce_turn(), acq_rel in
     * worker_unpark(): what that thread wrote before it changed park. If w takes a task after this
     * read, the second pass of the sweep or the comparison of ctl and activity_epoch in
     * fji_pool_quiescent() notices it. */
    uint32_t park = fji_load_acquire(&w->park);
    if (alive == FJI_ALIVE_WORKER) ++*idle;
    if (park == FJI_PARK_ACTIVE || (ending && park == FJI_PARK_QUIET)) return false;
    /* [idle.rescan] acquire <- release in fji_idle_wait(): if rescanning is 0, the wake-up that the
     * rescan of w has made. */
    return fji_load_acquire(&w->rescanning) == 0;
}

/* Takes the lock of q, a submission queue of p. Returns false, without the lock, if p is the common
 * pool and another thread holds the lock: a submission is in progress. The caller must not wait for
 * that submission, because a callback of the submission may wait for the lock that the caller holds
 * while it ends the common pool. */
static bool quiesce_lock(const fj_pool *p, fji_submission_queue *q)
{
    if (p->is_common) return fji_lock_try(&q->lock);
    fji_lock_take(&q->lock);
    return true;
}

/* Returns whether all submission queues of p are empty. ending: see fji_pool_quiescent(). */
static bool quiesce_submissions(fj_pool *p, bool ending)
{
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q == NULL) continue;
        if (ending && !quiesce_lock(p, q)) return false;
        bool more = fji_submission_queue_maybe(q);
        if (ending) fji_lock_drop(&q->lock);
        if (more) return false;
    }
    return true;
}

/* Returns whether all workers that the control word `ctl` counts are idle or quiet, and all guests
 * are quiet. If `queues` is true, their queues must also be empty. ending: see
 * fji_pool_quiescent(). */
static bool quiesce_workers(fj_pool *p, uint64_t ctl, bool ending, bool queues)
{
    int idle = 0;
    uint32_t n = fji_pool_nworkers(p);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        if (w == NULL) continue;
        if (!quiesce_worker(w, ending, &idle) || (queues && fji_queue_maybe(&w->q))) return false;
    }
    return idle == fji_ctl_total(ctl);
}

/* One sweep over p, as described at the head of this file: both passes, and the submission queues
 * between them. Returns whether all conditions hold. */
static bool quiesce_sweep(fj_pool *p, uint64_t ctl, bool ending)
{
    return quiesce_workers(p, ctl, ending, true) && quiesce_submissions(p, ending) &&
           quiesce_workers(p, ctl, ending, false);
}

bool fji_pool_quiescent(fj_pool *p, bool ending)
{
    for (;;) {
        uint64_t ctl = fji_pool_ctl(p);
        /* [pool.activity] acquire <- acq_rel in guest.c and fji_quiesce_turn(): the records and
         * park words as they were written before the adds that the value read here includes. */
        uint64_t activity = fji_load_acquire(&p->activity_epoch);
        if (!quiesce_sweep(p, ctl, ending)) return false;
        /* [pool.activity] the sweep above, ctl and activity_epoch below; partners: the acq_rel
         * adds in guest.c and fji_quiesce_turn(). Either the sweep has not seen what the guest or
         * worker did after its add, or this thread sees that activity_epoch has changed. */
        fji_fence_full();
        /* relaxed: the fence orders both loads after the sweep. */
        if (fji_pool_ctl_hint(p) == ctl && fji_load_relaxed(&p->activity_epoch) == activity)
            return true;
    }
}

/* Before the thread of w became the guest w, it may already have been a worker or guest of the same
 * pool p. The park words of these other records are set too, because their tasks cannot continue
 * until w leaves. */
void fji_quiesce_turn(fji_worker *w, uint32_t park)
{
    fj_pool *p = w->pool;

    for (; w != NULL; w = fji_worker_outer(w))
        /* [idle.park] release -> acquire in quiesce_worker(): what this thread wrote before, for
         * example into its queue. */
        if (w->pool == p) fji_store_release(&w->park, park);
    /* [pool.activity] acq_rel -> acquire in fji_pool_quiescent(): the park words set above. */
    fji_add_acq_rel(&p->activity_epoch, 1);
}
