/* SPDX-License-Identifier: MIT */
/*
 * memory.c - `allocate` and `release` of the options, and fj_pool_memory()
 *
 * The hooks of this test keep a record of every block. At the end of a pool none is left. While the
 * pool is idle, fj_pool_memory() agrees with the record.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <forkjoin/algo.h>
#include <forkjoin/sort.h>
#include <forkjoin/worker_local.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

/* ---- The hooks -------------------------------------------------------------------------------- */

struct hooks {
    atomic_long bytes, blocks, calls;
    atomic_long refuse_at, refuse_n; /* the calls from number refuse_at on that return NULL */
    atomic_int off;                  /* bytes by which the blocks are not aligned */
};

/* What the hooks store in front of a block. */
struct front {
    void *base;
    size_t bytes;
    struct hooks *hooks;
};

#define FRONT 128

static void *hook_allocate(size_t bytes, size_t align, void *arg)
{
    struct hooks *h = arg;
    long n = atomic_fetch_add(&h->calls, 1) + 1, from = atomic_load(&h->refuse_at);
    void *base;

    CHECK(bytes > 0 && align > 0 && align <= 128 && (align & (align - 1)) == 0);
    if (from != 0 && n >= from && n < from + atomic_load(&h->refuse_n)) return NULL;
    if (posix_memalign(&base, FRONT, bytes + FRONT + 64) != 0) return NULL;
    memset(base, 0xa5, bytes + FRONT + 64); /* not zeroed */
    char *p = (char *)base + FRONT + atomic_load(&h->off);
    struct front f = {base, bytes, h};
    memcpy(p - sizeof f, &f, sizeof f);
    atomic_fetch_add(&h->bytes, (long)bytes);
    atomic_fetch_add(&h->blocks, 1);
    return p;
}

static void hook_release(void *p, size_t bytes, void *arg)
{
    struct hooks *h = arg;
    struct front f;

    memcpy(&f, (char *)p - sizeof f, sizeof f);
    CHECK(f.hooks == h);
    CHECK_EQ(f.bytes, bytes);
    atomic_fetch_sub(&h->bytes, (long)bytes);
    atomic_fetch_sub(&h->blocks, 1);
    memset((char *)f.base, 0x5a, FRONT); /* a second release fails above */
    free(f.base);
}

static fj_pool_options hooked(struct hooks *h, int workers)
{
    fj_pool_options o = {
        .parallelism = workers, .allocate = hook_allocate, .release = hook_release, .arg = h};

    memset(h, 0, sizeof *h);
    return o;
}

static void check_none(struct hooks *h)
{
    CHECK_EQ(atomic_load(&h->blocks), 0);
    CHECK_EQ(atomic_load(&h->bytes), 0);
}

static void check_sum(const fj_memory *m)
{
    CHECK_EQ(m->total, m->cells + m->submissions + m->workers + m->timers + m->futures +
                           m->scratch + m->other);
    CHECK(m->allocated <= m->total);
    for (size_t i = 0; i < sizeof m->reserved / sizeof m->reserved[0]; i++)
        CHECK_EQ(m->reserved[i], 0);
}

/* ---- A program that uses every kind of memory ------------------------------------------------- */

/* A call may fail for lack of memory if `may_fail`. Returns whether it succeeded. */
static bool may_fail;

static bool worked(int err)
{
    CHECK(err == FJ_OK || (may_fail && (err == FJ_ENOMEM || err == FJ_EAGAIN)));
    return err == FJ_OK;
}

