/* SPDX-License-Identifier: MIT */
/*
 * rest.c - bugs that belong to no other group: signals, clocks, held locks, memory layout
 *
 * "TRAPS n" refers to row n of docs/traps.md. The comment above a test describes the bug that the
 * test finds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <forkjoin/block.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "regression.h"

#define MS ((int64_t)1000000)
#define LONG_NS (600 * 1000 * MS)

/* ---- Signals to sleeping workers ----------------------------------------------------------------- */

static void on_signal(int sig)
{
    (void)sig;
}

static pthread_t shot[4];
static atomic_int shots_armed, shots_over;

static int arm(fj_pool *pool, int worker, void *arg)
{
    (void)pool;
    (void)arg;
    shot[worker] = pthread_self();
    atomic_fetch_or(&shots_armed, 1 << worker);
    return FJ_OK;
}

static void *shoot(void *arg)
{
    (void)arg;
    while (!atomic_load(&shots_over)) {
        for (int i = 0; i < 4; i++)
            if ((atomic_load(&shots_armed) & 1 << i) != 0) pthread_kill(shot[i], SIGUSR1);
        fjt_sleep_us(20);
    }
    return NULL;
}

/* TRAPS 4: a worker takes a sleep that a signal has ended for a wake-up, or loses its wake-up. */
FJ_TEST(workers_are_woken_though_signals_end_their_sleep, 60)
{
    struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART */
    fj_pool_options o = {0};
    uint64_t seed = fjt_seed();

    CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
    o.parallelism = 4;
    o.max_threads = 4; /* no worker ends before the pool does, so that its thread stays valid */
    o.spin_ns = -1;
    o.interrupt_signal = SIGUSR1;
    o.on_start = arm;
    fj_pool *p = fjt_pool_with(&o);
    regression_all_at_once(p, 4);
    pthread_t t = regression_thread(shoot, NULL);
    for (long i = fjt_rounds(4000); i > 0; i--) {
        atomic_int ran = 0;
        int n = 1 + regression_below(&seed, 4);
        for (int k = 0; k < n; k++) CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
        UNTIL(atomic_load(&ran) == n);
        regression_spin_ns(regression_below(&seed, 50000));
    }
    atomic_store(&shots_over, 1);
    pthread_join(t, NULL);
    regression_rest(p);
    CHECK_EQ(regression_started(p), 4);
    fjt_destroy(p);
}

/* ---- CPU use ---------------------------------------------------------------------------------- */

/* TRAPS 6: every single task wakes workers that find nothing, or keeps them searching. */
FJ_TEST(task_now_and_then_costs_little_cpu, 60)
{
    fj_pool *p = fjt_pool(16, 0);
    atomic_int ran = 0;

    regression_all_at_once(p, 16);
    regression_rest(p);
    int64_t wall = fjt_now(), cpu = fjt_cpu();
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
        fjt_sleep_us(1000);
    }
    wall = fjt_now() - wall;
    cpu = fjt_cpu() - cpu;
    UNTIL(atomic_load(&ran) == 500);
    if (!fjt_sanitized() && cpu > wall / 2)
        fjt_fail(__FILE__, __LINE__, "%lld us of CPU in %lld us", (long long)cpu / 1000,
                 (long long)wall / 1000);
    fjt_destroy(p);
}

/* ---- Numbers that wrap --------------------------------------------------------------------------- */

static int get_it(void *f)
{
    return fj_future_get(f, FJ_FOREVER, NULL);
}

/* TRAPS 9: the counter of a wait bucket is compared as if it never wrapped. */
FJ_TEST(lot_that_wraps_still_wakes, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    uint64_t seed = fjt_seed();

    for (long i = fjt_rounds(300); i > 0; i--) {
        fj_future awaited, *f;
        fj_future_init(&awaited, NULL);
        uint32_t *lot = fji_wait_bucket(&awaited);
        fji_store_relaxed(lot, UINT32_MAX - (uint32_t)(i % 2));
        CHECK_EQ(fj_submit_action(p, get_it, &awaited, NULL, &f), FJ_OK);
        if (i % 3 != 0) {
            UNTIL((fji_load_acquire(&awaited.task.state) & FJI_OBSERVED) != 0);
            fji_wait_bucket_notify(lot); /* as for another future in the same bucket */
        }
        regression_spin_ns(regression_below(&seed, 100000));
        CHECK_EQ(fj_future_complete(&awaited, NULL), 1);
        CHECK_EQ(fj_future_join(f), FJ_OK);
        fj_future_unref(f);
    }
    fjt_destroy(p);
}

