/* SPDX-License-Identifier: MIT */
/*
 * fj_group.h - the workloads with groups and work lists, for fj.c
 */
#ifndef BENCH_FJ_GROUP_H
#define BENCH_FJ_GROUP_H

#include <forkjoin/for_each.h>
#include <forkjoin/group.h>

#include "fj_pool.h"
#include "tally.h"

/* Runs fn(c) as a task of the pool and returns its result. */
struct group_root {
    fj_task task;
    double (*fn)(const bench_case *c);
    const bench_case *c;
    double answer;
};

static int group_root_run(fj_task *t)
{
    struct group_root *r = (struct group_root *)t;

    r->answer = r->fn(r->c);
    return FJ_OK;
}

static double in_pool(double (*fn)(const bench_case *c), const bench_case *c)
{
    struct group_root r = {.fn = fn, .c = c};

    fj_task_init(&r.task, group_root_run);
    must(fj_invoke(pool, &r.task));
    return r.answer;
}

/* The group of the runs of group-fan and group-fib. It keeps the memory of its children for the next
 * run, as the other runtimes keep the memory of their tasks. */
static fj_group *group_open(void)
{
    static fj_group g;
    static bool made;

    must(made ? fj_group_reset(&g) : fj_group_init(&g, NULL));
    made = true;
    return &g;
}

/* ---- group-fan: one task adds all children ---- */

static uint64_t *group_field;

static int group_leaf(fj_group *g, void *arg)
{
    uint64_t *at = arg;

    (void)g;
    *at += (uint64_t)(at - group_field);
    return FJ_OK;
}

static double group_fan(const bench_case *c)
{
    uint64_t total = 0;
    fj_group *g = group_open();

    group_field = (uint64_t *)bench_array(c->size * sizeof *group_field);
    for (uint32_t i = 0; i < c->size; i++) {
        group_field[i] = 0;
        must(fj_group_call(g, group_leaf, &group_field[i]));
    }
    must(fj_group_wait(g));
    for (uint32_t i = c->size; i-- > 0;) total += group_field[i];
    return (double)total;
}

static double run_group_fan(const bench_case *c)
{
    return in_pool(group_fan, c);
}

/* ---- group-fib: the calls are children of one group, and the leaves add up the result ---- */

static int group_fib_call(fj_group *g, void *arg)
{
    uintptr_t n = (uintptr_t)arg;

    if (n < 2) {
        bench_tally_add(n);
        return FJ_OK;
    }
    must(fj_group_call(g, group_fib_call, (void *)(n - 1)));
    must(fj_group_call(g, group_fib_call, (void *)(n - 2)));
    return FJ_OK;
}

static double group_fib(const bench_case *c)
{
    fj_group *g = group_open();

    must(fj_group_call(g, group_fib_call, (void *)(uintptr_t)c->size));
    must(fj_group_wait(g));
    return (double)bench_tally_take();
}

static double run_group_fib(const bench_case *c)
{
    return in_pool(group_fib, c);
}

/* ---- each-uts: a work list of the nodes of the tree ---- */

static bench_tree each_tree;

static int each_node(void *item, fj_feeder *feeder, void *arg)
{
    bench_node node = *(bench_node *)item;
    uint32_t kids = bench_uts_kids(&each_tree, node);

    (void)arg;
    bench_tally_add(1);
    for (uint32_t i = 0; i < kids; i++) {
        bench_node kid = bench_uts_child(node, i);
        must(fj_for_each_add(feeder, &kid));
    }
    return FJ_OK;
}

static double each_uts(const bench_case *c)
{
    bench_tree_init(&each_tree, c);
    must(fj_for_each(&each_tree.root, 1, sizeof each_tree.root, each_node, NULL, NULL));
    return (double)bench_tally_take();
}

static double run_each_uts(const bench_case *c)
{
    return in_pool(each_uts, c);
}

/* ---- each-array: a work list to which nothing is added ---- */

static int each_item(void *item, fj_feeder *feeder, void *arg)
{
    uint64_t *at = item;

    (void)feeder;
    *at = (uint64_t)(at - (uint64_t *)arg);
    return FJ_OK;
}

static double each_array(const bench_case *c)
{
    uint64_t *field = (uint64_t *)bench_array(c->size * sizeof *field), total = 0;

    must(fj_for_each(field, c->size, sizeof *field, each_item, field, NULL));
    for (uint32_t i = c->size; i-- > 0;) total += field[i];
    return (double)total;
}

static double run_each_array(const bench_case *c)
{
    return in_pool(each_array, c);
}

#endif
