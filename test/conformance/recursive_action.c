/* SPDX-License-Identifier: MIT */
/*
 * recursive_action.c - RecursiveActionTest: recursive tasks without a result
 */
#include "tree_checks.h"

FJ_TEST(RecursiveActionTest__testInvoke, 30)
{
    tree_run(step_invoke, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testQuietlyInvoke, 30)
{
    tree_run(step_quietly_invoke, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testForkJoin, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_ACTION, .wait = tree_join});
}

FJ_TEST(RecursiveActionTest__testForkGet, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_ACTION, .wait = tree_wait_get});
}

FJ_TEST(RecursiveActionTest__testForkTimedGet, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_ACTION, .wait = tree_wait_timed});
}

FJ_TEST(RecursiveActionTest__testForkQuietlyJoin, 30)
{
    tree_run(step_fork, (struct tree_how){.kind = TREE_ACTION, .wait = tree_wait_quiet});
}

FJ_TEST(RecursiveActionTest__testForkHelpQuiesce, 30)
{
    tree_run(step_fork_help_quiesce, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testAbnormalInvoke, 30)
{
    tree_run(step_invoke, (struct tree_how){.kind = TREE_ACTION, .code = TREE_CODE});
}

FJ_TEST(RecursiveActionTest__testAbnormalQuietlyInvoke, 30)
{
    tree_run(step_quietly_invoke, (struct tree_how){.kind = TREE_ACTION, .code = TREE_CODE});
}

FJ_TEST(RecursiveActionTest__testAbnormalForkJoin, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_ACTION, .code = TREE_CODE, .wait = tree_join});
}

FJ_TEST(RecursiveActionTest__testAbnormalForkGet, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_ACTION, .code = TREE_CODE, .wait = tree_wait_get});
}

FJ_TEST(RecursiveActionTest__testAbnormalForkTimedGet, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_ACTION, .code = TREE_CODE, .wait = tree_wait_timed});
}

FJ_TEST(RecursiveActionTest__testAbnormalForkQuietlyJoin, 30)
{
    tree_run(step_fork,
             (struct tree_how){.kind = TREE_ACTION, .code = TREE_CODE, .wait = tree_wait_quiet});
}

FJ_TEST(RecursiveActionTest__testCancelledInvoke, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testCancelledForkJoin, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_ACTION, .wait = tree_join});
}

FJ_TEST(RecursiveActionTest__testCancelledForkGet, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_ACTION, .wait = tree_wait_get});
}

FJ_TEST(RecursiveActionTest__testCancelledForkTimedGet, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_ACTION, .wait = tree_wait_timed});
}

FJ_TEST(RecursiveActionTest__testCancelledForkQuietlyJoin, 30)
{
    tree_run(step_cancelled, (struct tree_how){.kind = TREE_ACTION, .wait = tree_wait_quiet});
}

