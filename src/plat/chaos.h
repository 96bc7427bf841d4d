/* SPDX-License-Identifier: MIT */
/*
 * chaos.h - delays wherever another thread could come in between, in FJI_CHAOS builds
 *
 * A window of a few instructions is hit once in a million runs, or once a year. Here every
 * atomic access of the library has a gap before and behind it, and FJI_CHAOS_POINT() marks the windows
 * of plain code: between a decision and what follows from it, between the look at a word and
 * the wait for it. In a gap a thread does nothing, mostly; or pauses, gives its core away, or
 * rarely sleeps for longer than whatever the others are about to do.
 *
 * What is inlined into the programs of users (forkjoin/inline.h) is compiled before this, and
 * has no gaps. FORKJOIN_CHAOS_SEED in the environment is where the numbers begin: another one,
 * other gaps. The same one again gives the same gaps to a thread, not the same run.
 *
 * Included by atomic.h.
 */
#ifndef FJI_CHAOS_H
#define FJI_CHAOS_H

#include "config.h"

#if FJI_CHAOS

/* plat/chaos.c */
void fji_chaos(void);

#define FJI_CHAOS_POINT() fji_chaos()

#define FJI_CHAOS_AROUND(access)               \
    __extension__({                            \
        fji_chaos();                           \
        __typeof__(access) chaos_got = access; \
        fji_chaos();                           \
        chaos_got;                             \
    })

/* A macro is not expanded inside itself: these are the compiler's own within. */
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
