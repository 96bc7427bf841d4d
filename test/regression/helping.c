/* SPDX-License-Identifier: MIT */
/*
 * helping.c - which tasks a worker runs while it waits in a join
 *
 * While it waits in a join, a worker runs only descendants of the joined task. A program may
 * therefore hold a lock across a join, the nesting on a stack is never deeper than the tree of
 * tasks, and no unrelated task runs in between.
 *
 * Two more properties are tested here. While a worker computes, other workers can steal the tasks
 * that it has forked. A worker that always has tasks of its own still takes submissions.
 */
#include <stdlib.h>

#include "regression.h"

/* ---- A lock held across a join ------------------------------------------------------------ */

#define LOCKERS 200

struct lock_test {
    pthread_mutex_t mutex;
    int counter; /* guarded by the mutex */
    atomic_int began, outside_ran;
};

struct locker {
    fj_task task;
    struct lock_test *all;
};

static void lock_and_count(struct lock_test *l)
{
    pthread_mutex_lock(&l->mutex);
    l->counter++;
    pthread_mutex_unlock(&l->mutex);
}

static int locker_run(fj_task *t)
{
    lock_and_count(((struct locker *)t)->all);
    return FJ_OK;
}

static int locker_action(void *arg)
{
    struct lock_test *l = arg;

    lock_and_count(l);
    atomic_fetch_add(&l->outside_ran, 1);
    return FJ_OK;
}

static int harmless(fj_task *t)
{
    (void)t;
    regression_spin_ns(5000);
    return FJ_OK;
}

/* The joined task. It runs long enough for its joiner to look for something to run. */
static int joined_run(fj_task *t)
{
    fj_task own[8];

    atomic_store(&((struct locker *)t)->all->began, 1);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 8; i++) {
            fj_task_init(&own[i], harmless);
            fj_fork(&own[i]);
        }
        regression_spin_ns(20000);
        for (int i = 8; i-- > 0;) CHECK_EQ(fj_join(&own[i]), FJ_OK);
    }
    return FJ_OK;
}

struct holder {
    fj_task task;
    fj_pool *pool;
    struct lock_test *all;
    struct locker joined, own[LOCKERS];
};

static int holder_run(fj_task *t)
{
    struct holder *h = (struct holder *)t;

    h->joined.all = h->all;
    fj_task_init(&h->joined.task, joined_run);
    fj_fork(&h->joined.task);
    UNTIL(atomic_load(&h->all->began)); /* another worker has stolen it */
    pthread_mutex_lock(&h->all->mutex);
    for (int i = 0; i < LOCKERS; i++) {
        h->own[i].all = h->all;
        fj_task_init(&h->own[i].task, locker_run);
        fj_fork(&h->own[i].task);
        CHECK_EQ(fj_execute(h->pool, locker_action, h->all), FJ_OK);
    }
    CHECK_EQ(fj_join(&h->joined.task), FJ_OK);
    pthread_mutex_unlock(&h->all->mutex);
    for (int i = LOCKERS; i-- > 0;) CHECK_EQ(fj_join(&h->own[i].task), FJ_OK);
    return FJ_OK;
}

static void *locker_submitter(void *arg)
{
    struct holder *h = arg;

    for (int i = 0; i < LOCKERS; i++) CHECK_EQ(fj_execute(h->pool, locker_action, h->all), FJ_OK);
    return NULL;
}

FJ_TEST(helping_in_a_join_does_not_take_a_task_that_wants_a_lock_the_joiner_holds, 60)
{
    for (long round = 0; round < fjt_rounds(40); round++) {
        struct lock_test l = {.mutex = PTHREAD_MUTEX_INITIALIZER};
        struct holder h = {.pool = fjt_pool(2 + (int)(round % 4), 0), .all = &l};

        fj_task_init(&h.task, holder_run);
        pthread_t other = regression_thread(locker_submitter, &h);
        CHECK_EQ(fj_invoke_mode(h.pool, &h.task, FJ_CALLER_BLOCKS), FJ_OK);
        pthread_join(other, NULL);
        UNTIL(atomic_load(&l.outside_ran) == 2 * LOCKERS);
        CHECK_EQ(l.counter, 3 * LOCKERS);
        fjt_destroy(h.pool);
    }
}

/* ---- Whose tasks run in a join -------------------------------------------------------------- */

/*
 * A running task. It is identified by the record of its parent and its number among the children,
 * which the parent knows before the child runs. While a task runs, all its ancestors run too.
 */
struct life {
    const struct life *parent;
    int number;
};

/* What this thread may start now: child `number` of `parent`, or a descendant of that child. */
struct expected {
    const struct life *parent; /* NULL: any task, because no task is on this stack */
    int number;
};

static __thread struct expected expected;
static __thread int nesting;
static atomic_long helped; /* tasks run inside a join other than the joined task */

