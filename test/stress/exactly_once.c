/* SPDX-License-Identifier: MIT */
/*
 * exactly_once.c - every task runs once, with its own arguments, in every shape and pool
 *
 * The tasks of a test carry the numbers 1 to N, each number once. The thread that runs a task adds
 * the task's number to its tally: the count, the sum, the sum of squares and the xor of the hashes
 * of the numbers. A worker adds its tally to the total when it ends. After the pool is destroyed
 * the total must be that of 1 to N. A task that is lost, run twice, or run with the arguments of
 * another task changes it. The results of the tasks are also added up along the tree, which
 * distinguishes a lost result from a lost task. The threads share nothing while they run.
 *
 * Each test prints how many tasks it forked or submitted. Together the tests run more than a
 * hundred million tasks at scale 1.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fjtest.h"

/* ---- The tally ------------------------------------------------------------------------------ */

struct tally {
    uint64_t count, sum, squares, hashes;
};

static _Thread_local struct tally tally; /* of this thread */
static struct tally total;               /* of the threads that have ended */
static pthread_mutex_t total_lock = PTHREAD_MUTEX_INITIALIZER;

/* The function is invertible, so two numbers never have the same hash. */
static inline uint64_t hash(uint64_t x)
{
    x = (x ^ (x >> 32)) * 0x9e3779b97f4a7c15u;
    return x ^ (x >> 29);
}

static inline void tally_add(struct tally *t, uint64_t id)
{
    t->count++;
    t->sum += id;
    t->squares += id * id;
    t->hashes ^= hash(id);
}

static inline void seen(uint64_t id)
{
    tally_add(&tally, id);
}

static void tally_deliver(void)
{
    pthread_mutex_lock(&total_lock);
    total.count += tally.count;
    total.sum += tally.sum;
    total.squares += tally.squares;
    total.hashes ^= tally.hashes;
    pthread_mutex_unlock(&total_lock);
    memset(&tally, 0, sizeof tally);
}

static void worker_ends(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker, (void)arg;
    tally_deliver();
}

/* Checks the total. The last pool must have been destroyed. */
static void check_total(uint64_t n)
{
    struct tally wanted = {0};

    tally_deliver();
    for (uint64_t id = 1; id <= n; id++) tally_add(&wanted, id);
    CHECK_EQ(total.count, wanted.count);
    CHECK_EQ(total.sum, wanted.sum);
    CHECK_EQ(total.squares, wanted.squares);
    CHECK_EQ(total.hashes, wanted.hashes);
}

/* ---- Pools ---------------------------------------------------------------------------------- */

struct kind {
    int workers;
    unsigned flags;
};

