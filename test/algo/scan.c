/* SPDX-License-Identifier: MIT */
/*
 * scan.c - running totals, compared with a loop that adds one element at a time
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

/* Waits until *word is at least n. */
static void wait_for(const int *word, int n)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < n) fjt_sleep_us(20);
}

/* ---- Sums ----------------------------------------------------------------------------------- */

/* Checks one type. The values are small integers, so that sums of floats are exact. */
#define SUM_TYPE(name, T, U, fn)                                                                   \
    static void name##_case(size_t n, unsigned flags, bool in_place, const fj_algo_options *how)   \
    {                                                                                              \
        T *in = room(n * sizeof *in), *out = in_place ? in : room(n * sizeof *out);                \
        T *want = room(n * sizeof *want);                                                          \
        uint64_t state = fjt_seed() + n;                                                           \
        U sum = 0;                                                                                 \
                                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            in[i] = (T)((int)(fjt_random(&state) % 17) - 8);                                       \
            U before = sum;                                                                        \
            sum = (U)(sum + (U)in[i]);                                                             \
            want[i] = (T)(flags == FJ_SCAN_EXCLUSIVE ? before : sum);                              \
        }                                                                                          \
        CHECK_EQ(fn(in, out, n, flags, how), FJ_OK);                                               \
        for (size_t i = 0; i < n; i++)                                                             \
            if (!(out[i] == want[i]))                                                              \
                fjt_fail(__FILE__, __LINE__, "%s: n %zu, flags %u, in place %d: sum %zu is wrong", \
                         #fn, n, flags, in_place, i);                                              \
        free(want);                                                                                \
        free(in);                                                                                  \
        if (out != in) free(out);                                                                  \
    }

SUM_TYPE(i32, int32_t, uint32_t, fj_scan_i32)
SUM_TYPE(i64, int64_t, uint64_t, fj_scan_i64)
SUM_TYPE(f32, float, float, fj_scan_f32)
SUM_TYPE(f64, double, double, fj_scan_f64)

static void sum_case(unsigned kind, size_t n, const fj_algo_options *how)
{
    unsigned flags = kind / 4 % 2 != 0 ? FJ_SCAN_EXCLUSIVE : FJ_SCAN_INCLUSIVE;
    bool in_place = kind / 8 % 2 != 0;

    switch (kind % 4) {
        case 0: i32_case(n, flags, in_place, how); break;
        case 1: i64_case(n, flags, in_place, how); break;
        case 2: f32_case(n, flags, in_place, how); break;
        default: f64_case(n, flags, in_place, how); break;
    }
}

static void sums_of_every_size(fj_pool *pool, void *arg)
{
    unsigned *kind = arg;

    for (size_t n = 0; n <= MOST; n++, *kind += 5)
        sum_case(*kind, n, &(fj_algo_options){.pool = pool, .grain = 1 + n % 11});
}

FJ_TEST(sums_of_every_size_are_those_of_a_loop, 30)
{
    unsigned kind = 0;

    within_workers(sums_of_every_size, &kind);
    within_workers(sums_of_every_size, &kind);
}

static void sums_of_all_kinds(fj_pool *pool, void *arg)
{
    (void)arg;
    for (unsigned kind = 0; kind < 16; kind++) {
        for (size_t n = 0; n < 40; n++)
            sum_case(kind, n, &(fj_algo_options){.pool = pool, .grain = 3});
        sum_case(kind, 1000, &(fj_algo_options){.pool = pool});
        sum_case(kind, 5000, &(fj_algo_options){.pool = pool, .min_grain = 50, .max_grain = 100});
    }
}

FJ_TEST(sums_of_all_kinds_are_those_of_a_loop, 30)
{
    place_everywhere(sums_of_all_kinds, NULL);
}

