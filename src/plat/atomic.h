/* SPDX-License-Identifier: MIT */
/*
 * atomic.h - the atomic operations of the library
 *
 * Every atomic access to shared memory in src/ is one of these operations. Each name contains the
 * memory order, so that a search for `_acquire`, for example, finds all accesses with that order;
 * only fji_count(), which is relaxed, does not name it. No access is seq_cst. The objects are plain
 * integers and pointers.
 *
 * Fences
 *   fji_fence_full()     the full fence: orders all accesses of the calling thread before the
 *                        fence with all its accesses after the fence.
 *   fji_fence_thief()    a full fence on most processors; on x86-64 only a compiler barrier.
 *   FJI_LIGHT_FENCE()    (forkjoin/attr.h) the light fence, the cheap half of an asymmetric pair.
 *   fji_plat_barrier()   (plat.h) the heavy fence, the expensive half of the pair. With respect
 *                        to a heavy fence, the light fence of any other thread acts as a full
 *                        fence.
 * A light fence pairs with a heavy fence only, never with another light fence.
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
/* The compiler reports accesses to memory to the simulator, but not fences and pauses. So in a
 * simulator build fences and pauses are calls of these functions. */
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

/*
 * Compare-and-swap of a word of 64 or 32 bits. If *p equals *old, stores v in *p and returns true.
 * Otherwise sets *old to the value of *p and returns false. These are strong operations: they fail
 * only if *p differs from *old. A success has acq_rel order. A failure is an acquire load.
 */
static inline bool fji_cas_acq_rel_64(uint64_t *p, uint64_t *old, uint64_t v)
{
    return __atomic_compare_exchange_n(p, old, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static inline bool fji_cas_acq_rel_32(uint32_t *p, uint32_t *old, uint32_t v)
{
    return __atomic_compare_exchange_n(p, old, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Compare-and-swap as fji_cas_acq_rel_64(), for a pointer. */
#define fji_cas_acq_rel_pointer(p, old, v) \
    __atomic_compare_exchange_n((p), (old), (v), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/* Compare-and-swap as fji_cas_acq_rel_64(), for a word of any type. Success and failure are
 * relaxed: for words that publish no other data. */
#define fji_cas_relaxed(p, old, v) \
    __atomic_compare_exchange_n((p), (old), (v), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)

/* Adds n to the counter *p, which one thread writes and other threads read. It is a relaxed load
 * and a relaxed store, not a read-modify-write: if two threads call it for the same counter, an
 * addition may be lost. */
#define fji_count(p, n) fji_store_relaxed((p), fji_load_relaxed(p) + (n))

/*
 * The full fence. On x86-64 it is a locked instruction on the stack, which costs a tenth of the
 * mfence that clang generates for a seq_cst fence. ThreadSanitizer does not understand fences, so
 * in its builds the fence is a seq_cst read-modify-write of one word that all threads share.
 */
static inline void fji_fence_full(void)
{
    FJI_CHAOS_POINT();
#if FJI_SIM
    fji_sim_fence();
#elif FJI_TSAN
    static uint32_t shared;
    __atomic_fetch_add(&shared, 0, __ATOMIC_SEQ_CST);
#elif defined(__x86_64__)
    __asm__ __volatile__("lock orq $0, (%%rsp)" ::: "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * The fence of a thief at an OPEN queue, between its load of base and its load of the item of the
 * cell or slot. Its partner is the full fence of the owner, between the owner's store to that item
 * and its load of base. x86-64 does not reorder loads with loads, so on x86-64 the thief's fence is
 * only a compiler barrier.
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

/* Tells the processor that the caller is in a spin loop. */
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
