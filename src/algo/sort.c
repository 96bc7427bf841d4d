/* SPDX-License-Identifier: MIT */
/*
 * sort.c - sorting by a comparison
 *
 * A merge sort from the top down: ranges are halved until they have some ten elements, these
 * are sorted (see sort_leaf.h), and merged on the way back. It is stable. Elements go to and
 * fro between the array and a buffer as large, with each level of merges.
 *
 * Order that is there already is used. A leaf that is in order stays where it is; so do two
 * ranges that are in order together, which takes one comparison to know. What a range has come
 * to is said by where it is, IN_ARRAY or IN_SCRATCH. A range in which each element is after the next
 * is left so, DESCENDING: it is turned around by whoever has to merge it. What was PRESORTED in order is
 * likely to be so together with what lies beside it; other short ranges are not looked at.
 *
 * So a sorted array, and one that is sorted the other way, take n - 1 comparisons, by all
 * workers, and nothing, or each element once, is moved.
 *
 * Elements of more than DIRECT_MAX bytes stay where they are until the end: pointers to them are
 * sorted in their place.
 *
 * Parallel: a range of more than some hundred elements gives its right half away if the others
 * have too little to do (see split.h), and merges are done by many (see merge.h).
 *
 * Given up: every range brings its elements back to the array, sorted or not, before it ends.
 * A merge that was not completed has left its two halves where they were.
 */
#include <string.h>

#include "scratch.h"
#include "sort_inplace.h"
#include "sort_leaf.h"
#include "sort_permute.h"
#include "split.h"

enum {
    CHECK_ORDER_MIN = 128,    /* ranges that are worth a look whether they are in order */
    CHUNK_MAX = 2048,         /* comparisons between looks at anything else, if they take no time */
    SORT_COST = 4,            /* a part that is sorted has so many times fewer elements */
    SEQUENTIAL_MAX = 32,      /* so few are sorted by the caller itself */
    PREFETCH_MIN = 4096,      /* elements whose targets may be far away */
    STACK_BYTES = 2048,       /* bytes that need no memory */
    PARALLEL_BYTES = 1 << 16, /* bytes that are worth being moved by many */
};

typedef struct sort {
    fji_merge_context merge; /* the order, the job, and how large parts of a merge are */
    size_t n;
    size_t leaf_max;         /* ranges of at most so many are not given away */
    size_t levels;           /* of ranges, down to these */
    unsigned char *state[2]; /* the array, or that of pointers, and the buffer */
    unsigned char *elements; /* the array */
    size_t size;             /* of an element */
} sort;

static unsigned char *sort_at(const sort *s, int state, size_t i)
{
    return s->state[state] + i * s->merge.order.size;
}

/* ---- Moves ----------------------------------------------------------------------------------- */

struct sort_move {
    size_t size; /* of an element */
    unsigned char *to;
    const unsigned char *from; /* for copies */
    unsigned char *end;        /* for turning around */
};

static int move_copy(size_t begin, size_t end, void *arg)
{
    const struct sort_move *m = arg;

    memcpy(m->to + begin * m->size, m->from + begin * m->size, (end - begin) * m->size);
    return FJ_OK;
}

/* Exchanges elements of `to` with those before `from`, in the opposite order. */
static int move_reverse(size_t begin, size_t end, void *arg)
{
    const struct sort_move *m = arg;
    unsigned char *x = m->to + begin * m->size, *y = m->end - (begin + 1) * m->size;

    FJI_BY_KIND(fji_kind_of(m->size), swap_reversed, x, y, end - begin, m->size);
    return FJ_OK;
}

/* Does n elements of *m, by many if it is worth while; false: not all of them. */
static bool sort_run_move(const sort *s, fj_for_fn *body, struct sort_move *m, size_t n)
{
    if (!s->merge.parallel || n * m->size < PARALLEL_BYTES) return body(0, n, m) == FJ_OK;
    int code = fj_for(0, n, body, m, NULL);
    if (code != FJ_OK) fji_job_fail(s->merge.job, code);
    return code == FJ_OK;
}

/* Copies n elements of `size` bytes, also if the job has ended. */
static void sort_copy(const sort *s, unsigned char *to, const unsigned char *from, size_t n,
                      size_t size)
{
    struct sort_move m = {size, to, from, NULL};

    if (!sort_run_move(s, move_copy, &m, n)) memcpy(to, from, n * size);
}

/* Turns n elements around; if the job ends, some of them. */
static void sort_reverse(const sort *s, unsigned char *e, size_t n, size_t size)
{
    struct sort_move m = {size, e, NULL, e + n * size};

    (void)sort_run_move(s, move_reverse, &m, n / 2);
}

/* Brings the range at lo from where it is to `place`. */
static void sort_move_to(const sort *s, size_t lo, size_t n, int *from, int state)
{
    *from &= ~PRESORTED;
    if (*from == DESCENDING) {
        sort_reverse(s, sort_at(s, IN_ARRAY, lo), n, s->merge.order.size);
        *from = IN_ARRAY;
    }
    if (*from != state)
        sort_copy(s, sort_at(s, state, lo), sort_at(s, *from, lo), n, s->merge.order.size);
    *from = state;
}

