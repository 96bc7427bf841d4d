/* SPDX-License-Identifier: MIT */
/*
 * submission_queue.h - a queue for tasks from outside the pool: pushed with a lock, taken without
 *
 * The protocol is that of queue.h, with these differences:
 *   - The queue is never CLOSED, so it has no floor.
 *   - The thread that holds the lock is the owner in the sense of queue.h: it may push, remove a
 *     task, and shrink the queue.
 *   - A slot holds a detached task or an ACTION, with the words that a thief needs.
 *   - Positions creep upwards, because nearly all tasks are taken at the other end. At the end of
 *     the array the queued tasks are moved to the front while base is LOCKED, or the array grows.
 *   - A task keeps its number (fj_task.number). The number minus `shifted` is its position, however
 *     often the tasks were moved.
 */
#ifndef FJI_SUBMISSION_QUEUE_H
#define FJI_SUBMISSION_QUEUE_H

#include "plat/atomic.h"
#include "plat/config.h"
#include "plat/plat.h"
#include "queue/base.h"
#include "queue/item.h"
#include "queue/range.h"

typedef struct fji_slot {
    uintptr_t item;
    uintptr_t fn, arg; /* function and argument of an ACTION; fn of a future is its root */
    uintptr_t token;   /* the token that the task runs with, or 0 */
} fji_slot;

typedef struct fji_submission_queue {
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock; /* its holder is the owner */
    uint32_t top;                              /* the boundary: the position of the next push */
    uint32_t capacity;                         /* slots below the END */
    fji_slot *slots;
    uint32_t shifted; /* the sum of the distances by which tasks were moved down */
    uint64_t pushed;  /* statistic: all pushes */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t base;
    fji_slot *first;                             /* == slots, for thieves */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_range range; /* the addresses of the slots */
} fji_submission_queue;

/*
 * Initialises an empty queue of `first` slots that can grow to `limit` slots, or to fewer if the
 * system refuses to reserve that many addresses. *q is zeroed, or was used before. The lock is not
 * initialised, because threads may use that of a queue of the common pool after the end of the
 * pool; the caller holds it then. Returns false if there is no memory for `first` slots.
 */
bool fji_submission_queue_init(fji_submission_queue *q, uint32_t first, uint32_t limit);

/* Frees the slots. No other thread may use them any more. */
void fji_submission_queue_fini(fji_submission_queue *q);

/* Empties the queue and resets its lock, in the child process after fork(), where no other thread
 * exists. */
void fji_submission_queue_reset(fji_submission_queue *q);

/*
 * With the lock. Appends *it, a task or an ACTION. If `number` is not NULL, *number becomes the
 * number of the task, for fji_submission_queue_remove(). Returns false if there is no space;
 * nothing is changed then. The average cost does not depend on the length of the queue.
 */
bool fji_submission_queue_push(fji_submission_queue *q, const fji_taken *it, uint32_t *number);

/* With the lock. Removes the task `item` that was pushed with this number. Returns false if a thief
 * has taken it. */
bool fji_submission_queue_remove(fji_submission_queue *q, uintptr_t item, uint32_t number);

/* With the lock. If the queue is empty and large, returns the memory beyond FJI_SUBMISSIONS_KEPT
 * slots to the system. */
void fji_submission_queue_shrink(fji_submission_queue *q);

/* Any thread. Returns whether the queue has more than FJI_SUBMISSIONS_KEPT slots; a hint. */
bool fji_submission_queue_is_large(const fji_submission_queue *q);

/* Thief, without the lock. Tries once to take the oldest task. taken->cell becomes NULL. */
fji_steal_result fji_submission_queue_steal(fji_submission_queue *q, fji_taken *taken);

/* Thief, without the lock. As above, but returns EMPTY if the oldest task does not have this
 * root. */
fji_steal_result fji_submission_queue_steal_root(fji_submission_queue *q, uintptr_t root,
                                                 fji_taken *taken);

/*
 * Thief, without the lock. Takes the oldest task. If it is an ACTION, also takes ACTIONs that
 * follow it: in all half of those in a row, rounded up, but at most FJI_SUBMISSIONS_BATCH. `taken`
 * has space for FJI_SUBMISSIONS_BATCH tasks; *n becomes the number of taken ones.
 */
fji_steal_result fji_submission_queue_steal_some(fji_submission_queue *q, fji_taken *taken,
                                                 uint32_t *n);

/* Any thread. Returns false if the queue had no task; true if it may have one, and always while
 * base is LOCKED. */
bool fji_submission_queue_maybe(const fji_submission_queue *q);

/* Any thread. Returns the number of queued tasks; an estimate. */
uint32_t fji_submission_queue_count(const fji_submission_queue *q);

#endif /* FJI_SUBMISSION_QUEUE_H */
