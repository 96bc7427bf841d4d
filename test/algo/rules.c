/* SPDX-License-Identifier: MIT */
/*
 * rules.c - rules for all loops and reductions: where bodies run, what ends a call, progress
 *
 * Each adapter calls one algorithm with the same kind of body. The body receives a chunk [begin,
 * end) of the range [0, n).
 */
#define _GNU_SOURCE
#include <forkjoin/block.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "places.h"

/* ---- Adapters ------------------------------------------------------------------------------- */

typedef int adapter(size_t n, fj_for_fn *body, void *arg, const fj_algo_options *how);

struct bound {
    fj_for_fn *body;
    void *arg;
    const unsigned char *base;
};

static int by_for(size_t n, fj_for_fn *body, void *arg, const fj_algo_options *how)
{
    return fj_for(0, n, body, arg, how);
}

static int rows_body(size_t r0, size_t r1, size_t c0, size_t c1, void *arg)
{
    const struct bound *b = arg;

    CHECK(c0 == 0 && c1 == 1);
    return b->body(r0, r1, b->arg);
}

static int by_rows(size_t n, fj_for_fn *body, void *arg, const fj_algo_options *how)
{
    struct bound b = {body, arg, NULL};
    return fj_for_2d(n, 1, rows_body, &b, how);
}

static int columns_body(size_t r0, size_t r1, size_t c0, size_t c1, void *arg)
{
    const struct bound *b = arg;

    CHECK(r0 == 0 && r1 == 1);
    return b->body(c0, c1, b->arg);
}

static int by_columns(size_t n, fj_for_fn *body, void *arg, const fj_algo_options *how)
{
    struct bound b = {body, arg, NULL};
    return fj_for_2d(1, n, columns_body, &b, how);
}

static int array_body(const void *in, void *out, size_t n, void *arg)
{
    const struct bound *b = arg;
    size_t at = (size_t)((const unsigned char *)in - b->base);

    CHECK(out == in);
    return b->body(at, at + n, b->arg);
}

static int by_transform(size_t n, fj_for_fn *body, void *arg, const fj_algo_options *how)
{
    static unsigned char array[1 << 20];
    struct bound b = {body, arg, array};

    CHECK(n <= sizeof array);
    return fj_transform(array, 1, array, 1, n, array_body, &b, how);
}

struct numbered {
    struct bound *bound;
    size_t i;
};

static int numbered_call(void *arg)
{
    const struct numbered *s = arg;
    return s->bound->body(s->i, s->i + 1, s->bound->arg);
}

static int by_steps(size_t n, fj_for_fn *body, void *arg, const fj_algo_options *how)
{
    struct bound b = {body, arg, NULL};
    struct numbered *each = calloc(n + 1, sizeof *each);
    fj_function *step = calloc(n + 1, sizeof *step);

    CHECK(each != NULL && step != NULL);
    for (size_t i = 0; i < n; i++) {
        each[i] = (struct numbered){&b, i};
        step[i] = (fj_function){numbered_call, &each[i]};
    }
    int code = fj_invoke_functions(step, n, how);
    free(each);
    free(step);
    return code;
}

static int fold_body(size_t begin, size_t end, void *acc, void *arg)
{
    const struct bound *b = arg;

    *(size_t *)acc += end - begin;
    return b->body(begin, end, b->arg);
}

static int fold_add(void *left, const void *right, void *arg)
{
    (void)arg;
    *(size_t *)left += *(const size_t *)right;
    return FJ_OK;
}

static int by_reduce(size_t n, fj_for_fn *body, void *arg, const fj_algo_options *how)
{
    struct bound b = {body, arg, NULL};
    size_t none = 0, result = 4711;
    int code = fj_reduce(0, n, fold_body, fold_add, &none, sizeof none, &b, &result, how);

    CHECK_EQ(result, code == FJ_OK ? n : 4711);
    return code;
}

static int count_body(size_t begin, size_t end, uint64_t *counts, void *arg)
{
    const struct bound *b = arg;

    counts[0] += end - begin;
    return b->body(begin, end, b->arg);
}

static int by_histogram(size_t n, fj_for_fn *body, void *arg, const fj_algo_options *how)
{
    struct bound b = {body, arg, NULL};
    uint64_t counts[2] = {100, 200};
    int code = fj_histogram(0, n, count_body, &b, counts, 2, how);

    CHECK_EQ(counts[0], code == FJ_OK ? 100 + n : 100);
    CHECK_EQ(counts[1], 200);
    return code;
}

static adapter *const all[] = {by_for,   by_rows,   by_columns,  by_transform,
                               by_steps, by_reduce, by_histogram};

/* The tests call test(run, arg) for the adapter of every algorithm. */
typedef void each_fn(adapter *run, void *arg);