static struct expected expect(const struct life *parent, int number)
{
    struct expected before = expected;

    expected = (struct expected){parent, number};
    return before;
}

static bool life_is_expected(const struct life *l)
{
    const struct life *first = l;

    if (expected.parent == NULL) return true;
    for (; l != NULL; l = l->parent) {
        if (l->parent != expected.parent || l->number != expected.number) continue;
        if (l != first) atomic_fetch_add_explicit(&helped, 1, memory_order_relaxed);
        return true;
    }
    return false;
}

/* Called at the start of a body. Its result is passed to life_ends(). */
static struct expected life_begins(const struct life *l)
{
    if (!life_is_expected(l))
        fjt_fail(__FILE__, __LINE__, "an unrelated task (child %d) is run in a join", l->number);
    nesting++;
    return expect(NULL, 0);
}

static void life_ends(struct expected before)
{
    nesting--;
    expected = before;
}

#define CHILDREN 6

static long random_work(uint64_t seed, int depth, int *children)
{
    uint64_t s = seed;
    int n = depth > 0 ? regression_below(&s, CHILDREN) + (depth > 5) : 0;

    *children = n < CHILDREN ? n : CHILDREN;
    regression_spin_ns(regression_below(&s, 8) == 0 ? 3000 : 0);
    return 1;
}

static uint64_t seed_of_child(uint64_t seed, int i)
{
    uint64_t s = seed + (uint64_t)i * 0x2545f4914f6cdd1du;
    return fjt_random(&s);
}

/* Returns the number of nodes, computed by one thread. */
static long random_tree_size(uint64_t seed, int depth)
{
    int n;
    long sum = random_work(seed, depth, &n);

    for (int i = 0; i < n; i++) sum += random_tree_size(seed_of_child(seed, i), depth - 1);
    return sum;
}

struct plain_node {
    fj_task task;
    struct life life;
    uint64_t seed;
    long size;
    int depth;
};

static int plain_node_run(fj_task *t)
{
    struct plain_node *self = (struct plain_node *)t;
    struct plain_node child[CHILDREN];
    struct expected before = life_begins(&self->life);
    int n;

    self->size = random_work(self->seed, self->depth, &n);
    for (int i = 0; i < n; i++) {
        child[i].life = (struct life){&self->life, i};
        child[i].seed = seed_of_child(self->seed, i);
        child[i].depth = self->depth - 1;
        fj_task_init(&child[i].task, plain_node_run);
        expect(&self->life, i);
        fj_fork(&child[i].task);
    }
    bool oldest_first = self->seed % 4 == 0;
    for (int k = 0; k < n; k++) {
        int i = oldest_first ? k : n - 1 - k;
        expect(&self->life, i);
        CHECK_EQ(fj_join(&child[i].task), FJ_OK);
        self->size += child[i].size;
    }
    life_ends(before);
    return FJ_OK;
}

FJ_TASK(long, typed_node, const struct life *, parent, int, number, uint64_t, seed, int, depth)
{
    struct life self = {parent, number};
    struct expected before = life_begins(&self);
    typed_node_task child[CHILDREN];
    int n;

    long size = random_work(seed, depth, &n);
    for (int i = 0; i < n; i++) {
        expect(&self, i);
        typed_node_fork(FJ, &child[i], &self, i, seed_of_child(seed, i), depth - 1);
    }
    bool oldest_first = seed % 4 == 0;
    for (int k = 0; k < n; k++) {
        int i = oldest_first ? k : n - 1 - k;
        expect(&self, i);
        size += typed_node_join(FJ, &child[i]);
    }
    life_ends(before);
    return size;
}

static uint64_t next_tree(uint64_t *seed, int depth, long *size)
{
    for (;;) {
        uint64_t s = fjt_random(seed);
        *size = random_tree_size(s, depth);
        if (*size > 500 && *size < 20000) return s;
    }
}

FJ_TEST(helping_in_a_plain_join_runs_only_what_descends_from_the_joined_task, 60)
{
    uint64_t seed = fjt_seed();

    for (long round = 0; round < fjt_rounds(60); round++) {
        fj_pool *p = fjt_pool(2 + (int)(round % 7), round % 3 == 2 ? FJ_POOL_FIFO : 0);
        struct plain_node root = {.depth = 7};
        long size;

        root.seed = next_tree(&seed, root.depth, &size);
        fj_task_init(&root.task, plain_node_run);
        CHECK_EQ(fj_invoke_mode(p, &root.task, FJ_CALLER_BLOCKS), FJ_OK);
        CHECK_EQ(root.size, size);
        fjt_destroy(p);
    }
}

