/* SPDX-License-Identifier: MIT */
/*
 * soak.h - what the parts of the soak have in common
 *
 *   soak.c    rounds of load, then rest; the watchdog; what is printed
 *   load*.c   the loads: what threads from outside do with pools
 *   ledger.c  every task has a number: what was given out must have been run, once
 *   state.c   what must hold at rest: the pools, memory, threads, files, CPU
 */
#ifndef SOAK_H
#define SOAK_H

#include <forkjoin.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- soak.c --------------------------------------------------------------------------------- */

/* Ends the process as failed, with a dump of the pools. */
__attribute__((noreturn, format(printf, 1, 2))) void soak_fail(const char *fmt, ...);

#define SOAK_CHECK(cond)                                                        \
    do {                                                                        \
        if (!(cond)) soak_fail("%s:%d: failed: %s", __FILE__, __LINE__, #cond); \
    } while (0)

/* A pseudo-random number below n, of this thread's own. */
uint32_t soak_below(uint32_t n);

int64_t soak_now(void);
void soak_sleep_us(int64_t us);

/* The dump shows these too, while they are there. */
void soak_watch(fj_pool *p);
void soak_unwatch(fj_pool *p);

/* ---- load.c --------------------------------------------------------------------------------- */

/* The pools that stay, from the first round to the last. */
#define SOAK_POOLS 6

struct soak_world {
    int workers;
    fj_pool *pool[SOAK_POOLS];
};

extern struct soak_world soak_world;

void soak_world_make(int workers);
void soak_world_end(void);
/* Sizes that the loads have changed are as they were. */
void soak_world_reset(void);
/* One load, chosen by chance, on a pool chosen by chance. */
void soak_load(void);

/* ---- ledger.c ------------------------------------------------------------------------------- */

/* A number that no other task has; it is to be done, once. */
uint64_t ledger_issue(void);
void ledger_done(uint64_t id);

/* How many were issued; everything that was issued is done. */
uint64_t ledger_count(void);
bool ledger_balanced(char *why, size_t cap);

/* ---- state.c -------------------------------------------------------------------------------- */

struct soak_state {
    int64_t memory;   /* allocated, bytes, without threads and what the pools that stay have */
    int64_t pools;    /* what these have */
    int64_t resident; /* bytes */
    int threads, files;
};

/* Before the first pool: all threads that are there are the program's own. */
void state_begin(void);
/* Waits until nothing moves any more; fails if that takes too long. Idle workers are there. */
void state_settle(void);
/* Waits until those workers have left that are not meant to stay, and looks. */
void state_look(struct soak_state *s);
/* CPU time of the process over wall time, while it sleeps so long. */
double state_idle_cpu(int64_t us);

#endif /* SOAK_H */
