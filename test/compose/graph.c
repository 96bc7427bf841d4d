/* SPDX-License-Identifier: MIT */
/*
 * graph.c - graphs of nodes and edges: order, results, conditions, errors, cancelling, growing, text
 */
#include <forkjoin/block.h>
#include <forkjoin/graph.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fjtest.h"

/* ---- Helpers ----------------------------------------------------------------------------------- */

static fj_graph *make(uint32_t flags)
{
    fj_graph_options o = {.flags = flags};
    fj_graph *g;

    CHECK_EQ(fj_graph_create(&g, &o), FJ_OK);
    return g;
}

static fj_node *add(fj_graph *g, fj_node_fn *fn, void *arg, const char *name)
{
    fj_node *n;

    CHECK_EQ(fj_graph_add(g, fn, arg, name, &n), FJ_OK);
    return n;
}

static fj_node *add_condition(fj_graph *g, fj_node_fn *fn, void *arg, const char *name)
{
    fj_node *n;

    CHECK_EQ(fj_graph_add_condition(g, fn, arg, name, &n), FJ_OK);
    return n;
}

static void edge(fj_graph *g, fj_node *a, fj_node *b)
{
    CHECK_EQ(fj_graph_edge(g, a, b), FJ_OK);
}

/* A log of the order in which nodes ran. */
struct log {
    atomic_int n;
    const char *names[64];
};

static int log_name(fj_node *n, void *arg)
{
    struct log *l = arg;

    l->names[atomic_fetch_add(&l->n, 1)] = fj_node_name(n);
    return 0;
}

static int counts(fj_node *n, void *arg)
{
    (void)n;
    atomic_fetch_add((atomic_int *)arg, 1);
    return 0;
}

static int nothing(fj_node *n, void *arg)
{
    (void)n, (void)arg;
    return 0;
}

static void check_error(fj_graph *g, const char *text)
{
    char buf[200];
    size_t n = fj_graph_error(g, buf, sizeof buf);

    if (strcmp(buf, text) != 0)
        fjt_fail(__FILE__, __LINE__, "got \"%s\", wanted \"%s\"", buf, text);
    CHECK_EQ(n, strlen(text));
}

/* ---- Order and results ------------------------------------------------------------------------- */