FJ_TEST(helping_in_a_typed_join_runs_only_what_descends_from_the_joined_task, 60)
{
    uint64_t seed = fjt_seed();

    for (long round = 0; round < fjt_rounds(60); round++) {
        fj_pool *p = fjt_pool(2 + (int)(round % 7), round % 3 == 2 ? FJ_POOL_SYMMETRIC : 0);
        long size, found = 0;
        uint64_t s = next_tree(&seed, 7, &size);

        CHECK_EQ(typed_node_invoke(p, &found, NULL, 0, s, 7), FJ_OK);
        CHECK_EQ(found, size);
        fjt_destroy(p);
    }
}

static void *invoke_trees(void *arg)
{
    uint64_t seed = fjt_seed() + (uintptr_t)&arg;

    for (long round = 0; round < fjt_rounds(10); round++) {
        struct plain_node root = {.depth = 7};
        long size;

        root.seed = next_tree(&seed, root.depth, &size);
        fj_task_init(&root.task, plain_node_run);
        CHECK_EQ(fj_invoke_mode(arg, &root.task, round % 2 ? FJ_CALLER_HELPS : FJ_CALLER_BLOCKS),
                 FJ_OK);
        CHECK_EQ(root.size, size);
    }
    return NULL;
}

FJ_TEST(helping_keeps_the_trees_of_several_callers_apart, 60)
{
    fj_pool *p = fjt_pool(4, 0);
    pthread_t thread[4];

    for (int i = 0; i < 4; i++) thread[i] = regression_thread(invoke_trees, p);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    fjt_destroy(p);
}

/* ---- Small stacks --------------------------------------------------------------------------- */

static atomic_int deepest;

static void note_depth(int depth)
{
    int was = atomic_load_explicit(&deepest, memory_order_relaxed);

    while (was < depth && !atomic_compare_exchange_weak(&deepest, &was, depth)) {}
}

/* The left child gets one eighth of the leaves, so a tree of a million leaves has at most this many
 * levels. */
#define UNBALANCED_LEVELS 110

struct unbalanced {
    fj_task task;
    long leaves, found;
};

static int unbalanced_run(fj_task *t)
{
    struct unbalanced *self = (struct unbalanced *)t;

    note_depth(++nesting);
    if (self->leaves == 1) {
        self->found = 1;
    } else {
        struct unbalanced left, right;
        left.leaves = self->leaves < 8 ? 1 : self->leaves / 8;
        right.leaves = self->leaves - left.leaves;
        fj_task_init(&left.task, unbalanced_run);
        fj_task_init(&right.task, unbalanced_run);
        fj_fork(&right.task);
        fj_fork(&left.task);
        CHECK_EQ(fj_join(&left.task), FJ_OK);
        CHECK_EQ(fj_join(&right.task), FJ_OK);
        self->found = left.found + right.found;
    }
    nesting--;
    return FJ_OK;
}

static fj_pool *pool_with_small_stacks(int n)
{
    fj_pool_options o = {0};

    o.parallelism = n;
    o.stack_bytes = fjt_sanitized() ? 1u << 20 : 128u << 10;
    return fjt_pool_with(&o);
}

FJ_TEST(helping_never_nests_deeper_than_the_tree_of_the_tasks, 60)
{
    for (int n = 2; n <= 8; n += 3) {
        fj_pool *p = pool_with_small_stacks(n);
        struct unbalanced root = {.leaves = fjt_sanitized() ? 100000 : 1000000};

        fj_task_init(&root.task, unbalanced_run);
        CHECK_EQ(fj_invoke_mode(p, &root.task, FJ_CALLER_BLOCKS), FJ_OK);
        CHECK_EQ(root.found, root.leaves);
        CHECK(atomic_load(&deepest) <= UNBALANCED_LEVELS);
        fjt_destroy(p);
    }
}

__attribute__((noinline)) static size_t stack_left_at(int depth, size_t before)
{
    volatile char use[256];
    size_t left = fj_stack_left();

    use[0] = (char)depth;
    CHECK(left < before);
    return depth == 0 ? left : stack_left_at(depth - 1, left) + (size_t)(use[0] - (char)depth);
}

static int stack_left_run(fj_task *t)
{
    size_t top = fj_stack_left();
    size_t left = stack_left_at(20, top);
    (void)t;

    CHECK(top <= (fjt_sanitized() ? 1u << 20 : 128u << 10));
    CHECK(top - left >= 20 * 256 && left > 0);
    return FJ_OK;
}

FJ_TEST(stack_left_shrinks_with_the_depth_of_the_calls, 10)
{
    fj_pool *p = pool_with_small_stacks(1);
    fj_task root;

    fj_task_init(&root, stack_left_run);
    CHECK_EQ(fj_invoke_mode(p, &root, FJ_CALLER_BLOCKS), FJ_OK);
    fjt_destroy(p);
    CHECK(fj_stack_left() > 0); /* outside a pool the value is not specified, but there is one */
}

