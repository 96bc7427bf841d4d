/* SPDX-License-Identifier: MIT */
/*
 * task.c - fork, join, fj_join_as(), fj_join_stolen() and unfork of plain tasks
 */
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "inside.h"

#define MANY 200

struct leaf {
    fj_task task;
    long value, result;
    int code;
    atomic_int runs;
};

static struct leaf leaves[6000];

static int leaf_run(fj_task *t)
{
    struct leaf *l = (struct leaf *)t;

    atomic_fetch_add(&l->runs, 1);
    l->result = l->value * 3;
    return l->code;
}

static void leaf_init(struct leaf *l, long value)
{
    memset(l, 0, sizeof *l);
    fj_task_init(&l->task, leaf_run);
    l->value = value;
}

static void leaf_check(const struct leaf *l)
{
    CHECK_EQ(atomic_load(&l->runs), 1);
    CHECK_EQ(l->result, l->value * 3);
}

/* A task that sets `begun` when it begins, and ends when `may_end` is set. */
struct held {
    fj_task task;
    atomic_int begun, may_end;
    int code;
};

static int held_run(fj_task *t)
{
    struct held *h = (struct held *)t;

    atomic_store(&h->begun, 1);
    until(&h->may_end);
    return h->code;
}

static void held_fork(struct held *h, int code)
{
    memset(h, 0, sizeof *h);
    fj_task_init(&h->task, held_run);
    h->code = code;
    fj_fork(&h->task);
}

/* ---- Codes ---------------------------------------------------------------------------------- */

static const int codes[] = {FJ_OK, 1, 2, 42, 255, 256, 65536, INT_MAX};

#define CODES ((int)(sizeof codes / sizeof codes[0]))

static void join_codes(void *arg)
{
    struct leaf l;

    (void)arg;
    for (int i = 0; i < CODES; i++) {
        leaf_init(&l, i);
        l.code = codes[i];
        fj_fork(&l.task);
        CHECK_EQ(fj_join(&l.task), codes[i]);
        leaf_check(&l);
    }
}

FJ_TEST(join_returns_the_code_of_the_body, 10)
{
    inside_pools(join_codes, NULL);
}

static void wait_codes(void *arg)
{
    struct leaf l;

    (void)arg;
    for (int i = 0; i < CODES; i++) {
        leaf_init(&l, i);
        l.code = codes[i];
        fj_fork(&l.task);
        CHECK_EQ(fj_join_stolen(&l.task), codes[i]);
        leaf_check(&l);
    }
}

FJ_TEST(wait_returns_the_code_of_the_body, 10)
{
    inside_pools(wait_codes, NULL);
}

static void stolen_codes(void *arg)
{
    struct held h;

    for (int i = 0; i < CODES; i++) {
        held_fork(&h, codes[i]);
        until(&h.begun);
        atomic_store(&h.may_end, 1);
        CHECK_EQ(arg != NULL ? fj_join_stolen(&h.task) : fj_join(&h.task), codes[i]);
    }
}

FJ_TEST(join_returns_the_code_of_a_stolen_task, 20)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(2, flags);
        inside(pool, stolen_codes, NULL);
        inside(pool, stolen_codes, pool);
        fjt_destroy(pool);
    }
}

/* ---- A join that knows the function ---------------------------------------------------------- */

static void join_as(void *arg)
{
    uint64_t random = fjt_seed();

    (void)arg;
    for (long i = fjt_rounds(20000); i-- > 0;) {
        struct leaf a, b;
        leaf_init(&a, i);
        leaf_init(&b, i + 1);
        fj_fork(&a.task);
        fj_fork(&b.task);
        bool swap = fjt_random(&random) % 2 == 0;
        CHECK_EQ(fj_join_as(swap ? &a.task : &b.task, leaf_run), FJ_OK);
        CHECK_EQ(fj_join_as(swap ? &b.task : &a.task, leaf_run), FJ_OK);
        leaf_check(&a);
        leaf_check(&b);
    }
}

FJ_TEST(join_that_knows_the_function_runs_the_task_once, 30)
{
    inside_pools(join_as, NULL);
}

static void join_as_cancelled(void *arg)
{
    struct leaf a;

    (void)arg;
    leaf_init(&a, 1);
    fj_fork(&a.task);
    CHECK_EQ(fj_pool_shutdown_now(fj_current_pool()), FJ_OK);
    CHECK_EQ(fj_join_as(&a.task, leaf_run), FJ_ECANCELED);
    CHECK_EQ(atomic_load(&a.runs), 0);
}

FJ_TEST(join_that_knows_the_function_runs_no_cancelled_task, 10)
{
    fj_pool *pool = fjt_pool(1, 0);

    inside(pool, join_as_cancelled, NULL);
    fjt_destroy(pool);
}

