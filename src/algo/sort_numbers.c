/* SPDX-License-Identifier: MIT */
/*
 * sort_numbers.c - sorts of numbers: by digits, by counting, or without memory by comparing
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

/* ---- By digits ---------------------------------------------------------------------------------- */

enum { ROOM = 4096 }; /* bytes of a buffer that needs no memory */

static const fji_map unsigned_map = {0, 0};
static const fji_map signed_map_32 = {0x80000000u, 0};
static const fji_map signed_map_64 = {(uint64_t)INT64_MIN, 0};
static const fji_map float_map_32 = {0x80000000u, INT32_MAX};
static const fji_map float_map_64 = {(uint64_t)INT64_MIN, INT64_MAX};

typedef struct digits {
    fj_task task;
    fji_job job;
    void *a, *buffer;
    size_t n;
    const fji_map *map;
} digits;

static int digits_32(fj_task *t)
{
    digits *d = (digits *)t;
    return fji_radix_32(&d->job, d->a, d->buffer, d->n, d->map);
}

static int digits_64(fj_task *t)
{
    digits *d = (digits *)t;
    return fji_radix_64(&d->job, d->a, d->buffer, d->n, d->map);
}

static int digits_kv32(fj_task *t)
{
    digits *d = (digits *)t;
    return fji_radix_kv32(&d->job, d->a, d->buffer, d->n);
}

static int digits_kv64(fj_task *t)
{
    digits *d = (digits *)t;
    return fji_radix_kv64(&d->job, d->a, d->buffer, d->n);
}

/* Sorts by digits; FJ_ENOMEM: nothing was done. */
static int sort_digits(void *a, size_t n, size_t size, const fji_map *map, fj_task_fn *fn,
                       const fj_algo_options *how)
{
    digits d = {.a = a, .n = n, .map = map};
    _Alignas(16) char room[ROOM];

    if (a == NULL && n != 0) return FJ_EINVAL;
    if (!fji_fits(n, size)) return FJ_EINVAL;
    void *memory = n * size > sizeof room ? fji_algo_alloc(n * size) : NULL;
    if (n * size > sizeof room && memory == NULL) return FJ_ENOMEM;
    d.buffer = memory != NULL ? memory : room;
    int err = fji_job_init(&d.job, how, n);
    if (err == FJ_OK && n != 0) {
        fj_task_init(&d.task, fn);
        err = fji_job_run(&d.job, how, &d.task);
    }
    fji_algo_free(memory);
    return err;
}

/* By digits, and if there is no memory for it by comparing. */
#define BY_DIGITS(name, type, map, fn)                                \
    int fj_sort_##name(type *a, size_t n, const fj_algo_options *how) \
    {                                                                 \
        int err = sort_digits(a, n, sizeof *a, map, fn, how);         \
        return err == FJ_ENOMEM ? compare_##name(a, n, how) : err;    \
    }

BY_DIGITS(i32, int32_t, &signed_map_32, digits_32)
BY_DIGITS(u32, uint32_t, &unsigned_map, digits_32)
BY_DIGITS(f32, float, &float_map_32, digits_32)
BY_DIGITS(i64, int64_t, &signed_map_64, digits_64)
BY_DIGITS(u64, uint64_t, &unsigned_map, digits_64)
BY_DIGITS(f64, double, &float_map_64, digits_64)
BY_DIGITS(kv32, fj_kv32, &unsigned_map, digits_kv32)
BY_DIGITS(kv64, fj_kv64, &unsigned_map, digits_kv64)

/* ---- By counting -------------------------------------------------------------------------------- */

enum { FILL_LEAST = 4096 }; /* numbers written at a time */

/*
 * Numbers of one or two bytes: what has been counted is written. `turn` is the sign, turned
 * round: number i is the key i ^ turn.
 */
typedef struct counting {
    fj_task task;
    fji_job job;
    void *a;
    size_t n;
    size_t size; /* 1 or 2 */
    size_t keys, turn;
    uint64_t *count; /* of each number; then how many come before it */
} counting;

static int count_step(void *context, size_t lo, size_t hi, void *acc)
{
    const counting *c = context;
    const uint8_t *bytes = c->a;
    const uint16_t *words = c->a;
    uint64_t *count = acc;

    if (c->size == 1)
        for (size_t i = lo; i < hi; i++) count[bytes[i] ^ c->turn]++;
    else
        for (size_t i = lo; i < hi; i++) count[words[i] ^ c->turn]++;
    return FJ_OK;
}

