/* SPDX-License-Identifier: MIT */
/*
 * future.c - futures: each has one outcome, and all threads see the same one
 */
#include <forkjoin/block.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fjtest.h"

#define MS ((int64_t)1000000)
#define LONG_NS (60 * 1000 * MS)

struct job {
    fj_future f;
    atomic_int begun, may_end, ended;
    int code;
};

static int job_run(fj_task *t)
{
    struct job *j = (struct job *)t;

    atomic_store(&j->begun, 1);
    while (!atomic_load(&j->may_end)) fjt_sleep_us(20);
    j->f.result = j;
    atomic_store(&j->ended, 1);
    return j->code;
}

static void job_init(struct job *j, int may_end, int code)
{
    memset(j, 0, sizeof *j);
    fj_future_init(&j->f, job_run);
    atomic_store(&j->may_end, may_end);
    j->code = code;
}

static void check_open(fj_future *f)
{
    void *result = &result;

    CHECK(!fj_future_is_done(f) && !fj_future_succeeded(f) && !fj_future_failed(f));
    CHECK(!fj_future_is_cancelled(f));
    CHECK_EQ(fj_future_state(f), FJ_FUTURE_RUNNING);
    CHECK_EQ(fj_future_result(f, &result), FJ_EBUSY);
    CHECK(result == &result);
    CHECK_EQ(fj_future_error(f), FJ_OK);
    CHECK_EQ(fj_future_get(f, 0, NULL), FJ_ETIMEDOUT);
    CHECK_EQ(fj_future_get(f, INT64_MIN, NULL), FJ_ETIMEDOUT);
}

static void check_done(fj_future *f, int code, void *value)
{
    void *result = &result;
    bool cancelled = code == FJ_ECANCELED;

    CHECK(fj_future_is_done(f));
    CHECK_EQ(fj_future_succeeded(f), code == FJ_OK);
    CHECK_EQ(fj_future_failed(f), code != FJ_OK);
    CHECK_EQ(fj_future_is_cancelled(f), cancelled);
    CHECK_EQ(fj_future_state(f), code == FJ_OK ? FJ_FUTURE_SUCCESS
                                 : cancelled   ? FJ_FUTURE_CANCELLED
                                               : FJ_FUTURE_FAILED);
    CHECK_EQ(fj_future_error(f), code);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_future_join(f), code);
        CHECK_EQ(fj_future_get(f, i == 0 ? INT64_MIN : FJ_FOREVER, &result), code);
        CHECK_EQ(fj_future_result(f, &result), code);
        CHECK(result == (code == FJ_OK ? value : (void *)&result));
        CHECK_EQ(fj_future_cancel(f, i), cancelled);
        CHECK_EQ(fj_future_complete(f, f), 0);
        CHECK_EQ(fj_future_fail(f, 9), cancelled && 0);
    }
}

FJ_TEST(future_that_was_submitted_gives_its_result, 20)
{
    fj_pool *p = fjt_pool(2, 0);
    struct job j;

    job_init(&j, 0, FJ_OK);
    check_open(&j.f);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    check_open(&j.f);
    atomic_store(&j.may_end, 1);
    CHECK_EQ(fj_future_join(&j.f), FJ_OK);
    check_done(&j.f, FJ_OK, &j);
    fj_future_fini(&j.f);
    fjt_destroy(p);
}

FJ_TEST(future_that_failed_gives_its_code, 20)
{
    fj_pool *p = fjt_pool(2, 0);
    struct job j;

    job_init(&j, 1, 77);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    CHECK_EQ(fj_future_join(&j.f), 77);
    check_done(&j.f, 77, NULL);
    fj_future_fini(&j.f);
    CHECK_EQ(fj_future_reinit(&j.f), FJ_OK);
    check_open(&j.f);
    j.code = FJ_OK;
    CHECK_EQ(fj_future_invoke(p, &j.f), FJ_OK);
    check_done(&j.f, FJ_OK, &j);
    fj_future_fini(&j.f);
    fjt_destroy(p);
}