FJ_TEST(chain_runs_in_order_in_every_run, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_graph *g = make(0);
    struct log log = {0};
    fj_node *a = add(g, log_name, &log, "a"), *b = add(g, log_name, &log, "b"),
            *c = add(g, log_name, &log, "c");

    edge(g, b, c);
    edge(g, a, b);
    for (int i = 0; i < 3; i++) {
        atomic_store(&log.n, 0);
        CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
        CHECK_EQ(atomic_load(&log.n), 3);
        CHECK(*log.names[0] == 'a' && *log.names[1] == 'b' && *log.names[2] == 'c');
    }
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(empty_graph_runs, 10)
{
    fj_graph *g = make(0);

    CHECK_EQ(fj_graph_run(g, NULL), FJ_OK);
    CHECK_EQ(fj_graph_check(g), FJ_OK);
    CHECK_EQ(fj_graph_start(g, NULL), FJ_OK);
    CHECK_EQ(fj_graph_wait(g, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

static int gives_arg(fj_node *n, void *arg)
{
    fj_node_set_result(n, arg);
    return 0;
}

static int joins_inputs(fj_node *n, void *arg)
{
    char *text = arg;

    CHECK_EQ(fj_node_input_count(n), 3);
    for (size_t i = 0; i < 3; i++) text[i] = *(char *)fj_node_input(n, i);
    CHECK(fj_node_input(n, 3) == NULL);
    CHECK(fj_node_graph(n) != NULL);
    return 0;
}

FJ_TEST(inputs_have_the_order_of_the_edges, 10)
{
    fj_graph *g = make(0);
    char text[4] = "";
    fj_node *end = add(g, joins_inputs, text, "end"), *v[3];
    static char letters[] = "abc";

    for (int i = 0; i < 3; i++) v[i] = add(g, gives_arg, &letters[i], NULL);
    edge(g, v[2], end);
    edge(g, v[0], end);
    edge(g, v[1], end);
    CHECK_EQ(fj_graph_run(g, NULL), FJ_OK);
    CHECK(strcmp(text, "cab") == 0);
    CHECK(fj_node_result(v[1]) == &letters[1]);
    CHECK(strcmp(fj_node_name(v[1]), "") == 0);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

/* More nodes than a frame has slots, all ready at once: first as sources, then as successors. */
FJ_TEST(wide_graph_runs_every_node_once, 20)
{
    enum { WIDE = 2000 };
    fj_pool *pool = fjt_pool(3, 0);
    fj_graph *g = make(0);
    atomic_int n = 0;
    fj_node *middle = add(g, nothing, NULL, "middle"), *end = add(g, nothing, NULL, "end");

    for (int i = 0; i < WIDE; i++) {
        fj_node *a = add(g, counts, &n, NULL), *b = add(g, counts, &n, NULL);
        edge(g, a, middle);
        edge(g, middle, b);
        edge(g, b, end);
        if (i % 2 == 0) edge(g, a, b);
    }
    for (int i = 1; i <= 5; i++) {
        CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
        CHECK_EQ(atomic_load(&n), 2 * WIDE * i);
    }
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

static int forked_child(fj_task *t)
{
    (void)t;
    return 0;
}

static int forks_below(fj_node *n, void *arg)
{
    fj_task t;

    (void)n;
    fj_task_init(&t, forked_child);
    fj_fork(&t);
    CHECK_EQ(fj_join(&t), 0);
    atomic_fetch_add((atomic_int *)arg, 1);
    return 0;
}

static int runs_graph(fj_node *n, void *arg)
{
    (void)n;
    return fj_graph_run(arg, fj_current_pool());
}

FJ_TEST(body_may_fork_and_run_another_graph, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_graph *inner = make(0), *outer = make(0);
    atomic_int n = 0;

    for (int i = 0; i < 10; i++) (void)add(inner, forks_below, &n, NULL);
    fj_node *a = add(outer, runs_graph, inner, NULL), *b = add(outer, forks_below, &n, NULL);
    edge(outer, b, a);
    CHECK_EQ(fj_graph_run(outer, pool), FJ_OK);
    CHECK_EQ(atomic_load(&n), 11);
    CHECK_EQ(fj_graph_destroy(inner), FJ_OK);
    CHECK_EQ(fj_graph_destroy(outer), FJ_OK);
    fjt_destroy(pool);
}

FJ_TASK(int, typed_run, fj_graph *, g)
{
    typed_run_task t;

    if (g == NULL) return 0;
    typed_run_fork(FJ, &t, NULL);
    int code = fj_graph_run(g, NULL);
    return typed_run_join(FJ, &t) + code;
}

FJ_TEST(typed_task_may_run_a_graph, 20)
{
    fj_graph *g = make(0);
    atomic_int n = 0;
    int code = 1;
    fj_node *end = add(g, forks_below, &n, NULL);

    for (int i = 0; i < 100; i++) edge(g, add(g, forks_below, &n, NULL), end);
    CHECK_EQ(typed_run_invoke(NULL, &code, g), FJ_OK);
    CHECK_EQ(code, FJ_OK);
    CHECK_EQ(atomic_load(&n), 101);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

/* ---- Conditions and loops ---------------------------------------------------------------------- */

static int counts_down(fj_node *n, void *arg)
{
    (void)n;
    return --*(int *)arg > 0 ? 0 : 1;
}

FJ_TEST(condition_repeats_a_part_of_the_graph, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_graph *g = make(0);
    atomic_int steps = 0, left = 0, right = 0, ends = 0;
    int rounds;
    fj_node *init = add(g, nothing, NULL, "init"), *step = add(g, counts, &steps, "step"),
            *l = add(g, counts, &left, "l"), *r = add(g, counts, &right, "r"),
            *meet = add(g, nothing, NULL, "meet"),
            *more = add_condition(g, counts_down, &rounds, "more?"),
            *done = add(g, counts, &ends, "done");

    edge(g, init, step);
    edge(g, step, l);
    edge(g, step, r);
    edge(g, l, meet);
    edge(g, r, meet);
    edge(g, meet, more);
    edge(g, more, step);
    edge(g, more, done);
    for (int i = 1; i <= 4; i++) {
        rounds = 200;
        CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
        CHECK_EQ(atomic_load(&steps), 200 * i);
        CHECK_EQ(atomic_load(&left), 200 * i);
        CHECK_EQ(atomic_load(&right), 200 * i);
        CHECK_EQ(atomic_load(&ends), i);
    }
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

static int returns_arg(fj_node *n, void *arg)
{
    (void)n;
    return (int)(intptr_t)arg;
}

FJ_TEST(branch_that_is_not_chosen_does_not_run, 10)
{
    for (int chosen = 0; chosen < 3; chosen++) {
        fj_graph *g = make(0);
        atomic_int n[3] = {0, 0, 0};
        fj_node *c = add_condition(g, returns_arg, (void *)(intptr_t)chosen, "c");
        fj_node *a = add(g, counts, &n[0], "a"), *b = add(g, counts, &n[1], "b"),
                *both = add(g, counts, &n[2], "both");

        edge(g, c, a);
        edge(g, c, b);
        edge(g, a, both);
        edge(g, b, both);
        CHECK_EQ(fj_graph_run(g, NULL), FJ_OK);
        CHECK_EQ(fj_graph_run(g, NULL), FJ_OK); /* the node that waits for both begins anew */
        CHECK_EQ(atomic_load(&n[0]), chosen == 0 ? 2 : 0);
        CHECK_EQ(atomic_load(&n[1]), chosen == 1 ? 2 : 0);
        CHECK_EQ(atomic_load(&n[2]), 0);
        CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    }
}

FJ_TEST(condition_may_choose_itself, 10)
{
    fj_graph *g = make(0);
    int rounds = 50;
    fj_node *c = add_condition(g, counts_down, &rounds, "c"), *a = add(g, nothing, NULL, "a");

    edge(g, a, c);
    edge(g, c, c);
    CHECK_EQ(fj_graph_run(g, NULL), FJ_OK);
    CHECK_EQ(rounds, 0);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

FJ_TEST(negative_result_of_a_condition_is_an_error, 10)
{
    fj_graph *g = make(0);
    fj_node *c = add_condition(g, returns_arg, (void *)(intptr_t)FJ_ENOTSUP, "c");

    edge(g, c, add(g, nothing, NULL, "a"));
    CHECK_EQ(fj_graph_run(g, NULL), FJ_ENOTSUP);
    CHECK(fj_graph_failed(g) == c);
    check_error(g, "node c failed with -95");
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

/* Two conditions choose the same node, which runs until the second start is refused. */
static int waits_for_second(fj_node *n, void *arg)
{
    (void)n;
    atomic_fetch_add((atomic_int *)arg, 1);
    while (!fj_is_cancelled()) fjt_sleep_us(100);
    return 0;
}

FJ_TEST(node_that_runs_is_not_started_again, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_graph *g = make(0);
    atomic_int runs = 0;
    fj_node *a = add_condition(g, returns_arg, 0, "a"), *b = add_condition(g, returns_arg, 0, "b"),
            *n = add(g, waits_for_second, &runs, "n");

    edge(g, a, n);
    edge(g, b, n);
    CHECK_EQ(fj_graph_run(g, pool), FJ_EBUSY);
    CHECK_EQ(atomic_load(&runs), 1);
    check_error(g, "node n was started while it was queued or running");
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Cycles ------------------------------------------------------------------------------------ */

FJ_TEST(cycle_is_refused_and_its_nodes_are_named, 10)
{
    fj_graph *g = make(0);
    atomic_int n = 0;
    fj_node *s = add(g, counts, &n, "s"), *a = add(g, counts, &n, "a"),
            *b = add(g, counts, &n, "b"), *c = add(g, counts, &n, NULL),
            *end = add(g, counts, &n, "end");
    char buf[8];

    edge(g, s, a);
    edge(g, a, b);
    edge(g, b, c);
    edge(g, c, end);
    CHECK_EQ(fj_graph_check(g), FJ_OK);
    check_error(g, "");
    edge(g, c, a);
    CHECK_EQ(fj_graph_check(g), FJ_EINVAL);
    CHECK_EQ(fj_graph_run(g, NULL), FJ_EINVAL);
    CHECK_EQ(fj_graph_start(g, NULL), FJ_EINVAL);
    CHECK_EQ(atomic_load(&n), 0);
    char all[64];
    size_t length = fj_graph_error(g, all, sizeof all);
    CHECK(strcmp(all, "cycle: a -> b -> #3 -> a") == 0 ||
          strcmp(all, "cycle: b -> #3 -> a -> b") == 0 ||
          strcmp(all, "cycle: #3 -> a -> b -> #3") == 0);
    CHECK_EQ(fj_graph_error(g, buf, sizeof buf), length);
    CHECK(strcmp(buf, "cycle: ") == 0);
    CHECK_EQ(fj_graph_error(g, NULL, 0), length);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

FJ_TEST(graph_without_a_first_node_is_refused, 10)
{
    fj_graph *g = make(0);
    fj_node *a = add(g, nothing, NULL, "a"), *c = add_condition(g, returns_arg, 0, "c");

    edge(g, a, c);
    edge(g, c, a);
    CHECK_EQ(fj_graph_run(g, NULL), FJ_EINVAL);
    check_error(g, "every node has a predecessor, so none can begin");
    edge(g, add(g, nothing, NULL, "first"), c);
    CHECK_EQ(fj_graph_check(g), FJ_OK);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

/* ---- Errors and cancelling --------------------------------------------------------------------- */

FJ_TEST(first_error_ends_the_run, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_graph *g = make(0);
    atomic_int n = 0;
    fj_node *v[20];

    for (int i = 0; i < 20; i++) {
        v[i] = i == 9 ? add(g, returns_arg, (void *)7, "nine") : add(g, counts, &n, NULL);
        if (i > 0) edge(g, v[i - 1], v[i]);
        if (i > 1) edge(g, v[i - 2], v[i]);
    }
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(fj_graph_run(g, pool), 7);
        CHECK_EQ(atomic_load(&n), 9 * i);
        CHECK(fj_graph_failed(g) == v[9]);
        check_error(g, "node nine failed with 7");
    }
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

static int returns_code(fj_node *n, void *arg)
{
    (void)n;
    return *(int *)arg;
}

/* After a failed run, `join` of some nodes is wrong; the next run starts with the right values. */
FJ_TEST(run_after_a_failed_run_waits_for_all_predecessors, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_graph *g = make(0);
    struct log log = {0};
    int code = 3;
    fj_node *a = add(g, log_name, &log, "a"), *bad = add(g, returns_code, &code, "bad"),
            *b = add(g, log_name, &log, "b"), *end = add(g, log_name, &log, "end");

    edge(g, a, end);
    edge(g, a, bad);
    edge(g, bad, b);
    edge(g, b, end);
    for (int i = 0; i < 6; i++) {
        code = i % 2 == 0 ? 3 : 0;
        atomic_store(&log.n, 0);
        CHECK_EQ(fj_graph_run(g, pool), code);
        CHECK_EQ(atomic_load(&log.n), code == 0 ? 3 : 1);
        if (code == 0) CHECK(strcmp(log.names[2], "end") == 0);
    }
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(code_pending_of_a_body_is_passed_on, 10)
{
    fj_graph *g = make(0);

    (void)add(g, returns_arg, (void *)(intptr_t)FJ_PENDING, NULL);
    CHECK_EQ(fj_graph_run(g, NULL), FJ_PENDING);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

static int until_cancelled(fj_node *n, void *arg)
{
    (void)n;
    atomic_store((atomic_int *)arg, 1);
    while (!fj_is_cancelled()) fjt_sleep_us(50);
    return 0;
}

FJ_TEST(cancel_ends_a_run, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_graph *g = make(0);
    atomic_int begun = 0, after = 0;
    fj_node *a = add(g, until_cancelled, &begun, "a");

    edge(g, a, add(g, counts, &after, "after"));
    CHECK_EQ(fj_graph_cancel(g), 0);
    for (int i = 0; i < 3; i++) {
        atomic_store(&begun, 0);
        CHECK_EQ(fj_graph_start(g, pool), FJ_OK);
        while (atomic_load(&begun) == 0) fjt_sleep_us(50);
        CHECK_EQ(fj_graph_wait(g, 0), FJ_ETIMEDOUT);
        CHECK_EQ(fj_graph_run(g, pool), FJ_EBUSY);
        CHECK_EQ(fj_graph_start(g, pool), FJ_EBUSY);
        CHECK_EQ(fj_graph_check(g), FJ_EBUSY);
        CHECK_EQ(fj_graph_destroy(g), FJ_EBUSY);
        CHECK_EQ(fj_graph_add(g, nothing, NULL, NULL, NULL), FJ_EBUSY);
        CHECK_EQ(fj_graph_edge(g, a, a), FJ_EINVAL);
        CHECK(fj_graph_failed(g) == NULL);
        CHECK_EQ(fj_graph_cancel(g), 1);
        CHECK_EQ(fj_graph_wait(g, FJ_FOREVER), FJ_ECANCELED);
        CHECK_EQ(fj_graph_wait(g, 0), FJ_ECANCELED);
        CHECK_EQ(fj_graph_cancel(g), 0);
    }
    CHECK_EQ(atomic_load(&after), 0);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

/* The calling task is cancelled: its graph ends too. */
struct under_token {
    fj_task task;
    fj_graph *g;
    fj_pool *pool;
};

static int runs_under_token(fj_task *t)
{
    struct under_token *u = (struct under_token *)t;

    return fj_graph_run(u->g, u->pool);
}

static void *cancels_token(void *arg)
{
    fjt_sleep_us(2000);
    fj_token_cancel(arg);
    return NULL;
}

FJ_TEST(cancel_of_the_calling_task_ends_the_run, 20)
{
    for (int other = 0; other < 2; other++) {
        fj_pool *pool = fjt_pool(1, 0), *second = fjt_pool(1, 0);
        fj_graph *g = make(0);
        struct under_token u = {.g = g, .pool = other ? second : pool};
        fj_token token;
        pthread_t t;

        fj_node *c = add_condition(g, returns_arg, NULL, "again"), *s = add(g, nothing, NULL, "s");
        edge(g, s, c);
        edge(g, c, c); /* endless */
        fj_token_init(&token, NULL);
        fj_task_init(&u.task, runs_under_token);
        CHECK_EQ(pthread_create(&t, NULL, cancels_token, &token), 0);
        CHECK_EQ(fj_invoke_token(pool, &u.task, &token), FJ_ECANCELED);
        pthread_join(t, NULL);
        CHECK_EQ(fj_graph_destroy(g), FJ_OK);
        fjt_destroy(pool);
        fjt_destroy(second);
    }
}

FJ_TEST(stopped_pool_ends_the_run_as_cancelled, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_graph *g = make(0);
    atomic_int begun = 0;

    fj_node *c = add_condition(g, returns_arg, NULL, "again"), *s = add(g, counts, &begun, "s");
    edge(g, s, c);
    edge(g, c, c); /* endless */
    CHECK_EQ(fj_graph_start(g, pool), FJ_OK);
    while (atomic_load(&begun) == 0) fjt_sleep_us(50);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK_EQ(fj_graph_wait(g, FJ_FOREVER), FJ_ECANCELED);
    CHECK_EQ(fj_graph_start(g, pool), FJ_EREJECTED);
    CHECK_EQ(fj_graph_run(g, pool), FJ_EREJECTED);
    fjt_destroy(pool);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

/* The pool stops while a worker has forked nodes and another one has stolen some. */
static int waits_for_stop(fj_node *n, void *arg)
{
    (void)n;
    atomic_fetch_add((atomic_int *)arg, 1);
    while (!fj_is_cancelled()) fjt_sleep_us(20);
    return 0;
}

FJ_TEST(stopped_pool_discards_nodes_that_are_queued, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_graph *g = make(0);
    atomic_int begun = 0;

    for (int i = 0; i < 100; i++) (void)add(g, waits_for_stop, &begun, NULL);
    CHECK_EQ(fj_graph_start(g, pool), FJ_OK);
    while (atomic_load(&begun) < 2) fjt_sleep_us(50);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK_EQ(fj_graph_wait(g, FJ_FOREVER), FJ_ECANCELED);
    CHECK(atomic_load(&begun) < 100);
    fjt_destroy(pool);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

/* ---- Waiting ----------------------------------------------------------------------------------- */

static int waits_for_itself(fj_node *n, void *arg)
{
    fj_graph *g = fj_node_graph(n);
    char buf[8];

    CHECK_EQ(fj_graph_wait(g, FJ_FOREVER), FJ_EDEADLK);
    CHECK_EQ(fj_graph_run(g, arg), FJ_EBUSY);
    CHECK_EQ(fj_graph_start(g, arg), FJ_EBUSY);
    CHECK_EQ(fj_graph_destroy(g), FJ_EBUSY);
    CHECK_EQ(fj_graph_check(g), FJ_EBUSY);
    CHECK_EQ(fj_graph_error(g, buf, sizeof buf), 0);
    CHECK_EQ(fj_graph_edge(g, n, n), FJ_EINVAL);
    return 0;
}

FJ_TEST(body_cannot_wait_for_its_own_run, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_graph *g = make(0);

    CHECK_EQ(fj_graph_wait(g, 0), FJ_EINVAL); /* never started */
    (void)add(g, waits_for_itself, pool, NULL);
    CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
    CHECK_EQ(fj_graph_wait(g, 0), FJ_OK);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

struct waiting {
    fj_graph *g;
    int code;
};

static void *waits(void *arg)
{
    struct waiting *w = arg;

    w->code = fj_graph_wait(w->g, FJ_FOREVER);
    return NULL;
}

FJ_TEST(several_threads_wait_for_a_run, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_graph *g = make(0);
    atomic_int n = 0;
    pthread_t t[3];
    struct waiting w[3];

    for (int i = 0; i < 200; i++) (void)add(g, counts, &n, NULL);
    for (int round = 1; round <= 20; round++) {
        CHECK_EQ(fj_graph_start(g, pool), FJ_OK);
        for (int i = 0; i < 3; i++) {
            w[i] = (struct waiting){g, 1};
            CHECK_EQ(pthread_create(&t[i], NULL, waits, &w[i]), 0);
        }
        for (int i = 0; i < 3; i++) {
            pthread_join(t[i], NULL);
            CHECK_EQ(w[i].code, FJ_OK);
        }
        CHECK_EQ(atomic_load(&n), 200 * round);
    }
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

/* ---- Growing ----------------------------------------------------------------------------------- */

static int grows_next(fj_node *n, void *arg)
{
    atomic_int *left = arg;
    fj_graph *g = fj_node_graph(n);

    if (atomic_fetch_sub(left, 1) <= 0) return 0;
    for (int i = 0; i < 2; i++) {
        fj_node *child;
        int err = fj_graph_add(g, grows_next, arg, "child", &child);
        if (err == FJ_OK) err = fj_graph_edge(g, n, child);
        if (err != FJ_OK) return 1;
        CHECK_EQ(fj_graph_edge(g, child, n), FJ_EINVAL); /* a cycle, and n has begun */
    }
    return 0;
}

FJ_TEST(bodies_add_nodes_that_run_in_the_same_run, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_graph *g = make(FJ_GRAPH_GROWS);
    atomic_int left = 100;

    (void)add(g, grows_next, &left, "root");
    CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
    CHECK_EQ(atomic_load(&left), -101); /* 1 + 2 * 100 nodes ran */
    CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
    CHECK_EQ(atomic_load(&left), -101 - 201);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

/* a ends, then the body of b adds a node that waits for a, b and c. */
struct late {
    fj_node *a, *b, *c, *d, *other;
    struct log log;
    atomic_int added, c_may_end;
};

static int adds_late(fj_node *n, void *arg)
{
    struct late *l = arg;
    fj_graph *g = fj_node_graph(n);

    CHECK_EQ(fj_graph_edge(g, n, l->a), FJ_EINVAL); /* a -> b exists */
    CHECK_EQ(fj_graph_edge(g, l->other, l->a), FJ_EBUSY);
    CHECK_EQ(fj_graph_edge(g, l->other, n), FJ_EBUSY);
    l->d = add(g, log_name, &l->log, "d");
    edge(g, n, l->d);
    edge(g, l->a, l->d);
    edge(g, l->c, l->d);
    CHECK_EQ(fj_graph_edge(g, l->d, l->c), FJ_EINVAL);
    char buf[64];
    CHECK(fj_graph_error(g, buf, sizeof buf) > 0);
    CHECK(strcmp(buf, "cycle: d -> c -> d") == 0);
    return log_name(n, &l->log);
}

FJ_TEST(added_edges_wait_for_the_nodes_that_have_not_ended, 20)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_graph *g = make(FJ_GRAPH_GROWS);
    struct late l = {0};

    l.a = add(g, log_name, &l.log, "a");
    l.b = add(g, adds_late, &l, "b");
    l.c = add(g, log_name, &l.log, "c");
    l.other = add(g, nothing, NULL, "other");
    edge(g, l.a, l.b);
    edge(g, l.b, l.c);
    CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
    CHECK_EQ(atomic_load(&l.log.n), 4);
    CHECK(strcmp(l.log.names[3], "d") == 0);
    CHECK(strcmp(l.log.names[2], "c") == 0);
    CHECK_EQ(fj_node_input_count(l.d), 3);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

/* An edge from a node that has ended releases a node that no other edge releases. */
static int releases(fj_node *n, void *arg)
{
    struct late *l = arg;
    fj_graph *g = fj_node_graph(n);

    l->d = add(g, log_name, &l->log, "d");
    edge(g, l->a, l->d);
    CHECK_EQ(fj_graph_edge(g, l->other, l->d), FJ_EBUSY); /* it is ready, which counts as begun */
    return log_name(n, &l->log);
}

FJ_TEST(edge_from_a_node_that_has_ended_starts_its_target, 20)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_graph *g = make(FJ_GRAPH_GROWS);
    struct late l = {0};

    l.a = add(g, log_name, &l.log, "a");
    l.b = add(g, releases, &l, "b");
    l.other = add(g, nothing, NULL, "other");
    edge(g, l.a, l.b);
    CHECK_EQ(fj_graph_run(g, pool), FJ_OK);
    CHECK_EQ(atomic_load(&l.log.n), 3);
    CHECK(strcmp(l.log.names[2], "d") == 0);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    fjt_destroy(pool);
}

/* A body adds a branch to a condition, and the condition chooses it. */
static int adds_branch(fj_node *n, void *arg)
{
    struct late *l = arg;
    fj_graph *g = fj_node_graph(n);

    l->d = add(g, log_name, &l->log, "d");
    edge(g, l->c, l->d);
    return log_name(n, &l->log);
}

FJ_TEST(condition_chooses_a_branch_that_was_added, 20)
{
    fj_graph *g = make(FJ_GRAPH_GROWS);
    struct late l = {0};

    l.a = add(g, adds_branch, &l, "a");
    l.c = add_condition(g, returns_arg, (void *)1, "c");
    l.b = add(g, log_name, &l.log, "b");
    edge(g, l.a, l.c);
    edge(g, l.c, l.b);
    CHECK_EQ(fj_graph_run(g, NULL), FJ_OK);
    CHECK_EQ(atomic_load(&l.log.n), 2);
    CHECK(strcmp(l.log.names[1], "d") == 0);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

/* ---- Text -------------------------------------------------------------------------------------- */

struct text {
    char *buf;
    size_t length;
    size_t stop; /* refuse from this length on; 0: never */
};

static int collect(const char *bytes, size_t n, void *arg)
{
    struct text *t = arg;

    if (t->stop != 0 && t->length >= t->stop) return 9;
    t->buf = realloc(t->buf, t->length + n + 1);
    memcpy(t->buf + t->length, bytes, n);
    t->length += n;
    t->buf[t->length] = 0;
    return 0;
}

FJ_TEST(dot_is_valid_and_names_are_escaped, 20)
{
    fj_graph_options o = {.name = "the \"build\""};
    fj_graph *g;
    struct text t = {0};

    CHECK_EQ(fj_graph_create(&g, &o), FJ_OK);
    fj_node *a = add(g, nothing, NULL, "a\\b \"c\"\nd"),
            *c = add_condition(g, returns_arg, NULL, "c"),
            *bad = add(g, returns_arg, (void *)5, NULL);
    edge(g, a, c);
    edge(g, c, bad);
    edge(g, c, a);
    edge(g, add(g, nothing, NULL, "s"), a);
    CHECK_EQ(fj_graph_run(g, NULL), 5);
    CHECK_EQ(fj_graph_dot(g, collect, &t), FJ_OK);
    CHECK(strcmp(t.buf, "digraph \"the \\\"build\\\"\" {\n"
                        "  n0 [label=\"a\\\\b \\\"c\\\"\\nd\"];\n"
                        "  n1 [label=\"c\", shape=diamond];\n"
                        "  n2 [label=\"#2\", color=red];\n"
                        "  n3 [label=\"s\"];\n"
                        "  n0 -> n1;\n"
                        "  n1 -> n2 [style=dashed, label=\"0\"];\n"
                        "  n1 -> n0 [style=dashed, label=\"1\"];\n"
                        "  n3 -> n0;\n"
                        "}\n") == 0);
    size_t all = t.length;
    t.length = 0;
    t.stop = all / 2;
    CHECK_EQ(fj_graph_dot(g, collect, &t), 9);
    CHECK(t.length < all);
    if (system("command -v dot >/dev/null 2>&1") == 0) {
        FILE *p = popen("dot -Tplain >/dev/null 2>&1", "w");
        struct text again = {0};
        CHECK_EQ(fj_graph_dot(g, collect, &again), FJ_OK);
        CHECK_EQ(fwrite(again.buf, 1, again.length, p), again.length);
        CHECK_EQ(pclose(p), 0);
        free(again.buf);
    }
    free(t.buf);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

/* ---- Misuse ------------------------------------------------------------------------------------ */

FJ_TEST(wrong_arguments_are_refused, 10)
{
    fj_graph *g = make(0), *h = make(0), *none = NULL;
    fj_graph_options flags = {.flags = 2}, reserved = {.reserved = {1}},
                     reserved32 = {.reserved32 = 1};
    fj_node *a = add(g, nothing, NULL, "a"), *b = add(h, nothing, NULL, "b");

    CHECK_EQ(fj_graph_create(&none, &flags), FJ_EINVAL);
    CHECK_EQ(fj_graph_create(&none, &reserved), FJ_EINVAL);
    CHECK_EQ(fj_graph_create(&none, &reserved32), FJ_EINVAL);
    CHECK(none == NULL);
    CHECK_EQ(fj_graph_edge(g, a, b), FJ_EINVAL);
    CHECK_EQ(fj_graph_edge(g, b, a), FJ_EINVAL);
    CHECK_EQ(fj_graph_edge(h, a, a), FJ_EINVAL);
    CHECK_EQ(fj_graph_edge(g, a, a), FJ_EINVAL);
    CHECK_EQ(fj_graph_run(g, NULL), FJ_OK);
    CHECK_EQ(fj_graph_run(h, NULL), FJ_OK);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
    CHECK_EQ(fj_graph_destroy(h), FJ_OK);
    CHECK_EQ(fj_graph_destroy(NULL), FJ_OK);
}
