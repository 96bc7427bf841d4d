/* SPDX-License-Identifier: MIT */
/*
 * fjtest.h - the test framework: one property per test, each in its own process
 *
 *     FJ_TEST(join_returns_the_code_of_the_body, 10)
 *     {
 *         CHECK_EQ(fj_join(&t), 42);
 *     }
 *
 * FJ_TEST(name, seconds) registers a test and its time limit. The framework runs each test in a
 * child process of its own, so that a crash, a leaked thread or a changed environment does not
 * affect other tests. When the limit has passed, a watchdog thread in the child process dumps every
 * pool given to fjt_watch() and fails the test. The limits exist only to end hangs. They are
 * multiplied by FJT_PATIENCE, which is 4 by default and more in runs with sanitizers or valgrind.
 *
 * Programs take --list, --seed N, --scale X and name filters. FJT_SCALE or --scale multiplies the
 * rounds of loops that call fjt_rounds().
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

/* Ends the test (the child process) as failed, with the source line. Any thread may call it. */
__attribute__((noreturn, format(printf, 3, 4))) void fjt_fail(const char *file, int line,
                                                              const char *fmt, ...);

/* Ends the test as skipped, because something that it needs is missing. */
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

/* If the test times out, the watchdog dumps this pool. Call fjt_unwatch() before it is freed. */
void fjt_watch(fj_pool *pool);
void fjt_unwatch(fj_pool *pool);

/* Creates a watched pool with n workers and these flags. All other options have their defaults. */
fj_pool *fjt_pool(int n, unsigned flags);
/* Creates a watched pool with these options. Fails the test on an error. */
fj_pool *fjt_pool_with(const fj_pool_options *o);
/* Destroys and unwatches the pool. Fails the test unless fj_pool_destroy() returns FJ_OK. */
void fjt_destroy(fj_pool *pool);

/* Returns n times the scale, but at least 1. */
long fjt_rounds(long n);

/* fjt_random() returns a pseudo-random number. The state starts at fjt_seed(), the printed seed. */
uint64_t fjt_seed(void);
uint64_t fjt_random(uint64_t *state);

/* Monotonic time in ns, CPU time of the process in ns, and two ways to wait that use no pool. */
int64_t fjt_now(void);
int64_t fjt_cpu(void);
void fjt_sleep_us(int64_t us);
void fjt_spin_us(int64_t us);

/* Properties of this build, for tests that make no sense in some builds. */
bool fjt_sanitized(void); /* built with ASan, TSan or MSan */

#endif /* FJTEST_H */
