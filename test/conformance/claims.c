/* SPDX-License-Identifier: MIT */
/*
 * claims.c - statements of docs/parity.md that no other test checks
 *
 * docs/parity.md compares this library with Java's pool. claims.txt names the tests that check each
 * of its rows, and tools/check-parity checks that every row has a test or a reason why it has none.
 */
#include <forkjoin/block.h>
#include <pthread.h>
#include <string.h>

#include <semaphore.h>
#include <stdlib.h>

#include "api/inside.h"

#define MS 1000000ll

static atomic_int held, go, runs;

/* Occupies a worker until `go` is set. */
static int holds(void *arg)
{
    (void)arg;
    atomic_fetch_add(&held, 1);
    until(&go);
    return FJ_OK;
}

static void hold_one(fj_pool *pool)
{
    atomic_store(&go, 0);
    atomic_store(&held, 0);
    CHECK_EQ(fj_execute(pool, holds, NULL), FJ_OK);
    until(&held);
}

static int counts(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static int leaf_run(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&runs, 1);
    return 5;
}

static fj_pool *pool_of(int workers, int most, int (*allow_saturation)(fj_pool *, void *))
{
    fj_pool_options o = {0};

    o.parallelism = workers;
    o.max_threads = most;
    o.allow_saturation = allow_saturation;
    return fjt_pool_with(&o);
}

/* ---- Limits and construction ----------------------------------------------------------------- */

FJ_TEST(new_pool_has_no_thread_and_the_default_size, 10)
{
    fj_pool_options o = {0};
    fj_pool *pool;

    CHECK_EQ(fj_pool_create(&pool, NULL), FJ_OK);
    CHECK_EQ(fj_pool_thread_count(pool), 0);
    CHECK_EQ(fj_pool_parallelism(pool), fj_available_parallelism());
    fjt_destroy(pool);
    pool = fjt_pool_with(&o); /* parallelism 0: the default */
    CHECK_EQ(fj_pool_parallelism(pool), fj_available_parallelism());
    fjt_destroy(pool);
}

FJ_TEST(only_the_most_threads_are_cut_down_to_the_limit, 10)
{
    fj_pool_options o = {0};
    fj_pool *pool = NULL;

    o.parallelism = 1;
    o.max_threads = FJ_MAX_WORKERS + 1;
    fjt_destroy(fjt_pool_with(&o));
    o.max_threads = 0;
    o.parallelism = FJ_MAX_WORKERS + 1;
    CHECK_EQ(fj_pool_create(&pool, &o), FJ_EINVAL);
    o.parallelism = -1;
    CHECK_EQ(fj_pool_create(&pool, &o), FJ_EINVAL);
    o.parallelism = 2;
    o.keep_alive_ns = -1;
    CHECK_EQ(fj_pool_create(&pool, &o), FJ_EINVAL);
    CHECK_EQ(FJ_MAX_WORKERS, 32767);
    CHECK(pool == NULL);
}

/* The keep-alive time is at least 20 ms, so a worker that has been idle for less is still there. */
FJ_TEST(keep_alive_has_a_floor, 20)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.keep_alive_ns = 1;
    fj_pool *pool = fjt_pool_with(&o);
    CHECK_EQ(fj_execute(pool, counts, NULL), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    int64_t began = fjt_now();
    while (fj_pool_thread_count(pool) != 0) fjt_sleep_us(100);
    CHECK(fjt_now() - began >= 10 * MS);
    fjt_destroy(pool);
}

static int says_no(fj_pool *pool, void *arg)
{
    (void)pool, (void)arg;
    return 0;
}

static int says_yes(fj_pool *pool, void *arg)
{
    (void)pool, (void)arg;
    return 1;
}

static int not_ready(void *arg)
{
    (void)arg;
    return 0;
}

static int blocks_once(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    return 1;
}

static void blocks_at_the_limit(void *arg)
{
    int want = *(const int *)arg;
    fj_blocking b;

    atomic_store(&runs, 0);
    CHECK_EQ(fj_managed_block(not_ready, blocks_once, NULL), want);
    CHECK_EQ(atomic_load(&runs), want == FJ_OK);
    int err = fj_block_begin(&b);
    CHECK_EQ(err, want);
    if (err == FJ_OK) fj_block_end(&b);
}

