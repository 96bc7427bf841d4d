/* SPDX-License-Identifier: MIT */
/*
 * atfork.c - makes the pools usable in the child process after fork()
 *
 * fork() copies the memory of the process, but of its threads only the calling one. The records in
 * the child process still name workers that do not exist there. These threads stopped between any
 * two instructions: a lock may be held, and a task may be in no queue because a thief was taking
 * it. A wait for such a lock or task would never end.
 *
 * So the child process resets every pool: no threads, empty queues, free locks. Workers start again
 * with the next task. All pools are in one list (sched/registry.c). The forking thread holds two
 * locks during fork(), that of the list and fji_common_lock, so that the list and the state of the
 * common pool are consistent in the child process:
 *
 *     parent process, forking thread           child process, the only thread
 *     atfork_prepare(): take fji_common_lock,
 *       then the lock of the list
 *     fork() -------------------------------->  atfork_child():
 *     atfork_parent(): release both               fork generation + 1
 *                                                 reset the lock of the list
 *                                                 reset the lock of the overflow cells
 *                                                 atfork_reset_pool() for each pool
 *                                                 reset fji_common_lock
 *                                                 common_in_child()
 *
 * The child process does not search for the tasks of the threads that do not exist there. What it
 * does with the tasks that other threads of the parent process had queued or were running:
 *
 *   submitted, not done   Orphaned; a future or timer too. The task stores the fork generation in
 *                         which it was queued (fj_task.location). A waiter that finds another
 *                         generation there returns FJ_ECANCELED.
 *   action                Never runs.
 *
 * The forking thread may itself be a worker or a guest, also of several pools, one inside the
 * other. Its stack and its queues are consistent, so the child process keeps them:
 *
 *   in its queue     A submitted task gets the new generation and runs, as if it was queued after
 *                    the fork.
 *   on its stack     The body runs to its end. After that the library does not access the task:
 *                    the thread that forked or submitted it does not exist in the child process,
 *                    and the memory of that thread's stack may be in use again. For all other
 *                    threads the task is orphaned. There is one exception: a typed
 *                    task that the forking thread has stolen stores its result in the queue of its
 *                    victim. So if the forking thread works for a pool, the child process never
 *                    uses the records of the other threads of that pool again
 *                    (FJI_ALIVE_ORPHANED), and the store does no harm.
 *   stolen from it   Orphaned: the join returns FJ_ECANCELED. A typed task has no error
 *                    code, so its joiner runs it again.
 *
 * docs/design/fork.md gives the reasons.
 */

#include "pool/atfork.h"

#include "pool/timers.h"
#include "sched/lifetime.h"
#include "sched/overflow.h"
#include "sched/own_queue.h"
#include "sched/registry.h"
#include "sched/safepoint.h"
#include "sched/scope.h"

fji_lock fji_common_lock;

/* How many calls of atfork_prepare() the calling thread has made whose atfork_parent() or
 * atfork_child() has not followed yet. The handlers may be registered, and are then called, more
 * than once; see fji_plat_at_fork(). Only the first call before fork(), and the last call after it,
 * do something. */
static __thread int atfork_nested;

/* common_in_child() of common_pool.c, which atfork_child() calls last; NULL until it is set. */
static void (*atfork_common_in_child)(void);

/* ---- The records of the forking thread ------------------------------------------------------- */

/* Stores the new fork generation in fj_task.location of t, so that a waiter in the child process
 * does not treat t as orphaned. */
static void atfork_stamp(fj_task *t)
{
    t->location = (t->location & (FJI_LOCATION_LOCAL | FJI_LOCATION_POSITION)) |
                  fji_location_stamp();
}

/* Called in the child process for a record w of the forking thread. The tasks in w's queue stay
 * there; the detached ones, except actions, get the new fork generation. A task that was stolen
 * from w and is not done becomes orphaned. */
static void atfork_keep_worker(fji_worker *w)
{
    for (uint32_t i = 0; i < w->q.capacity; i++) {
        fj_cell *c = &w->q.cells[i];
        /* Of the hidden tasks, those below hidden_index are stolen. */
        uint32_t index = c < w->q.shown ? w->q.hidden_index : fji_base_index(w->q.base);
        if (c->item <= FJI_SPECIAL || c->item == FJI_ACTION) continue;
        if (fji_item_is_detached(c->item)) {
            if (i >= index) atfork_stamp(fji_item_task(c->item));
        } else if (i < index && (c->state & FJI_DONE) == 0) {
            c->state = FJI_DONE | FJI_ORPHANED;
        }
    }
    w->joining = NULL;
    w->wait_bucket = NULL;
    w->awaited = false; /* the thread that was about to join it does not exist here */
    fji_safepoint_reset(w, true);
    w->q.opening = 0;
    fji_worker_set_location(w);
}

