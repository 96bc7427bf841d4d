/* SPDX-License-Identifier: MIT */
/*
 * futures.c - random programs: children as futures, embedded and allocated, and as timers
 */
#include <sched.h>
#include <stddef.h>

#include "fuzz/node.h"

static int future_run(fj_task *t)
{
    fjp_node *c = (fjp_node *)(void *)t;
    int code = fjp_body(c);

    /* Atomic, because another thread may complete the future, which reads `result`. */
    __atomic_store_n(&c->is.future.result, (void *)&c->value, __ATOMIC_RELAXED);
    return code;
}

static void future_init(fjp_node *c)
{
    fj_future_init(&c->is.future, future_run);
    fjp_expect(c, 1, 1);
}

/* ---- Starting and waiting ------------------------------------------------------------------- */

enum { START_FORK, START_SUBMIT, START_EXTERNAL, START_LAZY, STARTS };

static int start_some_way(const fjp_node *n, fj_future *f, const fjp_node *c, int way)
{
    bool own = !n->outside && c->pool == n->pool && !n->program->faults;

    switch (way % STARTS) {
        case START_FORK: return own ? fj_future_fork(f) : fj_future_submit(fjp_where(c), f);
        case START_EXTERNAL: return fj_future_submit_external(fjp_where(c), f);
        case START_LAZY: return fj_future_submit_lazy(fjp_where(c), f);
        default: return fj_future_submit(fjp_where(c), f);
    }
}

/* Handles a wait that returned `got` although the future may not be done. If it is not, checks that
 * the wait may have been interrupted, and waits again. */
static void waited_in_vain(const fjp_node *n, fj_future *f, int got)
{
    if (fj_future_is_done(f)) return;
    FJP_CHECK(got == FJ_ECANCELED && fjp_may_break(n) && !n->outside);
    FJP_CHECK_EQ(fj_future_wait_quietly(f, FJ_FOREVER), FJ_OK);
}

/* Whether the timeout of the wait has expired, not that of the future. */
static bool waits_on(const fj_future *f, int got)
{
    return got == FJ_ETIMEDOUT && !fj_future_is_done(f);
}

static void await_some_way(const fjp_node *n, fj_future *f, int way)
{
    void *result = NULL;
    int got, turns = 0;

    switch (way % 5) {
        case 0: (void)fj_future_join(f); break;
        case 1:
            got = fj_future_get(f, FJ_FOREVER, &result);
            waited_in_vain(n, f, got);
            break;
        case 2:
            do got = fj_future_get(f, ++turns < 50 ? 20 * FJP_US : FJ_FOREVER, &result);
            while (waits_on(f, got));
            waited_in_vain(n, f, got);
            break;
        case 3:
            got = fj_future_wait(f, FJ_FOREVER);
            waited_in_vain(n, f, got);
            break;
        default:
            do got = fj_future_wait_quietly(f, ++turns < 50 ? 20 * FJP_US : FJ_FOREVER);
            while (got == FJ_ETIMEDOUT);
            FJP_CHECK_EQ(got, FJ_OK);
    }
    FJP_CHECK(fj_future_is_done(f));
}

/* Checks that all queries of a future agree. Returns its code. */
static int look_at(fj_future *f, void **result)
{
    void *was = *result;
    int code = fj_future_result(f, result);
    enum fj_future_state state = fj_future_state(f);

    FJP_CHECK(code != FJ_EBUSY);
    FJP_CHECK_EQ(fj_future_error(f), code);
    FJP_CHECK_EQ(fj_future_join(f), code);
    FJP_CHECK_EQ(fj_future_succeeded(f), code == FJ_OK);
    FJP_CHECK_EQ(fj_future_failed(f), code != FJ_OK);
    FJP_CHECK_EQ(fj_future_is_cancelled(f), code == FJ_ECANCELED);
    FJP_CHECK_EQ(state, code == FJ_OK          ? FJ_FUTURE_SUCCESS
                        : code == FJ_ECANCELED ? FJ_FUTURE_CANCELLED
                                               : FJ_FUTURE_FAILED);
    FJP_CHECK(code == FJ_OK || *result == was);
    return code;
}

