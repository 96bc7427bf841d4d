/* SPDX-License-Identifier: MIT */
/*
 * item.h - the item of a cell or slot: a tagged word that identifies a task, or a special value
 *
 * A cell of a worker's queue and a slot of a submission queue both hold an item. An item is one of
 *
 *     special value   FREE, TOMBSTONE, END (forkjoin/inline.h) or CLAIM (below): not a task
 *     ACTION          an action; its function and argument are stored beside the item
 *     pointer         to an fj_task or, with the tag TYPED, to an fj_type; the low bits are tags
 *
 * The tags (FJI_TAG_...) say how the task is run and completed:
 *
 *     TYPED                a typed task: its arguments and its result are stored in the cell
 *     DETACHED             no thread joins the task through its cell
 *     DETACHED | FUTURE    a future, completer or timer: fj_task.fn sets DONE itself. The first
 *                          word beside the item is the root of a completer, and 0 for the others
 *     none                 a plain task, which is joined through its cell
 *
 * Every submitted task is DETACHED. Other files read the tags too, but only sched/run.c uses them
 * to decide how a task is run or cancelled.
 */
#ifndef FJI_ITEM_H
#define FJI_ITEM_H

#include <forkjoin.h>
#include <stdbool.h>

/* The owner of a queue stores this item into a cell or slot whose task it wants to take, if the
 * cell or slot is not the topmost one in use. The item stays there until the owner knows whether a
 * thief has taken the task. In a submission queue, the thread that holds the lock acts as the
 * owner. */
#define FJI_CLAIM ((uintptr_t)24)

/* The item of an action. No thread joins an action, so it has the tag DETACHED. */
#define FJI_ACTION ((uintptr_t)32 | FJI_TAG_DETACHED)

/* Returns the item of t, the task of a future, completer or timer. */
#define FJI_FUTURE_ITEM(t) ((uintptr_t)(t) | FJI_TAG_DETACHED | FJI_TAG_FUTURE)

/*
 * The layout of fj_task.location of a submitted task, a future or a timer:
 *
 *      31      30              21 20                     0
 *     +-------+------------------+------------------------+
 *     | LOCAL |    generation    |        position        |
 *     +-------+------------------+------------------------+
 *
 * If LOCAL is set, the task was pushed by a worker or guest into its own queue, and `position` is
 * the position there. If LOCAL is clear, `position` is the number of a submission queue of the
 * pool, or NONE if the task was in no queue yet. `generation` is the fork generation of the process
 * in which the task was queued, modulo 1024 (task/fork_generation.h). The word does not change when
 * the task leaves the queue. In a plain task that was forked under typed code, fj_task.location is
 * only the position of its cell.
 */
#define FJI_LOCATION_LOCAL 0x80000000u
#define FJI_LOCATION_POSITION 0x001fffffu
#define FJI_LOCATION_NONE FJI_LOCATION_POSITION
#define FJI_LOCATION_GENERATION_SHIFT 21
#define FJI_LOCATION_GENERATION 1023u

/*
 * The result of one attempt to steal from a queue. SUCCESS: a task was taken. EMPTY: the queue has
 * no task, or its oldest task is not one that the thief may take. RETRY: no task was taken, for
 * example because another thread has changed the queue, but the queue may have a task.
 */
typedef enum fji_steal_result {
    FJI_STEAL_EMPTY,
    FJI_STEAL_RETRY,
    FJI_STEAL_SUCCESS
} fji_steal_result;

/*
 * A task that was taken out of a queue, or that is about to be put into one. `cell` is the cell
 * that the task was stolen from. It is NULL if the task was in a submission queue, if the owner has
 * taken it back from its own queue, or if it is not queued yet. Of an action, `fn` and `arg` are
 * the function and its argument. Of a completer, `fn` is its root; of any other future, `fn` is 0.
 * For other tasks `fn` and `arg` are not used. `token` is the token that the task runs with, or
 * NULL. A steal from a worker's queue sets `token` to NULL, and the thief then finds the token
 * (sched/scope.h).
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

/* Returns the address of the two words beside the item in cell c. For an action they are its
 * function and its argument. For a future the first is the root of a completer, or 0, and the
 * second is unused. */
static inline uintptr_t *fji_cell_words(fj_cell *c)
{
    return (uintptr_t *)(void *)c->args;
}

#endif /* FJI_ITEM_H */
