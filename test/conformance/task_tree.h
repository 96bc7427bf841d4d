/* SPDX-License-Identifier: MIT */
/*
 * task_tree.h - nodes of a tree of futures that their children complete
 *
 * task.c and task8.c include this file and define node_run(), the body of a node. They differ in
 * how a child reports to its parent.
 */
#ifndef TASK_TREE_H
#define TASK_TREE_H

#include "future_checks.h"

struct node {
    fj_future f;
    struct node *parent;
    int n, fails;
    atomic_int begun;
    /* One for each child, and one for the library, or for the test if this is a root. */
    atomic_int refs;
    atomic_int arrived; /* task.c: number of children that are done */
    atomic_long sum;    /* task.c: sum of the results of the children */
    long given[2];      /* task8.c: results of the left and the right child */
};

static atomic_int nodes_alive;

static int node_run(fj_task *t);

/* A node stays as long as any node below it, because those may outlive the wait for the root. */
static inline void node_unref(struct node *x)
{
    while (x != NULL && atomic_fetch_sub(&x->refs, 1) == 1) {
        struct node *parent = x->parent;
        free(x);
        atomic_fetch_sub(&nodes_alive, 1);
        x = parent;
    }
}

static inline void node_released(fj_future *f)
{
    node_unref((struct node *)f);
}

static inline struct node *node_make(struct node *parent, int n, int fails)
{
    struct node *x = calloc(1, sizeof *x);

    CHECK(x != NULL);
    fj_future_init(&x->f, node_run);
    CHECK_EQ(fj_future_tag(&x->f), 0);
    x->parent = parent;
    x->n = n;
    x->fails = fails;
    atomic_init(&x->refs, 1);
    atomic_fetch_add(&nodes_alive, 1);
    if (parent != NULL) {
        atomic_fetch_add(&parent->refs, 1);
        fj_future_set_release_fn(&x->f, node_released);
    }
    return x;
}

/* ---- The functions of a kind ------------------------------------------------------------ */

static inline fj_future *node_make_root(int n, int fails)
{
    return &node_make(NULL, n, fails)->f;
}

static inline int node_begun(const fj_future *f)
{
    return atomic_load(&((struct node *)(uintptr_t)f)->begun);
}

static inline void node_drop(fj_future *f)
{
    fj_future_fini(f);
    node_unref((struct node *)f);
}

#endif /* TASK_TREE_H */
