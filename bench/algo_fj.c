/* SPDX-License-Identifier: MIT */
/*
 * algo_fj.c - the algorithms of this library
 *
 * The program creates a pool with exactly the requested number of workers. A task of that pool
 * calls the kernel, so the caller is one of the workers. `for-tiny` is the exception: a thread
 * outside the pool makes its calls. Its variant `for` uses the pool above, and the caller sleeps
 * during each call. Its variant `common` uses the common pool, where the caller works too and
 * counts as one of the workers.
 */
#define _POSIX_C_SOURCE 200809L

#include "algo.h"

#include <forkjoin/algo.h>
#include <forkjoin/sort.h>

static fj_pool *pool;
static fj_algo_options here; /* selects that pool */

static void must(int code)
{
    if (code == FJ_OK) return;
    fprintf(stderr, "forkjoin: %s: %s\n", fj_error_name(code), fj_strerror(code));
    exit(1);
}

static void start(int workers)
{
    fj_pool_options o = {0};

    char others[16];

    snprintf(others, sizeof others, "%d", workers - 1);
    setenv("FORKJOIN_PARALLELISM", others, 1);
    o.parallelism = workers;
    must(fj_pool_create(&pool, &o));
    here.pool = pool;
}

static void stop(void)
{
    must(fj_pool_destroy(pool));
}

struct call {
    fj_task task;
    algo_kernel *run;
    const algo *a;
    uint64_t result;
};

static int call_run(fj_task *t)
{
    struct call *c = (struct call *)t;
    c->result = c->run(c->a);
    return FJ_OK;
}

static uint64_t call(algo_kernel *run, const algo *a)
{
    struct call c = {.run = run, .a = a};

    if (algo_outside(a)) return run(a);
    fj_task_init(&c.task, call_run);
    must(fj_invoke_mode(pool, &c.task, FJ_CALLER_BLOCKS));
    return c.result;
}

/* ---- loops ---- */

static int even_body(size_t begin, size_t end, void *arg)
{
    uint32_t *out = arg;
    for (size_t i = begin; i < end; i++) out[i] = algo_even(i);
    return FJ_OK;
}

static uint64_t run_even(const algo *a)
{
    must(fj_for(0, a->n, even_body, a->out, &here));
    return 0;
}

static int triangle_body(size_t begin, size_t end, void *arg)
{
    uint32_t *out = arg;
    for (size_t i = begin; i < end; i++) out[i] = algo_triangle(i);
    return FJ_OK;
}

static uint64_t run_triangle(const algo *a)
{
    must(fj_for(0, a->n, triangle_body, a->out, &here));
    return 0;
}

static int heavy_body(size_t begin, size_t end, void *arg)
{
    const algo *a = arg;
    uint32_t *out = a->out;
    for (size_t i = begin; i < end; i++) out[i] = algo_heavy(i, a->n);
    return FJ_OK;
}

static uint64_t run_heavy(const algo *a)
{
    must(fj_for(0, a->n, heavy_body, (void *)(uintptr_t)a, &here));
    return 0;
}

static int tiny_body(size_t begin, size_t end, void *arg)
{
    for (size_t i = begin; i < end; i++) algo_tiny(arg, i);
    return FJ_OK;
}

static uint64_t run_tiny(const algo *a)
{
    for (size_t k = 0; k < a->n; k++) must(fj_for(0, ALGO_TINY_LOOP, tiny_body, a->out, &here));
    return 0;
}

static uint64_t run_tiny_common(const algo *a)
{
    for (size_t k = 0; k < a->n; k++) must(fj_for(0, ALGO_TINY_LOOP, tiny_body, a->out, NULL));
    return 0;
}

static int region_body(size_t begin, size_t end, void *arg)
{
    for (size_t i = begin; i < end; i++) algo_region(arg, i);
    return FJ_OK;
}

static int region_heavy_body(size_t begin, size_t end, void *arg)
{
    for (size_t i = begin; i < end; i++) algo_region_heavy(arg, i);
    return FJ_OK;
}

/* All options are the default, so every loop chooses the size of its chunks itself. */
static uint64_t run_region(const algo *a)
{
    fj_for_fn *body = a->c->shape == ALGO_REGION_HEAVY ? region_heavy_body : region_body;
    for (size_t k = 0; k < a->loops; k++) must(fj_for(0, a->n, body, a->out, NULL));
    return 0;
}

static int grain1_body(size_t begin, size_t end, void *arg)
{
    uint32_t *out = arg;
    for (size_t i = begin; i < end; i++) out[i] = algo_grain1(i);
    return FJ_OK;
}

static uint64_t run_grain1(const algo *a)
{
    must(fj_for(0, a->n, grain1_body, a->out, &(fj_algo_options){.pool = pool, .grain = 1}));
    return 0;
}

/* Halves the range down to one element, with a fork for each half: the most expensive loop. */
FJ_VOID_TASK(tree, uint32_t *, out, size_t, lo, size_t, hi)
{
    if (FJ_LEAF(hi - lo == 1)) {
        out[lo] = algo_grain1(lo);
        return;
    }
    tree_task right;
    size_t mid = lo + (hi - lo) / 2;
    tree_fork(FJ, &right, out, mid, hi);
    tree_call(FJ, out, lo, mid);
    tree_join(FJ, &right);
}

