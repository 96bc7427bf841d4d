/* SPDX-License-Identifier: MIT */
/*
 * shutdown.c - ends a pool: shutdown, stop, termination
 *
 * A pool that is shut down runs every task that it has accepted, and every task that those tasks
 * fork, and then ends. docs/design/shutdown.md explains the design.
 *
 * The word `run` of a pool only gains bits, except in the common pool (see below). Threads that
 * wait for the end of the pool sleep on this word.
 *
 *     0 -> SHUTDOWN -> STOP -> TERMINATED
 *
 *   SHUTDOWN    The pool accepts no work from outside. Set by fj_pool_shutdown(),
 *               fj_pool_shutdown_now(), fj_pool_close() and fj_pool_destroy(). A submitter checks
 *               it with the lock of its submission queue, a guest with the lock of the pool, and a
 *               thread that schedules a timer with the lock of the timers.
 *   STOP        Idle workers are woken, queued tasks are cancelled, and workers exit. Set by
 *               fj_pool_shutdown_now(), or by a thread that finds that the pool is shut down and
 *               quiescent, and that no timer keeps it from ending. These threads call
 *               fji_pool_try_terminate(), which checks it: the caller of the shutdown or of
 *               fj_pool_cancel_delayed_on_shutdown(), a worker that becomes idle or exits, a guest
 *               that leaves, a timer thread, and a thread that waits for the end.
 *   TERMINATED  Threads that wait for the end return. Set with the lock of the pool by a thread
 *               that finds STOP set, no thread counted in the control word, and no guest
 *               (fji_pool_end_if_over()).
 *
 * The common pool has one more bit. An attempt to end the common pool fails if the pool has work.
 * No submission may be refused because of an attempt that fails, so submitters wait until the
 * attempt has succeeded or failed:
 *
 *   CLOSING     fj_common_shutdown() checks whether the common pool is quiescent. If it is,
 *               SHUTDOWN and STOP are set in one step; otherwise CLOSING is cleared. A submitter,
 *               or a thread that schedules a timer, that sees CLOSING waits for the outcome
 *               (fji_common_again()).
 *
 * The record of the common pool is static (common_pool.c). All bits are cleared when the common
 * pool is created again.
 *
 * After TERMINATED is set, these threads may still access the pool:
 *   - a worker thread that exits. Each exiting thread joins the thread that exited before it, and
 *     fji_pool_join() joins the last one. fji_pool_close() joins one worker earlier;
 *   - a guest or timer thread that is releasing the lock of the pool, or a submitter that is
 *     releasing the lock of a submission queue. That is its last access, and fji_pool_join() takes
 *     each of these locks once more.
 *
 * Edges            from                                to                            carries
 *   pool.end       release or, fji_pool_shutdown()     acquire, pool_run()           SHUTDOWN
 *   pool.end       acq_rel or, shutdown_stop()         acquire, try_terminate()      STOP
 *   pool.end       release or, fji_pool_end_if_over()  acquire, fji_pool_await_end() the end
 *   pool.activity  acq_rel add, fji_guest_enter()      acquire, shutdown_stop()      a guest came
 *   pool.thread    release store, worker_main()        acquire,                      the handle
 *                                                        shutdown_join_worker()
 *
 * Pairs of full fences   here                     partner                      order run against
 *   pool.end             fji_pool_shutdown()      fji_pool_maybe_terminate()   the park words
 *   pool.end             fji_pool_shutdown()      fji_submissions_get()        a new queue
 *   pool.end             fji_pool_stop_common()   fji_submissions_get()        a new queue
 *   pool.end             shutdown_stopped()       fji_pool_maybe_terminate()   the idle stack
 *   pool.end             shutdown_stopped()       fji_submissions_get()        a new queue
 *   common.hold          shutdown_stopped()       fji_pool_hold()              the count of holds
 *   timer.made           fji_pool_shutdown()      fji_timers_of()              the timers
 *   timer.made           fji_pool_stop_common()   fji_timers_of()              the timers
 */

#include "pool/shutdown.h"

#include "plat/wait.h"
#include "pool/timers.h"
#include "sched/check.h"
#include "sched/compensate.h"
#include "sched/interrupt.h"
#include "sched/lifetime.h"
#include "sched/quiescent.h"
#include "sched/run.h"
#include "sched/safepoint.h"
#include "sched/threadless.h"
#include "sched/wake.h"

