/* SPDX-License-Identifier: MIT */
/*
 * inconsistent.c - comparisons and predicates that contradict themselves do no harm
 */
#include "fjtest.h"

#define INCONSISTENT_FAIL(...) fjt_fail(__FILE__, __LINE__, __VA_ARGS__)
#include "inconsistent.h"

static uint64_t seed;

static size_t below(size_t n)
{
    return (size_t)(fjt_random(&seed) % n);
}

/* A trial of this call whose other parameters are random. */
static struct trial trial_of(enum call call, enum answer answer, size_t size, size_t n)
{
    static const unsigned keys[] = {0, 1, 2, 5, 100, 1u << 31};
    static uint8_t script[16];
    struct trial t = {.call = call, .answer = answer, .size = size, .n = n};

    for (size_t i = 0; i < sizeof script; i++) script[i] = (uint8_t)fjt_random(&seed);
    t.na = below(4) != 0 ? below(n + 1) : n / 2;
    t.keys = keys[below(sizeof keys / sizeof keys[0])];
    t.seed = fjt_random(&seed);
    t.script = script;
    t.script_bytes = 1 + below(sizeof script);
    return t;
}

/* Whether to run this trial. A run with a small scale runs only some of them; the seed determines
 * which ones. */
static bool trial_is_due(void)
{
    static unsigned long trials;
    unsigned long rounds = (unsigned long)fjt_rounds(100), every = rounds >= 50 ? 1 : 50 / rounds;

    return (fjt_seed() + trials++) % every == 0;
}

static enum answer any_answer(void)
{
    return (enum answer)below(ANSWERS);
}

/* ---- One worker or two ---------------------------------------------------------------------- */

FJ_TEST(every_size_of_elements, 60)
{
    fj_pool *pool = fjt_pool(2, 0);

    seed = fjt_seed();
    for (size_t size = 1; size <= SIZE_MOST; size++)
        for (int answer = 0; answer < ANSWERS; answer++)
            for (int call = CALL_SORT; call <= CALL_MERGE; call++) {
                if (!trial_is_due()) continue;
                size_t n = below(3) == 0 ? below(2001) : below(100);
                struct trial t = trial_of((enum call)call, (enum answer)answer, size, n);
                t.pool = below(2) == 0 ? pool : NULL;
                t.grain = below(2) == 0 ? 16 : 0;
                trial_run(t);
            }
    fjt_destroy(pool);
}

FJ_TEST(every_type, 60)
{
    fj_pool *pool = fjt_pool(2, 0);

    seed = fjt_seed();
    for (size_t i = 0; i < TYPED; i++)
        for (int answer = 0; answer < ANSWERS; answer++)
            for (int call = CALL_TYPED_SORT; call <= CALL_TYPED_MERGE; call++)
                for (int k = 0; k < 12; k++) {
                    if (!trial_is_due()) continue;
                    size_t n = k % 3 == 0 ? below(2001) : below(100);
                    struct trial t = trial_of((enum call)call, (enum answer)answer,
                                              typed_sizes[i].size, n);
                    t.pool = k % 2 == 0 ? pool : NULL;
                    t.grain = k % 4 == 0 ? 16 : 0;
                    trial_run(t);
                }
    fjt_destroy(pool);
}

FJ_TEST(every_length_of_arrays, 60)
{
    fj_pool *pool = fjt_pool(2, 0);

    seed = fjt_seed();
    for (size_t n = 0; n <= 2000; n++)
        for (int k = 0; k < 3; k++) {
            if (!trial_is_due()) continue;
            struct trial t = trial_of((enum call)below(CALLS), any_answer(), 1 + below(SIZE_MOST),
                                      n);
            t.pool = n % 2 == 0 ? pool : NULL;
            trial_run(t);
        }
    fjt_destroy(pool);
}

FJ_TEST(tests_of_filters_and_searches, 60)
{
    fj_pool *pool = fjt_pool(4, 0);

    seed = fjt_seed();
    for (size_t size = 1; size <= SIZE_MOST; size += size < 32 ? 1 : 17)
        for (int answer = 0; answer < ANSWERS; answer++)
            for (int call = CALL_FILTER; call <= CALL_FIND; call++) {
                if (!trial_is_due()) continue;
                struct trial t = trial_of((enum call)call, (enum answer)answer, size, below(8000));
                t.pool = pool;
                t.grain = below(2) == 0 ? 64 : 0;
                trial_run(t);
            }
    fjt_destroy(pool);
}

