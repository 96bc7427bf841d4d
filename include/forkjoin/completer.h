/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/completer.h - tasks that nobody has to join: a count of what is pending
 *
 * Included by <forkjoin.h>. A completer has a parent and a count. When one is through and
 * its count is zero, its on_completion is called and it counts down its parent: what would
 * be a join becomes a call by whoever was last. No thread ever waits, so none is needed to
 * stand in.
 *
 *     struct sum {
 *         fj_completer c;
 *         const int *v;
 *         size_t n;
 *         long total;
 *         struct sum *half; // two of them, or NULL
 *     };
 *
 *     static int sum_done(fj_completer *c, fj_completer *caller)
 *     {
 *         struct sum *s = (struct sum *)c;
 *
 *         (void)caller;
 *         if (s->half != NULL) s->total = s->half[0].total + s->half[1].total;
 *         free(s->half);
 *         return FJ_OK;
 *     }
 *
 *     static int sum_run(fj_task *t)
 *     {
 *         struct sum *s = (struct sum *)t;
 *
 *         if (s->n > 1000) s->half = (struct sum *)calloc(2, sizeof *s->half);
 *         if (s->half == NULL) {
 *             for (size_t i = 0; i < s->n; i++) s->total += s->v[i];
 *             fj_completer_try_complete(&s->c); // the last touch of *s
 *             return FJ_OK;
 *         }
 *         for (int i = 0; i < 2; i++) {
 *             fj_completer_init(&s->half[i].c, &s->c, 0, sum_run, sum_done, NULL);
 *             s->half[i].v = s->v + (i == 0 ? 0 : s->n / 2);
 *             s->half[i].n = i == 0 ? s->n / 2 : s->n - s->n / 2;
 *         }
 *         return fj_completer_fork_all(&s->c, s->half, 2, sizeof *s->half); // the same
 *     }
 *
 *     static int sum(const int *v, size_t n, long *total)
 *     {
 *         struct sum root = {.v = v, .n = n};
 *
 *         fj_completer_init(&root.c, NULL, 0, sum_run, sum_done, NULL);
 *         int err = fj_completer_invoke(NULL, &root.c); // NULL: the common pool
 *         *total = root.total;
 *         return err;
 *     }
 *
 * A body that forks its children one by one sets the count to their number, and calls
 * fj_completer_try_complete() at its end: that call and every child but the last take one
 * away, and the last finds zero. fj_completer_fork_all() does this for an array.
 *
 * Memory. A completer may be freed by its parent's on_completion, which gets it as `caller`,
 * or later. After fj_completer_try_complete() the caller must not touch it. A root may be
 * freed when a wait for it has returned, if it got there by try_complete; if it was
 * cancelled, failed or completed early, only when all below it have come to an end: no call
 * waits for that. fj_future_fini() is for roots only, fj_future_set_release_fn() for none.
 *
 * Not wanted any more. When a root is cancelled, or completed or failed other than by its own body
 * and before all below it is through, its completers run on, and fj_is_cancelled() is 1 in them. A
 * completer below another has no token of its own: what becomes of it alone its body sees by
 * fj_future_is_done().
 */
#ifndef FORKJOIN_COMPLETER_H
#define FORKJOIN_COMPLETER_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

FJI_EXTERN_C_BEGIN

typedef struct fj_completer fj_completer;

/*
 * Called when all below `c` is complete, before its parent is told: by whichever thread was
 * last, which has seen everything that the others did. caller: the child that was last, or
 * `c` itself. Not 0: `c` has failed with that code.
 */
typedef int fj_completion_fn(fj_completer *c, fj_completer *caller);

/*
 * Called when `c` has failed with `code` by fj_completer_fail(), by a code of its body or of its
 * on_completion, by a child, or with FJ_ECANCELED since its pool stops. caller: the child that it
 * comes from, or `c` itself. 1: its parent fails too; 0: it ends here, and the parent is told
 * nothing.
 *
 * Called at most once for each completer, by the thread that has decided its outcome, and not for
 * one that was done before. The outcome is set: in on_error(), fj_future_is_done() is 1 and
 * fj_future_error() is `code`. Other threads see that, and waiters return, only when on_error() has
 * returned, so that they do not free a root it looks at; calls by which they would decide `c` fail
 * at once. on_error() must not free `c`. fj_future_fail() and fj_future_cancel() decide `c` alone:
 * they call no on_error() and tell no parent.
 */
typedef int fj_error_fn(fj_completer *c, int code, fj_completer *caller);

/* The first member of your own struct. The members are private. */
struct fj_completer {
    fj_future future;
    fj_completer *parent;
    fj_completer *root;
    fj_completion_fn *on_completion;
    fj_error_fn *on_error;
};

/*
 * Makes `c` a new completer with the body `fn`, which arranges its completion itself; a code
 * other than 0 that it returns, before any such call, is a failure with that code (FJ_ECANCELED:
 * cancelled; FJ_PENDING has no other meaning here). parent: or NULL for a
 * root. The callbacks may be NULL.
 *
 *   Java     CountedCompleter(completer, pending), onCompletion, onExceptionalCompletion.
 */
FJ_API int fji_completer_run(fj_task *t); /* internal: how the queues run one */

