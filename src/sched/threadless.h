/* SPDX-License-Identifier: MIT */
/*
 * threadless.h - running the tasks of a pool that has no threads
 */
#ifndef FJI_THREADLESS_H
#define FJI_THREADLESS_H

#include "sched/pool.h"

/* Does nothing if p has a thread or has no tasks. Otherwise tries to start a thread, unless
 * on_start has returned an error in the last one. If p has no thread after that and `may_run` is
 * true, runs the queued tasks of p in the calling thread. Called repeatedly by a thread that waits
 * for a task of p, for quiescence of p or for the end of p. The caller holds no lock. */
void fji_run_threadless(fj_pool *p, bool may_run);

#endif /* FJI_THREADLESS_H */