static void each(each_fn *test, void *arg)
{
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) test(all[i], arg);
}

/* ---- Where the bodies run ------------------------------------------------------------------- */

struct visit {
    adapter *run;
    fj_pool *expected;
    atomic_size_t done;
};

static int visit_part(size_t begin, size_t end, void *arg)
{
    struct visit *v = arg;

    CHECK(fj_current_worker() >= 0);
    CHECK(fj_current_pool() == v->expected);
    atomic_fetch_add(&v->done, end - begin);
    return FJ_OK;
}

static void visit_place(fj_pool *pool, void *arg)
{
    struct visit *v = arg;
    fj_pool *here = fj_current_pool();

    fj_token token;
    fj_token_init(&token, NULL);
    v->expected = pool != NULL ? pool : here != NULL ? here : fj_common_pool();
    for (size_t n = 1; n <= 300; n = n * 3 + 1) {
        atomic_store(&v->done, 0);
        fj_algo_options how = {.pool = pool, .grain = n % 2};
        CHECK_EQ(v->run(n, visit_part, v, &how), FJ_OK);
        how.token = &token;
        CHECK_EQ(v->run(n, visit_part, v, &how), FJ_OK);
        CHECK_EQ(atomic_load(&v->done), 2 * n);
        CHECK(fj_current_pool() == here);
    }
    if (pool == NULL) CHECK_EQ(v->run(3, visit_part, v, NULL), FJ_OK);
}

static void visit_everywhere(adapter *run, void *arg)
{
    struct visit v = {.run = run};

    (void)arg;
    place_everywhere(visit_place, &v);
}

FJ_TEST(bodies_run_on_workers_of_the_pool_that_is_meant, 30)
{
    each(visit_everywhere, NULL);
}

FJ_TEST(a_common_pool_without_workers_runs_it_in_the_caller, 20)
{
    struct visit v = {.run = NULL};

    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "0", 1), 0);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        v.run = all[i];
        visit_place(NULL, &v);
        place_inside(NULL, visit_place, NULL, &v);
    }
    CHECK_EQ(fj_pool_thread_count(NULL), 0);
}

/* The accesses are not atomic, so that ThreadSanitizer reports them unless they are ordered. */
static int add_one(size_t begin, size_t end, void *arg)
{
    int *a = arg;

    for (size_t i = begin; i < end; i++) a[i]++;
    return FJ_OK;
}

static void ordered(adapter *run, void *arg)
{
    fj_pool *p = fjt_pool(4, 0);
    int a[500];

    (void)arg;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 500; i++) a[i] = i + round;
        CHECK_EQ(run(500, add_one, a, &(fj_algo_options){.pool = p, .grain = 3}), FJ_OK);
        CHECK_EQ(run(500, add_one, a, &(fj_algo_options){.pool = p}), FJ_OK);
        for (int i = 0; i < 500; i++) CHECK_EQ(a[i], i + round + 2);
    }
    fjt_destroy(p);
}

FJ_TEST(what_came_before_is_seen_by_bodies_and_what_they_did_by_the_caller, 20)
{
    each(ordered, NULL);
}

/* ---- Nested calls --------------------------------------------------------------------------- */

struct nest {
    adapter *run[3];
    fj_pool *pool[3];
    int depth;
    atomic_int *leaves;
    int64_t nap_ns;
};

enum { NEST_WIDTH = 9 };

static int nest_part(size_t begin, size_t end, void *arg)
{
    const struct nest *outer = arg;
    struct nest inner = *outer;

    CHECK(fj_current_worker() >= 0);
    if (outer->depth == 3) {
        atomic_fetch_add(outer->leaves, (int)(end - begin));
        return outer->nap_ns != 0 ? fj_sleep_ns(outer->nap_ns) : FJ_OK;
    }
    inner.depth++;
    for (size_t i = begin; i < end; i++) {
        fj_algo_options how = {.pool = outer->pool[outer->depth], .grain = i % 2};
        int code = outer->run[outer->depth](NEST_WIDTH, nest_part, &inner, &how);
        if (code != FJ_OK) return code;
    }
    return FJ_OK;
}

static void nest_check(adapter *const run[3], fj_pool *const pool[3], int64_t nap_ns)
{
    atomic_int leaves = 0;
    struct nest n = {.leaves = &leaves, .nap_ns = nap_ns};

    memcpy(n.run, run, sizeof n.run);
    memcpy(n.pool, pool, sizeof n.pool);
    n.depth = 1;
    CHECK_EQ(run[0](NEST_WIDTH, nest_part, &n, &(fj_algo_options){.pool = pool[0], .grain = 1}),
             FJ_OK);
    CHECK_EQ(atomic_load(&leaves), NEST_WIDTH * NEST_WIDTH * NEST_WIDTH);
}

