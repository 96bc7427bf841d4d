/* SPDX-License-Identifier: MIT */
/*
 * then.c - derived futures: then, handle, forward, all of, any of
 */
#include <forkjoin/then.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../api/inside.h"

static atomic_int runs;

static void *number(long n)
{
    return (void *)(intptr_t)n;
}

static long value_of(void *p)
{
    return (long)(intptr_t)p;
}

static int add_arg(int code, void *value, void *arg, void **result)
{
    CHECK_EQ(code, FJ_OK);
    CHECK(*result == NULL);
    atomic_fetch_add(&runs, 1);
    *result = number(value_of(value) + value_of(arg));
    return FJ_OK;
}

/* Returns the code that it got, plus arg, and gives the same as its result. */
static int take_code(int code, void *value, void *arg, void **result)
{
    CHECK(code == FJ_OK || value == NULL);
    atomic_fetch_add(&runs, 1);
    *result = number(code);
    return (int)value_of(arg);
}

static int give(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

static fj_future *promise(void)
{
    fj_future *f = NULL;

    CHECK_EQ(fj_future_new(sizeof *f, NULL, &f), FJ_OK);
    return f;
}

static void check_value(fj_future *f, long n)
{
    void *result = NULL;

    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), FJ_OK);
    CHECK_EQ(value_of(result), n);
}

/* ---- then and handle ------------------------------------------------------------------------- */

static void chain_in(fj_pool *p)
{
    fj_future *f, *a, *b, *c;

    CHECK_EQ(fj_submit_call(p, give, number(1), &f), FJ_OK);
    CHECK_EQ(fj_future_then_in(p, f, FJ_THEN_SUCCESS, add_arg, number(10), &a), FJ_OK);
    CHECK_EQ(fj_future_then_in(p, a, FJ_THEN_SUCCESS, add_arg, number(100), &b), FJ_OK);
    CHECK_EQ(fj_future_then_in(p, a, FJ_THEN_ALWAYS, add_arg, number(200), &c), FJ_OK);
    fj_future_unref(f);
    fj_future_unref(a);
    check_value(b, 111);
    check_value(c, 211);
    fj_future_unref(b);
    fj_future_unref(c);
}

FJ_TEST(result_passes_along_a_chain_in_every_pool, 60)
{
    on_pools(chain_in);
}

static void chain_inside(void *arg)
{
    fj_future *f, *a;

    (void)arg;
    CHECK_EQ(fj_submit_call(fj_current_pool(), give, number(4), &f), FJ_OK);
    CHECK_EQ(fj_future_then(f, add_arg, number(3), &a), FJ_OK);
    check_value(a, 7); /* the queue of this worker has f: another worker runs it */
    fj_future_unref(f);
    fj_future_unref(a);
}

FJ_TEST(worker_waits_for_what_follows_from_its_own_queue, 60)
{
    inside_pools(chain_inside, NULL);
}

static fj_pool *seen_pool;

static int see_pool(int code, void *value, void *arg, void **result)
{
    (void)code, (void)value, (void)arg, (void)result;
    seen_pool = fj_current_pool();
    return FJ_OK;
}

static void see_inside(void *arg)
{
    fj_future *f = arg, *next;

    CHECK_EQ(fj_future_then(f, see_pool, NULL, &next), FJ_OK);
    f->result = next;
}

FJ_TEST(function_runs_in_the_pool_of_the_worker_or_in_the_common_pool, 30)
{
    fj_pool *p = fjt_pool(1, 0), *q = fjt_pool(1, 0);
    fj_future *f = promise(), *next;

    inside(p, see_inside, f);
    next = f->result;
    CHECK_EQ(fj_future_complete(f, NULL), 1);
    CHECK_EQ(fj_future_get(next, FJ_FOREVER, NULL), FJ_OK);
    CHECK(seen_pool == p);
    fj_future_unref(next);
    CHECK_EQ(fj_future_then(f, see_pool, NULL, &next), FJ_OK); /* f is done */
    CHECK_EQ(fj_future_get(next, FJ_FOREVER, NULL), FJ_OK);
    CHECK(seen_pool == fj_common_pool());
    fj_future_unref(next);
    CHECK_EQ(fj_future_then_in(q, f, FJ_THEN_ALWAYS, see_pool, NULL, &next), FJ_OK);
    CHECK_EQ(fj_future_get(next, FJ_FOREVER, NULL), FJ_OK);
    CHECK(seen_pool == q);
    fj_future_unref(next);
    fj_future_unref(f);
    fjt_destroy(p);
    fjt_destroy(q);
}

