/* SPDX-License-Identifier: MIT */
/*
 * wake.c - a worker wakes for every task, and workers without work stay asleep
 *
 * After a lost wake-up a test hangs. Most of these tests are loops in which a round ends only if
 * the pool has woken or started a worker for each task. The timing of the producer varies around
 * the moment at which a worker goes idle.
 */
#define _GNU_SOURCE
#include "regression.h"

static fj_pool *pool_without_spin(int n, unsigned flags)
{
    fj_pool_options o = {0};

    o.parallelism = n;
    o.flags = flags;
    o.spin_ns = -1;
    return fjt_pool_with(&o);
}

/* ---- One task, one worker about to go idle ---------------------------------------------- */

static void submit_one_by_one(fj_pool *p, long rounds, int pause_ns)
{
    uint64_t seed = fjt_seed();
    atomic_int ran = 0;

    for (long i = 0; i < rounds; i++) {
        CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
        UNTIL(atomic_load(&ran) == (int)(i + 1));
        regression_spin_ns(regression_below(&seed, pause_ns));
    }
    fjt_destroy(p);
}

FJ_TEST(a_submission_is_seen_by_a_worker_going_idle, 60)
{
    submit_one_by_one(pool_without_spin(1, 0), fjt_rounds(200000), 2000);
}

FJ_TEST(a_submission_is_seen_at_the_end_of_the_search, 60)
{
    submit_one_by_one(fjt_pool(1, 0), fjt_rounds(40000), 2 * FJI_SPIN_NS);
}

struct said {
    fj_task task;
    atomic_int ran;
};

static int say(fj_task *t)
{
    atomic_store(&((struct said *)t)->ran, 1);
    return FJ_OK;
}

struct lone_forks {
    fj_task task;
    long rounds;
};

/* Forks one task at a time and waits, without calling the library, until another worker has run
 * it. */
static int fork_one_by_one(fj_task *t)
{
    uint64_t seed = fjt_seed();

    for (long i = 0; i < ((struct lone_forks *)t)->rounds; i++) {
        struct said s = {.ran = 0};
        fj_task_init(&s.task, say);
        fj_fork(&s.task);
        UNTIL(atomic_load(&s.ran));
        CHECK_EQ(fj_join(&s.task), FJ_OK);
        regression_spin_ns(regression_below(&seed, 3000));
    }
    return FJ_OK;
}

static void fork_beside_an_idler(unsigned flags)
{
    fj_pool *p = pool_without_spin(2, flags);
    struct lone_forks f = {.rounds = fjt_rounds(100000)};

    fj_task_init(&f.task, fork_one_by_one);
    CHECK_EQ(fj_invoke(p, &f.task), FJ_OK);
    fjt_destroy(p);
}

FJ_TEST(a_fork_is_seen_by_a_worker_going_idle, 60)
{
    fork_beside_an_idler(0);
}

FJ_TEST(a_fork_is_seen_by_a_worker_going_idle_with_full_fences, 60)
{
    fork_beside_an_idler(FJ_POOL_SYMMETRIC);
}

FJ_TEST(a_fork_is_seen_by_a_worker_going_idle_fifo, 60)
{
    fork_beside_an_idler(FJ_POOL_FIFO);
}

/* ---- Pairs: a queue that was not empty still needs a wake-up ---------------------------- */

struct pair {
    atomic_int second, done;
};

static int pair_first(void *arg)
{
    struct pair *p = arg;
    UNTIL(atomic_load(&p->second));
    atomic_fetch_add(&p->done, 1);
    return FJ_OK;
}

static int pair_second(void *arg)
{
    struct pair *p = arg;
    atomic_store(&p->second, 1);
    atomic_fetch_add(&p->done, 1);
    return FJ_OK;
}

FJ_TEST(the_second_of_a_pair_gets_a_worker_of_its_own, 60)
{
    fj_pool *p = pool_without_spin(2, 0);
    uint64_t seed = fjt_seed();

    for (long i = fjt_rounds(20000); i > 0; i--) {
        struct pair pair = {.second = 0};
        CHECK_EQ(fj_execute(p, pair_first, &pair), FJ_OK);
        regression_spin_ns(regression_below(&seed, 2) * regression_below(&seed, 3000));
        CHECK_EQ(fj_execute(p, pair_second, &pair), FJ_OK);
        UNTIL(atomic_load(&pair.done) == 2);
    }
    fjt_destroy(p);
}

