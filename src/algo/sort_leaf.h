/* SPDX-License-Identifier: MIT */
/*
 * sort_leaf.h - sorting a few elements, for sort.c
 *
 * A leaf is a range of at most 2 * BLOCK - 1 elements. Its first BLOCK elements, the block, are
 * sorted without branches on the results of comparisons: four pairs are compared, then two groups
 * of four are sorted, and then the two groups are merged from both ends. If all four pairs are in
 * order, or all four are descending, the whole block is first tested for that order; other blocks
 * do not pay for this test. The elements behind the block are inserted one by one, except those
 * that continue the order of a block that was found in order or descending. A leaf of fewer than
 * BLOCK elements is sorted by insertion only. A leaf that is in order or strictly descending is not
 * moved.
 */
#ifndef FJI_ALGO_SORT_LEAF_H
#define FJI_ALGO_SORT_LEAF_H

#include "sort_kernel.h"
#include "swap.h"

enum {
    BLOCK = 8,       /* elements of a block */
    DIRECT_MAX = 32, /* if an element has more bytes than this, a pointer to it is sorted */
};

/* The state of a range: where its elements are, and in which order. */
enum range_state {
    IN_ARRAY = 0,   /* sorted, in the array */
    IN_SCRATCH = 1, /* sorted, in the scratch array */
    DESCENDING = 2, /* in the array, strictly descending */
    PRESORTED = 4,  /* a flag, added to a state: the range was found in order or descending, or its
                     * two sorted halves were; so they were not merged */
    UNORDERED = 8,  /* a result of functions, not a state of a range: the elements were neither in
                     * order nor descending */
};

/* Returns the index, from lo to lo + n, at which *e belongs among the n elements sorted[lo] to
 * sorted[lo + n - 1]: behind all of them that are before *e or equal to it. */
FJI_INLINE size_t leaf_position(const fji_order *o, const unsigned char *sorted, size_t lo,
                                size_t n, const unsigned char *e, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);

    while (n > 0) {
        size_t half = n / 2;
        bool after = fji_elem_cmp(o, sorted + (lo + half) * size, e, kind) <= 0;
        lo = after ? lo + half + 1 : lo;
        n = after ? n - half - 1 : half;
    }
    return lo;
}

/* Inserts *e into the first i elements of `sorted`, so that i + 1 elements are sorted. The caller
 * guarantees that *e belongs at an index from lo to lo + n. */
FJI_INLINE void leaf_insert(const fji_order *o, unsigned char *sorted, size_t i, size_t lo,
                            size_t n, const unsigned char *e, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    size_t at = leaf_position(o, sorted, lo, n, e, kind);
    unsigned char copy[DIRECT_MAX], *hole = sorted + i * size, *end = sorted + at * size;

    fji_elem_copy(copy, e, size, kind); /* *e may be sorted[i], which is overwritten */
    for (; hole != end; hole -= size) fji_elem_copy(hole, hole - size, size, kind);
    fji_elem_copy(hole, copy, size, kind);
}

/* Exchanges the element at x with the one at y, the next one with the one before y, and so on: n
 * pairs. */
FJI_INLINE void swap_reversed(unsigned char *x, unsigned char *y, size_t n, size_t size,
                              enum fji_kind kind)
{
    unsigned char copy[DIRECT_MAX];

    for (; n > 0; n--, x += size, y -= size) {
        if (kind == FJI_KIND_ANY) {
            fji_swap_bytes(x, y, size);
            continue;
        }
        fji_elem_copy(copy, x, size, kind);
        fji_elem_copy(x, y, size, kind);
        fji_elem_copy(y, copy, size, kind);
    }
}

/* Tests whether n elements, an even number, are in order or, if `after` is set, strictly
 * descending. Returns IN_ARRAY or DESCENDING if they are, else UNORDERED. The caller has already
 * found that order in each of the pairs 0 and 1, 2 and 3, and so on, so only the other neighbours
 * are compared. */
FJI_INLINE int leaf_check_order(const fji_order *o, const unsigned char *e, size_t n, bool after,
                                enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);

    for (size_t i = 2; i < n; i += 2)
        if ((fji_elem_cmp(o, e + (i - 1) * size, e + i * size, kind) > 0) != after)
            return UNORDERED;
    return after ? DESCENDING : IN_ARRAY;
}

/* Sorts the four elements at e into `to`, which does not overlap them. They are two pairs; a mask
 * with all bits 1 in swap_a or swap_b says that the elements of the first or second pair are in the
 * wrong order. The smaller of the two lower elements becomes the first one, the larger of the two
 * higher elements becomes the last one, and one more comparison orders the other two. */
