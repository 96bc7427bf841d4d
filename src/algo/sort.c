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
 * to is said by where it is, IN_BASE or IN_ROOM. A range in which each element is after the next
 * is left so, DOWN: it is turned around by whoever has to merge it. What was FOUND in order is
 * likely to be so together with what lies beside it; other short ranges are not looked at.
 *
 * So a sorted array, and one that is sorted the other way, take n - 1 comparisons, by all
 * workers, and nothing, or each element once, is moved.
 *
 * Elements of more than DIRECT bytes stay where they are until the end: pointers to them are
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
    LONG = 128,       /* ranges that are worth a look whether they are in order */
    PACE_MOST = 2048, /* comparisons between looks at anything else, if they take no time */
    PACE_ALONE = 4,   /* a part that is sorted has so many times fewer elements */
    STAY = 32,        /* so few are sorted by the caller itself */
    FAR_LEAST = 4096, /* elements whose targets may be far away */
    STACK = 2048,     /* bytes that need no memory */
    BULK = 1 << 16,   /* bytes that are worth being moved by many */
};

typedef struct sort {
    fji_merge merge; /* the order, the job, and how large parts of a merge are */
    size_t n;
    size_t alone;            /* ranges of at most so many are not given away */
    size_t levels;           /* of ranges, down to these */
    unsigned char *place[2]; /* the array, or that of pointers, and the buffer */
    unsigned char *elements; /* the array */
    size_t size;             /* of an element */
} sort;

static unsigned char *sort_at(const sort *s, int place, size_t i)
{
    return s->place[place] + i * s->merge.order.size;
}

/* ---- Moves -------------------------------------------------------------------------------------- */

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

    FJI_BY_KIND(fji_kind_of(m->size), swap_many, x, y, end - begin, m->size);
    return FJ_OK;
}

/* Does n elements of *m, by many if it is worth while; false: not all of them. */
static bool sort_move_all(const sort *s, fj_for_fn *body, struct sort_move *m, size_t n)
{
    if (!s->merge.many || n * m->size < BULK) return body(0, n, m) == FJ_OK;
    int code = fj_for(0, n, body, m, NULL);
    if (code != FJ_OK) fji_job_fail(s->merge.job, code);
    return code == FJ_OK;
}

/* Copies n elements of `size` bytes, also if the job has ended. */
static void sort_copy(const sort *s, unsigned char *to, const unsigned char *from, size_t n,
                      size_t size)
{
    struct sort_move m = {size, to, from, NULL};

    if (!sort_move_all(s, move_copy, &m, n)) memcpy(to, from, n * size);
}

/* Turns n elements around; if the job ends, some of them. */
static void sort_turn(const sort *s, unsigned char *e, size_t n, size_t size)
{
    struct sort_move m = {size, e, NULL, e + n * size};

    (void)sort_move_all(s, move_reverse, &m, n / 2);
}

/* Brings the range at lo from where it is to `place`. */
static void sort_bring(const sort *s, size_t lo, size_t n, int *is, int place)
{
    *is &= ~FOUND;
    if (*is == DOWN) {
        sort_turn(s, sort_at(s, IN_BASE, lo), n, s->merge.order.size);
        *is = IN_BASE;
    }
    if (*is != place)
        sort_copy(s, sort_at(s, place, lo), sort_at(s, *is, lo), n, s->merge.order.size);
    *is = place;
}

/* ---- Two ranges --------------------------------------------------------------------------------- */

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
 * already; APART: *p is what has to be merged.
 */
