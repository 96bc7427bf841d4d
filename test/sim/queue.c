/* SPDX-License-Identifier: MIT */
/*
 * queue.c - scenarios of fork, join and steal in pools of one to three workers
 */
#include "plat/config.h"
#include "scenario.h"

static atomic_int runs;

/* ---- Trees ----------------------------------------------------------------------------------- */

struct node {
    fj_task task;
    int depth;
    int sum;
};

static int node_run(fj_task *t)
{
    struct node *n = (struct node *)t;

    if (n->depth == 0) {
        n->sum = 1;
        return FJ_OK;
    }
    struct node *a = malloc(sizeof *a), b;
    memset(a, 0, sizeof *a);
    memset(&b, 0, sizeof b);
    fj_task_init(&a->task, node_run);
    a->depth = b.depth = n->depth - 1;
    fj_fork(&a->task);
    CHECK_EQ(node_run(&b.task), FJ_OK);
    CHECK_EQ(fj_join(&a->task), FJ_OK);
    n->sum = a->sum + b.sum;
    free(a);
    return FJ_OK;
}

static void tree(int workers, unsigned flags, int depth)
{
    fj_pool *pool = scenario_pool(workers, flags);
    struct node root = {.depth = depth};

    fj_task_init(&root.task, node_run);
    CHECK_EQ(fj_invoke(pool, &root.task), FJ_OK);
    CHECK_EQ(root.sum, 1 << depth);
    fjt_destroy(pool);
}

FJ_TEST(tree_of_two_workers_gives_its_sum, 10)
{
    tree(2, 0, 3);
}

FJ_TEST(tree_of_three_workers_gives_its_sum, 10)
{
    tree(3, 0, 3);
}

FJ_TEST(tree_in_fifo_order_gives_its_sum, 10)
{
    tree(2, FJ_POOL_FIFO, 3);
}

FJ_TEST(tree_with_a_helping_caller_gives_its_sum, 10)
{
    tree(2, FJ_POOL_CALLER_HELPS, 3);
}

FJ_TASK(int, scenario_fib, int, n)
{
    if (n < 2) return n;
    scenario_fib_task a;
    scenario_fib_fork(FJ, &a, n - 1);
    int y = scenario_fib_call(FJ, n - 2);
    return scenario_fib_join(FJ, &a) + y;
}

static void typed_inside(void *arg)
{
    (void)arg;
    int sum = 0;
    CHECK_EQ(scenario_fib_invoke(fj_current_pool(), &sum, 5), FJ_OK);
    CHECK_EQ(sum, 5);
}

FJ_TEST(typed_tree_gives_its_sum, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    scenario_inside(pool, typed_inside, NULL);
    fjt_destroy(pool);
}

/* Spawns calls, with a plain task between them, which moves the second half from its position. */
FJ_TASK(int, scenario_spawn, int, n)
{
    struct scenario_leaf *l = scenario_leaf(&runs, n + 1);
    int sum = 0;

    if (n > 0) {
        scenario_spawn_spawn(FJ, n - 1);
        scenario_spawn_spawn(FJ, n - 2);
        fj_fork(&l->task);
        scenario_spawn_spawn(FJ, n - 1);
        sum += scenario_spawn_call(FJ, n - 2);
        sum += scenario_spawn_sync(FJ);
        CHECK_EQ(fj_join(&l->task), n + 1);
        sum += scenario_spawn_sync(FJ);
        sum += scenario_spawn_sync(FJ);
    }
    free(l);
    return sum + 1;
}

static void spawn_inside(void *arg)
{
    (void)arg;
    int sum = 0;
    atomic_store(&runs, 0);
    CHECK_EQ(scenario_spawn_invoke(fj_current_pool(), &sum, 2), FJ_OK);
    CHECK_EQ(sum, 13);
    CHECK_EQ(atomic_load(&runs), 3);
}

FJ_TEST(tree_of_spawned_calls_gives_its_sum, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    scenario_inside(pool, spawn_inside, NULL);
    fjt_destroy(pool);
}

/* ---- Every task runs once, and its memory is freed at once ----------------------------------- */

enum { MANY = 5 };

/* Forks all tasks, then joins them in this order. It tries to take every second one back with
 * fj_unfork() first. */
