/* SPDX-License-Identifier: MIT */
/*
 * shutdown.c - the end of a pool, against everything that may happen at the same time
 *
 * Every accepted task is run or cancelled, and every other task is refused. fj_pool_shutdown() does
 * not disturb running tasks. When fj_pool_await_termination() returns FJ_OK, no thread of the pool
 * is left, no hook is called any more, and the pool may be freed.
 */
#define _GNU_SOURCE
#include <string.h>

#include "regression.h"

/* ---- Shutdown between tasks ------------------------------------------------------------- */

struct trio {
    fj_task task, twin[2];
    atomic_int ran, stopped;
    int nap_us;
};

static int trio_twin(fj_task *t, ptrdiff_t offset)
{
    struct trio *r = (struct trio *)(void *)((char *)t - offset);
    if (fj_is_stopping()) atomic_fetch_add(&r->stopped, 1);
    atomic_fetch_add(&r->ran, 1);
    return FJ_OK;
}

static int trio_left(fj_task *t)
{
    return trio_twin(t, offsetof(struct trio, twin[0]));
}

static int trio_right(fj_task *t)
{
    return trio_twin(t, offsetof(struct trio, twin[1]));
}

/* Sleeps, then forks two more. */
static int trio_run(fj_task *t)
{
    struct trio *r = (struct trio *)t;

    if (r->nap_us > 0) fjt_sleep_us(r->nap_us);
    fj_task_init(&r->twin[0], trio_left);
    fj_task_init(&r->twin[1], trio_right);
    fj_fork(&r->twin[0]);
    fj_fork(&r->twin[1]);
    CHECK_EQ(fj_join(&r->twin[0]), FJ_OK);
    CHECK_EQ(fj_join(&r->twin[1]), FJ_OK);
    return trio_twin(t, 0);
}

FJ_TEST(shutdown_lets_a_running_task_and_its_forks_end, 120)
{
    uint64_t seed = fjt_seed();

    for (long i = fjt_rounds(4000); i > 0; i--) {
        fj_pool *p = fjt_pool(1 + regression_below(&seed, 3), i % 2 ? FJ_POOL_FIFO : 0);
        struct trio r = {.nap_us = regression_below(&seed, 50)};
        fj_task_init(&r.task, trio_run);
        CHECK_EQ(fj_submit(p, &r.task), FJ_OK);
        regression_spin_ns(regression_below(&seed, 150000));
        CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&r.ran), 3);
        CHECK_EQ(atomic_load(&r.stopped), 0);
        CHECK_EQ(fj_join(&r.task), FJ_OK);
        fjt_destroy(p);
    }
}

struct heirs {
    fj_pool *pool;
    int depth;
    atomic_int ran, stopped;
};

/* Executes two more actions, which no thread waits for. */
static int heirs_run(void *arg)
{
    struct heirs *h = arg;
    int n = atomic_fetch_add(&h->ran, 1) + 1;

    if (fj_is_stopping()) atomic_fetch_add(&h->stopped, 1);
    if (n < 1 << h->depth) {
        CHECK_EQ(fj_execute(h->pool, heirs_run, h), FJ_OK);
        CHECK_EQ(fj_execute(h->pool, heirs_run, h), FJ_OK);
    }
    return FJ_OK;
}

FJ_TEST(shutdown_lets_actions_leave_actions_behind, 120)
{
    uint64_t seed = fjt_seed();

    for (long i = fjt_rounds(2000); i > 0; i--) {
        fj_pool *p = fjt_pool(1 + regression_below(&seed, 4), i % 2 ? FJ_POOL_FIFO : 0);
        struct heirs h = {.pool = p, .depth = 5};
        CHECK_EQ(fj_execute(p, heirs_run, &h), FJ_OK);
        regression_spin_ns(regression_below(&seed, 100000));
        CHECK_EQ(fj_pool_close(p), FJ_OK);
        /* Each of the first 2^depth - 1 actions executes two more. */
        CHECK_EQ(atomic_load(&h.ran), 2 * ((1 << h.depth) - 1) + 1);
        CHECK_EQ(atomic_load(&h.stopped), 0);
        fjt_destroy(p);
    }
}

struct quieter {
    fj_pool *pool;
    atomic_int helping, released, stopped, heir, over;
};

