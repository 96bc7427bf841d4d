/* SPDX-License-Identifier: MIT */
/*
 * future_wait.c - queueing one future, running it and waiting for it
 *
 * The bits of the state word are explained in future.c.
 *
 * Fast path of a join
 *   A worker that joins the future that it has forked last takes the future out of its own queue
 *   and runs it in fj_future_join(). The worker does not store itself in `runner`: it only enters
 *   the scope of the future's token (sched/scope.h). If the body succeeds and the state word is
 *   still 0, one CAS to DONE and RELEASED finishes the future. Workers of a pool with an
 *   interrupt_signal do not take this path, because they have to store themselves in `runner`:
 *   their scope_limit is NULL, so the check of the path fails. A worker whose array of scopes is
 *   full does not take it either.
 *
 * Waits
 *   A thread that waits without a deadline may run tasks: first the future itself, if it is still
 *   in the thread's own queue or in a submission queue, then tasks that the body has forked. A
 *   worker of the pool does so. A thread outside all pools becomes a guest of the pool in order to
 *   do so, if the pool lets callers help (`caller_helps`) and the future does not have the flag
 *   NOT_BY_CALLERS. If the parallelism of the pool is 0, every thread that does not work for the
 *   pool becomes a guest. All other threads sleep, and run tasks only while the pool has no thread.
 *   A thread that waits with a deadline runs no task, because it could not stop the task at the
 *   deadline. sched/await.c contains the sleep, and the help with tasks of the body.
 *
 * Edges         from                            to                              carries
 *   task.done   acq_rel CAS, fj_future_join()   acquire, fji_future_word()      outcome
 */

#include "future/future.h"
#include "plat/wait.h"
#include "pool/common_pool.h"
#include "pool/create.h"
#include "pool/submit.h"
#include "sched/guest.h"
#include "sched/interrupt.h"
#include "sched/own_queue.h"
#include "sched/scope.h"
#include "sched/wake.h"

/* ---- Queueing -------------------------------------------------------------------------------- */

bool fji_future_may_queue(const fj_future *f)
{
    if (f == NULL || f->fn == NULL || f->task.cell != NULL) return false;
    /* relaxed: another thread may resolve f meanwhile, but it does not set RELEASED, because f is
     * in no queue. If RELEASED is set and `cell` is NULL, fj_future_run() has run the body, and f
     * was not reinitialised since. */
    return (fji_load_relaxed(&f->task.state) & FJI_RELEASED) == 0;
}

int fji_future_queue(fj_pool *p, fj_future *f, bool outside, bool wake)
{
    (void)fj_future_ref(f);
    int err = fji_submit_future(p, &f->task, fji_completer_root(f), outside, wake);
    if (err != FJ_OK) fji_future_drop(f);
    return err;
}

/* Checks f with fji_future_may_queue() and queues it with fji_future_queue(), in the common pool if
 * `pool` is NULL. Returns FJ_EINVAL if f cannot be queued, FJ_ENOMEM if there is no memory for the
 * common pool, and otherwise the result of fji_future_queue(): FJ_OK, FJ_EREJECTED or FJ_ENOMEM.
 * `outside`, `wake`: see fji_future_queue(). */
static int future_queue(fj_pool *pool, fj_future *f, bool outside, bool wake)
{
    if (!fji_future_may_queue(f)) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    return p != NULL ? fji_future_queue(p, f, outside, wake) : FJ_ENOMEM;
}

int fj_future_submit(fj_pool *pool, fj_future *f)
{
    return future_queue(pool, f, false, true);
}

int fj_future_submit_external(fj_pool *pool, fj_future *f)
{
    return future_queue(pool, f, true, true);
}

int fj_future_submit_lazy(fj_pool *pool, fj_future *f)
{
    return future_queue(pool, f, false, false);
}

/* The slow path of fj_future_fork(). A worker or guest queues f in its pool, and runs f now if no
 * queue has space; it returns FJ_OK in both cases. A thread that works for no pool queues f in the
 * common pool and returns FJ_OK, FJ_EREJECTED or FJ_ENOMEM. Returns FJ_EINVAL if f cannot be
 * queued. The slow paths in this file are separate cold functions, so that the fast paths save no
 * registers for them. */
static FJI_COLD int future_fork_slow(fj_future *f)
{
    fji_worker *w = fji_worker_self();

    if (w == NULL) return future_queue(NULL, f, false, true);
    if (!fji_future_may_queue(f)) return FJ_EINVAL;
    if (fji_future_queue(w->pool, f, false, true) != FJ_OK) {
        (void)fj_future_ref(f);
        fji_task_mark_unqueued(&f->task, w->pool->submitted_cell);
        (void)f->task.fn(&f->task); /* f could not be queued: runs f now */
    }
    return FJ_OK;
}

