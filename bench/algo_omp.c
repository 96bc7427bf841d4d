/* SPDX-License-Identifier: MIT */
/*
 * algo_omp.c - the algorithms with loops of OpenMP
 *
 * Built with gcc, the program measures libgomp; built with clang, libomp. Each loop is measured
 * with a static and with a dynamic schedule; the dynamic one has the chunk size that is best for
 * the loop. Inside a task only a taskloop is possible. The filter gives each thread one range of
 * the array. The search is a dynamic loop over chunks.
 */
#include "algo.h"

#include <omp.h>

#ifdef __clang__
#define RUNTIME "libomp"
#else
#define RUNTIME "libgomp"
#endif

static void start(int workers)
{
    omp_set_dynamic(0);
    omp_set_num_threads(workers);
}

static uint64_t call(algo_kernel *run, const algo *a)
{
    uint64_t result = 0;

    if (strcmp(a->c->name, "for-tiny-inside") != 0) return run(a);
#pragma omp parallel
#pragma omp single
    result = run(a);
    return result;
}

/* ---- loops ---- */

static uint64_t run_even_static(const algo *a)
{
    uint32_t *out = a->out;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < a->n; i++) out[i] = algo_even(i);
    return 0;
}

static uint64_t run_even_dynamic(const algo *a)
{
    uint32_t *out = a->out;
#pragma omp parallel for schedule(dynamic, 4096)
    for (size_t i = 0; i < a->n; i++) out[i] = algo_even(i);
    return 0;
}

static uint64_t run_triangle_static(const algo *a)
{
    uint32_t *out = a->out;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < a->n; i++) out[i] = algo_triangle(i);
    return 0;
}

static uint64_t run_triangle_dynamic(const algo *a)
{
    uint32_t *out = a->out;
#pragma omp parallel for schedule(dynamic, 16)
    for (size_t i = 0; i < a->n; i++) out[i] = algo_triangle(i);
    return 0;
}

static uint64_t run_heavy_static(const algo *a)
{
    uint32_t *out = a->out;
    size_t n = a->n;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) out[i] = algo_heavy(i, n);
    return 0;
}

static uint64_t run_heavy_dynamic(const algo *a)
{
    uint32_t *out = a->out;
    size_t n = a->n;
#pragma omp parallel for schedule(dynamic, 512)
    for (size_t i = 0; i < n; i++) out[i] = algo_heavy(i, n);
    return 0;
}

static uint64_t run_grain1(const algo *a)
{
    uint32_t *out = a->out;
#pragma omp parallel for schedule(dynamic, 1)
    for (size_t i = 0; i < a->n; i++) out[i] = algo_grain1(i);
    return 0;
}

static uint64_t run_tiny_static(const algo *a)
{
    uint32_t *out = a->out;
    for (size_t k = 0; k < a->n; k++) {
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < ALGO_TINY_LOOP; i++) algo_tiny(out, i);
    }
    return 0;
}

static uint64_t run_tiny_dynamic(const algo *a)
{
    uint32_t *out = a->out;
    for (size_t k = 0; k < a->n; k++) {
#pragma omp parallel for schedule(dynamic, 1)
        for (size_t i = 0; i < ALGO_TINY_LOOP; i++) algo_tiny(out, i);
    }
    return 0;
}

static uint64_t run_tiny_inside(const algo *a)
{
    uint32_t *out = a->out;
    for (size_t k = 0; k < a->n; k++) {
#pragma omp taskloop
        for (size_t i = 0; i < ALGO_TINY_LOOP; i++) algo_tiny(out, i);
    }
    return 0;
}

static void region(uint32_t *out, size_t n)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) algo_region(out, i);
}

static void region_heavy(uint32_t *out, size_t n)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) algo_region_heavy(out, i);
}

static uint64_t run_region(const algo *a)
{
    bool heavy = a->c->shape == ALGO_REGION_HEAVY;
    for (size_t k = 0; k < a->loops; k++) (heavy ? region_heavy : region)(a->out, a->n);
    return 0;
}

/* ---- sums and scans ---- */

/* Sums chunks of 4096 elements with algo_sum(), so that both compilers generate the same inner
 * loop. */
static uint64_t run_sum(const algo *a)
{
    enum { PART = 4096 };
    size_t parts = (a->n + PART - 1) / PART;
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (size_t p = 0; p < parts; p++) {
        size_t lo = p * PART, hi = a->n - lo < PART ? a->n : lo + PART;
        sum += algo_sum(a->in, lo, hi);
    }
    *(double *)a->out = sum;
    return 0;
}

/* Not with clang, which puts an array of all elements on the stack. */
#ifndef __clang__

