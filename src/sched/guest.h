/* SPDX-License-Identifier: MIT */
/*
 * guest.h - an outside thread that works in a pool for one call
 */
#ifndef FJI_GUEST_H
#define FJI_GUEST_H

#include "sched/pool.h"

/*
 * Makes the calling thread a guest of p. Returns the guest, which fji_worker_self() then also
 * returns. Returns NULL if no record is free and none can be created (there is no memory, or p has
 * FJ_MAX_WORKERS records). Also returns NULL if p refuses guests: p stops, or p is shut down and
 * `although_shut_down` is false. If `refused` is not NULL, sets *refused to true if p refuses
 * guests, and to false otherwise. Takes the lock of p.
 */
fji_worker *fji_guest_enter(fj_pool *p, bool although_shut_down, bool *refused);

/* Called by the guest w: runs the tasks that are left in its queue. Afterwards the calling thread
 * is again what it was before fji_guest_enter(): a worker, a guest, or outside all pools. Takes the
 * lock of the pool, which may be freed as soon as this function returns. */
void fji_guest_leave(fji_worker *w);

#endif /* FJI_GUEST_H */
