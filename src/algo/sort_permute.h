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
    size_t n, size;
    const unsigned char *const *pointers; /* to all elements, in their new order */
    size_t *successor;                    /* space for n; see sort_permute.c */
    unsigned char *saved;                 /* space for fji_permute_cuts(n) elements */
    bool parallel;                        /* loops may be parallel */
    int moved;                            /* 1: some element is not in its place; 0 at first */
} fji_permutation;

/* Returns how many of n elements are saved. */
size_t fji_permute_cuts(size_t n);

/*
 * Moves every element to the place of its pointer.
 *
 *   returns  FJ_OK if all elements are in place; FJ_ECANCELED or another code if the caller is
 *            cancelled before the first move, and then no element has moved.
 */
int fji_permute(fji_permutation *p);

#endif /* FJI_ALGO_SORT_PERMUTE_H */
