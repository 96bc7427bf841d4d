/* SPDX-License-Identifier: MIT */
/*
 * reduce.c - reductions and counts: the same result as a loop, however the range was shared
 */
#include <forkjoin/block.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "algo/scratch.h"
#include "places.h"

/* ---- Intervals: only neighbours may be combined --------------------------------------------- */

struct stretch {
    size_t begin, end; /* if they are equal, the accumulator is empty */
    uint64_t sum;
};

struct stretch_job {
    int64_t nap_ns;
    size_t fails; /* the chunk with this element fails; SIZE_MAX: none */
    int code;     /* the code that it returns */
    int combine_code;
    atomic_int combined;
};

static uint64_t value_of(size_t i)
{
    return (i ^ (i >> 7)) * 2654435761u;
}

static int stretch_fold(size_t begin, size_t end, void *acc, void *arg)
{
    struct stretch_job *j = arg;
    struct stretch *s = acc;

    CHECK(begin < end && (s->begin == s->end || s->end == begin));
    if (s->begin == s->end) s->begin = begin;
    s->end = end;
    for (size_t i = begin; i < end; i++) s->sum += value_of(i);
    if (j->nap_ns != 0) CHECK_EQ(fj_sleep_ns(j->nap_ns), FJ_OK);
    return begin <= j->fails && j->fails < end ? j->code : FJ_OK;
}

static int stretch_combine(void *left, const void *right, void *arg)
{
    struct stretch_job *j = arg;
    struct stretch *a = left;
    const struct stretch *b = right;

    CHECK(a->begin < a->end && b->begin < b->end && a->end == b->begin);
    a->end = b->end;
    a->sum += b->sum;
    atomic_fetch_add(&j->combined, 1);
    return j->combine_code;
}

static const struct stretch nothing = {0, 0, 0}, untouched = {11, 22, 33};

static bool is_untouched(const struct stretch *s)
{
    return memcmp(s, &untouched, sizeof *s) == 0;
}

static int stretch_reduce(size_t begin, size_t end, struct stretch_job *j, struct stretch *result,
                          const fj_algo_options *how)
{
    return fj_reduce(begin, end, stretch_fold, stretch_combine, &nothing, sizeof nothing, j, result,
                     how);
}

static void check_stretch(size_t begin, size_t end, const struct stretch *s)
{
    uint64_t sum = 0;

    for (size_t i = begin; i < end; i++) sum += value_of(i);
    CHECK(s->sum == sum && (begin == end || (s->begin == begin && s->end == end)));
}

static void all_sizes(fj_pool *pool, void *arg)
{
    const size_t *grain = arg;

    for (size_t n = 0; n <= 1000; n++) {
        struct stretch_job j = {.fails = SIZE_MAX};
        struct stretch s = untouched;
        CHECK_EQ(
            stretch_reduce(n, 2 * n, &j, &s, &(fj_algo_options){.pool = pool, .grain = *grain}),
            FJ_OK);
        check_stretch(n, 2 * n, &s);
    }
}

FJ_TEST(every_size_is_folded_and_combined_in_order, 30)
{
    size_t grain = 1;
    place_workers(all_sizes, &grain);
    grain = 10;
    place_workers(all_sizes, &grain);
    grain = 0;
    place_workers(all_sizes, &grain);
}

static void large_ones(fj_pool *pool, void *arg)
{
    uint64_t random = fjt_seed();

    (void)arg;
    for (long i = fjt_rounds(10); i-- > 0;) {
        size_t n = fjt_random(&random) % 300000, begin = fjt_random(&random) % 1000;
        struct stretch_job j = {.fails = SIZE_MAX};
        struct stretch s = untouched;
        fj_algo_options how = {.pool = pool,
                               .grain = i % 2 == 0 ? 0 : 1 + fjt_random(&random) % 300};
        CHECK_EQ(stretch_reduce(begin, begin + n, &j, &s, &how), FJ_OK);
        check_stretch(begin, begin + n, &s);
    }
}

FJ_TEST(large_ranges_are_folded_from_everywhere, 30)
{
    place_everywhere(large_ones, NULL);
}

FJ_TEST(ranges_up_to_the_largest_number_are_folded, 20)
{
    fj_pool *p = fjt_pool(4, 0);

    for (size_t grain = 0; grain < 5; grain++) {
        struct stretch_job j = {.fails = SIZE_MAX};
        struct stretch s = untouched;
        fj_algo_options how = {.pool = p, .grain = grain};
        CHECK_EQ(stretch_reduce(SIZE_MAX - 1000, SIZE_MAX, &j, &s, &how), FJ_OK);
        check_stretch(SIZE_MAX - 1000, SIZE_MAX, &s);
    }
    fjt_destroy(p);
}

