/* SPDX-License-Identifier: MIT */
/*
 * merge.c - merges of two sorted runs
 *
 * A run is a sorted array. The merge has two of them, a and b.
 *
 * The problem: a merge decides for each element of `out` which run it comes from. On random data
 * the processor mispredicts a branch on that decision half of the time, and each comparison has to
 * wait for the one before it, which decides which elements are compared next.
 *
 * The idea: each step merges two elements, the smallest one that is left to the front of `out` and
 * the largest one that is left to its back. The two comparisons are independent, so the processor
 * overlaps them. The address of the element to copy is computed by masks, without a branch.
 *
 *     a    |copied|..........|copied|       k elements from the fronts of a and b together,
 *     b    |copied|....|copied|             k elements from their backs together
 *     out  |k elements|      |k elements|
 *
 * The number of steps, k, is at most the length of the shorter run. Therefore k steps cannot go
 * beyond the end of a run, and the loop does not test for it. The same element can be copied from
 * both ends only if the comparison contradicts itself. The merge detects this after the k steps,
 * and then repeats them in another way: it merges up to 2 * k elements from the front, with a test
 * of the bounds at each step. When one run has fewer than SHORT_RUN elements left, and the other
 * one has more than SKEW times as many, a binary search in the longer run finds the position of
 * each element of the shorter one.
 *
 * In parallel: a worker that merges tests for demand before each chunk. If there is demand, and
 * more than two chunks are left, the worker divides the rest of `out` into two halves: a binary
 * search finds how many elements of the first half come from a. The worker forks a task that merges
 * the second half, and merges the first half itself. If no thief takes the task, the worker then
 * merges the second half too. The search is done only once for both halves, so each element belongs
 * to exactly one half, even if the comparison contradicts itself.
 */
#include "merge.h"

#include "plat/ticks.h"
#include "sort_kernel.h"
#include "split.h"

enum {
    SHORT_RUN = 8,    /* if either run has fewer elements left, merge_short_run() merges the rest */
    SKEW = 8,         /* if one run is more than 8 times as long as the other, merge_short_run()
                       * finds positions in the longer one by binary search */
    TRIM_MIN = 128,   /* if both runs together have fewer elements, fji_merge_sequential() does not
                       * look for elements that need no merge (merge_trim()) */
    CHUNK_MAX = 2048, /* the largest chunk, in elements, unless `grain` or `min_grain` of the
                       * options asks for a larger one */
    SKIP_POOL_MAX = 1024, /* the most elements, of both runs together, that fj_merge() merges on
                           * the calling thread without entering a pool */
};

