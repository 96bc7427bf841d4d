/* SPDX-License-Identifier: MIT */
/*
 * graph.c - scenarios of graphs: the join counter, loops, the end of a run against additions, cancel
 */
#include <forkjoin/graph.h>
#include <pthread.h>

#include "scenario.h"

static fj_graph *graph_make(uint32_t flags)
{
    fj_graph_options o;
    fj_graph *g;

    memset(&o, 0, sizeof o);
    o.flags = flags;
    CHECK_EQ(fj_graph_create(&g, &o), FJ_OK);
    return g;
}

static fj_node *graph_node(fj_graph *g, fj_node_fn *fn, void *arg)
{
    fj_node *n;

    CHECK_EQ(fj_graph_add(g, fn, arg, NULL, &n), FJ_OK);
    return n;
}

static void graph_edge(fj_graph *g, fj_node *a, fj_node *b)
{
    CHECK_EQ(fj_graph_edge(g, a, b), FJ_OK);
}

/* ---- The join counter -------------------------------------------------------------------------- */

/* A body writes a plain variable, and its successors read it: the simulator reports a read that the
 * counter does not order. */
struct place {
    int value;
    atomic_int runs;
};

static int place_fill(fj_node *n, void *arg)
{
    struct place *p = arg;

    p->value++;
    atomic_fetch_add_explicit(&p->runs, 1, memory_order_relaxed);
    fj_node_set_result(n, &p->value);
    return 0;
}

static int place_sum(fj_node *n, void *arg)
{
    struct place *p = arg;

    p->value = 0;
    for (size_t i = fj_node_input_count(n); i-- > 0;) p->value += *(int *)fj_node_input(n, i);
    atomic_fetch_add_explicit(&p->runs, 1, memory_order_relaxed);
    fj_node_set_result(n, &p->value);
    return 0;
}

