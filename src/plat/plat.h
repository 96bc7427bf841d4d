/* SPDX-License-Identifier: MIT */
/*
 * plat.h - the porting contract
 *
 * The platform layer, src/plat/, is the only part of the library that calls the operating system.
 * The other layers get every wait, thread, time and piece of memory through the functions of this
 * file. So a port to another system, or a simulator, implements these functions. blocking.h
 * continues the contract with the calls behind <forkjoin/block.h>. Two further headers ask the
 * system too: ticks.h reads a clock for estimates, and terminal.h writes to a terminal.
 *
 * Implementations
 *   linux/    waiting by futex, the heavy fence by membarrier
 *   posix/    waiting by mutex and condition variable, no heavy fence
 *   sim/      the simulator of the tests
 * The build chooses one of them. unix.c, fault.c and cgroup.c hold what linux/ and posix/ share.
 * lock.c and blocking.c serve all three implementations.
 *
 * Unless stated otherwise, any thread may call a function, inside or outside a pool, also while it
 * holds a lock of the library. A function leaves errno unchanged and is not a cancellation point of
 * pthread_cancel().
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
 * The call compares *word with `value` and goes to sleep in one step with respect to a wake-up: if
 * another thread changes *word and then calls a wake function, either the comparison fails or the
 * sleeping thread is woken. The call may return at any time without a wake-up, so the caller checks
 * its condition again. The call implies no memory order.
 *
 * Returns false only if the deadline has passed; *word may have changed then, too. Returns true in
 * all other cases, whether or not *word has changed.
 */
bool fji_plat_wait(uint32_t *word, uint32_t value, int64_t deadline_ns);

/*
 * Wake threads that sleep in fji_plat_wait() on this address: fji_plat_wake_one() at least one of
 * them, if there is one, and fji_plat_wake_all() all of them. The call uses only the address and
 * does not access the memory, so another thread may free the memory before or during the call.
 */
void fji_plat_wake_one(uint32_t *word);
void fji_plat_wake_all(uint32_t *word);

/* ---- Fences -------------------------------------------------------------------------------- */

/*
 * Returns whether the library can use the heavy fence, fji_plat_barrier(): the system has it, and
 * the build does not exclude it (FJI_SYMMETRIC, ThreadSanitizer). The library calls this function
 * when it creates its first pool, and keeps the result. It does not call the function if the
 * environment variable FORKJOIN_FENCES is "symmetric"; then no pool uses the heavy fence.
 */
bool fji_plat_has_barrier(void);

/*
 * The heavy fence. Each other thread of the process that runs either executes a full fence at some
 * moment during the call, or its stores from before the call are visible to the caller when the
 * call returns, as if it had executed such a fence. So the light fence of any other thread acts as
 * a full fence with respect to this call.
 *
 * Returns true after the heavy fence. Returns false if it did nothing, because the platform layer
 * has no heavy fence. After fji_plat_has_barrier() has returned true, only the fault
 * FJI_FAULT_BARRIER makes this function return false. If the system refuses its heavy fence later,
 * for example because the program has installed a seccomp filter, the call waits for 1 ms instead,
 * which in practice has the same effect, and returns true.
 */
bool fji_plat_barrier(void);

/* ---- Threads ------------------------------------------------------------------------------- */

/* Identifies a thread, which can be joined, signalled or detached. */
typedef struct fji_thread {
    uintptr_t handle; /* a pthread_t; on the simulator the id of the simulated thread */
} fji_thread;

/* How a thread is created. */
typedef struct fji_creator {
    /* Size of the thread's stack in bytes. 0: the default of the system, but at least
     * FJI_STACK_MIN. */
    size_t stack_bytes;
    /* NULL, or a callback that creates a joinable thread, which calls entry(arg). The callback
     * returns 0, or another value if it creates no thread. If create_thread is not NULL,
     * stack_bytes is not used. */
    int (*create_thread)(void *(*entry)(void *), void *arg, void *creator_arg);
    void *arg; /* passed to create_thread() as creator_arg */
} fji_creator;