static void sums_of_many(fj_pool *pool, void *arg)
{
    uint64_t *state = arg;

    for (long i = fjt_rounds(6); i > 0; i--)
        sum_case((unsigned)fjt_random(state) % 16, fjt_random(state) % 400000,
                 &(fj_algo_options){.pool = pool});
}

FJ_TEST(sums_of_many_are_those_of_a_loop, 60)
{
    uint64_t state = fjt_seed();

    place_workers(sums_of_many, &state);
    sums_of_many(NULL, &state);
}

/* Results that are larger than the caches are written with other instructions. */
FJ_TEST(sums_of_more_than_a_cache_are_those_of_a_loop, 60)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_algo_options how = {.pool = pool};

    for (unsigned kind = 0; kind < 8; kind++)
        sum_case(kind, ((size_t)1 << 25) / (kind % 2 == 0 ? 4 : 8) + kind, &how);
    fjt_destroy(pool);
}

FJ_TEST(integers_wrap, 10)
{
    int32_t a[3] = {INT32_MAX, 1, -1};
    int64_t b[3] = {INT64_MAX, 1, -1};

    CHECK_EQ(fj_scan_i32(a, a, 3, FJ_SCAN_INCLUSIVE, NULL), FJ_OK);
    CHECK(a[1] == INT32_MIN && a[2] == INT32_MAX);
    CHECK_EQ(fj_scan_i64(b, b, 3, FJ_SCAN_INCLUSIVE, NULL), FJ_OK);
    CHECK(b[1] == INT64_MIN && b[2] == INT64_MAX);
}

/* With this grain there would be more chunks than the table has entries, so chunks become
 * larger. */
FJ_TEST(a_small_grain_makes_no_more_parts_than_the_table_has, 30)
{
    fj_pool *pool = fjt_pool(4, 0);

    for (unsigned kind = 0; kind < 16; kind += 5)
        sum_case(kind, 40000, &(fj_algo_options){.pool = pool, .grain = 1});
    fjt_destroy(pool);
}

/* ---- An operation that is not commutative --------------------------------------------------- */

/* A map x -> m * x + b. The operation composes two of them. */
typedef struct step {
    uint32_t m, b;
} step;

static const step nothing = {1, 0};

static step step_then(step f, step g)
{
    return (step){f.m * g.m, f.b * g.m + g.b};
}

static step step_at(size_t i)
{
    return (step){(uint32_t)(i * 2654435761u | 1), (uint32_t)(i ^ i << 7)};
}

struct line {
    size_t begin, n;
    step *out;
    unsigned char *folded, *emitted;        /* how often each element was */
    int folds;                              /* chunks folded so far */
    size_t bad;                             /* returns a code or cancels `token`; SIZE_MAX: none */
    int in_fold, in_emit;                   /* what fold and emit return at element `bad` */
    fj_token *token;                        /* emit cancels it at element `bad` */
    int (*also)(struct line *l, size_t lo); /* emit calls it first; may be NULL */
};

static void line_make(struct line *l, size_t begin, size_t n)
{
    *l = (struct line){.begin = begin, .n = n, .bad = SIZE_MAX};
    l->out = room(n * sizeof *l->out);
    l->folded = room(n);
    l->emitted = room(n);
    memset(l->folded, 0, n);
    memset(l->emitted, 0, n);
}

static void line_free(struct line *l)
{
    free(l->out);
    free(l->folded);
    free(l->emitted);
}

static int line_fold(size_t lo, size_t hi, void *acc, void *arg)
{
    struct line *l = arg;
    step *s = acc;

    CHECK(lo < hi);
    for (size_t i = lo; i < hi; i++) {
        CHECK_EQ(l->emitted[i - l->begin], 0);
        l->folded[i - l->begin]++;
        *s = step_then(*s, step_at(i));
        if (i - l->begin == l->bad && l->in_fold != 0) return l->in_fold;
    }
    __atomic_add_fetch(&l->folds, 1, __ATOMIC_RELEASE);
    return FJ_OK;
}

