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
 * A call divides its range into chunks and calls the caller's function, the body, once for each
 * chunk. A body receives a whole chunk, not one element, so that the compiler can optimise the
 * loop inside it. The call measures how long chunks take and chooses their size accordingly. It
 * forks only if the rest of the range is worth a worker, so a short loop costs little more than
 * a function call. Idle workers steal from busy ones, so an uneven loop is balanced.
 *
 * Rules for all functions of this header
 *   from     any thread, inside or outside a task. Calls may be nested to any depth.
 *   options  the parameter `how`. NULL, or a struct of zeros, selects every default.
 *   errors   the first code other than FJ_OK that a body returns is the result of the call.
 *            Chunks that have not begun are skipped. The call returns after the chunks that are
 *            running have ended. The effects of bodies that have run are not undone.
 *   cancel   how->token cancels a call. A call is also cancelled if the calling task is
 *            cancelled (fj_is_cancelled()), or if the pool that runs the call stops. Chunks
 *            that have not begun are skipped. The call returns FJ_ECANCELED after the chunks
 *            that are running have ended.
 *   order    everything the caller did before the call happens before every body. Everything
 *            the bodies did happens before the return. Bodies run concurrently: a body must not
 *            write memory that another body reads or writes.
 *   memory   a function allocates only what its `memory` line says. If that memory is not
 *            available, the function uses a slower method, unless its `returns` line says
 *            FJ_ENOMEM.
 *   results  a result behind a pointer parameter is written only if the call returns FJ_OK.
 *            An array that bodies write may be partly written after an error.
 *   sizes    a range may be empty or have one element. `end` may be SIZE_MAX.
 *
 * Common codes: every function with a parameter `how` may return these. Its `returns` line lists
 * what the function adds to them.
 *   FJ_OK         all chunks are done, or the range is empty.
 *   a body's code the first code other than FJ_OK that a body returned.
 *   FJ_ECANCELED  the call was cancelled.
 *   FJ_EINVAL     an argument is invalid: NULL where an object or a function is needed,
 *                 begin > end, an element size of 0, an array larger than PTRDIFF_MAX bytes, a
 *                 reserved option that is not 0, or min_grain > max_grain > 0. No body has run.
 *   FJ_EREJECTED  the pool is shut down and the caller is not one of its workers.
 *   FJ_ENOMEM     there is no memory to create the common pool or to submit the call to a pool.
 */
#ifndef FORKJOIN_ALGO_H
#define FORKJOIN_ALGO_H

#include <forkjoin.h>

FJI_EXTERN_C_BEGIN

/* ---- Progress ---------------------------------------------------------------------------- */

/*
 * Counts how many elements of a computation are done, for other threads to read. The members
 * are private. Several calls may use the same fj_progress, also at the same time.
 */
typedef struct fj_progress {
    uint64_t total;
    uint64_t done;
    int adds; /* every call adds its number of elements to `total` */
    int spare;
} fj_progress;

/*
 * Sets *p to 0 elements done of `total`. If total is 0, each call that uses *p adds its number of
 * elements to the total when it begins.
 *
 *   from     any thread, before the first call that uses *p begins.
 */
FJ_API void fj_progress_init(fj_progress *p, uint64_t total);

/*
 * Counts n more elements as done. The algorithms call it; a body may call it too, for example to
 * count work that has no elements.
 */
FJ_API void fj_progress_add(fj_progress *p, uint64_t n);

/* Returns how many elements are done. */
FJ_API uint64_t fj_progress_done(const fj_progress *p);

/* Returns how many elements there are in all, as far as that is known. */
FJ_API uint64_t fj_progress_total(const fj_progress *p);

/* A line on a terminal that shows an fj_progress and estimates the remaining time. */
typedef struct fj_progress_bar fj_progress_bar;

/*
 * Starts to show *p on the terminal `fd`, with `label` before it, until fj_progress_bar_stop().
 * The bar has a thread of its own, which blocks all signals and draws the line every 0.1 s. A
 * computation shorter than 0.1 s shows nothing. If `fd` is not a terminal, nothing is shown and no
 * thread is started. After fork(), only the parent process has the bar.
 *
 *   memory   the bar and a copy of the label.
 *   owns     *p and fd stay the caller's. Both must stay valid until fj_progress_bar_stop().
 *   returns  FJ_OK and *bar; FJ_EINVAL if bar, p or label is NULL; FJ_ENOMEM if there is no
 *            memory; FJ_EAGAIN if the system does not start the thread.
 */