FJ_TEST(RecursiveActionTest__testGetPool, 30)
{
    tree_run(step_pool_of_a_body, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testGetPool2, 30)
{
    tree_run_outside(TREE_ACTION);
}

FJ_TEST(RecursiveActionTest__testInForkJoinPool, 30)
{
    tree_run(step_worker_of_a_body, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testInForkJoinPool2, 30)
{
    tree_run_outside(TREE_ACTION);
}

FJ_TEST(RecursiveActionTest__testSetRawResult, 30)
{
    tree_run(step_set_result, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testReinitialize, 30)
{
    tree_run(step_reinit, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testReinitializeAbnormal, 30)
{
    tree_run(step_reinit, (struct tree_how){.kind = TREE_ACTION, .code = TREE_CODE});
}

FJ_TEST(RecursiveActionTest__testCompleteExceptionally, 30)
{
    tree_run(step_complete_exceptionally, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testComplete, 30)
{
    tree_run(step_complete, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testInvokeAll2, 30)
{
    tree_run(step_invoke_all, (struct tree_how){.kind = TREE_ACTION, .many = 2, .form = TREE_BOTH});
}

FJ_TEST(RecursiveActionTest__testInvokeAll1, 30)
{
    tree_run(step_invoke_all,
             (struct tree_how){.kind = TREE_ACTION, .many = 1, .form = TREE_ARRAY});
}

FJ_TEST(RecursiveActionTest__testInvokeAll3, 30)
{
    tree_run(step_invoke_all,
             (struct tree_how){.kind = TREE_ACTION, .many = 3, .form = TREE_ARRAY});
}

FJ_TEST(RecursiveActionTest__testInvokeAllCollection, 30)
{
    tree_run(step_invoke_all,
             (struct tree_how){.kind = TREE_ACTION, .many = TREE_MOST, .form = TREE_COLLECTION});
}

FJ_TEST(RecursiveActionTest__testInvokeAllNPE, 30)
{
    tree_run(step_invoke_all_null, (struct tree_how){.kind = TREE_ACTION});
}

FJ_TEST(RecursiveActionTest__testAbnormalInvokeAll2, 30)
{
    tree_run(
        step_invoke_all,
        (struct tree_how){.kind = TREE_ACTION, .code = TREE_CODE, .many = 2, .form = TREE_BOTH});
}

FJ_TEST(RecursiveActionTest__testAbnormalInvokeAll1, 30)
{
    tree_run(
        step_invoke_all,
        (struct tree_how){.kind = TREE_ACTION, .code = TREE_CODE, .many = 1, .form = TREE_ARRAY});
}

FJ_TEST(RecursiveActionTest__testAbnormalInvokeAll3, 30)
{
    tree_run(
        step_invoke_all,
        (struct tree_how){.kind = TREE_ACTION, .code = TREE_CODE, .many = 3, .form = TREE_ARRAY});
}

FJ_TEST(RecursiveActionTest__testAbnormalInvokeAllCollection, 30)
{
    tree_run(step_invoke_all, (struct tree_how){.kind = TREE_ACTION,
                                                .code = TREE_CODE,
                                                .many = TREE_MOST,
                                                .form = TREE_COLLECTION});
}

FJ_TEST(RecursiveActionTest__testTryUnfork, 30)
{
    tree_run_alone(step_unfork, (struct tree_how){.kind = TREE_ACTION}, conformance_flags());
}

FJ_TEST(RecursiveActionTest__testGetSurplusQueuedTaskCount, 30)
{
    tree_run_alone(step_surplus, (struct tree_how){.kind = TREE_ACTION}, conformance_flags());
}

FJ_TEST(RecursiveActionTest__testPeekNextLocalTask, 30)
{
    tree_run_alone(step_peek, (struct tree_how){.kind = TREE_ACTION}, 0);
}

FJ_TEST(RecursiveActionTest__testPollNextLocalTask, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_ACTION, .poll = fj_take_local}, 0);
}

FJ_TEST(RecursiveActionTest__testPollTask, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_ACTION, .poll = fj_take_task}, 0);
}

FJ_TEST(RecursiveActionTest__testPeekNextLocalTaskAsync, 30)
{
    tree_run_alone(step_peek, (struct tree_how){.kind = TREE_ACTION}, FJ_POOL_FIFO);
}

FJ_TEST(RecursiveActionTest__testPollNextLocalTaskAsync, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_ACTION, .poll = fj_take_local},
                   FJ_POOL_FIFO);
}

FJ_TEST(RecursiveActionTest__testPollTaskAsync, 30)
{
    tree_run_alone(step_poll, (struct tree_how){.kind = TREE_ACTION, .poll = fj_take_task},
                   FJ_POOL_FIFO);
}

/* ---- Waiting while interrupted ------------------------------------------------------------------- */

/* A future that takes 3 ms, so that a thread that does not wait for it sees that it is not done. */
struct slow {
    fj_future f;
    atomic_int begun, ended;
    int code;
};

static int slow_run(fj_task *t)
{
    struct slow *s = (struct slow *)t;

    atomic_store(&s->begun, 1);
    fjt_sleep_us(3000);
    atomic_store(&s->ended, 1);
    return s->code;
}

/* The pool that runs the slow futures: that of the waiting task, or another. */
static fj_pool *slow_pool;

static void slow_wait(int code, int running, int quiet)
{
    struct slow s;

    memset(&s, 0, sizeof s);
    s.code = code;
    fj_future_init(&s.f, slow_run);
    if (slow_pool == fj_current_pool())
        CHECK_EQ(fj_future_fork(&s.f), FJ_OK);
    else
        CHECK_EQ(fj_future_submit(slow_pool, &s.f), FJ_OK);
    while (running && !atomic_load(&s.begun)) fjt_sleep_us(10);
    if (quiet)
        CHECK_EQ(fj_future_wait_quietly(&s.f, FJ_FOREVER), FJ_OK);
    else
        CHECK_EQ(fj_future_join(&s.f), code);
    CHECK_EQ(atomic_load(&s.ended), 1);
    state_check_done(&s.f, code, NULL);
    fj_future_fini(&s.f);
}