/*
 * Starts a thread that runs main(arg). `how` says how the thread is created. In the new thread
 * cancellation is disabled, and all signals are blocked except those that an error of the thread
 * itself raises, such as SIGSEGV. (A thread that how->create_thread() creates may have another
 * signal mask, because it inherits the mask of the thread that creates it.) On Linux the name of
 * the thread is the first 15 bytes of `name`. Returns false if the thread could not be started;
 * main() is not called then.
 */
bool fji_plat_thread_start(void (*main)(void *), void *arg, const fji_creator *how,
                           const char *name);

/*
 * Binds the calling thread to the CPUs of the affinity mask *cpus, which has `bytes` bytes. Does
 * nothing if the system cannot bind threads or refuses to.
 */
void fji_plat_thread_bind(const void *cpus, size_t bytes);

/* Unblocks the signal in the calling thread. Does nothing if there is no signal with this
 * number. */
void fji_plat_thread_allow(int signal);

/* Sends the signal to the thread t; does nothing on the simulator, which has no signals. The caller
 * ensures that t has not been joined and, if t was detached, that t has not ended. */
void fji_plat_thread_signal(fji_thread t, int signal);

/* Blocks every signal in the calling thread, also those that fji_plat_thread_start() does not
 * block. */
void fji_plat_thread_block_all(void);

/* Returns the calling thread. */
fji_thread fji_plat_thread_self(void);

/* Detaches the thread t: the system frees its resources when it ends. t cannot be joined
 * afterwards. */
void fji_plat_thread_detach(fji_thread t);

/* Waits until the thread t has ended, and frees its resources. It is called once for t, and not by
 * t itself. */
void fji_plat_thread_join(fji_thread t);

/* Yields the CPU of the calling thread to another thread that can run. */
void fji_plat_yield(void);

/* Sets *low to the lowest address of the calling thread's stack and *bytes to its size. Returns
 * false if the system does not report them. */
bool fji_plat_stack(uintptr_t *low, size_t *bytes);

/* Returns a number that is always the same for the calling thread. Threads that exist at the same
 * time usually have different numbers. */
uint32_t fji_plat_thread_hash(void);

/* ---- Time ---------------------------------------------------------------------------------- */

/* Returns the monotonic time, ns. The zero point is arbitrary. */
int64_t fji_plat_now(void);

/* ---- Memory -------------------------------------------------------------------------------- */

/* Allocates `bytes` bytes, zeroed and aligned to FJI_CACHE_PAIR. Returns NULL if there is no
 * memory. The caller frees them with fji_plat_free(). */
void *fji_plat_alloc(size_t bytes);

/* Allocates `bytes` bytes as malloc() does: not zeroed, aligned for any type. For small objects,
 * which malloc() gives faster than fji_plat_alloc() does. Returns NULL if there is no memory. The
 * caller frees them with fji_plat_free(). */
void *fji_plat_alloc_small(size_t bytes);

/* Allocates `bytes` bytes as malloc() does: not zeroed, aligned for any type. A large block may get
 * huge pages, so that its first use needs few page faults. Returns NULL if there is no memory. The
 * caller frees the block with fji_plat_free(). */
void *fji_plat_alloc_scratch(size_t bytes);

/* Frees memory of fji_plat_alloc(), fji_plat_alloc_small() or fji_plat_alloc_scratch(). Does
 * nothing if p is NULL. */
void fji_plat_free(void *p);

/*
 * Reserves a range of `bytes` addresses and returns the lowest. *committed becomes the number of
 * bytes at the front of the range that are already committed, and zero. It is 0, unless the range is
 * one that fji_plat_release() has kept. The other bytes have no memory and must not be accessed
 * before fji_plat_commit(). Returns NULL if the system refuses, or if the address space of the
 * process is limited and `bytes` is more than 1/FJI_RESERVE_PART of the limit.
 */
void *fji_plat_reserve(size_t bytes, size_t *committed);

/*
 * Makes the first `bytes` bytes of the reserved range at `at` accessible memory. *committed is the
 * number of bytes that are committed already; it becomes `bytes` if that is more. Bytes that were
 * already committed keep their contents; the others are zero. Returns false if there is no memory;
 * nothing is changed then.
 */
bool fji_plat_commit(void *at, size_t bytes, size_t *committed);

