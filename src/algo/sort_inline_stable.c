/* SPDX-License-Identifier: MIT */
/*
 * sort_inline_stable.c - FJ_STABLE_SORT: merge sort with a buffer, or in place without
 *
 * A range is sorted by halves, which are merged from the array into the buffer or back, so
 * that each level moves every element once. Merges of many elements are split (sort_inline_merge.c).
 *
 * Cancelled: a merge does not change what it reads. So the elements of a range are all in the
 * array, or all in the buffer, and a range that gives up puts them back into the array.
 *
 * In place: where the two halves of a merge are cut, the inner two pieces change places, and
 * what is left and right of that border is merged by itself.
 */
#include <string.h>

#include "scratch.h"
#include "sort_inline.h"
#include "split.h"

enum {
    LEAF = 2048, /* a range of so many is sorted by one worker, without a look around */
};

typedef struct mergesort {
    fji_job job;
    const fji_sort_kind *kind;
    char *a, *buffer; /* buffer NULL: in place */
    size_t leaf;
    uint64_t reported; /* what progress knows of already */
} mergesort;

static char *at_place(const mergesort *s, bool buffer, size_t at)
{
    return (buffer ? s->buffer : s->a) + at * s->kind->size;
}

/* ---- Leaves ---------------------------------------------------------------------------------- */

/* Whether a goes before or with all of what follows it, both sorted. */
static bool in_order(const fji_sort_kind *kind, const char *last, const char *next)
{
    return kind->before(next, 1, last, 0) == 0;
}

/* Sorts n elements at `at`, into the buffer if so wanted. */
static void sort_sequential(mergesort *s, size_t at, size_t n, bool buffer)
{
    size_t size = s->kind->size, half = n / 2;

    if (n <= s->kind->at_once) {
        if (n > 1) s->kind->small(at_place(s, false, at), n);
        if (buffer) memcpy(at_place(s, true, at), at_place(s, false, at), n * size);
        return;
    }
    sort_sequential(s, at, half, !buffer);
    sort_sequential(s, at + half, n - half, !buffer);
    const char *left = at_place(s, !buffer, at), *right = left + half * size;
    if (in_order(s->kind, right - size, right))
        memcpy(at_place(s, buffer, at), left, n * size);
    else
        s->kind->merge(left, half, right, n - half, at_place(s, buffer, at));
}

