/* SPDX-License-Identifier: MIT */
/*
 * histogram.c - histograms of keys in arrays, compared with a loop
 */
#include <forkjoin/algo.h>
#include <stdlib.h>
#include <string.h>

#include "algo/scratch.h"
#include "fjtest.h"
#include "places.h"

enum { MOST = 1000 };

/* Calls fn in a task of pools of 1, 2, 4 and 8 workers. No call has to wake a worker, so thousands
 * of calls are quick. */
static void within_workers(place_fn *fn, void *arg)
{
    for (int n = 1; n <= 8; n *= 2) {
        fj_pool *pool = fjt_pool(n, 0);

        place_inside(pool, fn, pool, arg);
        fjt_destroy(pool);
    }
}

static void *room(size_t bytes)
{
    void *p = calloc(1, bytes != 0 ? bytes : 1);

    CHECK(p != NULL);
    return p;
}

/* n keys below `keys` in one of four patterns, as bytes and as 32-bit numbers. */
struct keys {
    size_t n, keys;
    uint8_t *a8;
    uint32_t *a32;
    uint64_t *want; /* the expected counts, each with the initial 1 */
};

static uint32_t key_at(size_t i, size_t keys, unsigned pattern)
{
    switch (pattern % 4) {
        case 0: return (uint32_t)((i * 2654435761u >> 9) % keys);
        case 1: return (uint32_t)(keys - 1);
        case 2: return (uint32_t)(i / 5 % keys);
        default: return i % 7 == 0 ? 0 : (uint32_t)(i % keys);
    }
}

static void keys_make(struct keys *k, size_t n, size_t keys, unsigned pattern)
{
    *k = (struct keys){n, keys, room(n), room(n * 4), room(keys * 8)};
    for (size_t i = 0; i < keys; i++) k->want[i] = 1;
    for (size_t i = 0; i < n; i++) {
        k->a32[i] = key_at(i, keys, pattern);
        k->a8[i] = (uint8_t)k->a32[i];
        k->want[k->a32[i]]++;
    }
}

static void keys_free(struct keys *k)
{
    free(k->a8);
    free(k->a32);
    free(k->want);
}

static int keys_count(const struct keys *k, bool bytes, uint64_t *counts,
                      const fj_algo_options *how)
{
    return bytes ? fj_histogram_u8(k->a8, k->n, counts, k->keys, how)
                 : fj_histogram_u32(k->a32, k->n, counts, k->keys, how);
}

static void keys_case(size_t n, size_t keys, unsigned pattern, const fj_algo_options *how)
{
    struct keys k;

    keys_make(&k, n, keys, pattern);
    for (int bytes = keys <= 256; bytes >= 0; bytes--) {
        uint64_t *counts = room(keys * 8);

        for (size_t i = 0; i < keys; i++) counts[i] = 1; /* the call adds to this */
        CHECK_EQ(keys_count(&k, bytes != 0, counts, how), FJ_OK);
        CHECK(memcmp(counts, k.want, keys * 8) == 0);
        free(counts);
    }
    keys_free(&k);
}

static void every_number(fj_pool *pool, void *arg)
{
    static const size_t keys[] = {1, 2, 7, 100, 255, 256, 1000, 3000};

    (void)arg;
    for (size_t n = 0; n <= MOST; n++)
        keys_case(n, keys[n % 8], (unsigned)(n / 8),
                  &(fj_algo_options){.pool = pool, .grain = 1 + n / 5});
    for (unsigned pattern = 0; pattern < 4; pattern++)
        for (size_t i = 0; i < 8; i++) {
            keys_case(5003, keys[i], pattern, &(fj_algo_options){.pool = pool, .grain = 2600});
            keys_case(20000, keys[i], pattern, &(fj_algo_options){.pool = pool});
        }
}

FJ_TEST(any_number_of_keys_is_counted, 30)
{
    within_workers(every_number, NULL);
}

static void from_here(fj_pool *pool, void *arg)
{
    (void)arg;
    for (unsigned pattern = 0; pattern < 4; pattern++) {
        keys_case(1000, 200, pattern, &(fj_algo_options){.pool = pool, .grain = 100});
        keys_case(100000, 256, pattern, &(fj_algo_options){.pool = pool});
    }
}

FJ_TEST(keys_are_counted_from_wherever_it_is_called, 30)
{
    place_everywhere(from_here, NULL);
}

