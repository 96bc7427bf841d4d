/* SPDX-License-Identifier: MIT */
/*
 * soak.h - declarations shared by the files of the soak test
 *
 *   soak.c    rounds of load and rest; the watchdog; the output
 *   load*.c   the loads: what outside threads do with pools
 *   ledger.c  every task has a number; each issued number must be run exactly once
 *   state.c   what must hold at rest: the pools, memory, threads, files, CPU time
 */
#ifndef SOAK_H
#define SOAK_H

#include <forkjoin.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- soak.c --------------------------------------------------------------------------------- */

/* Prints a message and a dump of the pools, and ends the process as failed. */
__attribute__((noreturn, format(printf, 1, 2))) void soak_fail(const char *fmt, ...);

#define SOAK_CHECK(cond)                                                        \
    do {                                                                        \
        if (!(cond)) soak_fail("%s:%d: failed: %s", __FILE__, __LINE__, #cond); \
    } while (0)

/* A pseudo-random number below n, from a generator of this thread. */
uint32_t soak_below(uint32_t n);

int64_t soak_now(void);
void soak_sleep_us(int64_t us);

/* Adds a pool to the dump, or removes it. */
void soak_watch(fj_pool *p);
void soak_unwatch(fj_pool *p);

/* ---- load.c --------------------------------------------------------------------------------- */

/* The pools that exist from the first round to the last. */
#define SOAK_POOLS 6

struct soak_world {
    int workers;
    fj_pool *pool[SOAK_POOLS];
};

extern struct soak_world soak_world;

void soak_world_make(int workers);
void soak_world_end(void);
/* Restores the sizes of pools that loads have changed. */
void soak_world_reset(void);
/* Runs one random load on a random pool. */
void soak_load(void);

/* ---- ledger.c ------------------------------------------------------------------------------- */

/* Returns a number that no other task has. ledger_done() must be called once with it. */
uint64_t ledger_issue(void);
void ledger_done(uint64_t id);

/* ledger_count() returns how many numbers were issued. ledger_balanced() returns whether each of
 * them was done once; if not, it writes the difference to `why`. */
uint64_t ledger_count(void);
bool ledger_balanced(char *why, size_t cap);

/* ---- state.c -------------------------------------------------------------------------------- */

struct soak_state {
    int64_t memory;   /* allocated bytes, without those of threads and of the permanent pools */
    int64_t pools;    /* bytes of the permanent pools */
    int64_t resident; /* bytes */
    int threads, files;
};

/* Call it before the first pool is created: it counts the threads that belong to no pool. */
void state_begin(void);
/* Waits until all pools are at rest, and fails if that takes too long. Idle workers remain. */
void state_settle(void);
/* Waits until the workers with a keep-alive time have exited, and fills in *s. */
void state_look(struct soak_state *s);
/* Sleeps for `us` microseconds. Returns the CPU time of the process divided by the elapsed time. */
double state_idle_cpu(int64_t us);

#endif /* SOAK_H */
