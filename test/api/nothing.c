/* SPDX-License-Identifier: MIT */
/*
 * nothing.c - NULL and other invalid arguments, for every parameter of every function
 *
 * The head of <forkjoin.h> states the rule. Each row is one call:
 *
 *     CODE   the call returns a code: FJ_EINVAL
 *     ZERO   the call returns a value: 0
 *     NONE   the call returns a pointer: NULL
 *     VOID   the call returns nothing
 *     MEANS  the header defines this case; the row has the result that it defines
 *
 * No call may change anything: its arguments keep their values, it calls no function, queues no
 * task and starts no thread. tools/check-nothing requires a row with NULL for every pointer of
 * every function in the public headers.
 */
#include <dirent.h>
#include <forkjoin/block.h>
#include <forkjoin/every.h>
#include <forkjoin/for_each.h>
#include <forkjoin/graph.h>
#include <forkjoin/group.h>
#include <forkjoin/inbox.h>
#include <forkjoin/lane.h>
#include <forkjoin/sort.h>
#include <forkjoin/then.h>
#include <forkjoin/worker_local.h>
#include <string.h>

#include "inside.h"

/* ---- Arguments, which no call may change ----------------------------------------------------- */

enum { N = 4 };

static int calls; /* of the functions below */

static struct {
    fj_task task[N], no_fn;
    fj_task *tasks[N], *one_null[N];
    fj_future future[2], no_body, *futures[2], *null_future[2], *made;
    fj_completer completer[2], child[N], no_run;
    fj_timer timer, no_timer;
    fj_token token;
    fj_taken taken[N];
    fj_pool_options options;
    fj_stats stats;
    fj_memory memory;
    fj_blocking blocking;
    fj_progress progress;
    fj_progress_bar *bar;
    fj_local local, no_local;
    fj_local_options local_options;
    fj_pool *pool, *out_pool;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    sem_t sem;
    struct pollfd fds[1];
    fj_function steps[2], null_step[2];
    fj_stage stages[2], null_stage[2];
    fj_algo_options bad_how;
    char text[64];
    void *result;
    size_t which;
    int yes;
    uint64_t counts[N];
    uint32_t u32[N];
    int32_t i32[N], i32_out[N];
    int64_t i64[N], i64_out[N];
    float f32[N], f32_out[N];
    double f64[N], f64_out[N];
    uint8_t bytes[N], out[N];
    fj_kv32 kv32[N];
    fj_kv64 kv64[N];
} w, before;

static fj_pool *pool; /* has no thread, because no task is submitted to it */

static int task_fn(fj_task *t)
{
    (void)t;
    calls++;
    return FJ_OK;
}

static int action_fn(void *arg)
{
    (void)arg;
    calls++;
    return FJ_OK;
}

static int call_fn(void *arg, void **result)
{
    (void)arg, (void)result;
    calls++;
    return FJ_OK;
}

static void released_fn(fj_future *f)
{
    (void)f;
    calls++;
}

static void done_fn(fj_future *f, void *arg)
{
    (void)f, (void)arg;
    calls++;
}

static int then_fn(int code, void *value, void *arg, void **result)
{
    (void)code, (void)value, (void)arg, (void)result;
    calls++;
    return FJ_OK;
}

static void timeout_fn(fj_future *f, void *arg)
{
    (void)f, (void)arg;
    calls++;
}

static int for_fn(size_t begin, size_t end, void *arg)
{
    (void)begin, (void)end, (void)arg;
    calls++;
    return FJ_OK;
}

static int for_2d_fn(size_t r0, size_t r1, size_t c0, size_t c1, void *arg)
{
    (void)r0, (void)r1, (void)c0, (void)c1, (void)arg;
    calls++;
    return FJ_OK;
}

static int transform_fn(const void *in, void *out, size_t n, void *arg)
{
    (void)in, (void)out, (void)n, (void)arg;
    calls++;
    return FJ_OK;
}

static int fold_fn(size_t begin, size_t end, void *acc, void *arg)
{
    (void)begin, (void)end, (void)acc, (void)arg;
    calls++;
    return FJ_OK;
}

static int combine_fn(void *left, const void *right, void *arg)
{
    (void)left, (void)right, (void)arg;
    calls++;
    return FJ_OK;
}

static int count_fn(size_t begin, size_t end, uint64_t *counts, void *arg)
{
    (void)begin, (void)end, (void)counts, (void)arg;
    calls++;
    return FJ_OK;
}

static int find_fn(size_t begin, size_t end, size_t *at, void *arg)
{
    (void)begin, (void)end, (void)at, (void)arg;
    calls++;
    return FJ_OK;
}

static int test_fn(const void *x, void *arg)
{
    (void)x, (void)arg;
    calls++;
    return 0;
}

static void op_fn(void *left, const void *right, void *arg)
{
    (void)left, (void)right, (void)arg;
    calls++;
}

static int keep_fn(size_t begin, size_t end, unsigned char *keep, void *arg)
{
    (void)begin, (void)end, (void)keep, (void)arg;
    calls++;
    return FJ_OK;
}

static int compare_fn(const void *a, const void *b, void *arg)
{
    (void)a, (void)b, (void)arg;
    calls++;
    return 0;
}

static int stage_fn(void **item, void *arg)
{
    (void)item, (void)arg;
    calls++;
    return FJ_OK;
}

static void drop_fn(void *item)
{
    (void)item;
    calls++;
}

/* ---- Setup and comparison -------------------------------------------------------------------- */

static void tasks_make(void)
{
    for (int i = 0; i < N; i++) {
        fj_task_init(&w.task[i], task_fn);
        w.tasks[i] = w.one_null[i] = &w.task[i];
        fj_completer_init(&w.child[i], &w.completer[0], 0, task_fn, NULL, NULL);
    }
    w.one_null[N - 1] = NULL;
    fj_task_init(&w.no_fn, NULL);
    for (int i = 0; i < 2; i++) {
        fj_future_init(&w.future[i], task_fn);
        w.futures[i] = w.null_future[i] = &w.future[i];
        fj_completer_init(&w.completer[i], NULL, 1, task_fn, NULL, NULL);
    }
    w.null_future[1] = NULL;
    fj_future_init(&w.no_body, NULL);
    fj_completer_init(&w.no_run, NULL, 0, NULL, NULL, NULL);
    fj_timer_init(&w.timer, task_fn);
    fj_timer_init(&w.no_timer, NULL);
    fj_token_init(&w.token, NULL);
}

