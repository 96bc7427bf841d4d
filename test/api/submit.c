/* SPDX-License-Identifier: MIT */
/*
 * submit.c - submissions to a pool: from outside, from its own workers, from another pool
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

struct leaf {
    fj_task task;
    fj_pool *pool; /* where it ran */
    pthread_t thread;
    int code;
    atomic_int runs;
};

static int leaf_run(fj_task *t)
{
    struct leaf *l = (struct leaf *)t;

    l->pool = fj_current_pool();
    l->thread = pthread_self();
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

static void drain(fj_pool *pool)
{
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
}

/* ---- From outside --------------------------------------------------------------------------- */

static void submit_outside(unsigned flags)
{
    fj_pool *pool = fjt_pool(2, flags);
    struct leaf l;

    for (int i = 1; i <= 100; i++)
        for (int form = 0; form < 2; form++) {
            leaf_init(&l, i);
            CHECK_EQ(queueing[form](pool, &l.task), FJ_OK);
            CHECK_EQ(i % 2 == 0 ? fj_join(&l.task) : fj_join_stolen(&l.task), i);
            CHECK_EQ(atomic_load(&l.runs), 1);
            CHECK(l.pool == pool);
        }
    fjt_destroy(pool);
}

FJ_TEST(submission_from_outside_runs_in_the_pool, 20)
{
    for (unsigned flags = 0; flags < 8; flags++) submit_outside(flags);
}

FJ_TEST(invoke_from_outside_returns_the_code, 20)
{
    static const enum fj_caller callers[] = {FJ_CALLER_DEFAULT, FJ_CALLER_HELPS, FJ_CALLER_BLOCKS};

    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(2, flags);
        struct leaf l;
        for (int i = 0; i < 50; i++) {
            leaf_init(&l, i);
            CHECK_EQ(fj_invoke(pool, &l.task), i);
            CHECK(l.pool == pool);
            for (int k = 0; k < 3; k++) CHECK_EQ(fj_invoke_mode(pool, &l.task, callers[k]), i);
            CHECK_EQ(atomic_load(&l.runs), 4);
            CHECK(l.pool == pool);
        }
        fjt_destroy(pool);
    }
}

FJ_TEST(caller_that_helps_runs_it_and_one_that_blocks_does_not, 10)
{
    pthread_t me = pthread_self();
    struct leaf l;

    for (unsigned flags = 0; flags <= FJ_POOL_CALLER_HELPS; flags += FJ_POOL_CALLER_HELPS) {
        fj_pool *pool = fjt_pool(2, flags);
        leaf_init(&l, 0);
        CHECK_EQ(fj_invoke_mode(pool, &l.task, FJ_CALLER_HELPS), FJ_OK);
        CHECK(pthread_equal(l.thread, me));
        CHECK_EQ(fj_invoke_mode(pool, &l.task, FJ_CALLER_BLOCKS), FJ_OK);
        CHECK(!pthread_equal(l.thread, me));
        CHECK_EQ(fj_invoke(pool, &l.task), FJ_OK);
        CHECK_EQ(pthread_equal(l.thread, me) != 0, flags != 0);
        CHECK(fj_current_pool() == NULL);
        fjt_destroy(pool);
    }
    leaf_init(&l, 0);
    CHECK_EQ(fj_invoke(NULL, &l.task), FJ_OK);
    CHECK(pthread_equal(l.thread, me));
    CHECK(l.pool == fj_common_pool());
}

static atomic_int actions;

static int count_action(void *arg)
{
    atomic_fetch_add(&actions, (int)(intptr_t)arg);
    return FJ_OK;
}

FJ_TEST(every_action_is_run, 30)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(2, flags);
        int n = (int)fjt_rounds(20000);
        atomic_store(&actions, 0);
        for (int i = 0; i < n; i++)
            CHECK_EQ(fj_execute(pool, count_action, (void *)(intptr_t)(i % 3)), FJ_OK);
        fjt_destroy(pool);
        CHECK_EQ(atomic_load(&actions), n / 3 * 3 + (n % 3 == 2 ? 1 : 0));
    }
}

/* One worker begins the submissions of one thread in order, oldest first. */
static atomic_int next_in_order;

static int order_action(void *arg)
{
    CHECK_EQ(atomic_fetch_add(&next_in_order, 1), (int)(intptr_t)arg);
    return FJ_OK;
}

static int order_run(fj_task *t)
{
    struct leaf *l = (struct leaf *)t;

    CHECK_EQ(atomic_fetch_add(&next_in_order, 1), l->code);
    return FJ_OK;
}

