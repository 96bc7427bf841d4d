/* SPDX-License-Identifier: MIT */
/*
 * programs.h - small programs that use all parts of the library, to be run while calls are refused
 *
 * Each program creates its own pool, or returns at once if that is refused. It checks every result
 * and destroys the pool. Some runs end all faults before the last step. The pool must then do
 * without any error what it did before. The number `n` varies details of a program.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "faulty.h"

#include <forkjoin/algo.h>
#include <forkjoin/block.h>
#include <forkjoin/for_each.h>
#include <forkjoin/group.h>
#include <forkjoin/every.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Pools ---------------------------------------------------------------------------------- */

/* Returns NULL if the pool is refused. */
static fj_pool *pool_with(const fj_pool_options *o)
{
    fj_pool *p = NULL;
    int err = fj_pool_create(&p, o);

    CHECK_MAY(err);
    CHECK_EQ(p != NULL, err == FJ_OK);
    if (p != NULL) fjt_watch(p);
    return p;
}

static fj_pool *pool_of(int workers, unsigned flags)
{
    fj_pool_options o = {0};

    o.parallelism = workers;
    o.flags = flags;
    return pool_with(&o);
}

/*
 * In a body: whether it runs without a worker. This happens if a thread outside the pool waits for
 * the task and no worker record is available for that thread. The thread then runs the body itself.
 * What the body forks goes to the common pool or runs at once, and nothing can interrupt the body.
 */
static bool bare(void)
{
    return fj_current_pool() == NULL;
}

/* ---- Plain tasks ---------------------------------------------------------------------------- */

struct fib {
    fj_task task;
    int n;
    long result;
};

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t, a = {.n = f->n - 1}, b = {.n = f->n - 2};

    f->result = f->n;
    if (f->n < 2) return FJ_OK;
    fj_task_init(&a.task, fib_run);
    fj_task_init(&b.task, fib_run);
    fj_fork(&a.task);
    fj_fork(&b.task);
    CHECK_EQ(fj_join(f->n % 2 == 0 ? &a.task : &b.task), FJ_OK);
    CHECK_EQ(fj_join(f->n % 2 == 0 ? &b.task : &a.task), FJ_OK);
    f->result = a.result + b.result;
    return FJ_OK;
}

/* Returns whether the task was accepted. If so, checks its result. */
static bool use_fib(fj_pool *p, enum fj_caller caller)
{
    struct fib f = {.n = 10};

    fj_task_init(&f.task, fib_run);
    int err = fj_invoke_mode(p, &f.task, caller);
    CHECK_MAY(err);
    if (err == FJ_OK) CHECK_EQ(f.result, 55);
    return err == FJ_OK;
}

struct leaf {
    fj_task task;
    int code;
    atomic_int runs;
};

static int leaf_run(fj_task *t)
{
    struct leaf *l = (struct leaf *)t;

    atomic_fetch_add(&l->runs, 1);
    return l->code;
}

static void leaf_init(struct leaf *l, int code)
{
    memset(l, 0, sizeof *l);
    fj_task_init(&l->task, leaf_run);
    l->code = code;
}

#define MANY 150 /* more than the initial size of a queue */

struct wide {
    fj_task task;
    int order;
};

/* Forks cannot fail, whatever calls are refused. */
static int wide_run(fj_task *t)
{
    int order = ((struct wide *)t)->order;
    struct leaf l[MANY];
    fj_task *list[10];

    for (int i = 0; i < MANY; i++) {
        leaf_init(&l[i], i);
        fj_fork(&l[i].task);
    }
    for (int i = 0; i < MANY; i++) {
        int k = order == 0 ? i : MANY - 1 - i;
        CHECK_EQ(fj_join(&l[k].task), k);
    }
    for (int i = 0; i < MANY; i++) CHECK_EQ(atomic_load(&l[i].runs), 1);
    for (int i = 0; i < 10; i++) list[i] = &l[i].task;
    CHECK_EQ(fj_invoke_all(list, 10), 1);
    CHECK_EQ(fj_invoke_both(&l[11].task, &l[12].task), 11);
    CHECK_EQ(fj_invoke_array(&l[20], 30, sizeof l[0]), 20);
    return FJ_OK;
}

static void use_wide(fj_pool *p, int order)
{
    struct wide w = {.order = order};

    fj_task_init(&w.task, wide_run);
    CHECK_MAY(fj_invoke_mode(p, &w.task, order == 0 ? FJ_CALLER_BLOCKS : FJ_CALLER_HELPS));
}

/* ---- The end of a program ------------------------------------------------------------------- */

