/* SPDX-License-Identifier: MIT */
/*
 * matrix.c - a product of two matrices; a task divides its block of the result into quarters
 *
 * The tasks are plain tasks: an array of four structs, each with an fj_task as its first member, is
 * run by fj_invoke_array(). The terms of every element are added in the same order in both runs, so
 * the results are equal bit by bit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

enum { LEAF = 64 };

static struct {
    int n; /* a power of two */
    double *a, *b, *serial, *parallel;
} matrix;

/* A square block of the result, with its first row, its first column and its size. */
struct part {
    fj_task task;
    double *c;
    int row, column, size;
};

static void multiply_leaf(const struct part *p)
{
    size_t n = (size_t)matrix.n;

    for (int i = p->row; i < p->row + LEAF; i++) {
        double sum[LEAF] = {0};
        for (size_t k = 0; k < n; k++) {
            double x = matrix.a[(size_t)i * n + k];
            const double *b = matrix.b + k * n + (size_t)p->column;
            for (int j = 0; j < LEAF; j++) sum[j] += x * b[j];
        }
        memcpy(p->c + (size_t)i * n + (size_t)p->column, sum, sizeof sum);
    }
    demo_step(1);
}

static void split(const struct part *p, fj_task_fn *fn, struct part quarter[4])
{
    int half = p->size / 2;

    for (int q = 0; q < 4; q++) {
        quarter[q].c = p->c;
        quarter[q].row = p->row + (q / 2) * half;
        quarter[q].column = p->column + (q % 2) * half;
        quarter[q].size = half;
        fj_task_init(&quarter[q].task, fn);
    }
}

static int multiply(fj_task *t)
{
    struct part *p = (struct part *)t, quarter[4];

    if (p->size == LEAF) {
        multiply_leaf(p);
        return FJ_OK;
    }
    split(p, multiply, quarter);
    return fj_invoke_array(quarter, 4, sizeof quarter[0]);
}

static void multiply_serial(struct part *p)
{
    struct part quarter[4];

    if (p->size == LEAF) {
        multiply_leaf(p);
        return;
    }
    split(p, NULL, quarter);
    for (int q = 0; q < 4; q++) multiply_serial(&quarter[q]);
}

static double *make_matrix(int seed)
{
    size_t n = (size_t)matrix.n * (size_t)matrix.n;
    double *m = demo_alloc(n, sizeof *m);

    for (size_t i = 0; i < n; i++) m[i] = (double)((i * 7919 + (size_t)seed) % 1013) / 1013.0;
    return m;
}

static uint64_t prepare(const demo_options *o, char *what, size_t cap)
{
    matrix.n = o->quick ? 512 : 1024;
    matrix.a = make_matrix(1);
    matrix.b = make_matrix(2);
    matrix.serial = make_matrix(3);
    matrix.parallel = make_matrix(4);
    snprintf(what, cap, "%d x %d", matrix.n, matrix.n);
    return (uint64_t)(matrix.n / LEAF) * (uint64_t)(matrix.n / LEAF);
}

static void run_serial(void)
{
    struct part all = {.c = matrix.serial, .size = matrix.n};
    multiply_serial(&all);
}

static int run_parallel(void)
{
    struct part all = {.c = matrix.parallel, .size = matrix.n};
    fj_task_init(&all.task, multiply);
    return fj_invoke(NULL, &all.task);
}

static bool finish(const demo_options *o, char *note, size_t cap)
{
    size_t n = (size_t)matrix.n * (size_t)matrix.n;
    bool equal = memcmp(matrix.serial, matrix.parallel, n * sizeof(double)) == 0;

    (void)o, (void)note, (void)cap;
    free(matrix.a);
    free(matrix.b);
    free(matrix.serial);
    free(matrix.parallel);
    return equal;
}

const demo demo_matrix = {"matrix product", prepare, run_serial, run_parallel, finish};
