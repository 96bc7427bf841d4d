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

enum { LEAF = 8192 }; /* elements that one worker merges without a look around */

static int merge_run(fj_task *t)
{
    fji_sort_merge_range(*(fji_sort_merge *)t);
    return FJ_OK;
}

fji_sort_merge fji_sort_merge_split(fji_sort_merge *m)
{
    const fji_sort_kind *kind = m->kind;
    fji_sort_merge right = *m;
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
static bool merge_fork_right(fji_sort_merge left, fji_sort_merge *right)
{
    fj_task_init(&right->task, merge_run);
    fj_fork(&right->task);
    fji_sort_merge_range(left);
    if (fj_unfork(&right->task)) return false;
    int code = fj_join_stolen(&right->task);
    if (code != FJ_OK) fji_job_fail(left.job, code);
    return true;
}

void fji_sort_merge_range(fji_sort_merge m)
{
    size_t leaf = m.leaf > 1 ? m.leaf : m.leaf == 1 ? 2 : LEAF;

    while (m.na + m.nb > leaf) {
        if (!fji_job_should_continue(m.job)) return;
        fji_sort_merge left = m;
        m = fji_sort_merge_split(&left);
        if (!fji_has_demand())
            fji_sort_merge_range(left);
        else if (merge_fork_right(left, &m))
            return;
    }
    m.kind->merge(m.a, m.na, m.b, m.nb, m.out);
    if (m.counts_progress) fji_job_add_progress(m.job, m.na + m.nb);
}

/* ---- FJ_MERGE -------------------------------------------------------------------------------- */

typedef struct call {
    fj_task task;
    fji_sort_merge merge;
} call;

static int call_run(fj_task *t)
{
    fji_sort_merge_range(((call *)t)->merge);
    return FJ_OK;
}

int fji_merge_runs(const fji_sort_kind *kind, const void *a, size_t na, const void *b, size_t nb,
                   void *out, const fj_algo_options *how)
{
    fji_run_pair p = {a, b, out, na, nb};
    fji_job job;
    call w = {.merge = {.kind = kind, .job = &job, .a = a, .b = b, .na = na, .nb = nb}};

    if (!fji_run_pair_args_ok(&p, kind->size)) return FJ_EINVAL;
    int err = fji_job_init(&job, how, na + nb);
    if (err != FJ_OK || na + nb == 0) return err;
    /* An empty run may be nowhere, from where not even nothing can be copied. */
    if (na == 0) w.merge.a = out;
    if (nb == 0) w.merge.b = out;
    w.merge.out = out;
    w.merge.leaf = fji_job_chunk_size(&job, LEAF);
    w.merge.counts_progress = true;
    fj_task_init(&w.task, call_run);
    if (na + nb <= w.merge.leaf && fji_job_may_skip_pool(how)) return call_run(&w.task);
    return fji_job_run(&job, how, &w.task);
}
