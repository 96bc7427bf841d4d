/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/attr.h - every compiler #if of the public side
 *
 * gcc and clang only: the fast paths use the __atomic builtins of both, so that
 * the header needs no <stdatomic.h> and compiles as C11 and as C++17 alike.
 */
#ifndef FORKJOIN_ATTR_H
#define FORKJOIN_ATTR_H

#if !defined(__GNUC__)
#error "forkjoin needs gcc or clang"
#endif
#if __SIZEOF_POINTER__ != 8
#error "forkjoin needs 64-bit pointers: a cell holds a task and its words in one cache line"
#endif

#include <stdint.h>

#ifdef __cplusplus
#define FJI_EXTERN_C_BEGIN extern "C" {
#define FJI_EXTERN_C_END }
#define FJI_STATIC_ASSERT(cond, text) static_assert(cond, text)
#define FJI_ALIGNAS(n) alignas(n)
#else
#define FJI_EXTERN_C_BEGIN
#define FJI_EXTERN_C_END
#define FJI_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#define FJI_ALIGNAS(n) _Alignas(n)
#endif

/* An exported function. The library is built with hidden visibility. */
#define FJ_API __attribute__((visibility("default")))

/* The caller must look at the result. */
#define FJ_NODISCARD __attribute__((warn_unused_result))

/* A fast path. Always inlined, so that positions stay in registers at -O1 too. */
#define FJI_INLINE static inline __attribute__((always_inline, unused))

/* The same, left to the later inliner: gcc then first splits the leaf test off a recursive
 * caller, so that a leaf costs no saved registers, and only then makes a loop of it. */
#define FJI_INLINE_LATE static inline __attribute__((unused))

/* A way off the fast path. Not `cold`: gcc takes what follows such a call for cold too, and
 * moves the fast path itself out of the way. */
#define FJI_COLD __attribute__((noinline))

/*
 * 1 (by -DFJ_CHECKED=1 where your code is compiled): every fork and join is looked at before it is
 * done. A join by the wrong thread is FJ_EINVAL. A second fork, a fork or join of NULL, and a body
 * that returns without joining what it forked do no harm. Each of them sends a message to the log
 * callback.
 */
#ifndef FJ_CHECKED
#define FJ_CHECKED 0
#endif

#define FJI_LIKELY(x) __builtin_expect(!!(x), 1)
#define FJI_UNLIKELY(x) __builtin_expect(!!(x), 0)

/*
 * The test for a leaf at the head of a recursive function: `if (FJ_LEAF(n < 2)) return n;`.
 * Tells the compiler what it cannot guess, that most calls end there, so that it does the
 * test before it saves any register. Worth a quarter of the cost of fib.
 */
#define FJ_LEAF(cond) __builtin_expect_with_probability(!!(cond), 1, 0.6)

/*
 * The light fence: keeps the compiler from moving accesses across it and costs
 * nothing. Its partner is the heavy fence of a thief or of a worker about to
 * sleep (membarrier), which makes it count as a full fence. Where there is no
 * membarrier the library steers every caller to a path with a real fence.
 */
#define FJI_LIGHT_FENCE() __asm__ __volatile__("" ::: "memory")

/* Only keeps the compiler from merging what stands before it with what follows. */
#define FJI_IN_ORDER() __asm__ __volatile__("" ::: "memory")

/* The thread-local of the plain tier: eight bytes of static TLS, one load. */
#define FJI_TLS extern __thread __attribute__((tls_model("initial-exec"), visibility("default")))

/* Two neighbouring pointers, by one store where that can be said. */
#if defined(__x86_64__) && !defined(__ILP32__)
typedef unsigned long long fji_two __attribute__((vector_size(16), aligned(8), may_alias));
FJI_INLINE void fji_store_two(void *at, uintptr_t a, uintptr_t b)
{
    const fji_two two = {a, b};
    *(fji_two *)at = two;
}
#else
FJI_INLINE void fji_store_two(void *at, uintptr_t a, uintptr_t b)
{
    const uintptr_t two[2] = {a, b};
    __builtin_memcpy(at, two, sizeof two);
}
#endif

/* FJI_NO_ASM: the compiler, and who instruments its code, is to see every access. */
#if defined(__x86_64__) && defined(__ELF__) && !defined(__ILP32__) && !defined(FJI_NO_ASM)
#define FJI_READ_TLS(to, from) \
    __asm__ __volatile__("movq " #from "@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(to))
/* The address of a variable, computed anew: for the same reason. */
#define FJI_ADDRESS_AGAIN(p)                                              \
    __extension__({                                                       \
        __typeof__(p) fj_again;                                           \
        __asm__ __volatile__("leaq %1, %0" : "=r"(fj_again) : "m"(*(p))); \
        fj_again;                                                         \
    })
/* Relaxed atomic loads that are only compared: as an operand of the comparison, which
 * compilers do not make of an __atomic load. */
#define FJI_RELAXED_NEGATIVE(p)                                            \
    __extension__({                                                        \
        int fj_yes;                                                        \
        __asm__ __volatile__("cmpq $0, %1" : "=@ccs"(fj_yes) : "m"(*(p))); \
        fj_yes;                                                            \
    })
#define FJI_RELAXED_ABOVE(p, x)                                                    \
    __extension__({                                                                \
        int fj_yes;                                                                \
        __asm__ __volatile__("cmpq %2, %1" : "=@cca"(fj_yes) : "m"(*(p)), "r"(x)); \
        fj_yes;                                                                    \
    })
#else
#define FJI_READ_TLS(to, from) ((to) = (from))
#define FJI_ADDRESS_AGAIN(p) (p)
/* relaxed: whoever uses it says why that is enough. */
#define FJI_RELAXED_NEGATIVE(p) (__atomic_load_n((p), __ATOMIC_RELAXED) < 0)
#define FJI_RELAXED_ABOVE(p, x) (__atomic_load_n((p), __ATOMIC_RELAXED) > (x))
#endif

#endif /* FORKJOIN_ATTR_H */
