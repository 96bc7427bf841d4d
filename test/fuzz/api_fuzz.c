/* SPDX-License-Identifier: MIT */
/*
 * api_fuzz.c - decodes bytes into calls, valid and invalid, in any order, from one to three threads
 *
 * The fuzzer makes every call whose result the headers define: with NULL, impossible sizes and
 * counts, very large values, a second submit, a second cancel, on a pool that is shut down. It
 * makes no call that the headers call undefined. Each result must be one of those that the headers
 * promise for the state of the object. No call may crash, hang, leak, or write outside its objects.
 *
 * Byte 0: bits 0-1 threads (1 to 3), 2-3 workers of the first pool, 4 FIFO, 5 callers help. Each
 * thread gets an equal share of the remaining bytes. All threads use the pools and the futures of
 * `shared`. Only one thread uses the objects of an actor.
 */
#include <errno.h>
#include <forkjoin/block.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/api.h"

/* ---- Pools ---------------------------------------------------------------------------------- */

static void release_all(struct actor *a)
{
    for (int i = 0; i < N; i++) {
        if (a->task[i].queued) ONE_OF(fj_join(&a->task[i].is.task), FJ_OK, 5, FJ_ECANCELED);
        a->task[i].queued = false;
        (void)fj_future_cancel(&a->future[i].is.future, 1);
        api_future_renew(&a->future[i], 0);
        api_timer_renew(&a->timer[i], 0);
        api_completer_renew(&a->completer[i]);
        api_drop_made(&a->made[i]);
    }
}

static void drop_own(struct actor *a)
{
    if (a->own == NULL) return;
    release_all(a);
    fjp_unwatch(a->own);
    ONE_OF(fj_pool_destroy(a->own), FJ_OK);
    a->own = NULL;
}

static void call_create(struct actor *a)
{
    static const int counts[] = {0, 1, 2, -1, INT_MIN, FJ_MAX_WORKERS, FJ_MAX_WORKERS + 1, INT_MAX};
    static const size_t stacks[] = {0, 1, 1 << 16, 1 << 20, 1 << 22, SIZE_MAX / 2, SIZE_MAX, 4095};
    fj_pool_options options = {0}, *o = &options;
    fj_pool *pool = NULL;
    int how = api_next(a);

    o->parallelism = counts[api_next(a) % 8];
    o->max_threads = (how & 1) != 0 ? counts[api_next(a) % 8] : 0;
    o->flags = (how & 2) != 0 ? (unsigned)api_next(a) : 0;
    o->keep_alive_ns = (how & 4) != 0 ? api_any_time(a) : 0;
    o->stack_bytes = (how & 8) != 0 ? stacks[api_next(a) % 8] : 0;
    if ((how & 16) != 0)
        o->reserved[(size_t)api_next(a) % (sizeof o->reserved / sizeof *o->reserved)] =
            (uint64_t)(how & 32);
    int target = o->parallelism != 0 ? o->parallelism : fj_available_parallelism();
    bool bad = o->parallelism < 0 || o->parallelism > FJ_MAX_WORKERS || o->keep_alive_ns < 0 ||
               (o->flags & ~7u) != 0 || (o->max_threads != 0 && o->max_threads < target);
    bool strange = (how & 48) == 48;
    int got = fj_pool_create(&pool, o);
    if (bad || strange)
        ONE_OF(got, FJ_EINVAL);
    else if (o->max_threads <= FJ_MAX_WORKERS)
        ONE_OF(got, FJ_OK);
    CHECK((pool != NULL) == (got == FJ_OK));
    ONE_OF(fj_pool_create(NULL, o), FJ_EINVAL);
    if (pool != NULL && (target > 8 || a->own != NULL)) {
        /* It would have too many threads as soon as it has work. */
        ONE_OF(fj_pool_destroy(pool), FJ_OK);
    } else if (pool != NULL) {
        a->own = pool;
        fjp_watch(pool);
    }
}

static void call_stats(struct actor *a)
{
    struct {
        fj_stats s;
        unsigned char more[16];
    } stats;
    fj_pool *pool = api_any_pool(a);

    memset(&stats, 0xa5, sizeof stats);
    if (pool == NULL) pool = shared.pool[0];
    ONE_OF(fj_pool_stats(pool, &stats.s), FJ_OK);
    for (size_t i = 0; i < sizeof stats.more; i++) CHECK(stats.more[i] == 0xa5);
    ONE_OF(fj_pool_stats(pool, NULL), FJ_EINVAL);
}

