/* SPDX-License-Identifier: MIT */
/*
 * for.c - loops: every element once, in chunks of the requested size
 */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "plat/ticks.h"

/* What the bodies of one call have seen: how often each element, starting with `first`. */
struct seen {
    size_t first, n;
    atomic_uchar *times;
    atomic_size_t parts, smallest, largest;
    size_t heavy;    /* an element that takes longer; SIZE_MAX: none */
    size_t fails;    /* the chunk with this element fails; SIZE_MAX: none */
    int code;        /* the code that it returns */
    int64_t spin_us; /* the time of each element */
};

static void seen_init(struct seen *s, size_t first, size_t n)
{
    memset(s, 0, sizeof *s);
    s->first = first;
    s->n = n;
    s->times = calloc(n + 1, sizeof *s->times);
    CHECK(s->times != NULL);
    s->heavy = s->fails = SIZE_MAX;
    atomic_store(&s->smallest, SIZE_MAX);
}

static void seen_again(struct seen *s, size_t n)
{
    for (size_t i = 0; i < n; i++) atomic_store_explicit(&s->times[i], 0, memory_order_relaxed);
    s->n = n;
    atomic_store(&s->parts, 0);
    atomic_store(&s->smallest, SIZE_MAX);
    atomic_store(&s->largest, 0);
}

static void seen_free(struct seen *s)
{
    free(s->times);
}

static void note_size(struct seen *s, size_t n)
{
    size_t now = atomic_load(&s->smallest);

    while (n < now && !atomic_compare_exchange_weak(&s->smallest, &now, n)) continue;
    now = atomic_load(&s->largest);
    while (n > now && !atomic_compare_exchange_weak(&s->largest, &now, n)) continue;
    atomic_fetch_add(&s->parts, 1);
}

static int see(size_t begin, size_t end, void *arg)
{
    struct seen *s = arg;

    CHECK(begin < end && begin >= s->first && end - s->first <= s->n);
    for (size_t i = begin; i < end; i++) {
        atomic_fetch_add_explicit(&s->times[i - s->first], 1, memory_order_relaxed);
        if (s->spin_us != 0) fjt_spin_us(s->spin_us);
        if (i == s->heavy) fjt_spin_us(200);
    }
    if (end < s->first + s->n) note_size(s, end - begin); /* the last chunk may be smaller */
    return begin <= s->fails && s->fails < end ? s->code : FJ_OK;
}

static void check_all_once(const struct seen *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (atomic_load_explicit(&s->times[i], memory_order_relaxed) != 1)
            fjt_fail(__FILE__, __LINE__, "element %zu of %zu: %d times", i, s->n,
                     (int)atomic_load(&s->times[i]));
}

static void check_at_most_once(const struct seen *s)
{
    for (size_t i = 0; i < s->n; i++) CHECK(atomic_load(&s->times[i]) <= 1);
}

/* ---- Every element once --------------------------------------------------------------------- */

static void all_sizes(fj_pool *pool, void *arg)
{
    const size_t *grain = arg;
    struct seen s;

    seen_init(&s, 0, 1000);
    for (size_t n = 0; n <= 1000; n++) {
        seen_again(&s, n);
        CHECK_EQ(fj_for(0, n, see, &s, &(fj_algo_options){.pool = pool, .grain = *grain}), FJ_OK);
        check_all_once(&s);
    }
    seen_free(&s);
}

FJ_TEST(every_size_by_single_elements, 40)
{
    size_t grain = 1;
    place_workers(all_sizes, &grain);
}

FJ_TEST(every_size_by_parts_of_seven, 20)
{
    size_t grain = 7;
    place_workers(all_sizes, &grain);
}

FJ_TEST(every_size_by_parts_that_are_found, 20)
{
    size_t grain = 0;
    place_workers(all_sizes, &grain);
}

static void all_grains(fj_pool *pool, void *arg)
{
    const size_t n = 40;
    struct seen s;

    (void)arg;
    seen_init(&s, 5, n);
    for (size_t grain = 1; grain <= n + 1; grain++) {
        seen_again(&s, n);
        CHECK_EQ(fj_for(5, 5 + n, see, &s, &(fj_algo_options){.pool = pool, .grain = grain}),
                 FJ_OK);
        check_all_once(&s);
    }
    seen_free(&s);
}

