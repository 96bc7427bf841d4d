/* SPDX-License-Identifier: MIT */
/*
 * sim.h - the simulator: runs the library and its tests one step at a time, under control of a seed
 *
 * The platform layer `sim` runs the unchanged sources of the library, and the programs that use it,
 * as coroutines on one thread of the system. The sources are compiled with -fsanitize=thread, so
 * that the compiler reports every access to memory; hooks.c receives these reports. Every atomic
 * access, fence, wait, wake, thread start and read of the clock is a point at which another thread
 * may run.
 *
 * A run is a pure function of its seed. The seed decides which thread runs next, which of the
 * values that the memory model allows a load returns, whether an address is used again, which
 * sleeper is woken, and when the clock jumps. A failure prints its seed, and the same seed
 * reproduces it.
 *
 * The simulator finds wrong results (the program calls sim_fail()), deadlocks (no thread can run,
 * and no deadline makes one ready), runs without an end, data races, uses of memory that is freed
 * or was never allocated, and failed checks of the library (check.h).
 *
 * Memory models
 *   sc    a load returns the last value stored.
 *   tso   as x86-64: other threads may not see a store until its thread executes a fence or a
 *         locked instruction. Loads and stores are otherwise in order.
 *   weak  as C11: a load may return any value that its thread does not know to be overwritten. Only
 *         load buffering is left out, where a load returns the value of a store that comes later.
 * The heavy fence acts as membarrier: every thread executes a full fence at that moment.
 */
#ifndef FJI_SIM_H
#define FJI_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_model { SIM_SC, SIM_TSO, SIM_WEAK };

enum sim_strategy {
    SIM_RANDOM, /* at some points, a thread chosen at random */
    SIM_PCT,    /* the thread with the highest priority, with changes of priority at random steps */
    SIM_TIMED   /* the thread whose own clock is furthest behind, with the costs of cost.c */
};

/* Options of one run. sim_options_of() derives all of them from a seed. */
typedef struct sim_options {
    uint64_t seed;
    enum sim_model model;
    enum sim_strategy strategy;
    int switch_in;   /* RANDOM: another thread may run at one in this many points */
    int changes;     /* PCT: number of changes of priority */
    int freezes;     /* times that a thread is stopped for long, as if its core was taken away */
    long expected;   /* estimated steps of a run; 0 if unknown: then no changes and freezes */
    int stale_in;    /* one in this many loads returns an older value, if one is allowed */
    int jump_in;     /* at one in this many points the clock jumps to the next deadline; 0: never */
    int spurious_in; /* at one in this many points a sleeper wakes without a reason; 0: never */
    bool heavy_fence; /* result of fji_plat_has_barrier() */
    bool reuse;       /* freed memory is allocated again at once; otherwise never */
    bool races;       /* find data races */
    bool trace;       /* print every step */
    long steps;       /* a run with more steps fails as one without an end */
    int step_ns;      /* time of one step on the clock */
    int cpus;         /* result of fji_plat_cpus() */
} sim_options;

typedef struct sim_result {
    bool failed;
    char text[400];
    long steps;
    long switches;
    int threads;  /* threads that were started */
    int64_t time; /* duration on the virtual clock, ns */
    long blocks;  /* blocks of memory that were not freed */
} sim_result;

/* Sets *o to the default mix: every option is drawn from the seed. */
void sim_options_of(uint64_t seed, sim_options *o);

/* Makes one run of main(arg). The data of the program are restored to their state at the first call
 * of this function before each run. Not from inside a run. */
void sim_run(const sim_options *o, void (*main)(void *), void *arg, sim_result *out);

/* Ends the run as failed, with a text. Only from inside a run. */
__attribute__((noreturn, format(printf, 1, 2))) void sim_fail(const char *format, ...);

/* Ends the run as passed, also if other threads still run. Only from inside a run. */
__attribute__((noreturn)) void sim_end(void);

bool sim_inside(void);     /* whether a run is in progress */
int64_t sim_now(void);     /* the virtual clock, ns */
bool sim_jumps(void);      /* whether the clock may be far ahead of the work that was done */
int sim_self(void);        /* number of the calling thread */
uint32_t sim_random(void); /* a random number that depends on the seed */
void sim_yield(void);      /* lets another thread run */
void sim_work(int64_t ns); /* the calling thread computes for this time */
bool sim_sleep_until(int64_t ns);
void sim_note(const char *text); /* prints a line in the trace */

/* What the TIMED strategy has counted, for all threads. */
typedef struct sim_counts {
    uint64_t transfers, reads, writes, locked, barriers, wakes, sleeps, starts;
} sim_counts;
void sim_counted(sim_counts *out);

/* Returns the transfers of the cache line of this address so far, TIMED only. */
uint64_t sim_transfers_of(const void *p);

#endif /* FJI_SIM_H */
