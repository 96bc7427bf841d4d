/* SPDX-License-Identifier: MIT */
/*
 * state_checks.h - the environment of the conformance tests, and checks of a future's state
 *
 * FJT_WORKERS is the number of workers of a test that does not require a particular one; the
 * default is 4. With FJT_FIFO=1 the pools of these tests run the oldest task first.
 *
 * A check takes any future: embedded or allocated, a timer, or the future of a completer. It calls
 * every function that returns something about one future.
 */
#ifndef STATE_CHECKS_H
#define STATE_CHECKS_H

#include <stdlib.h>
#include <string.h>

#include "fjtest.h"

#define MS ((int64_t)1000000)
#define LONG_NS (3600 * 1000 * MS) /* longer than any test, so the watchdog ends the test first */

/* ---- The environment --------------------------------------------------------------------- */

/* The number of workers for a test that does not require a particular one. */
static inline int conformance_workers(void)
{
    const char *text = getenv("FJT_WORKERS");
    int n = text != NULL ? atoi(text) : 4;

    return n >= 1 ? n : 1;
}

/* The same, but at least n, for tasks that have to run at the same time. */
static inline int conformance_workers_for(int n)
{
    int workers = conformance_workers();

    return workers > n ? workers : n;
}

static inline unsigned conformance_flags(void)
{
    const char *text = getenv("FJT_FIFO");

    return text != NULL && strcmp(text, "1") == 0 ? FJ_POOL_FIFO : 0;
}

/* ---- A future that is not done ----------------------------------------------------------- */

/* Checks that f is not done: it is new, queued or running. The calls change nothing. */
static inline void state_check_open(const fj_future *f)
{
    void *result = &result;

    CHECK_EQ(fj_future_is_done(f), 0);
    CHECK_EQ(fj_future_succeeded(f), 0);
    CHECK_EQ(fj_future_failed(f), 0);
    CHECK_EQ(fj_future_is_cancelled(f), 0);
    CHECK_EQ(fj_future_state(f), FJ_FUTURE_RUNNING);
    CHECK_EQ(fj_future_error(f), FJ_OK);
    CHECK_EQ(fj_future_result(f, &result), FJ_EBUSY);
    CHECK(result == &result);
}

/* The same for a future that cannot end meanwhile: a wait whose time has expired returns
 * FJ_ETIMEDOUT. */
static inline void state_check_stuck(fj_future *f)
{
    static const int64_t past[] = {0, -1, INT64_MIN};
    void *result = &result;

    state_check_open(f);
    for (size_t i = 0; i < sizeof past / sizeof past[0]; i++) {
        CHECK_EQ(fj_future_get(f, past[i], &result), FJ_ETIMEDOUT);
        CHECK_EQ(fj_future_wait(f, past[i]), FJ_ETIMEDOUT);
        CHECK_EQ(fj_future_wait_quietly(f, past[i]), FJ_ETIMEDOUT);
    }
    CHECK(result == &result);
    state_check_open(f);
}

/* ---- A future that is done --------------------------------------------------------------- */

static inline void state_check_flags(const fj_future *f, int code)
{
    bool normal = code == FJ_OK, cancelled = code == FJ_ECANCELED;

    CHECK_EQ(fj_future_is_done(f), 1);
    CHECK_EQ(fj_future_succeeded(f), normal);
    CHECK_EQ(fj_future_failed(f), !normal);
    CHECK_EQ(fj_future_is_cancelled(f), cancelled);
    CHECK_EQ(fj_future_state(f), normal      ? FJ_FUTURE_SUCCESS
                                 : cancelled ? FJ_FUTURE_CANCELLED
                                             : FJ_FUTURE_FAILED);
    CHECK_EQ(fj_future_error(f), code);
}

/* Every wait returns the outcome at once, however short its timeout is. */
static inline void state_check_waits(fj_future *f, int code, void *value)
{
    static const int64_t limits[] = {FJ_FOREVER, LONG_NS, 1, 0, -1, INT64_MIN};
    void *result = &result, *want = code == FJ_OK ? value : (void *)&result;

    CHECK_EQ(fj_future_result(f, NULL), code);
    CHECK_EQ(fj_future_result(f, &result), code);
    CHECK(result == want);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        result = &result;
        CHECK_EQ(fj_future_join(f), code);
        CHECK_EQ(fj_future_get(f, limits[i], NULL), code);
        CHECK_EQ(fj_future_get(f, limits[i], &result), code);
        CHECK(result == want);
        CHECK_EQ(fj_future_wait(f, limits[i]), FJ_OK);
        CHECK_EQ(fj_future_wait_quietly(f, limits[i]), FJ_OK);
    }
}

/* Calls that would resolve f again are refused. */
static inline void state_check_final(fj_future *f, int code)
{
    static int other;

    for (int interrupt = 0; interrupt < 2; interrupt++)
        CHECK_EQ(fj_future_cancel(f, interrupt), code == FJ_ECANCELED);
    CHECK_EQ(fj_future_complete(f, &other), 0);
    CHECK_EQ(fj_future_complete_quietly(f), 0);
    CHECK_EQ(fj_future_fail(f, 9999), 0);
    CHECK_EQ(fj_future_fail(f, 0), 0);
}

/* Checks that f is done with `code`, and with `value` if that is FJ_OK, and that no call changes
 * that. */
static inline void state_check_done(fj_future *f, int code, void *value)
{
    for (int round = 0; round < 2; round++) {
        state_check_flags(f, code);
        state_check_waits(f, code, value);
        state_check_final(f, code);
    }
    state_check_flags(f, code);
    state_check_waits(f, code, value);
}

#endif /* STATE_CHECKS_H */
