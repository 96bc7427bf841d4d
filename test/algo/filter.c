/* SPDX-License-Identifier: MIT */
/*
 * filter.c - filters and partitions, compared with a loop that copies one element at a time
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

/* Elements whose bytes all depend on their index. One of seven patterns selects some of them. */
struct sieve {
    size_t n, size;
    unsigned pattern;
    unsigned char *in;
    unsigned char *asked; /* how often the predicate was called for each element */
    size_t bad;           /* the element at which `code` is returned and `token` is cancelled */
    int code;
    fj_token *token;
    int nested; /* if not 0, the predicate itself calls a filter */
};

static bool meant(const struct sieve *s, size_t i)
{
    switch (s->pattern % 7) {
        case 0: return i * 2654435761u >> 7 & 1;
        case 1: return false;
        case 2: return true;
        case 3: return i % 37 == 5;
        case 4: return i % 37 != 5;
        case 5: return i / 64 % 2 == 0;
        default: return i == s->n - 1;
    }
}

static void sieve_make(struct sieve *s, size_t n, size_t size, unsigned pattern)
{
    *s = (struct sieve){.n = n, .size = size, .pattern = pattern, .bad = SIZE_MAX};
    s->in = room(n * size);
    s->asked = room(n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < size; j++)
            s->in[i * size + j] = (unsigned char)(j < 8 ? i >> j % 4 * 8 : i + j);
}

static void sieve_free(struct sieve *s)
{
    free(s->in);
    free(s->asked);
}

static void sieve_within(void);

/* Whether element i is selected, or the code that ends the call. */
static int sieve_ask(struct sieve *s, size_t i)
{
    s->asked[i]++;
    if (s->nested && i % 50 == 0) sieve_within();
    if (i == s->bad) {
        if (s->token != NULL) fj_token_cancel(s->token);
        if (s->code != 0) return s->code;
    }
    return meant(s, i);
}

static int sieve_test(const void *x, void *arg)
{
    struct sieve *s = arg;
    int is = sieve_ask(s, (size_t)((const unsigned char *)x - s->in) / s->size);

    return is > 0 ? 1 + (int)(s->pattern % 3) : is;
}

static int sieve_keep(size_t begin, size_t end, unsigned char *keep, void *arg)
{
    for (size_t i = begin; i < end; i++) {
        int is = sieve_ask(arg, i);
        if (is < 0) return is;
        keep[i - begin] = (unsigned char)is;
    }
    return FJ_OK;
}

enum { BY = 1, PARTITION = 2, WAYS = 4 };

static int sieve_run(struct sieve *s, unsigned way, void *out, size_t *count,
                     const fj_algo_options *how)
{
    switch (way) {
        case 0: return fj_filter(s->in, s->n, s->size, out, sieve_test, s, count, how);
        case BY: return fj_filter_chunks(s->in, s->n, s->size, out, sieve_keep, s, count, how);
        case PARTITION: return fj_partition(s->in, s->n, s->size, out, sieve_test, s, count, how);
        default: return fj_partition_chunks(s->in, s->n, s->size, out, sieve_keep, s, count, how);
    }
}

/* Writes the expected output to `want`. Returns how many elements are selected. */
static size_t sieve_want(const struct sieve *s, bool both, unsigned char *want)
{
    size_t at = 0, count = 0;

    for (int pass = 1; pass >= (both ? 0 : 1); pass--)
        for (size_t i = 0; i < s->n; i++)
            if (meant(s, i) == pass) {
                memcpy(want + at++ * s->size, s->in + i * s->size, s->size);
                count += (size_t)pass;
            }
    return count;
}

