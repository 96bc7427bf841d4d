/* SPDX-License-Identifier: MIT *
 * A producer that queues a task and a worker that becomes idle must not miss each other:
 *
 *     producer (fj_fork)                      worker (fji_idle_wait)
 *     1 store the task into a cell            1 park = IDLE; CAS ctl: push itself, active - 1
 *     2 light fence (or an atomic RMW)        2 heavy fence
 *     3 ctl < 0: fji_wake_one()               3 rescan all queues; a task: fji_wake_one()
 *                                             4 park: IDLE -> PARKED, sleep until ACTIVE
 *
 * The heavy fence takes effect on the producer's CPU before or after the producer's step 2. If before,
 * the producer reads the control word after the worker's step 1 and sees that a worker is idle. If after,
 * the task is visible to the worker's rescan. A queue that the rescan cannot judge (LOCKED, or base
 * changes) counts as a queue with a task.
 *
 * The rescan does not run the task. It calls fji_wake_one() as a producer does, and the worker then
 * sleeps until its own park word is ACTIVE. fji_wake_one() may wake this worker or another one; either
 * scans all queues.
 *
 * park: ACTIVE -> IDLE -> PARKED by the worker; -> ACTIVE by the thread that has popped the worker from
 * the idle stack. That thread calls the system only if the word was PARKED.
 *
 * One heavy fence for several workers. The heavy fence interrupts every CPU that runs a thread of the
 * process. So one fence serves all workers that have pushed themselves before it began, and while other
 * workers run, the next one begins only after FJI_FENCE_GAP_NS:
 *
 *     worker                                        worker that leads
 *     push; full fence; n = fence_begun             CAS fence_next: now + gap
 *     waits until fence_done > n, or leads,         fence_begun + 1; heavy fence;
 *     or is made ACTIVE                             fence_done = that number
 *
 * A worker that waits here is on the idle stack and is woken without a system call. It has then skipped
 * its rescan (rescan_owed): it rescans when it has found a task, or at the latest when it becomes idle
 * again.
 *
 * A rescan may call fji_wake_one() after another worker has run the task that it saw. `rescanning` is 1
 * from before the push until after that call, and a pool is quiescent only if it is 0 for all workers. So
 * a quiescent pool stays quiescent until it is given work.
 *
 * search.h adds what large pools need, retire.h how idle workers leave.
 *
 * Edges          from                               to                             carries
 *   idle.dekker  light fence in fj_fork()           heavy fence in idle_lead()     cell against ctl
 *   ctl.idle     acq_rel CAS, idle_push()           acquire, fji_pool_ctl()        next_idle, park
 *   idle.fence   full fence, idle_fence()           acq_rel add, idle_lead()       push against begun
 *   idle.park    acq_rel swap, worker_unpark()      acquire load, idle_sleep()     what the waker did
 *   idle.rescan  release store, fji_idle_wait()     acquire, quiesce_worker()      the rescan's wake-up
 *
 * Models: test/model/idle.pml, test/model/idle_aba.pml.
 *
 * A producer that queues a task and a worker that becomes idle must not miss each other:
 *
 *     producer (fj_fork)                      worker (fji_idle_wait)
 *     1 store the task into a cell            1 park = IDLE; CAS ctl: push itself, active - 1
 *     2 light fence (or an atomic RMW)        2 heavy fence
 *     3 ctl < 0: fji_wake_one()               3 rescan all queues; a task: fji_wake_one()
 *                                             4 park: IDLE -> PARKED, sleep until ACTIVE
 *
 * The heavy fence takes effect on the producer's CPU before or after the producer's step 2. If before,
 * the producer reads the control word after the worker's step 1 and sees that a worker is idle. If after,
 * the task is visible to the worker's rescan. A queue that the rescan cannot judge (LOCKED, or base
 * changes) counts as a queue with a task.
 *
 * The rescan does not run the task. It calls fji_wake_one() as a producer does, and the worker then
 * sleeps until its own park word is ACTIVE. fji_wake_one() may wake this worker or another one; either
 * scans all queues.
 *
 * park: ACTIVE -> IDLE -> PARKED by the worker; -> ACTIVE by the thread that has popped the worker from
 * the idle stack. That thread calls the system only if the word was PARKED.
 *
 * One heavy fence for several workers. The heavy fence interrupts every CPU that runs a thread of the
 * process. So one fence serves all workers that have pushed themselves before it began, and while other
 * workers run, the next one begins only after FJI_FENCE_GAP_NS:
 *
 *     worker                                        worker that leads
 *     push; full fence; n = fence_begun             CAS fence_next: now + gap
 *     waits until fence_done > n, or leads,         fence_begun + 1; heavy fence;
 *     or is made ACTIVE                             fence_done = that number
 *
 * A worker that waits here is on the idle stack and is woken without a system call. It has then skipped
 * its rescan (rescan_owed): it rescans when it has found a task, or at the latest when it becomes idle
 * again.
 *
 * A rescan may call fji_wake_one() after another worker has run the task that it saw. `rescanning` is 1
 * from before the push until after that call, and a pool is quiescent only if it is 0 for all workers. So
 * a quiescent pool stays quiescent until it is given work.
 *
 * search.h adds what large pools need, retire.h how idle workers leave.
 *
 * Edges          from                               to                             carries
 *   idle.dekker  light fence in fj_fork()           heavy fence in idle_lead()     cell against ctl
 *   ctl.idle     acq_rel CAS, idle_push()           acquire, fji_pool_ctl()        next_idle, park
 *   idle.fence   full fence, idle_fence()           acq_rel add, idle_lead()       push against begun
 *   idle.park    acq_rel swap, worker_unpark()      acquire load, idle_sleep()     what the waker did
 *   idle.rescan  release store, fji_idle_wait()     acquire, quiesce_worker()      the rescan's wake-up
 *
 * Models: test/model/idle.pml, test/model/idle_aba.pml.
 *
 * A producer that queues a task and a worker that becomes idle must not miss each other:
 *
 *     producer (fj_fork)                      worker (fji_idle_wait)
 *     1 store the task into a cell            1 park = IDLE; CAS ctl: push itself, active - 1
 *     2 light fence (or an atomic RMW)        2 heavy fence
 *     3 ctl < 0: fji_wake_one()               3 rescan all queues; a task: fji_wake_one()
 *                                             4 park: IDLE -> PARKED, sleep until ACTIVE
 *
 * The heavy fence takes effect on the producer's CPU before or after the producer's step 2. If before,
 * the producer reads the control word after the worker's step 1 and sees that a worker is idle. If after,
 * the task is visible to the worker's rescan. A queue that the rescan cannot judge (LOCKED, or base
 * changes) counts as a queue with a task.
 *
 * The rescan does not run the task. It calls fji_wake_one() as a producer does, and the worker then
 * sleeps until its own park word is ACTIVE. fji_wake_one() may wake this worker or another one; either
 * scans all queues.
 *
 * park: ACTIVE -> IDLE -> PARKED by the worker; -> ACTIVE by the thread that has popped the worker from
 * the idle stack. That thread calls the system only if the word was PARKED.
 *
 * One heavy fence for several workers. The heavy fence interrupts every CPU that runs a thread of the
 * process. So one fence serves all workers that have pushed themselves before it began, and while other
 * workers run, the next one begins only after FJI_FENCE_GAP_NS:
 *
 *     worker                                        worker that leads
 *     push; full fence; n = fence_begun             CAS fence_next: now + gap
 *     waits until fence_done > n, or leads,         fence_begun + 1; heavy fence;
 *     or is made ACTIVE                             fence_done = that number
 *
 * A worker that waits here is on the idle stack and is woken without a system call. It has then skipped
 * its rescan (rescan_owed): it rescans when it has found a task, or at the latest when it becomes idle
 * again.
 *
 * A rescan may call fji_wake_one() after another worker has run the task that it saw. `rescanning` is 1
 * from before the push until after that call, and a pool is quiescent only if it is 0 for all workers. So
 * a quiescent pool stays quiescent until it is given work.
 *
 * search.h adds what large pools need, retire.h how idle workers leave.
 *
 * Edges          from                               to                             carries
 *   idle.dekker  light fence in fj_fork()           heavy fence in idle_lead()     cell against ctl
 *   ctl.idle     acq_rel CAS, idle_push()           acquire, fji_pool_ctl()        next_idle, park
 *   idle.fence   full fence, idle_fence()           acq_rel add, idle_lead()       push against begun
 *   idle.park    acq_rel swap, worker_unpark()      acquire load, idle_sleep()     what the waker did
 *   idle.rescan  release store, fji_idle_wait()     acquire, quiesce_worker()      the rescan's wake-up
 *
 * Models: test/model/idle.pml, test/model/idle_aba.pml.
 */
/*
 * idle.h - a worker that has found nothing sleeps until it is woken
 */
#ifndef FJI_IDLE_H
#define FJI_IDLE_H

#include "sched/pool.h"

/* Puts w on the idle stack and sleeps. Returns true if a thread has made w active again, and false if w
 * has retired: it has left the stack in order to exit. */
bool fji_idle_wait(fji_worker *w);

#endif /* FJI_IDLE_H */
