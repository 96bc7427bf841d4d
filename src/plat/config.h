/* SPDX-License-Identifier: MIT */
/*
 * config.h - every number that could have been another: unit, default, why
 */
#ifndef FJI_CONFIG_H
#define FJI_CONFIG_H

/* Size of a cache line, and of what the prefetcher of x86 fetches with it. */
#define FJI_LINE 64
#define FJI_CACHE_PAIR 128

/* Numbers between #ifndef and #endif can be set by a build: small ones bring the rare paths
 * near, for tests. */

/* Build options, normally set by CMake. */
#ifndef FJI_CHECKED
#define FJI_CHECKED 0 /* 1: the library checks its own invariants; see check.h */
#endif
#ifndef FJI_SYMMETRIC
#define FJI_SYMMETRIC 0 /* 1: no membarrier, whatever the system offers */
#endif
#ifndef FJI_SIM
#define FJI_SIM 0 /* 1: on the simulator, with its platform layer */
#endif
#ifndef FJI_FAULTS
#define FJI_FAULTS 0 /* 1: the platform layer can be told to fail */
#endif
#ifndef FJI_CHAOS
#define FJI_CHAOS 0 /* 1: delays wherever another thread could come in between; see chaos.h */
#endif
#ifndef FJI_WRAP_TEST
#define FJI_WRAP_TEST 0 /* 1: every count begins just before it wraps; docs/design/counters.md */
#endif

/* Where counts begin. */
#if FJI_WRAP_TEST
#define FJI_START_EPOCH 0x3fffffffdull     /* of a queue, 34 bits */
#define FJI_START_VERSION 0x1fffdull       /* of the control word, 17 bits */
#define FJI_START_SLOT(room) ((room)-2)    /* of a submission queue: two before its end */
#define FJI_START_32 0xfffffffdu           /* words that are compared for being the same */
#define FJI_START_64 0xfffffffffffffffdull /* the same, and statistics */
#define FJI_START_FAILURES 0x7ffffffdu     /* numbers of failures, 31 bits */
#define FJI_START_FORKS 0xfffffffeu        /* fork()s of the process; 10 bits of it are kept */
#define FJI_START_CLOCK ((1ll << 56) - 30000000) /* of timers, ns: all but one wheel turn soon */
#else
#define FJI_START_EPOCH 0ull
#define FJI_START_VERSION 0ull
#define FJI_START_SLOT(room) 0u
#define FJI_START_32 0u
#define FJI_START_64 0ull
#define FJI_START_FAILURES 0u
#define FJI_START_FORKS 0u
#endif

/* Cells a worker's queue starts with; it doubles up to the reserved range. Depth of
 * recursion, not number of tasks, decides: 64 is enough for nearly all. */
#ifndef FJI_QUEUE_FIRST
#define FJI_QUEUE_FIRST 64
#endif

/* Cells of address space reserved for one queue: 64 MiB, of which only what is used
 * is ever backed by memory. Beyond it tasks go to a submission queue. */
#ifndef FJI_QUEUE_RESERVED
#define FJI_QUEUE_RESERVED (1u << 20)
#endif

/* The same for a submission queue, whose slots are 32 bytes: 8 GiB, for 268 million tasks. Where so
 * much is refused it is less. */
#ifndef FJI_SUBMISSIONS_FIRST
#define FJI_SUBMISSIONS_FIRST 64
#endif
#ifndef FJI_SUBMISSIONS_RESERVED
#define FJI_SUBMISSIONS_RESERVED (1u << 28)
#endif

/* Of a limited address space (RLIMIT_AS) one range may take this part: 1/64. */
#define FJI_RESERVE_PART 64

/* Cells, and slots, that a queue keeps when it is empty; the memory of the others goes back to the
 * system: 1 and 4 MiB. */
#ifndef FJI_QUEUE_KEPT
#define FJI_QUEUE_KEPT 16384u
#endif
#ifndef FJI_SUBMISSIONS_KEPT
#define FJI_SUBMISSIONS_KEPT 131072u
#endif

/* ACTIONs that a worker takes from a submission queue at once, to put the rest into its own
 * queue: one contended CAS for all of them. submit-1 and submit-2 chose it. */
#define FJI_SUBMISSIONS_BATCH 8

/* Pops without a steal after which an open queue is closed: as many as pay in
 * fences (2 ns) what one opening costs (12 us). Ski rental. */
#ifndef FJI_CLOSE_AFTER
#define FJI_CLOSE_AFTER 4096
#endif

