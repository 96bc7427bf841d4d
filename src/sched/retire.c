/* SPDX-License-Identifier: MIT */
/*
 * retire.c - idle workers that leave for lack of work; see retire.h
 */

#include "sched/retire.h"

/* When to give up waiting: never, unless w is on top and the pool could do without it. */
int64_t fji_retire_deadline(fji_worker *w)
{
    fj_pool *p = w->pool;
    uint64_t c = fji_pool_ctl_hint(p); /* relaxed: trim decides by CAS */
    int target = fji_pool_parallelism(p);

    if (p->keep_alive_ns == FJ_FOREVER || fji_ctl_top(c) != w->index + 1) return FJ_FOREVER;
    if (fji_ctl_deficit(c) + target > 0 && fji_ctl_total(c) <= target) return FJ_FOREVER;
    /* relaxed: a hint. */
    int64_t wait = fji_load_relaxed(&p->shrinking) != 0 ? FJI_RETIRE_NEXT_NS : p->keep_alive_ns;
    int64_t now = fji_plat_now();
    return wait > FJ_FOREVER - 1 - now ? FJ_FOREVER : now + wait;
}

/* w may be on top now: it looks how long it may sleep, though it is about to sleep for ever. */
static void retire_reconsider(fji_worker *w)
{
    uint32_t parked = FJI_PARK_PARKED;

    /* [idle.retire] ctl above, park below; partner: idle_sleep(). Either it sees itself on top, or
     * we see it parked, and then its wait does not begin or ends. */
    fji_fence_full();
    /* [idle.park] acq_rel: as every change of park. */
    if (fji_cas_acq_rel_32(&w->park, &parked, FJI_PARK_IDLE)) fji_plat_wake_one(&w->park);
}

/* Off the stack, if still on top; the total follows at its exit. The next is told to look. */
bool fji_retire(fji_worker *w)
{
    fj_pool *p = w->pool;
    uint64_t c = fji_pool_ctl(p);

    while (fji_ctl_top(c) == w->index + 1) {
        uint32_t next = fji_load_relaxed(&w->next_idle); /* relaxed: our own */
        /* [ctl.idle] acq_rel: as every change of ctl. */
        if (!fji_ctl_cas(p, &c, fji_ctl_with_top(c, next))) continue;
        fji_store_relaxed(&p->shrinking, 1u); /* relaxed: a hint */
        if (next != 0) retire_reconsider(fji_pool_worker(p, next - 1));
        return true;
    }
    return false;
}
