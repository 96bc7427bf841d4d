/* SPDX-License-Identifier: MIT */
/*
 * atfork.h - makes the pools usable in the child process after fork()
 */
#ifndef FJI_ATFORK_H
#define FJI_ATFORK_H

#include "sched/pool.h"

/* Held while the common pool is created, stopped or freed, and during fork(). */
extern fji_lock fji_common_lock;

/*
 * Registers the fork handlers. Every function that may be the first to take a lock of the library
 * calls this before, without a lock, so that a child process does not find the lock held.
 * common_in_child: the function that the child process calls after all pools are reset; NULL leaves
 * it as it is. Any thread may call this, any number of times.
 */
void fji_atfork_prepare(void (*common_in_child)(void));

/* In the child process: resets the locks in the common pool's record p, if there is no common pool
 * at this moment. */
void fji_atfork_reset_common(fj_pool *p);

#endif /* FJI_ATFORK_H */
