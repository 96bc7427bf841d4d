/* SPDX-License-Identifier: MIT */
/*
 * sort.c - sorts by comparison: ordered, stable, each element once, for any comparison
 */
#include <pthread.h>

#include "algo/scratch.h"
#include "elements.h"
#include "places.h"
#include "plat/config.h"
#include "plat/plat.h"

typedef int sort_fn(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg,
                    const fj_algo_options *how);

static int call_qsort(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg,
                      const fj_algo_options *how)
{
    (void)how;
    fj_qsort(base, n, size, cmp, arg);
    return FJ_OK;
}

static sort_fn *const sorts[] = {fj_sort, fj_stable_sort, call_qsort};

/* Sorts s and checks the result. */
static void check_sort(struct elements *s, sort_fn *sort, const fj_algo_options *how)
{
    CHECK_EQ(sort(s->base, s->n, s->size, element_compare, s, how), FJ_OK);
    elements_check_sorted(s, s->base, sort == fj_stable_sort, __LINE__);
}

static void check_one(size_t n, size_t size, enum pattern p, sort_fn *sort,
                      const fj_algo_options *how)
{
    uint64_t seed = fjt_seed() + n * 64 + size;
    struct elements s;

    if (!case_is_tried(n)) return;
    elements_init(&s, n, size);
    elements_keys(&s, p, &seed);
    check_sort(&s, sort, how);
    elements_free(&s);
}

/* ---- Order ---------------------------------------------------------------------------------- */

static const size_t sizes[] = {4, 8, 1, 16, 2, 32, 12, 100, 24, 7, 33, 256};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void all_lengths(fj_pool *pool, void *arg)
{
    fj_algo_options how = {.pool = pool};

    (void)arg;
    for (size_t n = 0; n <= 1000; n++)
        check_one(n, sizes[n % SIZES], (enum pattern)(n / SIZES % PATTERNS), sorts[n % 2], &how);
}

FJ_TEST(every_length_is_sorted, 30)
{
    place_workers(all_lengths, NULL);
    all_lengths(NULL, NULL);
}

FJ_TEST(every_length_is_sorted_for_every_pattern, 30)
{
    for (size_t n = 0; n <= 130; n++)
        for (int p = 0; p < PATTERNS; p++)
            for (size_t i = 0; i < 3; i++)
                check_one(n, sizes[(n + (size_t)p) % SIZES], (enum pattern)p, sorts[i], NULL);
}

FJ_TEST(every_element_size_is_sorted, 30)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_algo_options how = {.pool = pool, .grain = 32};

    for (size_t size = 1; size <= 256; size++) {
        check_one(20, size, RANDOM, fj_stable_sort, NULL);
        check_one(300, size, RANDOM, fj_stable_sort, &how);
        check_one(300, size, (enum pattern)(size % PATTERNS), fj_sort, &how);
    }
    check_one(100, 1000, RANDOM, fj_stable_sort, &how);
    check_one(50, 70000, RANDOM, fj_sort, &how);
    check_one(50, 70000, REVERSED, fj_sort, &how);
    fjt_destroy(pool);
}

static void large_ones(fj_pool *pool, void *arg)
{
    static const size_t some[] = {4, 8, 16, 32, 40};
    fj_algo_options how = {.pool = pool};
    size_t n = (size_t)fjt_rounds(fjt_sanitized() ? 3000 : 8000);

    (void)arg;
    for (int p = 0; p < PATTERNS; p++)
        for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
            check_one(n + (size_t)p * 77, some[i], (enum pattern)p, fj_stable_sort, &how);
}

FJ_TEST(large_arrays_are_sorted_stably_by_any_number_of_workers, 60)
{
    place_workers(large_ones, NULL);
}

FJ_TEST(a_very_large_array_is_sorted, 60)
{
    size_t n = (size_t)fjt_rounds(fjt_sanitized() ? 20000 : 200000);

    check_one(n, 8, RANDOM, fj_stable_sort, NULL);
    check_one(n / 4, 64, RANDOM, call_qsort, NULL);
    check_one(n, 4, REVERSED, call_qsort, NULL);
    check_one(n, 4, ORGAN, fj_sort, NULL);
}

static void from_here(fj_pool *pool, void *arg)
{
    fj_algo_options how = {.pool = pool};

    (void)arg;
    for (size_t n = 1; n < 5000; n = n * 3 + 1) {
        check_one(n, 8, RANDOM, fj_stable_sort, &how);
        check_one(n, 60, ORGAN, fj_sort, &how);
        check_one(n, 4, NEARLY, call_qsort, NULL);
    }
}

