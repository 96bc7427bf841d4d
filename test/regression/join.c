/* SPDX-License-Identifier: MIT */
/*
 * join.c - joins in any order, which tasks a waiting worker runs, and how deep they nest
 *
 * While it waits in a join, a worker runs only descendants of the joined task. The bodies on one
 * stack are therefore a chain of descendants. If a lock is held across a join, no task that the
 * join runs waits for that lock, and no stack is deeper than the tree of tasks.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "regression.h"

/* ---- Any order -------------------------------------------------------------------------- */

#define MOST 200

struct item {
    fj_task task;
    int id, result, spin_ns;
    atomic_int ran;
};

static int item_run(fj_task *t)
{
    struct item *i = (struct item *)t;

    regression_spin_ns(i->spin_ns);
    i->result = i->id * 3;
    atomic_fetch_add(&i->ran, 1);
    return i->id;
}

enum order { OLDEST_FIRST, YOUNGEST_FIRST, ANY_ORDER, SOME_TAKEN_BACK };

struct batch {
    fj_task task;
    int n;
    enum order order;
    uint64_t seed;
    struct item items[MOST];
};

static void batch_permute(struct batch *b, int *at)
{
    for (int i = 0; i < b->n; i++) at[i] = b->order == YOUNGEST_FIRST ? b->n - 1 - i : i;
    if (b->order < ANY_ORDER) return;
    for (int i = b->n - 1; i > 0; i--) {
        int k = regression_below(&b->seed, i + 1), x = at[i];
        at[i] = at[k];
        at[k] = x;
    }
}

static int batch_run(fj_task *t)
{
    struct batch *b = (struct batch *)t;
    int at[MOST];

    batch_permute(b, at);
    for (int i = 0; i < b->n; i++) {
        struct item *it = &b->items[i];
        it->id = i + 1;
        it->result = 0;
        it->spin_ns = regression_below(&b->seed, 4) == 0 ? regression_below(&b->seed, 400) : 0;
        atomic_store(&it->ran, 0);
        fj_task_init(&it->task, item_run);
        fj_fork(&it->task);
    }
    for (int i = 0; i < b->n; i++) {
        struct item *it = &b->items[at[i]];
        if (b->order == SOME_TAKEN_BACK && at[i] % 2 && fj_unfork(&it->task)) {
            CHECK_EQ(atomic_load(&it->ran), 0);
            (void)item_run(&it->task);
        } else {
            CHECK_EQ(fj_join(&it->task), it->id);
        }
        CHECK_EQ(it->result, it->id * 3);
    }
    for (int i = 0; i < b->n; i++) CHECK_EQ(atomic_load(&b->items[i].ran), 1);
    return FJ_OK;
}

static void join_in_order(enum order order)
{
    static struct batch b;

    for (unsigned mode = 0; mode < 4; mode++) {
        for (int workers = 1; workers <= 8; workers++) {
            unsigned flags = (mode & 1 ? FJ_POOL_FIFO : 0) | (mode & 2 ? FJ_POOL_SYMMETRIC : 0);
            fj_pool *p = fjt_pool(workers, flags);
            for (long round = fjt_rounds(10); round > 0; round--) {
                for (b.n = 1; b.n <= MOST; b.n += 1 + b.n / 10) {
                    b.order = order;
                    b.seed = fjt_seed() + (uint64_t)b.n;
                    fj_task_init(&b.task, batch_run);
                    CHECK_EQ(fj_invoke(p, &b.task), FJ_OK);
                }
            }
            fjt_destroy(p);
        }
    }
}

FJ_TEST(tasks_may_be_joined_oldest_first, 60)
{
    join_in_order(OLDEST_FIRST);
}

FJ_TEST(tasks_may_be_joined_youngest_first, 60)
{
    join_in_order(YOUNGEST_FIRST);
}

FJ_TEST(tasks_may_be_joined_in_any_order, 60)
{
    join_in_order(ANY_ORDER);
}

