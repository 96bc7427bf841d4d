/* SPDX-License-Identifier: MIT */
/*
 * common.c - the common pool and its environment
 *
 * The environment is read once, so every setting needs a process of its own: the tests of the
 * environment run this program again with the variables set, and there the two tests that ask
 * what to expect. Without variables these two look at the defaults.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "fjtest.h"

#define MS ((int64_t)1000000)

static void give_way(int turn)
{
    if (turn < 2000)
        sched_yield();
    else
        fjt_sleep_us(50);
}

#define UNTIL(cond) for (int until_turn = 0; !(cond); until_turn++) give_way(until_turn)

/* ---- Every call ------------------------------------------------------------------------- */

struct work {
    fj_task task;
    int code;
    atomic_int runs;
    fj_pool *ran_in;
    pthread_t ran_by;
};

static int work_run(fj_task *t)
{
    struct work *w = (struct work *)t;

    w->ran_in = fj_current_pool();
    w->ran_by = pthread_self();
    CHECK(fj_worker_index() >= 0);
    atomic_fetch_add(&w->runs, 1);
    return w->code;
}

static void work_init(struct work *w, int code)
{
    memset(w, 0, sizeof *w);
    w->code = code;
    fj_task_init(&w->task, work_run);
}

/* It ran once, in the common pool; without workers in the calling thread. */
static void work_check(const struct work *w)
{
    CHECK_EQ(atomic_load(&w->runs), 1);
    CHECK(w->ran_in == fj_common_pool());
    if (fj_common_parallelism() == 0) CHECK(pthread_equal(w->ran_by, pthread_self()));
}

static int work_action(void *arg)
{
    (void)work_run(arg);
    return FJ_OK;
}

FJ_TASK(long, add_up, long, from, long, to)
{
    if (to - from <= 1) return from;
    add_up_task a;
    add_up_fork(FJ, &a, from, (from + to) / 2);
    long y = add_up_call(FJ, (from + to) / 2, to);
    return add_up_join(FJ, &a) + y;
}

static int fork_inside(fj_task *t)
{
    struct work w[4];
    (void)t;

    for (int i = 0; i < 4; i++) {
        work_init(&w[i], 30 + i);
        if (i < 2)
            fj_fork(&w[i].task);
        else
            CHECK_EQ(fj_submit(NULL, &w[i].task), FJ_OK);
    }
    for (int i = 4; i-- > 0;) CHECK_EQ(fj_join(&w[i].task), 30 + i);
    for (int i = 0; i < 4; i++) work_check(&w[i]);
    return 6;
}

static void check_submissions(void)
{
    int (*const submits[])(fj_pool *, fj_task *) = {fj_submit, fj_external_submit, fj_lazy_submit};
    struct work w;

    for (int i = 0; i < 3; i++) {
        work_init(&w, 10 + i);
        CHECK_EQ(submits[i](NULL, &w.task), FJ_OK);
        CHECK_EQ(fj_join(&w.task), 10 + i);
        work_check(&w);
    }
    for (int i = FJ_CALLER_DEFAULT; i <= FJ_CALLER_BLOCKS; i++) {
        work_init(&w, 20 + i);
        CHECK_EQ(fj_invoke_by(NULL, &w.task, (enum fj_caller)i), 20 + i);
        work_check(&w);
    }
    work_init(&w, 24);
    CHECK_EQ(fj_invoke(NULL, &w.task), 24);
    work_check(&w);
}

static void check_forks(void)
{
    struct work w[5];
    fj_task *all[5], inside;

    for (int order = 0; order < 2; order++) {
        for (int i = 0; i < 5; i++) {
            work_init(&w[i], 30 + i);
            fj_fork(&w[i].task);
        }
        for (int i = 0; i < 5; i++) {
            int k = order ? i : 4 - i;
            CHECK_EQ(fj_join(&w[k].task), 30 + k);
        }
        for (int i = 0; i < 5; i++) work_check(&w[i]);
    }
    work_init(&w[0], 1);
    fj_fork(&w[0].task);
    if (!fj_unfork(&w[0].task)) CHECK_EQ(fj_wait(&w[0].task), 1);
    for (int i = 0; i < 5; i++) {
        work_init(&w[i], i == 3 ? 8 : FJ_OK);
        all[i] = &w[i].task;
    }
    CHECK_EQ(fj_invoke_all(all, 5), 8);
    for (int i = 0; i < 5; i++) work_check(&w[i]);
    for (int i = 0; i < 5; i++) work_init(&w[i], FJ_OK);
    CHECK_EQ(fj_invoke_both(all[0], all[1]), FJ_OK);
    CHECK_EQ(fj_invoke_array(&w[2], 3, sizeof w[0]), FJ_OK);
    for (int i = 0; i < 5; i++) work_check(&w[i]);
    fj_task_init(&inside, fork_inside);
    CHECK_EQ(fj_invoke(NULL, &inside), 6);
}

