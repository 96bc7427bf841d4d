/* SPDX-License-Identifier: MIT */
/*
 * sweep.h - refuses each call by which the library requests a resource, one after the other
 *
 * For a program and each kind of call, the first call is refused, in one run only that one, in
 * another run all later ones too. Then the same is done from the second call on, and so on until a
 * run does not make that many calls. The program may not crash, hang, leak, or return a wrong code
 * or a wrong result. When calls succeed again, the pool must work as if nothing had been refused.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "faulty.h"

static const enum fji_fault sweep_kinds[] = {
    FJI_FAULT_ALLOC,    FJI_FAULT_COMMIT,  FJI_FAULT_RESERVE,    FJI_FAULT_THREAD, FJI_FAULT_ATTR,
    FJI_FAULT_AFFINITY, FJI_FAULT_SYSCONF, FJI_FAULT_MEMBARRIER, FJI_FAULT_EVENT,
};

#define SWEEP_KINDS (sizeof sweep_kinds / sizeof sweep_kinds[0])

/* Beyond this many calls of a kind only some are tried. The number of calls of a program whose
 * workers go idle in a different order each time has no fixed limit. */
static inline long most_points(void)
{
    return fjt_rounds(40);
}

static inline void sweep_kind(void (*run)(int), enum fji_fault kind, long count, long *points)
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

/* Runs the sweep. run(n) runs the program; n only varies what it does. */
static inline void sweep(const char *name, void (*run)(int))
{
    long points = 0;

    need_faults();
    one_arena();
    run(1); /* allocates what the library keeps until the process ends */
    run(2);
    long pages = pages_mapped();
    for (size_t i = 0; i < SWEEP_KINDS; i++) {
        sweep_kind(run, sweep_kinds[i], 1, &points);
        sweep_kind(run, sweep_kinds[i], FOR_EVER, &points);
    }
    check_pages(pages);
    printf("# %s: %ld refusals\n", name, points);
    fflush(stdout);
}

#endif
