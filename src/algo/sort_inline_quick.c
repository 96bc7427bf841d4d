/* SPDX-License-Identifier: MIT */
/*
 * sort_inline_quick.c - FJ_SORT: quicksort in place
 *
 * The problem: an inlined comparison is cheap, so mispredicted branches and the first, sequential
 * partitions dominate the time.
 *
 * The idea: partitions without branches on comparisons (forkjoin/sort.h), the larger ones shared by
 * all workers.
 *
 * A range is partitioned around a pivot, one of its elements, which is then in its final place.
 * Elements before it go to the left side, and the others to the right side. The pivot is not
 * moved again, so a worker that sorts the right side can compare elements with it: it is the
 * previous element of the right side, and not after any element there. If the previous element of a
 * range is not before the new pivot of the range, the two are equal. The partition then puts all
 * elements that are equal to the pivot on the left side, where they are in their final place. An
 * array with few different elements therefore takes few partitions.
 *
 * If there is demand, and the smaller side of a partition is large enough, the larger side is
 * forked. The worker sorts the smaller side first, by a recursive call, and then the larger one in
 * its loop, unless a thief has taken it. A recursive call therefore has at most half the elements,
 * so there are at most about log2(n) of them on the stack. A range of at most `leaf` elements is
 * sorted by one worker, by sort_sequential().
 *
 * Parallel partitions. During the first partitions the other workers have nothing to do. In a pool
 * whose parallelism is at least PARALLEL_WORKERS, they share the partition of a range of at least
 * PARALLEL_MIN elements, if there is demand. The range is divided into chunks, and each chunk is
 * partitioned separately. The border is the index at which the right side of the whole range
 * begins. An element that goes right but is left of the border, or goes left but is right of it, is
 * misplaced. There are as many of the one as of the other, and they are exchanged in pairs.
 *
 *     chunks       |<<<<<>>>>|<<<>>>>>>|<<<<<<<>>|<<<<>>>>>|     < goes left, > goes right
 *     misplaced    |.....>>>>|...>>>>>>|.<<<<<<..|<<<<.....|
 *     the border                         ^ 19 elements go left
 *
 * Bad partitions. A partition is bad if one side has less than an eighth of the elements, unless
 * that is the right side and the left side is already in its final place. After a bad partition
 * three exchanges in each side of at least BAD_SHARE elements break up a pattern that may have
 * caused it. A range is sorted as a heap if about log2(n) bad partitions have led to it, where n is
 * the length of the array. The sort therefore takes O(n log n) comparisons, whatever LESS returns.
 */
#include "sort_inline.h"
#include "split.h"
#include "swap.h"

enum {
    BAD_SHARE = 8,           /* a partition is bad if a side has less than 1/8 of the elements */
    PARALLEL_MIN = 1 << 18,  /* a range of fewer elements is partitioned by one worker */
    PARALLEL_WORKERS = 3,    /* in a pool of less parallelism, one worker makes each partition */
    CHUNK_MIN = 1 << 14,     /* least number of elements of a chunk of a parallel partition */
    CHUNKS_MAX = 256,        /* largest number of chunks of a parallel partition */
    CHECK_EVERY = 1 << 12,   /* calls of sift() between two tests whether the job has ended */
    EXCHANGE_BYTES = 1 << 13 /* a chunk of the exchanges has EXCHANGE_BYTES / size + 1 pairs of
                              * elements, each of `size` bytes */
};

typedef struct quicksort {
    fji_job job;
    const fji_sort_kind *kind;
    size_t leaf;   /* a range of at most this many elements is sorted by one worker */
    bool parallel; /* the pool's parallelism is at least PARALLEL_WORKERS */
} quicksort;

typedef struct range {
    char *a;
    size_t n;
    int has_previous; /* 1: there is an element directly before the range, which is in its final
                       * place and not after any element of the range */
    int bad_allowed;  /* after this many more bad partitions the range is sorted as a heap */
} range;

/* ---- Heap sort ------------------------------------------------------------------------------- */

