/* SPDX-License-Identifier: MIT */
/*
 * create.h - making, resizing and freeing a pool
 */
#ifndef FJI_CREATE_H
#define FJI_CREATE_H

#include "sched/pool.h"

/* Copies the caller's options, or the defaults if `from` is NULL, and checks them. */
int fji_options_read(fj_pool_options *o, const fj_pool_options *from);

/* Makes a pool with these options. Returns FJ_OK or FJ_ENOMEM. */
int fji_pool_make(fj_pool **out, const fj_pool_options *o);

/* Makes the common pool in its static record. Returns false if there is no memory. */
bool fji_pool_make_common(fj_pool *p, const fj_pool_options *o, bool fixed_size);

/* Changes the parallelism. Returns the old one, FJ_ENOTSUP, FJ_EINVAL, or FJ_EREJECTED if p is the common
 * pool and stops. */
int fji_pool_resize(fj_pool *p, int n);

/* A pool without workers gets one, because a task was queued that no caller runs. */
void fji_pool_needs_worker(fj_pool *p);

/* Frees a pool that has ended, or what is not static of the common pool. */
void fji_pool_free(fj_pool *p);
void fji_pool_free_common(fj_pool *p);

#endif /* FJI_CREATE_H */
