/* SPDX-License-Identifier: MIT */
/*
 * program.h - random programs, checked against a serial oracle
 *
 * A program is decoded from a string of bytes. Any bytes make a legal program that ends, and a
 * short string makes a small one. A program uses one or two pools, one to three outside threads,
 * and a tree of nodes. A node has a number, a code that its body returns, children, and an
 * operation: the way in which its body runs the children. The operations cover all ways that the
 * library has.
 *
 * The oracle walks the same tree without a pool. The thread that waits for a node checks the result
 * against the oracle, and all nodes are checked again at the end:
 *
 *   - how often the body ran: once; or at most once, if it may have been cancelled; or never, if it
 *     was refused, taken back, or cancelled before it was queued;
 *   - its code; or, if several outcomes are possible, that it is one of them, and the one that the
 *     successful completing or cancelling call set;
 *   - its value, which is computed from its number and the values of its children, in their order.
 *
 * Bytes
 *     0     bits 0-1 workers (1, 2, 3, 8), 2 FIFO, 3 callers help, 4 full fences, 5 no spare
 *           threads, 6 the second pool is the common one, 7 pools that only this program uses
 *     1     bits 0-1 what nodes do besides running their children (enum fjp_mode), 2-3 how the
 *           first pool ends meanwhile (1 shutdown, 2 shutdown_now, else not), 4-5 outside threads
 *           (1, 1, 2, 3), 6-7 when the pool ends
 *     then the nodes, depth first, each: operation, and unless that is 0 (a leaf): children and
 *     code, argument. Missing bytes are 0.
 *
 * With FJP_FAULTS three bytes come first: which call of the platform fails, the number of the first
 * call that fails, and how many calls fail.
 */
#ifndef FJP_PROGRAM_H
#define FJP_PROGRAM_H

#include <forkjoin.h>
#include <stddef.h>
#include <stdint.h>

#define FJP_FAULTS 1u /* the first bytes select the fault */
#define FJP_SHOW 2u   /* prints the program first */
#define FJP_MOST_BYTES 256

/* Runs the program and returns how many bodies were run. Reports errors with fjp_fail(). */
long fjp_run(const uint8_t *bytes, size_t n, unsigned flags);

/* Ends the pools that programs have kept for later programs. */
void fjp_finish(void);

/* The host provides these: a watchdog that dumps pools, and fjp_fail(), which ends the process. */
void fjp_watch(fj_pool *pool);
void fjp_unwatch(fj_pool *pool);
__attribute__((noreturn, format(printf, 3, 4))) void fjp_fail(const char *file, int line,
                                                              const char *fmt, ...);

#endif /* FJP_PROGRAM_H */
