/* SPDX-License-Identifier: MIT */
/*
 * reduce_deterministic.c - reductions whose result does not depend on how workers share them
 *
 * The problem: sums of floating-point numbers depend on the order of the additions. The result has
 * to have the same bits in every run, with any number of workers, and no matter which tasks are
 * stolen.
 *
 * The tree. The n elements are divided into leaves of `leaf` elements each; the last leaf may have
 * fewer. The value of a leaf is computed by fold(), which adds its elements to a copy of the
 * identity. A node over k > 1 leaves has two halves: the first k - k / 2 leaves are its left half,
 * and the others are its right half. The value of a node is combine(left, right). The tree depends
 * only on n and the grain. Which worker computes which node does not change the result.
 *
 * A worker computes a subtree in one loop over its leaves, from left to right. The loop keeps the
 * path, which consists of the nodes from the root of the subtree down to the current leaf. Each
 * node on the path is in one of three states, which say how far its right half is:
 *
 *     KEPT      the current leaf is in the left half; this worker will compute the right half
 *               later, unless it forks the right half first
 *     FORKED    the current leaf is in the left half; the right half is a forked task
 *     CURRENT   the current leaf is in the right half, or a thief has computed the right half
 *
 *     path [0]  FORKED     The higher a half is, the larger it is, so the highest KEPT half is
 *     path [1]  CURRENT    forked first. All FORKED nodes are therefore above all KEPT nodes. The
 *     path [2]  KEPT       forked halves are joined in the opposite order, the lowest one first.
 *     path [3]  KEPT
 *               the current leaf
 *
 * A left half uses the accumulator of its node, and a right half has one of its own. A path that
 * goes only to the left therefore needs only one accumulator.
 *
 * The loop measures groups of leaves, and chooses their size so that a group takes about
 * FJI_CHUNK_TICKS. The first group is one leaf. After each group the loop considers the highest
 * KEPT node, whose right half is neither begun nor forked. If this half takes longer than
 * FJI_FORK_MIN_TICKS, and there is demand, the loop forks it. A short reduction therefore forks
 * nothing. When the loop has completed the left half of a FORKED node, it takes the right half back
 * and computes it. If a thief has taken the right half, the loop waits until the thief has computed
 * it, as a subtree of its own, into the accumulator of the right half.
 *
 * The accumulator of a right half is stored in the node if it has at most INLINE_ACC bytes. The
 * nodes are on the stack of the worker. Larger accumulators are in a block that is allocated for
 * the whole subtree. The accumulator of the root of a subtree is provided by its forker or, for the
 * root of the whole tree, by the call. A thief that gets no memory for the block does nothing, and
 * the forker computes the subtree. If there is no memory for the block of the whole tree, or for
 * the accumulator of its root, the call returns FJ_ENOMEM.
 */
#include <string.h>

#include "plat/ticks.h"
#include "scratch.h"
#include "split.h"

enum {
    INLINE_ACC = 128, /* an accumulator of at most this many bytes is stored in a struct node */
    DEPTH_MAX = 64,   /* the most nodes from the root to a leaf in any tree */
    DEPTH_SMALL = 16, /* if no path of a subtree has more nodes than this, the array for the path,
                       * on the stack, has this many elements; otherwise DEPTH_MAX */
    GROWTH = 16,      /* a group has at most 16 times as many leaves as the group before it */
};

/* One reduction. */
typedef struct reduction {
    fji_job job;
    fj_fold_fn *fold;
    fj_combine_fn *combine;
    void *arg;
    const void *identity;
    size_t size;       /* bytes of an accumulator */
    size_t stride;     /* bytes from one accumulator to the next in a block: `size`, rounded up to a
                        * multiple of the largest alignment */
    size_t begin, end; /* the elements begin <= i < end are reduced */
    size_t leaf;       /* elements of a leaf; the last leaf may have fewer */
} reduction;

/* How long leaves take, as the worker has measured it, and the current group of leaves: leaves that
 * are folded one after the other and measured together. */
typedef struct leaf_timing {
    uint64_t ticks_per_leaf; /* 256 times the ticks that one leaf takes; 0: not known */
    uint64_t begin;          /* the tick counter when the current group of leaves began */
    size_t leaves;           /* leaves of the current group that are done */
    size_t check_after;      /* leaves of a group: the group ends, and is measured, when this
                              * many leaves are done */
} leaf_timing;

