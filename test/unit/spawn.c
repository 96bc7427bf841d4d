/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - fork() while a thread is being started
 *
 * A pool counts the starts that are under way. A start that another thread has begun does not exist
 * in the child process, and a start during which the starting thread itself calls fork() does not
 * count there.
 */
#include "sched/spawn.h"

#include <fjtest.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int inside, leave;
static pid_t child;

static int nothing(void *arg)
{
    (void)arg;
    return FJ_OK;
}

/* Called in the child process: checks p, uses and ends it, and ends the process. The sanitizers do
 * not support new threads after fork(), and would report the parent's threads as leaks. */
__attribute__((noreturn)) static void child_check(fj_pool *p)
{
    CHECK_EQ(p->starts & FJI_STARTS_UNDER_WAY, 0);
    CHECK_EQ(fj_pool_thread_count(p), 0);
    if (!fjt_sanitized()) {
        CHECK_EQ(fj_execute(p, nothing, NULL), FJ_OK);
        fjt_destroy(p);
    }
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
}

static void child_await(void)
{
    int status = -1;

    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* ---- By another thread ----------------------------------------------------------------------- */

static int refuse_when_told(fj_pool *p, void *arg)
{
    (void)p;
    (void)arg;
    atomic_store(&inside, 1);
    while (!atomic_load(&leave)) fjt_sleep_us(10);
    return 0;
}

static void *submit_one(void *p)
{
    CHECK_EQ(fj_execute(p, nothing, NULL), FJ_OK);
    return NULL;
}

FJ_TEST(start_by_another_thread_does_not_count_in_the_child_process, 30)
{
    fj_pool_options o = {0};
    pthread_t thread;

    o.parallelism = 2;
    o.allow_thread = refuse_when_told;
    fj_pool *p = fjt_pool_with(&o);
    CHECK_EQ(pthread_create(&thread, NULL, submit_one, p), 0);
    while (!atomic_load(&inside)) fjt_sleep_us(10);
    child = fork();
    atomic_store(&leave, 1);
    if (child == 0) child_check(p);
    child_await();
    CHECK_EQ(pthread_join(thread, NULL), 0);
    fjt_destroy(p);
}

/* ---- By the thread that calls fork() --------------------------------------------------------- */

static int fork_and_refuse(fj_pool *p, void *arg)
{
    (void)p;
    (void)arg;
    if (atomic_exchange(&inside, 1) == 0) child = fork();
    return 0;
}

FJ_TEST(start_that_calls_fork_does_not_count_in_the_child_process, 30)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.allow_thread = fork_and_refuse;
    fj_pool *p = fjt_pool_with(&o);
    child = -1;
    CHECK_EQ(fj_execute(p, nothing, NULL), FJ_OK);
    if (child == 0) child_check(p);
    child_await();
    fjt_destroy(p);
}
