/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/every.h - running a function on every worker, and stopping the world
 *
 * fj_broadcast() runs a function once on every thread that works for a pool, and waits for all of
 * them. Meanwhile no task of the pool runs: the world is stopped. A language runtime or a
 * decision-diagram package can collect garbage in it, and a program can set a thread-local variable
 * of every worker.
 *
 *     static int collect(void *heap)
 *     {
 *         mark_roots_of_this_thread(heap);   // may fork and join
 *         return FJ_OK;
 *     }
 *
 *     if (heap_is_full(heap)) err = fj_broadcast(pool, collect, heap);   // in any task
 *
 * Safepoints
 *   A worker takes part at its next safepoint. These are safepoints:
 *     - fj_safepoint(), for bodies that run long;
 *     - the time between two tasks of a worker, and its time without a task;
 *     - a join that has to wait, and every other wait of the library for a task, a future, the
 *       quiescence of a pool, its end (fj_pool_await_termination()), or a time (fj_sleep_ns());
 *     - the beginning and the end of a wait in fj_block_poll(), fj_block_read() and
 *       fj_block_write().
 *   A fork, and a join that finds its task in the own queue, are no safepoints: they cost the same
 *   as without broadcasts. (A typed fork that has to wait for memory is one.)
 *
 *   The broadcast waits for every worker. A body that runs long and has no safepoint delays it. So
 *   does a worker that waits for a lock, a semaphore or a system call, destroys another pool, or is
 *   between fj_block_begin() and fj_block_end(): it takes part at its first safepoint after that.
 *   Do not hold a lock at a safepoint if another worker may wait for this lock: that worker would
 *   not reach a safepoint. What a worker waits for in such a section must not depend on tasks that
 *   are still queued, or on a thread that enters the pool, because both have to wait until the
 *   broadcast has ended.
 *
 * Which threads
 *   Every worker thread that exists, also one that is blocked or is just starting, and every thread
 *   outside the pool that works in it as a helping caller. fj_broadcast() starts no thread. A worker
 *   that exits meanwhile is left out, unless it has taken part already. A thread that starts or
 *   enters the pool meanwhile waits until the broadcast has ended. If there is no memory for a
 *   helping caller to enter the pool, the caller may run its task outside the pool; it does not stop
 *   then. Nor does a thread outside the pool that runs a task with fj_taken_run(), or a timer thread
 *   that calls an `on_timeout` callback.
 *
 * Order
 *   All participants stop; then each calls fn once; when all calls have returned, all continue. From
 *   the first call of fn to the last return, no task of the pool runs, except tasks that were forked
 *   or submitted by fn or by such tasks. What a participant did before it stopped is visible to
 *   every call of fn, and what fn did is visible to every participant afterwards.
 *
 * Inside fn
 *   fn may fork and join in both tiers, and may use futures and the algorithms. Only participants
 *   run these tasks: those that wait for them, and those that have returned from fn. A participant
 *   never runs an older task meanwhile. fn runs without the cancellation token of the task that it
 *   interrupts. fj_current_worker() is the index of the worker. An action that fn submits may run in
 *   the broadcast or later. fn must not wait for a task that was queued before the broadcast, for the
 *   quiescence of the pool, or for a task of a pool whose workers may need this one: it would wait
 *   forever.
 *
 * Several broadcasts
 *   The process runs one broadcast at a time. A thread that asks for another one waits for its turn.
 *   If it is a worker of the pool that is stopped, it takes part first.
 */
#ifndef FORKJOIN_EVERY_H
#define FORKJOIN_EVERY_H

#include <forkjoin.h>

FJI_EXTERN_C_BEGIN

/*
 * Calls fn(arg) once on every thread that works for `pool` (NULL: the common pool), while no task of
 * the pool runs, and returns when all calls have returned. If the calling thread works for the pool,
 * it takes part. If it does not, it only waits.
 *
 *   from     any thread: a task at any depth, or a thread outside the pool.
 *   order    everything that a participant did before the broadcast happens before each call of fn;
 *            each call of fn happens before fj_broadcast() returns and before any task continues.
 *   returns  FJ_OK, also if the pool has no thread and fn was not called. The first code other than
 *            FJ_OK that a call of fn returned; the other calls are made all the same. FJ_EREJECTED if
 *            the pool has stopped. FJ_EDEADLK in fn, and in a task that runs during a broadcast.
 *            FJ_EINVAL if `fn` is NULL. FJ_ENOMEM if there is no common pool.
 *   misuse   a fork in fn without a join.
 *   Java     no counterpart. The JVM stops its threads at its own safepoints.
 */
FJ_API FJ_NODISCARD int fj_broadcast(fj_pool *pool, fj_action_fn *fn, void *arg);

/* Private: not 0 while a broadcast is in progress. */
FJ_API extern uint32_t fji_asked;
FJ_API FJI_COLD void fji_safepoint_slow(void);

FJI_EXTERN_C_END

/*
 * Takes part in a broadcast if the calling thread is called to one. Call it now and then in a body
 * that runs long without a join that waits. While no broadcast is in progress, the call costs one
 * load and one branch. Does nothing in a thread outside a pool.
 *
 *   from     any thread.
 *   misuse   holding a lock that another worker may wait for.
 *   Java     no counterpart.
 */
FJI_INLINE void fj_safepoint(void)
{
    /* relaxed: fji_safepoint_slow() takes a lock before it reads more. */
    if (FJI_UNLIKELY(__atomic_load_n(&fji_asked, __ATOMIC_RELAXED) != 0)) fji_safepoint_slow();
}

#endif /* FORKJOIN_EVERY_H */
