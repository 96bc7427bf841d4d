/* SPDX-License-Identifier: MIT */
/*
 * ticks.h - a cheap clock, whose unit is about a nanosecond
 *
 * The clock serves to estimate how long a piece of code takes. An estimate in nanoseconds may be
 * wrong by a factor of 2.5. On x86-64 the clock is the time stamp counter of the processor, on
 * other processors the monotonic clock of the system.
 */
#ifndef FJI_TICKS_H
#define FJI_TICKS_H

#include <forkjoin/attr.h>
#include <stdint.h>

#if defined(__x86_64__)

/* Returns the current time in ticks. Only the difference of two results has a meaning. A tick is
 * two periods of the counter, which runs at 2 to 5 GHz, so a tick is 0.4 to 1 ns. */
FJI_INLINE uint64_t fji_ticks(void)
{
    return __builtin_ia32_rdtsc() >> 1;
}

#else

#include <time.h>

/* Returns the current time, ns. Only the difference of two results has a meaning. */
FJI_INLINE uint64_t fji_ticks(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif

#endif /* FJI_TICKS_H */
