/* SPDX-License-Identifier: MIT */
/*
 * compensate.h - compensation: while a worker is blocked, another worker may run in its place
 *
 * compensate.c explains the protocol. A thread calls one of the two begin functions before it
 * waits, and fji_compensate_end() after the wait, for the worker or guest that it is itself.
 */
#ifndef FJI_COMPENSATE_H
#define FJI_COMPENSATE_H

#include "sched/pool.h"

/* What a begin function returns, for fji_compensate_end(). */
typedef enum fji_compensation {
    FJI_UNCOUNTED, /* the caller is a guest, which is in no count: nothing was changed */
    FJI_INACTIVE,  /* the worker does not count as active */
    FJI_SATURATED  /* the allow_saturation callback refused: there is nothing to end */
} fji_compensation;

/* w is about to wait and cannot be refused: it blocks even if the allow_saturation callback
 * refuses. Wakes or starts another worker if one is needed. Never returns FJI_SATURATED. */
fji_compensation fji_compensate_begin(fji_worker *w);

/* As fji_compensate_begin(), but returns FJI_SATURATED if the allow_saturation callback refuses. */
fji_compensation fji_compensate_try_begin(fji_worker *w);

/* w has stopped waiting. c: what the begin function returned. */
void fji_compensate_end(fji_worker *w, fji_compensation c);

/*
 * Called before each sleep of a blocked worker. If a pool of the calling thread is short of a
 * worker (spawn.h), tries again to wake or start one, with growing pauses. *pause is the last
 * pause and is 0 before the first call; that call only sets it. Returns the time at which the
 * sleep has to end for the next attempt, or FJ_FOREVER if no pool is short.
 */
int64_t fji_compensate_retry(fji_worker *w, int64_t *pause);

#endif /* FJI_COMPENSATE_H */
