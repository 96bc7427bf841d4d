/* SPDX-License-Identifier: MIT */
/*
 * quiescent.h - whether a pool has nothing to do
 */
#ifndef FJI_QUIESCENT_H
#define FJI_QUIESCENT_H

#include "sched/pool.h"

/* Whether a queue of p has a task, or may have one. */
bool fji_pool_has_work(const fj_pool *p);

/* Whether p has nothing to do. `ending`: the caller is about to stop p, and submitters check the run
 * state under the lock of their queue; a worker that waits for quiescence then keeps p from ending. */
bool fji_pool_quiescent(fj_pool *p, bool ending);

/* w, which runs no task or waits for quiescence, becomes QUIET, or ACTIVE again. */
void fji_quiesce_turn(fji_worker *w, uint32_t park);

#endif /* FJI_QUIESCENT_H */