FJ_TEST(every_grain_from_everywhere, 20)
{
    place_everywhere(all_grains, NULL);
}

static void some_large(fj_pool *pool, void *arg)
{
    uint64_t random = fjt_seed();
    struct seen s;

    (void)arg;
    seen_init(&s, 0, 300000);
    for (long i = fjt_rounds(12); i-- > 0;) {
        size_t n = fjt_random(&random) % 300000;
        s.first = fjt_random(&random) % 1000000;
        s.heavy = s.first + fjt_random(&random) % 300000;
        seen_again(&s, n);
        fj_algo_options how = {.pool = pool};
        if (i % 3 == 0) how.grain = 1 + fjt_random(&random) % 1000;
        if (i % 3 == 1) how.max_grain = 1 + fjt_random(&random) % 100;
        CHECK_EQ(fj_for(s.first, s.first + n, see, &s, &how), FJ_OK);
        check_all_once(&s);
    }
    seen_free(&s);
}

FJ_TEST(large_loops_from_anywhere, 30)
{
    place_everywhere(some_large, NULL);
}

/* The elements take so long that the loop is shared, whatever chunk size the call chooses. */
static void slow_elements(fj_pool *pool, void *arg)
{
    struct seen s;

    (void)arg;
    seen_init(&s, 0, 200);
    for (size_t n = 0; n < 200; n += 1 + n / 7) {
        seen_again(&s, n);
        s.spin_us = n % 2 == 0 ? 2 : 20;
        s.heavy = n % 3 == 0 ? n / 2 : n % 3 == 1 ? 0 : SIZE_MAX;
        CHECK_EQ(fj_for(0, n, see, &s, &(fj_algo_options){.pool = pool}), FJ_OK);
        check_all_once(&s);
    }
    seen_free(&s);
}

FJ_TEST(slow_elements_from_everywhere, 30)
{
    place_everywhere(slow_elements, NULL);
}

/* ---- Elements of unequal cost --------------------------------------------------------------- */

static void heavy_anywhere(fj_pool *pool, void *arg)
{
    struct seen s;

    (void)arg;
    seen_init(&s, 0, 64);
    for (size_t k = 0; k < 64; k += 3) {
        seen_again(&s, 64);
        s.heavy = k;
        CHECK_EQ(fj_for(0, 64, see, &s, &(fj_algo_options){.pool = pool, .grain = k % 2}), FJ_OK);
        check_all_once(&s);
    }
    seen_free(&s);
}

FJ_TEST(one_heavy_element_at_any_position, 30)
{
    place_workers(heavy_anywhere, NULL);
}

struct triangle {
    size_t n;
    atomic_ullong sum;
};

static int triangle_row(size_t begin, size_t end, void *arg)
{
    struct triangle *t = arg;
    unsigned long long sum = 0;

    for (size_t i = begin; i < end; i++)
        for (size_t k = 0; k < i; k++) sum += (i ^ k) & 1;
    atomic_fetch_add(&t->sum, sum);
    return FJ_OK;
}

static void triangles(fj_pool *pool, void *arg)
{
    struct triangle one = {.n = 1500}, all = {.n = 1500};

    (void)arg;
    CHECK_EQ(triangle_row(0, one.n, &one), FJ_OK);
    CHECK_EQ(fj_for(0, all.n, triangle_row, &all, &(fj_algo_options){.pool = pool}), FJ_OK);
    CHECK(all.sum == one.sum);
}

FJ_TEST(rows_that_grow, 20)
{
    place_everywhere(triangles, NULL);
}

/* ---- Chunks --------------------------------------------------------------------------------- */

