/* SPDX-License-Identifier: MIT */
/*
 * taken.c - tasks that a thread has taken out of the queues, to run or cancel them itself
 */
#include <malloc.h>
#include <pthread.h>

#include "inside.h"

/* A pool whose only worker stays in a body of the test, so that no worker takes a task. */
struct held {
    fj_pool *pool;
    atomic_int begun, go_on;
    atomic_int runs;
    int code;
};

static void wait_for(atomic_int *flag)
{
    while (!atomic_load(flag)) fjt_sleep_us(20);
}

static int held_count(void *arg)
{
    struct held *h = arg;

    atomic_fetch_add(&h->runs, 1);
    return FJ_OK;
}

static int held_still(void *arg)
{
    struct held *h = arg;

    atomic_store(&h->begun, 1);
    wait_for(&h->go_on);
    return FJ_OK;
}

FJ_TEST(drained_actions_run_in_the_thread_that_drained_them, 30)
{
    struct held h = {.pool = fjt_pool(1, 0)};
    fj_taken taken[4] = {{{0}}};

    CHECK_EQ(fj_execute(h.pool, held_still, &h), FJ_OK);
    wait_for(&h.begun);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_execute(h.pool, held_count, &h), FJ_OK);
    CHECK_EQ(fj_pool_drain(h.pool, taken, 2), 2);
    CHECK_EQ(fj_pool_drain(h.pool, taken + 2, 2), 1);
    CHECK_EQ(atomic_load(&h.runs), 0);
    for (int i = 0; i < 3; i++) {
        CHECK(fj_taken_task(&taken[i]) == NULL);
        fj_taken_run(&taken[i]);
        CHECK_EQ(atomic_load(&h.runs), i + 1);
    }
    atomic_store(&h.go_on, 1);
    fjt_destroy(h.pool);
}

FJ_TEST(what_was_taken_is_run_once_or_cancelled_once, 30)
{
    struct held h = {.pool = fjt_pool(1, 0)};
    fj_taken taken[2] = {{{0}}};

    CHECK_EQ(fj_execute(h.pool, held_still, &h), FJ_OK);
    wait_for(&h.begun);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(h.pool, held_count, &h), FJ_OK);
    CHECK_EQ(fj_pool_drain(h.pool, taken, 2), 2);
    fj_taken_run(&taken[0]);
    fj_taken_run(&taken[0]);
    fj_taken_cancel(&taken[0]);
    CHECK_EQ(atomic_load(&h.runs), 1);
    fj_taken_cancel(&taken[1]);
    fj_taken_run(&taken[1]);
    CHECK_EQ(atomic_load(&h.runs), 1);
    atomic_store(&h.go_on, 1);
    fjt_destroy(h.pool);
}

/* ---- From a worker's queue, by a thread outside the pool ------------------------------------- */

struct forked {
    fj_task task;
    int code;
};

static int forked_run(fj_task *t)
{
    CHECK(fj_current_pool() == NULL); /* otherwise the worker has run it */
    return ((struct forked *)t)->code;
}

static void fork_and_wait(void *arg)
{
    struct held *h = arg;
    struct forked f = {.code = 17};

    fj_task_init(&f.task, forked_run);
    fj_fork(&f.task);
    atomic_store(&h->begun, 1);
    wait_for(&h->go_on);
    h->code = fj_join(&f.task);
}

FJ_TASK(int, typed_add, int, n)
{
    (void)fj_w, (void)fj_p;
    CHECK(fj_current_pool() == NULL);
    return n + 7;
}

FJ_TASK(int, typed_root, struct held *, h)
{
    typed_add_task a;

    typed_add_fork(FJ, &a, 35);
    CHECK(fj_peek_local() == NULL);
    atomic_store(&h->begun, 1);
    wait_for(&h->go_on);
    return typed_add_join(FJ, &a);
}

static void typed_fork_and_wait(void *arg)
{
    struct held *h = arg;

    CHECK_EQ(typed_root_invoke(h->pool, &h->code, h), FJ_OK);
}

struct side {
    struct held *held;
    void (*body)(void *arg);
};

static void *side_run(void *arg)
{
    struct side *s = arg;

    inside(s->held->pool, s->body, s->held);
    return NULL;
}

static int take_what_it_forks(void (*body)(void *arg), void (*end)(fj_taken *taken))
{
    struct held h = {.pool = fjt_pool(1, 0)};
    struct side s = {&h, body};
    fj_taken taken = {{0}};
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, side_run, &s), 0);
    wait_for(&h.begun);
    CHECK_EQ(fj_pool_drain(h.pool, &taken, 1), 1);
    end(&taken);
    atomic_store(&h.go_on, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    fjt_destroy(h.pool);
    return h.code;
}

FJ_TEST(drained_fork_gives_its_code_to_the_join, 30)
{
    CHECK_EQ(take_what_it_forks(fork_and_wait, fj_taken_run), 17);
}

FJ_TEST(drained_typed_fork_gives_its_result_to_the_join, 30)
{
    CHECK_EQ(take_what_it_forks(typed_fork_and_wait, fj_taken_run), 42);
}

FJ_TEST(join_of_a_fork_that_was_taken_and_cancelled_says_so, 30)
{
    CHECK_EQ(take_what_it_forks(fork_and_wait, fj_taken_cancel), FJ_ECANCELED);
}

/* A typed task has no code that could report the cancellation, so it is run instead. */
FJ_TEST(typed_fork_that_is_cancelled_is_run_all_the_same, 30)
{
    CHECK_EQ(take_what_it_forks(typed_fork_and_wait, fj_taken_cancel), 42);
}

