/* SPDX-License-Identifier: MIT */
/*
 * atfork.h - makes the pools usable in the child process after fork()
 */
#ifndef FJI_ATFORK_H
#define FJI_ATFORK_H

#include "sched/pool.h"

/* The lock that a thread holds while it configures, creates, stops or frees the common pool, and
 * while it is inside fork(). */
extern fji_lock fji_common_lock;

/*
 * Registers the fork handlers. Every function that may be the first to take a lock of the library
 * calls this before it takes the lock, so that a child process does not find the lock held.
 * common_in_child: a function that the child process calls after it has reset all pools; NULL keeps
 * the function of an earlier call. Any thread may call this, any number of times. The caller holds
 * no lock of the library.
 */
void fji_atfork_prepare(void (*common_in_child)(void));

/* Called in the child process after fork(), if the common pool does not exist at this moment. p is
 * its static record. Resets the lock of p, the locks of its submission queues, and its timers,
 * because another thread of the parent process may have held one of these locks. */
void fji_atfork_reset_common(fj_pool *p);

#endif /* FJI_ATFORK_H */