static int quieter_heir(void *arg)
{
    atomic_store(&((struct quieter *)arg)->heir, 1);
    return FJ_OK;
}

static int quieter_other(void *arg)
{
    UNTIL(atomic_load(&((struct quieter *)arg)->released));
    return FJ_OK;
}

static int quieter_run(void *arg)
{
    struct quieter *q = arg;

    atomic_store(&q->helping, 1);
    fj_help_quiesce();
    atomic_store(&q->stopped, fj_is_stopping());
    CHECK_EQ(fj_execute(q->pool, quieter_heir, q), FJ_OK);
    atomic_store(&q->over, 1);
    return FJ_OK;
}

FJ_TEST(shutdown_waits_for_a_task_that_helps_until_quiet, 60)
{
    for (long i = fjt_rounds(200); i > 0; i--) {
        fj_pool *p = fjt_pool(2, 0);
        struct quieter q = {.pool = p};
        CHECK_EQ(fj_execute(p, quieter_other, &q), FJ_OK);
        CHECK_EQ(fj_execute(p, quieter_run, &q), FJ_OK);
        UNTIL(atomic_load(&q.helping));
        fjt_sleep_us(i % 3 * 100);
        CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        atomic_store(&q.released, 1);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&q.over), 1);
        CHECK_EQ(atomic_load(&q.stopped), 0);
        CHECK_EQ(atomic_load(&q.heir), 1);
        fjt_destroy(p);
    }
}

/* ---- Submitters against the end of the pool --------------------------------------------- */

#define SUBMITTERS 8
#define MOST_TASKS 200

struct offered {
    fj_task task;
    atomic_int ran;
};

static int offered_run(fj_task *t)
{
    atomic_fetch_add(&((struct offered *)t)->ran, 1);
    return FJ_OK;
}

struct rush {
    fj_pool *pool;
    bool now, lazy;
    pthread_barrier_t gate;
    atomic_bool over;
    atomic_int accepted, ran, dropped; /* numbers of actions */
};

struct submitter {
    struct rush *rush;
    uint64_t seed;
    struct offered tasks[MOST_TASKS];
};

static int rush_action(void *arg)
{
    atomic_fetch_add(&((struct rush *)arg)->ran, 1);
    return FJ_OK;
}

static int submit_somehow(fj_pool *p, fj_task *t, int how)
{
    if (how == 0) return fj_submit(p, t);
    if (how == 1) return fj_submit_external(p, t);
    return fj_submit_lazy(p, t);
}

/* Submits until the pool refuses a task, then joins the accepted tasks. */
static void rush_once(struct submitter *s)
{
    struct rush *r = s->rush;
    const struct offered *refused = NULL;
    int n = 0, err = FJ_OK;

    for (; n < MOST_TASKS && err == FJ_OK; n++) {
        struct offered *t = &s->tasks[n];
        atomic_store(&t->ran, 0);
        fj_task_init(&t->task, offered_run);
        err = submit_somehow(r->pool, &t->task, r->lazy ? 2 : regression_below(&s->seed, 3));
        if (err != FJ_OK) {
            refused = t;
            break;
        }
        if (r->lazy) continue;
        if ((err = fj_execute(r->pool, rush_action, r)) == FJ_OK) atomic_fetch_add(&r->accepted, 1);
        regression_spin_ns(regression_below(&s->seed, 1000));
    }
    CHECK(err == FJ_OK || err == FJ_EREJECTED);
    for (int i = 0; i < n; i++) {
        int code = fj_join(&s->tasks[i].task);
        int ran = atomic_load(&s->tasks[i].ran);
        if (code == FJ_ECANCELED && r->now)
            CHECK_EQ(ran, 0);
        else
            CHECK(code == FJ_OK && ran == 1);
    }
    CHECK(refused == NULL || atomic_load(&refused->ran) == 0);
}

static void *rush_main(void *arg)
{
    struct submitter *s = arg;

    for (;;) {
        pthread_barrier_wait(&s->rush->gate);
        if (atomic_load(&s->rush->over)) return NULL;
        rush_once(s);
        pthread_barrier_wait(&s->rush->gate);
    }
}

