/* SPDX-License-Identifier: MIT */
/*
 * sort_permute.h - bringing elements into the order of pointers to them
 */
#ifndef FJI_ALGO_SORT_PERMUTE_H
#define FJI_ALGO_SORT_PERMUTE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fji_permutation {
    unsigned char *base; /* the elements */
    size_t n, size;
    const unsigned char *const *pointers; /* to all of them, in their new order */
    size_t *successor;                    /* room for n */
    unsigned char *saved;                 /* room for fji_permute_cuts(n) elements */
    bool parallel;                        /* others may help */
    int moved;                            /* whether there is anything to do; 0 before */
} fji_permutation;

/* How many elements are saved, of n. */
size_t fji_permute_cuts(size_t n);

/*
 * Moves every element where its pointer is.
 *
 *   returns  FJ_OK, also if the caller is cancelled meanwhile; FJ_ECANCELED, and no element has
 *            been moved.
 */
int fji_permute(fji_permutation *p);

#endif /* FJI_ALGO_SORT_PERMUTE_H */
