/* SPDX-License-Identifier: MIT */
/*
 * group.c - groups: children of both kinds, waits, errors, cancelling, the end of a group
 */
#include <forkjoin/block.h>
#include <forkjoin/group.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/inside.h"
#include "plat/plat.h"

static atomic_int runs, skips;

static int count_call(fj_group *g, void *arg)
{
    (void)g, (void)arg;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static int count_task(fj_group_task *t)
{
    (void)t;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static int return_code(fj_group *g, void *arg)
{
    (void)g;
    atomic_fetch_add(&runs, 1);
    return (int)(intptr_t)arg;
}

static void count_skip(void *child, void *arg)
{
    (void)child;
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void open_group(fj_group *g, fj_pool *pool)
{
    CHECK_EQ(fj_group_init(g, &(fj_group_options){.pool = pool}), FJ_OK);
}

/* ---- Children -------------------------------------------------------------------------------- */

static void add_both_kinds(fj_group *g)
{
    fj_group_task task[50];

    atomic_store(&runs, 0);
    for (int i = 0; i < 50; i++) {
        fj_group_task_init(&task[i], count_task);
        CHECK(fj_group_of(&task[i]) == NULL);
        CHECK_EQ(fj_group_run(g, &task[i]), FJ_OK);
        CHECK(fj_group_of(&task[i]) == g);
        CHECK_EQ(fj_group_call(g, count_call, NULL), FJ_OK);
    }
    CHECK_EQ(fj_group_wait(g), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 100);
    CHECK_EQ(fj_group_has_ended(g), 1);
}

static void both_kinds_inside(void *arg)
{
    fj_group g;

    CHECK_EQ(fj_group_init(&g, arg), FJ_OK);
    add_both_kinds(&g);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
}

static void both_kinds(fj_pool *pool)
{
    fj_group g;

    inside(pool, both_kinds_inside, NULL);
    open_group(&g, pool);
    add_both_kinds(&g);
    CHECK_EQ(fj_group_reset(&g), FJ_OK);
    add_both_kinds(&g);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
}

FJ_TEST(children_of_both_kinds_run_once, 10)
{
    on_pools_and_common(both_kinds);
}

static int grow(fj_group *g, void *arg)
{
    intptr_t depth = (intptr_t)arg;

    atomic_fetch_add(&runs, 1);
    for (int i = 0; depth > 0 && i < 3; i++)
        CHECK_EQ(fj_group_call(g, grow, (void *)(depth - 1)), FJ_OK);
    return FJ_OK;
}

static void tree(fj_pool *pool)
{
    fj_group g;

    atomic_store(&runs, 0);
    open_group(&g, pool);
    CHECK_EQ(fj_group_call(&g, grow, (void *)(intptr_t)6), FJ_OK);
    CHECK_EQ(fj_group_wait(&g), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 1093);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
}

FJ_TEST(children_add_children_while_the_group_is_waited_for, 10)
{
    on_pools_and_common(tree);
}

struct chain {
    fj_group_task task;
    int left;
};

static int freed_by_its_body(fj_group_task *t)
{
    atomic_fetch_add(&runs, 1);
    free(t);
    return FJ_OK;
}

static int adds_itself(fj_group_task *t)
{
    struct chain *c = (struct chain *)t;

    atomic_fetch_add(&runs, 1);
    if (--c->left == 0) return FJ_OK;
    return fj_group_run(fj_group_of(t), t);
}

FJ_TEST(body_may_free_its_task_or_add_it_again, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct chain chain = {.left = 100};
    fj_group g;

    open_group(&g, pool);
    fj_group_task_init(&chain.task, adds_itself);
    CHECK_EQ(fj_group_run(&g, &chain.task), FJ_OK);
    for (int i = 0; i < 100; i++) {
        fj_group_task *t = malloc(sizeof *t);
        fj_group_task_init(t, freed_by_its_body);
        CHECK_EQ(fj_group_run(&g, t), FJ_OK);
    }
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 200);
    fjt_destroy(pool);
}

/* ---- Waits ----------------------------------------------------------------------------------- */

static atomic_int gate, begun;

static int at_the_gate(fj_group *g, void *arg)
{
    (void)g, (void)arg;
    atomic_store(&begun, 1);
    until(&gate);
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(wait_with_a_limit_ends_before_the_group_does, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_group g;

    open_group(&g, pool);
    CHECK_EQ(fj_group_call(&g, at_the_gate, NULL), FJ_OK);
    CHECK_EQ(fj_group_wait_for(&g, 0), FJ_ETIMEDOUT);
    CHECK_EQ(fj_group_wait_for(&g, 1000000), FJ_ETIMEDOUT);
    CHECK_EQ(fj_group_has_ended(&g), 0);
    CHECK_EQ(fj_group_reset(&g), FJ_EBUSY);
    atomic_store(&gate, 1);
    CHECK_EQ(fj_group_wait_for(&g, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_group_wait_for(&g, 0), FJ_OK);
    CHECK_EQ(fj_group_wait(&g), FJ_OK);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    fjt_destroy(pool);
}

static void *waits(void *arg)
{
    CHECK_EQ(fj_group_wait(arg), 3);
    CHECK_EQ(atomic_load(&runs), 2);
    return NULL;
}

FJ_TEST(several_threads_wait_and_fini_waits_for_their_waits, 10)
{
    fj_pool *pool = fjt_pool(2, 0);

    for (long round = fjt_rounds(200); round > 0; round--) {
        fj_group *g = malloc(sizeof *g);
        pthread_t t[3];
        atomic_store(&runs, 0);
        atomic_store(&gate, 0);
        open_group(g, pool);
        CHECK_EQ(fj_group_call(g, at_the_gate, NULL), FJ_OK);
        CHECK_EQ(fj_group_call(g, return_code, (void *)3), FJ_OK);
        CHECK_EQ(fj_group_hold(g), FJ_OK);
        for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&t[i], NULL, waits, g), 0);
        /* The threads have begun to wait before fini, or the group would be freed too early. */
        while (__atomic_load_n(&g->waits, __ATOMIC_RELAXED) < 3) sched_yield();
        atomic_store(&gate, 1);
        CHECK_EQ(fj_group_release(g), FJ_OK);
        CHECK_EQ(fj_group_fini(g), 3);
        memset(g, 0xdd, sizeof *g);
        free(g);
        for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    }
    fjt_destroy(pool);
}

static int unrelated(void *arg)
{
    (void)arg;
    atomic_fetch_add(&skips, 1);
    return FJ_OK;
}

static void wait_beside_unrelated(void *arg)
{
    fj_group g;

    (void)arg;
    for (int i = 0; i < 10; i++) CHECK_EQ(fj_execute(fj_current_pool(), unrelated, NULL), FJ_OK);
    open_group(&g, NULL);
    for (int i = 0; i < 10; i++) CHECK_EQ(fj_group_call(&g, grow, (void *)(intptr_t)1), FJ_OK);
    CHECK_EQ(fj_group_wait(&g), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 40);
    CHECK_EQ(atomic_load(&skips), 0);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
}

FJ_TEST(worker_that_waits_runs_only_children_of_the_group, 10)
{
    fj_pool_options o = {.parallelism = 1, .max_threads = 1};
    fj_pool *pool = fjt_pool_with(&o);

    inside(pool, wait_beside_unrelated, NULL);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&skips), 10);
    fjt_destroy(pool);
}

