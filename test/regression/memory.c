/* SPDX-License-Identifier: MIT */
/*
 * memory.c - queues that grow while thieves steal, records that are reused, allocations that fail
 *
 * Memory that a thief may read is freed only together with the pool. A task may be reused at the
 * same address at once, and must not be mistaken for the earlier task. Every accepted task is run,
 * even if an allocation fails.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "regression.h"

/* ---- Growth ----------------------------------------------------------------------------- */

struct unit {
    fj_task task;
    atomic_int ran;
};

static int unit_run(fj_task *t)
{
    atomic_fetch_add_explicit(&((struct unit *)t)->ran, 1, memory_order_relaxed);
    return FJ_OK;
}

struct crop {
    fj_task task;
    struct unit *units;
    size_t n;
};

static int crop_run(fj_task *t)
{
    struct crop *c = (struct crop *)t;

    for (size_t i = 0; i < c->n; i++) fj_fork(&c->units[i].task);
    for (size_t i = c->n; i-- > 0;) CHECK_EQ(fj_join(&c->units[i].task), FJ_OK);
    return FJ_OK;
}

/* Forks n tasks before it joins the first of them. */
static void grow_to(fj_pool *p, size_t n)
{
    struct crop c = {.units = calloc(n, sizeof *c.units), .n = n};

    CHECK(c.units != NULL);
    for (size_t i = 0; i < n; i++) fj_task_init(&c.units[i].task, unit_run);
    fj_task_init(&c.task, crop_run);
    CHECK_EQ(fj_invoke(p, &c.task), FJ_OK);
    for (size_t i = 0; i < n; i++) CHECK_EQ(atomic_load(&c.units[i].ran), 1);
    free(c.units);
}

/* Each round uses a new pool, because its queues start small. */
FJ_TEST(a_queue_grows_under_thieves, 60)
{
    for (long i = fjt_rounds(20); i > 0; i--) {
        fj_pool *p = fjt_pool(8, i % 2 ? FJ_POOL_FIFO : 0);
        grow_to(p, 100000);
        fjt_destroy(p);
    }
}

/* Tasks beyond the last cell of the queue go to a submission queue. */
FJ_TEST(a_queue_that_cannot_grow_any_further_loses_nothing, 60)
{
    fj_pool *p = fjt_pool(1, 0);

    grow_to(p, FJI_QUEUE_RESERVED + 50);
    grow_to(p, FJI_QUEUE_RESERVED + 50);
    fjt_destroy(p);
}

FJ_TEST(a_queue_that_cannot_grow_any_further_loses_nothing_under_thieves, 60)
{
    fj_pool *p = fjt_pool(4, 0);

    grow_to(p, FJI_QUEUE_RESERVED + 50);
    fjt_destroy(p);
}

struct flood {
    fj_pool *pool;
    int n;
    atomic_int ran, sent;
};

static int flood_drop(void *arg)
{
    atomic_fetch_add(&((struct flood *)arg)->ran, 1);
    return FJ_OK;
}

static int flood_run(void *arg)
{
    struct flood *f = arg;

    for (int i = 0; i < f->n; i++) CHECK_EQ(fj_execute(f->pool, flood_drop, f), FJ_OK);
    atomic_store(&f->sent, 1);
    return FJ_OK;
}

static void flood(fj_pool *p, fj_action_fn *from, int n)
{
    struct flood f = {.pool = p, .n = n};

    if (from != NULL)
        CHECK_EQ(fj_execute(p, from, &f), FJ_OK);
    else
        (void)flood_run(&f);
    UNTIL(atomic_load(&f.ran) == n && atomic_load(&f.sent));
}

FJ_TEST(queues_grow_while_actions_are_taken_from_them, 60)
{
    for (long i = fjt_rounds(20); i > 0; i--) {
        fj_pool *p = fjt_pool(8, i % 2 ? FJ_POOL_FIFO : 0);
        flood(p, flood_run, 100000);
        flood(p, NULL, 20000);
        fjt_destroy(p);
    }
}

/* ---- Use without growth ----------------------------------------------------------------- */

struct steady {
    fj_pool *pool;
    long left;
    atomic_int over;
};

static int steady_run(void *arg)
{
    struct steady *s = arg;

    if (--s->left > 0)
        CHECK_EQ(fj_execute(s->pool, steady_run, s), FJ_OK);
    else
        atomic_store(&s->over, 1);
    return FJ_OK;
}

/* One task at a time, many times: the positions must not move towards the end of the reserved
 * range. */