FJ_TEST(submissions_of_one_thread_begin_in_order, 20)
{
    static struct leaf l[1000];

    for (unsigned flags = 0; flags < 2; flags++) {
        fj_pool *pool = fjt_pool(1, flags);
        fj_task first;
        hold(pool, &first);
        atomic_store(&next_in_order, 0);
        for (int i = 0; i < 1000; i++) {
            leaf_init(&l[i], i);
            fj_task_init(&l[i].task, order_run);
            if (i % 3 == 0)
                CHECK_EQ(fj_execute(pool, order_action, (void *)(intptr_t)i), FJ_OK);
            else
                CHECK_EQ(queueing[i % 3 - 1](pool, &l[i].task), FJ_OK);
        }
        let_go(&first);
        drain(pool);
        CHECK_EQ(atomic_load(&next_in_order), 1000);
        fjt_destroy(pool);
    }
}

FJ_TEST(thousands_of_submissions_wait_for_a_worker, 20)
{
    enum { N = 20000 };
    struct leaf *l = malloc(N * sizeof *l);
    fj_pool *pool = fjt_pool(1, 0);
    fj_task first;

    hold(pool, &first);
    for (int i = 0; i < N; i++) {
        leaf_init(&l[i], i);
        CHECK_EQ(fj_submit(pool, &l[i].task), FJ_OK);
    }
    CHECK_EQ(fj_pool_queued_submission_count(pool), N);
    let_go(&first);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(fj_join(&l[i].task), i);
        CHECK_EQ(atomic_load(&l[i].runs), 1);
    }
    fjt_destroy(pool);
    free(l);
}

FJ_TEST(submission_that_waits_can_be_taken_back, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct leaf l[20];
    fj_task first;

    hold(pool, &first);
    for (int i = 0; i < 20; i++) {
        leaf_init(&l[i], 0);
        CHECK_EQ(queueing[i % 3](pool, &l[i].task), FJ_OK);
    }
    for (int i = 0; i < 20; i += 2) CHECK_EQ(fj_unfork(&l[(i * 7) % 20].task), 1);
    CHECK_EQ(fj_unfork(&first), 0);
    let_go(&first);
    drain(pool);
    for (int i = 0; i < 20; i++) CHECK_EQ(atomic_load(&l[i].runs), i % 2);
    fjt_destroy(pool);
}

/* ---- Lazy submissions ------------------------------------------------------------------------ */

FJ_TEST(lazy_submission_is_run_when_a_worker_comes_by, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct leaf lazy, other;

    leaf_init(&lazy, 5);
    leaf_init(&other, 6);
    CHECK_EQ(fj_submit_lazy(pool, &lazy.task), FJ_OK);
    fjt_sleep_us(5000);
    CHECK_EQ(fj_pool_thread_count(pool), 0);
    CHECK_EQ(atomic_load(&lazy.runs), 0);
    CHECK_EQ(fj_submit(pool, &other.task), FJ_OK);
    CHECK_EQ(fj_join(&other.task), 6);
    CHECK_EQ(fj_join(&lazy.task), 5);
    fjt_destroy(pool);
}

FJ_TEST(lazy_submission_is_run_by_its_join, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(1, flags);
        struct leaf l;
        leaf_init(&l, 5);
        CHECK_EQ(fj_submit_lazy(pool, &l.task), FJ_OK);
        CHECK_EQ(fj_join(&l.task), 5);
        CHECK_EQ(atomic_load(&l.runs), 1);
        fjt_destroy(pool);
    }
}

FJ_TEST(lazy_submissions_are_run_before_the_pool_ends, 10)
{
    for (int n = 1; n <= 3; n++) {
        fj_pool *pool = fjt_pool(n, 0);
        struct leaf l[10];
        for (int i = 0; i < 10; i++) {
            leaf_init(&l[i], 0);
            CHECK_EQ(fj_submit_lazy(pool, &l[i].task), FJ_OK);
        }
        CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
        for (int i = 0; i < 10; i++) CHECK_EQ(atomic_load(&l[i].runs), 1);
        fjt_destroy(pool);
    }
}

/* ---- From a worker of the pool --------------------------------------------------------------- */

static void own_forms(void *arg)
{
    fj_pool *pool = arg;
    struct leaf l[3];

    for (int i = 0; i < 200; i++) {
        for (int form = 0; form < 3; form++) {
            leaf_init(&l[form], i + form);
            CHECK_EQ(queueing[form](pool, &l[form].task), FJ_OK);
        }
        for (int k = 0; k < 3; k++) {
            struct leaf *it = &l[(k + i) % 3];
            CHECK_EQ(i % 2 == 0 ? fj_join(&it->task) : fj_join_stolen(&it->task), it->code);
            CHECK_EQ(atomic_load(&it->runs), 1);
            CHECK(it->pool == pool);
        }
    }
}

