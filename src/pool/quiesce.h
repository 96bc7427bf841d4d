/* SPDX-License-Identifier: MIT */
/*
 * quiesce.h - waiting until a pool has nothing to do
 */
#ifndef FJI_QUIESCE_H
#define FJI_QUIESCE_H

#include "sched/pool.h"

/* As fj_pool_is_quiescent(), and fj_pool_await_quiescence() with a deadline. */
bool fji_quiesce_now(fj_pool *p);
int fji_quiesce_await(fj_pool *p, int64_t deadline);

#endif /* FJI_QUIESCE_H */