/* ---- Waits of the group's own children ------------------------------------------------------- */

static int below_a_child(fj_task *t)
{
    (void)t;
    const fj_token *token = fj_current_token();
    fj_group *g = (fj_group *)((char *)(uintptr_t)token - offsetof(fj_group, root.future.token));
    CHECK_EQ(fj_group_wait(g), FJ_EDEADLK);
    return FJ_OK;
}

static int waits_for_itself(fj_group *g, void *arg)
{
    fj_task t;
    fj_group inner;

    CHECK_EQ(fj_group_wait(g), FJ_EDEADLK);
    CHECK_EQ(fj_group_wait_for(g, 0), FJ_EDEADLK);
    CHECK_EQ(fj_group_fini(g), FJ_EDEADLK);
    CHECK_EQ(fj_group_reset(g), FJ_EBUSY);
    fj_task_init(&t, below_a_child);
    fj_fork(&t);
    CHECK_EQ(fj_join(&t), FJ_OK);
    if (arg != NULL) return FJ_OK;
    CHECK_EQ(fj_group_init(&inner, &(fj_group_options){.token = fj_current_token()}), FJ_OK);
    for (int i = 0; i < 5; i++) CHECK_EQ(fj_group_call(&inner, waits_for_itself, g), FJ_OK);
    CHECK_EQ(fj_group_fini(&inner), FJ_OK);
    return FJ_OK;
}

