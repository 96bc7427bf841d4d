/* SPDX-License-Identifier: MIT */
/*
 * selfcheck.h - checks of a pool that has nothing to do, for tests; only in FJI_CHECKED builds
 */
#ifndef FJI_SELFCHECK_H
#define FJI_SELFCHECK_H

#include "sched/pool.h"

#if FJI_CHECKED

/*
 * Checks the invariants of a pool at rest. That means: p is not shut down, has no task to run, and
 * no thread calls a function with p during the check. Timers may be waiting. Returns NULL if all
 * invariants hold, otherwise a text that names the first one that does not hold.
 *
 * A worker may still be about to sleep or to exit. Then it may have subtracted itself from some
 * counts of the pool and not yet from others. So a test calls this function again until it returns
 * NULL. If an invariant is really broken, it does not hold in later calls either.
 */
const char *fji_pool_check_at_rest(fj_pool *p);

#endif

#endif /* FJI_SELFCHECK_H */
