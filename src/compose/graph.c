/* SPDX-License-Identifier: MIT */
/*
 * graph.c - building a graph: nodes, edges, and what a body may ask about its node
 *
 * Additions take the lock of the graph. While the graph does not run, an addition appends a record
 * and sets `changed`, and the next run freezes the graph again (graph_freeze.c). During a run of a
 * graph that grows, an addition also changes the run:
 *
 *   A new node has join = FJI_NODE_WEAK_ONLY: no predecessor has to end, and no decrement starts it.
 *
 *   A new edge from a to b first raises b->join by 1, unless b->join is 0, because b has begun then.
 *   The edge is appended to the list of a, which the thread that ends a reads (graph_run.c). If a
 *   has ended before, the adding thread lowers b->join again at once. If that makes it 0, b is
 *   ready. The adding thread has no place to run it, so it puts b into the list `released`. The
 *   threads that end nodes look into that list, and the run does not end before the list is empty.
 *
 * Both the adding thread and the thread that ends a hold the lock, so a either ends before the edge
 * is added, or finds the edge in its list.
 *
 * Edges         from                              to                             carries
 *   graph.join  acq_rel add, edge_join_run()      acq_rel add, careful_arrive()  the new edge
 */
#include "compose/graph.h"

#include <string.h>

/* ---- Piles ----------------------------------------------------------------------------------- */

#define BLOCK_FIRST ((size_t)32)           /* records of the first block */
#define BLOCK_BYTES_MAX ((size_t)32 << 20) /* from this size on a block may get huge pages */

static void pile_free(fji_pile *pile)
{
    for (fji_block *b = pile->first; b != NULL;) {
        fji_block *next = b->next;
        fji_plat_free(b);
        b = next;
    }
}

/* Makes room for one more record. Returns false if there is no memory. */
static bool pile_room(fji_pile *pile, size_t bytes)
{
    const fji_block *last = pile->last;

    if (last != NULL && last->count < last->capacity) return true;
    if (last != NULL && last->next != NULL) {
        pile->last = last->next;
        return true;
    }
    size_t n = last == NULL ? BLOCK_FIRST : 2 * last->capacity;
    if (n * bytes > BLOCK_BYTES_MAX) n = BLOCK_BYTES_MAX / bytes;
    char *memory = fji_graph_alloc(sizeof(fji_block) + FJI_CACHE_PAIR + n * bytes);
    if (memory == NULL) return false;
    fji_block *b = (fji_block *)(void *)memory;
    char *records = memory + sizeof *b;
    records += -(uintptr_t)records % FJI_CACHE_PAIR;
    *b = (fji_block){.records = records, .capacity = n};
    if (pile->last != NULL)
        pile->last->next = b;
    else
        pile->first = b;
    pile->last = b;
    return true;
}

/* Returns the next record, for which pile_room() has made room. */
static void *pile_next(fji_pile *pile, size_t bytes)
{
    fji_block *b = pile->last;

    pile->count++;
    return b->records + b->count++ * bytes;
}

/* ---- The graph --------------------------------------------------------------------------------- */

/* Stores a copy of `text` in *copy; NULL if `text` is NULL. Returns false if there is no memory. */
static bool copy_text(const char *text, char **copy)
{
    *copy = NULL;
    if (text == NULL) return true;
    size_t bytes = strlen(text) + 1;
    *copy = fji_graph_alloc(bytes);
    if (*copy != NULL) memcpy(*copy, text, bytes);
    return *copy != NULL;
}

static bool options_ok(const fj_graph_options *o)
{
    for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
        if (o->reserved[i] != 0) return false;
    return o->reserved32 == 0 && (o->flags & ~(uint32_t)FJ_GRAPH_GROWS) == 0;
}

int fj_graph_create(fj_graph **g, const fj_graph_options *o)
{
    static const fj_graph_options defaults;
    static uint32_t graphs;

    if (o == NULL) o = &defaults;
    if (g == NULL || !options_ok(o)) return FJ_EINVAL;
    fj_graph *new_graph = fji_plat_alloc(sizeof *new_graph);
    if (new_graph == NULL) return FJ_ENOMEM;
    if (!copy_text(o->name, &new_graph->name)) {
        fji_plat_free(new_graph);
        return FJ_ENOMEM;
    }
    new_graph->number = fji_add_relaxed(&graphs, 1); /* relaxed: the number orders nothing */
    new_graph->grows = (o->flags & FJ_GRAPH_GROWS) != 0;
    *g = new_graph;
    return FJ_OK;
}

