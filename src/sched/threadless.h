/* SPDX-License-Identifier: MIT */
/*
 * threadless.h - running the tasks of a pool that has no threads
 */
#ifndef FJI_THREADLESS_H
#define FJI_THREADLESS_H

#include "sched/pool.h"

/* If p has tasks and no threads, asks for a thread. If none was started and `may_run` is true, runs
 * the queued tasks. Called by a thread that waits for p and is not a worker of p, as often as it
 * checks; it must hold no lock. */
void fji_run_threadless(fj_pool *p, bool may_run);

#endif /* FJI_THREADLESS_H */
