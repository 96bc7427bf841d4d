/* SPDX-License-Identifier: MIT */
/*
 * completer.c - completers: pending counts in place of joins
 */
#include <forkjoin/block.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fjtest.h"

struct sum {
    fj_completer c;
    const int *v;
    size_t n;
    long total;
    struct sum *child; /* an array of two, or NULL */
};

static int sum_done(fj_completer *c, fj_completer *caller)
{
    struct sum *s = (struct sum *)c;

    (void)caller;
    if (s->child == NULL) return FJ_OK;
    s->total = s->child[0].total + s->child[1].total;
    free(s->child);
    s->child = NULL;
    return FJ_OK;
}

static int sum_run(fj_task *t)
{
    struct sum *s = (struct sum *)t;

    if (s->n <= 4) {
        for (size_t i = 0; i < s->n; i++) s->total += s->v[i];
    } else {
        size_t half = s->n / 2;
        struct sum *two = calloc(2, sizeof *two);
        for (int i = 0; i < 2; i++) {
            fj_completer_init(&two[i].c, &s->c, 0, sum_run, sum_done, NULL);
            two[i].v = s->v + (i == 0 ? 0 : half);
            two[i].n = i == 0 ? half : s->n - half;
        }
        s->child = two;
        fj_completer_set_pending(&s->c, 2);
        CHECK_EQ(fj_completer_fork(&two[0].c), FJ_OK);
        CHECK_EQ(fj_completer_fork(&two[1].c), FJ_OK);
    }
    fj_completer_try_complete(&s->c);
    return FJ_OK;
}

#define N 20000

static int values[N];

static void sum_init(struct sum *s)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < N; i++) values[i] = i;
    fj_completer_init(&s->c, NULL, 0, sum_run, sum_done, NULL);
    s->v = values;
    s->n = N;
}

FJ_TEST(completers_sum_a_tree, 60)
{
    static const int workers[] = {1, 2, 8};

    for (int i = 0; i < 3; i++)
        for (unsigned flags = 0; flags < 4; flags++) {
            fj_pool *p = fjt_pool(workers[i], flags);
            for (long k = fjt_rounds(10); k > 0; k--) {
                struct sum s;
                sum_init(&s);
                CHECK_EQ(fj_completer_invoke(p, &s.c), FJ_OK);
                CHECK_EQ(s.total, (long)N * (N - 1) / 2);
                fj_future_fini(&s.c.future);
            }
            fjt_destroy(p);
        }
}

static int invoke_inside(fj_task *t)
{
    struct sum s;

    (void)t;
    sum_init(&s);
    CHECK_EQ(fj_completer_run(&s.c), FJ_OK);
    CHECK_EQ(s.total, (long)N * (N - 1) / 2);
    return FJ_OK;
}

FJ_TEST(completer_root_is_joined_inside_with_help_of_its_own_tasks, 60)
{
    for (int n = 1; n <= 4; n++) {
        fj_pool *p = fjt_pool(n, 0);
        for (long k = fjt_rounds(20); k > 0; k--) {
            fj_task t;
            fj_task_init(&t, invoke_inside);
            CHECK_EQ(fj_invoke(p, &t), FJ_OK);
        }
        fjt_destroy(p);
    }
}

/* ---- Helping only tasks of the same root ----------------------------------------------------- */

static atomic_int strangers;
static _Thread_local int inside;

static int stranger_run(fj_task *t)
{
    (void)t;
    if (inside) atomic_fetch_add(&strangers, 1);
    return FJ_OK;
}

