/* SPDX-License-Identifier: MIT */
/*
 * quiesce.c - a pool is reported as quiescent exactly when no task is running or queued
 *
 * A task that moves from worker to worker always exists, but a thread that checks one queue after
 * the other can miss it in each of them. Threads that help until the pool is quiescent must not
 * wait for each other, and none of them may return while another still runs a task.
 */
#define _GNU_SOURCE
#include "regression.h"

/* ---- Quiescence reported too early ------------------------------------------------------ */

struct hopper {
    fj_pool *pool;
    atomic_long left;
    atomic_bool begun;
};

/* Each run executes one successor and ends, so there is always one such action until the last
 * ends. */
static int hop(void *arg)
{
    struct hopper *h = arg;
    long n = atomic_load(&h->left);

    if (n % 3 == 0) regression_spin_ns(n % 2000);
    if (n > 1) {
        atomic_store(&h->left, n - 1);
        CHECK_EQ(fj_execute(h->pool, hop, h), FJ_OK);
        /* Another worker takes the successor meanwhile. */
        if (n % 5 == 0) regression_spin_ns(n % 3000);
    } else {
        atomic_store(&h->left, 0);
    }
    return FJ_OK;
}

/* Asks as often as possible. Yields every 256 turns, for machines with one CPU. */
static void look_until_quiet(fj_pool *p)
{
    for (int turn = 1; !fj_pool_is_quiescent(p); turn++)
        if (turn % 256 == 0) sched_yield();
}

static void watch_hopper(unsigned flags)
{
    fj_pool *p = fjt_pool(4, flags);

    for (long round = fjt_rounds(2000); round > 0; round--) {
        struct hopper h = {.pool = p, .left = 200};
        CHECK_EQ(fj_execute(p, hop, &h), FJ_OK);
        look_until_quiet(p);
        CHECK_EQ(atomic_load(&h.left), 0);
    }
    fjt_destroy(p);
}

FJ_TEST(a_hopping_action_is_never_missed, 60)
{
    watch_hopper(0);
}

FJ_TEST(a_hopping_action_is_never_missed_fifo, 60)
{
    watch_hopper(FJ_POOL_FIFO);
}

struct nest {
    fj_task task;
    int depth;
    atomic_int *over;
};

static int nest_run(fj_task *t)
{
    struct nest *n = (struct nest *)t;
    struct nest child = {.depth = n->depth - 1, .over = n->over};

    if (n->depth > 0) {
        fj_task_init(&child.task, nest_run);
        fj_fork(&child.task);
        if (n->depth % 3 == 0) regression_spin_ns(n->depth * 50);
        CHECK_EQ(fj_join(&child.task), FJ_OK);
    }
    atomic_fetch_add(n->over, 1);
    return FJ_OK;
}

FJ_TEST(a_nest_of_forks_is_never_missed, 60)
{
    fj_pool *p = fjt_pool(3, 0);

    for (long round = fjt_rounds(2000); round > 0; round--) {
        atomic_int over = 0;
        struct nest root = {.depth = 50, .over = &over};
        fj_task_init(&root.task, nest_run);
        CHECK_EQ(fj_submit(p, &root.task), FJ_OK);
        look_until_quiet(p);
        CHECK_EQ(atomic_load(&over), 51);
        CHECK_EQ(fj_join(&root.task), FJ_OK);
    }
    fjt_destroy(p);
}

/* A ring of tasks, so that no task is submitted again before its last run has ended. */
#define RING 256

struct relay {
    fj_task task;
    struct relay *next;
    struct hopper *hopper;
};

/* Submits its successor through the submission queues, so any worker may take it. */
static int relay_run(fj_task *t)
{
    struct relay *r = (struct relay *)t;
    struct hopper *h = r->hopper;

    if (atomic_fetch_sub(&h->left, 1) > 1)
        CHECK_EQ(fj_submit_external(h->pool, &r->next->task), FJ_OK);
    return FJ_OK;
}

FJ_TEST(a_task_that_submits_its_successor_is_never_missed, 60)
{
    static struct relay ring[RING];
    fj_pool *p = fjt_pool(4, 0);

    for (long round = fjt_rounds(1000); round > 0; round--) {
        struct hopper h = {.pool = p, .left = 200};
        for (int i = 0; i < RING; i++) {
            ring[i].next = &ring[(i + 1) % RING];
            ring[i].hopper = &h;
            fj_task_init(&ring[i].task, relay_run);
        }
        CHECK_EQ(fj_submit(p, &ring[0].task), FJ_OK);
        look_until_quiet(p);
        CHECK_EQ(atomic_load(&h.left), 0);
        CHECK_EQ(fj_join(&ring[0].task), FJ_OK);
    }
    fjt_destroy(p);
}

