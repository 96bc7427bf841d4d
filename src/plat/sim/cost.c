/* SPDX-License-Identifier: MIT */
/*
 * cost.c - the cost of each operation, for the TIMED strategy
 *
 * Every thread has its own processor and its own clock. A cache line is in the caches of some
 * processors. A write removes it from all caches except the writer's, and the writer then has it
 * exclusively, until another processor reads or writes the line. Every access costs
 * COST_ACCESS_PS. In addition, two kinds of accesses need a transfer of the line: a write to a line
 * that is in the cache of another processor, and a read of a line that another processor has
 * exclusively. A transfer begins when the previous transfer of the line has ended. So accesses to a
 * line that many threads write wait for each other. A wake, the start of a thread and the heavy
 * fence cost the times that were measured on a real machine.
 */
#include <string.h>

#include "engine.h"

#define S sim_engine
#define COST_TABLE (1u << 19)
#define COST_WORDS (SIM_THREADS / 64)

/* Times in ns; a name that ends with PS is in picoseconds. docs/scaling.md says how each was
 * measured. "Running" means that the thread of the processor is ready. */
#define COST_ACCESS_PS 350   /* every access; an access without a transfer costs no more */
#define COST_TRANSFER 60     /* transfer of a line from the cache of another processor */
#define COST_LOCKED 2        /* a locked instruction, added to the cost of its access */
#define COST_WAKE 7300       /* a wake: time that the waking thread needs */
#define COST_WOKEN 13500     /* from the start of a wake until the woken thread runs */
#define COST_START 25000     /* start of a thread: time of the thread that starts it */
#define COST_BARRIER 12000   /* heavy fence: time of the caller, if another processor is running */
#define COST_BARRIER_EACH 30 /* heavy fence: added time of the caller per other running processor */
#define COST_INTERRUPTED 5000 /* heavy fence: time that each other running processor loses */

struct cost_line {
    uintptr_t line;     /* address / 64 */
    uint64_t run;       /* number of the run that made the entry; it is free in any other run */
    int64_t busy_until; /* time at which the last transfer of the line ends, ns */
    int writer;         /* the thread that has the line exclusively, or -1 */
    uint64_t transfers; /* number of transfers of the line in this run */
    uint64_t has[COST_WORDS]; /* bit set: the threads that have the line in their caches */
};

struct sim_costs {
    uint64_t run;            /* number of the current run */
    long lines;              /* entries of `line` in use in this run */
    sim_counts counts;       /* executed operations of all threads in this run */
    int64_t ps[SIM_THREADS]; /* of each thread: time not yet added to its clock, < 1000 ps */
    struct cost_line line[COST_TABLE];
};

#define C (sim_engine->costs)

void sim_cost_reset(void)
{
    if (C == NULL) C = sim_map(sizeof *C);
    C->run++;
    C->lines = 0;
    memset(&C->counts, 0, sizeof C->counts);
}

/* Returns the entry of the line with this number (address / 64) in the hash table. Makes a new
 * entry if the line has none in this run. */
static struct cost_line *cost_line(uintptr_t line)
{
    for (uint32_t i = (uint32_t)((line * 0x9e3779b97f4a7c15u) >> 40);; i++) {
        struct cost_line *l = &C->line[i % COST_TABLE];
        if (l->run == C->run && l->line == line) return l;
        if (l->run == C->run) continue;
        if (++C->lines > (long)COST_TABLE * 3 / 4) sim_fail("too many lines for the simulator");
        memset(l, 0, sizeof *l);
        l->line = line;
        l->run = C->run;
        l->writer = -1;
        return l;
    }
}

void sim_cost(int64_t ns)
{
    S->now->time += ns;
}

/* Adds picoseconds to the clock of the running thread. */
static void cost_ps(int ps)
{
    int64_t *left = &C->ps[S->now->id];

    *left += ps;
    S->now->time += *left / 1000;
    *left %= 1000;
}

/* Adds the time of a transfer of the line to the processor of the running thread. */
static void cost_transfer(struct cost_line *l)
{
    struct sim_thread *t = S->now;
    int64_t from = t->time > l->busy_until ? t->time : l->busy_until;

    l->transfers++;
    C->counts.transfers++;
    t->time = l->busy_until = from + COST_TRANSFER;
}

/* Adds the transfer, if one is needed, of an access of the running thread to line l, and changes
 * the state of the line. */
static void cost_one(struct cost_line *l, bool write)
{
    int id = S->now->id;
    uint64_t bit = (uint64_t)1 << (id % 64), *has = &l->has[id / 64];

    if (write && l->writer != id) {
        bool untouched = l->writer == -1;
        for (int i = 0; i < COST_WORDS && untouched; i++)
            untouched = (l->has[i] & ~(i == id / 64 ? bit : 0)) == 0;
        if (!untouched) cost_transfer(l);
        memset(l->has, 0, sizeof l->has);
        l->writer = id;
    } else if (!write && (*has & bit) == 0) {
        if (l->writer != -1) cost_transfer(l);
        l->writer = -1;
    }
    *has |= bit;
}

void sim_cost_access(const void *p, size_t size, bool write, bool locked)
{
    cost_ps(COST_ACCESS_PS);
    if (locked) {
        C->counts.locked++;
        sim_cost(COST_LOCKED);
    }
    if (size == 0) return;
    if (write)
        C->counts.writes++;
    else
        C->counts.reads++;
    uintptr_t last = ((uintptr_t)p + size - 1) / 64;
    for (uintptr_t l = (uintptr_t)p / 64; l <= last; l++) cost_one(cost_line(l), write);
}

void sim_cost_barrier(void)
{
    int running = 0;

    C->counts.barriers++;
    for (int i = 0; i < S->highest; i++) {
        struct sim_thread *t = &S->thread[i];
        if (t->state != SIM_READY || t == S->now) continue;
        running++;
        t->time += COST_INTERRUPTED;
    }
    if (running > 0) sim_cost(COST_BARRIER + (int64_t)running * COST_BARRIER_EACH);
    /* S->ready is still a heap by time: the clocks of all ready threads except the caller have
     * advanced by the same amount, and sched.c moves the caller to its place at its next point. */
}

int64_t sim_cost_of_wake(void)
{
    C->counts.wakes++;
    sim_cost(COST_WAKE);
    return S->now->time + COST_WOKEN - COST_WAKE;
}

int64_t sim_cost_of_start(void)
{
    C->counts.starts++;
    sim_cost(COST_START);
    return S->now->time;
}

void sim_counted(sim_counts *out)
{
    *out = C->counts;
}

uint64_t sim_transfers_of(const void *p)
{
    return cost_line((uintptr_t)p / 64)->transfers;
}
