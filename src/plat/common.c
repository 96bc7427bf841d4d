/* SPDX-License-Identifier: MIT */
/*
 * common.c - the parts of the platform layer that Linux and POSIX have in common:
 * threads, memory, clock, environment, fork handlers, faults
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../atomic.h"
#include "../config.h"
#include "keep.h"
#include "plat.h"
#include "plat_common.h"

/* ---- Faults --------------------------------------------------------------------------------- */

#if FJI_FAULTS
/* relaxed in all of this: tests set it up before the calls they mean. */
struct plat_window {
    long from, count;
};

static struct {
    long calls;
    struct plat_window window[2];
    uint64_t seed;
    long one_in;
} plat_fault[FJI_FAULT_N];

static void window_set(enum fji_fault kind, int i, long n, long count)
{
    struct plat_window *w = &plat_fault[kind].window[i];
    long now = fji_load_relaxed(&plat_fault[kind].calls); /* relaxed: see above */

    fji_store_relaxed(&w->count, 0l);     /* relaxed: see above */
    fji_store_relaxed(&w->from, now + n); /* relaxed: see above */
    fji_store_relaxed(&w->count, count);  /* relaxed: see above */
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
    fji_store_relaxed(&plat_fault[kind].one_in, 0l);     /* relaxed: see above */
    fji_store_relaxed(&plat_fault[kind].seed, seed);     /* relaxed: see above */
    fji_store_relaxed(&plat_fault[kind].one_in, one_in); /* relaxed: see above */
}

long fji_fault_calls(enum fji_fault kind)
{
    return fji_load_relaxed(&plat_fault[kind].calls); /* relaxed: a counter */
}

static bool window_has(const struct plat_window *w, long n)
{
    long from = fji_load_relaxed(&w->from);                     /* relaxed: see above */
    return n >= from && n - from < fji_load_relaxed(&w->count); /* relaxed: see above */
}

/* Whether call n is one that the dice have chosen: the same for the same seed. */
static bool fault_by_chance(enum fji_fault kind, long n)
{
    long one_in = fji_load_relaxed(&plat_fault[kind].one_in);                    /* relaxed */
    uint64_t x = fji_load_relaxed(&plat_fault[kind].seed) + (uint64_t)n * 2 + 1; /* relaxed */

    if (one_in <= 0) return false;
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return (x ^ (x >> 32)) % (uint64_t)one_in == 0;
}

bool fji_fault_now(enum fji_fault kind)
{
    long n = fji_add_relaxed(&plat_fault[kind].calls, 1) + 1; /* relaxed: a counter */

    return window_has(&plat_fault[kind].window[0], n) ||
           window_has(&plat_fault[kind].window[1], n) || fault_by_chance(kind, n);
}

/* Whether any is set: for points that are passed too often to be counted always. */
static bool fault_is_set(enum fji_fault kind)
{
    return fji_load_relaxed(&plat_fault[kind].one_in) != 0 ||          /* relaxed: see above */
           fji_load_relaxed(&plat_fault[kind].window[0].count) != 0 || /* relaxed: see above */
           fji_load_relaxed(&plat_fault[kind].window[1].count) != 0;   /* relaxed: see above */
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
    struct timespec a_while = {.tv_nsec = 1000000};

    if (!fji_fault_now(kind)) return;
    int old = fji_keep();
    nanosleep(&a_while, NULL);
    fji_let_go(old);
}

/* ---- Threads -------------------------------------------------------------------------------- */

struct plat_start {
    void (*main)(void *);
    void *arg;
    char name[16];
};

static void *plat_thread_main(void *p)
{
    struct plat_start s = *(struct plat_start *)p;
    int old;

    free(p);
    FJI_GAP();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
#ifdef __linux__
    pthread_setname_np(pthread_self(), s.name);
#endif
    s.main(s.arg);
    return NULL;
}

/* All but those that a fault of the thread itself raises. */
static void plat_block_signals(sigset_t *old)
{
    sigset_t all;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGTRAP);
    sigdelset(&all, SIGABRT);
    sigdelset(&all, SIGSYS);
    pthread_sigmask(SIG_SETMASK, &all, old);
}

