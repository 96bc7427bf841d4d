/* SPDX-License-Identifier: MIT */
/*
 * wake.c - waking one idle worker, or starting a thread; see wake.h
 */

#include "sched/wake.h"

#include "sched/hold.h"
#include "sched/quiescent.h"
#include "sched/search.h"
#include "sched/spawn.h"

/* ---- Waking ---------------------------------------------------------------------------------- */

/* Makes w active. The caller has popped w from the idle stack. */
static void worker_unpark(fji_worker *w)
{
    /* [idle.park] acq_rel -> acquire in idle_sleep(): what the waker did before. */
    if (fji_swap_acq_rel(&w->park, FJI_PARK_ACTIVE) == FJI_PARK_PARKED) fji_plat_wake_one(&w->park);
}

/* Pops the top of the idle stack into *out and adds `active` to the active workers. Returns false
 * if the control word has changed from *c; *c is then the new value. */
static bool wake_pop(fj_pool *p, uint64_t *c, int active, fji_worker **out)
{
    fji_worker *w = fji_pool_worker(p, fji_ctl_top(*c) - 1);
    if (w == NULL) __builtin_unreachable(); /* every worker on the stack has a record */
    /* relaxed: fixed while w is on the stack; if it is not, the CAS fails. */
    uint32_t next = fji_load_relaxed(&w->next_idle);
    uint64_t n = fji_ctl_add_active(fji_ctl_with_top(*c, next), active);

    *out = w;
    /* [ctl.idle] acq_rel <- acq_rel in idle_push(): next_idle, park. */
    return fji_ctl_cas(p, c, n);
}

/*
 * Wakes or starts one worker if fewer are active than the parallelism, or leaves the wake-up to
 * the searching workers. *slot: whether the caller holds a searching slot. A worker that is woken
 * gets the slot. If there is none and the pool needs one, it is taken here. Afterwards *slot
 * tells whether a slot is left.
 */
static void wake_try(fj_pool *p, bool *slot)
{
    uint64_t c = fji_pool_ctl(p);
    fji_worker *w;

    for (uint32_t failures = 0; fji_ctl_deficit(c) < 0; fji_ctl_backoff(p, &c, &failures)) {
        if (fji_ctl_top(c) != 0) {
            if (!*slot && fji_pool_is_large(p) && !(*slot = fji_search_slot_take(p, c))) return;
            if (!wake_pop(p, &c, 1, &w)) continue;
            fji_store_relaxed(&p->shrinking, 0u); /* relaxed: a hint */
            w->searching = *slot;
            *slot = false;
            worker_unpark(w);
            return;
        }
        if (!fji_spawn_allowed(p, c)) return;
        bool started;
        if (!fji_spawn(p, &c, &started)) continue;
        if (started) return;
        failures = 0;
        /* The refused thread was counted for a while. If the pool is shut down, this count may
         * have kept another thread from ending it. This thread cannot end the pool, because its
         * caller may hold the lock of a submission queue. So it wakes an idle worker, which tests
         * for the end when it becomes idle again. */
        c = fji_pool_ctl(p); /* [ctl.idle] acquire <- the CAS in idle_push() */
        if (fji_ctl_top(c) == 0) return;
    }
}

/* As wake_try(), with a slot that the caller holds, or without one. No slot is left afterwards. */
static void wake_with_slot(fj_pool *p, bool slot)
{
    for (;;) {
        wake_try(p, &slot);
        if (!slot || !fji_search_slot_return(p)) return;
        slot = false;
        /* [idle.defer] nsearching above, ctl below; partner: the fence in fji_search_slot_take().
         * A producer that left its wake-up to this slot may have seen an idle worker that
         * wake_try() did not see. */
        fji_fence_full();
    }
}

void fji_wake_one(fj_pool *p)
{
    wake_with_slot(p, false);
}

/* Whether a fork of w that sees the wake-up bit makes a wake-up. While the system refuses threads
 * and no worker is idle, only some forks try to start one, because the joiner runs the task in
 * any case. Submissions always try. */
static bool fork_may_wake(fji_worker *w)
{
    const fj_pool *p = w->pool;

    /* relaxed: hints. */
    if (fji_load_relaxed(&p->spawn_refused) == 0 || fji_ctl_top(fji_pool_ctl_hint(p)) != 0) {
        w->forks_since_spawn_try = 0;
        return true;
    }
    uint32_t n = ++w->forks_since_spawn_try;
    return (n & (n - 1)) == 0 || n % FJI_SPAWN_RETRY_EVERY == 0;
}

/* After a push into the own queue and the light fence, by the thread of the worker `fast`. A fork
 * calls it only if it sees the wake-up bit, or always in a pool without the heavy fence. */
void fji_wake_slow(fj_worker *fast)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) return;
    /* [idle.dekker] the task above, ctl below; partner: the full fence in idle_fence(). With a
     * heavy fence there, the light fence of the caller is enough. */
    if (!w->pool->asymmetric) fji_fence_full();
    if (!fork_may_wake(w)) return;
    fji_wake_one(w->pool);
}

void fji_wake_after_find(fji_worker *w, bool more)
{
    fj_pool *p = w->pool;
    bool slot = w->searching, owed = w->rescan_owed && fji_pool_has_work(p);

    if (w->awaiting_first_task && !more) more = fji_pool_has_work(p);
    w->searching = w->rescan_owed = w->awaiting_first_task = false;
    /* w keeps the slot for the next worker if that worker is wanted. Otherwise it returns the slot,
     * which reads DEFERRED once more. */
    if (slot && !more && !fji_search_is_deferred(p)) {
        slot = false;
        more = fji_search_slot_return(p);
    } else if (slot) {
        more = true;
    }
    if (more) wake_with_slot(p, slot);
    if (owed) wake_with_slot(p, false); /* in addition: see "Each rescan counts" in idle.h */
}

void fji_wake_all_idle(fj_pool *p)
{
    uint64_t c = fji_pool_ctl(p);
    fji_worker *w;

    while (fji_ctl_top(c) != 0) {
        if (!wake_pop(p, &c, 1, &w)) continue;
        worker_unpark(w);
        c = fji_pool_ctl(p);
    }
}

void fji_wake_for_lazy(fj_pool *p)
{
    /* relaxed: the thread that wrote 0 makes the wake-up for all tasks queued before. */
    if (fji_load_relaxed(&p->lazy) == 0 || !fji_pool_hold(p)) return;
    /* [submit.lazy] acq_rel <- release in fji_pool_note_lazy(): the queued task. */
    if (fji_swap_acq_rel(&p->lazy, 0u) != 0) {
        /* [idle.dekker] the task above, ctl below; partner: the heavy fence in idle_lead(). */
        fji_fence_full();
        fji_wake_one(p);
    }
    fji_pool_drop_hold(p);
}