static int sort_align(const sort *s, sort_pair *r, int into, fji_piece *p)
{
    const fji_order *o = &s->merge.order;
    size_t mid = r->lo + r->na;
    bool down = (r->a & r->b & DOWN) != 0;

    if (down && fji_order_cmp(o, sort_at(s, IN_BASE, mid - 1), sort_at(s, IN_BASE, mid)) > 0)
        return DOWN | FOUND;
    /* What is turned around stays in the array. */
    int from = (r->a & IN_ROOM) == (r->b & IN_ROOM) ? r->a & IN_ROOM : !into;
    bool maybe = r->na + r->nb >= LONG || ((r->a | r->b) & FOUND) != 0;
    sort_bring(s, r->lo, r->na, &r->a, from);
    sort_bring(s, mid, r->nb, &r->b, from);
    if (maybe && fji_order_cmp(o, sort_at(s, from, mid - 1), sort_at(s, from, mid)) <= 0)
        return from | FOUND;
    *p = (fji_piece){sort_at(s, from, r->lo), sort_at(s, from, mid), sort_at(s, !from, r->lo),
                     r->na, r->nb};
    return APART;
}

/* Sorts n elements at lo, if possible to `into`, without help. Returns where they are. */
static int sort_alone(const sort *s, size_t lo, size_t n, int into)
{
    const fji_order *o = &s->merge.order;
    int place;

    if (n < (size_t)2 * BLOCK) {
        unsigned char *from = sort_at(s, IN_BASE, lo), *to = sort_at(s, into, lo);
        FJI_BY_KIND(o->kind, leaf_sort, o, from, to, n, &place);
        return place != APART ? place | FOUND : into;
    }
    sort_pair r = sort_halve(lo, n);
    fji_piece p;
    r.a = sort_alone(s, lo, r.na, !into);
    r.b = sort_alone(s, lo + r.na, r.nb, !into);
    place = sort_align(s, &r, into, &p);
    if (place != APART) return place;
    fji_merge_alone(o, &p);
    return !r.a;
}

/* ---- Many ranges -------------------------------------------------------------------------------- */

/* How many i < x are k by the number of levels. */
static size_t sort_class(const sort *s, size_t x, size_t k)
{
    return (x + s->levels - 1 - k) / s->levels;
}

/*
 * The range at lo has been done on `level`. Each element counts on one level, and on the
 * lowest it has if that is above its own, so that progress is even and ends with n.
 */
static void sort_did(const sort *s, size_t lo, size_t n, size_t level, bool lowest)
{
    size_t count = 0;

    if (s->merge.job->progress == NULL) return;
    for (size_t k = level; k < (lowest ? s->levels : level + 1); k++)
        count += sort_class(s, lo + n, k) - sort_class(s, lo, k);
    fji_job_did(s->merge.job, count);
}

/* A range that is not given away. */
static int sort_low(const sort *s, size_t lo, size_t n, int into, size_t level)
{
    if (s->merge.order.kind == FJI_KIND_PTR) {
        void **p = (void **)(void *)sort_at(s, IN_BASE, lo);
        for (size_t i = 0; i < n; i++) p[i] = s->elements + (lo + i) * s->size;
    }
    int place = sort_alone(s, lo, n, into);
    sort_did(s, lo, n, level, true);
    return place;
}

/* Merges the pair. Returns where it is; in the array if the job has ended. */
static int sort_unite(const sort *s, sort_pair *r, int into)
{
    fji_piece p;

    if (fji_job_goes_on(s->merge.job)) {
        int place = sort_align(s, r, into, &p);
        if (place == APART) {
            fji_merge_split(&s->merge, &p);
            place = !r->a;
        }
        /* relaxed: who set it in a part of this range has been joined. */
        if (fji_load_relaxed(&s->merge.job->code) == FJ_OK) return place;
    }
    if ((r->a & IN_ROOM) != 0) sort_bring(s, r->lo, r->na, &r->a, IN_BASE);
    if ((r->b & IN_ROOM) != 0) sort_bring(s, r->lo + r->na, r->nb, &r->b, IN_BASE);
    return IN_BASE;
}

/* The right half of a range, while it is forked. */
typedef struct sort_half {
    fj_task task;
    const sort *sort;
    size_t lo, n, level;
    int into;
    int place; /* where it is; as long as it was not begun, in the array */
} sort_half;

