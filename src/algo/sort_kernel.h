/* SPDX-License-Identifier: MIT */
/*
 * sort_kernel.h - copying, comparing and merging elements: the inner loops of sorts
 *
 * The inlined functions take the kind of the elements (enum fji_kind in merge.h) as a constant. The
 * compiler therefore makes a separate loop for each kind and, if all elements of the kind have the
 * same size, knows this size.
 *
 * A comparison returns a positive value if its first element belongs behind the second one. A merge
 * turns that value into a mask, and the mask selects the address of the element that comes next. No
 * branch of the loop of a merge depends on a comparison, so the processor mispredicts none of them.
 */
#ifndef FJI_ALGO_SORT_KERNEL_H
#define FJI_ALGO_SORT_KERNEL_H

#include <string.h>

#include "merge.h"

/* ---- Elements -------------------------------------------------------------------------------- */

/* Copies one element of the given kind and of `size` bytes or, if `kind` is FJI_KIND_PTR, one
 * pointer. `to` and `from` do not overlap. `kind` is a constant in every call, so only one case of
 * the switch is compiled. */
FJI_INLINE void fji_elem_copy(void *to, const void *from, size_t size, enum fji_kind kind)
{
    unsigned char *d = to;
    const unsigned char *s = from;
    uint64_t lo, hi;

    struct wide {
        uint64_t word[2];
    } first, last;

    switch (kind) {
        case FJI_KIND_4: memcpy(d, s, 4); break;
        case FJI_KIND_8:
        case FJI_KIND_INDIRECT: memcpy(d, s, 8); break;
        case FJI_KIND_16: /* copies the first and the last 8 bytes, which overlap if size < 16 */
            memcpy(&lo, s, 8);
            memcpy(&hi, s + size - 8, 8);
            memcpy(d, &lo, 8);
            memcpy(d + size - 8, &hi, 8);
            break;
        case FJI_KIND_32:
            memcpy(&first, s, 16);
            memcpy(&last, s + size - 16, 16);
            memcpy(d, &first, 16);
            memcpy(d + size - 16, &last, 16);
            break;
        case FJI_KIND_PTR: memcpy(d, s, sizeof(uintptr_t)); break;
        case FJI_KIND_ANY: memcpy(d, s, size); break;
    }
}

/* p is a place in the array that is sorted. Returns the address of its element: p or, if pointers
 * to elements are sorted (FJI_KIND_PTR), the pointer that is stored at p. */
FJI_INLINE const void *fji_elem_address(const void *p, enum fji_kind kind)
{
    const void *e = p;

    if (kind == FJI_KIND_PTR) memcpy(&e, p, sizeof e);
    return e;
}

FJI_INLINE int fji_elem_cmp(const fji_order *o, const void *a, const void *b, enum fji_kind kind)
{
    return o->cmp(fji_elem_address(a, kind), fji_elem_address(b, kind), o->arg);
}

/* Compares two elements as fji_elem_cmp() does, with o->kind, which need not be a constant. For
 * code outside of inner loops. */
static inline int fji_order_cmp(const fji_order *o, const void *a, const void *b)
{
    return o->kind == FJI_KIND_PTR ? fji_elem_cmp(o, a, b, FJI_KIND_PTR) : o->cmp(a, b, o->arg);
}

/* Returns how many bytes are moved for an element: a constant if all elements of the kind have the
 * same size, otherwise o->size. */
FJI_INLINE size_t fji_elem_size(const fji_order *o, enum fji_kind kind)
{
    if (kind == FJI_KIND_8 || kind == FJI_KIND_INDIRECT || kind == FJI_KIND_PTR) return 8;
    return kind == FJI_KIND_4 ? 4 : o->size;
}

/* Calls fn() once, with the given arguments and `kind` after them. The switch has a call for each
 * kind, in which the kind is a constant, so that the compiler can inline it. */
#define FJI_BY_KIND(kind, fn, ...)                                             \
    do {                                                                       \
        switch (kind) {                                                        \
            case FJI_KIND_4: fn(__VA_ARGS__, FJI_KIND_4); break;               \
            case FJI_KIND_8: fn(__VA_ARGS__, FJI_KIND_8); break;               \
            case FJI_KIND_INDIRECT: fn(__VA_ARGS__, FJI_KIND_INDIRECT); break; \
            case FJI_KIND_16: fn(__VA_ARGS__, FJI_KIND_16); break;             \
            case FJI_KIND_32: fn(__VA_ARGS__, FJI_KIND_32); break;             \
            case FJI_KIND_PTR: fn(__VA_ARGS__, FJI_KIND_PTR); break;           \
            case FJI_KIND_ANY: fn(__VA_ARGS__, FJI_KIND_ANY); break;           \
        }                                                                      \
    } while (0)

/* ---- Selection without branches -------------------------------------------------------------- */

