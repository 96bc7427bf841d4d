/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/completer.h - tasks that count their pending children instead of joining them
 *
 * Included by <forkjoin.h>. A completer has a parent and a pending count. Its body and its children
 * report to the completer when they have finished. A report lowers the pending count by 1. If the
 * count is already 0, the report is the last one: the library then calls on_completion() of the
 * completer, and reports to its parent. The thread that makes the last report makes these calls. No
 * task waits for its children, so no worker has to be replaced while it waits.
 *
 * A completer without a parent is a root. Threads wait for roots.
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
 * The count
 *   A body that forks its children one by one first sets its pending count to their number, and
 *   calls fj_completer_try_complete() at its end. With n children there are n + 1 reports: one by
 *   each child and one by the body. The first n reports lower the pending count, and the last
 *   report finds 0. fj_completer_fork_all() sets the count and forks an array of children.
 *
 * Done
 *   fj_completer_try_complete() makes only the root done. A completer that has a parent becomes
 *   done only by a failure, by fj_completer_complete(), or by a call that decides the outcome of
 *   its future, for example fj_future_cancel(). So wait for roots, not for their children.
 *
 * Memory
 *   After fj_completer_try_complete() or fj_completer_fork_all() a body must not access its
 *   completer.
 *
 *   The on_completion() of a parent may free the children of that parent. The program may also free
 *   the children later.
 *
 *   A root that became done by fj_completer_try_complete() may be freed as soon as a wait for it
 *   has returned.
 *
 *   A root that was cancelled, failed or completed early may be freed only after all completers
 *   below it have finished. No call of the library waits until they have finished; the program must
 *   track it. Call fj_future_fini() for such a root too: fj_future_fini() waits until the root is
 *   in no queue. fj_future_fini() waits neither for the body of the root nor for the completers
 *   below the root.
 *
 *   fj_future_set_release_fn() has no effect on completers.
 *
 * Cancelling
 *   When a root is cancelled, or a thread other than the one that runs its body completes or fails
 *   it early, the completers below the root still run. fj_is_cancelled() returns 1 in these
 *   completers.
 *
 *   A completer that has a parent has no token of its own. If such a completer is cancelled while
 *   its body runs, and its root is not, fj_is_cancelled() still returns 0; the body can check
 *   fj_future_is_done(). If such a completer is cancelled before its body begins, the body does not
 *   run, and so it does not report to the parent.
 */
#ifndef FORKJOIN_COMPLETER_H
#define FORKJOIN_COMPLETER_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

FJI_EXTERN_C_BEGIN

typedef struct fj_completer fj_completer;

/*
 * The type of on_completion(). The library calls this callback when the completer `c` completes:
 * its body and everything below it have finished, or fj_completer_complete() was called. The call
 * comes before the library reports to the parent.
 *
 * `caller` is the child that finished last, or `c` if the body of `c` finished last. If the
 * callback returns a code other than 0, `c` fails with that code.
 *
 *   from     the thread that finished last.
 *   order    everything that the children did happens before the call.
 */
typedef int fj_completion_fn(fj_completer *c, fj_completer *caller);

/*
 * The type of on_error(). The library calls this callback when the completer `c` fails with `code`.
 *
 * A completer fails by fj_completer_fail(), by the code of its body or of its on_completion(), by a
 * child that fails, or with FJ_ECANCELED if its pool stops before the body begins. `caller` is the
 * child that the failure comes from, or `c` if the failure does not come from a child.
 *
 * If the callback returns 1, the parent fails too. If the callback returns 0, the parent does not
 * fail, and its pending count does not change. The program must then lower the pending count of the
 * parent for the failed child, or the parent never completes.
 *
 * The library calls on_error() at most once for each completer, and not for a completer that was
 * done before. fj_future_fail() and fj_future_cancel() decide only the outcome of `c`: they call no
 * on_error() and do not affect the parent.
 *
 * During the callback the outcome is decided. In the calling thread fj_future_is_done() returns 1
 * and fj_future_error() returns `code`. Other threads see the outcome, and waiters return, only
 * after the callback has returned. So no waiter frees a root that the callback still reads. A call
 * of another thread that would decide the outcome of `c` has no effect.
 *
 *   from     the thread that decided the failure.
 *   owns     the callback must not free `c`.
 */
