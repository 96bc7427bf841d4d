/* SPDX-License-Identifier: MIT */
/*
 * workload.h - the workloads of all benchmark programs
 *
 * This header has the parameters, the right answers and the task counts of the workloads. It also
 * has the code that is the same for every runtime: the integrand, the test of a queen's place and
 * the unbalanced tree. The program of a runtime adds only the recursion, with that runtime's forks
 * and joins. The header compiles as C11 and as C++17. java/Bench.java repeats its definitions.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- time ---- */

static inline uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void bench_sleep_ns(uint64_t ns)
{
    struct timespec t;
    t.tv_sec = (time_t)(ns / 1000000000u);
    t.tv_nsec = (long)(ns % 1000000000u);
    nanosleep(&t, NULL);
}

/* ---- the workloads ---- */

enum {
    BENCH_OVERSUB_WORKERS = 8, /* workers of oversub; the argument WORKERS is ignored there */
    BENCH_SKYNET_ARITY = 10,
    BENCH_QUEENS_MAX = 16
};

#define BENCH_EPSILON 1e-9 /* integrate stops halving when the error is below this */

/*
 * One workload at one size.
 *
 *   size       fib, oversub, nqueens, dd: n        integrate: upper bound of the interval
 *              uts-geo: depth limit                uts-bin: children of the root
 *              skynet: leaves                      submit-P: tasks of each producer
 *              fan, group-fan, each-array: tasks   idle: milliseconds
 *              group-fib: n                        each-uts: depth limit
 *              wake, trip-PAUSE, first, create: rounds
 *   tasks      number of forks in one run (uts: nodes; idle and all workloads that have rounds: 1);
 *              the divisor of "ns/task". dd: forks with one worker, see dd.h
 *   answer     what a kernel has to return; a double represents all integer answers exactly
 *   tolerance  allowed relative error; 0 if the answer is an integer
 */
typedef struct bench_case {
    const char *workload;
    uint32_t size;
    uint64_t tasks;
    double answer;
    double tolerance;
} bench_case;

