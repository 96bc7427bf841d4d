/* SPDX-License-Identifier: MIT */
/*
 * harness.c - command line, repetition, timing and printing for all benchmark programs
 *
 * There are seven drivers: run_kernel() for the fork/join workloads, run_submit(), run_wake(),
 * run_trip(), run_first(), run_create() and run_idle(). A driver makes one measurement. It returns
 * the seconds and whether the answer was right; bench_main() does the rest.
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
    TRIP_WARM_PART = 10, /* the warm-up of a trip has a tenth of its rounds */
    ROUNDS_MAX = 1000
};

#define POLL_NS 20000u           /* how long a pausing producer sleeps between two checks */
#define WAKE_PAUSE_NS 2000000u   /* how long the pool is idle before each wake-up */
#define IDLE_PAUSE_NS 100000000u /* from the end of the busy kernel to the first measurement */

typedef struct measure {
    double seconds;
    bool ok;
    double p99;          /* 99th percentile in seconds; 0 if there are no rounds */
    uint64_t peak_bytes; /* peak memory of the process; 0 if it is unknown or not measured */
} measure;

/* What a driver measures. */
typedef struct job {
    const bench_runtime *rt;
    const bench_case *c;
    int workers;
} job;

typedef measure driver(const job *j);

/* ---- rounds: the workloads that repeat one short operation ---- */

static uint64_t round_ns[ROUNDS_MAX];

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Returns the median and the 99th percentile of the first n elements of round_ns. The 99th
 * percentile is the smallest time that at least 99 % of the rounds do not exceed. */
static measure measure_rounds(size_t n, bool ok)
{
    size_t rank = (99 * n + 99) / 100;

    qsort(round_ns, n, sizeof round_ns[0], compare_u64);
    return (measure){.seconds = (double)round_ns[n / 2] * 1e-9,
                     .ok = ok,
                     .p99 = (double)round_ns[rank - 1] * 1e-9};
}

/* ---- fork/join ---- */

static bench_kernel *find_kernel(const bench_runtime *rt, const char *workload)
{
    for (const bench_entry *e = rt->entries; e->workload != NULL; e++)
        if (strcmp(e->workload, workload) == 0) return e->run;
    return NULL;
}

/*
 * Returns the peak of the resident memory of this process, or 0 if the system does not tell it.
 * ru_maxrss of getrusage() is not used, because it may also contain the peak of the process that
 * executed this program.
 */
static uint64_t peak_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    unsigned long long kib = 0;
    char line[256];

    if (f == NULL) return 0;
    while (fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "VmHWM: %llu", &kib) == 1) break;
    fclose(f);
    return (uint64_t)kib * 1024;
}

