/* SPDX-License-Identifier: MIT */
/*
 * task.h - the state word of a task, and the meaning of its member `cell`
 *
 * The word is fj_cell.state if the task is joined through its cell, and fj_task.state if the task
 * was submitted or is a future:
 *
 *     0 -> index of the thief + 1 -> DONE      a thread that sleeps on the word adds WAITING
 *
 *   thief   stores child_base (relaxed), the position in its own queue at which the task's forks
 *           begin, and then sets its index + 1 (release). It runs the body, writes the result, and
 *           sets DONE (release). This is its LAST TOUCH of the task. If the old value had WAITING,
 *           it wakes the sleepers, for which it needs only the address of the word.
 *   joiner  If it reads DONE (acquire), the task is finished. Otherwise it helps, spins, sets
 *           WAITING, reads the word again and sleeps while the word has that value.
 *
 * A future uses more bits of the same word: future/future.c explains them.
 *
 * Edges         from                                  to                      carries
 *   task.done   acq_rel or, fji_task_complete(),      acquire load, a waiter  result and code
 *               fji_cell_complete()
 *   queue.link  acq_rel or, fji_cell_complete()       acquire, links_hold()   DONE
 *   join.thief  release or, fji_task_claim()          acquire load, a waiter  child_base
 *
 * Model: test/model/taskword.pml.
 */
#ifndef FJI_TASK_H
#define FJI_TASK_H

#include "plat/atomic.h"
#include "queue/item.h"
#include "task/fork_generation.h"

#define FJI_DONE 0x80000000u
#define FJI_WAITING 0x40000000u
#define FJI_ORPHANED 0x20000000u   /* with DONE, in a child process: its thief does not exist */
#define FJI_THIEF_MASK 0x0000ffffu /* index of the worker that runs it, + 1 */
/* Of a future: see future/future.c. */
#define FJI_RELEASED 0x10000000u
#define FJI_COMPLETING 0x08000000u
#define FJI_CANCELLED 0x04000000u
#define FJI_FAILED 0x02000000u
#define FJI_EXTERNAL 0x01000000u
#define FJI_OBSERVED 0x00800000u     /* a thread sleeps in its wait bucket */
#define FJI_OBSERVED_ANY 0x00400000u /* a thread waits for one of several futures */
#define FJI_DISCARDED 0x00200000u    /* taken out of its queue without being run */
#define FJI_SIGNALLABLE 0x00100000u  /* `runner` is valid and may be sent a signal */
#define FJI_REPORTED 0x00080000u     /* of a completer */

/* Returned by the function of a future, timer or completer. Its caller ignores the value, because
 * the outcome is in the future. No special value could mean "completed itself", because a body may
 * return every int. */
#define FJI_COMPLETES_ITSELF FJ_OK

/*
 * The member `cell` of a task normally is the cell of the forker's queue that holds the task. In
 * the cases below it points to a pair of sentinel cells instead. Their item is END, so the fast
 * paths call the slow paths, and `kind` tells the case.
 */
#define FJI_CELL_SUBMITTED 1u   /* submitted; fj_task.location identifies the queue */
#define FJI_CELL_UNDER_TYPED 2u /* forked under typed code; fj_task.location is its position */
#define FJI_CELL_RAN 3u         /* run at its fork; `code` is valid */
extern fj_cell fji_cell_under_typed[2];
extern fj_cell fji_cell_ran[2];

/* Returns the pool that a task was submitted to. submitted_cell is the `cell` of the task; every
 * pool has a sentinel of its own, in which `args` holds the pointer to the pool. */
static inline fj_pool *fji_cell_pool(const fj_cell *submitted_cell)
{
    return *(fj_pool *const *)(const void *)submitted_cell->args;
}

/* Returns whether no thread has resolved the future t or is resolving it. */
static inline bool fji_task_is_unresolved(const fj_task *t)
{
    /* [task.done] acquire <- acq_rel in fji_future_resolve(): the outcome. */
    return (fji_load_acquire(&t->state) & (FJI_DONE | FJI_COMPLETING)) == 0;
}

/* Called by worker number `worker` before it runs the task with the word *state. Stores `position`,
 * its boundary, in *child_base: the forks of the task begin there. */
void fji_task_claim(uint32_t *state, uint32_t *child_base, uint32_t worker, uint32_t position);

/* Called by the thief of the task in cell c when the task is done. Wakes the joiner. */
void fji_cell_complete(fj_cell *c);

/* Called when t, which was submitted and is not a future, is done. Stores its code and wakes the
 * waiters, after which t may not exist any more. */
void fji_task_complete(fj_task *t, int code);

/* Called before t is queued: records that t belongs to the pool with this sentinel, and is in no
 * queue yet. */
void fji_task_mark_unqueued(fj_task *t, fj_cell *submitted_cell);

/* Returns whether first, n and stride describe a possible array of n structs of `stride` bytes,
 * each of which begins with a member of `least` bytes: `first` is not NULL, `stride` is at least
 * `least` and keeps pointers aligned, and the array fits into the address space. */
bool fji_structs_ok(const void *first, size_t n, size_t stride, size_t least);

#endif /* FJI_TASK_H */
