/* SPDX-License-Identifier: MIT */
/*
 * memory.c - no memory, little memory, and memory that others still look at
 *
 * Every allocation may fail and every queue may be unable to grow: the results stay right or
 * the call that needed memory says so. Queues grow and their records change hands under the
 * eyes of thieves, and tasks come back at the same address at once.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "trap.h"

/* ---- Work --------------------------------------------------------------------------------- */

/* A chain: each level forks a leaf and goes down, so that `depth` tasks are queued at once. */
struct chain {
    fj_task task;
    long depth, result;
};

static int chain_leaf(fj_task *t)
{
    ((struct chain *)t)->result = 1;
    return FJ_OK;
}

static long chain_down(long depth)
{
    struct chain leaf;

    if (depth == 0) return 0;
    fj_task_init(&leaf.task, chain_leaf);
    fj_fork(&leaf.task);
    long below = chain_down(depth - 1);
    CHECK_EQ(fj_join(&leaf.task), FJ_OK);
    return below + leaf.result;
}

static int chain_run(fj_task *t)
{
    struct chain *c = (struct chain *)t;
    c->result = chain_down(c->depth);
    return FJ_OK;
}

/* The same, typed; n < 0 is a leaf. */
FJ_TASK(long, typed_chain, long, n)
{
    if (n <= 0) return n < 0;
    typed_chain_task leaf;
    typed_chain_fork(FJ, &leaf, -1);
    long below = typed_chain_call(FJ, n - 1);
    return typed_chain_join(FJ, &leaf) + below;
}

#define DEPTH 300 /* well over the cells that a queue begins with */

static bool enough(int err)
{
    CHECK(err == FJ_OK || err == FJ_ENOMEM);
    return err == FJ_OK;
}

/* Something from every corner; each call succeeds, with the right result, or has no memory. */
static void scenario(void)
{
    fj_pool_options o = FJ_POOL_OPTIONS_INIT;
    struct chain c = {.depth = DEPTH}, s = {.depth = DEPTH};
    atomic_int ran = 0;
    int executed = 0;
    fj_pool *p = NULL;
    long r = -1;

    o.parallelism = 2;
    if (!enough(fj_pool_create(&p, &o))) {
        CHECK(p == NULL);
        return;
    }
    fj_task_init(&c.task, chain_run);
    fj_task_init(&s.task, chain_run);
    bool submitted = enough(fj_submit(p, &s.task));
    for (int i = 0; i < 100; i++) executed += enough(fj_execute(p, trap_count, &ran));
    if (enough(fj_invoke_by(p, &c.task, FJ_CALLER_BLOCKS))) CHECK_EQ(c.result, DEPTH);
    if (enough(typed_chain_invoke(p, &r, DEPTH)))
        CHECK_EQ(r, DEPTH);
    else
        CHECK_EQ(r, -1);
    c.result = 0;
    if (enough(fj_invoke_by(p, &c.task, FJ_CALLER_HELPS))) CHECK_EQ(c.result, DEPTH);
    if (submitted) {
        CHECK_EQ(fj_join(&s.task), FJ_OK);
        CHECK_EQ(s.result, DEPTH);
    }
    CHECK_EQ(fj_pool_destroy(p), FJ_OK);
    CHECK_EQ(atomic_load(&ran), executed);
}

static void need_faults(void)
{
    long before = fji_fault_calls(FJI_FAULT_ALLOC);

    scenario();
    if (fji_fault_calls(FJI_FAULT_ALLOC) == before) fjt_skip("built without FJI_FAULTS");
}

/* The k-th call fails, and count - 1 after it; for every k that the scenario gets to. */
static void fail_everywhere(enum fji_fault kind, long count)
{
    need_faults();
    for (long k = 1; k < 1000; k++) {
        long before = fji_fault_calls(kind);
        fji_fault_set(kind, k, count);
        scenario();
        bool over = fji_fault_calls(kind) - before < k;
        fji_fault_set(kind, 1, 0);
        if (over) return;
    }
    fjt_fail(__FILE__, __LINE__, "always one more call");
}

FJ_TEST(no_memory_at_any_one_allocation_gives_right_results_or_says_so, 60)
{
    fail_everywhere(FJI_FAULT_ALLOC, 1);
}

FJ_TEST(no_memory_at_some_allocations_gives_right_results_or_says_so, 60)
{
    fail_everywhere(FJI_FAULT_ALLOC, 3);
}

FJ_TEST(no_memory_at_any_one_growth_gives_right_results_or_says_so, 60)
{
    fail_everywhere(FJI_FAULT_COMMIT, 1);
}

FJ_TEST(no_memory_at_some_growths_gives_right_results_or_says_so, 60)
{
    fail_everywhere(FJI_FAULT_COMMIT, 3);
}

FJ_TEST(no_thread_at_any_one_start_gives_right_results, 60)
{
    fail_everywhere(FJI_FAULT_THREAD, 1);
}