static void exact_parts(fj_pool *pool, void *arg)
{
    struct seen s;

    (void)arg;
    seen_init(&s, 3, 500);
    for (size_t grain = 1; grain <= 501; grain += 1 + grain / 8) {
        seen_again(&s, 500);
        CHECK_EQ(fj_for(3, 503, see, &s, &(fj_algo_options){.pool = pool, .grain = grain}), FJ_OK);
        check_all_once(&s);
        if (atomic_load(&s.parts) == 0) continue;
        CHECK_EQ(atomic_load(&s.largest), grain);
        CHECK_EQ(atomic_load(&s.smallest), grain);
    }
    seen_free(&s);
}

FJ_TEST(every_part_but_the_last_has_the_grain_that_was_given, 20)
{
    place_workers(exact_parts, NULL);
}

static void bounded_parts(fj_pool *pool, void *arg)
{
    struct seen s;

    (void)arg;
    seen_init(&s, 0, 1000);
    for (size_t least = 1; least <= 300; least = least * 3 / 2 + 1) {
        for (size_t most = least; most <= 500; most = most * 2 + 3) {
            seen_again(&s, 1000);
            s.spin_us = least < 10 ? 1 : 0;
            s.heavy = least;
            fj_algo_options how = {.pool = pool, .min_grain = least, .max_grain = most};
            CHECK_EQ(fj_for(0, 1000, see, &s, &how), FJ_OK);
            check_all_once(&s);
            CHECK(atomic_load(&s.smallest) >= least);
            CHECK(atomic_load(&s.largest) <= most);
        }
    }
    seen_free(&s);
}

FJ_TEST(parts_that_are_found_stay_within_their_bounds, 20)
{
    place_workers(bounded_parts, NULL);
}

/* An element takes at least ELEMENT_TICKS, so the measured time of a chunk limits its number of
 * elements even on a loaded machine. A chunk whose size the call chose takes at most 1.5 times
 * PART_TICKS_MOST. */
enum { ELEMENT_TICKS = 1000, PART_TICKS_MOST = 4 * 16000 };

static int take_ticks(size_t lo, size_t hi, void *arg)
{
    atomic_size_t *largest = arg;
    size_t seen = atomic_load(largest);

    while (seen < hi - lo && !atomic_compare_exchange_weak(largest, &seen, hi - lo)) {}
    for (size_t i = lo; i < hi; i++) {
        uint64_t began = fji_ticks();
        while (fji_ticks() - began < ELEMENT_TICKS) {}
    }
    return FJ_OK;
}

static void short_parts(fj_pool *pool, void *arg)
{
    atomic_size_t largest = 0;

    (void)arg;
    CHECK_EQ(fj_for(0, 20000, take_ticks, &largest, &(fj_algo_options){.pool = pool}), FJ_OK);
    CHECK(atomic_load(&largest) <= PART_TICKS_MOST * 3 / 2 / ELEMENT_TICKS);
    CHECK(atomic_load(&largest) > 1);
}

FJ_TEST(parts_that_are_found_take_a_limited_time, 20)
{
    place_workers(short_parts, NULL);
}

FJ_TEST(a_grain_beyond_the_range_is_one_part, 10)
{
    fj_pool *p = fjt_pool(2, 0);
    struct seen s;

    seen_init(&s, 0, 100);
    for (int i = 0; i < 3; i++) {
        fj_algo_options how = {.pool = p, .grain = i == 0 ? 100 : i == 1 ? SIZE_MAX : 0};
        if (i == 2) how.min_grain = SIZE_MAX;
        seen_again(&s, 100);
        CHECK_EQ(fj_for(0, 100, see, &s, &how), FJ_OK);
        check_all_once(&s);
        CHECK_EQ(atomic_load(&s.parts), 0); /* the only chunk was the last one */
    }
    seen_free(&s);
    fjt_destroy(p);
}

/* ---- The ends of size_t --------------------------------------------------------------------- */

