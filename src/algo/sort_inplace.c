/* SPDX-License-Identifier: MIT */
/*
 * sort_inplace.c - sorting without memory
 *
 * The plain one is a heap sort: n log n comparisons and exchanges, whatever the input. A hole
 * is led down to a leaf along the greater children, then up again to where the element
 * belongs, which is near the leaf as a rule: that takes half the comparisons of asking at
 * every step whether it belongs there.
 *
 * The stable one merges by rotations. To merge A and B, the middle of both together is where
 * the cut has to be: a binary search finds how many of A are to change places with as many of
 * B so that nothing left of it is after anything right of it. They are exchanged, as blocks,
 * by a rotation, and both sides are merged in the same way.
 *
 *     |A1 ..|A2 .....|B1 .....|B2 ...|   A2 and B1 change places: |A1|B1|  and  |A2|B2|
 *
 * n log n log n moves, and comparisons in the order of n log n.
 */
#include "sort_inplace.h"

#include <string.h>

enum {
    INSERTION_MAX = 8, /* elements that are sorted by insertion */
    BLOCK = 32,        /* bytes that are exchanged at a time */
    CHECK_EVERY = 256, /* steps of a heap between looks at the job */
};

void fji_swap_bytes(unsigned char *x, unsigned char *y, size_t bytes)
{
    unsigned char t[BLOCK], u[BLOCK];

    for (; bytes >= BLOCK; bytes -= BLOCK, x += BLOCK, y += BLOCK) {
        memcpy(t, x, BLOCK);
        memcpy(u, y, BLOCK);
        memcpy(x, u, BLOCK);
        memcpy(y, t, BLOCK);
    }
    for (; bytes >= 8; bytes -= 8, x += 8, y += 8) {
        memcpy(t, x, 8);
        memcpy(u, y, 8);
        memcpy(x, u, 8);
        memcpy(y, t, 8);
    }
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = x[i];
        x[i] = y[i];
        y[i] = c;
    }
}

/* ---- Heap ------------------------------------------------------------------------------------ */

/* Sorts the element at i into the heap of those below it. */
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
    /* What lies on the way from i to leaf goes up by one, and i to leaf. */
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

/* ---- Rotations ------------------------------------------------------------------------------- */

/* |x elements|y elements| change places: by exchanges of blocks, as in Euclid's algorithm. */
static void rotate(unsigned char *base, size_t x, size_t y, size_t size)
{
    while (x > 0 && y > 0) {
        if (x <= y) {
            fji_swap_bytes(base, base + y * size, x * size); /* x is where it belongs */
            y -= x;
        } else {
            fji_swap_bytes(base + (x - y) * size, base + x * size, y * size); /* its end is */
            x -= y;
        }
    }
}

static void insertion_sort(const fji_order *o, unsigned char *base, size_t n)
{
    size_t size = o->size;

    for (size_t i = 1; i < n; i++)
        for (unsigned char *e = base + i * size; e > base && o->cmp(e - size, e, o->arg) > 0;
             e -= size)
            fji_swap_bytes(e - size, e, size);
}

/* Merges |na|nb| where they lie. */
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
        /* The first n elements of the result are `lo` of a and n - lo of b. */
        size_t n = (na + nb) / 2, lo = n > nb ? n - nb : 0, hi = n < na ? n : na;
        while (lo < hi) {
            size_t i = lo + (hi - lo) / 2;
            if (o->cmp(base + i * size, b + (n - i - 1) * size, o->arg) <= 0)
                lo = i + 1;
            else
                hi = i;
        }
        rotate(base + lo * size, na - lo, n - lo, size);
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
