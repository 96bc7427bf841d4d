/* SPDX-License-Identifier: MIT */
/*
 * worker_local.c - a value for each worker (forkjoin/worker_local.h)
 */
#include <forkjoin/algo.h>
#include <forkjoin/block.h>
#include <forkjoin/worker_local.h>
#include <semaphore.h>
#include <string.h>

#include "../api/inside.h"

/* Counts the calls of make and drop, and the values that exist. */
struct tally {
    atomic_int made, dropped, refuse; /* refuse: how many calls of make still fail */
};

struct value {
    long sum;
    struct tally *tally;
    int live; /* 1 from make to drop */
};

static int value_make(void *at, void *arg)
{
    struct value *v = at;
    struct tally *t = arg;
    const char *byte = at;

    for (size_t i = 0; i < sizeof *v; i++) CHECK_EQ(byte[i], 0);
    CHECK_EQ((uintptr_t)at % 128, 0);
    if (atomic_load(&t->refuse) > 0 && atomic_fetch_sub(&t->refuse, 1) > 0) return 7;
    v->tally = t;
    v->live = 1;
    atomic_fetch_add(&t->made, 1);
    return FJ_OK;
}

static void value_drop(void *at, void *arg)
{
    struct value *v = at;
    struct tally *t = arg;

    CHECK(v->tally == t && v->live == 1);
    v->live = 0;
    atomic_fetch_add(&t->dropped, 1);
}

static void local_begin(fj_local *l, fj_pool *pool, struct tally *t)
{
    fj_local_options o = {.pool = pool,
                          .bytes = sizeof(struct value),
                          .make = value_make,
                          .drop = value_drop,
                          .arg = t};

    memset(t, 0, sizeof *t);
    CHECK_EQ(fj_local_init(l, &o), FJ_OK);
}

static void local_end(fj_local *l, struct tally *t)
{
    CHECK_EQ(fj_local_fini(l), FJ_OK);
    CHECK_EQ(atomic_load(&t->dropped), atomic_load(&t->made));
    CHECK(fj_local_get(l) == NULL);
    CHECK_EQ(fj_local_fini(l), FJ_OK); /* nothing is dropped again */
    CHECK_EQ(atomic_load(&t->dropped), atomic_load(&t->made));
}

static int value_add(void *at, void *arg)
{
    *(long *)arg += ((struct value *)at)->sum;
    return FJ_OK;
}

static int value_count(void *at, void *arg)
{
    (void)at;
    ++*(int *)arg;
    return FJ_OK;
}

/* ---- One value for each worker --------------------------------------------------------------- */

struct use {
    fj_local *local;
    fj_pool *pool;
};

static int adds_chunk(size_t begin, size_t end, void *arg)
{
    fj_local *l = arg;

    for (size_t i = begin; i < end; i++) {
        struct value *v = fj_local_get(l);
        CHECK(v != NULL && v->live == 1);
        CHECK(fj_local_get(l) == v);
        v->sum += (long)i;
    }
    return FJ_OK;
}

static void sums_a_range(fj_pool *pool)
{
    struct tally t;
    fj_local l;
    long sum = 0, n = fjt_rounds(20000);
    int values = 0;
    fj_algo_options how = {.pool = pool, .max_grain = 50};

    local_begin(&l, pool, &t);
    CHECK_EQ(fj_for(0, (size_t)n, adds_chunk, &l, &how), FJ_OK);
    CHECK_EQ(fj_local_each(&l, value_add, &sum), FJ_OK);
    CHECK_EQ(sum, n * (n - 1) / 2);
    CHECK_EQ(fj_local_each(&l, value_count, &values), FJ_OK);
    CHECK_EQ(values, atomic_load(&t.made));
    CHECK(values >= 1 && values <= fj_pool_worker_limit(pool));
    local_end(&l, &t);
}

FJ_TEST(sum_of_all_values_is_the_sum_of_all_bodies, 60)
{
    on_pools_and_common(sums_a_range);
}

/* 20 tasks wait for a semaphore in a pool of 2 workers, so the pool starts 18 spare threads. Each has a
 * value of its own. */
struct crowd_task {
    fj_task task;
    fj_local *local;
    sem_t *gate;
    atomic_int *waiting;
    struct value *value;
};