/* Destroys the pool. If `in_calm`, ends all faults first and checks that the pool works. */
static void end_pool(fj_pool *p, bool in_calm)
{
    struct leaf l;

    if (in_calm) {
        calm();
        CHECK(use_fib(p, FJ_CALLER_BLOCKS));
        leaf_init(&l, 3);
        CHECK_EQ(fj_submit(p, &l.task), FJ_OK);
        CHECK_EQ(fj_join(&l.task), 3);
    }
    fjt_destroy(p);
}

/* ---- Programs: a pool is created and destroyed ---------------------------------------------- */

static void run_life(int n)
{
    fj_pool_options o = {0};
    cpu_set_t cpus;

    fj_pool *p = pool_of(0, 0);
    if (p != NULL) fjt_destroy(p);
    CHECK_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    o.cpus = &cpus;
    o.cpus_bytes = sizeof cpus;
    o.flags = FJ_POOL_FIFO;
    o.parallelism = 2;
    if ((p = pool_with(&o)) == NULL) return;
    (void)use_fib(p, FJ_CALLER_BLOCKS);
    CHECK(fj_available_parallelism() >= 1);
    end_pool(p, n % 2 == 0);
}

static void run_plain(int n)
{
    fj_pool *p = pool_of(2, n % 3 == 0 ? FJ_POOL_FIFO : 0);

    if (p == NULL) return;
    (void)use_fib(p, FJ_CALLER_BLOCKS);
    use_wide(p, 0);
    use_wide(p, 1);
    (void)use_fib(p, FJ_CALLER_HELPS);
    end_pool(p, n % 2 == 0);
}

/* ---- Programs: typed tasks ------------------------------------------------------------------ */

FJ_TASK(long, typed_fib, int, n)
{
    typed_fib_task a, b;

    if (n < 2) return n;
    typed_fib_fork(FJ, &a, n - 1);
    typed_fib_fork(FJ, &b, n - 2);
    long x = n % 2 == 0 ? typed_fib_join(FJ, &a) : typed_fib_join(FJ, &b);
    return x + (n % 2 == 0 ? typed_fib_join(FJ, &b) : typed_fib_join(FJ, &a));
}

FJ_TASK(long, typed_deep, int, n)
{
    typed_deep_task a;

    if (n == 0) return 0;
    typed_deep_fork(FJ, &a, 0);
    long below = typed_deep_call(FJ, n - 1);
    return below + typed_deep_join(FJ, &a) + 1;
}

FJ_TASK(long, typed_wide, int, order)
{
    typed_fib_task h[MANY];
    long sum = 0;

    for (int i = 0; i < MANY; i++) typed_fib_fork(FJ, &h[i], i % 5);
    for (int i = 0; i < MANY; i++)
        sum += typed_fib_join(FJ, &h[order == 0 ? i : order == 1 ? MANY - 1 - i : i * 7 % MANY]);
    return sum;
}

static void run_typed(int n)
{
    fj_pool *p = pool_of(2, 0);
    long r = -1;
    int err;

    if (p == NULL) return;
    CHECK_MAY(err = typed_fib_invoke(p, &r, 10));
    CHECK_EQ(r, err == FJ_OK ? 55 : -1);
    r = -1;
    CHECK_MAY(err = typed_deep_invoke(p, &r, MANY));
    CHECK_EQ(r, err == FJ_OK ? MANY : -1);
    for (int order = 0; order < 3; order++) {
        r = -1;
        CHECK_MAY(err = typed_wide_invoke(p, &r, order));
        CHECK_EQ(r, err == FJ_OK ? MANY / 5 * (0 + 1 + 1 + 2 + 3) : -1);
    }
    end_pool(p, n % 2 == 0);
}

/* ---- Programs: submissions from outside ----------------------------------------------------- */

struct submitter {
    fj_pool *pool;
    struct leaf leaf[MANY];
    atomic_int actions;
    int sent;
};

static int count_action(void *counter)
{
    atomic_fetch_add((atomic_int *)counter, 1);
    return FJ_OK;
}

static void *submitter_main(void *arg)
{
    struct submitter *s = arg;
    bool accepted[MANY];

    for (int i = 0; i < MANY; i++) {
        fj_task *t = &s->leaf[i].task;
        leaf_init(&s->leaf[i], i);
        int err = i % 3 == 0   ? fj_submit(s->pool, t)
                  : i % 3 == 1 ? fj_submit_external(s->pool, t)
                               : fj_submit_lazy(s->pool, t);
        CHECK_MAY(err);
        accepted[i] = err == FJ_OK;
        if (i % 4 != 0) continue;
        CHECK_MAY(err = fj_execute(s->pool, count_action, &s->actions));
        s->sent += err == FJ_OK;
    }
    for (int i = 0; i < MANY; i++) {
        if (accepted[i]) CHECK_EQ(fj_join(&s->leaf[i].task), i);
        CHECK_EQ(atomic_load(&s->leaf[i].runs), accepted[i]);
    }
    return NULL;
}

