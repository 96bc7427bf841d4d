/* SPDX-License-Identifier: MIT */
/*
 * listen.c - the functions of fj_future_on_done(): each is called once, however the future ends
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"

#define MS ((int64_t)1000000)

/* ---- What a listener sees -------------------------------------------------------------------- */

struct heard {
    atomic_int calls;
    fj_future *future;
    int code;
    void *result;
    pthread_t thread;
};

static void hear(fj_future *f, void *arg)
{
    struct heard *h = arg;

    CHECK(fj_future_is_done(f));
    h->future = f;
    h->code = fj_future_result(f, &h->result);
    h->thread = pthread_self();
    atomic_fetch_add(&h->calls, 1);
}

/* Registers three listeners: two by fj_future_on_done() and one with memory of the caller. */
struct ears {
    struct heard heard[3];
    fj_listener listener;
};

static void ears_open(struct ears *e, fj_future *f)
{
    memset(e, 0, sizeof *e);
    CHECK_EQ(fj_future_on_done(f, hear, &e->heard[0]), FJ_OK);
    CHECK_EQ(fj_future_listen(f, &e->listener, hear, &e->heard[1]), FJ_OK);
    CHECK_EQ(fj_future_on_done(f, hear, &e->heard[2]), FJ_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(atomic_load(&e->heard[i].calls), 0);
}

/* Waits until all three were called, and checks the outcome that they saw. */
static void ears_check(struct ears *e, fj_future *f, int code)
{
    for (int i = 0; i < 3; i++) {
        struct heard *h = &e->heard[i];
        until(&h->calls);
        CHECK(h->future == f);
        CHECK_EQ(h->code, code);
        CHECK_EQ(h->code, fj_future_error(f));
    }
}

static void ears_close(struct ears *e)
{
    for (int i = 0; i < 3; i++) CHECK_EQ(atomic_load(&e->heard[i].calls), 1);
}

/* ---- Ends of an embedded future -------------------------------------------------------------- */

struct job {
    fj_future f;
    atomic_int begun, may_end;
    int code;
};

static int job_run(fj_task *t)
{
    struct job *j = (struct job *)t;

    atomic_store(&j->begun, 1);
    until(&j->may_end);
    j->f.result = j;
    return j->code;
}

static void job_init(struct job *j, int code)
{
    memset(j, 0, sizeof *j);
    fj_future_init(&j->f, job_run);
    j->code = code;
}

FJ_TEST(listener_sees_what_the_body_returned, 30)
{
    static const int codes[] = {FJ_OK, 7, -3, FJ_ECANCELED};
    fj_pool *p = fjt_pool(2, 0);
    struct job j;
    struct ears e;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        job_init(&j, codes[i]);
        ears_open(&e, &j.f);
        CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
        until(&j.begun);
        atomic_store(&j.may_end, 1);
        ears_check(&e, &j.f, codes[i]);
        if (codes[i] == FJ_OK) CHECK(e.heard[0].result == &j);
        /* A worker called them, all three the same. */
        CHECK(!pthread_equal(e.heard[0].thread, pthread_self()));
        CHECK(pthread_equal(e.heard[0].thread, e.heard[2].thread));
        fj_future_fini(&j.f);
        ears_close(&e);
    }
    fjt_destroy(p);
}

static int end_complete(fj_future *f)
{
    CHECK_EQ(fj_future_complete(f, NULL), 1);
    return FJ_OK;
}

static int end_fail(fj_future *f)
{
    CHECK_EQ(fj_future_fail(f, 11), 1);
    return 11;
}

static int end_cancel(fj_future *f)
{
    CHECK_EQ(fj_future_cancel(f, 0), 1);
    return FJ_ECANCELED;
}

static int end_interrupt(fj_future *f)
{
    CHECK_EQ(fj_future_cancel(f, 1), 1);
    return FJ_ECANCELED;
}

