/* SPDX-License-Identifier: MIT */
/*
 * outcome.c - scenarios in which a future, a completer or a wait can end in several ways
 */
#include <forkjoin/block.h>
#include <pthread.h>

#include "scenario.h"

/* A waiter that is not woken checks the pool again after 250 ms. */
#define LATE ((int64_t)200000000)

static atomic_int runs, go;

static void yield_some(uint32_t most)
{
    for (uint32_t n = sim_random() % most; n > 0; n--) sim_yield();
}

static fj_future *future(fj_task_fn *fn)
{
    fj_future *f = malloc(sizeof *f);

    memset(f, 0, sizeof *f);
    fj_future_init(f, fn);
    return f;
}

static int body(fj_task *t)
{
    (void)t;
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

static int until_not_wanted(fj_task *t)
{
    (void)t;
    while (!fj_is_cancelled()) sim_yield();
    return 3;
}

static int waits_to_go(void *arg)
{
    (void)arg;
    scenario_until(&go);
    return FJ_OK;
}

/* ---- Waiting for any of several futures ------------------------------------------------------ */

static int naps_and_stays_open(fj_task *t)
{
    (void)t;
    CHECK(fj_sleep_ns(1000) != FJ_EINVAL);
    return FJ_PENDING;
}

struct choice {
    fj_future future;
    fj_future *of[2];
    int64_t ended;
};

/* The first future is in the queue of this worker, and no other worker can run it. The second
 * has no body. */
static int waits_for_any(fj_task *t)
{
    struct choice *c = (struct choice *)t;
    size_t which;

    CHECK_EQ(fj_future_fork(c->of[0]), FJ_OK);
    CHECK_EQ(fj_future_wait_any(c->of, 2, FJ_FOREVER, &which), FJ_ECANCELED);
    c->ended = sim_now();
    return FJ_OK;
}

FJ_TEST(interrupt_breaks_a_wait_for_any, 10)
{
    fj_pool_options o = {0};
    struct choice *c = malloc(sizeof *c);

    o.parallelism = o.max_threads = 1;
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    memset(c, 0, sizeof *c);
    fj_future_init(&c->future, waits_for_any);
    c->of[0] = future(naps_and_stays_open);
    c->of[1] = future(NULL);
    CHECK_EQ(fj_future_submit(pool, &c->future), FJ_OK);
    CHECK(fj_sleep_ns(sim_random() % 2 == 0 ? 1000 : 20000) == FJ_OK);
    yield_some(60);
    int64_t began = sim_now();
    CHECK_EQ(fj_future_cancel(&c->future, 1), 1);
    fj_future_fini(&c->future);
    if (!sim_jumps()) CHECK(c->ended - began < LATE);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_future_cancel(c->of[i], 0), 1);
    fjt_destroy(pool);
    for (int i = 0; i < 2; i++) free(c->of[i]);
    free(c);
}

static void alone_with_two(void *arg)
{
    fj_future *f[2] = {future(body), future(body)};
    int64_t began = sim_now();
    size_t which;

    (void)arg;
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_future_fork(f[i]), FJ_OK);
    CHECK_EQ(fj_future_wait_any(f, 2, FJ_FOREVER, &which), FJ_OK);
    if (!sim_jumps()) CHECK(sim_now() - began < LATE);
    CHECK_EQ(fj_future_wait_all(f, 2, FJ_FOREVER), FJ_OK);
    for (int i = 0; i < 2; i++) fj_future_fini(f[i]);
    for (int i = 0; i < 2; i++) free(f[i]);
}

/* The worker has to run one of the futures itself, because no other thread can. */
FJ_TEST(worker_that_is_alone_runs_one_of_those_it_waits_for, 10)
{
    fj_pool_options o = {0};

    o.parallelism = o.max_threads = 1;
    o.spin_ns = -1;
    fj_pool *pool = fjt_pool_with(&o);
    atomic_store(&runs, 0);
    scenario_inside(pool, alone_with_two, NULL);
    CHECK_EQ(atomic_load(&runs), 2);
    fjt_destroy(pool);
}

/* ---- fj_future_invoke_all() ------------------------------------------------------------------ */

