/* SPDX-License-Identifier: MIT */
/*
 * fixed.c - fj_reduce_deterministic(): always the same tree, and so the same bits
 */
#include <forkjoin/block.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "algo/scratch.h"
#include "places.h"

/* ---- The expected tree ---------------------------------------------------------------------- */

/* The size of a leaf: `grain`, or the largest power of two that is at most half the square root of
 * n. */
static size_t tree_leaf(size_t n, size_t grain)
{
    size_t leaf = 1;

    if (grain != 0) return grain;
    while ((__uint128_t)leaf * leaf * 16 <= n) leaf *= 2;
    return leaf;
}

struct tree {
    size_t begin, end, leaf;
    fj_fold_fn *fold;
    fj_combine_fn *combine;
    const void *identity;
    size_t size;
    void *arg;
};

static void tree_node(const struct tree *t, size_t first, size_t leaves, void *out)
{
    memcpy(out, t->identity, t->size);
    if (leaves == 1) {
        size_t from = t->begin + first * t->leaf;
        size_t to = t->end - from <= t->leaf ? t->end : from + t->leaf;
        CHECK_EQ(t->fold(from, to, out, t->arg), FJ_OK);
        return;
    }
    size_t left = (leaves + 1) / 2;
    void *right = aligned_alloc(16, (t->size + 15) / 16 * 16);
    CHECK(right != NULL);
    tree_node(t, first, left, out);
    tree_node(t, first + left, leaves - left, right);
    CHECK_EQ(t->combine(out, right, t->arg), FJ_OK);
    free(right);
}

static void tree_do(const struct tree *t, void *out)
{
    size_t n = t->end - t->begin;

    if (n == 0)
        memcpy(out, t->identity, t->size);
    else
        tree_node(t, 0, (n - 1) / t->leaf + 1, out);
}

/* ---- Hashes: neither associative nor commutative, so they depend on the tree ---------------- */

enum { WORDS_MOST = 520 };

/* An accumulator of `words` words. Word i is word 0 plus i, unless an accumulator was damaged. */
struct hash_job {
    size_t words;
    size_t fails, cancels; /* the leaf with this element fails or cancels; SIZE_MAX: none */
    long combine_fails;    /* the number of the combine call that fails; negative: none */
    atomic_long combined;
    int64_t nap_ns;
    fj_token token;
    bool deaf;                     /* the expected result is computed: none of the above happens */
    atomic_uint_least64_t workers; /* one bit for each worker that ran a leaf */
};

static uint64_t hash(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 1;
    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
}

static void words_set(const struct hash_job *j, uint64_t *acc, uint64_t x)
{
    for (size_t i = 0; i < j->words; i++) {
        CHECK(acc[i] == acc[0] + i);
        if (i > 0) acc[i] = x + i;
    }
    acc[0] = x;
}

static int hash_fold(size_t begin, size_t end, void *acc, void *arg)
{
    struct hash_job *j = arg;
    uint64_t *a = acc, x = a[0];

    CHECK(begin < end && (uintptr_t)acc % _Alignof(max_align_t) == 0);
    for (size_t i = begin; i < end; i++) x = hash(x, i);
    words_set(j, acc, x);
    if (j->deaf) return FJ_OK;
    if (fj_current_worker() >= 0) atomic_fetch_or(&j->workers, 1ull << fj_current_worker() % 64);
    if (j->nap_ns != 0 && fj_sleep_ns(j->nap_ns) != FJ_OK) return FJ_ECANCELED;
    if (begin <= j->cancels && j->cancels < end) fj_token_cancel(&j->token);
    return begin <= j->fails && j->fails < end ? 55 : FJ_OK;
}

static int hash_combine(void *left, const void *right, void *arg)
{
    struct hash_job *j = arg;
    uint64_t *a = left;
    const uint64_t *b = right;

    for (size_t i = 0; i < j->words; i++) CHECK(b[i] == b[0] + i);
    words_set(j, left, hash(hash(a[0], b[0]), 7));
    long number = atomic_fetch_add(&j->combined, 1);
    return !j->deaf && number == j->combine_fails ? 66 : FJ_OK;
}

static struct hash_job hash_job_of(size_t words)
{
    struct hash_job j = {
        .words = words, .fails = SIZE_MAX, .cancels = SIZE_MAX, .combine_fails = -1};
    fj_token_init(&j.token, NULL);
    return j;
}