/* ---- Typed tasks run by threads that exit ---------------------------------------------------- */

FJ_TASK(long, bare_fib, int, n)
{
    if (n < 2) return n;
    bare_fib_task a, b;
    bare_fib_fork(FJ, &a, n - 1);
    bare_fib_fork(FJ, &b, n - 2);
    long y = bare_fib_join(FJ, &b);
    return bare_fib_join(FJ, &a) + y;
}

static void *bare_invoke(void *pool)
{
    long r = 0;

    CHECK_EQ(bare_fib_invoke(pool, &r, 12), FJ_OK);
    CHECK_EQ(r, 144);
    return NULL;
}

static void *bare_run(void *taken)
{
    fj_taken_run(taken);
    return NULL;
}

/* Two threads submit one typed task each. A third thread, which is no worker, runs one or both of
 * them and exits. The caller runs what is left. */
static void bare_round(fj_pool *pool, void *(*run)(void *))
{
    pthread_t invokers[2], runner;
    fj_taken taken[2] = {{{0}}};

    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&invokers[i], NULL, bare_invoke, pool), 0);
        while (fj_pool_drain(pool, &taken[i], 1) == 0) fjt_sleep_us(20);
    }
    CHECK_EQ(pthread_create(&runner, NULL, run, taken), 0);
    CHECK_EQ(pthread_join(runner, NULL), 0);
    for (int i = 0; i < 2; i++) {
        fj_taken_run(&taken[i]);
        CHECK_EQ(pthread_join(invokers[i], NULL), 0);
    }
}

/* Checks that memory does not grow. A leak would be at least 2 kB for each thread that exits. */
static void bare_rounds(void *(*run)(void *))
{
    struct held h = {.pool = fjt_pool(1, 0)};
    long n = fjt_rounds(300), warm = n / 10;
    size_t before = 0;

    CHECK_EQ(fj_execute(h.pool, held_still, &h), FJ_OK);
    wait_for(&h.begun);
    for (long i = 0; i < n; i++) {
        if (i == warm) before = mallinfo2().uordblks;
        bare_round(h.pool, run);
    }
    if (!fjt_sanitized()) CHECK(mallinfo2().uordblks <= before + 50000);
    atomic_store(&h.go_on, 1);
    fjt_destroy(h.pool);
}

FJ_TEST(typed_tasks_run_by_threads_that_end_leave_no_memory, 60)
{
    bare_rounds(bare_run);
}

/* Runs other tasks between its own forks and joins. */
FJ_TASK(long, bare_outer, fj_taken *, taken)
{
    bare_fib_task a, b, c;

    bare_fib_fork(FJ, &a, 8);
    bare_fib_fork(FJ, &b, 9);
    long r = bare_fib_join(FJ, &b);
    fj_taken_run(taken);
    bare_fib_fork(FJ, &c, 10);
    fj_taken_run(taken + 1);
    r += bare_fib_call(FJ, 5);
    r += bare_fib_join(FJ, &c);
    return r + bare_fib_join(FJ, &a);
}

static void *bare_run_in_a_body(void *arg)
{
    struct bare_outer_fji_frame frame = {.taken = arg};

    bare_outer_fji_type.run(fji_self, &frame);
    CHECK_EQ(frame.fj_r, 21 + 34 + 55 + 5);
    return NULL;
}

FJ_TEST(typed_tasks_run_inside_each_other_outside_leave_no_memory, 60)
{
    bare_rounds(bare_run_in_a_body);
}

/* ---- Nothing to take, or no place for it ----------------------------------------------------- */

static void poll_into_nothing(void *arg)
{
    struct held *h = arg;

    CHECK_EQ(fj_execute(h->pool, held_count, h), FJ_OK);
    CHECK_EQ(fj_take_local(NULL), 0);
    CHECK_EQ(fj_take_task(NULL), 0);
    CHECK_EQ(fj_take_submission(NULL), 0);
    CHECK_EQ(fj_pool_drain(h->pool, NULL, 1), 0);
}

FJ_TEST(without_a_place_for_it_nothing_is_taken, 30)
{
    struct held h = {.pool = fjt_pool(1, 0)};

    inside(h.pool, poll_into_nothing, &h);
    fjt_destroy(h.pool);
    CHECK_EQ(atomic_load(&h.runs), 1);
}

FJ_TEST(outside_a_pool_there_is_nothing_to_take, 30)
{
    fj_taken taken = {{0}};

    CHECK_EQ(fj_take_local(&taken), 0);
    CHECK_EQ(fj_take_task(&taken), 0);
    CHECK_EQ(fj_take_submission(&taken), 0);
    CHECK_EQ(fj_worker_queued(), 0);
    CHECK_EQ(fj_worker_surplus(), 0);
    CHECK(fj_peek_local() == NULL);
    CHECK(fj_taken_task(NULL) == NULL);
    CHECK_EQ(fj_future_unfork(NULL), 0);
    fj_taken_run(NULL);
    fj_taken_cancel(NULL);
}

static void want_surplus(void *arg)
{
    (void)arg;
    /* Other workers that are about to sleep still count as active for a short time. */
    while (fj_worker_surplus() != -8) fjt_sleep_us(50);
}

FJ_TEST(alone_in_a_wide_pool_a_worker_is_short_of_eight_tasks, 60)
{
    fj_pool *p = fjt_pool(64, 0);

    inside(p, want_surplus, NULL);
    fjt_destroy(p);
}
