/* SPDX-License-Identifier: MIT */
/*
 * state.c - what must hold at rest: the pools, memory, threads, files, CPU time
 *
 * Memory is counted to the byte. The permanent pools keep memory for later (records of workers,
 * scratch memory for scopes, overflow cells), which grows with the largest demand at one time. The
 * system allocates some memory for each thread. Both are subtracted. The remainder must stay
 * constant.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pool/selfcheck.h"
#include "soak.h"

#define SETTLE_SECONDS 60

static int threads_own;      /* threads that belong to no pool */
static int64_t thread_bytes; /* what the system allocates for a thread */

/* ---- Settling ------------------------------------------------------------------------------- */

/* Returns why the pool is not at rest, or NULL if it is. */
static const char *pool_unrest(fj_pool *p)
{
#if FJI_CHECKED
    return fji_pool_check_at_rest(p);
#else
    fj_stats s;

    SOAK_CHECK(fj_pool_stats(p, &s) == FJ_OK);
    if (s.queued != 0 || s.submitted != 0) return "something is queued";
    if (s.active != 0 || s.running != 0 || s.blocked != 0) return "a worker is active";
    return s.idle != s.threads ? "a thread is not idle" : NULL;
#endif
}

static void pool_settle(fj_pool *p)
{
    int64_t end = soak_now() + SETTLE_SECONDS * 1000000000ll;
    const char *wrong;

    if (fj_pool_await_quiescence(p, SETTLE_SECONDS * 1000000000ll) != FJ_OK)
        soak_fail("a pool did not come to rest");
    while ((wrong = pool_unrest(p)) != NULL) {
        if (soak_now() > end) soak_fail("a pool is not at rest: %s", wrong);
        soak_sleep_us(100);
    }
}

void state_settle(void)
{
    char why[256];

    for (int i = 0; i < SOAK_POOLS; i++) pool_settle(soak_world.pool[i]);
    if (!ledger_balanced(why, sizeof why)) soak_fail("not every task was run once: %s", why);
}

/* ---- Memory --------------------------------------------------------------------------------- */

/* Sanitizers replace the allocator and count the allocated bytes themselves. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static int64_t memory_allocated(void)
{
    if (__sanitizer_get_current_allocated_bytes != NULL)
        return (int64_t)__sanitizer_get_current_allocated_bytes();
    struct mallinfo2 m = mallinfo2();
    return (int64_t)(m.uordblks + m.hblkhd);
}

/* Bytes of a block, including the allocator's header. */
static int64_t block_bytes(void *block)
{
    if (block == NULL) return 0;
    int64_t head = __sanitizer_get_current_allocated_bytes != NULL ? 0 : (int64_t)sizeof(size_t);
    return (int64_t)malloc_usable_size(block) + head;
}

static int64_t worker_bytes(fji_worker *w)
{
    int64_t n = block_bytes(w);

    for (fj_cell *c = w->overflow_cells; c != NULL; memcpy(&c, c[1].args, sizeof c))
        n += block_bytes(c);
    return n;
}

static int64_t pool_bytes(fj_pool *p)
{
    int64_t n = block_bytes(p) + block_bytes(p->timers) + block_bytes(p->cpus);

    for (uint32_t i = 0; i < FJI_CHUNKS; i++) n += block_bytes(p->chunk[i]);
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) n += block_bytes(p->submissions[i]);
    for (uint32_t i = 0; i < p->workers; i++) n += worker_bytes(fji_pool_worker(p, i));
    return n;
}

/* ---- Threads and files ---------------------------------------------------------------------- */

static int entries_of(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    if (d == NULL) return -1;
    while (readdir(d) != NULL) n++;
    closedir(d);
    return n - 2; /* . and .. */
}

static int64_t memory_resident(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL) return 0;
    if (fscanf(f, "%*d %ld", &pages) != 1) pages = 0;
    fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* The expected number of threads: those of no pool, the workers and the timer threads. */
static int threads_expected(void)
{
    int n = threads_own;

    for (int i = 0; i < SOAK_POOLS; i++) {
        n += fj_pool_thread_count(soak_world.pool[i]);
        n += soak_world.pool[i]->timers != NULL;
    }
    return n;
}

static pthread_barrier_t gate;

/* Like each thread of a pool, it uses the allocator, which then keeps memory for this thread. */
static void *stand_by(void *arg)
{
    void *volatile some = malloc(1);

    free(some);
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    return arg;
}

/* Allocated memory while n threads exist. */
static int64_t memory_with_threads(unsigned n)
{
    pthread_t t[2];

    pthread_barrier_init(&gate, NULL, n + 1);
    for (unsigned i = 0; i < n; i++) SOAK_CHECK(pthread_create(&t[i], NULL, stand_by, NULL) == 0);
    pthread_barrier_wait(&gate);
    int64_t bytes = memory_allocated();
    pthread_barrier_wait(&gate);
    for (unsigned i = 0; i < n; i++) pthread_join(t[i], NULL);
    pthread_barrier_destroy(&gate);
    return bytes;
}

void state_begin(void)
{
    threads_own = entries_of("/proc/self/task");
    int64_t one = memory_with_threads(1);
    thread_bytes = memory_with_threads(2) - one;
}

/* Whether all workers have exited, except those of pools with an unlimited keep-alive time. */
static bool pools_trimmed(void)
{
    for (int i = 0; i < SOAK_POOLS; i++)
        if (soak_world.pool[i]->keep_alive_ns != FJ_FOREVER &&
            fj_pool_thread_count(soak_world.pool[i]) > 0)
            return false;
    return true;
}

void state_look(struct soak_state *s)
{
    int64_t end = soak_now() + SETTLE_SECONDS * 1000000000ll;

    while (!pools_trimmed()) {
        if (soak_now() > end) soak_fail("idle workers do not exit");
        soak_sleep_us(1000);
    }
    /* /proc lists a thread for a short time after it has exited. */
    while ((s->threads = entries_of("/proc/self/task")) != threads_expected()) {
        if (soak_now() > end)
            soak_fail("%d threads exist, but %d are expected", s->threads, threads_expected());
        soak_sleep_us(200);
    }
    state_settle();
    s->pools = 0;
    for (int i = 0; i < SOAK_POOLS; i++) s->pools += pool_bytes(soak_world.pool[i]);
    s->memory = memory_allocated() - s->pools - thread_bytes * s->threads;
    s->resident = memory_resident();
    s->files = entries_of("/proc/self/fd");
}

double state_idle_cpu(int64_t us)
{
    struct timespec a, b;
    int64_t wall = soak_now();

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    soak_sleep_us(us);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    wall = soak_now() - wall;
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)wall;
}
