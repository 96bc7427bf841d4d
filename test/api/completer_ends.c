/* SPDX-License-Identifier: MIT */
/*
 * completer_ends.c - completers that fail or resolve their root, helping, and invalid arguments
 */
#include <pthread.h>
#include <string.h>

#include "inside.h"
#include "plat/config.h"
#include "plat/plat.h"

/* ---- Failing --------------------------------------------------------------------------------- */

static int fails(fj_completer *c, fj_completer *caller)
{
    (void)c, (void)caller;
    return 31;
}

static int tries(fj_task *t)
{
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

static int completes(fj_task *t)
{
    fj_completer_complete((fj_completer *)t, NULL);
    return FJ_OK;
}

static void fail_by(fj_task_fn *fn)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_completer root, child;

    fj_completer_init(&root, NULL, 0, fn, fails, NULL);
    CHECK_EQ(fj_completer_invoke(p, &root), 31);
    CHECK(fj_future_failed(&root.future));
    fj_future_fini(&root.future);

    /* The code with which a child fails becomes the code of its root. */
    fj_completer_init(&root, NULL, 1, NULL, NULL, NULL);
    fj_completer_init(&child, &root, 0, fn, fails, NULL);
    CHECK_EQ(fj_completer_submit(p, &child), FJ_OK);
    CHECK_EQ(fj_completer_join(&root), 31);
    fjt_destroy(p);
}

FJ_TEST(code_of_on_completion_fails_the_completer_and_its_parents, 30)
{
    fail_by(tries);
}

FJ_TEST(code_of_on_completion_fails_one_that_is_completed_by_hand, 30)
{
    fail_by(completes);
}

FJ_TEST(failure_ends_at_a_parent_that_is_done, 30)
{
    fj_completer root, middle, leaf;

    fj_completer_init(&root, NULL, 1, NULL, NULL, NULL);
    fj_completer_init(&middle, &root, 1, NULL, NULL, NULL);
    fj_completer_init(&leaf, &middle, 0, NULL, NULL, NULL);
    CHECK_EQ(fj_future_complete(&middle.future, NULL), 1);
    fj_completer_fail(&leaf, 9);
    CHECK_EQ(fj_future_error(&leaf.future), 9);
    CHECK(fj_future_succeeded(&middle.future));
    CHECK(!fj_future_is_done(&root.future));
}

/* ---- on_error -------------------------------------------------------------------------------- */

struct told {
    fj_completer c;
    atomic_int calls, code, over;
    int answer;
    fj_completer *other; /* a completer that on_error fails, or NULL */
};

/* An on_error callback. For the calling thread, the completer is already done. */
static int looks_done(fj_completer *c, int code, fj_completer *caller)
{
    struct told *t = (struct told *)c;
    fj_future *f = &c->future;
    bool cancelled = code == FJ_ECANCELED;

    CHECK_EQ(fj_future_is_done(f), 1);
    CHECK_EQ(fj_future_failed(f), 1);
    CHECK_EQ(fj_future_is_cancelled(f), cancelled);
    CHECK_EQ(fj_future_state(f), cancelled ? FJ_FUTURE_CANCELLED : FJ_FUTURE_FAILED);
    CHECK_EQ(fj_future_error(f), code);
    CHECK_EQ(fj_future_result(f, NULL), code);
    CHECK_EQ(fj_future_join(f), code);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, NULL), code);
    CHECK_EQ(fj_future_complete(f, NULL), 0);
    CHECK_EQ(fj_future_fail(f, 99), 0);
    CHECK_EQ(fj_future_cancel(f, 1), cancelled);
    CHECK_EQ(fj_future_reinit(f), FJ_EBUSY);
    if (caller != c) CHECK_EQ(fj_future_failed(&caller->future), 1);
    fj_completer_fail(c, 98);
    if (t->other != NULL) fj_completer_fail(t->other, code + 1);
    CHECK_EQ(fj_future_error(f), code);
    atomic_fetch_add(&t->calls, 1);
    atomic_store(&t->code, code);
    for (int i = 0; i < 20; i++) sched_yield();
    atomic_store(&t->over, 1);
    return t->answer;
}

static void told_init(struct told *t, struct told *parent, int32_t pending, fj_task_fn *fn)
{
    fj_completer_init(&t->c, parent != NULL ? &parent->c : NULL, pending, fn, NULL, looks_done);
    atomic_store(&t->calls, 0);
    atomic_store(&t->over, 0);
    t->answer = 1;
    t->other = NULL;
}