FJ_TEST(failure_skips_then_and_reaches_handle, 30)
{
    static const int codes[] = {5, -7, FJ_ECANCELED};
    fj_pool *p = fjt_pool(1, 0);

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        fj_future *f = promise(), *skipped, *handled, *failed;
        atomic_store(&runs, 0);
        CHECK_EQ(fj_future_then_in(p, f, FJ_THEN_SUCCESS, add_arg, NULL, &skipped), FJ_OK);
        CHECK_EQ(fj_future_then_in(p, skipped, FJ_THEN_ALWAYS, take_code, NULL, &handled), FJ_OK);
        CHECK_EQ(fj_future_then_in(p, skipped, FJ_THEN_ALWAYS, take_code, number(9), &failed),
                 FJ_OK);
        CHECK_EQ(fj_future_fail(f, codes[i]), 1);
        CHECK_EQ(fj_future_get(skipped, FJ_FOREVER, NULL), codes[i]);
        CHECK_EQ(fj_future_is_cancelled(skipped), codes[i] == FJ_ECANCELED);
        check_value(handled, codes[i]);
        CHECK_EQ(fj_future_get(failed, FJ_FOREVER, NULL), 9);
        fj_future_unref(failed);
        CHECK_EQ(fj_future_handle(f, take_code, NULL, &failed), FJ_OK); /* in the common pool */
        check_value(failed, codes[i]);
        CHECK_EQ(atomic_load(&runs), 3);
        fj_future_unref(f);
        fj_future_unref(skipped);
        fj_future_unref(handled);
        fj_future_unref(failed);
    }
    fjt_destroy(p);
}

FJ_TEST(cancelled_future_does_not_run_and_does_not_cancel_its_input, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f = promise(), *next, *later;

    CHECK_EQ(fj_future_then_in(p, f, FJ_THEN_ALWAYS, take_code, NULL, &next), FJ_OK);
    CHECK_EQ(fj_future_then_in(p, next, FJ_THEN_SUCCESS, add_arg, NULL, &later), FJ_OK);
    CHECK_EQ(fj_future_cancel(next, 1), 1);
    CHECK(fj_future_is_cancelled(later)); /* at once, in the cancelling thread */
    CHECK(!fj_future_is_done(f));
    CHECK_EQ(fj_future_complete(f, NULL), 1);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 0);
    fj_future_unref(f);
    fj_future_unref(next);
    fj_future_unref(later);
    fjt_destroy(p);
}

FJ_TEST(references_may_be_dropped_at_once, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f, *next;

    CHECK_EQ(fj_submit_call(p, give, number(1), &f), FJ_OK);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(fj_future_then_in(p, f, FJ_THEN_SUCCESS, add_arg, number(1), &next), FJ_OK);
        fj_future_unref(f);
        f = next;
    }
    fj_future_unref(f);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 10);

    /* A promise that no thread can keep any more is cancelled, and with it what follows. */
    f = promise();
    CHECK_EQ(fj_future_then_in(p, f, FJ_THEN_SUCCESS, add_arg, NULL, &next), FJ_OK);
    fj_future_unref(f);
    CHECK(fj_future_is_cancelled(next));
    fj_future_unref(next);
    fjt_destroy(p);
}

FJ_TEST(pool_that_takes_no_work_fails_what_follows, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f = promise(), *next;

    CHECK_EQ(fj_future_then_in(p, f, FJ_THEN_SUCCESS, add_arg, NULL, &next), FJ_OK);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    CHECK_EQ(fj_future_complete(f, NULL), 1);
    CHECK_EQ(fj_future_error(next), FJ_EREJECTED);
    fj_future_unref(f);
    fj_future_unref(next);
    fjt_destroy(p);
}

