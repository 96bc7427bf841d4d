/* SPDX-License-Identifier: MIT */
/*
 * typed.h - what both typed sorts begin with
 */
#ifndef FJI_ALGO_TYPED_H
#define FJI_ALGO_TYPED_H

#include <forkjoin/sort.h>

#include "job.h"

/* Swaps two elements, which may be the same. */
void fji_typed_swap(char *x, char *y, size_t size);

/* Exchanges two stretches, which do not overlap. */
void fji_typed_exchange(char *x, char *y, size_t bytes);

/* The elements in the opposite order. */
void fji_typed_reverse(char *a, size_t n, size_t size);

/* Whether all is sorted, or was in strictly descending order and now is. Ends as soon as one
 * pair says otherwise, or the job does: false. */
bool fji_typed_sorted(fji_job *j, const fji_sort_kind *kind, char *a, size_t n);

#endif /* FJI_ALGO_TYPED_H */
