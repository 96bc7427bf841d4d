/* SPDX-License-Identifier: MIT */
/*
 * for_each.c - loops over a work list that grows: items, chunks, errors, cancelling, memory
 */
#include <forkjoin/for_each.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/inside.h"
#include "plat/plat.h"

/* ---- A tree of items ------------------------------------------------------------------------- */

/* The items of these tests have 4 to 40 bytes. The first four bytes are the number of an item. The
 * others are derived from it, so that a wrong copy shows. */
enum { LARGEST = 40 };

static size_t size;
static atomic_long visits, sum;

static void make_item(unsigned char *item, uint32_t number)
{
    memcpy(item, &number, sizeof number);
    for (size_t i = sizeof number; i < size; i++) item[i] = (unsigned char)(number * 31 + i);
}

static uint32_t read_item(const void *item)
{
    unsigned char wanted[LARGEST];
    uint32_t number;

    memcpy(&number, item, sizeof number);
    make_item(wanted, number);
    CHECK(memcmp(item, wanted, size) == 0);
    return number;
}

/* The item k adds the items 2k and 2k + 1, as far as they are below the limit. */
static int double_it(void *item, fj_feeder *feeder, void *arg)
{
    uint32_t k = read_item(item), limit = *(uint32_t *)arg;
    unsigned char next[LARGEST];

    atomic_fetch_add(&visits, 1);
    atomic_fetch_add(&sum, k);
    for (uint32_t i = 2 * k; i <= 2 * k + 1 && i < limit; i++) {
        make_item(next, i);
        CHECK_EQ(fj_for_each_add(feeder, next), FJ_OK);
    }
    memset(item, 0, size); /* the item belongs to the body */
    return FJ_OK;
}

struct call {
    uint32_t limit;
    fj_algo_options how;
};

static void call_double(void *arg)
{
    struct call *c = arg;
    unsigned char first[LARGEST];

    make_item(first, 1);
    atomic_store(&visits, 0);
    atomic_store(&sum, 0);
    CHECK_EQ(fj_for_each(first, 1, size, double_it, &c->limit, &c->how), FJ_OK);
    CHECK_EQ(atomic_load(&visits), c->limit - 1);
    CHECK_EQ(atomic_load(&sum), (long)c->limit * (c->limit - 1) / 2);
}

static void all_sizes(fj_pool *pool)
{
    static const size_t grains[] = {0, 1, 7, 1000};

    for (size_t i = 0; i < 4; i++) {
        struct call c = {.limit = 2000, .how = {.pool = pool, .grain = grains[i]}};
        size = 4 + 12 * i;
        call_double(&c);
        c.how.pool = NULL;
        inside(pool, call_double, &c);
    }
}

FJ_TEST(every_item_is_visited_once, 20)
{
    on_pools_and_common(all_sizes);
}

/* ---- The array at the beginning -------------------------------------------------------------- */

static int add_number(void *item, fj_feeder *feeder, void *arg)
{
    (void)feeder;
    atomic_fetch_add((atomic_long *)arg, *(int32_t *)item);
    *(int32_t *)item = -1;
    return FJ_OK;
}

static void array(fj_pool *pool)
{
    static const size_t counts[] = {0, 1, 2, 3, 64, 65, 1000, 10000};
    static int32_t items[10000];

    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        size_t n = counts[k];
        fj_algo_options how = {.pool = pool, .grain = k % 3};
        for (size_t i = 0; i < n; i++) items[i] = (int32_t)i;
        atomic_store(&sum, 0);
        CHECK_EQ(fj_for_each(items, n, sizeof items[0], add_number, &sum, &how), FJ_OK);
        CHECK_EQ(atomic_load(&sum), (long)n * ((long)n - 1) / 2);
        for (size_t i = 0; i < n; i++) CHECK_EQ(items[i], -1);
    }
}

FJ_TEST(items_of_the_array_are_passed_in_place, 10)
{
    on_pools_and_common(array);
}

/* ---- Sharing --------------------------------------------------------------------------------- */

