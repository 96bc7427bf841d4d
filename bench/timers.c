/* SPDX-License-Identifier: MIT */
/*
 * timers.c - timers of this library, of libuv and of the system
 *
 * The program is called as `timers RUNTIME PART`. The runtimes are fj, uv (only the part cancel)
 * and timerfd (only the part late). It prints one line for each figure:
 *
 *     result RUNTIME NAME VALUE
 *
 * The figures are
 *
 *   cancel_T_N     time in ns to add and cancel one timer, while T threads do this and N other
 *                  timers wait; the delays are random, up to ten minutes
 *   late_*_p50_us  median and 99th percentile of the delay between the time of a timer and the
 *   late_*_p99_us  start of its task, for 2000 timers, one per millisecond: "quiet" on a pool
 *                  without other work, "loaded" on a pool whose workers are all busy
 *   idle_ms        processor time that the process uses in one second while 1000 timers wait
 */
#define _GNU_SOURCE
#include <forkjoin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#ifdef BENCH_UV
#include <uv.h>
#endif

enum { ROUNDS = 200000, LATE = 2000, THREADS_MAX = 2, IN_HAND = 256 };

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Returns a random delay of 1 to 600 seconds, in nanoseconds. */
static int64_t some_delay(uint64_t *random)
{
    return 1000000000 + (int64_t)(next_random(random) % 600) * 1000000000;
}

static void must(int code)
{
    if (code == FJ_OK) return;
    fprintf(stderr, "timers: %s\n", fj_strerror(code));
    exit(1);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void result(const char *runtime, const char *name, double value)
{
    printf("result %s %s %.3f\n", runtime, name, value);
}

/* ---- Adding and cancelling, this library ---- */

static fj_pool *pool;

static int nothing(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

struct canceller {
    pthread_t thread;
    uint64_t seed;
    fj_timer timers[IN_HAND];
};

/* Cancels and adds again the timers of one thread, in turn. */
static void *cancel_main(void *arg)
{
    struct canceller *c = arg;

    for (int i = 0; i < ROUNDS; i++) {
        fj_timer *t = &c->timers[i % IN_HAND];
        if (i < IN_HAND) {
            fj_timer_init(t, nothing);
        } else {
            fj_future_cancel(&t->future, 0);
            must(fj_future_reinit(&t->future));
        }
        must(fj_schedule(pool, t, some_delay(&c->seed)));
    }
    for (int i = 0; i < IN_HAND; i++) fj_future_cancel(&c->timers[i].future, 0);
    return NULL;
}

static void fj_cancel(int threads, long waiting)
{
    static struct canceller c[THREADS_MAX];
    fj_timer *others = calloc((size_t)waiting, sizeof *others);
    uint64_t seed = 88172645463325252u;
    char name[64];

    for (long i = 0; i < waiting; i++) {
        fj_timer_init(&others[i], nothing);
        must(fj_schedule(pool, &others[i], some_delay(&seed) + 600000000000));
    }
    int64_t start = now_ns();
    for (int i = 0; i < threads; i++) {
        c[i].seed = 1234567 + (uint64_t)i;
        pthread_create(&c[i].thread, NULL, cancel_main, &c[i]);
    }
    for (int i = 0; i < threads; i++) pthread_join(c[i].thread, NULL);
    double ns = (double)(now_ns() - start) / ((double)ROUNDS * threads);
    snprintf(name, sizeof name, "cancel_%d_%ld", threads, waiting);
    result("fj", name, ns);
    for (long i = 0; i < waiting; i++) fj_future_cancel(&others[i].future, 0);
    free(others);
}

/* ---- Adding and cancelling, libuv: one loop, which only one thread may use ---- */

#ifdef BENCH_UV
static void loop_nothing(uv_timer_t *t)
{
    (void)t;
}

static void loop_cancel(int threads, long waiting)
{
    uv_loop_t loop;
    uv_timer_t *others = calloc((size_t)waiting, sizeof *others), hand[IN_HAND];
    uint64_t seed = 88172645463325252u;
    char name[64];

    if (threads != 1) return;
    uv_loop_init(&loop);
    for (long i = 0; i < waiting; i++) {
        uv_timer_init(&loop, &others[i]);
        uv_timer_start(&others[i], loop_nothing, (uint64_t)some_delay(&seed) / 1000000 + 600000, 0);
    }
    for (int i = 0; i < IN_HAND; i++) uv_timer_init(&loop, &hand[i]);
    int64_t start = now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        uv_timer_t *t = &hand[i % IN_HAND];
        if (i >= IN_HAND) uv_timer_stop(t);
        uv_timer_start(t, loop_nothing, (uint64_t)some_delay(&seed) / 1000000, 0);
    }
    snprintf(name, sizeof name, "cancel_%d_%ld", threads, waiting);
    result("uv", name, (double)(now_ns() - start) / ROUNDS);
    /* The loop is not closed, because the process ends soon. */
}
#endif

/* ---- Lateness ---- */

static int64_t late[LATE];
static atomic_int late_count;

static int note_late(void *arg)
{
    int64_t due = (int64_t)(intptr_t)arg;
    int i = atomic_fetch_add(&late_count, 1);

    if (i < LATE) late[i] = now_ns() - due;
    return FJ_OK;
}

static void print_late(const char *runtime, const char *what)
{
    char name[64];

    qsort(late, LATE, sizeof late[0], compare);
    snprintf(name, sizeof name, "late_%s_p50_us", what);
    result(runtime, name, (double)late[LATE / 2] / 1000);
    snprintf(name, sizeof name, "late_%s_p99_us", what);
    result(runtime, name, (double)late[LATE * 99 / 100] / 1000);
}

static atomic_bool busy_over;

static int busy(void *arg)
{
    (void)arg;
    for (int64_t end = now_ns() + 100000; now_ns() < end;) {}
    return atomic_load(&busy_over) ? FJ_OK : fj_execute(pool, busy, NULL);
}

static void fj_late(bool loaded)
{
    static fj_future *f[LATE];
    int64_t start = now_ns() + 20000000;

    atomic_store(&late_count, 0);
    atomic_store(&busy_over, !loaded);
    if (loaded)
        for (int i = 0; i < 4; i++) must(fj_execute(pool, busy, NULL));
    for (int i = 0; i < LATE; i++) {
        int64_t due = start + i * (int64_t)1000000;
        must(fj_schedule_action(pool, note_late, (void *)(intptr_t)due, due - now_ns(), &f[i]));
    }
    for (int i = 0; i < LATE; i++) {
        fj_future_join(f[i]);
        fj_future_unref(f[i]);
    }
    atomic_store(&busy_over, true);
    print_late("fj", loaded ? "loaded" : "quiet");
}

static void timerfd_late(void)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    int64_t due = now_ns() + 20000000;

    for (int i = 0; i < LATE; i++, due += 1000000) {
        struct itimerspec at = {.it_value = {due / 1000000000, due % 1000000000}};
        uint64_t times;
        if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL) != 0) exit(1);
        if (read(fd, &times, sizeof times) != sizeof times) exit(1);
        late[i] = now_ns() - due;
    }
    print_late("timerfd", "quiet");
}