static void own_waits(fj_pool *pool)
{
    fj_group g;

    open_group(&g, pool);
    for (int i = 0; i < 5; i++) CHECK_EQ(fj_group_call(&g, waits_for_itself, NULL), FJ_OK);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
}

FJ_TEST(child_does_not_wait_for_its_own_group, 10)
{
    on_pools(own_waits);
}

/* ---- The end of a group ---------------------------------------------------------------------- */

FJ_TEST(ended_group_rejects_children_until_it_is_reset, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_group_task t;
    fj_group g;

    fj_group_task_init(&t, count_task);
    open_group(&g, pool);
    CHECK_EQ(fj_group_reset(&g), FJ_EBUSY);
    CHECK_EQ(fj_group_call(&g, return_code, (void *)7), FJ_OK);
    CHECK_EQ(fj_group_wait(&g), 7);
    CHECK_EQ(fj_group_error(&g), 7);
    CHECK_EQ(fj_group_run(&g, &t), FJ_EREJECTED);
    CHECK_EQ(fj_group_call(&g, count_call, NULL), FJ_EREJECTED);
    CHECK_EQ(fj_group_hold(&g), FJ_EREJECTED);
    CHECK_EQ(fj_group_release(&g), FJ_EINVAL);
    CHECK_EQ(fj_group_wait(&g), 7);
    fj_group_cancel(&g);
    CHECK_EQ(fj_group_reset(&g), FJ_OK);
    CHECK_EQ(fj_group_error(&g), FJ_OK);
    CHECK_EQ(fj_token_is_cancelled(fj_group_token(&g)), 0);
    CHECK_EQ(fj_group_run(&g, &t), FJ_OK);
    CHECK_EQ(fj_group_wait(&g), FJ_OK);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    CHECK_EQ(fj_group_run(&g, &t), FJ_EREJECTED);
    CHECK_EQ(atomic_load(&runs), 2);
    fjt_destroy(pool);
}

static void *adds_under_a_hold(void *arg)
{
    fj_group *g = arg;

    for (int i = 0; i < 20; i++) {
        fjt_sleep_us(50);
        CHECK_EQ(fj_group_call(g, count_call, NULL), FJ_OK);
    }
    CHECK_EQ(fj_group_release(g), FJ_OK);
    return NULL;
}

static void held(fj_pool *pool)
{
    pthread_t t;
    fj_group g;

    atomic_store(&runs, 0);
    open_group(&g, pool);
    CHECK_EQ(fj_group_hold(&g), FJ_OK);
    CHECK_EQ(pthread_create(&t, NULL, adds_under_a_hold, &g), 0);
    CHECK_EQ(fj_group_wait(&g), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 20);
    pthread_join(t, NULL);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
}

FJ_TEST(group_does_not_end_while_a_thread_has_a_hold, 20)
{
    on_pools_and_common(held);
}

FJ_TEST(task_that_is_queued_cannot_be_added_again, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_group_task t, no_body;
    fj_group g;

    open_group(&g, pool);
    fj_group_task_init(&no_body, NULL);
    fj_group_task_init(&t, count_task);
    CHECK_EQ(fj_group_call(&g, at_the_gate, NULL), FJ_OK);
    until(&begun);
    CHECK_EQ(fj_group_run(&g, &no_body), FJ_EINVAL);
    CHECK_EQ(fj_group_run(&g, &t), FJ_OK);
    CHECK_EQ(fj_group_run(&g, &t), FJ_EINVAL);
    atomic_store(&gate, 1);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 2);
    fjt_destroy(pool);
}

