/* SPDX-License-Identifier: MIT */
/*
 * lane.c - scenarios of lanes: order, width, capacity, pause, cancel, the end of the pool
 */
#include <forkjoin/block.h>
#include <forkjoin/lane.h>
#include <pthread.h>

#include "compose/lane_turn.h"
#include "scenario.h"

#define LONG_AFTER ((int64_t)1000000000000)

static fj_lane *scenario_lane(fj_pool *pool, uint32_t width, size_t capacity,
                              enum fj_lane_full full)
{
    fj_lane_options o = {.pool = pool, .width = width, .capacity = capacity, .full = full};
    fj_lane *l;

    CHECK_EQ(fj_lane_create(&l, &o), FJ_OK);
    return l;
}

static void yield_some(uint32_t most)
{
    for (uint32_t n = sim_random() % most; n > 0; n--) sim_yield();
}

static uint32_t ran; /* actions that have run; threads sleep on it */

/* ---- Order and width ------------------------------------------------------------------------- */

/* Not atomic: only a lane of width 1 makes the accesses safe. */
static struct {
    int total, next[2];
} book;

static fj_lane *lane; /* the lane of the scenario */

/* A page is freed by its action, so that the simulator sees an action that runs twice. */
struct page {
    int writer, number;
};

static int page_write(void *arg)
{
    struct page *p = arg;

    CHECK_EQ(book.next[p->writer], p->number);
    book.next[p->writer]++;
    book.total++;
    free(p);
    return FJ_OK;
}

enum { PAGES = 3 };

static void *write_pages(void *arg)
{
    for (int i = 0; i < PAGES; i++) {
        struct page *p = malloc(sizeof *p);
        *p = (struct page){(int)(intptr_t)arg, i};
        CHECK_EQ(fj_lane_execute(lane, page_write, p), FJ_OK);
        yield_some(5);
    }
    return NULL;
}

static void two_writers(void *(*write)(void *))
{
    pthread_t t;

    CHECK_EQ(pthread_create(&t, NULL, write, (void *)1), 0);
    (void)write((void *)0);
    pthread_join(t, NULL);
}

FJ_TEST(actions_of_a_serial_lane_see_those_before_them, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    memset(&book, 0, sizeof book);
    lane = scenario_lane(pool, 1, sim_random() % 3, FJ_LANE_WAITS);
    two_writers(write_pages);
    CHECK_EQ(fj_lane_drain(lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ(book.total, 2 * PAGES);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fjt_destroy(pool);
}

static void *pause_twice(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_lane_pause(lane), FJ_OK);
        yield_some(20);
        CHECK_EQ(fj_lane_resume(lane), FJ_OK);
        yield_some(20);
    }
    return NULL;
}

/* A thread that pauses takes actions back which the worker has taken and not begun. */
FJ_TEST(a_pause_keeps_the_order_of_a_serial_lane, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t t;

    memset(&book, 0, sizeof book);
    lane = scenario_lane(pool, 1, 0, FJ_LANE_WAITS);
    CHECK_EQ(pthread_create(&t, NULL, pause_twice, NULL), 0);
    (void)write_pages((void *)0);
    (void)write_pages((void *)1);
    pthread_join(t, NULL);
    CHECK_EQ(fj_lane_drain(lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ(book.total, 2 * PAGES);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fjt_destroy(pool);
}

/* After a pause at most the action begins that the worker has claimed before. */
static atomic_int is_paused, begun_late;

static int begin(void *arg)
{
    (void)arg;
    if (atomic_load(&is_paused)) atomic_fetch_add(&begun_late, 1);
    yield_some(10);
    scenario_add(&ran);
    return FJ_OK;
}

FJ_TEST(a_paused_serial_lane_begins_no_further_action, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    ran = 0;
    atomic_store(&is_paused, 0);
    atomic_store(&begun_late, 0);
    lane = scenario_lane(pool, 1, 0, FJ_LANE_WAITS);
    for (int i = 0; i < 4; i++) CHECK_EQ(fj_lane_execute(lane, begin, NULL), FJ_OK);
    yield_some(40);
    CHECK_EQ(fj_lane_pause(lane), FJ_OK);
    atomic_store(&is_paused, 1);
    size_t waiting = fj_lane_pending(lane);
    CHECK(waiting <= 4);
    sim_sleep_until(sim_now() + 1000000);
    CHECK(atomic_load(&begun_late) <= 1);
    CHECK_EQ(fj_lane_pending(lane), waiting);
    atomic_store(&is_paused, 0);
    CHECK_EQ(fj_lane_resume(lane), FJ_OK);
    scenario_await(&ran, 4);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fjt_destroy(pool);
}

/* The caller is one of the threads that run actions. */
FJ_TEST(callers_that_run_actions_keep_the_order, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    memset(&book, 0, sizeof book);
    lane = scenario_lane(pool, 1, 1, FJ_LANE_CALLER_RUNS);
    two_writers(write_pages);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    CHECK_EQ(book.total, 2 * PAGES);
    fjt_destroy(pool);
}

static atomic_int inside_now;
static uint32_t scenario_width;

static int enter(void *arg)
{
    (void)arg;
    CHECK(atomic_fetch_add(&inside_now, 1) < (int)scenario_width);
    yield_some(8);
    atomic_fetch_sub(&inside_now, 1);
    scenario_add(&ran);
    return FJ_OK;
}

static void *enter_some(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_lane_execute(lane, enter, NULL), FJ_OK);
    return NULL;
}

FJ_TEST(no_more_actions_run_than_the_width_allows, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    ran = 0;
    scenario_width = 1 + sim_random() % 2;
    lane = scenario_lane(pool, scenario_width, 0, FJ_LANE_WAITS);
    two_writers(enter_some);
    scenario_await(&ran, 6); /* no drain that would help a lane that has lost its turn */
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fjt_destroy(pool);
}

/* All actions wait for each other, so a worker that runs one must let another worker continue. */
static int all_met(void *arg)
{
    (void)arg;
    return __atomic_load_n(&ran, __ATOMIC_ACQUIRE) >= 3;
}

static int wait_a_while(void *arg)
{
    sim_sleep_until(sim_now() + 100000);
    return all_met(arg);
}

static int meet(void *arg)
{
    scenario_add(&ran);
    CHECK_EQ(fj_managed_block(all_met, wait_a_while, arg), FJ_OK);
    return FJ_OK;
}

FJ_TEST(actions_that_wait_for_later_ones_do_not_stop_a_wide_lane, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    ran = 0;
    lane = scenario_lane(pool, 3, 0, FJ_LANE_WAITS);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_lane_execute(lane, meet, NULL), FJ_OK);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    CHECK_EQ(ran, 3);
    fjt_destroy(pool);
}