FJI_INLINE void leaf_sort_4(const fji_order *o, const unsigned char *e, unsigned char *to,
                            uintptr_t swap_a, uintptr_t swap_b, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    const unsigned char *a = e + (size & swap_a), *b = e + (size & ~swap_a);
    const unsigned char *c = e + 2 * size + (size & swap_b), *d = e + 2 * size + (size & ~swap_b);
    uintptr_t first = fji_positive_mask(fji_elem_cmp(o, a, c, kind));
    uintptr_t last = fji_positive_mask(fji_elem_cmp(o, b, d, kind));
    const unsigned char *l = fji_select(first, a, fji_select(last, c, b));
    const unsigned char *r = fji_select(last, d, fji_select(first, b, c));

    fji_elem_copy(to, fji_select(first, c, a), size, kind);
    fji_elem_copy(to + 3 * size, fji_select(last, b, d), size, kind);
    uintptr_t mask = fji_positive_mask(fji_elem_cmp(o, l, r, kind));
    fji_elem_copy(to + size, fji_select(mask, r, l), size, kind);
    fji_elem_copy(to + 2 * size, fji_select(mask, l, r), size, kind);
}

/* Sorts BLOCK elements at `from`, in the array, into `to`, which may be `from`. If they are already
 * in order or strictly descending, moves nothing and sets *state to IN_ARRAY or DESCENDING.
 * Otherwise sets *state to UNORDERED, which means that the sorted elements are in `to`. Only the
 * test for existing order branches on comparisons, and a second merge that is made if comparisons
 * have contradicted each other. */
FJI_INLINE void leaf_sort_8(const fji_order *o, const unsigned char *from, unsigned char *to,
                            int *state, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    _Alignas(DIRECT_MAX) unsigned char half[BLOCK * DIRECT_MAX];
    uintptr_t swap[BLOCK / 2], any = 0, all = UINTPTR_MAX;
    bool consistent;

    for (size_t i = 0; i < BLOCK / 2; i++) {
        swap[i] = fji_positive_mask(
            fji_elem_cmp(o, from + 2 * i * size, from + (2 * i + 1) * size, kind));
        any |= swap[i];
        all &= swap[i];
    }
    if (any == 0 || all != 0) {
        *state = leaf_check_order(o, from, BLOCK, all != 0, kind);
        if (*state != UNORDERED) return;
    }
    *state = UNORDERED;
    leaf_sort_4(o, from, half, swap[0], swap[1], kind);
    leaf_sort_4(o, from + 4 * size, half + 4 * size, swap[2], swap[3], kind);
    fji_run_pair p = {half, half + 4 * size, to, 4, 4};
    fji_merge_both_ends(o, &p, 4, &consistent, kind);
    if (!consistent) fji_merge_sequential(o, &p);
}

/* Sets *descending to whether the second of n elements is before the first. Returns the length of
 * the longest run at the front, strictly descending if *descending is set, otherwise in order. */
FJI_INLINE size_t leaf_run(const fji_order *o, const unsigned char *e, size_t n, bool *descending,
                           enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    size_t run;

    *descending = false;
    if (n < 2) return n;
    *descending = fji_elem_cmp(o, e, e + size, kind) > 0;
    for (run = 2; run < n; run++) {
        e += size;
        if ((fji_elem_cmp(o, e, e + size, kind) > 0) != *descending) break;
    }
    return run;
}

/* Does the same as leaf_sort_8() for 0 < n < BLOCK elements: takes the longest run at the front,
 * reverses it if it is descending, and inserts the elements behind it one by one. If it sorts, the
 * elements at `from` may change too. */
FJI_INLINE void leaf_insertion(const fji_order *o, unsigned char *from, unsigned char *to, size_t n,
                               int *state, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    bool descending;
    size_t run = leaf_run(o, from, n, &descending, kind);

    *state = descending ? DESCENDING : IN_ARRAY;
    if (run == n) return;
    *state = UNORDERED;
    if (descending) swap_reversed(from, from + (run - 1) * size, run / 2, size, kind);
    if (to != from) memcpy(to, from, run * size);
    /* The element that ended the run is before the last element of the run or, if the run was
     * reversed, not before the element that is now its first one. One of the run + 1 indices at
     * which it could be inserted is therefore excluded. */
    leaf_insert(o, to, run, descending, run - 1, from + run * size, kind);
    for (size_t i = run + 1; i < n; i++) leaf_insert(o, to, i, 0, i, from + i * size, kind);
}

/* Does the same as leaf_sort_8() for a leaf of 0 < n < 2 * BLOCK elements. If it sorts, the
 * elements at `from` may change too. */
FJI_INLINE void leaf_sort(const fji_order *o, unsigned char *from, unsigned char *to, size_t n,
                          int *state, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    size_t i = BLOCK;

    if (n < BLOCK) {
        leaf_insertion(o, from, to, n, state, kind);
        return;
    }
    leaf_sort_8(o, from, to, state, kind);
    if (*state != UNORDERED) { /* the elements behind the block may continue its order */
        bool descending = *state == DESCENDING;
        const unsigned char *e = from + (i - 1) * size;
        for (; i < n && (fji_elem_cmp(o, e, e + size, kind) > 0) == descending; i++) e += size;
        if (i == n) return;
        if (descending) swap_reversed(from, from + (i - 1) * size, i / 2, size, kind);
        if (to != from) memcpy(to, from, i * size);
        *state = UNORDERED;
    }
    for (; i < n; i++) leaf_insert(o, to, i, 0, i, from + i * size, kind);
}

#endif /* FJI_ALGO_SORT_LEAF_H */
