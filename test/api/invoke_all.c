/* SPDX-License-Identifier: MIT */
/*
 * invoke_all.c - several tasks in one call: two tasks, a list, an array
 *
 * Each property is checked inside pools of several kinds, and on a thread outside a pool, where the
 * tasks run in the common pool.
 */
#include <stdlib.h>
#include <string.h>

#include "inside.h"

struct leaf {
    fj_task task;
    int code;
    int sleep_us;
    atomic_int runs;
    int written; /* set by the body as its last step */
};

static int leaf_run(fj_task *t)
{
    struct leaf *l = (struct leaf *)t;

    CHECK(fj_current_pool() != NULL);
    atomic_fetch_add(&l->runs, 1);
    if (l->sleep_us > 0) fjt_sleep_us(l->sleep_us);
    l->written = 1;
    return l->code;
}

static void leaves_init(struct leaf *l, int n)
{
    memset(l, 0, (size_t)n * sizeof *l);
    for (int i = 0; i < n; i++) fj_task_init(&l[i].task, leaf_run);
}

static void leaves_check(const struct leaf *l, int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_EQ(atomic_load(&l[i].runs), 1);
        CHECK_EQ(l[i].written, 1);
    }
}

/* Runs the body inside pools of several kinds, and outside a pool. */
static void everywhere(void (*body)(void *arg))
{
    inside_pools(body, NULL);
    body(NULL);
}

/* kind 0: fj_invoke_both() of the first two tasks; 1: fj_invoke_all(); 2: fj_invoke_array(). */
static int invoke(int kind, struct leaf *l, int n)
{
    fj_task **list;

    if (kind == 0) return fj_invoke_both(&l[0].task, &l[1].task);
    if (kind == 2) return fj_invoke_array(l, (size_t)n, sizeof *l);
    list = malloc((size_t)(n + 1) * sizeof *list);
    for (int i = 0; i < n; i++) list[i] = &l[i].task;
    int err = fj_invoke_all(list, (size_t)n);
    free(list);
    return err;
}

static void all_run(void *arg)
{
    static const int sizes[] = {1, 2, 3, 7, 64, 65, 1000};
    struct leaf *l = malloc(1000 * sizeof *l);

    (void)arg;
    for (int kind = 1; kind <= 2; kind++)
        for (int k = 0; k < 7; k++) {
            leaves_init(l, sizes[k]);
            CHECK_EQ(invoke(kind, l, sizes[k]), FJ_OK);
            leaves_check(l, sizes[k]);
        }
    leaves_init(l, 2);
    CHECK_EQ(invoke(0, l, 2), FJ_OK);
    leaves_check(l, 2);
    free(l);
}

FJ_TEST(invoke_all_runs_every_task_once, 30)
{
    everywhere(all_run);
}

static void none(void *arg)
{
    fj_task *list[1] = {NULL};
    struct leaf l;

    (void)arg;
    CHECK_EQ(fj_invoke_all(list, 0), FJ_OK);
    CHECK_EQ(fj_invoke_all(NULL, 0), FJ_OK);
    CHECK_EQ(fj_invoke_array(&l, 0, sizeof l), FJ_OK);
    CHECK_EQ(fj_invoke_array(NULL, 0, 0), FJ_OK);
}

FJ_TEST(invoke_all_of_nothing_is_ok, 10)
{
    everywhere(none);
}

static void nulls(void *arg)
{
    struct leaf l[5];
    fj_task *list[5];

    (void)arg;
    leaves_init(l, 5);
    for (int hole = 0; hole < 5; hole++) {
        for (int i = 0; i < 5; i++) list[i] = i == hole ? NULL : &l[i].task;
        CHECK_EQ(fj_invoke_all(list, 5), FJ_EINVAL);
    }
    CHECK_EQ(fj_invoke_all(NULL, 1), FJ_EINVAL);
    CHECK_EQ(fj_invoke_array(NULL, 1, sizeof(struct leaf)), FJ_EINVAL);
    CHECK_EQ(fj_invoke_both(NULL, &l[0].task), FJ_EINVAL);
    CHECK_EQ(fj_invoke_both(&l[0].task, NULL), FJ_EINVAL);
    CHECK_EQ(fj_invoke_both(NULL, NULL), FJ_EINVAL);
    fjt_sleep_us(1000);
    for (int i = 0; i < 5; i++) CHECK_EQ(atomic_load(&l[i].runs), 0);
}

FJ_TEST(invoke_all_with_null_runs_nothing, 10)
{
    everywhere(nulls);
}

static void strides(void *arg)
{
    struct wide {
        struct leaf leaf;
        char more[100];
    } w[10];
    struct leaf l[2];

    (void)arg;
    for (int i = 0; i < 10; i++) leaves_init(&w[i].leaf, 1);
    CHECK_EQ(fj_invoke_array(w, 10, sizeof w[0]), FJ_OK);
    for (int i = 0; i < 10; i++) leaves_check(&w[i].leaf, 1);
    leaves_init(l, 2);
    CHECK_EQ(fj_invoke_array(l, 2, 8), FJ_EINVAL);
    CHECK_EQ(fj_invoke_array(l, 2, 0), FJ_EINVAL);
    CHECK_EQ(atomic_load(&l[0].runs), 0);
}

