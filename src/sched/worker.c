/* SPDX-License-Identifier: MIT */
/*
 * worker.c - the life of a worker thread
 *
 *     start -> [steal -> run -> drain the own queue]* -> idle -> ... -> exit
 *
 * The thread that starts a worker first counts the worker in the control word (active + 1,
 * total + 1). The worker subtracts itself again when it exits (active - 1 unless it has retired,
 * total - 1). If no thread could be started, the starting thread subtracts the worker.
 *
 * A worker exits if the pool stops, if the worker has retired (retire.h), or if the on_start
 * callback has returned an error. In the last two cases a producer may have relied on this worker
 * for its task. So the worker first subtracts itself from the control word. Then it checks all
 * queues, and wakes another worker if a queue has a task.
 *
 * Edges          from                            to                               carries
 *   pool.thread  release stores, worker_main()   acquire, fji_pool_interrupt(),   the thread handle
 *                                                  syscall_interrupt() and
 *                                                  shutdown_join_worker()
 *   idle.dekker  heavy fence, worker_main()      light fence in fj_fork()         ctl against cell
 */

#include "sched/worker.h"

#include <stdio.h>

#include "plat/wait.h"
#include "sched/idle.h"
#include "sched/lifetime.h"
#include "sched/own_queue.h"
#include "sched/quiescent.h"
#include "sched/record.h"
#include "sched/run.h"
#include "sched/safepoint.h"
#include "sched/scope.h"
#include "sched/search.h"
#include "sched/spawn.h"
#include "sched/steal.h"
#include "sched/submissions.h"
#include "sched/wake.h"

/* ---- The loop -------------------------------------------------------------------------------- */

/* Returns whether more workers are active than the parallelism of p. */
static bool worker_is_surplus(const fj_pool *p)
{
    /* relaxed: it does no harm if a worker notices late that it is surplus. */
    return fji_ctl_deficit(fji_pool_ctl_hint(p)) > 0;
}

/* Removes the scopes of w and calls the on_reset callback. Called by w between two tasks that it
 * takes from other queues. Usually w has emptied its own queue before, so that no task that the
 * first task has queued there is left. But the queue may still hold such tasks if w is surplus, or
 * if w takes a submitted task in between (worker_drain_queue()). */
static void worker_reset(fji_worker *w)
{
    fji_scope_reset(w);
    const fj_pool_options *o = &w->pool->options;

    if (o->on_reset != NULL) o->on_reset(w->pool, (int)w->index, o->arg);
}

/*
 * The fast path of fji_completer_run() for the completer t, in a worker w with no task on its
 * stack. The scope stays in place after the body, because the next task mostly has the same root;
 * before w runs any other task it calls fji_scope_reset(). Returns true if it ran the body. Returns
 * false, without any change, if t is a root or the state word of t is not 0.
 */
static inline bool worker_run_completer(fji_worker *w, fj_task *t)
{
    fj_completer *c = (fj_completer *)t;
    uint32_t generation = fji_fork_generation;

    /* [task.done] acquire <- acq_rel in fji_future_resolve(): what the thread that has resolved t
     * wrote before. */
    if (c->parent == NULL || fji_load_acquire(&t->state) != 0) return false;
    const fj_token *token = &c->root->future.token;
    if (FJI_UNLIKELY(fji_scope_token(w) != token)) fji_scope_replace(w, token);
    int code = c->future.fn(t); /* LAST TOUCH of *c, unless the body returns an error. */
    if (FJI_UNLIKELY(code != FJ_OK) && generation == fji_fork_generation)
        fj_completer_fail(c, code);
    return true;
}

static inline void worker_run_future(fji_worker *w, fj_task *t)
{
    if (t->fn == fji_completer_run && worker_run_completer(w, t)) return;
    fji_scope_reset(w);
    (void)t->fn(t);
}

/* Runs *taken, which w has taken from a submission queue while tasks are left in its own queue. */
static void worker_run_between(fji_worker *w, const fji_taken *taken)
{
    worker_reset(w);
    fji_run_taken(w->pool, w, taken);
    worker_reset(w);
}

/* The looks of a worker at the submission queues while it runs the tasks of its own queue. */
struct looks {
    uint32_t left;  /* turns until the next look */
    uint32_t turns; /* in a pool with ranked queues, where w looks in every turn: number of turns */
};

/* Called when looks->left is 0. Takes a submitted task into *taken; in a pool with ranked queues a
 * callback of high priority, and only in every FJI_SUBMISSION_INTERVAL-th turn another task. Sets
 * *surplus if w is surplus (see worker_is_surplus()); w then takes nothing. Returns whether it took a
 * task. */
