/* SPDX-License-Identifier: MIT */
/*
 * tally.h - a sum to which all threads add
 *
 * The tasks of group-fib and each-uts return nothing. They count with this tally, in which each
 * thread has a line of its own. The sum is read while no task runs.
 */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <stdint.h>

enum { BENCH_TALLY_THREADS = 256, BENCH_TALLY_STEP = 16 };

static uint64_t bench_tally_lines[BENCH_TALLY_THREADS * BENCH_TALLY_STEP];
static uint32_t bench_tally_used;
static __thread uint64_t *bench_tally_mine;

static inline void bench_tally_add(uint64_t n)
{
    if (bench_tally_mine == 0) {
        uint32_t i = __atomic_fetch_add(&bench_tally_used, 1, __ATOMIC_RELAXED);
        bench_tally_mine = &bench_tally_lines[i % BENCH_TALLY_THREADS * BENCH_TALLY_STEP];
    }
    *bench_tally_mine += n;
}

/* Returns the sum, and sets it to 0. */
static inline uint64_t bench_tally_take(void)
{
    uint64_t total = 0;

    for (int i = 0; i < BENCH_TALLY_THREADS; i++) {
        total += bench_tally_lines[i * BENCH_TALLY_STEP];
        bench_tally_lines[i * BENCH_TALLY_STEP] = 0;
    }
    return total;
}

#endif
