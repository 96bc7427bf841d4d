/* SPDX-License-Identifier: MIT */
/*
 * churn.c - pools are created, resized and destroyed while they have work
 *
 * Threads create and destroy thousands of pools, shut pools down at random moments while other
 * threads submit, change the number of workers under load, and refuse new threads. In all cases an
 * accepted task ends once: it is run and has the right result, or it is cancelled, but only after
 * fj_pool_shutdown_now(). Every pool ends.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "fjtest.h"

static long rounds(long n)
{
    return fjt_rounds(fjt_sanitized() ? (n + 9) / 10 : n);
}

static int below(uint64_t *state, int n)
{
    return (int)(fjt_random(state) % (uint64_t)n);
}

/* ---- Work ----------------------------------------------------------------------------------- */

#define CUT_SHORT 77 /* the code of a body some of whose children were cancelled */

struct sum {
    fj_task task;
    long from, to, result;
    atomic_int runs;
};

static int sum_run(fj_task *t);

static void sum_init(struct sum *s, long from, long to)
{
    s->from = from, s->to = to, s->result = 0;
    atomic_init(&s->runs, 0);
    fj_task_init(&s->task, sum_run);
}

static int sum_run(fj_task *t)
{
    struct sum *s = (struct sum *)t;
    struct sum a, b;

    CHECK_EQ(atomic_fetch_add(&s->runs, 1), 0);
    if (s->to - s->from == 1) {
        s->result = s->from;
        return FJ_OK;
    }
    long middle = s->from + (s->to - s->from) / 2;
    sum_init(&a, s->from, middle);
    sum_init(&b, middle, s->to);
    fj_fork(&a.task);
    int right = sum_run(&b.task), left = fj_join(&a.task);
    CHECK(left == FJ_OK || left == CUT_SHORT || left == FJ_ECANCELED);
    CHECK_EQ(atomic_load(&a.runs), left != FJ_ECANCELED);
    s->result = a.result + b.result;
    return left == FJ_OK && right == FJ_OK ? FJ_OK : CUT_SHORT;
}

static long sum_of(const struct sum *s)
{
    return (s->to * (s->to - 1) - s->from * (s->from - 1)) / 2;
}

FJ_TASK(long, typed_sum, long, from, long, to)
{
    if (to - from == 1) return from;
    typed_sum_task a;
    typed_sum_fork(FJ, &a, from, from + (to - from) / 2);
    long y = typed_sum_call(FJ, from + (to - from) / 2, to);
    return typed_sum_join(FJ, &a) + y;
}

/* Checks a joined task. It is complete, or it was cancelled because the pool was stopped. */
static void check_sum(struct sum *s, int code, bool stopped)
{
    if (code == FJ_OK) {
        CHECK_EQ(s->result, sum_of(s));
        CHECK_EQ(atomic_load(&s->runs), 1);
        return;
    }
    if (!stopped)
        fjt_fail(__FILE__, __LINE__, "%s, but the pool was not stopped", fj_error_name(code));
    CHECK(code == CUT_SHORT || code == FJ_ECANCELED);
    CHECK_EQ(atomic_load(&s->runs), code == CUT_SHORT);
}

static int count(void *arg)
{
    atomic_fetch_add((atomic_long *)arg, 1);
    return 0;
}

/* ---- Pools with work are created and destroyed ---------------------------------------------- */

enum end { DESTROY, SHUTDOWN, SHUTDOWN_NOW, ENDS };

static fj_pool *random_pool(uint64_t *state, int workers)
{
    static const unsigned flags[] = {0, FJ_POOL_FIFO, FJ_POOL_SYMMETRIC, FJ_POOL_CALLER_HELPS};

    return fjt_pool(1 + below(state, workers), flags[below(state, 4)]);
}

static void end_pool(fj_pool *p, enum end end)
{
    if (end == SHUTDOWN) CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    if (end == SHUTDOWN_NOW) CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
}

#define MOST 20

static void one_short_life(uint64_t *state)
{
    struct sum s[MOST];
    fj_pool *p = random_pool(state, 4);
    enum end end = (enum end)below(state, ENDS);
    int n = below(state, MOST + 1), actions = below(state, 50);
    atomic_long counted = 0;

    for (int i = 0; i < actions; i++) CHECK_EQ(fj_execute(p, count, &counted), FJ_OK);
    for (int i = 0; i < n; i++) {
        sum_init(&s[i], i, i + 1 + below(state, 200));
        CHECK_EQ(fj_submit(p, &s[i].task), FJ_OK);
    }
    if (below(state, 2)) fjt_spin_us(below(state, 60));
    end_pool(p, end);
    for (int i = 0; i < n; i++) check_sum(&s[i], fj_join(&s[i].task), end == SHUTDOWN_NOW);
    fjt_destroy(p);
    if (end != SHUTDOWN_NOW) CHECK_EQ(atomic_load(&counted), actions);
    CHECK(atomic_load(&counted) <= actions);
}