FJ_TEST(three_deep_in_one_pool_and_across_pools, 60)
{
    fj_pool *a = fjt_pool(2, 0), *b = fjt_pool(3, FJ_POOL_FIFO), *c = fjt_pool(1, 0);
    fj_pool *const pools[][3] = {{NULL, NULL, NULL}, {a, NULL, NULL}, {b, NULL, NULL},
                                 {a, b, NULL},       {c, c, c},       {a, b, a},
                                 {NULL, a, NULL},    {b, NULL, b}};

    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++)
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
            adapter *const run[3] = {all[k], all[(k + i) % 7], all[(k + 3) % 7]};
            nest_check(run, pools[i], i == 1 && k < 3 ? 20000 : 0);
        }
    fjt_destroy(c);
    fjt_destroy(b);
    fjt_destroy(a);
}

struct forking {
    fj_task task;
    atomic_int *sum;
};

static int forked(fj_task *t)
{
    atomic_fetch_add(((struct forking *)t)->sum, 1);
    return FJ_OK;
}

static int fork_part(size_t begin, size_t end, void *arg)
{
    for (size_t i = begin; i < end; i++) {
        struct forking a = {.sum = arg}, b = {.sum = arg};
        fj_task_init(&a.task, forked);
        fj_task_init(&b.task, forked);
        fj_fork(&a.task);
        fj_fork(&b.task);
        if (i % 3 == 0) CHECK_EQ(fj_sleep_ns(1000), FJ_OK);
        CHECK_EQ(fj_join(&b.task), FJ_OK);
        CHECK_EQ(fj_join(&a.task), FJ_OK);
    }
    return FJ_OK;
}

static void forks(fj_pool *pool, void *arg)
{
    adapter *run = *(adapter *const *)arg;
    atomic_int sum = 0;

    CHECK_EQ(run(50, fork_part, &sum, &(fj_algo_options){.pool = pool}), FJ_OK);
    CHECK_EQ(run(50, fork_part, &sum, &(fj_algo_options){.pool = pool, .grain = 1}), FJ_OK);
    CHECK_EQ(atomic_load(&sum), 200);
}

FJ_TEST(bodies_may_fork_and_sleep, 30)
{
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        adapter *run = all[i];
        place_everywhere(forks, (void *)&run);
    }
}

/* ---- Several callers ------------------------------------------------------------------------ */

struct caller {
    pthread_t thread;
    fj_pool *pool;
};

static void *caller_main(void *arg)
{
    const struct caller *c = arg;

    for (size_t i = 0; i < 7 * 20; i++) {
        struct visit v = {.expected = c->pool != NULL ? c->pool : fj_common_pool()};
        fj_algo_options how = {.pool = c->pool, .grain = i % 3};
        CHECK_EQ(all[i % 7](50 + i, visit_part, &v, &how), FJ_OK);
        CHECK_EQ(atomic_load(&v.done), 50 + i);
    }
    return NULL;
}

FJ_TEST(several_threads_call_at_the_same_time, 30)
{
    fj_pool *p = fjt_pool(2, 0), *h = fjt_pool(2, FJ_POOL_CALLER_HELPS);
    struct caller c[6] = {{.pool = p}, {.pool = p}, {.pool = h}, {.pool = h}, {0}, {0}};

    for (int i = 0; i < 6; i++) CHECK_EQ(pthread_create(&c[i].thread, NULL, caller_main, &c[i]), 0);
    for (int i = 0; i < 6; i++) CHECK_EQ(pthread_join(c[i].thread, NULL), 0);
    fjt_destroy(h);
    fjt_destroy(p);
}

/* ---- Cancelling ----------------------------------------------------------------------------- */

struct stop {
    adapter *run;
    size_t n, at; /* the call is stopped in the chunk with element `at` */
    fj_token *token;
    fj_pool *pool; /* if not NULL, the body shuts this pool down */
    fj_future *future;
    atomic_size_t done, last; /* elements done; the highest `begin` of a chunk */
    fj_token *how_token;      /* the token and the pool of the call */
    fj_pool *how_pool;
    atomic_int stopped;
    int code;
};

static int stop_part(size_t begin, size_t end, void *arg)
{
    struct stop *s = arg;
    size_t last = atomic_load(&s->last);

    while (begin > last && !atomic_compare_exchange_weak(&s->last, &last, begin)) continue;
    atomic_fetch_add(&s->done, end - begin);
    if (atomic_load(&s->stopped)) fjt_sleep_us(100); /* to run all chunks would take long */
    if (begin > s->at || s->at >= end) return FJ_OK;
    if (s->token != NULL) fj_token_cancel(s->token);
    if (s->future != NULL) fj_future_cancel(s->future, 0);
    if (s->pool != NULL) CHECK_EQ(fj_pool_shutdown_now(s->pool), FJ_OK);
    atomic_store(&s->stopped, 1);
    return FJ_OK;
}

