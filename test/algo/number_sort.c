/* SPDX-License-Identifier: MIT */
/*
 * number_sort.c - sorts of numbers, and of keys with values, compared with qsort()
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "algo/scratch.h"
#include "places.h"

/* ---- Patterns of bits ----------------------------------------------------------------------- */

enum {
    RANDOM,
    SORTED,
    REVERSED,
    EQUAL,
    PIPE,
    FEW,
    SMALL_RANGE,
    ONE_BUCKET, /* nearly all have the same upper bits */
    OUTLIERS,   /* all are equal except a few */
    WIDE_FEW,   /* few different values, which differ in all bits */
    LOW_SKEW,   /* most are small */
    GROUPS,     /* many have the same upper half */
    NEGATIVES,  /* ascending except for some sign bits */
    PATTERNS
};

static uint64_t pattern(int kind, size_t i, size_t n, uint64_t *seed)
{
    uint64_t r = fjt_random(seed);

    switch (kind) {
        case SORTED: return i;
        case REVERSED: return n - i;
        case EQUAL: return 0x8123456789abcdefu;
        case PIPE: return i < n / 2 ? i : n - i;
        case FEW: return r % 3;
        case SMALL_RANGE: return r % 1000;
        case ONE_BUCKET: return r % 100 == 0 ? r : (r & 0xfffff) | 0x1234500000000000u;
        case OUTLIERS: return r % 1000 == 0 ? r : 5;
        case WIDE_FEW: return (r % 7) * 0x9e3779b97f4a7c15u;
        case LOW_SKEW: return r >> (r % 60);
        case GROUPS: return ((r % 16) * 0x0123456700000000u) | (r >> 32);
        case NEGATIVES: return i ^ (r & 0x8000000080008080u);
        default: return r;
    }
}

/* ---- Types ---------------------------------------------------------------------------------- */

/* How to make a value from 64 random bits, and the order that the sort must produce. */
typedef struct type {
    const char *name;
    size_t size;
    void (*make)(void *to, uint64_t bits, size_t i);
    int (*order)(const void *x, const void *y);
    int (*sort)(void *a, size_t n, const fj_algo_options *how);
} type;

#define TYPE(name, T, from)                                               \
    static void make_##name(void *to, uint64_t bits, size_t i)            \
    {                                                                     \
        T x = from;                                                       \
        (void)i;                                                          \
        memcpy(to, &x, sizeof x);                                         \
    }                                                                     \
    static int sort_##name(void *a, size_t n, const fj_algo_options *how) \
    {                                                                     \
        return fj_sort_##name(a, n, how);                                 \
    }

#define INTEGER(name, T, from)                            \
    TYPE(name, T, from)                                   \
    static int order_##name(const void *x, const void *y) \
    {                                                     \
        T a = *(const T *)x, b = *(const T *)y;           \
        return a < b ? -1 : a > b;                        \
    }

static float float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)(bits ^ bits >> 32);
    float f;

    memcpy(&f, &low, sizeof f);
    return f;
}

