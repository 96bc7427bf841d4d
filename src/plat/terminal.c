/* SPDX-License-Identifier: MIT */
/*
 * terminal.c - writing to a terminal without waiting for it
 */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "nocancel.h"

bool fji_terminal_open(fji_terminal *t, int fd)
{
    char name[256];
    int saved = errno, old = fji_nocancel_begin(), own = -1;
    bool is_terminal = isatty(fd) != 0;

    if (is_terminal && ttyname_r(fd, name, sizeof name) == 0)
        own = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    t->fd = own >= 0 ? own : fd;
    t->owned = own >= 0;
    t->process = (long)getpid();
    fji_nocancel_end(old);
    errno = saved;
    return is_terminal;
}

void fji_terminal_close(fji_terminal *t)
{
    int saved = errno, old = fji_nocancel_begin();

    if (t->owned) close(t->fd);
    fji_nocancel_end(old);
    errno = saved;
}

bool fji_terminal_is_ours(const fji_terminal *t)
{
    return t->process == (long)getpid();
}

size_t fji_terminal_columns(const fji_terminal *t)
{
    struct winsize size;
    int saved = errno;
    bool known = ioctl(t->fd, TIOCGWINSZ, &size) == 0;

    errno = saved;
    return known ? size.ws_col : 0;
}

/* Writes once, after the terminal is writable; waits for that at most timeout_ms. Returns the
 * number of bytes written, 0 if the terminal accepts nothing in this time, or n after an error. */
static size_t terminal_try(const fji_terminal *t, const char *bytes, size_t n, int timeout_ms)
{
    struct pollfd ready = {.fd = t->fd, .events = POLLOUT};
    ssize_t written = -1;
    int polled;

    do {
        polled = poll(&ready, 1, timeout_ms);
        if (polled > 0) written = write(t->fd, bytes, n);
    } while (polled != 0 && written < 0 && errno == EINTR);
    if (written >= 0) return (size_t)written;
    return polled == 0 || errno == EAGAIN || errno == EWOULDBLOCK ? 0 : n;
}

size_t fji_terminal_write(const fji_terminal *t, const char *bytes, size_t n, int timeout_ms)
{
    int saved = errno, old = fji_nocancel_begin();
    size_t done = 0;

    for (size_t more = 1; done < n && more != 0; done += more)
        more = terminal_try(t, bytes + done, n - done, timeout_ms);
    fji_nocancel_end(old);
    errno = saved;
    return done;
}