/* How far the right half of a node on the path is. KEPT: this worker will compute it after the left
 * half, unless it forks the right half first. FORKED: it is a forked task. CURRENT: this worker
 * computes it now, or a thief has computed it. */
enum half { KEPT, FORKED, CURRENT };

/* A node on the path to the current leaf. */
typedef struct node {
    fj_task task; /* computes the right half, if it is forked */
    reduction *reduction;
    enum half half;     /* how far the right half is */
    bool done;          /* if the right half was forked: the body of `task` has computed it. false:
                         * the body has not run, or it had no memory */
    size_t lo, n;       /* the right half consists of the n leaves from leaf `lo` on */
    leaf_timing timing; /* the forker's measurements, with which a thief of the right half begins */
    void *left; /* the accumulator of the left half; after combine() it has the value of the node */
    void *right; /* the accumulator of the right half */
    _Alignas(max_align_t) unsigned char inline_acc[INLINE_ACC];
} node;

/* A subtree while a worker computes it. */
typedef struct subtree {
    reduction *reduction;
    node *path;           /* the nodes from the root of the subtree down to the current leaf */
    size_t depth;         /* number of nodes on the path to the current leaf */
    size_t first_kept;    /* this worker has begun or forked the right half of each node before
                           * path[first_kept] */
    size_t lo;            /* the number of the current leaf */
    void *acc;            /* the accumulator of the current leaf */
    unsigned char *block; /* the accumulators of the right halves, one for each level of the path;
                           * NULL: they are in the nodes */
    leaf_timing timing;   /* the measurements of this worker */
} subtree;

/* ---- Timing ---------------------------------------------------------------------------------- */

static void timing_begin(leaf_timing *t)
{
    t->begin = fji_ticks();
    t->leaves = 0;
}

/* Ends the current group of leaves and begins the next one. If no group was measured before, or if
 * this group took less than half or more than twice FJI_CHUNK_TICKS, computes how long a leaf takes
 * and chooses the size of the next group. Otherwise keeps both. */
static void timing_update(leaf_timing *t)
{
    uint64_t now = fji_ticks(), elapsed = now - t->begin;

    if (elapsed > UINT64_MAX / 512) elapsed = 0; /* negative: two processors' counters differ */
    if (t->ticks_per_leaf == 0 || elapsed < FJI_CHUNK_TICKS / 2 || elapsed > 2 * FJI_CHUNK_TICKS) {
        t->ticks_per_leaf = elapsed * 256 / t->leaves + 1;
        uint64_t fit = FJI_CHUNK_TICKS * 256 / t->ticks_per_leaf;
        size_t max = t->check_after * GROWTH;
        t->check_after = fit == 0 ? 1 : fit < max ? (size_t)fit : max;
    }
    t->begin = now;
    t->leaves = 0;
}

/* Returns whether `leaves` leaves take longer than FJI_FORK_MIN_TICKS. Returns false if the time of
 * a leaf is not known yet. */
static bool fork_is_worthwhile(const leaf_timing *t, size_t leaves)
{
    return t->ticks_per_leaf != 0 && leaves > FJI_FORK_MIN_TICKS * 256 / t->ticks_per_leaf;
}

/* ---- Accumulators ---------------------------------------------------------------------------- */

static inline void acc_reset(const reduction *r, void *acc)
{
    if (FJI_LIKELY(r->size == sizeof(uint64_t)))
        memcpy(acc, r->identity, sizeof(uint64_t)); /* inlined, not a call */
    else
        memcpy(acc, r->identity, r->size);
}

/* ---- The path -------------------------------------------------------------------------------- */

static int half_run(fj_task *task);

static void path_fork(subtree *p, node *x)
{
    fj_task_init(&x->task, half_run);
    x->reduction = p->reduction;
    x->half = FORKED;
    x->done = false;
    x->timing = p->timing;
    fj_fork(&x->task);
}

/* Of the right halves on the path that this worker has neither begun nor forked, forks the highest
 * one, which is the largest, if it takes long enough and there is demand. */