static atomic_int met;

/* Returns when two bodies run at the same time. */
static int meets(void *item, fj_feeder *feeder, void *arg)
{
    int32_t *left = item;

    (void)arg;
    if (*left > 0) {
        (*left)--;
        int32_t next = 0;
        if (*left == 0) CHECK_EQ(fj_for_each_add(feeder, &next), FJ_OK);
    }
    atomic_fetch_add(&met, 1);
    while (atomic_load(&met) < 2) fjt_sleep_us(50);
    return FJ_OK;
}

FJ_TEST(item_that_a_body_adds_runs_while_the_body_runs, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    int32_t one = 1;

    CHECK_EQ(fj_for_each(&one, 1, sizeof one, meets, NULL, &(fj_algo_options){.pool = pool}),
             FJ_OK);
    CHECK_EQ(atomic_load(&met), 2);
    fjt_destroy(pool);
}

FJ_TEST(two_items_of_the_array_run_at_the_same_time, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    int32_t two[2] = {0, 0};

    CHECK_EQ(fj_for_each(two, 2, sizeof two[0], meets, NULL, &(fj_algo_options){.pool = pool}),
             FJ_OK);
    CHECK_EQ(atomic_load(&met), 2);
    fjt_destroy(pool);
}

/* ---- Errors and cancelling ------------------------------------------------------------------- */

static int fails_at(void *item, fj_feeder *feeder, void *arg)
{
    int32_t k = *(int32_t *)item, next = k + 1;

    atomic_fetch_add(&visits, 1);
    if (k == *(int32_t *)arg) return 7;
    CHECK_EQ(fj_for_each_add(feeder, &next), FJ_OK);
    return FJ_OK;
}

static void error_ends(fj_pool *pool)
{
    int32_t at = 1000, items[4] = {0, 0, 0, 0};

    atomic_store(&visits, 0);
    CHECK_EQ(
        fj_for_each(items, 4, sizeof items[0], fails_at, &at, &(fj_algo_options){.pool = pool}), 7);
    CHECK(atomic_load(&visits) >= 1001);
}

FJ_TEST(error_of_a_body_ends_the_call, 10)
{
    on_pools_and_common(error_ends);
}

struct endless {
    fj_token *token;
    int after;
};

/* Adds items without end, until the call is cancelled. */
static int endless_body(void *item, fj_feeder *feeder, void *arg)
{
    struct endless *e = arg;

    CHECK_EQ(fj_for_each_add(feeder, item), FJ_OK);
    CHECK_EQ(fj_for_each_add(feeder, item), FJ_OK);
    if (atomic_fetch_add(&visits, 1) == e->after) fj_token_cancel(e->token);
    return FJ_OK;
}

static void token_ends(fj_pool *pool)
{
    fj_token token;
    struct endless e = {&token, 500};
    char item = 0;

    fj_token_init(&token, NULL);
    atomic_store(&visits, 0);
    fj_algo_options how = {.pool = pool, .token = &token};
    CHECK_EQ(fj_for_each(&item, 1, 1, endless_body, &e, &how), FJ_ECANCELED);
    CHECK_EQ(fj_for_each(&item, 1, 1, endless_body, &e, &how), FJ_ECANCELED);
}

FJ_TEST(token_cancels_the_call, 10)
{
    on_pools_and_common(token_ends);
}

struct cancelled_task {
    fj_task task;
    fj_token outer, inner;
    bool with_inner;
};

static int cancelled_run(fj_task *t)
{
    struct cancelled_task *c = (struct cancelled_task *)t;
    struct endless e = {&c->outer, 300};
    fj_algo_options how = {.token = c->with_inner ? &c->inner : NULL};
    char item = 0;

    return fj_for_each(&item, 1, 1, endless_body, &e, &how);
}

