/* SPDX-License-Identifier: MIT */
/*
 * demo.h - what a computation of the demo offers, and the progress it reports
 *
 * Each computation is a file of its own with one table of functions. demo.c prepares it, runs it
 * serially and in parallel on the common pool, compares the two results and prints a line.
 */
#ifndef DEMO_H
#define DEMO_H

#include <forkjoin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct demo_options {
    bool quick;
    const char *out; /* folder of the picture */
    const char *dir; /* folder to be summed */
} demo_options;

/*
 *   prepare   makes the input; puts into `what` what is computed, for the table, and returns the
 *             number of steps that a run reports by demo_step()
 *   serial    the same work as parallel, without a pool
 *   parallel  returns FJ_OK or an error
 *   finish    whether the results are equal and right; releases everything. May leave a
 *             sentence in `note`, which is empty before
 */
typedef struct demo {
    const char *name;
    uint64_t (*prepare)(const demo_options *o, char *what, size_t cap);
    void (*serial)(void);
    int (*parallel)(void);
    bool (*finish)(const demo_options *o, char *note, size_t cap);
} demo;

extern const demo demo_mandelbrot, demo_sort, demo_queens, demo_matrix, demo_tree;

/* Reports `n` steps as done. Any thread; cheap, but not for the innermost loop. */
void demo_step(uint64_t n);

/* A message, and the end of the program. */
void demo_fail(const char *what);

/* As malloc(n * size), but does not come back without memory. */
void *demo_alloc(size_t n, size_t size);

#endif
