/* SPDX-License-Identifier: MIT */
/*
 * typed_sort.c - FJ_SORT and FJ_STABLE_SORT: sorted, nothing lost, for all elements and comparisons
 */
#include <forkjoin/sort.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "algo/scratch.h"
#include "places.h"

/* ---- Elements ------------------------------------------------------------------------------- */

/* An element holds its original index. real_N() tells whether some bytes are an element. */
#define ELEMENT(bytes)                                         \
    struct element_##bytes {                                   \
        uint32_t key, from;                                    \
        unsigned char rest[(bytes) > 8 ? (bytes)-8 : 1];       \
    };                                                         \
    static int real_##bytes(const struct element_##bytes *x)   \
    {                                                          \
        return x->rest[sizeof x->rest - 1] == (x->from & 255); \
    }

ELEMENT(16)
ELEMENT(24)
ELEMENT(72)
ELEMENT(256)

#define BY_KEY(x, y) ((x).key < (y).key)
#define PLAIN(x, y) ((x) < (y))

struct three {
    unsigned char key, from[2];
};

FJ_SORT(quick_u8, uint8_t, PLAIN);
FJ_SORT(quick_3, struct three, BY_KEY);
FJ_SORT(quick_u32, uint32_t, PLAIN);
FJ_SORT(quick_16, struct element_16, BY_KEY);
FJ_SORT(quick_24, struct element_24, BY_KEY);
FJ_SORT(quick_72, struct element_72, BY_KEY);
FJ_SORT(quick_256, struct element_256, BY_KEY);
FJ_STABLE_SORT(stable_u8, uint8_t, PLAIN);
FJ_STABLE_SORT(stable_3, struct three, BY_KEY);
FJ_STABLE_SORT(stable_u32, uint32_t, PLAIN);
FJ_STABLE_SORT(stable_16, struct element_16, BY_KEY);
FJ_STABLE_SORT(stable_24, struct element_24, BY_KEY);
FJ_STABLE_SORT(stable_72, struct element_72, BY_KEY);
FJ_STABLE_SORT(stable_256, struct element_256, BY_KEY);

/* Elements that are pointers, compared by a function. */
static inline int shorter(const char *x, const char *y)
{
    return strlen(x) < strlen(y);
}

FJ_SORT(quick_text, const char *, shorter);
FJ_STABLE_SORT(stable_text, const char *, shorter);

/* ---- Patterns ------------------------------------------------------------------------------- */

enum { RANDOM, SORTED, REVERSED, EQUAL, PIPE, FEW, SAW, NEARLY, TWO_RUNS, PATTERNS };

static uint32_t pattern(int kind, size_t i, size_t n, uint64_t *seed)
{
    switch (kind) {
        case SORTED: return (uint32_t)i / 3;
        case REVERSED: return (uint32_t)(n - i);
        case EQUAL: return 7;
        case PIPE: return (uint32_t)(i < n / 2 ? i : n - i);
        case FEW: return (uint32_t)(fjt_random(seed) % 5);
        case SAW: return (uint32_t)(i % 37);
        case NEARLY: return fjt_random(seed) % 64 == 0 ? (uint32_t)fjt_random(seed) : (uint32_t)i;
        case TWO_RUNS: return (uint32_t)(i % (n / 2 + 1));
        default: return (uint32_t)fjt_random(seed);
    }
}

