/* SPDX-License-Identifier: MIT */
/*
 * blocking.h - the system calls behind <forkjoin/block.h>
 *
 * The second half of the porting contract (plat.h is the first): waits for mutexes, condition
 * variables, semaphores and files, which belong to the program and not to the library. A function
 * that waits makes one system call. These functions know no pool; src/block.c lets another worker
 * run meanwhile.
 *
 * Any thread may call these functions, inside or outside a pool. A function that returns int or
 * ssize_t returns 0 or a positive result on success, and a negated error number on failure. Where
 * the library has a code for the error (FJ_EBUSY, FJ_EAGAIN, FJ_ETIMEDOUT and others), the number
 * is that code. FJI_PLAT_EINTR means that a signal handler interrupted the call. Deadlines are
 * times of fji_plat_now(), and FJ_FOREVER means no deadline.
 *
 * These functions may change errno; the caller saves it with fji_plat_errno(). Those that wait are
 * cancellation points, as the calls that they make.
 */
#ifndef FJI_BLOCKING_H
#define FJI_BLOCKING_H

#include <forkjoin/block.h>
#include <stdbool.h>

#include "plat.h"

/* The negated number of EINTR, for which the library has no code. */
#define FJI_PLAT_EINTR (-4)

/* Get and set errno of the calling thread. */
int fji_plat_errno(void);
void fji_plat_set_errno(int value);

/* ---- Mutexes, condition variables, semaphores ------------------------------------------------ */

/* Locks *m if it is free. Returns 0, FJ_EBUSY if it is held, or another error of the system. */
int fji_plat_mutex_trylock(pthread_mutex_t *m);

/* Waits for *m and locks it. Returns 0 or an error of the system, never FJ_EBUSY. */
int fji_plat_mutex_lock(pthread_mutex_t *m);

/*
 * Unlocks *m, waits for a signal of *c at most until the deadline, and locks *m again. Returns 0,
 * possibly without a signal; FJ_ETIMEDOUT after the deadline; or another error of the system.
 */
int fji_plat_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t deadline_ns);

/*
 * Decrements *s if it is not 0. Returns 0, FJ_EAGAIN if *s is 0, FJI_PLAT_EINTR, or another error
 * of the system.
 */
int fji_plat_sem_trywait(sem_t *s);

/*
 * Waits until *s is not 0, at most until the deadline, and decrements it. Returns 0, FJ_ETIMEDOUT,
 * FJI_PLAT_EINTR, or another error of the system.
 */
int fji_plat_sem_wait(sem_t *s, int64_t deadline_ns);

/* ---- Files ----------------------------------------------------------------------------------- */

/*
 * Waits for events on n files, at most timeout_ns: 0 does not wait, FJ_FOREVER has no limit.
 * Returns the number of files with events, 0 after the timeout, FJI_PLAT_EINTR, or another error.
 */
int fji_plat_poll(struct pollfd *fds, nfds_t n, int64_t timeout_ns);

/*
 * As fji_plat_poll(), for a wait that another thread ends by sending `signal` to the calling
 * thread. The signal is blocked except inside the system call. stop() is called after the signal is
 * blocked, and if it returns true the call returns FJI_PLAT_EINTR without waiting. So a signal that
 * is sent after stop() has returned false ends the wait; it cannot arrive between stop() and the
 * wait and have no effect.
 */
int fji_plat_poll_signal(struct pollfd *fds, nfds_t n, int64_t timeout_ns, int signal,
                         bool (*stop)(void));

/* One read() or write(). Returns the number of bytes, FJI_PLAT_EINTR, or another error. */
ssize_t fji_plat_read(int fd, void *buf, size_t n);
ssize_t fji_plat_write(int fd, const void *buf, size_t n);

/*
 * Whether a read, or a write if `writes`, of n bytes returns without waiting, as far as the system
 * can tell. True also if the call would fail or if the file is non-blocking. False for a blocking
 * write of more than PIPE_BUF bytes: the file may have space for only a part of them.
 */
bool fji_plat_transfer_ready(int fd, bool writes, size_t n);

#endif /* FJI_BLOCKING_H */