FJ_TEST(sorts_from_everywhere, 30)
{
    place_everywhere(from_here, NULL);
}

static int sort_some(size_t begin, size_t end, void *arg)
{
    for (size_t i = begin; i < end; i++)
        check_one(200 + i * 10, sizes[i % SIZES], RANDOM, sorts[i % 3], arg);
    return FJ_OK;
}

FJ_TEST(sorts_inside_loops, 30)
{
    fj_pool *pool = fjt_pool(4, 0);

    CHECK_EQ(fj_for(0, 60, sort_some, NULL, &(fj_algo_options){.pool = pool, .grain = 1}), FJ_OK);
    fjt_destroy(pool);
}

/* A comparison that itself sorts an array. */
static int sorting_compare(const void *a, const void *b, void *arg)
{
    check_one(100, 8, RANDOM, fj_stable_sort, &(fj_algo_options){.grain = 16});
    return element_compare(a, b, arg);
}

FJ_TEST(a_comparison_may_sort, 30)
{
    fj_pool *pool = fjt_pool(3, 0);
    uint64_t seed = fjt_seed();
    struct elements s;

    elements_init(&s, 100, 8);
    elements_keys(&s, RANDOM, &seed);
    CHECK_EQ(fj_sort(s.base, s.n, s.size, sorting_compare, &s,
                     &(fj_algo_options){.pool = pool, .grain = 16}),
             FJ_OK);
    elements_check_sorted(&s, s.base, true, __LINE__);
    elements_free(&s);
    fjt_destroy(pool);
}

FJ_TEST(any_grain_will_do, 30)
{
    static const size_t grains[] = {1, 2, 15, 16, 17, 100, 5000, SIZE_MAX};
    fj_pool *pool = fjt_pool(4, 0);

    for (size_t i = 0; i < sizeof grains / sizeof grains[0]; i++)
        for (int p = 0; p < PATTERNS; p++) {
            check_one(3000, 8, (enum pattern)p, fj_stable_sort,
                      &(fj_algo_options){.pool = pool, .grain = grains[i]});
            check_one(3000, 48, (enum pattern)p, fj_stable_sort,
                      &(fj_algo_options){.pool = pool, .min_grain = grains[i]});
            check_one(3000, 16, (enum pattern)p, fj_stable_sort,
                      &(fj_algo_options){.pool = pool, .max_grain = grains[i]});
        }
    fjt_destroy(pool);
}

/* ---- Number of comparisons, kinds of elements ----------------------------------------------- */

static unsigned long calls_of(size_t n, size_t size, enum pattern p)
{
    uint64_t seed = fjt_seed();
    struct elements s;

    elements_init(&s, n, size);
    elements_keys(&s, p, &seed);
    check_sort(&s, fj_sort, NULL);
    unsigned long calls = atomic_load(&s.calls);
    elements_free(&s);
    return calls;
}

FJ_TEST(what_is_in_order_takes_one_comparison_for_each, 30)
{
    for (size_t n = 2; n <= 40000; n = n * 3 / 2 + 1)
        for (size_t size = 4; size <= 64; size *= 4) {
            CHECK(calls_of(n, size, SORTED) <= n + 8);
            CHECK(calls_of(n, size, REVERSED) <= n + 8);
            CHECK(calls_of(n, size, EQUAL) <= n + 8);
            CHECK(calls_of(n, size, ORGAN) <= 3 * n + n / 4 + 64);
        }
}

FJ_TEST(random_elements_take_no_more_than_n_log_n_comparisons, 30)
{
    for (size_t n = 2; n <= 40000; n = n * 3 / 2 + 1) {
        unsigned long most = n + 8, calls = calls_of(n, 8, RANDOM);
        for (size_t k = n; k > 1; k = (k + 1) / 2) most += n; /* n times log2 of n, rounded up */
        CHECK(calls <= most - n);
    }
}

/* The library prefetches the objects that elements point to. The tests sort pointers, and numbers
 * that only look like pointers. */
static int pointed_compare(const void *a, const void *b, void *arg)
{
    const unsigned *x = *(const unsigned *const *)a, *y = *(const unsigned *const *)b;

    (void)arg;
    return (*x > *y) - (*x < *y);
}

