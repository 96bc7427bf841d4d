/* SPDX-License-Identifier: MIT */
/*
 * pool.c - conformance with Java: ForkJoinPool, its states, submissions and counts
 *
 * There is one test for each method of ForkJoinPoolTest, ForkJoinPool19Test and ForkJoinPool20Test
 * that has a meaning in C, named after the method.
 */
#include <forkjoin/block.h>
#include <limits.h>

#include "conformance.h"

/* ---- Creating a pool --------------------------------------------------------------------- */

FJ_TEST(ForkJoinPoolTest__testDefaultInitialState, 30)
{
    fj_pool_options o = {0};
    fj_pool *p = fjt_pool_with(&o);

    CHECK_EQ(fj_pool_parallelism(p), fj_available_parallelism());
    CHECK(!fj_pool_is_fifo(p));
    CHECK_EQ(fj_pool_thread_count(p), 0);
    CHECK_EQ(fj_pool_active_count(p), 0);
    CHECK_EQ(fj_pool_running_count(p), 0);
    CHECK_EQ(fj_pool_steal_count(p), 0);
    CHECK_EQ(fj_pool_queued_task_count(p), 0);
    CHECK_EQ(fj_pool_queued_submission_count(p), 0);
    CHECK(!fj_pool_has_queued_submissions(p));
    CHECK(fj_pool_is_quiescent(p));
    check_pool_runs(p);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPoolTest__testConstructor1, 30)
{
    static const int refused[] = {-1, INT_MIN, FJ_MAX_WORKERS + 1, INT_MAX};
    static const int taken[] = {0, 1, FJ_MAX_WORKERS};
    fj_pool_options o = {0};

    for (int i = 0; i < 4; i++) {
        fj_pool *untouched = (fj_pool *)&o, *p = untouched;
        o.parallelism = refused[i];
        CHECK_EQ(fj_pool_create(&p, &o), FJ_EINVAL);
        CHECK(p == untouched);
    }
    for (int i = 0; i < 3; i++) { /* 0 selects the default */
        o.parallelism = taken[i];
        fj_pool *p = fjt_pool_with(&o);
        CHECK_EQ(fj_pool_parallelism(p), i == 0 ? fj_available_parallelism() : taken[i]);
        fjt_destroy(p);
    }
}

/* If create_thread is NULL, the library starts the threads. A NULL pointer for the result is
 * refused. */
FJ_TEST(ForkJoinPoolTest__testConstructor2, 30)
{
    fj_pool_options o = {0};
    struct job j;

    CHECK_EQ(fj_pool_create(NULL, &o), FJ_EINVAL);
    o.parallelism = conformance_workers();
    o.create_thread = NULL;
    fj_pool *p = fjt_pool_with(&o);
    job_init(&j, FJ_OK);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    job_release(&j, 1);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPoolTest__testGetParallelism, 30)
{
    static const int sizes[] = {1, 2, 7, 1000};

    for (int i = 0; i < 4; i++) {
        fj_pool *p = conformance_pool_of(sizes[i]);
        struct job j;
        CHECK_EQ(fj_pool_parallelism(p), sizes[i]);
        job_init(&j, FJ_OK);
        CHECK_EQ(fj_future_invoke(p, &j.f), FJ_OK);
        CHECK_EQ(fj_pool_parallelism(p), sizes[i]);
        fjt_destroy(p);
    }
}

/* ---- Threads ----------------------------------------------------------------------------- */

struct size_seen {
    fj_task task;
    fj_pool *pool;
    int size, active;
    atomic_int begun, may_end;
};

static int size_look(fj_task *t)
{
    struct size_seen *s = (struct size_seen *)t;

    s->size = fj_pool_thread_count(s->pool);
    s->active = fj_pool_active_count(s->pool);
    atomic_store(&s->begun, 1);
    UNTIL(atomic_load(&s->may_end));
    return FJ_OK;
}

FJ_TEST(ForkJoinPoolTest__testGetPoolSize, 30)
{
    fj_pool *p = conformance_pool_of(1);
    struct size_seen s = {.pool = p};

    CHECK_EQ(fj_pool_thread_count(p), 0);
    fj_task_init(&s.task, size_look);
    CHECK_EQ(fj_submit(p, &s.task), FJ_OK);
    UNTIL(atomic_load(&s.begun));
    CHECK_EQ(s.size, 1);
    CHECK_EQ(s.active, 1);
    CHECK_EQ(fj_pool_thread_count(p), 1);
    CHECK_EQ(fj_pool_active_count(p), 1);
    atomic_store(&s.may_end, 1);
    CHECK_EQ(fj_join(&s.task), FJ_OK);
    CHECK_EQ(fj_pool_close(p), FJ_OK);
    check_pool_ended(p);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPoolTest__testAwaitTermination_timesOut, 30)
{
    static const int64_t past[] = {0, -1, -1000000000, INT64_MIN};
    fj_pool *p = conformance_pool();
    struct job j;

    job_occupy(p, &j);
    for (int i = 0; i < 4; i++) CHECK_EQ(fj_pool_await_termination(p, past[i]), FJ_ETIMEDOUT);
    for (int i = 0; i < 3; i++) {
        int64_t begin = fjt_now();
        CHECK_EQ(fj_pool_await_termination(p, 5 * MS), FJ_ETIMEDOUT);
        CHECK(fjt_now() - begin >= 5 * MS);
    }
    check_pool_runs(p);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(p, 5 * MS), FJ_ETIMEDOUT); /* the job still runs */
    CHECK(fj_pool_is_shutdown(p));
    CHECK(!fj_pool_is_terminated(p));
    job_release(&j, 1);
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    check_pool_ended(p);
    fjt_destroy(p);
}

/* Workers that end at once because on_start returns an error. */
struct bad_start {
    atomic_int starts, stops, errors, wrong;
    _Atomic(fj_pool *) pool;
};

static int bad_start(fj_pool *p, int worker, void *arg)
{
    struct bad_start *b = arg;

    (void)worker;
    if (p != atomic_load(&b->pool)) atomic_fetch_add(&b->wrong, 1);
    atomic_fetch_add(&b->starts, 1);
    return 37;
}

