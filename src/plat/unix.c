/* SPDX-License-Identifier: MIT */
/*
 * unix.c - what the linux and posix layers share: threads, memory, environment, fork handlers
 *
 * plat.h says what each function does.
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

#include "atomic.h"
#include "config.h"
#include "nocancel.h"
#include "plat.h"
#include "unix.h"

/* ---- Threads -------------------------------------------------------------------------------- */

/* The arguments of plat_thread_main(), which frees this struct. */
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
    FJI_CHAOS_POINT();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
#ifdef __linux__
    pthread_setname_np(pthread_self(), s.name);
#endif
    s.main(s.arg);
    return NULL;
}

/* Sets *blocked to all signals except those that an error of a thread raises in it. */
static void plat_blocked_signals(sigset_t *blocked)
{
    sigfillset(blocked);
    sigdelset(blocked, SIGSEGV);
    sigdelset(blocked, SIGBUS);
    sigdelset(blocked, SIGFPE);
    sigdelset(blocked, SIGILL);
    sigdelset(blocked, SIGTRAP);
    sigdelset(blocked, SIGABRT);
    sigdelset(blocked, SIGSYS);
}

/* Makes the threads that are created with *attr begin with the signal mask *blocked. Returns false
 * if the system cannot do that. */
static bool plat_attr_block(pthread_attr_t *attr, const sigset_t *blocked)
{
#ifdef PTHREAD_ATTR_NO_SIGMASK_NP /* glibc since 2.32 */
    return pthread_attr_setsigmask_np(attr, blocked) == 0;
#else
    (void)attr, (void)blocked;
    return false;
#endif
}

/* Creates a thread that runs plat_thread_main(s), by how->create_thread() if that is not NULL, or
 * else by pthread_create(). The new thread begins with the signal mask *blocked. Unless an attribute
 * can say that, it inherits the mask, and the calling thread has this mask meanwhile, which takes
 * two system calls more. Returns 0, or another value if no thread was created. */
static int plat_create(const fji_creator *how, struct plat_start *s, const sigset_t *blocked)
{
    pthread_attr_t attr;
    pthread_t id;
    sigset_t old;
    size_t bytes = how->stack_bytes, have;
    bool own = how->create_thread == NULL, inherits = true;

    if (own && (fji_fault_now(FJI_FAULT_ATTR) || pthread_attr_init(&attr) != 0)) return ENOMEM;
    if (own) inherits = !plat_attr_block(&attr, blocked);
    if (own && bytes == 0 && pthread_attr_getstacksize(&attr, &have) == 0 && have < FJI_STACK_MIN)
        bytes = FJI_STACK_MIN;
    if (own && bytes != 0) pthread_attr_setstacksize(&attr, bytes);
    if (inherits) pthread_sigmask(SIG_SETMASK, blocked, &old);
    int err = own ? pthread_create(&id, &attr, plat_thread_main, s)
                  : how->create_thread(plat_thread_main, s, how->arg);
    if (inherits) pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (own) pthread_attr_destroy(&attr);
    return err;
}

bool fji_plat_thread_start(void (*main)(void *), void *arg, const fji_creator *how,
                           const char *name)
{
    sigset_t blocked;

    if (fji_fault_now(FJI_FAULT_THREAD)) return false;
    int keep = errno;
    struct plat_start *s = fji_fault_now(FJI_FAULT_ALLOC) ? NULL : malloc(sizeof *s);
    errno = keep;
    if (s == NULL) return false;
    s->main = main;
    s->arg = arg;
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    plat_blocked_signals(&blocked);
    int err = plat_create(how, s, &blocked);
    errno = keep;
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
    int old = fji_nocancel_begin();

    pthread_join((pthread_t)t.handle, NULL);
    fji_nocancel_end(old);
}

void fji_plat_yield(void)
{
    sched_yield();
}

bool fji_plat_stack(uintptr_t *low, size_t *bytes)
{
#ifdef __GLIBC__
    /* The bounds of the calling thread's stack; known_bytes is 0 before the first call. They are
     * kept because pthread_getattr_np() is slow in the main thread: there glibc reads
     * /proc/self/maps to find them. */
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
    /* The address of a thread-local variable differs between threads and needs no system call. */
    static __thread char here;
    uint64_t x = (uint64_t)(uintptr_t)&here >> 6;
    x *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(x >> 32);
}

