/* SPDX-License-Identifier: MIT */
/*
 * outcome.c - what a body sees after another thread has resolved its future
 *
 * Also time limits of fj_submit_with_timeout(), and interrupts of tasks that have their own tokens.
 */
#include <forkjoin/block.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fjtest.h"
#include "plat/atomic.h"

#define MS ((int64_t)1000000)
#define HOUR ((int64_t)3600 * 1000 * MS)

#define UNTIL(condition)                       \
    do {                                       \
        while (!(condition)) fjt_sleep_us(50); \
    } while (0)

/* ---- Waits in a body and below it ------------------------------------------------------------ */

/* Where the wait is: in the body of the future, or in a task below the body. */
enum place { IN_BODY, IN_TOKEN, IN_TOKENS, IN_STOLEN, IN_STOLEN_TOKEN, IN_OTHER_POOL, PLACES };
/* How it waits: by polling fj_is_cancelled(), or in a call that blocks. */
enum wait { ASKS, SLEEPS, GETS, WAITS_ANY, MANAGED, READS, WAITS };

static struct {
    enum place place;
    enum wait wait;
    fj_pool *other;
    fj_future never;
    int fds[2];
    atomic_int begun, stolen, got;
} deep;

static int deep_ready(void *arg)
{
    (void)arg;
    return 0;
}

static int deep_block(void *arg)
{
    (void)arg;
    fjt_sleep_us(100);
    return 0;
}

static int deep_wait(void)
{
    fj_future *never = &deep.never;
    size_t which;
    char c;

    atomic_store(&deep.begun, 1);
    switch (deep.wait) {
        case SLEEPS: return fj_sleep_ns(HOUR);
        case GETS: return fj_future_get(never, FJ_FOREVER, NULL);
        case WAITS_ANY: return fj_future_wait_any(&never, 1, FJ_FOREVER, &which);
        case MANAGED: return fj_managed_block(deep_ready, deep_block, NULL);
        case READS: return (int)fj_block_read(deep.fds[0], &c, 1);
        default: UNTIL(fj_is_cancelled()); return FJ_ECANCELED;
    }
}

static int deep_leaf(fj_task *t)
{
    (void)t;
    atomic_store(&deep.stolen, 1);
    atomic_store(&deep.got, deep_wait());
    return FJ_OK;
}

static int deep_under_token(fj_task *t)
{
    fj_token inner, innermost;

    (void)t;
    atomic_store(&deep.stolen, 1);
    fj_token_init(&inner, fj_current_token());
    fj_token_init(&innermost, &inner);
    fj_task leaf;
    fj_task_init(&leaf, deep_leaf);
    fj_pool *pool = deep.place == IN_OTHER_POOL ? deep.other : fj_current_pool();
    int code = fj_invoke_token(pool, &leaf, deep.place == IN_TOKENS ? &innermost : &inner);
    /* The second case: the token was cancelled before the task began. */
    CHECK(code == FJ_OK || (code == FJ_ECANCELED && fj_is_cancelled()));
    return FJ_OK;
}

static int deep_body(void *arg, void **result)
{
    bool steals = deep.place == IN_STOLEN || deep.place == IN_STOLEN_TOKEN;
    fj_task leaf;

    (void)arg, (void)result;
    fj_task_init(&leaf, deep.place == IN_STOLEN_TOKEN ? deep_under_token : deep_leaf);
    if (steals) {
        fj_fork(&leaf);
        UNTIL(atomic_load(&deep.stolen));
        CHECK_EQ(fj_join(&leaf), FJ_OK);
    } else if (deep.place == IN_BODY) {
        (void)deep_leaf(&leaf);
    } else {
        (void)deep_under_token(&leaf);
    }
    return FJ_OK;
}

static void deep_set(enum place place, enum wait wait)
{
    deep.place = place;
    deep.wait = wait;
    fj_future_init(&deep.never, NULL);
    atomic_store(&deep.begun, 0);
    atomic_store(&deep.stolen, 0);
    atomic_store(&deep.got, 1);
}

