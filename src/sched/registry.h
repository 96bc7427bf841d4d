/* SPDX-License-Identifier: MIT */
/*
 * registry.h - the list of all pools of the process
 *
 * A cancel has to reach the waits of every pool, and fork() has to put every pool back to its
 * beginning, so both need to find all pools.
 */
#ifndef FJI_REGISTRY_H
#define FJI_REGISTRY_H

#include "sched/pool.h"

/* Adds p to the list, or removes it. */
void fji_registry_add(fj_pool *p);
void fji_registry_remove(fj_pool *p);

/* Calls each(p, arg) for every pool, with the lock of the list held. */
void fji_registry_each(void (*each)(fj_pool *p, void *arg), void *arg);

/* Around fork(): the forking thread holds the lock, and the child process resets it. */
void fji_registry_lock(void);
void fji_registry_unlock(void);
void fji_registry_reset_lock(void);

#endif /* FJI_REGISTRY_H */
