/* SPDX-License-Identifier: MIT */
/*
 * blocking.h - the system calls behind <forkjoin/block.h>
 *
 * The second half of the porting contract (plat.h is the first): waits for mutexes, condition
 * variables, semaphores and files, which belong to the program and not to the library. A function
 * that waits does so in one system call, which it does not repeat. These functions know no pool;
 * pool/block.c lets another worker become active during a wait.
 *
 * Any thread may call these functions, inside or outside a pool. A function that returns int or
 * ssize_t, except fji_plat_errno(), returns 0 or a positive result on success, and a negated error
 * number on failure. If the library has a code for the error (FJ_EBUSY, FJ_EAGAIN, FJ_ETIMEDOUT and
 * others), the negated number is equal to this code. FJI_PLAT_EINTR means that a signal handler
 * interrupted the call. Deadlines are times of fji_plat_now(), and FJ_FOREVER means no deadline.
 *
 * These functions may change errno; the caller saves it with fji_plat_errno(). A function is a
 * cancellation point of pthread_cancel() if the system call that it makes is one.
 */
#ifndef FJI_BLOCKING_H
#define FJI_BLOCKING_H

#include <forkjoin/block.h>
#include <stdbool.h>

#include "plat.h"

/* The negated error number EINTR. The library has no public code for it. */
#define FJI_PLAT_EINTR (-4)

/* fji_plat_errno() returns errno of the calling thread, and fji_plat_set_errno() sets it. */
int fji_plat_errno(void);
void fji_plat_set_errno(int value);

/* ---- Mutexes, condition variables, semaphores ------------------------------------------------ */

/* Locks *m if it is free. Returns 0 if it did, FJ_EBUSY if *m is held, or another error of the
 * system. */
int fji_plat_mutex_trylock(pthread_mutex_t *m);

/* Waits for *m and locks it. Returns 0 or an error of the system, never FJ_EBUSY. */
int fji_plat_mutex_lock(pthread_mutex_t *m);

/*
 * Unlocks *m, waits until *c is signalled, at most until the deadline, and locks *m again. Returns
 * 0 if *c was signalled, and possibly also without a signal; FJ_ETIMEDOUT if the deadline has
 * passed; or another error of the system.
 */
int fji_plat_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t deadline_ns);

/*
 * Decrements the value of *s if it is not 0. Returns 0 if it did, FJ_EAGAIN if the value is 0,
 * FJI_PLAT_EINTR, or another error of the system.
 */
int fji_plat_sem_trywait(sem_t *s);

/*
 * Waits until the value of *s is not 0, at most until the deadline, and decrements it. Returns 0 if
 * it did, FJ_ETIMEDOUT if the deadline has passed, FJI_PLAT_EINTR, or another error of the system.
 */
int fji_plat_sem_wait(sem_t *s, int64_t deadline_ns);

/* ---- Files ----------------------------------------------------------------------------------- */

/*
 * Waits for events on the n files of `fds`, for at most timeout_ns. If timeout_ns is 0, does not
 * wait; if it is FJ_FOREVER, waits without a limit. Returns the number of files with events, 0 if
 * the time has expired, FJI_PLAT_EINTR, or another error of the system.
 */
int fji_plat_poll(struct pollfd *fds, nfds_t n, int64_t timeout_ns);

/*
 * As fji_plat_poll(), for a wait that another thread ends by sending `signal` to the calling
 * thread. This function blocks the signal, calls stop(), and unblocks the signal only inside the
 * system call that waits. If stop() returns true, the function returns FJI_PLAT_EINTR without
 * waiting. A signal that is sent after stop() has returned false ends the wait: because it is
 * blocked until the wait begins, it cannot be handled between stop() and the wait. The caller
 * must not have blocked the signal itself.
 */
int fji_plat_poll_signal(struct pollfd *fds, nfds_t n, int64_t timeout_ns, int signal,
                         bool (*stop)(void));

/* Call read() or write() once. Return the number of bytes transferred, FJI_PLAT_EINTR, or another
 * error of the system. */
ssize_t fji_plat_read(int fd, void *buf, size_t n);
ssize_t fji_plat_write(int fd, const void *buf, size_t n);

/*
 * Returns whether a read() of n bytes, or a write() of n bytes if `writes` is true, returns without
 * waiting, as far as the system can tell. Also returns true if the call would fail, if the file is
 * non-blocking, or for a read() of 0 bytes. Otherwise returns false for a blocking write() of more
 * than PIPE_BUF bytes, because the file may have space for only a part of them.
 */
bool fji_plat_transfer_ready(int fd, bool writes, size_t n);

#endif /* FJI_BLOCKING_H */
