/* SPDX-License-Identifier: MIT */
/*
 * load_task.c - loads of structured tasks and actions
 */
#define _GNU_SOURCE
#include <forkjoin/block.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "load.h"

/* ---- Trees of structured tasks -------------------------------------------------------------- */

struct node {
    fj_task task;
    uint64_t id;
    int depth;
    long size; /* nodes of the tree below, including this one */
    fj_token *token;
    bool stops; /* its pool is stopped meanwhile: tasks that are queued then never run */
};

static int node_run(fj_task *t);

static void node_init(struct node *n, int depth, fj_token *token)
{
    *n = (struct node){.id = ledger_issue(), .depth = depth, .token = token};
    fj_task_init(&n->task, node_run);
}

/* Joins the task in one of three ways. */
static void node_join(struct node *n)
{
    uint32_t how = soak_below(3);

    if (how == 0 && fj_unfork(&n->task)) {
        SOAK_CHECK(node_run(&n->task) == FJ_OK);
        return;
    }
    int code = how == 0 ? fj_join_stolen(&n->task) : fj_join(&n->task);
    SOAK_CHECK(code == FJ_OK || (n->stops && code == FJ_ECANCELED));
    if (n->size == 0) ledger_done(n->id);
}

static int node_run(fj_task *t)
{
    struct node *n = (struct node *)t, child[4];
    int children = n->depth > 0 ? (int)soak_below(5) : 0;

    ledger_done(n->id);
    n->size = 1;
    if (n->token != NULL && soak_below(500) == 0) fj_token_cancel(n->token);
    if (fj_is_cancelled()) return FJ_OK;
    for (int i = 0; i < children; i++) {
        node_init(&child[i], n->depth - 1, n->token);
        child[i].stops = n->stops;
        fj_fork(&child[i].task);
    }
    bool oldest_first = soak_below(4) == 0;
    for (int i = 0; i < children; i++) node_join(&child[oldest_first ? i : children - 1 - i]);
    for (int i = 0; i < children; i++) n->size += child[i].size;
    return FJ_OK;
}

void load_tree(fj_pool *p)
{
    struct node root;

    node_init(&root, 8, NULL);
    if (soak_below(2) == 0) {
        SOAK_CHECK(fj_invoke(p, &root.task) == FJ_OK);
    } else {
        SOAK_CHECK((soak_below(2) ? fj_submit : fj_submit_lazy)(p, &root.task) == FJ_OK);
        SOAK_CHECK(fj_join(&root.task) == FJ_OK);
    }
    SOAK_CHECK(root.size >= 1);
}

void load_token(fj_pool *p)
{
    fj_token token;
    struct node root;

    fj_token_init(&token, NULL);
    node_init(&root, 8, &token);
    SOAK_CHECK(fj_invoke_token(p, &root.task, &token) == FJ_OK);
}

FJ_TASK(long, branch, uint64_t, id, int, depth)
{
    long size = 1;
    branch_task a, b;

    ledger_done(id);
    if (depth == 0 || soak_below(5) == 0) return size;
    branch_fork(FJ, &a, ledger_issue(), depth - 1);
    branch_fork(FJ, &b, ledger_issue(), depth - 1);
    if (soak_below(4) == 0) size += branch_call(FJ, ledger_issue(), depth - 1);
    if (soak_below(4) == 0) {
        size += branch_join(FJ, &a); /* not in the reverse order of the forks */
        return size + branch_join(FJ, &b);
    }
    size += branch_join(FJ, &b);
    return size + branch_join(FJ, &a);
}

void load_typed(fj_pool *p)
{
    long size = 0;

    SOAK_CHECK(branch_invoke(p, &size, ledger_issue(), 9) == FJ_OK);
    SOAK_CHECK(size >= 1);
}

/* ---- Actions -------------------------------------------------------------------------------- */

static int action_run(void *arg)
{
    ledger_done((uint64_t)(uintptr_t)arg);
    return FJ_OK;
}

/* No thread waits for these actions. They are counted at the next rest. */
void load_actions(fj_pool *p)
{
    for (int n = (int)soak_below(400); n > 0; n--)
        SOAK_CHECK(fj_execute(p, action_run, (void *)(uintptr_t)ledger_issue()) == FJ_OK);
}

/* ---- Blocking ------------------------------------------------------------------------------- */

struct waiter {
    fj_task task;
    uint64_t id;
    sem_t *sem;
    pthread_mutex_t *mutex;
    int *guarded;
};

