/* SPDX-License-Identifier: MIT */
/*
 * histogram_keys.c - histograms of arrays of keys
 *
 * The problem: with few different keys, the same key often occurs again within a few elements. The
 * increment of its counter then has to wait for the previous increment of the same counter.
 *
 * The idea: four neighbouring elements are counted in four separate tables of counters, the lanes.
 * fj_histogram() passes each chunk to count_range(), with an array `counts` to which the counts of
 * the chunk are to be added. A chunk is counted in batches of at most BATCH_MAX elements. At the
 * end of each batch the lanes are added to `counts`. Lanes are worthwhile if a batch has at least
 * ELEMENTS_PER_KEY elements for each counter of a lane, and if a lane has at most LANE_KEYS_MAX
 * counters, so that the lanes fit on the stack. Otherwise each element is counted directly in
 * `counts`.
 *
 * A key that is not below `keys` makes the call fail with FJ_EINVAL.
 */
#include <string.h>

#include "job.h"

enum {
    LANES = 4,            /* number of separate tables of counters in which a batch is counted */
    LANE_KEYS_MAX = 1024, /* if `keys` is larger, 32-bit keys are counted directly in `counts` */
    ELEMENTS_PER_KEY = 2, /* a batch with fewer elements for each counter of one table is counted
                           * directly in `counts` */
    BATCH_MAX = 1 << 30,  /* the most elements of a batch, so that a counter of 32 bits does not
                           * overflow */
    BYTE_KEYS = 256,      /* number of different keys of 8 bits */
};

/* Adds 1 to counts[k] for each key k of the n keys at `key`. Returns FJ_OK, or FJ_EINVAL if a key
 * is not below `keys`; some of the other keys may then not be counted. */
typedef int count_keys(const void *key, size_t n, uint64_t *counts, size_t keys);

/* The array, and how its elements are counted. */
struct key_array {
    const unsigned char *base;
    size_t width; /* bytes of a key */
    size_t keys;  /* number of counters in `counts`; a valid key is below this */
    /* A batch of fewer than lanes_min elements is counted by directly(), without other tables. A
     * larger batch is counted by in_lanes(): in LANES separate tables of counters, which are then
     * added to `counts`. SIZE_MAX: every batch is counted by directly(). */
    size_t lanes_min;
    count_keys *directly, *in_lanes;
};

/* Adds the counters of all lanes to `counts`. A lane is one of the LANES tables of lane_keys
 * counters at `lane`. Returns FJ_EINVAL if a lane has counted a key that is not below `keys`, else
 * FJ_OK. */
static int lanes_add(const uint32_t *lane, size_t lane_keys, size_t keys, uint64_t *counts)
{
    uint64_t invalid = 0;

    for (size_t k = 0; k < lane_keys; k++) {
        uint64_t sum = 0;
        for (size_t j = 0; j < LANES; j++) sum += lane[j * lane_keys + k];
        if (k < keys)
            counts[k] += sum;
        else
            invalid |= sum;
    }
    return invalid == 0 ? FJ_OK : FJ_EINVAL;
}

/* The body that histogram() passes to fj_histogram(): adds the counts of the elements
 * begin <= i < end to `counts`, batch by batch. Returns FJ_OK, or FJ_EINVAL if a key is invalid. */
static int count_range(size_t begin, size_t end, uint64_t *counts, void *arg)
{
    const struct key_array *a = arg;
    int code = FJ_OK;

    for (size_t i = begin, n; i < end && code == FJ_OK; i += n) {
        n = fji_min(end - i, BATCH_MAX);
        count_keys *count = n < a->lanes_min ? a->directly : a->in_lanes;
        code = count(a->base + i * a->width, n, counts, a->keys);
    }
    return code;
}

static int histogram(struct key_array *a, size_t n, uint64_t *counts, const fj_algo_options *how)
{
    if (!fji_array_ok(a->base, n, a->width)) return FJ_EINVAL;
    return fj_histogram(0, n, count_range, a, counts, a->keys, how);
}

