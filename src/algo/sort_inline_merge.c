/* SPDX-License-Identifier: MIT */
/*
 * sort_inline_merge.c - FJ_MERGE, and the merges of FJ_STABLE_SORT
 *
 * A merge of many elements is split: the middle of the longer run, and where it belongs in the
 * other, cut both in two, and each side has its place in out. Where a cut lies depends on what
 * is compared; that it lies within the runs does not.
 */
#include "merge.h"
#include "scratch.h"
#include "sort_inline.h"
#include "split.h"

enum { MERGE_LEAF = 8192 }; /* elements that one worker merges without a look around */

static int merge_run(fj_task *t)
{
    fji_typed_merge_range(*(fji_typed_merge *)t);
    return FJ_OK;
}

fji_typed_merge fji_typed_merge_split(fji_typed_merge *m)
{
    const fji_sort_kind *kind = m->kind;
    fji_typed_merge right = *m;
    size_t i, j;

    if (m->na >= m->nb) {
        i = m->na / 2;
        j = kind->before(m->b, m->nb, m->a + i * kind->size, 0);
    } else {
        j = m->nb / 2;
        i = kind->before(m->a, m->na, m->b + j * kind->size, 1);
    }
    right.a += i * kind->size;
    right.b += j * kind->size;
    if (right.out != NULL) right.out += (i + j) * kind->size;
    right.na -= i;
    right.nb -= j;
    m->na = i;
    m->nb = j;
    return right;
}

/* Merges both sides; returns whether the right one, offered meanwhile, is done as well. */
static bool merge_both(fji_typed_merge left, fji_typed_merge *right)
{
    fj_task_init(&right->task, merge_run);
    fj_fork(&right->task);
    fji_typed_merge_range(left);
    if (fj_unfork(&right->task)) return false;
    int code = fj_join_stolen(&right->task);
    if (code != FJ_OK) fji_job_fail(left.job, code);
    return true;
}

void fji_typed_merge_range(fji_typed_merge m)
{
    size_t leaf = m.leaf > 1 ? m.leaf : m.leaf == 1 ? 2 : MERGE_LEAF;

    while (m.na + m.nb > leaf) {
        if (!fji_job_goes_on(m.job)) return;
        fji_typed_merge left = m;
        m = fji_typed_merge_split(&left);
        if (!fji_split_wanted())
            fji_typed_merge_range(left);
        else if (merge_both(left, &m))
            return;
    }
    m.kind->merge(m.a, m.na, m.b, m.nb, m.out);
    if (m.counts) fji_job_did(m.job, m.na + m.nb);
}

/* ---- FJ_MERGE ------------------------------------------------------------------------------------ */

typedef struct whole {
    fj_task task;
    fji_typed_merge merge;
} whole;

static int whole_run(fj_task *t)
{
    fji_typed_merge_range(((whole *)t)->merge);
    return FJ_OK;
}

int fji_merge_runs(const fji_sort_kind *kind, const void *a, size_t na, const void *b, size_t nb,
                   void *out, const fj_algo_options *how)
{
    fji_piece p = {a, b, out, na, nb};
    fji_job job;
    whole w = {.merge = {.kind = kind, .job = &job, .a = a, .b = b, .na = na, .nb = nb}};

    if (!fji_piece_fine(&p, kind->size)) return FJ_EINVAL;
    int err = fji_job_init(&job, how, na + nb);
    if (err != FJ_OK || na + nb == 0) return err;
    /* An empty run may be nowhere, from where not even nothing can be copied. */
    if (na == 0) w.merge.a = out;
    if (nb == 0) w.merge.b = out;
    w.merge.out = out;
    w.merge.leaf = fji_job_part(&job, MERGE_LEAF);
    w.merge.counts = true;
    fj_task_init(&w.task, whole_run);
    if (na + nb <= w.merge.leaf && fji_job_may_stay(how)) return whole_run(&w.task);
    return fji_job_run(&job, how, &w.task);
}