FJ_TEST(options_that_are_reserved_are_refused, 10)
{
    fj_group g;

    CHECK_EQ(fj_group_init(&g, &(fj_group_options){.reserved_int = 1}), FJ_EINVAL);
    CHECK_EQ(fj_group_init(&g, &(fj_group_options){.reserved = {1, 0}}), FJ_EINVAL);
    CHECK_EQ(fj_group_init(&g, &(fj_group_options){.reserved = {0, 1}}), FJ_EINVAL);
    CHECK_EQ(fj_group_init(&g, NULL), FJ_OK);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
}

/* ---- Errors and cancelling ------------------------------------------------------------------- */

static void first_error(fj_pool *pool)
{
    fj_group g;

    atomic_store(&runs, 0);
    open_group(&g, pool);
    CHECK_EQ(fj_group_call(&g, return_code, (void *)5), FJ_OK);
    while (fj_group_error(&g) == FJ_OK) fjt_sleep_us(20);
    for (intptr_t i = 6; i < 20; i++) CHECK_EQ(fj_group_call(&g, return_code, (void *)i), FJ_OK);
    CHECK_EQ(fj_group_wait(&g), 5);
    CHECK_EQ(atomic_load(&runs), 15);
    CHECK_EQ(fj_group_fini(&g), 5);
}

FJ_TEST(first_error_is_kept_and_the_others_run, 10)
{
    on_pools(first_error);
}

