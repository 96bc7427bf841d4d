/* SPDX-License-Identifier: MIT */
/*
 * lifetime.h - threads that exit, guests that are counted, and the last step of a pool's end
 */
#ifndef FJI_LIFETIME_H
#define FJI_LIFETIME_H

#include "sched/pool.h"

/*
 * Called by a worker after it has pushed itself onto the idle stack, or after it has subtracted
 * itself from the control word in order to exit. Also called by a guest that leaves, after it has
 * given back its record. If p is shut down and quiescent, stops p. If p has stopped and has no
 * thread and no guest any more, ends p. The caller holds no lock of p. p is not freed during the
 * call: the end of p waits for a worker that is counted in the control word and for a guest that is
 * counted in fj_pool.guests, and joins the thread of a worker that exits.
 */
void fji_pool_maybe_terminate(fj_pool *p);

/* The caller holds the lock of p. If STOP is set and p has no thread and no guest any more, sets
 * TERMINATED and returns true. The caller then wakes the threads that wait for the end of p, by
 * fji_plat_wake_all() on p->run, but first it releases the lock, because the woken threads take it.
 * One of them may free p before the wake-up, which uses only the address. Otherwise returns
 * false. */
bool fji_pool_end_if_over(fj_pool *p);

/*
 * Called by a worker thread or timer thread of p that exits, with the lock of p. Stores the calling
 * thread in last_exited, unless `awaited` is true: then the thread that ends p joins it. If another
 * thread of p has exited before and is not joined, stores that thread in *before and returns true:
 * the caller has to join it after it has released the lock. Otherwise returns false. If
 * leavers_detach is set, detaches the calling thread instead (pthread_detach()) and returns false.
 */
bool fji_pool_last_thread(fj_pool *p, bool awaited, fji_thread *before);

/* The caller holds the lock of p. Adds 1 to fj_pool.guests: p does not end before
 * fji_pool_remove_guest() is called. */
void fji_pool_add_guest(fj_pool *p);

/* Subtracts 1 from fj_pool.guests, with the lock of p, which it takes. Then calls
 * fji_pool_end_if_over(). LAST TOUCH of *p by the caller. */
void fji_pool_remove_guest(fj_pool *p);

/* As fji_pool_remove_guest(). The caller holds the lock of p, and this function releases it. */
void fji_pool_uncount_guest(fj_pool *p);

/* Called by a timer thread of p, which is counted in fj_pool.guests, just before it exits. Joins
 * the thread of p that exited before it, if there is one that is not joined. The next thread of p
 * that exits joins the calling thread, or the thread that ends p does (fji_pool_join()). If
 * leavers_detach is set, the calling thread detaches itself instead and joins no thread. In both
 * cases it then subtracts the calling thread from fj_pool.guests. LAST TOUCH of *p by the
 * caller. */
void fji_pool_leave(fj_pool *p);

#endif /* FJI_LIFETIME_H */
