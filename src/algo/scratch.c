/* SPDX-License-Identifier: MIT */
/*
 * scratch.c - the memory of the algorithms, which tests can refuse
 */
#include "scratch.h"

#include <stdlib.h>

#include "../atomic.h"

static long allowed = -1; /* allocations until they fail; negative: no end */

void fji_algo_fail_after(long n)
{
    fji_store_relaxed(&allowed, n); /* relaxed: tests call it while nothing runs */
}

/* Whether this allocation is to fail. */
static bool refused(void)
{
    long n = fji_load_relaxed(&allowed); /* relaxed: a count alone */

    while (n > 0)
        if (fji_cas_relaxed(&allowed, &n, n - 1)) return false; /* relaxed: as above */
    return n == 0;
}

void *fji_algo_alloc(size_t bytes)
{
    return FJI_FAULTS && refused() ? NULL : malloc(bytes);
}

void fji_algo_free(void *p)
{
    free(p);
}
