/* SPDX-License-Identifier: MIT */
/*
 * item.h - the item of a cell or slot: a tagged word that is a task, or says why there is none
 *
 * A cell of a worker's queue and a slot of a submission queue both hold an item. It is one of
 *
 *     special value   FREE, TOMBSTONE, END (forkjoin/inline.h) or CLAIM: not a task
 *     ACTION          a task whose function and argument are stored beside the item
 *     pointer         to an fj_task, or with TYPED to an fj_type; the low bits are tags
 *
 * The tags (FJI_TAG_...) say how the task is run and completed:
 *
 *     TYPED                the arguments are in the cell, and the result is stored there
 *     DETACHED             no thread joins the task through its cell
 *     DETACHED | FUTURE    a future, completer or timer: its function completes it, and the word
 *                          beside the item is its root (0 if it is not a completer)
 *     none                 a plain task; it is joined through its cell
 *
 * Every submitted task is DETACHED. Only sched/run.c uses these tags to run or cancel a task.
 */
#ifndef FJI_ITEM_H
#define FJI_ITEM_H

#include <forkjoin.h>
#include <stdbool.h>

/* The owner wants the task of the cell and does not know yet whether a thief has taken it. */
#define FJI_CLAIM ((uintptr_t)24)

/* An action. It is never joined, so it is detached. */
#define FJI_ACTION ((uintptr_t)32 | FJI_TAG_DETACHED)

/* The item of a future, completer or timer. */
#define FJI_FUTURE_ITEM(t) ((uintptr_t)(t) | FJI_TAG_DETACHED | FJI_TAG_FUTURE)

/*
 * fj_task.location of a task that completes in its own state word:
 *
 *      31      30              21 20                     0
 *     +-------+------------------+------------------------+
 *     | LOCAL |    generation    |        position        |
 *     +-------+------------------+------------------------+
 *
 * LOCAL: `position` is a position in a worker's queue; otherwise it is the index of a submission
 * queue, or NONE if the task is in no queue yet. `generation` is the fork generation of the process
 * in which the task was queued (task/fork_generation.h).
 */
#define FJI_LOCATION_LOCAL 0x80000000u
#define FJI_LOCATION_POSITION 0x001fffffu
#define FJI_LOCATION_NONE FJI_LOCATION_POSITION
#define FJI_LOCATION_GENERATION_SHIFT 21
#define FJI_LOCATION_GENERATION 1023u

/* The result of one attempt to steal. RETRY: no task was taken, but the queue may have one. */
typedef enum fji_steal_result {
    FJI_STEAL_EMPTY,
    FJI_STEAL_RETRY,
    FJI_STEAL_SUCCESS
} fji_steal_result;

/*
 * A task that was taken out of a queue. `cell` is the cell that it was stolen from, or NULL if it
 * was in a submission queue or its owner took it. `fn` and `arg` are those of an action; `fn` of a
 * future is its root. `token` is the token that the task runs with, or NULL. A steal from a
 * worker's queue sets it to NULL, and the thief then finds the token (sched/scope.h).
 */
typedef struct fji_taken {
    uintptr_t item;
    fj_cell *cell;
    uintptr_t fn, arg;
    const fj_token *token;
} fji_taken;

static inline bool fji_item_is_task(uintptr_t item)
{
    return item > FJI_SPECIAL;
}

static inline bool fji_item_is_typed(uintptr_t item)
{
    return (item & FJI_TAG_TYPED) != 0;
}

static inline bool fji_item_is_detached(uintptr_t item)
{
    return (item & FJI_TAG_DETACHED) != 0;
}

static inline bool fji_item_is_future(uintptr_t item)
{
    return (item & FJI_TAG_FUTURE) != 0;
}

/* Returns the fj_task of an item that is a task, but neither typed nor an action. */
static inline fj_task *fji_item_task(uintptr_t item)
{
    return (fj_task *)(item & ~FJI_TAG_MASK);
}

/* Returns the fj_type of a typed item. */
static inline const fj_type *fji_item_type(uintptr_t item)
{
    return (const fj_type *)(item - FJI_TAG_TYPED);
}

/* Returns the two words beside the item in a cell: function and argument of an action, or the root
 * of a future and an unused word. */
static inline uintptr_t *fji_cell_words(fj_cell *c)
{
    return (uintptr_t *)(void *)c->args;
}

#endif /* FJI_ITEM_H */