static void error_cancels(fj_pool *pool)
{
    fj_group_options o = {.pool = pool, .cancel_on_error = 1, .on_skip = count_skip, .arg = &skips};
    fj_group_task t;
    fj_group g;

    atomic_store(&runs, 0);
    atomic_store(&skips, 0);
    CHECK_EQ(fj_group_init(&g, &o), FJ_OK);
    CHECK_EQ(fj_group_call(&g, return_code, (void *)FJ_EDEADLK), FJ_OK);
    while (fj_token_is_cancelled(fj_group_token(&g)) == 0) fjt_sleep_us(20);
    fj_group_task_init(&t, count_task);
    CHECK_EQ(fj_group_run(&g, &t), FJ_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(fj_group_call(&g, count_call, NULL), FJ_OK);
    CHECK_EQ(fj_group_fini(&g), FJ_EDEADLK);
    CHECK_EQ(atomic_load(&runs), 1);
    CHECK_EQ(atomic_load(&skips), 11);
}

FJ_TEST(error_cancels_the_rest_by_option, 10)
{
    on_pools(error_cancels);
}

static int sleeps_until_cancelled(fj_group *g, void *arg)
{
    (void)g, (void)arg;
    atomic_store(&begun, 1);
    CHECK_EQ(fj_sleep_ns(FJ_FOREVER), FJ_ECANCELED);
    CHECK_EQ(fj_is_cancelled(), 1);
    return FJ_OK;
}

static void cancel_with(fj_pool *pool, bool by_parent)
{
    fj_token parent;
    fj_group g;

    fj_token_init(&parent, NULL);
    atomic_store(&runs, 0);
    atomic_store(&begun, 0);
    CHECK_EQ(fj_group_init(&g, &(fj_group_options){.pool = pool, .token = &parent}), FJ_OK);
    CHECK_EQ(fj_group_call(&g, sleeps_until_cancelled, NULL), FJ_OK);
    until(&begun);
    if (by_parent)
        fj_token_cancel(&parent);
    else
        fj_group_cancel(&g);
    CHECK_EQ(fj_group_call(&g, count_call, NULL), FJ_OK);
    CHECK_EQ(fj_group_wait(&g), FJ_ECANCELED);
    CHECK_EQ(atomic_load(&runs), 0);
    CHECK_EQ(fj_group_fini(&g), FJ_ECANCELED);
}

static void cancel_both(fj_pool *pool)
{
    cancel_with(pool, false);
    cancel_with(pool, true);
}

FJ_TEST(cancel_interrupts_children_and_skips_those_that_have_not_begun, 10)
{
    on_pools(cancel_both);
}

FJ_TEST(group_whose_children_all_ran_is_not_cancelled, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_group g;

    open_group(&g, pool);
    CHECK_EQ(fj_group_call(&g, at_the_gate, NULL), FJ_OK);
    until(&begun);
    fj_group_cancel(&g);
    atomic_store(&gate, 1);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(pool_that_stops_skips_the_queued_children, 10)
{
    for (int workers = 1; workers <= 4; workers++) {
        fj_pool *pool = fjt_pool(workers, 0);
        fj_group_options o = {.pool = pool, .on_skip = count_skip, .arg = &skips};
        fj_group_task task[20];
        fj_group g;
        atomic_store(&runs, 0);
        atomic_store(&skips, 0);
        atomic_store(&gate, 0);
        CHECK_EQ(fj_group_init(&g, &o), FJ_OK);
        for (int i = 0; i < workers; i++) CHECK_EQ(fj_group_call(&g, at_the_gate, NULL), FJ_OK);
        for (int i = 0; i < 20; i++) {
            fj_group_task_init(&task[i], count_task);
            CHECK_EQ(fj_group_run(&g, &task[i]), FJ_OK);
            CHECK_EQ(fj_group_call(&g, count_call, NULL), FJ_OK);
        }
        fj_pool_shutdown_now(pool);
        CHECK_EQ(fj_group_call(&g, count_call, NULL), FJ_EREJECTED);

        atomic_store(&gate, 1);
        CHECK_EQ(fj_group_fini(&g), FJ_ECANCELED);
        CHECK_EQ(atomic_load(&runs) + atomic_load(&skips), workers + 40);
        CHECK(atomic_load(&skips) > 0);
        fjt_destroy(pool);
    }
}

/* ---- fork() ---------------------------------------------------------------------------------- */

FJ_TEST(child_process_does_not_wait_for_children_of_the_parent_process, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    int status = -1;
    fj_group g;

    open_group(&g, pool);
    CHECK_EQ(fj_group_call(&g, at_the_gate, NULL), FJ_OK);
    CHECK_EQ(fj_group_call(&g, count_call, NULL), FJ_OK);
    until(&begun);
    pid_t child = fork();
    if (child == 0) _exit(fj_group_fini(&g) == FJ_ECANCELED && atomic_load(&runs) == 0 ? 0 : 1);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    atomic_store(&gate, 1);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 2);
    fjt_destroy(pool);
}

struct forking {
    fj_group group;
    atomic_int step; /* 1: the child of the group runs; 2: main has the lock; 3: the fork is over */
    pid_t process;   /* the child process, or 0 in it */
};

/* Waits for the end of a child process, whose status has to be 0; ends it if it hangs. */
static void await_process(pid_t process)
{
    int status = -1;
    pid_t ended = 0;

    for (int i = 0; i < 500 && ended == 0; i++) {
        ended = waitpid(process, &status, WNOHANG);
        fjt_sleep_us(10000);
    }
    if (ended == 0) (void)kill(process, SIGKILL);
    CHECK_EQ(ended, process);
    CHECK_EQ(status, 0);
}

static int fork_call(fj_group *g, void *arg)
{
    struct forking *s = arg;

    (void)g;
    atomic_store(&s->step, 1);
    while (atomic_load(&s->step) != 2) sched_yield();
    s->process = fork();
    if (s->process != 0) atomic_store(&s->step, 3);
    return FJ_OK;
}

static void fork_and_wait(void *arg)
{
    struct forking *s = arg;

    open_group(&s->group, NULL);
    CHECK_EQ(fj_group_call(&s->group, count_call, NULL), FJ_OK);
    CHECK_EQ(fj_group_call(&s->group, fork_call, s), FJ_OK);
    CHECK_EQ(fj_group_call(&s->group, count_call, NULL), FJ_OK);
    int err = fj_group_fini(&s->group);
    if (s->process == 0) _exit(err == FJ_ECANCELED ? 0 : 1);
    CHECK_EQ(err, FJ_OK);
    await_process(s->process);
}

static void *fork_in_pool(void *arg)
{
    fj_pool *pool = fjt_pool(1, 0);

    inside(pool, fork_and_wait, arg);
    fjt_destroy(pool);
    return NULL;
}

static void *wait_for_it(void *arg)
{
    (void)fj_group_wait(arg);
    return NULL;
}

FJ_TEST(child_process_does_not_wait_for_waits_of_the_parent_process, 20)
{
    fj_pool *pool = fjt_pool(1, 0);
    pthread_t t;
    fj_group g;

    open_group(&g, pool);
    CHECK_EQ(fj_group_call(&g, at_the_gate, NULL), FJ_OK);
    until(&begun);
    CHECK_EQ(pthread_create(&t, NULL, wait_for_it, &g), 0);
    while (__atomic_load_n(&g.waits, __ATOMIC_RELAXED) == 0) fjt_sleep_us(50);
    pid_t child = fork();
    if (child == 0) _exit(fj_group_fini(&g) == FJ_ECANCELED ? 0 : 1);
    await_process(child);
    atomic_store(&gate, 1);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    pthread_join(t, NULL);
    fjt_destroy(pool);
}

FJ_TEST(child_process_leaves_the_group_alone_after_a_body_that_forked, 20)
{
    static struct forking s;
    fji_lock *lock = (fji_lock *)(void *)s.group.lock;
    pthread_t t;

    CHECK_EQ(pthread_create(&t, NULL, fork_in_pool, &s), 0);
    while (atomic_load(&s.step) != 1) fjt_sleep_us(50);
    fji_lock_take(lock); /* in the child process no thread drops it */
    atomic_store(&s.step, 2);
    while (atomic_load(&s.step) != 3) fjt_sleep_us(50);
    fji_lock_drop(lock);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&runs), 2);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void steady(void *arg)
{
    fj_group g;
    long before = 0;

    (void)arg;
    open_group(&g, NULL);
    for (int round = 0; round < 20; round++) {
        if (round == 5) before = fji_fault_calls(FJI_FAULT_ALLOC);
        if (round > 0) CHECK_EQ(fj_group_reset(&g), FJ_OK);
        for (int i = 0; i < 100; i++) CHECK_EQ(fj_group_call(&g, count_call, NULL), FJ_OK);
        CHECK_EQ(fj_group_call(&g, grow, (void *)(intptr_t)4), FJ_OK);
        CHECK_EQ(fj_group_wait(&g), FJ_OK);
    }
    CHECK_EQ(fji_fault_calls(FJI_FAULT_ALLOC), before);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
}