FJ_TEST(worker_joins_what_it_submitted_to_its_own_pool, 20)
{
    for (unsigned flags = 0; flags < 8; flags++)
        for (int n = 1; n <= 3; n++) {
            fj_pool *pool = fjt_pool(n, flags);
            inside(pool, own_forms, pool);
            fjt_destroy(pool);
        }
}

static void own_places(void *arg)
{
    fj_pool *pool = arg;
    static struct leaf l[3];

    for (int form = 0; form < 3; form++) leaf_init(&l[form], 0);
    CHECK_EQ(fj_submit(pool, &l[0].task), FJ_OK);
    CHECK_EQ(fj_submit_lazy(pool, &l[1].task), FJ_OK);
    CHECK_EQ(fj_pool_queued_task_count(pool), 2);
    CHECK_EQ(fj_pool_queued_submission_count(pool), 0);
    CHECK_EQ(fj_submit_external(pool, &l[2].task), FJ_OK);
    CHECK_EQ(fj_pool_queued_submission_count(pool), 1);
    CHECK_EQ(fj_execute(pool, count_action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_queued_task_count(pool), 3);
}

FJ_TEST(worker_submits_into_its_own_queue_unless_externally, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    inside(pool, own_places, pool);
    drain(pool);
    fjt_destroy(pool);
}

static void own_invoke(void *arg)
{
    fj_pool *pool = arg;
    struct leaf l;

    for (int i = 0; i < 100; i++) {
        leaf_init(&l, i);
        CHECK_EQ(fj_invoke(pool, &l.task), i);
        CHECK(pthread_equal(l.thread, pthread_self()));
        CHECK_EQ(fj_invoke_mode(pool, &l.task, FJ_CALLER_BLOCKS), i);
        CHECK_EQ(fj_invoke_mode(pool, &l.task, FJ_CALLER_HELPS), i);
        CHECK_EQ(atomic_load(&l.runs), 3);
    }
}

FJ_TEST(worker_invokes_at_once_in_its_own_pool, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(1, flags);
        inside(pool, own_invoke, pool);
        fjt_destroy(pool);
    }
}

/* Each action queues the next one. The worker must still run submissions from outside. */
static atomic_int endless;

static int endless_action(void *arg)
{
    if (atomic_load(&endless)) CHECK_EQ(fj_execute(arg, endless_action, arg), FJ_OK);
    return FJ_OK;
}

FJ_TEST(endless_tasks_of_a_worker_do_not_shut_out_submissions, 20)
{
    for (unsigned flags = 0; flags < 2; flags++) {
        fj_pool *pool = fjt_pool(1, flags);
        struct leaf l;
        atomic_store(&endless, 1);
        CHECK_EQ(fj_execute(pool, endless_action, pool), FJ_OK);
        for (int i = 0; i < 50; i++) {
            leaf_init(&l, i);
            CHECK_EQ(fj_invoke(pool, &l.task), i);
        }
        atomic_store(&endless, 0);
        drain(pool);
        fjt_destroy(pool);
    }
}

/* ---- From a worker of another pool ---------------------------------------------------------- */

static void foreign_forms(void *arg)
{
    fj_pool *pool = arg;
    struct leaf l[3];

    CHECK(fj_current_pool() != pool);
    for (int i = 0; i < 100; i++) {
        for (int form = 0; form < 2; form++) {
            leaf_init(&l[form], i + form);
            CHECK_EQ(queueing[form](pool, &l[form].task), FJ_OK);
        }
        for (int form = 0; form < 2; form++) {
            CHECK_EQ(fj_join(&l[form].task), i + form);
            CHECK(l[form].pool == pool);
        }
        leaf_init(&l[2], i);
        CHECK_EQ(fj_invoke(pool, &l[2].task), i);
        CHECK_EQ(fj_invoke_mode(pool, &l[2].task, FJ_CALLER_HELPS), i);
        CHECK_EQ(fj_invoke_mode(pool, &l[2].task, FJ_CALLER_BLOCKS), i);
        CHECK(l[2].pool == pool);
        CHECK_EQ(atomic_load(&l[2].runs), 3);
        CHECK_EQ(fj_execute(pool, count_action, (void *)(intptr_t)1), FJ_OK);
    }
}

FJ_TEST(worker_of_another_pool_submits_like_one_from_outside, 20)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *here = fjt_pool(1, 0), *there = fjt_pool(1, flags);
        atomic_store(&actions, 0);
        inside(here, foreign_forms, there);
        fjt_destroy(here);
        fjt_destroy(there);
        CHECK_EQ(atomic_load(&actions), 100);
    }
}

