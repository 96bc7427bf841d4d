/* SPDX-License-Identifier: MIT */
/*
 * wait.h - deadlines, and the pauses of a spinning thread
 */
#ifndef FJI_WAIT_H
#define FJI_WAIT_H

#include "plat/atomic.h"
#include "plat/plat.h"

/* The time timeout_ns from now: now if it is not positive, FJ_FOREVER if the sum overflows. */
static inline int64_t fji_deadline(int64_t timeout_ns)
{
    int64_t now = fji_plat_now();

    if (timeout_ns <= 0) return now;
    return timeout_ns > FJ_FOREVER - now ? FJ_FOREVER : now + timeout_ns;
}

/* One pause of a spin loop. Every yield_every-th call also yields the CPU, because the thread that the
 * caller waits for may need it. *turn counts the calls. */
static inline void fji_spin(uint32_t *turn, int pauses, uint32_t yield_every)
{
    for (int i = 0; i < pauses; i++) fji_pause();
    if (++*turn % yield_every == 0) fji_plat_yield();
}

#endif /* FJI_WAIT_H */