static int stop_call(struct stop *s)
{
    fj_algo_options how = {.pool = s->how_pool, .token = s->how_token, .grain = 1};
    int code = s->run(s->n, stop_part, s, &how);

    CHECK(code == FJ_OK || code == FJ_ECANCELED);
    if (code == FJ_OK) CHECK_EQ(atomic_load(&s->done), s->n);
    return code;
}

static void cancel_before(adapter *run, void *arg)
{
    fj_token token, child;

    (void)arg;
    fj_token_init(&token, NULL);
    fj_token_init(&child, &token);
    fj_token_cancel(&token);
    for (size_t n = 1; n < 100; n *= 3) {
        struct stop s = {.run = run, .n = n, .at = SIZE_MAX, .how_token = n % 2 ? &token : &child};
        CHECK_EQ(stop_call(&s), FJ_ECANCELED);
        CHECK_EQ(atomic_load(&s.done), 0);
    }
}

FJ_TEST(with_a_cancelled_token_nothing_runs, 10)
{
    each(cancel_before, NULL);
}

static void cancel_at_every_position(adapter *run, void *arg)
{
    for (int workers = 1; workers <= 4; workers += 3) {
        fj_pool *p = fjt_pool(workers, workers == 4 ? *(const unsigned *)arg : 0);
        for (size_t k = 0; k < 40; k++) {
            fj_token token;
            fj_token_init(&token, NULL);
            struct stop s = {.run = run, .n = 40, .at = k, .how_pool = p};
            s.token = s.how_token = &token;
            int code = stop_call(&s);
            if (workers > 1) continue;
            /* With one worker, chunks run from left to right and none begins after chunk k. The
             * call is complete only if k is the last chunk. */
            CHECK_EQ(code, k == 39 ? FJ_OK : FJ_ECANCELED);
            CHECK_EQ(atomic_load(&s.last), k);
        }
        fjt_destroy(p);
    }
}

FJ_TEST(cancelled_at_any_position_no_other_part_is_begun, 30)
{
    unsigned flags = 0;
    each(cancel_at_every_position, &flags);
    flags = FJ_POOL_FIFO | FJ_POOL_CALLER_HELPS;
    each(cancel_at_every_position, &flags);
}

/* A task that makes the call and is itself cancelled. */
struct stop_task {
    fj_future future; /* some tests use only its task */
    struct stop *stop;
};

static int stop_run(fj_task *t)
{
    struct stop_task *task = (struct stop_task *)t;

    task->stop->code = stop_call(task->stop);
    return FJ_OK;
}

/* Makes the call in a task of `in` whose token the body cancels. */
static void cancel_the_caller(adapter *run, fj_pool *in, fj_pool *on, fj_token *other)
{
    fj_token token;
    struct stop s = {.run = run, .n = 20000, .at = 7, .how_pool = on, .how_token = other};
    struct stop_task t = {.stop = &s};

    fj_token_init(&token, NULL);
    s.token = &token;
    fj_task_init(&t.future.task, stop_run);
    CHECK_EQ(fj_invoke_token(in, &t.future.task, &token), FJ_OK);
    CHECK_EQ(s.code, FJ_ECANCELED);
}

static void by_the_token_of_the_caller(adapter *run, void *arg)
{
    fj_pool *p = fjt_pool(3, 0);

    (void)arg;
    cancel_the_caller(run, p, NULL, NULL);
    cancel_the_caller(run, p, p, NULL);
    cancel_the_caller(run, NULL, NULL, NULL);
    fjt_destroy(p);
}

FJ_TEST(cancelled_by_the_token_of_the_calling_task, 20)
{
    each(by_the_token_of_the_caller, NULL);
}

static void with_a_token_of_its_own(adapter *run, void *arg)
{
    fj_pool *p = fjt_pool(3, 0);
    fj_token other;

    (void)arg;
    fj_token_init(&other, NULL);
    cancel_the_caller(run, p, NULL, &other);
    CHECK(!fj_token_is_cancelled(&other));
    fjt_destroy(p);
}

FJ_TEST(cancelled_by_the_token_of_the_calling_task_although_it_has_its_own, 20)
{
    each(with_a_token_of_its_own, NULL);
}

static void on_another_pool(adapter *run, void *arg)
{
    fj_pool *p = fjt_pool(2, 0), *q = fjt_pool(2, 0);

    (void)arg;
    cancel_the_caller(run, p, q, NULL);
    cancel_the_caller(run, p, fj_common_pool(), NULL);
    fjt_destroy(q);
    fjt_destroy(p);
}

