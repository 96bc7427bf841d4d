/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/graph.h - steps that depend on each other: a graph that is built once and run many times
 *
 * <forkjoin.h> does not include this header. A node is a function. An edge from node a to node b
 * means that b begins after a has ended. A run calls the body of each node once, as soon as all its
 * predecessors have ended, and runs independent nodes in parallel:
 *
 *     static int compile(fj_node *n, void *arg)
 *     {
 *         return run_compiler(fj_node_name(n), arg); // 0, or a code that ends the run
 *     }
 *
 *     fj_graph *g;
 *     fj_node *a, *b, *app;
 *     int err = fj_graph_create(&g, NULL);
 *     if (err == FJ_OK) err = fj_graph_add(g, compile, "a.c", "a.o", &a);
 *     if (err == FJ_OK) err = fj_graph_add(g, compile, "b.c", "b.o", &b);
 *     if (err == FJ_OK) err = fj_graph_add(g, compile, NULL, "app", &app);
 *     if (err == FJ_OK) err = fj_graph_edge(g, a, app);
 *     if (err == FJ_OK) err = fj_graph_edge(g, b, app);
 *     if (err == FJ_OK) err = fj_graph_run(g, NULL); // NULL: the common pool
 *     fj_graph_destroy(g);
 *
 * Memory
 *   The graph owns its nodes and edges, and frees them in fj_graph_destroy(). The first run after a
 *   change checks the graph and allocates arrays for it. Further runs allocate nothing.
 *
 * Results
 *   A body hands a pointer to its successors with fj_node_set_result(). A successor reads it with
 *   fj_node_input(). What a body did happens before the bodies of its successors.
 *
 * Conditions and loops
 *   The body of a condition returns the index of the successor that continues: 0 is the first edge
 *   that was added from the condition. An index without an edge starts no successor. A negative
 *   value is an error code. Edges from a condition are weak: the chosen successor begins at once,
 *   whatever its other predecessors are, and no node waits for a weak edge. So weak edges may lead
 *   back, which makes a loop.
 *
 *   Each time a node ends, it counts once for each of its successors. A node that has only weak
 *   predecessors begins only if a condition chooses it. A node whose predecessors do not all run,
 *   because a condition has chosen another branch, does not run either. To join two branches of a
 *   condition, let each of them end in a condition that returns 0, and connect both to the node.
 *
 *   A node must not be started while it is queued or running. If it is, the run fails with FJ_EBUSY.
 *
 * Errors
 *   If a body returns a code other than 0 (a condition: a negative one), that code is the result of
 *   the run, unless another error was first. Bodies that have not begun do not run any more, and
 *   fj_is_cancelled() returns 1 in those that run. The next run begins from the start.
 *
 * Changing a graph
 *   Nodes and edges are added by any thread while the graph does not run, by one thread at a time or
 *   several. With the option FJ_GRAPH_GROWS they may also be added during a run, from bodies and
 *   from other threads, and they stay for the next runs:
 *   - A node that is added during a run takes part in it as soon as an edge leads to it.
 *   - An edge from a node that has not ended makes its target wait for that node. An edge from a node
 *     that has ended counts as satisfied. If no other predecessor is missing, the target begins.
 *   - An edge to a node that has begun is refused with FJ_EBUSY. So a body that adds a node first
 *     adds an edge from its own node: the new node then waits for the body to return.
 *   - An edge that closes a cycle is refused with FJ_EINVAL.
 *   - If the run ends before a thread outside its bodies makes the call, the addition counts from the
 *     next run on.
 *   A run of a graph with FJ_GRAPH_GROWS takes a lock of the graph at the end of each node.
 */
#ifndef FORKJOIN_GRAPH_H
#define FORKJOIN_GRAPH_H

#include <forkjoin.h>

FJI_EXTERN_C_BEGIN

typedef struct fj_graph fj_graph; /* opaque */
typedef struct fj_node fj_node;   /* opaque; owned by its graph */

/*
 * The body of a node. `arg` is the pointer that fj_graph_add() got.
 *
 * A body may fork, join and wait, and may call every function of this header, except that a call
 * that would wait for its own run returns an error. A body returns 0, or a code that ends the run.
 * The body of a condition returns the index of the successor that continues, or a negative code that
 * ends the run.
 *
 *   from     a worker of the pool that runs the graph.
 *   order    what the bodies of all predecessors did happens before the call; after a weak edge,
 *            what the condition did.
 */
typedef int fj_node_fn(fj_node *n, void *arg);

/* Bits of fj_graph_options.flags. */
enum fj_graph_flags {
    FJ_GRAPH_GROWS = 1 /* nodes and edges may be added during a run */
};

