/* SPDX-License-Identifier: MIT */
/*
 * common_shutdown.c - shutdown of the common pool, and the new one that the next use creates
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"

#define MS 1000000ll

static void parallelism(const char *value)
{
    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", value, 1), 0);
}

/* Returns the number of threads of this process, or 0 if it is not known. */
static int threads_alive(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    if (d == NULL) return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Waits until there are at most n threads. A joined thread stays in the list for a short time. */
static void await_threads(int n)
{
    while (threads_alive() > n) fjt_sleep_us(100);
}

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

static int call_count(void *arg, void **result)
{
    *result = arg;
    return count(arg);
}

/* Uses the features that start threads and allocate memory: tasks, actions, futures, timers. */
static void use(void)
{
    atomic_int n = 0;
    fj_future *f, *timer;
    long r = 0;
    void *result;

    CHECK_EQ(fib_invoke(NULL, &r, 12), FJ_OK);
    CHECK_EQ(r, 144);
    for (int i = 0; i < 100; i++) CHECK_EQ(fj_execute(NULL, count, &n), FJ_OK);
    CHECK_EQ(fj_submit_call(NULL, call_count, &n, &f), FJ_OK);
    CHECK_EQ(fj_schedule_action(NULL, count, &n, MS / 10, &timer), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == &n);
    CHECK_EQ(fj_future_wait(timer, FJ_FOREVER), FJ_OK);
    fj_future_unref(f);
    fj_future_unref(timer);
    CHECK_EQ(fj_pool_await_quiescence(NULL, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&n), 102);
}

/* ---- No other thread uses the pool ----------------------------------------------------------- */

FJ_TEST(shutdown_without_a_common_pool_is_ok, 10)
{
    CHECK_EQ(fj_common_shutdown(0), FJ_OK);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_common_shutdown(-1), FJ_OK);
    use();
}

FJ_TEST(common_pool_is_made_again_after_its_shutdown, 60)
{
    fj_pool_options o = {0};
    int threads = threads_alive();
    long r = 0;

    o.parallelism = o.max_threads = 2;
    fj_pool *other = fjt_pool_with(&o);
    parallelism("3");
    CHECK_EQ(fib_invoke(other, &r, 15), FJ_OK);
    for (int i = 0; i < 20; i++) {
        use();
        CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
        CHECK_EQ(fj_common_shutdown(0), FJ_OK);
        CHECK(threads_alive() <= threads + 2); /* those of `other` */
        CHECK_EQ(fib_invoke(other, &r, 15), FJ_OK);
        CHECK_EQ(r, 610);
    }
    fjt_destroy(other);
    await_threads(threads);
}

FJ_TEST(common_pool_without_workers_is_made_again_after_its_shutdown, 60)
{
    atomic_int n = 0;

    parallelism("0");
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(fj_execute(NULL, count, &n), FJ_OK);
        CHECK_EQ(atomic_load(&n), i + 1);
        CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
        CHECK_EQ(fj_pool_thread_count(NULL), 0);
    }
}

/* The pool has no workers, so only the shutdown can run the queued task. */
FJ_TEST(shutdown_runs_what_is_queued, 30)
{
    atomic_int n = 0;

    parallelism("0");
    for (int k = 0; k < 10; k++) {
        fj_future *f;
        CHECK_EQ(fj_submit_call(NULL, call_count, &n, &f), FJ_OK);
        CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&n), k + 1);
        CHECK(fj_future_is_done(f));
        fj_future_unref(f);
    }
}

static int nothing(fj_task *t)
{
    (void)t;
    return 7;
}

/* A task that has run in an ended common pool is in no queue of that pool, and in no queue of the
 * next one either. */
