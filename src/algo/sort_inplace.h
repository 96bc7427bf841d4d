/* SPDX-License-Identifier: MIT */
/*
 * sort_inplace.h - sorts without scratch memory
 */
#ifndef FJI_ALGO_SORT_INPLACE_H
#define FJI_ALGO_SORT_INPLACE_H

#include "merge.h"

/*
 * Both functions sort the n elements at `base` in place, on the calling thread. Only the second one
 * keeps the order of equal elements. If the job ends, the functions return early and leave the
 * elements in some order. They compare the elements themselves, so o->kind must not be
 * FJI_KIND_PTR.
 */
void fji_heap_sort(const fji_order *o, fji_job *j, unsigned char *base, size_t n);
void fji_stable_sort_inplace(const fji_order *o, fji_job *j, unsigned char *base, size_t n);

#endif /* FJI_ALGO_SORT_INPLACE_H */