static void call_text(struct actor *a)
{
    fj_pool *pool = api_any_pool(a);
    char text[64];
    size_t cap = (size_t)api_next(a) % sizeof text;

    memset(text, 0x5a, sizeof text);
    CHECK(fj_pool_describe(pool != NULL ? pool : shared.pool[1], text, cap) > 0);
    for (size_t i = cap; i < sizeof text; i++) CHECK(text[i] == 0x5a);
    CHECK(cap == 0 || memchr(text, 0, cap) != NULL);
    CHECK(fj_error_name(api_any_code(a)) != NULL && fj_strerror(api_any_code(a)) != NULL);
}

static void call_pool(struct actor *a)
{
    fj_pool *pool = api_any_pool(a);
    int how = api_next(a), old;

    switch (how % 12) {
        case 0: ONE_OF(fj_pool_shutdown(NULL), FJ_EINVAL); break;
        case 1: ONE_OF(fj_pool_shutdown_now(NULL), FJ_EINVAL); break;
        case 2: ONE_OF(fj_pool_destroy(NULL), FJ_OK); break;
        case 3: ONE_OF(fj_pool_cancel_delayed_on_shutdown(NULL), FJ_EINVAL); break;
        case 4:
            if (pool == NULL)
                ONE_OF(fj_pool_shutdown(fj_common_pool()), FJ_ENOTSUP);
            else if (pool != a->own && how > 127) {
                atomic_store(&shared.shut[pool == shared.pool[1]], 1);
                ONE_OF(how & 16 ? fj_pool_shutdown(pool) : fj_pool_shutdown_now(pool), FJ_OK);
                CHECK(fj_pool_is_shutdown(pool));
            }
            break;
        case 5:
            ONE_OF(fj_pool_await_termination(pool, api_any_time(a)), FJ_OK, FJ_ETIMEDOUT);
            break;
        case 6: ONE_OF(fj_pool_await_quiescence(pool, api_any_time(a)), FJ_OK, FJ_ETIMEDOUT); break;
        case 7:
            old = api_any_code(a);
            if (old < 1) ONE_OF(fj_pool_set_parallelism(pool, old), FJ_EINVAL, FJ_ENOTSUP);
            old = pool != NULL ? fj_pool_set_parallelism(pool, 1 + how % 4) : 1;
            CHECK(old >= 1 || (old == FJ_EINVAL && pool == a->own)); /* if max_threads is set */
            break;
        case 8: (void)fj_pool_is_quiescent(pool), (void)fj_pool_is_terminated(pool); break;
        case 9: CHECK(fj_pool_thread_count(pool) >= 0 && fj_pool_active_count(pool) >= 0); break;
        case 10: drop_own(a); break;
        default: fj_pool_cancel_delayed_on_shutdown(pool != NULL ? pool : fj_common_pool());
    }
}

static void call_drain(struct actor *a)
{
    fj_taken taken[4];
    int how = api_next(a);
    fj_pool *pool = api_any_pool(a);

    CHECK(fj_take_local(taken) == 0 && fj_take_task(taken) == 0 && fj_take_submission(taken) == 0);
    CHECK(fj_pool_drain(pool, NULL, SIZE_MAX) == 0 && fj_pool_drain(pool, taken, 0) == 0);
    size_t n = fj_pool_drain(pool, taken, 1 + (size_t)how % 4);
    for (size_t i = 0; i < n; i++) {
        if ((how & 16) != 0)
            fj_taken_cancel(&taken[i]);
        else
            fj_taken_run(&taken[i]);
        fj_taken_run(&taken[i]); /* a second run has no effect */
    }
    fj_taken_run(NULL);
    fj_taken_cancel(NULL);
}

static int never(void *arg)
{
    (void)arg;
    return 0;
}

static int gives_up(void *arg)
{
    (void)arg;
    return -7;
}

static void call_block(struct actor *a)
{
    fj_blocking b;
    sem_t s;
    char c;

    switch (api_next(a) % 8) {
        case 0: ONE_OF(fj_managed_block(NULL, gives_up, a), FJ_EINVAL); break;
        case 1: ONE_OF(fj_managed_block(never, NULL, a), FJ_EINVAL); break;
        case 2: ONE_OF(fj_managed_block(never, gives_up, a), -7); break;
        case 3: ONE_OF(fj_block_begin(NULL), FJ_EINVAL); break;
        case 4:
            ONE_OF(fj_block_begin(&b), FJ_OK);
            fj_block_end(&b);
            break;
        case 5: ONE_OF(fj_sleep_ns(api_any_time(a)), FJ_OK); break;
        case 6:
            sem_init(&s, 0, 0);
            ONE_OF(fj_block_sem_wait(&s, api_any_time(a)), FJ_ETIMEDOUT);
            sem_destroy(&s);
            break;
        default:
            CHECK(fj_block_read(-1, &c, 1) == -EBADF && fj_block_write(-1, &c, 1) == -EBADF);
            ONE_OF(fj_block_poll(NULL, 0, api_any_time(a)), 0);
    }
}