static void bad_stop(fj_pool *p, int worker, void *arg)
{
    (void)p, (void)worker;
    atomic_fetch_add(&((struct bad_start *)arg)->stops, 1);
}

static void bad_error(fj_pool *p, int code, void *arg)
{
    struct bad_start *b = arg;

    if (p != atomic_load(&b->pool) || code != 37) atomic_fetch_add(&b->wrong, 1);
    atomic_fetch_add(&b->errors, 1);
}

FJ_TEST(ForkJoinPoolTest__testSetUncaughtExceptionHandler, 60)
{
    static struct bad_start b;
    fj_pool_options o = {0};
    struct job j;

    o.parallelism = conformance_workers();
    o.flags = conformance_flags();
    o.arg = &b;
    o.on_start = bad_start;
    o.on_stop = bad_stop;
    o.on_error = bad_error;
    fj_pool *p = fjt_pool_with(&o);
    atomic_store(&b.pool, p);
    job_init(&j, FJ_OK);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    UNTIL(atomic_load(&b.errors) > 0);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    check_pool_ended(p);
    check_cancelled(&j.f);
    job_release(&j, 0);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&b.wrong), 0);
    CHECK_EQ(atomic_load(&b.errors), atomic_load(&b.starts));
    CHECK_EQ(atomic_load(&b.stops), atomic_load(&b.starts));
}

/* ---- A recursive job --------------------------------------------------------------------- */

struct fib {
    fj_future f;
    int n, r;
    pthread_mutex_t *lock; /* if not NULL, every leaf locks it */
    long *leaves;          /* number of leaves, guarded by the lock */
};

static int lock_try(void *arg)
{
    struct fib *f = arg;
    return pthread_mutex_trylock(f->lock) == 0;
}

static int lock_take(void *arg)
{
    struct fib *f = arg;
    return pthread_mutex_lock(f->lock) == 0;
}

static void fib_leaf(struct fib *f)
{
    f->r = f->n;
    if (f->lock == NULL) return;
    CHECK_EQ(fj_managed_block(lock_try, lock_take, f), FJ_OK);
    ++*f->leaves;
    pthread_mutex_unlock(f->lock);
}

static int fib_run(fj_task *t);

static void fib_init(struct fib *f, int n)
{
    memset(f, 0, sizeof *f);
    fj_future_init(&f->f, fib_run);
    f->n = n;
}

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t, a, b;

    if (f->n < 2) {
        fib_leaf(f);
        return FJ_OK;
    }
    fib_init(&a, f->n - 1);
    fib_init(&b, f->n - 2);
    a.lock = b.lock = f->lock;
    a.leaves = b.leaves = f->leaves;
    CHECK_EQ(fj_future_fork(&a.f), FJ_OK);
    CHECK_EQ(fj_future_run(&b.f), FJ_OK);
    CHECK_EQ(fj_future_join(&a.f), FJ_OK);
    fj_future_fini(&a.f);
    f->r = a.r + b.r;
    f->f.result = &f->r;
    return FJ_OK;
}

static void fib_check(struct fib *f, int value)
{
    fj_future_fini(&f->f);
    CHECK_EQ(f->r, value);
    check_normal(&f->f, &f->r);
}

FJ_TEST(ForkJoinPoolTest__testIsQuiescent, 60)
{
    fj_pool *p = conformance_pool();
    struct fib f;

    CHECK(fj_pool_is_quiescent(p));
    fib_init(&f, 15);
    CHECK_EQ(fj_future_invoke(p, &f.f), FJ_OK);
    UNTIL(fj_pool_is_quiescent(p));
    CHECK_EQ(fj_pool_queued_task_count(p), 0);
    CHECK_EQ(fj_pool_queued_submission_count(p), 0);
    CHECK(!fj_pool_has_queued_submissions(p));
    UNTIL(fj_pool_active_count(p) == 0);
    CHECK_EQ(fj_pool_parallelism(p), conformance_workers());
    check_pool_runs(p);
    CHECK(fj_pool_is_quiescent(p));
    fib_check(&f, 610);
    fjt_destroy(p);
}

static int fib_task_run(fj_task *t);

struct fib_task {
    fj_task task;
    int n, r;
};

static int fib_task(int n)
{
    if (n < 2) return n;
    struct fib_task a = {.n = n - 1};
    fj_task_init(&a.task, fib_task_run);
    fj_fork(&a.task);
    int b = fib_task(n - 2);
    CHECK_EQ(fj_join(&a.task), FJ_OK);
    return a.r + b;
}

static int fib_task_run(fj_task *t)
{
    struct fib_task *f = (struct fib_task *)t;

    f->r = fib_task(f->n);
    return FJ_OK;
}

FJ_TEST(ForkJoinPoolTest__testSubmitForkJoinTask, 60)
{
    fj_pool *p = conformance_pool();
    struct fib f;
    struct fib_task g = {.n = 16};

    fib_init(&f, 14);
    fj_task_init(&g.task, fib_task_run);
    CHECK_EQ(fj_future_submit(p, &f.f), FJ_OK);
    CHECK_EQ(fj_submit(p, &g.task), FJ_OK);
    CHECK_EQ(fj_future_join(&f.f), FJ_OK);
    fib_check(&f, 377);
    CHECK_EQ(fj_join(&g.task), FJ_OK);
    CHECK_EQ(g.r, 987);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPoolTest__testBlockingForkJoinTask, 60)
{
    fj_pool *p = conformance_pool();
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct fib f;
    long leaves = 0;

    fib_init(&f, 16);
    f.lock = &lock;
    f.leaves = &leaves;
    CHECK_EQ(fj_future_submit(p, &f.f), FJ_OK);
    CHECK_EQ(fj_future_join(&f.f), FJ_OK);
    fib_check(&f, 987);
    CHECK_EQ(leaves, 1597);
    fjt_destroy(p);
}

/* ---- Taking submitted tasks out of the queues -------------------------------------------- */

struct polled {
    struct job j[5];
    int which;
};

