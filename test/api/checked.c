/* SPDX-License-Identifier: MIT */
/*
 * checked.c - misuse that only code compiled with FJ_CHECKED detects and reports
 *
 * A join returns FJ_EINVAL if the caller has not forked the task, if the task is already joined, or
 * if it was never forked. A body that returns with unjoined tasks is reported too. Reports go to
 * the log callback, and the pool keeps working.
 */
#define FJ_CHECKED 1

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "fjtest.h"

struct log {
    atomic_int messages;
    atomic_int levels;
};

static void log_line(int level, const char *text, void *arg)
{
    struct log *l = arg;

    atomic_fetch_add(&l->messages, text != NULL && strlen(text) > 0);
    atomic_fetch_add(&l->levels, level);
}

static fj_pool *logging_pool(int n, struct log *l)
{
    fj_pool_options o = {0};

    o.parallelism = n;
    o.log = log_line;
    o.arg = l;
    return fjt_pool_with(&o);
}

struct work {
    fj_task task;
    fj_task *other; /* a task that this task joins without having forked it */
    atomic_int runs;
    int code;
};

static int count_run(fj_task *t)
{
    atomic_fetch_add(&((struct work *)t)->runs, 1);
    return 7;
}

static int join_other(fj_task *t)
{
    struct work *w = (struct work *)t;

    w->code = fj_join(w->other);
    atomic_fetch_add(&w->runs, 1);
    return FJ_OK;
}

static int wrong_joiner(fj_task *t)
{
    struct work mine = {.runs = 0}, thief = {.other = &mine.task};
    (void)t;

    fj_task_init(&mine.task, count_run);
    fj_task_init(&thief.task, join_other);
    fj_fork(&mine.task);
    fj_fork(&thief.task);
    while (atomic_load(&thief.runs) == 0) fjt_sleep_us(50); /* the other worker steals both */
    CHECK_EQ(fj_join(&thief.task), FJ_OK);
    CHECK_EQ(fj_join(&mine.task), 7);
    CHECK_EQ(thief.code, FJ_EINVAL);
    CHECK_EQ(atomic_load(&mine.runs), 1);
    return FJ_OK;
}

FJ_TEST(checked_join_by_somebody_who_has_not_forked_is_refused_and_told, 20)
{
    struct log l = {0};
    fj_pool *p = logging_pool(2, &l);
    fj_task root;

    fj_task_init(&root, wrong_joiner);
    CHECK_EQ(fj_invoke_mode(p, &root, FJ_CALLER_BLOCKS), FJ_OK);
    CHECK_EQ(atomic_load(&l.messages), 1);
    CHECK_EQ(atomic_load(&l.levels), FJ_LOG_ERROR);
    fjt_destroy(p);
}

static int never_forked(fj_task *t)
{
    struct work w = {.runs = 0};
    (void)t;

    fj_task_init(&w.task, count_run);
    CHECK_EQ(fj_join(&w.task), FJ_EINVAL);
    CHECK_EQ(fj_unfork(&w.task), 0);
    CHECK_EQ(atomic_load(&w.runs), 0);
    return FJ_OK;
}

FJ_TEST(checked_join_of_a_task_never_forked_is_refused, 20)
{
    struct log l = {0};
    fj_pool *p = logging_pool(1, &l);
    fj_task root, outside = {0};

    fj_task_init(&root, never_forked);
    CHECK_EQ(fj_invoke_mode(p, &root, FJ_CALLER_BLOCKS), FJ_OK);
    CHECK_EQ(fj_join(&outside), FJ_EINVAL);
    fjt_destroy(p);
}

static int twice(fj_task *t)
{
    struct work w = {.runs = 0};
    (void)t;

    fj_task_init(&w.task, count_run);
    fj_fork(&w.task);
    CHECK_EQ(fj_join(&w.task), 7);
    CHECK_EQ(fj_join(&w.task), FJ_EINVAL);
    CHECK_EQ(fj_unfork(&w.task), 0);
    CHECK_EQ(atomic_load(&w.runs), 1);
    fj_fork(&w.task); /* a joined task may be forked again */
    CHECK_EQ(fj_join(&w.task), 7);
    CHECK_EQ(atomic_load(&w.runs), 2);
    return FJ_OK;
}