static void run_outside(int n)
{
    fj_pool *p = pool_of(2, n % 3 == 0 ? FJ_POOL_CALLER_HELPS : 0);
    static struct submitter s[2];
    pthread_t other;

    if (p == NULL) return;
    memset(s, 0, sizeof s);
    s[0].pool = s[1].pool = p;
    CHECK_EQ(pthread_create(&other, NULL, submitter_main, &s[0]), 0);
    (void)submitter_main(&s[1]);
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(atomic_load(&s[i].actions), s[i].sent);
    end_pool(p, n % 2 == 0);
}

/* A task that is queued and that no thread waits for is run, drained or refused. */
static void run_drain(int n)
{
    fj_pool *p = pool_of(1, 0);
    struct leaf l[20];
    fj_taken taken[20];
    atomic_int actions = 0;
    int sent = 0, err;
    bool accepted[20];

    if (p == NULL) return;
    for (int i = 0; i < 20; i++) {
        leaf_init(&l[i], 5);
        CHECK_MAY(err = fj_submit_lazy(p, &l[i].task));
        accepted[i] = err == FJ_OK;
    }
    size_t got = fj_pool_drain(p, taken, 20);
    for (size_t i = 0; i < got; i++) {
        if (i % 2 == 0)
            fj_taken_run(&taken[i]);
        else
            fj_taken_cancel(&taken[i]);
    }
    for (int i = 0; i < 20; i++) {
        if (!accepted[i]) continue;
        err = fj_join(&l[i].task);
        CHECK_EQ(err, atomic_load(&l[i].runs) == 1 ? 5 : FJ_ECANCELED);
    }
    for (int i = 0; i < 20; i++) {
        CHECK_MAY(err = fj_execute(p, count_action, &actions));
        sent += err == FJ_OK;
    }
    end_pool(p, n % 2 == 0);
    CHECK_EQ(atomic_load(&actions), sent);
}

/* ---- Programs: futures ---------------------------------------------------------------------- */

#define SOME 12

struct work {
    fj_future future;
    int n;
    atomic_int runs;
};

static int work_code(int n)
{
    return n % 5 == 4 ? n : FJ_OK;
}

static int work_run(fj_task *t)
{
    struct work *w = (struct work *)t;

    atomic_fetch_add(&w->runs, 1);
    w->future.result = &w->n;
    return work_code(w->n);
}

static void work_init(struct work *w, int n)
{
    memset(w, 0, sizeof *w);
    w->n = n;
    fj_future_init(&w->future, work_run);
}

static void check_work(struct work *w, bool accepted)
{
    void *result = NULL;

    if (!accepted) { /* the future is still in its initial state */
        CHECK_EQ(atomic_load(&w->runs), 0);
        CHECK_EQ(fj_future_is_done(&w->future), 0);
        CHECK_EQ(fj_future_run(&w->future), work_code(w->n));
    }
    CHECK_EQ(fj_future_get(&w->future, FJ_FOREVER, &result), work_code(w->n));
    CHECK(result == (work_code(w->n) == FJ_OK ? &w->n : NULL));
    CHECK_EQ(atomic_load(&w->runs), 1);
    fj_future_fini(&w->future);
}

static void use_futures(fj_pool *p)
{
    struct work w[SOME];
    bool accepted[SOME];

    for (int i = 0; i < SOME; i++) {
        work_init(&w[i], i);
        fj_future *f = &w[i].future;
        int err = i % 3 == 0   ? fj_future_submit(p, f)
                  : i % 3 == 1 ? fj_future_submit_external(p, f)
                               : fj_future_submit_lazy(p, f);
        CHECK_MAY(err);
        accepted[i] = err == FJ_OK;
    }
    for (int i = 0; i < SOME; i++) check_work(&w[i], accepted[i]);
}

