/* SPDX-License-Identifier: MIT */
/*
 * mixed.c - plain and typed tasks in one recursion, with submissions by workers between them
 *
 * Typed code keeps its position in the queue in registers. Plain code and submissions push into the
 * same queue, below and above that position. So each of them puts tasks where the others do not
 * expect any.
 */
#include <string.h>

#include "inside.h"

/* ---- Small tasks of both tiers -------------------------------------------------------------- */

struct leaf {
    fj_task task;
    long value, result;
    atomic_int runs;
};

static int leaf_run(fj_task *t)
{
    struct leaf *l = (struct leaf *)t;

    atomic_fetch_add(&l->runs, 1);
    l->result = l->value + 1;
    return FJ_OK;
}

static void leaf_init(struct leaf *l, long value)
{
    memset(l, 0, sizeof *l);
    fj_task_init(&l->task, leaf_run);
    l->value = value;
}

/* Forks n plain tasks and joins them, oldest or youngest first. Returns the sum of 1 to n. */
static long plain_sum(int n, bool oldest)
{
    struct leaf l[40];
    long sum = 0;

    for (int i = 0; i < n; i++) {
        leaf_init(&l[i], i);
        fj_fork(&l[i].task);
    }
    for (int i = 0; i < n; i++) {
        struct leaf *it = &l[oldest ? i : n - 1 - i];
        CHECK_EQ(fj_join(&it->task), FJ_OK);
        CHECK_EQ(atomic_load(&it->runs), 1);
        sum += it->result;
    }
    return sum;
}

FJ_TASK(long, sum_to, int, n)
{
    if (n == 0) return 0;
    sum_to_task a;
    sum_to_fork(FJ, &a, n / 2);
    long own = 0;
    for (int i = n / 2 + 1; i <= n; i++) own += i;
    return own + sum_to_join(FJ, &a);
}

/* ---- Plain tasks inside typed ones ----------------------------------------------------------- */

FJ_TASK(long, plain_between, int, n)
{
    if (n == 0) return 0;
    plain_between_task a, b;
    long sum = plain_sum(n % 7, n % 2 == 0);
    plain_between_fork(FJ, &a, n - 1);
    sum += plain_sum(n % 5, n % 2 == 1);
    plain_between_fork(FJ, &b, n / 2);
    sum += plain_sum(n % 9, n % 3 == 1);
    sum += n % 2 == 0 ? plain_between_join(FJ, &a) : plain_between_join(FJ, &b);
    sum += plain_sum(n % 4, true);
    sum += n % 2 == 0 ? plain_between_join(FJ, &b) : plain_between_join(FJ, &a);
    return sum + plain_sum(n % 3, true);
}

static long up_to(int n)
{
    return (long)n * (n + 1) / 2;
}

static long between_serial(int n)
{
    if (n == 0) return 0;
    return up_to(n % 7) + up_to(n % 5) + up_to(n % 9) + up_to(n % 4) + up_to(n % 3) +
           between_serial(n - 1) + between_serial(n / 2);
}

static void check_plain_between(fj_pool *pool)
{
    for (int n = 1; n <= 20; n++) {
        long r = 0;
        CHECK_EQ(plain_between_invoke(pool, &r, n), FJ_OK);
        CHECK_EQ(r, between_serial(n));
    }
}

FJ_TEST(plain_forks_between_typed_ones_come_out_right, 60)
{
    on_pools(check_plain_between);
}

/* ---- Typed tasks inside plain ones ----------------------------------------------------------- */

static void typed_between(void *arg)
{
    fj_pool *pool = arg;
    struct leaf a, b;

    for (int n = 0; n < 300; n++) {
        long r = 0;
        leaf_init(&a, n);
        leaf_init(&b, n + 1);
        fj_fork(&a.task);
        CHECK_EQ(sum_to_invoke(pool, &r, n), FJ_OK);
        CHECK_EQ(r, up_to(n));
        fj_fork(&b.task);
        CHECK_EQ(sum_to_invoke(fj_current_pool(), &r, n + 1), FJ_OK);
        CHECK_EQ(r, up_to(n + 1));
        CHECK_EQ(fj_join(n % 2 == 0 ? &a.task : &b.task), FJ_OK);
        CHECK_EQ(sum_to_invoke(pool, &r, n + 2), FJ_OK);
        CHECK_EQ(r, up_to(n + 2));
        CHECK_EQ(fj_join(n % 2 == 0 ? &b.task : &a.task), FJ_OK);
        CHECK(a.result == n + 1 && b.result == n + 2);
    }
}