static void near_the_end(fj_pool *pool, void *arg)
{
    const size_t grains[] = {0, 1, 3, 999, 1000, 1001, SIZE_MAX};
    struct seen s;

    (void)arg;
    seen_init(&s, SIZE_MAX - 1000, 1000);
    for (size_t i = 0; i < sizeof grains / sizeof grains[0]; i++) {
        fj_algo_options how = {.pool = pool, .grain = grains[i]};
        seen_again(&s, 1000);
        CHECK_EQ(fj_for(SIZE_MAX - 1000, SIZE_MAX, see, &s, &how), FJ_OK);
        check_all_once(&s);
    }
    CHECK_EQ(fj_for(SIZE_MAX, SIZE_MAX, see, &s, NULL), FJ_OK);
    seen_free(&s);
}

FJ_TEST(ranges_up_to_the_largest_number, 20)
{
    place_everywhere(near_the_end, NULL);
}

struct endless {
    atomic_int parts;
    int stop_at;
    int code;
    fj_token *token;
};

static int endless_part(size_t begin, size_t end, void *arg)
{
    struct endless *e = arg;

    CHECK(begin < end);
    if (atomic_fetch_add(&e->parts, 1) != e->stop_at) return FJ_OK;
    if (e->token != NULL) fj_token_cancel(e->token);
    return e->code;
}

static void endless_loops(fj_pool *pool, void *arg)
{
    (void)arg;
    for (int at = 0; at < 40; at += 1 + at / 3) {
        /* Without a limit, a body that does nothing soon gets one chunk with the whole rest. */
        fj_algo_options how = {.pool = pool, .grain = at % 2 == 0 ? 1 : 0, .max_grain = 1000};
        struct endless e = {.stop_at = at, .code = 8 + at};
        CHECK_EQ(fj_for(0, SIZE_MAX, endless_part, &e, &how), 8 + at);

        fj_token token;
        fj_token_init(&token, NULL);
        how.token = &token;
        struct endless c = {.stop_at = at, .token = &token};
        CHECK_EQ(fj_for(0, SIZE_MAX, endless_part, &c, &how), FJ_ECANCELED);
    }
}

FJ_TEST(a_loop_over_all_numbers_ends_when_it_is_told_to, 20)
{
    place_workers(endless_loops, NULL);
    place_everywhere(endless_loops, NULL);
}

/* ---- Errors --------------------------------------------------------------------------------- */

static void fail_anywhere(fj_pool *pool, void *arg)
{
    static const int codes[] = {1, 4711, INT_MAX, -1, FJ_EINVAL, FJ_ECANCELED, FJ_PENDING, INT_MIN};
    struct seen s;

    (void)arg;
    seen_init(&s, 10, 60);
    for (size_t k = 0; k < 60; k++) {
        seen_again(&s, 60);
        s.fails = 10 + k;
        s.code = codes[k % 8];
        fj_algo_options how = {.pool = pool, .grain = k % 3 == 0 ? 0 : 1};
        CHECK_EQ(fj_for(10, 70, see, &s, &how), s.code);
        CHECK_EQ(atomic_load(&s.times[k]), 1);
        check_at_most_once(&s);
    }
    seen_free(&s);
}

FJ_TEST(a_code_of_the_body_at_any_position_is_returned, 20)
{
    place_workers(fail_anywhere, NULL);
    place_everywhere(fail_anywhere, NULL);
}

FJ_TEST(with_one_worker_nothing_runs_after_a_failure, 20)
{
    fj_pool *p = fjt_pool(1, 0);
    struct seen s;

    seen_init(&s, 0, 100);
    s.code = 3;
    for (size_t k = 0; k < 100; k++) {
        for (size_t grain = 0; grain <= 17; grain += 1 + grain / 2) {
            seen_again(&s, 100);
            s.fails = k;
            CHECK_EQ(fj_for(0, 100, see, &s, &(fj_algo_options){.pool = p, .grain = grain}), 3);
            for (size_t i = 0; i <= k; i++) CHECK_EQ(atomic_load(&s.times[i]), 1);
            /* No element behind the chunk that failed. */
            size_t i = k;
            while (i < 100 && atomic_load(&s.times[i]) == 1) i++;
            if (grain != 0) CHECK(i <= k + grain);
            for (; i < 100; i++) CHECK_EQ(atomic_load(&s.times[i]), 0);
        }
    }
    seen_free(&s);
    fjt_destroy(p);
}

