/* SPDX-License-Identifier: MIT */
/*
 * idle.c - a worker that finds no task becomes idle; see idle.h
 */

#include "sched/idle.h"

#include "plat/wait.h"
#include "sched/check.h"
#include "sched/lifetime.h"
#include "sched/retire.h"
#include "sched/search.h"
#include "sched/wake.h"

/* Step 1 of the handshake in idle.h: pushes w onto the idle stack. w does not count as active
 * afterwards. */
static void idle_push(fji_worker *w)
{
    fj_pool *p = w->pool;
    uint64_t c = fji_pool_ctl(p);
    uint32_t failures = 0;

    fji_check(p, fji_ctl_total(c) > 0 && fji_ctl_total(c) <= FJ_MAX_WORKERS);
    fji_store_relaxed(&w->rescanning, 1u); /* relaxed: the store of park publishes it */
    /* [idle.rescan] release -> acquire in quiesce_worker(): a thread that reads IDLE also sees that
     * rescanning is 1. */
    fji_store_release(&w->park, FJI_PARK_IDLE);
    for (;; fji_ctl_backoff(p, &c, &failures)) {
        fji_store_relaxed(&w->next_idle, fji_ctl_top(c)); /* relaxed: published by the CAS */
        uint64_t n = fji_ctl_add_active(fji_ctl_with_top(c, w->index + 1), -1);
        /* [ctl.idle] acq_rel -> acq_rel in wake_pop(): next_idle and park of w. */
        if (fji_ctl_cas(p, &c, fji_ctl_new_version(n))) return;
    }
}

/* Returns whether no worker of p is active. If none is, a heavy fence interrupts no worker that
 * runs a task. */
static bool idle_none_active(const fj_pool *p)
{
    return fji_pool_active(p, fji_pool_ctl_hint(p)) <= 0;
}

/* Tries to make the calling worker the leader of the next heavy fence. Returns false if another
 * worker has become its leader, or if that fence must not begin yet: fence_waits is true, the time
 * fence_next is not reached, and a worker is active. turn: how often the caller has called this
 * function before, since it pushed itself onto the idle stack. Before fence_next, the control word
 * is read only if `turn` is a multiple of 16, because many workers may wait here and other threads
 * need the cache line of the word. In the other turns a worker is assumed to be active. */
static bool idle_may_lead(fj_pool *p, uint32_t turn)
{
    uint64_t next = fji_load_relaxed(&p->fence_next); /* relaxed: the CAS fails if it is old */
    uint64_t now = (uint64_t)fji_plat_now();

    if (p->fence_waits && now < next && (turn % 16 != 0 || !idle_none_active(p))) return false;
    /* [idle.fence] acq_rel: of the workers that have read this value of fence_next, only one
     * succeeds and is the leader. */
    return fji_cas_acq_rel_64(&p->fence_next, &next, now + FJI_FENCE_GAP_NS);
}

/* Executes the heavy fence as leader. The fence serves all workers that have pushed themselves onto
 * the idle stack, or left the active count, before it begins, and wait in fji_idle_fence(). */
static void idle_lead(fj_pool *p)
{
    /* [idle.fence] acq_rel; partner: the full fence in fji_idle_fence(). Either the waiting worker
     * reads this number there and waits for a later fence, or its push onto the idle stack comes
     * before the heavy fence below. */
    uint32_t number = fji_add_acq_rel(&p->fence_begun, 1) + 1;
    /* [idle.dekker] ctl in idle_push() above, the queues in the rescan below; partner: the light
     * fence in fj_fork(). Either the rescan sees the task, or the producer sees the wake-up bit. */
    fji_pool_barrier(p);
    uint32_t done = fji_load_relaxed(&p->fence_done); /* relaxed: the CAS fails if it is old */
    /* [idle.fence] acq_rel -> acquire in fji_idle_fence(): every task that was stored before the heavy
     * fence took effect. */
    while ((int32_t)(number - done) > 0 && !fji_cas_acq_rel_32(&p->fence_done, &done, number)) {}
}