FJ_TEST(worker_invokes_in_the_common_pool, 20)
{
    fj_pool *here = fjt_pool(1, 0);

    atomic_store(&actions, 0);
    inside(here, foreign_forms, fj_common_pool());
    fjt_destroy(here);
    drain(fj_common_pool());
    CHECK_EQ(atomic_load(&actions), 100);
}

/* Two pools of one worker each wait for each other, 50 levels deep. */
struct ball {
    fj_task task;
    fj_pool *here, *there;
    int depth;
    bool forks;
};

static int ball_run(fj_task *t)
{
    struct ball *b = (struct ball *)t, next = {.here = b->there, .there = b->here};

    CHECK(fj_current_pool() == b->here);
    if (b->depth == 0) return 1;
    next.depth = b->depth - 1;
    next.forks = b->forks;
    fj_task_init(&next.task, ball_run);
    if (!b->forks) return fj_invoke(b->there, &next.task) + 1;
    CHECK_EQ(fj_submit(b->there, &next.task), FJ_OK);
    return fj_join(&next.task) + 1;
}

FJ_TEST(two_small_pools_wait_for_each_other_fifty_deep, 30)
{
    for (int round = 0; round < 6; round++) {
        fj_pool *a = fjt_pool(1, round % 2 == 0 ? 0 : FJ_POOL_FIFO), *b = fjt_pool(1, 0);
        struct ball ball = {.here = a, .there = b, .depth = 50, .forks = round % 3 == 0};
        fj_task_init(&ball.task, ball_run);
        CHECK_EQ(fj_invoke(a, &ball.task), 51);
        CHECK_EQ(fj_invoke(a, &ball.task), 51);
        fjt_destroy(a);
        fjt_destroy(b);
    }
}

/* ---- Errors of actions ---------------------------------------------------------------------- */

static atomic_int errors, error_sum;

static void on_error(fj_pool *pool, int code, void *arg)
{
    CHECK(fj_current_pool() == pool);
    CHECK(arg == &errors);
    atomic_fetch_add(&errors, 1);
    atomic_fetch_add(&error_sum, code);
}

static int failing_action(void *arg)
{
    return (int)(intptr_t)arg;
}

static void fail_inside(void *arg)
{
    for (int i = 0; i < 10; i++)
        CHECK_EQ(fj_execute(arg, failing_action, (void *)(intptr_t)i), FJ_OK);
}

FJ_TEST(code_of_an_action_goes_to_on_error, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool_options o = {0};
        o.parallelism = 2;
        o.flags = flags;
        o.on_error = on_error;
        o.arg = &errors;
        fj_pool *pool = fjt_pool_with(&o);
        atomic_store(&errors, 0);
        atomic_store(&error_sum, 0);
        fail_inside(pool);
        inside(pool, fail_inside, pool);
        fjt_destroy(pool);
        CHECK_EQ(atomic_load(&errors), 18);
        CHECK_EQ(atomic_load(&error_sum), 90);
    }
}

FJ_TEST(code_of_a_task_does_not_go_to_on_error, 10)
{
    fj_pool_options o = {0};
    struct leaf l;

    o.parallelism = 1;
    o.on_error = on_error;
    o.arg = &errors;
    fj_pool *pool = fjt_pool_with(&o);
    leaf_init(&l, 9);
    CHECK_EQ(fj_invoke(pool, &l.task), 9);
    CHECK_EQ(fj_submit(pool, &l.task), FJ_OK);
    CHECK_EQ(fj_join(&l.task), 9);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&errors), 0);
}

/* ---- Many submitters ------------------------------------------------------------------------- */

static void *submitter(void *pool)
{
    struct leaf *l = calloc(16, sizeof *l);

    CHECK(l != NULL);
    for (long round = fjt_rounds(500); round-- > 0;) {
        for (int i = 0; i < 16; i++) {
            leaf_init(&l[i], i);
            if (i % 4 == 3)
                CHECK_EQ(fj_execute(pool, count_action, (void *)(intptr_t)1), FJ_OK);
            else
                CHECK_EQ(queueing[i % 2](pool, &l[i].task), FJ_OK);
        }
        for (int i = 0; i < 16; i++)
            if (i % 4 != 3) {
                CHECK_EQ(fj_join(&l[i].task), i);
                CHECK_EQ(atomic_load(&l[i].runs), 1);
            }
    }
    free(l);
    return NULL;
}

FJ_TEST(many_threads_submit_at_once, 60)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(2, flags);
        pthread_t threads[8];
        atomic_store(&actions, 0);
        for (int i = 0; i < 8; i++) CHECK_EQ(pthread_create(&threads[i], NULL, submitter, pool), 0);
        for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
        fjt_destroy(pool);
        CHECK_EQ(atomic_load(&actions), 8 * 4 * fjt_rounds(500));
    }
}
