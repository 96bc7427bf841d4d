/* SPDX-License-Identifier: MIT */
/*
 * filter.c - filters and partitions
 *
 * An element is selected if the caller's predicate accepts it. A filter copies the selected
 * elements to the front of `out`. A partition also copies the other elements, behind the selected
 * ones.
 *
 * The problem: the index of an element in `out` depends on how many elements left of it are
 * selected, and the predicate must be called only once for each element.
 *
 * The idea: the results of the predicate are stored in a mask, which has one bit for each element
 * in words of 64 bits. A filter is a loop of prefix.h, which explains fold, note, prefix and emit.
 * The prefix of a chunk is the number of selected elements left of the chunk. To fold a chunk is to
 * test its elements and to count the selected ones; the note of the chunk is its mask. To emit a
 * chunk is to copy its selected elements to `out`, from the index on that is the prefix. If a chunk
 * is emitted without a fold, its elements are tested and copied in batches of at most BATCH
 * elements, so that the mask of a batch fits on the stack.
 *
 * A partition cannot copy an element that is not selected before it knows how many elements are
 * selected in all. A partition therefore makes two passes over blocks of elements: the first pass
 * tests the elements and counts the selected ones, and the second pass copies all elements. If
 * there is no memory for the mask, one thread makes a single pass. That thread writes the elements
 * that are not selected backwards from the end of `out`, and finally reverses their order.
 */
#include <string.h>

#include "prefix.h"
#include "scratch.h"
#include "split.h"
#include "swap.h"

enum {
    WORD = 64,       /* bits of a word of the mask, one for each element */
    BATCH = 2048,    /* the most elements that the caller's `keep` gets in one call, and that are
                      * tested at once by a loop whose mask holds only one batch */
    SPARSE_MAX = 24, /* a mask word with at most this many bits set is copied by copy_sparse(), if
                      * elements have 1, 2, 4, 8 or 16 bytes */
};

struct filter;

/* Tests the n elements of f->in from index lo on by the caller's predicate. Sets the (n + 63) / 64
 * words of the mask: bit j of word i is 1 if element lo + 64 * i + j is selected. The bits above
 * the last element are 0. Returns FJ_OK. If the predicate returns an error code, returns that code;
 * the mask is then incomplete. */
typedef int filter_test(const struct filter *f, size_t lo, size_t n, uint64_t *mask);

/* Copies those elements of `in` whose bit in the mask is set, and stores them one after the other
 * from `out` on. An element has `size` bytes. The mask has `words` words; bit j of word i belongs
 * to element 64 * i + j. Returns the address behind the last copy, or `out` if no bit is set. */
typedef unsigned char *filter_copy(unsigned char *out, const unsigned char *in,
                                   const uint64_t *mask, size_t words, size_t size);

struct filter {
    const unsigned char *in;
    unsigned char *out;
    size_t size;             /* bytes of an element */
    fj_test_fn *test;        /* the caller's predicate for one element; NULL: `keep` is used */
    fj_keep_fn *keep;        /* the caller's predicate for a batch; NULL: `test` is used */
    void *arg;               /* the last argument of `test` and `keep` */
    filter_test *test_chunk; /* test_elements(), which calls `test`, or test_chunks(), which calls
                              * `keep` */
    filter_copy *copy;       /* the copy function for elements of `size` bytes */
};

static size_t mask_words(size_t n)
{
    return fji_div_up(n, WORD);
}

/* ---- Testing --------------------------------------------------------------------------------- */

/* The filter_test function that calls f->test for each element. An element is selected if the
 * result is positive; a negative result is an error code. */
static int test_elements(const struct filter *f, size_t lo, size_t n, uint64_t *mask)
{
    const unsigned char *x = f->in + lo * f->size;

    for (; n != 0; mask++) {
        size_t m = fji_min(n, WORD);
        uint64_t bits = 0;

        for (size_t j = 0; j < m; j++, x += f->size) {
            int result = f->test(x, f->arg);
            if (FJI_UNLIKELY(result < 0)) return result;
            bits |= (uint64_t)(result > 0) << j;
        }
        *mask = bits;
        n -= m;
    }
    return FJ_OK;
}

/* Returns one bit for each of eight bytes, set if the byte is not 0. Bit i belongs to bytes[i]. */
static uint64_t nonzero_bytes(const unsigned char *bytes)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7fu;
    uint64_t x;

    memcpy(&x, bytes, sizeof x);
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) x = __builtin_bswap64(x);
    x = (((x & low) + low) | x) >> 7 & 0x0101010101010101u;
    return x * 0x0102040810204080u >> 56;
}

