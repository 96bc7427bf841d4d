/* SPDX-License-Identifier: MIT */
/*
 * radix.h - sorts by the digits of keys
 *
 * The key of an element is the number itself or, in an element with a value (fj_kv32, fj_kv64), its
 * member `key`. The sorts take the bits of a key as an unsigned number. The bits of signed and
 * floating-point numbers are therefore first mapped to unsigned numbers with the same order: the
 * sign bit is inverted, and in a negative floating-point number all other bits are inverted too.
 * At the end they are mapped back.
 */
#ifndef FJI_ALGO_RADIX_H
#define FJI_ALGO_RADIX_H

#include "job.h"

/* The bits of a number. The array may be one of signed or floating-point numbers: may_alias allows
 * access to it through these types. */
typedef uint32_t fji_bits32 __attribute__((may_alias));
typedef uint64_t fji_bits64 __attribute__((may_alias));

/* How a key is mapped: the bits of `always` are inverted in every key, and the bits of `negative`
 * only in a key whose sign bit is set. `negative` does not contain the sign bit. If `always` is 0,
 * `negative` is 0 too, and keys are not changed. */
typedef struct fji_key_map {
    uint64_t always, negative;
} fji_key_map;

/*
 * Each function sorts a[0] to a[n - 1] in ascending order of the keys, which fji_radix_32() and
 * fji_radix_64() map by *map for the sort. `buffer` has space for n elements and does not overlap
 * the array. The sorts of keys with values (kv) are stable.
 *
 *   from     a task that runs in a pool. The sort adds its elements to the progress of job j.
 *   returns  FJ_OK; FJ_ECANCELED if the sort was cancelled and is incomplete: the array then has
 *            the same elements, in some order.
 */
int fji_radix_32(fji_job *j, fji_bits32 *a, fji_bits32 *buffer, size_t n, const fji_key_map *map);
int fji_radix_64(fji_job *j, fji_bits64 *a, fji_bits64 *buffer, size_t n, const fji_key_map *map);
int fji_radix_kv32(fji_job *j, fj_kv32 *a, fj_kv32 *buffer, size_t n);
int fji_radix_kv64(fji_job *j, fj_kv64 *a, fj_kv64 *buffer, size_t n);

#endif /* FJI_ALGO_RADIX_H */