static void check_typed_between(fj_pool *pool)
{
    inside(pool, typed_between, pool);
}

FJ_TEST(typed_forks_between_plain_ones_come_out_right, 30)
{
    on_pools(check_typed_between);
}

/* ---- Both, nested deeply --------------------------------------------------------------------- */

struct step {
    fj_task task;
    int n;
    long result;
};

static int step_run(fj_task *t);

/* Typed and plain steps alternate. Each keeps a task in the queue below the next step. */
FJ_TASK(long, typed_step, int, n)
{
    if (n == 0) return 0;
    sum_to_task a;
    struct step s = {.n = n - 1};
    sum_to_fork(FJ, &a, n);
    fj_task_init(&s.task, step_run);
    fj_fork(&s.task);
    long sum = plain_sum(2, true);
    CHECK_EQ(fj_join(&s.task), FJ_OK);
    return sum + s.result + sum_to_join(FJ, &a);
}

static int step_run(fj_task *t)
{
    struct step *s = (struct step *)t;
    struct leaf l;
    long r = 0;

    if (s->n == 0) return FJ_OK;
    leaf_init(&l, s->n);
    fj_fork(&l.task);
    int err = typed_step_invoke(fj_current_pool(), &r, s->n - 1);
    CHECK_EQ(fj_join(&l.task), FJ_OK);
    s->result = r + l.result;
    return err;
}

static long steps_serial(int n, bool typed)
{
    if (n == 0) return 0;
    return (typed ? 3 + up_to(n) : n + 1) + steps_serial(n - 1, !typed);
}

static void check_steps(fj_pool *pool)
{
    for (int n = 0; n <= 300; n += 25) {
        long r = 0;
        CHECK_EQ(typed_step_invoke(pool, &r, n), FJ_OK);
        CHECK_EQ(r, steps_serial(n, true));
    }
}

FJ_TEST(tiers_take_turns_in_one_recursion, 30)
{
    on_pools(check_steps);
}

/* ---- Submissions by workers ------------------------------------------------------------------ */

static atomic_long actions_sum;

static int add_action(void *arg)
{
    atomic_fetch_add(&actions_sum, (long)(intptr_t)arg);
    return FJ_OK;
}

/* Queues actions at every node, so that its forks are not at the positions that it expects. */
FJ_TASK(long, executes, int, n)
{
    if (n == 0) return 1;
    executes_task a, b;
    CHECK_EQ(fj_execute(fj_current_pool(), add_action, (void *)(intptr_t)1), FJ_OK);
    executes_fork(FJ, &a, n - 1);
    CHECK_EQ(fj_execute(fj_current_pool(), add_action, (void *)(intptr_t)2), FJ_OK);
    executes_fork(FJ, &b, n - 1);
    long x = n % 2 == 0 ? executes_join(FJ, &a) : executes_join(FJ, &b);
    if (n % 3 == 0) CHECK_EQ(fj_execute(fj_current_pool(), add_action, (void *)(intptr_t)0), FJ_OK);
    return x + (n % 2 == 0 ? executes_join(FJ, &b) : executes_join(FJ, &a));
}

static void check_executes(fj_pool *pool)
{
    long r = 0;

    atomic_store(&actions_sum, 0);
    CHECK_EQ(executes_invoke(pool, &r, 10), FJ_OK);
    CHECK_EQ(r, 1 << 10);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&actions_sum), 3 * ((1 << 10) - 1));
}

FJ_TEST(actions_from_typed_code_run_and_disturb_nothing, 30)
{
    on_pools(check_executes);
}

