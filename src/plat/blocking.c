/* SPDX-License-Identifier: MIT */
/*
 * blocking.c - the functions of blocking.h, implemented by POSIX calls
 *
 * This file is compiled for every platform layer. For the simulator, plat/sim/posix.h replaces the
 * POSIX calls for mutexes, condition variables and semaphores.
 */
#define _GNU_SOURCE /* pthread_cond_clockwait(), sem_clockwait(), ppoll() */
#include "blocking.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* The error codes of the library are the negated error numbers of Linux. On a system with other
 * numbers, the functions of this file would have to translate their results. */
_Static_assert(FJI_PLAT_EINTR + EINTR == 0, "EINTR has another number");
_Static_assert((int)FJ_EAGAIN == -EAGAIN, "EAGAIN has another number");
_Static_assert((int)FJ_EBUSY == -EBUSY, "EBUSY has another number");
_Static_assert((int)FJ_EINVAL == -EINVAL, "EINVAL has another number");
_Static_assert((int)FJ_EDEADLK == -EDEADLK, "EDEADLK has another number");
_Static_assert((int)FJ_ETIMEDOUT == -ETIMEDOUT, "ETIMEDOUT has another number");

int fji_plat_errno(void)
{
    return errno;
}

void fji_plat_set_errno(int value)
{
    errno = value;
}

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

/* ---- Mutexes, condition variables, semaphores ------------------------------------------------ */

int fji_plat_mutex_trylock(pthread_mutex_t *m)
{
    return -pthread_mutex_trylock(m);
}

int fji_plat_mutex_lock(pthread_mutex_t *m)
{
    return -pthread_mutex_lock(m);
}

int fji_plat_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t deadline_ns)
{
    struct timespec at = timespec_of(deadline_ns);

    if (deadline_ns == FJ_FOREVER) return -pthread_cond_wait(c, m);
    return -pthread_cond_clockwait(c, m, CLOCK_MONOTONIC, &at);
}

int fji_plat_sem_trywait(sem_t *s)
{
    return sem_trywait(s) == 0 ? 0 : -errno;
}

int fji_plat_sem_wait(sem_t *s, int64_t deadline_ns)
{
    struct timespec at = timespec_of(deadline_ns);

    if (deadline_ns == FJ_FOREVER) return sem_wait(s) == 0 ? 0 : -errno;
    return sem_clockwait(s, CLOCK_MONOTONIC, &at) == 0 ? 0 : -errno;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* Waits as fji_plat_poll() does. During the wait, `mask` is the signal mask of the calling thread.
 * If `mask` is NULL, the signal mask does not change. */
static int poll_with_mask(struct pollfd *fds, nfds_t n, int64_t timeout_ns, const sigset_t *mask)
{
    struct timespec left = timespec_of(timeout_ns);
    int result = ppoll(fds, n, timeout_ns == FJ_FOREVER ? NULL : &left, mask);

    return result >= 0 ? result : -errno;
}

int fji_plat_poll(struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
    return poll_with_mask(fds, n, timeout_ns, NULL);
}

int fji_plat_poll_signal(struct pollfd *fds, nfds_t n, int64_t timeout_ns, int signal,
                         bool (*stop)(void))
{
    sigset_t one, old;

    sigemptyset(&one);
    sigaddset(&one, signal);
    pthread_sigmask(SIG_BLOCK, &one, &old);
    int result = stop() ? FJI_PLAT_EINTR : poll_with_mask(fds, n, timeout_ns, &old);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return result;
}

ssize_t fji_plat_read(int fd, void *buf, size_t n)
{
    ssize_t result = read(fd, buf, n);
    return result >= 0 ? result : -errno;
}

ssize_t fji_plat_write(int fd, const void *buf, size_t n)
{
    ssize_t result = write(fd, buf, n);
    return result >= 0 ? result : -errno;
}

/* Returns whether the flags of the file make a read(), or a write() if `writes`, return at once:
 * the file is non-blocking, or the call fails. poll() does not take these flags into account. */
static bool flags_forbid_waiting(int fd, bool writes)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || (flags & O_NONBLOCK) != 0) return true;
    return (flags & O_ACCMODE) == (writes ? O_RDONLY : O_WRONLY);
}

bool fji_plat_transfer_ready(int fd, bool writes, size_t n)
{
    struct pollfd one = {.fd = fd, .events = writes ? POLLOUT : POLLIN};

    if (!writes && n == 0) return true;
    if ((!writes || n <= PIPE_BUF) && fji_plat_poll(&one, 1, 0) != 0) return true;
    return flags_forbid_waiting(fd, writes);
}
