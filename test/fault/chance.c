/* SPDX-License-Identifier: MIT */
/*
 * chance.c - random faults of several kinds at once
 *
 * The seed selects the kinds of faults that occur, and for each kind how often it occurs: in one of
 * 2 calls, for example. One test sets refusals only. One sets spurious events only, which the
 * program must not notice. One sets both.
 */
#include "programs.h"

static const enum fji_fault refusals[] = {
    FJI_FAULT_ALLOC, FJI_FAULT_COMMIT,   FJI_FAULT_RESERVE, FJI_FAULT_THREAD,
    FJI_FAULT_ATTR,  FJI_FAULT_AFFINITY, FJI_FAULT_SYSCONF, FJI_FAULT_MEMBARRIER,
};

static const enum fji_fault spurious[] = {
    FJI_FAULT_WAIT,      FJI_FAULT_WAIT_LATE, FJI_FAULT_WAKE_LATE,
    FJI_FAULT_WAKE_MORE, FJI_FAULT_JUMP,      FJI_FAULT_STILL,
};

/* Events that cost time, and those of the clock, are rarer: they would slow the test down without
 * finding more. */
static long rarity(enum fji_fault kind, uint64_t *seed)
{
    static const long one_in[] = {2, 5, 20, 100};
    long n = one_in[fjt_random(seed) % 4];

    switch (kind) {
        case FJI_FAULT_MEMBARRIER:
        case FJI_FAULT_WAIT_LATE:
        case FJI_FAULT_WAKE_LATE: return n * 5;
        case FJI_FAULT_JUMP: return n * 50;
        case FJI_FAULT_STILL: return n * 1000;
        default: return n;
    }
}

static void set_some(const enum fji_fault *kinds, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++)
        if (fjt_random(seed) % 2 == 0)
            set_chance(kinds[i], fjt_random(seed), rarity(kinds[i], seed));
}

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static void run_by_chance(bool refuses, bool disturbs)
{
    uint64_t seed = fjt_seed();
    int threads = threads_alive();
    long rounds = fjt_rounds(250);

    need_faults();
    one_arena();
    for (long i = 0; i < rounds; i++) {
        const struct program *p = &programs[fjt_random(&seed) % (unsigned)N_PROGRAMS];
        if (refuses) set_some(refusals, COUNT(refusals), &seed);
        if (disturbs) set_some(spurious, COUNT(spurious), &seed);
        p->run((int)(fjt_random(&seed) % 6));
        calm();
        await_threads(threads);
    }
    printf("# %ld runs\n", rounds);
    fflush(stdout);
}

FJ_TEST(refusals_by_chance, 120)
{
    run_by_chance(true, false);
}

FJ_TEST(liberties_by_chance, 120)
{
    run_by_chance(false, true);
}

FJ_TEST(refusals_and_liberties_by_chance, 120)
{
    run_by_chance(true, true);
}