static void sieve_case(unsigned way, size_t n, size_t size, unsigned pattern,
                       const fj_algo_options *how)
{
    struct sieve s;
    size_t count = 12345;

    sieve_make(&s, n, size, pattern);
    unsigned char *want = room(n * size);
    size_t wanted = sieve_want(&s, way >= PARTITION, want);
    size_t used = way >= PARTITION ? n : wanted;
    unsigned char *out = room(used * size); /* exactly the bytes that the call may write */
    CHECK_EQ(sieve_run(&s, way, out, &count, how), FJ_OK);
    CHECK_EQ(count, wanted);
    if (memcmp(out, want, used * size) != 0)
        fjt_fail(__FILE__, __LINE__, "wrong output: way %u, n %zu, size %zu, pattern %u", way, n,
                 size, pattern);
    for (size_t i = 0; i < n; i++) CHECK_EQ(s.asked[i], 1);
    free(want);
    free(out);
    sieve_free(&s);
}

static void sieve_within(void)
{
    for (unsigned way = 0; way < WAYS; way++)
        sieve_case(way, 70, 4, 0, &(fj_algo_options){.grain = 8});
}

static void every_number(fj_pool *pool, void *arg)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16, 3, 12, 40};

    (void)arg;
    for (size_t n = 0; n <= MOST; n++)
        for (unsigned way = 0; way < WAYS; way++)
            sieve_case(way, n, sizes[(n + way) % 8], (unsigned)(n / 3),
                       &(fj_algo_options){.pool = pool, .grain = 1 + n % 13 * 7});
}

FJ_TEST(any_number_is_sieved_as_by_a_loop, 30)
{
    within_workers(every_number, NULL);
}

static void every_size(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t size = 1; size <= 256; size++)
        for (unsigned way = 0; way < WAYS; way++)
            sieve_case(way, 200 + size % 64, size, (unsigned)size,
                       &(fj_algo_options){.pool = pool, .grain = 20});
}

static int select_none(const void *element, void *arg)
{
    (void)element, (void)arg;
    return 0;
}

/* If nothing is selected, `out` needs no space, and `in` may begin right behind its address. */
FJ_TEST(output_without_space_may_touch_the_input, 10)
{
    unsigned char bytes[1 + 4 * 16] = {0};
    size_t count = 1;

    CHECK_EQ(fj_filter(bytes + 1, 4, 16, bytes, select_none, NULL, &count, NULL), FJ_OK);
    CHECK_EQ(count, 0);
    CHECK_EQ(fj_filter(bytes, 4, 16, bytes + 1, select_none, NULL, &count, NULL), FJ_EINVAL);
}

FJ_TEST(elements_of_any_size_are_sieved, 30)
{
    within_workers(every_size, NULL);
}

static void every_pattern(fj_pool *pool, void *arg)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16, 24};

    (void)arg;
    for (unsigned pattern = 0; pattern < 7; pattern++)
        for (unsigned way = 0; way < WAYS; way++) {
            for (size_t i = 0; i < 6; i++)
                sieve_case(way, 500, sizes[i], pattern,
                           &(fj_algo_options){.pool = pool, .grain = 40});
            sieve_case(way, 20000, sizes[pattern % 6], pattern, &(fj_algo_options){.pool = pool});
        }
}

FJ_TEST(all_patterns_are_sieved_from_wherever_it_is_called, 30)
{
    place_everywhere(every_pattern, NULL);
}

static void many(fj_pool *pool, void *arg)
{
    uint64_t *state = arg;

    for (long i = fjt_rounds(2); i > 0; i--)
        for (unsigned way = 0; way < WAYS; way++)
            sieve_case(way, fjt_random(state) % 200000, (size_t)1 << fjt_random(state) % 5,
                       (unsigned)(fjt_random(state) % 7), &(fj_algo_options){.pool = pool});
}

FJ_TEST(many_are_sieved, 60)
{
    uint64_t state = fjt_seed();

    place_workers(many, &state);
    many(NULL, &state);
}

/* ---- Calls that end early ------------------------------------------------------------------- */

