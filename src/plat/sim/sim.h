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
 * A run depends only on the program and on the options, one of which is the seed of the random
 * numbers. The options decide which thread runs next, which of the values that the memory model
 * allows a load returns, whether freed memory is allocated again, which of several sleeping threads
 * is woken, and when the clock jumps. So a failure can be reproduced with the same options.
 *
 * The simulator finds wrong results (the program calls sim_fail()), deadlocks (all threads wait,
 * and none has a deadline), runs without an end (too many steps), data races, uses of memory that
 * is freed or was never allocated, and failed checks of the library (check.h). With the memory
 * model sc it finds no data races, and with the strategy TIMED neither data races nor uses of
 * memory.
 *
 * Memory models
 *   sc    a load returns the last value stored.
 *   tso   as x86-64: a store may become visible to other threads late, but not later than the next
 *         full fence or locked instruction of its thread, or the next heavy fence of any thread.
 *         Loads and stores are otherwise in order.
 *   weak  as C11: a load may return an older value, unless the thread knows that the value was
 *         overwritten (memory.c). One case of C11 is not simulated, load buffering: a load never
 *         returns the value of a store that is executed after it.
 * The heavy fence acts as membarrier: every thread executes a full fence at that moment.
 */
#ifndef FJI_SIM_H
#define FJI_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_model { SIM_SC, SIM_TSO, SIM_WEAK };

/* Which thread runs next. */
enum sim_strategy {
    SIM_RANDOM, /* at random points, a random ready thread */
    /* Probabilistic concurrency testing: the ready thread with the highest priority. A thread
     * starts with a random priority. The running thread gets the lowest priority at a few random
     * steps (sim_options.changes), when it yields, and when it has run for many points. */
    SIM_PCT,
    SIM_TIMED /* the thread whose own clock is furthest behind; cost.c advances the clocks */
};

/* Options of one run. sim_options_of() sets them. "One in n" is a probability of 1/n. With the
 * strategy TIMED a load returns the last value stored in any model, and the options switch_in,
 * changes, freezes, expected, stale_in, jump_in, spurious_in, races and step_ns cause nothing. */
typedef struct sim_options {
    uint64_t seed;
    enum sim_model model;
    enum sim_strategy strategy;
    int switch_in;   /* RANDOM: at one in this many points the simulator chooses a new thread */
    int changes;     /* PCT: number of random steps at which a priority changes; at most 8 */
    int freezes;     /* largest number of times that a thread is stopped for many steps */
    long expected;   /* estimated steps of a run; if 0, `changes` and `freezes` have no effect */
    int stale_in;    /* weak: one in this many loads returns an older value, if allowed; >= 1 */
    int jump_in;     /* at one in this many points the clock jumps to the next deadline; 0: never */
    int spurious_in; /* at one in this many points a thread wakes without reason; 0: never */
    bool heavy_fence; /* result of fji_plat_has_barrier() */
    bool reuse;       /* whether freed memory is allocated again (heap.c) */
    bool races;       /* whether a data race fails the run; not used with the model sc */
    bool trace;       /* whether the steps are printed to stderr */
    long steps;       /* a run with more steps than this fails */
    int step_ns;      /* how far each step advances the clock, ns; not used with TIMED */
    int cpus;         /* result of fji_plat_cpus() */
} sim_options;

typedef struct sim_result {
    bool failed;    /* whether the run has failed, for example by sim_fail() */
    char text[400]; /* if it has failed: why */
    long steps;     /* number of points and waits of all threads */
    long switches;  /* how often the simulator has switched to another thread */
    int threads;    /* number of threads that the run has started, including the first one */
    int64_t time;   /* duration of the run on the simulated clock, ns */
    long blocks;    /* number of blocks of memory that the run did not free */
} sim_result;

/* Sets *o to the options that tests use by default. The seed determines the model, the strategy
 * (RANDOM or PCT), heavy_fence, reuse, and how often the random events occur. The other options
 * have fixed values; `expected` is 0. */
void sim_options_of(uint64_t seed, sim_options *o);

/* Runs main(arg) as the first simulated thread until it returns or the run ends otherwise, and sets
 * *out. Before each run, the static data of the program are restored to their state at the first
 * call of this function. Must not be called inside a run. */
void sim_run(const sim_options *o, void (*main)(void *), void *arg, sim_result *out);

/* Ends the run as failed; the formatted text is stored in the result. Called only inside a run. */
__attribute__((noreturn, format(printf, 1, 2))) void sim_fail(const char *format, ...);

/* Ends the run as passed, even if other threads have not ended. Called only inside a run. */
__attribute__((noreturn)) void sim_end(void);

bool sim_inside(void); /* whether a run is in progress */
int64_t sim_now(void); /* time of the simulated clock, ns; TIMED: of the calling thread's clock */
bool sim_jumps(void);  /* whether the clock may jump, or advance while a thread is frozen */
int sim_self(void);    /* the id of the calling simulated thread */
uint32_t sim_random(void); /* the next pseudo-random number of the run */
void sim_yield(void);      /* lets another thread run */
void sim_work(int64_t ns); /* advances the clock by ns, as if the caller computed for that time */
/* Sleeps until the simulated clock has reached the time ns. Returns false, because its deadline has
 * passed then. */
bool sim_sleep_until(int64_t ns);
/* Waits until the event with this descriptor is set, as poll() does (fji_plat_event_open()). */
void sim_event_await(int fd);
bool sim_event_is_set(int fd);   /* whether the event with this descriptor is set */
void sim_note(const char *text); /* prints a line if the option `trace` is set */

/* How often each operation was executed, by all threads, in the current or last run with the
 * strategy SIM_TIMED. A locked instruction is also counted in `writes`, unless it is a fence.
 * `sleeps` is not counted: it is always 0. */
typedef struct sim_counts {
    uint64_t transfers, reads, writes, locked, barriers, wakes, sleeps, starts;
} sim_counts;
void sim_counted(sim_counts *out);

/* For runs with the strategy SIM_TIMED: returns the number of transfers, so far in this
 * run, of the cache line of address p between processors (cost.c). */
uint64_t sim_transfers_of(const void *p);

#endif /* FJI_SIM_H */