/* gcc warns about an array that it generates itself. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

static uint64_t run_scan_i64(const algo *a)
{
    const int64_t *in = a->in;
    int64_t *out = a->out, sum = 0;
#pragma omp parallel for reduction(inscan, + : sum)
    for (size_t i = 0; i < a->n; i++) {
        sum += in[i];
#pragma omp scan inclusive(sum)
        out[i] = sum;
    }
    return 0;
}

static uint64_t run_scan_f64(const algo *a)
{
    const double *in = a->in;
    double *out = a->out, sum = 0;
#pragma omp parallel for reduction(inscan, + : sum)
    for (size_t i = 0; i < a->n; i++) {
        sum += in[i];
#pragma omp scan inclusive(sum)
        out[i] = sum;
    }
    return 0;
}

#pragma GCC diagnostic pop
#endif

static uint64_t run_copy(const algo *a)
{
    const int64_t *in = a->in;
    int64_t *out = a->out;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < a->n; i++) out[i] = in[i];
    return 0;
}

/* ---- filter, find, histogram ---- */

enum { TEAM_MOST = 64 };

static uint64_t run_filter(const algo *a)
{
    const uint32_t *in = a->in;
    size_t count[TEAM_MOST + 1] = {0}, kept = 0;
#pragma omp parallel
    {
        size_t me = (size_t)omp_get_thread_num(), team = (size_t)omp_get_num_threads();
        size_t lo = a->n / team * me, hi = me + 1 < team ? lo + a->n / team : a->n;
        count[me + 1] = algo_kept_count(in, lo, hi);
#pragma omp barrier
#pragma omp single
        for (size_t i = 1; i <= team; i++) kept = count[i] += count[i - 1];
        algo_keep_part(in, lo, hi, (uint32_t *)a->out + count[me]);
    }
    return kept;
}

/* Searches the chunks from left to right and skips those to the right of a found element. */
static uint64_t run_find(const algo *a)
{
    enum { PART = 16384 };
    size_t found = a->n, parts = (a->n + PART - 1) / PART;
#pragma omp parallel for schedule(dynamic, 1)
    for (size_t p = 0; p < parts; p++) {
        size_t lo = p * PART, hi = a->n - lo < PART ? a->n : lo + PART, known;
#pragma omp atomic read
        known = found;
        if (lo >= known) continue;
        size_t at = algo_find(a->in, lo, hi);
        if (at == hi) continue;
#pragma omp critical
        if (at < found) {
#pragma omp atomic write
            found = at;
        }
    }
    return found;
}

static uint64_t run_count_u8(const algo *a)
{
    const uint8_t *in = a->in;
    uint64_t *out = a->out;
#pragma omp parallel for reduction(+ : out[:256])
    for (size_t i = 0; i < a->n; i++) out[in[i]]++;
    return 0;
}

static uint64_t run_count_u32(const algo *a)
{
    const uint32_t *in = a->in;
    uint64_t *out = a->out;
#pragma omp parallel for reduction(+ : out[:ALGO_BINS])
    for (size_t i = 0; i < a->n; i++) out[in[i]]++;
    return 0;
}

/* ---- pipeline: an ordered loop; the input of an item is the number of the iteration ---- */

static uint64_t run_pipe(const algo *a)
{
    uint32_t *out = a->out;
    size_t done = 0;
#pragma omp parallel for ordered schedule(static, 1)
    for (size_t i = 0; i < a->n; i++) {
        uint32_t x = algo_item(i);
#pragma omp ordered
        out[done++] = x;
    }
    return 0;
}

static const algo_entry entries[] = {
    {"for-even", "static", run_even_static},
    {"for-even", "dynamic", run_even_dynamic},
    {"for-triangle", "static", run_triangle_static},
    {"for-triangle", "dynamic", run_triangle_dynamic},
    {"for-heavy", "static", run_heavy_static},
    {"for-heavy", "dynamic", run_heavy_dynamic},
    {"for-grain1", "dynamic", run_grain1},
    {"for-tiny", "static", run_tiny_static},
    {"for-tiny", "dynamic", run_tiny_dynamic},
    {"for-tiny-inside", "taskloop", run_tiny_inside},
    {"region-*", "static", run_region},
    {"sum", "reduction", run_sum},
#ifndef __clang__
    {"scan-i64", "inscan", run_scan_i64},
    {"scan-f64", "inscan", run_scan_f64},
#endif
    {"copy", "static", run_copy},
    {"filter", "shares", run_filter},
    {"find", "dynamic", run_find},
    {"histogram-u8", "reduction", run_count_u8},
    {"histogram-u32", "reduction", run_count_u32},
    {"pipeline", "ordered", run_pipe},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    static const algo_runtime omp = {RUNTIME, entries, start, NULL, call};
    return algo_main(argc, argv, &omp);
}