/* The same with both actions pushed into a worker's own queue. */
static int push_pairs(void *arg)
{
    for (long i = fjt_rounds(20000); i > 0; i--) {
        struct pair pair = {.second = 0};
        CHECK_EQ(fj_execute(fj_current_pool(), pair_first, &pair), FJ_OK);
        CHECK_EQ(fj_execute(fj_current_pool(), pair_second, &pair), FJ_OK);
        UNTIL(atomic_load(&pair.done) == 2);
    }
    return regression_count(arg);
}

FJ_TEST(the_second_of_a_pair_from_inside_gets_a_worker_of_its_own, 60)
{
    fj_pool *p = pool_without_spin(3, 0);
    atomic_int done = 0;

    CHECK_EQ(fj_execute(p, push_pairs, &done), FJ_OK);
    UNTIL(atomic_load(&done));
    fjt_destroy(p);
}

/* ---- Starvation ------------------------------------------------------------------------- */

struct await_count {
    fj_task task;
    atomic_long *count;
    long seen;
};

static int await_count(fj_task *t)
{
    struct await_count *a = (struct await_count *)t;
    UNTIL(atomic_load(a->count) != a->seen);
    return FJ_OK;
}

static int noop(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

/* The first task ends only after the second was joined, so two workers must have started. */
static void starve(unsigned flags)
{
    fj_pool *p = fjt_pool(2, flags);
    long rounds = fjt_rounds(40000);
    atomic_long count = 0;

    for (long i = 0; i < rounds; i++) {
        struct await_count first = {.count = &count, .seen = i};
        fj_task second;
        fj_task_init(&first.task, await_count);
        fj_task_init(&second, noop);
        CHECK_EQ(fj_submit(p, &first.task), FJ_OK);
        CHECK_EQ(fj_submit(p, &second), FJ_OK);
        CHECK_EQ(fj_join(&second), FJ_OK);
        atomic_store(&count, i + 1);
        CHECK_EQ(fj_join(&first.task), FJ_OK);
    }
    fjt_destroy(p);
}

FJ_TEST(a_noop_behind_a_waiting_task_is_run, 120)
{
    starve(0);
}

FJ_TEST(a_noop_behind_a_waiting_task_is_run_fifo, 120)
{
    starve(FJ_POOL_FIFO);
}

/* ---- k spinning tasks and one that releases them ---------------------------------------- */

#define MOST_SPINNERS 8

struct spinner {
    fj_task task;
    atomic_int *released, *ended;
};

static int spin_or_release(fj_task *t, bool release)
{
    struct spinner *s = (struct spinner *)t;
    if (release) atomic_store(s->released, 1);
    UNTIL(atomic_load(s->released));
    atomic_fetch_add(s->ended, 1);
    return FJ_OK;
}

static int spinner_run(fj_task *t)
{
    return spin_or_release(t, false);
}

static int releaser_run(fj_task *t)
{
    return spin_or_release(t, true);
}

struct spinners {
    fj_task task;
    struct spinner all[MOST_SPINNERS + 1];
    atomic_int released, ended;
    int k;
};

static void spinners_init(struct spinners *s, int k)
{
    s->k = k;
    atomic_store(&s->released, 0);
    atomic_store(&s->ended, 0);
    for (int i = 0; i <= k; i++) {
        fj_task_init(&s->all[i].task, i < k ? spinner_run : releaser_run);
        s->all[i].released = &s->released;
        s->all[i].ended = &s->ended;
    }
}

/* Forks all tasks and waits, without calling the library, until other workers have run them all. */
static int spinners_fork(fj_task *t)
{
    struct spinners *s = (struct spinners *)t;

    for (int i = 0; i <= s->k; i++) fj_fork(&s->all[i].task);
    UNTIL(atomic_load(&s->ended) == s->k + 1);
    for (int i = s->k; i >= 0; i--) CHECK_EQ(fj_join(&s->all[i].task), FJ_OK);
    return FJ_OK;
}

static void spin_all_but_one(unsigned flags, bool inside)
{
    for (int k = 1; k <= MOST_SPINNERS; k++) {
        fj_pool *p = fjt_pool(k + 1 + inside, flags);
        for (long round = fjt_rounds(400); round > 0; round--) {
            struct spinners s;
            spinners_init(&s, k);
            fj_task_init(&s.task, spinners_fork);
            if (inside) {
                CHECK_EQ(fj_invoke_mode(p, &s.task, FJ_CALLER_BLOCKS), FJ_OK);
                continue;
            }
            for (int i = 0; i <= k; i++) CHECK_EQ(fj_submit(p, &s.all[i].task), FJ_OK);
            for (int i = 0; i <= k; i++) CHECK_EQ(fj_join(&s.all[i].task), FJ_OK);
        }
        fjt_destroy(p);
    }
}

FJ_TEST(a_task_behind_k_spinning_ones_is_run, 60)
{
    spin_all_but_one(0, false);
}

FJ_TEST(a_task_behind_k_spinning_ones_is_run_fifo, 60)
{
    spin_all_but_one(FJ_POOL_FIFO, false);
}

FJ_TEST(a_fork_behind_k_spinning_ones_is_run, 60)
{
    spin_all_but_one(0, true);
}

FJ_TEST(a_fork_behind_k_spinning_ones_is_run_fifo, 60)
{
    spin_all_but_one(FJ_POOL_FIFO, true);
}

/* ---- The idle stack --------------------------------------------------------------------- */

#define MANY 64

struct waker {
    fj_pool *pool;
    long rounds;
    uint64_t seed;
};

static void *wake_by_single_tasks(void *arg)
{
    struct waker *k = arg;

    for (long i = 0; i < k->rounds; i++) {
        atomic_int ran = 0;
        CHECK_EQ(fj_execute(k->pool, regression_count, &ran), FJ_OK);
        UNTIL(atomic_load(&ran));
        regression_spin_ns(regression_below(&k->seed, 30000));
    }
    return NULL;
}

/* Three threads wake 64 workers one by one. In between the test checks the counts. */
static void wake_many(uint32_t pushes_before_the_wrap)
{
    fj_pool *p = pool_without_spin(MANY, 0);
    struct waker k[3];
    pthread_t t[3];

    if (pushes_before_the_wrap != 0) {
        uint64_t version = ((uint64_t)1 << FJI_CTL_VERSION_BITS) - pushes_before_the_wrap;
        p->ctl |= version << FJI_CTL_VERSION_SHIFT;
    }
    for (int part = 0; part < 10; part++) {
        regression_all_at_once(p, MANY);
        regression_rest(p);
        CHECK_EQ(regression_total(p), MANY);
        for (int i = 0; i < 3; i++) {
            k[i] = (struct waker){p, fjt_rounds(600), fjt_seed() + (uint64_t)i};
            t[i] = regression_thread(wake_by_single_tasks, &k[i]);
        }
        for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
        regression_rest(p);
        CHECK_EQ(regression_total(p), MANY);
    }
    fjt_destroy(p);
}

FJ_TEST(every_idle_worker_is_on_the_idle_stack_once, 60)
{
    wake_many(0);
}

FJ_TEST(the_idle_stack_survives_the_wrap_of_its_version, 60)
{
    wake_many(1000);
}

/* ---- An idle pool uses no CPU time ------------------------------------------------------ */

static void check_cold(unsigned flags)
{
    fj_pool *p = fjt_pool(8, flags);

    for (int i = 0; i < 20; i++) regression_all_at_once(p, 8);
    fjt_sleep_us(100000);
    int64_t before = fjt_cpu();
    fjt_sleep_us(2000000);
    int64_t used = fjt_cpu() - before;
    /* Sanitizers have threads of their own. */
    if (!fjt_sanitized() && used >= 5000000)
        fjt_fail(__FILE__, __LINE__, "%lld us of CPU in 2 s", (long long)used / 1000);
    fjt_destroy(p);
}

FJ_TEST(an_idle_pool_uses_no_cpu, 30)
{
    check_cold(0);
}

FJ_TEST(an_idle_fifo_pool_uses_no_cpu, 30)
{
    check_cold(FJ_POOL_FIFO);
}

/* ---- A worker that always has tasks of its own ------------------------------------------ */

struct feeder {
    atomic_int enough, over;
};

static int feed_itself(void *arg)
{
    struct feeder *f = arg;

    if (atomic_load(&f->enough)) return regression_count(&f->over);
    CHECK_EQ(fj_execute(fj_current_pool(), feed_itself, f), FJ_OK);
    return FJ_OK;
}

/* Only a submission can end the feeder, on the only worker of the pool. */
static int say_enough(void *arg)
{
    atomic_store(&((struct feeder *)arg)->enough, 1);
    return FJ_OK;
}

static void outvoice_a_feeder(unsigned flags)
{
    fj_pool *p = fjt_pool(1, flags);

    for (long i = fjt_rounds(500); i > 0; i--) {
        struct feeder f = {.enough = 0};
        CHECK_EQ(fj_execute(p, feed_itself, &f), FJ_OK);
        fjt_spin_us(i % 100);
        CHECK_EQ(fj_execute(p, say_enough, &f), FJ_OK);
        UNTIL(atomic_load(&f.over));
    }
    fjt_destroy(p);
}

FJ_TEST(a_worker_that_feeds_itself_still_takes_submissions, 30)
{
    outvoice_a_feeder(0);
}

FJ_TEST(a_fifo_worker_that_feeds_itself_still_takes_submissions, 30)
{
    outvoice_a_feeder(FJ_POOL_FIFO);
}

/* ---- A long leaf ------------------------------------------------------------------------ */

#define OFFERS 10

/* Makes enough pairs of fork and join to close the worker's own queue again. */
static int close_own_queue(void)
{
    for (int i = 0; i < 2 * FJI_CLOSE_AFTER; i++) {
        fj_task t;
        fj_task_init(&t, noop);
        fj_fork(&t);
        CHECK_EQ(fj_join(&t), FJ_OK);
    }
    return FJ_OK;
}

struct leaf {
    fj_task task;
    int64_t least_ns;
};

/* After the forks it does not call the library until other workers have started all the tasks. */
static int long_leaf(fj_task *t)
{
    struct said s[OFFERS];
    int64_t end = fjt_now() + ((struct leaf *)t)->least_ns;

    close_own_queue();
    for (int i = 0; i < OFFERS; i++) {
        atomic_init(&s[i].ran, 0);
        fj_task_init(&s[i].task, say);
        fj_fork(&s[i].task);
    }
    for (int i = 0; i < OFFERS; i++) UNTIL(atomic_load(&s[i].ran));
    while (fjt_now() < end) {}
    for (int i = OFFERS; i-- > 0;) CHECK_EQ(fj_join(&s[i].task), FJ_OK);
    return FJ_OK;
}

FJ_TEST(a_long_leaf_does_not_hide_what_it_forked, 60)
{
    fj_pool *p = fjt_pool(3, 0);
    struct leaf leaf = {.least_ns = 50000000};

    fj_task_init(&leaf.task, long_leaf);
    CHECK_EQ(fj_invoke(p, &leaf.task), FJ_OK);
    leaf.least_ns = 0;
    for (long i = fjt_rounds(500); i > 0; i--) CHECK_EQ(fj_invoke(p, &leaf.task), FJ_OK);
    fjt_destroy(p);
}

FJ_VOID_TASK(typed_say, atomic_int *, count)
{
    (void)fj_w, (void)fj_p;
    atomic_fetch_add(count, 1);
}

FJ_VOID_TASK(typed_leaf, atomic_int *, count)
{
    typed_say_task h[OFFERS];

    for (int i = 0; i < OFFERS; i++) typed_say_fork(FJ, &h[i], count);
    UNTIL(atomic_load(count) == OFFERS);
    for (int i = OFFERS; i-- > 0;) typed_say_join(FJ, &h[i]);
}

FJ_TEST(a_long_typed_leaf_does_not_hide_what_it_forked, 60)
{
    fj_pool *p = fjt_pool(3, 0);

    for (long i = fjt_rounds(3000); i > 0; i--) {
        atomic_int count = 0;
        CHECK_EQ(typed_leaf_invoke(p, &count), FJ_OK);
        CHECK_EQ(atomic_load(&count), OFFERS);
    }
    fjt_destroy(p);
}
