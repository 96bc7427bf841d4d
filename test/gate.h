/* SPDX-License-Identifier: MIT */
/*
 * gate.h - a gate, and every way in which a task can wait until it is open
 *
 * Each of these waits blocks its worker, so the pool has to let another worker run meanwhile.
 */
#ifndef GATE_H
#define GATE_H

#include <forkjoin/block.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "fjtest.h"

struct gate {
    atomic_int open;
    sem_t sem, keep;       /* keep: posted to make `holder` unlock the mutex */
    pthread_mutex_t lock;  /* held while the gate is closed */
    pthread_mutex_t guard; /* for the condition variable */
    pthread_cond_t changed;
    fj_future future, other; /* both have no body; `other` stays open until the end */
    int pipe[2];             /* -1: no pipe */
    fj_pool *pool;           /* another pool, or NULL */
    pthread_t holder;
};

/* Holds the mutex until the gate is opened. */
static inline void *gate_hold(void *arg)
{
    struct gate *g = arg;

    pthread_mutex_lock(&g->lock);
    sem_post(&g->sem);
    while (sem_wait(&g->keep) != 0) {}
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static inline void gate_close(struct gate *g, bool files, fj_pool *pool)
{
    memset(g, 0, sizeof *g);
    sem_init(&g->sem, 0, 0);
    sem_init(&g->keep, 0, 0);
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->guard, NULL);
    pthread_cond_init(&g->changed, NULL);
    fj_future_init(&g->future, NULL);
    fj_future_init(&g->other, NULL);
    g->pipe[0] = g->pipe[1] = -1;
    if (files) CHECK_EQ(pipe(g->pipe), 0);
    g->pool = pool;
    CHECK_EQ(pthread_create(&g->holder, NULL, gate_hold, g), 0);
    while (sem_wait(&g->sem) != 0) {}
}

/* Opens the gate for this number of waiting tasks. */
static inline void gate_open(struct gate *g, int waiters)
{
    pthread_mutex_lock(&g->guard);
    atomic_store(&g->open, 1);
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->guard);
    for (int i = 0; i < waiters; i++) sem_post(&g->sem);
    sem_post(&g->keep);
    if (g->pipe[1] >= 0) CHECK_EQ(write(g->pipe[1], "................", (size_t)waiters), waiters);
    (void)fj_future_complete(&g->future, NULL);
}

/* Frees the gate. All waits have ended. */
static inline void gate_end(struct gate *g)
{
    pthread_join(g->holder, NULL);
    (void)fj_future_cancel(&g->other, 0);
    fj_future_fini(&g->future);
    fj_future_fini(&g->other);
    if (g->pipe[0] >= 0) {
        close(g->pipe[0]);
        close(g->pipe[1]);
    }
}

/* ---- The waits ------------------------------------------------------------------------------- */

static inline int gate_ready(void *arg)
{
    return atomic_load(&((struct gate *)arg)->open);
}

static inline int gate_try(void *arg)
{
    return sem_trywait(&((struct gate *)arg)->sem) == 0;
}

/* A block function that returns soon. */
static inline int gate_nap(void *arg)
{
    fjt_sleep_us(200);
    return gate_ready(arg);
}

/* A block function that returns only when the gate is open. */
static inline int gate_sem(void *arg)
{
    while (sem_wait(&((struct gate *)arg)->sem) != 0) {}
    return 1;
}

static inline void gate_by_short_blocks(struct gate *g)
{
    CHECK_EQ(fj_managed_block(gate_ready, gate_nap, g), FJ_OK);
}

static inline void gate_by_one_block(struct gate *g)
{
    CHECK_EQ(fj_managed_block(gate_try, gate_sem, g), FJ_OK);
}

static inline void gate_by_begin_and_end(struct gate *g)
{
    fj_blocking b;

    CHECK_EQ(fj_block_begin(&b), FJ_OK);
    (void)gate_sem(g);
    fj_block_end(&b);
}

static inline void gate_by_semaphore(struct gate *g)
{
    CHECK_EQ(fj_block_sem_wait(&g->sem, FJ_FOREVER), FJ_OK);
}

static inline void gate_by_mutex(struct gate *g)
{
    CHECK_EQ(fj_block_mutex_lock(&g->lock), FJ_OK);
    pthread_mutex_unlock(&g->lock);
}

static inline void gate_by_condition(struct gate *g)
{
    pthread_mutex_lock(&g->guard);
    while (!atomic_load(&g->open))
        CHECK_EQ(fj_block_cond_wait(&g->changed, &g->guard, FJ_FOREVER), FJ_OK);
    pthread_mutex_unlock(&g->guard);
}

static inline void gate_by_sleeping(struct gate *g)
{
    while (!atomic_load(&g->open)) CHECK_EQ(fj_sleep_ns(20000000), FJ_OK);
}

static inline void gate_by_get(struct gate *g)
{
    CHECK_EQ(fj_future_get(&g->future, FJ_FOREVER, NULL), FJ_OK);
}

static inline void gate_by_join(struct gate *g)
{
    CHECK_EQ(fj_future_join(&g->future), FJ_OK);
}

static inline void gate_by_timed_get(struct gate *g)
{
    CHECK_EQ(fj_future_get(&g->future, 3600 * (int64_t)1000000000, NULL), FJ_OK);
}

static inline void gate_by_any(struct gate *g)
{
    fj_future *both[2] = {&g->other, &g->future};
    size_t which;

    CHECK_EQ(fj_future_wait_any(both, 2, FJ_FOREVER, &which), FJ_OK);
    CHECK_EQ(which, 1);
}

static inline int gate_elsewhere_run(fj_task *t);

struct gate_elsewhere {
    fj_task task;
    struct gate *gate;
};

static inline int gate_elsewhere_run(fj_task *t)
{
    return fj_future_join(&((struct gate_elsewhere *)t)->gate->future);
}

static inline void gate_by_another_pool(struct gate *g)
{
    struct gate_elsewhere e = {.gate = g};

    if (g->pool == NULL) return;
    fj_task_init(&e.task, gate_elsewhere_run);
    CHECK_EQ(fj_invoke(g->pool, &e.task), FJ_OK);
}

static inline void gate_by_read(struct gate *g)
{
    char c;

    if (g->pipe[0] >= 0) CHECK_EQ(fj_block_read(g->pipe[0], &c, 1), 1);
}

static inline void gate_by_poll(struct gate *g)
{
    struct pollfd one = {.fd = g->pipe[0], .events = POLLIN};

    if (g->pipe[0] >= 0) CHECK_EQ(fj_block_poll(&one, 1, FJ_FOREVER), 1);
}

static void (*const gate_waits[])(struct gate *g) = {
    gate_by_short_blocks, gate_by_one_block, gate_by_begin_and_end, gate_by_semaphore,
    gate_by_mutex,        gate_by_condition, gate_by_sleeping,      gate_by_get,
    gate_by_join,         gate_by_any,       gate_by_another_pool,  gate_by_timed_get,
    gate_by_read,         gate_by_poll,
};

#define GATE_WAITS ((int)(sizeof gate_waits / sizeof gate_waits[0]))
/* The waits that the simulator can run. They use no files, and no limit that its clock may pass. */
#define GATE_WAITS_SIMULATED (GATE_WAITS - 3)

#endif /* GATE_H */
