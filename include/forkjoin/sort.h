/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/sort.h - parallel sorts and merges for types of your own, the comparison inlined
 *
 *     struct point { double x, y; };
 *     #define LEFT_OF(p, q) ((p).x < (q).x)
 *     FJ_SORT(sort_points, struct point, LEFT_OF);
 *
 *     int err = sort_points(points, n, NULL);
 *
 * The rules at the head of forkjoin/algo.h hold. For numbers fj_sort_u32() and its like are
 * faster, and a comparison that is a function pointer goes to fj_sort().
 */
#ifndef FORKJOIN_SORT_H
#define FORKJOIN_SORT_H

#include <forkjoin/algo.h>
#include <string.h>

/*
 * FJ_SORT(NAME, T, LESS) makes
 *
 *     static int NAME(T *a, size_t n, const fj_algo_options *how)
 *
 * which sorts a[0] to a[n - 1] in place; equal elements come in any order.
 *
 *   T        a type that can be copied by assignment; in C++ a trivial one.
 *   LESS     LESS(x, y), a macro or a function, is true if x goes before y: two elements, or
 *            copies of them, of which it may use each more than once and change none. Where it
 *            compares numbers, best without branches. If it contradicts itself, the sort still
 *            returns at the cost below, the array has the same elements, each as often as before,
 *            in some order, and nothing outside the array is read or written.
 *   cost     n log n comparisons, whatever the order was and whatever LESS answers; n if it
 *            was sorted or its reverse.
 *            Few different elements are faster than many.
 *   grain    how->grain elements, at least, are sorted by one worker; 0: some thousand.
 *   progress elements that are where they belong.
 *   memory   none.
 *   returns  FJ_OK; FJ_ECANCELED, the array then has the same elements in some order;
 *            FJ_EINVAL, FJ_EREJECTED.
 */
