/* SPDX-License-Identifier: MIT */
/*
 * 15_work_list.c - a work list that grows while it is processed
 *
 * The program finds all nodes of a graph that can be reached from node 1. The list begins with that
 * node. For each node of the list, visit() adds the neighbours that were not seen before. The call
 * of fj_for_each() returns when the list is empty. An item of the list is a number of 4 bytes, and
 * the list allocates memory for many items at once.
 */
#include <forkjoin/for_each.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define NODES 1000000u
#define EDGES 4u

struct graph {
    atomic_uchar seen[NODES];
    atomic_uint reached;
};

/* The graph is not stored: the neighbours of a node are computed from its number. */
static uint32_t neighbour(uint32_t node, uint32_t i)
{
    uint64_t x = (node * (uint64_t)EDGES + i + 1) * 0x9e3779b97f4a7c15u;

    return (uint32_t)((x >> 20) % NODES);
}

/* Marks the node. Returns whether it was not seen before. */
static int is_new(struct graph *g, uint32_t node)
{
    return atomic_exchange_explicit(&g->seen[node], 1, memory_order_relaxed) == 0;
}

static int visit(void *item, fj_feeder *feeder, void *arg)
{
    struct graph *g = arg;
    uint32_t node = *(uint32_t *)item;

    atomic_fetch_add_explicit(&g->reached, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < EDGES; i++) {
        uint32_t next = neighbour(node, i);
        int err = is_new(g, next) ? fj_for_each_add(feeder, &next) : FJ_OK;
        if (err != FJ_OK) return err; /* ends the search */
    }
    return FJ_OK;
}

/* The same search with one thread, to check the result. */
static uint32_t reach_serially(struct graph *g, uint32_t start)
{
    static uint32_t list[NODES];
    uint32_t n = 0, done = 0;

    memset(g->seen, 0, sizeof g->seen);
    if (is_new(g, start)) list[n++] = start;
    while (done < n) {
        uint32_t node = list[done++];
        for (uint32_t i = 0; i < EDGES; i++)
            if (is_new(g, neighbour(node, i))) list[n++] = neighbour(node, i);
    }
    return n;
}

int main(void)
{
    static struct graph g;
    uint32_t start = 1;

    (void)is_new(&g, start);
    int err = fj_for_each(&start, 1, sizeof start, visit, &g, NULL); /* NULL: the common pool */
    if (err != FJ_OK) return 1;
    uint32_t reached = g.reached, wanted = reach_serially(&g, start);
    printf("%u of %u nodes can be reached\n", reached, NODES);
    return reached != wanted;
}
