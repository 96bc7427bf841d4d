/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/sort.h - parallel sorts and merges for your own types, with the comparison inlined
 *
 *     struct point { double x, y; };
 *     #define LEFT_OF(p, q) ((p).x < (q).x)
 *     FJ_SORT(sort_points, struct point, LEFT_OF);
 *
 *     int err = sort_points(points, n, NULL);
 *
 * The rules and the common codes at the head of forkjoin/algo.h apply to the functions that these
 * macros define. For numbers, fj_sort_u32() and the other sorts of numbers are faster. If the
 * comparison is a function pointer, use fj_sort().
 */
#ifndef FORKJOIN_SORT_H
#define FORKJOIN_SORT_H

#include <forkjoin/algo.h>
#include <string.h>

/*
 * FJ_SORT(NAME, T, LESS); at file scope defines
 *
 *     static int NAME(T *a, size_t n, const fj_algo_options *how)
 *
 * which sorts a[0] to a[n - 1] in place. Equal elements may change their order. After FJ_ECANCELED
 * the array has the same elements in an unspecified order.
 *
 * If LESS contradicts itself, the array also has the same elements in an unspecified order. The
 * sort then still keeps to the cost below, and reads and writes nothing outside the array.
 *
 *   T        a type that can be copied by assignment; in C++, a trivial type.
 *   LESS     a macro or a function. LESS(x, y) is true if x comes before y. x and y are elements or
 *            copies of elements. LESS must not change x or y. If LESS is a macro, it may use x and
 *            y more than once. The sort is fastest if LESS compiles to code without branches.
 *   cost     O(n log n) comparisons for every input and for every LESS. n - 1 comparisons if the
 *            array is sorted or strictly descending. Arrays with few different elements are sorted
 *            faster.
 *   grain    one worker sorts a range of at most how->grain elements. The default, for grain 0, is
 *            2048. A grain below 32 counts as 32; if T has more than 64 bytes, a grain below 12
 *            counts as 12. min_grain and max_grain are ignored.
 *   progress counts elements that are in their final place.
 *   memory   none.
 *   returns  the common codes.
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
 * FJ_STABLE_SORT(NAME, T, LESS); at file scope defines
 *
 *     static int NAME(T *a, size_t n, const fj_algo_options *how)
 *
 * which sorts a[0] to a[n - 1] and keeps the order of equal elements. The contract of FJ_SORT
 * applies, with these exceptions.
 *
 *   cost     is lower if the array has long ascending runs.
 *   progress counts half of the elements while ranges are sorted, and the other half at the end.
 *   memory   n * sizeof(T) bytes if n > 32, or n > 12 if T has more than 64 bytes. Without that
 *            memory one thread sorts in place, which moves elements more often.
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
 * FJ_MERGE(NAME, T, LESS); at file scope defines
 *
 *     static int NAME(const T *a, size_t na, const T *b, size_t nb, T *out,
 *                     const fj_algo_options *how)
 *
 * which merges two sorted arrays into `out`. `out` must have space for na + nb elements and must
 * overlap neither array. Of equal elements, those of `a` come first. T and LESS have the same
 * meaning as for FJ_SORT.
 *
 * If an array is not sorted, or if LESS contradicts itself, `out` still receives each element of
 * both arrays once, in an unspecified order. After FJ_ECANCELED only some elements of `out` have
 * been written.
 *
 *   grain    the largest number of elements that a worker merges without a check for idle workers
 *            and for a cancel, at least 2. With grain 0 it is 8192, or the number nearest to 8192
 *            from min_grain to max_grain.
 *   progress counts elements that are merged.
 *   memory   none.
 *   returns  the common codes; FJ_EINVAL also if `out` overlaps `a` or `b`.
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

/* ---- Not part of the API: what the macros expand to ------------------------------------- */

/*
 * What the library needs to know about a type in order to sort it. For every LESS, each function
 * terminates, accesses nothing outside its arrays, and only moves elements.
 */
