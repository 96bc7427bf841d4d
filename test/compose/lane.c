/* SPDX-License-Identifier: MIT */
/*
 * lane.c - lanes: order, width, capacity, calls from inside an action, futures, errors
 */
#include "lane.h"

/* ---- Order ----------------------------------------------------------------------------------- */

enum { PRODUCERS = 3, EACH = 200 };

struct ledger {
    fj_lane *lane;
    long n; /* not atomic: the lane orders the actions */
    long last[PRODUCERS];
    struct entry {
        struct ledger *ledger;
        int producer;
        long number;
    } entries[PRODUCERS][EACH];
};

static int ledger_write(void *arg)
{
    struct entry *e = arg;
    struct ledger *b = e->ledger;

    CHECK_EQ(b->last[e->producer], e->number);
    b->last[e->producer]++;
    b->n++;
    return FJ_OK;
}

struct produce {
    struct ledger *ledger;
    int producer;
};

static void *produce(void *arg)
{
    const struct produce *p = arg;

    for (int i = 0; i < EACH; i++) {
        struct entry *e = &p->ledger->entries[p->producer][i];
        *e = (struct entry){p->ledger, p->producer, i};
        CHECK_EQ(fj_lane_execute(p->ledger->lane, ledger_write, e), FJ_OK);
    }
    return NULL;
}

static void check_serial(fj_pool *pool)
{
    static struct ledger b;
    struct produce p[PRODUCERS];
    pthread_t t[PRODUCERS];

    for (size_t capacity = 0; capacity < 6; capacity += 5) {
        memset(&b, 0, sizeof b);
        b.lane = lane_with(pool, 1, capacity, FJ_LANE_WAITS);
        for (int i = 0; i < PRODUCERS; i++) {
            p[i] = (struct produce){&b, i};
            CHECK_EQ(pthread_create(&t[i], NULL, produce, &p[i]), 0);
        }
        for (int i = 0; i < PRODUCERS; i++) pthread_join(t[i], NULL);
        CHECK_EQ(fj_lane_drain(b.lane, FJ_FOREVER), FJ_OK);
        CHECK_EQ(b.n, PRODUCERS * EACH);
        CHECK_EQ(fj_lane_destroy(b.lane), FJ_OK);
    }
}

FJ_TEST(a_lane_of_width_1_keeps_the_order_of_each_producer, 20)
{
    on_pools(check_serial);
}

static atomic_int chain_left;

static int chain(void *arg)
{
    if (atomic_fetch_sub(&chain_left, 1) > 1) CHECK_EQ(fj_lane_execute(arg, chain, arg), FJ_OK);
    return FJ_OK;
}

FJ_TEST(an_action_may_give_the_next_one_to_its_own_lane, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_lane *l = lane_with(pool, 1, 1, FJ_LANE_WAITS);

    atomic_store(&chain_left, 1000);
    CHECK_EQ(fj_lane_execute(l, chain, l), FJ_OK);
    CHECK_EQ(fj_lane_drain(l, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&chain_left), 0);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Width ----------------------------------------------------------------------------------- */

static struct {
    atomic_int now, most;
} crowd;

static int crowd_visit(void *arg)
{
    int now = atomic_fetch_add(&crowd.now, 1) + 1, most = atomic_load(&crowd.most);

    while (now > most && !atomic_compare_exchange_weak(&crowd.most, &most, now)) {}
    if (arg != NULL) (void)fj_sleep_ns(20000);
    atomic_fetch_sub(&crowd.now, 1);
    return FJ_OK;
}

FJ_TEST(a_lane_runs_no_more_actions_than_its_width, 20)
{
    static int sleeps;
    fj_pool *pool = fjt_pool(4, 0);

    for (uint32_t width = 1; width <= 3; width++) {
        fj_lane *l = lane_with(pool, width, 0, FJ_LANE_WAITS);
        atomic_store(&crowd.most, 0);
        for (int i = 0; i < 300; i++)
            CHECK_EQ(fj_lane_execute(l, crowd_visit, i % 3 == 0 ? &sleeps : NULL), FJ_OK);
        CHECK_EQ(fj_lane_destroy(l), FJ_OK);
        CHECK(atomic_load(&crowd.most) <= (int)width);
    }
    fjt_destroy(pool);
}

/* In a pool with one worker, blocked actions are replaced, but count against the width. */
FJ_TEST(blocked_actions_count_against_the_width, 20)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_lane *l = lane_with(pool, 3, 0, FJ_LANE_WAITS);
    struct gate g = {0};

    for (int i = 0; i < 7; i++) CHECK_EQ(fj_lane_execute(l, gate_wait, &g), FJ_OK);
    gate_await(&g, 3);
    fjt_sleep_us(2000);
    CHECK_EQ(atomic_load(&g.arrived), 3);
    CHECK_EQ(fj_lane_running(l), 3);
    CHECK_EQ(fj_lane_pending(l), 4);
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    CHECK_EQ(atomic_load(&g.arrived), 7);
    fjt_destroy(pool);
}