static const struct kind kinds[] = {
    {1, 0},  {1, FJ_POOL_FIFO},  {1, FJ_POOL_SYMMETRIC},
    {2, 0},  {2, FJ_POOL_FIFO},  {2, FJ_POOL_SYMMETRIC},
    {8, 0},  {8, FJ_POOL_FIFO},  {8, FJ_POOL_SYMMETRIC},
    {64, 0}, {64, FJ_POOL_FIFO}, {64, FJ_POOL_SYMMETRIC},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

static fj_pool *counting_pool(const struct kind *k)
{
    fj_pool_options o = {0};

    o.parallelism = k->workers;
    o.flags = k->flags;
    o.stack_bytes = (size_t)16 << 20;
    o.on_stop = worker_ends;
    return fjt_pool_with(&o);
}

static long rounds(long n)
{
    return fjt_rounds(fjt_sanitized() ? (n + 19) / 20 : n);
}

/*
 * A shape runs its tasks in the pool. It numbers them from `first` on and returns the next unused
 * number. It adds to *tasks how many of them were forked or submitted.
 */
typedef uint64_t shape(fj_pool *p, uint64_t first, uint64_t *tasks);

/* Runs `each` rounds in every kind of pool, then `more` rounds in an ordinary pool of two
 * workers. */
static void run_shape(shape *s, long each, long more)
{
    uint64_t next = 1, tasks = 0;

    for (size_t k = 0; k < KINDS; k++) {
        fj_pool *p = counting_pool(&kinds[k]);
        for (long i = rounds(each); i > 0; i--) next = s(p, next, &tasks);
        fjt_destroy(p);
    }
    if (more > 0) {
        fj_pool *p = counting_pool(&(struct kind){2, 0});
        for (long i = rounds(more); i > 0; i--) next = s(p, next, &tasks);
        fjt_destroy(p);
    }
    check_total(next - 1);
    printf("# %llu tasks\n", (unsigned long long)tasks);
}

static void invoke(fj_pool *p, fj_task *t)
{
    CHECK_EQ(fj_invoke(p, t), FJ_OK);
}

/* ---- Binary trees --------------------------------------------------------------------------- */

#define FIB_MAX 40

static uint64_t fib_nodes[FIB_MAX]; /* nodes of the tree below fib(n), including its root */

__attribute__((constructor)) static void fib_count(void)
{
    fib_nodes[0] = fib_nodes[1] = 1;
    for (int n = 2; n < FIB_MAX; n++) fib_nodes[n] = 1 + fib_nodes[n - 1] + fib_nodes[n - 2];
}

/* A round of fib(27) has 635,621 nodes, of which 317,811 are tasks. In a sanitized build a round
 * has 10,946 tasks. */
static int fib_size(void)
{
    return fjt_sanitized() ? 20 : 27;
}

/* The root and half of the other nodes are tasks. */
static uint64_t fib_done(uint64_t first, uint64_t counted, int n, uint64_t *tasks)
{
    CHECK_EQ(counted, fib_nodes[n]);
    *tasks += (counted + 1) / 2;
    return first + counted;
}

FJ_TASK(uint64_t, typed_fib, int, n, uint64_t, id)
{
    seen(id);
    if (n < 2) return 1;
    typed_fib_task a;
    typed_fib_fork(FJ, &a, n - 1, id + 1);
    uint64_t y = typed_fib_call(FJ, n - 2, id + 1 + fib_nodes[n - 1]);
    return typed_fib_join(FJ, &a) + y + 1;
}

static uint64_t typed_fib_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    uint64_t r = 0;
    int n = fib_size();

    CHECK_EQ(typed_fib_invoke(p, &r, n, first), FJ_OK);
    return fib_done(first, r, n, tasks);
}

FJ_TEST(typed_binary_tree_runs_every_task_once, 120)
{
    run_shape(typed_fib_shape, 2, 150);
}

struct fib {
    fj_task task;
    uint64_t id, result;
    int n;
};

static int plain_fib_run(fj_task *t);

static uint64_t plain_fib(int n, uint64_t id)
{
    seen(id);
    if (n < 2) return 1;
    struct fib a = {.n = n - 1, .id = id + 1};
    fj_task_init(&a.task, plain_fib_run);
    fj_fork(&a.task);
    uint64_t y = plain_fib(n - 2, id + 1 + fib_nodes[n - 1]);
    int err = fj_join(&a.task);
    return err == FJ_OK ? a.result + y + 1 : 0;
}

static int plain_fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;
    f->result = plain_fib(f->n, f->id);
    return FJ_OK;
}

static uint64_t plain_fib_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    struct fib root = {.n = fib_size(), .id = first};

    fj_task_init(&root.task, plain_fib_run);
    invoke(p, &root.task);
    return fib_done(first, root.result, fib_size(), tasks);
}

FJ_TEST(plain_binary_tree_runs_every_task_once, 120)
{
    run_shape(plain_fib_shape, 2, 130);
}

static int unforked_fib_run(fj_task *t);

static uint64_t unforked_fib(int n, uint64_t id)
{
    seen(id);
    if (n < 2) return 1;
    struct fib a = {.n = n - 1, .id = id + 1};
    fj_task_init(&a.task, unforked_fib_run);
    fj_fork(&a.task);
    uint64_t y = unforked_fib(n - 2, id + 1 + fib_nodes[n - 1]);
    if (fj_unfork(&a.task)) return unforked_fib(n - 1, id + 1) + y + 1;
    int err = fj_join_stolen(&a.task);
    return err == FJ_OK ? a.result + y + 1 : 0;
}

static int unforked_fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;
    f->result = unforked_fib(f->n, f->id);
    return FJ_OK;
}

static uint64_t unforked_fib_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    struct fib root = {.n = fib_size(), .id = first};

    fj_task_init(&root.task, unforked_fib_run);
    invoke(p, &root.task);
    return fib_done(first, root.result, fib_size(), tasks);
}

