/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/lane.h - a queue of actions and futures with an order, a width, a capacity and a priority
 *
 * <forkjoin.h> does not include this header. A lane is a first-in, first-out queue in front of a
 * pool. The lane decides which of its actions the pool may run now. One concept serves as a serial
 * queue, as a limiter, as a bounded queue and as a priority:
 *
 *     fj_lane *log; // a serial queue: no lock is needed in write_line()
 *     int err = fj_lane_create(&log, &(fj_lane_options){.width = 1});
 *     ...
 *     err = fj_lane_execute(log, write_line, line); // from any thread; returns at once
 *     ...
 *     fj_lane_destroy(log); // runs what is queued, then frees the lane
 *
 *     fj_lane *disk; // at most 3 jobs at the same time, and at most 100 that wait
 *     err = fj_lane_create(&disk, &(fj_lane_options){.width = 3, .capacity = 100});
 *
 * Words
 *   action    in this file: what was given to a lane, by fj_lane_execute(), fj_lane_submit() or
 *             fj_lane_call().
 *   waiting   an action that has not begun. A waiting action occupies no thread.
 *   running   an action that has begun and has not returned. If a running action blocks
 *             (forkjoin/block.h), it still counts as running. So "at most 3" means at most 3, also
 *             if all of them sleep in read().
 *
 * Order
 *   A call happens before another one if the same thread makes it earlier, or if the program orders
 *   the two calls, for example by a lock or a join. Calls that the program does not order may take
 *   effect in either order.
 *
 *   Every width: actions begin in the order of the calls that gave them to the lane. This holds for
 *   calls of one thread and for ordered calls of several threads. A call that has to wait until the
 *   lane has room keeps its place: actions of later calls begin later.
 *
 *   Width 1: an action begins after the one before it has returned, and sees everything that the
 *   one before it did. So the actions of a lane of width 1 need no lock among themselves, although
 *   different threads may run them.
 *
 *   Width above 1: two actions that begin one after the other may run at the same time, in two
 *   threads. The second may do its first step before the first one does. They see nothing of each
 *   other, unless the program synchronises them.
 *
 *   Between different lanes, and between a lane and other work of the pool, there is no order.
 *
 * Priority
 *   When a worker looks for work, it takes lanes of high priority first, then lanes of normal
 *   priority, plain submissions and tasks, and lanes of background priority last. A worker that
 *   runs actions of a lane checks for work of a higher priority after each action. A priority
 *   decides only what begins next; it does not stop a running action. So if all workers are busy,
 *   an action of high priority begins when the first of them is free, however many other actions
 *   wait.
 *
 *   Every priority moves: if a worker finds work of all priorities, at least one of 64 turns is
 *   background and one is normal (forkjoin/callback.h). Among lanes of one priority a turn is at
 *   most 64 actions or about 0.1 ms, or one action if that is longer; then the next lane has its
 *   turn.
 *
 * Memory
 *   A waiting action takes 16 bytes. The lane keeps the memory for the largest number of actions
 *   that have ever waited, and uses it again. It allocates only when that number grows.
 *
 * Errors
 *   If an action of fj_lane_execute() returns a code other than 0, the lane passes the code to its
 *   `on_error`. If the lane has none, the code goes to `on_error` of the pool, as for fj_execute().
 *   The code of a future is its outcome.
 *
 * End of the pool
 *   After fj_pool_shutdown() the lane accepts actions only from workers of the pool. The pool ends
 *   when its lanes are empty, but a paused lane does not keep it from ending.
 *   fj_pool_shutdown_now() cancels the waiting actions of lanes that are not paused. The waiting
 *   actions of a paused lane are cancelled when fj_lane_resume(), fj_lane_cancel() or
 *   fj_lane_destroy() is called. A call that waits for room in a paused lane goes on waiting until
 *   then, unless a worker of the pool makes it. After the end of the pool no other call for the lane
 *   is allowed if the memory of the pool is freed.
 *
 *   "Cancelled" means: a future ends with FJ_ECANCELED. An action of fj_lane_execute() is not run,
 *   and the lane passes it to `on_cancel`.
 *
 *   If there is no memory or no thread to queue a turn in the pool, the thread that needs the turn
 *   runs the actions itself.
 *
 * In a child process made by fork(), lanes of the parent process must not be used.
 */
