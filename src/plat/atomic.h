/* SPDX-License-Identifier: MIT */
/*
 * atomic.h - every atomic access of the library, the order in its name
 *
 * The objects are plain integers and pointers; only these operations may touch
 * those that are shared. A grep for a suffix gives all its uses. There is no
 * operation without an order and none with a hidden seq_cst.
 *
 * Fences
 *   fji_fence_full()   store-load and all else, on this thread.
 *   FJI_LIGHT_FENCE()   (forkjoin/attr.h) the cheap half of an asymmetric pair.
 *   fji_plat_barrier() (plat.h) the dear half: afterwards every light fence of
 *                      every other thread counts as a full one.
 * Light pairs with heavy only, never with light.
 */
#ifndef FJI_ATOMIC_H
#define FJI_ATOMIC_H

#include <forkjoin.h>
#include <stdbool.h>

#include "chaos.h"

#if defined(__SANITIZE_ADDRESS__)
#define FJI_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define FJI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FJI_ASAN 1
#elif __has_feature(thread_sanitizer)
#define FJI_TSAN 1
#endif
#endif
#ifndef FJI_ASAN
#define FJI_ASAN 0
#endif
#ifndef FJI_TSAN
#define FJI_TSAN 0
#endif

#if FJI_SIM
/* plat/sim: the simulator sees accesses through the compiler, these through calls. */
void fji_sim_fence(void);
void fji_sim_fence_thief(void);
void fji_sim_pause(void);
#endif

#define fji_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define fji_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define fji_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define fji_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define fji_swap_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define fji_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define fji_add_acq_rel(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define fji_or_relaxed(p, v) __atomic_fetch_or((p), (v), __ATOMIC_RELAXED)
#define fji_or_acquire(p, v) __atomic_fetch_or((p), (v), __ATOMIC_ACQUIRE)
#define fji_or_release(p, v) __atomic_fetch_or((p), (v), __ATOMIC_RELEASE)
#define fji_or_acq_rel(p, v) __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define fji_xor_acq_rel(p, v) __atomic_fetch_xor((p), (v), __ATOMIC_ACQ_REL)
#define fji_and_acq_rel(p, v) __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)

/* Strong: a failure means that somebody else changed *p. *old is then updated. */
static inline bool fji_cas_acq_rel_64(uint64_t *p, uint64_t *old, uint64_t v)
{
    return __atomic_compare_exchange_n(p, old, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static inline bool fji_cas_acq_rel_32(uint32_t *p, uint32_t *old, uint32_t v)
{
    return __atomic_compare_exchange_n(p, old, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Of any type, for words that carry nothing but themselves. */
#define fji_cas_relaxed(p, old, v) \
    __atomic_compare_exchange_n((p), (old), (v), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)

/* For counters that one thread writes and others read now and then. */
#define fji_count(p, n) fji_store_relaxed((p), fji_load_relaxed(p) + (n))

/*
 * The full fence. On x86-64 a locked instruction on the stack costs a tenth of the
 * mfence that clang makes of a seq_cst fence. ThreadSanitizer does not know fences,
 * so there it is an ordered read-modify-write.
 */
static inline void fji_fence_full(void)
{
    FJI_CHAOS_POINT();
#if FJI_SIM
    fji_sim_fence();
#elif FJI_TSAN
    static uint32_t everybodys;
    __atomic_fetch_add(&everybodys, 0, __ATOMIC_SEQ_CST);
#elif defined(__x86_64__)
    __asm__ __volatile__("lock orq $0, (%%rsp)" ::: "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * The thief's fence: between its read of base and its read of the cell, against the full
 * fence of the owner between its write of the cell and its read of base. Where loads are
 * not reordered with loads (x86-64) the compiler alone has to be told.
 */
static inline void fji_fence_thief(void)
{
#if FJI_SIM
    fji_sim_fence_thief();
#elif FJI_TSAN || !defined(__x86_64__)
    fji_fence_full();
#else
    __asm__ __volatile__("" ::: "memory");
#endif
}

/* Tells the core that this is a spin loop. */
static inline void fji_pause(void)
{
#if FJI_SIM
    fji_sim_pause();
#elif defined(__x86_64__) || defined(__i386__)
    __asm__ __volatile__("pause" ::: "memory");
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#else
    __asm__ __volatile__("" ::: "memory");
#endif
}

#endif /* FJI_ATOMIC_H */
