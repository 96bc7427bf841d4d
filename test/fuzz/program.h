/* SPDX-License-Identifier: MIT */
/*
 * program.h - random programs against a serial oracle
 *
 * A program is decoded from a string of bytes; any bytes make a legal one that ends, and a short
 * string makes a small one. It uses one or two pools, one to three threads from outside, and a
 * tree of nodes. A node has a number, a code that its body returns, children, and an operation:
 * the way in which its body has the children run, which is any that the library has.
 *
 * The oracle walks the same tree without a pool. What it knows of a node is checked where the
 * node is waited for, and once more for all nodes at the end:
 *
 *   - how often the body ran: once; or at most once, where somebody may have cancelled it; or
 *     never, where it was refused, taken back, or cancelled before it was queued;
 *   - its code, or, where several outcomes are possible, that it is one of them and the one that
 *     the calls which decided it have said;
 *   - its value, which comes of its number and the values of its children, in their order.
 *
 * Bytes
 *     0     bits 0-1 workers (1, 2, 3, 8), 2 FIFO, 3 callers help, 4 full fences, 5 no spare
 *           threads, 6 the second pool is the common one, 7 pools of its own, gone at the end
 *     1     bits 0-1 what nodes may do beside their children (enum fjp_mode), 2-3 how the first
 *           pool ends meanwhile (1 shutdown, 2 shutdown_now, else not), 4-5 threads from outside
 *           (1, 1, 2, 3), 6-7 when it ends
 *     then the nodes, depth first, each: operation, and unless that is 0 (a leaf): children and
 *     code, argument. What is missing is 0.
 *
 * With FJP_FAULTS three bytes come first: which call of the platform fails, from the how manieth
 * on, how often.
 */
#ifndef FJP_PROGRAM_H
#define FJP_PROGRAM_H

#include <forkjoin.h>
#include <stddef.h>
#include <stdint.h>

#define FJP_FAULTS 1u /* the first bytes say what fails */
#define FJP_SHOW 2u   /* prints the program first */
#define FJP_MOST_BYTES 256

/* Runs the program; returns how many bodies were run. What is wrong goes to fjp_fail(). */
long fjp_run(const uint8_t *bytes, size_t n, unsigned flags);

/* Ends the pools that programs have left for the next ones. */
void fjp_finish(void);

/* What the host provides: a watchdog that dumps pools, and the end of a failure. */
void fjp_watch(fj_pool *pool);
void fjp_unwatch(fj_pool *pool);
__attribute__((noreturn, format(printf, 3, 4))) void fjp_fail(const char *file, int line,
                                                              const char *fmt, ...);

#endif /* FJP_PROGRAM_H */