static int call_run(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

static void use_calls(fj_pool *p)
{
    fj_future *f[6] = {NULL};
    int values[6], err;
    atomic_int actions = 0;

    for (int i = 0; i < 6; i++) {
        CHECK_MAY(err = i % 2 == 0
                            ? fj_submit_call(p, call_run, &values[i], &f[i])
                            : fj_submit_action(p, count_action, &actions, &values[i], &f[i]));
        CHECK_EQ(f[i] != NULL, err == FJ_OK);
    }
    for (int i = 0; i < 6; i++) {
        void *result = NULL;
        if (f[i] == NULL) continue;
        CHECK_EQ(fj_future_get(f[i], FJ_FOREVER, &result), FJ_OK);
        CHECK(result == &values[i]);
        fj_future_unref(f[i]);
    }
}

/* In the pool: forks futures and a future made from a call. */
static int future_forker(fj_task *t)
{
    static _Thread_local struct work w[MANY];
    fj_future *adapted = NULL;
    bool accepted[MANY];
    int value, err;

    (void)t;
    for (int i = 0; i < MANY; i++) {
        work_init(&w[i], i);
        CHECK_MAY(err = fj_future_fork(&w[i].future));
        accepted[i] = err == FJ_OK;
        if (!bare()) CHECK(accepted[i]);
    }
    for (int i = MANY; i-- > 0;) check_work(&w[i], accepted[i]);
    CHECK_MAY(err = fj_future_new_call(call_run, &value, 0, &adapted));
    if (err != FJ_OK) return FJ_OK;
    CHECK_MAY(err = fj_future_fork(adapted));
    if (err == FJ_OK) CHECK_EQ(fj_future_join(adapted), FJ_OK);
    fj_future_unref(adapted);
    return FJ_OK;
}

/* Calls that wait for several futures. */
static void use_bulk(fj_pool *p)
{
    struct work w[SOME];
    fj_future *list[SOME];
    size_t which = SOME;
    int err;

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < SOME; i++) {
            work_init(&w[i], i);
            list[i] = &w[i].future;
        }
        err = round == 0 ? fj_future_invoke_all(p, list, SOME, FJ_FOREVER)
                         : fj_future_invoke_any(p, list, SOME, FJ_FOREVER, &which);
        bool all = round == 0 && err == work_code(4); /* the first of them in order that fails */
        if (!all) CHECK_MAY(err);
        for (int i = 0; i < SOME; i++) {
            CHECK(fj_future_is_done(list[i]));
            fj_future_fini(list[i]);
            CHECK(atomic_load(&w[i].runs) <= 1);
            if (all) CHECK_EQ(fj_future_error(list[i]), work_code(i));
        }
        if (round == 1 && err == FJ_OK) CHECK(which < SOME && fj_future_succeeded(list[which]));
    }
}

static void run_futures(int n)
{
    fj_pool *p = pool_of(2, n % 3 == 0 ? FJ_POOL_CALLER_HELPS : 0);
    fj_task t;

    if (p == NULL) return;
    use_futures(p);
    use_calls(p);
    fj_task_init(&t, future_forker);
    CHECK_MAY(fj_invoke(p, &t));
    use_bulk(p);
    end_pool(p, n % 2 == 0);
}

static int endless(fj_task *t)
{
    (void)t;
    return bare() || fj_sleep_ns(FJ_FOREVER) == FJ_ECANCELED ? FJ_OK : 1;
}

/* Cancels, completes and fails futures while they are queued and while they run. */
static void run_cancelled(int n)
{
    fj_pool *p = pool_of(2, 0);
    fj_future f[9];
    void *result = NULL;

    if (p == NULL) return;
    for (int i = 0; i < 9; i++) {
        fj_future_init(&f[i], endless);
        int err = fj_future_submit(p, &f[i]);
        CHECK_MAY(err);
        if (n % 2 == 0 && i == 1) sched_yield();
        if (i % 3 == 0) CHECK_EQ(fj_future_cancel(&f[i], 1), 1);
        if (i % 3 == 1) CHECK_EQ(fj_future_complete(&f[i], &f[0]), 1);
        if (i % 3 == 2) CHECK_EQ(fj_future_fail(&f[i], 77), 1);
    }
    for (int i = 0; i < 9; i++) {
        int code = i % 3 == 0 ? FJ_ECANCELED : i % 3 == 1 ? FJ_OK : 77;
        CHECK_EQ(fj_future_get(&f[i], FJ_FOREVER, &result), code);
        (void)fj_future_cancel(&f[i], 1);
    }
    CHECK(result == &f[0]);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK); /* the bodies of the completed futures still sleep */
    for (int i = 0; i < 9; i++) fj_future_fini(&f[i]);
    fjt_destroy(p);
}

/* ---- Programs: completers ------------------------------------------------------------------- */

struct sum {
    fj_completer c;
    int from, to;
    long total;
    struct sum *child[2];
};

static int sum_done(fj_completer *c, fj_completer *caller)
{
    struct sum *s = (struct sum *)c;

    (void)caller;
    for (int i = 0; i < 2; i++) {
        if (s->child[i] == NULL) continue;
        s->total += s->child[i]->total;
        free(s->child[i]);
    }
    return FJ_OK;
}

static int sum_run(fj_task *t);

static struct sum *sum_make(struct sum *parent, int from, int to)
{
    struct sum *s = calloc(1, sizeof *s);

