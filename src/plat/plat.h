/* SPDX-License-Identifier: MIT */
/*
 * plat.h - the porting contract
 *
 * The platform layer is the only part of the library that asks the system. Every wait, thread,
 * clock and piece of memory comes from here, so another system, or a simulator, replaces these
 * functions and nothing else. blocking.h continues the contract with the calls behind
 * <forkjoin/block.h>.
 *
 * Implementations
 *   linux/    waiting by futex, the heavy fence by membarrier
 *   posix/    waiting by mutex and condition variable, no heavy fence
 *   sim/      the simulator of the tests
 * The build chooses one of them. unix.c and cgroup.c hold what linux/ and posix/ share. lock.c and
 * blocking.c serve all three.
 *
 * Unless stated otherwise, any thread may call a function, inside or outside a pool, also while it
 * holds a lock of the library. A function leaves errno unchanged and is no cancellation point.
 */
#ifndef FJI_PLAT_H
#define FJI_PLAT_H

#include <forkjoin.h>
#include <stdbool.h>

/* ---- Waiting on a word ------------------------------------------------------------------ */

/*
 * Sleeps while *word == value, at most until deadline_ns, a time of fji_plat_now(). FJ_FOREVER
 * means no deadline.
 *
 * The comparison and going to sleep are one step with respect to a wake: a thread that changes
 * *word and then calls a wake function either makes the comparison fail or wakes the sleeper. A
 * wait may return at any time without a reason, so the caller checks its condition again. The call
 * implies no memory order.
 *
 * Returns false only if the deadline has passed.
 */
bool fji_plat_wait(uint32_t *word, uint32_t value, int64_t deadline_ns);

/*
 * Wake one thread, or all threads, that sleep on this address. The call compares the address and
 * does not access the memory, so another thread may free the memory before or during the call.
 */
void fji_plat_wake_one(uint32_t *word);
void fji_plat_wake_all(uint32_t *word);

/* ---- Fences -------------------------------------------------------------------------------- */

/*
 * Returns whether the system has the heavy fence, fji_plat_barrier(). The library asks once in a
 * process, before it starts a thread, and keeps the answer.
 */
bool fji_plat_has_barrier(void);

/*
 * The heavy fence. Each other running thread of the process executes a full fence between the call
 * and the return, or its stores before the call are visible to the caller as if it had. So the
 * light fence of any other thread acts as a full fence with respect to this call.
 *
 * Returns false if there is no heavy fence. That does not happen after fji_plat_has_barrier() has
 * returned true. If the system then refuses the call, as it does after the program has installed a
 * seccomp filter, the call takes 1 ms and returns true.
 */
bool fji_plat_barrier(void);

/* ---- Threads ------------------------------------------------------------------------------- */

/* A thread that can be joined, signalled or detached. */
typedef struct fji_thread {
    uintptr_t handle;
} fji_thread;

/* How a thread is created. */
typedef struct fji_creator {
    size_t stack_bytes; /* 0: the default of the system, but at least FJI_STACK_MIN */
    /* NULL, or the function that creates the thread: a joinable thread that calls entry(arg). It
     * returns 0, or another value if it creates none. stack_bytes is then unused. */
    int (*create_thread)(void *(*entry)(void *), void *arg, void *creator_arg);
    void *arg; /* passed as creator_arg */
} fji_creator;

/*
 * Starts a thread that runs main(arg). All asynchronous signals are blocked in it, its cancellation
 * is disabled, and its name is the first 15 bytes of `name`. Returns false if the thread could not
 * be started; main() is not called then.
 */
bool fji_plat_thread_start(void (*main)(void *), void *arg, const fji_creator *how,
                           const char *name);

/*
 * Binds the calling thread to the CPUs of an affinity mask of `bytes` bytes. Does nothing if the
 * system has no such call or refuses it.
 */
void fji_plat_thread_bind(const void *cpus, size_t bytes);

/* Unblocks a signal in the calling thread. */
void fji_plat_thread_allow(int signal);

/* Sends a signal to t. The caller makes sure that t has not been joined, and not ended if it is
 * detached. */
void fji_plat_thread_signal(fji_thread t, int signal);

/* Blocks every signal in the calling thread, also those that fji_plat_thread_start() does not block. */
void fji_plat_thread_block_all(void);

/* Returns the calling thread. */
fji_thread fji_plat_thread_self(void);

/* Lets the system free the resources of t when it ends. t cannot be joined afterwards. */
void fji_plat_thread_detach(fji_thread t);

/* Waits until t has ended and frees its resources. One thread calls this, once, and not t
 * itself. */
void fji_plat_thread_join(fji_thread t);

/* Lets another thread run on the CPU of the caller. */
void fji_plat_yield(void);

/* Sets *low to the lowest address of the calling thread's stack and *bytes to its size. Returns
 * false if the system does not tell. */
bool fji_plat_stack(uintptr_t *low, size_t *bytes);

/* Returns a number for the calling thread. Threads that are alive at the same time usually have
 * different numbers. */
uint32_t fji_plat_thread_hash(void);

/* ---- Time ---------------------------------------------------------------------------------- */

/* Returns the monotonic time, ns. The zero point is arbitrary. */
int64_t fji_plat_now(void);

/* ---- Memory -------------------------------------------------------------------------------- */

/* Returns `bytes` bytes, zeroed and aligned to FJI_CACHE_PAIR, or NULL if there is no memory. */
void *fji_plat_alloc(size_t bytes);

/* Allocates memory as malloc() does: not zeroed, aligned for any type. Returns NULL if there is none. Does
 * not change errno. */
void *fji_plat_alloc_scratch(size_t bytes);

