/* SPDX-License-Identifier: MIT */
/*
 * sim.h - the simulator: the library and its users on virtual CPUs, one step at a time
 *
 * The platform layer `sim` runs the unchanged sources of the library, and the programs that
 * use it, as coroutines on one thread of the system. The compiler is asked to report every
 * access to memory (-fsanitize=thread, whose calls hooks.c answers in place of the
 * sanitizer's own runtime), so the simulator sees them all: every atomic access, fence, wait,
 * wake, thread and look at the clock is a point at which another thread may go on.
 *
 * A run is a pure function of its seed: which thread goes on, which of the values that the
 * memory model allows a load returns, whether an address is used again, which sleeper is woken,
 * when the clock jumps. A failure names the seed, and the seed brings it back.
 *
 * What is looked for: wrong results (the program says so by sim_fail()), a deadlock (nobody can
 * go on and the clock brings nobody back), a run without end, a data race, the use of memory that
 * was freed or never given out, and whatever the library's own checks say.
 *
 * Memory models
 *   sc    every load returns the last value stored
 *   tso   as x86-64: a store may stay unseen until its thread passes a fence or a locked
 *         instruction; loads and stores are otherwise in order
 *   weak  as C11 says: a load may return any value that its thread does not know to be
 *         overwritten. Only load buffering (a load that sees a later store) is left out.
 * The heavy fence is what membarrier is: at that moment every thread passes a full fence.
 */
#ifndef FJI_SIM_H
#define FJI_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_model { SIM_SC, SIM_TSO, SIM_WEAK };

enum sim_strategy {
    SIM_RANDOM, /* at each point, now and then, anybody */
    SIM_PCT,    /* by priority, with a few changes of it at random steps */
    SIM_TIMED   /* whoever is furthest behind on a clock of its own, by the costs of cost.c */
};

/* How one run is made. All of it follows from the seed unless sim_options_of() is not used. */
typedef struct sim_options {
    uint64_t seed;
    enum sim_model model;
    enum sim_strategy strategy;
    int switch_in;    /* RANDOM: one in so many points lets somebody else go on */
    int changes;      /* PCT: changes of priority */
    int freezes;      /* times that a thread is held up for long, as when its core is taken away */
    long expected;    /* steps of a run, about; 0: not known, no changes and freezes */
    int stale_in;     /* one in so many loads returns an older value, where one is allowed */
    int jump_in;      /* one in so many points the clock jumps to the next limit; 0: never */
    int spurious_in;  /* one in so many points a sleeper wakes without a reason; 0: never */
    bool heavy_fence; /* fji_plat_has_barrier() */
    bool reuse;       /* freed memory is given out again at once, else never */
    bool races;       /* look for data races */
    bool trace;       /* print every step */
    long steps;       /* a run that has not ended then has no end */
    int step_ns;      /* that one step takes on the clock */
    int cpus;         /* that the machine has */
} sim_options;

typedef struct sim_result {
    bool failed;
    char text[400];
    long steps;
    long switches;
    int threads;  /* that there were */
    int64_t time; /* on the virtual clock */
    long blocks;  /* of memory not freed */
} sim_result;

/* The mix that is used where nothing else is wanted: everything is drawn from the seed. */
void sim_options_of(uint64_t seed, sim_options *o);

/* One run of main(arg) from the state in which the program was at the first call. */
void sim_run(const sim_options *o, void (*main)(void *), void *arg, sim_result *out);

/* From inside: the run has failed. */
__attribute__((noreturn, format(printf, 1, 2))) void sim_fail(const char *format, ...);

/* From inside: ends the run well, whatever others do. */
__attribute__((noreturn)) void sim_end(void);

bool sim_inside(void);     /* whether a run is on */
int64_t sim_now(void);     /* the virtual clock */
bool sim_jumps(void);      /* whether it may be far ahead of what was done */
int sim_self(void);        /* the calling thread */
uint32_t sim_random(void); /* drawn from the seed */
void sim_yield(void);      /* lets others go on */
void sim_work(int64_t ns); /* the calling thread computes for so long */
bool sim_sleep_until(int64_t ns);
void sim_note(const char *text); /* into the trace */

/* What the TIMED strategy has counted, all threads. */
typedef struct sim_counts {
    uint64_t transfers, reads, writes, locked, barriers, wakes, sleeps, starts;
} sim_counts;
void sim_counted(sim_counts *out);

/* Traffic of one line, TIMED: transfers of the line of this address so far. */
uint64_t sim_transfers_of(const void *p);

#endif /* FJI_SIM_H */