FJ_TEST(tasks_and_futures_of_a_common_pool_that_has_ended_are_done, 30)
{
    for (int i = 0; i < 20; i++) {
        fj_task t, lazy;
        fj_future f;
        fj_task_init(&t, nothing);
        fj_task_init(&lazy, nothing);
        fj_future_init(&f, nothing);
        fj_fork(&t);
        CHECK_EQ(fj_submit_lazy(NULL, &lazy), FJ_OK);
        CHECK_EQ(fj_future_submit(NULL, &f), FJ_OK);
        CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
        if (i % 2 == 0) use();
        CHECK_EQ(fj_unfork(&t), 0);
        CHECK_EQ(fj_unfork(&lazy), 0);
        CHECK_EQ(fj_future_unfork(&f), 0);
        CHECK_EQ(fj_join(&t), 7);
        CHECK_EQ(fj_join(&lazy), 7);
        CHECK_EQ(fj_future_join(&f), 7);
        fj_future_fini(&f);
    }
}

FJ_TEST(common_pool_is_not_shut_down_as_another_pool_is, 20)
{
    use();
    CHECK_EQ(fj_pool_shutdown(fj_common_pool()), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_shutdown_now(fj_common_pool()), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_close(fj_common_pool()), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_destroy(fj_common_pool()), FJ_ENOTSUP);
    use();
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_pool_destroy(fj_common_pool()), FJ_ENOTSUP);
    use();
}

FJ_TEST(process_ends_after_the_shutdown_of_the_common_pool, 20)
{
    use();
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
}

FJ_TEST(process_ends_with_a_second_common_pool, 20)
{
    use();
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    use();
}

/* ---- The time limit -------------------------------------------------------------------------- */

struct gate {
    atomic_int begun, open, ended;
};

static int gate_run(void *arg)
{
    struct gate *g = arg;

    atomic_store(&g->begun, 1);
    until(&g->open);
    atomic_store(&g->ended, 1);
    return FJ_OK;
}

FJ_TEST(shutdown_that_times_out_changes_nothing, 30)
{
    struct gate g = {0};
    atomic_int n = 0;

    parallelism("2");
    fj_pool *p = fj_common_pool();
    CHECK_EQ(fj_execute(NULL, gate_run, &g), FJ_OK);
    until(&g.begun);
    CHECK_EQ(fj_common_shutdown(0), FJ_ETIMEDOUT);
    int64_t begin = fjt_now();
    CHECK_EQ(fj_common_shutdown(20 * MS), FJ_ETIMEDOUT);
    CHECK(fjt_now() - begin >= 20 * MS);
    CHECK(fj_common_pool() == p);
    CHECK_EQ(fj_pool_is_shutdown(NULL), 0);
    for (int i = 0; i < 100; i++) CHECK_EQ(fj_execute(NULL, count, &n), FJ_OK);
    while (atomic_load(&n) != 100) fjt_sleep_us(100);
    CHECK_EQ(fj_common_shutdown(MS), FJ_ETIMEDOUT);
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&g.ended), 1);
    use();
}

static void *guest_main(void *arg)
{
    struct inside i = {.body = arg};

    fj_task_init(&i.task, inside_run);
    CHECK_EQ(fj_invoke_mode(NULL, &i.task, FJ_CALLER_HELPS), FJ_OK);
    return NULL;
}

static struct gate guest_gate;

static void guest_body(void *arg)
{
    (void)arg;
    (void)gate_run(&guest_gate);
}

/* A guest is not a worker, but it runs a task of the pool, so the shutdown waits for it. */
FJ_TEST(shutdown_waits_for_guests, 30)
{
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, guest_main, (void *)(uintptr_t)guest_body), 0);
    until(&guest_gate.begun);
    CHECK_EQ(fj_common_shutdown(5 * MS), FJ_ETIMEDOUT);
    atomic_store(&guest_gate.open, 1);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&guest_gate.ended), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* ---- Calls from inside a pool ---------------------------------------------------------------- */

static void refused_here(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_common_shutdown(0), FJ_EDEADLK);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_EDEADLK);
}

static int refuse_thread(fj_pool *pool, void *arg)
{
    (void)pool, (void)arg;
    return 0;
}

/* Runs refused_here() inside a task of the common pool, as a guest of another pool. */
static void refused_deeper(void *arg)
{
    inside(arg, refused_here, NULL);
}

static int refused_action(void *arg)
{
    refused_here(arg);
    return FJ_OK;
}

