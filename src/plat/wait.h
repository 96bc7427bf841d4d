/* SPDX-License-Identifier: MIT */
/*
 * wait.h - the deadline of a wait, and the pause of a spin loop
 */
#ifndef FJI_WAIT_H
#define FJI_WAIT_H

#include "plat/atomic.h"
#include "plat/plat.h"

/* Returns the deadline of a wait of at most timeout_ns: a time of fji_plat_now(). Returns the
 * current time if timeout_ns is not positive, and FJ_FOREVER if the sum would overflow. */
static inline int64_t fji_deadline(int64_t timeout_ns)
{
    int64_t now = fji_plat_now();

    if (timeout_ns <= 0) return now;
    return timeout_ns > FJ_FOREVER - now ? FJ_FOREVER : now + timeout_ns;
}

/* Called in each iteration of a spin loop. Executes `pauses` pause instructions. Every
 * yield_every-th call also yields the CPU, because the thread that the caller waits for may need
 * it. *turn counts the calls. */
static inline void fji_spin(uint32_t *turn, int pauses, uint32_t yield_every)
{
    for (int i = 0; i < pauses; i++) fji_pause();
    if (++*turn % yield_every == 0) fji_plat_yield();
}

#endif /* FJI_WAIT_H */
