/* SPDX-License-Identifier: MIT */
/*
 * shutdown.h - ending a pool
 */
#ifndef FJI_SHUTDOWN_H
#define FJI_SHUTDOWN_H

#include "sched/pool.h"

/* Checks whether the pool can stop, stops it if it can or if `now`, and checks whether it has ended. */
void fji_pool_try_terminate(fj_pool *p, bool now);

/* SHUTDOWN; `now`: also STOP. */
void fji_pool_shutdown(fj_pool *p, bool now);

/* Whether the calling thread is a worker, a guest or the timer thread of p: it would wait for itself. */
bool fji_pool_is_own_thread(const fj_pool *p);

/* Waits until p has ended. Returns false if the deadline came first. */
bool fji_pool_await_end(fj_pool *p, int64_t deadline);

/* After the end of p: returns when no thread accesses p any more. */
void fji_pool_join(fj_pool *p);

/* Stops the common pool if it has nothing to do. Returns false if it has; nothing was changed then. */
bool fji_pool_stop_common(fj_pool *p);

/* After that: waits for its threads and joins them. */
void fji_pool_end_common(fj_pool *p);

#endif /* FJI_SHUTDOWN_H */
