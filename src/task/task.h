/* SPDX-License-Identifier: MIT */
/*
 * task.h - the state word of a task, and the meaning of the task's member `cell`
 *
 * The state word is fj_cell.state if the task is joined through its cell, and fj_task.state if the
 * task is detached; an action has none. It changes in this order:
 *
 *     0 -> index of the worker that runs the task, + 1 -> the same, with the bit DONE
 *
 * A task that is cancelled, or that is run by a thread without a worker record, gets no index. If
 * the owner of a cell takes the task back and runs it, the state word of the cell does not change.
 * A thread that is about to sleep on the word sets WAITING in it.
 *
 *   thief   stores child_base (relaxed), the position in its own queue at which the task's forks
 *           begin. Then it sets the index of its worker + 1 in the word (release). It runs the
 *           body, writes the result, and sets DONE (release). This is its LAST TOUCH of the task.
 *           If the old value of the word had WAITING, it wakes the threads that sleep on the word.
 *           For that it uses only the address of the word.
 *   joiner  reads the word (acquire). If it reads DONE, the task is finished. Otherwise it helps:
 *           it runs tasks that this task waits for. If it finds none, it spins, then sets WAITING,
 *           reads the word again, and sleeps while the word keeps the value that it has read. In
 *           an interruptible wait for a future it sleeps on a wait bucket instead.
 *
 * LAST TOUCH marks the last access of a thread to an object. Another thread may free the object
 * afterwards.
 *
 * A future uses more bits of its state word; future/future.c explains them.
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

#define FJI_DONE 0x80000000u    /* the task is finished: its result and its code are written */
#define FJI_WAITING 0x40000000u /* a thread sleeps on the word, or is about to */
/* Set together with DONE in the state word of a cell, in a child process after fork(): the thief
 * that runs the task exists only in the parent process, so there is no result. */
#define FJI_ORPHANED 0x20000000u
#define FJI_THIEF_MASK 0x0000ffffu /* index of the worker that runs the task, + 1; 0: none */
/* The bits below are used only in the state word of a future; see future/future.c. */
#define FJI_RELEASED 0x10000000u   /* the library has no pointer to the future any more */
#define FJI_COMPLETING 0x08000000u /* a resolving thread is writing the outcome */
#define FJI_CANCELLED 0x04000000u  /* with DONE: the future was cancelled */
#define FJI_FAILED 0x02000000u     /* with DONE: the future has failed */
#define FJI_EXTERNAL 0x01000000u   /* with DONE: a resolving thread set the outcome, not the body */
/* A thread sleeps on the wait bucket of the future, or is about to. */
#define FJI_OBSERVED 0x00800000u
/* A thread waits for one of several futures, and this future is one of them. */
#define FJI_OBSERVED_ANY 0x00400000u
#define FJI_DISCARDED 0x00200000u /* the future was taken from its queue to be cancelled, not run */
/* The member `runner` of the future is set: the worker that runs the body. Its thread may be sent
 * the interrupt_signal of the pool. Set only in a pool with this option. */
#define FJI_SIGNALLABLE 0x00100000u
/* Of a completer: its failure was passed to on_error and to its parents, or is about to be. */
#define FJI_REPORTED 0x00080000u
#define FJI_LISTENED 0x00040000u /* the future has listeners; see future/listen.c */
#define FJI_LISTING 0x00020000u  /* a thread is adding a listener to the future */
#define FJI_CALLED 0x00010000u   /* with DONE and LISTENED: all listeners have returned */

/* Returned by the function of a future, timer or completer, which sets DONE itself. The caller of
 * the function ignores the value, because the outcome is stored in the future. A special value
 * could not be told from a result, because a body may return every int. */
#define FJI_COMPLETES_ITSELF FJ_OK

/*
 * The member `cell` of a forked task normally points to the cell that holds the task, in the queue
 * of the worker that forked it. In the three cases below, `cell` points to the first of two
 * sentinel cells instead. Their item is END, so the fast paths call the slow paths. The member
 * `kind` of the first sentinel tells which case it is. SUBMITTED is also the case of a future or
 * timer that was queued: of every future, `cell` is NULL or points to this sentinel of its pool.
 */
/* The task was submitted, or forked into a full queue; fj_task.location identifies the queue that
 * it is in. Each pool has a sentinel of this kind (submitted_cell). */
#define FJI_CELL_SUBMITTED 1u
/* The task was forked under typed code; fj_task.location is its position in the queue of the worker
 * that forked it. */
#define FJI_CELL_UNDER_TYPED 2u
#define FJI_CELL_RAN 3u /* the task was run at its fork; fj_task.code is what the body returned */
extern fj_cell fji_cell_under_typed[2];
extern fj_cell fji_cell_ran[2];

/* Returns the pool that a task was submitted to. submitted_cell is the member `cell` of the task.
 * It points to a sentinel of the pool, whose `args` hold the pointer to the pool. */
static inline fj_pool *fji_cell_pool(const fj_cell *submitted_cell)
{
    return *(fj_pool *const *)(const void *)submitted_cell->args;
}

/* Returns whether no thread has resolved the future t or is resolving it. */
static inline bool fji_task_is_unresolved(const fj_task *t)
{
    /* [task.done] acquire <- acq_rel in future_publish(), fji_future_finish(): if DONE is set, the
     * outcome of t. */
    return (fji_load_acquire(&t->state) & (FJI_DONE | FJI_COMPLETING)) == 0;
}

/* Called by the worker or guest whose record has the index `worker`, before it runs the task with
 * the state word *state. `position` is the boundary of its queue, at which the forks of the task
 * will begin. Stores `position` in *child_base, and then sets the bits of `worker` + 1 in *state,
 * in which no worker index is set yet. */
void fji_task_claim(uint32_t *state, uint32_t *child_base, uint32_t worker, uint32_t position);

/* Called by the thief of the task in cell c when the body has returned and its result and code are
 * stored, or when the thief has cancelled the task instead of running it. Sets DONE in the state
 * word of c and wakes the joiner if it sleeps. */
void fji_cell_complete(fj_cell *c);

/* Called when the body of t has returned, or t was cancelled. t was submitted and is not a future.
 * Stores `code` in t, sets DONE, and wakes the threads that wait for t. They may free t, so the
 * caller must not access t afterwards. */
void fji_task_complete(fj_task *t, int code);

/* Called before t is queued, before a timer is put into the timing wheel, and before a future that
 * could not be queued is run at its fork. Records in t that it belongs to the pool whose sentinel
 * is `submitted_cell`, that it is in no queue yet, and the present fork generation. Sets the code
 * of t to FJ_OK. */
void fji_task_mark_unqueued(fj_task *t, fj_cell *submitted_cell);

/* Checks the arguments of a call that takes an array of n structs of `stride` bytes each at the
 * address `first`, each of which begins with a member of `least` bytes. Returns true if
 * `first` is not NULL, `stride` is at least `least` and a multiple of the alignment of a pointer,
 * and the array ends inside the address space. */
bool fji_structs_ok(const void *first, size_t n, size_t stride, size_t least);

#endif /* FJI_TASK_H */