static void rush_against_the_end(bool now, bool lazy)
{
    static struct submitter s[SUBMITTERS];
    struct rush r = {.now = now, .lazy = lazy};
    pthread_t t[SUBMITTERS];
    uint64_t seed = fjt_seed();
    atomic_int began = 0;

    pthread_barrier_init(&r.gate, NULL, SUBMITTERS + 1);
    for (int i = 0; i < SUBMITTERS; i++) {
        s[i].rush = &r;
        s[i].seed = seed + (uint64_t)i;
        t[i] = regression_thread(rush_main, &s[i]);
    }
    for (long round = fjt_rounds(lazy ? 5000 : 1500); round > 0; round--) {
        r.pool = fjt_pool(lazy ? 1 : 1 + regression_below(&seed, 4), 0);
        atomic_store(&r.accepted, 0);
        atomic_store(&r.ran, 0);
        if (lazy) CHECK_EQ(fj_execute(r.pool, regression_count, &began), FJ_OK);
        pthread_barrier_wait(&r.gate);
        regression_spin_ns(regression_below(&seed, lazy ? 30000 : 200000));
        CHECK_EQ(now ? fj_pool_shutdown_now(r.pool) : fj_pool_shutdown(r.pool), FJ_OK);
        pthread_barrier_wait(&r.gate);
        CHECK_EQ(fj_pool_await_termination(r.pool, FJ_FOREVER), FJ_OK);
        if (now)
            CHECK(atomic_load(&r.ran) <= atomic_load(&r.accepted));
        else
            CHECK_EQ(atomic_load(&r.ran), atomic_load(&r.accepted));
        fjt_destroy(r.pool);
    }
    atomic_store(&r.over, true);
    pthread_barrier_wait(&r.gate);
    for (int i = 0; i < SUBMITTERS; i++) pthread_join(t[i], NULL);
}

FJ_TEST(shutdown_runs_every_accepted_task_and_refuses_the_rest, 120)
{
    rush_against_the_end(false, false);
}

FJ_TEST(shutdown_now_runs_or_cancels_every_accepted_task, 120)
{
    rush_against_the_end(true, false);
}

/* A lazy submission wakes no worker, so the shutdown itself has to make sure that it is run. */
FJ_TEST(shutdown_runs_what_is_queued_lazily_at_that_moment, 60)
{
    rush_against_the_end(false, true);
}

static int endless(void *arg)
{
    UNTIL(atomic_load((atomic_int *)arg));
    return FJ_OK;
}

/*
 * The same step by step. A lazy submitter has seen that the pool is open. It is then delayed while
 * it holds the lock of its queue, until the only worker has gone idle in the pool that was shut
 * down.
 */
FJ_TEST(shutdown_runs_what_a_slow_submitter_queues_lazily, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    atomic_int enough = 0;
    struct offered t = {.ran = 0};
    uint32_t i = 0;

    CHECK_EQ(fj_execute(p, endless, &enough), FJ_OK);
    while (fji_load_acquire(&p->submissions[i]) == NULL) i++;
    fji_submission_queue *q = p->submissions[i];
    UNTIL(fji_submission_queue_count(q) == 0);

    fji_lock_take(&q->lock);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    atomic_store(&enough, 1);
    for (int k = 0; k < 4000 && fji_load_relaxed(&q->lock.waiters) == 0; k++) fjt_sleep_us(50);
    fj_task_init(&t.task, offered_run);
    t.task.cell = p->submitted_cell;
    t.task.location = i | fji_location_stamp();
    CHECK(fji_submission_queue_push(q, &(fji_taken){.item = (uintptr_t)&t.task | FJI_TAG_DETACHED},
                                    &t.task.number));
    fji_lock_drop(&q->lock);

    CHECK_EQ(fj_join(&t.task), FJ_OK);
    CHECK_EQ(atomic_load(&t.ran), 1);
    fjt_destroy(p);
}

/* ---- Threads that are just starting or ending ------------------------------------------- */

struct hooks {
    atomic_int started, stopped;
    int start_us, stop_us;
};

static int hook_start(fj_pool *pool, int worker, void *arg)
{
    struct hooks *h = arg;
    (void)pool, (void)worker;
    if (h->start_us > 0) fjt_sleep_us(h->start_us);
    atomic_fetch_add(&h->started, 1);
    return FJ_OK;
}