int fj_future_fork(fj_future *f)
{
    /* relaxed: if another thread resolves f meanwhile, the thread that takes f out of the queue
     * sees that and does not run f. */
    bool quick = f != NULL && f->flags == 0 && f->task.cell == NULL &&
                 fji_load_relaxed(&f->task.state) == 0;

    if (FJI_LIKELY(quick && fji_push_future(&f->task, 0))) return FJ_OK;
    return future_fork_slow(f);
}

int fj_future_unfork(fj_future *f)
{
    if (f == NULL || f->task.cell == NULL || fj_future_is_done(f)) return 0;
    fj_pool *p = fji_cell_pool(f->task.cell);
    if (!fji_submit_take_back(p, &f->task, FJI_TAG_FUTURE)) return 0;
    fji_store_relaxed(&f->task.cell, (fj_cell *)NULL); /* relaxed: only the caller uses f now */
    fji_future_drop(f);
    return 1;
}

/* Returns whether f is done and a thread still calls listeners of f. */
static bool future_has_calls(const fj_future *f)
{
    uint32_t listened = FJI_DONE | FJI_LISTENED;

    /* [task.done] acquire <- acq_rel in future_listeners_end(): what the listeners did. */
    return (fji_load_acquire(&f->task.state) & (listened | FJI_CALLED)) == listened;
}

int fj_future_reinit(fj_future *f)
{
    if (f == NULL) return FJ_EINVAL;
    if (!fj_future_is_done(f) || fji_future_is_in_use(f) || fji_future_is_held(f)) return FJ_EBUSY;
    if (future_has_calls(f)) return FJ_EBUSY;
    f->task.cell = NULL;
    f->tag = 0;
    f->fail_seq = 0;
    if (!fji_completer_is_child(f)) f->token.word = 0;
    fji_store_relaxed(&f->task.state, 0u); /* relaxed: no other thread uses f */
    return FJ_OK;
}

/* ---- Futures in queues of other modules -------------------------------------------------------- */

int fji_future_adopt(fj_pool *pool, fj_future *f)
{
    const uint32_t special = FJI_FUTURE_COMPLETER | FJI_FUTURE_TIMER | FJI_FUTURE_LIMIT;

    if (!fji_future_may_queue(f) || (f->flags & special) != 0) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    (void)fj_future_ref(f);
    fji_task_mark_unqueued(&f->task, p->submitted_cell);
    return FJ_OK;
}

void fji_future_disown(fj_future *f)
{
    fji_store_relaxed(&f->task.cell, (fj_cell *)NULL); /* relaxed: no queue has f */
    fji_future_drop(f);
}

