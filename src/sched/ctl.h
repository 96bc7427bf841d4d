/* SPDX-License-Identifier: MIT */
/*
 * ctl.h - the control word of a pool: how many workers are active, and which are idle
 *
 * A thread that has queued a task has to know whether to wake or start a worker. Everything that it
 * needs is in one word. So one CAS changes the pool from one legal state to another, and a fork
 * only checks the sign of the word: it is negative if a worker is wanted and can be woken or
 * started.
 *
 *      63     62         47 46        32 31            15 14          0
 *     +------+-------------+------------+----------------+-------------+
 *     | wake |   deficit   |   total    |    version     |  top idle   |
 *     +------+-------------+------------+----------------+-------------+
 *      WAKE_  active minus  threads      +1 whenever a    index + 1 of the
 *      WANTED parallelism,  alive        worker becomes   worker on top of the
 *             signed                     idle             idle stack, or 0
 *
 * A worker is active while it searches or runs a task. It is not active while it is on the idle
 * stack or blocked. Blocked workers are counted in fj_pool.blocked, not in this word. For each
 * blocked worker the pool may have one thread more.
 *
 * Invariants, while no transition is in progress
 *   C1  total == number of threads alive; deficit == active - parallelism.
 *   C2  The idle stack (top idle, then next_idle of each worker) holds every idle worker once.
 *   C3  version changes with every push on the idle stack. So the CAS of a pop fails if a worker
 *       was pushed after the popping thread had read the word.
 *   C4  WAKE_WANTED is set if and only if fewer workers are active than the parallelism, and a
 *       worker is idle or a thread may be started. Without the second condition, each fork in a
 *       pool with blocked workers would take the slow path and find no worker to wake. Every new
 *       value of the word is the result of fji_ctl_normalize().
 *
 * Transitions. There are no others. Each field is changed by its own function, so no carry or
 * borrow runs from one field into the next.
 *   idle      worker               active-1, version+1, push itself          idle.c
 *   wake      waking thread        active+1, pop the top                     wake.c
 *   spawn     starting thread      active+1, total+1                         spawn.c
 *   unspawn   starting thread      active-1, total-1: no thread was started  spawn.c
 *   block     blocking worker      active-1, after fj_pool.blocked+1         compensate.c
 *   unblock   blocking worker      active+1, after fj_pool.blocked-1         compensate.c
 *   retire    idle worker          pop itself; "exit" follows                retire.c
 *   exit      worker               active-1 unless it has retired, total-1   worker.c
 *   resize    any thread           deficit changes with the parallelism      pool/create.c
 *
 * Edges          from                         to                           carries
 *   ctl.idle     acq_rel CAS, idle_push()     acq_rel CAS, wake_pop()      next_idle, park
 *   idle.dekker  light fence, fj_fork()       heavy fence, idle_lead()     cell against ctl
 *
 * idle.h explains how workers become idle and are woken.
 */
#ifndef FJI_CTL_H
#define FJI_CTL_H

#include <forkjoin.h>
#include <stdbool.h>

#include "plat/config.h"

#define FJI_CTL_DEFICIT_SHIFT 47
#define FJI_CTL_TOTAL_SHIFT 32
#define FJI_CTL_TOTAL_BITS 15
#define FJI_CTL_VERSION_SHIFT 15
#define FJI_CTL_VERSION_BITS 17
#define FJI_CTL_TOP_BITS 15

#define FJI_CTL_WAKE_WANTED ((uint64_t)1 << 63)
#define FJI_CTL_DEFICIT_MASK ((uint64_t)0xffff << FJI_CTL_DEFICIT_SHIFT)
#define FJI_CTL_TOTAL_MASK ((((uint64_t)1 << FJI_CTL_TOTAL_BITS) - 1) << FJI_CTL_TOTAL_SHIFT)
#define FJI_CTL_VERSION_MASK ((((uint64_t)1 << FJI_CTL_VERSION_BITS) - 1) << FJI_CTL_VERSION_SHIFT)
#define FJI_CTL_TOP_MASK (((uint64_t)1 << FJI_CTL_TOP_BITS) - 1)

