/* SPDX-License-Identifier: MIT */
/*
 * fj_help.c - submissions by a thread that runs tasks itself when the pool falls behind
 *
 * The program `fj-help` supports only the workloads with submissions: submit-1, submit-2 and wake.
 * Every PERIOD submissions the producer asks how many tasks are waiting. If there are more than
 * BACKLOG, it takes BATCH of them out of the pool and runs them.
 */
#define _POSIX_C_SOURCE 200809L

#include "fj_pool.h"

enum { PERIOD = 64, BACKLOG = 1024, BATCH = 64 };

static void help(void)
{
    fj_taken taken[BATCH];
    size_t n = fj_pool_drain(pool, taken, BATCH);

    for (size_t i = 0; i < n; i++) fj_taken_run(&taken[i]);
}

static void submit_or_help(bench_body *body, void *arg)
{
    static __thread unsigned count;

    submit(body, arg);
    if (++count % PERIOD == 0 && fj_pool_queued_submission_count(pool) > BACKLOG) help();
}

int main(int argc, char **argv)
{
    static const bench_entry entries[] = {{NULL, NULL}};
    static const bench_runtime fj = {"fj-help", entries, start, stop, submit_or_help, NULL};

    return bench_main(argc, argv, &fj);
}
