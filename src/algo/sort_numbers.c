/* SPDX-License-Identifier: MIT */
/*
 * sort_numbers.c - sorts of numbers
 *
 * Numbers of 8 and 16 bits are counted, and then written in order from the counts. Wider numbers,
 * and keys with values, are sorted by digits (radix.h). If there is no memory for these methods, or
 * if an array of numbers of 8 or 16 bits is short, the array is sorted by comparisons, with
 * functions that FJ_SORT and FJ_STABLE_SORT define (forkjoin/sort.h).
 */
#include <forkjoin/sort.h>
#include <string.h>

#include "radix.h"
#include "scratch.h"
#include "split.h"

#define PLAIN_LESS(x, y) ((x) < (y))
#define FLOAT_LESS(x, y) (ordered_32(x) < ordered_32(y))
#define DOUBLE_LESS(x, y) (ordered_64(x) < ordered_64(y))
#define KEY_LESS(x, y) ((x).key < (y).key)

/* These functions map a floating-point number to a signed integer, so that the integers have the
 * order of the numbers: -0 is before 0, a NaN whose sign bit is set is before all numbers, and any
 * other NaN is after them. */

static inline int32_t ordered_32(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1);
}

static inline int64_t ordered_64(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
}

FJ_SORT(compare_i8, int8_t, PLAIN_LESS);
FJ_SORT(compare_u8, uint8_t, PLAIN_LESS);
FJ_SORT(compare_i16, int16_t, PLAIN_LESS);
FJ_SORT(compare_u16, uint16_t, PLAIN_LESS);
FJ_SORT(compare_i32, int32_t, PLAIN_LESS);
FJ_SORT(compare_u32, uint32_t, PLAIN_LESS);
FJ_SORT(compare_i64, int64_t, PLAIN_LESS);
FJ_SORT(compare_u64, uint64_t, PLAIN_LESS);
FJ_SORT(compare_f32, float, FLOAT_LESS);
FJ_SORT(compare_f64, double, DOUBLE_LESS);
FJ_STABLE_SORT(compare_kv32, fj_kv32, KEY_LESS);
FJ_STABLE_SORT(compare_kv64, fj_kv64, KEY_LESS);

/* ---- Sorts by digits ------------------------------------------------------------------------- */

enum { STACK_BYTES = 4096 }; /* a buffer of at most this many bytes is on the stack */

static const fji_key_map unsigned_map = {0, 0};
static const fji_key_map signed_map_32 = {0x80000000u, 0};
static const fji_key_map signed_map_64 = {(uint64_t)INT64_MIN, 0};
static const fji_key_map float_map_32 = {0x80000000u, INT32_MAX};
static const fji_key_map float_map_64 = {(uint64_t)INT64_MIN, INT64_MAX};

typedef struct radix_call {
    fj_task task;
    fji_job job;
    void *a, *buffer;
    size_t n;
    const fji_key_map *map;
} radix_call;

static int radix_32(fj_task *t)
{
    radix_call *c = (radix_call *)t;
    return fji_radix_32(&c->job, c->a, c->buffer, c->n, c->map);
}

static int radix_64(fj_task *t)
{
    radix_call *c = (radix_call *)t;
    return fji_radix_64(&c->job, c->a, c->buffer, c->n, c->map);
}

static int radix_kv32(fj_task *t)
{
    radix_call *c = (radix_call *)t;
    return fji_radix_kv32(&c->job, c->a, c->buffer, c->n);
}

static int radix_kv64(fj_task *t)
{
    radix_call *c = (radix_call *)t;
    return fji_radix_kv64(&c->job, c->a, c->buffer, c->n);
}

/* Sorts n elements of `size` bytes by digits, in a task whose body is fn, the function for their
 * type. Returns FJ_EINVAL if an argument is invalid. Returns FJ_ENOMEM, and leaves the array
 * unchanged, if there is no memory for a buffer or to run the task in a pool. Otherwise returns
 * what fji_job_run() returns. */
