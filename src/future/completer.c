/* SPDX-License-Identifier: MIT */
/*
 * completer.c - tasks that count their pending children instead of joining them
 *
 * `pending` of a completer counts the reports that are still missing besides the last one. A thread
 * that reports to a completer, for its body or for a child, reads the count:
 *
 *     count > 0   It decrements the count by CAS. That is its LAST TOUCH of the completer, which
 *                 another thread may complete and free at any moment afterwards.
 *     count == 0  It is the last one, and no other thread finds 0. It completes the completer: it
 *                 calls on_completion, and then reports to the parent or makes the root done.
 *
 * A failure goes up at once, whatever the counts are (fj_completer_fail()). The thread that
 * resolves a completer with a failure calls its on_error before other threads see it as done, so
 * that no waiter frees a root that on_error still reads. on_error decides whether the parent fails
 * too. The bit REPORTED makes sure that a failure is reported to the parent once (future.c).
 *
 * In a queue, the cell of a completer has the address of its root beside the item. So a thread that
 * helps a root can tell whether a task belongs to it without reading the task, which may be freed.
 *
 * Edges                 from                                to                         carries
 *   completer.pending   acq_rel CAS, completer_decrement()  acquire load, the same     what a child
 *                                                                                      did
 *   task.done           acq_rel or, fji_completer_run()     acquire, fj_future_fini()  RELEASED
 */
#include "future/future.h"
#include "pool/common_pool.h"
#include "pool/submit.h"
#include "sched/help.h"
#include "sched/own_queue.h"
#include "sched/scope.h"

/* ---- Running --------------------------------------------------------------------------------- */

/* The queues call this to run a completer. w enters the scope of the root's token for the body. */
int fji_completer_run(fj_task *t)
{
    fj_completer *c = (fj_completer *)t;
    fji_worker *w = fji_worker_self();
    bool root = c->parent == NULL;

    /* [task.done] acquire <- acq_rel in fji_future_resolve(): the outcome. */
    uint32_t s = fji_load_acquire(&t->state);
    bool discarded = (s & FJI_DISCARDED) != 0;
    if (discarded) fj_completer_fail(c, FJ_ECANCELED);
    /* [task.done] release -> acquire in fj_future_fini(): no queue has the root. Threads wait only
     * for roots. LAST TOUCH of *c if it was discarded. */
    if (root) s = fji_or_acq_rel(&t->state, FJI_RELEASED);
    if (root && (s & FJI_WAITING) != 0) fji_plat_wake_all(&t->state);
    if (!discarded && (s & FJI_DONE) == 0) {
        fji_scope_saved saved = {0};
        const fj_token *token = &c->root->future.token;
        if (w != NULL) saved = root ? fji_scope_enter(w, token) : fji_scope_enter_stolen(w, token);
        uint32_t generation = fji_fork_generation;
        int code = c->future.fn(t); /* LAST TOUCH of *c unless it failed. */
        if (w != NULL) fji_scope_leave(w, saved);
        if (code != FJ_OK && generation == fji_fork_generation) fj_completer_fail(c, code);
    }
    return FJI_COMPLETES_ITSELF;
}

/* Queues c in p; p may be NULL if there was no memory for the common pool. */
static int completer_queue(fj_pool *p, fj_completer *c)
{
    if (p == NULL) return FJ_ENOMEM;
    return fji_submit_future(p, &c->future.task, (uintptr_t)c->root, false, true);
}

static bool completer_may_queue(const fj_completer *c)
{
    return c != NULL && c->future.fn != NULL && c->future.task.cell == NULL;
}

/* The fast path does not apply. A worker that has no memory to queue c runs it now. */
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
    /* [completer.pending] acquire <- acq_rel in completer_decrement(): what the children did. */
    return (int32_t)fji_load_acquire(completer_count(c));
}

void fj_completer_add_pending(fj_completer *c, int32_t n)
{
    if (c == NULL) return;
    /* [completer.pending] acq_rel: like the decrement of a child. */
    fji_add_acq_rel(completer_count(c), (uint32_t)n);
}

int fj_completer_cas_pending(fj_completer *c, int32_t expected, int32_t n)
{
    uint32_t old = (uint32_t)expected;

    if (c == NULL) return 0;
    /* [completer.pending] acq_rel: like the decrement of a child. */
    return fji_cas_acq_rel_32(completer_count(c), &old, (uint32_t)n);
}

/* One report to c: decrements the count unless it is 0. Returns the count before. */
static inline int32_t completer_decrement(fj_completer *c)
{
    /* [completer.pending] acquire <- acq_rel below, by the other children: what they did. */
    uint32_t n = fji_load_acquire(completer_count(c));

    /* [completer.pending] acq_rel -> acquire above: what this child did. LAST TOUCH of *c if the
     * count was not 0. */
    while (n != 0 && !fji_cas_acq_rel_32(completer_count(c), &n, n - 1)) {}
    return (int32_t)n;
}

int32_t fj_completer_decrement(fj_completer *c)
{
    return c != NULL ? completer_decrement(c) : 0;
}

/* ---- Completing ------------------------------------------------------------------------------ */

/* A separate function, so that the path of success saves no registers for it. */
static FJI_COLD void completer_failed(fj_completer *c, int code)
{
    fj_completer_fail(c, code);
}

/* The root c and everything below it have finished: makes c done. */
static void completer_end(fj_completer *c)
{
    /* relaxed: the body and the callbacks have set it, and the counts order them before this. */
    void *result = fji_load_relaxed(&c->future.result);

    (void)fji_future_resolve(&c->future, 0, result, FJ_OK, FJI_RESOLVE_QUIETLY);
}

/* Reports to c and, while the count is 0, completes c and continues with its parent. call_back:
 * calls the on_completion functions. */
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
 * Resolves c with the failure `code`, then calls its on_error, then makes c done for all threads.
 * *go_up is set to what on_error returned: whether the parent fails too. Returns false if c was
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
        /* fj_future_fail() or fj_future_cancel() may have resolved the first c. They do not report
         * to the parent, so it is done here, once. */
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

/* Child i of fj_completer_fork_all(). */
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