static void on_signal(int sig)
{
    (void)sig;
}

static fj_pool *deep_pool(void)
{
    struct sigaction sa = {.sa_handler = on_signal};
    fj_pool_options o = {0};

    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    o.parallelism = 2;
    o.interrupt_signal = SIGUSR1;
    return fjt_pool_with(&o);
}

static void acts_fail(fj_future *f, void *arg)
{
    (void)arg;
    CHECK_EQ(fj_future_fail(f, 7), 1);
}

/* way: 0 cancels the future; 1 sets a time limit; 2 sets a time limit with an action. Each
 * interrupts every kind of wait at every place. */
static void deep_round(fj_pool *p, int way)
{
    int64_t limit = way == 0 ? HOUR : MS + (int64_t)(fjt_now() % 7) * MS / 4;
    fj_future *f;

    CHECK_EQ(fj_submit_with_timeout(p, deep_body, NULL, limit, way == 2 ? acts_fail : NULL, &f),
             FJ_OK);
    if (way == 0) {
        UNTIL(atomic_load(&deep.begun));
        fjt_spin_us(fjt_now() % 60);
        CHECK_EQ(fj_future_cancel(f, 1), 1);
    }
    CHECK_EQ(fj_future_join(f), way == 0 ? FJ_ECANCELED : way == 1 ? FJ_ETIMEDOUT : 7);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    /* If the future was resolved before its body began, the body never runs. */
    CHECK(atomic_load(&deep.got) == FJ_ECANCELED || !atomic_load(&deep.begun));
    fj_future_unref(f);
}

FJ_TEST(interrupt_breaks_every_wait_under_a_future, 120)
{
    fj_pool *p = deep_pool();

    deep.other = deep_pool();
    CHECK_EQ(pipe(deep.fds), 0);
    for (long i = fjt_rounds(2); i > 0; i--) {
        for (int place = 0; place < PLACES; place++) {
            for (int wait = 0; wait < WAITS; wait++) {
                for (int way = 0; way < 3; way++) {
                    deep_set((enum place)place, (enum wait)wait);
                    deep_round(p, way);
                }
            }
        }
    }
    fjt_destroy(deep.other);
    fjt_destroy(p);
}

/* Cancels the token after the task below it has begun to wait. */
static void *cancels_token(void *arg)
{
    UNTIL(atomic_load(&deep.begun));
    fjt_sleep_us(200);
    fj_token_cancel(arg);
    return NULL;
}

FJ_TEST(cancelled_token_breaks_every_wait_below_it, 120)
{
    fj_pool *p = deep_pool();

    deep.other = deep_pool();
    CHECK_EQ(pipe(deep.fds), 0);
    for (int place = IN_BODY; place < PLACES; place++) {
        for (int wait = 0; wait < WAITS; wait++) {
            fj_token token;
            fj_task t;
            pthread_t thread;
            /* These two need deep_body(), which forks. */
            if (place == IN_STOLEN || place == IN_STOLEN_TOKEN) continue;
            deep_set((enum place)place, (enum wait)wait);
            fj_token_init(&token, NULL);
            fj_task_init(&t, place == IN_BODY ? deep_leaf : deep_under_token);
            CHECK_EQ(pthread_create(&thread, NULL, cancels_token, &token), 0);
            CHECK_EQ(fj_invoke_token(p, &t, &token), FJ_OK);
            pthread_join(thread, NULL);
            CHECK_EQ(atomic_load(&deep.got), FJ_ECANCELED);
        }
    }
    fjt_destroy(deep.other);
    fjt_destroy(p);
}

/* The signal interrupts the wait of the cancelled task only. It must not reach another task, not
 * even the next task of the same thread. */
static atomic_int disturbed;

