/* SPDX-License-Identifier: MIT */
/*
 * group.c - scenarios of groups: the end against waits, adds, holds, cancels and the stop of a pool
 */
#include <forkjoin/group.h>
#include <pthread.h>

#include "scenario.h"

/* Each child writes a word of its own, without an atomic operation. A waiter that reads the words
 * must see all of them. */
enum { CHILDREN = 16 };

struct family {
    fj_group group;
    fj_pool *pool;
    int done[CHILDREN];
    atomic_int next, runs, skips, accepted;
};

static void skipped(void *child, void *arg)
{
    struct family *f = arg;

    (void)child;
    atomic_fetch_add_explicit(&f->skips, 1, memory_order_relaxed);
}

static struct family *family(fj_pool *pool, int cancel_on_error)
{
    struct family *f = malloc(sizeof *f);
    fj_group_options o = {0};

    memset(f, 0, sizeof *f);
    o.pool = pool;
    o.cancel_on_error = cancel_on_error;
    o.on_skip = skipped;
    o.arg = f;
    f->pool = pool;
    CHECK_EQ(fj_group_init(&f->group, &o), FJ_OK);
    return f;
}

static void tick(fj_group *g)
{
    struct family *f = (struct family *)g;
    int i = atomic_fetch_add_explicit(&f->next, 1, memory_order_relaxed);

    f->done[i] = 1;
    atomic_fetch_add_explicit(&f->runs, 1, memory_order_relaxed);
}

/* Checks that the n words were written, and frees the family. */
static void family_end(struct family *f, int n)
{
    for (int i = 0; i < n; i++) CHECK_EQ(f->done[i], 1);
    CHECK_EQ(atomic_load(&f->runs), n);
    memset(f, 0xdd, sizeof *f);
    free(f);
}

static int leaf(fj_group *g, void *arg)
{
    (void)arg;
    tick(g);
    return FJ_OK;
}

struct kid {
    fj_group_task task;
};

static int kid_run(fj_group_task *t)
{
    fj_group *g = fj_group_of(t);

    free(t);
    tick(g);
    return FJ_OK;
}

static void add_kid(fj_group *g)
{
    struct kid *k = malloc(sizeof *k);

    memset(k, 0, sizeof *k);
    fj_group_task_init(&k->task, kid_run);
    CHECK_EQ(fj_group_run(g, &k->task), FJ_OK);
}

/* ---- Children that add children -------------------------------------------------------------- */

static int grow(fj_group *g, void *arg)
{
    intptr_t depth = (intptr_t)arg;

    tick(g);
    if (depth == 0) return FJ_OK;
    CHECK_EQ(fj_group_call(g, grow, (void *)(depth - 1)), FJ_OK);
    add_kid(g);
    CHECK_EQ(fj_group_call(g, leaf, NULL), FJ_OK);
    return FJ_OK;
}

FJ_TEST(children_add_children_while_an_outside_thread_waits, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct family *f = family(pool, 0);

    CHECK_EQ(fj_group_call(&f->group, grow, (void *)2), FJ_OK);
    CHECK_EQ(fj_group_fini(&f->group), FJ_OK);
    family_end(f, 7);
    fjt_destroy(pool);
}

static void grow_inside(void *arg)
{
    struct family *f = family(arg, 0);

    CHECK_EQ(fj_group_call(&f->group, grow, (void *)1), FJ_OK);
    CHECK_EQ(fj_group_call(&f->group, leaf, NULL), FJ_OK);
    CHECK_EQ(fj_group_fini(&f->group), FJ_OK);
    family_end(f, 5);
}

FJ_TEST(worker_waits_for_children_that_others_run, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    scenario_inside(pool, grow_inside, pool);
    fjt_destroy(pool);
}

/* The worker waits for the inner group while children of the outer one are on top of its queue. */
static int waits_for_another_group(fj_group *g, void *arg)
{
    struct family *inner = family(arg, 0);

    CHECK_EQ(fj_group_call(&inner->group, leaf, NULL), FJ_OK);
    CHECK_EQ(fj_group_call(g, leaf, NULL), FJ_OK);
    CHECK_EQ(fj_group_fini(&inner->group), FJ_OK);
    family_end(inner, 1);
    tick(g);
    return FJ_OK;
}

FJ_TEST(groups_that_are_nested_end_with_their_own_children, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct family *f = family(pool, 0);

    CHECK_EQ(fj_group_call(&f->group, waits_for_another_group, pool), FJ_OK);
    CHECK_EQ(fj_group_fini(&f->group), FJ_OK);
    family_end(f, 2);
    fjt_destroy(pool);
}

/* ---- The last child against a wait ----------------------------------------------------------- */

FJ_TEST(last_child_ends_while_the_wait_begins, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct family *f = family(pool, 0);

    add_kid(&f->group);
    CHECK_EQ(fj_group_call(&f->group, leaf, NULL), FJ_OK);
    CHECK_EQ(fj_group_fini(&f->group), FJ_OK);
    family_end(f, 2);
    fjt_destroy(pool);
}

static void *waits(void *arg)
{
    struct family *f = arg;

    CHECK_EQ(fj_group_wait(&f->group), FJ_OK); /* then another thread may have freed *f */
    return NULL;
}

