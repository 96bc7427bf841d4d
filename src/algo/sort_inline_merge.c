/* SPDX-License-Identifier: MIT */
/*
 * sort_inline_merge.c - FJ_MERGE, and the merges of FJ_STABLE_SORT
 *
 * The problem: a merge is one sequential pass. During the last merges of a sort, most workers would
 * have nothing to do.
 *
 * The idea: a merge of many elements is divided into a left and a right merge, and the right one is
 * forked if there is demand. The longer run is cut in its middle. The other run is cut where the
 * middle element belongs in it. Each of the two merges writes its own part of `out`. Comparisons
 * decide where that second cut is, but it is always within the run or at one of its ends. If
 * comparisons contradict each other, `out` is not sorted, but it still gets every element once.
 */
#include "merge.h"
#include "sort_inline.h"
#include "split.h"

/* A merge of at most this many elements is not divided: a merge of FJ_STABLE_SORT, and a call of
 * FJ_MERGE whose options set no other limit. */
enum { LEAF = 8192 };

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

/* Forks the right merge and does the left one. Returns false if the caller has taken the right
 * merge back and has to do it. Otherwise returns true: a thief has done it, or it was cancelled
 * before it began, which has ended the job. */
static bool merge_fork_right(fji_sort_merge left, fji_sort_merge *right)
{
    fj_task_init(&right->task, merge_run);
    fj_fork(&right->task);
    fji_sort_merge_range(left);
    return fji_job_join(left.job, &right->task);
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
    call c = {.merge = {.kind = kind, .job = &job, .a = a, .b = b, .na = na, .nb = nb}};

    if (!fji_run_pair_args_ok(&p, kind->size)) return FJ_EINVAL;
    int err = fji_job_init(&job, how, na + nb);
    if (err != FJ_OK || na + nb == 0) return err;
    /* An empty run may be NULL, which memcpy() does not allow even for 0 bytes. Any other pointer
     * is valid for 0 bytes. */
    if (na == 0) c.merge.a = out;
    if (nb == 0) c.merge.b = out;
    c.merge.out = out;
    c.merge.leaf = fji_job_chunk_size(&job, LEAF);
    c.merge.counts_progress = true;
    fj_task_init(&c.task, call_run);
    if (na + nb <= c.merge.leaf && fji_job_may_skip_pool(how)) return call_run(&c.task);
    return fji_job_run(&job, how, &c.task);
}