FJ_API FJ_NODISCARD int fj_progress_bar_start(fj_progress_bar **bar, const fj_progress *p,
                                              const char *label, int fd);

/*
 * Removes the line from the terminal, ends the thread and frees the bar. NULL is ignored. In a
 * child of fork(), it frees the child's copy and does not write to the terminal.
 */
FJ_API void fj_progress_bar_stop(fj_progress_bar *bar);

/* ---- Options ----------------------------------------------------------------------------- */

/*
 * The options of a call. A member that is 0 or NULL selects its default, so
 * `&(fj_algo_options){.pool = pool}` is a complete setting.
 *
 *   grain      sets the size of chunks. A range of more than one chunk may be shared by workers,
 *              so with grain 1 even two elements are shared. With grain 0 a chunk takes about 16
 *              to 64 microseconds. Its size is derived from the time of the chunk before it.
 *   max_grain  limits that size. Set it if later elements cost much more than the first ones.
 *              Otherwise the first chunk of expensive elements is as large as cheap elements
 *              allow, and takes far too long.
 *
 * fj_for(), fj_transform(), fj_reduce(), the histograms and the searches align chunks: each
 * begins at a multiple of grain, or of min_grain if grain is 0, counted from `begin`. Only the
 * last chunk of the range may be smaller than that. The `grain` line of a function says where
 * the function differs.
 */
typedef struct fj_algo_options {
    fj_pool *pool;         /* NULL: the pool of the calling task; outside, the common pool */
    fj_token *token;       /* cancels the call; NULL: none */
    fj_progress *progress; /* counts the elements that are done; NULL: none */
    size_t grain;          /* elements of a chunk; 0: found while the call runs */
    size_t min_grain;      /* if grain is 0: least elements of a chunk; 0: one */
    size_t max_grain;      /* if grain is 0: most elements of a chunk; 0: no limit */
    uint64_t reserved[2];  /* 0 */
} fj_algo_options;

/* ---- Loops ------------------------------------------------------------------------------- */

/* Processes each i with begin <= i < end. */
typedef int fj_for_fn(size_t begin, size_t end, void *arg);

/*
 * Calls `body` on chunks that together cover begin <= i < end, each element once.
 *
 *   returns  the common codes.
 *   Java     IntStream.range(begin, end).parallel().forEach().
 */
FJ_API FJ_NODISCARD int fj_for(size_t begin, size_t end, fj_for_fn *body, void *arg,
                               const fj_algo_options *how);

/* Processes the tile of rows r0 <= r < r1 and columns c0 <= c < c1. */
typedef int fj_for_2d_fn(size_t r0, size_t r1, size_t c0, size_t c1, void *arg);

/*
 * Calls `body` on tiles that together cover all rows and columns, each element once.
 *
 *   grain    the rows, and the columns, of a tile. 0: the smallest power of two that gives at
 *            most 1024 tiles, but at most 64. Tiles at the right and lower edges are smaller.
 *            min_grain and max_grain are ignored.
 *   progress counts elements, not tiles.
 *   returns  the common codes.
 */
FJ_API FJ_NODISCARD int fj_for_2d(size_t rows, size_t columns, fj_for_2d_fn *body, void *arg,
                                  const fj_algo_options *how);

/* Computes out[0] to out[n - 1] from in[0] to in[n - 1]. */
typedef int fj_transform_fn(const void *in, void *out, size_t n, void *arg);

/*
 * Calls `body` on chunks of two arrays of n elements, at the same indices in both. The elements
 * of `in` have in_size bytes, those of `out` have out_size bytes. `out` may be `in` if the sizes
 * are equal; otherwise the arrays do not overlap.
 *
 *   returns  the common codes.
 *   Java     Arrays.parallelSetAll().
 */
FJ_API FJ_NODISCARD int fj_transform(const void *in, size_t in_size, void *out, size_t out_size,
                                     size_t n, fj_transform_fn *body, void *arg,
                                     const fj_algo_options *how);

/* A function to call, and its argument. */
typedef struct fj_function {
    fj_action_fn *fn;
    void *arg;
} fj_function;