void fji_future_discard(fj_future *f)
{
    fji_or_relaxed(&f->task.state, FJI_DISCARDED); /* relaxed: only fn() below reads the bit */
    (void)f->task.fn(&f->task);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

int64_t fji_future_deadline(int64_t timeout_ns)
{
    return timeout_ns <= 0 ? FJI_ONLY_LOOK : fji_deadline(timeout_ns);
}

fj_pool *fji_future_pool(const fj_future *f)
{
    /* relaxed: the pool was created before f was queued in it. The program passed f to this thread
     * after that, so this thread sees the pool. */
    fj_cell *submitted = fji_load_relaxed(&f->task.cell);
    return submitted != NULL ? fji_cell_pool(submitted) : NULL;
}

/* If f is still in a submission queue of p or in the calling thread's own queue, takes f out and
 * runs it. Otherwise does nothing. */
static void future_take_back(fj_pool *p, fj_future *f)
{
    if (fji_submit_take_back(p, &f->task, FJI_TAG_FUTURE)) (void)f->task.fn(&f->task);
}

/* Waits for f without a deadline. p: the pool in which f, or a completer below f, was queued. If
 * the calling thread is a worker or guest of p, or may become a guest (fji_submit_caller_works()),
 * it runs f itself if f is still in its own queue or in a submission queue, and otherwise runs
 * tasks that f waits for. Returns as fji_future_await(), but does not cancel an orphaned f. */
static int future_await_working(fj_pool *p, fj_future *f, const fji_wait *how)
{
    fji_worker *w = fji_worker_self();
    int err = FJ_OK;
    bool own = w != NULL && w->pool == p;
    bool helps = p->caller_helps && (f->flags & FJI_FUTURE_NOT_BY_CALLERS) == 0;
    bool works = fji_submit_caller_works(p, helps);
    fji_worker *g = works && !own ? fji_guest_enter(p, true, NULL) : NULL;
    bool may_run = own || (g != NULL && !fji_pool_stopping(p));

    if (may_run && fji_load_relaxed(&f->task.cell) != NULL) /* relaxed: only compared */
        future_take_back(p, f);
    if ((fji_future_word(f) & how->done) == 0) { /* also after FJ_PENDING */
        fji_wait adjusted = *how;
        adjusted.guest = g != NULL;
        fji_wake_for_lazy(p);
        err = fji_await_task(g != NULL ? g : w, p, &f->task, &adjusted);
    }
    if (g != NULL) fji_guest_leave(g);
    return err;
}

/* Waits for f with a deadline. p: the pool in which f, or a completer below f, was queued. Runs no
 * task, because of the deadline. Returns as fji_future_await(), but does not cancel an orphaned
 * f. */
static int future_await_idly(fj_pool *p, fj_future *f, const fji_wait *how)
{
    fji_pool_needs_worker(p); /* the caller does not run f, so a worker has to */
    fji_wake_for_lazy(p);
    return fji_await_task(fji_worker_self(), p, &f->task, how);
}

void fji_future_orphan(fj_future *f)
{
    (void)fji_future_resolve(f, FJI_CANCELLED, NULL, FJ_ECANCELED, 0);
    fji_or_relaxed(&f->task.state, FJI_RELEASED); /* relaxed: no thread of the library has f */
}

/* Waits for f, which is in no queue: another thread decides its outcome, possibly in a task of the
 * common pool, which may have no worker. So a thread that works for no pool serves the common pool
 * while that has tasks and no thread, as if f were queued there. w: the calling worker or guest, or
 * NULL. Returns as fji_future_await(). */
static int future_await_unqueued(fji_worker *w, fj_future *f, const fji_wait *how)
{
    fj_pool *p = w != NULL ? w->pool : fji_common_if_made();

    if (w == NULL && p != NULL && !fji_wait_may_run(how)) fji_pool_needs_worker(p);
    return fji_await_task(w, p, &f->task, how);
}

int fji_future_await(fj_future *f, const fji_wait *how)
{
    fji_worker *w = fji_worker_self();
    fji_wait adjusted = *how;

    if ((fji_future_word(f) & how->done) != 0) return FJ_OK;
    /* f may be used to find its pool only if the pool cannot have been freed: while the library
     * uses f, or if f is a completer (how->root is its root), because then tasks with the same root
     * are in the pool. */
    fj_pool *p = how->root != NULL || fji_future_is_in_use(f) ? fji_future_pool(f) : NULL;
    if (p != NULL && fji_task_is_orphaned(&f->task)) {
        fji_future_orphan(f);
        return FJ_OK;
    }
    /* f is a completer that was not queued, for example a root that fj_completer_run() runs
     * directly, usually in this thread. The tasks below it are then in the pool of this thread, or
     * in the common pool if this thread works for no pool. */
    if (p == NULL && how->root != NULL) p = w != NULL ? w->pool : fji_common_if_made();
    if (how->interruptible && w != NULL && fji_interrupted(w)) return FJ_ECANCELED;
    if (how->deadline == FJI_ONLY_LOOK) return FJ_ETIMEDOUT;
    /* A thread that works for no pool has no task that could be interrupted. If it becomes a guest
     * below, a stop of the pool would count as an interrupt, but must not end this wait. */
    if (w == NULL) adjusted.interruptible = false;
    adjusted.token = &f->token;
    if (p == NULL) return future_await_unqueued(w, f, &adjusted);
    int err = fji_wait_may_run(how) ? future_await_working(p, f, &adjusted)
                                    : future_await_idly(p, f, &adjusted);
    /* If f is not done, a task that this thread ran during the wait has called fork(), this is the
     * child process, and f is orphaned. */
    if (err == FJ_OK && (fji_future_word(f) & how->done) == 0) fji_future_orphan(f);
    return err;
}

/* Waits until f is done, at most timeout_ns (see fji_future_deadline()). root: the root if f is a
 * completer, or 0. Returns as fji_future_await() does. */
static int future_wait_for(fj_future *f, int64_t timeout_ns, bool interruptible, uintptr_t root)
{
    fji_wait how = {.done = FJI_DONE,
                    .interruptible = interruptible,
                    .deadline = fji_future_deadline(timeout_ns),
                    .root = (void *)root};

    return fji_future_await(f, &how);
}

int fj_future_wait(fj_future *f, int64_t timeout_ns)
{
    return f != NULL ? future_wait_for(f, timeout_ns, true, fji_completer_root(f)) : FJ_EINVAL;
}

int fj_future_wait_quietly(fj_future *f, int64_t timeout_ns)
{
    return f != NULL ? future_wait_for(f, timeout_ns, false, fji_completer_root(f)) : FJ_EINVAL;
}

/* The slow path of fj_future_join(): waits until f is done and returns its code. Returns FJ_EINVAL
 * if f is NULL. */
static FJI_COLD int future_join_slow(fj_future *f)
{
    if (f == NULL) return FJ_EINVAL;
    (void)future_wait_for(f, FJ_FOREVER, false, fji_completer_root(f));
    return fji_future_code(f);
}

/* Called by fj_future_join() if the body of f has returned `code`, and the CAS of the fast path
 * cannot finish f. Finishes f, and if the body returned FJ_PENDING waits until f is done. Returns
 * the code of f. */
static FJI_COLD int future_join_finish(fj_future *f, int code)
{
    fji_future_finish(f, code);
    return fj_future_is_done(f) ? fji_future_code(f) : future_join_slow(f);
}

/* Called by fj_future_join() if the worker has taken f out of its own queue, but the fast path does
 * not apply. Runs f, waits until f is done and returns its code. */
static FJI_COLD int future_join_popped(fj_future *f)
{
    bool run = fji_task_is_unresolved(&f->task);

    if (f->task.fn != fji_future_run) {
        (void)f->task.fn(&f->task); /* a completer, a timer, or a future with a limit */
        return future_join_slow(f);
    }
    return future_join_finish(f, run ? fji_future_body(f, fji_worker_self()) : FJ_ECANCELED);
}

int fj_future_join(fj_future *f)
{
    fj_worker *fast = fji_self;
    fji_worker *w = (fji_worker *)(void *)fast; /* w is not valid if the thread works for no pool */
    uint32_t s = 0; /* the state word that the CAS expects: no waiter, not resolved */

    /* The task is the first member of f. If f is NULL, fji_pop_future() returns false, because no
     * queue holds NULL. */
    if (!fji_pop_future(fast, (fj_task *)(void *)f)) return future_join_slow(f);
    /* [task.done] acquire <- acq_rel in fji_future_resolve(): if this load reads DONE, what the
     * resolving thread did before. */
    bool quick = fji_load_acquire(&f->task.state) == 0 && f->flags == 0;
    fji_scope *scope = w->scope;
    if (FJI_UNLIKELY(!quick || scope >= w->scope_limit)) return future_join_popped(f);
    fji_scope_push(w, scope, &f->token, fast->top);
    int code = f->fn(&f->task);
    /* Leaves the scope. relaxed: the tasks that were stolen from this scope are done, so no thief
     * reads its entry any more. */
    fji_store_relaxed(&w->scope, scope);
    /* [task.done] acq_rel -> acquire in fji_future_word() and the waiters: the outcome. LAST TOUCH
     * of *f if the CAS succeeds. */
    bool plain = code == FJ_OK && fji_cas_acq_rel_32(&f->task.state, &s, FJI_DONE | FJI_RELEASED);
    return FJI_LIKELY(plain) ? FJ_OK : future_join_finish(f, code);
}

int fj_future_get(fj_future *f, int64_t timeout_ns, void **result)
{
    int err = fj_future_wait(f, timeout_ns);

    return err != FJ_OK ? err : fj_future_result(f, result);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Runs the body of f in the calling thread, unless f is resolved, and finishes f. f is not a
 * completer, not a timer, and in no queue. */
static void future_run_here(fj_future *f)
{
    bool run = fji_task_is_unresolved(&f->task);

    fji_future_finish(f, run ? fji_future_body(f, fji_worker_self()) : FJ_ECANCELED);
}

int fj_future_run(fj_future *f)
{
    if (f == NULL || (f->fn == NULL && !fj_future_is_done(f))) return FJ_EINVAL;
    if (f->task.cell == NULL && !fj_future_is_done(f)) {
        (void)fj_future_ref(f);
        if (f->task.fn == fji_future_run)
            future_run_here(f);
        else
            (void)f->task.fn(&f->task);
    }
    return fj_future_join(f);
}

int fj_future_invoke(fj_pool *pool, fj_future *f)
{
    fji_worker *w = fji_worker_self();

    if (!fji_future_may_queue(f)) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    if (w != NULL && w->pool == p) return fj_future_run(f);
    if (fji_submit_caller_works(p, p->caller_helps)) {
        fji_worker *g = fji_common_guest_enter(p);
        if (g != NULL) {
            int code = fj_future_run(f);
            fji_guest_leave(g);
            return code;
        }
    }
    int err = future_queue(p, f, true, true);
    return err != FJ_OK ? err : fj_future_join(f);
}

void fj_future_fini(fj_future *f)
{
    fji_wait how = {.done = FJI_RELEASED, .deadline = FJ_FOREVER};

    if (f == NULL || (f->flags & FJI_FUTURE_ALLOCATED) != 0) return;
    if (fji_future_is_in_use(f) && !fji_completer_is_child(f)) (void)fji_future_await(f, &how);
    if (future_has_calls(f)) {
        fji_listeners_call_deferred();
        how.done = FJI_CALLED;
        (void)fji_future_await(f, &how);
    }
}
