/* SPDX-License-Identifier: MIT */
/*
 * scan.c - scans (running totals)
 *
 * A scan is a loop of prefix.h. The fold function computes the total of one chunk. The emit
 * function gets the total of all elements left of a chunk, adds the elements of the chunk to it,
 * and writes the running total at each element.
 */
#include <string.h>

#include "plat/stream.h"
#include "prefix.h"

/* ---- With functions of the caller ------------------------------------------------------------ */

struct scan_calls {
    fj_fold_fn *fold;
    fj_emit_fn *emit;
    void *arg;
};

static int calls_fold(void *context, size_t lo, size_t hi, void *acc, uint64_t *note)
{
    const struct scan_calls *s = context;

    (void)note;
    return s->fold(lo, hi, acc, s->arg);
}

static int calls_emit(void *context, size_t lo, size_t hi, void *acc, uint64_t *note)
{
    const struct scan_calls *s = context;

    (void)note;
    return s->emit(lo, hi, acc, s->arg);
}

int fj_scan(size_t begin, size_t end, fj_fold_fn *fold, fj_combine_fn *combine, fj_emit_fn *emit,
            const void *identity, size_t size, size_t stride, void *arg, void *total,
            const fj_algo_options *how)
{
    struct scan_calls s = {fold, emit, arg};
    fji_prefix_loop loop = {.fold = calls_fold,
                            .emit = calls_emit,
                            .context = &s,
                            .combine = combine,
                            .arg = arg,
                            .identity = identity,
                            .size = size,
                            .stride = stride};

    if (fold == NULL || combine == NULL || emit == NULL || identity == NULL) return FJ_EINVAL;
    if (begin > end || size == 0 || size > PTRDIFF_MAX) return FJ_EINVAL;
    int err = fji_job_init(&loop.job, how, end - begin);
    return err != FJ_OK ? err : fji_prefix_run(&loop, how, begin, end, total);
}

/* ---- Elements of any type -------------------------------------------------------------------- */

struct scan_each {
    const unsigned char *in;
    unsigned char *out;
    size_t size;
    fj_op_fn *op;
    void *arg;
};

/* Copies an element of `size` bytes. The frequent sizes are constants, so that the compiler copies
 * these elements without a call of memcpy(). */
static inline void element_copy(void *to, const void *from, size_t size)
{
    switch (size) {
        case 4: memcpy(to, from, 4); break;
        case 8: memcpy(to, from, 8); break;
        case 16: memcpy(to, from, 16); break;
        default: memcpy(to, from, size); break;
    }
}

static int each_fold(void *context, size_t lo, size_t hi, void *acc, uint64_t *note)
{
    const struct scan_each *s = context;

    (void)note;
    for (size_t i = lo; i < hi; i++) s->op(acc, s->in + i * s->size, s->arg);
    return FJ_OK;
}

static int each_combine(void *left, const void *right, void *arg)
{
    const struct scan_each *s = arg;

    s->op(left, right, s->arg);
    return FJ_OK;
}

static int each_inclusive(void *context, size_t lo, size_t hi, void *acc, uint64_t *note)
{
    const struct scan_each *s = context;

    (void)note;
    for (size_t i = lo; i < hi; i++) {
        s->op(acc, s->in + i * s->size, s->arg);
        element_copy(s->out + i * s->size, acc, s->size);
    }
    return FJ_OK;
}

/* The emit function of an exclusive scan: writes, for each element, the total of the elements
 * before it. If in == out, this write overwrites the element. The function therefore copies the
 * total first, then adds the element to the total, and then writes the copy. The copy is on the
 * stack or, if it has more than FJI_PREFIX_INLINE_BYTES, in the bytes behind the accumulator that
 * the member `extra` of the loop has reserved. */
static int each_exclusive(void *context, size_t lo, size_t hi, void *acc, uint64_t *note)
{
    _Alignas(max_align_t) unsigned char copy[FJI_PREFIX_INLINE_BYTES];
    const struct scan_each *s = context;
    unsigned char *before = s->size <= sizeof copy ? copy : (unsigned char *)acc + s->size;

    (void)note;
    for (size_t i = lo; i < hi; i++) {
        element_copy(before, acc, s->size);
        s->op(acc, s->in + i * s->size, s->arg);
        element_copy(s->out + i * s->size, before, s->size);
    }
    return FJ_OK;
}

/* Returns whether the arguments of fj_scan_each() or of a scan of numbers are valid: `flags` is one
 * of the two FJ_SCAN_ values, and the two arrays of n elements of `size` bytes are the same or do
 * not overlap. Each of them may be NULL only if n is 0. */
