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
    BLOCK = 8,   /* elements that are sorted at a time */
    DIRECT = 32, /* bytes of an element; larger ones are sorted by pointers */
};

/* Where a range of elements is, and how. */
enum sort_place {
    IN_BASE = 0, /* sorted, in the array */
    IN_ROOM = 1, /* sorted, in the buffer */
    DOWN = 2,    /* in the array, each after the next */
    FOUND = 4,   /* besides: as it was from the beginning */
    APART = 8,   /* not yet one range */
};

/* Where what is at e belongs, at lo to lo + n: after all that it is not before. */
FJI_INLINE size_t leaf_find(const fji_order *o, const unsigned char *sorted, size_t lo, size_t n,
                            const unsigned char *e, enum fji_kind kind)
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
    size_t at = leaf_find(o, sorted, lo, n, e, kind);
    unsigned char spare[DIRECT], *hole = sorted + i * size, *end = sorted + at * size;

    fji_elem_copy(spare, e, size, kind); /* it may lie where the hole is */
    for (; hole != end; hole -= size) fji_elem_copy(hole, hole - size, size, kind);
    fji_elem_copy(hole, spare, size, kind);
}

/* Exchanges n elements from x on with as many from y backwards. */
FJI_INLINE void swap_many(unsigned char *x, unsigned char *y, size_t n, size_t size,
                          enum fji_kind kind)
{
    unsigned char spare[DIRECT];

    for (; n > 0; n--, x += size, y -= size) {
        if (kind == FJI_KIND_ANY) {
            fji_swap_bytes(x, y, size);
            continue;
        }
        fji_elem_copy(spare, x, size, kind);
        fji_elem_copy(x, y, size, kind);
        fji_elem_copy(y, spare, size, kind);
    }
}

/*
 * Whether n elements are in order, or each is after the next, where those of every pair are:
 * `after`. IN_BASE, DOWN, or APART.
 */
FJI_INLINE int leaf_linked(const fji_order *o, const unsigned char *e, size_t n, bool after,
                           enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);

    for (size_t i = 2; i < n; i += 2)
        if ((fji_elem_cmp(o, e + (i - 1) * size, e + i * size, kind) > 0) != after) return APART;
    return after ? DOWN : IN_BASE;
}

/*
 * Sorts the four elements at e to `to`. Two pairs, whose masks say whether they are to be
 * turned around: the first of the two is before all, the last of the two after all, and the
 * two others are compared.
 */
FJI_INLINE void leaf_four(const fji_order *o, const unsigned char *e, unsigned char *to,
                          uintptr_t turn_a, uintptr_t turn_b, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    const unsigned char *a = e + (size & turn_a), *b = e + (size & ~turn_a);
    const unsigned char *c = e + 2 * size + (size & turn_b), *d = e + 2 * size + (size & ~turn_b);
    uintptr_t first = fji_mask(fji_elem_cmp(o, a, c, kind));
    uintptr_t last = fji_mask(fji_elem_cmp(o, b, d, kind));
    const unsigned char *l = fji_pick(first, a, fji_pick(last, c, b));
    const unsigned char *r = fji_pick(last, d, fji_pick(first, b, c));

    fji_elem_copy(to, fji_pick(first, c, a), size, kind);
    fji_elem_copy(to + 3 * size, fji_pick(last, b, d), size, kind);
    uintptr_t mask = fji_mask(fji_elem_cmp(o, l, r, kind));
    fji_elem_copy(to + size, fji_pick(mask, r, l), size, kind);
    fji_elem_copy(to + 2 * size, fji_pick(mask, l, r), size, kind);
}

/*
 * Sorts BLOCK elements at `from` to `to`, which may be the same, unless they are in order:
 * *place. No jump depends on an answer, but for the one whether they are.
 */
FJI_INLINE void leaf_block(const fji_order *o, const unsigned char *from, unsigned char *to,
                           int *place, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    _Alignas(DIRECT) unsigned char half[BLOCK * DIRECT];
    uintptr_t turn[BLOCK / 2], any = 0, all = UINTPTR_MAX;
    bool sane;

    for (size_t i = 0; i < BLOCK / 2; i++) {
        turn[i] = fji_mask(fji_elem_cmp(o, from + 2 * i * size, from + (2 * i + 1) * size, kind));
        any |= turn[i];
        all &= turn[i];
    }
    if (any == 0 || all != 0) {
        *place = leaf_linked(o, from, BLOCK, all != 0, kind);
        if (*place != APART) return;
    }
    *place = APART;
    leaf_four(o, from, half, turn[0], turn[1], kind);
    leaf_four(o, from + 4 * size, half + 4 * size, turn[2], turn[3], kind);
    fji_piece p = {half, half + 4 * size, to, 4, 4};
    fji_merge_both(o, &p, 4, &sane, kind);
    if (!sane) fji_merge_alone(o, &p);
}

/* How many elements from e on are in order, or each after the next. */
FJI_INLINE size_t leaf_run(const fji_order *o, const unsigned char *e, size_t n, bool *down,
                           enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    size_t run;

    *down = false;
    if (n < 2) return n;
    *down = fji_elem_cmp(o, e, e + size, kind) > 0;
    for (run = 2; run < n; run++) {
        e += size;
        if ((fji_elem_cmp(o, e, e + size, kind) > 0) != *down) break;
    }
    return run;
}

/* The same of 0 < n < BLOCK elements, by insertion into the run that they begin with. */
FJI_INLINE void leaf_few(const fji_order *o, unsigned char *from, unsigned char *to, size_t n,
                         int *place, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    bool down;
    size_t run = leaf_run(o, from, n, &down, kind);

    *place = down ? DOWN : IN_BASE;
    if (run == n) return;
    *place = APART;
    if (down) swap_many(from, from + (run - 1) * size, run / 2, size, kind);
    if (to != from) memcpy(to, from, run * size);
    /* What ended the run is known to belong before its last element, or after its first. */
    leaf_insert(o, to, run, down, run - 1, from + run * size, kind);
    for (size_t i = run + 1; i < n; i++) leaf_insert(o, to, i, 0, i, from + i * size, kind);
}

/* The same of 0 < n < 2 * BLOCK elements. */
FJI_INLINE void leaf_sort(const fji_order *o, unsigned char *from, unsigned char *to, size_t n,
                          int *place, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    size_t i = BLOCK;

    if (n < BLOCK) {
        leaf_few(o, from, to, n, place, kind);
        return;
    }
    leaf_block(o, from, to, place, kind);
    if (*place != APART) { /* it may go on as it has begun */
        bool down = *place == DOWN;
        const unsigned char *e = from + (i - 1) * size;
        for (; i < n && (fji_elem_cmp(o, e, e + size, kind) > 0) == down; i++) e += size;
        if (i == n) return;
        if (down) swap_many(from, from + (i - 1) * size, i / 2, size, kind);
        if (to != from) memcpy(to, from, i * size);
        *place = APART;
    }
    for (; i < n; i++) leaf_insert(o, to, i, 0, i, from + i * size, kind);
}

#endif /* FJI_ALGO_SORT_LEAF_H */
