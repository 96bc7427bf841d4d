/* SPDX-License-Identifier: MIT */
/*
 * registry.h - the list of all pools of the process
 *
 * A cancel wakes interruptible waits in every pool, and the child process after fork() resets every
 * pool. Both find the pools in this list. A lock protects the list.
 */
#ifndef FJI_REGISTRY_H
#define FJI_REGISTRY_H

#include "sched/pool.h"

/* Adds p to the list. Any thread; takes the lock of the list. */
void fji_registry_add(fj_pool *p);

/* Removes p, which is in the list. Any thread; takes the lock of the list. */
void fji_registry_remove(fj_pool *p);

/* Calls each(p, arg) for every pool of the list. Any thread; holds the lock of the list during the
 * calls. */
void fji_registry_each(void (*each)(fj_pool *p, void *arg), void *arg);

/* The forking thread takes the lock before fork() and releases it in the parent process. */
void fji_registry_lock(void);
void fji_registry_unlock(void);

/* The child process resets the lock instead of releasing it. */
void fji_registry_reset_lock(void);

#endif /* FJI_REGISTRY_H */