static void heap_sort(quicksort *q, char *a, size_t n)
{
    const fji_sort_kind *kind = q->kind;

    for (size_t i = n / 2; i-- > 0;) {
        if (i % CHECK_EVERY == 0 && !fji_job_should_continue(&q->job)) return;
        kind->sift(a, i, n);
    }
    for (size_t i = n; i-- > 1;) {
        if (i % CHECK_EVERY == 0 && !fji_job_should_continue(&q->job)) return;
        fji_swap_bytes(a, a + i * kind->size, kind->size);
        kind->sift(a, 0, i);
    }
}

/* ---- Partitions ------------------------------------------------------------------------------ */

/* The two ranges that are left to sort after a partition. `left` is empty (n is 0) if the partition
 * has put elements equal to the pivot on the left side, because these are in their final place. */
typedef struct sides {
    range left, right;
    size_t done; /* how many elements the partition has put into their final place in the array: the
                  * pivot and, if `left` is empty for that reason, the left side */
} sides;

/* Exchanges three of n elements with pseudo-random elements of the same range. The choice depends
 * only on n, so it is the same whenever the program sorts the same array. Does nothing if
 * n < BAD_SHARE. */
static void shuffle_few(char *a, size_t n, size_t size)
{
    uint64_t x = n * 2 + 1;

    if (n < BAD_SHARE) return;
    for (size_t i = 0; i < 3; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        fji_swap_bytes(a + (n / 4 * (i + 1) - 1) * size, a + x % n * size, size);
    }
}

/* Returns whether a partition of n elements with `left` elements on the left of the pivot is bad.
 * If `equal` is set, the left side is in its final place, so a small right side is not bad. */
static bool is_bad(size_t n, size_t left, int equal)
{
    return left < n / BAD_SHARE || (!equal && n - 1 - left < n / BAD_SHARE);
}

static sides sides_of(const fji_sort_kind *kind, range r, size_t pivot, int equal)
{
    sides s = {.done = 1};

    s.left = (range){r.a, pivot, r.has_previous, r.bad_allowed};
    s.right = (range){r.a + (pivot + 1) * kind->size, r.n - 1 - pivot, 1, r.bad_allowed};
    if (equal) {
        s.done += pivot;
        s.left.n = 0;
    }
    if (is_bad(r.n, pivot, equal)) {
        s.left.bad_allowed = --s.right.bad_allowed;
        shuffle_few(s.left.a, s.left.n, kind->size);
        shuffle_few(s.right.a, s.right.n, kind->size);
    }
    return s;
}

static sides partition(const fji_sort_kind *kind, range r)
{
    int equal = r.has_previous;
    size_t pivot = kind->cut(r.a, r.n, &equal);

    return sides_of(kind, r, pivot, equal);
}

/* ---- Parallel partitions --------------------------------------------------------------------- */

typedef struct chunk {
    size_t left; /* how many elements of the chunk belong on the left side; they are at its front */
    size_t misplaced_right, misplaced_left; /* in all chunks before this one: how many elements
                                             * are misplaced and go right, or left */
} chunk;

typedef struct parallel_partition {
    const fji_sort_kind *kind;
    char *a; /* the n elements after the pivot; the pivot is the first element of the range */
    size_t n;
    size_t chunks;
    size_t border; /* how many of the n elements go left: the index of the first that goes right */
    int equal;     /* 1: elements equal to the pivot go to the left side; 0: to the right side */
    chunk chunk[CHUNKS_MAX + 1];
} parallel_partition;

/* Returns the index of the first element of chunk i. */
static size_t chunk_at(const parallel_partition *p, size_t i)
{
    return p->n / p->chunks * i + (i < p->n % p->chunks ? i : p->n % p->chunks);
}

/* Partitions each chunk i with lo <= i < hi around the pivot, and sets its member `left`. */
static int partition_chunks(void *context, size_t lo, size_t hi, void *acc)
{
    parallel_partition *p = context;

    (void)acc;
    for (size_t i = lo; i < hi; i++) {
        size_t at = chunk_at(p, i);
        p->chunk[i].left = p->kind->part(p->a + at * p->kind->size, chunk_at(p, i + 1) - at,
                                         p->a - p->kind->size, p->equal);
    }
    return FJ_OK;
}

