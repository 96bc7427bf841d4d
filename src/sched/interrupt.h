/* SPDX-License-Identifier: MIT */
/*
 * interrupt.h - interruptible waits, and how a cancel ends them; interrupt.c explains the protocol
 */
#ifndef FJI_INTERRUPT_H
#define FJI_INTERRUPT_H

#include "sched/pool.h"
#include "task/wait_bucket.h"

/* Called by w. Returns whether the interruptible waits of the task that w runs have to end: the
 * token of the task, or an ancestor of the token, was cancelled with interrupt, or the pool of w
 * stops. */
bool fji_interrupted(const fji_worker *w);

/*
 * w calls fji_interruptible_begin() before a wait on this bucket, and fji_interruptible_end() after
 * the wait. Between the two calls w reads the bucket, then calls fji_interrupted() and checks the
 * condition that it waits for. If it has to wait, it sleeps while the bucket has the value that it
 * has read. In this order w misses no interrupt.
 */
void fji_interruptible_begin(fji_worker *w, uint32_t *bucket);
void fji_interruptible_end(fji_worker *w);

/* w calls fji_syscall_begin() before a system call that the interrupt_signal of its pool can end,
 * and fji_syscall_end() after that system call. If the pool has no interrupt_signal, or if w is a
 * guest, both functions do nothing. After fji_syscall_end() no canceller sends a signal because of
 * this system call any more, and none that was sent because of it is pending for the thread of
 * w. */
void fji_syscall_begin(fji_worker *w);
void fji_syscall_end(fji_worker *w);

/* Any thread, after fji_token_set(). Wakes the workers and guests of all pools that are in an
 * interruptible wait which a cancel of the token `only` may concern: their task runs with this
 * token, or with a token that has a parent. If such a wait is in a system call, sends the
 * interrupt_signal. Takes the lock of the list of pools. */
void fji_wake_interruptible(const fj_token *only);

/* Any thread, after STOP was set in the run state of p. Wakes the workers and guests of p that are
 * in an interruptible wait. If p has an interrupt_signal, sends it to the threads of all workers of
 * p except the calling thread, and takes the lock of p for that. */
void fji_pool_interrupt(fj_pool *p);

#endif /* FJI_INTERRUPT_H */
