/* SPDX-License-Identifier: MIT */
/*
 * sort.c - sorts with a comparison function: fj_sort(), fj_stable_sort(), fj_qsort()
 *
 * The problem: the comparison is called through a pointer, and these calls dominate the cost.
 *
 * The idea: a merge sort, because it needs the fewest comparisons. It is stable. Ranges are halved
 * down to leaves of at most 15 elements, the leaves are sorted (sort_leaf.h), and ranges are merged
 * on the way back. Each level of merges moves the elements from the array to a scratch array of the
 * same size, or back.
 *
 * Existing order is used. A leaf that is in order stays where it is. Two neighbouring sorted ranges
 * also stay where they are if the last element of the first is not after the first element of the
 * second; one comparison finds this out. The state of a range (enum range_state) says in which
 * array it is. A strictly descending range is left as it is, in the state DESCENDING, and reversed
 * only when it has to be merged. For short ranges the test is made only if one of the two is
 * PRESORTED: the neighbour of a presorted range is likely to continue its order. A sorted array, or
 * a strictly descending one, therefore takes n - 1 comparisons, shared by all workers, and its
 * elements are not moved, or moved once.
 *
 * Elements of more than DIRECT_MAX bytes stay in place until the end. Pointers to them are sorted
 * instead, and then each element is moved once (sort_permute.h).
 *
 * In parallel: a range of more than `sequential_max` elements, usually a few hundred, forks its
 * right half if there is demand (fji_has_demand() in split.h). Merges fork halves too (merge.h).
 *
 * Invariant: when a range ends because the job has ended, all its elements are in the array, in
 * some order. A merge that is not completed has left its two runs unchanged, so they are copied
 * back.
 */
#include <string.h>

#include "scratch.h"
#include "sort_inplace.h"
#include "sort_leaf.h"
#include "sort_permute.h"
#include "split.h"

enum {
    CHECK_ORDER_MIN = 128, /* elements of a range that is always tested for order */
    CHUNK_MAX = 2048,      /* the most comparisons of a chunk, for very fast comparisons */
    SEQUENTIAL_SHARE = 4,  /* a range that one worker sorts is a quarter of a chunk */
    SKIP_POOL_MAX = 32,    /* the most elements that the caller sorts itself, without measuring */
    PREFETCH_MIN = 4096,   /* fewer elements are not prefetched */
    STACK_BYTES = 2048,    /* bytes of scratch on the stack */
    PARALLEL_BYTES = 1 << 16, /* bytes that are worth a parallel copy */
};

typedef struct sort {
    fji_merge_context merge; /* the order, the job, and the chunks of merges */
    size_t n;
    size_t sequential_max;   /* elements of a range that one worker sorts */
    size_t levels;           /* levels of ranges, from the whole array down to the ranges that one
                              * worker sorts */
    unsigned char *area[2];  /* the index is IN_ARRAY or IN_SCRATCH; if pointers are sorted, both
                              * hold pointers */
    unsigned char *elements; /* the array */
    size_t size;             /* bytes of an element */
} sort;

static unsigned char *sort_at(const sort *s, int area, size_t i)
{
    return s->area[area] + i * s->merge.order.size;
}

/* ---- Moves ----------------------------------------------------------------------------------- */

struct sort_move {
    size_t size; /* bytes of an element */
    unsigned char *to;
    const unsigned char *from; /* the source, if elements are copied */
    unsigned char *end;        /* the end of the range, if it is reversed */
};

static int move_copy(size_t begin, size_t end, void *arg)
{
    const struct sort_move *m = arg;

    memcpy(m->to + begin * m->size, m->from + begin * m->size, (end - begin) * m->size);
    return FJ_OK;
}

/* Exchanges the elements begin to end of the range with those at the same distance from its end. */
static int move_reverse(size_t begin, size_t end, void *arg)
{
    const struct sort_move *m = arg;
    unsigned char *x = m->to + begin * m->size, *y = m->end - (begin + 1) * m->size;

    FJI_BY_KIND(fji_kind_of(m->size), swap_reversed, x, y, end - begin, m->size);
    return FJ_OK;
}

/* Runs `body` for n elements of *m, in parallel if that is worthwhile. Returns false if some
 * elements were not moved. */
