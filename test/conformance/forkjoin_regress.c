/* SPDX-License-Identifier: MIT */
/*
 * forkjoin_regress.c - conformance with Java: the JDK's regression tests of fork/join
 *
 * There is one test for each file or method of the JDK's forkjoin regression tests that has a
 * meaning in C. They check that a stop ends every wait, that no wake-up is lost, that errors are
 * reported and leave no memory behind, and that a common pool without threads works.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "conformance.h"

/* ---- A pool is stopped while a thread waits ---------------------------------------------- */

struct stop {
    fj_pool *pool;
    struct job *j; /* the stop comes when this job has begun */
    int64_t delay_us;
};

static void *stop_main(void *arg)
{
    struct stop *s = arg;

    if (s->j != NULL) job_begun(s->j);
    fjt_spin_us(s->delay_us);
    CHECK_EQ(fj_pool_shutdown_now(s->pool), FJ_OK);
    return NULL;
}

/* How the test waits for a job that runs or that is queued behind it. */
typedef int stop_wait(fj_future *f);

static int stop_get(fj_future *f)
{
    return fj_future_get(f, FJ_FOREVER, NULL);
}

static int stop_timed_get(fj_future *f)
{
    return fj_future_get(f, LONG_NS, NULL);
}

static void stop_during_get(stop_wait *wait, int workers, bool queued, int64_t delay_us)
{
    fj_pool *p = conformance_pool_of(workers);
    struct job *j = calloc((size_t)workers + 1, sizeof *j);
    int runs = queued ? workers : 1; /* with one job per worker, the last job stays queued */

    CHECK(j != NULL);
    for (int i = 0; i <= workers; i++) job_init_polls(&j[i]);
    for (int i = 0; i < runs; i++) CHECK_EQ(fj_future_submit(p, &j[i].f), FJ_OK);
    for (int i = 0; i < runs; i++) job_begun(&j[i]);
    struct job *last = &j[queued ? workers : 0];
    if (queued) CHECK_EQ(fj_future_submit(p, &last->f), FJ_OK);
    struct stop s = {.pool = p, .j = &j[0], .delay_us = delay_us};
    pthread_t t = conformance_thread(stop_main, &s);
    int code = wait(&last->f);
    CHECK_EQ(code, queued ? FJ_ECANCELED : FJ_OK); /* a job that had begun keeps its own outcome */
    (void)conformance_thread_end(t);
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    for (int i = 0; i < runs; i++) {
        job_release(&j[i], 1);
        CHECK_EQ(atomic_load(&j[i].stopping), 1);
        check_normal(&j[i].f, &j[i]);
    }
    if (queued) {
        job_release(last, 0);
        check_cancelled(&last->f);
    }
    fjt_destroy(p);
    free(j);
}

static void stop_during_gets(stop_wait *wait)
{
    uint64_t random = fjt_seed();

    for (long i = fjt_rounds(50); i > 0; i--)
        for (int queued = 0; queued < 2; queued++) {
            stop_during_get(wait, conformance_workers(), queued,
                            (int64_t)(fjt_random(&random) % 200));
            stop_during_get(wait, 1, queued, (int64_t)(fjt_random(&random) % 200));
        }
}

FJ_TEST(AsyncShutdownNow__testFutureGet, 120)
{
    stop_during_gets(stop_get);
}

FJ_TEST(AsyncShutdownNow__testTimedFutureGet, 120)
{
    stop_during_gets(stop_timed_get);
}

#define BULK 6

struct bulk {
    struct job j[BULK];
    fj_future *f[BULK];
};

/* The bodies poll fj_is_cancelled(), so each body that has begun ends when the pool is stopped. */
static void bulk_init(struct bulk *b, int code)
{
    for (int i = 0; i < BULK; i++) {
        job_init_polls(&b->j[i]);
        b->j[i].code = code;
        b->f[i] = &b->j[i].f;
    }
}

/* Stops the pool when any of the jobs has begun. */
static void *stop_bulk_main(void *arg)
{
    struct stop *s = arg;

    for (int some = 0; !some;) {
        for (int i = 0; i < BULK; i++) some += atomic_load(&s->j[i].begun);
        sched_yield();
    }
    s->j = NULL;
    return stop_main(s);
}

