/* SPDX-License-Identifier: MIT */
/*
 * completer.c - tasks that count their pending children instead of joining them
 *
 * A completer gets one report from each of its children, and one from its body if the body calls
 * fj_completer_try_complete(). Its pending count, `pending`, is the number of reports that are
 * still missing, minus 1. A thread that reports to a completer reads the pending count:
 *
 *     count != 0  The thread decrements the count by CAS. That is its LAST TOUCH of the completer,
 *                 because another thread may complete and free the completer afterwards.
 *     count == 0  This is the last report, and no other thread finds 0. The thread completes the
 *                 completer: it calls on_completion, and then reports to the parent. If there is no
 *                 parent, it makes the completer, which is a root, done.
 *
 * fj_completer_fail() reports a failure to the parent at once, whatever the pending counts are: the
 * parent fails too. The thread that resolves a completer with such a failure calls the completer's
 * on_error before other threads see the completer as done, so that no waiter frees a root that
 * on_error still reads. If on_error returns 0, the failure is not reported to the parent. The bit
 * REPORTED of the state word makes sure that a failure is reported to the parent only once
 * (future.c). fj_future_fail() and fj_future_cancel() resolve only the completer itself: they call
 * no on_error and report nothing.
 *
 * The cell or slot of a queue that holds a completer also holds the address of its root. So a
 * thread that waits for a root and helps can tell whether a queued task belongs to that root
 * without reading the task, which may be freed.
 *
 * Edges                 from                                to                         carries
 *   completer.pending   acq_rel CAS, completer_decrement()  acquire load,              what a child
 *                                                           completer_decrement()      did
 *   task.done           acq_rel or, fji_completer_run()     acquire, fj_future_fini()  RELEASED
 */
#include "future/future.h"
#include "pool/common_pool.h"
#include "pool/submit.h"
#include "sched/help.h"
#include "sched/own_queue.h"
#include "sched/scope.h"

/* ---- Running --------------------------------------------------------------------------------- */

/* fj_task.fn of a completer. It is called by a thread that has taken the completer t out of a queue,
 * or that runs t directly. Runs the body of t. If the body returns a code other than FJ_OK, t fails
 * with that code. If the calling thread is a worker or guest, the body runs in a scope with the
 * root's token. If t was discarded, it fails with FJ_ECANCELED and the body does not run. If t is
 * done already, the body does not run either. */
int fji_completer_run(fj_task *t)
{
    fj_completer *c = (fj_completer *)t;
    fji_worker *w = fji_worker_self();
    bool root = c->parent == NULL;

    /* [task.done] acquire <- acq_rel in fji_future_resolve(): if this load reads DONE, what the
     * resolving thread did before. */
    uint32_t s = fji_load_acquire(&t->state);
    bool discarded = (s & FJI_DISCARDED) != 0;
    if (discarded) fj_completer_fail(c, FJ_ECANCELED);
    /* [task.done] release -> acquire in fj_future_fini(): that no queue has the root any more. Only
     * a root needs RELEASED, because fj_future_fini() waits only for roots. LAST TOUCH of *c if c
     * is a root whose body is not called below, because c was discarded or is done already: a
     * waiter may then free c. */
    if (root) s = fji_or_acq_rel(&t->state, FJI_RELEASED);
    if (root && (s & FJI_WAITING) != 0) fji_plat_wake_all(&t->state);
    if (!discarded && (s & FJI_DONE) == 0) {
        fji_scope_saved saved = {0};
        const fj_token *token = &c->root->future.token;
        if (w != NULL) saved = root ? fji_scope_enter(w, token) : fji_scope_enter_stolen(w, token);
        uint32_t generation = fji_fork_generation;
        /* LAST TOUCH of *c unless the body fails: a body that succeeds may have completed c. */
        int code = c->future.fn(t);
        if (w != NULL) fji_scope_leave(w, saved);
        if (code != FJ_OK && generation == fji_fork_generation) fj_completer_fail(c, code);
    }
    return FJI_COMPLETES_ITSELF;
}

/* Queues c in p and wakes a worker. Returns FJ_OK; FJ_EREJECTED if p is shut down and the caller
 * does not work for p; or FJ_ENOMEM. If p is the common pool and is shut down, waits for its end
 * and queues c in the next common pool. p is NULL if there was no memory for the common pool; then
 * returns FJ_ENOMEM. */
static int completer_queue(fj_pool *p, fj_completer *c)
{
    if (p == NULL) return FJ_ENOMEM;
    return fji_submit_future(p, &c->future.task, (uintptr_t)c->root, false, true);
}

static bool completer_may_queue(const fj_completer *c)
{
    return c != NULL && c->future.fn != NULL && c->future.task.cell == NULL;
}

/* The slow path of fj_completer_fork(). A worker or guest queues c in its pool, and runs c now if
 * no queue has space; it returns FJ_OK in both cases. A thread that works for no pool queues c in
 * the common pool and returns the result of completer_queue(). Returns FJ_EINVAL if c is NULL, has
 * no body or was queued before. */
