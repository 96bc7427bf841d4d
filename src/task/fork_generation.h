/* SPDX-License-Identifier: MIT */
/*
 * fork_generation.h - how many calls of fork() lie between this process and the first one
 *
 * A submitted task stores the generation in which it was queued (fj_task.location). After a fork()
 * the child process increments the generation, so a task that was queued in the parent process can
 * be recognised: no thread of the child has it, and it is orphaned.
 */
#ifndef FJI_FORK_GENERATION_H
#define FJI_FORK_GENERATION_H

#include "plat/atomic.h"
#include "queue/item.h"

/* Written only in the child process, before it has a second thread. */
extern uint32_t fji_fork_generation;

/* The generation, as a part of fj_task.location. */
static inline uint32_t fji_location_stamp(void)
{
    return (fji_fork_generation & FJI_LOCATION_GENERATION) << FJI_LOCATION_GENERATION_SHIFT;
}

/* Whether t, which was submitted and is not done, was queued in the parent process. */
static inline bool fji_task_is_orphaned(const fj_task *t)
{
    /* relaxed: only the generation is used, and it is written before a thread can wait for t. */
    uint32_t queued = fji_load_relaxed(&t->location) >> FJI_LOCATION_GENERATION_SHIFT;

    return (queued & FJI_LOCATION_GENERATION) != (fji_fork_generation & FJI_LOCATION_GENERATION);
}

#endif /* FJI_FORK_GENERATION_H */
