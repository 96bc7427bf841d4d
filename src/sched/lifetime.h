/* SPDX-License-Identifier: MIT */
/*
 * lifetime.h - threads that exit, guests that are counted, and the last step of a pool's end
 */
#ifndef FJI_LIFETIME_H
#define FJI_LIFETIME_H

#include "sched/pool.h"

/*
 * Called by a worker that has become idle or exits, and by a guest that leaves, after it has
 * changed its state or its count. If p is shut down and nothing is left to do, stops p. The
 * caller holds no lock of p. p is not freed meanwhile, because the caller is still counted or
 * will be joined.
 */
void fji_pool_maybe_terminate(fj_pool *p);

/* With the lock of p: sets TERMINATED if p has stopped and no thread and no guest is left. Wakes
 * the threads that wait for the end. */
void fji_pool_end_if_over(fj_pool *p);

/*
 * With the lock of p, called by a thread that exits. Records it as the last exited thread. Returns
 * true if the caller has to join *before, the thread that exited before it, after it has released
 * the lock. If leavers_detach is set, the thread is detached instead.
 */
bool fji_pool_last_thread(fj_pool *p, fji_thread *before);

/* With the lock of p: counts a guest. */
void fji_pool_add_guest(fj_pool *p);

/* A guest has left. Takes the lock of p, and ends p if this was the last thread. LAST TOUCH of
 * *p. */
void fji_pool_remove_guest(fj_pool *p);

/* Called by a thread of p that is counted as a guest, just before it exits. Joins the thread that
 * exited before it. The next exiting thread joins this one, or the thread that destroys p does.
 * LAST TOUCH of *p. */
void fji_pool_leave(fj_pool *p);

#endif /* FJI_LIFETIME_H */
