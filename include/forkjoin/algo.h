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
 * chunk. A body receives a whole chunk, not one element, so that the compiler can optimise the loop
 * inside it. The call measures how long chunks take and chooses their size accordingly. A call
 * forks only if the rest of the range takes long enough to be worth waking a worker, so a short
 * loop costs little more than a function call. Idle workers steal from busy ones, so an uneven loop
 * is balanced.
 *
 * Rules for all functions of this header
 *   from     any thread, inside or outside a task. Calls may be nested to any depth.
 *   options  the parameter `how`. NULL, or a struct of zeros, selects every default.
 *   errors   the first code other than FJ_OK that a body returns is the result of the call. After
 *            an error, chunks that have not begun are skipped. The call returns after the chunks
 *            that are running have ended. The effects of bodies that have run are not undone.
 *   cancel   cancelling how->token cancels a call. A call is also cancelled if the calling task is
 *            cancelled (fj_is_cancelled()), or if the pool that runs the call stops. After a
 *            cancel, chunks that have not begun are skipped. The call returns FJ_ECANCELED after
 *            the chunks that are running have ended.
 *   order    everything the caller did before the call happens before every body. Everything
 *            the bodies did happens before the return. Bodies run concurrently: a body must not
 *            write memory that another body reads or writes.
 *   memory   a function allocates only what its `memory` line says. If there is no memory, the
 *            function uses a slower method, unless its `returns` line says FJ_ENOMEM.
 *   results  a result behind a pointer parameter is written only if the call returns FJ_OK.
 *            An array that bodies write may be partly written after an error.
 *   sizes    a range may be empty or have one element. `end` may be SIZE_MAX.
 *
 * Common codes: every function with a parameter `how` may return these. The `returns` line of a
 * function lists its additional codes.
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
 * A counter of the elements of a computation that are done. Other threads may read it. The members
 * are private. Several calls may use the same fj_progress, also at the same time.
 */
typedef struct fj_progress {
    uint64_t total;
    uint64_t done;
    int adds; /* 1: every call adds its number of elements to `total` */
    int spare;
} fj_progress;

/*
 * Sets *p to 0 elements done of `total`. If the argument `total` is 0, each call that uses *p
 * adds its number of elements to the total when it begins.
 *
 *   from     any thread, before the first call that uses *p begins.
 */
FJ_API void fj_progress_init(fj_progress *p, uint64_t total);

/*
 * Counts n more elements as done in *p. The algorithms call this function; a body may call it too,
 * for example to count work that has no elements.
 */
FJ_API void fj_progress_add(fj_progress *p, uint64_t n);

/* Returns how many elements are done, according to *p. */
FJ_API uint64_t fj_progress_done(const fj_progress *p);

/* Returns the total number of elements: the `total` of fj_progress_init() or, if that was 0, the
 * sum over all calls that have begun with *p. */
FJ_API uint64_t fj_progress_total(const fj_progress *p);

/* A line on a terminal that shows an fj_progress and estimates the remaining time. */
typedef struct fj_progress_bar fj_progress_bar;

/*
 * Shows a line with `label` and the progress *p on the terminal `fd`, until fj_progress_bar_stop().
 * The bar has a thread of its own, which blocks all signals and draws the line every 0.1 s. A
 * computation shorter than 0.1 s shows nothing. If `fd` is not a terminal, nothing is shown and no
 * thread is started. After fork(), only the parent process has the bar.
 *
 *   memory   the bar and a copy of the label.
 *   owns     the caller owns *p and `fd`. Both must stay valid until fj_progress_bar_stop().
 *   returns  FJ_OK, and the new bar in *bar; FJ_EINVAL if bar, p or label is NULL; FJ_ENOMEM if
 *            there is no memory; FJ_EAGAIN if the system does not start the thread.
 */
FJ_API FJ_NODISCARD int fj_progress_bar_start(fj_progress_bar **bar, const fj_progress *p,
                                              const char *label, int fd);

/*
 * Removes the line from the terminal, ends the thread and frees the bar. NULL is ignored. In a
 * child process made by fork(), the call frees the child's copy of the bar and does not write to
 * the terminal.
 */
FJ_API void fj_progress_bar_stop(fj_progress_bar *bar);

/* ---- Options ----------------------------------------------------------------------------- */

