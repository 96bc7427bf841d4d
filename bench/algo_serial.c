/* SPDX-License-Identifier: MIT */
/*
 * algo_serial.c - the algorithms in plain C, on one thread
 *
 * The times of all other programs are compared with these. `copy` is the exception: it calls
 * memcpy() on as many threads as the other programs have workers, at most 64, and shows the limit
 * of the machine's memory.
 */
#define _GNU_SOURCE

#include "algo.h"

#include <pthread.h>

/* ---- loops ---- */

static uint64_t run_even(const algo *a)
{
    uint32_t *out = a->out;
    for (size_t i = 0; i < a->n; i++) out[i] = algo_even(i);
    return 0;
}

static uint64_t run_triangle(const algo *a)
{
    uint32_t *out = a->out;
    for (size_t i = 0; i < a->n; i++) out[i] = algo_triangle(i);
    return 0;
}

static uint64_t run_heavy(const algo *a)
{
    uint32_t *out = a->out;
    for (size_t i = 0; i < a->n; i++) out[i] = algo_heavy(i, a->n);
    return 0;
}

/* Makes a call for each element, because the other programs call a body for each element. */
static __attribute__((noinline)) void grain1(uint32_t *out, size_t i)
{
    out[i] = algo_grain1(i);
}

static uint64_t run_grain1(const algo *a)
{
    for (size_t i = 0; i < a->n; i++) grain1(a->out, i);
    return 0;
}

static uint64_t run_tiny(const algo *a)
{
    for (size_t k = 0; k < a->n; k++)
        for (size_t i = 0; i < ALGO_TINY_LOOP; i++) algo_tiny(a->out, i);
    return 0;
}

static uint64_t run_region(const algo *a)
{
    bool heavy = a->c->shape == ALGO_REGION_HEAVY;

    for (size_t k = 0; k < a->loops; k++) {
        if (heavy)
            for (size_t i = 0; i < a->n; i++) algo_region_heavy(a->out, i);
        else
            for (size_t i = 0; i < a->n; i++) algo_region(a->out, i);
    }
    return 0;
}

/* ---- sums and scans ---- */

static uint64_t run_sum(const algo *a)
{
    *(double *)a->out = algo_sum(a->in, 0, a->n);
    return 0;
}

static uint64_t run_scan_i64(const algo *a)
{
    const int64_t *in = a->in;
    int64_t *out = a->out, sum = 0;
    for (size_t i = 0; i < a->n; i++) out[i] = sum += in[i];
    return 0;
}

static uint64_t run_scan_f64(const algo *a)
{
    const double *in = a->in;
    double *out = a->out, sum = 0;
    for (size_t i = 0; i < a->n; i++) out[i] = sum += in[i];
    return 0;
}

struct share {
    pthread_t thread;
    char *to;
    const char *from;
    size_t bytes;
};

static void *copy_share(void *arg)
{
    struct share *s = arg;
    memcpy(s->to, s->from, s->bytes);
    return NULL;
}

static uint64_t run_copy(const algo *a)
{
    struct share share[64];
    size_t workers = a->workers < 64 ? (size_t)a->workers : 64, bytes = a->n * 8 / workers;

    for (size_t i = 0; i < workers; i++) {
        share[i].to = (char *)a->out + i * bytes;
        share[i].from = (const char *)a->in + i * bytes;
        share[i].bytes = i + 1 < workers ? bytes : a->n * 8 - i * bytes;
        if (i > 0 && pthread_create(&share[i].thread, NULL, copy_share, &share[i]) != 0) exit(1);
    }
    copy_share(&share[0]);
    for (size_t i = 1; i < workers; i++) pthread_join(share[i].thread, NULL);
    return 0;
}

/* ---- filter, find, histogram ---- */

static uint64_t run_filter(const algo *a)
{
    const uint32_t *in = a->in;
    uint32_t *out = a->out;
    size_t k = 0;

    for (size_t i = 0; i < a->n; i++) {
        out[k] = in[i]; /* no branch: half of the branches would be mispredicted */
        k += algo_kept(in[i]);
    }
    return k;
}

static uint64_t run_find(const algo *a)
{
    return algo_find(a->in, 0, a->n);
}

static uint64_t run_count_u8(const algo *a)
{
    const uint8_t *in = a->in;
    uint64_t *out = a->out;
    for (size_t i = 0; i < a->n; i++) out[in[i]]++;
    return 0;
}