/* ---- Capacity ---------------------------------------------------------------------------------- */

static atomic_int accepted;

static int tick(void *arg)
{
    (void)arg;
    CHECK(fj_lane_pending(lane) <= 1);
    scenario_add(&ran);
    return FJ_OK;
}

static void *send_ticks(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        int err = fj_lane_execute(lane, tick, NULL);
        CHECK(err == FJ_OK || err == FJ_EREJECTED || err == FJ_EBUSY);
        if (err == FJ_OK) atomic_fetch_add(&accepted, 1);
    }
    return NULL;
}

static void reset(void)
{
    ran = 0;
    atomic_store(&accepted, 0);
}

FJ_TEST(calls_that_wait_for_room_all_return, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    reset();
    lane = scenario_lane(pool, 1 + sim_random() % 2, 1, FJ_LANE_WAITS);
    two_writers(send_ticks);
    CHECK_EQ(atomic_load(&accepted), 6);
    scenario_await(&ran, 6);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(close_ends_the_calls_that_wait_for_room, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t t;

    reset();
    lane = scenario_lane(pool, 1, 1, FJ_LANE_WAITS);
    if (sim_random() % 2 == 0) CHECK_EQ(fj_lane_pause(lane), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, send_ticks, NULL), 0);
    yield_some(60);
    CHECK_EQ(fj_lane_close(lane), FJ_OK);
    pthread_join(t, NULL);
    (void)fj_lane_resume(lane);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    CHECK_EQ((int)ran, atomic_load(&accepted));
    fjt_destroy(pool);
}

/* Returns whether a call waits for room. */
static bool has_producer(fj_lane *l)
{
    fji_lock_take(&l->lock);
    bool has = l->producers != NULL;
    fji_lock_drop(&l->lock);
    return has;
}

/* The call still waits when the lane is destroyed. */
static void *send_too_late(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_lane_execute(lane, tick, NULL), FJ_EREJECTED);
    return NULL;
}

FJ_TEST(destroy_waits_for_a_call_that_waits_for_room, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t t;

    reset();
    lane = scenario_lane(pool, 1, 1, FJ_LANE_WAITS);
    CHECK_EQ(fj_lane_pause(lane), FJ_OK);
    CHECK_EQ(fj_lane_execute(lane, tick, NULL), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, send_too_late, NULL), 0);
    yield_some(80);
    while (!has_producer(lane)) sim_yield();
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    pthread_join(t, NULL);
    CHECK_EQ(ran, 0);
    fjt_destroy(pool);
}

/* ---- Pause, cancel, drain ---------------------------------------------------------------------- */

static atomic_int cancelled;

static void on_cancel(fj_lane *l, fj_action_fn *action, void *action_arg, void *arg)
{
    CHECK(l == lane && action != NULL && arg == NULL);
    free(action_arg);
    atomic_fetch_add(&cancelled, 1);
}

static int use(void *arg)
{
    free(arg);
    scenario_add(&ran);
    return FJ_OK;
}

static void *send_uses(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        void *p = malloc(8);
        int err = fj_lane_execute(lane, use, p);
        if (err == FJ_OK)
            atomic_fetch_add(&accepted, 1);
        else
            free(p);
    }
    return NULL;
}

