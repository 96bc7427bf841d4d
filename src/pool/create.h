/* SPDX-License-Identifier: MIT */
/*
 * create.h - creates, resizes and frees a pool
 *
 * Any thread may call these functions, unless stated otherwise. The caller holds no lock of the
 * library.
 */
#ifndef FJI_CREATE_H
#define FJI_CREATE_H

#include "sched/pool.h"

/* The memory record of the common pool, unless its options have functions for memory. It is never
 * freed. */
extern fji_memory fji_memory_common;

/* Copies *from to *o, or the default options if `from` is NULL. Returns FJ_OK, or FJ_EINVAL if an
 * option is not valid. */
int fji_options_read(fj_pool_options *o, const fj_pool_options *from);

/* Creates a pool with the options *o, which are valid and whose parallelism is not 0, and stores it
 * in *out. Returns FJ_OK, or FJ_ENOMEM; *out is then unchanged. */
int fji_pool_make(fj_pool **out, const fj_pool_options *o);

/* Creates the common pool with the options *o in its static record p, for the first time or after
 * an end. `fixed_size`: its parallelism cannot be changed later. The caller holds fji_common_lock,
 * and no common pool exists when it calls. Returns false if there is no memory. */
bool fji_pool_make_common(fj_pool *p, const fj_pool_options *o, bool fixed_size);

/* Changes the parallelism of p to n. Returns the old parallelism, or a negative code: FJ_ENOTSUP if
 * the size of p is fixed; FJ_EINVAL if n is less than 1, greater than FJ_MAX_WORKERS, or greater
 * than the option max_threads if that is not 0; FJ_EREJECTED if p is the common pool and stops. */
int fji_pool_resize(fj_pool *p, int n);

/* If the parallelism of p is 0, changes it to 1, unless p stops. Only the common pool can have the
 * parallelism 0 (FORKJOIN_PARALLELISM). Called if a worker of p has to run a task, because the
 * calling thread does not run it. */
void fji_pool_needs_worker(fj_pool *p);

/* Frees p, which is not the common pool. The caller has waited for the end of p, and no other
 * thread accesses p any more. */
void fji_pool_free(fj_pool *p);

/* Called after the end of the common pool p: frees its memory, except the static records. The
 * caller holds fji_common_lock. */
void fji_pool_free_common(fj_pool *p);

#endif /* FJI_CREATE_H */
