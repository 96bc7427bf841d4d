/* SPDX-License-Identifier: MIT */
/*
 * radix.c - sorts by the digits of keys
 *
 * The problem: a sort by comparisons does not use that the bits of a number define its order.
 *
 * The idea: move the elements by digits of their keys, and choose the digits so that all accesses
 * of a pass stay in the cache.
 *
 * A digit is a group of neighbouring bits of a key. One pass moves all elements of a range, so that
 * they are in the order of one digit and keep their order where the digit is the same. An array
 * that is already in order is not moved, and one that is strictly descending is only reversed.
 *
 * Leaves. A range of at most LEAF_BYTES, which fits a cache, is a leaf. Its elements are moved to
 * the buffer by a lower digit of their keys, and back by the digit above it. The memory of the
 * buffer is loaded into the cache first, because the move writes to it in no order. The upper digit
 * begins at the highest bit in which the keys differ. Both digits are wider if there are more
 * elements. If the two digits do not reach down to bit 0, few elements agree in both digits. Each
 * group of elements that do is then sorted as a leaf of its own. If the keys differ in at most
 * ONE_PASS_MAX bits, one pass is sufficient. A leaf of at most SMALL_MAX elements is sorted by
 * comparisons.
 *
 * Buckets. A larger range is first divided into buckets by one digit (most significant digit first,
 * "msd"). The range is divided into chunks, and the elements of each chunk are counted by bucket.
 * From these counts follows to which indices the elements of each chunk are moved. A bucket is
 * sorted as a leaf, or is divided again. If the digit reaches down to bit 0, the keys in a bucket
 * are equal, and it is already sorted. All steps are loops over chunks or over buckets, which
 * workers share.
 *
 *     range    |-chunk-|-chunk-|-chunk-|      the digit: the highest bits that differ
 *     buckets  |0|-1-|--2--|3|----4----|      sorted by the bits below the digit
 *
 * Bits above the highest bit that differs take no time, so small keys, and keys with a common
 * prefix, are sorted faster. A bucket never has all elements of its range, unless all keys are
 * equal, because the highest bit of the digit differs. If the elements of a range that is larger
 * than a leaf have no values, and their keys differ in at most the lowest COUNT_DIGIT_MAX bits,
 * they are not moved: the result is written from the counts.
 *
 * Cancellation: the elements are moved to buckets in other memory, so a range is unchanged until
 * its buckets are complete. After a cancellation, a bucket that is not sorted yet is copied to its
 * place as it is. A leaf is sorted without a test for a cancellation.
 */
#include "radix.h"

#include <forkjoin/sort.h>
#include <string.h>

#include "scratch.h"
#include "split.h"

enum {
    SMALL_MAX = 32,      /* a leaf of at most this many elements is sorted by comparisons */
    LEAF_DIGIT_MAX = 12, /* the most bits of the digit of one pass over a leaf */
    ONE_PASS_MAX = 10, /* a leaf is sorted by at most this many bits in one pass, by more in two */
    LEAF_BYTES = 1 << 18, /* the most bytes of a leaf, which is a range that one worker sorts */
    LINE_BYTES = 64,      /* bytes of a cache line, which one prefetch loads */
    MSD_DIGIT_MAX = 8,    /* the most bits of the digit that divides a range into buckets */
    /* If keys without values, in a range that is larger than a leaf, differ in at most their lowest
     * COUNT_DIGIT_MAX bits, equal keys are counted, and the sorted range is written from the
     * counts. */
    COUNT_DIGIT_MAX = 10,
    BUCKET_BYTES = 1 << 15, /* the digit that divides a range is as wide as needed for buckets of
                             * about this many bytes, but at most MSD_DIGIT_MAX bits wide */
    CHUNK_MIN = 1 << 14,    /* about the least number of elements of a chunk of a range */
    CHUNKS_MAX = 64,        /* the most chunks into which a range is divided */
    CHECK_EVERY = 1 << 16,  /* the test for existing order compares this many pairs of neighbours,
                             * and then tests whether the job has ended */
};

static const fji_key_map identity_map;

static unsigned bits_of(uint64_t x)
{
    return x == 0 ? 0 : 64u - (unsigned)__builtin_clzll(x);
}

static unsigned min_of(unsigned x, unsigned y)
{
    return x < y ? x : y;
}

/* The keys of a leaf of n elements differ only in the lowest `bits` bits. Returns by how many of
 * these bits, the highest ones, the leaf is sorted in one or two passes. If this is less than
 * `bits`, each group of elements that agree in the returned bits is then sorted by the other
 * bits. */
static unsigned leaf_width(size_t n, unsigned bits)
{
    unsigned size = bits_of(n);

    if (bits <= ONE_PASS_MAX) return bits;
    if (size >= LEAF_DIGIT_MAX - 2 && bits <= 2 * LEAF_DIGIT_MAX) return bits;
    return min_of(bits, 2 * min_of(size, LEAF_DIGIT_MAX - 1));
}