#ifndef FORKJOIN_LANE_H
#define FORKJOIN_LANE_H

#include <forkjoin.h>

FJI_EXTERN_C_BEGIN

typedef struct fj_lane fj_lane; /* opaque */

/* What a call does if the lane is full. */
enum fj_lane_full {
    /* It waits until the lane has room for its action. A worker that waits is replaced, as in
     * fj_managed_block(). */
    FJ_LANE_WAITS = 0,
    /* It returns FJ_EBUSY. */
    FJ_LANE_REFUSES = 0x400000,
    /* The calling thread runs the oldest waiting actions of the lane, within its width, until there
     * is room. While the lane runs as many actions as its width allows, the call waits. In a thread
     * outside a pool, tasks that such an action forks go to the common pool. */
    FJ_LANE_CALLER_RUNS = 0x800000
};

/* The options of a lane. For every member 0 means the default. */
typedef struct fj_lane_options {
    /* The pool that runs the actions. NULL: the common pool. The pool must outlive the lane, but
     * fj_lane_destroy() may be called after the end of the pool. */
    fj_pool *pool;
    /* The most actions that run at the same time. 0: no limit. */
    uint32_t width;
    /* A value of enum fj_priority (forkjoin/callback.h). */
    enum fj_priority priority;
    /* The most actions that wait. Running actions do not count. 0: no limit. */
    size_t capacity;
    /* What a call does if `capacity` actions wait. */
    enum fj_lane_full full;
    /* The last argument of the callbacks. */
    void *arg;
    /* The thread that ran an action of fj_lane_execute() calls `on_error` if the action returned a
     * code other than 0. The action still counts as running. */
    void (*on_error)(fj_lane *lane, int code, void *arg);
    /* The lane calls `on_cancel` for an action of fj_lane_execute() that will not run, so that the
     * program can free what action_arg points to. The thread that cancels makes the call. No action
     * begins before `on_cancel` has returned, so it must not wait for the lane: it must not call
     * fj_lane_drain() or fj_lane_destroy(), and fj_lane_execute() only if that call does not wait
     * for room. */
    void (*on_cancel)(fj_lane *lane, fj_action_fn *action, void *action_arg, void *arg);
    /* Must be 0. */
    uint64_t reserved[4];
} fj_lane_options;

/*
 * Creates a lane. If `o` is NULL, all options have their defaults. The call starts no thread.
 *
 *   owns     the caller owns the lane and releases it by fj_lane_destroy(). The library copies *o.
 *   returns  FJ_OK, and the lane in *lane. FJ_EINVAL if `lane` is NULL, if `priority` or `full` is
 *            not a value of its type, or if a reserved member is not 0. FJ_ENOMEM if there is no
 *            memory.
 */
FJ_API FJ_NODISCARD int fj_lane_create(fj_lane **lane, const fj_lane_options *o);

/*
 * Gives action(arg) to the lane.
 *
 *   from     any thread, also an action of this lane.
 *   order    everything that the caller did before the call happens before the action runs. The
 *            head of this file says in which order actions begin.
 *   returns  FJ_OK.
 *            FJ_EINVAL if `l` or `action` is NULL.
 *            FJ_EREJECTED if the lane is closed, also if it is closed while the call waits; if the
 *            pool is shut down and the caller is not one of its workers; if the pool stops.
 *            FJ_EBUSY if the lane is full and `full` is FJ_LANE_REFUSES.
 *            FJ_EDEADLK if the call would wait for room, and the thread runs an action of this lane,
 *            and all actions that the width allows would then wait for room, or for an action that
 *            waits for room and runs inside them (FJ_LANE_CALLER_RUNS).
 *            FJ_ECANCELED if the calling task is interrupted (forkjoin/future.h) while the call
 *            waits.
 *            FJ_ENOMEM if there is no memory.
 *            On an error the action is not in the lane, and `on_cancel` is not called for it.
 */
FJ_API FJ_NODISCARD int fj_lane_execute(fj_lane *l, fj_action_fn *action, void *arg);

/*
 * Gives the future `f` to the lane. `f` is new; it is not a completer and not a timer.
 *
 * Threads may wait for `f` and cancel it as if it was queued in the pool, but a thread that waits
 * does not run `f` itself. A future that is done before its turn keeps its place among the waiting
 * actions until its turn; its body does not run.
 *
 *   from, order  as fj_lane_execute().
 *   owns     the library owns `f` until fj_future_fini() has returned.
 *   returns  as fj_lane_execute(). FJ_EINVAL also where fj_future_submit() returns it, and if `f`
 *            is a completer or a timer. On an error the caller owns `f`.
 *   misuse   An action of a lane of width 1 that waits for a later future of the same lane never
 *            returns.
 */