static void refused_line(const char *text, void *arg)
{
    (void)text;
    refused_here(arg);
}

FJ_TEST(shutdown_from_inside_the_common_pool_is_refused, 30)
{
    fj_pool_options o = {0};
    struct inside i = {.body = refused_here};
    fj_future *timer;

    parallelism("2");
    o.allow_thread = refuse_thread;
    fj_pool *other = fjt_pool_with(&o);
    inside(NULL, refused_here, NULL);
    fj_task_init(&i.task, inside_run);
    CHECK_EQ(fj_invoke_mode(NULL, &i.task, FJ_CALLER_HELPS), FJ_OK);
    inside(NULL, refused_deeper, other);
    CHECK_EQ(fj_schedule_action(NULL, refused_action, NULL, MS, &timer), FJ_OK);
    CHECK_EQ(fj_future_wait(timer, FJ_FOREVER), FJ_OK);
    fj_future_unref(timer);
    fj_pool_dump(NULL, refused_line, NULL);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    fjt_destroy(other);
}

static void shut_down_here(void *arg)
{
    (void)arg;
    use();
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
}

FJ_TEST(worker_of_another_pool_shuts_the_common_pool_down, 30)
{
    inside_pools(shut_down_here, NULL);
}

/* ---- Options --------------------------------------------------------------------------------- */

static struct {
    atomic_int starts, stops, rejected;
} hooks;

static int hook_start(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker, (void)arg;
    atomic_fetch_add(&hooks.starts, 1);
    return FJ_OK;
}

/* The pool is terminating and waits for this callback. Submissions, timers and a second shutdown
 * return an error at once. */
static void hook_stop(fj_pool *pool, int worker, void *arg)
{
    atomic_int n = 0;
    fj_future *timer = NULL;

    (void)pool, (void)worker, (void)arg;
    int err = fj_submit_external(NULL, &(fj_task){.fn = inside_run});
    if (err == FJ_EREJECTED) atomic_fetch_add(&hooks.rejected, 1);
    CHECK_EQ(fj_schedule_action(NULL, count, &n, 0, &timer), FJ_EREJECTED);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_EDEADLK);
    atomic_fetch_add(&hooks.stops, 1);
}

FJ_TEST(workers_have_stopped_when_the_shutdown_returns, 30)
{
    fj_pool_options o = {0};

    o.parallelism = 3;
    o.on_start = hook_start;
    o.on_stop = hook_stop;
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(fj_common_configure(&o), FJ_OK);
        use();
        CHECK_EQ(fj_common_configure(&o), FJ_EBUSY);
        CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&hooks.starts), atomic_load(&hooks.stops));
        CHECK_EQ(atomic_load(&hooks.rejected), atomic_load(&hooks.stops));
    }
    CHECK(atomic_load(&hooks.starts) >= 10);
}

