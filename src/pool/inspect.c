/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - the public functions that inspect queues and take tasks from them
 * (forkjoin/local.h)
 *
 * A taken task belongs to the caller, which gets it as an fj_taken. The bytes of an fj_taken are
 * those of a fji_taken. A thread that waits for the task waits until the caller runs or cancels it.
 *
 * fj_take_local() takes only detached tasks. Every other task in the own queue is joined, through
 * its cell, by a function on the stack of the worker. Only fj_unfork() takes such a task. In a FIFO
 * pool, however, fj_take_local() takes the oldest task of any kind, as a thief does. The joiner of
 * that task then waits for it as for a stolen task.
 */

#include <string.h>

#include "pool/common_pool.h"
#include "sched/hold.h"
#include "sched/own_queue.h"
#include "sched/run.h"
#include "sched/steal.h"

FJI_STATIC_ASSERT(sizeof(fj_taken) == sizeof(fji_taken), "fj_taken holds a fji_taken");

/* ---- Inspecting ------------------------------------------------------------------------------ */

int fj_worker_queued(void)
{
    const fji_worker *w = fji_worker_self();
    return w != NULL ? (int)fji_queue_count(&w->q) : 0;
}

/* Returns the number of tasks in the own queue of the calling worker or guest, minus an allowance.
 * The allowance is the number of tasks that the worker should keep queued for thieves. The fewer
 * workers are active, the larger it is: 0, 1, 2, 4 or 8, but at most the parallelism. Returns 0 if
 * the calling thread works for no pool. */
int fj_worker_surplus(void)
{
    const fji_worker *w = fji_worker_self();

    if (w == NULL) return 0;
    int target = fji_pool_parallelism(w->pool);                        /* relaxed: an estimate */
    int active = fji_ctl_deficit(fji_pool_ctl_hint(w->pool)) + target; /* relaxed: as above */
    int allowance = active > target / 2    ? 0
                    : active > target / 4  ? 1
                    : active > target / 8  ? 2
                    : active > target / 16 ? 4
                                           : 8;
    if (allowance > target) allowance = target; /* no more workers could steal */
    return fj_worker_queued() - allowance;
}

/* Returns the fj_task of an item: of a plain task, a submission, a future, a completer or a timer.
 * Returns NULL for a special value, an action and a typed task. */
static fj_task *item_task(uintptr_t item)
{
    if (item <= FJI_SPECIAL || item == FJI_ACTION || fji_item_is_typed(item)) return NULL;
    return fji_item_task(item);
}

const void *fj_peek_local(void)
{
    fji_worker *w = fji_worker_self();

    if (w == NULL) return NULL;
    /* relaxed: the program may only compare the returned address; it does not access the task. */
    uint32_t index = fji_base_index(fji_load_relaxed(&w->q.base));
    const fj_cell *b = fji_worker_boundary(w);
    if (fji_queue_position(&w->q, b) <= index) return NULL;
    const fj_cell *c = w->pool->fifo ? w->q.cells + index : b - 1;
    return item_task(fji_load_relaxed(&c->item)); /* relaxed: as above */
}

/* ---- Taking ---------------------------------------------------------------------------------- */

/* Stores *found in *taken. Returns 1. */
static int taken_put(fj_taken *taken, const fji_taken *found)
{
    memcpy(taken, found, sizeof *found);
    return 1;
}

/* Called by w: takes the topmost task of its own queue, if that task is detached; in a FIFO pool
 * the oldest task of any kind. Returns true and stores the task in *found, or returns false. */
static bool local_take(fji_worker *w, fji_taken *found)
{
    fj_cell *c = fji_worker_boundary(w) - 1;

    if (w->pool->fifo) return fji_steal_own(w, found) == FJI_STEAL_SUCCESS;
    if (c < w->q.cells || c->item <= FJI_SPECIAL || !fji_item_is_detached(c->item)) return false;
    const uintptr_t *at = fji_cell_words(c);
    *found = (fji_taken){.item = c->item, .fn = at[0], .arg = at[1]};
    return fji_worker_take_detached(w, c);
}

int fj_take_local(fj_taken *taken)
{
    fji_worker *w = fji_worker_self();
    fji_taken found;

    if (w == NULL || taken == NULL || !local_take(w, &found)) return 0;
    return taken_put(taken, &found);
}

int fj_take_task(fj_taken *taken)
{
    fji_worker *w = fji_worker_self();
    fji_taken found;
    fji_steal_result got;

    if (w == NULL || taken == NULL) return 0;
    if (local_take(w, &found)) return taken_put(taken, &found);
    while ((got = fji_steal_any(w, &found)) == FJI_STEAL_RETRY) fji_pause();
    return got == FJI_STEAL_SUCCESS ? taken_put(taken, &found) : 0;
}

int fj_take_submission(fj_taken *taken)
{
    fji_worker *w = fji_worker_self();
    fji_taken found;

    if (w == NULL || taken == NULL || !fji_steal_any_submission(w->pool, &found)) return 0;
    return taken_put(taken, &found);
}

size_t fj_pool_drain(fj_pool *pool, fj_taken *taken, size_t n)
{
    fji_taken found;
    size_t got = 0;

    if (taken == NULL) return 0;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL || !fji_pool_hold(p)) return 0;
    while (got < n && (fji_steal_any_submission(p, &found) || fji_steal_any_queued(p, &found)))
        (void)taken_put(&taken[got++], &found);
    fji_pool_drop_hold(p);
    return got;
}

/* ---- Taken tasks ----------------------------------------------------------------------------- */

fj_task *fj_taken_task(const fj_taken *taken)
{
    return taken != NULL ? item_task(taken->word[0]) : NULL;
}

/* Moves the task from *taken to *found and makes *taken empty. Returns false if `taken` is NULL or
 * *taken was already empty. */
static bool taken_get(fj_taken *taken, fji_taken *found)
{
    if (taken == NULL || taken->word[0] == 0) return false;
    memcpy(found, taken, sizeof *found);
    taken->word[0] = 0;
    return true;
}

void fj_taken_run(fj_taken *taken)
{
    fji_taken found;

    if (taken_get(taken, &found)) fji_run_taken(fj_current_pool(), fji_worker_self(), &found);
}

void fj_taken_cancel(fj_taken *taken)
{
    fji_taken found;

    if (taken_get(taken, &found)) fji_cancel_taken(&found);
}