FJ_API FJ_NODISCARD int fj_lane_submit(fj_lane *l, fj_future *f);

/*
 * Gives call(arg) to the lane as an allocated future.
 *
 *   from, order  as fj_lane_execute().
 *   owns     the caller gets one reference in *f and drops it by fj_future_unref().
 *   returns  as fj_lane_execute(). FJ_EINVAL if `l`, `call` or `f` is NULL. After an error *f is
 *            unchanged.
 */
FJ_API FJ_NODISCARD int fj_lane_call(fj_lane *l, fj_call_fn *call, void *arg, fj_future **f);

/*
 * Pauses the lane: no further action begins. Running actions continue, and the lane accepts
 * actions. The pauses are counted: the lane continues when fj_lane_resume() was called as often as
 * fj_lane_pause().
 *
 * When the call returns, an action that a thread has taken before may still be about to begin. It
 * counts as running: if fj_lane_running() returns 0 after the pause, no action runs until
 * fj_lane_resume().
 *
 *   returns  FJ_OK; FJ_EINVAL if `l` is NULL.
 */
FJ_API int fj_lane_pause(fj_lane *l);

/*
 * Takes one pause back.
 *
 *   returns  FJ_OK; FJ_EINVAL if `l` is NULL or not paused.
 */
FJ_API int fj_lane_resume(fj_lane *l);

/*
 * Waits until no action of the lane waits or runs, for one moment. If other threads keep giving
 * actions to the lane, this moment may not come; to wait for certain actions only, use futures. A
 * paused lane with waiting actions is not empty before it is resumed.
 *
 *   from     any thread except one that runs an action of this lane. A worker that waits is
 *            replaced, as in fj_managed_block().
 *   order    everything that the actions did happens before the return of FJ_OK.
 *   returns  FJ_OK. FJ_ETIMEDOUT after timeout_ns; if timeout_ns is 0 or less, the call checks once.
 *            FJ_EDEADLK from a thread that runs an action of this lane. FJ_ECANCELED if the calling
 *            task is interrupted (forkjoin/future.h). FJ_EINVAL if `l` is NULL.
 */
FJ_API FJ_NODISCARD int fj_lane_drain(fj_lane *l, int64_t timeout_ns);

/*
 * Cancels the waiting actions: those that were given to the lane before the call and have not
 * begun. Running actions continue. The lane stays open.
 *
 *   order    when the call returns, the futures among the cancelled actions are done, and
 *            `on_cancel` has returned for the others. An action that had already been taken by a
 *            thread, and so counts as running, may still be about to begin.
 *   returns  the number of cancelled actions; 0 if `l` is NULL.
 */
FJ_API size_t fj_lane_cancel(fj_lane *l);

/*
 * Closes the lane: it accepts no further action. Waiting actions still run. Calls that wait for room
 * return FJ_EREJECTED. A second call has no effect.
 *
 *   returns  FJ_OK; FJ_EINVAL if `l` is NULL.
 */
FJ_API int fj_lane_close(fj_lane *l);

/*
 * Closes the lane, waits until no action waits or runs, and frees the lane. If the lane is paused,
 * its waiting actions are cancelled. An interrupt of the calling task does not end the wait.
 *
 *   from     any thread except one that runs an action of this lane. No other thread uses the lane
 *            during the call or later, except that calls may still wait for room or in
 *            fj_lane_drain().
 *   returns  FJ_OK, also if `l` is NULL; FJ_EDEADLK, with the lane unchanged, from a thread that runs
 *            an action of this lane.
 */
FJ_API int fj_lane_destroy(fj_lane *l);

/* Returns the number of waiting actions, without those of calls that wait for room; 0 if `l` is
 * NULL. */
FJ_API size_t fj_lane_pending(fj_lane *l);

/* Returns the number of running actions, also blocked ones; 0 if `l` is NULL. */
FJ_API size_t fj_lane_running(fj_lane *l);

FJI_EXTERN_C_END

#endif /* FORKJOIN_LANE_H */
