/* SPDX-License-Identifier: MIT */
/*
 * find.c - searches, compared with a loop from left to right
 */
#include <forkjoin/algo.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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

/* A range in which some elements match. */
struct field {
    size_t begin, n;
    unsigned char hit[MOST];
    unsigned char searched[MOST]; /* how often each element was searched */
    size_t bad;                   /* returns `code` and cancels `token` */
    int code;
    fj_token *token;
};

static void field_make(struct field *f, size_t begin, size_t n)
{
    memset(f, 0, sizeof *f);
    f->begin = begin;
    f->n = n;
    f->bad = SIZE_MAX;
}

/* Whether element i, counted from 0, matches, or the code that ends the call. */
static int field_look(struct field *f, size_t i)
{
    f->searched[i]++;
    if (i == f->bad) {
        if (f->token != NULL) fj_token_cancel(f->token);
        if (f->code != 0) return f->code;
    }
    return f->hit[i];
}

static int field_find(size_t begin, size_t end, size_t *at, void *arg)
{
    struct field *f = arg;

    CHECK(begin < end);
    CHECK_EQ(*at, end);
    for (size_t i = begin; i < end; i++) {
        int is = field_look(f, i - f->begin);
        if (is < 0) return is;
        if (is == 0) continue;
        *at = i;
        break;
    }
    return FJ_OK;
}

static int field_test(const void *x, void *arg)
{
    struct field *f = arg;
    return field_look(f, (size_t)((const unsigned char *)x - f->hit));
}

static size_t field_first(const struct field *f)
{
    size_t i = 0;

    while (i < f->n && f->hit[i] == 0) i++;
    return f->begin + i;
}

static void field_check(struct field *f, const fj_algo_options *how)
{
    size_t first = field_first(f), end = f->begin + f->n, at = 77;
    int yes = 77;

    CHECK_EQ(fj_find(f->begin, end, field_find, f, &at, how), FJ_OK);
    CHECK_EQ(at, first);
    for (size_t i = 0; i < f->n; i++)
        CHECK(i <= first - f->begin ? f->searched[i] == 1 : f->searched[i] <= 1);
    memset(f->searched, 0, sizeof f->searched);
    at = 77;
    CHECK_EQ(fj_find_any(f->begin, end, field_find, f, &at, how), FJ_OK);
    if (first == end)
        CHECK_EQ(at, end);
    else
        CHECK(at >= first && at < end && f->hit[at - f->begin] != 0);
    memset(f->searched, 0, sizeof f->searched);
    CHECK_EQ(fj_any(f->hit, f->n, 1, field_test, f, &yes, how), FJ_OK);
    CHECK_EQ(yes, first != end);
    for (size_t i = 0; i < f->n; i++) f->hit[i] = !f->hit[i];
    CHECK_EQ(fj_all(f->hit, f->n, 1, field_test, f, &yes, how), FJ_OK);
    CHECK_EQ(yes, first == end);
}

static void every_number(fj_pool *pool, void *arg)
{
    uint64_t *state = arg;

    for (size_t n = 0; n <= MOST; n++) {
        struct field f;

        field_make(&f, n * 3, n);
        for (size_t i = n == 0 ? 0 : n % 4; i > 0; i--) f.hit[fjt_random(state) % n] = 1;
        field_check(&f, &(fj_algo_options){.pool = pool, .grain = 1 + n % 7});
    }
}

FJ_TEST(the_first_is_found_in_any_number, 30)
{
    uint64_t state = fjt_seed();

    within_workers(every_number, &state);
}

static void every_position(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t at = 0; at < 100; at++) {
        struct field f;

        field_make(&f, at, 100);
        for (size_t i = at; i < 100; i += 1 + at % 5) f.hit[i] = 1;
        field_check(&f, &(fj_algo_options){.pool = pool, .grain = 3});
        field_make(&f, 0, 100);
        f.hit[at] = 1;
        field_check(&f, &(fj_algo_options){.pool = pool});
    }
}

FJ_TEST(the_first_is_found_from_wherever_it_is_called, 30)
{
    place_everywhere(every_position, NULL);
}

FJ_TEST(ranges_may_end_at_the_last_number, 10)
{
    fj_pool *pool = fjt_pool(4, 0);
    struct field f;

    for (size_t n = 0; n < 100; n++) {
        field_make(&f, SIZE_MAX - n, n);
        if (n > 10 && n % 3 != 0) f.hit[n / 2] = f.hit[n - 1] = 1;
        field_check(&f, &(fj_algo_options){.pool = pool, .grain = 2});
    }
    fjt_destroy(pool);
}

/* ---- Chunks that are not searched ----------------------------------------------------------- */

static int find_at_hundred(size_t begin, size_t end, size_t *at, void *arg)
{
    size_t *calls = arg;

    __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED);
    if (begin <= 100 && 100 < end) *at = 100;
    return FJ_OK;
}

/* With a grain of 1 there are as many chunks as elements. The call must skip them without visiting
 * each of them. */
