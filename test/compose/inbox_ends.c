/* SPDX-License-Identifier: MIT */
/*
 * inbox_ends.c - the end of an inbox: what is dropped, which calls are refused, and fork()
 */
#include <forkjoin/inbox.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fjtest.h"

static fj_inbox *inbox_new(const fj_inbox_options *o)
{
    fj_inbox *inbox = NULL;

    CHECK_EQ(fj_inbox_create(o, &inbox), FJ_OK);
    CHECK(inbox != NULL);
    return inbox;
}

static bool readable(const fj_inbox *inbox)
{
    struct pollfd p = {.fd = fj_inbox_fd(inbox), .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void count(void *arg)
{
    ++*(int *)arg;
}

/* ---- Misuse ---------------------------------------------------------------------------------- */

FJ_TEST(reserved_options_are_refused, 10)
{
    fj_inbox *inbox = NULL;

    for (size_t i = 0; i < 4; i++) {
        fj_inbox_options o = {0};
        o.reserved[i] = 1;
        CHECK_EQ(fj_inbox_create(&o, &inbox), FJ_EINVAL);
        CHECK(inbox == NULL);
    }
}

FJ_TEST(negative_limit_is_refused, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    int calls = 0;

    CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_OK);
    CHECK_EQ(fj_inbox_run(inbox, -1), FJ_EINVAL);
    CHECK_EQ(calls, 0);
    CHECK_EQ(fj_inbox_run(inbox, 1), 1);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

FJ_TEST(inbox_with_a_notifier_has_no_descriptor, 10)
{
    int wakes = 0;
    fj_inbox_options o = {.notify = count, .notify_arg = &wakes};
    fj_inbox *inbox = inbox_new(&o);

    CHECK_EQ(fj_inbox_fd(inbox), FJ_EINVAL);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

FJ_TEST(item_that_is_posted_cannot_be_posted_again, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    fj_inbox_item item, empty;
    int calls = 0;

    fj_inbox_item_init(&item, count, &calls);
    fj_inbox_item_init(&empty, NULL, &calls);
    CHECK_EQ(fj_inbox_post_item(inbox, &empty), FJ_EINVAL);
    CHECK_EQ(fj_inbox_post_item(inbox, &item), FJ_OK);
    CHECK_EQ(fj_inbox_post_item(inbox, &item), FJ_EBUSY);
    CHECK_EQ(fj_inbox_run(inbox, 0), 1);
    CHECK_EQ(fj_inbox_post_item(inbox, &item), FJ_OK);
    CHECK_EQ(fj_inbox_run(inbox, 0), 1);
    CHECK_EQ(calls, 2);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

static void *runs_and_ends(void *arg)
{
    CHECK_EQ(fj_inbox_run(arg, 0), FJ_EBUSY);
    CHECK_EQ(fj_inbox_close(arg), FJ_EBUSY);
    CHECK_EQ(fj_inbox_destroy(arg), FJ_EBUSY);
    return NULL;
}

static void lets_another_thread_try(void *arg)
{
    pthread_t t;

    CHECK_EQ(pthread_create(&t, NULL, runs_and_ends, arg), 0);
    pthread_join(t, NULL);
}

FJ_TEST(second_thread_is_refused_while_a_callback_runs, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    int calls = 0;

    CHECK_EQ(fj_inbox_post(inbox, lets_another_thread_try, inbox), FJ_OK);
    CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_OK);
    CHECK_EQ(fj_inbox_run(inbox, 0), 2);
    CHECK_EQ(calls, 1);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

static fj_inbox *rung;

static void ends_from_the_bell(void *arg)
{
    ++*(int *)arg;
    CHECK_EQ(fj_inbox_close(rung), FJ_EDEADLK);
    CHECK_EQ(fj_inbox_destroy(rung), FJ_EDEADLK);
}

FJ_TEST(notifier_cannot_end_the_inbox, 10)
{
    int wakes = 0, calls = 0;
    fj_inbox_options o = {.notify = ends_from_the_bell, .notify_arg = &wakes};

    rung = inbox_new(&o);
    CHECK_EQ(fj_inbox_post(rung, count, &calls), FJ_OK);
    CHECK_EQ(fj_inbox_post(rung, count, &calls), FJ_OK);
    CHECK_EQ(fj_inbox_run(rung, 1), 1); /* calls it again */
    CHECK_EQ(wakes, 2);
    CHECK_EQ(fj_inbox_destroy(rung), FJ_OK);
}

/* ---- Closing --------------------------------------------------------------------------------- */

struct drops {
    int calls, order[16];
};

static void note_drop(const fj_inbox_dropped *d, void *arg)
{
    struct drops *drops = arg;

    drops->order[drops->calls++] = *(int *)d->arg;
}

FJ_TEST(close_drops_what_has_not_run, 10)
{
    struct drops drops = {0};
    fj_inbox_options o = {.drop = note_drop, .drop_arg = &drops};
    fj_inbox *inbox = inbox_new(&o);
    fj_inbox_item item;
    int values[6] = {0, 1, 2, 3, 4, 5};

    for (int i = 0; i < 5; i++) CHECK_EQ(fj_inbox_post(inbox, count, &values[i]), FJ_OK);
    CHECK_EQ(fj_inbox_run(inbox, 2), 2);
    fj_inbox_item_init(&item, count, &values[5]);
    CHECK_EQ(fj_inbox_post_item(inbox, &item), FJ_OK);
    CHECK_EQ(fj_inbox_close(inbox), FJ_OK);
    CHECK_EQ(drops.calls, 4);
    for (int i = 0; i < 4; i++) CHECK_EQ(drops.order[i], i + 2);
    for (int i = 0; i < 6; i++) CHECK_EQ(values[i], i + (i < 2));

    CHECK_EQ(fj_inbox_post(inbox, count, &values[0]), FJ_EREJECTED);
    CHECK_EQ(fj_inbox_post_item(inbox, &item), FJ_EREJECTED);
    CHECK_EQ(fj_inbox_post_item(inbox, &item), FJ_EREJECTED); /* it counts as not posted */
    CHECK(!readable(inbox));
    CHECK_EQ(fj_inbox_run(inbox, 0), 0);
    CHECK_EQ(fj_inbox_close(inbox), FJ_OK);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    CHECK_EQ(drops.calls, 4);
}

FJ_TEST(inbox_without_a_drop_function_forgets, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    int calls = 0;

    for (int i = 0; i < 5; i++) CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_OK);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    CHECK_EQ(calls, 0);
}

static void closes(void *arg)
{
    CHECK_EQ(fj_inbox_close(arg), FJ_OK);
}

static void destroys(void *arg)
{
    CHECK_EQ(fj_inbox_destroy(arg), FJ_OK);
    CHECK_EQ(fj_inbox_destroy(arg), FJ_EINVAL);
    CHECK_EQ(fj_inbox_run(arg, 0), 0);
}

FJ_TEST(callback_may_end_its_inbox, 10)
{
    struct drops drops = {0};
    fj_inbox_options o = {.drop = note_drop, .drop_arg = &drops};
    int value = 7;

    for (int i = 0; i < 2; i++) {
        fj_inbox *inbox = inbox_new(&o);
        CHECK_EQ(fj_inbox_post(inbox, i == 0 ? closes : destroys, inbox), FJ_OK);
        CHECK_EQ(fj_inbox_post(inbox, count, &value), FJ_OK);
        CHECK_EQ(fj_inbox_run(inbox, 0), 1);
        CHECK_EQ(drops.calls, i + 1);
        CHECK_EQ(value, 7);
        if (i == 0) CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    }
}

FJ_TEST(reference_keeps_a_destroyed_inbox, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    int calls = 0;

    CHECK(fj_inbox_ref(inbox) == inbox);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_EREJECTED);
    CHECK_EQ(fj_inbox_run(inbox, 0), 0);
    CHECK_EQ(fj_inbox_close(inbox), FJ_OK);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_EINVAL);
    fj_inbox_unref(inbox);
}

/* Threads post until they are refused, but at most MOST times, while the loop ends. */
#define POSTERS 3
#define MOST 2000

static atomic_long ran, dropped;
static atomic_int under_way;

static void post_ran(void *arg)
{
    (void)arg;
    atomic_fetch_add(&ran, 1);
}

static void post_dropped(const fj_inbox_dropped *d, void *arg)
{
    CHECK(d->fn == post_ran && arg == NULL);
    atomic_fetch_add(&dropped, 1);
}

static void *posts_until_refused(void *arg)
{
    long posted = 0;
    int err = FJ_OK;

    atomic_fetch_add(&under_way, 1);
    while (posted < MOST && (err = fj_inbox_post(arg, post_ran, NULL)) == FJ_OK) posted++;
    CHECK(err == FJ_OK || err == FJ_EREJECTED);
    fj_inbox_unref(arg);
    return (void *)posted;
}

FJ_TEST(close_while_threads_post_loses_nothing, 60)
{
    for (long round = fjt_rounds(100); round > 0; round--) {
        fj_inbox_options o = {.drop = post_dropped};
        fj_inbox *inbox = inbox_new(&o);
        pthread_t t[POSTERS];
        long posted = 0;

        ran = dropped = under_way = 0;
        for (int i = 0; i < POSTERS; i++)
            CHECK_EQ(pthread_create(&t[i], NULL, posts_until_refused, fj_inbox_ref(inbox)), 0);
        for (long i = round % 4; i > 0; i--) CHECK(fj_inbox_run(inbox, 0) >= 0);
        if (round % 2 == 0)
            while (atomic_load(&under_way) < POSTERS) fjt_spin_us(1);
        CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
        for (int i = 0; i < POSTERS; i++) {
            void *n;
            pthread_join(t[i], &n);
            posted += (long)n;
        }
        CHECK_EQ(ran + dropped, posted);
    }
}

/* A notifier is not called after fj_inbox_close() has returned. */
static atomic_bool bell_is_gone;

static void ring(void *arg)
{
    (void)arg;
    CHECK(!atomic_load(&bell_is_gone));
}

FJ_TEST(notifier_is_not_called_after_the_close, 60)
{
    for (long round = fjt_rounds(100); round > 0; round--) {
        fj_inbox_options o = {.notify = ring, .drop = post_dropped};
        fj_inbox *inbox = inbox_new(&o);
        pthread_t t;

        bell_is_gone = false;
        under_way = 0;
        CHECK_EQ(pthread_create(&t, NULL, posts_until_refused, fj_inbox_ref(inbox)), 0);
        while (atomic_load(&under_way) == 0) fjt_spin_us(1);
        for (long i = round % 8; i > 0; i--) CHECK(fj_inbox_run(inbox, 0) >= 0);
        CHECK_EQ(fj_inbox_close(inbox), FJ_OK);
        bell_is_gone = true;
        CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
        pthread_join(t, NULL);
    }
}

/* ---- fork() ---------------------------------------------------------------------------------- */

FJ_TEST(child_process_cannot_take_what_belongs_to_the_parent, 10)
{
    struct drops drops = {0};
    fj_inbox_options o = {.drop = note_drop, .drop_arg = &drops};
    fj_inbox *inbox = inbox_new(&o);
    int calls = 0, status;

    CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_OK);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int fd = fj_inbox_fd(inbox);
        bool ok = fj_inbox_run(inbox, 0) == FJ_EREJECTED && fj_inbox_close(inbox) == FJ_EREJECTED;
        ok = ok && fj_inbox_destroy(inbox) == FJ_OK && drops.calls == 0 && calls == 0;
        _exit(ok && close(fd) != 0 ? 0 : 1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(readable(inbox));
    CHECK_EQ(fj_inbox_run(inbox, 0), 1);
    CHECK_EQ(calls, 1);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}