/* ---- Unfork --------------------------------------------------------------------------------- */

static void unfork_all(void *arg)
{
    (void)arg;
    for (int n = 1; n < 20; n++)
        for (int order = 0; order < 2; order++) {
            for (int i = 0; i < n; i++) {
                leaf_init(&leaves[i], i);
                fj_fork(&leaves[i].task);
            }
            for (int i = 0; i < n; i++)
                CHECK_EQ(fj_unfork(&leaves[order == 0 ? i : n - 1 - i].task), 1);
            for (int i = 0; i < n; i++) CHECK_EQ(atomic_load(&leaves[i].runs), 0);
        }
}

FJ_TEST(unfork_takes_back_what_nobody_began, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(1, flags);
        inside(pool, unfork_all, NULL);
        fjt_destroy(pool);
    }
}

static void unfork_held(void *arg)
{
    struct held h;

    (void)arg;
    held_fork(&h, 17);
    until(&h.begun);
    CHECK_EQ(fj_unfork(&h.task), 0);
    CHECK_EQ(fj_unfork(&h.task), 0);
    atomic_store(&h.may_end, 1);
    CHECK_EQ(fj_join_stolen(&h.task), 17);
    held_fork(&h, 18);
    until(&h.begun);
    atomic_store(&h.may_end, 1);
    CHECK_EQ(fj_unfork(&h.task), 0);
    CHECK_EQ(fj_join(&h.task), 18);
}

FJ_TEST(unfork_leaves_a_running_task_alone, 10)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *pool = fjt_pool(2, flags);
        inside(pool, unfork_held, NULL);
        fjt_destroy(pool);
    }
}

static void unfork_or_wait(void *arg)
{
    uint64_t random = fjt_seed();
    struct leaf a, b;

    (void)arg;
    for (long i = fjt_rounds(20000); i-- > 0;) {
        leaf_init(&a, i);
        leaf_init(&b, i + 1);
        fj_fork(&a.task);
        fj_fork(&b.task);
        bool swap = fjt_random(&random) % 2 == 0;
        for (int k = 0; k < 2; k++) {
            struct leaf *l = (k == 0) == swap ? &a : &b;
            if (fj_unfork(&l->task))
                (void)leaf_run(&l->task);
            else
                CHECK_EQ(fj_join_stolen(&l->task), FJ_OK);
            leaf_check(l);
        }
    }
}

FJ_TEST(task_is_run_once_whether_unforked_or_not, 30)
{
    inside_pools(unfork_or_wait, NULL);
}

/* ---- Loops of forks ------------------------------------------------------------------------- */

enum order { YOUNGEST, OLDEST, RANDOM };

static void loops(void *arg)
{
    enum order order = *(enum order *)arg;
    uint64_t random = fjt_seed();
    int at[MANY];

    for (int n = 1; n <= MANY; n++) {
        for (int i = 0; i < n; i++) {
            leaf_init(&leaves[i], i);
            leaves[i].code = i + 1;
            at[i] = order == YOUNGEST ? n - 1 - i : i;
            fj_fork(&leaves[i].task);
        }
        for (int i = n - 1; order == RANDOM && i > 0; i--) {
            int k = (int)(fjt_random(&random) % (uint64_t)(i + 1)), keep = at[i];
            at[i] = at[k];
            at[k] = keep;
        }
        for (int i = 0; i < n; i++) CHECK_EQ(fj_join(&leaves[at[i]].task), at[i] + 1);
        for (int i = 0; i < n; i++) leaf_check(&leaves[i]);
    }
}

FJ_TEST(loop_of_forks_is_joined_youngest_first, 60)
{
    enum order order = YOUNGEST;
    inside_pools(loops, &order);
}

FJ_TEST(loop_of_forks_is_joined_oldest_first, 60)
{
    enum order order = OLDEST;
    inside_pools(loops, &order);
}

FJ_TEST(loop_of_forks_is_joined_in_random_order, 60)
{
    enum order order = RANDOM;
    inside_pools(loops, &order);
}

/* More forks at a time than a queue has cells at first, so the queue grows. */
static void many_at_once(void *arg)
{
    static const int sizes[] = {63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 6000};

    (void)arg;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        int n = sizes[k];
        for (int i = 0; i < n; i++) {
            leaf_init(&leaves[i], i);
            fj_fork(&leaves[i].task);
        }
        for (int i = 0; i < n; i++) CHECK_EQ(fj_join(&leaves[k % 2 == 0 ? i : n - 1 - i].task), 0);
        for (int i = 0; i < n; i++) leaf_check(&leaves[i]);
    }
}