/* Submits and joins tasks between its forks. At every third level it tries to take one back. */
FJ_TASK(long, submits, int, n)
{
    if (n == 0) return 1;
    submits_task a;
    struct leaf l, m;
    leaf_init(&l, n);
    leaf_init(&m, n);
    CHECK_EQ(fj_submit(fj_current_pool(), &l.task), FJ_OK);
    submits_fork(FJ, &a, n - 1);
    CHECK_EQ(fj_submit_lazy(fj_current_pool(), &m.task), FJ_OK);
    long x = submits_call(FJ, n - 1);
    if (n % 3 == 0 && fj_unfork(&l.task))
        (void)leaf_run(&l.task);
    else
        CHECK_EQ(fj_join(&l.task), FJ_OK);
    x += submits_join(FJ, &a);
    CHECK_EQ(fj_join(&m.task), FJ_OK);
    CHECK(atomic_load(&l.runs) == 1 && atomic_load(&m.runs) == 1);
    return x + (l.result - n) + (m.result - n) - 2;
}

static void check_submits(fj_pool *pool)
{
    for (int n = 0; n <= 9; n++) {
        long r = 0;
        CHECK_EQ(submits_invoke(pool, &r, n), FJ_OK);
        CHECK_EQ(r, 1 << n);
    }
}

FJ_TEST(submissions_from_typed_code_are_joined_there, 30)
{
    on_pools(check_submits);
}

/* Plain code that submits tasks. It never joins those in left_behind. */
static struct leaf left_behind[500];

static void submit_and_leave(void *arg)
{
    fj_pool *pool = arg;
    struct leaf a, b;

    for (int i = 0; i < 500; i++) {
        leaf_init(&left_behind[i], i);
        leaf_init(&a, 1);
        leaf_init(&b, 2);
        fj_fork(&a.task);
        CHECK_EQ(fj_submit(pool, &left_behind[i].task), FJ_OK);
        CHECK_EQ(fj_submit(pool, &b.task), FJ_OK);
        if (i % 2 == 0) CHECK_EQ(fj_join(&b.task), FJ_OK);
        CHECK_EQ(fj_join(&a.task), FJ_OK);
        if (i % 2 == 1) CHECK_EQ(fj_join(&b.task), FJ_OK);
        CHECK(a.result == 2 && b.result == 3);
    }
}

static void check_left_behind(fj_pool *pool)
{
    inside(pool, submit_and_leave, pool);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    for (int i = 0; i < 500; i++) CHECK_EQ(atomic_load(&left_behind[i].runs), 1);
}

FJ_TEST(submissions_that_nobody_joins_run_once, 30)
{
    on_pools(check_left_behind);
}

/* ---- invoke_all and helping inside typed code ------------------------------------------------ */

FJ_TASK(long, bulk, int, n)
{
    struct leaf l[10];
    bulk_task a;
    long sum = 0;

    if (n == 0) return 0;
    bulk_fork(FJ, &a, n - 1);
    for (int i = 0; i < 10; i++) leaf_init(&l[i], i);
    CHECK_EQ(fj_invoke_array(l, 10, sizeof l[0]), FJ_OK);
    for (int i = 0; i < 10; i++) sum += l[i].result;
    return sum + bulk_join(FJ, &a);
}

static void check_bulk(fj_pool *pool)
{
    long r = 0;

    CHECK_EQ(bulk_invoke(pool, &r, 200), FJ_OK);
    CHECK_EQ(r, 200 * 55);
}

FJ_TEST(invoke_array_works_inside_typed_code, 30)
{
    on_pools(check_bulk);
}

FJ_TASK(long, quiesces, int, n)
{
    quiesces_task a;

    if (n == 0) return 0;
    CHECK_EQ(fj_execute(fj_current_pool(), add_action, (void *)(intptr_t)1), FJ_OK);
    quiesces_fork(FJ, &a, n - 1);
    if (n % 4 == 0) fj_help_quiesce();
    return quiesces_join(FJ, &a) + 1;
}

static void check_quiesces(fj_pool *pool)
{
    long r = 0;

    atomic_store(&actions_sum, 0);
    CHECK_EQ(quiesces_invoke(pool, &r, 4), FJ_OK);
    CHECK_EQ(r, 4);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&actions_sum), 4);
}

FJ_TEST(help_quiesce_works_inside_typed_code, 30)
{
    on_pools(check_quiesces);
}