/* The filter_test function that calls f->keep for each batch of at most BATCH elements. f->keep
 * stores one byte for each element, which is not 0 if the element is selected. Any code other than
 * FJ_OK that f->keep returns is an error code. */
static int test_chunks(const struct filter *f, size_t lo, size_t n, uint64_t *mask)
{
    unsigned char keep[BATCH];

    while (n != 0) {
        size_t m = fji_min(n, sizeof keep), words = mask_words(m);

        memset(keep + m, 0, words * WORD - m);
        int code = f->keep(lo, lo + m, keep, f->arg);
        if (FJI_UNLIKELY(code != FJ_OK)) return code;
        for (size_t i = 0; i < words; i++) {
            uint64_t bits = 0;
            for (unsigned j = 0; j < WORD; j += 8) bits |= nonzero_bytes(keep + i * WORD + j) << j;
            mask[i] = bits;
        }
        mask += words;
        lo += m;
        n -= m;
    }
    return FJ_OK;
}

static size_t count_bits(const uint64_t *mask, size_t words)
{
    size_t n = 0;

    for (size_t i = 0; i < words; i++) n += (size_t)__builtin_popcountll(mask[i]);
    return n;
}

/* ---- Copying --------------------------------------------------------------------------------- */

/* Copies one element to `out`. If bit 0 of `bits` is set, returns the address behind the copy.
 * Otherwise returns `out`, so that the next copy overwrites this element. */
FJI_INLINE unsigned char *copy_one(unsigned char *out, const unsigned char *in, uint64_t bits,
                                   size_t size)
{
    memcpy(out, in, size);
    return out + (bits & 1) * size;
}

/* Copies those of 64 elements whose bit in the mask word `bits`, which is not 0, is set. Returns
 * the address behind the last of them. Does without a branch for each element: copies every element
 * up to the last selected one, and each copy overwrites the copy before it if that one is not
 * selected. The last copy is a selected element, so nothing is written behind the selected
 * elements, where another worker may write. */
FJI_INLINE unsigned char *copy_dense(unsigned char *out, const unsigned char *in, uint64_t bits,
                                     size_t size)
{
    unsigned n = WORD - (unsigned)__builtin_clzll(bits);

    for (; n >= 4; n -= 4, in += 4 * size, bits >>= 4) {
        out = copy_one(out, in, bits, size);
        out = copy_one(out, in + size, bits >> 1, size);
        out = copy_one(out, in + 2 * size, bits >> 2, size);
        out = copy_one(out, in + 3 * size, bits >> 3, size);
    }
    for (; n != 0; n--, in += size, bits >>= 1) out = copy_one(out, in, bits, size);
    return out;
}

FJI_INLINE unsigned char *copy_sparse(unsigned char *out, const unsigned char *in, uint64_t bits,
                                      size_t size)
{
    for (; bits != 0; bits &= bits - 1, out += size)
        memcpy(out, in + (size_t)__builtin_ctzll(bits) * size, size);
    return out;
}

FJI_INLINE unsigned char *copy_small(unsigned char *out, const unsigned char *in,
                                     const uint64_t *mask, size_t words, size_t size)
{
    for (size_t i = 0; i < words; i++, in += WORD * size) {
        uint64_t bits = mask[i];

        if (bits == UINT64_MAX)
            out = (unsigned char *)memcpy(out, in, WORD * size) + WORD * size;
        else if (__builtin_popcountll(bits) > SPARSE_MAX)
            out = copy_dense(out, in, bits, size);
        else
            out = copy_sparse(out, in, bits, size);
    }
    return out;
}

#define COPY(n)                                                                     \
    static unsigned char *copy_##n(unsigned char *out, const unsigned char *in,     \
                                   const uint64_t *mask, size_t words, size_t size) \
    {                                                                               \
        (void)size;                                                                 \
        return copy_small(out, in, mask, words, n);                                 \
    }

COPY(1)
COPY(2)
COPY(4)
COPY(8)
COPY(16)

/* Copies elements of a size for which there is no COPY() function. Selected elements that follow
 * each other directly are copied by one memcpy(), up to the end of a mask word. */
static unsigned char *copy_any(unsigned char *out, const unsigned char *in, const uint64_t *mask,
                               size_t words, size_t size)
{
    for (size_t i = 0; i < words; i++, in += WORD * size) {
        uint64_t bits = mask[i];

        for (size_t at = 0; bits != 0;) {
            unsigned skip = (unsigned)__builtin_ctzll(bits);
            uint64_t gaps = ~(bits >> skip);
            unsigned run = gaps != 0 ? (unsigned)__builtin_ctzll(gaps) : WORD;

            memcpy(out, in + (at + skip) * size, run * size);
            out += run * size;
            at += skip + run;
            bits = at < WORD ? mask[i] >> at : 0;
        }
    }
    return out;
}