FJ_TEST(thousands_of_forks_wait_for_their_joins, 30)
{
    inside_pools(many_at_once, NULL);
}

/* A sliding window: 50 tasks are forked and not yet joined, and the oldest is joined next. */
static void window(void *arg)
{
    enum { WIDE = 50 };
    long rounds = fjt_rounds(20000);

    (void)arg;
    for (long i = 0; i < rounds; i++) {
        struct leaf *l = &leaves[i % WIDE];
        if (i >= WIDE) {
            CHECK_EQ(fj_join(&l->task), FJ_OK);
            leaf_check(l);
        }
        leaf_init(l, i);
        fj_fork(&l->task);
    }
    for (long i = rounds < WIDE ? 0 : rounds; i < (rounds < WIDE ? rounds : rounds + WIDE); i++)
        CHECK_EQ(fj_join(&leaves[i % WIDE].task), FJ_OK);
}

FJ_TEST(window_of_forks_slides_without_end, 30)
{
    inside_pools(window, NULL);
}

/* ---- Trees ---------------------------------------------------------------------------------- */

struct fib {
    fj_task task;
    int n;
    long result;
};

static long fib(int n, bool right_first);

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;

    f->result = fib(f->n, f->n % 3 == 0);
    return FJ_OK;
}

/* Two forks and two joins, in either order. */
static long fib(int n, bool right_first)
{
    struct fib a = {.n = n - 1}, b = {.n = n - 2};

    if (n < 2) return n;
    fj_task_init(&a.task, fib_run);
    fj_task_init(&b.task, fib_run);
    fj_fork(&a.task);
    fj_fork(&b.task);
    CHECK_EQ(fj_join(right_first ? &a.task : &b.task), FJ_OK);
    CHECK_EQ(fj_join(right_first ? &b.task : &a.task), FJ_OK);
    long sum = a.result + b.result;
    memset(&a, 0xee, sizeof a); /* reveals a thread that still reads them */
    memset(&b, 0xee, sizeof b);
    return sum;
}

static void tree(void *arg)
{
    (void)arg;
    for (long i = fjt_rounds(5); i-- > 0;) CHECK_EQ(fib(20, false), 6765);
}

FJ_TEST(tree_with_joins_in_either_order_gives_its_sum, 60)
{
    inside_pools(tree, NULL);
}

FJ_TEST(tree_needs_few_threads, 60)
{
    for (unsigned flags = 0; flags < 2; flags++)
        for (int n = 1; n <= 8; n *= 2) {
            fj_pool_options o = {0};
            o.parallelism = n;
            o.max_threads = n + 30;
            o.flags = flags;
            fj_pool *pool = fjt_pool_with(&o);
            inside(pool, tree, NULL);
            CHECK(fj_pool_thread_count(pool) <= n + 30);
            fjt_destroy(pool);
        }
}

static long chain(int depth)
{
    struct leaf l;

    if (depth == 0) return 0;
    leaf_init(&l, depth);
    fj_fork(&l.task);
    long below = chain(depth - 1);
    CHECK_EQ(fj_join(&l.task), FJ_OK);
    return below + l.result / 3;
}

static void deep(void *arg)
{
    (void)arg;
    CHECK_EQ(chain(60), 60 * 61 / 2);
    CHECK_EQ(chain(5000), 5000l * 5001 / 2);
}

FJ_TEST(deep_recursion_makes_the_queue_grow, 20)
{
    inside_pools(deep, NULL);
}

/* ---- Ownership ------------------------------------------------------------------------------ */

static void reuse(void *arg)
{
    struct leaf l;

    (void)arg;
    leaf_init(&l, 5);
    for (int i = 1; i <= 2000; i++) {
        l.value = i;
        l.code = i;
        fj_fork(&l.task);
        if (i % 3 == 0 && fj_unfork(&l.task))
            (void)leaf_run(&l.task);
        else
            CHECK_EQ(i % 2 == 0 ? fj_join_stolen(&l.task) : fj_join(&l.task), i);
        CHECK_EQ(atomic_load(&l.runs), i);
        CHECK_EQ(l.result, i * 3);
    }
}

FJ_TEST(joined_task_is_forked_again_as_it_is, 20)
{
    inside_pools(reuse, NULL);
}

/* Reuses the memory of a task as soon as its join has returned. */
static void frames(void *arg)
{
    uint64_t random = fjt_seed();

    (void)arg;
    for (long i = fjt_rounds(50000); i-- > 0;) {
        struct leaf l;
        leaf_init(&l, i);
        fj_fork(&l.task);
        for (uint64_t k = fjt_random(&random) % 64; k > 0; k--)
            atomic_signal_fence(memory_order_seq_cst);
        CHECK_EQ(fj_join(&l.task), FJ_OK);
        leaf_check(&l);
        memset(&l, 0xee, sizeof l);
    }
}