/* By pthread_create(), or as the options want it. The mask is inherited. */
static int plat_create(const fji_creator *how, struct plat_start *s)
{
    pthread_attr_t attr;
    pthread_t id;
    size_t bytes = how->stack_bytes, have;

    if (how->create_thread != NULL) return how->create_thread(plat_thread_main, s, how->arg);
    if (fji_fault_now(FJI_FAULT_ATTR) || pthread_attr_init(&attr) != 0) return ENOMEM;
    if (bytes == 0 && pthread_attr_getstacksize(&attr, &have) == 0 && have < FJI_STACK_MIN)
        bytes = FJI_STACK_MIN;
    if (bytes != 0) pthread_attr_setstacksize(&attr, bytes);
    int err = pthread_create(&id, &attr, plat_thread_main, s);
    pthread_attr_destroy(&attr);
    return err;
}

bool fji_plat_thread_start(void (*main)(void *), void *arg, const fji_creator *how,
                           const char *name)
{
    sigset_t old;

    if (fji_fault_now(FJI_FAULT_THREAD)) return false;
    int keep = errno;
    struct plat_start *s = fji_fault_now(FJI_FAULT_ALLOC) ? NULL : malloc(sizeof *s);
    errno = keep;
    if (s == NULL) return false;
    s->main = main;
    s->arg = arg;
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    plat_block_signals(&old);
    int err = plat_create(how, s);
    errno = keep;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err != 0) {
        free(s);
        return false;
    }
    return true;
}

void fji_plat_thread_bind(const void *cpus, size_t bytes)
{
#ifdef __linux__
    if (!fji_fault_now(FJI_FAULT_AFFINITY))
        (void)pthread_setaffinity_np(pthread_self(), bytes, cpus);
#else
    (void)cpus;
    (void)bytes;
#endif
}

