/* SPDX-License-Identifier: MIT */
/*
 * histogram_keys.c - counting keys in arrays
 *
 * Of few keys the same one often comes again within a few elements, and would wait for its own
 * count to be written. So four neighbours are counted in four tables, added up after a part.
 */
#include <string.h>

#include "job.h"

enum {
    LANES = 4,
    KEYS_MAX = 1024, /* keys of a table on the stack */
    LANES_MIN = 2,   /* keys are counted in tables if there are so many elements for each */
    BATCH = 1 << 30, /* counts of a table have 32 bits */
};

struct key_array {
    const void *key;
    size_t keys;
};

/* Adds up tables of `used` keys each. A key that is not below `keys`: FJ_EINVAL. */
static int lanes_add(const uint32_t *lane, size_t used, size_t keys, uint64_t *counts)
{
    uint64_t invalid = 0;

    for (size_t k = 0; k < used; k++) {
        uint64_t sum = 0;
        for (size_t j = 0; j < LANES; j++) sum += lane[j * used + k];
        if (k < keys)
            counts[k] += sum;
        else
            invalid |= sum;
    }
    return invalid == 0 ? FJ_OK : FJ_EINVAL;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

enum { BYTES = 256 };

static int bytes_in_lanes(const uint8_t *key, size_t n, uint64_t *counts, size_t keys)
{
    uint32_t lane[LANES * BYTES];
    size_t i = 0;

    memset(lane, 0, sizeof lane);
    for (; n - i >= LANES; i += LANES)
        for (size_t j = 0; j < LANES; j++) lane[j * BYTES + key[i + j]]++;
    for (; i < n; i++) lane[key[i]]++;
    return lanes_add(lane, BYTES, keys, counts);
}

static int bytes_directly(const uint8_t *key, size_t n, uint64_t *counts, size_t keys)
{
    for (size_t i = 0; i < n; i++) {
        if (key[i] >= keys) return FJ_EINVAL;
        counts[key[i]]++;
    }
    return FJ_OK;
}

static int bytes_count(size_t begin, size_t end, uint64_t *counts, void *arg)
{
    const struct key_array *h = arg;
    const uint8_t *key = h->key;
    int code = FJ_OK;

    for (size_t i = begin, n; i < end && code == FJ_OK; i += n) {
        n = end - i < BATCH ? end - i : BATCH;
        code = n < (size_t)LANES_MIN * BYTES ? bytes_directly(key + i, n, counts, h->keys)
                                             : bytes_in_lanes(key + i, n, counts, h->keys);
    }
    return code;
}

int fj_histogram_u8(const uint8_t *key, size_t n, uint64_t *counts, size_t keys,
                    const fj_algo_options *how)
{
    struct key_array h = {key, keys};

    if ((key == NULL && n != 0) || !fji_fits(n, sizeof *key)) return FJ_EINVAL;
    return fj_histogram(0, n, bytes_count, &h, counts, keys, how);
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* Whether all of four keys are below `keys`. */
static inline bool four_keys_ok(const uint32_t *key, size_t keys)
{
    uint32_t a = key[0] > key[1] ? key[0] : key[1], b = key[2] > key[3] ? key[2] : key[3];
    return (a > b ? a : b) < keys;
}

static int words_in_lanes(const uint32_t *key, size_t n, uint64_t *counts, size_t keys)
{
    uint32_t lane[LANES * KEYS_MAX];
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

static int words_directly(const uint32_t *key, size_t n, uint64_t *counts, size_t keys)
{
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

static int words_count(size_t begin, size_t end, uint64_t *counts, void *arg)
{
    const struct key_array *h = arg;
    const uint32_t *key = h->key;
    int code = FJ_OK;

    for (size_t i = begin, n; i < end && code == FJ_OK; i += n) {
        n = end - i < BATCH ? end - i : BATCH;
        code = h->keys > KEYS_MAX || n < LANES_MIN * h->keys
                   ? words_directly(key + i, n, counts, h->keys)
                   : words_in_lanes(key + i, n, counts, h->keys);
    }
    return code;
}

int fj_histogram_u32(const uint32_t *key, size_t n, uint64_t *counts, size_t keys,
                     const fj_algo_options *how)
{
    struct key_array h = {key, keys};

    if ((key == NULL && n != 0) || !fji_fits(n, sizeof *key)) return FJ_EINVAL;
    return fj_histogram(0, n, words_count, &h, counts, keys, how);
}
