/* SPDX-License-Identifier: MIT */
/*
 * task.h - the state word of a task, and what its `cell` says
 *
 * The word is fj_cell.state for a task that is joined through its cell, and fj_task.state for a task
 * that was submitted or is a future:
 *
 *     0 -> index of the thief + 1 -> DONE          WAITING is added by a thread that sleeps on it
 *
 *   thief   stores child_base, the position in its own queue at which the task's forks begin
 *           (relaxed), then adds its index + 1 (release). It runs the body, writes the result, and
 *           sets DONE (release). That is its LAST TOUCH. It wakes sleepers, by the address of the
 *           word, only if the old value had WAITING.
 *   joiner  reads DONE (acquire): the task is finished. Otherwise it helps, spins, sets WAITING,
 *           reads the word again and sleeps while the word keeps that value.
 *
 * A future uses more bits of the same word: future/future.c explains them.
 *
 * Edges         from                              to                       carries
 *   task.done   release or, fji_task_complete()   acquire load, a waiter   result and code
 *   join.thief  release or, fji_task_claim()      acquire load, a waiter   child_base
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
#define FJI_ORPHANED 0x20000000u   /* with DONE, in the child of fork(): its thief does not exist */
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

/* What the function of a future returns to the queues, which ignore it. The outcome is in the future:
 * every int may be the code of a body, so no value is left to mean "completed itself". */
#define FJI_COMPLETES_ITSELF FJ_OK

/*
 * If a task is not simply in its forker's queue, its `cell` points to a pair of sentinel cells. Their
 * item is END, so the fast paths leave the task alone, and `kind` says why:
 */
#define FJI_CELL_SUBMITTED 1u /* it was submitted; fj_task.location says to which queue */
#define FJI_CELL_UNDER_TYPED \
    2u                  /* it was forked under typed code; fj_task.location is its position */
#define FJI_CELL_RAN 3u /* it was run at its fork, and `code` is valid */
extern fj_cell fji_cell_under_typed[2];
extern fj_cell fji_cell_ran[2];

/* The pool that a submitted task was submitted to: its `cell` is the sentinel of that pool. */
static inline fj_pool *fji_cell_pool(const fj_cell *submitted_cell)
{
    return *(fj_pool *const *)(const void *)submitted_cell->args;
}

/* A future's function and a helper use this: whether no thread has decided the outcome of t yet. */
static inline bool fji_task_is_unresolved(const fj_task *t)
{
    /* [task.done] acquire <- acq_rel in fji_future_resolve(): the outcome. */
    return (fji_load_acquire(&t->state) & (FJI_DONE | FJI_COMPLETING)) == 0;
}

/* A worker begins to run the task with this word. Its forks begin at position child_base. */
void fji_task_claim(uint32_t *state, uint32_t *child_base, uint32_t worker, uint32_t position);

/* A thief has finished the task of cell c. */
void fji_cell_complete(fj_cell *c);

/* A worker has finished t, which was submitted. */
void fji_task_complete(fj_task *t, int code);

/* A future will be put into a queue of the pool with this sentinel, but is in none yet. */
void fji_task_mark_unqueued(fj_task *t, fj_cell *submitted_cell);

/* Whether n structs of `stride` bytes, each of which begins with a member of `least` bytes, fit into
 * the address space from `first` on. */
bool fji_array_ok(const void *first, size_t n, size_t stride, size_t least);

#endif /* FJI_TASK_H */
