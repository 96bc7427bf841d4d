/* SPDX-License-Identifier: MIT */
/*
 * worker.h - the life of a worker thread
 */
#ifndef FJI_WORKER_H
#define FJI_WORKER_H

#include "sched/pool.h"

/* Starts a worker that the caller has already counted in the control word. Called through the hook
 * start_worker. Takes the lock of p and calls the allow_thread and create_thread callbacks. Returns
 * false if no thread was started; the caller then takes the counts back. */
bool fji_worker_start(fj_pool *p);

#endif /* FJI_WORKER_H */