static int (*const ends[])(fj_future *) = {end_complete, end_fail, end_cancel, end_interrupt};
#define N_ENDS (sizeof ends / sizeof ends[0])

/* The thread that decides the outcome calls the listeners before its call returns. */
static void end_here(fj_future *f, struct ears *e, int (*end)(fj_future *))
{
    int code = end(f);

    ears_close(e);
    ears_check(e, f, code);
    for (int i = 0; i < 3; i++) CHECK(pthread_equal(e->heard[i].thread, pthread_self()));
}

FJ_TEST(thread_that_decides_a_new_queued_or_running_future_calls_its_listeners, 60)
{
    fj_pool *p = fjt_pool(1, 0);
    struct ears e;

    for (size_t i = 0; i < N_ENDS; i++) {
        struct job fresh, queued, running;
        job_init(&fresh, FJ_OK);
        ears_open(&e, &fresh.f);
        end_here(&fresh.f, &e, ends[i]);
        fj_future_fini(&fresh.f);

        job_init(&running, FJ_OK);
        job_init(&queued, FJ_OK);
        CHECK_EQ(fj_future_submit(p, &running.f), FJ_OK);
        until(&running.begun); /* the only worker is busy */
        CHECK_EQ(fj_future_submit(p, &queued.f), FJ_OK);
        ears_open(&e, &queued.f);
        end_here(&queued.f, &e, ends[i]);
        ears_open(&e, &running.f);
        end_here(&running.f, &e, ends[i]);
        atomic_store(&running.may_end, 1);
        fj_future_fini(&running.f);
        fj_future_fini(&queued.f);
        CHECK_EQ(atomic_load(&queued.begun), 0);
        ears_close(&e);
    }
    fjt_destroy(p);
}

FJ_TEST(listener_of_a_done_future_is_called_at_once, 20)
{
    for (size_t i = 0; i < N_ENDS; i++) {
        fj_future f;
        fj_listener l;
        struct heard h = {0};
        fj_future_init(&f, NULL);
        int code = ends[i](&f);
        CHECK_EQ(fj_future_on_done(&f, hear, &h), FJ_OK);
        CHECK_EQ(atomic_load(&h.calls), 1);
        CHECK_EQ(h.code, code);
        CHECK_EQ(fj_future_listen(&f, &l, hear, &h), FJ_OK);
        CHECK_EQ(atomic_load(&h.calls), 2);
        fj_future_fini(&f);
    }
}

static int pends(fj_task *t)
{
    (void)t;
    return FJ_PENDING;
}