static void run_steadily(unsigned flags)
{
    fj_pool *p = fjt_pool(1, flags);
    struct steady s = {.pool = p, .left = fjt_rounds(300000)};

    CHECK_EQ(fj_execute(p, steady_run, &s), FJ_OK);
    UNTIL(atomic_load(&s.over));
    regression_rest(p);
    CHECK(fji_pool_worker(p, 0)->q.capacity <= 4096);
    for (long i = fjt_rounds(20000); i > 0; i--) flood(p, NULL, 1);
    regression_rest(p);
    for (uint32_t i = 0; i < p->nsubmissions; i++)
        if (p->submissions[i] != NULL) CHECK(p->submissions[i]->capacity <= 4096);
    fjt_destroy(p);
}

FJ_TEST(a_queue_in_steady_use_does_not_grow, 60)
{
    run_steadily(0);
}

FJ_TEST(a_fifo_queue_in_steady_use_does_not_grow, 60)
{
    run_steadily(FJ_POOL_FIFO);
}

/* Alternates actions with typed code. While typed code runs, the queue must not be compacted. */
FJ_TASK(long, small_tree, long, n)
{
    if (n < 2) return n;
    small_tree_task a;
    small_tree_fork(FJ, &a, n - 1);
    long y = small_tree_call(FJ, n - 2);
    return small_tree_join(FJ, &a) + y;
}

static int burst_run(fj_task *t)
{
    static atomic_int ran;
    fj_pool *p = fj_current_pool();
    long sum = 0;

    (void)t;
    for (int i = 0; i < 50; i++) CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
    CHECK_EQ(small_tree_invoke(p, &sum, 8), FJ_OK);
    CHECK_EQ(sum, 21);
    return FJ_OK;
}

FJ_TEST(a_fifo_queue_in_steady_use_by_typed_code_does_not_grow, 60)
{
    fj_pool *p = fjt_pool(1, FJ_POOL_FIFO);
    fj_task t;

    fj_task_init(&t, burst_run);
    for (long i = fjt_rounds(20000); i > 0; i--) {
        CHECK_EQ(fj_invoke(p, &t), FJ_OK);
        if (i % 16 == 0) CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    }
    /* At most 16 bursts are queued: 800 actions, and the typed code above them. */
    CHECK(fji_pool_worker(p, 0)->q.capacity <= 4096);
    fjt_destroy(p);
}

/* ---- Records that are reused ------------------------------------------------------------ */

struct churner {
    fj_pool *pool;
    uint64_t seed;
    atomic_int sent, *ran;
};

static void *churn_main(void *arg)
{
    struct churner *c = arg;

    for (long i = fjt_rounds(4000); i > 0 || regression_started(c->pool) <= 8; i--) {
        for (int k = regression_below(&c->seed, 5); k >= 0; k--) {
            CHECK_EQ(fj_execute(c->pool, regression_count, c->ran), FJ_OK);
            atomic_fetch_add(&c->sent, 1);
        }
        if (regression_below(&c->seed, 4) == 0) fjt_sleep_us(regression_below(&c->seed, 300));
        if (regression_below(&c->seed, 100) == 0) fjt_sleep_us(2000);
    }
    return NULL;
}

/* Workers start and end all the time while others scan their records. The test runs until the pool
 * has started more workers than its parallelism, so that records are reused. */
