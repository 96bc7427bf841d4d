/* SPDX-License-Identifier: MIT */
/*
 * completer.c - pending counts instead of joins
 *
 * pending counts what is still missing. Whoever finds it zero completes the task and goes on
 * with the parent; everybody else takes one away and is through: after that CAS the parent
 * may be complete, and gone, at any moment (LAST TOUCH). One alone finds zero.
 *
 * In the queues a completer carries its root beside the pointer, so that whoever helps a
 * root can tell whether a task belongs to it without looking into it.
 *
 * Edges                  from                             to                    carries
 *   completer.pending    acq_rel CAS, _decrement()        acquire, the same     what a child did
 */
#include "future/future.h"
#include "pool/common_pool.h"
#include "pool/submit.h"
#include "sched/help.h"
#include "sched/own_queue.h"
#include "sched/scope.h"

/* ---- Running -------------------------------------------------------------------------------------- */

/* What the queues call. */
int fji_completer_run(fj_task *t)
{
    fj_completer *c = (fj_completer *)t;
    fji_worker *w = fji_worker_self();
    bool root = c->parent == NULL;

    /* [task.done] acquire <- acq_rel of whoever has decided. */
    uint32_t s = fji_load_acquire(&t->state);
    bool dropped = (s & FJI_DISCARDED) != 0;
    if (dropped) fj_completer_fail(c, FJ_ECANCELED);
    /* [task.done] release -> acquire in fj_future_fini(): no queue has it. Only roots are
     * waited for. LAST TOUCH of one that was dropped. */
    if (root) s = fji_or_acq_rel(&t->state, FJI_RELEASED);
    if (root && (s & FJI_WAITING) != 0) fji_plat_wake_all(&t->state);
    if (!dropped && (s & FJI_DONE) == 0) {
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

static int completer_queue(fj_pool *p, fj_completer *c)
{
    if (p == NULL) return FJ_ENOMEM;
    return fji_submit_future(p, &c->future.task, (uintptr_t)c->root, false, true);
}

static bool completer_may_queue(const fj_completer *c)
{
    return c != NULL && c->future.fn != NULL && c->future.task.cell == NULL;
}

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
    bool fresh = c != NULL && c->future.flags == FJI_FUTURE_COMPLETER &&
                 c->future.task.cell == NULL;
    bool quick = fresh && fji_push_future(&c->future.task, (uintptr_t)c->root);

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

/* ---- Looking -------------------------------------------------------------------------------------- */

fj_completer *fj_completer_parent(const fj_completer *c)
{
    return c != NULL ? c->parent : NULL;
}

fj_completer *fj_completer_root(const fj_completer *c)
{
    return c != NULL ? c->root : NULL;
}

/* ---- The count ------------------------------------------------------------------------------------ */

static uint32_t *completer_count(const fj_completer *c)
{
    return (uint32_t *)(uintptr_t)&c->future.pending;
}

int32_t fj_completer_pending(const fj_completer *c)
{
    if (c == NULL) return 0;
    /* [completer.pending] acquire <- acq_rel of a child. */
    return (int32_t)fji_load_acquire(completer_count(c));
}

void fj_completer_add_pending(fj_completer *c, int32_t n)
{
    if (c == NULL) return;
    /* [completer.pending] acq_rel: as a child's. */
    fji_add_acq_rel(completer_count(c), (uint32_t)n);
}

int fj_completer_cas_pending(fj_completer *c, int32_t expected, int32_t n)
{
    uint32_t old = (uint32_t)expected;

    if (c == NULL) return 0;
    /* [completer.pending] acq_rel: as a child's. */
    return fji_cas_acq_rel_32(completer_count(c), &old, (uint32_t)n);
}

static inline int32_t completer_decrement(fj_completer *c)
{
    /* [completer.pending] acquire <- acq_rel of the other children: what they did. */
    uint32_t n = fji_load_acquire(completer_count(c));

    /* [completer.pending] acq_rel -> acquire above: what this one did. LAST TOUCH of *c. */
    while (n != 0 && !fji_cas_acq_rel_32(completer_count(c), &n, n - 1)) {}
    return (int32_t)n;
}

int32_t fj_completer_decrement(fj_completer *c)
{
    return c != NULL ? completer_decrement(c) : 0;
}

/* ---- Completing ----------------------------------------------------------------------------------- */

/* Apart, so that what goes well saves no registers for it. */
static FJI_COLD void completer_failed(fj_completer *c, int code)
{
    fj_completer_fail(c, code);
}

/* All below the root c is through. */
static void completer_end(fj_completer *c)
{
    /* relaxed: what the body and the callbacks have set, which the counts have ordered. */
    void *result = fji_load_relaxed(&c->future.result);

    (void)fji_future_resolve(&c->future, 0, result, FJ_OK, FJI_RESOLVE_QUIETLY);
}

static inline void completer_go_up(fj_completer *c, bool calls)
{
    fj_completer *caller = c;

    while (completer_decrement(c) == 0) {
        int code = calls && c->on_completion != NULL ? c->on_completion(c, caller) : FJ_OK;
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
    (void)fj_future_complete(&c->future, result); /* LAST TOUCH if it is a root. */
    if (parent != NULL) completer_go_up(parent, true);
}

/*
 * Makes `code` the outcome of c, then calls its on_error, then lets the waiters return: so they do
 * not free a root that on_error looks at. False: c was decided before. *up: what on_error said.
 */
static bool completer_resolve(fj_completer *c, int code, fj_completer *caller, bool *up)
{
    fj_error_fn *on_error = c->on_error;
    uint32_t bits = code == FJ_ECANCELED ? FJI_CANCELLED : FJI_FAILED;
    unsigned how = FJI_RESOLVE_REPORTS | (on_error != NULL ? FJI_RESOLVE_HOLDS : 0);
    fji_held held;

    *up = true;
    if (!fji_future_resolve(&c->future, bits, NULL, code, how)) return false;
    if (on_error == NULL) return true;
    fji_future_hold(&c->future, &held);
    *up = on_error(c, code, caller) != 0;
    fji_future_publish_held(&held); /* LAST TOUCH if it is a root. */
    return true;
}

void fj_completer_fail(fj_completer *c, int code)
{
    fj_completer *caller = c;
    bool up;

    if (c == NULL) return;
    if (code == FJ_OK) code = FJ_EFAILED;
    do {
        fj_completer *parent = c->parent;
        bool decided = completer_resolve(c, code, caller, &up);
        /* c itself may have been failed or cancelled by hand, which tells no parent. */
        if (!decided && (c != caller || parent == NULL)) return;
        if (!decided && !fji_future_claim_report(&c->future)) return;
        caller = c;
        c = up ? parent : NULL;
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
    uintptr_t root = (uintptr_t)c->root; /* c may be gone once it is done */
    while (n < most && !fj_future_is_done(&c->future)) {
        fji_steal_result got = fji_help_root(w, root);
        if (got == FJI_STEAL_EMPTY) break;
        n += got == FJI_STEAL_SUCCESS;
        if (got == FJI_STEAL_RETRY) fji_pause();
    }
    return n;
}

static fj_completer *child_at(void *first, size_t i, size_t stride)
{
    return (fj_completer *)(void *)((char *)first + i * stride);
}

int fj_completer_fork_all(fj_completer *parent, void *first, size_t n, size_t stride)
{
    if (parent == NULL || n == 0 || n > INT32_MAX) return FJ_EINVAL;
    if (!fji_array_ok(first, n, stride, sizeof(fj_completer))) return FJ_EINVAL;
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