/*
 * The options of a call. A member that is 0 or NULL selects its default, so
 * `&(fj_algo_options){.pool = pool}` is a complete setting.
 *
 *   grain      sets the size of chunks. A range of more than one chunk may be shared by workers, so
 *              with grain 1 two workers may share even two elements. With grain 0 a chunk takes
 *              about 16 to 64 microseconds: the library derives its size from the time that the
 *              previous chunk took.
 *   max_grain  limits the size of a chunk if grain is 0. Set max_grain if later elements cost much
 *              more than the first ones. Otherwise the size of the first chunk of expensive
 *              elements is derived from cheap elements, and that chunk takes far too long.
 *
 * fj_for(), fj_transform(), fj_reduce(), the histograms and the searches align chunks: each chunk
 * begins at a multiple of grain, or of min_grain if grain is 0, counted from `begin`. Only the last
 * chunk of the range may be smaller than grain or min_grain. The `grain` line of a function says
 * where the function differs.
 */
typedef struct fj_algo_options {
    fj_pool *pool;         /* NULL: the pool of the calling task; outside a pool, the common pool */
    fj_token *token;       /* cancels the call; NULL: none */
    fj_progress *progress; /* counts the elements that are done; NULL: none */
    size_t grain;          /* elements of a chunk; 0: measured while the call runs */
    size_t min_grain;      /* if grain is 0: the minimum of elements of a chunk; 0: one */
    size_t max_grain;      /* if grain is 0: the maximum of elements of a chunk; 0: no limit */
    uint64_t reserved[2];  /* 0 */
} fj_algo_options;

/* ---- Loops ------------------------------------------------------------------------------- */

/* The body of fj_for(). Processes each index i with begin <= i < end. */
typedef int fj_for_fn(size_t begin, size_t end, void *arg);

/*
 * Calls `body` on chunks that together cover begin <= i < end, each element once.
 *
 *   returns  the common codes.
 *   Java     IntStream.range(begin, end).parallel().forEach().
 */
FJ_API FJ_NODISCARD int fj_for(size_t begin, size_t end, fj_for_fn *body, void *arg,
                               const fj_algo_options *how);

/* The body of fj_for_2d(). Processes the tile of rows r0 <= r < r1 and columns c0 <= c < c1. */
typedef int fj_for_2d_fn(size_t r0, size_t r1, size_t c0, size_t c1, void *arg);

/*
 * Calls `body` on tiles that together cover all rows and columns, each element once.
 *
 *   grain    the number of rows, and of columns, of a tile. With grain 0 it is the smallest power
 *            of two that gives at most 1024 tiles, but at most 64. Tiles at the right and lower
 *            edges are smaller. min_grain and max_grain are ignored.
 *   progress counts elements, not tiles.
 *   returns  the common codes.
 */
FJ_API FJ_NODISCARD int fj_for_2d(size_t rows, size_t columns, fj_for_2d_fn *body, void *arg,
                                  const fj_algo_options *how);

/* The body of fj_transform(). Computes out[0] to out[n - 1] from in[0] to in[n - 1]. */
typedef int fj_transform_fn(const void *in, void *out, size_t n, void *arg);

/*
 * Calls `body` on chunks of two arrays of n elements, at the same indices in both. An element of
 * `in` has in_size bytes, and an element of `out` has out_size bytes. `out` may be `in` if the two
 * sizes are equal; otherwise the arrays must not overlap.
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
 *   grain    each function is a task of its own, so the grains of `how` are ignored, except that
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
 * Combines the accumulators *left and *right, and stores the result in *left. The elements that
 * were folded into *left lie directly left of the elements that were folded into *right.
 */
typedef int fj_combine_fn(void *left, const void *right, void *arg);

/*
 * Folds the elements begin <= i < end into *result. An accumulator has `size` bytes and begins as a
 * copy of *identity. If the range is empty, *result becomes a copy of *identity.
 *
 * Each call of `fold` folds one chunk. A thief takes a range of several chunks and folds it into an
 * accumulator of its own, which begins as *identity. The worker that forked the range later
 * combines this accumulator with the accumulator of the elements left of the range. `combine` must
 * be associative; it need not be commutative. Which ranges are stolen differs between runs, so the
 * last bits of a floating-point result differ too.
 *
 *   memory   if size > 256: `size` bytes. If size > 128: `size` bytes more for each stolen range,
 *            until the range is combined; without that memory the worker that forked the range
 *            folds it. Accumulators are aligned as by malloc(), and are copied and freed as plain
 *            bytes.
 *   returns  the common codes; FJ_ENOMEM also if size > 256 and there is no memory for the first
 *            accumulator.
 *   Java     Stream.parallel().reduce(identity, accumulator, combiner).
 */