/* Sorts n elements of one type on `pool` and checks the result. */
#define CHECKED_SORT(bytes)                                                                     \
    static void checked_##bytes(fj_pool *pool, size_t n, int kind, uint64_t *seed, bool stable) \
    {                                                                                           \
        struct element_##bytes *a = malloc(n * sizeof *a + 1);                                  \
        unsigned char *seen = calloc(n + 1, 1);                                                 \
        fj_progress progress;                                                                   \
        fj_algo_options how = {.pool = pool, .progress = &progress};                            \
        CHECK(a != NULL && seen != NULL);                                                       \
        fj_progress_init(&progress, 0);                                                         \
        for (size_t i = 0; i < n; i++) {                                                        \
            memset(&a[i], (int)(i & 255), sizeof a[i]);                                         \
            a[i].key = pattern(kind, i, n, seed);                                               \
            a[i].from = (uint32_t)i;                                                            \
        }                                                                                       \
        CHECK_EQ(stable ? stable_##bytes(a, n, &how) : quick_##bytes(a, n, &how), FJ_OK);       \
        for (size_t i = 0; i < n; i++) {                                                        \
            CHECK(a[i].from < n && real_##bytes(&a[i]) && !seen[a[i].from]++);                  \
            CHECK(i == 0 || a[i - 1].key <= a[i].key);                                          \
            CHECK(!stable || i == 0 || a[i - 1].key < a[i].key || a[i - 1].from < a[i].from);   \
        }                                                                                       \
        CHECK_EQ(fj_progress_done(&progress), n);                                               \
        CHECK_EQ(fj_progress_total(&progress), n);                                              \
        free(seen);                                                                             \
        free(a);                                                                                \
    }

CHECKED_SORT(16)
CHECKED_SORT(24)
CHECKED_SORT(72)
CHECKED_SORT(256)

static int u32_order(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

static void checked_u32(fj_pool *pool, size_t n, int kind, uint64_t *seed, bool stable)
{
    uint32_t *a = malloc(n * sizeof *a + 1), *b = malloc(n * sizeof *a + 1);
    fj_algo_options how = {.pool = pool};

    CHECK(a != NULL && b != NULL);
    for (size_t i = 0; i < n; i++) a[i] = b[i] = pattern(kind, i, n, seed);
    CHECK_EQ(stable ? stable_u32(a, n, &how) : quick_u32(a, n, &how), FJ_OK);
    qsort(b, n, sizeof *b, u32_order);
    CHECK(memcmp(a, b, n * sizeof *a) == 0);
    free(a);
    free(b);
}

typedef void checked_fn(fj_pool *pool, size_t n, int kind, uint64_t *seed, bool stable);

static checked_fn *const checked[] = {checked_u32, checked_16, checked_24, checked_72, checked_256};
enum { TYPES = sizeof checked / sizeof checked[0] };

/* ---- Sizes and types ------------------------------------------------------------------------ */

FJ_TEST(every_small_size, 30)
{
    fj_pool *pool = fjt_pool(2, FJ_POOL_CALLER_HELPS);
    uint64_t seed = fjt_seed();

    for (size_t n = 0; n <= 1000; n++) {
        int kind = (int)(n % 3 == 0 ? fjt_random(&seed) % PATTERNS : RANDOM);
        checked_16(pool, n, kind, &seed, false);
        checked_16(pool, n, kind, &seed, true);
        checked_u32(pool, n, kind, &seed, n % 2);
        checked_72(pool, n, kind, &seed, n % 2);
    }
    fjt_destroy(pool);
}

FJ_TEST(every_pattern_of_tiny_arrays, 30)
{
    /* All arrays of up to 6 elements with keys below 4. */
    for (size_t n = 0; n <= 6; n++)
        for (unsigned code = 0; code < 1u << 2 * n; code++) {
            struct element_16 a[6];
            unsigned seen = 0;
            for (size_t i = 0; i < n; i++) {
                memset(&a[i], (int)i, sizeof a[i]);
                a[i].key = code >> 2 * i & 3;
                a[i].from = (uint32_t)i;
            }
            CHECK_EQ(stable_16(a, n, NULL), FJ_OK);
            for (size_t i = 0; i < n; i++) {
                seen |= 1u << a[i].from;
                CHECK(i == 0 || a[i - 1].key < a[i].key ||
                      (a[i - 1].key == a[i].key && a[i - 1].from < a[i].from));
            }
            CHECK_EQ(seen, (1u << n) - 1);
        }
}

/* A sorting network or a merge that sorts all sequences of zeros and ones sorts everything. */
FJ_TEST(zeros_and_ones, 30)
{
    uint64_t seed = fjt_seed();

    for (size_t n = 0; n <= 32; n++)
        for (long round = 0; round < fjt_rounds(300); round++) {
            uint32_t a[32], ones = 0;
            uint64_t bits = fjt_random(&seed);
            for (size_t i = 0; i < n; i++) ones += a[i] = bits >> i & 1;
            CHECK_EQ(quick_u32(a, n, NULL), FJ_OK);
            for (size_t i = 0; i < n; i++) CHECK_EQ(a[i], i >= n - ones);
        }
}

static void large_ones(fj_pool *pool, void *arg)
{
    uint64_t *seed = arg;

    for (int kind = 0; kind < PATTERNS; kind++) {
        size_t n = 1 + fjt_random(seed) % 20000;
        checked_u32(pool, n, kind, seed, kind % 2);
        checked_24(pool, n, kind, seed, false);
        checked_24(pool, n, kind, seed, true);
    }
}

FJ_TEST(on_any_number_of_workers, 60)
{
    uint64_t seed = fjt_seed();
    place_workers(large_ones, &seed);
}

static void one_of_each(fj_pool *pool, void *arg)
{
    uint64_t *seed = arg;

    for (int type = 0; type < TYPES; type++)
        for (int stable = 0; stable < 2; stable++)
            checked[type](pool, 3000, (int)(fjt_random(seed) % PATTERNS), seed, stable);
}

FJ_TEST(from_everywhere, 60)
{
    uint64_t seed = fjt_seed();
    place_everywhere(one_of_each, &seed);
}

/* Arrays so large that all workers partition them together. */
FJ_TEST(very_large_ones, 60)
{
    fj_pool *four = fjt_pool(4, 0), *eight = fjt_pool(8, 0);
    uint64_t seed = fjt_seed();

    for (long round = 0; round < fjt_rounds(2); round++) {
        size_t n = 262144 + fjt_random(&seed) % 38000;
        for (int kind = RANDOM; kind <= NEARLY; kind += FEW)
            checked_16(round % 2 ? four : eight, n, kind, &seed, false);
        checked_u32(eight, n, (int)(fjt_random(&seed) % PATTERNS), &seed, false);
        checked_16(four, n, RANDOM, &seed, true);
        checked_16(eight, n / 2, FEW, &seed, true);
    }
    fjt_destroy(eight);
    fjt_destroy(four);
}

FJ_TEST(bytes_and_threes_and_pointers, 30)
{
    enum { N = 5000 };
    static uint8_t bytes[N];
    static struct three threes[N];
    static const char *texts[N];
    static const char text[] = "0123456789abcdef";
    uint64_t seed = fjt_seed();

    for (int stable = 0; stable < 2; stable++) {
        for (size_t i = 0; i < N; i++) {
            bytes[i] = (uint8_t)fjt_random(&seed);
            threes[i] = (struct three){(unsigned char)(fjt_random(&seed) % 99),
                                       {(unsigned char)(i >> 8), (unsigned char)i}};
            texts[i] = text + fjt_random(&seed) % sizeof text;
        }
        CHECK_EQ(stable ? stable_u8(bytes, N, NULL) : quick_u8(bytes, N, NULL), FJ_OK);
        CHECK_EQ(stable ? stable_3(threes, N, NULL) : quick_3(threes, N, NULL), FJ_OK);
        CHECK_EQ(stable ? stable_text(texts, N, NULL) : quick_text(texts, N, NULL), FJ_OK);
        for (size_t i = 1; i < N; i++) {
            CHECK(bytes[i - 1] <= bytes[i] && texts[i - 1] >= texts[i]);
            CHECK(threes[i - 1].key <= threes[i].key);
            if (stable && threes[i - 1].key == threes[i].key)
                CHECK(memcmp(threes[i - 1].from, threes[i].from, 2) < 0);
        }
    }
}

/* ---- Comparisons that contradict themselves ------------------------------------------------- */

static int lie; /* how the comparison contradicts itself */
static _Thread_local uint64_t lie_seed;
static atomic_long compared;
static long cancel_at = -1; /* the number of the comparison that cancels the sort; -1: none */
static fj_token cancel_token;

enum { ALWAYS, NEVER, NOT_AFTER, AT_RANDOM, ROUND, OFTEN, TRUTH, LIES };

static int false_less(const struct element_16 *x, const struct element_16 *y)
{
    long count = atomic_fetch_add_explicit(&compared, 1, memory_order_relaxed);

    CHECK(real_16(x) && real_16(y)); /* only elements may be compared */
    if (count == cancel_at) fj_token_cancel(&cancel_token);
    switch (lie) {
        case ALWAYS: return count != 1; /* so that the array is neither ascending nor descending */
        case NEVER: return count == 1;
        case NOT_AFTER: return x->key <= y->key;
        case AT_RANDOM: return fjt_random(&lie_seed) & 1;
        case ROUND: return (x->key - y->key) % 3 == 1;
        case OFTEN: return (x->key < y->key) ^ (fjt_random(&lie_seed) % 16 == 0);
        default: return x->key < y->key;
    }
}

#define FALSE_LESS(x, y) false_less(&(x), &(y))
FJ_SORT(quick_false, struct element_16, FALSE_LESS);
FJ_STABLE_SORT(stable_false, struct element_16, FALSE_LESS);

static void make(struct element_16 *a, size_t n, int kind, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        memset(&a[i], (int)(i & 255), sizeof a[i]);
        a[i].key = pattern(kind, i, n, seed);
        a[i].from = (uint32_t)i;
    }
}

static void check_all_there(const struct element_16 *a, size_t n)
{
    unsigned char *seen = calloc(n + 1, 1);

    CHECK(seen != NULL);
    for (size_t i = 0; i < n; i++) CHECK(a[i].from < n && real_16(&a[i]) && !seen[a[i].from]++);
    free(seen);
}

static int sort_false(struct element_16 *a, size_t n, bool stable, const fj_algo_options *how)
{
    return stable ? stable_false(a, n, how) : quick_false(a, n, how);
}

/* Sorts with every kind of contradicting comparison. Checks that no element is lost and that the
 * number of comparisons stays in the order of n log n. */
static void lied_to(fj_pool *pool, size_t n, bool stable, int kind, uint64_t *seed)
{
    struct element_16 *a = malloc(n * sizeof *a + 1);
    fj_algo_options how = {.pool = pool};
    long most = 40;

    CHECK(a != NULL);
    for (size_t i = n; i > 0; i /= 2) most += 10 * (long)n;
    for (lie = 0; lie < LIES; lie++) {
        make(a, n, kind, seed);
        atomic_store(&compared, 0);
        CHECK_EQ(sort_false(a, n, stable, &how), FJ_OK);
        check_all_there(a, n);
        CHECK(atomic_load(&compared) <= most);
    }
    free(a);
}

FJ_TEST(lies_lose_nothing, 60)
{
    fj_pool *pool = fjt_pool(2, FJ_POOL_CALLER_HELPS);
    uint64_t seed = fjt_seed();

    for (size_t n = 0; n < 200; n++) lied_to(pool, n, n % 2, (int)(n % PATTERNS), &seed);
    for (size_t n = 200; n < 20000; n += 1 + n / 2)
        for (int stable = 0; stable < 2; stable++) lied_to(pool, n, stable, RANDOM, &seed);
    fjt_destroy(pool);
}

FJ_TEST(lies_to_many_workers, 60)
{
    fj_pool *pool = fjt_pool(8, 0);
    uint64_t seed = fjt_seed();

    lied_to(pool, 263000, false, FEW, &seed);
    fjt_destroy(pool);
}

FJ_TEST(lies_without_memory, 60)
{
    uint64_t seed = fjt_seed();

    fji_algo_fail_after(0);
    for (size_t n = 1; n < 3000; n += 1 + n / 3) lied_to(NULL, n, true, RANDOM, &seed);
}

/*
 * The adversary chooses the order of the elements while the sort runs. An element without a value
 * is greater than all elements that have one; a value is assigned as late as possible. Quicksort
 * without a fallback takes about n * n comparisons then.
 */
static size_t gas, solid;
static uint32_t candidate;
static uint32_t *made_up;

static int adverse_less(uint32_t x, uint32_t y)
{
    atomic_fetch_add_explicit(&compared, 1, memory_order_relaxed);
    if (made_up[x] == gas && made_up[y] == gas) made_up[x == candidate ? x : y] = (uint32_t)solid++;
    if (made_up[x] == gas)
        candidate = x;
    else if (made_up[y] == gas)
        candidate = y;
    return made_up[x] < made_up[y];
}

FJ_SORT(quick_adverse, uint32_t, adverse_less);

FJ_TEST(an_adversary_gets_n_log_n, 60)
{
    enum { N = 20000 };
    fj_pool *pool = fjt_pool(1, 0);
    fj_algo_options how = {.pool = pool};
    uint32_t *a = malloc(N * sizeof *a);

    made_up = malloc(N * sizeof *made_up);
    CHECK(a != NULL && made_up != NULL);
    gas = N;
    for (uint32_t i = 0; i < N; i++) {
        a[i] = i;
        made_up[i] = N;
    }
    CHECK_EQ(quick_adverse(a, N, &how), FJ_OK);
    CHECK(atomic_load(&compared) < 60L * N);
    for (size_t i = 1; i < N; i++) CHECK(made_up[a[i - 1]] <= made_up[a[i]]);
    free(made_up);
    free(a);
    fjt_destroy(pool);
}

/* ---- Cancelling ----------------------------------------------------------------------------- */

/* Sorts n elements; comparison number `at` cancels the sort. Returns the number of comparisons. */
static long cancelled_sort(fj_pool *pool, size_t n, bool stable, int kind, long at, uint64_t *seed)
{
    struct element_16 *a = malloc(n * sizeof *a + 1);
    fj_progress progress;
    fj_algo_options how = {.pool = pool, .token = &cancel_token, .progress = &progress};

    CHECK(a != NULL);
    lie = TRUTH;
    make(a, n, kind, seed);
    fj_progress_init(&progress, n);
    fj_token_init(&cancel_token, NULL);
    atomic_store(&compared, 0);
    cancel_at = at;
    int err = sort_false(a, n, stable, &how);
    cancel_at = -1;
    CHECK(err == FJ_OK || (err == FJ_ECANCELED && at >= 0));
    CHECK(err != FJ_OK || fj_progress_done(&progress) == n);
    CHECK(fj_progress_done(&progress) <= n);
    check_all_there(a, n);
    for (size_t i = 1; err == FJ_OK && i < n; i++) CHECK(a[i - 1].key <= a[i].key);
    free(a);
    return atomic_load(&compared);
}

static void cancel_everywhere(fj_pool *pool, void *arg)
{
    uint64_t *seed = arg;
    size_t n = 30000;

    for (int stable = 0; stable < 2; stable++) {
        long all = cancelled_sort(pool, n, stable, RANDOM, -1, seed);
        for (long i = 0, most = fjt_rounds(24); i < most; i++)
            (void)cancelled_sort(pool, n, stable, RANDOM, all * i / most, seed);
        long early = cancelled_sort(pool, n, stable, RANDOM, 0, seed);
        CHECK(early < all / 2);
    }
}

FJ_TEST(cancelled_at_any_comparison_it_loses_nothing, 60)
{
    uint64_t seed = fjt_seed();
    place_workers(cancel_everywhere, &seed);
}

FJ_TEST(cancelled_without_memory_it_loses_nothing, 60)
{
    uint64_t seed = fjt_seed();

    fji_algo_fail_after(0);
    for (long i = 0; i < 20; i++) (void)cancelled_sort(NULL, 2000, true, RANDOM, i * 2500, &seed);
}

FJ_TEST(cancelled_in_a_cut_by_all_workers, 60)
{
    fj_pool *pool = fjt_pool(8, 0);
    uint64_t seed = fjt_seed();

    for (long i = 0; i < 10; i++)
        (void)cancelled_sort(pool, 263000, false, RANDOM, i * 40000, &seed);
    fjt_destroy(pool);
}

FJ_TEST(cancelled_before_it_begins, 10)
{
    uint32_t a[3] = {3, 2, 1};
    fj_token token;
    fj_algo_options how = {.token = &token};

    fj_token_init(&token, NULL);
    fj_token_cancel(&token);
    CHECK_EQ(quick_u32(a, 3, &how), FJ_ECANCELED);
    CHECK_EQ(stable_u32(a, 3, &how), FJ_ECANCELED);
    CHECK(a[0] == 3 && a[1] == 2 && a[2] == 1);
}

struct inner_sort {
    fj_task task;
    struct element_16 *a;
    size_t n;
    bool stable;
    int err;
};

static int inner_sort_run(fj_task *t)
{
    struct inner_sort *s = (struct inner_sort *)t;
    fj_token token;
    fj_algo_options how = {.token = &token};

    fj_token_init(&token, NULL);
    s->err = sort_false(s->a, s->n, s->stable, &how);
    return FJ_OK;
}

/* The call itself has no token; the token of the task that makes the call is cancelled. */
FJ_TEST(cancelled_with_the_task_that_calls_it, 60)
{
    fj_pool *pool = fjt_pool(4, 0);
    uint64_t seed = fjt_seed();
    struct inner_sort s = {.n = 300000};

    s.a = malloc(s.n * sizeof *s.a);
    CHECK(s.a != NULL);
    lie = TRUTH;
    for (int round = 0; round < 4; round++) {
        make(s.a, s.n, RANDOM, &seed);
        fj_token_init(&cancel_token, NULL);
        atomic_store(&compared, 0);
        cancel_at = round / 2 * 300000;
        s.stable = round % 2;
        fj_task_init(&s.task, inner_sort_run);
        CHECK_EQ(fj_invoke_token(pool, &s.task, &cancel_token), FJ_OK);
        CHECK_EQ(s.err, FJ_ECANCELED);
        check_all_there(s.a, s.n);
        CHECK(atomic_load(&compared) < 2000000);
    }
    free(s.a);
    fjt_destroy(pool);
}

/* ---- Memory and arguments ------------------------------------------------------------------- */

FJ_TEST(without_memory_it_is_stable_all_the_same, 60)
{
    uint64_t seed = fjt_seed();

    fji_algo_fail_after(0);
    for (size_t n = 0; n < 300; n++) checked_16(NULL, n, (int)(n % PATTERNS), &seed, true);
    for (int kind = 0; kind < PATTERNS; kind++) {
        checked_16(NULL, 5000, kind, &seed, true);
        checked_256(NULL, 700, kind, &seed, true);
        checked_24(NULL, 5000, kind, &seed, false);
    }
}

FJ_TEST(grain_and_its_limits, 30)
{
    uint64_t seed = fjt_seed();
    static uint32_t a[10000];

    for (size_t grain = 1; grain < 40000; grain *= 3)
        for (int stable = 0; stable < 2; stable++) {
            fj_algo_options how = {.grain = grain};
            for (size_t i = 0; i < 10000; i++) a[i] = (uint32_t)fjt_random(&seed);
            CHECK_EQ(stable ? stable_u32(a, 10000, &how) : quick_u32(a, 10000, &how), FJ_OK);
            for (size_t i = 1; i < 10000; i++) CHECK(a[i - 1] <= a[i]);
        }
}

FJ_TEST(what_cannot_be_meant, 10)
{
    uint32_t a[2] = {2, 1};
    fj_algo_options bad = {.reserved = {1, 0}};

    CHECK_EQ(quick_u32(NULL, 1, NULL), FJ_EINVAL);
    CHECK_EQ(stable_u32(NULL, 1, NULL), FJ_EINVAL);
    CHECK_EQ(quick_u32(NULL, 0, NULL), FJ_OK);
    CHECK_EQ(stable_u32(NULL, 0, NULL), FJ_OK);
    CHECK_EQ(quick_u32(a, SIZE_MAX / 2, NULL), FJ_EINVAL);
    CHECK_EQ(stable_u32(a, SIZE_MAX / 4 + 1, NULL), FJ_EINVAL);
    CHECK_EQ(quick_u32(a, 2, &bad), FJ_EINVAL);
    CHECK_EQ(stable_u32(a, 2, &bad), FJ_EINVAL);
    CHECK(a[0] == 2 && a[1] == 1);
}

FJ_TEST(on_a_pool_that_is_shut_down, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    uint32_t a[2] = {2, 1};
    fj_algo_options how = {.pool = pool};

    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(quick_u32(a, 2, &how), FJ_EREJECTED);
    CHECK_EQ(stable_u32(a, 2, &how), FJ_EREJECTED);
    CHECK(a[0] == 2 && a[1] == 1);
    fjt_destroy(pool);
}