static void bulk_end(struct bulk *b)
{
    for (int i = 0; i < BULK; i++) {
        CHECK(fj_future_is_done(b->f[i]));
        fj_future_fini(b->f[i]);
        CHECK_EQ(atomic_load(&b->j[i].begun), atomic_load(&b->j[i].ended));
        if (!atomic_load(&b->j[i].begun)) check_cancelled(b->f[i]);
    }
}

/* Some jobs have begun; with few workers the others are queued. Every future must become done. The
 * bodies of an any-of call fail when the pool is stopped, because a body that succeeds would end the
 * call normally. */
static void stop_during_bulk(bool any, int workers, int64_t delay_us)
{
    fj_pool *p = conformance_pool_of(workers);
    struct bulk b;
    struct stop s = {.pool = p, .j = b.j, .delay_us = delay_us};
    size_t which = 77;
    int own = any ? 81 : FJ_OK;

    bulk_init(&b, own);
    pthread_t t = conformance_thread(stop_bulk_main, &s);
    int code = any ? fj_future_invoke_any(p, b.f, BULK, FJ_FOREVER, &which)
                   : fj_future_invoke_all(p, b.f, BULK, FJ_FOREVER);
    /* The stop may come between two submissions, or before a body has begun. */
    CHECK(code == own || code == FJ_EREJECTED || code == FJ_ECANCELED);
    CHECK_EQ(which, 77);
    (void)conformance_thread_end(t);
    CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
    bulk_end(&b);
    fjt_destroy(p);
}

static void stop_during_bulks(bool any)
{
    uint64_t random = fjt_seed();

    for (long i = fjt_rounds(100); i > 0; i--) {
        stop_during_bulk(any, conformance_workers(), (int64_t)(fjt_random(&random) % 200));
        stop_during_bulk(any, 1, (int64_t)(fjt_random(&random) % 200));
    }
}

FJ_TEST(AsyncShutdownNow__testInvokeAll, 120)
{
    stop_during_bulks(false);
}

FJ_TEST(AsyncShutdownNow__testInvokeAny, 120)
{
    stop_during_bulks(true);
}

FJ_TEST(AsyncShutdownNowInvokeAny__testInvokeAny, 120)
{
    for (long i = fjt_rounds(200); i > 0; i--) stop_during_bulk(true, 1, i % 20 * 10);
}

/*
 * A stop meets two bodies at any moment: when both are queued, when both have begun, or in between.
 * Any outcome is correct, but the call must return.
 */
static atomic_int any_arrived;

static int arrive_run(fj_task *t)
{
    atomic_fetch_add(&any_arrived, 1);
    return job_run(t);
}

FJ_TEST(AsyncShutdownNowInvokeAnyRace__testInvokeAny, 300)
{
    uint64_t random = fjt_seed();

    for (long i = fjt_rounds(6000); i > 0; i--) {
        fj_pool *p = conformance_pool_of(2);
        struct job j[2];
        fj_future *f[2] = {&j[0].f, &j[1].f};
        size_t which = 77;
        atomic_store(&any_arrived, 0);
        for (int k = 0; k < 2; k++) {
            job_init(&j[k], i % 3 == 0 ? 82 : FJ_OK);
            fj_future_init(&j[k].f, arrive_run);
            if (i % 2 == 0) atomic_store(&j[k].may_end, 0), j[k].polls = true;
        }
        struct stop s = {.pool = p, .delay_us = (int64_t)(fjt_random(&random) % 60)};
        pthread_t t = conformance_thread(stop_main, &s);
        int code = fj_future_invoke_any(p, f, 2, FJ_FOREVER, &which);
        (void)conformance_thread_end(t);
        CHECK_EQ(fj_pool_await_termination(p, LONG_NS), FJ_OK);
        CHECK_EQ(which == 77, code != FJ_OK);
        CHECK(code == FJ_OK || code == 82 || code == FJ_ECANCELED || code == FJ_EREJECTED);
        if (code == FJ_OK) CHECK(fj_future_succeeded(f[which]));
        int begun = 0;
        for (int k = 0; k < 2; k++) {
            CHECK(fj_future_is_done(f[k]));
            fj_future_fini(f[k]);
            begun += atomic_load(&j[k].begun);
            CHECK_EQ(atomic_load(&j[k].begun), atomic_load(&j[k].ended));
        }
        CHECK_EQ(begun, atomic_load(&any_arrived));
        fjt_destroy(p);
    }
}

