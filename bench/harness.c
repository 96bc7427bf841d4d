/* SPDX-License-Identifier: MIT */
/*
 * harness.c - command line, repetition, timing and printing for all benchmark programs
 *
 * There are four drivers: run_kernel() for the fork/join workloads, run_submit(), run_wake() and
 * run_idle(). A driver makes one measurement. It returns the seconds and whether the answer was
 * right; bench_main() does the rest.
 */
#include "harness.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
    PRODUCERS_MAX = 2,
    OUTSTANDING_MAX = 65536, /* if a producer has more unfinished tasks, it pauses */
    OUTSTANDING_LOW = 32768, /* it continues when at most this number is left */
    OUTSTANDING_LOOK = 1024, /* it checks the number once per this many submissions */
    LINE = 64,
    WAKE_WARM_ROUNDS = 10,
    WAKE_ROUNDS_MAX = 1000
};

#define POLL_NS 20000u           /* how long a pausing producer sleeps between two checks */
#define WAKE_PAUSE_NS 2000000u   /* how long the pool is idle before each wake-up */
#define IDLE_PAUSE_NS 100000000u /* from the end of the busy kernel to the first measurement */

typedef struct measure {
    double seconds;
    bool ok;
} measure;

typedef measure driver(const bench_runtime *rt, const bench_case *c);

/* ---- fork/join ---- */

static bench_kernel *find_kernel(const bench_runtime *rt, const char *workload)
{
    for (const bench_entry *e = rt->entries; e->workload != NULL; e++)
        if (strcmp(e->workload, workload) == 0) return e->run;
    return NULL;
}

static measure run_kernel(const bench_runtime *rt, const bench_case *c)
{
    bench_kernel *run = find_kernel(rt, c->workload);
    uint64_t start = bench_now_ns();
    double answer = run(c);
    uint64_t end = bench_now_ns();

    return (measure){(double)(end - start) * 1e-9, bench_case_check(c, answer)};
}

/* ---- submit ---- */

typedef struct producer {
    _Alignas(LINE) atomic_uint_fast64_t done; /* written by the workers */
    _Alignas(LINE) const bench_runtime *rt;
    pthread_barrier_t *gate;
    uint64_t count;
    uint64_t start_ns, end_ns;
} producer;

static void count_one(void *arg)
{
    /* relaxed: the producer only compares the count; it reads no other data of the task. */
    atomic_fetch_add_explicit((atomic_uint_fast64_t *)arg, 1, memory_order_relaxed);
}

/* Sleeps until at most `most` of the `sent` tasks are unfinished. */
static void await_outstanding(producer *p, uint64_t sent, uint64_t most)
{
    while (sent - atomic_load_explicit(&p->done, memory_order_relaxed) > most)
        bench_sleep_ns(POLL_NS);
}

static void *produce(void *arg)
{
    producer *p = (producer *)arg;

    pthread_barrier_wait(p->gate);
    p->start_ns = bench_now_ns();
    for (uint64_t sent = 0; sent < p->count; sent++) {
        if (sent % OUTSTANDING_LOOK == 0 &&
            sent - atomic_load_explicit(&p->done, memory_order_relaxed) > OUTSTANDING_MAX)
            await_outstanding(p, sent, OUTSTANDING_LOW);
        p->rt->submit(count_one, &p->done);
    }
    await_outstanding(p, p->count, 0);
    p->end_ns = bench_now_ns();
    return NULL;
}

/* Measures from the start of the first producer until every producer has seen the end of all its
 * tasks. */
