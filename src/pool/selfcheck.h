/* SPDX-License-Identifier: MIT */
/*
 * selfcheck.h - what must hold of a pool that has nothing to do, in FJI_CHECKED builds
 */
#ifndef FJI_SELFCHECK_H
#define FJI_SELFCHECK_H

#include "sched/pool.h"

#if FJI_CHECKED

/*
 * Looks at a pool that is not shut down, that nobody uses at the moment and that has nothing to
 * run, apart from timers that wait. NULL: all is as it has to be; else what is not, in words.
 *
 * A worker may still be on its way to sleep, or out: then a count has been given back and the
 * next has not. Whoever wants to know asks again until it is NULL; what is broken for good stays
 * so.
 */
const char *fji_pool_check_at_rest(fj_pool *p);

#endif

#endif /* FJI_SELFCHECK_H */
