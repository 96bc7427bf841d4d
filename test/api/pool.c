/* SPDX-License-Identifier: MIT */
/*
 * pool.c - creation and termination of a pool: options, states, calls from inside
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

static int ok_run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

static int create(const fj_pool_options *o)
{
    fj_pool *pool = NULL;
    int err = fj_pool_create(&pool, o);

    if (err == FJ_OK)
        fjt_destroy(pool);
    else
        CHECK(pool == NULL);
    return err;
}

/* ---- Options -------------------------------------------------------------------------------- */

FJ_TEST(pool_without_options_has_the_defaults, 10)
{
    fj_pool_options o = {0};
    fj_pool *a = fjt_pool_with(NULL), *b = fjt_pool_with(&o);

    CHECK_EQ(fj_pool_parallelism(a), fj_available_parallelism());
    CHECK_EQ(fj_pool_parallelism(b), fj_available_parallelism());
    CHECK(!fj_pool_is_fifo(a) && !fj_pool_is_fifo(b));
    fjt_destroy(a);
    fjt_destroy(b);
}

FJ_TEST(pool_has_the_parallelism_asked_for, 10)
{
    static const int sizes[] = {1, 2, 3, 64, 1000, FJ_MAX_WORKERS};

    for (int i = 0; i < 6; i++) {
        fj_pool *pool = fjt_pool(sizes[i], 0);
        CHECK_EQ(fj_pool_parallelism(pool), sizes[i]);
        CHECK_EQ(fj_pool_thread_count(pool), 0);
        fjt_destroy(pool);
    }
}

FJ_TEST(largest_pool_works, 20)
{
    fj_pool *pool = fjt_pool(FJ_MAX_WORKERS, 0);
    fj_task t;

    fj_task_init(&t, ok_run);
    for (int i = 0; i < 10; i++) CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
    CHECK(fj_pool_thread_count(pool) >= 1);
    fjt_destroy(pool);
}

FJ_TEST(parallelism_out_of_range_is_refused, 10)
{
    static const int sizes[] = {-1, -2, FJ_MAX_WORKERS + 1, 65536, INT32_MAX, INT32_MIN};

    for (int i = 0; i < 6; i++) {
        fj_pool_options o = {0};
        o.parallelism = sizes[i];
        CHECK_EQ(create(&o), FJ_EINVAL);
    }
}

FJ_TEST(max_threads_below_the_parallelism_is_refused, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 4;
    o.max_threads = 3;
    CHECK_EQ(create(&o), FJ_EINVAL);
    o.max_threads = -1;
    CHECK_EQ(create(&o), FJ_EINVAL);
    o.max_threads = 4;
    CHECK_EQ(create(&o), FJ_OK);
    o.max_threads = FJ_MAX_WORKERS;
    CHECK_EQ(create(&o), FJ_OK);
    o.parallelism = 0;
    o.max_threads = fj_available_parallelism() - 1;
    if (o.max_threads > 0) CHECK_EQ(create(&o), FJ_EINVAL);
}

FJ_TEST(max_threads_below_min_runnable_is_refused, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.max_threads = 4;
    o.min_runnable = 5;
    CHECK_EQ(create(&o), FJ_EINVAL);
    o.min_runnable = 4;
    CHECK_EQ(create(&o), FJ_OK);
    o.max_threads = 0;
    o.min_runnable = 1000;
    CHECK_EQ(create(&o), FJ_OK);
    o.min_runnable = FJ_MAX_WORKERS;
    CHECK_EQ(create(&o), FJ_OK);
    o.min_runnable = FJ_MAX_WORKERS + 1;
    CHECK_EQ(create(&o), FJ_EINVAL);
    o.min_runnable = -1;
    CHECK_EQ(create(&o), FJ_EINVAL);
}

FJ_TEST(negative_durations_are_refused, 10)
{
    fj_pool_options o = {0};

    o.keep_alive_ns = -1;
    CHECK_EQ(create(&o), FJ_EINVAL);
    o.keep_alive_ns = INT64_MIN;
    CHECK_EQ(create(&o), FJ_EINVAL);
    o.keep_alive_ns = 1;
    CHECK_EQ(create(&o), FJ_OK);
    o.keep_alive_ns = FJ_FOREVER;
    CHECK_EQ(create(&o), FJ_OK);
    o.spin_ns = -2;
    CHECK_EQ(create(&o), FJ_EINVAL);
    o.spin_ns = -1; /* no spinning */
    CHECK_EQ(create(&o), FJ_OK);
    o.spin_ns = FJ_FOREVER;
    CHECK_EQ(create(&o), FJ_OK);
    o.min_runnable = -1;
    CHECK_EQ(create(&o), FJ_EINVAL);
}