/* ---- Errors leave nothing behind --------------------------------------------------------- */

static long resident_bytes(void)
{
    long pages = 0, ignored;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL) fjt_skip("no /proc/self/statm");
    CHECK_EQ(fscanf(f, "%ld %ld", &ignored, &pages), 2);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static void fail_many(fj_pool *p, long n)
{
    static int code = 83;

    for (long i = 0; i < n; i += 100) {
        fj_future *f[100];
        for (int k = 0; k < 100; k++) CHECK_EQ(fj_submit_call(p, call_fail, &code, &f[k]), FJ_OK);
        for (int k = 0; k < 100; k++) {
            CHECK_EQ(fj_future_join(f[k]), 83);
            fj_future_unref(f[k]);
        }
    }
}

/* If a failure left memory behind, that would be at least ten bytes for each of a million
 * failures. */
FJ_TEST(forkjoin__FJExceptionTableLeak, 300)
{
    fj_pool *p = conformance_pool();
    long n = fjt_rounds(fjt_sanitized() ? 20000 : 1000000);

    fail_many(p, n / 10);
    long before = resident_bytes();
    fail_many(p, n);
    long after = resident_bytes();
    /* A sanitizer keeps freed memory, and reports leaks itself. */
    if (!fjt_sanitized()) CHECK(after - before < 8 * n || after - before < (4 << 20));
    fjt_destroy(p);
}

struct thrown {
    fj_pool *pool;
    atomic_int count[4], wrong;
};

static void note_error(fj_pool *p, int code, void *arg)
{
    struct thrown *t = arg;

    if (p != t->pool || fj_current_pool() != p || code < 90 || code >= 94)
        atomic_fetch_add(&t->wrong, 1);
    else
        atomic_fetch_add(&t->count[code - 90], 1);
}

static int throw_code(void *arg)
{
    return (int)(intptr_t)arg;
}

/* on_error is called once for each action that fails. It is not called for a future that is
 * joined. */
FJ_TEST(forkjoin__ThrowingRunnable, 60)
{
    static struct thrown t;
    fj_pool_options o = {0};
    fj_future *f;

    o.parallelism = conformance_workers();
    o.flags = conformance_flags();
    o.arg = &t;
    o.on_error = note_error;
    t.pool = fjt_pool_with(&o);
    for (intptr_t i = 0; i < 400; i++) {
        CHECK_EQ(fj_execute(t.pool, throw_code, (void *)(90 + i % 4)), FJ_OK);
        CHECK_EQ(fj_execute(t.pool, throw_code, NULL), FJ_OK);
    }
    CHECK_EQ(fj_submit_action(t.pool, throw_code, (void *)(intptr_t)91, NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), 91);
    fj_future_unref(f);
    fjt_destroy(t.pool);
    for (int i = 0; i < 4; i++) CHECK_EQ(atomic_load(&t.count[i]), 100);
    CHECK_EQ(atomic_load(&t.wrong), 0);
}

/* ---- Several threads wait for one future ------------------------------------------------- */

struct waits {
    fj_future *f;
    int64_t limit;
    atomic_int code;
};

static void wait_for(void *arg)
{
    struct waits *w = arg;
    atomic_store(&w->code, fj_future_get(w->f, w->limit, NULL));
}

static void *wait_main(void *waits)
{
    wait_for(waits);
    return NULL;
}

/* One waiter is interrupted. The other keeps waiting and gets the outcome. */
FJ_TEST(GetMultipleWaiters__testGet, 60)
{
    fj_pool *p = conformance_pool();

    for (long i = fjt_rounds(100); i > 0; i--) {
        struct job j;
        struct caller c;
        struct waits stays = {.limit = FJ_FOREVER, .code = 1}, leaves = stays;
        job_occupy(p, &j);
        stays.f = leaves.f = &j.f;
        pthread_t t = conformance_thread(wait_main, &stays);
        caller_start(&c, wait_for, &leaves, false);
        fjt_spin_us(i % 50);
        caller_interrupt(&c);
        caller_end(&c);
        CHECK_EQ(atomic_load(&leaves.code), FJ_ECANCELED);
        CHECK_EQ(atomic_load(&stays.code), 1);
        job_release(&j, 1);
        (void)conformance_thread_end(t);
        CHECK_EQ(atomic_load(&stays.code), FJ_OK);
        check_normal(&j.f, &j);
    }
    fjt_destroy(p);
}