static int crowd_waits(fj_task *t)
{
    struct crowd_task *c = (struct crowd_task *)t;

    c->value = fj_local_get(c->local);
    CHECK(c->value != NULL);
    c->value->sum++;
    atomic_fetch_add(c->waiting, 1);
    CHECK_EQ(fj_block_sem_wait(c->gate, FJ_FOREVER), FJ_OK);
    CHECK(fj_local_get(c->local) == c->value);
    return FJ_OK;
}

#define CROWD 20

static void crowd_meets(fj_pool *pool, fj_local *l, struct value **values)
{
    sem_t gate;
    atomic_int waiting = 0;
    struct crowd_task c[CROWD];

    CHECK_EQ(sem_init(&gate, 0, 0), 0);
    for (int i = 0; i < CROWD; i++) {
        c[i] = (struct crowd_task){.local = l, .gate = &gate, .waiting = &waiting};
        fj_task_init(&c[i].task, crowd_waits);
        CHECK_EQ(fj_submit(pool, &c[i].task), FJ_OK);
    }
    while (atomic_load(&waiting) < CROWD) fjt_sleep_us(100);
    for (int i = 0; i < CROWD; i++) sem_post(&gate);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(fj_join(&c[i].task), FJ_OK);
    for (int i = 0; i < CROWD; i++) values[i] = c[i].value;
    sem_destroy(&gate);
}

FJ_TEST(threads_that_run_at_the_same_time_have_different_values_on_lines_of_their_own, 60)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct value *v[CROWD];
    struct tally t;
    fj_local l;

    local_begin(&l, pool, &t);
    crowd_meets(pool, &l, v);
    CHECK_EQ(atomic_load(&t.made), CROWD);
    for (int i = 0; i < CROWD; i++)
        for (int k = 0; k < i; k++) {
            uintptr_t a = (uintptr_t)v[i], b = (uintptr_t)v[k];
            CHECK(a > b ? a - b >= 128 : b - a >= 128);
        }
    local_end(&l, &t);
    fjt_destroy(pool);
}

FJ_TEST(value_stays_with_its_index_when_threads_end, 60)
{
    fj_pool_options o = {.parallelism = 2, .keep_alive_ns = 1};
    fj_pool *pool = fjt_pool_with(&o);
    struct value *v[CROWD];
    struct tally t;
    fj_local l;
    long sum = 0;

    local_begin(&l, pool, &t);
    for (int round = 0; round < 2; round++) {
        crowd_meets(pool, &l, v);
        while (fj_pool_thread_count(pool) > 0) fjt_sleep_us(1000);
    }
    CHECK(atomic_load(&t.made) <= fj_pool_worker_limit(pool));
    CHECK(atomic_load(&t.made) < 2 * CROWD);
    CHECK_EQ(fj_local_each(&l, value_add, &sum), FJ_OK);
    CHECK_EQ(sum, 2 * CROWD);
    local_end(&l, &t);
    fjt_destroy(pool);
}

/* ---- Other threads --------------------------------------------------------------------------- */

static void gets_nothing(void *arg)
{
    CHECK(fj_local_get(arg) == NULL);
}

static void gets_its_value(void *arg)
{
    struct use *u = arg;
    struct value *v = fj_local_get(u->local);

    CHECK(v != NULL);
    inside(u->pool, gets_nothing, u->local); /* in the other pool */
    CHECK(fj_local_get(u->local) == v);
}

FJ_TEST(thread_outside_and_worker_of_another_pool_get_nothing, 20)
{
    fj_pool *pool = fjt_pool(1, 0), *other = fjt_pool(1, 0);
    struct tally t;
    fj_local l;
    struct use u = {&l, other};

    local_begin(&l, pool, &t);
    CHECK(fj_local_get(&l) == NULL);
    inside(other, gets_nothing, &l); /* before any value exists */
    inside(pool, gets_its_value, &u);
    CHECK(fj_local_get(&l) == NULL);
    inside(other, gets_nothing, &l);
    CHECK_EQ(atomic_load(&t.made), 1);
    local_end(&l, &t);
    fjt_destroy(other);
    fjt_destroy(pool);
}

static int helper_gets(fj_task *t)
{
    struct crowd_task *c = (struct crowd_task *)t;

    c->value = fj_local_get(c->local);
    return FJ_OK;
}