static void check_told(const struct told *t, int calls, int outcome)
{
    CHECK_EQ(atomic_load(&t->calls), calls);
    CHECK_EQ(fj_future_error(&t->c.future), outcome);
}

FJ_TEST(on_error_is_called_once_and_after_the_outcome, 30)
{
    struct told root, child[3], stranger;

    told_init(&root, NULL, 3, NULL);
    told_init(&stranger, NULL, 0, NULL);
    for (int i = 0; i < 3; i++) told_init(&child[i], &root, 0, NULL);
    child[0].other = &stranger.c;
    for (int i = 0; i < 3; i++) fj_completer_fail(&child[i].c, 10 + i);
    for (int i = 0; i < 3; i++) check_told(&child[i], 1, 10 + i);
    check_told(&root, 1, 10);
    check_told(&stranger, 1, 11);
    CHECK_EQ(fj_future_reinit(&root.c.future), FJ_OK);
    fj_completer_fail(&root.c, FJ_ECANCELED);
    check_told(&root, 2, FJ_ECANCELED);
}

FJ_TEST(on_error_is_not_called_for_one_that_is_done, 30)
{
    struct told root, child;

    told_init(&root, NULL, 0, NULL);
    CHECK_EQ(fj_future_cancel(&root.c.future, 0), 1);
    fj_completer_fail(&root.c, 7);
    check_told(&root, 0, FJ_ECANCELED);
    told_init(&root, NULL, 0, NULL);
    CHECK_EQ(fj_future_fail(&root.c.future, 6), 1);
    fj_completer_fail(&root.c, 7);
    check_told(&root, 0, 6);
    told_init(&root, NULL, 0, NULL);
    fj_completer_fail(&root.c, 7);
    fj_completer_fail(&root.c, 8);
    check_told(&root, 1, 7);
    told_init(&root, NULL, 1, NULL);
    told_init(&child, &root, 0, NULL);
    fj_completer_complete_root(&child.c);
    fj_completer_fail(&child.c, 9);
    check_told(&root, 0, FJ_OK);
    check_told(&child, 1, 9);
}

/* If on_error returns 0, the failure does not reach the parent, and a later one does not either. */
FJ_TEST(failure_that_on_error_has_ended_stays_there, 30)
{
    struct told root, child;

    told_init(&root, NULL, 1, NULL);
    told_init(&child, &root, 0, NULL);
    child.answer = 0;
    fj_completer_fail(&child.c, 7);
    fj_completer_fail(&child.c, 8);
    check_told(&child, 1, 7);
    CHECK(!fj_future_is_done(&root.c.future));
    CHECK_EQ(atomic_load(&root.calls), 0);
}

static int fails_twice(fj_task *t)
{
    CHECK_EQ(fj_future_fail((fj_future *)t, 5), 1);
    return 6;
}

/* fj_future_fail() of a child does not fail its parents. The code of the body fails them, once. */
FJ_TEST(child_that_fails_itself_and_returns_a_code_fails_its_root_once, 30)
{
    fj_pool *p = fjt_pool(2, 0);

    for (long i = fjt_rounds(200); i > 0; i--) {
        struct told root, child;
        told_init(&root, NULL, 1, NULL);
        told_init(&child, &root, 0, fails_twice);
        CHECK_EQ(fj_completer_submit(p, &child.c), FJ_OK);
        CHECK_EQ(fj_completer_join(&root.c), 6);
        CHECK_EQ(atomic_load(&root.over), 1);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        check_told(&root, 1, 6);
        check_told(&child, 0, 5);
    }
    fjt_destroy(p);
}

static int fails_at_once(fj_task *t)
{
    return 20 + (int)((uintptr_t)t / sizeof(struct told) % 8);
}

/* A thread that waits for the root returns only after on_error has returned. */
FJ_TEST(waiters_return_after_on_error, 60)
{
    fj_pool *p = fjt_pool(4, 0);

    for (long i = fjt_rounds(2000); i > 0; i--) {
        struct told root, child[4];
        told_init(&root, NULL, 4, NULL);
        for (int k = 0; k < 4; k++) told_init(&child[k], &root, 0, fails_at_once);
        for (int k = 0; k < 4; k++) CHECK_EQ(fj_completer_submit(p, &child[k].c), FJ_OK);
        int code = fj_completer_join(&root.c);
        CHECK_EQ(atomic_load(&root.over), 1);
        CHECK_EQ(atomic_load(&root.code), code);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        check_told(&root, 1, code);
        for (int k = 0; k < 4; k++) CHECK_EQ(atomic_load(&child[k].calls), 1);
    }
    fjt_destroy(p);
}

