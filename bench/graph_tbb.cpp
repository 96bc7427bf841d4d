/* SPDX-License-Identifier: MIT */
/*
 * graph_tbb.cpp - the graph benchmarks (graph.h) with the flow graph of oneTBB
 */
#include <memory>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <vector>

#include "graph.h"

namespace flow = oneapi::tbb::flow;
using node = flow::continue_node<flow::continue_msg>;

static oneapi::tbb::task_arena *arena;

struct program {
    flow::graph graph;
    std::vector<std::unique_ptr<node>> nodes;
    std::vector<node *> sources;
};

static void *build(const struct edges *e, uint32_t *counters)
{
    program *p = nullptr;

    arena->execute([&] { p = new program; }); /* the graph runs in the arena of its constructor */
    std::vector<bool> has_predecessor(e->nodes);
    for (uint32_t i = 0; i < e->nodes; i++) {
        uint32_t *c = &counters[i];
        p->nodes.emplace_back(new node(p->graph, [c](const flow::continue_msg &) { ++*c; }));
    }
    for (size_t i = 0; i < e->n; i++) {
        flow::make_edge(*p->nodes[e->from[i]], *p->nodes[e->to[i]]);
        has_predecessor[e->to[i]] = true;
    }
    for (uint32_t i = 0; i < e->nodes; i++)
        if (!has_predecessor[i]) p->sources.push_back(p->nodes[i].get());
    return p;
}

static void run(void *graph)
{
    program *p = static_cast<program *>(graph);

    arena->execute([p] {
        for (node *n : p->sources) n->try_put(flow::continue_msg());
        p->graph.wait_for_all();
    });
}

static void drop(void *graph)
{
    delete static_cast<program *>(graph);
}

int main(int argc, char **argv)
{
    static const struct contender tbb = {"tbb", build, run, drop};
    int workers = argc > 1 ? atoi(argv[1]) : 1;
    oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism,
                                      static_cast<size_t>(workers));
    oneapi::tbb::task_arena here(workers);

    arena = &here;
    return measure_all(&tbb, workers, argc > 2 ? argc - 2 : 0, argv + 2);
}