static double double_of(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

INTEGER(i8, int8_t, (int8_t)bits)
INTEGER(u8, uint8_t, (uint8_t)bits)
INTEGER(i16, int16_t, (int16_t)bits)
INTEGER(u16, uint16_t, (uint16_t)bits)
INTEGER(i32, int32_t, (int32_t)(bits ^ bits >> 32))
INTEGER(u32, uint32_t, (uint32_t)(bits ^ bits >> 32))
INTEGER(i64, int64_t, (int64_t)bits)
INTEGER(u64, uint64_t, bits)
TYPE(f32, float, float_of(bits))
TYPE(f64, double, double_of(bits))
TYPE(kv32, fj_kv32, ((fj_kv32){(uint32_t)(bits ^ bits >> 32), (uint32_t)i}))
TYPE(kv64, fj_kv64, ((fj_kv64){bits, i}))

/* The order that the header documents. NaNs come first or last, by their sign. -0 comes before +0.
 * All other numbers are ordered by value. NaNs of the same sign are ordered by their bits, so that
 * the result can be compared byte by byte. The caller passes the signs, because on some machines
 * the conversion of a NaN to another width loses its sign. */
static int float_order(double a, double b, bool a_minus, bool b_minus, int64_t a_bits,
                       int64_t b_bits)
{
    int a_end = isnan(a) ? a_minus ? -1 : 1 : 0, b_end = isnan(b) ? b_minus ? -1 : 1 : 0;

    if (a_end != b_end) return a_end < b_end ? -1 : 1;
    if (a_end != 0) return (a_bits > b_bits) - (a_bits < b_bits);
    if (a != b) return a < b ? -1 : 1;
    return b_minus - a_minus;
}

static int order_f32(const void *x, const void *y)
{
    float a, b;
    int32_t i, j;

    memcpy(&a, x, sizeof a);
    memcpy(&b, y, sizeof b);
    memcpy(&i, x, sizeof i);
    memcpy(&j, y, sizeof j);
    int64_t turn = i < 0 ? -1 : 1;
    return float_order(a, b, i < 0, j < 0, turn * i, turn * j);
}

static int order_f64(const void *x, const void *y)
{
    double a, b;
    int64_t i, j;

    memcpy(&a, x, sizeof a);
    memcpy(&b, y, sizeof b);
    memcpy(&i, x, sizeof i);
    memcpy(&j, y, sizeof j);
    int64_t turn = i < 0 ? -1 : 0;
    return float_order(a, b, i < 0, j < 0, i ^ turn, j ^ turn);
}

static int order_kv32(const void *x, const void *y)
{
    const fj_kv32 *a = x, *b = y;

    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

static int order_kv64(const void *x, const void *y)
{
    const fj_kv64 *a = x, *b = y;

    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

#define ROW(name, T)                                             \
    {                                                            \
#name, sizeof(T), make_##name, order_##name, sort_##name \
    }

static const type types[] = {ROW(i8, int8_t),    ROW(u8, uint8_t),   ROW(i16, int16_t),
                             ROW(u16, uint16_t), ROW(i32, int32_t),  ROW(u32, uint32_t),
                             ROW(i64, int64_t),  ROW(u64, uint64_t), ROW(f32, float),
                             ROW(f64, double),   ROW(kv32, fj_kv32), ROW(kv64, fj_kv64)};
enum { TYPES = sizeof types / sizeof types[0] };

/* ---- Compared with qsort() ------------------------------------------------------------------ */

typedef struct pair {
    unsigned char *a, *b; /* the array to be sorted, and the expected result */
} pair;

static pair pair_make(const type *t, size_t n, int kind, uint64_t *seed)
{
    pair p = {malloc(n * t->size + 1), malloc(n * t->size + 1)};

    CHECK(p.a != NULL && p.b != NULL);
    for (size_t i = 0; i < n; i++) t->make(p.a + i * t->size, pattern(kind, i, n, seed), i);
    memcpy(p.b, p.a, n * t->size);
    qsort(p.b, n, t->size, t->order);
    return p;
}

static void pair_free(pair p)
{
    free(p.a);
    free(p.b);
}

static void check_sort(const type *t, fj_pool *pool, size_t n, int kind, uint64_t *seed)
{
    fj_progress progress;
    fj_algo_options how = {.pool = pool, .progress = &progress};
    pair p = pair_make(t, n, kind, seed);

    fj_progress_init(&progress, 0);
    CHECK_EQ(t->sort(p.a, n, &how), FJ_OK);
    for (size_t i = 0; i < n; i++)
        if (memcmp(p.a + i * t->size, p.b + i * t->size, t->size) != 0)
            fjt_fail(__FILE__, __LINE__, "%s, pattern %d: element %zu of %zu is wrong", t->name,
                     kind, i, n);
    CHECK_EQ(fj_progress_done(&progress), n);
    CHECK_EQ(fj_progress_total(&progress), n);
    pair_free(p);
}

static void every_small_size(size_t first, size_t end)
{
    fj_pool *pool = fjt_pool(2, FJ_POOL_CALLER_HELPS);
    uint64_t seed = fjt_seed();

    for (size_t n = 0; n <= 1000; n++)
        for (size_t t = first; t < end; t++)
            check_sort(&types[t], pool, n, (int)((n + t) % PATTERNS), &seed);
    fjt_destroy(pool);
}

FJ_TEST(every_small_size_of_integers, 30)
{
    every_small_size(0, 8);
}

FJ_TEST(every_small_size_of_floats_and_pairs, 30)
{
    every_small_size(8, TYPES);
}

static void every_pattern(size_t first, size_t end)
{
    fj_pool *pool = fjt_pool(4, 0);
    uint64_t seed = fjt_seed();

    for (size_t t = first; t < end; t++)
        for (int kind = 0; kind < PATTERNS; kind++) {
            check_sort(&types[t], pool, 2000 + fjt_random(&seed) % 3000, kind, &seed);
            check_sort(&types[t], pool, 33000 + fjt_random(&seed) % 20000, kind, &seed);
        }
    fjt_destroy(pool);
}

FJ_TEST(every_pattern_of_small_integers, 30)
{
    every_pattern(0, 4);
}

FJ_TEST(every_pattern_of_large_integers, 30)
{
    every_pattern(4, 8);
}

FJ_TEST(every_pattern_of_floats_and_pairs, 30)
{
    every_pattern(8, TYPES);
}

FJ_TEST(large_ones_of_all_types, 60)
{
    fj_pool *pool = fjt_pool(2, 0);
    uint64_t seed = fjt_seed();

    for (long round = 0; round < fjt_rounds(1); round++)
        for (size_t t = 0; t < TYPES; t++) {
            size_t n = 100000 + fjt_random(&seed) % 200000;
            check_sort(&types[t], pool, n, (int)(fjt_random(&seed) % PATTERNS), &seed);
        }
    fjt_destroy(pool);
}

static void some_of_each(fj_pool *pool, void *arg)
{
    uint64_t *seed = arg;

    for (size_t t = 0; t < TYPES; t++)
        check_sort(&types[t], pool, 3000, (int)(fjt_random(seed) % PATTERNS), seed);
    check_sort(&types[5], pool, 70000, RANDOM, seed);
    check_sort(&types[10], pool, 40000, LOW_SKEW, seed);
}

FJ_TEST(on_any_number_of_workers, 60)
{
    uint64_t seed = fjt_seed();
    place_workers(some_of_each, &seed);
}

FJ_TEST(from_everywhere, 60)
{
    uint64_t seed = fjt_seed();
    place_everywhere(some_of_each, &seed);
}

/* ---- Floats --------------------------------------------------------------------------------- */

FJ_TEST(zeros_infinities_and_nans, 10)
{
    const double in[] = {1.0, NAN, -INFINITY, 0.0, -0.0, INFINITY, -NAN, -1.0, 5e-324, -5e-324};
    const float in_f[] = {1, NAN, -INFINITY, 0, -0.0f, INFINITY, -NAN, -1, 1e-45f, -1e-45f};
    enum { N = sizeof in / sizeof in[0] };

    for (size_t copies = 1; copies <= 100000; copies *= 100) {
        size_t n = N * copies;
        double *d = malloc(n * sizeof *d);
        float *f = malloc(n * sizeof *f);
        CHECK(d != NULL && f != NULL);
        for (size_t i = 0; i < n; i++) {
            d[i] = in[i % N];
            f[i] = in_f[i % N];
        }
        CHECK_EQ(fj_sort_f64(d, n, NULL), FJ_OK);
        CHECK_EQ(fj_sort_f32(f, n, NULL), FJ_OK);
        for (size_t i = 0; i < copies; i++) {
            CHECK(isnan(d[i]) && signbit(d[i]) && isnan(f[i]) && signbit(f[i]));
            CHECK(isnan(d[n - 1 - i]) && !signbit(d[n - 1 - i]));
            CHECK(isnan(f[n - 1 - i]) && !signbit(f[n - 1 - i]));
            CHECK(d[copies + i] == -INFINITY && f[copies + i] == -INFINITY);
            CHECK(d[2 * copies + i] == -1.0 && d[3 * copies + i] == -5e-324);
            CHECK(d[4 * copies + i] == 0 && signbit(d[4 * copies + i]));
            CHECK(d[5 * copies + i] == 0 && !signbit(d[5 * copies + i]));
            CHECK(d[8 * copies + i] == INFINITY && f[8 * copies + i] == INFINITY);
        }
        free(d);
        free(f);
    }
}

/* ---- Without memory ------------------------------------------------------------------------- */

FJ_TEST(without_memory_it_is_the_same, 60)
{
    uint64_t seed = fjt_seed();

    fji_algo_fail_after(0);
    for (size_t t = 0; t < TYPES; t++)
        for (int kind = 0; kind < PATTERNS; kind++)
            check_sort(&types[t], NULL, 1 + fjt_random(&seed) % 6000, kind, &seed);
    check_sort(&types[2], NULL, 40000, RANDOM, &seed);
}

FJ_TEST(with_only_some_of_the_memory, 60)
{
    fj_pool *pool = fjt_pool(4, 0);
    uint64_t seed = fjt_seed();

    for (long n = 1; n < 4; n++)
        for (size_t t = 2; t < TYPES; t++) {
            fji_algo_fail_after(n);
            check_sort(&types[t], pool, 90000, (int)(n % 2 ? ONE_BUCKET : RANDOM), &seed);
        }
    fji_algo_fail_after(-1);
    fjt_destroy(pool);
}

/* ---- Cancelling ----------------------------------------------------------------------------- */

/* A thread that cancels the sort after a delay, or as soon as the progress reaches `done`. */
typedef struct canceller {
    pthread_t thread;
    fj_token token;
    fj_progress progress;
    int64_t delay_us;
    uint64_t done; /* 0: after the delay */
    atomic_bool over;
} canceller;

static void *canceller_run(void *arg)
{
    canceller *c = arg;

    if (c->done == 0) fjt_spin_us(c->delay_us);
    while (fj_progress_done(&c->progress) < c->done && !atomic_load(&c->over)) sched_yield();
    fj_token_cancel(&c->token);
    return NULL;
}

/* Sorts a copy of p.a while `c` cancels it, and checks that no element is lost. */
static void cancelled_sort(const type *t, fj_pool *pool, size_t n, pair p, canceller *c)
{
    fj_algo_options how = {.pool = pool, .token = &c->token, .progress = &c->progress};
    unsigned char *a = malloc(n * t->size);

    CHECK(a != NULL);
    memcpy(a, p.a, n * t->size);
    fj_token_init(&c->token, NULL);
    fj_progress_init(&c->progress, n);
    atomic_store(&c->over, false);
    CHECK_EQ(pthread_create(&c->thread, NULL, canceller_run, c), 0);
    int err = t->sort(a, n, &how);
    atomic_store(&c->over, true);
    CHECK_EQ(pthread_join(c->thread, NULL), 0);
    CHECK(err == FJ_OK || err == FJ_ECANCELED);
    if (err != FJ_OK) qsort(a, n, t->size, t->order);
    CHECK(memcmp(a, p.b, n * t->size) == 0);
    free(a);
}

FJ_TEST(cancelled_while_buckets_are_sorted, 60)
{
    static const size_t some[] = {5, 9, 10}; /* u32, f64, kv32 */
    fj_pool *pools[] = {fjt_pool(1, 0), fjt_pool(4, 0)};
    uint64_t seed = fjt_seed();
    size_t n = 90000;

    for (long round = 0; round < fjt_rounds(24); round++) {
        const type *t = &types[some[round % 3]];
        pair p = pair_make(t, n, round % 2 ? RANDOM : ONE_BUCKET, &seed);
        canceller c = {.done = 1 + (round % 4 == 0 ? 0 : fjt_random(&seed) % n)};
        cancelled_sort(t, pools[round / 2 % 2], n, p, &c);
        pair_free(p);
    }
    fjt_destroy(pools[1]);
    fjt_destroy(pools[0]);
}

FJ_TEST(cancelled_at_any_time_it_loses_nothing, 60)
{
    fj_pool *pool = fjt_pool(2, 0), *eight = fjt_pool(8, 0);
    uint64_t seed = fjt_seed();
    size_t n = 50000;

    for (long round = 0; round < fjt_rounds(1); round++)
        for (size_t t = 0; t < TYPES; t++) {
            pair p = pair_make(&types[t], n, (int)(fjt_random(&seed) % PATTERNS), &seed);
            for (int i = 0; i < 8; i++) {
                canceller c = {.delay_us = (int64_t)(fjt_random(&seed) % 1000)};
                cancelled_sort(&types[t], i % 2 ? pool : eight, n, p, &c);
            }
            pair_free(p);
        }
    fjt_destroy(eight);
    fjt_destroy(pool);
}

FJ_TEST(cancelled_before_it_begins, 10)
{
    uint64_t seed = fjt_seed();
    fj_token token;
    fj_algo_options how = {.token = &token};

    fj_token_init(&token, NULL);
    fj_token_cancel(&token);
    for (size_t t = 0; t < TYPES; t++) {
        pair p = pair_make(&types[t], 200, RANDOM, &seed);
        memcpy(p.b, p.a, 200 * types[t].size);
        CHECK_EQ(types[t].sort(p.a, 200, &how), FJ_ECANCELED);
        CHECK(memcmp(p.a, p.b, 200 * types[t].size) == 0);
        pair_free(p);
    }
}

/* ---- Arguments ------------------------------------------------------------------------------ */

FJ_TEST(what_cannot_be_meant, 10)
{
    unsigned char a[32] = {1};
    fj_algo_options bad = {.reserved = {0, 1}};

    for (size_t t = 0; t < TYPES; t++) {
        CHECK_EQ(types[t].sort(NULL, 1, NULL), FJ_EINVAL);
        CHECK_EQ(types[t].sort(NULL, 0, NULL), FJ_OK);
        CHECK_EQ(types[t].sort(a, SIZE_MAX, NULL), FJ_EINVAL);
        CHECK_EQ(types[t].sort(a, PTRDIFF_MAX / types[t].size + 1, NULL), FJ_EINVAL);
        CHECK_EQ(types[t].sort(a, 2, &bad), FJ_EINVAL);
        CHECK_EQ(types[t].sort(a, 0, &bad), FJ_EINVAL);
    }
}
