/* SPDX-License-Identifier: MIT */
/*
 * radix.h - sorts by the digits of keys
 *
 * The sorts compare keys as unsigned numbers. The keys of signed and floating-point numbers are
 * therefore mapped to unsigned ones with the same order: the sign bit is inverted, and in a
 * negative floating-point number all other bits are inverted too.
 */
#ifndef FJI_ALGO_RADIX_H
#define FJI_ALGO_RADIX_H

#include "job.h"

/* The bits of a number, which may be of a floating-point type. */
typedef uint32_t fji_bits32 __attribute__((may_alias));
typedef uint64_t fji_bits64 __attribute__((may_alias));

/* The bits of a key that are always inverted, and those that are inverted if its sign bit is
 * set. */
typedef struct fji_key_map {
    uint64_t always, negative;
} fji_key_map;

/*
 * Each function sorts a[0] to a[n - 1]. `buffer` has space for n elements. The sorts of keys with
 * values (kv) are stable.
 *
 *   from     a task that runs in a pool. The sort adds the elements to the progress of the job.
 *   returns  FJ_OK; FJ_ECANCELED, and then the array has the same elements in some order.
 */
int fji_radix_32(fji_job *j, fji_bits32 *a, fji_bits32 *buffer, size_t n, const fji_key_map *map);
int fji_radix_64(fji_job *j, fji_bits64 *a, fji_bits64 *buffer, size_t n, const fji_key_map *map);
int fji_radix_kv32(fji_job *j, fj_kv32 *a, fj_kv32 *buffer, size_t n);
int fji_radix_kv64(fji_job *j, fj_kv64 *a, fj_kv64 *buffer, size_t n);

#endif /* FJI_ALGO_RADIX_H */