FJ_API FJ_NODISCARD int fj_reduce(size_t begin, size_t end, fj_fold_fn *fold,
                                  fj_combine_fn *combine, const void *identity, size_t size,
                                  void *arg, void *result, const fj_algo_options *how);

/*
 * Folds a range as fj_reduce() does, with a tree of folds and combines that is the same in every
 * run. The tree depends on end - begin and how->grain only, not on the workers or on time. The
 * result therefore has the same bits in every run, and on every machine on which `fold` and
 * `combine` compute the same.
 *
 * A leaf of the tree folds one chunk into a copy of *identity. A node over k leaves combines the
 * value of the first k - k / 2 leaves with the value of the others.
 *
 *   grain    the number of elements of a leaf. With grain 0 it is the largest power of two that is
 *            at most half the square root of end - begin, but at least 1. min_grain and max_grain
 *            are ignored.
 *   memory   if size > 256: `size` bytes. If size > 128: about `size` bytes for each level of the
 *            tree, at most 64 levels, and as much for each stolen subtree. Without the memory for a
 *            stolen subtree, the worker that forked the subtree folds it.
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
 *   memory   keys * 8 bytes. If keys > 16: keys * 8 bytes more for each stolen range, until its
 *            counts are added to the others; without that memory the worker that forked the range
 *            counts it.
 *   returns  the common codes; FJ_EINVAL also if keys is 0; FJ_ENOMEM also if there is no memory
 *            for the first keys * 8 bytes.
 */
FJ_API FJ_NODISCARD int fj_histogram(size_t begin, size_t end, fj_count_fn *count, void *arg,
                                     uint64_t *counts, size_t keys, const fj_algo_options *how);

/*
 * Counts how often each key occurs in an array of n keys of 8 bits, and adds the result to
 * counts[0] to counts[keys - 1].
 *
 *   memory   as fj_histogram().
 *   returns  as fj_histogram(); FJ_EINVAL also if a key is not below `keys`.
 */
FJ_API FJ_NODISCARD int fj_histogram_u8(const uint8_t *key, size_t n, uint64_t *counts, size_t keys,
                                        const fj_algo_options *how);

/*
 * Counts how often each key occurs in an array of n keys of 32 bits, and adds the result to
 * counts[0] to counts[keys - 1].
 *
 *   memory   as fj_histogram().
 *   returns  as fj_histogram(); FJ_EINVAL also if a key is not below `keys`.
 */
FJ_API FJ_NODISCARD int fj_histogram_u32(const uint32_t *key, size_t n, uint64_t *counts,
                                         size_t keys, const fj_algo_options *how);

/* ---- Searches ---------------------------------------------------------------------------- */

/*
 * Searches one chunk. Sets *at to the lowest matching index i with begin <= i < end. On entry *at
 * is `end`; the function leaves *at unchanged if no element matches. The library ignores a value of
 * *at that is not in the chunk.
 */
typedef int fj_find_fn(size_t begin, size_t end, size_t *at, void *arg);

/*
 * Finds the lowest matching index of begin <= i < end. *at becomes that index, or `end` if no
 * element matches. The call skips chunks that lie right of a match.
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
 * Sets *yes to 1 if `test` matches at least one of the n elements of `size` bytes at `base`, else
 * to 0. If n is 0, *yes becomes 0. The first match ends the call.
 *
 *   returns  the common codes. A code that `test` returns after the first match is ignored.
 *   Java     Stream.anyMatch().
 */
FJ_API FJ_NODISCARD int fj_any(const void *base, size_t n, size_t size, fj_test_fn *test, void *arg,
                               int *yes, const fj_algo_options *how);

/*
 * Sets *yes to 1 if `test` matches all of the n elements of `size` bytes at `base`, else to 0. If n
 * is 0, *yes becomes 1. The first element that does not match ends the call.
 *
 *   returns  the common codes. A code that `test` returns after the first element that does not
 *            match is ignored.
 *   Java     Stream.allMatch().
 */
FJ_API FJ_NODISCARD int fj_all(const void *base, size_t n, size_t size, fj_test_fn *test, void *arg,
                               int *yes, const fj_algo_options *how);

/* ---- Scans ------------------------------------------------------------------------------- */

/*
 * Produces the results of begin <= i < end. On entry *acc is the prefix of `begin`: the fold of all
 * elements left of `begin`. The function must change *acc to the prefix of `end`, as if it had
 * folded the elements begin <= i < end into *acc.
 */
typedef int fj_emit_fn(size_t begin, size_t end, void *acc, void *arg);

