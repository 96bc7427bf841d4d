/* SPDX-License-Identifier: MIT */
/*
 * wait_bucket.h - words on which interruptible waits sleep
 *
 * A thread that may be interrupted cannot sleep on the state word of a future, because the thread
 * that interrupts it does not know the future. It sleeps on a wait bucket instead: a counter that is
 * incremented whenever a future of the bucket is resolved or a waiter is interrupted. The bucket of a
 * future follows from the future's address, so a thread that resolves the future finds it too.
 *
 *     waiter     seen = *bucket; condition met? return; sleep while *bucket == seen
 *     notifier   makes the condition true; ++*bucket; wakes all sleepers of the bucket
 *
 * Edges             from                                    to                    carries
 *   cancel.bucket   acq_rel add, fji_wait_bucket_notify()   acquire, the waiter   what changed
 */
#ifndef FJI_WAIT_BUCKET_H
#define FJI_WAIT_BUCKET_H

#include <stdint.h>

/* The bucket of a future, by its address. NULL: the bucket for waits for one of several futures. */
uint32_t *fji_wait_bucket(const void *future);

/* Wakes the sleepers of the bucket. Each of them checks its own condition. */
void fji_wait_bucket_notify(uint32_t *bucket);

#endif /* FJI_WAIT_BUCKET_H */