FJ_TEST(future_cancelled_while_queued_never_runs, 20)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job first, j;

    job_init(&first, 0, FJ_OK);
    job_init(&j, 1, FJ_OK);
    CHECK_EQ(fj_future_submit(p, &first.f), FJ_OK);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    CHECK_EQ(fj_future_cancel(&j.f, 0), 1);
    check_done(&j.f, FJ_ECANCELED, NULL);
    CHECK_EQ(fj_future_reinit(&j.f), FJ_EBUSY);
    atomic_store(&first.may_end, 1);
    CHECK_EQ(fj_future_join(&first.f), FJ_OK);
    fj_future_fini(&j.f);
    fj_future_fini(&first.f);
    CHECK_EQ(atomic_load(&j.begun), 0);
    fjt_destroy(p);
}

FJ_TEST(future_cancelled_while_running_is_released_when_its_body_ends, 20)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job j;

    job_init(&j, 0, FJ_OK);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    while (!atomic_load(&j.begun)) fjt_sleep_us(10);
    CHECK_EQ(fj_future_cancel(&j.f, 1), 1);
    check_done(&j.f, FJ_ECANCELED, NULL);
    CHECK_EQ(atomic_load(&j.ended), 0);
    atomic_store(&j.may_end, 1);
    fj_future_fini(&j.f);
    CHECK_EQ(atomic_load(&j.ended), 1);
    check_done(&j.f, FJ_ECANCELED, NULL);
    fjt_destroy(p);
}

FJ_TEST(future_completed_by_another_hand_keeps_that_outcome, 20)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job j;
    int value;

    for (int kind = 0; kind < 3; kind++) {
        job_init(&j, 0, 5);
        CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
        while (!atomic_load(&j.begun)) fjt_sleep_us(10);
        if (kind == 0) CHECK_EQ(fj_future_complete(&j.f, &value), 1);
        if (kind == 1) CHECK_EQ(fj_future_fail(&j.f, 0), 1);
        if (kind == 2) CHECK_EQ(fj_future_complete_quietly(&j.f), 1);
        atomic_store(&j.may_end, 1);
        fj_future_fini(&j.f);
        check_done(&j.f, kind == 1 ? FJ_EFAILED : FJ_OK, kind == 0 ? &value : NULL);
    }
    fjt_destroy(p);
}

/* ---- One outcome ---------------------------------------------------------------------------- */

struct race {
    struct job j;
    pthread_barrier_t line;
    int answer[3];
};

static struct race race;
static fj_pool *race_pool;

static void *race_main(void *arg)
{
    int kind = (int)(intptr_t)arg;

    for (long i = fjt_rounds(20000); i > 0; i--) {
        pthread_barrier_wait(&race.line);
        if (kind == 0) race.answer[0] = fj_future_cancel(&race.j.f, 1);
        if (kind == 1) race.answer[1] = fj_future_complete(&race.j.f, &race);
        if (kind == 2) race.answer[2] = fj_future_fail(&race.j.f, 3);
        pthread_barrier_wait(&race.line);
    }
    return NULL;
}

FJ_TEST(future_has_one_outcome_whoever_races_for_it, 120)
{
    pthread_t t[3];
    long seen[4] = {0};

    race_pool = fjt_pool(2, 0);
    pthread_barrier_init(&race.line, NULL, 4);
    job_init(&race.j, 1, FJ_OK);
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, race_main, (void *)(intptr_t)i);
    for (long i = fjt_rounds(20000); i > 0; i--) {
        job_init(&race.j, 1, FJ_OK);
        CHECK_EQ(fj_future_submit(race_pool, &race.j.f), FJ_OK);
        pthread_barrier_wait(&race.line);
        int code = fj_future_join(&race.j.f);
        fj_future_fini(&race.j.f);
        pthread_barrier_wait(&race.line);
        int won = race.answer[0] + race.answer[1] + race.answer[2];
        void *value = race.answer[1] ? (void *)&race : (void *)&race.j;
        CHECK(won <= 1);
        int want = race.answer[0] ? FJ_ECANCELED : race.answer[2] ? 3 : FJ_OK;
        CHECK_EQ(code, want);
        seen[won == 0 ? 3 : race.answer[0] ? 0 : race.answer[1] ? 1 : 2]++;
        check_done(&race.j.f, want, value);
    }
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    fjt_destroy(race_pool);
}

/* ---- Many waiters, time limits --------------------------------------------------------------- */

static void *wait_main(void *f)
{
    return (void *)(intptr_t)fj_future_get(f, LONG_NS, NULL);
}

