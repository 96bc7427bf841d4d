/* SPDX-License-Identifier: MIT */
/*
 * quiescent.c - whether a pool has nothing to do
 *
 * Quiet means that at one moment every thread counted in ctl was idle, every guest was
 * quiet or gone, and every queue was empty. One sweep over the records shows it, if ctl and
 * `moves` are the same after as before:
 *
 *   - a worker that goes idle changes ctl (version), and so does whoever takes one off the
 *     stack; so with ctl unchanged nobody ran anything in between, and the queue of an idle
 *     worker does not change. But one that was taken off before the sweep may be told only
 *     during it: it still looks idle, then takes a task from a queue that is then found empty.
 *     So the park words are looked at once more after the queues: whoever took a task by
 *     then is active, and can be seen to be, or has gone idle again and changed ctl;
 *   - a guest that comes or goes, a worker in fj_help_quiesce() that turns from quiet to active
 *     or back, and a guest that sleeps because it has joined a task and has none itself, changes
 *     `moves`. Such a guest has to count as quiet: the task that it has joined may itself wait for
 *     the pool to be quiescent;
 *   - a thread that is being started is counted in ctl and not yet found idle;
 *   - submissions can only be added meanwhile: what was empty when looked at was empty at the
 *     start too, and then that is the moment.
 *
 * At the end of a pool nothing may be added any more: the sweep then takes the lock of
 * every submission queue, under which submitters look whether the pool still takes work.
 *
 * Edges          from                         to                          carries
 *   pool.alive   release store of alive       acquire in fji_pool_quiescent()  park, the queue
 *   pool.activity   acq_rel add                  acquire in fji_pool_quiescent()  a guest's coming
 *   idle.rescan   release in fji_idle_wait()   acquire in quiesce_worker()  its rescan's signal
 *   ctl.idle     acq_rel CAS in idle_push()   acquire in fji_pool_quiescent()  an empty queue
 */

#include "sched/quiescent.h"

bool fji_pool_has_work(const fj_pool *p)
{
    uint32_t n = fji_pool_nworkers(p);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *v = fji_pool_worker(p, i);
        if (v != NULL && fji_queue_maybe(&v->q)) return true;
    }
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        fji_submission_queue *s = fji_pool_submissions(p, i);
        if (s != NULL && fji_submission_queue_maybe(s)) return true;
    }
    return false;
}

/* ---- Quiescence --------------------------------------------------------------------------------------- */

/* Whether record w does nothing; *idle counts it if it is a worker. One that is quiet goes on
 * with its task afterwards, so it keeps a pool from ending. */
static bool quiesce_worker(fji_worker *w, bool ending, int *idle)
{
    /* [pool.alive] acquire <- release in fji_record_take(). */
    uint32_t alive = fji_load_acquire(&w->alive);

    if (alive != FJI_ALIVE_WORKER && alive != FJI_ALIVE_GUEST) return true;
    /* [idle.park] acquire <- whoever set it; moves and ctl are compared afterwards. */
    uint32_t park = fji_load_acquire(&w->park);
    if (alive == FJI_ALIVE_WORKER) ++*idle;
    if (park == FJI_PARK_ACTIVE || (ending && park == FJI_PARK_QUIET)) return false;
    /* [idle.rescan] acquire <- release in fji_idle_wait(): whom it has woken. */
    return fji_load_acquire(&w->rescanning) == 0;
}

/* A lock of the common pool that is held is not waited for: a submission is on its way, and its
 * callbacks may wait for the lock under which the end of the common pool is looked for. */
static bool quiesce_lock(const fj_pool *p, fji_submission_queue *q)
{
    if (p->is_common) return fji_lock_try(&q->lock);
    fji_lock_take(&q->lock);
    return true;
}

static bool quiesce_submissions(fj_pool *p, bool ending)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q == NULL) continue;
        if (ending && !quiesce_lock(p, q)) return false;
        bool more = fji_submission_queue_maybe(q);
        if (ending) fji_lock_drop(&q->lock);
        if (more) return false;
    }
    return true;
}

/* Whether all who are counted in ctl, and all guests, do nothing; `queues`: nor have anything. */
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

static bool quiesce_sweep(fj_pool *p, uint64_t ctl, bool ending)
{
    return quiesce_workers(p, ctl, ending, true) && quiesce_submissions(p, ending) &&
           quiesce_workers(p, ctl, ending, false);
}

bool fji_pool_quiescent(fj_pool *p, bool ending)
{
    for (;;) {
        uint64_t ctl = fji_pool_ctl(p);
        /* [pool.activity] acquire <- acq_rel in fji_guest_enter() and fji_quiesce_turn(). */
        uint64_t activity = fji_load_acquire(&p->activity_epoch);
        if (!quiesce_sweep(p, ctl, ending)) return false;
        /* [pool.activity] the sweep above, the second look below; partner: the acq_rel adds. */
        fji_fence_full();
        /* relaxed: the fence orders them. */
        if (fji_pool_ctl_hint(p) == ctl && fji_load_relaxed(&p->activity_epoch) == activity)
            return true;
    }
}

/* Not only w: what this thread was before it became a guest of the same pool again goes on only
 * when w has got what it waits for. */
void fji_quiesce_turn(fji_worker *w, uint32_t park)
{
    fj_pool *p = w->pool;

    for (; w != NULL; w = fji_worker_outer(w))
        if (w->pool == p) /* [idle.park] release -> acquire in quiesce_worker() */
            fji_store_release(&w->park, park);
    /* [pool.activity] acq_rel <-> acquire in fji_pool_quiescent(). */
    fji_add_acq_rel(&p->activity_epoch, 1);
}
