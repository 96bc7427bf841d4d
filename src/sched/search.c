/* SPDX-License-Identifier: MIT */
/*
 * search.c - searching slots; see search.h
 */

#include "sched/search.h"

#include "sched/quiescent.h"

/* Returns the number of slots from which on the pool has enough: if this number or more are in use,
 * the calling thread wakes no worker and leaves its wake-up to the searching workers. c: the
 * control word that the calling thread has read. */
static uint32_t search_slot_limit(const fj_pool *p, uint64_t c)
{
    const fji_worker *w = fji_worker_self();
    /* relaxed: the limit need not be exact. */
    int half = (fji_ctl_deficit(c) + fji_pool_parallelism(p)) / 2;

    /* The limit is 1 for a thread outside the pool, so that it does not spend its time on
     * wake-ups. */
    if (w == NULL || w->pool != p) return 1;
    if (half < FJI_SEARCH_MIN) return FJI_SEARCH_MIN;
    return (uint32_t)(half < FJI_SEARCH_MAX ? half : FJI_SEARCH_MAX);
}

bool fji_search_slot_take(fj_pool *p, uint64_t c)
{
    uint32_t most = search_slot_limit(p, c);

    /* [idle.defer] the task and ctl above, nsearching below; partners: the fences in
     * fji_search_rescan(), fji_idle_fence() and wake_with_slot(). Either this thread sees that a slot
     * was given back or FJI_WAKE_DEFERRED was cleared, or the thread that did this sees the task or
     * the idle worker. */
    fji_fence_full();
    uint32_t s = fji_load_relaxed(&p->nsearching); /* relaxed: the fence above orders it */
    for (;;) {
        bool enough = (s & ~FJI_WAKE_DEFERRED) >= most;
        /* If FJI_WAKE_DEFERRED is set already, nothing is written to nsearching, so other cores
         * keep their copies of the cache line. */
        if (enough && (s & FJI_WAKE_DEFERRED) != 0) return false;
        /* [idle.defer] acq_rel, as every change of nsearching: a thread that changes nsearching
         * later sees what this thread wrote before. */
        if (fji_cas_acq_rel_32(&p->nsearching, &s, enough ? s | FJI_WAKE_DEFERRED : s + 1)) break;
    }
    bool taken = (s & ~FJI_WAKE_DEFERRED) < most;
    /* [idle.defer] acq_rel -> full fence in fji_search_rescan(): a rescan that does not see a task,
     * because the worker that this thread is about to wake has taken it, sees this number. */
    if (taken) fji_add_acq_rel(&p->slots_taken, 1u);
    return taken;
}

bool fji_search_slot_return(fj_pool *p)
{
    /* [idle.defer] acq_rel, as every change of nsearching: this thread sees what a producer wrote
     * before it set FJI_WAKE_DEFERRED. */
    return (fji_add_acq_rel(&p->nsearching, (uint32_t)-1) & FJI_WAKE_DEFERRED) != 0;
}

bool fji_search_slot_return_unless_last(fj_pool *p)
{
    uint32_t s = fji_load_relaxed(&p->nsearching); /* relaxed: the CAS fails if s is out of date */

    /* [idle.defer] acq_rel, as every change of nsearching: this thread sees what a producer wrote
     * before it set FJI_WAKE_DEFERRED. */
    while (s != (1u | FJI_WAKE_DEFERRED))
        if (fji_cas_acq_rel_32(&p->nsearching, &s, s - 1)) return true;
    return false;
}

bool fji_search_is_deferred(const fj_pool *p)
{
    /* relaxed: a caller that has a slot reads the bit again when it gives the slot back, and a
     * rescan calls this after a full fence. */
    return (fji_load_relaxed(&p->nsearching) & FJI_WAKE_DEFERRED) != 0;
}

uint32_t fji_search_slots(const fj_pool *p)
{
    uint32_t s = fji_load_relaxed(&p->nsearching); /* relaxed: only the value is used */

    return s & ~FJI_WAKE_DEFERRED;
}

bool fji_search_begin(fji_worker *w)
{
    fj_pool *p = w->pool;

    if (w->searching) return true;
    /* The limit need not be exact, and the add below decides the number. */
    if (fji_search_slots(p) >= p->max_spinners) return false;
    /* [idle.defer] acq_rel, as every change of nsearching: a thread that changes nsearching later
     * sees what this thread wrote before. */
    fji_add_acq_rel(&p->nsearching, 1u);
    return w->searching = true;
}

void fji_search_end(fji_worker *w)
{
    /* The result says whether a producer may have left its wake-up to w. It is not needed here.
     * Either w makes a rescan after this, which covers such wake-ups, or the pool stops. */
    if (w->searching) (void)fji_search_slot_return(w->pool);
    w->searching = false;
}

bool fji_search_rescan(fj_pool *p)
{
    uint32_t taken;

    if (!fji_search_is_deferred(p)) return fji_pool_has_work(p);
    do {
        /* [idle.defer] acquire: the loop compares the number before its scan with the one after. */
        taken = fji_load_acquire(&p->slots_taken);
        /* [idle.defer] acq_rel, as every change of nsearching: this thread sees what a producer
         * wrote before it set FJI_WAKE_DEFERRED. */
        fji_and_acq_rel(&p->nsearching, ~FJI_WAKE_DEFERRED);
        /* [idle.defer] the bit FJI_WAKE_DEFERRED above, the queues below; partner: the fence in
         * fji_search_slot_take(). Either the producer there sees that the bit is cleared, or this
         * thread sees the task of the producer. */
        fji_fence_full();
        if (fji_pool_has_work(p)) {
            /* The caller makes one wake-up, but several may have been deferred, so the bit is set
             * again.
             * [idle.defer] acq_rel, as every change of nsearching: a thread that changes nsearching
             * later sees what this thread wrote before. */
            fji_or_acq_rel(&p->nsearching, FJI_WAKE_DEFERRED);
            return true;
        }
        /* [idle.defer] the queues above, slots_taken below; partner: the add in
         * fji_search_slot_take(). */
        fji_fence_full();
        /* relaxed: the fence above orders it. */
    } while (fji_load_relaxed(&p->slots_taken) != taken);
    return false;
}
