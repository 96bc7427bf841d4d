/* SPDX-License-Identifier: MIT */
/*
 * idle.h - a worker that finds no task becomes idle: it sleeps until another thread wakes it
 *
 * The idle protocol is explained in three steps, each in its own file. This is the first step: the
 * handshake of one producer and one worker. A small pool needs no more. search.h adds what a large
 * pool needs, and retire.h explains how idle workers exit. wake.h explains what a waking thread
 * does.
 *
 * The problem. A worker that finds no task sleeps. A producer, that is, a thread that queues a
 * task, wakes a sleeping worker. Suppose that the worker checks the queues just before the task
 * arrives, and that the producer checks for idle workers just before the worker becomes idle. Then
 * neither sees the other: the task stays queued while the worker sleeps. A full fence on both sides
 * prevents this, but it would make every fork more expensive. So the producer executes only the
 * light fence, a compiler barrier. The worker, which has nothing to do, executes the heavy fence: a
 * full fence on every core that runs a thread of the process (membarrier).
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
 * is LOCKED or its base word changes, it assumes that the queue has a task. If a queue has a task,
 * the worker calls fji_wake_one() as a producer does, and then sleeps until its own park word is
 * ACTIVE. fji_wake_one() may wake this worker or another idle worker. The woken worker scans all
 * queues.
 *
 * Each rescan counts. Suppose that two tasks are queued while no worker is idle, so the producers
 * wake no worker. Then two workers become idle. Each of the two rescans wakes one worker, unless no
 * task is queued any more at that time. If one of the two workers skipped its rescan, only one
 * worker would be woken for two tasks. The other task would stay queued while a worker sleeps.
 *
 * The park word
 *     ACTIVE -> IDLE -> PARKED      changed by the worker itself: to IDLE before its push, to
 *                                   PARKED before it sleeps
 *     IDLE or PARKED -> ACTIVE      changed by the thread that has popped the worker from the idle
 *                                   stack. It makes a system call only if the word was PARKED. A
 *                                   worker that retires pops itself and needs no system call
 *     PARKED -> IDLE                changed by another worker that retires. The sleeping worker
 *                                   wakes up and computes its own deadline again (retire.h)
 *     ACTIVE -> QUIET -> ACTIVE     not part of this protocol: a thread waits for quiescence, or a
 *                                   guest sleeps (fji_quiesce_turn())
 *
 * One heavy fence for several workers. A heavy fence interrupts every core that runs a thread of
 * the process. So one fence serves all workers that have pushed themselves before it began, and all
 * workers that have begun to wait for a task before it began (compensate.c). While
 * other workers are active, the next fence begins at least FJI_FENCE_GAP_NS after the last one
 * began, but only if `fence_waits` of the pool is true (see below). The fences are numbered. The
 * worker that executes one is its leader:
 *
 *     worker                                           leader, one of these workers
 *     push itself; full fence; n = fence_begun         CAS fence_next: now + gap
 *     wait until fence_done > n, or until it leads,    fence_begun + 1; heavy fence;
 *     or until park is ACTIVE                          fence_done = the number of this fence
 *
 * A fence with a number above n began after the worker had read fence_begun, and so after its push.
 * If no worker is active, a heavy fence costs little, and the next one may begin at once. Workers
 * wait for each other's fences only if `fence_waits` is true: when the pool was created, spin_ns
 * was above 0 and the parallelism was at most the number of CPUs. Otherwise each worker leads at
 * once.
 *
 * A worker that waits for a heavy fence is on the idle stack already, and a producer can make it
 * active without a system call. The worker then has not made its rescan. It sets rescan_owed, and
 * makes the rescan when it finds a task, or at the latest when it becomes idle again.
 *
 * Quiescence. A rescan may call fji_wake_one() when another worker has already run the task that
 * the rescan saw. Then a worker of a pool without tasks becomes active for a short time. So
 * `rescanning` of the rescanning worker is 1 from before its push until after its call of
 * fji_wake_one(). A pool counts as quiescent only if `rescanning` is 0 for all workers. Therefore a
 * quiescent pool stays quiescent until a task is queued.
 *
 * Edges          from                              to                            carries
 *   idle.dekker  light fence, fj_fork()            heavy fence, idle_lead()      task, ctl
 *   ctl.idle     acq_rel CAS, idle_push()          acquire, fji_pool_ctl()       next_idle, park
 *   idle.fence   full fence, fji_idle_fence()          acq_rel add, idle_lead()      push, number
 *   idle.fence   acq_rel CAS, idle_lead()          acquire, fji_idle_fence()         the heavy fence
 *   idle.park    acq_rel swap, worker_unpark()     acquire load, idle_sleep()    what the waker did
 *   idle.rescan  release store, fji_idle_wait()    acquire, quiesce_worker()     its wake-up
 *
 * Models: test/model/idle.pml, test/model/idle_aba.pml. Explained with figures in
 * docs/design/idle.md.
 */
#ifndef FJI_IDLE_H
#define FJI_IDLE_H

#include "sched/pool.h"

/* Ends the wait in fji_idle_fence(): if `set`, as soon as a bit of `mask` is set in *word,
 * otherwise as soon as none is set. */
typedef struct fji_fence_stop {
    const uint32_t *word;
    uint32_t mask;
    bool set;
} fji_fence_stop;

/* Step 2 of the handshake above, also called by a worker that blocks (compensate.c). The caller has
 * left the active count of p. Waits until a heavy fence has begun and ended since then, or executes
 * one, and returns true. Returns false as soon as *stop ends the wait. In a pool without the heavy
 * fence, executes a full fence and returns true. */
bool fji_idle_fence(fj_pool *p, const fji_fence_stop *stop);

/*
 * Called by w, which counts as active, if it has found no task or if more workers are active than
 * the parallelism. Gives the searching slot of w back, if w has one, pushes w onto the idle stack,
 * makes the rescan, ends the pool if it is shut down and can end, and sleeps. Returns true if
 * another thread has made w active again; if this happens before the rescan, w does not make the
 * rescan now but owes it (rescan_owed). Returns false if w has retired: w is off the idle stack and
 * has to exit.
 */
bool fji_idle_wait(fji_worker *w);

#endif /* FJI_IDLE_H */