static filter_copy *copy_for(size_t size)
{
    switch (size) {
        case 1: return copy_1;
        case 2: return copy_2;
        case 4: return copy_4;
        case 8: return copy_8;
        case 16: return copy_16;
        default: return copy_any;
    }
}

/* ---- Filters --------------------------------------------------------------------------------- */

static int filter_fold(void *context, size_t lo, size_t hi, void *acc, uint64_t *note)
{
    int code = ((const struct filter *)context)->test_chunk(context, lo, hi - lo, note);

    if (code == FJ_OK) *(size_t *)acc += count_bits(note, mask_words(hi - lo));
    return code;
}

/* Emits the chunk lo <= i < hi, which was not folded: tests its elements and copies the selected
 * ones. *count is the number of selected elements left of lo. If the function returns FJ_OK, *count
 * is the number of selected elements left of hi. */
static int filter_unfolded(const struct filter *f, size_t lo, size_t hi, size_t *count)
{
    unsigned char *out = f->out + *count * f->size;
    uint64_t mask[BATCH / WORD];

    while (lo < hi) {
        size_t n = fji_min(hi - lo, BATCH);
        int code = f->test_chunk(f, lo, n, mask);

        if (FJI_UNLIKELY(code != FJ_OK)) return code;
        out = f->copy(out, f->in + lo * f->size, mask, mask_words(n), f->size);
        lo += n;
    }
    *count = (size_t)(out - f->out) / f->size;
    return FJ_OK;
}

static int filter_emit(void *context, size_t lo, size_t hi, void *acc, uint64_t *note)
{
    const struct filter *f = context;

    if (note == NULL) return filter_unfolded(f, lo, hi, acc);
    (void)f->copy(f->out + *(size_t *)acc * f->size, f->in + lo * f->size, note,
                  mask_words(hi - lo), f->size);
    return FJ_OK;
}

static int filter_combine(void *left, const void *right, void *arg)
{
    (void)arg;
    *(size_t *)left += *(const size_t *)right;
    return FJ_OK;
}

/* Returns whether the arguments of a filter or a partition, except the predicate and the options,
 * are valid. If n is 0, `in` and `out` may be NULL. Otherwise `in` must not overlap the first
 * `out_bytes` bytes of `out`. For a filter this is 1 byte, because the number of selected elements,
 * and so the length of `out`, is not known yet. */
static bool filter_args_ok(const struct filter *f, size_t n, const size_t *count, size_t out_bytes)
{
    if (count == NULL || f->size == 0 || !fji_fits(n, f->size)) return false;
    if (n == 0) return true;
    if (f->in == NULL || f->out == NULL) return false;
    return !fji_overlap(f->in, n * f->size, f->out, out_bytes);
}

static int filter_run(struct filter *f, size_t n, size_t *count, const fj_algo_options *how)
{
    static const size_t zero;
    fji_prefix_loop loop = {.fold = filter_fold,
                            .emit = filter_emit,
                            .context = f,
                            .combine = filter_combine,
                            .identity = &zero,
                            .size = sizeof zero,
                            .has_notes = true};

    if (!filter_args_ok(f, n, count, 1)) return FJ_EINVAL;
    loop.stride = f->size <= PTRDIFF_MAX / 2 ? 2 * f->size : f->size;
    f->copy = copy_for(f->size);
    int err = fji_job_init(&loop.job, how, n);
    return err != FJ_OK ? err : fji_prefix_run(&loop, how, 0, n, count);
}

int fj_filter(const void *in, size_t n, size_t size, void *out, fj_test_fn *test, void *arg,
              size_t *count, const fj_algo_options *how)
{
    struct filter f = {
        .in = in, .out = out, .size = size, .test = test, .arg = arg, .test_chunk = test_elements};

    return test == NULL ? FJ_EINVAL : filter_run(&f, n, count, how);
}

int fj_filter_chunks(const void *in, size_t n, size_t size, void *out, fj_keep_fn *keep, void *arg,
                     size_t *count, const fj_algo_options *how)
{
    struct filter f = {
        .in = in, .out = out, .size = size, .keep = keep, .arg = arg, .test_chunk = test_chunks};

    return keep == NULL ? FJ_EINVAL : filter_run(&f, n, count, how);
}

/* ---- Partitions ------------------------------------------------------------------------------ */

enum {
    BLOCKS_MAX = 16384, /* limit for the number of blocks of a partition */
    SMALL_WORDS = 64,   /* the mask of a partition is on the stack if it has at most this many
                         * words of 64 bits */
};