FJ_TEST(helping_caller_has_the_value_of_its_index_during_the_call, 20)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct tally t;
    fj_local l;
    struct crowd_task c[2] = {{.local = &l}, {.local = &l}};

    local_begin(&l, pool, &t);
    for (int i = 0; i < 2; i++) {
        fj_task_init(&c[i].task, helper_gets);
        CHECK_EQ(fj_invoke_mode(pool, &c[i].task, FJ_CALLER_HELPS), FJ_OK);
        CHECK(c[i].value != NULL);
        CHECK(fj_local_get(&l) == NULL);
    }
    CHECK(atomic_load(&t.made) <= fj_pool_worker_limit(pool));
    local_end(&l, &t);
    fjt_destroy(pool);
}

static void joins_a_child(void *arg)
{
    struct crowd_task c = {.local = arg};
    struct value *v = fj_local_get(arg);

    fj_task_init(&c.task, helper_gets);
    fj_fork(&c.task);
    CHECK_EQ(fj_join(&c.task), FJ_OK);
    CHECK(c.value == v);
}

FJ_TEST(nested_task_of_the_same_worker_gets_the_same_value, 20)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct tally t;
    fj_local l;

    local_begin(&l, pool, &t);
    inside(pool, joins_a_child, &l);
    local_end(&l, &t);
    fjt_destroy(pool);
}

/* ---- make and drop ---------------------------------------------------------------------------- */

static void is_refused_twice(void *arg)
{
    fj_local *l = arg;

    CHECK(fj_local_get(l) == NULL);
    CHECK(fj_local_get(l) == NULL);
    CHECK(fj_local_get(l) != NULL);
}

FJ_TEST(failed_make_is_tried_again_and_not_dropped, 20)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct tally t;
    fj_local l;
    int n = 0;

    local_begin(&l, pool, &t);
    atomic_store(&t.refuse, 2);
    inside(pool, is_refused_twice, &l);
    CHECK_EQ(atomic_load(&t.made), 1);
    CHECK_EQ(fj_local_each(&l, value_count, &n), FJ_OK);
    CHECK_EQ(n, 1);
    local_end(&l, &t);
    fjt_destroy(pool);
}

/* make forks a task and joins it; in a pool of one worker the same worker runs the task. */
static int make_that_waits(void *at, void *arg)
{
    struct crowd_task c = {.local = arg};

    *(int *)at = 1;
    fj_task_init(&c.task, helper_gets);
    fj_fork(&c.task);
    CHECK_EQ(fj_join(&c.task), FJ_OK);
    CHECK(c.value == NULL);
    CHECK(fj_local_get(arg) == NULL);
    CHECK_EQ(fj_local_fini(arg), FJ_EBUSY);
    return FJ_OK;
}

static void makes_and_waits(void *arg)
{
    int *v = fj_local_get(arg);

    CHECK(v != NULL && *v == 1);
    CHECK(fj_local_get(arg) == v);
}

FJ_TEST(task_below_make_gets_nothing, 20)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_local l;
    fj_local_options o = {.pool = pool, .bytes = sizeof(int), .make = make_that_waits, .arg = &l};

    CHECK_EQ(fj_local_init(&l, &o), FJ_OK);
    inside(pool, makes_and_waits, &l);
    CHECK_EQ(fj_local_fini(&l), FJ_OK);
    fjt_destroy(pool);
}

static void writes_all(void *arg)
{
    char *v = fj_local_get(arg);

    for (int i = 0; i < 1000; i++) CHECK_EQ(v[i], 0);
    memset(v, 5, 1000);
}

FJ_TEST(value_without_make_begins_as_zeros, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_local l;
    fj_local_options o = {.pool = pool, .bytes = 1000};

    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_local_init(&l, &o), FJ_OK);
        inside(pool, writes_all, &l);
        CHECK_EQ(fj_local_fini(&l), FJ_OK);
    }
    fjt_destroy(pool);
}

/* ---- each ------------------------------------------------------------------------------------- */

struct each_call {
    fj_local *local;
    int calls;
};

static int ends_at_the_second(void *at, void *arg)
{
    struct each_call *e = arg;

    CHECK(((struct value *)at)->live == 1);
    CHECK_EQ(fj_local_fini(e->local), FJ_EBUSY);
    CHECK(fj_local_get(e->local) == NULL); /* outside the pool */
    return ++e->calls == 2 ? 9 : FJ_OK;
}

