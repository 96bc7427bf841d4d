/* SPDX-License-Identifier: MIT */
/*
 * compensate.h - compensation: while a worker is blocked, another worker may run in its place
 *
 * compensate.c explains the protocol. A worker or guest w calls one of the begin functions
 * before it waits, and fji_compensate_end() after the wait.
 */
#ifndef FJI_COMPENSATE_H
#define FJI_COMPENSATE_H

#include "sched/idle.h"
#include "sched/pool.h"

/* What a begin function returns, for fji_compensate_end(). */
typedef enum fji_compensation {
    FJI_UNCOUNTED, /* w is a guest, which never counts as active: nothing was changed */
    FJI_INACTIVE,  /* w is a worker, and does not count as active until fji_compensate_end() */
    FJI_SATURATED  /* the allow_saturation callback refused: nothing was changed */
} fji_compensation;

/* Called if w has to wait in any case: w counts as blocked even if the allow_saturation callback
 * refuses. Wakes or starts another worker if a task is queued and fewer workers are active than the
 * parallelism. Returns FJI_INACTIVE, or FJI_UNCOUNTED if w is a guest. */
fji_compensation fji_compensate_begin(fji_worker *w);

/* As fji_compensate_begin(), for a wait that *done ends. w may wait for the heavy fence of another
 * worker; if *done ends the wait meanwhile, no other worker is woken. */
fji_compensation fji_compensate_begin_wait(fji_worker *w, const fji_fence_stop *done);

/* As fji_compensate_begin(), but if the allow_saturation callback refuses, changes nothing and
 * returns FJI_SATURATED. The callback is called only if w is a worker, fewer than min_runnable
 * workers would stay active, and no worker could replace w: none is idle, and the pool has
 * max_threads threads. */
fji_compensation fji_compensate_try_begin(fji_worker *w);

/* w does not wait any more and counts as active again, if it did before. c: what the begin function
 * has returned. */
void fji_compensate_end(fji_worker *w, fji_compensation c);

/*
 * Called by w before each sleep of a wait. Checks whether the pool of w is short of a worker
 * (spawn.h); if w is a guest, also checks the pools for which its thread was a worker or guest when
 * it became this guest. For each pool that is short, tries to wake or start a worker. *pause is the
 * pause before the next attempt, in ns; it grows from attempt to attempt. The caller sets it to 0
 * before the first call of a wait, and a call that finds 0 makes no attempt. Returns the time
 * (fji_plat_now()) at which the sleep has to end for the next attempt, or FJ_FOREVER if no pool is
 * short.
 */
int64_t fji_compensate_retry(fji_worker *w, int64_t *pause);

#endif /* FJI_COMPENSATE_H */