struct partition {
    const struct filter *f;
    size_t n;       /* elements of the array */
    size_t block;   /* elements in a block, a multiple of WORD; the last block may have fewer */
    size_t blocks;  /* number of blocks */
    uint64_t *mask; /* one bit for each element: set if the element is selected. The second pass
                     * inverts the bits of a block after it has copied the selected elements */
    size_t *before; /* of each block: after the first pass the number of selected elements in the
                     * block; in the second pass their number in all blocks before it */
    size_t count;   /* selected elements in all blocks; set between the two passes */
    fj_progress *progress; /* to which the second pass adds the elements; NULL: none */
};

static size_t block_length(const struct partition *p, size_t b)
{
    return b + 1 == p->blocks ? p->n - b * p->block : p->block;
}

static uint64_t *block_mask(const struct partition *p, size_t b)
{
    return p->mask + b * (p->block / WORD);
}

/* The first pass over the blocks lo <= b < hi: sets the mask of each block, and p->before[b] to the
 * number of selected elements in block b. */
static int partition_test(void *context, size_t lo, size_t hi, void *acc)
{
    struct partition *p = context;
    int code = FJ_OK;

    (void)acc;
    for (size_t b = lo; b < hi && code == FJ_OK; b++) {
        size_t n = block_length(p, b);
        code = p->f->test_chunk(p->f, b * p->block, n, block_mask(p, b));
        if (code == FJ_OK) p->before[b] = count_bits(block_mask(p, b), mask_words(n));
    }
    return code;
}

/* The second pass over the blocks lo <= b < hi: copies the selected elements of each block to `out`
 * from index p->before[b] on, inverts the mask of the block, and copies the other elements behind
 * all selected elements of the array and behind the other elements of the blocks before b. */
static int partition_copy(void *context, size_t lo, size_t hi, void *acc)
{
    struct partition *p = context;
    const struct filter *f = p->f;

    (void)acc;
    for (size_t b = lo; b < hi; b++) {
        size_t n = block_length(p, b), words = mask_words(n), rest = b * p->block - p->before[b];
        const unsigned char *in = f->in + b * p->block * f->size;
        uint64_t *mask = block_mask(p, b);

        (void)f->copy(f->out + p->before[b] * f->size, in, mask, words, f->size);
        for (size_t i = 0; i < words; i++) mask[i] = ~mask[i];
        if (n % WORD != 0) mask[words - 1] &= ((uint64_t)1 << n % WORD) - 1;
        (void)f->copy(f->out + (p->count + rest) * f->size, in, mask, words, f->size);
        if (p->progress != NULL) fj_progress_add(p->progress, n);
    }
    return FJ_OK;
}

/* Runs one pass over all blocks. `step` is partition_test() or partition_copy(). Returns FJ_OK, or
 * the code that ended the pass before all blocks were processed. */
static int partition_pass(struct partition *p, fji_step *step, const fj_algo_options *how)
{
    fji_split s = {.step = step, .context = p};
    fj_algo_options each = how != NULL ? *how : (fj_algo_options){.grain = 0};

    each.progress = NULL; /* partition_copy() adds elements to p->progress; the loop would add
                           * blocks */
    each.grain = each.grain != 0 ? 1 : 0;
    each.min_grain = each.min_grain / p->block;
    each.max_grain = fji_div_up(each.max_grain, p->block);
    int err = fji_job_init(&s.job, &each, 0);
    return err != FJ_OK ? err : fji_split_run(&s, &each, 0, p->blocks, NULL);
}

static int partition_passes(struct partition *p, const fj_algo_options *how)
{
    int err = partition_pass(p, partition_test, how);

    if (err != FJ_OK) return err;
    for (size_t b = 0; b < p->blocks; b++) {
        size_t n = p->before[b];
        p->before[b] = p->count;
        p->count += n;
    }
    return partition_pass(p, partition_copy, how);
}

/* ---- Partitions without memory --------------------------------------------------------------- */

struct sequential_call {
    fj_task task;
    fji_job job;
    const struct filter *f;
    size_t n;
    size_t count;
};

/* Copies those of n elements whose bit in the mask is clear. The first copy ends at `end`, and each
 * further copy ends where the one before it begins. Returns where the last copy begins, or `end` if
 * there is none. */
static unsigned char *copy_back(unsigned char *end, const unsigned char *in, const uint64_t *mask,
                                size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++)
        if ((mask[i / WORD] >> i % WORD & 1) == 0) end = memcpy(end - size, in + i * size, size);
    return end;
}

