/* SPDX-License-Identifier: MIT */
/*
 * wake.c - whether the calling thread has woken a thread that slept
 *
 * A thread outside the pool that waits for a task does not spin after such a wake-up (await.c).
 */
#include "sched/wake.h"

#include <fjtest.h>
#include <stdatomic.h>

static atomic_int runs, leave;

static int counts(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static int stays(void *arg)
{
    counts(arg);
    while (!atomic_load(&leave)) fjt_sleep_us(10);
    return FJ_OK;
}

static void await_runs(int n)
{
    while (atomic_load(&runs) < n) fjt_sleep_us(10);
}

static void await_sleep(fj_pool *p)
{
    fji_worker *w = fji_pool_worker(p, 0);

    CHECK(w);
    while (w && fji_load_acquire(&w->park) != FJI_PARK_PARKED) fjt_sleep_us(10);
}

FJ_TEST(wake_up_of_a_sleeper_is_noted_once, 30)
{
    fj_pool *p = fjt_pool(1, 0);

    CHECK(!fji_wake_made());
    CHECK_EQ(fj_execute(p, counts, NULL), FJ_OK); /* starts the thread */
    CHECK(fji_wake_made());
    CHECK(!fji_wake_made());
    await_runs(1);
    await_sleep(p);
    CHECK_EQ(fj_execute(p, stays, NULL), FJ_OK); /* wakes it */
    CHECK(fji_wake_made());
    await_runs(2);
    CHECK_EQ(fj_execute(p, counts, NULL), FJ_OK); /* the only worker is awake */
    CHECK(!fji_wake_made());
    atomic_store(&leave, 1);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&runs), 3);
}
