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
 * Now and then, after so many leaves as take about FJI_CHUNK_TICKS, the loop looks whether the
 * others have too little to do, and if the highest half that is kept would take longer than
 * FJI_FORK_MIN_TICKS it is forked. Nothing is known about the time before the first leaf is done,
 * so a short reduction gives nothing away. When the loop comes to a half that is forked it
 * takes it back; or somebody has it, and the half is a part of its own, in whose accumulator
 * the result is found when it is joined.
 *
 * Accumulators up to INLINE_ACC bytes lie in the way, in the frame of the part; larger ones in a
 * block that is allocated for the part, but for that of the part itself, which is its
 * forker's. Whoever cannot have a block leaves the part to its forker.
 */
#include <string.h>

#include "../plat/ticks.h"
#include "scratch.h"
#include "split.h"

enum {
    INLINE_ACC = 128,
    DEPTH_MAX = 64,   /* nodes from the root to a leaf, at most */
    DEPTH_SMALL = 16, /* of a part that has a smaller frame */
    GROWTH = 16,      /* leaves between two looks are at most so many times as before */
};

/* One reduction. */
typedef struct tree {
    fji_job job;
    fj_fold_fn *fold;
    fj_combine_fn *combine;
    void *arg;
    const void *identity;
    size_t size;
    size_t stride; /* from one accumulator to the next in a block */
    size_t begin, end;
    size_t leaf;
} tree;

/* How long leaves take, as their worker has found. */
typedef struct leaf_timing {
    uint64_t ticks_per_leaf; /* for each leaf, times 256; 0: not known */
    uint64_t begin;          /* when the leaves since the last look began */
    size_t leaves;           /* since then */
    size_t check_after;      /* after so many */
} leaf_timing;

enum half { KEPT, FORKED, CURRENT };

/* A node on the way to the present leaf. */
typedef struct node {
    fj_task task; /* its right half, while FORKED */
    const tree *tree;
    enum half half; /* CURRENT: the leaf is in the right half */
    bool done;      /* somebody else has done the right half */
    size_t lo, n;   /* leaves of the right half */
    leaf_timing timing;
    void *left;  /* the accumulator of the left half, and then of the node */
    void *right; /* that of the right half */
    _Alignas(max_align_t) unsigned char inline_acc[INLINE_ACC];
} node;

/* A part while it is done. */
typedef struct subtree {
    tree *tree;
    node *path;
    size_t depth;         /* nodes on the way */
    size_t first_kept;    /* those before this one are not KEPT */
    size_t lo;            /* the present leaf */
    void *acc;            /* and its accumulator */
    unsigned char *block; /* the accumulators of the way, if they are large */
    leaf_timing timing;
} subtree;

/* ---- Time ------------------------------------------------------------------------------------ */

static void timing_begin(leaf_timing *t)
{
    t->begin = fji_ticks();
    t->leaves = 0;
}

static void timing_update(leaf_timing *t)
{
    uint64_t now = fji_ticks(), elapsed = now - t->begin;

    if (elapsed > UINT64_MAX / 512) elapsed = 0; /* the counters of two processors differ */
    if (t->ticks_per_leaf == 0 || elapsed < FJI_CHUNK_TICKS / 2 || elapsed > 2 * FJI_CHUNK_TICKS) {
        t->ticks_per_leaf = elapsed * 256 / t->leaves + 1;
        uint64_t fit = FJI_CHUNK_TICKS * 256 / t->ticks_per_leaf;
        t->check_after = fit == 0                        ? 1
                         : fit < t->check_after * GROWTH ? (size_t)fit
                                                         : t->check_after * GROWTH;
    }
    t->begin = now;
    t->leaves = 0;
}

static bool fork_is_worthwhile(const leaf_timing *t, size_t leaves)
{
    return t->ticks_per_leaf != 0 && leaves > FJI_FORK_MIN_TICKS * 256 / t->ticks_per_leaf;
}