static void hook_stop(fj_pool *pool, int worker, void *arg)
{
    struct hooks *h = arg;
    (void)pool, (void)worker;
    if (h->stop_us > 0) fjt_sleep_us(h->stop_us);
    atomic_fetch_add(&h->stopped, 1);
}

static fj_pool *hooked_pool(struct hooks *h, int n)
{
    fj_pool_options o = {0};

    o.parallelism = n;
    o.keep_alive_ns = 1;
    o.arg = h;
    o.on_start = hook_start;
    o.on_stop = hook_stop;
    return fjt_pool_with(&o);
}

FJ_TEST(stop_waits_for_workers_that_are_just_starting, 120)
{
    uint64_t seed = fjt_seed();

    for (long i = fjt_rounds(3000); i > 0; i--) {
        struct hooks h = {.start_us = regression_below(&seed, 2) * regression_below(&seed, 300)};
        fj_pool *p = hooked_pool(&h, 1 + regression_below(&seed, 6));
        atomic_int ran = 0;
        for (int k = regression_below(&seed, 6); k >= 0; k--) {
            CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
        }
        regression_spin_ns(regression_below(&seed, 200000));
        CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&h.started), atomic_load(&h.stopped));
        CHECK_EQ(fj_pool_thread_count(p), 0);
        fjt_destroy(p);
    }
}

/* An idle worker that ends is still in its on_stop hook when the pool is stopped. */
FJ_TEST(the_end_waits_for_a_worker_that_leaves_for_lack_of_work, 60)
{
    for (long i = fjt_rounds(20); i > 0; i--) {
        struct hooks h = {.stop_us = 20000};
        fj_pool *p = hooked_pool(&h, 1);
        regression_all_at_once(p, 1);
        UNTIL(regression_total(p) == 0);
        CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&h.stopped), atomic_load(&h.started));
        fjt_destroy(p);
    }
}

FJ_TEST(shutdown_waits_for_a_worker_that_leaves_for_lack_of_work, 60)
{
    for (long i = fjt_rounds(20); i > 0; i--) {
        struct hooks h = {.stop_us = 20000};
        fj_pool *p = hooked_pool(&h, 1);
        regression_all_at_once(p, 1);
        UNTIL(regression_total(p) == 0);
        CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&h.stopped), atomic_load(&h.started));
        fjt_destroy(p);
    }
}

/* ---- The end is the end ----------------------------------------------------------------- */

/* AddressSanitizer reports a thread that still uses the pool. */
FJ_TEST(a_terminated_pool_may_be_freed_at_once, 120)
{
    uint64_t seed = fjt_seed();

    for (long i = fjt_rounds(4000); i > 0; i--) {
        fj_pool *p = fjt_pool(1 + regression_below(&seed, 8), i % 2 ? FJ_POOL_CALLER_HELPS : 0);
        atomic_int ran = 0;
        int n = regression_below(&seed, 10);
        for (int k = 0; k < n; k++) CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
        regression_spin_ns(regression_below(&seed, 60000));
        CHECK_EQ(i % 3 ? fj_pool_shutdown(p) : fj_pool_shutdown_now(p), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        CHECK(fj_pool_is_terminated(p));
        CHECK(i % 3 == 0 || atomic_load(&ran) == n);
        fjt_destroy(p);
    }
}

/* The same while idle workers are ending. */
FJ_TEST(a_pool_whose_workers_are_leaving_may_be_freed_at_once, 120)
{
    uint64_t seed = fjt_seed();

    for (long i = fjt_rounds(1500); i > 0; i--) {
        fj_pool *p = fjt_pool(4, 0);
        p->keep_alive_ns = 1000 * (1 + regression_below(&seed, 100));
        regression_all_at_once(p, 1 + regression_below(&seed, 4));
        regression_spin_ns(regression_below(&seed, 200000));
        if (i % 2) CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
        fjt_destroy(p);
    }
}

FJ_TEST(a_timed_wait_for_the_end_of_a_busy_pool_is_over_in_time, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    atomic_int enough = 0;

    CHECK_EQ(fj_execute(p, endless, &enough), FJ_OK);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(p, 0), FJ_ETIMEDOUT);
    int64_t start = fjt_now();
    CHECK_EQ(fj_pool_await_termination(p, 30000000), FJ_ETIMEDOUT);
    CHECK(fjt_now() - start >= 30000000);
    CHECK(!fj_pool_is_terminated(p));
    atomic_store(&enough, 1);
    CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
    fjt_destroy(p);
}

