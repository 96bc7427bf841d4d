/* SPDX-License-Identifier: MIT */
/*
 * quiesce.c - waits until a pool is quiescent
 *
 * sched/quiescent.c decides whether a pool is quiescent. A waiter without a deadline that may work
 * for the pool runs tasks of the pool (quiesce_help()). Every other waiter checks the pool again
 * and again, with pauses that grow from 20 us to 1 ms (quiesce_watch()). It runs tasks only if the
 * pool is threadless and the waiter has no deadline.
 *
 * A waiter that is a worker or a guest of the same pool has the park word QUIET while it finds no
 * task. So it does not keep the pool from being quiescent, and several tasks of one pool can wait
 * for its quiescence at the same time.
 */

#include "pool/quiesce.h"

#include "pool/create.h"
#include "sched/compensate.h"
#include "sched/guest.h"
#include "sched/hold.h"
#include "sched/quiescent.h"
#include "sched/run.h"
#include "sched/safepoint.h"
#include "sched/steal.h"
#include "sched/threadless.h"
#include "sched/wake.h"

bool fji_quiesce_now(fj_pool *p)
{
    if (fji_pool_stopping(p) || !fji_pool_hold(p)) return true;
    bool quiet = fji_pool_quiescent(p, false);
    fji_pool_drop_hold(p);
    return quiet;
}

/* Takes a task from any queue of w's pool, first from the own queue of w. Called by w. From its own
 * queue w takes the task as a thief does: a function on the stack of w may join that task through
 * its cell, and has to find DONE in the state word of the cell. */
static fji_steal_result quiesce_find(fji_worker *w, fji_taken *taken)
{
    fji_steal_result got = fji_queue_steal(&w->q, taken);
    return got == FJI_STEAL_EMPTY ? fji_steal_any(w, taken) : got;
}

/* Sleeps while *word does not change, for 20 us in the first 10 calls, 100 us in the next 40, then
 * 1 ms, but at most until the deadline. *turn is the number of earlier calls, up to 50; the
 * caller sets it to 0 to begin again with short pauses. */
static void quiesce_pause(uint32_t *word, int *turn, int64_t deadline)
{
    int64_t pause = *turn < 10 ? 20000 : *turn < 50 ? 100000 : 1000000;
    int64_t until = fji_plat_now() + pause;

    if (*turn < 50) ++*turn;
    if (until > deadline) until = deadline;
    fji_plat_wait(word, fji_load_relaxed(word), until); /* relaxed: only compared */
}

/* Called by w: runs tasks of its pool until the pool is quiescent or stops. The park word of w is
 * QUIET while w finds no task, and is set to ACTIVE before w takes a task. */
static void quiesce_help(fji_worker *w)
{
    fj_pool *p = w->pool;
    fji_taken taken;
    int turn = 0;

    for (;;) {
        fji_safepoint(w);
        fji_steal_result got = quiesce_find(w, &taken);
        if (got == FJI_STEAL_SUCCESS) {
            fji_run_taken(p, w, &taken);
            turn = 0;
            continue;
        }
        fji_quiesce_turn(w, FJI_PARK_QUIET);
        bool quiet = got == FJI_STEAL_EMPTY &&
                     (fji_pool_stopping(p) || fji_pool_quiescent(p, false));
        if (!quiet) quiesce_pause(&w->park, &turn, FJ_FOREVER);
        fji_quiesce_turn(w, FJI_PARK_ACTIVE);
        if (quiet) return;
    }
}

/* Wakes a worker of p if a task is queued, because the task may have been queued without a
 * wake-up. */
static void quiesce_wake(fj_pool *p)
{
    if (!fji_pool_hold(p)) return;
    if (fji_pool_has_work(p)) fji_wake_one(p);
    fji_pool_drop_hold(p);
}

/* Checks p again and again, with pauses, until p is quiescent or stops, or the deadline has passed.
 * If the caller is a worker, it is blocked meanwhile; if it is a worker or guest of p, its park
 * word is QUIET. Wakes a worker of p while a task is queued. If the deadline is FJ_FOREVER, runs
 * the tasks of p itself while p is threadless. Returns true if p is quiescent or stops. */
static bool quiesce_watch(fj_pool *p, int64_t deadline)
{
    fji_worker *w = fji_worker_self();
    bool own = w != NULL && w->pool == p, may_run = deadline == FJ_FOREVER, quiet;
    int turn = 0;
    fji_compensation c = w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED;
    int64_t pause = 0;

    if (!may_run) fji_pool_needs_worker(p);
    if (own) fji_quiesce_turn(w, FJI_PARK_QUIET);
    while (!(quiet = fji_quiesce_now(p)) && fji_plat_now() < deadline) {
        if (fji_called(w)) {
            if (own) fji_quiesce_turn(w, FJI_PARK_ACTIVE);
            c = fji_safepoint_blocked(w, c);
            if (own) fji_quiesce_turn(w, FJI_PARK_QUIET);
        }
        quiesce_wake(p);
        fji_run_threadless(p, may_run);
        int64_t retry = w != NULL ? fji_compensate_retry(w, &pause) : FJ_FOREVER;
        quiesce_pause(own ? &w->park : &p->run, &turn, retry < deadline ? retry : deadline);
    }
    if (own) fji_quiesce_turn(w, FJI_PARK_ACTIVE);
    if (w != NULL) fji_compensate_end(w, c);
    return quiet;
}

int fji_quiesce_await(fj_pool *p, int64_t deadline)
{
    fji_worker *w = fji_worker_self();

    if (deadline != FJ_FOREVER) return quiesce_watch(p, deadline) ? FJ_OK : FJ_ETIMEDOUT;
    if (w != NULL && w->pool == p) {
        quiesce_help(w);
        return FJ_OK;
    }
    fji_worker *g = w == NULL && p->caller_helps ? fji_guest_enter(p, true, NULL) : NULL;
    if (g == NULL) return quiesce_watch(p, deadline) ? FJ_OK : FJ_ETIMEDOUT;
    quiesce_help(g);
    fji_guest_leave(g);
    return FJ_OK;
}