FJ_TEST(no_memory_for_the_common_pool_is_said_and_tried_again, 20)
{
    need_faults();
    struct chain c = {.depth = DEPTH};

    fj_task_init(&c.task, chain_run);
    fji_fault_set(FJI_FAULT_ALLOC, 1, LONG_MAX);
    CHECK(fj_common_pool() == NULL);
    CHECK_EQ(fj_invoke(NULL, &c.task), FJ_ENOMEM);
    CHECK_EQ(fj_submit(NULL, &c.task), FJ_ENOMEM);
    fj_fork(&c.task); /* cannot fail: is run here */
    CHECK_EQ(fj_join(&c.task), FJ_OK);
    CHECK_EQ(c.result, DEPTH);
    fji_fault_set(FJI_FAULT_ALLOC, 1, 0);
    c.result = 0;
    CHECK_EQ(fj_invoke(NULL, &c.task), FJ_OK);
    CHECK_EQ(c.result, DEPTH);
}

/* ---- Queues that cannot grow ---------------------------------------------------------------- */

#define WIDE 2000

struct counted {
    fj_task task;
    atomic_int runs;
};

static int counted_run(fj_task *t)
{
    atomic_fetch_add_explicit(&((struct counted *)t)->runs, 1, memory_order_relaxed);
    return FJ_OK;
}

struct wide {
    fj_task task;
    struct counted *of;
    long n;
    bool oldest_first;
};

/* Forks n at once, then joins them. */
static int wide_run(fj_task *t)
{
    struct wide *w = (struct wide *)t;

    for (long i = 0; i < w->n; i++) {
        fj_task_init(&w->of[i].task, counted_run);
        atomic_store_explicit(&w->of[i].runs, 0, memory_order_relaxed);
        fj_fork(&w->of[i].task);
    }
    for (long k = 0; k < w->n; k++)
        CHECK_EQ(fj_join(&w->of[w->oldest_first ? k : w->n - 1 - k].task), FJ_OK);
    for (long i = 0; i < w->n; i++) CHECK_EQ(atomic_load(&w->of[i].runs), 1);
    return FJ_OK;
}

static void wide_in(fj_pool *p, long n, bool oldest_first)
{
    struct wide w = {.n = n, .oldest_first = oldest_first};

    w.of = calloc((size_t)n, sizeof *w.of);
    CHECK(w.of != NULL);
    fj_task_init(&w.task, wide_run);
    CHECK_EQ(fj_invoke_by(p, &w.task, FJ_CALLER_BLOCKS), FJ_OK);
    free(w.of);
}

static void deep_and_wide(fj_pool *p)
{
    struct chain c = {.depth = 1000};
    long r = 0;

    fj_task_init(&c.task, chain_run);
    CHECK_EQ(fj_invoke_by(p, &c.task, FJ_CALLER_BLOCKS), FJ_OK);
    CHECK_EQ(c.result, 1000);
    CHECK_EQ(typed_chain_invoke(p, &r, 1000), FJ_OK);
    CHECK_EQ(r, 1000);
    wide_in(p, WIDE, false);
    wide_in(p, WIDE, true);
}

FJ_TEST(queue_that_cannot_grow_runs_tasks_at_their_fork, 60)
{
    need_faults();
    for (int n = 1; n <= 4; n++) {
        fj_pool *p = fjt_pool(n, 0);
        trap_all_at_once(p, n); /* so that every worker has its queue */
        fji_fault_set(FJI_FAULT_COMMIT, 1, LONG_MAX);
        for (long round = 0; round < fjt_rounds(20); round++) deep_and_wide(p);
        fji_fault_set(FJI_FAULT_COMMIT, 1, 0);
        deep_and_wide(p); /* and grows again when it can */
        fjt_destroy(p);
    }
}

static int submit_many(fj_task *t)
{
    struct wide *w = (struct wide *)t;
    long accepted = 0;

    for (; accepted < w->n; accepted++) {
        fj_task_init(&w->of[accepted].task, counted_run);
        if (!enough(fj_submit(fj_current_pool(), &w->of[accepted].task))) break;
    }
    CHECK(accepted < w->n); /* there was no room for so many */
    for (long i = accepted; i-- > 0;) CHECK_EQ(fj_join(&w->of[i].task), FJ_OK);
    for (long i = 0; i < w->n; i++) CHECK_EQ(atomic_load(&w->of[i].runs), i < accepted);
    return FJ_OK;
}

FJ_TEST(queue_that_cannot_grow_refuses_a_submission_and_runs_the_others, 60)
{
    need_faults();
    fj_pool *p = fjt_pool(1, 0);
    struct wide w = {.n = WIDE};

    w.of = calloc(WIDE, sizeof *w.of);
    CHECK(w.of != NULL);
    trap_all_at_once(p, 1);
    fji_fault_set(FJI_FAULT_COMMIT, 1, LONG_MAX);
    fj_task_init(&w.task, submit_many);
    CHECK_EQ(fj_invoke_by(p, &w.task, FJ_CALLER_BLOCKS), FJ_OK);
    fji_fault_set(FJI_FAULT_COMMIT, 1, 0);
    free(w.of);
    fjt_destroy(p);
}