/*
 * Computes running totals of begin <= i < end by calling `emit` once for each chunk, with the
 * prefix of that chunk. The prefix of an index is the fold of all elements left of it. The prefix
 * of `begin` is *identity. If `total` is not NULL, *total becomes the prefix of `end`.
 *
 * If the prefix of a chunk is not known yet, a worker may fold the chunk first: `fold` folds the
 * chunk into a copy of *identity. Later `combine`, which must be associative, combines the prefix
 * of the chunk with that fold. The result is the prefix of the next chunk. `fold` is called at most
 * once on a chunk, and before `emit`. A chunk whose prefix is already known is emitted without a
 * separate fold. `emit` decides whether the results are inclusive or exclusive, and whether they
 * overwrite the elements that `fold` reads.
 *
 * `size` is the size of an accumulator. `stride` is how many bytes of memory `emit` reads and
 * writes for one element; 0 means one byte.
 *
 *   grain    elements of a chunk. Chunks are larger if there would be more than 16384 of them.
 *            With grain 0 a chunk takes at most about 32 microseconds and, if workers share the
 *            range, touches at most 128 KiB of memory. Chunks are not aligned to min_grain.
 *   memory   if size > 256: `size` bytes. If workers share the range: about size + 4 bytes for each
 *            chunk, which is with grain 0 at most the larger of 16 MiB and 64 chunks. Without
 *            the memory for the chunks, one thread processes the whole range.
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
 * Each of the following four functions computes running sums of n numbers. `out` may be `in`;
 * otherwise the arrays must not overlap.
 *
 * Integer sums wrap around. Floating-point numbers are added in an order that differs between runs,
 * so the last bits of the results differ. Neighbouring numbers are added to each other before they
 * are added to the sum of the numbers left of them, so an intermediate sum may overflow where a
 * sequential loop does not.
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
 * library calls this predicate with at most 2048 elements at a time.
 */
typedef int fj_keep_fn(size_t begin, size_t end, unsigned char *keep, void *arg);

/*
 * Copies the elements of `in` for which `test` returns a positive number to `out`, in their order.
 * *count becomes the number of these elements. `out` must have space for them and must not overlap
 * `in`. After an error the contents of `out` are unspecified.
 *
 * `test` is called once for each element. If `test` is inconsistent, only the choice of the kept
 * elements is affected.
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
 * Filters an array as fj_filter() does, with a predicate that is called for chunks instead of
 * elements. The contract of fj_filter() applies.
 */
FJ_API FJ_NODISCARD int fj_filter_chunks(const void *in, size_t n, size_t size, void *out,
                                         fj_keep_fn *keep, void *arg, size_t *count,
                                         const fj_algo_options *how);

/*
 * Copies the matching elements of `in` to `out`, in their order, and then the other elements, in
 * their order. *count becomes the number of matching elements, so the others begin at out[*count].
 * `out` must have space for n elements and must not overlap `in`. After an error the contents of
 * `out` are unspecified. `test` is called once for each element.
 *
 *   grain    elements of a chunk, rounded up to a multiple of 64. Chunks are larger if there would
 *            be more than 16384 of them. With grain 0 the size is measured as in fj_for().
 *   memory   if n > 4096: about n / 8 bytes, and 8 bytes for each of at most 16384 chunks;
 *            without that memory one thread processes the whole array.
 *   returns  the common codes; FJ_EINVAL also if the arrays overlap.
 *   Java     Collectors.partitioningBy().
 */
FJ_API FJ_NODISCARD int fj_partition(const void *in, size_t n, size_t size, void *out,
                                     fj_test_fn *test, void *arg, size_t *count,
                                     const fj_algo_options *how);

/*
 * Partitions an array as fj_partition() does, with a predicate that is called for chunks instead of
 * elements. The contract of fj_partition() applies.
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
 * After FJ_ECANCELED the array has the same elements in an unspecified order. If the comparison
 * contradicts itself, the array also has the same elements in an unspecified order; the sort then
 * still makes O(n log n) comparisons, and reads and writes nothing outside the array. `cmp` is
 * called only with pointers to elements.
 *
 *   grain    one worker sorts a range of at most `grain` elements; a grain below 16 counts as 16.
 *            With grain 0 the limit is derived from the time that a comparison takes, and is at
 *            most 512.
 *   memory   if size <= 32: n * size bytes. If size > 32: n * 16 bytes, and space for at most 2048
 *            elements. If the memory is at most 2048 bytes, it is on the stack. Without the memory,
 *            one thread sorts the array in place by heap sort.
 *   returns  the common codes.
 *   Java     Arrays.parallelSort().
 */