int fj_graph_destroy(fj_graph *g)
{
    if (g == NULL) return FJ_OK;
    fji_lock_take(&g->lock);
    bool busy = fji_graph_is_busy(g) || g->waiters != 0;
    fji_lock_drop(&g->lock);
    if (busy) return FJ_EBUSY;
    if (g->started) fj_future_fini(&g->future);
    FJI_PILE_EACH(&g->more, fji_node_more, m) fji_plat_free(m->name);
    pile_free(&g->nodes);
    pile_free(&g->more);
    pile_free(&g->edges);
    pile_free(&g->growth);
    pile_free(&g->added);
    fji_plat_free(g->name);
    fji_plat_free(g->successors);
    fji_plat_free(g);
    return FJ_OK;
}

/* ---- Nodes ------------------------------------------------------------------------------------- */

/* Returns FJ_OK if nodes and edges may be added now, else FJ_EBUSY. The caller holds the lock. */
static int may_change(const fj_graph *g)
{
    return g->preparing || (fji_graph_is_busy(g) && !g->grows) ? FJ_EBUSY : FJ_OK;
}

/* Makes room for the parts of a node. Returns false if there is no memory. */
static bool node_room(fj_graph *g)
{
    if (g->grows && !pile_room(&g->growth, sizeof(fji_growth))) return false;
    return pile_room(&g->more, sizeof(fji_node_more)) && pile_room(&g->nodes, sizeof(fj_node));
}

static fj_node *node_make(fj_graph *g, fj_node_fn *fn, void *arg, uint32_t flags)
{
    fji_growth *growth = g->grows ? pile_next(&g->growth, sizeof *growth) : NULL;
    fji_node_more *m = pile_next(&g->more, sizeof *m);
    fj_node *n = pile_next(&g->nodes, sizeof *n);

    if (growth != NULL) *growth = (fji_growth){.ended = false};
    *m = (fji_node_more){.graph = g, .growth = growth, .index = (uint32_t)(g->nodes.count - 1)};
    *n = (fj_node){.fn = fn, .arg = arg, .more = m, .flags = flags, .graph = g->number};
    n->join = FJI_NODE_WEAK_ONLY;
    return n;
}

static int node_add(fj_graph *g, fj_node_fn *fn, void *arg, const char *name, uint32_t flags,
                    fj_node **out)
{
    char *copy;

    if (g == NULL || fn == NULL) return FJ_EINVAL;
    if (!copy_text(name, &copy)) return FJ_ENOMEM;
    fji_lock_take(&g->lock);
    int err = may_change(g);
    if (err == FJ_OK && (g->nodes.count == UINT32_MAX || !node_room(g))) err = FJ_ENOMEM;
    if (err == FJ_OK) {
        fj_node *n = node_make(g, fn, arg, flags);
        n->more->name = copy;
        g->changed = true;
        if (out != NULL) *out = n;
    }
    fji_lock_drop(&g->lock);
    if (err != FJ_OK) fji_plat_free(copy);
    return err;
}

int fj_graph_add(fj_graph *g, fj_node_fn *fn, void *arg, const char *name, fj_node **n)
{
    return node_add(g, fn, arg, name, 0, n);
}

int fj_graph_add_condition(fj_graph *g, fj_node_fn *fn, void *arg, const char *name, fj_node **n)
{
    return node_add(g, fn, arg, name, FJI_NODE_CONDITION, n);
}

/* ---- Edges ------------------------------------------------------------------------------------- */

/* Makes b wait for one more predecessor. Returns false if b has begun. */
static bool edge_hold(fj_node *b)
{
    uint32_t new_join, old = fji_load_relaxed(&b->join); /* relaxed: the CAS checks the value */

    do {
        if (old == 0 || b->more->growth->ended) return false;
        new_join = old == FJI_NODE_WEAK_ONLY ? 1 : old + 1;
        /* relaxed: the edge that b waits for is published by the lock. */
    } while (!fji_cas_relaxed(&b->join, &old, new_join));
    return true;
}