static int own_run(fj_task *t)
{
    fjt_spin_us(5);
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

static int helping_root(fj_task *t)
{
    fj_future other[16];
    fj_completer root, own[16];

    (void)t;
    fj_completer_init(&root, NULL, 15, own_run, NULL, NULL);
    for (int i = 0; i < 16; i++) {
        fj_future_init(&other[i], stranger_run);
        CHECK_EQ(fj_future_fork(&other[i]), FJ_OK);
        fj_completer_init(&own[i], &root, 0, own_run, NULL, NULL);
        CHECK_EQ(fj_completer_fork(&own[i]), FJ_OK);
    }
    inside = 1;
    CHECK_EQ(fj_completer_join(&root), FJ_OK);
    inside = 0;
    for (int i = 0; i < 16; i++) CHECK_EQ(fj_future_join(&other[i]), FJ_OK);
    for (int i = 0; i < 16; i++) fj_future_fini(&other[i]);
    return FJ_OK;
}

FJ_TEST(joiner_of_a_root_runs_only_tasks_of_that_root, 60)
{
    for (int n = 1; n <= 4; n++) {
        fj_pool *p = fjt_pool(n, 0);
        for (long k = fjt_rounds(200); k > 0; k--) {
            fj_task t;
            fj_task_init(&t, helping_root);
            CHECK_EQ(fj_invoke_mode(p, &t, FJ_CALLER_BLOCKS), FJ_OK);
        }
        fjt_destroy(p);
    }
    CHECK_EQ(atomic_load(&strangers), 0);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

struct node {
    fj_completer c;
    int errors, code, stop;
};

static int node_error(fj_completer *c, int code, fj_completer *caller)
{
    struct node *n = (struct node *)c;

    (void)caller;
    n->errors++;
    n->code = code;
    return !n->stop;
}

static int fails(fj_task *t)
{
    (void)t;
    return 42;
}

FJ_TEST(failure_goes_up_while_the_callbacks_say_so, 20)
{
    fj_pool *p = fjt_pool(1, 0);

    for (int stop = 0; stop < 2; stop++) {
        struct node n[3];
        memset(n, 0, sizeof n);
        for (int i = 0; i < 3; i++)
            fj_completer_init(&n[i].c, i == 0 ? NULL : &n[i - 1].c, 1, fails, NULL, node_error);
        n[1].stop = stop;
        CHECK_EQ(fj_completer_submit(p, &n[2].c), FJ_OK);
        CHECK_EQ(fj_future_join(&n[1].c.future), 42);
        if (!stop) CHECK_EQ(fj_completer_join(&n[0].c), 42);
        CHECK_EQ(n[2].errors + n[1].errors, 2);
        CHECK_EQ(n[0].errors, !stop);
        CHECK_EQ(fj_future_is_done(&n[0].c.future), !stop);
        fjt_destroy(p);
        p = fjt_pool(1, 0);
    }
    fjt_destroy(p);
}

FJ_TEST(root_is_cancelled_when_its_pool_stops, 60)
{
    for (long i = fjt_rounds(300); i > 0; i--) {
        fj_pool *p = fjt_pool(2, 0);
        struct node root, n[40];
        memset(&root, 0, sizeof root);
        memset(n, 0, sizeof n);
        fj_completer_init(&root.c, NULL, 39, own_run, NULL, NULL);
        for (int k = 0; k < 40; k++) {
            fj_completer_init(&n[k].c, &root.c, 0, own_run, NULL, NULL);
            CHECK_EQ(fj_completer_submit(p, &n[k].c), FJ_OK);
        }
        if (i % 2 == 0) fjt_spin_us(i % 50);
        CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
        int code = fj_completer_join(&root.c);
        CHECK(code == FJ_OK || code == FJ_ECANCELED);
        fjt_destroy(p);
    }
}

/* ---- Counts ---------------------------------------------------------------------------------- */

FJ_TEST(pending_count_goes_as_it_is_told, 10)
{
    fj_completer root, c;

    fj_completer_init(&root, NULL, 1, own_run, NULL, NULL);
    fj_completer_init(&c, &root, 0, own_run, NULL, NULL);
    CHECK(fj_completer_parent(&c) == &root && fj_completer_root(&c) == &root);
    CHECK(fj_completer_parent(&root) == NULL && fj_completer_root(&root) == &root);
    fj_completer_set_pending(&c, 3);
    fj_completer_add_pending(&c, -1);
    CHECK_EQ(fj_completer_pending(&c), 2);
    CHECK_EQ(fj_completer_cas_pending(&c, 3, 9), 0);
    CHECK_EQ(fj_completer_cas_pending(&c, 2, 1), 1);
    CHECK_EQ(fj_completer_decrement(&c), 1);
    CHECK_EQ(fj_completer_decrement(&c), 0);
    CHECK(fj_completer_first(&c) == &c);
    CHECK(fj_completer_next(&c) == NULL); /* the root's pending count was 1 and is now 0 */
    CHECK_EQ(fj_completer_pending(&root), 0);
    CHECK(!fj_future_is_done(&root.future));
    CHECK(fj_completer_next(&c) == &root);
    CHECK(fj_completer_next(&root) == NULL);
    CHECK(fj_future_succeeded(&root.future));
}

/* ---- fj_completer_fork_all() ----------------------------------------------------------------- */

static int collect_done(fj_completer *c, fj_completer *caller)
{
    (void)caller;
    ((struct node *)c)->code = 1;
    return FJ_OK;
}

static int fork_all_run(fj_task *t)
{
    struct node *root = (struct node *)t;
    static struct node many[100];

    for (int i = 0; i < 100; i++) fj_completer_init(&many[i].c, &root->c, 0, own_run, NULL, NULL);
    return fj_completer_fork_all(&root->c, many, 100, sizeof many[0]);
}

FJ_TEST(fork_all_and_then, 30)
{
    fj_pool *p = fjt_pool(3, 0);

    for (long i = fjt_rounds(200); i > 0; i--) {
        struct node root;
        memset(&root, 0, sizeof root);
        fj_completer_init(&root.c, NULL, 0, fork_all_run, collect_done, NULL);
        CHECK_EQ(fj_completer_invoke(p, &root.c), FJ_OK);
        CHECK_EQ(root.code, 1);
        fj_future_fini(&root.c.future);
    }
    fjt_destroy(p);
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

struct napper {
    fj_completer c;
    atomic_int *begun, *broken;
};

static int napper_run(fj_task *t)
{
    struct napper *n = (struct napper *)t;

    atomic_fetch_add(n->begun, 1);
    if (fj_sleep_ns((int64_t)3600 * 1000000000) == FJ_ECANCELED) atomic_fetch_add(n->broken, 1);
    fj_completer_try_complete(&n->c);
    return FJ_OK;
}

static int nap_all_run(fj_task *t)
{
    struct napper *root = (struct napper *)t;

    fj_completer_set_pending(&root->c, 1);
    for (int i = 1; i <= 2; i++) {
        root[i] = (struct napper){.begun = root->begun, .broken = root->broken};
        fj_completer_init(&root[i].c, &root->c, 0, napper_run, NULL, NULL);
        CHECK_EQ(fj_completer_fork(&root[i].c), FJ_OK);
    }
    return FJ_OK;
}

FJ_TEST(interrupt_of_a_root_breaks_the_waits_of_its_tasks, 60)
{
    fj_pool *p = fjt_pool(2, 0);

    for (long i = fjt_rounds(50); i > 0; i--) {
        atomic_int begun = 0, broken = 0;
        struct napper all[3] = {{.begun = &begun, .broken = &broken}};
        fj_completer_init(&all[0].c, NULL, 0, nap_all_run, NULL, NULL);
        CHECK_EQ(fj_completer_submit(p, &all[0].c), FJ_OK);
        while (atomic_load(&begun) < 2) fjt_sleep_us(20);
        CHECK_EQ(fj_future_cancel(&all[0].c.future, 1), 1);
        CHECK_EQ(fj_completer_join(&all[0].c), FJ_ECANCELED);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&broken), 2);
    }
    fjt_destroy(p);
}

/* ---- Tasks of a body that are stolen --------------------------------------------------------- */

static struct {
    atomic_int held, forked, stolen, seen;
} theft;

/* Keeps the second worker busy until the first worker has forked a task that can be stolen. */
static int hold_until_forked(void *arg)
{
    (void)arg;
    atomic_store(&theft.held, 1);
    while (atomic_load(&theft.forked) == 0) sched_yield();
    return FJ_OK;
}

static int stolen_run(fj_task *t)
{
    (void)t;
    atomic_store(&theft.stolen, 1);
    while (!fj_is_cancelled()) sched_yield();
    atomic_store(&theft.seen, 1);
    return FJ_OK;
}

static int quick_run(fj_task *t)
{
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

static int robbed_run(fj_task *t)
{
    fj_task part;

    fj_task_init(&part, stolen_run);
    fj_fork(&part);
    atomic_store(&theft.forked, 1);
    while (atomic_load(&theft.stolen) == 0) sched_yield();
    CHECK_EQ(fj_join(&part), FJ_OK);
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

static fj_completer theft_child[2];

/* The younger child runs first, and then the queue is shorter. So the older child forks its task at
 * a position below the one where the tasks of this worker began while the younger child ran. */
static int theft_run(fj_task *t)
{
    fj_completer *c = (fj_completer *)t;

    fj_completer_init(&theft_child[0], c, 0, robbed_run, NULL, NULL);
    fj_completer_init(&theft_child[1], c, 0, quick_run, NULL, NULL);
    fj_completer_set_pending(c, 2);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_completer_fork(&theft_child[i]), FJ_OK);
    fj_completer_try_complete(c);
    return FJ_OK;
}

FJ_TEST(cancel_of_a_root_reaches_what_was_stolen_from_a_body, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_completer root;

    CHECK_EQ(fj_execute(p, hold_until_forked, NULL), FJ_OK);
    while (atomic_load(&theft.held) == 0) sched_yield();
    fj_completer_init(&root, NULL, 0, theft_run, NULL, NULL);
    CHECK_EQ(fj_completer_submit(p, &root), FJ_OK);
    while (atomic_load(&theft.stolen) == 0) sched_yield();
    CHECK_EQ(fj_future_cancel(&root.future, 0), 1);
    while (atomic_load(&theft.seen) == 0) sched_yield();
    fjt_destroy(p);
}

/* ---- A pool that cannot add a thread --------------------------------------------------------- */

static struct {
    atomic_int begun, helped;
    fj_completer root, child;
} buried;

static int buried_child_run(fj_task *t)
{
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

/* A worker that helps runs this body, while it joins `stolen`. The child stays in its queue. */
static int buried_root_run(fj_task *t)
{
    fj_completer *c = (fj_completer *)t;

    fj_completer_init(&buried.child, c, 0, buried_child_run, NULL, NULL);
    fj_completer_set_pending(c, 1);
    CHECK_EQ(fj_completer_fork(&buried.child), FJ_OK);
    atomic_store(&buried.helped, 1);
    fj_completer_try_complete(c);
    return FJ_OK;
}

static int burying_run(fj_task *t)
{
    (void)t;
    fj_completer_init(&buried.root, NULL, 0, buried_root_run, NULL, NULL);
    CHECK_EQ(fj_completer_fork(&buried.root), FJ_OK);
    atomic_store(&buried.begun, 1);
    while (atomic_load(&buried.helped) == 0) sched_yield();
    return fj_completer_join(&buried.root);
}

static int nothing_run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

/* Joins `stolen` while `below` is still in this worker's queue. While it helps, this worker runs
 * the body of the root, which leaves its child above `below`. */
static int joining_run(fj_task *t)
{
    fj_task stolen, below;

    (void)t;
    fj_task_init(&stolen, burying_run);
    fj_task_init(&below, nothing_run);
    fj_fork(&stolen);
    while (atomic_load(&buried.begun) == 0) sched_yield();
    fj_fork(&below);
    CHECK_EQ(fj_join(&stolen), FJ_OK);
    return fj_join(&below);
}

FJ_TEST(what_a_helper_is_left_with_is_run_before_it_sleeps, 30)
{
    fj_pool_options o = {0};
    fj_task t;

    o.parallelism = 2;
    o.max_threads = 2;
    fj_pool *p = fjt_pool_with(&o);
    fj_task_init(&t, joining_run);
    CHECK_EQ(fj_invoke(p, &t), FJ_OK);
    fjt_destroy(p);
}
