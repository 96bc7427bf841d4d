/* SPDX-License-Identifier: MIT */
/*
 * random_tree.c - random trees of tasks compute what a serial run computes
 *
 * A number defines a tree: the value of its root, the code that the root returns, the number of its
 * children, their numbers, and the way in which the root runs them. The ways are those that the
 * library has: forks that are joined, unforked or waited for in any order, fj_invoke_both() and
 * related calls, submissions, a call into the typed tier, fj_invoke() on another pool. serial()
 * walks the same tree without a pool. The value of a node depends on the values of all its children
 * and their order, so a result that is lost, or read too early, changes the value of the root.
 * Actions given to fj_execute() add to a sum that is checked after the pools are destroyed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "fjtest.h"

#define MAX_DEPTH 9
#define MAX_CHILDREN 6

static fj_pool *pools[2];
static atomic_ullong acted; /* the sum of the actions that have run */

struct node {
    fj_task task;
    uint64_t number, value;
    int depth;
};

/* ---- What a number defines ------------------------------------------------------------------ */

static uint64_t draw(uint64_t number, unsigned what)
{
    uint64_t state = number ^ ((uint64_t)what << 56);
    return fjt_random(&state);
}

enum { DRAW_VALUE, DRAW_CODE, DRAW_COUNT, DRAW_WAY, DRAW_SLEEP, DRAW_ORDER, DRAW_CHILD };

static int code_of(uint64_t number)
{
    uint64_t r = draw(number, DRAW_CODE);
    return r % 7 == 0 ? 1 + (int)(r >> 32 & 0xffff) : FJ_OK;
}

static int children_of(uint64_t number, int depth)
{
    uint64_t r = draw(number, DRAW_COUNT);
    if (depth >= MAX_DEPTH) return 0;
    if (depth > 2 && r % 3 == 0) return 0;
    return 1 + (int)((r >> 32) % (depth > 4 ? 3 : MAX_CHILDREN));
}

static uint64_t child_of(uint64_t number, int i)
{
    return draw(number, DRAW_CHILD + (unsigned)i);
}

static uint64_t fold(uint64_t value, uint64_t child)
{
    value = (value ^ child) * 0x9e3779b97f4a7c15u;
    return value ^ (value >> 29);
}

enum way {
    FORK_JOIN,
    FORK_UNFORK,
    FORK_ANYHOW,
    NESTED_FORKS,
    INVOKE_BOTH,
    INVOKE_ALL,
    INVOKE_ARRAY,
    SUBMIT,
    EXTERNAL_SUBMIT,
    LAZY_SUBMIT,
    OTHER_POOL,
    TYPED,
    ACTIONS,
    WAYS
};

/* The ways that need new threads are rare, because they are expensive. */
static enum way way_of(uint64_t number)
{
    uint64_t r = draw(number, DRAW_WAY);
    enum way way = (enum way)(r % WAYS);
    bool dear = way == OTHER_POOL || way == EXTERNAL_SUBMIT;
    return dear && (r >> 32) % 8 != 0 ? FORK_JOIN : way;
}

static uint64_t serial(uint64_t number, int depth, uint64_t *by_actions)
{
    uint64_t value = draw(number, DRAW_VALUE);
    int n = children_of(number, depth);

    for (int i = 0; i < n; i++) {
        uint64_t child = child_of(number, i);
        if (n > 0 && way_of(number) == ACTIONS) *by_actions += child >> 32;
        value = fold(value, serial(child, depth + 1, by_actions));
    }
    return value;
}

/* ---- The ways ------------------------------------------------------------------------------- */

static int node_run(fj_task *t);

static void shuffle(int *order, int n, uint64_t number)
{
    uint64_t state = draw(number, DRAW_ORDER);

    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)(fjt_random(&state) % (uint64_t)(i + 1)), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
}

static void check_code(const struct node *child, int code)
{
    CHECK_EQ(code, code_of(child->number));
}

static void join_any(struct node *child, uint64_t how)
{
    switch (how % 4) {
        case 0: check_code(child, fj_join(&child->task)); break;
        case 1: check_code(child, fj_join_stolen(&child->task)); break;
        case 2: check_code(child, fj_join_as(&child->task, node_run)); break;
        default:
            if (fj_unfork(&child->task))
                check_code(child, node_run(&child->task));
            else
                check_code(child, fj_join_stolen(&child->task));
    }
}

