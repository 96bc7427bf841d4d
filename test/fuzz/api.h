/* SPDX-License-Identifier: MIT */
/*
 * api.h - declarations shared by api_fuzz.c and api_calls.c
 */
#ifndef FUZZ_API_H
#define FUZZ_API_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fuzz/host.h"

#define N 3

#define CHECK(cond)                                                     \
    do {                                                                \
        if (!(cond)) fjp_fail(__FILE__, __LINE__, "failed: %s", #cond); \
    } while (0)

/* Fails unless `got` is one of the codes that follow. */
#define ONE_OF(got, ...)                                          \
    do {                                                          \
        const int fuzz_allowed[] = {__VA_ARGS__};                 \
        api_one_of(__FILE__, __LINE__, #got, (got), fuzz_allowed, \
                   sizeof fuzz_allowed / sizeof fuzz_allowed[0]); \
    } while (0)

void api_one_of(const char *file, int line, const char *text, int got, const int *allowed,
                size_t n);

/* ---- Jobs and actors ------------------------------------------------------------------------ */

enum { JOB_PLAIN, JOB_FAILS, JOB_OPEN, JOB_FORKS, JOB_SLEEPS, JOB_MISUSES, JOB_SHUTS, JOBS };

struct job {
    union {
        fj_task task;
        fj_future future;
        fj_timer timer;
        fj_completer completer;
    } is;
    int what;
    bool queued; /* since it was initialised */
    bool body;
    atomic_int runs;
};

struct actor {
    const uint8_t *at;
    size_t left;
    pthread_t thread;
    struct job task[N], future[N], timer[N], completer[N];
    fj_future *made[N];
    fj_token token[2];
    fj_pool *own;
};

struct api_shared {
    fj_pool *pool[2];
    atomic_int shut[2];
    struct job future[N];
};

extern struct api_shared shared;

/* ---- api_calls.c ---------------------------------------------------------------------------- */

int api_next(struct actor *a);
int64_t api_any_time(struct actor *a);
int api_any_code(struct actor *a);
fj_pool *api_any_pool(struct actor *a);
int api_job_run(fj_task *t);
int api_completer_run(fj_task *t);
void api_future_renew(struct job *j, int how);
void api_timer_renew(struct job *j, int what);
void api_completer_renew(struct job *j);
void api_drop_made(fj_future **f);
void api_call_task(struct actor *a);
void api_call_tasks_wrongly(struct actor *a);
void api_call_invoke_all(struct actor *a);
void api_call_execute(struct actor *a);
void api_call_token(struct actor *a);
void api_call_shared(struct actor *a);
void api_call_future(struct actor *a);
void api_call_futures_wrongly(struct actor *a);
void api_call_group(struct actor *a);
void api_call_made(struct actor *a);
void api_call_timer(struct actor *a);
void api_call_completer(struct actor *a);

#endif /* FUZZ_API_H */
