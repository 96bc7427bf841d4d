/* SPDX-License-Identifier: MIT */
/*
 * merge.c - merging two sorted runs
 *
 * Two elements are merged at a time: the least of what is left to the front of out, the
 * greatest to its back. The two comparisons know nothing of each other, so that a processor
 * does them at the same time, and which run an element is taken from is computed rather than
 * jumped on.
 *
 *     a    |taken|...........|taken|        k from the front, k from the back
 *     b    |taken|.....|taken|
 *     out  |done......|      |......done|
 *
 * k is at most the length of the shorter run: neither end can leave its run, and no bound has
 * to be looked at. Only a comparison that contradicts itself can take an element from both
 * ends; that is seen afterwards, and the elements are merged once more, from the front, with a
 * look at the bounds at every step. When one run is nearly empty, what is left of it is put in
 * its places by binary searches.
 *
 * Many workers: whoever merges a piece looks now and then whether the others have too little
 * to do. Then it cuts what is left in two that belong one after the other, by a binary search
 * for how much of the first half of out comes from a; it forks the second, and goes on with
 * the first. The cut is looked for once, by one thread, so its two sides always fit.
 */
#include "merge.h"

#include "../plat/ticks.h"
#include "sort_kernel.h"
#include "split.h"

enum {
    SHORT_RUN = 8,         /* a run so short is put in its places one by one */
    SKEW = 8,              /* unless the other is not so many times as long */
    TRIM_MIN = 128,        /* shorter pieces are not looked at for what needs no merging */
    CHUNK_MAX = 2048,      /* elements that are merged without a look at anything else */
    SEQUENTIAL_MAX = 1024, /* so many are never worth a pool, if comparing takes no time */
};