/* Appends the edge from a to b to the lists of both. */
static void edge_link(fj_graph *g, fj_node *a, fj_node *b)
{
    fji_added *e = pile_next(&g->added, sizeof *e);
    fji_growth *out = a->more->growth, *in = b->more->growth;

    *e = (fji_added){.from = a, .to = b};
    if (out->last_out != NULL)
        out->last_out->next_out = e;
    else
        out->first_out = e;
    out->last_out = e;
    if (in->last_in != NULL)
        in->last_in->next_in = e;
    else
        in->first_in = e;
    in->last_in = e;
}

/* Makes the edge from a to b part of the run in progress. Returns FJ_OK, or an error without a
 * change. */
static int edge_join_run(fj_graph *g, fj_node *a, fj_node *b)
{
    bool weak = fji_node_is_condition(a);

    if (!weak && fji_graph_closes_cycle(g, a, b)) return FJ_EINVAL;
    if (!pile_room(&g->added, sizeof(fji_added))) return FJ_ENOMEM;
    if (!weak && !edge_hold(b)) return FJ_EBUSY;
    edge_link(g, a, b);
    if (weak) {
        b->more->weak++;
        return FJ_OK;
    }
    b->strong++;
    if (!a->more->growth->ended) return FJ_OK;
    /* [graph.join] acq_rel -> acq_rel in careful_arrive(): the thread that starts b sees the new
     * edge. acq_rel <- acq_rel in careful_arrive(): what the predecessors of b did, for the thread
     * that takes b out of the list `released`. */
    if (fji_add_acq_rel(&b->join, (uint32_t)-1) == 1) {
        b->link = g->released;
        g->released = b;
    }
    return FJ_OK;
}

/* Adds an edge from a to b. The caller holds the lock. */
static int edge_add(fj_graph *g, fj_node *a, fj_node *b)
{
    int err = may_change(g);

    if (err != FJ_OK) return err;
    if (g->edges.count == UINT32_MAX || !pile_room(&g->edges, sizeof(fji_edge))) return FJ_ENOMEM;
    if (g->running && fji_graph_is_busy(g)) err = edge_join_run(g, a, b);
    if (err != FJ_OK) return err;
    fji_edge *e = pile_next(&g->edges, sizeof *e);
    *e = (fji_edge){a, b};
    g->changed = true;
    return FJ_OK;
}

int fj_graph_edge(fj_graph *g, fj_node *a, fj_node *b)
{
    if (g == NULL || a == NULL || b == NULL) return FJ_EINVAL;
    if (a->graph != g->number || b->graph != g->number) return FJ_EINVAL;
    if (a == b && !fji_node_is_condition(a)) return FJ_EINVAL;
    fji_lock_take(&g->lock);
    int err = edge_add(g, a, b);
    fji_lock_drop(&g->lock);
    return err;
}

/* ---- What a body may ask ----------------------------------------------------------------------- */

void fj_node_set_result(fj_node *n, void *result)
{
    if (n != NULL) n->result = result;
}

void *fj_node_result(const fj_node *n)
{
    return n != NULL ? n->result : NULL;
}

/* The edges to n that were added since the graph was frozen. */
static const fji_added *added_inputs(const fj_node *n)
{
    return n->more->growth != NULL ? n->more->growth->first_in : NULL;
}

size_t fj_node_input_count(const fj_node *n)
{
    if (n == NULL) return 0;
    size_t count = n->more->input_count;
    for (const fji_added *e = added_inputs(n); e != NULL; e = e->next_in) count++;
    return count;
}

void *fj_node_input(const fj_node *n, size_t i)
{
    if (n == NULL) return NULL;
    const fji_node_more *m = n->more;
    if (i < m->input_count) return m->inputs[i]->result;
    const fji_added *e = added_inputs(n);
    for (i -= m->input_count; e != NULL && i > 0; i--) e = e->next_in;
    return e != NULL ? e->from->result : NULL;
}

fj_graph *fj_node_graph(const fj_node *n)
{
    return n != NULL ? n->more->graph : NULL;
}

const char *fj_node_name(const fj_node *n)
{
    if (n == NULL) return NULL;
    return n->more->name != NULL ? n->more->name : "";
}