static void fork_and_join(const int *order)
{
    struct scenario_leaf *l[MANY];

    atomic_store(&runs, 0);
    for (int i = 0; i < MANY; i++) {
        l[i] = scenario_leaf(&runs, i + 1);
        fj_fork(&l[i]->task);
    }
    int back = 0;
    for (int i = 0; i < MANY; i++) {
        int at = order[i];
        if (at % 2 == 1 && fj_unfork(&l[at]->task) == 1)
            back++;
        else
            CHECK_EQ(fj_join(&l[at]->task), at + 1);
        free(l[at]);
    }
    CHECK_EQ(atomic_load(&runs) + back, MANY);
}

static void joins_in_random_orders(void *arg)
{
    int order[MANY];

    (void)arg;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) order[i] = i;
        for (int i = MANY - 1; i > 0; i--) {
            int j = (int)(sim_random() % (uint32_t)(i + 1)), x = order[i];
            order[i] = order[j];
            order[j] = x;
        }
        fork_and_join(order);
    }
}

FJ_TEST(tasks_joined_in_any_order_run_once, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    scenario_inside(pool, joins_in_random_orders, NULL);
    fjt_destroy(pool);
}

FJ_TEST(tasks_joined_in_any_order_run_once_in_fifo_order, 10)
{
    fj_pool *pool = scenario_pool(3, FJ_POOL_FIFO);
    scenario_inside(pool, joins_in_random_orders, NULL);
    fjt_destroy(pool);
}

/* Forks one task at a time, always at the same position, and in half of the runs at the same
 * address. */
static void one_at_a_time(void *arg)
{
    (void)arg;
    for (int i = 1; i <= 6; i++) {
        struct scenario_leaf *l = scenario_leaf(&runs, i);
        fj_fork(&l->task);
        CHECK_EQ(fj_join(&l->task), i);
        free(l);
    }
}

FJ_TEST(address_used_again_is_a_new_task, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    atomic_store(&runs, 0);
    scenario_inside(pool, one_at_a_time, NULL);
    CHECK_EQ(atomic_load(&runs), 6);
    fjt_destroy(pool);
}

/* Two tasks at a time: thieves try to take the older one while the owner pops the younger one. */
static void two_at_a_time(void *arg)
{
    (void)arg;
    for (int i = 0; i < 4; i++) {
        struct scenario_leaf *a = scenario_leaf(&runs, 1), *b = scenario_leaf(&runs, 2);
        fj_fork(&a->task);
        fj_fork(&b->task);
        CHECK_EQ(fj_join(&b->task), 2);
        free(b);
        CHECK_EQ(fj_join(&a->task), 1);
        free(a);
    }
}

FJ_TEST(last_but_one_task_is_taken_by_one_only, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    atomic_store(&runs, 0);
    scenario_inside(pool, two_at_a_time, NULL);
    CHECK_EQ(atomic_load(&runs), 8);
    fjt_destroy(pool);
}

/* The oldest task stays while the owner forks and joins younger ones, often enough that the
 * queue is closed. Then the owner joins the oldest task and forks another one into its cell. A
 * thief with an old view of the queue must not take the new task. */
static void oldest_stays(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        struct scenario_leaf *a = scenario_leaf(&runs, 1);
        fj_fork(&a->task);
        for (int j = 0; j < 3; j++) {
            struct scenario_leaf *b = scenario_leaf(&runs, 2);
            fj_fork(&b->task);
            CHECK_EQ(fj_join(&b->task), 2);
            free(b);
        }
        CHECK_EQ(fj_join(&a->task), 1);
        free(a);
    }
}

FJ_TEST(oldest_task_is_taken_by_one_only, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    atomic_store(&runs, 0);
    scenario_inside(pool, oldest_stays, NULL);
    CHECK_EQ(atomic_load(&runs), 12);
    fjt_destroy(pool);
}

/* ---- Tombstones: cells of tasks that were joined before younger ones ------------------------- */

/* The first task is joined first and leaves a tombstone. Then the owner forks and joins four
 * younger tasks, which would close a queue without a tombstone. The join of the second task has
 * to free the tombstone below it. */
static void second_stays(void *arg)
{
    for (int i = *(int *)arg; i > 0; i--) {
        struct scenario_leaf *a = scenario_leaf(&runs, 1), *b = scenario_leaf(&runs, 2);
        fj_fork(&a->task);
        fj_fork(&b->task);
        CHECK_EQ(fj_join(&a->task), 1);
        free(a);
        for (int j = 0; j < 4; j++) {
            struct scenario_leaf *c = scenario_leaf(&runs, 3);
            fj_fork(&c->task);
            CHECK_EQ(fj_join(&c->task), 3);
            free(c);
        }
        CHECK_EQ(fj_join(&b->task), 2);
        free(b);
    }
}

