/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/algo.h - parallel algorithms: loops, reductions, scans, searches, sorts, pipelines
 *
 *     static int brighten(size_t begin, size_t end, void *arg)
 *     {
 *         float *pixel = arg;
 *         for (size_t i = begin; i < end; i++) pixel[i] *= 1.2f;
 *         return FJ_OK;
 *     }
 *
 *     int err = fj_for(0, n, brighten, pixel, NULL);
 *
 * Written on <forkjoin.h> alone. Bodies get a part of the range rather than one element, so
 * that the compiler sees the loop. How large the parts are is found while it runs: work is
 * handed out only when somebody is there to take it, so that a short loop costs little more
 * than a call, and an uneven one is balanced.
 *
 * Rules for all of it
 *   where    from any thread, inside or outside a task, nested to any depth. `how` says on
 *            which pool; NULL, or a struct of zeros, is the default for everything.
 *   errors   the first code other than 0 that a body returns ends the call with that code;
 *            parts that are not begun are skipped, those that run are waited for.
 *   cancel   by the token in `how`, by the token or future of the calling task, or when the
 *            pool stops: FJ_ECANCELED, after at most the parts that run at that moment.
 *   order    what the caller did before happens before every body, what the bodies did
 *            happens before the return. Bodies run at the same time must not write to the
 *            same place.
 *   returns  FJ_OK; a code of a body; FJ_ECANCELED; FJ_EINVAL for what cannot be meant: NULL
 *            where something is needed, begin > end, a size of 0, n * size beyond memory, bad
 *            options, before anything is run; FJ_EREJECTED if the pool is shut down. Results
 *            by pointer are written on FJ_OK only. What a body has done stays done. FJ_ENOMEM
 *            where it says so, and if there is no memory for the common pool.
 *   memory   nothing is allocated unless it says so, and never for each part. Where memory is
 *            wanted and there is none, it goes on in a slower way, unless told otherwise.
 *   sizes    empty ranges and those of one element are as good as any; ends may be SIZE_MAX.
 */
#ifndef FORKJOIN_ALGO_H
#define FORKJOIN_ALGO_H

#include <forkjoin.h>

FJI_EXTERN_C_BEGIN

/* ---- Progress ---------------------------------------------------------------------------- */

/*
 * How far a computation is, for other threads to read. Members are private. One may serve
 * several calls, also at the same time.
 */
typedef struct fj_progress {
    uint64_t total;
    uint64_t done;
    int adds; /* every call adds its own number to the total */
    int spare;
} fj_progress;

/* total: the number of elements in all; 0: every call adds its own when it begins. */
FJ_API void fj_progress_init(fj_progress *p, uint64_t total);

/* Counts n more as done: by the algorithms themselves, or by a body that knows better. */
FJ_API void fj_progress_add(fj_progress *p, uint64_t n);

/* How many are done, of how many; from any thread. */
FJ_API uint64_t fj_progress_done(const fj_progress *p);
FJ_API uint64_t fj_progress_total(const fj_progress *p);

/*
 * A line on a terminal that shows a progress, with the time it will still take, until it is
 * stopped. Has a thread of its own, which blocks all signals. Where `fd` is no terminal, and
 * before 0.1 s are over, nothing is shown. A child of fork() has no bar: there stop only frees.
 *
 *   owns     `label` is copied; *p must stay until fj_progress_bar_stop(), which removes the
 *            line and frees the bar (NULL: nothing).
 *   returns  FJ_OK and *bar; FJ_EINVAL for NULL, FJ_ENOMEM, FJ_EAGAIN: no thread.
 */
typedef struct fj_progress_bar fj_progress_bar;

FJ_API FJ_NODISCARD int fj_progress_bar_start(fj_progress_bar **bar, const fj_progress *p,
                                              const char *label, int fd);
FJ_API void fj_progress_bar_stop(fj_progress_bar *bar);

/* ---- How --------------------------------------------------------------------------------- */