/*
 * Gives back the reserved range at `at`, with its memory. `bytes` is the size with which it was
 * reserved, and `committed` the number of committed bytes. The range returns to the system, or the
 * platform layer keeps it for a later fji_plat_reserve() of the same size. It keeps at most
 * FJI_RANGES_KEPT ranges with at most FJI_KEPT_PAGES committed pages each, until the process ends or
 * the library is unloaded.
 */
void fji_plat_release(void *at, size_t bytes, size_t committed);

/*
 * Returns the memory of the `bytes` bytes at `at` to the system. They are whole pages, and
 * committed. They stay accessible and are zero afterwards. Other threads may read them during the
 * call. Returns false if nothing was changed.
 */
bool fji_plat_discard(void *at, size_t bytes);

/* Returns the size of a page of memory in bytes, or a multiple of this size. */
size_t fji_plat_page(void);

/* ---- Environment --------------------------------------------------------------------------- */

/*
 * Returns how many CPUs the process may use, at least 1. The number takes into account the CPU
 * limits of control groups, which may be up to FJI_QUOTA_KEEP_NS old, and, in the linux layer, the
 * affinity mask of the calling thread. `root` is put before the paths in /proc and /sys: the library
 * passes "", and only tests pass other strings.
 */
int fji_plat_cpus(const char *root);

/* Returns the value of the environment variable `name`. Returns NULL if it is not set, or if the
 * process has more privileges than its user (set-user-ID). */
const char *fji_plat_env(const char *name);

/*
 * Installs handlers that run around each fork() of the process: prepare() before the fork, parent()
 * after it in the parent process, and child() after it in the child process.
 *
 * The library calls this function often, always with the same handlers. A call does nothing if an
 * earlier call has installed them. If there is no memory to install them, the next call tries
 * again. If two threads make the first call at the same time, each handler may be installed twice,
 * and then runs twice at each fork(). In each fork(), all calls of prepare() come before the calls
 * of the other two.
 */
void fji_plat_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/* Returns a number that identifies the calling process, at least until it has ended. */
int64_t fji_plat_process(void);

/* ---- Events -------------------------------------------------------------------------------- */

/*
 * An event is a file descriptor that a thread can wait for with poll(), epoll or a similar call. It
 * is readable if the event is set. fji_plat_event_set() sets the event, and fji_plat_event_clear()
 * clears it; both do nothing if there is nothing to do, and none of them waits. They imply no memory
 * order. If one thread sets the event, and its call begins after fji_plat_event_clear() has returned
 * in another thread, the event is set afterwards.
 */
typedef struct fji_event {
    int fd;     /* the descriptor that is readable if the event is set */
    int writer; /* posix: the end of the pipe that fji_plat_event_set() writes to; linux: fd */
} fji_event;

/* Opens an event that is not set. Its descriptors are closed when the process calls exec(). Returns
 * false if the system refuses; *e is unchanged then. */
bool fji_plat_event_open(fji_event *e);

void fji_plat_event_set(const fji_event *e);
void fji_plat_event_clear(const fji_event *e);

/* Closes the descriptors of the event. */
void fji_plat_event_close(const fji_event *e);

/* ---- Locks --------------------------------------------------------------------------------- */

/*
 * A lock of two words, which needs no initialisation except to zero and no destruction. A lock
 * whose words are 0 is free.
 *
 * To unlock is a release store, which is the holder's last access to the lock, so that the next
 * holder may free the lock. The holder therefore reads the number of waiters before this store. A
 * thread that begins to wait between that load and the store is not woken. For this reason every
 * wait ends after at most 1 ms, and the waiter tries again. This case is rare, so the lost time is
 * less than that of a locked instruction in each unlock.
 */
typedef struct fji_lock {
    uint32_t word;    /* 0 free, 1 held */
    uint32_t waiters; /* number of threads that sleep on `word`, or are about to */
} fji_lock;

/* Waits for the lock and takes it. A thread that holds the lock must not call this. */
void fji_lock_take(fji_lock *l);

/* Takes the lock if it is free. Returns true if it did, and false if a thread holds the lock. */
bool fji_lock_try(fji_lock *l);

/* Releases the lock. Only the thread that holds the lock calls this function. */
void fji_lock_drop(fji_lock *l);