void fji_plat_thread_allow(int signal)
{
    sigset_t set;

    sigemptyset(&set);
    if (sigaddset(&set, signal) == 0) pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void fji_plat_thread_signal(fji_thread t, int signal)
{
    (void)pthread_kill((pthread_t)t.handle, signal);
}

void fji_plat_thread_block_all(void)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

fji_thread fji_plat_thread_self(void)
{
    return (fji_thread){(uintptr_t)pthread_self()};
}

void fji_plat_thread_detach(fji_thread t)
{
    pthread_detach((pthread_t)t.handle);
}

void fji_plat_thread_join(fji_thread t)
{
    int old = fji_keep();

    pthread_join((pthread_t)t.handle, NULL);
    fji_let_go(old);
}

void fji_plat_yield(void)
{
    sched_yield();
}

bool fji_plat_stack(uintptr_t *low, size_t *bytes)
{
#ifdef __GLIBC__
    /* Asked once for each thread: for the main thread glibc reads /proc/self/maps. */
    static __thread uintptr_t known_low;
    static __thread size_t known_bytes;
    pthread_attr_t attr;
    void *at;

    if (known_bytes == 0) {
        int keep = errno;
        int err = pthread_getattr_np(pthread_self(), &attr);
        errno = keep;
        if (err != 0) return false;
        bool ok = pthread_attr_getstack(&attr, &at, &known_bytes) == 0;
        pthread_attr_destroy(&attr);
        if (!ok) return false;
        known_low = (uintptr_t)at;
    }
    *low = known_low;
    *bytes = known_bytes;
    return true;
#else
    (void)low, (void)bytes;
    return false;
#endif
}

uint32_t fji_plat_thread_hash(void)
{
    /* The address of a thread-local tells threads apart without a system call. */
    static __thread char here;
    uint64_t x = (uint64_t)(uintptr_t)&here >> 6;
    x *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(x >> 32);
}

/* ---- Time ----------------------------------------------------------------------------------- */

static int64_t clock_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

#if FJI_FAULTS
#define CLOCK_JUMP 3600000000000ll
#define CLOCK_STILL 20000000ll

/* Our clock is the system's and so much; while it stands still it is what it was. */
static pthread_mutex_t clock_mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t clock_ahead, clock_stopped, clock_goes_on;
static uint32_t clock_faulty; /* ever set */

/* With the mutex. */
static int64_t clock_look(void)
{
    int64_t now = clock_now();

    if (now < clock_goes_on) return clock_stopped;
    if (clock_goes_on != 0) {
        clock_ahead = clock_stopped - clock_goes_on;
        clock_goes_on = 0;
    }
    return now + clock_ahead;
}

static int64_t clock_with_faults(void)
{
    pthread_mutex_lock(&clock_mutex);
    int64_t now = clock_look();
    if (fji_fault_now(FJI_FAULT_JUMP) && clock_goes_on == 0) {
        clock_ahead += CLOCK_JUMP;
        now += CLOCK_JUMP;
    }
    if (fji_fault_now(FJI_FAULT_STILL) && clock_goes_on == 0) {
        clock_stopped = now;
        clock_goes_on = now - clock_ahead + CLOCK_STILL;
    }
    pthread_mutex_unlock(&clock_mutex);
    return now;
}

int64_t fji_plat_now(void)
{
    if (fault_is_set(FJI_FAULT_JUMP) || fault_is_set(FJI_FAULT_STILL))
        fji_store_relaxed(&clock_faulty, 1u); /* relaxed: a flag that stays */
    /* relaxed: as above. */
    return fji_load_relaxed(&clock_faulty) != 0 ? clock_with_faults() : clock_now();
}

int64_t fji_plat_system_time(int64_t t)
{
    if (fji_load_relaxed(&clock_faulty) == 0) return t; /* relaxed: a flag that stays */
    pthread_mutex_lock(&clock_mutex);
    int64_t now = clock_look();
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

/* ---- Memory --------------------------------------------------------------------------------- */

void *fji_plat_alloc(size_t bytes)
{
    void *p;
    int keep = errno;

    if (fji_fault_now(FJI_FAULT_ALLOC)) return NULL;
    int err = posix_memalign(&p, FJI_APART, bytes);
    errno = keep;
    return err == 0 ? memset(p, 0, bytes) : NULL;
}

void *fji_plat_alloc_scratch(size_t bytes)
{
    int keep = errno;
    void *p = malloc(bytes);

    errno = keep;
    return p;
}

void fji_plat_free(void *p)
{
    free(p);
}

void *fji_plat_reserve(size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
    flags |= MAP_NORESERVE;
#endif
    if (fji_fault_now(FJI_FAULT_RESERVE)) return NULL;
    int keep = errno;
    /* Where the address space is limited the program needs it more than we do. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        bytes > limit.rlim_cur / FJI_RESERVE_PART)
        return NULL;
    void *p = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
    errno = keep;
    return p == MAP_FAILED ? NULL : p;
}

bool fji_plat_commit(void *at, size_t bytes)
{
    if (fji_fault_now(FJI_FAULT_COMMIT)) return false;
    int keep = errno;
    bool done = mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0;
    errno = keep;
    return done;
}

void fji_plat_release(void *at, size_t bytes)
{
    munmap(at, bytes);
}

bool fji_plat_discard(void *at, size_t bytes)
{
    if (fji_fault_now(FJI_FAULT_COMMIT)) return false;
    int keep = errno;
#ifdef __linux__
    bool done = madvise(at, bytes, MADV_DONTNEED) == 0;
#else
    bool done = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                     0) != MAP_FAILED;
#endif
    errno = keep;
    return done;
}

size_t fji_plat_page(void)
{
    static size_t page;
    size_t n = fji_load_relaxed(&page); /* relaxed: every writer stores the same */

    if (n == 0) {
        long size = fji_fault_now(FJI_FAULT_SYSCONF) ? -1 : sysconf(_SC_PAGESIZE);
        n = size > 0 ? (size_t)size : 65536; /* a multiple of whatever it is */
        fji_store_relaxed(&page, n);         /* relaxed: as above */
    }
    return n;
}

/* ---- Environment ---------------------------------------------------------------------------- */

const char *fji_plat_env(const char *name)
{
#ifdef __GLIBC__
    return secure_getenv(name);
#else
    return getuid() == geteuid() && getgid() == getegid() ? getenv(name) : NULL;
#endif
}

bool fji_plat_register_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return !fji_fault_now(FJI_FAULT_ATFORK) && pthread_atfork(prepare, parent, child) == 0;
}

void fji_plat_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    /* Without a lock, which a fork in the middle of this would leave held: what is done twice
     * does no harm, and what was refused is tried again with the next pool. */
    static uint32_t done;

    if (fji_load_relaxed(&done) != 0) return; /* relaxed: nothing comes with it */
    if (fji_plat_register_fork(prepare, parent, child))
        fji_store_relaxed(&done, 1u); /* relaxed: as above */
}

int fji_plat_cpus(const char *root)
{
    int keep = errno, old = fji_keep(); /* files are read, with a lock held perhaps */
    int n = fji_plat_cpus_online();
    int quota = fji_plat_cpus_quota(root);
    fji_let_go(old);
    errno = keep;

    if (quota > 0 && quota < n) n = quota;
    return n < 1 ? 1 : n;
}
