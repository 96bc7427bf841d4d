/* SPDX-License-Identifier: MIT */
/*
 * wait_bucket.h - words on which interruptible waits sleep
 *
 * A thread in an interruptible wait does not sleep on the state word of the future that it waits
 * for, because the interrupting thread does not know this future. The waiting thread sleeps on a
 * wait bucket instead. A bucket is a counter. It is incremented when a future that belongs to the
 * bucket, and for which a thread waits, becomes done, or when a thread that sleeps on the bucket is
 * interrupted. The address of a future determines its bucket, so the thread that makes the future
 * done finds the bucket too. A thread that waits for any one of several futures sleeps on a bucket
 * that all such waits share, whether or not its wait is interruptible.
 *
 *     waiter     seen = *bucket; returns if its condition holds; sleeps while *bucket == seen
 *     notifier   makes the condition true; ++*bucket; wakes all threads that sleep on the bucket
 *
 * Different futures may share a bucket. A waiter that is woken checks its own condition again.
 *
 * Edges             from                                    to                    carries
 *   cancel.bucket   acq_rel add, fji_wait_bucket_notify()   acquire, the waiter   what changed
 */
#ifndef FJI_WAIT_BUCKET_H
#define FJI_WAIT_BUCKET_H

#include <stdint.h>

/* Returns the bucket of `object`: the address of a future or, for an interruptible wait for
 * something other than a future, of the waiting worker's record. If `object` is NULL, returns the
 * bucket of all waits for any one of several futures. */
uint32_t *fji_wait_bucket(const void *object);

/* Any thread, after it has made the condition of a waiter true. Increments *bucket and wakes all
 * threads that sleep on it. */
void fji_wait_bucket_notify(uint32_t *bucket);

#endif /* FJI_WAIT_BUCKET_H */
