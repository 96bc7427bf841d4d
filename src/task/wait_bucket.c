/* SPDX-License-Identifier: MIT */
/*
 * wait_bucket.c - words on which interruptible waits sleep; see wait_bucket.h
 */
#include "task/wait_bucket.h"

#include "plat/atomic.h"
#include "plat/config.h"
#include "plat/plat.h"

static struct {
    FJI_ALIGNAS(FJI_LINE) uint32_t word;
} wait_buckets[FJI_WAIT_BUCKETS + 1] = {[0 ... FJI_WAIT_BUCKETS] = {FJI_START_32}};

uint32_t *fji_wait_bucket(const void *object)
{
    uint64_t hash = (uint64_t)(uintptr_t)object * 0x9e3779b97f4a7c15u;

    return &wait_buckets[object != NULL ? (hash >> 32) % FJI_WAIT_BUCKETS : FJI_WAIT_BUCKETS].word;
}

void fji_wait_bucket_notify(uint32_t *bucket)
{
    /* [cancel.bucket] acq_rel -> acquire load of the bucket by the waiter: a waiter that reads the
     * new count sees that its condition is true. */
    fji_add_acq_rel(bucket, 1);
    fji_plat_wake_all(bucket);
}