FJ_TEST(GetMultipleWaiters__testTimedGet, 60)
{
    fj_pool *p = conformance_pool();

    for (long i = fjt_rounds(100); i > 0; i--) {
        struct job j;
        struct waits stays = {.limit = i % 2 == 0 ? FJ_FOREVER : LONG_NS, .code = 1};
        job_occupy(p, &j);
        stays.f = &j.f;
        pthread_t t = conformance_thread(wait_main, &stays);
        int64_t begin = fjt_now();
        CHECK_EQ(fj_future_get(&j.f, 2 * MS, NULL), FJ_ETIMEDOUT);
        CHECK(fjt_now() - begin >= 2 * MS);
        CHECK_EQ(atomic_load(&stays.code), 1);
        job_release(&j, 1);
        (void)conformance_thread_end(t);
        CHECK_EQ(atomic_load(&stays.code), FJ_OK);
        check_normal(&j.f, &j);
    }
    fjt_destroy(p);
}

/* ---- Integrate --------------------------------------------------------------------------- */

enum policy { SERIAL, FORK, DYNAMIC };

struct area {
    fj_task task;
    double left, right, f_left, f_right, area;
    enum policy policy;
};

static double cubic(double x)
{
    return (x * x + 1) * x;
}

static int area_run(fj_task *t);

/* Halves an interval until the sum of two trapezoids is close to that of one. The policy says when
 * the left half is forked. */
static double integrate(double l, double r, double fl, double fr, double area, enum policy policy)
{
    double m = l + (r - l) / 2, fm = cubic(m);
    double left = (fl + fm) * (m - l) / 2, right = (fm + fr) * (r - m) / 2;

    if (fabs(left + right - area) <= 1e-7) return left + right;
    if (policy == SERIAL || (policy == DYNAMIC && fj_worker_surplus() > 3))
        return integrate(l, m, fl, fm, left, policy) + integrate(m, r, fm, fr, right, policy);
    struct area a = {.left = l, .right = m, .f_left = fl, .f_right = fm, .area = left};
    a.policy = policy;
    fj_task_init(&a.task, area_run);
    fj_fork(&a.task);
    right = integrate(m, r, fm, fr, right, policy);
    if (policy == DYNAMIC && fj_unfork(&a.task))
        return right + integrate(l, m, fl, fm, left, policy);
    CHECK_EQ(fj_join(&a.task), FJ_OK);
    return right + a.area;
}

static int area_run(fj_task *t)
{
    struct area *a = (struct area *)t;

    a->area = integrate(a->left, a->right, a->f_left, a->f_right, a->area, a->policy);
    return FJ_OK;
}

FJ_TEST(forkjoin__Integrate, 120)
{
    for (int policy = SERIAL; policy <= DYNAMIC; policy++) {
        fj_pool *p = conformance_pool();
        double end = 48, exact = end * end * end * end / 4 + end * end / 2;
        struct area a = {.left = 0, .right = end, .f_left = 0, .f_right = cubic(end)};
        a.policy = (enum policy)policy;
        fj_task_init(&a.task, area_run);
        for (long i = fjt_rounds(3); i > 0; i--) {
            a.area = 0;
            CHECK_EQ(fj_invoke(p, &a.task), FJ_OK);
            CHECK(fabs(a.area - exact) < 1e-3 * exact);
        }
        fjt_destroy(p);
    }
}

/* ---- NQueens ----------------------------------------------------------------------------- */

#define BOARD_MAX 11

struct board {
    fj_task task;
    int n, row, solutions;
    int column[BOARD_MAX];
    struct board *next; /* the sibling that was forked after this one */
};

static bool attacked(const struct board *b, int column)
{
    for (int i = 0; i < b->row; i++) {
        int away = b->row - i, apart = b->column[i] - column;
        if (apart == 0 || apart == away || apart == -away) return true;
    }
    return false;
}