    CHECK(s != NULL);
    fj_completer_init(&s->c, parent != NULL ? &parent->c : NULL, 0, sum_run, sum_done, NULL);
    s->from = from;
    s->to = to;
    return s;
}

/* A task forked without a worker goes to the common pool, where this program does not wait for
 * it. */
static void sum_fork(struct sum *s)
{
    if (bare())
        (void)sum_run(&s->c.future.task);
    else
        CHECK_EQ(fj_completer_fork(&s->c), FJ_OK);
}

static int sum_run(fj_task *t)
{
    struct sum *s = (struct sum *)t;
    int middle = (s->from + s->to) / 2;

    if (s->to - s->from <= 2) {
        for (int i = s->from; i < s->to; i++) s->total += i;
    } else {
        struct sum *left = sum_make(s, s->from, middle), *right = sum_make(s, middle, s->to);
        s->child[0] = left;
        s->child[1] = right;
        fj_completer_set_pending(&s->c, 2);
        sum_fork(left);
        sum_fork(right);
    }
    fj_completer_try_complete(&s->c);
    return FJ_OK;
}

static int fold_sum(size_t begin, size_t end, void *acc, void *arg)
{
    long *sum = acc;

    (void)arg;
    for (; begin < end; begin++) *sum += (long)begin;
    return FJ_OK;
}

static int add_sum(void *into, const void *right, void *arg)
{
    (void)arg;
    *(long *)into += *(const long *)right;
    return FJ_OK;
}

static void run_completers(int n)
{
    fj_pool *p = pool_of(2, n % 3 == 0 ? FJ_POOL_CALLER_HELPS : 0);
    static long big[64]; /* larger than the accumulators that the library keeps on the stack */
    static const long zero[64];
    fj_algo_options how = {.pool = p, .grain = 10};
    int err;

    if (p == NULL) return;
    struct sum *root = sum_make(NULL, 0, 200);
    CHECK_MAY(err = fj_completer_invoke(p, &root->c));
    CHECK_EQ(root->total, err == FJ_OK ? 19900 : 0);
    if (err == FJ_OK) fj_future_fini(&root->c.future);
    free(root);
    CHECK_MAY(err = fj_reduce(0, 100, fold_sum, add_sum, zero, sizeof zero, NULL, big, &how));
    if (err == FJ_OK) CHECK_EQ(big[0], 4950);
    end_pool(p, n % 2 == 0);
}

/* ---- Programs: timers ----------------------------------------------------------------------- */

/* Whether an accepted timer may end with this code. It is cancelled if the queue has no space for
 * its task when it is due. */
static bool may_end(int code, int wanted)
{
    return code == wanted || (code == FJ_ECANCELED && no_memory());
}

struct series {
    fj_timer timer;
    atomic_int runs;
};

static int series_run(fj_task *t)
{
    return atomic_fetch_add(&((struct series *)t)->runs, 1) == 2 ? 33 : FJ_OK;
}

static void use_series(fj_pool *p, bool fixed_rate)
{
    struct series s = {.runs = 0};

    fj_timer_init(&s.timer, series_run);
    int err = fixed_rate ? fj_schedule_at_fixed_rate(p, &s.timer, 0, 100000)
                         : fj_schedule_with_fixed_delay(p, &s.timer, 0, 100000);
    CHECK(may_timer(err));
    if (err != FJ_OK) return;
    CHECK(may_end(fj_future_get(&s.timer.future, FJ_FOREVER, NULL), 33));
    CHECK(atomic_load(&s.runs) <= 3);
    fj_future_fini(&s.timer.future);
}

static int call_sleeps(void *arg, void **result)
{
    (void)arg, (void)result;
    return bare() ? FJ_ECANCELED : fj_sleep_ns(FJ_FOREVER);
}

static void run_timers(int n)
{
    fj_pool *p = pool_of(2, 0);
    fj_future *f = NULL;
    struct series once = {.runs = 2};
    int err, value;

    if (p == NULL) return;
    fj_timer_init(&once.timer, series_run);
    CHECK(may_timer(err = fj_schedule(p, &once.timer, 100000)));
    if (err == FJ_OK) CHECK(may_end(fj_future_join(&once.timer.future), 33));
    if (err == FJ_OK) fj_future_fini(&once.timer.future);
    use_series(p, true);
    use_series(p, false);
    CHECK(may_timer(err = fj_schedule_call(p, call_run, &value, 1000, &f)));
    if (err == FJ_OK) CHECK(may_end(fj_future_get(f, FJ_FOREVER, NULL), FJ_OK));
    if (err == FJ_OK) fj_future_unref(f);
    CHECK(may_timer(err = fj_submit_with_timeout(p, call_sleeps, NULL, 200000, NULL, &f)));
    if (err == FJ_OK) CHECK(may_end(fj_future_get(f, FJ_FOREVER, NULL), FJ_ETIMEDOUT));
    if (err == FJ_OK) fj_future_unref(f);
    CHECK_EQ(fj_pool_delayed_count(p), 0); /* no timer of a refused submission is left */
    CHECK(may_timer(err = fj_schedule_call(p, call_run, &value, FJ_FOREVER, &f)));
    if (err == FJ_OK) CHECK_EQ(fj_future_cancel(f, n % 2), 1);
    if (err == FJ_OK) fj_future_unref(f);
    end_pool(p, n % 2 == 0);
}

