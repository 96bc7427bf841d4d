/* SPDX-License-Identifier: MIT */
/*
 * interrupt.h - interruptible waits, and how a cancel ends them; interrupt.c explains the protocol
 */
#ifndef FJI_INTERRUPT_H
#define FJI_INTERRUPT_H

#include "sched/pool.h"
#include "task/wait_bucket.h"

/* Returns whether the waits of the task that w runs have to end: its token or a parent of it is
 * interrupted, or the pool stops. Only w may call it. */
bool fji_interrupted(const fji_worker *w);

/*
 * Called by w before and after a wait on this bucket. In between w reads the bucket, then calls
 * fji_interrupted() and checks its own condition, then sleeps while the bucket has the value that
 * it read. So it misses no interrupt.
 */
void fji_interruptible_begin(fji_worker *w, uint32_t *bucket);
void fji_interruptible_end(fji_worker *w);

/* Called by w before and after a system call that the interrupt_signal of its pool ends. Without
 * such a signal, and for a guest, they do nothing. After fji_syscall_end() no signal of a canceller
 * is pending for the thread. */
void fji_syscall_begin(fji_worker *w);
void fji_syscall_end(fji_worker *w);

/* Wakes the interruptible waits, in all pools, that the token `only` may concern. Any thread may
 * call it, after fji_token_set(). Takes the lock of the list of pools. */
void fji_wake_interruptible(const fj_token *only);

/* Wakes all interruptible waits of p, whose run state already has STOP, and sends the
 * interrupt_signal, if p has one, to all its workers except the caller. Takes the lock of p. */
void fji_pool_interrupt(fj_pool *p);

#endif /* FJI_INTERRUPT_H */
