/* SPDX-License-Identifier: MIT */
/*
 * reduce_deterministic.c - folding a range by a tree that is the same in every run
 *
 * The tree. The n elements are cut into k leaves of `leaf` elements, the last one may be
 * shorter. A leaf is folded into a copy of the identity. A node over more than one leaf has
 * the first k - k / 2 of them on its left and the others on its right; its value is
 * combine(left, right). All this is said by n and the grain alone; who does which node when
 * does not show in the result.
 *
 * A part is a node and what is below it, done by one worker in one loop, from left to right.
 * The loop keeps the way from the part down to the present leaf: for each node on it the right
 * half, as long as the leaf is in the left one, and the accumulator of the right half after
 * that. A left half uses the accumulator of its node, so a way straight down to the left needs
 * but one.
 *
 *     way [0]  in the left half,  the right one forked      a forked one lies above all that
 *     way [1]  in the right half                            are not: right halves are forked
 *     way [2]  in the left half,  the right one kept        from the top down, as the higher
 *     way [3]  in the left half,  the right one kept        the larger, and joined from the
 *              the leaf                                     bottom up
 *
 * Now and then, after so many leaves as take about FJI_PART_TICKS, the loop looks whether the
 * others have too little to do, and if the highest half that is kept would take longer than
 * FJI_WORTH_TICKS it is forked. Nothing is known about the time before the first leaf is done,
 * so a short reduction gives nothing away. When the loop comes to a half that is forked it
 * takes it back; or somebody has it, and the half is a part of its own, in whose accumulator
 * the result is found when it is joined.
 *
 * Accumulators up to ROOM bytes lie in the way, in the frame of the part; larger ones in a
 * block that is allocated for the part, but for that of the part itself, which is its
 * forker's. Whoever cannot have a block leaves the part to its forker.
 */
#include <string.h>

#include "../plat/ticks.h"
#include "scratch.h"
#include "split.h"

enum {
    ROOM = 128,
    DEEP = 64,    /* nodes from the root to a leaf, at most */
    SHALLOW = 16, /* of a part that has a smaller frame */
    GROWTH = 16,  /* leaves between two looks are at most so many times as before */
};

/* One reduction. */
typedef struct fixed {
    fji_job job;
    fj_fold_fn *fold;
    fj_combine_fn *combine;
    void *arg;
    const void *identity;
    size_t size;
    size_t stride; /* from one accumulator to the next in a block */
    size_t begin, end;
    size_t leaf;
} fixed;

/* How long leaves take, as their worker has found. */
typedef struct tempo {
    uint64_t ticks; /* for each leaf, times 256; 0: not known */
    uint64_t at;    /* when the leaves since the last look began */
    size_t leaves;  /* since then */
    size_t look;    /* after so many */
} tempo;

enum half { KEPT, FORKED, HERE };

/* A node on the way to the present leaf. */
typedef struct node {
    fj_task task; /* its right half, while FORKED */
    const fixed *tree;
    enum half half; /* HERE: the leaf is in the right half */
    bool done;      /* somebody else has done the right half */
    size_t lo, n;   /* leaves of the right half */
    tempo tempo;
    void *left;  /* the accumulator of the left half, and then of the node */
    void *right; /* that of the right half */
    _Alignas(max_align_t) unsigned char room[ROOM];
} node;

/* A part while it is done. */
typedef struct part {
    fixed *tree;
    node *way;
    size_t depth;         /* nodes on the way */
    size_t kept;          /* those before this one are not KEPT */
    size_t lo;            /* the present leaf */
    void *acc;            /* and its accumulator */
    unsigned char *block; /* the accumulators of the way, if they are large */
    tempo tempo;
} part;

/* ---- Time --------------------------------------------------------------------------------------- */

static void tempo_begin(tempo *t)
{
    t->at = fji_ticks();
    t->leaves = 0;
}

static void tempo_measure(tempo *t)
{
    uint64_t now = fji_ticks(), took = now - t->at;

    if (took > UINT64_MAX / 512) took = 0; /* the counters of two processors differ */
    if (t->ticks == 0 || took < FJI_PART_TICKS / 2 || took > 2 * FJI_PART_TICKS) {
        t->ticks = took * 256 / t->leaves + 1;
        uint64_t fit = FJI_PART_TICKS * 256 / t->ticks;
        t->look = fit == 0 ? 1 : fit < t->look * GROWTH ? (size_t)fit : t->look * GROWTH;
    }
    t->at = now;
    t->leaves = 0;
}