static void *wait_shortly(void *f)
{
    return (void *)(intptr_t)fj_future_get(f, 2 * MS, NULL);
}

FJ_TEST(future_wakes_all_who_wait_and_lets_those_go_whose_time_is_over, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job j;
    pthread_t t[10];
    void *code;

    job_init(&j, 0, 4);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    for (int i = 0; i < 10; i++)
        pthread_create(&t[i], NULL, i % 2 == 0 ? wait_main : wait_shortly, &j.f);
    for (int i = 1; i < 10; i += 2) {
        pthread_join(t[i], &code);
        CHECK_EQ((intptr_t)code, FJ_ETIMEDOUT);
    }
    atomic_store(&j.may_end, 1);
    for (int i = 0; i < 10; i += 2) {
        pthread_join(t[i], &code);
        CHECK_EQ((intptr_t)code, 4);
    }
    fj_future_fini(&j.f);
    fjt_destroy(p);
}

FJ_TEST(future_without_a_body_is_completed_by_hand, 20)
{
    fj_future f;
    pthread_t t;
    void *code;

    fj_future_init(&f, NULL);
    CHECK_EQ(fj_future_submit(NULL, &f), FJ_EINVAL);
    CHECK_EQ(fj_future_run(&f), FJ_EINVAL);
    pthread_create(&t, NULL, wait_main, &f);
    fjt_sleep_us(2000);
    CHECK_EQ(fj_future_complete(&f, &t), 1);
    pthread_join(t, &code);
    CHECK_EQ((intptr_t)code, FJ_OK);
    check_done(&f, FJ_OK, &t);
    fj_future_fini(&f);
}

/* ---- Inside a pool --------------------------------------------------------------------------- */

struct fib {
    fj_future f;
    int n, r;
};

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t, a, b;

    f->r = f->n;
    if (f->n < 2) return FJ_OK;
    a.n = f->n - 1;
    b.n = f->n - 2;
    fj_future_init(&a.f, fib_run);
    fj_future_init(&b.f, fib_run);
    CHECK_EQ(fj_future_fork(&a.f), FJ_OK);
    CHECK_EQ(fj_future_run(&b.f), FJ_OK);
    CHECK_EQ(fj_future_join(&a.f), FJ_OK);
    f->r = a.r + b.r;
    fj_future_fini(&a.f);
    return FJ_OK;
}

