/* SPDX-License-Identifier: MIT */
/*
 * faults.c - the library when the system refuses memory, space to grow, or threads
 *
 * A fork cannot fail, so a task that finds no space in the queue is run at once. A call that can
 * fail returns FJ_ENOMEM and changes nothing. A pool that gets no threads runs with fewer workers.
 */
#include <pthread.h>
#include <string.h>

#include "api/inside.h"
#include "plat/atomic.h"
#include "plat/config.h"
#include "plat/plat.h"

#define ALWAYS 1000000000l

static void need_faults(void)
{
    if (!FJI_FAULTS) fjt_skip("built without faults");
}

static void fail_from_now(enum fji_fault kind)
{
    fji_fault_set(kind, 1, ALWAYS);
}

static void fail_no_more(enum fji_fault kind)
{
    fji_fault_set(kind, 1, 0);
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

struct fib {
    fj_task task;
    int n;
    long result;
};

static long fib(int n);

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;

    f->result = fib(f->n);
    return FJ_OK;
}

static long fib(int n)
{
    struct fib a = {.n = n - 1}, b = {.n = n - 2};

    if (n < 2) return n;
    fj_task_init(&a.task, fib_run);
    fj_task_init(&b.task, fib_run);
    fj_fork(&a.task);
    fj_fork(&b.task);
    CHECK_EQ(fj_join(n % 2 == 0 ? &a.task : &b.task), FJ_OK);
    CHECK_EQ(fj_join(n % 2 == 0 ? &b.task : &a.task), FJ_OK);
    return a.result + b.result;
}

/* ---- No space to grow ------------------------------------------------------------------------ */

#define FORKS 500

/* True if the pool has one worker. With more, a thief could make space by stealing tasks. */
static bool no_thief;

static void forks_without_room(void *arg)
{
    static struct leaf l[FORKS];
    bool oldest = arg != NULL;

    fail_from_now(FJI_FAULT_COMMIT);
    for (int i = 0; i < FORKS; i++) {
        leaf_init(&l[i], i);
        fj_fork(&l[i].task);
    }
    if (no_thief) CHECK_EQ(atomic_load(&l[FORKS - 1].runs), 1);
    for (int i = 0; i < FORKS; i++) {
        int k = oldest ? i : FORKS - 1 - i;
        if (k % 5 == 0 && fj_unfork(&l[k].task))
            CHECK_EQ(leaf_run(&l[k].task), k);
        else
            CHECK_EQ(k % 2 == 0 ? fj_join(&l[k].task) : fj_join_stolen(&l[k].task), k);
    }
    for (int i = 0; i < FORKS; i++) CHECK_EQ(atomic_load(&l[i].runs), 1);
    fail_no_more(FJI_FAULT_COMMIT);
}

FJ_TEST(plain_forks_without_room_are_run_at_once, 10)
{
    need_faults();
    for (int n = 1; n <= 3; n++) {
        fj_pool *pool = fjt_pool(n, 0);
        no_thief = n == 1;
        for (int i = 0; i < 4; i++) inside(pool, forks_without_room, i % 2 == 0 ? pool : NULL);
        fjt_destroy(pool);
    }
}

FJ_TASK(long, deep, int, n)
{
    deep_task a;

    if (n == 0) return 0;
    deep_fork(FJ, &a, 0);
    long below = deep_call(FJ, n - 1);
    return below + deep_join(FJ, &a) + 1;
}

FJ_TASK(long, typed_fib, int, n)
{
    typed_fib_task a, b;

    if (n < 2) return n;
    typed_fib_fork(FJ, &a, n - 1);
    typed_fib_fork(FJ, &b, n - 2);
    long x = n % 2 == 0 ? typed_fib_join(FJ, &a) : typed_fib_join(FJ, &b);
    return x + (n % 2 == 0 ? typed_fib_join(FJ, &b) : typed_fib_join(FJ, &a));
}

