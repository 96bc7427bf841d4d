/* SPDX-License-Identifier: MIT */
/*
 * await.c - waiting for a task that another thread runs
 *
 * The waiter helps (help.c), spins for a short time, and then sleeps: on the state word of the task, or in a
 * wait bucket if the wait can be interrupted. While it sleeps, compensate.c lets another worker run in its
 * place. task.h explains the state word.
 *
 * Edges         from                                to                          carries
 *   task.done   release or, fji_task_complete()     acquire load, join_await()  result and code
 *   join.chain  release store, join_await()         acquire load, help_thief()  the joined cell
 */

#include "sched/await.h"

#include "plat/wait.h"
#include "sched/compensate.h"
#include "sched/help.h"
#include "sched/interrupt.h"
#include "sched/quiescent.h"
#include "sched/threadless.h"

/* What is waited for: a stolen cell of the waiter's own queue, or a task that was submitted. */
struct await {
    uint32_t *state;
    const uint32_t *child_base;
    fj_cell *cell; /* or NULL, and */
    const fj_task
        *task; /* for fji_task_is_orphaned(): while it waits, the waiter runs tasks, which may
                          * fork() the process. A cell is told by child.c. */
    const fji_wait *how;
};

static bool await_is_orphaned(const struct await *a)
{
    /* relaxed: NULL, or put into a queue by now. */
    return a->task != NULL && fji_load_relaxed(&a->task->cell) != NULL &&
           fji_task_is_orphaned(a->task);
}

/* FJ_OK: wait on. */
static int await_gives_up(const fji_worker *w, const fji_wait *how)
{
    if (how->interruptible && w != NULL && fji_interrupted(w)) return FJ_ECANCELED;
    if (how->deadline != FJ_FOREVER && fji_plat_now() >= how->deadline) return FJ_ETIMEDOUT;
    return FJ_OK;
}

/* When to look again whether `from` (or NULL), another pool, has lost its threads, or whether the
 * pool of w can have a thread that was refused. */
static int64_t await_look(fji_worker *w, const fji_wait *how, const fj_pool *from, int64_t *pause)
{
    int64_t look = from != NULL ? fji_plat_now() + FJI_THREADLESS_POLL_NS : FJ_FOREVER;
    int64_t retry = w != NULL ? fji_compensate_retry(w, pause) : FJ_FOREVER;

    if (retry < look) look = retry;
    return look < how->deadline ? look : how->deadline;
}

/* Sleeps on the word itself. */
static int await_sleep(fji_worker *w, const struct await *a, fj_pool *from)
{
    int err = FJ_OK;
    int64_t pause = 0;
    /* [task.done] acquire <- release in fji_task_complete(): it may be done by now. */
    uint32_t s = fji_or_acq_rel(a->state, FJI_WAITING) | FJI_WAITING;

    while ((s & a->how->done) == 0 && err == FJ_OK) {
        if (from != NULL) fji_run_threadless(from, fji_wait_may_run(a->how));
        if (await_is_orphaned(a)) break;
        fji_plat_wait(a->state, s, await_look(w, a->how, from, &pause));
        /* [task.done] acquire <- release in fji_task_complete(): result and code. */
        s = fji_load_acquire(a->state);
        err = await_gives_up(w, a->how);
    }
    return (s & a->how->done) != 0 ? FJ_OK : err;
}

/* Sleeps in the lot of a future, so that it can be interrupted. */
static int await_interruptible(fji_worker *w, const struct await *a, fj_pool *from)
{
    uint32_t *bucket = fji_wait_bucket(a->task);
    int64_t pause = 0;
    int err = FJ_OK;
    uint32_t s;

    fji_interruptible_begin(w, bucket);
    /* [task.done] acq_rel: it is done by now, or whoever decides sees the bit. */
    (void)fji_or_acq_rel(a->state, FJI_OBSERVED);
    for (;;) {
        /* [cancel.bucket] acquire <- acq_rel in fji_wait_bucket_notify(): what has changed is seen below. */
        uint32_t seen = fji_load_acquire(bucket);
        /* [task.done] acquire <- acq_rel in fji_future_finish(), fji_future_resolve(). */
        s = fji_load_acquire(a->state);
        if ((s & a->how->done) != 0 || await_is_orphaned(a)) break;
        if ((err = await_gives_up(w, a->how)) != FJ_OK) break;
        if (from != NULL) fji_run_threadless(from, fji_wait_may_run(a->how));
        fji_plat_wait(bucket, seen, await_look(w, a->how, from, &pause));
    }
    fji_interruptible_end(w);
    return (s & a->how->done) != 0 ? FJ_OK : err;
}

