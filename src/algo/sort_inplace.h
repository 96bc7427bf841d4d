/* SPDX-License-Identifier: MIT */
/*
 * sort_inplace.h - sorting without memory
 */
#ifndef FJI_ALGO_SORT_INPLACE_H
#define FJI_ALGO_SORT_INPLACE_H

#include "merge.h"

/*
 * Sort n elements at `base` in place, on this thread. Give up when the job ends: the elements
 * are then in some order. The order is of elements that are moved themselves.
 */
void fji_heap_sort(const fji_order *o, fji_job *j, unsigned char *base, size_t n);
void fji_stable_sort_inplace(const fji_order *o, fji_job *j, unsigned char *base, size_t n);

/* Exchanges two stretches of memory that do not overlap. */
void fji_swap_bytes(unsigned char *x, unsigned char *y, size_t bytes);

#endif /* FJI_ALGO_SORT_INPLACE_H */
