/* SPDX-License-Identifier: MIT */
/*
 * 23_stop_the_world.c - a tiny garbage collector
 *
 * Tasks build trees of cells in one heap. A task that finds no free cell asks for a collection with
 * fj_broadcast(): all workers stop, one of them marks the cells that are in use, with one forked
 * task for each worker, and frees the others; the rest help. Then all continue.
 *
 * The collector finds the cells in use through the roots. Each worker has a stack of roots: a task
 * pushes the cells that it still needs, and pops them before it returns. A task stays on its thread,
 * and the tasks of a thread are nested, so a stack is enough.
 */
#include <forkjoin/every.h>
#include <stdatomic.h>
#include <stdio.h>

enum { CELLS = 8000, WORKERS = 16, ROOTS = 1000, TREE = 6, TASKS = 6 };

static struct {
    int left, right; /* the children, or -1 */
    int marked;
} cell[CELLS];

static int free_cell[CELLS]; /* the free cells */
static atomic_int free_count;
static int root[WORKERS][ROOTS], roots[WORKERS]; /* the stack of each worker, and its height */
static int collections;
static fj_pool *pool;

static void push(int c)
{
    int w = fj_current_worker();
    root[w][roots[w]++] = c;
}

static void pop(int n)
{
    roots[fj_current_worker()] -= n;
}

/* ---- The collector --------------------------------------------------------------------------- */

static void mark(int c)
{
    if (c < 0 || cell[c].marked) return;
    cell[c].marked = 1;
    mark(cell[c].left);
    mark(cell[c].right);
}

/* Marks what the roots of one worker reach. The trees of two workers have no cell in common. */
FJ_VOID_TASK(mark_roots, int, w)
{
    for (int i = 0; i < roots[w]; i++) mark(root[w][i]);
}

FJ_VOID_TASK(mark_all, int, n)
{
    mark_roots_task t[WORKERS];

    for (int w = 0; w < n; w++) mark_roots_fork(FJ, &t[w], w);
    for (int w = n; w-- > 0;) mark_roots_join(FJ, &t[w]);
}

/* What one collection needs. It is in the frame of the task that asks. */
struct collection {
    atomic_int begun;
};

/* Runs on every worker. The first one collects, unless another task has asked just before. */
static int collect(void *arg)
{
    struct collection *c = arg;
    int n = 0;

    if (atomic_exchange(&c->begun, 1) != 0 || free_count > 0) return FJ_OK;
    if (mark_all_invoke(pool, fj_pool_worker_limit(pool)) != FJ_OK) return FJ_EFAILED;
    for (int i = 0; i < CELLS; i++) {
        if (!cell[i].marked) free_cell[n++] = i;
        cell[i].marked = 0;
    }
    free_count = n;
    collections++;
    return n > 0 ? FJ_OK : FJ_ENOMEM;
}

/* ---- The program ----------------------------------------------------------------------------- */

/* Returns a new cell, or -1 if the heap is full. The caller has pushed every cell that it needs. */
static int new_cell(int left, int right)
{
    for (;;) {
        struct collection c = {0};
        int n = free_count;
        while (n > 0 && !atomic_compare_exchange_weak(&free_count, &n, n - 1)) continue;
        if (n > 0) {
            int i = free_cell[n - 1]; /* no collection comes between: this is no safepoint */
            cell[i].left = left;
            cell[i].right = right;
            return i;
        }
        if (fj_broadcast(pool, collect, &c) != FJ_OK) return -1;
    }
}

static int build(int depth)
{
    int left = -1, right = -1;

    if (depth > 0) {
        push(left = build(depth - 1));
        push(right = build(depth - 1));
    }
    int c = new_cell(left, right);
    if (depth > 0) pop(2);
    return c;
}

static int count(int c)
{
    return c < 0 ? 0 : 1 + count(cell[c].left) + count(cell[c].right);
}

/* Builds a tree, runs two more such tasks, and counts the cells of its tree. */
FJ_TASK(int, work, int, depth)
{
    work_task other;
    int sum = 0, tree = build(TREE);

    push(tree);
    if (depth > 0) {
        work_fork(FJ, &other, depth - 1);
        sum += work_call(FJ, depth - 1);
        fj_safepoint(); /* not necessary here, because tasks are short; shown for long bodies */
        sum += work_join(FJ, &other);
    }
    sum += count(tree);
    pop(1);
    return sum;
}

int main(void)
{
    fj_pool_options o = {.parallelism = 4, .max_threads = 8};
    int sum = 0, wanted = ((2 << TREE) - 1) * ((2 << TASKS) - 1);

    for (int i = 0; i < CELLS; i++) free_cell[i] = i;
    free_count = CELLS;
    if (fj_pool_create(&pool, &o) != FJ_OK) return 1;
    for (int round = 0; round < 3; round++)
        if (work_invoke(pool, &sum, TASKS) != FJ_OK || sum != wanted) return 1;
    printf("3 times %d cells, in a heap of %d: the world was stopped\n", sum, CELLS);
    if (fj_pool_destroy(pool) != FJ_OK) return 1;
    return collections > 0 ? 0 : 1;
}