FJ_TEST(call_ends_with_the_calling_task, 10)
{
    fj_pool *pool = fjt_pool(2, 0);

    for (int with_inner = 0; with_inner < 2; with_inner++) {
        struct cancelled_task c = {.with_inner = with_inner != 0};
        atomic_store(&visits, 0);
        fj_token_init(&c.outer, NULL);
        fj_token_init(&c.inner, NULL);
        fj_task_init(&c.task, cancelled_run);
        CHECK_EQ(fj_invoke_token(pool, &c.task, &c.outer), FJ_ECANCELED);
        CHECK(atomic_load(&visits) > 300);
    }
    fjt_destroy(pool);
}

static atomic_int stop_now;

static int until_the_stop(void *item, fj_feeder *feeder, void *arg)
{
    (void)arg;
    atomic_store(&stop_now, 1);
    return fj_for_each_add(feeder, item);
}

static void *stopper(void *arg)
{
    until(&stop_now);
    fj_pool_shutdown_now(arg);
    return NULL;
}

FJ_TEST(pool_that_stops_ends_the_call, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    pthread_t t;
    int item = 0;

    CHECK_EQ(pthread_create(&t, NULL, stopper, pool), 0);
    CHECK_EQ(
        fj_for_each(&item, 1, sizeof item, until_the_stop, NULL, &(fj_algo_options){.pool = pool}),
        FJ_ECANCELED);
    pthread_join(t, NULL);
    CHECK_EQ(
        fj_for_each(&item, 1, sizeof item, until_the_stop, NULL, &(fj_algo_options){.pool = pool}),
        FJ_EREJECTED);
    fjt_destroy(pool);
}

/* ---- Arguments, progress, memory -------------------------------------------------------------- */

FJ_TEST(arguments_that_are_invalid_are_refused, 10)
{
    int item = 0;

    CHECK_EQ(fj_for_each(&item, 1, 0, fails_at, &item, NULL), FJ_EINVAL);
    CHECK_EQ(fj_for_each(&item, SIZE_MAX, 2, fails_at, &item, NULL), FJ_EINVAL);
    CHECK_EQ(fj_for_each(&item, 1, (size_t)1 << 31, fails_at, &item, NULL), FJ_EINVAL);
    CHECK_EQ(
        fj_for_each(&item, 1, 4, fails_at, &item, &(fj_algo_options){.grain = (size_t)1 << 29}),
        FJ_EINVAL);
    CHECK_EQ(fj_for_each(&item, 1, 4, fails_at, &item, &(fj_algo_options){.reserved = {1, 0}}),
             FJ_EINVAL);
    CHECK_EQ(fj_for_each(NULL, 0, 4, fails_at, NULL, NULL), FJ_OK);
    CHECK_EQ(atomic_load(&visits), 0);
}

FJ_TEST(progress_counts_the_items, 10)
{
    fj_progress p;
    struct call c = {.limit = 3000, .how = {.progress = &p}};

    size = 4;
    fj_progress_init(&p, 0);
    call_double(&c);
    CHECK_EQ(fj_progress_done(&p), 2999);
    CHECK_EQ(fj_progress_total(&p), 2999);
}

static int without_memory(void *item, fj_feeder *feeder, void *arg)
{
    int32_t k = *(int32_t *)item;

    atomic_fetch_add(&visits, 1);
    if (k == 0) return FJ_OK;
    k--;
    for (int i = 0; i < 100; i++) {
        int err = fj_for_each_add(feeder, &k);
        CHECK(err == FJ_OK || err == FJ_ENOMEM);
        atomic_fetch_add((atomic_long *)arg, err == FJ_OK);
    }
    return FJ_OK;
}

FJ_TEST(item_for_which_there_is_no_memory_is_not_added, 10)
{
    fj_pool *pool = fjt_pool(2, 0);

    if (!FJI_FAULTS) fjt_skip("built without faults");
    for (int n = 0; n < 8; n++) {
        int32_t items[3] = {1, 1, 2};
        atomic_store(&visits, 0);
        atomic_store(&sum, 3);
        fji_fault_set(FJI_FAULT_ALLOC, n + 1, n % 2 == 0 ? 1 : 1000000);
        int err = fj_for_each(items, 3, sizeof items[0], without_memory, &sum,
                              &(fj_algo_options){.pool = pool});
        fji_fault_set(FJI_FAULT_ALLOC, 1, 0);
        CHECK(err == FJ_OK || (err == FJ_ENOMEM && atomic_load(&visits) == 0));
        if (err == FJ_OK) CHECK_EQ(atomic_load(&visits), atomic_load(&sum));
    }
    fjt_destroy(pool);
}

