/* SPDX-License-Identifier: MIT */
/*
 * overflow.h - cells outside the queues for typed tasks that are run at their fork
 */
#ifndef FJI_OVERFLOW_H
#define FJI_OVERFLOW_H

#include "sched/pool.h"

/* A pair of cells, the second an END. Waits if there is no memory. w: the calling worker, or NULL. */
fj_cell *fji_overflow_take(fji_worker *w);
void fji_overflow_return(fji_worker *w, fj_cell *c);

/* Whether c is an overflow cell. */
static inline bool fji_overflow_is(const fj_cell *c)
{
    return c->item == FJI_END;
}

/* Frees a list of free cells that come from memory. */
void fji_overflow_free(fj_cell *list);

/* In the child process after fork(). */
void fji_overflow_in_child(void);

/* A thread without a worker begins and ends a typed task: its free cells are put aside meanwhile. */
fj_cell *fji_overflow_enter(void);
void fji_overflow_leave(fj_cell *saved);

#endif /* FJI_OVERFLOW_H */