FJ_TEST(some_tasks_may_be_taken_back_in_any_order, 60)
{
    join_in_order(SOME_TAKEN_BACK);
}

/* ---- What a waiting worker runs --------------------------------------------------------- */

#define BRANCHES 4

struct node {
    fj_task task;
    const struct node *parent;
    int depth;
    unsigned path;
};

/* The joins that this thread is in, innermost first, and the number of bodies on its stack. */
struct waiting {
    const struct node *joined;
    const struct waiting *outer;
};

static _Thread_local const struct waiting *waiting;
static _Thread_local int nesting;
static atomic_int deepest;

static bool descends(const struct node *n, const struct node *from)
{
    while (n != NULL && n != from) n = n->parent;
    return n == from;
}

static void node_enter(const struct node *n)
{
    if (waiting != NULL) CHECK(descends(n, waiting->joined));
    int was = atomic_load(&deepest);
    ++nesting;
    while (was < nesting && !atomic_compare_exchange_weak(&deepest, &was, nesting)) {}
}

static int node_join(struct node *n)
{
    struct waiting here = {n, waiting};

    waiting = &here;
    int code = fj_join(&n->task);
    waiting = here.outer;
    return code;
}

/* Some leaves sleep, so that joiners find their task stolen, help, and block. */
static void node_work(const struct node *n)
{
    if (n->depth == 0 && n->path % 7 == 0)
        fjt_sleep_us(50);
    else
        regression_spin_ns(n->path % 5 * 100);
}

static int node_run(fj_task *t)
{
    const struct node *n = (const struct node *)t;
    struct node child[BRANCHES];

    node_enter(n);
    node_work(n);
    for (int i = 0; n->depth > 0 && i < BRANCHES; i++) {
        child[i] = (struct node){.parent = n, .depth = n->depth - 1};
        child[i].path = n->path * 31 + (unsigned)i;
        fj_task_init(&child[i].task, node_run);
        fj_fork(&child[i].task);
    }
    for (int i = 0; n->depth > 0 && i < BRANCHES; i++)
        CHECK_EQ(node_join(&child[n->path % 2 ? i : BRANCHES - 1 - i]), FJ_OK);
    nesting--;
    return FJ_OK;
}

struct planter {
    fj_pool *pool;
    int depth;
    unsigned number;
};

static void *plant(void *arg)
{
    struct planter *l = arg;

    for (long i = fjt_rounds(100); i > 0; i--) {
        struct node root = {.depth = l->depth, .path = l->number + (unsigned)i};
        fj_task_init(&root.task, node_run);
        CHECK_EQ(fj_invoke(l->pool, &root.task), FJ_OK);
    }
    return NULL;
}

/* Three threads invoke trees at the same time, so that unrelated tasks are always available. */
static void plant_trees(int workers, unsigned flags)
{
    enum { DEPTH = 5 };
    fj_pool *p = fjt_pool(workers, flags);
    struct planter l[3];
    pthread_t t[3];

    for (int i = 0; i < 3; i++) {
        l[i] = (struct planter){p, DEPTH, (unsigned)(i * 1000)};
        t[i] = regression_thread(plant, &l[i]);
    }
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    CHECK(atomic_load(&deepest) <= DEPTH + 1);
    fjt_destroy(p);
}

FJ_TEST(a_join_runs_only_what_belongs_to_it, 60)
{
    plant_trees(4, 0);
}

FJ_TEST(a_join_runs_only_what_belongs_to_it_fifo, 60)
{
    plant_trees(4, FJ_POOL_FIFO);
}

FJ_TEST(a_join_by_a_helping_caller_runs_only_what_belongs_to_it, 60)
{
    plant_trees(2, FJ_POOL_CALLER_HELPS);
}