FJ_TEST(at_the_limit_of_threads_a_block_waits_unless_the_pool_says_no, 10)
{
    int ok = FJ_OK, saturated = FJ_ESATURATED;
    fj_pool *pool = pool_of(1, 1, NULL);

    inside(pool, blocks_at_the_limit, &ok);
    fjt_destroy(pool);
    pool = pool_of(1, 1, says_yes);
    inside(pool, blocks_at_the_limit, &ok);
    fjt_destroy(pool);
    pool = pool_of(1, 1, says_no);
    inside(pool, blocks_at_the_limit, &saturated);
    fjt_destroy(pool);
}

/* max_threads limits all threads of the common pool; the environment variable limits its spares. */
static void limit_of_the_common_pool(bool by_environment)
{
    fj_pool_options o = {0};
    int saturated = FJ_ESATURATED;

    o.parallelism = 1;
    o.allow_saturation = says_no;
    if (by_environment)
        CHECK_EQ(setenv("FORKJOIN_MAX_SPARES", "0", 1), 0);
    else
        o.max_threads = 1; /* with one worker this leaves no spare */
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    inside(NULL, blocks_at_the_limit, &saturated);
}

FJ_TEST(options_limit_all_threads_of_the_common_pool, 10)
{
    limit_of_the_common_pool(false);
}

FJ_TEST(environment_limits_the_spares_of_the_common_pool, 10)
{
    limit_of_the_common_pool(true);
}

static sem_t gate;

static int waits_at_the_gate(void *arg)
{
    (void)arg;
    return fj_block_sem_wait(&gate, FJ_FOREVER);
}

/* The default limit is the parallelism plus 256. A further action waits until a thread is free. */
FJ_TEST(most_threads_are_256_more_than_the_parallelism, 60)
{
    enum { MORE = 300 };
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.stack_bytes = 1 << 20;
    fj_pool *pool = fjt_pool_with(&o);
    CHECK_EQ(sem_init(&gate, 0, 0), 0);
    for (int i = 0; i < MORE; i++) CHECK_EQ(fj_execute(pool, waits_at_the_gate, NULL), FJ_OK);
    while (fj_pool_thread_count(pool) < 257) fjt_sleep_us(500);
    fjt_sleep_us(20000);
    CHECK_EQ(fj_pool_thread_count(pool), 257);
    for (int i = 0; i < MORE; i++) sem_post(&gate);
    fjt_destroy(pool);
}

FJ_TEST(common_pool_without_workers_says_so, 10)
{
    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "0", 1), 0);
    CHECK_EQ(fj_common_parallelism(), 0);
    CHECK_EQ(fj_pool_parallelism(NULL), 0);
    CHECK_EQ(fj_pool_set_parallelism(NULL, 2), FJ_ENOTSUP);
}

/* A value that is not a number is ignored. The other settings still apply. */
FJ_TEST(unreadable_setting_leaves_the_others, 10)
{
    fj_pool_options o = {0};

    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "many", 1), 0);
    CHECK_EQ(setenv("FORKJOIN_MAX_SPARES", "0", 1), 0);
    o.parallelism = 3;
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    CHECK_EQ(fj_common_parallelism(), 3);
    CHECK_EQ(fj_pool_set_parallelism(NULL, 2), 3);
}

static fj_pool *reported_by;

static void reports(fj_pool *pool, int code, void *arg)
{
    (void)arg;
    CHECK_EQ(code, 9);
    reported_by = pool;
    atomic_store(&held, 1);
}

static int fails(void *arg)
{
    (void)arg;
    return 9;
}

FJ_TEST(common_pool_is_given_its_callbacks_by_pointer, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.on_error = reports;
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    CHECK_EQ(fj_execute(NULL, fails, NULL), FJ_OK);
    until(&held);
    CHECK(reported_by == fj_common_pool());
    CHECK_EQ(fj_common_configure(&o), FJ_EBUSY);
}

FJ_TEST(common_pool_is_not_ended, 10)
{
    fj_pool *pool = fj_common_pool();

    CHECK_EQ(fj_pool_shutdown(pool), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_close(pool), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_destroy(pool), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_cancel_delayed_on_shutdown(pool), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_is_shutdown(pool), 0);
    CHECK_EQ(fj_pool_is_terminated(pool), 0);
    CHECK_EQ(fj_pool_await_termination(pool, MS), FJ_ETIMEDOUT);
}

FJ_TEST(pool_says_whether_it_is_fifo, 10)
{
    fj_pool *lifo = fjt_pool(1, 0), *fifo = fjt_pool(1, FJ_POOL_FIFO);

    CHECK_EQ(fj_pool_is_fifo(lifo), 0);
    CHECK_EQ(fj_pool_is_fifo(fifo), 1);
    fjt_destroy(lifo);
    fjt_destroy(fifo);
}

