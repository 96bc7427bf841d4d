/* SPDX-License-Identifier: MIT */
/*
 * refusals.c - every call by which the library asks the system for something is refused, one
 * after the other
 *
 * For each program and each kind of call: the first is refused, once, then from there on for
 * ever; then the second, and so on until a run does not get that far. Nothing may crash, hang,
 * leak, return a wrong code or a wrong result, and the pool must be as good as new when the
 * system has come to its senses.
 */
#include "programs.h"

static const enum fji_fault kinds[] = {
    FJI_FAULT_ALLOC, FJI_FAULT_COMMIT,   FJI_FAULT_RESERVE, FJI_FAULT_THREAD,
    FJI_FAULT_ATTR,  FJI_FAULT_AFFINITY, FJI_FAULT_SYSCONF, FJI_FAULT_MEMBARRIER,
};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* Beyond this many calls of a kind only some are tried: a program that idles in another order
 * each time has no last one. */
static long most_points(void)
{
    return fjt_rounds(40);
}

static void sweep_kind(void (*run)(int), enum fji_fault kind, long count, long *points)
{
    int threads = threads_alive();

    for (long n = 1;; n += 1 + n / most_points()) {
        long before = fji_fault_calls(kind);
        set_fault(kind, n, count);
        run((int)n);
        calm();
        await_threads(threads);
        if (fji_fault_calls(kind) - before < n) break;
        ++*points;
        if (kind == FJI_FAULT_MEMBARRIER && n >= most_points() / 4) break; /* a ms each */
    }
}

static void sweep(const char *name, void (*run)(int))
{
    long points = 0;

    need_faults();
    one_arena();
    run(1); /* what is kept for good is there then */
    run(2);
    long pages = pages_mapped();
    for (size_t i = 0; i < N_KINDS; i++) {
        sweep_kind(run, kinds[i], 1, &points);
        sweep_kind(run, kinds[i], FOR_EVER, &points);
    }
    check_pages(pages);
    printf("# %s: %ld refusals\n", name, points);
    fflush(stdout);
}

#define SWEEP(p)                         \
    FJ_TEST(p##_whatever_is_refused, 60) \
    {                                    \
        sweep(#p, run_##p);              \
    }

PROGRAMS(SWEEP)