static int line_combine(void *left, const void *right, void *arg)
{
    (void)arg;
    *(step *)left = step_then(*(step *)left, *(const step *)right);
    return FJ_OK;
}

static int line_emit(size_t lo, size_t hi, void *acc, void *arg)
{
    struct line *l = arg;
    step *s = acc;

    CHECK(lo < hi);
    if (l->also != NULL) CHECK_EQ(l->also(l, lo), FJ_OK);
    for (size_t i = lo; i < hi; i++) {
        CHECK(l->folded[i - l->begin] <= 1);
        l->emitted[i - l->begin]++;
        *s = step_then(*s, step_at(i));
        l->out[i - l->begin] = *s;
        if (i - l->begin != l->bad) continue;
        if (l->token != NULL) fj_token_cancel(l->token);
        if (l->in_emit != 0) return l->in_emit;
    }
    return FJ_OK;
}

static int line_run(struct line *l, const fj_algo_options *how, step *total)
{
    return fj_scan(l->begin, l->begin + l->n, line_fold, line_combine, line_emit, &nothing,
                   sizeof nothing, sizeof nothing, l, total, how);
}

static void line_check(const struct line *l, const step *total)
{
    step s = nothing;

    for (size_t i = 0; i < l->n; i++) {
        s = step_then(s, step_at(l->begin + i));
        CHECK_EQ(l->emitted[i], 1);
        CHECK(l->folded[i] <= 1);
        CHECK_EQ(l->out[i].m, s.m);
        CHECK_EQ(l->out[i].b, s.b);
    }
    CHECK(total->m == s.m && total->b == s.b);
}

static void line_case(size_t begin, size_t n, const fj_algo_options *how)
{
    struct line l;
    step total;

    line_make(&l, begin, n);
    CHECK_EQ(line_run(&l, how, &total), FJ_OK);
    line_check(&l, &total);
    line_free(&l);
}

static void lines_of_every_size(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t n = 0; n <= MOST; n++)
        line_case(n * 7, n, &(fj_algo_options){.pool = pool, .grain = 1 + n % 5});
}

FJ_TEST(every_element_is_emitted_once_and_after_its_fold, 30)
{
    within_workers(lines_of_every_size, NULL);
}

static void lines_from_here(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t n = 0; n < 300; n += 7)
        line_case(n, n, &(fj_algo_options){.pool = pool, .grain = 2});
    line_case(1, 20000, &(fj_algo_options){.pool = pool});
}

FJ_TEST(order_is_kept_from_wherever_it_is_called, 30)
{
    place_everywhere(lines_from_here, NULL);
}

FJ_TEST(ranges_may_end_at_the_last_number, 10)
{
    fj_pool *pool = fjt_pool(4, 0);

    for (size_t n = 0; n < 200; n += 3)
        line_case(SIZE_MAX - n, n, &(fj_algo_options){.pool = pool, .grain = 1 + n % 4});
    line_case(SIZE_MAX - 1000, 1000, &(fj_algo_options){.pool = pool, .grain = SIZE_MAX});
    line_case(SIZE_MAX - 1000, 1000, &(fj_algo_options){.pool = pool, .min_grain = SIZE_MAX});
    fjt_destroy(pool);
}

/* Emits the first chunk only after the other worker has folded all other chunks. */
static int after_all_folds(struct line *l, size_t lo)
{
    if (lo == l->begin) wait_for(&l->folds, (int)l->n - 1);
    return FJ_OK;
}

FJ_TEST(others_fold_what_lies_ahead_and_it_is_emitted_in_the_end, 20)
{
    fj_pool *pool = fjt_pool(2, 0);

    for (size_t n = 2; n <= 12; n++) { /* this number of chunks can be folded ahead */
        struct line l;
        step total;

        line_make(&l, 3, n);
        l.also = after_all_folds;
        CHECK_EQ(line_run(&l, &(fj_algo_options){.pool = pool, .grain = 1}, &total), FJ_OK);
        line_check(&l, &total);
        CHECK_EQ(l.folds, n - 1);
        line_free(&l);
    }
    fjt_destroy(pool);
}