/* TRAPS 9: the pseudo-random number of a worker becomes 0 and then stays 0. */
FJ_TEST(random_numbers_of_workers_never_end, 10)
{
    static fji_worker w;
    uint32_t starts[] = {1, 0x7fffffff, 0x80000000, 0xffffffff};

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        w.random = starts[i];
        for (int k = 0; k < 100000; k++) CHECK(fji_worker_random(&w) != 0);
    }
}

/* ---- The number of CPUs --------------------------------------------------------------------------- */

static int fake_cpus = -1;

/* Replaces the function of the C library, so that the pool sees `fake_cpus` CPUs. */
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    if (fake_cpus < 0) {
        long n = syscall(SYS_sched_getaffinity, pid, bytes, set);
        if (n < 0) return -1;
        memset((char *)set + n, 0, bytes - (size_t)n);
        return 0;
    }
    if (bytes * 8 < (size_t)fake_cpus) {
        errno = EINVAL;
        return -1;
    }
    memset(set, 0, bytes);
    for (int i = 0; i < fake_cpus; i++) CPU_SET_S((size_t)i, bytes, set);
    return 0;
}

/* TRAPS 10: on a machine with more CPUs than the limit, or with one CPU, no pool can be created. */
FJ_TEST(any_number_of_cpus_gives_a_pool, 30)
{
    static const int numbers[] = {0, 1, 2, 1025, 32766, 32767, 32768, 40000, 500000};

    fake_cpus = 1;
    if (fj_available_parallelism() != 1)
        fjt_skip("the number of CPUs does not follow the affinity");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        fake_cpus = numbers[i];
        int n = fj_available_parallelism();
        CHECK(n >= 1 && n <= FJ_MAX_WORKERS);
        if (fake_cpus > 0) CHECK(n <= fake_cpus); /* fewer if there is a CPU quota */
        fj_pool *p = fjt_pool(0, 0);
        CHECK_EQ(fj_pool_parallelism(p), n);
        atomic_int ran = 0;
        CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
        UNTIL(atomic_load(&ran) == 1);
        fjt_destroy(p);
    }
}

/* TRAPS 10: the same for the common pool, which must also leave space for spare threads. */
FJ_TEST(common_pool_of_a_huge_machine_works, 30)
{
    fake_cpus = 40000;
    int n = fj_common_parallelism();
    CHECK(n >= 1 && n < FJ_MAX_WORKERS);
    atomic_int ran = 0;
    CHECK_EQ(fj_execute(NULL, regression_count, &ran), FJ_OK);
    UNTIL(atomic_load(&ran) == 1);
}

/* ---- The end of a pool while a lock is held -------------------------------------------------------- */

static atomic_int destroyed;

static void *destroy_it(void *p)
{
    CHECK_EQ(fj_pool_destroy(p), FJ_OK);
    atomic_store(&destroyed, 1);
    return NULL;
}

/* TRAPS 14: the pool is freed while another thread holds the lock under which workers register. */
FJ_TEST(end_waits_for_whoever_holds_the_lock, 60)
{
    uint64_t seed = fjt_seed();

    for (long i = fjt_rounds(200); i > 0; i--) {
        fj_pool *p;
        fj_pool_options o = {0};
        atomic_int ran = 0;
        o.parallelism = 2;
        CHECK_EQ(fj_pool_create(&p, &o), FJ_OK);
        if (i % 2) CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
        atomic_store(&destroyed, 0);
        fji_lock_take(&p->lock);
        pthread_t t = regression_thread(destroy_it, p);
        regression_spin_ns(regression_below(&seed, 1000000));
        CHECK_EQ(atomic_load(&destroyed), 0);
        (void)fji_load_relaxed(&p->workers);
        fji_lock_drop(&p->lock);
        pthread_join(t, NULL);
        CHECK_EQ(atomic_load(&ran), i % 2);
    }
}

/* ---- Refusals ------------------------------------------------------------------------------------- */

static int never_run(fj_task *t)
{
    (void)t;
    fjt_fail(__FILE__, __LINE__, "the pool runs a future that it has refused");
}

static int call_never(void *arg, void **result)
{
    (void)arg;
    (void)result;
    return never_run(NULL);
}

static int action_never(void *arg)
{
    (void)arg;
    return never_run(NULL);
}

static int hold_until(void *flag)
{
    UNTIL(atomic_load((atomic_int *)flag));
    return FJ_OK;
}