static void words_make(uint64_t *words, uint64_t x)
{
    for (size_t i = 0; i < WORDS_MOST; i++) words[i] = x + i;
}

static int hash_run(struct hash_job *j, size_t begin, size_t end, uint64_t *result,
                    const fj_algo_options *how)
{
    uint64_t identity[WORDS_MOST];

    words_make(identity, 42);
    return fj_reduce_deterministic(begin, end, hash_fold, hash_combine, identity, j->words * 8, j,
                                   result, how);
}

static uint64_t hash_oracle(size_t words, size_t begin, size_t end, size_t grain)
{
    static _Alignas(16) uint64_t out[WORDS_MOST], identity[WORDS_MOST];
    struct hash_job j = hash_job_of(words);
    struct tree t = {
        begin,     end, tree_leaf(end - begin, grain), hash_fold, hash_combine, identity,
        words * 8, &j};

    j.deaf = true;
    words_make(identity, 42);
    tree_do(&t, out);
    return out[0];
}

static void hash_check(fj_pool *pool, struct hash_job *j, size_t begin, size_t end, size_t grain)
{
    uint64_t result[WORDS_MOST];

    words_make(result, 1);
    CHECK_EQ(hash_run(j, begin, end, result, &(fj_algo_options){.pool = pool, .grain = grain}),
             FJ_OK);
    CHECK(result[0] == hash_oracle(j->words, begin, end, grain));
    for (size_t i = 1; i < j->words; i++) CHECK(result[i] == result[0] + i);
    CHECK(j->words == WORDS_MOST || result[j->words] == 1 + j->words);
}

/* ---- The tree ------------------------------------------------------------------------------- */

static void all_small_sizes(fj_pool *pool, void *arg)
{
    struct hash_job j = hash_job_of(*(size_t *)arg);

    for (size_t n = 0; n <= 1000; n++) hash_check(pool, &j, 5, 5 + n, 0);
    for (size_t grain = 1; grain < 9; grain += 2)
        for (size_t n = 0; n <= 130; n++) hash_check(pool, &j, n, 2 * n, grain);
}

FJ_TEST(tree_is_as_told_for_all_small_sizes, 20)
{
    size_t words = 1;
    place_workers(all_small_sizes, &words);
}

FJ_TEST(tree_is_as_told_with_large_accumulators, 20)
{
    for (size_t words = 16; words <= WORDS_MOST - 1; words = words * 2 + 1) {
        fj_pool *pool = fjt_pool(2, 0);
        struct hash_job j = hash_job_of(words);
        for (size_t n = 0; n <= 300; n += 1 + n / 20) hash_check(pool, &j, 0, n, 1);
        fjt_destroy(pool);
    }
}

static void random_large_sizes(fj_pool *pool, void *arg)
{
    uint64_t r = fjt_seed();

    (void)arg;
    for (long round = fjt_rounds(6); round > 0; round--) {
        struct hash_job j = hash_job_of(1 + fjt_random(&r) % 30);
        size_t begin = fjt_random(&r) % 1000, n = fjt_random(&r) % 300000;
        hash_check(pool, &j, begin, begin + n, fjt_random(&r) % 3 == 0 ? 1 + n / 500 : 0);
    }
}

FJ_TEST(tree_is_as_told_for_large_sizes, 20)
{
    place_workers(random_large_sizes, NULL);
}

FJ_TEST(tree_is_the_same_from_everywhere, 20)
{
    place_everywhere(random_large_sizes, NULL);
}

/* Leaves that sleep are stolen. Thieves then use the frame of a chunk, also frames deep in the
 * tree. */
FJ_TEST(tree_is_as_told_when_parts_are_taken, 30)
{
    static const size_t words[] = {1, 16, 17, 100};

    for (size_t i = 0; i < 4; i++)
        for (int workers = 2; workers <= 8; workers *= 2) {
            fj_pool *pool = fjt_pool(workers, 0);
            struct hash_job j = hash_job_of(words[i]);
            j.nap_ns = 20000;
            for (int more = 1; more != 0;) { /* until at least two workers have run leaves */
                hash_check(pool, &j, 0, 150, 2);
                uint64_t who = atomic_load(&j.workers);
                more = (who & (who - 1)) == 0;
            }
            fjt_destroy(pool);
        }
}

