/* SPDX-License-Identifier: MIT */
/*
 * lane_edges.c - lanes: nested actions, refused turns, pools that stop in the middle of a call
 */
#include "lane.h"

/* ---- Order and deadlock of actions inside actions ---------------------------------------------- */

static char begun[64];
static atomic_int begun_n;

static int note(void *arg)
{
    begun[atomic_fetch_add(&begun_n, 1)] = *(const char *)arg;
    return FJ_OK;
}

FJ_TEST(actions_begin_in_order_in_a_common_pool_without_workers, 10)
{
    static const char letters[] = "abcdef";

    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "0", 1), 0);
    for (uint32_t width = 0; width < 4; width++) {
        fj_lane *l = lane_with(NULL, width, 0, FJ_LANE_WAITS);
        atomic_store(&begun_n, 0);
        CHECK_EQ(fj_lane_pause(l), FJ_OK);
        for (int i = 0; i < 6; i++) CHECK_EQ(fj_lane_execute(l, note, (void *)&letters[i]), FJ_OK);
        CHECK_EQ(fj_lane_resume(l), FJ_OK);
        CHECK_EQ(fj_lane_drain(l, FJ_FOREVER), FJ_OK);
        begun[6] = 0;
        CHECK_EQ(strcmp(begun, letters), 0);
        CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    }
    CHECK_EQ(fj_common_parallelism(), 0);
}

struct nest {
    fj_lane *lane;
    atomic_int depth, refused, n;
};

/* Fills the lane, and so runs the next action in the same thread. */
static int nest_run(void *arg)
{
    struct nest *s = arg;
    int err = FJ_OK;

    if (atomic_fetch_add(&s->depth, 1) < 2) {
        CHECK_EQ(fj_lane_execute(s->lane, nest_run, s), FJ_OK); /* takes the only place */
        err = fj_lane_execute(s->lane, count, &s->n);
    }
    if (err == FJ_EDEADLK) atomic_fetch_add(&s->refused, 1);
    return FJ_OK;
}

FJ_TEST(a_caller_that_runs_all_actions_of_the_width_does_not_wait_for_room, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct nest s = {.lane = lane_with(pool, 2, 1, FJ_LANE_CALLER_RUNS)};

    CHECK_EQ(fj_lane_execute(s.lane, nest_run, &s), FJ_OK);
    CHECK_EQ(fj_lane_drain(s.lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&s.refused), 1);
    CHECK_EQ(fj_lane_destroy(s.lane), FJ_OK);
    fjt_destroy(pool);
}

/* ---- A turn that is refused -------------------------------------------------------------------- */

struct refusal {
    fj_lane *lane;
    atomic_int armed, producer_err;
    atomic_int n;
    pthread_t producer;
};

static void *produce(void *arg)
{
    struct refusal *r = arg;

    atomic_store(&r->producer_err, fj_lane_execute(r->lane, count, &r->n));
    return NULL;
}

/* Refuses memory once, after another thread has begun to wait for room in the lane. */
static void *refuse_once(size_t bytes, size_t align, void *arg)
{
    struct refusal *r = arg;
    void *p = NULL;

    if (atomic_exchange(&r->armed, 0) != 0) {
        CHECK_EQ(pthread_create(&r->producer, NULL, produce, r), 0);
        await_producer(r->lane);
        return NULL;
    }
    return posix_memalign(&p, align < sizeof p ? sizeof p : align, bytes) == 0 ? p : NULL;
}

static void give_back(void *p, size_t bytes, void *arg)
{
    (void)bytes, (void)arg;
    free(p);
}