static int fine(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

static void check_refused(fj_pool *p)
{
    fj_future f, *made = NULL;
    fj_completer c;

    fj_future_init(&f, never_run);
    fj_completer_init(&c, NULL, 0, never_run, NULL, NULL);
    CHECK_EQ(fj_future_submit(p, &f), FJ_EREJECTED);
    CHECK_EQ(fj_future_submit_external(p, &f), FJ_EREJECTED);
    CHECK_EQ(fj_future_submit_lazy(p, &f), FJ_EREJECTED);
    CHECK_EQ(fj_future_invoke(p, &f), FJ_EREJECTED);
    CHECK_EQ(fj_submit_call(p, call_never, NULL, &made), FJ_EREJECTED);
    CHECK_EQ(fj_submit_action(p, action_never, NULL, NULL, &made), FJ_EREJECTED);
    CHECK_EQ(fj_completer_submit(p, &c), FJ_EREJECTED);
    CHECK_EQ(fj_completer_invoke(p, &c), FJ_EREJECTED);
    CHECK(made == NULL);
    CHECK(!fj_future_is_done(&f));
    fj_future_fini(&f); /* returns at once, because the pool does not use it */
}

static void *refused_elsewhere(void *p)
{
    check_refused(p);
    return NULL;
}

/* TRAPS 18: a thread that has submitted before takes a fast path that does not check for
 * shutdown. */
FJ_TEST(futures_of_a_known_submitter_are_refused_too, 30)
{
    fj_pool *p = fjt_pool(1, 0), *other = fjt_pool(1, 0);
    atomic_int enough = 0;
    fj_future f, *busy;

    CHECK_EQ(fj_submit_action(p, hold_until, &enough, NULL, &busy), FJ_OK);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    check_refused(p);
    pthread_join(regression_thread(refused_elsewhere, p), NULL);
    fj_future_init(&f, fine);
    CHECK_EQ(fj_future_submit(p, &f), FJ_EREJECTED);
    CHECK_EQ(fj_future_submit(other, &f), FJ_OK); /* a refused future can be submitted again */
    CHECK_EQ(fj_future_join(&f), FJ_OK);
    fj_future_fini(&f);
    atomic_store(&enough, 1);
    CHECK_EQ(fj_future_join(busy), FJ_OK);
    fj_future_unref(busy);
    CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
    check_refused(p);
    fjt_destroy(p);
    fjt_destroy(other);
}

/* ---- Quiescence -------------------------------------------------------------------------------- */

static int brief(fj_task *t)
{
    (void)t;
    regression_spin_ns(500);
    return FJ_OK;
}

/* TRAPS 23: the pool is reported as quiescent before the last task is marked as done. */
FJ_TEST(futures_are_done_when_their_pool_is_quiet, 60)
{
    enum { N = 8 };

    for (unsigned flags = 0; flags < 4; flags++) {
        fj_pool *p = fjt_pool(3, flags);
        for (long i = fjt_rounds(1000); i > 0; i--) {
            fj_future f[N];
            for (int k = 0; k < N; k++) {
                fj_future_init(&f[k], brief);
                CHECK_EQ(fj_future_submit(p, &f[k]), FJ_OK);
            }
            CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
            for (int k = 0; k < N; k++) CHECK(fj_future_succeeded(&f[k]));
            for (int k = 0; k < N; k++) fj_future_fini(&f[k]);
        }
        fjt_destroy(p);
    }
}

static pthread_t who_waits;
static atomic_int by_the_waiter;

static int look_who(void *ran)
{
    regression_spin_ns(1000);
    if (pthread_equal(pthread_self(), who_waits)) atomic_fetch_add(&by_the_waiter, 1);
    return regression_count(ran);
}

/* TRAPS 24: a thread that waits for quiescence runs unrelated tasks on its own stack, although the
 * pool does not have FJ_POOL_CALLER_HELPS. */
FJ_TEST(waiting_for_quiet_runs_nothing_unless_callers_help, 60)
{
    fj_pool *p = fjt_pool(2, 0);

    who_waits = pthread_self();
    for (long i = fjt_rounds(500); i > 0; i--) {
        atomic_int ran = 0;
        for (int k = 0; k < 20; k++) CHECK_EQ(fj_execute(p, look_who, &ran), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&ran), 20);
    }
    CHECK_EQ(atomic_load(&by_the_waiter), 0);
    fjt_destroy(p);
}

/* ---- Waits that fail ------------------------------------------------------------------------------ */

static int says_no(fj_pool *pool, void *arg)
{
    (void)pool;
    (void)arg;
    return 0;
}

static int not_ready(void *arg)
{
    (void)arg;
    return 0;
}

static int must_not_block(void *called)
{
    atomic_fetch_add((atomic_int *)called, 1);
    return 1;
}

static struct {
    fj_pool *pool;
    atomic_int here, may_go, blocked, result;
} full;

