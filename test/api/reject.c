/* SPDX-License-Identifier: MIT */
/*
 * reject.c - submissions that a pool refuses, and tasks that it cancels when it is stopped
 */
#include <pthread.h>
#include <string.h>

#include "inside.h"

struct leaf {
    fj_task task;
    int code;
    atomic_int runs;
};

static int leaf_run(fj_task *t)
{
    struct leaf *l = (struct leaf *)t;

    atomic_fetch_add(&l->runs, 1);
    return l->code;
}

static void leaf_init(struct leaf *l, int code)
{
    memset(l, 0, sizeof *l);
    fj_task_init(&l->task, leaf_run);
    l->code = code;
}

/* hold() keeps a worker busy until let_go() is called. */
static atomic_int begun, may_end;

static int held_run(fj_task *t)
{
    (void)t;
    atomic_store(&begun, 1);
    until(&may_end);
    return FJ_OK;
}

static void hold(fj_pool *pool, fj_task *t)
{
    atomic_store(&begun, 0);
    atomic_store(&may_end, 0);
    fj_task_init(t, held_run);
    CHECK_EQ(fj_submit(pool, t), FJ_OK);
    until(&begun);
}

static void let_go(fj_task *t)
{
    atomic_store(&may_end, 1);
    CHECK_EQ(fj_join(t), FJ_OK);
}

static int (*const queueing[])(fj_pool *, fj_task *) = {fj_submit, fj_submit_external,
                                                        fj_submit_lazy};

static atomic_int actions;

static int count_action(void *arg)
{
    atomic_fetch_add(&actions, (int)(intptr_t)arg);
    return FJ_OK;
}

/* ---- Refused submissions --------------------------------------------------------------------- */

FJ_TEST(submitting_nothing_is_refused, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_task none;

    memset(&none, 0, sizeof none);
    CHECK_EQ(fj_execute(pool, NULL, NULL), FJ_EINVAL);
    for (int form = 0; form < 3; form++) {
        CHECK_EQ(queueing[form](pool, NULL), FJ_EINVAL);
        CHECK_EQ(queueing[form](pool, &none), FJ_EINVAL);
        CHECK_EQ(queueing[form](NULL, NULL), FJ_EINVAL);
    }
    CHECK_EQ(fj_invoke(pool, NULL), FJ_EINVAL);
    CHECK_EQ(fj_invoke(pool, &none), FJ_EINVAL);
    CHECK_EQ(fj_invoke_mode(NULL, NULL, FJ_CALLER_HELPS), FJ_EINVAL);
    CHECK_EQ(fj_pool_thread_count(pool), 0);
    fjt_destroy(pool);
}

static void all_rejected(fj_pool *pool)
{
    struct leaf l;

    for (int i = 0; i < 3; i++) {
        leaf_init(&l, 0);
        for (int form = 0; form < 3; form++) CHECK_EQ(queueing[form](pool, &l.task), FJ_EREJECTED);
        CHECK_EQ(fj_execute(pool, count_action, (void *)(intptr_t)1), FJ_EREJECTED);
        CHECK_EQ(fj_invoke(pool, &l.task), FJ_EREJECTED);
        CHECK_EQ(fj_invoke_mode(pool, &l.task, FJ_CALLER_HELPS), FJ_EREJECTED);
        CHECK_EQ(fj_invoke_mode(pool, &l.task, FJ_CALLER_BLOCKS), FJ_EREJECTED);
        CHECK_EQ(atomic_load(&l.runs), 0);
    }
}

static void *rejected_thread(void *pool)
{
    all_rejected(pool);
    return NULL;
}

static void rejected_inside(void *pool)
{
    all_rejected(pool);
}

FJ_TEST(pool_that_is_shut_down_rejects_everything_from_outside, 20)
{
    for (int now = 0; now < 2; now++)
        for (unsigned flags = 0; flags < 8; flags++) {
            fj_pool *pool = fjt_pool(1, flags), *other = fjt_pool(1, 0);
            fj_task first;
            pthread_t thread;
            hold(pool, &first);
            atomic_store(&actions, 0);
            CHECK_EQ(fj_execute(pool, count_action, (void *)(intptr_t)0), FJ_OK);
            CHECK_EQ(now ? fj_pool_shutdown_now(pool) : fj_pool_shutdown(pool), FJ_OK);
            all_rejected(pool); /* by a thread that has submitted before */
            CHECK_EQ(pthread_create(&thread, NULL, rejected_thread, pool), 0);
            pthread_join(thread, NULL);
            inside(other, rejected_inside, pool);
            let_go(&first);
            CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
            all_rejected(pool);
            fjt_destroy(pool);
            fjt_destroy(other);
            CHECK_EQ(atomic_load(&actions), 0);
        }
}

static struct leaf late[3];