/* ---- Two ranges ------------------------------------------------------------------------------ */

/* Two ranges beside each other, and where they are. */
typedef struct sort_pair {
    size_t lo, na, nb;
    int a, b;
} sort_pair;

/* The left half is of whole blocks, so that all leaves are but one. */
static sort_pair sort_halve(size_t lo, size_t n)
{
    size_t na = n / 2 & ~(size_t)(BLOCK - 1);
    return (sort_pair){.lo = lo, .na = na, .nb = n - na};
}

/*
 * Brings both to the same place. Returns where they are as one range, if they are in order
 * already; UNMERGED: *p is what has to be merged.
 */
static int sort_align(const sort *s, sort_pair *r, int into, fji_run_pair *p)
{
    const fji_order *o = &s->merge.order;
    size_t mid = r->lo + r->na;
    bool descending = (r->a & r->b & DESCENDING) != 0;

    if (descending &&
        fji_order_cmp(o, sort_at(s, IN_ARRAY, mid - 1), sort_at(s, IN_ARRAY, mid)) > 0)
        return DESCENDING | PRESORTED;
    /* What is turned around stays in the array. */
    int from = (r->a & IN_SCRATCH) == (r->b & IN_SCRATCH) ? r->a & IN_SCRATCH : !into;
    bool check = r->na + r->nb >= CHECK_ORDER_MIN || ((r->a | r->b) & PRESORTED) != 0;
    sort_move_to(s, r->lo, r->na, &r->a, from);
    sort_move_to(s, mid, r->nb, &r->b, from);
    if (check && fji_order_cmp(o, sort_at(s, from, mid - 1), sort_at(s, from, mid)) <= 0)
        return from | PRESORTED;
    *p = (fji_run_pair){sort_at(s, from, r->lo), sort_at(s, from, mid), sort_at(s, !from, r->lo),
                        r->na, r->nb};
    return UNMERGED;
}

/* Sorts n elements at lo, if possible to `into`, without help. Returns where they are. */
static int sort_sequential(const sort *s, size_t lo, size_t n, int into)
{
    const fji_order *o = &s->merge.order;
    int state;

    if (n < (size_t)2 * BLOCK) {
        unsigned char *from = sort_at(s, IN_ARRAY, lo), *to = sort_at(s, into, lo);
        FJI_BY_KIND(o->kind, leaf_sort, o, from, to, n, &state);
        return state != UNMERGED ? state | PRESORTED : into;
    }
    sort_pair r = sort_halve(lo, n);
    fji_run_pair p;
    r.a = sort_sequential(s, lo, r.na, !into);
    r.b = sort_sequential(s, lo + r.na, r.nb, !into);
    state = sort_align(s, &r, into, &p);
    if (state != UNMERGED) return state;
    fji_merge_sequential(o, &p);
    return !r.a;
}

/* ---- Many ranges ----------------------------------------------------------------------------- */

/* How many i < x are k by the number of levels. */
static size_t sort_class(const sort *s, size_t x, size_t k)
{
    return (x + s->levels - 1 - k) / s->levels;
}

/*
 * The range at lo has been done on `level`. Each element counts on one level, and on the
 * lowest it has if that is above its own, so that progress is even and ends with n.
 */
static void sort_add_progress(const sort *s, size_t lo, size_t n, size_t level, bool lowest)
{
    size_t count = 0;

    if (s->merge.job->progress == NULL) return;
    for (size_t k = level; k < (lowest ? s->levels : level + 1); k++)
        count += sort_class(s, lo + n, k) - sort_class(s, lo, k);
    fji_job_add_progress(s->merge.job, count);
}

/* A range that is not given away. */
static int sort_leaf_range(const sort *s, size_t lo, size_t n, int into, size_t level)
{
    if (s->merge.order.kind == FJI_KIND_PTR) {
        void **p = (void **)(void *)sort_at(s, IN_ARRAY, lo);
        for (size_t i = 0; i < n; i++) p[i] = s->elements + (lo + i) * s->size;
    }
    int state = sort_sequential(s, lo, n, into);
    sort_add_progress(s, lo, n, level, true);
    return state;
}

/* Merges the pair. Returns where it is; in the array if the job has ended. */
static int sort_merge_halves(const sort *s, sort_pair *r, int into)
{
    fji_run_pair p;

    if (fji_job_should_continue(s->merge.job)) {
        int state = sort_align(s, r, into, &p);
        if (state == UNMERGED) {
            fji_merge_parallel(&s->merge, &p);
            state = !r->a;
        }
        /* relaxed: who set it in a part of this range has been joined. */
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
    int state; /* where it is; as long as it was not begun, in the array */
} sort_half;

static int sort_range(const sort *s, size_t lo, size_t n, int into, size_t level);

static int sort_half_run(fj_task *t)
{
    sort_half *h = (sort_half *)t;

    h->state = sort_range(h->sort, h->lo, h->n, h->into, h->level);
    return FJ_OK;
}

/* Sorts both of the pair, the right one by somebody else if there is one. */
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
    if (fj_unfork(&h.task)) {
        (void)sort_half_run(&h.task);
    } else {
        int code = fj_join_stolen(&h.task);
        if (code != FJ_OK) fji_job_fail(s->merge.job, code);
    }
    r->b = h.state;
}

