/* SPDX-License-Identifier: MIT */
/*
 * atfork.c - fork() of the process
 *
 * All pools are in one list, whose lock is held over fork(), as is that of the making of the
 * common pool. In the child no worker exists any more, whatever the records say; locks may
 * be held by threads that are gone, and they have stopped between any two instructions. The
 * child's handler, alone in its process, puts every pool back to its beginning: no thread,
 * empty queues. Workers start again with the next task. What becomes of a task:
 *
 *   submitted, not done    lost: it carries the number of fork()s at which it was submitted
 *                          (fj_task.location), and whoever waits for one with another number
 *                          gets FJ_ECANCELED. Nobody has to find it, wherever its thief was.
 *   action                 forgotten.
 *
 * If the thread that forked works for pools itself, as a worker or as a guest, inside another
 * one perhaps, it goes on in the child with the tasks on its stack and in its queues:
 *
 *   queued by it           are given the new number: they count as submitted now.
 *   on its stack           run to their end, but whoever forked or submitted them may be gone,
 *                          and the memory with it (a new thread may get the same stack): nothing
 *                          of them is touched after the body. Lost for everybody else. Only a
 *                          typed task that it has stolen leaves its result in the queue of a
 *                          worker that is gone: the records of those pools are never used
 *                          again (LOST), so that it does no harm.
 *   stolen from it         lost: FJ_ECANCELED; typed ones are run again, as they cannot say so.
 */

#include "pool/atfork.h"

#include "pool/timers.h"
#include "sched/lifetime.h"
#include "sched/overflow.h"
#include "sched/own_queue.h"
#include "sched/registry.h"
#include "sched/scope.h"

fji_lock fji_common_lock;

/* fork() during the registration of the handlers registers them twice. They act once. */
static __thread int atfork_nested;
static void (*atfork_common_in_child)(void);

/* ---- The worker that continues ------------------------------------------------------------------------ */

static void child_stamp(fj_task *t)
{
    t->location = (t->location & (FJI_LOCATION_LOCAL | FJI_LOCATION_POSITION)) |
                  fji_location_stamp();
}

/* What others stole from it is lost; what it has, it keeps. */
static void child_keep(fji_worker *w)
{
    uint32_t index = fji_base_index(w->q.base);

    for (uint32_t i = 0; i < w->q.capacity; i++) {
        fj_cell *c = &w->q.cells[i];
        if (c->item <= FJI_SPECIAL || c->item == FJI_ACTION) continue;
        if (fji_item_is_detached(c->item)) {
            if (i >= index) child_stamp(fji_item_task(c->item));
        } else if (i < index && (c->state & FJI_DONE) == 0) {
            c->state = FJI_DONE | FJI_ORPHANED;
        }
    }
    w->joining = NULL;
    w->wait_bucket = NULL;
    w->q.opening = 0;
    fji_worker_set_location(w);
}

/* ---- The others --------------------------------------------------------------------------------------- */

static void child_forget_worker(fji_worker *w, bool lost)
{
    w->alive = lost ? FJI_ALIVE_ORPHANED : FJI_ALIVE_NO;
    w->park = FJI_PARK_ACTIVE;
    w->blocked = FJI_BLOCKED_NO;
    w->joining = NULL;
    fji_scope_reset(w);
    w->wait_bucket = NULL;
    w->syscall = 0;
    fji_worker_set_location(w);
    fji_queue_reset(&w->q);
}

/* Whether w is what the thread that forked is, or was before it became a guest. */
static bool child_has(fji_worker *self, const fji_worker *w)
{
    while (self != NULL && self != w) self = fji_worker_outer(self);
    return self != NULL;
}

static void child_forget(fj_pool *p, void *arg)
{
    fji_worker *self = arg;
    int active = 0, total = 0, guests = 0, blocked = 0;

    for (uint32_t i = 0; i < p->workers; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        if (w == NULL || !child_has(self, w)) continue;
        child_keep(w);
        guests += w->alive == FJI_ALIVE_GUEST;
        total += w->alive == FJI_ALIVE_WORKER;
        active += w->alive == FJI_ALIVE_WORKER && w->blocked == FJI_BLOCKED_NO;
        blocked += w->alive == FJI_ALIVE_WORKER && w->blocked != FJI_BLOCKED_NO;
    }
    for (uint32_t i = 0; i < p->workers; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        if (w != NULL && !child_has(self, w)) child_forget_worker(w, guests + total != 0);
    }
    for (uint32_t i = 0; i < p->nsubmissions; i++)
        if (p->submissions[i] != NULL) fji_submission_queue_reset(p->submissions[i]);
    fji_timers_in_child(p);
    fji_lock_reset(&p->lock);
    p->nsearching = 0;
    p->has_last_exited = false;
    p->guests = (uint32_t)guests;
    p->blocked = (uint32_t)blocked;
    fji_sizes sizes = fji_pool_sizes(p);
    p->ctl = fji_ctl_normalize(
        fji_ctl_add_active(fji_ctl_add_total(FJI_CTL_NONE, total), active - p->parallelism),
        &sizes);
    fji_pool_end_if_over(p);
}

void fji_atfork_reset_common(fj_pool *p)
{
    fji_lock_reset(&p->lock);
    for (uint32_t i = 0; i < p->nsubmissions; i++)
        if (p->submissions[i] != NULL) fji_lock_reset(&p->submissions[i]->lock);
    fji_timers_in_child(p);
}

/* ---- Handlers ----------------------------------------------------------------------------------------- */

static void child_prepare(void)
{
    if (atfork_nested++ != 0) return;
    fji_lock_take(&fji_common_lock);
    fji_registry_lock();
}

static void child_in_parent(void)
{
    if (--atfork_nested != 0) return;
    fji_registry_unlock();
    fji_lock_drop(&fji_common_lock);
}

static void child_in_child(void)
{
    if (--atfork_nested != 0) return;
    fji_fork_generation++;
    fji_registry_reset_lock();
    fji_overflow_in_child();
    fji_registry_each(child_forget, fji_worker_self());
    fji_lock_reset(&fji_common_lock);
    if (atfork_common_in_child != NULL) atfork_common_in_child();
}

void fji_atfork_prepare(void (*common_in_child)(void))
{
    /* relaxed: every writer stores the same function. */
    if (common_in_child != NULL) fji_store_relaxed(&atfork_common_in_child, common_in_child);
    fji_plat_at_fork(child_prepare, child_in_parent, child_in_child);
}
