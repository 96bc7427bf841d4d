/* SPDX-License-Identifier: MIT */
/*
 * registry.h - the list of all pools of the process
 *
 * A cancel with interrupt wakes interruptible waits in every pool, and the child process after
 * fork() resets every pool. Both find the pools in this list. One lock protects the list.
 */
#ifndef FJI_REGISTRY_H
#define FJI_REGISTRY_H

#include "sched/pool.h"

/* Adds p to the list. Takes the lock of the list. Any thread may call it. */
void fji_registry_add(fj_pool *p);

/* Removes p from the list; p must be in the list. Takes the lock of the list. Any thread may call
 * it. */
void fji_registry_remove(fj_pool *p);

/* Calls each(p, arg) for every pool p of the list. Holds the lock of the list during these calls,
 * so each() must not call a function of this header. Any thread may call it. */
void fji_registry_each(void (*each)(fj_pool *p, void *arg), void *arg);

/* fji_registry_lock() takes the lock of the list, and fji_registry_unlock() releases it. The thread
 * that calls fork() of the process takes the lock before the fork() and releases it in the parent
 * process. */
void fji_registry_lock(void);
void fji_registry_unlock(void);

/* Resets the lock of the list to "not held". Called in the child process after fork(), instead of
 * fji_registry_unlock(). */
void fji_registry_reset_lock(void);

#endif /* FJI_REGISTRY_H */