FJ_TEST(pools_with_work_in_them_come_and_go_by_the_thousand, 120)
{
    uint64_t state = fjt_seed();

    for (long i = rounds(2000); i > 0; i--) one_short_life(&state);
}

static void one_life_of_actions(uint64_t *state)
{
    fj_pool *p = random_pool(state, 4);
    int actions = below(state, 200);
    atomic_long counted = 0;

    for (int i = 0; i < actions; i++) CHECK_EQ(fj_execute(p, count, &counted), FJ_OK);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&counted), actions);
}

FJ_TEST(pools_destroyed_at_once_have_run_every_action, 120)
{
    uint64_t state = fjt_seed() + 1;

    for (long i = rounds(2000); i > 0; i--) one_life_of_actions(&state);
}

/* ---- Shut down while others submit ---------------------------------------------------------- */

#define SUBMITTERS 3

struct submitter {
    pthread_t thread;
    fj_pool *pool;
    uint64_t state;
    long accepted;
    atomic_long *counted;
    bool stopped; /* the pool may be stopped with fj_pool_shutdown_now() */
};

static void *submit_until_refused(void *arg)
{
    struct submitter *u = arg;

    for (;;) {
        struct sum s;
        long r = 0, to = 1 + below(&u->state, 100);
        sum_init(&s, 0, to);
        int code, how = below(&u->state, 4);
        if (how == 0) {
            code = fj_execute(u->pool, count, u->counted);
            u->accepted += code == FJ_OK;
        } else if (how == 1) {
            code = typed_sum_invoke(u->pool, &r, 0, to);
            if (code == FJ_OK) CHECK_EQ(r, to * (to - 1) / 2);
        } else {
            code = how == 2 ? fj_invoke(u->pool, &s.task) : fj_submit(u->pool, &s.task);
            if (how == 3 && code == FJ_OK) code = fj_join(&s.task);
            if (code == FJ_EREJECTED)
                CHECK_EQ(atomic_load(&s.runs), 0);
            else
                check_sum(&s, code, u->stopped);
        }
        if (code == FJ_EREJECTED) return NULL;
        CHECK(code == FJ_OK || (u->stopped && (code == CUT_SHORT || code == FJ_ECANCELED)));
    }
}

static void one_contested_life(uint64_t *state)
{
    struct submitter u[SUBMITTERS];
    fj_pool *p = random_pool(state, 4);
    atomic_long counted = 0;
    enum end end = below(state, 2) ? SHUTDOWN : SHUTDOWN_NOW;
    long accepted = 0;

    for (int i = 0; i < SUBMITTERS; i++) {
        u[i] = (struct submitter){.pool = p, .state = fjt_random(state), .counted = &counted};
        u[i].stopped = end == SHUTDOWN_NOW;
        CHECK_EQ(pthread_create(&u[i].thread, NULL, submit_until_refused, &u[i]), 0);
    }
    if (below(state, 2))
        fjt_sleep_us(below(state, 2000));
    else
        fjt_spin_us(below(state, 200));
    end_pool(p, end);
    for (int i = 0; i < SUBMITTERS; i++) {
        pthread_join(u[i].thread, NULL);
        accepted += u[i].accepted;
    }
    fjt_destroy(p);
    if (end == SHUTDOWN) CHECK_EQ(atomic_load(&counted), accepted);
    CHECK(atomic_load(&counted) <= accepted);
}

FJ_TEST(tasks_accepted_by_a_pool_that_ends_meanwhile_end_once, 120)
{
    uint64_t state = fjt_seed() + 2;

    for (long i = rounds(400); i > 0; i--) one_contested_life(&state);
}

/* ---- The number of workers changes ---------------------------------------------------------- */

struct load {
    pthread_t thread;
    fj_pool *pool;
    long rounds;
    atomic_int *busy;
};

