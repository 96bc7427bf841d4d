/* SPDX-License-Identifier: MIT */
/*
 * ends.c - two outcomes at once, a timer at the end of its pool, and the last of several failures
 */
#include <pthread.h>
#include <string.h>

#include "inside.h"

static atomic_int runs;

/* ---- A child that fails twice ---------------------------------------------------------------- */

struct family {
    fj_completer root, bad, good;
    int by_hand, by_code; /* codes of `bad`: that of fj_future_fail(), and that of its body */
    atomic_int root_failures, bad_failures;
};

static int count_root(fj_completer *c, int code, fj_completer *caller)
{
    struct family *f = (struct family *)c;

    CHECK(caller == &f->bad);
    CHECK(code == f->by_hand || code == f->by_code);
    atomic_fetch_add(&f->root_failures, 1);
    return 1;
}

static int count_bad(fj_completer *c, int code, fj_completer *caller)
{
    struct family *f = (struct family *)fj_completer_parent(c);

    CHECK(caller == c);
    CHECK(code == f->by_hand || code == f->by_code);
    atomic_fetch_add(&f->bad_failures, 1);
    return 1;
}

static int bad_run(fj_task *t)
{
    fj_completer *c = (fj_completer *)t;
    struct family *f = (struct family *)fj_completer_parent(c);

    CHECK_EQ(fj_future_fail(&c->future, f->by_hand), 1);
    return f->by_code;
}

static int good_run(fj_task *t)
{
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

static int family_run(fj_task *t)
{
    struct family *f = (struct family *)t;

    fj_completer_set_pending(&f->root, 2);
    CHECK_EQ(fj_completer_fork(&f->bad), FJ_OK);
    CHECK_EQ(fj_completer_fork(&f->good), FJ_OK);
    fj_completer_try_complete(&f->root);
    return FJ_OK;
}

static void family_fails_once(fj_pool *pool, int by_hand, int by_code)
{
    struct family f;

    memset(&f, 0, sizeof f);
    f.by_hand = by_hand;
    f.by_code = by_code;
    fj_completer_init(&f.root, NULL, 0, family_run, NULL, count_root);
    fj_completer_init(&f.bad, &f.root, 0, bad_run, NULL, count_bad);
    fj_completer_init(&f.good, &f.root, 0, good_run, NULL, NULL);
    int code = fj_completer_invoke(pool, &f.root);
    CHECK(code == by_hand || code == by_code);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_future_state(&f.root.future), FJ_FUTURE_FAILED);
    CHECK_EQ(fj_future_error(&f.root.future), code);
    CHECK_EQ(fj_future_error(&f.bad.future), by_hand);
    CHECK_EQ(atomic_load(&f.root_failures), 1);
    CHECK(atomic_load(&f.bad_failures) <= 1);
}

FJ_TEST(child_that_fails_itself_and_by_its_code_ends_its_root_once, 20)
{
    for (int workers = 1; workers <= 3; workers++) {
        fj_pool *pool = fjt_pool(workers, 0);
        for (long round = fjt_rounds(500); round > 0; round--) {
            family_fails_once(pool, 7, 8);
            family_fails_once(pool, 7, 7);
        }
        fjt_destroy(pool);
    }
}

/* ---- A timer and the end of its pool --------------------------------------------------------- */

static int tick(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static atomic_int may_shut_down;

static void *shuts_down(void *pool)
{
    until(&may_shut_down);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    return NULL;
}

/* The timers are due after one microsecond. The pool terminates only after it has run all timers
 * that it has accepted. */
FJ_TEST(accepted_timer_runs_though_the_pool_is_shut_down, 60)
{
    enum { N = 8 };
    uint64_t seed = fjt_seed();

    for (long round = fjt_rounds(500); round > 0; round--) {
        fj_pool *pool = fjt_pool(1 + (int)(round % 2), 0);
        fj_timer t[N];
        int accepted = 0, code[N];
        pthread_t other;
        int begins = (int)(fjt_random(&seed) % N);
        atomic_store(&runs, 0);
        atomic_store(&may_shut_down, 0);
        CHECK_EQ(pthread_create(&other, NULL, shuts_down, pool), 0);
        for (int i = 0; i < N; i++) {
            if (i == begins) atomic_store(&may_shut_down, 1);
            fj_timer_init(&t[i], tick);
            code[i] = fj_schedule(pool, &t[i], 1000);
            CHECK(code[i] == FJ_OK || code[i] == FJ_EREJECTED);
            accepted += code[i] == FJ_OK;
        }
        CHECK_EQ(pthread_join(other, NULL), 0);
        CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&runs), accepted);
        for (int i = 0; i < N; i++)
            if (code[i] == FJ_OK) CHECK_EQ(fj_future_state(&t[i].future), FJ_FUTURE_SUCCESS);
        fjt_destroy(pool);
    }
}

/* ---- The last of several failures ------------------------------------------------------------ */

enum { FAILURES = 6 };

struct late {
    fj_future future;
    const fj_future *before; /* fails after this one; NULL: at once */
    int code;
};

static int late_run(fj_task *t)
{
    const struct late *l = (struct late *)t;

    while (l->before != NULL && !fj_future_is_done(l->before)) fjt_sleep_us(20);
    return l->code;
}

/* order[i] is the index of the future that fails as the i-th. */
static void last_of(fj_pool *pool, const int *order)
{
    struct late l[FAILURES];
    fj_future *f[FAILURES];
    size_t which = 77;

    memset(l, 0, sizeof l);
    for (int i = 0; i < FAILURES; i++) {
        fj_future_init(&l[i].future, late_run);
        l[i].code = 1 + i;
        f[i] = &l[i].future;
    }
    for (int i = 1; i < FAILURES; i++) l[order[i]].before = f[order[i - 1]];
    CHECK_EQ(fj_future_invoke_any(pool, f, FAILURES, FJ_FOREVER, &which),
             l[order[FAILURES - 1]].code);
    CHECK_EQ(which, 77);
    for (int i = 0; i < FAILURES; i++) fj_future_fini(f[i]);
}

/* The library numbers failures. In an aged build this number wraps during the first failures of a
 * process, so each order has its own test and thus its own process. */
static void last_in_order(const int *order)
{
    fj_pool *pool = fjt_pool(FAILURES, 0);

    for (long round = fjt_rounds(20); round > 0; round--) last_of(pool, order);
    fjt_destroy(pool);
}

FJ_TEST(any_of_gives_the_code_of_the_last_to_fail_at_the_end_of_its_list, 20)
{
    last_in_order((const int[FAILURES]){0, 1, 2, 3, 4, 5});
}

FJ_TEST(any_of_gives_the_code_of_the_last_to_fail_at_the_beginning, 20)
{
    last_in_order((const int[FAILURES]){5, 4, 3, 2, 1, 0});
}

FJ_TEST(any_of_gives_the_code_of_the_last_to_fail_in_the_middle, 20)
{
    last_in_order((const int[FAILURES]){4, 0, 5, 1, 3, 2});
}