FJ_TEST(what_lies_right_of_it_is_skipped_all_at_once, 20)
{
    fj_pool *pool = fjt_pool(2, 0);

    for (int any = 0; any < 2; any++) {
        size_t at = 0, calls = 0;
        const fj_algo_options how = {.pool = pool, .grain = 1};

        if (any)
            CHECK_EQ(fj_find_any(0, SIZE_MAX, find_at_hundred, &calls, &at, &how), FJ_OK);
        else
            CHECK_EQ(fj_find(0, SIZE_MAX, find_at_hundred, &calls, &at, &how), FJ_OK);
        CHECK_EQ(at, 100);
        CHECK(calls > 100);
    }
    fjt_destroy(pool);
}

FJ_TEST(alone_nothing_is_searched_behind_it, 10)
{
    fj_pool *pool = fjt_pool(1, 0);

    for (size_t at = 0; at < 60; at++) {
        struct field f;
        size_t got;

        field_make(&f, 0, 60);
        memset(f.hit + at, 1, 60 - at);
        CHECK_EQ(fj_find(0, 60, field_find, &f, &got, &(fj_algo_options){.pool = pool, .grain = 1}),
                 FJ_OK);
        CHECK_EQ(got, at);
        for (size_t i = 0; i < 60; i++) CHECK_EQ(f.searched[i], i <= at);
    }
    fjt_destroy(pool);
}

FJ_TEST(progress_is_whole_when_it_was_found, 10)
{
    fj_pool *pool = fjt_pool(4, 0);
    fj_progress p;
    uint64_t total = 0;

    fj_progress_init(&p, 0);
    for (size_t n = 1; n < 300; n++, total = fj_progress_total(&p)) {
        struct field f;

        field_make(&f, 0, n);
        f.hit[n / 3] = 1;
        field_check(&f, &(fj_algo_options){.pool = pool, .grain = 4, .progress = &p});
        CHECK_EQ(fj_progress_total(&p), total + 4 * n);
        CHECK_EQ(fj_progress_done(&p), fj_progress_total(&p));
    }
    fjt_destroy(pool);
}

/* ---- Calls that end early ------------------------------------------------------------------- */

/* Calls one of the four searches. Checks that its result is not written if it returns a code. */
static int run_one(struct field *f, int which, const fj_algo_options *how)
{
    size_t at = 77;
    int yes = 77, code;

    switch (which) {
        case 0: code = fj_find(0, f->n, field_find, f, &at, how); break;
        case 1: code = fj_find_any(0, f->n, field_find, f, &at, how); break;
        case 2: code = fj_any(f->hit, f->n, 1, field_test, f, &yes, how); break;
        default: code = fj_all(f->hit, f->n, 1, field_test, f, &yes, how); break;
    }
    if (code != FJ_OK) CHECK(at == 77 && yes == 77);
    return code;
}

static void fails_at_each_position(fj_pool *pool, void *arg)
{
    static const int codes[] = {-7, INT_MIN};
    enum { N = 60 };

    (void)arg;
    for (size_t bad = 0; bad < N; bad++)
        for (int which = 0; which < 8; which++) {
            struct field f;

            field_make(&f, 0, N);
            if (which % 4 == 3) memset(f.hit, 1, N);
            f.bad = bad;
            f.code = codes[which / 4];
            CHECK_EQ(run_one(&f, which % 4, &(fj_algo_options){.pool = pool, .grain = 3}), f.code);
        }
}

FJ_TEST(a_code_ends_it_wherever_it_comes, 30)
{
    within_workers(fails_at_each_position, NULL);
}

/* One element matches and another one returns an error. One worker goes from left to right, so the
 * first of the two determines the result. */
static void hits_and_errors(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t hit = 0; hit < 40; hit++)
        for (size_t bad = 0; bad < 40; bad++)
            for (int which = 0; which < 3; which++) {
                struct field f;

                field_make(&f, 0, 40);
                f.hit[hit] = 1;
                f.bad = bad;
                f.code = -7;
                CHECK_EQ(run_one(&f, which, &(fj_algo_options){.pool = pool, .grain = 1 + bad % 3}),
                         hit < bad ? FJ_OK : -7);
            }
}

FJ_TEST(alone_what_comes_first_decides, 10)
{
    fj_pool *pool = fjt_pool(1, 0);

    place_inside(pool, hits_and_errors, pool, NULL);
    fjt_destroy(pool);
}

static void cancels_at_each_position(fj_pool *pool, void *arg)
{
    enum { N = 60 };

    (void)arg;
    for (size_t bad = 0; bad < N; bad++)
        for (int which = 0; which < 4; which++) {
            struct field f;
            fj_token token;

            fj_token_init(&token, NULL);
            field_make(&f, 0, N);
            if (which == 3) memset(f.hit, 1, N);
            f.bad = bad;
            f.token = &token;
            int code = run_one(&f, which,
                               &(fj_algo_options){.pool = pool, .grain = 2, .token = &token});
            if (code == FJ_OK) /* the whole range had been searched by then */
                for (size_t i = 0; i < N; i++) CHECK_EQ(f.searched[i], 1);
            else
                CHECK_EQ(code, FJ_ECANCELED);
            field_make(&f, 0, N);
            CHECK_EQ(run_one(&f, which, &(fj_algo_options){.pool = pool, .token = &token}),
                     FJ_ECANCELED);
            for (size_t i = 0; i < N; i++) CHECK_EQ(f.searched[i], 0);
        }
}

