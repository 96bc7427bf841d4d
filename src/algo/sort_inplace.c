/* SPDX-License-Identifier: MIT */
/*
 * sort_inplace.c - sorts without scratch memory
 *
 * fji_heap_sort() is not stable. It takes O(n log n) comparisons and exchanges for any input.
 * To move an element down in the heap, the sort first follows the larger of two children down to a
 * leaf of the heap, with one comparison on each level. Then it goes back up to where the element
 * belongs, which is usually near the leaf. To also compare the element itself on each level on the
 * way down would take about twice as many comparisons.
 *
 * fji_stable_sort_inplace() is a merge sort that merges by rotations. To merge the neighbouring
 * runs A and B, a binary search (fji_merge_rank()) finds which elements of A and B, A1 and B1, are
 * the first half of the merged result. A2 and B2 are the others. A2 and B1, which are neighbours,
 * change places by a rotation. Then A1 and B1 are merged in the same way, and so are A2 and B2.
 *
 *     |A1 ..|A2 .....|B1 .....|B2 ...|   becomes   |A1 ..|B1 .....|  and  |A2 .....|B2 ...|
 *
 * The stable sort takes O(n log n) comparisons and O(n log^2 n) moves.
 */
#include "sort_inplace.h"

#include "swap.h"

enum {
    INSERTION_MAX = 8, /* fji_stable_sort_inplace() sorts a range of at most this many elements by
                        * insertion */
    CHECK_EVERY = 256, /* calls of heap_sift() between two tests whether the job has ended */
};

/* ---- Heap ------------------------------------------------------------------------------------ */

/* Moves element i of a heap of n elements down to where it belongs. The two subtrees below i are
 * already heaps: no element in them is before one of its children. */
static void heap_sift(const fji_order *o, unsigned char *base, size_t i, size_t n)
{
    size_t size = o->size, leaf = i;

    while (leaf < n / 2) {
        size_t child = 2 * leaf + 1;
        if (child + 1 < n && o->cmp(base + child * size, base + (child + 1) * size, o->arg) < 0)
            child++;
        leaf = child;
    }
    while (leaf > i && o->cmp(base + i * size, base + leaf * size, o->arg) > 0)
        leaf = (leaf - 1) / 2;
    /* `leaf` is where element i belongs. Element i goes there, and all elements on the path from
     * there up to i move up by one level. */
    for (; leaf > i; leaf = (leaf - 1) / 2)
        fji_swap_bytes(base + i * size, base + leaf * size, size);
}

void fji_heap_sort(const fji_order *o, fji_job *j, unsigned char *base, size_t n)
{
    for (size_t i = n / 2; i > 0; i--) {
        if (i % CHECK_EVERY == 0 && !fji_job_should_continue(j)) return;
        heap_sift(o, base, i - 1, n);
    }
    for (size_t i = n; i > 1; i--) {
        if (i % CHECK_EVERY == 0 && !fji_job_should_continue(j)) return;
        fji_swap_bytes(base, base + (i - 1) * o->size, o->size);
        heap_sift(o, base, 0, i - 1);
    }
}

/* ---- Merges by rotations --------------------------------------------------------------------- */

static void insertion_sort(const fji_order *o, unsigned char *base, size_t n)
{
    size_t size = o->size;

    for (size_t i = 1; i < n; i++)
        for (unsigned char *e = base + i * size; e > base && o->cmp(e - size, e, o->arg) > 0;
             e -= size)
            fji_swap_bytes(e - size, e, size);
}

/* Merges two neighbouring runs, of na elements at `base` and nb elements behind them, by rotations.
 * If the job ends, returns early, with the elements in some order. */
static void merge_inplace(const fji_order *o, fji_job *j, unsigned char *base, size_t na, size_t nb)
{
    size_t size = o->size;

    while (na > 0 && nb > 0 && fji_job_should_continue(j)) {
        unsigned char *b = base + na * size;
        if (o->cmp(b - size, b, o->arg) <= 0) return;
        if (na == 1 && nb == 1) {
            fji_swap_bytes(base, b, size);
            return;
        }
        fji_run_pair p = {.a = base, .b = b, .na = na, .nb = nb};
        size_t n = (na + nb) / 2, lo = fji_merge_rank(o, &p, n); /* lo from a, n - lo from b */
        fji_rotate(base + lo * size, (na - lo) * size, (n - lo) * size);
        merge_inplace(o, j, base, lo, n - lo);
        base += n * size;
        nb -= n - lo;
        na -= lo;
    }
}

void fji_stable_sort_inplace(const fji_order *o, fji_job *j, unsigned char *base, size_t n)
{
    if (n <= INSERTION_MAX) {
        insertion_sort(o, base, n);
        return;
    }
    if (!fji_job_should_continue(j)) return;
    fji_stable_sort_inplace(o, j, base, n / 2);
    fji_stable_sort_inplace(o, j, base + n / 2 * o->size, n - n / 2);
    merge_inplace(o, j, base, n / 2, n - n / 2);
}