static void call_outside(struct actor *a)
{
    fj_pool_options o = {0};

    CHECK(fj_current_pool() == NULL && fj_current_worker() == -1);
    CHECK(fj_worker_queued() == 0 && fj_worker_surplus() == 0 && fj_peek_local() == NULL);
    CHECK(!fj_is_cancelled() && !fj_is_stopping() && fj_stack_left() > 0);
    CHECK(fj_common_pool() != NULL);
    o.parallelism = api_any_code(a) == 77 ? -1 : 1;
    ONE_OF(fj_common_configure(&o), FJ_EBUSY, FJ_EINVAL);
    if (api_next(a) % 4 == 0) fj_help_quiesce();
}

/* ---- One input ------------------------------------------------------------------------------ */

static void (*const calls[])(struct actor *) = {
    api_call_task,       api_call_tasks_wrongly,
    api_call_invoke_all, api_call_execute,
    api_call_token,      api_call_shared,
    api_call_shared,     api_call_future,
    api_call_future,     api_call_futures_wrongly,
    api_call_group,      api_call_made,
    api_call_timer,      api_call_timer,
    api_call_completer,  call_create,
    call_stats,          call_text,
    call_pool,           call_drain,
    call_block,          call_outside,
};

static void actor_begin(struct actor *a)
{
    for (int i = 0; i < N; i++) {
        fj_task_init(&a->task[i].is.task, api_job_run);
        fj_future_init(&a->future[i].is.future, api_job_run);
        a->future[i].body = true;
        fj_timer_init(&a->timer[i].is.timer, api_job_run);
        fj_completer_init(&a->completer[i].is.completer, NULL, 0, api_completer_run, NULL, NULL);
    }
    fj_token_init(&a->token[0], NULL);
    fj_token_init(&a->token[1], NULL);
}

static void *actor_main(void *arg)
{
    struct actor *a = arg;

    while (a->left > 0) calls[(size_t)api_next(a) % (sizeof calls / sizeof calls[0])](a);
    release_all(a);
    drop_own(a);
    return NULL;
}

static void shared_begin(int byte)
{
    for (int i = 0; i < 2; i++) {
        fj_pool_options o = {0};
        o.parallelism = i == 0 ? 1 + (byte >> 2 & 3) : 1;
        o.flags = i == 0 ? (unsigned)byte >> 4 & 3 : 0;
        ONE_OF(fj_pool_create(&shared.pool[i], &o), FJ_OK);
        fjp_watch(shared.pool[i]);
        atomic_store(&shared.shut[i], 0);
    }
    for (int i = 0; i < N; i++) {
        struct job *j = &shared.future[i];
        memset(j, 0, sizeof *j);
        j->what = (byte >> 6) + i;
        fj_future_init(&j->is.future, i == 0 ? NULL : api_job_run);
        if (i > 0) ONE_OF(fj_future_submit(shared.pool[i & 1], &j->is.future), FJ_OK);
    }
}

static void shared_end(void)
{
    for (int i = 0; i < N; i++) {
        (void)fj_future_cancel(&shared.future[i].is.future, 1);
        fj_future_fini(&shared.future[i].is.future);
    }
    for (int i = 0; i < 2; i++) {
        fjp_unwatch(shared.pool[i]);
        ONE_OF(fj_pool_destroy(shared.pool[i]), FJ_OK);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    int byte = n > 0 ? bytes[0] : 0, threads = 1 + (byte & 3) % 3;
    struct actor *actor = calloc((size_t)threads, sizeof *actor);

    if (actor == NULL || n == 0) {
        free(actor);
        return 0;
    }
    fuzz_begin(bytes, n);
    shared_begin(byte);
    size_t share = (n - 1) / (size_t)threads;
    for (int i = 0; i < threads; i++) {
        actor[i].at = bytes + 1 + share * (size_t)i;
        actor[i].left = share;
        actor_begin(&actor[i]);
    }
    for (int i = 1; i < threads; i++)
        CHECK(pthread_create(&actor[i].thread, NULL, actor_main, &actor[i]) == 0);
    actor_main(&actor[0]);
    for (int i = 1; i < threads; i++) pthread_join(actor[i].thread, NULL);
    shared_end();
    free(actor);
    /* The queues of the common pool are in memory that the leak check does not scan. Objects that
     * are only queued there would count as leaked. */
    ONE_OF(fj_pool_await_quiescence(NULL, FJ_FOREVER), FJ_OK);
    fuzz_end();
    return 0;
}
