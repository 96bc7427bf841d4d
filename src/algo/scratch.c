/* SPDX-License-Identifier: MIT */
/*
 * scratch.c - the memory that algorithms allocate, and a fault injector for it
 */
#include "scratch.h"

#include "plat/atomic.h"
#include "plat/plat.h"

/* How many more allocations succeed before all later ones fail. Negative: no limit. */
static long allowed = -1;

void fji_algo_fail_after(long n)
{
    fji_store_relaxed(&allowed, n); /* relaxed: a test calls this while no algorithm runs */
}

/* Subtracts one allocation from `allowed`, if it is positive. Returns whether the allocation has to
 * fail. */
static bool fault_injected(void)
{
    long n = fji_load_relaxed(&allowed); /* relaxed: `allowed` publishes no other data */

    while (n > 0)
        if (fji_cas_relaxed(&allowed, &n, n - 1)) return false; /* relaxed: as above */
    return n == 0;
}

void *fji_algo_alloc(size_t bytes)
{
    return FJI_FAULTS && fault_injected() ? NULL : fji_plat_alloc_scratch(bytes);
}

void fji_algo_free(void *p)
{
    fji_plat_free(p);
}