FJ_TEST(unforked_binary_tree_runs_every_task_once, 120)
{
    run_shape(unforked_fib_shape, 1, 15);
}

/* ---- An unbalanced tree --------------------------------------------------------------------- */

struct uneven_result {
    uint64_t nodes, forked;
};

/* Runs a node and the size - 1 nodes below it. These are divided between two children at a random
 * place, mostly near an end. */
FJ_TASK(struct uneven_result, uneven, uint64_t, id, uint64_t, size)
{
    struct uneven_result sum = {1, 0}, part;

    seen(id);
    uint64_t rest = size - 1;
    if (rest == 0) return sum;
    uint64_t state = id ^ fjt_seed(), r = fjt_random(&state);
    uint64_t cut = r % 8 == 0 ? (r >> 8) % (rest + 1) : (r >> 8) % (rest < 9 ? rest + 1 : 9);
    if (r & 128) cut = rest - cut;
    uneven_task a;
    if (cut > 0) uneven_fork(FJ, &a, id + 1, cut);
    if (cut < rest) {
        part = uneven_call(FJ, id + 1 + cut, rest - cut);
        sum.nodes += part.nodes, sum.forked += part.forked;
    }
    if (cut > 0) {
        part = uneven_join(FJ, &a);
        sum.nodes += part.nodes, sum.forked += part.forked + 1;
    }
    return sum;
}

static uint64_t uneven_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    struct uneven_result r = {0, 0};
    uint64_t size = 10000;

    CHECK_EQ(uneven_invoke(p, &r, first, size), FJ_OK);
    CHECK_EQ(r.nodes, size);
    *tasks += r.forked + 1;
    return first + size;
}

FJ_TEST(unbalanced_tree_runs_every_task_once, 120)
{
    run_shape(uneven_shape, 20, 200);
}

/* ---- Many children -------------------------------------------------------------------------- */

enum order { OLDEST_FIRST, YOUNGEST_FIRST, ANY_ORDER };

#define MAX_CHILDREN 1000

struct fan {
    fj_task task;
    uint64_t id, result;
    int children, grandchildren;
    enum order order;
};

static void fan_join(struct fan *child, uint64_t *result)
{
    int err = fj_join(&child->task);
    if (err == FJ_OK) *result += child->result;
}

/* A node has number id. Its children, each followed by its own children, have the next numbers. */
static int fan_run(fj_task *t)
{
    struct fan *f = (struct fan *)t;
    struct fan child[f->children + 1];
    int left[f->children + 1];
    uint64_t result = 1, state = f->id ^ fjt_seed();

    seen(f->id);
    for (int i = 0; i < f->children; i++) {
        child[i] = (struct fan){
            .id = f->id + 1 + (uint64_t)i * (uint64_t)(1 + f->grandchildren),
            .children = f->grandchildren,
            .order = f->order,
        };
        left[i] = i;
        fj_task_init(&child[i].task, fan_run);
        fj_fork(&child[i].task);
    }
    for (int n = f->children; n > 0; n--) {
        switch (f->order) {
            case OLDEST_FIRST: fan_join(&child[f->children - n], &result); break;
            case YOUNGEST_FIRST: fan_join(&child[n - 1], &result); break;
            case ANY_ORDER: {
                int at = (int)(fjt_random(&state) % (uint64_t)n);
                fan_join(&child[left[at]], &result);
                left[at] = left[n - 1];
            }
        }
    }
    f->result = result;
    return FJ_OK;
}

static uint64_t fan_shape(fj_pool *p, uint64_t first, uint64_t *tasks, enum order order)
{
    uint64_t state = first ^ fjt_seed();
    struct fan root = {.id = first, .order = order};

    root.children = first % 3 == 0 ? MAX_CHILDREN : (int)(fjt_random(&state) % MAX_CHILDREN);
    root.grandchildren = (int)(fjt_random(&state) % 5);
    uint64_t n = 1 + (uint64_t)root.children * (uint64_t)(1 + root.grandchildren);
    fj_task_init(&root.task, fan_run);
    invoke(p, &root.task);
    CHECK_EQ(root.result, n);
    *tasks += n;
    return first + n;
}

static uint64_t oldest_first_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    return fan_shape(p, first, tasks, OLDEST_FIRST);
}

