/* SPDX-License-Identifier: MIT */
/*
 * scratch.h - the memory of the algorithms, which tests can refuse
 */
#ifndef FJI_ALGO_SCRATCH_H
#define FJI_ALGO_SCRATCH_H

#include <stddef.h>

/* As malloc() and free(). */
void *fji_algo_alloc(size_t bytes);
void fji_algo_free(void *p);

/* With FJI_FAULTS: every allocation after the next n fails, of all threads; negative: none. */
void fji_algo_fail_after(long n);

#endif /* FJI_ALGO_SCRATCH_H */