static bool tempo_worth(const tempo *t, size_t leaves)
{
    return t->ticks != 0 && leaves > FJI_WORTH_TICKS * 256 / t->ticks;
}

/* ---- Accumulators ------------------------------------------------------------------------------- */

static inline void acc_clear(const fixed *f, void *acc)
{
    if (FJI_LIKELY(f->size == sizeof(uint64_t)))
        memcpy(acc, f->identity, sizeof(uint64_t)); /* in place, not by a call */
    else
        memcpy(acc, f->identity, f->size);
}

/* ---- The way ------------------------------------------------------------------------------------ */

static int half_run(fj_task *task);

static void way_fork(part *p, node *x)
{
    fj_task_init(&x->task, half_run);
    x->tree = p->tree;
    x->half = FORKED;
    x->done = false;
    x->tempo = p->tempo;
    fj_fork(&x->task);
}

/* Gives away the highest half that is kept, if that is worth it and wanted. */
static void way_share(part *p)
{
    while (p->kept < p->depth && p->way[p->kept].half != KEPT) p->kept++;
    if (p->kept == p->depth) return;
    node *x = &p->way[p->kept];
    if (tempo_worth(&p->tempo, x->n) && fji_split_wanted()) way_fork(p, x);
}

/* Goes down to the leftmost of n leaves from p->lo on. */
static void way_down(part *p, size_t n)
{
    while (n > 1) {
        node *x = &p->way[p->depth];
        x->half = KEPT;
        x->lo = p->lo + (n - n / 2);
        x->n = n / 2;
        x->left = p->acc;
        x->right = p->block != NULL ? p->block + p->depth * p->tree->stride : x->room;
        p->depth++;
        n -= n / 2;
    }
}

/* Takes back the right half of x; true if somebody else has done it. */
static bool way_join(part *p, node *x)
{
    if (fj_unfork(&x->task)) return false;
    int code = fj_join_stolen(&x->task);
    if (code != FJ_OK) fji_job_fail(&p->tree->job, code);
    tempo_begin(&p->tempo);
    return x->done;
}

/* The right half of the last node is done: so is the node. */
static bool way_up(part *p)
{
    node *x = &p->way[--p->depth];
    int code = p->tree->combine(x->left, x->right, p->tree->arg);

    if (p->kept > p->depth) p->kept = p->depth;
    if (FJI_LIKELY(code == FJ_OK)) return true;
    fji_job_fail(&p->tree->job, code);
    return false;
}

/* From a leaf that is done to the next; false: there is none, or it is the end. */
static bool way_next(part *p)
{
    fixed *f = p->tree;

    while (p->depth > 0) {
        node *x = &p->way[p->depth - 1];
        if (x->half == HERE || (x->half == FORKED && way_join(p, x))) {
            x->half = HERE;
            /* relaxed: a code means that what was found does not matter. */
            if (fji_load_relaxed(&f->job.code) != FJ_OK || !way_up(p)) return false;
            continue;
        }
        x->half = HERE;
        p->acc = x->right;
        p->lo = x->lo;
        acc_clear(f, p->acc);
        way_down(p, x->n);
        return true;
    }
    return false;
}

/* After an error: what was given away comes back. */
static void way_clear(part *p)
{
    while (p->depth > 0) {
        node *x = &p->way[--p->depth];
        if (x->half == FORKED) (void)way_join(p, x);
    }
}

/* ---- Parts -------------------------------------------------------------------------------------- */

static bool part_leaf(part *p)
{
    fixed *f = p->tree;
    size_t from = f->begin + p->lo * f->leaf;
    size_t to = f->end - from < f->leaf ? f->end : from + f->leaf;
    int code = f->fold(from, to, p->acc, f->arg);

    if (FJI_UNLIKELY(code != FJ_OK)) {
        fji_job_fail(&f->job, code);
        return false;
    }
    fji_job_did(&f->job, to - from);
    if (++p->tempo.leaves >= p->tempo.look) {
        tempo_measure(&p->tempo);
        way_share(p);
    }
    return true;
}