static void check_every_call(void)
{
    struct work w;
    long r = 0;

    check_submissions();
    check_forks();
    work_init(&w, 9);
    CHECK_EQ(fj_execute(NULL, work_action, &w), FJ_OK);
    if (fj_common_parallelism() == 0) CHECK_EQ(atomic_load(&w.runs), 1); /* at once */
    UNTIL(atomic_load(&w.runs) == 1);
    work_check(&w);
    CHECK_EQ(add_up_invoke(NULL, &r, 0, 3000), FJ_OK);
    CHECK_EQ(r, 3000l * 2999 / 2);
    CHECK_EQ(fj_pool_await_quiescence(NULL, FJ_FOREVER), FJ_OK);
    fj_help_quiesce();
    CHECK(fj_current_pool() == NULL);
    CHECK_EQ(fj_worker_index(), -1);
    CHECK_EQ(fj_stopping(), 0);
}

static void *call_everything(void *arg)
{
    for (int i = 0; i < 5; i++) check_every_call();
    return arg;
}

#define MANY 1000 /* so many workers are only counted, not started */

/* What this process is to find; see the head of this file. */
static const char *expected(const char *name)
{
    return getenv(name);
}

FJ_TEST(common_pool_answers_every_call, 20)
{
    pthread_t t[3];

    fjt_watch(fj_common_pool());
    if (fj_common_parallelism() >= MANY) return;
    check_every_call();
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&t[i], NULL, call_everything, NULL), 0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    if (fj_common_parallelism() == 0) CHECK_EQ(fj_pool_size(NULL), 0);
    if (expected("COMMON_LEAVES") != NULL) UNTIL(fj_pool_size(NULL) == 0);
    if (expected("COMMON_SYMMETRIC") != NULL) {
        fj_pool_stats s = {.size = sizeof s};
        CHECK_EQ(fj_pool_get_stats(fj_common_pool(), &s), FJ_OK);
        CHECK_EQ(s.barriers, 0);
    }
}

FJ_TEST(common_parallelism_is_that_of_the_environment_or_one_less_than_available, 20)
{
    const char *text = expected("COMMON_PARALLELISM");
    int n = fj_available_parallelism() - 1;

    if (text == NULL && expected("COMMON_DEFAULT") == NULL && getenv("FORKJOIN_PARALLELISM") != NULL)
        fjt_skip("FORKJOIN_PARALLELISM is set from outside");
    if (n < 1) n = 1;
    if (text != NULL) n = atoi(text);
    CHECK_EQ(fj_common_parallelism(), n);
    CHECK_EQ(fj_pool_parallelism(NULL), n);
    CHECK_EQ(fj_pool_parallelism(fj_common_pool()), n);
    CHECK_EQ(fj_pool_size(NULL), 0);
    if (text != NULL) { /* a size from the environment stays */
        CHECK_EQ(fj_pool_set_parallelism(fj_common_pool(), 2), FJ_ENOTSUP);
        CHECK_EQ(fj_pool_set_parallelism(fj_common_pool(), FJ_MAX_WORKERS), FJ_ENOTSUP);
        CHECK_EQ(fj_common_parallelism(), n);
    } else {
        CHECK_EQ(fj_pool_set_parallelism(fj_common_pool(), n + 2), n);
        CHECK_EQ(fj_common_parallelism(), n + 2);
    }
    if (n < MANY) check_every_call();
}

/* ---- Environments ----------------------------------------------------------------------- */

extern char **environ;

#define MAX_VARIABLES 1024