FJ_TEST(pointers_are_sorted_by_what_they_point_to, 30)
{
    enum { N = 20000 };
    unsigned *value = malloc(N * sizeof *value), **at = malloc(N * sizeof *at);
    uint64_t seed = fjt_seed();

    CHECK(value != NULL && at != NULL);
    for (size_t i = 0; i < N; i++) {
        value[i] = (unsigned)(fjt_random(&seed) >> 40);
        at[i] = &value[i];
    }
    CHECK_EQ(fj_stable_sort(at, N, sizeof *at, pointed_compare, NULL, NULL), FJ_OK);
    for (size_t i = 1; i < N; i++)
        CHECK(*at[i - 1] < *at[i] || (*at[i - 1] == *at[i] && at[i - 1] < at[i]));
    free(at);
    free(value);
}

static int word_compare(const void *a, const void *b, void *arg)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    (void)arg;
    return (x > y) - (x < y);
}

FJ_TEST(numbers_that_look_like_addresses_are_sorted, 30)
{
    static uint64_t a[20000];
    uint64_t seed = fjt_seed();

    for (size_t i = 0; i < 20000; i++) a[i] = 0x7f0000000000 + fjt_random(&seed) % 0xffffffffff;
    CHECK_EQ(fj_sort(a, 20000, sizeof a[0], word_compare, NULL, NULL), FJ_OK);
    for (size_t i = 1; i < 20000; i++) CHECK(a[i - 1] <= a[i]);
}

struct aligned {
    _Alignas(32) unsigned key;
};

static int aligned_compare(const void *a, const void *b, void *arg)
{
    (void)arg;
    CHECK((uintptr_t)a % 32 == 0 && (uintptr_t)b % 32 == 0);
    unsigned x = ((const struct aligned *)a)->key, y = ((const struct aligned *)b)->key;
    return (x > y) - (x < y);
}

FJ_TEST(elements_are_compared_where_they_are_aligned, 30)
{
    static struct aligned a[5000];
    uint64_t seed = fjt_seed();

    for (size_t n = 10; n <= 5000; n = n * 3 / 2) {
        for (size_t i = 0; i < n; i++) a[i].key = (unsigned)(fjt_random(&seed) >> 33);
        fj_qsort(a, n, sizeof a[0], aligned_compare, NULL);
        for (size_t i = 1; i < n; i++) CHECK(a[i - 1].key <= a[i].key);
    }
}

/* ---- Comparisons that contradict themselves ------------------------------------------------- */

static void lied_to(size_t n, size_t size, int lie, sort_fn *sort, const fj_algo_options *how)
{
    uint64_t seed = fjt_seed();
    struct elements s;

    if (!case_is_tried(n)) return;
    elements_init(&s, n, size);
    elements_keys(&s, lie % 2 == 0 ? RANDOM : FEW_KEYS, &seed);
    s.lie = lie;
    CHECK_EQ(sort(s.base, s.n, s.size, element_compare, &s, how), FJ_OK);
    elements_check_all(&s, s.base, __LINE__);
    elements_free(&s);
}

static void lies(fj_pool *pool, void *arg)
{
    fj_algo_options how = {.pool = pool, .grain = 20};

    (void)arg;
    for (int lie = TRUTH; lie < LIES; lie++)
        for (size_t i = 0; i < SIZES; i++) {
            for (size_t n = i; n < 200; n += SIZES) lied_to(n, sizes[i], lie, sorts[n % 3], NULL);
            lied_to(1500, sizes[i], lie, fj_stable_sort, &how);
            lied_to(700, sizes[i], lie, fj_sort, &how);
        }
}

FJ_TEST(comparisons_that_contradict_themselves_lose_nothing, 30)
{
    place_workers(lies, NULL);
}

/* ---- Without memory ------------------------------------------------------------------------- */

FJ_TEST(without_memory_it_is_sorted_in_place, 30)
{
    if (!FJI_FAULTS) fjt_skip("no faults in this build");
    fj_pool *pool = fjt_pool(2, 0);
    for (long allowed = 0; allowed < 3; allowed++)
        for (size_t i = 0; i < SIZES; i++)
            for (int p = 0; p < PATTERNS; p++)
                for (size_t n = 1; n < 3000; n = n * 5 + 3) {
                    fji_algo_fail_after(allowed);
                    check_one(n, sizes[i], (enum pattern)p, sorts[i % 2],
                              &(fj_algo_options){.pool = pool});
                    check_one(n, sizes[i], (enum pattern)p, fj_stable_sort, NULL);
                    check_one(n, sizes[i], (enum pattern)p, call_qsort, NULL);
                }
    fji_algo_fail_after(-1);
    fjt_destroy(pool);
}