FJ_TEST(a_total_is_not_asked_for, 10)
{
    struct line l;

    line_make(&l, 0, 100);
    CHECK_EQ(line_run(&l, &(fj_algo_options){.grain = 3}, NULL), FJ_OK);
    line_free(&l);
}

FJ_TEST(the_total_of_nothing_is_the_identity, 10)
{
    struct line l;
    step total = {5, 5};

    line_make(&l, 9, 0);
    CHECK_EQ(line_run(&l, NULL, &total), FJ_OK);
    CHECK(total.m == 1 && total.b == 0);
    line_free(&l);
}

/* ---- Calls that end early ------------------------------------------------------------------- */

static void fails_at_each_position(fj_pool *pool, void *arg)
{
    enum { N = 60 };

    (void)arg;
    for (size_t bad = 0; bad < N; bad++)
        for (int where = 0; where < 3; where++) {
            struct line l;
            step total = {5, 5};

            line_make(&l, 0, N);
            l.bad = bad;
            l.in_fold = where != 0 ? 7 : 0;
            l.in_emit = where != 1 ? 7 : 0;
            int code = line_run(&l, &(fj_algo_options){.pool = pool, .grain = 2}, &total);
            if (code == FJ_OK) { /* the chunk was emitted without being folded */
                CHECK_EQ(where, 1);
                line_check(&l, &total);
            } else {
                CHECK_EQ(code, 7);
                CHECK(total.m == 5 && total.b == 5);
            }
            line_free(&l);
        }
}

FJ_TEST(a_code_of_fold_or_emit_ends_it_wherever_it_comes, 30)
{
    within_workers(fails_at_each_position, NULL);
}

FJ_TEST(a_code_of_emit_ends_what_one_part_is_enough_for, 10)
{
    for (size_t n = 1; n <= 3; n++)
        for (size_t bad = 0; bad < n; bad++) {
            struct line l;
            step total = {5, 5};

            line_make(&l, 4, n);
            l.bad = bad;
            l.in_emit = 7;
            CHECK_EQ(line_run(&l, &(fj_algo_options){.grain = 3}, &total), 7);
            CHECK(total.m == 5 && total.b == 5);
            line_free(&l);
        }
}

static int bad_combine(void *left, const void *right, void *arg)
{
    (void)left, (void)right, (void)arg;
    return -3;
}

FJ_TEST(a_code_of_combine_ends_it, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct line l;
    step total;

    line_make(&l, 0, 10);
    l.also = after_all_folds;
    CHECK_EQ(fj_scan(0, 10, line_fold, bad_combine, line_emit, &nothing, sizeof nothing, 8, &l,
                     &total, &(fj_algo_options){.pool = pool, .grain = 1}),
             -3);
    line_free(&l);
    fjt_destroy(pool);
}

static void cancels_at_each_position(fj_pool *pool, void *arg)
{
    enum { N = 60 };

    (void)arg;
    for (size_t bad = 0; bad < N; bad++) {
        struct line l;
        step total = {5, 5};
        fj_token token;

        fj_token_init(&token, NULL);
        line_make(&l, 0, N);
        l.bad = bad;
        l.token = &token;
        int code = line_run(&l, &(fj_algo_options){.pool = pool, .grain = 3, .token = &token},
                            &total);
        if (code == FJ_OK) { /* every other chunk had begun */
            line_check(&l, &total);
        } else {
            CHECK_EQ(code, FJ_ECANCELED);
            CHECK(total.m == 5);
        }
        line_free(&l);
    }
}

FJ_TEST(a_cancel_ends_it_wherever_it_comes, 30)
{
    place_workers(cancels_at_each_position, NULL);
}

