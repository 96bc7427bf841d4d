/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/timer.h - tasks that run later, or again and again
 *
 * Included by <forkjoin.h>. A timer is a future (fj_future) that becomes ready at a moment of
 * the monotonic clock and is then run by the pool. Everything that takes a future takes
 * &t->future: wait for it, cancel it, complete it by hand. Cancelling takes it out at once.
 * Adding and cancelling need no memory and take the same time however many are waiting.
 *
 * Times are nanoseconds. A delay below 0 counts as 0; sums that do not fit mean never.
 *
 * A pool has one thread for its timers, from the first on. It runs nothing of yours but the
 * actions of fj_submit_with_timeout(); a pool with such an action has a spare thread for the time
 * during which one runs.
 *
 * Shutdown: timers that run once are still run, and the pool ends after them, unless
 * fj_pool_cancel_delayed_on_shutdown() was called; those that run again and again are
 * cancelled; fj_pool_shutdown_now() cancels all. In the child of fork() all are cancelled.
 */
#ifndef FORKJOIN_TIMER_H
#define FORKJOIN_TIMER_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

FJI_EXTERN_C_BEGIN

/* The first member of your own struct, or allocated by the library. Members are private. */
typedef struct fj_timer {
    fj_future future;
    int64_t when;
    void *link[3];
    uint32_t place;
    uint32_t kind;
    int64_t period; /* > 0: fixed rate; < 0: fixed delay; 0: once */
} fj_timer;

/* Makes `t` a new timer with the body `fn`, as fj_future_init(). */
FJ_API void fj_timer_init(fj_timer *t, fj_task_fn *fn);

/*
 * Runs `t` in `pool` (NULL: the common pool) after delay_ns; at fixed rate: then again at every
 * multiple of period_ns from there, without drift, late runs following at once; with fixed
 * delay: then again period_ns after the end of each run. A series never overlaps itself. It
 * ends when it is cancelled, when a run returns a code other than 0, which is then its
 * outcome (FJ_PENDING leaves it open), or when the pool is shut down.
 *
 *   owns     the library, until it is done and released, as a future.
 *   returns  FJ_OK; FJ_EINVAL: NULL, not new, a period not above 0; FJ_EREJECTED;
 *            FJ_ENOMEM, FJ_EAGAIN: no memory or no thread for the first timer of the pool.
 *   Java     schedule(), scheduleAtFixedRate(), scheduleWithFixedDelay().
 */
FJ_API FJ_NODISCARD int fj_schedule(fj_pool *pool, fj_timer *t, int64_t delay_ns);
FJ_API FJ_NODISCARD int fj_schedule_at_fixed_rate(fj_pool *pool, fj_timer *t, int64_t delay_ns,
                                                  int64_t period_ns);
FJ_API FJ_NODISCARD int fj_schedule_with_fixed_delay(fj_pool *pool, fj_timer *t, int64_t delay_ns,
                                                     int64_t period_ns);

/* The same for fn(arg), as an allocated future: see fj_submit_call(). */
FJ_API FJ_NODISCARD int fj_schedule_call(fj_pool *pool, fj_call_fn *call, void *arg,
                                         int64_t delay_ns, fj_future **f);
FJ_API FJ_NODISCARD int fj_schedule_action(fj_pool *pool, fj_action_fn *action, void *arg,
                                           int64_t delay_ns, fj_future **f);
FJ_API FJ_NODISCARD int fj_schedule_action_at_fixed_rate(fj_pool *pool, fj_action_fn *action,
                                                         void *arg, int64_t delay_ns,
                                                         int64_t period_ns, fj_future **f);
FJ_API FJ_NODISCARD int fj_schedule_action_with_fixed_delay(fj_pool *pool, fj_action_fn *action,
                                                            void *arg, int64_t delay_ns,
                                                            int64_t period_ns, fj_future **f);

/*
 * Time left until the next run; 0 or less: it is due, runs, or is done; for a future that is
 * no timer 0.
 *
 *   Java     getDelay().
 */
FJ_API int64_t fj_timer_remaining(const fj_future *f);

/*
 * As fj_submit_call(), with a limit: if `f` is not done timeout_ns after the call, it fails with
 * FJ_ETIMEDOUT. If there is an action, on_timeout(f, arg) is called instead, and decides the
 * outcome by fj_future_complete(), fj_future_fail() or fj_future_cancel(), or does not. The limit
 * stays when the body leaves `f` open (FJ_PENDING). A pool that stops cancels `f`.
 *
 * The body: whoever decides `f` after its limit, the library, the action or another thread,
 * interrupts the body as fj_future_cancel() with `interrupt` does: fj_is_cancelled() becomes 1, the
 * waits of the library inside it return FJ_ECANCELED, and the pool's interrupt_signal is sent. An
 * action that decides nothing leaves the body alone, and the limit is used up.
 *
 * The outcome: FJ_ETIMEDOUT tells a limit from a cancel (FJ_ECANCELED). A wait with a limit of its
 * own returns FJ_ETIMEDOUT too. To tell these apart ask fj_future_is_done() or fj_future_error(),
 * which speak of the outcome only, or wait by fj_future_wait(), which returns FJ_OK for a future
 * that is done. A loop that waits again after FJ_ETIMEDOUT has to look at fj_future_is_done().
 *
 * The action is called at most once, at the moment of the limit, by a thread of the timers, not by
 * a worker: it comes also when all workers are busy. It should be short. It may decide `f`, submit
 * and schedule work in any pool, its own included, wait for futures, and shut its pool down.
 * fj_current_pool() is NULL in it, and what it forks goes to the common pool. It may not wait for
 * the end of its pool: fj_pool_close(), fj_pool_destroy() and fj_pool_await_termination() return
 * FJ_EDEADLK. The pool ends after it.
 *
 * An action that takes long delays no other timer: before it is called, another thread of the pool
 * takes over the timers. So there are as many threads as actions that run at the same time, and
 * one more. If the system gives no thread, the other timers wait until the action returns. In a
 * child that the action makes by fork(), the calling thread ends when the action returns.
 *
 *   owns     as fj_submit_call(). `f` is there at least until on_timeout() returns.
 *   returns  as fj_submit_call(); FJ_EAGAIN: no thread for the first timer of the pool. After an
 *            error there is no limit, and on_timeout() is not called.
 *   Java     submitWithTimeout().
 */
FJ_API FJ_NODISCARD int fj_submit_with_timeout(fj_pool *pool, fj_call_fn *call, void *arg,
                                               int64_t timeout_ns,
                                               void (*on_timeout)(fj_future *f, void *arg),
                                               fj_future **f);

/*
 * From now on a shutdown, also one that was called before, cancels timers that wait.
 *
 *   returns  FJ_OK; FJ_EINVAL for NULL; FJ_ENOTSUP for the common pool.
 *   Java     cancelDelayedTasksOnShutdown().
 */
FJ_API int fj_pool_cancel_delayed_on_shutdown(fj_pool *pool);

/* How many timers wait. NULL: the common pool. Java: getDelayedTaskCount(). */
FJ_API uint64_t fj_pool_delayed_count(const fj_pool *pool);

FJI_EXTERN_C_END

#endif /* FORKJOIN_TIMER_H */