/* Makes the lock free. Called in the child process after fork(), where the thread that held the
 * lock may not exist, and where no other thread uses the lock. */
void fji_lock_reset(fji_lock *l);

/* ---- Faults (FJI_FAULTS builds) -------------------------------------------------------------- */

/* The kinds of faults that a test can cause. The kinds before FJI_FAULT_WAIT are refusals of the
 * system. FJI_FAULT_WAIT and the kinds after it are events that may happen on any system. A call
 * "of the kind" is a call that the fault can affect; it "fails" if the fault occurs in it. Faults
 * occur only if FJI_FAULTS is 1, or on the simulator, which has only the kinds ALLOC, COMMIT,
 * THREAD, BARRIER and EVENT. */
enum fji_fault {
    /* fji_plat_alloc() and fji_plat_alloc_small() return NULL, and fji_block_alloc() for a future;
     * fji_plat_thread_start() returns false */
    FJI_FAULT_ALLOC,
    FJI_FAULT_COMMIT,     /* fji_plat_commit() and fji_plat_discard() return false */
    FJI_FAULT_THREAD,     /* fji_plat_thread_start() returns false */
    FJI_FAULT_BARRIER,    /* fji_plat_has_barrier() and fji_plat_barrier() return false */
    FJI_FAULT_RESERVE,    /* fji_plat_reserve() returns NULL */
    FJI_FAULT_ATTR,       /* fji_plat_thread_start() gets no memory for the thread's attributes */
    FJI_FAULT_ATFORK,     /* fji_plat_at_fork() installs no handlers */
    FJI_FAULT_AFFINITY,   /* the system refuses to read or to set the affinity mask */
    FJI_FAULT_SYSCONF,    /* sysconf() returns -1 instead of the page size or number of CPUs */
    FJI_FAULT_MEMBARRIER, /* linux: membarrier fails in fji_plat_barrier(), which waits 1 ms */
    FJI_FAULT_EVENT,      /* fji_plat_event_open() returns false */
    FJI_FAULT_WAIT,       /* fji_plat_wait() returns at once, without a wake-up */
    FJI_FAULT_WAIT_LATE,  /* fji_plat_wait() begins to wait 1 ms late */
    FJI_FAULT_WAKE_LATE,  /* a wake function wakes 1 ms late */
    FJI_FAULT_WAKE_MORE,  /* even fji_plat_wake_one() wakes all threads that sleep on the word */
    FJI_FAULT_JUMP,       /* fji_plat_now() jumps forward by an hour */
    FJI_FAULT_STILL,      /* fji_plat_now() stands still for 20 ms */
    FJI_FAULT_N           /* the number of kinds */
};

/*
 * Makes `count` consecutive calls of the kind fail, beginning with the n-th call from now; n == 1
 * is the next call. If `count` is 0, no call fails. Replaces what earlier calls of fji_fault_set()
 * and fji_fault_and() have chosen for this kind, but not what fji_fault_random() has chosen.
 */
void fji_fault_set(enum fji_fault kind, long n, long count);

/* Makes a second group of `count` consecutive calls of the kind fail, beginning with the n-th call
 * from now, in addition to those of fji_fault_set(). A later call of fji_fault_and() for this kind
 * replaces the second group, and a later fji_fault_set() removes it. The simulator does not define
 * this function. */
void fji_fault_and(enum fji_fault kind, long n, long count);

/* Makes about one in `one_in` calls of the kind fail, from now on, chosen by pseudo-random numbers
 * from `seed`. If one_in is 0, no call fails for this reason any more. The simulator does not
 * define this function. */
void fji_fault_random(enum fji_fault kind, uint64_t seed, long one_in);

/* Returns how often fji_fault_now() was called for the kind since the process began, on the
 * simulator since the run began. For JUMP and STILL, calls of fji_plat_now() count only after one
 * of these two faults was set. Returns 0 if FJI_FAULTS is 0, except on the simulator. */
long fji_fault_calls(enum fji_fault kind);

/* Called by the platform layer. Counts a call of the kind, and returns whether this call has to
 * fail. Always returns false if FJI_FAULTS is 0, except on the simulator. */
bool fji_fault_now(enum fji_fault kind);

#endif /* FJI_PLAT_H */
