/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/attr.h - compiler and platform differences of the public headers
 *
 * Only FJ_API, FJ_NODISCARD, FJ_CHECKED and FJ_LEAF are public. Names that begin with FJI_ or fji_
 * are private.
 *
 * The headers need gcc or clang. The fast paths use the __atomic builtins of these compilers,
 * because <stdatomic.h> is not available in C++17.
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

/* Marks an exported function. The library is built with hidden visibility, so that no other
 * function is exported. */
#define FJ_API __attribute__((visibility("default")))

/* The compiler warns if the caller ignores the result. */
#define FJ_NODISCARD __attribute__((warn_unused_result))

/* Marks a fast path. The compiler always inlines it, so that queue positions stay in registers even
 * at -O1. */
#define FJI_INLINE static inline __attribute__((always_inline, unused))

/* Marks a fast path that a later pass of the compiler may inline. Before that pass, gcc moves the
 * part of a recursive caller after its leaf test (see FJ_LEAF) into a function of its own, so that
 * a call that ends at this test saves no registers. Then gcc inlines the fast path. */
#define FJI_INLINE_LATE static inline __attribute__((unused))

/* Marks a slow path. A slow path does not have the attribute `cold`, because gcc then treats the
 * code after a call of the slow path as cold too, and moves the fast path away from its caller. */
#define FJI_COLD __attribute__((noinline))

/*
 * Compile your code with -DFJ_CHECKED=1 to check every fork and join of plain tasks. The following
 * mistakes then have no further effect:
 *   - a fork of NULL, or of a task without a body, does nothing;
 *   - if a worker forks a task that it has forked and not yet joined, the second fork does nothing;
 *   - a join of NULL, of a task that is not forked, or of a task that another worker has forked,
 *     returns FJ_EINVAL;
 *   - if a body returns without joining a task that it forked, the library removes the task from
 *     the queue, or waits for the thief that runs it.
 * In a worker, each mistake also sends a message to the log callback of the pool. FJ_CHECKED does
 * not check the forks and joins of typed tasks.
 */
#ifndef FJ_CHECKED
#define FJ_CHECKED 0
#endif

#define FJI_LIKELY(x) __builtin_expect(!!(x), 1)
#define FJI_UNLIKELY(x) __builtin_expect(!!(x), 0)

/*
 * Marks the leaf test at the beginning of a recursive function: `if (FJ_LEAF(n < 2)) return n;`.
 * FJ_LEAF tells the compiler that most calls end at this test, so that the compiler does the test
 * before it saves registers. For example, FJ_LEAF saves a quarter of the run time of fib.
 */
#define FJ_LEAF(cond) __builtin_expect_with_probability(!!(cond), 1, 0.6)

/*
 * The light fence. It only keeps the compiler from moving memory accesses across the fence, so it
 * costs no instruction. Its partner is the heavy fence (membarrier) of a thief, or of a worker that
 * is about to sleep. The heavy fence makes the light fence act as a full fence. Without membarrier,
 * every caller of a light fence takes a path with a full fence instead.
 */
#define FJI_LIGHT_FENCE() __asm__ __volatile__("" ::: "memory")

/* Keeps the compiler from merging the memory accesses before the macro with those after it. */
#define FJI_IN_ORDER() __asm__ __volatile__("" ::: "memory")

/* Declares the thread-local variable of the plain tier. The variable takes eight bytes of static
 * TLS, so that one load reads it. */
#define FJI_TLS extern __thread __attribute__((tls_model("initial-exec"), visibility("default")))

/* Stores two pointers at adjacent addresses, by one 16-byte store on x86-64. */
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

/*
 * Assembler for x86-64. With FJI_NO_ASM the macros are plain C, so that tools that instrument
 * memory accesses see every access.
 *
 * FJI_READ_TLS reads a thread-local variable. The compiler cannot keep the address of the variable
 * in a register that each frame would have to save.
 */
#if defined(__x86_64__) && defined(__ELF__) && !defined(__ILP32__) && !defined(FJI_NO_ASM)
#define FJI_READ_TLS(to, from) \
    __asm__ __volatile__("movq " #from "@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(to))
/* Computes the address `p` again, so that the compiler does not keep it in a register that each
 * frame would have to save. */
#define FJI_ADDRESS_AGAIN(p)                                              \
    __extension__({                                                       \
        __typeof__(p) fj_again;                                           \
        __asm__ __volatile__("leaq %1, %0" : "=r"(fj_again) : "m"(*(p))); \
        fj_again;                                                         \
    })
/* A relaxed atomic load whose result is only compared. The load is an operand of the comparison;
 * compilers do not generate such a comparison for an __atomic load. */
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
/* relaxed: each use of the macros states why relaxed is sufficient. */
#define FJI_RELAXED_NEGATIVE(p) (__atomic_load_n((p), __ATOMIC_RELAXED) < 0)
#define FJI_RELAXED_ABOVE(p, x) (__atomic_load_n((p), __ATOMIC_RELAXED) > (x))
#endif

#endif /* FORKJOIN_ATTR_H */