static int call_fn(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

static int ok_run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

static int nothing_fn(void *arg)
{
    (void)arg;
    return FJ_OK;
}

static int fold_fn(size_t begin, size_t end, void *acc, void *arg)
{
    (void)arg;
    ((long *)acc)[99] += (long)(end - begin);
    return FJ_OK;
}

static int combine_fn(void *left, const void *right, void *arg)
{
    (void)arg;
    ((long *)left)[99] += ((const long *)right)[99];
    return FJ_OK;
}

static int compare_fn(const void *a, const void *b, void *arg)
{
    int x = *(const int *)a, y = *(const int *)b;

    (void)arg;
    return (x > y) - (x < y);
}

static void uses_algorithms(fj_pool *pool)
{
    enum { N = 20000 };
    static const long identity[100];
    int *v = malloc(N * sizeof *v);
    long sum[100];
    fj_algo_options how = {.pool = pool};

    for (int i = 0; i < N; i++) v[i] = (i * 7919) % N;
    if (worked(fj_stable_sort(v, N, sizeof *v, compare_fn, NULL, &how)))
        for (int i = 1; i < N; i++) CHECK(v[i - 1] <= v[i]);
    if (worked(fj_sort_i32(v, N, &how)))
        for (int i = 1; i < N; i++) CHECK(v[i - 1] <= v[i]);
    if (worked(fj_reduce(0, N, fold_fn, combine_fn, identity, sizeof identity, NULL, sum, &how)))
        CHECK_EQ(sum[99], N);
    free(v);
}

static int gets_value(size_t begin, size_t end, void *arg)
{
    long *v = fj_local_get(arg);

    CHECK(v != NULL || may_fail);
    if (v != NULL) *v += (long)(end - begin);
    return FJ_OK;
}

FJ_TASK(long, deep, int, n)
{
    if (n == 0) return 1;
    deep_task t;
    deep_fork(FJ, &t, n - 1);
    return deep_join(FJ, &t) + 1;
}

/* Uses the pool, and leaves one future, if `kept` is not NULL. */
static void uses_pool(fj_pool *pool, fj_future **kept)
{
    fj_future *f = NULL, *later = NULL;
    fj_local l;
    fj_local_options lo = {.pool = pool, .bytes = 1000};
    fj_algo_options how = {.pool = pool, .max_grain = 10};
    long r = 0;
    void *result = NULL;

    if (worked(fj_submit_call(pool, call_fn, &r, &f))) {
        CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
        CHECK(result == &r);
        if (kept != NULL)
            *kept = f;
        else
            fj_future_unref(f);
    }
    if (worked(fj_schedule_call(pool, call_fn, &r, 1000, &later))) {
        int err = fj_future_get(later, FJ_FOREVER, NULL);
        CHECK(err == FJ_OK || (may_fail && err == FJ_ECANCELED)); /* no memory when it is due */
        fj_future_unref(later);
    }
    if (worked(fj_submit_with_timeout(pool, call_fn, &r, FJ_FOREVER, NULL, &f))) {
        CHECK_EQ(fj_future_get(f, FJ_FOREVER, NULL), FJ_OK);
        fj_future_unref(f);
    }
    for (int i = 0; i < 50; i++) (void)worked(fj_execute(pool, nothing_fn, NULL));
    uses_algorithms(pool);
    if (worked(deep_invoke(pool, &r, 3000))) CHECK_EQ(r, 3001);
    if (worked(fj_local_init(&l, &lo))) {
        (void)worked(fj_for(0, 1000, gets_value, &l, &how));
        CHECK_EQ(fj_local_fini(&l), FJ_OK);
    }
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
}

/* ---- Balance ---------------------------------------------------------------------------------- */

FJ_TEST(every_block_is_released_with_its_size, 60)
{
    static const unsigned flags[] = {0, FJ_POOL_FIFO, FJ_POOL_SYMMETRIC, FJ_POOL_CALLER_HELPS};

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        struct hooks h;
        fj_pool_options o = hooked(&h, 2);
        cpu_set_t *cpus = calloc(1, 128);

        memset(cpus, 0xff, 128);
        o.flags = flags[i];
        o.cpus = cpus;
        o.cpus_bytes = 128;
        fj_pool *pool = fjt_pool_with(&o);
        free(cpus);
        CHECK(atomic_load(&h.blocks) > 0);
        uses_pool(pool, NULL);
        fjt_destroy(pool);
        check_none(&h);
    }
}

FJ_TEST(future_that_outlives_its_pool_is_released_by_the_hook, 20)
{
    struct hooks h;
    fj_pool_options o = hooked(&h, 2);
    fj_pool *pool = fjt_pool_with(&o);
    fj_future *kept = NULL;

    uses_pool(pool, &kept);
    CHECK(kept != NULL);
    fjt_destroy(pool);
    CHECK(atomic_load(&h.blocks) > 0); /* the future, and what counts it */
    fj_future_unref(kept);
    check_none(&h);
}

