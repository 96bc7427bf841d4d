/* SPDX-License-Identifier: MIT */
/*
 * fj_trip.c - other ways to run one task of this library from outside and to wait for it
 *
 * The main thread of fj.c calls fj_invoke_mode(). This file is built twice. The program `fj-join`
 * submits a task and joins it. The program `fj-get`, built with BENCH_FJ_GET defined, submits a
 * function and waits for its future, which the library allocates. Both programs support only the
 * workloads with a round trip: trip-PAUSE, first and create.
 */
#define _POSIX_C_SOURCE 200809L

#include "fj_pool.h"

#ifdef BENCH_FJ_GET

#define RUNTIME "fj-get"

struct call {
    bench_body *body;
    void *arg;
};

static int call_run(void *arg, void **result)
{
    const struct call *c = (const struct call *)arg;

    (void)result;
    c->body(c->arg);
    return FJ_OK;
}

static void round_trip(bench_body *body, void *arg)
{
    struct call c = {body, arg};
    fj_future *f;

    must(fj_submit_call(pool, call_run, &c, &f));
    must(fj_future_get(f, FJ_FOREVER, NULL));
    fj_future_unref(f);
}

#else

#define RUNTIME "fj-join"

static void round_trip(bench_body *body, void *arg)
{
    struct trip t = {.body = body, .arg = arg};

    fj_task_init(&t.task, trip_run);
    must(fj_submit(pool, &t.task));
    must(fj_join(&t.task));
}

#endif

int main(int argc, char **argv)
{
    static const bench_entry entries[] = {{NULL, NULL}};
    static const bench_runtime fj = {RUNTIME, entries, start, stop, NULL, round_trip};

    return bench_main(argc, argv, &fj);
}