static int undisturbed(void *arg)
{
    struct timespec moment = {.tv_nsec = 30000};

    (void)arg;
    if (nanosleep(&moment, NULL) != 0) atomic_fetch_add(&disturbed, 1);
    return FJ_OK;
}

FJ_TEST(signal_of_a_stolen_task_does_not_reach_the_next, 120)
{
    fj_pool *p = deep_pool();
    char c = 0;

    CHECK_EQ(pipe(deep.fds), 0);
    for (long i = fjt_rounds(300); i > 0; i--) {
        fj_future *f, *next[2];
        deep_set(i % 2 == 0 ? IN_STOLEN : IN_STOLEN_TOKEN, READS);
        CHECK_EQ(fj_submit_call(p, deep_body, NULL, &f), FJ_OK);
        UNTIL(atomic_load(&deep.begun));
        for (int k = 0; k < 2; k++)
            CHECK_EQ(fj_submit_action(p, undisturbed, NULL, NULL, &next[k]), FJ_OK);
        /* The wait ends by itself at about the time when the future is cancelled. */
        CHECK_EQ(write(deep.fds[1], &c, 1), 1);
        CHECK_EQ(fj_future_cancel(f, 1) || fj_future_is_done(f), 1);
        for (int k = 0; k < 2; k++) {
            CHECK_EQ(fj_future_join(next[k]), FJ_OK);
            fj_future_unref(next[k]);
        }
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        int got = atomic_load(&deep.got);
        CHECK(got == 1 || got == FJ_ECANCELED);
        if (got != 1) CHECK_EQ(read(deep.fds[0], &c, 1), 1);
        fj_future_unref(f);
    }
    CHECK_EQ(atomic_load(&disturbed), 0);
    fjt_destroy(p);
}

/* ---- Resolved by another thread -------------------------------------------------------------- */

static int decide(fj_future *f, int how)
{
    switch (how) {
        case 0: return fj_future_complete(f, NULL);
        case 1: return fj_future_complete_quietly(f);
        case 2: return fj_future_fail(f, 9);
        case 3: return fj_future_fail(f, FJ_ECANCELED);
        default: return fj_future_cancel(f, 0);
    }
}

/* Resolves the future in an arbitrary way, in a task of another pool. */
static int decides(void *arg)
{
    return decide(arg, (int)(fjt_now() % 5)) == 1 ? FJ_OK : 99;
}

FJ_TEST(body_sees_that_another_has_decided_its_future, 120)
{
    fj_pool *p = fjt_pool(2, 0);

    deep.other = fjt_pool(1, 0);
    for (int how = 0; how < 6; how++) {
        for (int place = 0; place < PLACES; place++) {
            fj_future *f, *other;
            deep_set((enum place)place, ASKS);
            CHECK_EQ(fj_submit_call(p, deep_body, NULL, &f), FJ_OK);
            UNTIL(atomic_load(&deep.begun));
            CHECK_EQ(atomic_load(&deep.got), 1);
            if (how < 5) {
                CHECK_EQ(decide(f, how), 1);
            } else {
                CHECK_EQ(fj_submit_action(NULL, decides, f, NULL, &other), FJ_OK);
                CHECK_EQ(fj_future_join(other), FJ_OK);
                fj_future_unref(other);
            }
            CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
            CHECK_EQ(atomic_load(&deep.got), FJ_ECANCELED);
            fj_future_unref(f);
        }
    }
    fjt_destroy(deep.other);
    fjt_destroy(p);
}

/* Resolving a future does not interrupt the waits of its body. Only a cancel with interrupt and a
 * time limit do that. */
static int sleeps_a_while(void *arg, void **result)
{
    (void)arg, (void)result;
    atomic_store(&deep.begun, 1);
    UNTIL(fj_is_cancelled());
    atomic_store(&deep.got, fj_sleep_ns(2 * MS));
    return FJ_OK;
}