/* Checks c, which is done, if no other thread has completed or cancelled it. */
static void settle_future(fjp_node *n, fjp_node *c, fj_future *f)
{
    void *result = NULL;
    int code = look_at(f, &result);

    if (code == FJ_OK) FJP_CHECK(result == &c->value);
    fjp_settle(n, c, code);
}

/* ---- As futures ----------------------------------------------------------------------------- */

/* Starts c as a future. Returns whether it was accepted. */
static bool future_start(fjp_node *n, fjp_node *c, int way)
{
    fj_future *f = &c->is.future;
    bool own = !n->outside && c->pool == n->pool;

    future_init(c);
    if ((way & 12) == 12) { /* runs it and waits for it */
        int got = own ? fj_future_run(f) : fj_future_invoke(fjp_where(c), f);
        if ((got == FJ_EREJECTED || got == FJ_ENOMEM) && fjp_refused(n, c, got)) return false;
        FJP_CHECK(got == c->code || fjp_may_drop(n));
        return true;
    }
    if (fjp_refused(n, c, start_some_way(n, f, c, way))) return false;
    FJP_CHECK_EQ(fj_future_submit(fjp_where(c), f), FJ_EINVAL); /* it is already queued */
    if ((way & 12) == 8 && fj_future_unfork(f)) {
        FJP_CHECK_EQ(atomic_load(&c->runs), 0);
        if (fjp_refused(n, c, start_some_way(n, f, c, way + 1))) return false;
    }
    return true;
}

static void await_together(const fjp_node *n, fj_future **f, size_t count, int way)
{
    size_t which = count;

    if (way == 0) {
        int got = fj_future_wait_all(f, count, FJ_FOREVER);
        FJP_CHECK(got == FJ_OK || (got == FJ_ECANCELED && fjp_may_break(n)));
    } else {
        int got = fj_future_wait_any(f, count, FJ_FOREVER, &which);
        FJP_CHECK(got == FJ_OK || (got == FJ_ECANCELED && fjp_may_break(n)));
        FJP_CHECK(got == FJ_OK ? fj_future_is_done(f[which]) : which == count);
    }
}

void fjp_futures(fjp_node *n)
{
    fj_future *f[FJP_MOST_CHILDREN];
    fjp_node *of[FJP_MOST_CHILDREN];
    int order[FJP_MOST_CHILDREN];
    int count = 0;

    for (int i = 0; i < n->children; i++) {
        if (!future_start(n, &n->child[i], n->arg >> i)) continue;
        of[count] = &n->child[i];
        f[count++] = &n->child[i].is.future;
    }
    if (count > 0 && (n->arg & 32) != 0) await_together(n, f, (size_t)count, n->arg & 1);
    fjp_order(order, count, n->arg);
    for (int i = 0; i < count; i++) await_some_way(n, f[order[i]], (n->arg >> 2) + i);
    for (int i = 0; i < count; i++) {
        settle_future(n, of[i], f[i]);
        fj_future_fini(f[i]);
        FJP_CHECK_EQ(fj_future_reinit(f[i]), FJ_OK);
        FJP_CHECK_EQ(fj_future_state(f[i]), FJ_FUTURE_RUNNING);
    }
}

/* ---- A future, and tasks that wait for it --------------------------------------------------- */

/* Waits for the future of another node, before the body of n continues. */
void fjp_cross_wait(fjp_node *n)
{
    fjp_node *c = n->waits;
    int code;

    await_some_way(n, &c->is.future, n->arg);
    code = fj_future_error(&c->is.future);
    FJP_CHECK(code == c->code || (code == FJ_ECANCELED && fjp_may_drop(n)));
}

