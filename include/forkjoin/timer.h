/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/timer.h - tasks that run after a delay or periodically
 *
 * Included by <forkjoin.h>. A timer is a future (forkjoin/future.h) that the pool queues at a given
 * time of the monotonic clock. Every function for futures also takes &t->future: a thread may wait
 * for a timer, cancel it or complete it. A cancel removes a waiting timer at once.
 *
 * Scheduling or cancelling an fj_timer takes constant time, however many timers wait. Scheduling
 * allocates memory only for the first timer of a pool.
 *
 * All times are in nanoseconds. A negative delay counts as 0. If the deadline would overflow, the
 * timer never fires.
 *
 * Threads
 *   The first timer of a pool starts a timer thread, which stays until the pool ends. The timer
 *   thread runs no body. The timer thread calls on_timeout() of fj_submit_with_timeout(), and it
 *   may call the release function of a timer and the callbacks in the options of the pool. While a
 *   timer thread calls on_timeout(), another timer thread serves the other timers.
 *
 * End of the pool
 *   After fj_pool_shutdown() a timer that runs once still runs, and the pool ends after it. If
 *   fj_pool_cancel_delayed_on_shutdown() was called, the shutdown cancels timers that run once. A
 *   shutdown always cancels periodic timers. fj_pool_shutdown_now() cancels all timers.
 *
 *   In a child process made by fork(), timers of the parent do not fire. A thread of the child that
 *   waits for a timer of the parent finds that timer cancelled.
 */
#ifndef FORKJOIN_TIMER_H
#define FORKJOIN_TIMER_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

FJI_EXTERN_C_BEGIN

/* A timer: the first member of a struct of the caller, or allocated by the library. The members are
 * private. */
typedef struct fj_timer {
    fj_future future;
    int64_t when;
    void *link[3];
    uint32_t place;
    uint32_t kind;
    int64_t period; /* > 0: fixed rate; < 0: fixed delay; 0: once */
} fj_timer;

/* Initialises `t` as a new timer with the body `fn`, as fj_future_init() does for a future. */
FJ_API void fj_timer_init(fj_timer *t, fj_task_fn *fn);

/*
 * Runs `t` once in `pool` (NULL: the common pool), delay_ns after the call.
 *
 *   order    what the caller did before the call happens before the body runs.
 *   owns     the library owns `t` until fj_future_fini(&t->future) has returned.
 *   returns  FJ_OK. FJ_EINVAL if `t` is NULL, has no body, or was scheduled before and not
 *            initialised again since. FJ_EREJECTED if the pool is shut down, also for its own
 *            workers. FJ_ENOMEM if there is no memory. FJ_EAGAIN if the system refuses the timer
 *            thread.
 *   Java     schedule().
 */
FJ_API FJ_NODISCARD int fj_schedule(fj_pool *pool, fj_timer *t, int64_t delay_ns);

/*
 * Runs `t` periodically in `pool` (NULL: the common pool): the first time delay_ns after the call,
 * and then every period_ns.
 *
 * The run with number k (0 for the first) is due at delay_ns + k * period_ns after the call,
 * however late earlier runs were. If several runs are late, they follow one after the other without
 * a pause. Two runs of `t` never overlap.
 *
 * Between two runs the timer is not done. The timer becomes done when a run returns a code other
 * than 0; that code decides the outcome as for a future. The code FJ_PENDING also ends the runs,
 * and leaves the outcome open. The timer also becomes done when a thread cancels it or decides its
 * outcome by another call. When the pool is shut down, the timer becomes done with FJ_ECANCELED.
 *
 *   order    what one run did happens before the next run.
 *   owns     as fj_schedule().
 *   returns  as fj_schedule(). FJ_EINVAL also if period_ns is 0 or less.
 *   Java     scheduleAtFixedRate().
 */
FJ_API FJ_NODISCARD int fj_schedule_at_fixed_rate(fj_pool *pool, fj_timer *t, int64_t delay_ns,
                                                  int64_t period_ns);

/*
 * Runs `t` periodically as fj_schedule_at_fixed_rate() does, but each run after the first begins
 * period_ns after the end of the previous run.
 *
 *   order    as fj_schedule_at_fixed_rate().
 *   owns     as fj_schedule().
 *   returns  as fj_schedule_at_fixed_rate().
 *   Java     scheduleWithFixedDelay().
 */
FJ_API FJ_NODISCARD int fj_schedule_with_fixed_delay(fj_pool *pool, fj_timer *t, int64_t delay_ns,
                                                     int64_t period_ns);

/*
 * Runs call(arg) once in `pool` (NULL: the common pool), delay_ns after the call of this function,
 * as an allocated future.
 *
 *   owns     the caller gets one reference in *f and drops it by fj_future_unref().
 *   returns  FJ_OK. FJ_EINVAL if `call` or `f` is NULL. FJ_EREJECTED, FJ_ENOMEM and FJ_EAGAIN as
 *            fj_schedule(). After an error *f is unchanged.
 *   Java     schedule(Callable).
 */
FJ_API FJ_NODISCARD int fj_schedule_call(fj_pool *pool, fj_call_fn *call, void *arg,
                                         int64_t delay_ns, fj_future **f);

/*
 * Runs action(arg) once in `pool` (NULL: the common pool), delay_ns after the call of this
 * function, as an allocated future. The result of the future is NULL.
 *
 *   owns     as fj_schedule_call().
 *   returns  as fj_schedule_call().
 *   Java     schedule(Runnable).
 */
FJ_API FJ_NODISCARD int fj_schedule_action(fj_pool *pool, fj_action_fn *action, void *arg,
                                           int64_t delay_ns, fj_future **f);

