/* SPDX-License-Identifier: MIT */
/*
 * algo.h - workloads and main program of the benchmarks of the parallel algorithms
 *
 * A workload has a size and a shape. The shape determines the types of the arrays `in` and `out`,
 * and how the answer is checked. The program of a runtime has kernels for the workloads that it
 * supports. If the runtime has several ways to solve a problem, each way is a variant with a
 * kernel of its own. The program passes its kernels to algo_main(), which fills the input, runs
 * the variants in turn, checks every answer and prints for each run
 *
 *     result WORKLOAD RUNTIME VARIANT WORKERS SECONDS CPU ITEMS BYTES OK
 *
 * CPU is the processor time of all threads. A run of a region consists of many loops, and SECONDS
 * and CPU are the averages for one loop. BYTES is the least number of bytes that have to be read
 * and written for each item, or 0 if the speed of the memory does not limit the workload. This
 * header also has the inner loops that have to be the same in all programs. It compiles as C11 and
 * as C++17. java/Algo.java repeats most of the workloads.
 */
#ifndef BENCH_ALGO_H
#define BENCH_ALGO_H

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "workload.h"

/* ---- the workloads ---- */

enum algo_shape {
    ALGO_LOOP,         /* out: u32, by algo_element() */
    ALGO_TINY,         /* out: u32, one in each cache line; many short loops */
    ALGO_REGION,       /* out: u32; the same short loop again and again */
    ALGO_REGION_HEAVY, /* out: u32, one in each cache line; the same with few, heavy elements */
    ALGO_SUM,          /* in: double; out: one double */
    ALGO_SCAN_I64,     /* in, out: i64 */
    ALGO_SCAN_F64,     /* in, out: double */
    ALGO_COPY,         /* in, out: i64; out is a copy of in: the limit that the memory sets */
    ALGO_FILTER,       /* in, out: u32; returns the number of kept elements */
    ALGO_FIND,         /* in: u32; returns the index of the found element */
    ALGO_COUNT_U8,     /* in: u8; out: 256 u64 */
    ALGO_COUNT_U32,    /* in: u32; out: 1024 u64 */
    ALGO_SORT_U32,     /* out: u32, in place */
    ALGO_SORT_PAIR,    /* out: struct algo_pair, in place */
    ALGO_SORT_TEXT,    /* out: const char *, in place */
    ALGO_SORT_KV32,    /* out: struct algo_kv32, in place, stable */
    ALGO_SORT_KV64,    /* out: struct algo_kv64, in place, stable */
    ALGO_MERGE,        /* in: u32, two sorted halves; out: u32 */
    ALGO_PIPE          /* out: u32, in order */
};

typedef struct algo_case {
    const char *name;
    enum algo_shape shape;
    size_t full, quick; /* items; of a region: the elements of one loop */
    size_t bytes;       /* read and written for each item; 0: not relevant */
} algo_case;

