/* SPDX-License-Identifier: MIT */
/*
 * ticks.h - a cheap clock of about nanoseconds
 *
 * For estimates of how long a piece of code takes, which may be wrong by a factor of 2.5. On x86-64
 * it is the time stamp counter of the processor, elsewhere the monotonic clock of the system.
 */
#ifndef FJI_TICKS_H
#define FJI_TICKS_H

#include <forkjoin/attr.h>
#include <stdint.h>

#if defined(__x86_64__)

/* Returns the current time. Only differences have a meaning. The counter runs at 2 to 5 GHz, so one
 * tick is 0.4 to 1 ns. */
FJI_INLINE uint64_t fji_ticks(void)
{
    return __builtin_ia32_rdtsc() >> 1;
}

#else

#include <time.h>

/* The same, in ns. */
FJI_INLINE uint64_t fji_ticks(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif

#endif /* FJI_TICKS_H */