/* Sorts n elements at lo, if possible to `into`. Returns where they are. */
static int sort_range(const sort *s, size_t lo, size_t n, int into, size_t level)
{
    sort_pair r = sort_halve(lo, n);

    if (n <= s->leaf_max) return sort_leaf_range(s, lo, n, into, level);
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

/* ---- The whole ------------------------------------------------------------------------------- */

/* A call, before it is known how it will be done. */
typedef struct sort_call {
    fj_task task;
    fji_job *job;
    fji_order order; /* of the elements themselves */
    unsigned char *base;
    size_t n;
    size_t chunk; /* comparisons that are worth a part; 0: not known */
    bool stable, parallel;
} sort_call;

/* How fast it compares, unless that is known. */
static void sort_measure(sort_call *c)
{
    if (c->chunk == 0)
        c->chunk = c->n <= SEQUENTIAL_MAX
                       ? CHUNK_MAX
                       : fji_order_chunk_size(&c->order, c->base, c->n, CHUNK_MAX);
}

/* How large the parts are. */
static void sort_chunk_sizes(sort *s, const sort_call *c)
{
    s->merge.chunk = fji_job_chunk_size(c->job, c->chunk);
    s->leaf_max = fji_job_chunk_size(c->job, c->chunk / SORT_COST);
    if (s->leaf_max < (size_t)2 * BLOCK) s->leaf_max = (size_t)2 * BLOCK;
    s->levels = 1;
    for (size_t n = c->n; n > s->leaf_max; n = sort_halve(0, n).nb) s->levels++;
}

/* All of it, moving the elements themselves. */
static void sort_elements(sort *s, unsigned char *scratch)
{
    /* Comparisons find elements in the buffer as well aligned as in the array. */
    s->state[IN_ARRAY] = s->elements;
    s->state[IN_SCRATCH] = scratch + (((uintptr_t)s->elements - (uintptr_t)scratch) & 63);

    int state = sort_range(s, 0, s->n, IN_ARRAY, 0);
    sort_move_to(s, 0, s->n, &state, IN_ARRAY);
}

/*
 * All of it, by pointers. In memory lie these, their buffer, and the elements that are saved
 * when they are moved at last (see sort_permute.h).
 */
static void sort_pointers(sort *s, unsigned char *scratch)
{
    size_t bytes = s->n * sizeof(void *);

    s->merge.order.kind = FJI_KIND_PTR;
    s->merge.order.size = sizeof(void *);
    s->state[IN_ARRAY] = scratch;
    s->state[IN_SCRATCH] = scratch + bytes;

    int state = sort_range(s, 0, s->n, IN_ARRAY, 0);
    if (s->merge.job->code != FJ_OK) return; /* all parts were joined */
    if ((state & DESCENDING) != 0) {
        sort_reverse(s, s->elements, s->n, s->size);
        return;
    }
    fji_permutation p = {.base = s->elements,
                         .n = s->n,
                         .size = s->size,
                         .pointers = (const void *)s->state[state & IN_SCRATCH],
                         .successor = (void *)s->state[!(state & IN_SCRATCH)],
                         .saved = scratch + 2 * bytes,
                         .parallel = s->merge.parallel};
    int code = fji_permute(&p);
    if (code != FJ_OK) fji_job_fail(s->merge.job, code);
}

/*
 * Whether elements of 8 bytes seem to be addresses, all in the same part of memory: then what
 * they point to is fetched before it is compared. It is only a guess: fetching from where there
 * is nothing does nothing.
 */
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

static int sort_without_scratch(sort_call *c)
{
    if (c->stable)
        fji_stable_sort_inplace(&c->order, c->job, c->base, c->n);
    else
        fji_heap_sort(&c->order, c->job, c->base, c->n);
    if (c->job->code == FJ_OK) fji_job_add_progress(c->job, c->n);
    return FJ_OK;
}

/* The body of a call, wherever it runs. */
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

/* Whether it is so short that entering a pool is not worth while. */
static bool sort_skips_pool(sort_call *c, const fj_algo_options *how)
{
    if (!fji_job_may_skip_pool(how)) return false;
    sort_measure(c);
    return c->n <= SEQUENTIAL_MAX || c->n <= c->chunk / SORT_COST;
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
    return cmp == NULL || size == 0 || (base == NULL && n != 0) || !fji_fits(n, size);
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
    /* There is no pool to be had. */
    job.code = FJ_OK;
    c.parallel = false;
    (void)sort_call_run(&c.task);
}