FJ_TEST(alone_a_cancel_leaves_the_rest_undone, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct line l;
    fj_token token;

    fj_token_init(&token, NULL);
    line_make(&l, 0, 100);
    l.bad = 10;
    l.token = &token;
    CHECK_EQ(line_run(&l, &(fj_algo_options){.pool = pool, .grain = 5, .token = &token}, NULL),
             FJ_ECANCELED);
    for (size_t i = 0; i < 100; i++) CHECK_EQ(l.emitted[i], i < 15);
    line_free(&l);
    line_make(&l, 0, 100); /* with a token that is already cancelled */
    CHECK_EQ(line_run(&l, &(fj_algo_options){.pool = pool, .grain = 5, .token = &token}, NULL),
             FJ_ECANCELED);
    for (size_t i = 0; i < 100; i++) CHECK_EQ(l.emitted[i] + l.folded[i], 0);
    line_free(&l);
    fjt_destroy(pool);
}

FJ_TEST(a_pool_that_is_shut_down_refuses, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    int32_t a[2] = {1, 2};

    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_scan_i32(a, a, 2, FJ_SCAN_INCLUSIVE, &(fj_algo_options){.pool = pool}),
             FJ_EREJECTED);
    CHECK(a[1] == 2);
    fjt_destroy(pool);
}

FJ_TEST(progress_counts_what_is_emitted, 20)
{
    fj_pool *pool = fjt_pool(4, 0);
    fj_progress p;

    fj_progress_init(&p, 0);
    for (size_t n = 1; n <= 50; n++)
        line_case(0, n, &(fj_algo_options){.pool = pool, .grain = 3, .progress = &p});
    CHECK_EQ(fj_progress_total(&p), 50 * 51 / 2);
    CHECK_EQ(fj_progress_done(&p), 50 * 51 / 2);
    fjt_destroy(pool);
}

/* ---- Elements of any size ------------------------------------------------------------------- */

struct kind {
    size_t size;
};

/* Adds all bytes except the first two, which are a map as above, so the order matters. */
static void kind_op(void *left, const void *right, void *arg)
{
    size_t size = ((const struct kind *)arg)->size, i = 0;
    unsigned char *a = left;
    const unsigned char *b = right;

    if (size >= 2) {
        a[1] = (unsigned char)(a[1] * b[0] + b[1]);
        a[0] = (unsigned char)(a[0] * b[0]);
        i = 2;
    }
    for (; i < size; i++) a[i] = (unsigned char)(a[i] + b[i]);
}

static unsigned either(size_t k)
{
    return k % 2 != 0 ? FJ_SCAN_EXCLUSIVE : FJ_SCAN_INCLUSIVE;
}

static void kind_case(size_t size, size_t n, unsigned flags, bool in_place,
                      const fj_algo_options *how)
{
    struct kind k = {size};
    unsigned char *in = room(n * size), *out = in_place ? in : room(n * size);
    unsigned char *want = room(n * size), *sum = room(size), *identity = room(size);
    uint64_t state = fjt_seed() + n + size;

    memset(identity, 0, size);
    if (size >= 2) identity[0] = 1;
    memcpy(sum, identity, size);
    for (size_t i = 0; i < n * size; i++) in[i] = (unsigned char)fjt_random(&state);
    for (size_t i = 0; i < n; i++) {
        if (flags == FJ_SCAN_EXCLUSIVE) memcpy(want + i * size, sum, size);
        kind_op(sum, in + i * size, &k);
        if (flags != FJ_SCAN_EXCLUSIVE) memcpy(want + i * size, sum, size);
    }
    CHECK_EQ(fj_scan_each(in, out, n, size, kind_op, identity, &k, flags, how), FJ_OK);
    CHECK(memcmp(out, want, n * size) == 0);
    if (out != in) free(out);
    free(in);
    free(want);
    free(sum);
    free(identity);
}