static int threads(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    if (d == NULL) return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static int threads_before;

static void world_make(void)
{
    memset(&w, 0x5a, sizeof w);
    tasks_make();
    memset(w.taken, 0, sizeof w.taken);
    w.options = (fj_pool_options){0};
    w.blocking.worker = NULL;
    fj_progress_init(&w.progress, 100);
    w.pool = w.out_pool = NULL;
    w.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    w.cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    CHECK_EQ(sem_init(&w.sem, 0, 1), 0);
    w.steps[0] = w.steps[1] = w.null_step[0] = (fj_function){action_fn, NULL};
    w.null_step[1] = (fj_function){NULL, NULL};
    w.stages[0] = w.stages[1] = w.null_stage[0] = (fj_stage){stage_fn, NULL, FJ_STAGE_SERIAL};
    w.null_stage[1] = (fj_stage){NULL, NULL, FJ_STAGE_SERIAL};
    memset(&w.bad_how, 0, sizeof w.bad_how);
    w.bad_how.reserved[0] = 1;
    pool = fjt_pool(1, 0);
    memcpy(&before, &w, sizeof w);
    calls = 0;
    threads_before = threads();
}

static void unchanged(const char *call)
{
    fj_stats s;

    if (memcmp(&before, &w, sizeof w) != 0)
        fjt_fail(__FILE__, __LINE__, "%s changes an argument", call);
    if (calls != 0) fjt_fail(__FILE__, __LINE__, "%s calls a function", call);
    if (threads() != threads_before) fjt_fail(__FILE__, __LINE__, "%s starts a thread", call);
    CHECK_EQ(fj_pool_stats(pool, &s), FJ_OK);
    if (s.queued + s.submitted + s.started != 0 || s.state != 0)
        fjt_fail(__FILE__, __LINE__, "%s changes the pool", call);
    CHECK_EQ(fj_pool_delayed_count(pool), 0);
}

/* made: a row has created the common pool. */
static void world_end(bool made)
{
    CHECK_EQ(fj_common_configure(&w.options), made ? FJ_EBUSY : FJ_OK);
    fjt_destroy(pool);
}

static void row(const char *call, long long got, long long wanted)
{
    if (got != wanted) fjt_fail(__FILE__, __LINE__, "%s = %lld, wanted %lld", call, got, wanted);
    unchanged(call);
}

#define CODE(call) row(#call, (long long)(call), FJ_EINVAL)
#define ZERO(call) row(#call, (long long)(call), 0)
#define NONE(call) row(#call, (call) != NULL, 0)
#define VOID(call) ((call), unchanged(#call))
#define MEANS(call, wanted) row(#call, (long long)(call), wanted)

/* A number of elements of this size that no address space can hold. */
#define TOO_MANY(size) (SIZE_MAX / (size) + 2)

/* ---- <forkjoin.h> ---------------------------------------------------------------------------- */

FJ_TEST(nothing_is_no_task, 10)
{
    world_make();
    CODE(fj_invoke_both(NULL, &w.task[0]));
    CODE(fj_invoke_both(&w.task[0], NULL));
    CODE(fj_invoke_both(NULL, NULL));
    CODE(fj_invoke_both(&w.task[0], &w.task[0]));
    CODE(fj_invoke_both(&w.no_fn, &w.task[0]));
    CODE(fj_invoke_both(&w.task[0], &w.no_fn));
    CODE(fj_invoke_all(NULL, 1));
    MEANS(fj_invoke_all(NULL, 0), FJ_OK);
    CODE(fj_invoke_all(w.one_null, N));
    CODE(fj_invoke_all((fj_task *[]){&w.task[0], &w.no_fn}, 2));
    CODE(fj_invoke_all(w.tasks, TOO_MANY(sizeof(fj_task *))));
    CODE(fj_invoke_array(NULL, 1, sizeof(fj_task)));
    MEANS(fj_invoke_array(NULL, 0, sizeof(fj_task)), FJ_OK);
    CODE(fj_invoke_array(w.task, N, 0));
    CODE(fj_invoke_array(w.task, N, sizeof(fj_task) - 1));
    CODE(fj_invoke_array(w.task, 2, sizeof(fj_task) + 1));
    CODE(fj_invoke_array(w.task, TOO_MANY(sizeof(fj_task)), sizeof(fj_task)));
    CODE(fj_invoke_array(w.task, 2, SIZE_MAX / 8 * 8));
    CODE(fj_invoke_array(w.task, SIZE_MAX, sizeof(fj_task)));
    CODE(fj_invoke_array(&w.task[N - 1], 2, sizeof(fj_task))); /* the second one is no_fn */
    CODE(fj_submit(NULL, NULL));
    CODE(fj_submit(pool, NULL));
    CODE(fj_submit(pool, &w.no_fn));
    CODE(fj_submit_external(NULL, NULL));
    CODE(fj_submit_external(pool, &w.no_fn));
    CODE(fj_submit_lazy(NULL, NULL));
    CODE(fj_submit_lazy(pool, &w.no_fn));
    CODE(fj_invoke(NULL, NULL));
    CODE(fj_invoke(pool, &w.no_fn));
    CODE(fj_invoke_mode(NULL, NULL, FJ_CALLER_HELPS));
    CODE(fj_invoke_mode(pool, &w.no_fn, FJ_CALLER_BLOCKS));
    CODE(fj_invoke_mode(NULL, &w.task[0], (enum fj_caller)77));
    CODE(fj_invoke_mode(pool, &w.task[0], (enum fj_caller)FJ_POOL_CALLER_HELPS));
    CODE(fj_execute(NULL, NULL, NULL));
    CODE(fj_execute(pool, NULL, &w));
    CODE(fj_broadcast(NULL, NULL, NULL));
    CODE(fj_broadcast(pool, NULL, &w));
    MEANS(fj_broadcast(pool, action_fn, NULL), FJ_OK); /* the pool has no thread: no call */
    world_end(false);
}

FJ_TEST(nothing_is_no_pool_to_be_ended, 10)
{
    fj_pool_options bad = {0};

    world_make();
    CODE(fj_pool_create(NULL, NULL));
    CODE(fj_pool_create(NULL, &w.options));
    bad.reserved[sizeof bad.reserved / sizeof bad.reserved[0] - 1] = 1;
    CODE(fj_pool_create(&w.out_pool, &bad));
    CODE(fj_pool_shutdown(NULL));
    CODE(fj_pool_shutdown_now(NULL));
    CODE(fj_pool_close(NULL));
    MEANS(fj_pool_destroy(NULL), FJ_OK);
    CODE(fj_pool_cancel_delayed_on_shutdown(NULL));
    CODE(fj_common_configure(NULL));
    CODE(fj_common_configure(&bad));
    world_end(false);
}

FJ_TEST(no_place_for_what_is_asked_is_refused, 10)
{
    world_make();
    CODE(fj_pool_memory(NULL, NULL));
    CODE(fj_pool_memory(pool, NULL));
    CODE(fj_pool_stats(NULL, NULL));
    CODE(fj_pool_stats(pool, NULL));
    ZERO(fj_pool_describe(NULL, NULL, 1));
    ZERO(fj_pool_describe(pool, NULL, sizeof w.text));
    VOID(fj_pool_dump(NULL, NULL, NULL));
    VOID(fj_pool_dump(pool, NULL, &w));
    MEANS(fj_pool_describe(pool, NULL, 0) > 0, 1);
    world_end(false);
}

FJ_TEST(nothing_is_the_common_pool_where_it_is_asked_and_makes_no_thread, 10)
{
    world_make();
    MEANS(fj_pool_is_shutdown(NULL), 0);
    MEANS(fj_pool_is_terminating(NULL), 0);
    MEANS(fj_pool_is_terminated(NULL), 0);
    MEANS(fj_pool_is_quiescent(NULL), 1);
    MEANS(fj_pool_delayed_count(NULL), 0);
    MEANS(fj_pool_is_fifo(NULL), 0);
    MEANS(fj_pool_parallelism(NULL) == fj_common_parallelism(), 1);
    MEANS(fj_pool_thread_count(NULL), 0);
    CHECK(fj_pool_worker_limit(NULL) >= 0);
    MEANS(fj_pool_worker_limit(NULL), fj_pool_worker_limit(fj_common_pool()));
    MEANS(fj_pool_active_count(NULL), 0);
    MEANS(fj_pool_searching_count(NULL), 0);
    MEANS(fj_pool_running_count(NULL), 0);
    MEANS(fj_pool_steal_count(NULL), 0);
    MEANS(fj_pool_queued_task_count(NULL), 0);
    MEANS(fj_pool_queued_submission_count(NULL), 0);
    MEANS(fj_pool_has_queued_submissions(NULL), 0);
    CODE(fj_pool_set_parallelism(NULL, 0));
    MEANS(fj_pool_await_quiescence(NULL, 0), FJ_OK);
    MEANS(fj_pool_await_termination(NULL, 0), FJ_ETIMEDOUT);
    world_end(true);
}

FJ_TASK(long, typed, long, n)
{
    calls++;
    return n;
}

FJ_TEST(no_place_for_the_result_of_a_typed_task_is_refused, 10)
{
    world_make();
    CODE(typed_invoke(NULL, NULL, 1));
    CODE(typed_invoke(pool, NULL, 1));
    world_end(false);
}

/* ---- <forkjoin/future.h> --------------------------------------------------------------------- */

FJ_TEST(nothing_is_no_token, 10)
{
    world_make();
    VOID(fj_token_init(NULL, NULL));
    VOID(fj_token_init(NULL, &w.token));
    VOID(fj_token_cancel(NULL));
    ZERO(fj_token_is_cancelled(NULL));
    CODE(fj_invoke_token(NULL, NULL, &w.token));
    CODE(fj_invoke_token(NULL, &w.task[0], NULL));
    CODE(fj_invoke_token(pool, &w.no_fn, &w.token));
    world_end(false);
}

FJ_TEST(nothing_is_no_future, 10)
{
    world_make();
    VOID(fj_future_set_release_fn(NULL, NULL));
    VOID(fj_future_set_release_fn(NULL, released_fn));
    CODE(fj_future_fork(NULL));
    CODE(fj_future_fork(&w.no_body));
    CODE(fj_future_submit(NULL, NULL));
    CODE(fj_future_submit(pool, &w.no_body));
    CODE(fj_future_submit_external(NULL, NULL));
    CODE(fj_future_submit_external(pool, &w.no_body));
    CODE(fj_future_submit_lazy(NULL, NULL));
    CODE(fj_future_submit_lazy(pool, &w.no_body));
    CODE(fj_future_run(NULL));
    CODE(fj_future_run(&w.no_body));
    CODE(fj_future_invoke(NULL, NULL));
    CODE(fj_future_invoke(NULL, &w.no_body));
    CODE(fj_future_join(NULL));
    CODE(fj_future_get(NULL, 0, NULL));
    CODE(fj_future_get(NULL, FJ_FOREVER, &w.result));
    MEANS(fj_future_get(&w.future[0], 0, NULL), FJ_ETIMEDOUT);
    CODE(fj_future_wait(NULL, 0));
    CODE(fj_future_wait_quietly(NULL, FJ_FOREVER));
    ZERO(fj_future_is_done(NULL));
    ZERO(fj_future_succeeded(NULL));
    ZERO(fj_future_failed(NULL));
    ZERO(fj_future_is_cancelled(NULL));
    ZERO(fj_future_state(NULL));
    CODE(fj_future_result(NULL, &w.result));
    CODE(fj_future_result(NULL, NULL));
    CODE(fj_future_error(NULL));
    ZERO(fj_future_complete(NULL, NULL));
    ZERO(fj_future_complete_quietly(NULL));
    ZERO(fj_future_fail(NULL, 1));
    ZERO(fj_future_fail(NULL, FJ_ECANCELED));
    ZERO(fj_future_cancel(NULL, 1));
    CODE(fj_future_reinit(NULL));
    ZERO(fj_future_tag(NULL));
    ZERO(fj_future_set_tag(NULL, 7));
    ZERO(fj_future_cas_tag(NULL, 0, 7));
    VOID(fj_future_fini(NULL));
    VOID(fj_future_unref(NULL));
    NONE(fj_future_ref(NULL));
    ZERO(fj_future_unfork(NULL));
    world_end(false);
}

FJ_TEST(futures_of_nothing_are_not_made, 10)
{
    world_make();
    CODE(fj_submit_call(NULL, NULL, NULL, &w.made));
    CODE(fj_submit_call(NULL, call_fn, NULL, NULL));
    CODE(fj_submit_action(NULL, NULL, NULL, NULL, &w.made));
    CODE(fj_submit_action(NULL, action_fn, NULL, NULL, NULL));
    CODE(fj_future_new_call(NULL, NULL, 0, &w.made));
    CODE(fj_future_new_call(call_fn, NULL, 0, NULL));
    CODE(fj_future_new_action(NULL, NULL, NULL, 0, &w.made));
    CODE(fj_future_new_action(action_fn, NULL, NULL, 0, NULL));
    world_end(false);
}

FJ_TEST(futures_with_nothing_among_them_are_refused, 10)
{
    const size_t many = TOO_MANY(sizeof(fj_future *));

    world_make();
    CODE(fj_future_wait_all(NULL, 1, 0));
    MEANS(fj_future_wait_all(NULL, 0, 0), FJ_OK);
    CODE(fj_future_wait_all(w.null_future, 2, 0));
    CODE(fj_future_wait_all(w.futures, many, 0));
    CODE(fj_future_wait_any(NULL, 1, 0, &w.which));
    CODE(fj_future_wait_any(NULL, 0, 0, &w.which));
    CODE(fj_future_wait_any(w.futures, 2, 0, NULL));
    CODE(fj_future_wait_any(w.null_future, 2, 0, &w.which));
    CODE(fj_future_wait_any(w.futures, many, 0, &w.which));
    CODE(fj_future_invoke_all(NULL, NULL, 1, 0));
    CODE(fj_future_invoke_all(pool, w.null_future, 2, 0));
    CODE(fj_future_invoke_all(pool, (fj_future *[]){&w.future[0], &w.no_body}, 2, 0));
    CODE(fj_future_invoke_all(pool, w.futures, many, 0));
    CODE(fj_future_invoke_all_quietly(NULL, NULL, 1));
    CODE(fj_future_invoke_all_quietly(pool, w.null_future, 2));
    CODE(fj_future_invoke_all_quietly(pool, w.futures, many));
    CODE(fj_future_invoke_any(NULL, NULL, 1, 0, &w.which));
    CODE(fj_future_new(sizeof(fj_future), NULL, NULL));
    CODE(fj_future_new(sizeof(fj_future) - 1, NULL, &w.made));
    CODE(fj_future_invoke_any(NULL, w.futures, 0, 0, &w.which));
    CODE(fj_future_invoke_any(NULL, w.futures, 2, 0, NULL));
    CODE(fj_future_invoke_any(pool, w.null_future, 2, 0, &w.which));
    CODE(fj_future_invoke_any(pool, w.futures, many, 0, &w.which));
    world_end(false);
}

/* ---- <forkjoin/inbox.h> ---------------------------------------------------------------------- */

static void post_fn(void *arg)
{
    (void)arg;
    calls++;
}

FJ_TEST(nothing_is_no_inbox, 10)
{
    fj_inbox_options zero = {0};
    fj_inbox_item item, empty;
    fj_inbox *inbox;

    world_make();
    CHECK_EQ(fj_inbox_create(NULL, &inbox), FJ_OK);
    fj_inbox_item_init(&item, post_fn, NULL);
    CODE(fj_inbox_create(&zero, NULL));
    CODE(fj_inbox_create(NULL, NULL));
    CODE(fj_inbox_fd(NULL));
    CODE(fj_inbox_post(NULL, post_fn, NULL));
    CODE(fj_inbox_post(inbox, NULL, NULL));
    VOID(fj_inbox_item_init(NULL, post_fn, NULL));
    VOID(fj_inbox_item_init(&empty, NULL, NULL));
    CODE(fj_inbox_post_item(inbox, &empty));
    CODE(fj_inbox_post_item(NULL, &item));
    CODE(fj_inbox_post_item(inbox, NULL));
    CODE(fj_inbox_run(NULL, 0));
    CODE(fj_inbox_run(inbox, -1));
    CODE(fj_inbox_close(NULL));
    MEANS(fj_inbox_destroy(NULL), FJ_OK);
    NONE(fj_inbox_ref(NULL));
    VOID(fj_inbox_unref(NULL));
    CODE(fj_future_notify(NULL, inbox, done_fn, NULL));
    CODE(fj_future_notify(&w.future[0], NULL, done_fn, NULL));
    CODE(fj_future_notify(&w.future[0], inbox, NULL, NULL));
    CHECK_EQ(fj_inbox_run(inbox, 0), 0);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

/* ---- <forkjoin/listen.h> --------------------------------------------------------------------- */

FJ_TEST(nothing_is_no_listener, 10)
{
    fj_listener l;

    world_make();
    CODE(fj_future_on_done(NULL, done_fn, NULL));
    CODE(fj_future_on_done(&w.future[0], NULL, NULL));
    CODE(fj_future_listen(NULL, &l, done_fn, NULL));
    CODE(fj_future_listen(&w.future[0], NULL, done_fn, NULL));
    CODE(fj_future_listen(&w.future[0], &l, NULL, NULL));
    world_end(false);
}

/* ---- <forkjoin/then.h> ----------------------------------------------------------------------- */

FJ_TEST(nothing_is_not_followed, 10)
{
    world_make();
    CODE(fj_future_then(NULL, then_fn, NULL, &w.made));
    CODE(fj_future_then(&w.future[0], NULL, NULL, &w.made));
    CODE(fj_future_then(&w.future[0], then_fn, NULL, NULL));
    CODE(fj_future_handle(NULL, then_fn, NULL, &w.made));
    CODE(fj_future_handle(&w.future[0], NULL, NULL, &w.made));
    CODE(fj_future_handle(&w.future[0], then_fn, NULL, NULL));
    CODE(fj_future_then_in(NULL, NULL, FJ_THEN_ALWAYS, then_fn, NULL, &w.made));
    CODE(fj_future_then_in(NULL, &w.future[0], FJ_THEN_ALWAYS, NULL, NULL, &w.made));
    CODE(fj_future_then_in(pool, &w.future[0], FJ_THEN_ALWAYS, then_fn, NULL, NULL));
    CODE(fj_future_forward(NULL, &w.future[0]));
    CODE(fj_future_forward(&w.future[0], NULL));
    CODE(fj_future_all_of(NULL, 1, &w.made));
    CODE(fj_future_all_of(w.null_future, 2, &w.made));
    CODE(fj_future_all_of(w.futures, 2, NULL));
    CODE(fj_future_any_of(NULL, 1, &w.made));
    CODE(fj_future_any_of(w.futures, 0, &w.made));
    CODE(fj_future_any_of(w.null_future, 2, &w.made));
    CODE(fj_future_any_of(w.futures, 2, NULL));
    world_end(false);
}

/* ---- <forkjoin/completer.h> ------------------------------------------------------------------ */

FJ_TEST(nothing_is_no_completer, 10)
{
    world_make();
    CODE(fj_completer_fork(NULL));
    CODE(fj_completer_fork(&w.no_run));
    CODE(fj_completer_submit(NULL, NULL));
    CODE(fj_completer_submit(pool, &w.no_run));
    CODE(fj_completer_run(NULL));
    CODE(fj_completer_run(&w.no_run));
    CODE(fj_completer_invoke(NULL, NULL));
    CODE(fj_completer_invoke(NULL, &w.no_run));
    CODE(fj_completer_join(NULL));
    NONE(fj_completer_parent(NULL));
    NONE(fj_completer_root(NULL));
    ZERO(fj_completer_pending(NULL));
    VOID(fj_completer_add_pending(NULL, 1));
    ZERO(fj_completer_cas_pending(NULL, 0, 1));
    ZERO(fj_completer_decrement(NULL));
    VOID(fj_completer_try_complete(NULL));
    VOID(fj_completer_propagate(NULL));
    VOID(fj_completer_complete(NULL, NULL));
    VOID(fj_completer_fail(NULL, 1));
    NONE(fj_completer_first(NULL));
    NONE(fj_completer_next(NULL));
    VOID(fj_completer_complete_root(NULL));
    ZERO(fj_completer_help(NULL, 1));
    world_end(false);
}

FJ_TEST(completers_that_cannot_be_forked_change_nothing, 10)
{
    fj_completer *c = w.completer;
    const size_t size = sizeof(fj_completer);

    world_make();
    CODE(fj_completer_fork_all(NULL, w.child, N, size));
    CODE(fj_completer_fork_all(c, NULL, N, size));
    CODE(fj_completer_fork_all(c, w.child, 0, size));
    CODE(fj_completer_fork_all(c, w.child, N, size - 1));
    CODE(fj_completer_fork_all(c, w.child, 2, size + 1));
    CODE(fj_completer_fork_all(c, w.child, INT32_MAX, SIZE_MAX / 8 * 8));
    CODE(fj_completer_fork_all(c, w.child, TOO_MANY(size), size));
    CODE(fj_completer_fork_all(c + 1, w.child, N, size)); /* they have another parent */
    CODE(fj_completer_fork_all(c, &w.no_run, 1, size));
    world_end(false);
}

/* ---- <forkjoin/local.h>, <forkjoin/block.h>, <forkjoin/timer.h> ------------------------------ */

FJ_TEST(nothing_is_taken_into_nothing, 10)
{
    world_make();
    ZERO(fj_take_local(NULL));
    ZERO(fj_take_task(NULL));
    ZERO(fj_take_submission(NULL));
    ZERO(fj_pool_drain(NULL, NULL, 1));
    ZERO(fj_pool_drain(pool, NULL, 1));
    NONE(fj_taken_task(NULL));
    NONE(fj_taken_task(&w.taken[0]));
    VOID(fj_taken_run(NULL));
    VOID(fj_taken_run(&w.taken[0]));
    VOID(fj_taken_cancel(NULL));
    VOID(fj_taken_cancel(&w.taken[0]));
    world_end(false);
}

FJ_TEST(nothing_is_waited_for_no_time, 10)
{
    world_make();
    CODE(fj_managed_block(NULL, action_fn, NULL));
    CODE(fj_managed_block(action_fn, NULL, NULL));
    CODE(fj_block_begin(NULL));
    VOID(fj_block_end(NULL));
    CODE(fj_block_mutex_lock(NULL));
    CODE(fj_block_cond_wait(NULL, &w.mutex, 0));
    CODE(fj_block_cond_wait(&w.cond, NULL, 0));
    CODE(fj_block_sem_wait(NULL, 0));
    CODE(fj_block_read(0, NULL, 1));
    CODE(fj_block_write(1, NULL, 1));
    CODE(fj_block_poll(NULL, 1, 0));
    world_end(false);
}

FJ_TEST(nothing_is_no_timer, 10)
{
    world_make();
    VOID(fj_timer_init(NULL, NULL));
    VOID(fj_timer_init(NULL, task_fn));
    CODE(fj_schedule(NULL, NULL, 1));
    CODE(fj_schedule(pool, &w.no_timer, 1));
    CODE(fj_schedule_at_fixed_rate(NULL, NULL, 1, 1));
    CODE(fj_schedule_at_fixed_rate(pool, &w.no_timer, 1, 1));
    CODE(fj_schedule_at_fixed_rate(pool, &w.timer, 1, 0));
    CODE(fj_schedule_with_fixed_delay(NULL, NULL, 1, 1));
    CODE(fj_schedule_with_fixed_delay(pool, &w.no_timer, 1, 1));
    CODE(fj_schedule_with_fixed_delay(pool, &w.timer, 1, -1));
    CODE(fj_schedule_call(NULL, NULL, NULL, 1, &w.made));
    CODE(fj_schedule_call(NULL, call_fn, NULL, 1, NULL));
    CODE(fj_schedule_action(NULL, NULL, NULL, 1, &w.made));
    CODE(fj_schedule_action(NULL, action_fn, NULL, 1, NULL));
    CODE(fj_schedule_action_at_fixed_rate(NULL, NULL, NULL, 1, 1, &w.made));
    CODE(fj_schedule_action_at_fixed_rate(NULL, action_fn, NULL, 1, 1, NULL));
    CODE(fj_schedule_action_at_fixed_rate(NULL, action_fn, NULL, 1, 0, &w.made));
    CODE(fj_schedule_action_with_fixed_delay(NULL, NULL, NULL, 1, 1, &w.made));
    CODE(fj_schedule_action_with_fixed_delay(NULL, action_fn, NULL, 1, 1, NULL));
    CODE(fj_schedule_action_with_fixed_delay(NULL, action_fn, NULL, 1, 0, &w.made));
    ZERO(fj_timer_remaining(NULL));
    ZERO(fj_timer_remaining(&w.future[0]));
    CODE(fj_submit_with_timeout(NULL, NULL, NULL, 1, NULL, &w.made));
    CODE(fj_submit_with_timeout(NULL, call_fn, NULL, 1, timeout_fn, NULL));
    world_end(false);
}

/* ---- <forkjoin/algo.h> ----------------------------------------------------------------------- */

FJ_TEST(nothing_makes_no_progress, 10)
{
    world_make();
    VOID(fj_progress_init(NULL, 1));
    VOID(fj_progress_add(NULL, 1));
    ZERO(fj_progress_done(NULL));
    ZERO(fj_progress_total(NULL));
    CODE(fj_progress_bar_start(NULL, &w.progress, "", 1));
    CODE(fj_progress_bar_start(&w.bar, NULL, "", 1));
    CODE(fj_progress_bar_start(&w.bar, &w.progress, NULL, 1));
    VOID(fj_progress_bar_stop(NULL));
    world_end(false);
}

FJ_TEST(loops_over_nothing_are_refused, 10)
{
    world_make();
    CODE(fj_for(0, 1, NULL, NULL, NULL));
    CODE(fj_for(1, 0, for_fn, NULL, NULL));
    CODE(fj_for(0, 1, for_fn, NULL, &w.bad_how));
    CODE(fj_for_2d(1, 1, NULL, NULL, NULL));
    CODE(fj_for_2d(1, 1, for_2d_fn, NULL, &w.bad_how));
    CODE(fj_transform(NULL, 1, w.out, 1, N, transform_fn, NULL, NULL));
    CODE(fj_transform(w.bytes, 1, NULL, 1, N, transform_fn, NULL, NULL));
    CODE(fj_transform(w.bytes, 1, w.out, 1, N, NULL, NULL, NULL));
    CODE(fj_transform(w.bytes, 0, w.out, 1, N, transform_fn, NULL, NULL));
    CODE(fj_transform(w.bytes, 1, w.out, 0, N, transform_fn, NULL, NULL));
    CODE(fj_transform(w.bytes, 8, w.out, 1, TOO_MANY(8), transform_fn, NULL, NULL));
    CODE(fj_transform(w.bytes, 1, w.out, 8, TOO_MANY(8), transform_fn, NULL, NULL));
    CODE(fj_invoke_functions(NULL, 1, NULL));
    CODE(fj_invoke_functions(w.null_step, 2, NULL));
    CODE(fj_invoke_functions(w.steps, TOO_MANY(sizeof(fj_function)), NULL));
    CODE(fj_invoke_functions(w.steps, 2, &w.bad_how));
    world_end(false);
}

FJ_TEST(reductions_of_nothing_are_refused, 10)
{
    void *r = w.i32_out;

    world_make();
    CODE(fj_reduce(0, 1, NULL, combine_fn, w.i32, 4, NULL, r, NULL));
    CODE(fj_reduce(0, 1, fold_fn, NULL, w.i32, 4, NULL, r, NULL));
    CODE(fj_reduce(0, 1, fold_fn, combine_fn, NULL, 4, NULL, r, NULL));
    CODE(fj_reduce(0, 1, fold_fn, combine_fn, w.i32, 4, NULL, NULL, NULL));
    CODE(fj_reduce(0, 1, fold_fn, combine_fn, w.i32, 0, NULL, r, NULL));
    CODE(fj_reduce(0, 1, fold_fn, combine_fn, w.i32, SIZE_MAX, NULL, r, NULL));
    CODE(fj_reduce(1, 0, fold_fn, combine_fn, w.i32, 4, NULL, r, NULL));
    CODE(fj_reduce_deterministic(0, 1, NULL, combine_fn, w.i32, 4, NULL, r, NULL));
    CODE(fj_reduce_deterministic(0, 1, fold_fn, NULL, w.i32, 4, NULL, r, NULL));
    CODE(fj_reduce_deterministic(0, 1, fold_fn, combine_fn, NULL, 4, NULL, r, NULL));
    CODE(fj_reduce_deterministic(0, 1, fold_fn, combine_fn, w.i32, 4, NULL, NULL, NULL));
    CODE(fj_reduce_deterministic(0, 1, fold_fn, combine_fn, w.i32, SIZE_MAX, NULL, r, NULL));
    CODE(fj_histogram(0, 1, NULL, NULL, w.counts, N, NULL));
    CODE(fj_histogram(0, 1, count_fn, NULL, NULL, N, NULL));
    CODE(fj_histogram(0, 1, count_fn, NULL, w.counts, 0, NULL));
    CODE(fj_histogram(0, 1, count_fn, NULL, w.counts, TOO_MANY(8), NULL));
    CODE(fj_histogram(1, 0, count_fn, NULL, w.counts, N, NULL));
    CODE(fj_histogram_u8(NULL, N, w.counts, N, NULL));
    CODE(fj_histogram_u8(w.bytes, N, NULL, N, NULL));
    CODE(fj_histogram_u8(w.bytes, SIZE_MAX, w.counts, N, NULL));
    CODE(fj_histogram_u32(NULL, N, w.counts, N, NULL));
    CODE(fj_histogram_u32(w.u32, N, NULL, N, NULL));
    CODE(fj_histogram_u32(w.u32, TOO_MANY(4), w.counts, N, NULL));
    world_end(false);
}

FJ_TEST(searches_of_nothing_are_refused, 10)
{
    world_make();
    CODE(fj_find(0, 1, NULL, NULL, &w.which, NULL));
    CODE(fj_find(0, 1, find_fn, NULL, NULL, NULL));
    CODE(fj_find(1, 0, find_fn, NULL, &w.which, NULL));
    CODE(fj_find_any(0, 1, NULL, NULL, &w.which, NULL));
    CODE(fj_find_any(0, 1, find_fn, NULL, NULL, NULL));
    CODE(fj_any(NULL, N, 1, test_fn, NULL, &w.yes, NULL));
    CODE(fj_any(w.bytes, N, 1, NULL, NULL, &w.yes, NULL));
    CODE(fj_any(w.bytes, N, 1, test_fn, NULL, NULL, NULL));
    CODE(fj_any(w.bytes, N, 0, test_fn, NULL, &w.yes, NULL));
    CODE(fj_any(w.bytes, TOO_MANY(8), 8, test_fn, NULL, &w.yes, NULL));
    CODE(fj_all(NULL, N, 1, test_fn, NULL, &w.yes, NULL));
    CODE(fj_all(w.bytes, N, 1, NULL, NULL, &w.yes, NULL));
    CODE(fj_all(w.bytes, N, 1, test_fn, NULL, NULL, NULL));
    CODE(fj_all(w.bytes, TOO_MANY(8), 8, test_fn, NULL, &w.yes, NULL));
    world_end(false);
}

FJ_TEST(scans_of_nothing_are_refused, 10)
{
    world_make();
    CODE(fj_scan(0, 1, NULL, combine_fn, fold_fn, w.i32, 4, 4, NULL, NULL, NULL));
    CODE(fj_scan(0, 1, fold_fn, NULL, fold_fn, w.i32, 4, 4, NULL, NULL, NULL));
    CODE(fj_scan(0, 1, fold_fn, combine_fn, NULL, w.i32, 4, 4, NULL, NULL, NULL));
    CODE(fj_scan(0, 1, fold_fn, combine_fn, fold_fn, NULL, 4, 4, NULL, NULL, NULL));
    CODE(fj_scan(0, 1, fold_fn, combine_fn, fold_fn, w.i32, 0, 4, NULL, NULL, NULL));
    CODE(fj_scan(0, 1, fold_fn, combine_fn, fold_fn, w.i32, SIZE_MAX, 4, NULL, NULL, NULL));
    CODE(fj_scan_each(NULL, w.i32_out, N, 4, op_fn, w.i32, NULL, 0, NULL));
    CODE(fj_scan_each(w.i32, NULL, N, 4, op_fn, w.i32, NULL, 0, NULL));
    CODE(fj_scan_each(w.i32, w.i32_out, N, 4, NULL, w.i32, NULL, 0, NULL));
    CODE(fj_scan_each(w.i32, w.i32_out, N, 4, op_fn, NULL, NULL, 0, NULL));
    CODE(fj_scan_each(w.i32, w.i32_out, N, 0, op_fn, w.i32, NULL, 0, NULL));
    CODE(fj_scan_each(w.i32, w.i32_out, TOO_MANY(4), 4, op_fn, w.i32, NULL, 0, NULL));
    CODE(fj_scan_i32(NULL, w.i32_out, N, 0, NULL));
    CODE(fj_scan_i32(w.i32, NULL, N, 0, NULL));
    CODE(fj_scan_i32(w.i32, w.i32_out, TOO_MANY(4), 0, NULL));
    CODE(fj_scan_i32(w.i32, w.i32_out, N, FJ_POOL_FIFO, NULL));
    CODE(fj_scan_i64(NULL, w.i64_out, N, 0, NULL));
    CODE(fj_scan_i64(w.i64, NULL, N, 0, NULL));
    CODE(fj_scan_i64(w.i64, w.i64_out, TOO_MANY(8), 0, NULL));
    CODE(fj_scan_f32(NULL, w.f32_out, N, 0, NULL));
    CODE(fj_scan_f32(w.f32, NULL, N, 0, NULL));
    CODE(fj_scan_f32(w.f32, w.f32_out, TOO_MANY(4), 0, NULL));
    CODE(fj_scan_f64(NULL, w.f64_out, N, 0, NULL));
    CODE(fj_scan_f64(w.f64, NULL, N, 0, NULL));
    CODE(fj_scan_f64(w.f64, w.f64_out, TOO_MANY(8), 0, NULL));
    world_end(false);
}

FJ_TEST(filters_of_nothing_are_refused, 10)
{
    const size_t many = TOO_MANY(8);

    world_make();
    CODE(fj_filter(NULL, N, 1, w.out, test_fn, NULL, &w.which, NULL));
    CODE(fj_filter(w.bytes, N, 1, NULL, test_fn, NULL, &w.which, NULL));
    CODE(fj_filter(w.bytes, N, 1, w.out, NULL, NULL, &w.which, NULL));
    CODE(fj_filter(w.bytes, N, 1, w.out, test_fn, NULL, NULL, NULL));
    CODE(fj_filter(w.bytes, N, 0, w.out, test_fn, NULL, &w.which, NULL));
    CODE(fj_filter(w.bytes, many, 8, w.out, test_fn, NULL, &w.which, NULL));
    CODE(fj_filter_chunks(NULL, N, 1, w.out, keep_fn, NULL, &w.which, NULL));
    CODE(fj_filter_chunks(w.bytes, N, 1, NULL, keep_fn, NULL, &w.which, NULL));
    CODE(fj_filter_chunks(w.bytes, N, 1, w.out, NULL, NULL, &w.which, NULL));
    CODE(fj_filter_chunks(w.bytes, N, 1, w.out, keep_fn, NULL, NULL, NULL));
    CODE(fj_filter_chunks(w.bytes, many, 8, w.out, keep_fn, NULL, &w.which, NULL));
    CODE(fj_partition(NULL, N, 1, w.out, test_fn, NULL, &w.which, NULL));
    CODE(fj_partition(w.bytes, N, 1, NULL, test_fn, NULL, &w.which, NULL));
    CODE(fj_partition(w.bytes, N, 1, w.out, NULL, NULL, &w.which, NULL));
    CODE(fj_partition(w.bytes, N, 1, w.out, test_fn, NULL, NULL, NULL));
    CODE(fj_partition(w.bytes, many, 8, w.out, test_fn, NULL, &w.which, NULL));
    CODE(fj_partition_chunks(NULL, N, 1, w.out, keep_fn, NULL, &w.which, NULL));
    CODE(fj_partition_chunks(w.bytes, N, 1, NULL, keep_fn, NULL, &w.which, NULL));
    CODE(fj_partition_chunks(w.bytes, N, 1, w.out, NULL, NULL, &w.which, NULL));
    CODE(fj_partition_chunks(w.bytes, N, 1, w.out, keep_fn, NULL, NULL, NULL));
    CODE(fj_partition_chunks(w.bytes, many, 8, w.out, keep_fn, NULL, &w.which, NULL));
    world_end(false);
}

FJ_TEST(sorts_and_merges_of_nothing_are_refused, 10)
{
    world_make();
    CODE(fj_sort(NULL, N, 1, compare_fn, NULL, NULL));
    CODE(fj_sort(w.bytes, N, 1, NULL, NULL, NULL));
    CODE(fj_sort(w.bytes, N, 0, compare_fn, NULL, NULL));
    CODE(fj_sort(w.bytes, TOO_MANY(8), 8, compare_fn, NULL, NULL));
    CODE(fj_stable_sort(NULL, N, 1, compare_fn, NULL, NULL));
    CODE(fj_stable_sort(w.bytes, N, 1, NULL, NULL, NULL));
    CODE(fj_stable_sort(w.bytes, N, 0, compare_fn, NULL, NULL));
    CODE(fj_stable_sort(w.bytes, TOO_MANY(8), 8, compare_fn, NULL, NULL));
    VOID(fj_qsort(NULL, N, 1, compare_fn, NULL));
    VOID(fj_qsort(w.bytes, N, 1, NULL, NULL));
    VOID(fj_qsort(w.bytes, N, 0, compare_fn, NULL));
    VOID(fj_qsort(w.bytes, TOO_MANY(8), 8, compare_fn, NULL));
    CODE(fj_merge(NULL, 1, w.bytes, 1, 1, w.out, compare_fn, NULL, NULL));
    CODE(fj_merge(w.bytes, 1, NULL, 1, 1, w.out, compare_fn, NULL, NULL));
    CODE(fj_merge(w.bytes, 1, w.bytes, 1, 1, NULL, compare_fn, NULL, NULL));
    CODE(fj_merge(w.bytes, 1, w.bytes, 1, 1, w.out, NULL, NULL, NULL));
    CODE(fj_merge(w.bytes, 1, w.bytes, 1, 0, w.out, compare_fn, NULL, NULL));
    CODE(fj_merge(w.bytes, SIZE_MAX, w.bytes, 2, 1, w.out, compare_fn, NULL, NULL));
    CODE(fj_merge(w.bytes, SIZE_MAX / 8, w.bytes, 2, 8, w.out, compare_fn, NULL, NULL));
    world_end(false);
}

#define LESS(a, b) ((a) < (b))
FJ_SORT(typed_sort, int32_t, LESS);
FJ_STABLE_SORT(typed_stable, int32_t, LESS);
FJ_MERGE(typed_merge, int32_t, LESS);

FJ_TEST(sorts_of_no_numbers_are_refused, 10)
{
    int32_t *a = w.i32, *b = w.i32_out;

    world_make();
    CODE(fj_sort_i8(NULL, N, NULL));
    CODE(fj_sort_i8((int8_t *)w.bytes, SIZE_MAX, NULL));
    CODE(fj_sort_u8(NULL, N, NULL));
    CODE(fj_sort_u8(w.bytes, SIZE_MAX, NULL));
    CODE(fj_sort_i16(NULL, N, NULL));
    CODE(fj_sort_u16(NULL, N, NULL));
    CODE(fj_sort_i32(NULL, N, NULL));
    CODE(fj_sort_i32(w.i32, TOO_MANY(4), NULL));
    CODE(fj_sort_u32(NULL, N, NULL));
    CODE(fj_sort_u32(w.u32, TOO_MANY(4), NULL));
    CODE(fj_sort_i64(NULL, N, NULL));
    CODE(fj_sort_i64(w.i64, TOO_MANY(8), NULL));
    CODE(fj_sort_u64(NULL, N, NULL));
    CODE(fj_sort_f32(NULL, N, NULL));
    CODE(fj_sort_f64(NULL, N, NULL));
    CODE(fj_sort_f64(w.f64, TOO_MANY(8), NULL));
    CODE(fj_sort_kv32(NULL, N, NULL));
    CODE(fj_sort_kv32(w.kv32, TOO_MANY(8), NULL));
    CODE(fj_sort_kv64(NULL, N, NULL));
    CODE(fj_sort_kv64(w.kv64, TOO_MANY(16), NULL));
    CODE(fj_sort_i32(w.i32, N, &w.bad_how));
    CODE(typed_sort(NULL, N, NULL));
    CODE(typed_sort(a, TOO_MANY(4), NULL));
    CODE(typed_stable(NULL, N, NULL));
    CODE(typed_stable(a, TOO_MANY(4), NULL));
    CODE(typed_merge(NULL, 1, a, 1, b, NULL));
    CODE(typed_merge(a, 1, NULL, 1, b, NULL));
    CODE(typed_merge(a, 1, a, 1, NULL, NULL));
    CODE(typed_merge(a, SIZE_MAX / 4, a, 2, b, NULL));
    world_end(false);
}

FJ_TEST(pipelines_of_nothing_are_refused, 10)
{
    world_make();
    CODE(fj_pipeline(NULL, 1, 1, NULL, NULL));
    CODE(fj_pipeline(w.stages, 0, 1, drop_fn, NULL));
    CODE(fj_pipeline(w.stages, 2, 0, drop_fn, NULL));
    CODE(fj_pipeline(w.null_stage, 2, 1, drop_fn, NULL));
    CODE(fj_pipeline(w.stages, TOO_MANY(sizeof(fj_stage)), 1, drop_fn, NULL));
    CODE(fj_pipeline(w.stages, 2, 1, drop_fn, &w.bad_how));
    world_end(false);
}

/* ---- <forkjoin/graph.h> ---------------------------------------------------------------------- */

static int node_fn(fj_node *n, void *arg)
{
    (void)n, (void)arg;
    return ++calls > 0;
}

static int write_fn(const char *text, size_t bytes, void *arg)
{
    (void)text, (void)bytes, (void)arg;
    return ++calls > 0;
}

FJ_TEST(nothing_is_no_graph, 10)
{
    fj_graph *g, *none = NULL;
    fj_node *n, *made = NULL;
    char text[4] = "abc";

    CHECK_EQ(fj_graph_create(&g, NULL), FJ_OK);
    CHECK_EQ(fj_graph_add(g, node_fn, NULL, NULL, &n), FJ_OK);
    world_make();
    CODE(fj_graph_create(NULL, NULL));
    CODE(fj_graph_add(NULL, node_fn, NULL, NULL, &made));
    CODE(fj_graph_add(g, NULL, NULL, NULL, &made));
    CODE(fj_graph_add_condition(NULL, node_fn, NULL, NULL, &made));
    CODE(fj_graph_add_condition(g, NULL, NULL, NULL, &made));
    CODE(fj_graph_edge(NULL, n, n));
    CODE(fj_graph_edge(g, NULL, n));
    CODE(fj_graph_edge(g, n, NULL));
    CODE(fj_graph_edge(g, n, n));
    CODE(fj_graph_check(NULL));
    CODE(fj_graph_run(NULL, NULL));
    CODE(fj_graph_start(NULL, NULL));
    CODE(fj_graph_wait(NULL, 0));
    CODE(fj_graph_wait(g, 0));
    ZERO(fj_graph_cancel(NULL));
    VOID(fj_node_set_result(NULL, NULL));
    NONE(fj_node_result(NULL));
    ZERO(fj_node_input_count(NULL));
    NONE(fj_node_input(NULL, 0));
    NONE(fj_node_graph(NULL));
    NONE(fj_node_name(NULL));
    NONE(fj_graph_failed(NULL));
    ZERO(fj_graph_error(NULL, text, sizeof text));
    ZERO(fj_graph_error(g, NULL, 4));
    CODE(fj_graph_dot(NULL, write_fn, NULL));
    CODE(fj_graph_dot(g, NULL, NULL));
    MEANS(fj_graph_add(g, node_fn, NULL, NULL, NULL), FJ_OK);
    MEANS(fj_graph_add_condition(g, node_fn, NULL, NULL, NULL), FJ_OK);
    MEANS(fj_graph_destroy(NULL), FJ_OK);
    MEANS(fj_graph_error(g, NULL, 0), 0);
    CHECK(none == NULL && made == NULL && strcmp(text, "abc") == 0);
    world_end(false);
    CHECK_EQ(fj_graph_destroy(g), FJ_OK);
}

static int value_fn(void *value, void *arg)
{
    (void)value, (void)arg;
    calls++;
    return FJ_OK;
}

FJ_TEST(nothing_has_no_values_of_workers, 10)
{
    fj_local_options o = {.pool = NULL, .bytes = 8};

    world_make();
    o.pool = pool;
    CHECK_EQ(fj_local_init(&w.local, &o), FJ_OK);
    before = w;
    CODE(fj_local_init(NULL, &o));
    CODE(fj_local_init(&w.no_local, NULL));
    CODE(fj_local_init(&w.no_local, &w.local_options));
    NONE(fj_local_get(NULL));
    NONE(fj_local_get(&w.no_local));
    CODE(fj_local_each(NULL, value_fn, NULL));
    CODE(fj_local_each(&w.local, NULL, NULL));
    CODE(fj_local_each(&w.no_local, value_fn, NULL));
    MEANS(fj_local_each(&w.local, value_fn, NULL), FJ_OK);
    CODE(fj_local_fini(NULL));
    MEANS(fj_local_fini(&w.no_local), FJ_OK);
    world_end(false);
    CHECK_EQ(fj_local_fini(&w.local), FJ_OK);
}

/* ---- <forkjoin/group.h>, <forkjoin/for_each.h> ----------------------------------------------- */

static int group_fn(fj_group *g, void *arg)
{
    (void)g, (void)arg;
    calls++;
    return FJ_OK;
}

static int each_fn(void *item, fj_feeder *feeder, void *arg)
{
    (void)item, (void)feeder, (void)arg;
    calls++;
    return FJ_OK;
}

FJ_TEST(nothing_is_no_group, 10)
{
    fj_group open, empty;
    fj_group_task t;

    world_make();
    CHECK_EQ(fj_group_init(&open, &(fj_group_options){.pool = pool}), FJ_OK);
    CODE(fj_group_init(NULL, NULL));
    MEANS(fj_group_init(&empty, NULL), FJ_OK);
    MEANS(fj_group_fini(&empty), FJ_OK);
    VOID(fj_group_task_init(NULL, NULL));
    VOID(fj_group_task_init(&t, NULL));
    NONE(fj_group_of(NULL));
    CODE(fj_group_run(NULL, &t));
    CODE(fj_group_run(&open, NULL));
    CODE(fj_group_run(&open, &t));
    CODE(fj_group_call(NULL, group_fn, NULL));
    CODE(fj_group_call(&open, NULL, &w));
    MEANS(fj_group_hold(&open), FJ_OK);
    MEANS(fj_group_release(&open), FJ_OK);
    CODE(fj_group_hold(NULL));
    CODE(fj_group_release(NULL));
    CODE(fj_group_release(&open));
    CODE(fj_group_wait(NULL));
    CODE(fj_group_wait_for(NULL, 0));
    CODE(fj_group_fini(NULL));
    CODE(fj_group_reset(NULL));
    VOID(fj_group_cancel(NULL));
    NONE(fj_group_token(NULL));
    CODE(fj_group_error(NULL));
    ZERO(fj_group_has_ended(NULL));
    CHECK_EQ(fj_group_fini(&open), FJ_OK);
    world_end(true);
}

FJ_TEST(work_lists_of_nothing_are_refused, 10)
{
    fj_feeder *no_feeder = NULL;

    world_make();
    CODE(fj_for_each(NULL, 1, 1, each_fn, NULL, NULL));
    CODE(fj_for_each(w.bytes, 1, 1, NULL, NULL, NULL));
    CODE(fj_for_each(w.bytes, 1, 0, each_fn, NULL, NULL));
    CODE(fj_for_each(w.bytes, SIZE_MAX, 2, each_fn, NULL, NULL));
    CODE(fj_for_each(w.bytes, 1, 1, each_fn, NULL, &w.bad_how));
    CODE(fj_for_each_add(NULL, w.bytes));
    CODE(fj_for_each_add(no_feeder, NULL));
    world_end(false);
}

/* ---- <forkjoin/callback.h>, <forkjoin/lane.h> ------------------------------------------------- */

FJ_TEST(nothing_is_no_callback, 10)
{
    fj_callback none;

    fj_callback_init(&none, NULL);
    world_make();
    VOID(fj_callback_init(NULL, NULL));
    CODE(fj_callback_submit(NULL, NULL, FJ_PRIORITY_HIGH));
    CODE(fj_callback_submit(pool, &none, FJ_PRIORITY_NORMAL));
    ZERO(fj_pool_has_work_before(NULL, FJ_PRIORITY_BACKGROUND));
    world_end(false);
}

FJ_TEST(nothing_is_no_lane, 10)
{
    fj_lane *l;

    world_make();
    CODE(fj_lane_create(NULL, NULL));
    CHECK_EQ(fj_lane_create(&l, &(fj_lane_options){.pool = pool}), FJ_OK);
    CODE(fj_lane_execute(NULL, action_fn, NULL));
    CODE(fj_lane_execute(l, NULL, NULL));
    CODE(fj_lane_submit(NULL, &w.future[0]));
    CODE(fj_lane_submit(l, NULL));
    CODE(fj_lane_submit(l, &w.no_body));
    CODE(fj_lane_call(NULL, call_fn, NULL, &w.made));
    CODE(fj_lane_call(l, NULL, NULL, &w.made));
    CODE(fj_lane_call(l, call_fn, NULL, NULL));
    CODE(fj_lane_pause(NULL));
    CODE(fj_lane_resume(NULL));
    CODE(fj_lane_drain(NULL, FJ_FOREVER));
    ZERO(fj_lane_cancel(NULL));
    CODE(fj_lane_close(NULL));
    MEANS(fj_lane_destroy(NULL), FJ_OK);
    ZERO(fj_lane_pending(NULL));
    ZERO(fj_lane_running(NULL));
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    world_end(false);
}