static int ends_fold(size_t begin, size_t end, void *acc, void *arg)
{
    (void)arg;
    *(size_t *)acc += end - begin;
    return FJ_OK;
}

static int ends_combine(void *left, const void *right, void *arg)
{
    (void)arg;
    *(size_t *)left += *(const size_t *)right;
    return FJ_OK;
}

FJ_TEST(ranges_may_be_as_large_as_they_can, 10)
{
    size_t zero = 0, sum = 1;
    const size_t begins[] = {0, 1, SIZE_MAX - 1, SIZE_MAX - 1000, SIZE_MAX};

    for (size_t i = 0; i < 5; i++)
        for (size_t grain = SIZE_MAX / 1000; grain != 0; grain = grain == SIZE_MAX ? 0 : SIZE_MAX) {
            CHECK_EQ(fj_reduce_deterministic(begins[i], SIZE_MAX, ends_fold, ends_combine, &zero,
                                             sizeof zero, NULL, &sum,
                                             &(fj_algo_options){.grain = grain}),
                     FJ_OK);
            CHECK(sum == SIZE_MAX - begins[i]);
        }
    CHECK_EQ(fj_reduce_deterministic(SIZE_MAX - 5000, SIZE_MAX, ends_fold, ends_combine, &zero,
                                     sizeof zero, NULL, &sum, NULL),
             FJ_OK);
    CHECK_EQ(sum, 5000);
}

/* The number of leaves is so large that some chunks need the larger frame. */
FJ_TEST(trees_may_be_deep, 20)
{
    for (int workers = 1; workers <= 4; workers *= 2) {
        fj_pool *pool = fjt_pool(workers, 0);
        struct hash_job j = hash_job_of(1);
        hash_check(pool, &j, 3, 70000 + (size_t)fjt_rounds(130000), 1);
        fjt_destroy(pool);
    }
}

/* ---- Doubles -------------------------------------------------------------------------------- */

static int double_fold(size_t begin, size_t end, void *acc, void *arg)
{
    const double *x = arg;
    double sum = *(double *)acc;

    for (size_t i = begin; i < end; i++) sum += x[i];
    *(double *)acc = sum;
    return FJ_OK;
}

static int double_combine(void *left, const void *right, void *arg)
{
    (void)arg;
    *(double *)left += *(const double *)right;
    return FJ_OK;
}

FJ_TEST(sums_of_doubles_have_the_same_bits_in_every_run, 30)
{
    static const int workers[] = {1, 2, 3, 8};
    size_t n = (size_t)fjt_rounds(400000) + 77;
    double *x = malloc(n * sizeof *x), zero = 0, wanted;
    uint64_t r = fjt_seed();

    CHECK(x != NULL);
    for (size_t i = 0; i < n; i++)
        x[i] = (double)(int64_t)fjt_random(&r) * (fjt_random(&r) % 2 == 0 ? 1e-30 : 1e-3);
    struct tree t = {0, n, tree_leaf(n, 0), double_fold, double_combine, &zero, sizeof zero, x};
    tree_do(&t, &wanted);
    for (int i = 0; i < 4; i++) {
        fj_pool *pool = fjt_pool(workers[i], 0);
        for (int round = 0; round < 10; round++) {
            double sum = -1;
            CHECK_EQ(fj_reduce_deterministic(0, n, double_fold, double_combine, &zero, sizeof zero,
                                             x, &sum, &(fj_algo_options){.pool = pool}),
                     FJ_OK);
            CHECK(memcmp(&sum, &wanted, sizeof sum) == 0);
        }
        fjt_destroy(pool);
    }
    free(x);
}

/* ---- Errors --------------------------------------------------------------------------------- */

static void one_ending(fj_pool *pool, struct hash_job *j, int wanted)
{
    uint64_t result[WORDS_MOST];

    words_make(result, 1);
    CHECK_EQ(hash_run(j, 0, 120, result,
                      &(fj_algo_options){.pool = pool, .grain = 3, .token = &j->token}),
             wanted);
    for (size_t i = 0; wanted != FJ_OK && i < j->words; i++) CHECK(result[i] == 1 + i);
}

