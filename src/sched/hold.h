/* SPDX-License-Identifier: MIT */
/*
 * hold.h - keeps the records of the common pool in memory while a thread outside it reads them
 *
 * The common pool can be shut down and created again while other threads use it. What a thread
 * outside the pool reads without a lock is static and never freed, or it is read only within a
 * hold. The number of holds is a counter; the end of the common pool waits until it is 0.
 *
 *     holder                                   thread that ends the pool
 *     1 holds + 1                              1 sets STOP in run
 *     2 full fence                             2 full fence
 *     3 run has STOP: holds - 1, returns       3 waits until holds == 0, then frees the records
 *     4 otherwise reads the records; holds - 1
 *
 * Either the holder sees STOP, or the thread that ends the pool sees the count.
 *
 * Edges          from                               to                              carries
 *   common.hold  acq_rel add, fji_pool_drop_hold()  acquire, fji_hold_await_none()  the last access
 *   common.hold  full fence, fji_pool_hold()        full fence, shutdown_stopped()  holds against
 *   run
 */
#ifndef FJI_HOLD_H
#define FJI_HOLD_H

#include "sched/pool.h"

/*
 * Any thread. Begins a hold of p. A thread that may be outside p needs it to access what is freed
 * with p: the records of the workers and the slots of the submission queues. Returns false if p is
 * the common pool and stops; the caller must not access the records then, and has no hold. Does
 * nothing and returns true if p is another pool, because a program may not destroy a pool that it
 * uses, or if the calling thread works for p.
 */
bool fji_pool_hold(const fj_pool *p);

/* Ends a hold that fji_pool_hold(p) of the same thread has begun. */
void fji_pool_drop_hold(const fj_pool *p);

/* Returns whether the calling thread has a hold. */
bool fji_hold_is_mine(void);

/* Waits until no thread has a hold. The caller has set STOP, so no thread gets a new one. */
void fji_hold_await_none(void);

/* In the child process after fork(): only the holds of the calling thread remain. */
void fji_hold_in_child(void);

#endif /* FJI_HOLD_H */
