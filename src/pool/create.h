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

/* Copies the caller's options to *o, or the defaults if `from` is NULL. Returns FJ_OK, or FJ_EINVAL
 * if an option is not valid. */
int fji_options_read(fj_pool_options *o, const fj_pool_options *from);

/* Creates a pool with the options *o, whose parallelism is not 0, and stores it in *out. Returns
 * FJ_OK or FJ_ENOMEM. */
int fji_pool_make(fj_pool **out, const fj_pool_options *o);

/* Creates the common pool, for the first time or again, in its static record p. `fixed_size`: its
 * parallelism cannot be changed. The caller holds fji_common_lock, so there is no common pool
 * meanwhile. Returns false if there is no memory. */
bool fji_pool_make_common(fj_pool *p, const fj_pool_options *o, bool fixed_size);

/* Changes the parallelism of p to n. Returns the old parallelism; FJ_ENOTSUP if the size of p is
 * fixed; FJ_EINVAL if n is less than 1 or more threads than p may have; FJ_EREJECTED if p is the
 * common pool and stops. */
int fji_pool_resize(fj_pool *p, int n);

/* If the parallelism of p is 0, makes it 1. Called for a task that no caller runs, so that p needs
 * a worker for it. */
void fji_pool_needs_worker(fj_pool *p);

/* Frees p, which is not the common pool. p has ended, and no thread accesses it any more. */
void fji_pool_free(fj_pool *p);

/* Frees what the common pool has allocated, after its end. Its static records stay. The caller
 * holds fji_common_lock. */
void fji_pool_free_common(fj_pool *p);

#endif /* FJI_CREATE_H */