typedef int fj_error_fn(fj_completer *c, int code, fj_completer *caller);

/* A completer: the first member of a struct of the caller. The members are private. */
struct fj_completer {
    fj_future future;
    fj_completer *parent;
    fj_completer *root;
    fj_completion_fn *on_completion;
    fj_error_fn *on_error;
};

/* Internal: the function by which the queues run a completer. */
FJ_API int fji_completer_run(fj_task *t);

/*
 * Initialises `c` as a new completer with the body `fn` and the pending count `pending`.
 *
 * `parent` is NULL for a root. Each callback may be NULL: a NULL on_completion counts as one that
 * returns 0, a NULL on_error as one that returns 1.
 *
 * The body itself arranges the completion of `c`, for example by fj_completer_try_complete(), and
 * then returns 0. If the body returns another code, `c` fails with that code; FJ_ECANCELED cancels
 * `c`. A body may return another code only if it has not yet arranged the completion. For a
 * completer FJ_PENDING has no special meaning.
 *
 *   Java     CountedCompleter(completer, pending), onCompletion, onExceptionalCompletion.
 */
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

/*
 * Puts `c` into the queue of the calling worker. In a thread outside a pool, the call queues `c` in
 * the common pool.
 *
 *   order    what the caller did before the call happens before the body runs.
 *   owns     the library owns `c`. The head of this file says when its memory may be freed.
 *   returns  as fj_future_fork().
 *   Java     fork().
 */
FJ_API FJ_NODISCARD int fj_completer_fork(fj_completer *c);

/*
 * Queues `c` in `pool` (NULL: the common pool).
 *
 *   order    what the caller did before the call happens before the body runs.
 *   owns     as fj_completer_fork().
 *   returns  as fj_future_submit().
 *   Java     submit().
 */
FJ_API FJ_NODISCARD int fj_completer_submit(fj_pool *pool, fj_completer *c);

/*
 * fj_completer_run(), fj_completer_invoke() and fj_completer_join() wait for a root. While a worker
 * waits for a root, it runs only tasks of that root. Every function for futures, for example
 * fj_future_get() or fj_future_cancel(), also takes &c->future.
 */

/*
 * Runs the body of the root `c` in the calling thread and waits until `c` is done.
 *
 *   returns  FJ_OK; the code with which `c` failed; FJ_ECANCELED if `c` was cancelled; FJ_EINVAL if
 *            `c` is NULL, or has no body and is not done.
 *   Java     ForkJoinTask.invoke().
 */
FJ_API int fj_completer_run(fj_completer *c);

/*
 * Runs the root `c` in `pool` (NULL: the common pool) and waits until `c` is done.
 *
 *   returns  as fj_completer_join(). FJ_EINVAL also if `c` has no body or was queued before.
 *            FJ_EREJECTED if the pool is shut down and the caller is not one of its workers.
 *            FJ_ENOMEM.
 *   Java     ForkJoinPool.invoke().
 */
FJ_API int fj_completer_invoke(fj_pool *pool, fj_completer *c);

/*
 * Waits until the root `c` is done.
 *
 *   order    everything that the completers below `c` did before they finished happens before the
 *            return, if `c` became done by fj_completer_try_complete().
 *   returns  FJ_OK; the code with which `c` failed; FJ_ECANCELED if `c` was cancelled; FJ_EINVAL if
 *            `c` is NULL.
 *   Java     join().
 */
FJ_API int fj_completer_join(fj_completer *c);

/* Returns the parent of `c`; NULL if `c` is a root. Java: getCompleter(). */
FJ_API fj_completer *fj_completer_parent(const fj_completer *c);

/* Returns the root above `c`; `c` itself if `c` is a root. Java: getRoot(). */
FJ_API fj_completer *fj_completer_root(const fj_completer *c);

/* Returns the pending count of `c`. Java: getPendingCount(). */
FJ_API int32_t fj_completer_pending(const fj_completer *c);

