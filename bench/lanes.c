/* SPDX-License-Identifier: MIT */
/*
 * lanes.c - actions through lanes, through the pool itself, and through other thread pools
 *
 * The program is called as `lanes RUNTIME`. The runtimes are fj (lanes), execute (fj_execute()), glib
 * (GThreadPool) and uv (uv_queue_work()). All have two threads. It prints one line for each figure:
 *
 *     result RUNTIME NAME VALUE
 *
 * The figures are
 *
 *   flood_W    time in ns for each of a million small actions that one thread submits, from the
 *              first submission until all have run; W is the width: 1, 3, or 0 for no limit
 *   chain_W    the same, but each action submits the next one, so only one is queued at a time
 *   high_us    median of the time until an action of high priority begins, while 100000 normal
 *              actions of 1 us each wait in other lanes
 *   plain_us   the same, while 100000 plain submissions wait
 *
 * glib has widths 1 and 3, as the number of threads of the pool, and no figure for the priority,
 * because its pool has none. uv has no width.
 */
#define _GNU_SOURCE
#include <forkjoin.h>
#include <forkjoin/lane.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef BENCH_GLIB
#include <glib.h>
#endif
#ifdef BENCH_UV
#include <uv.h>
#endif

enum { FLOOD = 1000000, CHAIN = 300000, QUEUED = 100000, ROUNDS = 5, NORMAL_LANES = 10 };

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static void must(int code)
{
    if (code == FJ_OK) return;
    fprintf(stderr, "lanes: %s\n", fj_strerror(code));
    exit(1);
}

static void result(const char *runtime, const char *name, double value)
{
    printf("result %s %s %.3f\n", runtime, name, value);
}

static void result_of_width(const char *runtime, const char *name, int width, double value)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%s_%d", name, width);
    result(runtime, text, value);
}

static atomic_int done;

/* The small action. */
static int count(void *arg)
{
    (void)arg;
    atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
    return 0;
}

static void await_done(int n)
{
    const struct timespec pause = {0, 20000};

    while (atomic_load_explicit(&done, memory_order_acquire) < n) nanosleep(&pause, NULL);
}

/* ---- This library ---- */

static fj_pool *pool;
static fj_lane *lane; /* NULL: fj_execute() */

static void give(fj_action_fn *action)
{
    must(lane != NULL ? fj_lane_execute(lane, action, NULL) : fj_execute(pool, action, NULL));
}

static int link_run(void *arg)
{
    (void)arg;
    if (atomic_fetch_add_explicit(&done, 1, memory_order_relaxed) + 1 < CHAIN) give(link_run);
    return 0;
}

static void fj_figures(const char *runtime, int width)
{
    atomic_store(&done, 0);
    int64_t begun = now_ns();
    for (int i = 0; i < FLOOD; i++) give(count);
    await_done(FLOOD);
    result_of_width(runtime, "flood", width, (double)(now_ns() - begun) / FLOOD);
    atomic_store(&done, 0);
    begun = now_ns();
    give(link_run);
    await_done(CHAIN);
    result_of_width(runtime, "chain", width, (double)(now_ns() - begun) / CHAIN);
}

static void fj_lanes(void)
{
    static const int widths[] = {1, 3, 0};

    for (int i = 0; i < 3; i++) {
        must(fj_lane_create(&lane, &(fj_lane_options){.pool = pool, .width = (uint32_t)widths[i]}));
        fj_figures("fj", widths[i]);
        (void)fj_lane_destroy(lane);
    }
    lane = NULL;
}

/* ---- Priority ---- */

static int work_1us(void *arg)
{
    (void)arg;
    for (int64_t end = now_ns() + 1000; now_ns() < end;) {}
    atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
    return 0;
}

static atomic_llong high_begun;

