/* SPDX-License-Identifier: MIT */
/*
 * cost.c - the cost of each operation, for the TIMED strategy
 *
 * Every thread has its own processor and its own clock. A cache line is in the caches of some
 * processors, and one of them may have it exclusively after a write. A read of a line that is in
 * the reader's cache, and a write to a line that the writer has exclusively, cost one instruction.
 * Any other access waits until the last transfer of the line has finished, and then takes one
 * transfer itself. So accesses to a line that many threads write form a queue. A wake, the start of
 * a thread and the heavy fence cost the times that were measured on a real machine.
 */
#include <string.h>

#include "engine.h"

#define S sim_engine
#define COST_TABLE (1u << 19)
#define COST_WORDS (SIM_THREADS / 64)

/* ns, unless the name says ps. docs/scaling.md says how each was measured. */
#define COST_ACCESS_PS 350    /* an access that hits the cache */
#define COST_TRANSFER 60      /* a line from another core's cache */
#define COST_LOCKED 2         /* a locked instruction, in addition to the access */
#define COST_WAKE 7300        /* of the waking thread */
#define COST_WOKEN 13500      /* from the call until the woken thread runs */
#define COST_START 25000      /* of the thread that starts another */
#define COST_BARRIER 12000    /* the heavy fence, of the caller */
#define COST_BARRIER_EACH 30  /* in addition, for each other running processor */
#define COST_INTERRUPTED 5000 /* of each other running processor */

struct cost_line {
    uintptr_t line;           /* address / 64 */
    uint64_t run;             /* the entry is free if this is not the current run */
    int64_t busy_until;       /* end of the last transfer */
    int writer;               /* the thread that has it exclusively, or -1 */
    uint64_t transfers;       /* so far */
    uint64_t has[COST_WORDS]; /* the threads that have it in their caches, a bit for each */
};

struct sim_costs {
    uint64_t run;            /* number of the current run */
    long lines;              /* entries in use */
    sim_counts counts;       /* of all threads */
    int64_t ps[SIM_THREADS]; /* fractions of a nanosecond that each clock still owes */
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

/* The entry of a line, found by hashing; a new one at the first use in this run. */
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

/* The line is moved to the processor of the running thread. */
static void cost_transfer(struct cost_line *l)
{
    struct sim_thread *t = S->now;
    int64_t from = t->time > l->busy_until ? t->time : l->busy_until;

    l->transfers++;
    C->counts.transfers++;
    t->time = l->busy_until = from + COST_TRANSFER;
}

/* One access of the running thread to one line. */
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
    /* The order of the heap of ready threads stays valid: the clocks of all but the caller have
     * moved by the same amount, and the caller is sifted at its next point. */
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