typedef struct fji_sort_kind {
    size_t size, align;
    size_t at_once; /* the largest n of a call of small(), at least 8 */
    /* Sorts n <= at_once elements and keeps the order of equal elements. */
    void (*small)(void *a, size_t n);
    /* Measures the run at the front of n >= 2 elements. Sets *down to 1 if a[1] is before a[0],
     * else to 0. Returns the length of the longest run at the front that strictly descends (*down
     * 1) or does not descend (*down 0). */
    size_t (*run)(const void *a, size_t n, int *down);

    /* Partitions n >= 8 elements around a pivot that it chooses, and returns the pivot's index. The
     * elements left of the pivot are before the pivot in the sort order. If *equal is not 0 on
     * entry, a[-1] exists and is not after any element of the range. If the pivot is then equal to
     * a[-1], *equal becomes 1 and the elements left of the pivot are equal to the pivot; otherwise
     * *equal becomes 0. */
    size_t (*cut)(void *a, size_t n, int *equal);
    /* The first step of cut(): chooses the pivot, moves it to a[0] and sets *equal. */
    void (*pivot)(void *a, size_t n, int *equal);
    /* The second step of cut(): partitions n elements, without the pivot. Returns how many elements
     * are on the left side: those that come before the pivot in the sort order or, if `equal`,
     * those that do not come after it. */
    size_t (*part)(void *a, size_t n, const void *pivot, int equal);
    /* Moves a[root] down to its place in the heap of the n elements a[0] to a[n - 1]. */
    void (*sift)(void *a, size_t root, size_t n);

    /* Merges a and b into out, which overlaps neither. Of equal elements those of a come first. */
    void (*merge)(const void *a, size_t na, const void *b, size_t nb, void *out);
    /* Returns how many of n sorted elements come before *x in the sort order or, if `equal`, do not
     * come after *x. */
    size_t (*before)(const void *a, size_t n, const void *x, int equal);
    void (*spare[2])(void);
} fji_sort_kind;

FJI_EXTERN_C_BEGIN

/* The function behind FJ_SORT. It uses the members small, run, cut, pivot, part and sift of
 * *kind. */
FJ_API FJ_NODISCARD int fji_quick_sort(const fji_sort_kind *kind, void *a, size_t n,
                                       const fj_algo_options *how);

/* The function behind FJ_STABLE_SORT. It uses the members small, run, merge and before of *kind. */
FJ_API FJ_NODISCARD int fji_merge_sort(const fji_sort_kind *kind, void *a, size_t n,
                                       const fj_algo_options *how);

/* The function behind FJ_MERGE. It uses the members merge and before of *kind. */
FJ_API FJ_NODISCARD int fji_merge_runs(const fji_sort_kind *kind, const void *a, size_t na,
                                       const void *b, size_t nb, void *out,
                                       const fj_algo_options *how);

FJI_EXTERN_C_END

/* Bytes of an element. Up to this size, moving an element costs less than a mispredicted branch. */
#define FJI_SORT_LIGHT 64u

/* The member at_once for type T. */
#define FJI_SORT_AT_ONCE(T) (sizeof(T) <= FJI_SORT_LIGHT ? 32u : 12u)

/* Returns x if yes is 1 and y if yes is 0, without a branch. */
FJI_INLINE size_t fji_pick(size_t yes, size_t x, size_t y)
{
    return y ^ ((x ^ y) & (0 - yes));
}

/* clang-format off */

#define FJI_SORT_BASE(NAME, T, LESS)                                                               \
    typedef T NAME##_fji_t;                                                                        \
                                                                                                   \
    FJI_INLINE size_t NAME##_fji_less(const NAME##_fji_t *fji_x, const NAME##_fji_t *fji_y)        \
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
 * Sorts at most 32 elements: sorts groups of four by five comparisons each, and then merges the
 * groups from both ends at once. Such a merge needs no branches, and no test for the end of a half.
 */
