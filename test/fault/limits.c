/* SPDX-License-Identifier: MIT */
/*
 * limits.c - a refused submission with a timeout leaves no timer behind and calls no action
 */
#include "programs.h"

static atomic_int acted;

static void acts(fj_future *f, void *arg)
{
    CHECK(arg == &acted);
    atomic_fetch_add(&acted, 1);
    (void)fj_future_fail(f, 7);
}

static int ends(void *arg, void **result)
{
    (void)arg, (void)result;
    return FJ_OK;
}

/* Submits one task while call n of this kind and the count - 1 calls after it are refused. Returns
 * whether call n was made. */
static bool submit_refused(enum fji_fault kind, long n, long count, int64_t limit)
{
    fj_pool *p = pool_of(2, 0);
    fj_future *f = NULL;
    int err;

    atomic_store(&acted, 0);
    long before = fji_fault_calls(kind);
    set_fault(kind, n, count);
    err = fj_submit_with_timeout(p, ends, &acted, limit, acts, &f);
    bool met = fji_fault_calls(kind) - before >= n;
    if (err != FJ_OK) {
        CHECK(err == FJ_ENOMEM || err == FJ_EAGAIN);
        CHECK(f == NULL);
        CHECK_EQ(fj_pool_delayed_count(p), 0);
    }
    calm();
    if (err == FJ_OK) {
        int code = fj_future_join(f);
        CHECK(code == FJ_OK || (limit <= 1 && code == 7));
        fj_future_unref(f);
    } else {
        struct timespec moment = {.tv_nsec = 100000};
        nanosleep(&moment, NULL);
        CHECK_EQ(atomic_load(&acted), 0);
    }
    CHECK_EQ(fj_submit_with_timeout(p, ends, NULL, FJ_FOREVER, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fj_future_unref(f);
    end_pool(p, false);
    return met;
}

FJ_TEST(refused_submission_with_a_limit_leaves_nothing_behind, 120)
{
    static const enum fji_fault kinds[] = {FJI_FAULT_ALLOC, FJI_FAULT_RESERVE, FJI_FAULT_COMMIT,
                                           FJI_FAULT_THREAD};
    static const int64_t limits[] = {0, 1, (int64_t)3600 * 1000000000};

    need_faults();
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < 3; i++) {
            for (int ever = 0; ever < 2; ever++) {
                long n = 1;
                while (n < 30 && submit_refused(kinds[k], n, ever ? FOR_EVER : 1, limits[i])) n++;
            }
        }
    }
}

/* No spare timer thread can be started while an action runs. The only timer thread calls the action
 * itself, which delays the other timeouts. */
static atomic_int may_return;

static void acts_slowly(fj_future *f, void *arg)
{
    (void)arg;
    while (!atomic_load(&may_return)) sched_yield();
    (void)fj_future_fail(f, 7);
}

static int left_open(void *arg, void **result)
{
    (void)arg, (void)result;
    return FJ_PENDING;
}

FJ_TEST(limits_are_kept_without_a_thread_to_spare, 60)
{
    need_faults();
    fj_pool *p = pool_of(1, 0);
    fj_future *f, *g;

    CHECK_EQ(fj_submit_with_timeout(p, ends, NULL, 0, NULL, &f), FJ_OK);
    (void)fj_future_join(f);
    fj_future_unref(f);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    set_fault(FJI_FAULT_THREAD, 1, FOR_EVER); /* the pool already has its threads */
    CHECK_EQ(fj_submit_with_timeout(p, left_open, NULL, 0, acts_slowly, &f), FJ_OK);
    CHECK_EQ(fj_submit_with_timeout(p, left_open, NULL, 1000, NULL, &g), FJ_OK);
    CHECK_EQ(fj_future_wait(g, 2000000), FJ_ETIMEDOUT);
    CHECK(!fj_future_is_done(g));
    atomic_store(&may_return, 1);
    CHECK_EQ(fj_future_join(f), 7);
    CHECK_EQ(fj_future_join(g), FJ_ETIMEDOUT);
    calm();
    fj_future_unref(f);
    fj_future_unref(g);
    end_pool(p, false);
}