static int sort_range(const sort *s, size_t lo, size_t n, int into, size_t level);

static int sort_half_run(fj_task *t)
{
    sort_half *h = (sort_half *)t;

    h->place = sort_range(h->sort, h->lo, h->n, h->into, h->level);
    return FJ_OK;
}

/* Sorts both of the pair, the right one by somebody else if there is one. */
static void sort_both(const sort *s, sort_pair *r, int into, size_t level)
{
    sort_half h = {
        .sort = s, .lo = r->lo + r->na, .n = r->nb, .level = level, .into = into, .place = IN_BASE};

    fj_task_init(&h.task, sort_half_run);
    fj_fork(&h.task);
    r->a = sort_range(s, r->lo, r->na, into, level);
    if (fj_unfork(&h.task)) {
        (void)sort_half_run(&h.task);
    } else {
        int code = fj_join_stolen(&h.task);
        if (code != FJ_OK) fji_job_fail(s->merge.job, code);
    }
    r->b = h.place;
}

/* Sorts n elements at lo, if possible to `into`. Returns where they are. */
static int sort_range(const sort *s, size_t lo, size_t n, int into, size_t level)
{
    sort_pair r = sort_halve(lo, n);

    if (n <= s->alone) return sort_low(s, lo, n, into, level);
    if (!fji_job_goes_on(s->merge.job)) return IN_BASE;
    if (s->merge.many && fji_split_wanted()) {
        sort_both(s, &r, !into, level + 1);
    } else {
        r.a = sort_range(s, lo, r.na, !into, level + 1);
        r.b = sort_range(s, lo + r.na, r.nb, !into, level + 1);
    }
    int place = sort_unite(s, &r, into);
    sort_did(s, lo, n, level, false);
    return place;
}

/* ---- The whole ---------------------------------------------------------------------------------- */

/* A call, before it is known how it will be done. */
typedef struct sort_call {
    fj_task task;
    fji_job *job;
    fji_order order; /* of the elements themselves */
    unsigned char *base;
    size_t n;
    size_t pace; /* comparisons that are worth a part; 0: not known */
    bool stable, many;
} sort_call;

/* How fast it compares, unless that is known. */
static void sort_pace(sort_call *c)
{
    if (c->pace == 0)
        c->pace = c->n <= STAY ? PACE_MOST : fji_order_pace(&c->order, c->base, c->n, PACE_MOST);
}

/* How large the parts are. */
static void sort_parts(sort *s, const sort_call *c)
{
    s->merge.part = fji_job_part(c->job, c->pace);
    s->alone = fji_job_part(c->job, c->pace / PACE_ALONE);
    if (s->alone < (size_t)2 * BLOCK) s->alone = (size_t)2 * BLOCK;
    s->levels = 1;
    for (size_t n = c->n; n > s->alone; n = sort_halve(0, n).nb) s->levels++;
}

/* All of it, moving the elements themselves. */
static void sort_direct(sort *s, unsigned char *room)
{
    /* Comparisons find elements in the buffer as well aligned as in the array. */
    s->place[IN_BASE] = s->elements;
    s->place[IN_ROOM] = room + (((uintptr_t)s->elements - (uintptr_t)room) & 63);

    int place = sort_range(s, 0, s->n, IN_BASE, 0);
    sort_bring(s, 0, s->n, &place, IN_BASE);
}

/*
 * All of it, by pointers. In memory lie these, their buffer, and the elements that are saved
 * when they are moved at last (see sort_permute.h).
 */