/* ---- Accumulators ---------------------------------------------------------------------------- */

static inline void acc_reset(const tree *f, void *acc)
{
    if (FJI_LIKELY(f->size == sizeof(uint64_t)))
        memcpy(acc, f->identity, sizeof(uint64_t)); /* in place, not by a call */
    else
        memcpy(acc, f->identity, f->size);
}

/* ---- The way --------------------------------------------------------------------------------- */

static int half_run(fj_task *task);

static void path_fork(subtree *p, node *x)
{
    fj_task_init(&x->task, half_run);
    x->tree = p->tree;
    x->half = FORKED;
    x->done = false;
    x->timing = p->timing;
    fj_fork(&x->task);
}

/* Gives away the highest half that is kept, if that is worth it and wanted. */
static void path_share(subtree *p)
{
    while (p->first_kept < p->depth && p->path[p->first_kept].half != KEPT) p->first_kept++;
    if (p->first_kept == p->depth) return;
    node *x = &p->path[p->first_kept];
    if (fork_is_worthwhile(&p->timing, x->n) && fji_has_demand()) path_fork(p, x);
}

/* Goes down to the leftmost of n leaves from p->lo on. */
static void path_descend(subtree *p, size_t n)
{
    while (n > 1) {
        node *x = &p->path[p->depth];
        x->half = KEPT;
        x->lo = p->lo + (n - n / 2);
        x->n = n / 2;
        x->left = p->acc;
        x->right = p->block != NULL ? p->block + p->depth * p->tree->stride : x->inline_acc;
        p->depth++;
        n -= n / 2;
    }
}

/* Takes back the right half of x; true if somebody else has done it. */
static bool path_join(subtree *p, node *x)
{
    if (fj_unfork(&x->task)) return false;
    int code = fj_join_stolen(&x->task);
    if (code != FJ_OK) fji_job_fail(&p->tree->job, code);
    timing_begin(&p->timing);
    return x->done;
}

/* The right half of the last node is done: so is the node. */
static bool path_ascend(subtree *p)
{
    node *x = &p->path[--p->depth];
    int code = p->tree->combine(x->left, x->right, p->tree->arg);

    if (p->first_kept > p->depth) p->first_kept = p->depth;
    if (FJI_LIKELY(code == FJ_OK)) return true;
    fji_job_fail(&p->tree->job, code);
    return false;
}

/* From a leaf that is done to the next; false: there is none, or it is the end. */
static bool path_next_leaf(subtree *p)
{
    tree *f = p->tree;

    while (p->depth > 0) {
        node *x = &p->path[p->depth - 1];
        if (x->half == CURRENT || (x->half == FORKED && path_join(p, x))) {
            x->half = CURRENT;
            /* relaxed: a code means that what was found does not matter. */
            if (fji_load_relaxed(&f->job.code) != FJ_OK || !path_ascend(p)) return false;
            continue;
        }
        x->half = CURRENT;
        p->acc = x->right;
        p->lo = x->lo;
        acc_reset(f, p->acc);
        path_descend(p, x->n);
        return true;
    }
    return false;
}