/* A future that is cancelled before it is queued. */
static void slow_cancelled(int quiet)
{
    struct slow s;

    memset(&s, 0, sizeof s);
    fj_future_init(&s.f, slow_run);
    CHECK_EQ(fj_future_cancel(&s.f, 1), 1);
    CHECK_EQ(fj_future_submit(slow_pool, &s.f), FJ_OK);
    if (quiet)
        CHECK_EQ(fj_future_wait_quietly(&s.f, FJ_FOREVER), FJ_OK);
    else
        CHECK_EQ(fj_future_join(&s.f), FJ_ECANCELED);
    state_check_done(&s.f, FJ_ECANCELED, NULL);
    fj_future_fini(&s.f);
    CHECK_EQ(atomic_load(&s.begun), 0);
}

static void slow_waits(void)
{
    for (int quiet = 0; quiet < 2; quiet++) {
        for (int running = 0; running < 2; running++) {
            slow_wait(FJ_OK, running, quiet);
            slow_wait(TREE_CODE, running, quiet);
        }
        slow_cancelled(quiet);
    }
}

/* A task that interrupts itself first, and then waits nevertheless. */
static int interrupted_run(fj_task *t)
{
    fj_future *me = (fj_future *)t, never;

    CHECK_EQ(fj_is_cancelled(), 0);
    CHECK_EQ(fj_future_cancel(me, 1), 1);
    CHECK_EQ(fj_is_cancelled(), 1);
    slow_waits();
    CHECK_EQ(fj_is_cancelled(), 1);
    fj_future_init(&never, NULL);
    /* An interrupt does end this wait. */
    CHECK_EQ(fj_future_get(&never, FJ_FOREVER, NULL), FJ_ECANCELED);
    return FJ_OK;
}

static void interrupted_in(fj_pool *pool)
{
    fj_future f;

    fj_future_init(&f, interrupted_run);
    CHECK_EQ(fj_future_submit(pool, &f), FJ_OK);
    CHECK_EQ(fj_future_join(&f), FJ_ECANCELED);
    fj_future_fini(&f); /* waits for the body, which may still run */
    state_check_done(&f, FJ_ECANCELED, NULL);
}

FJ_TEST(RecursiveActionTest__testJoinIgnoresInterrupts, 30)
{
    slow_pool = fjt_pool(conformance_workers_for(2), conformance_flags());
    interrupted_in(slow_pool);
    fjt_destroy(slow_pool);
}

/* The same in a thread that belongs to no pool. Only its future shows the cancel. */
static int interrupted_bare(fj_task *t)
{
    fj_future *me = (fj_future *)t;

    CHECK(fj_current_pool() == NULL);
    CHECK_EQ(fj_future_cancel(me, 1), 1);
    slow_waits();
    CHECK_EQ(fj_future_is_cancelled(me), 1);
    return FJ_OK;
}

/* The waiting task runs on a worker of another pool, or in a thread without a pool. */
FJ_TEST(RecursiveActionTest__testJoinIgnoresInterruptsOutsideForkJoinPool, 30)
{
    fj_pool *other = fjt_pool(1, conformance_flags());
    fj_future f;

    slow_pool = fjt_pool(conformance_workers(), conformance_flags());
    interrupted_in(other);
    fj_future_init(&f, interrupted_bare);
    CHECK_EQ(fj_future_run(&f), FJ_ECANCELED);
    state_check_done(&f, FJ_ECANCELED, NULL);
    fjt_destroy(slow_pool);
    fjt_destroy(other);
}

/* ---- What a worker reports about itself ------------------------------------------------------------- */

#define WORKERS 4

static struct {
    atomic_int started, stopped, wrong;
    atomic_int met;
    _Atomic(fj_pool *) pool;
    atomic_int taken[WORKERS];
} known;

static int worker_starts(fj_pool *pool, int worker, void *arg)
{
    (void)arg;
    atomic_store(&known.pool, pool);
    if (fj_current_pool() != pool || worker < 0 || worker != fj_current_worker())
        atomic_fetch_add(&known.wrong, 1);
    atomic_fetch_add(&known.started, 1);
    return 0;
}

static void worker_stops(fj_pool *pool, int worker, void *arg)
{
    (void)arg;
    if (fj_current_pool() != pool || worker < 0 || worker != fj_current_worker())
        atomic_fetch_add(&known.wrong, 1);
    atomic_fetch_add(&known.stopped, 1);
}