void fjp_cross(fjp_node *n)
{
    fjp_node *first = n->child;
    fj_future *f = &first->is.future;

    future_init(first);
    bool there = !fjp_refused(n, first, start_some_way(n, f, first, n->arg & 3));
    for (int i = 1; i < n->children; i++) {
        fjp_node *c = &n->child[i];
        c->waits = there ? first : NULL;
        fj_task_init(&c->is.task, fjp_task_run);
        fjp_expect(c, 1, 1);
        fj_fork(&c->is.task);
    }
    if (there && (n->arg & 4) != 0) await_some_way(n, f, n->arg >> 3);
    for (int i = n->children - 1; i > 0; i--)
        fjp_settle(n, &n->child[i], fj_join(&n->child[i].is.task));
    if (!there) return;
    await_some_way(n, f, n->arg >> 3);
    settle_future(n, first, f);
    fj_future_fini(f);
}

/* ---- Futures that other threads resolve too ------------------------------------------------- */

enum { RACE_BEFORE, RACE_SELF, RACE_MEDDLER, RACE_BOTH };

static char race_mark; /* its address is used as a result */

struct race {
    fjp_node *c;
    bool there;
    fjp_deed deed[2];
    int deeds, before;
};

static void race_plan(const fjp_node *n, struct race *r, fjp_node *c, int i)
{
    *r = (struct race){.c = c, .deeds = n->arg % 4 == RACE_BOTH ? 2 : 1};
    for (int k = 0; k < 2; k++)
        r->deed[k] = (fjp_deed){
            .kind = (enum fjp_deed_kind)(((n->arg >> 2) + i + 3 * k) % FJP_DEEDS),
            .future = &c->is.future,
            .result = &race_mark,
            .code = 200 + k};
}

static void race_start(fjp_node *n, struct race *r, int i)
{
    future_init(r->c);
    fjp_expect(r->c, 0, 1);
    if (n->arg % 4 == RACE_BEFORE) {
        fjp_do(&r->deed[0]);
        FJP_CHECK_EQ(r->deed[0].won, 1);
        r->c->high = 0; /* a future that is already resolved never runs */
    }
    r->there = !fjp_refused(n, r->c, start_some_way(n, &r->c->is.future, r->c, n->arg + i));
    if (!r->there) return;
    switch (n->arg % 4) {
        case RACE_SELF: fjp_do(&r->deed[0]); break;
        case RACE_BOTH:
            fjp_have_done(&r->deed[1]);
            fjp_do(&r->deed[0]);
            break;
        case RACE_MEDDLER: fjp_have_done(&r->deed[0]); break;
        default: break;
    }
}

static bool deed_cancels(const fjp_deed *d)
{
    return d->kind == FJP_CANCEL || d->kind == FJP_INTERRUPT;
}

/* Checks that the outcome is that of this deed, whose call succeeded. */
static void race_won(const struct race *r, const fjp_deed *d, int code, void *result)
{
    switch (d->kind) {
        case FJP_COMPLETE: FJP_CHECK(code == FJ_OK && result == &race_mark); break;
        case FJP_COMPLETE_QUIETLY:
            FJP_CHECK(code == FJ_OK && (result == NULL || result == &r->c->value));
            break;
        case FJP_FAIL: FJP_CHECK_EQ(code, d->code); break;
        default: FJP_CHECK_EQ(code, FJ_ECANCELED);
    }
}

static void race_settle(fjp_node *n, struct race *r)
{
    void *result = NULL;
    int code = look_at(&r->c->is.future, &result), winners = 0, cancels = 0;

    for (int k = 0; k < r->deeds; k++) {
        if (!r->deed[k].won) continue;
        race_won(r, &r->deed[k], code, result);
        if (deed_cancels(&r->deed[k]))
            cancels = 1; /* every cancel of a cancelled future returns 1 */
        else
            winners++;
    }
    FJP_CHECK(winners + cancels <= 1);
    fj_future_fini(&r->c->is.future);
    if (winners + cancels == 1) return;
    FJP_CHECK(!r->c->open || fjp_may_drop(n));
    settle_future(n, r->c, &r->c->is.future);
}

