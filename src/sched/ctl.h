/* SPDX-License-Identifier: MIT */
/*
 * ctl.h - the pool's control word
 *
 * All that a signaller must know is in one word, so that one CAS moves the pool from
 * a legal state to the next, and "somebody can be woken or started" is its sign.
 *
 *      63     62         47 46        32 31            15 14          0
 *     +------+-------------+------------+----------------+-------------+
 *     | call |   deficit   |   total    |    version     |  top idle   |
 *     +------+-------------+------------+----------------+-------------+
 *       see     active minus   threads     +1 whenever a    worker index
 *       C4      parallelism,   alive       worker goes      + 1, or 0
 *               signed                     idle
 *
 * A worker is active while it searches or runs: not while it is on the idle stack, and not
 * while it is blocked. Blocked workers are counted beside this word (`blocked` of the pool),
 * because the pool may have that many threads more.
 *
 * Invariants at rest
 *   C1  total == threads alive; deficit == active - parallelism.
 *   C2  the idle stack (top idle, then next_idle of each) holds every idle worker once.
 *   C3  version changes with every push, so a stale CAS that pops fails.
 *   C4  call == fewer are active than there should be, and one is idle or may be started.
 *       Without the second part a pool with blocked workers would send every fork off the
 *       fast path for nothing. Every transition ends in fji_ctl_normalize().
 *
 * Transitions: these and no others. Each field is changed by its own function: no carry
 * or borrow runs from one into the next.
 *   idle        worker       active-1, version+1, push self        idle.c
 *   wake        signaller    active+1, pop top                     idle.c
 *   spawn       signaller    active+1, total+1                     idle.c
 *   block       blocker      active-1, after blocked+1             compensate.c
 *   unblock     blocker      active+1, after blocked-1             compensate.c
 *   unspawn     creator      active-1, total-1: no thread came     idle.c
 *   trim        worker       pop self: kept too long, about to end idle.c
 *   exit        worker       active-1 unless trimmed, total-1      worker.c
 *   resize      anybody      deficit by the difference             pool.c
 *
 * Edges         from                     to                    carries
 *   ctl.idle    acq_rel CAS, idle        acq_rel CAS, wake     next_idle, park
 *   idle.dekker light fence, fj_fork()   heavy fence, fji_idle_wait()  cell against ctl
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

/* Nobody there, nobody wanted. */
#define FJI_CTL_NONE ((uint64_t)FJI_START_VERSION << FJI_CTL_VERSION_SHIFT)

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

/* How many threads a pool may have. */
typedef struct fji_sizes {
    int parallelism; /* active workers aimed at */
    int blocked;     /* workers that are blocked */
    int most;        /* threads */
} fji_sizes;

/* Whether a thread may be added: fewer than `parallelism` are not blocked. */
static inline bool fji_ctl_may_spawn(uint64_t c, const fji_sizes *s)
{
    int total = fji_ctl_total(c);

    return total < s->parallelism + s->blocked && total < s->most;
}

/* The same with `call` as it has to be. */
static inline uint64_t fji_ctl_normalize(uint64_t c, const fji_sizes *s)
{
    bool call = fji_ctl_deficit(c) < 0 && (fji_ctl_top(c) != 0 || fji_ctl_may_spawn(c, s));
    return call ? c | FJI_CTL_WAKE_WANTED : c & ~FJI_CTL_WAKE_WANTED;
}

#endif /* FJI_CTL_H */