/* After an error: what was given away comes back. */
static void path_join_all(subtree *p)
{
    while (p->depth > 0) {
        node *x = &p->path[--p->depth];
        if (x->half == FORKED) (void)path_join(p, x);
    }
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static bool subtree_leaf(subtree *p)
{
    tree *f = p->tree;
    size_t from = f->begin + p->lo * f->leaf;
    size_t to = f->end - from < f->leaf ? f->end : from + f->leaf;
    int code = f->fold(from, to, p->acc, f->arg);

    if (FJI_UNLIKELY(code != FJ_OK)) {
        fji_job_fail(&f->job, code);
        return false;
    }
    fji_job_add_progress(&f->job, to - from);
    if (++p->timing.leaves >= p->timing.check_after) {
        timing_update(&p->timing);
        path_share(p);
    }
    return true;
}

/* Does n leaves from p->lo on, into p->acc, which is as the identity. */
static void subtree_run(subtree *p, size_t n)
{
    timing_begin(&p->timing);
    path_descend(p, n);
    do {
        if (!fji_job_should_continue(&p->tree->job) || !subtree_leaf(p)) break;
    } while (path_next_leaf(p));
    path_join_all(p);
}

static FJI_COLD void subtree_run_small(subtree *p, size_t n)
{
    node path[DEPTH_SMALL];

    p->path = path;
    subtree_run(p, n);
    p->path = NULL;
}

static FJI_COLD void subtree_run_deep(subtree *p, size_t n)
{
    node path[DEPTH_MAX];

    p->path = path;
    subtree_run(p, n);
    p->path = NULL;
}

/* Nodes on the longest way below one over n leaves, itself included. */
static size_t depth_of(size_t n)
{
    size_t depth = 0;

    for (; n > 1; n -= n / 2) depth++;
    return depth;
}

/* Does n leaves from lo on into *acc. False: there is no memory for it. */
static bool subtree_reduce(tree *f, size_t lo, size_t n, void *acc, const leaf_timing *t)
{
    subtree p = {.tree = f, .lo = lo, .acc = acc, .timing = *t};
    size_t depth = depth_of(n);

    if (f->size > INLINE_ACC && depth > 0) {
        size_t bytes;
        if (__builtin_mul_overflow(depth, f->stride, &bytes)) return false;
        p.block = fji_algo_alloc(bytes);
        if (p.block == NULL) return false;
    }
    acc_reset(f, acc);
    if (depth <= DEPTH_SMALL)
        subtree_run_small(&p, n);
    else
        subtree_run_deep(&p, n);
    if (p.block != NULL) fji_algo_free(p.block);
    return true;
}

/* The body of a right half that somebody has taken. */
static int half_run(fj_task *task)
{
    node *x = (node *)(void *)task;

    x->done = subtree_reduce((tree *)(uintptr_t)x->tree, x->lo, x->n, x->right, &x->timing);
    return FJ_OK;
}

/* ---- The whole ------------------------------------------------------------------------------- */

typedef struct root {
    fj_task task;
    tree *tree;
    size_t leaves;
    void *acc;
} root;

static int root_run(fj_task *task)
{
    root *r = (root *)task;
    leaf_timing unknown = {.check_after = 1};

    return subtree_reduce(r->tree, 0, r->leaves, r->acc, &unknown) ? FJ_OK : FJ_ENOMEM;
}

/* The largest power of two that is at most half the root of n, at least 1. */
static size_t default_leaf(size_t n)
{
    size_t leaf = 1;

    while (leaf <= n / leaf / 16) leaf *= 2; /* (2 * leaf * 2)^2 <= n */
    return leaf;
}

static int tree_run(tree *f, void *result, const fj_algo_options *how)
{
    size_t n = f->end - f->begin;
    _Alignas(max_align_t) unsigned char inline_acc[2 * INLINE_ACC];
    root r = {.tree = f, .leaves = n / f->leaf + (n % f->leaf != 0)};

    r.acc = f->size <= sizeof inline_acc ? inline_acc : fji_algo_alloc(f->size);
    if (r.acc == NULL) return FJ_ENOMEM;
    fj_task_init(&r.task, root_run);
    int err = fji_job_run(&f->job, how, &r.task);
    if (err == FJ_OK) memcpy(result, r.acc, f->size);
    if (r.acc != inline_acc) fji_algo_free(r.acc);
    return err;
}

int fj_reduce_deterministic(size_t begin, size_t end, fj_fold_fn *fold, fj_combine_fn *combine,
                            const void *identity, size_t size, void *arg, void *result,
                            const fj_algo_options *how)
{
    const size_t align = _Alignof(max_align_t);
    tree f = {.fold = fold,
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
    f.leaf = f.job.grain != 0 ? f.job.grain : default_leaf(end - begin);
    return tree_run(&f, result, how);
}