/*
 * Runs action(arg) periodically, as an allocated future, at the times that
 * fj_schedule_at_fixed_rate() describes.
 *
 *   owns     as fj_schedule_call().
 *   returns  as fj_schedule_call(). FJ_EINVAL also if period_ns is 0 or less.
 *   Java     scheduleAtFixedRate().
 */
FJ_API FJ_NODISCARD int fj_schedule_action_at_fixed_rate(fj_pool *pool, fj_action_fn *action,
                                                         void *arg, int64_t delay_ns,
                                                         int64_t period_ns, fj_future **f);

/*
 * Runs action(arg) periodically, as an allocated future, at the times that
 * fj_schedule_with_fixed_delay() describes.
 *
 *   owns     as fj_schedule_call().
 *   returns  as fj_schedule_call(). FJ_EINVAL also if period_ns is 0 or less.
 *   Java     scheduleWithFixedDelay().
 */
FJ_API FJ_NODISCARD int fj_schedule_action_with_fixed_delay(fj_pool *pool, fj_action_fn *action,
                                                            void *arg, int64_t delay_ns,
                                                            int64_t period_ns, fj_future **f);

/*
 * Returns the time until the next run of the timer `f`, or until the limit of a future that
 * fj_submit_with_timeout() made.
 *
 *   returns  the time in nanoseconds. INT64_MAX if the timer never fires. 0 or less if the timer is
 *            due or running, or was never scheduled. 0 if the timer is done, if `f` is not a timer,
 *            and if `f` is NULL.
 *   Java     getDelay().
 */
FJ_API int64_t fj_timer_remaining(const fj_future *f);

/*
 * Queues call(arg) in `pool` (NULL: the common pool) as an allocated future with a time limit.
 *
 * If the future is not done timeout_ns after the call, the future fails with FJ_ETIMEDOUT. If
 * on_timeout is not NULL, the library calls on_timeout(f, arg) instead. on_timeout() may decide the
 * outcome by fj_future_complete(), fj_future_fail() or fj_future_cancel(), or leave it open. `arg`
 * is the same pointer that call() gets.
 *
 * The limit takes effect at most once. The limit also applies after call() has returned FJ_PENDING,
 * while the outcome is open. If the pool stops before the limit, the future is cancelled. A waiting
 * thread outside the pool never runs call().
 *
 * The body
 *   If the outcome is decided after the limit, by the library, by on_timeout() or by another
 *   thread, the body is interrupted as by fj_future_cancel() with `interrupt`. If on_timeout() does
 *   not decide the outcome, the body continues without a limit.
 *
 * The outcome
 *   If the library decides the outcome at the limit, fj_future_error() returns FJ_ETIMEDOUT. After
 *   a cancel fj_future_error() returns FJ_ECANCELED. fj_future_get() with a timeout of its own
 *   returns FJ_ETIMEDOUT in two cases: the future has failed at its limit, or the wait has timed
 *   out before the future was done. fj_future_is_done() distinguishes the two cases: it returns 1
 *   only in the first. fj_future_wait() distinguishes them too, because it returns FJ_OK for every
 *   future that is done. A loop that waits again after FJ_ETIMEDOUT must check fj_future_is_done(),
 *   or it may never end.
 *
 * on_timeout()
 *   A timer thread calls on_timeout() at the limit, unless the future is done by then. No worker is
 *   needed, so the call comes even if all workers are busy.
 *
 *   on_timeout() may decide the outcome of the future, queue and schedule tasks in any pool, wait
 *   for futures, and shut down its pool. In on_timeout(), fj_current_pool() returns NULL, and
 *   forked tasks go to the common pool.
 *
 *   on_timeout() must not wait for the end of its pool, because the pool ends only after
 *   on_timeout() has returned: fj_pool_close(), fj_pool_destroy() and fj_pool_await_termination()
 *   return FJ_EDEADLK in it.
 *
 *   on_timeout() should be short, although a long one does not delay other timers: before the call
 *   another timer thread takes over the other timers. If no other timer thread is free, the library
 *   starts one. So if n calls of on_timeout() run at the same time, the pool has n + 1 timer
 *   threads. If the system refuses to start the thread, the other timers wait until on_timeout()
 *   returns.
 *
 *   If on_timeout() calls fork(), the thread that continues in the child process ends when
 *   on_timeout() returns.
 *
 *   owns     as fj_submit_call(). The future stays valid until on_timeout() has returned, also if
 *            the caller has dropped its reference.
 *   returns  as fj_submit_call(), but FJ_EREJECTED also for workers of a pool that is shut down.
 *            FJ_EAGAIN if the system refuses the timer thread. After an error on_timeout() is not
 *            called.
 *   Java     submitWithTimeout().
 */
FJ_API FJ_NODISCARD int fj_submit_with_timeout(fj_pool *pool, fj_call_fn *call, void *arg,
                                               int64_t timeout_ns,
                                               void (*on_timeout)(fj_future *f, void *arg),
                                               fj_future **f);

/*
 * Makes the shutdown of `pool` cancel all waiting timers, including those that run once. If the
 * pool is already shut down, the call itself cancels them. Limits of fj_submit_with_timeout() are
 * not cancelled.
 *
 *   returns  FJ_OK. FJ_EINVAL if `pool` is NULL. FJ_ENOTSUP if `pool` is the common pool.
 *   Java     cancelDelayedTasksOnShutdown().
 */
FJ_API int fj_pool_cancel_delayed_on_shutdown(fj_pool *pool);

/*
 * Returns the number of waiting timers in `pool` (NULL: the common pool), including the limits of
 * fj_submit_with_timeout(). A timer that is queued or running is not counted.
 *
 *   Java     getDelayedTaskCount().
 */
FJ_API uint64_t fj_pool_delayed_count(const fj_pool *pool);

FJI_EXTERN_C_END

#endif /* FORKJOIN_TIMER_H */
