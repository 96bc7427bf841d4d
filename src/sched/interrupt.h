/* SPDX-License-Identifier: MIT */
/*
 * interrupt.h - interruptible waits, and how a cancel ends them
 */
#ifndef FJI_INTERRUPT_H
#define FJI_INTERRUPT_H

#include "sched/pool.h"
#include "task/wait_bucket.h"

/* Whether the waits of the task that w runs shall end. */
bool fji_interrupted(const fji_worker *w);

/*
 * Around a sleep in a wait bucket. The waiter reads the bucket, then calls fji_interrupted(), then
 * sleeps while the bucket has the value that it read. So no interrupt is missed.
 */
void fji_interruptible_begin(fji_worker *w, uint32_t *bucket);
void fji_interruptible_end(fji_worker *w);

/* Around a system call that the interrupt_signal of w's pool ends. */
void fji_syscall_begin(fji_worker *w);
void fji_syscall_end(fji_worker *w);

/* Wakes the interruptible waits, in all pools, that the token `only` may concern. */
void fji_wake_interruptible(const fj_token *only);

/* Wakes all interruptible waits of a pool that stops, and sends its workers the signal if it has one. */
void fji_pool_interrupt(fj_pool *p);

#endif /* FJI_INTERRUPT_H */
