/* SPDX-License-Identifier: MIT */
/*
 * typed_merge.c - FJ_MERGE: sorted, equal elements of the first run come first, nothing lost
 */
#include <forkjoin/sort.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"

/* An element holds its original index `from`, which counts through both runs. */
struct item {
    uint32_t key, from;
};

struct large {
    struct item item;
    unsigned char rest[100];
};

#define BY_KEY(x, y) ((x).key < (y).key)
#define BY_ITEM(x, y) ((x).item.key < (y).item.key)
#define PLAIN(x, y) ((x) < (y))

FJ_MERGE(merge_u8, uint8_t, PLAIN);
FJ_MERGE(merge_items, struct item, BY_KEY);
FJ_MERGE(merge_large, struct large, BY_ITEM);

/* na and nb sorted items with keys below `keys`, and the output array with one guard item at each
 * end. */
struct runs {
    struct item *a, *out;
    size_t na, nb;
};

static void runs_init(struct runs *r, size_t na, size_t nb, uint32_t keys, uint64_t *seed)
{
    r->na = na;
    r->nb = nb;
    r->a = calloc(na + nb + 1, sizeof *r->a);
    r->out = calloc(na + nb + 2, sizeof *r->out);
    CHECK(r->a != NULL && r->out != NULL);
    for (size_t i = 0; i < na + nb; i++) {
        /* Random increments make the keys ascend, so that no sort is needed. */
        uint32_t last = i == 0 || i == na ? 0 : r->a[i - 1].key;
        size_t left = i < na ? na - i : na + nb - i;
        r->a[i].key = last + (uint32_t)(fjt_random(seed) % (2 * (keys - last) / left + 1));
        if (r->a[i].key >= keys) r->a[i].key = keys - 1;
        r->a[i].from = (uint32_t)i;
    }
}

static void runs_free(struct runs *r)
{
    free(r->a);
    free(r->out);
}

static int runs_merge(struct runs *r, const fj_algo_options *how)
{
    return merge_items(r->a, r->na, r->a + r->na, r->nb, r->out + 1, how);
}

/* Checks that items are ordered by key and then by original index, as after a stable merge. This
 * order also implies that each item occurs once. */
static void runs_check(const struct runs *r)
{
    size_t n = r->na + r->nb;
    const struct item *out = r->out + 1;

    for (size_t i = 1; i < n; i++)
        CHECK(out[i - 1].key < out[i].key ||
              (out[i - 1].key == out[i].key && out[i - 1].from < out[i].from));
    for (size_t i = 0; i < n; i++) CHECK(out[i].key == r->a[out[i].from].key);
    CHECK(r->out[0].key == 0 && r->out[0].from == 0);
    CHECK(r->out[n + 1].key == 0 && r->out[n + 1].from == 0);
}

static void merge_case(size_t na, size_t nb, uint32_t keys, uint64_t *seed,
                       const fj_algo_options *how)
{
    struct runs r;

    runs_init(&r, na, nb, keys, seed);
    CHECK_EQ(runs_merge(&r, how), FJ_OK);
    runs_check(&r);
    runs_free(&r);
}

static void all_lengths(fj_pool *pool, void *arg)
{
    uint64_t *seed = arg;

    for (size_t na = 0; na <= 40; na++)
        for (size_t nb = 0; nb <= 40; nb++)
            merge_case(na, nb, 1 + (uint32_t)(na * 7 + nb) % 30, seed,
                       &(fj_algo_options){.pool = pool, .grain = (na + nb) % 5});
}

FJ_TEST(all_lengths_are_merged, 30)
{
    uint64_t seed = fjt_seed();
    fj_pool *pool = fjt_pool(2, 0);

    place_inside(pool, all_lengths, NULL, &seed);
    fjt_destroy(pool);
}

static void many(fj_pool *pool, void *arg)
{
    uint64_t *seed = arg;

    for (long i = fjt_rounds(6); i > 0; i--)
        merge_case(fjt_random(seed) % 100000, fjt_random(seed) % 100000,
                   (uint32_t)1 << fjt_random(seed) % 30, seed, &(fj_algo_options){.pool = pool});
}

FJ_TEST(large_runs_are_merged_by_any_number_of_workers, 60)
{
    uint64_t seed = fjt_seed();

    place_workers(many, &seed);
}

static void one(fj_pool *pool, void *arg)
{
    merge_case(3000, 2000, 700, arg, &(fj_algo_options){.pool = pool, .grain = 64});
    merge_case(20, 30, 9, arg, &(fj_algo_options){.pool = pool});
}

FJ_TEST(merges_from_everywhere, 30)
{
    uint64_t seed = fjt_seed();

    place_everywhere(one, &seed);
}

