/* SPDX-License-Identifier: MIT */
/*
 * managed.c - waits that are not joins, and the threads that replace waiting workers
 */
#include <errno.h>
#include <forkjoin/block.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fjtest.h"

#define MS ((int64_t)1000000)

/* ---- Two tasks that wait for each other in a pool of one ------------------------------------- */

static sem_t ping, pong;

static int pings(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(sem_post(&ping), 0);
        CHECK_EQ(fj_block_sem_wait(&pong, FJ_FOREVER), FJ_OK);
    }
    return FJ_OK;
}

static int pongs(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(fj_block_sem_wait(&ping, FJ_FOREVER), FJ_OK);
        CHECK_EQ(sem_post(&pong), 0);
    }
    return FJ_OK;
}

FJ_TEST(tasks_that_wait_for_each_other_finish_in_a_pool_of_one, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *a, *b;

    sem_init(&ping, 0, 0);
    sem_init(&pong, 0, 0);
    CHECK_EQ(fj_submit_action(p, pings, NULL, NULL, &a), FJ_OK);
    CHECK_EQ(fj_submit_action(p, pongs, NULL, NULL, &b), FJ_OK);
    CHECK_EQ(fj_future_join(a), FJ_OK);
    CHECK_EQ(fj_future_join(b), FJ_OK);
    fj_future_unref(a);
    fj_future_unref(b);
    fjt_destroy(p);
}

/* ---- The callback form ----------------------------------------------------------------------- */

struct gate {
    atomic_int open, asked, blocked;
    int give_up;
};

static int gate_ready(void *arg)
{
    struct gate *g = arg;
    atomic_fetch_add(&g->asked, 1);
    return atomic_load(&g->open);
}

static int gate_block(void *arg)
{
    struct gate *g = arg;
    atomic_fetch_add(&g->blocked, 1);
    fjt_sleep_us(200);
    return g->give_up;
}

static int gate_wait(void *arg)
{
    return fj_managed_block(gate_ready, gate_block, arg);
}

FJ_TEST(managed_block_asks_before_it_blocks, 20)
{
    fj_pool *p = fjt_pool(1, 0);
    struct gate g = {.open = 1};
    fj_future *f;

    CHECK_EQ(fj_managed_block(NULL, gate_block, &g), FJ_EINVAL);
    CHECK_EQ(gate_wait(&g), FJ_OK);
    CHECK_EQ(atomic_load(&g.asked), 1);
    CHECK_EQ(atomic_load(&g.blocked), 0);
    atomic_store(&g.open, 0);
    g.give_up = -7;
    CHECK_EQ(gate_wait(&g), -7);
    g.give_up = 0;
    CHECK_EQ(fj_submit_action(p, gate_wait, &g, NULL, &f), FJ_OK);
    while (atomic_load(&g.blocked) < 4) fjt_sleep_us(50);
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fj_future_unref(f);
    fjt_destroy(p);
}

/* ---- The limit of threads -------------------------------------------------------------------- */

static atomic_int refused, waiting;
static atomic_int may_go;

static int says_no(fj_pool *p, void *arg)
{
    (void)p;
    (void)arg;
    return 0;
}

static int blocks_if_it_may(void *arg)
{
    fj_blocking b;
    int err = fj_block_begin(&b);

    (void)arg;
    if (err == FJ_ESATURATED) {
        atomic_fetch_add(&refused, 1);
        return FJ_OK;
    }
    CHECK_EQ(err, FJ_OK);
    atomic_fetch_add(&waiting, 1);
    while (!atomic_load(&may_go)) fjt_sleep_us(50);
    fj_block_end(&b);
    return FJ_OK;
}