static measure run_submit(const bench_runtime *rt, const bench_case *c)
{
    static producer producers[PRODUCERS_MAX];
    pthread_t threads[PRODUCERS_MAX];
    pthread_barrier_t gate;
    unsigned n = (unsigned)(c->tasks / c->size);
    uint64_t start = UINT64_MAX, end = 0, done = 0;

    pthread_barrier_init(&gate, NULL, n);
    for (unsigned i = 0; i < n; i++) {
        producer *p = &producers[i];
        atomic_store_explicit(&p->done, 0, memory_order_relaxed);
        p->rt = rt;
        p->gate = &gate;
        p->count = c->size;
        if (pthread_create(&threads[i], NULL, produce, p) != 0) {
            fprintf(stderr, "%s: cannot create the thread of a producer\n", rt->name);
            exit(1);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        producer *p = &producers[i];
        pthread_join(threads[i], NULL);
        if (p->start_ns < start) start = p->start_ns;
        if (p->end_ns > end) end = p->end_ns;
        done += atomic_load_explicit(&p->done, memory_order_relaxed);
    }
    pthread_barrier_destroy(&gate);
    return (measure){(double)(end - start) * 1e-9, bench_case_check(c, (double)done)};
}

/* ---- wake ---- */

typedef struct alarm_clock {
    uint64_t started_ns;
    sem_t rang;
} alarm_clock;

static void ring(void *arg)
{
    alarm_clock *a = (alarm_clock *)arg;
    a->started_ns = bench_now_ns();
    sem_post(&a->rang);
}

static uint64_t wake_once(const bench_runtime *rt, alarm_clock *a)
{
    bench_sleep_ns(WAKE_PAUSE_NS);
    uint64_t start = bench_now_ns();
    rt->submit(ring, a);
    while (sem_wait(&a->rang) != 0) continue;
    return a->started_ns - start;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Measures the median time from the submission to the start of the task's body. */
static measure run_wake(const bench_runtime *rt, const bench_case *c)
{
    static uint64_t ns[WAKE_ROUNDS_MAX];
    alarm_clock a;

    sem_init(&a.rang, 0, 0);
    for (int i = 0; i < WAKE_WARM_ROUNDS; i++) wake_once(rt, &a);
    for (uint32_t i = 0; i < c->size; i++) ns[i] = wake_once(rt, &a);
    sem_destroy(&a.rang);
    qsort(ns, c->size, sizeof ns[0], compare_u64);
    return (measure){(double)ns[c->size / 2] * 1e-9, true};
}

/* ---- idle ---- */

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Measures the processor time that the process uses without work. The measurement begins
 * IDLE_PAUSE_NS after the end of a busy kernel. */
static measure run_idle(const bench_runtime *rt, const bench_case *c)
{
    const bench_case *busy = bench_case_find("fib", true);
    bool ok = bench_case_check(busy, find_kernel(rt, "idle")(busy));

    bench_sleep_ns(IDLE_PAUSE_NS);
    double before = cpu_seconds();
    bench_sleep_ns((uint64_t)c->size * 1000000u);
    return (measure){cpu_seconds() - before, ok};
}

/* ---- main ---- */

static bool is_outside(const char *workload)
{
    return strncmp(workload, "submit-", 7) == 0 || strcmp(workload, "wake") == 0;
}

/* Returns the driver of the workload, or NULL if the runtime does not support the workload. */
static driver *find_driver(const bench_runtime *rt, const char *workload)
{
    if (is_outside(workload)) {
        if (rt->submit == NULL) return NULL;
        return strcmp(workload, "wake") == 0 ? run_wake : run_submit;
    }
    if (find_kernel(rt, workload) == NULL) return NULL;
    return strcmp(workload, "idle") == 0 ? run_idle : run_kernel;
}

static int usage(const char *prog)
{
    fprintf(stderr, "usage: %s WORKLOAD WORKERS REPS [--quick]\n", prog);
    return 2;
}

static int repeat(const bench_runtime *rt, const bench_case *c, driver *drive, int workers,
                  int reps)
{
    int status = 0;

    for (int i = 0; i < reps; i++) {
        measure m = drive(rt, c);
        printf("result %s %s %d %.9f %llu %d\n", c->workload, rt->name, workers, m.seconds,
               (unsigned long long)c->tasks, m.ok);
        fflush(stdout);
        if (!m.ok) status = 1;
    }
    return status;
}

int bench_main(int argc, char **argv, const bench_runtime *rt)
{
    bool quick = argc == 5 && strcmp(argv[4], "--quick") == 0;
    if (argc != 4 && !quick) return usage(argv[0]);
    int workers = atoi(argv[2]), reps = atoi(argv[3]);
    if (workers < 1 || reps < 1) return usage(argv[0]);

    const bench_case *c = bench_case_find(argv[1], quick);
    if (c == NULL) {
        fprintf(stderr, "%s: unknown workload: %s\n", rt->name, argv[1]);
        return 2;
    }
    driver *drive = find_driver(rt, c->workload);
    if (drive == NULL) {
        fprintf(stderr, "%s: unsupported workload: %s\n", rt->name, c->workload);
        return 3;
    }
    if (strcmp(c->workload, "oversub") == 0) workers = BENCH_OVERSUB_WORKERS;

    if (rt->start != NULL) rt->start(workers, is_outside(c->workload));
    /* The warm-up has the quick size. run_wake() has a warm-up of its own; idle needs none. */
    if (drive == run_kernel || drive == run_submit) drive(rt, bench_case_find(c->workload, true));
    int status = repeat(rt, c, drive, workers, reps);
    if (rt->stop != NULL) rt->stop();
    return status;
}