FJ_TEST(a_lane_without_width_runs_all_actions_at_once, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_lane *l = lane_with(pool, 0, 0, FJ_LANE_WAITS);
    struct gate g = {0};

    for (int i = 0; i < 20; i++) CHECK_EQ(fj_lane_execute(l, gate_wait, &g), FJ_OK);
    gate_await(&g, 20);
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Capacity -------------------------------------------------------------------------------- */

FJ_TEST(a_full_lane_refuses_if_told_so, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_lane *l = lane_with(pool, 1, 2, FJ_LANE_REFUSES);
    struct gate g = {0};
    atomic_int n = 0;
    fj_future *f = NULL;

    CHECK_EQ(fj_lane_execute(l, gate_wait, &g), FJ_OK);
    gate_await(&g, 1);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_EBUSY);
    CHECK_EQ(fj_lane_call(l, answer, &n, &f), FJ_EBUSY);
    CHECK(f == NULL);
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_lane_drain(l, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&n), 2);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    fjt_destroy(pool);
}

struct filler {
    fj_lane *lane;
    atomic_int *n;
    atomic_int err;
};

static void *fill_one(void *arg)
{
    struct filler *f = arg;

    atomic_store(&f->err, fj_lane_execute(f->lane, count, f->n));
    return NULL;
}

static pthread_t filler(struct filler *f)
{
    pthread_t t;

    atomic_store(&f->err, 1);
    CHECK_EQ(pthread_create(&t, NULL, fill_one, f), 0);
    return t;
}

FJ_TEST(a_call_waits_for_room_and_then_returns, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_lane *l = lane_with(pool, 1, 1, FJ_LANE_WAITS);
    struct gate g = {0};
    atomic_int n = 0;
    struct filler f = {.lane = l, .n = &n};

    CHECK_EQ(fj_lane_execute(l, gate_wait, &g), FJ_OK);
    gate_await(&g, 1);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
    pthread_t t = filler(&f);
    await_producer(l);
    CHECK_EQ(atomic_load(&f.err), 1);
    atomic_store(&g.open, 1);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&f.err), FJ_OK);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    CHECK_EQ(atomic_load(&n), 2);
    fjt_destroy(pool);
}

FJ_TEST(close_and_destroy_refuse_a_call_that_waits_for_room, 20)
{
    fj_pool *pool = fjt_pool(2, 0);

    for (int destroys = 0; destroys < 2; destroys++) {
        fj_lane *l = lane_with(pool, 1, 1, FJ_LANE_WAITS);
        atomic_int n = 0;
        struct filler f = {.lane = l, .n = &n};
        CHECK_EQ(fj_lane_pause(l), FJ_OK);
        CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
        pthread_t t = filler(&f);
        await_producer(l);
        if (destroys) {
            CHECK_EQ(fj_lane_destroy(l), FJ_OK);
        } else {
            CHECK_EQ(fj_lane_close(l), FJ_OK);
            pthread_join(t, NULL);
            CHECK_EQ(fj_lane_execute(l, count, &n), FJ_EREJECTED);
            CHECK_EQ(fj_lane_resume(l), FJ_OK);
            CHECK_EQ(fj_lane_destroy(l), FJ_OK);
            CHECK_EQ(atomic_load(&n), 1);
        }
        if (destroys) pthread_join(t, NULL);
        CHECK_EQ(atomic_load(&f.err), FJ_EREJECTED);
    }
    fjt_destroy(pool);
}