static int no_action(void *arg)
{
    (void)arg;
    return FJ_OK;
}

static int no_body(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

/* A worker that searches counts as active. If it searched forever, the pool could not terminate. */
FJ_TEST(longest_search_keeps_no_pool_from_its_end, 30)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    o.spin_ns = FJ_FOREVER;
    fj_pool *p = fjt_pool_with(&o);
    CHECK_EQ(fj_execute(p, no_action, NULL), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    fjt_destroy(p);
}

/* The worker of a pool that is shut down does not search until its time is over, which is 100 ms
 * here. The best of several rounds counts, because the machine may be busy. */
FJ_TEST(end_of_a_pool_does_not_wait_for_a_search, 30)
{
    fj_pool_options o = {.parallelism = 1, .spin_ns = FJ_FOREVER};
    int64_t best = INT64_MAX;

    for (int i = 0; i < 5; i++) {
        fj_pool *p = fjt_pool_with(&o);
        fj_task t;
        fj_task_init(&t, no_body);
        CHECK_EQ(fj_invoke_mode(p, &t, FJ_CALLER_BLOCKS), FJ_OK);
        int64_t began = fjt_now();
        fjt_destroy(p);
        if (fjt_now() - began < best) best = fjt_now() - began;
    }
    CHECK(best < 50000000);
}

FJ_TEST(unknown_flags_are_refused, 10)
{
    for (unsigned bit = 0; bit < 32; bit++) {
        fj_pool_options o = {0};
        unsigned known = FJ_POOL_FIFO | FJ_POOL_CALLER_HELPS | FJ_POOL_SYMMETRIC;
        o.flags = 1u << bit;
        CHECK_EQ(create(&o), (o.flags & known) != 0 ? FJ_OK : FJ_EINVAL);
        o.flags |= known;
        CHECK_EQ(create(&o), (1u << bit & known) != 0 ? FJ_OK : FJ_EINVAL);
    }
}

FJ_TEST(reserved_options_that_are_not_zero_are_refused, 10)
{
    fj_pool_options o = {0};

    for (size_t i = 0; i < sizeof o.reserved / sizeof o.reserved[0]; i++) {
        o.reserved[i] = (uint64_t)1 << (7 * i);
        CHECK_EQ(create(&o), FJ_EINVAL);
        CHECK_EQ(fj_common_configure(&o), FJ_EINVAL);
        o.reserved[i] = 0;
        CHECK_EQ(create(&o), FJ_OK);
    }
    CHECK_EQ(fj_pool_create(NULL, NULL), FJ_EINVAL);
}

FJ_TEST(options_may_go_once_the_pool_is_made, 10)
{
    fj_pool_options *o = malloc(sizeof *o);
    char *name = malloc(9);
    fj_task t;

    memset(o, 0, sizeof *o);
    memcpy(name, "tempname", 9);
    o->name = name;
    o->parallelism = 2;
    fj_pool *pool = fjt_pool_with(o);
    memset(name, 'x', 8);
    free(name);
    free(o);
    fj_task_init(&t, ok_run);
    CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Termination ----------------------------------------------------------------------------- */

static void check_state(const fj_pool *pool, int state)
{
    fj_stats s;

    CHECK_EQ(fj_pool_stats(pool, &s), FJ_OK);
    CHECK_EQ(s.state, state);
    CHECK_EQ(fj_pool_is_shutdown(pool), state >= 1);
    CHECK_EQ(fj_pool_is_terminating(pool), state == 2);
    CHECK_EQ(fj_pool_is_terminated(pool), state == 3);
}

struct held {
    fj_task task;
    atomic_int begun, may_end, stopping_before, stopping_after;
};

static int held_run(fj_task *t)
{
    struct held *h = (struct held *)t;

    atomic_store(&h->stopping_before, fj_is_stopping());
    atomic_store(&h->begun, 1);
    until(&h->may_end);
    atomic_store(&h->stopping_after, fj_is_stopping());
    return FJ_OK;
}

static void held_submit(fj_pool *pool, struct held *h)
{
    memset(h, 0, sizeof *h);
    fj_task_init(&h->task, held_run);
    CHECK_EQ(fj_submit(pool, &h->task), FJ_OK);
    until(&h->begun);
}

FJ_TEST(unused_pool_goes_from_running_to_terminated, 10)
{
    fj_pool *pool = fjt_pool(4, 0);

    check_state(pool, 0);
    CHECK_EQ(fj_pool_await_termination(pool, 0), FJ_ETIMEDOUT);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    check_state(pool, 3);
    CHECK_EQ(fj_pool_await_termination(pool, 0), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(busy_pool_is_shut_down_until_its_task_ends, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct held h;

    held_submit(pool, &h);
    check_state(pool, 0);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    check_state(pool, 1);
    CHECK_EQ(fj_pool_await_termination(pool, 1000000), FJ_ETIMEDOUT);
    check_state(pool, 1);
    atomic_store(&h.may_end, 1);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    check_state(pool, 3);
    CHECK_EQ(fj_join(&h.task), FJ_OK);
    CHECK_EQ(atomic_load(&h.stopping_before), 0);
    fjt_destroy(pool);
}

FJ_TEST(stopped_pool_is_terminating_until_its_task_ends, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct held h;

    held_submit(pool, &h);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    check_state(pool, 2);
    CHECK_EQ(fj_pool_await_termination(pool, 1000000), FJ_ETIMEDOUT);
    check_state(pool, 2);
    atomic_store(&h.may_end, 1);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    check_state(pool, 3);
    CHECK_EQ(fj_join(&h.task), FJ_OK);
    CHECK_EQ(atomic_load(&h.stopping_before), 0);
    CHECK_EQ(atomic_load(&h.stopping_after), 1);
    fjt_destroy(pool);
}

FJ_TEST(shutdown_may_be_called_again_and_made_harder, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct held h;

    held_submit(pool, &h);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    check_state(pool, 1);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    check_state(pool, 2);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    check_state(pool, 2);
    atomic_store(&h.may_end, 1);
    CHECK_EQ(fj_pool_close(pool), FJ_OK);
    check_state(pool, 3);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK_EQ(fj_pool_close(pool), FJ_OK);
    check_state(pool, 3);
    fjt_destroy(pool);
}

FJ_TEST(await_termination_waits_as_long_as_it_says, 20)
{
    static const int64_t none[] = {0, -1, INT64_MIN};
    fj_pool *pool = fjt_pool(1, 0);
    struct held h;

    held_submit(pool, &h);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(fj_pool_await_termination(pool, none[i]), FJ_ETIMEDOUT);
    for (int64_t ns = 1000000; ns <= 20000000; ns *= 3) {
        int64_t start = fjt_now();
        CHECK_EQ(fj_pool_await_termination(pool, ns), FJ_ETIMEDOUT);
        CHECK(fjt_now() - start >= ns);
    }
    atomic_store(&h.may_end, 1);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER - 1), FJ_OK);
    fjt_destroy(pool);
}

static void *await_in_thread(void *pool)
{
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    return NULL;
}

FJ_TEST(everybody_who_waits_for_the_end_sees_it, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    pthread_t threads[8];
    struct held h;

    held_submit(pool, &h);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, await_in_thread, pool), 0);
    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    fjt_sleep_us(1000);
    atomic_store(&h.may_end, 1);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    fjt_destroy(pool);
}