/* While one worker sleeps in a chunk, another worker takes chunks, even on a machine with one
 * CPU. */
static void sleepers(fj_pool *pool, void *arg)
{
    struct stretch_job j = {.fails = SIZE_MAX, .nap_ns = 50000};
    struct stretch s = untouched;

    (void)arg;
    CHECK_EQ(stretch_reduce(0, 100, &j, &s, &(fj_algo_options){.pool = pool, .grain = 1}), FJ_OK);
    check_stretch(0, 100, &s);
}

FJ_TEST(parts_that_block_are_folded_from_everywhere, 30)
{
    place_everywhere(sleepers, NULL);
}

/* ---- Errors --------------------------------------------------------------------------------- */

static void fail_anywhere(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t k = 0; k < 60; k++) {
        struct stretch_job j = {.fails = k, .code = k % 2 == 0 ? (int)k + 1 : -(int)k};
        struct stretch s = untouched;
        fj_algo_options how = {.pool = pool, .grain = k % 3};
        CHECK_EQ(stretch_reduce(0, 60, &j, &s, &how), j.code);
        CHECK(is_untouched(&s));
    }
}

FJ_TEST(a_code_of_fold_at_any_position_leaves_the_result, 20)
{
    place_workers(fail_anywhere, NULL);
    place_everywhere(fail_anywhere, NULL);
}

FJ_TEST(a_code_of_combine_leaves_the_result, 30)
{
    fj_pool *p = fjt_pool(4, 0);
    int failed = 0;

    while (failed < 20) { /* combine is called only if a chunk was stolen */
        struct stretch_job j = {.fails = SIZE_MAX, .nap_ns = 20000, .combine_code = -31};
        struct stretch s = untouched;
        int code = stretch_reduce(0, 64, &j, &s, &(fj_algo_options){.pool = p, .grain = 1});
        if (code == FJ_OK) {
            CHECK_EQ(atomic_load(&j.combined), 0);
            check_stretch(0, 64, &s);
        } else {
            CHECK_EQ(code, -31);
            CHECK(is_untouched(&s));
            failed++;
        }
    }
    fjt_destroy(p);
}

static struct stretch *cancel_result;

static int cancel_fold(size_t begin, size_t end, void *acc, void *arg)
{
    (void)end, (void)acc;
    if (begin == 10) fj_token_cancel(arg);
    return FJ_OK;
}

static int no_combine(void *left, const void *right, void *arg)
{
    (void)left, (void)right, (void)arg;
    return FJ_OK;
}

FJ_TEST(a_cancelled_reduction_leaves_the_result, 20)
{
    for (int workers = 1; workers <= 4; workers *= 2) {
        fj_pool *p = fjt_pool(workers, 0);
        struct stretch s = untouched;
        fj_token token;
        fj_token_init(&token, NULL);
        cancel_result = &s;
        CHECK_EQ(fj_reduce(0, 1000000, cancel_fold, no_combine, &nothing, sizeof nothing, &token,
                           cancel_result,
                           &(fj_algo_options){.pool = p, .token = &token, .grain = 1}),
                 FJ_ECANCELED);
        CHECK(is_untouched(&s));
        fjt_destroy(p);
    }
}

