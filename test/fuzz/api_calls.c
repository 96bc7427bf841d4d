/* SPDX-License-Identifier: MIT */
/*
 * api_calls.c - decodes bytes into calls on tasks, futures, timers and completers
 */
#include <forkjoin/algo.h>
#include <forkjoin/block.h>

#include "fuzz/api.h"

#include <limits.h>
#include <string.h>

struct api_shared shared;

void api_one_of(const char *file, int line, const char *text, int got, const int *allowed, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (allowed[i] == got) return;
    fjp_fail(file, line, "%s returned %d (%s)", text, got, fj_error_name(got));
}

int api_next(struct actor *a)
{
    if (a->left == 0) return 0;
    a->left--;
    return *a->at++;
}

int64_t api_any_time(struct actor *a)
{
    static const int64_t times[] = {0, 1, 1000, 50000, -1, INT64_MIN, INT64_MIN + 1, 20000};

    return times[api_next(a) % 8];
}

int api_any_code(struct actor *a)
{
    static const int codes[] = {0, 1, INT_MAX, INT_MIN, -1, FJ_EREJECTED, FJ_EINVAL, 77};

    return codes[api_next(a) % 8];
}

static bool may_reject(const fj_pool *pool)
{
    for (int i = 0; i < 2; i++)
        if (pool != NULL && pool == shared.pool[i]) return atomic_load(&shared.shut[i]) != 0;
    return false;
}

/* NULL is the common pool. */
fj_pool *api_any_pool(struct actor *a)
{
    int byte = api_next(a) % 8;

    if (byte == 7) return NULL;
    if (byte == 6 && a->own != NULL) return a->own;
    return shared.pool[byte & 1];
}

/* ---- Bodies --------------------------------------------------------------------------------- */

static int leaf_run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

static void fork_two(void)
{
    fj_task x, y;

    fj_task_init(&x, leaf_run);
    fj_task_init(&y, leaf_run);
    fj_fork(&x);
    fj_fork(&y);
    ONE_OF(fj_join(&x), FJ_OK, FJ_ECANCELED);
    ONE_OF(fj_join(&y), FJ_OK, FJ_ECANCELED);
}

static void misuse_inside(void)
{
    fj_pool *here = fj_current_pool();

    if (here == NULL) return;
    if (here == fj_common_pool()) {
        ONE_OF(fj_pool_destroy(here), FJ_ENOTSUP);
        ONE_OF(fj_pool_shutdown_now(here), FJ_ENOTSUP);
        return;
    }
    /* A guest is not a worker of the pool, but these calls refuse it like one. */
    ONE_OF(fj_pool_destroy(here), FJ_EDEADLK);
    ONE_OF(fj_pool_close(here), FJ_EDEADLK);
    ONE_OF(fj_pool_await_termination(here, FJ_FOREVER), FJ_EDEADLK);
}

static void shut_here(void)
{
    fj_pool *here = fj_current_pool();

    for (int i = 0; i < 2; i++) {
        if (here == NULL || here != shared.pool[i]) continue;
        atomic_store(&shared.shut[i], 1);
        ONE_OF(fj_pool_shutdown(here), FJ_OK);
    }
}

static int job_body(struct job *j)
{
    CHECK(atomic_fetch_add(&j->runs, 1) < (j->is.timer.period != 0 ? INT_MAX : 1000));
    switch (j->what) {
        case JOB_FAILS: return 5;
        case JOB_OPEN: return FJ_PENDING;
        case JOB_FORKS: fork_two(); break;
        case JOB_SLEEPS: ONE_OF(fj_sleep_ns(1000), FJ_OK, FJ_ECANCELED); break;
        case JOB_MISUSES: misuse_inside(); break;
        case JOB_SHUTS: shut_here(); break;
        default: (void)fj_is_cancelled();
    }
    return FJ_OK;
}

int api_job_run(fj_task *t)
{
    return job_body((struct job *)(void *)t);
}

int api_completer_run(fj_task *t)
{
    struct job *j = (struct job *)(void *)t;
    int code = job_body(j);

    if (code != FJ_OK) return code;
    fj_completer_try_complete(&j->is.completer);
    return FJ_OK;
}

static int action_run(void *arg)
{
    return arg != NULL ? 3 : 0;
}

