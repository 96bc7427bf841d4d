/* SPDX-License-Identifier: MIT */
/*
 * submission_queue.h - a queue for tasks from outside the pool: a push locks, a steal does not
 *
 * The protocol is that of queue.h, with these differences:
 *   - The queue is never CLOSED, so it has no floor.
 *   - The thread that holds the lock of the queue does what the owner does in queue.h: it may push,
 *     remove a task, and shrink the queue.
 *   - A slot holds the item of a detached task, and the further words that a thief needs.
 *   - Thieves take at the front, where the index is, so the positions of the queued tasks rise.
 *     When a push reaches the end of the array, the queued tasks are moved to the front while base
 *     is LOCKED, or the array grows.
 *   - A push gives each task that is not an action a number (fj_task.number): its position plus
 *     `shifted`. When tasks are moved, their numbers do not change, and `shifted` grows by the
 *     distance of the move. So the position of a task is always its number minus `shifted`.
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
    uintptr_t fn, arg; /* of an ACTION: function, argument; of a future: root of a completer or 0 */
    uintptr_t token;   /* the token that the task runs with, or 0 */
} fji_slot;

typedef struct fji_submission_queue {
    /* Only the thread that holds this lock writes the members from `top` to `pushed`, and items. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock;
    uint32_t top;      /* the boundary: the position of the next push */
    uint32_t capacity; /* number of slots, without the END above them */
    fji_slot *slots;   /* the slot at position 0 */
    /* The number of a task minus its position. It is the sum of the distances, in slots, by which
     * tasks were moved to the front, modulo 2^32. When a shrink or a reset of the queue sets `top`
     * to 0, the old `top` is added. */
    uint32_t shifted;
    uint64_t pushed; /* statistic: number of pushes */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t base;
    fji_slot *first; /* equal to `slots`, in the cache line that thieves read */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_range range; /* the addresses of the slots */
} fji_submission_queue;

/*
 * Initialises *q as an empty queue of `first` slots. It can grow to `limit` slots, or to fewer if
 * the system refuses to reserve that many addresses. *q is zeroed, or fji_submission_queue_fini()
 * was called for it. Does not initialise the lock: threads may still use the lock of a queue of the
 * common pool after the pool has ended, and a caller that initialises such a queue again holds the
 * lock. Does not change `shifted` either. Returns false if there is no memory for `first` slots.
 */
bool fji_submission_queue_init(fji_submission_queue *q, uint32_t first, uint32_t limit);

/* Frees the slots. No other thread may access the slots any more. */
void fji_submission_queue_fini(fji_submission_queue *q);

/* Empties the queue, forgets its tasks, and resets its lock. Called in the child process after
 * fork(), where no other thread exists. */
void fji_submission_queue_reset(fji_submission_queue *q);

/*
 * With the lock. Appends the task *it; its member `cell` is not used. If `number` is not NULL,
 * *number becomes the number of the task, for fji_submission_queue_remove(). Returns false if there
 * is no space; the queue then has no new task, and *number is unchanged. The average cost of a push
 * does not depend on the length of the queue.
 */
bool fji_submission_queue_push(fji_submission_queue *q, const fji_taken *it, uint32_t *number);

/* With the lock. Removes the task with this item and this number; both are those of its push.
 * Returns true if the task is the caller's now. Returns false if the task is not in the queue, for
 * example because a thief has taken it. */
bool fji_submission_queue_remove(fji_submission_queue *q, uintptr_t item, uint32_t number);

/* With the lock. If the queue is empty and has more than FJI_SUBMISSIONS_KEPT slots, keeps
 * FJI_SUBMISSIONS_KEPT slots and returns the memory of the others to the system. If the system
 * refuses that, the queue keeps all slots. */
void fji_submission_queue_shrink(fji_submission_queue *q);

/* Any thread. Returns whether the queue has more than FJI_SUBMISSIONS_KEPT slots. Without the lock
 * the answer may be out of date. */
bool fji_submission_queue_is_large(const fji_submission_queue *q);

/* Thief, without the lock. Tries once to take the oldest task. Sets *taken if it returns SUCCESS;
 * taken->cell is then NULL. *taken may also change if it returns EMPTY or RETRY. */
fji_steal_result fji_submission_queue_steal(fji_submission_queue *q, fji_taken *taken);

/* Thief, without the lock. As fji_submission_queue_steal(), but returns EMPTY if the oldest task is
 * not a completer with this root. */
fji_steal_result fji_submission_queue_steal_root(fji_submission_queue *q, uintptr_t root,
                                                 fji_taken *taken);

/*
 * Thief, without the lock. As fji_submission_queue_steal(), but may take several ACTIONs. If the
 * oldest task is the first of k ACTIONs in a row, takes half of the k, rounded up, but at most
 * FJI_SUBMISSIONS_BATCH. `taken` is an array of FJI_SUBMISSIONS_BATCH elements. If the result is
 * SUCCESS, *n is the number of tasks taken.
 */
fji_steal_result fji_submission_queue_steal_some(fji_submission_queue *q, fji_taken *taken,
                                                 uint32_t *n);

/* Any thread. Returns false if the queue had no task. Returns true if it may have one, and always
 * while base is LOCKED. */
bool fji_submission_queue_maybe(const fji_submission_queue *q);

/* Any thread. Returns how many bytes of memory the slots have. */
size_t fji_submission_queue_bytes(const fji_submission_queue *q);

/* Any thread. Returns an estimate of the number of queued tasks. */
uint32_t fji_submission_queue_count(const fji_submission_queue *q);

#endif /* FJI_SUBMISSION_QUEUE_H */