/* If going_right, returns how many elements of chunk i go right but are left of the border;
 * otherwise how many go left but are right of it. If there are any, *begin is the index of the
 * first of them, and the others follow it. */
static size_t misplaced_in(const parallel_partition *p, size_t i, bool going_right, size_t *begin)
{
    size_t at = chunk_at(p, i), mid = at + p->chunk[i].left, end = chunk_at(p, i + 1);

    if (going_right) {
        *begin = mid;
        end = end < p->border ? end : p->border;
    } else {
        *begin = at > p->border ? at : p->border;
        end = mid;
    }
    return end > *begin ? end - *begin : 0;
}

/* Sets the border. Sets misplaced_right and misplaced_left of each chunk: the numbers of misplaced
 * elements in all chunks before this chunk. Returns the number of pairs to be exchanged, which is
 * the number of all misplaced elements that go right, and also of those that go left. */
static size_t count_misplaced(parallel_partition *p)
{
    size_t right = 0, left = 0, unused;

    p->border = 0;
    for (size_t i = 0; i < p->chunks; i++) p->border += p->chunk[i].left;
    for (size_t i = 0; i < p->chunks; i++) {
        p->chunk[i].misplaced_right = right;
        p->chunk[i].misplaced_left = left;
        right += misplaced_in(p, i, true, &unused);
        left += misplaced_in(p, i, false, &unused);
    }
    p->chunk[p->chunks].misplaced_right = right;
    p->chunk[p->chunks].misplaced_left = left;
    return right;
}

/* Returns the index of the k-th misplaced element, counted from 0 among those that go right (if
 * going_right) or left. Sets *n to how many such elements follow each other from this index on,
 * including the first one. */
static size_t misplaced_at(const parallel_partition *p, size_t k, bool going_right, size_t *n)
{
    size_t lo = 0, hi = p->chunks, begin, count;

    while (hi - lo > 1) { /* finds the chunk of the k-th element: the last one with at most k
                           * misplaced elements in the chunks before it */
        size_t mid = lo + (hi - lo) / 2;
        size_t before = going_right ? p->chunk[mid].misplaced_right : p->chunk[mid].misplaced_left;
        if (before <= k)
            lo = mid;
        else
            hi = mid;
    }
    k -= going_right ? p->chunk[lo].misplaced_right : p->chunk[lo].misplaced_left;
    count = misplaced_in(p, lo, going_right, &begin);
    *n = count - k;
    return begin + k;
}

/* Exchanges the pairs lo <= k < hi: the k-th misplaced element that goes right and the k-th that
 * goes left. */
static int exchange_misplaced(void *context, size_t lo, size_t hi, void *acc)
{
    parallel_partition *p = context;
    size_t size = p->kind->size;

    (void)acc;
    while (lo < hi) {
        size_t n = hi - lo, nx, ny;
        size_t x = misplaced_at(p, lo, true, &nx), y = misplaced_at(p, lo, false, &ny);
        if (n > nx) n = nx;
        if (n > ny) n = ny;
        fji_swap_bytes(p->a + x * size, p->a + y * size, n * size);
        lo += n;
    }
    return FJ_OK;
}

/* Partitions the range in parallel, sets *s and returns true. If the call is cancelled, ends the
 * job and returns false; the elements are then in some order. */
