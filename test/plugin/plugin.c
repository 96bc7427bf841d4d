/* SPDX-License-Identifier: MIT */
/*
 * plugin.c - a plugin that contains the static library and uses its common pool
 *
 * test/regression/plugin.c loads and unloads it.
 */
#include <forkjoin.h>
#include <forkjoin/algo.h>
#include <forkjoin/block.h>
#include <stdatomic.h>
#include <stdlib.h>

int plugin_use(void);
int plugin_end(void);
void plugin_end_at_unload(void);

FJ_TASK(long, fib, int, n)
{
    if (n < 2) return n;
    fib_task a;
    fib_fork(FJ, &a, n - 1);
    long y = fib_call(FJ, n - 2);
    return fib_join(FJ, &a) + y;
}

static int count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    return FJ_OK;
}

static int sleep_a_little(fj_task *t)
{
    (void)t;
    return fj_sleep_ns(100000);
}

static int body(size_t begin, size_t end, void *arg)
{
    atomic_fetch_add((atomic_int *)arg, (int)(end - begin));
    return FJ_OK;
}

/* Uses tasks, futures, timers and a loop in the common pool. Returns 0 if all results are right. */
int plugin_use(void)
{
    static atomic_int ticks;
    atomic_int n = 0, all = 0;
    fj_future f, *timer, *again;
    long r = 0;

    if (fib_invoke(NULL, &r, 18) != FJ_OK || r != 2584) return 1;
    for (int i = 0; i < 1000; i++)
        if (fj_execute(NULL, count, &n) != FJ_OK) return 2;
    fj_future_init(&f, sleep_a_little);
    if (fj_future_submit(NULL, &f) != FJ_OK || fj_future_join(&f) != FJ_OK) return 3;
    fj_future_fini(&f);
    if (fj_schedule_action(NULL, count, &n, 100000, &timer) != FJ_OK) return 4;
    if (fj_schedule_action_at_fixed_rate(NULL, count, &ticks, 0, 100000, &again) != FJ_OK) return 5;
    if (fj_future_wait(timer, FJ_FOREVER) != FJ_OK) return 6;
    (void)fj_future_cancel(again, 1);
    fj_future_unref(timer);
    fj_future_unref(again);
    if (fj_for(0, 100000, body, &all, NULL) != FJ_OK || atomic_load(&all) != 100000) return 7;
    if (fj_pool_await_quiescence(NULL, FJ_FOREVER) != FJ_OK) return 8;
    return atomic_load(&n) != 1001;
}

int plugin_end(void)
{
    return fj_common_shutdown(FJ_FOREVER);
}

static int at_unload;

void plugin_end_at_unload(void)
{
    at_unload = 1;
}

__attribute__((destructor)) static void plugin_unloaded(void)
{
    if (at_unload && fj_common_shutdown(FJ_FOREVER) != FJ_OK) abort();
}