FJ_TEST(options_and_environment_are_asked_again, 30)
{
    char name[] = "once", text[200];
    fj_pool_options o = {0};

    o.parallelism = 5;
    o.name = name;
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    memset(name, 'x', sizeof name - 1);
    CHECK_EQ(fj_common_parallelism(), 5);
    CHECK(fj_pool_describe(NULL, text, sizeof text) > 0);
    CHECK(strncmp(text, "once:", 5) == 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    int n = fj_available_parallelism() - 1;
    CHECK_EQ(fj_common_parallelism(), n < 1 ? 1 : n); /* the configuration is discarded */
    CHECK(fj_pool_describe(NULL, text, sizeof text) > 0);
    CHECK(strncmp(text, "common:", 7) == 0);
    CHECK_EQ(fj_pool_set_parallelism(NULL, 4), n < 1 ? 1 : n);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    parallelism("7");
    CHECK_EQ(fj_common_parallelism(), 7);
    CHECK_EQ(fj_pool_set_parallelism(NULL, 4), FJ_ENOTSUP);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    unsetenv("FORKJOIN_PARALLELISM");
    o.name = NULL;
    o.parallelism = 6;
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    /* The pool was never created, but its configuration is discarded. */
    CHECK_EQ(fj_common_shutdown(0), FJ_OK);
    CHECK_EQ(fj_common_parallelism(), n < 1 ? 1 : n);
    use();
}

/* The library copies the set of CPUs and frees the copy together with the pool. */
FJ_TEST(cpus_of_the_common_pool_are_copied, 30)
{
    fj_pool_options o = {0};

    for (int i = 0; i < 10; i++) {
        cpu_set_t *set = malloc(sizeof *set);
        CHECK_EQ(sched_getaffinity(0, sizeof *set, set), 0);
        o.cpus = set;
        o.cpus_bytes = sizeof *set;
        CHECK_EQ(fj_common_configure(&o), FJ_OK);
        CHECK_EQ(fj_common_configure(&o), FJ_OK);
        memset(set, 0, sizeof *set);
        free(set);
        if (i % 2 == 0) use();
        CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    }
}

/* ---- Timers and futures ---------------------------------------------------------------------- */

FJ_TEST(shutdown_waits_for_a_delayed_task, 30)
{
    atomic_int n = 0;
    fj_future *f;

    CHECK_EQ(fj_schedule_action(NULL, count, &n, 30 * MS, &f), FJ_OK);
    CHECK_EQ(fj_common_shutdown(MS), FJ_ETIMEDOUT);
    CHECK_EQ(fj_pool_delayed_count(NULL), 1);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&n), 1);
    CHECK(fj_future_is_done(f));
    CHECK_EQ(fj_future_error(f), FJ_OK);
    fj_future_unref(f);
}

FJ_TEST(shutdown_cancels_periodic_tasks_when_it_succeeds, 30)
{
    struct gate g = {0};
    atomic_int n = 0;
    fj_future *f, *slow;

    parallelism("2");
    CHECK_EQ(fj_schedule_action_at_fixed_rate(NULL, count, &n, 0, MS, &f), FJ_OK);
    CHECK_EQ(fj_schedule_action_with_fixed_delay(NULL, count, &n, 3600000 * MS, MS, &slow), FJ_OK);
    CHECK_EQ(fj_execute(NULL, gate_run, &g), FJ_OK);
    until(&g.begun);
    CHECK_EQ(fj_common_shutdown(5 * MS), FJ_ETIMEDOUT);
    CHECK(!fj_future_is_done(f) && !fj_future_is_done(slow));
    int seen = atomic_load(&n);
    while (atomic_load(&n) < seen + 5) fjt_sleep_us(100);
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_future_error(f), FJ_ECANCELED);
    CHECK_EQ(fj_future_error(slow), FJ_ECANCELED);
    CHECK_EQ(fj_pool_delayed_count(NULL), 0);
    seen = atomic_load(&n);
    use();
    fjt_sleep_us(5000);
    CHECK_EQ(atomic_load(&n), seen);
    fj_future_unref(f);
    fj_future_unref(slow);
}

static int leaves_open(fj_task *t)
{
    (void)t;
    return FJ_PENDING;
}