/*
 * How something is to be done. Zero means default for every member, so that
 * `&(fj_algo_options){.pool = pool}` says it all. Parts begin at a multiple of grain or min_grain from
 * where the range begins; only the last one is smaller.
 */
typedef struct fj_algo_options {
    fj_pool *pool;         /* NULL: that of the calling task; outside: the common pool */
    fj_token *token;       /* cancels it */
    fj_progress *progress; /* counts elements that are done */
    size_t grain;          /* elements of a part; 0: as many as take 15 to 60 microseconds. With
                              1 each element is worth a task: also two of them are shared */
    size_t min_grain;      /* with grain 0: at least so many, and */
    size_t max_grain;      /* at most so many; 0: any number. For when cheap elements come
                              before very dear ones, of which a part may then have many */
    uint64_t reserved[2];  /* 0 */
} fj_algo_options;

/* ---- Loops ------------------------------------------------------------------------------- */

/* Does something for each i with begin <= i < end. */
typedef int fj_for_fn(size_t begin, size_t end, void *arg);

/*
 * Calls body on parts that together are begin to end, each element once.
 *
 *   Java     IntStream.range(begin, end).parallel().forEach().
 */
FJ_API FJ_NODISCARD int fj_for(size_t begin, size_t end, fj_for_fn *body, void *arg,
                               const fj_algo_options *how);

/* Does something for the tile of rows r0 <= r < r1 and columns c0 <= c < c1. */
typedef int fj_for_2d_fn(size_t r0, size_t r1, size_t c0, size_t c1, void *arg);

/*
 * The same over rows times columns, in tiles. how->grain is the side of a tile; 0: chosen by
 * the number of elements, at most 64; tiles at the right and lower edge are smaller. Progress
 * counts elements.
 */
FJ_API FJ_NODISCARD int fj_for_2d(size_t rows, size_t columns, fj_for_2d_fn *body, void *arg,
                                  const fj_algo_options *how);

/* Makes out[0] to out[n - 1] of in[0] to in[n - 1]. */
typedef int fj_transform_fn(const void *in, void *out, size_t n, void *arg);

/*
 * Calls body on parts of two arrays with n elements of in_size and out_size bytes, at the same
 * places in both. They may be the same array if the sizes are the same.
 *
 *   Java     Arrays.parallelSetAll().
 */
FJ_API FJ_NODISCARD int fj_transform(const void *in, size_t in_size, void *out, size_t out_size,
                                     size_t n, fj_transform_fn *body, void *arg,
                                     const fj_algo_options *how);

/* Calls every one of n functions; a code other than 0 keeps those from being called that were
 * not begun. */
typedef struct fj_function {
    fj_action_fn *fn;
    void *arg;
} fj_function;

FJ_API FJ_NODISCARD int fj_invoke_functions(const fj_function *steps, size_t n,
                                            const fj_algo_options *how);

/* ---- Reductions -------------------------------------------------------------------------- */

/* Takes begin <= i < end into *acc, from left to right. */
typedef int fj_fold_fn(size_t begin, size_t end, void *acc, void *arg);

/* *left becomes left combined with right: all that was folded into one, then the other. */
typedef int fj_combine_fn(void *left, const void *right, void *arg);

/*
 * Folds begin to end into *result: `size` bytes, which start as a copy of *identity. A part
 * that somebody else has taken is folded into a copy of its own, and then combined with what
 * lies left of it: combine has to be associative, not commutative. It is called only where
 * work was taken, so the tree differs from run to run, and with it the last bits of a float.
 *
 *   memory   if size > 256: `size` bytes, or FJ_ENOMEM; if size > 128: as many for each part
 *            that is taken, until it is combined; without memory it is folded by the one who
 *            gave it away. All of it is aligned as by malloc(), copied and forgotten bytewise.
 *   Java     Stream.parallel().reduce(identity, accumulator, combiner).
 */
FJ_API FJ_NODISCARD int fj_reduce(size_t begin, size_t end, fj_fold_fn *fold,
                                  fj_combine_fn *combine, const void *identity, size_t size,
                                  void *arg, void *result, const fj_algo_options *how);

