/* SPDX-License-Identifier: MIT */
/*
 * guest.h - an outside thread that works in a pool for one call
 */
#ifndef FJI_GUEST_H
#define FJI_GUEST_H

#include "sched/pool.h"

/* Makes the calling thread a guest of p. Returns NULL if there is no memory, or if p takes no guest: it
 * stops, or, unless `although_shut_down`, it is shut down; *refused tells, unless it is NULL. */
fji_worker *fji_guest_enter(fj_pool *p, bool although_shut_down, bool *refused);

/* The guest runs what is left in its queue and becomes what it was before. */
void fji_guest_leave(fji_worker *w);

#endif /* FJI_GUEST_H */