enum fji_kind fji_kind_of(size_t size)
{
    if (size == 4) return FJI_KIND_4;
    if (size == 8) return FJI_KIND_8;
    if (size > 8 && size <= 16) return FJI_KIND_16;
    return size > 16 && size <= 32 ? FJI_KIND_32 : FJI_KIND_ANY;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Merges up to `most` elements from the front, until a run is empty. */
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

/* n elements of a, or of b, are next. */
static void merge_take_a(const fji_order *o, fji_run_pair *p, size_t n)
{
    if (n == 0) return;
    memcpy(p->out, p->a, n * o->size);
    p->out += n * o->size;
    p->a += n * o->size;
    p->na -= n;
}

static void merge_take_b(const fji_order *o, fji_run_pair *p, size_t n)
{
    if (n == 0) return;
    memcpy(p->out, p->b, n * o->size);
    p->out += n * o->size;
    p->b += n * o->size;
    p->nb -= n;
}

/* ---- Searches -------------------------------------------------------------------------------- */

static size_t min_size(size_t x, size_t y)
{
    return x < y ? x : y;
}

/* How many of a, of which the first `from` do, come before what is at b, if `to` at most. */
static size_t merge_before(const fji_order *o, const fji_run_pair *p, size_t from, size_t to)
{
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (fji_order_cmp(o, p->a + mid * o->size, p->b) <= 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* How many of b, of which the first `from` do, come before what is at a, if `to` at most. */
static size_t merge_before_a(const fji_order *o, const fji_run_pair *p, size_t from, size_t to)
{
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (fji_order_cmp(o, p->a, p->b + mid * o->size) > 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* How many of b come before the last of a, if at least `from` and at most `to`. */
static size_t merge_after(const fji_order *o, const fji_run_pair *p, size_t from, size_t to)
{
    const unsigned char *last = p->a + (p->na - 1) * o->size;

    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (fji_order_cmp(o, last, p->b + mid * o->size) > 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* What a begins with, and b ends with, may need no merging: looked for in growing steps. */
static void merge_trim(const fji_order *o, fji_run_pair *p)
{
    size_t size = o->size, from = 0, to = 1;

    while (to <= p->na && fji_order_cmp(o, p->a + (to - 1) * size, p->b) <= 0) {
        from = to;
        to = 2 * to + 1;
    }
    merge_take_a(o, p, merge_before(o, p, from, min_size(to - 1, p->na)));
    if (p->na == 0) return;

    const unsigned char *last = p->a + (p->na - 1) * size;
    size_t back = 1, keep = p->nb;
    while (back <= p->nb && fji_order_cmp(o, last, p->b + (p->nb - back) * size) <= 0) {
        keep = p->nb - back;
        back = 2 * back + 1;
    }
    keep = merge_after(o, p, back <= p->nb ? p->nb - back + 1 : 0, keep);
    memcpy(p->out + (p->na + keep) * size, p->b + keep * size, (p->nb - keep) * size);
    p->nb = keep;
}

/* How many of the first n elements of the result come from a: n <= na + nb. */
static size_t merge_rank(const fji_order *o, const fji_run_pair *p, size_t n)
{
    size_t lo = n > p->nb ? n - p->nb : 0, hi = min_size(n, p->na);

    while (lo < hi) {
        size_t i = lo + (hi - lo) / 2; /* below na and n, and n - i at most nb */
        if (fji_order_cmp(o, p->a + i * o->size, p->b + (n - i - 1) * o->size) <= 0)
            lo = i + 1;
        else
            hi = i;
    }
    return lo;
}

/* ---- Alone ----------------------------------------------------------------------------------- */

/* Merges at most k elements from each end, k <= na and nb. */
static void merge_both_ends(const fji_order *o, fji_run_pair *p, size_t k)
{
    bool sane = true;

    FJI_BY_KIND(o->kind, fji_merge_both_ends, o, p, k, &sane);
    if (FJI_UNLIKELY(!sane)) FJI_BY_KIND(o->kind, merge_front, o, p, 2 * k);
}

/* Merges what is left, one run being short. */
static void merge_short_run(const fji_order *o, fji_run_pair *p)
{
    while (p->na > SKEW * p->nb && p->nb > 0) {
        merge_take_a(o, p, merge_before(o, p, 0, p->na));
        merge_take_b(o, p, 1);
    }
    while (p->nb > SKEW * p->na && p->na > 0) {
        merge_take_b(o, p, merge_before_a(o, p, 0, p->nb));
        merge_take_a(o, p, 1);
    }
    if (p->na > 0 && p->nb > 0) FJI_BY_KIND(o->kind, merge_front, o, p, SIZE_MAX);
    merge_take_a(o, p, p->na);
    merge_take_b(o, p, p->nb);
}

void fji_merge_sequential(const fji_order *o, fji_run_pair *p)
{
    if (p->na + p->nb >= TRIM_MIN && p->na > 0 && p->nb > 0) merge_trim(o, p);
    for (size_t k; (k = min_size(p->na, p->nb)) >= SHORT_RUN;) merge_both_ends(o, p, k);
    merge_short_run(o, p);
}

/* ---- By many --------------------------------------------------------------------------------- */

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

/* Gives *p away in two halves; true: what is in *p is still to be done here. */
static bool merge_fork_half(const fji_merge_context *m, fji_run_pair *p)
{
    size_t n = (p->na + p->nb) / 2, size = m->order.size;
    size_t i = merge_rank(&m->order, p, n), j = n - i;
    fji_run_pair left = {p->a, p->b, p->out, i, j};
    merge_half h = {
        .merge = m,
        .pair = {p->a + i * size, p->b + j * size, p->out + n * size, p->na - i, p->nb - j}};

    fj_task_init(&h.task, merge_half_run);
    fj_fork(&h.task);
    merge_pair(m, left);
    if (fj_unfork(&h.task)) {
        *p = h.pair;
        return true;
    }
    int code = fj_join_stolen(&h.task);
    if (code != FJ_OK) fji_job_fail(m->job, code);
    return false;
}

static void merge_add_progress(const fji_merge_context *m, size_t n)
{
    if (m->counts_progress) fji_job_add_progress(m->job, n);
}

static void merge_pair(const fji_merge_context *m, fji_run_pair p)
{
    size_t max = m->chunk / 2 < SHORT_RUN ? SHORT_RUN : m->chunk / 2;

    while (fji_job_should_continue(m->job)) {
        size_t n = p.na + p.nb, k = min_size(p.na, p.nb);
        if (k < SHORT_RUN) {
            merge_short_run(&m->order, &p);
            merge_add_progress(m, n);
            return;
        }
        if (m->parallel && n > 2 * m->chunk && fji_has_demand()) {
            if (!merge_fork_half(m, &p)) return;
        } else {
            merge_both_ends(&m->order, &p, min_size(k, max));
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
    /* The first time it may have to be fetched from far away, which says nothing. */
    (void)o->cmp(x, y, o->arg);
    uint64_t start = fji_ticks();
    for (int i = 0; i < CALLS; i++) (void)o->cmp(x, y, o->arg);
    uint64_t elapsed = fji_ticks() - start;
    if (elapsed > UINT64_MAX / 2) elapsed = 0; /* the counters of two processors differ */
    uint64_t fit = (uint64_t)FJI_CHUNK_TICKS * CALLS / (elapsed + 1);
    return fit == 0 ? 1 : fit < max ? (size_t)fit : max;
}

typedef struct merge_call {
    fj_task task;
    fji_merge_context merge;
    fji_run_pair pair;
} merge_call;

/* The body of the call, in a pool. */
static int merge_call_run(fj_task *t)
{
    merge_call *c = (merge_call *)t;
    const fji_run_pair *p = &c->pair;
    bool a_is_longer = p->na > p->nb;
    size_t chunk = fji_order_chunk_size(&c->merge.order, a_is_longer ? p->a : p->b,
                                        a_is_longer ? p->na : p->nb, CHUNK_MAX);

    c->merge.chunk = fji_job_chunk_size(c->merge.job, chunk);
    fji_merge_parallel(&c->merge, p);
    return FJ_OK;
}

bool fji_run_pair_args_ok(const fji_run_pair *p, size_t size)
{
    size_t n;

    if (size == 0 || __builtin_add_overflow(p->na, p->nb, &n)) return false;
    if ((p->na > 0 && p->a == NULL) || (p->nb > 0 && p->b == NULL)) return false;
    if ((n > 0 && p->out == NULL) || !fji_fits(n, size)) return false;
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
    if (na + nb <= SEQUENTIAL_MAX && fji_job_may_skip_pool(how) &&
        fji_order_chunk_size(&c.merge.order, na > nb ? a : b, na > nb ? na : nb, SEQUENTIAL_MAX) >=
            na + nb) {
        fji_merge_sequential(&c.merge.order, &c.pair);
        merge_add_progress(&c.merge, na + nb);
        return FJ_OK;
    }
    fj_task_init(&c.task, merge_call_run);
    return fji_job_run(&job, how, &c.task);
}
