/* SPDX-License-Identifier: MIT */
/*
 * graph.h - the structs of a graph
 *
 * A node has two parts. fj_node is one cache line, with what a run needs. fji_node_more holds the
 * rest. Edges are records in the order in which they were added. The first run after a change
 * freezes the graph (graph_freeze.c): it sorts the edges into one array of successors and one of
 * predecessors, in which each node has a contiguous part.
 *
 * fj_graph.lock protects the lists of nodes and edges, and the members that say whether a run is in
 * progress. A run holds the lock only at its beginning and its end, and in a graph with
 * FJ_GRAPH_GROWS at the end of each node.
 */
#ifndef FJI_COMPOSE_GRAPH_H
#define FJI_COMPOSE_GRAPH_H

#include <forkjoin/graph.h>
#include <stdbool.h>

#include "plat/atomic.h"
#include "plat/config.h"
#include "plat/plat.h"

typedef struct fji_node_more fji_node_more;
typedef struct fji_growth fji_growth;
typedef struct fji_edge fji_edge;
typedef struct fji_added fji_added;

/* Bits of fj_node.flags. FJI_NODE_CHOSEN: the node has a weak predecessor. */
#define FJI_NODE_CONDITION 1u
#define FJI_NODE_CHOSEN 2u

/* In fj_node.join: the node has only weak predecessors, so no decrement starts it. */
#define FJI_NODE_WEAK_ONLY 0x40000000u

/*
 * The part of a node that a run uses, and the number of its graph, so that fj_graph_edge() reads only
 * one cache line of each node.
 *
 * The successors of a node are fj_graph.successors[first] and the following ones. Such an element is
 * the address of a node. Its lowest bit is set if that node has only one strong predecessor and no
 * weak one, so that a run does not read its `join`.
 *
 * `join` is the number of strong predecessors that have not ended. In a careful run (graph_run.c) 0
 * means that the node has begun.
 */
struct fj_node {
    fj_node_fn *fn;
    void *arg;
    void *result;
    union {
        fj_node *link;    /* in a run: the next node in a list of ready nodes */
        fj_node **filled; /* in graph_freeze.c: where the next predecessor is stored */
    };
    fji_node_more *more;
    uint32_t first;
    uint32_t successor_count;
    uint32_t join;
    uint32_t strong; /* number of strong predecessors */
    uint32_t flags;
    uint32_t graph; /* fj_graph.number */
};

/* The part of a node that only building, checking and text use. */
struct fji_node_more {
    fj_graph *graph;
    char *name;
    fji_growth *growth; /* NULL if the graph does not grow */
    fj_node **inputs;   /* a part of fj_graph.inputs */
    union {
        fj_node *via;     /* in a search: the node to be visited next */
        uint32_t written; /* edges of the node that fj_graph_dot() has written */
    };
    fj_node *next; /* in a cycle: the successor. In a search: the predecessor */
    uint32_t input_count;
    uint32_t index; /* the number of the node */
    uint32_t weak;  /* number of weak predecessors */
    uint32_t mark;  /* equals fj_graph.mark if the present search has visited the node */
};

/* The part of a node that a graph has if it grows: edges that were added since the graph was frozen,
 * and whether the node has ended in this run and has not begun again. */
struct fji_growth {
    fji_added *first_out, *last_out, *first_in, *last_in;
    bool ended;
};

struct fji_edge {
    fj_node *from, *to;
};

/* An edge that was added during a run. It is also a record of fj_graph.edges. */
struct fji_added {
    fj_node *from, *to;
    fji_added *next_out, *next_in; /* in the lists of fji_growth */
};

/* A list of records of the same size, in blocks. A record never moves. The blocks after `last` have
 * no records; they are used again. */
typedef struct fji_block {
    struct fji_block *next;
    char *records; /* aligned to FJI_CACHE_PAIR */
    size_t count, capacity;
} fji_block;

typedef struct fji_pile {
    fji_block *first, *last;
    size_t count; /* records in all blocks */
} fji_pile;