static bool arrays_ok(const void *in, const void *out, size_t n, size_t size, unsigned flags)
{
    if (flags != FJ_SCAN_INCLUSIVE && flags != FJ_SCAN_EXCLUSIVE) return false;
    if (!fji_array_ok(in, n, size) || !fji_array_ok(out, n, size)) return false;
    return in == out || !fji_overlap(in, n * size, out, n * size);
}

int fj_scan_each(const void *in, void *out, size_t n, size_t size, fj_op_fn *op,
                 const void *identity, void *arg, unsigned flags, const fj_algo_options *how)
{
    struct scan_each s = {in, out, size, op, arg};
    fji_prefix_loop loop = {.fold = each_fold,
                            .emit = flags == FJ_SCAN_EXCLUSIVE ? each_exclusive : each_inclusive,
                            .context = &s,
                            .combine = each_combine,
                            .arg = &s,
                            .identity = identity,
                            .size = size,
                            .extra = flags == FJ_SCAN_EXCLUSIVE ? size : 0};

    if (op == NULL || identity == NULL || size == 0 || size > PTRDIFF_MAX / 2) return FJ_EINVAL;
    if (!arrays_ok(in, out, n, size, flags)) return FJ_EINVAL;
    loop.stride = 2 * size;
    int err = fji_job_init(&loop.job, how, n);
    return err != FJ_OK ? err : fji_prefix_run(&loop, how, 0, n, NULL);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Sums are written with stores that bypass the caches (plat/stream.h) if `out` has at least this
 * many bytes and is not `in`. */
#define STREAM_BYTES ((size_t)1 << 25)

struct scan_sum {
    const void *in;
    void *out;
};

/* Defines the emit function `name`, which calls fn() with `streaming` as a constant. true: fn()
 * writes with stores that bypass the caches. */
#define SUM_EMIT(name, fn, streaming)                                               \
    static int name(void *context, size_t lo, size_t hi, void *acc, uint64_t *note) \
    {                                                                               \
        (void)note;                                                                 \
        return fn(context, lo, hi, acc, streaming);                                 \
    }

/*
 * Defines the functions for the sums of one type. Their names begin with `name`. N is the type in
 * which sums are computed: unsigned for integers, so that an overflow is defined. An addition that
 * needs the result of the previous one waits for it. The emit functions therefore add up four
 * elements first, so that only one addition for every four elements waits for the previous total.
 * The fold function has eight independent sums.
 *
 * Results of at least STREAM_BYTES are written with stores that bypass the caches. The results of a
 * scan with in == out are not, because their cache lines were just read.
 */
#define SUMS(name, N)                                                                           \
    static int name##_fold(void *context, size_t lo, size_t hi, void *acc, uint64_t *note)      \
    {                                                                                           \
        const N *in = ((const struct scan_sum *)context)->in;                                   \
        N a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;                               \
        size_t i = lo;                                                                          \
                                                                                                \
        (void)note;                                                                             \
        for (; hi - i >= 8; i += 8) {                                                           \
            a += in[i], b += in[i + 1], c += in[i + 2], d += in[i + 3];                         \
            e += in[i + 4], f += in[i + 5], g += in[i + 6], h += in[i + 7];                     \
        }                                                                                       \
        for (; i < hi; i++) a += in[i];                                                         \
        *(N *)acc += ((a + b) + (c + d)) + ((e + f) + (g + h));                                 \
        return FJ_OK;                                                                           \
    }                                                                                           \
                                                                                                \
    static int name##_combine(void *left, const void *right, void *arg)                         \
    {                                                                                           \
        (void)arg;                                                                              \
        *(N *)left += *(const N *)right;                                                        \
        return FJ_OK;                                                                           \
    }                                                                                           \
                                                                                                \
    FJI_INLINE void name##_put(N *to, N value, bool streaming)                                  \
    {                                                                                           \
        if (streaming)                                                                          \
            fji_stream(to, &value, sizeof value);                                               \
        else                                                                                    \
            *to = value;                                                                        \
    }                                                                                           \
                                                                                                \
    FJI_INLINE int name##_inclusive_body(const struct scan_sum *s, size_t lo, size_t hi,        \
                                         void *acc, bool streaming)                             \
    {                                                                                           \
        const N *in = s->in;                                                                    \
        N *out = s->out, sum = *(N *)acc;                                                       \
        size_t i = lo;                                                                          \
                                                                                                \
        for (; hi - i >= 4; i += 4) {                                                           \
            N a = in[i], b = a + in[i + 1], c = in[i + 2], d = b + (c + in[i + 3]);             \
            name##_put(&out[i], sum + a, streaming);                                            \
            name##_put(&out[i + 1], sum + b, streaming);                                        \
            name##_put(&out[i + 2], sum + (b + c), streaming);                                  \
            name##_put(&out[i + 3], sum += d, streaming);                                       \
        }                                                                                       \
        for (; i < hi; i++) name##_put(&out[i], sum += in[i], streaming);                       \
        *(N *)acc = sum;                                                                        \
        if (streaming) fji_stream_end();                                                        \
        return FJ_OK;                                                                           \
    }                                                                                           \
                                                                                                \
    FJI_INLINE int name##_exclusive_body(const struct scan_sum *s, size_t lo, size_t hi,        \
                                         void *acc, bool streaming)                             \
    {                                                                                           \
        const N *in = s->in;                                                                    \
        N *out = s->out, sum = *(N *)acc;                                                       \
        size_t i = lo;                                                                          \
                                                                                                \
        for (; hi - i >= 4; i += 4) {                                                           \
            N a = in[i], b = a + in[i + 1], c = in[i + 2], d = b + (c + in[i + 3]);             \
            name##_put(&out[i], sum, streaming);                                                \
            name##_put(&out[i + 1], sum + a, streaming);                                        \
            name##_put(&out[i + 2], sum + b, streaming);                                        \
            name##_put(&out[i + 3], sum + (b + c), streaming);                                  \
            sum += d;                                                                           \
        }                                                                                       \
        for (; i < hi; i++) {                                                                   \
            N before = sum;                                                                     \
            sum += in[i];                                                                       \
            name##_put(&out[i], before, streaming);                                             \
        }                                                                                       \
        *(N *)acc = sum;                                                                        \
        if (streaming) fji_stream_end();                                                        \
        return FJ_OK;                                                                           \
    }                                                                                           \
                                                                                                \
    SUM_EMIT(name##_inclusive, name##_inclusive_body, false)                                    \
    SUM_EMIT(name##_inclusive_stream, name##_inclusive_body, true)                              \
    SUM_EMIT(name##_exclusive, name##_exclusive_body, false)                                    \
    SUM_EMIT(name##_exclusive_stream, name##_exclusive_body, true)                              \
                                                                                                \
    static int name##_run(const void *in, void *out, size_t n, unsigned flags,                  \
                          const fj_algo_options *how)                                           \
    {                                                                                           \
        static const N zero;                                                                    \
        bool streaming = in != out && n >= STREAM_BYTES / sizeof zero;                          \
        struct scan_sum s = {in, out};                                                          \
        fji_prefix_loop loop = {.fold = name##_fold,                                            \
                                .emit = streaming ? name##_inclusive_stream : name##_inclusive, \
                                .context = &s,                                                  \
                                .combine = name##_combine,                                      \
                                .identity = &zero,                                              \
                                .size = sizeof zero,                                            \
                                .stride = 2 * sizeof zero};                                     \
                                                                                                \
        if (!arrays_ok(in, out, n, sizeof zero, flags)) return FJ_EINVAL;                       \
        if (flags == FJ_SCAN_EXCLUSIVE)                                                         \
            loop.emit = streaming ? name##_exclusive_stream : name##_exclusive;                 \
        int err = fji_job_init(&loop.job, how, n);                                              \
        return err != FJ_OK ? err : fji_prefix_run(&loop, how, 0, n, NULL);                     \
    }

SUMS(sum_32, uint32_t)
SUMS(sum_64, uint64_t)
SUMS(sum_f32, float)
SUMS(sum_f64, double)

int fj_scan_i32(const int32_t *in, int32_t *out, size_t n, unsigned flags,
                const fj_algo_options *how)
{
    return sum_32_run(in, out, n, flags, how);
}

int fj_scan_i64(const int64_t *in, int64_t *out, size_t n, unsigned flags,
                const fj_algo_options *how)
{
    return sum_64_run(in, out, n, flags, how);
}

int fj_scan_f32(const float *in, float *out, size_t n, unsigned flags, const fj_algo_options *how)
{
    return sum_f32_run(in, out, n, flags, how);
}

int fj_scan_f64(const double *in, double *out, size_t n, unsigned flags, const fj_algo_options *how)
{
    return sum_f64_run(in, out, n, flags, how);
}