FJ_TEST(an_action_that_waited_for_room_runs_if_the_one_before_it_was_refused, 10)
{
    static struct refusal r;
    fj_pool *pool = fjt_pool_with(&(fj_pool_options){
        .parallelism = 1, .allocate = refuse_once, .release = give_back, .arg = &r});
    fj_lane_options o = {.pool = pool, .capacity = 1, .priority = FJ_PRIORITY_HIGH};
    atomic_int n = 0;

    CHECK_EQ(fj_lane_create(&r.lane, &o), FJ_OK);
    atomic_store(&r.armed, 1);
    CHECK_EQ(fj_lane_execute(r.lane, count, &n), FJ_ENOMEM); /* no memory to queue the turn */
    CHECK_EQ(atomic_load(&r.armed), 0);
    pthread_join(r.producer, NULL);
    CHECK_EQ(atomic_load(&r.producer_err), FJ_OK);
    CHECK_EQ(fj_lane_drain(r.lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&r.n), 1);
    CHECK_EQ(atomic_load(&n), 0);
    CHECK_EQ(fj_lane_destroy(r.lane), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Pools that stop --------------------------------------------------------------------------- */

static void on_cancel(fj_lane *l, fj_action_fn *action, void *action_arg, void *arg)
{
    (void)l, (void)action, (void)action_arg;
    atomic_fetch_add((atomic_int *)arg, 1);
}

static int until_stopped(void *arg)
{
    struct gate *g = arg;

    atomic_fetch_add(&g->arrived, 1);
    while (!atomic_load(&g->open)) sched_yield();
    return FJ_OK;
}

FJ_TEST(a_lane_that_is_paused_keeps_its_actions_when_the_pool_stops, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct gate g = {0};
    atomic_int n = 0, cancelled = 0;
    fj_lane_options o = {.pool = pool, .width = 1, .on_cancel = on_cancel, .arg = &cancelled};
    fj_lane *l;

    CHECK_EQ(fj_lane_create(&l, &o), FJ_OK);
    CHECK_EQ(fj_execute(pool, until_stopped, &g), FJ_OK);
    gate_await(&g, 1);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK); /* queues the turn */
    CHECK_EQ(fj_lane_pause(l), FJ_OK);
    (void)fj_pool_shutdown_now(pool);
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&cancelled), 0);
    CHECK_EQ(fj_lane_resume(l), FJ_OK);
    CHECK_EQ(atomic_load(&cancelled), 1);
    CHECK_EQ(atomic_load(&n), 0);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    fjt_destroy(pool);
}

struct resumer {
    fj_lane *lane;
    struct gate gate;
};

static int resume_when_open(void *arg)
{
    struct resumer *r = arg;

    (void)until_stopped(&r->gate);
    return fj_lane_resume(r->lane);
}

FJ_TEST(a_worker_of_another_pool_that_stops_runs_the_actions_of_a_lane, 10)
{
    fj_pool *pool = fjt_pool(1, 0), *other = fjt_pool(1, 0);
    struct gate busy = {0};
    struct resumer r = {0};
    atomic_int n = 0, cancelled = 0;
    fj_lane_options o = {.pool = pool, .width = 1, .on_cancel = on_cancel, .arg = &cancelled};

    CHECK_EQ(fj_lane_create(&r.lane, &o), FJ_OK);
    CHECK_EQ(fj_lane_pause(r.lane), FJ_OK);
    CHECK_EQ(fj_lane_execute(r.lane, count, &n), FJ_OK);
    CHECK_EQ(fj_execute(pool, until_stopped, &busy), FJ_OK);
    CHECK_EQ(fj_execute(other, resume_when_open, &r), FJ_OK);
    gate_await(&busy, 1);
    gate_await(&r.gate, 1);
    fj_pool_shutdown(pool);            /* refuses the turn */
    (void)fj_pool_shutdown_now(other); /* does not concern the lane */
    atomic_store(&r.gate.open, 1);
    CHECK_EQ(fj_lane_drain(r.lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&cancelled), 0);
    CHECK_EQ(atomic_load(&n), 1);
    CHECK_EQ(fj_lane_destroy(r.lane), FJ_OK);
    atomic_store(&busy.open, 1);
    fjt_destroy(pool);
    fjt_destroy(other);
}
