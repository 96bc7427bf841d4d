/* SPDX-License-Identifier: MIT */
/*
 * scratch.h - the memory that algorithms allocate, and a fault injector for it
 *
 * Every algorithm that needs more memory than its stack frame allocates it here and frees it before
 * its call returns; only a progress bar keeps its memory until fj_progress_bar_stop(). If the
 * allocation fails, most algorithms use a slower method, and the others return FJ_ENOMEM. Tests
 * make allocations fail (fault injection) in order to run these paths.
 */
#ifndef FJI_ALGO_SCRATCH_H
#define FJI_ALGO_SCRATCH_H

#include <forkjoin/algo.h>

/* These functions work as malloc() and free(), but leave errno unchanged. fji_algo_alloc() takes the
 * memory from the pool that the calling thread works for, and fji_algo_alloc_for() from the pool of the
 * options `how`, if they name one; both otherwise from the common pool. They return NULL if there is no
 * memory, or if fji_algo_fail_after() makes them fail. */
void *fji_algo_alloc(size_t bytes);
void *fji_algo_alloc_for(const fj_algo_options *how, size_t bytes);
void fji_algo_free(void *p);

/*
 * Lets the next n calls of fji_algo_alloc(), counted over all threads, succeed and every later one
 * fail. A negative n removes the limit. Has no effect unless the library is built with FJI_FAULTS.
 */
void fji_algo_fail_after(long n);

#endif /* FJI_ALGO_SCRATCH_H */
