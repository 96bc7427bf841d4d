/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - an inbox while the system refuses memory, threads and descriptors
 *
 * Each call that requests a resource is refused once, in one run only that call, in another run all
 * later ones too. Every callback that was accepted is run or dropped exactly once. When calls
 * succeed again, the inbox works as if nothing had been refused.
 */
#include <forkjoin/inbox.h>

#include "sweep.h"

#define POSTS 200 /* more than the first chunk of cells has */

static atomic_int ends; /* callbacks that were run or dropped */

static void post_ends(void *arg)
{
    CHECK(arg == &ends);
    atomic_fetch_add(&ends, 1);
}

static void future_ends(fj_future *f, void *arg)
{
    CHECK(fj_future_is_done(f));
    post_ends(arg);
}

static void dropped(const fj_inbox_dropped *d, void *arg)
{
    CHECK(arg == NULL);
    post_ends(d->arg);
}

static int nothing(void *arg, void **result)
{
    (void)arg, (void)result;
    return FJ_OK;
}

/* Returns whether the callback was accepted. */
static bool post(fj_inbox *inbox)
{
    int err = fj_inbox_post(inbox, post_ends, &ends);

    CHECK_MAY(err);
    return err == FJ_OK;
}

static bool notify(fj_inbox *inbox)
{
    fj_future *f;
    int err = fj_submit_call(NULL, nothing, NULL, &f);

    CHECK_MAY(err);
    if (err != FJ_OK) return false;
    err = fj_future_notify(f, inbox, future_ends, &ends);
    CHECK_MAY(err);
    fj_future_unref(f);
    return err == FJ_OK;
}

static void run_program(int n)
{
    const fj_inbox_options o = {.drop = dropped};
    fj_inbox *inbox = NULL;
    int accepted = 0;

    ends = 0;
    int err = fj_inbox_create(&o, &inbox);
    CHECK_EQ(inbox != NULL, err == FJ_OK);
    CHECK(may(err) || (err == FJ_EAGAIN && met(FJI_FAULT_EVENT)));
    if (err != FJ_OK) return;
    for (int i = 0; i < POSTS; i++) accepted += i % 20 == n % 20 ? notify(inbox) : post(inbox);
    if (n % 2 == 0) CHECK(fj_inbox_run(inbox, 0) >= 0);
    calm();
    CHECK(post(inbox));
    CHECK(notify(inbox));
    if (n % 3 == 0) CHECK(fj_inbox_run(inbox, 0) >= 0);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(NULL, FJ_FOREVER), FJ_OK);
    CHECK_EQ(ends, accepted + 2);
}

FJ_TEST(every_accepted_callback_ends_whatever_is_refused, 60)
{
    sweep("inbox", run_program);
}

FJ_TEST(refused_descriptor_is_told, 10)
{
    fj_inbox *inbox = NULL;

    need_faults();
    set_fault(FJI_FAULT_EVENT, 1, 1);
    CHECK_EQ(fj_inbox_create(NULL, &inbox), FJ_EAGAIN);
    CHECK(inbox == NULL);
    CHECK_EQ(fj_inbox_create(NULL, &inbox), FJ_OK);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

/* A caller's item needs no memory, and a loose cell serves if a chunk is refused. */
FJ_TEST(posts_without_memory_are_refused_or_use_what_there_is, 10)
{
    fj_inbox *inbox;
    fj_inbox_item item;

    need_faults();
    CHECK_EQ(fj_inbox_create(NULL, &inbox), FJ_OK);
    fj_inbox_item_init(&item, post_ends, &ends);
    set_fault(FJI_FAULT_ALLOC, 1, FOR_EVER);
    CHECK_EQ(fj_inbox_post(inbox, post_ends, &ends), FJ_ENOMEM);
    CHECK_EQ(fj_inbox_post_item(inbox, &item), FJ_OK);
    set_fault(FJI_FAULT_ALLOC, 1, 1);
    CHECK_EQ(fj_inbox_post(inbox, post_ends, &ends), FJ_OK);
    calm();
    CHECK_EQ(fj_inbox_run(inbox, 0), 2);
    CHECK_EQ(ends, 2);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}