static int sort_radix(void *a, size_t n, size_t size, const fji_key_map *map, fj_task_fn *fn,
                      const fj_algo_options *how)
{
    radix_call c = {.a = a, .n = n, .map = map};
    _Alignas(16) char stack[STACK_BYTES];

    if (!fji_array_ok(a, n, size)) return FJ_EINVAL;
    void *scratch = n * size > sizeof stack ? fji_algo_alloc_for(how, n * size) : NULL;
    if (n * size > sizeof stack && scratch == NULL) return FJ_ENOMEM;
    c.buffer = scratch != NULL ? scratch : stack;
    int err = fji_job_init(&c.job, how, n);
    if (err == FJ_OK && n != 0) {
        fj_task_init(&c.task, fn);
        err = fji_job_run(&c.job, how, &c.task);
    }
    fji_algo_free(scratch);
    return err;
}

/* Defines fj_sort_<name>(), which sorts elements of `type` by digits or, if there is no memory for
 * that, by comparisons. map: maps their keys to unsigned numbers. fn: the body of the task. */
#define RADIX_SORT(name, type, map, fn)                               \
    int fj_sort_##name(type *a, size_t n, const fj_algo_options *how) \
    {                                                                 \
        int err = sort_radix(a, n, sizeof *a, map, fn, how);          \
        return err == FJ_ENOMEM ? compare_##name(a, n, how) : err;    \
    }

RADIX_SORT(i32, int32_t, &signed_map_32, radix_32)
RADIX_SORT(u32, uint32_t, &unsigned_map, radix_32)
RADIX_SORT(f32, float, &float_map_32, radix_32)
RADIX_SORT(i64, int64_t, &signed_map_64, radix_64)
RADIX_SORT(u64, uint64_t, &unsigned_map, radix_64)
RADIX_SORT(f64, double, &float_map_64, radix_64)
RADIX_SORT(kv32, fj_kv32, &unsigned_map, radix_kv32)
RADIX_SORT(kv64, fj_kv64, &unsigned_map, radix_kv64)

/* ---- Sorts by counting ----------------------------------------------------------------------- */

/* When the result is written, every chunk but the last one has at least this many numbers. */
enum { FILL_MIN = 4096 };

/* A sort of numbers of 8 or 16 bits. Number x has the key x ^ sign, where `sign` is the sign bit of
 * a signed type and 0 for an unsigned type. The keys are unsigned, and have the order of the
 * numbers. There are `keys` different ones. */
typedef struct counting_call {
    fj_task task;
    fji_job job;
    void *a;
    size_t n;
    size_t size; /* bytes of a number: 1 or 2 */
    size_t keys, sign;
    uint64_t *count; /* count[k] is first how many numbers have key k, then how many have a lower
                      * key */
} counting_call;

static int count_step(void *context, size_t lo, size_t hi, void *acc)
{
    const counting_call *c = context;
    const uint8_t *bytes = c->a;
    const uint16_t *words = c->a;
    uint64_t *count = acc;

    if (c->size == 1)
        for (size_t i = lo; i < hi; i++) count[bytes[i] ^ c->sign]++;
    else
        for (size_t i = lo; i < hi; i++) count[words[i] ^ c->sign]++;
    return FJ_OK;
}

static int count_combine(void *left, const void *right, void *arg)
{
    const counting_call *c = arg;
    uint64_t *a = left;
    const uint64_t *b = right;

    for (size_t i = 0; i < c->keys; i++) a[i] += b[i];
    return FJ_OK;
}

/* Returns the key of the number with index i in the result. It is the last key k with
 * count[k] <= i: at most i numbers have a lower key. */