FJ_TEST(future_completed_by_another_is_not_interrupted, 60)
{
    fj_pool *p = fjt_pool(1, 0);

    for (int how = 0; how < 5; how++) {
        fj_future *f;
        deep_set(IN_BODY, ASKS);
        CHECK_EQ(fj_submit_call(p, sleeps_a_while, NULL, &f), FJ_OK);
        UNTIL(atomic_load(&deep.begun));
        CHECK_EQ(decide(f, how), 1);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&deep.got), FJ_OK);
        fj_future_unref(f);
    }
    fjt_destroy(p);
}

/* ---- Resolved by the body itself ------------------------------------------------------------- */

struct own {
    fj_future f;
    fj_task child;
    int how;
    bool by_child, under_token;
};

static int own_decide(struct own *o)
{
    CHECK_EQ(o->how == 0 ? fj_future_complete(&o->f, o) : fj_future_fail(&o->f, 9), 1);
    return FJ_OK;
}

static int own_child(fj_task *t)
{
    return own_decide((struct own *)(void *)((char *)t - offsetof(struct own, child)));
}

static int own_run(fj_task *t)
{
    struct own *o = (struct own *)t;
    fj_token inner;

    fj_token_init(&inner, fj_current_token());
    if (o->by_child) {
        fj_task_init(&o->child, own_child);
        if (o->under_token)
            CHECK_EQ(fj_invoke_token(fj_current_pool(), &o->child, &inner), FJ_OK);
        else
            CHECK_EQ(own_child(&o->child), FJ_OK);
    } else {
        CHECK_EQ(own_decide(o), FJ_OK);
    }
    CHECK(!fj_is_cancelled());
    CHECK_EQ(fj_sleep_ns(1000), FJ_OK);
    return FJ_OK;
}

static int own_forked(fj_task *t)
{
    struct own o = {.how = (int)(fjt_now() % 2)};

    (void)t;
    fj_future_init(&o.f, own_run);
    CHECK_EQ(fj_future_fork(&o.f), FJ_OK);
    CHECK_EQ(fj_future_join(&o.f), o.how == 0 ? FJ_OK : 9); /* usually run by this thread */
    fj_future_fini(&o.f);
    return FJ_OK;
}

FJ_TEST(body_that_decides_its_own_future_goes_on, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_task t;

    for (int i = 0; i < 8; i++) {
        struct own o = {.how = i % 2, .by_child = i / 2 % 2 != 0, .under_token = i / 4 != 0};
        fj_future_init(&o.f, own_run);
        CHECK_EQ(fj_future_submit(p, &o.f), FJ_OK);
        CHECK_EQ(fj_future_join(&o.f), i % 2 == 0 ? FJ_OK : 9);
        fj_future_fini(&o.f);
        fj_task_init(&t, own_forked);
        CHECK_EQ(fj_invoke(p, &t), FJ_OK);
    }
    fjt_destroy(p);
}

/* A thief is another thread, even if it runs a task that the body has forked. */
static int stolen_decides(fj_task *t)
{
    (void)t;
    atomic_store(&deep.stolen, 1);
    CHECK_EQ(fj_future_complete(&deep.never, NULL), 1);
    return FJ_OK;
}

static int waits_for_a_thief(fj_task *t)
{
    fj_task child;

    (void)t;
    fj_task_init(&child, stolen_decides);
    fj_fork(&child);
    UNTIL(atomic_load(&deep.stolen));
    CHECK_EQ(fj_join(&child), FJ_OK);
    atomic_store(&deep.got, fj_is_cancelled());
    return FJ_OK;
}

FJ_TEST(body_sees_what_a_stolen_task_has_decided, 60)
{
    fj_pool *p = fjt_pool(2, 0);

    deep_set(IN_BODY, ASKS);
    fj_future_init(&deep.never, waits_for_a_thief);
    CHECK_EQ(fj_future_submit(p, &deep.never), FJ_OK);
    CHECK_EQ(fj_future_join(&deep.never), FJ_OK);
    fj_future_fini(&deep.never);
    CHECK_EQ(atomic_load(&deep.got), 1);
    fjt_destroy(p);
}

