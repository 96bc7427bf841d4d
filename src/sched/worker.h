/* SPDX-License-Identifier: MIT */
/*
 * worker.h - the life of a worker thread
 */
#ifndef FJI_WORKER_H
#define FJI_WORKER_H

#include "sched/pool.h"

/* Starts a thread for a worker that the caller has already counted in the control word. Called
 * through the hook start_worker. Takes the lock of p and calls the allow_thread and create_thread
 * callbacks. Returns false if no thread was started, because a callback or the system has refused
 * it, p stops, or no record can be created. The caller then subtracts the worker from the control
 * word again. */
bool fji_worker_start(fj_pool *p);

#endif /* FJI_WORKER_H */