/* ---- Calls by a worker of the pool ----------------------------------------------------------- */

static void end_from_inside(void *arg)
{
    fj_pool *pool = arg;

    CHECK_EQ(fj_pool_close(pool), FJ_EDEADLK);
    CHECK_EQ(fj_pool_destroy(pool), FJ_EDEADLK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_EDEADLK);
    CHECK_EQ(fj_pool_await_termination(pool, 0), FJ_EDEADLK);
    CHECK(!fj_pool_is_shutdown(pool));
}

FJ_TEST(worker_cannot_wait_for_the_end_of_its_pool, 10)
{
    fj_pool *pool = fjt_pool(2, 0), *helped = fjt_pool(2, FJ_POOL_CALLER_HELPS);
    struct inside i = {.body = end_from_inside, .arg = helped};

    inside(pool, end_from_inside, pool);
    fj_task_init(&i.task, inside_run);
    CHECK_EQ(fj_invoke_mode(helped, &i.task, FJ_CALLER_HELPS), FJ_OK); /* as a guest */
    fjt_destroy(pool);
    fjt_destroy(helped);
}

static void shutdown_from_inside(void *arg)
{
    fj_pool *pool = arg;
    fj_task t;

    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    check_state(pool, 1);
    fj_task_init(&t, ok_run);
    fj_fork(&t);
    CHECK_EQ(fj_join(&t), FJ_OK);
    CHECK(!fj_is_stopping());
}