FJ_TEST(pending_future_calls_its_listeners_when_it_is_decided, 20)
{
    fj_pool *p = fjt_pool(1, 0);
    struct ears e;

    for (size_t i = 0; i < N_ENDS; i++) {
        fj_future f;
        fj_future_init(&f, pends);
        ears_open(&e, &f);
        CHECK_EQ(fj_future_submit(p, &f), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        for (int k = 0; k < 3; k++) CHECK_EQ(atomic_load(&e.heard[k].calls), 0);
        end_here(&f, &e, ends[i]);
        fj_future_fini(&f);
    }
    fjt_destroy(p);
}

static void join_here(void *arg)
{
    struct ears e;
    struct job j;

    (void)arg;
    job_init(&j, FJ_OK);
    atomic_store(&j.may_end, 1);
    ears_open(&e, &j.f);
    CHECK_EQ(fj_future_fork(&j.f), FJ_OK);
    CHECK_EQ(fj_future_join(&j.f), FJ_OK);
    fj_future_fini(&j.f);
    ears_close(&e);

    job_init(&j, 5);
    atomic_store(&j.may_end, 1);
    ears_open(&e, &j.f);
    CHECK_EQ(fj_future_run(&j.f), 5);
    fj_future_fini(&j.f);
    ears_close(&e);
}

FJ_TEST(future_that_is_joined_or_run_calls_its_listeners, 30)
{
    inside_pools(join_here, NULL);
    join_here(NULL);
}

/* ---- Timers, limits, pools that stop, taken tasks -------------------------------------------- */

static int give_code(void *arg)
{
    return *(int *)arg;
}

FJ_TEST(timer_calls_its_listeners_at_its_end_only, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct ears e;
    int code = 3;
    fj_future *f;

    CHECK_EQ(fj_schedule_action(p, give_code, &code, 1, &f), FJ_OK);
    memset(&e, 0, sizeof e);
    CHECK_EQ(fj_future_on_done(f, hear, &e.heard[0]), FJ_OK);
    until(&e.heard[0].calls);
    CHECK_EQ(e.heard[0].code, 3);
    fj_future_unref(f);

    /* Cancelled in the wheel. */
    CHECK_EQ(fj_schedule_action(p, give_code, &code, 3600 * 1000 * MS, &f), FJ_OK);
    ears_open(&e, f);
    end_here(f, &e, end_cancel);
    fj_future_unref(f);

    /* A periodic timer is not done before it is cancelled. */
    code = FJ_OK;
    CHECK_EQ(fj_schedule_action_at_fixed_rate(p, give_code, &code, 1, MS / 10, &f), FJ_OK);
    ears_open(&e, f);
    fjt_sleep_us(2000);
    for (int k = 0; k < 3; k++) CHECK_EQ(atomic_load(&e.heard[k].calls), 0);
    end_here(f, &e, end_cancel);
    fj_future_unref(f);
    fjt_destroy(p);
}

static int until_cancelled(void *arg, void **result)
{
    (void)arg, (void)result;
    while (!fj_is_cancelled()) fjt_sleep_us(20);
    return FJ_OK;
}

FJ_TEST(expired_limit_calls_the_listeners, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct ears e;
    fj_future *f;

    CHECK_EQ(fj_submit_with_timeout(p, until_cancelled, NULL, 50 * MS, NULL, &f), FJ_OK);
    memset(&e, 0, sizeof e);
    CHECK_EQ(fj_future_on_done(f, hear, &e.heard[0]), FJ_OK);
    until(&e.heard[0].calls);
    CHECK_EQ(e.heard[0].code, FJ_ETIMEDOUT);
    fj_future_unref(f);
    fjt_destroy(p);
}

FJ_TEST(pool_that_stops_calls_the_listeners_of_its_queued_futures, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job running, queued;
    struct ears a, b, c;
    fj_timer timer;

    job_init(&running, FJ_OK);
    job_init(&queued, FJ_OK);
    fj_timer_init(&timer, job_run);
    ears_open(&a, &running.f);
    ears_open(&b, &queued.f);
    ears_open(&c, &timer.future);
    CHECK_EQ(fj_future_submit(p, &running.f), FJ_OK);
    until(&running.begun);
    CHECK_EQ(fj_future_submit(p, &queued.f), FJ_OK);
    CHECK_EQ(fj_schedule(p, &timer, 3600 * 1000 * MS), FJ_OK);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    atomic_store(&running.may_end, 1);
    fjt_destroy(p);
    ears_close(&a);
    ears_close(&b);
    ears_close(&c);
    ears_check(&a, &running.f, FJ_OK);
    ears_check(&b, &queued.f, FJ_ECANCELED);
    ears_check(&c, &timer.future, FJ_ECANCELED);
}

FJ_TEST(taken_future_that_is_cancelled_calls_its_listeners, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job running, queued;
    struct ears e;
    fj_taken taken;

    job_init(&running, FJ_OK);
    job_init(&queued, FJ_OK);
    CHECK_EQ(fj_future_submit(p, &running.f), FJ_OK);
    until(&running.begun);
    CHECK_EQ(fj_future_submit(p, &queued.f), FJ_OK);
    ears_open(&e, &queued.f);
    CHECK_EQ(fj_pool_drain(p, &taken, 1), 1);
    fj_taken_cancel(&taken);
    ears_close(&e);
    ears_check(&e, &queued.f, FJ_ECANCELED);
    atomic_store(&running.may_end, 1);
    fj_future_fini(&running.f);
    fj_future_fini(&queued.f);
    fjt_destroy(p);
}

/* ---- Completers ------------------------------------------------------------------------------ */

static int completes_itself(fj_task *t)
{
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

struct held {
    fj_completer c;
    struct heard inside;
    atomic_int in_error, may_return;
};

/* In on_error the calling thread sees the completer as done, and other threads do not. */
static int on_error(fj_completer *c, int code, fj_completer *caller)
{
    struct held *h = (struct held *)c;

    (void)code, (void)caller;
    CHECK_EQ(fj_future_on_done(&c->future, hear, &h->inside), FJ_OK);
    CHECK_EQ(atomic_load(&h->inside.calls), 1);
    atomic_store(&h->in_error, 1);
    until(&h->may_return);
    return 1;
}

static void *fail_root(void *arg)
{
    struct held *h = arg;

    fj_completer_fail(&h->c, 9);
    return NULL;
}

FJ_TEST(root_calls_its_listeners_and_a_child_takes_none, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_completer root, child;
    struct ears e;
    struct held h = {0};
    pthread_t t;

    fj_completer_init(&root, NULL, 0, completes_itself, NULL, NULL);
    ears_open(&e, &root.future);
    CHECK_EQ(fj_completer_submit(p, &root), FJ_OK);
    ears_check(&e, &root.future, FJ_OK);
    fj_future_fini(&root.future);
    ears_close(&e);

    fj_completer_init(&child, &root, 0, completes_itself, NULL, NULL);
    CHECK_EQ(fj_future_on_done(&child.future, hear, &e.heard[0]), FJ_EINVAL);
    CHECK_EQ(fj_future_listen(&child.future, &e.listener, hear, &e.heard[0]), FJ_EINVAL);

    for (size_t i = 0; i < N_ENDS; i++) {
        fj_completer_init(&root, NULL, 0, completes_itself, NULL, NULL);
        ears_open(&e, &root.future);
        end_here(&root.future, &e, ends[i]);
        fj_future_fini(&root.future);
    }

    fj_completer_init(&root, NULL, 0, completes_itself, NULL, NULL);
    ears_open(&e, &root.future);
    fj_completer_fail(&root, 6);
    ears_close(&e);
    ears_check(&e, &root.future, 6);

    /* A listener that is added while on_error runs is called when on_error has returned. */
    fj_completer_init(&h.c, NULL, 0, completes_itself, NULL, on_error);
    CHECK_EQ(pthread_create(&t, NULL, fail_root, &h), 0);
    until(&h.in_error);
    ears_open(&e, &h.c.future);
    atomic_store(&h.may_return, 1);
    ears_check(&e, &h.c.future, 9);
    fj_future_fini(&h.c.future);
    ears_close(&e);
    pthread_join(t, NULL);
    fjt_destroy(p);
}

/* ---- Order and depth ------------------------------------------------------------------------- */

struct numbered {
    fj_listener l;
    int *next, number;
};

/* Frees its own listener. */
static void in_order(fj_future *f, void *arg)
{
    struct numbered *n = arg;

    (void)f;
    CHECK_EQ(*n->next, n->number);
    ++*n->next;
    free(n);
}

FJ_TEST(listeners_are_called_in_the_order_of_registration, 20)
{
    fj_future f;
    int next = 0;

    fj_future_init(&f, NULL);
    for (int i = 0; i < 100; i++) {
        struct numbered *n = malloc(sizeof *n);
        CHECK(n != NULL);
        *n = (struct numbered){.next = &next, .number = i};
        if (i % 2 == 0)
            CHECK_EQ(fj_future_listen(&f, &n->l, in_order, n), FJ_OK);
        else
            CHECK_EQ(fj_future_on_done(&f, in_order, n), FJ_OK);
    }
    CHECK_EQ(fj_future_complete(&f, NULL), 1);
    CHECK_EQ(next, 100);
    fj_future_fini(&f);
}

struct link {
    fj_future f;
    fj_listener l;
};

static void complete_next(fj_future *f, void *arg)
{
    CHECK_EQ(fj_future_complete(arg, f), 1);
}

FJ_TEST(chain_of_a_million_futures_needs_little_stack, 60)
{
    long n = fjt_rounds(1000000);
    struct link *v = malloc((size_t)n * sizeof *v);

    CHECK(v != NULL);
    for (long i = 0; i < n; i++) fj_future_init(&v[i].f, NULL);
    for (long i = 0; i + 1 < n; i++)
        CHECK_EQ(fj_future_listen(&v[i].f, &v[i].l, complete_next, &v[i + 1].f), FJ_OK);
    CHECK_EQ(fj_future_complete(&v[0].f, NULL), 1);
    CHECK(fj_future_is_done(&v[n - 1].f));
    for (long i = 0; i < n; i++) fj_future_fini(&v[i].f);
    free(v);
}

struct two {
    fj_future *second;
    int second_called, order;
};

static void second_listener(fj_future *f, void *arg)
{
    struct two *t = arg;

    (void)f;
    t->second_called = ++t->order;
}

static void decide_and_end_second(fj_future *f, void *arg)
{
    struct two *t = arg;

    (void)f;
    CHECK_EQ(fj_future_complete(t->second, NULL), 1);
    CHECK_EQ(t->second_called, 0);
    CHECK_EQ(fj_future_reinit(t->second), FJ_EBUSY);
    fj_future_fini(t->second); /* calls the listener that was left for later */
    CHECK_EQ(t->second_called, 1);
    CHECK_EQ(fj_future_reinit(t->second), FJ_OK);
}

FJ_TEST(listener_may_end_the_life_of_another_future, 20)
{
    fj_future first, second;
    struct two t = {.second = &second};

    fj_future_init(&first, NULL);
    fj_future_init(&second, NULL);
    CHECK_EQ(fj_future_on_done(&second, second_listener, &t), FJ_OK);
    CHECK_EQ(fj_future_on_done(&first, decide_and_end_second, &t), FJ_OK);
    CHECK_EQ(fj_future_complete(&first, NULL), 1);
    CHECK_EQ(t.second_called, 1);
    /* The first life of `second` has left no listener. */
    CHECK_EQ(fj_future_complete(&second, NULL), 1);
    CHECK_EQ(t.order, 1);
    fj_future_fini(&first);
    fj_future_fini(&second);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

struct slow {
    atomic_int in, may_return, returned, released;
};

static struct slow slow;

static void slow_listener(fj_future *f, void *arg)
{
    (void)f, (void)arg;
    atomic_store(&slow.in, 1);
    until(&slow.may_return);
    fjt_sleep_us(2000);
    atomic_store(&slow.returned, 1);
}

static void *complete_it(void *arg)
{
    CHECK_EQ(fj_future_complete(arg, NULL), 1);
    return NULL;
}

FJ_TEST(fini_waits_for_listeners_and_a_waiter_does_not, 30)
{
    fj_future *f = malloc(sizeof *f);
    pthread_t t;

    CHECK(f != NULL);
    fj_future_init(f, NULL);
    CHECK_EQ(fj_future_on_done(f, slow_listener, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, complete_it, f), 0);
    until(&slow.in);
    CHECK_EQ(fj_future_wait(f, FJ_FOREVER), FJ_OK); /* returns while the listener runs */
    CHECK_EQ(fj_future_reinit(f), FJ_EBUSY);
    CHECK_EQ(atomic_load(&slow.returned), 0);
    atomic_store(&slow.may_return, 1);
    fj_future_fini(f);
    CHECK_EQ(atomic_load(&slow.returned), 1);
    free(f);
    pthread_join(t, NULL);
}

static void released(fj_future *f)
{
    CHECK_EQ(atomic_load(&slow.returned), 1);
    CHECK_EQ(atomic_fetch_add(&slow.released, 1), 0);
    free(f);
}

/* The resolving thread is in a listener while the worker removes the future from its queue. */
FJ_TEST(release_function_is_called_after_the_listeners, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job running, *queued = malloc(sizeof *queued);
    pthread_t t;

    CHECK(queued != NULL);
    job_init(&running, FJ_OK);
    job_init(queued, FJ_OK);
    fj_future_set_release_fn(&queued->f, released);
    CHECK_EQ(fj_future_on_done(&queued->f, slow_listener, NULL), FJ_OK);
    CHECK_EQ(fj_future_submit(p, &running.f), FJ_OK);
    until(&running.begun);
    CHECK_EQ(fj_future_submit(p, &queued->f), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, complete_it, &queued->f), 0);
    until(&slow.in);
    atomic_store(&running.may_end, 1);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK); /* the queued future is removed */
    CHECK_EQ(atomic_load(&slow.released), 0);
    atomic_store(&slow.may_return, 1);
    until(&slow.released);
    pthread_join(t, NULL);
    fj_future_fini(&running.f);
    fjt_destroy(p);
}

FJ_TEST(worker_that_ran_the_body_releases_after_the_listeners, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job *j = malloc(sizeof *j);

    CHECK(j != NULL);
    job_init(j, FJ_OK);
    atomic_store(&j->may_end, 1);
    atomic_store(&slow.may_return, 1);
    fj_future_set_release_fn(&j->f, released);
    CHECK_EQ(fj_future_on_done(&j->f, slow_listener, NULL), FJ_OK);
    CHECK_EQ(fj_future_submit(p, &j->f), FJ_OK);
    until(&slow.released);
    fjt_destroy(p);
}

static int nothing(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

static void unref_it(fj_future *f, void *arg)
{
    hear(f, arg);
    fj_future_unref(f);
}

FJ_TEST(last_reference_to_an_open_future_cancels_it, 20)
{
    struct heard h = {0};
    fj_future *f;

    CHECK_EQ(fj_future_new_call(nothing, NULL, 0, &f), FJ_OK);
    CHECK_EQ(fj_future_on_done(f, hear, &h), FJ_OK);
    fj_future_unref(f);
    CHECK_EQ(atomic_load(&h.calls), 1);
    CHECK_EQ(h.code, FJ_ECANCELED);

    /* A listener may drop the last reference of the program. */
    CHECK_EQ(fj_future_new_call(nothing, NULL, 0, &f), FJ_OK);
    CHECK_EQ(fj_future_on_done(f, unref_it, &h), FJ_OK);
    CHECK_EQ(fj_future_complete(f, NULL), 1);
    CHECK_EQ(atomic_load(&h.calls), 2);
}

struct large {
    fj_future f;
    char rest[100];
};

static int large_run(fj_task *t)
{
    struct large *l = (struct large *)t;

    l->f.result = l->rest;
    return FJ_OK;
}

FJ_TEST(future_in_a_larger_struct_is_freed_with_it, 20)
{
    fj_pool *p = fjt_pool(1, 0);
    struct heard h = {0};
    fj_future *f = NULL;
    void *result;

    CHECK_EQ(fj_future_new(sizeof(struct large), large_run, &f), FJ_OK);
    struct large *l = (struct large *)f;
    for (int i = 0; i < 100; i++) CHECK_EQ(l->rest[i], 0);
    CHECK_EQ(fj_future_on_done(f, hear, &h), FJ_OK);
    CHECK_EQ(fj_future_submit(p, f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == l->rest);
    fj_future_unref(f);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&h.calls), 1);

    CHECK_EQ(fj_future_new(sizeof(fj_future), NULL, &f), FJ_OK);
    CHECK_EQ(fj_future_submit(NULL, f), FJ_EINVAL); /* it has no body */
    CHECK_EQ(fj_future_complete(f, &h), 1);
    CHECK_EQ(fj_future_result(f, &result), FJ_OK);
    CHECK(result == &h);
    fj_future_unref(f);
}

/* ---- fork() of the process ------------------------------------------------------------------- */

static void forks(fj_future *f, void *arg)
{
    (void)f;
    *(pid_t *)arg = fork();
}

static void exits_in_child(fj_future *f, void *arg)
{
    (void)f;
    if (*(pid_t *)arg == 0) _exit(1); /* the child process calls no further listener of f */
}

FJ_TEST(child_process_calls_the_listeners_of_a_future_that_ends_there, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job running, queued;
    struct ears e;
    int status = 0;

    job_init(&running, FJ_OK);
    job_init(&queued, FJ_OK);
    CHECK_EQ(fj_future_submit(p, &running.f), FJ_OK);
    until(&running.begun);
    CHECK_EQ(fj_future_submit(p, &queued.f), FJ_OK);
    ears_open(&e, &queued.f);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(fj_future_join(&queued.f), FJ_ECANCELED); /* orphaned */
        ears_close(&e);
        ears_check(&e, &queued.f, FJ_ECANCELED);
        _exit(42);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 42);
    atomic_store(&running.may_end, 1);
    atomic_store(&queued.may_end, 1);
    fj_future_fini(&running.f);
    fj_future_fini(&queued.f);
    ears_close(&e);
    ears_check(&e, &queued.f, FJ_OK);
    fjt_destroy(p);

    fj_future f;
    fj_future_init(&f, NULL);
    CHECK_EQ(fj_future_on_done(&f, forks, &child), FJ_OK);
    CHECK_EQ(fj_future_on_done(&f, exits_in_child, &child), FJ_OK);
    CHECK_EQ(fj_future_complete(&f, NULL), 1);
    if (child == 0) _exit(42);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 42);
    fj_future_fini(&f);
}

