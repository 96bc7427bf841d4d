/* SPDX-License-Identifier: MIT */
/*
 * graph_omp.c - the graph benchmarks (graph.h) with the `depend` clause of OpenMP
 *
 * OpenMP has no graph that is kept: every run creates all tasks again, in an order in which each
 * task comes after its predecessors.
 */
#include <omp.h>

#include "graph.h"

static int threads;

struct program {
    uint32_t n, *first, *before; /* the predecessors of node i are before[first[i]..first[i + 1]] */
    uint32_t *counters;
    char *done; /* only the addresses are used, for the dependences */
};

static void *build(const struct edges *e, uint32_t *counters)
{
    struct program *p = malloc(sizeof *p);

    p->n = e->nodes;
    p->counters = counters;
    p->first = calloc(e->nodes + 2, sizeof *p->first);
    p->before = malloc((e->n + 1) * sizeof *p->before);
    p->done = calloc(e->nodes, 1);
    for (size_t i = 0; i < e->n; i++) p->first[e->to[i] + 2]++;
    for (uint32_t i = 2; i <= e->nodes; i++) p->first[i] += p->first[i - 1];
    for (size_t i = 0; i < e->n; i++) p->before[p->first[e->to[i] + 1]++] = e->from[i];
    return p;
}

static void run(void *graph)
{
    struct program *p = graph;

#pragma omp parallel num_threads(threads)
#pragma omp single
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t n = p->first[i + 1] - p->first[i];
        const uint32_t *before = p->before + p->first[i];
        char *done = p->done;
        uint32_t *counter = &p->counters[i];
        (void)before, (void)done, (void)n;
#pragma omp task firstprivate(counter) depend(iterator(uint32_t k = 0       \
                                                       : n),                \
                                              in                            \
                                              : done[before[k]]) depend(out \
                                                                        : done[i])
        ++*counter;
    }
}

static void drop(void *graph)
{
    struct program *p = graph;

    free(p->first);
    free(p->before);
    free(p->done);
    free(p);
}

int main(int argc, char **argv)
{
    static const struct contender omp = {"libgomp", build, run, drop};

    threads = argc > 1 ? atoi(argv[1]) : 1;
    return measure_all(&omp, threads, argc > 2 ? argc - 2 : 0, argv + 2);
}