static void churn(unsigned flags)
{
    fj_pool *p = fjt_pool(8, flags);
    struct churner c[3];
    pthread_t t[3];
    atomic_int ran = 0;
    int sent = 0;

    p->keep_alive_ns = 2000;
    for (int i = 0; i < 3; i++) {
        c[i] = (struct churner){.pool = p, .seed = fjt_seed() + (uint64_t)i, .ran = &ran};
        t[i] = regression_thread(churn_main, &c[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        sent += atomic_load(&c[i].sent);
    }
    UNTIL(atomic_load(&ran) == sent);
    regression_rest(p);
    fjt_destroy(p);
}

FJ_TEST(workers_may_come_and_go_while_others_scan, 60)
{
    churn(0);
}

FJ_TEST(workers_may_come_and_go_while_others_scan_fifo, 60)
{
    churn(FJ_POOL_FIFO);
}

/* ---- Addresses that are reused ---------------------------------------------------------- */

struct pair {
    fj_task task;
    struct unit two[2];
    long rounds;
};

/* Forks the same two tasks at the same two positions, again and again. */
static int pair_run(fj_task *t)
{
    struct pair *p = (struct pair *)t;

    for (long i = 0; i < p->rounds; i++) {
        fj_fork(&p->two[i & 1].task);
        if (i % 3 == 0) fj_fork(&p->two[~i & 1].task);
        if (i % 64 == 0) regression_spin_ns(i % 700);
        if (i % 3 == 0) CHECK_EQ(fj_join(&p->two[~i & 1].task), FJ_OK);
        CHECK_EQ(fj_join(&p->two[i & 1].task), FJ_OK);
    }
    return FJ_OK;
}

static void fork_the_same(unsigned flags)
{
    fj_pool *p = fjt_pool(8, flags);
    struct pair pair = {.rounds = fjt_rounds(flags == 0 ? 8000000 : 1500000)};
    long forks = pair.rounds + (pair.rounds + 2) / 3;

    for (int i = 0; i < 2; i++) fj_task_init(&pair.two[i].task, unit_run);
    fj_task_init(&pair.task, pair_run);
    CHECK_EQ(fj_invoke(p, &pair.task), FJ_OK);
    CHECK_EQ(atomic_load(&pair.two[0].ran) + atomic_load(&pair.two[1].ran), forks);
    fjt_destroy(p);
}

FJ_TEST(an_address_forked_again_at_once_is_run_again, 60)
{
    fork_the_same(0);
}

FJ_TEST(an_address_forked_again_at_once_is_run_again_with_full_fences, 60)
{
    fork_the_same(FJ_POOL_SYMMETRIC);
}

FJ_TEST(an_address_forked_again_at_once_is_run_again_fifo, 60)
{
    fork_the_same(FJ_POOL_FIFO);
}

struct resubmitter {
    fj_pool *pool;
    long rounds;
};

static void *resubmit(void *arg)
{
    struct resubmitter *r = arg;
    struct unit two[2] = {{.ran = 0}, {.ran = 0}};

    for (int i = 0; i < 2; i++) fj_task_init(&two[i].task, unit_run);
    for (long i = 0; i < r->rounds; i++) {
        CHECK_EQ(fj_submit(r->pool, &two[0].task), FJ_OK);
        CHECK_EQ(fj_submit(r->pool, &two[1].task), FJ_OK);
        CHECK_EQ(fj_join(&two[i & 1].task), FJ_OK);
        CHECK_EQ(fj_join(&two[~i & 1].task), FJ_OK);
    }
    CHECK_EQ(atomic_load(&two[0].ran), r->rounds);
    CHECK_EQ(atomic_load(&two[1].ran), r->rounds);
    return NULL;
}

/* With FJ_POOL_CALLER_HELPS a joiner takes its task back from the middle of the queue. */
static void submit_the_same(unsigned flags)
{
    fj_pool *p = fjt_pool(3, flags);
    struct resubmitter r = {p, fjt_rounds(30000)};
    pthread_t t[4];

    for (int i = 0; i < 4; i++) t[i] = regression_thread(resubmit, &r);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    fjt_destroy(p);
}

FJ_TEST(an_address_submitted_again_at_once_is_run_again, 60)
{
    submit_the_same(0);
}

FJ_TEST(an_address_submitted_again_at_once_is_run_again_by_helpers, 60)
{
    submit_the_same(FJ_POOL_CALLER_HELPS);
}

/* ---- Allocations that fail -------------------------------------------------------------- */

#define WIDE 200 /* more than the initial capacity of a queue */

FJ_TASK(long, faulty_sum, long, from, long, n)
{
    faulty_sum_task h[WIDE];
    long sum = 0;

    if (n == 1) return from;
    for (long i = 0; i < n; i++) faulty_sum_fork(FJ, &h[i], from + i, 1);
    for (long i = n; i-- > 0;) sum += faulty_sum_join(FJ, &h[i]);
    return sum;
}

static int faulty_drop(void *arg)
{
    return regression_count(arg);
}

static void submit_with_faults(fj_pool *p, struct unit *units)
{
    bool accepted[WIDE];

    for (int i = 0; i < WIDE; i++) {
        atomic_store(&units[i].ran, 0);
        fj_task_init(&units[i].task, unit_run);
        int err = fj_submit(p, &units[i].task);
        CHECK(err == FJ_OK || err == FJ_ENOMEM);
        accepted[i] = err == FJ_OK;
    }
    for (int i = 0; i < WIDE; i++) {
        if (accepted[i]) CHECK_EQ(fj_join(&units[i].task), FJ_OK);
        CHECK_EQ(atomic_load(&units[i].ran), accepted[i]);
    }
}

static void execute_with_faults(fj_pool *p)
{
    atomic_int ran = 0;
    int sent = 0;

    for (int i = 0; i < WIDE; i++) {
        int err = fj_execute(p, faulty_drop, &ran);
        CHECK(err == FJ_OK || err == FJ_ENOMEM);
        if (err == FJ_OK) sent++;
    }
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&ran), sent);
}

