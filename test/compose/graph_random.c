/* SPDX-License-Identifier: MIT */
/*
 * graph_random.c - random graphs, compared with a serial oracle
 *
 * A random program consists of parts. The first node of a part leads to the others, and all of them
 * lead to its last node, directly or not. The last node may be a condition that repeats the part. A
 * body checks that its predecessors have run, computes a value from its number, its round and the
 * results of its predecessors, and hands the value on. The oracle computes the same values in a
 * loop. Runs are repeated on the same graph, also with an error or a cancel at a random body.
 *
 * A growing program adds random nodes and edges during its runs, from bodies and from another
 * thread. Each body takes a stamp at its beginning and its end. After the run the stamps have to be
 * in order along every edge.
 */
#include <forkjoin/graph.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fjtest.h"

/* ---- Programs with loops ----------------------------------------------------------------------- */

enum { NODES_MAX = 300, PARTS_MAX = 3 };

struct item {
    fj_node *node;
    struct program *program;
    int number, nbefore, is_head, left, spin_us;
    uint16_t before[NODES_MAX]; /* the strong predecessors, in the order of the edges */
    atomic_int runs, running;
    uint64_t value;
};

struct part {
    int head, from, last, rounds; /* nodes: head, and from..last */
    int next;                     /* the head of the next part */
};

struct program {
    struct item items[NODES_MAX];
    struct part parts[PARTS_MAX];
    int n, nparts;
    fj_graph *g;
    uint64_t random;
    atomic_int total;
    int fail_at;   /* the body that begins as this one fails; -1: none */
    int cancel_at; /* that body cancels the run; -1: none */
};

static int below(uint64_t *random, int n)
{
    return (int)(fjt_random(random) % (uint64_t)n);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15ull + b;

    return x ^ (x >> 29);
}

static int body(fj_node *n, void *arg)
{
    struct item *it = arg;
    struct program *p = it->program;
    int order = atomic_fetch_add_explicit(&p->total, 1, memory_order_relaxed);

    CHECK(it->node == n);
    CHECK_EQ(atomic_exchange_explicit(&it->running, 1, memory_order_relaxed), 0);
    int runs = atomic_load_explicit(&it->runs, memory_order_relaxed) + 1;
    uint64_t v = mix((uint64_t)it->number, (uint64_t)runs);
    for (int i = 0; i < it->nbefore; i++) {
        struct item *b = &p->items[it->before[i]];
        CHECK_EQ(atomic_load_explicit(&b->running, memory_order_relaxed), 0);
        CHECK(atomic_load_explicit(&b->runs, memory_order_relaxed) >= (it->is_head ? 1 : runs));
        const uint64_t *from = fj_node_input(n, (size_t)i);
        CHECK(from == &b->value);
        v = mix(v, *from);
    }
    if (it->spin_us != 0) fjt_spin_us(it->spin_us);
    it->value = v;
    fj_node_set_result(n, &it->value);
    atomic_store_explicit(&it->runs, runs, memory_order_relaxed);
    atomic_store_explicit(&it->running, 0, memory_order_relaxed);
    if (order == p->cancel_at) (void)fj_graph_cancel(p->g);
    return order == p->fail_at ? 77 : 0;
}

static int decide(fj_node *n, void *arg)
{
    struct item *it = arg;

    if (body(n, arg) != 0) return FJ_EFAILED;
    return --it->left > 0 ? 0 : 1;
}

static struct item *new_item(struct program *p, int condition)
{
    struct item *it = &p->items[p->n];

    it->program = p;
    it->number = p->n++;
    it->spin_us = below(&p->random, 30) == 0 ? below(&p->random, 20) : 0;
    CHECK_EQ(condition ? fj_graph_add_condition(p->g, decide, it, NULL, &it->node)
                       : fj_graph_add(p->g, body, it, NULL, &it->node),
             FJ_OK);
    return it;
}

static void strong(struct program *p, int a, int b)
{
    struct item *to = &p->items[b];

    CHECK_EQ(fj_graph_edge(p->g, p->items[a].node, to->node), FJ_OK);
    to->before[to->nbefore++] = (uint16_t)a;
}