/* The options of a graph. An object of zeros stands for the defaults. */
typedef struct fj_graph_options {
    const char *name;     /* for fj_graph_dot(); NULL: "graph". The graph copies the text */
    uint32_t flags;       /* values of enum fj_graph_flags */
    uint32_t reserved32;  /* 0 */
    uint64_t reserved[6]; /* 0 */
} fj_graph_options;

/* ---- Building ---------------------------------------------------------------------------------- */

/*
 * Makes an empty graph. `o` may be NULL, which stands for the defaults.
 *
 *   owns     the caller gets the graph in *g and ends it by fj_graph_destroy().
 *   returns  FJ_OK. FJ_EINVAL if `g` is NULL, a flag is unknown or a reserved member is not 0.
 *            FJ_ENOMEM if there is no memory.
 */
FJ_API FJ_NODISCARD int fj_graph_create(fj_graph **g, const fj_graph_options *o);

/*
 * Frees `g`, its nodes and its edges. NULL is allowed and does nothing.
 *
 *   returns  FJ_OK. FJ_EBUSY, without any change, if the graph runs, also if a body of the graph
 *            makes the call, or if a thread is in fj_graph_run() or fj_graph_wait().
 */
FJ_API int fj_graph_destroy(fj_graph *g);

/*
 * Adds a node with the body `fn`, which is called with `arg`. `name` is for messages and
 * fj_graph_dot() and may be NULL. `n` may be NULL if no edge needs the node.
 *
 *   owns     the graph owns the node and copies `name`. The caller owns what `arg` points to, which
 *            must stay valid as long as the graph runs.
 *   returns  FJ_OK. FJ_EINVAL if `g` or `fn` is NULL. FJ_EBUSY if the graph runs and has not
 *            FJ_GRAPH_GROWS. FJ_ENOMEM if there is no memory.
 */
FJ_API FJ_NODISCARD int fj_graph_add(fj_graph *g, fj_node_fn *fn, void *arg, const char *name,
                                     fj_node **n);

/*
 * Adds a condition: a node whose body chooses the successor that continues. The head of this file
 * describes conditions.
 *
 *   owns, returns  as fj_graph_add().
 */
FJ_API FJ_NODISCARD int fj_graph_add_condition(fj_graph *g, fj_node_fn *fn, void *arg,
                                               const char *name, fj_node **n);

/*
 * Adds an edge from `a` to `b`: `b` begins after `a` has ended. If `a` is a condition, the edge is
 * weak: `b` begins if the condition chooses it. A second edge between the same nodes is allowed, and
 * counts as an edge of its own.
 *
 * Cycles are found by the first run after the change and by fj_graph_check(), and during a run by
 * this call. The check during a run visits all nodes that can be reached from `b`.
 *
 *   returns  FJ_OK. FJ_EINVAL if an argument is NULL, if a node belongs to another graph, if `a` is
 *            `b` and not a condition, and during a run if the edge would close a cycle. FJ_EBUSY if
 *            the graph runs and has not FJ_GRAPH_GROWS, or if it runs and `b` has begun. FJ_ENOMEM
 *            if there is no memory. After an error the graph is unchanged.
 */
FJ_API FJ_NODISCARD int fj_graph_edge(fj_graph *g, fj_node *a, fj_node *b);

/*
 * Checks the graph and prepares it for its next run, which then allocates nothing.
 *
 *   returns  FJ_OK. FJ_EINVAL if `g` is NULL, if edges that are not weak form a cycle, or if the
 *            graph has nodes but none without a predecessor; fj_graph_error() then describes the
 *            problem and names the nodes of one cycle. FJ_EBUSY if the graph runs. FJ_ENOMEM if
 *            there is no memory.
 */
FJ_API FJ_NODISCARD int fj_graph_check(fj_graph *g);

/* ---- Running ----------------------------------------------------------------------------------- */

/*
 * Runs `g` once in `pool` (NULL: the common pool) and waits for its end. If the calling worker works
 * for the pool, it runs nodes itself. While it waits, it runs only nodes of this graph and tasks
 * that their bodies have forked.
 *
 * If the calling task is cancelled, the run is cancelled.
 *
 *   order    what the caller did before the call happens before all bodies. What the bodies did
 *            happens before the return.
 *   returns  FJ_OK if the run has ended without an error. The code of the body that failed first.
 *            FJ_ECANCELED if the run was cancelled, or if the pool was stopped. FJ_EINVAL and
 *            FJ_ENOMEM as fj_graph_check(). FJ_EBUSY if the graph runs already, if another thread is
 *            about to return from a wait for an earlier run, or if a node was started while it was
 *            queued or running. FJ_EREJECTED if the pool is shut down and the caller is not one of
 *            its workers.
 */
FJ_API FJ_NODISCARD int fj_graph_run(fj_graph *g, fj_pool *pool);