/* Another thread that tries to resolve the future does not wait for the end of on_error, because
 * on_error may wait for that thread. */
static void *decides_in_vain(void *arg)
{
    fj_future *f = arg;

    CHECK_EQ(fj_future_is_done(f), 0); /* not yet, for this thread */
    CHECK_EQ(fj_future_complete(f, NULL), 0);
    CHECK_EQ(fj_future_cancel(f, 1), 0);
    CHECK_EQ(fj_future_wait(f, 1000), FJ_ETIMEDOUT);
    fj_completer_fail(arg, 77);
    return NULL;
}

static int waits_for_a_thread(fj_completer *c, int code, fj_completer *caller)
{
    pthread_t thread;

    (void)code, (void)caller;
    CHECK_EQ(pthread_create(&thread, NULL, decides_in_vain, c), 0);
    pthread_join(thread, NULL);
    return 1;
}

FJ_TEST(on_error_may_wait_for_threads_that_decide_too, 30)
{
    fj_completer root;

    fj_completer_init(&root, NULL, 0, NULL, NULL, waits_for_a_thread);
    fj_completer_fail(&root, 4);
    CHECK_EQ(fj_future_error(&root.future), 4);
}

/* If the outcome is "cancelled", another cancel reports it even while on_error runs. */
static void *cancels_again(void *arg)
{
    CHECK_EQ(fj_future_is_done(arg), 0);
    CHECK_EQ(fj_future_complete(arg, NULL), 0);
    CHECK_EQ(fj_future_cancel(arg, 0), 1);
    return NULL;
}

static int waits_for_a_cancel(fj_completer *c, int code, fj_completer *caller)
{
    pthread_t thread;

    (void)caller;
    CHECK_EQ(code, FJ_ECANCELED);
    CHECK_EQ(pthread_create(&thread, NULL, cancels_again, c), 0);
    pthread_join(thread, NULL);
    return 1;
}

FJ_TEST(cancel_during_on_error_reports_that_the_outcome_is_cancelled, 30)
{
    fj_completer root;

    fj_completer_init(&root, NULL, 0, NULL, NULL, waits_for_a_cancel);
    fj_completer_fail(&root, FJ_ECANCELED);
    CHECK_EQ(fj_future_is_cancelled(&root.future), 1);
}

/* ---- Tasks below a root that is resolved ----------------------------------------------------- */

static atomic_int begun, told_so;
static int (*ender)(fj_completer *c);

static int until_not_wanted(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&begun, 1);
    while (!fj_is_cancelled()) sched_yield();
    atomic_fetch_add(&told_so, 1);
    return FJ_OK;
}

static int ends_it(fj_task *t)
{
    while (atomic_load(&begun) == 0) sched_yield();
    return ender((fj_completer *)t);
}

static int by_complete_root(fj_completer *c)
{
    fj_completer_complete_root(c);
    return FJ_OK;
}

static int by_complete(fj_completer *c)
{
    fj_completer_complete(fj_completer_root(c), NULL);
    return FJ_OK;
}

static int by_failing(fj_completer *c)
{
    fj_completer_fail(c, 12);
    return FJ_OK;
}

static int by_code(fj_completer *c)
{
    (void)c;
    return 12;
}

FJ_TEST(all_below_a_root_see_that_it_is_decided, 60)
{
    static int (*const enders[])(fj_completer *) = {by_complete_root, by_complete, by_failing,
                                                    by_code};
    fj_pool *p = fjt_pool(2, 0);

    for (int i = 0; i < 4; i++) {
        fj_completer root, slow, quick;
        ender = enders[i];
        atomic_store(&begun, 0);
        fj_completer_init(&root, NULL, 2, NULL, NULL, NULL);
        fj_completer_init(&slow, &root, 0, until_not_wanted, NULL, NULL);
        fj_completer_init(&quick, &root, 0, ends_it, NULL, NULL);
        CHECK_EQ(fj_completer_submit(p, &slow), FJ_OK);
        CHECK_EQ(fj_completer_submit(p, &quick), FJ_OK);
        CHECK_EQ(fj_completer_join(&root), i < 2 ? FJ_OK : 12);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&told_so), i + 1);
    }
    fjt_destroy(p);
}

