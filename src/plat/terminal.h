/* SPDX-License-Identifier: MIT */
/*
 * terminal.h - writing to a terminal without waiting for it
 *
 * A terminal may stop accepting output at any time, for example after Ctrl-S. A write() to the
 * terminal then blocks until the user continues the output. fji_terminal_open() therefore opens the
 * terminal a second time, in non-blocking mode. The mode belongs to the open file description, so
 * the caller's own descriptor remains in blocking mode. If the terminal cannot be opened again, for
 * example because it belongs to another user, fji_terminal_write() writes to the caller's
 * descriptor, but only when poll() reports that it is writable. Such a write() may still wait, if
 * the terminal has space for only a part of the bytes.
 *
 * No function of this file changes errno or is a cancellation point of pthread_cancel().
 */
#ifndef FJI_TERMINAL_H
#define FJI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fji_terminal {
    int fd;       /* the descriptor that output is written to */
    bool owned;   /* fd was opened by fji_terminal_open() */
    long process; /* id of the process that called fji_terminal_open() */
} fji_terminal;

/* Initialises *t for the terminal that the descriptor `fd` refers to. Returns false if fd is not a
 * terminal; then *t is initialised too, and output to *t is written to fd. */
bool fji_terminal_open(fji_terminal *t, int fd);

/* Closes the descriptor that fji_terminal_open() has opened, if it has opened one. */
void fji_terminal_close(fji_terminal *t);

/* Returns false in a child process that fork() has created since fji_terminal_open(). */
bool fji_terminal_is_ours(const fji_terminal *t);

/* Returns the number of columns of the terminal, or 0 if the terminal does not report it. */
size_t fji_terminal_columns(const fji_terminal *t);

/*
 * Writes as many of the n bytes as the terminal accepts. Each time the terminal accepts nothing,
 * waits for it for at most `timeout_ms` milliseconds, and returns if it still accepts nothing.
 * Returns the number of bytes that the caller need not write again: the bytes written or, if an
 * error occurred, all n bytes, of which the unwritten ones are discarded.
 */
size_t fji_terminal_write(const fji_terminal *t, const char *bytes, size_t n, int timeout_ms);

#endif /* FJI_TERMINAL_H */