static fj_pool *knowing_pool(void)
{
    fj_pool_options o = {0};

    o.parallelism = o.max_threads = WORKERS;
    o.flags = conformance_flags();
    o.on_start = worker_starts;
    o.on_stop = worker_stops;
    return fjt_pool_with(&o);
}

struct sees {
    fj_task task;
    fj_pool *pool;
};

static int sees_run(fj_task *t)
{
    ((struct sees *)t)->pool = fj_current_pool();
    return FJ_OK;
}

FJ_TEST(RecursiveActionTest__testWorkerGetPool, 30)
{
    fj_pool *pool = knowing_pool();
    struct sees s = {.pool = NULL};

    fj_task_init(&s.task, sees_run);
    CHECK_EQ(fj_invoke_mode(pool, &s.task, FJ_CALLER_BLOCKS), FJ_OK);
    CHECK(s.pool == pool);
    CHECK(atomic_load(&known.pool) == pool);
    CHECK(fj_current_pool() == NULL);
    fjt_destroy(pool);
    CHECK(atomic_load(&known.started) >= 1);
    CHECK_EQ(atomic_load(&known.stopped), atomic_load(&known.started));
    CHECK_EQ(atomic_load(&known.wrong), 0);
}

/* All tasks run at the same time, so that each is on a different worker. */
static int meet_run(fj_task *t)
{
    int worker = fj_current_worker();

    (void)t;
    CHECK(worker >= 0 && worker < WORKERS);
    CHECK_EQ(atomic_fetch_add(&known.taken[worker], 1), 0);
    atomic_fetch_add(&known.met, 1);
    while (atomic_load(&known.met) < WORKERS) fjt_sleep_us(20);
    CHECK_EQ(fj_current_worker(), worker);
    return FJ_OK;
}

FJ_TEST(RecursiveActionTest__testWorkerGetPoolIndex, 30)
{
    fj_pool *pool = knowing_pool();
    fj_future f[WORKERS];

    CHECK_EQ(fj_current_worker(), -1);
    for (int i = 0; i < WORKERS; i++) {
        fj_future_init(&f[i], meet_run);
        CHECK_EQ(fj_future_submit(pool, &f[i]), FJ_OK);
    }
    for (int i = 0; i < WORKERS; i++) {
        CHECK_EQ(fj_future_join(&f[i]), FJ_OK);
        fj_future_fini(&f[i]);
    }
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&known.wrong), 0);
}

/* ---- Sorting ------------------------------------------------------------------------------------- */

#define SORT_N 1007

struct sort {
    fj_task task;
    long *v, *spare;
    size_t n;
};

static int by_value(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static void merge(long *v, long *spare, size_t half, size_t n)
{
    size_t i = 0, j = half, k = 0;

    memcpy(spare, v, half * sizeof *v);
    while (i < half && j < n) v[k++] = v[j] < spare[i] ? v[j++] : spare[i++];
    while (i < half) v[k++] = spare[i++];
}

static int sort_run(fj_task *t)
{
    struct sort *s = (struct sort *)t;
    size_t half = s->n / 2;

    if (s->n < 2) return FJ_OK;
    struct sort a = {.v = s->v, .spare = s->spare, .n = half};
    struct sort b = {.v = s->v + half, .spare = s->spare + half, .n = s->n - half};
    fj_task_init(&a.task, sort_run);
    fj_task_init(&b.task, sort_run);
    int err = fj_invoke_both(&a.task, &b.task);
    if (err == FJ_OK) merge(s->v, s->spare, half, s->n);
    return err;
}

FJ_TEST(RecursiveActionTest__testSortTaskDemo, 30)
{
    static long v[SORT_N], want[SORT_N], spare[SORT_N];
    fj_pool *pool = fjt_pool(conformance_workers(), conformance_flags());
    uint64_t random = fjt_seed();
    struct sort s = {.v = v, .spare = spare, .n = SORT_N};

    for (int i = 0; i < SORT_N; i++) v[i] = want[i] = (long)(fjt_random(&random) % 5000);
    qsort(want, SORT_N, sizeof want[0], by_value);
    fj_task_init(&s.task, sort_run);
    CHECK_EQ(fj_invoke_mode(pool, &s.task, FJ_CALLER_BLOCKS), FJ_OK);
    CHECK_EQ(memcmp(v, want, sizeof v), 0);
    fjt_destroy(pool);
}
