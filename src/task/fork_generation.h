/* SPDX-License-Identifier: MIT */
/*
 * fork_generation.h - how many calls of fork() lie between this process and the first one
 *
 * A submitted task stores the generation in which it was queued (fj_task.location). After a fork()
 * the child process increments the generation. So the child recognises a task that was queued in
 * the parent process: it is orphaned, because no thread of the child will run it.
 */
#ifndef FJI_FORK_GENERATION_H
#define FJI_FORK_GENERATION_H

#include "plat/atomic.h"
#include "queue/item.h"

/* Written only in the child process, before it has a second thread. */
extern uint32_t fji_fork_generation;

/* Returns the generation, shifted to its bits in fj_task.location. */
static inline uint32_t fji_location_stamp(void)
{
    return (fji_fork_generation & FJI_LOCATION_GENERATION) << FJI_LOCATION_GENERATION_SHIFT;
}

/* Returns whether t, which was submitted and is not done, was queued in an ancestor of this
 * process. */
static inline bool fji_task_is_orphaned(const fj_task *t)
{
    /* relaxed: the generation is written before a thread can wait for t; other bits are not used */
    uint32_t queued = fji_load_relaxed(&t->location) >> FJI_LOCATION_GENERATION_SHIFT;

    return (queued & FJI_LOCATION_GENERATION) != (fji_fork_generation & FJI_LOCATION_GENERATION);
}

#endif /* FJI_FORK_GENERATION_H */