/* ---- Random lists ---------------------------------------------------------------------------- */

static uint64_t random_child(uint64_t seed, uint32_t i)
{
    uint64_t s = seed + (i + 1) * 0x9e3779b97f4a7c15u;

    return fjt_random(&s) >> 8 << 8 | ((seed & 0xff) - 1); /* the low byte is the depth */
}

static uint32_t random_children(uint64_t seed)
{
    if ((seed & 0xff) == 0) return 0;
    return seed >> 8 & 1 ? (uint32_t)(seed >> 9 & 3) : seed % 97 == 0 ? 200 : 1;
}

static int random_visit(void *item, fj_feeder *feeder, void *arg)
{
    uint64_t seed = *(uint64_t *)item;

    atomic_fetch_add(&visits, 1);
    atomic_fetch_add((_Atomic uint64_t *)arg, seed);
    for (uint32_t i = 0; i < random_children(seed); i++) {
        uint64_t next = random_child(seed, i);
        CHECK_EQ(fj_for_each_add(feeder, &next), FJ_OK);
    }
    return FJ_OK;
}

static uint64_t random_oracle(uint64_t seed, long *n)
{
    uint64_t total = seed;

    ++*n;
    for (uint32_t i = 0; i < random_children(seed); i++)
        total += random_oracle(random_child(seed, i), n);
    return total;
}

FJ_TEST(random_lists_are_processed_as_an_oracle_says, 30)
{
    uint64_t state = fjt_seed();

    for (int workers = 1; workers <= 4; workers++) {
        fj_pool *pool = fjt_pool(workers, 0);
        for (long round = fjt_rounds(40); round > 0; round--) {
            uint64_t items[20], wanted = 0;
            _Atomic uint64_t got = 0;
            long n = 0;
            for (int i = 0; i < 20; i++) {
                items[i] = fjt_random(&state) >> 8 << 8 | 6;
                wanted += random_oracle(items[i], &n);
            }
            atomic_store(&visits, 0);
            fj_algo_options how = {.pool = pool, .grain = fjt_random(&state) % 3};
            CHECK_EQ(fj_for_each(items, 20, sizeof items[0], random_visit, &got, &how), FJ_OK);
            CHECK_EQ(atomic_load(&visits), n);
            CHECK_EQ(atomic_load(&got), wanted);
        }
        fjt_destroy(pool);
    }
}

/* ---- fork() ---------------------------------------------------------------------------------- */

struct forking {
    pid_t child; /* -1: not forked yet */
    int visits;  /* in this process, after the fork */
};

static int fork_once(void *item, fj_feeder *feeder, void *arg)
{
    struct forking *s = arg;

    (void)item, (void)feeder;
    if (s->child != -1)
        s->visits++;
    else
        s->child = fork();
    return FJ_OK;
}

static void visit_with_fork(void *arg)
{
    struct forking s = {.child = -1};
    char items[10] = {0};
    int status = -1;

    (void)arg;
    int err = fj_for_each(items, sizeof items, 1, fork_once, &s, NULL);
    if (s.child == 0) _exit(err == FJ_ECANCELED && s.visits == 0 ? 0 : 1);
    CHECK_EQ(err, FJ_OK);
    CHECK_EQ(s.visits, 9);
    CHECK_EQ(waitpid(s.child, &status, 0), s.child);
    CHECK_EQ(status, 0);
}

FJ_TEST(child_process_leaves_the_list_alone_after_a_body_that_forked, 20)
{
    fj_pool *pool = fjt_pool(1, 0);

    inside(pool, visit_with_fork, NULL);
    fjt_destroy(pool);
}
