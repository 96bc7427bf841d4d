/* SPDX-License-Identifier: MIT */
/*
 * retire.c - idle workers that exit because they are not needed; see retire.h
 */

#include "sched/retire.h"

int64_t fji_retire_deadline(fji_worker *w)
{
    fj_pool *p = w->pool;
    uint64_t c = fji_pool_ctl_hint(p); /* relaxed: fji_retire() reads ctl again */
    int target = fji_pool_parallelism(p);

    if (p->keep_alive_ns == FJ_FOREVER || fji_ctl_top(c) != w->index + 1) return FJ_FOREVER;
    if (fji_ctl_deficit(c) + target > 0 && fji_ctl_total(c) <= target) return FJ_FOREVER;
    /* relaxed: an old value only makes the deadline earlier or later. */
    int64_t wait = fji_load_relaxed(&p->shrinking) != 0 ? FJI_RETIRE_NEXT_NS : p->keep_alive_ns;
    int64_t now = fji_plat_now();
    return wait > FJ_FOREVER - 1 - now ? FJ_FOREVER : now + wait;
}

/* Makes the idle worker w, which may be on top of the idle stack now, compute its deadline again.
 * Has this effect even if w sleeps, or is about to sleep, without a deadline. */
static void retire_reconsider(fji_worker *w)
{
    uint32_t parked = FJI_PARK_PARKED;

    /* [idle.retire] ctl above, park below; partner: the fence in idle_sleep(). Either w sees itself
     * on top of the stack, or the CAS below finds PARKED. In the second case the sleep of w ends,
     * or does not begin. */
    fji_fence_full();
    /* [idle.park] acq_rel -> acquire in idle_sleep(): the change of ctl by the calling thread. */
    if (fji_cas_acq_rel_32(&w->park, &parked, FJI_PARK_IDLE)) fji_plat_wake_one(&w->park);
}

bool fji_retire(fji_worker *w)
{
    fj_pool *p = w->pool;
    uint64_t c = fji_pool_ctl(p);

    while (fji_ctl_top(c) == w->index + 1) {
        uint32_t next = fji_load_relaxed(&w->next_idle); /* relaxed: only w writes this word */
        /* [ctl.idle] acq_rel <- acq_rel in idle_push() of the worker below: its next_idle and park.
         * [ctl.idle] acq_rel -> acquire in fji_pool_ctl(): that w is off the stack. */
        if (!fji_ctl_cas(p, &c, fji_ctl_with_top(c, next))) continue;
        fji_store_relaxed(&p->shrinking, 1u); /* relaxed: a hint for fji_retire_deadline() */
        if (next != 0) retire_reconsider(fji_pool_worker(p, next - 1));
        return true;
    }
    return false;
}