static int until_go(fj_task *t)
{
    (void)t;
    atomic_store(&runs, 1);
    scenario_until(&go);
    return FJ_OK;
}

static void *completes(void *arg)
{
    scenario_until(&runs);
    CHECK_EQ(fj_future_complete(arg, NULL), 1);
    yield_some(20);
    atomic_store(&go, 1);
    return NULL;
}

/* fj_future_invoke_all() must return only after the body has ended, because the caller may free
 * the future then. */
FJ_TEST(invoke_all_waits_for_a_body_whose_future_was_completed, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f = future(until_go);
    pthread_t t;

    atomic_store(&runs, 0);
    atomic_store(&go, 0);
    CHECK_EQ(pthread_create(&t, NULL, completes, f), 0);
    CHECK_EQ(fj_future_invoke_all(pool, &f, 1, FJ_FOREVER), FJ_OK);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&go), 1);
    free(f);
    fjt_destroy(pool);
}

FJ_TEST(invoke_all_cancels_what_its_limit_leaves_undone, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f[2] = {future(until_not_wanted), future(until_not_wanted)};

    CHECK_EQ(fj_future_invoke_all(pool, f, 2, 20000), FJ_ETIMEDOUT);
    for (int i = 0; i < 2; i++) {
        CHECK(fj_future_is_cancelled(f[i]));
        fj_future_fini(f[i]);
        free(f[i]);
    }
    fjt_destroy(pool);
}

/* ---- A future that its forker joins ---------------------------------------------------------- */

static fj_future *joined;
static int decided;

static void *cancels_what_is_joined(void *arg)
{
    (void)arg;
    scenario_until(&go);
    decided = fj_future_cancel(joined, 0);
    return NULL;
}

/* The forker takes the future out of its own queue while another thread resolves it. */
static void forks_and_joins(void *arg)
{
    int code;
    fj_future before;

    /* From its first future on the worker has memory for scopes, and uses the fast path. */
    fj_future_init(&before, body);
    CHECK_EQ(fj_future_run(&before), FJ_OK);
    CHECK_EQ(fj_future_fork(joined), FJ_OK);
    atomic_store(&go, 1);
    yield_some(4);
    code = fj_future_join(joined);
    CHECK_EQ(fj_future_join(joined), code);
    *(int *)arg = code;
}

FJ_TEST(join_and_cancel_decide_once, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    pthread_t t;
    int code = 1;

    joined = future(body);
    atomic_store(&go, 0);
    CHECK_EQ(pthread_create(&t, NULL, cancels_what_is_joined, NULL), 0);
    scenario_inside(pool, forks_and_joins, &code);
    pthread_join(t, NULL);
    CHECK_EQ(code, decided == 1 ? FJ_ECANCELED : FJ_OK);
    fj_future_fini(joined);
    fjt_destroy(pool);
    free(joined);
}

/* ---- Refused calls, and futures that are used again ------------------------------------------ */

static int answer(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

FJ_TEST(call_that_a_pool_refuses_leaves_nothing_behind, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f = NULL;

    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_submit_call(pool, answer, NULL, &f), FJ_EREJECTED);
    CHECK(f == NULL);
    fjt_destroy(pool);
}

static int is_wanted(fj_task *t)
{
    (void)t;
    CHECK(!fj_is_cancelled());
    atomic_fetch_add(&runs, 1);
    return FJ_OK;
}

