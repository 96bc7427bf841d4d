/* SPDX-License-Identifier: MIT */
/*
 * common.c - the parts of the platform layer that Linux and POSIX have in common:
 * threads, memory, clock, environment, fork handlers, the one-word lock, faults
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
#include <time.h>
#include <unistd.h>

#include "../atomic.h"
#include "../config.h"
#include "plat.h"
#include "plat_common.h"

/* ---- Faults --------------------------------------------------------------------------------- */

#if FJI_FAULTS
static struct {
    long calls, from, count;
} plat_fault[FJI_FAULT_N];

void fji_fault_set(enum fji_fault kind, long n, long count)
{
    /* relaxed: tests set it up before the calls they mean. */
    long now = fji_load_relaxed(&plat_fault[kind].calls);
    fji_store_relaxed(&plat_fault[kind].count, 0l);     /* relaxed: as above */
    fji_store_relaxed(&plat_fault[kind].from, now + n); /* relaxed: as above */
    fji_store_relaxed(&plat_fault[kind].count, count);  /* relaxed: as above */
}

long fji_fault_calls(enum fji_fault kind)
{
    return fji_load_relaxed(&plat_fault[kind].calls); /* relaxed: a counter */
}

bool fji_fault_now(enum fji_fault kind)
{
    long n = fji_add_relaxed(&plat_fault[kind].calls, 1) + 1; /* relaxed: a counter */
    long from = fji_load_relaxed(&plat_fault[kind].from);     /* relaxed: set before */
    return n >= from && n - from < fji_load_relaxed(&plat_fault[kind].count); /* relaxed */
}
#else
void fji_fault_set(enum fji_fault kind, long n, long count)
{
    (void)kind, (void)n, (void)count;
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

    if (how->create != NULL) return how->create(plat_thread_main, s, how->arg);
    if (pthread_attr_init(&attr) != 0) return ENOMEM;
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
    struct plat_start *s = malloc(sizeof *s);
    errno = keep;
    if (s == NULL) return false;
    s->main = main;
    s->arg = arg;
    snprintf(s->name, sizeof s->name, "%s", name);
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

fji_thread fji_plat_thread_self(void)
{
    return (fji_thread){(uintptr_t)pthread_self()};
}

void fji_plat_thread_detach(void)
{
    pthread_detach(pthread_self());
}

void fji_plat_thread_join(fji_thread t)
{
    pthread_join((pthread_t)t.handle, NULL);
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

int64_t fji_plat_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

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
    int keep = errno;
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

size_t fji_plat_page(void)
{
    static size_t page;
    size_t n = fji_load_relaxed(&page); /* relaxed: every writer stores the same */

    if (n == 0) {
        n = (size_t)sysconf(_SC_PAGESIZE);
        fji_store_relaxed(&page, n); /* relaxed: as above */
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

static void (*plat_fork[3])(void);

static void plat_register_fork(void)
{
    /* relaxed: always the same, and stored before by this thread too. */
    (void)pthread_atfork(fji_load_relaxed(&plat_fork[0]), fji_load_relaxed(&plat_fork[1]),
                         fji_load_relaxed(&plat_fork[2]));
}

void fji_plat_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    /* pthread_once copes with a fork in the middle of it; a lock of ours would not. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    fji_store_relaxed(&plat_fork[0], prepare); /* relaxed: always the same */
    fji_store_relaxed(&plat_fork[1], parent);  /* relaxed: as above */
    fji_store_relaxed(&plat_fork[2], child);   /* relaxed: as above */
    pthread_once(&once, plat_register_fork);
}

int fji_plat_cpus(const char *root)
{
    int keep = errno;
    int n = fji_plat_cpus_online();
    int quota = fji_plat_cpus_quota(root);
    errno = keep;

    if (quota > 0 && quota < n) n = quota;
    return n < 1 ? 1 : n;
}

/* ---- Locks ---------------------------------------------------------------------------------- */

bool fji_lock_try(fji_lock *l)
{
    uint32_t free_word = 0;
    /* [lock.hold] acquire <- release in fji_lock_drop(): what the last holder did. */
    return fji_cas_acq_rel_32(&l->word, &free_word, 1);
}

void fji_lock_take(fji_lock *l)
{
    for (int i = 0; i < 100; i++) {
        if (fji_lock_try(l)) return;
        fji_pause();
    }
    fji_add_relaxed(&l->waiters, 1); /* relaxed: a hint; the wait has a limit */
    while (!fji_lock_try(l)) fji_plat_wait(&l->word, 1, fji_plat_now() + 1000000);
    fji_add_relaxed(&l->waiters, (uint32_t)-1); /* relaxed: as above */
}

void fji_lock_drop(fji_lock *l)
{
    uint32_t waiters = fji_load_relaxed(&l->waiters); /* relaxed: as above */

    /* [lock.hold] release -> acquire in fji_lock_try(). LAST TOUCH of *l. */
    fji_store_release(&l->word, 0u);
    if (waiters != 0) fji_plat_wake_one(&l->word);
}

void fji_lock_reset(fji_lock *l)
{
    l->word = 0;
    l->waiters = 0;
}
