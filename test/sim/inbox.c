/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - scenarios of an inbox: posts against the runner, and against its end
 *
 * The thread of a scenario is the thread of the loop. It sleeps until the event of the inbox is set,
 * so a lost wake-up shows as a deadlock.
 */
#include <forkjoin/inbox.h>
#include <pthread.h>

#include "scenario.h"

#define POSTERS 2
#define EACH 3

/* What a poster posts: its number and a count, in memory that the callback frees. */
struct letter {
    fj_inbox_item item;
    int from, number;
};

static fj_inbox *inbox;
static int next_of[POSTERS]; /* the number of the next letter of each poster */
static int arrived, dropped;
static bool in_callback;

static void reset(const fj_inbox_options *o)
{
    memset(next_of, 0, sizeof next_of);
    arrived = dropped = 0;
    in_callback = false;
    CHECK_EQ(fj_inbox_create(o, &inbox), FJ_OK);
}

static void check_order(const struct letter *l)
{
    CHECK_EQ(l->number, next_of[l->from]);
    next_of[l->from]++;
}

static void open_letter(void *arg)
{
    struct letter *l = arg;

    CHECK(!in_callback);
    in_callback = true;
    check_order(l);
    free(l);
    arrived++;
    in_callback = false;
}

static void drop_letter(const fj_inbox_dropped *d, void *arg)
{
    CHECK(d->fn == open_letter && arg == &dropped);
    check_order(d->arg);
    free(d->arg);
    dropped++;
}

static int post(int from, int number, bool with_item)
{
    struct letter *l = malloc(sizeof *l);

    l->from = from;
    l->number = number;
    fj_inbox_item_init(&l->item, open_letter, l);
    int err = with_item ? fj_inbox_post_item(inbox, &l->item)
                        : fj_inbox_post(inbox, open_letter, l);
    if (err != FJ_OK) free(l);
    return err;
}

static void yield_some(uint32_t most)
{
    for (uint32_t n = sim_random() % most; n > 0; n--) sim_yield();
}

/* ---- Posts and wake-ups ---------------------------------------------------------------------- */

static void *posts_all(void *arg)
{
    bool items = sim_random() % 2 == 0;

    for (int i = 0; i < EACH; i++) {
        if (sim_random() % 2 == 0) yield_some(20);
        CHECK_EQ(post((int)(intptr_t)arg, i, items), FJ_OK);
    }
    return NULL;
}

static void start(pthread_t *t, int n, void *(*main)(void *))
{
    for (int i = 0; i < n; i++) CHECK_EQ(pthread_create(&t[i], NULL, main, (void *)(intptr_t)i), 0);
}

static void end(const pthread_t *t, int n)
{
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
}

/* The loop destroys the inbox as soon as it has run the last callback, while the poster of that
 * callback may be about to signal. */
FJ_TEST(every_post_wakes_the_loop_and_runs_in_order, 10)
{
    pthread_t t[POSTERS];
    int max = (int)(sim_random() % 3);

    reset(NULL);
    start(t, POSTERS, posts_all);
    while (arrived < POSTERS * EACH) {
        sim_event_await(fj_inbox_fd(inbox));
        CHECK(fj_inbox_run(inbox, max) >= 0);
    }
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    end(t, POSTERS);
}

