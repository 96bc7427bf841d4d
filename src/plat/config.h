/* SPDX-License-Identifier: MIT */
/*
 * config.h - build options and tunables
 *
 * Every number of the library that could have another value: its unit, its default and the reason
 * for the default. A number between #ifndef and #endif can be set by a build. Test builds make such
 * numbers small, so that rare paths are taken often.
 */
#ifndef FJI_CONFIG_H
#define FJI_CONFIG_H

/* ---- Build options --------------------------------------------------------------------------- */

/* Each is 0 or 1. CMake sets them from the FORKJOIN_ option in parentheses. */

/* 1: the library checks its own invariants while it runs; see check.h. (FORKJOIN_CHECKED) */
#ifndef FJI_CHECKED
#define FJI_CHECKED 0
#endif

/* 1: the library uses full fences only, even if the system has membarrier. (FORKJOIN_SYMMETRIC) */
#ifndef FJI_SYMMETRIC
#define FJI_SYMMETRIC 0
#endif

/* 1: tests can make functions of the platform layer fail; see plat.h. (FORKJOIN_FAULTS) */
#ifndef FJI_FAULTS
#define FJI_FAULTS 0
#endif

/* 1: random delays wherever another thread could run in between; see chaos.h. (FORKJOIN_CHAOS) */
#ifndef FJI_CHAOS
#define FJI_CHAOS 0
#endif

/* 1: every counter starts just before it wraps; see docs/design/counters.md. (FORKJOIN_AGED) */
#ifndef FJI_WRAP_TEST
#define FJI_WRAP_TEST 0
#endif

/* 1: the library runs on the simulator; see sim/sim.h. Set by test/sim/simbuild.py, not by
 * CMake. */
#ifndef FJI_SIM
#define FJI_SIM 0
#endif

/* ---- Start values of counters ---------------------------------------------------------------- */

/*
 * EPOCH      the epoch of a queue, 34 bits
 * VERSION    the version of the control word, 17 bits
 * SLOT(n)    the first slot used in a submission queue that starts with n slots
 * 32         32-bit words that are compared for equality
 * 64         64-bit words that are compared for equality, and statistics
 * FAILURES   the numbers of failures in future.c, 31 bits
 * FORKS      the fork generation; tasks keep 10 bits of it
 * CLOCK      the clock of the timers, ns; only if FJI_WRAP_TEST is 1. After 30 ms it reaches 2^56
 *            ns, where all wheels but the highest turn.
 */
#if FJI_WRAP_TEST
#define FJI_START_EPOCH 0x3fffffffdull
#define FJI_START_VERSION 0x1fffdull
#define FJI_START_SLOT(n) ((n)-2)
#define FJI_START_32 0xfffffffdu
#define FJI_START_64 0xfffffffffffffffdull
#define FJI_START_FAILURES 0x7ffffffdu
#define FJI_START_FORKS 0xfffffffeu
#define FJI_START_CLOCK ((1ll << 56) - 30000000)
#else
#define FJI_START_EPOCH 0ull
#define FJI_START_VERSION 0ull
#define FJI_START_SLOT(n) 0u
#define FJI_START_32 0u
#define FJI_START_64 0ull
#define FJI_START_FAILURES 0u
#define FJI_START_FORKS 0u
#endif

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Size of a cache line, bytes. */
#define FJI_LINE 64

/* Distance between words that different threads write, bytes: two cache lines, because the
 * prefetcher of x86 fetches lines in pairs. */
#define FJI_CACHE_PAIR 128

/* Cells that a worker's queue starts with. The queue doubles when it is full. The depth of the
 * recursion decides how many cells are used, not the number of tasks: 64 suffice for nearly all
 * programs. */
#ifndef FJI_QUEUE_FIRST
#define FJI_QUEUE_FIRST 64
#endif

/* Cells for which a queue reserves addresses: 64 MiB. Only the cells that are used get memory. If
 * all are in use, a forked task goes to a submission queue. */