static void fork_with_faults(fj_pool *p, struct unit *units)
{
    struct crop c = {.units = units, .n = WIDE};
    long sum = -1;

    for (int i = 0; i < WIDE; i++) {
        atomic_store(&units[i].ran, 0);
        fj_task_init(&units[i].task, unit_run);
    }
    fj_task_init(&c.task, crop_run);
    int err = fj_invoke(p, &c.task);
    CHECK(err == FJ_OK || err == FJ_ENOMEM);
    for (int i = 0; i < WIDE; i++) CHECK_EQ(atomic_load(&units[i].ran), err == FJ_OK);
    err = faulty_sum_invoke(p, &sum, 1, WIDE);
    CHECK(err == FJ_OK || err == FJ_ENOMEM);
    CHECK_EQ(sum, err == FJ_OK ? WIDE * (WIDE + 1) / 2 : -1);
}

/* Uses every call that allocates memory, in a new pool. */
static void work_with_faults(int workers, unsigned flags, bool actions)
{
    static struct unit units[WIDE];
    fj_pool_options o = {0};
    fj_pool *p = NULL;

    o.parallelism = workers;
    o.flags = flags;
    int err = fj_pool_create(&p, &o);
    if (err != FJ_OK) {
        CHECK_EQ(err, FJ_ENOMEM);
        return;
    }
    fjt_watch(p);
    submit_with_faults(p, units);
    if (actions) execute_with_faults(p);
    fork_with_faults(p, units);
    fjt_destroy(p);
}

#define FOR_EVER 1000000000

/* Lets the k-th call fail and the `count` - 1 calls after it, for k = 1, 2, ... until a run makes
 * fewer than k calls. If no worker can ever start, only a joiner runs tasks; then the test executes
 * no actions. */
static void fail_every_call(enum fji_fault kind, long count, unsigned flags)
{
    work_with_faults(1, 0, true);
    if (fji_fault_calls(kind) == 0) fjt_skip("built without faults");
    for (int workers = 1; workers <= 3; workers += 2) {
        for (long k = 1;; k++) {
            long before = fji_fault_calls(kind);
            fji_fault_set(kind, k, count);
            work_with_faults(workers, flags, count < FOR_EVER);
            fji_fault_set(kind, 1, 0);
            if (fji_fault_calls(kind) - before < k) break;
            CHECK(k < 10000);
        }
    }
}

FJ_TEST(no_task_is_lost_whichever_allocation_fails, 60)
{
    fail_every_call(FJI_FAULT_ALLOC, 1, 0);
}

FJ_TEST(no_task_is_lost_whichever_allocations_fail_in_a_row, 60)
{
    fail_every_call(FJI_FAULT_ALLOC, 5, 0);
}

FJ_TEST(no_task_is_lost_whichever_allocation_fails_for_helping_callers, 60)
{
    fail_every_call(FJI_FAULT_ALLOC, 1, FJ_POOL_CALLER_HELPS);
}

FJ_TEST(no_task_is_lost_whichever_growth_fails, 60)
{
    fail_every_call(FJI_FAULT_COMMIT, 1, 0);
}

FJ_TEST(no_task_is_lost_whichever_growths_fail_in_a_row, 60)
{
    fail_every_call(FJI_FAULT_COMMIT, 5, 0);
}

FJ_TEST(no_task_is_lost_when_nothing_grows_any_more, 60)
{
    fail_every_call(FJI_FAULT_COMMIT, FOR_EVER, 0);
}

FJ_TEST(no_task_is_lost_when_nothing_is_allocated_any_more, 60)
{
    fail_every_call(FJI_FAULT_ALLOC, FOR_EVER, 0);
}

FJ_TEST(no_task_is_lost_whichever_thread_fails, 60)
{
    fail_every_call(FJI_FAULT_THREAD, 1, 0);
}

FJ_TEST(no_task_is_lost_when_no_thread_starts_any_more, 120)
{
    fail_every_call(FJI_FAULT_THREAD, FOR_EVER, 0);
}

FJ_TEST(no_task_is_lost_whichever_threads_fail_in_a_row, 60)
{
    fail_every_call(FJI_FAULT_THREAD, 5, 0);
}