static FJI_COLD bool worker_look(fji_worker *w, struct looks *looks, fji_taken *taken,
                                 bool *surplus)
{
    bool ranked = fji_pool_has_ranked(w->pool);

    looks->left = ranked ? 1 : FJI_SUBMISSION_INTERVAL;
    if (ranked && ++looks->turns % FJI_SUBMISSION_INTERVAL != 0) return fji_steal_high(w, taken);
    *surplus = worker_is_surplus(w->pool);
    return !*surplus && fji_steal_submission(w, taken);
}

/* Runs the tasks of w's queue until the queue is empty or the pool stops, or until w is surplus; then
 * thieves take the other tasks of the queue. Now and then runs a submitted task instead
 * (worker_look()). *taken: scratch memory; its contents mean nothing to the caller. */
static void worker_drain_queue(fji_worker *w, fji_taken *taken)
{
    struct looks looks = {.left = fji_pool_has_ranked(w->pool) ? 1 : FJI_SUBMISSION_INTERVAL};
    bool surplus = false;

    while (!fji_pool_stopping(w->pool)) {
        if (FJI_UNLIKELY(fji_worker_called(w))) fji_safepoint_take(w);
        if (FJI_UNLIKELY(--looks.left == 0)) {
            if (worker_look(w, &looks, taken, &surplus)) {
                worker_run_between(w, taken);
                continue;
            }
            if (surplus) return;
        }
        fj_task *t = fji_worker_take_future(w);
        if (t != NULL) {
            worker_run_future(w, t);
            continue;
        }
        if (!fji_worker_take_local(w, taken)) return;
        fji_scope_reset(w);
        fji_run_taken(w->pool, w, taken);
    }
}

static void worker_drain(fji_worker *w, fji_taken *taken)
{
    worker_drain_queue(w, taken);
    fji_scope_reset(w);
}

/* Returns whether p is shut down and every active worker searches, so that no worker runs a task
 * that could fork another one. */
static bool worker_expects_no_task(const fj_pool *p)
{
    /* relaxed: it does no harm if a worker notices late that it need not search. */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) == 0) return false;
    return fji_pool_active(p, fji_pool_ctl_hint(p)) <= (int)fji_search_slots(p);
}

/* Returns whether w, which has found no task, may continue to search instead of becoming idle. It
 * may until spin_ns of the pool have passed, or until no task can come (worker_expects_no_task()). It
 * may not if spin_ns is 0 or less, or if w has no searching slot and cannot take one
 * (fji_search_begin()). *until is 0 when w begins to spin; this function sets it to the time at
 * which the spinning ends. */
static bool worker_may_spin(fji_worker *w, int64_t *until)
{
    if (*until != 0) return fji_plat_now() < *until && !worker_expects_no_task(w->pool);
    if (w->pool->spin_ns <= 0 || !fji_search_begin(w)) return false;
    *until = fji_plat_now() + w->pool->spin_ns;
    return true;
}

/* Runs tasks until w has to exit. Returns true if the pool stops. Returns false if w has retired:
 * the control word then does not count w as active any more. */
static bool worker_loop(fji_worker *w)
{
    fj_pool *p = w->pool;
    fji_taken taken;
    int64_t until = 0;
    uint32_t turns = 0;

    while (!fji_pool_stopping(p)) {
        if (FJI_UNLIKELY(fji_worker_called(w))) fji_safepoint_take(w);
        /* While w spins, it reads the control word only in every 16th turn, because other threads
         * write to the cache line of the control word. */
        bool surplus = (until == 0 || turns % 16 == 0) && worker_is_surplus(p);
        fji_steal_result got = FJI_STEAL_EMPTY;
        if (!surplus) {
            /* The queue of w may still hold tasks, if w became idle because it was surplus. Before
             * w runs them, it gives its searching slot back or hands it to another worker. */
            if (w->q.fast.top > w->q.cells) fji_wake_after_find(w, false);
            worker_drain(w, &taken);
            got = fji_steal_any(w, &taken);
        }
        if (got == FJI_STEAL_SUCCESS) {
            until = 0;
            fji_run_taken(p, w, &taken);
            worker_drain(w, &taken);
            worker_reset(w);
            continue;
        }
        if (got == FJI_STEAL_RETRY || (!surplus && worker_may_spin(w, &until))) {
            fji_spin(&turns, 8, 64); /* the thread that caused RETRY may need the CPU */
            continue;
        }
        until = 0;
        if (!surplus) fji_queue_shrink(&w->q);
        fji_submissions_shrink(p);
        if (!fji_idle_wait(w)) return false;
    }
    fji_search_end(w);
    return true;
}

/* ---- Start and exit -------------------------------------------------------------------------- */

/* Called by the thread of w when it exits: gives the record of w back, and joins the thread of the
 * pool that exited before this one. */