/* Three sources that lead to two nodes, which lead to one. */
FJ_TEST(node_begins_once_after_all_its_predecessors, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_graph *g = graph_make(sim_random() % 4 == 0 ? FJ_GRAPH_GROWS : 0);
    struct place places[6];
    fj_node *n[6];

    memset(places, 0, sizeof places);
    for (int i = 0; i < 6; i++) n[i] = graph_node(g, i < 3 ? place_fill : place_sum, &places[i]);
    for (int i = 0; i < 3; i++) {
        graph_edge(g, n[i], n[3]);
        graph_edge(g, n[i], n[4]);
    }
    graph_edge(g, n[3], n[5]);
    graph_edge(g, n[4], n[5]);
    for (int run = 1; run <= 2; run++) {
        CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
        for (int i = 0; i < 6; i++) CHECK_EQ(atomic_load(&places[i].runs), run);
        CHECK_EQ(places[5].value, 6 * run);
    }
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Loops ------------------------------------------------------------------------------------- */

static int loop_decide(fj_node *n, void *arg)
{
    struct place *p = arg;

    (void)n;
    return ++p->value < 2 ? 0 : 1;
}

/* The body of the loop is forked again while an earlier frame has not joined it. */
FJ_TEST(loop_runs_its_nodes_once_in_each_round, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_graph *g = graph_make(sim_random() % 4 == 0 ? FJ_GRAPH_GROWS : 0);
    struct place places[4];
    fj_node *n[5], *decide;

    memset(places, 0, sizeof places);
    for (int i = 0; i < 3; i++) n[i] = graph_node(g, place_fill, &places[i]);
    CHECK_EQ(fj_graph_add_condition(g, loop_decide, &places[3], NULL, &decide), FJ_OK);
    fj_node *start = graph_node(g, place_fill, &places[0]);
    graph_edge(g, start, n[0]);
    graph_edge(g, n[0], n[1]);
    graph_edge(g, n[0], n[2]);
    graph_edge(g, n[1], decide);
    graph_edge(g, n[2], decide);
    graph_edge(g, decide, n[0]);
    CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
    CHECK_EQ(places[0].value, 3);
    CHECK_EQ(places[1].value, 2);
    CHECK_EQ(places[2].value, 2);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

/* Two conditions choose the same node. It runs twice, one after the other, or the second start is
 * refused. */
struct chosen {
    int value;
    atomic_int running, runs;
};

static int chosen_run(fj_node *n, void *arg)
{
    struct chosen *c = arg;

    (void)n;
    CHECK_EQ(atomic_exchange_explicit(&c->running, 1, memory_order_relaxed), 0);
    c->value++;
    atomic_store_explicit(&c->running, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->runs, 1, memory_order_relaxed);
    return 0;
}

static int choose_first(fj_node *n, void *arg)
{
    (void)n, (void)arg;
    return 0;
}

FJ_TEST(node_that_two_conditions_choose_does_not_run_twice_at_once, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_graph *g = graph_make(0);
    struct chosen c;
    fj_node *a, *b, *n = graph_node(g, chosen_run, &c);

    memset(&c, 0, sizeof c);
    CHECK_EQ(fj_graph_add_condition(g, choose_first, NULL, NULL, &a), FJ_OK);
    CHECK_EQ(fj_graph_add_condition(g, choose_first, NULL, NULL, &b), FJ_OK);
    graph_edge(g, a, n);
    graph_edge(g, b, n);
    int code = fj_graph_run(g, pool), runs = atomic_load(&c.runs);
    CHECK(code == FJ_OK || code == FJ_EBUSY);
    CHECK(code == FJ_OK ? runs == 2 : runs <= 1);
    CHECK_EQ(c.value, runs);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Additions --------------------------------------------------------------------------------- */

enum { TARGETS = 3 };

struct growing {
    fj_graph *g;
    fj_node *a, *b, *target[TARGETS];
    struct place place_a, place_b, place_target;
    int err;
};

/* Another thread connects a, which may have ended, to the targets, which wait for b. */
static void *grows_outside(void *arg)
{
    struct growing *gr = arg;

    for (int i = TARGETS; i-- > 0;) {
        int err = fj_graph_edge(gr->g, gr->a, gr->target[i]);
        CHECK(err == FJ_OK || err == FJ_EBUSY);
    }
    return NULL;
}

/* Each target runs exactly once, after b, and after a if the edge was added in time. */
static int growing_target(fj_node *n, void *arg)
{
    struct growing *gr = arg;

    CHECK_EQ(gr->place_b.value, 1);
    size_t inputs = fj_node_input_count(n);
    CHECK(inputs == 1 || inputs == 2);
    if (inputs == 2) CHECK_EQ(*(int *)fj_node_input(n, 1), 1);
    atomic_fetch_add_explicit(&gr->place_target.runs, 1, memory_order_relaxed);
    return 0;
}

FJ_TEST(edge_that_is_added_during_a_run_is_counted_or_refused, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct growing *gr = malloc(sizeof *gr);
    pthread_t t;

    memset(gr, 0, sizeof *gr);
    gr->g = graph_make(FJ_GRAPH_GROWS);
    gr->a = graph_node(gr->g, place_fill, &gr->place_a);
    gr->b = graph_node(gr->g, place_fill, &gr->place_b);
    for (int i = 0; i < TARGETS; i++) {
        gr->target[i] = graph_node(gr->g, growing_target, gr);
        graph_edge(gr->g, gr->b, gr->target[i]);
    }
    CHECK_EQ(fj_graph_start(gr->g, pool), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, grows_outside, gr), 0);
    CHECK_EQ(fj_graph_wait(gr->g, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&gr->place_target.runs), TARGETS);
    pthread_join(t, NULL);
    CHECK_EQ(fj_graph_destroy(gr->g), FJ_OK);
    fjt_destroy(pool);
    free(gr);
}

/* Another thread adds nodes behind a, which may have ended. If the second edge to a node is refused,
 * the first one has started the node, so it belongs to the run. */
static int late_run(fj_node *n, void *arg)
{
    (void)n;
    atomic_fetch_add_explicit((atomic_int *)arg, 1, memory_order_relaxed);
    return 0;
}

struct late {
    fj_graph *g;
    fj_node *a, *b;
    struct place place_a, place_b;
    atomic_int runs[TARGETS];
    int second[TARGETS];
};

static void *adds_late(void *arg)
{
    struct late *l = arg;

    for (int i = 0; i < TARGETS; i++) {
        fj_node *n = graph_node(l->g, late_run, &l->runs[i]);
        graph_edge(l->g, l->a, n);
        l->second[i] = fj_graph_edge(l->g, l->b, n);
        CHECK(l->second[i] == FJ_OK || l->second[i] == FJ_EBUSY);
    }
    return NULL;
}

FJ_TEST(node_that_is_released_at_the_end_of_a_run_is_not_lost, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct late *l = malloc(sizeof *l);
    int before[TARGETS];
    pthread_t t;

    memset(l, 0, sizeof *l);
    l->g = graph_make(FJ_GRAPH_GROWS);
    l->a = graph_node(l->g, place_fill, &l->place_a);
    l->b = graph_node(l->g, place_fill, &l->place_b);
    CHECK_EQ(fj_graph_start(l->g, pool), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, adds_late, l), 0);
    CHECK_EQ(fj_graph_wait(l->g, FJ_FOREVER), FJ_OK);
    pthread_join(t, NULL);
    for (int i = 0; i < TARGETS; i++) {
        before[i] = atomic_load(&l->runs[i]);
        if (l->second[i] == FJ_EBUSY) CHECK_EQ(before[i], 1);
        CHECK(before[i] <= 1);
    }
    CHECK_EQ(fj_graph_run(l->g, pool), FJ_OK);
    for (int i = 0; i < TARGETS; i++) CHECK_EQ(atomic_load(&l->runs[i]), before[i] + 1);
    CHECK_EQ(fj_graph_destroy(l->g), FJ_OK);
    fjt_destroy(pool);
    free(l);
}

/* ---- Cancel ------------------------------------------------------------------------------------ */

static void *cancels(void *arg)
{
    int *cancelled = (int *)((void **)arg)[1];

    *cancelled = fj_graph_cancel(((void **)arg)[0]);
    return NULL;
}

/* The result of the run is what fj_graph_cancel() has said, and the next run is complete. */
FJ_TEST(cancel_against_the_last_node, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_graph *g = graph_make(0);
    struct place places[3];
    int cancelled = 0;
    fj_node *n[3];
    void *arg[2] = {g, &cancelled};
    pthread_t t;

    memset(places, 0, sizeof places);
    for (int i = 0; i < 3; i++) n[i] = graph_node(g, place_fill, &places[i]);
    graph_edge(g, n[0], n[2]);
    graph_edge(g, n[1], n[2]);
    CHECK_EQ(fj_graph_start(g, pool), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, cancels, arg), 0);
    int code = fj_graph_wait(g, FJ_FOREVER);
    pthread_join(t, NULL);
    CHECK_EQ(code, cancelled ? FJ_ECANCELED : FJ_OK);
    if (!cancelled) CHECK_EQ(places[2].value, 1);
    memset(places, 0, sizeof places);
    CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(places[i].value, 1);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Waiting ----------------------------------------------------------------------------------- */

/* While a thread returns from its wait, another one starts the next run. */
static void *waits(void *g)
{
    int code = fj_graph_wait(g, FJ_FOREVER);

    CHECK(code == 7 || code == 8);
    return NULL;
}

static int fails(fj_node *n, void *arg)
{
    struct place *p = arg;

    (void)n;
    return ++p->value;
}

FJ_TEST(waiter_gets_the_result_of_its_run, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_graph *g = graph_make(0);
    struct place p;
    int code;
    pthread_t t;

    memset(&p, 0, sizeof p);
    p.value = 6;
    (void)graph_node(g, fails, &p);
    CHECK_EQ(fj_graph_start(g, pool), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, waits, g), 0);
    CHECK_EQ(fj_graph_wait(g, FJ_FOREVER), 7);
    while ((code = fj_graph_run(g, pool)) == FJ_EBUSY) sim_yield();
    CHECK_EQ(code, 8);
    pthread_join(t, NULL);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}