FJ_TEST(join_above_a_tomb_frees_the_tomb, 10)
{
    fj_pool *pool = scenario_pool(1 + (int)(sim_random() % 2), 0);
    int rounds = 1 + (int)(sim_random() % 2);

    atomic_store(&runs, 0);
    scenario_inside(pool, second_stays, &rounds);
    CHECK_EQ(atomic_load(&runs), 6 * rounds);
    fjt_destroy(pool);
}

/* Thieves try to drop the tombstone of the first task, while the fork of a fourth task moves the
 * second task into its cell. A thief must not drop the second task with it. */
static void moves_over_a_tomb(void *arg)
{
    struct scenario_leaf *l[4];

    (void)arg;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++) l[i] = scenario_leaf(&runs, i);
        for (int i = 0; i < 3; i++) fj_fork(&l[i]->task);
        CHECK_EQ(fj_join(&l[0]->task), 0);
        fj_fork(&l[3]->task);
        for (int i = 3; i > 0; i--) CHECK_EQ(fj_join(&l[i]->task), i);
        for (int i = 0; i < 4; i++) free(l[i]);
    }
}

FJ_TEST(task_moved_into_the_cell_of_a_tomb_is_not_dropped, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    atomic_store(&runs, 0);
    scenario_inside(pool, moves_over_a_tomb, NULL);
    CHECK_EQ(atomic_load(&runs), 8);
    fjt_destroy(pool);
}

static int moved_action(void *arg)
{
    CHECK(arg == &runs);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

/* The queue has three cells, and a fourth task needs one. So a submitted task and an action move
 * down over the tombstone of the first task. No other worker could run the submitted task, so
 * this worker has to find it in its new cell. */
static void takes_back_what_was_moved(void *arg)
{
    struct scenario_leaf *a = scenario_leaf(&runs, 1), *b = scenario_leaf(&runs, 2);
    struct scenario_leaf *x = scenario_leaf(&runs, 3);

    fj_fork(&a->task);
    CHECK_EQ(fj_submit(arg, &x->task), FJ_OK);
    CHECK_EQ(fj_execute(arg, moved_action, &runs), FJ_OK);
    CHECK_EQ(fj_join(&a->task), 1);
    fj_fork(&b->task);
    CHECK_EQ(fj_join(&b->task), 2);
    CHECK_EQ(fj_join(&x->task), 3);
    free(a);
    free(b);
    free(x);
}

FJ_TEST(task_that_was_moved_is_taken_back_from_its_new_cell, 10)
{
    fj_pool_options o = {0};

    o.parallelism = o.max_threads = 1;
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&runs, 0);
    scenario_inside(pool, takes_back_what_was_moved, pool);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 4);
}

/* ---- An owner that computes and does not touch its queue ------------------------------------- */

struct flag_task {
    fj_task task;
    atomic_int ran;
};

static int flag_run(fj_task *t)
{
    atomic_store_explicit(&((struct flag_task *)t)->ran, 1, memory_order_release);
    return FJ_OK;
}

/* The owner only polls, and does not call the library until both tasks have run. So the thieves
 * have to open its queue themselves. */
static void forks_and_never_comes_by(void *arg)
{
    struct flag_task *f = malloc(2 * sizeof *f);

    (void)arg;
    memset(f, 0, 2 * sizeof *f);
    for (int i = 0; i < 2; i++) {
        fj_task_init(&f[i].task, flag_run);
        fj_fork(&f[i].task);
    }
    scenario_until(&f[0].ran);
    scenario_until(&f[1].ran);
    CHECK_EQ(fj_join(&f[1].task), FJ_OK);
    CHECK_EQ(fj_join(&f[0].task), FJ_OK);
    free(f);
}

FJ_TEST(task_under_a_long_leaf_is_stolen, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    scenario_inside(pool, forks_and_never_comes_by, NULL);
    fjt_destroy(pool);
}

/* The queue is opened by thieves and closed again after some pops without a steal, twice. */
static void opens_and_closes(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        forks_and_never_comes_by(NULL);
        one_at_a_time(NULL);
    }
}

FJ_TEST(queue_opened_and_closed_loses_nothing, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    atomic_store(&runs, 0);
    scenario_inside(pool, opens_and_closes, NULL);
    CHECK_EQ(atomic_load(&runs), 12);
    fjt_destroy(pool);
}

/* ---- A long queue, of which thieves have the lower half -------------------------------------- */