FJ_TEST(frame_of_a_joined_task_is_the_callers_at_once, 60)
{
    inside_pools(frames, NULL);
}

static int join_for_caller(struct leaf *l)
{
    return fj_join(&l->task);
}

static void join_below(void *arg)
{
    struct leaf a, b;

    (void)arg;
    for (int i = 0; i < 1000; i++) {
        leaf_init(&a, 1);
        leaf_init(&b, 2);
        fj_fork(&a.task);
        fj_fork(&b.task);
        CHECK_EQ(join_for_caller(i % 2 == 0 ? &a : &b), FJ_OK);
        CHECK_EQ(join_for_caller(i % 2 == 0 ? &b : &a), FJ_OK);
        leaf_check(&a);
        leaf_check(&b);
    }
}

FJ_TEST(task_is_joined_in_a_frame_below, 20)
{
    inside_pools(join_below, NULL);
}

/* ---- While a join waits --------------------------------------------------------------------- */

static atomic_int waiting, waiter;

static int stranger_run(fj_task *t)
{
    struct leaf *l = (struct leaf *)t;

    if (atomic_load(&waiting)) CHECK(fj_current_worker() != atomic_load(&waiter));
    atomic_fetch_add(&l->runs, 1);
    return FJ_OK;
}

static void *end_later(void *arg)
{
    struct held *h = arg;

    until(&waiting);
    fjt_sleep_us(2000);
    atomic_store(&h->may_end, 1);
    return NULL;
}

static void join_with_strangers(void *arg)
{
    struct held h;
    struct leaf stranger[8];
    pthread_t outside;

    (void)arg;
    held_fork(&h, 3);
    until(&h.begun);
    CHECK_EQ(pthread_create(&outside, NULL, end_later, &h), 0);
    for (int i = 0; i < 8; i++) {
        leaf_init(&stranger[i], i);
        fj_task_init(&stranger[i].task, stranger_run);
        fj_fork(&stranger[i].task);
    }
    atomic_store(&waiter, fj_current_worker());
    atomic_store(&waiting, 1);
    CHECK_EQ(fj_join(&h.task), 3);
    atomic_store(&waiting, 0);
    pthread_join(outside, NULL);
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(fj_join(&stranger[i].task), FJ_OK);
        CHECK_EQ(atomic_load(&stranger[i].runs), 1);
    }
}

FJ_TEST(waiting_join_runs_nothing_that_does_not_belong_to_it, 20)
{
    for (unsigned flags = 0; flags < 2; flags++) {
        fj_pool *pool = fjt_pool(2, flags);
        for (int i = 0; i < 10; i++) inside(pool, join_with_strangers, pool);
        fjt_destroy(pool);
    }
}

/* ---- Outside a pool ------------------------------------------------------------------------- */

static int where_run(fj_task *t)
{
    struct leaf *l = (struct leaf *)t;

    CHECK(fj_current_pool() == fj_common_pool());
    atomic_fetch_add(&l->runs, 1);
    return l->code;
}

FJ_TEST(fork_from_outside_runs_in_the_common_pool, 20)
{
    struct leaf l[20];

    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 20; i++) {
            leaf_init(&l[i], i);
            fj_task_init(&l[i].task, where_run);
            l[i].code = i;
            fj_fork(&l[i].task);
        }
        for (int i = 0; i < 20; i++) {
            int k = round % 2 == 0 ? i : 19 - i;
            CHECK_EQ(round % 3 == 0 ? fj_join_stolen(&l[k].task) : fj_join(&l[k].task), k);
            CHECK_EQ(atomic_load(&l[k].runs), 1);
        }
    }
}

FJ_TEST(unfork_outside_takes_back_or_leaves_it_to_the_join, 20)
{
    struct leaf l;

    for (long i = fjt_rounds(5000); i-- > 0;) {
        leaf_init(&l, 1);
        l.code = 9;
        fj_fork(&l.task);
        if (fj_unfork(&l.task))
            CHECK_EQ(atomic_load(&l.runs), 0);
        else {
            CHECK_EQ(fj_join(&l.task), 9);
            leaf_check(&l);
        }
    }
}

FJ_TEST(tree_from_outside_gives_its_sum, 20)
{
    struct fib f = {.n = 20};

    fj_task_init(&f.task, fib_run);
    fj_fork(&f.task);
    CHECK_EQ(fj_join(&f.task), FJ_OK);
    CHECK_EQ(f.result, 6765);
    CHECK_EQ(fib(18, true), 2584);
}
