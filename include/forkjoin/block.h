/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/block.h - waiting in a task for something that is not a task
 *
 * <forkjoin.h> does not include this header, so that only programs that need it get <poll.h>,
 * <pthread.h> and <semaphore.h>. A worker that sleeps in a lock or in read() runs no tasks. The
 * functions below tell the pool that the calling worker waits, and the pool lets another worker run
 * in its place. In a thread outside a pool these functions only wait.
 *
 * Replacing a waiting worker
 *   This rule holds for the functions below and for every other wait of the library: a join, a wait
 *   for a future, a wait for another pool. A waiting worker does not count against `parallelism`:
 *   as long as tasks are queued, `parallelism` other workers can run.
 *
 *   To replace a waiting worker, the pool wakes an idle worker if there is one. The pool starts a
 *   thread only if a task is queued, no worker is idle, and the pool has fewer than max_threads
 *   threads. A pool with max_threads threads does not replace the waiting worker.
 *
 * Refused threads
 *   The system, `allow_thread` or `create_thread` may refuse the thread. Then the library asks for
 *   a thread again: at every later submission, at some of the later forks, and while a worker waits
 *   in the library. The pauses between the attempts during a wait grow from 0.1 ms to 100 ms. The
 *   attempts end when a thread has started or no task is queued.
 *
 *   The library cannot ask for a thread during a wait that it does not control: between
 *   fj_block_begin() and fj_block_end(), in the block() callback of fj_managed_block(), and in the
 *   system call of fj_block_read() or fj_block_write(). If tasks are queued and no worker of the
 *   pool is active, the library puts off the beginning of such a wait, for about 1 s at most, and
 *   asks for a thread again meanwhile. During the wait the timer thread of the pool
 *   (forkjoin/timer.h) asks for a thread again. If the system refuses the timer thread too, only a
 *   later submission or fork asks again.
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
 * ready(arg) returns 1 if the condition holds, else 0. ready() does not wait. block(arg) waits for
 * the condition. block() returns 1 if the condition holds, 0 if the library shall call ready()
 * again, or a negative code to end the wait with that code.
 *
 * The call returns at once if ready() returns 1. Otherwise the call invokes block() and ready() in
 * turn, until one of them ends the wait. Meanwhile another worker may run in place of the caller.
 *
 *   returns  FJ_OK if the condition holds. The negative code that block() returned. FJ_ESATURATED
 *            if the pool has max_threads threads and its `allow_saturation` (fj_pool_options)
 *            returned 0; block() was not called in that case. FJ_ECANCELED if the calling task is
 *            interrupted (forkjoin/future.h); the library checks for an interrupt before each call
 *            of block(). FJ_EINVAL if `ready` or `block` is NULL.
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
 * Begins a section in which the calling thread may sleep. Another worker may run in place of the
 * caller until fj_block_end().
 *
 * If the call returns FJ_OK, the same thread must call fj_block_end(b) on every path. If
 * fj_block_begin() returns an error, do not call fj_block_end().
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
 * max_threads threads, no other worker replaces the waiting one; the functions never return
 * FJ_ESATURATED.
 *
 * timeout_ns is the longest wait, in nanoseconds. FJ_FOREVER means no limit. If timeout_ns is 0 or
 * less, the function does not wait.
 *
 * An error of the system is returned as its negated error number. For errors that the library also
 * defines (FJ_EINVAL, FJ_EDEADLK and others) the negated error number is the code of the library.
 * errno is unchanged.
 */

/*
 * Locks `m` as pthread_mutex_lock() does. An interrupt of the calling task does not end the wait.
 *
 *   returns  FJ_OK if the caller has the lock. FJ_EINVAL if `m` is NULL. Otherwise the negated
 *            error number of pthread_mutex_lock().
 */
FJ_API FJ_NODISCARD int fj_block_mutex_lock(pthread_mutex_t *m);

/*
 * Waits for a signal of the condition variable `c` as pthread_cond_wait() does. The caller must
 * have locked `m`.
 *
 * If timeout_ns is 0 or less, the call returns FJ_ETIMEDOUT and does not unlock `m`. An interrupt
 * of the calling task does not end the wait.
 *
 *   returns  FJ_OK after a signal of `c`, and sometimes without one, as with pthread_cond_wait().
 *            FJ_ETIMEDOUT if timeout_ns has passed. FJ_EINVAL if `c` or `m` is NULL. Otherwise the
 *            negated error number of pthread_cond_wait().
 */
FJ_API FJ_NODISCARD int fj_block_cond_wait(pthread_cond_t *c, pthread_mutex_t *m,
                                           int64_t timeout_ns);

/*
 * Decrements the semaphore `s` as sem_wait() does.
 *
 * If a signal handler interrupts the wait, the call waits again, unless the calling task is
 * interrupted.
 *
 *   returns  FJ_OK if the call decremented `s`. FJ_ETIMEDOUT if timeout_ns has passed. FJ_ECANCELED
 *            if a signal handler interrupted the wait and the calling task is interrupted.
 *            FJ_EINVAL if `s` is NULL. Otherwise the negated error number of sem_wait().
 */
FJ_API FJ_NODISCARD int fj_block_sem_wait(sem_t *s, int64_t timeout_ns);

/*
 * Sleeps for `ns` nanoseconds. A negative `ns` counts as 0.
 *
 *   returns  FJ_OK after the full time. FJ_ECANCELED if the calling task is interrupted
 *            (forkjoin/future.h).
 */
FJ_API int fj_sleep_ns(int64_t ns);

/*
 * fj_block_read(), fj_block_write() and fj_block_poll() wait for files. They do not wait where
 * read(), write() or poll() would not wait, for example if n is 0 or the file is non-blocking.
 *
 * If a signal handler interrupts the system call, these functions make the call again, unless the
 * calling task is interrupted. If the pool has an `interrupt_signal`, an interrupt of the calling
 * task ends the wait. Without an `interrupt_signal` an interrupt does not end the wait.
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