/* ---- All records of a pool ------------------------------------------------------------------- */

/* Called in the child process. Resets w, the record of a thread that does not exist there. If
 * `orphaned` is true, marks w so that no thread uses the record again; otherwise the next worker or
 * guest may use it. */
static void atfork_reset_worker(fji_worker *w, bool orphaned)
{
    w->alive = orphaned ? FJI_ALIVE_ORPHANED : FJI_ALIVE_NO;
    w->park = FJI_PARK_ACTIVE;
    w->blocked = FJI_BLOCKED_NO;
    w->joining = NULL;
    w->has_thread = 0;
    w->awaited = false;
    fji_scope_reset(w);
    w->wait_bucket = NULL;
    w->syscall = 0;
    fji_safepoint_reset(w, false);
    fji_worker_set_location(w);
    fji_queue_reset(&w->q);
}

/* Returns whether w is a record of the forking thread: `self`, or a record that the thread had
 * before it became a guest. `self` may be NULL. */
static bool atfork_is_own(fji_worker *self, const fji_worker *w)
{
    while (self != NULL && self != w) self = fji_worker_outer(self);
    return self != NULL;
}

/* Called in the child process. Resets p: empty queues, free locks, and no threads except the
 * forking thread, whose records in p are kept. arg: the record of the forking thread, in p or in
 * another pool, or NULL if the thread works for no pool. */
static void atfork_reset_pool(fj_pool *p, void *arg)
{
    fji_worker *self = arg;
    int active = 0, total = 0, guests = 0, blocked = 0;

    for (uint32_t i = 0; i < p->workers; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        if (w == NULL || !atfork_is_own(self, w)) continue;
        atfork_keep_worker(w);
        guests += w->alive == FJI_ALIVE_GUEST;
        total += w->alive == FJI_ALIVE_WORKER;
        active += w->alive == FJI_ALIVE_WORKER && w->blocked == FJI_BLOCKED_NO;
        blocked += w->alive == FJI_ALIVE_WORKER && w->blocked != FJI_BLOCKED_NO;
    }
    for (uint32_t i = 0; i < p->workers; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        if (w != NULL && !atfork_is_own(self, w)) atfork_reset_worker(w, guests + total != 0);
    }
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++)
        if (p->submissions[i] != NULL) fji_submission_queue_reset(p->submissions[i]);
    fji_timers_in_child(p);
    fji_lock_reset(&p->lock);
    p->nsearching = 0;
    p->starts = 0;
    p->has_last_exited = false;
    p->guests = (uint32_t)guests;
    p->blocked = (uint32_t)blocked;
    fji_sizes sizes = fji_pool_sizes(p);
    p->ctl = fji_ctl_normalize(
        fji_ctl_add_active(fji_ctl_add_total(FJI_CTL_NONE, total), active - p->parallelism),
        &sizes);
    (void)fji_pool_end_if_over(p); /* no thread waits for the end */
}

void fji_atfork_reset_common(fj_pool *p)
{
    fji_lock_reset(&p->lock);
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++)
        if (p->submissions[i] != NULL) fji_lock_reset(&p->submissions[i]->lock);
    fji_timers_in_child(p);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void atfork_prepare(void)
{
    if (atfork_nested++ != 0) return;
    fji_lock_take(&fji_common_lock);
    fji_registry_lock();
}

static void atfork_parent(void)
{
    if (--atfork_nested != 0) return;
    fji_registry_unlock();
    fji_lock_drop(&fji_common_lock);
}

static void atfork_child(void)
{
    if (--atfork_nested != 0) return;
    fji_fork_generation++;
    fji_registry_reset_lock();
    fji_overflow_in_child();
    fji_safepoint_in_child();
    fji_registry_each(atfork_reset_pool, fji_worker_self());
    fji_lock_reset(&fji_common_lock);
    if (atfork_common_in_child != NULL) atfork_common_in_child();
}

void fji_atfork_prepare(void (*common_in_child)(void))
{
    /* relaxed: every thread that stores here stores the same function, common_in_child(). */
    if (common_in_child != NULL) fji_store_relaxed(&atfork_common_in_child, common_in_child);
    fji_plat_at_fork(atfork_prepare, atfork_parent, atfork_child);
}