/* ---- Memory --------------------------------------------------------------------------------- */

void *fji_plat_alloc(size_t bytes)
{
    void *p;
    int keep = errno;

    if (fji_fault_now(FJI_FAULT_ALLOC)) return NULL;
    int err = posix_memalign(&p, FJI_CACHE_PAIR, bytes);
    errno = keep;
    return err == 0 ? memset(p, 0, bytes) : NULL;
}

/* Asks for huge pages in `bytes` bytes, which the process can write: one page fault for each 2 MB
 * instead of each 4 KB. The system may refuse; that costs only time. May change errno. */
static void plat_want_huge(void *at, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    if (bytes >= FJI_HUGE_MIN) (void)madvise(at, bytes, MADV_HUGEPAGE);
#else
    (void)at, (void)bytes;
#endif
}

/* malloc() usually takes a large block from the system, and free() returns it. Without huge pages,
 * each call of an algorithm would have a page fault for each 4 KB of its scratch memory. Only huge
 * pages that are completely in the block are asked for. */
void *fji_plat_alloc_scratch(size_t bytes)
{
    int keep = errno;
    void *p;

    if (bytes < FJI_HUGE_ALIGN_MIN || posix_memalign(&p, FJI_HUGE_PAGE, bytes) != 0)
        p = malloc(bytes);
    size_t before = -(uintptr_t)p % FJI_HUGE_PAGE; /* bytes before the first huge page */
    if (p != NULL && before < bytes)
        plat_want_huge((char *)p + before, (bytes - before) / FJI_HUGE_PAGE * FJI_HUGE_PAGE);
    errno = keep;
    return p;
}

void fji_plat_free(void *p)
{
    free(p);
}

/*
 * The ranges that fji_plat_release() has kept: the addresses at which they begin, or 0. A range in
 * the array begins with a struct plat_kept. The thread that has removed a range from the array owns
 * it. No lock protects the array, because a fork() by another thread could leave the lock held in
 * the child process. A range that another thread owns during fork() is lost in the child process.
 */
static uint64_t plat_kept[FJI_RANGES_KEPT];

struct plat_kept {
    size_t bytes, committed; /* as in fji_plat_release() */
};

static uint32_t plat_unloads; /* 1: the library is being unloaded, and keeps no range any more */

/* Puts the range at `at`, which begins with a struct plat_kept, into the array. Returns false if
 * the array is full. */
static bool kept_put(const void *at)
{
    for (int i = 0; i < FJI_RANGES_KEPT; i++) {
        uint64_t none = 0;
        /* [plat.kept] acq_rel -> acq_rel in kept_remove(): the struct plat_kept, and that this
         * thread does not access the range any more. */
        if (fji_cas_acq_rel_64(&plat_kept[i], &none, (uint64_t)(uintptr_t)at)) return true;
    }
    return false;
}

/* Removes element i of the array. Returns the range, or NULL if there is none. */
static struct plat_kept *kept_remove(int i)
{
    /* relaxed: compared with 0 only, so that an empty array costs no atomic read-modify-write. */
    if (fji_load_relaxed(&plat_kept[i]) == 0) return NULL;
    /* [plat.kept] acq_rel <- acq_rel in kept_put(): the contents of the range. */
    return (struct plat_kept *)(uintptr_t)fji_swap_acq_rel(&plat_kept[i], 0ull);
}

/* Returns a kept range of `bytes` addresses, and sets *committed to the number of its committed
 * bytes, which are zero then. Returns NULL if there is none. */
static void *kept_find(size_t bytes, size_t *committed)
{
    for (int i = 0; i < FJI_RANGES_KEPT; i++) {
        struct plat_kept *k = kept_remove(i);
        if (k != NULL && k->bytes == bytes) {
            *committed = k->committed;
            return memset(k, 0, *committed);
        }
        if (k != NULL && !kept_put(k)) munmap(k, k->bytes);
    }
    return NULL;
}

void fji_plat_release_kept(void)
{
    for (int i = 0; i < FJI_RANGES_KEPT; i++) {
        struct plat_kept *k = kept_remove(i);
        if (k != NULL) munmap(k, k->bytes);
    }
}