/* Visits every record of a pile: `p` points to the present one. */
#define FJI_PILE_EACH(pile, type, p)                                           \
    for (fji_block *b_##p = (pile)->first; b_##p != NULL; b_##p = b_##p->next) \
        for (type *p = (type *)(void *)b_##p->records, *e_##p = p + b_##p->count; p < e_##p; p++)

/* Why the last check or run failed, apart from cycles. */
enum fji_graph_problem {
    FJI_GRAPH_FINE,
    FJI_GRAPH_NO_START, /* every node has a predecessor */
    FJI_GRAPH_FAILED,   /* the body of problem_node has failed */
    FJI_GRAPH_TWICE     /* problem_node was started while it was queued or running */
};

struct fj_graph {
    /* A run reads these often and writes them rarely. */
    uint32_t
        stop; /* 1: the run has failed or was cancelled; nodes that have not begun do not run */
    uint32_t code;       /* the result of the run: an int, 0 at first */
    bool grows, careful; /* careful: see graph_run.c */
    fj_token token;      /* the bodies run with this token */
    fj_future future;    /* its body is the run */

    _Alignas(FJI_CACHE_PAIR) fji_lock lock;
    bool started, running; /* a run was ever started; a run has not reached its end */
    bool preparing;        /* a thread freezes the graph */
    bool changed;          /* nodes or edges were added since the graph was frozen */
    bool invalid;          /* the frozen graph has a cycle or no source */
    bool dirty;            /* the last run was stopped, so that `join` of some nodes is wrong */
    uint32_t waiters;      /* threads in fj_graph_run() and fj_graph_wait() */
    uint32_t mark;
    uint32_t number;   /* graphs that exist at the same time have different numbers */
    fj_node *released; /* nodes that an added edge has made ready; by `link` */
    fj_node *cycle;    /* this node and the `next` pointers form a cycle that was found; or NULL */
    /* Set by the thread that changes `code`, and read by other threads when the run has ended. */
    enum fji_graph_problem problem;
    fj_node *problem_node;
    fji_pile nodes, more, edges;
    fji_pile growth, added; /* empty if the graph does not grow */
    char *name;
    uintptr_t *successors; /* the memory of the three arrays */
    fj_node **inputs;
    fj_node **sources;
    size_t source_count;
};

/* Allocates memory that is not zeroed. Returns NULL if there is none. */
static inline void *fji_graph_alloc(size_t bytes)
{
    return fji_fault_now(FJI_FAULT_ALLOC) ? NULL : fji_plat_alloc_scratch(bytes);
}

/* The value of n->join before n begins. */
static inline uint32_t fji_node_initial(const fj_node *n)
{
    if (n->strong != 0) return n->strong;
    return n->more->weak != 0 ? FJI_NODE_WEAK_ONLY : 0;
}

/* Successor i of n. */
static inline fj_node *fji_node_successor(const fj_graph *g, const fj_node *n, uint32_t i)
{
    return (fj_node *)(g->successors[n->first + i] & ~(uintptr_t)1);
}

static inline bool fji_node_is_condition(const fj_node *n)
{
    return (n->flags & FJI_NODE_CONDITION) != 0;
}

/* Whether a run is in progress, or about to begin. The caller holds the lock. */
static inline bool fji_graph_is_busy(const fj_graph *g)
{
    return g->preparing || (g->started && !fj_future_is_done(&g->future));
}

/* graph_freeze.c */

/* Prepares g for a run if it has changed. The caller has set `preparing`, so that no other thread
 * changes g. Returns FJ_OK, FJ_EINVAL or FJ_ENOMEM. */
int fji_graph_freeze(fj_graph *g);

/* Sets all members of all nodes that a run changes to their values before a run. */
void fji_graph_reset(fj_graph *g);

/* Returns whether an edge from a to b would close a cycle. If it would, stores it in g->cycle. The
 * caller holds the lock. */
bool fji_graph_closes_cycle(fj_graph *g, fj_node *a, fj_node *b);

/* graph_run.c */

/* Makes the run fail with `code`, unless it has failed before. Bodies that have not begun do not
 * run. */
void fji_graph_fail(fj_graph *g, int code, enum fji_graph_problem problem, fj_node *n);

/* The body of the future of a graph: the run. Its code is always FJ_OK; the result of the run is in
 * `code` of the graph. */
int fji_graph_body(fj_task *t);

#endif /* FJI_COMPOSE_GRAPH_H */
