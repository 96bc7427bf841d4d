/* SPDX-License-Identifier: MIT */
/*
 * scratch.c - the memory that algorithms allocate, and a fault injector for it
 */
#include "scratch.h"

#include "plat/atomic.h"
#include "plat/memory.h"

/* How many more calls of fji_algo_alloc() succeed before all later ones fail. Negative: no limit.
 * Read only if the library is built with FJI_FAULTS. */
static long allowed = -1;

void fji_algo_fail_after(long n)
{
    fji_store_relaxed(&allowed, n); /* relaxed: a test calls this while no algorithm runs */
}

/* Called for each allocation. If `allowed` is positive, subtracts 1 from it. Returns true, which
 * means that the allocation has to fail, if `allowed` is 0. */
static bool fault_injected(void)
{
    long n = fji_load_relaxed(&allowed); /* relaxed: `allowed` publishes no other data */

    while (n > 0)
        if (fji_cas_relaxed(&allowed, &n, n - 1)) return false; /* relaxed: as above */
    return n == 0;
}

static void *scratch_of(fj_pool *pool, size_t bytes)
{
    return FJI_FAULTS && fault_injected() ? NULL : fji_pool_block(pool, FJI_MEMORY_SCRATCH, bytes);
}

void *fji_algo_alloc(size_t bytes)
{
    return scratch_of(fj_current_pool(), bytes);
}

void *fji_algo_alloc_for(const fj_algo_options *how, size_t bytes)
{
    return scratch_of(how != NULL && how->pool != NULL ? how->pool : fj_current_pool(), bytes);
}

void fji_algo_free(void *p)
{
    fji_block_free(p);
}