/* ---- Running ------------------------------------------------------------------------------------ */

static int answers(void *arg, void **result)
{
    *result = arg;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(adapted_function_is_a_future_with_a_result, 10)
{
    int x;
    void *result = NULL;
    fj_future *f;

    CHECK_EQ(fj_future_new_call(answers, &x, 0, &f), FJ_OK);
    CHECK_EQ(fj_future_state(f), FJ_FUTURE_RUNNING);
    CHECK_EQ(fj_future_run(f), FJ_OK);
    CHECK_EQ(fj_future_result(f, &result), FJ_OK);
    CHECK(result == &x);
    fj_future_unref(f);
    CHECK_EQ(fj_future_new_action(counts, NULL, &x, 0, &f), FJ_OK);
    CHECK_EQ(fj_future_run(f), FJ_OK);
    CHECK_EQ(fj_future_result(f, &result), FJ_OK);
    CHECK(result == &x); /* stored, not copied */
    fj_future_unref(f);
    CHECK_EQ(atomic_load(&runs), 2);
}

/* A thread outside the pool that waits for a future runs it itself, unless the future is
 * interruptible. */
FJ_TEST(interruptible_future_is_not_run_by_who_waits, 10)
{
    fj_pool *pool = fjt_pool(1, FJ_POOL_CALLER_HELPS);
    fj_future *f[4];

    hold_one(pool);
    CHECK_EQ(fj_future_new_call(answers, NULL, 0, &f[0]), FJ_OK);
    CHECK_EQ(fj_future_new_action(counts, NULL, NULL, 0, &f[1]), FJ_OK);
    CHECK_EQ(fj_future_new_call(answers, NULL, 1, &f[2]), FJ_OK);
    CHECK_EQ(fj_future_new_action(counts, NULL, NULL, 1, &f[3]), FJ_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(fj_future_submit(pool, f[i]), FJ_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_future_join(f[i]), FJ_OK);
    for (int i = 2; i < 4; i++) CHECK_EQ(fj_future_wait(f[i], 5 * MS), FJ_ETIMEDOUT);
    CHECK_EQ(atomic_load(&runs), 2);
    atomic_store(&go, 1);
    for (int i = 2; i < 4; i++) CHECK_EQ(fj_future_join(f[i]), FJ_OK);
    for (int i = 0; i < 4; i++) fj_future_unref(f[i]);
    fjt_destroy(pool);
}

/* A task that invokes two futures in another pool. An interrupt ends fj_future_invoke_all(), but
 * not fj_future_invoke_all_quietly(). */
struct bulk {
    fj_future future;
    fj_pool *pool;
    bool quietly;
    int got;
};

static int value_run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

static int bulk_run(fj_task *t)
{
    struct bulk *b = (struct bulk *)t;
    fj_future f[2], *list[2] = {&f[0], &f[1]};

    atomic_store(&held, 1);
    while (!fj_is_cancelled()) fjt_sleep_us(50);
    for (int i = 0; i < 2; i++) fj_future_init(&f[i], value_run);
    b->got = b->quietly ? fj_future_invoke_all_quietly(b->pool, list, 2)
                        : fj_future_invoke_all(b->pool, list, 2, FJ_FOREVER);
    for (int i = 0; i < 2; i++) fj_future_fini(&f[i]);
    return FJ_OK;
}

FJ_TEST(quiet_form_of_all_of_takes_no_notice_of_an_interrupt, 10)
{
    for (int quietly = 0; quietly < 2; quietly++) {
        fj_pool *pool = fjt_pool(2, 0), *other = fjt_pool(1, 0);
        struct bulk b = {.pool = other, .quietly = quietly != 0, .got = 77};
        fj_future_init(&b.future, bulk_run);
        atomic_store(&held, 0);
        if (quietly == 0) hold_one(other); /* so that the call has to wait */
        atomic_store(&held, 0);
        CHECK_EQ(fj_future_submit(pool, &b.future), FJ_OK);
        until(&held);
        CHECK_EQ(fj_future_cancel(&b.future, 1), 1);
        if (quietly == 0) fjt_sleep_us(2000);
        atomic_store(&go, 1);
        fj_future_fini(&b.future);
        CHECK_EQ(b.got, quietly ? FJ_OK : FJ_ECANCELED);
        fjt_destroy(pool);
        fjt_destroy(other);
    }
}

/* ---- Monitoring ------------------------------------------------------------------------------------ */

static int looks_at_its_pool(fj_task *t)
{
    fj_pool *pool = fj_current_pool();

    (void)t;
    CHECK(pool != NULL);
    CHECK(fj_current_worker() >= 0);
    CHECK_EQ(fj_pool_thread_count(pool), 1); /* the occupied worker; the caller is not counted */
    fj_task a[3];
    for (int i = 0; i < 3; i++) {
        fj_task_init(&a[i], leaf_run);
        fj_fork(&a[i]);
    }
    CHECK_EQ(fj_worker_queued(), 3);
    CHECK_EQ(fj_worker_surplus(), 3);
    CHECK_EQ(fj_pool_queued_task_count(pool), 3);
    for (int i = 3; i-- > 0;) CHECK_EQ(fj_join(&a[i]), 5);
    return FJ_OK;
}

FJ_TEST(caller_that_helps_has_a_queue_that_counts_and_is_no_thread_of_the_pool, 10)
{
    fj_pool *pool = pool_of(1, 1, NULL);
    fj_task t;

    hold_one(pool);
    fj_task_init(&t, looks_at_its_pool);
    CHECK_EQ(fj_invoke_mode(pool, &t, FJ_CALLER_HELPS), FJ_OK);
    CHECK(fj_current_pool() == NULL);
    CHECK_EQ(fj_current_worker(), -1);
    CHECK_EQ(fj_worker_queued(), 0);
    CHECK_EQ(fj_worker_surplus(), 0);
    atomic_store(&go, 1);
    fjt_destroy(pool);
}

FJ_TEST(worker_in_a_managed_wait_is_not_running, 10)
{
    fj_pool *pool = pool_of(1, 1, NULL);

    CHECK_EQ(sem_init(&gate, 0, 0), 0);
    hold_one(pool);
    CHECK_EQ(fj_pool_running_count(pool), 1);
    CHECK_EQ(fj_pool_active_count(pool), 1);
    atomic_store(&go, 1);
    CHECK_EQ(fj_execute(pool, waits_at_the_gate, NULL), FJ_OK);
    while (fj_pool_running_count(pool) != 0 || fj_pool_thread_count(pool) != 1) fjt_sleep_us(100);
    sem_post(&gate);
    fjt_destroy(pool);
}

static int until_stopped(void *arg)
{
    (void)arg;
    atomic_store(&held, 1);
    while (!fj_is_stopping()) fjt_sleep_us(50);
    until(&go);
    return FJ_OK;
}

FJ_TEST(pool_that_stops_counts_as_quiescent, 10)
{
    fj_pool *pool = fjt_pool(1, 0);

    CHECK_EQ(fj_execute(pool, until_stopped, NULL), FJ_OK);
    until(&held);
    CHECK_EQ(fj_pool_is_quiescent(pool), 0);
    CHECK_EQ(fj_pool_is_terminating(pool), 0);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK_EQ(fj_pool_is_quiescent(pool), 1);
    CHECK_EQ(fj_pool_is_terminating(pool), 1);
    CHECK_EQ(fj_pool_is_terminated(pool), 0);
    atomic_store(&go, 1);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_pool_is_terminating(pool), 0);
    CHECK_EQ(fj_pool_is_terminated(pool), 1);
    fjt_destroy(pool);
}

FJ_TEST(common_pool_that_was_never_used_is_quiescent, 10)
{
    CHECK_EQ(fj_pool_is_quiescent(NULL), 1);
}

FJ_TEST(steals_of_workers_that_have_left_are_kept, 20)
{
    fj_pool_options o = {0};

    /* A second worker could steal from the first, and such a steal counts as well. */
    o.parallelism = 1;
    o.keep_alive_ns = 20 * MS;
    fj_pool *pool = fjt_pool_with(&o);
    for (int i = 0; i < 10; i++) CHECK_EQ(fj_execute(pool, counts, NULL), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    while (fj_pool_thread_count(pool) != 0) fjt_sleep_us(1000);
    CHECK_EQ(fj_pool_steal_count(pool), 10); /* taking a submission counts */
    fjt_destroy(pool);
}

FJ_TEST(submissions_are_counted_until_they_are_taken_and_none_in_a_pool_that_stops, 10)
{
    fj_pool *pool = pool_of(1, 1, NULL);
    fj_task t[2];

    hold_one(pool);
    for (int i = 0; i < 2; i++) {
        fj_task_init(&t[i], leaf_run);
        CHECK_EQ(fj_submit_lazy(pool, &t[i]), FJ_OK);
    }
    CHECK_EQ(fj_pool_queued_submission_count(pool), 2);
    CHECK_EQ(fj_pool_has_queued_submissions(pool), 1);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK_EQ(fj_pool_has_queued_submissions(pool), 0);
    atomic_store(&go, 1);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_join(&t[i]), FJ_ECANCELED);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 0);
}