#define SHARED 6

static struct shared_task {
    fj_task task;
    atomic_int runs;
} shared[SHARED];

static int shared_run(fj_task *t)
{
    atomic_fetch_add(&((struct shared_task *)t)->runs, 1);
    return FJ_OK;
}

static void shared_fork(int from)
{
    for (int i = from; i < SHARED; i++) {
        fj_task_init(&shared[i].task, shared_run);
        fj_fork(&shared[i].task);
    }
}

/* Joins the tasks from `from` to `to` - 1, the youngest first. Each has run `runs` times. */
static void shared_join(int from, int to, int runs)
{
    for (int i = to; i-- > from;) {
        CHECK_EQ(fj_join(&shared[i].task), FJ_OK);
        CHECK_EQ(atomic_load(&shared[i].runs), runs);
    }
}

/* The owner takes tasks from the upper half and forks others in their place, while thieves take from
 * the lower half, reach its end, and open the rest. */
static void shares_a_long_queue(void *arg)
{
    (void)arg;
    memset(shared, 0, sizeof shared);
    shared_fork(0);
    for (int i = 0; i < 4; i++) sim_yield();
    shared_join(3, SHARED, 1);
    shared_fork(3);
    shared_join(3, SHARED, 2);
    shared_join(0, 3, 1);
}

FJ_TEST(long_queue_shared_with_thieves_loses_nothing, 10)
{
    fj_pool *pool = scenario_pool(3, 0);

    scenario_inside(pool, shares_a_long_queue, NULL);
    fjt_destroy(pool);
}

/* ---- Helping --------------------------------------------------------------------------------- */

/* The joiner of a stolen task helps with the tasks that it has forked, or sleeps. */
static void joins_what_was_stolen(void *arg)
{
    struct node *n = malloc(sizeof *n);

    (void)arg;
    memset(n, 0, sizeof *n);
    fj_task_init(&n->task, node_run);
    n->depth = 2;
    fj_fork(&n->task);
    for (int i = 0; i < 6; i++) sim_yield();
    CHECK_EQ(fj_join(&n->task), FJ_OK);
    CHECK_EQ(n->sum, 4);
    free(n);
}

FJ_TEST(joiner_of_a_stolen_tree_helps_or_sleeps, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    scenario_inside(pool, joins_what_was_stolen, NULL);
    fjt_destroy(pool);
}

/* ---- A joiner runs only descendants of the joined task --------------------------------------- */

struct kin {
    fj_task task;
    const struct kin *parent;
    int depth;
};

static _Thread_local const struct kin *joined; /* the task that this thread joins, or NULL */

static int kin_run(fj_task *t)
{
    struct kin *k = (struct kin *)t, a, b;
    const struct kin *up = k;

    while (joined != NULL && up != joined && up != NULL) up = up->parent;
    CHECK(joined == NULL || up == joined);
    if (k->depth == 0) return FJ_OK;
    const struct kin *outer = joined;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    fj_task_init(&a.task, kin_run);
    fj_task_init(&b.task, kin_run);
    a.parent = b.parent = k;
    a.depth = b.depth = k->depth - 1;
    fj_fork(&a.task);
    fj_fork(&b.task);
    joined = &b;
    CHECK_EQ(fj_join(&b.task), FJ_OK);
    joined = &a;
    CHECK_EQ(fj_join(&a.task), FJ_OK);
    joined = outer;
    return FJ_OK;
}

FJ_TEST(helper_runs_only_what_belongs_to_the_joined, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    struct kin root;

    memset(&root, 0, sizeof root);
    fj_task_init(&root.task, kin_run);
    root.depth = 4;
    CHECK_EQ(fj_invoke(pool, &root.task), FJ_OK);
    fjt_destroy(pool);
}

/* The older of two tasks is joined first. Its thief then takes the younger one and runs it at
 * the same positions of its queue. The joiner must not help with the tasks of the younger one. */
static void joins_the_older_first(void *arg)
{
    struct kin a, b;

    for (int round = 0; round < 2; round++) {
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        fj_task_init(&a.task, kin_run);
        fj_task_init(&b.task, kin_run);
        a.depth = b.depth = *(int *)arg;
        fj_fork(&a.task);
        fj_fork(&b.task);
        for (uint32_t n = sim_random() % 20; n > 0; n--) sim_yield();
        joined = &a;
        CHECK_EQ(fj_join(&a.task), FJ_OK);
        joined = &b;
        CHECK_EQ(fj_join(&b.task), FJ_OK);
        joined = NULL;
    }
}

