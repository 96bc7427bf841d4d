/* SPDX-License-Identifier: MIT */
/*
 * chaos.h - random delays around accesses to shared memory, in FJI_CHAOS builds
 *
 * A race condition whose window is a few instructions long may show once in a million runs. An
 * FJI_CHAOS build makes such windows long. Every atomic operation in the sources of the library has
 * a chaos point before and after it. FJI_CHAOS_POINT() marks the windows in plain code: between a
 * decision and the action that follows from it, and between the load of a word and the wait on it.
 * At a chaos point a thread usually does nothing. Sometimes it pauses or yields the CPU. Rarely it
 * sleeps, for longer than most operations of other threads take.
 *
 * Code that is inlined into user programs (forkjoin/inline.h) comes before this header in every
 * source file, so it has no chaos points.
 *
 * The environment variable FORKJOIN_CHAOS_SEED sets the seed of the random numbers; without it the
 * seed is 1. Each thread gets a number at its first chaos point. The seed and this number determine
 * the delays of the thread. Two runs with the same seed still differ, because the system schedules
 * the threads.
 *
 * Included by atomic.h.
 */
#ifndef FJI_CHAOS_H
#define FJI_CHAOS_H

#include "config.h"

#if FJI_CHAOS

/* A chaos point: delays the calling thread, or does nothing. Any thread may call this function. It
 * leaves errno unchanged. */
void fji_chaos(void);

#define FJI_CHAOS_POINT() fji_chaos()

#define FJI_CHAOS_AROUND(access)                  \
    __extension__({                               \
        fji_chaos();                              \
        __typeof__(access) chaos_result = access; \
        fji_chaos();                              \
        chaos_result;                             \
    })

/* The preprocessor does not expand a macro inside its own expansion, so the inner names are the
 * builtins of the compiler. */
#define __atomic_load_n(...) FJI_CHAOS_AROUND(__atomic_load_n(__VA_ARGS__))
#define __atomic_exchange_n(...) FJI_CHAOS_AROUND(__atomic_exchange_n(__VA_ARGS__))
#define __atomic_fetch_add(...) FJI_CHAOS_AROUND(__atomic_fetch_add(__VA_ARGS__))
#define __atomic_fetch_or(...) FJI_CHAOS_AROUND(__atomic_fetch_or(__VA_ARGS__))
#define __atomic_fetch_xor(...) FJI_CHAOS_AROUND(__atomic_fetch_xor(__VA_ARGS__))
#define __atomic_fetch_and(...) FJI_CHAOS_AROUND(__atomic_fetch_and(__VA_ARGS__))
#define __atomic_compare_exchange_n(...) FJI_CHAOS_AROUND(__atomic_compare_exchange_n(__VA_ARGS__))
#define __atomic_store_n(...)          \
    do {                               \
        fji_chaos();                   \
        __atomic_store_n(__VA_ARGS__); \
        fji_chaos();                   \
    } while (0)

#else

#define FJI_CHAOS_POINT() ((void)0)

#endif

#endif /* FJI_CHAOS_H */