/* ---- From a task, without workers, without a wake-up ------------------------------------ */

struct inside {
    fj_task task;
    int destroy, close, await, end;
};

static int end_own_pool(fj_task *t)
{
    struct inside *s = (struct inside *)t;
    fj_pool *p = fj_current_pool();

    s->destroy = fj_pool_destroy(p);
    s->close = fj_pool_close(p);
    s->await = fj_pool_await_termination(p, FJ_FOREVER);
    s->end = fj_pool_is_shutdown(p);
    return fj_pool_shutdown(p);
}

FJ_TEST(a_task_cannot_wait_for_the_end_of_its_own_pool, 30)
{
    for (int helps = 0; helps < 2; helps++) {
        fj_pool *p = fjt_pool(2, helps ? FJ_POOL_CALLER_HELPS : 0);
        struct inside s = {.end = -1};
        fj_task_init(&s.task, end_own_pool);
        CHECK_EQ(fj_invoke(p, &s.task), FJ_OK);
        CHECK_EQ(s.destroy, FJ_EDEADLK);
        CHECK_EQ(s.close, FJ_EDEADLK);
        CHECK_EQ(s.await, FJ_EDEADLK);
        CHECK_EQ(s.end, 0);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        fjt_destroy(p);
    }
}

static int stop_own_pool(fj_task *t)
{
    (void)t;
    CHECK_EQ(fj_pool_shutdown_now(fj_current_pool()), FJ_OK);
    CHECK(fj_is_stopping());
    return 7;
}

FJ_TEST(a_task_may_stop_its_own_pool, 60)
{
    for (long i = fjt_rounds(500); i > 0; i--) {
        fj_pool *p = fjt_pool(1 + (int)(i % 3), 0);
        fj_task t;
        fj_task_init(&t, stop_own_pool);
        CHECK_EQ(fj_invoke(p, &t), 7);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        fjt_destroy(p);
    }
}