static int sequential_run(fj_task *t)
{
    struct sequential_call *a = (struct sequential_call *)t;
    const struct filter *f = a->f;
    unsigned char *out = f->out, *end = f->out + a->n * f->size;
    uint64_t mask[BATCH / WORD];

    for (size_t lo = 0, n; lo < a->n && fji_job_should_continue(&a->job); lo += n) {
        const unsigned char *in = f->in + lo * f->size;
        n = fji_min(a->n - lo, BATCH);
        int code = f->test_chunk(f, lo, n, mask);
        if (code != FJ_OK) return code;
        end = copy_back(end, in, mask, n, f->size);
        out = f->copy(out, in, mask, mask_words(n), f->size);
        fji_job_add_progress(&a->job, n);
    }
    a->count = (size_t)(out - f->out) / f->size;
    fji_reverse(end, (size_t)(f->out + a->n * f->size - end) / f->size, f->size);
    return FJ_OK;
}

static int partition_sequential(const struct filter *f, size_t n, size_t *count,
                                const fj_algo_options *how)
{
    struct sequential_call a = {.f = f, .n = n};
    fj_algo_options untracked = how != NULL ? *how : (fj_algo_options){.grain = 0};

    untracked.progress = NULL; /* fji_job_init() must not add to the total of how->progress again:
                                * partition_run() has already added n */
    int err = fji_job_init(&a.job, &untracked, 0);
    if (err != FJ_OK) return err;
    a.job.progress = how != NULL ? how->progress : NULL;
    fj_task_init(&a.task, sequential_run);
    err = fji_job_run(&a.job, how, &a.task);
    if (err == FJ_OK) *count = a.count;
    return err;
}

/* ---- Partitions: the call -------------------------------------------------------------------- */

/* Returns the number of elements in a block, if the array has n elements, n > 0. It is the larger
 * one of `grain`, which is 0 if the options set no grain, and n / BLOCKS_MAX, rounded up. It is at
 * most n, and is then rounded up to a multiple of WORD. */
static size_t block_size(size_t n, size_t grain)
{
    size_t min = fji_div_up(n, BLOCKS_MAX);
    size_t block = grain > min ? grain : min;

    return mask_words(fji_min(block, n)) * WORD;
}

/* Checks the arguments and runs a partition. If the mask needs at most SMALL_WORDS words, the mask
 * and the array `before` are on the stack. Otherwise both are in one allocated block; if the
 * allocation fails, partition_sequential() runs. If the function returns FJ_OK, *count is the
 * number of selected elements; otherwise *count is unchanged. */
static int partition_run(struct filter *f, size_t n, size_t *count, const fj_algo_options *how)
{
    uint64_t small_mask[SMALL_WORDS];
    size_t small_before[SMALL_WORDS];
    struct partition p = {.f = f, .n = n, .mask = small_mask, .before = small_before};
    fji_job job;

    if (!filter_args_ok(f, n, count, n * f->size)) return FJ_EINVAL;
    f->copy = copy_for(f->size);
    int err = fji_job_init(&job, how, n);
    if (err != FJ_OK) return err;
    if (n != 0) {
        p.progress = job.progress;
        p.block = block_size(n, job.grain);
        p.blocks = (n - 1) / p.block + 1;
        size_t bytes = p.blocks * (p.block / WORD) * sizeof *p.mask;
        if (n > (size_t)SMALL_WORDS * WORD)
            p.mask = fji_algo_alloc_for(how, bytes + p.blocks * sizeof *p.before);
        if (p.mask == NULL) return partition_sequential(f, n, count, how);
        if (p.mask != small_mask) p.before = (void *)((unsigned char *)p.mask + bytes);
        err = partition_passes(&p, how);
        if (p.mask != small_mask) fji_algo_free(p.mask);
    }
    if (err == FJ_OK) *count = p.count;
    return err;
}

int fj_partition(const void *in, size_t n, size_t size, void *out, fj_test_fn *test, void *arg,
                 size_t *count, const fj_algo_options *how)
{
    struct filter f = {
        .in = in, .out = out, .size = size, .test = test, .arg = arg, .test_chunk = test_elements};

    return test == NULL ? FJ_EINVAL : partition_run(&f, n, count, how);
}

int fj_partition_chunks(const void *in, size_t n, size_t size, void *out, fj_keep_fn *keep,
                        void *arg, size_t *count, const fj_algo_options *how)
{
    struct filter f = {
        .in = in, .out = out, .size = size, .keep = keep, .arg = arg, .test_chunk = test_chunks};

    return keep == NULL ? FJ_EINVAL : partition_run(&f, n, count, how);
}
