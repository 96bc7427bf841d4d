/* SPDX-License-Identifier: MIT */
/*
 * hold.c - keeps the records of the common pool in memory; see hold.h
 */

#include "sched/hold.h"

static uint32_t holds;               /* number of holds of the common pool, of all threads */
static __thread uint32_t holds_here; /* number of holds of this thread */

bool fji_pool_hold(const fj_pool *p)
{
    if (!p->is_common || fji_inside(p)) return true;
    holds_here++;
    /* [common.hold] acq_rel: the fence below orders this add before the load of the run state. */
    fji_add_acq_rel(&holds, 1u);
    /* [common.hold] the count `holds` above, the run state of p below; partner: the fence in
     * shutdown_stopped(). Either the thread that ends the pool sees this hold and waits, or this
     * thread sees STOP. */
    fji_fence_full();
    /* [pool.end] acquire <- release in fji_pool_make_common(): the records, if the common pool has
     * ended and was created again since the caller obtained p. */
    if ((fji_load_acquire(&p->run) & FJI_RUN_STOP) == 0) return true;
    fji_pool_drop_hold(p);
    return false;
}

void fji_pool_drop_hold(const fj_pool *p)
{
    if (!p->is_common || fji_inside(p)) return;
    holds_here--;
    /* [common.hold] acq_rel -> acquire in fji_hold_await_none(): the accesses of this thread to the
     * records are finished. LAST TOUCH of the records. */
    fji_add_acq_rel(&holds, (uint32_t)-1);
}

bool fji_hold_is_mine(void)
{
    return holds_here != 0;
}

void fji_hold_await_none(void)
{
    /* [common.hold] acquire <- acq_rel in fji_pool_drop_hold(): the accesses of all holders to the
     * records are finished. */
    while (fji_load_acquire(&holds) != 0) fji_plat_yield();
}

void fji_hold_in_child(void)
{
    holds = holds_here;
}
