/* SPDX-License-Identifier: MIT */
/*
 * 13_spmv.c - a sparse matrix times a vector: a loop whose iterations differ widely in cost
 *
 * Some rows have few entries, and others have thousands. If each worker got the same number of
 * rows, most workers would wait for the slowest one. With fj_for(), a worker without work steals
 * half of another worker's remaining rows, and a chunk has as many rows as a worker multiplies in
 * about 16 to 64 microseconds. The program need not choose a chunk size.
 */
#include <forkjoin/algo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The entries are stored row by row: row r has the entries first[r] to first[r + 1] - 1. */
struct matrix {
    size_t rows, columns;
    size_t *first;
    uint32_t *column;
    float *value;
};

struct product {
    const struct matrix *a;
    const float *x;
    float *y;
};

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int multiply_rows(size_t begin, size_t end, void *arg)
{
    const struct product *p = arg;
    const struct matrix *a = p->a;

    for (size_t r = begin; r < end; r++) {
        float sum = 0;
        for (size_t i = a->first[r]; i < a->first[r + 1]; i++)
            sum += a->value[i] * p->x[a->column[i]];
        p->y[r] = sum;
    }
    return FJ_OK;
}

static int multiply_serial(struct product *p)
{
    return multiply_rows(0, p->a->rows, p);
}

static int multiply_parallel(struct product *p)
{
    return fj_for(0, p->a->rows, multiply_rows, p, NULL);
}

/* Returns the best time of `runs` runs, or -1 after an error. */
static double best_of(int runs, int (*multiply)(struct product *p), struct product *p)
{
    double best = 1e9;

    for (int i = 0; i < runs; i++) {
        double start = seconds();
        int err = multiply(p);
        double took = seconds() - start;
        if (err != FJ_OK) {
            fprintf(stderr, "multiply: %s\n", fj_strerror(err));
            return -1;
        }
        if (took < best) best = took;
    }
    return best;
}

static void *take(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (p == NULL) exit(1);
    return p;
}

static uint64_t next(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 32;
}

/* Returns 1 to 7 entries for half of the rows, 1 to 15 for a quarter of them, and so on, at most
 * 16383. */
static size_t row_length(uint64_t *random)
{
    size_t length = 8;

    while (length < 16384 && next(random) % 2 == 0) length *= 2;
    return 1 + next(random) % (length - 1);
}

static void matrix_make(struct matrix *a, size_t rows)
{
    uint64_t random = 2685821657736338717u;

    a->rows = a->columns = rows;
    a->first = take(rows + 1, sizeof *a->first);
    for (size_t r = 0; r < rows; r++) a->first[r + 1] = a->first[r] + row_length(&random);
    a->column = take(a->first[rows], sizeof *a->column);
    a->value = take(a->first[rows], sizeof *a->value);
    for (size_t i = 0; i < a->first[rows]; i++) {
        a->column[i] = (uint32_t)(next(&random) % rows);
        a->value[i] = (float)(next(&random) % 2001) / 1000 - 1;
    }
}

int main(int argc, char **argv)
{
    int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    size_t rows = quick ? 10000 : 300000;
    struct matrix a;

    matrix_make(&a, rows);
    float *x = take(rows, sizeof *x);
    for (size_t i = 0; i < rows; i++) x[i] = (float)(i % 100) / 100;
    struct product one = {&a, x, take(rows, sizeof *x)}, all = {&a, x, take(rows, sizeof *x)};

    double serial = best_of(10, multiply_serial, &one);
    double parallel = best_of(10, multiply_parallel, &all);
    int same = memcmp(one.y, all.y, rows * sizeof *x) == 0;

    printf("%zu rows, %zu entries: serial %.2f ms, parallel %.2f ms, speedup %.2f\n", rows,
           a.first[rows], serial * 1e3, parallel * 1e3, serial / parallel);
    if (!same) fprintf(stderr, "the products differ\n");
    free(one.y);
    free(all.y);
    free(x);
    free(a.first);
    free(a.column);
    free(a.value);
    return same && serial >= 0 && parallel >= 0 ? 0 : 1;
}