FJ_TEST(future_that_was_cancelled_is_used_again, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f = future(is_wanted);

    atomic_store(&runs, 0);
    CHECK_EQ(fj_future_cancel(f, 1), 1);
    CHECK_EQ(fj_future_reinit(f), FJ_OK);
    CHECK_EQ(fj_future_submit(pool, f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 1);
    fj_future_fini(f);
    free(f);
    fjt_destroy(pool);
}

/* ---- Tokens of nested bodies ----------------------------------------------------------------- */

static fj_future *inner;

static int has_its_own_token(fj_task *t)
{
    CHECK(fj_current_token() == &((fj_future *)t)->token);
    return FJ_OK;
}

/* After a nested future was run, or forked and joined, the current token is again that of this
 * body. */
static int has_its_token_back(fj_task *t)
{
    const fj_token *mine = &((fj_future *)t)->token;

    CHECK(fj_current_token() == mine);
    if (atomic_load(&go) == 0) {
        CHECK_EQ(fj_future_run(inner), FJ_OK);
    } else {
        CHECK_EQ(fj_future_fork(inner), FJ_OK);
        CHECK_EQ(fj_future_join(inner), FJ_OK);
    }
    CHECK(fj_current_token() == mine);
    return FJ_OK;
}

static void without_memory(void *arg)
{
    fj_future *outer = arg;

    if (sim_random() % 2 == 0) fji_fault_set(FJI_FAULT_COMMIT, 1, 1000);
    CHECK_EQ(fj_future_run(outer), FJ_OK);
    fji_fault_set(FJI_FAULT_COMMIT, 0, 0);
    CHECK(fj_current_token() == NULL);
}

FJ_TEST(token_of_a_task_is_its_own_again_after_a_join, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *outer = future(has_its_token_back);

    inner = future(has_its_own_token);
    atomic_store(&go, (int)(sim_random() % 2));
    scenario_inside(pool, without_memory, outer);
    fjt_destroy(pool);
    free(outer);
    free(inner);
}

/* The futures are nested so deeply that the worker needs more memory for scopes, and gets none. */
#define DEEP 260

static fj_future *deep;

static int goes_deeper(fj_task *t)
{
    fj_future *f = (fj_future *)t;

    if (f + 1 == deep + DEEP) return has_its_token_back(t);
    CHECK_EQ(fj_future_run(f + 1), FJ_OK);
    CHECK(fj_current_token() == &f->token);
    return FJ_OK;
}

static void without_more_memory(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_future_run(inner), FJ_OK); /* the worker allocates its first scopes */
    CHECK_EQ(fj_future_reinit(inner), FJ_OK);
    fji_fault_set(FJI_FAULT_COMMIT, 1, 1000);
    CHECK_EQ(fj_future_run(deep), FJ_OK);
    fji_fault_set(FJI_FAULT_COMMIT, 0, 0);
    CHECK(fj_current_token() == NULL);
}

FJ_TEST(tokens_without_room_are_those_of_their_tasks, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    inner = future(has_its_own_token);
    deep = malloc(DEEP * sizeof *deep);
    memset(deep, 0, DEEP * sizeof *deep);
    for (int i = 0; i < DEEP; i++) fj_future_init(&deep[i], goes_deeper);
    atomic_store(&go, (int)(sim_random() % 2));
    scenario_inside(pool, without_more_memory, NULL);
    fjt_destroy(pool);
    free(deep);
    free(inner);
}

/* The body resolves its own future while a token of fj_invoke_token() is the current one. */
static int completes_the_outer(fj_task *t)
{
    (void)t;
    CHECK_EQ(fj_future_complete(inner, NULL), 1);
    CHECK(!fj_is_cancelled());
    return FJ_OK;
}

static int completes_itself_below(fj_task *t)
{
    fj_token token;
    fj_task below;

    (void)t;
    memset(&below, 0, sizeof below);
    fj_task_init(&below, completes_the_outer);
    fj_token_init(&token, fj_current_token());
    return fj_invoke_token(fj_current_pool(), &below, &token);
}

FJ_TEST(body_that_completes_itself_under_a_token_is_not_told, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    inner = future(completes_itself_below);
    CHECK_EQ(fj_future_submit(pool, inner), FJ_OK);
    CHECK_EQ(fj_future_join(inner), FJ_OK);
    fj_future_fini(inner);
    free(inner);
    fjt_destroy(pool);
}

/* ---- Completers ------------------------------------------------------------------------------ */

static fj_completer *completer(fj_completer *parent, int32_t pending, fj_task_fn *fn)
{
    fj_completer *c = malloc(sizeof *c);

    memset(c, 0, sizeof *c);
    fj_completer_init(c, parent, pending, fn, NULL, NULL);
    return c;
}

