/* SPDX-License-Identifier: MIT */
/*
 * radix.h - sorting by the digits of keys
 *
 * Keys are unsigned. Those of signed numbers and floats are mapped to unsigned ones of the same
 * order: the sign is turned round, and of a negative float all the other bits as well.
 */
#ifndef FJI_ALGO_RADIX_H
#define FJI_ALGO_RADIX_H

#include "job.h"

/* The bits of a number that may be a float. */
typedef uint32_t fji_bits32 __attribute__((may_alias));
typedef uint64_t fji_bits64 __attribute__((may_alias));

/* How keys are mapped: what is always turned round, and what only if the sign is set. */
typedef struct fji_key_map {
    uint64_t always, negative;
} fji_key_map;

/*
 * Sort a[0] to a[n - 1] with the help of as many at `buffer`. kv: stable.
 *
 *   from     a body running in a pool. Adds to the job's progress as it goes.
 *   returns  FJ_OK; FJ_ECANCELED, the array then has the same elements in some order.
 */
int fji_radix_32(fji_job *j, fji_bits32 *a, fji_bits32 *buffer, size_t n, const fji_key_map *map);
int fji_radix_64(fji_job *j, fji_bits64 *a, fji_bits64 *buffer, size_t n, const fji_key_map *map);
int fji_radix_kv32(fji_job *j, fj_kv32 *a, fj_kv32 *buffer, size_t n);
int fji_radix_kv64(fji_job *j, fj_kv64 *a, fj_kv64 *buffer, size_t n);

#endif /* FJI_ALGO_RADIX_H */
