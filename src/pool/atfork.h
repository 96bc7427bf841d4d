/* SPDX-License-Identifier: MIT */
/*
 * atfork.h - fork() of the process
 */
#ifndef FJI_ATFORK_H
#define FJI_ATFORK_H

#include "sched/pool.h"

/* Held while the common pool is made, stopped or freed, and during fork(). */
extern fji_lock fji_common_lock;

/* Registers the handlers of fork(), before the caller takes a lock of the library for the first time, so
 * that a child process never finds it held. common_in_child: called in the child after all pools were
 * reset, or NULL. */
void fji_atfork_prepare(void (*common_in_child)(void));

/* In the child process: resets the locks of the common pool's record while there is no common pool. */
void fji_atfork_reset_common(fj_pool *p);

#endif /* FJI_ATFORK_H */