/* Forks one task for each valid position of the next queen, and joins them in the order of the
 * forks. */
static int board_run(fj_task *t)
{
    struct board *b = (struct board *)t, *first = NULL, **last = &first;

    b->solutions = b->row == b->n;
    for (int c = 0; b->row < b->n && c < b->n; c++) {
        if (attacked(b, c)) continue;
        struct board *child = malloc(sizeof *child);
        CHECK(child != NULL);
        child->n = b->n;
        child->row = b->row + 1;
        memcpy(child->column, b->column, sizeof b->column);
        child->column[b->row] = c;
        child->next = NULL;
        fj_task_init(&child->task, board_run);
        fj_fork(&child->task);
        *last = child;
        last = &child->next;
    }
    while (first != NULL) {
        struct board *next = first->next;
        CHECK_EQ(fj_join(&first->task), FJ_OK);
        b->solutions += first->solutions;
        free(first);
        first = next;
    }
    return FJ_OK;
}

FJ_TEST(forkjoin__NQueensCS, 300)
{
    static const int solutions[] = {0, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680};
    int sizes[] = {conformance_workers(), 8};
    int largest = fjt_sanitized() ? 8 : BOARD_MAX;

    for (int i = 0; i < 2; i++) {
        fj_pool *p = conformance_pool_of(sizes[i]);
        for (int n = 1; n <= largest; n++) {
            struct board b = {.n = n};
            fj_task_init(&b.task, board_run);
            CHECK_EQ(fj_invoke(p, &b.task), FJ_OK);
            CHECK_EQ(b.solutions, solutions[n]);
        }
        fjt_destroy(p);
    }
}

/* ---- Wake-ups that must not be lost ------------------------------------------------------ */

struct pair {
    atomic_int second;
};

static int first_of_pair(void *arg)
{
    struct pair *p = arg;

    /* Yields the CPU but does not end, so only another worker can set the flag. */
    while (!atomic_load(&p->second)) sched_yield();
    return FJ_OK;
}

static int second_of_pair(void *arg)
{
    atomic_store(&((struct pair *)arg)->second, 1);
    return FJ_OK;
}

FJ_TEST(forkjoin__Starvation, 300)
{
    fj_pool *p = conformance_pool_of(2);

    for (long i = fjt_rounds(fjt_sanitized() ? 10000 : 100000); i > 0; i--) {
        struct pair pair = {.second = 0};
        fj_future *a, *b;
        CHECK_EQ(fj_submit_action(p, first_of_pair, &pair, NULL, &a), FJ_OK);
        CHECK_EQ(fj_submit_action(p, second_of_pair, &pair, NULL, &b), FJ_OK);
        CHECK_EQ(fj_future_join(a), FJ_OK);
        CHECK_EQ(fj_future_join(b), FJ_OK);
        fj_future_unref(a);
        fj_future_unref(b);
    }
    fjt_destroy(p);
}

/* Submits each action at about the time at which the worker goes idle after the last one. */
FJ_TEST(forkjoin__SubmissionTest, 300)
{
    fj_pool *p = conformance_pool_of(1);
    uint64_t random = fjt_seed();
    long n = fjt_rounds(fjt_sanitized() ? 10000 : 30000);
    atomic_int ran = 0;

    for (int i = 1; i <= n; i++) {
        for (uint64_t k = fjt_random(&random) % 4096; k > 0; k--) __asm__ volatile("");
        CHECK_EQ(fj_execute(p, action_count, &ran), FJ_OK);
        UNTIL(atomic_load(&ran) == i);
    }
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&ran), n);
}

/* ---- The common pool, without threads or CPUs -------------------------------------------- */

struct sum {
    fj_future f;
    int low, high, r;
};

static int sum_run(fj_task *t)
{
    struct sum *s = (struct sum *)t, a, b;
    int middle = s->low + (s->high - s->low) / 2;

    s->r = s->low;
    if (s->high - s->low == 1) return FJ_OK;
    a = (struct sum){.low = s->low, .high = middle};
    b = (struct sum){.low = middle, .high = s->high};
    fj_future_init(&a.f, sum_run);
    fj_future_init(&b.f, sum_run);
    CHECK_EQ(fj_future_fork(&a.f), FJ_OK);
    CHECK_EQ(fj_future_run(&b.f), FJ_OK);
    CHECK_EQ(fj_future_join(&a.f), FJ_OK);
    fj_future_fini(&a.f);
    s->r = a.r + b.r;
    return FJ_OK;
}