/* This environment without the library's variables, and with those given. */
static char **environment_with(char *const *set)
{
    static char *env[MAX_VARIABLES];
    int n = 0;

    for (char **e = environ; *e != NULL && n < MAX_VARIABLES - 8; e++)
        if (strncmp(*e, "FORKJOIN_", 9) != 0 && strncmp(*e, "COMMON_", 7) != 0) env[n++] = *e;
    for (; *set != NULL; set++) env[n++] = *set;
    env[n] = NULL;
    return env;
}

/* Runs the two tests above in a new process with these variables. */
static void run_again(char *const *set)
{
    static char self[] = "common", calls[] = "=common_pool_answers_every_call";
    static char size[] =
        "=common_parallelism_is_that_of_the_environment_or_one_less_than_available";
    char *const args[] = {self, calls, size, NULL};
    char **env = environment_with(set);
    char text[1500];
    size_t n = 0;
    int out[2], status = 0;

    CHECK_EQ(pipe(out), 0);
    pid_t pid = fork();
    if (pid == 0) {
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execve("/proc/self/exe", args, env);
        _exit(127);
    }
    CHECK(pid > 0);
    close(out[1]);
    for (ssize_t got; n < sizeof text - 1; n += (size_t)got)
        if ((got = read(out[0], text + n, sizeof text - 1 - n)) <= 0) break;
    text[n] = '\0';
    close(out[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) fjt_skip("no /proc/self/exe");
    if (status != 0)
        fjt_fail(__FILE__, __LINE__, "with %s: status %#x: %s", set[0], (unsigned)status, text);
    CHECK(strstr(text, "2 passed, 0 failed, 0 skipped") != NULL);
}

#define RUN_AGAIN(...)                                                \
    do {                                                              \
        static const char *const again_set[] = {__VA_ARGS__, NULL};   \
        run_again((char *const *)(uintptr_t)again_set);               \
    } while (0)

FJ_TEST(environment_parallelism_of_zero_lets_callers_run_everything, 40)
{
    RUN_AGAIN("FORKJOIN_PARALLELISM=0", "COMMON_PARALLELISM=0");
}

FJ_TEST(environment_parallelism_of_one_is_taken, 40)
{
    RUN_AGAIN("FORKJOIN_PARALLELISM=1", "COMMON_PARALLELISM=1");
}

FJ_TEST(environment_parallelism_of_three_is_taken, 40)
{
    RUN_AGAIN("FORKJOIN_PARALLELISM=3", "COMMON_PARALLELISM=3");
}

FJ_TEST(environment_parallelism_at_its_limit_is_taken, 40)
{
    RUN_AGAIN("FORKJOIN_PARALLELISM=32767", "COMMON_PARALLELISM=32767", "FORKJOIN_MAX_SPARES=1");
}

FJ_TEST(environment_parallelism_that_cannot_be_read_is_ignored, 60)
{
    RUN_AGAIN("FORKJOIN_PARALLELISM=", "COMMON_DEFAULT=1");
    RUN_AGAIN("FORKJOIN_PARALLELISM=many", "COMMON_DEFAULT=1");
    RUN_AGAIN("FORKJOIN_PARALLELISM=3x", "COMMON_DEFAULT=1");
    RUN_AGAIN("FORKJOIN_PARALLELISM=-1", "COMMON_DEFAULT=1");
}

FJ_TEST(environment_parallelism_out_of_range_is_ignored, 60)
{
    RUN_AGAIN("FORKJOIN_PARALLELISM=32768", "COMMON_DEFAULT=1");
    RUN_AGAIN("FORKJOIN_PARALLELISM=40000", "COMMON_DEFAULT=1");
    RUN_AGAIN("FORKJOIN_PARALLELISM=99999999999999999999999", "COMMON_DEFAULT=1");
}

FJ_TEST(environment_without_spares_works, 60)
{
    RUN_AGAIN("FORKJOIN_MAX_SPARES=0");
    RUN_AGAIN("FORKJOIN_MAX_SPARES=0", "FORKJOIN_PARALLELISM=0", "COMMON_PARALLELISM=0");
    RUN_AGAIN("FORKJOIN_MAX_SPARES=-7");
}

FJ_TEST(environment_with_symmetric_fences_needs_no_heavy_one, 60)
{
    RUN_AGAIN("FORKJOIN_FENCES=symmetric", "COMMON_SYMMETRIC=1");
    RUN_AGAIN("FORKJOIN_FENCES=symmetric", "COMMON_SYMMETRIC=1", "FORKJOIN_PARALLELISM=3",
              "COMMON_PARALLELISM=3");
    RUN_AGAIN("FORKJOIN_FENCES=other");
}

FJ_TEST(environment_keep_alive_lets_idle_workers_leave, 60)
{
    RUN_AGAIN("FORKJOIN_KEEP_ALIVE_MS=20", "COMMON_LEAVES=1", "FORKJOIN_PARALLELISM=3",
              "COMMON_PARALLELISM=3");
    RUN_AGAIN("FORKJOIN_KEEP_ALIVE_MS=1", "COMMON_LEAVES=1");
    RUN_AGAIN("FORKJOIN_KEEP_ALIVE_MS=soon");
}

FJ_TEST(environment_spin_of_any_length_works, 60)
{
    RUN_AGAIN("FORKJOIN_SPIN_US=0");
    RUN_AGAIN("FORKJOIN_SPIN_US=1000", "FORKJOIN_PARALLELISM=3", "COMMON_PARALLELISM=3");
    RUN_AGAIN("FORKJOIN_SPIN_US=-5");
}

/* ---- The pool that does not end --------------------------------------------------------- */

FJ_TEST(common_pool_is_one_and_the_same, 10)
{
    fj_pool *p = fj_common_pool();

    CHECK(p != NULL);
    CHECK(fj_common_pool() == p);
    check_every_call();
    CHECK(fj_common_pool() == p);
}

static void check_goes_on(void)
{
    CHECK_EQ(fj_pool_is_shutdown(NULL), 0);
    CHECK_EQ(fj_pool_is_terminating(NULL), 0);
    CHECK_EQ(fj_pool_is_terminated(NULL), 0);
    check_every_call();
}

FJ_TEST(common_pool_goes_on_after_every_attempt_to_end_it, 10)
{
    fj_pool *p = fj_common_pool();

    CHECK_EQ(fj_pool_shutdown(p), FJ_ENOTSUP);
    check_goes_on();
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_ENOTSUP);
    check_goes_on();
    CHECK_EQ(fj_pool_close(p), FJ_ENOTSUP);
    check_goes_on();
    CHECK_EQ(fj_pool_destroy(p), FJ_ENOTSUP);
    check_goes_on();
}