static bool sort_run_move(const sort *s, fj_for_fn *body, struct sort_move *m, size_t n)
{
    if (!s->merge.parallel || n * m->size < PARALLEL_BYTES) return body(0, n, m) == FJ_OK;
    int code = fj_for(0, n, body, m, NULL);
    if (code != FJ_OK) fji_job_fail(s->merge.job, code);
    return code == FJ_OK;
}

/* Copies n elements of `size` bytes, completely even if the job has ended. */
static void sort_copy(const sort *s, unsigned char *to, const unsigned char *from, size_t n,
                      size_t size)
{
    struct sort_move m = {size, to, from, NULL};

    if (!sort_run_move(s, move_copy, &m, n)) memcpy(to, from, n * size);
}

/* Reverses n elements. If the job ends, only some of them are exchanged. */
static void sort_reverse(const sort *s, unsigned char *e, size_t n, size_t size)
{
    struct sort_move m = {size, e, NULL, e + n * size};

    (void)sort_run_move(s, move_reverse, &m, n / 2);
}

/* Brings the n elements from index lo on to `area`, which is IN_ARRAY or IN_SCRATCH, in ascending
 * order. *state, a value of enum range_state, says where the elements are and in which order. If it
 * is DESCENDING, the function reverses them. If they are not in `area`, it copies them there. Then
 * it sets *state to `area`. */
static void sort_move_to(const sort *s, size_t lo, size_t n, int *state, int area)
{
    *state &= ~PRESORTED;
    if (*state == DESCENDING) {
        sort_reverse(s, sort_at(s, IN_ARRAY, lo), n, s->merge.order.size);
        *state = IN_ARRAY;
    }
    if (*state != area)
        sort_copy(s, sort_at(s, area, lo), sort_at(s, *state, lo), n, s->merge.order.size);
    *state = area;
}

/* ---- Two ranges ------------------------------------------------------------------------------ */

/* Two neighbouring ranges of na and nb elements, and their states. */
typedef struct sort_pair {
    size_t lo, na, nb;
    int a, b;
} sort_pair;

/* Halves a range. The left half consists of whole blocks of BLOCK elements, so that all leaves but
 * the last one do too. */
static sort_pair sort_halve(size_t lo, size_t n)
{
    size_t na = n / 2 & ~(size_t)(BLOCK - 1);
    return (sort_pair){.lo = lo, .na = na, .nb = n - na};
}

/* Brings both ranges to the same area. If they are in order together, returns the state of the
 * combined range. Otherwise returns UNORDERED, and *p is what has to be merged. */
static int sort_align(const sort *s, sort_pair *r, int into, fji_run_pair *p)
{
    const fji_order *o = &s->merge.order;
    size_t mid = r->lo + r->na;
    bool descending = (r->a & r->b & DESCENDING) != 0;

    if (descending &&
        fji_order_cmp(o, sort_at(s, IN_ARRAY, mid - 1), sort_at(s, IN_ARRAY, mid)) > 0)
        return DESCENDING | PRESORTED;
    /* `from` is the area of both ranges or, if they are in different areas, the area from which a
     * merge leads to `into`. A descending range is in the array, and is reversed there. */
    int from = (r->a & IN_SCRATCH) == (r->b & IN_SCRATCH) ? r->a & IN_SCRATCH : !into;
    bool check = r->na + r->nb >= CHECK_ORDER_MIN || ((r->a | r->b) & PRESORTED) != 0;
    sort_move_to(s, r->lo, r->na, &r->a, from);
    sort_move_to(s, mid, r->nb, &r->b, from);
    if (check && fji_order_cmp(o, sort_at(s, from, mid - 1), sort_at(s, from, mid)) <= 0)
        return from | PRESORTED;
    *p = (fji_run_pair){sort_at(s, from, r->lo), sort_at(s, from, mid), sort_at(s, !from, r->lo),
                        r->na, r->nb};
    return UNORDERED;
}

