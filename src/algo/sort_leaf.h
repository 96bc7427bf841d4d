/* SPDX-License-Identifier: MIT */
/*
 * sort_leaf.h - sorting a few elements
 *
 * A block of eight is sorted without a jump that depends on an answer: four pairs, of these two
 * fours, and they are merged from both ends. Less than a block is sorted by insertion, and so is
 * what a leaf has beyond its block. Before that, if all pairs point the same way, it is looked
 * whether all elements are in order: which costs nothing where they are not.
 */
#ifndef FJI_ALGO_SORT_LEAF_H
#define FJI_ALGO_SORT_LEAF_H

#include "sort_inplace.h"
#include "sort_kernel.h"

enum {
    BLOCK = 8,       /* elements that are sorted at a time */
    DIRECT_MAX = 32, /* bytes of an element; larger ones are sorted by pointers */
};

/* Where a range of elements is, and how. */
enum range_state {
    IN_ARRAY = 0,   /* sorted, in the array */
    IN_SCRATCH = 1, /* sorted, in the buffer */
    DESCENDING = 2, /* in the array, each after the next */
    PRESORTED = 4,  /* besides: as it was from the beginning */
    UNMERGED = 8,   /* not yet one range */
};

/* Where what is at e belongs, at lo to lo + n: after all that it is not before. */
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

/* Puts the element at e in its place, at lo to lo + n, among i that are sorted. */
FJI_INLINE void leaf_insert(const fji_order *o, unsigned char *sorted, size_t i, size_t lo,
                            size_t n, const unsigned char *e, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    size_t at = leaf_position(o, sorted, lo, n, e, kind);
    unsigned char copy[DIRECT_MAX], *hole = sorted + i * size, *end = sorted + at * size;

    fji_elem_copy(copy, e, size, kind); /* it may lie where the hole is */
    for (; hole != end; hole -= size) fji_elem_copy(hole, hole - size, size, kind);
    fji_elem_copy(hole, copy, size, kind);
}

/* Exchanges n elements from x on with as many from y backwards. */
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

/*
 * Whether n elements are in order, or each is after the next, where those of every pair are:
 * `after`. IN_ARRAY, DESCENDING, or UNMERGED.
 */
FJI_INLINE int leaf_check_order(const fji_order *o, const unsigned char *e, size_t n, bool after,
                                enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);

    for (size_t i = 2; i < n; i += 2)
        if ((fji_elem_cmp(o, e + (i - 1) * size, e + i * size, kind) > 0) != after) return UNMERGED;
    return after ? DESCENDING : IN_ARRAY;
}

/*
 * Sorts the four elements at e to `to`. Two pairs, whose masks say whether they are to be
 * turned around: the first of the two is before all, the last of the two after all, and the
 * two others are compared.
 */
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

/*
 * Sorts BLOCK elements at `from` to `to`, which may be the same, unless they are in order:
 * *place. No jump depends on an answer, but for the one whether they are.
 */
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
        if (*state != UNMERGED) return;
    }
    *state = UNMERGED;
    leaf_sort_4(o, from, half, swap[0], swap[1], kind);
    leaf_sort_4(o, from + 4 * size, half + 4 * size, swap[2], swap[3], kind);
    fji_run_pair p = {half, half + 4 * size, to, 4, 4};
    fji_merge_both_ends(o, &p, 4, &consistent, kind);
    if (!consistent) fji_merge_sequential(o, &p);
}

/* How many elements from e on are in order, or each after the next. */
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

/* The same of 0 < n < BLOCK elements, by insertion into the run that they begin with. */
FJI_INLINE void leaf_insertion(const fji_order *o, unsigned char *from, unsigned char *to, size_t n,
                               int *state, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    bool descending;
    size_t run = leaf_run(o, from, n, &descending, kind);

    *state = descending ? DESCENDING : IN_ARRAY;
    if (run == n) return;
    *state = UNMERGED;
    if (descending) swap_reversed(from, from + (run - 1) * size, run / 2, size, kind);
    if (to != from) memcpy(to, from, run * size);
    /* What ended the run is known to belong before its last element, or after its first. */
    leaf_insert(o, to, run, descending, run - 1, from + run * size, kind);
    for (size_t i = run + 1; i < n; i++) leaf_insert(o, to, i, 0, i, from + i * size, kind);
}

/* The same of 0 < n < 2 * BLOCK elements. */
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
    if (*state != UNMERGED) { /* it may go on as it has begun */
        bool descending = *state == DESCENDING;
        const unsigned char *e = from + (i - 1) * size;
        for (; i < n && (fji_elem_cmp(o, e, e + size, kind) > 0) == descending; i++) e += size;
        if (i == n) return;
        if (descending) swap_reversed(from, from + (i - 1) * size, i / 2, size, kind);
        if (to != from) memcpy(to, from, i * size);
        *state = UNMERGED;
    }
    for (; i < n; i++) leaf_insert(o, to, i, 0, i, from + i * size, kind);
}

#endif /* FJI_ALGO_SORT_LEAF_H */
