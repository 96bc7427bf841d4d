/* SPDX-License-Identifier: MIT */
/*
 * cost.c - what an access costs, for the TIMED strategy
 *
 * Every thread has a processor and a clock of its own. A line is in the caches of some
 * processors; one of them may have written it last. An access to a line that the processor has
 * (and, for a write, has alone) costs what an instruction costs; any other waits until the
 * line's last transfer is over and takes one itself, so that a line which everybody writes is
 * a queue. Waking, starting and the heavy fence cost what was measured.
 */
#include <string.h>

#include "engine.h"

#define S sim_engine
#define COST_TABLE (1u << 19)
#define COST_WORDS (SIM_THREADS / 64)

/* ns; docs/scaling.md says where each comes from. */
#define COST_ACCESS_PS 350 /* an access that hits */
#define COST_TRANSFER 60   /* a line from another core's cache */
#define COST_LOCKED 2      /* a locked instruction, beyond the access */
#define COST_WAKE 7300     /* the waker's call */
#define COST_WOKEN 13500   /* until the woken one runs */
#define COST_START 25000
#define COST_BARRIER 12000    /* the caller's, and for each further processor: */
#define COST_BARRIER_EACH 30  /* an interrupt sent and answered */
#define COST_INTERRUPTED 5000 /* what each processor that runs loses */

struct cost_line {
    uintptr_t line;
    uint64_t run;
    int64_t busy_until;
    int writer; /* -1: nobody has it alone */
    uint64_t transfers;
    uint64_t has[COST_WORDS];
};

struct sim_costs {
    uint64_t run;
    long lines;
    sim_counts counts;
    int64_t ps[SIM_THREADS];
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

static void cost_ps(int ps)
{
    int64_t *left = &C->ps[S->now->id];

    *left += ps;
    S->now->time += *left / 1000;
    *left %= 1000;
}

static void cost_transfer(struct cost_line *l)
{
    struct sim_thread *t = S->now;
    int64_t from = t->time > l->busy_until ? t->time : l->busy_until;

    l->transfers++;
    C->counts.transfers++;
    t->time = l->busy_until = from + COST_TRANSFER;
}

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
    /* All clocks have moved: the heap of those that are ready stays a heap, since all but the
     * caller's have moved alike. */
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