static void make_part(struct program *p, int head, int loops)
{
    struct part *part = &p->parts[p->nparts++];
    int has_next[NODES_MAX] = {0}, nodes = 1 + below(&p->random, 80);
    int repeats = loops && below(&p->random, 2);

    *part = (struct part){.head = head, .from = p->n, .rounds = 1};
    for (int i = 0; i < nodes; i++) {
        int b = new_item(p, 0)->number, n = below(&p->random, 4);
        for (int k = 0; k < n && b > part->from; k++) {
            int a = part->from + below(&p->random, b - part->from);
            strong(p, a, b);
            has_next[a] = 1;
        }
        if (p->items[b].nbefore == 0) strong(p, head, b);
    }
    part->next = part->last = new_item(p, repeats)->number;
    for (int i = part->from; i < part->last; i++)
        if (!has_next[i]) strong(p, i, part->last);
    if (!repeats) return;
    part->rounds = 1 + below(&p->random, 5);
    part->next = new_item(p, 0)->number;
    p->items[head].is_head = 1;
    fj_node *condition = p->items[part->last].node;
    CHECK_EQ(fj_graph_edge(p->g, condition, p->items[head].node), FJ_OK);       /* 0: again */
    CHECK_EQ(fj_graph_edge(p->g, condition, p->items[part->next].node), FJ_OK); /* 1: go on */
}

static void make_program(struct program *p, uint64_t seed, int loops, uint32_t flags)
{
    fj_graph_options o = {.flags = flags};

    memset(p, 0, sizeof *p);
    p->random = seed;
    CHECK_EQ(fj_graph_create(&p->g, &o), FJ_OK);
    int first = new_item(p, 0)->number, head = new_item(p, 0)->number;
    int parts = 1 + below(&p->random, PARTS_MAX);
    strong(p, first, head); /* a head may have a weak predecessor, so it is not the first node */
    for (int i = 0; i < parts; i++) {
        make_part(p, head, loops);
        head = p->parts[i].next;
    }
}

/* ---- The oracle -------------------------------------------------------------------------------- */

struct outcome {
    int runs[NODES_MAX], total;
    uint64_t value[NODES_MAX];
};

static void expect_node(const struct program *p, int i, struct outcome *o)
{
    uint64_t v = mix((uint64_t)i, (uint64_t)++o->runs[i]);

    for (int k = 0; k < p->items[i].nbefore; k++) v = mix(v, o->value[p->items[i].before[k]]);
    o->value[i] = v;
    o->total++;
}

static void expect(const struct program *p, struct outcome *o)
{
    memset(o, 0, sizeof *o);
    expect_node(p, 0, o);
    expect_node(p, 1, o);
    for (int i = 0; i < p->nparts; i++) {
        const struct part *part = &p->parts[i];
        for (int round = 1; round <= part->rounds; round++) {
            if (round > 1) expect_node(p, part->head, o);
            for (int k = part->from; k <= part->last; k++) expect_node(p, k, o);
        }
        if (part->next != part->last) expect_node(p, part->next, o);
    }
}

static void prepare_run(struct program *p, int fail_at, int cancel_at)
{
    p->fail_at = fail_at;
    p->cancel_at = cancel_at;
    atomic_store(&p->total, 0);
    for (int i = 0; i < p->n; i++) {
        atomic_store(&p->items[i].runs, 0);
        atomic_store(&p->items[i].running, 0);
        p->items[i].value = 0;
    }
    for (int i = 0; i < p->nparts; i++) p->items[p->parts[i].last].left = p->parts[i].rounds;
}

static void check_complete(struct program *p, const struct outcome *o)
{
    CHECK_EQ(atomic_load(&p->total), o->total);
    for (int i = 0; i < p->n; i++) {
        CHECK_EQ(atomic_load(&p->items[i].runs), o->runs[i]);
        CHECK(p->items[i].value == o->value[i]);
    }
}

static int run_once(struct program *p, fj_pool *pool)
{
    if (below(&p->random, 2)) return fj_graph_run(p->g, pool);
    CHECK_EQ(fj_graph_start(p->g, pool), FJ_OK);
    return fj_graph_wait(p->g, FJ_FOREVER);
}

static void play(uint64_t seed, int loops, uint32_t flags, fj_pool *pool)
{
    struct program *p = malloc(sizeof *p);
    struct outcome o;

    make_program(p, seed, loops, flags);
    expect(p, &o);
    for (int i = 0; i < 8; i++) {
        int at = below(&p->random, o.total);
        switch (below(&p->random, 4)) {
            case 0: {
                prepare_run(p, at, -1);
                int code = run_once(p, pool);
                CHECK(code == 77 || code == FJ_EFAILED);
                CHECK(fj_graph_failed(p->g) != NULL);
                break;
            }
            case 1:
                prepare_run(p, -1, at);
                CHECK_EQ(run_once(p, pool), FJ_ECANCELED);
                CHECK(fj_graph_failed(p->g) == NULL);
                break;
            default:
                prepare_run(p, -1, -1);
                CHECK_EQ(run_once(p, pool), FJ_OK);
                check_complete(p, &o);
        }
    }
    CHECK_EQ(fj_graph_destroy(p->g), FJ_OK);
    free(p);
}