static int high_run(void *arg)
{
    (void)arg;
    atomic_store(&high_begun, now_ns());
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void priority_figure(const char *name, bool lanes)
{
    double us[ROUNDS];
    fj_lane *high, *normal[NORMAL_LANES];

    must(fj_lane_create(&high, &(fj_lane_options){.pool = pool, .priority = FJ_PRIORITY_HIGH}));
    for (int i = 0; i < NORMAL_LANES; i++)
        must(fj_lane_create(&normal[i], &(fj_lane_options){.pool = pool}));
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&done, 0);
        atomic_store(&high_begun, 0);
        for (int i = 0; i < QUEUED; i++)
            must(lanes ? fj_lane_execute(normal[i % NORMAL_LANES], work_1us, NULL)
                       : fj_execute(pool, work_1us, NULL));
        int64_t begun = now_ns();
        must(fj_lane_execute(high, high_run, NULL));
        await_done(QUEUED);
        us[round] = (double)(atomic_load(&high_begun) - begun) / 1000;
    }
    qsort(us, ROUNDS, sizeof us[0], compare);
    result("fj", name, us[ROUNDS / 2]);
    for (int i = 0; i < NORMAL_LANES; i++) (void)fj_lane_destroy(normal[i]);
    (void)fj_lane_destroy(high);
}

static int fj_main(int lanes)
{
    must(fj_pool_create(&pool, &(fj_pool_options){.parallelism = 2}));
    if (lanes) {
        fj_lanes();
        priority_figure("high_us", true);
        priority_figure("plain_us", false);
    } else {
        fj_figures("execute", 0);
    }
    return fj_pool_destroy(pool);
}

/* ---- GLib ---- */

#ifdef BENCH_GLIB
static GThreadPool *glib_pool;

static void glib_count(gpointer data, gpointer arg)
{
    (void)data;
    (void)arg;
    (void)count(NULL);
}

static void glib_link(gpointer data, gpointer arg)
{
    (void)arg;
    if (atomic_fetch_add_explicit(&done, 1, memory_order_relaxed) + 1 < CHAIN)
        g_thread_pool_push(glib_pool, data, NULL);
}

static int glib_main(void)
{
    for (int width = 1; width <= 3; width += 2) {
        atomic_store(&done, 0);
        glib_pool = g_thread_pool_new(glib_count, NULL, width, TRUE, NULL);
        int64_t begun = now_ns();
        for (int i = 0; i < FLOOD; i++) g_thread_pool_push(glib_pool, &done, NULL);
        await_done(FLOOD);
        result_of_width("glib", "flood", width, (double)(now_ns() - begun) / FLOOD);
        g_thread_pool_free(glib_pool, FALSE, TRUE);
        atomic_store(&done, 0);
        glib_pool = g_thread_pool_new(glib_link, NULL, width, TRUE, NULL);
        begun = now_ns();
        g_thread_pool_push(glib_pool, &done, NULL);
        await_done(CHAIN);
        result_of_width("glib", "chain", width, (double)(now_ns() - begun) / CHAIN);
        g_thread_pool_free(glib_pool, FALSE, TRUE);
    }
    return 0;
}
#endif

/* ---- libuv ---- */

#ifdef BENCH_UV
static uv_loop_t loop;
static int chain_left;

static void uv_count(uv_work_t *w)
{
    (void)w;
    (void)count(NULL);
}

static void uv_next(uv_work_t *w, int status)
{
    (void)status;
    if (--chain_left > 0) (void)uv_queue_work(&loop, w, uv_count, uv_next);
}

static int uv_main(void)
{
    uv_work_t *w = calloc(FLOOD, sizeof *w);

    (void)setenv("UV_THREADPOOL_SIZE", "2", 1);
    if (w == NULL || uv_loop_init(&loop) != 0) return 1;
    int64_t begun = now_ns();
    for (int i = 0; i < FLOOD; i++) (void)uv_queue_work(&loop, &w[i], uv_count, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    result_of_width("uv", "flood", 0, (double)(now_ns() - begun) / FLOOD);
    chain_left = CHAIN;
    begun = now_ns();
    (void)uv_queue_work(&loop, w, uv_count, uv_next);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    result_of_width("uv", "chain", 0, (double)(now_ns() - begun) / CHAIN);
    (void)uv_loop_close(&loop);
    free(w);
    return 0;
}
#endif

int main(int argc, char **argv)
{
    const char *runtime = argc == 2 ? argv[1] : "";

    if (strcmp(runtime, "fj") == 0) return fj_main(1);
    if (strcmp(runtime, "execute") == 0) return fj_main(0);
#ifdef BENCH_GLIB
    if (strcmp(runtime, "glib") == 0) return glib_main();
#endif
#ifdef BENCH_UV
    if (strcmp(runtime, "uv") == 0) return uv_main();
#endif
    fprintf(stderr, "usage: lanes fj|execute|glib|uv\n");
    return 2;
}
