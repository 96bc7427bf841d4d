/* SPDX-License-Identifier: MIT */
/*
 * base.h - the layout of the word `base` of a queue: epoch, index and state
 *
 * Thieves take tasks by a CAS on `base`: it moves `index` over the cells or slots of these tasks.
 * queue.h explains the three fields. A worker's queue and a submission queue both have this word,
 * with the same layout. A submission queue is never CLOSED.
 */
#ifndef FJI_BASE_H
#define FJI_BASE_H

#include "plat/atomic.h"

#define FJI_BASE_CLOSED 0u /* a thief has to open the queue before it can take a task */
#define FJI_BASE_OPEN 1u   /* thieves may take tasks */
#define FJI_BASE_LOCKED 2u /* the owner moves tasks to other cells or slots; thieves take nothing */
#define FJI_BASE_INDEX_SHIFT 2
#define FJI_BASE_INDEX_BITS 28
#define FJI_BASE_INDEX_MASK ((1u << FJI_BASE_INDEX_BITS) - 1)
#define FJI_BASE_EPOCH_SHIFT 30

static inline unsigned fji_base_state(uint64_t b)
{
    return (unsigned)(b & 3u);
}

static inline uint32_t fji_base_index(uint64_t b)
{
    return (uint32_t)(b >> FJI_BASE_INDEX_SHIFT) & FJI_BASE_INDEX_MASK;
}

static inline uint64_t fji_base_epoch(uint64_t b)
{
    return b >> FJI_BASE_EPOCH_SHIFT;
}

/* Returns the word `base` with these fields. `index` is less than 2^28, and `state` is CLOSED, OPEN
 * or LOCKED. Only the low 34 bits of `epoch` are used: the shift drops the higher bits. */
static inline uint64_t fji_base_make(uint64_t epoch, uint32_t index, unsigned state)
{
    return epoch << FJI_BASE_EPOCH_SHIFT | (uint64_t)index << FJI_BASE_INDEX_SHIFT | state;
}

#endif /* FJI_BASE_H */
