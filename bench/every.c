/* SPDX-License-Identifier: MIT */
/*
 * every.c - broadcasts and safepoints, and the nearest peer, a parallel region of OpenMP
 *
 * The program is called as `every [ROUNDS]`, or as `every omp [ROUNDS]` if it was built with OpenMP.
 * It prints the shortest and the median time of each figure. The two parts run in processes of their
 * own, because the threads of OpenMP spin for a while after a region.
 *
 *   safepoint        one call of fj_safepoint() while no broadcast is in progress, ns
 *   idle N           a broadcast by a thread outside a pool of N workers that sleep, us
 *   busy N           the same, while the workers run a body that calls fj_safepoint(), us
 *   inside N         a broadcast by one of N workers, while the others run such a body, us
 *   region N         an OpenMP parallel region in which each of N threads calls the same function, us
 */
#define _POSIX_C_SOURCE 200809L

#include <forkjoin/every.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

enum { ROUNDS_MAX = 100000, POLLS = 100000000 };

static double times[ROUNDS_MAX];
static long rounds = 1000;
static atomic_int called, in, open;

static int touch(void *arg)
{
    (void)arg;
    atomic_fetch_add_explicit(&called, 1, memory_order_relaxed);
    return FJ_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *name, int workers)
{
    qsort(times, (size_t)rounds, sizeof *times, by_value);
    printf("%-8s %2d  least %9.2f us  median %9.2f us\n", name, workers, times[0],
           times[rounds / 2]);
    fflush(stdout);
}

static void must(int err)
{
    if (err == FJ_OK) return;
    fprintf(stderr, "every: %s\n", fj_strerror(err));
    exit(1);
}

static void measure(fj_pool *pool, const char *name, int workers)
{
    for (long i = 0; i < rounds; i++) {
        uint64_t began = bench_now_ns();
        must(fj_broadcast(pool, touch, NULL));
        times[i] = (double)(bench_now_ns() - began) / 1000;
    }
    print_times(name, workers);
}

static int busy(void *arg)
{
    (void)arg;
    atomic_fetch_add(&in, 1);
    while (atomic_load_explicit(&open, memory_order_relaxed) == 0) fj_safepoint();
    return FJ_OK;
}

/* n workers run busy(), so that all threads exist. */
static void begin_busy(fj_pool *pool, int n)
{
    atomic_store(&in, 0);
    atomic_store(&open, 0);
    for (int i = 0; i < n; i++) must(fj_execute(pool, busy, NULL));
    while (atomic_load(&in) < n) sched_yield();
}

static void end_busy(fj_pool *pool)
{
    atomic_store(&open, 1);
    must(fj_pool_await_quiescence(pool, FJ_FOREVER));
}

struct asker {
    fj_task task;
    fj_pool *pool;
    int workers;
};

static int ask_inside(fj_task *t)
{
    struct asker *a = (struct asker *)t;

    while (atomic_load(&in) < a->workers - 1) fj_safepoint();
    measure(a->pool, "inside", a->workers);
    return FJ_OK;
}

static void measure_pool(int n)
{
    fj_pool_options o = {.parallelism = n, .max_threads = n};
    struct asker a = {.workers = n};
    fj_pool *pool;

    must(fj_pool_create(&pool, &o));
    begin_busy(pool, n);
    measure(pool, "busy", n);
    end_busy(pool);
    measure(pool, "idle", n);
    begin_busy(pool, n - 1);
    a.pool = pool;
    fj_task_init(&a.task, ask_inside);
    must(fj_submit(pool, &a.task));
    must(fj_join(&a.task));
    end_busy(pool);
    must(fj_pool_destroy(pool));
}

static void measure_safepoint(void)
{
    double best = 1e9;

    for (int round = 0; round < 5; round++) {
        uint64_t began = bench_now_ns();
        for (int i = 0; i < POLLS / 10; i++) fj_safepoint();
        double ns = (double)(bench_now_ns() - began) / (POLLS / 10);
        if (ns < best) best = ns;
    }
    printf("safepoint    least %9.2f ns\n", best);
}

#ifdef _OPENMP
static void measure_region(int n)
{
    for (long i = 0; i < rounds; i++) {
        uint64_t began = bench_now_ns();
#pragma omp parallel num_threads(n)
        (void)touch(NULL);
        times[i] = (double)(bench_now_ns() - began) / 1000;
    }
    print_times("region", n);
}
#endif

int main(int argc, char **argv)
{
    bool omp = argc > 1 && strcmp(argv[1], "omp") == 0;

    if (argc > 1 + omp) rounds = atol(argv[1 + omp]);
    if (rounds < 1 || rounds > ROUNDS_MAX) return 2;
    if (!omp) {
        measure_safepoint();
        measure_pool(2);
        measure_pool(8);
        return 0;
    }
#ifdef _OPENMP
    measure_region(2);
    measure_region(8);
    return 0;
#else
    fprintf(stderr, "every: built without OpenMP\n");
    return 2;
#endif
}
