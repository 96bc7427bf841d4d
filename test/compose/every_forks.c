/* SPDX-License-Identifier: MIT */
/*
 * every_forks.c - forks and joins in the function of a broadcast, with older tasks in the queues
 */
#include <sys/wait.h>
#include <unistd.h>

#include "every.h"

/* ---- Forks in fn ----------------------------------------------------------------------------- */

static atomic_int inner_runs;

FJ_TASK(long, inner_fib, int, n)
{
    inner_fib_task a;

    CHECK(atomic_load(&stopped) > 0);
    atomic_fetch_add(&inner_runs, 1);
    if (n < 2) return n;
    inner_fib_fork(FJ, &a, n - 1);
    long b = inner_fib_call(FJ, n - 2);
    return inner_fib_join(FJ, &a) + b;
}

struct inner {
    fj_task task;
    int n;
    long sum;
};

static int inner_run(fj_task *t)
{
    struct inner *i = (struct inner *)t, a, b;

    CHECK(atomic_load(&stopped) > 0);
    if (i->n < 2) {
        i->sum = i->n;
        return FJ_OK;
    }
    a.n = i->n - 1;
    b.n = i->n - 2;
    fj_task_init(&a.task, inner_run);
    fj_task_init(&b.task, inner_run);
    fj_fork(&a.task);
    fj_fork(&b.task);
    if (i->n % 2 == 0) { /* out of order: tombstones */
        CHECK_EQ(fj_join(&a.task), FJ_OK);
        CHECK_EQ(fj_join(&b.task), FJ_OK);
    } else {
        CHECK_EQ(fj_join(&b.task), FJ_OK);
        CHECK_EQ(fj_join(&a.task), FJ_OK);
    }
    i->sum = a.sum + b.sum;
    return FJ_OK;
}

static atomic_int left_actions;

static int left_action(void *arg)
{
    (void)arg;
    atomic_fetch_add(&left_actions, 1);
    return FJ_OK;
}

static int forks_inside(void *arg)
{
    struct inner root = {.n = 9};
    long sum = 0;

    atomic_fetch_add(&stopped, 1);
    fj_task_init(&root.task, inner_run);
    CHECK_EQ(fj_invoke(fj_current_pool(), &root.task), FJ_OK);
    CHECK_EQ(root.sum, 34);
    CHECK_EQ(inner_fib_invoke(fj_current_pool(), &sum, 9), FJ_OK);
    CHECK_EQ(sum, 34);
    if (arg != NULL)
        for (int i = 0; i < 3; i++)
            CHECK_EQ(fj_execute(fj_current_pool(), left_action, NULL), FJ_OK);
    atomic_fetch_sub(&stopped, 1);
    return FJ_OK;
}

/* A tree of plain tasks. At some nodes, with tasks queued below, a broadcast begins. */
struct tree {
    fj_task task;
    int depth;
    long nodes;
};

static atomic_int asked;

static int tree_run(fj_task *t)
{
    struct tree *n = (struct tree *)t, a, b;
    int id = atomic_fetch_add(&asked, 1);

    CHECK_EQ(atomic_load(&stopped), 0);
    n->nodes = 1;
    fj_safepoint();
    if (n->depth == 0) return FJ_OK;
    a.depth = b.depth = n->depth - 1;
    fj_task_init(&a.task, tree_run);
    fj_task_init(&b.task, tree_run);
    fj_fork(&a.task);
    if (id % 3 == 0) CHECK_EQ(fj_execute(fj_current_pool(), left_action, NULL), FJ_OK);
    fj_fork(&b.task);
    if (id % 7 == 0) CHECK_EQ(fj_broadcast(fj_current_pool(), forks_inside, &id), FJ_OK);
    CHECK_EQ(fj_join(id % 2 ? &a.task : &b.task), FJ_OK);
    if (id % 11 == 0) CHECK_EQ(fj_broadcast(fj_current_pool(), forks_inside, NULL), FJ_OK);
    CHECK_EQ(fj_join(id % 2 ? &b.task : &a.task), FJ_OK);
    n->nodes += a.nodes + b.nodes;
    return FJ_OK;
}