/*
 * Sets the pending count of `c` to `n`.
 *
 *   from     the body of `c`, or the thread that has initialised `c`, before a child is queued.
 *   Java     setPendingCount().
 */
FJI_INLINE void fj_completer_set_pending(fj_completer *c, int32_t n)
{
    if (FJ_CHECKED && c == 0) return;
    /* relaxed: the children are queued later, and queueing a child publishes the count to it. */
    __atomic_store_n(&c->future.pending, (uint32_t)n, __ATOMIC_RELAXED);
}

/* Adds `n` to the pending count of `c`; `n` may be negative. Java: addToPendingCount(). */
FJ_API void fj_completer_add_pending(fj_completer *c, int32_t n);

/*
 * Sets the pending count of `c` to `n` if the count is `expected`, in one atomic step.
 *
 *   returns  1 if the count was `expected` and is now `n`, else 0.
 *   Java     compareAndSetPendingCount().
 */
FJ_API int fj_completer_cas_pending(fj_completer *c, int32_t expected, int32_t n);

/*
 * Lowers the pending count of `c` by 1, unless the count is 0.
 *
 *   returns  the count before the call. If the call returns 0, the count is unchanged.
 *   Java     decrementPendingCountUnlessZero().
 */
FJ_API int32_t fj_completer_decrement(fj_completer *c);

/*
 * Reports that `c`, or one of its children, has finished.
 *
 * If the pending count of `c` is not 0, the call lowers the count by 1 and returns. If the count is
 * 0, the call invokes on_completion() of `c` and then treats the parent in the same way. When it
 * has completed the root, the root is done and succeeds with the value of its `result` member.
 *
 *   order    what the caller did before the call happens before the on_completion() of `c` and of
 *            every completer above `c`.
 *   owns     the caller must not access `c` afterwards.
 *   Java     tryComplete().
 */
FJ_API void fj_completer_try_complete(fj_completer *c);

/*
 * Does what fj_completer_try_complete() does, but calls no on_completion(), neither of `c` nor of
 * the completers above it.
 *
 *   owns     the caller must not access `c` afterwards.
 *   Java     propagateCompletion().
 */
FJ_API void fj_completer_propagate(fj_completer *c);

/*
 * Completes `c` with `result`, whatever its pending count is.
 *
 * The call sets the result of `c` and invokes on_completion(c, c). Then `c` is done, unless its
 * outcome was decided before. Finally the call does for the parent what
 * fj_completer_try_complete() does. If on_completion() returns a code other than 0, `c` fails with
 * that code instead.
 *
 *   owns     the caller must not access `c` afterwards.
 *   Java     complete().
 */
FJ_API void fj_completer_complete(fj_completer *c, void *result);

/*
 * Makes `c` fail with `code`, and then the completers above `c`.
 *
 * The call decides the outcome of `c` and invokes its on_error(). If on_error() returns 1, or is
 * NULL, the parent fails with the same code in the same way, and so on upwards. The call ends at
 * the root, at an on_error() that returns 0, or at the first parent that is already done.
 *
 * If fj_future_fail() or fj_future_cancel() decided the outcome of `c` before, `c` keeps that
 * outcome and its on_error() is not called, but the completers above `c` fail. If `c` is done for
 * another reason, the call has no effect.
 *
 * If `code` is 0, the code of the failure is FJ_EFAILED. If `code` is FJ_ECANCELED, `c` and the
 * completers above it are cancelled.
 *
 *   Java     completeExceptionally().
 */
FJ_API void fj_completer_fail(fj_completer *c, int code);

/*
 * fj_completer_first() and fj_completer_next() are for a loop that replaces
 * fj_completer_try_complete() and does work of its own for each completer that finishes:
 *
 *     for (fj_completer *c = fj_completer_first(&s->c); c != NULL; c = fj_completer_next(c)) ...
 */

/*
 * Starts a loop over the completers that finish, at `c`.
 *
 *   returns  `c` if its pending count is 0. Otherwise the call lowers the count by 1 and returns
 *            NULL; the caller must not access `c` afterwards.
 *   Java     firstComplete().
 */