#define FJI_SORT_SMALL(NAME)                                                                       \
    /* Insertion sort. a[0] to a[done - 1] are already sorted. */                                  \
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
    /* Sorts four elements into out. It compares the elements of two pairs, then the two lower     \
     * ones, then the two higher ones, then the two that remain for the middle. */                 \
    FJI_INLINE void NAME##_fji_four(const NAME##_fji_t *a, NAME##_fji_t *out)                      \
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
    /* Merges the two sorted halves of `a` into `out`: n / 2 elements from the front and n / 2     \
     * from the back, so no index leaves the array. If LESS contradicts itself, the merge from     \
     * the front and the merge from the back do not meet; the elements of `a` are then copied to   \
     * `out` unmerged. */                                                                          \
    FJI_INLINE void NAME##_fji_meet(const NAME##_fji_t *a, size_t n, NAME##_fji_t *out)            \
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
        if (FJI_UNLIKELY(l != l_end + 1 || r != r_end + 1))                                        \
            memcpy((void *)out, (const void *)a, n * sizeof *a);                                   \
    }                                                                                              \
                                                                                                   \
    /* Sorts n elements into out. 4 <= n <= 16. */                                                 \
    FJI_INLINE void NAME##_fji_half(const NAME##_fji_t *a, size_t n, NAME##_fji_t *out)            \
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
    FJI_INLINE void NAME##_fji_swap(NAME##_fji_t *x, NAME##_fji_t *y)                              \
    {                                                                                              \
        NAME##_fji_t old = *x;                                                                     \
        *x = *y;                                                                                   \
        *y = old;                                                                                  \
    }                                                                                              \
                                                                                                   \
    FJI_INLINE size_t NAME##_fji_left(const NAME##_fji_t *x, const NAME##_fji_t *pivot, int equal) \
    {                                                                                              \
        return equal ? NAME##_fji_less(pivot, x) ^ 1 : NAME##_fji_less(x, pivot);                  \
    }                                                                                              \
                                                                                                   \
    /* Partitions without branches. One place is the gap: its element was copied or moved away.    \
     * First a[0] is copied to `first`, so the place a[0] is the gap. Then x goes over the other   \
     * elements from left to right; the gap is always the place before x. The elements before      \
     * `to` belong left, those from `to` to the gap belong right. Each step copies *to into the    \
     * gap, and *x to the place `to`. The place x is then the gap. If the element that was at x    \
     * belongs left, `to` moves right by one. */                                                   \
    FJI_INLINE size_t NAME##_fji_part_light(NAME##_fji_t *a, size_t n, const NAME##_fji_t *pivot,  \
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
    /* Partitions by swapping only the elements that are on the wrong side. Each element is        \
     * compared once, so LESS cannot place an element on both sides, and l and r always meet. */   \
    FJI_INLINE size_t NAME##_fji_part_heavy(NAME##_fji_t *a, size_t n, const NAME##_fji_t *pivot,  \
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
    FJI_INLINE size_t NAME##_fji_median(const NAME##_fji_t *a, size_t i, size_t j, size_t k)       \
    {                                                                                              \
        size_t ij = NAME##_fji_less(a + i, a + j), ik = NAME##_fji_less(a + i, a + k);             \
        size_t jk = NAME##_fji_less(a + j, a + k);                                                 \
        return fji_pick(ij ^ ik, i, fji_pick(ij ^ jk, k, j));                                      \
    }                                                                                              \
                                                                                                   \
    /* Returns the index of the median of three elements, which are `step` apart and begin at      \
     * a[at]. If deep > 0, each of the three elements is itself the median of three,               \
     * recursively. */                                                                             \
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
    FJI_INLINE void NAME##_fji_pivot_now(NAME##_fji_t *a, size_t n, int *equal)                    \
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
    /* Merges from both ends at once. While each end takes at most half of the shorter run, the    \
     * loop needs no test for the end of a run. */                                                 \
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