static void wrong_keys(fj_pool *pool, void *arg)
{
    enum { N = 1500 };
    struct keys k;
    uint64_t counts[300], before[300];

    (void)arg;
    for (size_t i = 0; i < 300; i++) before[i] = counts[i] = i;
    for (size_t keys = 1; keys <= 201; keys += 50)
        for (size_t bad = 0; bad < N; bad += 1 + bad % 3)
            for (int bytes = 0; bytes < 2; bytes++)
                for (size_t grain = 40; grain <= 1000; grain += 960) {
                    keys_make(&k, N, keys, 0);
                    k.a32[bad] = bad % 2 != 0 ? UINT32_MAX : (uint32_t)keys;
                    k.a8[bad] = bad % 2 != 0 ? UINT8_MAX : (uint8_t)keys;
                    CHECK_EQ(keys_count(&k, bytes != 0, counts,
                                        &(fj_algo_options){.pool = pool, .grain = grain}),
                             FJ_EINVAL);
                    CHECK(memcmp(counts, before, sizeof counts) == 0);
                    keys_free(&k);
                }
}

FJ_TEST(nothing_is_counted_if_there_is_a_wrong_key, 30)
{
    fj_pool *pool = fjt_pool(4, 0);

    place_inside(pool, wrong_keys, pool, NULL);
    fjt_destroy(pool);
}

FJ_TEST(bytes_may_be_counted_in_more_counts_than_they_have_keys, 10)
{
    uint64_t counts[1000] = {0};
    uint8_t key[3000];

    for (size_t i = 0; i < sizeof key; i++) key[i] = (uint8_t)i;
    CHECK_EQ(fj_histogram_u8(key, sizeof key, counts, 1000, NULL), FJ_OK);
    for (size_t i = 0; i < 1000; i++) CHECK_EQ(counts[i], i < 184 ? 12 : i < 256 ? 11 : 0);
}

FJ_TEST(without_memory_it_says_so_or_goes_on, 20)
{
    fj_pool *pool = fjt_pool(4, 0);
    struct keys k;
    uint64_t counts[200] = {0};

    if (!FJI_FAULTS) fjt_skip("this build cannot refuse memory");
    keys_make(&k, 1000, 200, 0);
    fji_algo_fail_after(0);
    CHECK_EQ(fj_histogram_u32(k.a32, 1000, counts, 200, &(fj_algo_options){.pool = pool}),
             FJ_ENOMEM);
    CHECK_EQ(fj_histogram_u8(k.a8, 1000, counts, 200, &(fj_algo_options){.pool = pool}), FJ_ENOMEM);
    for (long after = 1; after < 5; after++)
        for (int bytes = 0; bytes < 2; bytes++) {
            fji_algo_fail_after(after);
            for (size_t i = 0; i < 200; i++) counts[i] = 1;
            CHECK_EQ(
                keys_count(&k, bytes != 0, counts, &(fj_algo_options){.pool = pool, .grain = 20}),
                FJ_OK);
            CHECK(memcmp(counts, k.want, sizeof counts) == 0);
        }
    fji_algo_fail_after(-1);
    keys_free(&k);
    fjt_destroy(pool);
}

FJ_TEST(a_cancelled_count_adds_nothing, 10)
{
    struct keys k;
    uint64_t counts[200] = {0};
    fj_token token;

    fj_token_init(&token, NULL);
    fj_token_cancel(&token);
    keys_make(&k, 1000, 200, 0);
    CHECK_EQ(fj_histogram_u32(k.a32, 1000, counts, 200, &(fj_algo_options){.token = &token}),
             FJ_ECANCELED);
    for (size_t i = 0; i < 200; i++) CHECK_EQ(counts[i], 0);
    keys_free(&k);
}

FJ_TEST(what_cannot_be_meant_is_refused, 10)
{
    uint8_t a8[4] = {0};
    uint32_t a32[4] = {0};
    uint64_t counts[4] = {0};
    const fj_algo_options spare = {.reserved = {0, 1}};

    CHECK_EQ(fj_histogram_u8(NULL, 4, counts, 4, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram_u8(a8, 4, NULL, 4, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram_u8(a8, 4, counts, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram_u8(a8, SIZE_MAX, counts, 4, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram_u8(a8, 4, counts, 4, &spare), FJ_EINVAL);
    CHECK_EQ(fj_histogram_u32(NULL, 4, counts, 4, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram_u32(a32, 4, NULL, 4, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram_u32(a32, 4, counts, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram_u32(a32, 4, counts, SIZE_MAX / 4, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram_u32(a32, SIZE_MAX / 4 + 1, counts, 4, NULL), FJ_EINVAL);
    for (size_t i = 0; i < 4; i++) CHECK_EQ(counts[i], 0);
    CHECK_EQ(fj_histogram_u8(NULL, 0, counts, 4, NULL), FJ_OK);
    CHECK_EQ(fj_histogram_u32(NULL, 0, counts, 4, NULL), FJ_OK);
}
