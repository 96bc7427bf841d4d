/* SPDX-License-Identifier: MIT */
/*
 * linux/event.c - events by eventfd
 *
 * plat.h says what each function does. The functions call syscall(), which is no cancellation point
 * of pthread_cancel().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../chaos.h"
#include "../unix.h"

bool fji_plat_event_open(fji_event *e)
{
    if (fji_fault_now(FJI_FAULT_EVENT)) return false;
    int keep = errno;
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    errno = keep;
    if (fd < 0) return false;
    *e = (fji_event){fd, fd};
    return true;
}

/* The system adds the written number to a counter, and the descriptor is readable if the counter is
 * not 0. The write fails only if the counter would overflow; the event is set then. */
void fji_plat_event_set(const fji_event *e)
{
    uint64_t one = 1;
    int keep = errno;

    FJI_CHAOS_POINT();
    (void)syscall(SYS_write, e->writer, &one, sizeof one);
    errno = keep;
}

/* A read sets the counter to 0. It fails if the counter is 0 already. */
void fji_plat_event_clear(const fji_event *e)
{
    uint64_t count;
    int keep = errno;

    (void)syscall(SYS_read, e->fd, &count, sizeof count);
    FJI_CHAOS_POINT();
    errno = keep;
}

void fji_plat_event_close(const fji_event *e)
{
    int keep = errno;

    (void)syscall(SYS_close, e->fd);
    errno = keep;
}