/* A waiting thread runs the tasks of a pool without workers, also for a future that follows. */
FJ_TEST(pool_without_workers_is_served_by_the_waiting_thread, 30)
{
    fj_future *f, *next;

    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "0", 1), 0);
    CHECK_EQ(fj_submit_call(NULL, give, number(20), &f), FJ_OK);
    CHECK_EQ(fj_future_then(f, add_arg, number(2), &next), FJ_OK);
    check_value(next, 22);
    CHECK_EQ(fj_common_parallelism(), 0);
    fj_future_unref(f);
    fj_future_unref(next);

    for (int limited = 0; limited < 2; limited++) {
        fj_future *v[2], *all;
        for (int i = 0; i < 2; i++) CHECK_EQ(fj_submit_call(NULL, give, NULL, &v[i]), FJ_OK);
        CHECK_EQ(fj_future_all_of(v, 2, &all), FJ_OK);
        CHECK_EQ(fj_future_get(all, limited ? (int64_t)60 * 1000000000 : FJ_FOREVER, NULL), FJ_OK);
        for (int i = 0; i < 2; i++) fj_future_unref(v[i]);
        fj_future_unref(all);
        CHECK_EQ(fj_common_parallelism(), limited);
    }
}

FJ_TEST(wrong_arguments_change_nothing, 20)
{
    fj_future *f = promise(), *next = f, *none[2] = {f, NULL};
    fj_completer root, child;

    fj_completer_init(&root, NULL, 0, NULL, NULL, NULL);
    fj_completer_init(&child, &root, 0, NULL, NULL, NULL);
    CHECK_EQ(fj_future_then(NULL, add_arg, NULL, &next), FJ_EINVAL);
    CHECK_EQ(fj_future_then(f, NULL, NULL, &next), FJ_EINVAL);
    CHECK_EQ(fj_future_then(f, add_arg, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_future_then(&child.future, add_arg, NULL, &next), FJ_EINVAL);
    CHECK_EQ(fj_future_then_in(NULL, f, (enum fj_then_when)2, add_arg, NULL, &next), FJ_EINVAL);
    CHECK_EQ(fj_future_forward(f, f), FJ_EINVAL);
    CHECK_EQ(fj_future_forward(f, &child.future), FJ_EINVAL);
    CHECK_EQ(fj_future_forward(&child.future, f), FJ_EINVAL);
    CHECK_EQ(fj_future_all_of(none, 2, &next), FJ_EINVAL);
    none[1] = &child.future;
    CHECK_EQ(fj_future_all_of(none, 2, &next), FJ_EINVAL);
    CHECK_EQ(fj_future_any_of(none, 2, &next), FJ_EINVAL);
    CHECK_EQ(fj_future_any_of(none, 0, &next), FJ_EINVAL);
    CHECK_EQ(fj_future_all_of(none, SIZE_MAX, &next), FJ_EINVAL);
    CHECK(next == f);
    CHECK_EQ(fj_future_complete(f, NULL), 1);
    fj_future_unref(f);
}

/* ---- forward --------------------------------------------------------------------------------- */

struct request {
    fj_future *inner, *next;
};

/* Starts another future, whose outcome becomes that of this one. */
static int start_inner(int code, void *value, void *arg, void **result)
{
    struct request *r = arg;

    (void)code, (void)result;
    CHECK_EQ(fj_submit_call(fj_current_pool(), give, number(value_of(value) * 2), &r->inner),
             FJ_OK);
    CHECK_EQ(fj_future_forward(r->inner, r->next), FJ_OK);
    fj_future_unref(r->inner);
    return FJ_PENDING;
}

FJ_TEST(function_may_leave_its_outcome_to_another_future, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    struct request r = {0};
    fj_future *f;

    CHECK_EQ(fj_submit_call(p, give, number(21), &f), FJ_OK);
    CHECK_EQ(fj_future_then_in(p, f, FJ_THEN_SUCCESS, start_inner, &r, &r.next), FJ_OK);
    check_value(r.next, 42);
    fj_future_unref(f);
    fj_future_unref(r.next);
    fjt_destroy(p);

    for (int i = 0; i < 3; i++) {
        fj_future *from = promise(), to;
        fj_future_init(&to, NULL);
        CHECK_EQ(fj_future_forward(from, &to), FJ_OK);
        (void)(i == 0 ? fj_future_complete(from, number(3))
                      : fj_future_fail(from, i == 1 ? 8 : FJ_ECANCELED));
        void *value = NULL;
        CHECK_EQ(fj_future_result(&to, &value), i == 0 ? FJ_OK : i == 1 ? 8 : FJ_ECANCELED);
        CHECK_EQ(value_of(value), i == 0 ? 3 : 0);
        fj_future_unref(from);
        fj_future_fini(&to);
    }
}

/* ---- Long chains ----------------------------------------------------------------------------- */

static fj_future *long_chain(fj_pool *p, fj_future *first, long n)
{
    fj_future *last = fj_future_ref(first), *next;

    for (long i = 0; i < n; i++) {
        CHECK_EQ(fj_future_then_in(p, last, FJ_THEN_SUCCESS, add_arg, number(1), &next), FJ_OK);
        fj_future_unref(last);
        last = next;
    }
    return last;
}

FJ_TEST(chain_of_a_million_passes_results_and_failures, 120)
{
    long n = fjt_rounds(1000000);
    fj_pool *p = fjt_pool(2, 0);

    if (fjt_sanitized() && n > 100000) n = 100000;
    for (int fails = 0; fails < 2; fails++) {
        fj_future *f = promise(), *last = long_chain(p, f, n);
        atomic_store(&runs, 0);
        (void)(fails ? fj_future_fail(f, 3) : fj_future_complete(f, number(5)));
        if (fails)
            CHECK_EQ(fj_future_get(last, FJ_FOREVER, NULL), 3);
        else
            check_value(last, 5 + n);
        CHECK_EQ(atomic_load(&runs), fails ? 0 : n);
        fj_future_unref(f);
        fj_future_unref(last);
    }
    fjt_destroy(p);
}

/* ---- all of, any of -------------------------------------------------------------------------- */

FJ_TEST(all_of_ends_with_the_last_and_gives_the_first_code_of_the_array, 30)
{
    fj_future *f[4], *all;

    CHECK_EQ(fj_future_all_of(NULL, 0, &all), FJ_OK);
    CHECK_EQ(fj_future_error(all), FJ_OK);
    CHECK(fj_future_succeeded(all));
    fj_future_unref(all);
    for (int bad = 0; bad < 3; bad++) {
        for (int i = 0; i < 3; i++) f[i] = promise();
        f[3] = f[0]; /* twice */
        CHECK_EQ(fj_future_all_of(f, 4, &all), FJ_OK);
        CHECK_EQ(fj_future_complete(f[0], NULL), 1);
        if (bad > 0) CHECK_EQ(fj_future_fail(f[2], 22), 1);
        CHECK(!fj_future_is_done(all));
        (void)(bad == 2 ? fj_future_cancel(f[1], 0) : fj_future_complete(f[1], NULL));
        if (bad == 0) {
            CHECK(!fj_future_is_done(all));
            CHECK_EQ(fj_future_complete(f[2], NULL), 1);
        }
        CHECK(fj_future_is_done(all));
        CHECK_EQ(fj_future_error(all), bad == 0 ? FJ_OK : bad == 1 ? 22 : FJ_ECANCELED);
        for (int i = 0; i < 3; i++) fj_future_unref(f[i]);
        fj_future_unref(all);
    }
}

FJ_TEST(any_of_gives_the_first_success_or_the_last_failure, 30)
{
    fj_future *f[3], *any;
    void *which = NULL;

    for (int i = 0; i < 3; i++) f[i] = promise();
    CHECK_EQ(fj_future_any_of(f, 3, &any), FJ_OK);
    CHECK_EQ(fj_future_fail(f[0], 1), 1);
    CHECK(!fj_future_is_done(any));
    CHECK_EQ(fj_future_complete(f[2], NULL), 1);
    CHECK_EQ(fj_future_result(any, &which), FJ_OK);
    CHECK_EQ((size_t)(uintptr_t)which, 2);
    CHECK(!fj_future_is_done(f[1])); /* it is not cancelled */
    fj_future_unref(f[1]);
    CHECK_EQ(fj_future_complete(f[0], NULL), 0);
    fj_future_unref(any);
    fj_future_unref(f[0]);
    fj_future_unref(f[2]);

    for (int all_cancelled = 0; all_cancelled < 2; all_cancelled++) {
        for (int i = 0; i < 3; i++) f[i] = promise();
        CHECK_EQ(fj_future_any_of(f, 3, &any), FJ_OK);
        for (int i = 2; i >= 0; i--)
            (void)(all_cancelled || i == 0 ? fj_future_cancel(f[i], 0) : fj_future_fail(f[i], i));
        CHECK_EQ(fj_future_error(any), all_cancelled ? FJ_ECANCELED : 1);
        CHECK_EQ(fj_future_is_cancelled(any), all_cancelled);
        for (int i = 0; i < 3; i++) fj_future_unref(f[i]);
        fj_future_unref(any);
    }
}

/* ---- fork() of the process ------------------------------------------------------------------- */

FJ_TEST(child_process_continues_what_follows_from_its_own_promise, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future *f = promise(), *next, *all;
    int status = 0;

    CHECK_EQ(fj_future_all_of(&f, 1, &all), FJ_OK);
    pid_t child = fork();
    CHECK_EQ(fj_future_then_in(p, all, FJ_THEN_SUCCESS, add_arg, number(2), &next), FJ_OK);
    CHECK_EQ(fj_future_complete(f, NULL), 1);
    check_value(next, 2);
    if (child == 0) _exit(42);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 42);
    fj_future_unref(f);
    fj_future_unref(all);
    fj_future_unref(next);
    fjt_destroy(p);
}

