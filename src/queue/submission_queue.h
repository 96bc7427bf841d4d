/* SPDX-License-Identifier: MIT */
/*
 * submission_queue.h - a queue for tasks from outside: producers push under a lock, thieves do not lock
 *
 * The same protocol, always OPEN, with slots that hold an fj_task or an ACTION and a
 * lock for whoever pushes or takes back. Positions creep upwards: when the end is
 * reached, what is left is moved to the front under LOCKED, or the array grows. A task knows its
 * number, from which its position follows however often that was done.
 */
#ifndef FJI_SUBMISSION_QUEUE_H
#define FJI_SUBMISSION_QUEUE_H

#include "plat/atomic.h"
#include "plat/config.h"
#include "plat/plat.h"
#include "queue/base.h"
#include "queue/item.h"

typedef struct fji_slot {
    uintptr_t item;
    uintptr_t fn, arg; /* of an ACTION; fn: the root of a task that completes itself */
    uintptr_t token;   /* that the task runs with, or 0 */
} fji_slot;

typedef struct fji_submission_queue {
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock; /* holders are the owner in the sense above */
    uint32_t top;
    uint32_t capacity;
    fji_slot *slots;
    uint32_t shifted; /* by how much positions have been lowered, in all */
    uint64_t pushed;  /* ever */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t base;
    fji_slot *first;
    FJI_ALIGNAS(FJI_CACHE_PAIR) void *range;
    size_t range_bytes;
    uint32_t limit;
} fji_submission_queue;

bool fji_submission_queue_init(fji_submission_queue *q, uint32_t first, uint32_t limit);
void fji_submission_queue_fini(fji_submission_queue *q);

/* With the lock: forgets everything, after fork(). */
void fji_submission_queue_reset(fji_submission_queue *q);

/* With the lock: appends a task, or an ACTION with function and argument. On average its cost does not
 * depend on the length. *number, unless NULL, becomes its number, to find it again. False: no room,
 * nothing was changed. */
bool fji_submission_queue_push(fji_submission_queue *q, const fji_taken *it, uint32_t *number);

/* With the lock: takes back what was pushed with this number. False: a thief has it. */
bool fji_submission_queue_remove(fji_submission_queue *q, uintptr_t item, uint32_t number);

/* With the lock: gives memory of an empty queue back. */
void fji_submission_queue_shrink(fji_submission_queue *q);

/* Without the lock: whether it has more memory than it keeps. */
bool fji_submission_queue_is_large(const fji_submission_queue *q);

/* Thief, no lock: the oldest. loot->cell is NULL. */
fji_steal_result fji_submission_queue_steal(fji_submission_queue *q, fji_taken *taken);

/* Thief, no lock: the oldest, if it has this root. */
fji_steal_result fji_submission_queue_steal_root(fji_submission_queue *q, uintptr_t root,
                                                 fji_taken *taken);

/*
 * Thief, no lock: the same, and if it is an ACTION, up to half of the ACTIONs that follow
 * with it, at most FJI_SUBMISSIONS_BATCH in all; *n says how many.
 */
fji_steal_result fji_submission_queue_steal_some(fji_submission_queue *q, fji_taken *taken,
                                                 uint32_t *n);

/* Anybody. */
bool fji_submission_queue_maybe(const fji_submission_queue *q);
uint32_t fji_submission_queue_count(const fji_submission_queue *q);

#endif /* FJI_SUBMISSION_QUEUE_H */