FJ_TEST(cancelled_by_the_token_of_the_calling_task_on_another_pool, 20)
{
    each(on_another_pool, NULL);
}

static void by_the_future(adapter *run, void *arg)
{
    fj_pool *p = fjt_pool(3, 0);
    struct stop s = {.run = run, .n = 20000, .at = 7};
    struct stop_task t = {.stop = &s};

    (void)arg;
    fj_future_init(&t.future, stop_run);
    s.future = &t.future;
    CHECK_EQ(fj_future_submit(p, &t.future), FJ_OK);
    CHECK_EQ(fj_future_join(&t.future), FJ_ECANCELED);
    fj_future_fini(&t.future); /* the body has ended when this returns */
    CHECK_EQ(s.code, FJ_ECANCELED);
    fjt_destroy(p);
}

FJ_TEST(cancelled_by_the_future_of_the_calling_task, 20)
{
    each(by_the_future, NULL);
}

/* A task that cancels its own token before it makes the call. */
struct doomed {
    fj_task task;
    adapter *run;
    fj_token *token;
    fj_algo_options how;
    int code;
    atomic_size_t done;
};

static int count_part(size_t begin, size_t end, void *arg)
{
    atomic_fetch_add((atomic_size_t *)arg, end - begin);
    return FJ_OK;
}

static int doomed_run(fj_task *t)
{
    struct doomed *d = (struct doomed *)t;

    fj_token_cancel(d->token);
    d->code = d->run(100, count_part, &d->done, &d->how);
    return FJ_OK;
}

static void cancelled_callers(adapter *run, void *arg)
{
    fj_pool *p = fjt_pool(2, 0), *q = fjt_pool(2, 0);
    fj_token other;

    (void)arg;
    fj_token_init(&other, NULL);
    const fj_algo_options hows[] = {{.pool = NULL}, {.pool = p}, {.token = &other}, {.pool = q}};
    for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
        fj_token token;
        fj_token_init(&token, NULL);
        struct doomed d = {.run = run, .token = &token, .how = hows[i]};
        fj_task_init(&d.task, doomed_run);
        CHECK_EQ(fj_invoke_token(p, &d.task, &token), FJ_OK);
        CHECK_EQ(d.code, FJ_ECANCELED);
        CHECK_EQ(atomic_load(&d.done), 0);
    }
    fjt_destroy(q);
    fjt_destroy(p);
}

FJ_TEST(in_a_task_that_is_cancelled_already_nothing_runs, 20)
{
    each(cancelled_callers, NULL);
}

/* ---- Pools that are shut down --------------------------------------------------------------- */

static void stop_the_pool(adapter *run, void *arg)
{
    const unsigned flags = *(const unsigned *)arg;

    for (int workers = 1; workers <= 4; workers *= 2)
        for (size_t at = 0; at < 10; at += 3) {
            fj_pool *p = fjt_pool(workers, flags);
            struct stop s = {.run = run, .n = 20000, .at = at, .pool = p, .how_pool = p};
            CHECK_EQ(stop_call(&s), FJ_ECANCELED);
            fjt_destroy(p);
        }
}

FJ_TEST(ends_when_the_pool_is_stopped_from_a_body, 30)
{
    unsigned flags = 0;
    each(stop_the_pool, &flags);
    flags = FJ_POOL_FIFO;
    each(stop_the_pool, &flags);
    flags = FJ_POOL_CALLER_HELPS;
    each(stop_the_pool, &flags);
}

static void stop_inside(adapter *run, void *arg)
{
    (void)arg;
    for (int workers = 1; workers <= 3; workers++) {
        fj_pool *p = fjt_pool(workers, 0);
        struct stop s = {.run = run, .n = 20000, .at = 5, .pool = p};
        struct stop_task t = {.stop = &s};
        fj_task_init(&t.future.task, stop_run);
        CHECK_EQ(fj_invoke(p, &t.future.task), FJ_OK);
        CHECK_EQ(s.code, FJ_ECANCELED);
        fjt_destroy(p);
    }
}

FJ_TEST(ends_inside_a_task_when_its_pool_is_stopped, 20)
{
    each(stop_inside, NULL);
}

static int never(size_t begin, size_t end, void *arg)
{
    (void)begin, (void)end, (void)arg;
    fjt_fail(__FILE__, __LINE__, "the body was called");
}

static void refused(fj_pool *pool, void *arg)
{
    adapter *run = *(adapter *const *)arg;

    CHECK_EQ(run(10, never, NULL, &(fj_algo_options){.pool = pool}), FJ_EREJECTED);
    CHECK_EQ(run(10, never, NULL, &(fj_algo_options){.pool = pool, .grain = 1}), FJ_EREJECTED);
}

