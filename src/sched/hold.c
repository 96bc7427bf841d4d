/* SPDX-License-Identifier: MIT */
/*
 * hold.c - keeps the records of the common pool in memory; see hold.h
 */

#include "sched/hold.h"

static uint32_t holds;               /* of all threads */
static __thread uint32_t holds_here; /* of this thread */

bool fji_pool_hold(const fj_pool *p)
{
    if (!p->is_common || fji_inside(p)) return true;
    holds_here++;
    fji_add_acq_rel(&holds, 1u); /* [common.hold] before the load of run */
    /* [common.hold] holds above, run below; partner: the fence in shutdown_stopped(). Either the
     * thread that ends the pool sees this hold, or this thread sees STOP. */
    fji_fence_full();
    if (!fji_pool_stopping(p)) return true;
    fji_pool_drop_hold(p);
    return false;
}

void fji_pool_drop_hold(const fj_pool *p)
{
    if (!p->is_common || fji_inside(p)) return;
    holds_here--;
    /* [common.hold] acq_rel -> acquire in fji_hold_await_none(). LAST TOUCH of the records. */
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