static const algo_case algo_cases[] = {
    {"for-even", ALGO_LOOP, 10000000, 500000, 0},
    {"for-triangle", ALGO_LOOP, 200000, 50000, 0},
    {"for-heavy", ALGO_LOOP, 1000000, 50000, 0},
    {"for-grain1", ALGO_LOOP, 10000000, 500000, 0},
    {"for-tiny", ALGO_TINY, 100000, 5000, 0},
    {"for-tiny-inside", ALGO_TINY, 100000, 5000, 0},
    {"region-2us", ALGO_REGION, 1200, 1200, 0},
    {"region-5us", ALGO_REGION, 3000, 3000, 0},
    {"region-13us", ALGO_REGION, 7800, 7800, 0},
    {"region-50us", ALGO_REGION, 30000, 30000, 0},
    {"region-heavy-6us", ALGO_REGION_HEAVY, 10, 10, 0},
    {"sum", ALGO_SUM, 64000000, 3200000, 8},
    {"sum-fixed", ALGO_SUM, 64000000, 3200000, 8},
    {"scan-i64", ALGO_SCAN_I64, 64000000, 3200000, 16},
    {"scan-f64", ALGO_SCAN_F64, 64000000, 3200000, 16},
    {"copy", ALGO_COPY, 64000000, 3200000, 16},
    {"filter", ALGO_FILTER, 32000000, 1600000, 6},
    {"find", ALGO_FIND, 64000000, 3200000, 3},
    {"histogram-u8", ALGO_COUNT_U8, 64000000, 3200000, 1},
    {"histogram-u32", ALGO_COUNT_U32, 16000000, 800000, 4},
    {"sort-u32", ALGO_SORT_U32, 10000000, 500000, 0},
    {"sort-struct", ALGO_SORT_PAIR, 2000000, 100000, 0},
    {"sort-strings", ALGO_SORT_TEXT, 1000000, 50000, 0},
    {"sort-u32-sorted", ALGO_SORT_U32, 4000000, 200000, 0},
    {"sort-u32-reversed", ALGO_SORT_U32, 4000000, 200000, 0},
    {"sort-u32-equal", ALGO_SORT_U32, 4000000, 200000, 0},
    {"sort-u32-organ", ALGO_SORT_U32, 4000000, 200000, 0},
    {"sort-u32-few", ALGO_SORT_U32, 4000000, 200000, 0},
    {"sort-kv32", ALGO_SORT_KV32, 8000000, 400000, 0},
    {"sort-kv64", ALGO_SORT_KV64, 4000000, 200000, 0},
    {"merge", ALGO_MERGE, 16000000, 800000, 8},
    {"pipeline", ALGO_PIPE, 1000000, 50000, 0},
};

enum {
    ALGO_TINY_LOOP = 10,    /* iterations of a tiny loop */
    ALGO_TINY_STEP = 16,    /* distance of the elements of two iterations, one cache line */
    ALGO_TINY_TURNS = 70,   /* steps of algo_turns() in one iteration, about 100 ns */
    ALGO_EVEN_TURNS = 4,    /* about 2.5 ns */
    ALGO_TRIANGLE = 256,    /* element i has i / ALGO_TRIANGLE steps */
    ALGO_HEAVY_COUNT = 16,  /* number of elements that take milliseconds */
    ALGO_HEAVY_STEP = 1000, /* distance between two of them; the first is in the middle */
    ALGO_HEAVY_TURNS = 3000000,
    ALGO_BINS = 1024,
    ALGO_FEW = 16,        /* number of different keys in sort-u32-few */
    ALGO_PIPE_TURNS = 32, /* steps per item in the parallel stage, about 50 ns */
    ALGO_TOKENS = 64,     /* greatest number of items in flight in the pipeline */
    ALGO_TEXT_MOST = 24
};

/* A region is a short loop that is called again and again. */
enum {
    ALGO_REGION_LOOPS = 3000,      /* loops in one run */
    ALGO_REGION_QUICK_LOOPS = 300, /* the same with --quick */
    ALGO_REGION_STEPS = 5,         /* multiply-adds for one element, about 1.7 ns */
    ALGO_REGION_TURNS = 420        /* steps of algo_turns() for a heavy element, about 600 ns */
};

typedef struct algo_pair {
    uint64_t key, value;
} algo_pair;

typedef struct algo_kv32 {
    uint32_t key, value;
} algo_kv32;

typedef struct algo_kv64 {
    uint64_t key, value;
} algo_kv64;

/* One workload at one size, with its memory. */
typedef struct algo {
    const algo_case *c;
    size_t n;
    size_t loops; /* the loops of one run of a region; otherwise 1 */
    int workers;
    void *in, *out;
    char *text;      /* the strings of ALGO_SORT_TEXT */
    uint64_t answer; /* the right return value of the kernel, or the right checksum of `out` */
} algo;