FJ_TEST(future_that_is_left_open_outlives_the_pool, 30)
{
    fj_future f, late;
    void *result = NULL;

    fj_future_init(&f, leaves_open);
    fj_future_init(&late, leaves_open);
    CHECK_EQ(fj_future_submit(NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_submit(NULL, &late), FJ_OK);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK(!fj_future_is_done(&f));
    CHECK_EQ(fj_future_complete(&f, &result), 1);
    CHECK_EQ(fj_future_get(&f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == &result);
    use();
    CHECK_EQ(fj_future_cancel(&late, 1), 1);
    CHECK_EQ(fj_future_join(&late), FJ_ECANCELED);
    fj_future_fini(&f);
    fj_future_fini(&late);
}

/* ---- While other threads use the pool -------------------------------------------------------- */

static struct {
    atomic_int stop;
    atomic_int ran;
    atomic_int given[4];
} crowd;

static int crowd_task(fj_task *t)
{
    (void)t;
    return count(&crowd.ran);
}

/* Pauses now and then: a pool that always has work never becomes quiescent. */
static void crowd_pause(int i)
{
    if (i % 16 == 0) fjt_sleep_us(i % 64 == 0 ? 1000 : 50);
}

static void *crowd_actions(void *arg)
{
    for (int i = 1; !atomic_load(&crowd.stop); i++) {
        CHECK_EQ(fj_execute(NULL, count, &crowd.ran), FJ_OK);
        atomic_fetch_add((atomic_int *)arg, 1);
        crowd_pause(i);
    }
    return NULL;
}

/* Submits or forks a task or a future and waits for it, each time with another call. */
static void *crowd_tasks(void *arg)
{
    for (int i = 0; !atomic_load(&crowd.stop); i++) {
        fj_task t;
        fj_future f;
        fj_task_init(&t, crowd_task);
        fj_future_init(&f, crowd_task);
        switch (i % 5) {
            case 0:
                CHECK_EQ(fj_submit(NULL, &t), FJ_OK);
                CHECK_EQ(fj_join(&t), FJ_OK);
                break;
            case 1: CHECK_EQ(fj_invoke_mode(NULL, &t, FJ_CALLER_BLOCKS), FJ_OK); break;
            case 2: CHECK_EQ(fj_invoke_mode(NULL, &t, FJ_CALLER_HELPS), FJ_OK); break;
            case 3:
                fj_fork(&t);
                CHECK_EQ(fj_join(&t), FJ_OK);
                break;
            default:
                CHECK_EQ(fj_future_submit(NULL, &f), FJ_OK);
                CHECK_EQ(fj_future_wait(&f, FJ_FOREVER), FJ_OK);
                fj_future_fini(&f);
        }
        crowd_pause(i);
        atomic_fetch_add((atomic_int *)arg, 1);
    }
    return NULL;
}

static void *crowd_timers(void *arg)
{
    fj_future *f;
    void *result;

    for (int i = 0; !atomic_load(&crowd.stop); i++) {
        if (i % 2 == 0)
            CHECK_EQ(fj_schedule_action(NULL, count, &crowd.ran, i % 3 * 1000, &f), FJ_OK);
        else
            CHECK_EQ(fj_submit_with_timeout(NULL, call_count, &crowd.ran, FJ_FOREVER, NULL, &f),
                     FJ_OK);
        CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
        fj_future_unref(f);
        atomic_fetch_add((atomic_int *)arg, 1);
        crowd_pause(i);
    }
    return NULL;
}

static void no_line(const char *text, void *arg)
{
    (void)text, (void)arg;
}

static void *crowd_looks(void *arg)
{
    fj_taken taken;

    for (int i = 0; !atomic_load(&crowd.stop); i++) {
        (void)fj_pool_thread_count(NULL);
        (void)fj_pool_is_quiescent(NULL);
        (void)fj_pool_is_fifo(NULL);
        fj_pool_dump(NULL, no_line, NULL);
        (void)fj_pool_set_parallelism(NULL, i % 3 + 1);
        (void)!fj_pool_await_quiescence(NULL, 1000);
        if (fj_pool_drain(NULL, &taken, 1) == 1) fj_taken_run(&taken);
        atomic_fetch_add((atomic_int *)arg, 1);
    }
    return NULL;
}

static int crowd_least(int n)
{
    int least = atomic_load(&crowd.given[0]);

    for (int i = 1; i < n; i++)
        if (atomic_load(&crowd.given[i]) < least) least = atomic_load(&crowd.given[i]);
    return least;
}

/* Shuts the common pool down while other threads call it. Each call uses the old pool or a new one,
 * and in both cases every task that was submitted runs exactly once. */
static void shut_down_among(void *(*const mains[])(void *), int n, long rounds)
{
    pthread_t threads[4];
    int all = 0;
    long ends = 0;

    for (int i = 0; i < n; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, mains[i], &crowd.given[i]), 0);
    for (long i = 0; i < rounds || ends == 0 || crowd_least(n) < rounds / 10; i++) {
        int err = fj_common_shutdown(i % 2 == 0 ? 0 : 2 * MS);
        CHECK(err == FJ_OK || err == FJ_ETIMEDOUT);
        ends += err == FJ_OK;
    }
    atomic_store(&crowd.stop, 1);
    for (int i = 0; i < n; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    for (int i = 0; i < n; i++)
        if (mains[i] != crowd_looks) all += atomic_load(&crowd.given[i]);
    CHECK_EQ(atomic_load(&crowd.ran), all);
    use();
}

FJ_TEST(shutdown_among_submitters, 60)
{
    shut_down_among((void *(*const[])(void *)){crowd_actions, crowd_tasks}, 2, fjt_rounds(2000));
}

FJ_TEST(shutdown_among_joiners, 60)
{
    shut_down_among((void *(*const[])(void *)){crowd_tasks, crowd_tasks}, 2, fjt_rounds(2000));
}

FJ_TEST(shutdown_among_submitters_without_workers, 60)
{
    parallelism("0");
    shut_down_among((void *(*const[])(void *)){crowd_actions, crowd_tasks}, 2, fjt_rounds(2000));
}

FJ_TEST(shutdown_among_timers, 60)
{
    shut_down_among((void *(*const[])(void *)){crowd_timers, crowd_timers}, 2, fjt_rounds(1000));
}

FJ_TEST(shutdown_among_those_who_look, 60)
{
    shut_down_among((void *(*const[])(void *)){crowd_looks, crowd_tasks, crowd_timers}, 3,
                    fjt_rounds(1000));
}

static void *crowd_ends(void *arg)
{
    for (long i = 0; i < fjt_rounds(300); i++) {
        int err = fj_common_shutdown(MS);
        CHECK(err == FJ_OK || err == FJ_ETIMEDOUT);
        CHECK_EQ(fj_execute(NULL, count, arg), FJ_OK);
    }
    return NULL;
}

FJ_TEST(several_threads_shut_it_down, 60)
{
    pthread_t threads[4];
    atomic_int n = 0;

    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, crowd_ends, &n), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&n), 4 * fjt_rounds(300));
}