static int plain_compare(const void *a, const void *b, void *arg)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

    (void)arg;
    return (x > y) - (x < y);
}

FJ_TEST(without_a_pool_the_caller_sorts, 30)
{
    static unsigned a[3000];
    uint64_t seed = fjt_seed();

    if (!FJI_FAULTS) fjt_skip("no faults in this build");
    fji_fault_set(FJI_FAULT_ALLOC, 1, 1000000);
    for (size_t n = 2; n <= 3000; n = n * 3 / 2) {
        for (size_t i = 0; i < n; i++) a[i] = (unsigned)(fjt_random(&seed) >> 33);
        fj_qsort(a, n, sizeof a[0], plain_compare, NULL);
        for (size_t i = 1; i < n; i++) CHECK(a[i - 1] <= a[i]);
    }
    fji_fault_set(FJI_FAULT_ALLOC, 1, 0);
}

FJ_TEST(without_memory_every_length_is_sorted, 30)
{
    if (!FJI_FAULTS) fjt_skip("no faults in this build");
    fji_algo_fail_after(0);
    for (size_t n = 0; n < 300; n++) {
        check_one(n, 40, (enum pattern)(n % PATTERNS), fj_stable_sort, NULL);
        check_one(n, 140, (enum pattern)(n % PATTERNS), sorts[n % 2], NULL);
    }
}

FJ_TEST(without_memory_lies_lose_nothing, 30)
{
    if (!FJI_FAULTS) fjt_skip("no faults in this build");
    fji_algo_fail_after(0);
    for (int lie = TRUTH; lie < LIES; lie++)
        for (size_t n = 2; n < 1200; n = n * 3 / 2 + 1)
            for (size_t i = 0; i < 3; i++) lied_to(n, 32 + 90 * i, lie, sorts[i], NULL);
}

FJ_TEST(without_memory_it_takes_n_log_n_comparisons, 30)
{
    if (!FJI_FAULTS) fjt_skip("no faults in this build");
    fji_algo_fail_after(0);
    for (int p = 0; p < PATTERNS; p++) {
        unsigned long calls = calls_of(8192, 8, (enum pattern)p);
        CHECK(calls <= 2 * 8192 * 13);
    }
}

/* ---- Cancelling ----------------------------------------------------------------------------- */

/* Cancels in comparison number `at`. Returns false if the sort needed fewer comparisons. */
static bool cancelled_at(fj_pool *pool, size_t n, size_t size, unsigned long at, sort_fn *sort,
                         enum pattern p)
{
    uint64_t seed = fjt_seed();
    struct elements s;
    fj_token token;

    fj_token_init(&token, NULL);
    elements_init(&s, n, size);
    elements_keys(&s, p, &seed);
    s.token = &token;
    s.at = at;
    int code = sort(
        s.base, n, size, element_compare, &s,
        &(fj_algo_options){.pool = pool, .token = &token, .grain = at % 2 == 0 ? 16 : 40});
    bool reached = atomic_load(&s.calls) >= at;
    CHECK(code == FJ_OK || (reached && code == FJ_ECANCELED));
    if (code == FJ_OK)
        elements_check_sorted(&s, s.base, sort == fj_stable_sort, __LINE__);
    else
        elements_check_all(&s, s.base, __LINE__);
    elements_free(&s);
    return reached;
}

static void cancels(fj_pool *pool, void *arg)
{
    (void)arg;
    for (int p = 0; p < PATTERNS; p += 2)
        for (size_t i = 0; i < 2; i++) {
            unsigned long at = 1, step = fjt_sanitized() ? 3 : 1;
            while (cancelled_at(pool, 120, i == 0 ? 8 : 48, at, sorts[i], (enum pattern)p))
                at += step;
        }
}

FJ_TEST(cancelled_at_any_comparison_nothing_is_lost, 60)
{
    place_workers(cancels, NULL);
}

FJ_TEST(cancelled_without_memory_nothing_is_lost, 30)
{
    if (!FJI_FAULTS) fjt_skip("no faults in this build");
    fji_algo_fail_after(0);
    for (size_t i = 0; i < 2; i++)
        for (unsigned long at = 1; cancelled_at(NULL, 600, 80, at, sorts[i], RANDOM); at += 17)
            continue;
}