/* ---- Stopping -------------------------------------------------------------------------------- */

/* Called after STOP was set. Cancels the tasks in the submission queues of p, and then the tasks in
 * the queues of the workers and guests, from the oldest on. In the queue of a worker or guest it
 * stops at the first typed task, which the owner runs at the join: a typed task has no error code,
 * so it cannot report FJ_ECANCELED. It also stops at a steal attempt that returns EMPTY or
 * RETRY. */
static void shutdown_cancel_queued(fj_pool *p)
{
    fji_taken taken;
    uint32_t n = fji_pool_nworkers(p);

    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q == NULL) continue;
        /* A submitter that takes this lock later sees STOP and queues nothing. The tasks are
         * cancelled without the lock, because a release function or a callback may call the
         * library. */
        fji_lock_take(&q->lock);
        fji_lock_drop(&q->lock);
        while (fji_submission_queue_maybe(q))
            if (fji_submission_queue_steal(q, &taken) == FJI_STEAL_SUCCESS)
                fji_cancel_taken(&taken);
    }
    for (uint32_t i = 0; i < n; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        while (w != NULL && fji_queue_steal_untyped(&w->q, &taken) == FJI_STEAL_SUCCESS)
            fji_cancel_taken(&taken);
    }
}

/*
 * Sets SHUTDOWN and STOP if `now` is true, or if the pool is quiescent and no timer keeps it from
 * ending. Returns true and sets *run to the previous run state if it did so, otherwise returns
 * false.
 *
 * A guest may enter the pool while fji_pool_quiescent() scans it. A guest enters with the lock of
 * the pool and changes activity_epoch. So if activity_epoch has changed since the scan began, this
 * function scans the pool again. A guest that takes the lock after STOP is set is refused.
 */
static bool shutdown_stop(fj_pool *p, bool now, uint32_t *run)
{
    for (;;) {
        /* [pool.activity] acquire <- acq_rel in fji_guest_enter(): the records of the guests whose
         * entry is counted in the value that this load reads. */
        uint64_t activity = fji_load_acquire(&p->activity_epoch);
        /* The timers are checked before the queues, because a timer that fires counts as waiting
         * until it is in a queue. In the opposite order both checks could miss it. */
        if (!now && (fji_timers_wait(p) || !fji_pool_quiescent(p, true))) return false;
        fji_lock_take(&p->lock);
        bool same = now || fji_load_relaxed(&p->activity_epoch) == activity; /* relaxed: the lock */
        /* [pool.end] acq_rel -> acquire in fji_pool_try_terminate(): STOP. If several threads set
         * it, all but the first find it in *run. SHUTDOWN is not set yet only if p is the common
         * pool. */
        if (same) *run = fji_or_acq_rel(&p->run, FJI_RUN_SHUTDOWN | FJI_RUN_STOP);
        fji_lock_drop(&p->lock);
        if (same) return true;
    }
}

/* Called after shutdown_stop() has returned true. run: the run state before that call. If it had no
 * STOP, the caller is the thread that stopped the pool: then cancels the queued tasks and the
 * timers, and if `now` is true also interrupts the running tasks. */
static void shutdown_stopped(fj_pool *p, bool now, uint32_t run)
{
    /* [pool.end] run above, ctl and the submission queues below; partners: the fences in
     * fji_pool_maybe_terminate() and fji_submissions_get(). If a worker becomes idle meanwhile,
     * either this thread finds it on the idle stack, or the worker sees STOP. If a submitter
     * creates a queue meanwhile, either this thread finds the queue, or the submitter sees STOP.
     * [common.hold] run above, the number of holds below; partner: the fence in fji_pool_hold().
     * Either the thread that ends the common pool sees the hold, or the holder sees STOP. */
    fji_fence_full();
    if ((run & FJI_RUN_STOP) != 0) return;
    shutdown_cancel_queued(p);
    /* If `now` is false, p is quiescent, so no task runs that could be interrupted. */
    if (now) fji_pool_interrupt(p);
    fji_timers_shutdown(p);
}

