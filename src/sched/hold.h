/* SPDX-License-Identifier: MIT */
/*
 * hold.h - keeps the records of the common pool while an outside thread reads them
 *
 * The common pool can be shut down and created again while other threads use it. What a thread outside
 * needs before it has a lock is static and never freed. Everything else is read only within a hold: a
 * counter that the end of the common pool waits for.
 *
 *     holder                              end of the pool
 *     1 holds + 1                         1 run = STOP
 *     2 full fence                        2 full fence
 *     3 STOP: holds - 1, gives up         3 waits until holds == 0, then frees
 *     4 reads; holds - 1
 *
 * Either the holder sees STOP, or the end sees the count.
 *
 * Edges          from                                to                              carries
 *   common.hold  acq_rel add, fji_pool_drop_hold()   acquire, fji_hold_await_none()  the last access
 *   common.hold  full fence, fji_pool_hold()         full fence, shutdown_stopped()  count against run
 */
#ifndef FJI_HOLD_H
#define FJI_HOLD_H

#include "sched/pool.h"

/*
 * Around every access of a thread that may be outside p to what p frees with itself: the records of
 * workers and the slots of submission queues. Returns false if p is the common pool and stops: then
 * nothing may be read, and there is no hold to drop. Other pools need no hold, because their users
 * may not destroy them while they use them.
 */
bool fji_pool_hold(const fj_pool *p);
void fji_pool_drop_hold(const fj_pool *p);

/* Whether the calling thread has a hold. */
bool fji_hold_is_mine(void);

/* Waits until no thread has a hold. No thread can get a new one, because the pool stops. */
void fji_hold_await_none(void);

/* In the child process after fork(): only the holds of the calling thread remain. */
void fji_hold_in_child(void);

#endif /* FJI_HOLD_H */