FJ_TEST(text_of_a_pool_is_as_by_snprintf, 10)
{
    fj_pool *pool = fjt_pool(3, 0);
    char text[300], little[8];

    int n = fj_pool_describe(pool, text, sizeof text);
    CHECK_EQ(n, strlen(text));
    CHECK(strchr(text, '\n') == NULL);
    CHECK_EQ(fj_pool_describe(pool, little, sizeof little), n);
    CHECK_EQ(strlen(little), sizeof little - 1);
    CHECK_EQ(memcmp(text, little, sizeof little - 1), 0);
    fjt_destroy(pool);
}

/* ---- Waiting ---------------------------------------------------------------------------- */

static pthread_t ran_by;

static int notes_who(void *arg)
{
    (void)arg;
    ran_by = pthread_self();
    return counts(NULL);
}

/* If callers help, the waiting caller runs this action, which releases the only worker. Otherwise
 * the test releases the worker. */
static int notes_who_and_lets_go(void *arg)
{
    int code = notes_who(arg);

    atomic_store(&go, 1);
    return code;
}

FJ_TEST(outsider_that_waits_for_quiescence_helps_only_where_that_is_wanted, 10)
{
    for (int helps = 0; helps < 2; helps++) {
        fj_pool *pool = fjt_pool(1, helps ? FJ_POOL_CALLER_HELPS : 0);
        atomic_store(&runs, 0);
        hold_one(pool);
        CHECK_EQ(fj_execute(pool, notes_who_and_lets_go, NULL), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(pool, 20 * MS), FJ_ETIMEDOUT);
        CHECK_EQ(atomic_load(&runs), 0);
        if (!helps) atomic_store(&go, 1);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&runs), 1);
        CHECK_EQ(pthread_equal(ran_by, pthread_self()) != 0, helps);
        CHECK_EQ(fj_pool_steal_count(pool), 2); /* also if the caller ran one */
        fjt_destroy(pool);
    }
}

