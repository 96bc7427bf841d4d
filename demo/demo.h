/* SPDX-License-Identifier: MIT */
/*
 * demo.h - the interface between demo.c and the computations
 *
 * Each computation is a file of its own with one struct of functions. demo.c prepares the
 * computation, runs it serially and then in parallel on the common pool, and prints one row of the
 * table.
 */
#ifndef DEMO_H
#define DEMO_H

#include <forkjoin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct demo_options {
    bool quick;
    const char *out; /* folder for the picture */
    const char *dir; /* folder whose files are counted */
} demo_options;

/*
 *   prepare   creates the input, writes a description of the computation for the table to `what`,
 *             and returns the number of steps that one run reports with demo_step()
 *   serial    does the same work as parallel, but without a pool
 *   parallel  returns FJ_OK or an error code
 *   finish    frees all memory and returns whether the results are equal and right. It may write a
 *             sentence for the user to `note`, which the caller has set to an empty string
 */
typedef struct demo {
    const char *name;
    uint64_t (*prepare)(const demo_options *o, char *what, size_t cap);
    void (*serial)(void);
    int (*parallel)(void);
    bool (*finish)(const demo_options *o, char *note, size_t cap);
} demo;

extern const demo demo_mandelbrot, demo_sort, demo_queens, demo_matrix, demo_tree;

/* Reports `n` more steps as done. Any thread may call it. It is cheap, but too expensive for an
 * innermost loop. */
void demo_step(uint64_t n);

/* Prints a message and ends the program. */
void demo_fail(const char *what);

/* Returns memory as calloc(n, size) does. If there is none, it ends the program. */
void *demo_alloc(size_t n, size_t size);

#endif
