/* SPDX-License-Identifier: MIT */
/*
 * plat.h - the porting contract
 *
 * All that the library wants from a system, and the only place where it asks.
 * Every wait and every thread goes through here, so that another layer (a
 * deterministic scheduler, say) can be put underneath without touching the rest.
 * plat/linux and plat/posix implement it; the build chooses one folder, and
 * plat_common.c adds what both do alike.
 */
#ifndef FJI_PLAT_H
#define FJI_PLAT_H

#include <forkjoin.h>
#include <stdbool.h>

/* ---- Waiting on a word ------------------------------------------------------------------ */

/*
 * Sleeps while *word == value, at most until `deadline_ns` (monotonic; FJ_FOREVER:
 * no limit). May return at any time without a reason: callers look again. The
 * comparison is one with going to sleep: a wake after a change of *word is never lost.
 * No order is implied. Returns false only when the deadline has passed.
 */
bool fji_plat_wait(uint32_t *word, uint32_t value, int64_t deadline_ns);

/*
 * Wakes one (or all) of those who sleep on this address. The address is only
 * compared, never read, so that the memory may be gone by then.
 */
void fji_plat_wake_one(uint32_t *word);
void fji_plat_wake_all(uint32_t *word);

/* ---- Fences -------------------------------------------------------------------------------- */

/*
 * Whether fji_plat_barrier() exists. Asked once, before the first thread; stays.
 */
bool fji_plat_has_barrier(void);

/*
 * The heavy fence: when it returns, every other running thread of the process has
 * gone through a full fence between the call and the return, or what it stored before the
 * call is seen as if it had. Returns false if there is none, which does not happen after
 * fji_plat_has_barrier() said true: where the system refuses all of a sudden, as it does
 * after a program has locked itself in (seccomp), this takes a millisecond.
 */
bool fji_plat_barrier(void);

/* ---- Threads ------------------------------------------------------------------------------- */

typedef struct fji_thread {
    uintptr_t handle;
} fji_thread;

/*
 * Starts a thread that runs main(arg), with all asynchronous signals blocked and
 * thread cancellation off, named `name` (up to 15 bytes). Returns false if the
 * system refused.
 */
typedef struct fji_creator {
    size_t stack_bytes; /* 0: the system's */
    /* Or NULL: makes a thread that calls entry(arg) and can be joined; not 0: refused. */
    int (*create_thread)(void *(*entry)(void *), void *arg, void *creator_arg);
    void *arg;
} fji_creator;

bool fji_plat_thread_start(void (*main)(void *), void *arg, const fji_creator *how,
                           const char *name);

/* The calling thread runs on these CPUs only, if the system has such a call. */
void fji_plat_thread_bind(const void *cpus, size_t bytes);

/* The calling thread lets this signal through. Another one gets it: it has not ended. */
void fji_plat_thread_allow(int signal);
void fji_plat_thread_signal(fji_thread t, int signal);

/* Blocks every signal in the calling thread, also those that fji_plat_thread_start() leaves. */
void fji_plat_thread_block_all(void);

/* The calling thread, as a handle to join. */
fji_thread fji_plat_thread_self(void);

/* It will not be joined. */
void fji_plat_thread_detach(fji_thread t);

/* Waits for its end and gives its resources back. */
void fji_plat_thread_join(fji_thread t);

void fji_plat_yield(void);

/* Lowest address of the calling thread's stack and its size; false if not known. */
bool fji_plat_stack(uintptr_t *low, size_t *bytes);

/* A number for the calling thread, different for those alive at the same time. */
uint32_t fji_plat_thread_hash(void);

/* ---- Time ---------------------------------------------------------------------------------- */

int64_t fji_plat_now(void);

/* ---- Memory -------------------------------------------------------------------------------- */

/* Zeroed, aligned to a pair of cache lines. NULL if there is none. */
void *fji_plat_alloc(size_t bytes);
/* As malloc(): not zeroed, and aligned for any type only. Does not change errno. */
void *fji_plat_alloc_scratch(size_t bytes);
/* Frees memory of either function. */
void fji_plat_free(void *p);