static int ready_now(void *arg)
{
    (void)arg;
    return 1;
}

static int asked;

static int ready_the_third_time(void *arg)
{
    (void)arg;
    return ++asked == 3;
}

static int blocks_again(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    return 0;
}

static int gives_up(void *arg)
{
    (void)arg;
    return FJ_EAGAIN;
}

static void managed_blocks(void *arg)
{
    (void)arg;
    atomic_store(&runs, 0);
    asked = 0;
    CHECK_EQ(fj_managed_block(ready_now, gives_up, NULL), FJ_OK);
    CHECK_EQ(fj_managed_block(not_ready, gives_up, NULL), FJ_EAGAIN);
    CHECK_EQ(fj_managed_block(ready_the_third_time, blocks_again, NULL), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 2);
}

FJ_TEST(managed_block_asks_waits_and_gives_up_as_it_is_told, 10)
{
    fj_pool *pool = fjt_pool(1, 0);

    managed_blocks(NULL); /* outside a pool it only waits */
    inside(pool, managed_blocks, NULL);
    fjt_destroy(pool);
}

/* ---- Tasks and futures --------------------------------------------------------------------------------- */

static void takes_back_the_older(void *arg)
{
    fj_task a, b;

    (void)arg;
    atomic_store(&runs, 0);
    fj_task_init(&a, leaf_run);
    fj_task_init(&b, leaf_run);
    fj_fork(&a);
    CHECK(fj_peek_local() == (const void *)&a);
    fj_fork(&b);
    CHECK(fj_peek_local() == (const void *)(fj_pool_is_fifo(fj_current_pool()) ? &a : &b));
    CHECK_EQ(fj_worker_queued(), 2);
    CHECK_EQ(fj_unfork(&a), 1);
    CHECK_EQ(fj_join(&b), 5);
    CHECK_EQ(atomic_load(&runs), 1);
    CHECK(fj_peek_local() == NULL);
}