FJ_TEST(group_that_is_used_again_allocates_nothing, 10)
{
    fj_pool_options o = {.parallelism = 1, .max_threads = 1};
    fj_pool *pool = fjt_pool_with(&o);

    if (!FJI_FAULTS) fjt_skip("built without faults");
    inside(pool, steady, NULL);
    fjt_destroy(pool);
}

static void without_memory(void *arg)
{
    fj_group g;

    (void)arg;
    open_group(&g, NULL);
    CHECK_EQ(fj_group_call(&g, grow, (void *)(intptr_t)3), FJ_OK);
    fji_fault_set(FJI_FAULT_ALLOC, 1, 1000000);
    CHECK_EQ(fj_group_wait(&g), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 40);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    open_group(&g, NULL);
    for (int i = 0; i < 50; i++) CHECK_EQ(fj_group_call(&g, count_call, NULL), FJ_OK);
    CHECK(atomic_load(&runs) >= 82); /* the group itself has memory for eight children at most */
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 90);
}

FJ_TEST(worker_without_memory_runs_the_child_at_once, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    int added = 0, err;
    fj_group g;

    if (!FJI_FAULTS) fjt_skip("built without faults");
    inside(pool, without_memory, NULL);
    open_group(&g, pool);
    CHECK_EQ(fj_group_call(&g, at_the_gate, NULL), FJ_OK);
    while ((err = fj_group_call(&g, count_call, NULL)) == FJ_OK) added++;
    CHECK_EQ(err, FJ_ENOMEM);
    CHECK(added >= 6 && added <= 8);
    atomic_store(&gate, 1);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    fji_fault_set(FJI_FAULT_ALLOC, 1, 0);
    CHECK_EQ(atomic_load(&runs), 90 + 1 + added);
    fjt_destroy(pool);
}

/* ---- Random programs ------------------------------------------------------------------------- */

/* A node of a random tree. Its seed decides how many children it has, how they are added, and
 * whether the node fails. An oracle walks the same tree. */
struct node {
    fj_group_task task;
    uint64_t seed;
    int depth;
};

static _Atomic uint64_t nodes_sum;

static uint64_t child_seed(uint64_t seed, int i)
{
    uint64_t s = seed + (uint64_t)i * 0x9e3779b97f4a7c15u;

    return fjt_random(&s);
}