FJ_TEST(a_caller_runs_the_oldest_actions_of_a_full_lane, 20)
{
    static struct ledger b;
    fj_pool *pool = fjt_pool(1, 0);
    struct gate g = {0};
    struct produce p = {&b, 0};

    CHECK_EQ(fj_execute(pool, gate_wait, &g), FJ_OK); /* occupies no worker for long: it sleeps */
    b.lane = lane_with(pool, 1, 3, FJ_LANE_CALLER_RUNS);
    (void)produce(&p); /* ledger_write() checks the order */
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_lane_destroy(b.lane), FJ_OK);
    CHECK_EQ(b.n, EACH);
    fjt_destroy(pool);
}

static void wait_for_room(fj_lane *l)
{
    atomic_int n = 0;

    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_ECANCELED);
}

static int room_run(fj_task *t)
{
    wait_for_room(((fj_future *)t)->result);
    return FJ_OK;
}

FJ_TEST(an_interrupt_ends_the_wait_for_room, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_lane *l = lane_with(pool, 1, 1, FJ_LANE_WAITS);
    atomic_int n = 0;
    fj_future f;

    CHECK_EQ(fj_lane_pause(l), FJ_OK);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
    fj_future_init(&f, room_run);
    f.result = l;
    CHECK_EQ(fj_future_submit(pool, &f), FJ_OK);
    await_producer(l);
    CHECK_EQ(fj_future_cancel(&f, 1), 1);
    fj_future_fini(&f);
    CHECK_EQ(fj_lane_resume(l), FJ_OK);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    CHECK_EQ(atomic_load(&n), 1);
    fjt_destroy(pool);
}

/* ---- Calls from inside an action --------------------------------------------------------------- */

static atomic_int inside_calls;

static int call_from_inside(void *arg)
{
    fj_lane *l = arg;

    CHECK_EQ(fj_lane_drain(l, FJ_FOREVER), FJ_EDEADLK);
    CHECK_EQ(fj_lane_destroy(l), FJ_EDEADLK);
    CHECK_EQ(fj_lane_execute(l, count, &inside_calls), FJ_OK); /* takes the only place */
    CHECK_EQ(fj_lane_execute(l, count, &inside_calls), FJ_EDEADLK);
    return FJ_OK;
}

FJ_TEST(an_action_of_a_serial_lane_cannot_wait_for_its_own_lane, 10)
{
    fj_pool *pool = fjt_pool(2, 0);

    for (int i = 0; i < 2; i++) {
        fj_lane *l = lane_with(pool, 1, 1, i == 0 ? FJ_LANE_WAITS : FJ_LANE_CALLER_RUNS);
        CHECK_EQ(fj_lane_execute(l, call_from_inside, l), FJ_OK);
        CHECK_EQ(fj_lane_drain(l, FJ_FOREVER), FJ_OK);
        CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    }
    CHECK_EQ(atomic_load(&inside_calls), 2);
    fjt_destroy(pool);
}

struct pair {
    fj_lane *lane;
    atomic_int begun, refused, n;
};

static int wait_in_pairs(void *arg)
{
    struct pair *p = arg;

    atomic_fetch_add(&p->begun, 1);
    while (atomic_load(&p->begun) < 2 || fj_lane_pending(p->lane) < 1) (void)fj_sleep_ns(10000);
    int err = fj_lane_execute(p->lane, count, &p->n);
    CHECK(err == FJ_OK || err == FJ_EDEADLK);
    if (err == FJ_EDEADLK) atomic_fetch_add(&p->refused, 1);
    return FJ_OK;
}