/* The same with typed tasks. */
FJ_VOID_TASK(typed_node, const struct node *, n)
{
    struct node child[BRANCHES];
    typed_node_task h[BRANCHES];

    node_enter(n);
    node_work(n);
    for (int i = 0; n->depth > 0 && i < BRANCHES; i++) {
        child[i] = (struct node){.parent = n, .depth = n->depth - 1};
        child[i].path = n->path * 31 + (unsigned)i;
        typed_node_fork(FJ, &h[i], &child[i]);
    }
    for (int i = 0; n->depth > 0 && i < BRANCHES; i++) {
        int k = n->path % 2 ? i : BRANCHES - 1 - i;
        struct waiting here = {&child[k], waiting};
        waiting = &here;
        typed_node_join(FJ, &h[k]);
        waiting = here.outer;
    }
    nesting--;
}

static void *plant_typed(void *arg)
{
    struct planter *l = arg;

    for (long i = fjt_rounds(100); i > 0; i--) {
        struct node root = {.depth = l->depth, .path = l->number + (unsigned)i};
        CHECK_EQ(typed_node_invoke(l->pool, &root), FJ_OK);
    }
    return NULL;
}

FJ_TEST(a_typed_join_runs_only_what_belongs_to_it, 60)
{
    fj_pool *p = fjt_pool(4, 0);
    struct planter l[3];
    pthread_t t[3];

    for (int i = 0; i < 3; i++) {
        l[i] = (struct planter){p, 5, (unsigned)(i * 1000)};
        t[i] = regression_thread(plant_typed, &l[i]);
    }
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    fjt_destroy(p);
}

/* ---- A lock held across a join ---------------------------------------------------------- */

struct locker {
    fj_task task;
    pthread_mutex_t *mutex;
    int *guarded;
};

/* All tasks lock the same mutex and join while they hold it. The mutex checks for errors, so a
 * thread that locks it twice gets an error. */
static int locker_run(fj_task *t)
{
    struct locker *l = (struct locker *)t;
    struct node tree = {.depth = 2};

    int err = pthread_mutex_lock(l->mutex);
    if (err != 0)
        fjt_fail(__FILE__, __LINE__,
                 "the join of the holder runs a task that locks the same mutex: %d", err);
    ++*l->guarded;
    fj_task_init(&tree.task, node_run);
    fj_fork(&tree.task);
    fjt_sleep_us(20); /* lets another worker steal it, so that the join waits */
    CHECK_EQ(fj_join(&tree.task), FJ_OK);
    CHECK_EQ(pthread_mutex_unlock(l->mutex), 0);
    return FJ_OK;
}

struct lockers {
    fj_task task;
    struct locker all[40];
};

static int lockers_run(fj_task *t)
{
    struct lockers *s = (struct lockers *)t;

    for (int i = 0; i < 40; i++) fj_fork(&s->all[i].task);
    for (int i = 40; i-- > 0;) CHECK_EQ(fj_join(&s->all[i].task), FJ_OK);
    return FJ_OK;
}

static void lock_across_joins(unsigned flags)
{
    static struct lockers s;
    pthread_mutexattr_t attr;
    pthread_mutex_t mutex;
    int guarded = 0;
    fj_pool *p = fjt_pool(4, flags);

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutex, &attr);
    for (long round = fjt_rounds(60); round > 0; round--) {
        guarded = 0;
        for (int i = 0; i < 40; i++) {
            s.all[i].mutex = &mutex;
            s.all[i].guarded = &guarded;
            fj_task_init(&s.all[i].task, locker_run);
        }
        fj_task_init(&s.task, lockers_run);
        CHECK_EQ(fj_invoke(p, &s.task), FJ_OK);
        CHECK_EQ(guarded, 40);
    }
    fjt_destroy(p);
}

FJ_TEST(a_mutex_may_be_held_across_a_join, 60)
{
    lock_across_joins(0);
}

FJ_TEST(a_mutex_may_be_held_across_a_join_fifo, 60)
{
    lock_across_joins(FJ_POOL_FIFO);
}

/* ---- Depth ------------------------------------------------------------------------------ */

struct lopsided {
    fj_task task;
    long leaves;
    int depth;
    long *sum; /* sum of this node; only this node writes it */
};

static atomic_int tallest;