/* ---- Programs: waits, with replacement threads ---------------------------------------------- */

struct waits {
    sem_t sem;
    atomic_int began, ended;
};

static int nap(void *arg)
{
    struct timespec ts = {.tv_nsec = 100000};

    (void)arg;
    nanosleep(&ts, NULL);
    return 1;
}

static int never(void *arg)
{
    (void)arg;
    return 0;
}

static int wait_action(void *arg)
{
    struct waits *w = arg;
    fj_blocking b;

    atomic_fetch_add(&w->began, 1);
    CHECK_EQ(fj_managed_block(never, nap, NULL), FJ_OK);
    CHECK_EQ(fj_block_begin(&b), FJ_OK);
    (void)nap(NULL);
    fj_block_end(&b);
    CHECK_EQ(fj_sleep_ns(100000), FJ_OK);
    CHECK_EQ(fj_block_sem_wait(&w->sem, FJ_FOREVER), FJ_OK);
    atomic_fetch_add(&w->ended, 1);
    return FJ_OK;
}

/* Waits that end by themselves or from outside, so that no replacement thread is needed. */
static void run_blocking(int n)
{
    fj_pool *p = pool_of(2, 0);
    struct waits w = {.began = 0};
    int sent = 0, err;

    if (p == NULL) return;
    CHECK_EQ(sem_init(&w.sem, 0, 0), 0);
    for (int i = 0; i < 6; i++) {
        CHECK_MAY(err = fj_execute(p, wait_action, &w));
        sent += err == FJ_OK;
    }
    for (int i = 0; i < sent; i++) CHECK_EQ(sem_post(&w.sem), 0);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&w.ended), sent);
    end_pool(p, n % 2 == 0);
    CHECK_EQ(sem_destroy(&w.sem), 0);
}

/* ---- Programs: tokens ----------------------------------------------------------------------- */

#define NESTED 20 /* more than the initial number of scopes of a worker */

struct scoped {
    fj_task task;
    fj_token *token;
};

struct nest {
    fj_future future;
    int depth;
};

static int nest_run(fj_task *t)
{
    struct nest *a = (struct nest *)t, b = {.depth = a->depth - 1};
    struct leaf l;

    leaf_init(&l, 4);
    fj_fork(&l.task);
    if (a->depth > 0) {
        fj_future_init(&b.future, nest_run);
        CHECK_EQ(fj_future_run(&b.future), 8);
    }
    CHECK_EQ(fj_join(&l.task), 4);
    CHECK_EQ(fj_is_cancelled(), 0);
    return 8;
}

static int scoped_run(fj_task *t)
{
    struct scoped *s = (struct scoped *)t;
    struct nest n = {.depth = NESTED};

    fj_future_init(&n.future, nest_run);
    CHECK_EQ(fj_future_run(&n.future), 8);
    CHECK_EQ(fj_is_cancelled(), 0);
    fj_token_cancel(s->token);
    if (bare()) return 6;
    CHECK_EQ(fj_is_cancelled(), 1);
    CHECK_EQ(fj_sleep_ns(FJ_FOREVER), FJ_ECANCELED);
    return 6;
}

static void run_tokens(int n)
{
    fj_pool *p = pool_of(2, n % 3 == 0 ? FJ_POOL_CALLER_HELPS : 0);
    fj_token outer, token;
    struct scoped s = {.token = &outer};

    if (p == NULL) return;
    fj_token_init(&outer, NULL);
    fj_token_init(&token, &outer);
    fj_task_init(&s.task, scoped_run);
    int err = fj_invoke_token(p, &s.task, &token);
    CHECK(err == 6 || (err == FJ_ENOMEM && no_memory()));
    if (err == 6) CHECK_EQ(fj_invoke_token(p, &s.task, &token), FJ_ECANCELED);
    end_pool(p, n % 2 == 0);
}

/* ---- Programs: pools in pools --------------------------------------------------------------- */

static int inner_pool(fj_task *t)
{
    fj_pool *p = pool_of(2, 0);

    (void)t;
    if (p == NULL) return FJ_OK;
    (void)use_fib(p, FJ_CALLER_BLOCKS);
    (void)use_fib(p, FJ_CALLER_HELPS);
    fjt_destroy(p);
    return FJ_OK;
}

