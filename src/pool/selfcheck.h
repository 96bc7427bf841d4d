/* SPDX-License-Identifier: MIT */
/*
 * selfcheck.h - checks of a pool that has nothing to do, in FJI_CHECKED builds; for tests
 */
#ifndef FJI_SELFCHECK_H
#define FJI_SELFCHECK_H

#include "sched/pool.h"

#if FJI_CHECKED

/*
 * Checks the invariants of a pool at rest: the pool is not shut down, no thread calls it during the
 * check, and it has no task to run. Timers may be waiting. Returns NULL if all invariants hold,
 * otherwise a text that names the first one that does not.
 *
 * A worker may still be about to sleep or to end, with some of its counts returned and others not
 * yet. So a test calls this again until it returns NULL. An invariant that is really broken stays
 * broken.
 */
const char *fji_pool_check_at_rest(fj_pool *p);

#endif

#endif /* FJI_SELFCHECK_H */
