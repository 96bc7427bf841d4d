/* SPDX-License-Identifier: MIT */
/*
 * overflow.c - cells outside the queues, for typed tasks that are not in the cell at their position
 *
 * A typed fork that finds no space in the queue, or whose thread works for no pool and so has no
 * queue, runs the body at once and stores the result in an overflow cell. An overflow cell is the
 * first of a pair of cells whose items are both END, the special item of a cell into which no task
 * may be pushed. Typed code uses the address of the first or of the second cell as the position of
 * its next fork. END makes that fork take its slow path. Typed code may keep such a position after
 * the join. So a worker keeps its overflow cells until the pool is freed, and a thread that works
 * for no pool keeps them until the typed task that it runs has returned. A cell of the reserve (see
 * below) is static memory; it goes back to the reserve after its join.
 *
 * A fork cannot fail, so it needs an overflow cell in every case. It takes a free one of the
 * worker, or allocates one, or takes one from the reserve of the process. If the reserve is empty
 * too, the fork tries again until it gets a cell.
 *
 * A pair of overflow cells is also used as a link (tier/typed.c).
 *
 * Free pairs form a list; the link to the next pair is stored in `args` of the second cell.
 */

#include "sched/overflow.h"

#include <string.h>

#include "sched/safepoint.h"

/* The free overflow cells of the calling thread, if it works for no pool: those of the innermost
 * typed task that it runs. The list is empty while the thread runs no typed task, so no memory is
 * leaked when the thread exits. */
static __thread fj_cell *overflow_without_worker;

/* The process's reserve of pairs of overflow cells, for the case that no memory can be allocated.
 * The array is not touched before that happens, so the system gives it no memory until then. */
static fji_lock overflow_reserve_lock;
static fj_cell overflow_reserve[FJI_OVERFLOW_RESERVE][2];
static unsigned
    overflow_reserve_used; /* the pairs below this index have been taken at least once */
static fj_cell *overflow_reserve_returned; /* list of the pairs that are free again */

/* Allocates a pair of cells: from the memory of the pool of w, or from the platform layer if w is NULL.
 * Returns NULL if there is no memory. */
static fj_cell *overflow_alloc(fji_worker *w)
{
    const size_t bytes = 2 * sizeof(fj_cell);

    return w != NULL ? fji_memory_alloc(w->pool->memory, FJI_MEMORY_WORKERS, bytes)
                     : fji_plat_alloc(bytes);
}

/* Takes a pair of cells from the reserve. Returns NULL if all pairs are in use. */
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

/* The thread that held the lock at the fork() may not exist in the child process, so the lock is
 * reset. The list and the number of used pairs are valid even if that thread was changing them: at
 * worst the pair that it was taking or returning is lost. */
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
    while ((c = overflow_alloc(w)) == NULL && (c = overflow_take_reserve()) == NULL) {
        fji_safepoint(w); /* a worker that has stopped for a broadcast returns no cell */
        fji_plat_yield();
    }
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

void fji_overflow_free(fj_pool *p, fj_cell *list)
{
    while (list != NULL) {
        fj_cell *c = list;
        memcpy(&list, c[1].args, sizeof list);
        if (p != NULL)
            fji_memory_free(p->memory, FJI_MEMORY_WORKERS, c, 2 * sizeof *c);
        else
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
    fji_overflow_free(NULL, overflow_without_worker);
    overflow_without_worker = saved;
}