static void kinds_of_every_size(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t size = 1; size <= 270; size++)
        for (unsigned k = 0; k < 4; k++)
            kind_case(size, 1 + size % 40, either(k), k / 2 != 0,
                      &(fj_algo_options){.pool = pool, .grain = 1 + size % 3});
    for (unsigned k = 0; k < 4; k++)
        kind_case(5000, 30, either(k), k / 2 != 0, &(fj_algo_options){.pool = pool, .grain = 1});
}

FJ_TEST(elements_may_have_any_size, 30)
{
    within_workers(kinds_of_every_size, NULL);
}

static void kinds_of_every_number(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t n = 0; n <= MOST; n++)
        kind_case(1 + n % 24, n, either(n), n % 4 > 1,
                  &(fj_algo_options){.pool = pool, .grain = 1 + n % 9});
    kind_case(8, 100000, FJ_SCAN_INCLUSIVE, true, &(fj_algo_options){.pool = pool});
    kind_case(300, 3000, FJ_SCAN_EXCLUSIVE, true, &(fj_algo_options){.pool = pool});
}

FJ_TEST(any_number_of_elements_is_scanned, 30)
{
    within_workers(kinds_of_every_number, NULL);
}

/* ---- Lack of memory ------------------------------------------------------------------------- */

FJ_TEST(without_memory_it_is_done_alone, 20)
{
    fj_pool *pool = fjt_pool(4, 0);

    if (!FJI_FAULTS) fjt_skip("this build cannot refuse memory");
    fji_algo_fail_after(0);
    for (size_t n = 0; n < 200; n++) line_case(0, n, &(fj_algo_options){.pool = pool, .grain = 2});
    for (unsigned kind = 0; kind < 16; kind++)
        sum_case(kind, 3000, &(fj_algo_options){.pool = pool, .grain = 10});
    fji_algo_fail_after(1); /* the accumulator is allocated, the table is not */
    for (unsigned k = 0; k < 4; k++, fji_algo_fail_after(1))
        kind_case(400, 100, either(k), k / 2 != 0, &(fj_algo_options){.pool = pool, .grain = 2});
    fji_algo_fail_after(-1);
    fjt_destroy(pool);
}

FJ_TEST(without_memory_for_a_large_accumulator_it_is_not_begun, 10)
{
    struct kind k = {300};
    unsigned char a[600] = {1}, identity[300] = {1};

    if (!FJI_FAULTS) fjt_skip("this build cannot refuse memory");
    fji_algo_fail_after(0);
    CHECK_EQ(fj_scan_each(a, a, 2, 300, kind_op, identity, &k, FJ_SCAN_INCLUSIVE, NULL), FJ_ENOMEM);
    fji_algo_fail_after(-1);
}

/* ---- Invalid arguments ---------------------------------------------------------------------- */

