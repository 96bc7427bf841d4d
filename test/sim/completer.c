/* SPDX-License-Identifier: MIT */
/*
 * completer.c - scenarios of completers: the end of a tree, and failures
 */
#include <pthread.h>

#include "scenario.h"

static atomic_int runs;

/* ---- The end of a tree ----------------------------------------------------------------------- */

struct count {
    fj_completer completer;
    int depth;
    struct count *child[2];
};

static int count_through(fj_completer *c, fj_completer *caller)
{
    struct count *n = (struct count *)c;

    (void)caller;
    if (n->depth == 0) return FJ_OK;
    free(n->child[0]);
    free(n->child[1]);
    return FJ_OK;
}

static int count_run(fj_task *t)
{
    struct count *c = (struct count *)t;

    atomic_fetch_add(&runs, 1);
    if (c->depth > 0) {
        fj_completer_set_pending(&c->completer, 2);
        for (int i = 0; i < 2; i++) {
            struct count *n = c->child[i] = malloc(sizeof *n);
            memset(n, 0, sizeof *n);
            fj_completer_init(&n->completer, &c->completer, 0, count_run, count_through, NULL);
            n->depth = c->depth - 1;
        }
        for (int i = 0; i < 2; i++) CHECK_EQ(fj_completer_fork(&c->child[i]->completer), FJ_OK);
    }
    fj_completer_try_complete(&c->completer);
    return FJ_OK;
}

FJ_TEST(completers_tell_their_root_when_all_are_through, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct count *root = malloc(sizeof *root);

    atomic_store(&runs, 0);
    memset(root, 0, sizeof *root);
    fj_completer_init(&root->completer, NULL, 0, count_run, count_through, NULL);
    root->depth = 2;
    CHECK_EQ(fj_completer_invoke(pool, &root->completer), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 7);
    fjt_destroy(pool);
    free(root);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* Two children fail. One of them resolves the root and calls its on_error, and the waiter
 * returns only afterwards. */
struct failing {
    fj_completer completer;
    atomic_int told;
    int seen, over;
};

static int fails(fj_task *t)
{
    (void)t;
    return 5;
}

static int failing_told(fj_completer *c, int code, fj_completer *caller)
{
    struct failing *f = (struct failing *)c;

    CHECK(caller != c);
    CHECK_EQ(atomic_fetch_add(&f->told, 1), 0);
    f->seen = fj_future_error(&c->future) == code && fj_future_is_done(&c->future);
    for (uint32_t n = sim_random() % 8; n > 0; n--) sim_yield();
    f->over = 1;
    return 1;
}

FJ_TEST(on_error_is_called_once_before_waiters_return, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct failing *root = malloc(sizeof *root);
    fj_completer *child[2];

    memset(root, 0, sizeof *root);
    fj_completer_init(&root->completer, NULL, 2, NULL, NULL, failing_told);
    for (int i = 0; i < 2; i++) {
        child[i] = malloc(sizeof *child[i]);
        memset(child[i], 0, sizeof *child[i]);
        fj_completer_init(child[i], &root->completer, 0, fails, NULL, NULL);
        CHECK_EQ(fj_completer_submit(pool, child[i]), FJ_OK);
    }
    CHECK_EQ(fj_completer_join(&root->completer), 5);
    CHECK_EQ(root->over, 1);
    CHECK_EQ(root->seen, 1);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&root->told), 1);
    free(root);
    for (int i = 0; i < 2; i++) free(child[i]);
}

/* Tries to resolve the root while on_error of the root runs. It must not wait for on_error,
 * which waits for this thread. */
static void *decides_too_late(void *arg)
{
    fj_completer *c = arg;

    CHECK_EQ(fj_future_cancel(&c->future, 1), 0);
    fj_completer_fail(c, 8);
    return NULL;
}

static int told_waits(fj_completer *c, int code, fj_completer *caller)
{
    pthread_t t;

    (void)code, (void)caller;
    CHECK_EQ(pthread_create(&t, NULL, decides_too_late, c), 0);
    pthread_join(t, NULL);
    return 1;
}

FJ_TEST(on_error_may_wait_for_who_decides_too_late, 10)
{
    fj_completer *root = malloc(sizeof *root);

    memset(root, 0, sizeof *root);
    fj_completer_init(root, NULL, 0, NULL, NULL, told_waits);
    fj_completer_fail(root, 5);
    CHECK_EQ(fj_future_error(&root->future), 5);
    free(root);
}

/* The child fails its own future, and then also returns an error. The root fails once, with the
 * code that the body returned. */
static int fails_by_hand(fj_task *t)
{
    (void)fj_future_fail((fj_future *)t, 4);
    return 5;
}

FJ_TEST(failure_by_hand_is_passed_on_by_the_code, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct failing *root = malloc(sizeof *root);
    fj_completer *child = malloc(sizeof *child);

    memset(root, 0, sizeof *root);
    memset(child, 0, sizeof *child);
    fj_completer_init(&root->completer, NULL, 1, NULL, NULL, failing_told);
    fj_completer_init(child, &root->completer, 0, fails_by_hand, NULL, NULL);
    CHECK_EQ(fj_completer_submit(pool, child), FJ_OK);
    CHECK_EQ(fj_completer_join(&root->completer), 5);
    fjt_destroy(pool);
    CHECK_EQ(fj_future_error(&child->future), 4);
    free(root);
    free(child);
}