FJ_TEST(at_the_limit_the_callback_decides, 30)
{
    for (int asks = 0; asks < 2; asks++) {
        fj_pool_options o = {0};
        o.parallelism = 2;
        o.max_threads = 3;
        o.min_runnable = 2;
        if (asks) o.allow_saturation = says_no;
        fj_pool *p = fjt_pool_with(&o);
        atomic_store(&refused, 0);
        atomic_store(&waiting, 0);
        atomic_store(&may_go, 0);
        for (int i = 0; i < 6; i++) CHECK_EQ(fj_execute(p, blocks_if_it_may, NULL), FJ_OK);
        while (atomic_load(&waiting) + atomic_load(&refused) < 3) fjt_sleep_us(50);
        if (asks)
            while (atomic_load(&refused) < 1) fjt_sleep_us(50);
        CHECK(fj_pool_thread_count(p) <= 3);
        atomic_store(&may_go, 1);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&waiting) + atomic_load(&refused), 6);
        if (!asks) CHECK_EQ(atomic_load(&refused), 0);
        fjt_destroy(p);
    }
}

/* ---- The wrappers ---------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn, count;

static int takes_turns(void *arg)
{
    int me = (int)(intptr_t)arg;

    for (int i = 0; i < 200; i++) {
        CHECK_EQ(fj_block_mutex_lock(&mutex), FJ_OK);
        while (turn != me) CHECK_EQ(fj_block_cond_wait(&cond, &mutex, FJ_FOREVER), FJ_OK);
        count++;
        turn = (me + 1) % 4;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    }
    return FJ_OK;
}

FJ_TEST(mutex_and_condition_in_a_pool_of_one, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f[4];

    for (int i = 0; i < 4; i++)
        CHECK_EQ(fj_submit_action(p, takes_turns, (void *)(intptr_t)i, NULL, &f[i]), FJ_OK);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(fj_future_join(f[i]), FJ_OK);
        fj_future_unref(f[i]);
    }
    CHECK_EQ(count, 800);
    CHECK_EQ(fj_block_mutex_lock(&mutex), FJ_OK);
    CHECK_EQ(fj_block_cond_wait(&cond, &mutex, 2 * MS), FJ_ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    fjt_destroy(p);
}

static int pipes[2];
static atomic_int polled;

static int reads(void *arg)
{
    char c = 0;
    struct pollfd pfd = {.fd = pipes[0], .events = POLLIN};

    (void)arg;
    CHECK_EQ(fj_block_poll(&pfd, 1, 2 * MS), 0);
    atomic_store(&polled, 1);
    CHECK_EQ(fj_block_read(pipes[0], &c, 1), 1);
    return c;
}

static int writes(void *arg)
{
    (void)arg;
    while (!atomic_load(&polled)) fjt_sleep_us(50);
    fjt_sleep_us(1000); /* usually the other task is in its read by now */
    CHECK_EQ(fj_block_write(pipes[1], "x", 1), 1);
    return FJ_OK;
}

FJ_TEST(files_in_a_pool_of_one, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *a, *b;

    CHECK_EQ(pipe(pipes), 0);
    CHECK_EQ(fj_submit_action(p, reads, NULL, NULL, &a), FJ_OK);
    CHECK_EQ(fj_submit_action(p, writes, NULL, NULL, &b), FJ_OK);
    CHECK_EQ(fj_future_join(a), 'x');
    CHECK_EQ(fj_future_join(b), FJ_OK);
    fj_future_unref(a);
    fj_future_unref(b);
    errno = 77;
    CHECK_EQ(fj_block_read(-1, &a, 1), -EBADF);
    CHECK_EQ(errno, 77);
    fjt_destroy(p);
}

FJ_TEST(sleep_sleeps, 20)
{
    int64_t start = fjt_now();

    CHECK_EQ(fj_sleep_ns(3 * MS), FJ_OK);
    CHECK(fjt_now() - start >= 3 * MS);
    CHECK_EQ(fj_sleep_ns(-1), FJ_OK);
    CHECK_EQ(fj_block_sem_wait(&(sem_t){0}, 0), FJ_ETIMEDOUT);
}