FJ_TEST(group_is_freed_when_all_waits_have_returned, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct family *f = family(pool, 0);
    pthread_t t;

    CHECK_EQ(fj_group_hold(&f->group), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, waits, f), 0);
    CHECK_EQ(fj_group_call(&f->group, leaf, NULL), FJ_OK);
    while (__atomic_load_n(&f->group.waits, __ATOMIC_RELAXED) == 0) sim_yield();
    CHECK_EQ(fj_group_release(&f->group), FJ_OK);
    CHECK_EQ(fj_group_fini(&f->group), FJ_OK);
    family_end(f, 1);
    pthread_join(t, NULL);
    fjt_destroy(pool);
}

/* ---- Adds from outside ----------------------------------------------------------------------- */

static void *adds_under_a_hold(void *arg)
{
    struct family *f = arg;

    CHECK_EQ(fj_group_call(&f->group, leaf, NULL), FJ_OK);
    add_kid(&f->group);
    CHECK_EQ(fj_group_release(&f->group), FJ_OK);
    return NULL;
}

FJ_TEST(release_of_a_hold_races_with_the_end, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct family *f = family(pool, 0);
    pthread_t t;

    CHECK_EQ(fj_group_call(&f->group, leaf, NULL), FJ_OK);
    CHECK_EQ(fj_group_hold(&f->group), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, adds_under_a_hold, f), 0);
    CHECK_EQ(fj_group_fini(&f->group), FJ_OK);
    family_end(f, 3);
    pthread_join(t, NULL);
    fjt_destroy(pool);
}

static void *adds_too_late(void *arg)
{
    struct family *f = arg;

    for (int i = 0; i < 2; i++) {
        int err = fj_group_call(&f->group, leaf, NULL);
        CHECK(err == FJ_OK || err == FJ_EREJECTED);
        atomic_fetch_add(&f->accepted, err == FJ_OK);
    }
    return NULL;
}

FJ_TEST(child_added_without_a_hold_is_run_or_rejected, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    struct family *f = family(pool, 0);
    pthread_t t;

    CHECK_EQ(pthread_create(&t, NULL, adds_too_late, f), 0);
    CHECK_EQ(fj_group_call(&f->group, leaf, NULL), FJ_OK);
    CHECK_EQ(fj_group_wait(&f->group), FJ_OK);
    CHECK_EQ(fj_group_has_ended(&f->group), 1);
    int n = atomic_load(&f->runs);
    pthread_join(t, NULL);
    CHECK_EQ(n, 1 + atomic_load(&f->accepted));
    CHECK_EQ(fj_group_fini(&f->group), FJ_OK);
    family_end(f, n);
    fjt_destroy(pool);
}

/* ---- Errors, cancels and the stop of the pool ------------------------------------------------ */

static int fails(fj_group *g, void *arg)
{
    tick(g);
    return (int)(intptr_t)arg;
}

static void *stops(void *arg)
{
    fj_pool_shutdown_now(arg);
    return NULL;
}

static void *cancels(void *arg)
{
    struct family *f = arg;

    fj_group_cancel(&f->group);
    CHECK_EQ(fj_group_release(&f->group), FJ_OK);
    return NULL;
}

static void error_against(struct family *f, void *(*thread)(void *), void *arg)
{
    pthread_t t;

    CHECK_EQ(fj_group_call(&f->group, fails, (void *)4), FJ_OK);
    CHECK_EQ(fj_group_call(&f->group, leaf, NULL), FJ_OK);
    CHECK_EQ(fj_group_call(&f->group, fails, (void *)4), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, thread, arg), 0);
    int code = fj_group_fini(&f->group);
    int runs = atomic_load(&f->runs), skips = atomic_load(&f->skips);
    CHECK_EQ(runs + skips, 3);
    CHECK(code == 4 || code == FJ_ECANCELED);
    if (skips == 0) CHECK_EQ(code, 4);
    pthread_join(t, NULL);
    family_end(f, runs);
}

FJ_TEST(error_races_with_a_cancel, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct family *f = family(pool, 1);

    CHECK_EQ(fj_group_hold(&f->group), FJ_OK);
    error_against(f, cancels, f);
    fjt_destroy(pool);
}

FJ_TEST(error_races_with_the_stop_of_the_pool, 10)
{
    fj_pool *pool = scenario_pool(2, 0);

    error_against(family(pool, 1), stops, pool);
    fjt_destroy(pool);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

FJ_TEST(cells_are_used_again_by_all_threads, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    struct family *f = family(pool, 0);

    for (int round = 0; round < 2; round++) {
        if (round == 1) CHECK_EQ(fj_group_reset(&f->group), FJ_OK);
        CHECK_EQ(fj_group_call(&f->group, grow, (void *)1), FJ_OK);
        CHECK_EQ(fj_group_call(&f->group, grow, (void *)1), FJ_OK);
        CHECK_EQ(fj_group_wait(&f->group), FJ_OK);
        CHECK_EQ(atomic_load(&f->runs), 8 * (round + 1));
    }
    CHECK_EQ(fj_group_fini(&f->group), FJ_OK);
    family_end(f, 16);
    fjt_destroy(pool);
}