FJ_TEST(a_cancel_ends_it_soon, 30)
{
    fj_pool *pool = fjt_pool(2, 0);
    uint64_t seed = fjt_seed();

    for (size_t size = 4; size <= 64; size *= 16) {
        struct elements s;
        fj_token token;
        fj_token_init(&token, NULL);
        elements_init(&s, 200000, size);
        elements_keys(&s, RANDOM, &seed);
        s.token = &token;
        s.at = 5000;
        CHECK_EQ(fj_sort(s.base, s.n, size, element_compare, &s,
                         &(fj_algo_options){.pool = pool, .token = &token}),
                 FJ_ECANCELED);
        CHECK(atomic_load(&s.calls) < 5000 + 4 * 16384);
        elements_check_all(&s, s.base, __LINE__);
        elements_free(&s);
    }
    fjt_destroy(pool);
}

struct canceller {
    fj_token token;
    atomic_int go, stop;
};

/* Waits until `go` is set, then cancels the token after a random time. */
static void *cancel_some_time(void *arg)
{
    struct canceller *c = arg;
    uint64_t seed = fjt_seed();

    while (!atomic_load(&c->stop)) {
        if (!atomic_exchange(&c->go, 0)) continue;
        fjt_spin_us((int64_t)(fjt_random(&seed) >> 33) % 2000);
        fj_token_cancel(&c->token);
    }
    return NULL;
}

FJ_TEST(cancelled_at_any_time_nothing_is_lost, 30)
{
    static struct canceller c;
    fj_pool *pool = fjt_pool(2, 0);
    uint64_t seed = fjt_seed();
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, cancel_some_time, &c) == 0);
    for (long i = 0; i < fjt_rounds(30); i++) {
        struct elements s;
        elements_init(&s, 4000, i % 2 == 0 ? 8 : 400);
        elements_keys(&s, (enum pattern)(i % PATTERNS), &seed);
        fj_token_init(&c.token, NULL);
        atomic_store(&c.go, 1);
        int code = fj_sort(s.base, s.n, s.size, element_compare, &s,
                           &(fj_algo_options){.pool = pool, .token = &c.token});
        CHECK(code == FJ_OK || code == FJ_ECANCELED);
        if (code == FJ_OK) elements_check_sorted(&s, s.base, false, __LINE__);
        elements_check_all(&s, s.base, __LINE__);
        while (!fj_token_is_cancelled(&c.token))
            /* The other thread uses the token until it has cancelled it. */
            fjt_sleep_us(10);
        elements_free(&s);
    }
    atomic_store(&c.stop, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    fjt_destroy(pool);
}

FJ_TEST(cancelled_before_nothing_is_moved, 30)
{
    fj_token token;
    uint64_t seed = fjt_seed();
    struct elements s;

    fj_token_init(&token, NULL);
    fj_token_cancel(&token);
    elements_init(&s, 1000, 8);
    elements_keys(&s, RANDOM, &seed);
    CHECK_EQ(fj_sort(s.base, s.n, 8, element_compare, &s, &(fj_algo_options){.token = &token}),
             FJ_ECANCELED);
    CHECK_EQ(atomic_load(&s.calls), 0);
    for (size_t i = 0; i < s.n; i++) CHECK_EQ(id_of(s.base + i * 8, 8), i);
    elements_free(&s);
}

struct with_token {
    fj_task task;
    struct elements *s;
    int code;
};

static int sort_under_token(fj_task *t)
{
    struct with_token *w = (struct with_token *)t;

    w->code = fj_stable_sort(w->s->base, w->s->n, w->s->size, element_compare, w->s, NULL);
    return FJ_OK;
}

FJ_TEST(the_token_of_the_calling_task_cancels, 30)
{
    fj_pool *pool = fjt_pool(3, 0);
    uint64_t seed = fjt_seed();
    struct elements s;
    fj_token token;
    struct with_token w = {.s = &s};

    fj_token_init(&token, NULL);
    elements_init(&s, 50000, 8);
    elements_keys(&s, RANDOM, &seed);
    s.token = &token;
    s.at = 1000;
    fj_task_init(&w.task, sort_under_token);
    CHECK_EQ(fj_invoke_token(pool, &w.task, &token), FJ_OK);
    CHECK_EQ(w.code, FJ_ECANCELED);
    elements_check_all(&s, s.base, __LINE__);
    elements_free(&s);
    fjt_destroy(pool);
}

