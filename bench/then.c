/* SPDX-License-Identifier: MIT */
/*
 * then.c - what it costs to continue when a future is done
 *
 * The program is called as `then WORKERS`. It prints one line for each figure, the best of several
 * runs, in nanoseconds:
 *
 *     result fj NAME VALUE
 *
 * The figures are
 *
 *   done_done      a function is registered for a future that is done, and called at once
 *   done_pending   a future is completed and calls the function that was registered for it; the
 *                  future and the registration are in memory of the caller
 *   done_malloc    the same, and the library allocates the registration
 *   complete       a future without a function is completed
 *   link_built     one link of a chain of 1000 fj_future_then() is made
 *   link_run       one link of the chain runs as a task, after the first future was completed
 *   link_failed    a failure passes one link of the chain
 *   all_of         one input of a future of fj_future_all_of() with 1000 inputs is registered and
 *                  completed
 *
 * bench/java/Then.java measures the same with CompletableFuture.
 */
#define _GNU_SOURCE
#include <forkjoin/then.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MANY = 100000, LINKS = 1000, INPUTS = 1000, RUNS = 20 };

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static void must(int code)
{
    if (code == FJ_OK) return;
    fprintf(stderr, "then: %s\n", fj_strerror(code));
    exit(1);
}

static void keep_best(double *best, int64_t begin, int64_t n)
{
    double ns = (double)(now_ns() - begin) / (double)n;

    if (*best == 0 || ns < *best) *best = ns;
}

static void print(const char *name, double ns)
{
    printf("result fj %s %.1f\n", name, ns);
    fflush(stdout);
}

static long called;

static void count(fj_future *f, void *arg)
{
    (void)f, (void)arg;
    called++;
}

struct event {
    fj_future future;
    fj_listener listener;
};

static void listeners(void)
{
    struct event *v = malloc(MANY * sizeof *v);
    double done = 0, pending = 0, allocated = 0, bare = 0;

    if (v == NULL) exit(1);
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < MANY; i++) fj_future_init(&v[i].future, NULL);
        int64_t begin = now_ns();
        for (int i = 0; i < MANY; i++) (void)fj_future_complete(&v[i].future, v);
        keep_best(&bare, begin, MANY);

        begin = now_ns();
        for (int i = 0; i < MANY; i++) must(fj_future_on_done(&v[i].future, count, NULL));
        keep_best(&done, begin, MANY);

        for (int i = 0; i < MANY; i++) fj_future_init(&v[i].future, NULL);
        begin = now_ns();
        for (int i = 0; i < MANY; i++) {
            must(fj_future_listen(&v[i].future, &v[i].listener, count, NULL));
            (void)fj_future_complete(&v[i].future, v);
        }
        keep_best(&pending, begin, MANY);

        for (int i = 0; i < MANY; i++) fj_future_init(&v[i].future, NULL);
        begin = now_ns();
        for (int i = 0; i < MANY; i++) {
            must(fj_future_on_done(&v[i].future, count, NULL));
            (void)fj_future_complete(&v[i].future, v);
        }
        keep_best(&allocated, begin, MANY);
    }
    if (called != 3l * RUNS * MANY) exit(1);
    free(v);
    print("complete", bare);
    print("done_done", done);
    print("done_pending", pending);
    print("done_malloc", allocated);
}

static int plus_one(int code, void *value, void *arg, void **result)
{
    (void)code, (void)arg;
    *result = (void *)((intptr_t)value + 1);
    return FJ_OK;
}

static fj_future *promise(void)
{
    fj_future *f;

    must(fj_future_new(sizeof *f, NULL, &f));
    return f;
}

static void chains(fj_pool *pool)
{
    double built = 0, run_best = 0, failed = 0;

    for (int run = 0; run < RUNS * 50; run++) {
        fj_future *first = promise(), *last = fj_future_ref(first), *next;
        int64_t begin = now_ns();
        for (int i = 0; i < LINKS; i++) {
            must(fj_future_then_in(pool, last, FJ_THEN_SUCCESS, plus_one, NULL, &next));
            fj_future_unref(last);
            last = next;
        }
        keep_best(&built, begin, LINKS);
        begin = now_ns();
        if (run % 2 == 0) {
            void *result = NULL;
            (void)fj_future_complete(first, NULL);
            must(fj_future_get(last, FJ_FOREVER, &result));
            if ((intptr_t)result != LINKS) exit(1);
            keep_best(&run_best, begin, LINKS);
        } else {
            (void)fj_future_fail(first, 1);
            if (fj_future_error(last) != 1) exit(1);
            keep_best(&failed, begin, LINKS);
        }
        fj_future_unref(first);
        fj_future_unref(last);
    }
    print("link_built", built);
    print("link_run", run_best);
    print("link_failed", failed);
}

static void gathered(void)
{
    static fj_future *f[INPUTS];
    double best = 0;

    for (int run = 0; run < RUNS * 10; run++) {
        fj_future *all;
        for (int i = 0; i < INPUTS; i++) f[i] = promise();
        int64_t begin = now_ns();
        must(fj_future_all_of(f, INPUTS, &all));
        for (int i = 0; i < INPUTS; i++) (void)fj_future_complete(f[i], NULL);
        if (!fj_future_succeeded(all)) exit(1);
        keep_best(&best, begin, INPUTS);
        fj_future_unref(all);
        for (int i = 0; i < INPUTS; i++) fj_future_unref(f[i]);
    }
    print("all_of", best);
}

int main(int argc, char **argv)
{
    fj_pool_options o = {.parallelism = argc > 1 ? atoi(argv[1]) : 1};
    fj_pool *pool;

    must(fj_pool_create(&pool, &o));
    listeners();
    chains(pool);
    gathered();
    return fj_pool_destroy(pool);
}