/* Runs on the only worker, so that no other thread can have begun any of the jobs. */
static void poll_one(void *arg)
{
    struct polled *p = arg;
    fj_taken taken;

    p->which = -1;
    for (int i = 0; i < 5; i++) {
        job_init(&p->j[i], FJ_OK);
        CHECK_EQ(fj_future_submit_external(fj_current_pool(), &p->j[i].f), FJ_OK);
    }
    CHECK_EQ(fj_take_submission(&taken), 1);
    for (int i = 0; i < 5; i++)
        if (fj_taken_task(&taken) == &p->j[i].f.task) p->which = i;
    CHECK(p->which >= 0);
    state_check_open(&p->j[p->which].f);
    CHECK_EQ(fj_pool_queued_submission_count(fj_current_pool()), 4);
    fj_taken_cancel(&taken);
    check_cancelled(&p->j[p->which].f);
}

FJ_TEST(ForkJoinPoolTest__testPollSubmission, 30)
{
    fj_pool *p = conformance_pool_of(1);
    struct polled polled;

    inside(p, poll_one, &polled);
    for (int i = 0; i < 5; i++) {
        bool taken = i == polled.which;
        CHECK_EQ(fj_future_join(&polled.j[i].f), taken ? FJ_ECANCELED : FJ_OK);
        job_release(&polled.j[i], !taken);
    }
    fjt_destroy(p);
}

/* A thread outside the pool takes the tasks and runs them. */
FJ_TEST(ForkJoinPoolTest__testDrainTasksTo, 30)
{
    fj_pool *p = conformance_pool_of(1);
    struct job busy, j[5];
    fj_taken taken[6];
    bool seen[5] = {false};

    job_occupy(p, &busy);
    for (int i = 0; i < 5; i++) {
        job_init(&j[i], 10 + i);
        CHECK_EQ(fj_future_submit(p, &j[i].f), FJ_OK);
    }
    CHECK_EQ(fj_pool_drain(p, taken, 2), 2);
    CHECK_EQ(fj_pool_drain(p, taken + 2, 4), 3);
    CHECK_EQ(fj_pool_drain(p, taken + 5, 1), 0);
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < 5; i++) {
            if (fj_taken_task(&taken[k]) != &j[i].f.task) continue;
            CHECK(!seen[i]);
            seen[i] = true;
            state_check_stuck(&j[i].f);
            fj_taken_run(&taken[k]);
            check_failed(&j[i].f, 10 + i);
        }
    for (int i = 0; i < 5; i++) {
        CHECK(seen[i]);
        job_release(&j[i], 1);
    }
    job_release(&busy, 1);
    fjt_destroy(p);
}

/* ---- Actions and calls ------------------------------------------------------------------- */

FJ_TEST(ForkJoinPoolTest__testExecuteRunnable, 30)
{
    fj_pool *p = conformance_pool();
    atomic_int ran = 0;
    fj_future *f;

    CHECK_EQ(fj_submit_action(p, action_count, &ran, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    CHECK_EQ(atomic_load(&ran), 1);
    check_normal(f, NULL);
    fj_future_unref(f);
    CHECK_EQ(fj_execute(p, action_count, &ran), FJ_OK);
    UNTIL(atomic_load(&ran) == 2);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&ran), 2);
}