/* Sorts n elements at lo on this thread, if possible to the area `into`. Returns their state. */
static int sort_sequential(const sort *s, size_t lo, size_t n, int into)
{
    const fji_order *o = &s->merge.order;
    int state;

    if (n < (size_t)2 * BLOCK) {
        unsigned char *from = sort_at(s, IN_ARRAY, lo), *to = sort_at(s, into, lo);
        FJI_BY_KIND(o->kind, leaf_sort, o, from, to, n, &state);
        return state != UNORDERED ? state | PRESORTED : into;
    }
    sort_pair r = sort_halve(lo, n);
    fji_run_pair p;
    r.a = sort_sequential(s, lo, r.na, !into);
    r.b = sort_sequential(s, lo + r.na, r.nb, !into);
    state = sort_align(s, &r, into, &p);
    if (state != UNORDERED) return state;
    fji_merge_sequential(o, &p);
    return !r.a;
}

/* ---- Parallel ranges ------------------------------------------------------------------------- */

/* Returns how many numbers i with 0 <= i < x leave the remainder k when divided by s->levels. */
static size_t sort_class(const sort *s, size_t x, size_t k)
{
    return (x + s->levels - 1 - k) / s->levels;
}

/* Reports that the range at lo is done on `level`. An element counts as done on one of the levels,
 * by the remainder of its index. In a range that is not divided further, the elements of all lower
 * levels count too. So progress is even, and the total is n. */
static void sort_add_progress(const sort *s, size_t lo, size_t n, size_t level, bool lowest)
{
    size_t count = 0;

    if (s->merge.job->progress == NULL) return;
    for (size_t k = level; k < (lowest ? s->levels : level + 1); k++)
        count += sort_class(s, lo + n, k) - sort_class(s, lo, k);
    fji_job_add_progress(s->merge.job, count);
}

/* Sorts a range on this thread. If the sort moves pointers instead of elements, first sets up the
 * pointers of this range. */
static int sort_sequential_range(const sort *s, size_t lo, size_t n, int into, size_t level)
{
    if (s->merge.order.kind == FJI_KIND_PTR) {
        void **p = (void **)(void *)sort_at(s, IN_ARRAY, lo);
        for (size_t i = 0; i < n; i++) p[i] = s->elements + (lo + i) * s->size;
    }
    int state = sort_sequential(s, lo, n, into);
    sort_add_progress(s, lo, n, level, true);
    return state;
}

/* Merges the two ranges and returns the state of the result. If the job has ended, all elements are
 * in the array, in some order. */
static int sort_merge_halves(const sort *s, sort_pair *r, int into)
{
    fji_run_pair p;

    if (fji_job_should_continue(s->merge.job)) {
        int state = sort_align(s, r, into, &p);
        if (state == UNORDERED) {
            fji_merge_parallel(&s->merge, &p);
            state = !r->a;
        }
        /* relaxed: the tasks that may have set the code because of this range are joined. */
        if (fji_load_relaxed(&s->merge.job->code) == FJ_OK) return state;
    }
    if ((r->a & IN_SCRATCH) != 0) sort_move_to(s, r->lo, r->na, &r->a, IN_ARRAY);
    if ((r->b & IN_SCRATCH) != 0) sort_move_to(s, r->lo + r->na, r->nb, &r->b, IN_ARRAY);
    return IN_ARRAY;
}

/* The right half of a range, while it is forked. */
typedef struct sort_half {
    fj_task task;
    const sort *sort;
    size_t lo, n, level;
    int into;
    int state; /* IN_ARRAY until the task has run */
} sort_half;

static int sort_range(const sort *s, size_t lo, size_t n, int into, size_t level);

static int sort_half_run(fj_task *t)
{
    sort_half *h = (sort_half *)t;

    h->state = sort_range(h->sort, h->lo, h->n, h->into, h->level);
    return FJ_OK;
}

/* Sorts both ranges of *r, and forks the right one for other workers. Sets the states in *r. */
static void sort_fork_half(const sort *s, sort_pair *r, int into, size_t level)
{
    sort_half h = {.sort = s,
                   .lo = r->lo + r->na,
                   .n = r->nb,
                   .level = level,
                   .into = into,
                   .state = IN_ARRAY};

    fj_task_init(&h.task, sort_half_run);
    fj_fork(&h.task);
    r->a = sort_range(s, r->lo, r->na, into, level);
    if (!fji_job_join(s->merge.job, &h.task)) (void)sort_half_run(&h.task);
    r->b = h.state;
}

