/* SPDX-License-Identifier: MIT */
/*
 * chaos.c - what a thread does at a chaos point; see chaos.h
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "atomic.h"
#include "nocancel.h"
#include "plat.h"

#if FJI_CHAOS

#undef __atomic_fetch_add /* a chaos point inside fji_chaos() would recurse without end */

/* The numbers of chaos points, out of 65536 on average, at which a thread pauses, yields and
 * sleeps. At the others it does nothing. */
#define CHAOS_PAUSES 4096u
#define CHAOS_YIELDS 128u
#define CHAOS_SLEEPS 1u

/* Bounds of the random time that a sleep at a chaos point takes, ns. */
#define CHAOS_SLEEP_MIN_NS 50000u
#define CHAOS_SLEEP_MAX_NS 1000000u

/* State of the random number generator (xorshift) of the calling thread. It is 0 before the first
 * chaos point of the thread. */
static __thread uint64_t chaos_state;

/* Returns the first value of chaos_state for the calling thread, never 0. It is computed from the
 * seed and the number of threads that have called this function before. */
static uint64_t chaos_begin(void)
{
    static uint64_t threads;
    const char *text = fji_plat_env("FORKJOIN_CHAOS_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : 1;
    uint64_t x = seed + __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) * 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) | 1;
}

static void chaos_sleep(uint64_t x)
{
    uint32_t range = CHAOS_SLEEP_MAX_NS - CHAOS_SLEEP_MIN_NS;
    struct timespec ts = {.tv_nsec = (long)(CHAOS_SLEEP_MIN_NS + x % range)};

    int old = fji_nocancel_begin();
    (void)nanosleep(&ts, NULL); /* if a signal ends the sleep early, the delay is shorter */
    fji_nocancel_end(old);
}

void fji_chaos(void)
{
    uint64_t x = chaos_state != 0 ? chaos_state : chaos_begin();

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    chaos_state = x;
    uint32_t dice = (uint32_t)(x >> 48);
    if (dice >= CHAOS_PAUSES + CHAOS_YIELDS + CHAOS_SLEEPS) return;
    int keep = errno;
    if (dice < CHAOS_PAUSES)
        for (uint64_t n = x % 32; n > 0; n--) fji_pause();
    else if (dice < CHAOS_PAUSES + CHAOS_YIELDS)
        sched_yield();
    else
        chaos_sleep(x % 1000003);
    errno = keep;
}

#else

typedef int chaos_is_empty; /* C does not allow an empty translation unit */

#endif