/* Computes the workload. Returns a number for ALGO_FILTER and ALGO_FIND; otherwise the return value
 * is ignored. The call is timed. */
typedef uint64_t algo_kernel(const algo *a);

typedef struct algo_entry {
    const char *workload; /* a name; "NAME*" means all workloads whose names begin with NAME */
    const char *variant;
    algo_kernel *run;
} algo_entry;

/*
 * The description of a runtime.
 *
 *   entries  the kernels; the last entry is {NULL, NULL, NULL}
 *   start    creates a pool of `workers` threads; if the calling thread works too, it is one of
 *            them. NULL if the runtime needs no start.
 *   stop     destroys the pool. NULL if the runtime needs no stop.
 *   call     calls the kernel in the place from which a program of that runtime would call it,
 *            usually inside the pool. It is timed together with the kernel. If it is NULL, the
 *            main thread calls the kernel.
 */
typedef struct algo_runtime {
    const char *name;
    const algo_entry *entries;
    void (*start)(int workers);
    void (*stop)(void);
    uint64_t (*call)(algo_kernel *run, const algo *a);
} algo_runtime;

/* ---- pieces of work ---- */

/* A chain of `turns` dependent steps that the compiler can neither shorten nor vectorize. */
static inline uint32_t algo_turns(uint64_t x, unsigned turns)
{
    for (unsigned i = 0; i < turns; i++) {
        x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
        __asm__("" : "+r"(x));
    }
    return (uint32_t)(x >> 32);
}

static inline uint32_t algo_even(size_t i)
{
    return algo_turns(i, ALGO_EVEN_TURNS);
}

static inline uint32_t algo_triangle(size_t i)
{
    return algo_turns(i, (unsigned)(i / ALGO_TRIANGLE));
}

static inline uint32_t algo_heavy(size_t i, size_t n)
{
    size_t k = i - n / 2;
    if (i >= n / 2 && k % ALGO_HEAVY_STEP == 0 && k / ALGO_HEAVY_STEP < ALGO_HEAVY_COUNT)
        return algo_turns(i, ALGO_HEAVY_TURNS);
    return algo_turns(i, ALGO_TINY_STEP);
}

static inline uint32_t algo_grain1(size_t i)
{
    return (uint32_t)i * 2654435761u + 1;
}

/* One iteration of a tiny loop. It adds a value that depends on i only, so that the final sum shows
 * how often the iteration was run. */
static inline void algo_tiny(uint32_t *out, size_t i)
{
    out[i * ALGO_TINY_STEP] += algo_turns(i + 1, ALGO_TINY_TURNS) | 1;
}

/* One element of a region. Like algo_tiny(), it adds a value that depends on i only. The compiler
 * can neither combine nor vectorize the multiply-adds. */
static inline uint32_t algo_region_value(size_t i)
{
    uint32_t x = (uint32_t)i;

    for (int k = 0; k < ALGO_REGION_STEPS; k++) {
        x = x * 1664525u + 1013904223u;
        __asm__("" : "+r"(x));
    }
    return x | 1;
}

static inline void algo_region(uint32_t *out, size_t i)
{
    out[i] += algo_region_value(i);
}

/* One heavy element of a region. */
static inline uint32_t algo_region_heavy_value(size_t i)
{
    return algo_turns(i + 1, ALGO_REGION_TURNS) | 1;
}

static inline void algo_region_heavy(uint32_t *out, size_t i)
{
    out[i * ALGO_TINY_STEP] += algo_region_heavy_value(i);
}

static inline bool algo_is_region(enum algo_shape s)
{
    return s == ALGO_REGION || s == ALGO_REGION_HEAVY;
}

/* The sum of a[lo] to a[hi - 1], in eight independent partial sums, so that only the memory limits
 * the speed. */
