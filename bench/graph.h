/* SPDX-License-Identifier: MIT */
/*
 * graph.h - the graphs and the measuring loop of the graph benchmarks, for C and C++
 *
 * Each program implements struct contender for its runtime. It is called as
 *
 *     PROGRAM WORKERS [GRAPH...]
 *
 * and prints one line for each graph:
 *
 *     RUNTIME GRAPH WORKERS nodes N edges E build B first F run R
 *
 *   build  time per node to build the graph from a list of edges, ns
 *   first  time per node of the first run, ns; it contains what the runtime puts off until then
 *   run    time per node of the fastest further run of the same graph, ns
 *
 * The body of a node increments a counter of that node. The program checks at the end that each body
 * ran once in each run.
 */
#ifndef BENCH_GRAPH_H
#define BENCH_GRAPH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct edges {
    const char *name;
    uint32_t nodes;
    size_t n;
    uint32_t *from, *to;
};

struct contender {
    const char *name;
    void *(*build)(const struct edges *e, uint32_t *counters);
    void (*run)(void *graph);
    void (*drop)(void *graph);
};

static inline double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void edge(struct edges *e, uint32_t from, uint32_t to)
{
    e->from[e->n] = from;
    e->to[e->n++] = to;
}

static inline uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Each node leads to the next one. */
static inline void make_chain(struct edges *e)
{
    e->nodes = 1000000;
    for (uint32_t i = 0; i + 1 < e->nodes; i++) edge(e, i, i + 1);
}

/* Each node leads to two others. */
static inline void make_tree(struct edges *e)
{
    e->nodes = (1u << 20) - 1;
    for (uint32_t i = 1; i < e->nodes; i++) edge(e, (i - 1) / 2, i);
}

/* Each node of a square leads to the node on its right and the node below. */
static inline void make_wavefront(struct edges *e)
{
    const uint32_t n = 512;

    e->nodes = n * n;
    for (uint32_t i = 0; i < n * n; i++) {
        if (i % n + 1 < n) edge(e, i, i + 1);
        if (i + n < n * n) edge(e, i, i + n);
    }
}

/* A million edges between random nodes, from the lower to the higher number. */
static inline void make_random(struct edges *e)
{
    uint64_t x = 88172645463325252ull;

    e->nodes = 100000;
    while (e->n < 1000000) {
        uint32_t a = (uint32_t)(next_random(&x) % e->nodes);
        uint32_t b = (uint32_t)(next_random(&x) % e->nodes);
        if (a != b) edge(e, a < b ? a : b, a < b ? b : a);
    }
}

static inline void measure(const struct contender *c, const struct edges *e, int workers)
{
    uint32_t *counters = (uint32_t *)calloc(e->nodes, sizeof *counters);
    double t0 = now_ns();
    void *graph = c->build(e, counters);
    double t1 = now_ns();
    c->run(graph);
    double t2 = now_ns(), best = 1e18;
    uint32_t runs = 1;

    while (runs < 6 || (runs < 60 && now_ns() - t2 < 1e9)) {
        double from = now_ns();
        c->run(graph);
        double took = now_ns() - from;
        if (took < best) best = took;
        runs++;
    }
    for (uint32_t i = 0; i < e->nodes; i++) {
        if (counters[i] == runs) continue;
        fprintf(stderr, "%s: node %u ran %u times, not %u\n", c->name, i, counters[i], runs);
        exit(1);
    }
    c->drop(graph);
    free(counters);
    printf("%-10s %-10s %d nodes %u edges %zu build %.1f first %.1f run %.1f\n", c->name, e->name,
           workers, e->nodes, e->n, (t1 - t0) / e->nodes, (t2 - t1) / e->nodes, best / e->nodes);
    fflush(stdout);
}

static inline int measure_all(const struct contender *c, int workers, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*make)(struct edges *e);
    } all[] = {{"chain", make_chain},
               {"tree", make_tree},
               {"wavefront", make_wavefront},
               {"random", make_random}};
    struct edges e;

    memset(&e, 0, sizeof e);
    e.from = (uint32_t *)malloc(1100000 * sizeof *e.from);
    e.to = (uint32_t *)malloc(1100000 * sizeof *e.to);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int wanted = argc == 0;
        for (int k = 0; k < argc; k++) wanted |= strcmp(argv[k], all[i].name) == 0;
        if (!wanted) continue;
        e.name = all[i].name;
        e.n = 0;
        all[i].make(&e);
        measure(c, &e, workers);
    }
    free(e.from);
    free(e.to);
    return 0;
}

#endif /* BENCH_GRAPH_H */