/* Sorts n elements at lo, if possible to the area `into`. Returns their state. */
static int sort_range(const sort *s, size_t lo, size_t n, int into, size_t level)
{
    sort_pair r = sort_halve(lo, n);

    if (n <= s->sequential_max) return sort_sequential_range(s, lo, n, into, level);
    if (!fji_job_should_continue(s->merge.job)) return IN_ARRAY;
    if (s->merge.parallel && fji_has_demand()) {
        sort_fork_half(s, &r, !into, level + 1);
    } else {
        r.a = sort_range(s, lo, r.na, !into, level + 1);
        r.b = sort_range(s, lo + r.na, r.nb, !into, level + 1);
    }
    int state = sort_merge_halves(s, &r, into);
    sort_add_progress(s, lo, n, level, false);
    return state;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* The arguments of a call, and how it is done. */
typedef struct sort_call {
    fj_task task;
    fji_job *job;
    fji_order order; /* of the elements, not of pointers to them */
    unsigned char *base;
    size_t n;
    size_t chunk; /* comparisons of a chunk; 0: not measured yet */
    bool stable, parallel;
} sort_call;

/* Measures the comparison, once. */
static void sort_measure(sort_call *c)
{
    if (c->chunk == 0)
        c->chunk = c->n <= SKIP_POOL_MAX
                       ? CHUNK_MAX
                       : fji_order_chunk_size(&c->order, c->base, c->n, CHUNK_MAX);
}

/* Sets the sizes of chunks and of the ranges that one worker sorts. */
static void sort_chunk_sizes(sort *s, const sort_call *c)
{
    s->merge.chunk = fji_job_chunk_size(c->job, c->chunk);
    s->sequential_max = fji_job_chunk_size(c->job, c->chunk / SEQUENTIAL_SHARE);
    if (s->sequential_max < (size_t)2 * BLOCK) s->sequential_max = (size_t)2 * BLOCK;
    s->levels = 1;
    for (size_t n = c->n; n > s->sequential_max; n = sort_halve(0, n).nb) s->levels++;
}

/* Sorts the whole array by moving the elements themselves. */
static void sort_elements(sort *s, unsigned char *scratch)
{
    /* Elements in the scratch array have the same alignment as in the array. */
    s->area[IN_ARRAY] = s->elements;
    s->area[IN_SCRATCH] = scratch + (((uintptr_t)s->elements - (uintptr_t)scratch) & 63);

    int state = sort_range(s, 0, s->n, IN_ARRAY, 0);
    sort_move_to(s, 0, s->n, &state, IN_ARRAY);
}

/* Sorts the whole array by pointers. The scratch memory holds the pointers, their scratch array,
 * and the elements that sort_permute.h saves. */
static void sort_pointers(sort *s, unsigned char *scratch)
{
    size_t bytes = s->n * sizeof(void *);

    s->merge.order.kind = FJI_KIND_PTR;
    s->merge.order.size = sizeof(void *);
    s->area[IN_ARRAY] = scratch;
    s->area[IN_SCRATCH] = scratch + bytes;

    int state = sort_range(s, 0, s->n, IN_ARRAY, 0);
    if (s->merge.job->code != FJ_OK) return; /* a plain read: all tasks are joined */
    if ((state & DESCENDING) != 0) {
        sort_reverse(s, s->elements, s->n, s->size);
        return;
    }
    fji_permutation p = {.base = s->elements,
                         .n = s->n,
                         .size = s->size,
                         .pointers = (const void *)s->area[state & IN_SCRATCH],
                         .successor = (void *)s->area[!(state & IN_SCRATCH)],
                         .saved = scratch + 2 * bytes,
                         .parallel = s->merge.parallel};
    int code = fji_permute(&p);
    if (code != FJ_OK) fji_job_fail(s->merge.job, code);
}

/* Returns whether elements of 8 bytes are probably pointers into one region of memory. If so, what
 * they point to is prefetched before it is compared. A wrong guess costs time only: a prefetch of
 * an invalid address has no effect. */
static bool sort_is_indirect(const sort_call *c)
{
    enum { SAMPLES = 16, REGION = 40, SPACE = 47, LOW = 32 };
    uint64_t first, e;

    if (c->order.size != sizeof first || c->n < PREFETCH_MIN) return false;
    memcpy(&first, c->base, sizeof first);
    for (size_t i = 0; i < SAMPLES; i++) {
        memcpy(&e, c->base + c->n / SAMPLES * i * sizeof e, sizeof e);
        if (e >> REGION != first >> REGION || e >> SPACE != 0 || e >> LOW == 0) return false;
    }
    return true;
}

/* Sorts with scratch memory. */
static int sort_with_scratch(sort_call *c, unsigned char *scratch)
{
    sort s = {.merge = {c->order, c->job, 0, c->parallel, false},
              .n = c->n,
              .elements = c->base,
              .size = c->order.size};

    sort_measure(c);
    sort_chunk_sizes(&s, c);
    if (sort_is_indirect(c)) s.merge.order.kind = FJI_KIND_INDIRECT;
    if (s.size <= DIRECT_MAX)
        sort_elements(&s, scratch);
    else
        sort_pointers(&s, scratch);
    return FJ_OK;
}

/* Sorts in place, more slowly and on this thread. */
static int sort_without_scratch(sort_call *c)
{
    if (c->stable)
        fji_stable_sort_inplace(&c->order, c->job, c->base, c->n);
    else
        fji_heap_sort(&c->order, c->job, c->base, c->n);
    if (c->job->code == FJ_OK) fji_job_add_progress(c->job, c->n);
    return FJ_OK;
}

/* The body of a call, in a pool or not. Allocates the scratch memory. */
static int sort_call_run(fj_task *t)
{
    sort_call *c = (sort_call *)t;
    size_t size = c->order.size;
    size_t bytes = size <= DIRECT_MAX ? c->n * size + 63
                                      : 2 * c->n * sizeof(void *) + fji_permute_cuts(c->n) * size;
    _Alignas(max_align_t) unsigned char stack[STACK_BYTES];

    if (bytes <= STACK_BYTES) return sort_with_scratch(c, stack);
    unsigned char *scratch = fji_algo_alloc(bytes);
    if (scratch == NULL) return sort_without_scratch(c);
    int code = sort_with_scratch(c, scratch);
    fji_algo_free(scratch);
    return code;
}

/* Returns whether the call is too short to be worth entering a pool. */
static bool sort_skips_pool(sort_call *c, const fj_algo_options *how)
{
    if (!fji_job_may_skip_pool(how)) return false;
    sort_measure(c);
    return c->n <= SKIP_POOL_MAX || c->n <= c->chunk / SEQUENTIAL_SHARE;
}

static int sort_run(sort_call *c, const fj_algo_options *how)
{
    fj_task_init(&c->task, sort_call_run);
    if (sort_skips_pool(c, how)) return sort_call_run(&c->task);
    c->parallel = true;
    return fji_job_run(c->job, how, &c->task);
}

static bool sort_args_invalid(const void *base, size_t n, size_t size, fj_compare_fn *cmp)
{
    return cmp == NULL || size == 0 || !fji_array_ok(base, n, size);
}

static int sort_checked(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg,
                        const fj_algo_options *how, bool stable)
{
    fji_job job;
    sort_call c = {.job = &job,
                   .order = {cmp, arg, size, fji_kind_of(size)},
                   .base = base,
                   .n = n,
                   .stable = stable};

    if (sort_args_invalid(base, n, size, cmp)) return FJ_EINVAL;
    int err = fji_job_init(&job, how, n);
    return err != FJ_OK || n == 0 ? err : sort_run(&c, how);
}

int fj_sort(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg,
            const fj_algo_options *how)
{
    return sort_checked(base, n, size, cmp, arg, how, false);
}

int fj_stable_sort(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg,
                   const fj_algo_options *how)
{
    return sort_checked(base, n, size, cmp, arg, how, true);
}

void fj_qsort(void *base, size_t n, size_t size, fj_compare_fn *cmp, void *arg)
{
    fji_job job = {.min_grain = 1, .max_grain = SIZE_MAX};
    sort_call c = {.job = &job, .order = {cmp, arg, size, fji_kind_of(size)}, .base = base, .n = n};

    if (n < 2 || sort_args_invalid(base, n, size, cmp)) return;
    int code = sort_run(&c, NULL);
    if (code == FJ_OK || code == FJ_ECANCELED) return;
    /* No pool is available: sorts on this thread. */
    job.code = FJ_OK;
    c.parallel = false;
    (void)sort_call_run(&c.task);
}