/* Does n leaves from p->lo on, into p->acc, which is as the identity. */
static void part_run(part *p, size_t n)
{
    tempo_begin(&p->tempo);
    way_down(p, n);
    do {
        if (!fji_job_goes_on(&p->tree->job) || !part_leaf(p)) break;
    } while (way_next(p));
    way_clear(p);
}

static FJI_COLD void part_shallow(part *p, size_t n)
{
    node way[SHALLOW];

    p->way = way;
    part_run(p, n);
    p->way = NULL;
}

static FJI_COLD void part_deep(part *p, size_t n)
{
    node way[DEEP];

    p->way = way;
    part_run(p, n);
    p->way = NULL;
}

/* Nodes on the longest way below one over n leaves, itself included. */
static size_t depth_of(size_t n)
{
    size_t depth = 0;

    for (; n > 1; n -= n / 2) depth++;
    return depth;
}

/* Does n leaves from lo on into *acc. False: there is no memory for it. */
static bool part_do(fixed *f, size_t lo, size_t n, void *acc, const tempo *t)
{
    part p = {.tree = f, .lo = lo, .acc = acc, .tempo = *t};
    size_t depth = depth_of(n);

    if (f->size > ROOM && depth > 0) {
        size_t bytes;
        if (__builtin_mul_overflow(depth, f->stride, &bytes)) return false;
        p.block = fji_algo_alloc(bytes);
        if (p.block == NULL) return false;
    }
    acc_clear(f, acc);
    if (depth <= SHALLOW)
        part_shallow(&p, n);
    else
        part_deep(&p, n);
    if (p.block != NULL) fji_algo_free(p.block);
    return true;
}

/* The body of a right half that somebody has taken. */
static int half_run(fj_task *task)
{
    node *x = (node *)(void *)task;

    x->done = part_do((fixed *)(uintptr_t)x->tree, x->lo, x->n, x->right, &x->tempo);
    return FJ_OK;
}

/* ---- The whole ---------------------------------------------------------------------------------- */

typedef struct root {
    fj_task task;
    fixed *tree;
    size_t leaves;
    void *acc;
} root;

static int root_run(fj_task *task)
{
    root *r = (root *)task;
    tempo unknown = {.look = 1};

    return part_do(r->tree, 0, r->leaves, r->acc, &unknown) ? FJ_OK : FJ_ENOMEM;
}

/* The largest power of two that is at most half the root of n, at least 1. */
static size_t leaf_of(size_t n)
{
    size_t leaf = 1;

    while (leaf <= n / leaf / 16) leaf *= 2; /* (2 * leaf * 2)^2 <= n */
    return leaf;
}

static int fixed_run(fixed *f, void *result, const fj_algo_options *how)
{
    size_t n = f->end - f->begin;
    _Alignas(max_align_t) unsigned char room[2 * ROOM];
    root r = {.tree = f, .leaves = n / f->leaf + (n % f->leaf != 0)};

    r.acc = f->size <= sizeof room ? room : fji_algo_alloc(f->size);
    if (r.acc == NULL) return FJ_ENOMEM;
    fj_task_init(&r.task, root_run);
    int err = fji_job_run(&f->job, how, &r.task);
    if (err == FJ_OK) memcpy(result, r.acc, f->size);
    if (r.acc != room) fji_algo_free(r.acc);
    return err;
}

int fj_reduce_deterministic(size_t begin, size_t end, fj_fold_fn *fold, fj_combine_fn *combine,
                            const void *identity, size_t size, void *arg, void *result,
                            const fj_algo_options *how)
{
    const size_t align = _Alignof(max_align_t);
    fixed f = {.fold = fold,
               .combine = combine,
               .arg = arg,
               .identity = identity,
               .size = size,
               .begin = begin,
               .end = end};

    if (fold == NULL || combine == NULL || identity == NULL || result == NULL) return FJ_EINVAL;
    if (begin > end || size == 0 || size > PTRDIFF_MAX) return FJ_EINVAL;
    int err = fji_job_init(&f.job, how, end - begin);
    if (err != FJ_OK) return err;
    if (begin == end) {
        memmove(result, identity, size);
        return FJ_OK;
    }
    f.stride = (size + align - 1) / align * align;
    f.leaf = f.job.grain != 0 ? f.job.grain : leaf_of(end - begin);
    return fixed_run(&f, result, how);
}