FJ_TEST(any_forked_task_is_taken_back_not_only_the_newest, 10)
{
    fj_pool *pool = pool_of(1, 1, NULL);

    inside(pool, takes_back_the_older, NULL);
    fjt_destroy(pool);
    pool = fjt_pool(1, FJ_POOL_FIFO);
    inside(pool, takes_back_the_older, NULL);
    fjt_destroy(pool);
}

/* fj_take_local() leaves a task that the current frame will join, unless the pool is FIFO. It takes
 * an action. */
static void polls(void *arg)
{
    bool fifo = fj_pool_is_fifo(fj_current_pool()) != 0;
    fj_taken taken;
    fj_task a;

    (void)arg;
    fj_task_init(&a, leaf_run);
    fj_fork(&a);
    CHECK_EQ(fj_take_local(&taken), fifo);
    if (fifo) {
        CHECK(fj_taken_task(&taken) == &a);
        fj_taken_run(&taken);
    }
    CHECK_EQ(fj_join(&a), 5);
    CHECK_EQ(fj_execute(fj_current_pool(), counts, NULL), FJ_OK);
    CHECK_EQ(fj_take_local(&taken), 1);
    CHECK(fj_taken_task(&taken) == NULL);
    fj_taken_cancel(&taken);
}

FJ_TEST(poll_leaves_what_will_be_joined_unless_the_pool_is_fifo, 10)
{
    for (unsigned flags = 0; flags <= FJ_POOL_FIFO; flags += FJ_POOL_FIFO) {
        fj_pool *pool = fjt_pool(1, flags);
        inside(pool, polls, NULL);
        fjt_destroy(pool);
    }
    CHECK_EQ(atomic_load(&runs), 2);
}

/* The surplus is the length of the queue minus the number of tasks that idle workers could use,
 * which is at most 8. */
static void looks_at_the_surplus(void *arg)
{
    int target = *(const int *)arg, active, surplus, allowance = 0;

    do {
        active = fj_pool_active_count(fj_current_pool());
        surplus = fj_worker_surplus();
    } while (active != fj_pool_active_count(fj_current_pool()));
    for (int part = target / 2; active <= part && allowance < 8; part /= 2)
        allowance = allowance == 0 ? 1 : 2 * allowance;
    CHECK_EQ(surplus, -allowance); /* its queue is empty */
}

FJ_TEST(surplus_is_the_queue_less_what_the_idle_could_take, 10)
{
    static const int sizes[] = {1, 2, 4, 8, 64};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fj_pool *pool = fjt_pool(sizes[i], 0);
        int target = sizes[i];
        for (int round = 0; round < 20; round++) inside(pool, looks_at_the_surplus, &target);
        fjt_destroy(pool);
    }
}

static int fails_run(fj_task *t)
{
    (void)t;
    return 6;
}

static void check_state(const fj_future *f, enum fj_future_state state, int error)
{
    void *result = &runs;

    CHECK_EQ(fj_future_state(f), state);
    CHECK_EQ(fj_future_is_done(f), state != FJ_FUTURE_RUNNING);
    CHECK_EQ(fj_future_succeeded(f), state == FJ_FUTURE_SUCCESS);
    CHECK_EQ(fj_future_failed(f), state == FJ_FUTURE_FAILED || state == FJ_FUTURE_CANCELLED);
    CHECK_EQ(fj_future_is_cancelled(f), state == FJ_FUTURE_CANCELLED);
    CHECK_EQ(fj_future_error(f), error);
    CHECK_EQ(fj_future_result(f, &result), state == FJ_FUTURE_RUNNING ? FJ_EBUSY : error);
    if (state != FJ_FUTURE_SUCCESS) CHECK(result == &runs); /* unchanged */
}

FJ_TEST(every_question_about_a_future_has_the_same_answer, 10)
{
    fj_future f;

    fj_future_init(&f, value_run);
    check_state(&f, FJ_FUTURE_RUNNING, FJ_OK);
    CHECK_EQ(fj_future_run(&f), FJ_OK);
    check_state(&f, FJ_FUTURE_SUCCESS, FJ_OK);
    fj_future_init(&f, fails_run);
    CHECK_EQ(fj_future_run(&f), 6);
    check_state(&f, FJ_FUTURE_FAILED, 6);
    CHECK_EQ(fj_future_get(&f, FJ_FOREVER, NULL), 6);
    CHECK_EQ(fj_future_wait(&f, FJ_FOREVER), FJ_OK); /* done, whatever the outcome */
    fj_future_init(&f, value_run);
    CHECK_EQ(fj_future_cancel(&f, 0), 1);
    check_state(&f, FJ_FUTURE_CANCELLED, FJ_ECANCELED);
}