static int full_body(void *arg)
{
    fj_future f;
    fj_blocking b = {&full, 77};
    bool last = atomic_fetch_add(&full.here, 1) == 1;
    void *result = &full;

    (void)arg;
    UNTIL(atomic_load(&full.here) == 2);
    if (!last) { /* occupies the other thread of the pool */
        UNTIL(atomic_load(&full.may_go));
        return FJ_OK;
    }
    CHECK_EQ(fj_managed_block(not_ready, must_not_block, &full.blocked), FJ_ESATURATED);
    CHECK_EQ(fj_block_begin(&b), FJ_ESATURATED);
    CHECK(b.worker == &full && b.token == 77);
    fj_future_init(&f, NULL); /* calls that cannot return FJ_ESATURATED wait nevertheless */
    CHECK_EQ(fj_future_get(&f, 2 * MS, &result), FJ_ETIMEDOUT);
    CHECK(result == &full);
    CHECK_EQ(fj_sleep_ns(MS), FJ_OK);
    atomic_store(&full.may_go, 1);
    return FJ_OK;
}

/* TRAPS 28: at the limit of threads a wait returns an error after it has already waited or stored a
 * result. */
FJ_TEST(wait_refused_at_the_limit_has_done_nothing, 30)
{
    fj_pool_options o = {0};

    o.parallelism = o.max_threads = o.min_runnable = 2;
    o.allow_saturation = says_no;
    full.pool = fjt_pool_with(&o);
    for (long i = fjt_rounds(100); i > 0; i--) {
        atomic_store(&full.here, 0);
        atomic_store(&full.may_go, 0);
        for (int k = 0; k < 2; k++) CHECK_EQ(fj_execute(full.pool, full_body, NULL), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(full.pool, FJ_FOREVER), FJ_OK);
    }
    CHECK_EQ(atomic_load(&full.blocked), 0);
    regression_rest(full.pool);
    regression_all_at_once(full.pool, 2);
    fjt_destroy(full.pool);
}

static int gives_up(void *arg)
{
    fjt_sleep_us(20);
    return arg != NULL ? -5 : 0;
}

/* Makes one of the waits that can fail, as `kind` says. */
static int bad_wait(void *arg)
{
    int kind = (int)(intptr_t)arg;
    fj_future never;
    fj_blocking b;
    size_t which;
    fj_future *one[] = {&never};

    fj_future_init(&never, NULL);
    switch (kind) {
        case 0: (void)!fj_managed_block(not_ready, gives_up, &never); break;
        case 1: (void)!fj_managed_block(not_ready, gives_up, NULL); break; /* until cancelled */
        case 2: (void)fj_sleep_ns(LONG_NS); break;
        case 3: (void)!fj_future_get(&never, FJ_FOREVER, NULL); break;
        case 4: (void)!fj_future_wait_any(one, 1, FJ_FOREVER, &which); break;
        case 5: (void)!fj_future_get(&never, 30000, NULL); break;
        case 6:
            if (fj_block_begin(&b) == FJ_OK) fj_block_end(&b);
            fj_block_end(NULL);
            break;
        default: return 9;
    }
    return FJ_OK;
}

/* TRAPS 29: a wait that returns an error leaves the count of blocked workers too high. */
FJ_TEST(waits_that_end_badly_cost_no_count, 60)
{
    enum { N = 6, WORKERS = 3 };
    uint64_t seed = fjt_seed();

    for (int refuses = 0; refuses < 2; refuses++) {
        fj_pool_options o = {0};
        o.parallelism = WORKERS;
        o.max_threads = WORKERS + 2;
        o.min_runnable = WORKERS;
        o.keep_alive_ns = 20 * MS;
        if (refuses) o.allow_saturation = says_no;
        fj_pool *p = fjt_pool_with(&o);
        for (long i = fjt_rounds(400); i > 0; i--) {
            fj_future *f[N];
            for (int k = 0; k < N; k++) {
                intptr_t kind = regression_below(&seed, 8);
                CHECK_EQ(fj_submit_action(p, bad_wait, (void *)kind, NULL, &f[k]), FJ_OK);
            }
            regression_spin_ns(regression_below(&seed, 100000));
            for (int k = 0; k < N; k++) (void)fj_future_cancel(f[k], 1);
            for (int k = 0; k < N; k++) fj_future_unref(f[k]);
            CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        }
        regression_rest(p);
        regression_all_at_once(p, WORKERS);
        fjt_destroy(p);
    }
}

/* ---- Locks held across waits ----------------------------------------------------------------------- */

