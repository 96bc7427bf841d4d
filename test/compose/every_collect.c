/* SPDX-License-Identifier: MIT */
/*
 * every_collect.c - a garbage collector on fj_broadcast(), with an oracle
 *
 * Tasks build lists in a heap of cells that they share. A task that finds no free cell asks for a
 * collection. One participant of the broadcast marks all lists, with one task for each range of
 * roots, and then frees the cells that are not marked; the others help. Every task checks its list
 * after each of its steps: if a live cell was freed, or if a task has allocated while the world was
 * stopped, a cell has a wrong value.
 */
#include <forkjoin/algo.h>
#include <forkjoin/every.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "fjtest.h"

#define CELLS 2000
#define ROOTS 256
#define NIL (-1)

struct cell {
    int next;
    uint32_t value;
    atomic_int marked;
};

static struct cell heap[CELLS];
static atomic_int free_list[CELLS]; /* the free cells: free_list[0] to free_list[free_count - 1] */
static atomic_int free_count;
static atomic_int roots[ROOTS]; /* first cell of the list of each task that runs, or NIL */
static atomic_int root_used[ROOTS];
static atomic_int collections, stopped;

/* ---- The collector --------------------------------------------------------------------------- */

static int mark_roots(size_t from, size_t to, void *arg)
{
    (void)arg;
    CHECK_EQ(atomic_load(&stopped), 1);
    for (size_t r = from; r < to; r++)
        for (int i = atomic_load(&roots[r]); i != NIL; i = heap[i].next)
            if (atomic_exchange(&heap[i].marked, 1) != 0) break;
    return FJ_OK;
}

static void sweep(void)
{
    int n = 0;

    for (int i = 0; i < CELLS; i++)
        if (atomic_exchange(&heap[i].marked, 0) == 0) {
            heap[i].value = 0;
            atomic_store(&free_list[n++], i);
        }
    atomic_store(&free_count, n);
}

/* One collection, in the frame of the thread that asks for it. */
struct collection {
    atomic_int begun; /* a participant has begun it */
};

/* fn of the broadcast. The first participant collects, unless another broadcast has just done so.
 * The others return at once and help. */
static int collect(void *arg)
{
    struct collection *c = arg;
    fj_algo_options how = {.grain = 4};

    if (atomic_exchange(&c->begun, 1) != 0 || atomic_load(&free_count) > 0) return FJ_OK;
    atomic_store(&stopped, 1);
    CHECK_EQ(fj_for(0, ROOTS, mark_roots, NULL, &how), FJ_OK);
    sweep();
    atomic_fetch_add(&collections, 1);
    atomic_store(&stopped, 0);
    return FJ_OK;
}

static void ask(fj_pool *pool)
{
    struct collection c = {0};

    CHECK_EQ(fj_broadcast(pool, collect, &c), FJ_OK);
}

/* ---- The mutators ---------------------------------------------------------------------------- */

/* Returns a free cell. The caller has no safepoint between this call and the store of its root. */
static int allocate(fj_pool *pool)
{
    for (;;) {
        int n = atomic_load(&free_count);
        CHECK_EQ(atomic_load(&stopped), 0);
        if (n > 0) {
            int i = atomic_load(&free_list[n - 1]);
            if (atomic_compare_exchange_strong(&free_count, &n, n - 1)) return i;
            continue;
        }
        ask(pool);
    }
}

static int root_new(void)
{
    for (int i = 0;; i = (i + 1) % ROOTS)
        if (atomic_exchange(&root_used[i], 1) == 0) return i;
}

static void check_list(int root, int length, uint32_t tag)
{
    int i = atomic_load(&roots[root]);

    for (int n = length; n > 0; n--, i = heap[i].next) {
        CHECK(i != NIL);
        CHECK_EQ(heap[i].value, tag + (uint32_t)n);
    }
    CHECK_EQ(i, NIL);
}

struct mutator {
    fj_task task;
    fj_pool *pool;
    int depth;
    uint32_t tag;
};

static int mutate(fj_task *t)
{
    struct mutator *m = (struct mutator *)t, child[2];
    int root = root_new(), length = 0;

    atomic_store(&roots[root], NIL);
    for (int k = 0; k < 2 && m->depth > 0; k++) {
        child[k] = (struct mutator){
            .pool = m->pool, .depth = m->depth - 1, .tag = m->tag * 2 + (uint32_t)k * 1000};
        fj_task_init(&child[k].task, mutate);
        fj_fork(&child[k].task);
    }
    for (int round = 0; round < 6; round++) {
        int i = allocate(m->pool);
        heap[i].value = m->tag + (uint32_t)++length;
        heap[i].next = atomic_load(&roots[root]);
        atomic_store(&roots[root], i);
        fj_safepoint();
        check_list(root, length, m->tag);
        if (round == 3) { /* the list becomes garbage */
            atomic_store(&roots[root], NIL);
            length = 0;
        }
    }
    for (int k = 1; k >= 0 && m->depth > 0; k--) CHECK_EQ(fj_join(&child[k].task), FJ_OK);
    check_list(root, length, m->tag);
    atomic_store(&roots[root], NIL);
    atomic_store(&root_used[root], 0);
    return FJ_OK;
}

static int ask_run(fj_task *t)
{
    struct mutator *m = (struct mutator *)t;

    ask(m->pool);
    return FJ_OK;
}

static void inside_ask(fj_pool *pool)
{
    struct mutator m = {.pool = pool};

    fj_task_init(&m.task, ask_run);
    CHECK_EQ(fj_invoke(pool, &m.task), FJ_OK);
}

FJ_TEST(collector_frees_no_live_cell_and_finds_all_garbage, 120)
{
    static const int workers[] = {1, 2, 4};

    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++) {
        fj_pool *pool = fjt_pool(workers[w], 0);
        struct mutator root = {.pool = pool, .depth = 9, .tag = 1};
        for (int i = 0; i < ROOTS; i++) atomic_store(&roots[i], NIL);
        sweep();
        CHECK_EQ(atomic_load(&free_count), CELLS);
        atomic_store(&collections, 0);
        for (long i = fjt_rounds(2); i > 0; i--) {
            fj_task_init(&root.task, mutate);
            CHECK_EQ(fj_invoke(pool, &root.task), FJ_OK);
        }
        CHECK(atomic_load(&collections) > 0);
        for (int i = 0; i < ROOTS; i++) CHECK_EQ(atomic_load(&roots[i]), NIL);
        atomic_store(&free_count, 0);
        inside_ask(pool);
        CHECK_EQ(atomic_load(&free_count), CELLS); /* all lists were garbage */
        fjt_destroy(pool);
    }
}
