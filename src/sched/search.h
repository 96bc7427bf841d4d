/* SPDX-License-Identifier: MIT *
 * This is the second step of the idle protocol; idle.h is the first. With many workers each push would
 * change the control word, and a thread outside the pool would spend its time on wake-ups. So in a pool
 * with more than FJI_UNTHROTTLED_WORKERS workers a wake-up needs a searching slot. `nsearching` counts the
 * slots in use. A searching worker is awake, has no task and will scan all queues: it was woken with a
 * slot, or it found nothing and continues to spin. A producer that finds enough slots in use wakes no
 * worker and sets WAKE_DEFERRED: it leaves its wake-up to the searching workers.
 *
 *     producer that sees an idle worker     searching worker
 *     1 full fence                          finds a task:  DEFERRED or more tasks: wakes the next worker
 *     2 CAS nsearching:                                    and hands it the slot; else nsearching - 1
 *         enough: DEFERRED, return          finds nothing: nsearching - 1; push and fence of idle.h;
 *         else +1: wake a worker with it                   DEFERRED: clear it, full fence; rescan;
 *                                                          a task: set DEFERRED again, fji_wake_one()
 *
 * Both are in one word, so "a slot is in use" and DEFERRED are read at one moment.
 *
 * Invariants
 *   P1  nsearching == slots in use. Each belongs to one awake worker that will scan all queues, or to one
 *       call of fji_wake_one(). A worker returns its slot before it runs a task or a callback.
 *   P2  For each task that is queued while a worker is idle and wanted, one of these holds: a wake-up is in
 *       progress; DEFERRED is set and a slot is in use; a worker has cleared DEFERRED and its rescan will
 *       see the task.
 *
 * P2 holds because a worker that returns its slot while DEFERRED is set passes the duty on:
 *   - It found a task: it wakes the next worker with the same slot. If no worker can be woken, it returns
 *     the slot, executes a full fence and reads ctl once more, because a producer may have seen an idle
 *     worker after the first look.
 *   - It found nothing: its rescan sees the task, by the producer's fence in 1 and the fence after the push.
 *     So does the rescan that a worker owes if it was woken before its rescan.
 * DEFERRED is cleared only before a rescan that sees every task deferred before (the fence in 1 against the
 * fence after clearing). If the rescan finds one, it sets DEFERRED again. So while tasks are left, each
 * worker that finds one wakes the next, until one finds nothing.
 *
 * A started thread has no slot, because its on_start callback runs first; but the worker that started it
 * may have relied on it. So with its first task it checks all queues and calls fji_wake_one()
 * (awaiting_first_task).
 *
 * Edges         from                                   to                              carries
 *   idle.defer  full fence, fji_search_slot_take()     full fences of slot returners   task against DEFERRED
 *
 * Model: test/model/idle.pml.
 *
 * This is the second step of the idle protocol; idle.h is the first. With many workers each push would
 * change the control word, and a thread outside the pool would spend its time on wake-ups. So in a pool
 * with more than FJI_UNTHROTTLED_WORKERS workers a wake-up needs a searching slot. `nsearching` counts the
 * slots in use. A searching worker is awake, has no task and will scan all queues: it was woken with a
 * slot, or it found nothing and continues to spin. A producer that finds enough slots in use wakes no
 * worker and sets WAKE_DEFERRED: it leaves its wake-up to the searching workers.
 *
 *     producer that sees an idle worker     searching worker
 *     1 full fence                          finds a task:  DEFERRED or more tasks: wakes the next worker
 *     2 CAS nsearching:                                    and hands it the slot; else nsearching - 1
 *         enough: DEFERRED, return          finds nothing: nsearching - 1; push and fence of idle.h;
 *         else +1: wake a worker with it                   DEFERRED: clear it, full fence; rescan;
 *                                                          a task: set DEFERRED again, fji_wake_one()
 *
 * Both are in one word, so "a slot is in use" and DEFERRED are read at one moment.
 *
 * Invariants
 *   P1  nsearching == slots in use. Each belongs to one awake worker that will scan all queues, or to one
 *       call of fji_wake_one(). A worker returns its slot before it runs a task or a callback.
 *   P2  For each task that is queued while a worker is idle and wanted, one of these holds: a wake-up is in
 *       progress; DEFERRED is set and a slot is in use; a worker has cleared DEFERRED and its rescan will
 *       see the task.
 *
 * P2 holds because a worker that returns its slot while DEFERRED is set passes the duty on:
 *   - It found a task: it wakes the next worker with the same slot. If no worker can be woken, it returns
 *     the slot, executes a full fence and reads ctl once more, because a producer may have seen an idle
 *     worker after the first look.
 *   - It found nothing: its rescan sees the task, by the producer's fence in 1 and the fence after the push.
 *     So does the rescan that a worker owes if it was woken before its rescan.
 * DEFERRED is cleared only before a rescan that sees every task deferred before (the fence in 1 against the
 * fence after clearing). If the rescan finds one, it sets DEFERRED again. So while tasks are left, each
 * worker that finds one wakes the next, until one finds nothing.
 *
 * A started thread has no slot, because its on_start callback runs first; but the worker that started it
 * may have relied on it. So with its first task it checks all queues and calls fji_wake_one()
 * (awaiting_first_task).
 *
 * Edges         from                                   to                              carries
 *   idle.defer  full fence, fji_search_slot_take()     full fences of slot returners   task against DEFERRED
 *
 * Model: test/model/idle.pml.
 *
 * This is the second step of the idle protocol; idle.h is the first. With many workers each push would
 * change the control word, and a thread outside the pool would spend its time on wake-ups. So in a pool
 * with more than FJI_UNTHROTTLED_WORKERS workers a wake-up needs a searching slot. `nsearching` counts the
 * slots in use. A searching worker is awake, has no task and will scan all queues: it was woken with a
 * slot, or it found nothing and continues to spin. A producer that finds enough slots in use wakes no
 * worker and sets WAKE_DEFERRED: it leaves its wake-up to the searching workers.
 *
 *     producer that sees an idle worker     searching worker
 *     1 full fence                          finds a task:  DEFERRED or more tasks: wakes the next worker
 *     2 CAS nsearching:                                    and hands it the slot; else nsearching - 1
 *         enough: DEFERRED, return          finds nothing: nsearching - 1; push and fence of idle.h;
 *         else +1: wake a worker with it                   DEFERRED: clear it, full fence; rescan;
 *                                                          a task: set DEFERRED again, fji_wake_one()
 *
 * Both are in one word, so "a slot is in use" and DEFERRED are read at one moment.
 *
 * Invariants
 *   P1  nsearching == slots in use. Each belongs to one awake worker that will scan all queues, or to one
 *       call of fji_wake_one(). A worker returns its slot before it runs a task or a callback.
 *   P2  For each task that is queued while a worker is idle and wanted, one of these holds: a wake-up is in
 *       progress; DEFERRED is set and a slot is in use; a worker has cleared DEFERRED and its rescan will
 *       see the task.
 *
 * P2 holds because a worker that returns its slot while DEFERRED is set passes the duty on:
 *   - It found a task: it wakes the next worker with the same slot. If no worker can be woken, it returns
 *     the slot, executes a full fence and reads ctl once more, because a producer may have seen an idle
 *     worker after the first look.
 *   - It found nothing: its rescan sees the task, by the producer's fence in 1 and the fence after the push.
 *     So does the rescan that a worker owes if it was woken before its rescan.
 * DEFERRED is cleared only before a rescan that sees every task deferred before (the fence in 1 against the
 * fence after clearing). If the rescan finds one, it sets DEFERRED again. So while tasks are left, each
 * worker that finds one wakes the next, until one finds nothing.
 *
 * A started thread has no slot, because its on_start callback runs first; but the worker that started it
 * may have relied on it. So with its first task it checks all queues and calls fji_wake_one()
 * (awaiting_first_task).
 *
 * Edges         from                                   to                              carries
 *   idle.defer  full fence, fji_search_slot_take()     full fences of slot returners   task against DEFERRED
 *
 * Model: test/model/idle.pml.
 */
/*
 * search.h - searching slots: in a large pool, searching workers replace further wake-ups
 */
#ifndef FJI_SEARCH_H
#define FJI_SEARCH_H

#include "sched/pool.h"

/* Reserves a slot for a worker that the caller wakes. c: the control word as the caller has read it.
 * Returns false if enough workers search; the wake-up is then left to them. */
bool fji_search_slot_take(fj_pool *p, uint64_t c);

/* Returns true if a wake-up may have been left to the slot. */
bool fji_search_slot_return(fj_pool *p);

/* Whether a wake-up needs a slot: only in pools above FJI_UNTHROTTLED_WORKERS workers. */
bool fji_search_is_throttled(const fj_pool *p);

/* Whether wake-ups were left to the searching workers. */
bool fji_search_is_deferred(const fj_pool *p);

/* w has found nothing. Returns whether it may search on; it then has a slot. */
bool fji_search_begin(fji_worker *w);

/* w stops searching because it becomes idle or exits. */
void fji_search_end(fji_worker *w);

/* Whether a queue has a task, for the rescan of a worker that becomes idle. Sees every task whose
 * wake-up was deferred before. */
bool fji_search_rescan(fj_pool *p);

#endif /* FJI_SEARCH_H */
