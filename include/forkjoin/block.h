/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/block.h - waiting in a task for something that is not a task
 *
 * Not included by <forkjoin.h>, so that only programs that need it get <poll.h>, <pthread.h> and
 * <semaphore.h>. A worker that sleeps in a lock or in read() runs no tasks. The functions below
 * tell the pool that the calling worker waits, and the pool lets another worker run in its place.
 * Outside a pool they only wait.
 *
 * Replacing a waiting worker
 *   This rule holds for the functions below and for every other wait of the library: a join, a wait
 *   for a future, a wait for another pool. A waiting worker does not count against `parallelism`:
 *   as long as tasks are queued, `parallelism` other workers can run.
 *
 *   The pool wakes an idle worker if there is one. It starts a thread only if a task is queued, no
 *   worker is idle, and the pool has fewer than max_threads threads. A pool with max_threads
 *   threads does not replace the waiting worker.
 *
 * Refused threads
 *   The system, `allow_thread` or `create_thread` may refuse the thread. Then the library asks
 *   again: at every later submission, at some of the later forks, and by itself. The pauses between
 *   its own attempts grow from 0.1 ms to 100 ms. It stops when a thread has started or no task is
 *   queued.
 *
 *   The library cannot ask by itself during a wait that it does not control: between
 *   fj_block_begin() and fj_block_end(), in the block() callback of fj_managed_block(), and in the
 *   system call of fj_block_read() or fj_block_write(). If tasks are queued and no worker of the
 *   pool is active, the library puts off the beginning of such a wait, for about 1 s at most, and
 *   asks again meanwhile. During the wait the timer thread of the pool asks (forkjoin/timer.h). If
 *   the system refuses that thread too, only a later call to the pool asks again.
 */
#ifndef FORKJOIN_BLOCK_H
#define FORKJOIN_BLOCK_H

#include <forkjoin.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

FJI_EXTERN_C_BEGIN

/*
 * Waits until a condition holds that the two callbacks define.
 *
 * ready(arg) returns 1 if the condition holds, else 0. It does not wait. block(arg) waits. It
 * returns 1 if the condition holds, 0 if the library shall call ready() again, or a negative code
 * to end the wait with that code.
 *
 * The call returns at once if ready() returns 1. Otherwise it calls block() and ready() in turn.
 * Meanwhile another worker may run in place of the caller.
 *
 *   returns  FJ_OK if the condition holds. The negative code of block(). FJ_ESATURATED if the pool
 *            has max_threads threads and its `allow_saturation` (fj_pool_options) returned 0;
 *            block() was not called. FJ_ECANCELED if the calling task is interrupted
 *            (forkjoin/future.h); the library checks this before each block(). FJ_EINVAL if `ready`
 *            or `block` is NULL.
 *   Java     managedBlock(ManagedBlocker).
 */
FJ_API FJ_NODISCARD int fj_managed_block(int (*ready)(void *arg), int (*block)(void *arg),
                                         void *arg);

/* A wait between fj_block_begin() and fj_block_end(). The members are private. */
typedef struct fj_blocking {
    void *worker;
    int token;
} fj_blocking;

/*
 * Begins a section in which the calling thread may sleep. Another worker may run in its place until
 * fj_block_end().
 *
 * If the call returns FJ_OK, the same thread must call fj_block_end(b) on every path. If it returns
 * an error, do not call fj_block_end().
 *
 *   owns     *b belongs to the library until fj_block_end() returns.
 *   returns  FJ_OK. FJ_ESATURATED if the pool has max_threads threads and its `allow_saturation`
 *            returned 0. FJ_EINVAL if `b` is NULL.
 */
FJ_API FJ_NODISCARD int fj_block_begin(fj_blocking *b);

/*
 * Ends the section that fj_block_begin(b) began.
 *
 *   from     the thread that called fj_block_begin(b).
 */
FJ_API void fj_block_end(fj_blocking *b);