static void play_all(int loops, uint32_t flags)
{
    static const int workers[] = {1, 2, 4};
    uint64_t random = fjt_seed();

    for (int w = 0; w < 3; w++) {
        fj_pool *pool = fjt_pool(workers[w], w == 1 ? FJ_POOL_FIFO : 0);
        for (long i = fjt_rounds(60); i > 0; i--) play(fjt_random(&random), loops, flags, pool);
        fjt_destroy(pool);
    }
}

FJ_TEST(random_graphs_run_as_the_oracle_says, 60)
{
    play_all(0, 0);
}

FJ_TEST(random_graphs_with_loops_run_as_the_oracle_says, 60)
{
    play_all(1, 0);
}

FJ_TEST(random_graphs_that_may_grow_run_as_the_oracle_says, 60)
{
    play_all(1, FJ_GRAPH_GROWS);
}

/* ---- Cancelling from another thread ------------------------------------------------------------ */

static void *cancels_later(void *arg)
{
    struct program *p = arg;

    fjt_spin_us(below(&p->random, 60));
    (void)fj_graph_cancel(p->g);
    return NULL;
}

FJ_TEST(cancel_at_a_random_moment_ends_the_run_in_one_of_two_ways, 60)
{
    uint64_t random = fjt_seed();
    fj_pool *pool = fjt_pool(2, 0);

    for (long i = fjt_rounds(150); i > 0; i--) {
        struct program *p = malloc(sizeof *p);
        struct outcome o;
        pthread_t t;
        make_program(p, fjt_random(&random), 1, 0);
        expect(p, &o);
        prepare_run(p, -1, -1);
        CHECK_EQ(fj_graph_start(p->g, pool), FJ_OK);
        CHECK_EQ(pthread_create(&t, NULL, cancels_later, p), 0);
        int code = fj_graph_wait(p->g, FJ_FOREVER);
        pthread_join(t, NULL);
        CHECK(code == FJ_OK || code == FJ_ECANCELED);
        if (code == FJ_OK) check_complete(p, &o);
        prepare_run(p, -1, -1);
        CHECK_EQ(fj_graph_run(p->g, pool), FJ_OK);
        check_complete(p, &o);
        CHECK_EQ(fj_graph_destroy(p->g), FJ_OK);
        free(p);
    }
    fjt_destroy(pool);
}

/* ---- Growing ----------------------------------------------------------------------------------- */

enum { GROWN_MAX = 400, ARCS_MAX = 4000 };

struct grown {
    fj_node *node;
    struct growth *growth;
    atomic_int runs, begin, end;
    uint64_t random;
};

struct growth {
    struct grown nodes[GROWN_MAX];
    struct {
        int from, to, run; /* run: the first run in which the edge counts */
    } arcs[ARCS_MAX];
    atomic_int n, narcs, stamp, run, stop;
    fj_graph *g;
    int adds; /* bodies add nodes and edges */
};

static int arc_between(struct growth *gr, fj_node *from, int a, fj_node *to, int b, int run)
{
    int err = fj_graph_edge(gr->g, from, to);

    CHECK(err == FJ_OK || err == FJ_EBUSY || err == FJ_EINVAL);
    if (err != FJ_OK) return err;
    int i = atomic_fetch_add(&gr->narcs, 1);
    CHECK(i < ARCS_MAX);
    gr->arcs[i].from = a;
    gr->arcs[i].to = b;
    gr->arcs[i].run = run;
    return FJ_OK;
}

/* Adds an edge. `run`: the first run in which it has to hold if the call succeeds. */
static int arc(struct growth *gr, int a, int b, int run)
{
    fj_node *from = __atomic_load_n(&gr->nodes[a].node, __ATOMIC_ACQUIRE);
    fj_node *to = __atomic_load_n(&gr->nodes[b].node, __ATOMIC_ACQUIRE);

    if (a == b || from == NULL || to == NULL) return FJ_EINVAL;
    return arc_between(gr, from, a, to, b, run);
}

static int grown_body(fj_node *n, void *arg);

/* Adds a node behind the node `me`, whose body makes the call; -1: behind none. Other threads see
 * the new node only afterwards. Returns its number, or -1 if there are enough. */
static int grown_add(struct growth *gr, uint64_t random, int me)
{
    int i = atomic_fetch_add(&gr->n, 1);
    fj_node *n;

    if (i >= GROWN_MAX) return -1;
    gr->nodes[i].growth = gr;
    gr->nodes[i].random = random;
    CHECK_EQ(fj_graph_add(gr->g, grown_body, &gr->nodes[i], NULL, &n), FJ_OK);
    if (me >= 0)
        CHECK_EQ(arc_between(gr, gr->nodes[me].node, me, n, i, atomic_load(&gr->run)), FJ_OK);
    __atomic_store_n(&gr->nodes[i].node, n, __ATOMIC_RELEASE);
    return i;
}