static uint64_t youngest_first_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    return fan_shape(p, first, tasks, YOUNGEST_FIRST);
}

static uint64_t any_order_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    return fan_shape(p, first, tasks, ANY_ORDER);
}

FJ_TEST(children_joined_oldest_first_run_once, 120)
{
    run_shape(oldest_first_shape, 50, 500);
}

FJ_TEST(children_joined_youngest_first_run_once, 120)
{
    run_shape(youngest_first_shape, 50, 500);
}

FJ_TEST(children_joined_in_any_order_run_once, 120)
{
    run_shape(any_order_shape, 40, 300);
}

/* The same with typed tasks, which are joined in any order. */
FJ_TASK(uint64_t, typed_leaf, uint64_t, id)
{
    seen(id);
    return 1;
}

#define TYPED_CHILDREN 300

FJ_TASK(uint64_t, typed_fan, uint64_t, id)
{
    typed_leaf_task child[TYPED_CHILDREN];
    uint64_t n = 1, state = id ^ fjt_seed();

    seen(id);
    for (int i = 0; i < TYPED_CHILDREN; i++) typed_leaf_fork(FJ, &child[i], id + 1 + (uint64_t)i);
    for (int left = TYPED_CHILDREN; left > 0; left--) {
        int at = (int)(fjt_random(&state) % (uint64_t)left);
        n += typed_leaf_join(FJ, &child[at]);
        child[at] = child[left - 1];
    }
    return n;
}

static uint64_t typed_fan_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    uint64_t r = 0;

    CHECK_EQ(typed_fan_invoke(p, &r, first), FJ_OK);
    CHECK_EQ(r, TYPED_CHILDREN + 1);
    *tasks += TYPED_CHILDREN + 1;
    return first + TYPED_CHILDREN + 1;
}

FJ_TEST(typed_children_joined_in_any_order_run_once, 120)
{
    run_shape(typed_fan_shape, 50, 500);
}

/* ---- Chains --------------------------------------------------------------------------------- */

#define CHAIN 3000

struct link {
    fj_task task;
    uint64_t id, result;
    int below; /* links that follow this one */
};

/* Forks one task and joins it at once. */
static int chain_run(fj_task *t)
{
    struct link *l = (struct link *)t;

    seen(l->id);
    l->result = 1;
    if (l->below == 0) return FJ_OK;
    struct link next = {.id = l->id + 1, .below = l->below - 1};
    fj_task_init(&next.task, chain_run);
    fj_fork(&next.task);
    int err = fj_join(&next.task);
    l->result += next.result;
    return err;
}

static uint64_t chain_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    struct link root = {.id = first, .below = CHAIN - 1};

    fj_task_init(&root.task, chain_run);
    invoke(p, &root.task);
    CHECK_EQ(root.result, CHAIN);
    *tasks += CHAIN;
    return first + CHAIN;
}

FJ_TEST(deep_chain_runs_every_task_once, 120)
{
    run_shape(chain_shape, 20, 200);
}

/* ---- Queues that grow ----------------------------------------------------------------------- */

/* The program forks `depth` tasks before it joins the first. Typed and plain tasks alternate. */
struct comb_leaf {
    fj_task task;
    uint64_t id;
};

static int comb_leaf_run(fj_task *t)
{
    seen(((struct comb_leaf *)t)->id);
    return FJ_OK;
}

static uint64_t comb(int depth, uint64_t id)
{
    struct comb_leaf leaf = {.id = id};

    if (depth == 0) return 0;
    fj_task_init(&leaf.task, comb_leaf_run);
    fj_fork(&leaf.task);
    uint64_t n = comb(depth - 1, id + 1);
    return n + (fj_join(&leaf.task) == FJ_OK);
}

FJ_TASK(uint64_t, typed_comb, int, depth, uint64_t, id)
{
    if (depth == 0) return 0;
    typed_leaf_task leaf;
    typed_leaf_fork(FJ, &leaf, id);
    uint64_t n = typed_comb_call(FJ, depth - 1, id + 1);
    return n + typed_leaf_join(FJ, &leaf);
}

struct comb_root {
    fj_task task;
    uint64_t id, result;
    int depth;
};

static int comb_run(fj_task *t)
{
    struct comb_root *r = (struct comb_root *)t;
    r->result = comb(r->depth, r->id);
    return FJ_OK;
}

