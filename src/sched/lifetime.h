/* SPDX-License-Identifier: MIT */
/*
 * lifetime.h - threads that exit, guests that are counted, and the last step of a pool's end
 */
#ifndef FJI_LIFETIME_H
#define FJI_LIFETIME_H

#include "sched/pool.h"

/* Something in the pool has become idle. If the pool is shut down, this may have been the last. */
void fji_pool_maybe_terminate(fj_pool *p);

/* With the lock: sets TERMINATED if the pool has stopped, and no thread and no guest is left. */
void fji_pool_end_if_over(fj_pool *p);

/* With the lock: the calling thread is now the last that exited. Returns true if the caller has to
 * join *before, the one that exited before it. At the end of the process the thread is detached. */
bool fji_pool_last_thread(fj_pool *p, fji_thread *before);

/* Counts the caller as a guest. With the lock. */
void fji_pool_add_guest(fj_pool *p);

/* The caller is not a guest any more. Takes the lock. LAST TOUCH of *p. */
void fji_pool_remove_guest(fj_pool *p);

/* A thread that was counted as a guest exits. It is joined by the next one, or when p is destroyed. */
void fji_pool_leave(fj_pool *p);

#endif /* FJI_LIFETIME_H */
