/* SPDX-License-Identifier: MIT */
/*
 * threadless.h - a pool that has tasks and no threads
 */
#ifndef FJI_THREADLESS_H
#define FJI_THREADLESS_H

#include "sched/pool.h"

/* If p has tasks and no threads: asks for a thread, and if there is none and the caller may run tasks, runs
 * what is queued. */
void fji_run_threadless(fj_pool *p, bool may_run);

#endif /* FJI_THREADLESS_H */