static uint64_t grow_shape(fj_pool *p, uint64_t first, uint64_t *tasks, int depth)
{
    struct comb_root root = {.id = first, .depth = depth};
    uint64_t n = (uint64_t)depth, r = 0;

    fj_task_init(&root.task, comb_run);
    invoke(p, &root.task);
    CHECK_EQ(root.result, n);
    CHECK_EQ(typed_comb_invoke(p, &r, depth, first + n), FJ_OK);
    CHECK_EQ(r, n);
    *tasks += 2 * n;
    return first + 2 * n;
}

static uint64_t grow_64_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    return grow_shape(p, first, tasks, 50 + (int)(first % 30));
}

static uint64_t grow_4096_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    return grow_shape(p, first, tasks, 4090 + (int)(first % 1000));
}

FJ_TEST(tasks_are_run_once_while_queues_grow_beyond_64, 120)
{
    run_shape(grow_64_shape, 100, 1000);
}

FJ_TEST(tasks_are_run_once_while_queues_grow_beyond_4096, 120)
{
    run_shape(grow_4096_shape, 10, 100);
}

/* ---- Few structs that are reused at once ---------------------------------------------------- */

#define FEW 3
#define USES 2000

struct reuse {
    fj_task task;
    uint64_t id, result;
};

static int reused_run(fj_task *t)
{
    struct reuse *r = (struct reuse *)t;
    seen(r->id);
    r->result += r->id;
    return FJ_OK;
}

static int reuse_run(fj_task *t)
{
    struct reuse *root = (struct reuse *)t;
    struct reuse few[FEW] = {0};
    uint64_t id = root->id, sum = 0;

    for (int i = 0; i < FEW; i++) fj_task_init(&few[i].task, reused_run);
    for (int n = 0; n < USES; n++) {
        for (int i = 0; i < FEW; i++) {
            few[i].id = id++;
            fj_fork(&few[i].task);
        }
        for (int i = 0; i < FEW; i++) CHECK_EQ(fj_join(&few[(i + n) % FEW].task), FJ_OK);
    }
    for (int i = 0; i < FEW; i++) sum += few[i].result;
    root->result = sum;
    return FJ_OK;
}

static uint64_t reuse_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    struct reuse root = {.id = first};
    uint64_t n = FEW * USES, sum = 0;

    fj_task_init(&root.task, reuse_run);
    invoke(p, &root.task);
    for (uint64_t i = 0; i < n; i++) sum += first + i;
    CHECK_EQ(root.result, sum);
    *tasks += n;
    return first + n;
}

FJ_TEST(structs_reused_at_once_are_run_once_for_each_fork, 120)
{
    run_shape(reuse_shape, 20, 200);
}

/* ---- Typed and plain ------------------------------------------------------------------------ */

struct blend {
    fj_task task;
    uint64_t id, result;
    int n;
};

static int blend_run(fj_task *t);

/* A node forks its left child as a typed task or as a plain one and calls the right child. At every
 * third depth it forks both: the left child as a plain task and the right child as a typed one. */
FJ_TASK(uint64_t, blend, int, n, uint64_t, id)
{
    seen(id);
    if (n < 2) return 1;
    uint64_t left = id + 1, right = left + fib_nodes[n - 1], sum = 1;
    if (n % 3 == 0) {
        blend_task a;
        blend_fork(FJ, &a, n - 1, left);
        sum += blend_call(FJ, n - 2, right);
        sum += blend_join(FJ, &a);
    } else if (n % 3 == 1) {
        struct blend a = {.n = n - 1, .id = left};
        fj_task_init(&a.task, blend_run);
        fj_fork(&a.task);
        sum += blend_call(FJ, n - 2, right);
        CHECK_EQ(fj_join(&a.task), FJ_OK);
        sum += a.result;
    } else {
        struct blend a = {.n = n - 1, .id = left};
        blend_task b;
        fj_task_init(&a.task, blend_run);
        fj_fork(&a.task);
        blend_fork(FJ, &b, n - 2, right);
        if (id & 1) sum += blend_join(FJ, &b);
        CHECK_EQ(fj_join(&a.task), FJ_OK);
        if (!(id & 1)) sum += blend_join(FJ, &b);
        sum += a.result;
    }
    return sum;
}