static void sort_indirect(sort *s, unsigned char *room)
{
    size_t bytes = s->n * sizeof(void *);

    s->merge.order.kind = FJI_KIND_PTR;
    s->merge.order.size = sizeof(void *);
    s->place[IN_BASE] = room;
    s->place[IN_ROOM] = room + bytes;

    int place = sort_range(s, 0, s->n, IN_BASE, 0);
    if (s->merge.job->code != FJ_OK) return; /* all parts were joined */
    if ((place & DOWN) != 0) {
        sort_turn(s, s->elements, s->n, s->size);
        return;
    }
    fji_paths p = {.base = s->elements,
                   .n = s->n,
                   .size = s->size,
                   .pointers = (const void *)s->place[place & IN_ROOM],
                   .next = (void *)s->place[!(place & IN_ROOM)],
                   .saved = room + 2 * bytes,
                   .many = s->merge.many};
    int code = fji_paths_run(&p);
    if (code != FJ_OK) fji_job_fail(s->merge.job, code);
}

/*
 * Whether elements of 8 bytes seem to be addresses, all in the same part of memory: then what
 * they point to is fetched before it is compared. It is only a guess: fetching from where there
 * is nothing does nothing.
 */
static bool sort_far(const sort_call *c)
{
    enum { LOOKS = 16, REGION = 40, SPACE = 47, LOW = 32 };
    uint64_t first, e;

    if (c->order.size != sizeof first || c->n < FAR_LEAST) return false;
    memcpy(&first, c->base, sizeof first);
    for (size_t i = 0; i < LOOKS; i++) {
        memcpy(&e, c->base + c->n / LOOKS * i * sizeof e, sizeof e);
        if (e >> REGION != first >> REGION || e >> SPACE != 0 || e >> LOW == 0) return false;
    }
    return true;
}

static int sort_call_in(sort_call *c, unsigned char *room)
{
    sort s = {.merge = {c->order, c->job, 0, c->many, false},
              .n = c->n,
              .elements = c->base,
              .size = c->order.size};

    sort_pace(c);
    sort_parts(&s, c);
    if (sort_far(c)) s.merge.order.kind = FJI_KIND_FAR;
    if (s.size <= DIRECT)
        sort_direct(&s, room);
    else
        sort_indirect(&s, room);
    return FJ_OK;
}

static int sort_call_in_place(sort_call *c)
{
    if (c->stable)
        fji_sort_stable(&c->order, c->job, c->base, c->n);
    else
        fji_sort_heap(&c->order, c->job, c->base, c->n);
    if (c->job->code == FJ_OK) fji_job_did(c->job, c->n);
    return FJ_OK;
}

/* The body of a call, wherever it runs. */
static int sort_call_run(fj_task *t)
{
    sort_call *c = (sort_call *)t;
    size_t size = c->order.size;
    size_t bytes = size <= DIRECT ? c->n * size + 63
                                  : 2 * c->n * sizeof(void *) + fji_paths_cuts(c->n) * size;
    _Alignas(max_align_t) unsigned char stack[STACK];

    if (bytes <= STACK) return sort_call_in(c, stack);
    unsigned char *room = fji_algo_alloc(bytes);
    if (room == NULL) return sort_call_in_place(c);
    int code = sort_call_in(c, room);
    fji_algo_free(room);
    return code;
}

/* Whether it is so short that entering a pool is not worth while. */
static bool sort_stays(sort_call *c, const fj_algo_options *how)
{
    if (!fji_job_may_stay(how)) return false;
    sort_pace(c);
    return c->n <= STAY || c->n <= c->pace / PACE_ALONE;
}

static int sort_run(sort_call *c, const fj_algo_options *how)
{
    fj_task_init(&c->task, sort_call_run);
    if (sort_stays(c, how)) return sort_call_run(&c->task);
    c->many = true;
    return fji_job_run(c->job, how, &c->task);
}

static bool sort_wrong(const void *base, size_t n, size_t size, fj_compare_fn *cmp)
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

    if (sort_wrong(base, n, size, cmp)) return FJ_EINVAL;
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

    if (n < 2 || sort_wrong(base, n, size, cmp)) return;
    int code = sort_run(&c, NULL);
    if (code == FJ_OK || code == FJ_ECANCELED) return;
    /* There is no pool to be had. */
    job.code = FJ_OK;
    c.many = false;
    (void)sort_call_run(&c.task);
}