static void fork_all(const struct node *node, struct node *child, int n, enum way way)
{
    int order[MAX_CHILDREN];
    uint64_t how = draw(node->number, DRAW_ORDER);

    shuffle(order, n, node->number);
    for (int i = 0; i < n; i++) fj_fork(&child[i].task);
    for (int i = 0; i < n; i++, how >>= 2) {
        uint64_t by = way == FORK_JOIN ? 0 : way == FORK_UNFORK ? 2 : how & 3;
        join_any(&child[order[i]], by);
    }
}

/* Joins each fork after the forks that follow it, either in the function that forked it or in one
 * that this function calls. Some pairs of forks are joined in the other order. */
static void nest_forks(struct node *child, int n)
{
    if (n == 0) return;
    fj_fork(&child->task);
    if (n > 1 && (child->number & 1) != 0) {
        fj_fork(&child[1].task);
        check_code(child, fj_join(&child->task));
        nest_forks(child + 2, n - 2);
        check_code(&child[1], fj_join(&child[1].task));
        return;
    }
    nest_forks(child + 1, n - 1);
    check_code(child, fj_join(&child->task));
}

static int first_code(const struct node *child, int n)
{
    for (int i = 0; i < n; i++) {
        int code = code_of(child[i].number);
        if (code != FJ_OK) return code;
    }
    return FJ_OK;
}

static void invoke_all(struct node *child, int n, enum way way)
{
    fj_task *tasks[MAX_CHILDREN];

    if (way == INVOKE_ARRAY) {
        CHECK_EQ(fj_invoke_array(child, (size_t)n, sizeof *child), first_code(child, n));
        return;
    }
    if (way == INVOKE_BOTH && n >= 2) {
        CHECK_EQ(fj_invoke_both(&child[0].task, &child[1].task), first_code(child, 2));
        child += 2, n -= 2;
    }
    for (int i = 0; i < n; i++) tasks[i] = &child[i].task;
    CHECK_EQ(fj_invoke_all(tasks, (size_t)n), first_code(child, n));
}

static void submit_all(const struct node *node, struct node *child, int n, enum way way)
{
    fj_pool *here = fj_current_pool();
    int order[MAX_CHILDREN];

    shuffle(order, n, node->number);
    for (int i = 0; i < n; i++) {
        fj_task *t = &child[i].task;
        int err = way == SUBMIT            ? fj_submit(here, t)
                  : way == EXTERNAL_SUBMIT ? fj_submit_external(here, t)
                                           : fj_submit_lazy(here, t);
        CHECK_EQ(err, FJ_OK);
    }
    for (int i = 0; i < n; i++) {
        struct node *it = &child[order[i]];
        check_code(it, fj_join(&it->task));
    }
}

static void invoke_elsewhere(struct node *child, int n)
{
    fj_pool *other = fj_current_pool() == pools[0] ? pools[1] : pools[0];

    for (int i = 0; i < n; i++) check_code(&child[i], fj_invoke(other, &child[i].task));
}

FJ_TASK(int, typed_child, struct node *, node)
{
    return node_run(&node->task);
}

FJ_TASK(int, typed_node, struct node *, child, int, n)
{
    typed_child_task handle[MAX_CHILDREN];

    for (int i = 1; i < n; i++) typed_child_fork(FJ, &handle[i], &child[i]);
    if (n > 0) check_code(&child[0], typed_child_call(FJ, &child[0]));
    for (int i = 1; i < n; i++) { /* oldest first or youngest first */
        int at = child[0].number & 1 ? i : n - i;
        check_code(&child[at], typed_child_join(FJ, &handle[at]));
    }
    return n;
}

static void enter_typed(struct node *child, int n)
{
    int r = -1;

    CHECK_EQ(typed_node_invoke(fj_current_pool(), &r, child, n), FJ_OK);
    CHECK_EQ(r, n);
}

static int act(void *arg)
{
    atomic_fetch_add(&acted, (uint64_t)(uintptr_t)arg);
    return 0;
}

static void give_actions(struct node *child, int n)
{
    for (int i = 0; i < n; i++) {
        void *arg = (void *)(uintptr_t)(child[i].number >> 32);
        CHECK_EQ(fj_execute(fj_current_pool(), act, arg), FJ_OK);
        fj_fork(&child[i].task);
    }
    for (int i = 0; i < n; i++) check_code(&child[i], fj_join(&child[i].task));
}

