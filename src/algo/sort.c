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
 * are not merged if the last element of the first is not after the first element of the second: one
 * comparison, the order test, finds this out. Two ranges of fewer than CHECK_ORDER_MIN elements
 * together are tested only if one of them is PRESORTED (it was found in order, not merged), because
 * the neighbour of such a range is likely to continue its order. A strictly descending range is
 * left as it is, in the state DESCENDING. It is reversed only if the range next to it does not
 * continue its order, or at the end of the sort. The state of a range (enum range_state in
 * sort_leaf.h) says in which array the range is, and in which order. A sorted array therefore takes
 * n - 1 comparisons, besides a few that measure how long they take, and none of its elements moves.
 * A strictly descending array takes as many, and each element moves once. Workers share this work.
 *
 * Elements of more than DIRECT_MAX bytes stay in place until the end. Pointers to them are sorted
 * instead, and then the elements that are not in their place are moved (sort_permute.h).
 *
 * In parallel: the worker that sorts a range of more than `sequential_max` elements, by default at
 * most 512, forks the right half of the range if there is demand (fji_has_demand() in split.h).
 * Merges fork halves too (merge.h).
 *
 * Without memory for the scratch array, one thread sorts the array in place (sort_inplace.h).
 *
 * Invariant: a range whose sort is abandoned because the job has ended has all its elements in the
 * array, in some order. A merge that is not completed has left its two runs unchanged, so the runs
 * that are in the scratch array are copied back.
 */
#include <string.h>

#include "scratch.h"
#include "sort_inplace.h"
#include "sort_leaf.h"
#include "sort_permute.h"
#include "split.h"

enum {
    CHECK_ORDER_MIN =
        128,          /* total elements of two ranges from which the order test is always made */
    CHUNK_MAX = 2048, /* the largest value of sort_call.chunk, which is computed from the measured
                       * time of a comparison */
    SEQUENTIAL_SHARE = 4,     /* without a grain, one worker sorts a range of at most
                               * sort_call.chunk / 4 elements */
    SKIP_POOL_MAX = 32,       /* for at most this many elements, the time of a comparison is not
                               * measured. A caller outside a pool, whose options select neither
                               * a pool nor a token, sorts them itself. */
    PREFETCH_MIN = 4096,      /* an array of fewer elements is not tested for whether its elements
                               * are pointers whose targets should be prefetched */
    STACK_BYTES = 2048,       /* scratch memory of at most this many bytes is on the stack */
    PARALLEL_BYTES = 1 << 16, /* a copy or reversal of fewer bytes is not done in parallel */
};

typedef struct sort {
    fji_merge_context merge; /* what merges need: the order, the job, and the chunk size */
    size_t n;
    size_t sequential_max; /* a range of at most this many elements is sorted by one worker */
    /* The number of levels of ranges: level 0 is the whole array, level 1 its halves, and so
     * on. The ranges of the last level have at most sequential_max elements. */
    size_t levels;
    /* What is sorted moves between area[IN_ARRAY] and area[IN_SCRATCH]. If elements have more than
     * DIRECT_MAX bytes, both hold pointers to them. Otherwise `elements` is area[IN_ARRAY]. */
    unsigned char *area[2];
    unsigned char *elements; /* the array of the caller */
    size_t size;             /* bytes of an element of the caller */
} sort;

/* Returns the address of element or pointer i in the area IN_ARRAY or IN_SCRATCH. */
static unsigned char *sort_at(const sort *s, int area, size_t i)
{
    return s->area[area] + i * s->merge.order.size;
}

/* ---- Moves ----------------------------------------------------------------------------------- */

/* A copy or a reversal of elements, or of pointers to them. */
struct sort_move {
    size_t size;               /* bytes of an element or pointer */
    unsigned char *to;         /* the destination, or the beginning of the range to be reversed */
    const unsigned char *from; /* the source of a copy; NULL for a reversal */
    unsigned char *end;        /* the end of the range to be reversed; NULL for a copy */
};

static int move_copy(size_t begin, size_t end, void *arg)
{
    const struct sort_move *m = arg;

    memcpy(m->to + begin * m->size, m->from + begin * m->size, (end - begin) * m->size);
    return FJ_OK;
}

/* A chunk of a reversal. Exchanges each element i with begin <= i < end, counted from the beginning
 * of the range to be reversed, with the element at the same distance from the end of that range. */
static int move_reverse(size_t begin, size_t end, void *arg)
{
    const struct sort_move *m = arg;
    unsigned char *x = m->to + begin * m->size, *y = m->end - (begin + 1) * m->size;

    FJI_BY_KIND(fji_kind_of(m->size), swap_reversed, x, y, end - begin, m->size);
    return FJ_OK;
}

/* Runs `body` for 0 <= i < n with *m as its argument, in parallel if the call runs in a pool and
 * n elements have at least PARALLEL_BYTES. Returns true if it has moved all elements. If the call
 * is cancelled before that, ends the job and returns false. */