static inline double algo_sum(const double *a, size_t lo, size_t hi)
{
    double s[8] = {0};
    size_t i = lo;

    for (; hi - i >= 8; i += 8)
        for (int k = 0; k < 8; k++) s[k] += a[i + (size_t)k];
    for (; i < hi; i++) s[0] += a[i];
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

/* Returns 1 if the filter keeps x, else 0. Some compilers generate slower code for a bool. */
static inline unsigned algo_kept(uint32_t x)
{
    return x >> 9 & 1;
}

static inline size_t algo_kept_count(const uint32_t *in, size_t lo, size_t hi)
{
    size_t count = 0;
    for (size_t i = lo; i < hi; i++) count += algo_kept(in[i]);
    return count;
}

/* Copies the kept elements of in[lo] to in[hi - 1] to `out` and returns the end of the copy. A
 * branch for each element would be mispredicted half of the time. The code without branches writes
 * one element too many, and in `out` that element may belong to another thread. So the elements go
 * through a small local array. */
static inline uint32_t *algo_keep_part(const uint32_t *in, size_t lo, size_t hi, uint32_t *out)
{
    enum { PIECE = 1024 };
    uint32_t piece[PIECE];

    while (lo < hi) {
        size_t end = hi - lo < PIECE ? hi : lo + PIECE, k = 0;
        for (; lo < end; lo++) {
            piece[k] = in[lo];
            k += algo_kept(in[lo]);
        }
        memcpy(out, piece, k * sizeof *out);
        out += k;
    }
    return out;
}

#define ALGO_FOUND 0xfffffffbu /* the key that find searches for; all other keys are smaller */

/* Returns the index of ALGO_FOUND, or hi. It compares sixteen elements without a branch, so that
 * the compiler vectorizes the comparison. */
static inline size_t algo_find(const uint32_t *a, size_t lo, size_t hi)
{
    for (; hi - lo >= 16; lo += 16) {
        uint32_t any = 0;
        for (int k = 0; k < 16; k++) any |= a[lo + (size_t)k] == ALGO_FOUND;
        if (any) break;
    }
    for (; lo < hi; lo++)
        if (a[lo] == ALGO_FOUND) break;
    return lo;
}

/* The result of the pipeline for item i. */
static inline uint32_t algo_item(size_t i)
{
    return algo_turns(i + 1, ALGO_PIPE_TURNS);
}

/* Returns whether a thread outside the pool has to call the kernel. */
static inline bool algo_outside(const algo *a)
{
    return strcmp(a->c->name, "for-tiny") == 0;
}

static inline int algo_pair_compare(const void *a, const void *b)
{
    uint64_t x = ((const algo_pair *)a)->key, y = ((const algo_pair *)b)->key;
    return x < y ? -1 : x > y;
}

static inline int algo_text_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- input ---- */

static inline uint64_t algo_random(size_t i)
{
    return bench_mix((i + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

static inline uint32_t algo_key(const algo *a, size_t i)
{
    const char *name = a->c->name;

    if (strcmp(name, "sort-u32-sorted") == 0) return (uint32_t)i * 3;
    if (strcmp(name, "sort-u32-reversed") == 0) return (uint32_t)(a->n - i) * 3;
    if (strcmp(name, "sort-u32-equal") == 0) return 42;
    if (strcmp(name, "sort-u32-organ") == 0) return (uint32_t)(i < a->n / 2 ? i : a->n - i);
    if (strcmp(name, "sort-u32-few") == 0) return (uint32_t)(algo_random(i) % ALGO_FEW);
    return (uint32_t)algo_random(i);
}

static inline void *algo_memory(size_t bytes)
{
    void *p = aligned_alloc(4096, (bytes + 8191) / 4096 * 4096);

    if (p == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

static inline size_t algo_size_in(enum algo_shape s)
{
    switch (s) {
        case ALGO_SUM:
        case ALGO_SCAN_I64:
        case ALGO_SCAN_F64:
        case ALGO_COPY:
        case ALGO_SORT_TEXT: return 8;
        case ALGO_COUNT_U8: return 1;
        case ALGO_SORT_PAIR:
        case ALGO_SORT_KV64: return 16;
        case ALGO_SORT_KV32: return 8;
        default: return 4;
    }
}

static inline void algo_fill_texts(algo *a)
{
    const char **in = (const char **)a->in;

    a->text = (char *)algo_memory(a->n * ALGO_TEXT_MOST);
    for (size_t i = 0; i < a->n; i++) {
        uint64_t r = algo_random(i);
        char *s = a->text + i * ALGO_TEXT_MOST;
        int letters = 8 + (int)(r % 12);
        memcpy(s, r & 4096 ? "long " : "", r & 4096 ? 5 : 0); /* half of the strings begin alike */
        for (int k = r & 4096 ? 5 : 0; k < letters; k++, r = bench_mix(r + 1))
            s[k] = (char)('a' + (r >> 20) % 26);
        in[i] = s;
    }
}

static inline void algo_fill_merge(algo *a)
{
    uint32_t *in = (uint32_t *)a->in;
    uint32_t x[2] = {0, 0};
    size_t half = a->n / 2;

    for (size_t i = 0; i < half; i++)
        for (int side = 0; side < 2; side++) {
            x[side] += (uint32_t)(algo_random(2 * i + (size_t)side) & 255);
            in[(size_t)side * half + i] = x[side];
        }
}

static inline void algo_fill_one(algo *a, size_t i)
{
    uint64_t r = algo_random(i);

    switch (a->c->shape) {
        case ALGO_SUM:
        case ALGO_SCAN_F64: ((double *)a->in)[i] = (double)(r & 1023); break;
        case ALGO_SCAN_I64:
        case ALGO_COPY: ((int64_t *)a->in)[i] = (int64_t)(r & 1023); break;
        case ALGO_FILTER: ((uint32_t *)a->in)[i] = (uint32_t)r; break;
        case ALGO_FIND:
            ((uint32_t *)a->in)[i] = i == a->n / 4 * 3 ? ALGO_FOUND : (uint32_t)r >> 1;
            break;
        case ALGO_COUNT_U8: ((uint8_t *)a->in)[i] = (uint8_t)r; break;
        case ALGO_COUNT_U32: ((uint32_t *)a->in)[i] = (uint32_t)(r % ALGO_BINS); break;
        case ALGO_SORT_U32: ((uint32_t *)a->in)[i] = algo_key(a, i); break;
        case ALGO_SORT_PAIR: ((algo_pair *)a->in)[i].key = r; break;
        case ALGO_SORT_KV32:
            ((algo_kv32 *)a->in)[i].key = (uint32_t)r & 0xffffff; /* some keys are equal */
            ((algo_kv32 *)a->in)[i].value = (uint32_t)i;
            break;
        case ALGO_SORT_KV64:
            ((algo_kv64 *)a->in)[i].key = r & 0xffffffffffff0u;
            ((algo_kv64 *)a->in)[i].value = i;
            break;
        default: break;
    }
}

static inline bool algo_in_place(enum algo_shape s)
{
    return s >= ALGO_SORT_U32 && s <= ALGO_SORT_KV64;
}

static inline uint32_t algo_element(const algo *a, size_t i)
{
    const char *name = a->c->name;

    if (strcmp(name, "for-even") == 0) return algo_even(i);
    if (strcmp(name, "for-triangle") == 0) return algo_triangle(i);
    if (strcmp(name, "for-heavy") == 0) return algo_heavy(i, a->n);
    return algo_grain1(i);
}

static inline size_t algo_out_bytes(const algo *a)
{
    switch (a->c->shape) {
        case ALGO_TINY: return ALGO_TINY_LOOP * ALGO_TINY_STEP * sizeof(uint32_t);
        case ALGO_REGION_HEAVY: return a->n * ALGO_TINY_STEP * sizeof(uint32_t);
        case ALGO_SUM:
        case ALGO_FIND:
        case ALGO_COUNT_U8:
        case ALGO_COUNT_U32: return ALGO_BINS * sizeof(uint64_t);
        default:
            return (a->n + 1) *
                   algo_size_in(a->c->shape); /* the serial filter may write one more */
    }
}

/* Computes the right answer, or a checksum of it, from the input or, without input, from the
 * elements that the kernel has to compute. */
static inline uint64_t algo_expect(const algo *a)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < a->n; i++) {
        switch (a->c->shape) {
            case ALGO_LOOP: sum += algo_element(a, i); break;
            case ALGO_PIPE: sum += algo_item(i); break;
            case ALGO_SUM: sum += (uint64_t)((double *)a->in)[i]; break;
            case ALGO_FILTER: sum += algo_kept(((uint32_t *)a->in)[i]); break;
            case ALGO_SORT_U32:
            case ALGO_MERGE: sum += bench_mix(((uint32_t *)a->in)[i]); break;
            case ALGO_SORT_PAIR: sum += ((algo_pair *)a->in)[i].key; break;
            case ALGO_SORT_TEXT: sum += (uint64_t)(((const char **)a->in)[i] - a->text); break;
            case ALGO_SORT_KV32: sum += ((algo_kv32 *)a->in)[i].key; break;
            case ALGO_SORT_KV64: sum += ((algo_kv64 *)a->in)[i].key; break;
            default: return a->c->shape == ALGO_FIND ? a->n / 4 * 3 : 0;
        }
    }
    return sum;
}

/* Returns whether the workload has no array `in`. */
static inline bool algo_no_input(enum algo_shape s)
{
    return s == ALGO_LOOP || s == ALGO_TINY || algo_is_region(s) || s == ALGO_PIPE;
}

static inline void algo_prepare(algo *a, const algo_case *c, bool quick, int workers)
{
    a->c = c;
    a->n = quick ? c->quick : c->full;
    a->loops = 1;
    if (algo_is_region(c->shape)) a->loops = quick ? ALGO_REGION_QUICK_LOOPS : ALGO_REGION_LOOPS;
    a->workers = workers;
    a->text = NULL;
    a->in = a->out = NULL;
    if (!algo_no_input(c->shape)) {
        a->in = algo_memory(a->n * algo_size_in(c->shape));
        if (c->shape == ALGO_SORT_TEXT)
            algo_fill_texts(a);
        else if (c->shape == ALGO_MERGE)
            algo_fill_merge(a);
        else
            for (size_t i = 0; i < a->n; i++) algo_fill_one(a, i);
    }
    a->out = algo_memory(algo_out_bytes(a));
    a->answer = algo_expect(a);
}

/* Prepares `out` before each run. It is not timed. */
static inline void algo_reset(const algo *a)
{
    if (algo_in_place(a->c->shape))
        memcpy(a->out, a->in, a->n * algo_size_in(a->c->shape));
    else
        memset(a->out, 0, algo_out_bytes(a));
}

/* ---- checks ---- */

static inline bool algo_check_order(const algo *a, size_t i)
{
    switch (a->c->shape) {
        case ALGO_SORT_U32:
        case ALGO_MERGE: return ((uint32_t *)a->out)[i - 1] <= ((uint32_t *)a->out)[i];
        case ALGO_SORT_PAIR:
            return ((algo_pair *)a->out)[i - 1].key <= ((algo_pair *)a->out)[i].key;
        case ALGO_SORT_TEXT:
            return algo_text_compare((const char **)a->out + i - 1, (const char **)a->out + i) <= 0;
        case ALGO_SORT_KV32: {
            const algo_kv32 *x = (const algo_kv32 *)a->out + i;
            return x[-1].key < x->key || (x[-1].key == x->key && x[-1].value < x->value);
        }
        default: {
            const algo_kv64 *x = (const algo_kv64 *)a->out + i;
            return x[-1].key < x->key || (x[-1].key == x->key && x[-1].value < x->value);
        }
    }
}

static inline bool algo_check_sorted(const algo *a)
{
    algo sorted = *a;

    sorted.in = a->out;
    if (algo_expect(&sorted) != a->answer) return false;
    for (size_t i = 1; i < a->n; i++)
        if (!algo_check_order(a, i)) return false;
    return true;
}

static inline bool algo_check_scan(const algo *a)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < a->n; i++) {
        if (a->c->shape == ALGO_SCAN_I64) {
            sum += (uint64_t)((int64_t *)a->in)[i];
            if (((int64_t *)a->out)[i] != (int64_t)sum) return false;
        } else {
            sum += (uint64_t)((double *)a->in)[i];
            if (((double *)a->out)[i] != (double)sum) return false;
        }
    }
    return true;
}

static inline bool algo_check_filter(const algo *a, uint64_t returned)
{
    const uint32_t *in = (const uint32_t *)a->in, *out = (const uint32_t *)a->out;
    size_t k = 0;

    if (returned != a->answer) return false;
    for (size_t i = 0; i < a->n; i++)
        if (algo_kept(in[i]) && out[k++] != in[i]) return false;
    return true;
}

static inline bool algo_check_counts(const algo *a)
{
    uint64_t counts[ALGO_BINS] = {0};

    for (size_t i = 0; i < a->n; i++)
        counts[a->c->shape == ALGO_COUNT_U8 ? ((uint8_t *)a->in)[i] : ((uint32_t *)a->in)[i]]++;
    return memcmp(counts, a->out, sizeof counts) == 0;
}

static inline bool algo_check_loop(const algo *a)
{
    const uint32_t *out = (const uint32_t *)a->out;
    uint64_t sum = 0;

    for (size_t i = 0; i < a->n; i++) sum += out[i];
    return sum == a->answer;
}

static inline bool algo_check_tiny(const algo *a)
{
    const uint32_t *out = (const uint32_t *)a->out;

    for (size_t i = 0; i < ALGO_TINY_LOOP; i++)
        if (out[i * ALGO_TINY_STEP] != (uint32_t)((algo_turns(i + 1, ALGO_TINY_TURNS) | 1) * a->n))
            return false;
    return true;
}

static inline bool algo_check_region(const algo *a)
{
    const uint32_t *out = (const uint32_t *)a->out;

    for (size_t i = 0; i < a->n; i++)
        if (out[i] != (uint32_t)(algo_region_value(i) * a->loops)) return false;
    return true;
}

static inline bool algo_check_heavy(const algo *a)
{
    const uint32_t *out = (const uint32_t *)a->out;

    for (size_t i = 0; i < a->n; i++)
        if (out[i * ALGO_TINY_STEP] != (uint32_t)(algo_region_heavy_value(i) * a->loops))
            return false;
    return true;
}

static inline bool algo_check_pipe(const algo *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (((const uint32_t *)a->out)[i] != algo_item(i)) return false;
    return true;
}

static inline bool algo_check(const algo *a, uint64_t returned)
{
    switch (a->c->shape) {
        case ALGO_LOOP: return algo_check_loop(a);
        case ALGO_TINY: return algo_check_tiny(a);
        case ALGO_REGION: return algo_check_region(a);
        case ALGO_REGION_HEAVY: return algo_check_heavy(a);
        case ALGO_SUM: return (uint64_t)((double *)a->out)[0] == a->answer;
        case ALGO_SCAN_I64:
        case ALGO_SCAN_F64: return algo_check_scan(a);
        case ALGO_FILTER: return algo_check_filter(a, returned);
        case ALGO_FIND: return returned == a->answer;
        case ALGO_COUNT_U8:
        case ALGO_COUNT_U32: return algo_check_counts(a);
        case ALGO_COPY: return memcmp(a->out, a->in, a->n * 8) == 0;
        case ALGO_PIPE: return algo_check_pipe(a);
        default: return algo_check_sorted(a);
    }
}

/* ---- main ---- */

static inline bool algo_serves(const algo_entry *e, const char *workload)
{
    size_t n = strlen(e->workload);

    if (n > 0 && e->workload[n - 1] == '*') return strncmp(e->workload, workload, n - 1) == 0;
    return strcmp(e->workload, workload) == 0;
}

static inline const algo_case *algo_case_find(const char *name)
{
    for (size_t i = 0; i < sizeof algo_cases / sizeof algo_cases[0]; i++)
        if (strcmp(algo_cases[i].name, name) == 0) return &algo_cases[i];
    return NULL;
}

/*
 * Returns the processor time of all threads. For a thread that is running on another processor, the
 * clock of the process may be one tick behind. The clock of each thread is exact, so this function
 * adds these up.
 */
static inline uint64_t algo_cpu_ns(void)
{
    DIR *tasks = opendir("/proc/self/task");
    uint64_t sum = 0;

    if (tasks == NULL) return 0;
    for (struct dirent *d; (d = readdir(tasks)) != NULL;) {
        unsigned tid = (unsigned)atoi(d->d_name);
        struct timespec t;
        /* The number of the thread's clock, computed as pthread_getcpuclockid() does. */
        if (tid != 0 && clock_gettime((clockid_t)(~tid << 3 | 6), &t) == 0)
            sum += (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    }
    closedir(tasks);
    return sum;
}

static inline bool algo_measure(const algo *a, const algo_runtime *rt, const algo_entry *e)
{
    algo_reset(a);
    uint64_t cpu = algo_cpu_ns(), start = bench_now_ns();
    uint64_t returned = rt->call != NULL ? rt->call(e->run, a) : e->run(a);
    uint64_t end = bench_now_ns();
    cpu = algo_cpu_ns() - cpu;
    bool ok = algo_check(a, returned);
    double per_loop = 1e-9 / (double)a->loops;
    printf("result %s %s %s %d %.9f %.9f %zu %zu %d\n", a->c->name, rt->name, e->variant,
           a->workers, (double)(end - start) * per_loop, (double)cpu * per_loop, a->n, a->c->bytes,
           ok);
    fflush(stdout);
    return ok;
}

/*
 * Runs `PROG WORKLOAD WORKERS REPS [--quick]`. Returns the exit status: 0, 1 for a wrong answer,
 * 2 for a wrong command line, 3 if the runtime does not support the workload.
 */
static inline int algo_main(int argc, char **argv, const algo_runtime *rt)
{
    bool quick = argc == 5 && strcmp(argv[4], "--quick") == 0, supported = false;
    const algo_case *c = argc < 4 ? NULL : algo_case_find(argv[1]);
    int workers = c == NULL ? 0 : atoi(argv[2]), reps = c == NULL ? 0 : atoi(argv[3]), status = 0;
    algo a;

    if (c == NULL || workers < 1 || reps < 1 || (argc != 4 && !quick)) {
        fprintf(stderr, "usage: %s WORKLOAD WORKERS REPS [--quick]\n", argv[0]);
        return 2;
    }
    for (const algo_entry *e = rt->entries; e->workload != NULL; e++)
        supported |= algo_serves(e, c->name);
    if (!supported) return 3;

    algo_prepare(&a, c, quick, workers);
    if (rt->start != NULL) rt->start(workers);
    for (int i = 0; i < reps; i++)
        for (const algo_entry *e = rt->entries; e->workload != NULL; e++)
            if (algo_serves(e, c->name) && !algo_measure(&a, rt, e)) status = 1;
    if (rt->stop != NULL) rt->stop();
    free(a.text);
    free(a.out);
    free(a.in);
    return status;
}

#endif
