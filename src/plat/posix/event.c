/* SPDX-License-Identifier: MIT */
/*
 * posix/event.c - events by pipe
 *
 * plat.h says what each function does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "../chaos.h"
#include "../nocancel.h"
#include "../unix.h"

/* Makes the descriptor non-blocking, and closes it when the process calls exec(). Returns false if
 * the system refuses. */
static bool event_prepare(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

bool fji_plat_event_open(fji_event *e)
{
    int keep = errno, ends[2];

    if (fji_fault_now(FJI_FAULT_EVENT)) return false;
    bool opened = pipe(ends) == 0;
    bool ready = opened && event_prepare(ends[0]) && event_prepare(ends[1]);
    if (opened && !ready) fji_plat_event_close(&(fji_event){ends[0], ends[1]});
    errno = keep;
    if (ready) *e = (fji_event){ends[0], ends[1]};
    return ready;
}

/* The write fails with EAGAIN if the pipe is full; the event is set then. A signal handler may
 * interrupt the calls of this file, which are then repeated. */
void fji_plat_event_set(const fji_event *e)
{
    int keep = errno, old = fji_nocancel_begin();

    FJI_CHAOS_POINT();
    while (write(e->writer, "", 1) < 0 && errno == EINTR) {}
    fji_nocancel_end(old);
    errno = keep;
}

void fji_plat_event_clear(const fji_event *e)
{
    char bytes[64];
    int keep = errno, old = fji_nocancel_begin();
    ssize_t n;

    do {
        n = read(e->fd, bytes, sizeof bytes);
    } while (n == (ssize_t)sizeof bytes || (n < 0 && errno == EINTR));
    FJI_CHAOS_POINT();
    fji_nocancel_end(old);
    errno = keep;
}

void fji_plat_event_close(const fji_event *e)
{
    int keep = errno, old = fji_nocancel_begin();

    (void)close(e->fd);
    (void)close(e->writer);
    fji_nocancel_end(old);
    errno = keep;
}
