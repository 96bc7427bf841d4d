/* SPDX-License-Identifier: MIT */
/*
 * ticks.h - time in roughly nanoseconds, at the price of a few instructions
 *
 * For estimates of how long something takes, which may be wrong by a factor of two. The counter
 * of the processor where it runs at a known order of magnitude, else the clock.
 */
#ifndef FJI_TICKS_H
#define FJI_TICKS_H

#include <forkjoin/attr.h>
#include <stdint.h>

#if defined(__x86_64__)

/* 2 to 5 GHz on all that exist. */
FJI_INLINE uint64_t fji_ticks(void)
{
    return __builtin_ia32_rdtsc() >> 1;
}

#else

#include <time.h>

FJI_INLINE uint64_t fji_ticks(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif

#endif /* FJI_TICKS_H */