FJ_TEST(only_the_first_outcome_counts_and_says_so, 10)
{
    int x, y;
    void *result = NULL;
    fj_future f;

    fj_future_init(&f, NULL);
    CHECK_EQ(fj_future_complete(&f, &x), 1);
    CHECK_EQ(fj_future_complete(&f, &y), 0);
    CHECK_EQ(fj_future_complete_quietly(&f), 0);
    CHECK_EQ(fj_future_fail(&f, 3), 0);
    CHECK_EQ(fj_future_cancel(&f, 0), 0);
    CHECK_EQ(fj_future_result(&f, &result), FJ_OK);
    CHECK(result == &x);
    fj_future_init(&f, NULL);
    CHECK_EQ(fj_future_fail(&f, 0), 1);
    check_state(&f, FJ_FUTURE_FAILED, FJ_EFAILED);
    fj_future_init(&f, NULL);
    f.result = &y;
    CHECK_EQ(fj_future_complete_quietly(&f), 1);
    CHECK_EQ(fj_future_result(&f, &result), FJ_OK);
    CHECK(result == &y);
}

struct waiter {
    fj_future future;
    fj_future *on;
    int wait, quiet;
};

static int waiter_run(fj_task *t)
{
    struct waiter *w = (struct waiter *)t;

    atomic_store(&held, 1);
    while (!fj_is_cancelled()) fjt_sleep_us(50);
    w->wait = fj_future_wait(w->on, FJ_FOREVER);
    w->quiet = fj_future_wait_quietly(w->on, 2 * MS);
    return FJ_OK;
}