FJI_INLINE void fj_completer_init(fj_completer *c, fj_completer *parent, int32_t pending,
                                  fj_task_fn *fn, fj_completion_fn *on_completion,
                                  fj_error_fn *on_error)
{
    if (FJ_CHECKED && c == 0) return;
    fji_future_init_head(&c->future, fji_completer_run, fn, FJI_FUTURE_COMPLETER,
                         (uint32_t)pending);
    if (parent == NULL) __builtin_memset(&c->future.token, 0, sizeof c->future.token);
    fji_store_two(&c->parent, (uintptr_t)parent, (uintptr_t)(parent != NULL ? parent->root : c));
    fji_store_two(&c->on_completion, (uintptr_t)on_completion, (uintptr_t)on_error);
}

/* Queue it, as fj_future_fork() and fj_future_submit(). */
FJ_API FJ_NODISCARD int fj_completer_fork(fj_completer *c);
FJ_API FJ_NODISCARD int fj_completer_submit(fj_pool *pool, fj_completer *c);

/*
 * Run a root, here or in `pool`, and wait for it; wait for one that was queued. While it
 * waits a worker runs tasks of the same root, and nothing else. All that takes a future
 * (fj_future_get(), fj_future_cancel(), ...) takes &c->future.
 *
 *   returns  FJ_OK, the code with which it failed, FJ_ECANCELED.
 */
FJ_API int fj_completer_run(fj_completer *c);
FJ_API int fj_completer_invoke(fj_pool *pool, fj_completer *c);
FJ_API int fj_completer_join(fj_completer *c);

/* Java: getCompleter(), getRoot(). */
FJ_API fj_completer *fj_completer_parent(const fj_completer *c);
FJ_API fj_completer *fj_completer_root(const fj_completer *c);

/*
 * The count.
 *
 *   returns  cas: 1 if it was `expected`; decrement: the count before, untouched if zero.
 *   Java     getPendingCount(), setPendingCount(), addToPendingCount(),
 *            compareAndSetPendingCount(), decrementPendingCountUnlessZero().
 */
FJ_API int32_t fj_completer_pending(const fj_completer *c);
FJI_INLINE void fj_completer_set_pending(fj_completer *c, int32_t n)
{
    if (FJ_CHECKED && c == 0) return;
    /* relaxed: before the children are queued, which publishes it. */
    __atomic_store_n(&c->future.pending, (uint32_t)n, __ATOMIC_RELAXED);
}

FJ_API void fj_completer_add_pending(fj_completer *c, int32_t n);
FJ_API int fj_completer_cas_pending(fj_completer *c, int32_t expected, int32_t n);
FJ_API int32_t fj_completer_decrement(fj_completer *c);

/*
 * `c` is through: if its count is not zero, counts it down; else calls its on_completion and
 * does the same with its parent; a root is done then. propagate: without on_completion.
 *
 *   owns     afterwards `c` belongs to whoever is told of it.
 *   Java     tryComplete(), propagateCompletion().
 */
FJ_API void fj_completer_try_complete(fj_completer *c);
FJ_API void fj_completer_propagate(fj_completer *c);

/*
 * `c` is done with `result`, whatever its count is: on_completion, then its parent is told.
 *
 *   Java     complete().
 */
FJ_API void fj_completer_complete(fj_completer *c, void *result);

/*
 * `c` has failed, unless it is done: on_error, and while that says 1, its parents too, up to the
 * first that is done. If `c` itself was failed or cancelled by hand before, its parents fail, and
 * its own outcome stays.
 *
 *   Java     completeExceptionally().
 */
FJ_API void fj_completer_fail(fj_completer *c, int code);

/*
 * For loops of one's own in place of try_complete(): c itself if its count is zero, else
 * counts it down and returns NULL; the same with its parent, a root being done then.
 *
 *     for (fj_completer *c = fj_completer_first(&s->c); c != NULL; c = fj_completer_next(c)) ...
 *
 *   Java     firstComplete(), nextComplete().
 */
FJ_API fj_completer *fj_completer_first(fj_completer *c);
FJ_API fj_completer *fj_completer_next(fj_completer *c);

/* The root is done, now, normally. What is below runs on; fj_is_cancelled() is 1 in it, unless it is
 * the body of the root that calls this. Java: quietlyCompleteRoot(). */
FJ_API void fj_completer_complete_root(fj_completer *c);

/*
 * Runs up to `most` queued tasks below the root of `c`, unless `c` is done.
 *
 *   from     a worker.
 *   returns  how many it ran.
 *   Java     helpComplete().
 */
FJ_API int fj_completer_help(fj_completer *c, int most);

/*
 * Forks n children, the completers at the head of n structs of `stride` bytes one after the
 * other, which have been made with `parent` as theirs, and counts them; when all are through,
 * the on_completion of `parent` runs. The caller then calls nothing more on `parent`.
 *
 *   returns  FJ_OK; FJ_EINVAL, before anything was changed: NULL, n == 0 or above INT32_MAX, a
 *            stride below the size of fj_completer or not a multiple of its alignment,
 *            n * stride beyond memory, a child that is not new or has another parent;
 *            FJ_EREJECTED, FJ_ENOMEM outside a pool.
 */
FJ_API FJ_NODISCARD int fj_completer_fork_all(fj_completer *parent, void *first, size_t n,
                                              size_t stride);

FJI_EXTERN_C_END

#endif /* FORKJOIN_COMPLETER_H */