FJ_API FJ_NODISCARD int fj_sort(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg,
                                const fj_algo_options *how);

/*
 * Sorts as fj_sort() does, and keeps the order of equal elements. The contract of fj_sort()
 * applies, with one exception.
 *
 *   memory   as fj_sort(); without that memory one thread merges in place, which takes
 *            O(n log n log n) moves of elements.
 */
FJ_API FJ_NODISCARD int fj_stable_sort(void *base, size_t n, size_t size, fj_compare_fn *cmp,
                                       void *arg, const fj_algo_options *how);

/*
 * Sorts as fj_sort() does, with the parameters of qsort_r(), on the pool of the calling task or,
 * outside a task, on the common pool. If no pool is available, the calling thread sorts the array
 * itself. If the calling task is cancelled, the elements are left in an unspecified order. If an
 * argument is invalid, the array is unchanged.
 *
 *   memory   as fj_sort().
 */
FJ_API void fj_qsort(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg);

/*
 * Merges the sorted arrays `a` and `b` into `out`. `out` must have space for na + nb elements and
 * must overlap neither array. Of equal elements, those of `a` come first. If an array is not
 * sorted, or if the comparison contradicts itself, `out` still receives each element of both arrays
 * once, in an unspecified order. After FJ_ECANCELED the contents of `out` are unspecified.
 *
 *   grain    the number of elements that a worker merges before it checks for idle workers and for
 *            a cancel; a grain below 16 counts as 16. With grain 0 the number is derived from the
 *            time that a comparison takes, and is at most 2048.
 *   returns  the common codes; FJ_EINVAL also if `out` overlaps `a` or `b`.
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
 * Each of the following functions sorts n numbers, or n keys with values, in ascending order.
 * Floating-point numbers are ordered by sign and value: -0.0 comes before 0.0, negative NaNs come
 * first and positive NaNs last. fj_sort_kv32() and fj_sort_kv64() keep the order of equal keys.
 * After FJ_ECANCELED the array has the same elements in an unspecified order.
 *
 * Numbers of 8 bits are sorted by counting if n >= 128, and numbers of 16 bits if n >= 8192.
 * Shorter arrays of such numbers are sorted by FJ_SORT (forkjoin/sort.h). All wider elements are
 * sorted by digits (radix sort) for any n.
 *
 *   grain    is ignored if the array is sorted by counting or by digits.
 *   memory   8 bits: 2 KiB for each stolen range. 16 bits: 512 KiB, and 512 KiB for each stolen
 *            range. Others: n * size bytes if that is more than 4096, and at most 512 KiB for each
 *            range that is being divided by a digit. If there is no memory at the beginning of a
 *            call, the function sorts by comparisons instead: an array of numbers as FJ_SORT does,
 *            and an array of keys with values as FJ_STABLE_SORT does.
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
 * *item to a new item; if the function leaves *item NULL, there are no more items. In a later stage
 * *item is what the previous stage left in it, and the function may change it; if the function sets
 * *item to NULL, later stages do not see the item.
 */
typedef int fj_stage_fn(void **item, void *arg);

/* How many items may be in a stage at the same time, and in which order they pass it. */
enum fj_stage_kind {
    FJ_STAGE_PARALLEL = 0,     /* any number of items at the same time */
    FJ_STAGE_SERIAL = 0x10000, /* one item at a time, in any order */
    FJ_STAGE_ORDERED = 0x20000 /* one item at a time, in the order of the first stage */
};

/* A stage: its function, the argument of the function, and its kind (enum fj_stage_kind). */
typedef struct fj_stage {
    fj_stage_fn *fn;
    void *arg;
    int kind;
} fj_stage;

/*
 * Passes items through stages[0] to stages[n - 1] until the first stage has no more items. At most
 * `max_in_flight` items are between the first stage and the end of the last stage at the same time,
 * which bounds the memory. The first stage may be of any kind. A parallel first stage is called
 * until one call leaves *item NULL; other calls that are running at that moment may still make
 * items.
 *
 * A worker never blocks to wait for an item. If an item cannot enter its next stage yet, the item
 * waits before that stage, and the worker takes another item that is ready.
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
 *            if a kind is unknown; FJ_ENOMEM also if there is no memory for the items. After
 *            FJ_EINVAL and FJ_ENOMEM no stage has run.
 */
FJ_API FJ_NODISCARD int fj_pipeline(const fj_stage *stages, size_t n, size_t max_in_flight,
                                    void (*drop)(void *item), const fj_algo_options *how);

FJI_EXTERN_C_END

#endif /* FORKJOIN_ALGO_H */
