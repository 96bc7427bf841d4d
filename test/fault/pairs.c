/* SPDX-License-Identifier: MIT */
/*
 * pairs.c - two refusals in one run: any two calls of any two kinds
 *
 * A program has some ten thousand pairs. At scale 1 about 120 of them are tried, at equal distances
 * from a random first one. At scale 100 nearly all are tried.
 */
#include "programs.h"

static const enum fji_fault kinds[] = {FJI_FAULT_ALLOC, FJI_FAULT_COMMIT, FJI_FAULT_RESERVE,
                                       FJI_FAULT_THREAD, FJI_FAULT_ATTR};

#define N_KINDS ((int)(sizeof kinds / sizeof kinds[0]))

/* Counts the calls of each kind that a program makes in a run without faults. */
static void count_calls(void (*run)(int), long *calls)
{
    for (int k = 0; k < N_KINDS; k++) calls[k] = fji_fault_calls(kinds[k]);
    run(1);
    for (int k = 0; k < N_KINDS; k++) calls[k] = fji_fault_calls(kinds[k]) - calls[k];
}

static void run_pair(void (*run)(int), const long *n, const int *k)
{
    set_fault(kinds[k[0]], n[0], 1);
    if (k[0] == k[1])
        fji_fault_and(kinds[k[1]], n[1], 1);
    else
        set_fault(kinds[k[1]], n[1], 1);
    run((int)(n[0] + n[1]));
    calm();
}

static void sweep_pairs(const char *name, void (*run)(int))
{
    long calls[N_KINDS], total = 0, points = 0, at = 0;
    uint64_t seed = fjt_seed();

    need_faults();
    one_arena();
    int threads = threads_alive();
    run(1);
    count_calls(run, calls);
    for (int a = 0; a < N_KINDS; a++)
        for (int b = a; b < N_KINDS; b++)
            total += a == b ? calls[a] * (calls[a] - 1) / 2 : calls[a] * calls[b];
    long step = total / fjt_rounds(120) + 1, next = (long)(fjt_random(&seed) % (uint64_t)step);
    int k[2];
    long n[2];
    for (k[0] = 0; k[0] < N_KINDS; k[0]++) {
        for (k[1] = k[0]; k[1] < N_KINDS; k[1]++) {
            for (n[0] = 1; n[0] <= calls[k[0]]; n[0]++) {
                for (n[1] = k[0] == k[1] ? n[0] + 1 : 1; n[1] <= calls[k[1]]; n[1]++) {
                    if (at++ < next) continue;
                    run_pair(run, n, k);
                    await_threads(threads);
                    next += step;
                    points++;
                }
            }
        }
    }
    printf("# %s: %ld of %ld pairs\n", name, points, total);
    fflush(stdout);
}

#define SWEEP(p)                                \
    FJ_TEST(p##_whichever_two_are_refused, 120) \
    {                                           \
        sweep_pairs(#p, run_##p);               \
    }

PROGRAMS(SWEEP)
