/* SPDX-License-Identifier: MIT */
/*
 * config.h - every number that could have been another: unit, default, why
 */
#ifndef FJI_CONFIG_H
#define FJI_CONFIG_H

/* Size of a cache line, and of what the prefetcher of x86 fetches with it. */
#define FJI_LINE 64
#define FJI_APART 128

/* Build options, normally set by CMake. */
#ifndef FJI_CHECKED
#define FJI_CHECKED 0 /* 1: misuse is looked for on the fast paths' slow ends too */
#endif
#ifndef FJI_SYMMETRIC
#define FJI_SYMMETRIC 0 /* 1: no membarrier, whatever the system offers */
#endif
#ifndef FJI_FAULTS
#define FJI_FAULTS 0 /* 1: the platform layer can be told to fail */
#endif

/* Cells a worker's queue starts with; it doubles up to the reserved range. Depth of
 * recursion, not number of tasks, decides: 64 is enough for nearly all. */
#define FJI_QUEUE_FIRST 64

/* Cells of address space reserved for one queue: 64 MiB, of which only what is used
 * is ever backed by memory. Beyond it a fork runs its task at once. */
#define FJI_QUEUE_RESERVED (1u << 20)

/* The same for a submission queue, whose slots are 32 bytes: 128 MiB. */
#define FJI_SUBQ_FIRST 64
#define FJI_SUBQ_RESERVED (1u << 22)

/* ACTIONs that a worker takes from a submission queue at once, to put the rest into its own
 * queue: one contended CAS for all of them. submit-1 and submit-2 chose it. */
#define FJI_SUBQ_BATCH 8

/* Pops without a steal after which an open queue is closed: as many as pay in
 * fences (2 ns) what one opening costs (12 us). Ski rental. */
#define FJI_CLOSE_AFTER 4096

/* Looks at a closed queue before the thief uses the heavy fence: about 1 us. */
#define FJI_OPEN_PATIENCE 40

/* Search for work before sleeping, in ns. A wake-up costs 13 us to 20 us. */
#define FJI_SPIN_NS 20000

/* Tasks of its own queue that nobody joins between two looks at the submission queues: as few
 * as keep what is submitted, timers above all, from waiting long behind slow ones. */
#define FJI_FAIRNESS 8

/* Idle workers leave after this, ns; and no sooner than the floor. */
#define FJI_KEEP_ALIVE_NS 60000000000ll
#define FJI_KEEP_ALIVE_MIN_NS 20000000ll
/* Once one has left for lack of work, the others wait only this long. */
#define FJI_TRIM_NEXT_NS 1000000ll

/* Spin of a joiner before it blocks, ns: a stolen task is often nearly done. */
#define FJI_JOIN_SPIN_NS 20000

/* Starts in a row ended by on_start after which the next has to wait a while, ns. */
#define FJI_FAILED_STARTS 3
#define FJI_FAILED_WAIT_NS 100000000ll

/* Forks for one that asks for a thread, while the system has none to give. */
#define FJI_ASK_AGAIN 1024

/* Words for waits that may be interrupted: as many as keep strangers from waking each other. */
#define FJI_LOTS 64

/* Scopes that a worker has room for at first; deeper nesting of futures doubles it. */
#define FJI_SCOPES_FIRST 16

/* Results of typed tasks run at their fork that can be kept when there is no memory. */
#define FJI_SPILL_RESERVE 512

/* How often whoever waits for a pool looks whether it still has threads, ns. */
#define FJI_STRANDED_NS 250000000ll

/* Threads beyond the parallelism to stand in for blocked ones. */
#define FJI_SPARES 256

/* Least stack of a worker, bytes. */
#define FJI_STACK_MIN (1u << 20)

/* Workers per chunk of the worker table. */
#define FJI_CHUNK 64

/* Most submission queues of a pool. */
#define FJI_SUBQ_MAX 64

#endif /* FJI_CONFIG_H */