FJ_TEST(checked_second_join_is_refused_and_the_task_can_be_forked_again, 20)
{
    struct log l = {0};
    fj_pool *p = logging_pool(1, &l);
    fj_task root;

    fj_task_init(&root, twice);
    CHECK_EQ(fj_invoke_mode(p, &root, FJ_CALLER_BLOCKS), FJ_OK);
    CHECK_EQ(atomic_load(&l.messages), 2);
    fjt_destroy(p);
}

FJ_TASK(long, sum, long, from, long, to)
{
    if (to - from == 1) return from;
    sum_task a;
    sum_fork(FJ, &a, from, (from + to) / 2);
    long y = sum_call(FJ, (from + to) / 2, to);
    return sum_join(FJ, &a) + y;
}

FJ_TEST(checked_code_computes_the_same, 20)
{
    fj_pool *p = fjt_pool(2, 0);
    long r = 0;

    CHECK_EQ(sum_invoke(p, &r, 0, 100000), FJ_OK);
    CHECK_EQ(r, 100000l * 99999 / 2);
    fjt_destroy(p);
}

/* ---- Bodies that return too early ------------------------------------------------------------ */

static struct work left[3];
static atomic_int taken;

static int is_taken(fj_task *t)
{
    atomic_store(&taken, 1);
    return count_run(t);
}

/* Forks three tasks and joins only one of them. */
static int leaves_tasks(fj_task *t)
{
    (void)t;
    for (int i = 0; i < 3; i++) {
        fj_task_init(&left[i].task, count_run);
        fj_fork(&left[i].task);
    }
    CHECK_EQ(fj_join(&left[1].task), 7);
    return 5;
}

static int waits_until_one_is_taken(fj_task *t)
{
    (void)t;
    fj_task_init(&left[0].task, is_taken);
    fj_fork(&left[0].task);
    while (!atomic_load(&taken)) sched_yield();
    return 5;
}

/* Joins a task whose body leaves tasks behind. */
static int joins_what_leaves(fj_task *t)
{
    fj_task inner;

    (void)t;
    fj_task_init(&inner, leaves_tasks);
    fj_fork(&inner);
    CHECK_EQ(fj_join(&inner), 5);
    CHECK_EQ(fj_worker_queued(), 0);
    return 5;
}

/* Bodies that return too early: a submitted one, a joined one, one whose child was stolen. */
FJ_TEST(body_that_returns_without_joining_is_told_of, 20)
{
    static fj_task_fn *const bodies[] = {leaves_tasks, joins_what_leaves, waits_until_one_is_taken};

    for (int i = 0; i < 3; i++) {
        struct log l = {0};
        fj_pool *p = logging_pool(i == 2 ? 2 : 1, &l);
        fj_task t;

        memset(left, 0, sizeof left);
        atomic_store(&taken, 0);
        fj_task_init(&t, bodies[i]);
        CHECK_EQ(fj_invoke(p, &t), 5);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&l.messages), i == 2 ? 1 : 2);
        if (i < 2) CHECK_EQ(left[0].runs + left[1].runs + left[2].runs, 1);
        fjt_destroy(p);
    }
}

static int forks_nonsense(fj_task *t)
{
    fj_task a = {0};

    (void)t;
    fj_fork(NULL);
    fj_fork(&a);
    CHECK_EQ(fj_join(NULL), FJ_EINVAL);
    CHECK_EQ(fj_join_as(NULL, count_run), FJ_EINVAL);
    CHECK_EQ(fj_unfork(NULL), 0);
    fj_task_init(NULL, count_run);
    return 5;
}

FJ_TEST(null_and_tasks_without_a_body_are_told_of, 20)
{
    struct log l = {0};
    fj_pool *p = logging_pool(1, &l);
    fj_task t;

    fj_task_init(&t, forks_nonsense);
    CHECK_EQ(fj_invoke(p, &t), 5);
    CHECK_EQ(atomic_load(&l.messages), 4);
    fjt_destroy(p);
}
