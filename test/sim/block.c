/* SPDX-License-Identifier: MIT */
/*
 * block.c - scenarios of blocked workers, and of workers that run in their place
 */
#include <forkjoin/block.h>
#include <pthread.h>

#include "gate.h"
#include "scenario.h"
#include "sched/pool.h"

static struct gate gate;
static atomic_int done;

static fj_pool *block_pool(int n, int most)
{
    fj_pool_options o = {0};

    o.parallelism = n;
    o.max_threads = most;
    o.spin_ns = -1;
    return fjt_pool_with(&o);
}

static void await(const atomic_int *count, int n)
{
    while (atomic_load(count) < n) sim_sleep_until(sim_now() + 1000000);
}

/* ---- A task is queued while a worker blocks -------------------------------------------------- */

static int blocks(void *arg)
{
    gate_waits[*(int *)arg](&gate);
    atomic_fetch_add(&done, 1);
    return FJ_OK;
}

static int opens(fj_task *t)
{
    (void)t;
    gate_open(&gate, 1);
    return 2;
}

/* Forks the task that opens the gate, and joins it only after it has run on another worker. */
static int forks_and_polls(void *arg)
{
    fj_task t;

    (void)arg;
    fj_task_init(&t, opens);
    fj_fork(&t);
    while (!atomic_load(&gate.open)) sim_yield();
    CHECK_EQ(fj_join(&t), 2);
    atomic_fetch_add(&done, 1);
    return FJ_OK;
}

FJ_TEST(task_forked_while_a_worker_blocks_is_run, 10)
{
    fj_pool *pool = block_pool(2, 3);
    int how = (int)(sim_random() % GATE_WAITS_SIMULATED);

    atomic_store(&done, 0);
    gate_close(&gate, false, NULL);
    CHECK_EQ(fj_execute(pool, blocks, &how), FJ_OK);
    CHECK_EQ(fj_execute(pool, forks_and_polls, NULL), FJ_OK);
    await(&done, 2);
    fjt_destroy(pool);
    gate_end(&gate);
}

/* ---- A joiner sleeps ------------------------------------------------------------------------- */

static atomic_int a_runs, b_ran;

static int polls_for_b(fj_task *t)
{
    (void)t;
    atomic_store(&a_runs, 1);
    while (!atomic_load(&b_ran)) sim_yield();
    return 3;
}

static int is_b(fj_task *t)
{
    (void)t;
    atomic_store(&b_ran, 1);
    return 4;
}

static void joins_a_before_b(void *arg)
{
    fj_task a, b;

    (void)arg;
    fj_task_init(&a, polls_for_b);
    fj_task_init(&b, is_b);
    fj_fork(&a);
    while (!atomic_load(&a_runs)) sim_yield();
    fj_fork(&b);
    CHECK_EQ(fj_join(&a), 3);
    CHECK_EQ(fj_join(&b), 4);
}

FJ_TEST(joiner_that_sleeps_is_replaced, 10)
{
    fj_pool *pool = block_pool(2, 3);

    atomic_store(&a_runs, 0);
    atomic_store(&b_ran, 0);
    scenario_inside(pool, joins_a_before_b, NULL);
    fjt_destroy(pool);
}

/* Joins a task that another worker runs until `b_ran` is set. */
static int joins_a(void *arg)
{
    fj_task a;

    (void)arg;
    fj_task_init(&a, polls_for_b);
    fj_fork(&a);
    while (!atomic_load(&a_runs)) sim_yield();
    CHECK_EQ(fj_join(&a), 3);
    atomic_fetch_add(&done, 1);
    return FJ_OK;
}

/* Forks the task that sets `b_ran`, and joins it only after it has run on another worker. */
static int forks_b_and_polls(void *arg)
{
    fj_task b;

    (void)arg;
    fj_task_init(&b, is_b);
    fj_fork(&b);
    while (!atomic_load(&b_ran)) sim_yield();
    CHECK_EQ(fj_join(&b), 4);
    atomic_fetch_add(&done, 1);
    return FJ_OK;
}

/* Two of three workers poll, and the third one waits in a join and may not run b, so b needs a
 * fourth thread. The joiner may share the heavy fence of another worker. */