void fjp_race(fjp_node *n)
{
    struct race r[FJP_MOST_CHILDREN];
    int way = n->arg % 4;

    for (int i = 0; i < n->children; i++) {
        race_plan(n, &r[i], &n->child[i], i);
        race_start(n, &r[i], i);
    }
    for (int i = 0; i < n->children; i++) {
        if (!r[i].there) continue;
        if ((n->arg & 32) != 0) await_some_way(n, &r[i].c->is.future, n->arg >> 2);
        if (way == RACE_MEDDLER || way == RACE_BOTH) fjp_await_done(&r[i].deed[way == RACE_BOTH]);
        (void)fj_future_join(&r[i].c->is.future);
        race_settle(n, &r[i]);
    }
}

/* ---- Groups: all or any --------------------------------------------------------------------- */

enum { GROUP_ALL, GROUP_QUIETLY, GROUP_TIMED, GROUP_ANY };

bool fjp_group_spares(const fjp_node *n)
{
    return n->arg % 4 >= GROUP_TIMED;
}

static bool group_code(const fjp_node *n, int got)
{
    for (int i = 0; i < n->children; i++)
        if (n->child[i].code == got && got != FJ_OK) return true;
    return false;
}

static void group_check(const fjp_node *n, int got, size_t which)
{
    const fjp_program *p = n->program;
    int way = n->arg % 4;
    bool some = false; /* at least one can succeed */

    for (int i = 0; i < n->children; i++) some |= n->child[i].code == FJ_OK;
    if (got == FJ_OK) {
        FJP_CHECK(way != GROUP_ANY || n->child[which].code == FJ_OK);
        return;
    }
    if (got == FJ_ETIMEDOUT && way == GROUP_TIMED) return;
    if (got == FJ_ECANCELED && fjp_may_break(n)) return;
    if (got == FJ_EREJECTED && fjp_is_ending(p) && n->child->pool == 0) return;
    if (got == FJ_ENOMEM && p->faults) return;
    bool fails = way == GROUP_ALL || way == GROUP_TIMED || !some || fjp_may_drop(n);
    if (way != GROUP_QUIETLY && fails && group_code(n, got)) return;
    fjp_fail(__FILE__, __LINE__, "group of kind %d returned %d", way, got);
}

static int group_invoke(const fjp_node *n, fj_future **f, size_t *which)
{
    fj_pool *pool = fjp_where(n->child);
    size_t count = (size_t)n->children;

    switch (n->arg % 4) {
        case GROUP_ALL: return fj_future_invoke_all(pool, f, count, FJ_FOREVER);
        case GROUP_QUIETLY: return fj_future_invoke_all_quietly(pool, f, count);
        case GROUP_TIMED: return fj_future_invoke_all(pool, f, count, (n->arg >> 2) * FJP_US);
        default: return fj_future_invoke_any(pool, f, count, FJ_FOREVER, which);
    }
}

void fjp_group(fjp_node *n)
{
    fj_future *f[FJP_MOST_CHILDREN];
    size_t which = FJP_MOST_CHILDREN;

    for (int i = 0; i < n->children; i++) {
        future_init(&n->child[i]);
        if (fjp_group_spares(n)) n->child[i].low = 0;
        f[i] = &n->child[i].is.future;
    }
    int got = group_invoke(n, f, &which);
    group_check(n, got, which);
    if (got == FJ_OK && n->arg % 4 == GROUP_ANY) FJP_CHECK(fj_future_succeeded(f[which]));
    for (int i = 0; i < n->children; i++) {
        fjp_node *c = &n->child[i];
        FJP_CHECK(fj_future_is_done(f[i]));
        fj_future_fini(f[i]);
        if (!fj_future_is_cancelled(f[i])) {
            settle_future(n, c, f[i]);
            continue;
        }
        /* Only a future that was cancelled may be missing. Its body may have begun. */
        FJP_CHECK(got != FJ_OK || n->arg % 4 == GROUP_ANY || fjp_may_drop(n));
        c->low = 0;
        if (c->counts) atomic_store(&n->tainted, true);
    }
}