static bool sort_run_move(const sort *s, fj_for_fn *body, struct sort_move *m, size_t n)
{
    if (!s->merge.parallel || n * m->size < PARALLEL_BYTES) return body(0, n, m) == FJ_OK;
    int code = fj_for(0, n, body, m, NULL);
    if (code != FJ_OK) fji_job_fail(s->merge.job, code);
    return code == FJ_OK;
}

/* Copies n elements of `size` bytes. Copies all of them even if the call is cancelled. */
static void sort_copy(const sort *s, unsigned char *to, const unsigned char *from, size_t n,
                      size_t size)
{
    struct sort_move m = {size, to, from, NULL};

    if (!sort_run_move(s, move_copy, &m, n)) memcpy(to, from, n * size);
}

/* Reverses the order of n elements of `size` bytes at e. If the call is cancelled, the elements are
 * in some order. */
static void sort_reverse(const sort *s, unsigned char *e, size_t n, size_t size)
{
    struct sort_move m = {size, e, NULL, e + n * size};

    (void)sort_run_move(s, move_reverse, &m, n / 2);
}

/* Brings the n sorted elements from index lo on to `area`, which is IN_ARRAY or IN_SCRATCH, in
 * ascending order. *state, a value of enum range_state, says where the elements are and in which
 * order. If it is DESCENDING, the function reverses them. If they are not in `area`, it copies them
 * there. Then it sets *state to `area`. */
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

/* Two neighbouring ranges, of na elements from index lo on and of nb elements after them. a and b
 * are their states, values of enum range_state. */
typedef struct sort_pair {
    size_t lo, na, nb;
    int a, b;
} sort_pair;

/* Halves the range of n elements from index lo on. The length of the left half is a multiple of
 * BLOCK, and so is the length of every leaf but the last one. */
static sort_pair sort_halve(size_t lo, size_t n)
{
    size_t na = n / 2 & ~(size_t)(BLOCK - 1);
    return (sort_pair){.lo = lo, .na = na, .nb = n - na};
}

/* Prepares the merge of the two sorted ranges of *r, which should lead to the area `into`. If both
 * are descending together, moves nothing. Otherwise brings both to the same area, ascending, and
 * sets their states in *r. If they are then found in order together, no merge is needed either. In
 * these two cases returns the state of the combined range. Otherwise sets *p to the merge from that
 * area to the other one, and returns UNORDERED. Small ranges that are not PRESORTED are merged
 * without a test of their order. */
static int sort_align(const sort *s, sort_pair *r, int into, fji_run_pair *p)
{
    const fji_order *o = &s->merge.order;
    size_t mid = r->lo + r->na;
    bool descending = (r->a & r->b & DESCENDING) != 0;

    if (descending &&
        fji_order_cmp(o, sort_at(s, IN_ARRAY, mid - 1), sort_at(s, IN_ARRAY, mid)) > 0)
        return DESCENDING | PRESORTED;
    /* `from` is the area of both ranges or, if they are in different areas, the one that is not
     * `into`, because a merge leads to the other area. A descending range is in the array. */
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

/* Sorts n elements from index lo on, which are in the area IN_ARRAY, on this thread. The result is
 * in the area `into`, ascending, unless existing order made moves unnecessary: then it may be in
 * the other area, or descending. Returns the state of the range, which says where and in which
 * order it is. */
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

/* Returns how many of the indices 0 <= i < x have the remainder k when divided by s->levels. */
static size_t sort_class(const sort *s, size_t x, size_t k)
{
    return (x + s->levels - 1 - k) / s->levels;
}

/* Adds the range of n elements from index lo on, which is sorted, to the progress. Level 0 is the
 * whole array, level 1 its halves, and so on. Every element takes part in the ranges of all levels,
 * but counts once: element i counts when its range on level i % levels is sorted. A range that is
 * not divided further (`lowest`) also counts the elements of all levels below its own. Progress is
 * therefore even during the sort, and n at its end. */
static void sort_add_progress(const sort *s, size_t lo, size_t n, size_t level, bool lowest)
{
    size_t count = 0;

    if (s->merge.job->progress == NULL) return;
    for (size_t k = level; k < (lowest ? s->levels : level + 1); k++)
        count += sort_class(s, lo + n, k) - sort_class(s, lo, k);
    fji_job_add_progress(s->merge.job, count);
}

/* Sorts a range on this thread, as sort_sequential() does, and adds it to the progress. If pointers
 * are sorted instead of elements, first stores the pointers to the elements of this range. */
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

/* Merges the two ranges, if possible to the area `into`, and returns the state of the result. If
 * the job has ended, returns IN_ARRAY: all elements are in the array, in some order. */
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
    int state; /* IN_ARRAY until the body has run; a cancelled task may never run */
} sort_half;

static int sort_range(const sort *s, size_t lo, size_t n, int into, size_t level);

static int sort_half_run(fj_task *t)
{
    sort_half *h = (sort_half *)t;

    h->state = sort_range(h->sort, h->lo, h->n, h->into, h->level);
    return FJ_OK;
}