static pthread_mutex_t guarded = PTHREAD_MUTEX_INITIALIZER;
static long guarded_sum;

static int wants_the_lock(fj_task *t)
{
    (void)t;
    CHECK_EQ(fj_block_mutex_lock(&guarded), FJ_OK);
    guarded_sum++;
    CHECK_EQ(pthread_mutex_unlock(&guarded), 0);
    return FJ_OK;
}

/* Waits for one of its futures while it holds the lock. The other futures wait for the lock. */
static int holds_the_lock(fj_task *t)
{
    fj_future other[4], mine;

    (void)t;
    for (int i = 0; i < 4; i++) {
        fj_future_init(&other[i], wants_the_lock);
        CHECK_EQ(fj_future_fork(&other[i]), FJ_OK);
    }
    fj_future_init(&mine, brief);
    CHECK_EQ(fj_future_fork(&mine), FJ_OK);
    CHECK_EQ(fj_block_mutex_lock(&guarded), FJ_OK);
    CHECK_EQ(fj_future_join(&mine), FJ_OK);
    CHECK_EQ(pthread_mutex_unlock(&guarded), 0);
    fj_future_fini(&mine);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(fj_future_join(&other[i]), FJ_OK);
        fj_future_fini(&other[i]);
    }
    return FJ_OK;
}

/* TRAPS 31: the holder of a lock waits for one future and helps by running another that locks the
 * same mutex. */
FJ_TEST(mutex_may_be_held_over_the_wait_for_a_future, 60)
{
    enum { N = 6 };
    long want = 0;

    for (unsigned flags = 0; flags < 2; flags++) {
        fj_pool *p = fjt_pool(2, flags);
        for (long i = fjt_rounds(300); i > 0; i--, want += 4 * N) {
            fj_future f[N];
            for (int k = 0; k < N; k++) {
                fj_future_init(&f[k], holds_the_lock);
                CHECK_EQ(fj_future_submit(p, &f[k]), FJ_OK);
            }
            for (int k = 0; k < N; k++) {
                CHECK_EQ(fj_future_join(&f[k]), FJ_OK);
                fj_future_fini(&f[k]);
            }
        }
        fjt_destroy(p);
    }
    CHECK_EQ(guarded_sum, want);
}

/* ---- A pool that hangs ----------------------------------------------------------------------------- */

static void count_line(const char *text, void *arg)
{
    if (strstr(text, "worker") != NULL) ++*(int *)arg;
}

static pthread_mutex_t raw = PTHREAD_MUTEX_INITIALIZER;
static atomic_int before_raw;

static int waits_raw(void *arg)
{
    (void)arg;
    atomic_fetch_add(&before_raw, 1);
    CHECK_EQ(pthread_mutex_lock(&raw), 0);
    CHECK_EQ(pthread_mutex_unlock(&raw), 0);
    return FJ_OK;
}

/* TRAPS 32: the dump of a pool that hangs hangs as well. */
FJ_TEST(pool_that_hangs_with_all_its_locks_held_can_be_dumped, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    char text[200];
    int lines = 0;

    pthread_mutex_lock(&raw);
    for (int i = 0; i < 6; i++) CHECK_EQ(fj_execute(p, waits_raw, NULL), FJ_OK);
    UNTIL(atomic_load(&before_raw) == 2);
    fji_lock_take(&p->lock);
    for (uint32_t i = 0; i < p->nsubmissions; i++)
        if (p->submissions[i] != NULL) fji_lock_take(&p->submissions[i]->lock);
    fj_pool_dump(p, count_line, &lines);
    CHECK(lines >= 2);
    CHECK(fj_pool_describe(p, text, sizeof text) > 0);
    CHECK_EQ(fj_pool_active_count(p), 2);
    for (uint32_t i = 0; i < p->nsubmissions; i++)
        if (p->submissions[i] != NULL) fji_lock_drop(&p->submissions[i]->lock);
    fji_lock_drop(&p->lock);
    pthread_mutex_unlock(&raw);
    fjt_destroy(p);
}

/* ---- What tasks leave in thread-local variables --------------------------------------------------- */

static _Thread_local int dirt;
static atomic_int resets, found_dirt;

static void wipe(fj_pool *pool, int worker, void *arg)
{
    (void)pool;
    (void)worker;
    (void)arg;
    dirt = 0;
    atomic_fetch_add(&resets, 1);
}

static int adds_dirt(fj_task *t)
{
    (void)t;
    dirt++;
    return FJ_OK;
}