/*
 * Calls steps[0] to steps[n - 1], each once, possibly at the same time.
 *
 *   grain    is 1: each function is worth a task. The grains of `how` are ignored, except that
 *            min_grain > max_grain > 0 is invalid.
 *   progress counts functions.
 *   returns  the common codes; FJ_EINVAL also if a function is NULL.
 */
FJ_API FJ_NODISCARD int fj_invoke_functions(const fj_function *steps, size_t n,
                                            const fj_algo_options *how);

/* ---- Reductions -------------------------------------------------------------------------- */

/* Folds the elements begin <= i < end into *acc, from left to right. */
typedef int fj_fold_fn(size_t begin, size_t end, void *acc, void *arg);

/*
 * Combines *left with *right, and stores the result in *left. *left was folded from elements
 * that lie directly left of those of *right.
 */
typedef int fj_combine_fn(void *left, const void *right, void *arg);

/*
 * Folds the elements begin <= i < end into *result. The accumulator has `size` bytes and begins as
 * a copy of *identity. If the range is empty, *result is that copy.
 *
 * Each call of `fold` folds one chunk. A thief takes a range of several chunks and folds it into an
 * accumulator of its own, which begins as *identity. The forker then combines that accumulator
 * with the one of the elements left of the range. `combine` must be associative; it need not be
 * commutative. Which ranges are stolen differs between runs, so the last bits of a floating-point
 * result differ too.
 *
 *   memory   if size > 256: `size` bytes. If size > 128: `size` bytes more for each stolen range,
 *            until it is combined; without that memory the forker folds the range itself.
 *            Accumulators are aligned as by malloc(), and are copied and freed as plain bytes.
 *   returns  the common codes; FJ_ENOMEM also if size > 256 and there is no memory for the first
 *            accumulator.
 *   Java     Stream.parallel().reduce(identity, accumulator, combiner).
 */
FJ_API FJ_NODISCARD int fj_reduce(size_t begin, size_t end, fj_fold_fn *fold,
                                  fj_combine_fn *combine, const void *identity, size_t size,
                                  void *arg, void *result, const fj_algo_options *how);

/*
 * Does what fj_reduce() does, with a tree of folds and combines that is the same in every run.
 * The tree depends on end - begin and how->grain only, not on the workers or on time. The result
 * therefore has the same bits in every run, and on every machine on which `fold` and `combine`
 * compute the same.
 *
 * A leaf of the tree folds one chunk into a copy of *identity. A node over k leaves combines the
 * first k - k / 2 of them with the others.
 *
 *   grain    elements of a leaf. 0: the largest power of two that is at most half the square root
 *            of end - begin, at least 1. min_grain and max_grain are ignored.
 *   memory   if size > 256: `size` bytes. If size > 128: about `size` bytes for each level of
 *            the tree, at most 64 levels, and the same for each stolen subtree. Without the memory
 *            for a stolen subtree the forker folds the subtree itself.
 *   returns  the common codes; FJ_ENOMEM also if size > 128 and there is no memory for the tree.
 */
FJ_API FJ_NODISCARD int fj_reduce_deterministic(size_t begin, size_t end, fj_fold_fn *fold,
                                                fj_combine_fn *combine, const void *identity,
                                                size_t size, void *arg, void *result,
                                                const fj_algo_options *how);

/* Adds 1 to counts[k] for each element begin <= i < end, where k is the element's key. */
typedef int fj_count_fn(size_t begin, size_t end, uint64_t *counts, void *arg);

/*
 * Counts the elements begin <= i < end by key, and adds the result to counts[0] to
 * counts[keys - 1]. If the call fails, `counts` is unchanged.
 *
 *   memory   keys * 8 bytes. If keys > 16: as many for each stolen range, until it is added up;
 *            without that memory the forker counts the range itself.
 *   returns  the common codes; FJ_EINVAL also if keys is 0; FJ_ENOMEM also if there is no memory
 *            for the first keys * 8 bytes.
 */
FJ_API FJ_NODISCARD int fj_histogram(size_t begin, size_t end, fj_count_fn *count, void *arg,
                                     uint64_t *counts, size_t keys, const fj_algo_options *how);

/*
 * Counts an array of n keys of 8 bits, and adds the result to counts[0] to counts[keys - 1].
 *
 *   memory   as fj_histogram().
 *   returns  as fj_histogram(); FJ_EINVAL also if a key is not below `keys`.
 */
FJ_API FJ_NODISCARD int fj_histogram_u8(const uint8_t *key, size_t n, uint64_t *counts, size_t keys,
                                        const fj_algo_options *how);

