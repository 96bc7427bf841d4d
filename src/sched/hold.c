/* SPDX-License-Identifier: MIT */
/*
 * hold.c - keeps the records of the common pool while an outside thread reads them; see hold.h
 */

#include "sched/hold.h"

static uint32_t holds;               /* of all threads */
static __thread uint32_t holds_here; /* of this thread */

bool fji_pool_hold(const fj_pool *p)
{
    if (!p->is_common || fji_inside(p)) return true;
    holds_here++;
    fji_add_acq_rel(&holds, 1u); /* [common.hold] the count, before the look at run */
    /* [common.hold] the count above, run below; partner: the fence in shutdown_stopped(). Either
     * the end sees the count, or we see that the pool stops. */
    fji_fence_full();
    if (!fji_pool_stopping(p)) return true;
    fji_pool_drop_hold(p);
    return false;
}

void fji_pool_drop_hold(const fj_pool *p)
{
    if (!p->is_common || fji_inside(p)) return;
    holds_here--;
    /* [common.hold] acq_rel -> acquire in fji_hold_await_none(). LAST TOUCH of what is freed. */
    fji_add_acq_rel(&holds, (uint32_t)-1);
}

bool fji_hold_is_mine(void)
{
    return holds_here != 0;
}

void fji_hold_await_none(void)
{
    /* [common.hold] acquire <- acq_rel in fji_pool_drop_hold(): the last access. */
    while (fji_load_acquire(&holds) != 0) fji_plat_yield();
}

void fji_hold_in_child(void)
{
    holds = holds_here;
}