/* Must find a clean thread. What its own forks leave there stays until it ends. */
static int starts_clean(fj_task *t)
{
    fj_task child[20];

    (void)t;
    if (dirt != 0) atomic_fetch_add(&found_dirt, 1);
    for (int i = 0; i < 20; i++) {
        fj_task_init(&child[i], adds_dirt);
        fj_fork(&child[i]);
    }
    for (int i = 20; i-- > 0;) CHECK_EQ(fj_join(&child[i]), FJ_OK);
    CHECK_EQ(dirt, 20);
    return FJ_OK;
}

static int action_clean(void *ran)
{
    if (dirt != 0) atomic_fetch_add(&found_dirt, 1);
    dirt++;
    return regression_count(ran);
}

static fj_pool *pool_that_wipes(void)
{
    fj_pool_options o = {0};

    o.parallelism = o.max_threads = 1;
    o.on_reset = wipe;
    return fjt_pool_with(&o);
}

/* TRAPS 37: the next submission finds what a submission has left in the thread; or the reset comes
 * in the middle of a submission. */
FJ_TEST(thread_is_wiped_between_submissions_and_not_within, 30)
{
    enum { N = 50 };
    fj_pool *p = pool_that_wipes();
    fj_task t[N];

    for (long round = fjt_rounds(50); round > 0; round--) {
        atomic_store(&resets, 0);
        for (int i = 0; i < N; i++) {
            fj_task_init(&t[i], starts_clean);
            CHECK_EQ(fj_submit(p, &t[i]), FJ_OK);
        }
        for (int i = 0; i < N; i++) CHECK_EQ(fj_join(&t[i]), FJ_OK);
        UNTIL(atomic_load(&resets) >= N);
        CHECK_EQ(atomic_load(&resets), N);
        CHECK_EQ(atomic_load(&found_dirt), 0);
    }
    fjt_destroy(p);
}

/* TRAPS 37: the same for actions of several callers that a worker takes in one batch. */
FJ_TEST(thread_is_wiped_between_actions_taken_together, 30)
{
    fj_pool *p = pool_that_wipes();

    for (long round = fjt_rounds(50); round > 0; round--) {
        atomic_int go = 0, ran = 0;
        CHECK_EQ(fj_execute(p, hold_until, &go), FJ_OK);
        for (int i = 0; i < 20; i++) CHECK_EQ(fj_execute(p, action_clean, &ran), FJ_OK);
        atomic_store(&go, 1);
        UNTIL(atomic_load(&ran) == 20);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&found_dirt), 0);
    }
    fjt_destroy(p);
}

/* ---- One submission queue, several threads --------------------------------------------------------- */

struct mine {
    fj_task task;
    atomic_int runs;
};

static int mine_run(fj_task *t)
{
    atomic_fetch_add(&((struct mine *)t)->runs, 1);
    return 6;
}

static void *fork_and_unfork(void *number)
{
    struct mine m[4];
    uint64_t seed = fjt_seed() + (uint64_t)(uintptr_t)number;

    for (long i = fjt_rounds(8000); i > 0; i--) {
        int n = 1 + regression_below(&seed, 4), first = regression_below(&seed, n);
        for (int k = 0; k < n; k++) {
            atomic_init(&m[k].runs, 0);
            fj_task_init(&m[k].task, mine_run);
            fj_fork(&m[k].task);
        }
        for (int k = 0; k < n; k++) {
            struct mine *one = &m[(first + k) % n];
            if (fj_unfork(&one->task)) {
                CHECK_EQ(atomic_load(&one->runs), 0);
            } else {
                CHECK_EQ(fj_join_stolen(&one->task), 6);
                CHECK_EQ(atomic_load(&one->runs), 1);
            }
        }
    }
    return NULL;
}

/* TRAPS 62: a thread takes the task that it saw at the top of the queue before it had the lock,
 * although another task may be there now. */
