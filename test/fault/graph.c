/* SPDX-License-Identifier: MIT */
/*
 * graph.c - graphs while memory and threads are refused, one request after the other
 */
#include <forkjoin/graph.h>
#include <stdatomic.h>

#include "sweep.h"

enum { WIDE = 80 };

struct growing {
    atomic_int runs, added;
};

static int counts(fj_node *n, void *arg)
{
    struct growing *gr = arg;

    (void)n;
    atomic_fetch_add(&gr->runs, 1);
    return 0;
}

/* Adds a node behind itself, or does not if that is refused. */
static int grows(fj_node *n, void *arg)
{
    struct growing *gr = arg;
    fj_node *child;
    int err;

    CHECK_MAY(err = fj_graph_add(fj_node_graph(n), counts, gr, "child", &child));
    if (err == FJ_OK) CHECK_MAY(err = fj_graph_edge(fj_node_graph(n), n, child));
    if (err == FJ_OK) atomic_fetch_add(&gr->added, 1);
    return counts(n, arg);
}

/* Builds a graph of WIDE nodes between two others, or a part of it. Returns how many nodes run. */
static int build(fj_graph *g, struct growing *gr)
{
    fj_node *first, *last, *n;
    int nodes = 0, err;

    CHECK_MAY(err = fj_graph_add(g, grows, gr, "first", &first));
    if (err != FJ_OK) return nodes;
    nodes++;
    CHECK_MAY(err = fj_graph_add(g, counts, gr, "last", &last));
    if (err != FJ_OK) return nodes;
    nodes++;
    for (int i = 0; i < WIDE; i++) {
        CHECK_MAY(err = fj_graph_add(g, counts, gr, NULL, &n));
        if (err != FJ_OK) continue;
        nodes++;
        CHECK_MAY(fj_graph_edge(g, first, n));
        CHECK_MAY(fj_graph_edge(g, n, last));
    }
    return nodes;
}

static void run(int round)
{
    fj_pool_options o = {.parallelism = 2};
    fj_graph_options how = {.name = "refused", .flags = FJ_GRAPH_GROWS};
    struct growing gr = {0};
    fj_pool *pool;
    fj_graph *g = NULL;
    int err;

    (void)round;
    CHECK_MAY(err = fj_pool_create(&pool, &o));
    if (err != FJ_OK) return;
    CHECK_MAY(err = fj_graph_create(&g, &how));
    CHECK_EQ(g != NULL, err == FJ_OK);
    if (g != NULL) {
        int nodes = build(g, &gr);
        for (int i = 0; i < 2; i++) {
            atomic_store(&gr.runs, 0);
            CHECK_MAY(err = fj_graph_run(g, pool));
            /* A node whose edge was refused runs only from the next run on. */
            if (err == FJ_OK) CHECK(atomic_load(&gr.runs) >= nodes);
        }
        calm();
        atomic_store(&gr.added, 0);
        atomic_store(&gr.runs, 0);
        CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
        CHECK_EQ(atomic_load(&gr.added), nodes > 0);
        CHECK(atomic_load(&gr.runs) >= nodes + atomic_load(&gr.added));
        CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    }
    CHECK_EQ(fj_pool_destroy(pool), FJ_OK);
}

FJ_TEST(graph_is_built_and_run_whatever_is_refused, 60)
{
    sweep("graph", run);
}