static void *compute(void *arg)
{
    const struct load *l = arg;

    for (long i = 0; i < l->rounds; i++) {
        struct sum s;
        long r = 0, n = 3000;
        sum_init(&s, 0, n);
        check_sum(&s, fj_invoke(l->pool, &s.task), false);
        CHECK_EQ(typed_sum_invoke(l->pool, &r, 0, n), FJ_OK);
        CHECK_EQ(r, n * (n - 1) / 2);
    }
    atomic_fetch_sub(l->busy, 1);
    return NULL;
}

static void start_load(struct load *l, int n, fj_pool *p, long each, atomic_int *busy)
{
    atomic_store(busy, n);
    for (int i = 0; i < n; i++) {
        l[i] = (struct load){.pool = p, .rounds = rounds(each), .busy = busy};
        CHECK_EQ(pthread_create(&l[i].thread, NULL, compute, &l[i]), 0);
    }
}

FJ_TEST(results_are_right_while_the_number_of_workers_changes, 120)
{
    uint64_t state = fjt_seed() + 3;
    fj_pool *p = fjt_pool(4, 0);
    struct load l[2];
    atomic_int busy;
    int was = 4;

    start_load(l, 2, p, 1500, &busy);
    while (atomic_load(&busy) > 0) {
        int n = 1 + below(&state, 8);
        CHECK_EQ(fj_pool_set_parallelism(p, n), was);
        was = n;
        CHECK_EQ(fj_pool_parallelism(p), n);
        if (below(&state, 4) == 0)
            fjt_sleep_us(below(&state, 300));
        else
            fjt_spin_us(below(&state, 50));
    }
    for (int i = 0; i < 2; i++) pthread_join(l[i].thread, NULL);
    fjt_destroy(p);
}

/* ---- Threads refused ------------------------------------------------------------------------ */

struct refusal {
    atomic_ullong state;
    int out_of_8; /* of 8 threads, how many are refused on average */
};

static int allow_thread(fj_pool *pool, void *arg)
{
    struct refusal *r = arg;
    uint64_t state = atomic_fetch_add(&r->state, 0x9e3779b97f4a7c15u);
    (void)pool;
    return fjt_random(&state) % 8 >= (uint64_t)r->out_of_8;
}

static fj_pool *refusing_pool(struct refusal *r, int workers)
{
    fj_pool_options o = {0};

    o.parallelism = workers;
    o.allow_thread = allow_thread;
    o.keep_alive_ns = 20000000;
    o.arg = r;
    return fjt_pool_with(&o);
}

static void one_refused_life(uint64_t *state, int out_of_8)
{
    struct refusal r = {.out_of_8 = out_of_8};
    atomic_init(&r.state, fjt_random(state));
    fj_pool *p = refusing_pool(&r, 1 + below(state, 4));
    atomic_long counted = 0;
    int actions = below(state, 20);
    struct sum s[MOST];
    long sum = 0, n = 1 + below(state, 500);

    for (int i = 0; i < actions; i++) CHECK_EQ(fj_execute(p, count, &counted), FJ_OK);
    for (int i = 0; i < MOST; i++) {
        sum_init(&s[i], 0, 1 + below(state, 200));
        CHECK_EQ(fj_submit(p, &s[i].task), FJ_OK);
    }
    CHECK_EQ(typed_sum_invoke(p, &sum, 0, n), FJ_OK);
    CHECK_EQ(sum, n * (n - 1) / 2);
    for (int i = 0; i < MOST; i++) check_sum(&s[i], fj_join(&s[i].task), false);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&counted), actions);
}

FJ_TEST(results_are_right_while_threads_are_refused, 120)
{
    uint64_t state = fjt_seed() + 4;

    for (long i = rounds(1000); i > 0; i--) one_refused_life(&state, 1 + below(&state, 7));
}

FJ_TEST(results_are_right_although_every_thread_is_refused, 120)
{
    uint64_t state = fjt_seed() + 5;

    for (long i = rounds(50); i > 0; i--) one_refused_life(&state, 8);
}

FJ_TEST(results_are_right_while_workers_change_and_threads_are_refused, 120)
{
    uint64_t state = fjt_seed() + 6;
    struct refusal r = {.out_of_8 = 4};
    atomic_init(&r.state, fjt_random(&state));
    fj_pool *p = refusing_pool(&r, 4);
    struct load l[2];
    atomic_int busy;

    start_load(l, 2, p, 1000, &busy);
    while (atomic_load(&busy) > 0) {
        CHECK(fj_pool_set_parallelism(p, 1 + below(&state, 8)) > 0);
        fjt_sleep_us(below(&state, 500));
    }
    for (int i = 0; i < 2; i++) pthread_join(l[i].thread, NULL);
    fjt_destroy(p);
}