FJ_TEST(a_reduction_that_cannot_be_meant_leaves_the_result, 10)
{
    struct stretch s = untouched;
    struct stretch_job j = {.fails = SIZE_MAX};
    size_t size = sizeof s;
    const void *id = &nothing;

    CHECK_EQ(fj_reduce(0, 9, NULL, stretch_combine, id, size, &j, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce(0, 9, stretch_fold, NULL, id, size, &j, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce(0, 9, stretch_fold, stretch_combine, NULL, size, &j, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce(0, 9, stretch_fold, stretch_combine, id, 0, &j, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce(0, 9, stretch_fold, stretch_combine, id, SIZE_MAX, &j, &s, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce(0, 9, stretch_fold, stretch_combine, id, size, &j, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce(9, 0, stretch_fold, stretch_combine, id, size, &j, &s, NULL), FJ_EINVAL);
    CHECK(is_untouched(&s));
    CHECK_EQ(fj_reduce(9, 9, stretch_fold, stretch_combine, id, size, &j, &s, NULL), FJ_OK);
    CHECK(memcmp(&s, &nothing, sizeof s) == 0); /* an empty range gives the identity */
}

FJ_TEST(the_identity_may_lie_where_the_result_goes, 20)
{
    fj_pool *p = fjt_pool(4, 0);

    for (size_t n = 1; n < 300; n++) {
        struct stretch_job j = {.fails = SIZE_MAX};
        struct stretch s = nothing;
        CHECK_EQ(fj_reduce(0, n, stretch_fold, stretch_combine, &s, sizeof s, &j, &s,
                           &(fj_algo_options){.pool = p, .grain = 1}),
                 FJ_OK);
        check_stretch(0, n, &s);
    }
    fjt_destroy(p);
}

/* ---- Accumulators of any size --------------------------------------------------------------- */

/*
 * The accumulator is a row of byte pairs (a, b). Each pair is a map x -> a * x + b modulo 251. If
 * the size is odd, the last byte comes from the index of the last element. Composing maps is
 * associative but not commutative.
 */
struct maps {
    size_t size;
    int64_t nap_ns;
};

static void map_then(unsigned char *m, unsigned a, unsigned b)
{
    unsigned old_a = m[0], old_b = m[1];

    m[0] = (unsigned char)(a * old_a % 251);
    m[1] = (unsigned char)((a * old_b + b) % 251);
}

static int maps_fold(size_t begin, size_t end, void *acc, void *arg)
{
    const struct maps *m = arg;
    unsigned char *x = acc;

    for (size_t i = begin; i < end; i++) {
        for (size_t k = 0; k + 1 < m->size; k += 2)
            map_then(x + k, 1 + (unsigned)(i * 31 + k) % 250, (unsigned)(i + k) % 251);
        if (m->size % 2 != 0) x[m->size - 1] = (unsigned char)(1 + i % 255);
    }
    if (m->nap_ns != 0) CHECK_EQ(fj_sleep_ns(m->nap_ns), FJ_OK);
    return FJ_OK;
}

static int maps_combine(void *left, const void *right, void *arg)
{
    const struct maps *m = arg;
    unsigned char *x = left;
    const unsigned char *y = right;

    for (size_t k = 0; k + 1 < m->size; k += 2) map_then(x + k, y[k], y[k + 1]);
    if (m->size % 2 != 0 && y[m->size - 1] != 0) x[m->size - 1] = y[m->size - 1];
    return FJ_OK;
}

enum { MAPS_MOST = 1000 };

/* Reduces n elements into an accumulator of `size` bytes. If that returns FJ_OK, compares the
 * result with that of a loop; otherwise checks that the result was not written. Returns the
 * code. */
static int maps_check(fj_pool *pool, size_t size, size_t n, size_t grain, int64_t nap_ns)
{
    unsigned char identity[MAPS_MOST], want[MAPS_MOST], got[MAPS_MOST + 1];
    struct maps m = {size, 0};

    for (size_t k = 0; k < size; k++) identity[k] = k % 2 == 0 && k + 1 < size ? 1 : 0;
    memcpy(want, identity, size);
    CHECK_EQ(maps_fold(0, n, want, &m), FJ_OK);
    memset(got, 0xdd, sizeof got);
    m.nap_ns = nap_ns;
    int code = fj_reduce(0, n, maps_fold, maps_combine, identity, size, &m, got,
                         &(fj_algo_options){.pool = pool, .grain = grain});
    if (code == FJ_OK) CHECK(memcmp(want, got, size) == 0);
    CHECK_EQ(got[size], 0xdd);
    if (code != FJ_OK) CHECK_EQ(got[0], 0xdd);
    return code;
}

FJ_TEST(accumulators_of_every_size_from_1_to_1000_bytes, 30)
{
    fj_pool *p = fjt_pool(4, 0);

    for (size_t size = 1; size <= MAPS_MOST; size++)
        CHECK_EQ(maps_check(p, size, size % 100, 1 + size % 3, 0), FJ_OK);
    fjt_destroy(p);
}

static void maps_that_are_shared(fj_pool *pool, void *arg)
{
    static const size_t sizes[] = {1, 2, 7, 16, 127, 128, 129, 255, 256, 257, 1000};

    (void)arg;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        CHECK_EQ(maps_check(pool, sizes[i], 40, 1, 20000), FJ_OK);
}

FJ_TEST(maps_are_composed_in_order_from_everywhere, 30)
{
    place_everywhere(maps_that_are_shared, NULL);
}

/* ---- Without memory ------------------------------------------------------------------------- */

FJ_TEST(without_memory_for_parts_the_result_is_the_same, 30)
{
    static const size_t sizes[] = {129, 200, 256, 257, 1000};
    fj_pool *p = fjt_pool(4, 0);

    if (!FJI_FAULTS) fjt_skip("built without faults");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (long after = 0; after < 12; after++) {
            fji_algo_fail_after(after);
            int code = maps_check(p, sizes[i], 60, 1, 20000);
            fji_algo_fail_after(-1);
            /* The first allocation is for the whole call, if the accumulator has more than 256
             * bytes. */
            CHECK_EQ(code, after == 0 && sizes[i] > 256 ? FJ_ENOMEM : FJ_OK);
        }
    fjt_destroy(p);
}

FJ_TEST(small_accumulators_need_no_memory, 30)
{
    fj_pool *p = fjt_pool(4, 0);

    if (!FJI_FAULTS) fjt_skip("built without faults");
    fji_algo_fail_after(0);
    for (size_t size = 1; size <= 128; size += 9)
        CHECK_EQ(maps_check(p, size, 50, 1, 20000), FJ_OK);
    fji_algo_fail_after(-1);
    fjt_destroy(p);
}

/* ---- Counts --------------------------------------------------------------------------------- */

struct tally {
    size_t keys;
    int64_t nap_ns;
    size_t fails;
};

static int tally_count(size_t begin, size_t end, uint64_t *counts, void *arg)
{
    const struct tally *t = arg;

    for (size_t i = begin; i < end; i++) counts[value_of(i) % t->keys] += 1 + i % 3;
    if (t->nap_ns != 0) CHECK_EQ(fj_sleep_ns(t->nap_ns), FJ_OK);
    return begin <= t->fails && t->fails < end ? 12 : FJ_OK;
}

static int tally_check(fj_pool *pool, size_t keys, size_t n, size_t grain, struct tally t)
{
    uint64_t *before = malloc(keys * sizeof *before), *want = malloc(keys * sizeof *want);
    uint64_t *got = malloc(keys * sizeof *got);

    CHECK(before != NULL && want != NULL && got != NULL);
    t.keys = keys;
    for (size_t k = 0; k < keys; k++) before[k] = k == 1 ? UINT64_MAX : k * 1000003;
    memcpy(want, before, keys * sizeof *want);
    memcpy(got, before, keys * sizeof *got);
    struct tally plain = {keys, 0, SIZE_MAX};
    CHECK_EQ(tally_count(5, 5 + n, want, &plain), FJ_OK);
    int code = fj_histogram(5, 5 + n, tally_count, &t, got, keys,
                            &(fj_algo_options){.pool = pool, .grain = grain});
    CHECK(memcmp(got, code == FJ_OK ? want : before, keys * sizeof *got) == 0);
    free(before);
    free(want);
    free(got);
    return code;
}

static void tallies(fj_pool *pool, void *arg)
{
    static const size_t keys[] = {1, 2, 16, 17, 1000};

    (void)arg;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        for (size_t n = 0; n <= 1000; n += 1 + n / 4)
            for (size_t grain = 0; grain <= 2; grain++)
                CHECK_EQ(tally_check(pool, keys[i], n, grain, (struct tally){.fails = SIZE_MAX}),
                         FJ_OK);
    CHECK_EQ(tally_check(pool, 100, 50, 1, (struct tally){.nap_ns = 20000, .fails = SIZE_MAX}),
             FJ_OK);
}

FJ_TEST(counts_are_added_to_what_is_there, 30)
{
    place_everywhere(tallies, NULL);
}

static void tallies_that_fail(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t k = 0; k < 50; k++)
        CHECK_EQ(tally_check(pool, 7, 50, k % 2, (struct tally){.fails = 5 + k}), 12);
}

FJ_TEST(counts_are_left_alone_by_a_failure, 20)
{
    place_workers(tallies_that_fail, NULL);
}

FJ_TEST(counts_without_memory_for_parts_are_the_same, 30)
{
    fj_pool *p = fjt_pool(4, 0);
    struct tally t = {.nap_ns = 20000, .fails = SIZE_MAX};

    if (!FJI_FAULTS) fjt_skip("built without faults");
    for (long after = 0; after < 15; after++) {
        fji_algo_fail_after(after);
        int code = tally_check(p, 100, 60, 1, t);
        fji_algo_fail_after(-1);
        CHECK_EQ(code, after == 0 ? FJ_ENOMEM : FJ_OK);
    }
    fjt_destroy(p);
}

FJ_TEST(counts_that_cannot_be_meant, 10)
{
    struct tally t = {.keys = 2, .fails = SIZE_MAX};
    uint64_t counts[2] = {7, 8};

    CHECK_EQ(fj_histogram(0, 9, NULL, &t, counts, 2, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram(0, 9, tally_count, &t, NULL, 2, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram(0, 9, tally_count, &t, counts, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram(0, 9, tally_count, &t, counts, SIZE_MAX, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram(0, 9, tally_count, &t, counts, SIZE_MAX / 8 + 1, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram(9, 0, tally_count, &t, counts, 2, NULL), FJ_EINVAL);
    CHECK_EQ(fj_histogram(9, 9, tally_count, &t, counts, 2, NULL), FJ_OK);
    CHECK(counts[0] == 7 && counts[1] == 8);
}