/* ---- Allocated futures ---------------------------------------------------------------------- */

static int call_run(void *arg, void **result)
{
    fjp_node *c = arg;
    int code = fjp_body(c);

    *result = &c->value;
    return code;
}

static int act_run(void *arg)
{
    return fjp_body(arg);
}

static int call_make(const fjp_node *n, fjp_node *c, int way, fj_future **f)
{
    int err;

    switch (way) {
        case 0: return fj_submit_call(fjp_where(c), call_run, c, f);
        case 1: return fj_submit_action(fjp_where(c), act_run, c, &c->value, f);
        case 2: err = fj_future_new_call(call_run, c, n->arg & 1, f); break;
        default: err = fj_future_new_action(act_run, c, &c->value, n->arg & 1, f);
    }
    if (err != FJ_OK) return err;
    err = start_some_way(n, *f, c, n->arg >> 3);
    if (err != FJ_OK) fj_future_unref(*f);
    return err;
}

void fjp_calls(fjp_node *n)
{
    fj_future *f[FJP_MOST_CHILDREN] = {NULL};

    for (int i = 0; i < n->children; i++) {
        fjp_expect(&n->child[i], 1, 1);
        if (fjp_refused(n, &n->child[i], call_make(n, &n->child[i], (n->arg + i) % 4, &f[i])))
            f[i] = NULL;
    }
    for (int i = 0; i < n->children; i++) {
        if (f[i] == NULL) continue;
        FJP_CHECK(fj_future_ref(f[i]) == f[i]);
        await_some_way(n, f[i], n->arg >> 2);
        fj_future_unref(f[i]);
        settle_future(n, &n->child[i], f[i]);
        fj_future_unref(f[i]);
    }
}

/* ---- Timers --------------------------------------------------------------------------------- */

#define SERIES_CODE 300

enum fjp_timer_way fjp_timer_way(const fjp_node *n)
{
    /* A worker that waits for a timer needs another worker to run it. */
    if (n->program->tight && !n->outside) return FJP_ONCE_ALONE;
    return (enum fjp_timer_way)(n->arg & 7);
}

static int series_length(const fjp_node *c)
{
    return 1 + (int)(c->number % 4);
}

/* A series ends by itself after some runs, unless it is one that is cancelled. */
static int timer_run(fj_task *t)
{
    fjp_node *c = (fjp_node *)(void *)t;
    int code = future_run(t);

    if (c->most == 1) return code;
    return atomic_load(&c->runs) >= series_length(c) && c->high != 1 << 30 ? SERIES_CODE : FJ_OK;
}

static void on_timeout(fj_future *f, void *arg)
{
    (void)arg;
    (void)fj_future_fail(f, SERIES_CODE);
}

static int timer_start(fjp_node *n, fjp_node *c, enum fjp_timer_way way, fj_future **f)
{
    fj_pool *pool = fjp_where(c);
    int64_t delay = (n->arg >> 3 & 15) * 5 * FJP_US;

    *f = &c->is.future;
    fj_timer_init(&c->is.timer, timer_run);
    switch (way) {
        case FJP_ONCE:
        case FJP_ONCE_ALONE: fjp_expect(c, 1, 1); break;
        case FJP_RATE:
        case FJP_DELAY: fjp_expect(c, series_length(c), series_length(c)); break;
        case FJP_RATE_CANCELLED: fjp_expect(c, 0, 1 << 30); break;
        default: fjp_expect(c, 0, 1);
    }
    switch (way) {
        case FJP_ONCE:
        case FJP_ONCE_ALONE:
        case FJP_ONCE_CANCELLED: return fj_schedule(pool, &c->is.timer, delay);
        case FJP_RATE:
        case FJP_RATE_CANCELLED:
            return fj_schedule_at_fixed_rate(pool, &c->is.timer, delay, 1 + delay / 4);
        case FJP_DELAY:
            return fj_schedule_with_fixed_delay(pool, &c->is.timer, delay, 1 + delay / 4);
        case FJP_LIMIT: return fj_submit_with_timeout(pool, call_run, c, delay, NULL, f);
        default: return fj_submit_with_timeout(pool, call_run, c, delay, on_timeout, f);
    }
}