static void shut_down(adapter *run, void *arg)
{
    fj_pool *other = fjt_pool(1, 0);

    (void)arg;
    for (int i = 0; i < 4; i++) {
        fj_pool *p = fjt_pool(2, i % 2 == 0 ? 0 : FJ_POOL_CALLER_HELPS);
        if (i < 2)
            CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        else
            CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
        refused(p, (void *)&run);
        place_inside(other, refused, p, (void *)&run);
        fjt_destroy(p);
    }
    fjt_destroy(other);
}

FJ_TEST(a_pool_that_is_shut_down_takes_nothing, 20)
{
    each(shut_down, NULL);
}

static void last_wish(fj_pool *pool, void *arg)
{
    adapter *run = *(adapter *const *)arg;
    atomic_size_t done = 0;

    CHECK_EQ(fj_pool_shutdown(fj_current_pool()), FJ_OK);
    CHECK_EQ(run(1000, count_part, &done, &(fj_algo_options){.pool = pool, .grain = 1}), FJ_OK);
    CHECK_EQ(atomic_load(&done), 1000);
}

static void shut_down_inside(adapter *run, void *arg)
{
    (void)arg;
    for (int i = 0; i < 4; i++) {
        fj_pool *p = fjt_pool(2, i < 2 ? 0 : FJ_POOL_CALLER_HELPS);
        place_inside(p, last_wish, i % 2 == 0 ? NULL : p, (void *)&run);
        fjt_destroy(p);
    }
}

FJ_TEST(tasks_of_a_pool_that_is_shut_down_may_still_call, 20)
{
    each(shut_down_inside, NULL);
}

/* ---- Options -------------------------------------------------------------------------------- */

static void bad_options(adapter *run, void *arg)
{
    fj_progress p;
    const fj_algo_options bad[] = {{.reserved = {1, 0}, .progress = &p},
                                   {.reserved = {0, UINT64_MAX}, .progress = &p},
                                   {.min_grain = 2, .max_grain = 1, .progress = &p},
                                   {.min_grain = SIZE_MAX, .max_grain = 1, .progress = &p}};

    (void)arg;
    fj_progress_init(&p, 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(run(10, never, NULL, &bad[i]), FJ_EINVAL);
        CHECK_EQ(run(0, never, NULL, &bad[i]), FJ_EINVAL);
    }
    CHECK_EQ(fj_progress_total(&p), 0);
    CHECK_EQ(fj_progress_done(&p), 0);
}

FJ_TEST(options_that_cannot_be_meant_run_nothing, 10)
{
    each(bad_options, NULL);
}

static void good_options(adapter *run, void *arg)
{
    const fj_algo_options good[] = {{.grain = 0},
                                    {.grain = SIZE_MAX},
                                    {.min_grain = 5},
                                    {.max_grain = 5},
                                    {.min_grain = 5, .max_grain = 5},
                                    {.min_grain = SIZE_MAX, .max_grain = SIZE_MAX}};
    atomic_size_t done = 0;

    (void)arg;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK_EQ(run(100, count_part, &done, &good[i]), FJ_OK);
    CHECK_EQ(run(100, count_part, &done, NULL), FJ_OK);
    CHECK_EQ(atomic_load(&done), 700);
    CHECK_EQ(run(0, never, NULL, NULL), FJ_OK);
}

FJ_TEST(options_that_can_be_meant_run_everything, 10)
{
    each(good_options, NULL);
}

/* ---- Progress ------------------------------------------------------------------------------- */

struct reader {
    fj_progress *progress;
    atomic_int over;
};

static void *reader_main(void *arg)
{
    struct reader *r = arg;
    uint64_t before = 0;

    while (!atomic_load(&r->over)) {
        uint64_t done = fj_progress_done(r->progress);
        atomic_thread_fence(memory_order_acquire);
        uint64_t total = fj_progress_total(r->progress);
        CHECK(done <= total && done >= before);
        before = done;
    }
    return NULL;
}