static int root_run(fj_task *t)
{
    atomic_fetch_add(&runs, 1);
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

/* The root is cancelled while the only worker runs something else. The body must not run, and
 * the worker that takes the root out of the queue must release it. */
FJ_TEST(root_cancelled_while_queued_is_let_go_without_a_run, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_completer *root = completer(NULL, 0, root_run);

    atomic_store(&runs, 0);
    atomic_store(&go, 0);
    CHECK_EQ(fj_execute(pool, waits_to_go, NULL), FJ_OK);
    CHECK_EQ(fj_completer_submit(pool, root), FJ_OK);
    CHECK_EQ(fj_future_cancel(&root->future, 0), 1);
    int64_t began = sim_now();
    atomic_store(&go, 1);
    fj_future_fini(&root->future);
    if (!sim_jumps()) CHECK(sim_now() - began < LATE);
    free(root);
    fjt_destroy(pool);
    CHECK_EQ(atomic_load(&runs), 0);
}

static void *decides_a_root(void *arg)
{
    yield_some(20);
    if (atomic_load(&go) == 0)
        fj_completer_complete(arg, NULL);
    else
        fj_completer_fail(arg, 6);
    return NULL;
}

/* Another thread completes the root or fails it. It must not touch the root afterwards, because
 * the waiting thread frees it. */
FJ_TEST(root_is_freed_by_the_thread_that_waited_for_it, 10)
{
    fj_completer *root = completer(NULL, 1, NULL);
    pthread_t t;

    atomic_store(&go, (int)(sim_random() % 2));
    CHECK_EQ(pthread_create(&t, NULL, decides_a_root, root), 0);
    CHECK_EQ(fj_completer_join(root), atomic_load(&go) == 0 ? FJ_OK : 6);
    free(root);
    pthread_join(t, NULL);
}

struct part {
    fj_completer completer;
};

static struct part *parts;

/* The last child completes the root. That is not a cancel of the child. */
static int part_run(fj_task *t)
{
    atomic_fetch_add(&runs, 1);
    fj_completer_try_complete((fj_completer *)t);
    CHECK(!fj_is_cancelled());
    return FJ_OK;
}

static int parts_through(fj_completer *c, fj_completer *caller)
{
    (void)c, (void)caller;
    CHECK_EQ(atomic_load(&runs), 3);
    return FJ_OK;
}

static int parts_run(fj_task *t)
{
    fj_completer *c = (fj_completer *)t;

    for (int i = 0; i < 3; i++) fj_completer_init(&parts[i].completer, c, 0, part_run, NULL, NULL);
    return fj_completer_fork_all(c, parts, 3, sizeof parts[0]);
}

FJ_TEST(children_forked_together_are_counted_before_the_first_is_through, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_completer *root = completer(NULL, 0, parts_run);

    atomic_store(&runs, 0);
    root->on_completion = parts_through;
    parts = malloc(3 * sizeof *parts);
    memset(parts, 0, 3 * sizeof *parts);
    CHECK_EQ(fj_completer_invoke(pool, root), FJ_OK);
    CHECK_EQ(atomic_load(&runs), 3);
    fjt_destroy(pool);
    free(parts);
    free(root);
}

static int begins_and_waits(fj_task *t)
{
    atomic_store(&runs, 1);
    return until_not_wanted(t);
}

static int completes_only(fj_task *t)
{
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

/* A worker runs the second child first and keeps the scope of the root for the next child. Then
 * the first child forks a task at a lower position of the queue, and a thief must find the token
 * of the root for it. */
static int forks_one_that_waits(fj_task *t)
{
    fj_task below;

    memset(&below, 0, sizeof below);
    fj_task_init(&below, begins_and_waits);
    fj_fork(&below);
    scenario_until(&runs); /* a thief runs it */
    CHECK_EQ(fj_join(&below), 3);
    fj_completer_try_complete((fj_completer *)t);
    return FJ_OK;
}

static int forks_two_children(fj_task *t)
{
    fj_completer *c = (fj_completer *)t;

    fj_completer_init(&parts[0].completer, c, 0, forks_one_that_waits, NULL, NULL);
    fj_completer_init(&parts[1].completer, c, 0, completes_only, NULL, NULL);
    fj_completer_set_pending(c, 2);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_completer_fork(&parts[i].completer), FJ_OK);
    fj_completer_try_complete(c);
    return FJ_OK;
}

FJ_TEST(token_of_a_root_reaches_what_is_stolen_from_its_children, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_completer *root = completer(NULL, 0, forks_two_children);

    atomic_store(&runs, 0);
    parts = malloc(2 * sizeof *parts);
    memset(parts, 0, 2 * sizeof *parts);
    CHECK_EQ(fj_completer_submit(pool, root), FJ_OK);
    scenario_until(&runs);
    CHECK_EQ(fj_future_cancel(&root->future, 0), 1);
    fjt_destroy(pool);
    free(parts);
    free(root);
}

/* ---- Sleeps, managed blocks and lazily queued futures ---------------------------------------- */

static int sleeps_as_long_as_asked(void *arg)
{
    int64_t began = sim_now();

    (void)arg;
    CHECK_EQ(fj_sleep_ns(50000), FJ_OK);
    CHECK(sim_now() - began >= 50000);
    return FJ_OK;
}

FJ_TEST(sleep_lasts_as_long_as_asked, 10)
{
    fj_pool *pool = scenario_pool(2, 0);
    fj_token token;

    fj_token_init(&token, NULL);
    CHECK_EQ(fj_execute(pool, sleeps_as_long_as_asked, NULL), FJ_OK);
    CHECK_EQ(fj_execute(pool, sleeps_as_long_as_asked, NULL), FJ_OK);
    for (int i = 0; i < 3; i++) {
        yield_some(40);
        fj_token_cancel(&token); /* no task runs with this token */
    }
    CHECK_EQ(sleeps_as_long_as_asked(NULL), FJ_OK);
    fjt_destroy(pool);
}

static int sleeps_for_ever(void *arg)
{
    (void)arg;
    CHECK_EQ(fj_sleep_ns(FJ_FOREVER), FJ_ECANCELED);
    return FJ_OK;
}

FJ_TEST(pool_that_stops_breaks_the_sleep_of_its_tasks, 10)
{
    fj_pool *pool = scenario_pool(1, 0);

    CHECK_EQ(fj_execute(pool, sleeps_for_ever, NULL), FJ_OK);
    yield_some(80);
    CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
    fjt_destroy(pool);
}

static int never(void *arg)
{
    (void)arg;
    return 0;
}

static int blocks_for_a_while(void *arg)
{
    (void)arg;
    sim_yield();
    return 0;
}

static int blocks_until_interrupted(fj_task *t)
{
    (void)t;
    return fj_managed_block(never, blocks_for_a_while, NULL);
}

/* The worker must not count as blocked afterwards; the library checks that when the pool ends. */
FJ_TEST(interrupt_ends_a_managed_block, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f = future(blocks_until_interrupted);

    CHECK_EQ(fj_future_submit(pool, f), FJ_OK);
    yield_some(60);
    CHECK_EQ(fj_future_cancel(f, 1), 1);
    fj_future_fini(f);
    free(f);
    f = future(body);
    CHECK_EQ(fj_future_submit(pool, f), FJ_OK);
    CHECK_EQ(fj_future_join(f), FJ_OK);
    fjt_destroy(pool);
    free(f);
}

FJ_TEST(lazily_queued_future_is_run_for_its_waiter, 10)
{
    fj_pool *pool = scenario_pool(1, 0);
    fj_future *f = future(body);

    atomic_store(&runs, 0);
    atomic_store(&go, 1);
    CHECK_EQ(fj_execute(pool, waits_to_go, NULL), FJ_OK);
    CHECK_EQ(fj_sleep_ns(20000), FJ_OK); /* until the worker sleeps */
    int64_t began = sim_now();
    CHECK_EQ(fj_future_submit_lazy(pool, f), FJ_OK);
    int err = fj_future_wait(f, sim_random() % 2 == 0 ? FJ_FOREVER : 10 * LATE);
    if (!sim_jumps()) CHECK(err == FJ_OK && sim_now() - began < LATE);
    fj_future_fini(f);
    free(f);
    fjt_destroy(pool);
}
