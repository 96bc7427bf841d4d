/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/block.h - tasks that have to wait for something that is not a task
 *
 * Not included by <forkjoin.h>, so that only its users get <poll.h>, <pthread.h> and
 * <semaphore.h>. A worker that sleeps in a lock or a read is one worker less. These
 * calls tell the pool, which lets another worker run meanwhile. Outside a pool they only wait.
 *
 * The rule holds for these calls and for every other wait of the library: a join, a wait for a
 * future, a wait for another pool. While a worker waits it does not count against `parallelism`:
 * as long as tasks are queued, `parallelism` other workers can run. The pool wakes an idle worker
 * if there is one. It starts a thread only if a task is queued, no worker is idle, and the pool has
 * fewer than max_threads threads. At max_threads the worker waits without a replacement.
 *
 * If the system, `allow_thread` or `create` refuses the thread, the library asks again: at every later
 * submission, at some of the later forks, and by itself, with pauses that grow from 0.1 ms to
 * 100 ms, until a thread comes or no task is left. One case is left out: while every thread of the
 * pool is inside code between fj_block_begin() and fj_block_end(), or inside a block() callback, and
 * the system has refused all threads for more than a second, only a later call asks again.
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
 * Waits for what the callbacks say. Calls ready(arg), and while that is 0, block(arg), which
 * waits and returns 1 if that was enough, 0 to be asked again, or a negative code to give up.
 * While block() runs, another worker may run in place of the caller.
 *
 *   returns  FJ_OK; what block() gave up with; FJ_ESATURATED if max_threads is reached and the
 *            pool's `allow_saturation` said so; FJ_ECANCELED if the calling task is interrupted or its
 *            pool stops; FJ_EINVAL.
 *   Java     managedBlock(ManagedBlocker).
 */
FJ_API FJ_NODISCARD int fj_managed_block(int (*ready)(void *arg), int (*block)(void *arg),
                                         void *arg);

/*
 * The same around code of one's own: between the two the calling thread may sleep. Each
 * begin that returned FJ_OK is followed by an end, by the same thread, on every path.
 *
 *   returns  FJ_OK; FJ_ESATURATED: nothing was begun, nothing is to be ended; FJ_EINVAL.
 */
typedef struct fj_blocking {
    void *worker;
    int token;
} fj_blocking;

FJ_API FJ_NODISCARD int fj_block_begin(fj_blocking *b);
FJ_API void fj_block_end(fj_blocking *b);

/*
 * The waits people need. They ask without waiting first, then as managed blocks; at
 * max_threads they wait without a replacement. timeout_ns: FJ_FOREVER: no limit; <= 0: only
 * try.
 *
 *   returns  FJ_OK, FJ_ETIMEDOUT, or the negated error number of the system's call, which the
 *            codes of the library are for those they share (FJ_EINVAL, FJ_EDEADLK, ...).
 *            fj_sleep_ns(): FJ_ECANCELED if the calling task is interrupted or its pool stops.
 *            fj_block_cond_wait() may return FJ_OK without a signal, as pthread_cond_wait() may.
 *            fj_block_read(), fj_block_write(), fj_block_poll(): what the system's return, a negated error
 *            number in place of -1. Where read(), write() or poll() would not wait, neither do
 *            these: n == 0, also with NULL; a descriptor that is not open, is open for the
 *            other direction or is non-blocking; a directory. NULL with n > 0 is FJ_EINVAL.
 *            After EINTR they try again, unless the task was interrupted: then they return
 *            FJ_ECANCELED. If the pool has an `interrupt_signal`, an interrupt of the task, or of
 *            a task or token above it, breaks them. errno is left alone.
 */
FJ_API FJ_NODISCARD int fj_block_mutex_lock(pthread_mutex_t *m);
FJ_API FJ_NODISCARD int fj_block_cond_wait(pthread_cond_t *c, pthread_mutex_t *m,
                                           int64_t timeout_ns);
FJ_API FJ_NODISCARD int fj_block_sem_wait(sem_t *s, int64_t timeout_ns);
FJ_API int fj_sleep_ns(int64_t ns);
FJ_API FJ_NODISCARD ssize_t fj_block_read(int fd, void *buf, size_t n);
FJ_API FJ_NODISCARD ssize_t fj_block_write(int fd, const void *buf, size_t n);
FJ_API FJ_NODISCARD int fj_block_poll(struct pollfd *fds, nfds_t n, int64_t timeout_ns);

FJI_EXTERN_C_END

#endif /* FORKJOIN_BLOCK_H */