static int end_inside(fj_task *t)
{
    fj_pool *p = fj_common_pool();
    (void)t;

    CHECK_EQ(fj_pool_shutdown(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_close(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_destroy(p), FJ_ENOTSUP);
    CHECK_EQ(fj_stopping(), 0);
    return FJ_OK;
}

FJ_TEST(common_pool_cannot_be_ended_by_its_own_worker, 10)
{
    fj_task t;

    fj_task_init(&t, end_inside);
    CHECK_EQ(fj_invoke_by(NULL, &t, FJ_CALLER_BLOCKS), FJ_OK);
    CHECK_EQ(fj_invoke_by(NULL, &t, FJ_CALLER_HELPS), FJ_OK);
    check_goes_on();
}

FJ_TEST(common_pool_never_ends_and_waiting_for_it_says_so, 10)
{
    struct work w[20];

    for (int i = 0; i < 20; i++) {
        work_init(&w[i], 0);
        CHECK_EQ(fj_execute(NULL, work_action, &w[i]), FJ_OK);
    }
    CHECK_EQ(fj_pool_await_termination(fj_common_pool(), FJ_FOREVER), FJ_ETIMEDOUT);
    for (int i = 0; i < 20; i++) CHECK_EQ(atomic_load(&w[i].runs), 1); /* it has helped */
    CHECK_EQ(fj_pool_await_termination(fj_common_pool(), 0), FJ_ETIMEDOUT);
    CHECK_EQ(fj_pool_await_termination(fj_common_pool(), INT64_MIN), FJ_ETIMEDOUT);
    CHECK_EQ(fj_pool_await_termination(fj_common_pool(), 5 * MS), FJ_ETIMEDOUT);
    check_goes_on();
}

/* ---- NULL ------------------------------------------------------------------------------- */

FJ_TEST(no_pool_means_the_common_pool_in_every_figure, 10)
{
    fj_pool *p = fj_common_pool();

    check_every_call();
    UNTIL(fj_pool_active_count(p) == 0 && fj_pool_running_count(p) == 0);
    CHECK_EQ(fj_pool_parallelism(NULL), fj_pool_parallelism(p));
    CHECK_EQ(fj_pool_size(NULL), fj_pool_size(p));
    CHECK_EQ(fj_pool_active_count(NULL), 0);
    CHECK_EQ(fj_pool_running_count(NULL), 0);
    CHECK_EQ(fj_pool_is_fifo(NULL), 0);
    CHECK_EQ(fj_pool_steal_count(NULL), fj_pool_steal_count(p));
    CHECK_EQ(fj_pool_queued_task_count(NULL), 0);
    CHECK_EQ(fj_pool_queued_submission_count(NULL), 0);
    CHECK_EQ(fj_pool_has_queued_submissions(NULL), 0);
}

FJ_TEST(no_pool_is_not_shut_down_even_before_it_is_made, 10)
{
    CHECK_EQ(fj_pool_is_shutdown(NULL), 0);
    CHECK_EQ(fj_pool_is_terminating(NULL), 0);
    CHECK_EQ(fj_pool_is_terminated(NULL), 0);
    CHECK_EQ(fj_pool_is_quiescent(NULL), 1);
    check_goes_on();
}

/* ---- Where am I ------------------------------------------------------------------------- */

struct place {
    fj_task task;
    fj_pool *pool;
    int workers;
};

static int check_place(fj_task *t)
{
    struct place *p = (struct place *)t;

    CHECK(fj_current_pool() == p->pool);
    CHECK(fj_worker_index() >= 0 && fj_worker_index() < p->workers);
    CHECK_EQ(fj_stopping(), 0);
    return FJ_OK;
}

FJ_TEST(current_pool_and_worker_index_are_those_of_the_caller, 10)
{
    fj_pool *own = fjt_pool(3, 0);
    struct place in_own = {.pool = own, .workers = 4}; /* three, and a caller that helps */
    struct place in_common = {.pool = fj_common_pool(), .workers = FJ_MAX_WORKERS};

    fj_task_init(&in_own.task, check_place);
    fj_task_init(&in_common.task, check_place);
    CHECK(fj_current_pool() == NULL);
    CHECK_EQ(fj_worker_index(), -1);
    for (int i = FJ_CALLER_DEFAULT; i <= FJ_CALLER_BLOCKS; i++) {
        CHECK_EQ(fj_invoke_by(own, &in_own.task, (enum fj_caller)i), FJ_OK);
        CHECK_EQ(fj_invoke_by(NULL, &in_common.task, (enum fj_caller)i), FJ_OK);
        CHECK(fj_current_pool() == NULL);
        CHECK_EQ(fj_worker_index(), -1);
    }
    fjt_destroy(own);
}

struct nested {
    fj_task task;
    struct place *inner;
    fj_pool *here;
};

static int go_inside(fj_task *t)
{
    struct nested *n = (struct nested *)t;
    int index = fj_worker_index();

    CHECK(fj_current_pool() == n->here);
    CHECK_EQ(fj_invoke(n->inner->pool, &n->inner->task), FJ_OK);
    CHECK(fj_current_pool() == n->here); /* the same again */
    CHECK_EQ(fj_worker_index(), index);
    return FJ_OK;
}

FJ_TEST(current_pool_is_that_of_the_innermost_call, 10)
{
    fj_pool *own = fjt_pool(2, FJ_POOL_CALLER_HELPS);
    struct place place = {.pool = fj_common_pool(), .workers = FJ_MAX_WORKERS};
    struct nested n = {.inner = &place, .here = own};

    fj_task_init(&place.task, check_place);
    fj_task_init(&n.task, go_inside);
    CHECK_EQ(fj_invoke_by(own, &n.task, FJ_CALLER_BLOCKS), FJ_OK);
    CHECK_EQ(fj_invoke_by(own, &n.task, FJ_CALLER_HELPS), FJ_OK);
    CHECK(fj_current_pool() == NULL);
    fjt_destroy(own);
}

FJ_TEST(available_parallelism_is_at_least_one_and_stays, 10)
{
    int n = fj_available_parallelism();

    CHECK(n >= 1 && n <= FJ_MAX_WORKERS);
    for (int i = 0; i < 10; i++) CHECK_EQ(fj_available_parallelism(), n);
}