/*
 * The same by a tree that depends only on end - begin and how->grain, not on workers or time:
 * the same bits in every run and on every machine whose fold and combine do the same. Leaves
 * have how->grain elements; 0: about half the root of their number, at least one; a node over k
 * leaves has k - k / 2 of them on its left. min_grain and max_grain are not looked at.
 *
 *   memory   with size > 128: size * (depth of the tree, at most 65) for each part that is
 *            taken; FJ_ENOMEM if the first cannot be had.
 */
FJ_API FJ_NODISCARD int fj_reduce_deterministic(size_t begin, size_t end, fj_fold_fn *fold,
                                                fj_combine_fn *combine, const void *identity,
                                                size_t size, void *arg, void *result,
                                                const fj_algo_options *how);

/*
 * Counts by key: `count` adds the elements begin <= i < end to counts[0] to counts[keys - 1].
 * The result is added to what stands in counts; nothing is added unless FJ_OK.
 *
 *   memory   keys * 8 bytes, and as many for each part that is taken, as fj_reduce();
 *            FJ_ENOMEM only if the first cannot be had.
 */
typedef int fj_count_fn(size_t begin, size_t end, uint64_t *counts, void *arg);

FJ_API FJ_NODISCARD int fj_histogram(size_t begin, size_t end, fj_count_fn *count, void *arg,
                                     uint64_t *counts, size_t keys, const fj_algo_options *how);

