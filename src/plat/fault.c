/* SPDX-License-Identifier: MIT */
/*
 * fault.c - the faults that a test causes, and the clock of the library
 *
 * plat.h says what each function does. The clock is in this file because two faults change it: it
 * may jump forward, or stand still.
 */
#include <pthread.h>
#include <time.h>

#include "atomic.h"
#include "config.h"
#include "nocancel.h"
#include "plat.h"
#include "unix.h"

/* ---- Faults --------------------------------------------------------------------------------- */

#if FJI_FAULTS
/* All accesses to the words of this section are relaxed: a test sets them before it makes the calls
 * that have to fail. */

/* A group of calls that fail: those with the numbers from `from` to from + count - 1. The first
 * call of a kind has the number 1. */
struct plat_window {
    long from, count;
};

static struct {
    long calls;                   /* number of calls of this kind so far */
    struct plat_window window[2]; /* [0] is set by fji_fault_set(), [1] by fji_fault_and() */
    uint64_t seed;                /* the argument of fji_fault_random() */
    long one_in; /* the argument of fji_fault_random(): one in this many calls fails; 0: none */
} plat_fault[FJI_FAULT_N];

static void window_set(enum fji_fault kind, int i, long n, long count)
{
    struct plat_window *w = &plat_fault[kind].window[i];
    long now = fji_load_relaxed(&plat_fault[kind].calls); /* relaxed: a counter */

    fji_store_relaxed(&w->count, 0l);     /* relaxed: set before the calls */
    fji_store_relaxed(&w->from, now + n); /* relaxed: set before the calls */
    fji_store_relaxed(&w->count, count);  /* relaxed: set before the calls */
}

void fji_fault_set(enum fji_fault kind, long n, long count)
{
    window_set(kind, 0, n, count);
    window_set(kind, 1, n, 0);
}

void fji_fault_and(enum fji_fault kind, long n, long count)
{
    window_set(kind, 1, n, count);
}

void fji_fault_random(enum fji_fault kind, uint64_t seed, long one_in)
{
    fji_store_relaxed(&plat_fault[kind].one_in, 0l);     /* relaxed: set before the calls */
    fji_store_relaxed(&plat_fault[kind].seed, seed);     /* relaxed: set before the calls */
    fji_store_relaxed(&plat_fault[kind].one_in, one_in); /* relaxed: set before the calls */
}

long fji_fault_calls(enum fji_fault kind)
{
    return fji_load_relaxed(&plat_fault[kind].calls); /* relaxed: a counter */
}

static bool window_has(const struct plat_window *w, long n)
{
    long from = fji_load_relaxed(&w->from);                     /* relaxed: set before the calls */
    return n >= from && n - from < fji_load_relaxed(&w->count); /* relaxed: set before the calls */
}

/* Returns whether call n of the kind fails because of fji_fault_random(). The result depends only
 * on n, the seed and one_in. */
static bool fault_by_random(enum fji_fault kind, long n)
{
    long one_in = fji_load_relaxed(&plat_fault[kind].one_in); /* relaxed: set before the calls */
    /* relaxed: set before the calls */
    uint64_t x = fji_load_relaxed(&plat_fault[kind].seed) + (uint64_t)n * 2 + 1;

    if (one_in <= 0) return false;
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return (x ^ (x >> 32)) % (uint64_t)one_in == 0;
}

bool fji_fault_now(enum fji_fault kind)
{
    long n = fji_add_relaxed(&plat_fault[kind].calls, 1) + 1; /* relaxed: a counter */

    return window_has(&plat_fault[kind].window[0], n) ||
           window_has(&plat_fault[kind].window[1], n) || fault_by_random(kind, n);
}

/* Returns whether a test has set a fault of the kind, even if the calls that it has chosen are
 * past. fji_plat_now() uses this function, because it is called too often to call fji_fault_now()
 * each time. */