enum fji_kind fji_kind_of(size_t size)
{
    if (size == 4) return FJI_KIND_4;
    if (size == 8) return FJI_KIND_8;
    if (size > 8 && size <= 16) return FJI_KIND_16;
    return size > 16 && size <= 32 ? FJI_KIND_32 : FJI_KIND_ANY;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Merges elements from the front of the runs to the front of `out`, and removes them from *p. Stops
 * after `max` elements, or when a run is empty. */
FJI_INLINE void merge_front(const fji_order *o, fji_run_pair *p, size_t max, enum fji_kind kind)
{
    const size_t size = fji_elem_size(o, kind);
    const unsigned char *a = p->a, *b = p->b;
    const unsigned char *a_end = a + p->na * size, *b_end = b + p->nb * size;
    unsigned char *out = p->out;

    for (; max > 0 && a != a_end && b != b_end; max--) {
        uintptr_t mask = fji_positive_mask(fji_elem_cmp(o, a, b, kind));
        fji_elem_copy(out, fji_select(mask, b, a), size, kind);
        b += size & mask;
        a += size & ~mask;
        out += size;
    }
    p->na = (size_t)(a_end - a) / size;
    p->nb = (size_t)(b_end - b) / size;
    p->a = a;
    p->b = b;
    p->out = out;
}

/* Copies the first n elements of *run to p->out, and removes them from *run: advances *run and
 * p->out by n elements and subtracts n from *left. `run` is &p->a or &p->b, and `left` is &p->na or
 * &p->nb, the number of elements of that run. */
static void merge_take(const fji_order *o, fji_run_pair *p, const unsigned char **run, size_t *left,
                       size_t n)
{
    if (n == 0) return;
    memcpy(p->out, *run, n * o->size);
    p->out += n * o->size;
    *run += n * o->size;
    *left -= n;
}

static void merge_take_a(const fji_order *o, fji_run_pair *p, size_t n)
{
    merge_take(o, p, &p->a, &p->na, n);
}

static void merge_take_b(const fji_order *o, fji_run_pair *p, size_t n)
{
    merge_take(o, p, &p->b, &p->nb, n);
}

/* ---- Searches -------------------------------------------------------------------------------- */

/* Returns the first i with from <= i < to for which run[i] comes after *e, or `to` if there is
 * none. */
static size_t upper_bound(const fji_order *o, const unsigned char *run, size_t from, size_t to,
                          const unsigned char *e)
{
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (fji_order_cmp(o, run + mid * o->size, e) <= 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Returns the first i with from <= i < to for which run[i] does not come before *e, or `to` if
 * there is none. */
static size_t lower_bound(const fji_order *o, const unsigned char *run, size_t from, size_t to,
                          const unsigned char *e)
{
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (fji_order_cmp(o, e, run + mid * o->size) > 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Copies the elements at the front of a that do not come after b[0] to the front of `out`, and the
 * elements at the back of b that do not come before the last element of a to the back of `out`.
 * Removes all these elements from *p: they need no merge. The function finds the end of each group
 * by steps of growing length, followed by a binary search. Neither run is empty at the start. */
static void merge_trim(const fji_order *o, fji_run_pair *p)
{
    size_t size = o->size, from = 0, to = 1;

    while (to <= p->na && fji_order_cmp(o, p->a + (to - 1) * size, p->b) <= 0) {
        from = to;
        to = 2 * to + 1;
    }
    merge_take_a(o, p, upper_bound(o, p->a, from, fji_min(to - 1, p->na), p->b));
    if (p->na == 0) return;

    const unsigned char *last = p->a + (p->na - 1) * size;
    size_t back = 1, keep = p->nb;
    while (back <= p->nb && fji_order_cmp(o, last, p->b + (p->nb - back) * size) <= 0) {
        keep = p->nb - back;
        back = 2 * back + 1;
    }
    keep = lower_bound(o, p->b, back <= p->nb ? p->nb - back + 1 : 0, keep, last);
    memcpy(p->out + (p->na + keep) * size, p->b + keep * size, (p->nb - keep) * size);
    p->nb = keep;
}

size_t fji_merge_rank(const fji_order *o, const fji_run_pair *p, size_t n)
{
    size_t lo = n > p->nb ? n - p->nb : 0, hi = fji_min(n, p->na);

    while (lo < hi) {
        size_t i = lo + (hi - lo) / 2; /* i < na, i < n, and n - i <= nb */
        if (fji_order_cmp(o, p->a + i * o->size, p->b + (n - i - 1) * o->size) <= 0)
            lo = i + 1;
        else
            hi = i;
    }
    return lo;
}

/* ---- Sequential merges ----------------------------------------------------------------------- */

/* Merges k elements to the front of `out` and k elements to its back, and removes them from *p.
 * 0 < k, k <= na and k <= nb. If the comparison has contradicted itself, so that an element was
 * copied to both ends, merges at most 2 * k elements to the front instead. */
static void merge_both_ends(const fji_order *o, fji_run_pair *p, size_t k)
{
    bool consistent = true;

    FJI_BY_KIND(o->kind, fji_merge_both_ends, o, p, k, &consistent);
    if (FJI_UNLIKELY(!consistent)) FJI_BY_KIND(o->kind, merge_front, o, p, 2 * k);
}

/* Merges all that is left of *p. One of the runs has fewer than SHORT_RUN elements, or none. */
static void merge_short_run(const fji_order *o, fji_run_pair *p)
{
    while (p->na > SKEW * p->nb && p->nb > 0) {
        merge_take_a(o, p, upper_bound(o, p->a, 0, p->na, p->b));
        merge_take_b(o, p, 1);
    }
    while (p->nb > SKEW * p->na && p->na > 0) {
        merge_take_b(o, p, lower_bound(o, p->b, 0, p->nb, p->a));
        merge_take_a(o, p, 1);
    }
    if (p->na > 0 && p->nb > 0) FJI_BY_KIND(o->kind, merge_front, o, p, SIZE_MAX);
    merge_take_a(o, p, p->na);
    merge_take_b(o, p, p->nb);
}

void fji_merge_sequential(const fji_order *o, fji_run_pair *p)
{
    if (p->na + p->nb >= TRIM_MIN && p->na > 0 && p->nb > 0) merge_trim(o, p);
    for (size_t k; (k = fji_min(p->na, p->nb)) >= SHORT_RUN;) merge_both_ends(o, p, k);
    merge_short_run(o, p);
}

/* ---- Parallel merges ------------------------------------------------------------------------- */

/* The second half of a merge, while it is forked. */
typedef struct merge_half {
    fj_task task;
    const fji_merge_context *merge;
    fji_run_pair pair;
} merge_half;

static void merge_pair(const fji_merge_context *m, fji_run_pair p);

static int merge_half_run(fj_task *t)
{
    merge_half *h = (merge_half *)t;

    merge_pair(h->merge, h->pair);
    return FJ_OK;
}

/* Forks a task that merges the second half of *p, and merges the first half. Returns false if the
 * task was run, by a thief or by fj_fork() itself for want of memory. Otherwise takes the task
 * back, sets *p to the second half, which the caller still has to merge, and returns true. */
static bool merge_fork_half(const fji_merge_context *m, fji_run_pair *p)
{
    size_t n = (p->na + p->nb) / 2, size = m->order.size;
    size_t i = fji_merge_rank(&m->order, p, n), j = n - i;
    fji_run_pair left = {p->a, p->b, p->out, i, j};
    merge_half h = {
        .merge = m,
        .pair = {p->a + i * size, p->b + j * size, p->out + n * size, p->na - i, p->nb - j}};

    fj_task_init(&h.task, merge_half_run);
    fj_fork(&h.task);
    merge_pair(m, left);
    if (fji_job_join(m->job, &h.task)) return false;
    *p = h.pair;
    return true;
}

static void merge_add_progress(const fji_merge_context *m, size_t n)
{
    if (m->counts_progress) fji_job_add_progress(m->job, n);
}

/* Merges p, chunk by chunk, until it is empty or the job has ended. Before each chunk, forks a half
 * of the rest if m->parallel is true, more than two chunks are left and there is demand. If one of
 * the runs has fewer than SHORT_RUN elements left, merges the rest at once. */
static void merge_pair(const fji_merge_context *m, fji_run_pair p)
{
    size_t max = m->chunk / 2 < SHORT_RUN ? SHORT_RUN : m->chunk / 2;

    while (fji_job_should_continue(m->job)) {
        size_t n = p.na + p.nb, k = fji_min(p.na, p.nb);
        if (k < SHORT_RUN) {
            merge_short_run(&m->order, &p);
            merge_add_progress(m, n);
            return;
        }
        if (m->parallel && n > 2 * m->chunk && fji_has_demand()) {
            if (!merge_fork_half(m, &p)) return;
        } else {
            merge_both_ends(&m->order, &p, fji_min(k, max));
            merge_add_progress(m, n - p.na - p.nb);
        }
    }
}

void fji_merge_parallel(const fji_merge_context *m, const fji_run_pair *p)
{
    fji_run_pair rest = *p;

    if (rest.na > 0 && rest.nb > 0) merge_trim(&m->order, &rest);
    merge_add_progress(m, p->na + p->nb - rest.na - rest.nb);
    merge_pair(m, rest);
}

/* ---- The call -------------------------------------------------------------------------------- */

size_t fji_order_chunk_size(const fji_order *o, const void *first, size_t n, size_t max)
{
    enum { CALLS = 3 };
    const unsigned char *x = first, *y = x + o->size;

    if (n < 2) return max;
    /* The first comparison may be slow because the elements are not in a cache yet, so its time is
     * not measured. */
    (void)o->cmp(x, y, o->arg);
    uint64_t start = fji_ticks();
    for (int i = 0; i < CALLS; i++) (void)o->cmp(x, y, o->arg);
    uint64_t elapsed = fji_ticks() - start;
    /* If the thread has moved to a processor whose counter is behind, the time is negative. */
    if (elapsed > UINT64_MAX / 2) elapsed = 0;
    uint64_t fit = (uint64_t)FJI_CHUNK_TICKS * CALLS / (elapsed + 1);
    return fit == 0 ? 1 : fit < max ? (size_t)fit : max;
}

typedef struct merge_call {
    fj_task task;
    fji_merge_context merge;
    fji_run_pair pair;
} merge_call;

/* Returns how many comparisons take about FJI_CHUNK_TICKS, at least 1 and at most `max`. Measures
 * comparisons of the first two elements of the longer run. */
static size_t merge_measure(const merge_call *c, size_t max)
{
    const fji_run_pair *p = &c->pair;

    return p->na > p->nb ? fji_order_chunk_size(&c->merge.order, p->a, p->na, max)
                         : fji_order_chunk_size(&c->merge.order, p->b, p->nb, max);
}

/* The root task of fj_merge(), if the merge runs in a pool. */
static int merge_call_run(fj_task *t)
{
    merge_call *c = (merge_call *)t;

    c->merge.chunk = fji_job_chunk_size(c->merge.job, merge_measure(c, CHUNK_MAX));
    fji_merge_parallel(&c->merge, &c->pair);
    return FJ_OK;
}

bool fji_run_pair_args_ok(const fji_run_pair *p, size_t size)
{
    size_t n;

    if (size == 0 || __builtin_add_overflow(p->na, p->nb, &n)) return false;
    if (!fji_array_ok(p->a, p->na, size) || !fji_array_ok(p->b, p->nb, size)) return false;
    if (!fji_array_ok(p->out, n, size)) return false;
    return !fji_overlap(p->a, p->na * size, p->out, n * size) &&
           !fji_overlap(p->b, p->nb * size, p->out, n * size);
}

int fj_merge(const void *a, size_t na, const void *b, size_t nb, size_t size, void *out,
             fj_compare_fn *cmp, void *arg, const fj_algo_options *how)
{
    fji_job job;
    merge_call c = {.merge = {{cmp, arg, size, fji_kind_of(size)}, &job, 0, true, true},
                    .pair = {a, b, out, na, nb}};

    if (cmp == NULL || !fji_run_pair_args_ok(&c.pair, size)) return FJ_EINVAL;
    int err = fji_job_init(&job, how, na + nb);
    if (err != FJ_OK || na + nb == 0) return err;
    if (na + nb <= SKIP_POOL_MAX && fji_job_may_skip_pool(how) &&
        merge_measure(&c, SKIP_POOL_MAX) >= na + nb) {
        fji_merge_sequential(&c.merge.order, &c.pair);
        merge_add_progress(&c.merge, na + nb);
        return FJ_OK;
    }
    fj_task_init(&c.task, merge_call_run);
    return fji_job_run(&job, how, &c.task);
}
