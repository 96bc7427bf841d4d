/* SPDX-License-Identifier: MIT */
/*
 * environment.h - threads that use a pool in all ways, in a loop, while the system misbehaves
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regression/regression.h"

#define MS ((int64_t)1000000)

/* ---- Work ----------------------------------------------------------------------------------- */

struct fib {
    fj_task task;
    int n;
    long result;
};

static inline int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t, a = {.n = f->n - 1}, b = {.n = f->n - 2};

    f->result = f->n;
    if (f->n < 2) return FJ_OK;
    fj_task_init(&a.task, fib_run);
    fj_task_init(&b.task, fib_run);
    fj_fork(&a.task);
    CHECK_EQ(fib_run(&b.task), FJ_OK);
    CHECK_EQ(fj_join(&a.task), FJ_OK);
    f->result = a.result + b.result;
    return FJ_OK;
}

static inline void use_fib(fj_pool *p, enum fj_caller caller)
{
    struct fib f = {.n = 12};

    fj_task_init(&f.task, fib_run);
    CHECK_EQ(fj_invoke_mode(p, &f.task, caller), FJ_OK);
    CHECK_EQ(f.result, 144);
}

FJ_TASK(long, environment_fib, int, n)
{
    environment_fib_task a;

    if (n < 2) return n;
    environment_fib_fork(FJ, &a, n - 1);
    long y = environment_fib_call(FJ, n - 2);
    return environment_fib_join(FJ, &a) + y;
}

static inline int call_doubles(void *arg, void **result)
{
    *result = (char *)arg + 1;
    return FJ_OK;
}

/* Makes every kind of call that a thread may make on a pool, and checks every result. */
static inline void use_pool(fj_pool *p)
{
    struct fib f[8];
    fj_future *future[4];
    atomic_int ran = 0;
    size_t which = 9;
    long r = 0;
    char x[4];

    use_fib(p, FJ_CALLER_BLOCKS);
    use_fib(p, FJ_CALLER_HELPS);
    CHECK_EQ(environment_fib_invoke(p, &r, 12), FJ_OK);
    CHECK_EQ(r, 144);
    for (int i = 0; i < 8; i++) {
        f[i].n = i;
        fj_task_init(&f[i].task, fib_run);
        CHECK_EQ(fj_submit(p, &f[i].task), FJ_OK);
        CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
    }
    for (int i = 0; i < 8; i++) CHECK_EQ(fj_join(&f[i].task), FJ_OK);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(i < 2 ? fj_submit_call(p, call_doubles, &x[i], &future[i])
                       : fj_schedule_call(p, call_doubles, &x[i], 100000 * i, &future[i]),
                 FJ_OK);
    CHECK_EQ(fj_future_wait_any(future, 4, FJ_FOREVER, &which), FJ_OK);
    CHECK(which < 4);
    CHECK_EQ(fj_future_wait_all(future, 4, FJ_FOREVER), FJ_OK);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        CHECK_EQ(fj_future_get(future[i], 0, &result), FJ_OK);
        CHECK(result == &x[i] + 1);
        fj_future_unref(future[i]);
    }
    UNTIL(atomic_load(&ran) == 8);
}

/* ---- Threads that use a pool until they are stopped ----------------------------------------- */

struct users {
    fj_pool *pool;
    atomic_bool over;
    atomic_long rounds;
    pthread_t thread[4];
    int n;
};

static inline void *user_main(void *arg)
{
    struct users *u = arg;

    while (!atomic_load(&u->over)) {
        use_pool(u->pool);
        atomic_fetch_add(&u->rounds, 1);
    }
    return NULL;
}

static inline void start_users(struct users *u, fj_pool *p, int n)
{
    memset(u, 0, sizeof *u);
    u->pool = p;
    u->n = n;
    for (int i = 0; i < n; i++) u->thread[i] = regression_thread(user_main, u);
}

static inline void end_users(struct users *u)
{
    atomic_store(&u->over, true);
    for (int i = 0; i < u->n; i++) pthread_join(u->thread[i], NULL);
}

/* ---- Child processes ------------------------------------------------------------------------ */

/* The child process starts threads and allocates memory. A thread of the parent may have held a
 * lock for that at the time of the fork. */
static inline void need_processes(void)
{
    if (FJI_TSAN) fjt_skip("ThreadSanitizer does not support threads after fork()");
    if (FJI_ASAN) fjt_skip("AddressSanitizer's allocator may stay locked after fork()");
}

static inline void child_begin(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static inline void child_ended_well(pid_t pid)
{
    int status = -1;

    CHECK(pid > 0);
    while (waitpid(pid, &status, 0) < 0) CHECK_EQ(errno, EINTR);
    if (WIFSIGNALED(status)) fjt_fail(__FILE__, __LINE__, "child: signal %d", WTERMSIG(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* Runs body() in a child process, which has not used the library before. */
static inline void in_child(void (*body)(void *), void *arg)
{
    pid_t pid = fork();

    if (pid == 0) {
        child_begin();
        body(arg);
        _exit(0);
    }
    child_ended_well(pid);
}

#endif /* ENVIRONMENT_H */