static void run_nested(int n)
{
    fj_pool *p = pool_of(1, 0);
    fj_task t;

    if (p == NULL) return;
    fj_task_init(&t, inner_pool);
    CHECK_MAY(fj_invoke(p, &t));
    end_pool(p, n % 2 == 0);
}

/* ---- Programs: stopped under load ----------------------------------------------------------- */

struct load {
    fj_task task;
    atomic_int *running;
};

/* The forked tasks may be cancelled before they begin. */
static int load_run(fj_task *t)
{
    struct leaf l[3];

    atomic_fetch_add(((struct load *)t)->running, 1);
    for (int i = 0; i < 3; i++) {
        leaf_init(&l[i], 9);
        fj_fork(&l[i].task);
    }
    for (int i = 3; i-- > 0;) {
        int code = fj_join(&l[i].task);
        CHECK_EQ(code, atomic_load(&l[i].runs) == 1 ? 9 : FJ_ECANCELED);
    }
    return FJ_OK;
}

static void run_stopped(int n)
{
    fj_pool *p = pool_of(2, 0);
    struct load l[30];
    struct work w[SOME];
    bool accepted[30], has[SOME];
    atomic_int running = 0;
    fj_future *timer = NULL;

    if (p == NULL) return;
    int timed = fj_schedule_call(p, call_run, NULL, FJ_FOREVER, &timer);
    CHECK(may_timer(timed));
    for (int i = 0; i < 30; i++) {
        l[i].running = &running;
        fj_task_init(&l[i].task, load_run);
        int err = fj_submit(p, &l[i].task);
        CHECK_MAY(err);
        accepted[i] = err == FJ_OK;
        CHECK_MAY(fj_execute(p, count_action, &running));
    }
    for (int i = 0; i < SOME; i++) {
        work_init(&w[i], 0);
        int err = fj_future_submit(p, &w[i].future);
        CHECK_MAY(err);
        has[i] = err == FJ_OK;
    }
    if (n % 3 != 0) sched_yield();
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    for (int i = 0; i < 30; i++) {
        int err = accepted[i] ? fj_join(&l[i].task) : FJ_OK;
        CHECK(err == FJ_OK || err == FJ_ECANCELED);
    }
    for (int i = 0; i < SOME; i++) {
        if (!has[i]) continue;
        int err = fj_future_get(&w[i].future, FJ_FOREVER, NULL);
        CHECK_EQ(err, atomic_load(&w[i].runs) == 1 ? FJ_OK : FJ_ECANCELED);
        fj_future_fini(&w[i].future);
    }
    if (timed == FJ_OK) CHECK_EQ(fj_future_join(timer), FJ_ECANCELED);
    if (timed == FJ_OK) fj_future_unref(timer);
    int late = fj_submit(p, &l[0].task);
    CHECK(late == FJ_EREJECTED || (late == FJ_ENOMEM && no_memory()));
    fjt_destroy(p);
}

#include "lanes.h" /* uses the functions above */

/* ---- All of them ---------------------------------------------------------------------------- */

/* ---- Groups --------------------------------------------------------------------------------- */

static atomic_int group_added, group_ran;

/* A body that runs without a worker may be refused to add. */
static int group_grow(fj_group *g, void *arg)
{
    intptr_t depth = (intptr_t)arg;

    atomic_fetch_add(&group_ran, 1);
    for (int i = 0; depth > 0 && i < 2; i++) {
        int err = fj_group_call(g, group_grow, (void *)(depth - 1));
        if (bare())
            CHECK_MAY(err);
        else
            CHECK_EQ(err, FJ_OK);
        if (err == FJ_OK) atomic_fetch_add(&group_added, 1);
    }
    return FJ_OK;
}

static int each_item(void *item, fj_feeder *feeder, void *arg)
{
    int left = *(int *)item - 1;

    (void)arg;
    atomic_fetch_add(&group_ran, 1);
    for (int i = 0; left > 0 && i < 3; i++) {
        int err = fj_for_each_add(feeder, &left);
        CHECK_MAY(err);
        if (err == FJ_OK) atomic_fetch_add(&group_added, 1);
    }
    return FJ_OK;
}

static void groups_once(fj_pool *pool)
{
    fj_group_options o = {.pool = pool};
    fj_group g;
    int item = 4;

    atomic_store(&group_added, 0);
    atomic_store(&group_ran, 0);
    CHECK_EQ(fj_group_init(&g, &o), FJ_OK);
    int err = fj_group_call(&g, group_grow, (void *)(intptr_t)5);
    CHECK_MAY(err);
    if (err == FJ_OK) atomic_fetch_add(&group_added, 1);
    CHECK_EQ(fj_group_fini(&g), FJ_OK);
    err = fj_for_each(&item, 1, sizeof item, each_item, NULL, &(fj_algo_options){.pool = pool});
    CHECK_MAY(err);
    if (err == FJ_OK) atomic_fetch_add(&group_added, 1);
    CHECK_EQ(atomic_load(&group_ran), atomic_load(&group_added));
}