static int ends_its_own(fj_task *t)
{
    fj_completer_complete_root((fj_completer *)t);
    CHECK(!fj_is_cancelled());
    return FJ_OK;
}

FJ_TEST(body_of_a_root_that_completes_it_goes_on, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_completer root;

    fj_completer_init(&root, NULL, 0, ends_its_own, NULL, NULL);
    CHECK_EQ(fj_completer_invoke(p, &root), FJ_OK);
    fjt_destroy(p);
}

/* ---- Helping --------------------------------------------------------------------------------- */

struct child {
    fj_completer c;
    int *runs;
};

static int child_run(fj_task *t)
{
    struct child *c = (struct child *)t;

    ++*c->runs;
    fj_completer_try_complete(&c->c);
    return FJ_OK;
}

#define CHILDREN 5

static void help_with_some(void *arg)
{
    fj_completer root, other;
    struct child child[CHILDREN], stranger;
    int runs = 0, strange = 0;

    (void)arg;
    fj_completer_init(&other, NULL, 0, NULL, NULL, NULL);
    fj_completer_init(&root, NULL, 0, NULL, NULL, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        fj_completer_init(&child[i].c, &root, 0, child_run, NULL, NULL);
        child[i].runs = &runs;
    }
    fj_completer_init(&stranger.c, &other, 0, child_run, NULL, NULL);
    stranger.runs = &strange;
    CHECK_EQ(fj_completer_fork_all(&root, child, CHILDREN, sizeof child[0]), FJ_OK);
    CHECK_EQ(fj_completer_fork(&stranger.c), FJ_OK);

    CHECK_EQ(fj_completer_help(&root, 0), 0);
    CHECK_EQ(runs, 0);
    CHECK_EQ(fj_completer_help(&root, 2), 2);
    CHECK_EQ(runs, 2);
    CHECK_EQ(fj_completer_help(&root, 100), CHILDREN - 2);
    CHECK_EQ(strange, 0);
    CHECK_EQ(fj_completer_help(&root, 100), 0);
    CHECK_EQ(fj_completer_join(&root), FJ_OK);
    CHECK_EQ(fj_completer_join(&other), FJ_OK);
    CHECK_EQ(strange, 1);
    for (int i = 0; i < CHILDREN; i++) fj_future_fini(&child[i].c.future);
    fj_future_fini(&stranger.c.future);
}

FJ_TEST(help_runs_as_many_as_asked_of_its_root_and_no_stranger, 30)
{
    fj_pool *p = fjt_pool(1, 0);

    inside(p, help_with_some, NULL);
    fjt_destroy(p);
}

FJ_TEST(outside_a_pool_nobody_helps, 30)
{
    fj_completer root;

    fj_completer_init(&root, NULL, 1, NULL, NULL, NULL);
    CHECK_EQ(fj_completer_help(&root, 10), 0);
}

/* ---- Invalid arguments ----------------------------------------------------------------------- */

FJ_TEST(completers_that_are_none_are_refused, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_completer root;
    struct child child[2];

    fj_completer_init(&root, NULL, 0, NULL, NULL, NULL);
    CHECK_EQ(fj_completer_fork(NULL), FJ_EINVAL);
    CHECK_EQ(fj_completer_submit(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_completer_submit(p, &root), FJ_EINVAL); /* it has no body */
    CHECK_EQ(fj_completer_run(NULL), FJ_EINVAL);
    CHECK_EQ(fj_completer_invoke(p, NULL), FJ_EINVAL);
    CHECK_EQ(fj_completer_join(NULL), FJ_EINVAL);
    CHECK_EQ(fj_completer_fork_all(NULL, child, 2, sizeof child[0]), FJ_EINVAL);
    CHECK_EQ(fj_completer_fork_all(&root, NULL, 2, sizeof child[0]), FJ_EINVAL);
    CHECK_EQ(fj_completer_fork_all(&root, child, 0, sizeof child[0]), FJ_EINVAL);
    CHECK_EQ(fj_completer_fork_all(&root, child, (size_t)1 << 40, sizeof child[0]), FJ_EINVAL);
    CHECK_EQ(fj_completer_fork_all(&root, child, 2, 8), FJ_EINVAL);
    fjt_destroy(p);
}