static int grown_known(struct growth *gr)
{
    int n = atomic_load(&gr->n);

    return n < GROWN_MAX ? n : GROWN_MAX;
}

static void grow(struct growth *gr, int me, uint64_t *random)
{
    int run = atomic_load(&gr->run);

    for (int i = below(random, 4); i > 0; i--) {
        int b = grown_add(gr, fjt_random(random), me);
        if (b < 0) return;
        for (int k = below(random, 3); k > 0; k--) {
            int err = arc(gr, below(random, grown_known(gr)), b, run);
            CHECK(err == FJ_OK || err == FJ_EINVAL); /* a cycle, through edges that others added */
        }
        if (below(random, 4) == 0) (void)arc(gr, b, below(random, grown_known(gr)), run);
    }
}

static int grown_body(fj_node *n, void *arg)
{
    struct grown *me = arg;
    struct growth *gr = me->growth;

    (void)n;
    atomic_store(&me->begin, atomic_fetch_add(&gr->stamp, 1));
    if (gr->adds) grow(gr, (int)(me - gr->nodes), &me->random);
    atomic_fetch_add(&me->runs, 1);
    atomic_store(&me->end, atomic_fetch_add(&gr->stamp, 1));
    return 0;
}

/* Adds edges from outside while the graph runs. They count from the next run on at the latest. */
static void *grows_outside(void *arg)
{
    struct growth *gr = arg;
    uint64_t random = fjt_seed() + 1;

    while (atomic_load(&gr->stamp) == 0) fjt_spin_us(1);
    while (atomic_load(&gr->stop) == 0 && atomic_load(&gr->narcs) < ARCS_MAX - 2000) {
        int known = grown_known(gr);
        (void)arc(gr, below(&random, known), below(&random, known), atomic_load(&gr->run) + 1);
        fjt_spin_us(2);
    }
    return NULL;
}

static void check_growth(struct growth *gr, int complete)
{
    int n = grown_known(gr), run = atomic_load(&gr->run);

    for (int i = 0; i < n; i++) {
        int runs = atomic_load(&gr->nodes[i].runs);
        CHECK(complete ? runs == 1 : runs <= 1);
    }
    for (int i = atomic_load(&gr->narcs); i-- > 0;) {
        struct grown *a = &gr->nodes[gr->arcs[i].from], *b = &gr->nodes[gr->arcs[i].to];
        if (gr->arcs[i].run > run || atomic_load(&b->runs) == 0) continue;
        CHECK_EQ(atomic_load(&a->runs), 1);
        CHECK(atomic_load(&a->end) < atomic_load(&b->begin));
    }
}

static void grown_run(struct growth *gr, fj_pool *pool, int adds)
{
    atomic_fetch_add(&gr->run, 1);
    gr->adds = adds;
    for (int i = 0; i < GROWN_MAX; i++) atomic_store(&gr->nodes[i].runs, 0);
    CHECK_EQ(fj_graph_run(gr->g, pool), FJ_OK);
}

FJ_TEST(nodes_and_edges_added_during_a_run_are_respected, 60)
{
    uint64_t random = fjt_seed();
    fj_pool *pool = fjt_pool(3, 0);
    const fj_graph_options o = {.flags = FJ_GRAPH_GROWS};

    for (long i = fjt_rounds(60); i > 0; i--) {
        struct growth *gr = calloc(1, sizeof *gr);
        pthread_t t;
        CHECK_EQ(fj_graph_create(&gr->g, &o), FJ_OK);
        for (int k = 0; k < 6; k++) (void)grown_add(gr, fjt_random(&random), -1);
        for (int k = 1; k < 4; k++) CHECK_EQ(arc(gr, k - 1, k, 1), FJ_OK);
        bool outside = i % 2 == 0;
        if (outside) CHECK_EQ(pthread_create(&t, NULL, grows_outside, gr), 0);
        grown_run(gr, pool, 1);
        atomic_store(&gr->stop, 1);
        if (outside) pthread_join(t, NULL);
        check_growth(gr, 0);
        if (outside && fj_graph_check(gr->g) == FJ_EINVAL) { /* an edge after the run: a cycle */
            char text[32];
            CHECK(fj_graph_error(gr->g, text, sizeof text) > 0);
            CHECK(strncmp(text, "cycle: #", 8) == 0);
        } else {
            grown_run(gr, pool, 0);
            check_growth(gr, 1);
        }
        CHECK_EQ(fj_graph_destroy(gr->g), FJ_OK);
        free(gr);
    }
    fjt_destroy(pool);
}