/* Returns the width, in bits, of the digit that divides n elements of `size` bytes into buckets: at
 * most MSD_DIGIT_MAX and at most `bits`. The keys differ only in the lowest `bits` bits. */
static unsigned msd_digit(size_t n, size_t size, unsigned bits)
{
    return min_of(bits, min_of(bits_of(n / (BUCKET_BYTES / size)), MSD_DIGIT_MAX));
}

static size_t msd_chunks(size_t n)
{
    size_t chunks = n / CHUNK_MIN + 1;
    return chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX;
}

#define PLAIN_LESS(x, y) ((x) < (y))
#define KEY_LESS(x, y) ((x).key < (y).key)

/* ---- Keys of 32 bits ------------------------------------------------------------------------- */

FJI_SORT_BASE(in_32, fji_bits32, PLAIN_LESS)
FJI_SORT_SMALL(in_32)

static inline uint32_t map_32(uint32_t x, const fji_key_map *m)
{
    return x ^ ((uint32_t)((int32_t)x >> 31) & (uint32_t)m->negative) ^ (uint32_t)m->always;
}

static inline uint32_t unmap_32(uint32_t x, const fji_key_map *m)
{
    return map_32(x ^ (uint32_t)m->always, m) ^ (uint32_t)m->always;
}

#define ELEMENT fji_bits32
#define KEY uint32_t
#define KEY_OF(e) ((uint32_t)(e))
#define MAPPED(e, m) map_32((e), (m))
#define UNMAPPED(e, m) unmap_32((e), (m))
#define HAS_VALUE 0
#define MADE_OF(k) (k)
#define N(name) name##_32
#define SORT_SMALL in_32_fji_small
#include "radix_body.h"

int fji_radix_32(fji_job *j, fji_bits32 *a, fji_bits32 *buffer, size_t n, const fji_key_map *map)
{
    return sort_32(j, a, buffer, n, map);
}

/* ---- Keys of 64 bits ------------------------------------------------------------------------- */

FJI_SORT_BASE(in_64, fji_bits64, PLAIN_LESS)
FJI_SORT_SMALL(in_64)

static inline uint64_t map_64(uint64_t x, const fji_key_map *m)
{
    return x ^ ((uint64_t)((int64_t)x >> 63) & m->negative) ^ m->always;
}

static inline uint64_t unmap_64(uint64_t x, const fji_key_map *m)
{
    return map_64(x ^ m->always, m) ^ m->always;
}

#define ELEMENT fji_bits64
#define KEY uint64_t
#define KEY_OF(e) ((uint64_t)(e))
#define MAPPED(e, m) map_64((e), (m))
#define UNMAPPED(e, m) unmap_64((e), (m))
#define HAS_VALUE 0
#define MADE_OF(k) (k)
#define N(name) name##_64
#define SORT_SMALL in_64_fji_small
#include "radix_body.h"

int fji_radix_64(fji_job *j, fji_bits64 *a, fji_bits64 *buffer, size_t n, const fji_key_map *map)
{
    return sort_64(j, a, buffer, n, map);
}

/* ---- Keys with values: the keys are unsigned and need no map --------------------------------- */

FJI_SORT_BASE(in_kv32, fj_kv32, KEY_LESS)
FJI_SORT_SMALL(in_kv32)

#define ELEMENT fj_kv32
#define KEY uint32_t
#define KEY_OF(e) ((e).key)
#define MAPPED(e, m) ((void)(m), (e))
#define UNMAPPED(e, m) ((void)(m), (e))
#define HAS_VALUE 1
#define MADE_OF(k) ((fj_kv32){.key = (k)})
#define N(name) name##_kv32
#define SORT_SMALL in_kv32_fji_small
#include "radix_body.h"

int fji_radix_kv32(fji_job *j, fj_kv32 *a, fj_kv32 *buffer, size_t n)
{
    return sort_kv32(j, a, buffer, n, &identity_map);
}

FJI_SORT_BASE(in_kv64, fj_kv64, KEY_LESS)
FJI_SORT_SMALL(in_kv64)

#define ELEMENT fj_kv64
#define KEY uint64_t
#define KEY_OF(e) ((e).key)
#define MAPPED(e, m) ((void)(m), (e))
#define UNMAPPED(e, m) ((void)(m), (e))
#define HAS_VALUE 1
#define MADE_OF(k) ((fj_kv64){.key = (k)})
#define N(name) name##_kv64
#define SORT_SMALL in_kv64_fji_small
#include "radix_body.h"

int fji_radix_kv64(fji_job *j, fj_kv64 *a, fj_kv64 *buffer, size_t n)
{
    return sort_kv64(j, a, buffer, n, &identity_map);
}