/* Forks many tasks before it joins any, so that most of them find no space. */
FJ_TASK(long, handles, int, n, int, order)
{
    typed_fib_task h[200];
    long sum = 0;

    for (int i = 0; i < n; i++) typed_fib_fork(FJ, &h[i], i % 10);
    for (int i = 0; i < n; i++) {
        int k = order == 0 ? i : order == 1 ? n - 1 - i : (i * 7) % n;
        sum += typed_fib_join(FJ, &h[k]);
    }
    return sum;
}

FJ_VOID_TASK(count_leaf, atomic_int *, runs, int, depth)
{
    count_leaf_task h[3];

    atomic_fetch_add(runs, 1);
    if (depth == 0) return;
    for (int i = 0; i < 3; i++) count_leaf_fork(FJ, &h[i], runs, depth - 1);
    for (int i = 0; i < 3; i++) count_leaf_join(FJ, &h[i]);
}

static void typed_without_room(fj_pool *pool)
{
    atomic_int runs = 0;
    long r = 0;

    CHECK_EQ(typed_fib_invoke(pool, &r, 5), FJ_OK); /* now the workers have their queues */
    fail_from_now(FJI_FAULT_COMMIT);
    for (int n = 50; n <= 150; n += 10) {
        CHECK_EQ(deep_invoke(pool, &r, n), FJ_OK);
        CHECK_EQ(r, n);
    }
    for (int order = 0; order < 3; order++) {
        CHECK_EQ(handles_invoke(pool, &r, 199, order), FJ_OK);
        CHECK_EQ(r, 19 * 88 + 88 - 34);
    }
    CHECK_EQ(count_leaf_invoke(pool, &runs, 6), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 1093);
    fail_no_more(FJI_FAULT_COMMIT);
    CHECK_EQ(deep_invoke(pool, &r, 5000), FJ_OK);
    CHECK_EQ(r, 5000);
}

FJ_TEST(typed_forks_without_room_are_run_at_once, 20)
{
    need_faults();
    for (int n = 1; n <= 4; n++) {
        fj_pool *pool = fjt_pool(n, n == 3 ? FJ_POOL_FIFO : 0);
        for (int i = 0; i < 5; i++) typed_without_room(pool);
        fjt_destroy(pool);
    }
}

/* Even the memory for the results is refused at first, and the fork has to wait for it. */
FJ_TEST(typed_forks_without_room_wait_for_memory, 20)
{
    need_faults();
    fj_pool *pool = fjt_pool(1, 0);
    long r = 0;

    CHECK_EQ(typed_fib_invoke(pool, &r, 5), FJ_OK);
    fail_from_now(FJI_FAULT_COMMIT);
    fji_fault_set(FJI_FAULT_ALLOC, 3, 20);
    CHECK_EQ(handles_invoke(pool, &r, 199, 1), FJ_OK);
    CHECK_EQ(r, 19 * 88 + 88 - 34);
    fail_no_more(FJI_FAULT_COMMIT);
    fail_no_more(FJI_FAULT_ALLOC);
    fjt_destroy(pool);
}

static int nothing(void *arg)
{
    (void)arg;
    return FJ_OK;
}

static void submits_without_room(void *arg)
{
    static struct leaf l[FORKS];
    int accepted = 0;

    fail_from_now(FJI_FAULT_COMMIT);
    for (int i = 0; i < FORKS; i++) {
        leaf_init(&l[i], 8);
        int err = fj_submit(arg, &l[i].task);
        CHECK(err == FJ_OK || err == FJ_ENOMEM);
        if (err != FJ_OK) break;
        accepted++;
    }
    CHECK(accepted >= 32 && accepted < FORKS);
    int err = fj_execute(arg, nothing, NULL);
    CHECK(err == FJ_OK || err == FJ_ENOMEM);
    CHECK_EQ(atomic_load(&l[accepted].runs), 0);
    for (int i = 0; i < accepted; i++) CHECK_EQ(fj_join(&l[i].task), 8);
    fail_no_more(FJI_FAULT_COMMIT);
    CHECK_EQ(fj_submit(arg, &l[0].task), FJ_OK);
    CHECK_EQ(fj_join(&l[0].task), 8);
}

