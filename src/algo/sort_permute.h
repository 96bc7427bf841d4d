/* SPDX-License-Identifier: MIT */
/*
 * sort_permute.h - moving elements into the order of pointers to them
 */
#ifndef FJI_ALGO_SORT_PERMUTE_H
#define FJI_ALGO_SORT_PERMUTE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fji_permutation {
    unsigned char *base; /* the elements */
    size_t n, size;      /* the number of elements, at least 1, and the bytes of an element */
    const unsigned char *const *pointers; /* to the n elements, in their sorted order */
    size_t *successor;                    /* scratch, space for n indices */
    unsigned char *saved;                 /* scratch, space for fji_permute_cuts(n) elements */
    bool parallel;                        /* whether several workers may move elements */
    int moved;                            /* 0 before the call; fji_permute() sets it to 1 if
                                           * an element is not in its place */
} fji_permutation;

/* Returns for how many elements `saved` of an fji_permutation must have space, if it has n
 * elements. At most 2048. */
size_t fji_permute_cuts(size_t n);

/*
 * Moves the element that pointers[i] points to, to index i, for all i.
 *
 *   returns  FJ_OK if all elements are in their places; FJ_ECANCELED, or another code of fj_for(),
 *            if a loop before the first move fails: then no element has moved.
 */
int fji_permute(fji_permutation *p);

#endif /* FJI_ALGO_SORT_PERMUTE_H */