/* Address space without memory; then memory (zeroed) for a part of it; then back. A range that is
 * large in comparison with what the process may have is refused. */
void *fji_plat_reserve(size_t bytes);
bool fji_plat_commit(void *at, size_t bytes);
void fji_plat_release(void *at, size_t bytes);
/* Gives the memory of whole pages back, which stay committed and read as zero: another thread may
 * read them meanwhile. False: nothing was changed. */
bool fji_plat_discard(void *at, size_t bytes);
size_t fji_plat_page(void);

/* ---- Environment --------------------------------------------------------------------------- */

/* CPUs the process may use, at least 1; `root` is put before /proc and /sys (tests). */
int fji_plat_cpus(const char *root);

/* A variable of the environment, NULL if absent or if the process is privileged. */
const char *fji_plat_env(const char *name);

/*
 * Calls these around every fork() of the process; may be called again and again with the
 * same, and they may be called several times for one fork(), prepare before all the others.
 * Without memory for it, it is not done, and tried again at the next call.
 */
void fji_plat_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/* ---- Locks: one word, no destructor --------------------------------------------------------- */

/*
 * Letting go is a plain store: the number of waiters is read before it, so that nothing of
 * the lock is touched after it. A waiter that comes in between is not woken, and looks again
 * after a millisecond: rare, and cheaper than a second locked instruction each time.
 */
typedef struct fji_lock {
    uint32_t word; /* 0 free, 1 held */
    uint32_t waiters;
} fji_lock;

void fji_lock_take(fji_lock *l);
bool fji_lock_try(fji_lock *l);
void fji_lock_drop(fji_lock *l);
/* In the child of fork(): whoever held it is no more. */
void fji_lock_reset(fji_lock *l);

/* ---- Faults (FJI_FAULTS builds) -------------------------------------------------------------- */

/* What can go wrong: refusals first, then what a system may do although nobody likes it. */
enum fji_fault {
    FJI_FAULT_ALLOC,      /* no memory */
    FJI_FAULT_COMMIT,     /* no memory for a range */
    FJI_FAULT_THREAD,     /* no thread */
    FJI_FAULT_BARRIER,    /* no heavy fence: both calls above say false */
    FJI_FAULT_RESERVE,    /* no range */
    FJI_FAULT_ATTR,       /* no attributes for a thread, hence no thread */
    FJI_FAULT_ATFORK,     /* no handlers around fork() */
    FJI_FAULT_AFFINITY,   /* CPUs cannot be asked for, nor set */
    FJI_FAULT_SYSCONF,    /* -1 */
    FJI_FAULT_MEMBARRIER, /* the heavy fence is refused though it was promised (Linux) */
    FJI_FAULT_WAIT,       /* a wait returns at once, without a reason */
    FJI_FAULT_WAIT_LATE,  /* begins a millisecond late */
    FJI_FAULT_WAKE_LATE,  /* a wake comes a millisecond late */
    FJI_FAULT_WAKE_MORE,  /* and once more, for everybody on that word */
    FJI_FAULT_JUMP,       /* the clock goes on by an hour */
    FJI_FAULT_STILL,      /* the clock stands still for 20 ms */
    FJI_FAULT_N
};

/* From now on the n-th call (1 = next) of that kind fails, and `count` - 1 after it; 0: none. */
void fji_fault_set(enum fji_fault kind, long n, long count);
/* And these too, counted from now; until the next fji_fault_set(). */
void fji_fault_and(enum fji_fault kind, long n, long count);
/* One in so many of that kind, by pseudo-random numbers from `seed`; 0: none. */
void fji_fault_random(enum fji_fault kind, uint64_t seed, long one_in);
/* Calls of that kind so far; those of the clock count only while faults of it are set. */
long fji_fault_calls(enum fji_fault kind);
/* Whether this call is to fail. Always false without FJI_FAULTS. */
bool fji_fault_now(enum fji_fault kind);

#endif /* FJI_PLAT_H */