void fji_pool_try_terminate(fj_pool *p, bool now)
{
    /* [pool.end] acquire <- release in fji_pool_shutdown(), acq_rel in shutdown_stop(): what the
     * thread that set the bit did before. */
    uint32_t run = fji_load_acquire(&p->run);

    if ((run & FJI_RUN_STOP) == 0) {
        if ((run & FJI_RUN_SHUTDOWN) == 0) return;
        if (!shutdown_stop(p, now, &run)) {
            /* A task that was queued without a wake-up would keep the pool from ending, so this
             * thread wakes a worker for it. */
            if (fji_pool_has_work(p)) fji_wake_one(p);
            return;
        }
        shutdown_stopped(p, now, run);
    }
    fji_wake_all_idle(p);
    fji_lock_take(&p->lock);
    bool over = fji_pool_end_if_over(p);
    fji_lock_drop(&p->lock);
    if (over) fji_plat_wake_all(&p->run);
}

void fji_pool_shutdown(fj_pool *p, bool now)
{
    /* [pool.end] release -> acquire in pool_run() and fji_pool_try_terminate(): what the caller did
     * before the shutdown. */
    fji_or_release(&p->run, FJI_RUN_SHUTDOWN);
    /* [pool.end] run above, the park words and the submission queues below; partners: the fences in
     * fji_pool_maybe_terminate() and fji_submissions_get(). If a worker becomes idle meanwhile,
     * either this thread sees that, or the worker sees SHUTDOWN. If a submitter creates a queue
     * meanwhile, either this thread sees the queue, or the submitter sees SHUTDOWN.
     * [timer.made] run above, p->timers below; partner: the fence in fji_timers_of(). Either this
     * thread sees the record of the timers, or the thread that adds a timer sees SHUTDOWN. */
    fji_fence_full();
    fji_timers_shutdown(p);
    fji_pool_try_terminate(p, now);
}

/* ---- Waiting for the end --------------------------------------------------------------------- */

/*
 * Sleeps until p->run differs from `run`, but at most until the first of these times:
 * FJI_THREADLESS_POLL_NS from now, `retry`, `deadline`. The caller then checks the pool again,
 * because possibly no thread ends it: the only thread that the control word counts may be one whose
 * start the system is about to refuse. Returns false if the deadline has passed.
 */
static bool shutdown_wait_a_while(fj_pool *p, uint32_t run, int64_t deadline, int64_t retry)
{
    fji_worker *w = fji_worker_self();
    int64_t next_check = fji_plat_now() + FJI_THREADLESS_POLL_NS;

    if (retry < next_check) next_check = retry;
    if (deadline <= next_check) return fji_safepoint_sleep(w, &p->run, run, deadline);
    fji_safepoint_sleep(w, &p->run, run, next_check);
    return true;
}

bool fji_pool_is_own_thread(const fj_pool *p)
{
    return fji_inside(p) || fji_timers_is_own_thread(p);
}

bool fji_pool_await_end(fj_pool *p, int64_t deadline)
{
    fji_worker *w = fji_worker_self();
    fji_compensation c = w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED;
    int64_t pause = 0;
    bool in_time = true;
    uint32_t run;

    /* [pool.end] acquire <- release in fji_pool_end_if_over(): what the threads of p did. */
    while (((run = fji_load_acquire(&p->run)) & FJI_RUN_TERMINATED) == 0 && in_time) {
        c = fji_safepoint_blocked(w, c);
        fji_run_threadless(p, deadline == FJ_FOREVER);
        fji_pool_try_terminate(p, false);
        int64_t retry = w != NULL ? fji_compensate_retry(w, &pause) : FJ_FOREVER;
        in_time = shutdown_wait_a_while(p, run, deadline, retry);
    }
    if (w != NULL) fji_compensate_end(w, c);
    return (run & FJI_RUN_TERMINATED) != 0;
}

/*
 * Joins one worker thread of p, which is shut down, if p has a worker and no other thread joins it.
 * The threads of p exit when p ends, and p does not end before that. So the caller, which waits for
 * both, may sleep in the join. It then wakes up once, when the thread has ended. If it slept on
 * p->run instead, it would wake up when the thread is about to exit, and sleep again in
 * fji_pool_join(). The thread may also retire before p ends.
 */