static int await_asleep(fji_worker *w, const struct await *a, fj_pool *from)
{
    if (w == NULL) return await_sleep(w, a, from);
    fji_compensation c = fji_compensate_begin(w);
    if (a->how->guest) fji_quiesce_turn(w, FJI_PARK_QUIET);
    int err = a->how->interruptible ? await_interruptible(w, a, from) : await_sleep(w, a, from);
    if (a->how->guest) fji_quiesce_turn(w, FJI_PARK_ACTIVE);
    fji_compensate_end(w, c);
    return err;
}

/* A moment between two looks: gives way now and then, somebody else may need the core. */
static bool await_spin(int64_t *until, uint32_t *turn)
{
    if (*until == 0) *until = fji_plat_now() + FJI_JOIN_SPIN_NS;
    fji_spin(turn, 16, 16);
    return fji_plat_now() < *until;
}

static int join_await(fji_worker *w, fj_pool *pool, const struct await *a)
{
    bool helps = w != NULL && w->pool == pool && fji_wait_may_run(a->how);
    bool counted = w != NULL && w->pool == pool && w->alive == FJI_ALIVE_WORKER;
    fj_cell *outer = NULL, *from = helps ? fji_worker_boundary(w) : NULL;
    int64_t until = 0;
    uint32_t turn = 0;
    fji_awaited awaited = {a->state, a->child_base, a->how->token, a->how->root};
    int err = FJ_OK;

    if (w != NULL) {
        outer = w->joining;
        /* [join.chain] release -> acquire in help_thief(). */
        fji_store_release(&w->joining, a->cell);
    }
    for (;;) {
        /* [task.done] [join.thief] acquire: result and code, or child_base. */
        uint32_t s = fji_load_acquire(a->state);
        if ((s & a->how->done) != 0 || await_is_orphaned(a)) break;
        fji_steal_result got = helps ? fji_help_once(w, &awaited, s, from) : FJI_STEAL_EMPTY;
        if (got == FJI_STEAL_SUCCESS) {
            until = 0;
            continue;
        }
        if ((err = await_gives_up(w, a->how)) != FJ_OK) break;
        /* A queue in which a task may be is looked at again before the worker sleeps. */
        if (await_spin(&until, &turn) || got == FJI_STEAL_RETRY) continue;
        /* A guest is no thread that the pool could count on, so it looks too. */
        err = await_asleep(w, a, counted ? NULL : pool);
        break;
    }
    /* [join.chain] release -> acquire in help_thief(). */
    if (w != NULL) fji_store_release(&w->joining, outer);
    return err;
}

int fji_await_task(fji_worker *w, fj_pool *pool, fj_task *t, const fji_wait *how)
{
    return join_await(w, pool, &(struct await){&t->state, &t->child_base, NULL, t, how});
}

/*
 * Waits for the stolen task of cell c, then makes the cell fit for use again. False: its
 * thief got lost in a fork() of the process.
 */
bool fji_await_cell(fji_worker *w, fj_cell *c)
{
    (void)join_await(w, w->pool,
                     &(struct await){&c->state, &c->child_base, c, NULL, &FJI_WAIT_DONE});
    bool orphaned = (c->state & FJI_ORPHANED) != 0;
    fji_store_relaxed(&c->state, 0u); /* relaxed: the thief is through, nobody else looks */
    return !orphaned;
}