static bool fault_is_set(enum fji_fault kind)
{
    /* relaxed: a test sets the three words before it makes the calls that have to fail. */
    return fji_load_relaxed(&plat_fault[kind].one_in) != 0 ||
           fji_load_relaxed(&plat_fault[kind].window[0].count) != 0 ||
           fji_load_relaxed(&plat_fault[kind].window[1].count) != 0;
}
#else
void fji_fault_set(enum fji_fault kind, long n, long count)
{
    (void)kind, (void)n, (void)count;
}

void fji_fault_and(enum fji_fault kind, long n, long count)
{
    (void)kind, (void)n, (void)count;
}

void fji_fault_random(enum fji_fault kind, uint64_t seed, long one_in)
{
    (void)kind, (void)seed, (void)one_in;
}

long fji_fault_calls(enum fji_fault kind)
{
    (void)kind;
    return 0;
}

bool fji_fault_now(enum fji_fault kind)
{
    (void)kind;
    return false;
}
#endif

void fji_fault_late(enum fji_fault kind)
{
    struct timespec delay = {.tv_nsec = 1000000};

    if (!fji_fault_now(kind)) return;
    int old = fji_nocancel_begin();
    nanosleep(&delay, NULL);
    fji_nocancel_end(old);
}

/* ---- Time ----------------------------------------------------------------------------------- */

static int64_t clock_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

#if FJI_FAULTS
#define CLOCK_JUMP 3600000000000ll /* how far the clock jumps at one FJI_FAULT_JUMP, ns */
#define CLOCK_STILL 20000000ll     /* how long the clock stands still at one FJI_FAULT_STILL, ns */

/*
 * The time of the library's clock is the time of the system's clock plus clock_ahead. While the
 * library's clock stands still, its time is clock_stopped; it runs again when the system's clock
 * reaches clock_resumes. clock_mutex protects these three variables.
 */
static pthread_mutex_t clock_mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t clock_ahead, clock_stopped, clock_resumes; /* clock_resumes is 0 if the clock runs */
static uint32_t clock_faulty;                             /* 1 after a test has set a clock fault */

/* Returns the time of the library's clock. The caller holds clock_mutex. */
static int64_t clock_read(void)
{
    int64_t now = clock_now();

    if (now < clock_resumes) return clock_stopped;
    if (clock_resumes != 0) {
        clock_ahead = clock_stopped - clock_resumes;
        clock_resumes = 0;
    }
    return now + clock_ahead;
}

static int64_t clock_with_faults(void)
{
    pthread_mutex_lock(&clock_mutex);
    int64_t now = clock_read();
    if (fji_fault_now(FJI_FAULT_JUMP) && clock_resumes == 0) {
        clock_ahead += CLOCK_JUMP;
        now += CLOCK_JUMP;
    }
    if (fji_fault_now(FJI_FAULT_STILL) && clock_resumes == 0) {
        clock_stopped = now;
        clock_resumes = now - clock_ahead + CLOCK_STILL;
    }
    pthread_mutex_unlock(&clock_mutex);
    return now;
}

int64_t fji_plat_now(void)
{
    if (fault_is_set(FJI_FAULT_JUMP) || fault_is_set(FJI_FAULT_STILL))
        fji_store_relaxed(&clock_faulty, 1u); /* relaxed: once set, it remains 1 */
    /* relaxed: once set, it remains 1 */
    return fji_load_relaxed(&clock_faulty) != 0 ? clock_with_faults() : clock_now();
}

int64_t fji_plat_system_time(int64_t t)
{
    if (fji_load_relaxed(&clock_faulty) == 0) return t; /* relaxed: once set, it remains 1 */
    pthread_mutex_lock(&clock_mutex);
    int64_t now = clock_read();
    int64_t left = t - now;
    pthread_mutex_unlock(&clock_mutex);
    return clock_now() + left;
}
#else
int64_t fji_plat_now(void)
{
    return clock_now();
}

int64_t fji_plat_system_time(int64_t t)
{
    return t;
}
#endif