static void endings_everywhere(fj_pool *pool, void *arg)
{
    int nap = *(int *)arg;

    for (size_t words = 1; words < 40; words += 30)
        for (size_t at = 0; at < 120; at += 3) {
            struct hash_job fails = hash_job_of(words), cancels = fails, combines = fails;
            fails.nap_ns = cancels.nap_ns = combines.nap_ns = nap;
            fails.fails = at;
            one_ending(pool, &fails, 55);
            cancels.cancels = at;
            /* No code checks the token after the last leaf. */
            if (at < 117 && nap == 0) one_ending(pool, &cancels, FJ_ECANCELED);
            combines.combine_fails = (long)at / 3;
            one_ending(pool, &combines, at < 117 ? 66 : FJ_OK);
        }
}

FJ_TEST(errors_and_cancels_end_it_wherever_they_are, 20)
{
    int none = 0;
    fj_pool *pool = fjt_pool(1, 0);

    endings_everywhere(pool, &none);
    fjt_destroy(pool);
}

FJ_TEST(errors_end_it_when_parts_are_taken, 30)
{
    int nap = 3000;
    fj_pool *pool = fjt_pool(4, 0);

    endings_everywhere(pool, &nap);
    fjt_destroy(pool);
}

FJ_TEST(misuse_is_found_before_anything_is_run, 10)
{
    struct hash_job j = hash_job_of(1);
    uint64_t x = 3;
    fj_fold_fn *f = hash_fold;
    fj_combine_fn *c = hash_combine;

    j.fails = 0;
    CHECK_EQ(fj_reduce_deterministic(0, 1, NULL, c, &x, 8, &j, &x, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce_deterministic(0, 1, f, NULL, &x, 8, &j, &x, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce_deterministic(0, 1, f, c, NULL, 8, &j, &x, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce_deterministic(0, 1, f, c, &x, 8, &j, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce_deterministic(0, 1, f, c, &x, 0, &j, &x, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce_deterministic(0, 1, f, c, &x, SIZE_MAX, &j, &x, NULL), FJ_EINVAL);
    CHECK_EQ(fj_reduce_deterministic(2, 1, f, c, &x, 8, &j, &x, NULL), FJ_EINVAL);
    CHECK_EQ(
        fj_reduce_deterministic(0, 1, f, c, &x, 8, &j, &x, &(fj_algo_options){.reserved = {1}}),
        FJ_EINVAL);
    CHECK_EQ(x, 3);
}

FJ_TEST(progress_counts_every_element, 10)
{
    struct hash_job j = hash_job_of(1);
    fj_progress p;
    uint64_t result;

    fj_progress_init(&p, 0);
    for (size_t n = 0; n < 3000; n += 1 + n / 3) {
        uint64_t done = fj_progress_done(&p);
        CHECK_EQ(hash_run(&j, 10, 10 + n, &result, &(fj_algo_options){.progress = &p}), FJ_OK);
        CHECK_EQ(fj_progress_done(&p), done + n);
        CHECK_EQ(fj_progress_total(&p), done + n);
    }
}

/* ---- Without memory ------------------------------------------------------------------------- */

FJ_TEST(memory_is_needed_for_the_first_part_only, 30)
{
    if (!FJI_FAULTS) fjt_skip("built without faults");
    fj_pool *pool = fjt_pool(4, 0);
    uint64_t result[WORDS_MOST], wanted = hash_oracle(WORDS_MOST, 0, 90, 2);

    for (long allowed = 0; allowed < 30; allowed++) {
        struct hash_job j = hash_job_of(WORDS_MOST);
        j.nap_ns = 10000;
        words_make(result, 1);
        fji_algo_fail_after(allowed);
        int code = hash_run(&j, 0, 90, result, &(fj_algo_options){.pool = pool, .grain = 2});
        fji_algo_fail_after(-1);
        CHECK_EQ(code, allowed < 2 ? FJ_ENOMEM : FJ_OK);
        CHECK(result[0] == (allowed < 2 ? 1 : wanted));
    }
    fjt_destroy(pool);
}

FJ_TEST(small_accumulators_need_no_memory, 10)
{
    fj_pool *pool = fjt_pool(4, 0);
    struct hash_job j = hash_job_of(16);

    j.nap_ns = 10000;
    fji_algo_fail_after(0);
    hash_check(pool, &j, 0, 200, 2);
    fji_algo_fail_after(-1);
    fjt_destroy(pool);
}