#ifndef FJI_QUEUE_RESERVED
#define FJI_QUEUE_RESERVED (1u << 20)
#endif

/* Slots that a submission queue starts with. It doubles when it is full. */
#ifndef FJI_SUBMISSIONS_FIRST
#define FJI_SUBMISSIONS_FIRST 64
#endif

/* Slots for which a submission queue reserves addresses: 8 GiB at 32 bytes for each of 268 million
 * tasks. If the system refuses that, the queue reserves less. */
#ifndef FJI_SUBMISSIONS_RESERVED
#define FJI_SUBMISSIONS_RESERVED (1u << 28)
#endif

/* If the address space of the process is limited (RLIMIT_AS), one reserved range may take at most
 * 1/64 of the limit, because the program needs the rest. */
#define FJI_RESERVE_PART 64

/* Cells whose memory an empty queue keeps: 1 MiB. The memory of further cells is returned to the
 * system. */
#ifndef FJI_QUEUE_KEPT
#define FJI_QUEUE_KEPT 16384u
#endif

/* Slots whose memory an empty submission queue keeps: 4 MiB. */
#ifndef FJI_SUBMISSIONS_KEPT
#define FJI_SUBMISSIONS_KEPT 131072u
#endif

/* Scopes for which a worker reserves addresses: 16 MiB. A worker uses one scope for each nested
 * body of a future. Only the scopes that are used get memory. */
#define FJI_SCOPES_RESERVED (1u << 20)

/* Overflow cells that all threads share for the results of typed tasks that ran at their fork, for
 * the case that no memory can be allocated for such a cell. They take no memory until then. */
#define FJI_OVERFLOW_RESERVE 512

/* Least stack of a worker, bytes: 1 MiB. Used if the default of the system is smaller and the
 * options of the pool set no size. */
#define FJI_STACK_MIN (1u << 20)

/* Workers in one chunk of a pool's worker table. Chunks are allocated when they are needed. */
#define FJI_CHUNK 64

/* Most submission queues of a pool. A pool has at least 2, and otherwise the power of two that is
 * not less than its parallelism. */
#define FJI_MAX_SUBMISSION_QUEUES 64

/* ---- Queues ---------------------------------------------------------------------------------- */

/* Actions that a worker takes from a submission queue at once; it puts all but the first into its
 * own queue. One contended CAS then serves 8 actions. The benchmarks submit-1 and submit-2 chose
 * the number. */
#define FJI_SUBMISSIONS_BATCH 8

/* Pops without a steal after which the owner closes an open queue. 4096 pops pay in fences (2 ns
 * each) about what one opening costs (12 us), so the owner pays at most twice the optimum. */
#ifndef FJI_CLOSE_AFTER
#define FJI_CLOSE_AFTER 4096
#endif

/* Times that a thief checks whether the owner has opened its closed queue, before the thief opens
 * it itself with the heavy fence. 40 checks take about 1 us. */
#ifndef FJI_SHARE_SPINS
#define FJI_SHARE_SPINS 40
#endif

/* Tasks that a worker takes from its own queue between two checks of the submission queues. The
 * number is small, so that submitted tasks, and above all timers, do not wait long behind slow
 * tasks. */
#ifndef FJI_SUBMISSION_INTERVAL
#define FJI_SUBMISSION_INTERVAL 8
#endif

/* ---- Searching and sleeping ------------------------------------------------------------------ */

/* Time that a worker searches for a task before it sleeps, ns: 20 us, because a wake-up costs 13 to
 * 20 us. */
#ifndef FJI_SPIN_NS
#define FJI_SPIN_NS 20000
#endif

/* Longest time that the options of a pool may set for this, ns: 100 ms. A worker that searches uses
 * a core and does not count as idle. */
#define FJI_SPIN_MAX_NS 100000000ll

/* Parallelism up to which every wake-up wakes a worker. In larger pools a wake-up needs a searching
 * slot. */
#ifndef FJI_UNTHROTTLED_WORKERS
#define FJI_UNTHROTTLED_WORKERS 8
#endif