static void run_children(const struct node *node, struct node *child, int n)
{
    enum way way = way_of(node->number);

    switch (way) {
        case FORK_JOIN:
        case FORK_UNFORK:
        case FORK_ANYHOW: fork_all(node, child, n, way); break;
        case NESTED_FORKS: nest_forks(child, n); break;
        case INVOKE_BOTH:
        case INVOKE_ALL:
        case INVOKE_ARRAY: invoke_all(child, n, way); break;
        case SUBMIT:
        case EXTERNAL_SUBMIT:
        case LAZY_SUBMIT: submit_all(node, child, n, way); break;
        case OTHER_POOL: invoke_elsewhere(child, n); break;
        case TYPED: enter_typed(child, n); break;
        case ACTIONS: give_actions(child, n); break;
        case WAYS: break;
    }
}

static void node_init(struct node *node, uint64_t number, int depth)
{
    *node = (struct node){.number = number, .depth = depth};
    fj_task_init(&node->task, node_run);
}

static int node_run(fj_task *t)
{
    struct node *node = (struct node *)t;
    struct node child[MAX_CHILDREN];
    uint64_t value = draw(node->number, DRAW_VALUE);
    int n = children_of(node->number, node->depth);

    if (draw(node->number, DRAW_SLEEP) % 500 == 0) fjt_sleep_us(20);
    for (int i = 0; i < n; i++) node_init(&child[i], child_of(node->number, i), node->depth + 1);
    if (n > 0) run_children(node, child, n);
    for (int i = 0; i < n; i++) value = fold(value, child[i].value);
    node->value = value;
    return code_of(node->number);
}

/* ---- The tests ------------------------------------------------------------------------------ */

static void run_tree(uint64_t number, uint64_t *by_actions)
{
    struct node root;
    fj_pool *p = pools[number & 1];

    node_init(&root, number, 0);
    switch (number >> 1 & 3) {
        case 0: check_code(&root, fj_invoke_mode(p, &root.task, FJ_CALLER_HELPS)); break;
        case 1:
            CHECK_EQ(fj_submit(p, &root.task), FJ_OK);
            check_code(&root, fj_join(&root.task));
            break;
        default: check_code(&root, fj_invoke(p, &root.task));
    }
    if (root.value != serial(number, 0, by_actions))
        fjt_fail(__FILE__, __LINE__, "tree %llu: wrong value", (unsigned long long)number);
}

struct grower {
    pthread_t thread;
    uint64_t state, by_actions;
    long trees;
};

static void *grow(void *arg)
{
    struct grower *g = arg;

    for (long i = 0; i < g->trees; i++) run_tree(fjt_random(&g->state), &g->by_actions);
    return NULL;
}

/* Runs the trees of `threads` outside threads, each with its own trees, in two pools. */
static void run_trees(int workers, unsigned flags, int threads, long trees)
{
    struct grower g[8];
    uint64_t wanted = 0, state = fjt_seed() + (uint64_t)workers;

    for (int i = 0; i < 2; i++) pools[i] = fjt_pool(workers, i == 0 ? flags : 0);
    for (int i = 0; i < threads; i++) {
        g[i].state = fjt_random(&state);
        g[i].by_actions = 0;
        g[i].trees = fjt_rounds(fjt_sanitized() ? (trees + 9) / 10 : trees);
        CHECK_EQ(pthread_create(&g[i].thread, NULL, grow, &g[i]), 0);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(g[i].thread, NULL);
        wanted += g[i].by_actions;
    }
    for (int i = 0; i < 2; i++) fjt_destroy(pools[i]);
    CHECK(atomic_load(&acted) == wanted);
}

FJ_TEST(random_trees_on_one_worker_are_right, 60)
{
    run_trees(1, 0, 1, 600);
}

FJ_TEST(random_trees_on_two_workers_are_right, 60)
{
    run_trees(2, 0, 1, 600);
}

FJ_TEST(random_trees_on_eight_workers_are_right, 60)
{
    run_trees(8, 0, 2, 250);
}

FJ_TEST(random_trees_in_fifo_pools_are_right, 60)
{
    run_trees(2, FJ_POOL_FIFO, 2, 250);
}

FJ_TEST(random_trees_with_full_fences_are_right, 60)
{
    run_trees(8, FJ_POOL_SYMMETRIC, 2, 250);
}

FJ_TEST(random_trees_of_four_threads_that_help_are_right, 60)
{
    run_trees(2, FJ_POOL_CALLER_HELPS, 4, 150);
}
