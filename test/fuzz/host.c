/* SPDX-License-Identifier: MIT */
/*
 * host.c - the environment of the fuzzers: failures, and a watchdog that dumps the pools
 */
#include "fuzz/host.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST_POOLS 256

static struct {
    pthread_mutex_t mutex;
    fj_pool *pool[MOST_POOLS];
} watched = {PTHREAD_MUTEX_INITIALIZER, {NULL}};

static struct {
    const uint8_t *bytes;
    size_t n;
    atomic_long number; /* odd while an input runs */
} present;

void (*fuzz_finish)(void);

/* ---- Pools ---------------------------------------------------------------------------------- */

static void put_pool(fj_pool *from, fj_pool *to)
{
    int i = 0;

    pthread_mutex_lock(&watched.mutex);
    while (i < MOST_POOLS && watched.pool[i] != from) i++;
    if (i < MOST_POOLS) watched.pool[i] = to;
    pthread_mutex_unlock(&watched.mutex);
}

void fjp_watch(fj_pool *pool)
{
    put_pool(NULL, pool);
}

void fjp_unwatch(fj_pool *pool)
{
    put_pool(pool, NULL);
}

static void print_line(const char *text, void *arg)
{
    (void)arg;
    fprintf(stderr, "    %s\n", text);
}

/* Dumps the pools that have work or are shut down. */
static void dump_pools(void)
{
    char text[300];

    pthread_mutex_lock(&watched.mutex);
    for (int i = 0; i < MOST_POOLS; i++) {
        fj_pool *pool = watched.pool[i];
        if (pool == NULL || (fj_pool_is_quiescent(pool) && !fj_pool_is_shutdown(pool))) continue;
        fj_pool_describe(pool, text, sizeof text);
        fprintf(stderr, "pool %s\n", text);
        fj_pool_dump(pool, print_line, NULL);
    }
    pthread_mutex_unlock(&watched.mutex);
}

/* ---- The current input ---------------------------------------------------------------------- */

void fuzz_keep(const char *kind)
{
    const char *folder = getenv("FUZZ_KEEP");
    char name[400];

    snprintf(name, sizeof name, "%s/%s-%ld", folder != NULL ? folder : ".", kind, (long)getpid());
    FILE *f = fopen(name, "wb");
    if (f == NULL) return;
    fwrite(present.bytes, 1, present.n, f);
    fclose(f);
    fprintf(stderr, "fuzz: the input is in %s\n", name);
}

void fjp_fail(const char *file, int line, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fprintf(stderr, "fuzz: %s:%d: ", file, line);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, " (input %ld)\n", (atomic_load(&present.number) + 1) / 2);
    va_end(args);
    fuzz_keep("fail");
    abort();
}

unsigned fuzz_show(void)
{
    return getenv("FUZZ_SHOW") != NULL ? FJP_SHOW : 0;
}

static long limit_seconds(void)
{
    const char *text = getenv("FUZZ_LIMIT");
    long n = text != NULL ? atol(text) : 0;

    return n > 0 ? n : 60;
}

/* Checks four times within the time limit whether the same input is still running. */
static void *watchdog_main(void *arg)
{
    struct timespec quarter = {limit_seconds() / 4, limit_seconds() % 4 * 250000000};
    long seen = 0;
    int same = 0;

    (void)arg;
    for (;;) {
        nanosleep(&quarter, NULL);
        long now = atomic_load(&present.number);
        same = now == seen && now % 2 != 0 ? same + 1 : 0;
        seen = now;
        if (same < 4) continue;
        fprintf(stderr, "fuzz: input %ld hangs\n", (now + 1) / 2);
        fuzz_keep("hang");
        dump_pools();
        abort();
    }
    return NULL;
}

static void finish_at_exit(void)
{
    if (fuzz_finish != NULL) fuzz_finish();
}

void fuzz_begin(const uint8_t *bytes, size_t n)
{
    pthread_t thread;

    present.bytes = bytes;
    present.n = n;
    if (atomic_fetch_add(&present.number, 1) != 0) return;
    atexit(finish_at_exit);
    if (pthread_create(&thread, NULL, watchdog_main, NULL) == 0) pthread_detach(thread);
}

void fuzz_end(void)
{
    atomic_fetch_add(&present.number, 1);
}