FJ_TEST(the_last_action_that_the_width_allows_does_not_wait_for_room, 20)
{
    fj_pool *pool = fjt_pool(3, 0);
    struct pair p = {.lane = lane_with(pool, 2, 1, FJ_LANE_WAITS)};

    CHECK_EQ(fj_lane_execute(p.lane, wait_in_pairs, &p), FJ_OK);
    CHECK_EQ(fj_lane_execute(p.lane, wait_in_pairs, &p), FJ_OK);
    while (atomic_load(&p.begun) < 2) fjt_sleep_us(50);
    CHECK_EQ(fj_lane_execute(p.lane, count, &p.n), FJ_OK);
    CHECK_EQ(fj_lane_drain(p.lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_lane_destroy(p.lane), FJ_OK);
    CHECK_EQ(atomic_load(&p.n) + atomic_load(&p.refused), 3);
    CHECK(atomic_load(&p.refused) <= 1);
    fjt_destroy(pool);
}

/* ---- Futures and errors ------------------------------------------------------------------------ */

static int fail_7(fj_task *t)
{
    (void)t;
    return 7;
}

FJ_TEST(futures_of_a_lane_have_results_and_errors, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_lane *l = lane_with(pool, 1, 0, FJ_LANE_WAITS);
    fj_future f, *made;
    fj_timer timer;
    void *result;
    int x;

    CHECK_EQ(fj_lane_call(l, answer, &x, &made), FJ_OK);
    CHECK_EQ(fj_future_get(made, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == &x);
    fj_future_unref(made);
    fj_future_init(&f, fail_7);
    CHECK_EQ(fj_lane_pause(l), FJ_OK);
    CHECK_EQ(fj_lane_submit(l, &f), FJ_OK);
    CHECK_EQ(fj_lane_submit(l, &f), FJ_EINVAL); /* it is queued already */
    CHECK_EQ(fj_future_submit(pool, &f), FJ_EINVAL);
    CHECK_EQ(fj_future_unfork(&f), 0);
    CHECK_EQ(fj_future_get(&f, 1000, NULL), FJ_ETIMEDOUT);
    CHECK_EQ(fj_lane_resume(l), FJ_OK);
    CHECK_EQ(fj_future_join(&f), 7);
    fj_future_fini(&f);
    fj_timer_init(&timer, fail_7);
    CHECK_EQ(fj_lane_submit(l, &timer.future), FJ_EINVAL);
    fj_future_init(&f, NULL);
    CHECK_EQ(fj_lane_submit(l, &f), FJ_EINVAL);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(a_future_that_is_cancelled_while_it_waits_does_not_run, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_lane *l = lane_with(pool, 1, 0, FJ_LANE_WAITS);
    fj_future f;

    CHECK_EQ(fj_lane_pause(l), FJ_OK);
    fj_future_init(&f, fail_7);
    CHECK_EQ(fj_lane_submit(l, &f), FJ_OK);
    CHECK_EQ(fj_future_cancel(&f, 0), 1);
    CHECK_EQ(fj_lane_resume(l), FJ_OK);
    fj_future_fini(&f);
    CHECK_EQ(fj_future_error(&f), FJ_ECANCELED);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    fjt_destroy(pool);
}

static atomic_int lane_errors, pool_errors;

static void on_lane_error(fj_lane *l, int code, void *arg)
{
    CHECK(l != NULL && arg == &lane_errors);
    atomic_fetch_add(&lane_errors, code);
}

static void on_pool_error(fj_pool *pool, int code, void *arg)
{
    (void)pool;
    (void)arg;
    atomic_fetch_add(&pool_errors, code);
}

static int fail_3(void *arg)
{
    (void)arg;
    return 3;
}

FJ_TEST(the_error_of_an_action_goes_to_the_lane_or_else_to_the_pool, 10)
{
    fj_pool_options po = {.parallelism = 1, .on_error = on_pool_error};
    fj_pool *pool = fjt_pool_with(&po);
    fj_lane_options o = {.pool = pool, .on_error = on_lane_error, .arg = &lane_errors};
    fj_lane *l, *plain = lane_with(pool, 1, 0, FJ_LANE_WAITS);

    CHECK_EQ(fj_lane_create(&l, &o), FJ_OK);
    CHECK_EQ(fj_lane_execute(l, fail_3, NULL), FJ_OK);
    CHECK_EQ(fj_lane_execute(plain, fail_3, NULL), FJ_OK);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    CHECK_EQ(fj_lane_destroy(plain), FJ_OK);
    CHECK_EQ(atomic_load(&lane_errors), 3);
    CHECK_EQ(atomic_load(&pool_errors), 3);
    fjt_destroy(pool);
}