static void watched(adapter *run, void *arg)
{
    fj_pool *p = fjt_pool(3, 0);
    atomic_size_t done = 0;
    fj_progress progress;
    struct reader r = {.progress = &progress};
    pthread_t thread;

    (void)arg;
    fj_progress_init(&progress, 0);
    CHECK_EQ(pthread_create(&thread, NULL, reader_main, &r), 0);
    for (uint64_t i = 1; i <= 30; i++) {
        fj_algo_options how = {.pool = p, .progress = &progress, .grain = i % 2};
        CHECK_EQ(run(1000, count_part, &done, &how), FJ_OK);
        CHECK_EQ(fj_progress_total(&progress), 1000 * i);
        CHECK_EQ(fj_progress_done(&progress), 1000 * i);
    }
    atomic_store(&r.over, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    fjt_destroy(p);
}

FJ_TEST(progress_grows_with_each_call_and_never_beyond_its_total, 30)
{
    each(watched, NULL);
}

static void known_total(adapter *run, void *arg)
{
    atomic_size_t done = 0;
    fj_progress progress;

    (void)arg;
    fj_progress_init(&progress, 500);
    for (uint64_t i = 1; i <= 5; i++) {
        CHECK_EQ(run(100, count_part, &done, &(fj_algo_options){.progress = &progress}), FJ_OK);
        CHECK_EQ(fj_progress_total(&progress), 500);
        CHECK_EQ(fj_progress_done(&progress), 100 * i);
    }
}

FJ_TEST(progress_of_a_known_total_keeps_it, 10)
{
    each(known_total, NULL);
}

static int fail_at_30(size_t begin, size_t end, void *arg)
{
    if (begin <= 30 && 30 < end) return 3;
    return count_part(begin, end, arg);
}

static void unfinished(adapter *run, void *arg)
{
    fj_pool *p = fjt_pool(4, 0);

    (void)arg;
    for (size_t grain = 0; grain < 3; grain++) {
        atomic_size_t done = 0;
        fj_progress progress;
        fj_progress_init(&progress, 0);
        fj_algo_options how = {.pool = p, .progress = &progress, .grain = grain};
        CHECK_EQ(run(100, fail_at_30, &done, &how), 3);
        CHECK_EQ(fj_progress_total(&progress), 100);
        CHECK_EQ(fj_progress_done(&progress), atomic_load(&done));
    }
    fjt_destroy(p);
}

FJ_TEST(progress_counts_what_was_done_before_a_failure, 10)
{
    each(unfinished, NULL);
}

struct sharer {
    pthread_t thread;
    adapter *run;
    fj_pool *pool;
    fj_progress *progress;
};

static void *sharer_main(void *arg)
{
    const struct sharer *s = arg;
    atomic_size_t done = 0;

    for (int i = 0; i < 20; i++)
        CHECK_EQ(s->run(300, count_part, &done,
                        &(fj_algo_options){.pool = s->pool, .progress = s->progress, .grain = 10}),
                 FJ_OK);
    return NULL;
}

FJ_TEST(one_progress_serves_several_calls_at_the_same_time, 20)
{
    enum { SHARERS = 7 };
    fj_pool *p = fjt_pool(2, 0);
    fj_progress progress;
    struct reader r = {.progress = &progress};
    struct sharer s[SHARERS];
    pthread_t thread;

    fj_progress_init(&progress, 0);
    CHECK_EQ(pthread_create(&thread, NULL, reader_main, &r), 0);
    for (int i = 0; i < SHARERS; i++) {
        s[i] = (struct sharer){.run = all[i], .pool = i % 2 ? p : NULL, .progress = &progress};
        CHECK_EQ(pthread_create(&s[i].thread, NULL, sharer_main, &s[i]), 0);
    }
    for (int i = 0; i < SHARERS; i++) CHECK_EQ(pthread_join(s[i].thread, NULL), 0);
    atomic_store(&r.over, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(fj_progress_total(&progress), SHARERS * 20 * 300);
    CHECK_EQ(fj_progress_done(&progress), SHARERS * 20 * 300);
    fjt_destroy(p);
}

/* ---- Short loops ---------------------------------------------------------------------------- */

static int tiny(size_t begin, size_t end, void *arg)
{
    int *a = arg;

    for (size_t i = begin; i < end; i++) a[i]++;
    return FJ_OK;
}

static bool is_at_rest(fj_pool *p)
{
    fj_stats s;

    CHECK_EQ(fj_pool_stats(p, &s), FJ_OK);
    return s.threads == 0 && s.started == 0 && s.parks == 0 && s.openings == 0 && s.steals == 0;
}

/* Whether short calls in a pool that has no thread yet start none. If the system preempts the
 * calling thread, its call is not short, so a single try may fail. */
static bool short_calls_wake_nobody(adapter *run)
{
    fj_pool *p = fjt_pool(4, FJ_POOL_CALLER_HELPS);
    size_t longer = fjt_sanitized() ? 10 : 100; /* under a sanitizer 100 elements are not short */
    int a[100] = {0};

    CHECK(is_at_rest(p));
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(run(10, tiny, a, &(fj_algo_options){.pool = p}), FJ_OK);
        CHECK_EQ(run(longer, tiny, a, &(fj_algo_options){.pool = p}), FJ_OK);
    }
    CHECK(a[9] == 10 && a[longer - 1] >= 5);
    bool yes = is_at_rest(p);
    fjt_destroy(p);
    return yes;
}

/* The shortest time of a call with one worker, in ns. */
static int64_t shortest_call(void)
{
    fj_pool *p = fjt_pool(1, FJ_POOL_CALLER_HELPS);
    int64_t least = INT64_MAX;
    int a[100] = {0};

    for (int i = 0; i < 100; i++) {
        int64_t began = fjt_now();
        CHECK_EQ(by_for(10, tiny, a, &(fj_algo_options){.pool = p}), FJ_OK);
        int64_t took = fjt_now() - began;
        if (took < least) least = took;
    }
    fjt_destroy(p);
    return least;
}

FJ_TEST(a_short_loop_wakes_nobody, 60)
{
    if (shortest_call() > 2500) fjt_skip("no call is short here"); /* for example under valgrind */
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int tries = 0;
        if (all[i] == by_steps) continue; /* each function gets a task */
        while (!short_calls_wake_nobody(all[i])) CHECK(++tries < 300);
    }
}