static void shutdown_join_worker(fj_pool *p)
{
    fji_worker *w = NULL;

    fji_lock_take(&p->lock);
    for (uint32_t i = 0; i < p->workers && w == NULL; i++) {
        fji_worker *v = fji_pool_worker(p, i);
        /* [pool.thread] acquire <- release in worker_main(): the thread handle v->thread. */
        if (v != NULL && fji_load_acquire(&v->has_thread) != 0 && !v->awaited) w = v;
    }
    if (w == NULL) {
        fji_lock_drop(&p->lock);
        return;
    }
    w->awaited = true;
    fji_thread thread = w->thread;
    fji_lock_drop(&p->lock);
    fji_plat_thread_join(thread);
}

void fji_pool_close(fj_pool *p)
{
    fji_pool_shutdown(p, false);
    /* A worker of another pool sleeps in fji_pool_await_end(), where it does not count as active. */
    if (fji_worker_self() == NULL) shutdown_join_worker(p);
    (void)fji_pool_await_end(p, FJ_FOREVER);
}

/* After the end of p: returns whether the control word counts no thread, no active worker and no
 * idle worker, and p counts no guest and no blocked worker. */
static bool shutdown_is_empty(const fj_pool *p)
{
    uint64_t c = fji_pool_ctl(p);

    return fji_ctl_total(c) == 0 && fji_ctl_top(c) == 0 && p->guests == 0 && p->blocked == 0 &&
           fji_ctl_deficit(c) + p->parallelism == 0;
}

void fji_pool_join(fj_pool *p)
{
    /* A thread that still holds the lock of p, or of a submission queue below, only releases it:
     * that is the last access of the thread to p. So this thread waits for it by taking each
     * lock. */
    fji_lock_take(&p->lock);
    bool last_exited = p->has_last_exited;
    p->has_last_exited = false;
    fji_lock_drop(&p->lock);
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q == NULL) continue;
        fji_lock_take(&q->lock);
        fji_lock_drop(&q->lock);
    }
    /* The control word does not count a worker that exits any more, but the worker may still read
     * the queues and wake another worker. Each exiting thread joins the thread that exited before
     * it. So joining the thread that exited last waits for all of them. */
    if (last_exited) fji_plat_thread_join(p->last_exited);
    fji_check(p, shutdown_is_empty(p));
}

/* ---- The end of the common pool -------------------------------------------------------------- */

bool fji_pool_stop_common(fj_pool *p)
{
    uint32_t run;

    /* The caller joins the threads of the pool, so they must not detach themselves. leavers_detach
     * is true if a destructor calls fj_common_shutdown() after common_at_exit() has run. */
    fji_lock_take(&p->lock);
    p->leavers_detach = false;
    fji_lock_drop(&p->lock);
    /* From here on a submitter that finds the bit CLOSING in `run` waits until this attempt to end
     * the common pool has succeeded or failed.
     * [pool.end] acq_rel; a submitter reads `run` with the lock of its submission queue. */
    fji_or_acq_rel(&p->run, FJI_RUN_CLOSING);
    /* [pool.end] run above, the submission queues below; partner: the fence in
     * fji_submissions_get(). Either this thread sees a new queue, or the submitter sees CLOSING.
     * [timer.made] run above, p->timers below; partner: the fence in fji_timers_of(). Either this
     * thread sees the record of the timers, or the thread that adds a timer sees CLOSING. */
    fji_fence_full();
    if (shutdown_stop(p, false, &run)) return true;
    /* The common pool is not quiescent, or a timer keeps it from ending. So it does not end. From
     * here on submitters find `run` without the bit CLOSING, which made them wait, and queue their
     * tasks again.
     * [pool.end] acq_rel as above. The store publishes nothing else to submitters: they read `run`
     * relaxed, with the lock of their submission queue. */
    fji_and_acq_rel(&p->run, ~FJI_RUN_CLOSING);
    return false;
}

void fji_pool_end_common(fj_pool *p)
{
    uint32_t run;

    shutdown_stopped(p, false, 0);
    /* [pool.end] acquire <- release in fji_pool_end_if_over(): what the threads of p did. */
    while (((run = fji_load_acquire(&p->run)) & FJI_RUN_TERMINATED) == 0) {
        fji_pool_try_terminate(p, false);
        (void)shutdown_wait_a_while(p, run, FJ_FOREVER, FJ_FOREVER);
    }
    fji_pool_join(p);
}