__attribute__((destructor)) static void plat_unload(void)
{
    /* relaxed: no other thread may use the library while it is unloaded */
    fji_store_relaxed(&plat_unloads, 1u);
    fji_plat_release_kept();
}

void *fji_plat_reserve(size_t bytes, size_t *committed)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
    flags |= MAP_NORESERVE;
#endif
    *committed = 0;
    if (fji_fault_now(FJI_FAULT_RESERVE)) return NULL;
    int keep = errno;
    void *kept = kept_find(bytes, committed);
    errno = keep;
    if (kept != NULL) return kept;
    /* If the address space of the process is limited, the library leaves most of it to the
     * program. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        bytes > limit.rlim_cur / FJI_RESERVE_PART)
        return NULL;
    void *p = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
    errno = keep;
    return p == MAP_FAILED ? NULL : p;
}

bool fji_plat_commit(void *at, size_t bytes, size_t *committed)
{
    if (fji_fault_now(FJI_FAULT_COMMIT)) return false;
    if (bytes <= *committed) return true;
    int keep = errno;
    bool done = mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0;
    if (done) plat_want_huge(at, bytes);
    errno = keep;
    if (done) *committed = bytes;
    return done;
}

void fji_plat_release(void *at, size_t bytes, size_t committed)
{
    struct plat_kept *k = at;
    int keep = errno;

    /* relaxed: as in plat_unload(); when the process ends, a kept range does no harm */
    if (committed != 0 && committed <= FJI_KEPT_PAGES * fji_plat_page() &&
        fji_load_relaxed(&plat_unloads) == 0) {
        *k = (struct plat_kept){bytes, committed};
        if (kept_put(k)) return;
    }
    munmap(at, bytes);
    errno = keep;
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
    size_t n = fji_load_relaxed(&page); /* relaxed: every thread stores the same page size */

    if (n == 0) {
        long size = fji_fault_now(FJI_FAULT_SYSCONF) ? -1 : sysconf(_SC_PAGESIZE);
        n = size > 0 ? (size_t)size : 65536; /* a multiple of every common page size */
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

int64_t fji_plat_process(void)
{
    return getpid();
}

bool fji_plat_register_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return !fji_fault_now(FJI_FAULT_ATFORK) && pthread_atfork(prepare, parent, child) == 0;
}

void fji_plat_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    /* `done` is not protected by a lock, because a fork() by another thread could leave the lock
     * held in the child process. Two threads may therefore install the handlers twice, which plat.h
     * permits. */
    static uint32_t done;

    if (fji_load_relaxed(&done) != 0) return; /* relaxed: `done` publishes no other data */
    if (fji_plat_register_fork(prepare, parent, child))
        fji_store_relaxed(&done, 1u); /* relaxed: as above */
}

/* Returns fji_plat_cpus_quota(root). If root is "", the result may be up to FJI_QUOTA_KEEP_NS old,
 * because reading the files takes longer than all other steps of the creation of a pool. */
static int plat_quota(const char *root)
{
    /* The time of the last reading in units of FJI_QUOTA_KEEP_NS, + 1, and below it the quota in
     * QUOTA_BITS bits; 0: nothing was read yet. */
    static uint64_t last;
    enum { QUOTA_BITS = 20 }; /* a quota is at most 1000000 */

    if (root[0] != '\0') return fji_plat_cpus_quota(root);
    uint64_t time = (uint64_t)(fji_plat_now() / FJI_QUOTA_KEEP_NS) + 1;
    uint64_t seen = fji_load_relaxed(&last); /* relaxed: the word publishes no other data */
    if (seen >> QUOTA_BITS == time) return (int)(seen & ((1u << QUOTA_BITS) - 1));
    int quota = fji_plat_cpus_quota(root);
    fji_store_relaxed(&last, time << QUOTA_BITS | (uint64_t)quota); /* relaxed: as above */
    return quota;
}

int fji_plat_cpus(const char *root)
{
    /* plat_quota() reads files, which is a cancellation point, and the caller may hold a lock. */
    int keep = errno, old = fji_nocancel_begin();
    int n = fji_plat_cpus_online();
    int quota = plat_quota(root);
    fji_nocancel_end(old);
    errno = keep;

    if (quota > 0 && quota < n) n = quota;
    return n < 1 ? 1 : n;
}