FJ_TEST(task_forked_while_a_joiner_shares_a_fence_is_run, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 3;
    o.max_threads = 4;
    o.spin_ns = 200;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&done, 0);
    atomic_store(&a_runs, 0);
    atomic_store(&b_ran, 0);
    CHECK_EQ(fj_execute(pool, joins_a, NULL), FJ_OK);
    CHECK_EQ(fj_execute(pool, forks_b_and_polls, NULL), FJ_OK);
    await(&done, 2);
    fjt_destroy(pool);
}

/* ---- The start of a replacement is refused --------------------------------------------------- */

static int way;

static void waits_for_its_child(void *arg)
{
    fj_task t;

    (void)arg;
    fj_task_init(&t, opens);
    fj_fork(&t);
    gate_waits[way](&gate);
    CHECK_EQ(fj_join(&t), 2);
}

/* After the refusal no thread calls the pool again, so the blocked worker has to ask for a
 * thread again. */
FJ_TEST(refused_replacement_is_asked_for_again, 10)
{
    fj_pool *pool = block_pool(1, 3);

    way = (int)(sim_random() % GATE_WAITS_SIMULATED);
    gate_close(&gate, false, NULL);
    fji_fault_set(FJI_FAULT_THREAD, 1 + (long)(sim_random() % 3), 1 + (long)(sim_random() % 4));
    scenario_inside(pool, waits_for_its_child, NULL);
    fjt_destroy(pool);
    gate_end(&gate);
}

/* The same while another thread is about to start a thread and is refused. Until the refusal the
 * control word counts that thread as active. */
static int does_nothing(void *arg)
{
    (void)arg;
    return FJ_OK;
}

static void *submits_an_action(void *pool)
{
    for (uint32_t n = sim_random() % 40; n > 0; n--) sim_yield();
    CHECK_EQ(fj_execute(pool, does_nothing, NULL), FJ_OK);
    return NULL;
}

FJ_TEST(replacement_is_asked_for_again_though_another_start_is_under_way, 10)
{
    fj_pool *pool = block_pool(1, 3);
    pthread_t t;

    way = (int)(sim_random() % GATE_WAITS_SIMULATED);
    gate_close(&gate, false, NULL);
    fji_fault_set(FJI_FAULT_THREAD, 2, 2 + (long)(sim_random() % 3));
    CHECK_EQ(pthread_create(&t, NULL, submits_an_action, pool), 0);
    scenario_inside(pool, waits_for_its_child, NULL);
    pthread_join(t, NULL);
    fjt_destroy(pool);
    gate_end(&gate);
}

/* The worker blocks before a task is queued, and the submission is the last call of the pool. So
 * the thread of the timers has to ask for a thread again. */
static atomic_int refusals;

static int refuses_some(fj_pool *p, void *arg)
{
    (void)p, (void)arg;
    return atomic_fetch_sub(&refusals, 1) <= 0;
}

static int opens_for_one(void *arg)
{
    (void)arg;
    gate_open(&gate, 1);
    return FJ_OK;
}

static int waits_at_the_gate(void *arg)
{
    (void)arg;
    atomic_fetch_add(&done, 1);
    gate_waits[way](&gate);
    atomic_fetch_add(&done, 1);
    return FJ_OK;
}

FJ_TEST(submission_whose_thread_is_refused_is_run_while_the_worker_is_blocked, 10)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.max_threads = 3;
    o.spin_ns = -1;
    o.allow_thread = refuses_some;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&done, 0);
    atomic_store(&refusals, 0);
    way = (int)(sim_random() % GATE_WAITS_SIMULATED);
    gate_close(&gate, false, NULL);
    /* In half of the runs the thread of the timers exists already, and sleeps. */
    bool sleeps_already = sim_random() % 2 == 0;
    fj_future *far = NULL;
    if (sleeps_already)
        CHECK_EQ(fj_schedule_action(pool, does_nothing, NULL, FJ_FOREVER, &far), FJ_OK);
    CHECK_EQ(fj_execute(pool, waits_at_the_gate, NULL), FJ_OK);
    await(&done, 1);
    atomic_store(&refusals, 1 + (int)(sim_random() % 3));
    CHECK_EQ(fj_execute(pool, opens_for_one, NULL), FJ_OK);
    await(&done, 2);
    if (sleeps_already) CHECK_EQ(fj_future_cancel(far, 0), 1);
    fj_future_unref(far);
    fjt_destroy(pool);
    gate_end(&gate);
}