static void path_share(subtree *p)
{
    while (p->first_kept < p->depth && p->path[p->first_kept].half != KEPT) p->first_kept++;
    if (p->first_kept == p->depth) return;
    node *x = &p->path[p->first_kept];
    if (fork_is_worthwhile(&p->timing, x->n) && fji_has_demand()) path_fork(p, x);
}

/* The path leads to a subtree of the n leaves from p->lo on. Extends the path down to the leftmost
 * of these leaves. */
static void path_descend(subtree *p, size_t n)
{
    while (n > 1) {
        node *x = &p->path[p->depth];
        x->half = KEPT;
        x->lo = p->lo + (n - n / 2);
        x->n = n / 2;
        x->left = p->acc;
        x->right = p->block != NULL ? p->block + p->depth * p->reduction->stride : x->inline_acc;
        p->depth++;
        n -= n / 2;
    }
}

/* Joins the forked right half of node x. Returns true if the half is computed: a thief has run the
 * task, or fj_fork() has run it because there was no memory to queue it. Returns false if this
 * worker has taken the task back, or if the task had no memory to compute the half: this worker
 * then has to compute it. Also returns false, after it has ended the job, if the task was cancelled
 * before it ran. */
static bool path_join(subtree *p, node *x)
{
    if (!fji_job_join(&p->reduction->job, &x->task)) return false;
    timing_begin(&p->timing);
    return x->done;
}

/* Combines the two halves of the last node on the path, which are both done, and removes the node
 * from the path. If combine() fails, ends the job with its code and returns false. */
static bool path_ascend(subtree *p)
{
    node *x = &p->path[--p->depth];
    int code = p->reduction->combine(x->left, x->right, p->reduction->arg);

    if (p->first_kept > p->depth) p->first_kept = p->depth;
    if (FJI_LIKELY(code == FJ_OK)) return true;
    fji_job_fail(&p->reduction->job, code);
    return false;
}

/* Moves the path from a leaf that is done to the next leaf that this worker has to fold. On the way
 * up, combines the two halves of each node whose halves are both done. Returns false if there is no
 * such leaf, or if the job has ended. */
static bool path_next_leaf(subtree *p)
{
    reduction *r = p->reduction;

    while (p->depth > 0) {
        node *x = &p->path[p->depth - 1];
        if (x->half == CURRENT || (x->half == FORKED && path_join(p, x))) {
            x->half = CURRENT;
            /* relaxed: only decides whether to combine; if the job has ended, the values are
             * discarded. */
            if (fji_load_relaxed(&r->job.code) != FJ_OK || !path_ascend(p)) return false;
            continue;
        }
        x->half = CURRENT;
        p->acc = x->right;
        p->lo = x->lo;
        acc_reset(r, p->acc);
        path_descend(p, x->n);
        return true;
    }
    return false;
}

/* Joins all halves that are still forked, and empties the path. There are such halves only if the
 * job has ended early. */
static void path_join_all(subtree *p)
{
    while (p->depth > 0) {
        node *x = &p->path[--p->depth];
        if (x->half == FORKED) (void)path_join(p, x);
    }
}

/* ---- Subtrees -------------------------------------------------------------------------------- */

/* Folds the current leaf and adds its elements to the progress. If fold() fails, ends the job with
 * its code and returns false. At the end of a group of leaves, tests whether to fork a half. */
static bool subtree_leaf(subtree *p)
{
    reduction *r = p->reduction;
    size_t from = r->begin + p->lo * r->leaf;
    size_t to = r->end - from < r->leaf ? r->end : from + r->leaf;
    int code = r->fold(from, to, p->acc, r->arg);

    if (FJI_UNLIKELY(code != FJ_OK)) {
        fji_job_fail(&r->job, code);
        return false;
    }
    fji_job_add_progress(&r->job, to - from);
    if (++p->timing.leaves >= p->timing.check_after) {
        timing_update(&p->timing);
        path_share(p);
    }
    return true;
}

/* Reduces the n leaves from leaf p->lo on into *p->acc, which is a copy of the identity on entry.
 * p->path has space for depth_of(n) nodes. If the job ends early, *p->acc is unspecified. */