static int future_run(fj_task *t)
{
    (void)t;
    scenario_add(&ran);
    return FJ_OK;
}

static fj_lane *cancel_lane(fj_pool *pool)
{
    fj_lane_options o = {.pool = pool, .width = 1 + sim_random() % 2, .on_cancel = on_cancel};
    fj_lane *l;

    if (sim_random() % 2 == 0) o.capacity = 1;
    o.priority = sim_random() % 2 == 0 ? FJ_PRIORITY_HIGH : FJ_PRIORITY_BACKGROUND;
    reset();
    atomic_store(&cancelled, 0);
    CHECK_EQ(fj_lane_create(&l, &o), FJ_OK);
    return l;
}

FJ_TEST(a_pause_loses_no_action, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    pthread_t t;

    lane = cancel_lane(pool);
    CHECK_EQ(pthread_create(&t, NULL, send_uses, NULL), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_lane_pause(lane), FJ_OK);
        yield_some(20);
        CHECK_EQ(fj_lane_resume(lane), FJ_OK);
    }
    pthread_join(t, NULL);
    scenario_await(&ran, 3);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(every_action_runs_or_is_cancelled, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_future *f = malloc(sizeof *f);
    pthread_t t;

    lane = cancel_lane(pool);
    fj_future_init(f, future_run);
    CHECK_EQ(pthread_create(&t, NULL, send_uses, NULL), 0);
    CHECK_EQ(fj_lane_submit(lane, f), FJ_OK);
    yield_some(30);
    (void)fj_lane_cancel(lane);
    int code = fj_future_join(f);
    CHECK(code == FJ_OK || code == FJ_ECANCELED);
    fj_future_fini(f);
    free(f);
    pthread_join(t, NULL);
    CHECK_EQ(fj_lane_drain(lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ((int)ran - (code == FJ_OK) + atomic_load(&cancelled), atomic_load(&accepted));
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fjt_destroy(pool);
}

static void *cancel_all(void *arg)
{
    (void)arg;
    (void)fj_lane_cancel(lane);
    return NULL;
}

/* The lane is paused, so only the cancel empties it. */
FJ_TEST(a_drain_waits_for_on_cancel, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t t;

    lane = cancel_lane(pool);
    CHECK_EQ(fj_lane_pause(lane), FJ_OK);
    CHECK_EQ(fj_lane_execute(lane, use, malloc(8)), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, cancel_all, NULL), 0);
    CHECK_EQ(fj_lane_drain(lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&cancelled), 1);
    pthread_join(t, NULL);
    CHECK_EQ(fj_lane_resume(lane), FJ_OK);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(a_drain_may_time_out_while_it_is_released, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t t;

    lane = cancel_lane(pool);
    CHECK_EQ(pthread_create(&t, NULL, send_uses, NULL), 0);
    for (int i = 0; i < 3; i++) {
        int err = fj_lane_drain(lane, (int64_t)(sim_random() % 3000));
        CHECK(err == FJ_OK || err == FJ_ETIMEDOUT);
    }
    pthread_join(t, NULL);
    CHECK_EQ(fj_lane_drain(lane, LONG_AFTER), FJ_OK);
    CHECK_EQ(ran, 3);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fjt_destroy(pool);
}

/* ---- The end of the pool ----------------------------------------------------------------------- */

FJ_TEST(a_shutdown_runs_what_a_lane_has_accepted, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    pthread_t t;

    lane = cancel_lane(pool);
    CHECK_EQ(pthread_create(&t, NULL, send_uses, NULL), 0);
    yield_some(30);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    pthread_join(t, NULL);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ((int)ran, atomic_load(&accepted));
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(a_stop_runs_or_cancels_what_a_lane_has_accepted, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_future *f = malloc(sizeof *f);
    pthread_t t;

    lane = cancel_lane(pool);
    fj_future_init(f, future_run);
    CHECK_EQ(fj_lane_submit(lane, f), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, send_uses, NULL), 0);
    yield_some(30);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    int code = fj_future_join(f);
    CHECK(code == FJ_OK || code == FJ_ECANCELED);
    fj_future_fini(f);
    free(f);
    pthread_join(t, NULL);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ((int)ran - (code == FJ_OK) + atomic_load(&cancelled), atomic_load(&accepted));
    fjt_destroy(pool);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
}

/* No thread can be started, so the thread that waits runs the actions. */
FJ_TEST(a_lane_in_a_pool_without_a_thread_is_drained, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    lane = cancel_lane(pool);
    fji_fault_set(FJI_FAULT_THREAD, 1, 1000000);
    (void)send_uses(NULL);
    CHECK_EQ(fj_lane_drain(lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ(ran, 3);
    CHECK_EQ(fj_lane_destroy(lane), FJ_OK);
    fji_fault_set(FJI_FAULT_THREAD, 1, 0);
    fjt_destroy(pool);
}
