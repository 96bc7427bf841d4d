/* SPDX-License-Identifier: MIT */
/*
 * await.c - waiting for a task that another thread runs
 *
 * A waiter that works for the pool of the task and has no deadline helps (help.c) as long as it
 * finds tasks that it may run. Every waiter then spins for some time (await_spin_ns()), or longer
 * while a queue may hold a task that it may run, and then sleeps: on the state word of the task, or on a
 * wait bucket if the wait can be interrupted (interrupt.c). While it sleeps, another worker may run
 * in its place (compensate.c). task/task.h explains the state word.
 *
 * One waiter does not spin: a thread outside the pool that has just woken a sleeping worker, while
 * no worker runs the task yet. The woken worker may be waiting for the CPU of this thread
 * (fji_wake_made()).
 *
 * A guest, and a thread that does not work for the pool of the task, is not counted in the control
 * word of that pool. Such a waiter also wakes up every FJI_THREADLESS_POLL_NS, because the pool may
 * have queued tasks and no thread (threadless.c).
 *
 * Edges            from                                to                          carries
 *   task.done      acq_rel or, fji_task_complete(),    acquire load, await_done()  result and code
 *                    fji_cell_complete(); of a future:
 *                    fji_future_finish(), future_publish()
 *   join.chain     release store, await_done()         acquire load, help_thief()  the joined cell
 *   cancel.bucket  acq_rel, fji_wait_bucket_notify()   acquire load,               what changed
 *                                                        await_interruptible()
 */

#include "sched/await.h"

#include "plat/wait.h"
#include "sched/compensate.h"
#include "sched/help.h"
#include "sched/interrupt.h"
#include "sched/quiescent.h"
#include "sched/safepoint.h"
#include "sched/threadless.h"
#include "sched/wake.h"

/*
 * What is awaited. Either `cell` is a cell of the waiter's own queue whose task was stolen, and
 * `task` is NULL; or `task` is a submitted task or a future, and `cell` is NULL.
 *
 * The waiter runs tasks while it waits, and one of them may call fork(). In the child process the
 * awaited task is orphaned. If `task` is not NULL, the waiter finds this out with
 * await_is_orphaned(). If `cell` is not NULL, pool/atfork.c sets DONE and ORPHANED in the state
 * word of the cell, so the wait ends as usual.
 */
struct await {
    uint32_t *state;            /* the state word of the cell or of the task */
    const uint32_t *child_base; /* the member child_base of the cell or of the task */
    fj_cell *cell;
    const fj_task *task;
    const fji_wait *how;
};

/* Returns whether a->task is orphaned. Returns false if a cell is awaited. */
static bool await_is_orphaned(const struct await *a)
{
    /* relaxed: only compared with NULL. NULL means that the task was never queued; such a task is
     * not orphaned. */
    return a->task != NULL && fji_load_relaxed(&a->task->cell) != NULL &&
           fji_task_is_orphaned(a->task);
}

/* Returned by the functions that sleep, instead of a code, if the thread of w is called to a
 * broadcast. The caller takes part and waits again. */
#define AWAIT_CALLED 1

/* Returns FJ_ECANCELED if the wait is interruptible (how->interruptible) and the task that w runs
 * is interrupted. Otherwise returns FJ_ETIMEDOUT if the deadline has passed, AWAIT_CALLED if the
 * thread is called to a broadcast, and FJ_OK if the waiter has to continue to wait. w: the calling
 * worker or guest, or NULL if the calling thread works for no pool. */
static int await_gives_up(const fji_worker *w, const fji_wait *how)
{
    if (how->interruptible && w != NULL && fji_interrupted(w)) return FJ_ECANCELED;
    if (how->deadline != FJ_FOREVER && fji_plat_now() >= how->deadline) return FJ_ETIMEDOUT;
    return fji_called(w) ? AWAIT_CALLED : FJ_OK;
}

/*
 * Returns the time (fji_plat_now()) at which the next sleep has to end: the deadline, or an earlier
 * time. The sleep ends earlier if `watched` is not NULL, because the waiter then checks whether
 * that pool has threads. It also ends earlier if the pool of w, or a pool that the thread of the
 * guest w worked for before, is short of a worker, because w then asks for a worker again. w: the
 * calling worker or guest, or NULL if the calling thread works for no pool. *pause: the pause
 * before the next attempt, in ns; the caller sets it to 0 before the first call of a wait (see
 * fji_compensate_retry()).
 */