static size_t key_at(const counting_call *c, size_t i)
{
    size_t lo = 0, hi = c->keys;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->count[mid] <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Writes the number with the given key to the indices at <= i < end. */
static void fill(const counting_call *c, size_t at, size_t end, size_t key)
{
    uint16_t *words = c->a;

    if (c->size == 1)
        memset((uint8_t *)c->a + at, (int)(key ^ c->sign), end - at);
    else
        for (; at < end; at++) words[at] = (uint16_t)(key ^ c->sign);
}

/* Writes the sorted elements, as the counts give them, to the indices lo <= i < hi of the array. */
static int fill_step(void *context, size_t lo, size_t hi, void *acc)
{
    const counting_call *c = context;

    (void)acc;
    for (size_t key = lo < hi ? key_at(c, lo) : 0; lo < hi; key++) {
        size_t end = key + 1 < c->keys && c->count[key + 1] < hi ? c->count[key + 1] : hi;
        fill(c, lo, end, key);
        lo = end;
    }
    return FJ_OK;
}

/* Replaces count[k], the number of elements with key k, by the number of elements with a lower
 * key. */
static void counts_to_places(counting_call *c)
{
    uint64_t at = 0;

    for (size_t i = 0; i < c->keys; i++) {
        uint64_t here = c->count[i];
        c->count[i] = at;
        at += here;
    }
}

static int counting_run(fj_task *t)
{
    counting_call *c = (counting_call *)t;
    fji_split count, write;

    fji_split_init_nested(&count, &c->job, count_step, c, &(fj_algo_options){.min_grain = c->keys});
    fji_split_init_nested(&write, &c->job, fill_step, c, &(fj_algo_options){.min_grain = FILL_MIN});
    write.job.progress = c->job.progress;
    count.combine = count_combine;
    count.arg = c;
    count.size = c->keys * sizeof *c->count;
    int code = fji_split_run(&count, NULL, 0, c->n, c->count);
    if (code != FJ_OK) return code;
    counts_to_places(c);
    code = fji_split_run(&write, NULL, 0, c->n, NULL);
    /* The chunks that are done have overwritten elements, so the array is written completely even
     * after a cancellation. */
    if (code != FJ_OK) (void)fill_step(c, 0, c->n, NULL);
    return code;
}

/* Sorts n numbers of `size` bytes, 1 or 2, by counting. `sign` is the sign bit of a signed type,
 * and 0 for an unsigned type. Returns FJ_ENOMEM, and leaves the array unchanged, if there is no
 * memory for the counts or to run the task in a pool. Otherwise returns FJ_EINVAL if an option is
 * invalid, or what fji_job_run() returns. */
static int sort_counting(void *a, size_t n, size_t size, size_t sign, const fj_algo_options *how)
{
    counting_call c = {.a = a, .n = n, .size = size, .sign = sign, .keys = (size_t)1 << 8 * size};
    uint64_t stack[256];

    c.count = size == 1 ? stack : fji_algo_alloc_for(how, c.keys * sizeof *c.count);
    if (c.count == NULL) return FJ_ENOMEM;
    memset(c.count, 0, c.keys * sizeof *c.count);
    int err = fji_job_init(&c.job, how, n);
    if (err == FJ_OK) {
        fj_task_init(&c.task, counting_run);
        err = fji_job_run(&c.job, how, &c.task);
    }
    if (c.count != stack) fji_algo_free(c.count);
    return err;
}

/* Defines fj_sort_<name>(). It sorts an array of at least `min` numbers by counting. It sorts a
 * shorter array by comparisons, and any array for which sort_counting() returns FJ_ENOMEM. `sign`
 * is the sign bit of a signed type, and 0 for an unsigned type. */
#define COUNTING_SORT(name, type, min, sign)                           \
    int fj_sort_##name(type *a, size_t n, const fj_algo_options *how)  \
    {                                                                  \
        int err = FJ_ENOMEM;                                           \
        if (!fji_array_ok(a, n, sizeof *a)) return FJ_EINVAL;          \
        if (n >= min) err = sort_counting(a, n, sizeof *a, sign, how); \
        return err == FJ_ENOMEM ? compare_##name(a, n, how) : err;     \
    }

COUNTING_SORT(i8, int8_t, 128, 0x80)
COUNTING_SORT(u8, uint8_t, 128, 0)
COUNTING_SORT(i16, int16_t, 8192, 0x8000)
COUNTING_SORT(u16, uint16_t, 8192, 0)
