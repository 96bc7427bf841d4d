/* SPDX-License-Identifier: MIT */
/*
 * child.c - fork() of the process
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
#include "pool.h"

static fji_lock registry_lock;
static fj_pool *registry_list; /* all pools, under the lock */
/* Handlers that got registered twice, by a fork in the middle of that, act once. */
static __thread int child_forking;
uint32_t fji_fork_generation = FJI_START_FORKS;

/* ---- The list ------------------------------------------------------------------------------------- */

void fji_registry_add(fj_pool *p)
{
    fji_lock_take(&registry_lock);
    p->next = registry_list;
    p->link = &registry_list;
    if (p->next != NULL) p->next->link = &p->next;
    registry_list = p;
    fji_lock_drop(&registry_lock);
}

void fji_registry_remove(fj_pool *p)
{
    fji_lock_take(&registry_lock);
    *p->link = p->next;
    if (p->next != NULL) p->next->link = p->link;
    fji_lock_drop(&registry_lock);
}

void fji_wake_interruptible(const fj_token *only)
{
    fji_lock_take(&registry_lock);
    for (fj_pool *p = registry_list; p != NULL; p = p->next) fji_pool_wake_interruptible(p, only);
    fji_lock_drop(&registry_lock);
}

/* ---- The thread that goes on ------------------------------------------------------------------------ */

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
        if ((c->item & FJI_TAG_DETACHED) != 0) {
            if (i >= index) child_stamp((fj_task *)(c->item & ~FJI_TAG_MASK));
        } else if (i < index && (c->state & FJI_DONE) == 0) {
            c->state = FJI_DONE | FJI_ORPHANED;
        }
    }
    w->joining = NULL;
    w->wait_bucket = NULL;
    w->q.opening = 0;
    fji_worker_set_location(w);
}

/* ---- The others ------------------------------------------------------------------------------------- */

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

static void child_forget(fj_pool *p, fji_worker *self)
{
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

/* ---- Handlers --------------------------------------------------------------------------------------- */

static void child_prepare(void)
{
    if (child_forking++ != 0) return;
    fji_lock_take(&fji_common_making);
    fji_lock_take(&registry_lock);
}

static void child_in_parent(void)
{
    if (--child_forking != 0) return;
    fji_lock_drop(&registry_lock);
    fji_lock_drop(&fji_common_making);
}

static void child_in_child(void)
{
    if (--child_forking != 0) return;
    fji_fork_generation++;
    fji_lock_reset(&registry_lock);
    fji_overflow_in_child();
    for (fj_pool *p = registry_list; p != NULL; p = p->next) child_forget(p, fji_worker_self());
    fji_common_in_child();
}

/* Before the first of our locks is taken, so that a child never finds it held. */
void fji_atfork_prepare(void)
{
    fji_plat_at_fork(child_prepare, child_in_parent, child_in_child);
}