/* ---- Many workers --------------------------------------------------------------------------- */

FJ_TEST(many_workers, 60)
{
    fj_pool *pool = fjt_pool(8, 0);

    seed = fjt_seed();
    for (int answer = 0; answer < ANSWERS; answer++)
        for (int call = 0; call < CALLS; call++)
            for (int k = 0; k < 4; k++) {
                if (!trial_is_due()) continue;
                size_t size = k % 2 == 0 ? 1 + below(64) : 65 + below(SIZE_MOST - 64);
                struct trial t = trial_of((enum call)call, (enum answer)answer, size,
                                          2000 + below(10000));
                t.pool = pool;
                t.grain = 64;
                trial_run(t);
            }
    fjt_destroy(pool);
}

/* Arrays so large that all workers partition a range together. */
FJ_TEST(large_arrays, 60)
{
    static const size_t sizes[] = {4, 72};
    fj_pool *pool = fjt_pool(4, 0);

    seed = fjt_seed();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int answer = 0; answer < ANSWERS; answer++) {
            if (!trial_is_due()) continue;
            struct trial t = trial_of(CALL_TYPED_SORT, (enum answer)answer, sizes[i], 270000);
            t.pool = pool;
            trial_run(t);
        }
    fjt_destroy(pool);
}

/* ---- Cancels and lack of memory ------------------------------------------------------------- */

FJ_TEST(cancelled_by_a_comparison, 60)
{
    fj_pool *pool = fjt_pool(4, 0);

    seed = fjt_seed();
    for (int k = 0; k < 3000; k++) {
        if (!trial_is_due()) continue;
        size_t n = 1 + below(k % 8 == 0 ? 8000 : 300);
        struct trial t = trial_of((enum call)below(CALLS), any_answer(), 1 + below(SIZE_MOST), n);
        t.pool = pool;
        t.grain = below(2) == 0 ? 32 : 0;
        t.end = 1 + below(n * 8);
        trial_run(t);
    }
    fjt_destroy(pool);
}

FJ_TEST(without_memory, 60)
{
    fj_pool *pool = fjt_pool(2, 0);

    if (!FJI_FAULTS) fjt_skip("no faults in this build");
    seed = fjt_seed();
    for (int k = 0; k < 3000; k++) {
        if (!trial_is_due()) continue;
        size_t n = below(k % 8 == 0 ? 4000 : 300);
        struct trial t = trial_of((enum call)below(CALLS), any_answer(), 1 + below(SIZE_MOST), n);
        t.pool = k % 2 == 0 ? pool : NULL;
        t.no_memory = true;
        trial_run(t);
    }
    fjt_destroy(pool);
}

/* ---- Cases that have failed before ---------------------------------------------------------- */

FJ_TEST(large_elements_by_a_coin, 60)
{
    seed = fjt_seed();
    for (size_t i = 0; i < TYPED; i++)
        for (int k = 0; k < 20; k++) {
            if (!trial_is_due()) continue;
            trial_run(trial_of(CALL_TYPED_SORT, ANSWER_RANDOM, typed_sizes[i].size, 1000));
        }
}

/* The comparison says that each pivot is equal to the elements before it, and less than all
 * elements after it. Each partition step then removes only one element from the range. */
FJ_TEST(cuts_that_take_one_element_are_limited, 60)
{
    fj_pool *pool = fjt_pool(1, 0);

    seed = fjt_seed();
    for (size_t i = 0; i < TYPED; i++)
        for (size_t n = 100; n <= 20000; n *= 3) {
            if (n > 1000 && !trial_is_due()) continue;
            struct trial t = trial_of(CALL_TYPED_SORT, ANSWER_COPY_FIRST, typed_sizes[i].size, n);
            t.pool = pool;
            trial_run(t);
        }
    fjt_destroy(pool);
}