FJ_TEST(invoke_array_steps_by_its_stride, 10)
{
    everywhere(strides);
}

static void first_error(void *arg)
{
    struct leaf l[9];

    (void)arg;
    for (int kind = 1; kind <= 2; kind++)
        for (int first = 0; first < 9; first++)
            for (int second = first; second < 9; second++) {
                leaves_init(l, 9);
                l[second].code = 200 + second;
                l[first].code = 100 + first;
                l[first].sleep_us = (first + second) % 4 == 0 ? 200 : 0;
                CHECK_EQ(invoke(kind, l, 9), 100 + first);
                leaves_check(l, 9);
            }
    for (int i = 0; i < 4; i++) {
        leaves_init(l, 2);
        l[0].code = i & 1 ? 1 : 0;
        l[1].code = i & 2 ? 2 : 0;
        CHECK_EQ(invoke(0, l, 2), l[0].code != 0 ? 1 : l[1].code);
        leaves_check(l, 2);
    }
}

FJ_TEST(invoke_all_returns_the_first_error_in_order, 30)
{
    everywhere(first_error);
}

/* The first task fails at once. The others write to their own memory later, so the frame that holds
 * them must not be left before all of them have ended. */
static __attribute__((noinline)) void failing_frame(int kind)
{
    struct leaf l[4];

    leaves_init(l, 4);
    l[0].code = 7;
    for (int i = 1; i < 4; i++) l[i].sleep_us = i * 200;
    CHECK_EQ(invoke(kind, l, 4), 7);
    for (int i = 0; i < (kind == 0 ? 2 : 4); i++) CHECK_EQ(l[i].written, 1);
    memset(l, 0xee, sizeof l);
}

static __attribute__((noinline)) void check_frame(void)
{
    volatile unsigned char frame[2048];

    for (size_t i = 0; i < sizeof frame; i++) frame[i] = 0x77;
    fjt_sleep_us(1000);
    for (size_t i = 0; i < sizeof frame; i++) CHECK_EQ(frame[i], 0x77);
}

static void failing_frames(void *arg)
{
    (void)arg;
    for (int round = 0; round < 3; round++)
        for (int kind = 0; kind <= 2; kind++) {
            failing_frame(kind);
            check_frame();
        }
}

FJ_TEST(invoke_all_waits_for_all_after_an_error, 30)
{
    everywhere(failing_frames);
}

/* ---- Nested --------------------------------------------------------------------------------- */

struct node {
    fj_task task;
    int depth, kind;
    long result;
};

static int node_run(fj_task *t)
{
    struct node *n = (struct node *)t;
    struct node child[3];
    fj_task *list[3];
    int err;

    n->result = 1;
    if (n->depth == 0) return FJ_OK;
    for (int i = 0; i < 3; i++) {
        child[i] = (struct node){.depth = n->depth - 1, .kind = (n->kind + i) % 3};
        fj_task_init(&child[i].task, node_run);
        list[i] = &child[i].task;
    }
    if (n->kind == 0) {
        err = fj_invoke_both(list[0], list[1]);
        child[2].result = 0;
    } else if (n->kind == 1)
        err = fj_invoke_all(list, 3);
    else
        err = fj_invoke_array(child, 3, sizeof child[0]);
    if (err != FJ_OK) return err;
    for (int i = 0; i < 3; i++) n->result += child[i].result;
    return FJ_OK;
}

static long nodes(int depth, int kind)
{
    long sum = 1;

    for (int i = 0; depth > 0 && i < (kind == 0 ? 2 : 3); i++)
        sum += nodes(depth - 1, (kind + i) % 3);
    return sum;
}

static void nested(void *arg)
{
    struct node root[2];

    (void)arg;
    for (int i = 0; i < 2; i++) {
        root[i] = (struct node){.depth = 8, .kind = i + 1};
        fj_task_init(&root[i].task, node_run);
    }
    CHECK_EQ(fj_invoke_both(&root[0].task, &root[1].task), FJ_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(root[i].result, nodes(8, i + 1));
}

FJ_TEST(invoke_all_nests, 60)
{
    everywhere(nested);
}

/* A joined task may be passed again without being initialised again. */
static void again(void *arg)
{
    struct leaf l[20];

    (void)arg;
    leaves_init(l, 20);
    for (int round = 1; round <= 200; round++) {
        CHECK_EQ(invoke(1 + round % 2, l, 20), FJ_OK);
        for (int i = 0; i < 20; i++) CHECK_EQ(atomic_load(&l[i].runs), round);
    }
}

FJ_TEST(invoke_all_takes_the_same_tasks_again, 20)
{
    everywhere(again);
}