static uint64_t run_tree(const algo *a)
{
    must(tree_invoke(pool, a->out, 0, a->n));
    return 0;
}

static int copy_body(size_t begin, size_t end, void *arg)
{
    const algo *a = arg;
    memcpy((int64_t *)a->out + begin, (const int64_t *)a->in + begin, (end - begin) * 8);
    return FJ_OK;
}

static uint64_t run_copy(const algo *a)
{
    must(fj_for(0, a->n, copy_body, (void *)(uintptr_t)a, &here));
    return 0;
}

/* ---- sums and scans ---- */

static int sum_fold(size_t begin, size_t end, void *acc, void *arg)
{
    *(double *)acc += algo_sum(arg, begin, end);
    return FJ_OK;
}

static int sum_combine(void *left, const void *right, void *arg)
{
    (void)arg;
    *(double *)left += *(const double *)right;
    return FJ_OK;
}

static uint64_t run_sum(const algo *a)
{
    const double zero = 0;
    must(fj_reduce(0, a->n, sum_fold, sum_combine, &zero, sizeof zero, a->in, a->out, &here));
    return 0;
}

static uint64_t run_sum_fixed(const algo *a)
{
    const double zero = 0;
    must(fj_reduce_deterministic(0, a->n, sum_fold, sum_combine, &zero, sizeof zero, a->in, a->out,
                                 &here));
    return 0;
}

static uint64_t run_scan_i64(const algo *a)
{
    must(fj_scan_i64(a->in, a->out, a->n, FJ_SCAN_INCLUSIVE, &here));
    return 0;
}

static uint64_t run_scan_f64(const algo *a)
{
    must(fj_scan_f64(a->in, a->out, a->n, FJ_SCAN_INCLUSIVE, &here));
    return 0;
}

/* ---- filter, find, histogram ---- */

static int kept(const void *x, void *arg)
{
    (void)arg;
    return (int)algo_kept(*(const uint32_t *)x);
}

static int keep(size_t begin, size_t end, unsigned char *keep, void *arg)
{
    const uint32_t *in = arg;
    for (size_t i = begin; i < end; i++) keep[i - begin] = (unsigned char)algo_kept(in[i]);
    return FJ_OK;
}

static uint64_t run_filter(const algo *a)
{
    size_t count = 0;
    must(fj_filter(a->in, a->n, sizeof(uint32_t), a->out, kept, NULL, &count, &here));
    return count;
}

static uint64_t run_filter_by(const algo *a)
{
    size_t count = 0;
    must(fj_filter_chunks(a->in, a->n, sizeof(uint32_t), a->out, keep, a->in, &count, &here));
    return count;
}

static int find_body(size_t begin, size_t end, size_t *at, void *arg)
{
    *at = algo_find(arg, begin, end);
    return FJ_OK;
}

static uint64_t run_find(const algo *a)
{
    size_t at = 0;
    must(fj_find(0, a->n, find_body, a->in, &at, &here));
    return at;
}

static uint64_t run_find_any(const algo *a)
{
    size_t at = 0;
    must(fj_find_any(0, a->n, find_body, a->in, &at, &here));
    return at;
}

static uint64_t run_count_u8(const algo *a)
{
    must(fj_histogram_u8(a->in, a->n, a->out, 256, &here));
    return 0;
}

static uint64_t run_count_u32(const algo *a)
{
    must(fj_histogram_u32(a->in, a->n, a->out, ALGO_BINS, &here));
    return 0;
}

/* ---- sorts ---- */

typedef const char *text;

#define NUMBER_LESS(a, b) ((a) < (b))
#define KEY_LESS(a, b) ((a).key < (b).key)
#define TEXT_LESS(a, b) (strcmp(a, b) < 0)

FJ_SORT(sort_u32, uint32_t, NUMBER_LESS);
FJ_STABLE_SORT(stable_u32, uint32_t, NUMBER_LESS);
FJ_MERGE(merge_u32, uint32_t, NUMBER_LESS);
FJ_SORT(sort_pairs, algo_pair, KEY_LESS);
FJ_SORT(sort_texts, text, TEXT_LESS);
FJ_STABLE_SORT(stable_kv64, algo_kv64, KEY_LESS);

static int compare_u32(const void *a, const void *b, void *arg)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    (void)arg;
    return x < y ? -1 : x > y;
}

static int compare_pair(const void *a, const void *b, void *arg)
{
    (void)arg;
    return algo_pair_compare(a, b);
}

static int compare_text(const void *a, const void *b, void *arg)
{
    (void)arg;
    return algo_text_compare(a, b);
}

static uint64_t run_sort_digits(const algo *a)
{
    must(fj_sort_u32(a->out, a->n, &here));
    return 0;
}

static uint64_t run_sort_u32(const algo *a)
{
    must(sort_u32(a->out, a->n, &here));
    return 0;
}