/* ---- Random programs ------------------------------------------------------------------------- */

/* Threads add listeners while others decide the outcome and the pool runs the body. */
struct crowd {
    fj_future *f;
    atomic_int added, called, ready;
    int adds;
};

static void count_call(fj_future *f, void *arg)
{
    struct crowd *c = arg;

    CHECK(fj_future_is_done(f));
    atomic_fetch_add(&c->called, 1);
}

static void *add_some(void *arg)
{
    struct crowd *c = arg;

    atomic_fetch_add(&c->ready, 1);
    while (atomic_load(&c->ready) < 3) sched_yield();
    for (int i = 0; i < c->adds; i++) {
        CHECK_EQ(fj_future_on_done(c->f, count_call, c), FJ_OK);
        atomic_fetch_add(&c->added, 1);
    }
    return NULL;
}

static int brief(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

FJ_TEST(every_listener_is_called_once_whatever_the_threads_do, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    uint64_t random = fjt_seed();
    long n = fjt_rounds(400);

    for (long i = 0; i < n; i++) {
        fj_future *f = malloc(sizeof *f);
        struct crowd c = {.f = f, .adds = 1 + (int)(fjt_random(&random) % 20)};
        pthread_t t[2];
        unsigned how = fjt_random(&random) % 4;
        CHECK(f != NULL);
        fj_future_init(f, how == 3 ? pends : brief);
        for (int k = 0; k < 2; k++) CHECK_EQ(pthread_create(&t[k], NULL, add_some, &c), 0);
        atomic_fetch_add(&c.ready, 1);
        if (how != 0) CHECK_EQ(fj_future_submit(p, f), FJ_OK);
        if (how != 1) (void)fj_future_cancel(f, (int)(fjt_random(&random) % 2));
        CHECK_EQ(fj_future_wait(f, FJ_FOREVER), FJ_OK);
        for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
        fj_future_fini(f);
        CHECK_EQ(atomic_load(&c.called), 2 * c.adds);
        free(f);
    }
    fjt_destroy(p);
}