static int fail_all(size_t begin, size_t end, void *arg)
{
    (void)end;
    atomic_fetch_add((atomic_int *)arg, 1);
    return (int)begin + 1;
}

FJ_TEST(when_every_part_fails_one_of_their_codes_is_returned, 20)
{
    for (int workers = 1; workers <= 8; workers *= 2) {
        fj_pool *p = fjt_pool(workers, 0);
        for (int round = 0; round < 200; round++) {
            atomic_int calls = 0;
            int code = fj_for(0, 1000, fail_all, &calls, &(fj_algo_options){.pool = p, .grain = 1});
            CHECK(code >= 1 && code <= 1000);
            CHECK(atomic_load(&calls) >= 1);
            if (workers == 1) CHECK_EQ(atomic_load(&calls), 1);
            if (workers == 1) CHECK_EQ(code, 1);
        }
        fjt_destroy(p);
    }
}

/* Two chunks fail. The second one does so when the worker of the first is waiting and no longer
 * running. */
static int race_part(size_t begin, size_t end, void *arg)
{
    atomic_int *begun = arg;

    (void)end;
    if (begin == 0) return FJ_OK; /* this chunk may be done before a thief takes the others */
    bool first = atomic_fetch_add(begun, 1) == 0;
    while (atomic_load(begun) < 2) fjt_sleep_us(10);
    if (first) return 1;
    while (fj_pool_running_count(fj_current_pool()) > 1) fjt_sleep_us(10);
    return 2;
}

FJ_TEST(of_two_codes_the_first_is_returned, 20)
{
    for (long i = fjt_rounds(100); i-- > 0;) {
        fj_pool *p = fjt_pool(2, 0);
        atomic_int begun = 0;
        CHECK_EQ(fj_for(0, 20, race_part, &begun, &(fj_algo_options){.pool = p, .grain = 1}), 1);
        fjt_destroy(p);
    }
}

/* After the failure each chunk takes so long that to run all of them would take minutes. */
struct late {
    atomic_int begun, failed;
};

static int late_part(size_t begin, size_t end, void *arg)
{
    struct late *l = arg;

    (void)end;
    atomic_fetch_add(&l->begun, 1);
    if (atomic_load(&l->failed)) fjt_sleep_us(200);
    if (begin != 0) return FJ_OK;
    atomic_store(&l->failed, 1);
    return 9;
}

FJ_TEST(parts_that_are_not_begun_are_skipped_after_a_failure, 20)
{
    const int n = 1000000;
    fj_pool *p = fjt_pool(4, 0);

    for (long i = fjt_rounds(300); i-- > 0;) {
        struct late l = {0};
        CHECK_EQ(fj_for(0, (size_t)n, late_part, &l, &(fj_algo_options){.pool = p, .grain = 1}), 9);
        CHECK(atomic_load(&l.begun) < n);
    }
    fjt_destroy(p);
}

/* ---- Invalid arguments ---------------------------------------------------------------------- */

static int never(size_t begin, size_t end, void *arg)
{
    (void)begin, (void)end, (void)arg;
    fjt_fail(__FILE__, __LINE__, "the body was called");
}

