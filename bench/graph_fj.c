/* SPDX-License-Identifier: MIT */
/*
 * graph_fj.c - the graph benchmarks (graph.h) with fj_graph
 */
#include <forkjoin/graph.h>

#include "graph.h"

static fj_pool *pool;

static void must(int code)
{
    if (code == FJ_OK) return;
    fprintf(stderr, "graph: %s\n", fj_strerror(code));
    exit(1);
}

static int body(fj_node *n, void *arg)
{
    (void)n;
    ++*(uint32_t *)arg;
    return 0;
}

static void *build(const struct edges *e, uint32_t *counters)
{
    fj_node **nodes = malloc(e->nodes * sizeof *nodes);
    fj_graph *g;

    must(fj_graph_create(&g, NULL));
    for (uint32_t i = 0; i < e->nodes; i++)
        must(fj_graph_add(g, body, &counters[i], NULL, &nodes[i]));
    for (size_t i = 0; i < e->n; i++) must(fj_graph_edge(g, nodes[e->from[i]], nodes[e->to[i]]));
    must(fj_graph_check(g));
    free(nodes);
    return g;
}

static void run(void *graph)
{
    must(fj_graph_run(graph, pool));
}

static void drop(void *graph)
{
    must(fj_graph_destroy(graph));
}

int main(int argc, char **argv)
{
    static const struct contender fj = {"forkjoin", build, run, drop};
    int workers = argc > 1 ? atoi(argv[1]) : 1;
    fj_pool_options o = {0};

    o.parallelism = workers;
    must(fj_pool_create(&pool, &o));
    (void)measure_all(&fj, workers, argc > 2 ? argc - 2 : 0, argv + 2);
    must(fj_pool_destroy(pool));
    return 0;
}