/* ---- Actions at a time limit ----------------------------------------------------------------- */

static atomic_int held, let_go, acted, slow;

static int holds(void *arg, void **result)
{
    atomic_fetch_add(&held, 1);
    UNTIL(atomic_load(&let_go));
    *result = arg;
    return FJ_OK;
}

static void acts_complete(fj_future *f, void *arg)
{
    CHECK(fj_current_pool() == NULL);
    CHECK(fj_current_worker() < 0);
    (void)fj_future_complete(f, arg);
    atomic_fetch_add(&acted, 1);
}

/* A time limit matters most when all workers are busy, so its action must not need a worker. */
FJ_TEST(action_at_a_limit_needs_no_worker, 60)
{
    for (int n = 1; n <= 4; n += 3) {
        fj_pool *p = fjt_pool(n, 0);
        fj_future *f[8];
        void *result;
        int x;
        atomic_store(&held, 0);
        atomic_store(&acted, 0);
        atomic_store(&let_go, 0);
        for (int i = 0; i < 8; i++)
            CHECK_EQ(fj_submit_with_timeout(p, holds, NULL, 5 * MS, acts_complete, &f[i]), FJ_OK);
        for (int i = 0; i < 8; i++) {
            CHECK_EQ(fj_future_get(f[i], FJ_FOREVER, &result), FJ_OK);
            CHECK(result == NULL);
        }
        UNTIL(atomic_load(&acted) == 8);
        CHECK(atomic_load(&held) <= n); /* the other bodies never began */
        atomic_store(&let_go, 1);
        for (int i = 0; i < 8; i++) fj_future_unref(f[i]);
        CHECK_EQ(fj_submit_with_timeout(p, holds, &x, HOUR, acts_complete, &f[0]), FJ_OK);
        CHECK_EQ(fj_future_get(f[0], FJ_FOREVER, &result), FJ_OK);
        CHECK(result == &x);
        fj_future_unref(f[0]);
        fjt_destroy(p);
        CHECK_EQ(atomic_load(&acted), 8);
    }
}

static void acts_slowly(fj_future *f, void *arg)
{
    (void)arg;
    atomic_fetch_add(&slow, 1);
    UNTIL(atomic_load(&let_go));
    (void)fj_future_fail(f, 8);
    atomic_fetch_sub(&slow, 1);
}

static int count_up(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    return FJ_OK;
}

static int left_open(void *arg, void **result)
{
    (void)arg, (void)result;
    return FJ_PENDING;
}

static atomic_int opened;

static int left_open_and_counted(void *arg, void **result)
{
    (void)arg, (void)result;
    atomic_fetch_add(&opened, 1);
    return FJ_PENDING;
}

/* Each slow action occupies a thread of its own, and one more thread serves the timing wheel. */
FJ_TEST(slow_actions_delay_no_other_timer, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    atomic_int runs = 0;
    fj_future *f[20], *g;

    for (int n = 1; n <= 20; n++) {
        CHECK_EQ(fj_submit_with_timeout(p, left_open, NULL, MS, acts_slowly, &f[n - 1]), FJ_OK);
        UNTIL(atomic_load(&slow) == n);
        CHECK_EQ(fj_schedule_action(p, count_up, &runs, MS, &g), FJ_OK);
        CHECK_EQ(fj_future_join(g), FJ_OK);
        fj_future_unref(g);
        CHECK_EQ(fj_submit_with_timeout(p, left_open, NULL, MS, NULL, &g), FJ_OK);
        CHECK_EQ(fj_future_join(g), FJ_ETIMEDOUT);
        fj_future_unref(g);
        CHECK_EQ(fj_submit_with_timeout(p, left_open, NULL, MS, acts_fail, &g), FJ_OK);
        CHECK_EQ(fj_future_join(g), 7);
        fj_future_unref(g);
    }
    CHECK_EQ(atomic_load(&runs), 20);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK); /* the pool terminates after the actions */
    CHECK_EQ(fj_pool_await_termination(p, 5 * MS), FJ_ETIMEDOUT);
    atomic_store(&let_go, 1);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(fj_future_join(f[i]), 8);
        fj_future_unref(f[i]);
    }
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&slow), 0);
}