/* ---- Random programs against an oracle ------------------------------------------------------- */

/*
 * A program is a list of nodes. A node is a source, or follows from earlier nodes. The oracle
 * computes the outcome of each node from the outcomes of its inputs. Several threads submit the
 * sources and cancel some of the nodes. For a node that follows from a cancelled one, the oracle
 * uses the outcome that the cancelled node really has.
 */
enum kind { SOURCE, THEN, HANDLE, FORWARD, ALL, ANY, N_KINDS };

#define MOST_NODES 40
#define MOST_INPUTS 4

struct node {
    enum kind kind;
    int code; /* of a source or a function */
    long value;
    int n, input[MOST_INPUTS];
    fj_future *f;
    bool disturbed; /* the program cancels it */
};

struct program {
    int n;
    struct node node[MOST_NODES];
    atomic_int next_source;
    fj_pool *pool;
};

static int node_source(void *arg, void **result)
{
    struct node *d = arg;

    *result = number(d->value);
    return d->code;
}

static int node_follow(int code, void *value, void *arg, void **result)
{
    struct node *d = arg;

    *result = number(value_of(value) + d->value + (code != FJ_OK ? code : 0));
    return d->code;
}

static int random_code(uint64_t *random)
{
    uint64_t r = fjt_random(random) % 8;

    return r == 0 ? FJ_ECANCELED : r == 1 ? 40 + (int)(fjt_random(random) % 4) : FJ_OK;
}

