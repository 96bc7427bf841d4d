/* SPDX-License-Identifier: MIT */
/*
 * idle.h - a worker that finds no task becomes idle: it sleeps until another thread wakes it
 *
 * The idle protocol is explained in three steps, each in its own file. This is the first step: the
 * handshake of one producer and one worker. A small pool needs no more. search.h adds what a large
 * pool needs, and retire.h explains how idle workers exit. wake.h is the side of the waking thread.
 *
 * The problem. A worker that finds no task sleeps. A producer is a thread that queues a task; it
 * wakes a sleeping worker. Suppose that the worker checks the queues just before the task arrives,
 * and that the producer checks for idle workers just before the worker becomes idle. Then each
 * misses the other: the task stays queued while the worker sleeps. A full fence on both sides
 * prevents this, but it would make every fork more expensive. So the producer executes only the
 * light fence, a compiler barrier. The worker, which has nothing to do, executes the heavy fence:
 * a full fence on every core that runs a thread of the process (membarrier).
 *
 * The handshake. The wake-up bit is the sign of the control word (FJI_CTL_WAKE_WANTED in ctl.h).
 *
 *     producer (fj_fork)                   worker (fji_idle_wait)
 *     1 store the task into a cell         1 park = IDLE; CAS ctl: push itself, active - 1
 *     2 light fence                        2 heavy fence
 *     3 wake-up bit set: fji_wake_one()    3 rescan all queues; one has a task: fji_wake_one()
 *                                          4 CAS park: IDLE -> PARKED; sleep until park is ACTIVE
 *
 * On the producer's core the heavy fence takes effect either before or after the producer's step 2.
 *   - Before: the producer reads the control word after the worker's step 1. It sees that a worker
 *     is idle.
 *   - After: the producer's step 1 is visible to the rescan. The rescan sees the task.
 * In a pool without the heavy fence (`asymmetric` is false) both sides execute a full fence. Every
 * fork then calls fji_wake_slow(), which executes it.
 *
 * The rescan only tests the queues and takes no task. If it cannot judge a queue, because the queue
 * is LOCKED or its base word changes, it assumes a task there. If a queue has a task, the worker
 * calls fji_wake_one() as a producer does, and then sleeps until its own park word is ACTIVE. That
 * call may wake this worker or another idle worker. The woken worker scans all queues.
 *
 * Each rescan counts. Suppose that two tasks are queued while no worker is idle, so the producers
 * wake no worker. Then two workers become idle. Each of the two rescans wakes one worker, unless
 * no task is left by then. If one of the workers skipped its rescan, only one worker would be
 * woken for two tasks, and the other task would stay queued beside a sleeping worker.
 *
 * The park word
 *     ACTIVE -> IDLE -> PARKED      the worker itself: before its push, and before it sleeps
 *     IDLE or PARKED -> ACTIVE      the thread that has popped the worker from the idle stack; it
 *                                   calls the system only if the word was PARKED
 *     PARKED -> IDLE                a retiring worker: the sleeper computes its deadline again
 *
 * One heavy fence for several workers. A heavy fence interrupts every core that runs a thread of
 * the process. So one fence serves all workers that have pushed themselves before it began. While
 * other workers are active, the next fence begins at least FJI_FENCE_GAP_NS after the last one. The
 * fences are numbered. The worker that executes one is its leader:
 *
 *     worker                                           leader, one of these workers
 *     push itself; full fence; n = fence_begun         CAS fence_next: now + gap
 *     wait until fence_done > n, or until it leads,    fence_begun + 1; heavy fence;
 *     or until park is ACTIVE                          fence_done = the number of this fence
 *
 * A fence with a number above n began after the worker had read fence_begun, and so after its push.
 * If no worker is active, a heavy fence costs little, and the next one may begin at once. Workers
 * wait for each other's fences only if the pool spins and its parallelism is at most the number of
 * cores (`fence_waits`); otherwise each worker leads at once.
 *
 * A worker that waits here is on the idle stack already, and a producer can wake it without a
 * system call. It has then not made its rescan. The worker remembers that (rescan_owed) and makes
 * the rescan when it finds a task, or at the latest when it becomes idle again.
 *
 * Quiescence. A rescan may call fji_wake_one() when another worker has already run the task that
 * the rescan saw. Then a worker of a pool without tasks becomes active for a short time. So
 * `rescanning` of the worker is 1 from before the push until after that call, and a pool counts as
 * quiescent only if `rescanning` is 0 for all workers. A quiescent pool therefore stays quiescent
 * until it is given work.
 *
 * Edges          from                              to                            carries
 *   idle.dekker  light fence, fj_fork()            heavy fence, idle_lead()      task, ctl
 *   ctl.idle     acq_rel CAS, idle_push()          acquire, fji_pool_ctl()       next_idle, park
 *   idle.fence   full fence, idle_fence()          acq_rel add, idle_lead()      push, number
 *   idle.fence   acq_rel CAS, idle_lead()          acquire, idle_fence()         the heavy fence
 *   idle.park    acq_rel swap, worker_unpark()     acquire load, idle_sleep()    what the waker did
 *   idle.rescan  release store, fji_idle_wait()    acquire, quiesce_worker()     its wake-up
 *
 * Models: test/model/idle.pml, test/model/idle_aba.pml. Explained with figures in
 * docs/design/idle.md.
 */
#ifndef FJI_IDLE_H
#define FJI_IDLE_H

#include "sched/pool.h"

/*
 * Pushes w onto the idle stack and sleeps. Called by the thread of w if it has found no task, or if
 * more workers are active than the parallelism. Until then w counts as active. Returns true if
 * another thread has made w active again. Returns false if w has retired: it is off the stack and
 * has to exit.
 */
bool fji_idle_wait(fji_worker *w);

#endif /* FJI_IDLE_H */
