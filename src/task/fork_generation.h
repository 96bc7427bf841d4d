/* SPDX-License-Identifier: MIT */
/*
 * fork_generation.h - how many calls of fork() lie between this process and its first ancestor
 *
 * A submitted task stores the generation in which it was queued (fj_task.location). After a fork()
 * the child process increments the generation. So a thread of the child process recognises a
 * task that was queued in the parent process. Such a task is orphaned: no thread of the child
 * process will run it. The tasks that the child process can still run get its new generation
 * (pool/atfork.c).
 */
#ifndef FJI_FORK_GENERATION_H
#define FJI_FORK_GENERATION_H

#include "plat/atomic.h"
#include "queue/item.h"

/* The fork generation of this process. It is written only in a child process after fork(), before
 * the child process has a second thread. */
extern uint32_t fji_fork_generation;

/* Returns the low 10 bits of the fork generation, shifted to their place in fj_task.location. */
static inline uint32_t fji_location_stamp(void)
{
    return (fji_fork_generation & FJI_LOCATION_GENERATION) << FJI_LOCATION_GENERATION_SHIFT;
}

/* Returns whether the task t is orphaned: queued in an ancestor of this process. t is a task that
 * was submitted, or a future or timer that was queued, and is not done. */
static inline bool fji_task_is_orphaned(const fj_task *t)
{
    /* relaxed: the generation of t is written before any thread can wait for t, and the other bits
     * of the word are not used here */
    uint32_t queued = fji_load_relaxed(&t->location) >> FJI_LOCATION_GENERATION_SHIFT;

    return (queued & FJI_LOCATION_GENERATION) != (fji_fork_generation & FJI_LOCATION_GENERATION);
}

#endif /* FJI_FORK_GENERATION_H */