FJ_TEST(a_loop_of_one_element_wakes_nobody, 20)
{
    fj_pool *p = fjt_pool(4, FJ_POOL_CALLER_HELPS);
    int a[1] = {0};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        CHECK_EQ(all[i](1, tiny, a, &(fj_algo_options){.pool = p, .grain = 1}), FJ_OK);
        CHECK_EQ(all[i](0, tiny, a, &(fj_algo_options){.pool = p, .grain = 1}), FJ_OK);
    }
    CHECK_EQ(a[0], 7);
    CHECK(is_at_rest(p));
    fjt_destroy(p);
}

/* ---- Short loops in a row -------------------------------------------------------------------- */

struct spin {
    int64_t ns; /* how long an element takes */
    atomic_int_least64_t
        worst; /* the longest that one took; the two threads of a loop may write it at the same time */
};

static int spins(size_t lo, size_t hi, void *arg)
{
    struct spin *s = arg;

    for (; lo < hi; lo++) {
        int64_t began = fjt_now(), took;
        do took = fjt_now() - began;
        while (took < s->ns);
        if (took > atomic_load(&s->worst)) atomic_store(&s->worst, took);
    }
    return FJ_OK;
}

static long preemptions(void)
{
    struct rusage u;

    CHECK_EQ(getrusage(RUSAGE_THREAD, &u), 0);
    return u.ru_nivcsw;
}

/* Runs 100 loops of 1.5 us, each of which is too short to be divided, in a pool of n workers that has
 * no thread yet; then sleeps for pause_us, and runs a loop of 6 us, which is divided only if a worker is worth
 * waking. Returns whether the pool is still at rest, or -1 if the calling thread was preempted. */
static int rests_after_short_loops(int n, int pause_us)
{
    fj_pool *p = fjt_pool(n, FJ_POOL_CALLER_HELPS);
    fj_algo_options how = {.pool = p};
    struct spin s = {.ns = 500};
    long before = preemptions();

    for (int i = 0; i < 100; i++) CHECK_EQ(fj_for(0, 3, spins, &s, &how), FJ_OK);
    if (pause_us != 0) fjt_sleep_us(pause_us);
    s.ns = 600;
    CHECK_EQ(fj_for(0, 10, spins, &s, &how), FJ_OK);
    bool disturbed = preemptions() != before || atomic_load(&s.worst) > 1500;
    int yes = is_at_rest(p);
    fjt_destroy(p);
    return disturbed ? -1 : yes;
}

/* One try that was not disturbed shows it. A second and a third one are made, because the machine
 * may stop the calling thread without a trace. */
static void short_loops(int n, int pause_us, int wanted)
{
    int wrong = 0;

    if (fj_available_parallelism() < 2) fjt_skip("no CPU for a second worker");

    if (FJI_CHAOS || fjt_sanitized() || shortest_call() > 2500) fjt_skip("no call is short here");
    for (int tries = 0; tries < 300; tries++) {
        int got = rests_after_short_loops(n, pause_us);
        if (got == wanted) return;
        if (got >= 0) CHECK(++wrong < 3);
    }
    fjt_skip("every try was disturbed");
}

FJ_TEST(short_loops_in_a_row_wake_a_worker_at_last, 60)
{
    short_loops(fj_available_parallelism(), 0, 0);
}

FJ_TEST(short_loops_in_a_row_wake_no_worker_without_a_cpu, 60)
{
    short_loops(2 * fj_available_parallelism(), 0, 1);
}

FJ_TEST(short_loops_before_a_pause_do_not_count, 60)
{
    short_loops(fj_available_parallelism(), 1000, 1);
}