static int64_t await_next_check(fji_worker *w, const fji_wait *how, const fj_pool *watched,
                                int64_t *pause)
{
    int64_t check = watched != NULL ? fji_plat_now() + FJI_THREADLESS_POLL_NS : FJ_FOREVER;
    int64_t retry = w != NULL ? fji_compensate_retry(w, pause) : FJ_FOREVER;

    if (retry < check) check = retry;
    return check < how->deadline ? check : how->deadline;
}

/*
 * Sleeps on the state word until the awaited task is done or orphaned, or the deadline has passed.
 * w: the calling worker or guest, or NULL if the calling thread works for no pool. watched: the
 * pool of the task if the waiter is a guest or works for another pool or for none; otherwise NULL.
 * If `watched` has tasks and no threads, the waiter asks for a thread. If no thread starts and the
 * wait has no deadline, the waiter runs the tasks itself. Returns FJ_OK, FJ_ETIMEDOUT or
 * AWAIT_CALLED.
 */
static int await_sleep(fji_worker *w, const struct await *a, fj_pool *watched)
{
    int err = FJ_OK;
    int64_t pause = 0;
    /* [task.done] acq_rel <-> acq_rel in fji_task_complete(), fji_cell_complete(),
     * fji_future_finish() and future_publish(). Either this thread sees that the task is done, or
     * the thread that completes the task sees WAITING and wakes this thread. */
    uint32_t s = fji_or_acq_rel(a->state, FJI_WAITING) | FJI_WAITING;

    while ((s & a->how->done) == 0 && err == FJ_OK) {
        if (watched != NULL) fji_run_threadless(watched, fji_wait_may_run(a->how));
        if (await_is_orphaned(a)) break;
        fji_safepoint_sleep(w, a->state, s, await_next_check(w, a->how, watched, &pause));
        /* [task.done] acquire <- acq_rel in fji_task_complete(), fji_cell_complete(),
         * fji_future_finish() and future_publish(): result and code of the task. */
        s = fji_load_acquire(a->state);
        err = await_gives_up(w, a->how);
    }
    return (s & a->how->done) != 0 ? FJ_OK : err;
}

/* Sleeps on the wait bucket of the future a->task, so that a canceller can wake w. Ends as
 * await_sleep(), and also if the task that w runs is interrupted; then returns FJ_ECANCELED. */
static int await_interruptible(fji_worker *w, const struct await *a, fj_pool *watched)
{
    uint32_t *bucket = fji_wait_bucket(a->task);
    int64_t pause = 0;
    int err = FJ_OK;
    uint32_t s;

    fji_interruptible_begin(w, bucket);
    /* [task.done] acq_rel <-> acq_rel in fji_future_finish() and future_publish(). Either this
     * thread sees below that the future is done, or the thread that resolves the future sees
     * OBSERVED and notifies the bucket. */
    (void)fji_or_acq_rel(a->state, FJI_OBSERVED);
    for (;;) {
        /* [cancel.bucket] acquire <- acq_rel in fji_wait_bucket_notify(): the loads of the state
         * word, the token and the run state below see what the notifying thread has changed. */
        uint32_t seen = fji_load_acquire(bucket);
        /* [task.done] acquire <- acq_rel in fji_future_finish() and future_publish(): the outcome
         * of the future. */
        s = fji_load_acquire(a->state);
        if ((s & a->how->done) != 0 || await_is_orphaned(a)) break;
        if ((err = await_gives_up(w, a->how)) != FJ_OK) break;
        if (watched != NULL) fji_run_threadless(watched, fji_wait_may_run(a->how));
        fji_safepoint_sleep(w, bucket, seen, await_next_check(w, a->how, watched, &pause));
    }
    fji_interruptible_end(w);
    return (s & a->how->done) != 0 ? FJ_OK : err;
}

/* Sleeps until the wait ends: on the wait bucket if a->how->interruptible is true and w is not
 * NULL, otherwise on the state word. If w is a worker, it does not count as active while it sleeps.
 * Parameters and result: as those of await_sleep() and await_interruptible(). */
static int await_asleep(fji_worker *w, const struct await *a, fj_pool *watched)
{
    if (w == NULL) return await_sleep(w, a, watched);
    fji_compensation c = fji_compensate_begin_wait(w,
                                                   &(fji_fence_stop){a->state, a->how->done, true});
    if (a->how->guest) fji_quiesce_turn(w, FJI_PARK_QUIET);
    int err = a->how->interruptible ? await_interruptible(w, a, watched)
                                    : await_sleep(w, a, watched);
    if (a->how->guest) fji_quiesce_turn(w, FJI_PARK_ACTIVE);
    fji_compensate_end(w, c);
    return err;
}

