/* SPDX-License-Identifier: MIT */
/*
 * worker.h - the life of a worker thread
 */
#ifndef FJI_WORKER_H
#define FJI_WORKER_H

#include "sched/pool.h"

/* Starts a worker that is already counted in the control word. Returns false if no thread was started;
 * the caller then takes the counts back. */
bool fji_worker_start(fj_pool *p);

#endif /* FJI_WORKER_H */