static FJI_COLD int completer_fork_slow(fj_completer *c)
{
    fji_worker *w = fji_worker_self();

    if (!completer_may_queue(c)) return FJ_EINVAL;
    if (w == NULL) return completer_queue(fj_common_pool(), c);
    if (completer_queue(w->pool, c) != FJ_OK) (void)fji_completer_run(&c->future.task);
    return FJ_OK;
}

int fj_completer_fork(fj_completer *c)
{
    bool is_new = c != NULL && c->future.flags == FJI_FUTURE_COMPLETER &&
                  c->future.task.cell == NULL;
    bool quick = is_new && fji_push_future(&c->future.task, (uintptr_t)c->root);

    return FJI_LIKELY(quick) ? FJ_OK : completer_fork_slow(c);
}

int fj_completer_submit(fj_pool *pool, fj_completer *c)
{
    return completer_may_queue(c) ? completer_queue(fji_pool_or_common(pool), c) : FJ_EINVAL;
}

int fj_completer_run(fj_completer *c)
{
    return c != NULL ? fj_future_run(&c->future) : FJ_EINVAL;
}

int fj_completer_invoke(fj_pool *pool, fj_completer *c)
{
    fji_worker *w = fji_worker_self();

    if (!completer_may_queue(c)) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (w != NULL && p != NULL && w->pool == p) return fj_completer_run(c);
    int err = completer_queue(p, c);
    return err != FJ_OK ? err : fj_completer_join(c);
}

int fj_completer_join(fj_completer *c)
{
    return c != NULL ? fj_future_join(&c->future) : FJ_EINVAL;
}

/* ---- Parent and root ------------------------------------------------------------------------- */

fj_completer *fj_completer_parent(const fj_completer *c)
{
    return c != NULL ? c->parent : NULL;
}

fj_completer *fj_completer_root(const fj_completer *c)
{
    return c != NULL ? c->root : NULL;
}

/* ---- The count ------------------------------------------------------------------------------- */

static uint32_t *completer_count(const fj_completer *c)
{
    return (uint32_t *)(uintptr_t)&c->future.pending;
}

int32_t fj_completer_pending(const fj_completer *c)
{
    if (c == NULL) return 0;
    /* [completer.pending] acquire <- acq_rel in completer_decrement(): what the children did before
     * they reported to c. */
    return (int32_t)fji_load_acquire(completer_count(c));
}

void fj_completer_add_pending(fj_completer *c, int32_t n)
{
    if (c == NULL) return;
    /* [completer.pending] acq_rel -> acquire in completer_decrement(): what the caller did before
     * this call. */
    fji_add_acq_rel(completer_count(c), (uint32_t)n);
}

int fj_completer_cas_pending(fj_completer *c, int32_t expected, int32_t n)
{
    uint32_t old = (uint32_t)expected;

    if (c == NULL) return 0;
    /* [completer.pending] acq_rel -> acquire in completer_decrement(): what the caller did before
     * this call. */
    return fji_cas_acq_rel_32(completer_count(c), &old, (uint32_t)n);
}

/* Makes one report to c (see the head of this file): decrements the pending count of c unless it is
 * 0. Returns the old count. 0 means that this was the last report, so the caller completes c. */
static inline int32_t completer_decrement(fj_completer *c)
{
    /* [completer.pending] acquire <- acq_rel in the CAS below, executed for the other children:
     * what these children did before they reported to c. */
    uint32_t n = fji_load_acquire(completer_count(c));

    /* [completer.pending] acq_rel -> acquire load above, executed by the thread that makes the last
     * report: what this child did. LAST TOUCH of *c if the count was not 0. */
    while (n != 0 && !fji_cas_acq_rel_32(completer_count(c), &n, n - 1)) {}
    return (int32_t)n;
}

int32_t fj_completer_decrement(fj_completer *c)
{
    return c != NULL ? completer_decrement(c) : 0;
}

/* ---- Completing ------------------------------------------------------------------------------ */

/* Calls fj_completer_fail(). A separate cold function, so that completer_go_up() does not save
 * registers for this call when no on_completion fails. */
static FJI_COLD void completer_failed(fj_completer *c, int code)
{
    fj_completer_fail(c, code);
}

/* Called when the root c and all completers below it have finished: makes c done, with success and
 * the value of its member `result`. Has no effect if c is resolved already. */
static void completer_end(fj_completer *c)
{
    /* relaxed: the body and the callbacks have set `result`, and the pending counts order these
     * stores before this load. */
    void *result = fji_load_relaxed(&c->future.result);

    (void)fji_future_resolve(&c->future, 0, result, FJ_OK, FJI_RESOLVE_QUIETLY);
}

/* Makes one report to c. If it is the last report, completes c and makes a report to the parent of
 * c, and so on upwards; a root that is completed becomes done. If `call_back` is true, calls
 * on_completion of each completer that it completes; if on_completion returns an error, that
 * completer fails instead, and no further report is made. */
static inline void completer_go_up(fj_completer *c, bool call_back)
{
    fj_completer *caller = c;

    while (completer_decrement(c) == 0) {
        int code = call_back && c->on_completion != NULL ? c->on_completion(c, caller) : FJ_OK;
        if (FJI_UNLIKELY(code != FJ_OK)) {
            completer_failed(c, code);
            return;
        }
        caller = c;
        c = c->parent;
        if (c == NULL) {
            completer_end(caller);
            return;
        }
    }
}

