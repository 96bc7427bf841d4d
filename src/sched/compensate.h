/* SPDX-License-Identifier: MIT */
/*
 * compensate.h - while a worker is blocked, another one may run in its place
 */
#ifndef FJI_COMPENSATE_H
#define FJI_COMPENSATE_H

#include "sched/pool.h"

/* What begin returns, for end. */
typedef enum fji_compensation {
    FJI_KEPT_SLOT,     /* the caller is a guest: nothing was changed */
    FJI_RELEASED_SLOT, /* the worker does not count as active */
    FJI_SATURATED      /* the allow_saturation callback refused: nothing was begun */
} fji_compensation;

/* w is about to block. */
fji_compensation fji_compensate_begin(fji_worker *w);

/* The same, but the allow_saturation callback may refuse: FJI_SATURATED, and no end. */
fji_compensation fji_compensate_try_begin(fji_worker *w);

/* w does not block any more. */
void fji_compensate_end(fji_worker *w, fji_compensation c);

/*
 * Before each sleep of a blocked worker: if the pool is short of a worker, tries again to wake or start
 * one, with growing pauses. Returns when the sleep has to end for the next attempt, or FJ_FOREVER.
 * *pause is 0 at first.
 */
int64_t fji_compensate_retry(fji_worker *w, int64_t *pause);

#endif /* FJI_COMPENSATE_H */