static int node_children(uint64_t seed, int depth)
{
    return depth == 0 ? 0 : (int)(seed % 5);
}

static int node_visit(fj_group *g, uint64_t seed, int depth);

static int node_run(fj_group_task *t)
{
    struct node *n = (struct node *)t, copy = *n;

    free(n);
    return node_visit(fj_group_of(&copy.task), copy.seed, copy.depth);
}

static int node_call(fj_group *g, void *arg)
{
    struct node *n = arg, copy = *n;

    free(n);
    return node_visit(g, copy.seed, copy.depth);
}

static void node_add(fj_group *g, uint64_t seed, int depth)
{
    struct node *n = malloc(sizeof *n);

    n->seed = seed;
    n->depth = depth;
    fj_group_task_init(&n->task, node_run);
    CHECK_EQ(seed % 7 < 3 ? fj_group_run(g, &n->task) : fj_group_call(g, node_call, n), FJ_OK);
}

struct adder {
    fj_group *group;
    uint64_t seed;
    int depth;
};

static int adder_run(void *arg)
{
    struct adder *a = arg, copy = *a;

    free(a);
    node_add(copy.group, copy.seed, copy.depth);
    CHECK_EQ(fj_group_release(copy.group), FJ_OK);
    return FJ_OK;
}

/* Lets an action that is not a child of g add the node, under a hold. */
static void node_add_elsewhere(fj_group *g, uint64_t seed, int depth)
{
    struct adder *a = malloc(sizeof *a);

    *a = (struct adder){g, seed, depth};
    CHECK_EQ(fj_group_hold(g), FJ_OK);
    CHECK_EQ(fj_execute(fj_current_pool(), adder_run, a), FJ_OK);
}

static int node_visit(fj_group *g, uint64_t seed, int depth)
{
    fj_group inner, *to = g;
    bool nested = seed % 11 == 0;

    if (nested) {
        CHECK_EQ(fj_group_init(&inner, NULL), FJ_OK);
        to = &inner;
    }
    atomic_fetch_add(&nodes_sum, seed);
    for (int i = 0; i < node_children(seed, depth); i++) {
        uint64_t s = child_seed(seed, i);
        if (s % 13 == 0)
            node_add_elsewhere(to, s, depth - 1);
        else
            node_add(s % 5 == 0 ? g : to, s, depth - 1);
    }
    int code = nested ? fj_group_fini(&inner) : FJ_OK;
    if (seed % 17 == 0) code = 9;
    if (code != FJ_OK) CHECK_EQ(code, 9);
    return code;
}

static uint64_t oracle(uint64_t seed, int depth, bool *fails)
{
    uint64_t sum = seed;

    *fails |= seed % 17 == 0;
    for (int i = 0; i < node_children(seed, depth); i++)
        sum += oracle(child_seed(seed, i), depth - 1, fails);
    return sum;
}

struct random_call {
    fj_group *group;
    uint64_t seed;
};

static void random_inside(void *arg)
{
    struct random_call *c = arg;

    node_add(c->group, c->seed, 7);
    (void)fj_group_wait(c->group);
}

static void random_trees(fj_pool *pool, uint64_t *state, bool from_inside)
{
    bool fails = false;
    fj_group g;
    struct random_call c = {&g, fjt_random(state)};

    atomic_store(&nodes_sum, 0);
    open_group(&g, pool);
    if (from_inside)
        inside(pool, random_inside, &c);
    else
        node_add(&g, c.seed, 7);
    int code = fj_group_fini(&g);
    CHECK_EQ(atomic_load(&nodes_sum), oracle(c.seed, 7, &fails));
    CHECK_EQ(code, fails ? 9 : FJ_OK);
}

FJ_TEST(random_trees_of_children_end_as_an_oracle_says, 30)
{
    uint64_t state = fjt_seed();

    for (int workers = 1; workers <= 4; workers++) {
        fj_pool *pool = fjt_pool(workers, workers == 3 ? FJ_POOL_FIFO : 0);
        for (long i = fjt_rounds(60); i > 0; i--) random_trees(pool, &state, i % 2 == 0);
        fjt_destroy(pool);
    }
}
