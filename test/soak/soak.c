/* SPDX-License-Identifier: MIT */
/*
 * soak.c - rounds of mixed load and rest, for a given time
 *
 * In a round, some outside threads run one load after the other for a short time. Then everything
 * comes to rest, and the program checks what must hold at rest. In the first rounds the pools grow
 * to the size they need. After that the allocated memory may grow by at most MEMORY_MORE bytes,
 * only the expected threads may exist, and the number of open files must not change.
 *
 * Exit status: 0 if everything held, 1 if something did not, 3 if the program made no progress.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plat/config.h"
#include "soak.h"

#define ACTORS 3
#define ROUND_MS 120
#define IDLE_US 20000
#define IDLE_LOOKS 20

/* The rounds in which pools may grow, and how much more is allowed afterwards. */
#define WARM_ROUNDS 20
#define MEMORY_MORE 1024
#define RESIDENT_MORE (8 << 20)
#define IDLE_CPU_MOST 0.05

#define MAX_WATCHED 64

static int64_t seconds = 60;
static uint64_t seed;
static int workers = 4, patience = 120;
static atomic_long rounds;
static atomic_int phase; /* changes while there is progress */
static atomic_bool actors_stop, over;
static _Atomic(fj_pool *) watched[MAX_WATCHED];

/* ---- Time and numbers ----------------------------------------------------------------------- */

int64_t soak_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void soak_sleep_us(int64_t us)
{
    struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    while (nanosleep(&ts, &ts) != 0) {}
}

uint32_t soak_below(uint32_t n)
{
    static _Atomic uint64_t threads;
    static _Thread_local uint64_t state;

    if (state == 0) state = seed * 0x9e3779b97f4a7c15u + (atomic_fetch_add(&threads, 1) << 20) + 1;
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z >> 32) % n);
}

/* ---- The watchdog --------------------------------------------------------------------------- */

void soak_watch(fj_pool *p)
{
    for (int i = 0; i < MAX_WATCHED; i++) {
        fj_pool *none = NULL;
        if (atomic_compare_exchange_strong(&watched[i], &none, p)) return;
    }
}

void soak_unwatch(fj_pool *p)
{
    for (int i = 0; i < MAX_WATCHED; i++) {
        fj_pool *it = p;
        if (atomic_compare_exchange_strong(&watched[i], &it, NULL)) return;
    }
}

static void dump_line(const char *text, void *arg)
{
    (void)arg;
    fprintf(stderr, "  %s\n", text);
}

static void dump_pools(void)
{
    for (int i = 0; i < MAX_WATCHED; i++) {
        fj_pool *p = atomic_load(&watched[i]);
        if (p != NULL) fj_pool_dump(p, dump_line, NULL);
    }
}

/* Ends the process. If several threads fail, only the first one prints its reason. */
__attribute__((noreturn)) static void end_failed(int status, const char *why)
{
    static atomic_bool told;

    if (atomic_exchange(&told, true))
        for (;;) pause();
    fflush(stdout);
    fprintf(stderr, "soak: FAILED in round %ld (seed %llu): %s\n", atomic_load(&rounds),
            (unsigned long long)seed, why);
    dump_pools();
    _exit(status);
}

void soak_fail(const char *fmt, ...)
{
    char why[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    end_failed(1, why);
}

static void *watchdog(void *arg)
{
    int seen = -1, still = 0;

    (void)arg;
    while (!atomic_load(&over)) {
        soak_sleep_us(1000000);
        int now = atomic_load(&phase);
        still = now == seen ? still + 1 : 0;
        seen = now;
        if (still >= patience) end_failed(3, "nothing moves any more");
    }
    return NULL;
}

/* ---- Rounds --------------------------------------------------------------------------------- */

static void *actor(void *arg)
{
    (void)arg;
    while (!atomic_load(&actors_stop)) {
        soak_load();
        atomic_fetch_add(&phase, 1);
    }
    return NULL;
}

static void run_load(void)
{
    pthread_t t[ACTORS];

    atomic_store(&actors_stop, false);
    for (int i = 0; i < ACTORS; i++) SOAK_CHECK(pthread_create(&t[i], NULL, actor, NULL) == 0);
    soak_sleep_us(ROUND_MS * 1000);
    atomic_store(&actors_stop, true);
    for (int i = 0; i < ACTORS; i++) pthread_join(t[i], NULL);
    atomic_fetch_add(&phase, 1);
}

/* What was measured at rest. */
static struct {
    struct soak_state first, now; /* first: after the warm rounds */
    double idle_cpu;              /* sum of all measurements */
    long idle_rescan;
    /* The least value of each rest; of these, the greatest. */
    double idle_worst;
} seen;

static bool sanitized(void)
{
    extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));
    return __sanitizer_get_current_allocated_bytes != NULL;
}

/* Measures the CPU time at rest. A thread that spins at rest does so in every measurement. A
 * virtual machine that was suspended, or threads that exit, also use CPU time, but not in every
 * measurement. Therefore the least of several measurements counts. */
