/* SPDX-License-Identifier: MIT */
/*
 * hold.h - keeps the records of the common pool in memory while a thread outside it reads them
 *
 * The common pool can be shut down and created again while other threads use it. A thread outside
 * the pool may read its records without a lock only in two cases: the record is static and never
 * freed, or the thread has a hold. `holds` is the number of holds of all threads. The thread that
 * ends the common pool waits until `holds` is 0.
 *
 *     holder                                   thread that ends the pool
 *     1 holds + 1                              1 sets STOP in run
 *     2 full fence                             2 full fence
 *     3 run has STOP: holds - 1, returns       3 waits until holds == 0, then frees the records
 *     4 otherwise reads the records; holds - 1
 *
 * Either the holder sees STOP in step 3, or the thread that ends the pool sees in step 3 that holds
 * is not 0.
 *
 * Edges          from                               to                              carries
 *   common.hold  acq_rel add, fji_pool_drop_hold()  acquire, fji_hold_await_none()  the last access
 *   common.hold  full fence, fji_pool_hold()        full fence, shutdown_stopped()  holds, run
 */
#ifndef FJI_HOLD_H
#define FJI_HOLD_H

#include "sched/pool.h"

/*
 * Any thread. Begins a hold of p. A thread that may be outside p needs a hold to access what is
 * freed with p: the records of the workers and the slots of the submission queues.
 *
 * Returns true if the caller may access them until fji_pool_drop_hold(). Returns false if p is the
 * common pool and stops; the caller then has no hold and must not access them. If p is not the
 * common pool, or if the calling thread works for p, returns true and does nothing: a program must
 * not destroy a pool while a thread uses it, and the end of a pool waits for its own threads.
 */
bool fji_pool_hold(const fj_pool *p);

/* Called after fji_pool_hold(p) has returned true, by the same thread: ends the hold. Does nothing
 * if p is not the common pool, or if the calling thread works for p. LAST TOUCH of the records. */
void fji_pool_drop_hold(const fj_pool *p);

/* Returns whether the calling thread has a hold of the common pool. */
bool fji_hold_is_mine(void);

/* Waits until no thread has a hold of the common pool. Called by the thread that ends the common
 * pool, after STOP was set and a full fence; so no thread begins a new hold. */
void fji_hold_await_none(void);

/* Called in the child process after fork(): subtracts the holds of all threads but the calling one,
 * because they do not exist in the child process. */
void fji_hold_in_child(void);

#endif /* FJI_HOLD_H */