FJ_TEST(what_cannot_be_meant_runs_nothing, 10)
{
    CHECK_EQ(fj_for(0, 10, NULL, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_for(0, 0, NULL, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_for(1, 0, never, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_for(SIZE_MAX, 0, never, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_for(0, 0, never, NULL, NULL), FJ_OK);
    CHECK_EQ(fj_for(7, 7, never, NULL, NULL), FJ_OK);
}

/* ---- Arrays --------------------------------------------------------------------------------- */

struct lengths {
    size_t in_size, out_size;
    const unsigned char *in;
    unsigned char *out;
    int code;
};

/* Sets every byte of an element of `out` to the sum of the bytes of the same element of `in`, plus
 * one. */
static int sum_bytes(const void *in, void *out, size_t n, void *arg)
{
    const struct lengths *l = arg;
    const unsigned char *a = in;
    unsigned char *b = out;

    CHECK((size_t)(a - l->in) / l->in_size == (size_t)(b - l->out) / l->out_size);
    for (size_t i = 0; i < n; i++) {
        unsigned char sum = 1;
        for (size_t k = 0; k < l->in_size; k++) sum = (unsigned char)(sum + a[i * l->in_size + k]);
        memset(b + i * l->out_size, sum, l->out_size);
    }
    return l->code;
}

static void transform_once(fj_pool *pool, size_t n, struct lengths l, size_t grain)
{
    unsigned char *in = malloc(n * l.in_size + 1), *out = malloc(n * l.out_size + 1);
    unsigned char *want = malloc(n * l.out_size + 1);

    CHECK(in != NULL && out != NULL && want != NULL);
    for (size_t i = 0; i < n * l.in_size; i++) in[i] = (unsigned char)(i * 7 + i / 256);
    memset(out, 0xee, n * l.out_size + 1);
    l.in = in;
    l.out = want;
    CHECK_EQ(sum_bytes(in, want, n, &l), FJ_OK);
    want[n * l.out_size] = 0xee;
    l.out = out;
    CHECK_EQ(fj_transform(in, l.in_size, out, l.out_size, n, sum_bytes, &l,
                          &(fj_algo_options){.pool = pool, .grain = grain}),
             FJ_OK);
    CHECK(memcmp(out, want, n * l.out_size + 1) == 0);
    if (l.in_size == l.out_size) { /* the same in place */
        l.out = in;
        CHECK_EQ(fj_transform(in, l.in_size, in, l.in_size, n, sum_bytes, &l,
                              &(fj_algo_options){.pool = pool, .grain = grain}),
                 FJ_OK);
        CHECK(memcmp(in, want, n * l.out_size) == 0);
    }
    free(in);
    free(out);
    free(want);
}

static void transforms(fj_pool *pool, void *arg)
{
    static const size_t sizes[][2] = {{1, 1}, {1, 8}, {8, 1}, {4, 4}, {3, 5}, {100, 2}};

    (void)arg;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t n = 0; n <= 1000; n += 1 + n / 5) {
            struct lengths l = {.in_size = sizes[i][0], .out_size = sizes[i][1]};
            transform_once(pool, n, l, n % 3);
        }
}

FJ_TEST(arrays_of_elements_of_any_size_are_transformed, 30)
{
    place_everywhere(transforms, NULL);
}

FJ_TEST(transform_says_what_cannot_be_meant, 10)
{
    unsigned char a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[8] = {0};
    struct lengths l = {.in_size = 1, .out_size = 1, .in = a, .out = b, .code = 6};

    CHECK_EQ(fj_transform(a, 1, b, 1, 8, NULL, &l, NULL), FJ_EINVAL);
    CHECK_EQ(fj_transform(NULL, 1, b, 1, 8, sum_bytes, &l, NULL), FJ_EINVAL);
    CHECK_EQ(fj_transform(a, 1, NULL, 1, 8, sum_bytes, &l, NULL), FJ_EINVAL);
    CHECK_EQ(fj_transform(a, 0, b, 1, 8, sum_bytes, &l, NULL), FJ_EINVAL);
    CHECK_EQ(fj_transform(a, 1, b, 0, 8, sum_bytes, &l, NULL), FJ_EINVAL);
    CHECK_EQ(fj_transform(a, 2, b, 1, SIZE_MAX, sum_bytes, &l, NULL), FJ_EINVAL);
    CHECK_EQ(fj_transform(a, 1, b, 1, (size_t)PTRDIFF_MAX + 1, sum_bytes, &l, NULL), FJ_EINVAL);
    CHECK_EQ(fj_transform(a, 1, b, 16, SIZE_MAX / 16, sum_bytes, &l, NULL), FJ_EINVAL);
    CHECK_EQ(b[0], 0);
    CHECK_EQ(fj_transform(NULL, 1, NULL, 1, 0, sum_bytes, &l, NULL), FJ_OK);
    CHECK_EQ(fj_transform(a, 1, b, 1, 8, sum_bytes, &l, NULL), 6);
    CHECK_EQ(b[0], 2); /* what a body has written stays */
}