/* ---- A busy worker does not hide its tasks -------------------------------------------------- */

static atomic_int leaves_ran;
static __thread bool is_forker;

static int leaf_elsewhere(fj_task *t)
{
    (void)t;
    CHECK(!is_forker);
    atomic_fetch_add(&leaves_ran, 1);
    return FJ_OK;
}

/* Computes until other workers have run all its tasks, and makes no call into the library
 * meanwhile. */
static int long_leaf(fj_task *t)
{
    fj_task own[10];
    (void)t;

    is_forker = true;
    atomic_store(&leaves_ran, 0);
    for (int i = 0; i < 10; i++) {
        fj_task_init(&own[i], leaf_elsewhere);
        fj_fork(&own[i]);
    }
    UNTIL(atomic_load(&leaves_ran) == 10);
    for (int i = 10; i-- > 0;) CHECK_EQ(fj_join(&own[i]), FJ_OK);
    is_forker = false;
    return FJ_OK;
}

FJ_TEST(long_computation_does_not_hide_what_was_forked_before_it, 60)
{
    for (int n = 2; n <= 8; n *= 2) {
        fj_pool *p = fjt_pool(n, n == 4 ? FJ_POOL_SYMMETRIC : 0);

        for (long round = 0; round < fjt_rounds(200); round++) {
            fj_task root;
            if (round % 16 == 0) fjt_sleep_us(200); /* let the other workers go to sleep */
            fj_task_init(&root, long_leaf);
            CHECK_EQ(fj_invoke_mode(p, &root, FJ_CALLER_BLOCKS), FJ_OK);
        }
        fjt_destroy(p);
    }
}

FJ_TASK(long, typed_elsewhere, long, x)
{
    if (x < 0) return typed_elsewhere_call(FJ, -x);
    CHECK(!is_forker);
    atomic_fetch_add(&leaves_ran, 1);
    return x;
}

FJ_TASK(long, typed_long_leaf, long, x)
{
    typed_elsewhere_task own[10];

    is_forker = true;
    atomic_store(&leaves_ran, 0);
    for (int i = 0; i < 10; i++) typed_elsewhere_fork(FJ, &own[i], x + i);
    UNTIL(atomic_load(&leaves_ran) == 10);
    long sum = 0;
    for (int i = 10; i-- > 0;) sum += typed_elsewhere_join(FJ, &own[i]);
    is_forker = false;
    return sum;
}

FJ_TEST(long_computation_does_not_hide_typed_tasks_either, 60)
{
    fj_pool *p = fjt_pool(2, 0);

    for (long round = 0; round < fjt_rounds(200); round++) {
        long sum = 0;
        CHECK_EQ(typed_long_leaf_invoke(p, &sum, 5), FJ_OK);
        CHECK_EQ(sum, 95);
    }
    fjt_destroy(p);
}

/* ---- A worker that always has tasks of its own ----------------------------------------------- */

struct endless {
    fj_pool *pool;
    atomic_bool stop;
    atomic_int chains; /* number of chains that have not ended */
};

/* Executes a successor until `stop` is set. */
static int endless_action(void *arg)
{
    struct endless *e = arg;

    if (atomic_load_explicit(&e->stop, memory_order_relaxed)) {
        atomic_fetch_sub(&e->chains, 1);
        return FJ_OK;
    }
    return fj_execute(e->pool, endless_action, e);
}

static int do_nothing(fj_task *t)
{
    (void)t;
    return 3;
}

static void endless_lets_others_in(int workers, unsigned flags)
{
    struct endless e = {.pool = fjt_pool(workers, flags)};

    for (int i = 0; i < 2 * workers; i++) {
        atomic_fetch_add(&e.chains, 1);
        CHECK_EQ(fj_execute(e.pool, endless_action, &e), FJ_OK);
    }
    for (long round = 0; round < fjt_rounds(100); round++) {
        fj_task t;
        atomic_int ran = 0;
        fj_task_init(&t, do_nothing);
        CHECK_EQ(fj_submit(e.pool, &t), FJ_OK);
        CHECK_EQ(fj_execute(e.pool, regression_count, &ran), FJ_OK);
        CHECK_EQ(fj_join(&t), 3);
        UNTIL(atomic_load(&ran) == 1);
    }
    atomic_store(&e.stop, true);
    UNTIL(atomic_load(&e.chains) == 0);
    fjt_destroy(e.pool);
}

FJ_TEST(endless_actions_of_one_worker_do_not_keep_out_a_submission, 60)
{
    endless_lets_others_in(1, 0);
    endless_lets_others_in(1, FJ_POOL_FIFO);
}

FJ_TEST(endless_actions_of_all_workers_do_not_keep_out_a_submission, 60)
{
    endless_lets_others_in(3, 0);
    endless_lets_others_in(3, FJ_POOL_FIFO);
}