FJ_TEST(threads_take_back_their_own_from_a_shared_queue, 60)
{
    pthread_t t[3];

    setenv("FORKJOIN_PARALLELISM", "1", 1);
    for (intptr_t i = 0; i < 3; i++) t[i] = regression_thread(fork_and_unfork, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
}

/* ---- Completers that are freed ---------------------------------------------------------------------- */

struct node {
    fj_completer c;
    int depth;
    atomic_long *leaves;
    struct node *pair;
};

static int node_done(fj_completer *c, fj_completer *caller)
{
    struct node *n = (struct node *)c;

    (void)caller;
    if (n->pair == NULL) return FJ_OK;
    memset((void *)n->pair, 0xa5, 2 * sizeof *n->pair);
    free(n->pair);
    return FJ_OK;
}

static int node_run(fj_task *t)
{
    struct node *n = (struct node *)t;

    if (n->depth == 0) {
        atomic_fetch_add(n->leaves, 1);
    } else {
        struct node *pair = malloc(2 * sizeof *pair);
        for (int i = 0; i < 2; i++) {
            fj_completer_init(&pair[i].c, &n->c, 0, node_run, node_done, NULL);
            pair[i].depth = n->depth - 1;
            pair[i].leaves = n->leaves;
            pair[i].pair = NULL;
        }
        n->pair = pair;
        fj_completer_set_pending(&n->c, 2);
        for (int i = 0; i < 2; i++) CHECK_EQ(fj_completer_fork(&pair[i].c), FJ_OK);
    }
    fj_completer_try_complete(&n->c);
    return FJ_OK;
}

static int root_run(fj_task *t)
{
    atomic_long leaves = 0;
    struct node root = {.depth = 5, .leaves = &leaves};

    (void)t;
    fj_completer_init(&root.c, NULL, 0, node_run, node_done, NULL);
    CHECK_EQ(fj_completer_run(&root.c), FJ_OK);
    CHECK_EQ(atomic_load(&leaves), 32);
    return FJ_OK;
}

/* TRAPS 65: a helper that looks for tasks of its own root reads a task of another root, which may
 * be run and freed at that moment. AddressSanitizer reports it. */
FJ_TEST(helpers_do_not_look_into_the_completers_of_others, 60)
{
    enum { N = 16 };
    fj_pool *p = fjt_pool(8, 0);

    for (long i = fjt_rounds(200); i > 0; i--) {
        fj_task t[N];
        for (int k = 0; k < N; k++) {
            fj_task_init(&t[k], root_run);
            CHECK_EQ(fj_submit(p, &t[k]), FJ_OK);
        }
        for (int k = 0; k < N; k++) CHECK_EQ(fj_join(&t[k]), FJ_OK);
    }
    fjt_destroy(p);
}

/* ---- Threads that are preempted at a bad moment ------------------------------------------------------- */

static int become_urgent(fj_pool *pool, int worker, void *arg)
{
    struct sched_param priority = {.sched_priority = 1};

    (void)pool;
    (void)worker;
    (void)arg;
    return pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0 ? FJ_OK : 1;
}

static void *submit_and_take_back(void *p)
{
    for (long i = fjt_rounds(1500); i > 0; i--) {
        fj_future f[3];
        for (int k = 0; k < 3; k++) {
            fj_future_init(&f[k], fine);
            CHECK_EQ(fj_future_submit(p, &f[k]), FJ_OK);
        }
        for (int k = 0; k < 3; k++)
            if (!fj_future_unfork(&f[k])) {
                CHECK_EQ(fj_future_join(&f[k]), FJ_OK);
                fj_future_fini(&f[k]);
            }
    }
    return NULL;
}

/* TRAPS 68: a worker with a real-time priority spins until another thread has run, but keeps that
 * thread from its only CPU. */
FJ_TEST(urgent_worker_does_not_starve_those_it_waits_for, 60)
{
    struct sched_param priority = {.sched_priority = 1}, normal = {.sched_priority = 0};
    fj_pool_options o = {0};
    cpu_set_t one;
    pthread_t t[3];

    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) != 0)
        fjt_skip("real-time priorities are not permitted");
    CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_OTHER, &normal), 0);
    CHECK_EQ(sched_getaffinity(0, sizeof one, &one), 0);
    for (size_t i = 0, seen = 0; i < CPU_SETSIZE; i++) /* keeps the first CPU only */
        if (CPU_ISSET(i, &one) && seen++ > 0) CPU_CLR(i, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    o.parallelism = o.max_threads = 1;
    o.on_start = become_urgent;
    fj_pool *p = fjt_pool_with(&o);
    for (int i = 0; i < 3; i++) t[i] = regression_thread(submit_and_take_back, p);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    fjt_destroy(p);
}

static atomic_int storm_ran;

static void *submit_one(void *p)
{
    CHECK_EQ(fj_execute(p, regression_count, &storm_ran), FJ_OK);
    return NULL;
}

/* TRAPS 69: while the holders of all queue locks are preempted, submitters try one queue after
 * another without sleeping. */