static void node_make(struct program *p, int i, uint64_t *random)
{
    struct node *d = &p->node[i];
    fj_future *in[MOST_INPUTS];

    d->kind = i < 3 ? SOURCE : (enum kind)(fjt_random(random) % N_KINDS);
    d->code = random_code(random);
    d->value = (long)(fjt_random(random) % 100);
    d->n = d->kind == SOURCE                  ? 0
           : d->kind == ALL || d->kind == ANY ? 1 + (int)(fjt_random(random) % MOST_INPUTS)
                                              : 1;
    for (int k = 0; k < d->n; k++) {
        d->input[k] = (int)(fjt_random(random) % (uint64_t)i);
        in[k] = p->node[d->input[k]].f;
    }
    switch (d->kind) {
        case SOURCE: CHECK_EQ(fj_future_new_call(node_source, d, 0, &d->f), FJ_OK); break;
        case THEN:
        case HANDLE:
            CHECK_EQ(fj_future_then_in(p->pool, in[0],
                                       d->kind == THEN ? FJ_THEN_SUCCESS : FJ_THEN_ALWAYS,
                                       node_follow, d, &d->f),
                     FJ_OK);
            break;
        case FORWARD:
            d->f = promise();
            CHECK_EQ(fj_future_forward(in[0], d->f), FJ_OK);
            break;
        case ALL: CHECK_EQ(fj_future_all_of(in, (size_t)d->n, &d->f), FJ_OK); break;
        default: CHECK_EQ(fj_future_any_of(in, (size_t)d->n, &d->f), FJ_OK); break;
    }
    d->disturbed = fjt_random(random) % 16 == 0;
}

