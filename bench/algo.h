/* SPDX-License-Identifier: MIT */
/*
 * algo.h - what the benchmark programs of the parallel algorithms compute, and their main
 *
 * A workload has a size and a shape: what lies in `in`, what has to lie in `out` afterwards, and
 * how that is checked. A program has kernels for the workloads it can do, several of them where
 * its runtime has several ways (a variant each), and hands them to algo_main(), which fills the
 * input, lets the variants take turns, checks every answer and prints for each run
 *
 *     result WORKLOAD RUNTIME VARIANT WORKERS SECONDS CPU ITEMS BYTES OK
 *
 * CPU: processor time of all threads; BYTES: what each item makes the memory move at least, 0
 * where memory is not what counts. Inner loops that have to be the same in all programs stand
 * here. Usable from C11 and C++17. java/Algo.java holds the same workloads again.
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
    ALGO_LOOP,      /* out: u32, by algo_element() */
    ALGO_TINY,      /* out: u32, one in each line; many short loops */
    ALGO_SUM,       /* in: double; out: one double */
    ALGO_SCAN_I64,  /* in, out: i64 */
    ALGO_SCAN_F64,  /* in, out: double */
    ALGO_COPY,      /* in, out: i64, the same; what memory can do at the most */
    ALGO_FILTER,    /* in, out: u32; returns how many */
    ALGO_FIND,      /* in: u32; returns where */
    ALGO_COUNT_U8,  /* in: u8; out: 256 u64 */
    ALGO_COUNT_U32, /* in: u32; out: 1024 u64 */
    ALGO_SORT_U32,  /* out: u32, in place */
    ALGO_SORT_PAIR, /* out: struct algo_pair, in place */
    ALGO_SORT_TEXT, /* out: const char *, in place */
    ALGO_SORT_KV32, /* out: struct algo_kv32, in place, stable */
    ALGO_SORT_KV64, /* out: struct algo_kv64, in place, stable */
    ALGO_MERGE,     /* in: u32, two sorted halves; out: u32 */
    ALGO_PIPE       /* out: u32, in order */
};

typedef struct algo_case {
    const char *name;
    enum algo_shape shape;
    size_t full, quick; /* items */
    size_t bytes;       /* moved for each item; 0: no matter */
} algo_case;

static const algo_case algo_cases[] = {
    {"for-even", ALGO_LOOP, 10000000, 500000, 0},
    {"for-triangle", ALGO_LOOP, 200000, 50000, 0},
    {"for-heavy", ALGO_LOOP, 1000000, 50000, 0},
    {"for-grain1", ALGO_LOOP, 10000000, 500000, 0},
    {"for-tiny", ALGO_TINY, 100000, 5000, 0},
    {"for-tiny-inside", ALGO_TINY, 100000, 5000, 0},
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
    ALGO_TINY_LOOP = 10,   /* iterations of a tiny loop, */
    ALGO_TINY_STEP = 16,   /* elements from one to the next, */
    ALGO_TINY_TURNS = 70,  /* and about 100 ns each */
    ALGO_EVEN_TURNS = 4,   /* about 2.5 ns */
    ALGO_TRIANGLE = 256,   /* element i has i / so many turns */
    ALGO_HEAVY_COUNT = 16, /* elements that take milliseconds, soon after one another */
    ALGO_HEAVY_STEP = 1000,
    ALGO_HEAVY_TURNS = 3000000,
    ALGO_BINS = 1024,
    ALGO_FEW = 16,        /* keys of sort-u32-few */
    ALGO_PIPE_TURNS = 32, /* of an item in the parallel stage, about 50 ns */
    ALGO_TOKENS = 64,     /* items under way */
    ALGO_TEXT_MOST = 24
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
    int workers;
    void *in, *out;
    char *text;      /* the strings of ALGO_SORT_TEXT */
    uint64_t answer; /* what the kernel returns, or what out adds up to */
} algo;

/* Computes the workload and returns a number where the shape says so. The call is timed. */
typedef uint64_t algo_kernel(const algo *a);