/* Looks at a closed queue before the thief uses the heavy fence: about 1 us. */
#ifndef FJI_SHARE_SPINS
#define FJI_SHARE_SPINS 40
#endif

/* Search for work before sleeping, in ns. A wake-up costs 13 us to 20 us. */
#ifndef FJI_SPIN_NS
#define FJI_SPIN_NS 20000
#endif

/* Pools of at most so many workers wake one for every signal. */
#ifndef FJI_UNTHROTTLED_WORKERS
#define FJI_UNTHROTTLED_WORKERS 8
#endif

/* In larger ones a signal is left to those who search if these are enough: for a worker half as
 * many as work, but between these two numbers, for a thread outside one. With more of them on
 * their way the line of the control word is too hot; docs/scaling.md. */
#ifndef FJI_SEARCH_MIN
#define FJI_SEARCH_MIN 4
#endif
#ifndef FJI_SEARCH_MAX
#define FJI_SEARCH_MAX 16
#endif

/* A search may not take longer, ns: whoever searches is no thread at rest. */
#define FJI_SPIN_MAX_NS 100000000ll

/* Least time between two heavy fences of workers that go idle while others run, ns: each takes
 * 5 us from every core that runs. Those who wait for the next one search on. */
#ifndef FJI_FENCE_GAP_NS
#define FJI_FENCE_GAP_NS 50000
#endif

/* Tasks of its own queue that nobody joins between two looks at the submission queues: as few
 * as keep what is submitted, timers above all, from waiting long behind slow ones. */
#ifndef FJI_SUBMISSION_INTERVAL
#define FJI_SUBMISSION_INTERVAL 8
#endif

/* Idle workers leave after this, ns; and no sooner than the floor. */
#define FJI_KEEP_ALIVE_NS 60000000000ll
#define FJI_KEEP_ALIVE_MIN_NS 20000000ll
/* Once one has left for lack of work, the others wait only this long. */
#define FJI_RETIRE_NEXT_NS 1000000ll

/* Spin of a joiner before it blocks, ns: a stolen task is often nearly done. */
#ifndef FJI_JOIN_SPIN_NS
#define FJI_JOIN_SPIN_NS 20000
#endif

/* Starts in a row ended by on_start after which the next has to wait a while, ns. */
#define FJI_FAILED_STARTS 3
#define FJI_FAILED_WAIT_NS 100000000ll

/* While starts of threads are refused, a worker's first, second, fourth, eighth ... fork asks for
 * one again, and after that every one whose number is a multiple of this. */
#define FJI_SPAWN_RETRY_EVERY 1024

/* Pauses between the tries to have a refused thread started, ns: they double from the first to the
 * last. */
#define FJI_RETRY_MIN_NS 100000ll
#define FJI_RETRY_MAX_NS 100000000ll

/* How often a lock is tried meanwhile, ns. */
#define FJI_RETRY_LOCK_NS 1000000ll

/* A wait that the library does not control is put off, to try again, until this many starts were
 * refused in a row and the first of them is this long ago, ns. */
#define FJI_RETRY_TRIES 16
#define FJI_RETRY_WAIT_NS 1000000000ll

/* Words for waits that may be interrupted: as many as keep strangers from waking each other. */
#define FJI_WAIT_BUCKETS 64

/* Scopes for which a worker has addresses, 16 MiB of them: nested futures. Memory comes as they
 * are used. */
#define FJI_SCOPES_RESERVED (1u << 20)

/* Results of typed tasks run at their fork that can be kept when there is no memory. */
#define FJI_OVERFLOW_RESERVE 512

/* How often whoever waits for a pool looks whether it still has threads, ns. */
#define FJI_THREADLESS_POLL_NS 250000000ll

/* The shortest and the longest pause between two looks whether the common pool can end, ns. */
#define FJI_QUIET_PAUSE_NS 20000ll
#define FJI_QUIET_PAUSE_MAX_NS 5000000ll

/* How often the end of the process tries to take the lock of the common pool, yielding in between. */
#define FJI_EXIT_LOCK_ATTEMPTS 1000

/* Threads beyond the parallelism to stand in for blocked ones. */
#define FJI_SPARES 256

/* Least stack of a worker, bytes. */
#define FJI_STACK_MIN (1u << 20)

/* Workers per chunk of the worker table. */
#define FJI_CHUNK 64

/* Most submission queues of a pool. */
#define FJI_MAX_SUBMISSION_QUEUES 64

#endif /* FJI_CONFIG_H */