/* The loop also calls fj_inbox_run() without being woken. */
FJ_TEST(loop_that_looks_too_often_misses_no_post, 10)
{
    pthread_t t[POSTERS];

    reset(NULL);
    start(t, POSTERS, posts_all);
    while (arrived < POSTERS * EACH) {
        if (sim_random() % 2 == 0) sim_event_await(fj_inbox_fd(inbox));
        CHECK(fj_inbox_run(inbox, 1 + (int)(sim_random() % 2)) >= 0);
    }
    end(t, POSTERS);
    CHECK_EQ(fj_inbox_run(inbox, 0), 0);
    CHECK(!sim_event_is_set(fj_inbox_fd(inbox)));
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

static void posts_again(void *arg)
{
    int *left = arg;

    arrived++;
    if (--*left > 0) CHECK_EQ(fj_inbox_post(inbox, posts_again, left), FJ_OK);
}

static void *posts_again_too(void *arg)
{
    (void)arg;
    static int left = 2;
    left = 2;
    CHECK_EQ(fj_inbox_post(inbox, posts_again, &left), FJ_OK);
    return NULL;
}

FJ_TEST(callback_that_posts_again_is_run_again, 10)
{
    pthread_t t;
    int left = 3;

    reset(NULL);
    start(&t, 1, posts_again_too);
    CHECK_EQ(fj_inbox_post(inbox, posts_again, &left), FJ_OK);
    while (arrived < 5) {
        sim_event_await(fj_inbox_fd(inbox));
        CHECK(fj_inbox_run(inbox, 0) >= 0);
    }
    end(&t, 1);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

/* ---- notify() -------------------------------------------------------------------------------- */

static uint32_t bell;
static bool bell_is_gone;

static void rings(void *arg)
{
    CHECK(!__atomic_load_n(&bell_is_gone, __ATOMIC_RELAXED));
    scenario_add(arg);
}

/* Each wait consumes all rings until then, as an event loop does. The last turns do not wait for a
 * ring, so that a poster may be about to ring when the inbox is closed. */
FJ_TEST(notifier_is_called_for_every_callback_that_is_left, 10)
{
    fj_inbox_options o = {.notify = rings, .notify_arg = &bell};
    pthread_t t[POSTERS];
    uint32_t heard = bell = 0;

    bell_is_gone = false;
    reset(&o);
    start(t, POSTERS, posts_all);
    while (arrived < POSTERS * EACH) {
        if (arrived < POSTERS * EACH - 2) scenario_await(&bell, heard + 1);
        heard = __atomic_load_n(&bell, __ATOMIC_ACQUIRE);
        CHECK(fj_inbox_run(inbox, (int)(sim_random() % 3)) >= 0);
    }
    CHECK_EQ(fj_inbox_close(inbox), FJ_OK);
    __atomic_store_n(&bell_is_gone, true, __ATOMIC_RELAXED);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    end(t, POSTERS);
}

/* ---- The end --------------------------------------------------------------------------------- */

static int accepted[POSTERS];

static void *posts_until_closed(void *arg)
{
    int from = (int)(intptr_t)arg;
    bool items = sim_random() % 2 == 0;

    for (int i = 0; i < EACH; i++) {
        int err = post(from, i, items);
        CHECK(err == FJ_OK || err == FJ_EREJECTED);
        if (err != FJ_OK) break;
        accepted[from]++;
    }
    fj_inbox_unref(inbox);
    return NULL;
}

FJ_TEST(post_that_meets_the_end_is_run_or_dropped_or_refused, 10)
{
    fj_inbox_options o = {.drop = drop_letter, .drop_arg = &dropped};
    pthread_t t[POSTERS];

    memset(accepted, 0, sizeof accepted);
    if (sim_random() % 2 == 0) {
        o.notify = rings;
        o.notify_arg = &bell;
    }
    bell_is_gone = false;
    reset(&o);
    for (int i = 0; i < POSTERS; i++) (void)fj_inbox_ref(inbox);
    start(t, POSTERS, posts_until_closed);
    yield_some(80);
    CHECK(fj_inbox_run(inbox, (int)(sim_random() % 3)) >= 0);
    yield_some(20);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    end(t, POSTERS);
    CHECK_EQ(arrived + dropped, accepted[0] + accepted[1]);
}

static void destroys(void *arg)
{
    (void)arg;
    arrived++;
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_EINVAL);
    CHECK_EQ(fj_inbox_post(inbox, destroys, NULL), FJ_EREJECTED);
    CHECK_EQ(fj_inbox_run(inbox, 0), 0);
}

static void *posts_the_end(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_inbox_post(inbox, destroys, NULL), FJ_OK);
    return NULL;
}

FJ_TEST(callback_destroys_its_inbox, 10)
{
    pthread_t t;

    reset(NULL);
    start(&t, 1, posts_the_end);
    while (arrived == 0) {
        sim_event_await(fj_inbox_fd(inbox));
        CHECK(fj_inbox_run(inbox, 0) >= 0);
    }
    end(&t, 1);
}

/* ---- Futures --------------------------------------------------------------------------------- */

static uint32_t ends; /* callbacks of futures that were run or dropped */

static void future_ends(fj_future *f, void *arg)
{
    CHECK(fj_future_is_done(f) && arg == &ends);
    CHECK_EQ(fj_future_error(f), 7);
    fj_future_fini(f);
    free(f);
    arrived++;
}

/* Called by the thread that makes the future fail, so it must not call fj_future_fini(). */
static void future_drops(const fj_inbox_dropped *d, void *arg)
{
    CHECK(d->fn == NULL && d->done == future_ends && d->arg == &ends);
    CHECK_EQ(fj_future_error(d->future), 7);
    scenario_add(arg);
}

static void *fails(void *f)
{
    if (sim_random() % 2 == 0) yield_some(40);
    CHECK_EQ(fj_future_fail(f, 7), 1);
    return NULL;
}

FJ_TEST(future_reaches_the_loop_or_the_drop_function, 10)
{
    fj_inbox_options o = {.drop = future_drops, .drop_arg = &ends};
    fj_future *f = malloc(sizeof *f);
    pthread_t t;

    ends = 0;
    reset(&o);
    memset(f, 0, sizeof *f);
    fj_future_init(f, NULL);
    CHECK_EQ(fj_future_notify(f, inbox, future_ends, &ends), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, fails, f), 0);
    if (sim_random() % 2 == 0) {
        sim_event_await(fj_inbox_fd(inbox));
        CHECK_EQ(fj_inbox_run(inbox, 0), 1);
    } else {
        yield_some(60);
        CHECK(fj_inbox_run(inbox, 0) >= 0);
    }
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    pthread_join(t, NULL);
    CHECK_EQ(arrived + (int)ends, 1);
    if (arrived == 0) {
        fj_future_fini(f);
        free(f);
    }
}

/* ---- Two runners ----------------------------------------------------------------------------- */

static void *runs_too(void *arg)
{
    for (int i = 0; i < 3; i++) {
        int n = fj_inbox_run(inbox, 1);
        CHECK(n == FJ_EBUSY || n == 0 || n == 1);
        if (sim_random() % 2 == 0) yield_some(10);
    }
    return arg;
}

FJ_TEST(second_runner_is_refused_and_harms_nothing, 10)
{
    pthread_t other, t[POSTERS];

    reset(NULL);
    start(&other, 1, runs_too);
    start(t, POSTERS, posts_all);
    for (int i = 0; i < 3; i++) {
        int n = fj_inbox_run(inbox, 0);
        CHECK(n == FJ_EBUSY || n >= 0);
        yield_some(10);
    }
    end(&other, 1);
    while (arrived < POSTERS * EACH) {
        sim_event_await(fj_inbox_fd(inbox));
        CHECK(fj_inbox_run(inbox, 0) >= 0);
    }
    end(t, POSTERS);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}