/*
 * The functions below wait for a mutex, a condition variable, a semaphore, an amount of time or a
 * file. All but fj_block_cond_wait() and fj_sleep_ns() first try without waiting. If the pool has
 * max_threads threads they wait without a replacement; they never return FJ_ESATURATED.
 *
 * timeout_ns is the longest wait. FJ_FOREVER means no limit. If it is 0 or less, the function does
 * not wait.
 *
 * An error of the system is returned as its negated error number. For errors that the library has
 * too (FJ_EINVAL, FJ_EDEADLK and others) that is the same number. errno is unchanged.
 */

/*
 * Locks `m` as pthread_mutex_lock() does. An interrupt of the calling task does not end the wait.
 *
 *   returns  FJ_OK if the caller has the lock. FJ_EINVAL if `m` is NULL. Otherwise the negated
 *            error number of pthread_mutex_lock().
 */
FJ_API FJ_NODISCARD int fj_block_mutex_lock(pthread_mutex_t *m);

/*
 * Waits for a signal of `c` as pthread_cond_wait() does. The caller has locked `m`.
 *
 * If timeout_ns is 0 or less, the call returns FJ_ETIMEDOUT and does not unlock `m`. An interrupt
 * of the calling task does not end the wait.
 *
 *   returns  FJ_OK after a signal, and sometimes without one, as pthread_cond_wait(). FJ_ETIMEDOUT
 *            after timeout_ns. FJ_EINVAL if `c` or `m` is NULL. Otherwise the negated error number
 *            of pthread_cond_wait().
 */
FJ_API FJ_NODISCARD int fj_block_cond_wait(pthread_cond_t *c, pthread_mutex_t *m,
                                           int64_t timeout_ns);

/*
 * Decrements the semaphore `s` as sem_wait() does.
 *
 * If a signal handler interrupts the wait, the call waits again, unless the calling task is
 * interrupted.
 *
 *   returns  FJ_OK if it decremented `s`. FJ_ETIMEDOUT after timeout_ns. FJ_ECANCELED if a signal
 *            handler interrupted the wait and the calling task is interrupted. FJ_EINVAL if `s` is
 *            NULL. Otherwise the negated error number of sem_wait().
 */
FJ_API FJ_NODISCARD int fj_block_sem_wait(sem_t *s, int64_t timeout_ns);

/*
 * Sleeps for `ns` nanoseconds. A negative `ns` counts as 0.
 *
 *   returns  FJ_OK. FJ_ECANCELED if the calling task is interrupted (forkjoin/future.h).
 */
FJ_API int fj_sleep_ns(int64_t ns);

/*
 * The next three functions wait for files. They do not wait where read(), write() or poll() would
 * not, for example if n is 0 or the file is non-blocking.
 *
 * If a signal handler interrupts the system call, they make it again, unless the calling task is
 * interrupted. If the pool has an `interrupt_signal`, an interrupt of the calling task ends the
 * wait. Without that signal an interrupt does not end it.
 */

/*
 * Reads at most n bytes from `fd` as read() does.
 *
 *   returns  what read() returns, with a negated error number in place of -1. FJ_ECANCELED if the
 *            calling task is interrupted. FJ_EINVAL if `buf` is NULL and n is not 0.
 */
FJ_API FJ_NODISCARD ssize_t fj_block_read(int fd, void *buf, size_t n);

/*
 * Writes at most n bytes to `fd` as write() does.
 *
 *   returns  what write() returns, with a negated error number in place of -1. FJ_ECANCELED if the
 *            calling task is interrupted. FJ_EINVAL if `buf` is NULL and n is not 0.
 */
FJ_API FJ_NODISCARD ssize_t fj_block_write(int fd, const void *buf, size_t n);

/*
 * Waits for events on n files as poll() does.
 *
 *   returns  what poll() returns, with a negated error number in place of -1: the number of files
 *            with events, or 0 after timeout_ns. FJ_ECANCELED if the calling task is interrupted.
 *            FJ_EINVAL if `fds` is NULL and n is not 0.
 */
FJ_API FJ_NODISCARD int fj_block_poll(struct pollfd *fds, nfds_t n, int64_t timeout_ns);

FJI_EXTERN_C_END

#endif /* FORKJOIN_BLOCK_H */