/* Returns how long a waiter spins before it sleeps, in ns. A joiner that sleeps leaves the active
 * count, and its sleep costs two system calls and several changes of the control word. In a large
 * pool these cost more than a longer spin, if the pool has a CPU for each worker. counted: whether
 * the waiter is a worker of p. */
static int64_t await_spin_ns(const fj_pool *p, bool counted)
{
    return counted && fji_pool_is_large(p) && p->fence_waits ? FJI_JOIN_SPIN_LARGE_NS
                                                             : FJI_JOIN_SPIN_NS;
}

/*
 * Pauses between two reads of the state word, at first for a short time, because most tasks that a
 * waiter has to spin for end soon. Adds 1 to *turn, and yields the CPU to another thread if *turn is
 * then a multiple of 16. *until is the time at which the spinning ends; the caller sets
 * it to 0 before it begins to spin. Returns false if the waiter has spun for spin_ns.
 */
static bool await_spin(int64_t *until, uint32_t *turn, int64_t spin_ns)
{
    if (*until == 0) *until = fji_plat_now() + spin_ns;
    fji_spin(turn, *turn < 16 ? 2 : 16, 16);
    return fji_plat_now() < *until;
}

/* Helps, spins and sleeps until the task is done or orphaned, or the wait ends with an error. w and
 * pool: as for fji_await_task(). Returns FJ_OK if the task is done or orphaned, otherwise the
 * error FJ_ETIMEDOUT or FJ_ECANCELED. */
static int await_done(fji_worker *w, fj_pool *pool, const struct await *a)
{
    bool helps = w != NULL && w->pool == pool && fji_wait_may_run(a->how);
    bool counted = w != NULL && w->pool == pool && w->alive == FJI_ALIVE_WORKER;
    fj_cell *outer = NULL, *from = helps ? fji_worker_boundary(w) : NULL;
    bool spins = counted || !fji_wake_made();
    int64_t spin_ns = await_spin_ns(pool, counted);
    int64_t until = 0;
    uint32_t turn = 0;
    fji_awaited awaited = {a->state, a->child_base, a->how->token, a->how->root};
    int err = FJ_OK;

    if (w != NULL) {
        outer = w->joining;
        /* [join.chain] release -> acquire in help_thief(): the cell that w waits for, and what w
         * has written to it. */
        fji_store_release(&w->joining, a->cell);
    }
    for (;;) {
        /* [task.done] acquire <- acq_rel in fji_task_complete(), fji_cell_complete(),
         * fji_future_finish() and future_publish(): result and code of the task.
         * [join.thief] acquire <- release in fji_task_claim(): child_base of the task. */
        uint32_t s = fji_load_acquire(a->state);
        if ((s & a->how->done) != 0 || await_is_orphaned(a)) break;
        fji_steal_result got = helps ? fji_help_once(w, &awaited, s, from) : FJI_STEAL_EMPTY;
        if (got == FJI_STEAL_SUCCESS) {
            until = 0;
            continue;
        }
        if ((err = await_gives_up(w, a->how)) < FJ_OK) break;
        if (err == AWAIT_CALLED) {
            fji_safepoint_take(w);
            err = FJ_OK;
            continue;
        }
        /* RETRY: a queue may hold a task that w may run, so w does not sleep yet. */
        if (got == FJI_STEAL_RETRY) spins = true;
        if ((spins || (s & FJI_THIEF_MASK) != 0) && await_spin(&until, &turn, spin_ns)) continue;
        if (got == FJI_STEAL_RETRY) continue;
        /* A waiter that is not a worker of `pool` also checks whether `pool` has threads. */
        err = await_asleep(w, a, counted ? NULL : pool);
        if (err != AWAIT_CALLED) break;
        fji_safepoint_take(w);
        err = FJ_OK;
    }
    /* [join.chain] release -> acquire in help_thief(): the cell that an outer wait of w waits for,
     * or NULL. */
    if (w != NULL) fji_store_release(&w->joining, outer);
    return err;
}

int fji_await_task(fji_worker *w, fj_pool *pool, fj_task *t, const fji_wait *how)
{
    return await_done(w, pool, &(struct await){&t->state, &t->child_base, NULL, t, how});
}

bool fji_await_cell(fji_worker *w, fj_cell *c)
{
    (void)await_done(w, w->pool,
                     &(struct await){&c->state, &c->child_base, c, NULL, &FJI_WAIT_DONE});
    bool orphaned = (c->state & FJI_ORPHANED) != 0;
    /* relaxed: the thief does not write the word after DONE. A worker that follows the chain of
     * joins in help_thief() may still read the word; 0 names no thief, so that worker takes no
     * task. */
    fji_store_relaxed(&c->state, 0u);
    return !orphaned;
}