/* The results that correspond to true, false and InterruptedException in Java. */
FJ_TEST(quiet_waits_say_done_late_or_interrupted, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_future open;
    struct waiter w = {.on = &open};

    fj_future_init(&open, NULL);
    CHECK_EQ(fj_future_wait(&open, MS), FJ_ETIMEDOUT);
    CHECK_EQ(fj_future_wait_quietly(&open, MS), FJ_ETIMEDOUT);
    CHECK_EQ(fj_future_get(&open, MS, NULL), FJ_ETIMEDOUT);
    fj_future_init(&w.future, waiter_run);
    CHECK_EQ(fj_future_submit(pool, &w.future), FJ_OK);
    until(&held);
    CHECK_EQ(fj_future_cancel(&w.future, 1), 1);
    fj_future_fini(&w.future);
    CHECK_EQ(w.wait, FJ_ECANCELED);
    CHECK_EQ(w.quiet, FJ_ETIMEDOUT);
    CHECK_EQ(fj_future_complete(&open, NULL), 1);
    CHECK_EQ(fj_future_wait(&open, 0), FJ_OK);
    CHECK_EQ(fj_future_wait_quietly(&open, 0), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(future_is_made_new_only_when_nobody_has_it, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    void *result = NULL;
    fj_future f;
    int x;

    hold_one(pool);
    fj_future_init(&f, value_run);
    f.result = &x;
    CHECK_EQ(fj_future_reinit(&f), FJ_EBUSY); /* not done */
    CHECK_EQ(fj_future_set_tag(&f, -7), 0);
    CHECK_EQ(fj_future_cas_tag(&f, -7, 12), 1);
    CHECK_EQ(fj_future_cas_tag(&f, -7, 13), 0);
    CHECK_EQ(fj_future_tag(&f), 12);
    CHECK_EQ(fj_future_submit(pool, &f), FJ_OK);
    CHECK_EQ(fj_future_reinit(&f), FJ_EBUSY); /* queued */
    atomic_store(&go, 1);
    CHECK_EQ(fj_future_join(&f), FJ_OK);
    fj_future_fini(&f);
    CHECK_EQ(fj_future_reinit(&f), FJ_OK);
    CHECK_EQ(fj_future_state(&f), FJ_FUTURE_RUNNING);
    CHECK_EQ(fj_future_tag(&f), 0);
    CHECK_EQ(fj_future_run(&f), FJ_OK);
    CHECK_EQ(fj_future_result(&f, &result), FJ_OK);
    CHECK(result == &x);
    fjt_destroy(pool);
}

FJ_TEST(no_time_remains_of_what_is_no_timer, 10)
{
    fj_future f;

    fj_future_init(&f, value_run);
    CHECK_EQ(fj_timer_remaining(&f), 0);
}

static const fj_token *wanted_token;

static int looks_at_its_token(fj_task *t)
{
    (void)t;
    CHECK(fj_current_token() == wanted_token);
    CHECK_EQ(fj_is_cancelled(), 0);
    return FJ_OK;
}

static int looks_at_the_token_of_a_future(fj_task *t)
{
    const fj_token *own = fj_current_token();
    fj_token below;

    CHECK(own != NULL);
    fj_token_init(&below, own);
    CHECK_EQ(fj_token_is_cancelled(&below), 0);
    CHECK_EQ(fj_future_cancel((fj_future *)t, 0), 1);
    CHECK_EQ(fj_token_is_cancelled(own), 1);
    CHECK_EQ(fj_token_is_cancelled(&below), 1);
    CHECK_EQ(fj_is_cancelled(), 1);
    return FJ_OK;
}

FJ_TEST(task_knows_its_token, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_token token;
    fj_future f;
    fj_task t;

    CHECK(fj_current_token() == NULL);
    fj_task_init(&t, looks_at_its_token);
    CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
    fj_token_init(&token, NULL);
    wanted_token = &token;
    CHECK_EQ(fj_invoke_token(pool, &t, &token), FJ_OK);
    fj_future_init(&f, looks_at_the_token_of_a_future);
    CHECK_EQ(fj_future_submit(pool, &f), FJ_OK);
    CHECK_EQ(fj_future_join(&f), FJ_ECANCELED);
    fj_future_fini(&f);
    fjt_destroy(pool);
}

/* ---- Completers ----------------------------------------------------------------------------------------- */

static int through(fj_completer *c, fj_completer *caller)
{
    (void)c, (void)caller;
    return 4;
}

static int completes(fj_task *t)
{
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

FJ_TEST(completion_callback_may_fail_and_the_root_is_known_without_its_children, 10)
{
    fj_completer root, *middle = malloc(sizeof *middle), leaf;

    CHECK(middle != NULL);
    fj_completer_init(&root, NULL, 0, completes, through, NULL);
    fj_completer_init(middle, &root, 3, completes, NULL, NULL);
    fj_completer_init(&leaf, middle, 0, completes, NULL, NULL);
    CHECK(fj_completer_parent(&leaf) == middle);
    CHECK_EQ(fj_completer_pending(middle), 3);
    memset(middle, 0, sizeof *middle);
    free(middle);
    CHECK(fj_completer_root(&leaf) == &root); /* the nodes in between are not read */
    CHECK(fj_completer_parent(&root) == NULL);
    CHECK_EQ(fj_completer_run(&root), 4);
    CHECK_EQ(fj_future_state(&root.future), FJ_FUTURE_FAILED);
}

/* fj_completer_help() runs tasks of the same root, also those that are not below the given one. It
 * runs no task of another root, and none outside a pool. */
static int counts_and_completes(fj_task *t)
{
    atomic_fetch_add(&runs, 1);
    return completes(t);
}

static void helps_a_root(void *arg)
{
    fj_completer root, other, child[3], stranger;

    (void)arg;
    atomic_store(&runs, 0);
    fj_completer_init(&root, NULL, 3, NULL, NULL, NULL);
    fj_completer_init(&other, NULL, 0, NULL, NULL, NULL);
    fj_completer_init(&stranger, &other, 0, counts_and_completes, NULL, NULL);
    CHECK_EQ(fj_completer_fork(&stranger), FJ_OK);
    for (int i = 0; i < 3; i++) {
        fj_completer_init(&child[i], &root, 0, counts_and_completes, NULL, NULL);
        CHECK_EQ(fj_completer_fork(&child[i]), FJ_OK);
    }
    CHECK_EQ(fj_completer_help(&child[0], 0), 0);
    CHECK_EQ(fj_completer_help(&child[0], 1), 1);
    CHECK_EQ(fj_completer_help(&root, 9), 2);
    CHECK_EQ(atomic_load(&runs), 3);
    CHECK_EQ(fj_future_is_done(&root.future), 0);
    fj_completer_complete_root(&child[0]);
    CHECK_EQ(fj_future_succeeded(&root.future), 1);
    CHECK_EQ(fj_completer_join(&other), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 4);
}

FJ_TEST(completer_helps_with_tasks_of_its_root, 10)
{
    fj_pool *pool = pool_of(1, 1, NULL);
    fj_completer c;

    inside(pool, helps_a_root, NULL);
    fj_completer_init(&c, NULL, 0, completes, NULL, NULL);
    CHECK_EQ(fj_completer_help(&c, 5), 0);
    fjt_destroy(pool);
}