/* A control word in which every field but the version is 0: no thread is alive, no worker is idle,
 * WAKE_WANTED is clear, and the deficit is 0. The thread that creates or resets a pool then sets
 * the deficit. */
#define FJI_CTL_NONE ((uint64_t)FJI_START_VERSION << FJI_CTL_VERSION_SHIFT)

/* Each of these functions returns one field of the control word c. fji_ctl_top() returns 0 if no
 * worker is idle. */
static inline int fji_ctl_deficit(uint64_t c)
{
    return (int)(int16_t)(uint16_t)(c >> FJI_CTL_DEFICIT_SHIFT);
}

static inline int fji_ctl_total(uint64_t c)
{
    return (int)((c & FJI_CTL_TOTAL_MASK) >> FJI_CTL_TOTAL_SHIFT);
}

static inline uint32_t fji_ctl_version(uint64_t c)
{
    return (uint32_t)((c & FJI_CTL_VERSION_MASK) >> FJI_CTL_VERSION_SHIFT);
}

static inline uint32_t fji_ctl_top(uint64_t c)
{
    return (uint32_t)(c & FJI_CTL_TOP_MASK);
}

/* Each of these functions returns the control word c with one field changed: n is added to the
 * active workers or to the threads, the version is incremented, or the top of the idle stack is
 * replaced by `top`. WAKE_WANTED keeps its value; see fji_ctl_normalize(). */
static inline uint64_t fji_ctl_add_active(uint64_t c, int n)
{
    uint16_t deficit = (uint16_t)(fji_ctl_deficit(c) + n);
    return (c & ~FJI_CTL_DEFICIT_MASK) | deficit * ((uint64_t)1 << FJI_CTL_DEFICIT_SHIFT);
}

static inline uint64_t fji_ctl_add_total(uint64_t c, int n)
{
    uint64_t total = ((uint64_t)(int64_t)(fji_ctl_total(c) + n) << FJI_CTL_TOTAL_SHIFT);
    return (c & ~FJI_CTL_TOTAL_MASK) | (total & FJI_CTL_TOTAL_MASK);
}

static inline uint64_t fji_ctl_new_version(uint64_t c)
{
    uint64_t version = (c + ((uint64_t)1 << FJI_CTL_VERSION_SHIFT)) & FJI_CTL_VERSION_MASK;
    return (c & ~FJI_CTL_VERSION_MASK) | version;
}

static inline uint64_t fji_ctl_with_top(uint64_t c, uint32_t top)
{
    return (c & ~FJI_CTL_TOP_MASK) | (top & FJI_CTL_TOP_MASK);
}

/* The numbers outside the control word that limit the threads of a pool. */
typedef struct fji_sizes {
    int parallelism; /* how many workers should be active (the target) */
    int blocked;     /* how many workers are blocked */
    int most;        /* how many threads the pool may have at most (max_threads) */
} fji_sizes;

/* Returns whether a thread may be added to a pool with the control word c and the sizes *s: it has
 * fewer than `most` threads, and the number of its threads that are not blocked is below
 * `parallelism`. */
static inline bool fji_ctl_may_spawn(uint64_t c, const fji_sizes *s)
{
    int total = fji_ctl_total(c);

    return total < s->parallelism + s->blocked && total < s->most;
}

/* Returns the control word c with WAKE_WANTED set if fewer workers are active than the parallelism,
 * and a worker is idle or a thread may be added. Otherwise returns c with WAKE_WANTED cleared. */
static inline uint64_t fji_ctl_normalize(uint64_t c, const fji_sizes *s)
{
    bool wanted = fji_ctl_deficit(c) < 0 && (fji_ctl_top(c) != 0 || fji_ctl_may_spawn(c, s));
    return wanted ? c | FJI_CTL_WAKE_WANTED : c & ~FJI_CTL_WAKE_WANTED;
}

#endif /* FJI_CTL_H */