FJ_TEST(elements_may_be_small_or_large, 30)
{
    enum { N = 5000 };
    static uint8_t bytes[2 * N], bytes_out[2 * N];
    static struct large large[2 * N], large_out[2 * N];

    for (unsigned i = 0; i < N; i++) {
        bytes[i] = (uint8_t)(i * 256 / N);
        bytes[N + i] = (uint8_t)(i * 200 / N);
        large[i].item = (struct item){i / 3, i};
        large[N + i].item = (struct item){i / 7, N + i};
        large[i].rest[99] = (unsigned char)i;
        large[N + i].rest[99] = (unsigned char)(N + i);
    }
    CHECK_EQ(merge_u8(bytes, N, bytes + N, N, bytes_out, NULL), FJ_OK);
    CHECK_EQ(merge_large(large, N, large + N, N, large_out, NULL), FJ_OK);
    size_t count[256] = {0};
    for (size_t i = 0; i < sizeof bytes; i++) count[bytes[i]]++;
    for (size_t i = 0, k = 0; k < 256; k++)
        while (count[k]-- != 0) CHECK_EQ(bytes_out[i++], k);
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        CHECK_EQ(large_out[i].rest[99], (unsigned char)large_out[i].item.from);
        CHECK(i == 0 || large_out[i - 1].item.key < large_out[i].item.key ||
              (large_out[i - 1].item.key == large_out[i].item.key &&
               large_out[i - 1].item.from < large_out[i].item.from));
    }
}

/* ---- Comparisons that contradict themselves ------------------------------------------------- */

static uint64_t whim = 1;

static inline int no_order(struct item x, struct item y)
{
    (void)x;
    (void)y;
    return fjt_random(&whim) % 2 == 0;
}

FJ_MERGE(merge_anyhow, struct item, no_order);

FJ_TEST(without_an_order_each_element_is_there_once, 30)
{
    uint64_t seed = fjt_seed();
    fj_pool *pool = fjt_pool(1, 0);

    whim = seed;
    for (size_t n = 0; n < 3000; n = n * 3 / 2 + 1) {
        struct runs r;
        runs_init(&r, n / 3, n - n / 3, 100, &seed);
        CHECK_EQ(merge_anyhow(r.a, r.na, r.a + r.na, r.nb, r.out + 1,
                              &(fj_algo_options){.pool = pool, .grain = 50}),
                 FJ_OK);
        unsigned char *seen = calloc(n + 1, 1);
        CHECK(seen != NULL);
        for (size_t i = 0; i < n; i++) CHECK_EQ(seen[r.out[i + 1].from]++, 0);
        CHECK(r.out[n + 1].from == 0 && r.out[n + 1].key == 0);
        free(seen);
        runs_free(&r);
    }
    fjt_destroy(pool);
}

/* ---- Cancelling, progress, invalid arguments ------------------------------------------------ */

static atomic_long calls_left;
static fj_token *token_now;

static inline int less_until(struct item x, struct item y)
{
    if (atomic_fetch_sub(&calls_left, 1) == 1) fj_token_cancel(token_now);
    return x.key < y.key;
}

FJ_MERGE(merge_until, struct item, less_until);

static void cancels(fj_pool *pool, void *arg)
{
    uint64_t *seed = arg;
    struct runs r;

    runs_init(&r, 300, 500, 50, seed);
    for (long at = 1, left = 0; left <= 0; at += 7) {
        fj_token token;
        fj_token_init(&token, NULL);
        token_now = &token;
        atomic_store(&calls_left, at);
        int code = merge_until(r.a, r.na, r.a + r.na, r.nb, r.out + 1,
                               &(fj_algo_options){.pool = pool, .token = &token, .grain = 20});
        left = atomic_load(&calls_left);
        CHECK(code == FJ_OK || (code == FJ_ECANCELED && left <= 0));
        if (code == FJ_OK) runs_check(&r);
        for (size_t i = 0; i < r.na + r.nb; i++) CHECK_EQ(r.a[i].from, i);
    }
    runs_free(&r);
}

FJ_TEST(cancelled_at_any_comparison_the_runs_stay_as_they_are, 30)
{
    uint64_t seed = fjt_seed();

    place_workers(cancels, &seed);
}

FJ_TEST(progress_grows_to_the_number_of_elements, 10)
{
    uint64_t seed = fjt_seed();

    for (size_t n = 0; n < 50000; n = n * 3 + 1) {
        fj_progress progress;
        fj_progress_init(&progress, 0);
        merge_case(n / 4, n - n / 4, 1000, &seed, &(fj_algo_options){.progress = &progress});
        CHECK_EQ(fj_progress_done(&progress), n);
        CHECK_EQ(fj_progress_total(&progress), n);
    }
}

FJ_TEST(what_cannot_be_meant_is_refused, 10)
{
    struct item a[4] = {{1, 0}}, out[8];

    CHECK_EQ(merge_items(NULL, 1, a, 2, out, NULL), FJ_EINVAL);
    CHECK_EQ(merge_items(a, 2, NULL, 1, out, NULL), FJ_EINVAL);
    CHECK_EQ(merge_items(a, 2, a + 2, 2, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(merge_items(a, 2, a + 2, 2, a, NULL), FJ_EINVAL);
    CHECK_EQ(merge_items(a, 2, a + 2, 2, a + 3, NULL), FJ_EINVAL);
    CHECK_EQ(merge_items(a, SIZE_MAX, a, 2, out, NULL), FJ_EINVAL);
    CHECK_EQ(merge_items(a, SIZE_MAX / 8, a, 2, out, NULL), FJ_EINVAL);
    CHECK_EQ(merge_items(a, 2, a, 2, out, &(fj_algo_options){.reserved = {1}}), FJ_EINVAL);
    CHECK_EQ(merge_items(NULL, 0, NULL, 0, NULL, NULL), FJ_OK);
    CHECK_EQ(merge_items(a, 1, NULL, 0, out, NULL), FJ_OK);
    CHECK_EQ(out[0].key, 1u);
}