/*
 * Starts a run of `g` in `pool` (NULL: the common pool) and returns at once. fj_graph_wait() waits
 * for its end.
 *
 *   order    what the caller did before the call happens before all bodies.
 *   returns  FJ_OK if the run has started. Otherwise an error as fj_graph_run().
 */
FJ_API FJ_NODISCARD int fj_graph_start(fj_graph *g, fj_pool *pool);

/*
 * Waits at most timeout_ns until the run of `g` has ended. FJ_FOREVER means no limit. If timeout_ns
 * is 0 or less, the call does not wait. If no run is in progress, the call returns the result of the
 * last run.
 *
 *   from     any thread. A worker that waits without a limit runs nodes of this graph meanwhile, as
 *            fj_future_join() does. A wait with a limit runs nothing.
 *   order    what the bodies did happens before the return, if the run has ended.
 *   returns  the result of the run, as fj_graph_run(). FJ_ETIMEDOUT if it has not ended after
 *            timeout_ns. FJ_ECANCELED also if the calling task is interrupted. FJ_EDEADLK from a
 *            body of the graph or a task below it. FJ_EINVAL if `g` is NULL or was never started.
 */
FJ_API FJ_NODISCARD int fj_graph_wait(fj_graph *g, int64_t timeout_ns);

/*
 * Cancels the run of `g`. Bodies that have not begun do not run. In the others fj_is_cancelled()
 * returns 1, and they are interrupted (forkjoin/future.h). The call does not wait for them.
 *
 *   returns  1 if the result of the run is FJ_ECANCELED, by this call or an earlier one. 0 if `g` is
 *            NULL, if no run is in progress, or if a body has failed before.
 */
FJ_API int fj_graph_cancel(fj_graph *g);

/* ---- In a body --------------------------------------------------------------------------------- */

/*
 * Sets the result of `n`, which successors read with fj_node_input(). The result stays until the
 * next call, also in later runs. NULL at first.
 *
 *   from     the body of `n`, or a thread that has the graph to itself while it does not run.
 */
FJ_API void fj_node_set_result(fj_node *n, void *result);

/* Returns the result of `n`; NULL if `n` is NULL. Call it in a successor of `n`, or while the graph
 * does not run. */
FJ_API void *fj_node_result(const fj_node *n);

/*
 * Returns the number of edges that lead to `n`, weak edges included.
 *
 *   from     the body of `n`, or any thread while the graph does not run. The number counts edges
 *            from the first fj_graph_check() or run after they were added.
 */
FJ_API size_t fj_node_input_count(const fj_node *n);

/*
 * Returns the result of the i-th predecessor of `n`. The predecessors have the order in which their
 * edges to `n` were added, from 0 on.
 *
 *   from     as fj_node_input_count().
 *   returns  the pointer that the predecessor has set; NULL if it has set none, if there is no
 *            predecessor i, or if `n` is NULL.
 */
FJ_API void *fj_node_input(const fj_node *n, size_t i);

/* Returns the graph that `n` belongs to; NULL if `n` is NULL. */
FJ_API fj_graph *fj_node_graph(const fj_node *n);

/* Returns the name of `n`; "" if it has none; NULL if `n` is NULL. The name is valid as long as the
 * graph. */
FJ_API const char *fj_node_name(const fj_node *n);

/* ---- Reporting --------------------------------------------------------------------------------- */

/*
 * Returns the node whose body failed first in the last run that has ended.
 *
 *   returns  the node; NULL if no body failed, if a run is in progress, or if `g` is NULL.
 */
FJ_API fj_node *fj_graph_failed(fj_graph *g);

/*
 * Writes why the last check or run failed to `buf`, for example "cycle: a -> b -> a" or
 * "node link failed with 3". Like snprintf(), the call writes at most `cap` bytes, including the
 * terminating 0. A node without a name is written as # and its number.
 *
 *   returns  the length of the whole text, also if `cap` is too small or 0. The text is empty if
 *            nothing has failed. 0 if `g` is NULL, or if `buf` is NULL and `cap` is not 0.
 */
FJ_API size_t fj_graph_error(fj_graph *g, char *buf, size_t cap);

/*
 * Writes the graph in the language of Graphviz. The function calls write(text, bytes, arg) once for
 * each part. Conditions are diamonds, weak edges are dashed and carry their index, and the node that
 * failed in the last run is red.
 *
 * `write` returns 0, or another code, which ends the output. It is called under the lock of the
 * graph, so it must not call functions of this graph.
 *
 *   returns  FJ_OK. The code that `write` returned. FJ_EINVAL if `g` or `write` is NULL.
 */
FJ_API int fj_graph_dot(fj_graph *g, int (*write)(const char *text, size_t bytes, void *arg),
                        void *arg);

FJI_EXTERN_C_END

#endif /* FORKJOIN_GRAPH_H */
