/* SPDX-License-Identifier: MIT */
/*
 * guest.h - an outside thread that works in a pool for one call
 */
#ifndef FJI_GUEST_H
#define FJI_GUEST_H

#include "sched/pool.h"

/*
 * Makes the calling thread a guest of p; fji_worker_self() is then the guest. Takes the lock of p.
 * Returns NULL if there is no memory for a record, or if p refuses guests: p stops, or it is shut
 * down and `although_shut_down` is false. Unless `refused` is NULL, sets *refused to whether p
 * refuses.
 */
fji_worker *fji_guest_enter(fj_pool *p, bool although_shut_down, bool *refused);

/* Called by the guest w: runs the tasks that are left in its queue. Afterwards the thread is again
 * what it was before it became a guest. Takes the lock of p; p may be freed as soon as this
 * returns. */
void fji_guest_leave(fji_worker *w);

#endif /* FJI_GUEST_H */