FJ_TEST(worker_may_shut_its_pool_down_and_go_on, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(2, flags);
        inside(pool, shutdown_from_inside, pool);
        CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
        fjt_destroy(pool);
    }
}

static void destroy_other(void *arg)
{
    CHECK_EQ(fj_pool_destroy(arg), FJ_OK);
}

FJ_TEST(worker_may_end_another_pool, 10)
{
    fj_pool *pool = fjt_pool(1, 0), *other = NULL;
    fj_pool_options o = {0};
    fj_task t;

    o.parallelism = 2;
    CHECK_EQ(fj_pool_create(&other, &o), FJ_OK);
    fj_task_init(&t, ok_run);
    CHECK_EQ(fj_invoke(other, &t), FJ_OK);
    inside(pool, destroy_other, other);
    fjt_destroy(pool);
}

/* ---- NULL and the common pool --------------------------------------------------------------- */

FJ_TEST(ending_no_pool, 10)
{
    CHECK_EQ(fj_pool_destroy(NULL), FJ_OK);
    CHECK_EQ(fj_pool_shutdown(NULL), FJ_EINVAL);
    CHECK_EQ(fj_pool_shutdown_now(NULL), FJ_EINVAL);
    CHECK_EQ(fj_pool_close(NULL), FJ_EINVAL);
}

FJ_TEST(common_pool_does_not_end, 10)
{
    fj_pool *common = fj_common_pool();
    fj_task t;

    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_pool_shutdown(common), FJ_ENOTSUP);
        CHECK_EQ(fj_pool_shutdown_now(common), FJ_ENOTSUP);
        CHECK_EQ(fj_pool_close(common), FJ_ENOTSUP);
        CHECK_EQ(fj_pool_destroy(common), FJ_ENOTSUP);
        CHECK_EQ(fj_pool_await_termination(common, 0), FJ_ETIMEDOUT);
        CHECK_EQ(fj_pool_await_termination(NULL, 1000000), FJ_ETIMEDOUT);
        CHECK_EQ(fj_pool_await_termination(common, FJ_FOREVER), FJ_ETIMEDOUT);
        check_state(common, 0);
        check_state(NULL, 0);
        fj_task_init(&t, ok_run);
        CHECK_EQ(fj_invoke(common, &t), FJ_OK);
    }
}

/* ---- Many pools ------------------------------------------------------------------------------ */

FJ_TEST(pools_come_and_go, 60)
{
    for (long i = fjt_rounds(300); i-- > 0;) {
        fj_pool *pool = fjt_pool((int)(i % 4) + 1, (unsigned)(i % 8));
        fj_task t[3];
        for (int k = 0; k < 3; k++) {
            fj_task_init(&t[k], ok_run);
            if (k < i % 4) CHECK_EQ(fj_submit(pool, &t[k]), FJ_OK);
        }
        for (int k = 0; k < 3 && i % 2 == 0; k++)
            if (k < i % 4) CHECK_EQ(fj_join(&t[k]), FJ_OK);
        fjt_destroy(pool);
    }
}

FJ_TEST(many_pools_live_side_by_side, 30)
{
    fj_pool *pools[30];
    fj_task t;

    fj_task_init(&t, ok_run);
    for (int i = 0; i < 30; i++) pools[i] = fjt_pool(2, 0);
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < 30; i++) CHECK_EQ(fj_invoke(pools[i], &t), FJ_OK);
    for (int i = 0; i < 30; i++) fjt_destroy(pools[(i * 7) % 30]);
}