static void crowd_other(void *arg)
{
    (void)crowd_tasks(arg);
}

static void *crowd_in_other_pool(void *arg)
{
    fj_pool *p = fjt_pool(2, 0);

    inside(p, crowd_other, arg);
    fjt_destroy(p);
    return NULL;
}

FJ_TEST(shutdown_among_workers_of_another_pool, 60)
{
    shut_down_among((void *(*const[])(void *)){crowd_in_other_pool, crowd_tasks}, 2,
                    fjt_rounds(2000));
}

/* ---- fork() ---------------------------------------------------------------------------------- */

static void need_fork(void)
{
    if (fjt_sanitized()) fjt_skip("the sanitizers do not support threads after fork()");
}

static void child_must_end_well(pid_t pid)
{
    int status;

    CHECK(pid > 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static pid_t fork_child(void)
{
    pid_t pid = fork();

    if (pid != 0) return pid;
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    CHECK_EQ(threads_alive() <= 1, 1);
    use();
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    use();
    _exit(0);
}

FJ_TEST(child_of_fork_shuts_the_common_pool_down, 60)
{
    need_fork();
    for (int i = 0; i < 10; i++) {
        use();
        child_must_end_well(fork_child());
        if (i % 2 == 0) CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
        child_must_end_well(fork_child());
    }
}

/* fork() may run while another thread shuts the pool down. The child process does not have that
 * thread, so no thread there finishes the shutdown. */
FJ_TEST(fork_during_the_shutdown_leaves_the_child_a_common_pool, 120)
{
    pthread_t threads[2];
    atomic_int n = 0;

    need_fork();
    CHECK_EQ(pthread_create(&threads[0], NULL, crowd_ends, &n), 0);
    CHECK_EQ(pthread_create(&threads[1], NULL, crowd_tasks, &crowd.given[0]), 0);
    for (long i = 0; i < fjt_rounds(100); i++) child_must_end_well(fork_child());
    CHECK_EQ(pthread_join(threads[0], NULL), 0);
    atomic_store(&crowd.stop, 1);
    CHECK_EQ(pthread_join(threads[1], NULL), 0);
    use();
}