/* The plain body: forks the left child as a plain task and runs the right child in the typed
 * tier. */
static int blend_run(fj_task *t)
{
    struct blend *b = (struct blend *)t;
    uint64_t y = 0;

    if (b->n < 2) {
        seen(b->id);
        b->result = 1;
        return FJ_OK;
    }
    seen(b->id);
    struct blend a = {.n = b->n - 1, .id = b->id + 1};
    fj_task_init(&a.task, blend_run);
    fj_fork(&a.task);
    int err = blend_invoke(fj_current_pool(), &y, b->n - 2, a.id + fib_nodes[b->n - 1]);
    CHECK_EQ(err, FJ_OK);
    CHECK_EQ(fj_join(&a.task), FJ_OK);
    b->result = a.result + y + 1;
    return FJ_OK;
}

#define BLEND 20

static uint64_t blend_shape(fj_pool *p, uint64_t first, uint64_t *tasks)
{
    uint64_t r = 0;

    CHECK_EQ(blend_invoke(p, &r, BLEND, first), FJ_OK);
    return fib_done(first, r, BLEND, tasks);
}

FJ_TEST(typed_and_plain_tasks_in_one_tree_run_once, 120)
{
    run_shape(blend_shape, 10, 100);
}

/* ---- From outside --------------------------------------------------------------------------- */

#define SUBMITTERS 4
#define BATCH 50

struct submitter {
    fj_pool *pool;
    uint64_t first, n;
};

static int action(void *arg)
{
    seen((uint64_t)(uintptr_t)arg);
    return 0;
}

static void *executes(void *arg)
{
    const struct submitter *s = arg;

    for (uint64_t i = 0; i < s->n; i++)
        CHECK_EQ(fj_execute(s->pool, action, (void *)(uintptr_t)(s->first + i)), FJ_OK);
    tally_deliver();
    return NULL;
}

struct single {
    fj_task task;
    uint64_t id, result;
};

static int single_run(fj_task *t)
{
    struct single *s = (struct single *)t;
    seen(s->id);
    s->result = hash(s->id);
    return (int)(s->id % 1000);
}

static void *submits(void *arg)
{
    const struct submitter *s = arg;
    struct single batch[BATCH];
    uint64_t id = s->first, end = s->first + s->n, state = s->first ^ fjt_seed();

    while (id < end) {
        uint64_t n = end - id < BATCH ? end - id : BATCH;
        uint64_t turn = fjt_random(&state);
        for (uint64_t i = 0; i < n; i++) {
            batch[i] = (struct single){.id = id++};
            fj_task_init(&batch[i].task, single_run);
            CHECK_EQ(fj_submit(s->pool, &batch[i].task), FJ_OK);
        }
        for (uint64_t i = 0; i < n; i++) {
            struct single *it = &batch[(turn + i) % n];
            CHECK_EQ(fj_join(&it->task), (int)(it->id % 1000));
            CHECK(it->result == hash(it->id));
        }
    }
    tally_deliver();
    return NULL;
}

static void run_submitters(void *(*body)(void *), long each)
{
    uint64_t next = 1, n = (uint64_t)rounds(each);
    static const unsigned extra[] = {0, FJ_POOL_CALLER_HELPS};

    for (size_t k = 0; k < KINDS; k++) {
        struct kind kind = kinds[k];
        kind.flags |= extra[k % 2];
        fj_pool *p = counting_pool(&kind);
        struct submitter s[SUBMITTERS];
        pthread_t thread[SUBMITTERS];
        for (int i = 0; i < SUBMITTERS; i++) {
            s[i] = (struct submitter){p, next, n};
            next += n;
            CHECK_EQ(pthread_create(&thread[i], NULL, body, &s[i]), 0);
        }
        for (int i = 0; i < SUBMITTERS; i++) pthread_join(thread[i], NULL);
        fjt_destroy(p); /* this also runs the tasks that are still queued */
    }
    check_total(next - 1);
    printf("# %llu tasks\n", (unsigned long long)(next - 1));
}

FJ_TEST(actions_from_four_threads_run_once, 120)
{
    run_submitters(executes, 20000);
}

FJ_TEST(tasks_submitted_and_joined_by_four_threads_run_once, 120)
{
    run_submitters(submits, 5000);
}