static void fj_idle(void)
{
    static fj_timer t[1000];
    struct rusage a, b;

    for (int i = 0; i < 1000; i++) {
        fj_timer_init(&t[i], nothing);
        must(fj_schedule(pool, &t[i], (3600 + i) * (int64_t)1000000000));
    }
    usleep(100000);
    getrusage(RUSAGE_SELF, &a);
    usleep(1000000);
    getrusage(RUSAGE_SELF, &b);
    double us = (double)(b.ru_utime.tv_usec - a.ru_utime.tv_usec + b.ru_stime.tv_usec -
                         a.ru_stime.tv_usec) +
                1e6 * (double)(b.ru_utime.tv_sec - a.ru_utime.tv_sec);
    result("fj", "idle_ms", us / 1000);
    for (int i = 0; i < 1000; i++) fj_future_cancel(&t[i].future, 0);
}

int main(int argc, char **argv)
{
    fj_pool_options o = {0};

    if (argc != 3) return 2;
    bool cancel = strcmp(argv[2], "cancel") == 0;
    if (strcmp(argv[1], "timerfd") == 0) {
        if (cancel) return 3;
        timerfd_late();
        return 0;
    }
    if (strcmp(argv[1], "uv") == 0) {
#ifdef BENCH_UV
        if (!cancel) return 3;
        loop_cancel(1, 1000);
        loop_cancel(1, 1000000);
        return 0;
#else
        return 3;
#endif
    }
    o.parallelism = 2;
    must(fj_pool_create(&pool, &o));
    if (cancel) {
        for (int threads = 1; threads <= THREADS_MAX; threads++) {
            fj_cancel(threads, 1000);
            fj_cancel(threads, 1000000);
        }
    } else {
        fj_late(false);
        fj_late(true);
        fj_idle();
    }
    return fj_pool_destroy(pool) != FJ_OK;
}