static int stopping_compare(const void *a, const void *b, void *arg)
{
    struct elements *s = arg;
    int code = element_compare(a, b, s);

    if (atomic_load(&s->calls) == 1000) CHECK_EQ(fj_pool_shutdown_now(fj_current_pool()), FJ_OK);
    return code;
}

FJ_TEST(a_pool_that_stops_cancels, 30)
{
    for (size_t size = 8; size <= 48; size += 40) {
        fj_pool *pool = fjt_pool(1, 0);
        uint64_t seed = fjt_seed();
        struct elements s;
        elements_init(&s, 50000, size);
        elements_keys(&s, RANDOM, &seed);
        CHECK_EQ(fj_sort(s.base, s.n, size, stopping_compare, &s, &(fj_algo_options){.pool = pool}),
                 FJ_ECANCELED);
        elements_check_all(&s, s.base, __LINE__);
        elements_free(&s);
        fjt_destroy(pool);
    }
}

/* ---- Progress, invalid arguments ------------------------------------------------------------ */

static void progress_of(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t n = 0; n < 20000; n = n * 7 / 4 + 1)
        for (size_t size = 8; size <= 48; size += 40)
            for (int p = 0; p < 3; p++) {
                uint64_t seed = fjt_seed();
                struct elements s;
                fj_progress progress;
                fj_progress_init(&progress, 0);
                elements_init(&s, n, size);
                elements_keys(&s, (enum pattern)p, &seed);
                s.look = &progress;
                s.most = n;
                check_sort(
                    &s, sorts[n % 2],
                    &(fj_algo_options){.pool = pool, .progress = &progress, .grain = n % 3 * 30});
                CHECK_EQ(fj_progress_done(&progress), n);
                CHECK_EQ(fj_progress_total(&progress), n);
                elements_free(&s);
            }
}

FJ_TEST(progress_grows_to_the_number_of_elements, 30)
{
    place_workers(progress_of, NULL);
    progress_of(NULL, NULL);
}

FJ_TEST(progress_ends_without_memory_too, 30)
{
    if (!FJI_FAULTS) fjt_skip("no faults in this build");
    fji_algo_fail_after(0);
    progress_of(NULL, NULL);
}

FJ_TEST(what_cannot_be_meant_is_refused, 30)
{
    int a[3] = {3, 2, 1};
    struct elements s = {.n = 0};

    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(sorts[i](NULL, 3, 4, element_compare, &s, NULL), FJ_EINVAL);
        CHECK_EQ(sorts[i](a, 3, 0, element_compare, &s, NULL), FJ_EINVAL);
        CHECK_EQ(sorts[i](a, 3, 4, NULL, &s, NULL), FJ_EINVAL);
        CHECK_EQ(sorts[i](a, 0, 4, NULL, &s, NULL), FJ_EINVAL);
        CHECK_EQ(sorts[i](a, SIZE_MAX, 4, element_compare, &s, NULL), FJ_EINVAL);
        CHECK_EQ(sorts[i](a, SIZE_MAX / 2, 2, element_compare, &s, NULL), FJ_EINVAL);
        CHECK_EQ(sorts[i](a, 3, 4, element_compare, &s, &(fj_algo_options){.reserved = {1}}),
                 FJ_EINVAL);
        CHECK_EQ(sorts[i](NULL, 0, 4, element_compare, &s, NULL), FJ_OK);
    }
    fj_qsort(NULL, 3, 4, element_compare, &s);
    fj_qsort(a, 3, 0, element_compare, &s);
    fj_qsort(a, 3, 4, NULL, &s);
    fj_qsort(a, SIZE_MAX, 4, element_compare, &s);
    fj_qsort(NULL, 0, 0, NULL, NULL);
    CHECK(a[0] == 3 && a[1] == 2 && a[2] == 1);
}

FJ_TEST(a_pool_that_is_shut_down_is_reported, 30)
{
    fj_pool *pool = fjt_pool(1, 0);
    int a[3] = {3, 2, 1};
    struct elements s = {.n = 0};

    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_sort(a, 3, 4, element_compare, &s, &(fj_algo_options){.pool = pool}), FJ_EREJECTED);
    CHECK(a[0] == 3 && a[1] == 2 && a[2] == 1);
    fjt_destroy(pool);
}