FJ_TEST(submitters_sleep_while_every_queue_is_locked, 30)
{
    enum { N = 32 };
    fj_pool *p = fjt_pool(2, 0);
    pthread_t t[N];
    int queued = 0;

    /* Each submission goes to a queue that is not locked, and creates the queue if necessary. */
    for (uint32_t locked = 0; locked < p->nsubmissions; queued++) {
        CHECK_EQ(fj_execute(p, regression_count, &storm_ran), FJ_OK);
        locked = 0;
        for (uint32_t i = 0; i < p->nsubmissions; i++) {
            if (p->submissions[i] != NULL) (void)fji_lock_try(&p->submissions[i]->lock);
            locked += p->submissions[i] != NULL;
        }
    }
    for (int i = 0; i < N; i++) t[i] = regression_thread(submit_one, p);
    fjt_sleep_us(20000);
    int64_t wall = fjt_now(), cpu = fjt_cpu();
    fjt_sleep_us(300000);
    wall = fjt_now() - wall;
    cpu = fjt_cpu() - cpu;
    CHECK_EQ(atomic_load(&storm_ran), queued);
    for (uint32_t i = 0; i < p->nsubmissions; i++) fji_lock_drop(&p->submissions[i]->lock);
    for (int i = 0; i < N; i++) pthread_join(t[i], NULL);
    UNTIL(atomic_load(&storm_ran) == queued + N);
    if (!fjt_sanitized() && cpu > wall * 3 / 5)
        fjt_fail(__FILE__, __LINE__, "%lld us of CPU in %lld us", (long long)cpu / 1000,
                 (long long)wall / 1000);
    fjt_destroy(p);
}

/* ---- Clocks --------------------------------------------------------------------------------------- */

static atomic_int asked_for_wall_time;

#if !FJI_ASAN && !FJI_TSAN
/* Replaces the function of the C library, so that the test counts reads of other clocks. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock != CLOCK_MONOTONIC && clock != CLOCK_PROCESS_CPUTIME_ID)
        atomic_fetch_add(&asked_for_wall_time, 1);
    return (int)syscall(SYS_clock_gettime, clock, t);
}
#endif

/* TRAPS 73: when the wall clock is set, every wait ends at once, or none ever ends. */
FJ_TEST(no_wait_asks_for_the_wall_clock, 30)
{
    fj_pool_options o = {0};
    fj_future never;
    atomic_int ran = 0;

    if (fjt_sanitized()) fjt_skip("the clock cannot be replaced");
    atomic_store(&asked_for_wall_time, 0);
    o.parallelism = 3;
    o.keep_alive_ns = 20 * MS;
    fj_pool *p = fjt_pool_with(&o);
    regression_all_at_once(p, 3);
    UNTIL(fj_pool_thread_count(p) == 0); /* after the keep-alive time */
    CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
    UNTIL(atomic_load(&ran) == 1);
    fj_future_init(&never, NULL);
    CHECK_EQ(fj_future_get(&never, MS, NULL), FJ_ETIMEDOUT);
    CHECK_EQ(fj_pool_await_termination(p, MS), FJ_ETIMEDOUT);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_sleep_ns(MS), FJ_OK);
    fjt_destroy(p);
    CHECK_EQ(atomic_load(&asked_for_wall_time), 0);
}

/* ---- Memory layout --------------------------------------------------------------------------------- */

#define APART(type, a, b) \
    CHECK(offsetof(type, a) / FJI_CACHE_PAIR != offsetof(type, b) / FJI_CACHE_PAIR)

/* TRAPS 74: a word that one thread often writes shares a cache line with words that others read. */
FJ_TEST(words_of_different_writers_lie_apart, 10)
{
    fj_pool *p = fjt_pool(2, 0);

    APART(fj_pool, ctl, run);
    APART(fj_pool, ctl, parallelism);
    APART(fj_pool, ctl, lock);
    APART(fj_pool, run, parallelism);
    APART(fj_pool, activity_epoch, parallelism);
    APART(fj_pool, lock, options);
    APART(fji_queue, fast, base);
    APART(fji_queue, base, range);
    APART(fji_worker, park, alive);
    APART(fji_worker, park, pool);
    APART(fji_worker, alive, pool);
    APART(fji_worker, q.base, park);
    APART(fji_submission_queue, lock, base);
    APART(fji_submission_queue, base, range);
    CHECK((uintptr_t)fji_wait_bucket(p) / FJI_LINE != (uintptr_t)fji_wait_bucket(NULL) / FJI_LINE);
    CHECK_EQ((uintptr_t)fji_wait_bucket(p) % FJI_LINE, 0);
    regression_all_at_once(p, 2);
    for (uint32_t i = 0; i < 2; i++) CHECK_EQ((uintptr_t)fji_pool_worker(p, i) % FJI_CACHE_PAIR, 0);
    CHECK_EQ(sizeof(fji_worker) % FJI_CACHE_PAIR, 0);
    CHECK_EQ((uintptr_t)p % FJI_CACHE_PAIR, 0);
    fjt_destroy(p);
}