FJ_TEST(helper_leaves_the_next_task_of_its_thief_alone, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    int depth = 1;

    scenario_inside(pool, joins_the_older_first, &depth);
    fjt_destroy(pool);
}

/* The same with a thief that itself waits for another thief. */
FJ_TEST(helper_leaves_the_next_tasks_of_two_thieves_alone, 10)
{
    fj_pool *pool = scenario_pool(3, 0);
    int depth = 2;

    scenario_inside(pool, joins_the_older_first, &depth);
    fjt_destroy(pool);
}

/* ---- More tasks than the queue has cells ----------------------------------------------------- */

enum { BEYOND = FJI_QUEUE_RESERVED + 3 };

static atomic_int beyond_runs;
static fj_token beyond_token;

static int beyond_run(fj_task *t)
{
    (void)t;
    CHECK(fj_current_token() == &beyond_token);
    atomic_fetch_add(&beyond_runs, 1);
    return 3;
}

/* The tasks for which the queue has no space go to a submission queue. The others are stolen or
 * taken back as usual. The tasks are joined in the order of their forks or in reverse. */
static int beyond_root(fj_task *t)
{
    struct scenario_leaf *l[BEYOND];
    bool oldest = sim_random() % 2 == 0;

    (void)t;
    for (int i = 0; i < BEYOND; i++) {
        l[i] = scenario_leaf(&beyond_runs, 3);
        fj_task_init(&l[i]->task, beyond_run);
        fj_fork(&l[i]->task);
    }
    for (int i = 0; i < BEYOND; i++) {
        int k = oldest ? i : BEYOND - 1 - i;
        CHECK_EQ(fj_join(&l[k]->task), 3);
        free(l[k]);
    }
    return FJ_OK;
}

FJ_TEST(forks_beyond_the_room_of_the_queue_run_once, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_task t;

    atomic_store(&beyond_runs, 0);
    fj_token_init(&beyond_token, NULL);
    fj_task_init(&t, beyond_root);
    CHECK_EQ(fj_invoke_token(pool, &t, &beyond_token), FJ_OK);
    CHECK_EQ(atomic_load(&beyond_runs), BEYOND);
    fjt_destroy(pool);
}

/* ---- Submissions that are moved, or taken back at the end of their queue --------------------- */

/* The only thread of the pool takes three of four submissions, so that the next submission moves
 * the fourth to the front. The join has to find it there, because no other thread could run it. */
static void joins_a_moved_submission(void *pool)
{
    struct scenario_leaf *l[5];
    fj_taken taken;

    for (int i = 0; i < 5; i++) l[i] = scenario_leaf(&beyond_runs, i);
    for (int i = 0; i < 4; i++) CHECK_EQ(fj_submit_external(pool, &l[i]->task), FJ_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_take_submission(&taken), 1);
        fj_taken_run(&taken);
    }
    CHECK_EQ(fj_submit_external(pool, &l[4]->task), FJ_OK);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(fj_join(&l[i]->task), i);
        free(l[i]);
    }
}

FJ_TEST(submission_that_was_moved_is_found_by_its_joiner, 10)
{
    fj_pool_options o = {0};

    o.parallelism = o.max_threads = 1;
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    scenario_inside(pool, joins_a_moved_submission, pool);
    fjt_destroy(pool);
}

/* The submitter takes back the second of three submissions, then the third. Both cells at the
 * end are free again. The worker may drop the tombstone of the second at the same moment. */
FJ_TEST(submissions_taken_back_at_the_end_leave_room_for_the_next, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    for (int round = 0; round < 2; round++) {
        struct scenario_leaf *l[4];
        bool back[4] = {false};
        for (int i = 0; i < 4; i++) l[i] = scenario_leaf(&beyond_runs, i);
        for (int i = 0; i < 3; i++) CHECK_EQ(fj_submit(pool, &l[i]->task), FJ_OK);
        for (int i = 1; i < 3; i++) {
            back[i] = fj_unfork(&l[i]->task) != 0;
            for (uint32_t n = sim_random() % 40; n > 0; n--) sim_yield();
        }
        CHECK_EQ(fj_submit(pool, &l[3]->task), FJ_OK);
        for (int i = 0; i < 4; i++) {
            if (!back[i]) CHECK_EQ(fj_join(&l[i]->task), i);
            free(l[i]);
        }
    }
    fjt_destroy(pool);
}