static void fails_at_each_position(fj_pool *pool, void *arg)
{
    enum { N = 150 };
    unsigned char out[N];

    (void)arg;
    for (size_t bad = 0; bad < N; bad++)
        for (unsigned way = 0; way < WAYS; way++) {
            struct sieve s;
            size_t count = 5;

            sieve_make(&s, N, 1, (unsigned)bad);
            s.bad = bad;
            s.code = -9;
            CHECK_EQ(sieve_run(&s, way, out, &count, &(fj_algo_options){.pool = pool, .grain = 10}),
                     -9);
            CHECK_EQ(count, 5);
            for (size_t i = 0; i < N; i++) CHECK(s.asked[i] <= 1);
            sieve_free(&s);
        }
}

FJ_TEST(a_code_ends_it_wherever_it_comes, 30)
{
    within_workers(fails_at_each_position, NULL);
}

static void cancels_at_each_position(fj_pool *pool, void *arg)
{
    enum { N = 150 };
    unsigned char out[N];

    (void)arg;
    for (size_t bad = 0; bad < N; bad++)
        for (unsigned way = 0; way < WAYS; way++) {
            struct sieve s;
            size_t count = 5;
            fj_token token;

            fj_token_init(&token, NULL);
            sieve_make(&s, N, 1, (unsigned)bad);
            s.bad = bad;
            s.token = &token;
            int code = sieve_run(&s, way, out, &count,
                                 &(fj_algo_options){.pool = pool, .grain = 10, .token = &token});
            /* All other chunks had begun. A partition has two passes, so this cannot happen
             * there. */
            if (code == FJ_OK) {
                CHECK(way < PARTITION);
                for (size_t i = 0; i < N; i++) CHECK_EQ(s.asked[i], 1);
            } else {
                CHECK_EQ(code, FJ_ECANCELED);
                CHECK_EQ(count, 5);
            }
            sieve_free(&s);
        }
}

FJ_TEST(a_cancel_ends_it_wherever_it_comes, 30)
{
    within_workers(cancels_at_each_position, NULL);
}

FJ_TEST(progress_counts_elements, 20)
{
    fj_pool *pool = fjt_pool(4, 0);

    for (unsigned way = 0; way < WAYS; way++) {
        fj_progress p;

        fj_progress_init(&p, 0);
        for (size_t n = 1; n <= 300; n++)
            sieve_case(way, n, 4, (unsigned)n,
                       &(fj_algo_options){.pool = pool, .grain = 9, .progress = &p});
        CHECK_EQ(fj_progress_total(&p), 300 * 301 / 2);
        CHECK_EQ(fj_progress_done(&p), 300 * 301 / 2);
    }
    fjt_destroy(pool);
}

/* ---- Lack of memory, invalid arguments ------------------------------------------------------ */

FJ_TEST(without_memory_it_is_done_alone, 20)
{
    fj_pool *pool = fjt_pool(4, 0);

    if (!FJI_FAULTS) fjt_skip("this build cannot refuse memory");
    fji_algo_fail_after(0);
    for (unsigned pattern = 0; pattern < 7; pattern++)
        for (unsigned way = 0; way < WAYS; way++) {
            fj_progress p;

            fj_progress_init(&p, 0);
            sieve_case(way, 300, 4, pattern, &(fj_algo_options){.pool = pool, .grain = 10});
            sieve_case(way, 10000, 2, pattern, &(fj_algo_options){.pool = pool, .progress = &p});
            sieve_case(way, 5001, 3, pattern, NULL);
            sieve_case(way, 4101, 300, pattern, &(fj_algo_options){.grain = 10});
            CHECK_EQ(fj_progress_total(&p), 10000);
            CHECK_EQ(fj_progress_done(&p), 10000);
        }
    fji_algo_fail_after(-1);
    fjt_destroy(pool);
}

