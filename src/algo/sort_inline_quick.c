/* SPDX-License-Identifier: MIT */
/*
 * sort_inline_quick.c - FJ_SORT: quicksort in place
 *
 * A range is cut at a pivot, which then stands where it belongs: no one touches it again, so
 * whoever sorts the range right of it may compare with it. If it is not before the pivot of
 * that range, both are equal, and all that go left there are equal too, and done. So an array
 * of few different elements takes few cuts.
 *
 * The larger side of a cut is forked if somebody is there to take it, and the smaller one done
 * at once; so the stack has a frame for each halving.
 *
 * The first cuts are where nobody else has anything to do. With more than two workers a large
 * range is cut by all of them: each chunk of it by itself, and then the elements that stand on
 * the wrong side of the whole are exchanged, stretch by stretch:
 *
 *     chunks cut     |<<<<<>>>>|<<<>>>>>>|<<<<<<<>>|<<<<>>>>>|
 *     wrong           left: .....>>>>...>>>>> <<<...:<<<<     of the border
 *
 * A cut that leaves nearly all on one side is a bad one, unless that side is the left one and
 * done. A few exchanges follow it, which break up what may have caused it. After as many bad cuts
 * as good ones would be deep, the range is sorted as a heap: never more than n log n comparisons,
 * whatever LESS says.
 */
#include "sort_inline.h"
#include "split.h"

enum {
    LEAF = 2048,             /* a range of so many is sorted by one worker, without a look around */
    BAD_SHARE = 8,           /* a side below this part of the range makes a cut a bad one */
    PARALLEL_MIN = 1 << 18,  /* elements that are worth a cut by all workers */
    PARALLEL_WORKERS = 3,    /* and the workers */
    CHUNK_MIN = 1 << 14,     /* elements of a chunk, at least */
    CHUNKS_MAX = 256,        /* chunks, at most */
    CHECK_EVERY = 1 << 12,   /* elements of a heap between two looks at the job */
    EXCHANGE_BYTES = 1 << 13 /* bytes exchanged at a time */
};

typedef struct quicksort {
    fji_job job;
    const fji_sort_kind *kind;
    size_t leaf;
    bool parallel_partition; /* enough workers for cuts by all of them */
} quicksort;

typedef struct range {
    char *a;
    size_t n;
    int has_previous; /* whether there is an element before it */
    int bad_left;     /* how many bad cuts are left to it */
} range;

/* ---- Heaps ----------------------------------------------------------------------------------- */

static void heap_sort(quicksort *q, char *a, size_t n)
{
    const fji_sort_kind *kind = q->kind;

    for (size_t i = n / 2; i-- > 0;) {
        if (i % CHECK_EVERY == 0 && !fji_job_should_continue(&q->job)) return;
        kind->sift(a, i, n);
    }
    for (size_t i = n; i-- > 1;) {
        if (i % CHECK_EVERY == 0 && !fji_job_should_continue(&q->job)) return;
        fji_sort_swap(a, a + i * kind->size, kind->size);
        kind->sift(a, 0, i);
    }
}

/* ---- Cuts ------------------------------------------------------------------------------------ */

/* What a cut has made of a range; `n` of left is 0 if those are all equal to the pivot. */
typedef struct sides {
    range left, right;
    size_t done; /* elements that are where they belong */
} sides;

/* Puts a few elements elsewhere, the same in every run. */
static void shuffle_few(char *a, size_t n, size_t size)
{
    uint64_t x = n * 2 + 1;

    if (n < BAD_SHARE) return;
    for (size_t i = 0; i < 3; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        fji_sort_swap(a + (n / 4 * (i + 1) - 1) * size, a + x % n * size, size);
    }
}

/* Whether a cut of n elements with `left` of them left of the pivot has gained little. Equal: the
 * left ones are done, so only what is right of the pivot remains. */
static bool is_bad(size_t n, size_t left, int equal)
{
    return left < n / BAD_SHARE || (!equal && n - 1 - left < n / BAD_SHARE);
}

static sides sides_of(const fji_sort_kind *kind, range r, size_t pivot, int equal)
{
    sides s = {.done = 1};

    s.left = (range){r.a, pivot, r.has_previous, r.bad_left};
    s.right = (range){r.a + (pivot + 1) * kind->size, r.n - 1 - pivot, 1, r.bad_left};
    if (equal) {
        s.done += pivot;
        s.left.n = 0;
    }
    if (is_bad(r.n, pivot, equal)) {
        s.left.bad_left = --s.right.bad_left;
        shuffle_few(s.left.a, s.left.n, kind->size);
        shuffle_few(s.right.a, s.right.n, kind->size);
    }
    return s;
}

static sides cut(const fji_sort_kind *kind, range r)
{
    int equal = r.has_previous;
    size_t pivot = kind->cut(r.a, r.n, &equal);

    return sides_of(kind, r, pivot, equal);
}