static void after_shutdown(void *arg)
{
    fj_pool *pool = arg;
    struct leaf l;

    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    for (int i = 0; i < 2; i++) {
        leaf_init(&late[i], 0);
        CHECK_EQ(queueing[i * 2](pool, &late[i].task), FJ_OK);
        leaf_init(&l, 7);
        CHECK_EQ(queueing[i * 2](pool, &l.task), FJ_OK);
        CHECK_EQ(fj_join(&l.task), 7);
    }
    CHECK_EQ(fj_submit_external(pool, &late[2].task), FJ_EREJECTED);
    CHECK_EQ(fj_execute(pool, count_action, (void *)(intptr_t)1), FJ_OK);
    CHECK_EQ(fj_invoke(pool, &l.task), 7);
    fj_fork(&l.task);
    CHECK_EQ(fj_join(&l.task), 7);
}

FJ_TEST(workers_go_on_submitting_to_a_pool_that_is_shut_down, 20)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(2, flags);
        atomic_store(&actions, 0);
        leaf_init(&late[2], 0);
        inside(pool, after_shutdown, pool);
        CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&actions), 1);
        CHECK_EQ(atomic_load(&late[0].runs), 1);
        CHECK_EQ(atomic_load(&late[1].runs), 1);
        CHECK_EQ(atomic_load(&late[2].runs), 0);
        fjt_destroy(pool);
    }
}

/* ---- Cancelled tasks ------------------------------------------------------------------------- */

FJ_TEST(stopped_pool_cancels_what_is_queued, 20)
{
    for (unsigned flags = 0; flags < 2; flags++) {
        fj_pool *pool = fjt_pool(1, flags);
        struct leaf l[50];
        fj_task first;
        hold(pool, &first);
        atomic_store(&actions, 0);
        for (int i = 0; i < 50; i++) {
            leaf_init(&l[i], 3);
            CHECK_EQ(queueing[i % 3](pool, &l[i].task), FJ_OK);
            CHECK_EQ(fj_execute(pool, count_action, (void *)(intptr_t)1), FJ_OK);
        }
        CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
        for (int i = 0; i < 50; i++) {
            CHECK_EQ(fj_join(&l[i].task), FJ_ECANCELED);
            CHECK_EQ(atomic_load(&l[i].runs), 0);
        }
        let_go(&first);
        CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&actions), 0);
        fjt_destroy(pool);
    }
}

/* Tasks that a worker has forked and submitted. Another thread or that worker stops the pool. */
struct stop {
    fj_pool *pool;
    bool itself;
};

static struct leaf nobodys[20];

static void forks_and_stop(void *arg)
{
    struct stop *s = arg;
    struct leaf forked[20], submitted[20];

    for (int i = 0; i < 20; i++) {
        leaf_init(&forked[i], 5);
        leaf_init(&submitted[i], 6);
        leaf_init(&nobodys[i], 7);
        fj_fork(&forked[i].task);
        CHECK_EQ(fj_submit(s->pool, &submitted[i].task), FJ_OK);
        CHECK_EQ(fj_submit(s->pool, &nobodys[i].task), FJ_OK);
        CHECK_EQ(fj_execute(s->pool, count_action, (void *)(intptr_t)1), FJ_OK);
    }
    atomic_store(&begun, 1);
    if (s->itself)
        CHECK_EQ(fj_pool_shutdown_now(s->pool), FJ_OK);
    else
        until(&may_end);
    CHECK(fj_is_stopping());
    for (int i = 0; i < 20; i++) {
        int a = fj_join(&forked[i].task), b = fj_join(&submitted[19 - i].task);
        CHECK(a == 5 || a == FJ_ECANCELED);
        CHECK(b == 6 || b == FJ_ECANCELED);
        CHECK_EQ(atomic_load(&forked[i].runs), a == 5);
        CHECK_EQ(atomic_load(&submitted[19 - i].runs), b == 6);
    }
}

FJ_TEST(stopped_pool_cancels_what_workers_have_queued, 20)
{
    for (int round = 0; round < 8; round++) {
        fj_pool *pool = fjt_pool(round / 4 + 1, round & 2 ? FJ_POOL_FIFO : 0);
        struct stop s = {pool, round % 2 == 0};
        struct inside i = {.body = forks_and_stop, .arg = &s};
        atomic_store(&begun, 0);
        atomic_store(&may_end, 0);
        fj_task_init(&i.task, inside_run);
        CHECK_EQ(fj_submit(pool, &i.task), FJ_OK);
        until(&begun);
        if (!s.itself) CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
        atomic_store(&may_end, 1);
        CHECK_EQ(fj_join(&i.task), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
        for (int k = 0; k < 20; k++) {
            int code = fj_join(&nobodys[k].task);
            CHECK(code == 7 || code == FJ_ECANCELED);
            CHECK_EQ(atomic_load(&nobodys[k].runs), code == 7);
        }
        fjt_destroy(pool);
    }
}