/* Frees memory of either function. p may be NULL. */
void fji_plat_free(void *p);

/*
 * Reserves a range of addresses that has no memory and must not be accessed. Returns NULL if the
 * system refuses, or if the range is more than 1/FJI_RESERVE_PART of a limit of the address space.
 */
void *fji_plat_reserve(size_t bytes);

/*
 * Gives memory to the first `bytes` bytes at `at`, inside a reserved range. Memory that is there
 * already stays; new memory is zero. Returns false if there is no memory; then nothing is changed.
 */
bool fji_plat_commit(void *at, size_t bytes);

/* Returns a whole reserved range, with its memory, to the system. */
void fji_plat_release(void *at, size_t bytes);

/*
 * Returns the memory of committed whole pages to the system. They stay committed and read as zero,
 * and other threads may read them meanwhile. Returns false if nothing was changed.
 */
bool fji_plat_discard(void *at, size_t bytes);

/* Returns the size of a page, bytes, or a multiple of it. */
size_t fji_plat_page(void);

/* ---- Environment --------------------------------------------------------------------------- */

/*
 * Returns how many CPUs the process may use, at least 1: by its affinity and by the limits of its
 * control groups. `root` is put before /proc and /sys; tests use it, the library passes "".
 */
int fji_plat_cpus(const char *root);

/* Returns the value of an environment variable. Returns NULL if it is not set, or if the process
 * has more privileges than its user (set-user-ID). */
const char *fji_plat_env(const char *name);

/*
 * Installs handlers that run around each fork() of the process: prepare before it, parent after it
 * in the parent, and child after it in the child process.
 *
 * The library calls this often, always with the same handlers. If there was no memory, the next
 * call tries again. If two threads call it at the same time, each handler may be installed, and
 * then called, more than once; all calls of prepare precede those of the other two.
 */
void fji_plat_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/* ---- Locks --------------------------------------------------------------------------------- */

/*
 * A lock of two words, without a destructor. A lock of zeros is free.
 *
 * Unlocking is a plain store and the last access to the lock, so that a thread that takes the lock
 * may free it. The holder therefore reads the number of waiters before that store. A thread that
 * begins to wait between the two is not woken. So every wait ends after 1 ms, and the waiter tries
 * again. That is rare, and cheaper than a second locked instruction for each unlock.
 */
typedef struct fji_lock {
    uint32_t word;    /* 0 free, 1 held */
    uint32_t waiters; /* threads that sleep, or are about to */
} fji_lock;

/* Waits for the lock and takes it. A thread that holds the lock must not call this. */
void fji_lock_take(fji_lock *l);

/* Takes the lock if it is free. Returns whether it did. */
bool fji_lock_try(fji_lock *l);

/* Releases the lock. The holder calls this. */
void fji_lock_drop(fji_lock *l);

/* Makes the lock free, in the child process of fork(): the thread that held it does not exist
 * there. No other thread uses the lock meanwhile. */
void fji_lock_reset(fji_lock *l);

/* ---- Faults (FJI_FAULTS builds) -------------------------------------------------------------- */

/* What a test can make go wrong: first refusals, then events that a system may cause at any
 * time. */
enum fji_fault {
    FJI_FAULT_ALLOC,      /* no memory for fji_plat_alloc() or fji_plat_thread_start() */
    FJI_FAULT_COMMIT,     /* fji_plat_commit() and fji_plat_discard() return false */
    FJI_FAULT_THREAD,     /* fji_plat_thread_start() returns false */
    FJI_FAULT_BARRIER,    /* fji_plat_has_barrier() and fji_plat_barrier() return false */
    FJI_FAULT_RESERVE,    /* fji_plat_reserve() returns NULL */
    FJI_FAULT_ATTR,       /* no memory for the attributes of a thread, so it is not started */
    FJI_FAULT_ATFORK,     /* the fork handlers are not installed */
    FJI_FAULT_AFFINITY,   /* the system refuses to read or to set the affinity */
    FJI_FAULT_SYSCONF,    /* sysconf() returns -1 */
    FJI_FAULT_MEMBARRIER, /* the system refuses the heavy fence that it had promised (linux) */
    FJI_FAULT_WAIT,       /* fji_plat_wait() returns at once, without a reason */
    FJI_FAULT_WAIT_LATE,  /* a wait begins 1 ms late */
    FJI_FAULT_WAKE_LATE,  /* a wake happens 1 ms late */
    FJI_FAULT_WAKE_MORE,  /* a second wake follows, of all threads that sleep on the word */
    FJI_FAULT_JUMP,       /* the clock jumps forward by an hour */
    FJI_FAULT_STILL,      /* the clock stands still for 20 ms */
    FJI_FAULT_N
};

/*
 * Makes `count` calls of a kind fail, beginning with the n-th from now (1 is the next). If count is
 * 0, none fails. Replaces the calls that were chosen before, but not those of fji_fault_random().
 */
void fji_fault_set(enum fji_fault kind, long n, long count);

/* Chooses a second group of calls in the same way. fji_fault_set() removes it. */
void fji_fault_and(enum fji_fault kind, long n, long count);

/* Makes about one in `one_in` calls of a kind fail, chosen by pseudo-random numbers from `seed`. If
 * one_in is 0, none fails. */
void fji_fault_random(enum fji_fault kind, uint64_t seed, long one_in);

/* Returns the number of calls of a kind so far. Calls of the clock count only after a fault of the
 * clock was set. */
long fji_fault_calls(enum fji_fault kind);

/* Counts a call of a kind, and returns whether it is to fail. The platform layer calls this. Always
 * false without FJI_FAULTS. */
bool fji_fault_now(enum fji_fault kind);

#endif /* FJI_PLAT_H */