static bool partition_parallel(quicksort *q, range r, sides *s)
{
    size_t size = q->kind->size, grain = EXCHANGE_BYTES / size + 1;
    parallel_partition p = {
        .kind = q->kind, .a = r.a + size, .n = r.n - 1, .equal = r.has_previous};

    q->kind->pivot(r.a, r.n, &p.equal);
    p.chunks = fji_min(p.n / CHUNK_MIN, CHUNKS_MAX);
    int err = fji_split_run_nested(&q->job, partition_chunks, &p, p.chunks, 1);
    if (err == FJ_OK)
        err = fji_split_run_nested(&q->job, exchange_misplaced, &p, count_misplaced(&p), grain);
    if (err != FJ_OK) {
        fji_job_fail(&q->job, err);
        return false;
    }
    fji_swap_bytes(r.a, r.a + p.border * size, size);
    *s = sides_of(q->kind, r, p.border, p.equal);
    return true;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* Sorts the n elements at a on this thread. has_previous and bad_allowed are those of struct range.
 * After each partition, the left side is sorted by a recursive call and the right side in the loop.
 * To choose the smaller side for the call would cost mispredicted branches. The limit for bad
 * partitions keeps the recursion shallow anyway: when it is reached, the rest of the range is
 * sorted as a heap. */
static void sort_sequential(quicksort *q, char *a, size_t n, int has_previous, int bad_allowed)
{
    const fji_sort_kind *kind = q->kind;

    while (n > kind->at_once) {
        int equal = has_previous;
        if (bad_allowed <= 0) {
            heap_sort(q, a, n);
            return;
        }
        size_t left = kind->cut(a, n, &equal), right = n - 1 - left;
        if (is_bad(n, left, equal)) {
            bad_allowed--;
            if (!equal) shuffle_few(a, left, kind->size);
            shuffle_few(a + (left + 1) * kind->size, right, kind->size);
        }
        if (!equal) sort_sequential(q, a, left, has_previous, bad_allowed);
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

/* Forks a task that sorts `other`, sorts `mine`, and joins the task. Returns false if the join has
 * taken the task back out of the queue: the caller has to sort `other`. Otherwise returns true: the
 * task has sorted `other`, or the job has ended. */
static bool sort_fork_side(quicksort *q, range mine, range other)
{
    side s = {.q = q, .r = other};

    fj_task_init(&s.task, side_run);
    fj_fork(&s.task);
    sort_range(q, mine);
    return fji_job_join(&q->job, &s.task);
}

/* Partitions the range, in parallel if the pool and the range are large enough and there is demand.
 * Sets *s and returns true. If the call is cancelled during a parallel partition, returns false. */
static bool partition_range(quicksort *q, range r, sides *s)
{
    if (q->parallel && r.n >= PARALLEL_MIN && fji_has_demand()) return partition_parallel(q, r, s);
    *s = partition(q->kind, r);
    return true;
}

/* Sorts a range. After each partition, forks the larger side if there is demand and the smaller
 * side has more than q->leaf / 2 elements. If the job ends, the elements are in some order. */
static void sort_range(quicksort *q, range r)
{
    sides s;

    while (r.n > q->leaf && r.bad_allowed > 0) {
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
    sort_sequential(q, r.a, r.n, r.has_previous, r.bad_allowed);
    if (q->job.progress != NULL && fji_job_should_continue(&q->job))
        fji_job_add_progress(&q->job, r.n);
}

/* ---- The call -------------------------------------------------------------------------------- */

typedef struct call {
    fj_task task;
    quicksort *q;
    char *a;
    size_t n;
} call;

static int call_run(fj_task *t)
{
    call *c = (call *)t;
    quicksort *q = c->q;
    range all = {c->a, c->n, 0, 64 - __builtin_clzll(c->n)};

    if (fji_sort_presorted(&q->job, q->kind, c->a, c->n)) {
        fji_job_add_progress(&q->job, c->n);
        return FJ_OK;
    }
    q->parallel = fj_pool_parallelism(fj_current_pool()) >= PARALLEL_WORKERS;
    sort_range(q, all);
    return FJ_OK;
}

int fji_quick_sort(const fji_sort_kind *kind, void *a, size_t n, const fj_algo_options *how)
{
    quicksort q = {.kind = kind};
    call c = {.q = &q, .a = a, .n = n};

    int err = fji_sort_init(&q.job, kind, a, n, how);
    if (err != FJ_OK || n == 0) return err;
    q.leaf = fji_sort_leaf(&q.job, kind);
    fj_task_init(&c.task, call_run);
    return fji_job_run(&q.job, how, &c.task);
}