/* Returns the workload of that name in full or quick size, or NULL if there is none. */
static inline const bench_case *bench_case_find(const char *workload, bool quick)
{
    /* In pairs: full size, quick size. */
    static const bench_case cases[] = {
        {"fib", 38, 63245985, 39088169, 0},
        {"fib", 30, 1346268, 832040, 0},
        {"integrate", 1300, 11843839, 714025845000.0, 1e-9},
        {"integrate", 300, 1672611, 2025045000.0, 1e-9},
        {"nqueens", 12, 856188, 14200, 0},
        {"nqueens", 10, 35538, 724, 0},
        {"uts-geo", 20, 4659700, 4659700, 0},
        {"uts-geo", 17, 609218, 609218, 0},
        {"uts-bin", 2000, 4870193, 4870193, 0},
        {"uts-bin", 200, 245009, 245009, 0},
        {"skynet", 1000000, 1111110, 499999500000.0, 0},
        {"skynet", 100000, 111110, 4999950000.0, 0},
        {"fan", 1000000, 1000000, 499999500000.0, 0},
        {"fan", 100000, 100000, 4999950000.0, 0},
        {"group-fan", 1000000, 1000000, 499999500000.0, 0},
        {"group-fan", 100000, 100000, 4999950000.0, 0},
        {"group-fib", 32, 7049155, 2178309, 0},
        {"group-fib", 25, 242785, 75025, 0},
        {"each-uts", 20, 4659700, 4659700, 0},
        {"each-uts", 17, 609218, 609218, 0},
        {"each-array", 1000000, 1000000, 499999500000.0, 0},
        {"each-array", 100000, 100000, 4999950000.0, 0},
        {"dd", 8, 2063749, 92, 0},
        {"dd", 7, 307706, 40, 0},
        {"submit-1", 1000000, 1000000, 1000000, 0},
        {"submit-1", 100000, 100000, 100000, 0},
        {"submit-2", 1000000, 2000000, 2000000, 0},
        {"submit-2", 100000, 200000, 200000, 0},
        {"wake", 200, 1, 200, 0},
        {"wake", 50, 1, 50, 0},
        {"trip-200us", 1000, 1, 1000, 0},
        {"trip-200us", 100, 1, 100, 0},
        {"trip-5ms", 300, 1, 300, 0},
        {"trip-5ms", 30, 1, 30, 0},
        {"trip-100ms", 50, 1, 50, 0},
        {"trip-100ms", 10, 1, 10, 0},
        {"first", 200, 1, 200, 0},
        {"first", 20, 1, 20, 0},
        {"create", 200, 1, 200, 0},
        {"create", 20, 1, 20, 0},
        {"idle", 2000, 1, 0, 0},
        {"idle", 1000, 1, 0, 0},
        {"fib-future", 34, 9227464, 5702887, 0},
        {"fib-future", 27, 317810, 196418, 0},
        {"fib-completer", 32, 7049155, 2178309, 0},
        {"fib-completer", 25, 242785, 75025, 0},
        {"sum-completer", 16384, 524287, 8380134720.0, 0},
        {"sum-completer", 1024, 32767, 523641600.0, 0},
        {"oversub", 38, 63245985, 39088169, 0},
        {"oversub", 30, 1346268, 832040, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i += 2)
        if (strcmp(cases[i].workload, workload) == 0) return &cases[i + (quick ? 1 : 0)];
    return NULL;
}

static inline bool bench_case_check(const bench_case *c, double answer)
{
    return fabs(answer - c->answer) <= c->tolerance * c->answer;
}

/* ---- integrate ---- */

static inline double bench_integrand(double x)
{
    return (x * x + 1.0) * x;
}

/* ---- nqueens ---- */

/* col[r] is the column of the queen in row r. */
typedef struct bench_board {
    signed char col[BENCH_QUEENS_MAX];
} bench_board;

static inline bool bench_queen_fits(const bench_board *b, int row, int col)
{
    for (int r = 0; r < row; r++) {
        int d = b->col[r] - col;
        if (d == 0 || d == row - r || d == r - row) return false;
    }
    return true;
}

static inline void bench_queen_place(bench_board *to, const bench_board *from, int row, int col)
{
    *to = *from;
    to->col[row] = (signed char)col;
}

/* ---- fan ---- */

/* Returns memory for an array of the kernel, which keeps it for the next run. The first run of full
 * size is slower, because the memory is new; only the best run counts. */
static inline void *bench_array(size_t bytes)
{
    static void *memory;
    static size_t size;

    if (size >= bytes) return memory;
    free(memory);
    memory = malloc(bytes);
    if (memory == NULL) exit(1);
    size = bytes;
    return memory;
}

/* ---- uts: unbalanced tree search ---- */

/*
 * The tree is not stored. A node consists of a 64-bit hash and a depth. The number of its children
 * is computed from its hash, and the hash of a child from the parent's hash and the child's index.
 *
 *   geometric  the number of children has a geometric distribution; its mean decreases linearly
 *              from 4 at the root to 0 at the depth limit
 *   binomial   the root has many children; any other node has 8 children with a probability of
 *              0.1249, else none, which is 0.9992 on average: most subtrees are small, but some
 *              are very large
 */
enum {
    BENCH_UTS_DEPTH_MAX = 32,
    BENCH_UTS_DRAWS = 256, /* resolution of the geometric distribution */
    BENCH_UTS_BIN_KIDS = 8
};

#define BENCH_UTS_GEO_SEED 12
#define BENCH_UTS_BIN_SEED 21

typedef struct bench_node {
    uint64_t hash;
    uint32_t depth;
} bench_node;

typedef struct bench_tree {
    bool binomial;
    uint32_t root_kids; /* binomial */
    int64_t kids_below; /* binomial: if hash >> 11 is below this, the node has children */
    /* geometric: number of children by depth and hash >> 56; all 0 at the depth limit */
    uint8_t kids[BENCH_UTS_DEPTH_MAX + 1][BENCH_UTS_DRAWS];
    bench_node root;
} bench_tree;

/* The finalizer of splitmix64. */
static inline uint64_t bench_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline bench_node bench_uts_child(bench_node parent, uint32_t index)
{
    bench_node child;
    child.hash = bench_mix(parent.hash + (index + 1) * UINT64_C(0x9e3779b97f4a7c15));
    child.depth = parent.depth + 1;
    return child;
}

static inline uint32_t bench_uts_kids(const bench_tree *t, bench_node node)
{
    if (t->binomial) {
        if (node.depth == 0) return t->root_kids;
        return (int64_t)(node.hash >> 11) < t->kids_below ? BENCH_UTS_BIN_KIDS : 0;
    }
    return t->kids[node.depth][node.hash >> 56];
}

/* Fills in the number of children for each draw, so that a share of ratio^(k+1) of the draws has
 * more than k children. */
static inline void bench_tree_fill(uint8_t *kids, double mean)
{
    double ratio = mean / (1.0 + mean);
    double share = ratio * BENCH_UTS_DRAWS;

    memset(kids, 0, BENCH_UTS_DRAWS);
    for (; share >= 0.5; share *= ratio) {
        int draws = (int)(share + 0.5);
        for (int i = 0; i < draws; i++) kids[i]++;
    }
}

/* Initializes the tree of a uts workload. It takes microseconds, so a kernel may call it in every
 * run. */
static inline void bench_tree_init(bench_tree *t, const bench_case *c)
{
    t->binomial = strcmp(c->workload, "uts-bin") == 0;
    t->root_kids = c->size;
    t->kids_below = (int64_t)(0.1249 * 9007199254740992.0);
    t->root.hash = bench_mix(t->binomial ? BENCH_UTS_BIN_SEED : BENCH_UTS_GEO_SEED);
    t->root.depth = 0;
    if (t->binomial) return;
    for (uint32_t d = 0; d <= c->size; d++)
        bench_tree_fill(t->kids[d], 4.0 * (1.0 - (double)d / c->size));
}

#endif
