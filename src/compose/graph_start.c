/* SPDX-License-Identifier: MIT */
/*
 * graph_start.c - starting a run, waiting for it, cancelling it
 *
 * A run goes through these states. The lock of the graph protects the changes.
 *
 *     idle       no run is in progress: none was started, or `future` is done
 *     preparing  one thread has set `preparing` and freezes the graph; all others are refused, and
 *                fj_graph_wait() returns the result of the last run
 *     started    `running` is set, and `future` is queued or runs
 *     ended      the first frame has cleared `running` (graph_run.c); `future` becomes done, and the
 *                graph is idle
 *
 * `waiters` counts the threads in fj_graph_run() and fj_graph_wait(). A thread reads the result of
 * the run before it leaves the count. While the count is not 0, no run starts and no thread frees the
 * graph, so the result stays.
 *
 * If the pool refuses the future, or discards it because it stops, the run has no first frame. The
 * future is done then, which makes the graph idle, whatever `running` is.
 */
#include "compose/graph.h"

/* Makes the caller the only thread that may change g. Returns false if g is in use. */
static bool prepare_begin(fj_graph *g)
{
    fji_lock_take(&g->lock);
    bool busy = fji_graph_is_busy(g) || g->waiters != 0;
    if (!busy) g->preparing = true;
    fji_lock_drop(&g->lock);
    return !busy;
}

/* Ends the preparation, and begins a run if `begins`. `waits`: the caller waits for the run. */
static void prepare_end(fj_graph *g, bool begins, const fj_token *parent, bool waits)
{
    fji_lock_take(&g->lock);
    g->preparing = false;
    if (begins) {
        fj_future_init(&g->future, fji_graph_body);
        fj_token_init(&g->token, parent);
        g->stop = g->code = 0;
        g->problem = FJI_GRAPH_FINE;
        g->problem_node = g->cycle = NULL;
        g->started = g->running = true;
        g->waiters += waits;
    }
    fji_lock_drop(&g->lock);
}

/* Prepares a run. Returns FJ_OK, or an error, which leaves the graph idle. */
static int run_prepare(fj_graph *g, const fj_token *parent, bool waits)
{
    if (!prepare_begin(g)) return FJ_EBUSY;
    int err = fji_graph_freeze(g);
    if (err == FJ_OK && g->started) fj_future_fini(&g->future);
    prepare_end(g, err == FJ_OK, parent, waits);
    return err;
}

/* Returns the result of the run that has ended. err: the outcome of the future, or what a wait for it
 * returned. The caller holds the lock. */
static int run_result(const fj_graph *g, int err)
{
    return err == FJ_OK ? (int)g->code : err;
}

/* Ends a wait. Returns as run_result(). */
static int wait_end(fj_graph *g, int err)
{
    fji_lock_take(&g->lock);
    int code = run_result(g, err);
    g->waiters--;
    fji_lock_drop(&g->lock);
    return code;
}

/* The pool has refused the run. Threads that wait for it already get FJ_ECANCELED. The caller counts
 * as a waiter, so that no thread starts the next run before the call returns. */
static void run_refused(fj_graph *g)
{
    fji_lock_take(&g->lock);
    g->running = false;
    g->waiters++;
    fji_lock_drop(&g->lock);
    (void)fj_future_cancel(&g->future, 0);
    (void)wait_end(g, FJ_ECANCELED);
}

int fj_graph_run(fj_graph *g, fj_pool *pool)
{
    if (g == NULL) return FJ_EINVAL;
    int err = run_prepare(g, fj_current_token(), true);
    if (err != FJ_OK) return err;
    err = fj_future_invoke(pool, &g->future);
    if (!fj_future_is_done(&g->future)) run_refused(g);
    return wait_end(g, err);
}

int fj_graph_start(fj_graph *g, fj_pool *pool)
{
    if (g == NULL) return FJ_EINVAL;
    int err = run_prepare(g, NULL, false);
    if (err != FJ_OK) return err;
    err = fj_future_submit(pool, &g->future);
    if (err != FJ_OK) run_refused(g);
    return err;
}

/* Whether the calling task is a body of g, or a task below one. */
static bool is_inside(const fj_graph *g)
{
    for (const fj_token *t = fj_current_token(); t != NULL; t = t->parent)
        if (t == &g->token) return true;
    return false;
}

int fj_graph_wait(fj_graph *g, int64_t timeout_ns)
{
    int code = FJ_EINVAL;

    if (g == NULL) return FJ_EINVAL;
    if (is_inside(g)) return FJ_EDEADLK;
    fji_lock_take(&g->lock);
    bool waits = g->started && !g->preparing;
    if (waits)
        g->waiters++;
    else if (g->started) /* another thread prepares the next run */
        code = run_result(g, fj_future_error(&g->future));
    fji_lock_drop(&g->lock);
    return waits ? wait_end(g, fj_future_get(&g->future, timeout_ns, NULL)) : code;
}

int fj_graph_cancel(fj_graph *g)
{
    if (g == NULL) return 0;
    fji_lock_take(&g->lock);
    bool active = g->running && fji_graph_is_busy(g);
    if (active) fji_graph_fail(g, FJ_ECANCELED, FJI_GRAPH_FINE, NULL);
    /* relaxed: the lock orders this after an earlier cancel. */
    int cancelled = active && (int)fji_load_relaxed(&g->code) == FJ_ECANCELED;
    fji_lock_drop(&g->lock);
    return cancelled;
}

int fj_graph_check(fj_graph *g)
{
    if (g == NULL) return FJ_EINVAL;
    if (!prepare_begin(g)) return FJ_EBUSY;
    int err = fji_graph_freeze(g);
    prepare_end(g, false, NULL, false);
    return err;
}