/* A pool that stops while actions run waits for their end. */
FJ_TEST(pool_that_stops_waits_for_actions_at_limits, 60)
{
    for (int now = 0; now < 2; now++) {
        fj_pool *p = fjt_pool(1, 0);
        fj_future *f[3], *late;
        atomic_store(&let_go, 0);
        atomic_store(&opened, 0);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(fj_submit_with_timeout(p, left_open_and_counted, NULL, 0, acts_slowly, &f[i]),
                     FJ_OK);
        UNTIL(atomic_load(&slow) == 3);
        UNTIL(atomic_load(&opened) == 3); /* the stop would cancel a body that is still queued */
        CHECK_EQ(fj_submit_with_timeout(p, left_open, NULL, 2 * MS, acts_fail, &late), FJ_OK);
        CHECK_EQ(now != 0 ? fj_pool_shutdown_now(p) : fj_pool_shutdown(p), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(p, MS), FJ_ETIMEDOUT);
        int code = fj_future_join(late);
        CHECK(code == 7 || (now && code == FJ_ECANCELED));
        atomic_store(&let_go, 1);
        fjt_destroy(p);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(fj_future_join(f[i]), 8);
            fj_future_unref(f[i]);
        }
        fj_future_unref(late);
    }
}

/* ---- What an action may do ------------------------------------------------------------------- */

struct busy {
    fj_pool *pool;
    atomic_int runs, done;
    fj_future *made[3];
};

static int leaf_run(fj_task *t)
{
    (void)t;
    return 5;
}

static void acts_much(fj_future *f, void *arg)
{
    struct busy *b = arg;
    fj_task leaf;

    CHECK_EQ(fj_is_cancelled(), 0);
    CHECK_EQ(fj_execute(b->pool, count_up, &b->runs), FJ_OK);
    CHECK_EQ(fj_submit_action(b->pool, count_up, &b->runs, NULL, &b->made[0]), FJ_OK);
    CHECK_EQ(fj_schedule_action(b->pool, count_up, &b->runs, 0, &b->made[1]), FJ_OK);
    CHECK_EQ(fj_submit_with_timeout(b->pool, left_open, NULL, 0, NULL, &b->made[2]), FJ_OK);
    fj_task_init(&leaf, leaf_run);
    fj_fork(&leaf); /* in the common pool */
    CHECK_EQ(fj_join(&leaf), 5);
    fj_task_init(&leaf, leaf_run);
    CHECK_EQ(fj_invoke(b->pool, &leaf), 5);
    CHECK_EQ(fj_future_join(b->made[1]), FJ_OK);
    CHECK_EQ(fj_future_join(b->made[2]), FJ_ETIMEDOUT); /* of the same timing wheel */
    CHECK_EQ(fj_pool_close(b->pool), FJ_EDEADLK);
    CHECK_EQ(fj_pool_destroy(b->pool), FJ_EDEADLK);
    CHECK_EQ(fj_pool_await_termination(b->pool, FJ_FOREVER), FJ_EDEADLK);
    CHECK_EQ(fj_future_cancel(f, 1), 1);
    CHECK_EQ(fj_pool_shutdown(b->pool), FJ_OK);
    atomic_store(&b->done, 1);
}

