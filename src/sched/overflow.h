/* SPDX-License-Identifier: MIT */
/*
 * overflow.h - cells outside the queues, for the results of typed tasks that are run at their fork
 */
#ifndef FJI_OVERFLOW_H
#define FJI_OVERFLOW_H

#include "sched/pool.h"

/* Returns an overflow cell and the END after it, as a pair. If there is no memory, waits until
 * there is. w: the calling worker or guest, or NULL if the calling thread works for no pool. */
fj_cell *fji_overflow_take(fji_worker *w);

/* Returns the pair to the free ones, after the join of its task. w: as above. */
void fji_overflow_return(fji_worker *w, fj_cell *c);

/* Returns whether c, the cell of a forked typed task, is an overflow cell. */
static inline bool fji_overflow_is(const fj_cell *c)
{
    return c->item == FJI_END;
}

/* Frees a list of free cells that were allocated. No thread may have a pointer to one of them. */
void fji_overflow_free(fj_cell *list);

/* In the child process after fork(): resets the lock of the reserve. */
void fji_overflow_in_child(void);

/* Called by a thread that works for no pool before it runs a typed task. Begins with an empty list
 * of free cells and returns the list of the typed task that the thread runs already, or NULL. */
fj_cell *fji_overflow_enter(void);

/* Called after that task: frees its cells and restores the list that fji_overflow_enter()
 * returned. */
void fji_overflow_leave(fj_cell *saved);

#endif /* FJI_OVERFLOW_H */
