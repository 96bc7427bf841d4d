/* SPDX-License-Identifier: MIT */
/*
 * overflow.h - cells outside the queues, for typed tasks that are not in the cell at their position
 */
#ifndef FJI_OVERFLOW_H
#define FJI_OVERFLOW_H

#include "sched/pool.h"

/* Returns the address of a pair of cells: an overflow cell, and a second cell with the item END
 * after it. If there is no memory, waits until there is. w: the calling worker or guest, or NULL if
 * the calling thread works for no pool. */
fj_cell *fji_overflow_take(fji_worker *w);

/* Makes overflow cell c, and the second cell of its pair, free again. Called after the join of the
 * task whose result c held. w: the calling worker or guest, or NULL if the calling thread works for
 * no pool. */
void fji_overflow_return(fji_worker *w, fj_cell *c);

/* Returns whether c, the cell of a forked typed task, is an overflow cell. */
static inline bool fji_overflow_is(const fj_cell *c)
{
    return c->item == FJI_END;
}

/* Gives the memory of a list of free overflow cells back: of a worker of p, or of a thread that works
 * for no pool if p is NULL. The list contains no cell of the process's reserve (overflow.c). No thread
 * may have a pointer to one of the cells. */
void fji_overflow_free(fj_pool *p, fj_cell *list);

/* Called in the child process after fork(): resets the lock of the process's reserve
 * of overflow cells (overflow.c). */
void fji_overflow_in_child(void);

/* Called by a thread that works for no pool before it runs a typed task. Makes the thread's list of
 * free overflow cells empty. Returns the list that the thread had before, which belongs to a typed
 * task further below on its stack; NULL if the list was empty. */
fj_cell *fji_overflow_enter(void);

/* Called by a thread that works for no pool after a typed task has returned. Frees the overflow
 * cells of that task. `saved` is what fji_overflow_enter() returned before the task; it becomes the
 * thread's list of free overflow cells again. */
void fji_overflow_leave(fj_cell *saved);

#endif /* FJI_OVERFLOW_H */
