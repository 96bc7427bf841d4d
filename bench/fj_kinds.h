/* SPDX-License-Identifier: MIT */
/*
 * fj_kinds.h - the workloads whose tasks are futures or completers, for fj.c
 */
#ifndef BENCH_FJ_KINDS_H
#define BENCH_FJ_KINDS_H

#include "fj_pool.h"

/* ---- fib with futures; each future is a local variable of the forking function ---- */

struct fib_future {
    fj_future future;
    unsigned n;
    uint64_t result;
};

static int fib_future_run(fj_task *t);

static uint64_t fib_future_fork(unsigned n);

/* As in fib() of fj.c, a leaf needs no function call. */
static inline uint64_t fib_future(unsigned n)
{
    return n < 2 ? n : fib_future_fork(n);
}

static uint64_t fib_future_fork(unsigned n)
{
    struct fib_future a;

    fj_future_init(&a.future, fib_future_run);
    a.n = n - 1;
    must(fj_future_fork(&a.future));
    uint64_t y = fib_future(n - 2);
    must(fj_future_join(&a.future));
    return a.result + y;
}

static int fib_future_run(fj_task *t)
{
    struct fib_future *f = (struct fib_future *)t;

    f->result = fib_future(f->n);
    return FJ_OK;
}

static double run_fib_future(const bench_case *c)
{
    struct fib_future root = {.n = c->size};

    fj_future_init(&root.future, fib_future_run);
    must(fj_future_submit(pool, &root.future));
    must(fj_future_join(&root.future));
    return (double)root.result;
}

/* ---- Memory for completers ---- */

/* Each thread keeps the pairs of tasks that it has freed, and reuses them. A real program that
 * creates millions of completers would do the same. */
struct spare_pair {
    struct spare_pair *next;
};

static _Thread_local struct spare_pair *spare_pairs;

static inline void *pair_take(size_t bytes)
{
    struct spare_pair *p = spare_pairs;

    if (p == NULL) return malloc(bytes);
    spare_pairs = p->next;
    return p;
}

static inline void pair_give(void *pair)
{
    struct spare_pair *p = pair;

    p->next = spare_pairs;
    spare_pairs = p;
}

/* ---- fib with completers: a task forks its left child and runs its right child itself ---- */

struct fib_completer {
    fj_completer c;
    unsigned n;
    uint64_t result;
    struct fib_completer *children;
};

static int fib_completer_done(fj_completer *c, fj_completer *caller)
{
    struct fib_completer *f = (struct fib_completer *)c;

    (void)caller;
    if (f->children == NULL) return FJ_OK;
    f->result = f->children[0].result + f->children[1].result;
    pair_give(f->children);
    return FJ_OK;
}

static int fib_completer_run(fj_task *t);

static inline void fib_child(struct fib_completer *c, struct fib_completer *parent, unsigned n)
{
    fj_completer_init(&c->c, &parent->c, 0, fib_completer_run, fib_completer_done, NULL);
    c->n = n;
    c->children = NULL;
}

static int fib_completer_run(fj_task *t)
{
    struct fib_completer *f = (struct fib_completer *)t;

    while (f->n >= 2) {
        struct fib_completer *two = pair_take(2 * sizeof *two);
        if (two == NULL) return 1;
        fib_child(&two[0], f, f->n - 1);
        fib_child(&two[1], f, f->n - 2);
        f->children = two;
        fj_completer_set_pending(&f->c, 1);
        must(fj_completer_fork(&two[0].c));
        f = &two[1];
    }
    f->result = f->n;
    fj_completer_try_complete(&f->c);
    return FJ_OK;
}

static double run_fib_completer(const bench_case *c)
{
    struct fib_completer root = {.n = c->size};

    fj_completer_init(&root.c, NULL, 0, fib_completer_run, fib_completer_done, NULL);
    must(fj_completer_submit(pool, &root.c));
    must(fj_completer_join(&root.c));
    return (double)root.result;
}

/* ---- the sum of an array with completers; a leaf has at most 64 numbers ---- */

enum { SUM_LEAF = 64 };

struct sum_completer {
    fj_completer c;
    const int *values;
    size_t n;
    uint64_t result;
    struct sum_completer *children;
};

static int sum_completer_done(fj_completer *c, fj_completer *caller)
{
    struct sum_completer *s = (struct sum_completer *)c;

    (void)caller;
    if (s->children == NULL) return FJ_OK;
    s->result = s->children[0].result + s->children[1].result;
    pair_give(s->children);
    return FJ_OK;
}

static int sum_completer_run(fj_task *t);

static inline void sum_child(struct sum_completer *c, struct sum_completer *parent, size_t from,
                             size_t n)
{
    fj_completer_init(&c->c, &parent->c, 0, sum_completer_run, sum_completer_done, NULL);
    c->values = parent->values + from;
    c->n = n;
    c->children = NULL;
}

static int sum_completer_run(fj_task *t)
{
    struct sum_completer *s = (struct sum_completer *)t;

    while (s->n > SUM_LEAF) {
        struct sum_completer *two = pair_take(2 * sizeof *two);
        size_t half = s->n / 2;
        if (two == NULL) return 1;
        sum_child(&two[0], s, 0, half);
        sum_child(&two[1], s, half, s->n - half);
        s->children = two;
        fj_completer_set_pending(&s->c, 1);
        must(fj_completer_fork(&two[0].c));
        s = &two[1];
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n; i++) sum += (uint64_t)s->values[i];
    s->result = sum;
    fj_completer_try_complete(&s->c);
    return FJ_OK;
}

/* Returns the array. The first call of a size fills it. With --quick that is the warm-up. At full
 * size it is the first timed run, which is slower for that reason; only the best run counts. */
static const int *sum_values(size_t n)
{
    static int *values;
    static size_t room;

    if (room >= n) return values;
    free(values);
    values = malloc(n * sizeof *values);
    if (values == NULL) exit(1);
    room = n;
    for (size_t i = 0; i < n; i++) values[i] = (int)(i % 1000);
    return values;
}

static double run_sum_completer(const bench_case *c)
{
    size_t n = (size_t)c->size * 1024;
    const int *values = sum_values(n);

    struct sum_completer root = {.values = values, .n = n};
    fj_completer_init(&root.c, NULL, 0, sum_completer_run, sum_completer_done, NULL);
    must(fj_completer_submit(pool, &root.c));
    must(fj_completer_join(&root.c));
    return (double)root.result;
}

#endif /* BENCH_FJ_KINDS_H */