struct sum_task {
    fj_task task;
    int low, high, r;
};

static int sum_task_run(fj_task *t)
{
    struct sum_task *s = (struct sum_task *)t;
    int middle = s->low + (s->high - s->low) / 2;
    struct sum_task a = {.low = s->low, .high = middle}, b = {.low = middle, .high = s->high};

    s->r = s->low;
    if (s->high - s->low == 1) return FJ_OK;
    fj_task_init(&a.task, sum_task_run);
    fj_fork(&a.task);
    CHECK_EQ(sum_task_run(&b.task), FJ_OK);
    CHECK_EQ(fj_join(&a.task), FJ_OK);
    s->r = a.r + b.r;
    return FJ_OK;
}

/* Every task that a thread outside the pool waits for must end. */
static void common_works(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct sum s = {.low = 0, .high = 1000};
        struct sum_task t = {.low = 0, .high = 1000};
        int code = FJ_OK, task_code = FJ_OK;
        fj_future_init(&s.f, sum_run);
        fj_task_init(&t.task, sum_task_run);
        if (kind == 0) { /* in the calling thread */
            code = fj_future_run(&s.f);
            task_code = sum_task_run(&t.task);
        } else if (kind == 1) {
            CHECK_EQ(fj_future_fork(&s.f), FJ_OK);
            code = fj_future_join(&s.f);
            fj_fork(&t.task);
            task_code = fj_join(&t.task);
        } else {
            code = fj_future_invoke(fj_common_pool(), &s.f);
            task_code = fj_invoke(NULL, &t.task);
        }
        CHECK_EQ(code, FJ_OK);
        CHECK_EQ(task_code, FJ_OK);
        CHECK_EQ(s.r, 499500);
        CHECK_EQ(t.r, 499500);
        fj_future_fini(&s.f);
        check_normal(&s.f, NULL);
    }
}

FJ_TEST(forkjoin__ThreadLessCommon, 60)
{
    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "0", 1), 0);
    CHECK_EQ(fj_common_parallelism(), 0);
    common_works();
    CHECK_EQ(fj_pool_thread_count(NULL), 0);
}

static atomic_int refusals;

static int refuse(fj_pool *p, void *arg)
{
    (void)p, (void)arg;
    atomic_fetch_add(&refusals, 1);
    return 0;
}

/* The other configuration of the same row: the pool may have workers, but it is refused every
 * thread. */
FJ_TEST(forkjoin__ThreadLessCommon_refused, 60)
{
    fj_pool_options o = {0};

    CHECK_EQ(unsetenv("FORKJOIN_PARALLELISM"), 0);
    o.parallelism = 4;
    o.allow_thread = refuse;
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    CHECK_EQ(fj_common_parallelism(), 4);
    common_works();
    CHECK_EQ(fj_pool_thread_count(NULL), 0);
    CHECK(atomic_load(&refusals) > 0);
}

/* With one CPU the common pool still has a worker, so that it runs actions that no thread waits
 * for. */
FJ_TEST(forkjoin__Uniprocessor, 60)
{
    cpu_set_t all, one;
    atomic_int ran = 0;

    CHECK_EQ(unsetenv("FORKJOIN_PARALLELISM"), 0);
    if (sched_getaffinity(0, sizeof all, &all) != 0) fjt_skip("CPU affinity is not supported");
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) fjt_skip("the affinity cannot be changed");
    if (fj_available_parallelism() != 1)
        fjt_skip("the number of CPUs does not follow the affinity");
    CHECK(fj_common_parallelism() >= 1);
    for (int i = 1; i <= 100; i++) {
        CHECK_EQ(fj_execute(NULL, action_count, &ran), FJ_OK);
        UNTIL(atomic_load(&ran) == i);
    }
    CHECK(fj_pool_thread_count(NULL) >= 1);
    common_works();
}
