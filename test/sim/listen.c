/* SPDX-License-Identifier: MIT */
/*
 * listen.c - scenarios of the functions that are called when a future is done
 */
#include <pthread.h>

#include "scenario.h"

static atomic_int called, released;

struct event {
    fj_future future;
    int value;
};

static int event_run(fj_task *t)
{
    ((struct event *)t)->value = 42;
    return FJ_OK;
}

static struct event *event(fj_task_fn *fn)
{
    struct event *e = malloc(sizeof *e);

    memset(e, 0, sizeof *e);
    fj_future_init(&e->future, fn);
    atomic_store(&called, 0);
    atomic_store(&released, 0);
    return e;
}

/* A listener in memory of its own, which it frees. */
struct ear {
    fj_listener listener;
    int value;
};

static void hear(fj_future *f, void *arg)
{
    struct ear *e = arg;

    CHECK(fj_future_is_done(f));
    CHECK_EQ(e->value, 7);
    CHECK(!fj_future_succeeded(f) || ((struct event *)f)->value == 42);
    free(e);
    atomic_fetch_add(&called, 1);
}

static void listen_to(fj_future *f)
{
    struct ear *e = malloc(sizeof *e);

    memset(e, 0, sizeof *e);
    e->value = 7;
    CHECK_EQ(fj_future_listen(f, &e->listener, hear, e), FJ_OK);
}

static void *listen_once(void *arg)
{
    listen_to(arg);
    return NULL;
}

static void *cancel_it(void *arg)
{
    (void)fj_future_cancel(arg, (int)(sim_random() % 2));
    return NULL;
}

/* Two threads add listeners while a worker runs the body and a third thread cancels the future. */
FJ_TEST(listeners_are_called_once_whoever_decides, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct event *e = event(event_run);
    pthread_t t[2];

    CHECK_EQ(fj_future_submit(pool, &e->future), FJ_OK);
    CHECK_EQ(pthread_create(&t[0], NULL, listen_once, e), 0);
    CHECK_EQ(pthread_create(&t[1], NULL, sim_random() % 2 == 0 ? cancel_it : listen_once, e), 0);
    listen_to(&e->future);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    fj_future_wait_quietly(&e->future, FJ_FOREVER);
    fj_future_fini(&e->future);
    int n = atomic_load(&called);
    CHECK(n == 2 || n == 3);
    free(e);
    fjt_destroy(pool);
}

static void *complete_it(void *arg)
{
    struct event *e = arg;

    e->value = 42;
    CHECK_EQ(fj_future_complete(&e->future, NULL), 1);
    return NULL;
}

/* The owner frees the future as soon as fj_future_fini() returns. */
FJ_TEST(future_is_freed_after_its_last_listener, 10)
{
    struct event *e = event(NULL);
    pthread_t t;

    if (sim_random() % 2 == 0) listen_to(&e->future);
    CHECK_EQ(pthread_create(&t, NULL, complete_it, e), 0);
    listen_to(&e->future);
    CHECK_EQ(fj_future_wait_quietly(&e->future, FJ_FOREVER), FJ_OK);
    fj_future_fini(&e->future);
    CHECK(atomic_load(&called) >= 1);
    free(e);
    pthread_join(t, NULL);
}

static void release(fj_future *f)
{
    (void)f;
    CHECK_EQ(atomic_load(&called), 1);
    atomic_fetch_add(&released, 1);
}

/* The cancelling thread calls a listener while the worker removes the future from its queue. The
 * second of the two calls the release function. */
FJ_TEST(future_is_released_once_after_its_listeners, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct event *e = event(event_run);

    fj_future_set_release_fn(&e->future, release);
    listen_to(&e->future);
    CHECK_EQ(fj_future_submit(pool, &e->future), FJ_OK);
    (void)fj_future_cancel(&e->future, 0);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&called), 1);
    CHECK_EQ(atomic_load(&released), 1);
    free(e);
}

/* ---- Allocated futures ----------------------------------------------------------------------- */

static int give(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

static void count(fj_future *f, void *arg)
{
    (void)arg;
    CHECK(fj_future_is_done(f));
    atomic_fetch_add(&called, 1);
}

static void *cancel_and_unref(void *arg)
{
    if (sim_random() % 2 == 0) (void)fj_future_cancel(arg, 0);
    fj_future_unref(arg);
    return NULL;
}

/* Two threads cancel the future or not, and drop their references, while a worker runs it or it is
 * not queued at all. The listener is called in any case, and the future is freed after it. */
FJ_TEST(counted_future_lives_until_its_listener_has_returned, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f;
    pthread_t t;

    atomic_store(&called, 0);
    CHECK_EQ(fj_future_new_call(give, NULL, 0, &f), FJ_OK);
    CHECK_EQ(fj_future_on_done(f, count, NULL), FJ_OK);
    (void)fj_future_ref(f);
    if (sim_random() % 3 != 0) CHECK_EQ(fj_future_submit(pool, f), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, cancel_and_unref, f), 0);
    cancel_and_unref(f);
    pthread_join(t, NULL);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&called), 1);
}

static void *complete_shared(void *arg)
{
    CHECK_EQ(fj_future_complete(arg, NULL), 1);
    return NULL;
}

/* The thread that completes the future has no reference of its own: the owner drops the only one
 * when it has seen that the future is done. */
FJ_TEST(counted_future_may_be_freed_as_soon_as_it_is_done, 10)
{
    fj_future *f;
    pthread_t t;

    atomic_store(&called, 0);
    CHECK_EQ(fj_future_new_call(give, NULL, 0, &f), FJ_OK);
    CHECK_EQ(fj_future_on_done(f, count, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, complete_shared, f), 0);
    CHECK_EQ(fj_future_wait_quietly(f, FJ_FOREVER), FJ_OK);
    fj_future_unref(f);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&called), 1);
}

/* ---- Completers ------------------------------------------------------------------------------ */

static int on_error(fj_completer *c, int code, fj_completer *caller)
{
    (void)c, (void)code, (void)caller;
    return 1;
}

static void *fail_it(void *arg)
{
    fj_completer_fail(arg, 9);
    return NULL;
}

/* A listener is added while another thread is in on_error. */
FJ_TEST(listener_of_a_root_that_fails_is_called_once, 10)
{
    fj_completer *c = malloc(sizeof *c);
    pthread_t t;

    memset(c, 0, sizeof *c);
    atomic_store(&called, 0);
    fj_completer_init(c, NULL, 0, NULL, NULL, on_error);
    CHECK_EQ(pthread_create(&t, NULL, fail_it, c), 0);
    listen_to(&c->future);
    listen_to(&c->future);
    CHECK_EQ(fj_future_wait_quietly(&c->future, FJ_FOREVER), FJ_OK);
    fj_future_fini(&c->future);
    free(c);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&called), 2);
}