/* A leaf: sorted as it is, or backwards, or neither. */
static void sort_leaf(mergesort *s, size_t at, size_t n, bool buffer)
{
    char *a = at_place(s, false, at);
    int descending = 0;

    if (n < 2 || s->kind->run(a, n, &descending) == n) {
        if (descending) fji_sort_reverse(a, n, s->kind->size);
        if (buffer) memcpy(at_place(s, true, at), a, n * s->kind->size);
    } else {
        sort_sequential(s, at, n, buffer);
    }
    if (s->job.progress != NULL) {
        (void)fji_add_relaxed(&s->reported, n / 2); /* relaxed: read after all parts were joined */
        fji_job_add_progress(&s->job, n / 2);
    }
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

typedef struct half {
    fj_task task;
    mergesort *s;
    size_t at, n;
    bool buffer;
    bool in_buffer; /* where it is, at the end */
} half;

static bool sort_range(mergesort *s, size_t at, size_t n, bool buffer);

static int half_run(fj_task *t)
{
    half *h = (half *)t;

    h->in_buffer = sort_range(h->s, h->at, h->n, h->buffer);
    return FJ_OK;
}

/* Sorts the second half while the first one is sorted here; true if both are in the buffer. */
static void sort_halves(mergesort *s, half *left, half *right)
{
    if (!fji_has_demand()) {
        (void)half_run(&left->task);
        (void)half_run(&right->task);
        return;
    }
    fj_task_init(&right->task, half_run);
    fj_fork(&right->task);
    (void)half_run(&left->task);
    if (fj_unfork(&right->task)) {
        (void)half_run(&right->task);
        return;
    }
    int code = fj_join_stolen(&right->task);
    if (code != FJ_OK) fji_job_fail(&s->job, code);
}

static void copy_back(mergesort *s, const half *h)
{
    if (h->in_buffer)
        memcpy(at_place(s, false, h->at), at_place(s, true, h->at), h->n * s->kind->size);
}

/* Sorts n elements at `at`, into the buffer if so wanted; returns whether they are there:
 * cancelled, they are in the array. */
static bool sort_range(mergesort *s, size_t at, size_t n, bool buffer)
{
    half left = {.s = s, .at = at, .n = n / 2, .buffer = !buffer};
    half right = {.s = s, .at = at + n / 2, .n = n - n / 2, .buffer = !buffer};

    if (!fji_job_should_continue(&s->job)) return false;
    if (n <= s->leaf) {
        sort_leaf(s, at, n, buffer);
        return buffer;
    }
    sort_halves(s, &left, &right);
    if (fji_job_should_continue(&s->job)) {
        fji_sort_merge m = {.kind = s->kind, .job = &s->job, .na = left.n, .nb = right.n};
        m.a = at_place(s, !buffer, left.at);
        m.b = at_place(s, !buffer, right.at);
        m.out = at_place(s, buffer, at);
        if (in_order(s->kind, m.b - s->kind->size, m.b))
            memcpy(m.out, m.a, n * s->kind->size);
        else
            fji_sort_merge_range(m);
        if (fji_job_should_continue(&s->job)) return buffer;
    }
    copy_back(s, &left);
    copy_back(s, &right);
    return false;
}

/* ---- In place -------------------------------------------------------------------------------- */

/* Makes two neighbouring stretches change places. */
static void rotate(char *a, size_t left, size_t right)
{
    while (left != 0 && right != 0) {
        if (left <= right) {
            fji_sort_exchange(a, a + left, left);
            a += left;
            right -= left;
        } else {
            fji_sort_exchange(a + left - right, a + left, right);
            left -= right;
        }
    }
}

static void merge_in_place(mergesort *s, char *a, size_t na, size_t nb)
{
    size_t size = s->kind->size;

    while (na != 0 && nb != 0 && na + nb > s->kind->at_once) {
        fji_sort_merge left = {.kind = s->kind, .a = a, .b = a + na * size, .na = na, .nb = nb};
        if (in_order(s->kind, left.b - size, left.b) || !fji_job_should_continue(&s->job)) return;
        fji_sort_merge right = fji_sort_merge_split(&left);
        rotate(a + left.na * size, (na - left.na) * size, left.nb * size);
        merge_in_place(s, a, left.na, left.nb);
        a += (left.na + left.nb) * size;
        na = right.na;
        nb = right.nb;
    }
    if (na != 0 && nb != 0) s->kind->small(a, na + nb);
}

static void sort_in_place(mergesort *s, char *a, size_t n)
{
    if (n > s->kind->at_once && fji_job_should_continue(&s->job)) {
        sort_in_place(s, a, n / 2);
        sort_in_place(s, a + n / 2 * s->kind->size, n - n / 2);
        merge_in_place(s, a, n / 2, n - n / 2);
    } else if (n > 1) {
        s->kind->small(a, n <= s->kind->at_once ? n : 2);
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

typedef struct call {
    fj_task task;
    mergesort *s;
    size_t n;
} call;

static int call_run(fj_task *t)
{
    call *w = (call *)t;
    mergesort *s = w->s;

    if (!fji_sort_presorted(&s->job, s->kind, s->a, w->n)) {
        if (s->buffer != NULL)
            (void)sort_range(s, 0, w->n, false);
        else
            sort_in_place(s, s->a, w->n);
    }
    if (fji_job_should_continue(&s->job)) fji_job_add_progress(&s->job, w->n - s->reported);
    return FJ_OK;
}

int fji_merge_sort(const fji_sort_kind *kind, void *a, size_t n, const fj_algo_options *how)
{
    mergesort s = {.kind = kind, .a = a};
    call w = {.s = &s, .n = n};

    if (a == NULL && n != 0) return FJ_EINVAL;
    if (!fji_fits(n, kind->size)) return FJ_EINVAL;
    int err = fji_job_init(&s.job, how, n);
    if (err != FJ_OK || n == 0) return err;
    s.leaf = s.job.grain != 0 ? s.job.grain : LEAF;
    if (s.leaf < kind->at_once) s.leaf = kind->at_once;
    char *scratch = n > kind->at_once ? fji_algo_alloc(n * kind->size + kind->align - 1) : NULL;
    if (scratch != NULL) s.buffer = scratch + (-(uintptr_t)scratch & (kind->align - 1));
    fj_task_init(&w.task, call_run);
    err = fji_job_run(&s.job, how, &w.task);
    fji_algo_free(scratch);
    return err;
}