FJ_TEST(action_at_a_limit_may_use_its_pool, 60)
{
    fj_pool *p = fjt_pool(1, 0);
    struct busy b = {.pool = p};
    fj_future *f;

    CHECK_EQ(fj_submit_with_timeout(p, left_open, &b, MS, acts_much, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
    UNTIL(atomic_load(&b.done));
    for (int i = 0; i < 3; i++) fj_future_unref(b.made[i]);
    fj_future_unref(f);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&b.runs), 3);
}

static void acts_not(fj_future *f, void *arg)
{
    (void)f;
    atomic_store((atomic_int *)arg, 1);
}

static int waits_for_its_action(void *arg, void **result)
{
    UNTIL(atomic_load((atomic_int *)arg));
    CHECK(!fj_is_cancelled());
    *result = arg;
    return FJ_OK;
}

/* If the action does not resolve the future, the body continues, and no second limit applies. */
FJ_TEST(action_that_decides_nothing_leaves_the_body_alone, 60)
{
    fj_pool *p = fjt_pool(1, 0);
    atomic_int over = 0;
    fj_future *f;
    void *result = NULL;

    CHECK_EQ(fj_submit_with_timeout(p, waits_for_its_action, &over, 1, acts_not, &f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == &over);
    fj_future_unref(f);
    fjt_destroy(p);
}

/* In the child process the action returns and its thread, the only one, ends with status 0. The
 * parent process is not affected. */
static atomic_int child_status;

static void acts_fork(fj_future *f, void *arg)
{
    int status;
    pid_t child = fork();

    (void)arg;
    if (child == 0) {
        (void)fj_future_complete(f, NULL);
        return;
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    atomic_store(&child_status, WIFEXITED(status) ? WEXITSTATUS(status) : 1000);
    CHECK_EQ(fj_future_fail(f, 6), 1);
}

FJ_TEST(action_at_a_limit_may_fork_the_process, 60)
{
    if (FJI_TSAN) fjt_skip("ThreadSanitizer knows no threads after fork()");
    if (FJI_ASAN) fjt_skip("AddressSanitizer's allocator keeps the locks of threads that are gone");
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f, *g;

    CHECK_EQ(fj_submit_with_timeout(p, left_open, NULL, 0, acts_fork, &f), FJ_OK);
    CHECK_EQ(fj_future_join(f), 6);
    CHECK_EQ(atomic_load(&child_status), 0);
    fj_future_unref(f);
    CHECK_EQ(fj_submit_with_timeout(p, left_open, NULL, 0, acts_fail, &g), FJ_OK);
    CHECK_EQ(fj_future_join(g), 7);
    fj_future_unref(g);
    fjt_destroy(p);
}

/* ---- A body that ends before its limit is set ------------------------------------------------ */

static void acts_on_count(fj_future *f, void *arg)
{
    (void)arg;
    (void)fj_future_fail(f, 7);
}

static int ends_at_once(void *arg, void **result)
{
    (void)arg, (void)result;
    return FJ_OK;
}

/* The body ends, and sometimes the pool too, before the time limit is in the timing wheel. */
FJ_TEST(limit_of_a_body_that_is_over_before_it_begins, 120)
{
    for (long i = fjt_rounds(1500); i > 0; i--) {
        fj_pool *p = fjt_pool(1, 0);
        fj_future *f[2];
        for (int k = 0; k < 2; k++) {
            int64_t limit = i % 3 == 0 ? 0 : HOUR;
            CHECK_EQ(fj_submit_with_timeout(p, ends_at_once, NULL, limit,
                                            k == 0 ? NULL : acts_on_count, &f[k]),
                     FJ_OK);
        }
        if (i % 2 == 0) CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        for (int k = 0; k < 2; k++) {
            int code = fj_future_join(f[k]);
            CHECK(code == FJ_OK || (i % 3 == 0 && code == (k == 0 ? FJ_ETIMEDOUT : 7)));
            fj_future_unref(f[k]);
        }
        fjt_destroy(p);
    }
}