static void subtree_run(subtree *p, size_t n)
{
    timing_begin(&p->timing);
    path_descend(p, n);
    do {
        if (!fji_job_should_continue(&p->reduction->job) || !subtree_leaf(p)) break;
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

/* Returns the number of nodes on the longest path in a tree of n leaves. Leaves are not nodes. */
static size_t depth_of(size_t n)
{
    size_t depth = 0;

    for (; n > 1; n -= n / 2) depth++;
    return depth;
}

/* Reduces the n leaves from leaf `lo` on into *acc, which need not be initialized. *t is what is
 * known about the time of a leaf. Returns true; if the job has ended early, *acc is unspecified. If
 * there is no memory for the accumulators of right halves, does nothing and returns false. */
static bool subtree_reduce(reduction *r, size_t lo, size_t n, void *acc, const leaf_timing *t)
{
    subtree p = {.reduction = r, .lo = lo, .acc = acc, .timing = *t};
    size_t depth = depth_of(n);

    if (r->size > INLINE_ACC && depth > 0) {
        size_t bytes;
        if (__builtin_mul_overflow(depth, r->stride, &bytes)) return false;
        p.block = fji_algo_alloc(bytes);
        if (p.block == NULL) return false;
    }
    acc_reset(r, acc);
    if (depth <= DEPTH_SMALL)
        subtree_run_small(&p, n);
    else
        subtree_run_deep(&p, n);
    if (p.block != NULL) fji_algo_free(p.block);
    return true;
}

/* The body of the task of a right half. It runs in a thief or, if there is no memory to queue the
 * task, inside of fj_fork(). If the forker takes the task back, it does not run. */
static int half_run(fj_task *task)
{
    node *x = (node *)(void *)task;

    x->done = subtree_reduce(x->reduction, x->lo, x->n, x->right, &x->timing);
    return FJ_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

typedef struct root {
    fj_task task;
    reduction *reduction;
    size_t leaves;
    void *acc;
} root;

static int root_run(fj_task *task)
{
    root *call = (root *)task;
    leaf_timing unknown = {.check_after = 1};

    return subtree_reduce(call->reduction, 0, call->leaves, call->acc, &unknown) ? FJ_OK
                                                                                 : FJ_ENOMEM;
}

/* Returns how many elements a leaf has if the options set no grain: the largest power of two that
 * is at most half the square root of n, but at least 1. */
static size_t default_leaf(size_t n)
{
    size_t leaf = 1;

    while (leaf <= n / leaf / 16) leaf *= 2; /* (2 * leaf * 2)^2 <= n */
    return leaf;
}

static int reduction_run(reduction *r, void *result, const fj_algo_options *how)
{
    size_t n = r->end - r->begin;
    _Alignas(max_align_t) unsigned char stack[2 * INLINE_ACC];
    root call = {.reduction = r, .leaves = fji_div_up(n, r->leaf)};

    call.acc = r->size <= sizeof stack ? stack : fji_algo_alloc_for(how, r->size);
    if (call.acc == NULL) return FJ_ENOMEM;
    fj_task_init(&call.task, root_run);
    int err = fji_job_run(&r->job, how, &call.task);
    if (err == FJ_OK) memcpy(result, call.acc, r->size);
    if (call.acc != stack) fji_algo_free(call.acc);
    return err;
}

int fj_reduce_deterministic(size_t begin, size_t end, fj_fold_fn *fold, fj_combine_fn *combine,
                            const void *identity, size_t size, void *arg, void *result,
                            const fj_algo_options *how)
{
    const size_t align = _Alignof(max_align_t);
    reduction r = {.fold = fold,
                   .combine = combine,
                   .arg = arg,
                   .identity = identity,
                   .size = size,
                   .begin = begin,
                   .end = end};

    if (fold == NULL || combine == NULL || identity == NULL || result == NULL) return FJ_EINVAL;
    if (begin > end || size == 0 || size > PTRDIFF_MAX) return FJ_EINVAL;
    int err = fji_job_init(&r.job, how, end - begin);
    if (err != FJ_OK) return err;
    if (begin == end) {
        memmove(result, identity, size);
        return FJ_OK;
    }
    r.stride = (size + align - 1) / align * align;
    r.leaf = r.job.grain != 0 ? r.job.grain : default_leaf(end - begin);
    return reduction_run(&r, result, how);
}