FJ_TEST(a_cancel_ends_it_wherever_it_comes, 30)
{
    within_workers(cancels_at_each_position, NULL);
}

FJ_TEST(what_cannot_be_meant_is_refused, 10)
{
    struct field f;
    size_t at = 77;
    int yes = 77;
    const fj_algo_options spare = {.reserved = {0, 1}};

    field_make(&f, 0, 10);
    CHECK_EQ(fj_find(0, 10, NULL, &f, &at, NULL), FJ_EINVAL);
    CHECK_EQ(fj_find(0, 10, field_find, &f, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_find(10, 9, field_find, &f, &at, NULL), FJ_EINVAL);
    CHECK_EQ(fj_find(0, 10, field_find, &f, &at, &spare), FJ_EINVAL);
    CHECK_EQ(fj_find_any(0, 10, NULL, &f, &at, NULL), FJ_EINVAL);
    CHECK_EQ(fj_find_any(0, 10, field_find, &f, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_any(NULL, 10, 1, field_test, &f, &yes, NULL), FJ_EINVAL);
    CHECK_EQ(fj_any(f.hit, 10, 0, field_test, &f, &yes, NULL), FJ_EINVAL);
    CHECK_EQ(fj_any(f.hit, 10, 1, NULL, &f, &yes, NULL), FJ_EINVAL);
    CHECK_EQ(fj_any(f.hit, 10, 1, field_test, &f, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_all(f.hit, SIZE_MAX, 2, field_test, &f, &yes, NULL), FJ_EINVAL);
    CHECK(at == 77 && yes == 77);
    CHECK_EQ(fj_any(NULL, 0, 1, field_test, &f, &yes, NULL), FJ_OK);
    CHECK_EQ(yes, 0);
    CHECK_EQ(fj_all(NULL, 0, 1, field_test, &f, &yes, NULL), FJ_OK);
    CHECK_EQ(yes, 1);
}

/* ---- Nested calls, many calls at a time ----------------------------------------------------- */

static int searches_in_a_loop(size_t begin, size_t end, void *arg)
{
    (void)arg;
    for (size_t i = begin; i < end; i++) {
        struct field f;

        field_make(&f, i, i * 31 % 300);
        if (f.n > 0 && i % 3 != 0) f.hit[i * 17 % f.n] = f.hit[f.n - 1] = 1;
        field_check(&f, &(fj_algo_options){.grain = 1 + i % 5});
    }
    return FJ_OK;
}

FJ_TEST(many_searches_at_a_time, 60)
{
    fj_pool *pool = fjt_pool(8, 0);

    CHECK_EQ(fj_for(0, (size_t)fjt_rounds(1000), searches_in_a_loop, NULL,
                    &(fj_algo_options){.pool = pool, .grain = 4}),
             FJ_OK);
    fjt_destroy(pool);
}

/* ---- An error before a hit ------------------------------------------------------------------ */

struct race {
    fj_pool *pool;
    int code;
    atomic_int begun, late;
};

/* The chunk of element 0 waits until that of element 1 has begun, and then fails. Element 1 is
 * found only after that. */
static int fails_then_hits(size_t begin, size_t end, size_t *at, void *arg)
{
    struct race *r = arg;

    CHECK_EQ(end, begin + 1);
    if (begin == 0) {
        for (int i = 0; i < 20000 && !atomic_load(&r->begun); i++) fjt_sleep_us(10);
        return r->code;
    }
    atomic_store(&r->begun, 1);
    for (int i = 0; i < 20000 && fj_pool_running_count(r->pool) > 1; i++) fjt_sleep_us(10);
    atomic_store(&r->late, fj_pool_running_count(r->pool) <= 1);
    *at = begin;
    return FJ_OK;
}

FJ_TEST(first_code_ends_a_search_for_any_whatever_it_is, 20)
{
    static const int codes[] = {1, -1, FJ_EBUSY, INT_MIN, INT_MAX};
    fj_pool *pool = fjt_pool(2, 0);

    for (int i = 0; i < 5 * 4; i++) {
        struct race r = {.pool = pool, .code = codes[i % 5]};
        size_t at = 7;
        int code = fj_find_any(0, 2, fails_then_hits, &r, &at,
                               &(fj_algo_options){.pool = pool, .grain = 1});
        if (!atomic_load(&r.begun) || atomic_load(&r.late)) {
            CHECK_EQ(code, r.code);
            CHECK_EQ(at, 7);
        }
    }
    fjt_destroy(pool);
}