static uint64_t run_count_u32(const algo *a)
{
    const uint32_t *in = a->in;
    uint64_t *out = a->out;
    for (size_t i = 0; i < a->n; i++) out[in[i]]++;
    return 0;
}

/* ---- sorts ---- */

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

static int compare_kv32(const void *a, const void *b, void *arg)
{
    uint32_t x = ((const algo_kv32 *)a)->key, y = ((const algo_kv32 *)b)->key;
    (void)arg;
    return x < y ? -1 : x > y;
}

static int compare_kv64(const void *a, const void *b, void *arg)
{
    uint64_t x = ((const algo_kv64 *)a)->key, y = ((const algo_kv64 *)b)->key;
    (void)arg;
    return x < y ? -1 : x > y;
}

static uint64_t run_qsort(const algo *a)
{
    switch (a->c->shape) {
        case ALGO_SORT_PAIR: qsort_r(a->out, a->n, sizeof(algo_pair), compare_pair, NULL); break;
        case ALGO_SORT_TEXT: qsort_r(a->out, a->n, sizeof(char *), compare_text, NULL); break;
        case ALGO_SORT_KV32: qsort_r(a->out, a->n, sizeof(algo_kv32), compare_kv32, NULL); break;
        case ALGO_SORT_KV64: qsort_r(a->out, a->n, sizeof(algo_kv64), compare_kv64, NULL); break;
        default: qsort_r(a->out, a->n, sizeof(uint32_t), compare_u32, NULL);
    }
    return 0;
}

enum { DIGIT = 11, DIGITS = 3, BUCKETS = 1 << DIGIT };

/* Radix sort, lowest digit first. One pass over the array counts all digits. */
static uint64_t run_radix(const algo *a)
{
    static size_t at[DIGITS][BUCKETS];
    uint32_t *from = a->out, *to = malloc(a->n * sizeof(uint32_t));

    if (to == NULL) return 0;
    memset(at, 0, sizeof at);
    for (size_t i = 0; i < a->n; i++)
        for (int d = 0; d < DIGITS; d++) at[d][from[i] >> (d * DIGIT) & (BUCKETS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        size_t sum = 0;
        for (int k = 0; k < BUCKETS; k++) {
            size_t count = at[d][k];
            at[d][k] = sum;
            sum += count;
        }
        for (size_t i = 0; i < a->n; i++)
            to[at[d][from[i] >> (d * DIGIT) & (BUCKETS - 1)]++] = from[i];
        uint32_t *other = from;
        from = to;
        to = other;
    }
    memcpy(to, from, a->n * sizeof(uint32_t)); /* after an odd number of passes `to` is a->out */
    free(from);
    return 0;
}

static uint64_t run_merge(const algo *a)
{
    const uint32_t *x = a->in, *x_end = x + a->n / 2, *y = x_end, *y_end = y + a->n / 2;
    uint32_t *out = a->out;

    while (x < x_end && y < y_end) *out++ = *y < *x ? *y++ : *x++;
    while (x < x_end) *out++ = *x++;
    while (y < y_end) *out++ = *y++;
    return 0;
}

/* ---- pipeline ---- */

static uint64_t run_pipe(const algo *a)
{
    uint32_t *out = a->out;
    for (size_t i = 0; i < a->n; i++) out[i] = algo_item(i);
    return 0;
}

static const algo_entry entries[] = {
    {"for-even", "loop", run_even},
    {"for-triangle", "loop", run_triangle},
    {"for-heavy", "loop", run_heavy},
    {"for-grain1", "loop", run_grain1},
    {"for-tiny*", "loop", run_tiny},
    {"region-*", "loop", run_region},
    {"sum*", "loop", run_sum},
    {"scan-i64", "loop", run_scan_i64},
    {"scan-f64", "loop", run_scan_f64},
    {"copy", "memcpy", run_copy},
    {"filter", "loop", run_filter},
    {"find", "loop", run_find},
    {"histogram-u8", "loop", run_count_u8},
    {"histogram-u32", "loop", run_count_u32},
    {"sort-u32", "radix", run_radix},
    {"sort-*", "qsort_r", run_qsort},
    {"merge", "loop", run_merge},
    {"pipeline", "loop", run_pipe},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    static const algo_runtime serial = {"serial", entries, NULL, NULL, NULL};
    return algo_main(argc, argv, &serial);
}
