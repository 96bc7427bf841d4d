/* SPDX-License-Identifier: MIT */
/*
 * sort_inline_stable.c - FJ_STABLE_SORT: merge sort with a buffer, or in place without one
 *
 * The problem: a quicksort is not stable.
 *
 * The idea: a merge sort. A range is sorted by halves. The buffer is as large as the array. The
 * sorted halves are merged from the array into the buffer or from the buffer into the array, so
 * that each level of halving moves every element once. Workers share the merge of a large range
 * (sort_inline_merge.c).
 *
 * Cancellation: a merge does not change what it reads. If it is not completed, the elements of each
 * half are therefore still all in the array or all in the buffer. A half that is in the buffer is
 * copied back into the array.
 *
 * Without memory for a buffer, one thread sorts the array in place. It sorts both halves of a
 * range, and then merges them: both halves are cut in two, so that the left parts of both belong
 * before the right parts of both. The right part of the left half and the left part of the right
 * half, which are neighbours, change places by a rotation. Then the two left parts are merged in
 * the same way, and so are the two right parts.
 */
#include <string.h>

#include "scratch.h"
#include "sort_inline.h"
#include "split.h"
#include "swap.h"

typedef struct mergesort {
    fji_job job;
    const fji_sort_kind *kind;
    char *a, *buffer;  /* the array, and a buffer of the same size; `buffer` is NULL if the array
                        * has at most kind->at_once elements, or if there is no memory for it */
    size_t leaf;       /* a range of at most this many elements is not divided for other workers */
    uint64_t reported; /* how many elements sort_leaf() has added to the progress of the job; 0 if
                        * the options have no fj_progress */
} mergesort;

/* Returns the address of the element with index `at`: in the buffer if `buffer` is set, else in the
 * array. */
static char *element(const mergesort *s, bool buffer, size_t at)
{
    return (buffer ? s->buffer : s->a) + at * s->kind->size;
}

/* ---- Leaves ---------------------------------------------------------------------------------- */

/* Returns whether two neighbouring sorted ranges are in order together. `last` is the last element
 * of the first range, and `next` the first element of the second one. */
static bool in_order(const fji_sort_kind *kind, const char *last, const char *next)
{
    return kind->before(next, 1, last, 0) == 0;
}

/* Sorts the n elements from index `at` on, which are in the array, on this thread. Leaves them in
 * the buffer if `buffer` is set, else in the array. */
static void sort_sequential(mergesort *s, size_t at, size_t n, bool buffer)
{
    size_t size = s->kind->size, half = n / 2;

    if (n <= s->kind->at_once) {
        if (n > 1) s->kind->small(element(s, false, at), n);
        if (buffer) memcpy(element(s, true, at), element(s, false, at), n * size);
        return;
    }
    sort_sequential(s, at, half, !buffer);
    sort_sequential(s, at + half, n - half, !buffer);
    const char *left = element(s, !buffer, at), *right = left + half * size;
    if (in_order(s->kind, right - size, right))
        memcpy(element(s, buffer, at), left, n * size);
    else
        s->kind->merge(left, half, right, n - half, element(s, buffer, at));
}

/* Sorts a range on this thread as sort_sequential() does, but first tests whether it is in order or
 * strictly descending: it then only reverses a descending range, and copies the range to the buffer
 * if `buffer` is set. Adds half of its elements to the progress. */
static void sort_leaf(mergesort *s, size_t at, size_t n, bool buffer)
{
    char *a = element(s, false, at);
    int descending = 0;

    if (n < 2 || s->kind->run(a, n, &descending) == n) {
        if (descending) fji_reverse(a, n, s->kind->size);
        if (buffer) memcpy(element(s, true, at), a, n * s->kind->size);
    } else {
        sort_sequential(s, at, n, buffer);
    }
    if (s->job.progress != NULL) {
        (void)fji_add_relaxed(&s->reported, n / 2); /* relaxed: read after all tasks are joined */
        fji_job_add_progress(&s->job, n / 2);
    }
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

typedef struct half {
    fj_task task;
    mergesort *s;
    size_t at, n;
    bool buffer;    /* where the result should be: true: in the buffer, false: in the array */
    bool in_buffer; /* where the elements are: true: in the buffer, false: in the array. false until
                     * half_run() has run */
} half;

static bool sort_range(mergesort *s, size_t at, size_t n, bool buffer);

static int half_run(fj_task *t)
{
    half *h = (half *)t;

    h->in_buffer = sort_range(h->s, h->at, h->n, h->buffer);
    return FJ_OK;
}

/* Sorts both halves, and sets in_buffer of each. Forks the right half if there is demand. */
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
    if (!fji_job_join(&s->job, &right->task)) (void)half_run(&right->task);
}

/* Copies the elements of a half into the array, if they are in the buffer. */
static void copy_back(mergesort *s, const half *h)
{
    if (h->in_buffer)
        memcpy(element(s, false, h->at), element(s, true, h->at), h->n * s->kind->size);
}

/* Sorts the n elements from index `at` on, into the buffer if `buffer` is set, else into the array.
 * Returns true if they are in the buffer. If the call is cancelled before they are sorted, they are
 * in the array, in some order, and the function returns false. */
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
        m.a = element(s, !buffer, left.at);
        m.b = element(s, !buffer, right.at);
        m.out = element(s, buffer, at);
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

/* ---- Without memory -------------------------------------------------------------------------- */

/* Merges two neighbouring runs, of na elements at a and nb elements behind them, by rotations. If
 * the job ends, returns early, with the elements in some order. */
static void merge_in_place(mergesort *s, char *a, size_t na, size_t nb)
{
    size_t size = s->kind->size;

    while (na != 0 && nb != 0 && na + nb > s->kind->at_once) {
        fji_sort_merge left = {.kind = s->kind, .a = a, .b = a + na * size, .na = na, .nb = nb};
        if (in_order(s->kind, left.b - size, left.b) || !fji_job_should_continue(&s->job)) return;
        fji_sort_merge right = fji_sort_merge_split(&left);
        fji_rotate(a + left.na * size, (na - left.na) * size, left.nb * size);
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

/* ---- The call -------------------------------------------------------------------------------- */

typedef struct call {
    fj_task task;
    mergesort *s;
    size_t n;
} call;

static int call_run(fj_task *t)
{
    call *c = (call *)t;
    mergesort *s = c->s;

    if (!fji_sort_presorted(&s->job, s->kind, s->a, c->n)) {
        if (s->buffer != NULL)
            (void)sort_range(s, 0, c->n, false);
        else
            sort_in_place(s, s->a, c->n);
    }
    if (fji_job_should_continue(&s->job)) fji_job_add_progress(&s->job, c->n - s->reported);
    return FJ_OK;
}

int fji_merge_sort(const fji_sort_kind *kind, void *a, size_t n, const fj_algo_options *how)
{
    mergesort s = {.kind = kind, .a = a};
    call c = {.s = &s, .n = n};

    int err = fji_sort_init(&s.job, kind, a, n, how);
    if (err != FJ_OK || n == 0) return err;
    s.leaf = fji_sort_leaf(&s.job, kind);
    char *scratch = n > kind->at_once ? fji_algo_alloc_for(how, n * kind->size + kind->align - 1)
                                      : NULL;
    if (scratch != NULL) s.buffer = scratch + (-(uintptr_t)scratch & (kind->align - 1));
    fj_task_init(&c.task, call_run);
    err = fji_job_run(&s.job, how, &c.task);
    fji_algo_free(scratch);
    return err;
}