FJ_TEST(future_for_no_pool_does_not_use_the_hooks, 20)
{
    struct hooks h;
    fj_pool_options o = hooked(&h, 1);
    fj_pool *pool = fjt_pool_with(&o);
    fj_future *f = NULL;
    long calls = atomic_load(&h.calls);

    CHECK_EQ(fj_future_new_call(call_fn, NULL, 0, &f), FJ_OK);
    CHECK_EQ(atomic_load(&h.calls), calls);
    CHECK_EQ(fj_future_submit(pool, f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, NULL), FJ_OK);
    fj_future_unref(f);
    fjt_destroy(pool);
    check_none(&h);
}

FJ_TEST(common_pool_uses_its_hooks_until_it_ends, 60)
{
    struct hooks h;
    fj_pool_options o = hooked(&h, 2);
    fj_future *kept = NULL;
    fj_memory m;

    for (int round = 0; round < 2; round++) {
        CHECK_EQ(fj_common_configure(&o), FJ_OK);
        uses_pool(NULL, &kept);
        CHECK_EQ(fj_pool_memory(NULL, &m), FJ_OK);
        check_sum(&m);
        CHECK(m.futures > 0);
        CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
        CHECK(atomic_load(&h.blocks) > 0);
        /* A common pool without hooks, and a future of the one before. */
        uses_pool(NULL, NULL);
        CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
        fj_future_unref(kept);
        check_none(&h);
    }
}

/* Threads outside submit calls to a common pool with hooks while it ends and begins again. */
static atomic_int ended;

static void *submits_calls(void *arg)
{
    (void)arg;
    while (!atomic_load(&ended)) {
        fj_future *f = NULL;
        CHECK_EQ(fj_submit_call(NULL, call_fn, NULL, &f), FJ_OK);
        CHECK_EQ(fj_future_get(f, FJ_FOREVER, NULL), FJ_OK);
        fj_future_unref(f);
    }
    return NULL;
}

FJ_TEST(calls_are_submitted_while_a_common_pool_with_hooks_ends, 60)
{
    struct hooks h;
    fj_pool_options o = hooked(&h, 2);
    pthread_t t[2];

    atomic_store(&ended, 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, submits_calls, NULL), 0);
    for (long i = 0; i < fjt_rounds(100); i++) {
        int err = fj_common_configure(&o);
        CHECK(err == FJ_OK || err == FJ_EBUSY); /* a thread may have made the pool already */
        CHECK(fj_common_pool() != NULL);
        int end = fj_common_shutdown(10000000);
        CHECK(end == FJ_OK || end == FJ_ETIMEDOUT);
    }
    atomic_store(&ended, 1);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    check_none(&h);
}

/* ---- Figures ---------------------------------------------------------------------------------- */

static void reads_inside(void *arg)
{
    fj_memory m, before;
    fj_task t;
    fj_token token;

    (void)arg;
    CHECK_EQ(fj_pool_memory(fj_current_pool(), &before), FJ_OK);
    fj_token_init(&token, NULL);
    fj_task_init(&t, ok_run);
    CHECK_EQ(fj_invoke_token(fj_current_pool(), &t, &token), FJ_OK); /* needs a scope */
    CHECK_EQ(fj_pool_memory(fj_current_pool(), &m), FJ_OK);
    CHECK(m.workers > before.workers && m.cells > 0 && m.other > 0);
    CHECK_EQ(m.allocated, before.allocated); /* a scope is committed memory */
}

FJ_TEST(figures_add_up_and_agree_with_the_hooks, 60)
{
    struct hooks h;
    fj_pool_options o = hooked(&h, 2);
    fj_pool *pool = fjt_pool_with(&o);
    fj_memory m, used, after;
    fj_future *f = NULL;

    CHECK_EQ(fj_pool_memory(pool, &m), FJ_OK);
    check_sum(&m);
    CHECK_EQ(m.allocated, atomic_load(&h.bytes));
    CHECK(m.futures == 0 && m.scratch == 0 && m.timers == 0 && m.submissions == 0);
    inside(pool, reads_inside, NULL);
    uses_pool(pool, &f);
    CHECK_EQ(fj_pool_memory(pool, &used), FJ_OK);
    check_sum(&used);
    CHECK_EQ(used.allocated, atomic_load(&h.bytes));
    CHECK(used.futures > 0 && used.scratch == 0 && used.timers > 0);
    CHECK(used.submissions > 0 && used.cells >= m.cells && used.other == m.other);
    fj_future_unref(f);
    CHECK_EQ(fj_pool_memory(pool, &after), FJ_OK);
    CHECK_EQ(after.futures, 0);
    CHECK_EQ(after.total, used.total - used.futures);
    fjt_destroy(pool);
    check_none(&h);
}