FJ_TEST(submission_of_a_worker_without_room_fails, 10)
{
    need_faults();
    fj_pool *pool = fjt_pool(1, 0);

    inside(pool, submits_without_room, pool);
    fjt_destroy(pool);
}

/* ---- No memory ------------------------------------------------------------------------------ */

FJ_TEST(pool_without_memory_is_not_made, 10)
{
    need_faults();
    fj_pool *pool = (fj_pool *)0x123;

    fail_from_now(FJI_FAULT_ALLOC);
    CHECK_EQ(fj_pool_create(&pool, NULL), FJ_ENOMEM);
    CHECK(pool == (fj_pool *)0x123);
    fail_no_more(FJI_FAULT_ALLOC);
    CHECK_EQ(fj_pool_create(&pool, NULL), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(submission_without_memory_fails_and_leaves_all_as_it_was, 10)
{
    need_faults();
    for (int kind = FJI_FAULT_ALLOC; kind <= FJI_FAULT_COMMIT; kind++) {
        fj_pool *pool = fjt_pool(2, 0);
        struct leaf l;
        leaf_init(&l, 3);
        fail_from_now((enum fji_fault)kind);
        CHECK_EQ(fj_submit(pool, &l.task), FJ_ENOMEM);
        CHECK_EQ(fj_submit_external(pool, &l.task), FJ_ENOMEM);
        CHECK_EQ(fj_submit_lazy(pool, &l.task), FJ_ENOMEM);
        CHECK_EQ(fj_execute(pool, nothing, NULL), FJ_ENOMEM);
        CHECK_EQ(fj_invoke(pool, &l.task), FJ_ENOMEM);
        CHECK(fj_pool_is_quiescent(pool));
        CHECK_EQ(atomic_load(&l.runs), 0);
        fail_no_more((enum fji_fault)kind);
        CHECK_EQ(fj_submit(pool, &l.task), FJ_OK);
        CHECK_EQ(fj_join(&l.task), 3);
        fjt_destroy(pool);
    }
}

FJ_TEST(common_pool_without_memory_comes_later, 10)
{
    need_faults();
    struct leaf l[3];

    fail_from_now(FJI_FAULT_ALLOC);
    CHECK(fj_common_pool() == NULL);
    CHECK_EQ(fj_common_parallelism(), 0);
    for (int i = 0; i < 3; i++) leaf_init(&l[i], i + 5);
    CHECK_EQ(fj_invoke(NULL, &l[0].task), FJ_ENOMEM);
    CHECK_EQ(fj_execute(NULL, nothing, NULL), FJ_ENOMEM);
    fj_fork(&l[1].task); /* a fork cannot fail */
    CHECK_EQ(fj_join(&l[1].task), 6);
    fj_fork(&l[2].task);
    CHECK_EQ(fj_unfork(&l[2].task), 0);
    CHECK_EQ(fj_join_stolen(&l[2].task), 7);
    CHECK_EQ(atomic_load(&l[0].runs), 0);
    fail_no_more(FJI_FAULT_ALLOC);
    CHECK(fj_common_pool() != NULL);
    CHECK_EQ(fj_invoke(NULL, &l[0].task), 5);
}

/* ---- No threads ----------------------------------------------------------------------------- */

FJ_TEST(pool_without_threads_runs_on_its_callers, 10)
{
    need_faults();
    fj_pool *pool = fjt_pool(4, FJ_POOL_CALLER_HELPS);
    struct fib f = {.n = 15};

    fail_from_now(FJI_FAULT_THREAD);
    fj_task_init(&f.task, fib_run);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(fj_invoke(pool, &f.task), FJ_OK);
        CHECK_EQ(f.result, 610);
        CHECK_EQ(fj_submit(pool, &f.task), FJ_OK);
        CHECK_EQ(fj_join(&f.task), FJ_OK);
    }
    CHECK_EQ(fj_pool_thread_count(pool), 0);
    fail_no_more(FJI_FAULT_THREAD);
    CHECK_EQ(fj_submit(pool, &f.task), FJ_OK);
    CHECK_EQ(fj_join(&f.task), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(work_waits_until_there_is_a_thread, 10)
{
    need_faults();
    fj_pool *pool = fjt_pool(2, 0);
    struct leaf a, b;

    leaf_init(&a, 1);
    leaf_init(&b, 2);
    fail_from_now(FJI_FAULT_THREAD);
    CHECK_EQ(fj_submit(pool, &a.task), FJ_OK);
    fjt_sleep_us(2000);
    CHECK_EQ(atomic_load(&a.runs), 0);
    CHECK_EQ(fj_pool_thread_count(pool), 0);
    fail_no_more(FJI_FAULT_THREAD);
    CHECK_EQ(fj_submit(pool, &b.task), FJ_OK);
    CHECK_EQ(fj_join(&b.task), 2);
    CHECK_EQ(fj_join(&a.task), 1);
    fjt_destroy(pool);
}

FJ_TEST(pool_without_threads_can_be_stopped, 10)
{
    need_faults();
    fj_pool *pool = fjt_pool(2, 0);
    struct leaf l;

    leaf_init(&l, 1);
    fail_from_now(FJI_FAULT_THREAD);
    CHECK_EQ(fj_submit(pool, &l.task), FJ_OK);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK_EQ(fj_join(&l.task), FJ_ECANCELED);
    fjt_destroy(pool);
}

/* ---- Single faults --------------------------------------------------------------------------- */

/* The whole life of a pool, in which `count` calls of one kind fail, beginning with the k-th. */
static void life_with_fault(enum fji_fault kind, long k, long count, unsigned flags)
{
    fj_pool_options o = {0};
    fj_pool *pool = NULL;
    struct fib f = {.n = 16};
    long r = 0;

    o.parallelism = 3;
    o.flags = flags;
    fj_task_init(&f.task, fib_run);
    fji_fault_set(kind, k, count);
    int err = fj_pool_create(&pool, &o);
    if (err == FJ_ENOMEM) return;
    CHECK_EQ(err, FJ_OK);
    fjt_watch(pool);
    for (int i = 0; i < 3; i++) {
        err = fj_invoke(pool, &f.task);
        CHECK(err == FJ_OK || err == FJ_ENOMEM);
        if (err == FJ_OK) CHECK_EQ(f.result, 987);
        err = typed_fib_invoke(pool, &r, 14);
        CHECK(err == FJ_OK || err == FJ_ENOMEM);
        if (err == FJ_OK) CHECK_EQ(r, 377);
    }
    fail_no_more(kind);
    CHECK_EQ(fj_invoke(pool, &f.task), FJ_OK);
    CHECK_EQ(f.result, 987);
    fjt_destroy(pool);
}

/* After two refusals in a row, a submission may have no worker. So callers help here. */
static void lives_with_faults(enum fji_fault kind)
{
    need_faults();
    for (long k = 1; k <= 12; k++)
        for (long count = 1; count <= 3; count++)
            life_with_fault(kind, k, count, FJ_POOL_CALLER_HELPS);
}

FJ_TEST(pool_lives_with_a_failing_allocation, 60)
{
    lives_with_faults(FJI_FAULT_ALLOC);
}

FJ_TEST(pool_lives_with_a_failing_commit, 60)
{
    lives_with_faults(FJI_FAULT_COMMIT);
}

FJ_TEST(pool_lives_with_a_thread_that_does_not_start, 60)
{
    lives_with_faults(FJI_FAULT_THREAD);
}

FJ_TEST(pool_without_the_heavy_fence_uses_full_ones, 30)
{
    need_faults();
    fail_from_now(FJI_FAULT_BARRIER);
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(3, flags);
        struct fib f = {.n = 18};
        fj_task_init(&f.task, fib_run);
        CHECK_EQ(fj_invoke(pool, &f.task), FJ_OK);
        CHECK_EQ(f.result, 2584);
        fjt_destroy(pool);
    }
}

/* ---- The injected faults themselves ---------------------------------------------------------- */

static bool memory_comes(void)
{
    void *p = fji_plat_alloc(1);

    fji_plat_free(p);
    return p != NULL;
}

FJ_TEST(two_places_can_fail_in_one_run, 10)
{
    need_faults();
    fji_fault_set(FJI_FAULT_ALLOC, 2, 1);
    fji_fault_and(FJI_FAULT_ALLOC, 5, 2);
    for (int i = 1; i <= 9; i++) CHECK_EQ(memory_comes(), i != 2 && i != 5 && i != 6);
    fji_fault_set(FJI_FAULT_ALLOC, 3, 1); /* replaces both */
    for (int i = 1; i <= 9; i++) CHECK_EQ(memory_comes(), i != 3);
}

FJ_TEST(chance_refuses_about_one_in_so_many, 10)
{
    int refused = 0;

    need_faults();
    fji_fault_random(FJI_FAULT_ALLOC, fjt_seed(), 10);
    for (int i = 0; i < 10000; i++) refused += !memory_comes();
    CHECK(refused > 700 && refused < 1300);
    fji_fault_random(FJI_FAULT_ALLOC, fjt_seed(), 1);
    for (int i = 0; i < 10; i++) CHECK(!memory_comes());
    fji_fault_random(FJI_FAULT_ALLOC, fjt_seed(), 0);
    for (int i = 0; i < 100; i++) CHECK(memory_comes());
}

FJ_TEST(refused_calls_of_the_platform_say_so, 10)
{
    need_faults();
    fail_from_now(FJI_FAULT_RESERVE);
    size_t committed;
    CHECK(fji_plat_reserve(fji_plat_page(), &committed) == NULL);
    fail_from_now(FJI_FAULT_ATTR);
    CHECK(!fji_plat_thread_start(forks_without_room, NULL, &(fji_creator){0}, "none"));
    fail_from_now(FJI_FAULT_AFFINITY);
    CHECK(fji_plat_cpus("") >= 1);
    fail_from_now(FJI_FAULT_SYSCONF);
    CHECK_EQ(fji_plat_cpus("/nowhere"), 1);
}

FJ_TEST(unknown_size_of_pages_is_made_up_for, 10)
{
    need_faults();
    fail_from_now(FJI_FAULT_SYSCONF);
    CHECK_EQ(fji_plat_page(), 65536);
    fail_no_more(FJI_FAULT_SYSCONF);
    fj_pool *pool = fjt_pool(2, 0);
    struct fib f = {.n = 15};
    fj_task_init(&f.task, fib_run);
    CHECK_EQ(fj_invoke(pool, &f.task), FJ_OK);
    CHECK_EQ(f.result, 610);
    fjt_destroy(pool);
}

FJ_TEST(wait_may_return_without_a_reason, 10)
{
    uint32_t word = 0;

    need_faults();
    fail_from_now(FJI_FAULT_WAIT);
    CHECK(fji_plat_wait(&word, 0, FJ_FOREVER));
    CHECK(!fji_plat_wait(&word, 0, fji_plat_now() - 1)); /* but not after its deadline */
}

FJ_TEST(wake_may_come_late_and_twice, 10)
{
    uint32_t word = 0;

    need_faults();
    fail_from_now(FJI_FAULT_WAKE_LATE);
    fail_from_now(FJI_FAULT_WAKE_MORE);
    int64_t start = fjt_now();
    fji_plat_wake_one(&word);
    CHECK(fjt_now() - start >= 1000000);
}

/* A deadline is a time of the clock that jumps. After the jump, a wait ends at its deadline. */
FJ_TEST(clock_may_jump, 10)
{
    uint32_t word = 0;

    need_faults();
    int64_t before = fji_plat_now();
    fji_fault_set(FJI_FAULT_JUMP, 2, 1);
    CHECK(fji_plat_now() - before < 3600000000000);
    int64_t after = fji_plat_now();
    CHECK(after - before >= 3600000000000);
    CHECK(!fji_plat_wait(&word, 0, after + 1000000)); /* and does not take an hour */
    CHECK(fji_plat_now() >= after + 1000000);
}

FJ_TEST(clock_may_stand_still_and_never_goes_back, 10)
{
    uint32_t word = 0;
    int64_t last = fji_plat_now();
    int same = 0;

    need_faults();
    fji_fault_set(FJI_FAULT_STILL, 1, 1);
    int64_t start = fjt_now();
    for (int i = 0; i < 100; i++) {
        int64_t now = fji_plat_now();
        CHECK(now >= last);
        same += now == last;
        last = now;
    }
    CHECK(same > 90 || fjt_now() - start >= 20000000); /* unless this thread was delayed */
    while (fji_plat_wait(&word, 0, last + 2000000)) {}
    CHECK(fji_plat_now() >= last + 2000000);
}

/* ---- A heavy fence that is refused at run time ----------------------------------------------- */

static uint32_t light_word, heavy_word, turn, light_saw;

static void *light_side(void *arg)
{
    uint32_t seen = 0, now;

    while ((now = fji_load_acquire(&turn)) != UINT32_MAX) {
        if (now == seen) continue;
        seen = now;
        fji_store_relaxed(&light_word, 1u);
        FJI_LIGHT_FENCE();
        uint32_t saw = fji_load_relaxed(&heavy_word);
        fji_store_release(&light_saw, saw + 1);
    }
    return arg;
}

/* As in the test of the fence in unit/plat.c, at least one side must see the other's store. */
FJ_TEST(refused_heavy_fence_is_made_up_for, 30)
{
    uint64_t random = fjt_seed();
    pthread_t light;

    need_faults();
    if (!fji_plat_has_barrier()) fjt_skip("there is no heavy fence");
    CHECK_EQ(pthread_create(&light, NULL, light_side, NULL), 0);
    fail_from_now(FJI_FAULT_MEMBARRIER);
    for (uint32_t i = 1; i <= (uint32_t)fjt_rounds(200); i++) {
        fji_store_relaxed(&light_word, 0u);
        fji_store_relaxed(&heavy_word, 0u);
        fji_store_relaxed(&light_saw, 0u);
        fji_store_release(&turn, i);
        for (uint64_t k = fjt_random(&random) % 64; k > 0; k--) fji_pause();
        fji_store_relaxed(&heavy_word, 1u);
        int64_t start = fjt_now();
        CHECK(fji_plat_barrier());
        CHECK(fjt_now() - start >= 1000000); /* longer than a store needs to become visible */
        uint32_t saw = fji_load_relaxed(&light_word), other_saw;
        while ((other_saw = fji_load_acquire(&light_saw)) == 0) fji_plat_yield();
        CHECK(saw == 1 || other_saw == 2);
    }
    fji_store_release(&turn, UINT32_MAX);
    CHECK_EQ(pthread_join(light, NULL), 0);
}

static int count_one(void *counter)
{
    atomic_fetch_add((atomic_int *)counter, 1);
    return FJ_OK;
}

/* A task that is submitted while the workers fall asleep is seen by one of them. */
FJ_TEST(no_task_is_missed_while_the_heavy_fence_is_refused, 60)
{
    uint64_t random = fjt_seed();
    atomic_int ran = 0;

    need_faults();
    fj_pool *pool = fjt_pool(2, 0);
    fail_from_now(FJI_FAULT_MEMBARRIER);
    for (int i = 1; i <= fjt_rounds(300); i++) {
        CHECK_EQ(fj_execute(pool, count_one, &ran), FJ_OK);
        while (atomic_load(&ran) != i) sched_yield();
        for (uint64_t k = fjt_random(&random) % 2000; k > 0; k--) fji_pause();
    }
    fjt_destroy(pool);
}