static int count_combine(void *left, const void *right, void *arg)
{
    const counting *c = arg;
    uint64_t *a = left;
    const uint64_t *b = right;

    for (size_t i = 0; i < c->keys; i++) a[i] += b[i];
    return FJ_OK;
}

/* The number that stands at place i, by what comes before each: the last that begins there. */
static size_t key_at(const counting *c, size_t i)
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

static void fill(const counting *c, size_t at, size_t end, size_t key)
{
    uint16_t *words = c->a;

    if (c->size == 1)
        memset((uint8_t *)c->a + at, (int)(key ^ c->turn), end - at);
    else
        for (; at < end; at++) words[at] = (uint16_t)(key ^ c->turn);
}

static int fill_step(void *context, size_t lo, size_t hi, void *acc)
{
    const counting *c = context;

    (void)acc;
    for (size_t key = lo < hi ? key_at(c, lo) : 0; lo < hi; key++) {
        size_t end = key + 1 < c->keys && c->count[key + 1] < hi ? c->count[key + 1] : hi;
        fill(c, lo, end, key);
        lo = end;
    }
    return FJ_OK;
}

/* Sets up a loop of the job. */
static fji_split loop_of(counting *c, fji_step *step, fj_progress *progress, size_t min_grain)
{
    fji_split s = {.step = step, .context = c};
    const fj_algo_options how = {.min_grain = min_grain};

    (void)fji_job_init(&s.job, &how, 0); /* nothing in it can be wrong */
    s.job.progress = progress;
    s.job.caller = c->job.caller;
    return s;
}

static int counting_run(fj_task *t)
{
    counting *c = (counting *)t;
    fji_split count = loop_of(c, count_step, NULL, c->keys);
    fji_split write = loop_of(c, fill_step, c->job.progress, FILL_LEAST);
    uint64_t at = 0;

    count.combine = count_combine;
    count.arg = c;
    count.size = c->keys * sizeof *c->count;
    int code = fji_split_run(&count, NULL, 0, c->n, c->count);
    if (code != FJ_OK) return code;
    for (size_t i = 0; i < c->keys; i++) {
        uint64_t here = c->count[i];
        c->count[i] = at;
        at += here;
    }
    code = fji_split_run(&write, NULL, 0, c->n, NULL);
    if (code != FJ_OK) (void)fill_step(c, 0, c->n, NULL); /* half done, it has other elements */
    return code;
}

/* As sort_digits(). */
static int sort_counting(void *a, size_t n, size_t size, size_t turn, const fj_algo_options *how)
{
    counting c = {.a = a, .n = n, .size = size, .turn = turn, .keys = (size_t)1 << 8 * size};
    uint64_t room[256];

    c.count = size == 1 ? room : fji_algo_alloc(c.keys * sizeof *c.count);
    if (c.count == NULL) return FJ_ENOMEM;
    memset(c.count, 0, c.keys * sizeof *c.count);
    int err = fji_job_init(&c.job, how, n);
    if (err == FJ_OK) {
        fj_task_init(&c.task, counting_run);
        err = fji_job_run(&c.job, how, &c.task);
    }
    if (c.count != room) fji_algo_free(c.count);
    return err;
}

/* By counting from `least` numbers on, below and without memory by comparing. */
#define BY_COUNTING(name, type, least, turn)                             \
    int fj_sort_##name(type *a, size_t n, const fj_algo_options *how)    \
    {                                                                    \
        int err = FJ_ENOMEM;                                             \
        if (a == NULL && n != 0) return FJ_EINVAL;                       \
        if (!fji_fits(n, sizeof *a)) return FJ_EINVAL;                   \
        if (n >= least) err = sort_counting(a, n, sizeof *a, turn, how); \
        return err == FJ_ENOMEM ? compare_##name(a, n, how) : err;       \
    }

BY_COUNTING(i8, int8_t, 128, 0x80)
BY_COUNTING(u8, uint8_t, 128, 0)
BY_COUNTING(i16, int16_t, 8192, 0x8000)
BY_COUNTING(u16, uint16_t, 8192, 0)
