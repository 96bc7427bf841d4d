/* SPDX-License-Identifier: MIT */
/*
 * radix.c - sorting by the digits of keys
 *
 * What fits a cache is a leaf: its elements are moved to the buffer by a lower digit of their
 * keys and back by an upper one. The digits begin at the highest bit in which keys differ, and
 * are as wide as the number of elements makes worthwhile: if they do not reach down to the
 * lowest bit, few elements agree in them, and each group that does is a leaf of its own.
 *
 * What is larger is first split by one digit into buckets: each chunk counts its elements by
 * bucket, so that it knows the places of all its elements, then moves them there. Buckets are
 * leaves, or are split again. All steps are loops over chunks or buckets, which workers share.
 *
 *     range    |-chunk-|-chunk-|-chunk-|      the highest bits that differ
 *     buckets  |0|-1-|--2--|3|----4----|      the bits below them
 *
 * Since only bits that differ count, it takes no longer if keys are small, or have much in
 * common. A bucket with all elements in it cannot be: the highest of its bits differs. Plain
 * keys that differ in one digit only are not moved, but written by the counts.
 *
 * Cancelled: a range is not changed until its buckets are complete, and a bucket that is not
 * sorted any more is copied to where it belongs.
 */
#include "radix.h"

#include <forkjoin/sort.h>
#include <string.h>

#include "scratch.h"
#include "split.h"

enum {
    SMALL_MAX = 32,         /* elements sorted by comparing */
    LEAF_DIGIT_MAX = 12,    /* bits of a digit in a leaf, at most */
    ONE_PASS_MAX = 10,      /* so many bits are better one digit than two */
    LEAF_BYTES = 1 << 18,   /* a leaf, at most; its buffer is as large */
    MSD_DIGIT_MAX = 8,      /* bits of the digit that makes buckets, at most */
    COUNT_DIGIT_MAX = 10,   /* the same where it is only counted */
    BUCKET_BYTES = 1 << 15, /* what a bucket should have */
    CHUNK_MIN = 1 << 14,    /* elements of a chunk, at least */
    CHUNKS_MAX = 64,        /* chunks, at most */
    CHECK_EVERY = 1 << 16,  /* pairs between two looks at the job */
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

/* By how many of its `bits` bits a leaf of n elements is sorted at once. */
static unsigned leaf_width(size_t n, unsigned bits)
{
    unsigned size = bits_of(n);

    if (bits <= ONE_PASS_MAX) return bits;
    if (size >= LEAF_DIGIT_MAX - 2 && bits <= 2 * LEAF_DIGIT_MAX) return bits;
    return min_of(bits, 2 * min_of(size, LEAF_DIGIT_MAX - 1));
}

/* How many bits make the buckets of n elements. */
static unsigned msd_digit(size_t n, size_t size, unsigned bits)
{
    return min_of(bits, min_of(bits_of(n / (BUCKET_BYTES / size)), MSD_DIGIT_MAX));
}

static size_t msd_chunks(size_t n)
{
    size_t chunks = n / CHUNK_MIN + 1;
    return chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX;
}

/* Runs a step of the job over 0 to n, `grain` at a time. */
static int run_step(const fji_job *j, fji_step *step, void *context, size_t n, size_t grain)
{
    fji_split s = {.step = step, .context = context};
    const fj_algo_options how = {.grain = grain};
    int err = fji_job_init(&s.job, &how, 0);

    s.job.caller = j->caller;
    return err != FJ_OK ? err : fji_split_run(&s, NULL, 0, n, NULL);
}

#define PLAIN_LESS(x, y) ((x) < (y))
#define KEY_LESS(x, y) ((x).key < (y).key)

/* ---- 32 bits --------------------------------------------------------------------------------- */

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
#undef ELEMENT
#undef KEY
#undef KEY_OF
#undef MAPPED
#undef UNMAPPED
#undef HAS_VALUE
#undef MADE_OF
#undef N
#undef SORT_SMALL

int fji_radix_32(fji_job *j, fji_bits32 *a, fji_bits32 *buffer, size_t n, const fji_key_map *map)
{
    return sort_32(j, a, buffer, n, map);
}

/* ---- 64 bits --------------------------------------------------------------------------------- */

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
#undef ELEMENT
#undef KEY
#undef KEY_OF
#undef HAS_VALUE
#undef MAPPED
#undef UNMAPPED
#undef MADE_OF
#undef N
#undef SORT_SMALL

int fji_radix_64(fji_job *j, fji_bits64 *a, fji_bits64 *buffer, size_t n, const fji_key_map *map)
{
    return sort_64(j, a, buffer, n, map);
}

/* ---- Keys with values ------------------------------------------------------------------------ */

#define MAPPED(e, m) ((void)(m), (e))
#define UNMAPPED(e, m) ((void)(m), (e))
#define KEY_OF(e) ((e).key)
#define HAS_VALUE 1

FJI_SORT_BASE(in_kv32, fj_kv32, KEY_LESS)
FJI_SORT_SMALL(in_kv32)

#define ELEMENT fj_kv32
#define KEY uint32_t
#define MADE_OF(k) ((fj_kv32){.key = (k)})
#define N(name) name##_kv32
#define SORT_SMALL in_kv32_fji_small
#include "radix_body.h"
#undef ELEMENT
#undef KEY
#undef MADE_OF
#undef N
#undef SORT_SMALL

int fji_radix_kv32(fji_job *j, fj_kv32 *a, fj_kv32 *buffer, size_t n)
{
    return sort_kv32(j, a, buffer, n, &identity_map);
}

FJI_SORT_BASE(in_kv64, fj_kv64, KEY_LESS)
FJI_SORT_SMALL(in_kv64)

#define ELEMENT fj_kv64
#define KEY uint64_t
#define MADE_OF(k) ((fj_kv64){.key = (k)})
#define N(name) name##_kv64
#define SORT_SMALL in_kv64_fji_small
#include "radix_body.h"

int fji_radix_kv64(fji_job *j, fj_kv64 *a, fj_kv64 *buffer, size_t n)
{
    return sort_kv64(j, a, buffer, n, &identity_map);
}