static void run_groups(int n)
{
    fj_pool *pool = pool_of(1 + n % 3, 0);

    if (pool == NULL) return;
    groups_once(pool);
    calm();
    groups_once(pool);
    CHECK_EQ(atomic_load(&group_added), 63 + 40);
    fjt_destroy(pool);
}

/* Creates, uses and ends the common pool, twice. Another program may have left one. */
static void run_common(int n)
{
    CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
    for (int i = 0; i < 2; i++) {
        fj_pool_options o = {0};
        static struct submitter s;
        fj_future *f = NULL;
        cpu_set_t cpus;
        int err, value = 0;

        CPU_ZERO(&cpus);
        (void)sched_getaffinity(0, sizeof cpus, &cpus);
        o.parallelism = 1 + n % 2;
        o.cpus = n % 3 == 0 ? &cpus : NULL;
        o.cpus_bytes = sizeof cpus;
        CHECK_MAY(fj_common_configure(&o));
        memset(&s, 0, sizeof s);
        (void)submitter_main(&s);
        CHECK(may_timer(err = fj_schedule_call(NULL, call_run, &value, 1000, &f)));
        if (err == FJ_OK) CHECK(may_end(fj_future_get(f, FJ_FOREVER, NULL), FJ_OK));
        if (err == FJ_OK) fj_future_unref(f);
        CHECK_EQ(fj_common_shutdown(FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&s.actions), s.sent);
        CHECK(fji_common_if_made() == NULL);
    }
}

/* ---- Programs: broadcasts -------------------------------------------------------------------- */

static atomic_int every_calls;

/* Forks and joins, whether the queue has space or not. */
static int every_fn(void *arg)
{
    struct fib f = {.n = 8};

    (void)arg;
    fj_task_init(&f.task, fib_run);
    CHECK_EQ(fib_run(&f.task), FJ_OK);
    CHECK_EQ(f.result, 21);
    atomic_fetch_add(&every_calls, 1);
    return FJ_OK;
}

struct every {
    fj_task task;
    fj_pool *pool;
    int forks;
};

/* The broadcast begins while the queue is not full, just full, or has overflowed. */
static int every_run(fj_task *t)
{
    struct every *e = (struct every *)t;
    struct leaf l[MANY];

    for (int i = 0; i < e->forks; i++) {
        leaf_init(&l[i], i);
        fj_fork(&l[i].task);
    }
    CHECK_EQ(fj_broadcast(e->pool, every_fn, NULL), FJ_OK);
    for (int i = e->forks; i-- > 0;) CHECK_EQ(fj_join(&l[i].task), i);
    for (int i = 0; i < e->forks; i++) CHECK_EQ(atomic_load(&l[i].runs), 1);
    return FJ_OK;
}

static void run_every(int n)
{
    static const int forks[] = {FJI_QUEUE_FIRST - 1, FJI_QUEUE_FIRST, MANY, 2};
    fj_pool *p = pool_of(2, n % 3 == 0 ? FJ_POOL_FIFO : 0);

    if (p == NULL) return;
    for (int i = 0; i < 4; i++) {
        struct every e = {.pool = p, .forks = forks[i]};
        atomic_store(&every_calls, 0);
        fj_task_init(&e.task, every_run);
        int err = fj_invoke_mode(p, &e.task, i % 2 == 0 ? FJ_CALLER_BLOCKS : FJ_CALLER_HELPS);
        CHECK_MAY(err);
        CHECK_MAY(fj_broadcast(p, every_fn, NULL));
    }
    end_pool(p, n % 2 == 0);
}

#define PROGRAMS(X) \
    X(life)         \
    X(plain)        \
    X(typed)        \
    X(outside)      \
    X(drain)        \
    X(futures)      \
    X(cancelled)    \
    X(completers)   \
    X(timers)       \
    X(blocking)     \
    X(tokens)       \
    X(nested)       \
    X(stopped)      \
    X(groups)       \
    X(every)        \
    X(lanes)        \
    X(common)

struct program {
    const char *name;
    void (*run)(int n);
};

#define PROGRAM_ROW(p) {#p, run_##p},
static const struct program programs[] = {PROGRAMS(PROGRAM_ROW)};
#define N_PROGRAMS ((int)(sizeof programs / sizeof programs[0]))

#endif /* PROGRAMS_H */