/* ---- A caller that helps counts as well ------------------------------------------------- */

struct guest {
    fj_task task;
    struct hopper *hopper;
};

static int guest_run(fj_task *t)
{
    struct hopper *h = ((struct guest *)t)->hopper;

    atomic_store(&h->begun, true);
    fjt_spin_us(5);
    return hop(h);
}

static void *invoke_as_guest(void *arg)
{
    struct hopper *h = arg;
    struct guest g = {.hopper = h};

    fj_task_init(&g.task, guest_run);
    CHECK_EQ(fj_invoke_mode(h->pool, &g.task, FJ_CALLER_HELPS), FJ_OK);
    return NULL;
}

FJ_TEST(a_helping_caller_is_never_missed, 60)
{
    fj_pool *p = fjt_pool(2, FJ_POOL_CALLER_HELPS);

    for (long round = fjt_rounds(500); round > 0; round--) {
        struct hopper h = {.pool = p, .left = 20};
        pthread_t t = regression_thread(invoke_as_guest, &h);
        UNTIL(atomic_load(&h.begun));
        look_until_quiet(p);
        CHECK_EQ(atomic_load(&h.left), 0);
        pthread_join(t, NULL);
    }
    fjt_destroy(p);
}

/* ---- Several threads help until the pool is quiescent ----------------------------------- */

struct quiet_crowd {
    fj_pool *pool;
    int helpers;
    atomic_int ready, forked, ran, left;
    bool with_tasks;
};

static int crowd_leaf(void *arg)
{
    struct quiet_crowd *c = arg;
    regression_spin_ns(2000);
    atomic_fetch_add(&c->ran, 1);
    return FJ_OK;
}

/* All helpers start at the same moment. Each executes some actions and must find all of them done
 * when fj_help_quiesce() returns. */
static int crowd_help(void *arg)
{
    struct quiet_crowd *c = arg;

    atomic_fetch_add(&c->ready, 1);
    UNTIL(atomic_load(&c->ready) == c->helpers);
    for (int i = 0; c->with_tasks && i < 8; i++) {
        atomic_fetch_add(&c->forked, 1);
        CHECK_EQ(fj_execute(c->pool, crowd_leaf, c), FJ_OK);
    }
    int forked = atomic_load(&c->forked);
    fj_help_quiesce();
    CHECK(atomic_load(&c->ran) >= forked);
    atomic_fetch_add(&c->left, 1);
    return FJ_OK;
}

static void help_in_a_crowd(bool with_tasks, unsigned flags)
{
    enum { N = 5 };
    fj_pool *p = fjt_pool(N, flags);

    for (long round = fjt_rounds(100); round > 0; round--) {
        for (int k = 1; k <= N; k++) {
            struct quiet_crowd c = {.pool = p, .helpers = k, .with_tasks = with_tasks};
            for (int i = 0; i < k; i++) CHECK_EQ(fj_execute(p, crowd_help, &c), FJ_OK);
            UNTIL(atomic_load(&c.left) == k);
            CHECK_EQ(atomic_load(&c.ran), atomic_load(&c.forked));
        }
    }
    regression_rest(p);
    fjt_destroy(p);
}

FJ_TEST(several_that_help_until_quiet_do_not_wait_for_each_other, 60)
{
    help_in_a_crowd(false, 0);
}

FJ_TEST(several_that_help_until_quiet_leave_nothing_undone, 60)
{
    help_in_a_crowd(true, 0);
}

FJ_TEST(several_that_help_until_quiet_leave_nothing_undone_fifo, 60)
{
    help_in_a_crowd(true, FJ_POOL_FIFO);
}

/* ---- Quiescent means that every action has ended ---------------------------------------- */

FJ_TEST(after_await_quiescence_every_action_is_done, 60)
{
    for (int helps = 0; helps < 2; helps++) {
        fj_pool *p = fjt_pool(3, helps ? FJ_POOL_CALLER_HELPS : 0);
        for (long round = fjt_rounds(3000); round > 0; round--) {
            atomic_int ran = 0;
            int n = (int)(round % 20);
            for (int i = 0; i < n; i++) CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
            CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
            CHECK_EQ(atomic_load(&ran), n);
        }
        fjt_destroy(p);
    }
}
