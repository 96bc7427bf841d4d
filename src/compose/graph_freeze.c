/* SPDX-License-Identifier: MIT */
/*
 * graph_freeze.c - preparing a graph for its runs, and finding cycles
 *
 * Freezing counts the edges of each node, gives each node its part of the arrays `successors` and
 * `inputs`, and copies the edges into these parts, in the order in which they were added. So the
 * successors of a node are contiguous, and a run reads no list.
 *
 * Then the strong edges are checked for cycles: the nodes without a strong predecessor are put in
 * order, then those all of whose strong predecessors are in order, and so on. If nodes are left,
 * each of them has a strong predecessor that is left too. A walk from one such predecessor to the
 * next comes to a node a second time, and the walk between the two visits is a cycle.
 *
 * During a run, fji_graph_closes_cycle() searches instead from the end of a new edge for its
 * beginning. Both store the cycle in the `next` pointers of its nodes.
 *
 * While a thread freezes, `preparing` keeps all other threads from changing the graph, so all
 * accesses are plain. In fji_graph_closes_cycle() the caller holds the lock, and runs change neither
 * edges nor marks.
 */
#include "compose/graph.h"

/* ---- Sorting the edges ------------------------------------------------------------------------- */

/* Forgets the weak edges, and the lists of edges that were added during a run. Only graphs with
 * careful runs have them. */
static void forget_edges(fj_graph *g)
{
    FJI_PILE_EACH(&g->more, fji_node_more, m)
    {
        m->weak = 0;
    }
    FJI_PILE_EACH(&g->growth, fji_growth, o)
    {
        *o = (fji_growth){.ended = false};
    }
    for (fji_block *b = g->added.first; b != NULL; b = b->next) b->count = 0;
    g->added.last = g->added.first;
    g->added.count = 0;
}

static void count_edges(fj_graph *g)
{
    if (g->careful) forget_edges(g);
    FJI_PILE_EACH(&g->nodes, fj_node, n)
    {
        n->successor_count = n->strong = 0;
    }
    FJI_PILE_EACH(&g->edges, fji_edge, e)
    {
        e->from->successor_count++;
        if (fji_node_is_condition(e->from))
            e->to->more->weak++;
        else
            e->to->strong++;
    }
}

/* Gives each node its parts of the arrays. Collects the sources. */
static void divide_arrays(fj_graph *g)
{
    uint32_t first = 0;
    fj_node **inputs = g->inputs;

    g->source_count = 0;
    g->careful = g->grows;
    FJI_PILE_EACH(&g->nodes, fj_node, n)
    {
        fji_node_more *m = n->more;
        m->input_count = n->strong + m->weak;
        m->inputs = n->filled = inputs;
        inputs += m->input_count;
        n->first = first;
        first += n->successor_count;
        n->successor_count = 0;
        n->flags = (n->flags & ~FJI_NODE_CHOSEN) | (m->weak != 0 ? FJI_NODE_CHOSEN : 0);
        if (m->input_count == 0) g->sources[g->source_count++] = n;
        if (fji_node_is_condition(n)) g->careful = true;
    }
}

static void fill_arrays(fj_graph *g)
{
    FJI_PILE_EACH(&g->edges, fji_edge, e)
    {
        fj_node *a = e->from, *b = e->to;
        uintptr_t single = b->strong == 1 && (b->flags & FJI_NODE_CHOSEN) == 0;
        g->successors[a->first + a->successor_count++] = (uintptr_t)b | single;
        *b->filled++ = a;
    }
}

/* Allocates the three arrays in one block, in place of the old ones. Returns false if there is no
 * memory; nothing has changed then. */
static bool allocate_arrays(fj_graph *g)
{
    size_t edges = g->edges.count, nodes = g->nodes.count;
    uintptr_t *memory = fji_graph_alloc((2 * edges + 2 * nodes + 1) * sizeof *memory);

    if (memory == NULL) return false;
    fji_plat_free(g->successors);
    g->successors = memory;
    g->inputs = (fj_node **)(void *)(memory + edges);
    g->sources = (fj_node **)(void *)(memory + 2 * edges);
    return true;
}

/* ---- Cycles ------------------------------------------------------------------------------------ */

/* Lowers `join` of the strong successors of n, and appends those that become 0 to the array from
 * *end on. */