/* Sorts both ranges of *r, which are on level `level` of the halving. Forks a task for the right
 * range, sorts the left range, and joins the task. If the join has taken the task back out of the
 * queue, sorts the right range here. Sets r->a and r->b to the states of the two ranges: where the
 * elements are, and in which order (enum range_state). If the job has ended, a range may be
 * unsorted. */
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

/* Sorts n elements from index lo on, and forks halves if there is demand. The result is in the area
 * `into`, unless existing order made moves unnecessary. Returns the state of the range. If the job
 * has ended, the range may be unsorted; its state still says in which area all its elements are. */
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

/* The arguments of a call, its job, and the choices that the call makes at its beginning. */
typedef struct sort_call {
    fj_task task;
    fji_job *job;
    fji_order order; /* the comparison, and the size and kind of the caller's elements */
    unsigned char *base;
    size_t n;
    size_t chunk; /* how many comparisons take about FJI_CHUNK_TICKS, at most CHUNK_MAX; 0: not yet
                   * measured */
    /* stable: equal elements have to keep their order. parallel: the call runs in a pool, so it may
     * fork tasks. */
    bool stable, parallel;
} sort_call;

/* Sets c->chunk, unless it is already set. With more than SKIP_POOL_MAX elements, measures how long
 * a comparison takes; otherwise sets c->chunk to CHUNK_MAX. */
static void sort_measure(sort_call *c)
{
    if (c->chunk == 0)
        c->chunk = c->n <= SKIP_POOL_MAX
                       ? CHUNK_MAX
                       : fji_order_chunk_size(&c->order, c->base, c->n, CHUNK_MAX);
}

/* Sets, from c->chunk and the grain of the options, the chunk size of merges, the size of ranges
 * that one worker sorts, and the number of levels. */
static void sort_chunk_sizes(sort *s, const sort_call *c)
{
    s->merge.chunk = fji_job_chunk_size(c->job, c->chunk);
    s->sequential_max = fji_job_chunk_size(c->job, c->chunk / SEQUENTIAL_SHARE);
    if (s->sequential_max < (size_t)2 * BLOCK) s->sequential_max = (size_t)2 * BLOCK;
    s->levels = 1;
    for (size_t n = c->n; n > s->sequential_max; n = sort_halve(0, n).nb) s->levels++;
}

/* Sorts the whole array by moving the elements themselves, of at most DIRECT_MAX bytes. `scratch`
 * has space for n elements and 63 bytes more. */
static void sort_elements(sort *s, unsigned char *scratch)
{
    /* The scratch array begins at the same offset in a cache line of 64 bytes as the array. */
    s->area[IN_ARRAY] = s->elements;
    s->area[IN_SCRATCH] = scratch + (((uintptr_t)s->elements - (uintptr_t)scratch) & 63);

    int state = sort_range(s, 0, s->n, IN_ARRAY, 0);
    sort_move_to(s, 0, s->n, &state, IN_ARRAY);
}

/* Sorts pointers to the elements, which have more than DIRECT_MAX bytes, and then moves the
 * elements into the order of the pointers. The scratch memory consists of n pointers, a scratch
 * array of the same size for them, and space for the elements that fji_permute() saves. */
static void sort_pointers(sort *s, unsigned char *scratch)
{
    size_t bytes = s->n * sizeof(void *);

    s->merge.order.kind = FJI_KIND_PTR;
    s->merge.order.size = sizeof(void *);
    s->area[IN_ARRAY] = scratch;
    s->area[IN_SCRATCH] = scratch + bytes;

    int state = sort_range(s, 0, s->n, IN_ARRAY, 0);
    if (s->merge.job->code != FJ_OK) return; /* plain read: all tasks of the sort are joined */
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

/* Returns whether the elements are probably pointers: they have 8 bytes, there are at least
 * PREFETCH_MIN of them, and a sample of them looks like addresses in one region of memory. If so,
 * what they point to is prefetched before it is compared. A wrong guess costs only time: a prefetch
 * of an invalid address has no effect. */
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

/* Sorts the array with the given scratch memory. Returns FJ_OK. If the call is cancelled, c->job
 * has the code, and the elements are in some order. */
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

/* Sorts the array in place, on this thread only, because the scratch memory could not be
 * allocated. That takes longer. Returns FJ_OK. If the call is cancelled, c->job has the code, and
 * the elements are in some order. */
static int sort_without_scratch(sort_call *c)
{
    if (c->stable)
        fji_stable_sort_inplace(&c->order, c->job, c->base, c->n);
    else
        fji_heap_sort(&c->order, c->job, c->base, c->n);
    if (c->job->code == FJ_OK) fji_job_add_progress(c->job, c->n);
    return FJ_OK;
}

/* Allocates the scratch memory and sorts the array. Runs as a task in a pool. It is called directly
 * if the sort is too short for a pool, or if fj_qsort() cannot run in a pool. */
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

/* Returns whether the calling thread should sort the array itself: it is not in a pool, the options
 * select neither a pool nor a token, and the sort takes too little time to be worth entering a
 * pool. */
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
    /* The call could not run in a pool: sorts on this thread. */
    job.code = FJ_OK;
    c.parallel = false;
    (void)sort_call_run(&c.task);
}
