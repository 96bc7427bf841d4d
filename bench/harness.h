/* SPDX-License-Identifier: MIT */
/*
 * harness.h - the shared main program of the benchmark programs
 *
 * The program of a runtime describes the runtime in a bench_runtime and passes it to bench_main().
 * bench_main() reads the command line, starts the pool, repeats and times the workload, checks
 * the answer and prints one line per repetition:
 *
 *     result WORKLOAD RUNTIME WORKERS SECONDS TASKS CHECKSUM_OK [NAME=VALUE...]
 *
 * Each program implements the fork/join workloads itself, one kernel per workload. The harness
 * implements the others: submit-1, submit-2 and wake need only the submit function of the runtime;
 * trip-PAUSE, first and create need only its round_trip function; and idle needs only a kernel that
 * keeps the pool busy for a short time. This header compiles as C11 and as C++17.
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes the case on the started pool and returns its answer. The whole call is timed. */
typedef double bench_kernel(const bench_case *c);

/* The body of a submitted task: the task calls body(arg). */
typedef void bench_body(void *arg);

/* One supported workload. The entry "idle" has the kernel that keeps the pool busy before the
 * harness measures the idle time; that is the kernel of fib. */
typedef struct bench_entry {
    const char *workload;
    bench_kernel *run;
} bench_entry;

/*
 * The description of a runtime.
 *
 *   name     the name in the result lines
 *   entries  the supported fork/join workloads, oversub and idle; the last entry is {NULL, NULL}
 *   start    creates a pool of `workers` threads. first and create call it once per round, and it
 *            is a part of what they measure. For the other workloads it is called once and is not
 *            timed. `outside` is true for the workloads that use submit or round_trip: there the
 *            caller only submits tasks, and all workers are other threads. If it is false and the
 *            calling thread of this runtime runs tasks too, that thread counts as one of the
 *            workers. NULL if the runtime needs no start.
 *   stop     destroys the pool and waits until its threads have ended. No task is pending, but the
 *            last body may not have returned yet. create times this call. NULL if the runtime
 *            needs no stop.
 *   submit   submits one task from a thread outside the pool, and does not wait for it. Any
 *            thread may call it at any time. NULL if the runtime has no such function.
 *   round_trip  submits one task from the main thread, which is outside the pool, and blocks until
 *            a worker has run the task. NULL if the runtime has no such function.
 */
typedef struct bench_runtime {
    const char *name;
    const bench_entry *entries;
    void (*start)(int workers, bool outside);
    void (*stop)(void);
    void (*submit)(bench_body *body, void *arg);
    void (*round_trip)(bench_body *body, void *arg);
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