/* ---- A small address space ------------------------------------------------------------------- */

static size_t address_space_in_use(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%lu", &pages) != 1) fjt_skip("no /proc/self/statm");
    fclose(f);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

FJ_TEST(small_address_space_gets_small_queues_that_work, 60)
{
    if (fjt_sanitized()) fjt_skip("a sanitizer needs a large address space");
    fj_pool_options o = FJ_POOL_OPTIONS_INIT;
    rlim_t limit = address_space_in_use() + (24u << 20);
    struct rlimit as = {limit, limit};

    o.parallelism = 2;
    o.stack_bytes = 512u << 10;
    CHECK_EQ(setrlimit(RLIMIT_AS, &as), 0);
    for (long round = 0; round < fjt_rounds(50); round++) {
        fj_pool *p = fjt_pool_with(&o);
        deep_and_wide(p);
        fjt_destroy(p);
    }
}

/* ---- Memory that others look at --------------------------------------------------------------- */

FJ_TEST(growth_under_thieves_runs_every_task_once, 60)
{
    static const unsigned flags[] = {0, FJ_POOL_FIFO, FJ_POOL_SYMMETRIC};

    for (int i = 0; i < 3; i++) {
        fj_pool *p = fjt_pool(8, flags[i]);
        trap_all_at_once(p, 8);
        for (long round = 0; round < fjt_rounds(3); round++)
            wide_in(p, fjt_sanitized() ? 20000 : 100000, false);
        wide_in(p, 5000, true); /* fewer: each of these joins looks for the end of the queue */
        fjt_destroy(p);
    }
}

/* A guest that looks through all queues, again and again. */
static atomic_bool scan_on;

static int scan_run(fj_task *t)
{
    (void)t;
    while (atomic_load(&scan_on)) fj_help_quiesce();
    return FJ_OK;
}

static void *scan_main(void *pool)
{
    fj_task t;

    fj_task_init(&t, scan_run);
    CHECK_EQ(fj_invoke_by(pool, &t, FJ_CALLER_HELPS), FJ_OK);
    return NULL;
}

FJ_TEST(records_of_trimmed_workers_are_used_again_while_they_are_scanned, 60)
{
    fj_pool_options o = FJ_POOL_OPTIONS_INIT;

    o.parallelism = 8;
    o.keep_alive_ns = 20000000;
    fj_pool *p = fjt_pool_with(&o);
    atomic_store(&scan_on, true);
    pthread_t scanner = trap_thread(scan_main, p);
    uint64_t wanted = (uint64_t)fjt_rounds(208);
    while (trap_started(p) < wanted) {
        trap_all_at_once(p, 8);
        UNTIL(fj_pool_size(p) == 0);
    }
    atomic_store(&scan_on, false);
    pthread_join(scanner, NULL);
    wide_in(p, WIDE, false);
    CHECK(fji_load_acquire(&p->workers) <= 16); /* records are not made for each thread anew */
    fjt_destroy(p);
}

/* The same two tasks at the same two addresses, and a thief that may be late by any number of
 * rounds. */
static int reuse_run(fj_task *t)
{
    struct counted a = {.runs = 0}, b = {.runs = 0};
    long rounds = ((struct chain *)t)->depth;

    fj_task_init(&a.task, counted_run);
    fj_task_init(&b.task, counted_run);
    for (long i = 0; i < rounds; i++) {
        struct counted *x = i % 2 ? &a : &b, *y = i % 2 ? &b : &a;
        fj_fork(&x->task);
        if (i % 3 == 0) {
            fj_fork(&y->task);
            if (fj_join(&y->task) != FJ_OK) return 1;
        } else {
            counted_run(&y->task);
        }
        if (fj_join(&x->task) != FJ_OK) return 2;
        if (atomic_load(&a.runs) != i + 1 || atomic_load(&b.runs) != i + 1) return 3;
    }
    return FJ_OK;
}

FJ_TEST(reused_addresses_of_tasks_are_not_mistaken_for_the_tasks_before, 60)
{
    static const unsigned flags[] = {0, FJ_POOL_SYMMETRIC};

    for (int i = 0; i < 2; i++) {
        for (int n = 2; n <= 4; n += 2) {
            fj_pool *p = fjt_pool(n, flags[i]);
            struct chain c = {.depth = fjt_rounds(fjt_sanitized() ? 20000 : 250000)};
            fj_task_init(&c.task, reuse_run);
            CHECK_EQ(fj_invoke_by(p, &c.task, FJ_CALLER_BLOCKS), FJ_OK);
            fjt_destroy(p);
        }
    }
}