/* ---- Cuts by all workers --------------------------------------------------------------------- */

typedef struct chunk {
    size_t left;                            /* elements that go left */
    size_t misplaced_right, misplaced_left; /* before this chunk: elements on the wrong side */
} chunk;

typedef struct parallel_partition {
    const fji_sort_kind *kind;
    char *a; /* what follows the pivot, n elements */
    size_t n;
    size_t chunks;
    size_t border; /* how many go left in all */
    int equal;
    chunk chunk[CHUNKS_MAX + 1];
} parallel_partition;

static size_t chunk_at(const parallel_partition *w, size_t i)
{
    return w->n / w->chunks * i + (i < w->n % w->chunks ? i : w->n % w->chunks);
}

static int partition_chunks(void *context, size_t lo, size_t hi, void *acc)
{
    parallel_partition *w = context;

    (void)acc;
    for (size_t i = lo; i < hi; i++) {
        size_t at = chunk_at(w, i);
        w->chunk[i].left = w->kind->part(w->a + at * w->kind->size, chunk_at(w, i + 1) - at,
                                         w->a - w->kind->size, w->equal);
    }
    return FJ_OK;
}

/* Where in chunk i those begin and end that go right but stand left of the border, or the other
 * way round. */
static size_t misplaced_in(const parallel_partition *w, size_t i, bool going_right, size_t *begin)
{
    size_t at = chunk_at(w, i), mid = at + w->chunk[i].left, end = chunk_at(w, i + 1);

    if (going_right) {
        *begin = mid;
        end = end < w->border ? end : w->border;
    } else {
        *begin = at > w->border ? at : w->border;
        end = mid;
    }
    return end > *begin ? end - *begin : 0;
}

/* Finds the border and counts what is on the wrong side of it; returns how many pairs. */
static size_t count_misplaced(parallel_partition *w)
{
    size_t right = 0, left = 0, unused;

    w->border = 0;
    for (size_t i = 0; i < w->chunks; i++) w->border += w->chunk[i].left;
    for (size_t i = 0; i < w->chunks; i++) {
        w->chunk[i].misplaced_right = right;
        w->chunk[i].misplaced_left = left;
        right += misplaced_in(w, i, true, &unused);
        left += misplaced_in(w, i, false, &unused);
    }
    w->chunk[w->chunks].misplaced_right = right;
    w->chunk[w->chunks].misplaced_left = left;
    return right;
}

/* The place of the k-th wrong element; *n becomes how many lie there one after the other. */
static size_t misplaced_at(const parallel_partition *w, size_t k, bool going_right, size_t *n)
{
    size_t lo = 0, hi = w->chunks, begin, count;

    while (hi - lo > 1) { /* the last chunk before which there are at most k */
        size_t mid = lo + (hi - lo) / 2;
        size_t before = going_right ? w->chunk[mid].misplaced_right : w->chunk[mid].misplaced_left;
        if (before <= k)
            lo = mid;
        else
            hi = mid;
    }
    k -= going_right ? w->chunk[lo].misplaced_right : w->chunk[lo].misplaced_left;
    count = misplaced_in(w, lo, going_right, &begin);
    *n = count - k;
    return begin + k;
}

/* Exchanges the pairs lo <= k < hi. */
static int exchange_misplaced(void *context, size_t lo, size_t hi, void *acc)
{
    parallel_partition *w = context;
    size_t size = w->kind->size;

    (void)acc;
    while (lo < hi) {
        size_t n = hi - lo, nx, ny;
        size_t x = misplaced_at(w, lo, true, &nx), y = misplaced_at(w, lo, false, &ny);
        if (n > nx) n = nx;
        if (n > ny) n = ny;
        fji_sort_exchange(w->a + x * size, w->a + y * size, n * size);
        lo += n;
    }
    return FJ_OK;
}

/* Runs a step of the job over 0 to n, `grain` at a time. */
static int partition_run(const quicksort *q, parallel_partition *w, fji_step *step, size_t n,
                         size_t grain)
{
    fji_split s = {.step = step, .context = w};
    const fj_algo_options how = {.grain = grain};
    int err = fji_job_init(&s.job, &how, 0);

    s.job.caller = q->job.caller;
    return err != FJ_OK ? err : fji_split_run(&s, NULL, 0, n, NULL);
}