FJ_TEST(what_cannot_be_meant_is_refused, 10)
{
    struct line l;
    step s;
    int32_t a[8] = {0};
    struct kind k = {4};
    const fj_algo_options spare = {.reserved = {1}}, crossed = {.min_grain = 5, .max_grain = 4};

    line_make(&l, 0, 4);
#define SCAN(begin, end, fold, combine, emit, identity, size) \
    fj_scan((begin), (end), (fold), (combine), (emit), (identity), (size), 8, &l, &s, NULL)
    CHECK_EQ(SCAN(0, 4, NULL, line_combine, line_emit, &nothing, 8), FJ_EINVAL);
    CHECK_EQ(SCAN(0, 4, line_fold, NULL, line_emit, &nothing, 8), FJ_EINVAL);
    CHECK_EQ(SCAN(0, 4, line_fold, line_combine, NULL, &nothing, 8), FJ_EINVAL);
    CHECK_EQ(SCAN(0, 4, line_fold, line_combine, line_emit, NULL, 8), FJ_EINVAL);
    CHECK_EQ(SCAN(0, 4, line_fold, line_combine, line_emit, &nothing, 0), FJ_EINVAL);
    CHECK_EQ(SCAN(0, 4, line_fold, line_combine, line_emit, &nothing, SIZE_MAX), FJ_EINVAL);
    CHECK_EQ(SCAN(4, 3, line_fold, line_combine, line_emit, &nothing, 8), FJ_EINVAL);
#undef SCAN
    CHECK_EQ(line_run(&l, &spare, &s), FJ_EINVAL);
    CHECK_EQ(line_run(&l, &crossed, &s), FJ_EINVAL);
    line_free(&l);

    CHECK_EQ(fj_scan_i32(NULL, a, 1, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_scan_i32(a, NULL, 1, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_scan_i32(NULL, NULL, 0, 0, NULL), FJ_OK);
    CHECK_EQ(fj_scan_i32(a, a, 8, 2, NULL), FJ_EINVAL);
    CHECK_EQ(fj_scan_i32(a, a + 1, 7, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_scan_i32(a + 1, a, 7, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_scan_i32(a, a + 4, 4, 0, NULL), FJ_OK);
    CHECK_EQ(fj_scan_i64((int64_t *)(void *)a, (int64_t *)(void *)a, SIZE_MAX / 4, 0, NULL),
             FJ_EINVAL);
    CHECK_EQ(fj_scan_each(a, a, 8, 4, NULL, a, &k, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_scan_each(a, a, 8, 4, kind_op, NULL, &k, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_scan_each(a, a, 8, 0, kind_op, a, &k, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_scan_each(a, a, 0, SIZE_MAX, kind_op, a, &k, 0, NULL), FJ_EINVAL);
    CHECK_EQ(fj_scan_each(a, a, 8, 4, kind_op, a, &k, 7, NULL), FJ_EINVAL);
}

/* ---- Nested calls, many calls at a time ----------------------------------------------------- */

static int scan_within(struct line *l, size_t lo)
{
    (void)l;
    line_case(lo, 10 + lo % 7, &(fj_algo_options){.grain = 2});
    return FJ_OK;
}

FJ_TEST(scans_are_nested, 30)
{
    fj_pool *pool = fjt_pool(4, 0);

    for (size_t n = 0; n < 100; n += 9) {
        struct line l;
        step total;

        line_make(&l, 0, n);
        l.also = scan_within;
        CHECK_EQ(line_run(&l, &(fj_algo_options){.pool = pool, .grain = 3}, &total), FJ_OK);
        line_check(&l, &total);
        line_free(&l);
    }
    fjt_destroy(pool);
}

static int scans_in_a_loop(size_t begin, size_t end, void *arg)
{
    uint64_t state = fjt_seed() + begin;

    (void)arg;
    for (size_t i = begin; i < end; i++) {
        line_case(i, fjt_random(&state) % 200,
                  &(fj_algo_options){.grain = 1 + fjt_random(&state) % 4});
        sum_case((unsigned)i, fjt_random(&state) % 300, &(fj_algo_options){.grain = 5});
    }
    return FJ_OK;
}

/* There are more workers than CPUs, so the system may preempt a worker anywhere. The chunks are so
 * small that most of the work is claiming chunks and folding ahead. */
FJ_TEST(tiny_parts_and_many_workers, 60)
{
    fj_pool *pool = fjt_pool(8, 0);
    uint64_t state = fjt_seed();

    for (long i = fjt_rounds(1500); i > 0; i--)
        line_case(0, fjt_random(&state) % 400,
                  &(fj_algo_options){.pool = pool, .grain = 1 + fjt_random(&state) % 3});
    fjt_destroy(pool);
}

FJ_TEST(many_scans_at_a_time, 60)
{
    fj_pool *pool = fjt_pool(8, 0);

    CHECK_EQ(fj_for(0, (size_t)fjt_rounds(600), scans_in_a_loop, NULL,
                    &(fj_algo_options){.pool = pool, .grain = 4}),
             FJ_OK);
    fjt_destroy(pool);
}
