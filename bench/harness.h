/* SPDX-License-Identifier: MIT */
/*
 * harness.h - the shared main program of the benchmark programs
 *
 * A runtime under test describes itself by a bench_runtime and hands it to bench_main(), which
 * reads the command line, starts the pool, repeats and times the workload, checks the answer
 * and prints one line per repetition:
 *
 *     result WORKLOAD RUNTIME WORKERS SECONDS TASKS CHECKSUM_OK
 *
 * The fork/join workloads are kernels of the runtime. The others (submit-1, submit-2, wake,
 * idle) are driven from here, and need only the runtime's way of submitting from outside.
 * Usable from C11 and C++17.
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes the case on the started pool and returns its answer. The whole call is timed. */
typedef double bench_kernel(const bench_case *c);

/* What a submitted task has to do: call body(arg). */
typedef void bench_body(void *arg);

/* One supported workload. "idle" names the kernel which makes the pool busy first: fib's. */
typedef struct bench_entry {
    const char *workload;
    bench_kernel *run;
} bench_entry;

/*
 *   name     as printed in the result lines
 *   entries  the supported fork/join workloads, oversub and idle; ends with {NULL, NULL}
 *   start    makes a pool of `workers` threads. Called once, not timed. With `outside` set, for
 *            submit and wake, the caller only submits: the workers are threads beside it. Else
 *            a runtime whose calling thread takes part counts that thread as one of them.
 *            NULL if there is nothing to do.
 *   stop     the end of the pool; no task is pending then, but the last may be just returning.
 *            NULL if there is nothing to do.
 *   submit   hands one task to the pool from a thread outside of it, and does not wait. Any
 *            thread may call it at any time. NULL if the runtime has no such thing.
 */
typedef struct bench_runtime {
    const char *name;
    const bench_entry *entries;
    void (*start)(int workers, bool outside);
    void (*stop)(void);
    void (*submit)(bench_body *body, void *arg);
} bench_runtime;

/*
 * Runs `PROG WORKLOAD WORKERS REPS [--quick]`. Returns the exit status: 0, 1 for a wrong answer,
 * 2 for a wrong command line, 3 if the runtime does not support the workload.
 */
int bench_main(int argc, char **argv, const bench_runtime *rt);

#ifdef __cplusplus
}
#endif

#endif