/* Bounds of the number of searching slots in larger pools. A worker that wants to wake another one
 * allows half as many slots as workers are active, but at least LEAST and at most MOST. A thread
 * outside the pool allows 1. With more searching workers the cache line of the control word becomes
 * a bottleneck; see docs/scaling.md. */
#ifndef FJI_SEARCH_MIN
#define FJI_SEARCH_MIN 4
#endif
#ifndef FJI_SEARCH_MAX
#define FJI_SEARCH_MAX 16
#endif

/* Least time between two heavy fences of workers that go idle while other workers run, ns: 50 us,
 * because each fence takes 5 us from every running core. A worker that has to wait for the next
 * fence searches meanwhile. */
#ifndef FJI_FENCE_GAP_NS
#define FJI_FENCE_GAP_NS 50000
#endif

/* Time after which an idle worker may retire, ns: 60 s, unless the options of the pool say
 * otherwise. */
#define FJI_KEEP_ALIVE_NS 60000000000ll

/* Shortest time that the options may set for this, ns: 20 ms. */
#define FJI_KEEP_ALIVE_MIN_NS 20000000ll

/* After one worker has retired, and until a worker is woken, the next idle worker retires after
 * this time, ns: 1 ms. */
#define FJI_RETIRE_NEXT_NS 1000000ll

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Time that a joiner spins before it blocks, ns: 20 us, because a stolen task is often nearly done
 * when its joiner arrives. */
#ifndef FJI_JOIN_SPIN_NS
#define FJI_JOIN_SPIN_NS 20000
#endif

/* Wait buckets: words on which interruptible waits sleep. With 64 of them, two waits for different
 * futures rarely share one and wake each other. */
#define FJI_WAIT_BUCKETS 64

/* Time between two checks of a waiting thread whether the pool that it waits for still has threads,
 * ns: 250 ms. */
#define FJI_THREADLESS_POLL_NS 250000000ll

/* Shortest and longest pause between two checks whether the common pool can end, ns: 20 us and
 * about 5 ms. The pause doubles from one check to the next. */
#define FJI_QUIET_PAUSE_NS 20000ll
#define FJI_QUIET_PAUSE_MAX_NS 5000000ll

/* Times that the exiting process tries to take the lock of the common pool, with a yield after each
 * attempt. The attempts are bounded, because the exiting thread may itself hold the lock. */
#define FJI_EXIT_LOCK_ATTEMPTS 1000

/* ---- Threads --------------------------------------------------------------------------------- */

/* Default of max_threads, beyond the parallelism: the threads that can run in place of blocked
 * workers. */
#define FJI_SPARES 256

/* If on_start ends this many starts in a row, the next start waits for FAILED_WAIT_NS, ns: 100 ms,
 * so that the pool does not start threads without end. */
#define FJI_FAILED_STARTS 3
#define FJI_FAILED_WAIT_NS 100000000ll

/* While the system refuses threads, a worker asks for one at its first, second, fourth, eighth ...
 * fork, and at every fork whose number is a multiple of this. Each attempt is a system call, and
 * the joiner runs the task in any case. */
#define FJI_SPAWN_RETRY_EVERY 1024

/* Pauses between two attempts of a waiting thread to start a refused thread, ns: they double from
 * 0.1 ms to 100 ms. */
#define FJI_RETRY_MIN_NS 100000ll
#define FJI_RETRY_MAX_NS 100000000ll

/* Time between two attempts to lock a mutex, or to decrement a semaphore, by a worker that also
 * asks for a refused thread, ns: 1 ms. */
#define FJI_RETRY_LOCK_NS 1000000ll

/* A worker that asks for a refused thread delays a wait that the library does not control. It stops
 * delaying when this many starts were refused in a row and the first refusal is RETRY_WAIT_NS ago,
 * ns: 1 s. */
#define FJI_RETRY_TRIES 16
#define FJI_RETRY_WAIT_NS 1000000000ll

#endif /* FJI_CONFIG_H */