FJ_TASK(long, typed_tree, int, depth)
{
    typed_tree_task a, b;
    int id = atomic_fetch_add(&asked, 1);

    CHECK_EQ(atomic_load(&stopped), 0);
    fj_safepoint();
    if (depth == 0) return 1;
    typed_tree_fork(FJ, &a, depth - 1);
    typed_tree_fork(FJ, &b, depth - 1);
    if (id % 7 == 0) CHECK_EQ(fj_broadcast(fj_current_pool(), forks_inside, &id), FJ_OK);
    long n = 1 + typed_tree_join(FJ, &b);
    if (id % 5 == 0) CHECK_EQ(fj_execute(fj_current_pool(), left_action, NULL), FJ_OK);
    if (id % 11 == 0) CHECK_EQ(fj_broadcast(fj_current_pool(), forks_inside, NULL), FJ_OK);
    return n + typed_tree_join(FJ, &a);
}

static void tree_inside(void *arg)
{
    struct tree root = {.depth = 7};
    long nodes = 0;

    (void)arg;
    atomic_store(&asked, (int)(fjt_seed() % 100000)); /* which nodes ask, and in which order */
    fj_task_init(&root.task, tree_run);
    CHECK_EQ(fj_invoke(fj_current_pool(), &root.task), FJ_OK);
    CHECK_EQ(root.nodes, 255);
    CHECK_EQ(typed_tree_invoke(fj_current_pool(), &nodes, 7), FJ_OK);
    CHECK_EQ(nodes, 255);
}

FJ_TEST(fn_forks_and_joins_while_older_tasks_are_queued, 60)
{
    for (long i = fjt_rounds(2); i > 0; i--) inside_pools(tree_inside, NULL);
}

FJ_TEST(several_workers_ask_at_once_at_any_depth, 60)
{
    fj_pool *pool = pool_of(3, 0);
    struct tree roots[3];

    for (long i = fjt_rounds(10); i > 0; i--) {
        for (int k = 0; k < 3; k++) {
            roots[k].depth = 6;
            fj_task_init(&roots[k].task, tree_run);
            CHECK_EQ(fj_submit(pool, &roots[k].task), FJ_OK);
        }
        for (int k = 0; k < 3; k++) CHECK_EQ(fj_join(&roots[k].task), FJ_OK);
        for (int k = 0; k < 3; k++) CHECK_EQ(roots[k].nodes, 127);
    }
    fjt_destroy(pool);
}

FJ_TEST(actions_that_fn_submits_all_run, 20)
{
    EACH_KIND(flags)
    {
        fj_pool *pool = pool_of(2, flags);
        crowd_begin(pool, 2, wait_busy);
        atomic_store(&left_actions, 0);
        for (int i = 0; i < 10; i++) CHECK_EQ(fj_broadcast(pool, forks_inside, pool), FJ_OK);
        crowd_end(pool);
        CHECK_EQ(atomic_load(&left_actions), 2 * 3 * 10);
        fjt_destroy(pool);
    }
}

/* ---- fork() of the process ------------------------------------------------------------------- */

static __thread int forks_process;
static int child;

static int fork_in_fn(void *arg)
{
    (void)arg;
    if (forks_process) child = fork();
    return FJ_OK;
}

static int small_leaf(fj_task *t)
{
    (void)t;
    return 9;
}

static void forks_in_a_broadcast(void *arg)
{
    struct visit v = visit_new();
    fj_task leaf;
    int status;

    (void)arg;
    fj_task_init(&leaf, small_leaf);
    fj_fork(&leaf);
    forks_process = 1;
    CHECK_EQ(fj_broadcast(fj_current_pool(), fork_in_fn, NULL), FJ_OK);
    forks_process = 0;
    CHECK(child >= 0);
    int code = fj_join(&leaf);
    if (child == 0) {
        /* The leaf was hidden in the queue of this thread, or a thief of the parent has it. */
        CHECK(code == 9 || code == FJ_ECANCELED);
        CHECK_EQ(fj_broadcast(fj_current_pool(), visits, &v), FJ_OK);
        CHECK(atomic_load(&v.calls) >= 1);
        _exit(7);
    }
    CHECK_EQ(code, 9);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK_EQ(fj_broadcast(fj_current_pool(), visits, &v), FJ_OK);
}

FJ_TEST(fn_may_fork_the_process, 20)
{
    for (long i = fjt_rounds(5); i > 0; i--) inside_pools(forks_in_a_broadcast, NULL);
}
