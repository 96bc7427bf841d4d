/* SPDX-License-Identifier: MIT */
/*
 * fjtest.h - the test framework: one property per test, each in its own process
 *
 *     FJ_TEST(join_returns_the_code_of_the_body, 10)
 *     {
 *         CHECK_EQ(fj_join(&t), 42);
 *     }
 *
 * FJ_TEST(name, seconds) registers a test with its time limit. The framework runs
 * each test in a child process of its own, so a crash, a leaked thread or a
 * changed environment ends with it. When the limit is over, a watchdog thread in
 * the child dumps every pool given to fjt_watch() and fails the test. Limits are
 * for hangs: they are multiplied by FJT_PATIENCE (default 4; sanitizer and
 * valgrind runs set more).
 *
 * Programs take --list, --seed N, --scale X and name filters. FJT_SCALE or
 * --scale multiplies the rounds of loops that ask fjt_rounds().
 */
#ifndef FJTEST_H
#define FJTEST_H

#include <forkjoin.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct fjt_test {
    const char *name;
    const char *file;
    void (*run)(void);
    int seconds;
    struct fjt_test *next;
} fjt_test;

void fjt_register(fjt_test *t);

#define FJ_TEST(test_name, limit)                                          \
    static void test_name(void);                                           \
    __attribute__((constructor)) static void fjt_add_##test_name(void)     \
    {                                                                      \
        static fjt_test t = {#test_name, __FILE__, test_name, (limit), 0}; \
        fjt_register(&t);                                                  \
    }                                                                      \
    static void test_name(void)

/* Ends the test (the child process) as failed, with the place; from any thread. */
__attribute__((noreturn, format(printf, 3, 4))) void fjt_fail(const char *file, int line,
                                                              const char *fmt, ...);

/* Ends the test as skipped: something it needs is not there. */
__attribute__((noreturn)) void fjt_skip(const char *why);

#define CHECK(cond)                                                     \
    do {                                                                \
        if (!(cond)) fjt_fail(__FILE__, __LINE__, "failed: %s", #cond); \
    } while (0)

#define CHECK_EQ(a, b)                                                                         \
    do {                                                                                       \
        long long fjt_a = (long long)(a), fjt_b = (long long)(b);                              \
        if (fjt_a != fjt_b)                                                                    \
            fjt_fail(__FILE__, __LINE__, "%s = %lld, wanted %s = %lld", #a, fjt_a, #b, fjt_b); \
    } while (0)

/* The watchdog dumps this pool on a time-out; fjt_unwatch() before it is freed. */
void fjt_watch(fj_pool *pool);
void fjt_unwatch(fj_pool *pool);

/* A watched pool with n workers and these flags, everything else default. */
fj_pool *fjt_pool(int n, unsigned flags);
/* The same with all options given; fails the test on an error. */
fj_pool *fjt_pool_with(const fj_pool_options *o);
/* Unwatches and destroys; fails the test unless that gives FJ_OK. */
void fjt_destroy(fj_pool *pool);

/* n times the scale, at least 1. */
long fjt_rounds(long n);

/* A pseudo-random number; the state starts from the printed seed by fjt_seed(). */
uint64_t fjt_seed(void);
uint64_t fjt_random(uint64_t *state);

/* Monotonic nanoseconds; CPU nanoseconds of the process; waiting without a pool. */
int64_t fjt_now(void);
int64_t fjt_cpu(void);
void fjt_sleep_us(int64_t us);
void fjt_spin_us(int64_t us);

/* How this run is set up, for tests that cannot mean anything otherwise. */
bool fjt_sanitized(void); /* ASan, TSan or MSan */

#endif /* FJTEST_H */