/* Whether the pool may have cancelled the timer: a series at shutdown, any timer when the pool is
 * stopped, and any timer for whose task there is no memory when it is due. */
static bool timer_may_go(const fjp_node *n, const fjp_node *c)
{
    const fjp_program *p = n->program;
    bool series = c->most > 1;

    return p->faults || p->ends == 2 || (series && p->ends == 1);
}

static void timer_settle(fjp_node *n, fjp_node *c, enum fjp_timer_way way, fj_future *f)
{
    void *result = NULL;
    int code = look_at(f, &result), runs = atomic_load(&c->runs);
    bool limit = way == FJP_LIMIT || way == FJP_LIMIT_ACTS;

    if (code == FJ_ECANCELED || (way == FJP_LIMIT && code == FJ_ETIMEDOUT)) {
        FJP_CHECK(way == FJP_ONCE_CANCELLED || way == FJP_RATE_CANCELLED || limit ||
                  timer_may_go(n, c));
        c->low = 0;
        if (c->counts) fjp_never_ran(n, c);
    } else if (c->most > 1) {
        FJP_CHECK_EQ(code, SERIES_CODE);
        FJP_CHECK_EQ(runs, series_length(c));
    } else if (way == FJP_LIMIT_ACTS && code == SERIES_CODE) {
        c->low = 0;
    } else {
        if (code == FJ_OK) FJP_CHECK(result == &c->value);
        fjp_settle(n, c, code);
    }
}

void fjp_timers(fjp_node *n)
{
    fj_future *f[FJP_MOST_CHILDREN] = {NULL};
    enum fjp_timer_way way = fjp_timer_way(n);

    for (int i = 0; i < n->children; i++) {
        if (fjp_refused(n, &n->child[i], timer_start(n, &n->child[i], way, &f[i]))) f[i] = NULL;
    }
    for (int i = 0; i < n->children; i++) {
        fjp_node *c = &n->child[i];
        if (f[i] == NULL) continue;
        if (way == FJP_ONCE_ALONE) {
            atomic_store(&c->held, true);
            continue;
        }
        (void)fj_timer_remaining(f[i]);
        if (way == FJP_ONCE_CANCELLED || way == FJP_RATE_CANCELLED) {
            if ((n->arg & 64) != 0) sched_yield();
            int won = fj_future_cancel(f[i], n->arg >> 5 & 1);
            FJP_CHECK(won || fj_future_is_done(f[i]));
        } else {
            await_some_way(n, f[i], n->arg >> 4);
        }
        timer_settle(n, c, way, f[i]);
        fj_future_fini(f[i]);  /* has an effect on an embedded future only */
        fj_future_unref(f[i]); /* has an effect on an allocated future only */
    }
}

/* Finishes a timer that no thread has waited for. Returns whether it was one. */
bool fjp_timer_finish(fjp_node *c)
{
    if (!atomic_exchange(&c->held, false)) return false;
    int code = fj_future_join(&c->is.future);
    FJP_CHECK(code == c->code || (code == FJ_ECANCELED && timer_may_go(c, c)));
    if (code == FJ_ECANCELED) c->low = 0;
    fj_future_fini(&c->is.future);
    return true;
}