bool fji_idle_fence(fj_pool *p, const fji_fence_stop *stop)
{
    uint32_t turn = 0;

    /* [idle.fence] ctl above, fence_begun below; partner: the add in idle_lead(). Either this thread
     * reads the number of that fence and waits for a later one, or its change of ctl comes before
     * that fence.
     * [idle.dekker] In a pool without the heavy fence: ctl above, the queues below; partner: the
     * full fence in fji_wake_slow(). Either this thread sees the task, or the producer sees the
     * wake-up bit.
     * [idle.defer] nsearching and ctl above, the queues below; partner: the fence in
     * fji_search_slot_take(). Either the worker that becomes idle sees the task, or the producer
     * sees that it has no slot. */
    fji_fence_full();
    uint32_t before = fji_load_relaxed(&p->fence_begun); /* relaxed: the fence orders it */
    if (!p->asymmetric) return true;
    /* [idle.fence] acquire <- acq_rel in idle_lead(): every task that was stored before the heavy
     * fence took effect. */
    while ((int32_t)(fji_load_acquire(&p->fence_done) - before) <= 0) {
        /* [idle.park] acquire <- acq_rel in worker_unpark(): what the waking thread has written,
         * for example w->searching. */
        if (((fji_load_acquire(stop->word) & stop->mask) != 0) == stop->set) return false;
        if (idle_may_lead(p, turn)) {
            idle_lead(p);
            return true;
        }
        fji_spin(&turn, 8, 64); /* yields in every 64th turn: the leader may need the CPU */
    }
    return true;
}

/* Step 4 of the handshake in idle.h: sleeps. Returns true if another thread has made w active
 * again, and false if w has retired. */
static bool idle_sleep(fji_worker *w)
{
    for (;;) {
        uint32_t idle = FJI_PARK_IDLE;
        /* [idle.park] acquire <- acq_rel in worker_unpark(): what the waking thread has written. */
        if (!fji_cas_acq_rel_32(&w->park, &idle, FJI_PARK_PARKED) && idle == FJI_PARK_ACTIVE)
            return true;
        /* [idle.retire] park above, ctl in fji_retire_deadline() below; partner: the fence in
         * retire_reconsider(). Either w sees that it is on top of the idle stack, or the retiring
         * worker sees PARKED and wakes w. */
        fji_fence_full();
        fji_count(&w->parks, 1);
        bool in_time = fji_plat_wait(&w->park, FJI_PARK_PARKED, fji_retire_deadline(w));
        /* [idle.park] acquire <- acq_rel in worker_unpark(): what the waking thread has written. */
        if (fji_load_acquire(&w->park) == FJI_PARK_ACTIVE) return true;
        if (!in_time && !fji_pool_stopping(w->pool) && fji_retire(w)) {
            /* relaxed: w is off the idle stack, so no other thread changes its park word. */
            fji_store_relaxed(&w->park, FJI_PARK_ACTIVE);
            return false;
        }
    }
}

bool fji_idle_wait(fji_worker *w)
{
    fj_pool *p = w->pool;
    const fji_fence_stop woken = {&w->park, UINT32_MAX, false}; /* the park word is ACTIVE */

    fji_check(p, fji_queue_valid(&w->q));
    fji_search_end(w); /* the rescan below covers the wake-ups that producers left to w */
    idle_push(w);
    /* [idle.dekker] fji_idle_fence() orders ctl in idle_push() above before the queues in the rescan
     * below; partner: the light fence in fj_fork(). Either the rescan sees the task, or the
     * producer sees the wake-up bit. */
    if (!fji_idle_fence(p, &woken)) {
        /* relaxed: the park word is ACTIVE, so quiesce_worker() does not count w as idle. */
        fji_store_relaxed(&w->rescanning, 0u);
        w->rescan_owed = true;
        return true;
    }
    w->rescan_owed = false;
    if (fji_search_rescan(p)) fji_wake_one(p);
    /* [idle.rescan] release -> acquire in quiesce_worker(): the wake-up above, that is, the changed
     * ctl and the park word of the woken worker. */
    fji_store_release(&w->rescanning, 0u);
    fji_pool_maybe_terminate(p);
    return idle_sleep(w);
}