static int call_run(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

static void timeout_run(fj_future *f, void *arg)
{
    (void)arg;
    (void)fj_future_fail(f, 6);
}

/* ---- Tasks ---------------------------------------------------------------------------------- */

static void check_submitted(const fj_pool *pool, int got)
{
    if (may_reject(pool))
        ONE_OF(got, FJ_OK, FJ_EREJECTED);
    else
        ONE_OF(got, FJ_OK);
}

void api_call_task(struct actor *a)
{
    int how = api_next(a);
    struct job *j = &a->task[how % N];
    fj_pool *pool = api_any_pool(a);
    int what = api_next(a) % JOBS, got;

    if (j->queued) {
        ONE_OF(fj_join(&j->is.task), FJ_OK, 5, FJ_ECANCELED);
        j->queued = false;
        return;
    }
    j->what = what == JOB_OPEN ? JOB_PLAIN : what;
    fj_task_init(&j->is.task, (how & 64) != 0 ? NULL : api_job_run);
    switch (how >> 2 & 3) {
        case 0: got = fj_submit(pool, &j->is.task); break;
        case 1: got = fj_submit_external(pool, &j->is.task); break;
        case 2: got = fj_submit_lazy(pool, &j->is.task); break;
        default: {
            static const enum fj_caller all[] = {FJ_CALLER_DEFAULT, FJ_CALLER_HELPS,
                                                 FJ_CALLER_BLOCKS, FJ_CALLER_DEFAULT};
            got = fj_invoke_mode(pool, &j->is.task, all[how >> 4 & 3]);
            if ((how & 64) != 0)
                ONE_OF(got, FJ_EINVAL);
            else
                ONE_OF(got, FJ_OK, 5, FJ_ECANCELED, may_reject(pool) ? FJ_EREJECTED : FJ_OK);
            return;
        }
    }
    if ((how & 64) != 0) {
        ONE_OF(got, FJ_EINVAL);
        return;
    }
    check_submitted(pool, got);
    j->queued = got == FJ_OK;
}

void api_call_tasks_wrongly(struct actor *a)
{
    fj_pool *pool = api_any_pool(a);
    fj_task x, *list[2] = {&x, NULL};
    int data[4];
    fj_algo_options how = {.pool = pool};

    fj_task_init(&x, leaf_run);
    switch (api_next(a) % 14) {
        case 0: ONE_OF(fj_submit(pool, NULL), FJ_EINVAL); break;
        case 1: ONE_OF(fj_submit_external(pool, NULL), FJ_EINVAL); break;
        case 2: ONE_OF(fj_submit_lazy(pool, NULL), FJ_EINVAL); break;
        case 3: ONE_OF(fj_execute(pool, NULL, a), FJ_EINVAL); break;
        case 4: ONE_OF(fj_invoke(pool, NULL), FJ_EINVAL); break;
        case 5: ONE_OF(fj_invoke_all(NULL, 3), FJ_EINVAL); break;
        case 6: ONE_OF(fj_invoke_all(list, 2), FJ_EINVAL); break;
        case 7: ONE_OF(fj_invoke_all(NULL, 0), FJ_OK); break;
        case 8: ONE_OF(fj_invoke_both(&x, NULL), FJ_EINVAL); break;
        case 9: ONE_OF(fj_invoke_array(NULL, 2, sizeof x), FJ_EINVAL); break;
        case 10: ONE_OF(fj_invoke_token(pool, &x, NULL), FJ_EINVAL); break;
        case 11: ONE_OF(fj_reduce(0, 1, NULL, NULL, data, 4, a, data, &how), FJ_EINVAL); break;
        case 12: ONE_OF(fj_reduce(0, 1, NULL, NULL, data, 0, a, data, &how), FJ_EINVAL); break;
        default: ONE_OF(fj_reduce(SIZE_MAX, 1, NULL, NULL, data, 4, a, data, &how), FJ_EINVAL);
    }
}

void api_call_invoke_all(struct actor *a)
{
    fj_task x[4], *list[4];
    size_t n = (size_t)api_next(a) % 5;

    for (size_t i = 0; i < 4; i++) {
        fj_task_init(&x[i], leaf_run);
        list[i] = &x[i];
    }
    if (api_next(a) % 2 == 0)
        ONE_OF(fj_invoke_all(list, n), FJ_OK, FJ_ECANCELED); /* another thread may cancel them */
    else
        ONE_OF(fj_invoke_array(x, n, sizeof x[0]), FJ_OK, FJ_ECANCELED);
}

void api_call_execute(struct actor *a)
{
    fj_pool *pool = api_any_pool(a);

    check_submitted(pool, fj_execute(pool, action_run, api_next(a) % 2 == 0 ? a : NULL));
}

void api_call_token(struct actor *a)
{
    int how = api_next(a);
    fj_token *t = &a->token[how & 1];
    fj_pool *pool = api_any_pool(a);
    fj_task x;

    fj_task_init(&x, leaf_run);
    if ((how & 6) == 0) fj_token_init(t, (how & 1) != 0 ? &a->token[0] : NULL);
    if ((how & 6) == 2) fj_token_cancel(t);
    bool dead = fj_token_is_cancelled(t) != 0;
    int got = fj_invoke_token(pool, &x, t);
    if (may_reject(pool))
        ONE_OF(got, FJ_OK, FJ_ECANCELED, FJ_EREJECTED);
    else
        ONE_OF(got, dead ? FJ_ECANCELED : FJ_OK, FJ_ECANCELED);
}

/* ---- Futures -------------------------------------------------------------------------------- */

/* A random call that any thread may make on any future, done or not. */
static void meddle(struct actor *a, fj_future *f)
{
    void *result = a;
    size_t which = 9;
    int got;

    switch (api_next(a) % 16) {
        case 0: ONE_OF(fj_future_cancel(f, 0), 0, 1); break;
        case 1: ONE_OF(fj_future_cancel(f, 1), 0, 1); break;
        case 2: ONE_OF(fj_future_complete(f, a), 0, 1); break;
        case 3: ONE_OF(fj_future_complete_quietly(f), 0, 1); break;
        case 4: ONE_OF(fj_future_fail(f, api_any_code(a)), 0, 1); break;
        case 5:
            got = fj_future_get(f, api_any_time(a), &result);
            CHECK(got == FJ_OK || result == a);
            break;
        case 6: ONE_OF(fj_future_wait(f, api_any_time(a)), FJ_OK, FJ_ETIMEDOUT); break;
        case 7: ONE_OF(fj_future_wait_quietly(f, api_any_time(a)), FJ_OK, FJ_ETIMEDOUT); break;
        case 8: ONE_OF(fj_future_wait_all(&f, 1, api_any_time(a)), FJ_OK, FJ_ETIMEDOUT); break;
        case 9:
            got = fj_future_wait_any(&f, 1, api_any_time(a), &which);
            ONE_OF(got, FJ_OK, FJ_ETIMEDOUT);
            CHECK(which == (got == FJ_OK ? 0 : 9));
            break;
        case 10:
            got = fj_future_result(f, &result);
            CHECK(got == FJ_OK || result == a);
            break;
        case 11: (void)fj_future_error(f); break;
        case 12:
            got = fj_future_set_tag(f, (int16_t)api_any_code(a));
            (void)fj_future_cas_tag(f, fj_future_tag(f), (int16_t)got);
            break;
        case 13: (void)fj_timer_remaining(f); break;
        case 14:
            CHECK(fj_future_ref(NULL) == NULL);
            fj_future_unref(NULL);
            break;
        default: {
            bool done = fj_future_is_done(f) != 0;
            enum fj_future_state state = fj_future_state(f);
            CHECK(!done || state != FJ_FUTURE_RUNNING);
        }
    }
}

void api_call_shared(struct actor *a)
{
    int which = api_next(a) % N;

    meddle(a, &shared.future[which].is.future);
}

static int submit_future(fj_pool *pool, fj_future *f, int how)
{
    switch (how % 4) {
        case 0: return fj_future_submit_external(pool, f);
        case 1: return fj_future_submit_lazy(pool, f);
        default: return fj_future_submit(pool, f);
    }
}

/* Whether the future becomes done without further calls. */
static bool ends_alone(const struct job *j)
{
    return j->queued && j->what != JOB_OPEN;
}

void api_future_renew(struct job *j, int how)
{
    fj_future *f = &j->is.future;

    if (j->queued && !ends_alone(j)) (void)fj_future_cancel(f, 1);
    fj_future_fini(f);
    j->body = (how & 8) == 0;
    j->what = (how >> 4) % JOBS;
    j->queued = false;
    fj_future_init(f, j->body ? api_job_run : NULL);
}

void api_call_future(struct actor *a)
{
    int how = api_next(a), got;
    struct job *j = &a->future[how % N];
    fj_future *f = &j->is.future;
    fj_pool *pool = api_any_pool(a);

    switch (how >> 2 & 7) {
        case 0: api_future_renew(j, api_next(a)); break;
        case 1:
        case 2:
            got = submit_future(pool, f, how >> 5);
            if (!j->body || j->queued)
                ONE_OF(got, FJ_EINVAL);
            else
                check_submitted(pool, got);
            j->queued |= got == FJ_OK;
            break;
        case 3:
            if (fj_future_unfork(f)) {
                CHECK(j->queued);
                j->queued = false;
            }
            break;
        case 4:
            got = fj_future_reinit(f);
            ONE_OF(got, FJ_OK, FJ_EBUSY);
            if (got == FJ_OK) j->queued = false;
            break;
        case 5:
            if (ends_alone(j)) (void)fj_future_join(f);
            break;
        case 6:
            if (j->queued || !j->body)
                ONE_OF(fj_future_invoke(pool, f), FJ_EINVAL);
            else if (j->what != JOB_OPEN)
                (void)fj_future_invoke(pool, f), api_future_renew(j, 0);
            break;
        default: meddle(a, f);
    }
}

void api_call_futures_wrongly(struct actor *a)
{
    fj_pool *pool = api_any_pool(a);
    fj_future *list[2] = {&a->future[0].is.future, NULL}, *made = NULL;
    size_t which = 9;

    switch (api_next(a) % 18) {
        case 0: ONE_OF(fj_future_submit(pool, NULL), FJ_EINVAL); break;
        case 1: ONE_OF(fj_future_submit_external(pool, NULL), FJ_EINVAL); break;
        case 2: ONE_OF(fj_future_submit_lazy(pool, NULL), FJ_EINVAL); break;
        case 3: ONE_OF(fj_future_fork(NULL), FJ_EINVAL); break;
        case 4: ONE_OF(fj_future_wait_all(NULL, 2, 0), FJ_EINVAL); break;
        case 5: ONE_OF(fj_future_wait_all(list, 2, 0), FJ_EINVAL); break;
        case 6: ONE_OF(fj_future_wait_all(list, 0, api_any_time(a)), FJ_OK); break;
        case 7: ONE_OF(fj_future_wait_any(list, 0, 0, &which), FJ_EINVAL); break;
        case 8: ONE_OF(fj_future_wait_any(list, 2, 0, &which), FJ_EINVAL); break;
        case 9: ONE_OF(fj_future_invoke_all(pool, list, 2, 0), FJ_EINVAL); break;
        case 10: ONE_OF(fj_future_invoke_all(pool, NULL, 2, 0), FJ_EINVAL); break;
        case 11: ONE_OF(fj_future_invoke_any(pool, list, 0, 0, &which), FJ_EINVAL); break;
        case 12: ONE_OF(fj_future_invoke_any(pool, list, 2, 0, &which), FJ_EINVAL); break;
        case 13: ONE_OF(fj_submit_call(pool, NULL, a, &made), FJ_EINVAL); break;
        case 14: ONE_OF(fj_submit_call(pool, call_run, a, NULL), FJ_EINVAL); break;
        case 15: ONE_OF(fj_submit_action(pool, NULL, a, a, &made), FJ_EINVAL); break;
        case 16: ONE_OF(fj_submit_with_timeout(pool, NULL, a, 0, NULL, &made), FJ_EINVAL); break;
        default: fj_future_unref(NULL);
    }
    CHECK(made == NULL && which == 9);
}

void api_call_group(struct actor *a)
{
    fj_pool *pool = api_any_pool(a);
    struct job j[N];
    fj_future *list[N];
    size_t which = 9;
    int how = api_next(a), got;

    for (int i = 0; i < N; i++) {
        memset(&j[i], 0, sizeof j[i]);
        j[i].what = (how >> i) % 2;
        list[i] = &j[i].is.future;
        fj_future_init(list[i], api_job_run);
    }
    if ((how & 8) != 0)
        got = fj_future_invoke_all(pool, list, N, api_any_time(a));
    else if ((how & 16) != 0)
        got = fj_future_invoke_all_quietly(pool, list, N);
    else
        got = fj_future_invoke_any(pool, list, N, api_any_time(a), &which);
    ONE_OF(got, FJ_OK, 5, FJ_ETIMEDOUT, FJ_ECANCELED, may_reject(pool) ? FJ_EREJECTED : FJ_OK);
    for (int i = 0; i < N; i++) {
        CHECK(fj_future_is_done(list[i]));
        fj_future_fini(list[i]);
    }
}

void api_drop_made(fj_future **f)
{
    if (*f == NULL) return;
    (void)fj_future_cancel(*f, 1);
    fj_future_unref(*f);
    *f = NULL;
}

void api_call_made(struct actor *a)
{
    int how = api_next(a), got;
    fj_future **f = &a->made[how % N];
    fj_pool *pool = api_any_pool(a);

    if (*f != NULL && (how & 4) != 0) {
        meddle(a, *f);
        return;
    }
    api_drop_made(f);
    switch (how >> 3 & 7) {
        case 0: got = fj_submit_call(pool, call_run, a, f); break;
        case 1: got = fj_submit_action(pool, action_run, NULL, a, f); break;
        case 2: got = fj_schedule_call(pool, call_run, a, api_any_time(a), f); break;
        case 3: got = fj_schedule_action(pool, action_run, a, INT64_MAX, f); break;
        case 4:
            got = fj_schedule_action_at_fixed_rate(pool, action_run, NULL, api_any_time(a), 5000,
                                                   f);
            break;
        case 5: got = fj_submit_with_timeout(pool, call_run, a, api_any_time(a), NULL, f); break;
        case 6:
            got = fj_submit_with_timeout(pool, call_run, a, api_any_time(a), timeout_run, f);
            break;
        default:
            ONE_OF(fj_schedule_action_at_fixed_rate(pool, action_run, a, 0,
                                                    api_any_time(a) < 1 ? 0 : -1, f),
                   FJ_EINVAL);
            ONE_OF(fj_future_new_call(call_run, a, how & 1, f), FJ_OK);
            return;
    }
    check_submitted(pool, got);
    CHECK((*f != NULL) == (got == FJ_OK));
}

/* ---- Timers and completers ------------------------------------------------------------------ */

void api_timer_renew(struct job *j, int what)
{
    (void)fj_future_cancel(&j->is.future, what & 1);
    fj_future_fini(&j->is.future);
    fj_timer_init(&j->is.timer, api_job_run);
    j->what = what % JOBS;
    j->queued = false;
}

void api_call_timer(struct actor *a)
{
    int how = api_next(a), got;
    struct job *j = &a->timer[how % N];
    fj_pool *pool = api_any_pool(a);
    int64_t delay = (how & 128) != 0 ? INT64_MAX - (how >> 4) : api_any_time(a);
    int64_t period = (how & 64) != 0 ? 3000 + api_any_time(a) % 1000 : INT64_MAX;

    switch (how >> 2 & 7) {
        case 0: api_timer_renew(j, api_next(a)); return;
        case 1: ONE_OF(fj_schedule_at_fixed_rate(pool, &j->is.timer, 0, 0), FJ_EINVAL); return;
        case 2:
            ONE_OF(fj_schedule_with_fixed_delay(pool, &j->is.timer, 0, INT64_MIN), FJ_EINVAL);
            return;
        case 3: ONE_OF(fj_schedule(pool, NULL, delay), FJ_EINVAL); return;
        case 4: got = fj_schedule(pool, &j->is.timer, delay); break;
        case 5: got = fj_schedule_at_fixed_rate(pool, &j->is.timer, delay, period); break;
        case 6: got = fj_schedule_with_fixed_delay(pool, &j->is.timer, delay, period); break;
        default: meddle(a, &j->is.future); return;
    }
    if (j->queued)
        ONE_OF(got, FJ_EINVAL);
    else
        check_submitted(pool, got);
    j->queued |= got == FJ_OK;
}

void api_completer_renew(struct job *j)
{
    if (j->queued && j->what == JOB_OPEN) (void)fj_future_cancel(&j->is.future, 0);
    fj_future_fini(&j->is.future);
    fj_completer_init(&j->is.completer, NULL, 0, api_completer_run, NULL, NULL);
    j->queued = false;
}

void api_call_completer(struct actor *a)
{
    int how = api_next(a), got;
    struct job *j = &a->completer[how % N];
    fj_completer *c = &j->is.completer;
    fj_pool *pool = api_any_pool(a);

    switch (how >> 2 & 7) {
        case 0:
            api_completer_renew(j);
            j->what = api_next(a) % JOBS;
            if (j->what == JOB_OPEN) j->what = JOB_FAILS;
            break;
        case 1:
        case 2:
            got = fj_completer_submit(pool, c);
            if (j->queued)
                ONE_OF(got, FJ_EINVAL);
            else
                check_submitted(pool, got);
            j->queued |= got == FJ_OK;
            break;
        case 3: ONE_OF(fj_completer_submit(pool, NULL), FJ_EINVAL); break;
        case 4: ONE_OF(fj_completer_fork_all(NULL, c, 1, sizeof *c), FJ_EINVAL); break;
        case 5: ONE_OF(fj_completer_fork_all(c, NULL, 1, sizeof *c), FJ_EINVAL); break;
        case 6:
            if (j->queued) ONE_OF(fj_completer_join(c), FJ_OK, 5, FJ_ECANCELED);
            break;
        default:
            CHECK(fj_completer_parent(c) == NULL && fj_completer_root(c) == c);
            CHECK(fj_completer_pending(c) >= 0);
            (void)fj_completer_help(c, INT_MAX);
    }
}