static void look_idle(void)
{
    double least = 1;

    for (int look = 0; look < IDLE_LOOKS; look++) {
        double cpu = state_idle_cpu(IDLE_US);
        seen.idle_cpu += cpu;
        seen.idle_rescan++;
        if (cpu < least) least = cpu;
        if (least <= IDLE_CPU_MOST) break;
    }
    if (least > seen.idle_worst) seen.idle_worst = least;
    if (least > IDLE_CPU_MOST && !sanitized() && !FJI_CHAOS)
        soak_fail("%.1f %% CPU at rest", 100 * least);
}

static void look_flat(long round)
{
    struct soak_state *s = &seen.now, *f = &seen.first;

    state_look(s);
    /* Memory that the first rounds have left may still be freed later. */
    if (round == WARM_ROUNDS || (round > WARM_ROUNDS && s->memory < f->memory)) *f = *s;
    if (round <= WARM_ROUNDS) return;
    int64_t resident = RESIDENT_MORE > f->resident / 100 ? RESIDENT_MORE : f->resident / 100;
    if (s->memory > f->memory + MEMORY_MORE)
        soak_fail("memory grows: %lld bytes were allocated, now %lld", (long long)f->memory,
                  (long long)s->memory);
    if (s->resident > f->resident + resident + s->pools - f->pools && !sanitized())
        soak_fail("memory grows: %lld bytes were resident, now %lld", (long long)f->resident,
                  (long long)s->resident);
    if (s->files != f->files) soak_fail("%d files were open, now %d", f->files, s->files);
}

static void round_once(long round)
{
    run_load();
    soak_world_reset();
    state_settle();
    look_flat(round);
    look_idle(); /* workers with a keep-alive time have exited */
    atomic_fetch_add(&phase, 1);
}

static void tell(const char *what, int64_t ns)
{
    printf(
        "%s %lld s: %ld rounds, %.2f M tasks, allocated %lld%+lld + pools %lld, resident %.1f MB, "
        "threads %d, files %d, idle CPU %.2f %% (worst %.2f %%)\n",
        what, (long long)(ns / 1000000000), atomic_load(&rounds), (double)ledger_count() / 1e6,
        (long long)seen.first.memory, (long long)(seen.now.memory - seen.first.memory),
        (long long)seen.now.pools, (double)seen.now.resident / 1e6, seen.now.threads,
        seen.now.files, 100 * seen.idle_cpu / (double)seen.idle_rescan, 100 * seen.idle_worst);
    fflush(stdout);
}

static void soak(void)
{
    int64_t start = soak_now(), minute = start;

    while (soak_now() - start < seconds * 1000000000) {
        round_once(atomic_fetch_add(&rounds, 1) + 1);
        if (soak_now() - minute < 60000000000) continue;
        minute += 60000000000;
        tell("after", soak_now() - start);
    }
    tell("soak: passed,", soak_now() - start);
}

/* ---- The program ---------------------------------------------------------------------------- */

static void usage(FILE *out)
{
    fprintf(out, "usage: soak [--seconds N] [--seed S] [--workers N] [--patience SECONDS]\n"
                 "  --seconds   duration; default 60\n"
                 "  --seed      start of the pseudo-random numbers; default: random\n"
                 "  --workers   number of workers of the larger pools; default 4\n"
                 "  --patience  seconds without progress that count as a hang; default 120\n");
}

static long long number(const char *text, long long low, long long high)
{
    char *end;
    long long n = strtoll(text, &end, 10);

    if (*text == '\0' || *end != '\0' || n < low || n > high) {
        usage(stderr);
        exit(2);
    }
    return n;
}

static void read_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--seconds") == 0 && more)
            seconds = number(argv[++i], 1, 1000000000);
        else if (strcmp(argv[i], "--seed") == 0 && more)
            seed = (uint64_t)number(argv[++i], 0, INT64_MAX);
        else if (strcmp(argv[i], "--workers") == 0 && more)
            workers = (int)number(argv[++i], 1, 1000);
        else if (strcmp(argv[i], "--patience") == 0 && more)
            patience = (int)number(argv[++i], 1, 1000000);
        else {
            bool help = strcmp(argv[i], "--help") == 0;
            usage(help ? stdout : stderr);
            exit(help ? 0 : 2);
        }
    }
}

/* The allocator's caches of freed memory, its own data and the cached stacks of threads would count
 * as allocated memory. The program therefore executes itself again with these caches disabled or as
 * small as possible. */
static void without_cache(char **argv)
{
    const char *name = "GLIBC_TUNABLES",
               *off = "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=2:"
                      "glibc.pthread.stack_cache_size=0";

    if (getenv(name) != NULL) return;
    setenv(name, off, 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    pthread_t dog;
    char text[32];

    without_cache(argv);
    seed = (uint64_t)soak_now() % 1000000000;
    read_arguments(argc, argv);
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    setenv("FORKJOIN_CHAOS_SEED", text, 0);
    printf("soak: seed %s, %d workers, %lld s%s%s%s\n", text, workers, (long long)seconds,
           FJI_CHECKED ? ", checked" : "", FJI_WRAP_TEST ? ", aged" : "",
           FJI_CHAOS ? ", chaos" : "");
    fflush(stdout);
    SOAK_CHECK(pthread_create(&dog, NULL, watchdog, NULL) == 0);
    state_begin();
    soak_world_make(workers);
    soak();
    soak_world_end();
    atomic_store(&over, true);
    pthread_join(dog, NULL);
    return 0;
}
