/* SPDX-License-Identifier: MIT */
/*
 * merge.c - merging two sorted arrays: sorted, equal elements of the first array come first
 */
#include "elements.h"
#include "places.h"

enum { GUARD = 64 };

/*
 * The elements of s are those of the first run, followed by those of the second. Elements with a
 * number below `na` are in the first run. The expected result is that of a stable sort of s.
 */
struct runs {
    struct elements s;
    size_t na;
    unsigned char *a, *b, *out;
};

static void runs_init(struct runs *r, size_t na, size_t nb, size_t size)
{
    elements_init(&r->s, na + nb, size);
    CHECK_EQ(r->s.n, na + nb);
    r->na = na;
    r->a = malloc(na * size + 1);
    r->b = malloc(nb * size + 1);
    r->out = malloc((na + nb) * size + GUARD);
    CHECK(r->a != NULL && r->b != NULL && r->out != NULL);
    memcpy(r->a, r->s.base, na * size);
    memcpy(r->b, r->s.base + na * size, nb * size);
    memset(r->out, 0xee, (na + nb) * size + GUARD);
}

static void runs_free(struct runs *r)
{
    elements_free(&r->s);
    free(r->a);
    free(r->b);
    free(r->out);
}

static int key_compare(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* Random keys below `most`, sorted in each run. */
static void runs_keys(struct runs *r, unsigned most, uint64_t *seed)
{
    for (size_t i = 0; i < r->s.n; i++) r->s.key[i] = (unsigned)(fjt_random(seed) >> 33) % most;
    qsort(r->s.key, r->na, sizeof *r->s.key, key_compare);
    qsort(r->s.key + r->na, r->s.n - r->na, sizeof *r->s.key, key_compare);
}

static int runs_merge(struct runs *r, const fj_algo_options *how)
{
    return fj_merge(r->a, r->na, r->b, r->s.n - r->na, r->s.size, r->out, element_compare, &r->s,
                    how);
}

/* Checks that the runs have not changed and that nothing was written beyond the result. */
static void check_around(const struct runs *r)
{
    size_t size = r->s.size;

    CHECK(memcmp(r->a, r->s.base, r->na * size) == 0);
    CHECK(memcmp(r->b, r->s.base + r->na * size, (r->s.n - r->na) * size) == 0);
    for (size_t i = 0; i < GUARD; i++) CHECK_EQ(r->out[r->s.n * size + i], 0xee);
}

static void check_merge(struct runs *r, const fj_algo_options *how)
{
    CHECK_EQ(runs_merge(r, how), FJ_OK);
    elements_check_sorted(&r->s, r->out, true, __LINE__);
    check_around(r);
}

static void check_one(size_t na, size_t nb, size_t size, unsigned most, const fj_algo_options *how)
{
    uint64_t seed = fjt_seed() + na * 1000 + nb;
    struct runs r;

    if (!case_is_tried(na + nb)) return;
    runs_init(&r, na, nb, size);
    runs_keys(&r, most, &seed);
    check_merge(&r, how);
    runs_free(&r);
}

/* ---- Order ---------------------------------------------------------------------------------- */

static const size_t sizes[] = {4, 8, 16, 3, 32, 12, 100, 24, 40};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Bit i of `mix` determines which run holds element i of the result. */
static void check_mix(unsigned mix, size_t n, size_t size, unsigned same,
                      const fj_algo_options *how)
{
    size_t na = n - (size_t)__builtin_popcount(mix), a = 0, b = na;
    struct runs r;

    runs_init(&r, na, n - na, size);
    for (unsigned i = 0; i < n; i++) r.s.key[(mix >> i & 1u) != 0 ? b++ : a++] = i / same;
    check_merge(&r, how);
    runs_free(&r);
}

FJ_TEST(every_mixture_of_two_short_runs_is_merged, 30)
{
    for (size_t n = 0; n <= 13; n++)
        for (unsigned mix = 0; mix < 1u << n; mix++) {
            check_mix(mix, n, sizes[mix % SIZES], 1, NULL);
            if (n <= 10) check_mix(mix, n, 8, 3, NULL);
        }
}

FJ_TEST(every_mixture_of_two_short_runs_is_merged_in_small_parts, 30)
{
    fj_pool *pool = fjt_pool(2, FJ_POOL_CALLER_HELPS);

    for (unsigned mix = 0; mix < 1u << 20; mix += 509) {
        check_mix(mix, 20, sizes[mix % SIZES], 1, &(fj_algo_options){.pool = pool, .grain = 1});
        check_mix(mix, 20, 8, 4, &(fj_algo_options){.pool = pool, .grain = 3});
    }
    fjt_destroy(pool);
}

static void all_lengths(fj_pool *pool, void *arg)
{
    fj_algo_options how = {.pool = pool, .grain = pool != NULL ? 16 : 0};

    (void)arg;
    for (size_t na = 0; na <= 40; na++)
        for (size_t nb = 0; nb <= 40; nb++)
            check_one(na, nb, sizes[(na + nb) % SIZES], na % 2 == 0 ? 10 : 1000, &how);
    for (size_t n = 0; n <= 1000; n++)
        check_one(n * 7 % (n + 1), n - n * 7 % (n + 1), 8, 100, &how);
}

FJ_TEST(all_lengths_are_merged, 30)
{
    place_workers(all_lengths, NULL);
    all_lengths(NULL, NULL);
}

FJ_TEST(every_element_size_is_merged, 30)
{
    fj_pool *pool = fjt_pool(2, 0);

    for (size_t size = 1; size <= 256; size++) {
        check_one(100, 120, size, 50, NULL);
        check_one(50, 200, size, 1000, &(fj_algo_options){.pool = pool, .grain = 20});
    }
    check_one(40, 30, 10000, 50, NULL);
    fjt_destroy(pool);
}

static void large_ones(fj_pool *pool, void *arg)
{
    static const size_t parts[][2] = {{1, 1},   {1, 0}, {0, 1},    {1, 100},
                                      {100, 1}, {3, 1}, {1, 20000}};
    size_t n = *(const size_t *)arg;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (unsigned most = 4; most <= 1u << 24; most *= 64) {
            size_t na = n * parts[i][0] / (parts[i][0] + parts[i][1]);
            check_one(na, n - na, sizes[i % SIZES], most, &(fj_algo_options){.pool = pool});
        }
}

FJ_TEST(large_runs_are_merged_by_any_number_of_workers, 30)
{
    size_t n = (size_t)fjt_rounds(fjt_sanitized() ? 4000 : 20000);

    place_workers(large_ones, &n);
}

FJ_TEST(merges_from_everywhere, 30)
{
    size_t n = 3000;

    place_everywhere(large_ones, &n);
}

/* ---- Number of comparisons ------------------------------------------------------------------ */

static unsigned long calls_of(size_t na, size_t nb, unsigned a_first, unsigned b_first)
{
    struct runs r;

    runs_init(&r, na, nb, 8);
    for (unsigned i = 0; i < na; i++) r.s.key[i] = a_first + i;
    for (unsigned i = 0; i < nb; i++) r.s.key[na + i] = b_first + i;
    check_merge(&r, NULL);
    unsigned long calls = atomic_load(&r.s.calls);
    runs_free(&r);
    return calls;
}

FJ_TEST(what_is_in_order_is_not_compared_one_by_one, 30)
{
    CHECK(calls_of(20000, 20000, 0, 50000) < 200);
    CHECK(calls_of(20000, 20000, 0, 19990) < 300);
    CHECK(calls_of(20000, 3, 0, 10000) < 200);
    CHECK(calls_of(3, 20000, 10000, 0) < 200);
    CHECK(calls_of(20000, 20000, 0, 0) < 41000);
}

static void lies(fj_pool *pool, void *arg)
{
    uint64_t seed = fjt_seed();

    (void)arg;
    for (int lie = TRUTH; lie < LIES; lie++)
        for (size_t n = 0; n < 600; n = n + n / 8 + 1)
            for (size_t na = 0; na <= n; na += n / 5 + 1) {
                struct runs r;
                runs_init(&r, na, n - na, sizes[n % SIZES]);
                runs_keys(&r, 20, &seed);
                r.s.lie = lie;
                CHECK_EQ(runs_merge(&r, &(fj_algo_options){.pool = pool, .grain = 16 * (n % 2)}),
                         FJ_OK);
                elements_check_all(&r.s, r.out, __LINE__);
                check_around(&r);
                runs_free(&r);
            }
}

FJ_TEST(comparisons_that_contradict_themselves_lose_nothing, 30)
{
    place_workers(lies, NULL);
    lies(NULL, NULL);
}

FJ_TEST(runs_that_are_not_sorted_lose_nothing, 30)
{
    uint64_t seed = fjt_seed();

    for (size_t n = 0; n < 3000; n = n + n / 8 + 1) {
        struct runs r;
        runs_init(&r, n / 2, n - n / 2, 8);
        for (size_t i = 0; i < n; i++) r.s.key[i] = (unsigned)(fjt_random(&seed) >> 40);
        CHECK_EQ(runs_merge(&r, NULL), FJ_OK);
        elements_check_all(&r.s, r.out, __LINE__);
        runs_free(&r);
    }
}

/* ---- Cancelling, progress, invalid arguments ------------------------------------------------ */

/* Cancels in comparison number `at`. Returns false if the merge needed fewer comparisons. */
static bool cancelled_at(fj_pool *pool, unsigned long at)
{
    uint64_t seed = fjt_seed();
    struct runs r;
    fj_token token;

    fj_token_init(&token, NULL);
    runs_init(&r, 150, 150, 8);
    runs_keys(&r, 100, &seed);
    r.s.token = &token;
    r.s.at = at;
    int code = runs_merge(&r, &(fj_algo_options){.pool = pool, .token = &token, .grain = 16});
    bool reached = atomic_load(&r.s.calls) >= at;
    CHECK(code == FJ_OK || (reached && code == FJ_ECANCELED));
    if (code == FJ_OK) elements_check_sorted(&r.s, r.out, true, __LINE__);
    check_around(&r);
    runs_free(&r);
    return reached;
}

static void cancels(fj_pool *pool, void *arg)
{
    unsigned long at = 1;

    (void)arg;
    while (cancelled_at(pool, at)) at++;
}

FJ_TEST(cancelled_at_any_comparison_the_runs_stay_as_they_are, 30)
{
    place_workers(cancels, NULL);
}

FJ_TEST(a_cancel_ends_it_soon, 30)
{
    fj_pool *pool = fjt_pool(2, 0);
    uint64_t seed = fjt_seed();
    struct runs r;
    fj_token token;

    fj_token_init(&token, NULL);
    runs_init(&r, 100000, 100000, 4);
    runs_keys(&r, 1u << 24, &seed);
    r.s.token = &token;
    r.s.at = 3000;
    CHECK_EQ(runs_merge(&r, &(fj_algo_options){.pool = pool, .token = &token}), FJ_ECANCELED);
    CHECK(atomic_load(&r.s.calls) < 3000 + 4 * 4096);
    runs_free(&r);
    fjt_destroy(pool);
}

static void progress_of(fj_pool *pool, void *arg)
{
    uint64_t seed = fjt_seed();

    (void)arg;
    for (size_t n = 0; n < 20000; n = n * 7 / 4 + 1) {
        struct runs r;
        fj_progress progress;
        fj_progress_init(&progress, 0);
        runs_init(&r, n / 3, n - n / 3, 8);
        runs_keys(&r, 1000, &seed);
        r.s.look = &progress;
        r.s.most = n;
        check_merge(&r,
                    &(fj_algo_options){.pool = pool, .progress = &progress, .grain = n % 3 * 30});
        CHECK_EQ(fj_progress_done(&progress), n);
        CHECK_EQ(fj_progress_total(&progress), n);
        runs_free(&r);
    }
}

FJ_TEST(progress_grows_to_the_number_of_elements, 30)
{
    place_workers(progress_of, NULL);
    progress_of(NULL, NULL);
}

FJ_TEST(what_cannot_be_meant_is_refused, 30)
{
    int a[4] = {1, 2, 3, 4}, out[8] = {0};
    struct elements s = {.n = 0};
    fj_compare_fn *cmp = element_compare;

    CHECK_EQ(fj_merge(NULL, 2, a, 2, 4, out, cmp, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_merge(a, 2, NULL, 2, 4, out, cmp, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_merge(a, 2, a + 2, 2, 0, out, cmp, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_merge(a, 2, a + 2, 2, 4, NULL, cmp, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_merge(a, 2, a + 2, 2, 4, out, NULL, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_merge(a, 2, out, 2, 4, out, cmp, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_merge(out + 3, 2, a, 2, 4, out, cmp, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_merge(a, SIZE_MAX, a, 2, 1, out, cmp, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_merge(a, SIZE_MAX / 4, a, 0, 4, out, cmp, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_merge(a, 2, a + 2, 2, 4, out, cmp, &s, &(fj_algo_options){.reserved = {0, 1}}),
             FJ_EINVAL);
    CHECK_EQ(fj_merge(NULL, 0, NULL, 0, 4, NULL, cmp, &s, NULL), FJ_OK);
    for (size_t i = 0; i < 8; i++) CHECK_EQ(out[i], 0);
}

FJ_TEST(both_runs_may_be_the_same_array, 30)
{
    struct elements s;
    unsigned char out[2000 * 8];

    elements_init(&s, 1000, 8);
    for (unsigned i = 0; i < 1000; i++) s.key[i] = i;
    CHECK_EQ(fj_merge(s.base, 1000, s.base, 1000, 8, out, element_compare, &s, NULL), FJ_OK);
    for (size_t i = 0; i < 2000; i++) CHECK_EQ(id_of(out + i * 8, 8), i / 2);
    elements_free(&s);
}
