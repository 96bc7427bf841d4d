/* SPDX-License-Identifier: MIT */
/*
 * refusals.c - refuses each call by which the library requests a resource, one after the other
 *
 * For each program and each kind of call, the first call is refused, in one run only that one, in
 * another run all later ones too. Then the same is done from the second call on, and so on until a
 * run does not make that many calls. The program may not crash, hang, leak, or return a wrong code
 * or a wrong result. When calls succeed again, the pool must work as if nothing had been refused.
 */
#include "programs.h"

static const enum fji_fault kinds[] = {
    FJI_FAULT_ALLOC, FJI_FAULT_COMMIT,   FJI_FAULT_RESERVE, FJI_FAULT_THREAD,
    FJI_FAULT_ATTR,  FJI_FAULT_AFFINITY, FJI_FAULT_SYSCONF, FJI_FAULT_MEMBARRIER,
};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* Beyond this many calls of a kind only some are tried. The number of calls of a program whose
 * workers go idle in a different order each time has no fixed limit. */
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
        if (kind == FJI_FAULT_MEMBARRIER && n >= most_points() / 4)
            /* Each of these takes about 1 ms. */
            break;
    }
}

static void sweep(const char *name, void (*run)(int))
{
    long points = 0;

    need_faults();
    one_arena();
    run(1); /* allocates what the library keeps until the process ends */
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