static uint64_t run_stable_u32(const algo *a)
{
    must(stable_u32(a->out, a->n, &here));
    return 0;
}

static uint64_t run_sort_compare(const algo *a)
{
    must(fj_sort(a->out, a->n, sizeof(uint32_t), compare_u32, NULL, &here));
    return 0;
}

static uint64_t run_sort_pairs(const algo *a)
{
    must(sort_pairs(a->out, a->n, &here));
    return 0;
}

static uint64_t run_qsort_pairs(const algo *a)
{
    fj_qsort(a->out, a->n, sizeof(algo_pair), compare_pair, NULL);
    return 0;
}

static uint64_t run_sort_texts(const algo *a)
{
    must(sort_texts(a->out, a->n, &here));
    return 0;
}

static uint64_t run_qsort_texts(const algo *a)
{
    fj_qsort(a->out, a->n, sizeof(char *), compare_text, NULL);
    return 0;
}

static uint64_t run_sort_kv32(const algo *a)
{
    must(fj_sort_kv32((fj_kv32 *)a->out, a->n, &here));
    return 0;
}

static uint64_t run_sort_kv64(const algo *a)
{
    must(fj_sort_kv64((fj_kv64 *)a->out, a->n, &here));
    return 0;
}

static uint64_t run_stable_kv64(const algo *a)
{
    must(stable_kv64(a->out, a->n, &here));
    return 0;
}

static uint64_t run_merge(const algo *a)
{
    const uint32_t *x = a->in;
    size_t half = a->n / 2;
    must(fj_merge(x, half, x + half, half, sizeof *x, a->out, compare_u32, NULL, &here));
    return 0;
}

static uint64_t run_typed_merge(const algo *a)
{
    uint32_t *x = a->in;
    size_t half = a->n / 2;
    must(merge_u32(x, half, x + half, half, a->out, &here));
    return 0;
}

/* ---- pipeline ---- */

struct pipe {
    const algo *a;
    size_t made, done;
};

static int pipe_first(void **item, void *arg)
{
    struct pipe *p = arg;
    if (p->made < p->a->n) *item = (void *)(uintptr_t)++p->made;
    return FJ_OK;
}

static int pipe_second(void **item, void *arg)
{
    (void)arg;
    uintptr_t x = algo_item((size_t)((uintptr_t)*item - 1));
    *item = (void *)(x | (uintptr_t)1 << 32); /* never NULL */
    return FJ_OK;
}

static int pipe_third(void **item, void *arg)
{
    struct pipe *p = arg;
    ((uint32_t *)p->a->out)[p->done++] = (uint32_t)(uintptr_t)*item;
    return FJ_OK;
}

static uint64_t run_pipe(const algo *a)
{
    struct pipe p = {.a = a};
    const fj_stage stages[] = {
        {pipe_first, &p, FJ_STAGE_ORDERED},
        {pipe_second, NULL, FJ_STAGE_PARALLEL},
        {pipe_third, &p, FJ_STAGE_ORDERED},
    };
    must(fj_pipeline(stages, 3, ALGO_TOKENS, NULL, &here));
    return 0;
}

static const algo_entry entries[] = {
    {"for-even", "for", run_even},
    {"for-triangle", "for", run_triangle},
    {"for-heavy", "for", run_heavy},
    {"for-grain1", "for", run_grain1},
    {"for-grain1", "forks", run_tree},
    {"for-tiny*", "for", run_tiny},
    {"for-tiny", "common", run_tiny_common},
    {"region-*", "for", run_region},
    {"sum", "reduce", run_sum},
    {"sum-fixed", "reduce_fixed", run_sum_fixed},
    {"scan-i64", "scan_i64", run_scan_i64},
    {"scan-f64", "scan_f64", run_scan_f64},
    {"copy", "for", run_copy},
    {"filter", "filter", run_filter},
    {"filter", "filter_by", run_filter_by},
    {"find", "find", run_find},
    {"find", "find_any", run_find_any},
    {"histogram-u8", "histogram_u8", run_count_u8},
    {"histogram-u32", "histogram_u32", run_count_u32},
    {"sort-struct", "qsort", run_qsort_pairs},
    {"sort-struct", "FJ_SORT", run_sort_pairs},
    {"sort-strings", "qsort", run_qsort_texts},
    {"sort-strings", "FJ_SORT", run_sort_texts},
    {"sort-kv32", "sort_kv32", run_sort_kv32},
    {"sort-kv64", "sort_kv64", run_sort_kv64},
    {"sort-kv64", "FJ_STABLE_SORT", run_stable_kv64},
    {"sort-u32*", "sort_u32", run_sort_digits},
    {"sort-u32*", "FJ_SORT", run_sort_u32},
    {"sort-u32*", "FJ_STABLE_SORT", run_stable_u32},
    {"sort-u32*", "sort", run_sort_compare},
    {"merge", "merge", run_merge},
    {"merge", "FJ_MERGE", run_typed_merge},
    {"pipeline", "pipeline", run_pipe},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    static const algo_runtime fj = {"fj", entries, start, stop, call};
    return algo_main(argc, argv, &fj);
}
