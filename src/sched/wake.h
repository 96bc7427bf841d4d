/* SPDX-License-Identifier: MIT */
/*
 * wake.h - waking one idle worker, or starting a thread
 *
 * idle.h explains how workers become idle. One CAS on the control word pops the top of the idle
 * stack, or counts a new thread (spawn.h). So one call of fji_wake_one() wakes or starts at
 * most one worker. It wakes or starts one only if fewer workers are active than the parallelism.
 * In a large pool it may leave the wake-up to the searching workers (search.h).
 *
 * Two rules bring enough workers to the tasks:
 *   - A thief that takes a task and sees more tasks in the same queue wakes another worker
 *     (fji_wake_after_find()).
 *   - fji_wake_one() does not test whether the task for which it is called is still queued. So each
 *     rescan that has seen a task wakes one worker: see "Each rescan counts" in idle.h.
 */
#ifndef FJI_WAKE_H
#define FJI_WAKE_H

#include "sched/pool.h"

/*
 * Wakes an idle worker if fewer workers are active than the parallelism. If no worker is idle,
 * starts a thread, if one may be started (fji_spawn_allowed()). In a large pool with an idle worker
 * it may instead leave the wake-up to the searching workers (search.h). Otherwise does nothing. The
 * caller has queued a task and executed the producer's fence of idle.h, or has seen a task in a
 * queue. Any thread may call it. The caller may hold the lock of a submission queue, but not the
 * lock of the pool or of its timers.
 */
void fji_wake_one(fj_pool *p);

/*
 * Called by the thread of w when it has found a task, and before it runs the task. Gives the
 * searching slot of w back or hands it to the next worker. Wakes another worker if `more` is true,
 * if a producer has left its wake-up to the slot of w, or if this is the first task of a started
 * thread and any queue has a further task. Then makes the rescan that w owes (rescan_owed), and
 * wakes one more worker if the rescan sees a task. `more`: the queue in which w has found the task
 * may have further tasks.
 */
void fji_wake_after_find(fji_worker *w, bool more);

/*
 * Returns whether the calling thread has woken a worker that slept in the kernel, or started a
 * thread, since it called this function last. The kernel often places a thread that it wakes on the
 * CPU of the waking thread. Such a worker runs when the waking thread sleeps, so a waiter that would
 * spin delays the task that it waits for.
 */
bool fji_wake_made(void);

/* Makes the worker on top of the idle stack of p active, even if as many workers are active as the
 * parallelism. Returns false if no worker is idle. */
bool fji_wake_idle(fj_pool *p);

/* Wakes all idle workers of p, which stops. Any thread may call it. */
void fji_wake_all_idle(fj_pool *p);

/* If tasks of p were queued without a wake-up (`lazy` of p is 1), sets `lazy` to 0 and makes one
 * wake-up for them. Does nothing if p is the common pool and stops. Called by a thread before it
 * waits for a task of p. Any thread may call it. */
void fji_wake_for_lazy(fj_pool *p);

#endif /* FJI_WAKE_H */