/* The same for arrays of keys. A key that is not below `keys` is FJ_EINVAL. */
FJ_API FJ_NODISCARD int fj_histogram_u8(const uint8_t *key, size_t n, uint64_t *counts, size_t keys,
                                        const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_histogram_u32(const uint32_t *key, size_t n, uint64_t *counts,
                                         size_t keys, const fj_algo_options *how);

/* ---- Searches ---------------------------------------------------------------------------- */

/* Sets *at, which is `end`, to the first i with begin <= i < end that is looked for, if any. Any
 * other value means that there is none. */
typedef int fj_find_fn(size_t begin, size_t end, size_t *at, void *arg);

/*
 * The lowest i that is looked for, or any; `end` if there is none. Parts that cannot matter
 * any more are not searched.
 *
 *   Java     Stream.findFirst(), findAny().
 */
FJ_API FJ_NODISCARD int fj_find(size_t begin, size_t end, fj_find_fn *find, void *arg, size_t *at,
                                const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_find_any(size_t begin, size_t end, fj_find_fn *find, void *arg,
                                    size_t *at, const fj_algo_options *how);

/* Whether element x is meant: positive yes, 0 no, negative: the code that ends the call. */
typedef int fj_test_fn(const void *x, void *arg);

/*
 * Whether one, or every, element of an array is meant; of none: 0 and 1.
 *
 *   Java     anyMatch(), allMatch().
 */
FJ_API FJ_NODISCARD int fj_any(const void *base, size_t n, size_t size, fj_test_fn *test, void *arg,
                               int *yes, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_all(const void *base, size_t n, size_t size, fj_test_fn *test, void *arg,
                               int *yes, const fj_algo_options *how);

/* ---- Scans ------------------------------------------------------------------------------- */

/*
 * Makes the results of begin <= i < end. *acc is what stands before them; afterwards, what
 * stands before end: as if they had been folded into it.
 */
typedef int fj_emit_fn(size_t begin, size_t end, void *acc, void *arg);

/*
 * Running totals: each part is folded, so that those right of it can begin, and emitted when
 * all that lies left of it is known; a part that has no one waiting for it is emitted only.
 * Whether the result is inclusive or exclusive, and whether it is written over its input, is
 * up to emit, which is called once for each part, after fold if fold is called on it. *total,
 * unless NULL, gets what stands before `end`; it starts as *identity.
 *
 *   grain    elements of a part; 0: so many that `stride` bytes for each fit a cache.
 *   memory   when others help: (size + 16) * parts, at most 16384 of them; without it the
 *            calling thread does it alone. If size > 256, `size` bytes, or FJ_ENOMEM.
 *   Java     Arrays.parallelPrefix().
 */
FJ_API FJ_NODISCARD int fj_scan(size_t begin, size_t end, fj_fold_fn *fold, fj_combine_fn *combine,
                                fj_emit_fn *emit, const void *identity, size_t size, size_t stride,
                                void *arg, void *total, const fj_algo_options *how);

/* Flags of the ready-made scans. */
#define FJ_SCAN_INCLUSIVE 0u      /* out[i] = in[0] + ... + in[i] */
#define FJ_SCAN_EXCLUSIVE 0x1000u /* out[i] = in[0] + ... + in[i - 1] */

/* *left becomes left combined with right, both elements. */
typedef void fj_op_fn(void *left, const void *right, void *arg);

/*
 * Of elements of any kind, by an associative operation with the given identity. `out` may be
 * `in`, but not overlap it otherwise. Memory as fj_scan(), twice the size if exclusive.
 */
FJ_API FJ_NODISCARD int fj_scan_each(const void *in, void *out, size_t n, size_t size, fj_op_fn *op,
                                     const void *identity, void *arg, unsigned flags,
                                     const fj_algo_options *how);

/* Sums; integers wrap. Of floats the last bits differ from run to run, and as neighbours are
 * added first, so may whether a sum overflows in between. */
FJ_API FJ_NODISCARD int fj_scan_i32(const int32_t *in, int32_t *out, size_t n, unsigned flags,
                                    const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_scan_i64(const int64_t *in, int64_t *out, size_t n, unsigned flags,
                                    const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_scan_f32(const float *in, float *out, size_t n, unsigned flags,
                                    const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_scan_f64(const double *in, double *out, size_t n, unsigned flags,
                                    const fj_algo_options *how);

/* ---- Filters ----------------------------------------------------------------------------- */

/* Sets keep[i - begin] to 1 or 0 for each i with begin <= i < end. */
typedef int fj_keep_fn(size_t begin, size_t end, unsigned char *keep, void *arg);

/*
 * Copies the elements of `in` that are meant to `out`, in their order; *count is their number.
 * _by: decided for parts rather than for single elements. Each element is asked for once, so a
 * test that contradicts itself only decides what is kept. `out` has room for all that are kept and
 * does not overlap `in`; after an error its contents are anything.
 *
 *   memory   n / 8 bytes, and 24 for each of at most 16384 parts; without it the calling
 *            thread does it alone.
 *   Java     Stream.filter().
 */
FJ_API FJ_NODISCARD int fj_filter(const void *in, size_t n, size_t size, void *out,
                                  fj_test_fn *test, void *arg, size_t *count,
                                  const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_filter_chunks(const void *in, size_t n, size_t size, void *out,
                                         fj_keep_fn *keep, void *arg, size_t *count,
                                         const fj_algo_options *how);

/*
 * The same, and those that are not meant follow from out[*count] on, in their order: `out` has
 * room for n.
 *
 *   Java     Collectors.partitioningBy().
 */
FJ_API FJ_NODISCARD int fj_partition(const void *in, size_t n, size_t size, void *out,
                                     fj_test_fn *test, void *arg, size_t *count,
                                     const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_partition_chunks(const void *in, size_t n, size_t size, void *out,
                                            fj_keep_fn *keep, void *arg, size_t *count,
                                            const fj_algo_options *how);

/* ---- Sorting ----------------------------------------------------------------------------- */

/* Negative, 0 or positive: a before, equal to, after b. As qsort_r() of glibc. */
typedef int fj_compare_fn(const void *a, const void *b, void *arg);

/*
 * Sorts n elements of `size` bytes. Equal ones keep their order by fj_stable_sort(), and may by
 * the others. After FJ_ECANCELED the array has the same elements in some order.
 *
 * If the comparison contradicts itself, the sort still returns after n log n comparisons, the
 * array has the same elements, each as often as before, in some order, and nothing outside the
 * array is read or written. The comparison is never handed anything but elements.
 *
 *   memory   n * size bytes; without it the calling thread sorts in place, fj_stable_sort()
 *            by many more moves.
 *   Java     Arrays.parallelSort().
 */
FJ_API FJ_NODISCARD int fj_sort(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg,
                                const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_stable_sort(void *base, size_t n, size_t size, fj_compare_fn *cmp,
                                       void *arg, const fj_algo_options *how);

/* In place of qsort_r(): on the caller's pool, or the common one. Cancelled or misused, it
 * returns with the elements in some order. */
FJ_API void fj_qsort(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg);

/*
 * Merges two sorted arrays into `out`, which has room for both and overlaps neither. Of equal
 * elements those of `a` come first. If the arrays are not sorted, or the comparison contradicts
 * itself, `out` still gets each element of both once, in some order.
 */
FJ_API FJ_NODISCARD int fj_merge(const void *a, size_t na, const void *b, size_t nb, size_t size,
                                 void *out, fj_compare_fn *cmp, void *arg,
                                 const fj_algo_options *how);

/* A key and what belongs to it. */
typedef struct fj_kv32 {
    uint32_t key, value;
} fj_kv32;

typedef struct fj_kv64 {
    uint64_t key, value;
} fj_kv64;

/*
 * Ascending. Floats: -0.0 before 0.0, NaNs by their sign at the two ends. Those with values
 * are stable. By digits where that is faster than by comparing.
 *
 *   memory   n * size bytes, and up to 512 KiB of counts for each part that others take; without
 *            it slower, in place.
 */
FJ_API FJ_NODISCARD int fj_sort_i8(int8_t *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_u8(uint8_t *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_i16(int16_t *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_u16(uint16_t *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_i32(int32_t *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_u32(uint32_t *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_i64(int64_t *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_u64(uint64_t *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_f32(float *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_f64(double *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_kv32(fj_kv32 *a, size_t n, const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_sort_kv64(fj_kv64 *a, size_t n, const fj_algo_options *how);

/* Sorts for types of your own, the comparison inlined: forkjoin/sort.h. */

/* ---- Pipelines --------------------------------------------------------------------------- */

/*
 * One step of an item's way. The first stage makes the items: *item is NULL, and left so it
 * is the end. Later ones get what the stage before has left in *item, and may change it;
 * NULL: the item goes no further.
 */
typedef int fj_stage_fn(void **item, void *arg);

enum fj_stage_kind {
    FJ_STAGE_PARALLEL = 0,     /* any number of items at a time */
    FJ_STAGE_SERIAL = 0x10000, /* one at a time */
    FJ_STAGE_ORDERED = 0x20000 /* one at a time, in the order in which the first stage made them */
};

typedef struct fj_stage {
    fj_stage_fn *fn;
    void *arg;
    int kind;
} fj_stage;

/*
 * Sends items through the stages until the first one has no more, at most `max_in_flight` of them
 * under way at a time: that bounds the memory. The first stage may be of any kind; if it is
 * parallel, it is called until one call says it is the end. An item is never waited for: a
 * worker that would have to, does something else.
 *
 *   owns     after an error or a cancel `drop` (may be NULL) is called once for every item under
 *            way, by the calling thread, when no stage runs any more; also for that of the call
 *            that failed, unless it has left *item NULL. What the last stage leaves in *item with
 *            FJ_OK is nobody's.
 *   order    of items: that in which calls of the first stage return.
 *   progress items that have left the last stage, or were dropped by one.
 *   memory   about 64 bytes for each item in flight and stage; FJ_ENOMEM before anything is begun.
 *   grain    is not looked at.
 *   returns  also FJ_EINVAL for no stage, max_in_flight 0, an unknown kind.
 */
FJ_API FJ_NODISCARD int fj_pipeline(const fj_stage *stages, size_t n, size_t max_in_flight,
                                    void (*drop)(void *item), const fj_algo_options *how);

FJI_EXTERN_C_END

#endif /* FORKJOIN_ALGO_H */
