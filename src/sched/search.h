/* SPDX-License-Identifier: MIT */
/*
 * search.h - searching slots: in a large pool, a few searching workers replace most wake-ups
 *
 * This is the second step of the idle protocol; idle.h is the first.
 *
 * The problem. If every producer that sees an idle worker wakes one, most woken workers of a large
 * pool find no task and become idle again. Each wake-up and each push onto the idle stack changes
 * the control word, and the cache line of the control word becomes a bottleneck. A thread outside
 * the pool that submits many tasks spends its time on wake-ups.
 *
 * The idea. A searching worker is awake, has no task, and will scan all queues. It was woken with a
 * searching slot (in this file: slot), or it found no task and took a slot in order to spin.
 * `nsearching` of the pool counts the slots in use. In a pool with a parallelism above
 * FJI_UNTHROTTLED_WORKERS a thread needs a slot to wake an idle worker, but none to start a thread.
 * A producer that sees an idle worker and finds enough slots in use wakes no worker. Instead it
 * sets the bit FJI_WAKE_DEFERRED (in this file: DEFERRED), and so leaves its wake-up to the
 * searching workers.
 *
 *     producer that sees an idle worker    searching worker
 *     1 full fence                         finds a task:
 *     2 CAS nsearching:                      more tasks in that queue, or DEFERRED and no other slot
 *         enough in use: set DEFERRED        in use: wakes the next worker and hands it the slot;
 *         else: + 1, and wake a worker       else nsearching - 1
 *         with this slot                   finds nothing:
 *                                            nsearching - 1; push and fences of idle.h;
 *                                            DEFERRED: clear it, full fence;
 *                                            rescan; a task: set DEFERRED again, fji_wake_one()
 *
 * "Enough" is 1 for a thread outside the pool. For a worker or guest it is half of the active
 * workers, at least FJI_SEARCH_MIN and at most FJI_SEARCH_MAX. DEFERRED is a bit of `nsearching`,
 * so a thread reads the bit and the number of slots at the same moment.
 *
 * Invariants
 *   P1  nsearching is the number of slots in use. Each slot belongs to one awake worker that will
 *       scan all queues, or to one call of fji_wake_one(). A worker returns its slot, or hands it
 *       on, before it runs a task or a callback.
 *   P2  For each task that is queued while a worker is idle and fewer workers are active than the
 *       parallelism, at least one of these is true: a wake-up is in progress; DEFERRED is set and a
 *       slot is in use; a worker has cleared DEFERRED and its rescan will see the task.
 *
 * Why P2 holds: a worker that gives up its slot while DEFERRED is set passes on the duty to wake
 * another worker.
 *   - If the worker found a task and another slot is in use, the worker with that slot has the duty.
 *     DEFERRED stays set.
 *   - If the worker found a task and no other slot is in use, it wakes the next worker with the same
 *     slot. If it finds no
 *     worker to wake, it returns the slot, executes a full fence and reads ctl again. The second
 *     read is needed because a producer may have seen an idle worker that the first read did not
 *     show.
 *   - If the worker found no task, its rescan sees the task of a producer that relied on its slot:
 *     the producer stores the task, executes the fence of its step 1 and reads that the slot is in
 *     use. The worker returns the slot, pushes itself, executes the full fence after its push and
 *     reads the queues. A worker that is woken before its rescan makes the rescan later
 *     (rescan_owed in idle.h).
 * A rescan that finds nothing is made again if a slot was taken meanwhile (slots_taken). Suppose that
 * the wake-up for task X was deferred. A worker that becomes idle clears DEFERRED and scans the first
 * queue. Then task Y arrives in the first queue, and its producer wakes a worker, but that worker
 * finds X in the second queue. The rescan has seen neither task, and there was one wake-up for two
 * tasks. The second rescan sees Y.
 * DEFERRED is cleared only before a rescan. That rescan sees every task whose producer has read the
 * bit as set, because of the producer's fence in step 1 and the worker's fence after it has cleared
 * the bit. If the rescan sees a task, the worker sets DEFERRED again, since several wake-ups may
 * have been deferred. So while tasks are left, each worker that finds a task wakes the next worker,
 * until a worker finds no task.
 *
 * A started thread has no slot, because its on_start callback runs first. But a worker that had to
 * wake the next worker may have started this thread instead. So when the thread finds its first
 * task, it also tests all queues, and wakes another worker if a queue has a task
 * (awaiting_first_task).
 *
 * Edges         from                                 to                            carries
 *   idle.defer  full fence, fji_search_slot_take()   full fence, fji_idle_fence()      task, slot
 *   idle.defer  full fence, fji_search_slot_take()   full fence,                   task, DEFERRED
 *                                                    fji_search_rescan()
 *   idle.defer  full fence, fji_search_slot_take()   full fence, wake_with_slot()  ctl, slot
 *
 * Model: test/model/idle.pml.
 */
#ifndef FJI_SEARCH_H
#define FJI_SEARCH_H

#include "sched/pool.h"

/* Any thread may call the functions with the parameter p. Only the thread of w may call the
 * functions with the parameter w. */

/*
 * Takes a searching slot for a worker that the caller is about to wake, and returns true. c is the
 * control word in which the caller saw an idle worker. If enough slots are in use, takes none, sets
 * FJI_WAKE_DEFERRED and returns false: the caller then wakes no worker and leaves its wake-up to
 * the workers that hold a slot. Enough is 1 for a thread outside p. For a worker or guest of p it
 * is half of the active workers, but at least FJI_SEARCH_MIN and at most FJI_SEARCH_MAX.
 */
bool fji_search_slot_take(fj_pool *p, uint64_t c);

/* Gives a searching slot back to p: one slot less is in use. Returns whether FJI_WAKE_DEFERRED is
 * set. If it is, a producer may have left its wake-up to the worker with this slot, and the caller
 * has to make the wake-up or a rescan. */
bool fji_search_slot_return(fj_pool *p);

/* Called by a worker that has found a task. Gives its searching slot back and returns true, unless
 * FJI_WAKE_DEFERRED is set and no other slot is in use. In that case the caller keeps the slot and
 * has to make the wake-up. If other slots are in use, the
 * workers that hold them make the wake-up. */
bool fji_search_slot_return_unless_last(fj_pool *p);

/* Returns whether FJI_WAKE_DEFERRED is set: a producer has left its wake-up to the workers that
 * hold a searching slot. The answer may be out of date. */
bool fji_search_is_deferred(const fj_pool *p);

/* Returns the number of searching slots in use. It may be out of date. */
uint32_t fji_search_slots(const fj_pool *p);

/* Called when w has found no task and would like to spin. Takes a searching slot for w if w has
 * none, unless max_spinners or more slots are in use. Returns true if w has a slot now and may
 * continue to search, otherwise false. max_spinners is half of the number of CPUs, rounded down. */
bool fji_search_begin(fji_worker *w);

/* Gives the searching slot of w back, if w has one. Called before w becomes idle; the rescan of w
 * then covers the wake-ups that producers have left to w. Also called before w exits because the
 * pool stops; no wake-up is needed then. */
void fji_search_end(fji_worker *w);

/* The rescan of a worker that becomes idle. Called after the push and the fences of idle.h. Returns
 * whether a queue may have a task. The rescan sees every task whose wake-up was deferred before the
 * call, unless another worker has taken it. Clears FJI_WAKE_DEFERRED if no queue has a task. If it
 * returns true, the caller wakes one worker. */
bool fji_search_rescan(fj_pool *p);

#endif /* FJI_SEARCH_H */