static measure run_kernel(const job *j)
{
    bench_kernel *run = find_kernel(j->rt, j->c->workload);
    uint64_t start = bench_now_ns();
    double answer = run(j->c);
    uint64_t end = bench_now_ns();

    return (measure){.seconds = (double)(end - start) * 1e-9,
                     .ok = bench_case_check(j->c, answer),
                     .peak_bytes = peak_bytes()};
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
static measure run_submit(const job *j)
{
    const bench_case *c = j->c;
    static producer producers[PRODUCERS_MAX];
    pthread_t threads[PRODUCERS_MAX];
    pthread_barrier_t gate;
    unsigned n = (unsigned)(c->tasks / c->size);
    uint64_t start = UINT64_MAX, end = 0, done = 0;

    pthread_barrier_init(&gate, NULL, n);
    for (unsigned i = 0; i < n; i++) {
        producer *p = &producers[i];
        atomic_store_explicit(&p->done, 0, memory_order_relaxed);
        p->rt = j->rt;
        p->gate = &gate;
        p->count = c->size;
        if (pthread_create(&threads[i], NULL, produce, p) != 0) {
            fprintf(stderr, "%s: cannot create the thread of a producer\n", j->rt->name);
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
    return (measure){.seconds = (double)(end - start) * 1e-9,
                     .ok = bench_case_check(c, (double)done)};
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

/* Measures the time from the submission to the start of the task's body. */
static measure run_wake(const job *j)
{
    alarm_clock a;

    sem_init(&a.rang, 0, 0);
    for (int i = 0; i < WAKE_WARM_ROUNDS; i++) wake_once(j->rt, &a);
    for (uint32_t i = 0; i < j->c->size; i++) round_ns[i] = wake_once(j->rt, &a);
    sem_destroy(&a.rang);
    return measure_rounds(j->c->size, true);
}

/* ---- trip-PAUSE ---- */

/* Returns the pause in the name of the workload, for example 200000 for "trip-200us". */
static uint64_t trip_pause_ns(const char *workload)
{
    char *unit;
    uint64_t n = strtoull(workload + strlen("trip-"), &unit, 10);

    return n * (strcmp(unit, "us") == 0 ? 1000u : 1000000u);
}

/* The body of the task. The count needs no atomic access, because a round trip ends before the next
 * one begins. */
static void count_trip(void *arg)
{
    ++*(uint64_t *)arg;
}

static uint64_t trip_once(const bench_runtime *rt, uint64_t pause_ns, uint64_t *trips)
{
    bench_sleep_ns(pause_ns);
    uint64_t start = bench_now_ns();
    rt->round_trip(count_trip, trips);
    return bench_now_ns() - start;
}

/* Measures the time from the submission until the caller knows that the task is done. */
static measure run_trip(const job *j)
{
    uint64_t pause = trip_pause_ns(j->c->workload), trips = 0;
    uint32_t warm = j->c->size / TRIP_WARM_PART;

    for (uint32_t i = 0; i < warm; i++) trip_once(j->rt, pause, &trips);
    for (uint32_t i = 0; i < j->c->size; i++) round_ns[i] = trip_once(j->rt, pause, &trips);
    return measure_rounds(j->c->size, bench_case_check(j->c, (double)(trips - warm)));
}

/* ---- first, create ---- */

/* Creates a pool, makes one round trip and destroys the pool, once per round. Measures from the
 * beginning of the creation to the end of the round trip, or of the destruction if `whole`. */
static measure run_pools(const job *j, bool whole)
{
    uint64_t trips = 0;

    for (uint32_t i = 0; i < j->c->size; i++) {
        uint64_t begin = bench_now_ns();
        j->rt->start(j->workers, true);
        j->rt->round_trip(count_trip, &trips);
        uint64_t first = bench_now_ns();
        j->rt->stop();
        round_ns[i] = (whole ? bench_now_ns() : first) - begin;
    }
    return measure_rounds(j->c->size, bench_case_check(j->c, (double)trips));
}

static measure run_first(const job *j)
{
    return run_pools(j, false);
}

static measure run_create(const job *j)
{
    return run_pools(j, true);
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
static measure run_idle(const job *j)
{
    const bench_case *busy = bench_case_find("fib", true);
    bool ok = bench_case_check(busy, find_kernel(j->rt, "idle")(busy));

    bench_sleep_ns(IDLE_PAUSE_NS);
    double before = cpu_seconds();
    bench_sleep_ns((uint64_t)j->c->size * 1000000u);
    return (measure){.seconds = cpu_seconds() - before, .ok = ok};
}

/* ---- main ---- */

/* Returns the driver of the workload, or NULL if the runtime does not support the workload. */
static driver *find_driver(const bench_runtime *rt, const char *workload)
{
    if (strncmp(workload, "submit-", 7) == 0) return rt->submit != NULL ? run_submit : NULL;
    if (strcmp(workload, "wake") == 0) return rt->submit != NULL ? run_wake : NULL;
    if (strncmp(workload, "trip-", 5) == 0) return rt->round_trip != NULL ? run_trip : NULL;
    if (strcmp(workload, "first") == 0) return rt->round_trip != NULL ? run_first : NULL;
    if (strcmp(workload, "create") == 0) return rt->round_trip != NULL ? run_create : NULL;
    if (find_kernel(rt, workload) == NULL) return NULL;
    return strcmp(workload, "idle") == 0 ? run_idle : run_kernel;
}

static int usage(const char *prog)
{
    fprintf(stderr, "usage: %s WORKLOAD WORKERS REPS [--quick]\n", prog);
    return 2;
}

static void print_result(const job *j, measure m)
{
    printf("result %s %s %d %.9f %llu %d", j->c->workload, j->rt->name, j->workers, m.seconds,
           (unsigned long long)j->c->tasks, m.ok);
    if (m.p99 > 0) printf(" p99=%.9f", m.p99);
    if (m.peak_bytes > 0) printf(" peak=%llu", (unsigned long long)m.peak_bytes);
    printf("\n");
    fflush(stdout);
}

static int repeat(const job *j, driver *drive, int reps)
{
    int status = 0;

    for (int i = 0; i < reps; i++) {
        measure m = drive(j);
        print_result(j, m);
        if (!m.ok) status = 1;
    }
    return status;
}

/* Starts the pool, warms it up, measures and stops the pool. The warm-up has the quick size.
 * run_wake() and run_trip() have a warm-up of their own; idle needs none. */
static int run_in_pool(const job *j, driver *drive, int reps)
{
    const bench_runtime *rt = j->rt;
    job warm = {rt, bench_case_find(j->c->workload, true), j->workers};

    if (rt->start != NULL) rt->start(j->workers, drive != run_kernel && drive != run_idle);
    if (drive == run_kernel || drive == run_submit) drive(&warm);
    int status = repeat(j, drive, reps);
    if (rt->stop != NULL) rt->stop();
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

    job j = {rt, c, workers};
    if (drive == run_first || drive == run_create) return repeat(&j, drive, reps);
    return run_in_pool(&j, drive, reps);
}