/* ---- Keys of 8 bits -------------------------------------------------------------------------- */

/* Counts the n bytes at `base` in LANES separate tables, and adds these to `counts`. Each table has
 * a counter for every value of a byte, so that the loop does not have to test whether a key is
 * below `keys`: lanes_add() does that at the end. */
static int bytes_in_lanes(const void *base, size_t n, uint64_t *counts, size_t keys)
{
    const uint8_t *key = base;
    uint32_t lane[LANES * BYTE_KEYS];
    size_t i = 0;

    memset(lane, 0, sizeof lane);
    for (; n - i >= LANES; i += LANES)
        for (size_t j = 0; j < LANES; j++) lane[j * BYTE_KEYS + key[i + j]]++;
    for (; i < n; i++) lane[key[i]]++;
    return lanes_add(lane, BYTE_KEYS, keys, counts);
}

static int bytes_directly(const void *base, size_t n, uint64_t *counts, size_t keys)
{
    const uint8_t *key = base;

    for (size_t i = 0; i < n; i++) {
        if (key[i] >= keys) return FJ_EINVAL;
        counts[key[i]]++;
    }
    return FJ_OK;
}

int fj_histogram_u8(const uint8_t *key, size_t n, uint64_t *counts, size_t keys,
                    const fj_algo_options *how)
{
    struct key_array a = {.base = key,
                          .width = sizeof *key,
                          .keys = keys,
                          .lanes_min = (size_t)ELEMENTS_PER_KEY * BYTE_KEYS,
                          .directly = bytes_directly,
                          .in_lanes = bytes_in_lanes};

    return histogram(&a, n, counts, how);
}

/* ---- Keys of 32 bits ------------------------------------------------------------------------- */

/* Returns whether the four keys key[0] to key[3] are all below `keys`. */
static inline bool four_keys_ok(const uint32_t *key, size_t keys)
{
    uint32_t a = key[0] > key[1] ? key[0] : key[1], b = key[2] > key[3] ? key[2] : key[3];
    return (a > b ? a : b) < keys;
}

static int words_in_lanes(const void *base, size_t n, uint64_t *counts, size_t keys)
{
    const uint32_t *key = base;
    uint32_t lane[LANES * LANE_KEYS_MAX];
    size_t i = 0;

    memset(lane, 0, LANES * keys * sizeof lane[0]);
    for (; n - i >= LANES; i += LANES) {
        if (FJI_UNLIKELY(!four_keys_ok(key + i, keys))) return FJ_EINVAL;
        for (size_t j = 0; j < LANES; j++) lane[j * keys + key[i + j]]++;
    }
    for (; i < n; i++) {
        if (key[i] >= keys) return FJ_EINVAL;
        lane[key[i]]++;
    }
    return lanes_add(lane, keys, keys, counts);
}

static int words_directly(const void *base, size_t n, uint64_t *counts, size_t keys)
{
    const uint32_t *key = base;
    size_t i = 0;

    for (; n - i >= LANES; i += LANES) {
        if (FJI_UNLIKELY(!four_keys_ok(key + i, keys))) return FJ_EINVAL;
        for (size_t j = 0; j < LANES; j++) counts[key[i + j]]++;
    }
    for (; i < n; i++) {
        if (key[i] >= keys) return FJ_EINVAL;
        counts[key[i]]++;
    }
    return FJ_OK;
}

int fj_histogram_u32(const uint32_t *key, size_t n, uint64_t *counts, size_t keys,
                     const fj_algo_options *how)
{
    struct key_array a = {.base = (const unsigned char *)key,
                          .width = sizeof *key,
                          .keys = keys,
                          .lanes_min = keys <= LANE_KEYS_MAX ? ELEMENTS_PER_KEY * keys : SIZE_MAX,
                          .directly = words_directly,
                          .in_lanes = words_in_lanes};

    return histogram(&a, n, counts, how);
}