FJ_TEST(ForkJoinPoolTest__testSubmitCallable, 30)
{
    fj_pool *p = conformance_pool();
    void *result = NULL;
    fj_future *f;

    CHECK_EQ(fj_submit_call(p, call_identity, &p, &f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == &p);
    check_normal(f, &p);
    fj_future_unref(f);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPoolTest__testSubmitRunnable, 30)
{
    fj_pool *p = conformance_pool();
    atomic_int ran = 0;
    void *result = &result;
    fj_future *f;

    CHECK_EQ(fj_submit_action(p, action_count, &ran, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == NULL);
    CHECK_EQ(atomic_load(&ran), 1);
    check_normal(f, NULL);
    fj_future_unref(f);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPoolTest__testSubmitRunnable2, 30)
{
    fj_pool *p = conformance_pool();
    atomic_int ran = 0;
    fj_future *f;

    CHECK_EQ(fj_submit_action(p, action_count, &ran, &f, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    CHECK_EQ(atomic_load(&ran), 1);
    check_normal(f, &f);
    fj_future_unref(f);
    fjt_destroy(p);
}

/* The second of two threads that wait; this one has a timeout. */
static void *get_for_long(void *f)
{
    return (void *)(intptr_t)fj_future_get(f, LONG_NS, NULL);
}

FJ_TEST(ForkJoinPoolTest__testCancellationExceptionInGet, 30)
{
    fj_pool *p = conformance_pool();
    struct job j;

    job_init_polls(&j);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    job_begun(&j);
    pthread_t t = conformance_thread(get_for_long, &j.f);
    CHECK_EQ(fj_future_cancel(&j.f, 1), 1);
    CHECK_EQ(fj_future_get(&j.f, FJ_FOREVER, NULL), FJ_ECANCELED);
    CHECK_EQ((intptr_t)conformance_thread_end(t), FJ_ECANCELED);
    check_cancelled(&j.f);
    fj_future_fini(&j.f); /* returns because the body has seen the cancel; may_end was not set */
    CHECK_EQ(atomic_load(&j.cancelled), 1);
    CHECK_EQ(atomic_load(&j.stopping), 0);
    check_cancelled(&j.f);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPoolTest__testExecuteNullRunnable, 30)
{
    fj_pool *p = conformance_pool();
    fj_future *untouched = (fj_future *)&p, *f = untouched;

    CHECK_EQ(fj_execute(p, NULL, &p), FJ_EINVAL);
    CHECK_EQ(fj_submit_action(p, NULL, NULL, NULL, &f), FJ_EINVAL);
    CHECK(f == untouched);
    CHECK(!fj_pool_has_queued_submissions(p));
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPoolTest__testSubmitNullCallable, 30)
{
    fj_pool *p = conformance_pool();
    fj_future *untouched = (fj_future *)&p, *f = untouched;

    CHECK_EQ(fj_submit_call(p, NULL, NULL, &f), FJ_EINVAL);
    CHECK(f == untouched);
    CHECK_EQ(fj_submit_call(p, call_identity, NULL, NULL), FJ_EINVAL);
    CHECK(!fj_pool_has_queued_submissions(p));
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPoolTest__testSubmitAfterShutdown, 30)
{
    fj_pool *p = conformance_pool();
    fj_task t;
    struct job j;
    fj_future *untouched = (fj_future *)&j, *f = untouched;

    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    CHECK(fj_pool_is_shutdown(p));
    job_init(&j, FJ_OK);
    fj_task_init(&t, job_run);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_EREJECTED);
    CHECK_EQ(fj_future_submit_lazy(p, &j.f), FJ_EREJECTED);
    CHECK_EQ(fj_future_invoke(p, &j.f), FJ_EREJECTED);
    CHECK_EQ(fj_submit(p, &t), FJ_EREJECTED);
    CHECK_EQ(fj_submit_lazy(p, &t), FJ_EREJECTED);
    CHECK_EQ(fj_invoke(p, &t), FJ_EREJECTED);
    CHECK_EQ(fj_execute(p, action_count, &t), FJ_EREJECTED);
    CHECK_EQ(fj_submit_call(p, call_identity, NULL, &f), FJ_EREJECTED);
    CHECK_EQ(fj_submit_action(p, action_count, NULL, NULL, &f), FJ_EREJECTED);
    CHECK(f == untouched);
    fjt_destroy(p);
    state_check_stuck(&j.f); /* it can be submitted to another pool */
    p = conformance_pool();
    CHECK_EQ(fj_future_invoke(p, &j.f), FJ_OK);
    job_release(&j, 1);
    fjt_destroy(p);
}

struct waiter {
    fj_future *f;
    atomic_int code;
};

static void wait_forever(void *arg)
{
    struct waiter *w = arg;

    atomic_store(&w->code, fj_future_get(w->f, FJ_FOREVER, NULL));
}

FJ_TEST(ForkJoinPoolTest__testInterruptedSubmit, 60)
{
    fj_pool *p = conformance_pool();

    for (long i = fjt_rounds(100); i > 0; i--) {
        struct job j;
        struct caller c;
        struct waiter w = {.f = &j.f, .code = 1};
        job_occupy(p, &j);
        caller_start(&c, wait_forever, &w, false);
        caller_interrupt(&c);
        caller_end(&c);
        CHECK_EQ(atomic_load(&w.code), FJ_ECANCELED);
        state_check_stuck(&j.f); /* the interrupt ended the wait, not the job */
        job_release(&j, 1);
        CHECK_EQ(atomic_load(&j.cancelled), 0);
        check_normal(&j.f, &j);
    }
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPoolTest__testSubmitEE, 30)
{
    static int codes[] = {1, 77, INT_MAX, FJ_EFAILED, FJ_ENOMEM};
    fj_pool *p = conformance_pool();

    for (int i = 0; i < 5; i++) {
        fj_future *f;
        CHECK_EQ(fj_submit_call(p, call_fail, &codes[i], &f), FJ_OK);
        CHECK_EQ(fj_future_get(f, FJ_FOREVER, NULL), codes[i]);
        check_failed(f, codes[i]);
        fj_future_unref(f);
    }
    fjt_destroy(p);
}

static int fail_55(fj_task *t)
{
    (void)t;
    return 55;
}

FJ_TEST(ForkJoinPoolTest__testInvokeUncheckedException, 30)
{
    fj_pool *p = conformance_pool();
    fj_task t;
    struct job j;

    fj_task_init(&t, fail_55);
    CHECK_EQ(fj_invoke(p, &t), 55);
    CHECK_EQ(fj_invoke_mode(p, &t, FJ_CALLER_HELPS), 55);
    CHECK_EQ(fj_invoke_mode(p, &t, FJ_CALLER_BLOCKS), 55);
    job_init(&j, 56);
    CHECK_EQ(fj_future_invoke(p, &j.f), 56);
    job_release(&j, 1);
    check_failed(&j.f, 56);
    fjt_destroy(p);
}

/* ---- Any of several, all of several ------------------------------------------------------ */

FJ_TEST(ForkJoinPoolTest__testInvokeAny1, 30)
{
    on_a_pool(any_refuses_null_list, FJ_FOREVER);
}

FJ_TEST(ForkJoinPoolTest__testInvokeAny2, 30)
{
    on_a_pool(any_refuses_empty_list, FJ_FOREVER);
}

FJ_TEST(ForkJoinPoolTest__testInvokeAny3, 30)
{
    fj_pool *p = conformance_pool();
    fj_future *one[1] = {NULL};
    size_t which = 77;

    CHECK_EQ(fj_future_invoke_any(p, one, 1, FJ_FOREVER, &which), FJ_EINVAL);
    CHECK_EQ(which, 77);
    fjt_destroy(p);
}

/* A job that would sleep forever, beside a NULL. It does not keep the pool from ending. */
FJ_TEST(ForkJoinPoolTest__testInvokeAny4, 30)
{
    fj_pool *p = conformance_pool();
    fj_future never, *f[2] = {NULL, NULL};
    struct job j;
    size_t which = 77;

    job_init_sleeps(&j, &never);
    f[0] = &j.f;
    CHECK_EQ(fj_future_invoke_any(p, f, 2, FJ_FOREVER, &which), FJ_EINVAL);
    fjt_destroy(p);
    CHECK(!atomic_load(&j.begun) || fj_future_is_cancelled(&j.f));
    fj_future_fini(&j.f);
}

FJ_TEST(ForkJoinPoolTest__testInvokeAny5, 30)
{
    on_a_pool(any_reports_failure, FJ_FOREVER);
}

FJ_TEST(ForkJoinPoolTest__testInvokeAny6, 30)
{
    on_a_pool(any_gives_a_value, FJ_FOREVER);
}

FJ_TEST(ForkJoinPoolTest__testInvokeAll1, 30)
{
    on_a_pool(all_refuses_null_list, FJ_FOREVER);
}

FJ_TEST(ForkJoinPoolTest__testInvokeAll2, 30)
{
    on_a_pool(all_of_none_is_done, FJ_FOREVER);
}

FJ_TEST(ForkJoinPoolTest__testInvokeAll3, 30)
{
    on_a_pool(all_refuses_null_element, FJ_FOREVER);
}

FJ_TEST(ForkJoinPoolTest__testInvokeAll4, 30)
{
    on_a_pool(all_keeps_failures_apart, FJ_FOREVER);
}

FJ_TEST(ForkJoinPoolTest__testInvokeAll5, 30)
{
    on_a_pool(all_gives_all_values, FJ_FOREVER);
}

FJ_TEST(ForkJoinPoolTest__testTimedInvokeAny1, 30)
{
    on_a_pool(any_refuses_null_list, LONG_NS);
}

FJ_TEST(ForkJoinPoolTest__testTimedInvokeAny2, 30)
{
    on_a_pool(any_refuses_empty_list, LONG_NS);
}

FJ_TEST(ForkJoinPoolTest__testTimedInvokeAny3, 30)
{
    on_a_pool(any_refuses_null_element, LONG_NS);
}

FJ_TEST(ForkJoinPoolTest__testTimedInvokeAny4, 30)
{
    on_a_pool(any_reports_failure, LONG_NS);
}

FJ_TEST(ForkJoinPoolTest__testTimedInvokeAny5, 30)
{
    on_a_pool(any_gives_a_value, LONG_NS);
}

FJ_TEST(ForkJoinPoolTest__testTimedInvokeAll1, 30)
{
    on_a_pool(all_refuses_null_list, LONG_NS);
}

FJ_TEST(ForkJoinPoolTest__testTimedInvokeAll2, 30)
{
    on_a_pool(all_of_none_is_done, LONG_NS);
}

FJ_TEST(ForkJoinPoolTest__testTimedInvokeAll3, 30)
{
    on_a_pool(all_refuses_null_element, LONG_NS);
}

FJ_TEST(ForkJoinPoolTest__testTimedInvokeAll4, 30)
{
    on_a_pool(all_keeps_failures_apart, LONG_NS);
}

FJ_TEST(ForkJoinPoolTest__testTimedInvokeAll5, 30)
{
    on_a_pool(all_gives_all_values, LONG_NS);
}

/* ---- Changing the parallelism ------------------------------------------------------------ */

/* Runs n jobs at the same time, which ends only if the pool has n workers. */
static void all_at_once(fj_pool *p, int n)
{
    struct job *j = calloc((size_t)n, sizeof *j);

    CHECK(j != NULL);
    for (int i = 0; i < n; i++) {
        job_init_held(&j[i]);
        CHECK_EQ(fj_future_submit(p, &j[i].f), FJ_OK);
    }
    for (int i = 0; i < n; i++) job_begun(&j[i]);
    for (int i = 0; i < n; i++) job_release(&j[i], 1);
    free(j);
}

FJ_TEST(ForkJoinPool19Test__testSetParallelism, 60)
{
    fj_pool *p = conformance_pool_of(2);

    CHECK_EQ(fj_pool_set_parallelism(p, 3), 2);
    CHECK_EQ(fj_pool_parallelism(p), 3);
    all_at_once(p, 3);
    CHECK_EQ(fj_pool_set_parallelism(p, 6), 3);
    CHECK_EQ(fj_pool_parallelism(p), 6);
    all_at_once(p, 6);
    CHECK_EQ(fj_pool_set_parallelism(p, 1), 6);
    CHECK_EQ(fj_pool_parallelism(p), 1);
    all_at_once(p, 1);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPool19Test__testSetParallelismBadArgs, 30)
{
    static const int refused[] = {0, -1, INT_MIN, FJ_MAX_WORKERS + 1, INT_MAX};
    fj_pool *p = conformance_pool_of(2);

    for (int i = 0; i < 5; i++) {
        CHECK_EQ(fj_pool_set_parallelism(p, refused[i]), FJ_EINVAL);
        CHECK_EQ(fj_pool_parallelism(p), 2);
    }
    all_at_once(p, 2);
    fjt_destroy(p);
}

/* ---- Lazy submission --------------------------------------------------------------------- */

static void lazy_inside(void *arg)
{
    struct job *j = arg;

    CHECK_EQ(fj_future_submit_lazy(fj_current_pool(), &j->f), FJ_OK);
    CHECK_EQ(fj_future_join(&j->f), FJ_OK);
}

/* A later submission, a join from outside, a join from inside, and the end of the pool each make a
 * worker run a lazy submission. */
FJ_TEST(ForkJoinPool19Test__testLazySubmit, 60)
{
    for (long i = fjt_rounds(100); i > 0; i--) {
        fj_pool *p = conformance_pool();
        struct job j[4], later;
        for (int k = 0; k < 4; k++) job_init(&j[k], FJ_OK);
        job_init(&later, FJ_OK);
        CHECK_EQ(fj_future_submit_lazy(p, &j[0].f), FJ_OK);
        CHECK_EQ(fj_future_submit(p, &later.f), FJ_OK);
        UNTIL(fj_future_is_done(&j[0].f));
        CHECK_EQ(fj_future_submit_lazy(p, &j[1].f), FJ_OK);
        CHECK_EQ(fj_future_join(&j[1].f), FJ_OK);
        inside(p, lazy_inside, &j[2]);
        CHECK_EQ(fj_future_submit_lazy(p, &j[3].f), FJ_OK);
        CHECK_EQ(fj_pool_close(p), FJ_OK);
        for (int k = 0; k < 4; k++) {
            job_release(&j[k], 1);
            check_normal(&j[k].f, &j[k]);
        }
        job_release(&later, 1);
        fjt_destroy(p);
    }
}

/* ---- Waits that do not report the outcome ------------------------------------------------ */

static void quietly_invoke(void *arg)
{
    struct fib f;

    (void)arg;
    fib_init(&f, 10);
    (void)fj_future_run(&f.f);
    fib_check(&f, 55);
}

FJ_TEST(ForkJoinPool19Test__testQuietlyInvoke, 30)
{
    inside_pool(quietly_invoke, NULL);
}

static void fork_join(void *arg)
{
    struct fib f;

    (void)arg;
    fib_init(&f, 12);
    CHECK_EQ(fj_future_fork(&f.f), FJ_OK);
    CHECK_EQ(fj_future_join(&f.f), FJ_OK);
    fib_check(&f, 144);
}

FJ_TEST(ForkJoinPool19Test__testForkJoin, 30)
{
    inside_pool(fork_join, NULL);
}

typedef int timed_wait(fj_future *f, int64_t timeout_ns);

/* In a task: forks a job and waits with a timeout, twice, with a reset in between. */
static void fork_wait(timed_wait *wait, int code)
{
    struct job j;

    job_init(&j, code);
    for (int i = 1; i <= 2; i++) {
        CHECK_EQ(fj_future_fork(&j.f), FJ_OK);
        CHECK_EQ(wait(&j.f, LONG_NS), FJ_OK);
        state_check_done(&j.f, code, &j);
        job_release(&j, i);
        CHECK_EQ(fj_future_reinit(&j.f), FJ_OK);
        state_check_open(&j.f);
    }
}

/* The same with a job that is cancelled before it is forked. */
static void fork_wait_cancelled(timed_wait *wait)
{
    struct job j;

    job_init(&j, FJ_OK);
    CHECK_EQ(fj_future_cancel(&j.f, 0), 1);
    CHECK_EQ(fj_future_fork(&j.f), FJ_OK);
    CHECK_EQ(wait(&j.f, LONG_NS), FJ_OK);
    check_cancelled(&j.f);
    job_release(&j, 0);
}

static void wait_uninterruptibly(void *arg)
{
    (void)arg;
    fork_wait(fj_future_wait_quietly, FJ_OK);
    fork_wait(fj_future_wait_quietly, 21);
    fork_wait_cancelled(fj_future_wait_quietly);
}

/* A wait that has to sleep, because the job is held in another pool. */
static void wait_held(void *arg)
{
    struct waiter *w = arg;
    atomic_store(&w->code, fj_future_wait_quietly(w->f, LONG_NS));
}

FJ_TEST(ForkJoinPool19Test__testTimedQuietlyJoinUninterruptiblyInterrupts, 60)
{
    fj_pool *p = conformance_pool();
    struct job j;
    struct caller c;
    struct waiter w = {.f = &j.f, .code = 1};

    interrupted_before(wait_uninterruptibly, NULL);
    job_occupy(p, &j);
    caller_start(&c, wait_held, &w, false);
    caller_interrupt(&c);
    fjt_sleep_us(2000);
    CHECK_EQ(atomic_load(&w.code), 1);
    job_release(&j, 1);
    caller_end(&c);
    CHECK_EQ(atomic_load(&w.code), FJ_OK);
    fjt_destroy(p);
}

static void wait_interruptibly(void *arg)
{
    fj_future *open = arg;

    CHECK_EQ(fj_future_wait(open, LONG_NS), FJ_ECANCELED);
    /* Again, because nothing clears the interrupt. */
    CHECK_EQ(fj_future_wait(open, FJ_FOREVER), FJ_ECANCELED);
    state_check_open(open);
    wait_uninterruptibly(NULL);
}

FJ_TEST(ForkJoinPool19Test__testTimedQuietlyJoinInterrupts, 60)
{
    fj_pool *p = conformance_pool();
    struct job j;
    struct caller c;

    job_occupy(p, &j);
    interrupted_before(wait_interruptibly, &j.f);
    caller_start(&c, wait_interruptibly, &j.f, false);
    fjt_sleep_us(1000);
    caller_interrupt(&c);
    caller_end(&c);
    job_release(&j, 1);
    check_normal(&j.f, &j);
    fjt_destroy(p);
}

static void timed_quietly(void *arg)
{
    (void)arg;
    fork_wait(fj_future_wait, FJ_OK);
}

FJ_TEST(ForkJoinPool19Test__testForkTimedQuietlyJoin, 30)
{
    inside_pool(timed_quietly, NULL);
}

static void timed_quietly_abnormal(void *arg)
{
    (void)arg;
    fork_wait(fj_future_wait, 23);
}

FJ_TEST(ForkJoinPool19Test__testAbnormalTimedQuietlyJoin, 30)
{
    inside_pool(timed_quietly_abnormal, NULL);
}

static void timed_undisturbed(void *arg)
{
    (void)arg;
    fork_wait(fj_future_wait_quietly, FJ_OK);
}

FJ_TEST(ForkJoinPool19Test__testForkTimedQuietlyJoinUninterruptibly, 30)
{
    inside_pool(timed_undisturbed, NULL);
}

static void timed_undisturbed_abnormal(void *arg)
{
    (void)arg;
    fork_wait(fj_future_wait_quietly, 24);
}

FJ_TEST(ForkJoinPool19Test__testAbnormalTimedQuietlyJoinUninterruptibly, 30)
{
    inside_pool(timed_undisturbed_abnormal, NULL);
}

/* ---- Closing ----------------------------------------------------------------------------- */

/* The outcome can still be read after the pool is destroyed. */
FJ_TEST(ForkJoinPool19Test__testClose, 60)
{
    for (long i = fjt_rounds(200); i > 0; i--) {
        fj_pool *p = conformance_pool();
        struct fib f;
        fib_init(&f, 8);
        CHECK_EQ(fj_future_submit(p, &f.f), FJ_OK);
        fjt_destroy(p);
        fib_check(&f, 21);
    }
}

FJ_TEST(ForkJoinPool19Test__testClose2, 60)
{
    for (long i = fjt_rounds(200); i > 0; i--) {
        fj_pool *p = conformance_pool();
        struct fib f;
        fib_init(&f, 8);
        CHECK_EQ(fj_future_submit(p, &f.f), FJ_OK);
        CHECK_EQ(fj_pool_close(p), FJ_OK);
        check_pool_ended(p);
        fib_check(&f, 21);
        CHECK_EQ(fj_pool_close(p), FJ_OK);
        check_pool_ended(p);
        fjt_destroy(p);
    }
}

FJ_TEST(ForkJoinPool19Test__testClose3, 60)
{
    for (long i = fjt_rounds(200); i > 0; i--) {
        fj_pool *p = conformance_pool();
        struct fib f;
        fib_init(&f, 8);
        CHECK_EQ(fj_future_submit(p, &f.f), FJ_OK);
        CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        CHECK(fj_pool_is_shutdown(p));
        CHECK_EQ(fj_pool_close(p), FJ_OK);
        check_pool_ended(p);
        fib_check(&f, 21);
        fjt_destroy(p);
    }
}

FJ_TEST(ForkJoinPool19Test__testCloseCommonPool, 60)
{
    fj_pool *p = fj_common_pool();
    struct fib f;

    CHECK(p != NULL);
    fib_init(&f, 10);
    CHECK_EQ(fj_future_submit(p, &f.f), FJ_OK);
    CHECK_EQ(fj_pool_close(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_destroy(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_shutdown(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_ENOTSUP);
    check_pool_runs(p);
    CHECK_EQ(fj_future_join(&f.f), FJ_OK);
    fib_check(&f, 55);
    CHECK(fj_common_pool() == p);
    CHECK_EQ(fj_future_reinit(&f.f), FJ_OK);
    CHECK_EQ(fj_future_invoke(p, &f.f), FJ_OK);
    fib_check(&f, 55);
}

/* ---- Which queue a submission goes to ---------------------------------------------------- */

/* fj_submit_external() uses a submission queue, even if a worker of the pool calls it. */
static void external_submit(void *arg)
{
    fj_pool *p = arg;
    struct job j;
    fj_task t;

    job_init(&j, 12);
    fj_task_init(&t, fail_55);
    CHECK_EQ(fj_future_submit_external(p, &j.f), FJ_OK);
    CHECK_EQ(fj_submit_external(p, &t), FJ_OK);
    CHECK_EQ(fj_future_join(&j.f), 12);
    CHECK_EQ(fj_join(&t), 55);
    job_release(&j, 1);
    check_failed(&j.f, 12);
}

FJ_TEST(ForkJoinPool20Test__testExternalSubmit1, 30)
{
    fj_pool *p = conformance_pool();

    external_submit(p);
    inside(p, external_submit, p);
    fjt_destroy(p);
}

struct counted {
    struct job j[3];
    fj_task t[3];
};

/* Runs on the only worker, so that no other thread changes the counts. */
static void external_counts(void *arg)
{
    struct counted *c = arg;
    fj_pool *p = fj_current_pool();

    for (int i = 0; i < 3; i++) {
        job_init(&c->j[i], FJ_OK);
        CHECK_EQ(fj_future_submit_external(p, &c->j[i].f), FJ_OK);
        CHECK_EQ(fj_pool_queued_submission_count(p), i + 1);
        CHECK(fj_pool_has_queued_submissions(p));
        CHECK_EQ(fj_pool_queued_task_count(p), 0);
        CHECK_EQ(fj_worker_queued(), 0);
    }
}

static void counted_end(fj_pool *p, struct counted *c)
{
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_future_join(&c->j[i].f), FJ_OK);
        job_release(&c->j[i], 1);
        check_normal(&c->j[i].f, &c->j[i]);
    }
    CHECK_EQ(fj_pool_queued_submission_count(p), 0);
    CHECK(!fj_pool_has_queued_submissions(p));
    CHECK_EQ(fj_pool_queued_task_count(p), 0);
}

FJ_TEST(ForkJoinPool20Test__testExternalSubmit2, 30)
{
    fj_pool *p = conformance_pool_of(1);
    struct counted c;

    inside(p, external_counts, &c);
    counted_end(p, &c);
    fjt_destroy(p);
}

static _Atomic(fj_task *) task_seen;

static int task_note(fj_task *t)
{
    atomic_store(&task_seen, t);
    return FJ_OK;
}

/* The body receives the task that was submitted. */
FJ_TEST(ForkJoinPool20Test__testExternalSubmitReturnsTask, 30)
{
    fj_pool *p = conformance_pool();
    fj_future f;
    fj_task t;

    fj_task_init(&t, task_note);
    CHECK_EQ(fj_submit_external(p, &t), FJ_OK);
    CHECK_EQ(fj_join(&t), FJ_OK);
    CHECK(atomic_load(&task_seen) == &t);
    fj_future_init(&f, task_note);
    CHECK_EQ(fj_future_submit_external(p, &f), FJ_OK);
    CHECK_EQ(fj_future_join(&f), FJ_OK);
    CHECK(atomic_load(&task_seen) == &f.task);
    fj_future_fini(&f);
    fjt_destroy(p);
}

FJ_TEST(ForkJoinPool20Test__testExternalSubmitWithNull, 30)
{
    fj_pool *p = conformance_pool();

    CHECK_EQ(fj_submit_external(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_submit_external(p, NULL), FJ_EINVAL);
    CHECK(!fj_pool_has_queued_submissions(p));
    fjt_destroy(p);
}

struct late {
    struct job j, inside;
    fj_task t, inside_t, own;
};

/* A worker of a pool that is shut down may push to its own queue, but not to a submission queue. */
static void submit_late(void *arg)
{
    struct late *l = arg;
    fj_pool *p = fj_current_pool();

    UNTIL(fj_pool_is_shutdown(p));
    CHECK_EQ(fj_submit_external(p, &l->inside_t), FJ_EREJECTED);
    CHECK_EQ(fj_future_submit_external(p, &l->inside.f), FJ_EREJECTED);
    fj_task_init(&l->own, fail_55);
    CHECK_EQ(fj_submit(p, &l->own), FJ_OK);
    CHECK_EQ(fj_join(&l->own), 55);
}

FJ_TEST(ForkJoinPool20Test__testExternalSubmitWhenShutdown, 30)
{
    fj_pool *p = conformance_pool();
    struct late l;
    struct inside i = {.body = submit_late, .arg = &l};

    job_init(&l.j, FJ_OK);
    job_init(&l.inside, FJ_OK);
    fj_task_init(&l.t, fail_55);
    fj_task_init(&l.inside_t, fail_55);
    fj_task_init(&i.task, inside_run);
    CHECK_EQ(fj_submit(p, &i.task), FJ_OK);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    CHECK_EQ(fj_submit_external(p, &l.t), FJ_EREJECTED);
    CHECK_EQ(fj_future_submit_external(p, &l.j.f), FJ_EREJECTED);
    CHECK_EQ(fj_join(&i.task), FJ_OK);
    fjt_destroy(p);
    state_check_stuck(&l.j.f);
    state_check_stuck(&l.inside.f);
}

FJ_TEST(ForkJoinPool20Test__testSubmit, 30)
{
    fj_pool *p = conformance_pool_of(1);
    struct job busy;
    struct counted c;

    job_occupy(p, &busy);
    for (int i = 0; i < 3; i++) {
        job_init(&c.j[i], FJ_OK);
        CHECK_EQ(fj_future_submit(p, &c.j[i].f), FJ_OK);
        CHECK_EQ(fj_pool_queued_submission_count(p), i + 1);
        CHECK(fj_pool_has_queued_submissions(p));
        CHECK_EQ(fj_pool_queued_task_count(p), 0);
    }
    job_release(&busy, 1);
    counted_end(p, &c);
    fjt_destroy(p);
}

static void own_counts(void *arg)
{
    struct counted *c = arg;
    fj_pool *p = fj_current_pool();

    for (int i = 0; i < 3; i++) {
        job_init(&c->j[i], FJ_OK);
        CHECK_EQ(fj_future_submit(p, &c->j[i].f), FJ_OK);
        CHECK_EQ(fj_worker_queued(), i + 1);
        CHECK_EQ(fj_pool_queued_task_count(p), i + 1);
        CHECK_EQ(fj_pool_queued_submission_count(p), 0);
    }
}

FJ_TEST(ForkJoinPool20Test__testGetQueuedTaskCount1, 30)
{
    fj_pool *p = conformance_pool_of(1);
    struct counted c;

    inside(p, own_counts, &c);
    counted_end(p, &c);
    fjt_destroy(p);
}

struct busy_counted {
    fj_task task;
    atomic_int begun, counts, counted, own;
};

/* Occupies a worker, and reports the length of its own queue when the test asks for it. */
static int busy_count(fj_task *t)
{
    struct busy_counted *b = (struct busy_counted *)t;

    atomic_store(&b->begun, 1);
    UNTIL(atomic_load(&b->counts));
    atomic_store(&b->own, fj_worker_queued());
    atomic_store(&b->counted, 1);
    return FJ_OK;
}

struct both_counted {
    struct counted c;
    struct busy_counted busy;
};

static void own_counts_beside(void *arg)
{
    struct both_counted *b = arg;

    own_counts(&b->c);
    atomic_store(&b->busy.counts, 1);
    UNTIL(atomic_load(&b->busy.counted));
    CHECK_EQ(atomic_load(&b->busy.own), 0);
}

FJ_TEST(ForkJoinPool20Test__testGetQueuedTaskCount2, 30)
{
    fj_pool *p = conformance_pool_of(2);
    struct both_counted b = {.busy = {.begun = 0}};

    fj_task_init(&b.busy.task, busy_count);
    CHECK_EQ(fj_submit(p, &b.busy.task), FJ_OK);
    UNTIL(atomic_load(&b.busy.begun));
    inside(p, own_counts_beside, &b);
    CHECK_EQ(fj_join(&b.busy.task), FJ_OK);
    counted_end(p, &b.c);
    fjt_destroy(p);
}

static void submit_nothing(void *arg)
{
    fj_pool *p = arg;
    fj_future *untouched = (fj_future *)&p, *f = untouched;

    CHECK_EQ(fj_execute(p, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_submit(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_submit_external(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_submit_lazy(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_invoke(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_submit(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_submit_external(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_submit_lazy(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_fork(NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_run(NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_submit_call(p, NULL, NULL, &f), FJ_EINVAL);
    CHECK_EQ(fj_submit_action(p, NULL, NULL, NULL, &f), FJ_EINVAL);
    CHECK_EQ(fj_future_new_call(NULL, NULL, 0, &f), FJ_EINVAL);
    CHECK_EQ(fj_future_new_action(NULL, NULL, NULL, 0, &f), FJ_EINVAL);
    CHECK(f == untouched);
    CHECK_EQ(fj_pool_queued_submission_count(p), 0);
    CHECK_EQ(fj_pool_queued_task_count(p), 0);
}

FJ_TEST(ForkJoinPool20Test__testNullTaskSubmission, 30)
{
    fj_pool *p = conformance_pool_of(1);

    submit_nothing(p);
    inside(p, submit_nothing, p);
    fjt_destroy(p);
}

/* Jobs that ignore the shutdown are running, and more jobs are queued behind them. The rounds
 * alternate between fj_pool_shutdown() and fj_pool_shutdown_now(). */
FJ_TEST(ForkJoinPool20Test__testSubmittedTasksRejectedWhenShutdown, 60)
{
    int n = conformance_workers();
    struct job *j = calloc((size_t)n * 2, sizeof *j);

    CHECK(j != NULL);
    for (long round = fjt_rounds(100); round > 0; round--) {
        bool now = round % 2 == 0;
        fj_pool *p = conformance_pool();
        struct job late;
        for (int i = 0; i < 2 * n; i++) {
            job_init_held(&j[i]);
            CHECK_EQ(fj_future_submit(p, &j[i].f), FJ_OK);
            if (i < n) job_begun(&j[i]);
        }
        CHECK_EQ(now ? fj_pool_shutdown_now(p) : fj_pool_shutdown(p), FJ_OK);
        job_init(&late, FJ_OK);
        CHECK_EQ(fj_future_submit(p, &late.f), FJ_EREJECTED);
        CHECK_EQ(fj_pool_await_termination(p, MS), FJ_ETIMEDOUT);
        CHECK(fj_pool_is_shutdown(p));
        CHECK_EQ(fj_pool_is_terminating(p), now);
        for (int i = 0; i < 2 * n; i++) atomic_store(&j[i].may_end, 1);
        CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
        check_pool_ended(p);
        for (int i = 0; i < 2 * n; i++) {
            bool ran = i < n || !now;
            job_release(&j[i], ran);
            state_check_done(&j[i].f, ran ? FJ_OK : FJ_ECANCELED, &j[i]);
        }
        fjt_destroy(p);
    }
    free(j);
}