struct look {
    fj_pool *pool;
    atomic_int seen;
};

static int looks_at_scratch(const void *a, const void *b, void *arg)
{
    struct look *l = arg;
    fj_memory m;

    if (atomic_load(&l->seen) == 0) {
        CHECK_EQ(fj_pool_memory(l->pool, &m), FJ_OK);
        if (m.scratch >= 80000) atomic_store(&l->seen, 1);
    }
    return compare_fn(a, b, NULL);
}

FJ_TEST(scratch_memory_counts_while_an_algorithm_runs, 60)
{
    enum { N = 20000 };
    fj_pool *pool = fjt_pool(2, 0); /* without hooks */
    struct look l = {.pool = pool};
    fj_algo_options how = {.pool = pool};
    int *v = malloc(N * sizeof *v);
    fj_memory m;

    for (int i = 0; i < N; i++) v[i] = (i * 7919) % N;
    CHECK_EQ(fj_stable_sort(v, N, sizeof *v, looks_at_scratch, &l, &how), FJ_OK);
    CHECK_EQ(atomic_load(&l.seen), 1);
    CHECK_EQ(fj_pool_memory(pool, &m), FJ_OK);
    CHECK_EQ(m.scratch, 0);
    free(v);
    fjt_destroy(pool);
}

/* ---- Refusals --------------------------------------------------------------------------------- */

static void runs_with_refusals(long from, long n, long *calls)
{
    struct hooks h;
    fj_pool_options o = hooked(&h, 2);
    fj_pool *pool;

    atomic_store(&h.refuse_n, n);
    atomic_store(&h.refuse_at, from);
    int err = fj_pool_create(&pool, &o);
    CHECK(err == FJ_OK || err == FJ_ENOMEM);
    if (err == FJ_OK) {
        uses_pool(pool, NULL);
        atomic_store(&h.refuse_at, 0);
        may_fail = false;
        uses_pool(pool, NULL); /* as if nothing had been refused */
        may_fail = true;
        CHECK_EQ(fj_pool_destroy(pool), FJ_OK);
    }
    check_none(&h);
    *calls = atomic_load(&h.calls);
}

FJ_TEST(refused_hook_is_out_of_memory_wherever_it_is_refused, 120)
{
    long calls, later;

    may_fail = true;
    /* Until a run makes fewer calls; beyond 40 calls only some are tried. */
    for (long from = 1;; from += 1 + from / fjt_rounds(40)) {
        runs_with_refusals(from, 1, &calls);
        runs_with_refusals(from, 1000000, &later);
        if (calls < from) break;
    }
}

FJ_TEST(block_that_is_not_aligned_counts_as_no_memory, 20)
{
    struct hooks h;
    fj_pool_options o = hooked(&h, 2);
    fj_pool *pool = NULL;

    atomic_store(&h.off, 8);
    CHECK_EQ(fj_pool_create(&pool, &o), FJ_ENOMEM);
    CHECK(pool == NULL);
    CHECK(atomic_load(&h.calls) > 0);
    check_none(&h);
}

FJ_TEST(one_hook_without_the_other_is_refused, 20)
{
    struct hooks h;
    fj_pool_options o = hooked(&h, 2);
    fj_pool *pool = NULL;

    o.release = NULL;
    CHECK_EQ(fj_pool_create(&pool, &o), FJ_EINVAL);
    CHECK_EQ(fj_common_configure(&o), FJ_EINVAL);
    o.release = hook_release;
    o.allocate = NULL;
    CHECK_EQ(fj_pool_create(&pool, &o), FJ_EINVAL);
    CHECK_EQ(atomic_load(&h.calls), 0);
}