FJ_TEST(a_pool_that_never_had_a_worker_ends, 30)
{
    for (long i = fjt_rounds(2000); i > 0; i--) {
        fj_pool *p = fjt_pool(2, 0);
        CHECK_EQ(i % 2 ? fj_pool_shutdown(p) : fj_pool_shutdown_now(p), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        fjt_destroy(p);
    }
}

FJ_TEST(ending_a_pool_without_work_starts_no_thread, 30)
{
    fj_pool *p = fjt_pool(2, 0);

    CHECK_EQ(fj_pool_close(p), FJ_OK);
    CHECK_EQ(regression_started(p), 0);
    fjt_destroy(p);
}

FJ_TEST(shutdown_runs_what_was_queued_lazily, 60)
{
    for (long i = fjt_rounds(1000); i > 0; i--) {
        fj_pool *p = fjt_pool(1 + (int)(i % 3), 0);
        struct offered t[5];
        for (int k = 0; k < 5; k++) {
            atomic_init(&t[k].ran, 0);
            fj_task_init(&t[k].task, offered_run);
            CHECK_EQ(fj_submit_lazy(p, &t[k].task), FJ_OK);
        }
        CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        for (int k = 0; k < 5; k++) {
            CHECK_EQ(atomic_load(&t[k].ran), 1);
            CHECK_EQ(fj_join(&t[k].task), FJ_OK);
        }
        fjt_destroy(p);
    }
}

/* ---- Tasks in every queue when the pool stops ------------------------------------------- */

#define LOCAL 300 /* more than the initial capacity of a queue */

struct stuffed {
    fj_task task;
    struct offered local[LOCAL], forked[LOCAL];
    atomic_int ready, go;
    int ok, cancelled;
};

static void stuffed_judge(struct stuffed *s, struct offered *t)
{
    int code = fj_join(&t->task);
    int ran = atomic_load(&t->ran);

    CHECK((code == FJ_OK && ran == 1) || (code == FJ_ECANCELED && ran == 0));
    if (ran)
        s->ok++;
    else
        s->cancelled++;
}

/* Fills its own queue with submitted and forked tasks, waits for the stop, then joins them all. */
static int stuffed_run(fj_task *t)
{
    struct stuffed *s = (struct stuffed *)t;

    for (int i = 0; i < LOCAL; i++) {
        fj_task_init(&s->local[i].task, offered_run);
        fj_task_init(&s->forked[i].task, offered_run);
        CHECK_EQ(fj_submit(fj_current_pool(), &s->local[i].task), FJ_OK);
        fj_fork(&s->forked[i].task);
    }
    atomic_store(&s->ready, 1);
    UNTIL(atomic_load(&s->go));
    for (int i = LOCAL; i-- > 0;) {
        stuffed_judge(s, &s->forked[i]);
        stuffed_judge(s, &s->local[i]);
    }
    return FJ_OK;
}

FJ_TEST(a_stop_wakes_whoever_waits_for_a_queued_task, 120)
{
    static struct stuffed s;
    static struct offered outside[LOCAL];

    for (long round = fjt_rounds(200); round > 0; round--) {
        fj_pool *p = fjt_pool(1 + (int)(round % 3), round % 2 ? FJ_POOL_FIFO : 0);
        memset(&s, 0, sizeof s);
        fj_task_init(&s.task, stuffed_run);
        CHECK_EQ(fj_submit(p, &s.task), FJ_OK);
        UNTIL(atomic_load(&s.ready));
        for (int i = 0; i < LOCAL; i++) {
            atomic_init(&outside[i].ran, 0);
            fj_task_init(&outside[i].task, offered_run);
            CHECK_EQ(fj_submit(p, &outside[i].task), FJ_OK);
        }
        if (round % 4 < 2) atomic_store(&s.go, 1);
        CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
        for (int i = 0; i < LOCAL; i++) {
            int code = fj_join(&outside[i].task);
            CHECK_EQ(code, atomic_load(&outside[i].ran) ? FJ_OK : FJ_ECANCELED);
        }
        atomic_store(&s.go, 1);
        CHECK_EQ(fj_join(&s.task), FJ_OK);
        CHECK_EQ(s.ok + s.cancelled, 2 * LOCAL);
        CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
        fjt_destroy(p);
    }
}

/* ---- Refusals --------------------------------------------------------------------------- */

static void check_refused(fj_pool *p)
{
    atomic_int ran = 0;
    struct offered t = {.ran = 0};

    fj_task_init(&t.task, offered_run);
    CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_EREJECTED);
    CHECK_EQ(fj_submit(p, &t.task), FJ_EREJECTED);
    CHECK_EQ(fj_submit_external(p, &t.task), FJ_EREJECTED);
    CHECK_EQ(fj_submit_lazy(p, &t.task), FJ_EREJECTED);
    CHECK_EQ(fj_invoke(p, &t.task), FJ_EREJECTED);
    CHECK_EQ(fj_invoke_mode(p, &t.task, FJ_CALLER_HELPS), FJ_EREJECTED);
    CHECK_EQ(atomic_load(&ran) + atomic_load(&t.ran), 0);
}

static void *refused_elsewhere(void *arg)
{
    check_refused(arg);
    return NULL;
}

FJ_TEST(a_thread_that_has_submitted_before_is_refused_too, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    atomic_int enough = 0;

    CHECK_EQ(fj_execute(p, endless, &enough), FJ_OK);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    check_refused(p);
    pthread_join(regression_thread(refused_elsewhere, p), NULL);
    atomic_store(&enough, 1);
    CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
    check_refused(p);
    fjt_destroy(p);
}

FJ_TEST(the_common_pool_cannot_be_ended, 30)
{
    fj_pool *p = fj_common_pool();

    CHECK_EQ(fj_pool_shutdown(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_close(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_destroy(p), FJ_ENOTSUP);
    CHECK_EQ(fj_pool_await_termination(p, 1000000), FJ_ETIMEDOUT);
    struct offered o = {.ran = 0};
    fj_task_init(&o.task, offered_run);
    CHECK_EQ(fj_invoke(p, &o.task), FJ_OK);
    CHECK_EQ(atomic_load(&o.ran), 1);
}