void fj_completer_try_complete(fj_completer *c)
{
    if (c != NULL) completer_go_up(c, true);
}

void fj_completer_propagate(fj_completer *c)
{
    if (c != NULL) completer_go_up(c, false);
}

void fj_completer_complete(fj_completer *c, void *result)
{
    if (c == NULL) return;
    fj_completer *parent = c->parent;
    c->future.result = result;
    int code = c->on_completion != NULL ? c->on_completion(c, c) : FJ_OK;
    if (code != FJ_OK) {
        fj_completer_fail(c, code);
        return;
    }
    (void)fj_future_complete(&c->future, result); /* LAST TOUCH of *c if it is a root. */
    if (parent != NULL) completer_go_up(parent, true);
}

/*
 * Resolves c with the failure `code` (with a cancel if `code` is FJ_ECANCELED), then calls its
 * on_error, then makes c done for all threads. caller: the argument `caller` of on_error, which is
 * the child that reports the failure, or c if no child does. Sets *go_up to whether the parent
 * fails too, which on_error decides; to true if there is no on_error. Returns false if c was
 * resolved before; then on_error is not called and *go_up is true.
 */
static bool completer_resolve(fj_completer *c, int code, fj_completer *caller, bool *go_up)
{
    fj_error_fn *on_error = c->on_error;
    uint32_t bits = code == FJ_ECANCELED ? FJI_CANCELLED : FJI_FAILED;
    unsigned how = FJI_RESOLVE_REPORTS | (on_error != NULL ? FJI_RESOLVE_HOLDS : 0);
    fji_held held;

    *go_up = true;
    if (!fji_future_resolve(&c->future, bits, NULL, code, how)) return false;
    if (on_error == NULL) return true;
    fji_future_hold(&c->future, &held);
    *go_up = on_error(c, code, caller) != 0;
    fji_future_publish_held(&held); /* LAST TOUCH of *c if it is a root. */
    return true;
}

void fj_completer_fail(fj_completer *c, int code)
{
    fj_completer *caller = c;
    bool go_up;

    if (c == NULL) return;
    if (code == FJ_OK) code = FJ_EFAILED;
    do {
        fj_completer *parent = c->parent;
        bool resolved = completer_resolve(c, code, caller, &go_up);
        /* A failure or cancel by fj_future_fail() or fj_future_cancel() is not reported to the
         * parent. If one of these calls has resolved the completer that was passed to this function
         * (c is equal to caller), its failure is reported to the parent here.
         * fji_future_claim_report() makes sure that this happens only once. If the passed completer
         * has succeeded, or if a completer further up was resolved before, the loop ends. */
        if (!resolved && (c != caller || parent == NULL)) return;
        if (!resolved && !fji_future_claim_report(&c->future)) return;
        caller = c;
        c = go_up ? parent : NULL;
    } while (c != NULL);
}

fj_completer *fj_completer_first(fj_completer *c)
{
    return c != NULL && completer_decrement(c) == 0 ? c : NULL;
}

fj_completer *fj_completer_next(fj_completer *c)
{
    if (c == NULL) return NULL;
    if (c->parent != NULL) return fj_completer_first(c->parent);
    completer_end(c);
    return NULL;
}

void fj_completer_complete_root(fj_completer *c)
{
    if (c != NULL) (void)fj_future_complete_quietly(&c->root->future);
}

int fj_completer_help(fj_completer *c, int most)
{
    fji_worker *w = fji_worker_self();
    int n = 0;

    if (w == NULL || c == NULL) return 0;
    uintptr_t root = (uintptr_t)c->root;
    while (n < most && !fj_future_is_done(&c->future)) {
        fji_steal_result got = fji_help_root(w, root);
        if (got == FJI_STEAL_EMPTY) break;
        n += got == FJI_STEAL_SUCCESS;
        if (got == FJI_STEAL_RETRY) fji_pause();
    }
    return n;
}

/* Returns child i of the array that was passed to fj_completer_fork_all(). */
static fj_completer *child_at(void *first, size_t i, size_t stride)
{
    return (fj_completer *)(void *)((char *)first + i * stride);
}

int fj_completer_fork_all(fj_completer *parent, void *first, size_t n, size_t stride)
{
    if (parent == NULL || n == 0 || n > INT32_MAX) return FJ_EINVAL;
    if (!fji_structs_ok(first, n, stride, sizeof(fj_completer))) return FJ_EINVAL;
    for (size_t i = 0; i < n; i++) {
        const fj_completer *c = child_at(first, i, stride);
        if (c->parent != parent || !completer_may_queue(c)) return FJ_EINVAL;
    }
    fj_completer_set_pending(parent, (int32_t)n - 1);
    for (size_t i = n; i-- > 0;) {
        int err = fj_completer_fork(child_at(first, i, stride));
        if (err != FJ_OK) return err;
    }
    return FJ_OK;
}