/*
 * Counts an array of n keys of 32 bits, and adds the result to counts[0] to counts[keys - 1].
 *
 *   memory   as fj_histogram().
 *   returns  as fj_histogram(); FJ_EINVAL also if a key is not below `keys`.
 */
FJ_API FJ_NODISCARD int fj_histogram_u32(const uint32_t *key, size_t n, uint64_t *counts,
                                         size_t keys, const fj_algo_options *how);

/* ---- Searches ---------------------------------------------------------------------------- */

/*
 * Sets *at to the lowest matching i with begin <= i < end. *at is `end` on entry; the function
 * leaves it so if no element matches. The library ignores a value outside the chunk.
 */
typedef int fj_find_fn(size_t begin, size_t end, size_t *at, void *arg);

/*
 * Finds the lowest matching index of begin <= i < end. *at becomes that index, or `end` if no
 * element matches. Chunks right of a match are skipped.
 *
 *   progress counts skipped elements as done when the call ends.
 *   returns  the common codes.
 *   Java     Stream.findFirst().
 */
FJ_API FJ_NODISCARD int fj_find(size_t begin, size_t end, fj_find_fn *find, void *arg, size_t *at,
                                const fj_algo_options *how);

/*
 * Finds some matching index of begin <= i < end. *at becomes that index, or `end` if no element
 * matches. The first match ends the call; chunks that have not begun are skipped.
 *
 *   progress counts skipped elements as done when the call ends.
 *   returns  the common codes. A code that a body returns after the first match is ignored.
 *   Java     Stream.findAny().
 */
FJ_API FJ_NODISCARD int fj_find_any(size_t begin, size_t end, fj_find_fn *find, void *arg,
                                    size_t *at, const fj_algo_options *how);

/*
 * A predicate. Returns a positive number if the element *x matches and 0 if it does not. A
 * negative code ends the call, which returns that code.
 */
typedef int fj_test_fn(const void *x, void *arg);

/*
 * Sets *yes to 1 if at least one of n elements of `size` bytes matches, else to 0. For n == 0 it
 * is 0. The first match ends the call.
 *
 *   returns  the common codes. A code that `test` returns after the first match is ignored.
 *   Java     Stream.anyMatch().
 */
FJ_API FJ_NODISCARD int fj_any(const void *base, size_t n, size_t size, fj_test_fn *test, void *arg,
                               int *yes, const fj_algo_options *how);

/*
 * Sets *yes to 1 if all of n elements of `size` bytes match, else to 0. For n == 0 it is 1. The
 * first element that does not match ends the call.
 *
 *   returns  the common codes. A code that `test` returns after that element is ignored.
 *   Java     Stream.allMatch().
 */
FJ_API FJ_NODISCARD int fj_all(const void *base, size_t n, size_t size, fj_test_fn *test, void *arg,
                               int *yes, const fj_algo_options *how);

/* ---- Scans ------------------------------------------------------------------------------- */

/*
 * Produces the results of begin <= i < end. On entry *acc is the prefix of `begin`: the fold of all
 * elements left of it. The function must change *acc to the prefix of `end`, as if it had folded
 * its elements into *acc.
 */
typedef int fj_emit_fn(size_t begin, size_t end, void *acc, void *arg);

/*
 * Computes running totals of begin <= i < end by calling `emit` once for each chunk, with the
 * prefix of that chunk. The prefix of `begin` is *identity. *total, unless NULL, becomes the
 * prefix of `end`.
 *
 * If the prefix of a chunk is not known yet, a worker may fold the chunk first: `fold` folds it
 * into a copy of *identity. `combine`, which must be associative, later combines the prefix of the
 * chunk with that, which gives the prefix of the next chunk. `fold` is called at most once on a
 * chunk, and before `emit`. A chunk whose prefix is already known is emitted without a separate
 * fold. `emit` decides whether the results are inclusive or exclusive, and whether they overwrite
 * the elements that `fold` reads.
 *
 * `size` is the size of an accumulator. `stride` is how many bytes of memory `emit` reads and
 * writes for one element; 0 means one.
 *
 *   grain    elements of a chunk. Chunks are larger if there would be more than 16384 of them.
 *            With grain 0 a chunk takes at most about 32 microseconds and, if workers share the
 *            range, touches at most 128 KiB of memory. Chunks are not aligned to min_grain.
 *   memory   if size > 256: `size` bytes. If workers share the range: about size + 4 bytes for
 *            each chunk, which is with grain 0 at most 16 MiB or 64 chunks, whichever is more.
 *            Without the memory for the chunks one thread processes the whole range.
 *   returns  the common codes; FJ_ENOMEM also if size > 256 and there is no memory for the first
 *            accumulator.
 *   Java     Arrays.parallelPrefix().
 */