FJ_TEST(each_ends_at_the_first_code_and_is_busy_until_then, 60)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct value *v[CROWD];
    struct tally t;
    fj_local l;
    struct each_call e = {&l, 0};

    local_begin(&l, pool, &t);
    CHECK_EQ(fj_local_each(&l, ends_at_the_second, &e), FJ_OK); /* no value yet */
    CHECK_EQ(e.calls, 0);
    crowd_meets(pool, &l, v);
    CHECK_EQ(fj_local_each(&l, ends_at_the_second, &e), 9);
    CHECK_EQ(e.calls, 2);
    local_end(&l, &t);
    CHECK_EQ(fj_local_each(&l, ends_at_the_second, &e), FJ_EINVAL);
    CHECK_EQ(e.calls, 2);
    fjt_destroy(pool);
}

/* ---- Misuse ----------------------------------------------------------------------------------- */

FJ_TEST(wrong_options_are_refused_and_change_nothing, 20)
{
    fj_local l, before;
    fj_local_options o = {.bytes = 0};

    memset(&l, 0x5a, sizeof l);
    before = l;
    CHECK_EQ(fj_local_init(&l, &o), FJ_EINVAL);
    o.bytes = SIZE_MAX;
    CHECK_EQ(fj_local_init(&l, &o), FJ_EINVAL);
    for (size_t i = 0; i < sizeof o.reserved / sizeof o.reserved[0]; i++) {
        o = (fj_local_options){.bytes = 1};
        o.reserved[i] = 1;
        CHECK_EQ(fj_local_init(&l, &o), FJ_EINVAL);
    }
    CHECK(memcmp(&l, &before, sizeof l) == 0);
    memset(&l, 0, sizeof l);
    CHECK(fj_local_get(&l) == NULL);
    CHECK_EQ(fj_local_fini(&l), FJ_OK);
}

/* ---- Random programs -------------------------------------------------------------------------- */

/* A random tree of tasks. Each node adds a number to the value of its worker, before or after its
 * children. The oracle is a sequential walk over the same tree. */
struct node {
    fj_task task;
    uint64_t seed;
    int depth;
    fj_local *local;
};

static long node_weight(uint64_t seed)
{
    return (long)(seed % 1000);
}

static int node_children(uint64_t *seed, int depth)
{
    return depth == 0 ? 0 : (int)(fjt_random(seed) % 4);
}

static int node_run(fj_task *t)
{
    struct node *n = (struct node *)t;
    struct node child[4];
    uint64_t seed = n->seed;
    int children = node_children(&seed, n->depth);
    bool late = fjt_random(&seed) % 2 == 0;

    if (!late) ((struct value *)fj_local_get(n->local))->sum += node_weight(n->seed);
    for (int i = 0; i < children; i++) {
        child[i] = (struct node){
            .seed = fjt_random(&seed), .depth = n->depth - 1, .local = n->local};
        fj_task_init(&child[i].task, node_run);
        fj_fork(&child[i].task);
    }
    for (int i = children; i-- > 0;) CHECK_EQ(fj_join(&child[i].task), FJ_OK);
    if (late) ((struct value *)fj_local_get(n->local))->sum += node_weight(n->seed);
    return FJ_OK;
}

static long node_oracle(uint64_t start, int depth)
{
    uint64_t seed = start;
    int children = node_children(&seed, depth);
    long sum = node_weight(start);

    (void)fjt_random(&seed);
    for (int i = 0; i < children; i++) sum += node_oracle(fjt_random(&seed), depth - 1);
    return sum;
}

static void runs_trees(fj_pool *pool)
{
    uint64_t state = fjt_seed();

    for (long round = 0; round < fjt_rounds(20); round++) {
        struct tally t;
        fj_local l;
        struct node root[2];
        long sum = 0, want = 0;
        int n = 0;

        local_begin(&l, pool, &t);
        for (int i = 0; i < 2; i++) {
            root[i] = (struct node){.seed = fjt_random(&state), .depth = 8, .local = &l};
            fj_task_init(&root[i].task, node_run);
            want += node_oracle(root[i].seed, 8);
            CHECK_EQ(fj_submit(pool, &root[i].task), FJ_OK);
        }
        CHECK_EQ(fj_local_each(&l, value_count, &n), FJ_OK); /* while workers make values */
        for (int i = 0; i < 2; i++) CHECK_EQ(fj_join(&root[i].task), FJ_OK);
        CHECK_EQ(fj_local_each(&l, value_add, &sum), FJ_OK);
        CHECK_EQ(sum, want);
        local_end(&l, &t);
    }
}

FJ_TEST(random_trees_add_up, 60)
{
    on_pools(runs_trees);
}