static void worker_exit(fji_worker *w)
{
    fj_pool *p = w->pool;
    fji_thread before;

    fji_safepoint_leave(w);
    fji_lock_take(&p->lock);
    bool join = fji_pool_last_thread(p, w->awaited, &before);
    w->awaited = false;
    fji_store_relaxed(&w->has_thread, 0u);  /* relaxed: the lock of p orders it */
    fji_store_relaxed(&w->signallable, 0u); /* relaxed: as above */
    fji_record_give_back(w);
    fji_lock_drop(&p->lock);
    if (join) fji_plat_thread_join(before);
}

/* Subtracts `active` (0 or 1) from the active workers and 1 from the threads in the control word.
 * Then calls fji_pool_maybe_terminate(), because this may have been the last thread of a pool that
 * is shut down. */
static void worker_give_back_counts(fj_pool *p, int active)
{
    fji_ctl_add(p, -active, -1);
    fji_pool_maybe_terminate(p);
}

/* Called by w when the pool stops: cancels the detached tasks that are left in its queue, and
 * removes the other tasks. */
static void worker_cancel_rest(fji_worker *w)
{
    fji_taken taken;

    while (fji_worker_take_local(w, &taken)) {
        if (fji_item_is_detached(taken.item)) fji_cancel_taken(&taken); /* includes actions */
    }
}

/* The function that a worker thread runs. arg: the record of the worker. */
static void worker_main(void *arg)
{
    fji_worker *w = arg;
    fj_pool *p = w->pool;
    const fj_pool_options *o = &p->options;
    bool active = true;

    fji_self = &w->q.fast;
    w->thread = fji_plat_thread_self();
    /* [pool.thread] release -> acquire in shutdown_join_worker(): the thread handle w->thread. */
    fji_store_release(&w->has_thread, 1u);
    if (p->cpus != NULL) fji_plat_thread_bind(p->cpus, o->cpus_bytes);
    if (o->interrupt_signal != 0) {
        fji_plat_thread_allow(o->interrupt_signal);
        /* [pool.thread] release -> acquire in fji_pool_interrupt() and syscall_interrupt(): the
         * thread handle w->thread. */
        fji_store_release(&w->signallable, 1u);
    }
    fji_safepoint_enter(w);
    int err = o->on_start != NULL ? o->on_start(p, (int)w->index, o->arg) : FJ_OK;
    if (err != FJ_OK) {
        fji_spawn_failed(p);
        fji_pool_report(p, err);
    } else {
        fji_store_relaxed(&p->failed_starts, 0u); /* relaxed: a hint for fji_spawn_allowed() */
        active = worker_loop(w);
        if (fji_pool_stopping(p)) worker_cancel_rest(w);
    }
    if (o->on_stop != NULL) o->on_stop(p, (int)w->index, o->arg);
    fji_self = &fji_outsider;
    worker_exit(w);
    worker_give_back_counts(p, active ? 1 : 0);
    /* Only if this worker has retired, or on_start has returned an error: a producer may have
     * relied on this worker, so the queues are checked once more. */
    if ((active && err == FJ_OK) || fji_pool_stopping(p)) return;
    /* [idle.dekker] ctl above, the queues below; partner: the light fence in fj_fork(). Either the
     * producer sees in ctl that a worker is wanted, or this thread sees the task. */
    fji_pool_barrier(p);
    if (fji_pool_has_work(p)) fji_wake_one(p);
}

/* The function create_thread of fji_creator: calls the create_thread callback of the pool's
 * options. worker: the record of the new worker. Returns what the callback returns. */
static int worker_create(void *(*entry)(void *), void *arg, void *worker)
{
    const fji_worker *w = worker;
    const fj_pool_options *o = &w->pool->options;

    return o->create_thread(w->pool, entry, arg, o->arg);
}

static bool worker_start_thread(fji_worker *w, const char *name)
{
    const fj_pool_options *o = &w->pool->options;
    fji_creator how = {o->stack_bytes, o->create_thread != NULL ? worker_create : NULL, w};

    return fji_plat_thread_start(worker_main, w, &how, name);
}

bool fji_worker_start(fj_pool *p)
{
    const fj_pool_options *o = &p->options;
    char name[32];

    if (o->allow_thread != NULL && !o->allow_thread(p, o->arg)) return false;
    fji_lock_take(&p->lock);
    fji_worker *w = fji_pool_stopping(p) ? NULL : fji_record_take(p, FJI_ALIVE_WORKER);
    if (w != NULL) fji_count(&p->started, 1);
    fji_lock_drop(&p->lock);
    if (w == NULL) return false;
    (void)snprintf(name, sizeof name, "%s-%u", p->name, w->index);
    if (worker_start_thread(w, name)) return true;
    fji_safepoint_leave(w);
    fji_lock_take(&p->lock);
    fji_count(&p->started, (uint64_t)-1);
    fji_record_give_back(w);
    fji_lock_drop(&p->lock);
    return false;
}