static int waiter_ready(void *sem)
{
    return sem_trywait(sem) == 0;
}

static int waiter_block(void *sem)
{
    return sem_wait(sem) == 0;
}

static int waiter_run(fj_task *t)
{
    struct waiter *w = (struct waiter *)t;

    ledger_done(w->id);
    if (soak_below(2) == 0)
        SOAK_CHECK(fj_block_sem_wait(w->sem, FJ_FOREVER) == FJ_OK);
    else
        SOAK_CHECK(fj_managed_block(waiter_ready, waiter_block, w->sem) == FJ_OK);
    SOAK_CHECK(fj_block_mutex_lock(w->mutex) == FJ_OK);
    ++*w->guarded;
    pthread_mutex_unlock(w->mutex);
    if (soak_below(4) == 0) SOAK_CHECK(fj_sleep_ns((int64_t)soak_below(100) * US) == FJ_OK);
    return FJ_OK;
}

/* The outside thread releases the blocked tasks, one by one. */
void load_blocking(fj_pool *p)
{
    enum { N = 6 };
    struct waiter w[N];
    sem_t sem;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int guarded = 0;

    SOAK_CHECK(sem_init(&sem, 0, 0) == 0);
    for (int i = 0; i < N; i++) {
        w[i] = (struct waiter){
            .id = ledger_issue(), .sem = &sem, .mutex = &mutex, .guarded = &guarded};
        fj_task_init(&w[i].task, waiter_run);
        SOAK_CHECK(fj_submit(p, &w[i].task) == FJ_OK);
    }
    for (int i = 0; i < N; i++) {
        if (soak_below(2) == 0) soak_sleep_us(soak_below(200));
        sem_post(&sem);
    }
    for (int i = 0; i < N; i++) SOAK_CHECK(fj_join(&w[i].task) == FJ_OK);
    SOAK_CHECK(guarded == N);
    sem_destroy(&sem);
}

/* ---- Pools in pools ------------------------------------------------------------------------- */

struct nest {
    fj_task task;
    uint64_t id;
    fj_pool *here, *other;
    int depth;
};

static int nest_run(fj_task *t)
{
    struct nest *n = (struct nest *)t, inner = {.here = n->other, .other = n->here};
    struct node tree;

    ledger_done(n->id);
    node_init(&tree, 3, NULL);
    fj_fork(&tree.task);
    if (n->depth > 0) {
        inner.id = ledger_issue();
        inner.depth = n->depth - 1;
        fj_task_init(&inner.task, nest_run);
        SOAK_CHECK(fj_invoke(inner.here, &inner.task) == FJ_OK);
    }
    return fj_join(&tree.task);
}

void load_nested(fj_pool *p)
{
    struct nest n = {.here = p, .depth = 3};

    n.other = soak_world.pool[soak_below(POOL_LIMITED)];
    n.id = ledger_issue();
    fj_task_init(&n.task, nest_run);
    SOAK_CHECK(fj_invoke(p, &n.task) == FJ_OK);
}

/* ---- The end of a pool ---------------------------------------------------------------------- */

struct burst {
    fj_task task;
    uint64_t id;
};

/* Pushes actions to its own queue, then runs tasks until the pool is quiescent. */
static int burst_run(fj_task *t)
{
    struct burst *b = (struct burst *)t;

    ledger_done(b->id);
    load_actions(fj_current_pool());
    fj_help_quiesce();
    return FJ_OK;
}

void load_quiesce(fj_pool *p)
{
    struct burst b = {.id = ledger_issue()};

    fj_task_init(&b.task, burst_run);
    SOAK_CHECK(fj_invoke(p, &b.task) == FJ_OK);
}

/* Stops a pool that has work. Tasks that have not begun are cancelled; all others are run. */
void load_stop(fj_pool *p)
{
    struct node n[8];

    for (int i = 0; i < 8; i++) {
        node_init(&n[i], 5, NULL);
        n[i].stops = true;
        SOAK_CHECK(fj_submit(p, &n[i].task) == FJ_OK);
    }
    SOAK_CHECK(fj_pool_shutdown_now(p) == FJ_OK);
    for (int i = 0; i < 8; i++) {
        int code = fj_join(&n[i].task);
        SOAK_CHECK(code == FJ_OK || code == FJ_ECANCELED);
        if (n[i].size == 0) ledger_done(n[i].id);
    }
}
