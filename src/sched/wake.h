/* SPDX-License-Identifier: MIT *
 * One CAS on the control word takes the top of the idle stack, or reserves a new thread. So one call of
 * fji_wake_one() wakes or starts at most one worker. A thief that takes a task and sees more tasks in the
 * same queue calls it again. A call is never dropped because its task seems to be taken already. So of the
 * workers that become idle after tasks were queued without a wake-up each wakes one other, and as many are
 * woken as became idle or as there are tasks.
 *
 * One CAS on the control word takes the top of the idle stack, or reserves a new thread. So one call of
 * fji_wake_one() wakes or starts at most one worker. A thief that takes a task and sees more tasks in the
 * same queue calls it again. A call is never dropped because its task seems to be taken already. So of the
 * workers that become idle after tasks were queued without a wake-up each wakes one other, and as many are
 * woken as became idle or as there are tasks.
 *
 * One CAS on the control word takes the top of the idle stack, or reserves a new thread. So one call of
 * fji_wake_one() wakes or starts at most one worker. A thief that takes a task and sees more tasks in the
 * same queue calls it again. A call is never dropped because its task seems to be taken already. So of the
 * workers that become idle after tasks were queued without a wake-up each wakes one other, and as many are
 * woken as became idle or as there are tasks.
 */
/*
 * wake.h - waking one idle worker, or starting a thread
 */
#ifndef FJI_WAKE_H
#define FJI_WAKE_H

#include "sched/pool.h"

/* Wakes an idle worker, or starts a thread, if one is wanted. */
void fji_wake_one(fj_pool *p);

/* w, which may have searched, has found a task and not begun it. `more`: the queue has further ones. */
void fji_wake_after_find(fji_worker *w, bool more);

/* Wakes all idle workers of a pool that stops. */
void fji_wake_all_idle(fj_pool *p);

/* Called before a wait: wakes a worker if a task was queued without a wake-up. */
void fji_wake_for_lazy(fj_pool *p);

/* After a failed fji_ctl_cas(), the *failures-th in a row: in a large pool, pauses for a random time and
 * reads the control word again. */
void fji_ctl_backoff(fj_pool *p, uint64_t *c, uint32_t *failures);

/* Changes the counts of active workers and of threads in the control word. */
void fji_ctl_add(fj_pool *p, int active, int total);

#endif /* FJI_WAKE_H */