FJ_TEST(without_memory_a_partition_is_ended_by_codes_and_cancels, 20)
{
    enum { N = 10000 };
    unsigned char out[N];
    fj_token token;
    size_t count = 5;

    if (!FJI_FAULTS) fjt_skip("this build cannot refuse memory");
    fji_algo_fail_after(0);
    fj_token_init(&token, NULL);
    for (size_t bad = 0; bad < 8000; bad += 999) {
        struct sieve s;

        sieve_make(&s, N, 1, 0);
        s.bad = bad;
        s.code = -9;
        CHECK_EQ(sieve_run(&s, PARTITION, out, &count, NULL), -9);
        s.code = 0;
        s.token = &token;
        CHECK_EQ(sieve_run(&s, PARTITION, out, &count, &(fj_algo_options){.token = &token}),
                 FJ_ECANCELED);
        CHECK_EQ(count, 5);
        sieve_free(&s);
    }
    fji_algo_fail_after(-1);
}

FJ_TEST(what_cannot_be_meant_is_refused, 10)
{
    struct sieve s;
    unsigned char out[64];
    size_t count = 5;
    const fj_algo_options spare = {.reserved = {0, 1}};

    sieve_make(&s, 64, 1, 0);
    CHECK_EQ(fj_filter(NULL, 64, 1, out, sieve_test, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_filter(s.in, 64, 1, NULL, sieve_test, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_filter(s.in, 64, 0, out, sieve_test, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_filter(s.in, 64, 1, out, NULL, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_filter(s.in, 64, 1, out, sieve_test, &s, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_filter(s.in, 64, 1, out, sieve_test, &s, &count, &spare), FJ_EINVAL);
    CHECK_EQ(fj_filter(s.in, 64, SIZE_MAX / 8, out, sieve_test, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_filter(s.in, 64, 1, s.in, sieve_test, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_filter(s.in, 64, 1, s.in + 63, sieve_test, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_filter_chunks(s.in, 64, 1, out, NULL, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_partition(s.in, 64, 1, out, NULL, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_partition_chunks(s.in, 64, 1, out, NULL, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_partition(s.in, 64, 1, s.in, sieve_test, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(fj_partition(s.in + 32, 32, 1, s.in + 1, sieve_test, &s, &count, NULL), FJ_EINVAL);
    CHECK_EQ(count, 5);
    for (size_t i = 0; i < 64; i++) CHECK_EQ(s.asked[i], 0);
    CHECK_EQ(fj_filter(NULL, 0, 1, NULL, sieve_test, &s, &count, NULL), FJ_OK);
    CHECK_EQ(count, 0);
    count = 5;
    CHECK_EQ(fj_partition(NULL, 0, 1, NULL, sieve_test, &s, &count, NULL), FJ_OK);
    CHECK_EQ(count, 0);
    sieve_free(&s);
}

/* ---- Nested calls, many calls at a time ----------------------------------------------------- */

FJ_TEST(filters_are_nested, 30)
{
    fj_pool *pool = fjt_pool(4, 0);

    for (unsigned way = 0; way < WAYS; way++) {
        struct sieve s;
        size_t count;
        uint32_t out[300];

        sieve_make(&s, 300, 4, 2);
        s.nested = 1;
        CHECK_EQ(sieve_run(&s, way, out, &count, &(fj_algo_options){.pool = pool, .grain = 16}),
                 FJ_OK);
        CHECK_EQ(count, 300);
        CHECK(memcmp(out, s.in, sizeof out) == 0);
        sieve_free(&s);
    }
    fjt_destroy(pool);
}

static int filters_in_a_loop(size_t begin, size_t end, void *arg)
{
    (void)arg;
    for (size_t i = begin; i < end; i++)
        sieve_case((unsigned)i % WAYS, i * 37 % 500, 1 + i % 17, (unsigned)i,
                   &(fj_algo_options){.grain = 1 + i % 30});
    return FJ_OK;
}

FJ_TEST(many_filters_at_a_time, 60)
{
    fj_pool *pool = fjt_pool(8, 0);

    CHECK_EQ(fj_for(0, (size_t)fjt_rounds(1000), filters_in_a_loop, NULL,
                    &(fj_algo_options){.pool = pool, .grain = 4}),
             FJ_OK);
    fjt_destroy(pool);
}
