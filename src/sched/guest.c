/* SPDX-License-Identifier: MIT */
/*
 * guest.c - an outside thread that works in a pool for one call
 *
 * A guest has a record and a queue as a worker has, so its forks cost as much as those of a worker
 * and can be stolen. The control word does not count a guest, and a guest is never on the idle
 * stack. Guests are counted in fj_pool.guests under the lock of the pool. The pool does not end
 * while it has a guest.
 *
 * A worker of one pool can become a guest of another pool. `outer` of the guest's record is the
 * value that fji_self had before.
 *
 * Edges            from                              to                              carries
 *   pool.activity  acq_rel adds, fji_guest_enter()   acquire, fji_pool_quiescent()   the record of
 *                    and fji_guest_leave()                                             the guest
 */

#include "sched/guest.h"

#include "sched/lifetime.h"
#include "sched/own_queue.h"
#include "sched/record.h"
#include "sched/run.h"
#include "sched/safepoint.h"

fji_worker *fji_guest_enter(fj_pool *p, bool although_shut_down, bool *refused)
{
    fji_worker *w = NULL;

    fji_lock_take(&p->lock);
    /* relaxed: STOP is set under the same lock. SHUTDOWN is set without it, so this thread may miss
     * it. Then p accepts one more guest, and the end of p waits for this guest. */
    bool refuses = (fji_load_relaxed(&p->run) &
                    (although_shut_down ? FJI_RUN_STOP : FJI_RUN_SHUTDOWN)) != 0;
    if (!refuses) {
        w = fji_record_take(p, FJI_ALIVE_GUEST);
        if (w != NULL) fji_pool_add_guest(p);
        /* [pool.activity] acq_rel -> acquire in fji_pool_quiescent() and shutdown_stop(): the
         * record of the guest. If a call of fji_pool_quiescent() is in progress and has found p
         * quiescent, it then sees that activity_epoch has changed, and sweeps again. */
        fji_add_acq_rel(&p->activity_epoch, 1);
    }
    fji_lock_drop(&p->lock);
    if (refused != NULL) *refused = refuses;
    if (w == NULL) return NULL;
    w->outer = fji_self;
    fji_self = &w->q.fast;
    fji_safepoint_enter(w);
    return w;
}

/*
 * As fji_pool_remove_guest(), for the guest that has given the record w back. An asker may have
 * called w, because it has read `alive` before that: then takes the guest off the broadcast. If
 * `tenure` has changed, another thread uses the record, and this guest was not called: no thread
 * takes a called record. The lock that the guest needs anyway saves an atomic operation here.
 */
static void guest_remove(fji_worker *w, uint32_t tenure)
{
    fj_pool *p = w->pool;

    fji_lock_take(&p->lock);
    bool called = w->tenure == tenure && fji_worker_called(w);
    if (FJI_UNLIKELY(called)) fji_store_relaxed(&w->call, FJI_CALL_NONE); /* relaxed: as above */
    fji_pool_uncount_guest(p);                                            /* LAST TOUCH of *p. */
    if (FJI_UNLIKELY(called)) fji_safepoint_uncount();
}

void fji_guest_leave(fji_worker *w)
{
    fj_pool *p = w->pool;
    fji_taken taken;

    while (fji_worker_take_local(w, &taken)) fji_run_taken(p, w, &taken);
    fji_queue_shrink(&w->q);
    uint32_t tenure = w->tenure;
    fji_self = w->outer;
    fji_record_give_back(w);
    /* [pool.activity] acq_rel -> acquire in fji_pool_quiescent(): the record is free, and its queue
     * is empty. If a call of fji_pool_quiescent() is in progress and has found p quiescent, it then
     * sees that activity_epoch has changed, and sweeps again. */
    fji_add_acq_rel(&p->activity_epoch, 1);
    /* p->guests still counts this guest, so p is not freed before guest_remove(). */
    fji_pool_maybe_terminate(p);
    guest_remove(w, tenure); /* LAST TOUCH of *p. */
}
