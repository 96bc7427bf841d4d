/* SPDX-License-Identifier: MIT */
/*
 * threadless.h - running the tasks of a pool that has no threads
 */
#ifndef FJI_THREADLESS_H
#define FJI_THREADLESS_H

#include "sched/pool.h"

/* If p has tasks and no threads, asks for a thread. If no thread is started and `may_run` is true,
 * runs the queued tasks of p in the calling thread. Otherwise does nothing. Called repeatedly by a
 * thread that waits for a task of p, for quiescence of p or for the end of p. The caller holds no
 * lock. */
void fji_run_threadless(fj_pool *p, bool may_run);

#endif /* FJI_THREADLESS_H */