static void *drive(void *arg)
{
    struct program *p = arg;

    for (int i; (i = atomic_fetch_add(&p->next_source, 1)) < p->n;) {
        struct node *d = &p->node[i];
        if (d->disturbed) (void)fj_future_cancel(d->f, i % 2);
        if (d->kind == SOURCE) CHECK_EQ(fj_future_submit(p->pool, d->f), FJ_OK);
    }
    return NULL;
}

/* Checks any of: the outcome is one that the inputs explain. */
static void check_any(const struct program *p, const struct node *d)
{
    void *result;
    int code = fj_future_result(d->f, &result);
    bool explained = false, all_cancelled = true;

    for (int k = 0; k < d->n; k++) {
        fj_future *in = p->node[d->input[k]].f;
        if (code == FJ_OK && (size_t)(uintptr_t)result == (size_t)k)
            explained = fj_future_succeeded(in);
        if (code != FJ_OK) CHECK(!fj_future_succeeded(in));
        if (code != FJ_OK && fj_future_error(in) == code) explained = true;
        if (!fj_future_is_cancelled(in)) all_cancelled = false;
    }
    CHECK(explained);
    if (code == FJ_ECANCELED) CHECK(all_cancelled);
}

static void node_check(const struct program *p, const struct node *d)
{
    void *result = NULL, *before = NULL;
    int code = fj_future_result(d->f, &result), in = FJ_OK, expected = d->code;
    long value = d->value;

    if (d->disturbed && code == FJ_ECANCELED) return; /* the cancel was in time */
    if (d->kind == ANY) {
        check_any(p, d);
        return;
    }
    for (int k = 0; k < d->n && in == FJ_OK; k++)
        in = fj_future_result(p->node[d->input[k]].f, &before);
    if (d->kind == THEN || d->kind == HANDLE) value += value_of(before) + (in != FJ_OK ? in : 0);
    if (d->kind == FORWARD) value = value_of(before);
    if (d->kind == ALL) value = 0;
    if (d->kind == FORWARD || d->kind == ALL || (d->kind == THEN && in != FJ_OK)) expected = in;
    CHECK_EQ(code, expected);
    if (code == FJ_OK) CHECK_EQ(value_of(result), value);
}

FJ_TEST(random_graphs_of_futures_have_the_outcomes_of_the_oracle, 120)
{
    uint64_t random = fjt_seed();
    long rounds = fjt_rounds(500);
    fj_pool *pool = fjt_pool(2, 0);

    for (long r = 0; r < rounds; r++) {
        struct program *p = calloc(1, sizeof *p);
        pthread_t t;
        CHECK(p != NULL);
        p->pool = pool;
        p->n = 4 + (int)(fjt_random(&random) % (MOST_NODES - 3));
        for (int i = 0; i < p->n; i++) node_make(p, i, &random);
        CHECK_EQ(pthread_create(&t, NULL, drive, p), 0);
        drive(p);
        for (int i = p->n - 1; i >= 0; i--)
            CHECK_EQ(fj_future_wait(p->node[i].f, FJ_FOREVER), FJ_OK);
        pthread_join(t, NULL);
        for (int i = 0; i < p->n; i++) node_check(p, &p->node[i]);
        for (int i = 0; i < p->n; i++) fj_future_unref(p->node[i].f);
        CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK); /* the functions use *p */
        free(p);
    }
    fjt_destroy(pool);
}
