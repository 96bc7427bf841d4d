/* SPDX-License-Identifier: MIT *
 * This is the third step of the idle protocol. Only the worker on top of the idle stack sleeps with a
 * deadline, and only if the pool has nothing to do or too many threads. So an idle pool has one timed sleep
 * in all. If the worker is still on top when its keep-alive time has passed, one CAS takes it off the stack
 * and it exits; then the worker below it computes its deadline again:
 *
 *     leaving worker (fji_retire)              worker below it (idle_sleep)
 *     CAS ctl: the one below is on top         park = PARKED
 *     full fence                               full fence
 *     park is PARKED: set IDLE and wake it     reads ctl: on top? then it sleeps with a deadline
 *
 * A leaving worker counts as a thread until its on_stop callback has returned. A task that is queued in that
 * time can neither wake nor replace it. So it checks the queues once more after it has given its count back
 * (worker_main()).
 *
 * Edges          from                               to                        carries
 *   idle.retire  full fence, retire_reconsider()    full fence, idle_sleep()  ctl against park
 *
 * This is the third step of the idle protocol. Only the worker on top of the idle stack sleeps with a
 * deadline, and only if the pool has nothing to do or too many threads. So an idle pool has one timed sleep
 * in all. If the worker is still on top when its keep-alive time has passed, one CAS takes it off the stack
 * and it exits; then the worker below it computes its deadline again:
 *
 *     leaving worker (fji_retire)              worker below it (idle_sleep)
 *     CAS ctl: the one below is on top         park = PARKED
 *     full fence                               full fence
 *     park is PARKED: set IDLE and wake it     reads ctl: on top? then it sleeps with a deadline
 *
 * A leaving worker counts as a thread until its on_stop callback has returned. A task that is queued in that
 * time can neither wake nor replace it. So it checks the queues once more after it has given its count back
 * (worker_main()).
 *
 * Edges          from                               to                        carries
 *   idle.retire  full fence, retire_reconsider()    full fence, idle_sleep()  ctl against park
 *
 * This is the third step of the idle protocol. Only the worker on top of the idle stack sleeps with a
 * deadline, and only if the pool has nothing to do or too many threads. So an idle pool has one timed sleep
 * in all. If the worker is still on top when its keep-alive time has passed, one CAS takes it off the stack
 * and it exits; then the worker below it computes its deadline again:
 *
 *     leaving worker (fji_retire)              worker below it (idle_sleep)
 *     CAS ctl: the one below is on top         park = PARKED
 *     full fence                               full fence
 *     park is PARKED: set IDLE and wake it     reads ctl: on top? then it sleeps with a deadline
 *
 * A leaving worker counts as a thread until its on_stop callback has returned. A task that is queued in that
 * time can neither wake nor replace it. So it checks the queues once more after it has given its count back
 * (worker_main()).
 *
 * Edges          from                               to                        carries
 *   idle.retire  full fence, retire_reconsider()    full fence, idle_sleep()  ctl against park
 */
/*
 * retire.h - idle workers that leave for lack of work
 */
#ifndef FJI_RETIRE_H
#define FJI_RETIRE_H

#include "sched/pool.h"

/* Until when w may sleep: FJ_FOREVER unless it is on top of the idle stack and the pool can do without
 * it. */
int64_t fji_retire_deadline(fji_worker *w);

/* Takes w off the idle stack if it is on top of it. The worker below it then gets a deadline. */
bool fji_retire(fji_worker *w);

#endif /* FJI_RETIRE_H */
