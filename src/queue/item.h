/* SPDX-License-Identifier: MIT */
/*
 * item.h - what a queue holds: a tagged word, and what a thief gets when it takes one
 *
 * A cell of a worker's queue and a slot of a submission queue both hold an item. An item is one of
 *
 *     special      FREE, TOMBSTONE, END (forkjoin/inline.h) or CLAIM: not a task
 *     ACTION       a function and an argument, which are stored beside the item
 *     pointer      to an fj_task, or with FJI_TAG_TYPED to an fj_type; the low bits are tags
 *
 * The tags say how the task is run and completed:
 *
 *     TYPED                the arguments are in the cell, and the result is stored there
 *     DETACHED             no thread joins the task through its cell
 *     DETACHED | FUTURE    a future, completer or timer: its function completes it, and the word
 *                          beside the item is its root (0 if it is not a completer)
 *     none                 a plain task; it is joined through its cell
 *
 * Every submitted task is DETACHED. run.c dispatches on these tags, and no other file does.
 */
#ifndef FJI_ITEM_H
#define FJI_ITEM_H

#include <forkjoin.h>
#include <stdbool.h>

/* The owner has claimed the cell and does not know yet whether a thief has taken its task. */
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

/* The result of one attempt to steal. RETRY: the queue changed meanwhile and may hold a task. */
typedef enum fji_steal_result {
    FJI_STEAL_EMPTY,
    FJI_STEAL_RETRY,
    FJI_STEAL_SUCCESS
} fji_steal_result;

/*
 * A task that was taken out of a queue. `cell` is the cell of a task that is joined through it, and
 * NULL for one that was taken from a submission queue or popped by its owner. `fn` and `arg` are
 * those of an action; `fn` of a future is its root. `token` is the token that the task runs with;
 * the thief fills it in.
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

/* The fj_task of an item that is a task, but neither typed nor an action. */
static inline fj_task *fji_item_task(uintptr_t item)
{
    return (fj_task *)(item & ~FJI_TAG_MASK);
}

static inline const fj_type *fji_item_type(uintptr_t item)
{
    return (const fj_type *)(item - FJI_TAG_TYPED);
}

/* The two words beside the item in a cell: function and argument of an action, or a root. */
static inline uintptr_t *fji_cell_words(fj_cell *c)
{
    return (uintptr_t *)(void *)c->args;
}

#endif /* FJI_ITEM_H */