/*
 * The pool may have three threads. One worker computes, so the thread of the timers does not watch
 * the pool. The second worker blocks while the start of the third is under way: the control word
 * counts three threads, so the wake-up bit is clear. The start is refused while the second worker
 * asks whether a worker is missing. After that no thread calls the pool again, so the second worker
 * has to ask for a thread. Otherwise all threads sleep.
 */
static uint32_t begun, asked, opener_ran, ended;
static atomic_int refuses_next;
static sem_t opener;

static int refuses_while_a_worker_blocks(fj_pool *p, void *arg)
{
    (void)p, (void)arg;
    if (atomic_exchange(&refuses_next, 0) == 0) return 1;
    scenario_add(&asked);
    for (uint32_t n = sim_random() % 12; n > 0; n--) sim_yield();
    return 0;
}

static int computes_until_the_opener_ran(void *arg)
{
    (void)arg;
    scenario_add(&begun);
    scenario_await(&opener_ran, 1);
    scenario_add(&ended);
    return FJ_OK;
}

static int blocks_while_a_start_is_under_way(void *arg)
{
    (void)arg;
    scenario_add(&begun);
    scenario_await(&asked, 1);
    CHECK_EQ(fj_block_sem_wait(&opener, FJ_FOREVER), FJ_OK);
    scenario_add(&ended);
    return FJ_OK;
}

static int posts_the_opener(void *arg)
{
    (void)arg;
    scenario_add(&opener_ran);
    sem_post(&opener);
    return FJ_OK;
}

FJ_TEST(start_that_is_refused_while_a_blocked_worker_asks_is_made_again, 10)
{
    fj_pool_options o = {0};

    o.parallelism = o.max_threads = 3;
    o.spin_ns = -1;
    o.allow_thread = refuses_while_a_worker_blocks;
    fj_pool *pool = fjt_pool_with(&o);
    sem_init(&opener, 0, 0);
    CHECK_EQ(fj_execute(pool, computes_until_the_opener_ran, NULL), FJ_OK);
    scenario_await(&begun, 1);
    CHECK_EQ(fj_execute(pool, blocks_while_a_start_is_under_way, NULL), FJ_OK);
    scenario_await(&begun, 2);
    atomic_store(&refuses_next, 1);
    CHECK_EQ(fj_execute(pool, posts_the_opener, NULL), FJ_OK);
    scenario_await(&ended, 2);
    fjt_destroy(pool);
}

/* ---- Counts of blocked workers --------------------------------------------------------------- */

static int sleeps(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_sleep_ns(1000), FJ_OK);
    atomic_fetch_add(&done, 1);
    return FJ_OK;
}

/* Workers block and become active again while others replace them. No worker may count as
 * blocked in the end; the library checks that when the pool ends. */
FJ_TEST(workers_that_were_blocked_count_as_before, 10)
{
    fj_pool *pool = block_pool(2, 4);

    atomic_store(&done, 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(fj_execute(pool, sleeps, NULL), FJ_OK);
    await(&done, 4);
    fjt_destroy(pool);
}

/* ---- A saturated pool ------------------------------------------------------------------------ */

static int refuses(fj_pool *p, void *arg)
{
    (void)p, (void)arg;
    return 0;
}

static void joins_elsewhere(void *arg)
{
    fj_task t;

    fj_task_init(&t, opens);
    CHECK_EQ(fj_submit(arg, &t), FJ_OK);
    CHECK_EQ(fj_join(&t), 2);
}

/* A join cannot fail, so the worker waits although allow_saturation refuses. It counts as
 * blocked until the wait ends. */
FJ_TEST(join_in_a_saturated_pool_counts_as_a_block, 10)
{
    fj_pool_options o = {0};
    fj_pool *other = block_pool(1, 2);

    o.parallelism = o.max_threads = o.min_runnable = 1;
    o.allow_saturation = refuses;
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    gate_close(&gate, false, NULL);
    scenario_inside(pool, joins_elsewhere, other);
    CHECK_EQ(__atomic_load_n(&pool->blocked, __ATOMIC_RELAXED), 0);
    fjt_destroy(pool);
    fjt_destroy(other);
    gate_end(&gate);
}