FJ_TEST(futures_forked_inside_a_pool_make_a_tree, 60)
{
    static const int workers[] = {1, 2, 8};

    for (int i = 0; i < 3; i++)
        for (unsigned flags = 0; flags < 4; flags++) {
            fj_pool *p = fjt_pool(workers[i], flags);
            struct fib f = {.n = 18};
            fj_future_init(&f.f, fib_run);
            CHECK_EQ(fj_future_invoke(p, &f.f), FJ_OK);
            CHECK_EQ(f.r, 2584);
            fjt_destroy(p);
        }
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static struct {
    atomic_int begun, got;
    fj_future never;
} nap;

static int nap_get(void *arg)
{
    (void)arg;
    atomic_store(&nap.begun, 1);
    int code = fj_future_get(&nap.never, FJ_FOREVER, NULL);
    CHECK(fj_is_cancelled());
    atomic_store(&nap.got, code);
    return FJ_OK;
}

static int nap_sleep(void *arg)
{
    (void)arg;
    atomic_store(&nap.begun, 1);
    atomic_store(&nap.got, fj_sleep_ns(LONG_NS));
    return FJ_OK;
}

static int nap_any(void *arg)
{
    fj_future *one[] = {&nap.never};
    size_t which;

    (void)arg;
    atomic_store(&nap.begun, 1);
    atomic_store(&nap.got, fj_future_wait_any(one, 1, LONG_NS, &which));
    return FJ_OK;
}

static void interrupt_round(fj_pool *p, fj_action_fn *body, int64_t delay_us)
{
    fj_future *f;

    fj_future_init(&nap.never, NULL);
    atomic_store(&nap.begun, 0);
    atomic_store(&nap.got, 1);
    CHECK_EQ(fj_submit_action(p, body, NULL, NULL, &f), FJ_OK);
    while (!atomic_load(&nap.begun)) fjt_sleep_us(1);
    fjt_spin_us(delay_us);
    CHECK_EQ(fj_future_cancel(f, 1), 1);
    while (atomic_load(&nap.got) == 1) fjt_sleep_us(1);
    CHECK_EQ(atomic_load(&nap.got), FJ_ECANCELED);
    CHECK_EQ(fj_future_join(f), FJ_ECANCELED);
    fj_future_unref(f);
}

FJ_TEST(interrupt_breaks_the_waits_of_the_cancelled_task, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    uint64_t random = fjt_seed();

    for (long i = fjt_rounds(1500); i > 0; i--) {
        int64_t delay = (int64_t)(fjt_random(&random) % 60);
        interrupt_round(p, i % 3 == 0 ? nap_get : i % 3 == 1 ? nap_sleep : nap_any, delay);
    }
    fjt_destroy(p);
}

static atomic_int missed;

static int not_interrupted(void *arg)
{
    (void)arg;
    if (fj_is_cancelled() || fj_sleep_ns(1000) != FJ_OK) atomic_fetch_add(&missed, 1);
    return FJ_OK;
}

static int ends_at_once(void *arg)
{
    (void)arg;
    return FJ_OK;
}

/* The first task ends at about the time of its cancel. Then the same worker runs the second. */
FJ_TEST(interrupt_never_reaches_the_next_task_of_the_worker, 60)
{
    fj_pool *p = fjt_pool(1, 0);
    uint64_t random = fjt_seed();

    for (long i = fjt_rounds(20000); i > 0; i--) {
        fj_future *a, *b;
        CHECK_EQ(fj_submit_action(p, ends_at_once, NULL, NULL, &a), FJ_OK);
        CHECK_EQ(fj_submit_action(p, not_interrupted, NULL, NULL, &b), FJ_OK);
        for (uint64_t k = fjt_random(&random) % 64; k > 0; k--) __asm__ volatile("");
        (void)fj_future_cancel(a, 1);
        CHECK_EQ(fj_future_join(b), FJ_OK);
        fj_future_unref(a);
        fj_future_unref(b);
    }
    CHECK_EQ(atomic_load(&missed), 0);
    fjt_destroy(p);
}

static void on_signal(int sig)
{
    (void)sig;
}

static int fds[2];

static int nap_read(void *arg)
{
    char c;

    (void)arg;
    atomic_store(&nap.begun, 1);
    ssize_t got = fj_block_read(fds[0], &c, 1);
    atomic_store(&nap.got, (int)got);
    return FJ_OK;
}

FJ_TEST(interrupt_signal_breaks_a_system_call, 60)
{
    struct sigaction sa = {.sa_handler = on_signal};
    fj_pool_options o = {0};

    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    CHECK_EQ(pipe(fds), 0);
    o.parallelism = 2;
    o.interrupt_signal = SIGUSR1;
    fj_pool *p = fjt_pool_with(&o);
    for (long i = fjt_rounds(200); i > 0; i--) {
        fj_future *f;
        atomic_store(&nap.begun, 0);
        atomic_store(&nap.got, 1);
        CHECK_EQ(fj_submit_action(p, nap_read, NULL, NULL, &f), FJ_OK);
        while (!atomic_load(&nap.begun)) fjt_sleep_us(1);
        /* The body is usually in its system call by now. If it is not, it sees the cancellation
         * before it enters the call. */
        fjt_sleep_us(500);
        CHECK_EQ(fj_future_cancel(f, 1), 1);
        while (atomic_load(&nap.got) == 1) fjt_sleep_us(1);
        CHECK_EQ(atomic_load(&nap.got), FJ_ECANCELED);
        fj_future_unref(f);
    }
    fjt_destroy(p);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

struct tree {
    fj_task task;
    int depth;
    atomic_int *alive;
};

static int tree_run(fj_task *t)
{
    struct tree *me = (struct tree *)t, a = *me, b = *me;

    if (me->depth == 0) {
        atomic_fetch_add(me->alive, 1);
        while (!fj_is_cancelled()) fjt_sleep_us(10);
        atomic_fetch_sub(me->alive, 1);
        return FJ_ECANCELED;
    }
    a.depth = b.depth = me->depth - 1;
    fj_task_init(&a.task, tree_run);
    fj_fork(&a.task);
    int x = tree_run(&b.task);
    int y = fj_join(&a.task);
    return x != FJ_OK ? x : y;
}

/* ---- Futures in futures ---------------------------------------------------------------------- */

#define NESTED 600 /* more scopes than a worker has at first */

struct nested {
    fj_future f;
    int level;
};

static int nested_run(fj_task *t)
{
    struct nested *n = (struct nested *)t, below = {.level = n->level + 1};

    if (n->level < NESTED) {
        fj_future_init(&below.f, nested_run);
        CHECK_EQ(fj_future_fork(&below.f), FJ_OK);
        CHECK_EQ(fj_future_join(&below.f), n->level % 3 == 2 ? FJ_ECANCELED : FJ_OK);
        fj_future_fini(&below.f);
    }
    CHECK(!fj_is_cancelled());
    if (n->level % 3 != 0) return FJ_OK;
    CHECK_EQ(fj_future_cancel(&n->f, 0), 1);
    CHECK(fj_is_cancelled());
    return FJ_OK;
}

FJ_TEST(future_sees_its_own_cancelling_however_deep_it_is, 60)
{
    fj_pool *p = fjt_pool(2, 0);

    for (long i = fjt_rounds(20); i > 0; i--) {
        struct nested top = {.level = 1};
        fj_future_init(&top.f, nested_run);
        CHECK_EQ(fj_future_submit(p, &top.f), FJ_OK);
        CHECK_EQ(fj_future_join(&top.f), FJ_OK);
        fj_future_fini(&top.f);
    }
    fjt_destroy(p);
}

static fj_token token_outer, token_inner;

static void *token_main(void *alive)
{
    while (atomic_load((atomic_int *)alive) < 2) fjt_sleep_us(10);
    fj_token_cancel(&token_outer);
    return NULL;
}

FJ_TEST(token_is_seen_by_stolen_tasks, 60)
{
    fj_pool *p = fjt_pool(3, 0);

    for (long i = fjt_rounds(200); i > 0; i--) {
        atomic_int alive = 0;
        struct tree root = {.depth = 3, .alive = &alive};
        pthread_t t;
        fj_token_init(&token_outer, NULL);
        fj_token_init(&token_inner, &token_outer);
        fj_task_init(&root.task, tree_run);
        pthread_create(&t, NULL, token_main, &alive);
        CHECK_EQ(fj_invoke_token(p, &root.task, &token_inner), FJ_ECANCELED);
        pthread_join(t, NULL);
        CHECK_EQ(fj_invoke_token(p, &root.task, &token_inner), FJ_ECANCELED);
        CHECK(fj_token_is_cancelled(&token_inner));
    }
    fjt_destroy(p);
}

/* ---- After a future has ended ---------------------------------------------------------------- */

static atomic_int late_begun, late_freed, late_cancelled;

static int late_action(void *arg)
{
    (void)arg;
    atomic_store(&late_begun, 1);
    while (!atomic_load(&late_freed)) fjt_sleep_us(10);
    atomic_store(&late_cancelled, fj_is_cancelled());
    return FJ_OK;
}

static int queues_an_action(fj_task *t)
{
    (void)t;
    CHECK_EQ(fj_execute(fj_current_pool(), late_action, NULL), FJ_OK);
    while (!atomic_load(&late_begun)) fjt_sleep_us(10);
    return FJ_OK;
}

/* The action is stolen while the future runs. It is not cancelled with the future, and it still
 * runs after the future was freed. */
FJ_TEST(action_has_nothing_of_the_future_that_queued_it, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_future *f = malloc(sizeof *f);

    atomic_store(&late_cancelled, -1);
    fj_future_init(f, queues_an_action);
    CHECK_EQ(fj_future_submit(p, f), FJ_OK);
    while (!atomic_load(&late_begun)) fjt_sleep_us(10);
    (void)fj_future_cancel(f, 1);
    fj_future_fini(f);
    memset(f, 0xff, sizeof *f);
    free(f);
    atomic_store(&late_freed, 1);
    while (atomic_load(&late_cancelled) < 0) fjt_sleep_us(10);
    CHECK_EQ(atomic_load(&late_cancelled), 0);
    fjt_destroy(p);
}

FJ_TEST(future_left_open_by_its_body_is_completed_later, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job j;

    job_init(&j, 1, FJ_PENDING);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    while (!atomic_load(&j.ended)) fjt_sleep_us(10);
    CHECK_EQ(fj_future_get(&j.f, 2 * MS, NULL), FJ_ETIMEDOUT);
    CHECK_EQ(fj_future_reinit(&j.f), FJ_EBUSY);
    CHECK_EQ(fj_future_complete(&j.f, p), 1);
    check_done(&j.f, FJ_OK, p);
    fj_future_fini(&j.f);
    CHECK_EQ(fj_future_reinit(&j.f), FJ_OK);
    fjt_destroy(p);
}

/* ---- Several futures ------------------------------------------------------------------------- */

static int value_call(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

FJ_TEST(futures_by_call_give_what_was_called, 20)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_future *f = NULL;
    void *result = NULL;
    int x;

    CHECK_EQ(fj_submit_call(p, NULL, NULL, &f), FJ_EINVAL);
    CHECK_EQ(fj_submit_call(p, value_call, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_submit_call(p, value_call, &x, &f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == &x);
    CHECK(fj_future_ref(f) == f);
    fj_future_unref(f);
    check_done(f, FJ_OK, &x);
    fj_future_unref(f);
    CHECK_EQ(fj_submit_action(p, ends_at_once, NULL, &p, &f), FJ_OK);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK(result == &p);
    fj_future_unref(f);
    fjt_destroy(p);
}

FJ_TEST(any_of_returns_a_success_and_cancels_the_rest, 60)
{
    fj_pool *p = fjt_pool(2, 0);

    for (long i = fjt_rounds(300); i > 0; i--) {
        struct job j[4];
        fj_future *f[4];
        size_t which = 9;
        for (int k = 0; k < 4; k++) {
            job_init(&j[k], k != 1, k == 3 ? FJ_OK : 5);
            f[k] = &j[k].f;
        }
        CHECK_EQ(fj_future_invoke_any(p, f, 4, FJ_FOREVER, &which), FJ_OK);
        CHECK_EQ(which, 3);
        CHECK(fj_future_is_cancelled(f[1]));
        atomic_store(&j[1].may_end, 1);
        for (int k = 0; k < 4; k++) {
            CHECK(fj_future_is_done(f[k]));
            fj_future_fini(f[k]);
        }
    }
    fjt_destroy(p);
}

FJ_TEST(all_of_returns_in_time_and_cancels_the_rest, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    struct job j[5];
    fj_future *f[5];

    for (int k = 0; k < 5; k++) {
        job_init(&j[k], k != 2, k);
        f[k] = &j[k].f;
    }
    /* On a slow machine the limit may be too short for the other futures. Then it is raised. */
    for (int64_t limit = 20 * MS;; limit *= 4) {
        CHECK_EQ(fj_future_invoke_all(p, f, 5, limit), FJ_ETIMEDOUT);
        bool all = true;
        for (int k = 0; k < 5; k++) all = all && (k == 2 || !fj_future_is_cancelled(f[k]));
        if (all) break;
        atomic_store(&j[2].may_end, 1);
        for (int k = 0; k < 5; k++) fj_future_unref(f[k]);
        for (int k = 0; k < 5; k++) job_init(&j[k], k != 2, k);
    }
    for (int k = 0; k < 5; k++) check_done(f[k], k == 2 ? FJ_ECANCELED : k, &j[k]);
    atomic_store(&j[2].may_end, 1);
    for (int k = 0; k < 5; k++) fj_future_fini(f[k]);
    fjt_destroy(p);
}

static int any_inside(fj_task *t)
{
    struct job j[3];
    fj_future *f[3];
    size_t which = 9;

    (void)t;
    for (int k = 0; k < 3; k++) {
        job_init(&j[k], 1, k == 1 ? FJ_OK : 5);
        f[k] = &j[k].f;
    }
    CHECK_EQ(fj_future_invoke_any(fj_current_pool(), f, 3, FJ_FOREVER, &which), FJ_OK);
    CHECK_EQ(which, 1);
    for (int k = 0; k < 3; k++) fj_future_fini(f[k]);
    return FJ_OK;
}

/* No thread can replace the worker that waits. */
FJ_TEST(any_of_ends_in_a_pool_without_a_thread_to_spare, 30)
{
    fj_pool_options o = {0};
    fj_task t;

    o.parallelism = 1;
    o.max_threads = 1;
    fj_pool *p = fjt_pool_with(&o);
    fj_task_init(&t, any_inside);
    CHECK_EQ(fj_invoke_mode(p, &t, FJ_CALLER_BLOCKS), FJ_OK);
    fjt_destroy(p);
}

static atomic_int releases;

static void count_release(fj_future *f)
{
    atomic_fetch_add(&releases, 1);
    free(f);
}

/* Whether a future was cancelled, run, or discarded by a stopped pool: it is freed exactly once. */
FJ_TEST(release_callback_is_called_once_however_it_ended, 60)
{
    uint64_t random = fjt_seed();

    for (long i = fjt_rounds(300); i > 0; i--) {
        fj_pool *p = fjt_pool(2, 0);
        int submitted = 0;
        atomic_store(&releases, 0);
        for (int k = 0; k < 20; k++) {
            struct job *j = malloc(sizeof *j);
            job_init(j, 1, FJ_OK);
            fj_future_set_release_fn(&j->f, count_release);
            if (fjt_random(&random) % 3 == 0) CHECK_EQ(fj_future_cancel(&j->f, 1), 1);
            CHECK_EQ(fj_future_submit(p, &j->f), FJ_OK);
            submitted++;
        }
        if (i % 2 == 0) CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
        fjt_destroy(p);
        CHECK_EQ(atomic_load(&releases), submitted);
    }
}

FJ_TEST(pool_that_stops_cancels_queued_futures_and_interrupts_running_ones, 60)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.max_threads = 1; /* no thread replaces the worker that sleeps */
    for (long i = fjt_rounds(200); i > 0; i--) {
        fj_pool *p = fjt_pool_with(&o);
        struct job j;
        fj_future *f;
        fj_future_init(&nap.never, NULL);
        atomic_store(&nap.begun, 0);
        atomic_store(&nap.got, 1);
        CHECK_EQ(fj_submit_action(p, nap_sleep, NULL, NULL, &f), FJ_OK);
        job_init(&j, 1, FJ_OK);
        while (!atomic_load(&nap.begun)) fjt_sleep_us(1);
        CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
        CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
        CHECK_EQ(fj_future_join(&j.f), FJ_ECANCELED);
        fj_future_fini(&j.f);
        CHECK_EQ(fj_future_join(f), FJ_OK);
        CHECK_EQ(atomic_load(&nap.got), FJ_ECANCELED);
        fj_future_unref(f);
        CHECK_EQ(atomic_load(&j.begun), 0);
        fjt_destroy(p);
    }
}

static int answers_five(fj_task *t)
{
    (void)t;
    return 5;
}

FJ_TEST(future_that_was_run_is_queued_only_after_a_reinit, 10)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future f, *list = &f;
    size_t which;

    fj_future_init(&f, answers_five);
    CHECK_EQ(fj_future_run(&f), 5);
    CHECK_EQ(fj_future_submit(p, &f), FJ_EINVAL);
    CHECK_EQ(fj_future_submit_lazy(p, &f), FJ_EINVAL);
    CHECK_EQ(fj_future_submit_external(p, &f), FJ_EINVAL);
    CHECK_EQ(fj_future_fork(&f), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke(p, &f), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_all(p, &list, 1, FJ_FOREVER), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_any(p, &list, 1, FJ_FOREVER, &which), FJ_EINVAL);
    CHECK_EQ(fj_future_reinit(&f), FJ_OK);
    CHECK_EQ(fj_future_submit(p, &f), FJ_OK);
    CHECK_EQ(fj_future_join(&f), 5);
    fj_future_fini(&f);
    fjt_destroy(p);
}

FJ_TEST(tags_belong_to_the_caller, 10)
{
    fj_future f;

    fj_future_init(&f, job_run);
    CHECK_EQ(fj_future_tag(&f), 0);
    CHECK_EQ(fj_future_set_tag(&f, -5), 0);
    CHECK_EQ(fj_future_cas_tag(&f, 4, 1), 0);
    CHECK_EQ(fj_future_cas_tag(&f, -5, INT16_MIN), 1);
    CHECK_EQ(fj_future_complete(&f, NULL), 1);
    CHECK_EQ(fj_future_tag(&f), INT16_MIN);
    CHECK_EQ(fj_future_reinit(&f), FJ_OK);
    CHECK_EQ(fj_future_tag(&f), 0);
}