static void order_after(const fj_graph *g, const fj_node *n, fj_node ***end)
{
    if (fji_node_is_condition(n)) return;
    for (uint32_t i = 0; i < n->successor_count; i++) {
        fj_node *s = fji_node_successor(g, n, i);
        if (--s->join == 0) *(*end)++ = s;
    }
}

/* Returns how many nodes can be put in an order in which every strong edge leads forward. `join` of
 * the nodes that are left stays above 0. */
static size_t order_nodes(fj_graph *g)
{
    fj_node **first = g->sources + g->nodes.count, **end = first, **next = first;

    FJI_PILE_EACH(&g->nodes, fj_node, n)
    {
        n->join = n->strong;
        if (n->join == 0) *end++ = n;
    }
    while (next < end) order_after(g, *next++, &end);
    return (size_t)(end - first);
}

/* Returns a strong predecessor of n that was not put in order. */
static fj_node *left_predecessor(const fj_node *n)
{
    for (uint32_t i = 0; i < n->more->input_count; i++) {
        fj_node *p = n->more->inputs[i];
        if (p->join != 0 && !fji_node_is_condition(p)) return p;
    }
    return NULL;
}

/* Returns a node of a cycle among the nodes that were not put in order. */
static fj_node *find_cycle(fj_graph *g)
{
    fj_node *at = NULL;

    FJI_PILE_EACH(&g->nodes, fj_node, n)
    {
        if (at == NULL && n->join != 0) at = n;
    }
    g->mark++;
    while (at != NULL && at->more->mark != g->mark) {
        fj_node *before = left_predecessor(at);
        at->more->mark = g->mark;
        if (before != NULL) before->more->next = at;
        at = before;
    }
    return at;
}

/* Marks s as reached from n and puts it on the stack of nodes to visit, unless it is marked. */
static void search_push(fj_graph *g, fj_node *s, fj_node *n, fj_node **stack)
{
    if (s->more->mark == g->mark) return;
    s->more->mark = g->mark;
    s->more->next = n; /* for now the predecessor */
    s->more->via = *stack;
    *stack = s;
}

/* Turns the path of predecessors from a back to b into a cycle of successors. */
static void search_store(fj_graph *g, fj_node *a, fj_node *b)
{
    fj_node *n = a, *after = b;

    while (n != NULL) {
        fj_node *before = n->more->next;
        n->more->next = after;
        after = n;
        n = n == b ? NULL : before;
    }
    g->cycle = a;
}

bool fji_graph_closes_cycle(fj_graph *g, fj_node *a, fj_node *b)
{
    fj_node *stack = NULL;

    g->mark++;
    search_push(g, b, NULL, &stack);
    while (stack != NULL && a->more->mark != g->mark) {
        fj_node *n = stack;
        stack = n->more->via;
        if (fji_node_is_condition(n)) continue;
        for (uint32_t i = 0; i < n->successor_count; i++)
            search_push(g, fji_node_successor(g, n, i), n, &stack);
        for (const fji_added *e = n->more->growth->first_out; e != NULL; e = e->next_out)
            search_push(g, e->to, n, &stack);
    }
    if (a->more->mark != g->mark) return false;
    search_store(g, a, b);
    return true;
}

/* ---- Freezing ---------------------------------------------------------------------------------- */

void fji_graph_reset(fj_graph *g)
{
    FJI_PILE_EACH(&g->nodes, fj_node, n)
    {
        n->join = fji_node_initial(n);
    }
    FJI_PILE_EACH(&g->growth, fji_growth, o)
    {
        o->ended = false;
    }
    g->released = NULL;
    g->dirty = false;
}

/* Checks the frozen graph. Returns whether it can be run. */
static bool check(fj_graph *g)
{
    g->cycle = order_nodes(g) != g->nodes.count ? find_cycle(g) : NULL;
    bool no_start = g->nodes.count != 0 && g->source_count == 0;
    g->problem = no_start && g->cycle == NULL ? FJI_GRAPH_NO_START : FJI_GRAPH_FINE;
    return g->cycle == NULL && !no_start;
}

int fji_graph_freeze(fj_graph *g)
{
    bool changed = g->changed;

    if (changed) {
        if (!allocate_arrays(g)) return FJ_ENOMEM;
        count_edges(g);
        divide_arrays(g);
        fill_arrays(g);
        g->invalid = !check(g);
        g->changed = false;
    }
    if (g->invalid) return FJ_EINVAL;
    if (changed || g->careful || g->dirty) fji_graph_reset(g);
    return FJ_OK;
}