FJ_API fj_completer *fj_completer_first(fj_completer *c);

/*
 * Continues a loop that fj_completer_first() began, at the parent of `c`.
 *
 *   returns  what fj_completer_first() returns for the parent. If `c` is the root, the call makes
 *            `c` done and returns NULL.
 *   Java     nextComplete().
 */
FJ_API fj_completer *fj_completer_next(fj_completer *c);

/*
 * Makes the root above `c` done at once. The root succeeds with the value of its `result` member.
 *
 * The completers below the root still run. fj_is_cancelled() returns 1 in these completers, unless
 * the caller is the thread that runs the body of the root.
 *
 *   Java     quietlyCompleteRoot().
 */
FJ_API void fj_completer_complete_root(fj_completer *c);

/*
 * Runs at most `most` queued tasks that belong to the root of `c`. The call returns earlier if `c`
 * is done, or if it finds no such task.
 *
 *   from     a worker. In a thread outside a pool the call returns 0.
 *   owns     `c` must stay valid during the call.
 *   returns  the number of tasks that the call ran.
 *   Java     helpComplete().
 */
FJ_API int fj_completer_help(fj_completer *c, int most);

/*
 * Sets the pending count of `parent` and forks its n children.
 *
 * The children are the first members of n structs of `stride` bytes each, in an array that begins
 * at `first`. The caller has initialised each child with `parent` as its parent.
 *
 * The pending count becomes n - 1, so that the n reports of the children are enough: the last one
 * completes `parent`, which calls its on_completion(). The body of `parent` must not report too, so
 * do not call fj_completer_try_complete() for `parent`.
 *
 *   owns     if the call returns FJ_OK, the caller must not access `parent` or the children
 *            afterwards.
 *   returns  FJ_OK. FJ_EINVAL, with nothing changed, if a pointer is NULL; if n is 0 or above
 *            INT32_MAX; if `stride` is below the size of fj_completer or no multiple of its
 *            alignment; if the array does not fit into the address space; if a child has no body,
 *            was queued before or has another parent. In a thread outside a pool also FJ_EREJECTED
 *            if the common pool takes no work, and FJ_ENOMEM if there is no memory; some children
 *            may then be queued already.
 */
FJ_API FJ_NODISCARD int fj_completer_fork_all(fj_completer *parent, void *first, size_t n,
                                              size_t stride);

/*
 * Internal: members of a root, for src/compose/ (src/future/member.c). A member is an fj_task that
 * the waiters of a root may run, and that the root does not count.
 *
 *   fji_root_init()     makes `root` a root without a body, under `token`, for members in `pool`.
 *                       NULL: the pool of the calling worker or, outside a pool, the common pool.
 *                       Returns FJ_OK, or FJ_ENOMEM if there is no memory for the common pool.
 *   fji_root_pool()     the pool of the members.
 *   fji_member_queue()  queues `t` and calls t->fn(t) later. The member `cell` of `t` is NULL.
 *                       Returns as fj_completer_submit(); `cell` is NULL after an error.
 *   fji_member_take()   takes the youngest task of the calling worker's own queue if it is a member
 *                       of `root`. Otherwise, if `steals` is not 0, steals a member of `root`.
 *                       Returns NULL if it took none, and always in a FIFO pool.
 *   fji_member_run()    called by t->fn: calls body(t, discarded) under the token of `root`.
 *                       `discarded` is 1 if the pool stops, so that `t` must not run.
 */
typedef void fji_member_fn(fj_task *t, int discarded);
FJ_API int fji_root_init(fj_completer *root, fj_pool *pool, const fj_token *token);
FJ_API fj_pool *fji_root_pool(const fj_completer *root);
FJ_API int fji_member_queue(fj_completer *root, fj_task *t);
FJ_API fj_task *fji_member_take(const fj_completer *root, int steals);
FJ_API int fji_member_run(fj_task *t, fj_completer *root, fji_member_fn *body);

FJI_EXTERN_C_END

#endif /* FORKJOIN_COMPLETER_H */