/* Returns a mask: all bits 1 if `result` is positive, else 0. With fji_select() it replaces a
 * branch that would often be mispredicted. */
FJI_INLINE uintptr_t fji_positive_mask(int result)
{
    return (uintptr_t)(-(intptr_t)result >> (sizeof(intptr_t) * 8 - 1));
}

/* Returns `yes` if all bits of the mask are 1, and `no` if the mask is 0. */
FJI_INLINE const unsigned char *fji_select(uintptr_t mask, const unsigned char *yes,
                                           const unsigned char *no)
{
    return (const unsigned char *)((uintptr_t)no ^ (((uintptr_t)yes ^ (uintptr_t)no) & mask));
}

/* ---- Merging from both ends ------------------------------------------------------------------ */

/* A merge prefetches the target of a pointer this many elements before it reads the pointer. */
enum { FJI_PREFETCH_AHEAD = 8 };

/* If what is sorted are pointers (FJI_KIND_PTR or FJI_KIND_INDIRECT), prefetches the target of the
 * pointer FJI_PREFETCH_AHEAD places from p in the direction of the merge. `left` is how many bytes
 * the last place of the run is away from p; it is negative if the merge goes backwards. If at most
 * FJI_PREFETCH_AHEAD places follow p, prefetches the target of the pointer at p. Does nothing for
 * other kinds. */
FJI_INLINE void fji_elem_prefetch(const unsigned char *p, ptrdiff_t left, enum fji_kind kind)
{
    if (kind != FJI_KIND_PTR && kind != FJI_KIND_INDIRECT) return;
    const ptrdiff_t step = FJI_PREFETCH_AHEAD * (ptrdiff_t)sizeof(void *);
    const void *e;

    memcpy(&e, left > step ? p + step : left < -step ? p - step : p, sizeof e);
    __builtin_prefetch(e);
}

/* Writes the first k elements of the merged result to the beginning of p->out, and the last k
 * elements to its end. Sets *p to what is left to merge between them, and *consistent to true.
 * 0 < k, k <= na and k <= nb. If 2 * k == na + nb, nothing is left, and the last two elements are
 * ordered by one comparison. If comparisons have contradicted each other so that an element was
 * taken from both ends, sets *consistent to false and leaves *p as it was: the caller has to merge
 * again. */
FJI_INLINE void fji_merge_both_ends(const fji_order *o, fji_run_pair *p, size_t k, bool *consistent,
                                    enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    const bool all = 2 * k == p->na + p->nb;
    const unsigned char *a = p->a, *b = p->b;
    const unsigned char *a_last = a + (p->na - 1) * size, *b_last = b + (p->nb - 1) * size;
    unsigned char *out = p->out, *const out_stop = out + (k - all) * size;
    /* When the next element at the front goes to address x, the next one at the back goes to
     * mirror - x: both addresses are at the same distance from their end of p->out. */
    const uintptr_t mirror = (uintptr_t)out + (uintptr_t)(out + (p->na + p->nb - 1) * size);

    while (out != out_stop) {
        uintptr_t mask = fji_positive_mask(fji_elem_cmp(o, a, b, kind));
        const unsigned char *e = fji_select(mask, b, a);
        fji_elem_prefetch(e, fji_select(mask, b_last, a_last) - e, kind);
        fji_elem_copy(out, e, size, kind);
        b += size & mask;
        a += size & ~mask;

        mask = fji_positive_mask(fji_elem_cmp(o, a_last, b_last, kind));
        e = fji_select(mask, a_last, b_last);
        fji_elem_prefetch(e, fji_select(mask, a, b) - e, kind);
        fji_elem_copy((unsigned char *)(mirror - (uintptr_t)out), e, size, kind);
        a_last -= size & mask;
        b_last -= size & ~mask;
        out += size;
    }

    const uintptr_t left_a = (uintptr_t)a_last + size - (uintptr_t)a;
    const uintptr_t left_b = (uintptr_t)b_last + size - (uintptr_t)b;
    *consistent = left_a <= PTRDIFF_MAX && left_b <= PTRDIFF_MAX;
    if (FJI_UNLIKELY(!*consistent)) return;
    if (all) { /* what is left is one element of each run, or two of one run */
        const unsigned char *l = left_a != 0 ? a : b, *r = left_b != 0 ? b_last : a_last;
        uintptr_t mask = fji_positive_mask(fji_elem_cmp(o, l, r, kind));
        fji_elem_copy(out, fji_select(mask, r, l), size, kind);
        fji_elem_copy(out + size, fji_select(mask, l, r), size, kind);
        p->na = p->nb = 0;
        return;
    }
    p->na = left_a / size;
    p->nb = left_b / size;
    p->a = a;
    p->b = b;
    p->out = out;
}

#endif /* FJI_ALGO_SORT_KERNEL_H */