FJ_API FJ_NODISCARD int fj_scan(size_t begin, size_t end, fj_fold_fn *fold, fj_combine_fn *combine,
                                fj_emit_fn *emit, const void *identity, size_t size, size_t stride,
                                void *arg, void *total, const fj_algo_options *how);

/* The parameter `flags` of the scans below. */
#define FJ_SCAN_INCLUSIVE 0u      /* out[i] = in[0] + ... + in[i] */
#define FJ_SCAN_EXCLUSIVE 0x1000u /* out[i] = in[0] + ... + in[i - 1] */

/* Combines the elements *left and *right, and stores the result in *left. */
typedef void fj_op_fn(void *left, const void *right, void *arg);

/*
 * Computes running totals of n elements of `size` bytes with the associative operation `op`, whose
 * identity is *identity. `out` may be `in`; otherwise the arrays do not overlap.
 *
 *   grain    as fj_scan().
 *   memory   as fj_scan(); twice that if size > 256 and the scan is exclusive.
 *   returns  as fj_scan(); FJ_EINVAL also if `flags` is neither FJ_SCAN_INCLUSIVE nor
 *            FJ_SCAN_EXCLUSIVE, if size > PTRDIFF_MAX / 2, or if the arrays overlap without being
 *            the same.
 */
FJ_API FJ_NODISCARD int fj_scan_each(const void *in, void *out, size_t n, size_t size, fj_op_fn *op,
                                     const void *identity, void *arg, unsigned flags,
                                     const fj_algo_options *how);

/*
 * Compute running sums of n numbers. `out` may be `in`; otherwise the arrays do not overlap.
 *
 * Integer sums wrap around. Floating-point numbers are added in an order that differs between
 * runs, so the last bits of the results differ. Neighbours are added to each other before they
 * are added to the sum, so an intermediate sum may overflow where a sequential loop does not.
 *
 *   grain    as fj_scan().
 *   memory   if workers share the range: about 12 bytes for each of at most 16384 chunks; without
 *            that memory one thread processes the whole range.
 *   returns  the common codes; FJ_EINVAL also if `flags` is neither FJ_SCAN_INCLUSIVE nor
 *            FJ_SCAN_EXCLUSIVE, or if the arrays overlap without being the same.
 */
