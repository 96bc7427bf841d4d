/* SPDX-License-Identifier: MIT */
/*
 * overflow.c - cells outside the queues for typed tasks that are run at their fork
 *
 * A typed fork that finds no space in the queue runs the body at once and stores the result in an overflow cell.
 * Typed code may keep a pointer to the cell after its join. So a worker keeps its cells until the pool is freed,
 * and a thread without a worker keeps them until the typed task that it runs has returned.
 *
 * A fork cannot fail, so there must be a cell: a free one of the worker first, then memory, then the reserve of
 * the process. If the reserve is empty too, the fork waits for memory.
 */

#include "sched/overflow.h"

#include <string.h>

/*
 * Spilled cells of a thread without a worker that are not in use: those of the innermost typed
 * task that it runs. Empty while it runs none, so that the end of a thread leaves nothing.
 */
static __thread fj_cell *overflow_without_worker;

/* For all threads, when there is no memory: untouched until then, so it costs none. */
static fji_lock overflow_reserve_lock;
static fj_cell overflow_reserve[FJI_OVERFLOW_RESERVE][2];
static unsigned overflow_reserve_used;     /* the first so many were handed out once */
static fj_cell *overflow_reserve_returned; /* and these are back */

static fj_cell *overflow_take_reserve(void)
{
    fji_lock_take(&overflow_reserve_lock);
    fj_cell *c = overflow_reserve_returned;
    if (c != NULL)
        memcpy(&overflow_reserve_returned, c[1].args, sizeof overflow_reserve_returned);
    else if (overflow_reserve_used < FJI_OVERFLOW_RESERVE)
        c = overflow_reserve[overflow_reserve_used++];
    fji_lock_drop(&overflow_reserve_lock);
    return c;
}

static bool overflow_is_reserve(const fj_cell *c)
{
    return c >= overflow_reserve[0] && c < &overflow_reserve[FJI_OVERFLOW_RESERVE - 1][2];
}

/* The lock may have been held by a thread that the child process does not have. Each step under it leaves
 * the lists consistent. */
void fji_overflow_in_child(void)
{
    fji_lock_reset(&overflow_reserve_lock);
}

fj_cell *fji_overflow_take(fji_worker *w)
{
    fj_cell **list = w != NULL ? &w->overflow_cells : &overflow_without_worker;
    fj_cell *c = *list;

    if (c != NULL) {
        memcpy(list, c[1].args, sizeof *list);
        return c;
    }
    while ((c = fji_plat_alloc(2 * sizeof *c)) == NULL && (c = overflow_take_reserve()) == NULL)
        fji_plat_yield();
    c[0].item = FJI_END;
    c[1].item = FJI_END;
    return c;
}

void fji_overflow_return(fji_worker *w, fj_cell *c)
{
    fj_cell **list = w != NULL ? &w->overflow_cells : &overflow_without_worker;
    bool reserve = overflow_is_reserve(c);

    if (reserve) {
        fji_lock_take(&overflow_reserve_lock);
        list = &overflow_reserve_returned;
    }
    memcpy(c[1].args, list, sizeof *list);
    *list = c;
    if (reserve) fji_lock_drop(&overflow_reserve_lock);
}

void fji_overflow_free(fj_cell *list)
{
    while (list != NULL) {
        fj_cell *c = list;
        memcpy(&list, c[1].args, sizeof list);
        fji_plat_free(c);
    }
}

fj_cell *fji_overflow_enter(void)
{
    fj_cell *saved = overflow_without_worker;

    overflow_without_worker = NULL;
    return saved;
}

void fji_overflow_leave(fj_cell *saved)
{
    fji_overflow_free(overflow_without_worker);
    overflow_without_worker = saved;
}