/* False: it was cancelled. */
static bool partition_parallel(quicksort *q, range r, sides *s)
{
    size_t size = q->kind->size, grain = EXCHANGE_BYTES / size + 1;
    parallel_partition w = {
        .kind = q->kind, .a = r.a + size, .n = r.n - 1, .equal = r.has_previous};

    q->kind->pivot(r.a, r.n, &w.equal);
    w.chunks = w.n / CHUNK_MIN < CHUNKS_MAX ? w.n / CHUNK_MIN : CHUNKS_MAX;
    int err = partition_run(q, &w, partition_chunks, w.chunks, 1);
    if (err == FJ_OK) err = partition_run(q, &w, exchange_misplaced, count_misplaced(&w), grain);
    if (err != FJ_OK) {
        fji_job_fail(&q->job, err);
        return false;
    }
    fji_sort_swap(r.a, r.a + w.border * size, size);
    *s = sides_of(q->kind, r, w.border, w.equal);
    return true;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* From left to right, whatever side is the smaller: guessing it wrong costs more than the stack,
 * whose depth the bad cuts keep small. */
static void sort_sequential(quicksort *q, char *a, size_t n, int has_previous, int bad_left)
{
    const fji_sort_kind *kind = q->kind;

    while (n > kind->at_once) {
        int equal = has_previous;
        if (bad_left <= 0) {
            heap_sort(q, a, n);
            return;
        }
        size_t left = kind->cut(a, n, &equal), right = n - 1 - left;
        if (is_bad(n, left, equal)) {
            bad_left--;
            if (!equal) shuffle_few(a, left, kind->size);
            shuffle_few(a + (left + 1) * kind->size, right, kind->size);
        }
        if (!equal) sort_sequential(q, a, left, has_previous, bad_left);
        a += (left + 1) * kind->size;
        n = right;
        has_previous = 1;
    }
    if (n > 1) kind->small(a, n);
}

typedef struct side {
    fj_task task;
    quicksort *q;
    range r;
} side;

static void sort_range(quicksort *q, range r);

static int side_run(fj_task *t)
{
    side *s = (side *)t;

    sort_range(s->q, s->r);
    return FJ_OK;
}

/* Sorts one side; returns whether the other one, offered meanwhile, is done as well. */
static bool sort_fork_side(quicksort *q, range mine, range other)
{
    side s = {.q = q, .r = other};

    fj_task_init(&s.task, side_run);
    fj_fork(&s.task);
    sort_range(q, mine);
    if (fj_unfork(&s.task)) return false;
    int code = fj_join_stolen(&s.task);
    if (code != FJ_OK) fji_job_fail(&q->job, code);
    return true;
}

static bool partition_range(quicksort *q, range r, sides *s)
{
    if (q->parallel_partition && r.n >= PARALLEL_MIN && fji_has_demand())
        return partition_parallel(q, r, s);
    *s = cut(q->kind, r);
    return true;
}

static void sort_range(quicksort *q, range r)
{
    sides s;

    while (r.n > q->leaf && r.bad_left > 0) {
        if (!fji_job_should_continue(&q->job) || !partition_range(q, r, &s)) return;
        fji_job_add_progress(&q->job, s.done);
        bool left_first = s.left.n < s.right.n;
        range first = left_first ? s.left : s.right;
        r = left_first ? s.right : s.left;
        if (first.n > q->leaf / 2 && fji_has_demand()) {
            if (sort_fork_side(q, first, r)) return;
        } else {
            sort_range(q, first);
        }
    }
    if (r.n == 0 || !fji_job_should_continue(&q->job)) return;
    sort_sequential(q, r.a, r.n, r.has_previous, r.bad_left);
    if (q->job.progress != NULL && fji_job_should_continue(&q->job))
        fji_job_add_progress(&q->job, r.n);
}

/* ---- The whole ------------------------------------------------------------------------------- */

typedef struct call {
    fj_task task;
    quicksort *q;
    char *a;
    size_t n;
} call;

static int call_run(fj_task *t)
{
    call *w = (call *)t;
    quicksort *q = w->q;
    range all = {w->a, w->n, 0, 64 - __builtin_clzll(w->n)};

    if (fji_sort_presorted(&q->job, q->kind, w->a, w->n)) {
        fji_job_add_progress(&q->job, w->n);
        return FJ_OK;
    }
    q->parallel_partition = fj_pool_parallelism(fj_current_pool()) >= PARALLEL_WORKERS;
    sort_range(q, all);
    return FJ_OK;
}

int fji_quick_sort(const fji_sort_kind *kind, void *a, size_t n, const fj_algo_options *how)
{
    quicksort q = {.kind = kind};
    call w = {.q = &q, .a = a, .n = n};

    if (a == NULL && n != 0) return FJ_EINVAL;
    if (!fji_fits(n, kind->size)) return FJ_EINVAL;
    int err = fji_job_init(&q.job, how, n);
    if (err != FJ_OK || n == 0) return err;
    q.leaf = q.job.grain != 0 ? q.job.grain : LEAF;
    if (q.leaf < kind->at_once) q.leaf = kind->at_once;
    fj_task_init(&w.task, call_run);
    return fji_job_run(&q.job, how, &w.task);
}
