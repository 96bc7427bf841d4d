/* SPDX-License-Identifier: MIT */
/*
 * inbox_futures.c - fj_future_notify(): the loop gets the outcome of a future
 */
#include <forkjoin/inbox.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fjtest.h"
#include "plat/config.h"
#include "plat/plat.h"

static fj_inbox *inbox_new(const fj_inbox_options *o)
{
    fj_inbox *inbox = NULL;

    CHECK_EQ(fj_inbox_create(o, &inbox), FJ_OK);
    return inbox;
}

/* Runs the inbox, as a loop does, until *n is `wanted`. */
static void loop_until(fj_inbox *inbox, const long *n, long wanted)
{
    struct pollfd p = {.fd = fj_inbox_fd(inbox), .events = POLLIN};

    while (*n < wanted)
        if (poll(&p, 1, -1) == 1) CHECK(fj_inbox_run(inbox, 0) >= 0);
    CHECK_EQ(*n, wanted);
}

/* What a callback has seen. */
struct seen {
    long calls;
    fj_future *future;
    int code;
    void *result;
    pthread_t thread;
};

static void see(fj_future *f, void *arg)
{
    struct seen *s = arg;

    CHECK(fj_future_is_done(f));
    s->calls++;
    s->future = f;
    s->code = fj_future_result(f, &s->result);
    s->thread = pthread_self();
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

static int doubles(void *arg, void **result)
{
    *result = (void *)((intptr_t)arg * 2);
    return FJ_OK;
}

FJ_TEST(loop_gets_the_result_of_a_call, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_inbox *inbox = inbox_new(NULL);
    struct seen s = {0};
    fj_future *f;

    CHECK_EQ(fj_submit_call(pool, doubles, (void *)21, &f), FJ_OK);
    CHECK_EQ(fj_future_notify(f, inbox, see, &s), FJ_OK);
    loop_until(inbox, &s.calls, 1);
    CHECK(s.future == f && s.code == FJ_OK && s.result == (void *)42);
    CHECK(pthread_equal(s.thread, pthread_self()));
    fj_future_unref(f);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(future_that_is_done_is_posted_at_once, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    struct seen s = {0};
    fj_future f;

    fj_future_init(&f, NULL);
    CHECK_EQ(fj_future_complete(&f, &s), 1);
    CHECK_EQ(fj_future_notify(&f, inbox, see, &s), FJ_OK);
    CHECK_EQ(s.calls, 0); /* not in this thread before the loop runs it */
    CHECK_EQ(fj_inbox_run(inbox, 0), 1);
    CHECK(s.calls == 1 && s.future == &f && s.result == &s);
    fj_future_fini(&f);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

FJ_TEST(every_kind_of_end_is_told, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    static const int codes[] = {FJ_OK, 5, FJ_ECANCELED};

    for (int i = 0; i < 3; i++) {
        struct seen s[2] = {0};
        fj_future f;
        fj_future_init(&f, NULL);
        for (int k = 0; k < 2; k++) CHECK_EQ(fj_future_notify(&f, inbox, see, &s[k]), FJ_OK);
        CHECK_EQ(fj_inbox_run(inbox, 0), 0);
        if (i == 0) CHECK_EQ(fj_future_complete(&f, NULL), 1);
        if (i == 1) CHECK_EQ(fj_future_fail(&f, 5), 1);
        if (i == 2) CHECK_EQ(fj_future_cancel(&f, 0), 1);
        CHECK_EQ(fj_inbox_run(inbox, 0), 2);
        for (int k = 0; k < 2; k++) CHECK(s[k].calls == 1 && s[k].code == codes[i]);
        fj_future_fini(&f);
    }
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

FJ_TEST(future_lives_until_its_callback_has_run, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_inbox *inbox = inbox_new(NULL);
    struct seen s = {0};

    for (long i = 0; i < fjt_rounds(1000); i++) {
        fj_future *f;
        CHECK_EQ(fj_submit_call(pool, doubles, (void *)(intptr_t)i, &f), FJ_OK);
        CHECK_EQ(fj_future_notify(f, inbox, see, &s), FJ_OK);
        fj_future_unref(f);
        loop_until(inbox, &s.calls, i + 1);
        CHECK(s.code == FJ_OK && s.result == (void *)(intptr_t)(i * 2));
    }
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    fjt_destroy(pool);
}

/* No thread can decide the outcome of a future without a reference, so it is cancelled. */
FJ_TEST(future_that_is_given_up_is_told, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    struct seen s = {0};
    fj_future *f;

    CHECK_EQ(fj_future_new_call(doubles, NULL, 0, &f), FJ_OK);
    CHECK_EQ(fj_future_notify(f, inbox, see, &s), FJ_OK);
    fj_future_unref(f);
    CHECK_EQ(fj_inbox_run(inbox, 0), 1);
    CHECK(s.calls == 1 && s.code == FJ_ECANCELED);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

/* ---- Many futures ---------------------------------------------------------------------------- */

struct job {
    fj_future future; /* first */
    long *done;
    long value;
};

static int job_run(fj_task *t)
{
    struct job *j = (struct job *)t;

    j->value *= 3;
    return FJ_OK;
}

static void job_done(fj_future *f, void *arg)
{
    struct job *j = arg;

    CHECK(f == &j->future);
    CHECK_EQ(fj_future_error(f), FJ_OK);
    CHECK_EQ(j->value % 3, 0);
    ++*j->done;
    fj_future_fini(f);
    free(j);
}

FJ_TEST(embedded_future_is_freed_by_its_callback, 60)
{
    fj_pool *pool = fjt_pool(3, 0);
    fj_inbox *inbox = inbox_new(NULL);
    long n = fjt_rounds(50000), done = 0;

    for (long i = 0; i < n; i++) {
        struct job *j = malloc(sizeof *j);
        fj_future_init(&j->future, job_run);
        j->done = &done;
        j->value = i;
        CHECK_EQ(fj_future_notify(&j->future, inbox, job_done, j), FJ_OK);
        CHECK_EQ(fj_future_submit(pool, &j->future), FJ_OK);
        if (i % 100 == 0) CHECK(fj_inbox_run(inbox, 0) >= 0);
    }
    loop_until(inbox, &done, n);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(notifications_allocate_nothing_once_there_are_enough_cells, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    struct seen s = {0};
    long before = 0;

    if (!FJI_FAULTS) fjt_skip("built without faults");
    for (int round = 0; round < 50; round++) {
        fj_future f[100];
        if (round == 1) before = fji_fault_calls(FJI_FAULT_ALLOC);
        for (int i = 0; i < 100; i++) {
            fj_future_init(&f[i], NULL);
            CHECK_EQ(fj_future_notify(&f[i], inbox, see, &s), FJ_OK);
        }
        for (int i = 0; i < 100; i++) CHECK_EQ(fj_future_complete(&f[i], NULL), 1);
        CHECK_EQ(fj_inbox_run(inbox, 0), 100);
        for (int i = 0; i < 100; i++) fj_future_fini(&f[i]);
    }
    CHECK_EQ(fji_fault_calls(FJI_FAULT_ALLOC), before);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

/* ---- The end --------------------------------------------------------------------------------- */

static atomic_long dropped, called;

static void call_counts(fj_future *f, void *arg)
{
    CHECK(fj_future_is_done(f) && arg == &called);
    atomic_fetch_add(&called, 1);
}

static void drop_counts(const fj_inbox_dropped *d, void *arg)
{
    CHECK(d->fn == NULL && d->done == call_counts && d->arg == &called && arg == &dropped);
    CHECK(fj_future_is_done(d->future));
    atomic_fetch_add(&dropped, 1);
}

FJ_TEST(notification_of_a_closed_inbox_is_refused, 10)
{
    fj_inbox_options o = {.drop = drop_counts, .drop_arg = &dropped};
    fj_inbox *inbox = inbox_new(&o);
    fj_future before, after;

    fj_future_init(&before, NULL);
    fj_future_init(&after, NULL);
    CHECK_EQ(fj_future_notify(&before, inbox, call_counts, &called), FJ_OK);
    CHECK_EQ(fj_inbox_close(inbox), FJ_OK);
    CHECK_EQ(fj_future_notify(&after, inbox, call_counts, &called), FJ_EREJECTED);
    CHECK_EQ(dropped, 0);
    CHECK_EQ(fj_future_complete(&after, NULL), 1);
    CHECK_EQ(dropped, 0);
    CHECK_EQ(fj_future_complete(&before, NULL), 1);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    CHECK_EQ(called, 0);
}

/* The inbox is destroyed while futures are queued, running, done and posted. */
FJ_TEST(inbox_ends_while_futures_are_under_way, 60)
{
    fj_inbox_options o = {.drop = drop_counts, .drop_arg = &dropped};
    fj_pool *pool = fjt_pool(2, 0);

    for (long round = fjt_rounds(200); round > 0; round--) {
        fj_inbox *inbox = inbox_new(&o);
        dropped = called = 0;
        for (long i = 0; i < 50; i++) {
            fj_future *f;
            CHECK_EQ(fj_submit_call(pool, doubles, NULL, &f), FJ_OK);
            CHECK_EQ(fj_future_notify(f, inbox, call_counts, &called), FJ_OK);
            fj_future_unref(f);
            if (i == round % 50) CHECK(fj_inbox_run(inbox, 0) >= 0);
        }
        CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(called + dropped, 50);
    }
    fjt_destroy(pool);
}

FJ_TEST(child_of_a_completer_cannot_be_waited_for, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    struct seen s = {0};
    fj_completer root, child;

    fj_completer_init(&root, NULL, 0, job_run, NULL, NULL);
    fj_completer_init(&child, &root, 0, job_run, NULL, NULL);
    CHECK_EQ(fj_future_notify(&child.future, inbox, see, &s), FJ_EINVAL);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    CHECK_EQ(s.calls, 0);
}