typedef struct algo_entry {
    const char *workload; /* with a star at its end: all that begin so */
    const char *variant;
    algo_kernel *run;
} algo_entry;

/*
 *   entries  end with {NULL, NULL, NULL}
 *   start    makes a pool of `workers` threads, the calling one among them if it takes part;
 *            NULL if there is nothing to do, as for stop
 *   call     calls the kernel where that runtime's programs call such things, as a rule inside
 *            the pool; NULL: where it is. Timed together with the kernel.
 */
typedef struct algo_runtime {
    const char *name;
    const algo_entry *entries;
    void (*start)(int workers);
    void (*stop)(void);
    uint64_t (*call)(algo_kernel *run, const algo *a);
} algo_runtime;

/* ---- pieces of work ---- */

/* A chain of `turns` dependent steps that no compiler shortens or makes a vector of. */
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

/* One iteration of a tiny loop: out[] counts how often it was done. */
static inline void algo_tiny(uint32_t *out, size_t i)
{
    out[i * ALGO_TINY_STEP] += algo_turns(i + 1, ALGO_TINY_TURNS) | 1;
}

/* The sum of a part: in eight strands, so that memory is what limits it. */
static inline double algo_sum(const double *a, size_t lo, size_t hi)
{
    double s[8] = {0};
    size_t i = lo;

    for (; hi - i >= 8; i += 8)
        for (int k = 0; k < 8; k++) s[k] += a[i + (size_t)k];
    for (; i < hi; i++) s[0] += a[i];
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

/* 1 or 0; a bool would cost more in some compilers. */
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

/* Copies those that are kept and returns where they end. Half of the branches would be foretold
 * wrongly, and past its end is what others write: so through a small array. */
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

#define ALGO_FOUND 0xfffffffbu /* the key that find looks for; the others are less */

/* Sixteen at a time without a branch, which makes a vector of them. */
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

/* What the stages of the pipeline make of item i. */
static inline uint32_t algo_item(size_t i)
{
    return algo_turns(i + 1, ALGO_PIPE_TURNS);
}

/* Whether the calls are to be made from a thread that belongs to no pool. */
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
        fprintf(stderr, "no memory\n");
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
        memcpy(s, r & 4096 ? "long " : "", r & 4096 ? 5 : 0); /* half of them begin alike */
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
            ((algo_kv32 *)a->in)[i].key = (uint32_t)r & 0xffffff; /* some are equal */
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
        case ALGO_SUM:
        case ALGO_FIND:
        case ALGO_COUNT_U8:
        case ALGO_COUNT_U32: return ALGO_BINS * sizeof(uint64_t);
        default: return (a->n + 1) * algo_size_in(a->c->shape); /* a filter may write one more */
    }
}

/* What in, or the work itself, says the answer is: one number for the quick look at it. */
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

static inline void algo_prepare(algo *a, const algo_case *c, bool quick, int workers)
{
    a->c = c;
    a->n = quick ? c->quick : c->full;
    a->workers = workers;
    a->text = NULL;
    a->in = a->out = NULL;
    if (c->shape != ALGO_LOOP && c->shape != ALGO_TINY && c->shape != ALGO_PIPE) {
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

/* Before each run, not timed. */
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
 * The processor time of all threads. The clock of the process lags by up to a tick for threads
 * that run on other processors at the moment, the clock of each thread does not.
 */
static inline uint64_t algo_cpu_ns(void)
{
    DIR *tasks = opendir("/proc/self/task");
    uint64_t sum = 0;

    if (tasks == NULL) return 0;
    for (struct dirent *d; (d = readdir(tasks)) != NULL;) {
        unsigned tid = (unsigned)atoi(d->d_name);
        struct timespec t;
        /* The number of a thread's clock, as pthread_getcpuclockid() makes it. */
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
    printf("result %s %s %s %d %.9f %.9f %zu %zu %d\n", a->c->name, rt->name, e->variant,
           a->workers, (double)(end - start) * 1e-9, (double)cpu * 1e-9, a->n, a->c->bytes, ok);
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