static void note_max(atomic_int *most, int n)
{
    int was = atomic_load_explicit(most, memory_order_relaxed);
    while (was < n && !atomic_compare_exchange_weak(most, &was, n)) {}
}

/* Gives one eighth of the leaves to one child. The larger child is forked first and is often
 * stolen. */
static int lopsided_run(fj_task *t)
{
    struct lopsided *n = (struct lopsided *)t;
    long a = 0, b = 0;

    note_max(&deepest, ++nesting);
    note_max(&tallest, n->depth);
    if (n->leaves > 1) {
        long small = n->leaves / 8 > 0 ? n->leaves / 8 : 1;
        struct lopsided large = {.leaves = n->leaves - small, .depth = n->depth + 1, .sum = &a};
        struct lopsided little = {.leaves = small, .depth = n->depth + 1, .sum = &b};
        fj_task_init(&large.task, lopsided_run);
        fj_task_init(&little.task, lopsided_run);
        fj_fork(&large.task);
        fj_fork(&little.task);
        CHECK_EQ(fj_join(&large.task), FJ_OK); /* the unfavourable order: oldest first */
        CHECK_EQ(fj_join(&little.task), FJ_OK);
        *n->sum = a + b;
    } else {
        *n->sum = 1;
    }
    nesting--;
    return FJ_OK;
}

static void grow_lopsided(unsigned flags, int workers)
{
    fj_pool_options o = {0};
    o.parallelism = workers;
    o.flags = flags;
    o.stack_bytes = fjt_sanitized() ? 512 << 10 : 64 << 10;
    fj_pool *p = fjt_pool_with(&o);
    long sum = 0;
    struct lopsided root = {.leaves = 1000000, .depth = 1, .sum = &sum};

    for (long round = fjt_rounds(20); round > 0; round--) {
        fj_task_init(&root.task, lopsided_run);
        CHECK_EQ(fj_invoke(p, &root.task), FJ_OK);
        CHECK_EQ(sum, root.leaves);
    }
    CHECK(atomic_load(&deepest) <= atomic_load(&tallest));
    CHECK(regression_started(p) <= (uint64_t)(workers + atomic_load(&tallest)));
    fjt_destroy(p);
}

FJ_TEST(a_lopsided_tree_fits_into_small_stacks, 60)
{
    grow_lopsided(0, 4);
}

FJ_TEST(a_lopsided_tree_fits_into_small_stacks_fifo, 60)
{
    grow_lopsided(FJ_POOL_FIFO, 4);
}

/* ---- FIFO ------------------------------------------------------------------------------- */

struct fib {
    fj_task task;
    int n;
    long result;
};

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;
    struct fib a = {.n = f->n - 1}, b = {.n = f->n - 2};

    note_max(&deepest, ++nesting);
    if (f->n < 2) {
        f->result = f->n;
    } else {
        fj_task_init(&a.task, fib_run);
        fj_task_init(&b.task, fib_run);
        fj_fork(&a.task);
        fj_fork(&b.task);
        CHECK_EQ(fj_join(&a.task), FJ_OK);
        CHECK_EQ(fj_join(&b.task), FJ_OK);
        f->result = a.result + b.result;
    }
    nesting--;
    return FJ_OK;
}

FJ_TEST(a_recursion_in_fifo_mode_needs_few_threads_and_little_stack, 60)
{
    enum { N = 22, FIB_N = 17711 };

    for (int workers = 1; workers <= 8; workers *= 2) {
        fj_pool *p = fjt_pool(workers, FJ_POOL_FIFO);
        for (long round = fjt_rounds(50); round > 0; round--) {
            struct fib f = {.n = N};
            fj_task_init(&f.task, fib_run);
            CHECK_EQ(fj_invoke(p, &f.task), FJ_OK);
            CHECK_EQ(f.result, FIB_N);
        }
        CHECK(atomic_load(&deepest) <= N + 1);
        CHECK(regression_started(p) <= (uint64_t)(workers + N));
        fjt_destroy(p);
    }
}
