/* SPDX-License-Identifier: MIT */
/*
 * terminal.h - writing to a terminal without waiting for it
 *
 * A terminal may stop accepting output at any time, for example after Ctrl-S. A write() to it then
 * blocks for as long as the user likes. fji_terminal_open() therefore opens the terminal a second
 * time, in non-blocking mode: the mode belongs to the open file description, so the caller's own
 * descriptor keeps blocking. If the terminal cannot be opened again, for example because it belongs
 * to another user, the caller's descriptor is used whenever poll() reports that it is writable.
 *
 * No function changes errno, and a thread that is cancelled (pthread_cancel()) does not end inside
 * one of them.
 */
#ifndef FJI_TERMINAL_H
#define FJI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fji_terminal {
    int fd;
    bool owned;   /* fd was opened by fji_terminal_open() */
    long process; /* the process that called fji_terminal_open() */
} fji_terminal;

/* Sets up *t for the terminal `fd`. Returns false if fd is not a terminal. */
bool fji_terminal_open(fji_terminal *t, int fd);

/* Closes what fji_terminal_open() has opened. */
void fji_terminal_close(fji_terminal *t);

/* Returns false in a child process that fork() has created since fji_terminal_open(). */
bool fji_terminal_is_ours(const fji_terminal *t);

/* Returns the number of columns, or 0 if the terminal does not report it. */
size_t fji_terminal_columns(const fji_terminal *t);

/*
 * Writes as many of the n bytes as the terminal accepts. Waits at most `timeout_ms` each time that
 * it accepts nothing. Returns how many bytes are done: written or, after an error, discarded.
 */
size_t fji_terminal_write(const fji_terminal *t, const char *bytes, size_t n, int timeout_ms);

#endif /* FJI_TERMINAL_H */
