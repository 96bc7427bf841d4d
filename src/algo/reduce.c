/* SPDX-License-Identifier: MIT */
/*
 * reduce.c - folding a range into one value, and counting elements by key
 *
 * fj_reduce() and fj_histogram() are the loop of split.h with accumulators. The loop adds to a
 * private accumulator. Only if the call succeeds, the private accumulator is copied to the result
 * of fj_reduce(), or added to the counts of fj_histogram().
 */
#include <string.h>

#include "scratch.h"
#include "split.h"

/* An accumulator of fj_reduce() of at most this many bytes is on the stack of the caller. */
enum { STACK_ACC = 256 };

/* ---- Reductions ------------------------------------------------------------------------------ */

struct fold_loop {
    fj_fold_fn *fold;
    void *arg;
};

static int fold_step(void *context, size_t lo, size_t hi, void *acc)
{
    const struct fold_loop *l = context;
    return l->fold(lo, hi, acc, l->arg);
}

int fj_reduce(size_t begin, size_t end, fj_fold_fn *fold, fj_combine_fn *combine,
              const void *identity, size_t size, void *arg, void *result,
              const fj_algo_options *how)
{
    struct fold_loop l = {fold, arg};
    fji_split s = {.step = fold_step,
                   .context = &l,
                   .combine = combine,
                   .arg = arg,
                   .identity = identity,
                   .size = size};
    _Alignas(max_align_t) unsigned char stack[STACK_ACC];

    if (fold == NULL || combine == NULL || identity == NULL || result == NULL) return FJ_EINVAL;
    if (begin > end || size == 0 || size > PTRDIFF_MAX) return FJ_EINVAL;
    int err = fji_job_init(&s.job, how, end - begin);
    if (err != FJ_OK) return err;
    void *acc = size <= sizeof stack ? stack : fji_algo_alloc_for(how, size);
    if (acc == NULL) return FJ_ENOMEM;
    memcpy(acc, identity, size);
    err = fji_split_run(&s, how, begin, end, acc);
    if (err == FJ_OK) memcpy(result, acc, size);
    if (acc != stack) fji_algo_free(acc);
    return err;
}

/* ---- Histograms ------------------------------------------------------------------------------ */

struct count_loop {
    fj_count_fn *count;
    void *arg;
    size_t keys;
};

static int count_step(void *context, size_t lo, size_t hi, void *acc)
{
    const struct count_loop *l = context;
    return l->count(lo, hi, acc, l->arg);
}

static int count_combine(void *left, const void *right, void *arg)
{
    const struct count_loop *l = arg;
    uint64_t *a = left;
    const uint64_t *b = right;

    for (size_t i = 0; i < l->keys; i++) a[i] += b[i];
    return FJ_OK;
}

int fj_histogram(size_t begin, size_t end, fj_count_fn *count, void *arg, uint64_t *counts,
                 size_t keys, const fj_algo_options *how)
{
    struct count_loop l = {count, arg, keys};
    fji_split s = {.step = count_step,
                   .context = &l,
                   .combine = count_combine,
                   .arg = &l,
                   .size = keys * sizeof *counts};

    if (count == NULL || counts == NULL || begin > end) return FJ_EINVAL;
    if (keys == 0 || !fji_fits(keys, sizeof *counts)) return FJ_EINVAL;
    int err = fji_job_init(&s.job, how, end - begin);
    if (err != FJ_OK) return err;
    uint64_t *sum = fji_algo_alloc_for(how, s.size);
    if (sum == NULL) return FJ_ENOMEM;
    memset(sum, 0, s.size);
    err = fji_split_run(&s, how, begin, end, sum);
    if (err == FJ_OK) err = count_combine(counts, sum, &l);
    fji_algo_free(sum);
    return err;
}
