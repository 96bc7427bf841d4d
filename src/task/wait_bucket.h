/* SPDX-License-Identifier: MIT */
/*
 * wait_bucket.h - words on which interruptible waits sleep
 *
 * A thread whose wait can be interrupted does not sleep on the state word of a future, because the
 * interrupting thread does not know the future. It sleeps on a wait bucket instead. A bucket is a
 * counter that is incremented when a future of the bucket is resolved or a waiter is interrupted.
 * The bucket of a future follows from the future's address, so the thread that resolves the future
 * finds it too.
 *
 *     waiter     seen = *bucket; returns if its condition holds; sleeps while *bucket == seen
 *     notifier   makes the condition true; ++*bucket; wakes all sleepers of the bucket
 *
 * Different futures may share a bucket. A waiter that is woken checks its own condition again.
 *
 * Edges             from                                    to                    carries
 *   cancel.bucket   acq_rel add, fji_wait_bucket_notify()   acquire, the waiter   what changed
 */
#ifndef FJI_WAIT_BUCKET_H
#define FJI_WAIT_BUCKET_H

#include <stdint.h>

/* Returns the bucket of the object, which is a future, or a worker that waits for something else.
 * NULL: the bucket of all waits for one of several futures. */
uint32_t *fji_wait_bucket(const void *object);

/* Any thread, after it has made a condition true. Wakes all sleepers of the bucket. */
void fji_wait_bucket_notify(uint32_t *bucket);

#endif /* FJI_WAIT_BUCKET_H */