#define FJ_SORT(NAME, T, LESS)                                                       \
    FJI_SORT_BASE(NAME, T, LESS)                                                     \
    FJI_SORT_SMALL(NAME)                                                             \
    FJI_SORT_QUICK(NAME)                                                             \
    __attribute__((unused)) static FJ_NODISCARD int NAME(T *a, size_t n,             \
                                                         const fj_algo_options *how) \
    {                                                                                \
        static const fji_sort_kind kind = {sizeof(NAME##_fji_t),                     \
                                           __alignof__(NAME##_fji_t),                \
                                           FJI_SORT_AT_ONCE(NAME##_fji_t),           \
                                           NAME##_fji_small,                         \
                                           NAME##_fji_run,                           \
                                           NAME##_fji_cut,                           \
                                           NAME##_fji_pivot,                         \
                                           NAME##_fji_part,                          \
                                           NAME##_fji_sift,                          \
                                           0,                                        \
                                           0,                                        \
                                           {0, 0}};                                  \
        return fji_quick_sort(&kind, a, n, how);                                     \
    }                                                                                \
    struct NAME##_fji_end

/*
 * FJ_STABLE_SORT(NAME, T, LESS): the same, and equal elements keep their order. What lies in
 * ascending stretches already is faster.
 *
 *   memory   n * sizeof(T) bytes; without them the calling thread sorts in place, by many more
 *            moves.
 */
#define FJ_STABLE_SORT(NAME, T, LESS)                                                \
    FJI_SORT_BASE(NAME, T, LESS)                                                     \
    FJI_SORT_SMALL(NAME)                                                             \
    FJI_SORT_MERGE(NAME)                                                             \
    __attribute__((unused)) static FJ_NODISCARD int NAME(T *a, size_t n,             \
                                                         const fj_algo_options *how) \
    {                                                                                \
        static const fji_sort_kind kind = {sizeof(NAME##_fji_t),                     \
                                           __alignof__(NAME##_fji_t),                \
                                           FJI_SORT_AT_ONCE(NAME##_fji_t),           \
                                           NAME##_fji_small,                         \
                                           NAME##_fji_run,                           \
                                           0,                                        \
                                           0,                                        \
                                           0,                                        \
                                           0,                                        \
                                           NAME##_fji_merge,                         \
                                           NAME##_fji_before,                        \
                                           {0, 0}};                                  \
        return fji_merge_sort(&kind, a, n, how);                                     \
    }                                                                                \
    struct NAME##_fji_end

/*
 * FJ_MERGE(NAME, T, LESS) makes
 *
 *     static int NAME(const T *a, size_t na, const T *b, size_t nb, T *out, const fj_algo_options *how)
 *
 * which merges two sorted arrays into `out`, which has room for both and overlaps neither: a
 * fj_merge() with the comparison inlined. Of equal elements those of `a` come first. If the
 * arrays are not sorted, or LESS contradicts itself, `out` still gets each element of both once,
 * in some order.
 *
 *   grain    about so many elements are merged by one worker; 0: some thousand.
 *   progress elements that were merged.
 *   memory   none.
 *   returns  FJ_OK; FJ_ECANCELED, out then has some of the elements; FJ_EINVAL, FJ_EREJECTED.
 */
#define FJ_MERGE(NAME, T, LESS)                                                           \
    FJI_SORT_BASE(NAME, T, LESS)                                                          \
    FJI_SORT_MERGE(NAME)                                                                  \
    __attribute__((unused)) static FJ_NODISCARD int NAME(                                 \
        const T *a, size_t na, const T *b, size_t nb, T *out, const fj_algo_options *how) \
    {                                                                                     \
        static const fji_sort_kind kind = {                                               \
            sizeof(NAME##_fji_t), __alignof__(NAME##_fji_t), 0,     0, 0, 0, 0, 0, 0,     \
            NAME##_fji_merge,     NAME##_fji_before,         {0, 0}};                     \
        return fji_merge_runs(&kind, a, na, b, nb, out, how);                             \
    }                                                                                     \
    struct NAME##_fji_end

/* ---- What they are made of: not API ---------------------------------------------------- */

/*
 * What the library has to know of a type to sort it. All of these end, stay inside the array
 * and only move elements around, whatever LESS says.
 */
typedef struct fji_sort_kind {
    size_t size, align;
    size_t at_once; /* most elements for small(), at least 8 */
    /* Sorts a few, stable. */
    void (*small)(void *a, size_t n);
    /* How many at the front, of n >= 2, do not descend; *down: do strictly descend. */
    size_t (*run)(const void *a, size_t n, int *down);

    /* Chooses a pivot of n >= 8 and cuts: its place, those left of it go before it. With
     * *equal: there is an element a[-1] which is not after any of these; if it is not before
     * the pivot either, the left ones are not after it, else *equal becomes 0. */
    size_t (*cut)(void *a, size_t n, int *equal);
    /* The parts of that: the place of a pivot, now at a[0]; and how many of n go left of it. */
    void (*pivot)(void *a, size_t n, int *equal);
    size_t (*part)(void *a, size_t n, const void *pivot, int equal);
    /* Lets a[root] sink in a heap of n. */
    void (*sift)(void *a, size_t root, size_t n);

    /* Merges into out, which overlaps neither; of equal ones those of a come first. */
    void (*merge)(const void *a, size_t na, const void *b, size_t nb, void *out);
    /* How many of n sorted ones go before x; equal: or are equal to it. */
    size_t (*before)(const void *a, size_t n, const void *x, int equal);
    void (*spare[2])(void);
} fji_sort_kind;

FJI_EXTERN_C_BEGIN

/* Need small, run, cut, pivot, part, sift; small, run, merge, before; merge, before. */
FJ_API FJ_NODISCARD int fji_quick_sort(const fji_sort_kind *kind, void *a, size_t n,
                                       const fj_algo_options *how);
FJ_API FJ_NODISCARD int fji_merge_sort(const fji_sort_kind *kind, void *a, size_t n,
                                       const fj_algo_options *how);
FJ_API FJ_NODISCARD int fji_merge_runs(const fji_sort_kind *kind, const void *a, size_t na,
                                       const void *b, size_t nb, void *out,
                                       const fj_algo_options *how);

FJI_EXTERN_C_END

/* Up to this size moving an element costs less than a branch that is guessed wrong. */
#define FJI_SORT_LIGHT 64u
#define FJI_SORT_AT_ONCE(T) (sizeof(T) <= FJI_SORT_LIGHT ? 32u : 12u)

/* yes ? x : y, never by a branch. */
FJI_INLINE size_t fji_pick(size_t yes, size_t x, size_t y)
{
    return y ^ ((x ^ y) & (0 - yes));
}

/* clang-format off */

#define FJI_SORT_BASE(NAME, T, LESS)                                                               \
    typedef T NAME##_fji_t;                                                                        \
                                                                                                   \
    FJI_INLINE size_t NAME##_fji_less(const NAME##_fji_t *fji_x, const NAME##_fji_t *fji_y)         \
    {                                                                                              \
        return (LESS((*fji_x), (*fji_y))) ? 1 : 0;                                                 \
    }                                                                                              \
                                                                                                   \
    __attribute__((unused)) static size_t NAME##_fji_run(const void *v, size_t n, int *down)       \
    {                                                                                              \
        const NAME##_fji_t *a = (const NAME##_fji_t *)v;                                           \
        size_t i = 2, less = NAME##_fji_less(a + 1, a);                                            \
        while (i < n && NAME##_fji_less(a + i, a + i - 1) == less) i++;                            \
        *down = (int)less;                                                                         \
        return i;                                                                                  \
    }

/*
 * Up to 32 elements: fours by five comparisons, then merges from both ends at once, which go
 * without a branch and without looking where a half ends.
 */
#define FJI_SORT_SMALL(NAME)                                                                       \
    /* a[0] to a[done - 1] are sorted: the rest is put between them. */                            \
    __attribute__((unused)) static void NAME##_fji_insert(NAME##_fji_t *a, size_t done, size_t n)  \
    {                                                                                              \
        for (size_t i = done; i < n; i++) {                                                        \
            if (!NAME##_fji_less(a + i, a + i - 1)) continue;                                      \
            NAME##_fji_t x = a[i];                                                                 \
            size_t j = i;                                                                          \
            do {                                                                                   \
                a[j] = a[j - 1];                                                                   \
                j--;                                                                               \
            } while (j > 0 && NAME##_fji_less(&x, a + j - 1));                                     \
            a[j] = x;                                                                              \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Two pairs, then their lower and their higher ones; two remain for the middle. */            \
    FJI_INLINE void NAME##_fji_four(const NAME##_fji_t *a, NAME##_fji_t *out)                       \
    {                                                                                              \
        size_t p = NAME##_fji_less(a + 1, a), q = NAME##_fji_less(a + 3, a + 2) + 2;               \
        size_t p_high = p ^ 1, q_high = q ^ 1;                                                     \
        size_t low = NAME##_fji_less(a + q, a + p);                                                \
        size_t high = NAME##_fji_less(a + q_high, a + p_high);                                     \
        size_t x = fji_pick(low, p, fji_pick(high, q, p_high));                                    \
        size_t y = fji_pick(high, q_high, fji_pick(low, p_high, q));                               \
        size_t swap = NAME##_fji_less(a + y, a + x);                                               \
        out[0] = a[fji_pick(low, q, p)];                                                           \
        out[1] = a[fji_pick(swap, y, x)];                                                          \
        out[2] = a[fji_pick(swap, x, y)];                                                          \
        out[3] = a[fji_pick(high, p_high, q_high)];                                                \
    }                                                                                              \
                                                                                                   \
    /* Merges the halves of a. Each end takes n / 2, so neither can leave its half, unless LESS    \
     * contradicts itself: then the ends do not meet, and the elements stay as they were. */       \
    FJI_INLINE void NAME##_fji_meet(const NAME##_fji_t *a, size_t n, NAME##_fji_t *out)             \
    {                                                                                              \
        size_t half = n / 2, l = 0, r = half, l_end = half - 1, r_end = n - 1;                     \
        for (size_t i = 0; i < half; i++) {                                                        \
            size_t right = NAME##_fji_less(a + r, a + l);                                          \
            size_t left = NAME##_fji_less(a + r_end, a + l_end);                                   \
            out[i] = a[fji_pick(right, r, l)];                                                     \
            out[n - 1 - i] = a[fji_pick(left, l_end, r_end)];                                      \
            r += right;                                                                            \
            l += right ^ 1;                                                                        \
            l_end -= left;                                                                         \
            r_end -= left ^ 1;                                                                     \
        }                                                                                          \
        if (n % 2 != 0) {                                                                          \
            size_t left = l != l_end + 1;                                                          \
            out[half] = a[left ? l : r];                                                           \
            l += left;                                                                             \
            r += left ^ 1;                                                                         \
        }                                                                                          \
        if (FJI_UNLIKELY(l != l_end + 1 || r != r_end + 1))                                         \
            memcpy((void *)out, (const void *)a, n * sizeof *a);                                   \
    }                                                                                              \
                                                                                                   \
    /* Sorts 4 to 16 into out. */                                                                  \
    FJI_INLINE void NAME##_fji_half(const NAME##_fji_t *a, size_t n, NAME##_fji_t *out)             \
    {                                                                                              \
        NAME##_fji_t fours[8], eights[16];                                                         \
        size_t done = n >= 16 ? 16 : n >= 8 ? 8 : 4;                                               \
        if (done == 4) NAME##_fji_four(a, out);                                                    \
        for (size_t i = 0; i + 8 <= done; i += 8) {                                                \
            NAME##_fji_four(a + i, fours);                                                         \
            NAME##_fji_four(a + i + 4, fours + 4);                                                 \
            NAME##_fji_meet(fours, 8, done == 8 ? out : eights + i);                               \
        }                                                                                          \
        if (done == 16) NAME##_fji_meet(eights, 16, out);                                          \
        for (size_t i = done; i < n; i++) out[i] = a[i];                                           \
        NAME##_fji_insert(out, done, n);                                                           \
    }                                                                                              \
                                                                                                   \
    __attribute__((unused)) static void NAME##_fji_small(void *v, size_t n)                        \
    {                                                                                              \
        NAME##_fji_t *a = (NAME##_fji_t *)v;                                                       \
        if (sizeof(NAME##_fji_t) > FJI_SORT_LIGHT || n < 8) {                                      \
            NAME##_fji_insert(a, 1, n);                                                            \
            return;                                                                                \
        }                                                                                          \
        NAME##_fji_t halves[32];                                                                   \
        NAME##_fji_half(a, n / 2, halves);                                                         \
        NAME##_fji_half(a + n / 2, n - n / 2, halves + n / 2);                                     \
        NAME##_fji_meet(halves, n, a);                                                             \
    }

#define FJI_SORT_QUICK(NAME)                                                                       \
    FJI_INLINE void NAME##_fji_swap(NAME##_fji_t *x, NAME##_fji_t *y)                               \
    {                                                                                              \
        NAME##_fji_t old = *x;                                                                     \
        *x = *y;                                                                                   \
        *y = old;                                                                                  \
    }                                                                                              \
                                                                                                   \
    FJI_INLINE size_t NAME##_fji_left(const NAME##_fji_t *x, const NAME##_fji_t *pivot, int equal)  \
    {                                                                                              \
        return equal ? NAME##_fji_less(pivot, x) ^ 1 : NAME##_fji_less(x, pivot);                  \
    }                                                                                              \
                                                                                                   \
    /* There is always a gap, at first where `first` was. Each step moves the first of those that  \
     * stay right into the gap, and the next element into its place, which then belongs to the     \
     * left ones or not. */                                                                        \
    FJI_INLINE size_t NAME##_fji_part_light(NAME##_fji_t *a, size_t n, const NAME##_fji_t *pivot,   \
                                           int equal)                                              \
    {                                                                                              \
        NAME##_fji_t first = a[0];                                                                 \
        NAME##_fji_t *gap = a, *to = a, *end = a + n;                                              \
        for (NAME##_fji_t *x = a + 1; x != end; x++) {                                             \
            size_t left = NAME##_fji_left(x, pivot, equal);                                        \
            *gap = *to;                                                                            \
            *to = *x;                                                                              \
            gap = x;                                                                               \
            to += left;                                                                            \
        }                                                                                          \
        size_t left = NAME##_fji_left(&first, pivot, equal);                                       \
        *gap = *to;                                                                                \
        *to = first;                                                                               \
        return (size_t)(to - a) + left;                                                            \
    }                                                                                              \
                                                                                                   \
    /* Moves only what stands on the wrong side. No element is asked for twice, so that LESS       \
     * cannot say that one goes both right and left, and l and r always meet. */                   \
    FJI_INLINE size_t NAME##_fji_part_heavy(NAME##_fji_t *a, size_t n, const NAME##_fji_t *pivot,   \
                                           int equal)                                              \
    {                                                                                              \
        NAME##_fji_t *l = a, *r = a + n;                                                           \
        for (;; l++) {                                                                             \
            while (l != r && NAME##_fji_left(l, pivot, equal)) l++;                                \
            if (l == r) break;                                                                     \
            do {                                                                                   \
                r--;                                                                               \
            } while (l != r && !NAME##_fji_left(r, pivot, equal));                                 \
            if (l == r) break;                                                                     \
            NAME##_fji_swap(l, r);                                                                 \
        }                                                                                          \
        return (size_t)(l - a);                                                                    \
    }                                                                                              \
                                                                                                   \
    __attribute__((unused)) static size_t NAME##_fji_part(void *v, size_t n, const void *pivot,    \
                                                          int equal)                               \
    {                                                                                              \
        NAME##_fji_t *a = (NAME##_fji_t *)v;                                                       \
        const NAME##_fji_t p = *(const NAME##_fji_t *)pivot;                                       \
        if (n == 0) return 0;                                                                      \
        if (sizeof(NAME##_fji_t) > FJI_SORT_LIGHT)                                                 \
            return NAME##_fji_part_heavy(a, n, &p, equal);                                         \
        return equal ? NAME##_fji_part_light(a, n, &p, 1) : NAME##_fji_part_light(a, n, &p, 0);    \
    }                                                                                              \
                                                                                                   \
    FJI_INLINE size_t NAME##_fji_median(const NAME##_fji_t *a, size_t i, size_t j, size_t k)        \
    {                                                                                              \
        size_t ij = NAME##_fji_less(a + i, a + j), ik = NAME##_fji_less(a + i, a + k);             \
        size_t jk = NAME##_fji_less(a + j, a + k);                                                 \
        return fji_pick(ij ^ ik, i, fji_pick(ij ^ jk, k, j));                                      \
    }                                                                                              \
                                                                                                   \
    /* The median of three, of three medians of three, and so on. */                               \
    __attribute__((unused)) static size_t NAME##_fji_middle(const NAME##_fji_t *a, size_t at,      \
                                                            size_t step, int deep)                 \
    {                                                                                              \
        size_t i = at, j = at + step, k = at + 2 * step;                                           \
        if (deep > 0) {                                                                            \
            i = NAME##_fji_middle(a, i, step / 3, deep - 1);                                       \
            j = NAME##_fji_middle(a, j, step / 3, deep - 1);                                       \
            k = NAME##_fji_middle(a, k, step / 3, deep - 1);                                       \
        }                                                                                          \
        return NAME##_fji_median(a, i, j, k);                                                      \
    }                                                                                              \
                                                                                                   \
    FJI_INLINE void NAME##_fji_pivot_now(NAME##_fji_t *a, size_t n, int *equal)                     \
    {                                                                                              \
        int deep = n < 128 ? 0 : n < 1024 ? 1 : n < 16384 ? 2 : n < 262144 ? 3 : 5;                \
        NAME##_fji_swap(a, a + NAME##_fji_middle(a, 0, n / 3, deep));                              \
        if (*equal) *equal = !NAME##_fji_less(a - 1, a);                                           \
    }                                                                                              \
                                                                                                   \
    __attribute__((unused)) static void NAME##_fji_pivot(void *v, size_t n, int *equal)            \
    {                                                                                              \
        NAME##_fji_pivot_now((NAME##_fji_t *)v, n, equal);                                         \
    }                                                                                              \
                                                                                                   \
    __attribute__((unused)) static size_t NAME##_fji_cut(void *v, size_t n, int *equal)            \
    {                                                                                              \
        NAME##_fji_t *a = (NAME##_fji_t *)v;                                                       \
        NAME##_fji_pivot_now(a, n, equal);                                                         \
        size_t left = NAME##_fji_part(a + 1, n - 1, a, *equal);                                    \
        NAME##_fji_swap(a, a + left);                                                              \
        return left;                                                                               \
    }                                                                                              \
                                                                                                   \
    __attribute__((unused)) static void NAME##_fji_sift(void *v, size_t root, size_t n)            \
    {                                                                                              \
        NAME##_fji_t *a = (NAME##_fji_t *)v;                                                       \
        NAME##_fji_t x = a[root];                                                                  \
        for (size_t i; root < n / 2; root = i) {                                                   \
            i = 2 * root + 1;                                                                      \
            if (i + 1 < n) i += NAME##_fji_less(a + i, a + i + 1);                                 \
            if (!NAME##_fji_less(&x, a + i)) break;                                                \
            a[root] = a[i];                                                                        \
        }                                                                                          \
        a[root] = x;                                                                               \
    }

#define FJI_SORT_MERGE(NAME)                                                                       \
    /* From both ends at once: as long as neither takes more than half of the shorter one, they    \
     * need not look where it ends. */                                                             \
    __attribute__((unused)) static void NAME##_fji_merge(const void *va, size_t na,                \
                                                         const void *vb, size_t nb, void *to)      \
    {                                                                                              \
        const NAME##_fji_t *a = (const NAME##_fji_t *)va, *a_end = a + na;                         \
        const NAME##_fji_t *b = (const NAME##_fji_t *)vb, *b_end = b + nb;                         \
        NAME##_fji_t *out = (NAME##_fji_t *)to, *out_end = out + na + nb;                          \
        for (;;) {                                                                                 \
            size_t left_a = (size_t)(a_end - a), left_b = (size_t)(b_end - b);                     \
            size_t most = (left_a < left_b ? left_a : left_b) / 2;                                 \
            if (most < 4) break;                                                                   \
            for (size_t i = 0; i < most; i++) {                                                    \
                size_t from_b = NAME##_fji_less(b, a);                                             \
                size_t from_a = NAME##_fji_less(b_end - 1, a_end - 1);                             \
                *out++ = *(const NAME##_fji_t *)fji_pick(from_b, (size_t)b, (size_t)a);            \
                b += from_b;                                                                       \
                a += from_b ^ 1;                                                                   \
                *--out_end =                                                                       \
                    ((const NAME##_fji_t *)fji_pick(from_a, (size_t)a_end, (size_t)b_end))[-1];    \
                a_end -= from_a;                                                                   \
                b_end -= from_a ^ 1;                                                               \
            }                                                                                      \
        }                                                                                          \
        while (a != a_end && b != b_end) {                                                         \
            size_t from_b = NAME##_fji_less(b, a);                                                 \
            *out++ = *(from_b ? b : a);                                                            \
            b += from_b;                                                                           \
            a += from_b ^ 1;                                                                       \
        }                                                                                          \
        memcpy((void *)out, (const void *)a, (size_t)(a_end - a) * sizeof *a);                     \
        out += a_end - a;                                                                          \
        memcpy((void *)out, (const void *)b, (size_t)(b_end - b) * sizeof *b);                     \
    }                                                                                              \
                                                                                                   \
    __attribute__((unused)) static size_t NAME##_fji_before(const void *v, size_t n, const void *p,\
                                                            int equal)                             \
    {                                                                                              \
        const NAME##_fji_t *a = (const NAME##_fji_t *)v, *x = (const NAME##_fji_t *)p;             \
        size_t low = 0;                                                                            \
        while (low < n) {                                                                          \
            size_t i = low + (n - low) / 2;                                                        \
            if (equal ? !NAME##_fji_less(x, a + i) : NAME##_fji_less(a + i, x) != 0)               \
                low = i + 1;                                                                       \
            else                                                                                   \
                n = i;                                                                             \
        }                                                                                          \
        return low;                                                                                \
    }

/* clang-format on */

#endif /* FORKJOIN_SORT_H */