FJ_API FJ_NODISCARD int fj_scan_i32(const int32_t *in, int32_t *out, size_t n, unsigned flags,
                                    const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_scan_i64(const int64_t *in, int64_t *out, size_t n, unsigned flags,
                                    const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_scan_f32(const float *in, float *out, size_t n, unsigned flags,
                                    const fj_algo_options *how);
FJ_API FJ_NODISCARD int fj_scan_f64(const double *in, double *out, size_t n, unsigned flags,
                                    const fj_algo_options *how);

/* ---- Filters ----------------------------------------------------------------------------- */

/*
 * A predicate for a chunk. Sets keep[i - begin] to 1 or 0 for each i with begin <= i < end. The
 * library calls it with at most 2048 elements.
 */
typedef int fj_keep_fn(size_t begin, size_t end, unsigned char *keep, void *arg);

/*
 * Copies the elements of `in` for which `test` returns a positive number to `out`, in their order.
 * *count becomes the number of these elements. `out` has room for them and does not overlap `in`.
 * After an error the contents of `out` are unspecified.
 *
 * `test` is called once for each element. If it answers inconsistently, that affects only which
 * elements are kept.
 *
 *   grain    as fj_scan(); a grain above 64 is rounded up to a multiple of 64.
 *   memory   if workers share the array: about n / 8 bytes, and 12 bytes for each of at most 16384
 *            chunks; without that memory one thread processes the whole array.
 *   returns  the common codes; FJ_EINVAL also if `out` begins inside `in`.
 *   Java     Stream.filter().
 */
FJ_API FJ_NODISCARD int fj_filter(const void *in, size_t n, size_t size, void *out,
                                  fj_test_fn *test, void *arg, size_t *count,
                                  const fj_algo_options *how);

/*
 * Does what fj_filter() does, with a predicate that is called for chunks instead of elements. The
 * contract of fj_filter() holds.
 */
FJ_API FJ_NODISCARD int fj_filter_chunks(const void *in, size_t n, size_t size, void *out,
                                         fj_keep_fn *keep, void *arg, size_t *count,
                                         const fj_algo_options *how);

/*
 * Copies the matching elements of `in` to `out`, in their order, and then the other elements, in
 * their order. *count becomes the number of matching elements, so the others begin at
 * out[*count]. `out` has room for n elements and does not overlap `in`. After an error the
 * contents of `out` are unspecified. `test` is called once for each element.
 *
 *   grain    elements of a chunk, rounded up to a multiple of 64. Chunks are larger if there would
 *            be more than 16384 of them. 0: chosen as in a loop.
 *   memory   if n > 4096: about n / 8 bytes, and 8 bytes for each of at most 16384 chunks;
 *            without that memory one thread processes the whole array.
 *   returns  the common codes; FJ_EINVAL also if the arrays overlap.
 *   Java     Collectors.partitioningBy().
 */
FJ_API FJ_NODISCARD int fj_partition(const void *in, size_t n, size_t size, void *out,
                                     fj_test_fn *test, void *arg, size_t *count,
                                     const fj_algo_options *how);

/*
 * Does what fj_partition() does, with a predicate that is called for chunks instead of elements.
 * The contract of fj_partition() holds.
 */
FJ_API FJ_NODISCARD int fj_partition_chunks(const void *in, size_t n, size_t size, void *out,
                                            fj_keep_fn *keep, void *arg, size_t *count,
                                            const fj_algo_options *how);

/* ---- Sorting ----------------------------------------------------------------------------- */

/*
 * Compares two elements, as for qsort_r() of glibc. Returns a negative number if *a comes before
 * *b, 0 if they are equal, and a positive number if *a comes after *b.
 */
typedef int fj_compare_fn(const void *a, const void *b, void *arg);

/*
 * Sorts n elements of `size` bytes in ascending order. Equal elements may change their order.
 *
 * After FJ_ECANCELED the array has the same elements in an unspecified order. The same holds if
 * the comparison contradicts itself; the sort then still makes O(n log n) comparisons, and reads
 * and writes nothing outside the array. `cmp` is called with elements only.
 *
 *   grain    a range of at most `grain` elements is sorted by one worker; a grain below 16 counts
 *            as 16. 0: derived from the time that a comparison takes, at most 512.
 *   memory   if size <= 32: n * size bytes. If size > 32: n * 16 bytes and room for at most
 *            2048 elements. Up to 2048 bytes are on the stack. Without that memory one thread
 *            sorts the array in place by heap sort.
 *   returns  the common codes.
 *   Java     Arrays.parallelSort().
 */
FJ_API FJ_NODISCARD int fj_sort(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg,
                                const fj_algo_options *how);

/*
 * Does what fj_sort() does, and keeps the order of equal elements. The contract of fj_sort() holds,
 * with one exception.
 *
 *   memory   as fj_sort(); without that memory one thread merges in place, which takes
 *            O(n log n log n) moves of elements.
 */
FJ_API FJ_NODISCARD int fj_stable_sort(void *base, size_t n, size_t size, fj_compare_fn *cmp,
                                       void *arg, const fj_algo_options *how);

/*
 * Sorts as fj_sort() does, with the parameters of qsort_r(), on the pool of the calling task or,
 * outside a task, on the common pool. If no pool is available, the calling thread sorts alone. If
 * the calling task is cancelled, the elements are left in an unspecified order. If an argument is
 * invalid, the array is unchanged.
 *
 *   memory   as fj_sort().
 */
FJ_API void fj_qsort(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg);

/*
 * Merges two sorted arrays into `out`, which has room for na + nb elements and overlaps neither. Of
 * equal elements those of `a` come first. If an array is not sorted, or if the comparison
 * contradicts itself, `out` still receives each element of both arrays once, in an unspecified
 * order. After FJ_ECANCELED the contents of `out` are unspecified.
 *
 *   grain    elements that a worker merges before it checks for idle workers and for a cancel; a
 *            grain below 16 counts as 16. 0: derived from the time that a comparison takes, at
 *            most 2048.
 *   returns  the common codes; FJ_EINVAL also if `out` overlaps an input.
 */
FJ_API FJ_NODISCARD int fj_merge(const void *a, size_t na, const void *b, size_t nb, size_t size,
                                 void *out, fj_compare_fn *cmp, void *arg,
                                 const fj_algo_options *how);

/* A key of 32 bits and a value that moves with it. */
typedef struct fj_kv32 {
    uint32_t key, value;
} fj_kv32;

/* A key of 64 bits and a value that moves with it. */
typedef struct fj_kv64 {
    uint64_t key, value;
} fj_kv64;

/*
 * Sort n numbers, or n keys with values, in ascending order. Floating-point numbers are ordered
 * by sign and value: -0.0 comes before 0.0, negative NaNs come first and positive NaNs last.
 * fj_sort_kv32() and fj_sort_kv64() keep the order of equal keys. After FJ_ECANCELED the array has
 * the same elements in an unspecified order.
 *
 * Numbers of 8 bits are sorted by counting if n >= 128, numbers of 16 bits if n >= 8192, and all
 * wider elements by digits (radix sort). Shorter arrays of 8 and 16 bits are sorted by FJ_SORT
 * (forkjoin/sort.h).
 *
 *   grain    is ignored by counting and by digits.
 *   memory   8 bits: 2 KiB for each stolen range. 16 bits: 512 KiB, and 512 KiB for each stolen
 *            range. Others: n * size bytes if that is more than 4096, and at most 512 KiB for each
 *            range that is being divided by a digit. Without the memory that a call begins with,
 *            FJ_SORT sorts the array, or FJ_STABLE_SORT if there are values.
 *   returns  the common codes.
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

/* forkjoin/sort.h makes sorts and merges for your own types, with the comparison inlined. */

/* ---- Pipelines --------------------------------------------------------------------------- */

/*
 * Processes one item in one stage. In the first stage *item is NULL on entry, and the function sets
 * it to a new item; if it leaves NULL, there are no more items. In a later stage *item is what the
 * stage before left there, and the function may change it; if it sets NULL, later stages do not
 * see the item.
 */
typedef int fj_stage_fn(void **item, void *arg);

/* How many items may be in a stage at the same time, and in which order they pass it. */
enum fj_stage_kind {
    FJ_STAGE_PARALLEL = 0,     /* any number of items at a time */
    FJ_STAGE_SERIAL = 0x10000, /* one at a time, in any order */
    FJ_STAGE_ORDERED = 0x20000 /* one at a time, in the order of the first stage */
};

/* A stage: its function, the argument of the function, and its kind (enum fj_stage_kind). */
typedef struct fj_stage {
    fj_stage_fn *fn;
    void *arg;
    int kind;
} fj_stage;

/*
 * Passes items through stages[0] to stages[n - 1] until the first stage has no more. At most
 * `max_in_flight` items are between the first stage and the end of the last at the same time, which
 * bounds the memory. The first stage may be of any kind. If it is parallel, it is called until one
 * call leaves NULL; other calls that are running then may still make items.
 *
 * A worker never blocks to wait for an item. If an item cannot enter its next stage yet, the worker
 * leaves it there and takes another item that is ready.
 *
 *   order    an ordered stage sees items in the order in which calls of the first stage returned.
 *   owns     what the last stage leaves in *item is ignored. After an error or a cancel, when no
 *            stage runs any more, the calling thread calls `drop`, unless it is NULL, once for
 *            each item in flight. The item of the stage that returned the error is one of them,
 *            unless that stage set *item to NULL.
 *   progress counts items that have left the last stage, and items that a stage set to NULL. The
 *            call adds nothing to the total, because the number of items is not known.
 *   grain    is ignored.
 *   memory   32 bytes for each stage and 24 bytes for each item in flight. For each serial or
 *            ordered stage but the first: 8 bytes for each item in flight, with max_in_flight
 *            rounded up to a power of two.
 *   returns  the common codes; FJ_EINVAL also if n or max_in_flight is 0, if a function is NULL or
 *            if a kind is unknown; FJ_ENOMEM also if there is no memory for the items. No stage
 *            has run then.
 */
FJ_API FJ_NODISCARD int fj_pipeline(const fj_stage *stages, size_t n, size_t max_in_flight,
                                    void (*drop)(void *item), const fj_algo_options *how);

FJI_EXTERN_C_END

#endif /* FORKJOIN_ALGO_H */
