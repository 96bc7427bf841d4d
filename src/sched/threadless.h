/* SPDX-License-Identifier: MIT */
/*
 * threadless.h - running the tasks of a pool that has no threads
 */
#ifndef FJI_THREADLESS_H
#define FJI_THREADLESS_H

#include "sched/pool.h"

/* Does nothing if p has a worker thread, if p is quiescent, or if p is the common pool and stops.
 * Otherwise tries to start a thread, unless on_start has returned an error in the last one. If p
 * has no thread after that, `may_run` is true and p does not stop, runs queued tasks of p in the
 * calling thread until it finds none or p stops. Called repeatedly by a thread that waits for a
 * task of p, for quiescence of p or for the end of p. The caller holds no lock. */
void fji_run_threadless(fj_pool *p, bool may_run);

#endif /* FJI_THREADLESS_H */
